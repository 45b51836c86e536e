"""The posterior of every pair's difference within groups of rows, from one block of rows.

The difference of two policies over the rows of a group is linear in the rewards, as that over all rows is: only the
average runs over other rows. So it has a posterior under the same prior, with the same fitted variances, and every row
of the log informs every group through the kernels of states and actions.

What these kernels do not know is the group itself, which need not be a state. For every pair the prior therefore has
three parts more, with g the group of a row and d = pi_i - pi_j over its rms:

    level    1[g = g']                     rewards differ between groups whatever the action
    own      1[g = g'] d(a|s) d(a'|s')     what the pair's difference is worth differs between groups
    action   1[g = g'] 1[a = a']           and so do the actions themselves (of 3 or more, not many)

The variance of the last two is integrated over a grid (`OWN`): near 0 all groups share one effect, and large values let
each group speak for itself. The rows decide between them, pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.verdicts.aipw import System
from podium.verdicts.block import (
    FEATURE,
    FIRM,
    GRID,
    NEGLIGIBLE,
    RHOS,
    Fixed,
    Solved,
    factor,
    fix,
    half_cauchy,
    inverse_diagonal,
    normalized,
    scale_prior,
)
from podium.verdicts.clusters import by_cluster, column_squares
from podium.verdicts.prior import NOISE, Kernels

LEVEL = 0.5  # prior variance of a group's mean reward, in units of the variance of the rewards
# Variances of the groups' own effects, in the same units, and the squared scale of their half-Cauchy prior (times the
# root of rho). Chosen on the families that docs/groups.md names for it.
OWN = (0.0002, 0.002, 0.015, 0.1)
USUAL_OWN = 0.005
MOST_CELLS = 80  # groups x actions up to which actions have effects of their own in every group


@dataclass(frozen=True, eq=False)
class GroupFixed:
    """What does not depend on rho, for G groups and P pairs."""

    members: NDArray[np.bool_]  # (G, N)
    sizes: Floats  # (G,) rows; at least 1
    cross: Floats  # (N, K, G) covariance of rows and the policies' values in each group
    prior: Floats  # (G, K, K) prior covariance of these values
    functional: Floats  # (G, K, L) mean of the features under each policy
    coverage: Floats  # (G,) share of the group's rows whose states the log has seen twice


def fix_groups(kernels: Kernels, theta: dict[str, float], fixed: Fixed, codes: Codes, groups: int) -> GroupFixed:
    """The values of the policies in every group, as functionals of the rewards."""
    e = kernels.evidence
    members = np.arange(groups)[:, None] == codes
    sizes = np.maximum(members.sum(axis=1), 1).astype(np.float64)
    repeated = (np.bincount(e.states) > 1)[e.states]
    coverage = (members & repeated).sum(axis=1) / sizes
    cross = np.empty((e.rows, e.n_policies, groups))
    prior = np.empty((groups, e.n_policies, e.n_policies))
    functional = np.empty((groups, e.n_policies, len(kernels.features)))
    for g, rows in enumerate(members):
        mean_policy = np.zeros((e.n_states, e.n_actions, e.n_policies))
        np.add.at(mean_policy, e.states[rows], fixed.pi[rows] / sizes[g])
        mean_policy -= mean_policy.mean(axis=2, keepdims=True)
        applied = kernels.apply(theta, mean_policy, coverage[g] * kernels.cell(theta))
        cross[:, :, g] = applied[e.states, e.actions]
        prior[g] = np.einsum("sak,sal->kl", mean_policy, applied, optimize=True)
        functional[g] = np.einsum("lna,nak->kl", kernels.features[:, rows], fixed.pi[rows], optimize=True) / sizes[g]
    return GroupFixed(members, sizes, cross, prior, functional, coverage)


@dataclass(frozen=True, eq=False)
class PairParts:
    """One pair: its features at the logged actions and on average, and how its two policies differ."""

    gap: Floats  # (N, A) pi_i - pi_j
    at_rows: Floats  # (N, m) the features at the logged actions: policies, logger, own effects, levels
    of_rows: Floats  # (N, m) the features under the first policy less under the second
    functional: Floats  # (G, m) their means over the rows of each group


def pair_parts(kernels: Kernels, fixed: Fixed, of_groups: GroupFixed, pair: int) -> PairParts:
    e = kernels.evidence
    i, j, index = fixed.i[pair], fixed.j[pair], fixed.index[pair]
    gap = e.policies[i] - e.policies[j]
    squares = (gap**2).sum(axis=1)
    cells = e.rows * e.n_actions if e.eligible is None else e.eligible.sum()
    size = np.sqrt(2 * squares.sum() / cells)
    own = np.zeros_like(gap) if size <= NOISE else gap / size
    inside = of_groups.members.T.astype(np.float64)
    at_rows = [fixed.u[:, index], inside * own[np.arange(e.rows), e.actions][:, None]]
    of_features = np.einsum("na,lna->nl", gap, kernels.features[index], optimize=True)
    of_rows = [of_features, inside * (gap * own).sum(axis=1)[:, None]]
    if 2 < e.n_actions <= MOST_CELLS / inside.shape[1]:
        played = np.eye(e.n_actions)[e.actions] - 1 / e.n_actions
        at_rows += [group[:, None] * played for group in inside.T]
        of_rows += [group[:, None] * gap for group in inside.T]
    under, logged = np.hstack([*of_rows, np.zeros_like(inside)]), np.hstack([*at_rows, inside])
    functional = inside.T @ under / of_groups.sizes[:, None]
    functional[:, : len(index)] = (of_groups.functional[:, i] - of_groups.functional[:, j])[:, index]
    return PairParts(gap, logged, under, functional)


def grid(features: int, owns: int, groups: int, rho: float) -> tuple[Floats, Floats]:
    """(g, m) variances of all features at every point, and (g,) the log prior of the points, whose sum is 1."""
    steps = np.log(0.1) + np.linspace(-5, 5, GRID)
    points = [(o, a, b) for o in np.log(OWN) for a in steps for b in (steps if features > 2 else [None])]
    usual = np.sqrt(rho)
    priors = np.array(
        [
            half_cauchy(o, USUAL_OWN * usual)
            + half_cauchy(a, FEATURE * usual)
            + (0.0 if b is None else half_cauchy(b, FEATURE * usual))
            for o, a, b in points
        ]
    )
    variances = [np.exp([a, a, *([] if b is None else [b]), *[o] * owns]) for o, a, b in points]
    levels = np.full((len(points), groups), LEVEL)
    return np.hstack([np.array(variances), levels]), priors - np.log(np.exp(priors - priors.max()).sum()) - priors.max()


@dataclass(frozen=True, eq=False)
class PairFound:
    """One pair at one rho: (g,) or (g, G) over the points of the grid, and (G,) what single rows say."""

    likelihood: Floats
    prior_weight: Floats
    means: Floats
    variances: Floats
    priors: Floats
    sampling: Floats
    sandwich: Floats
    freedom: Floats


def solve_groups(
    kernels: Kernels,
    theta: dict[str, float],
    codes: Codes,
    groups: int,
    rhos: Sequence[float] = RHOS,
    allowed: NDArray[np.bool_] | None = None,
) -> Solved:
    """The posterior of every pair in every group; columns are pairs, and within these groups.

    Parameters
    ----------
    codes : (N,) the group of each row
    allowed : (R, P * G) the rhos that each posterior is a mixture of; None for all
    """
    fixed = fix(kernels, theta)
    of_groups = fix_groups(kernels, theta, fixed, codes, groups)
    parts = [pair_parts(kernels, fixed, of_groups, pair) for pair in range(len(fixed.i))]
    each: list[list[PairFound]] = []
    for rho, log_rho in zip(rhos, scale_prior(theta, rhos), strict=True):
        system = factor(kernels, fixed, rho)
        solved = GroupSystem.of(system, of_groups)
        each.append([solved.integrate(kernels, theta, fixed, of_groups, p, x, log_rho) for p, x in enumerate(parts)])

    def over_points(name: str) -> Floats:
        """(R * g, P * G)."""
        return np.concatenate([np.hstack([spread_out(getattr(x, name), groups) for x in found]) for found in each])

    likelihood, prior_weight = over_points("likelihood"), over_points("prior_weight")
    points = len(likelihood) // len(rhos)
    if allowed is not None:
        prior_weight = np.where(np.repeat(allowed, points, axis=0), prior_weight, -np.inf)
    by_rho = normalized(likelihood + prior_weight).reshape(len(rhos), points, -1).sum(axis=1)
    taken = by_rho >= NEGLIGIBLE
    shares = np.where(taken, by_rho, 0.0) / np.where(taken, by_rho, 0.0).sum(axis=0)
    sampling, sandwich, freedom = (
        np.array([np.concatenate([getattr(x, name) for x in found]) for found in each])
        for name in ("sampling", "sandwich", "freedom")
    )
    sampling = np.where(taken, sampling, (shares * sampling).sum(axis=0))
    return Solved(
        likelihood=likelihood,
        prior_weight=prior_weight,
        means=over_points("means"),
        variances=over_points("variances"),
        priors=over_points("priors"),
        sampling=np.repeat(sampling, points, axis=0),
        sandwich=(shares * sandwich).sum(axis=0),
        freedom=(shares * freedom).sum(axis=0),
        level=0.0,
        aipw=None,
        influence=np.zeros((0, 0)),
        rho_weights=by_rho,
    )


def spread_out(values: Floats, groups: int) -> Floats:
    """(g, G) of a column (g,) that all groups share, or as it is."""
    return np.repeat(values[:, None], groups, axis=1) if values.ndim == 1 else values


@dataclass(frozen=True, eq=False)
class GroupSystem:
    """The factored covariance of the rows at one rho, and what solving with it gives for all groups."""

    system: System
    inv_c: Floats  # (N, K, G)
    precision: Floats  # (N,) the diagonal of the inverse

    @classmethod
    def of(cls, system: System, of_groups: GroupFixed) -> GroupSystem:
        from scipy.linalg import cho_solve

        rows = len(system.inv_y)
        cross = system.rho * of_groups.cross.reshape(rows, -1)
        inv_c = cho_solve((system.lower, True), cross, check_finite=False).reshape(of_groups.cross.shape)
        return cls(system, inv_c, inverse_diagonal(system.lower))

    def integrate(
        self,
        kernels: Kernels,
        theta: dict[str, float],
        fixed: Fixed,
        of_groups: GroupFixed,
        pair: int,
        parts: PairParts,
        log_rho: float,
    ) -> PairFound:
        """One pair: the variances of its features on a grid."""
        from scipy.linalg import cho_solve

        s, y, i, j = self.system, kernels.y, fixed.i[pair], fixed.j[pair]
        inv_f = cho_solve((s.lower, True), parts.at_rows, check_finite=False)
        gram, pull = parts.at_rows.T @ inv_f, parts.at_rows.T @ s.inv_y
        cross = s.rho * (of_groups.cross[:, i] - of_groups.cross[:, j])  # (N, G)
        inv_c = self.inv_c[:, i] - self.inv_c[:, j]
        rest = parts.functional - cross.T @ inv_f  # (G, m)
        at = of_groups.prior
        base_prior = s.rho * np.maximum(at[:, i, i] + at[:, j, j] - 2 * at[:, i, j], 0)
        base_variance = np.maximum(base_prior - (cross * inv_c).sum(axis=0), 0)
        groups, many = len(cross.T), len(fixed.index[pair])
        d, priors = grid(many, len(gram) - many - groups, groups, s.rho)
        spread = np.linalg.inv(gram + np.eye(len(gram)) / d[:, :, None])  # (g, m, m)
        beta = spread @ pull
        size = np.linalg.slogdet(spread)[1] - np.log(d).sum(axis=1)
        unexplained = float(y @ s.inv_y) + FIRM
        scale = 1 - beta @ pull / unexplained
        base = -0.5 * y @ s.inv_y - np.log(np.diag(s.lower)).sum()
        likelihood = base + 0.5 * size - 0.5 * (len(y) + FIRM) * np.log(scale)
        reach = max(float(np.ptp(y)) / 2, 1.0)
        of_features = d @ (parts.functional**2).T  # (g, G)
        overall = (fixed.functional[i] - fixed.functional[j])[fixed.index[pair]]
        own = (parts.functional[:, many:] ** 2).mean(axis=0)
        implausible = d[:, :many] @ overall**2 + d[:, many:] @ own
        prior_weight = priors + log_rho - 0.5 * implausible / reach**2
        weights = normalized((likelihood + prior_weight)[:, None])[:, 0]
        variances = base_variance + np.einsum("tm,gmk,tk->gt", rest, spread, rest, optimize=True)
        rows = self.row_parts(
            kernels, theta, of_groups, parts, inv_f, inv_c, rest,
            np.einsum("g,gm->m", weights, beta), np.einsum("g,gmk->mk", weights, spread),
        )  # fmt: skip
        return PairFound(
            likelihood=likelihood,
            prior_weight=prior_weight,
            means=cross.T @ s.inv_y + beta @ rest.T,
            variances=scale[:, None] * variances,
            priors=scale[:, None] * (base_prior + of_features),
            sampling=rows[0],
            sandwich=rows[1],
            freedom=rows[2],
        )

    def row_parts(
        self,
        kernels: Kernels,
        theta: dict[str, float],
        of_groups: GroupFixed,
        parts: PairParts,
        inv_f: Floats,
        inv_c: Floats,
        rest: Floats,
        beta: Floats,
        spread: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        """(G,) the variance because the rows of a group are a sample; that of leave-one-out residuals of all rows; its
        degrees of freedom. At the mean over the grid."""
        e, s, cell = kernels.evidence, self.system, kernels.cell(theta)
        turned = inv_f @ spread
        alpha = s.inv_y - inv_f @ beta
        residual = alpha / np.maximum(self.precision - (turned * inv_f).sum(axis=1), 1e-12)
        sandwich, freedom = column_squares(e, (inv_c + turned @ rest.T) * residual[:, None])
        scattered = np.zeros((e.n_states, e.n_actions, 1))
        np.add.at(scattered, (e.states, e.actions), alpha[:, None])
        surface = s.rho * kernels.apply(theta, scattered, cell)[e.states, :, 0]
        values = (parts.gap * surface).sum(axis=1) + parts.of_rows @ beta
        inside = of_groups.members.T / of_groups.sizes  # (N, G)
        centred = inside * (values[:, None] - values @ inside)
        sampling = (by_cluster(e, centred, alone=True) ** 2).sum(axis=0)
        unseen = s.rho * cell * of_groups.coverage * ((parts.gap**2).sum(axis=1) @ inside) / of_groups.sizes
        return sampling + unseen, sandwich, freedom
