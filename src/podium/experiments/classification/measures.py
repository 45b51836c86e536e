"""What a run of Example 2 found on one dataset: scores and errors of the four methods, and what training did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.columns import Floats
from podium.experiments.classification.cells import METHODS
from podium.experiments.classification.plan import Variant
from podium.experiments.classification.verdicts import VerdictShares, shares_of
from podium.experiments.printed import Key
from podium.experiments.runner import Arrays


@dataclass(frozen=True, eq=False)
class Training:
    """What training did to the policies of one dataset.

    `untouched` is the share of policies that no step changed, `updates` the mean number of steps that did;
    `before`, `after` and `majority` are mean accuracies on the test examples.
    """

    trainings: int
    policies: int
    untouched: float
    updates: float
    before: float
    after: float
    majority: float


@dataclass(frozen=True, eq=False)
class Measures:
    """One variant on one dataset. Averages and standard deviations (4,) are over all logs, and policies for errors."""

    variant: Variant
    dataset: str
    score: Floats
    score_std: Floats
    error: Floats
    error_std: Floats
    ties: Floats
    round_scores: Floats  # (R, 4)
    training: Training | None
    verdicts: VerdictShares | None

    def entries(self, table: str) -> dict[Key, float]:
        """(row, column) -> number of `ex2_comp` or `ex2_eval`."""
        average, std = (self.score, self.score_std) if table == "ex2_comp" else (self.error, self.error_std)
        numbers: dict[Key, float] = {}
        for k, method in enumerate(METHODS):
            numbers[self.dataset, f"{method} avg"] = float(average[k])
            numbers[self.dataset, f"{method} std"] = float(std[k])
        return numbers


def measure(variant: Variant, dataset: str, arrays: Arrays) -> Measures:
    """Summaries of the arrays that the cells of one dataset gave, all rounds together."""
    scores, values = arrays["scores"], arrays["values"]
    errors = arrays["estimates"] - values[:, None, None, :]
    return Measures(
        variant,
        dataset,
        score=scores.mean(axis=(0, 1)),
        score_std=scores.std(axis=(0, 1)),
        error=np.array([errors[:, :, k].mean() for k in range(4)]),
        error_std=np.array([errors[:, :, k].std() for k in range(4)]),
        ties=arrays["ties"].mean(axis=(0, 1)),
        round_scores=scores.mean(axis=1),
        training=training_of(arrays) if (arrays["updates"] >= 0).all() else None,
        verdicts=shares_of(arrays),
    )


def training_of(arrays: Arrays) -> Training:
    updates = arrays["updates"]
    return Training(
        trainings=int(arrays["trainings"].sum()),
        policies=updates.size,
        untouched=float(np.mean(updates == 0)),
        updates=float(updates.mean()),
        before=float(arrays["before"].mean()),
        after=float(arrays["values"].mean()),
        majority=float(arrays["majority"].mean()),
    )


def join(parts: list[Arrays]) -> Arrays:
    """The rounds of several cells as one."""
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
