"""The posterior of all policy values from one block of rows, given the variances of the prior.

With K the prior covariance of the rewards of the rows, c that of rewards and values, and u the features whose variances
d are integrated over a grid, everything is linear algebra on K^-1 y, K^-1 c and K^-1 u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.evidence import Evidence
from podium.verdicts.pairs import degrees_of_freedom, pair_power_sums, pair_variance
from podium.verdicts.prior import Kernels

GRID = 7  # points per integrated variance


@dataclass(frozen=True, eq=False)
class Solved:
    """The posterior of all policy values from one block of rows (rewards in units of their sd)."""

    means: Floats  # (G, K) per grid point
    covariances: Floats  # (G, K, K) per grid point
    weights: Floats  # (G,)
    sampling: Floats  # (K, K) covariance from the states being a sample
    sandwich: Floats  # (P,) variance per pair from leave-one-out residuals
    freedom: Floats  # (P,)
    prior: Floats  # (P,) prior variance per pair
    level: float  # mean value of a policy that all share
    aipw: tuple[Floats, Floats, Floats] | None  # difference, variance, freedom per pair
    influence: Floats  # (N, K) how much each value falls without a row


@dataclass(frozen=True, eq=False)
class System:
    """The linear system of one block: what multiplying by K^-1 makes of rewards, covariances and features."""

    inverse: Floats  # (N, N) K^-1, where its elements are needed
    inv_u: Floats  # (N, L) K^-1 u
    inv_c: Floats  # (N, K) K^-1 c
    inv_y: Floats  # (N,) K^-1 y
    u: Floats  # (N, L) features of the rows
    cross: Floats  # (N, K) c
    functional: Floats  # (K, L) mean of the features under each policy
    prior: Floats  # (K, K) prior covariance of the values, without features


@dataclass(frozen=True, eq=False)
class Integrated:
    """The posterior with the variances of the features integrated over a grid of G points."""

    means: Floats  # (G, K)
    covariances: Floats  # (G, K, K)
    weights: Floats  # (G,)
    spread: Floats  # (L, L) posterior covariance of the features' effects, on average
    beta: Floats  # (L,) their posterior mean, on average
    prior: Floats  # (K, K) prior covariance of the values, on average


def solve(kernels: Kernels, theta: dict[str, float], doubly_robust: bool) -> Solved:
    """The posterior of one block; with `doubly_robust`, also the differences that check it."""
    e, y = kernels.evidence, kernels.y
    pi = np.moveaxis(e.policies, 0, 2)  # (N, A, K)
    system = build_system(kernels, theta, pi)
    found = integrate_features(system, kernels)

    # Leave-one-out residuals and what each row contributes, at the mean over the grid.
    w = system.inv_c + system.inv_u @ found.spread @ (system.functional - system.cross.T @ system.inv_u).T
    alpha = system.inv_y - system.inv_u @ found.beta
    explained = np.einsum("nl,lm,nm->n", system.inv_u, found.spread, system.inv_u, optimize=True)
    residual = alpha / np.maximum(np.diag(system.inverse) - explained, 1e-12)
    contributions = w * residual[:, None]
    sandwich, freedom = clustered_squares(e, contributions)

    # The states are a sample: the per-row value sum_a pi r varies, by its posterior mean and by its cell part.
    scattered = np.zeros((e.n_states, e.n_actions, 1))
    np.add.at(scattered, (e.states, e.actions), alpha[:, None])
    surface = kernels.apply(theta, scattered)[e.states, :, 0] + np.tensordot(found.beta, kernels.features, axes=1)
    per_row = np.einsum("nak,na->nk", pi, surface, optimize=True)
    sampling = sampling_covariance(e, per_row)
    sampling = sampling + kernels.cell(theta) * np.einsum("nak,nal->kl", pi, pi, optimize=True) / e.rows**2
    shared = y - surface[np.arange(e.rows), e.actions] - theta["noise"] * alpha
    aipw = None
    if doubly_robust and e.behavior is not None:
        precision = system.inverse - system.inv_u @ found.spread @ system.inv_u.T
        aipw = gp_aipw(kernels, theta, precision, residual, surface, pi, sampling, np.maximum(e.behavior, 1e-12))
    return Solved(
        means=found.means,
        covariances=found.covariances,
        weights=found.weights,
        sampling=sampling,
        sandwich=sandwich,
        freedom=freedom,
        prior=pair_variance(found.prior, *e.pairs),
        level=float(shared.mean() + per_row.mean()),
        aipw=aipw,
        influence=contributions,
    )


def build_system(kernels: Kernels, theta: dict[str, float], pi: Floats) -> System:
    """Factor the covariance of the rows, and solve for all that is needed."""
    from scipy.linalg import cho_solve, cholesky, lapack

    e = kernels.evidence
    every = np.arange(e.rows)
    gram = 1e-6 * np.eye(e.rows)
    for name, part in kernels.rows(every):
        gram += theta[name] * part
    lower = cholesky(gram, lower=True, check_finite=False)
    inverse, _ = lapack.dpotri(lower, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    mean_policy = np.zeros((e.n_states, e.n_actions, e.n_policies))
    np.add.at(mean_policy, e.states, pi / e.rows)
    mean_policy -= mean_policy.mean(axis=2, keepdims=True)
    applied = kernels.apply(theta, mean_policy)
    functional = np.einsum("lna,nak->kl", kernels.features, pi, optimize=True) / e.rows
    u, cross = kernels.row_features(every), applied[e.states, e.actions]
    # Solving keeps more digits than multiplying by the inverse, which serves only where its elements are needed.
    inv_u, inv_c, inv_y = (cho_solve((lower, True), x, check_finite=False) for x in (u, cross, kernels.y))
    prior = np.einsum("sak,sal->kl", mean_policy, applied, optimize=True)
    return System(inverse, inv_u, inv_c, inv_y, u, cross, functional - functional.mean(axis=0), prior)


def integrate_features(s: System, kernels: Kernels) -> Integrated:
    """Integrate the variances of the policy and logger features over a grid."""
    from scipy.linalg import solve_triangular

    y, policies = kernels.y, kernels.n_policy_features
    g, h = s.u.T @ s.inv_u, s.u.T @ s.inv_y
    rest = s.functional - s.cross.T @ s.inv_u  # what the rows leave open of each feature's effect
    base_mean, base_cov = s.cross.T @ s.inv_y, s.prior - s.cross.T @ s.inv_c
    has_logger = s.u.shape[1] > policies
    steps = np.log(0.1) + np.linspace(-5, 5, GRID)
    means, covariances, log_weights, spreads, betas, priors = [], [], [], [], [], []
    for a, b in [(a, b) for a in steps for b in (steps if has_logger else [0.0])]:
        d = np.full(s.u.shape[1], np.exp(a))
        log_prior = half_cauchy(a)
        if has_logger:
            d[policies:] = np.exp(b)
            log_prior += half_cauchy(b)
        feature_prior = (s.functional * d) @ s.functional.T
        # Differences as large as the range of the rewards are implausible, so such variances are too.
        largest = float(pair_variance(feature_prior, *kernels.evidence.pairs).max())
        log_prior -= 0.5 * largest / (np.ptp(y) / 2) ** 2
        factor = np.linalg.cholesky(g + np.diag(1 / d))
        root = solve_triangular(factor, np.eye(len(d)), lower=True)
        spread = root.T @ root
        beta = spread @ h
        log_weights.append(0.5 * h @ beta - np.log(np.diag(factor)).sum() - 0.5 * np.log(d).sum() + log_prior)
        means.append(base_mean + rest @ beta)
        covariances.append(base_cov + rest @ spread @ rest.T)
        spreads.append(spread)
        betas.append(beta)
        priors.append(feature_prior + s.prior)
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    average = np.tensordot(weights, spreads, axes=1), weights @ np.array(betas), np.tensordot(weights, priors, axes=1)
    return Integrated(np.array(means), np.array(covariances), weights, *average)


def half_cauchy(log_variance: float) -> float:
    """Log density of log w^2, up to a constant, where w / sqrt(.1) is half-Cauchy."""
    w = np.exp(0.5 * log_variance) / np.sqrt(0.1)
    return float(np.log(w / (1 + w * w)))


def clustered_squares(e: Evidence, contributions: Floats) -> tuple[Floats, Floats]:
    """(P,) squared differences of what each unit (or state) contributes (N, K), summed, and degrees of freedom."""
    clusters = e.units if e.units is not None else e.states
    summed = np.zeros((int(clusters.max()) + 1, contributions.shape[1]))
    np.add.at(summed, clusters, contributions)
    second, fourth = pair_power_sums(summed, *e.pairs)
    return second, degrees_of_freedom(fourth, len(summed))


def sampling_covariance(e: Evidence, per_row: Floats) -> Floats:
    """(K, K) covariance of the mean of the rows' values, which vary as the states (or units) are a sample."""
    centred = per_row - per_row.mean(axis=0)
    if e.units is not None:
        by_unit = np.zeros((int(e.units.max()) + 1, e.n_policies))
        np.add.at(by_unit, e.units, centred)
        centred = by_unit
    covariance: Floats = centred.T @ centred / e.rows**2
    return covariance


