"""A log as a table: the columns that `Log.from_frame` reads back, and the first rows for notebooks."""

from __future__ import annotations

from typing import Any

from podium.data.columns import Column
from podium.data.frames import apart
from podium.outputs.display import Table, first_rows_table

FIRST = 5  # rows that a notebook shows


def log_columns(log: Any) -> dict[str, Column]:
    """The columns of a log by header; those of its file or frame stay as they were."""
    columns: dict[str, Column] = {log.header("action"): log.actions, log.header("reward"): log.rewards}
    if log.propensities is not None:
        columns[log.header("propensity")] = log.propensities
    if log.behavior is not None:
        columns |= by_action(log, log.header("propensity"), log.behavior)
    if log.eligible is not None and not any(h == log.header("eligible") for h in log.columns):
        columns |= by_action(log, log.header("eligible"), log.eligible.astype(int))
    if log.times is not None:
        columns[log.header("time")] = log.times
    if log.units is not None:
        columns[log.header("unit")] = log.units
    states, roles = ({h: c for h, c in x.items() if h not in log.columns} for x in (log.state_columns, columns))
    return {**log.columns, **apart(columns, states, "state"), **roles}


def by_action(log: Any, header: str, matrix: Any) -> dict[str, Column]:
    """The columns of a matrix (N, A), each named by its action."""
    return {f"{header}:{label}": matrix[:, j] for j, label in enumerate(log.action_space)}


def log_table(log: Any) -> Table:
    """What a notebook shows of a log: its size, and the first rows."""
    columns = [*log.state_columns.items(), (log.header("action"), log.actions), (log.header("reward"), log.rewards)]
    if log.propensities is not None:
        columns.append((log.header("propensity"), log.propensities))
    return first_rows_table(repr(log), columns, FIRST)
