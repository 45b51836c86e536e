"""Policies as SQL: an expression over the log's columns that names the chosen action, run by DuckDB."""

from __future__ import annotations

from podium.columns import Column, is_missing, to_array
from podium.errors import MissingExtra, PodiumError, refuse_rows
from podium.frames import columns_to_frame
from podium.log import Log

ROW = "podium row number"


def chosen_actions(name: str, expression: str, log: Log) -> Column:
    """(N,) the action that the expression chooses in each row; it may see what a policy may know: not the
    logged action, its reward or its probability."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtra("duckdb", "duckdb", "a policy in SQL") from error
    visible = visible_columns(log)
    table = columns_to_frame({**visible, ROW: _row_numbers(log)}, "pyarrow")
    with duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False}) as connection:
        connection.execute("SET python_enable_replacements = false")
        connection.register("log", table)
        connection.execute("SET lock_configuration = true")
        query = f'SELECT ({expression}\n) AS action FROM log ORDER BY "{ROW}"'
        try:
            if len(connection.extract_statements(query)) != 1:
                raise PodiumError(f"policy {name!r}: the SQL must be one expression", hint=columns_hint(visible))
            answer = connection.execute(query).fetchnumpy()["action"]
        except duckdb.Error as error:
            first = str(error).split("\n")[0]
            raise PodiumError(f"policy {name!r}: the SQL cannot be run: {first}", hint=columns_hint(visible)) from error
    column = to_array(answer.filled(None) if answer.dtype == object and hasattr(answer, "filled") else answer)
    empty = getattr(answer, "mask", is_missing(column))
    if len(column) == len(log):
        refuse_rows(
            f"policy {name!r}", "must choose an action in every row", empty | is_missing(column),
            column.astype(object), "add an ELSE to the CASE.",
        )  # fmt: skip
    return column


def visible_columns(log: Log) -> dict[str, Column]:
    """The columns that a rule may use."""
    hidden = {log.header(role) for role in ("action", "reward", "propensity")}
    source = {**log.state_columns, **log.columns} if log.columns else dict(log.state_columns)
    policy = {h for h in source if h.startswith(("pi_", log.header("propensity") + ":"))}
    return {h: c for h, c in source.items() if h in log.state_columns or h not in hidden | policy}


def columns_hint(visible: dict[str, Column]) -> str:
    names = ", ".join(f'"{h}"' if not h.isidentifier() else h for h in visible)
    return f"write CASE WHEN ... THEN 'a' ELSE 'b' END over {names}; a policy may not see action or reward."


def _row_numbers(log: Log) -> Column:
    import numpy as np

    return np.arange(len(log))
