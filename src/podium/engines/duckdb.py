"""DuckDB: Parquet, CSV and JSON lines in any number of files, tables and relations, larger than memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.columns import Column
from podium.engines import ROW, Order, P, Work
from podium.engines.arrow import memory_columns
from podium.engines.batches import ROWS
from podium.engines.buckets import HASH, TIME, beyond_limit, buckets_for, deal
from podium.engines.sources import Rows, first_line, name_of, quoted
from podium.errors import MissingExtra, PodiumError
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
        self.lying = Rows(self.source, self.table, self.text, self.connection, self.folder)
        with self.told():
            self.relation = self.lying.open()
        self.size, self.texts = self.lying.size, self.lying.texts

    def told(self) -> Told:
        return Told(self)

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
        with self.told():
            found = self.as_they_lie(columns, size) if order is None else self.state_by_state(columns, order, size)
            with closing(self.shown(found, label)) as batches:
                return work(batches)

    def shown(self, batches: Iterator[pa.RecordBatch], label: str) -> Generator[pa.RecordBatch, None, None]:
        """Batches with their progress, from the moment when the first one is there."""
        first = next(batches, None)
        with self.progress(label, self.size) as advance:
            yield from counted(chain([] if first is None else [first], batches), advance)

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
            count = buckets_for(self.size * (len(needed) + 2))
            with (
                self.progress("rows to their states", self.size) as advance,
                closing(self.as_they_lie(list(needed), size, more)) as batches,
            ):
                buckets = deal(counted(batches, advance), file, count, self.disk_limit or "", self.disk)
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
        gone = [f for f in self.engine.lying.files if not Path(f).exists()]
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


def kind_of(kind: str) -> str:
    if kind.startswith(("TIMESTAMP", "TIME")):
        return "time"
    if kind.startswith("DECIMAL"):
        return "number"
    return KINDS.get(kind, "other")
