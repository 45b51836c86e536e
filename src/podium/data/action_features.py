"""What is known of the actions before any row is logged: prices, categories, embeddings, one row per action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats, boxed, factorize, labels_column, plain, to_array
from podium.data.errors import PodiumError, count, listed, refuse_rows, show_value
from podium.data.frames import frame_to_columns, is_frame
from podium.data.log import Log
from podium.data.read import read_columns

KEY = "action"
FORMS = "a path, a frame, or a dict from each action to its features"
FILL = "fill in the missing values, or leave the column out."
PLAIN = "write only numbers, such as 1250 or 2.5 (no separators, a point for decimals), or only texts in it."
SHOWN = 5  # names that a message lists


@dataclass(frozen=True, eq=False)
class ActionFeatures:
    """Numbers and texts that describe actions.

    Parameters
    ----------
    labels : the actions described
    columns : (M,) by name: float64 numbers, or texts
    source : what messages call it: a file's name, or "action_features"
    ignored : columns that tell no two actions apart, or tell each apart from all others by a text
    """

    labels: tuple[Any, ...]
    columns: Mapping[str, Column]
    source: str = "action_features"
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], source: str) -> ActionFeatures:
        """From columns, of which `action`, or else the first, names the actions."""
        if not columns:
            raise PodiumError(f"{source} has no columns", hint=f"give a column {KEY!r} and one column per feature.")
        key = KEY if KEY in columns else next(iter(columns))
        labels = labels_column(columns[key], f"{source}: column {key!r}").tolist()
        first: dict[Any, int] = {}
        for row, label in enumerate(labels):
            if first.setdefault(label, row) != row:
                raise PodiumError(
                    f"{source}: rows {first[label] + 1} and {row + 1} both describe the action {show_value(label)}",
                    hint="keep one row per action.",
                )
        given = {name: column for header in columns if header != key for name, column in flat(header, columns[header])}
        clean = {name: cleaned(column, f"{source}: column {name!r}") for name, column in given.items()}
        if not clean:
            raise PodiumError(
                f"{source} has no features beside the column {key!r}",
                hint="add a column such as a price or a category.",
            )
        return cls(tuple(plain(x) for x in labels), clean, source)

    def rows_of(self, space: Sequence[Any]) -> list[int]:
        """The row of every action of a log; actions that are not described are refused."""
        exact = {label: row for row, label in enumerate(self.labels)}
        by_text = {str(label): row for row, label in enumerate(self.labels)}
        rows = [exact.get(label, by_text.get(str(label), -1)) for label in space]
        missing = [label for label, row in zip(space, rows, strict=True) if row < 0]
        if missing:
            raise undescribed(self, missing, len(space))
        return rows

    def on(self, space: Sequence[Any]) -> ActionFeatures:
        """The same for the actions of a log, in their order, with the columns that tell some of them apart."""
        rows = self.rows_of(space)
        columns = {name: column[rows] for name, column in self.columns.items()}
        useful = {name: column for name, column in columns.items() if tells_apart(column)}
        if not useful:
            raise PodiumError(
                f"{self.source}: no column tells the {count(len(space), 'action')} of the log apart by anything but a "
                "name",
                hint="add a number, or a text that several actions share, such as a category.",
            )
        ignored = tuple(name for name in columns if name not in useful)
        return ActionFeatures(tuple(space), useful, self.source, ignored)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @cached_property
    def numeric(self) -> Floats:
        """(M, d) the columns of numbers."""
        found = [c for c in self.columns.values() if c.dtype.kind == "f"]
        return np.column_stack(found) if found else np.zeros((len(self.labels), 0))

    @cached_property
    def texts(self) -> Codes:
        """(M, q) codes of the columns of texts."""
        found = [factorize(c)[0] for c in self.columns.values() if c.dtype.kind != "f"]
        return np.column_stack(found) if found else np.zeros((len(self.labels), 0), dtype=np.int64)

    @cached_property
    def matrix(self) -> Floats:
        """(M, f) the numbers as they are, and every text as one 0/1 column per value."""
        hot = [(codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64) for codes in self.texts.T]
        return np.hstack([self.numeric, *hot])

    def described(self) -> str:
        """The columns in words: 'price, category'; an embedding's numbers by the first and the last."""
        shown = list(self.names)
        return ", ".join(shown) if len(shown) <= SHOWN else f"{', '.join(shown[: SHOWN - 1])}, ..., {shown[-1]}"


