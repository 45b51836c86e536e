"""Text files that an engine reads: which of their columns are numbers, and nested JSON as plain columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from podium.data.errors import PodiumError, count

CODE, WHOLE = "[+-]?0[0-9]+", "[+-]?[0-9]+"  # 007 is a name, not the number 7
COUNTS = 6  # of each column
EXACT = 2**53  # from here on, floats do not hold every whole number
MERGED = "mixes fractions with whole numbers that floats cannot tell apart"


def cell_counts(column: str, matches: Callable[[str, str], str]) -> list[str]:
    """SQL that counts the cells of a column of texts which are no number, are a code, are not whole, are present,
    are whole beyond 64 bits, are whole beyond what floats tell apart.

    Parameters
    ----------
    column : its name in SQL
    matches : SQL for whether a cell is a whole match of a pattern
    """
    cell = f"trim({column})"
    number = f"try_cast({cell} AS DOUBLE) IS NOT NULL AND NOT contains({cell}, '_')"
    whole = f"{matches(cell, WHOLE)} AND try_cast({cell} AS BIGINT) IS NOT NULL"
    return [
        f"count_if({column} IS NOT NULL AND NOT coalesce({number}, false))",
        f"count_if(coalesce({matches(cell, CODE)}, false))",
        f"count_if({column} IS NULL OR NOT coalesce({whole}, false))",
        f"count({column})",
        f"count_if({matches(cell, WHOLE)} AND try_cast({cell} AS BIGINT) IS NULL)",
        f"count_if({matches(cell, WHOLE)} AND abs(try_cast({cell} AS DOUBLE)) >= {EXACT})",
    ]


def column_kinds(header: Sequence[str], counts: Sequence[int], text: Sequence[str]) -> list[str | None]:
    """What each column is cast to: "DOUBLE" or "BIGINT", as `podium.data.read` types cells; None for texts.

    Whole numbers beyond 64 bits are refused: as DOUBLE, different ones would become the same.
    """
    kinds: list[str | None] = []
    for i, name in enumerate(header):
        not_number, codes, not_whole, present, wide, inexact = counts[COUNTS * i : COUNTS * (i + 1)]
        texts = name in text or not present or not_number or codes
        if wide and not texts:
            raise PodiumError(
                f"the column {name!r} holds whole numbers of more than 64 bits ({count(wide, 'row')})",
                hint=f"read it as texts with --text {name} (text=[{name!r}]), or use engine='memory'.",
            )
        if inexact and not_whole and not texts:
            raise PodiumError(
                f"the column {name!r} {MERGED} ({count(inexact, 'row')})",
                hint=f"read it as texts with --text {name} (text=[{name!r}]), or write all numbers in one form.",
            )
        kinds.append(None if texts else "DOUBLE" if not_whole else "BIGINT")
    return kinds


def mixed_columns(header: Sequence[str], counts: Sequence[int], text: Sequence[str]) -> frozenset[str]:
    """The columns in which some cells are numbers and others are not, none being a code such as 007."""
    found = set()
    for i, name in enumerate(header):
        not_number, codes, _, present, *_ = counts[COUNTS * i : COUNTS * (i + 1)]
        if name not in text and not codes and 0 < (not_number or 0) < present:
            found.add(name)
    return frozenset(found)


Members = Callable[[Any, Any], Iterable[tuple[str, Any, Any]] | None]


def flattened(header: str, column: Any, kind: Any, members: Members) -> list[tuple[str, Any]]:
    """{"state": [1, 2], "pi_new": {"a": 1}} -> state[0], state[1], pi_new:a.

    `members` gives the (ending of the header, column, kind) of what is inside a list or an object, else None.
    """
    inside = members(column, kind)
    if inside is None:
        return [(header, column)]
    return [part for name, cell, inner in inside for part in flattened(header + name, cell, inner, members)]
