"""Deal the rows of a log into blocks that resemble each other, the same for every seed and order of the rows.

Rows are sorted by reward and dealt out in turn, so that every block has its share of rare rewards: of 40 clicks in
10,000 rows, each of 10 blocks gets 4. Among equal rewards a hash of state and action decides, so that rows of the same
state and action meet in a block as often as chance would have it. Rows of one unit stay together.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import GOLDEN, Codes, Floats, factorize, group_sums, scrambled
from podium.verdicts.evidence import Evidence

DIGITS = 9  # values that differ only beyond this many digits count as equal, so that rounding noise moves no row


def deal(e: Evidence, count: int, largest: int) -> list[Codes]:
    """The rows of each of at most `count` blocks, in ascending order.

    Rows of one unit go to one block; a unit of more than `largest` rows is first cut into equal pieces.
    """
    rank = np.empty(e.rows, dtype=np.int64)
    rank[sorted_rows(e)] = np.arange(e.rows)
    block = rank % count if e.units is None else deal_units(rank, e.units, count, largest)
    dealt = (np.flatnonzero(block == b) for b in range(count))
    return [rows for rows in dealt if len(rows)]


def sorted_rows(e: Evidence) -> Codes:
    """(N,) the rows by reward and then by hash; rows that tie are alike in every respect."""
    reward, cell = rounded(e.rewards), e.states * e.n_actions + e.actions
    keys: list[Floats | Codes] = [rounded(pi) for pi in e.policies[:, np.arange(e.rows), e.actions]]
    if e.propensities is not None:
        keys.append(rounded(e.propensities))
    if e.units is not None:
        keys.append(e.units)
    keys += [reward, cell]  # the last key sorts first
    order = np.lexsort(keys)
    turn = np.empty(e.rows, dtype=np.int64)  # 0, 1, ... among the rows of a state and action
    turn[order] = places(factorize(cell[order])[0])
    return np.lexsort((scramble(cell, turn), reward))


def rounded(values: Floats) -> Floats:
    """Values to `DIGITS` digits of their spread."""
    centred = values - values.min()
    digits: Floats = np.round(centred / (centred.max() or 1.0), DIGITS)
    return digits


def places(groups: Codes) -> Codes:
    """(N,) the place of each row within its group, groups being sorted.

    >>> places(np.array([0, 0, 0, 1, 2, 2]))
    array([0, 1, 2, 0, 0, 1])
    """
    sizes = np.bincount(groups)
    return np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def scramble(first: Codes, second: Codes) -> NDArray[np.uint64]:
    """(N,) a hash of pairs of whole numbers, the same on every machine."""
    return scrambled(first.astype(np.uint64) * np.uint64(GOLDEN) + second.astype(np.uint64))


def deal_units(rank: Codes, units: Codes, count: int, largest: int) -> Codes:
    """(N,) the block of each row: units in the order of their mean rank, each to the block with the fewest rows."""
    pieces = cut(rank, units, largest)
    groups = int(pieces.max()) + 1
    sizes = np.bincount(pieces, minlength=groups)
    order = np.argsort(group_sums(pieces, rank.astype(np.float64), groups) / sizes, kind="stable")
    filled = [(0, b) for b in range(count)]
    block = np.empty(groups, dtype=np.int64)
    for piece in order:
        rows, b = heapq.heappop(filled)
        block[piece] = b
        heapq.heappush(filled, (rows + int(sizes[piece]), b))
    return block[pieces]


def cut(rank: Codes, units: Codes, largest: int) -> Codes:
    """(N,) codes of units, those of more than `largest` rows cut into equal pieces, dealt by rank."""
    order = np.lexsort((rank, units))
    place = np.empty(len(units), dtype=np.int64)
    place[order] = places(units[order])
    parts = -(-np.bincount(units) // largest)
    first = np.cumsum(parts) - parts
    return factorize(first[units] + place % parts[units])[0]
