"""The posterior of every pair's difference from one block of rows, given the variances of the prior.

Each pair is judged alone: of the policies' features, its posterior knows only those of its own two policies. With K the
prior covariance of the rewards of the rows, c that of rewards and values, and u the features, everything is linear
algebra on K^-1 y, K^-1 c and K^-1 u; a pair adds its two or three features to it by Woodbury's formula.

How large the effects of actions are is not fitted but integrated: their variances are multiplied by rho (`RHOS`), and
those of the features run over a grid. The scale of the whole fit follows what the features of a pair explain: the
variances were fitted without them. Every point of this grid is one Gaussian; together they are a mixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.verdicts.aipw import System, gp_aipw
from podium.verdicts.clusters import column_sampling, column_squares, sampling_covariance
from podium.verdicts.pairs import pair_variance
from podium.verdicts.prior import Kernels

GRID = 7  # points per integrated variance of a feature
# By how much the fitted variances of the action parts are multiplied. In people's trials actions explain about 1% of
# the variance of the reward, in simulated worlds most of it; a few rows cannot tell. The mean of these log variances
# has a normal prior around log USUAL: what many rows have fitted to be small is not shrunk once more. Chosen on the
# families and trials that may be tuned on (see docs/everyday.md): a wider prior around a larger value is too sure with
# 20 to 50 rows of weak effects, one around a smaller value decides less and is no more often right.
RHOS = (1.0, 1 / 4, 1 / 16, 1 / 64)
USUAL, SPREAD = 0.03, 2.0
FEATURE = 0.1  # the squared scale of the features' half-Cauchy prior, times the root of rho
FIRM = 20.0  # rows that the scale of the whole fit is worth, where the features of a pair call for a smaller one
NEGLIGIBLE = 0.01  # a rho of less weight adds no residuals of its own to a pair
AT_ONCE = 128  # pairs


@dataclass(frozen=True, eq=False)
class Solved:
    """The posterior of P differences from one block of rows, at G points (rewards in units of their sd)."""

    likelihood: Floats  # (G, P) log marginal likelihood of the rows
    prior_weight: Floats  # (G, P) log prior of the point
    means: Floats  # (G, P)
    variances: Floats  # (G, P)
    priors: Floats  # (G, P) prior variance
    sampling: Floats  # (G, P) variance because the states are a sample
    sandwich: Floats  # (P,) variance from leave-one-out residuals
    freedom: Floats  # (P,) degrees of freedom of these
    level: float  # mean value of the policies, beyond the mean reward of what was logged
    aipw: tuple[Floats, Floats, Floats] | None  # difference, variance, freedom per pair
    influence: Floats  # (N, K) how much each value falls without a row
    rho_weights: Floats  # (R, P)

    @property
    def weights(self) -> Floats:
        return normalized(self.likelihood + self.prior_weight)

    def at(self, rhos: Sequence[float]) -> Solved:
        """The same at some of the rhos alone."""
        kept = np.repeat(np.isin(RHOS, rhos), len(self.means) // len(RHOS))
        names = ("likelihood", "prior_weight", "means", "variances", "priors", "sampling")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


@dataclass(frozen=True, eq=False)
class Fixed:
    """What does not depend on rho: the parts of the covariance, the values of the policies, the features."""

    rest: Floats  # (N, N) covariance of the rows without what rho multiplies
    acting: Floats  # (N, N) what rho multiplies
    cross: Floats  # (N, K) covariance of rows and values
    prior: Floats  # (K, K) prior covariance of the values
    u: Floats  # (N, L) features at the logged actions
    functional: Floats  # (K, L) mean of the features under each policy
    pi: Floats  # (N, A, K)
    coverage: float  # share of the population whose states the log has seen: 1 - (states seen once) / N (Good-Turing)
    index: Codes  # (P, l) the features that each pair knows: those of its policies, and of the logger
    i: Codes
    j: Codes


@dataclass(frozen=True, eq=False)
class Integrated:
    """The posterior at one rho, over the grid of the features' variances."""

    likelihood: Floats  # (g, P)
    prior_weight: Floats  # (g, P)
    means: Floats  # (g, P)
    variances: Floats  # (g, P)
    priors: Floats  # (g, P)
    rest: Floats  # (P, l) what the rows leave open of each feature's effect on the difference
    beta: Floats  # (P, l) posterior mean of the features' effects, on average
    spread: Floats  # (P, l, l) their covariance, on average


