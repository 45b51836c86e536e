"""Clean one-dimensional columns out of whatever people bring: numbers, labels, codes of distinct values.

A clean column is an array (N,) of int64, float64, bool, or Python objects that are all of one kind (mostly str).
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.errors import PodiumError, refuse_rows

Column = NDArray[Any]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

FILL_HINT = "fill the gaps or drop those rows before comparing."
INT64 = range(-(2**63), 2**63)  # of Python's own int: any other kind would be looked for number by number
EXACT = 2.0**53  # up to which a float holds every whole number


def foreign_array(values: Any) -> Column:
    """The array that an object of another library stands for; a torch tensor leaves its graph and its device."""
    try:
        if hasattr(values, "detach"):
            return np.asarray(values.detach().cpu().numpy())
        return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except Exception as error:
        raise PodiumError(
            f"a {type(values).__name__} cannot be read as an array: {type(error).__name__}: {error}",
            hint="give a list or a NumPy array: one value per row.",
        ) from error


def to_array(values: Any) -> Column:
    """Any sequence as an array (N,) or (N, d); a list of tuples or of mixed kinds stays as it is."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return np.asarray(values.data)
        gaps = np.asarray(values.data).astype(object)
        gaps[np.ma.getmaskarray(values)] = None
        return gaps
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # a subclass may do its own arithmetic
    if isinstance(values, set | frozenset | Mapping):
        raise PodiumError(f"a {type(values).__name__} is no column", hint="give a list or an array: one value per row.")
    if any(hasattr(values, name) for name in ("detach", "to_numpy", "__array__")):
        return foreign_array(values)
    for verb in ("toarray", "collect"):  # a sparse matrix; a frame whose rows are elsewhere
        if hasattr(values, verb):
            raise PodiumError(f"a {type(values).__name__} is no column", hint=f"give x.{verb}(), which holds the rows.")
    values = list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
    kinds = {type(value) for value in values}
    if kinds and kinds <= {list, np.ndarray}:
        try:
            array = np.array(values)
        except ValueError:  # rows of several lengths, for the log to refuse
            return boxed(values)
        lossy = array.dtype.kind in "US" or any(rounds(row, floats) for row, floats in zip(values, array, strict=True))
        return np.array(values, dtype=object) if lossy else array  # 1 beside "a" stays a number
    if kinds and all(issubclass(k, int | np.integer) and k is not bool for k in kinds):
        return whole(values)
    if len(kinds) > 1 and all(issubclass(k, int | float | np.integer | np.floating) and k is not bool for k in kinds):
        try:
            floats = np.array(values, dtype=np.float64)
        except OverflowError:
            return boxed(values)
        return boxed(values) if rounds(values, floats) else floats
    if len(kinds) == 1 and not kinds & {tuple, dict, set}:
        return np.array(values, dtype=object) if str in kinds else np.array(values)
    return boxed(values)


def rounds(values: Iterable[Any], floats: Column) -> bool:
    """Whether a whole number among the values differs from the float in its place."""
    if floats.dtype.kind != "f" or not (np.abs(floats) >= EXACT).any():
        return False
    return any(
        isinstance(x, int | np.integer) and int(x) != float(f) for x, f in zip(values, floats.ravel(), strict=False)
    )


def whole(values: Iterable[Any]) -> Column:
    """(N,) whole numbers of any size: int64 where they fit, else Python's own."""
    exact = [int(x) for x in values]
    fits = all(x in INT64 for x in exact)
    return np.array(exact, dtype=np.int64) if fits else boxed(exact)


def boxed(values: Sequence[Any]) -> Column:
    """(N,) the values as they are, whatever they are."""
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        column[i] = value
    return column


