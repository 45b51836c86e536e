"""The sample of a large log that certainty comes from: rows drawn by their numbers, or whole units by their names.

The draw depends on the number of rows and the seed alone (with units, on their names and the seed), so that every
engine takes the same rows.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, factorize, plain

SAMPLE_ROWS = 20_000  # rows up to which a log is its own sample
BINS = 1 << 16  # of unit hashes, of which the first ones are drawn


def draw_rows(rows: int, size: int, seed: int) -> Codes:
    """The numbers of `size` rows, each equally likely, in ascending order."""
    drawn = np.random.default_rng([seed, 5]).choice(rows, size=size, replace=False, shuffle=False)
    return np.sort(drawn).astype(np.int64)


def unit_bins(units: NDArray[Any], seed: int) -> Codes:
    """(n,) a random bin of each row's unit, by its name."""
    codes, labels = factorize(units)
    names = np.array([crc32(f"{seed} {plain(label)}".encode()) for label in labels], dtype=np.uint64)
    mixed = (names * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48)
    return mixed.astype(np.int64)[codes]


def bin_counts(bins: Codes) -> Codes:
    """(BINS,) rows in each bin."""
    return np.bincount(bins, minlength=BINS)


def bins_to_draw(counts: Codes, size: int) -> int:
    """How many of the first bins hold at most `size` rows together; at least as many as hold any."""
    return max(int(np.searchsorted(np.cumsum(counts), size, side="right")), int(np.flatnonzero(counts)[0]) + 1)