def solve(
    kernels: Kernels,
    theta: dict[str, float],
    doubly_robust: bool,
    rhos: Sequence[float] = RHOS,
    allowed: NDArray[np.bool_] | None = None,
) -> Solved:
    """The posterior of one block; with `doubly_robust`, also the differences that check it.

    Parameters
    ----------
    allowed : (R, P) the rhos that each pair's posterior is a mixture of; None for all
    """
    fixed = fix(kernels, theta)
    systems = [factor(kernels, fixed, rho) for rho in rhos]
    found = [integrate(kernels, fixed, s, p) for s, p in zip(systems, scale_prior(theta, rhos), strict=True)]
    likelihood, prior_weight, means, variances, priors = (
        np.concatenate([getattr(x, name) for x in found])
        for name in ("likelihood", "prior_weight", "means", "variances", "priors")
    )
    if allowed is not None:
        prior_weight = np.where(np.repeat(allowed, len(found[0].means), axis=0), prior_weight, -np.inf)
    weights = normalized(likelihood + prior_weight).reshape(len(rhos), -1, likelihood.shape[1])
    by_rho = weights.sum(axis=1)
    pairs, e = len(fixed.i), kernels.evidence
    sampling, sandwich, freedom, level = np.zeros((len(rhos), pairs)), *np.zeros((3, pairs))
    influence = np.zeros((e.rows, e.n_policies))
    taken = by_rho >= NEGLIGIBLE  # of each pair by itself, so that other pairs do not move it
    shares = np.where(taken, by_rho, 0.0) / np.where(taken, by_rho, 0.0).sum(axis=0)
    for r in np.flatnonzero(taken.any(axis=1)):
        rests = row_parts(kernels, theta, fixed, systems[r], found[r])
        sampling[r] = rests.sampling
        sandwich += shares[r] * rests.sandwich
        freedom += shares[r] * rests.freedom
        level += shares[r] * rests.level
        influence += spread_over_policies(rests.contributions * shares[r], fixed.i, fixed.j, e.n_policies)
    sampling = np.where(taken, sampling, (shares * sampling).sum(axis=0))
    aipw = None
    if doubly_robust and e.behavior is not None:
        fitted = systems[0] if rhos[0] == 1 else factor(kernels, fixed, 1.0)
        surface = base_surface(kernels, theta, fitted)
        per_row = np.einsum("nak,na->nk", fixed.pi, surface, optimize=True)
        covariance = sampling_covariance(e, per_row)
        aipw = gp_aipw(kernels, theta, fitted, surface, fixed.pi, covariance, np.maximum(e.behavior, 1e-12))
    return Solved(
        likelihood=likelihood,
        prior_weight=prior_weight,
        means=means,
        variances=variances,
        priors=priors,
        sampling=np.repeat(sampling, len(found[0].means), axis=0),
        sandwich=sandwich,
        freedom=freedom,
        level=float(level.mean()),
        aipw=aipw,
        influence=influence,
        rho_weights=by_rho,
    )


def scale_prior(theta: dict[str, float], rhos: Sequence[float]) -> Floats:
    """(R,) log prior of every rho, given the fitted variances of the action parts."""
    fitted = np.mean([np.log(value) for name, value in theta.items() if name.startswith("action ")])
    weights = -0.5 * ((fitted + np.log(rhos) - np.log(USUAL)) / SPREAD) ** 2
    return np.asarray(weights - np.log(np.exp(weights - weights.max()).sum()) - weights.max())


