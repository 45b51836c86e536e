"""Engines: where the rows of a log lie, and how they reach the kernel in batches.

An engine knows nothing of policies or methods. It reads record batches (Arrow) of named columns in the order of the
log, hands them to the work it is given, and adds up what the work returns. Whatever the engine, the work is the same,
so the numbers are. Counting and finding the latest row of each state and action are the engine's own work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from podium.data.columns import Codes, Column
from podium.data.eligible_parts import Sets
from podium.data.errors import PodiumError
from podium.data.read import refuse_zero_bytes

if TYPE_CHECKING:
    import pyarrow as pa

ROW = "podium row"  # the column of row numbers, from 0, that every record batch carries after those asked for
LATEST = "podium latest"  # the column, after `ROW`, that says whether no later row has the same state and action
NAMES = ("auto", "memory", "duckdb", "spark")


class Part(Protocol):
    """What work on some rows returns: parts of a log add up to the whole."""

    def __add__(self, other: Any) -> Any: ...


P = TypeVar("P", bound=Part)
Work = Callable[[Iterator["pa.RecordBatch"]], P]


@dataclass(frozen=True)
class Keys:
    """Which rows are duplicates of each other, and which of them is the latest.

    Rows with the same state and action are duplicates, if the same actions were eligible. The latest is the last one by
    time, and by row number where times are equal or there is no column for them.
    """

    states: tuple[str, ...]
    action: str
    time: str | None = None
    sets: Sets | None = None  # where eligible actions change from row to row

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that tell which actions were eligible."""
        return () if self.sets is None else self.sets.listing.headers


@dataclass(frozen=True)
class Census:
    """Exact counts of a whole log."""

    states: int  # distinct states
    distinct: int  # distinct (state, action)
    single: int  # states with one row


class Engine(Protocol):
    """Rows in files, tables or on other machines."""

    name: str

    @property
    def mixed(self) -> Collection[str]:
        """The columns of text files that hold numbers among texts."""
        ...

    @property
    def odd(self) -> Mapping[str, str]:
        """The columns whose values cannot be labels or numbers, with their kind; see `podium.data.arrays`."""
        ...

    def headers(self) -> Mapping[str, str]:
        """The columns, each with its kind: "number", "whole", "truth", "text", "time" or "other"."""
        ...

    def rows(self) -> int:
        """How many rows there are."""
        ...

    def head(self, columns: Sequence[str], rows: int) -> pa.RecordBatch:
        """The first rows, with their numbers in `ROW`."""
        ...

    def take(self, columns: Sequence[str], rows: Codes, label: str) -> pa.RecordBatch:
        """The rows with these numbers (ascending), in that order, with their numbers in `ROW`."""
        ...

    def census(self, keys: Keys) -> Census:
        """How many states and (state, action) there are."""
        ...

    def fold(self, columns: Sequence[str], work: Work[P], label: str, latest: Keys | None = None) -> P:
        """`work` on all rows, in batches; parts are added up in a fixed order.

        Rows come as the log has them; with `latest`, batches carry `LATEST` too. `work` may be sent to other
        processes, and is called once for each part of the rows that a process holds; `label` names it where progress
        is shown.
        """
        ...

    def as_memory(self, batch: pa.RecordBatch) -> dict[str, Column]:
        """The columns of a batch just as `podium.data.read.read_columns` would read them."""
        ...


def check_engine(name: str) -> None:
    if name not in NAMES:
        raise PodiumError(f"unknown engine {name!r}", hint="the engines are " + ", ".join(NAMES) + ".")


def check_headers(headers: Iterable[str]) -> None:
    """Refuse columns whose names podium needs, and those without one."""
    headers = list(headers)
    refuse_zero_bytes(headers)
    for i, name in enumerate(headers):
        if not name:
            raise PodiumError(f"column {i + 1} has no name", hint="give every column a header.")
        if name in (ROW, LATEST):
            raise PodiumError(f"a column may not be called {name!r}", hint="give it another name.")


def check_twins(names: Iterable[str], file: str, engine: str) -> None:
    """Refuse columns that an engine cannot tell apart, since it does not look at the case of letters."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            twin = seen[name.lower()]
            raise PodiumError(
                f"{file}: the column {name!r} appears twice"
                if twin == name
                else f"{file}: {engine} cannot tell the columns {twin!r} and {name!r} apart",
                hint="give each column a name of its own.",
            )
        seen[name.lower()] = name


def check_folders(folders: Iterable[str], columns: Iterable[str], file: PurePath) -> None:
    """Refuse a folder such as country=de/ over files that have a column of that name."""
    known = {column.lower(): column for column in columns}
    for name in folders:
        if name.lower() in known:
            folder = next(part for part in reversed(file.parts) if part.startswith(f"{name}="))
            raise PodiumError(
                f"{file.name} has a column {known[name.lower()]!r}, and its folder {folder!r} gives one too",
                hint="rename the folders or the column, so that it is clear which of the two counts.",
            )
