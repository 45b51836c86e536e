"""Example 3 of the paper, whole: policies trained in eight PyBullet environments, compared on five logged episodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from podium.data.errors import MissingExtra, PodiumError
from podium.experiments.printed import Reproduction
from podium.experiments.rl.plan import (
    DEFAULTS,
    ENVIRONMENTS,
    QUICK,
    QUICK_ENVIRONMENTS,
    QUICK_SEEDS,
    SEEDS,
    Plan,
    check_environments,
)
from podium.experiments.runner import cells_folder, check_start, end_workers, run_cells

__all__ = ["reproduce"]

PACKAGES = ("torch", "stable_baselines3", "gymnasium", "pybullet_envs_gymnasium")


def reproduce(
    out: str | Path,
    *,
    environments: Sequence[str] | None = None,
    seeds: int | None = None,
    sb3_defaults: str = "paper",
    constant: float = 0.0,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    overwrite: bool = False,
) -> Reproduction:
    """Run Example 3 and write its tables, figures, results.json and index.html into a folder.

    Called again after an interruption it goes on where it stopped; with more environments or seeds it trains only
    what is new. Tables come from cached episodes and take seconds.

    Parameters
    ----------
    out : the folder
    environments : names such as "Ant"; all eight by default
    seeds : sets of policies trained in each environment, 15 by default; at least 2, since standard errors
        come from their spread
    sb3_defaults : hyperparameters of Stable-Baselines3 as they were for the "paper", or its "current" ones
    constant : added to each propensity before IPS and DRE divide by it, in the tables ex3 and ex3_appendix
    quick : 200 steps of training, 4 logs, 20 rollouts; InvertedPendulum and Reacher, 2 seeds
    seed : of the random numbers
    workers : processes of one thread each; all cores by default
    scheduler : address of a Dask scheduler whose workers run the cells
    overwrite : also replace files in the folder that podium did not write
    """
    check_start(seed, workers, ("joblib", "matplotlib"), "Example 3")
    if sb3_defaults not in DEFAULTS:
        raise PodiumError(f"sb3_defaults must be 'paper' or 'current'; it is {sb3_defaults!r}", hint="use 'paper'.")
    seeds = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    if seeds < 2:
        raise PodiumError(f"seeds must be at least 2; it is {seeds}", hint="standard errors come from their spread.")
    if not 0 <= constant < 1:
        raise PodiumError(f"constant must lie in [0, 1); it is {constant}", hint="the authors' program adds 1e-6.")
    names = environments if environments is not None else QUICK_ENVIRONMENTS if quick else ENVIRONMENTS
    plan = Plan(check_environments(names), seeds, sb3_defaults, seed, **(QUICK if quick else {}))
    check_packages()
    return run_plan(plan, Path(out), constant, workers, scheduler, quick, overwrite)


def check_packages() -> None:
    """Say what is not installed before anything runs."""
    for package in PACKAGES:
        if find_spec(package) is None:
            if package == "pybullet_envs_gymnasium" and sys.version_info >= (3, 12):
                raise PodiumError(
                    f"{package} is not installed; Example 3 needs it, and PyBullet has no packages from Python 3.12 on",
                    hint="with Python 3.11 run: pip install 'podium[rl,experiments]'",
                )
            raise MissingExtra(package, "rl,experiments", "Example 3")


def run_plan(
    plan: Plan, out: Path, constant: float, workers: int | None, scheduler: str | None, quick: bool, overwrite: bool
) -> Reproduction:
    """Run what is not there yet, then measure and write everything."""
    from podium.experiments.rl.cells import run_cell
    from podium.experiments.rl.outputs import write_outputs
    from podium.experiments.rl.results import collect
    from podium.experiments.rl.verdicts import judge_cell, verdict_cells

    cells = cells_folder(out, plan.name, overwrite)
    run_cells(
        run_cell,
        plan.chains(cells.parent),
        cells,
        seed=plan.seed,
        workers=workers,
        scheduler=scheduler,
        label="policies and logs",
    )
    end_workers()
    run_cells(judge_cell, verdict_cells(plan, cells), cells, seed=plan.seed, workers=workers, label="verdicts")
    end_workers()
    results = collect(plan, cells, constant)
    return Reproduction(out, write_outputs(plan, results, out, command_of(plan, constant, quick)))


def command_of(plan: Plan, constant: float, quick: bool) -> str:
    """The command that gives the same files."""
    parts = ["podium reproduce rl"]
    if plan.environments != (QUICK_ENVIRONMENTS if quick else ENVIRONMENTS):
        parts.append("--environments " + " ".join(plan.environments))
    if plan.seeds != (QUICK_SEEDS if quick else SEEDS):
        parts.append(f"--seeds {plan.seeds}")
    if plan.defaults != "paper":
        parts.append(f"--sb3-defaults {plan.defaults}")
    if constant:
        parts.append(f"--constant {constant:g}")
    if plan.seed:
        parts.append(f"--seed {plan.seed}")
    if quick:
        parts.append("--quick")
    return " ".join(parts)
