"""Rows that were copied, as in an export that was written twice: they would count as independent."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, combine_codes, factorize
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
    states, action = log.state_codes, log.action_codes
    reward, rewards = factorize(log.rewards)
    rows = combine_codes([(states, log.n_states), (action, log.n_actions), (reward, len(rewards))])
    sharing = np.bincount(states)[states]
    repeated = sharing > 1
    same = repeated & (np.bincount(rows)[rows] == sharing)
    by_chance = agreement(action) * agreement(reward)
    if repeated.sum() < LEAST or same.sum() < COPIED * repeated.sum() or by_chance > CHANCE:
        return 0
    return int(same.sum()) - len(np.unique(rows[same]))


def agreement(codes: Codes) -> float:
    """The probability that two rows that are drawn at random have the same code."""
    return float(((np.bincount(codes) / len(codes)) ** 2).sum())
