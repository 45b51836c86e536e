"""What drives a pair: the rows and states without which its difference would be smaller, gone, or turned round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats, descending, group_sums
from podium.data.log import Log
from podium.estimates.terms import RowTerms

TOP = 5
ROUNDING = 1e-9  # relative


@dataclass(frozen=True)
class Driver:
    """A row or a state: how much the difference falls without it, and whether its sign turns."""

    label: Any  # the row, counted from 1, or the state
    effect: float
    flips: bool


@dataclass(frozen=True)
class Drivers:
    """The rows and states that matter most to one pair."""

    rows: tuple[Driver, ...]
    states: tuple[Driver, ...]
    rows_to_flip: int | None  # the fewest rows whose removal turns the sign, to first order; None: not even all


def row_influence(terms: RowTerms, rows: int, units: float) -> Floats:
    """(N, K) how much the estimate of each policy falls when a row is left out, to first order in 1/n."""
    kept = terms.matrix()
    influence = np.zeros((rows, kept.shape[1]))
    influence[terms.rows] = units * (kept - kept.mean(axis=0)) / max(len(kept) - 1, 1)
    return influence


def drivers(log: Log, difference: float, effects: Floats, numbers: Codes | None = None) -> Drivers:
    """What drives a difference, given how much it falls without each row (N,); `numbers` names a sample's rows."""
    effects = beyond_rounding(effects)
    by_state = beyond_rounding(group_sums(log.state_codes, effects, log.n_states))
    labels = range(1, len(log) + 1) if numbers is None else numbers.tolist()
    return Drivers(
        rows=strongest(difference, effects, labels),
        states=strongest(difference, by_state, log.state_labels),
        rows_to_flip=rows_to_flip(difference, effects),
    )


def beyond_rounding(effects: Floats) -> Floats:
    """Effects, 0 where they are but rounding beside the largest: such rows do not count."""
    return np.where(np.abs(effects) > ROUNDING * np.abs(effects).max(initial=0.0), effects, 0.0)


def strongest(difference: float, effects: Floats, labels: Sequence[Any]) -> tuple[Driver, ...]:
    order = descending(np.abs(effects))[:TOP]
    return tuple(
        Driver(labels[n], float(effects[n]), bool(effects[n] * np.sign(difference) > abs(difference) * (1 + ROUNDING)))
        for n in order
        if effects[n]
    )


def rows_to_flip(difference: float, effects: Floats) -> int | None:
    """The fewest rows without which the difference turns round.

    Without m of n rows a mean falls by the sum of their effects times (n - 1) / (n - m): exact for a mean of terms.

    >>> rows_to_flip(1.0, np.array([0.75, 0.5, -0.25]))
    2
    """
    n = np.count_nonzero(effects)
    if difference == 0 or n < 2:
        return None
    carried = np.cumsum(np.sort(effects[effects != 0] * np.sign(difference))[::-1])[:-1]
    enough = np.flatnonzero(carried * (n - 1) > abs(difference) * (n - np.arange(1, n)) * (1 + ROUNDING))
    return int(enough[0]) + 1 if enough.size else None
