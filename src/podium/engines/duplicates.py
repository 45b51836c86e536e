"""Duplicates in DuckDB: which row of each (state, action) is the latest, kept as one bit per row.

DuckDB groups the rows, on disk where memory does not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arrays import arrow_column
from podium.data.connections import name_of
from podium.data.eligible_parts import Sets
from podium.engines import ROW, Census, Keys
from podium.engines.parts import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER = name_of(ROW)
LAST = f"max({NUMBER})"
MOMENTS = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
WHOLE = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
BIT = np.left_shift(1, np.arange(8)).astype(np.uint8)
FRACTIONS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, eq=False)
class Duplicates:
    """The search for duplicates.

    Parameters
    ----------
    connection : of DuckDB
    relation : the rows, as something that can stand after FROM, with a column `ROW`
    kinds : the types of the columns
    size : how many rows there are
    watched : shows the progress of a query under a label
    check_count : refuses a number of rows that is not the one it should be
    set_of : SQL for the eligible actions of a row as a number, where they change from row to row
    """

    connection: Any
    relation: str
    kinds: Mapping[str, str]
    size: int
    watched: Callable[[str], AbstractContextManager[None]]
    check_count: Callable[[int, int], None]
    set_of: Callable[[Sets], str]

    def count(self, keys: Keys, marks: pa.BooleanArray) -> Census:
        """How many states there are, and how many have one row."""
        sizes = f"SELECT count(*) AS size FROM {self.relation} GROUP BY {', '.join(map(name_of, keys.states))}"
        with self.watched("counting states"):
            query = f"SELECT count(*), count(*) FILTER (size = 1), sum(size) FROM ({sizes})"
            ((states, single, rows),) = self.connection.execute(query).fetchall()
        self.check_count(int(rows or 0), self.size)
        return Census(states, marks.true_count, single)

    def latest(self, keys: Keys) -> pa.BooleanArray:
        """(N,) whether no later row has the same state and action."""
        import duckdb
        import pyarrow as pa

        with self.watched("latest rows"):
            try:
                bits = self.mark(keys, self.last_row(keys))
            except duckdb.ConversionException:  # texts of which DuckDB does not know all as moments
                if keys.time is None:
                    raise
                cell = name_of(keys.time)
                bits = self.mark(keys, last_of(f"coalesce(TRY_CAST({cell} AS TIMESTAMPTZ)::VARCHAR, {cell})"))
        return pa.BooleanArray.from_buffers(pa.bool_(), self.size, [None, pa.py_buffer(bits)])

    def mark(self, keys: Keys, pick: str) -> NDArray[np.uint8]:
        """One bit per row: whether it is the one that an aggregate picks of its state and action."""
        bits = np.zeros(self.size // 8 + 1, dtype=np.uint8)
        sets = [] if keys.sets is None else [self.set_of(keys.sets)]
        groups = ", ".join([*map(name_of, (*keys.states, keys.action)), *sets])
        with self.connection.sql(f"SELECT {pick} FROM {self.relation} GROUP BY {groups}").arrow(ROWS) as reader:
            for batch in reader:
                rows = batch.column(0).to_numpy()
                self.check_count(max(int(rows.max(initial=0)) + 1, self.size), self.size)
                np.add.at(bits, rows >> 3, BIT[rows & 7])  # each row is found once
        return bits

    def last_row(self, keys: Keys) -> str:
        """SQL for the last row of a group."""
        if keys.time is None:
            return LAST
        number = ordered_number(keys.time, self.kinds[keys.time])
        if self.kinds[keys.time] == "VARCHAR" and self.is_finer(keys.time):
            number = nanoseconds(keys.time)
        if number is None:
            return last_of(name_of(keys.time))
        return self.last_by(number) if self.steps_back(number) else LAST

    def is_finer(self, time: str) -> bool:
        """Whether a text has more than six digits of a second, which DuckDB's moments do not hold."""
        query = f"SELECT 1 FROM {self.relation} WHERE regexp_matches({name_of(time)}, '[.,][0-9]{{7}}') LIMIT 1"
        return bool(self.connection.execute(query).fetchall())

    def last_by(self, number: str) -> str:
        """The last row by a whole number, then by row number: packed into one, since a maximum of numbers is cheap."""
        bits = self.size.bit_length()
        return f"(max(({number})::HUGEINT * {1 << bits} + {NUMBER}) & {(1 << bits) - 1})::BIGINT"

    def steps_back(self, number: str) -> bool:
        """Whether a row comes before the row above it in time."""
        steps = f"SELECT {number} < lag({number}) OVER () AS back FROM {self.relation}"
        return bool(self.connection.execute(f"SELECT 1 FROM ({steps}) WHERE back LIMIT 1").fetchall())


def last_of(value: str) -> str:
    """SQL for the last row by any value, then by row number."""
    return f"arg_max({NUMBER}, ({value}, {NUMBER}))"


def set_sql(connection: Any, kinds: Mapping[str, str], functions: dict[Sets, str], sets: Sets) -> str:
    """SQL for the number of a row's set of eligible actions, by a function that DuckDB learns once."""
    import pyarrow as pa

    headers = sets.listing.headers

    def numbers(*columns: Any) -> Any:
        return pa.array(sets.numbers({h: arrow_column(c) for h, c in zip(headers, columns, strict=True)}))

    names = [Parameter(f"c{i}", Parameter.POSITIONAL_ONLY) for i in range(len(headers))]
    numbers.__signature__ = Signature(names)  # type: ignore[attr-defined]  # DuckDB counts them
    if sets not in functions:
        functions[sets] = f"podium_sets_{len(functions)}"
        connection.create_function(
            functions[sets], numbers, [kinds[h] for h in headers], "BIGINT", type="arrow", null_handling="special"
        )
    return f"{functions[sets]}({', '.join(map(name_of, headers))})"


def nanoseconds(time: str) -> str:
    """SQL for the text of a moment as nanoseconds, of which DuckDB itself reads the microseconds."""
    cell = name_of(time)
    whole = f"regexp_replace({cell}, '([.,][0-9]{{6}})[0-9]+', '\\1')"
    rest = f"rpad(regexp_extract({cell}, '[.,][0-9]{{6}}([0-9]{{1,3}})', 1), 3, '0')"
    return f"epoch_us(CAST({whole} AS TIMESTAMPTZ))::HUGEINT * 1000 + CAST({rest} AS BIGINT)"


def ordered_number(time: str, kind: str) -> str | None:
    """SQL for a time of this type as a whole number of at most 65 bits in the same order; None if it has none."""
    cell = name_of(time)
    if kind == "VARCHAR":
        return f"epoch_us(CAST({cell} AS TIMESTAMPTZ))"
    if kind == "TIMESTAMP_NS":
        return f"epoch_ns({cell})"
    if kind in MOMENTS:
        return f"epoch_us({cell})"
    if kind in WHOLE:
        return f"CAST({cell} AS BIGINT)"
    if kind == "UBIGINT":
        return f"CAST({cell} AS HUGEINT)"
    if kind in FRACTIONS:
        # Read as a whole number, the bits of a float ascend with it, and those of a negative one descend.
        bits = f"(CAST({cell} AS DOUBLE) + 0.0)::BIT::BIGINT"  # -0.0 + 0.0 is 0.0
        return f"CASE WHEN {bits} < 0 THEN xor({bits}, {2**63 - 1}) ELSE {bits} END"
    return None
