"""Where the rows lie: files, tables and relations as something that DuckDB can select from, row by row numbered."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.arrays import odd_kinds
from podium.data.connections import confine, file_list, name_of, place, quoted
from podium.data.errors import PodiumError, count, listed
from podium.data.paths import Watch, check_local, exists, find_files, missing_file, regular
from podium.data.read import (
    JSON_ENDINGS,
    KINDS,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    Pairs,
    check_header,
    check_quotes,
    check_text,
    flatten,
    parquet_error,
    read_csv_header,
    separator_of,
    start_of,
    type_cells,
)
from podium.engines import ROW, check_folders, check_twins
from podium.engines.texts import cell_counts, column_kinds, flattened, mixed_columns

AT_ONCE = 64  # columns that one query counts cells of: the time that DuckDB takes grows with the square
GUESSED = re.compile(  # a type, and no quoted name of a field
    r'"(?:[^"]|"")*"|\b(DATE|TIME|TIMESTAMP(?:_S|_MS|_NS)?(?: WITH TIME ZONE)?|UUID)\b(?=[,)\[]|$)'
)
DATABASE_ENDINGS = (".duckdb", ".db")
OWN = ("file_row_number", "file_index")  # columns by which DuckDB numbers the rows of files
KEYS_OF = 100  # lines of JSON in which names are looked for that DuckDB would change
NO_TABLE = "podium reads tables; make one of a view with CREATE TABLE log AS FROM view."
PERMISSIONS = "check the file's permissions."


@dataclass(eq=False)
class DuckSource:
    """The rows of a source, told apart by their numbers; what is no Parquet is typed and kept as such.

    Parameters
    ----------
    source, table, text : as in `podium.engines.duckdb.DuckEngine`
    connection : of DuckDB
    folder : for copies
    allow : lets DuckDB hold what a query of so many columns needs
    """

    source: Any
    table: str | None
    text: Sequence[str]
    connection: Any
    folder: Path
    allow: Callable[[int], None]
    size: int = field(default=0, init=False)  # known once they are open
    watch: Watch = field(default_factory=lambda: Watch(()), init=False)  # the files that passes read
    mixed: frozenset[str] = field(default=frozenset(), init=False)  # columns of texts with numbers among them
    odd: dict[str, str] = field(default_factory=dict, init=False)  # columns of types that DuckDB reads as others

    def open(self) -> str:
        """The rows as something that can stand after FROM, with a column `ROW`."""
        if not isinstance(self.source, str | Path):
            confine(self.connection, (), self.folder)
            return self.from_relation()
        if self.table is not None or is_database(Path(self.source)):
            return self.from_database(Path(self.source))
        found = find_files(self.source, KINDS)
        files = found.files
        ending = files[0].suffix.lower()
        others = [f for f in files if f.suffix.lower() != ending]
        if others:
            raise PodiumError(
                f"{str(self.source)!r} holds files of several kinds: {files[0].name} and {others[0].name}",
                hint="name files of one kind, such as 'log/*.parquet'.",
            )
        confine(self.connection, files, self.folder)
        self.watch = Watch(files)
        if ending in PARQUET_ENDINGS:
            return self.from_parquet(files, found.folder_values())
        if ending in TEXT_ENDINGS:
            return self.from_text(files)
        if ending in JSON_ENDINGS:
            return self.from_json(files)
        known = ", ".join((*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS))
        raise PodiumError(f"{files[0].name!r} has an ending that podium does not know", hint=f"known endings: {known}.")

    def from_parquet(self, files: Sequence[Path], folders: Mapping[str, Sequence[str | None]]) -> str:
        """Parquet files one after the other; what the names of their folders say are further columns."""
        sizes, names = self.parquet_sizes(files)
        check_folders(folders, names, files[0])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(starts[-1])
        row = "file_row_number"
        if len(files) > 1:
            row += f" + {of_file(map(str, starts[:-1].tolist()), 'BIGINT')}"
        columns = "".join(f"{folder_column(values)} AS {name_of(name)}, " for name, values in folders.items())
        rows = f"read_parquet({file_list(files)}, hive_partitioning = false)"
        return f"(SELECT *, {columns}({row})::BIGINT AS {name_of(ROW)} FROM {rows})"

    def parquet_sizes(self, files: Sequence[Path]) -> tuple[list[int], list[str]]:
        """The rows of each file, and the columns; every file must hold those of the first, of the same types."""
        sizes: list[int] = []
        first: dict[str, Any] = {}
        for file in files:
            schema, rows = parquet_schema(file)
            kinds = dict(zip(schema.names, schema.types, strict=True))
            if not sizes:
                first = kinds
                check_columns(schema.names, file)
                self.odd |= odd_kinds(schema)
            for column, kind in first.items():
                if column not in kinds:
                    raise PodiumError(
                        f"{file.name} has no column {column!r}; {files[0].name} has",
                        hint="give every file the same columns.",
                    )
                if not same_kind(kinds[column], kind):
                    raise PodiumError(
                        f"the column {column!r} is {kinds[column]} in {file.name} and {kind} in {files[0].name}",
                        hint="give a column the same type in every file.",
                    )
            if extra := [c for c in kinds if c not in first]:
                raise PodiumError(
                    f"{files[0].name} has no column {extra[0]!r}; {file.name} has",
                    hint="give every file the same columns.",
                )
            if len(kinds) < len(schema.names):
                check_columns(schema.names, file)
            sizes.append(rows)
        return sizes, list(first)

    def from_text(self, files: Sequence[Path]) -> str:
        """CSV files, typed as `podium.data.read` types them and kept as Parquet in the temporary folder."""
        first = files[0]
        header = read_csv_header(first)
        check_columns(header, first)
        for file in files[1:]:
            other = read_csv_header(file)
            if other != header:
                lacking = sorted(set(header) ^ set(other), key=(header + other).index)
                detail = f"the column {lacking[0]!r} is in one and not in the other" if lacking else "in another order"
                raise PodiumError(
                    f"{file.name} and {first.name} have different headers: {detail}",
                    hint="give every file the same columns in the same order.",
                )
        check_text(first.name, self.text, header)
        columns = ", ".join(f"{quoted(h)}: 'VARCHAR'" for h in header)
        separator = separator_of(start_of(first), first)
        counted = [check_quotes(file, separator) for file in files]
        raw = (
            f"read_csv({file_list(files)}, columns = {{{columns}}}, header = true, delim = {quoted(separator)}, "
            "quote = '\"', escape = '\"', auto_detect = false, strict_mode = true, null_padding = false, nullstr = '', "
            "parallel = false)"
        )
        opened = self.typed(raw, header)
        known = [rows for rows in counted if rows is not None]
        if len(known) == len(files) and sum(known) != self.size:
            raise PodiumError(
                f"{first.name} holds {count(sum(known), 'row')}, and DuckDB reads {self.size:,}",
                hint="look for line breaks inside quotes, or use engine='memory'.",
            )
        return opened

    def typed(self, raw: str, header: Sequence[str]) -> str:
        """Texts as numbers where every cell of a column is one and none is a code such as 007."""
        self.allow(len(header))
        copy = self.folder / "texts.parquet"
        self.connection.execute(f"COPY (SELECT * FROM {raw}) TO {quoted(place(copy))} (FORMAT parquet)")
        texts = f"read_parquet({file_list([copy])})"
        counts: list[int] = []
        for some in range(0, len(header), AT_ONCE):
            tests = [test for h in header[some : some + AT_ONCE] for test in cell_counts(name_of(h), matches)]
            counts += self.connection.execute(f"SELECT {', '.join(tests)} FROM {texts}").fetchall()[0]
        self.mixed = mixed_columns(header, counts, self.text)
        casts = []
        for h, kind in zip(header, column_kinds(header, counts, self.text), strict=True):
            cell = name_of(h) if kind is None else f"CAST(trim({name_of(h)}) AS {kind})"
            casts.append(f"{cell} AS {name_of(h)}")
        opened = self.kept(f"SELECT {', '.join(casts)} FROM {texts}")
        copy.unlink()
        return opened

    def kept(self, query: str) -> str:
        """The rows of a query, kept as Parquet in the temporary folder: from now on, only this copy is read."""
        copy = self.folder / "rows.parquet"
        self.connection.execute(f"COPY ({query}) TO {quoted(place(copy))} (FORMAT parquet)")
        self.watch.check()
        self.watch = Watch(())
        return self.from_parquet([copy], {})

    def from_json(self, files: Sequence[Path]) -> str:
        """JSON lines, kept as Parquet in the temporary folder; lists and objects become several columns."""
        for file in files:
            check_twins(first_keys(file), file.name, "DuckDB")
        options = "format = 'newline_delimited', sample_size = -1, union_by_name = true, map_inference_threshold = -1"
        raw = f"read_json({file_list(files)}, {options})"
        found = {
            column: kind for column, kind, *_ in self.connection.execute(f"DESCRIBE SELECT * FROM {raw}").fetchall()
        }
        kinds = {column: as_written(kind) for column, kind in found.items()}
        if kinds != found:
            columns = ", ".join(f"{quoted(column)}: {quoted(kind)}" for column, kind in kinds.items())
            raw = f"read_json({file_list(files)}, {options}, columns = {{{columns}}})"
        parts = [
            part
            for column, kind in kinds.items()
            for part in flattened(column, name_of(column), kind, partial(self.members, raw))
        ]
        self.allow(len(parts))
        selected = f"SELECT {', '.join(f'{cell} AS {name_of(header)}' for header, cell in parts)} FROM {raw}"
        self.refuse_mixed(selected, files[0])
        return self.kept(selected)

    def refuse_mixed(self, selected: str, first: Path) -> None:
        """Refuse values of several kinds, which DuckDB keeps as texts: 1 and "1" would be the same."""
        for header, kind, *_ in self.connection.execute(f"DESCRIBE {selected}").fetchall():
            if kind == "JSON":
                ((filled,),) = self.connection.execute(f"SELECT count({name_of(header)}) FROM ({selected})").fetchall()
                if filled:
                    raise PodiumError(
                        f"{first.name}: the column {header!r} mixes several kinds of values",
                        hint="give every row the same kind of value.",
                    )

    def members(self, raw: str, cell: str, kind: str) -> list[tuple[str, str, str]] | None:
        """What is inside a list or an object of JSON."""
        if kind.endswith("[]"):
            ((longest,),) = self.connection.execute(f"SELECT max(len({cell})) FROM {raw}").fetchall()
            return [(f"[{i}]", f"{cell}[{i + 1}]", kind[:-2]) for i in range(longest or 0)]
        if not kind.startswith("STRUCT("):
            return None
        inside = self.connection.execute(f"DESCRIBE SELECT unnest({cell}) FROM {raw}").fetchall()
        return [(f":{name}", f"{cell}[{quoted(name)}]", inner) for name, inner, *_ in inside]

    def from_database(self, path: Path) -> str:
        """A table of a DuckDB database. Views are not read: they can name other files."""
        check_local(path)
        if not exists(path):
            raise missing_file(path)
        check_database(regular(path))
        if "\\" in place(path):  # which DuckDB takes for the end of a folder
            raise PodiumError(f"DuckDB cannot open {str(path)!r}: the name holds a backslash", hint="rename the file.")
        self.watch = Watch([path])
        self.connection.execute(f"ATTACH {quoted(place(path))} AS source (READ_ONLY, TYPE duckdb)")
        confine(self.connection, (), self.folder)
        listing = "SELECT table_name, schema_name, sql FROM duckdb_tables() WHERE database_name = 'source'"
        found = {name: rest for name, *rest in self.connection.execute(listing).fetchall()}
        table = self.table or (next(iter(found)) if len(found) == 1 else None)
        if table is None or table not in found:
            raise PodiumError(
                f"{path.name} has no table {table!r}" if table else f"{path.name} has {len(found) or 'no'} tables",
                hint=(f"name one with table=; the tables are {listed(found)}." if found else NO_TABLE),
            )
        schema, definition = found[table]
        chosen = f"source.{name_of(schema)}.{name_of(table)}"
        columns = [name for name, *_ in self.connection.execute(f"DESCRIBE {chosen}").fetchall()]
        ((self.size,),) = self.connection.execute(f"SELECT count(*) FROM {chosen}").fetchall()
        if "rowid" in map(str.lower, columns) or "GENERATED ALWAYS AS" in definition:
            return self.kept(f"FROM {chosen}")  # there is no row number, or the cells may differ from pass to pass
        ((last,),) = self.connection.execute(f"SELECT max(rowid) FROM {chosen}").fetchall()
        if self.size and last != self.size - 1:  # rows have been deleted, and their numbers are missing
            return self.kept(f"FROM {chosen}")
        return f"(SELECT *, rowid AS {name_of(ROW)} FROM {chosen})"

    def from_relation(self) -> str:
        """A relation of the user's own connection, kept as Parquet in the temporary folder."""
        if not hasattr(self.source, "write_parquet"):
            raise PodiumError(
                f"a log cannot be scanned from {type(self.source).__name__}",
                hint="give a path, a pattern such as 'log/*.parquet', or a DuckDB relation.",
            )
        copy = self.folder / "rows.parquet"
        self.source.write_parquet(str(copy))
        return self.from_parquet([copy], {})


