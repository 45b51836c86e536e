"""Rows that were copied, as in an export that was written twice: they would count as independent."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Column, factorize
from podium.data.log import Log

LEAST = 10  # rows that share a state below which nothing is said of copies
COPIED, CHANCE = 0.9, 0.6  # share of them that agree from which they are copies; largest share that chance may explain


def copied_rows(log: Log) -> int:
    """How many rows repeat another one; 0 where units say which rows depend, or chance explains it.

    Rows that share a state may agree by chance. They are copies where nearly all of them agree in action and reward,
    and independent rows would not.
    """
    if log.units is not None:
        return 0
    action, reward = log.action_codes, factorize(log.rewards)[0]
    states = codes_of(*log.state_columns.values())
    rows = codes_of(states, action, reward)
    sharing = np.bincount(states)[states]
    repeated = sharing > 1
    same = repeated & (np.bincount(rows)[rows] == sharing)
    by_chance = agreement(action) * agreement(reward)
    if repeated.sum() < LEAST or same.sum() < COPIED * repeated.sum() or by_chance > CHANCE:
        return 0
    return int(same.sum()) - len(np.unique(rows[same]))


def codes_of(first: Column, *others: Column) -> Codes:
    """(N,) a whole number for each different row of some columns."""
    codes = factorize(first)[0]
    for column in others:
        more = factorize(column)[0]
        codes = factorize(codes * (int(more.max()) + 1) + more)[0]
    return codes


def agreement(codes: Codes) -> float:
    """The probability that two rows that are drawn at random have the same code."""
    return float(((np.bincount(codes) / len(codes)) ** 2).sum())
