"""Policies as SQL: an expression over the log's columns that names the chosen action, run by DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.columns import INT64, Column, is_missing, is_unequal, kind_of, to_array
from podium.data.connections import connect, first_line, is_interrupt, name_of, quoted
from podium.data.errors import PodiumError, needs, refuse_rows
from podium.data.frames import columns_to_frame
from podium.data.log import Log
from podium.data.roles import behavior_prefixes

if TYPE_CHECKING:
    import duckdb

CHOICE = "podium choice"
FIXED = ("error",)  # DuckDB calls it volatile lest it is run too early
# DuckDB, or its older releases, do not call these volatile.
CLOCKS = ("current_localtime", "current_localtimestamp", "ago")
MACHINE = ("version", "current_setting", "getvariable", "vector_type")
BY_DATE = ("age",)  # with one time, they count from today; DuckDB does not say so
MULTIPLYING = ("unnest", "unpivot_list")  # functions that make several rows of one, or look at all columns
BEYOND = {  # parts of an expression that look at more than named columns of one row
    "SUBQUERY": "SELECT", "WINDOW": "OVER", "STAR": "*", "POSITIONAL_REFERENCE": "a column by its position"
}  # fmt: skip
LISTED = 50  # columns that a hint names
NOT_ALONE = "does not depend on the log alone"
NOT_ITS_ROW = "looks at more than the named columns of one row"
HINTS = {
    NOT_ALONE: "use columns of the log alone: add what you need as a column; for chance, give probabilities.",
    NOT_ITS_ROW: "a policy chooses row by row: add what you need of other rows, such as an average, as a column.",
}


def chosen_actions(name: str, expression: str, log: Log) -> Column:
    """(N,) the action that the expression chooses in each row; it may see what a policy may know: not the
    logged action, its reward or its probability."""
    with needs("duckdb", "duckdb", "a policy in SQL"):
        import duckdb
    visible = visible_columns(log)
    check_twins(name, visible)
    with connect({"threads": 1, "enable_external_access": False}) as connection:
        connection.register("log", columns_to_frame({h: as_in_sql(c) for h, c in visible.items()}, "pyarrow"))
        connection.execute("SET lock_configuration = true")
        try:
            check_expression(name, expression, visible)
            answer = connection.execute(f"SELECT ({expression}\n) AS {name_of(CHOICE)} FROM log").fetchnumpy()
        except duckdb.Error as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            right = quote_columns(expression, visible)
            hint = columns_hint(visible) if right == expression else f"quote names with spaces or signs: sql:{right}"
            raise PodiumError(f"policy {name!r}: the SQL cannot be run: {first_line(error)}", hint=hint) from error
        except RuntimeError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise
    column = to_array(answer[CHOICE])
    hint = "add an ELSE to the CASE."
    refuse_rows(f"policy {name!r}", "must choose an action in every row", is_missing(column), column, hint)
    return column


def as_in_sql(column: Column) -> Column:
    """A column such that its SQL type does not depend on who has read it, nor on the rows of a part.

    Numbers are BIGINT or DOUBLE (of any precision, and decimals), and a gap of any kind is NULL.
    """
    if column.dtype.kind == "O":
        present = [x for x in column if x is not None and not is_unequal(x)]
        broken = any(isinstance(x, Decimal | float | np.floating) for x in present)
        if broken and all(kind_of(x) == "number" for x in present):
            column = np.array([np.nan if x is None or is_unequal(x) else float(x) for x in column])
    if column.dtype.kind == "u" and (not len(column) or int(column.max()) in INT64):
        return column.astype(np.int64)
    if column.dtype.kind == "i":
        return column.astype(np.int64)
    if column.dtype.kind != "f":
        return column
    numbers, gaps = column.astype(np.float64), np.isnan(column)
    if not gaps.any():
        return numbers
    boxed = numbers.astype(object)
    boxed[gaps] = None
    return boxed


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


# --- the same row gives the same answer ----------------------------------------------------------------------------


def check_expression(name: str, expression: str, columns: Iterable[str]) -> None:
    """Refuse what is not a function of a row: what may differ from one run or machine to the next, such as chance,
    the clock and settings, and what looks at other rows, of which a large log shows a policy only some at once."""
    found = refused_part(expression, frozenset(h.lower() for h in columns))
    if found is None:
        return
    what, reason = found
    if not reason:
        raise PodiumError(
            f"policy {name!r}: the SQL must be one expression with one value per row", hint=columns_hint(columns)
        )
    raise PodiumError(f"policy {name!r}: the SQL uses {what}, which {reason}", hint=HINTS[reason])


@lru_cache(maxsize=256)  # a policy is asked for many parts of a log
def refused_part(expression: str, columns: frozenset[str]) -> tuple[str, str] | None:
    """What in an expression is not a function of one row, and why; ("", "") where it is not one expression."""
    with connect({"threads": 1}) as connection:
        return refused_query(f"SELECT ({expression}\n)", columns, connection)


def refused_query(
    query: str, columns: Collection[str], connection: duckdb.DuckDBPyConnection
) -> tuple[str, str] | None:
    if len(connection.extract_statements(query)) != 1:
        return "", ""
    tree = parsed(query, connection)
    found = (refused_node(node, columns, connection) for node in nodes(tree))
    part = next((part for part in found if part is not None), None)
    alone = outside(tree) == outside(parsed("SELECT (1)", connection))
    return part if part is not None or alone else ("", "")


def outside(tree: Any) -> Any:
    """A parsed query but for its one expression."""
    statement = tree["statements"][0]
    return {**statement, "node": {**statement["node"], "select_list": len(statement["node"].get("select_list", ()))}}


def refused_node(
    node: dict[str, Any], columns: Collection[str], connection: duckdb.DuckDBPyConnection
) -> tuple[str, str] | None:
    """What in a node of a parsed query is not a function of one row, and why."""
    if (what := BEYOND.get(str(node.get("class")))) is not None:
        return what, NOT_ITS_ROW
    if function := str(node.get("function_name", "")).lower():
        return refused_function(function, node, connection)
    names: list[str] = node.get("column_names", []) if node.get("type") == "COLUMN_REF" else []
    last = names[-1].lower() if names else ""
    if last == "rowid" and last not in columns:
        return names[-1], NOT_ITS_ROW
    if len(names) != 1 or last in columns:
        return None
    if last == "log":
        return "all columns at once", NOT_ITS_ROW
    return (names[0], NOT_ALONE) if is_value(names[0], connection) else None


def refused_function(
    function: str, node: dict[str, Any], connection: duckdb.DuckDBPyConnection
) -> tuple[str, str] | None:
    volatile, aggregates, macros = functions()
    if function in aggregates or function in MULTIPLYING:
        return f"{function}()", NOT_ITS_ROW
    arguments = node.get("arguments") or node.get("children") or ()  # newer and older versions of DuckDB
    if function in volatile or (function in BY_DATE and len(arguments) == 1):
        return f"{function}()", NOT_ALONE
    for text in macros.get(function, ()):
        inside = refused_query(f"SELECT ({text})", (), connection)
        if inside is not None:
            return f"{function}()", inside[1] or NOT_ALONE
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
def functions() -> tuple[set[str], set[str], dict[str, list[str]]]:
    """The functions that depend on more than their arguments, those of several rows, and what macros stand for."""
    listing = "SELECT DISTINCT lower(function_name), stability, macro_definition, function_type FROM duckdb_functions()"
    with connect({"threads": 1}) as connection:
        found = connection.execute(listing).fetchall()
    volatile = {name for name, stability, *_ in found if stability not in (None, "CONSISTENT")} - set(FIXED)
    macros: dict[str, list[str]] = {}
    for name, _, definition, kind in found:
        if kind == "macro":
            macros.setdefault(name, []).append(definition)
    return {*volatile, *CLOCKS, *MACHINE}, {name for name, _, _, kind in found if kind == "aggregate"}, macros


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
    policy = {h for h in source if h.startswith(("pi_", *behavior_prefixes(log.header("propensity"))))}
    return {h: c for h, c in source.items() if h in log.state_columns or h not in hidden | policy}


def columns_hint(visible: Iterable[str]) -> str:
    names = [h if h.isidentifier() else name_of(h) for h in visible]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return (
        f"write CASE WHEN ... THEN 'a' ELSE 'b' END over {', '.join(names[:LISTED])}{more}; "
        "a policy may not see action or reward."
    )


def quote_columns(expression: str, columns: Iterable[str]) -> str:
    """An expression in which names of columns that SQL reads only in quotes stand in quotes.

    >>> quote_columns("CASE WHEN patient age > 65 THEN 'patient age' ELSE 'b' END", ["Patient Age", "dose"])
    'CASE WHEN "Patient Age" > 65 THEN \\'patient age\\' ELSE \\'b\\' END'
    >>> quote_columns("patient_age > 65", ["Patient Age"])
    '"Patient Age" > 65'
    """
    names = list(columns)
    known = {h.lower(): h for h in names if not h.isidentifier() and not h.isdigit() and h.strip()}
    if not known:
        return expression
    plain = {h.lower() for h in names}
    spoken = {"_".join(re.findall(r"\w+", h)): header for h, header in known.items()}  # patient_age for Patient Age
    known |= {word: header for word, header in spoken.items() if word and word not in plain}
    words = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    found = re.compile(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?<!\w)(" + words + r")(?!\w)", re.IGNORECASE)
    return found.sub(lambda m: m[1] or name_of(known[m[2].lower()]), expression)