def gp_aipw(
    kernels: Kernels,
    theta: dict[str, float],
    precision: Floats,
    residual: Floats,
    surface: Floats,
    pi: Floats,
    sampling: Floats,
    behavior: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Doubly robust differences with the leave-one-out posterior mean as the model.

    x_n = sum_a g f_-n(s_n, a) + g_n e_n / p_n, with f_-n = f - e_n [K^-1 k(., (s_n, a))]_n in closed form.
    """
    e = kernels.evidence
    n, k_policies = e.rows, e.n_policies
    i, j = e.pairs
    every = np.arange(n)
    centred = pi - pi.mean(axis=2, keepdims=True)
    s = e.states
    own = np.zeros((n, k_policies))
    weighted = [(precision * kernels.mixed_state(theta, name)[np.ix_(s, s)], action) for name, action in kernels.action]
    weighted.append((precision * (kernels.cell(theta) * (s[:, None] == s)), None))
    for matrix, action in weighted:
        # sum_m P[n, m] k_s(n, m) sum_a pi(a|n) k_a(a_m, a): first collect P k_s over the actions of the rows m.
        by_action = np.zeros((n, e.n_actions))
        for a in np.unique(e.actions):
            by_action[:, a] = matrix[:, e.actions == a].sum(axis=1)
        spread = by_action if action is None else by_action @ action
        own += np.einsum("na,nak->nk", spread, centred, optimize=True)
    modelled = np.einsum("nak,na->nk", centred, surface, optimize=True) - residual[:, None] * own
    x = modelled + centred[every, e.actions] * (residual / behavior[every, e.actions])[:, None]
    deviation = x - x.mean(axis=0)
    second, freedom = clustered_squares(e, deviation)
    h = np.einsum("nak,na,nal->kl", centred, 1 / behavior, centred, optimize=True) / n
    design = np.mean(residual**2) * pair_variance(h, i, j) / n + pair_variance(sampling, i, j)
    total = x.mean(axis=0)
    return total[i] - total[j], np.maximum(second / n**2, design), freedom
