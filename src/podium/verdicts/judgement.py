"""What a procedure says of every pair: differences, how sure they are, and why no claim may be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.verdicts.mixture import Mixture

NOISE = 1e-9  # standard errors


class PathErrors(Protocol):
    """Standard errors (P,) of one way to estimate every difference: from the rows, and from what policies would do."""

    @property
    def empirical(self) -> Floats: ...
    @property
    def design(self) -> Floats: ...


class LoggerCheck(Protocol):
    """Whether the logger seems to seek reward, and how far LDE and DRE are apart (`podium.verdicts.gated.Gates`)."""

    @property
    def knows(self) -> str: ...
    @property
    def t_p(self) -> float: ...
    @property
    def z_b(self) -> Floats: ...
    @property
    def lde(self) -> PathErrors: ...


@dataclass(frozen=True, eq=False)
class Judgement:
    """The differences V(i) - V(j) of all P pairs i < j in units of reward, each with its uncertainty.

    A difference is a t distribution with `freedom` degrees around `difference`, scaled by `std_error`, or a `mixture`
    of such; where a procedure resamples, `reference` holds its draws of |t| instead. A pair with a reason in `silent`
    gets no claim.

    Attributes
    ----------
    procedure : the name of the procedure
    difference, std_error, freedom : (P,); a std_error of nan: nothing is known
    path : (P,) how each pair was judged: "posterior", "LDE", "DRE", ...
    silent : (P,) why no claim may be made of a pair; "" where one may
    values : (K,) estimates of the policies that go with the differences
    reference : (P, B) draws of |t| under no difference, or None for the t distribution
    mixture : the distributions of all differences, where they are mixtures with this mean and standard error
    learned : (P,) how far a posterior mean is shrunk towards 0, as a factor; the end of an interval that is far from 0,
        and thresholds beyond the mean, undo it, so that large differences are not missed
    assumes : what must hold for the probabilities to be right
    notes : sentences on what was missing or noticed
    every_row : (P,) which pairs are judged by every row of a log whose sample judges the others; None if none is
    rows : that the errors rest on; 0 for those of the log
    t_p, alarm : how strongly rewards and the probabilities of actions go together, and whether that is too much
    empirical : (P,) standard errors that the rows show, where floors were added to them
    influence : (N, K) how much each value falls without a row
    logger : what is known of the logger, for the trust panel
    known : (P,) the part of each difference that is known without error, by costs (`podium.verdicts.known_costs`)
    """

    procedure: str
    difference: Floats
    std_error: Floats
    freedom: Floats
    path: tuple[str, ...]
    silent: tuple[str, ...]
    values: Floats
    reference: Floats | None = None
    mixture: Mixture | None = None
    learned: Floats | None = None
    assumes: str = ""
    notes: tuple[str, ...] = ()
    every_row: NDArray[np.bool_] | None = None
    rows: int = 0
    t_p: float = 0.0
    alarm: bool = False
    empirical: Floats | None = None
    influence: Floats | None = None
    logger: LoggerCheck | None = None
    known: Floats | None = None

    @property
    def certain(self) -> NDArray[np.bool_]:
        """(P,) differences that are known without error."""
        if self.known is None:
            return np.zeros(len(self.difference), dtype=bool)
        return np.asarray((self.std_error == 0) & (self.known != 0), dtype=bool)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(P,) where a probability can be given at all."""
        stands = np.array([reason == "" for reason in self.silent], dtype=bool)
        return np.asarray(np.isfinite(self.std_error) & ((self.std_error > 0) | self.certain) & stands, dtype=bool)

    def without_noise(self) -> Judgement:
        """The same with a difference of 0 where only rounding keeps it from 0, beside its standard error."""
        nothing = np.abs(self.difference) <= NOISE * self.std_error
        return replace(self, difference=np.where(nothing, 0.0, self.difference))

    def with_errors(self, std_error: Floats) -> Judgement:
        """The same with other, larger standard errors."""
        mixture = self.mixture
        if mixture is not None:
            known = np.isfinite(std_error) & np.isfinite(self.std_error)
            mixture = mixture.widened(np.where(known, np.maximum(std_error**2 - self.std_error**2, 0.0), 0.0))
        return replace(self, std_error=std_error, mixture=mixture, empirical=self.std_error)

    def with_pairs_of(self, other: Judgement, chosen: NDArray[np.bool_]) -> Judgement:
        """The same with what another judgement, of t distributions, says of the chosen pairs."""

        def pick(mine: Floats | None, others: Floats | None) -> Floats | None:
            return None if mine is None else np.where(chosen, 1.0 if others is None else others, mine)

        def words(mine: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
            return tuple(b if c else a for a, b, c in zip(mine, others, chosen, strict=True))

        difference, std_error = (
            np.where(chosen, b, a) for a, b in ((self.difference, other.difference), (self.std_error, other.std_error))
        )
        freedom = np.where(chosen, other.freedom, self.freedom)
        mixture = self.mixture
        if mixture is not None:
            means, scales = np.where(chosen, difference, mixture.means), np.where(chosen, std_error, mixture.scales)
            mixture = Mixture(mixture.weights, means, scales, freedom)
        return replace(
            self, difference=difference, std_error=std_error, freedom=freedom, mixture=mixture,
            path=words(self.path, other.path), silent=words(self.silent, other.silent),
            learned=pick(self.learned, None), empirical=pick(self.empirical, other.empirical), every_row=chosen,
        )  # fmt: skip

    def only(self, n: int) -> Judgement:
        """What is said of one pair alone."""

        def pick(values: Floats | None) -> Floats | None:
            return None if values is None else values[n : n + 1]

        mixture = self.mixture
        if mixture is not None:
            some = slice(n, n + 1)
            mixture = Mixture(
                mixture.weights[:, some], mixture.means[:, some], mixture.scales[:, some], mixture.freedom[some]
            )
        return replace(
            self, difference=self.difference[n : n + 1], std_error=self.std_error[n : n + 1],
            freedom=self.freedom[n : n + 1], path=self.path[n : n + 1], silent=self.silent[n : n + 1],
            reference=pick(self.reference), mixture=mixture, learned=pick(self.learned), known=pick(self.known),
            empirical=pick(self.empirical), every_row=None, influence=None, logger=None, values=np.zeros(2),
        )  # fmt: skip

    def p_above(self, threshold: float = 0.0) -> Floats:
        """(P,) the probability that a difference exceeds a threshold; 1/2 where nothing is known."""
        limit: Floats = np.full_like(self.difference, threshold)
        known = 0.0 if self.known is None else self.known
        if self.learned is not None:  # what was shrunk is the part that is not known
            learned, wanted = self.difference - known, limit - known
            side = np.sign(learned)
            beyond = known + side * np.maximum(side * learned, side * self.learned * wanted)
            limit = np.where(side * (learned - wanted) < 0, beyond, limit)
        spread = self.usable & ~self.certain
        with np.errstate(over="ignore"):  # a threshold far beyond all rewards
            z = np.divide(self.difference - limit, self.std_error, out=np.zeros_like(limit), where=spread)
        sign = np.sign(self.difference - limit)
        z = np.where(self.certain & (sign != 0), np.copysign(np.inf, sign), z)
        if self.reference is not None:
            above = (self.reference >= np.abs(z)[:, None] - 1e-12).sum(axis=1)
            one_sided = (1 + above) / (1 + self.reference.shape[1]) / 2
            return np.where(self.usable, np.where(z > 0, 1 - one_sided, np.where(z < 0, one_sided, 0.5)), 0.5)
        from scipy.special import stdtr

        above = stdtr(self.freedom, z) if self.mixture is None else 1 - self.mixture.below(limit)
        return np.where(self.usable & ((self.difference != known) | (limit != known)), above, 0.5)

    def interval(self, level: float | Floats) -> tuple[Floats, Floats]:
        """Central intervals at one level, or (P,) levels; nan where nothing is known."""
        level = np.broadcast_to(level, self.difference.shape)
        if self.mixture is not None:
            low, high = (self.mixture.quantile(q) for q in ((1 - level) / 2, (1 + level) / 2))
            low, high = np.where(self.usable, low, np.nan), np.where(self.usable, high, np.nan)
        else:
            half = np.where(self.usable, self.reach(level) * self.std_error, np.nan)
            low, high = self.difference - half, self.difference + half
        if self.learned is None:
            return low, high
        known = 0.0 if self.known is None else self.known
        up = self.difference >= known
        far = [known + (end - known) / self.learned for end in (low, high)]
        return np.where(up, low, far[0]), np.where(up, far[1], high)

    def reach(self, level: Floats) -> Floats:
        """(P,) half the widths of intervals, in standard errors."""
        if self.reference is not None:
            levels, places = np.unique(level, return_inverse=True)
            return np.array([critical(self.reference, float(x)) for x in levels])[places, np.arange(len(level))]
        from scipy.special import stdtrit

        return np.asarray(stdtrit(self.freedom, (1 + level) / 2), dtype=np.float64)


def critical(reference: Floats, level: float) -> Floats:
    """(P,) the largest |t| whose p value, (1 + draws at or beyond it) / (1 + draws), is still above 1 - level.

    >>> critical(np.arange(1.0, 100.0)[None], 0.95)
    array([95.])
    """
    draws = reference.shape[1]
    beyond = int((1 - level) * (1 + draws) + 1e-9)
    if beyond == 0:
        return np.full(len(reference), np.inf)
    largest: Floats = np.partition(reference, draws - beyond, axis=1)[:, draws - beyond]
    return largest
