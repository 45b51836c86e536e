"""Fixed preferences: each eligible action is chosen in proportion to its weight, whatever the state (Luce 1959).

    B(a|s_n) = w_a / sum of w_b over the eligible actions b of row n

The weights follow from how often actions are chosen, by the steps of Hunter (2004): each action's weight becomes its
total over the rows divided by the sum of 1 / (weight of the eligible actions) over the rows in which it is eligible.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats, first_rows
from podium.data.eligible import Mask, set_codes
from podium.data.log import Log
from podium.data.probabilities import AGREE

STEPS, CLOSE = 300, 1e-12


def fitted_weights(total: Floats, eligible: Mask) -> Floats:
    """(A,) weights under which each action's expected total is the given one (A,); they sum to 1."""
    sets = set_codes(eligible)
    times = np.bincount(sets)
    patterns = eligible[first_rows(sets, len(times))].astype(np.float64)
    reach = times @ patterns
    weights = np.divide(total, reach, out=np.zeros(len(reach)), where=reach > 0)
    weights = weights / weights.sum()
    for _ in range(STEPS):
        inverse = (times / np.maximum(patterns @ weights, 1e-300)) @ patterns
        moved = np.divide(total, inverse, out=np.zeros(len(reach)), where=inverse > 0)
        moved = moved / moved.sum()
        if float(np.abs(moved - weights).max()) <= CLOSE:
            break
        weights = moved
    return np.asarray(moved, dtype=np.float64)


def shares_over(weights: Floats, eligible: Mask) -> Floats:
    """(N, A) probabilities in proportion to the weights (A,) of the eligible actions."""
    among = np.where(eligible, weights, 0.0)
    total = among.sum(axis=1, keepdims=True)
    even = eligible / eligible.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(among, total, out=even, where=total > 0)
    return shares


def has_fixed_preferences(log: Log) -> bool:
    """Whether the behavior policy is known and does not look at the state, apart from which actions are eligible."""
    if log.behavior is None:
        return False
    if log.eligible is None:
        return bool((np.ptp(log.behavior, axis=0) <= AGREE).all())
    weights = fitted_weights(log.behavior.sum(axis=0), log.eligible)
    return bool((np.abs(shares_over(weights, log.eligible) - log.behavior) <= AGREE).all())
