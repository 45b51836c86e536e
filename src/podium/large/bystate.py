"""A large log state by state: every state counted, those with the most rows kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podium.columns import Column, Floats, plain, sort_key
from podium.engines.batches import Batch, slices, state_slices, whole_states
from podium.verdicts.pairs import pair_indices

LISTED = 20_000  # states that are listed; of more, those with the most rows


def nothing() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class StateTable:
    """States with their rows and corrections (S, K), of which the largest are kept; all are counted.

    Parameters
    ----------
    labels : the columns of the states kept
    rows, shared : (S,) rows kept in each, and the part of its values that all policies share
    corrections : (S, K)
    signs : (P, 3) in how many states a pair's first policy is below, equal, above
    sizes : rows -> how many states have that many
    distinct : how many (state, action) there are
    """

    labels: tuple[Column, ...] = ()
    rows: Floats = field(default_factory=nothing)
    shared: Floats = field(default_factory=nothing)
    corrections: Floats = field(default_factory=nothing)
    signs: Floats = field(default_factory=nothing)
    sizes: Mapping[float, int] = field(default_factory=dict)
    distinct: int = 0

    def __add__(self, other: StateTable) -> StateTable:
        if not self.labels or not other.labels:
            return self if self.labels else other
        rows = np.concatenate([self.rows, other.rows])
        shared = np.concatenate([self.shared, other.shared])
        corrections = np.concatenate([self.corrections, other.corrections])
        labels = tuple(np.concatenate(pair) for pair in zip(self.labels, other.labels, strict=True))
        sizes = dict(self.sizes)
        for size, states in other.sizes.items():
            sizes[size] = sizes.get(size, 0) + states
        merged = StateTable(
            labels, rows, shared, corrections, self.signs + other.signs, sizes, self.distinct + other.distinct
        )
        return merged.largest() if len(rows) > 4 * LISTED else merged

    def order(self) -> list[int]:
        """The states kept, in the order of their labels."""
        keys = [[sort_key(plain(x)) for x in column] for column in self.labels]
        return sorted(range(len(keys[0])), key=lambda i: [column[i] for column in keys])

    def largest(self) -> StateTable:
        """The states with the most rows; of equals, those that come first by label."""
        if len(self.rows) <= LISTED:
            return self
        edge = np.partition(self.rows, len(self.rows) - LISTED)[len(self.rows) - LISTED]
        kept = np.flatnonzero(self.rows > edge)
        tied = self.take(np.flatnonzero(self.rows == edge))
        own = np.flatnonzero(self.rows == edge)[tied.order()[: LISTED - len(kept)]]
        return self.take(np.sort(np.concatenate([kept, own])))

    def take(self, pick: Any) -> StateTable:
        labels = tuple(column[pick] for column in self.labels)
        return StateTable(
            labels, self.rows[pick], self.shared[pick], self.corrections[pick], self.signs, self.sizes, self.distinct
        )

    @property
    def states(self) -> int:
        return int(sum(self.sizes.values()))

    @property
    def median_rows(self) -> float:
        """Of all states."""
        sizes = sorted(self.sizes)
        before = np.cumsum([self.sizes[s] for s in sizes])
        n = int(before[-1])
        middle = [sizes[int(np.searchsorted(before, place, side="right"))] for place in ((n - 1) // 2, n // 2)]
        return float(np.mean(middle))


def table_of_states(
    batches: Iterable[Batch], policies: int, weighted: bool, kept: str, constant: float | None, tie: float
) -> StateTable:
    """Every state's corrections by one method; a baseline that is no constant comes with the batches."""
    total = StateTable()
    distinct = 0
    pieces: list[tuple[Floats, Any]] = []
    for batch in whole_states(batches):
        assert batch.latest is not None
        distinct += int(np.count_nonzero(batch.latest))
        parts = slices(batch, policies) if pieces or not batch.whole else state_slices(batch, policies)
        for part in parts:
            sums, first = state_sums(part, policies, weighted, kept, constant)
            if batch.whole and not pieces:
                total = total + made(sums, [c[first] for c in part.labels.values()], policies, tie)
            else:
                pieces.append((sums, [c[:1] for c in part.labels.values()]))
        if batch.whole and pieces:
            total = total + made(np.sum([s for s, _ in pieces], axis=0), pieces[0][1], policies, tie)
            pieces = []
    return replace(total.largest(), distinct=distinct)


def state_sums(batch: Batch, policies: int, weighted: bool, kept: str, constant: float | None) -> tuple[Floats, Any]:
    """(S, 2 + K) rows, sum of the baseline and sums of the terms of each state; and the states' first rows."""
    from scipy.sparse import csr_array

    assert batch.state is not None
    assert batch.latest is not None
    n = len(batch)
    starts = np.flatnonzero(np.concatenate([[True], batch.state[1:] != batch.state[:-1]]))
    keep = batch.latest.astype(float) if kept == "latest" else np.ones(n)
    base = np.full(n, constant) if constant is not None else batch.baseline
    assert base is not None
    weight = keep * (batch.reward - base)
    if weighted:
        assert batch.propensity is not None
        weight = weight / batch.propensity
    columns = np.empty((n, 2 + policies))
    columns[:, 0], columns[:, 1] = keep, keep * (base if batch.averages is None else 0.0)
    np.multiply(batch.policy, weight[:, None], out=columns[:, 2:])
    if batch.averages is not None and constant is None:
        columns[:, 2:] += keep[:, None] * batch.averages
    pick = csr_array((np.ones(n), np.arange(n), np.append(starts, n)), shape=(len(starts), n))
    return np.asarray(pick @ columns), starts


def made(sums: Floats, labels: Sequence[Column], policies: int, tie: float) -> StateTable:
    rows = sums[:, 0]
    corrections = sums[:, 2:] / rows[:, None]
    i, j = pair_indices(policies)
    signs = np.sign(gaps_of(corrections, i, j, tie))
    counted = np.stack([np.count_nonzero(signs == sign, axis=0) for sign in (-1, 0, 1)], axis=1).astype(float)
    sizes, states = np.unique(rows, return_counts=True)
    found = dict(zip(sizes.tolist(), states.tolist(), strict=True))
    return StateTable(tuple(labels), rows, sums[:, 1] / rows, corrections, counted, found)


def gaps_of(corrections: Floats, i: Any, j: Any, tie: float) -> Floats:
    """(S, P) differences, 0 where only rounding keeps them from it."""
    gaps: Floats = corrections[:, i] - corrections[:, j]
    gaps[np.abs(gaps) <= tie * np.abs(corrections).max(axis=1, keepdims=True)] = 0.0
    return gaps
