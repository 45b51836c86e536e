"""Parts of a log: some of its rows with every policy on them, as large as memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, factorize, mixed, plain
from podium.data.log import Log
from podium.policies import PolicySet

ROWS = 61_440  # rows that an engine delivers at once: half of what DuckDB writes and reads together
CELLS, LEAST = 1 << 22, 1 << 10  # probabilities (rows x actions x policies) that a part holds; its rows, at least
PIECE = 1 << 13  # rows that sums are made of at once: more would not fit into the processor's cache
UNITS = 4096  # units beyond that number are put into as many random groups


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a log, with every policy on them."""

    rows: Codes  # (n,) their numbers in the log, from 0
    log: Log
    policies: PolicySet
    latest: NDArray[np.bool_] | None = None  # (n,) no later row has the same state and action; None: not asked for
    units: Codes | None = None  # (n,) codes of units, or of random groups of them

    def take(self, rows: slice) -> Part:
        return Part(
            self.rows[rows],
            self.log.take(rows),
            PolicySet(tuple(p.take(rows) for p in self.policies)),
            None if self.latest is None else self.latest[rows],
            None if self.units is None else self.units[rows],
        )


def pieces(part: Part) -> Iterator[Part]:
    """A part in pieces that fit into the processor's cache."""
    for start in range(0, len(part.rows), PIECE):
        yield part.take(slice(start, start + PIECE))


def part_rows(actions: int, policies: int) -> int:
    """How many rows policies are asked for at once."""
    return min(ROWS, max(LEAST, CELLS // max(1, actions * policies)))


def one_thread() -> Any:
    """Linear algebra in one thread: sums must not depend on how many there are."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


def latest_rows(log: Log) -> NDArray[np.bool_]:
    latest = np.zeros(len(log), dtype=bool)
    latest[log.latest] = True
    return latest


def unit_codes(log: Log) -> tuple[Codes, int]:
    """Each row's unit, and how many there are; beyond 4,096 they are put into as many random groups."""
    codes, labels = factorize(np.asarray(log.units))
    if len(labels) <= UNITS:
        return codes, len(labels)
    return np.array([unit_group(plain(x)) for x in labels], dtype=np.int64)[codes], UNITS


def unit_group(unit: object) -> int:
    """A random group for a unit, by its name alone."""
    return int(mixed(np.array([crc32(str(unit).encode())], dtype=np.uint64), 0)[0] % np.uint64(UNITS))
