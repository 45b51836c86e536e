"""Lists and objects of DuckDB's tables as columns, named as `podium.data.nested` names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.data.connections import name_of, quoted
from podium.data.nested import LONGEST
from podium.engines.texts import flattened

if TYPE_CHECKING:
    import duckdb

LIST = re.compile(r"(?P<inside>.+)\[(?P<size>\d*)\]", re.DOTALL)
NUMBERS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "DOUBLE",
)  # fmt: skip


@dataclass(frozen=True)
class Nested:
    """What is inside the columns of rows that DuckDB reads.

    Parameters
    ----------
    connection : of DuckDB
    rows : what can stand after FROM
    texts : also lists of texts become columns, as in JSON
    """

    connection: duckdb.DuckDBPyConnection
    rows: str
    texts: bool = False

    def columns(self, kinds: Mapping[str, str]) -> list[tuple[str, str]]:
        """(header, SQL) of the columns that those of these kinds become."""
        return [part for h, kind in kinds.items() for part in flattened(h, name_of(h), kind, self.members)]

    def members(self, cell: str, kind: str) -> list[tuple[str, str, str]] | None:
        """What is inside a list or an object; None where it stays as it is."""
        match = LIST.fullmatch(kind)
        if match is not None:
            if not self.texts and not is_feature(match["inside"]):
                return None
            ((longest,),) = self.connection.execute(f"SELECT max(len({cell})) FROM {self.rows}").fetchall()
            if not self.texts and (longest or 0) > LONGEST:
                return None
            return [(f"[{i}]", f"{cell}[{i + 1}]", match["inside"]) for i in range(longest or 0)]
        if not kind.startswith("STRUCT("):
            return None
        inside = self.connection.execute(f"DESCRIBE SELECT unnest({cell}) FROM {self.rows}").fetchall()
        return [(f":{name}", f"{cell}[{quoted(name)}]", str(inner)) for name, inner, *_ in inside]


def is_nested(kind: str) -> bool:
    """Whether a column of this type becomes several columns."""
    match = LIST.fullmatch(kind)
    return kind.startswith("STRUCT(") if match is None else is_feature(match["inside"])


def is_feature(kind: str) -> bool:
    """Whether the values of a list are numbers, truth values, or lists and objects."""
    match = LIST.fullmatch(kind)
    return kind in NUMBERS or kind.startswith("STRUCT(") if match is None else is_feature(match["inside"])
