"""Policies as tables: keyed by state, with one row per row of the log, or with one row for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats, labels_column, match_label, plain, to_array
from podium.data.errors import PodiumError, count, refuse_rows, show_value
from podium.data.frames import ColumnTable, frame_to_columns
from podium.data.log import Log
from podium.data.owned import owned
from podium.policies.drafts import Draft, Policy, check_sums, probabilities, read_actions, read_cells, read_distribution
from podium.policies.shares import fixed, is_shares, normalized, read_shares

MISSING = object()


def read_table(name: str, policy: Policy, log: Log) -> Draft:
    table = policy.source
    if isinstance(table, Mapping) and not isinstance(table, ColumnTable):
        return read_mapping(name, table, log, policy.proxy)
    opened = table if isinstance(table, Table) else open_table(name, policy, log, len(log))
    return opened.draft(name, log)


@dataclass(frozen=True, eq=False)
class Table:
    """A policy's table, read: keyed by state, with one row per row of the log, or with one row for all of them.

    Parameters
    ----------
    place : the row that describes each state; None without keys
    labels, matrix : its actions and their probabilities
    chosen : the action that it chooses in each row, where it has no probabilities
    single : its one row describes every row of the log
    """

    place: Mapping[Any, int] | None
    labels: tuple[Any, ...] = ()
    matrix: Floats | None = None
    chosen: Column | None = None
    proxy: bool = False
    single: bool = False

    def draft(self, name: str, log: Log) -> Draft:
        if self.single and self.matrix is not None:
            return fixed(dict(zip(self.labels, self.matrix[0].tolist(), strict=True)), log, self.proxy)
        if self.single:
            rows = np.zeros(len(log), dtype=np.int64)
        else:
            rows = np.arange(len(log)) if self.place is None else self.rows_by_state(name, self.place, log)
        if self.matrix is None:
            assert self.chosen is not None
            return read_actions(name, Policy(self.chosen[rows]), log)
        return Draft("table", labels=self.labels, matrix=self.matrix[rows], proxy=self.proxy)

    def rows_by_state(self, name: str, place: Mapping[Any, int], log: Log) -> Codes:
        """For each log row, the row of the table that describes its state."""
        wanted = zip(*(c[log.first_rows].tolist() for c in log.state_columns.values()), strict=True)
        found = np.array([place.get(key, -1) for key in wanted])[log.state_codes]
        rule, hint = "must have a row for every state", "add the missing states to its table."
        refuse_rows(f"policy {name!r}", rule, found < 0, StateText(log), hint)
        return found

    def take(self, rows: Codes) -> Table:
        """The table on some rows of the log."""
        if self.place is not None or self.single:
            return self
        matrix, chosen = (None if part is None else part[rows] for part in (self.matrix, self.chosen))
        return replace(self, matrix=matrix, chosen=chosen)


def open_table(name: str, policy: Policy, log: Log, rows: int) -> Table:
    """A table for a log of so many rows, of which `log` holds the first."""
    columns = frame_to_columns(index_as_column(name, policy.source, log))
    size = len(next(iter(columns.values()), ()))
    keys = [h for h in log.state_columns if h in columns]
    place: dict[Any, int] | None = None
    if len(keys) == len(log.state_columns):
        clean = {h: labels_column(columns[h], f"policy {name!r}: column {h!r}") for h in keys}
        columns = {h: c for h, c in columns.items() if h not in keys}
        same = size == rows and all(np.array_equal(c[: len(log)], log.state_columns[h]) for h, c in clean.items())
        place = None if same else places(name, list(clean.values()), list(columns.values()))
    else:
        partial = [h for h in keys if match_label(h, log.action_space) not in log.action_space]
        if partial:
            lacking = [h for h in log.state_columns if h not in columns]
            raise PodiumError(
                f"policy {name!r}: its table has the state column {partial[0]!r} and lacks {lacking[0]!r}",
                hint="give every state column as a key, or none and one row per log row.",
            )
        if size not in (1, rows):
            raise PodiumError(
                f"policy {name!r}: its table has {count(size, 'row')}; the log has {count(rows, 'row')}",
                hint=f"give one row per log row in the same order, a single row for all, or key it by "
                f"{', '.join(log.state_columns)}.",
            )
    single = size == 1 < rows and place is None
    if list(columns) == [log.header("action")]:
        return Table(place, chosen=owned(columns[log.header("action")]), single=single)
    labels, matrix = read_cells(name, columns, log, policy.proxy)
    if single and not policy.proxy:
        matrix = np.array([list(normalized(dict(zip(labels, matrix[0], strict=True)), f"policy {name!r}").values())])
    elif not policy.proxy:
        check_sums(f"policy {name!r}: the sum of a row of its table", matrix, labels)
    return Table(place, labels, matrix, proxy=policy.proxy, single=single)


def places(name: str, keys: Sequence[Column], cells: Sequence[Column]) -> dict[Any, int]:
    """The row of a table that describes each state; rows of one state must not differ."""
    place: dict[Any, int] = {}
    for i, key in enumerate(zip(*(k.tolist() for k in keys), strict=True)):
        j = place.setdefault(key, i)
        if j != i and any(c[i] != c[j] for c in cells):
            raise PodiumError(
                f"policy {name!r}: rows {j + 1} and {i + 1} of its table describe one state and differ",
                hint="keep one row per state, or one row per log row in the same order.",
            )
    return place


def index_as_column(name: str, table: Any, log: Log) -> Any:
    """A pandas frame that holds the states as its index, with the states as columns; other frames as they are."""
    index: Any = getattr(table, "index", None)
    if not hasattr(index, "names") or isinstance(table, ColumnTable):
        return table
    if set(index.names) & set(log.state_columns):
        return table.reset_index()
    if index.dtype.kind in "iu" or len(index) == 0:
        return table
    raise PodiumError(
        f"policy {name!r}: its table has an index of labels, such as {show_value(index[0])}",
        hint=f"make the states a column (table.reset_index()), named {', '.join(log.state_columns)}.",
    )


def read_mapping(name: str, table: Mapping[Any, Any], log: Log, proxy: bool) -> Draft:
    if is_shares(table, log):
        return read_shares(name, Policy(table), log)
    answers = [as_mapping(table.get(label, MISSING)) for label in log.state_labels]
    refuse_rows(
        f"policy {name!r}",
        "must name every state",
        np.array([a is MISSING for a in answers])[log.state_codes],
        StateText(log),
        "add the missing states to the table.",
    )
    if all(isinstance(a, Mapping) for a in answers):
        labels = tuple(dict.fromkeys(x for a in answers for x in a))
        cells = {x: to_array([a.get(x, 0.0) for a in answers])[log.state_codes] for x in labels}
        columns = [probabilities(c, f"policy {name!r}: action {show_value(x)}", 1, proxy) for x, c in cells.items()]
        matrix = np.column_stack(columns) if columns else np.zeros((len(log), 0))
        return Draft("table", labels=tuple(plain(x) for x in labels), matrix=matrix, proxy=proxy)
    rows = all(isinstance(a, tuple) for a in answers) and not set(answers) <= set(log.action_space)
    array = to_array([list(a) for a in answers] if rows else answers)
    if array.ndim == 2:
        return read_distribution(name, Policy(array[log.state_codes], proxy=proxy), log)
    return read_actions(name, Policy(array[log.state_codes]), log)


def as_mapping(answer: Any) -> Any:
    """A pandas Series as a mapping from its index, so that its order does not matter."""
    return dict(answer.items()) if hasattr(answer, "index") and hasattr(answer, "items") else answer


@dataclass(frozen=True)
class StateText:
    """The states of a log, row by row, for messages."""

    log: Log

    def __getitem__(self, row: int) -> Any:
        return self.log.state_labels[self.log.state_codes[row]]
