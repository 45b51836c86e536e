"""What Spark's workers run: work on the rows that lie there, and its statistics as rows to send back."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engines import LATEST, ROW
from podium.engines.arrow import one_batch
from podium.engines.parts import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

PART = "place bigint, part binary"  # what is sent back: a first row number, and a statistic
PLACE = "podium place"  # the column that says to which stretch a row belongs


def run_part(work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on the rows of one partition."""
    pieces = cut(batches)
    first = next(pieces, None)
    if first is not None:
        yield shipped(first.column(ROW)[0].as_py(), work(chain([first], pieces)))


def run_stretch(work: Any, names: list[str], left: pa.Table, right: pa.Table) -> pa.Table:
    """Work on one stretch of rows; those whose numbers are on the right are the latest of their state and action."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = one_batch(left.drop_columns([PLACE]).rename_columns(names).sort_by(ROW))
    latest = pc.is_in(rows.column(ROW), value_set=right.column(ROW).combine_chunks())
    part = work(cut([rows.append_column(LATEST, latest)]))
    return pa.Table.from_batches([shipped(rows.column(ROW)[0].as_py(), part)])


def shipped(place: int, part: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {"place": pa.array([place], pa.int64()), "part": pa.array([pickle.dumps(part)], pa.binary())}
    )


def cut(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches of at most `ROWS` rows, none of them empty, each of consecutive rows: a partition may hold several
    files."""
    for batch in batches:
        numbers = batch.column(ROW).to_numpy(zero_copy_only=False)
        breaks = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), batch.num_rows]
        for start, stop in pairwise(breaks):
            for at in range(start, stop, ROWS):
                yield batch.slice(at, min(ROWS, stop - at))
