"""Columns of times in an order that nothing rounds: numbers of any size, dates, ISO 8601 texts to the nanosecond."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from podium.data.columns import REAL, Column, Floats, boxed, is_missing, numbers_column, rounded, to_array, whole
from podium.data.errors import PodiumError, refuse_rows

FINER = re.compile(r"[.,]\d{6}(\d+)")  # digits of a second that Python's moments do not hold


def times_column(values: Any, what: str) -> Column:
    """A sortable column of times: numbers, dates, or ISO 8601 texts."""
    column = to_array(values)
    hint = "give every row a number or an ISO 8601 date; without times, the row order is the time order."
    if column.ndim != 1:
        raise PodiumError(f"{what} must be one-dimensional; its shape is {column.shape}", hint=hint)
    refuse_rows(what, "must not have gaps", is_missing(column), column, hint)
    if column.dtype.kind == "M":
        return column
    if column.dtype.kind == "m":
        return column.astype(np.int64)
    if column.dtype.kind in "iu":
        return column
    if column.dtype.kind in "OU":
        if all(isinstance(x, REAL) for x in column):
            return ordered_numbers(column, numbers_column(column, what, hint))
        moments = [parse_time(x) for x in column]
        refuse_rows(what, "must be a number or an ISO 8601 date", [m is None for m in moments], column, hint)
        zones = [m is not None and m.tzinfo is not None for m in moments]
        if any(zones):
            refuse_rows(what, "must name a time zone in every row or in none", [not z for z in zones], column, hint)
        return finer_than_microseconds(column, moments, what, hint)
    return numbers_column(column, what, hint)


def ordered_numbers(column: Column, floats: Floats) -> Column:
    """Objects that are numbers as numbers in the same order: as floats where those differ wherever the objects do."""
    if all(isinstance(x, numbers.Integral) for x in column):
        return whole(column)
    if not rounded(column, floats).any():
        return floats
    return boxed([Fraction(float(x) if isinstance(x, np.floating) else x) for x in column])


def finer_than_microseconds(column: Column, moments: Sequence[Any], what: str, hint: str) -> Column:
    """Moments, as they are or to the nanosecond where the text of one has more than six digits of a second."""
    digits = [FINER.search(str(x)) for x in column]
    if not any(digits):
        return np.array(moments, dtype=object)
    rule = "must lie between 1678 and 2261, with at most nine digits of a second"
    bad = [
        not 1678 <= m.year <= 2261 or (d is not None and len(d[1].rstrip("0")) > 3)
        for m, d in zip(moments, digits, strict=True)
    ]
    refuse_rows(what, rule, bad, column, hint)
    plain_moments = [m if m.tzinfo is None else m.astimezone(UTC).replace(tzinfo=None) for m in moments]
    finer = [0 if d is None else int(d[1][:3].ljust(3, "0")) for d in digits]
    nanoseconds = np.array(plain_moments, dtype="datetime64[us]").astype("datetime64[ns]")
    exact: Column = nanoseconds + np.array(finer, dtype="timedelta64[ns]")
    return exact


def parse_time(value: Any) -> datetime | None:
    """A date or an ISO text as a moment; None if it is neither."""
    try:
        return datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
    except (ValueError, AttributeError, TypeError):
        return None
