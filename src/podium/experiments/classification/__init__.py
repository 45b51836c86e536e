"""Example 2 of the paper, whole: classifiers as policies on labelled datasets, every table and figure of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.data.errors import PodiumError
from podium.experiments.classification.datasets import describe_origins, load_dataset
from podium.experiments.classification.plan import (
    EPOCHS,
    KINDS,
    LOGS,
    PRINTED,
    QUICK_EPOCHS,
    QUICK_LOGS,
    QUICK_ROUNDS,
    QUICK_VERDICT_LOGS,
    READINGS,
    ROUNDS,
    VERDICT_LOGS,
    Plan,
    Variant,
)
from podium.experiments.printed import Reproduction
from podium.experiments.runner import cells_folder, check_start, end_workers, run_cells

__all__ = ["reproduce"]


def reproduce(
    out: str | Path,
    *,
    replay: bool = False,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    datasets: Sequence[str] = PRINTED,
    policies: Sequence[str] = ("dlm",),
    readings: Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    download: bool = False,
    verdict_logs: int | None = None,
    overwrite: bool = False,
) -> Reproduction:
    """Run Example 2 and write its tables, figures, results.json and index.html into a folder.

    Called again after an interruption it goes on where it stopped; the files are the same then, and for any
    number of workers.

    Parameters
    ----------
    out : the folder
    replay : draw the paper's own random numbers, which gives the printed numbers themselves
    quick : 2 sets of policies with 20 logs each and 100 epochs, instead of 10, 100 and 1,000
    seed : of the random numbers, without replay
    workers : processes; all cores by default
    scheduler : address of a Dask scheduler whose workers run the cells
    datasets : abalone, algerian, ecoli, glass, winequality, iris, wine, breast_cancer, digits
    policies : "dlm", the paper's; "dlm-trained", with standardised features and eps = 10; "sklearn", ten classifiers;
        or `package.module:function`, a function of a seed that returns {name: classifier}
    readings : of the protocol, "program" and "text", both by default; only "dlm" has the program's
    data_dir : a folder with the datasets; PODIUM_DATA_DIR by default, else the tables that podium ships
    download : fetch the original datasets once instead, and keep them in the user's cache
    verdict_logs : logs of each set of policies for podium's own verdicts, 2 by default (1 if quick), 0 for none
    overwrite : also replace files in the folder that podium did not write
    """
    if replay and quick:
        raise PodiumError(
            "replay and quick exclude each other", hint="the printed numbers come out of all 1,000 logs per dataset."
        )
    if replay and tuple(policies) != ("dlm",):
        raise PodiumError("replay is of the paper's policies alone", hint="leave --policies out.")
    if verdict_logs is not None and verdict_logs < 0:
        raise PodiumError(f"verdict logs must not be negative; they are {verdict_logs}", hint="use 0 for none.")
    if not datasets:
        raise PodiumError("no datasets are given", hint="leave datasets out for the paper's five.")
    check_start(seed, workers, ("numba", "matplotlib", "sklearn"), "Example 2")
    variants = variants_of(tuple(policies), ("program",) if replay else readings)
    plan = Plan(
        tuple(load_dataset(name, data_dir, download=download) for name in dict.fromkeys(datasets)),
        variants,
        seed=seed,
        replay=replay,
        rounds=QUICK_ROUNDS if quick else ROUNDS,
        logs=QUICK_LOGS if quick else LOGS,
        epochs=QUICK_EPOCHS if quick else EPOCHS,
        verdict_logs=(QUICK_VERDICT_LOGS if quick else VERDICT_LOGS) if verdict_logs is None else verdict_logs,
    )
    return run_plan(plan, Path(out), workers, scheduler, command_of(plan, quick), overwrite)


def variants_of(policies: Sequence[str], readings: Sequence[str] | None) -> tuple[Variant, ...]:
    """The kinds of policies by the readings that they have; a wrong name is refused before anything runs."""
    from podium.experiments.classification.zoo import load_zoo

    for reading in readings or ():
        if reading not in READINGS:
            raise PodiumError(f"no reading {reading!r}", hint="the readings are program and text.")
    variants = []
    for kind in dict.fromkeys(policies):
        if not kind.startswith("dlm") or kind not in KINDS:
            load_zoo(kind, 0)
        known = READINGS if kind == "dlm" else ("text",)
        chosen = [reading for reading in known if readings is None or reading in readings]
        if not chosen:
            raise PodiumError(
                f"the policies {kind!r} have the text's reading alone",
                hint="the program's reading is of the paper's own policies; leave --reading out.",
            )
        variants += [Variant(kind, reading) for reading in chosen]
    if not variants:
        raise PodiumError("no policies are given", hint="use dlm, dlm-trained or sklearn.")
    return tuple(variants)


def run_plan(
    plan: Plan, out: Path, workers: int | None, scheduler: str | None, command: str, overwrite: bool
) -> Reproduction:
    """Run what is not there yet, then measure and write everything."""
    from podium.experiments.classification.cells import run_cell

    cells = cells_folder(out, plan.name, overwrite)
    run_cells(run_cell, plan.chains, cells, seed=plan.seed, workers=workers, scheduler=scheduler, label="rounds")
    end_workers()

    from podium.experiments.classification.outputs import write_outputs
    from podium.experiments.classification.results import collect

    tables = write_outputs(plan, collect(plan, cells), out, command)
    return Reproduction(out, tables, describe_origins(plan.datasets))


def command_of(plan: Plan, quick: bool) -> str:
    """The command that gives the same files."""
    parts = ["podium reproduce classification"]
    if plan.replay:
        parts.append("--replay")
    elif plan.seed:
        parts.append(f"--seed {plan.seed}")
    if quick:
        parts.append("--quick")
    names = tuple(d.name for d in plan.datasets)
    if names != PRINTED:
        parts.append("--datasets " + ",".join(names))
    kinds = tuple(dict.fromkeys(v.policies for v in plan.variants))
    if kinds != ("dlm",):
        parts.append("--policies " + ",".join(kinds))
    readings = {v.reading for v in plan.variants}
    if not plan.replay and "dlm" in kinds and len(readings) == 1:
        parts.append(f"--reading {readings.pop()}")
    if plan.verdict_logs != (QUICK_VERDICT_LOGS if quick else VERDICT_LOGS):
        parts.append(f"--verdict-logs {plan.verdict_logs}")
    parts += dict.fromkeys(d.origin.options for d in plan.datasets if d.origin.options)
    return " ".join(parts)
