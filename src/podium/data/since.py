"""The rows of a log from some time on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from podium.data.columns import Column, plain
from podium.data.errors import PodiumError, count, show_value, shown
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scan import ScannedLog
from podium.data.times import parse_time


def since_time(name: str, value: Any) -> Any:
    """The rule of the argument: a number, a date, or a text of either."""
    good = isinstance(value, str | int | float | date | np.datetime64 | np.number) and not isinstance(value, bool)
    if not good or value == "":
        raise PodiumError(f"{name} must be a time; it is {shown(value)}", hint="write since='2026-03-01', or a number.")
    return value


def rows_since(log: Any, since: Any, most: int) -> Any:
    """The log without the rows before a time; a scanned log of up to `most` rows is collected."""
    if isinstance(log, ScannedLog):
        if len(log) > most:
            raise PodiumError(
                f"--since needs the rows in memory, and the log has {len(log):,} on engine {log.engine.name}",
                hint="use --engine memory, or give a table that holds only the rows from that time on.",
            )
        log = log.collect()
    if not isinstance(log, Log):
        return log
    if log.times is None:
        raise PodiumError(
            "the log has no time column, so no rows can be left out by time",
            hint="name it with --time COL (in Python, time='COL', or times=...).",
        )
    moment = as_held(since, log.times)
    if moment is None:
        raise PodiumError(
            f"{show_value(since)} cannot be compared with {log.column('time')}, which holds "
            f"{show_value(plain(log.times[0]))}",
            hint="write the time as the column does.",
        )
    kept = np.flatnonzero(np.asarray(log.times >= moment, dtype=bool))
    if not len(kept):
        raise PodiumError(
            f"no row is from {show_value(since)} or later; the latest of {log.column('time')} is "
            f"{show_value(str(max(log.times)))}",
            hint="name an earlier time.",
        )
    note = Fact("since", time=str(since), rows=count(len(kept), "row"), of=len(log), column=log.header("time"))
    return log.take(kept)._copy(notes=(*log.notes, note))


def as_held(since: Any, times: Column) -> Any:
    """A time in the form in which a column holds its own; None where it has no such form."""
    try:
        if times.dtype.kind == "M":
            return np.datetime64(since if not isinstance(since, datetime) else since.replace(tzinfo=None))
        if times.dtype.kind in "iuf":
            number = float(since)
            return int(since) if times.dtype.kind in "iu" and float(number).is_integer() else number
        if not isinstance(times[0], datetime):
            return Fraction(since)
        moment = parse_time(since)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment is None:
        return None
    if times[0].tzinfo is None:
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
