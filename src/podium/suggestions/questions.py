"""Questions that a rule asks of a state, each as a test, as words and as SQL; and every question that a log allows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Column, Floats, factorize
from podium.data.connections import name_of, quoted
from podium.data.log import Log

MOST_LEVELS = 30  # texts of one column that a rule may ask for: the most common ones
MOST_TEXTS = 1_000  # different texts of a column that is searched at all
LEAST_LEVEL = 10  # rows that a text must have to be asked for
MARK = " missing"  # how the name of a column ends that marks gaps of another one
WORDS = {
    ">=": "is at least", "<": "is below", ">": "is above", "<=": "is at most", "=": "is", "<>": "is not",
    "true": "is true", "false": "is false",
}  # fmt: skip
OPPOSITE = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "=": "<>", "<>": "=", "true": "false", "false": "true"}
# Words that SQL (DuckDB) reads as names only in quotes.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        all analyse analyze and any array as asc asymmetric at authorization between both case cast check collate
        column concurrently constraint create cross default deferrable desc describe distinct do else end except false
        fetch for foreign freeze from full glob group having ilike in initially inner intersect into is isnull join
        lambda lateral leading left like limit natural not notnull null offset on only or order outer overlaps pivot
        pivot_longer pivot_wider placing positional primary qualify references returning right select semi show
        similar some summarize symmetric table tablesample then to trailing true try_cast union unique unpivot using
        variadic verbose when where window with anti asof binary by collation columns generated map struct tuple
        unpack current_catalog current_date current_role current_schema current_time current_timestamp current_user
        localtime localtimestamp session_user user
        """,
    )
)


@dataclass(frozen=True)
class Question:
    """Whether a state column stands in a relation to a value."""

    column: str
    relation: str
    value: Any = None

    def holds(self, columns: Mapping[str, Column]) -> NDArray[np.bool_]:
        """(N,) in which rows the answer is yes."""
        column = columns[self.column]
        if self.relation in ("true", "false"):
            return np.asarray(column.astype(bool) == (self.relation == "true"))
        compare = {
            ">=": np.greater_equal, "<": np.less, ">": np.greater, "<=": np.less_equal, "=": np.equal,
            "<>": np.not_equal,
        }[self.relation]  # fmt: skip
        return np.asarray(compare(column, self.value), dtype=bool)

    @property
    def negated(self) -> Question:
        return replace(self, relation=OPPOSITE[self.relation])

    @property
    def words(self) -> str:
        """The question as a part of a sentence.

        >>> Question("age", ">=", 66).words, Question("city", "=", "oslo").words, Question("age missing", ">=", 1).words
        ('age is at least 66', "city is 'oslo'", 'age is missing')
        """
        if self.column.endswith(MARK) and (self.relation, self.value) in ((">=", 1), ("<", 1)):
            return f"{self.column.removesuffix(MARK)} is {'' if self.relation == '>=' else 'not '}missing"
        value = "" if self.value is None else f" {self.value!r}"
        return f"{self.column} {WORDS[self.relation]}{value}"

    @property
    def sql(self) -> str:
        """The question as SQL.

        >>> Question("age", ">=", 66).sql, Question("home city", "<>", "it's").sql, Question("new", "false").sql
        ('age >= 66', '"home city" <> \\'it\\'\\'s\\'', 'NOT new')
        """
        name = sql_name(self.column)
        if self.relation in ("true", "false"):
            return name if self.relation == "true" else f"NOT {name}"
        return f"{name} {self.relation} {sql_value(self.value)}"

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "relation": self.relation, "value": self.value}


def sql_name(column: str) -> str:
    """A column as SQL names it; quoted only where it must be."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column) and column.lower() not in RESERVED
    return column if plain else name_of(column)


def sql_value(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else repr(value)


def without_looser(path: tuple[Question, ...]) -> tuple[Question, ...]:
    """A chain of questions without those that a later one of the same kind implies.

    >>> [q.sql for q in without_looser((Question("age", ">=", 50), Question("age", ">=", 66)))]
    ['age >= 66']
    """
    last = {(q.column, q.relation) if q.relation in (">=", "<", ">", "<=") else (n, ""): q for n, q in enumerate(path)}
    return tuple(last.values())


@dataclass(frozen=True, eq=False)
class Feature:
    """A column that a tree may split on, coded as whole numbers so that nothing is rounded."""

    codes: Codes  # (n,)
    column: str
    values: Column  # by code; of a text, its one level

    def question(self, below: int) -> Question:
        """The question whose answer is yes for codes above `below`."""
        if self.values.dtype.kind == "O":
            return Question(self.column, "=", str(self.values[0]))
        if self.values.dtype.kind == "b":
            return Question(self.column, "true")
        low, high = self.values[below], self.values[below + 1]
        if self.values.dtype.kind in "iu":
            return Question(self.column, ">=", (int(low) + int(high) + 1) // 2)
        return Question(self.column, ">", short_between(float(low), float(high)))


def features_of(log: Log) -> tuple[list[Feature], list[str]]:
    """Everything that a rule may ask of the states of a log, and the columns of other kinds, which it may not."""
    found: list[Feature] = []
    skipped: list[str] = []
    for header, column in log.state_columns.items():
        if column.dtype.kind in "iufb":
            values, codes = np.unique(column, return_inverse=True)
            found += [Feature(codes.astype(np.int64), header, values)] if len(values) > 1 else []
        elif all(isinstance(x, str) for x in column) and len(factorize(column)[1]) <= MOST_TEXTS:
            found += levels_of(header, column)
        else:
            skipped.append(header)
    return found, skipped


def levels_of(header: str, column: Column) -> Iterator[Feature]:
    """A feature for each of the most common texts of a column."""
    codes, texts = factorize(column)
    counts = np.bincount(codes)
    if len(texts) < 2:
        return
    for c in np.argsort(-counts, kind="stable")[:MOST_LEVELS]:
        if counts[c] >= LEAST_LEVEL:
            yield Feature((codes == c).astype(np.int64), header, np.array([texts[c]], dtype=object))


def short_between(low: float, high: float) -> float:
    """The number of fewest digits that is at least `low` and below `high`, as near the middle as that allows.

    >>> short_between(0.1234, 0.2345), short_between(64.2, 65.9), short_between(-0.31, -0.302)
    (0.2, 65.0, -0.31)
    """
    middle = Decimal(low) + (Decimal(high) - Decimal(low)) / 2
    for digits in range(1, 18):
        down = Context(prec=digits, rounding=ROUND_FLOOR)
        near = float(Context(prec=digits).create_decimal(middle))
        floor = float(down.create_decimal(middle))
        for number in (near, floor):
            if low <= number < high:
                return number
    return low


def matrix_of(features: list[Feature], n: int) -> Floats:
    """(n, d) the codes of all features."""
    return np.column_stack([f.codes for f in features]).astype(np.float64) if features else np.zeros((n, 0))
