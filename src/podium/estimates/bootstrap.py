"""Paired bootstrap of all pairs at once: rows (or units) are resampled, the same ones for every policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from podium.data.columns import Codes, Floats, mixed
from podium.engines.rows import Rows
from podium.estimates.moments import GroupSums

BUCKETS = 1024  # more pieces than that are first summed into random buckets of equal size
BATCH = 1 << 21
PAIRS = 256


def percentiles(sums: GroupSums, draws: int, level: float, seed: int) -> tuple[Floats, Floats]:
    """Percentile intervals (K, K) of every difference, from sums of the row terms over what is resampled.

    They are too narrow below about 50 rows, and offered because people ask for them.
    """
    pieces, policies = sums.sums.shape
    rng = np.random.default_rng([seed, 1])
    resampled = np.empty((draws, policies))
    step = max(1, BATCH // pieces)
    for start in range(0, draws, step):
        size = min(step, draws - start)
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


def row_pieces(rows: Rows, latest: bool, seed: int) -> tuple[Callable[[Codes], Codes], int]:
    """What turns row numbers into pieces, and how many there are: rows, or random buckets of them."""
    if not rows.whole:
        return partial(hashed, seed=seed), BUCKETS
    kept = rows.sample.latest if latest else np.arange(len(rows))
    piece = np.zeros(len(rows), dtype=np.int64)
    piece[kept], many = buckets(len(kept), seed)
    return piece.__getitem__, many


def hashed(numbers: Codes, seed: int) -> Codes:
    return (mixed(numbers.astype(np.uint64), seed) % np.uint64(BUCKETS)).astype(np.int64)


def buckets(pieces: int, seed: int) -> tuple[Codes, int]:
    """The bucket of each piece, and how many there are: the pieces themselves where they are few."""
    if pieces <= 2 * BUCKETS:
        return np.arange(pieces), pieces
    return np.random.default_rng([seed, 0]).permutation(pieces) % BUCKETS, BUCKETS


def bucketed(sums: GroupSums, seed: int) -> GroupSums:
    """Sums over units, or over random buckets of them."""
    bucket, many = buckets(len(sums.sizes), seed)
    return GroupSums.of(sums.sums, bucket, many, sums.sizes)
