"""Example 2's plan: which policies, by which reading of the protocol, on which datasets; every piece of it a cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from podium.experiments.classification.datasets import Dataset
from podium.experiments.classification.sources import SOURCES
from podium.experiments.runner import Cell

POLICIES = 10  # compared in each round
ROUNDS, QUICK_ROUNDS = 10, 2  # sets of trained policies
LOGS, QUICK_LOGS = 100, 20  # logs per round
EPOCHS, QUICK_EPOCHS = 1000, 100
VERDICT_LOGS, QUICK_VERDICT_LOGS = 2, 1  # of each round
EPS = 0.1
SHARE = 0.8  # of the training examples, for each policy
REPLAY_SEED = 2021

PRINTED = tuple(SOURCES)  # the datasets that the paper has tables of
READINGS = ("program", "text")
KINDS = ("dlm", "dlm-trained", "sklearn")  # of policies; also package.module:function


@dataclass(frozen=True)
class Variant:
    """One way to run the experiment: a kind of policies, and a reading of the protocol."""

    policies: str
    reading: str

    @property
    def name(self) -> str:
        safe = "".join(c if c.isalnum() or c == "-" else "_" for c in self.policies)
        return f"{safe}-{self.reading}"

    @property
    def short(self) -> str:
        kinds = {"dlm": "DLM", "dlm-trained": "DLM that trains", "sklearn": "ten classifiers"}
        reading = {"program": "program's reading", "text": "text's reading"}[self.reading]
        return f"{kinds.get(self.policies, self.policies)}, {reading}"

    @property
    def title(self) -> str:
        kinds = {
            "dlm": "Direct Loss Minimization, the paper's settings",
            "dlm-trained": "Direct Loss Minimization that trains: standardised features, eps = 10",
            "sklearn": "Ten scikit-learn classifiers",
        }
        reading = {"program": "the program's reading", "text": "the text's reading"}[self.reading]
        return f"{kinds.get(self.policies, self.policies)}; {reading}"


@dataclass(frozen=True, eq=False)
class Plan:
    """What is run.

    Parameters
    ----------
    datasets : the data themselves, in order
    variants : kinds of policies and readings, in order
    seed : of the cells; replay has the paper's own
    rounds, logs, epochs : sets of policies, logs for each, passes of training
    verdict_logs : how many logs of each round podium's own verdicts are asked about
    """

    datasets: tuple[Dataset, ...]
    variants: tuple[Variant, ...]
    seed: int = 0
    replay: bool = False
    rounds: int = ROUNDS
    logs: int = LOGS
    epochs: int = EPOCHS
    verdict_logs: int = VERDICT_LOGS

    @property
    def name(self) -> str:
        """A folder name that differs where the cells differ."""
        source = "replay" if self.replay else f"seed-{self.seed}"
        return f"{source}-rounds-{self.rounds}-logs-{self.logs}-epochs-{self.epochs}-verdicts-{self.verdict_logs}"

    @cached_property
    def cells(self) -> Mapping[tuple[Variant, str], list[Cell]]:
        """(variant, dataset) -> its cells: one for all rounds by the program's reading, else one for each round."""
        return {
            (variant, dataset.name): [
                self.cell(variant, dataset, part) for part in range(1 if variant.reading == "program" else self.rounds)
            ]
            for variant in self.variants
            for dataset in self.datasets
        }

    def cell(self, variant: Variant, dataset: Dataset, part: int) -> Cell:
        name = f"{variant.name}-{dataset.name}-{part:02d}"
        arguments = {
            "variant": variant,
            "dataset": dataset,
            "rounds": self.rounds if variant.reading == "program" else 1,
            "logs": self.logs,
            "epochs": self.epochs,
            "verdict_logs": self.verdict_logs,
            "replay": self.replay,
        }
        return Cell(name, place_of(name), arguments)

    @cached_property
    def chains(self) -> list[list[Cell]]:
        """Every cell stands alone; the longest go first."""
        cells = [cell for group in self.cells.values() for cell in group]
        return [[cell] for cell in sorted(cells, key=lambda c: -len(c.arguments["dataset"].codes))]


def place_of(name: str) -> int:
    """A cell's own seed follows from its name, so that the other datasets of a run do not matter."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
