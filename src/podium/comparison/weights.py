"""Whether the importance weights of a policy average 1: not if it saw these rows, or propensities are wrong."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats, factorize, group_sums
from podium.data.facts import Fact
from podium.data.log import Log
from podium.engines.rows import Rows
from podium.policies import PolicyRows

CHANCE = 4.0  # standard errors that chance explains
LEAST = 0.05  # a mean that near to 1 does no harm
FEW = 30  # rows or units below which the error of a mean is not known
MOST_CELLS = 50_000_000  # probabilities (rows x actions) that are looked at
TRAINED = "it was trained on rows of this log, or the propensities are wrong"
UNSEEN = "it plays actions that could not be logged, the propensities are wrong, or it was trained on rows of this log"


def weight_warnings(rows: Rows) -> list[Fact]:
    """A warning for every policy whose mean weight is further from 1 than chance explains."""
    log = rows.sample
    if log.knows not in ("full", "logged") or rows.contradiction:
        return []
    found = []
    for policy in rows.policies:
        if policy.proxy or policy.kind in ("learned", "logged") or not np.any(policy.logged > 0):
            continue
        mean, error = mean_weight(log, policy)
        if error > 0 and abs(mean - 1) > max(LEAST, CHANCE * error):
            causes = TRAINED if mean > 1 else UNSEEN
            away = abs(mean - 1) / error
            found.append(Fact("mean weight", policy=policy.name, mean=mean, errors=away, causes=causes))
    return found


def mean_weight(log: Log, policy: PolicyRows) -> tuple[float, float]:
    """The mean of pi(a_n|s_n) / p_n, and its standard error: the larger of what rows (or units) show and what the known
    policies imply; infinite where neither can be trusted."""
    assert log.propensities is not None
    weights = policy.logged / log.propensities
    mean = float(weights.mean())
    blocks, clusters = weights - mean, len(log)
    if log.units is not None:
        codes, names = factorize(log.units)
        clusters = len(names)
        blocks = group_sums(codes, blocks, clusters)
    if clusters < FEW:
        return mean, np.inf
    shown = float(np.sqrt(clusters / (clusters - 1) * (blocks @ blocks)) / len(log))
    if log.behavior is not None and policy.has_full and len(log) * log.n_actions <= MOST_CELLS:
        return mean, max(shown, float(np.sqrt(implied_variance(log.behavior, policy) / len(log))))
    return mean, shown if mean > 1 else np.inf  # large weights that no row shows make a mean small


def implied_variance(behavior: Floats, policy: PolicyRows) -> float:
    """The variance of one weight, mean_n sum_a pi^2 / B - 1, over the actions that can be logged."""
    full = policy.full(behavior.shape[1])
    ratios = np.divide(full**2, behavior, out=np.zeros_like(full), where=behavior > 0)
    return max(float(ratios.sum(axis=1).mean()) - 1, 0.0)
