"""All results of Example 2 in one object: every variant measured, every printed table beside its reproduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.experiments.classification.datasets import Dataset
from podium.experiments.classification.measures import Measures, join, measure
from podium.experiments.classification.plan import PRINTED, Plan, Variant
from podium.experiments.classification.spread import TABLES, spread_table
from podium.experiments.printed import Entry, Key, beside_printed
from podium.experiments.runner import load


@dataclass(frozen=True, eq=False)
class Results:
    """Measures by variant, dataset by dataset."""

    datasets: tuple[Dataset, ...]
    measures: Mapping[Variant, list[Measures]]

    def tables(self) -> dict[str, list[Entry]]:
        """Label -> entries of every printed table, for the datasets that were run; the text's reading has its own."""
        tables = {"ex2_datasets": dataset_entries(self.datasets)}
        for variant, found in self.measures.items():
            if variant.policies == "dlm":
                for table in TABLES:
                    label = table if variant.reading == "program" else f"{table}_{variant.reading}"
                    tables[label] = entries(table, variant.reading, found)
        return {label: rows for label, rows in tables.items() if rows}


def collect(plan: Plan, folder: Path) -> Results:
    """Measure all finished cells."""
    measures: dict[Variant, list[Measures]] = {variant: [] for variant in plan.variants}
    for (variant, dataset), cells in plan.cells.items():
        arrays = join([load(folder, cell.name) for cell in cells])
        measures[variant].append(measure(variant, dataset, arrays))
    return Results(plan.datasets, measures)


def entries(table: str, reading: str, found: list[Measures]) -> list[Entry]:
    """A printed table beside its reproduction; standard errors are the spread over seeds."""
    spread = spread_table()
    numbers: dict[Key, tuple[float, float]] = {}
    for m in found:
        if m.dataset in PRINTED:
            numbers |= {key: (x, spread[reading, table, key][1]) for key, x in m.entries(table).items()}
    return beside_printed(table, numbers)


def dataset_entries(datasets: tuple[Dataset, ...]) -> list[Entry]:
    """What the paper states of the datasets, and what they are."""
    numbers: dict[Key, tuple[float, float]] = {}
    for d in datasets:
        counts = {"Size": len(d.labels), "Input features": d.features.shape[1], "Classes": len(d.classes)}
        numbers |= {(row, d.name): (float(count), 0.0) for row, count in counts.items()}
    return beside_printed("ex2_datasets", numbers)
