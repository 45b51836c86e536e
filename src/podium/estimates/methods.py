"""Methods on the rows of a log, wherever they lie: prepared once, then applied to its parts.

A small log is its own sample and its only part. Of a larger one, what a method must know beforehand (a learned
baseline, which policies are nearly equal) comes from the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError, Unavailable
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.estimates.applied import AppliedBaseline, apply_baseline
from podium.estimates.bootstrap import bucketed, row_pieces
from podium.estimates.estimators import Estimator
from podium.estimates.moments import GroupSums
from podium.estimates.options import Options
from podium.estimates.results import (
    FEW,
    MethodResult,
    TermSums,
    Wanted,
    error_of,
    near_pairs,
    resolve_near,
    term_sizes,
    term_unit,
    without_noise,
)
from podium.estimates.terms import (
    RowTerms,
    WeightSums,
    build_terms,
    given_ratios,
    mean_weights,
    moves_with_mean,
    no_model,
    no_propensities,
    refuse_partial,
    self_normalize,
    state_scales,
    step_terms,
)


@dataclass(frozen=True, eq=False)
class StateScales:
    """What averages within states first, then over states: (N,) arrays over all rows of a log in memory."""

    correction: Floats
    base: Floats
    states: Codes

    @classmethod
    def of(cls, part: Part, kept: Codes, estimator: Estimator) -> StateScales:
        log = part.log
        correction, base = np.zeros(len(log)), np.zeros(len(log))
        correction[kept], base[kept] = state_scales(log, kept, estimator)
        return cls(correction, base, log.state_codes)


@dataclass(frozen=True, eq=False)
class Method:
    """One method, with all that must be known of the whole log before its terms can be had on a part.

    Parameters
    ----------
    estimator, baseline : which method, and its baseline on any part
    latest : it keeps the latest row of each state and action; otherwise every row
    rows : of the log
    shared : what all policies share, kept out of the terms; None until it is known
    common_mean : that is the mean reward, which every row moves
    scales : for averages over states
    gain : (K,) how much a value moves with the mean reward, by the sample: 1 - mean(w)
    size : (K,) how large terms may be before anything cancels, by the sample
    largest : the largest absolute reward of the sample
    unit : the unit in which terms are summed
    weights, effective : the sums of the weights of methods that divide by them, and their effective rows (K,)
    level : (K,) the estimate of such a method, with every digit, where its baseline is the same for all policies
    choices : how many actions were eligible in a row, on average, where rows count by their own number; else 0
    paired : the covariance of all pairs is wanted, and the sums of the weights; else each policy's own spread alone
    """

    estimator: Estimator
    baseline: AppliedBaseline
    latest: bool
    rows: int
    shared: float | None = None
    common_mean: bool = False
    scales: StateScales | None = None
    gain: Floats | None = None
    size: Floats | None = None
    largest: float = 0.0
    unit: float = 1.0
    weights: WeightSums | None = None
    effective: Floats | None = None
    level: Floats | None = None
    choices: float = 0.0
    paired: bool = False

    def kept(self, part: Part) -> Codes:
        """The rows of a part that it keeps."""
        return np.flatnonzero(part.latest) if self.latest and part.latest is not None else np.arange(len(part.rows))

    def terms(self, part: Part) -> RowTerms:
        """Its terms on the rows of a part that it keeps."""
        kept = self.kept(part)
        groups = None if part.units is None else part.units[kept]
        if self.estimator.rule == "steps":
            return step_terms(part.log, part.policies, self.estimator, groups)
        scales: tuple[Floats | None, Floats | None] = (None, None)
        if self.scales is not None:
            where = part.rows[kept]
            scales = self.scales.correction[where], self.scales.base[where]
            groups = self.scales.states[where] if groups is None else groups
        if self.choices:  # of A_n actions, each was logged with probability 1 / A_n
            scales = part.log.choices[kept] / self.choices, None
        terms = build_terms(
            part.log, part.policies, self.estimator, kept, self.baseline.on(part, kept),
            shared=self.shared, scales=scales, groups=groups, common_mean=self.common_mean,
        )  # fmt: skip
        if self.weights is None:
            return terms
        ratio, effective = self.weights.ratio(self.estimator, part.policies.names)
        return replace(terms, ratio=ratio, effective=effective, total=self.weights.rows)


def sample_terms(method: Method, rows: Rows) -> RowTerms:
    """The terms of a method on the sample, each row beside all others of the sample."""
    terms = method.terms(rows.sample_part)
    return terms if method.weights is None else self_normalize(terms, rows.policies.names)


# --- preparing -------------------------------------------------------------------------------------------------------


def prepare(rows: Rows, estimator: Estimator, options: Options) -> Method:
    """A method before any pass; raises `Unavailable` where it cannot be used."""
    known = rows.log.knows != "none" or given_ratios(rows.policies, estimator) or estimator.rule == "steps"
    if estimator.uses_propensity and not known:
        raise no_propensities(estimator)
    baseline = options.baseline if estimator.uses_baseline else "mean" if estimator.self_normalized else 0.0
    latest = (options.duplicates or estimator.duplicates) == "latest"
    return with_baseline(rows, estimator, apply_baseline(baseline, rows, latest, options.seed), latest, options)


def with_baseline(
    rows: Rows, estimator: Estimator, baseline: AppliedBaseline, latest: bool, options: Options
) -> Method:
    """A method with its baseline, tried on the sample."""
    method = Method(
        estimator,
        baseline,
        latest,
        len(rows),
        common_mean=moves_with_mean(estimator, options.baseline),
        largest=float(np.abs(rows.sample.rewards).max()),
    )
    if estimator.rule == "steps":
        return method
    if options.normalize == "states" and rows.sample.eligible is not None and not rows.sample.eligible.all():
        raise PodiumError(
            'normalize="states" is for logs in which every action is possible in every row',
            hint="leave it out: without it rows count by the number of their eligible actions.",
        )
    if rows.sample.eligible is not None and estimator.is_score and not rows.policies.proxies:
        method = replace(method, choices=rows.log.mean_choices)
    if options.normalize == "states":
        method = replace(method, scales=StateScales.of(rows.all_at_once, method.kept(rows.all_at_once), estimator))
    fitted = baseline.on(rows.sample_part, method.kept(rows.sample_part)[:1])
    if estimator.rule == "none" and fitted.matrix is None and fitted.averages is None:
        raise no_model(options.baseline)
    if fitted.matrix is not None:
        refuse_partial(rows.policies, options.baseline)
    return method


def prepare_all(rows: Rows, estimators: Iterable[Estimator], options: Options) -> tuple[list[Method], dict[str, str]]:
    """Every method that can be used, and the reason for each that cannot."""
    methods: list[Method] = []
    unavailable: dict[str, str] = {}
    for estimator in estimators:
        try:
            methods.append(prepare(rows, estimator, options))
        except Unavailable as error:
            unavailable[estimator.name] = error.message
    return complete(rows, methods, unavailable), unavailable


def complete(rows: Rows, methods: Sequence[Method], unavailable: dict[str, str] | None = None) -> list[Method]:
    """The methods with all that the sample shows of them; those that divide by the sums of their weights with these,
    by a pass of their own. What cannot be used is noted as unavailable, or raised."""
    dividing = tuple(m for m in methods if m.estimator.self_normalized)
    sums: dict[str, WeightSums] = {}
    if dividing:
        plain = tuple(replace(m, shared=0.0) for m in dividing)  # a part may keep no row to take it from
        work = partial(sum_weights, methods=plain, groups=tuple(group_count(rows, m) for m in dividing))
        found = rows.fold(work, "sums of weights", any(m.latest for m in dividing))
        sums = {m.estimator.name: total for m, total in zip(dividing, found.each, strict=True)}
    ready = []
    for method in methods:
        try:
            method = replace(method, weights=sums.get(method.estimator.name))
            terms = method.terms(rows.sample_part)
        except Unavailable as error:
            if unavailable is None:
                raise
            unavailable[method.estimator.name] = error.message
            continue
        ready.append(
            replace(
                method,
                shared=terms.shared,
                gain=1 - mean_weights(terms) if terms.common_mean else np.ones(len(rows.policies)),
                size=term_sizes(terms),
                unit=term_unit(terms),
                effective=terms.effective,
                level=terms.ratio.level if terms.ratio is not None and terms.per_policy is None else None,
            )
        )
    return ready


# --- passes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Several:
    """The sums of several methods, in their order."""

    each: tuple[Any, ...]

    def __add__(self, other: Several) -> Several:
        if not self.each or not other.each:
            return self if self.each else other
        return Several(tuple(a + b for a, b in zip(self.each, other.each, strict=True)))


def group_count(rows: Rows, method: Method) -> int:
    """How many groups of rows that depend on each other there are: units, or states that are averaged; 0 for none."""
    return rows.groups or (0 if method.scales is None else int(method.scales.states.max()) + 1)


def sum_weights(parts: Iterable[Part], methods: Sequence[Method], groups: Sequence[int]) -> Several:
    total = Several(())
    for part in parts:
        each = zip(methods, groups, strict=True)
        total = total + Several(tuple(WeightSums.of(m.terms(part), many) for m, many in each))
    return total


def sum_terms(parts: Iterable[Part], methods: Sequence[Method], wanted: Sequence[Wanted]) -> Several:
    total = Several(())
    for part in parts:
        each = zip(methods, wanted, strict=True)
        total = total + Several(tuple(TermSums.of(m.terms(part), part, m.gain, w, m.unit) for m, w in each))
    return total


def run(rows: Rows, methods: Sequence[Method], *, pieces: bool = False, seed: int = 0) -> list[MethodResult]:
    """One pass over all rows: the result of every method; with `pieces`, sums over groups of rows for resampling."""
    if not methods:
        return []
    wanted = [
        Wanted(
            paired=m.paired,
            near=near_pairs(m.terms(rows.sample_part), rows.whole) if m.paired else (),
            pieces=row_pieces(rows, m.latest, seed) if pieces and m.paired else None,
            groups=group_count(rows, m),
        )
        for m in methods
    ]
    work = partial(sum_terms, methods=tuple(methods), wanted=tuple(wanted))
    found = rows.fold(work, "all rows", any(m.latest for m in methods))
    return [result_of(m, sums, w, seed) for m, sums, w in zip(methods, found.each, wanted, strict=True)]


def result_of(method: Method, sums: TermSums, wanted: Wanted, seed: int) -> MethodResult:
    """Values, paired differences and errors of one method, from sums in its unit."""
    unit = method.unit
    k, n = len(sums.shift), sums.moments.count
    shift = sums.shift / n
    mean = sums.moments.mean - shift
    scatter, near, own = sums.moments.scatter, sums.near.squares, sums.own.squares
    if not np.isfinite(scatter).all():
        raise PodiumError(
            f"{method.estimator.name}: rewards, baseline or weights are too large for floating point numbers",
            hint="give the rewards in a larger unit, and a baseline from their range.",
        )
    samples, pieces = n, sums.pieces
    if sums.groups is not None:
        held = sums.groups.present()
        samples, whole = len(held.sizes), held.scatter()
        scatter, near, own = whole[:k, :k], np.diag(whole)[k:-k], np.diag(whole)[-k:]
        pieces = None if pieces is None else bucketed(GroupSums(held.sizes, held.sums[:, :k]), seed)
    gaps, spread = mean[:, None] - mean[None, :], np.full((k, k), np.nan)
    if method.paired:
        spread = np.diag(scatter)[:, None] + np.diag(scatter)[None, :] - 2 * scatter
        turned = np.array([shift[i] - shift[j] for i, j in wanted.near])
        resolve_near(gaps, spread, wanted.near, sums.near.mean - turned, near)
    shared, size = method.shared or 0.0, np.sqrt(mean**2 + sums.moments.squares / n)
    values = shared + (unit * mean if method.level is None else method.level)
    if not method.common_mean:  # what all policies share is that of the sample so far
        values = values + unit * without_noise(sums.own.mean - sums.moments.mean, size)
    noise = (0.0 if method.size is None else method.size / unit) * np.sqrt(n)
    error = unit * error_of(without_noise(np.sqrt(own), noise), n, samples)
    removed = None
    if sums.before is not None and sums.weights is not None:
        lost = sums.before - sums.weights.total
        removed = np.divide(lost, sums.before, out=np.zeros(k), where=sums.before > 0)
    return MethodResult(
        estimator=method.estimator,
        values=without_noise(values, unit * size + abs(shared) if method.effective is None else method.largest),
        centred=unit * mean,
        scale=unit * float(size.max()),
        difference=unit * gaps,
        std_error=unit * error_of(np.sqrt(np.maximum(spread, 0.0)), n, samples),
        rows=n,
        samples=samples,
        value_error=error if method.effective is None else np.where(method.effective < FEW, np.nan, error),
        removed=removed,
        effective=method.effective,
        pieces=None if pieces is None else pieces.present().moved(-shift).times(unit),
        weights=sums.weights,
    )


def run_methods(
    rows: Rows, estimators: Iterable[Estimator], options: Options
) -> tuple[dict[str, MethodResult], dict[str, str]]:
    """Every method that can be used, on all rows, and the reason for each that cannot."""
    methods, unavailable = prepare_all(rows, estimators, options)
    results = run(rows, methods, seed=options.seed)
    return {m.estimator.name: result for m, result in zip(methods, results, strict=True)}, unavailable
