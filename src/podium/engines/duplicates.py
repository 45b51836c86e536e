"""Duplicates in DuckDB: how many states there are, and which row of each (state, action) is the latest.

DuckDB groups the rows, on disk where memory does not suffice; what it finds is kept as one bit per row. A row whose
state has no other row has no duplicates. Where these are the majority, only the others are grouped by action as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.engines import ROW, Census, Keys
from podium.engines.parts import ROWS
from podium.engines.sources import name_of

if TYPE_CHECKING:
    import pyarrow as pa

Bits = NDArray[np.uint8]
BIT = np.left_shift(1, np.arange(8)).astype(np.uint8)
ONE = 1 << 51  # more than any row number; the sum of both is exact in a float
NUMBER = name_of(ROW)
LAST = f"max({NUMBER})"
GROUPS = name_of("podium groups")
MOMENTS = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
WHOLE = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FRACTIONS = ("FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT", "UBIGINT")


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
    """

    connection: Any
    relation: str
    kinds: Mapping[str, str]
    size: int
    watched: Callable[[str], AbstractContextManager[None]]

    def find(self, keys: Keys) -> tuple[Census, pa.BooleanArray]:
        """Counts, and (N,) whether no later row has the same state and action."""
        import pyarrow as pa

        bits = np.zeros(self.size // 8 + 1, dtype=np.uint8)
        # The sum over a state is 2 * ONE or more, unless the state has a single row, whose number it then shows.
        with self.watched("counting states"):
            self.group(self.relation, keys.states, f"sum({NUMBER}::DOUBLE + {ONE})")
        alone = f"picked < {2 * ONE}"
        counts = f"SELECT count(*), count(*) FILTER ({alone}) FROM {GROUPS}"
        ((states, single),) = self.connection.execute(counts).fetchall()
        relation = self.relation
        if 2 * single > self.size:
            self.mark(bits, f"SELECT (picked - {ONE})::BIGINT FROM {GROUPS} WHERE {alone}")
            self.connection.register("podium others", pa.table({"other": truths(~bits, self.size)}))
            relation = (
                f'(SELECT rows.* FROM {relation} AS rows POSITIONAL JOIN "podium others" WHERE "podium others".other)'
            )
        with self.watched("latest rows"):
            self.group_latest(relation, keys)
        self.mark(bits, f"FROM {GROUPS}")
        self.connection.execute(f"DROP TABLE {GROUPS}")
        self.connection.unregister("podium others")
        marks = truths(bits, self.size)
        return Census(states, marks.true_count, single), marks

    def group_latest(self, relation: str, keys: Keys) -> None:
        """Pick the latest row of each (state, action)."""
        import duckdb

        columns = (*keys.states, keys.action)
        if keys.time is None:
            return self.group(relation, columns, LAST)
        kind = self.kinds[keys.time]
        if (number := ordered_number(keys.time, kind)) is not None:
            try:
                return self.group(relation, columns, self.last_by(number) if self.steps_back(number) else LAST)
            except duckdb.ConversionException:
                pass  # texts of which DuckDB does not know all as moments
        value = name_of(keys.time)
        if kind == "VARCHAR":
            value = f"coalesce(TRY_CAST({value} AS TIMESTAMPTZ)::VARCHAR, {value})"
        return self.group(relation, columns, f"arg_max({NUMBER}, ({value}, {NUMBER}))")

    def last_by(self, number: str) -> str:
        """The last row by a BIGINT, then by row number: packed into one, since a maximum of numbers costs least."""
        bits = self.size.bit_length()
        return f"(max(({number})::HUGEINT * {1 << bits} + {NUMBER}) & {(1 << bits) - 1})::BIGINT"

    def steps_back(self, number: str) -> bool:
        """Whether a row comes before the row above it in time."""
        steps = f"SELECT {number} < lag({number}) OVER () AS back FROM {self.relation}"
        return bool(self.connection.execute(f"SELECT 1 FROM ({steps}) WHERE back LIMIT 1").fetchall())

    def group(self, relation: str, columns: Sequence[str], pick: str) -> None:
        """Put what an aggregate picks of each group into the table `GROUPS`."""
        query = f"SELECT {pick} AS picked FROM {relation} GROUP BY {', '.join(map(name_of, columns))}"
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {GROUPS} AS {query}")

    def mark(self, bits: Bits, query: str) -> None:
        """Set the bits of the row numbers that a query finds; each row is found once."""
        with self.connection.sql(query).arrow(ROWS) as reader:
            for batch in reader:
                rows = batch.column(0).to_numpy()
                np.add.at(bits, rows >> 3, BIT[rows & 7])


def truths(bits: Bits, size: int) -> pa.BooleanArray:
    """(size,) the bits as truth values."""
    import pyarrow as pa

    return pa.BooleanArray.from_buffers(pa.bool_(), size, [None, pa.py_buffer(bits)])


def ordered_number(time: str, kind: str) -> str | None:
    """SQL for a time of this type as a BIGINT in the same order; None for a type that has none."""
    cell = name_of(time)
    if kind == "VARCHAR":
        return f"epoch_us(CAST({cell} AS TIMESTAMPTZ))"
    if kind == "TIMESTAMP_NS":
        return f"epoch_ns({cell})"
    if kind in MOMENTS:
        return f"epoch_us({cell})"
    if kind in WHOLE:
        return f"CAST({cell} AS BIGINT)"
    if kind in FRACTIONS or kind.startswith("DECIMAL"):
        # Read as a whole number, the bits of a float ascend with it, and those of a negative one descend.
        bits = f"(CAST({cell} AS DOUBLE) + 0.0)::BIT::BIGINT"  # -0.0 + 0.0 is 0.0
        return f"CASE WHEN {bits} < 0 THEN xor({bits}, {2**63 - 1}) ELSE {bits} END"
    return None
