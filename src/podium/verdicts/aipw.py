"""A check of the posterior that a wrong model does not mislead: doubly robust differences (GP-AIPW)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.clusters import by_cluster
from podium.verdicts.pairs import degrees_of_freedom, pair_power_sums, pair_variance
from podium.verdicts.prior import Kernels


@dataclass(frozen=True, eq=False)
class System:
    """The factored covariance of the rows at one rho, and what solving with it gives."""

    rho: float
    lower: Floats  # (N, N)
    inv_u: Floats  # (N, L)
    inv_c: Floats  # (N, K)
    inv_y: Floats  # (N,)


def gp_aipw(
    kernels: Kernels,
    theta: dict[str, float],
    system: System,
    surface: Floats,
    pi: Floats,
    sampling: Floats,
    behavior: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Doubly robust differences with the leave-one-out posterior mean as the model.

    x_n = sum_a g f_-n(s_n, a) + g_n e_n / p_n, with f_-n = f - e_n [K^-1 k(., (s_n, a))]_n in closed form.
    """
    from scipy.linalg import lapack

    e = kernels.evidence
    n, k_policies = e.rows, e.n_policies
    i, j = e.pairs
    every = np.arange(n)
    precision, _ = lapack.dpotri(system.lower, lower=1)
    precision = np.tril(precision) + np.tril(precision, -1).T
    residual = system.inv_y / np.maximum(np.diag(precision), 1e-12)
    centred = pi - pi.mean(axis=2, keepdims=True)
    s = e.states
    own = np.zeros((n, k_policies))
    weighted = [(precision * kernels.mixed_state(theta, name)[np.ix_(s, s)], action) for name, action in kernels.action]
    weighted.append((precision * (kernels.cell(theta) * (s[:, None] == s)), None))
    for matrix, action in weighted:
        # sum_m P[n, m] k_s(n, m) sum_a pi(a|n) k_a(a_m, a): first collect P k_s over the actions of the rows m.
        by_action = np.zeros((n, e.n_actions))
        for a in np.unique(e.actions):
            by_action[:, a] = system.rho * matrix[:, e.actions == a].sum(axis=1)
        spread = by_action if action is None else by_action @ action
        own += np.einsum("na,nak->nk", spread, centred, optimize=True)
    modelled = np.einsum("nak,na->nk", centred, surface, optimize=True) - residual[:, None] * own
    x = modelled + centred[every, e.actions] * (residual / behavior[every, e.actions])[:, None]
    deviation = by_cluster(e, x - x.mean(axis=0), alone=False)
    second, fourth = pair_power_sums(deviation, i, j)
    h = np.einsum("nak,na,nal->kl", centred, 1 / behavior, centred, optimize=True) / n
    design = np.mean(residual**2) * pair_variance(h, i, j) / n + pair_variance(sampling, i, j)
    total = x.mean(axis=0)
    return total[i] - total[j], np.maximum(second / n**2, design), degrees_of_freedom(fourth, len(deviation))
