"""Policies that choose numbers beyond what was logged, by the mean of their weights.

The mean of w_n = pi(a_n|s_n) / p_n is 1 but for chance where every action that a policy plays could have been logged. A
policy that always chooses a dose which nobody got has weights of 0: its value is a baseline's guess, with no error at
all. At the end of the range half of a kernel hangs over the edge, and the mean weight is a half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.data.columns import Floats
from podium.data.facts import Fact
from podium.policies import PolicySet
from podium.verdicts.pairs import pair_indices

SEEN = 0.75  # a mean weight below this, by more than chance, supports no claim
CHANCE = 4.0  # standard errors of the mean weight


def mean_weight_lacking(ratios: Floats | None) -> float | None:
    """The mean of a policy's weights if too much of it is missing; None where enough is there or weights are unknown.

    >>> mean_weight_lacking(np.zeros(100))
    0.0
    """
    if ratios is None or len(ratios) < 2:
        return None
    mean, error = float(ratios.mean()), float(ratios.std(ddof=1)) / np.sqrt(len(ratios))
    return mean if mean + CHANCE * error < SEEN else None


def silent_unless_seen(silent: Sequence[str], policies: PolicySet) -> tuple[str, ...]:
    """Why pairs are silent, including pairs with a policy that the log has not seen enough of."""
    means = [mean_weight_lacking(p.ratios) for p in policies]
    doubts = [
        "" if mean is None else Fact("unseen densities", policy=p.name, mean_weight=mean)
        for p, mean in zip(policies, means, strict=True)
    ]
    pairs = zip(*pair_indices(len(doubts)), strict=True)
    return tuple(reason or doubts[i] or doubts[j] for reason, (i, j) in zip(silent, pairs, strict=True))
