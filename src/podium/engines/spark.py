"""Spark: a DataFrame, or Parquet, CSV and JSON lines, on whatever cluster the user's session points to.

Each part of the rows goes through the kernel where it lies (`mapInArrow`); what comes back to the driver is one
statistic per part, never a row. Row numbers are a function of the data: the files in the order of their names and the
rows as each file has them, or the order of a DataFrame's partitions.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from operator import add
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arrays import DURATIONS, LISTS, OBJECTS, odd_kinds
from podium.data.columns import Column
from podium.data.errors import PodiumError, needs
from podium.data.paths import changed_file
from podium.data.progress import Progress, no_progress, watch_share
from podium.data.read import (
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    check_quotes,
    check_text,
    read_csv_header,
)
from podium.engines import ROW, Census, Keys, P, Work, check_folders, check_headers, check_twins
from podium.engines.arrow import Fault, memory_columns, one_batch
from podium.engines.parts import ROWS
from podium.engines.sources import parquet_schema
from podium.engines.spark_errors import explained
from podium.engines.spark_files import SparkFiles, as_texts, clean_names, names_in, spark_files
from podium.engines.spark_sets import SET, with_sets
from podium.engines.spark_tasks import Tasks
from podium.engines.texts import cell_counts, column_kinds, flattened, mixed_columns
from podium.engines.workers import PART, PLACE, check_shipped, run_part, run_stretch

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "boolean": "truth", "string": "text", "float": "number", "double": "number", "tinyint": "whole",
    "smallint": "whole", "int": "whole", "bigint": "whole", "date": "time", "timestamp": "time",
    "timestamp_ntz": "time",
}  # fmt: skip
FILE, START = "podium file", "podium start"  # columns that number the rows, and are gone afterwards
STRETCH = 1 << 23  # numbers in a stretch of rows, which a worker holds in memory
ZONE = r"[T ]\d.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"  # a text that names a time of day and its zone
INSIDE = 33  # bits of a monotonically increasing id that count inside a partition


@dataclass(eq=False)
class SparkEngine:
    """Rows that Spark reads.

    Parameters
    ----------
    source : a Spark DataFrame, or the path or pattern of files (Parquet, CSV, JSON lines) that every worker can reach
    session : the session to use with a path; the active one by default, else one on this machine
    partitions : parts in which the latest rows are found; the session's `spark.sql.shuffle.partitions` by default
    text : columns of text files to read as texts although they look like numbers
    """

    source: Any
    session: Any = None
    partitions: int | None = None
    text: Sequence[str] = ()
    progress: Progress = no_progress
    name: str = field(default="spark", init=False)

    def __post_init__(self) -> None:
        with needs("pyspark", "spark", "the spark engine"):
            import pyarrow  # noqa: F401
            import pyspark  # noqa: F401
        if self.partitions is not None and self.partitions < 1:
            raise PodiumError(f"partitions must be at least 1; it is {self.partitions}", hint="leave it out.")
        self.mixed: frozenset[str] = frozenset()
        self.typed: dict[str, str] = {}  # columns of types that Spark reads as others
        self.kept: Any = None
        self.latest_rows: dict[Keys, Any] = {}
        self.size = 0
        self.files = SparkFiles((), (), {})
        if isinstance(self.source, str | Path):
            with explained(self.source):
                self.session = self.session or session_here()
                self.files = spark_files(self.session, str(self.source))
            with self.passing("opening"):
                self.frame = self.from_files()
        elif hasattr(self.source, "mapInArrow"):
            self.session = self.source.sparkSession
            with self.passing("opening"):
                self.frame = self.kept_in_order(self.source)
        else:
            raise PodiumError(
                f"Spark cannot read a log from {type(self.source).__name__}",
                hint="give a Spark DataFrame, or the path of Parquet, CSV or JSON files.",
            )

    # --- where the rows lie --------------------------------------------------------------------------------------

    def from_files(self) -> Any:
        names = [PurePosixPath(name) for name in self.files.names]
        endings = {name.suffix.lower() for name in names}
        if endings <= {*PARQUET_ENDINGS}:
            return self.from_parquet(names[0])
        if endings <= {*TEXT_ENDINGS}:
            return self.from_text(names[0])
        if endings <= {*JSON_ENDINGS}:
            return self.from_json()
        raise PodiumError(
            f"the spark engine does not read {' and '.join(sorted(endings))} files",
            hint="write them as Parquet, read them into a DataFrame first, or use --engine duckdb.",
        )

    def from_parquet(self, first: PurePosixPath) -> Any:
        """Parquet files one after the other, by their names; what the names of their folders say are columns."""
        from pyspark.sql import functions as F

        reader = self.session.read.option("mergeSchema", True).option("recursiveFileLookup", True)
        frame = reader.parquet(*self.files.paths)
        check_headers(frame.columns)
        check_folders(self.files.folders, frame.columns, first)
        for file in [*self.files.watch.marks][:1]:
            self.typed = odd_kinds(parquet_schema(file)[0])
        frame = as_texts(frame, self.text, first.name)
        frame = frame.withColumns({FILE: F.col("_metadata.file_path"), ROW: F.col("_metadata.row_index")})
        sizes = {str(file): int(rows) for file, rows in frame.groupBy(quoted(FILE)).count().collect()}
        starts = self.files.starts(sizes)
        self.size = sum(sizes.values())
        kinds, values = self.files.folder_columns()
        columns = "".join(f", {quoted(name)} {kind}" for name, kind in kinds.items())
        rows = [(file, start, *values[self.files.place(file)]) for file, start in starts.items()]
        joined = self.session.createDataFrame(rows, f"{quoted(FILE)} string, {quoted(START)} bigint{columns}")
        row = F.col(quoted(ROW)) + F.col(quoted(START))
        numbered = frame.join(F.broadcast(joined), FILE).withColumn(ROW, row.cast("bigint")).drop(FILE, START)
        self.headers_of(numbered.drop(ROW))
        return numbered

    def from_text(self, first: PurePosixPath) -> Any:
        """CSV files, typed as `podium.data.read` types them."""
        from pyspark.sql import functions as F

        for file in self.files.watch.marks:
            check_twins(read_csv_header(file), file.name, "Spark")
            check_quotes(file, ",")
        reader = self.session.read.option("header", True).option("escape", '"').option("multiLine", True)
        frame = clean_names(reader.csv(self.files.paths[0]))
        for name, path in zip(self.files.names[1:], self.files.paths[1:], strict=True):
            other = clean_names(reader.csv(path))
            if other.columns != frame.columns:
                raise PodiumError(
                    f"{PurePosixPath(name).name} and {first.name} have different headers",
                    hint="give every file the same columns in the same order.",
                )
            frame = frame.unionAll(other)
        check_text(first.name, self.text, frame.columns)
        counts = [count for h in frame.columns for count in cell_counts(quoted(h), matches)]
        (row,) = frame.agg(*(F.expr(count).alias(f"c{i}") for i, count in enumerate(counts))).collect()
        self.mixed = mixed_columns(frame.columns, row, self.text)
        chosen = [
            (F.trim(F.col(quoted(h))).cast(kind) if kind else F.col(quoted(h))).alias(h)
            for h, kind in zip(frame.columns, column_kinds(frame.columns, row, self.text), strict=True)
        ]
        return self.kept_in_order(frame.select(*chosen))

    def from_json(self) -> Any:
        """JSON lines, the files by their names; a list or an object becomes several columns."""
        reader, files = self.session.read.option("mode", "FAILFAST"), self.files.paths
        found = reader.json(list(files))
        frame = reduce(lambda one, other: one.unionAll(other), (reader.schema(found.schema).json(f) for f in files))
        parts = [
            part
            for f in found.schema.fields
            for part in flattened(f.name, frame[quoted(f.name)], f.dataType, partial(self.members, frame))
        ]
        first = [row[0] for row in self.session.read.text(files[0]).head(100) if row[0].strip()]
        place = {name: i for i, name in enumerate(names_in(first, self.where))}
        parts.sort(key=lambda part: (place.get(part[0], len(place)), part[0]))  # Spark sorts them by name
        chosen = frame.select(*(column.alias(header) for header, column in parts))
        return self.kept_in_order(as_texts(chosen, self.text, self.where))

    def members(self, frame: Any, column: Any, kind: Any) -> list[tuple[str, Any, Any]] | None:
        """What is inside a list or an object of JSON."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import ArrayType, StructType

        if isinstance(kind, StructType):
            return [(f":{f.name}", column.getField(f.name), f.dataType) for f in kind.fields]
        if not isinstance(kind, ArrayType):
            return None
        ((longest,),) = frame.agg(F.max(F.size(column))).collect()
        return [(f"[{i}]", F.get(column, F.lit(i)), kind.elementType) for i in range(longest or 0)]

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
        check_headers(frame.columns)
        check_twins(frame.columns, self.where, "Spark")
        self.schema = {f.name: f.dataType.simpleString() for f in frame.schema.fields}

    # --- what the engine promises --------------------------------------------------------------------------------

    def headers(self) -> Mapping[str, str]:
        return {h: "number" if k.startswith("decimal") else KINDS.get(k, "other") for h, k in self.schema.items()}

    @property
    def odd(self) -> dict[str, str]:
        signs = {"array": LISTS, "struct": OBJECTS, "map": OBJECTS, "variant": OBJECTS, "interval": DURATIONS}
        found = {h: what for h, kind in self.schema.items() for sign, what in signs.items() if kind.startswith(sign)}
        return {**self.typed, **found}

    def rows(self) -> int:
        return self.size

    def selected(self, columns: Sequence[str]) -> Any:
        from pyspark.sql import functions as F

        wanted = []
        for h in dict.fromkeys(columns):
            column = F.col(quoted(h))
            wanted.append(column.cast("double").alias(h) if self.schema[h] == "float" else column)
        return self.frame.select(*wanted, F.col(quoted(ROW)))

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        from pyspark.sql import functions as F

        with self.passing("first rows"):
            table = self.selected(columns).where(F.col(quoted(ROW)) < rows).toArrow()
            self.check_count(table.num_rows, min(rows, self.size))
        return one_batch(table.sort_by(ROW))

    def take(self, columns: Sequence[str], rows: NDArray[np.int64], label: str) -> pa.RecordBatch:
        import pyarrow as pa
        from pyspark.sql import functions as F

        with self.passing(label):
            wanted = self.session.createDataFrame(pa.table({ROW: rows}))
            table = self.selected(columns).join(F.broadcast(wanted), ROW).toArrow()
            self.check_count(table.num_rows, len(rows))
        return one_batch(table.select([*dict.fromkeys(columns), ROW]).sort_by(ROW))

    def census(self, keys: Keys) -> Census:
        from pyspark.sql import functions as F

        size = F.col("count")
        with self.passing("counting states"):
            states = self.frame.select(*(F.col(quoted(c)).alias(f"s{i}") for i, c in enumerate(keys.states)))
            sizes = states.groupBy(*states.columns).count()
            ((count, single, rows),) = sizes.agg(F.count(size), F.count_if(size == 1), F.sum(size)).collect()
            self.check_count(int(rows or 0), self.size)
            distinct = self.latest(keys).count()
        return Census(count, distinct, single)

    def fold(self, columns: Sequence[str], work: Work[P], label: str, latest: Keys | None = None) -> P:
        check_shipped(work)
        frame = self.selected(columns)
        with self.passing(label):
            if latest is None:
                found = frame.mapInArrow(partial(run_part, work), PART)
            else:
                task = partial(run_stretch, work, frame.columns)
                found = self.stretches(frame, latest).applyInArrow(task, PART)
            rows = found.collect()
            self.check_count(sum(int(row["rows"]) for row in rows), self.size)
        parts = [pickle.loads(bytes(row["part"])) for row in sorted(rows, key=lambda row: int(row["place"]))]
        if not parts:
            parts = [work(iter(()))]
        failed = [part for part in parts if isinstance(part, Fault)]
        return failed[0] if failed else reduce(add, parts)  # type: ignore[return-value]

    def stretches(self, frame: Any, keys: Keys) -> Any:
        """Rows in stretches of consecutive ones, each beside the numbers of the latest rows in it."""
        from pyspark.sql import functions as F

        width = len(frame.columns)
        rows = ROWS * max(1, STRETCH // (ROWS * width))
        place = F.expr(f"{quoted(ROW)} div {rows}")
        # A cogroup does not find columns with dots or backticks in their names, so they go without.
        renamed = frame.withColumn(PLACE, place).toDF(*(f"c{i}" for i in range(width)), PLACE)
        left, right = (
            side.repartition(self.parts, quoted(PLACE)).groupBy(quoted(PLACE))
            for side in (renamed, self.latest(keys).withColumn(PLACE, place))
        )
        return left.cogroup(right)

    def latest(self, keys: Keys) -> Any:
        """The numbers of the rows after which no row has the same state and action, kept once they are found."""
        from pyspark.sql import functions as F

        if keys not in self.latest_rows:
            groups = {f"g{i}": F.col(quoted(c)) for i, c in enumerate((*keys.states, keys.action))}
            times = {f"t{i}": c for i, c in enumerate(self.time_keys(keys.time))}
            order = {**times, "row": F.col(quoted(ROW))}
            cells = {f"e{i}": F.col(quoted(c)) for i, c in enumerate(keys.listed)}
            rows = self.frame.select(*(c.alias(name) for name, c in {**groups, **order, **cells}.items()))
            if keys.sets is not None:
                rows, groups = with_sets(rows, keys.sets, [*cells]), {**groups, SET: F.col(SET)}
            last = rows.groupBy(*groups).agg(F.max(F.struct(*order)).alias("last"))
            self.latest_rows[keys] = last.select(F.col("last.row").alias(ROW)).persist()
        return self.latest_rows[keys]

    def time_keys(self, column: str | None) -> list[Any]:
        """Columns that are in order of time: texts as moments where Spark knows them, else as they are."""
        from pyspark.sql import functions as F

        if column is None:
            return []
        found = F.col(quoted(column))
        if self.schema[column] != "string":
            return [found]
        moment = F.when(found.rlike(ZONE), F.try_to_timestamp(found))
        local = F.when(~found.rlike(ZONE), found.try_cast("timestamp_ntz"))  # no zone, no change of the clocks
        return [moment, local, F.when(moment.isNull() & local.isNull(), found)]

    @contextmanager
    def passing(self, label: str) -> Iterator[None]:
        """A pass over files that stay as they are, with its progress and with errors as podium tells them."""
        self.files.watch.check()
        with explained(self.source), self.watched(label):
            yield
        self.files.watch.check()

    def check_count(self, found: int, wanted: int) -> None:
        """Every pass must see the rows that were counted when the log was opened."""
        if found != wanted:
            raise changed_file(self.where)

    @property
    def where(self) -> str:
        return Path(self.source).name if isinstance(self.source, str | Path) else "the DataFrame"

    def watched(self, label: str) -> AbstractContextManager[None]:
        """Report the share of finished tasks while a job runs; Spark Connect has no such news."""
        try:
            tracker = self.session.sparkContext.statusTracker()
        except Exception:
            return nullcontext()
        return watch_share(self.progress, label, self.size, Tasks(tracker))

    @cached_property
    def parts(self) -> int:
        return self.partitions or int(self.session.conf.get("spark.sql.shuffle.partitions"))

    @property
    def as_memory(self) -> Callable[[pa.RecordBatch], dict[str, Column]]:
        """A plain function, since it goes to the workers."""
        return partial(memory_columns, self.mixed)

    def close(self) -> None:
        """Let go of what Spark keeps for this log."""
        for frame in (self.kept, *self.latest_rows.values()):
            if frame is not None:
                frame.unpersist()
        self.kept = None
        self.latest_rows.clear()


# --- sessions, SQL --------------------------------------------------------------------------------------------------


def session_here() -> Any:
    """The active session, or a new one; workers use the Python that runs podium."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    return active or SparkSession.builder.appName("podium").getOrCreate()


def quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def matches(cell: str, pattern: str) -> str:
    return f"{cell} RLIKE '^({pattern})$'"
