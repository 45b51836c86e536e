"""Spark: a DataFrame, or Parquet, CSV and JSON lines, on whatever cluster the user's session points to.

Each part of the rows goes through the kernel where it lies (`mapInArrow`); what comes back to the driver is one
statistic per part, never a row. Row numbers are a function of the data: the files in the order of their names and the
rows as each file has them, or the order of a DataFrame's partitions.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.columns import Column
from podium.engines import ROW, Order, P, Work
from podium.engines.arrow import Fault, memory_columns
from podium.engines.batches import ROWS
from podium.errors import MissingExtra, PodiumError
from podium.io import CODE, JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, Pairs, flatten
from podium.progress import Progress, meanwhile, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "boolean": "truth", "string": "text", "float": "number", "double": "number", "tinyint": "whole",
    "smallint": "whole", "int": "whole", "bigint": "whole", "date": "time", "timestamp": "time",
    "timestamp_ntz": "time",
}  # fmt: skip
FILE, START = "podium file", "podium start"  # columns that number the rows, and are gone afterwards
INSIDE = 33  # bits of a monotonically increasing id that count inside a partition
LARGEST_POLICY = 64 << 20  # bytes of one policy that are sent to every worker
EVERY = 0.5  # seconds between two looks at a running job


@dataclass(eq=False)
class SparkEngine:
    """Rows that Spark reads.

    Parameters
    ----------
    source : a Spark DataFrame, or the path or pattern of files (Parquet, CSV, JSON lines) that every worker can reach
    session : the session to use with a path; the active one by default, else one on this machine
    partitions : parts into which rows are sorted by state; the session's `spark.sql.shuffle.partitions` by default
    text : columns of text files to read as texts although they look like numbers
    """

    source: Any
    session: Any = None
    partitions: int | None = None
    text: Sequence[str] = ()
    progress: Progress = no_progress
    name: str = field(default="spark", init=False)

    def __post_init__(self) -> None:
        try:
            import pyarrow  # noqa: F401
            import pyspark  # noqa: F401
        except ImportError as error:
            raise MissingExtra("pyspark", "spark", "the spark engine") from error
        if self.partitions is not None and self.partitions < 1:
            raise PodiumError(f"partitions must be at least 1; it is {self.partitions}", hint="leave it out.")
        self.texts = False
        self.kept: Any = None
        with told(self):
            if isinstance(self.source, str | Path):
                self.session = self.session or session_here()
                self.frame = self.from_files(str(self.source))
            elif hasattr(self.source, "mapInArrow"):
                self.session = self.source.sparkSession
                self.frame = self.from_frame()
            else:
                raise PodiumError(
                    f"Spark cannot read a log from {type(self.source).__name__}",
                    hint="give a Spark DataFrame, or the path of Parquet, CSV or JSON files.",
                )

    # --- where the rows lie --------------------------------------------------------------------------------------

    def from_files(self, path: str) -> Any:
        if Path(path).suffix.lower() in TEXT_ENDINGS:
            return self.from_text(path)
        if Path(path).suffix.lower() in JSON_ENDINGS:
            return self.from_json(path)
        if Path(path).suffix.lower() not in (*PARQUET_ENDINGS, ""):
            raise PodiumError(
                f"the spark engine does not read {Path(path).suffix} files",
                hint="write them as Parquet, read them into a DataFrame first, or use --engine duckdb.",
            )
        return self.numbered(self.session.read.option("mergeSchema", True).parquet(path))

    def numbered(self, frame: Any) -> Any:
        """Parquet files one after the other, by their names."""
        from pyspark.sql import functions as F

        self.headers_of(frame)
        frame = frame.withColumns({FILE: F.col("_metadata.file_path"), ROW: F.col("_metadata.row_index")})
        sizes = {str(file): int(rows) for file, rows in frame.groupBy(quoted(FILE)).count().collect()}
        names = sorted(sizes)
        starts = np.concatenate([[0], np.cumsum([sizes[n] for n in names])]).astype(np.int64)
        self.size = int(starts[-1])
        places = list(zip(names, starts[:-1].tolist(), strict=True))
        joined = self.session.createDataFrame(places, f"{quoted(FILE)} string, {quoted(START)} bigint")
        row = F.col(quoted(ROW)) + F.col(quoted(START))
        return frame.join(F.broadcast(joined), FILE).withColumn(ROW, row.cast("bigint")).drop(FILE, START)

    def from_text(self, path: str) -> Any:
        """CSV files, typed as `podium.io` types them."""
        from pyspark.sql import functions as F

        reader = self.session.read.option("header", True).option("escape", '"').option("multiLine", True)
        found = reader.csv(path, inferSchema=False)
        files = sorted(found.inputFiles())
        frame = reader.csv(files[0])
        for file in files[1:]:
            other = reader.csv(file)
            if other.columns != frame.columns:
                raise PodiumError(
                    f"{Path(file).name} and {Path(files[0]).name} have different headers",
                    hint="give every file the same columns in the same order.",
                )
            frame = frame.unionAll(other)
        for name in self.text:
            if name not in frame.columns:
                raise PodiumError(
                    f"{Path(path).name}: there is no column {name!r} to read as text",
                    hint="the columns are " + ", ".join(frame.columns) + ".",
                )
        self.texts = True
        counts = []
        for h in frame.columns:
            raw, cell = quoted(h), f"trim({quoted(h)})"
            number = f"try_cast({cell} AS DOUBLE) IS NOT NULL AND NOT contains({cell}, '_')"
            whole = f"{cell} RLIKE '^[+-]?[0-9]+$' AND try_cast({cell} AS BIGINT) IS NOT NULL"
            code = F.col(raw).isNotNull() & F.trim(F.col(raw)).rlike(f"^(?:{CODE.pattern})$")
            counts += [
                F.expr(f"count_if({raw} IS NOT NULL AND NOT coalesce({number}, false))"),
                F.count_if(code),
                F.expr(f"count_if({raw} IS NULL OR NOT coalesce({whole}, false))"),
                F.expr(f"count({raw})"),
            ]
        (row,) = frame.agg(*(c.alias(f"c{i}") for i, c in enumerate(counts))).collect()
        chosen = []
        for i, h in enumerate(frame.columns):
            not_number, codes, not_whole, present = row[4 * i : 4 * i + 4]
            kind = None
            if h not in self.text and present and not not_number and not codes:
                kind = "double" if not_whole else "bigint"
            column = F.col(quoted(h))
            chosen.append((F.trim(column).cast(kind) if kind else column).alias(h))
        return self.kept_in_order(frame.select(*chosen))

    def from_json(self, path: str) -> Any:
        """JSON lines, the files by their names; a list or an object becomes several columns, as `podium.io` has it."""
        reader = self.session.read.option("mode", "FAILFAST")
        found = reader.json(path)
        files = sorted(found.inputFiles())
        frame = reduce(lambda one, other: one.unionAll(other), (reader.schema(found.schema).json(f) for f in files))
        parts = [
            part
            for f in found.schema.fields
            for part in self.flattened(frame, frame[quoted(f.name)], f.name, f.dataType)
        ]
        first = [row[0] for row in self.session.read.text(files[0]).head(100) if row[0].strip()]
        named = (name for line in first for name, _ in flatten(json.loads(line, object_pairs_hook=Pairs)))
        place = {name: i for i, name in enumerate(dict.fromkeys(named))}
        parts.sort(key=lambda part: (place.get(part[0], len(place)), part[0]))  # Spark sorts them by name
        return self.kept_in_order(frame.select(*(column.alias(header) for header, column in parts)))

    def flattened(self, frame: Any, column: Any, header: str, kind: Any) -> list[tuple[str, Any]]:
        """{"state": [1, 2], "pi_new": {"a": 1}} -> state[0], state[1], pi_new:a."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import ArrayType, StructType

        if isinstance(kind, StructType):
            inside = [(column.getField(f.name), f"{header}:{f.name}", f.dataType) for f in kind.fields]
        elif isinstance(kind, ArrayType):
            ((longest,),) = frame.agg(F.max(F.size(column))).collect()
            inside = [(F.get(column, F.lit(i)), f"{header}[{i}]", kind.elementType) for i in range(longest or 0)]
        else:
            return [(header, column)]
        return [part for member in inside for part in self.flattened(frame, *member)]

    def from_frame(self) -> Any:
        if ROW in self.source.columns:
            raise PodiumError(f"a column may not be called {ROW!r}", hint="give it another name.")
        return self.kept_in_order(self.source)

    def kept_in_order(self, frame: Any) -> Any:
        """A DataFrame numbered once and kept, since Spark may part its rows otherwise when it makes them again."""
        from pyspark.sql import functions as F

        identity = quoted(START)
        self.kept = frame.withColumn(START, F.monotonically_increasing_id()).persist()
        part = F.shiftright(F.col(identity), INSIDE)
        sizes = {int(p): int(n) for p, n in self.kept.groupBy(part).count().collect()}
        counts = [sizes.get(p, 0) for p in range(max(sizes, default=0) + 1)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.size = int(starts[-1])
        self.headers_of(frame)
        first = F.element_at(F.array(*(F.lit(n) for n in starts[:-1].tolist())), (part + 1).cast("int"))
        row = first + F.col(identity).bitwiseAND((1 << INSIDE) - 1)
        return self.kept.withColumn(ROW, row.cast("bigint")).drop(START)

    def headers_of(self, frame: Any) -> None:
        self.schema = {f.name: f.dataType.simpleString() for f in frame.schema.fields}

    # --- what the engine promises --------------------------------------------------------------------------------

    def headers(self) -> Mapping[str, str]:
        return {h: "number" if k.startswith("decimal") else KINDS.get(k, "other") for h, k in self.schema.items()}

    def rows(self) -> int:
        return self.size

    def selected(self, columns: Sequence[str]) -> Any:
        from pyspark.sql import functions as F

        wanted = []
        for h in dict.fromkeys(columns):
            column = F.col(quoted(h))
            exact = self.schema[h] == "float" or self.schema[h].startswith("decimal")
            wanted.append(column.cast("double").alias(h) if exact else column)
        return self.frame.select(*wanted, F.col(quoted(ROW)))

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        from pyspark.sql import functions as F

        with told(self):
            table = self.selected(columns).where(F.col(quoted(ROW)) < rows).toArrow()
        table = table.sort_by(ROW).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else table.schema.empty_table().to_batches()[0]

    def sound(self, labels: Sequence[str], shares: Sequence[str]) -> bool:
        return False  # another job would cost more than it saves

    def fold(self, columns: Sequence[str], order: Order | None, work: Work[P], label: str) -> P:
        check_shipped(work)
        frame = self.selected(columns)
        if order is not None:
            whole = [quoted(c) for c in order.whole]
            parted = frame.repartition(self.parts, *whole)
            frame = parted.sortWithinPartitions(*whole, *(self.sort_key(c) for c in order.then), quoted(ROW))
        task = partial(run_part, work, order is None)
        with told(self), self.progress(label, self.size) as advance, watched(self.session, self.size, advance):
            rows = frame.mapInArrow(task, "place bigint, part binary").collect()
        parts = [pickle.loads(bytes(row["part"])) for row in sorted(rows, key=lambda row: int(row["place"]))]
        if not parts:
            parts = [work(iter(()))]
        failed = [part for part in parts if isinstance(part, Fault)]
        return failed[0] if failed else reduce(add, parts)  # type: ignore[return-value]

    @cached_property
    def parts(self) -> int:
        return self.partitions or int(self.session.conf.get("spark.sql.shuffle.partitions"))

    def sort_key(self, column: str) -> Any:
        """Times that are texts in order of time."""
        from pyspark.sql import functions as F

        found = F.col(quoted(column))
        if self.schema[column] != "string" or not self.texts:
            return found
        return F.coalesce(F.try_to_timestamp(found).cast("string"), found)

    @property
    def as_memory(self) -> Callable[[pa.RecordBatch], dict[str, Column]]:
        """A plain function, since it goes to the workers."""
        return partial(memory_columns, self.texts, tuple(self.text))

    def close(self) -> None:
        """Let go of what Spark keeps for this log."""
        if self.kept is not None:
            self.kept.unpersist()
            self.kept = None


# --- on the workers ----------------------------------------------------------------------------------------------


def run_part(work: Any, by_row: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on one partition: a statistic for each stretch of consecutive rows, or for all of its rows."""
    import pyarrow as pa

    if by_row:
        for first, stretch in stretches(batches):
            yield shipped(pa, first, work(stretch))
        return
    from pyspark import TaskContext

    context = TaskContext.get()
    place = context.partitionId() if context is not None else 0
    first_batch = next(batches, None)
    if first_batch is None:
        return
    yield shipped(pa, place, work(cut(first_batch, batches)))


def shipped(pa: Any, place: int, part: Any) -> Any:
    return pa.RecordBatch.from_pydict(
        {"place": pa.array([place], pa.int64()), "part": pa.array([pickle.dumps(part)], pa.binary())}
    )


def cut(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    """Batches of at most `ROWS` rows."""
    batch: Any = first
    while batch is not None:
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS)
        batch = next(others, None)


def stretches(batches: Iterator[Any]) -> Iterator[tuple[int, Iterator[Any]]]:
    """(first row number, batches) of each run of consecutive row numbers: a partition may hold several files."""
    pieces = consecutive(batches)
    waiting = next(pieces, None)

    def stretch() -> Iterator[Any]:
        nonlocal waiting
        while waiting is not None:
            first, piece = waiting
            yield piece
            waiting = next(pieces, None)
            if waiting is not None and waiting[0] != first + piece.num_rows:
                return

    while waiting is not None:
        before = waiting
        rows = stretch()
        yield before[0], rows
        for _ in rows:  # what the work has left
            pass


def consecutive(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """(first row number, batch) with consecutive row numbers in each, at most `ROWS` of them."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column(ROW).to_numpy(zero_copy_only=False)
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        for start, stop in zip([0, *breaks], [*breaks, len(numbers)], strict=True):
            for at in range(int(start), int(stop), ROWS):
                yield int(numbers[at]), batch.slice(at, min(ROWS, int(stop) - at))


# --- sessions, policies, errors ------------------------------------------------------------------------------------


def session_here() -> Any:
    """The active session, or a new one; workers use the Python that runs podium."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    return active or SparkSession.builder.appName("podium").getOrCreate()


def check_shipped(work: Any) -> None:
    """Refuse policies that cannot go to the workers."""
    from pyspark import cloudpickle

    read = getattr(work, "read", None) or getattr(work, "reader", None)
    policies = getattr(getattr(read, "reader", read), "policies", {})
    for name, policy in policies.items():
        try:
            size = len(cloudpickle.dumps(policy))
        except Exception as error:
            raise PodiumError(
                f"policy {name!r} cannot be sent to Spark's workers: {str(error).splitlines()[0]}",
                hint="open connections, locks and files inside it, not before; or write its answers as a column.",
            ) from error
        if size > LARGEST_POLICY:
            raise PodiumError(
                f"policy {name!r} takes {size / 1e6:,.0f} MB, too much to send to every worker",
                hint="write its probabilities as a column of the log, or give a function or a table keyed by state.",
            )


@contextmanager
def watched(session: Any, rows: int, advance: Callable[[int], None]) -> Iterator[None]:
    """Report the share of finished tasks while a job runs; Spark Connect has no such news."""
    try:
        tracker = session.sparkContext.statusTracker()
    except Exception:
        yield
        return
    told_rows = 0

    def look() -> None:
        nonlocal told_rows
        stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
        tasks = sum(s.numTasks for s in stages if s is not None)
        done = sum(s.numCompletedTasks for s in stages if s is not None)
        now = rows * done // tasks if tasks else 0
        if now > told_rows:
            advance(now - told_rows)
            told_rows = now

    with meanwhile(look, EVERY):
        yield


SIGNS = (
    ("No module named 'podium'", "podium is not installed where Spark's workers run Python",
     "install podium and its extra 'spark' there, or set PYSPARK_PYTHON to an environment that has it."),
    ("PYTHON_VERSION_MISMATCH", "Spark's workers run another Python than this one",
     "set PYSPARK_PYTHON to the same version on both sides."),
    ("No space left on device", "a disk that Spark sorts on is full",
     "make room, or set spark.local.dir to a larger disk."),
    ("MALFORMED_RECORD", "a line is not valid JSON", "write one JSON object per line."),
    ("CANNOT_MERGE", "the files have different types for one column", "give a column the same type in every file."),
    ("PATH_NOT_FOUND", "there is no such file", "check the path; every worker must be able to read it."),
    ("FileNotFoundException", "a file disappeared while it was read", "keep the files until the answer is there."),
    ("FILE_NOT_EXIST", "a file disappeared while it was read", "keep the files until the answer is there."),
    ("is not a Parquet file", "a file is not a whole Parquet file", "write the file again."),
    ("UNABLE_TO_INFER_SCHEMA", "there are no Parquet files", "check the path."),
)  # fmt: skip


@contextmanager
def told(engine: SparkEngine) -> Iterator[None]:
    """Spark's errors as podium tells them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            # Rows travel as Arrow; which pandas is there does not matter.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        where = engine.source if isinstance(engine.source, str | Path) else "the DataFrame"
        for sign, meaning, hint in SIGNS:
            if sign in text:
                raise PodiumError(f"{where}: {meaning}", hint=hint) from error
        lines = [line for line in text.splitlines() if line.strip()]
        cause = next((line for line in reversed(lines) if "Error" in line and not line.startswith("\t")), lines[0])
        raise PodiumError(
            f"Spark cannot read {where}: {cause.strip()[:300]}", hint="the whole message is in Spark's own log."
        ) from error


def quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
