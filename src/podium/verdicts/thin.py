"""Logs too thin to claim anything of a pair: with a handful of clicks, or of people, chance alone decides."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.facts import Fact
from podium.verdicts.dealing import rounded

HANDFUL = 5  # units, or rare rewards, without which nothing is claimed
SPARSE = 0.2  # rewards other than the most common one are rare where fewer rows have them


def thin(rewards: Floats, logged: Floats, units: Codes | None, pairs: tuple[Codes, Codes], share: float) -> list[str]:
    """(P,) why the log is too thin to claim anything of a pair; "" where it is not.

    Parameters
    ----------
    logged : (K, N) the policies' probabilities of the logged actions
    share : rows of the log for each of these N
    """
    if units is not None and units.max() + 1 < HANDFUL:
        return [Fact("few units", units=int(units.max()) + 1, least=HANDFUL)] * len(pairs[0])
    rare = share * informative_rows(logged[:, rare_rewards(rewards)], pairs)
    return [Fact("few successes", rows=round(n), least=HANDFUL) if n < HANDFUL else "" for n in rare.tolist()]


def rare_rewards(rewards: Floats) -> Codes:
    """The rows with a rare reward: clicks, where most rows have none. Where no reward is rare, all rows."""
    _, codes, counts = np.unique(rounded(rewards), return_inverse=True, return_counts=True)
    rare = np.flatnonzero(codes != counts.argmax())
    return rare if len(rare) < SPARSE * len(rewards) else np.arange(len(rewards))


def informative_rows(logged: Floats, pairs: tuple[Codes, Codes]) -> Floats:
    """(P,) how many rows tell two policies apart: (sum |g|)^2 / sum g^2, g = pi_i - pi_j as logged.

    >>> informative_rows(np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.5]]), (np.array([0]), np.array([1]))).round(2).tolist()
    [1.8]
    """
    i, j = pairs
    total, square = np.empty(len(i)), np.empty(len(i))
    for k in np.unique(i):
        of_k = i == k
        g = logged[k] - logged[j[of_k]]
        total[of_k], square[of_k] = np.abs(g).sum(axis=1), (g * g).sum(axis=1)
    count: Floats = total**2 / np.maximum(square, 1e-300)
    return count
