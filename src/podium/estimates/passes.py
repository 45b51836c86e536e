"""Methods on all rows of a log that is read in parts: typed sums of row terms that merge with `+`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from podium.data.columns import Floats, mixed
from podium.data.errors import Unavailable
from podium.engines.parts import Part, latest_rows
from podium.engines.rows import Rows, WholeRows
from podium.estimates.applied import Applied, Number, apply_baseline
from podium.estimates.bootstrap import BUCKETS
from podium.estimates.estimate import (
    MethodResult,
    assemble,
    error_of,
    own_terms,
    term_sizes,
    try_methods,
    without_noise,
)
from podium.estimates.estimators import Estimator
from podium.estimates.moments import GroupSums, Moments
from podium.estimates.terms import (
    Ratio,
    RowTerms,
    WeightSums,
    build_terms,
    deviations,
    mean_weights,
    moves_with_mean,
    no_model,
    no_propensities,
    refuse_partial,
)

NEAR = 1e-3  # policies whose squared difference is a smaller share of their squares are subtracted row by row
MOST_NEAR = 256


@dataclass(frozen=True, eq=False)
class Method:
    """One method, with all that must be known of the whole log before its terms can be had on a part.

    Parameters
    ----------
    estimator, baseline : which method, and its baseline on any part
    latest : it keeps the latest row of each state and action; otherwise every row
    shared : what all policies share, kept out of the terms
    common_mean : that is the mean reward, which every row moves
    gain : (K,) how much a value moves with it, by the sample: 1 - mean(w)
    size : (K,) how large terms may be before anything cancels, by the sample
    largest : the largest absolute reward of the sample
    ratio, effective : of self-normalised methods
    rows : of the log
    paired : the covariance of all pairs is wanted; otherwise each policy's own spread alone
    """

    estimator: Estimator
    baseline: Applied
    latest: bool
    shared: float
    common_mean: bool
    gain: Floats
    size: Floats
    largest: float
    rows: int
    ratio: Ratio | None = None
    effective: Floats | None = None
    paired: bool = False

    def judged(self) -> Method:
        """The same with the covariance of its pairs."""
        return replace(self, paired=True)

    def terms(self, part: Part) -> RowTerms:
        """Its terms on the rows of a part that it keeps."""
        kept = np.flatnonzero(part.latest) if self.latest and part.latest is not None else np.arange(len(part.rows))
        terms = build_terms(
            part.log, part.policies, self.estimator, kept, self.baseline.on(part).take(kept), shared=self.shared,
            groups=None if part.units is None else part.units[kept], common_mean=self.common_mean,
        )  # fmt: skip
        return replace(terms, ratio=self.ratio, effective=self.effective, total=self.rows)


@dataclass(frozen=True)
class Wanted:
    """What a pass is to find besides values.

    near : pairs that are subtracted row by row, for methods whose pairs are judged
    pieces : sums over random groups of rows, for resampling
    units : how many units, or groups of them, rows belong to; 0 without units
    seed : of the random groups
    """

    near: tuple[tuple[int, int], ...] = ()
    pieces: bool = False
    units: int = 0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TermSums:
    """What the row terms of one method on some rows add up to."""

    moments: Moments  # of the terms
    near: Moments  # of the differences of near pairs, each by itself
    own: Moments  # of the terms with what all policies share, each by itself
    weights: WeightSums
    before: Floats  # (K,) sums of the weights before shrinking
    shift: Floats  # (K,) by how much the terms of a self-normalised method miss its estimate, summed
    groups: GroupSums | None = None  # the columns of moments, near and own by unit
    pieces: GroupSums | None = None  # the terms by random groups of rows

    @classmethod
    def of(cls, method: Method, part: Part, wanted: Wanted) -> TermSums:
        terms = method.terms(part)
        k, n = len(terms.policy), len(terms.rows)
        near_pairs = wanted.near if method.paired else ()
        blocks, near, own = (np.zeros((n, width)) for width in (k, len(near_pairs), k))
        for some, block in terms.blocks():
            blocks[some] = block
            own[some] = own_terms(terms, some, block, method.gain)
        for some, gaps in terms.blocks(near_pairs) if near_pairs else ():
            near[some] = gaps
        weights = WeightSums.of(terms)
        plain = replace(terms, estimator=terms.estimator.counterpart) if terms.estimator.shrinks else None
        pieces = None
        if wanted.pieces:
            bucket = mixed(part.rows[terms.rows].astype(np.uint64), wanted.seed) % np.uint64(BUCKETS)
            pieces = GroupSums.of(blocks, bucket.astype(np.int64), BUCKETS)
        return cls(
            Moments.of(blocks, method.paired),
            Moments.of(near, False),
            Moments.of(own, False),
            weights,
            weights.total if plain is None else WeightSums.of(plain).total,
            deviations(terms),
            None if terms.groups is None else GroupSums.of(np.hstack([blocks, near, own]), terms.groups, wanted.units),
            pieces,
        )

    def __add__(self, other: TermSums) -> TermSums:
        return TermSums(
            self.moments + other.moments,
            self.near + other.near,
            self.own + other.own,
            self.weights + other.weights,
            self.before + other.before,
            self.shift + other.shift,
            None if self.groups is None or other.groups is None else self.groups + other.groups,
            None if self.pieces is None or other.pieces is None else self.pieces + other.pieces,
        )


@dataclass(frozen=True, eq=False)
class Several:
    """The sums of several methods, in their order."""

    each: tuple[Any, ...]

    def __add__(self, other: Several) -> Several:
        if not self.each or not other.each:
            return self if self.each else other
        return Several(tuple(a + b for a, b in zip(self.each, other.each, strict=True)))


def sum_terms(parts: Iterable[Part], methods: Sequence[Method], wanted: Wanted) -> Several:
    total = Several(())
    for part in parts:
        total = total + Several(tuple(TermSums.of(m, part, wanted) for m in methods))
    return total


def sum_weights(parts: Iterable[Part], methods: Sequence[Method], units: int) -> Several:
    total = Several(())
    for part in parts:
        total = total + Several(tuple(WeightSums.of(m.terms(part), units) for m in methods))
    return total


def run_methods(
    rows: Rows,
    estimators: Sequence[Estimator],
    baseline: Any,
    *,
    normalize: str = "rows",
    duplicates: str | None = None,
    seed: int = 0,
) -> tuple[dict[str, MethodResult], dict[str, str]]:
    """Every method that can be used, on all rows, and the reason for each that cannot."""
    source = rows.source
    if isinstance(source, WholeRows):
        return try_methods(
            source.log, source.policies, estimators, baseline, normalize=normalize, duplicates=duplicates, seed=seed
        )
    methods, unavailable = ready_methods(rows, estimators, baseline, duplicates, seed)
    found = run_pass(rows, methods, Wanted(units=rows.groups, seed=seed))
    return {m.estimator.name: r for m, (r, _) in zip(methods, found, strict=True)}, unavailable


def ready_methods(
    rows: Rows, estimators: Sequence[Estimator], baseline: Any, duplicates: str | None, seed: int
) -> tuple[list[Method], dict[str, str]]:
    """Methods with all that they must know of the whole log, and the reason for each that cannot be used."""
    methods: list[Method] = []
    unavailable: dict[str, str] = {}
    for estimator in estimators:
        try:
            methods.append(ready(rows, estimator, baseline, duplicates, seed))
        except Unavailable as error:
            unavailable[estimator.name] = error.message
    return self_normalized(rows, methods, unavailable), unavailable


def run_pass(rows: Rows, methods: Sequence[Method], wanted: Wanted) -> list[tuple[MethodResult, WeightSums]]:
    """One pass over all rows: the result of every method, and the sums of its weights."""
    if not methods:
        return []
    latest = any(m.latest for m in methods)
    found = rows.fold(partial(sum_terms, methods=tuple(methods), wanted=wanted), "all rows", latest)
    return [(result_of(m, sums, wanted), sums.weights) for m, sums in zip(methods, found.each, strict=True)]


def ready(rows: Rows, estimator: Estimator, baseline: Any, duplicates: str | None, seed: int) -> Method:
    """A method before any pass; raises `Unavailable` where it cannot be used."""
    if estimator.rule == "steps":
        raise Unavailable(f"{estimator.name} is for episodes", hint="use podium.episodes.")
    if estimator.uses_propensity and rows.log.knows == "none":
        raise no_propensities(estimator)
    latest = (duplicates or estimator.duplicates) == "latest"
    mean = rows.source.mean_reward(latest)
    spec = baseline if estimator.uses_baseline else mean if estimator.self_normalized else 0.0
    applied = apply_baseline(spec, rows, mean, seed)
    return prepared(rows, estimator, applied, latest, mean, spec)


def prepared(rows: Rows, estimator: Estimator, applied: Applied, latest: bool, mean: float, spec: Any) -> Method:
    """A method with its baseline, tried on the sample."""
    shared = applied.value if isinstance(applied, Number) else mean
    zero = np.zeros(len(rows.policies))
    largest = float(np.abs(rows.sample.rewards).max())
    method = Method(
        estimator, applied, latest, shared, moves_with_mean(estimator, spec), zero, zero, largest, len(rows)
    )
    part = Part(rows.numbers, rows.sample, rows.policies, latest_rows(rows.sample))
    fitted = applied.on(part)
    if estimator.rule == "none" and fitted.matrix is None:
        raise no_model(spec)
    if fitted.matrix is not None:
        refuse_partial(rows.policies, spec)
    terms = method.terms(part)
    gain = 1 - mean_weights(terms) if method.common_mean else np.ones(len(zero))
    return replace(method, gain=gain, size=term_sizes(terms))


def self_normalized(rows: Rows, methods: Sequence[Method], unavailable: dict[str, str]) -> list[Method]:
    """The methods, those that divide by the sums of their weights with these sums, by a pass of their own."""
    dividing = tuple(m for m in methods if m.estimator.self_normalized)
    if not dividing:
        return list(methods)
    sums = rows.fold(partial(sum_weights, methods=dividing, units=rows.groups), "sums of weights")
    found = {m.estimator.name: s for m, s in zip(dividing, sums.each, strict=True)}
    complete = []
    for m in methods:
        try:
            if m.estimator.self_normalized:
                ratio, effective = found[m.estimator.name].ratio(m.estimator, rows.policies.names)
                m = replace(m, ratio=ratio, effective=effective, gain=np.zeros(len(m.gain)))
            complete.append(m)
        except Unavailable as error:
            unavailable[m.estimator.name] = error.message
    return complete


def near_pairs(rows: Rows) -> tuple[tuple[int, int], ...]:
    """Pairs that the sample shows to be nearly equal, the nearest first where there are many."""
    logged = np.column_stack([p.logged for p in rows.policies])
    gram = logged.T @ logged
    own = np.diag(gram)[:, None] + np.diag(gram)[None, :]
    share = np.divide(own - 2 * gram, own, out=np.ones_like(own), where=own > 0)
    i, j = np.nonzero(np.triu(share < NEAR, 1))
    order = np.argsort(share[i, j], kind="stable")[:MOST_NEAR]
    return tuple(sorted((int(i[n]), int(j[n])) for n in order))


def result_of(method: Method, sums: TermSums, wanted: Wanted) -> MethodResult:
    """Values, paired differences and errors of one method."""
    k, n = len(sums.before), sums.moments.count
    shift = sums.shift / n
    mean = sums.moments.mean - shift
    scatter, near, own = sums.moments.scatter, sums.near.squares, sums.own.squares
    samples, pieces = n, sums.pieces
    if sums.groups is not None:
        present = sums.groups.sizes > 0
        held = GroupSums(sums.groups.sizes[present], sums.groups.sums[present])
        whole = held.scatter()
        samples = int(present.sum())
        scatter, near = whole[:k, :k], np.diag(whole)[k:-k]
        own = np.diag(whole)[-k:]
        pieces = GroupSums(held.sizes, held.sums[:, :k])
    gaps = mean[:, None] - mean[None, :]
    if scatter.ndim == 2:
        spread = np.diag(scatter)[:, None] + np.diag(scatter)[None, :] - 2 * scatter
        for column, (i, j) in enumerate(wanted.near if method.paired else ()):
            gap = float(sums.near.mean[column] - (shift[i] - shift[j]))
            gaps[i, j], gaps[j, i] = gap, -gap
            spread[i, j] = spread[j, i] = near[column]
    else:
        spread = np.full((k, k), np.nan)
    result = assemble(
        method.estimator,
        method.shared,
        mean,
        gaps,
        spread,
        rows=n,
        samples=samples,
        size=np.sqrt(mean**2 + sums.moments.squares / n),
        largest=method.largest,
        removed=shrunk_share(sums) if method.estimator.shrinks else None,
        effective=method.effective,
        level=None if method.ratio is None or not isinstance(method.baseline, Number) else method.ratio.level,
    )
    own_error = error_of(without_noise(np.sqrt(own), method.size * np.sqrt(n)), n, samples)
    return replace(result, pieces=pieces, own_error=own_error)


def shrunk_share(sums: TermSums) -> Floats:
    """(K,) the share of each policy's weight that shrinking took away."""
    lost = sums.before - sums.weights.total
    return np.divide(lost, sums.before, out=np.zeros(len(lost)), where=sums.before > 0)
