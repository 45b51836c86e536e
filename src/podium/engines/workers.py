"""What Spark's workers run: work on the rows that lie there, and its statistics as rows to send back."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.errors import PodiumError
from podium.engines import LATEST, ROW
from podium.engines.arrow import one_batch
from podium.engines.parts import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

PART = "place bigint, rows bigint, part binary"  # what is sent back: a first row number, how many, and a statistic
LARGEST_POLICY = 64 << 20  # bytes of one policy that are sent to every worker
PLACE = "podium place"  # the column that says to which stretch a row belongs


def run_part(work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on the rows of one partition."""
    counted = Counted(cut(batches))
    first = next(counted, None)
    if first is not None:
        part = work(chain([first], counted))
        yield shipped(first.column(ROW)[0].as_py(), counted.rest(), part)


def run_stretch(work: Any, names: list[str], left: pa.Table, right: pa.Table) -> pa.Table:
    """Work on one stretch of rows; those whose numbers are on the right are the latest of their state and action."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = one_batch(left.drop_columns([PLACE]).rename_columns(names).sort_by(ROW))
    latest = pc.is_in(rows.column(ROW), value_set=right.column(ROW).combine_chunks())
    part = work(cut([rows.append_column(LATEST, latest)]))
    return pa.Table.from_batches([shipped(rows.column(ROW)[0].as_py(), rows.num_rows, part)])


def shipped(place: int, rows: int, part: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {
            "place": pa.array([place], pa.int64()),
            "rows": pa.array([rows], pa.int64()),
            "part": pa.array([pickle.dumps(part)], pa.binary()),
        }
    )


class Counted:
    """Batches as they come, and how many rows they held."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.batches, self.rows = batches, 0

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self.batches)
        self.rows += batch.num_rows
        return batch

    def rest(self) -> int:
        """All rows, also those that work left unread because it could not go on."""
        for _ in self:
            pass
        return self.rows


def cut(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches of at most `ROWS` rows, none of them empty, each of consecutive rows: a partition may hold several
    files."""
    for batch in batches:
        numbers = batch.column(ROW).to_numpy(zero_copy_only=False)
        breaks = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), batch.num_rows]
        for start, stop in pairwise(breaks):
            for at in range(start, stop, ROWS):
                yield batch.slice(at, min(ROWS, stop - at))


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
