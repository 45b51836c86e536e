"""State columns that look like IDs, times or units: they make states that never come back, or rows that depend.

Each column is judged by itself. Numbers with fractions are features however many values they have, and so are whole
numbers, unless they count the rows or have the name of an ID.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import date, datetime

import numpy as np

from podium.data.columns import Column, factorize
from podium.data.facts import Fact
from podium.data.log import Log
from podium.verdicts.leaks import remedy

FEW_ROWS = 20
UNIQUE = 0.9  # share of rows with a value of their own from which a column identifies rows
COMPACT = 1.5  # numbers of an ID run through at most this many times as many values as there are rows
LEAST_UNITS, MOST_ROWS = 5, 100  # units with fewer members, or more rows on average, are categories
TELLING = 500  # values that are looked at for whether they are dates
EPOCH = ((8e8, 3e9), (8e11, 3e12), (8e17, 3e18))  # seconds, milliseconds and nanoseconds since 1970
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?\s*")
IDS = {"id", "ids", "uuid", "guid", "uid"}
NAMED = {
    "session", "email", "phone", "hash", "user", "person", "customer", "client", "patient", "member", "subscriber",
    "visitor", "device", "account", "household", "employee", "student", "player", "driver", "cookie",
}  # fmt: skip
KEYS = {"no", "nr", "number", "num", "key", "code", "name", "index", "ref"}  # a patient number, not a patient's age
TIMES = {"time", "timestamp", "date", "datetime", "ts"}


def state_warnings(log: Log, of: int) -> tuple[Fact, ...]:
    """What looks wrong with the state columns of a log, or of a sample of so many rows."""
    if len(log) < FEW_ROWS:
        return ()
    kinds = {name: kind_of_state(name, column, log, of) for name, column in log.state_columns.items()}
    ids = [name for name, kind in kinds.items() if kind == "id"]
    times = [name for name, kind in kinds.items() if kind == "time"]
    units = [name for name, kind in kinds.items() if kind == "unit"]
    without = remedy(log, [*ids, *times, *units])
    values = {name: len(factorize(log.state_columns[name])[1]) for name in (*ids, *units)}
    found = [Fact("state is an ID", column=name, values=values[name], rows=len(log), remedy=without) for name in ids]
    found += [Fact("state is a time", column=name, option=shlex.quote(name), remedy=without) for name in times]
    for name in units:
        option = f"--unit {shlex.quote(name)}" + (f" {without}" if without.startswith("--state") else "")
        each = len(log) / values[name]
        found.append(Fact("state is a unit", column=name, values=values[name], each=each, remedy=option))
    return tuple(found)


def kind_of_state(name: str, column: Column, log: Log, of: int) -> str:
    """What a state column seems to be: "id", "time", "unit", or "" for a feature."""
    codes, distinct = factorize(column)
    words = words_of(name)
    singles = np.bincount(codes) == 1
    alone = float(singles[codes].mean())
    if is_time(column, distinct, words) and len(distinct) >= LEAST_UNITS:
        return "time"
    if not (is_text(column) or is_whole(column)):
        return ""
    named = names_someone(words)
    counts_rows = is_whole(column) and float(distinct[-1]) - float(distinct[0]) < COMPACT * of
    if alone >= UNIQUE and (named or is_text(column) or counts_rows):
        return "id"
    each = len(log) / len(distinct)
    if log.units is None and named and len(distinct) >= LEAST_UNITS and 1 < each <= MOST_ROWS:
        return "unit"
    return ""


def words_of(name: str) -> list[str]:
    """The words of a header, numbers apart.

    >>> words_of("userId"), words_of("session_id.1")
    (['user', 'id'], ['session', 'id'])
    """
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", parted) if not word.isdecimal()]


def names_someone(words: Sequence[str]) -> bool:
    """Whether a header stands for a person, a device or an ID, and not for something about one.

    >>> [names_someone(words_of(name)) for name in ("Patient no.", "id_of_row", "Patient Age", "session length")]
    [True, True, False, False]
    """
    last = next((word for word in reversed(words) if word not in KEYS), "")
    return bool(IDS & set(words)) or last in NAMED


def is_text(column: Column) -> bool:
    return column.dtype.kind in "OU" and all(isinstance(x, str) for x in column[:TELLING])


def is_whole(column: Column) -> bool:
    """Whether a column holds whole numbers."""
    if column.dtype.kind in "iu":
        return True
    return column.dtype.kind == "f" and bool((column == np.round(column)).all())


def is_time(column: Column, distinct: Column, words: Sequence[str]) -> bool:
    """Whether a column holds dates or times, by its values; numbers since 1970 also need the name of one, or grow."""
    if column.dtype.kind == "M":
        return True
    some = distinct[:TELLING]
    if column.dtype.kind in "OU":
        dated = [isinstance(x, datetime | date) or (isinstance(x, str) and DATE.fullmatch(x) is not None) for x in some]
        return float(np.mean(dated)) >= UNIQUE
    if column.dtype.kind not in "iuf":
        return False
    low, high = float(distinct[0]), float(distinct[-1])
    since = any(start <= low and high <= end for start, end in EPOCH)
    return since and (bool(TIMES & set(words)) or bool((np.diff(column.astype(np.float64)) >= 0).all()))
