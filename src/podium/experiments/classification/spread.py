"""How much Example 2's numbers differ from seed to seed, measured once and kept in printed_tables/ex2_spread.csv.

python -m podium.experiments.classification.spread --seeds 20 --out spread
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from podium.data.files import claim_folder, write_text
from podium.data.spreadsheets import csv_text
from podium.experiments.classification.cells import run_cell
from podium.experiments.classification.datasets import load_dataset
from podium.experiments.classification.measures import join, measure
from podium.experiments.classification.plan import PRINTED, READINGS, Plan, Variant
from podium.experiments.printed import Key
from podium.experiments.runner import end_workers, load, run_cells

TABLES = ("ex2_comp", "ex2_eval")
HEADER = ["reading", "table", "row", "column", "mean", "sd", "seeds"]


@cache
def spread_table() -> dict[tuple[str, str, Key], tuple[float, float]]:
    """(reading, table, (row, column)) -> mean and standard deviation of a printed number over the seeds."""
    text = files("podium.experiments").joinpath("printed_tables", "ex2_spread.csv").read_text(encoding="utf-8")
    return {
        (line["reading"], line["table"], (line["row"], line["column"])): (float(line["mean"]), float(line["sd"]))
        for line in csv.DictReader(io.StringIO(text))
    }


def run_seed(seed: int, readings: Sequence[str], data_dir: str | None, out: Path, workers: int | None) -> Plan:
    """Run the paper's five datasets with one seed; the cells are then in `out`."""
    datasets = tuple(load_dataset(name, data_dir) for name in PRINTED)
    plan = Plan(datasets, tuple(Variant("dlm", reading) for reading in readings), seed=seed, verdict_logs=0)
    run_cells(run_cell, plan.chains, out / plan.name, seed=seed, workers=workers, label=f"seed {seed}")
    return plan


def numbers_of(plan: Plan, folder: Path) -> dict[tuple[str, str, Key], float]:
    """(reading, table, (row, column)) -> number of one seed."""
    found: dict[tuple[str, str, Key], float] = {}
    for (variant, dataset), cells in plan.cells.items():
        measures = measure(variant, dataset, join([load(folder / plan.name, cell.name) for cell in cells]))
        for table in TABLES:
            found |= {(variant.reading, table, key): value for key, value in measures.entries(table).items()}
    return found


def spread_csv(runs: Sequence[dict[tuple[str, str, Key], float]]) -> str:
    """Mean and standard deviation (n - 1) over seeds, as CSV."""
    rows = []
    for reading, table, (row, column) in runs[0]:
        values = np.array([run[reading, table, (row, column)] for run in runs])
        rows.append([reading, table, row, column, f"{values.mean():.6g}", f"{values.std(ddof=1):.4g}", len(runs)])
    return csv_text(HEADER, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", default="podium-spread", type=Path, help="folder of the cells, and of ex2_spread.csv")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    claim_folder(options.out, ["ex2_spread.csv"])
    runs = []
    for seed in range(1, options.seeds + 1):
        plan = run_seed(seed, READINGS, options.data_dir, options.out, options.workers)
        runs.append(numbers_of(plan, options.out))
    end_workers()
    print(write_text(options.out / "ex2_spread.csv", spread_csv(runs)))


if __name__ == "__main__":
    main()
