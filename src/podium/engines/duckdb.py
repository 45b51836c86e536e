"""DuckDB: Parquet, CSV and JSON lines in any number of files, tables and relations, larger than memory."""

from __future__ import annotations

import glob
import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.batches import ROWS
from podium.columns import Column
from podium.engines import ROW, Order, P, Work
from podium.engines.arrow import memory_columns
from podium.engines.buckets import HASH, TIME, beyond_limit, buckets_for, deal
from podium.errors import MissingExtra, PodiumError
from podium.io import CODE, JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, separator_of
from podium.log import AGREE, SMALLEST
from podium.progress import Progress, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 21  # numbers in a batch
MEMORY = 512  # MB that DuckDB may hold before it writes to the temporary folder
PER_COLUMN = 10  # MB that a sort needs for each column of a wide log
PLACE = "podium file"
KINDS = {
    "BOOLEAN": "truth", "VARCHAR": "text", "FLOAT": "number", "DOUBLE": "number", "DATE": "time", "TIME": "time",
    "TINYINT": "whole", "SMALLINT": "whole", "INTEGER": "whole", "BIGINT": "whole", "UTINYINT": "whole",
    "USMALLINT": "whole", "UINTEGER": "whole", "UBIGINT": "whole", "HUGEINT": "number", "UHUGEINT": "number",
}  # fmt: skip


