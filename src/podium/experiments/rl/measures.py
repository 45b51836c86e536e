"""What the tests of Example 3 say: scores with errors clustered by training, and how far apart the policies really are.

The 15 logs of one set of trained policies share the policies and their true order, so the standard error of an average
over 225 tests comes from the 15 averages by training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.experiments.rl.readings import Reading, right_pairs
from podium.experiments.runner import Arrays

CLEAR = 2.0  # standard errors between two true values from which on their order is called clear


@dataclass(frozen=True, eq=False)
class Scores:
    """The comparison scores of one environment under one reading; arrays over methods are (4,)."""

    tests: Floats  # (S, L, 4): training, log, method
    clear: Floats  # (4,) average over the pairs whose true order is clear

    @property
    def average(self) -> Floats:
        average: Floats = self.tests.mean(axis=(0, 1))
        return average

    @property
    def std(self) -> Floats:
        """Over all tests, divided by their number."""
        std: Floats = self.tests.std(axis=(0, 1))
        return std

    @property
    def average_error(self) -> Floats:
        """Standard error of the average, clustered by training."""
        means = self.tests.mean(axis=1)
        error: Floats = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        return error

    @property
    def std_error(self) -> Floats:
        """Standard error of the standard deviation, by leaving out one training after the other (the jackknife)."""
        trainings = len(self.tests)
        means, squares = self.tests.mean(axis=1), (self.tests**2).mean(axis=1)
        first, second = ((x.sum(axis=0) - x) / (trainings - 1) for x in (means, squares))
        without = np.sqrt(np.maximum(second - first**2, 0))  # (S, 4)
        error: Floats = np.sqrt((trainings - 1) * without.var(axis=0))
        return error


def measure(cells: Sequence[Arrays], reading: Reading) -> Scores:
    """The scores on every log of every training."""
    right = np.stack([right_pairs(cell, reading) for cell in cells])  # (S, L, 4, P)
    clear = ~np.stack([unclear_pairs(cell) for cell in cells])  # (S, P)
    counted = np.broadcast_to(clear[:, None, None, :], right.shape)
    share = np.where(counted, right, 0).sum(axis=(0, 1, 3)) / np.maximum(counted.sum(axis=(0, 1, 3)), 1)
    return Scores(right.mean(axis=3), share)


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values of one environment's policies: (S, K) each, from rollouts."""

    values: Floats
    errors: Floats
    lengths: Floats
    unclear: NDArray[np.bool_]  # (S, P) pairs whose true values differ by less than two standard errors
    twins: NDArray[np.bool_]  # (S, P) pairs that take the same action at nearly every logged state


def find_truth(cells: Sequence[Arrays]) -> Truth:
    return Truth(
        values=np.stack([cell["returns"].mean(axis=1) for cell in cells]),
        errors=np.stack([value_errors(cell) for cell in cells]),
        lengths=np.stack([cell["return_lengths"].mean(axis=1) for cell in cells]),
        unclear=np.stack([unclear_pairs(cell) for cell in cells]),
        twins=np.stack([twin_pairs(cell) for cell in cells]),
    )


def value_errors(cell: Arrays) -> Floats:
    """(K,) standard errors of the true values."""
    returns = cell["returns"]
    errors: Floats = returns.std(axis=1, ddof=1) / np.sqrt(returns.shape[1])
    return errors


def unclear_pairs(cell: Arrays) -> NDArray[np.bool_]:
    """(P,) pairs of policies whose true values differ by less than two standard errors of their difference."""
    values, errors = cell["returns"].mean(axis=1), value_errors(cell)
    return np.array(
        [
            abs(values[a] - values[b]) < CLEAR * np.hypot(errors[a], errors[b])
            for a, b in combinations(range(len(values)), 2)
        ]
    )


def twin_pairs(cell: Arrays) -> NDArray[np.bool_]:
    """(P,) pairs whose deterministic actions are within 1% of the action range at 99% of the logged states."""
    inside = np.arange(cell["actions"].shape[2]) < cell["lengths"][..., None]
    share = (cell["high"] - cell["low"]).astype(float)
    actions = [cell["at_logged"][:, :, j][inside] / share for j in range(cell["at_logged"].shape[2])]
    return np.array(
        [
            np.mean(np.abs(actions[a] - actions[b]).max(axis=1) < 0.01) > 0.99
            for a, b in combinations(range(len(actions)), 2)
        ]
    )