def is_missing(column: Column) -> NDArray[np.bool_]:
    """Which cells are absent: nan, NaT, None or an empty text."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "O":
        # A value that differs from itself is a nan in one of its many guises.
        return np.fromiter(
            (x is None or (isinstance(x, str) and not x) or is_unequal(x) for x in column), bool, len(column)
        )
    if column.dtype.kind == "U":
        return np.asarray(column == "", dtype=bool)
    return np.zeros(len(column), dtype=bool)


def is_unequal(value: Any) -> bool:
    """Whether a value differs from itself, as nan does."""
    if isinstance(value, np.ndarray):
        return False
    try:
        return bool(value != value)
    except Exception:  # pandas.NA, and objects that refuse to be compared
        return True


def labels_column(values: Any, what: str, *, mixed_hint: str = "") -> Column:
    """A clean column of labels or features; missing values and mixed kinds are refused."""
    column = to_array(values)
    if column.ndim != 1:
        raise PodiumError(
            f"{what} must be one-dimensional; its shape is {column.shape}", hint="give one value per row."
        )
    refuse_rows(what, "must not be missing", is_missing(column), column, FILL_HINT)
    kind = column.dtype.kind
    if kind == "u" and column.size and int(column.max()) not in INT64:
        return column.astype(object)
    if kind in "iu":
        return column.astype(np.int64, copy=False)
    if kind == "f":
        refuse_rows(what, "must be finite", ~np.isfinite(column), column, FILL_HINT)
        return column.astype(np.float64, copy=False)
    if kind == "b":
        return column
    if kind == "M":
        return column.astype(str).astype(object)
    if kind in "mc":
        return boxed([str(x) for x in column])
    if kind == "U":
        return column.astype(object)
    if kind == "S":
        return boxed([text.decode(errors="backslashreplace") for text in column.tolist()])
    return uniform_objects(column, what, mixed_hint)


def uniform_objects(column: Column, what: str, mixed_hint: str) -> Column:
    """An object column as numbers, truth values, texts, or other labels; never several kinds at once."""
    kinds = [kind_of(x) for x in column]
    first = kinds[0] if kinds else "text"
    if len(set(kinds)) > 1:
        rare = min(sorted(set(kinds)), key=kinds.count)
        rest = " and ".join(sorted(set(kinds) - {rare}))
        refuse_rows(
            what,
            f"mixes {rest} and {rare}",
            np.fromiter((k == rare for k in kinds), bool, len(kinds)),
            column,
            mixed_hint or "give every row the same kind of value.",
        )
    if first == "number":
        return exact_numbers(column, what)
    if first == "truth value":
        return column.astype(bool)
    refuse_rows(
        what,
        "must hold numbers or texts",
        np.fromiter((not isinstance(x, Hashable) for x in column), bool, len(column)),
        column,
        "give one number or text per row.",
    )
    zones = [isinstance(x, datetime) and x.utcoffset() is not None for x in column]
    if any(zones):
        rule = "must name a time zone in every row or in none"
        refuse_rows(what, rule, [not zone for zone in zones], column, "give every moment its time zone.")
    return column


def exact_numbers(column: Column, what: str) -> Column:
    """Objects that are numbers: whole ones exactly, others as floats, unless two that differ would become one."""
    if all(isinstance(x, numbers.Integral) for x in column):
        return whole(column)
    refuse_rows(what, "must be finite", [is_huge(x) for x in column], column, "give smaller numbers.")
    floats = labels_column(column.astype(np.float64), what)
    changed = rounded(column, floats)
    if changed.any() and all(int(x) == x for x in column):
        return whole(column)
    refuse_rows(
        what, "must hold numbers that floats can tell apart", changed, column, "give whole numbers alone, or texts."
    )
    return floats


def rounded(column: Column, floats: Floats) -> NDArray[np.bool_]:
    """Which numbers have a float that is another whole number, or that of another number of their kind."""
    seen: dict[tuple[type, float], Any] = {}
    return np.fromiter(
        (
            (abs(f) >= EXACT and int(x) != int(f)) or bool(seen.setdefault((type(x), f), x) != x)
            for x, f in zip(column, floats.tolist(), strict=True)
        ),
        bool,
        len(column),
    )


def is_huge(value: Any) -> bool:
    """Whether a thing is a number too large for floating point."""
    exact: Any = value if isinstance(value, REAL) and not isinstance(value, float | np.generic) else 0
    return bool(abs(exact) > LARGEST)


REAL = (numbers.Real, Decimal)  # a Decimal, as databases give it, is a number too


def kind_of(value: Any) -> str:
    """The kind of a label, in words."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if isinstance(value, REAL):
        return "number"
    return type(value).__name__


LARGEST = float(np.finfo(np.float64).max)


def numbers_column(values: Any, what: str, hint: str) -> Floats:
    """A column of finite numbers; the first cell that is none is named."""
    column = to_array(values)
    if column.ndim != 1:
        raise PodiumError(f"{what} must be one-dimensional; its shape is {column.shape}", hint=hint)
    if column.dtype.kind not in "iufb":
        missing = is_missing(column)
        bad = np.fromiter((not isinstance(x, REAL) or isinstance(x, np.timedelta64) for x in column), bool, len(column))
        refuse_rows(what, "must be a number", bad | missing, column, hint)
        refuse_rows(what, "must be a finite number", [is_huge(x) for x in column], column, hint)
    result = column.astype(np.float64, copy=False)
    refuse_rows(what, "must be a finite number", ~np.isfinite(result), column, hint)
    return result


