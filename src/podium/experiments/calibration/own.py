"""The bench on a simulator of one's own: how often podium's claims are right on logs like those that a user has."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from podium.comparison.compare import compare
from podium.data.arguments import checked, text, whole
from podium.data.errors import PodiumError, shown, told_as
from podium.data.log import Log
from podium.data.progress import counted
from podium.experiments.calibration.trials import LEVEL, pool_of, said
from podium.outputs.display import Block, Shown, Table, share
from podium.verdicts.pairs import pair_indices

HINT = "return podium.calibration.own.Simulated(log, policies, values), as in docs/own-parts.md."


@dataclass(frozen=True, eq=False)
class Simulated:
    """One simulated log, policies in any form that `podium.compare` takes, and the true value of each."""

    log: Log
    policies: Mapping[str, Any]
    values: Mapping[str, float]


Draws: TypeAlias = Callable[[Generator, int], Simulated]
"""A simulator: a random generator and a number of rows -> a log with its truth."""


@dataclass(frozen=True)
class Cell:
    """What podium said of the pairs of all logs of one length."""

    rows: int
    logs: int
    pairs: int
    claims: int
    wrong: int  # claims whose opposite is true, or between policies of equal value
    covered: int  # intervals that hold the true difference
    intervals: int


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Shown):
    """Claims and intervals held against the truth, for each number of rows."""

    name: str
    cells: tuple[Cell, ...]
    level: float
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cells = [vars(cell).copy() for cell in self.cells]
        return {"name": self.name, "level": self.level, "seed": self.seed, "cells": cells}

    def blocks(self, width: int) -> list[Block]:
        rows = [
            [f"{c.rows:,}", f"{c.logs:,}", f"{c.pairs:,}", part(c.claims, c.pairs), f"{c.wrong:,}",
             part(c.wrong, c.claims), part(c.covered, c.intervals)]
            for c in self.cells
        ]  # fmt: skip
        columns = ["rows", "logs", "pairs", "decided", "wrong claims", "of claims", f"{self.level:.0%} cover"]
        note = "decided: pairs with a claim. cover: intervals that hold the true difference."
        return [Table(f"Calibration on {self.name}, seed {self.seed}", columns, rows, "r" * 7, [note])]


def part(some: int, of: int) -> str:
    return share(some / of) if of else "-"


@checked(name=text, logs=whole(1, 20), seed=whole(0, 2026), workers=whole(1, 1))
def measure(
    draw: Draws,
    *,
    name: str = "own simulator",
    rows: Sequence[int] = (50, 300),
    logs: int = 20,
    seed: int = 2026,
    workers: int = 1,
    **options: Any,
) -> Measured:
    """Simulate logs, compare the policies on each, and count right and wrong claims.

    Parameters
    ----------
    draw : a function of a random generator and a number of rows that returns `Simulated`
    name : of the simulator; seeds depend on it, as those of podium's own families do
    rows : lengths of the logs
    logs : per length
    seed : of all logs; the result does not depend on `workers`
    workers : processes; more than one need a function that stands in a module
    options : those of `podium.compare`
    """
    if not callable(draw):
        raise PodiumError(f"a simulator must be a function of (rng, rows); it is {shown(draw)}", hint=HINT)
    lengths = [whole(1, 50)("rows", n) for n in (rows if isinstance(rows, Sequence) else [rows])]
    tasks = [(draw, name, n, repetition, seed, options) for n in lengths for repetition in range(logs)]
    if workers == 1:
        found = list(counted(map(run_task, tasks), "calibration", len(tasks), "logs"))
    else:
        refuse_unsendable(draw)
        with pool_of(workers) as pool:
            found = list(counted(pool.map(run_task, tasks), "calibration", len(tasks), "logs"))
    cells = []
    for n, length in enumerate(lengths):
        sums = np.sum(found[n * logs : (n + 1) * logs], axis=0)
        cells.append(Cell(length, logs, *map(int, sums)))
    return Measured(name, tuple(cells), float(options.get("level", LEVEL)), seed, options)


def refuse_unsendable(draw: Draws) -> None:
    try:
        pickle.dumps(draw)
    except Exception as error:
        raise PodiumError(
            f"a simulator for several workers must stand in a module; it is {shown(draw)}",
            hint="define the function in a file and import it, or use workers=1.",
        ) from error


def run_task(task: tuple[Draws, str, int, int, int, Mapping[str, Any]]) -> tuple[int, ...]:
    """One log: pairs, claims, wrong claims, intervals that cover, intervals."""
    draw, name, rows, repetition, seed, options = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    with told_as(f"the simulator {name!r} failed", HINT):
        made = draw(rng, rows)
    check_simulated(name, made)
    result = compare(made.log, dict(made.policies), **{"level": LEVEL, **options})
    names = list(made.policies)
    _, claims, low, high = said(result, names)
    values = np.array([float(made.values[policy]) for policy in names])
    i, j = pair_indices(len(names))
    truth = values[i] - values[j]
    truth = np.where(np.abs(truth) < 1e-9 * max(1.0, float(np.abs(values).max())), 0.0, truth)
    better = -truth if options.get("lower_is_better") else truth
    known = np.isfinite(low)
    covered = known & (low <= truth) & (truth <= high)
    wrong = (claims != 0) & (claims * better <= 0)
    return len(i), int((claims != 0).sum()), int(wrong.sum()), int(covered.sum()), int(known.sum())


def check_simulated(name: str, made: Any) -> None:
    """Raise unless a simulator returned a log and the true value of every policy."""
    if not isinstance(made, Simulated) or not isinstance(made.log, Log):
        raise PodiumError(f"the simulator {name!r} must return a log with its truth; it returned {shown(made)}", HINT)
    if not isinstance(made.policies, Mapping) or len(made.policies) < 2:
        raise PodiumError(f"the simulator {name!r} must return at least two policies, by name", hint=HINT)
    for policy in made.policies:
        value = made.values.get(policy) if isinstance(made.values, Mapping) else None
        if not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise PodiumError(
                f"the simulator {name!r} must give the true value of policy {policy!r}; it is {shown(value)}", hint=HINT
            )
