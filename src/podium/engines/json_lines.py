"""JSON lines as DuckDB reads them: strictly, every value as it is written, lists and objects as several columns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from podium.data.connections import file_list, name_of, quoted
from podium.data.errors import PodiumError
from podium.data.read import Pairs, flatten, start_of
from podium.engines import check_twins
from podium.engines.nested import Nested
from podium.engines.texts import EXACT, MERGED

if TYPE_CHECKING:
    import duckdb

GUESSED = re.compile(  # a type outside of quoted names of fields
    r'"(?:[^"]|"")*"|\b(DATE|TIME|TIMESTAMP(?:_S|_MS|_NS)?(?: WITH TIME ZONE)?|UUID)\b(?=[,)\[]|$)'
)
BLOCK = 1 << 20  # bytes that are looked through at once
BEYOND = 2.0**63  # from where on numbers are not of 64 bits
TEXTS, NUMBERS = r'"(?:[^"\\]|\\.)*"', r"[-0-9.eE+]+"  # in JSON
KEYS_OF = 100  # lines of JSON in which names are looked for that DuckDB would change
OPTIONS = (  # every row is looked at, and objects of many or rare keys stay objects
    "format = 'newline_delimited', sample_size = -1, union_by_name = true, hive_partitioning = false, "
    "map_inference_threshold = -1, field_appearance_threshold = 0"
)


@dataclass(frozen=True)
class JsonLines:
    """Files of JSON lines behind a connection of DuckDB."""

    connection: duckdb.DuckDBPyConnection
    files: Sequence[Path]

    def open(self) -> tuple[str, list[str], list[tuple[str, str]]]:
        """What can stand after FROM, its columns, and (header, SQL) of the columns that they become."""
        for file in self.files:
            check_twins(first_keys(file), file.name, "DuckDB")
            check_commas(file)
        raw = f"read_json({file_list(self.files)}, {OPTIONS})"
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {raw}").fetchall()
        found = {column: kind for column, kind, *_ in described}
        kinds = {column: as_written(kind) for column, kind in found.items()}
        if kinds != found:
            columns = ", ".join(f"{quoted(column)}: {quoted(kind)}" for column, kind in kinds.items())
            raw = f"read_json({file_list(self.files)}, {OPTIONS}, columns = {{{columns}}})"
        return raw, list(kinds), Nested(self.connection, raw, texts=True).columns(kinds)

    def of_one_kind(self, parts: Sequence[tuple[str, str]], raw: str) -> str:
        """A query for columns of one kind each.

        Values of several kinds are refused: DuckDB keeps them as texts, and 1 and "1" would be the same.
        """
        query = f"SELECT {', '.join(f'{cell} AS {name_of(header)}' for header, cell in parts)} FROM {raw}"
        unsigned = []
        for header, kind, *_ in self.connection.execute(f"DESCRIBE {query}").fetchall():
            name = name_of(header)
            if kind == "JSON":
                ((filled,),) = self.connection.execute(f"SELECT count({name}) FROM ({query})").fetchall()
                if filled:
                    raise PodiumError(
                        f"{self.files[0].name}: the column {header!r} mixes several kinds of values",
                        hint="give every row the same kind of value.",
                    )
            elif kind == "HUGEINT":  # which Parquet does not hold
                ((least,),) = self.connection.execute(f"SELECT min({name}) FROM ({query})").fetchall()
                if least is not None and least < 0:
                    raise self.rounded(header)
                unsigned.append(f"CAST({name} AS UBIGINT) AS {name}")
        return f"SELECT * REPLACE ({', '.join(unsigned)}) FROM ({query})" if unsigned else query

    def refuse_rounded(self, headers: Sequence[str], rows: str) -> None:
        """Refuse whole numbers that DuckDB reads as floats which do not tell them apart.

        Large numbers with a point or an exponent are floats already, and stay.
        """
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        doubles = [header for header, kind, *_ in described if kind == "DOUBLE" and header in set(headers)]
        tests = []
        for name in map(name_of, doubles):
            tests.append(f"coalesce(max(abs({name})) FILTER (isfinite({name})), 0)")
            tests.append(f"count_if(isfinite({name}) AND {name} <> trunc({name}))")
        found = self.connection.execute(f"SELECT {', '.join(tests)} FROM {rows}").fetchall()[0] if tests else ()
        for header, largest, fractions in zip(doubles, found[::2], found[1::2], strict=True):
            if largest >= BEYOND and not fractions:
                raise self.rounded(header)
            if largest >= EXACT and fractions and self.written_whole(header):
                raise PodiumError(
                    f"{self.files[0].name}: the column {header!r} {MERGED}",
                    hint="write all of its values as texts, or all numbers in one form.",
                )

    def written_whole(self, header: str) -> bool:
        """Whether a column, or the list or object that it comes from, holds whole numbers beyond what floats hold."""
        for column in (header[:i] for i in range(len(header), 0, -1) if header[i : i + 1] in ("", ":", "[")):
            cells = f"read_json({file_list(self.files)}, {OPTIONS}, columns = {{{quoted(column)}: 'JSON'}})"
            outside = f"regexp_replace(CAST({name_of(column)} AS VARCHAR), {quoted(TEXTS)}, '', 'g')"
            numbers = f"unnest(regexp_extract_all({outside}, {quoted(NUMBERS)}))"
            large = f"regexp_full_match(number, '-?[0-9]+') AND abs(CAST(number AS DOUBLE)) >= {EXACT}"
            query = f"SELECT count_if({large}) FROM (SELECT {numbers} AS number FROM {cells})"
            if self.connection.execute(query).fetchall()[0][0]:
                return True
        return False

    def rounded(self, header: str) -> PodiumError:
        return PodiumError(
            f"{self.files[0].name}: the column {header!r} holds whole numbers of more than 64 bits",
            hint="write them as texts, or use engine='memory'.",
        )


def first_keys(file: Path) -> list[str]:
    """The columns in the first lines of a file of JSON lines."""
    start = start_of(file)
    if not start.strip():
        raise PodiumError(f"{file.name} is empty", hint="write one JSON object per line.")
    found: dict[str, None] = {}
    for line in filter(str.strip, start.split("\n")[:KEYS_OF]):
        with suppress(ValueError, RecursionError):  # DuckDB says what is wrong, or the line is longer than the start
            record = json.loads(line, object_pairs_hook=Pairs)
            found |= dict.fromkeys(name for name, _ in flatten(record)) if isinstance(record, Pairs) else {}
    return list(found)


def check_commas(file: Path) -> None:
    """Refuse a comma after the last member of a list or an object, which is no JSON although DuckDB reads it."""
    rows = 0
    with file.open("rb") as opened:
        for lines in iter(partial(opened.readlines, BLOCK), []):
            suspect = has_comma(b"".join(lines))
            for line in lines:
                rows += not line.isspace()
                if suspect and has_comma(line):
                    check_line(line, f"{file.name}: row {rows}")


def has_comma(text: bytes) -> bool:
    """Whether there is a comma before a bracket, in a text or not."""
    joined = text.translate(None, b" \t\r")
    return b",}" in joined or b",]" in joined


def check_line(line: bytes, place: str) -> None:
    try:
        json.loads(line.decode("utf-8-sig", errors="replace"))
    except json.JSONDecodeError as error:
        raise PodiumError(
            f"{place} is not valid JSON: {error.msg} (character {error.colno})", hint="write one JSON object per line."
        ) from error
    except (ValueError, RecursionError):  # DuckDB says what is wrong
        return


def as_written(kind: str) -> str:
    """A type that DuckDB sees in JSON, with texts that look like dates, times or ids left as the texts they are.

    >>> as_written("STRUCT(DATE DATE, b TIMESTAMP[])")
    'STRUCT(DATE VARCHAR, b VARCHAR[])'
    """
    return GUESSED.sub(lambda found: "VARCHAR" if found[1] else found[0], kind)
