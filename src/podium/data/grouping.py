"""Columns by which a comparison is cut into groups of rows: numbers by quantiles or given cuts, names by their values.

    "device"        one group for each value; values with few rows are put together
    "age"           four groups with about as many rows each
    "age:40,65"     below 40, 40 to below 65, 65 and above

A group must be known before the action is chosen, so the columns of the action, the reward, the propensity and the
policies cannot be used. Rows without a value are a group of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arguments import texts
from podium.data.columns import Codes, Column, Floats, is_missing, plain, sort_key
from podium.data.errors import PodiumError, count, show_value
from podium.data.facts import Fact
from podium.data.roles import available

QUANTILES = 4
FEW_ROWS = 20  # rows of a group below which nothing is claimed of it
MOST = 20  # groups
AFTER = ("action", "reward", "propensity")  # roles that are known only once an action is chosen
MISSING = "missing"


def by_columns(name: str, value: Any) -> tuple[str, ...]:
    """The rule of the argument: one column, or a list of columns, each once."""
    given = texts(name, value)
    columns = (given,) if isinstance(given, str) else tuple(given)
    twice = next((c for n, c in enumerate(columns) if c in columns[:n]), None)
    if twice is not None:
        raise PodiumError(f"{name} names {twice!r} twice", hint="name each column once.")
    return columns


def refuse_groups(given: Mapping[str, Any], what: str) -> None:
    """Refuse groups where rows are not single decisions."""
    if given.get("by"):
        raise PodiumError(f"groups (by) are not available for {what}", hint="leave by out (--by).")


@dataclass(frozen=True)
class Named:
    """A column to group by, and the cuts of its numbers where they were given."""

    column: str
    cuts: tuple[float, ...] = ()


def find_column(asked: str, columns: Collection[str], roles: Mapping[str, str]) -> Named:
    """The column that a text names, and its cuts; any column that a group cannot come from is refused.

    Parameters
    ----------
    columns : the headers of the log, its state columns among them
    roles : role -> header
    """
    name, _, cuts = asked.rpartition(":")
    named = Named(asked)
    if asked not in columns:
        near = name if name in columns else asked
        if name not in columns:
            wanted = name if name and read_cuts(cuts) is not None else asked
            raise PodiumError(f"the log has no column {wanted!r} to group by", hint=available(columns, wanted))
        found = read_cuts(cuts)
        if found is None:
            raise PodiumError(
                f"the cuts of column {near!r} must be ascending numbers; they are {cuts!r}",
                hint=f'write --by "{name}:40,65" for below 40, 40 to below 65, and 65 and above.',
            )
        named = Named(name, found)
    refuse_after(named.column, roles)
    return named


def read_cuts(text: str) -> tuple[float, ...] | None:
    """Ascending numbers between commas; None where they are not.

    >>> read_cuts("40,65"), read_cuts("65,40"), read_cuts("x")
    ((40.0, 65.0), None, None)
    """
    try:
        cuts = tuple(float(x) for x in text.split(","))
    except ValueError:
        return None
    rising = all(a < b for a, b in pairwise(cuts))
    return cuts if np.isfinite(cuts).all() and rising else None


def refuse_after(column: str, roles: Mapping[str, str]) -> None:
    """Refuse columns that are known only once an action is chosen."""
    role = next((role for role in AFTER if roles.get(role, role) == column), None)
    if role is not None or column.startswith("pi_"):
        what = f"it is the {role}" if role is not None else "it belongs to a policy"
        raise known_after(column, what)


def known_after(column: str, what: str) -> PodiumError:
    return PodiumError(
        f"column {column!r} cannot make groups: {what}, which depends on the action that was chosen",
        hint="group by a column that is known before the action.",
    )


@dataclass(frozen=True, eq=False)
class Grouping:
    """How rows are put into groups by one column.

    Parameters
    ----------
    column : its header
    values : what each group is called; the last ones may be rare values together, and rows without a value
    edges : where numbers are cut: a group starts at each; None where values are names
    levels : value -> its group, where values are names
    rest : the group of rare values and of values not seen in the sample; -1 where there is none
    gap : the group of rows without a value; -1 where there is none
    notes : what should be said
    """

    column: str
    values: tuple[str, ...]
    edges: Floats | None = None
    levels: Mapping[Any, int] | None = None
    rest: int = -1
    gap: int = -1
    notes: tuple[Fact, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, column: Column) -> Codes:
        """(n,) the group of each row; -1 for a value of a large log that its sample did not show."""
        missing = is_missing(column)
        found = np.full(len(column), self.gap, dtype=np.int64)
        present = column[~missing]
        if self.edges is not None:
            found[~missing] = np.searchsorted(self.edges, present.astype(np.float64), side="right")
        else:
            levels = self.levels or {}
            distinct, where = distinct_values(present)
            found[~missing] = np.array([levels.get(x, self.rest) for x in distinct], dtype=np.int64)[where]
        return found


def distinct_values(column: Column) -> tuple[list[Any], Codes]:
    """The different values of a column in order, and which of them each row has."""
    values = [plain(x) for x in column.tolist()]
    distinct = sorted(set(values), key=sort_key)
    place = {x: n for n, x in enumerate(distinct)}
    return distinct, np.array([place[x] for x in values], dtype=np.int64)


def group_rows(named: Named, column: Column, share: float = 1.0) -> Grouping:
    """The groups that a column makes.

    Parameters
    ----------
    column : on the rows of the log, or of its sample
    share : rows of the log for each of these
    """
    missing = is_missing(column)
    present = column[~missing]
    name = named.column
    if not len(present):
        raise PodiumError(f"column {name!r} is empty: it makes no groups", hint="group by another column.")
    distinct, where = distinct_values(present)
    if len(distinct) == 1 and not missing.any():
        raise PodiumError(
            f"column {name!r} makes no groups: every row has the same value, {show_value(distinct[0])}",
            hint="leave it out, or group by another column.",
        )
    numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in distinct)
    if named.cuts and not numeric:
        raise PodiumError(
            f"column {name!r} cannot be cut at numbers: it holds {show_value(distinct[0])}",
            hint=f"write --by {name} for one group per value.",
        )
    if numeric and (named.cuts or len(distinct) > QUANTILES):
        found = by_numbers(named, present.astype(np.float64), bool(missing.any()))
    else:
        found = by_values(name, distinct, np.bincount(where), bool(missing.any()), share)
    rows = np.bincount(found.codes(column), minlength=len(found)) * share
    if len(found) < 2 or not (rows >= FEW_ROWS).any():
        raise PodiumError(
            f"column {name!r} makes no groups: {count(len(distinct), 'value')}, none with {FEW_ROWS} rows",
            hint="group by a column with fewer values, or cut numbers: --by COLUMN:40,65.",
        )
    return found


def by_numbers(named: Named, numbers: Floats, gaps: bool) -> Grouping:
    """Groups of numbers between cuts, given or at quantiles."""
    low, high = float(numbers.min()), float(numbers.max())
    cuts: Iterable[float] = named.cuts
    if not named.cuts:
        at = np.arange(1, QUANTILES) / QUANTILES
        cuts = sorted(set(np.quantile(numbers, at, method="inverted_cdf").tolist()))
    edges = np.array([c for c in cuts if low < c <= high])
    if named.cuts and len(edges) < len(named.cuts):
        outside = next(c for c in named.cuts if not low < c <= high)
        raise PodiumError(
            f"the cut {outside:g} of column {named.column!r} leaves no row on one side: its numbers are {low:g} to "
            f"{high:g}",
            hint="give cuts between them.",
        )
    texts = edge_texts(edges)
    between = [f"{a} to below {b}" for a, b in pairwise(texts)]
    values = [f"below {texts[0]}", *between, f"{texts[-1]} and above"] if texts else [f"{low:g} and above"]
    refuse_many(named.column, len(values))
    gap = len(values) if gaps else -1
    return Grouping(named.column, (*values, *([MISSING] if gaps else [])), edges, gap=gap)


def edge_texts(edges: Floats) -> list[str]:
    """The cuts, each to as many digits as tell them apart, four at least."""
    for digits in range(4, 17):
        texts = [f"{x:.{digits}g}" for x in edges]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(float(x)) for x in edges]


def by_values(name: str, distinct: Sequence[Any], counts: Codes, gaps: bool, share: float) -> Grouping:
    """A group for each value; those with few rows together."""
    common: NDArray[np.bool_] = counts * share >= FEW_ROWS
    if (~common).sum() == 1 and common.any():
        common = np.ones_like(common)  # a single rare value is no less clear by its own name
    kept = [x for x, is_common in zip(distinct, common, strict=True) if is_common]
    refuse_many(name, len(kept))
    rare = len(distinct) - len(kept)
    values = [str(x) for x in kept]
    notes: tuple[Fact, ...] = ()
    rest = gap = -1
    if rare:
        rest = len(values)
        values.append(apart(f"{rare:,} rare values", values))
        notes = (Fact("rare groups", column=name, values=rare, least=FEW_ROWS),)
    if gaps:
        gap = len(values)
        values.append(apart(MISSING, values))
    return Grouping(name, tuple(values), None, {x: n for n, x in enumerate(kept)}, rest, gap, notes)


def apart(text: str, taken: Collection[str]) -> str:
    """A name that no value has."""
    while text in taken:
        text = f"({text})"
    return text


def refuse_many(name: str, groups: int) -> None:
    if groups > MOST:
        raise PodiumError(
            f"column {name!r} makes {groups} groups, and podium compares up to {MOST}",
            hint="group by a column with fewer values, or cut numbers: --by COLUMN:40,65.",
        )
