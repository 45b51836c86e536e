"""The posterior of every pair in every group, from the fit of the whole comparison: all rows at once, or in blocks.

No variance falls below a share of the sandwich variance of leave-one-out residuals, as for whole pairs; degrees of
freedom are at most those of the group's own rows, rare rewards and units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.scales import EPSILON
from podium.verdicts.block import GRID
from podium.verdicts.described import explained
from podium.verdicts.evidence import Evidence
from podium.verdicts.group_block import solve_groups
from podium.verdicts.mixture import Mixture
from podium.verdicts.posterior import (
    BLOCK_WIDENING,
    FREEDOM,
    SANDWICH,
    TIED_WIDENING,
    WHOLE_ROWS,
    Points,
    combined,
    fit_blocks,
    fit_whole,
    rhos_that_matter,
)
from podium.verdicts.prior import Kernels
from podium.verdicts.thin import informative_rows, rare_rewards

FEWEST = 5  # rows of a group that every block of a long log must have


@dataclass(frozen=True, eq=False)
class GroupPosterior:
    """What the log says of every pair in every group: (P * G,) arrays, pair by pair and within these by group."""

    difference: Floats
    variance: Floats
    mixture: Mixture
    learned: Floats
    lost: NDArray[np.bool_]  # (G,) groups that are lacking in some block of a long log


def posterior_by_group(evidence: Evidence, groupings: Sequence[tuple[Codes, int]]) -> list[GroupPosterior] | None:
    """The posterior by each of several groupings: (N,) the group of every row, and the number of groups.

    None where nothing can be said of the whole log either.
    """
    e, scale = evidence, float(evidence.rewards.std())
    if e.rows < 3 or scale <= 16 * EPSILON * float(np.abs(e.rewards).max()):
        return None
    e = explained(e, scale)
    found = whole(e, scale, groupings) if e.rows <= WHOLE_ROWS else in_blocks(e, scale, groupings)
    return None if found is None else [unscaled(one, scale) for one in found]


def whole(e: Evidence, scale: float, groupings: Sequence[tuple[Codes, int]]) -> list[GroupPosterior] | None:
    fitted = fit_whole(e, scale)
    if fitted is None:
        return None
    kernels, theta = fitted
    return [
        judged(Points.of(solve_groups(kernels, theta, codes, many)), e, kernels.logged, codes, many)
        for codes, many in groupings
    ]


def in_blocks(e: Evidence, scale: float, groupings: Sequence[tuple[Codes, int]]) -> list[GroupPosterior] | None:
    """Blocks combined as in the posterior of whole pairs, group by group."""
    fitted = fit_blocks(e, scale)
    if fitted is None:
        return None
    theta, both = fitted.theta, np.sort(np.concatenate(fitted.dealt[:2]))
    double = fitted.double(e)
    kernels: list[Kernels] = [fitted.kernels(e, b) for b in range(len(fitted.dealt))]
    logged = np.zeros((e.n_policies, e.rows))
    for rows, block in zip(fitted.dealt, kernels, strict=True):
        logged[:, rows] = block.logged
    found = []
    for codes, many in groupings:
        twice = solve_groups(double, theta, codes[both], many)
        rhos, allowed = rhos_that_matter(twice)
        each = [
            solve_groups(block, theta, codes[rows], many, rhos, allowed)
            for rows, block in zip(fitted.dealt, kernels, strict=True)
        ]
        together = judged(combined(each, twice.at(rhos)), e, logged, codes, many, BLOCK_WIDENING)
        fewest = np.min([np.bincount(codes[rows], minlength=many)[:many] for rows in fitted.dealt], axis=0)
        found.append(replace(together, lost=fewest < FEWEST))
    return found


def judged(
    points: Points, e: Evidence, logged: Floats, codes: Codes, groups: int, wider: float = 1.0
) -> GroupPosterior:
    """The mixture of all points, no narrower than the rows allow."""
    mean = points.average(points.means)
    modelled = points.average(points.variances + points.sampling + (points.means - mean) ** 2)
    floor = np.maximum(modelled, (SANDWICH if e.units is None else 1.0) * points.sandwich)
    wider = wider * TIED_WIDENING if e.action_kernels else wider
    scales = wider * np.sqrt(points.variances + points.sampling + (floor - modelled))
    ratio = floor / np.maximum(points.sandwich, 1e-9 * floor + 1e-300)
    freedom = np.minimum(np.clip(points.freedom * ratio, *FREEDOM), most_freedom(e, logged, codes, groups))
    mixture = Mixture(points.weights, points.means, scales, freedom)
    learned = np.clip(points.average(1 - points.variances / np.maximum(points.priors, 1e-300)), 0.2, 1.0)
    variance = points.average(scales**2 + (points.means - mean) ** 2)
    merged = mixture.merged(GRID) if with_logger(points) else mixture
    return GroupPosterior(mean, variance, merged, learned, np.zeros(groups, dtype=bool))


def with_logger(points: Points) -> bool:
    """Whether the innermost variance of the grid is that of the logger, over which parts may be merged."""
    return len(points.means) % GRID**2 == 0


def most_freedom(e: Evidence, logged: Floats, codes: Codes, groups: int) -> Floats:
    """(P * G,) degrees of freedom that the rows of a group allow: those that tell the policies apart, and its units."""
    rare = np.zeros(e.rows, dtype=bool)
    rare[rare_rewards(e.rewards)] = True
    found = np.empty((len(e.pairs[0]), groups))
    for g in range(groups):
        rows = codes == g
        found[:, g] = informative_rows(logged[:, rows & rare], e.pairs) - 1
        if e.units is not None:
            found[:, g] = np.minimum(found[:, g], len(np.unique(e.units[rows])) - 1)
    return np.maximum(found.ravel(), 1.0)


def unscaled(one: GroupPosterior, scale: float) -> GroupPosterior:
    """The same in units of the rewards."""
    mixture = one.mixture.scaled(scale)
    return replace(one, difference=scale * one.difference, variance=scale**2 * one.variance, mixture=mixture)
