"""Where the rows lie: files, tables and relations as something that DuckDB can select from, row by row numbered."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    check_header,
    check_quotes,
    check_text,
    parquet_error,
    read_csv_header,
    separator_of,
    start_of,
    type_cells,
)
from podium.engines import ROW, check_folders, check_twins
from podium.engines.csv_lines import plain_file
from podium.engines.json_lines import JsonLines
from podium.engines.nested import Nested, is_nested
from podium.engines.texts import cell_counts, column_kinds, mixed_columns

AT_ONCE = 64  # columns that one query counts cells of: the time that DuckDB takes grows with the square
AS_COLUMNS = 4  # columns that need as much memory as the buffer that DuckDB holds for a file of JSON lines
DATABASE_ENDINGS = (".duckdb", ".db")
OWN = ("file_row_number", "file_index")  # columns by which DuckDB numbers the rows of files
NO_TABLE = "podium reads tables; make one of a view with CREATE TABLE log AS FROM view."
PERMISSIONS = "check the file's permissions."
Folders = Mapping[str, Sequence[str | None]]  # column -> what the folder of each file says


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
        rows = self.rows()
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        kinds = {column: str(kind) for column, kind, *_ in described}
        refuse_unions(kinds)
        return self.spread(rows, kinds) if any(map(is_nested, kinds.values())) else rows

    def spread(self, rows: str, kinds: Mapping[str, str]) -> str:
        """The rows with lists of numbers and the members of objects as columns."""
        self.allow(len(kinds))
        parts = Nested(self.connection, rows).columns(kinds)
        check_columns(
            [header for header, _ in parts],
            Path(self.source if isinstance(self.source, str | Path) else "the relation"),
        )
        self.allow(len(parts))
        return f"(SELECT {', '.join(f'{cell} AS {name_of(header)}' for header, cell in parts)} FROM {rows})"

    def rows(self) -> str:
        """The rows as the source has them."""
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
            return self.from_text(files, found.folder_values())
        if ending in JSON_ENDINGS:
            return self.from_json(files, found.folder_values())
        known = ", ".join((*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS))
        raise PodiumError(f"{files[0].name!r} has an ending that podium does not know", hint=f"known endings: {known}.")

    def from_parquet(self, files: Sequence[Path], folders: Folders) -> str:
        """Parquet files one after the other; what the names of their folders say are further columns."""
        sizes, names, alike = self.parquet_sizes(files)
        check_folders(folders, names, files[0])
        check_own(names, files[0], OWN)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(starts[-1])
        row = "file_row_number"
        if len(files) > 1:
            row += f" + {of_file(map(str, starts[:-1].tolist()), 'BIGINT')}"
        columns = "".join(f"{column}, " for column in folder_columns(folders))
        # By itself, DuckDB casts numbers to the type that they have in the first file.
        options = f"hive_partitioning = false, union_by_name = {'false' if alike else 'true'}"
        rows = f"read_parquet({file_list(files)}, {options})"
        return f"(SELECT *, {columns}({row})::BIGINT AS {name_of(ROW)} FROM {rows})"

    def parquet_sizes(self, files: Sequence[Path]) -> tuple[list[int], list[str], bool]:
        """The rows of each file, the columns, and whether these are of the same type in every file.

        Every file must hold those of the first, of types that one type can hold.
        """
        sizes: list[int] = []
        first: dict[str, Any] = {}
        alike = True
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
            alike = alike and kinds == first
            sizes.append(rows)
        return sizes, list(first), alike

    def from_text(self, files: Sequence[Path], folders: Folders) -> str:
        """CSV files, typed as `podium.data.read` types them and kept as Parquet in the temporary folder."""
        first = files[0]
        header = read_csv_header(first)
        check_columns(header, first)
        check_folders(folders, header, first)
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
        plain = [plain_file(file, separator, self.folder / f"plain{i}.csv") for i, file in enumerate(files)]
        raw = (
            f"read_csv({file_list(plain)}, columns = {{{columns}}}, header = true, delim = {quoted(separator)}, "
            "quote = '\"', escape = '\"', auto_detect = false, strict_mode = true, null_padding = false, nullstr = '', "
            "parallel = false, hive_partitioning = false)"
        )
        opened = self.typed(self.with_folders(raw, header, folders, first), header, folders)
        for file in set(plain) - set(files):
            file.unlink()
        known = [rows for rows in counted if rows is not None]
        if len(known) == len(files) and sum(known) != self.size:
            raise PodiumError(
                f"{first.name} holds {count(sum(known), 'row')}, and DuckDB reads {self.size:,}",
                hint="look for line breaks inside quotes, or use engine='memory'.",
            )
        return opened

    def with_folders(self, raw: str, header: Sequence[str], folders: Folders, first: Path) -> str:
        """Rows of files with what the names of their folders say as further columns."""
        if not folders:
            return raw
        check_own(header, first, OWN[1:])
        return f"(SELECT *, {', '.join(folder_columns(folders))} FROM {raw})"

    def typed(self, raw: str, header: Sequence[str], folders: Iterable[str]) -> str:
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
        casts += map(name_of, folders)
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

    def from_json(self, files: Sequence[Path], folders: Folders) -> str:
        """JSON lines, kept as Parquet in the temporary folder; lists and objects become several columns."""
        lines, buffers = JsonLines(self.connection, files), AS_COLUMNS * len(files)
        self.allow(buffers)
        raw, columns, parts = lines.open()
        headers = [header for header, _ in parts]
        check_columns(headers, files[0])
        check_folders(folders, headers, files[0])
        self.allow(len(parts) + buffers)
        raw = self.with_folders(raw, columns, folders, files[0])
        parts += [(folder, name_of(folder)) for folder in folders]
        opened = self.kept(lines.of_one_kind(parts, raw))
        for some in range(0, len(headers), AT_ONCE):
            lines.refuse_rounded(headers[some : some + AT_ONCE], opened)
        return opened

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
        schema, table, definition = self.find_table(path)
        chosen = f"source.{name_of(schema)}.{name_of(table)}"
        columns = [name for name, *_ in self.connection.execute(f"DESCRIBE {chosen}").fetchall()]
        ((self.size,),) = self.connection.execute(f"SELECT count(*) FROM {chosen}").fetchall()
        if "rowid" in map(str.lower, columns) or "GENERATED ALWAYS AS" in definition:
            return self.kept(f"FROM {chosen}")  # there is no row number, or the cells may differ from pass to pass
        ((last,),) = self.connection.execute(f"SELECT max(rowid) FROM {chosen}").fetchall()
        if self.size and last != self.size - 1:  # rows have been deleted, and their numbers are missing
            return self.kept(f"FROM {chosen}")
        return f"(SELECT *, rowid AS {name_of(ROW)} FROM {chosen})"

    def find_table(self, path: Path) -> tuple[str, str, str]:
        """The schema, the name and the definition of the table that is named, with or without its schema."""
        listing = "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = 'source'"
        tables = self.connection.execute(listing).fetchall()
        wanted = self.table
        found = [t for t in tables if wanted in (None, t[1], f"{t[0]}.{t[1]}")]
        if len(found) == 1:
            return found[0][0], found[0][1], found[0][2]
        names = [t[1] for t in tables]
        shown = sorted(f"{t[0]}.{t[1]}" if names.count(t[1]) > 1 else t[1] for t in tables)
        if wanted is None:
            said = f"{path.name} has {len(tables) or 'no'} tables"
        else:
            said = f"{path.name} has {len(found) or 'no'} {'tables' if found else 'table'} {wanted!r}"
        raise PodiumError(said, hint=f"name one with table=; the tables are {listed(shown)}." if tables else NO_TABLE)

    def from_relation(self) -> str:
        """A relation of the user's own connection, kept as Parquet in the temporary folder."""
        if not hasattr(self.source, "write_parquet"):
            raise PodiumError(
                f"a log cannot be scanned from {type(self.source).__name__}",
                hint="give a path, a pattern such as 'log/*.parquet', or a DuckDB relation.",
            )
        refuse_unions(dict(zip(self.source.columns, map(str, self.source.types), strict=True)))
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