def normalized(log_weights: Floats) -> Floats:
    """(G, P) weights that sum to 1 for every pair."""
    weights = np.exp(log_weights - log_weights.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def spread_over_policies(contributions: Floats, i: Codes, j: Codes, k: int) -> Floats:
    """(N, K) contributions to values that come nearest to those (N, P) to differences."""
    values = np.zeros((len(contributions), k))
    for pair, (a, b) in enumerate(zip(i, j, strict=True)):
        values[:, a] += contributions[:, pair] / k
        values[:, b] -= contributions[:, pair] / k
    return values


def fix(kernels: Kernels, theta: dict[str, float]) -> Fixed:
    """What all rhos share."""
    e = kernels.evidence
    every = np.arange(e.rows)
    rest, acting = kernels.sums(theta)
    pi = np.moveaxis(e.policies, 0, 2)
    mean_policy = np.zeros((e.n_states, e.n_actions, e.n_policies))
    np.add.at(mean_policy, e.states, pi / e.rows)
    mean_policy -= mean_policy.mean(axis=2, keepdims=True)
    coverage = 1 - float((np.bincount(e.states) == 1).sum()) / e.rows
    applied = kernels.apply(theta, mean_policy, coverage * kernels.cell(theta))
    functional = np.einsum("lna,nak->kl", kernels.features, pi, optimize=True) / e.rows
    i, j = e.pairs
    logger = np.full((len(i), len(kernels.features) - e.n_policies), e.n_policies)
    return Fixed(
        rest=rest,
        acting=acting,
        cross=applied[e.states, e.actions],
        prior=np.einsum("sak,sal->kl", mean_policy, applied, optimize=True),
        u=kernels.row_features(every),
        functional=functional - functional.mean(axis=0),
        pi=pi,
        coverage=coverage,
        index=np.column_stack([i, j, logger]),
        i=i,
        j=j,
    )


def factor(kernels: Kernels, fixed: Fixed, rho: float) -> System:
    """Factor the covariance of the rows at one rho. What leaves the action parts stays in the rewards as noise."""
    from scipy.linalg import cho_solve, cholesky

    gram = fixed.rest + rho * fixed.acting
    gram[np.diag_indices(len(gram))] += 1e-6 + (1 - rho) * np.diag(fixed.acting).mean()
    lower = cholesky(gram, lower=True, check_finite=False)
    solved = (cho_solve((lower, True), x, check_finite=False) for x in (fixed.u, rho * fixed.cross, kernels.y))
    return System(rho, lower, *solved)


def integrate(kernels: Kernels, fixed: Fixed, s: System, log_rho: float) -> Integrated:
    """The variances of the features of both policies, and of the logger, on a grid."""
    y, i, j, index = kernels.y, fixed.i, fixed.j, fixed.index
    pair = np.arange(len(i))[:, None]
    base, rows = -0.5 * y @ s.inv_y - np.log(np.diag(s.lower)).sum(), len(y) + FIRM
    unexplained = float(y @ s.inv_y) + FIRM
    cross = s.rho * fixed.cross
    g, h = fixed.u.T @ s.inv_u, fixed.u.T @ s.inv_y
    gram, pull = g[index[:, :, None], index[:, None, :]], h[index]
    functional = (fixed.functional[i] - fixed.functional[j])[pair, index]
    seen = cross.T @ s.inv_u
    rest = functional - (seen[i] - seen[j])[pair, index]
    known = cross.T @ s.inv_y
    base_mean = known[i] - known[j]
    base_variance = pair_variance(s.rho * fixed.prior - cross.T @ s.inv_c, i, j)
    base_prior = s.rho * pair_variance(fixed.prior, i, j)
    reach = max(float(np.ptp(y)) / 2, 1.0)  # the range of a log's rewards is at least two sd, that of a block may be 0
    steps = np.log(0.1) + np.linspace(-5, 5, GRID)
    points = [(a, b) for a in steps for b in (steps if index.shape[1] > 2 else [None])]
    usual = FEATURE * np.sqrt(s.rho)
    priors = np.array([half_cauchy(a, usual) + (0.0 if b is None else half_cauchy(b, usual)) for a, b in points])
    priors += log_rho - np.log(np.exp(priors - priors.max()).sum()) - priors.max()
    likelihood, prior_weight, means, variances, prior_variances, betas, spreads = ([] for _ in range(7))
    for (a, b), log_prior in zip(points, priors, strict=True):
        d = np.exp([a, a] if b is None else [a, a, b])
        of_features = (functional**2 * d).sum(axis=1)
        spread = np.linalg.inv(gram + np.diag(1 / d))
        beta = np.einsum("plm,pm->pl", spread, pull)
        size = np.linalg.slogdet(spread)[1] - np.log(d).sum()
        scale = 1 - (pull * beta).sum(axis=1) / unexplained  # of all variances, by what the features explain
        likelihood.append(base + 0.5 * size - 0.5 * rows * np.log(scale))
        # Differences as large as the range of the rewards are implausible, so such variances are too.
        prior_weight.append(log_prior - 0.5 * of_features / reach**2)
        means.append(base_mean + (rest * beta).sum(axis=1))
        variances.append(scale * (base_variance + np.einsum("pl,plm,pm->p", rest, spread, rest)))
        prior_variances.append(scale * (base_prior + of_features))
        betas.append(beta)
        spreads.append(spread)
    weights = normalized(np.array(likelihood) + np.array(prior_weight))
    return Integrated(
        likelihood=np.array(likelihood),
        prior_weight=np.array(prior_weight),
        means=np.array(means),
        variances=np.array(variances),
        priors=np.array(prior_variances),
        rest=rest,
        beta=np.einsum("gp,gpl->pl", weights, np.array(betas)),
        spread=np.einsum("gp,gplm->plm", weights, np.array(spreads)),
    )


def half_cauchy(log_variance: float, scale: float) -> float:
    """Log density of log w^2, up to a constant, where w / sqrt(scale) is half-Cauchy."""
    w = np.exp(0.5 * log_variance) / np.sqrt(scale)
    return float(np.log(w / (1 + w * w)))


@dataclass(frozen=True, eq=False)
class RowParts:
    """What the single rows say at one rho: variances that do not trust the model, and what each row contributes."""

    sandwich: Floats  # (P,)
    freedom: Floats  # (P,)
    sampling: Floats  # (P,)
    level: Floats  # (P,) mean value of the two policies, beyond the mean reward of what was logged
    contributions: Floats  # (N, P) how much each difference falls without a row


def row_parts(kernels: Kernels, theta: dict[str, float], fixed: Fixed, s: System, found: Integrated) -> RowParts:
    """Leave-one-out residuals, what each row contributes, how the states' values vary, at the mean over the grid."""
    e, cell = kernels.evidence, kernels.cell(theta)
    precision = inverse_diagonal(s.lower)
    scattered = np.zeros((e.n_states, e.n_actions, 1 + s.inv_u.shape[1]))
    np.add.at(scattered, (e.states, e.actions), np.column_stack([s.inv_y, s.inv_u]))
    surface = s.rho * kernels.apply(theta, scattered, cell)[e.states]  # (N, A, 1 + L)
    per_row = np.einsum("nak,nac->nkc", fixed.pi, surface, optimize=True)
    of_features = np.einsum("nak,lna->nkl", fixed.pi, kernels.features, optimize=True) - per_row[:, :, 1:]
    mean_value, mean_feature = per_row[:, :, 0].mean(axis=0), of_features.mean(axis=0)
    played = np.eye(e.n_actions)[e.actions] if e.behavior is None else e.behavior
    by_logger = np.einsum("na,nac->c", played, surface, optimize=True) / e.rows
    by_logger[1:] = np.einsum("na,lna->l", played, kernels.features, optimize=True) / e.rows - by_logger[1:]
    products = np.einsum("nak,nal->kl", fixed.pi, fixed.pi, optimize=True) / e.rows**2
    unseen = s.rho * cell * fixed.coverage * pair_variance(products, fixed.i, fixed.j)
    parts = []
    for some in chunks(len(fixed.i)):
        i, j, index, beta, spread = (
            fixed.i[some],
            fixed.j[some],
            fixed.index[some],
            found.beta[some],
            found.spread[some],
        )
        inv_u = s.inv_u[:, index]  # (N, p, l)
        alpha = s.inv_y[:, None] - np.einsum("npl,pl->np", inv_u, beta)
        turned = np.einsum("npl,plm->npm", inv_u, spread)
        explained = (turned * inv_u).sum(axis=2)
        residual = alpha / np.maximum(precision[:, None] - explained, 1e-12)
        weight = s.inv_c[:, i] - s.inv_c[:, j] + np.einsum("npm,pm->np", turned, found.rest[some])
        features = (of_features[:, i] - of_features[:, j])[:, np.arange(len(i))[:, None], index]
        values = per_row[:, i, 0] - per_row[:, j, 0] + np.einsum("npl,pl->np", features, beta)
        contributions = weight * residual
        squares, freedom = column_squares(e, contributions)
        own = 0.5 * (mean_feature[i] + mean_feature[j])[np.arange(len(i))[:, None], index] - by_logger[1 + index]
        level = 0.5 * (mean_value[i] + mean_value[j]) - by_logger[0] + (own * beta).sum(axis=1)
        parts.append((squares, freedom, column_sampling(e, values) + unseen[some], level, contributions))
    return RowParts(*(np.concatenate(x, axis=-1) for x in zip(*parts, strict=True)))


def chunks(pairs: int) -> Iterator[slice]:
    return (slice(k, k + AT_ONCE) for k in range(0, pairs, AT_ONCE))


def inverse_diagonal(lower: Floats) -> Floats:
    """(N,) the diagonal of (L L')^-1."""
    from scipy.linalg import lapack

    inverse, _ = lapack.dtrtri(lower, lower=1)
    diagonal: Floats = np.einsum("ij,ij->j", inverse, inverse)
    return diagonal


def base_surface(kernels: Kernels, theta: dict[str, float], s: System) -> Floats:
    """(N, A) the posterior mean of what actions add to a row's reward, without features."""
    e = kernels.evidence
    scattered = np.zeros((e.n_states, e.n_actions, 1))
    np.add.at(scattered, (e.states, e.actions), s.inv_y[:, None])
    surface: Floats = s.rho * kernels.apply(theta, scattered, kernels.cell(theta))[e.states, :, 0]
    return surface
