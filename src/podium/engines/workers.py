"""What Spark's workers run: work on the rows that lie there, and its statistics as rows to send back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engines import LATEST, ROW
from podium.engines.arrow import one_batch
from podium.engines.parts import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

PART = "place bigint, part binary"  # what is sent back: the first row number or the partition, and a statistic
PLACE = "podium place"  # the column that says to which stretch a row belongs


def run_part(work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on one partition: a statistic for each stretch of consecutive rows."""
    import pyarrow as pa

    for first, stretch in stretches(batches):
        yield shipped(pa, first, work(stretch))


def run_stretch(work: Any, names: list[str], left: pa.Table, right: pa.Table) -> pa.Table:
    """Work on one stretch of rows; those whose numbers are on the right are the latest of their state and action."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = one_batch(left.drop_columns([PLACE]).rename_columns(names).sort_by(ROW))
    latest = pc.is_in(rows.column(ROW), value_set=right.column(ROW).combine_chunks())
    first = rows.column(ROW)[0].as_py()
    part = work(cut(rows.append_column(LATEST, latest), iter(())))
    return pa.Table.from_batches([shipped(pa, first, part)])


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