def check_columns(names: Sequence[str], file: Path) -> None:
    """Refuse columns that DuckDB cannot tell apart."""
    check_header(names, file)
    check_twins(names, file.name, "DuckDB")


def check_own(names: Iterable[str], file: Path, own: Sequence[str]) -> None:
    """Refuse columns that DuckDB takes for its own."""
    for name in names:
        if name.lower() in own:
            raise PodiumError(f"{file.name}: DuckDB needs the name {name!r} for itself", hint="rename that column.")


def of_file(values: Iterable[str], kind: str) -> str:
    """SQL for what holds for the file that a row comes from."""
    return f"list_extract([{', '.join(values)}]::{kind}[], (file_index + 1)::BIGINT)"


def folder_columns(folders: Folders) -> list[str]:
    return [f"{folder_column(values)} AS {name_of(name)}" for name, values in folders.items()]


def folder_column(values: Sequence[str | None]) -> str:
    """SQL for a column that the folders of the files give, typed as a column of a CSV file would be."""
    typed = type_cells([value or "" for value in values], False)
    kind = {"i": "BIGINT", "f": "DOUBLE"}.get(typed.dtype.kind, "VARCHAR")
    return of_file(("NULL" if value is None else quoted(value) for value in values), kind)


def refuse_unions(kinds: Mapping[str, str]) -> None:
    """Refuse columns of several types at once, which have no equal outside DuckDB."""
    for name, kind in kinds.items():
        if kind.startswith("UNION("):
            raise PodiumError(f"the column {name!r} is a {kind}", hint="give every row the same kind of value.")


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


def matches(cell: str, pattern: str) -> str:
    return f"regexp_full_match({cell}, {quoted(pattern)})"


def same_kind(a: Any, b: Any) -> bool:
    """Whether one type holds the values of both Arrow types: whole numbers, numbers of any precision, texts."""
    import pyarrow as pa
    from pyarrow import types

    if a == b:
        return True
    if pa.uint64() in (a, b) and types.is_integer(a):  # no type of 64 bits holds them beside whole numbers below 0
        return bool(types.is_unsigned_integer(a) and types.is_unsigned_integer(b))
    tests = (types.is_integer, types.is_floating, lambda t: types.is_string(t) or types.is_large_string(t))
    return any(test(a) and test(b) for test in tests)
