"""Engines: where the rows of a log lie, and how they reach the kernel in batches.

An engine knows nothing of policies or methods. It reads record batches (Arrow) of named columns, in the order of the
log or state by state, hands them to the work it is given, and adds up what the work returns. Whatever the engine, the
work is the same, so the numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from podium.columns import Column
from podium.errors import PodiumError

if TYPE_CHECKING:
    import pyarrow as pa

ROW = "podium row"  # the column of row numbers, from 0, that every record batch carries last
NAMES = ("auto", "memory", "duckdb", "spark")
AUTO = 256_000_000  # bytes from which files are left where they are


class Part(Protocol):
    """What work on some rows returns: parts of a log add up to the whole."""

    def __add__(self, other: Any) -> Any: ...


P = TypeVar("P", bound=Part)
Work = Callable[[Iterator["pa.RecordBatch"]], P]


@dataclass(frozen=True)
class Order:
    """Rows side by side: sorted by these columns, then by row number; rows equal in `whole` are never parted."""

    whole: tuple[str, ...]  # the state columns
    then: tuple[str, ...]  # the action, and the time where there is one


class Engine(Protocol):
    """Rows in files, tables or on other machines."""

    name: str

    def headers(self) -> Mapping[str, str]:
        """The columns, each with its kind: "number", "whole", "truth", "text", "time" or "other"."""
        ...

    def rows(self) -> int:
        """How many rows there are."""
        ...

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        """The first rows, with their numbers in `ROW`."""
        ...

    def sound(self, labels: Sequence[str], shares: Sequence[str]) -> bool:
        """Whether the engine sees for itself that no row of these columns breaks a rule, so that none need be read."""
        ...

    def fold(self, columns: Sequence[str], order: Order | None, work: Work[P], label: str) -> P:
        """`work` on all rows, in batches of at most `podium.engines.batches.ROWS`; parts are added up in a fixed order.

        Without `order`, rows come as the log has them. `work` may be sent to other processes, and is called once for
        each part of the rows that a process holds; `label` names it where progress is shown.
        """
        ...

    def as_memory(self, batch: pa.RecordBatch) -> dict[str, Column]:
        """The columns of a batch just as `podium.io.read_columns` or `podium.Log.from_frame` would read them."""
        ...


def check_engine(name: str) -> None:
    if name not in NAMES:
        raise PodiumError(f"unknown engine {name!r}", hint="the engines are " + ", ".join(NAMES) + ".")
