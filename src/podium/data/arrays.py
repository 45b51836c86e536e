"""Arrow columns as arrays: one conversion for files that are read into memory and for what engines bring.

A log has the same labels, and functions are handed the same values, whatever reads its rows. What no label can be
(lists, objects, durations) is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from podium.data.columns import INT64, Column, Floats, boxed
from podium.data.errors import PodiumError
from podium.data.roles import Roles

if TYPE_CHECKING:
    import pyarrow as pa

LISTS, OBJECTS, DURATIONS = "lists", "objects", "durations"
UNIONS, DECIMALS = "values of several types", "decimals that no float can hold"
HINTS = {
    LISTS: "give each value of a list a column of its own.",
    OBJECTS: "give each member of an object a column of its own.",
    DURATIONS: "give them as numbers, of seconds for example.",
    UNIONS: "give every row the same kind of value.",
    DECIMALS: "round them to 15 digits, or give them as texts.",
}
LONGEST = 38  # digits of a decimal that every engine holds
SURE = 15  # digits of a decimal up to which no two have the same float


def arrow_column(column: Any) -> Column:
    """A column of a table as an array: int64 (uint64 for that type), float64, bool, datetime64, or objects.

    What a column becomes depends on its type and not on its cells, so that batches agree: times are in microseconds,
    nanoseconds or days, and decimals without a fraction are whole numbers. A gap is None among whole numbers, truth
    values and texts; nan and NaT elsewhere.
    """
    import pyarrow as pa

    is_a = pa.types
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if is_a.is_dictionary(column.type):
        column = column.dictionary_decode()  # an array would have the last category for a gap
    if isinstance(column.type, pa.BaseExtensionType):
        cells = column.to_pylist()
        if any(isinstance(x, UUID) for x in cells):
            return boxed([x if x is None else str(x) for x in cells])
        column = column.storage
    kind = column.type
    if is_a.is_decimal(kind):
        return decimals(column)
    if is_a.is_integer(kind):
        return whole_numbers(column)
    if is_a.is_timestamp(kind) and kind.unit in ("s", "ms"):
        column = column.cast(pa.timestamp("us", kind.tz))
    elif is_a.is_date64(kind):
        column = column.cast(pa.date32())
    values: Column = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False) if is_a.is_floating(kind) else values


def whole_numbers(column: pa.Array) -> Column:
    if column.null_count:
        return boxed(column.to_pylist())
    values: Column = column.to_numpy(zero_copy_only=False)
    return values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def decimals(column: pa.Array) -> Column:
    """Decimals as whole numbers where their type has no fraction, else as floats; as they are where floats differ."""
    coded = column.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    kind = column.type
    if kind.scale <= 0 and kind.precision <= LONGEST:
        whole = boxed([*map(int, distinct), None])
        fits = not column.null_count and all(x in INT64 for x in whole[:-1])
        labels = whole[:-1].astype(np.int64) if fits else whole
    elif kind.precision > LONGEST or (kind.precision > SURE and any(map(is_rounded, distinct))):
        labels = boxed([*distinct, None])
    else:
        labels = np.array([*map(float, distinct), np.nan])
    values: Column = labels[coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)]
    return values


def decimal_floats(column: pa.Array) -> Floats:
    """Decimals as the nearest floats, a gap as nan; Arrow's own cast is off by a bit for one in four."""
    coded = column.dictionary_encode()
    floats = np.array([*map(float, coded.dictionary.to_pylist()), np.nan])
    values: Floats = floats[coded.indices.fill_null(len(floats) - 1).to_numpy(zero_copy_only=False)]
    return values


def is_rounded(value: Decimal) -> bool:
    """Whether a decimal is not what its float is written as.

    >>> is_rounded(Decimal("0.10")), is_rounded(Decimal(10**17 + 1))
    (False, True)
    """
    return Decimal(repr(float(value))) != value


def no_text(name: str, kind: Any) -> PodiumError:
    return PodiumError(
        f"the column {name!r} cannot be read as text: it is of the type {kind}",
        hint="write it as texts, or leave text= or --text out.",
    )


def arrow_texts(column: Any, name: str) -> Column:
    """A column of a table read as texts: numbers as Python writes them, decimals with all digits, times in ISO 8601."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        return boxed([None if x is None else format(x, "f") for x in column.to_pylist()])
    kind = column.type
    if pa.types.is_time(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise no_text(name, kind)
    values = arrow_column(column)
    cells = values.astype(str).tolist() if values.dtype.kind == "M" else values.tolist()
    gaps = column.is_null().to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.is_null()
    return boxed([None if gap else str(x) for x, gap in zip(cells, np.asarray(gaps), strict=True)])


def shared_texts(column: Any) -> Column:
    """Texts in which those that repeat are one object: a million short ones would take 60 MB otherwise."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    labels = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    texts: Column = labels[coded.indices.fill_null(len(labels) - 1).to_numpy(zero_copy_only=False)]
    return texts


# --- what no label can be -------------------------------------------------------------------------------------------


def odd_kinds(schema: Iterable[Any]) -> dict[str, str]:
    """The columns of an Arrow schema whose values cannot be labels, with the kind of these values."""
    found = {field.name: odd_kind(field.type) for field in schema}
    return {name: what for name, what in found.items() if what is not None}


def odd_kind(kind: Any) -> str | None:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_duration(kind) or is_a.is_interval(kind):
        return DURATIONS
    if is_a.is_decimal(kind) and kind.precision > LONGEST:
        return DECIMALS
    if is_a.is_union(kind):
        return UNIONS
    if is_a.is_struct(kind) or is_a.is_map(kind):
        return OBJECTS
    return LISTS if is_a.is_nested(kind) else None


def odd_values(columns: Mapping[str, Column]) -> dict[str, str]:
    """The same of columns in memory."""
    found = {name: odd_value(column) for name, column in columns.items()}
    return {name: what for name, what in found.items() if what is not None}


def odd_value(column: Column) -> str | None:
    if column.dtype.kind == "m":
        return DURATIONS
    first = next((x for x in column if x is not None), None) if column.dtype == object else None
    if isinstance(first, Decimal):
        return DECIMALS
    if isinstance(first, timedelta | np.timedelta64):
        return DURATIONS
    if isinstance(first, dict):
        return OBJECTS
    if isinstance(first, list | np.ndarray):
        return OBJECTS if len(first) and isinstance(first[0], tuple) else LISTS  # Arrow's maps are lists of pairs
    return None


def refuse_odd(odd: Mapping[str, str], roles: Roles) -> None:
    """Refuse a log if the values of a column that it uses cannot be labels or numbers."""
    numbers = roles.some("reward", "propensity")
    for header in (*roles.states, *roles.some("action", "unit"), *numbers):
        what = odd.get(header)
        if what is not None and not (what == DECIMALS and header in numbers):
            raise PodiumError(f"column {header!r} holds {what}, which podium does not read", hint=HINTS[what])
