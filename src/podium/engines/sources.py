"""Where the rows lie: files, tables and relations as something that DuckDB can select from, row by row numbered."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.errors import PodiumError
from podium.data.files import note_input
from podium.data.read import (
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    check_text,
    read_csv_header,
    separator_of,
    start_of,
)
from podium.engines import ROW
from podium.engines.texts import cell_counts, column_kinds, flattened


@dataclass(eq=False)
class DuckSource:
    """The rows of a source, told apart by their numbers; what is no Parquet is typed and kept as such.

    Parameters
    ----------
    source, table, text : as in `podium.engines.duckdb.DuckEngine`
    connection : of DuckDB
    folder : for copies
    """

    source: Any
    table: str | None
    text: Sequence[str]
    connection: Any
    folder: Path
    size: int = field(default=0, init=False)  # known once they are open
    files: Sequence[str] = field(default=(), init=False)
    texts: bool = field(default=False, init=False)  # whether they come from files of texts

    def open(self) -> str:
        """The rows as something that can stand after FROM, with a column `ROW`."""
        if not isinstance(self.source, str | Path):
            return self.from_relation()
        path = str(self.source)
        if self.table is not None or Path(path).suffix.lower() in (".duckdb", ".db"):
            return self.from_database(path)
        self.files = find_files(path)
        for file in self.files:
            note_input(file)
        ending = Path(self.files[0]).suffix.lower()
        others = [f for f in self.files if Path(f).suffix.lower() != ending]
        if others:
            raise PodiumError(
                f"{path!r} holds files of several kinds: {Path(self.files[0]).name} and {Path(others[0]).name}",
                hint="name files of one kind, such as 'log/*.parquet'.",
            )
        if ending in PARQUET_ENDINGS:
            return self.from_parquet(self.files)
        if ending in TEXT_ENDINGS:
            return self.from_text()
        if ending in JSON_ENDINGS:
            return self.from_json()
        known = ", ".join((*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS))
        raise PodiumError(
            f"{Path(self.files[0]).name!r} has an ending that podium does not know", hint=f"known endings: {known}."
        )

    def from_parquet(self, files: Sequence[str], hive: bool = True) -> str:
        sizes = self.parquet_sizes(files)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(starts[-1])
        listed = ", ".join(map(quoted, files))
        row = "file_row_number"
        if len(files) > 1:
            places = ", ".join(map(str, starts[:-1].tolist()))
            row = f"file_row_number + list_extract([{places}]::BIGINT[], (file_index + 1)::BIGINT)"
        folders = ", hive_partitioning = true" if hive and all("=" in str(Path(f).parent) for f in files) else ""
        return f"(SELECT *, ({row})::BIGINT AS {name_of(ROW)} FROM read_parquet([{listed}]{folders}))"

    def parquet_sizes(self, files: Sequence[str]) -> list[int]:
        """The rows of each file; every file must hold the columns of the first, of the same types."""
        from pyarrow import ArrowException, parquet

        sizes, first = [], None
        for file in files:
            try:
                with parquet.ParquetFile(file) as opened:
                    schema, rows = opened.schema_arrow, opened.metadata.num_rows
            except (ArrowException, OSError, ValueError) as error:
                raise PodiumError(
                    f"{Path(file).name} is not a whole Parquet file: {first_line(error)}", hint="write the file again."
                ) from error
            if first is None:
                first = schema
            for column in first.names:
                if column not in schema.names:
                    raise PodiumError(
                        f"{Path(file).name} has no column {column!r}; {Path(files[0]).name} has",
                        hint="give every file the same columns.",
                    )
                if not same_kind(schema.field(column).type, first.field(column).type):
                    raise PodiumError(
                        f"the column {column!r} is {schema.field(column).type} in {Path(file).name} and "
                        f"{first.field(column).type} in {Path(files[0]).name}",
                        hint="give a column the same type in every file.",
                    )
            if extra := [c for c in schema.names if c not in first.names]:
                raise PodiumError(
                    f"{Path(files[0]).name} has no column {extra[0]!r}; {Path(file).name} has",
                    hint="give every file the same columns.",
                )
            sizes.append(rows)
        return sizes

    def from_text(self) -> str:
        """CSV files, typed as `podium.data.read` types them and kept as Parquet in the temporary folder."""
        first = Path(self.files[0])
        header = read_csv_header(first)
        for file in self.files[1:]:
            other = read_csv_header(Path(file))
            if other != header:
                lacking = [h for h in header if h not in other] or [h for h in other if h not in header]
                detail = f"the column {lacking[0]!r} is in one and not in the other" if lacking else "in another order"
                raise PodiumError(
                    f"{Path(file).name} and {first.name} have different headers: {detail}",
                    hint="give every file the same columns in the same order.",
                )
        check_text(first.name, self.text, header)
        columns = ", ".join(f"{quoted(h)}: 'VARCHAR'" for h in header)
        files = ", ".join(map(quoted, self.files))
        separator = separator_of(start_of(first), first)
        raw = (
            f"read_csv([{files}], columns = {{{columns}}}, header = true, delim = {quoted(separator)}, quote = '\"', "
            "escape = '\"', auto_detect = false, strict_mode = true, null_padding = false, nullstr = '', "
            "parallel = false)"
        )
        self.texts = True
        return self.typed(raw, header)

    def typed(self, raw: str, header: Sequence[str]) -> str:
        """Texts as numbers where every cell of a column is one and none is a code such as 007."""
        copy = self.folder / "texts.parquet"
        self.connection.execute(f"COPY (SELECT * FROM {raw}) TO {quoted(str(copy))} (FORMAT parquet)")
        tests = [test for h in header for test in cell_counts(name_of(h), matches)]
        texts = f"read_parquet({quoted(str(copy))})"
        (counts,) = self.connection.execute(f"SELECT {', '.join(tests)} FROM {texts}").fetchall()
        casts = []
        for h, kind in zip(header, column_kinds(header, counts, self.text), strict=True):
            cell = name_of(h) if kind is None else f"CAST(trim({name_of(h)}) AS {kind})"
            casts.append(f"{cell} AS {name_of(h)}")
        opened = self.kept(f"SELECT {', '.join(casts)} FROM {texts}")
        copy.unlink()
        return opened

    def kept(self, query: str) -> str:
        """The rows of a query, kept as Parquet in the temporary folder."""
        copy = self.folder / "rows.parquet"
        self.connection.execute(f"COPY ({query}) TO {quoted(str(copy))} (FORMAT parquet)")
        return self.from_parquet([str(copy)], hive=False)

    def from_json(self) -> str:
        """JSON lines, kept as Parquet in the temporary folder; lists and objects become several columns."""
        files = ", ".join(map(quoted, self.files))
        raw = f"read_json([{files}], format = 'newline_delimited', sample_size = -1, union_by_name = true)"
        parts = [
            part
            for column, kind, *_ in self.connection.execute(f"DESCRIBE SELECT * FROM {raw}").fetchall()
            for part in flattened(column, name_of(column), kind, partial(self.members, raw))
        ]
        return self.kept(f"SELECT {', '.join(f'{cell} AS {name_of(header)}' for header, cell in parts)} FROM {raw}")

    def members(self, raw: str, cell: str, kind: str) -> list[tuple[str, str, str]] | None:
        """What is inside a list or an object of JSON."""
        if kind.endswith("[]"):
            ((longest,),) = self.connection.execute(f"SELECT max(len({cell})) FROM {raw}").fetchall()
            return [(f"[{i}]", f"{cell}[{i + 1}]", kind[:-2]) for i in range(longest or 0)]
        if not kind.startswith("STRUCT("):
            return None
        inside = self.connection.execute(f"DESCRIBE SELECT unnest({cell}) FROM {raw}").fetchall()
        return [(f":{name}", f"{cell}[{quoted(name)}]", inner) for name, inner, *_ in inside]

    def from_database(self, path: str) -> str:
        if not Path(path).exists():
            raise PodiumError(f"there is no file {path!r}", hint="check the path; it is read from the current folder.")
        note_input(path)
        self.connection.execute(f"ATTACH {quoted(path)} AS source (READ_ONLY)")
        tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'"
        found = [name for (name,) in self.connection.execute(tables).fetchall()]
        table = self.table or (found[0] if len(found) == 1 else None)
        if table is None or table not in found:
            raise PodiumError(
                f"{Path(path).name} has no table {table!r}" if table else f"{Path(path).name} has several tables",
                hint="its tables are " + (", ".join(found) or "none") + "; name one with table=.",
            )
        chosen = f"source.{name_of(table)}"
        ((self.size, last),) = self.connection.execute(f"SELECT count(*), max(rowid) FROM {chosen}").fetchall()
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
        return self.from_parquet([str(copy)], hive=False)


def find_files(path: str) -> list[str]:
    """The files that a path, a pattern or a folder names, sorted."""
    if Path(path).is_dir():
        files = sorted(str(f) for f in Path(path).rglob("*") if f.suffix.lower() in PARQUET_ENDINGS)
        if not files:
            raise PodiumError(f"the folder {path!r} holds no Parquet files", hint="name files: 'folder/*.csv'.")
        return files
    if any(c in path for c in "*?[") and not Path(path).exists():
        files = sorted(f for f in glob.glob(path, recursive=True) if Path(f).is_file())
        if not files:
            raise PodiumError(
                f"no file matches {path!r}", hint="check the pattern; it is read from the current folder."
            )
        return files
    if not Path(path).exists():
        raise PodiumError(f"there is no file {path!r}", hint="check the path; it is read from the current folder.")
    return [path]


def matches(cell: str, pattern: str) -> str:
    return f"regexp_full_match({cell}, {quoted(pattern)})"


def same_kind(a: Any, b: Any) -> bool:
    """Whether two Arrow types are read alike: whole numbers of any width, numbers of any precision, texts."""
    from pyarrow import types

    if a == b:
        return True
    tests = (types.is_integer, types.is_floating, lambda t: types.is_string(t) or types.is_large_string(t))
    return any(test(a) and test(b) for test in tests)


def name_of(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
