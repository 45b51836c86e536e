"""What a cell keeps of its single states: histograms of per-state products, and Theorem 3 beside what happens."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.experiments.runner import Arrays
from podium.theory.bounds import reward_radius, reward_range_of
from podium.worlds.bandits import Bandit

BINS = 49
DELTAS = np.array([0.0, *np.geomspace(1e-6, 1e-1, 21)])  # in units of the squared span


def state_details(bandit: Bandit, values: Floats, detail: Floats) -> Arrays:
    """Summaries over tests and states of one reward function.

    Parameters
    ----------
    values : (T, 10) true values and estimates of pi and mu
    detail : (T, S, 6) estimated differences by LDE, DRE, IPS, DiM, the true one, and the distinct actions

    Returns
    -------
    dict
        "edge": the 90th percentile of |product|, pooled over methods;
        "histogram" (4, 49): products of estimated and true difference per bin over +-edge;
        "mispredicted" (4, D): share of (test, state) with a product <= -delta (negative for delta = 0);
        "bound" (D,): Theorem 3's bound for LDE, averaged over the same (test, state).
    """
    truth = detail[..., 4]
    products = np.moveaxis(detail[..., :4] * truth[..., None], -1, 0).reshape(4, -1)
    edge = np.percentile(np.abs(products), 90)
    bins = np.linspace(-edge, edge, BINS + 1)
    thresholds = DELTAS * bandit.span**2
    mispredicted = [[np.mean(p <= -d) if d > 0 else np.mean(p < 0) for d in thresholds] for p in products]
    return {
        "edge": np.array(edge),
        "histogram": np.array([np.histogram(p, bins)[0] for p in products]),
        "mispredicted": np.array(mispredicted),
        "bound": average_bound(bandit, values, detail, thresholds),
    }


def average_bound(bandit: Bandit, values: Floats, detail: Floats, thresholds: Floats) -> Floats:
    """(D,) Theorem 3's bound (see `podium.theory.state_bound`) averaged over tests and states.

    The baseline of a test is the mean observed reward; R changes little with it and is taken at the bandit's
    mean reward.
    """
    radius = reward_radius(reward_range_of(bandit.rewards), float(bandit.rewards.mean()))
    share = detail[..., 5] / len(bandit.actions)
    base = share * detail[..., 4] ** 2 / (2 * radius**2)
    return np.array([np.mean(1 / (1 + base + d / (2 * radius**2))) for d in thresholds])
