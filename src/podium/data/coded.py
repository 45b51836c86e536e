"""The rows of a log as codes: which state and action each row has, which rows repeat them, and a digest of it all."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats, combine_codes, factorize, first_rows, is_unequal, plain
from podium.data.eligible import set_codes
from podium.data.errors import PodiumError, shown
from podium.data.owned import sealed


class CodedRows:
    """What methods need of a log; `podium.Log` brings the columns."""

    actions: Column
    rewards: Floats
    propensities: Floats | None
    behavior: Floats | None
    action_space: tuple[Any, ...]
    times: Column | None
    units: Column | None
    state_columns: Mapping[str, Column]
    action_codes: Codes
    eligible: Any

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def n_actions(self) -> int:
        return len(self.action_space)

    @cached_property
    def choices(self) -> Floats:
        """(N,) how many actions were possible in each row."""
        if self.eligible is None:
            return sealed(np.full(len(self), float(self.n_actions)))
        return sealed(self.eligible.sum(axis=1).astype(np.float64))

    @cached_property
    def mean_choices(self) -> float:
        """How many actions were possible in a row, on average."""
        return float(self.n_actions) if self.eligible is None else float(self.choices.mean())

    @property
    def choice_range(self) -> tuple[int, int]:
        """The least and the largest number of actions that were possible in a row."""
        return int(self.choices.min()), int(self.choices.max())

    @cached_property
    def state_codes(self) -> Codes:
        """(N,) which distinct state each row is in, 0..S-1 in sorted order."""
        parts = [factorize(column) for column in self.state_columns.values()]
        return sealed(combine_codes([(codes, len(distinct)) for codes, distinct in parts]))

    @cached_property
    def n_states(self) -> int:
        return int(self.state_codes.max(initial=-1)) + 1

    @cached_property
    def first_rows(self) -> Codes:
        """(S,) the first row of each distinct state."""
        return sealed(first_rows(self.state_codes, self.n_states))

    @cached_property
    def state_labels(self) -> list[Any]:
        """The distinct states: a value each, or a tuple where a state has several columns."""
        values = [column[self.first_rows] for column in self.state_columns.values()]
        if len(values) == 1:
            return [plain(x) for x in values[0]]
        return [tuple(plain(x) for x in row) for row in zip(*values, strict=True)]

    @cached_property
    def context_codes(self) -> Codes:
        """(N,) which state each row is in, and with which eligible actions: rows of one context face one choice."""
        if self.eligible is None:
            return self.state_codes
        sets = set_codes(self.eligible)
        return sealed(combine_codes([(self.state_codes, self.n_states), (sets, int(sets.max(initial=-1)) + 1)]))

    @cached_property
    def cell_codes(self) -> Codes:
        """(N,) which (state, action) each row is; other eligible actions make another one."""
        return sealed(self.context_codes * np.int64(self.n_actions) + self.action_codes)

    @cached_property
    def overwritten_by(self) -> Codes:
        """(N,) the most recent row of the same (state, action): a row's own number where it is that row."""
        order = np.arange(len(self)) if self.times is None else np.argsort(factorize(self.times)[0], kind="stable")
        cells, size = self.cell_codes, (int(self.context_codes.max(initial=-1)) + 1) * self.n_actions
        if size > 8 * len(self) + 1024:
            cells, distinct = factorize(cells)
            size = len(distinct)
        last = np.empty(size, dtype=np.int64)
        last[cells[order]] = order  # a repeated index keeps its last value
        return sealed(last[cells])

    @cached_property
    def latest(self) -> Codes:
        """The rows that remain when a repeated (state, action) is overwritten by the most recent one."""
        return sealed(np.flatnonzero(self.overwritten_by == np.arange(len(self))))

    @property
    def distinct(self) -> int:
        """How many (state, action) there are."""
        return len(self.latest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the log says, the same whatever file or frame it came from.

        >>> from podium import Log
        >>> Log([0, 1], ["a", "b"], [1.0, 0.0]).digest[:16]
        '9fc773f5363357b1'
        """
        found = hashlib.sha256()
        parts: dict[str, Column | None] = {f"state {name}": column for name, column in self.state_columns.items()}
        parts |= {"action": self.actions, "reward": self.rewards, "propensity": self.propensities}
        parts |= {"time": self.times, "unit": self.units, "behavior": self.behavior}
        parts |= {"eligible": self.eligible}
        for name, column in parts.items():
            if column is not None:
                found.update(f"\n{name} {column.dtype.kind} {column.shape}\n".encode("utf-8", "backslashreplace"))
                found.update(column_bytes(column))
        return found.hexdigest()


def checked_space(labels: Any, *, repeated: bool = False) -> tuple[Any, ...]:
    """An action space in the order that was given, each label once; repeated ones are refused or dropped."""
    hint = "give the actions as a list such as ['a', 'b'], in the order of the columns of probabilities."
    if isinstance(labels, str | bytes | set | frozenset | Mapping) or not isinstance(labels, Iterable):
        raise PodiumError(f"the action space must be a list; it is {shown(labels)}", hint=hint)
    space = tuple(plain(label) for label in labels)
    bad = [x for x in space if not isinstance(x, Hashable) or x is None or x == "" or is_unequal(x)]
    if bad:
        raise PodiumError(f"the action space names {shown(bad[0])}, which cannot be an action", hint=hint)
    position = {label: i for i, label in enumerate(space)}
    if repeated:
        return tuple(dict.fromkeys(space))
    if len(position) < len(space):
        twice = next(label for i, label in enumerate(space) if position[label] != i)
        raise PodiumError(f"the action space names {shown(twice)} twice", hint="name each action once.")
    return space


def rows_of(columns: Mapping[str, Column], rows: Any, name: str) -> Column:
    """Some rows of one column."""
    column: Column = columns[name][rows]
    return column


def refuse_rows_beyond(rows: Any, size: int) -> None:
    """Refuse rows that a log of this size does not have."""
    try:
        np.arange(size)[rows]
    except IndexError as error:
        raise PodiumError(f"the log does not have these rows: {error}", hint=f"they are 0 to {size - 1}.") from None


def space(name: str, labels: Any) -> tuple[Any, ...]:
    """The rule of arguments that are an action space."""
    return checked_space(labels)


def column_bytes(column: Column) -> bytes:
    """A column as bytes that do not depend on the machine: numbers as 64 bits, all else as texts with their lengths."""
    if column.dtype.kind in "biuf":
        wide = column.astype("<f8" if column.dtype.kind == "f" else "<i8")
        return np.ascontiguousarray(wide).tobytes()
    texts = [str(x) for x in column.tolist()]
    return "".join(f"{len(t)}:{t}" for t in texts).encode("utf-8", "backslashreplace")
