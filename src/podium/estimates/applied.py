"""Baselines on a log that is read in parts: those that learn learn from its sample, and are applied to all rows.

A row of the sample is never predicted by a model that saw it, so that estimates stay unbiased.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.data.columns import Codes, Floats, group_sums, to_array
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.estimates.baselines import (
    BaselineRows,
    CrossFitted,
    LeastSquares,
    check_baseline,
    constant,
    fit_baseline,
    from_array,
    from_callable,
)


class Applied(Protocol):
    """A baseline that can be had on any part of a log."""

    def on(self, part: Part) -> BaselineRows:
        """On all rows of a part."""
        ...


@dataclass(frozen=True)
class Number:
    """A number for every row."""

    value: float

    def on(self, part: Part) -> BaselineRows:
        return constant(self.value, len(part.rows))


@dataclass(frozen=True, eq=False)
class Function:
    """q(states, actions) or v(states)."""

    function: Any

    def on(self, part: Part) -> BaselineRows:
        return from_callable(self.function, part.log, np.arange(len(part.rows)))


@dataclass(frozen=True, eq=False)
class Array:
    """Numbers for every row of the log."""

    values: Any

    def on(self, part: Part) -> BaselineRows:
        return from_array(self.values[part.rows], part.log, np.arange(len(part.rows)))


@dataclass(frozen=True, eq=False)
class Learned:
    """A model of the sample's rewards, out of fold for the rows of the sample."""

    model: CrossFitted
    drawn: Codes  # (n,) the rows of the sample

    def on(self, part: Part) -> BaselineRows:
        return self.model.predict(part.log, folds_of(part, self.drawn, self.model.fold))


def folds_of(part: Part, drawn: Codes, fold: Codes) -> Codes:
    """(n,) the fold of each row of a part that is in the sample; -1 for the others."""
    place = np.minimum(np.searchsorted(drawn, part.rows), len(drawn) - 1)
    return np.where(drawn[place] == part.rows, fold[place], -1)


@dataclass(frozen=True, eq=False)
class SameState:
    """The mean reward of the sample's other rows in the same state; of all its rows where there are none."""

    sums: Mapping[tuple[Any, ...], tuple[int, float]]  # state -> rows in the sample, and their rewards less the mean
    mean: float
    drawn: Codes
    rewards: Floats

    @classmethod
    def of(cls, rows: Rows) -> SameState:
        log = rows.sample
        mean = float(log.rewards.mean())
        counts = np.bincount(log.state_codes)
        totals = group_sums(log.state_codes, log.rewards - mean, log.n_states)
        labels = log.state_labels if len(log.state_columns) > 1 else [(x,) for x in log.state_labels]
        sums = {key: (int(n), float(x)) for key, n, x in zip(labels, counts, totals, strict=True)}
        return cls(sums, mean, rows.numbers, log.rewards)

    def on(self, part: Part) -> BaselineRows:
        keys = zip(*(column.tolist() for column in part.log.state_columns.values()), strict=True)
        found = np.array([self.sums.get(key, (0, 0.0)) for key in keys])
        place = np.minimum(np.searchsorted(self.drawn, part.rows), len(self.drawn) - 1)
        inside = self.drawn[place] == part.rows
        others = found[:, 0] - inside
        total = found[:, 1] - np.where(inside, self.rewards[place] - self.mean, 0.0)
        return BaselineRows(self.mean + np.where(others > 0, total / np.maximum(others, 1), 0.0))


def apply_baseline(spec: Any, rows: Rows, mean: float, seed: int) -> Applied:
    """A baseline of any kind, ready for the parts of a log; `mean` is the mean reward of the rows that are kept."""
    check_baseline(spec)
    if isinstance(spec, str) and spec == "mean":
        return Number(mean)
    if isinstance(spec, str) and spec == "state":
        return SameState.of(rows)
    if isinstance(spec, numbers.Real):
        return Number(float(fit_baseline(spec, rows.sample, np.arange(1)).logged[0]))
    if isinstance(spec, str) or (hasattr(spec, "fit") and hasattr(spec, "predict")):
        model = LeastSquares() if isinstance(spec, str) else spec
        every = np.arange(len(rows.sample))
        return Learned(CrossFitted.fit(model, rows.sample, every, seed, whole=True), rows.numbers)
    return Function(spec) if callable(spec) else Array(to_array(spec))
