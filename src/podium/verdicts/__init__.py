"""How sure is a difference? What a procedure says of every pair, and how many claims that supports together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.verdicts.pairs import pair_indices, pair_variance

DRAWS = 10_000
NOISE = 1e-9  # standard errors


@dataclass(frozen=True, eq=False)
class Judgement:
    """The differences V(i) - V(j) of all P pairs i < j in units of reward, each with its uncertainty.

    A difference is a t distribution with `freedom` degrees around `difference`, scaled by `std_error`; where a
    procedure resamples, `reference` holds its draws of |t| instead. A pair with a reason in `silent` gets no claim.

    Attributes
    ----------
    procedure : the name of the procedure
    difference, std_error, freedom : (P,); a std_error of nan: nothing is known
    path : (P,) how each pair was judged: "posterior", "LDE", "DRE", ...
    silent : (P,) why no claim may be made of a pair; "" where one may
    values : (K,) estimates of the policies that go with the differences
    reference : (P, B) draws of |t| under no difference, or None for the t distribution
    learned : (P,) how far a posterior mean is shrunk towards 0, as a factor; the end of an interval that is far from 0,
        and thresholds beyond the mean, undo it, so that large differences are not missed
    assumes : what must hold for the probabilities to be right
    notes : sentences on what was missing or noticed
    figures : further numbers, by name, for the trust panel and for planning
    """

    procedure: str
    difference: Floats
    std_error: Floats
    freedom: Floats
    path: tuple[str, ...]
    silent: tuple[str, ...]
    values: Floats
    reference: Floats | None = None
    learned: Floats | None = None
    assumes: str = ""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(P,) where a probability can be given at all."""
        stands = np.array([reason == "" for reason in self.silent], dtype=bool)
        return np.asarray(np.isfinite(self.std_error) & (self.std_error > 0) & stands, dtype=bool)

    def without_noise(self) -> Judgement:
        """The same with a difference of 0 where only rounding keeps it from 0, beside its standard error."""
        nothing = np.abs(self.difference) <= NOISE * self.std_error
        return replace(self, difference=np.where(nothing, 0.0, self.difference))

    def p_above(self, threshold: float = 0.0) -> Floats:
        """(P,) the probability that a difference exceeds a threshold; 1/2 where nothing is known."""
        gap = self.difference - threshold
        if self.learned is not None:
            side = np.sign(self.difference)
            beyond = np.minimum(0.0, side * (self.difference - self.learned * threshold))
            gap = np.where(side * gap < 0, side * beyond, gap)
        z = np.divide(gap, self.std_error, out=np.zeros_like(gap), where=self.usable)
        if self.reference is not None:
            above = (self.reference >= np.abs(z)[:, None] - 1e-12).sum(axis=1)
            one_sided = (1 + above) / (1 + self.reference.shape[1]) / 2
            return np.where(self.usable, np.where(z > 0, 1 - one_sided, np.where(z < 0, one_sided, 0.5)), 0.5)
        from scipy.special import stdtr

        return np.where(self.usable, stdtr(self.freedom, z), 0.5)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Central intervals; nan where nothing is known."""
        from scipy.special import stdtrit

        reach: Floats = np.asarray(
            stdtrit(self.freedom, (1 + level) / 2) if self.reference is None else critical(self.reference, level),
            dtype=np.float64,
        )
        half = np.where(self.usable, reach * self.std_error, np.nan)
        low, high = self.difference - half, self.difference + half
        if self.learned is None:
            return low, high
        up = self.difference >= 0
        return np.where(up, low, low / self.learned), np.where(up, high / self.learned, high)


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


def two_sided(p_better: Floats) -> Floats:
    """The two-sided p value that goes with a probability of being better."""
    p: Floats = np.minimum(1.0, 2 * np.minimum(p_better, 1 - p_better))
    return p


def benjamini_hochberg(p: Floats) -> Floats:
    """P values adjusted so that claims at 5% are false in at most 5% of claims, on average.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(p)[::-1]
    ranks = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * len(p) / ranks))
    return adjusted


