"""Pieces of work for the tests of the runner, in a module of their own so that other processes can import them."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from podium.experiments.runner import Arrays, Cell


def draw(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """Three numbers from the cell's own seed; slow where asked, failing where asked."""
    time.sleep(cell.arguments.get("seconds", 0.0))
    if cell.arguments.get("fails"):
        raise RuntimeError("this cell fails")
    return {"numbers": np.random.default_rng(seed).random(3)}


def where(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """The same numbers, and the process that drew them."""
    return {**draw(cell, seed, before), "process": np.array(os.getpid())}


def count_up(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """One more than the cell before."""
    return {"number": np.array(1 if before is None else int(before["number"]) + 1)}


def cells(count: int, **arguments: Any) -> list[list[Cell]]:
    return [[Cell(f"cell-{i}", i, arguments)] for i in range(count)]


if __name__ == "__main__":
    import sys
    from pathlib import Path

    from podium.command.signals import ending_cleanly
    from podium.experiments.runner import run_cells

    # The second half would take for ever, so that whoever interrupts is never too late.
    slow = [*cells(6, seconds=0.1), *cells(12, seconds=3600)[6:]]
    with ending_cleanly():
        run_cells(draw, slow, Path(sys.argv[1]), seed=5, workers=int(sys.argv[2]))
