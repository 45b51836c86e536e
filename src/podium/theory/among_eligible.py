"""How far the actions of a log are from uniform among the eligible ones, overall and in each state.

A context is a state with a set of eligible actions. One that has A_c of them, and m_c distinct ones logged, has seen
each with the chance m_c / A_c under uniform sets. The counts of the actions over all contexts have the covariance

    V = sum_c m_c (A_c - m_c) / (A_c (A_c - 1)) (diag(E_c) - E_c E_c' / A_c),   E_c = 1 for eligible actions,

which makes D' V^+ D of their gaps D a chi-square; with every action eligible it is Cochran's Q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podium.data.columns import Codes, Floats, first_rows
from podium.data.log import Log

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Uniformity:
    """Distances from uniform choice among the eligible actions; see `podium.theory.AssumptionCheck`."""

    variance: float
    tv: float
    expected_tv: float
    p_value: float
    state_tv: Floats
    state_expected_tv: Floats
    repeats: bool


def uniformity_among_eligible(
    log: Log, state_distinct: Codes, mean_deviation: Callable[[Floats, Codes], float]
) -> Uniformity:
    """The figures of a log; `mean_deviation` is E|X - E X| of a sum of binomials with these chances and counts."""
    from scipy.special import chdtrc

    codes, actions = log.context_codes, log.n_actions
    many = int(codes.max()) + 1
    eligible = log.eligible[first_rows(codes, many)]
    size = eligible.sum(axis=1).astype(np.float64)
    cells = np.unique(codes * np.int64(actions) + log.action_codes)
    distinct = np.bincount(cells // actions, minlength=many)
    seen = np.bincount(cells % actions, minlength=actions)
    chance = distinct / size
    spread = chance * (1 - chance)  # of one eligible action in a context
    gap = seen - chance @ eligible
    shrink = np.divide(spread * size, size - 1, out=np.zeros(many), where=size > 1)
    variance = np.diag(shrink @ eligible) - (eligible * (shrink / size)[:, None]).T @ eligible
    scale, axes = np.linalg.eigh(variance)
    kept = scale > ROUNDING * max(float(scale.max()), 1e-300)
    square = float(((axes.T @ gap)[kept] ** 2 / scale[kept]).sum())
    free = float(spread.sum()) < 1e-12
    expected = sum(
        mean_deviation(*np.unique(chance[eligible[:, a]], return_counts=True))
        for a in range(actions)
        if spread @ eligible[:, a] > 1e-12
    )
    possible = np.zeros((log.n_states, actions), dtype=bool)
    np.logical_or.at(possible, log.state_codes, log.eligible)
    missed = np.zeros((log.n_states, actions))
    with np.errstate(divide="ignore"):
        np.add.at(missed, log.state_codes, np.log1p(-(log.eligible / log.choices[:, None])))
    missed = np.where(possible, np.exp(missed), 0.0)
    choices = possible.sum(axis=1)
    state_tv, state_expected = 1.0 - state_distinct / choices, missed.sum(axis=1) / choices
    limit = float(((missed * (1 - missed)).sum(axis=1) / choices**2).sum())
    return Uniformity(
        variance=0.0 if free else float(spread.sum()),
        tv=float(np.abs(gap).sum() / (2 * seen.sum())),
        expected_tv=0.0 if free else float(expected) / (2 * float(seen.sum())),
        p_value=1.0 if free else float(chdtrc(int(kept.sum()), square)),
        state_tv=state_tv,
        state_expected_tv=state_expected,
        repeats=float((state_tv - state_expected).sum()) > 3.0 * float(np.sqrt(limit)),
    )
