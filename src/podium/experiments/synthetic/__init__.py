"""Example 1 of the paper, whole: comparison and evaluation on a synthetic bandit, every table and figure of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.data.errors import PodiumError
from podium.experiments.printed import Reproduction
from podium.experiments.runner import cells_folder, check_start, end_workers, run_cells
from podium.experiments.synthetic.plan import (
    PRINTED,
    QUICK_TESTS,
    QUICK_VERDICT_TESTS,
    TESTS,
    VERDICT_TESTS,
    Plan,
    load_bandit,
)

__all__ = ["reproduce"]


def reproduce(
    out: str | Path,
    *,
    replay: bool = False,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    rewards: Sequence[str] = PRINTED,
    verdict_tests: int | None = None,
    overwrite: bool = False,
) -> Reproduction:
    """Run Example 1 and write its tables, sweeps, figures, results.json and index.html into a folder.

    Called again after an interruption it goes on where it stopped; the files are the same then, and for any
    number of workers.

    Parameters
    ----------
    out : the folder
    replay : draw the paper's own random numbers, which gives the printed numbers themselves
    quick : 40 tests per cell instead of 1,000
    seed : of the random numbers, without replay
    workers : processes; all cores by default
    scheduler : address of a Dask scheduler whose workers run the cells
    rewards : "1.1", "1.2", "1.2-text", or `package.module:function`
    verdict_tests : tests per cell for podium's own verdicts, 20 by default (1 if quick), 0 for none
    overwrite : also replace files in the folder that podium did not write
    """
    if replay and quick:
        raise PodiumError(
            "replay and quick exclude each other", hint="the printed numbers come out of all 1,000 tests per cell."
        )
    if replay and scheduler:
        raise PodiumError(
            "replay runs on this machine alone", hint="its cells follow each other; leave the scheduler out."
        )
    check_start(seed, workers, ("numba", "matplotlib"), "Example 1")
    plan = Plan(
        rewards=tuple(dict.fromkeys(rewards)),
        seed=seed,
        replay=replay,
        tests=QUICK_TESTS if quick else TESTS,
        verdict_tests=(QUICK_VERDICT_TESTS if quick else VERDICT_TESTS) if verdict_tests is None else verdict_tests,
    )
    for name in plan.rewards:
        load_bandit(name)  # a wrong name is refused before anything runs
    return run_plan(plan, Path(out), workers, scheduler, quick, overwrite)


def run_plan(
    plan: Plan, out: Path, workers: int | None, scheduler: str | None, quick: bool, overwrite: bool
) -> Reproduction:
    """Run what is not there yet, then measure and write everything."""
    from podium.experiments.synthetic.cells import replay_cell, run_cell
    from podium.experiments.synthetic.verdicts import collect_verdicts, judge_cell, verdict_cells

    cells = cells_folder(out, plan.name, overwrite)
    if quick and workers is None:
        workers = 1  # so few tests take longer to hand out than to run
    how = {"seed": plan.seed, "workers": workers, "scheduler": scheduler}
    run_cells(replay_cell if plan.replay else run_cell, plan.chains, cells, label="tests   ", **how)  # type: ignore[arg-type]
    if plan.verdict_tests:
        end_workers()
        how["workers"] = min(workers or 2, 2)  # a verdict takes up to a quarter of a gigabyte
        run_cells(judge_cell, verdict_cells(plan, cells), cells, label="verdicts", **how)  # type: ignore[arg-type]
    end_workers()

    from podium.experiments.synthetic.outputs import write_outputs
    from podium.experiments.synthetic.results import collect

    results = collect(plan, cells)
    verdicts = collect_verdicts(plan, cells) if plan.verdict_tests else [[] for _ in plan.rewards]
    return Reproduction(out, write_outputs(plan, results, verdicts, out, command_of(plan, quick)))


def command_of(plan: Plan, quick: bool) -> str:
    """The command that gives the same files."""
    parts = ["podium reproduce synthetic"]
    if plan.replay:
        parts.append("--replay")
    elif plan.seed:
        parts.append(f"--seed {plan.seed}")
    if quick:
        parts.append("--quick")
    if plan.rewards != PRINTED:
        parts += [f"--reward {name}" for name in plan.rewards]
    usual = QUICK_VERDICT_TESTS if quick else VERDICT_TESTS
    if plan.verdict_tests != usual:
        parts.append(f"--verdict-tests {plan.verdict_tests}")
    return " ".join(parts)
