"""Example 1's plan: four sweeps over the value difference alpha and the number m of logged actions per state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.data.errors import PodiumError
from podium.experiments.runner import Cell
from podium.worlds.bandits import REWARDS, Bandit, example

TESTS = 1000
QUICK_TESTS = 40
VERDICT_TESTS = 20
QUICK_VERDICT_TESTS = 1
REPLAY_SEED = 2021

PRINTED = ("1.1", "1.2")  # the reward functions that the paper has tables of
SWEEPS = ("alpha", "m", "grid", "histogram")

ALPHAS = np.linspace(0.01, 0.25, 49)
SIZES = np.unique(np.geomspace(1, 500, 65, dtype=int))
GRID_ALPHAS = np.linspace(0.01, 0.10, 10)
GRID_SIZES = np.arange(1, 11)
HISTOGRAM_ALPHAS = (0.05, 0.10, 0.15)
HISTOGRAM_SIZES = (1, 5, 31, 177, 1000)

# Where the library's own verdicts are asked: (sweep, alpha, m) of the paper's cells.
VERDICTS = (
    *(("alpha", alpha, 1) for alpha in (0.01, 0.05, 0.10, 0.15, 0.20, 0.25)),
    *(("grid", 0.05, m) for m in (1, 2, 4, 7, 10)),
    *(("grid", 0.10, m) for m in (1, 2, 4, 7, 10)),
)


def sweep_points(sweep: str) -> list[tuple[float, int]]:
    """(alpha, m) of a sweep's cells, in the order in which the paper's program went through them."""
    points: dict[str, list[tuple[Any, Any]]] = {
        "alpha": [(a, 1) for a in ALPHAS],
        "m": [(0.01, m) for m in SIZES],
        "grid": [(a, m) for m in GRID_SIZES for a in GRID_ALPHAS],
        "histogram": [(a, m) for a in HISTOGRAM_ALPHAS for m in HISTOGRAM_SIZES],
    }
    return [(float(a), int(m)) for a, m in points[sweep]]


@dataclass(frozen=True)
class Plan:
    """What is run: reward functions, tests per cell, and where the random numbers come from.

    Parameters
    ----------
    rewards : names in `podium.bandits.REWARDS`, or `package.module:function` of a function r(s, a)
    seed : of the cells; replay has the paper's own
    replay : draw the paper's own random numbers, one sweep after the other within itself
    tests : per cell
    verdict_tests : how many of them the library's own verdicts are asked about, in the cells of `VERDICTS`
    """

    rewards: tuple[str, ...] = PRINTED
    seed: int = 0
    replay: bool = False
    tests: int = TESTS
    verdict_tests: int = VERDICT_TESTS

    @property
    def verdicts(self) -> list[tuple[str, float, int]]:
        """The cells whose tests the library's own verdicts are asked about; a small version leaves out long logs."""
        return [cell for cell in VERDICTS if self.tests >= TESTS or cell[2] <= 4]

    @property
    def name(self) -> str:
        """A folder name that differs where the cells differ."""
        source = "replay" if self.replay else f"seed-{self.seed}"
        rewards = "" if self.rewards == PRINTED else "-" + "-".join(safe(r) for r in self.rewards)
        return f"{source}-tests-{self.tests}{rewards}"

    @cached_property
    def chains(self) -> list[list[Cell]]:
        """The paper's cells; replay goes through each sweep as a chain, otherwise every cell stands alone."""
        sweeps, place = [], 0
        for sweep in SWEEPS:
            cells = []
            for i, (alpha, m) in enumerate(sweep_points(sweep)):
                arguments = {
                    "alpha": alpha,
                    "m": m,
                    "tests": self.tests,
                    "rewards": self.rewards,
                    "detail": sweep == "histogram",
                }
                cells.append(Cell(f"{sweep}-{i:03d}", place, arguments))
                place += 1
            sweeps.append(cells)
        return sweeps if self.replay else [[cell] for cells in sweeps for cell in cells]

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """Sweep -> its cells."""
        flat = [cell for chain in self.chains for cell in chain]
        return {sweep: [c for c in flat if c.name.startswith(f"{sweep}-")] for sweep in SWEEPS}

    def find(self, sweep: str, alpha: float, m: int) -> int:
        """The position of a cell in its sweep."""
        points = sweep_points(sweep)
        return next(i for i, (a, n) in enumerate(points) if n == m and abs(a - alpha) < 1e-9)

    def bandits(self) -> list[Bandit]:
        return [load_bandit(name) for name in self.rewards]


def load_bandit(name: str) -> Bandit:
    """A bandit of the paper by name, or one whose reward function is `package.module:function`."""
    module, colon, function = name.partition(":")
    if not colon:
        return example(name)
    from podium.policies.specs import load_object

    reward = load_object(module, function, "reward function")
    if not callable(reward):
        raise PodiumError(f"{name} is not a function", hint="name a function r(s, a) of two arrays.")
    return Bandit.from_function(reward)


def safe(name: str) -> str:
    """A reward's name as part of a file name."""
    return name if name in REWARDS else "".join(c if c.isalnum() else "_" for c in name)
