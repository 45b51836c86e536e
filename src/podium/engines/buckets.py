"""Rows side by side, state by state: dealt out to buckets in one file, each of which is then sorted in memory.

A bucket holds all rows of its states, which the hash of a state chooses, in the order of the log. So whole rows move
twice, whatever their number, and never have to be compared: the hash, the action and the rank of a row in its bucket
are packed into whole numbers, and these alone are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from podium.columns import Codes
from podium.engines import ROW, Order
from podium.errors import PodiumError

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 21  # numbers in a bucket: its columns stay in the processor's cache
MANY = 256  # buckets, beyond which they get larger instead, since the file is read in smaller and smaller pieces
HELD = 1 << 23  # numbers in a bucket that are sorted in memory without a thought
CROWDED = 1 << 25  # numbers in a bucket with very many rows of one state that still are
HASH = "podium hash"  # the column of the states' hashes, uint64
TIME = "podium time"  # a time in an order that its own column has not


@dataclass(frozen=True)
class Piece:
    """Where some rows of a bucket lie in the file."""

    start: int
    size: int


@dataclass(frozen=True, eq=False)
class Buckets:
    """Rows in a file, bucket by bucket."""

    path: Path
    schema: pa.Schema
    pieces: list[list[Piece]]

    def sorted(self, order: Order, rows: int) -> Iterator[pa.RecordBatch]:
        """All rows in batches of at most `rows`: states side by side, inside them by action, time and row number."""
        kept = [name for name in self.schema.names if name not in (HASH, TIME)]
        with self.path.open("rb", buffering=0) as file:
            for pieces in self.pieces:
                if pieces:
                    bucket = in_order(self.read(file, pieces), order).select(kept)
                    for start in range(0, bucket.num_rows, rows):
                        yield bucket.slice(start, rows)

    def read(self, file: IO[bytes], pieces: list[Piece]) -> pa.RecordBatch:
        import pyarrow as pa

        found = []
        for piece in pieces:
            file.seek(piece.start)
            found.append(pa.ipc.read_record_batch(pa.py_buffer(file.read(piece.size)), self.schema))
        return pa.concat_batches(found)


def buckets_for(cells: int) -> int:
    """How many buckets so many numbers need, a power of two."""
    wanted = max(min(MANY, cells / CELLS), cells / HELD, 2)
    return 1 << int(np.ceil(np.log2(wanted)))


def beyond_limit(limit: str) -> PodiumError:
    return PodiumError(
        f"sorting the log takes more than the {limit} that it may write into the temporary folder",
        hint="raise disk_limit=, or leave it out.",
    )


def deal(
    batches: Iterable[pa.RecordBatch], path: Path, count: int, limit: str = "", most: float = np.inf
) -> Buckets | None:
    """Put every row into the bucket of its hash; None where one bucket gets too many for memory.

    Parameters
    ----------
    batches : rows in the order of the log, with the columns `HASH` and `ROW`
    limit, most : what the file may take, as it was given and in bytes
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces: list[list[Piece]] = [[] for _ in range(count)]
    rows = np.zeros(count, dtype=np.int64)
    shift, end, schema = np.uint64(64 - (count.bit_length() - 1)), 0, pa.schema([])
    with path.open("wb", buffering=0) as file:
        for batch in batches:
            schema = batch.schema
            bucket = (batch.column(HASH).to_numpy() >> shift).astype(np.uint16)
            sizes = np.bincount(bucket, minlength=count)
            rows += sizes
            if rows.max() * batch.num_columns > CROWDED:
                return None
            dealt = pc.take(batch, pa.array(np.argsort(bucket, kind="stable")), boundscheck=False)
            ends = np.cumsum(sizes)
            for b in np.flatnonzero(sizes).tolist():
                content = dealt.slice(int(ends[b] - sizes[b]), int(sizes[b])).serialize()
                if end + content.size > most:
                    raise beyond_limit(limit)
                file.write(content)
                pieces[b].append(Piece(end, content.size))
                end += content.size
    return Buckets(path, schema, pieces)


def in_order(batch: pa.RecordBatch, order: Order) -> pa.RecordBatch:
    """The rows of a bucket sorted; those of a state are next to each other, states in the order of their hashes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (place := packed_order(batch, order)) is not None:
        found = pc.take(batch, pa.array(place), boundscheck=False)
        hashes = found.column(HASH).to_numpy()
        same = hashes[1:] == hashes[:-1]
        states = (found.column(name) for name in order.whole)
        n = batch.num_rows
        apart = [pc.not_equal(s.slice(1), s.slice(0, n - 1)).to_numpy(zero_copy_only=False) for s in states]
        if not any(np.any(same & other) for other in apart):
            return found
    # Two states share a hash, or there are too many actions to pack.
    keys = [*order.whole, *order.then[:1], *times(batch, order), ROW]
    return batch.take(pc.sort_indices(batch, sort_keys=[(key, "ascending") for key in keys]))


def packed_order(batch: pa.RecordBatch, order: Order) -> Codes | None:
    """(n,) the rows sorted by hash, action, time and place; None if these need more than 63 bits."""
    import pyarrow.compute as pc

    n = batch.num_rows
    hashes = batch.column(HASH).to_numpy()
    by_hash = np.argsort(hashes)
    found = hashes[by_hash]
    state = np.empty(n, dtype=np.int64)
    state[by_hash] = np.concatenate([[0], np.cumsum(found[1:] != found[:-1])])
    coded = batch.column(order.then[0]).dictionary_encode()
    codes = np.empty(len(coded.dictionary), dtype=np.int64)
    codes[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(codes))
    bits, action_bits = n.bit_length(), len(codes).bit_length()
    if 2 * bits + action_bits > 63:
        return None
    key = ((state << action_bits) | codes[coded.indices.to_numpy()]) << bits
    by_time = [(name, "ascending") for name in times(batch, order)]
    if not by_time:
        key |= np.arange(n)
        key.sort()
        place: Codes = key & ((1 << bits) - 1)
        return place
    late = pc.sort_indices(batch, sort_keys=by_time).to_numpy()
    rank = np.empty(n, dtype=np.int64)
    rank[late] = np.arange(n)
    key |= rank
    key.sort()
    places: Codes = late[key & ((1 << bits) - 1)]
    return places


def times(batch: pa.RecordBatch, order: Order) -> list[str]:
    return [TIME] if TIME in batch.schema.names else list(order.then[1:])