def parquet_schema(file: Path) -> tuple[Any, int]:
    """The columns of a Parquet file, and its rows."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with file.open("rb") as source, parquet.ParquetFile(source) as opened:  # a name could be taken for a URI
            return opened.schema_arrow, opened.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise parquet_error(file, error) from error


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


def check_columns(names: Sequence[str], file: Path) -> None:
    """Refuse columns that DuckDB cannot tell apart, or takes for its own."""
    check_header(names, file)
    check_twins(names, file.name, "DuckDB")
    for name in names:
        if name.lower() in OWN and file.suffix.lower() in PARQUET_ENDINGS:
            raise PodiumError(f"{file.name}: DuckDB needs the name {name!r} for itself", hint="rename that column.")


def of_file(values: Iterable[str], kind: str) -> str:
    """SQL for what holds for the file that a row comes from."""
    return f"list_extract([{', '.join(values)}]::{kind}[], (file_index + 1)::BIGINT)"


def folder_column(values: Sequence[str | None]) -> str:
    """SQL for a column that the folders of the files give, typed as a column of a CSV file would be."""
    typed = type_cells([value or "" for value in values], False)
    kind = {"i": "BIGINT", "f": "DOUBLE"}.get(typed.dtype.kind, "VARCHAR")
    return of_file(("NULL" if value is None else quoted(value) for value in values), kind)


def is_database(path: Path) -> bool:
    return path.suffix.lower() in DATABASE_ENDINGS and not (exists(path) and path.is_dir())


def check_database(file: Path) -> None:
    """Refuse a file that is no DuckDB database; what else it is, where that is known."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except OSError as error:
        raise PodiumError(f"{file.name} cannot be read: {error.strerror}", hint=PERMISSIONS) from error
    if start == b"SQLite format 3\0":
        raise PodiumError(
            f"{file.name} is an SQLite database, which podium does not read",
            hint=f"export the table: sqlite3 -header -csv {shlex.quote(str(file))} 'SELECT * FROM log' > log.csv",
        )
    if start[8:12] != b"DUCK":
        raise PodiumError(f"{file.name} is not a DuckDB database", hint="give a file that DuckDB has written.")


def as_written(kind: str) -> str:
    """A type that DuckDB sees in JSON, with texts that look like dates, times or ids left as the texts they are.

    >>> as_written("STRUCT(DATE DATE, b TIMESTAMP[])")
    'STRUCT(DATE VARCHAR, b VARCHAR[])'
    """
    return GUESSED.sub(lambda found: "VARCHAR" if found[1] else found[0], kind)


def matches(cell: str, pattern: str) -> str:
    return f"regexp_full_match({cell}, {quoted(pattern)})"


def same_kind(a: Any, b: Any) -> bool:
    """Whether two Arrow types are read alike: whole numbers of any width, numbers of any precision, texts."""
    from pyarrow import types

    if a == b:
        return True
    tests = (types.is_integer, types.is_floating, lambda t: types.is_string(t) or types.is_large_string(t))
    return any(test(a) and test(b) for test in tests)
