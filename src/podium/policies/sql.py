"""Policies as SQL: an expression over the log's columns that names the chosen action, run by DuckDB."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Column, is_missing, to_array
from podium.data.errors import PodiumError, needs, refuse_rows
from podium.data.frames import columns_to_frame
from podium.data.log import Log

ROW, CHOICE = "podium row number", "podium choice"


def chosen_actions(name: str, expression: str, log: Log) -> Column:
    """(N,) the action that the expression chooses in each row; it may see what a policy may know: not the
    logged action, its reward or its probability."""
    with needs("duckdb", "duckdb", "a policy in SQL"):
        import duckdb
    visible = visible_columns(log)
    for i, header in enumerate(visible):
        twin = next((h for h in list(visible)[:i] if h.lower() == header.lower()), None)
        if twin is not None:
            raise PodiumError(
                f"policy {name!r}: SQL cannot tell the columns {twin!r} and {header!r} apart",
                hint="rename one of them.",
            )
    rows = np.arange(len(log))
    table = columns_to_frame({**visible, ROW: rows}, "pyarrow")
    with duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False}) as connection:
        connection.execute("SET python_enable_replacements = false")
        connection.register("log", table)
        connection.execute("SET lock_configuration = true")
        query = f'SELECT ({expression}\n) AS "{CHOICE}", "{ROW}" FROM log ORDER BY "{ROW}"'
        try:
            one = len(connection.extract_statements(query)) == 1
            answer = connection.execute(query).fetchnumpy() if one else {}
        except duckdb.Error as error:
            first = str(error).split("\n")[0]
            raise PodiumError(f"policy {name!r}: the SQL cannot be run: {first}", hint=columns_hint(visible)) from error
    if set(answer) != {CHOICE, ROW} or not np.array_equal(answer[ROW], rows):
        raise PodiumError(
            f"policy {name!r}: the SQL must be one expression with one value per row", hint=columns_hint(visible)
        )
    column = to_array(answer[CHOICE])
    hint = "add an ELSE to the CASE."
    refuse_rows(f"policy {name!r}", "must choose an action in every row", is_missing(column), column, hint)
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
