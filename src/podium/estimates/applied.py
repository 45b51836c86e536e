"""Baselines of every kind, ready for the parts of a log: on all rows at once where they are few.

Of a log that is read in parts, a baseline that learns learns from the sample, and never predicts a row that it saw.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.data.columns import Codes, Floats, group_sums, to_array
from podium.data.errors import PodiumError
from podium.data.owned import owned
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.estimates.baselines import (
    BaselineRows,
    KnownAverages,
    check_baseline,
    constant,
    from_array,
    from_callable,
    wrong_shape,
)
from podium.estimates.learned import CrossFitted, LeastSquares, cross_fit, neighbour_means


class AppliedBaseline(Protocol):
    """A baseline that can be had on any part of a log."""

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        """On some rows of a part."""
        ...


@dataclass(frozen=True)
class Number:
    """A number for every row."""

    value: float

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        return constant(self.value, len(kept))


@dataclass(frozen=True, eq=False)
class Function:
    """q(states, actions) or v(states)."""

    function: Any

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        return from_callable(self.function, part.log, kept)


@dataclass(frozen=True, eq=False)
class Array:
    """Numbers for every row of the log."""

    values: Any

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        return from_array(self.values[part.rows], part.log, kept)


@dataclass(frozen=True, eq=False)
class Held:
    """A baseline that was worked out on rows of the log, the kept ones in order; other rows have none."""

    place: Codes  # (N,) of each row of the log among them
    known: BaselineRows

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        place, known = self.place[part.rows[kept]], self.known
        return BaselineRows(
            known.logged[place],
            None if known.matrix is None else known.matrix[place],
            None if known.averages is None else {name: v[place] for name, v in known.averages.items()},
        )


@dataclass(frozen=True, eq=False)
class Learned:
    """A model of the sample's rewards, out of fold for the rows of the sample."""

    model: CrossFitted
    drawn: Codes  # (n,) the rows of the sample

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        return self.model.predict(part.log.take(kept), folds_of(part.rows[kept], self.drawn, self.model.fold))


def folds_of(rows: Codes, drawn: Codes, fold: Codes) -> Codes:
    """(n,) the fold of each row that is in the sample; -1 for the others."""
    place = np.minimum(np.searchsorted(drawn, rows), len(drawn) - 1)
    return np.where(drawn[place] == rows, fold[place], -1)


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

    def on(self, part: Part, kept: Codes) -> BaselineRows:
        keys = zip(*(column[kept].tolist() for column in part.log.state_columns.values()), strict=True)
        known = np.array([self.sums.get(key, (0, 0.0)) for key in keys]).reshape(-1, 2)
        rows = part.rows[kept]
        place = np.minimum(np.searchsorted(self.drawn, rows), len(self.drawn) - 1)
        inside = self.drawn[place] == rows
        others = known[:, 0] - inside
        total = known[:, 1] - np.where(inside, self.rewards[place] - self.mean, 0.0)
        return BaselineRows(self.mean + np.where(others > 0, total / np.maximum(others, 1), 0.0))


def apply_baseline(spec: Any, rows: Rows, latest: bool, seed: int) -> AppliedBaseline:
    """A baseline of any kind, ready for the parts of a log; `latest` rows alone, or every row, are kept."""
    check_baseline(spec)
    if isinstance(spec, numbers.Real):
        if not np.isfinite(float(spec)):
            hint = "use the mean reward, or a number from its range."
            raise PodiumError("the baseline must be a finite number", hint=hint)
        return Number(float(spec))
    if isinstance(spec, str) and spec == "mean":
        return Number(rows.source.mean_reward(latest))
    if isinstance(spec, KnownAverages):
        return Held(np.arange(len(rows)), BaselineRows(spec.logged, averages=spec.averages))
    every = np.arange(len(rows.sample))
    if isinstance(spec, str) and spec == "state":
        return Held(every, BaselineRows(neighbour_means(rows.sample))) if rows.whole else SameState.of(rows)
    if isinstance(spec, str) or (hasattr(spec, "fit") and hasattr(spec, "predict")):
        model = LeastSquares() if isinstance(spec, str) else spec
        if not rows.whole:
            return Learned(CrossFitted.fit(model, rows.sample, every, seed, whole=True), rows.numbers)
        kept = rows.sample.latest if latest else every
        place = np.zeros(len(rows), dtype=np.int64)
        place[kept] = np.arange(len(kept))
        return Held(place, cross_fit(model, rows.sample, kept, seed))
    if callable(spec):  # asked once where all rows are at hand
        return Held(every, from_callable(spec, rows.sample, every)) if rows.whole else Function(spec)
    values = to_array(spec)
    if values.shape[:1] != (len(rows),):
        raise wrong_shape(values.shape, len(rows), rows.sample.n_actions)
    return Array(values if isinstance(values, np.memmap) else owned(values))
