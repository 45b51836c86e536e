"""Runs one cell of Example 1: all tests of one (alpha, m), from the cell's own seed or from the paper's generator."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.experiments.compiled import load_compiled
from podium.experiments.runner import Arrays, Cell
from podium.experiments.synthetic.details import state_details
from podium.experiments.synthetic.plan import REPLAY_SEED, load_bandit
from podium.worlds.bandits import Bandit

GENERATOR = "generator"


@cache
def load_kernel() -> ModuleType:
    """The compiled kernel, loaded where it is used."""
    package = "podium.experiments.synthetic"
    return load_compiled(f"{package}.kernel", "run_tests", f"{package}.cells:compile_kernel", "Example 1")


def compile_kernel() -> None:
    """Call every entry once with the types that Example 1 uses."""
    arguments = {"rewards": ("1.1", "1.2"), "alpha": 0.1, "m": 2, "tests": 1, "detail": False}
    seed = np.random.SeedSequence(0)
    run_cell(Cell("compile", 0, arguments), seed, None)
    replay_cell(Cell("compile", 0, arguments), seed, None)
    load_kernel().draw_test(key_of(seed), 0, np.empty((3, 100, 100)), np.empty((100, 2)))


class Grid:
    """Several bandits over one grid as the arrays that the kernel takes."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.bandits: list[Bandit] = [load_bandit(name) for name in names]
        self.rewards = np.stack([b.rewards for b in self.bandits])
        self.best = np.stack([b.best_actions for b in self.bandits])
        self.worst = np.stack([b.worst_actions for b in self.bandits])

    def room(self, tests: int, detail: bool) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Empty arrays for values (T, E, 10), right (T, E, 4) and detail (T, E, S or 0, 6)."""
        examples, states, _ = self.rewards.shape
        return (
            np.empty((tests, examples, 10)),
            np.empty((tests, examples, 4), np.int64),
            np.empty((tests, examples, states if detail else 0, 6)),
        )


def run_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """All tests of a cell, with random numbers of its own.

    Returns
    -------
    dict
        "values" (T, E, 10): V(pi), V(mu), then the estimates of pi and mu by LDE, DRE, IPS, DiM;
        "right" (T, E, 4): the number of states that each method compares correctly;
        for cells with detail also what `state_details` gives.
    """
    arguments = cell.arguments
    grid = Grid(arguments["rewards"])
    values, right, detail = grid.room(arguments["tests"], arguments["detail"])
    load_kernel().run_tests(
        key_of(seed), arguments["alpha"], arguments["m"], grid.rewards, grid.best, grid.worst, values, right, detail
    )
    return finish(arguments, grid, values, right, detail)


def replay_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """All tests of a cell from the paper's generator, which goes on where the cell before left it.

    The order within a test is: behaviour normals, m uniforms for each state, normals of pi, normals of mu.
    """
    arguments = cell.arguments
    grid, m = Grid(arguments["rewards"]), arguments["m"]
    values, right, detail = grid.room(arguments["tests"], arguments["detail"])
    run_given = load_kernel().run_given
    rng = np.random.RandomState(REPLAY_SEED)  # the paper's own generator
    if before is not None:
        set_generator(rng, before)
    shape = grid.rewards.shape[1:]
    for t in range(arguments["tests"]):
        logged = rng.standard_normal(shape)
        uniforms = rng.random_sample((shape[0], m))
        first, second = rng.standard_normal(shape), rng.standard_normal(shape)
        run_given(
            arguments["alpha"], logged, uniforms, first, second, grid.rewards, grid.best, grid.worst,
            values[t], right[t], detail[t],
        )  # fmt: skip
    return finish(arguments, grid, values, right, detail) | get_generator(rng)


def finish(arguments: Any, grid: Grid, values: Floats, right: NDArray[np.int64], detail: Floats) -> Arrays:
    """The results of a cell as they are saved."""
    arrays: Arrays = {"values": values, "right": right.astype(np.int16)}
    if arguments["detail"]:
        parts = [state_details(bandit, values[:, e], detail[:, e]) for e, bandit in enumerate(grid.bandits)]
        arrays |= {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    return arrays


def key_of(seed: np.random.SeedSequence) -> np.uint64:
    """The kernel's key: 64 bits of a cell's seed."""
    key: np.uint64 = seed.generate_state(1, np.uint64)[0]
    return key


def get_generator(rng: np.random.RandomState) -> Arrays:
    """The state of the paper's generator as arrays."""
    _, key, position, has_gauss, cached = rng.get_state(legacy=True)
    return {
        f"{GENERATOR}_key": np.asarray(key),
        f"{GENERATOR}_place": np.array([position, has_gauss]),
        f"{GENERATOR}_cached": np.array(cached),
    }


def set_generator(rng: np.random.RandomState, arrays: Arrays) -> None:
    """Put the paper's generator where a cell left it."""
    position, has_gauss = arrays[f"{GENERATOR}_place"].tolist()
    cached = float(arrays[f"{GENERATOR}_cached"])
    rng.set_state(("MT19937", arrays[f"{GENERATOR}_key"], position, has_gauss, cached))
