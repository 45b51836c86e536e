"""Policies as SQL: an expression over the log's columns that names the chosen action, run by DuckDB."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.columns import Column, is_missing, to_array
from podium.data.connections import connect, first_line, is_interrupt, name_of, quoted
from podium.data.errors import PodiumError, needs, refuse_rows
from podium.data.frames import columns_to_frame
from podium.data.log import Log

if TYPE_CHECKING:
    import duckdb

ROW, CHOICE = "podium row number", "podium choice"
FIXED = ("error",)  # DuckDB calls it volatile lest it is run too early
BY_DATE = ("age",)  # with one time, they count from today; DuckDB does not say so
SERIES = ("generate_series", "range", "unnest")  # functions that stand for a table and look at their arguments alone
LISTED = 50  # columns that a hint names


def chosen_actions(name: str, expression: str, log: Log) -> Column:
    """(N,) the action that the expression chooses in each row; it may see what a policy may know: not the
    logged action, its reward or its probability."""
    with needs("duckdb", "duckdb", "a policy in SQL"):
        import duckdb
    visible = visible_columns(log)
    check_twins(name, visible)
    rows = np.arange(len(log))
    table = columns_to_frame({**visible, ROW: rows}, "pyarrow")
    with connect({"threads": 1, "enable_external_access": False}) as connection:
        connection.register("log", table)
        connection.execute("SET lock_configuration = true")
        query = f'SELECT ({expression}\n) AS "{CHOICE}", "{ROW}" FROM log ORDER BY "{ROW}"'
        try:
            one = len(connection.extract_statements(query)) == 1
            if one:
                check_repeatable(name, query, visible)
            answer = connection.execute(query).fetchnumpy() if one else {}
        except duckdb.Error as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise PodiumError(
                f"policy {name!r}: the SQL cannot be run: {first_line(error)}", hint=columns_hint(visible)
            ) from error
        except RuntimeError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise
    if set(answer) != {CHOICE, ROW} or not np.array_equal(answer[ROW], rows):
        raise PodiumError(
            f"policy {name!r}: the SQL must be one expression with one value per row", hint=columns_hint(visible)
        )
    column = to_array(answer[CHOICE])
    hint = "add an ELSE to the CASE."
    refuse_rows(f"policy {name!r}", "must choose an action in every row", is_missing(column), column, hint)
    return column


def check_twins(name: str, visible: Collection[str]) -> None:
    """Refuse columns that SQL cannot tell apart."""
    seen: dict[str, str] = {}
    for header in visible:
        twin = seen.setdefault(header.lower(), header)
        if twin is not header:
            raise PodiumError(
                f"policy {name!r}: SQL cannot tell the columns {twin!r} and {header!r} apart",
                hint="rename one of them.",
            )


# --- the same log gives the same answer ----------------------------------------------------------------------------


def check_repeatable(name: str, query: str, columns: Iterable[str]) -> None:
    """Refuse what may differ from one run or machine to the next: chance, the clock, settings, samples."""
    what = changing_part(query, frozenset(h.lower() for h in columns))
    if what is not None:
        raise PodiumError(
            f"policy {name!r}: the SQL uses {what}, which does not depend on the log alone",
            hint="use columns of the log alone: add what you need as a column; for chance, give probabilities.",
        )


@lru_cache(maxsize=256)  # a policy is asked for many parts of a log
def changing_part(query: str, columns: frozenset[str]) -> str | None:
    """What in a query does not depend on the log alone."""
    with connect({"threads": 1}) as connection:
        return changing_query(query, columns, connection)


def changing_query(query: str, columns: Collection[str], connection: duckdb.DuckDBPyConnection) -> str | None:
    tree = parsed(query, connection)
    own = {str(node["key"]).lower() for node in nodes(tree) if set(node) == {"key", "value"}}  # WITH name AS (...)
    for node in nodes(tree):
        table = str(node["table_name"]) if node.get("type") == "BASE_TABLE" else "log"
        if table.lower() not in {"log", *own}:
            return f"the table {table!r}"
        if (what := changing_node(node, columns, connection)) is not None:
            return what
    return None


def changing_node(node: dict[str, Any], columns: Collection[str], connection: duckdb.DuckDBPyConnection) -> str | None:
    """What in a node of a parsed query may change."""
    if node.get("sample") is not None:
        return "a random sample"
    if node.get("type") == "TABLE_FUNCTION":
        inner = str(node["function"].get("function_name", "")).lower()
        return None if inner in SERIES else f"{inner}()"
    if function := str(node.get("function_name", "")).lower():
        volatile, macros = functions()
        arguments = node.get("arguments") or node.get("children") or ()  # newer and older versions of DuckDB
        inside = (changing_query(f"SELECT {text}", (), connection) for text in macros.get(function, ()))
        changes = function in volatile or (function in BY_DATE and len(arguments) == 1) or any(inside)
        return f"{function}()" if changes else None
    names: list[str] = node.get("column_names", []) if node.get("type") == "COLUMN_REF" else []
    if len(names) == 1 and names[0].lower() not in columns and is_value(names[0], connection):
        return names[0]
    return None


def parsed(query: str, connection: duckdb.DuckDBPyConnection) -> Any:
    """A query as DuckDB's parser reads it."""
    import duckdb

    text = connection.execute(f"SELECT json_serialize_sql({quoted(query)})").fetchall()[0][0]
    tree = json.loads(text)
    if tree.get("error"):
        raise duckdb.ParserException(str(tree.get("error_message")))
    return tree


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


@cache
def functions() -> tuple[set[str], dict[str, list[str]]]:
    """The functions that DuckDB's own catalog calls volatile, and what its macros stand for."""
    listing = "SELECT DISTINCT lower(function_name), stability, macro_definition, function_type FROM duckdb_functions()"
    with connect({"threads": 1}) as connection:
        found = connection.execute(listing).fetchall()
    volatile = {name for name, stability, *_ in found if stability not in (None, "CONSISTENT")} - set(FIXED)
    macros: dict[str, list[str]] = {}
    for name, _, definition, kind in found:
        if kind == "macro":
            macros.setdefault(name, []).append(definition)
    return volatile, macros


def is_value(word: str, connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a word means something without any table, as current_date does."""
    import duckdb

    try:
        connection.execute(f"DESCRIBE SELECT {word if word.isidentifier() else name_of(word)}")
    except duckdb.Error:
        return False
    return True


def visible_columns(log: Log) -> dict[str, Column]:
    """The columns that a rule may use."""
    hidden = {log.header(role) for role in ("action", "reward", "propensity")}
    source = {**log.state_columns, **log.columns} if log.columns else dict(log.state_columns)
    policy = {h for h in source if h.startswith(("pi_", log.header("propensity") + ":"))}
    return {h: c for h, c in source.items() if h in log.state_columns or h not in hidden | policy}


def columns_hint(visible: dict[str, Column]) -> str:
    names = [h if h.isidentifier() else name_of(h) for h in visible]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return (
        f"write CASE WHEN ... THEN 'a' ELSE 'b' END over {', '.join(names[:LISTED])}{more}; "
        "a policy may not see action or reward."
    )
