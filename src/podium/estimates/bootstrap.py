"""Paired bootstrap of all pairs at once: rows (or units) are resampled, the same ones for every policy."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.estimates.moments import GroupSums, merge
from podium.estimates.terms import RowTerms

BUCKETS = 1024  # more pieces than that are first summed into random buckets of equal size
BATCH = 1 << 21
PAIRS = 256


def bootstrap_differences(terms: RowTerms, draws: int, level: float, seed: int) -> tuple[Floats, Floats]:
    """Percentile intervals (K, K) of every difference.

    Percentile intervals are too narrow below about 50 rows; they are offered because people ask for them.
    """
    return percentiles(piece_sums(terms, seed), draws, level, seed)


def percentiles(sums: GroupSums, draws: int, level: float, seed: int, poisson: bool = False) -> tuple[Floats, Floats]:
    """The same from sums over pieces: as many as there are drawn again, or each as often as a Poisson number says."""
    pieces, policies = sums.sums.shape
    rng = np.random.default_rng([seed, 1])
    resampled = np.empty((draws, policies))
    step = max(1, BATCH // pieces)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        if poisson:
            times = rng.poisson(1.0, size=(size, pieces)).astype(np.float64)
        else:
            picks = rng.integers(pieces, size=(size, pieces)) + np.arange(size)[:, None] * pieces
            times = np.bincount(picks.ravel(), minlength=size * pieces).reshape(size, pieces).astype(np.float64)
        resampled[start : start + size] = (times @ sums.sums) / (times @ sums.sizes)[:, None]
    i, j = np.triu_indices(policies, 1)
    low, high = np.zeros((policies, policies)), np.zeros((policies, policies))
    tails = [(1 - level) / 2, (1 + level) / 2]
    for start in range(0, len(i), PAIRS):
        a, b = i[start : start + PAIRS], j[start : start + PAIRS]
        low[a, b], high[a, b] = np.quantile(resampled[:, a] - resampled[:, b], tails, axis=0)
    low[j, i], high[j, i] = -high[i, j], -low[i, j]
    return low, high


def piece_sums(terms: RowTerms, seed: int) -> GroupSums:
    """Sums of the row terms over what is resampled: rows, units, or random buckets of them."""
    n = len(terms.rows)
    groups = np.arange(n) if terms.groups is None else terms.groups
    pieces = int(groups.max()) + 1
    if pieces > 2 * BUCKETS:
        bucket = np.random.default_rng([seed, 0]).permutation(pieces) % BUCKETS
        groups, pieces = bucket[groups], BUCKETS
    return merge(GroupSums.of(block, groups[part], pieces, terms.weight(part)) for part, block in terms.blocks())
