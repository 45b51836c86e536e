"""An engine whose rows have one more column: a sum of others, each times a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from podium.data.columns import Codes, Column, Floats
from podium.engines import LATEST, ROW, Census, Engine, Keys, P, Work
from podium.engines.arrow import numbers_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Combination:
    """The column `name` = sum of factor x column."""

    name: str
    factors: tuple[tuple[str, float], ...]

    def needed(self, columns: Sequence[str]) -> list[str]:
        """What must be read for some columns of which this may be one."""
        if self.name not in columns:
            return list(columns)
        return list(dict.fromkeys([*(c for c in columns if c != self.name), *(c for c, _ in self.factors)]))

    def added_to(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """The batch with just these columns, row numbers and marks."""
        import pyarrow as pa

        if self.name not in columns:
            return batch
        total: Floats | None = None
        for column, factor in self.factors:
            term = factor * numbers_of(batch, column)
            total = term if total is None else total + term
        read = {name: batch.column(batch.schema.get_field_index(name)) for name in batch.schema.names}
        read[self.name] = pa.array(total, type=pa.float64())
        return pa.RecordBatch.from_pydict({name: read[name] for name in (*columns, ROW, LATEST) if name in read})


@dataclass(frozen=True)
class CombinedWork(Generic[P]):
    """Work on batches that have the column; it may be sent to other processes."""

    work: Work[P]
    combination: Combination
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> P:
        return self.work(self.combination.added_to(batch, self.columns) for batch in batches)


@dataclass(eq=False)
class CombinedEngine:
    """The rows of another engine with the column."""

    engine: Engine
    combination: Combination

    def __post_init__(self) -> None:
        self.name = self.engine.name

    @property
    def text(self) -> Sequence[str]:
        return getattr(self.engine, "text", ())

    @property
    def mixed(self) -> Any:
        return self.engine.mixed

    @property
    def odd(self) -> Mapping[str, str]:
        return self.engine.odd

    def headers(self) -> Mapping[str, str]:
        return {**self.engine.headers(), self.combination.name: "number"}

    def rows(self) -> int:
        return self.engine.rows()

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        return self.combination.added_to(self.engine.head(self.combination.needed(columns), rows), columns)

    def take(self, columns: Sequence[str], rows: Codes, label: str) -> pa.RecordBatch:
        return self.combination.added_to(self.engine.take(self.combination.needed(columns), rows, label), columns)

    def census(self, keys: Keys) -> Census:
        return self.engine.census(keys)

    def fold(self, columns: Sequence[str], work: Work[P], label: str, latest: Keys | None = None) -> P:
        wrapped = CombinedWork(work, self.combination, tuple(columns))
        return self.engine.fold(self.combination.needed(columns), wrapped, label, latest)

    @property
    def as_memory(self) -> Callable[[pa.RecordBatch], dict[str, Column]]:
        return self.engine.as_memory
