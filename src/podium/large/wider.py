"""The wider family on a log of more than 20,000 rows: row terms batch by batch, in one pass or two.

A self-normalised method first needs the sums of its weights; with them its row terms are as linear as all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from podium.columns import Floats
from podium.engines.batches import Batch, slices
from podium.engines.sums import BUCKETS, Sums, group_by, near_moments, row_buckets
from podium.errors import Unavailable
from podium.estimate import MethodResult, without_noise
from podium.estimators import Estimator
from podium.large import Large
from podium.large.findings import Pairwise
from podium.moments import GroupSums, Moments
from podium.terms import Ratio, no_model, no_propensities, refuse_weightless


@dataclass(frozen=True, eq=False)
class Recipe:
    """How the terms of one method are made of a batch.

    Parameters
    ----------
    constant : the number that it takes as its baseline, or None where batches bring rhat(s_n, a_n)
    mean : that number is the mean reward, which the rows move
    ratio, effective, rows : what a self-normalised method divides by, the effective rows of every policy, and all rows
    """

    estimator: Estimator
    constant: float | None
    mean: bool
    ratio: Ratio | None = None
    effective: Floats | None = None
    rows: int = 0

    def weights(self, batch: Batch) -> Floats:
        """(n, K) g(w)."""
        if batch.propensity is None:
            return np.zeros_like(batch.policy)  # the direct model alone does without
        return self.estimator.reweight(batch.policy / batch.propensity[:, None])

    def residual(self, batch: Batch) -> Floats:
        base = batch.baseline if self.constant is None else self.constant
        assert base is not None
        residual: Floats = batch.reward - base
        return residual

    def terms(self, batch: Batch, centre: float) -> Floats:
        """(n, K) row terms, less `centre`, a number that all policies share."""
        weight, residual = self.weights(batch), self.residual(batch)
        if self.ratio is None:
            terms = residual[:, None] * weight
        else:
            terms = self.ratio.level + self.deviation(batch, residual, weight)
        if self.constant is not None:
            return terms + (self.constant - centre)
        base = batch.averages if batch.averages is not None else np.asarray(batch.baseline)[:, None]
        return terms + (base - centre)

    def deviation(self, batch: Batch, residual: Floats, weight: Floats) -> Floats:
        """(n, K) how far each row, or its unit, is from all others."""
        assert self.ratio is not None
        return self.ratio.deviation(slice(None), residual[:, None], weight, self.rows, batch.unit)


@dataclass(frozen=True, eq=False)
class Asked:
    """What a pass is asked: methods, near pairs, groups of rows."""

    recipes: tuple[Recipe, ...]
    near: tuple[tuple[int, int], ...]
    centre: float
    mean: float
    units: int = 0
    pieces: tuple[str, ...] = ()  # methods whose terms are also summed over random groups of rows
    seed: int = 0
    columns: int = field(default=1)


def run_wider(
    large: Large, estimators: Sequence[Estimator], *, duplicates: str | None = None, pieces: bool = False, seed: int = 0
) -> tuple[dict[str, MethodResult], dict[str, str]]:
    """Every one of these methods that can be used, and the reason for each that cannot."""
    recipes: list[Recipe] = []
    unavailable: dict[str, str] = {}
    for estimator in estimators:
        try:
            recipes.append(recipe(large, estimator, duplicates))
        except Unavailable as error:
            unavailable[estimator.name] = error.message
    if any(r.estimator.self_normalized for r in recipes):
        found = large.source.fold(
            False, partial(weight_sums, recipes=tuple(recipes), units=large.units), "sums of weights"
        )
        ready = []
        for r in recipes:
            try:
                ready.append(with_ratio(r, found, large))
            except Unavailable as error:
                unavailable[r.estimator.name] = error.message
        recipes = ready
    if not recipes:
        return {}, unavailable
    names = tuple(r.estimator.name for r in recipes)
    k = len(large.policies)
    asked = Asked(
        tuple(recipes), large.near, large.centre, large.mean, large.units, names if pieces or large.units else (), seed,
        k + len(large.near),
    )  # fmt: skip
    sums = large.source.fold(False, partial(term_sums, asked=asked), "all rows")
    results = {}
    for r in recipes:
        if r.estimator.rule == "none" and "averages" not in sums.add:
            unavailable[r.estimator.name] = no_model("v(s)").message
        else:
            results[r.estimator.name] = result_of(large, r, sums)
    return results, unavailable


def recipe(large: Large, estimator: Estimator, duplicates: str | None) -> Recipe:
    """The first half of it; raises `Unavailable` where the method cannot be used."""
    if estimator.rule == "steps":
        raise Unavailable(f"{estimator.name} is for episodes", hint="use podium.episodes.")
    if estimator.uses_propensity and large.knows == "none":
        raise no_propensities(estimator)
    if duplicates == "latest":
        raise Unavailable(
            f'{estimator.name} with duplicates="latest" is for logs of up to 20,000 rows', hint="leave duplicates out."
        )
    if estimator.rule == "none" and large.baseline != "model":
        raise no_model(large.baseline)
    if not estimator.uses_baseline:
        return Recipe(estimator, large.centre if estimator.self_normalized else 0.0, False)
    if large.baseline == "state":
        raise Unavailable(
            f'{estimator.name} with the baseline "state" is for logs of up to 20,000 rows',
            hint='use baseline="mean", or a function v(states).',
        )
    if large.baseline == "mean":
        return Recipe(estimator, large.centre, True)
    return Recipe(estimator, None if isinstance(large.baseline, str) else large.baseline, False)


def weight_sums(batches: Iterable[Batch], recipes: tuple[Recipe, ...], units: int = 0) -> Sums:
    """Sums of weights, and of weights times what the baseline leaves, for the methods that divide by them."""
    total = Sums()
    for batch in batches:
        for part in slices(batch, max(1, batch.policy.shape[1])):
            add: dict[str, Floats] = {}
            moments: dict[str, Moments | GroupSums] = {}
            for r in recipes:
                if r.estimator.self_normalized:
                    weight = r.weights(part)
                    square = np.einsum("nk,nk->k", weight, weight)
                    add[r.estimator.name] = np.stack([weight.sum(axis=0), r.residual(part) @ weight, square])
                    if part.unit is not None:
                        moments[r.estimator.name] = group_by(part.unit, weight, units)
            total = total + Sums(add, {}, moments)
    return total


def with_ratio(r: Recipe, sums: Sums, large: Large) -> Recipe:
    if not r.estimator.self_normalized:
        return r
    total, level, squares = sums.add[r.estimator.name]
    total = refuse_weightless(r.estimator, total, large.policies.names)
    held = sums.moments.get(r.estimator.name)
    shares = held.sums / total if isinstance(held, GroupSums) else None
    effective = total**2 / squares if shares is None else 1 / (shares**2).sum(axis=0)
    ratio = Ratio(level / total, total / large.rows, shares, np.zeros(len(total)))
    return replace(r, ratio=ratio, effective=effective, rows=large.rows)


def term_sums(batches: Iterable[Batch], asked: Asked) -> Sums:
    """Moments of the terms, of near pairs' differences, and of the values with what all policies share."""
    total = Sums()
    for batch in batches:
        for part in slices(batch, asked.columns):
            add: dict[str, Floats] = {}
            moments: dict[str, Moments | GroupSums] = {}
            if part.averages is not None:
                add["averages"] = np.array(1.0)
            for r in asked.recipes:
                name = r.estimator.name
                terms = r.terms(part, asked.centre)
                weight = r.weights(part)
                add[f"{name} weight"] = weight.sum(axis=0)
                if r.estimator.shrinks and part.propensity is not None:
                    add[f"{name} before"] = (part.policy / part.propensity[:, None]).sum(axis=0)
                near = [terms[:, i] - terms[:, j] for i, j in asked.near]
                if r.ratio is not None:
                    moved_by = r.deviation(part, r.residual(part), weight)
                    add[f"{name} shift"] = np.array(
                        [*moved_by.sum(axis=0), *((moved_by[:, i] - moved_by[:, j]).sum() for i, j in asked.near)]
                    )
                columns = np.column_stack([terms, *near]) if near else terms
                # The mean reward moves with the rows; its own column lets the values' errors say so.
                moved = part.reward - asked.mean
                moments[f"{name} own"] = Moments.of(np.column_stack([terms, moved]))
                if name in asked.pieces:
                    codes = part.unit if part.unit is not None else row_buckets(part.rows, asked.seed)
                    groups = asked.units if part.unit is not None else BUCKETS
                    moments[f"{name} pieces"] = group_by(codes, np.column_stack([columns, moved]), groups)
                moments[f"{name} terms"] = near_moments(columns.copy(), terms.shape[1])
            total = total + Sums(add, {}, moments)
    return total


