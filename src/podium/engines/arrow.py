"""Record batches as the kernel reads them: columns as arrays, and rows as parts of a log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from podium.data.arrays import arrow_column, decimal_floats
from podium.data.columns import INT64, Codes, Column, Floats, boxed, plain, to_array
from podium.data.eligible_parts import Listing
from podium.data.errors import PodiumError
from podium.data.frames import LazyColumns
from podium.data.log import Log
from podium.data.read import cell_value
from podium.data.roles import Roles
from podium.data.states import states_given
from podium.engines import LATEST, ROW
from podium.engines.parts import Part, part_rows, unit_group
from podium.policies.batches import NewActions, Reader, on_rows
from podium.policies.drafts import Policy

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R")


@dataclass(frozen=True)
class Fault:
    """Work that could not go on; whatever is added to it, it stays one."""

    error: PodiumError

    def __add__(self, other: Any) -> Fault:
        return self

    __radd__ = __add__


def numbers(column: pa.Array) -> Floats | None:
    """A column as float64, a gap as nan; None where it holds no numbers."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        return decimal_floats(column)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return None
    values: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return values


@dataclass(frozen=True, eq=False)
class ArrowReader:
    """Record batches as parts: actions and units coded, policies asked.

    Parameters
    ----------
    reader : the policies
    roles : which column is what
    actions : the action space
    behavior : the behavior policy where it does not stand in a column of propensities
    units : the units by name, or None for random groups of them
    listing, ineligible : how eligible actions are read, where the log has them, and the rule for other actions
    """

    reader: Reader
    roles: Roles
    actions: tuple[Any, ...]
    behavior: Policy | None = None
    units: Sequence[Any] | None = None
    listing: Listing | None = None
    ineligible: str = "refuse"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
        size = part_rows(len(self.actions), len(self.reader.policies))
        for batch in batches:
            for start in range(0, batch.num_rows, size):
                yield self.part(batch.slice(start, size))

    def part(self, batch: pa.RecordBatch) -> Part:
        rows, log = batch.column(ROW).to_numpy(zero_copy_only=False), self.log_of(batch)
        latest = None
        if LATEST in batch.schema.names:
            latest = batch.column(LATEST).to_numpy(zero_copy_only=False)
        unit = self.unit_codes(batch.column(self.roles.names["unit"])) if "unit" in self.roles.names else None
        return Part(rows, log, self.reader.policies_on(rows, log), latest, unit)

    def log_of(self, batch: pa.RecordBatch) -> Log:
        """The rows of a batch as a log of their own, over the whole action space; nothing is checked again."""
        names = self.roles.names
        given = [name for name in batch.schema.names if name not in (ROW, LATEST)]
        columns = LazyColumns(given, partial(column_of, batch))
        reward = numbers_of(batch, names["reward"])
        codes = label_codes(batch.column(names["action"]), self.actions)
        states = {h: as_labels(columns[h]) for h in self.roles.states if h in columns}
        log = object.__new__(Log)
        log._set(
            states=states_given(columns, list(states), None),
            actions=to_array(list(self.actions))[codes],
            rewards=reward,
            propensities=numbers_of(batch, names["propensity"]) if "propensity" in names else None,
            action_space=self.actions,
            columns=columns,
            names=names,
            state_columns=states,
            action_codes=codes,
        )
        if self.listing is not None:
            possible = self.listing.mask(columns, self.actions)
            log._set(eligible=possible, ineligible=self.ineligible, names={**names, "eligible": self.listing.name})
        if self.behavior is None:
            return log
        log = log.with_behavior(on_rows(self.behavior, batch.column(ROW).to_numpy(zero_copy_only=False)))
        if new := [x for x in log.action_space if x not in set(self.actions)]:
            raise NewActions({"behavior": new})
        return log

    def unit_codes(self, column: pa.Array) -> Codes:
        if self.units is not None:
            return label_codes(column, self.units)
        coded = column.dictionary_encode()
        groups = np.array([unit_group(plain(x)) for x in labels_of(coded.dictionary)], dtype=np.int64)
        found: Codes = groups[coded.indices.to_numpy(zero_copy_only=False)]
        return found


def column_of(batch: pa.RecordBatch, name: str) -> Column:
    return arrow_column(batch.column(name))


def labels_of(column: pa.Array) -> Column:
    """The labels that a log in memory would have in a column whose cells the first pass has checked."""
    return as_labels(arrow_column(column))


def as_labels(column: Column) -> Column:
    if column.dtype.kind == "M":
        return column.astype(str).astype(object)
    if column.dtype.kind == "u":
        return column.astype(object if column.size and int(column.max()) not in INT64 else np.int64)
    return column


def memory_columns(mixed: Collection[str], batch: pa.RecordBatch) -> dict[str, Column]:
    """The columns of a batch as `podium.data.read` reads them from files; `mixed` ones have numbers among texts."""
    columns: dict[str, Column] = {}
    for header, column in zip(batch.schema.names, batch.columns, strict=True):
        if header in mixed:
            columns[header] = boxed([cell_value(x or "", True) for x in column.to_pylist()])
        elif header != ROW:
            columns[header] = arrow_column(column)
    return columns


def numbers_of(batch: pa.RecordBatch, header: str) -> Floats:
    """(n,) a column of numbers; refused where Python reads a cell as a number that the engine does not."""
    found = numbers(batch.column(batch.schema.get_field_index(header)))
    if found is None:
        raise PodiumError(
            f"column {header!r} holds cells that this engine does not read as numbers",
            hint="write numbers in plain digits without odd spaces, or use engine='memory'.",
        )
    return found


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table side by side in memory."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def label_codes(column: pa.Array, labels: Sequence[Any]) -> Codes:
    """(n,) the place of each label."""
    place = {label: i for i, label in enumerate(labels)}
    coded = column.dictionary_encode()
    codes = np.array([place[plain(x)] for x in labels_of(coded.dictionary)], dtype=np.int64)
    found: Codes = codes[coded.indices.to_numpy(zero_copy_only=False)]
    return found


@dataclass(frozen=True, eq=False)
class BatchWork(Generic[R]):
    """Any function of the parts of a log, as work that can be sent anywhere."""

    read: ArrowReader
    function: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> R | Fault:
        from threadpoolctl import threadpool_limits

        try:
            with threadpool_limits(limits=1, user_api="blas"):  # more threads beside an engine's own cost, not give
                found: R = self.function(self.read(batches))
            return found
        except PodiumError as error:
            return Fault(error)