def max_t(p: Floats, covariance: Floats, seed: int, draws: int = DRAWS) -> Floats:
    """P values adjusted so that claims at 5% are all right together in 95% of logs (max-T step-down).

    The pairs' z values are correlated as the policies' covariance says; each pair is held against the largest
    |z| that chance gives among it and all less certain pairs.
    """
    from scipy.special import ndtri

    if len(p) <= 1 or not np.isfinite(covariance).all():
        return np.minimum(1.0, p * max(1, len(p)))
    i, j = pair_indices(len(covariance))
    noise = gaussian_draws(covariance, seed, draws)
    spread = np.sqrt(np.maximum(pair_variance(covariance, i, j), 1e-300))
    observed = -ndtri(np.clip(p / 2, 1e-300, 0.5))
    order = np.argsort(-observed)  # the most certain pair first
    largest = np.zeros(draws)
    adjusted = np.empty_like(p)
    for pair in order[::-1]:
        largest = np.maximum(largest, np.abs(noise[:, i[pair]] - noise[:, j[pair]]) / spread[pair])
        adjusted[pair] = (1 + np.count_nonzero(largest >= observed[pair])) / (1 + draws)
    adjusted[order] = np.maximum.accumulate(np.maximum(adjusted[order], p[order]))
    return np.minimum(1.0, adjusted)


def joint_covariance(judgement: Judgement) -> Floats:
    """(K, K) a covariance whose differences have the pairs' variances, by double centring; nan if one is unknown."""
    k = len(judgement.values)
    i, j = pair_indices(k)
    full = np.zeros((k, k))
    full[i, j] = full[j, i] = steady(judgement.std_error) ** 2
    if not np.isfinite(full).all():
        return np.full((k, k), np.nan)
    full = full - full.mean(axis=0) - full.mean(axis=1)[:, None] + full.mean()
    scale, axes = np.linalg.eigh(-0.5 * full)
    covariance: Floats = (axes * np.maximum(scale, 0)) @ axes.T
    return covariance


def steady(numbers: Floats) -> Floats:
    """Numbers to six digits: engines add in different orders, and draws must not turn on the last bit.

    >>> steady(np.array([0.123456789, 98765432.1, 0.0])).tolist()
    [0.123457, 98765400.0, 0.0]
    """
    return np.array([float(f"{x:.5e}") for x in numbers])


def rounded_values(judgement: Judgement) -> Floats:
    """(K,) values with mean 0 that fit all differences best, to a millionth of the smallest standard error."""
    k = len(judgement.values)
    i, j = pair_indices(k)
    gaps = np.zeros((k, k))
    gaps[i, j], gaps[j, i] = judgement.difference, -judgement.difference
    centred: Floats = gaps.mean(axis=1)
    errors = steady(judgement.std_error[judgement.std_error > 0])
    unit = max(1e-6 * float(errors.min()), 1e-15 * float(np.abs(centred).max()), 1e-300)
    rounded: Floats = np.round(centred / unit) * unit
    return rounded


def gaussian_draws(covariance: Floats, seed: int, draws: int) -> Floats:
    """(draws, K) normal draws with this covariance, which may be singular.

    Noise is multiplied by the symmetric root of the covariance. Unlike the eigenvectors, whose signs (and, of equal
    eigenvalues, directions) are left to rounding, that root is unique.
    """
    scale, axes = np.linalg.eigh(covariance)
    scale = np.where(scale > 1e-12 * scale.max(), scale, 0.0)
    noise = np.random.default_rng(seed).standard_normal((draws, len(covariance)))
    drawn: Floats = noise @ ((axes * np.sqrt(scale)) @ axes.T)
    return drawn


def best_and_regret(judgement: Judgement, sign: float, seed: int) -> tuple[Floats, Floats]:
    """(K,) how often each policy is the best, and how much choosing it is expected to lose against the best.

    Values are those that fit all differences best, and vary together with the variances and the tails (degrees of
    freedom) that the pairs state.
    """
    k = len(judgement.values)
    covariance = joint_covariance(judgement)
    if not judgement.usable.any() or not np.isfinite(covariance).all():
        return np.full(k, 1 / k), np.full(k, np.nan)
    freedom = float(steady(judgement.freedom[judgement.usable]).min())
    tails = np.sqrt(freedom / np.random.default_rng([seed, 4]).chisquare(freedom, size=(DRAWS, 1)))
    values = rounded_values(judgement)
    drawn = sign * (values + tails * gaussian_draws(covariance, seed, DRAWS))
    best = drawn.max(axis=1, keepdims=True)
    top = drawn >= best - 1e-7 * float(judgement.std_error.max())  # nearer than that, draws resolve nothing
    shares: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    regret: Floats = (best - drawn).mean(axis=0)
    return shares, regret
