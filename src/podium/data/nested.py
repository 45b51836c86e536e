"""Lists and objects inside columns as columns of their own: embedding[0], embedding[1], user:age.

JSON lines, Parquet files, frames and dicts of columns give the same names. Lists of numbers become columns, and so do
the members of objects; lists of texts stay as they are, since they are names and not features.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import REAL, Column, is_missing, is_unequal, to_array
from podium.data.errors import BadRows, PodiumError, count

LONGEST = 8192  # values of a list that become columns; longer ones are sequences, not features
GROUPED = 3  # columns of one list that are named one by one; more of them are counted
ELEMENT = re.compile(r"(?P<list>.+)\[(?P<place>\d+)\]", re.DOTALL)
RAGGED_HINT = "give every row a list of one length, or choose the state columns without it (--state)."


def spread(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns in which lists of numbers and objects have become columns.

    >>> list(spread({"e": np.array([[1, 2], [3, 4]]), "x": np.array([5, 6])}))
    ['e[0]', 'e[1]', 'x']
    """
    found: dict[str, Column] = {}
    for name, column in columns.items():
        for part, cells in parts_of(name, column):
            if part in found:
                raise PodiumError(f"the column {part!r} appears twice", hint="give each column a name of its own.")
            found[part] = cells
    return found


def parts_of(name: str, column: Column) -> Iterator[tuple[str, Column]]:
    """The columns that one column becomes; most stay what they are."""
    if column.ndim == 2 and column.shape[1]:
        for j in range(column.shape[1]):
            yield from parts_of(f"{name}[{j}]", column[:, j])
        return
    present = [x for x in column if not is_gap(x)] if column.ndim == 1 and column.dtype == object else []
    if present and all(isinstance(x, dict) for x in present):
        for key in dict.fromkeys(key for x in present for key in x):
            inside = to_array([x.get(key) if isinstance(x, dict) else None for x in column])
            yield from parts_of(f"{name}:{key}", inside)
    elif present and all(isinstance(x, list | np.ndarray) for x in present) and are_features(present):
        yield from elements_of(name, [x if isinstance(x, list | np.ndarray) else None for x in column])
    else:
        yield name, column


def elements_of(name: str, lists: Sequence[Any]) -> Iterator[tuple[str, Column]]:
    """One column for each place in the lists of a column; a shorter list leaves gaps."""
    longest = max(len(x) for x in lists if x is not None)
    if all(x is not None and len(x) == longest for x in lists):
        table = to_array(lists)
        if table.ndim == 2:
            yield from parts_of(name, table)
            return
    for j in range(longest):
        yield from parts_of(f"{name}[{j}]", to_array([None if x is None or len(x) <= j else x[j] for x in lists]))


def are_features(lists: Iterable[Any]) -> bool:
    """Whether lists hold numbers, truth values, or lists and objects of such, and are not too long to be columns."""
    for values in lists:
        if len(values) > LONGEST:
            return False
        if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
            continue
        if not all(isinstance(x, (bool, np.bool_, dict, list, np.ndarray, *REAL)) or is_gap(x) for x in values):
            return False
    return True


def is_gap(value: Any) -> bool:
    return value is None or (not isinstance(value, list | dict | np.ndarray) and is_unequal(value))


# --- Arrow ----------------------------------------------------------------------------------------------------------


def spread_table(table: Any) -> list[tuple[str, Any]]:
    """The columns of an Arrow table by name, with lists of numbers and the members of objects as columns."""
    import pyarrow as pa

    found: list[tuple[str, Any]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_spread(column.type):
            found += [(part, pa.chunked_array([cells])) for part, cells in arrow_parts(name, column.combine_chunks())]
        else:
            found.append((name, column))
    return found


def is_spread(kind: Any) -> bool:
    """Whether a column of an Arrow type becomes several columns."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_struct(kind):
        return bool(kind.num_fields)
    while is_list(kind):
        kind = kind.value_type
        if is_a.is_struct(kind) or is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind):
            return True
    return False


def is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def arrow_parts(name: str, column: Any) -> list[tuple[str, Any]]:
    """The columns that an Arrow array becomes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(column, pa.ChunkedArray):  # of no rows, or beyond what one array can hold
        column = pa.concat_arrays(column.chunks)
    if not is_spread(kind):
        return [(name, column)]
    if pa.types.is_struct(kind):
        members = zip(kind, column.flatten(), strict=True)
        return [part for field, cells in members for part in arrow_parts(f"{name}:{field.name}", cells)]
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    longest = int(lengths.max(initial=0))
    if longest > LONGEST:
        return [(name, column)]
    starts, values = np.cumsum(lengths) - lengths, column.flatten()  # which holds nothing for a gap
    return [
        part
        for j in range(longest)
        for part in arrow_parts(f"{name}[{j}]", values.take(pa.array(starts + j, mask=lengths <= j)))
    ]


# --- lists that have become columns ---------------------------------------------------------------------------------


def members_of(name: str, columns: Iterable[str]) -> list[str]:
    """The columns that a list or an object of this name has become.

    >>> members_of("e", ["e[0]", "e[1]", "e:x", "elf"])
    ['e[0]', 'e[1]', 'e:x']
    """
    return [header for header in columns if header.startswith((f"{name}[", f"{name}:"))]


def lists_among(names: Collection[str]) -> dict[str, list[str]]:
    """The lists whose columns are all there, by name.

    >>> lists_among(["e[0]", "e[1]", "x", "y[3]"])
    {'e': ['e[0]', 'e[1]']}
    """
    found: dict[str, list[str]] = {}
    for name in names:
        match = ELEMENT.fullmatch(name)
        if match is not None and int(match["place"]) == len(found.get(match["list"], ())):
            found.setdefault(match["list"], []).append(name)
    return {name: headers for name, headers in found.items() if len(headers) > 1}


def refuse_ragged(columns: Mapping[str, Column]) -> None:
    """Refuse lists of several lengths, of which the shorter ones leave gaps at their end."""
    for name, headers in lists_among(columns).items():
        if any(columns[h].ndim != 1 for h in headers) or not is_missing(columns[headers[-1]]).any():
            continue
        present: NDArray[np.bool_] = ~np.column_stack([is_missing(columns[h]) for h in headers])
        lengths = np.where(present.any(axis=1), len(headers) - present[:, ::-1].argmax(axis=1), 0)
        short = np.flatnonzero((lengths > 0) & (lengths < len(headers)))
        if short.size:
            row, length = int(short[0]) + 1, int(lengths[short[0]])
            rule = f"must hold {count(len(headers), 'value')} in every row"
            raise BadRows(f"column {name!r}", rule, row, f"{length} of them", int(short.size), RAGGED_HINT)


def grouped(names: Sequence[str]) -> list[str]:
    """Names of columns as a person reads them: those of a long list as one.

    >>> grouped([*(f"e[{j}]" for j in range(384)), "topic"])
    ['e (384 columns)', 'topic']
    """
    lists = {name: headers for name, headers in lists_among(names).items() if len(headers) > GROUPED}
    first = {headers[0]: f"{name} ({count(len(headers), 'column')})" for name, headers in lists.items()}
    inside = {header for headers in lists.values() for header in headers}
    return [first.get(name, name) for name in names if name in first or name not in inside]
