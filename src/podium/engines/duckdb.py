"""DuckDB: Parquet, CSV and JSON lines in any number of files, tables and relations, larger than memory."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arrays import no_text, odd_kinds
from podium.data.columns import Column
from podium.data.connections import connect, first_line, is_interrupt, name_of, quoted
from podium.data.eligible_parts import Sets
from podium.data.errors import PodiumError, needs, show_value
from podium.data.paths import changed_file
from podium.data.progress import Progress, no_progress, watch_share
from podium.data.read import QUOTE_HINT, SAVE_HINT, check_text
from podium.data.scratch import Scratch
from podium.engines import LATEST, ROW, Census, Keys, P, Work, check_headers
from podium.engines.arrow import memory_columns, one_batch
from podium.engines.duplicates import Duplicates, set_sql
from podium.engines.parts import ROWS
from podium.engines.sources import DuckSource

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 21  # numbers in a batch
MEMORY = 320  # MB that DuckDB may hold before it writes to the temporary folder
PER_COLUMN = 10  # MB that it needs for each column of a wide log
THREADS = 8  # for which both are enough; twice as many need twice as much
ENDLESS = re.compile(r"-.*|null|none", re.IGNORECASE)  # what DuckDB takes for no limit at all
LINE = re.compile(r"CSV Error on Line: (\d+)")
SIGNS = (
    ("not utf-8", "is not UTF-8", SAVE_HINT),
    ("unterminated quote", "cannot be read: a quote is not closed", QUOTE_HINT),
    (
        "Expected Number of Columns",
        "does not have as many cells as the header",
        'quote cells that hold a separator: "a, b".',
    ),
    ("Maximum line size", "is too long to be read", "keep lines below 2 MB, or use engine='memory'."),
)
KINDS = {
    "BOOLEAN": "truth", "VARCHAR": "text", "FLOAT": "number", "DOUBLE": "number", "DATE": "time", "TIME": "time",
    "TINYINT": "whole", "SMALLINT": "whole", "INTEGER": "whole", "BIGINT": "whole", "UTINYINT": "whole",
    "USMALLINT": "whole", "UINTEGER": "whole", "UBIGINT": "whole", "HUGEINT": "number", "UHUGEINT": "number",
}  # fmt: skip
CASTS = {
    "FLOAT": "DOUBLE", "ENUM": "VARCHAR", "HUGEINT": "DECIMAL(38, 0)", "UHUGEINT": "DECIMAL(38, 0)",
    "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "UUID": "VARCHAR",
}  # fmt: skip
MOST_THREADS = 1024  # DuckDB starts as many as it is told to


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
        with needs("duckdb", "duckdb", "the duckdb engine"):
            import duckdb
            import pyarrow  # noqa: F401
        check_threads(self.threads)
        check_size("memory_limit", self.memory_limit)
        check_size("disk_limit", self.disk_limit)
        self.scratch = Scratch("duckdb", self.temp_dir)
        self.folder = self.scratch.path
        config: dict[str, Any] = {
            "temp_directory": str(self.folder / "spill"),
            "preserve_insertion_order": True,
        }
        if self.memory_limit is not None:
            config["memory_limit"] = self.memory_limit
        if self.threads is not None:
            config["threads"] = self.threads
        try:
            self.connection = connect(config)
            # DuckDB tells how far it is only with its progress bar on, which would mix with what podium prints.
            self.connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            ((self.workers,),) = self.connection.execute("SELECT current_setting('threads')").fetchall()
            # No method of this object: the source, which it holds, would hold it in turn.
            self.allow = partial(allow_memory, self.connection, self.memory_limit, self.workers)
            self.allow(0)
            if self.disk_limit is not None:
                # As part of `config` it would be shown but not kept.
                self.connection.execute(f"SET max_temp_directory_size = {quoted(self.disk_limit)}")
        except duckdb.Error as error:
            raise PodiumError(
                f"DuckDB does not accept the settings: {first_line(error)}", hint='memory limits look like "2GB".'
            ) from error
        self.opened = DuckSource(self.source, self.table, self.text, self.connection, self.folder, self.allow)
        with self.explained():
            self.relation = self.as_memory_reads(self.opened.open())
        self.size, self.mixed = self.opened.size, self.opened.mixed
        self.marks: dict[Keys, pa.BooleanArray] = {}
        self.functions: dict[Sets, str] = {}  # of DuckDB, that number the sets of eligible actions

    def explained(self) -> DuckErrors:
        return DuckErrors(self)

    def as_memory_reads(self, relation: str) -> str:
        """The rows with columns of the types in which they are computed; those of `text` as texts."""
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        kinds = {header: str(kind) for header, kind, *_ in described}
        check_text(self.where, self.text, kinds)
        casts = {h: text_cell(h, kind) if h in self.text else cell(h, kind) for h, kind in kinds.items()}
        changed = [f"{cast} AS {name_of(h)}" for h, cast in casts.items() if cast != name_of(h)]
        return f"(SELECT * REPLACE ({', '.join(changed)}) FROM {relation})" if changed else relation

    @property
    def where(self) -> str:
        return Path(self.source).name if isinstance(self.source, str | Path) else "the relation"

    # --- what the engine promises --------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> dict[str, str]:
        with self.explained():
            described = self.connection.execute(f"DESCRIBE SELECT * FROM {self.relation}").fetchall()
        *columns, (_row, *_) = described
        check_headers(header for header, *_ in columns)
        return {header: str(kind) for header, kind, *_ in columns}

    @cached_property
    def odd(self) -> dict[str, str]:
        with self.explained():
            none = self.connection.sql(f"SELECT {self.selected(list(self.schema))} FROM {self.relation} LIMIT 0")
            return {**self.opened.odd, **odd_kinds(none.to_arrow_table().schema)}

    def headers(self) -> Mapping[str, str]:
        return {header: kind_of(kind) for header, kind in self.schema.items()}

    def rows(self) -> int:
        return self.size

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        query = f"SELECT {self.selected(columns)} FROM {self.relation} LIMIT {rows}"
        with self.explained():
            batch = one_batch(self.connection.sql(query).to_arrow_table())
        self.check_count(batch.num_rows, min(rows, self.size))
        return batch

    def take(self, columns: Sequence[str], rows: NDArray[np.int64], label: str) -> pa.RecordBatch:
        import pyarrow as pa

        wanted, row = name_of("podium rows"), name_of(ROW)
        query = f"SELECT {self.selected(columns)} FROM {self.relation} JOIN {wanted} USING ({row}) ORDER BY {row}"
        with self.explained(), self.watched(label):
            self.allow(len(columns))
            self.connection.register("podium rows", pa.table({ROW: rows}))
            batch = one_batch(self.connection.sql(query).to_arrow_table())
            self.connection.unregister("podium rows")
        self.check_count(batch.num_rows, len(rows))
        return batch

    def check_count(self, found: int, wanted: int) -> None:
        """Every pass must see the rows that were counted when the log was opened."""
        if found != wanted:
            raise changed_file(self.where)

    def census(self, keys: Keys) -> Census:
        with self.explained():
            return self.duplicates(len(keys.states)).count(keys, self.latest(keys))

    def selected(self, columns: Sequence[str]) -> str:
        return ", ".join([*(name_of(c) for c in dict.fromkeys(columns)), name_of(ROW)])

    def fold(self, columns: Sequence[str], work: Work[P], label: str, latest: Keys | None = None) -> P:
        size = max(2048, min(ROWS, CELLS // (len(columns) + 1)))
        marks = None if latest is None else self.latest(latest)
        with self.explained():
            found = self.as_they_lie(columns, size)
            with closing(self.shown(found if marks is None else marked(found, marks), label)) as batches:
                return work(batches)

    def shown(self, batches: Iterator[pa.RecordBatch], label: str) -> Generator[pa.RecordBatch, None, None]:
        """Batches with their progress, from the moment when the first one is there."""
        first = next(batches, None)
        with self.progress(label, self.size) as advance:
            yield from counted(chain([] if first is None else [first], batches), advance)

    def as_they_lie(self, columns: Sequence[str], size: int) -> Generator[pa.RecordBatch, None, None]:
        query = f"SELECT {self.selected(columns)} FROM {self.relation}"
        self.allow(len(columns))
        total = 0
        for batch in even_batches(self.connection.sql(query).arrow(size), size):
            total += batch.num_rows
            self.check_count(max(total, self.size), self.size)
            yield batch
        self.check_count(total, self.size)

    def watched(self, label: str) -> AbstractContextManager[None]:
        """Show how far a query is on which DuckDB works by itself."""
        return watch_share(self.progress, label, self.size, lambda: self.connection.query_progress() / 100)

    def latest(self, keys: Keys) -> pa.BooleanArray:
        """(N,) whether no later row has the same state and action; found once, then kept."""
        if keys not in self.marks:
            with self.explained():
                self.marks[keys] = self.duplicates(len(keys.states)).latest(keys)
        return self.marks[keys]

    def duplicates(self, columns: int) -> Duplicates:
        self.allow(columns)
        sets = partial(set_sql, self.connection, self.schema, self.functions)
        return Duplicates(self.connection, self.relation, self.schema, self.size, self.watched, self.check_count, sets)

    def as_memory(self, batch: pa.RecordBatch) -> dict[str, Column]:
        return memory_columns(self.mixed, batch)

    def close(self) -> None:
        """Let go of the temporary folder."""
        self.connection.close()
        self.scratch.close()


def allow_memory(connection: Any, limit: str | None, workers: int, columns: int) -> None:
    """Let DuckDB hold what a query of so many columns needs, unless the user has set a limit."""
    if limit is None:
        needed = max(MEMORY, PER_COLUMN * (columns + 1)) * max(THREADS, workers) // THREADS
        connection.execute(f"SET memory_limit = '{needed}MB'")


def check_threads(threads: Any) -> None:
    """DuckDB starts as many as it is told to, and a machine has only so many."""
    if threads is not None and (type(threads) is not int or not 1 <= threads <= MOST_THREADS):
        raise PodiumError(
            f"threads must be a whole number from 1 to {MOST_THREADS:,}; it is {show_value(threads)}",
            hint="leave it out: DuckDB takes as many as there are processors.",
        )


def check_size(name: str, size: Any) -> None:
    """Refuse what is no limit; of units, DuckDB knows best."""
    if size is not None and ENDLESS.fullmatch(str(size).strip()):
        raise PodiumError(f"{name} must be a size; it is {show_value(size)}", hint='sizes look like "2GB".')


@dataclass
class DuckErrors:
    """DuckDB's errors as podium tells them; an interrupted query leaves nothing behind."""

    engine: DuckEngine

    def __enter__(self) -> None:
        self.engine.opened.watch.check()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import duckdb

        if isinstance(error, KeyboardInterrupt):
            self.engine.connection.interrupt()
            self.engine.close()
            return
        if error is not None and is_interrupt(error):
            self.engine.close()
            raise KeyboardInterrupt from error
        ours = error is None or isinstance(error, PodiumError)
        library = isinstance(error, duckdb.Error | OSError) or type(error).__module__.split(".")[0] == "pyarrow"
        if not ours and not library:
            return
        self.engine.opened.watch.check()
        if error is None or ours:
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
        line = LINE.search(str(error))
        for sign, meaning, hint in SIGNS:
            if line and sign in str(error):
                raise PodiumError(f"{where}: line {line[1]} {meaning}", hint=hint) from error
        raise PodiumError(f"{where} cannot be read: {text}", hint="check the files, or write them again.") from error