def action_features(name: str, given: Any) -> ActionFeatures:
    """Action features in any form."""
    if isinstance(given, ActionFeatures):
        return given
    if isinstance(given, str | Path):
        return ActionFeatures.of(read_columns(given), Path(given).name)
    if is_frame(given):
        return ActionFeatures.of(frame_to_columns(with_index(given)), name)
    if isinstance(given, Mapping):
        return ActionFeatures.of(columns_by_action(name, given), name)
    raise PodiumError(f"{name} must be {FORMS}; it is {type(given).__name__}", hint=f"give {FORMS}.")


def describe_actions(log: Log, features: ActionFeatures) -> Log:
    """The same log with what is known of its actions."""
    return log._copy(action_features=features.on(log.action_space))


def with_index(frame: Any) -> Any:
    """A pandas frame whose index names the actions, with these as its first column; other frames as they are."""
    index = getattr(frame, "index", None)
    named = hasattr(frame, "reset_index") and type(index).__name__ != "RangeIndex" and KEY not in frame.columns
    return frame.reset_index() if named else frame


def columns_by_action(name: str, given: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a dict from actions to a number, a text, a list of them, or a dict of them by name."""
    if not given:
        raise PodiumError(f"{name} is empty", hint="describe every action of the log.")
    rows = [described_as(features) for features in given.values()]
    wanted = list(rows[0])
    for label, row in zip(given, rows, strict=True):
        if list(row) != wanted and set(row) != set(wanted):
            raise PodiumError(
                f"{name}: the action {show_value(label)} has the features {listed(row, SHOWN)}; "
                f"{show_value(next(iter(given)))} has {listed(wanted, SHOWN)}",
                hint="give every action the same features.",
            )
    if KEY in wanted:
        raise PodiumError(f"{name}: a feature cannot be called {KEY!r}", hint="rename it.")
    return {KEY: boxed(list(given)), **{x: to_array([row[x] for row in rows]) for x in wanted}}


def described_as(features: Any) -> dict[str, Any]:
    if isinstance(features, Mapping):
        return {str(name): value for name, value in features.items()}
    if isinstance(features, np.ndarray) or (isinstance(features, Sequence) and not isinstance(features, str | bytes)):
        return {f"feature {i + 1}": value for i, value in enumerate(features)}
    return {"feature": features}


def flat(header: str, values: Any) -> list[tuple[str, Column]]:
    """A column by its name; one whose cells are lists of numbers (embeddings) as one column per place."""
    column = to_array(values)
    if column.ndim == 2:
        return [(f"{header}[{i}]", column[:, i]) for i in range(column.shape[1])]
    if column.dtype.kind != "O" or not all(isinstance(x, list | tuple | np.ndarray) for x in column):
        return [(header, column)]
    sizes = np.array([len(x) for x in column])
    rule, hint = f"must have {sizes[0]} numbers in every row", "give every action an embedding of the same length."
    refuse_rows(f"column {header!r}", rule, sizes != sizes[0], column, hint)
    return [(f"{header}[{i}]", to_array([x[i] for x in column])) for i in range(int(sizes[0]))]


def cleaned(column: Column, what: str) -> Column:
    """Finite numbers as float64, or texts."""
    refuse_rows(what, "must not be missing", missing(column), column, FILL)
    clean = labels_column(column, what, mixed_hint=PLAIN)
    return clean.astype(np.float64) if clean.dtype.kind in "iufb" else boxed([str(x) for x in clean.tolist()])


def missing(column: Column) -> list[bool]:
    return [x is None or x == "" or (isinstance(x, float) and x != x) for x in column.tolist()]


def tells_apart(column: Column) -> bool:
    """Whether a column says that some actions are more alike than others."""
    if column.dtype.kind == "f":
        return bool((column != column[0]).any())
    return 1 < len(set(column.tolist())) < len(column)


def undescribed(features: ActionFeatures, missing: Sequence[Any], actions: int) -> PodiumError:
    """The error that names the actions without a row."""
    near = get_close_matches(str(missing[0]), [str(x) for x in features.labels], 1)
    guess = f"did you mean {near[0]!r} by {show_value(missing[0])}? " if near else ""
    return PodiumError(
        f"{features.source} lacks {len(missing):,} of the {count(actions, 'action')}: {listed(missing, SHOWN)}",
        hint=f"{guess}Add one row for every action that was logged or that a policy plays.",
    )
