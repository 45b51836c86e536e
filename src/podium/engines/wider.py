"""Passes over all rows that also need columns which no policy reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from podium.engines.parts import Part
from podium.engines.rows import Rows, ScannedRows

T = TypeVar("T")


def fold_with(rows: Rows, columns: Sequence[str], function: Callable[[Iterable[Part]], T], label: str) -> T:
    """What a function makes of all parts, each of which holds these columns of the log."""
    source = rows.source
    if isinstance(source, ScannedRows):
        source = replace(source, columns=tuple(dict.fromkeys((*source.columns, *columns))))
    return source.fold(function, label, False)