def beyond_limit(limit: str) -> PodiumError:
    return PodiumError(
        f"reading the log takes more than the {limit} that podium may write to the temporary folder",
        hint="raise disk_limit=, or leave it out.",
    )


def marked(batches: Iterable[pa.RecordBatch], marks: pa.BooleanArray) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column(LATEST, marks.take(batch.column(ROW)))


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
                    yield held[0] if len(held) == 1 else one_batch(pa.Table.from_batches(held))
                    held, size = [], 0
        if held:
            yield held[0] if len(held) == 1 else one_batch(pa.Table.from_batches(held))


def cell(column: str, kind: str) -> str:
    """SQL for a column in the precision in which it is computed, and categories as texts."""
    cast = CASTS.get(kind.partition("(")[0])
    return f"CAST({name_of(column)} AS {cast})" if cast else name_of(column)


def text_cell(column: str, kind: str) -> str:
    """SQL for a column as texts, as `podium.data.arrays.arrow_texts` writes them."""
    name = name_of(column)
    if kind == "VARCHAR":
        return name
    if kind == "BOOLEAN":
        return f"CASE WHEN {name} THEN 'True' WHEN NOT {name} THEN 'False' END"
    if kind.startswith("TIMESTAMP"):
        zoned = f"timezone('UTC', {name})" if "TIME ZONE" in kind or "TZ" in kind else name
        return f"strftime({zoned}, '%Y-%m-%dT%H:%M:%S.{'%n' if 'NS' in kind else '%f'}')"
    if (kind_of(kind) == "other" and kind != "UUID") or (kind.startswith("TIME") and not kind.startswith("TIMESTAMP")):
        raise no_text(column, kind)
    return f"CAST({cell(column, kind)} AS VARCHAR)"


def kind_of(kind: str) -> str:
    if kind.startswith(("TIMESTAMP", "TIME")):
        return "time"
    if kind.startswith("DECIMAL"):
        return "number"
    if kind.startswith("ENUM"):
        return "text"
    return KINDS.get(kind, "other")