@dataclass(eq=False)
class DuckEngine:
    """Rows that DuckDB reads.

    Parameters
    ----------
    source : a path, a pattern such as "log/*.parquet", a folder of Parquet files, or a DuckDB relation
    table : the table to read, where the path is a DuckDB database
    memory_limit : what DuckDB may hold in memory, such as "2GB"; beyond it, it sorts in files of the temporary folder
    temp_dir : where that folder is made
    threads : how many DuckDB may use; the numbers do not depend on it
    text : columns of text files to read as texts although they look like numbers
    disk_limit : what may be written into that folder, such as "100GB"
    """

    source: Any
    table: str | None = None
    memory_limit: str | None = None
    temp_dir: str | None = None
    threads: int | None = None
    text: Sequence[str] = ()
    disk_limit: str | None = None
    progress: Progress = no_progress
    name: str = field(default="duckdb", init=False)

    def __post_init__(self) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise MissingExtra("duckdb", "duckdb", "the duckdb engine") from error
        parent = Path(self.temp_dir) if self.temp_dir else Path(tempfile.gettempdir())
        if not parent.is_dir():
            raise PodiumError(
                f"there is no folder {str(parent)!r} for temporary files", hint="make it, or name another."
            )
        self.folder = Path(tempfile.mkdtemp(prefix="podium-", dir=parent))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        config: dict[str, Any] = {
            "memory_limit": self.memory_limit or f"{MEMORY}MB",
            "temp_directory": str(self.folder / "spill"),
            "preserve_insertion_order": True,
        }
        if self.threads is not None:
            config["threads"] = self.threads
        try:
            self.connection = duckdb.connect(":memory:", config=config)
            self.connection.execute("SET enable_progress_bar = false")  # it would mix with what podium prints
            self.disk = np.inf
            if self.disk_limit is not None:
                # As part of `config` it would be shown but not kept.
                self.connection.execute(f"SET max_temp_directory_size = {quoted(self.disk_limit)}")
                parsed = f"SELECT parse_formatted_bytes({quoted(self.disk_limit)})"
                ((self.disk,),) = self.connection.execute(parsed).fetchall()
        except duckdb.Error as error:
            raise PodiumError(
                f"DuckDB does not accept the settings: {first_line(error)}", hint='memory limits look like "2GB".'
            ) from error
        self.texts = False
        with self.told():
            self.relation = self.open()

    def told(self) -> Told:
        return Told(self)

    # --- where the rows lie --------------------------------------------------------------------------------------

    def open(self) -> str:
        """The rows as something that can stand after FROM, with a column `ROW`."""
        if not isinstance(self.source, str | Path):
            return self.from_relation()
        path = str(self.source)
        if self.table is not None or Path(path).suffix.lower() in (".duckdb", ".db"):
            return self.from_database(path)
        self.files = find_files(path)
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
        """CSV files, typed as `podium.io` types them and kept as Parquet in the temporary folder."""
        from podium.io import read_csv_header

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
        for name in self.text:
            if name not in header:
                raise PodiumError(
                    f"{first.name}: there is no column {name!r} to read as text",
                    hint="the columns are " + ", ".join(header) + ".",
                )
        columns = ", ".join(f"{quoted(h)}: 'VARCHAR'" for h in header)
        files = ", ".join(map(quoted, self.files))
        separator = separator_of(first_lines(first), first)
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
        tests = []
        for h in header:
            raw_cell, cell = name_of(h), f"trim({name_of(h)})"
            number = f"TRY_CAST({cell} AS DOUBLE) IS NOT NULL AND NOT contains({cell}, '_')"
            whole = f"regexp_full_match({cell}, '[+-]?[0-9]+') AND TRY_CAST({cell} AS BIGINT) IS NOT NULL"
            tests += [
                f"count(*) FILTER ({raw_cell} IS NOT NULL AND NOT ({number}))",
                f"count(*) FILTER (regexp_full_match({cell}, {quoted(CODE.pattern)}))",
                f"count(*) FILTER ({raw_cell} IS NULL OR NOT ({whole}))",
                f"count({raw_cell})",
            ]
        (found,) = self.connection.execute(
            f"SELECT {', '.join(tests)} FROM read_parquet({quoted(str(copy))})"
        ).fetchall()
        casts = []
        for i, h in enumerate(header):
            not_number, codes, not_whole, present = found[4 * i : 4 * i + 4]
            kind = "VARCHAR"
            if h not in self.text and present and not not_number and not codes:
                kind = "DOUBLE" if not_whole else "BIGINT"
            cell = name_of(h) if kind == "VARCHAR" else f"CAST(trim({name_of(h)}) AS {kind})"
            casts.append(f"{cell} AS {name_of(h)}")
        final = self.folder / "typed.parquet"
        self.connection.execute(
            f"COPY (SELECT {', '.join(casts)} FROM read_parquet({quoted(str(copy))})) TO {quoted(str(final))} "
            "(FORMAT parquet)"
        )
        copy.unlink()
        return self.from_parquet([str(final)], hive=False)

    def from_json(self) -> str:
        """JSON lines, kept as Parquet in the temporary folder; lists and objects become several columns."""
        files = ", ".join(map(quoted, self.files))
        raw = f"read_json([{files}], format = 'newline_delimited', sample_size = -1, union_by_name = true)"
        self.connection.execute(f'CREATE TEMP TABLE "podium raw" AS SELECT * FROM {raw} LIMIT 0')
        described = self.connection.execute('DESCRIBE "podium raw"').fetchall()
        parts: list[tuple[str, str]] = []
        for column, kind, *_ in described:
            parts += self.flattened(raw, name_of(column), column, kind)
        final = self.folder / "typed.parquet"
        chosen = ", ".join(f"{expression} AS {name_of(header)}" for header, expression in parts)
        self.connection.execute(f"COPY (SELECT {chosen} FROM {raw}) TO {quoted(str(final))} (FORMAT parquet)")
        self.connection.execute('DROP TABLE "podium raw"')
        return self.from_parquet([str(final)], hive=False)

    def flattened(self, raw: str, expression: str, header: str, kind: str) -> list[tuple[str, str]]:
        """{"state": [1, 2], "pi_new": {"a": 1}} -> state[0], state[1], pi_new:a."""
        if kind.endswith("[]"):
            ((longest,),) = self.connection.execute(f"SELECT max(len({expression})) FROM {raw}").fetchall()
            return [
                part
                for i in range(longest or 0)
                for part in self.flattened(raw, f"{expression}[{i + 1}]", f"{header}[{i}]", kind[:-2])
            ]
        if kind.startswith("STRUCT("):
            members = self.connection.execute(
                f"SELECT unnest(struct_keys({expression})) FROM (SELECT * FROM {raw} LIMIT 1)"
            ).fetchall()
            found = []
            for (member,) in members:
                inner = f"{expression}[{quoted(member)}]"
                ((inner_kind,),) = self.connection.execute(f"SELECT typeof({inner}) FROM {raw} LIMIT 1").fetchall()
                found += self.flattened(raw, inner, f"{header}:{member}", inner_kind)
            return found
        return [(header, expression)]

    def from_database(self, path: str) -> str:
        if not Path(path).exists():
            raise PodiumError(f"there is no file {path!r}", hint="check the path; it is read from the current folder.")
        self.connection.execute(f"ATTACH {quoted(path)} AS source (READ_ONLY)")
        found = [
            t
            for (t,) in self.connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'"
            ).fetchall()
        ]
        table = self.table or (found[0] if len(found) == 1 else None)
        if table is None or table not in found:
            raise PodiumError(
                f"{Path(path).name} has no table {table!r}" if table else f"{Path(path).name} has several tables",
                hint="its tables are " + (", ".join(found) or "none") + "; name one with table=.",
            )
        ((self.size,),) = self.connection.execute(f"SELECT count(*) FROM source.{name_of(table)}").fetchall()
        return f"(SELECT *, rowid AS {name_of(ROW)} FROM source.{name_of(table)})"

    def from_relation(self) -> str:
        """A relation of the user's own connection, kept as Parquet in the temporary folder."""
        if not hasattr(self.source, "write_parquet"):
            raise PodiumError(
                f"a log cannot be scanned from {type(self.source).__name__}",
                hint="give a path, a pattern such as 'log/*.parquet', or a DuckDB relation.",
            )
        copy = self.folder / "relation.parquet"
        self.source.write_parquet(str(copy))
        return self.from_parquet([str(copy)], hive=False)

    # --- what the engine promises --------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> dict[str, str]:
        with self.told():
            described = self.connection.execute(f"DESCRIBE SELECT * FROM {self.relation}").fetchall()
        return {header: str(kind) for header, kind, *_ in described if header != ROW}

    def headers(self) -> Mapping[str, str]:
        return {header: kind_of(kind) for header, kind in self.schema.items()}

    def rows(self) -> int:
        return self.size

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        query = f"SELECT {self.selected(columns)} FROM {self.relation} LIMIT {rows}"
        with self.told():
            table = self.connection.sql(query).to_arrow_table().combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else table.schema.empty_table().to_batches()[0]

    def sound(self, labels: Sequence[str], shares: Sequence[str]) -> bool:
        tests = []
        for column in labels:
            cell, kind = name_of(column), self.schema[column]
            strange = {"DOUBLE": f"NOT isfinite({cell})", "FLOAT": f"NOT isfinite({cell})", "VARCHAR": f"{cell} = ''"}
            if kind_of(kind) == "other":
                return False
            tests.append(f"{cell} IS NULL OR {strange.get(kind, 'false')}")
        for column in shares:
            if kind_of(self.schema[column]) not in ("number", "whole"):
                return False
            tests.append(
                f"NOT coalesce({name_of(column)} BETWEEN {SMALLEST!r}::DOUBLE AND {1 + AGREE!r}::DOUBLE, false)"
            )
        counts = ", ".join(f"count(*) FILTER ({test})" for test in tests)
        with self.told():
            ((*found,),) = self.connection.execute(f"SELECT {counts} FROM {self.relation}").fetchall()
        return not any(found)

    def selected(self, columns: Sequence[str]) -> str:
        return ", ".join([*(self.cell(c) for c in dict.fromkeys(columns)), name_of(ROW)])

    def cell(self, column: str) -> str:
        """A column in the precision in which it is computed."""
        cast = {"FLOAT": "DOUBLE", "HUGEINT": "DOUBLE", "UHUGEINT": "DOUBLE"}.get(self.schema[column])
        return f"CAST({name_of(column)} AS {cast}) AS {name_of(column)}" if cast else name_of(column)

    def fold(self, columns: Sequence[str], order: Order | None, work: Work[P], label: str) -> P:
        size = max(2048, min(ROWS, CELLS // (len(columns) + 1)))
        with self.told(), self.progress(label, self.size) as advance:
            batches = self.as_they_lie(columns, size) if order is None else self.state_by_state(columns, order, size)
            return work(counted(batches, advance))

    def as_they_lie(
        self, columns: Sequence[str], size: int, more: str = "", then: str = ""
    ) -> Generator[pa.RecordBatch, None, None]:
        query = f"SELECT {self.selected(columns)}{more} FROM {self.relation}{then}"
        if self.memory_limit is None:
            self.connection.execute(f"SET memory_limit = '{max(MEMORY, PER_COLUMN * (len(columns) + 1))}MB'")
        return even_batches(self.connection.sql(query).to_arrow_reader(size), size)

    def state_by_state(self, columns: Sequence[str], order: Order, size: int) -> Iterator[pa.RecordBatch]:
        """Sorted in buckets of states; by DuckDB where one of them has more rows than should be held in memory."""
        states = ", ".join(map(name_of, order.whole))
        more = f", hash({states}) AS {name_of(HASH)}"
        if order.then[1:] and (key := self.sort_key(order.then[-1])) != name_of(order.then[-1]):
            more += f", {key} AS {name_of(TIME)}"
        needed = dict.fromkeys([*columns, *order.then[1:]])
        file = self.folder / "buckets"
        try:
            with closing(self.as_they_lie(list(needed), size, more)) as batches:
                buckets = deal(
                    batches, file, buckets_for(self.size * (len(needed) + 2)), self.disk_limit or "", self.disk
                )
            if buckets is not None:
                yield from buckets.sorted(order, size)
                return
        finally:
            file.unlink(missing_ok=True)
        keys = [states, *(self.sort_key(c) for c in order.then), name_of(ROW)]
        yield from self.as_they_lie(columns, size, then=f" ORDER BY {', '.join(keys)}")

    def sort_key(self, column: str) -> str:
        """Times that are texts in order of time."""
        if self.schema[column] != "VARCHAR" or not self.texts:
            return name_of(column)
        return f"coalesce(TRY_CAST({name_of(column)} AS TIMESTAMPTZ)::VARCHAR, {name_of(column)})"

    def as_memory(self, batch: pa.RecordBatch) -> dict[str, Column]:
        return memory_columns(self.texts, self.text, batch)

    def close(self) -> None:
        """Let go of the temporary folder."""
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Told:
    """DuckDB's errors as podium tells them; an interrupted query leaves nothing behind."""

    engine: DuckEngine

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import duckdb

        if error is None or isinstance(error, PodiumError):
            return
        if isinstance(error, KeyboardInterrupt):
            self.engine.connection.interrupt()
            self.engine.close()
            return
        if isinstance(error, duckdb.InterruptException) or (
            isinstance(error, RuntimeError) and str(error) == "Query interrupted"  # what Ctrl-C becomes inside DuckDB
        ):
            self.engine.close()
            raise KeyboardInterrupt from error
        if not isinstance(error, duckdb.Error | OSError) and type(error).__module__.split(".")[0] != "pyarrow":
            return
        text = first_line(error)
        lower = text.lower()
        where = str(self.engine.source)
        if self.engine.disk_limit is not None and "max_temp_directory_size" in str(error):
            raise beyond_limit(self.engine.disk_limit) from error
        full = ("no space left", "file too large", "could not write", "offload")
        if any(sign in lower for sign in full):
            raise PodiumError(
                f"the temporary folder is full: {text}",
                hint=f"make room in {str(self.engine.folder.parent)!r}, or name another folder with temp_dir= or "
                "--temp-dir.",
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException) or "out of memory" in lower:
            raise PodiumError(
                f"DuckDB needs more memory than it may use: {text}",
                hint="raise memory_limit= or --memory-limit, or use fewer threads.",
            ) from error
        gone = [f for f in getattr(self.engine, "files", ()) if not Path(f).exists()]
        if gone:
            raise PodiumError(
                f"{Path(gone[0]).name} disappeared while it was read", hint="keep the files until the answer is there."
            ) from error
        raise PodiumError(f"{where} cannot be read: {text}", hint="check the files, or write them again.") from error


def counted(batches: Iterable[pa.RecordBatch], advance: Any) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        advance(batch.num_rows)


def even_batches(reader: pa.RecordBatchReader, rows: int) -> Generator[pa.RecordBatch, None, None]:
    """Batches of that many rows however the reader cuts them, so that sums do not depend on how it works."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    size = 0
    with reader:  # one that is left before its end would keep the connection
        for batch in reader:
            while batch.num_rows:
                take = min(batch.num_rows, rows - size)
                held.append(batch.slice(0, take))
                batch, size = batch.slice(take), size + take
                if size == rows:
                    yield held[0] if len(held) == 1 else pa.concat_batches(held)
                    held, size = [], 0
        if held:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)


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


def first_lines(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return file.read(1 << 16)


def same_kind(a: Any, b: Any) -> bool:
    """Whether two Arrow types are read alike: whole numbers of any width, numbers of any precision, texts."""
    from pyarrow import types

    if a == b:
        return True
    tests = (types.is_integer, types.is_floating, lambda t: types.is_string(t) or types.is_large_string(t))
    return any(test(a) and test(b) for test in tests)


def kind_of(kind: str) -> str:
    if kind.startswith(("TIMESTAMP", "TIME")):
        return "time"
    if kind.startswith("DECIMAL"):
        return "number"
    return KINDS.get(kind, "other")


def name_of(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
