"""What a method finds: values, paired differences and errors, read off sums of row terms that merge with `+`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.scales import EPSILON, unit_of
from podium.engines.parts import Part
from podium.estimates.estimators import Estimator
from podium.estimates.moments import GroupSums, Moments
from podium.estimates.terms import RowTerms, WeightSums

TIE = 1e-12  # scores closer than this, relative to their terms, differ by rounding alone
FINE = 16 * EPSILON / TIE  # what rounding leaves of numbers that cancel, in shares of `TIE`
FEW = 2.0  # effective rows below which a self-normalised method shows no spread
NEAR = 1e-6  # policies whose terms differ by less, relatively, are subtracted row by row
MOST_NEAR = 256  # such pairs of a large log, the nearest first
AT_ONCE = 64  # such pairs that are subtracted together


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method on K policies: estimates, and the difference and standard error of every pair (K, K)."""

    estimator: Estimator
    values: Floats  # (K,)
    centred: Floats  # (K,) values without what all policies share: their order survives a reward near 1e6
    scale: float  # root mean square of the largest row terms
    difference: Floats  # (K, K) values[i] - values[j], free of cancellation
    std_error: Floats  # (K, K), paired: the rows are the same; nan where pairs were not asked for
    rows: int  # rows kept
    samples: int  # independent pieces: rows, or units, or states
    value_error: Floats  # (K,) standard errors of the values themselves; nan where too few rows carry the weight
    removed: Floats | None = None  # (K,) the share of each policy's weight that shrinking took away
    effective: Floats | None = None  # (K,) effective rows (or units) of self-normalised methods
    pieces: GroupSums | None = None  # sums of the terms over what is resampled
    weights: WeightSums | None = None  # of methods whose pairs are judged, and of those that shrink

    @property
    def freedom(self) -> Floats:
        """(K,) degrees of freedom of each value's error: as many as rows (or units) carry the weight, less 1."""
        many = np.full(len(self.values), self.samples - 1.0)
        fewer = many if self.effective is None else np.minimum(many, self.effective - 1)
        return np.asarray(np.maximum(fewer, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a pass is to find of a method besides values.

    paired : the covariance of all pairs
    near : pairs that are subtracted row by row, which a covariance cannot resolve
    pieces : the group of each row of a part that is resampled, and how many groups there are
    groups : how many groups of dependent rows there are; 0 for none
    """

    paired: bool = False
    near: tuple[tuple[int, int], ...] = ()
    pieces: tuple[Callable[[Codes], Codes], int] | None = None
    groups: int = 0


@dataclass(frozen=True, eq=False)
class TermSums:
    """What the row terms of one method on some rows add up to."""

    moments: Moments  # of the terms
    near: Moments  # of the differences of near pairs, each by itself
    own: Moments  # of the terms with what all policies share, each by itself
    shift: Floats  # (K,) by how much the terms of a self-normalised method miss its estimate, summed
    weights: WeightSums | None = None
    before: Floats | None = None  # (K,) sums of the weights before shrinking
    groups: GroupSums | None = None  # the columns of moments, near and own by group of dependent rows
    pieces: GroupSums | None = None  # the terms by what is resampled

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what is too large is told of the sums
    def of(cls, terms: RowTerms, part: Part, gain: Floats | None, wanted: Wanted, unit: float = 1.0) -> TermSums:
        """The sums of terms in some unit, in which their squares can be held."""
        matrix = terms.matrix()
        matrix = matrix if unit == 1 else matrix / unit
        own = matrix if terms.common is None or gain is None else matrix + terms.common[:, None] * (gain / unit)
        weigh = wanted.paired and terms.estimator.rule != "steps"
        weights = WeightSums.of(terms) if weigh or terms.estimator.shrinks else None
        before = None
        if terms.estimator.shrinks:
            before = WeightSums.of(replace(terms, estimator=terms.estimator.counterpart)).total
        near = np.hstack([np.zeros((len(matrix), 0)), *(terms.gaps(some) / unit for some in chunks(wanted.near))])
        groups, pieces = None, None
        if terms.groups is not None:
            groups = GroupSums.of(np.hstack([matrix, near, own]), terms.groups, wanted.groups, terms.base_scale)
        if wanted.pieces is not None:
            piece_of, many = wanted.pieces
            pieces = GroupSums.of(matrix, piece_of(part.rows[terms.rows]), many, terms.base_scale)
        shift = terms.deviations().sum(axis=0) / unit if terms.ratio is not None else np.zeros(matrix.shape[1])
        moments = Moments.of(matrix, wanted.paired)
        return cls(
            moments,
            Moments.of(near, False),
            Moments(moments.count, moments.mean, moments.squares) if own is matrix else Moments.of(own, False),
            shift,
            weights,
            before,
            groups,
            pieces,
        )

    def __add__(self, other: TermSums) -> TermSums:
        added = {name: both(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__}
        return TermSums(**added)


def both(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def chunks(pairs: Sequence[tuple[int, int]]) -> Iterator[Sequence[tuple[int, int]]]:
    for start in range(0, len(pairs), AT_ONCE):
        yield pairs[start : start + AT_ONCE]


# --- policies that are nearly equal ----------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def near_pairs(terms: RowTerms, whole: bool) -> tuple[tuple[int, int], ...]:
    """Pairs whose difference a Gram matrix of these terms cannot resolve; policies that are the same on all rows are
    held against the first of them alone."""
    moments = Moments.of(terms.matrix())
    own = np.diag(moments.scatter)[:, None] + np.diag(moments.scatter)[None, :]
    spread = own - 2 * moments.scatter
    size = np.abs(moments.mean)[:, None] + np.abs(moments.mean)[None, :]
    near = (spread <= NEAR * own) | (np.abs(moments.mean[:, None] - moments.mean[None, :]) <= NEAR * size)
    leader = leaders(terms, np.flatnonzero((near & ~np.eye(len(near), dtype=bool)).any(axis=1)))
    pairs = {(leader[k], k) for k in leader if leader[k] != k}
    pairs |= {
        (leader[i], leader[j]) for i, j in np.argwhere(near).tolist() if i in leader and leader[i] < leader.get(j, i)
    }
    if whole:
        return tuple(sorted(pairs))
    nearest = sorted(pairs, key=lambda pair: (spread[pair], pair))
    return tuple(sorted(nearest[:MOST_NEAR]))


def leaders(terms: RowTerms, involved: Codes) -> dict[int, int]:
    """The first policy that is the same on all rows, of every policy that is nearly equal to another."""
    first: dict[bytes, int] = {}
    found = {}
    for k in involved.tolist():
        digest = hashlib.blake2b(terms.policy[:, k].tobytes())
        if terms.per_policy is not None:
            digest.update(terms.per_policy[:, k].tobytes())
        found[k] = first.setdefault(digest.digest(), k)
    return found


def resolve_near(gaps: Floats, spread: Floats, near: Sequence[tuple[int, int]], mean: Floats, squares: Floats) -> None:
    """Set the differences and centred squares (K, K), in place, of pairs that were subtracted row by row."""
    same: dict[int, list[int]] = {}  # policies that differ from the first in no row
    for column, (i, j) in enumerate(near):
        gaps[i, j], gaps[j, i] = mean[column], -mean[column]
        spread[i, j] = spread[j, i] = squares[column]
        if mean[column] == squares[column] == 0:
            same.setdefault(i, [i]).append(j)
    for first, others in same.items():
        for k in others:  # each stands where the first of them stands
            gaps[k], gaps[:, k], spread[k], spread[:, k] = gaps[first], gaps[:, first], spread[first], spread[:, first]
        gaps[np.ix_(others, others)] = spread[np.ix_(others, others)] = 0.0


# --- errors ----------------------------------------------------------------------------------------------------------


def without_noise(numbers: Floats, size: Floats | float) -> Floats:
    """Numbers, 0 where they are what rounding leaves of others of that size.

    >>> without_noise(np.array([2e-17, 0.3]), 1.0)
    array([0. , 0.3])
    """
    return np.where(np.abs(numbers) <= TIE * size, 0.0, numbers)


def error_of(spread: Floats, rows: int, samples: int) -> Floats:
    """Standard errors of means over `rows` rows, given the root of the centred squares of `samples` pieces."""
    return spread * np.sqrt(samples / (samples - 1)) / rows if samples > 1 else np.full_like(spread, np.nan)


@np.errstate(over="ignore", under="ignore")
def term_sizes(terms: RowTerms) -> Floats:
    """(K,) how large row terms may be before anything cancels: the largest reward times the policy's weights."""
    largest = max(float(np.abs(terms.reward).max()), float(np.abs(terms.baseline).max()))
    largest = float(np.ptp(terms.reward)) + FINE * largest  # of large rewards that differ little, the difference counts
    if terms.estimator.rule == "steps":
        return np.asarray(np.abs(terms.policy).mean(axis=0))
    if terms.ratio is not None:
        return np.full(terms.policy.shape[1], largest)
    weights = np.sqrt((terms.weights() ** 2).mean(axis=0))
    return np.asarray(largest * (weights + (terms.common is not None)))


def term_unit(terms: RowTerms) -> float:
    """The unit in which terms are summed: 1 unless rewards are so huge or tiny that their squares are out of range."""
    largest = float(np.abs(terms.reward).max())
    if unit_of(largest) == 1:
        return 1.0
    modelled = 0.0 if terms.per_policy is None else float(np.abs(terms.per_policy).max())
    return unit_of(max(largest, float(term_sizes(terms).max()), modelled))