def result_of(large: Large, r: Recipe, sums: Sums) -> MethodResult:
    """Values, paired differences and errors from the sums of a pass."""
    name, k, n = r.estimator.name, len(large.policies), large.rows
    pairs = Pairwise(k, large.near)
    terms, own, pieces = (sums.moments.get(f"{name} {what}") for what in ("terms", "own", "pieces"))
    assert isinstance(terms, Moments)
    assert isinstance(own, Moments)
    i, j = pairs.index
    shift = sums.add.get(f"{name} shift", np.zeros(len(terms.mean))) / n  # of terms whose mean is not the estimate
    gaps, spread = pairs.gaps(terms.mean - shift), pairs.squares(terms.scatter[:k, :k], np.diag(terms.scatter)[k:])
    gain = 1 - sums.add[f"{name} weight"] / n if r.mean and r.ratio is None else np.zeros(k)
    cross, square = own.scatter[:k, k], own.scatter[k, k]
    spread_own = np.diag(own.scatter)[:k] + 2 * gain * cross + gain**2 * square
    samples, resampled = n, None
    if isinstance(pieces, GroupSums):
        present = pieces.sizes > 0
        resampled = GroupSums(
            pieces.sizes[present], pieces.sums[present][:, :k] - np.outer(pieces.sizes[present], shift[:k])
        )
        if large.units:
            samples, whole = int(present.sum()), pieces.scatter()
            spread = pairs.squares(whole[:k, :k], np.diag(whole)[k:-1])
            spread_own = np.diag(whole)[:k] + 2 * gain * whole[:k, -1] + gain**2 * whole[-1, -1]
    factor = samples / ((samples - 1) * n**2) if samples > 1 else np.nan
    difference, error = np.zeros((k, k)), np.zeros((k, k))
    difference[i, j], difference[j, i] = gaps, -gaps
    error[i, j] = error[j, i] = np.sqrt(np.maximum(spread, 0.0) * factor)
    removed = None
    if f"{name} before" in sums.add:
        before = sums.add[f"{name} before"]
        removed = np.divide(before - sums.add[f"{name} weight"], before, out=np.zeros(k), where=before > 0)
    centred = (terms.mean - shift)[:k]
    if r.ratio is not None and r.constant is not None:
        centred = r.ratio.level + (r.constant - large.centre)
    values = large.centre + centred
    return MethodResult(
        estimator=r.estimator,
        values=without_noise(values, large.largest),
        centred=centred,
        scale=max(large.size, float(np.abs(centred).max())),
        difference=difference,
        std_error=error,
        rows=n,
        samples=samples,
        pieces=resampled,
        own_error=np.sqrt(np.maximum(spread_own, 0.0) * factor),
        removed=removed,
        effective=r.effective,
    )
