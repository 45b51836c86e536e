"""All results of Example 3 in one object: every environment under every reading, and the printed tables beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.experiments.printed import Entry, Key, beside_printed
from podium.experiments.rl.measures import Scores, Truth, find_truth, measure
from podium.experiments.rl.plan import Plan, cell_name
from podium.experiments.rl.readings import METHODS, PROGRAM, TEXT, all_readings
from podium.experiments.rl.verdicts import Verdicts, collect_verdicts
from podium.experiments.runner import load

TABLES = ("ex3", "ex3_appendix")


@dataclass(frozen=True, eq=False)
class EnvironmentResults:
    """One environment: scores by the name of the reading, true values, and podium's own verdicts by procedure."""

    name: str
    scores: Mapping[str, Scores]
    truth: Truth
    verdicts: list[Verdicts]

    @property
    def row(self) -> str:
        """What the paper's tables call it."""
        return f"{self.name}-v0"


def collect(plan: Plan, folder: Path, constant: float = 0.0) -> list[EnvironmentResults]:
    """Measure all finished cells."""
    results = []
    for name in plan.environments:
        cells = [load(folder, cell_name("logs", name, i)) for i in range(plan.seeds)]
        scores = {label: measure(cells, reading) for label, reading in all_readings(constant).items()}
        results.append(EnvironmentResults(name, scores, find_truth(cells), collect_verdicts(plan, folder, name)))
    return results


def printed_beside(results: list[EnvironmentResults]) -> dict[str, list[Entry]]:
    """Label -> entries of the printed tables by the text's reading; `<label>_program` by the authors' program's.

    Only rows whose environment was run; a table of which none was run is left out.
    """
    tables = {}
    for label in TABLES:
        for ending, reading in (("", TEXT), ("_program", PROGRAM)):
            found = score_entries(results, reading)
            if entries := beside_printed(label, found):
                tables[label + ending] = entries
    return tables


def score_entries(results: list[EnvironmentResults], reading: str) -> dict[Key, tuple[float, float]]:
    """(row, column) -> (number, standard error)."""
    entries = {}
    for result in results:
        scores = result.scores[reading]
        average, std = scores.average, scores.std
        average_error, std_error = scores.average_error, scores.std_error
        for k, method in enumerate(METHODS):
            entries[result.row, f"{method} avg"] = float(average[k]), float(average_error[k])
            entries[result.row, f"{method} std"] = float(std[k]), float(std_error[k])
    return entries