def factorize(column: Column) -> tuple[Codes, Column]:
    """Codes (N,) of the distinct values, and the values themselves in sorted order.

    >>> codes, distinct = factorize(np.array(["b", "a", "b"], dtype=object))
    >>> codes, distinct
    (array([1, 0, 1]), array(['a', 'b'], dtype=object))
    """
    if column.dtype.kind == "i" and column.size:
        low, high = int(column.min()), int(column.max())
        if high - low <= 4 * column.size + 1024:  # a narrow range needs no sorting
            offset = column - low
            present = np.bincount(offset, minlength=high - low + 1) > 0
            rank = np.cumsum(present) - 1
            return rank[offset].astype(np.int64, copy=False), np.flatnonzero(present) + low
    if column.dtype.kind != "O":
        distinct, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int64, copy=False), distinct
    seen: dict[Any, int] = {}
    raw = np.fromiter((seen.setdefault(x, len(seen)) for x in column), np.int64, len(column))
    labels = list(seen)
    order = sorted(range(len(labels)), key=lambda i: sort_key(labels[i]))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    distinct = np.empty(len(labels), dtype=object)
    distinct[:] = [labels[i] for i in order]
    return rank[raw] if len(labels) else raw, distinct


def sort_key(label: Any) -> tuple[str, Any]:
    """An order for labels of any kind: by kind, then by value where that can be ordered."""
    if isinstance(label, (bool, np.bool_, *REAL)):
        return ("", label)
    if isinstance(label, str | datetime):
        return (type(label).__name__, label)
    if isinstance(label, frozenset):  # its repr follows the hashes of its texts, which change from run to run
        return (type(label).__name__, repr(sorted(repr(sort_key(x)) for x in label)))
    return (type(label).__name__, repr(label))


def combine_codes(parts: Sequence[tuple[Codes, int]]) -> Codes:
    """One code per distinct combination of several coded columns, in lexicographic order."""
    codes, _ = parts[0]
    size = parts[0][1]
    for more, more_size in parts[1:]:
        if size * more_size > 2**62:
            codes, distinct = factorize(codes)
            size = len(distinct)
        codes = codes * more_size + more
        size *= more_size
    return factorize(codes)[0] if len(parts) > 1 else codes


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def first_rows(codes: Codes, groups: int) -> Codes:
    """(groups,) the first row of each group.

    >>> first_rows(np.array([1, 0, 1]), 2)
    array([1, 0])
    """
    rows = np.empty(groups, dtype=np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]  # a repeated index keeps its last value
    return rows


def tiers(values: Floats, tie: float | None = None) -> Codes:
    """(N,) 0 for the largest values, 1 for the next, ...; values at most `tie` apart are equal.

    Equal values that were computed in different ways differ by rounding, and their order must not follow it. By
    default `tie` is a billionth of the largest absolute value.

    >>> tiers(np.array([2.0, 1.0, 3.0, 2.1]), tie=0.2)
    array([1, 2, 0, 1])
    """
    if tie is None:
        tie = 1e-9 * float(np.abs(values).max(initial=0.0))
    order = np.argsort(-values, kind="stable")
    found = np.zeros(len(values), dtype=np.int64)
    found[order[1:]] = np.cumsum(np.diff(values[order]) < -tie)
    return found


def descending(values: Floats, tie: float | None = None) -> Codes:
    """(N,) the places of the values, largest first; equal values (see `tiers`) keep their order.

    >>> descending(np.array([0.3, 0.7, 0.1 + 0.2, 0.3]))
    array([1, 0, 2, 3])
    """
    return np.argsort(tiers(values, tie), kind="stable")


def group_sums(codes: Codes, values: Floats, groups: int) -> Floats:
    """(groups,) the sum of the values of each group."""
    return np.bincount(codes, values, groups).astype(np.float64, copy=False)


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 of numbers and a seed (Steele, Lea and Flood, 2014): bits that look random, alike on every machine."""
    with np.errstate(over="ignore"):
        return scrambled(numbers + np.uint64((seed + 1) * GOLDEN % 2**64))


GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: SplitMix64's step


def scrambled(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixer of SplitMix64."""
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(31))


def match_label(text: str, space: Iterable[Any]) -> Any:
    """The action that a text (a header, an option) names; a number if the actions are numbers; else the text."""
    labels = list(space)
    for label in labels:
        if label == text or str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
    try:
        number = float(text)
    except ValueError:
        return text
    numeric = [x for x in labels if isinstance(x, int | float)]
    for label in numeric:
        if label == number:
            return label
    if numeric:
        return int(number) if number.is_integer() and all(isinstance(x, int) for x in numeric) else number
    return text


def repeated(names: Iterable[str]) -> str | None:
    """The first name that appears twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
