"""Spark: which rows have the same eligible actions, as numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from podium.data.eligible_parts import Sets
from podium.engines.arrow import column_of

if TYPE_CHECKING:
    import pyarrow as pa

SET = "set"


def with_sets(frame: Any, sets: Sets, cells: Sequence[str]) -> Any:
    """A DataFrame with the number of each row's set instead of the cells that list it."""
    from pyspark.sql.types import LongType, StructField, StructType

    kept = [field for field in frame.schema.fields if field.name not in cells]
    schema = StructType([*kept, StructField(SET, LongType())])
    return frame.mapInArrow(partial(numbered, sets, tuple(cells), [field.name for field in kept]), schema)


def numbered(
    sets: Sets, cells: Sequence[str], kept: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        columns = {h: column_of(batch, c) for h, c in zip(sets.listing.headers, cells, strict=True)}
        yield batch.select([*kept]).append_column(SET, pa.array(sets.numbers(columns), pa.int64()))
