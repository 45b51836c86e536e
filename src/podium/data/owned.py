"""Data that nobody else can change: copied once from the caller, kept read-only, lent to users' functions as copies.

A function that writes into its argument, or that writes into what it returned before, then changes neither the log nor
the answers of another policy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from podium.data.frames import ColumnTable, columns_to_frame, copy_of_frame, is_frame


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only array that shares no memory with the caller's; what podium owns already is not copied again.

    >>> given = np.array([1.0, 2.0])
    >>> kept = owned(given)
    >>> given[0] = 5.0
    >>> kept, owned(kept) is kept
    (array([1., 2.]), True)
    """
    if is_owned(array):
        return array
    copy = np.array(array)
    copy.flags.writeable = False
    return copy.view()


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """An array that podium has just made, as a view that its holder cannot make writable again.

    >>> sealed(np.zeros(2)).flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    if array.base is not None:
        return owned(array)
    array.flags.writeable = False
    return array.view()


def is_owned(array: NDArray[Any]) -> bool:
    """Whether an array is a read-only view of read-only memory, which its holder cannot make writable again."""
    base: Any = array.base
    if array.flags.writeable or base is None:
        return False
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None  # arrow and polars may share memory with the caller's arrays, and that of bytes can be unlocked


class Fixed(dict[Any, Any]):
    """A dict that cannot be changed, and whose dicts and arrays cannot either.

    >>> Fixed(a={"b": 1})["a"]["b"] = 2
    Traceback (most recent call last):
    TypeError: this mapping is read-only; make a copy with dict(...)
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__({key: kept(value) for key, value in dict(*given, **more).items()})

    def _refuse(self, *given: Any, **more: Any) -> NoReturn:
        raise TypeError("this mapping is read-only; make a copy with dict(...)")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = clear = setdefault = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Fixed, (dict(self),)


def kept(value: Any) -> Any:
    """A value as results hold it: arrays and dicts that cannot be changed, all else as it is."""
    if isinstance(value, np.ndarray):
        return owned(value)
    return Fixed(value) if isinstance(value, dict) and not isinstance(value, Fixed) else value


def fresh(value: Any) -> Any:
    """A copy of nested dicts and lists that its holder may change."""
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return [fresh(item) for item in value] if isinstance(value, list) else value


def keep_fields(result: Any) -> None:
    """Make the arrays and dicts among a frozen dataclass's fields read-only."""
    for name in result.__dataclass_fields__:
        value = getattr(result, name, None)
        if isinstance(value, np.ndarray | dict):
            object.__setattr__(result, name, kept(value))


def lent(given: Any) -> Any:
    """A copy of an array or a frame that a user's function may do with as it likes."""
    if isinstance(given, ColumnTable):
        return columns_to_frame(given.columns, "pandas")
    if is_frame(given):
        return copy_of_frame(given)
    return given.copy() if isinstance(given, np.ndarray) else given


def ask(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a user's function makes of copies of the arguments; settings of NumPy and of warnings survive it."""
    with warnings.catch_warnings(), np.errstate():
        return function(*map(lent, arguments), **options)


def own_columns(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Named columns that nobody else can change; those that are made when they are asked for stay as they are."""
    return Fixed(columns) if isinstance(columns, dict) else columns


class OwnStates:
    """The states of a log as its holder gets them: an array that cannot be written, or a copy of the log's frame."""

    def __get__(self, log: Any, kind: Any = None) -> Any:
        if log is None:
            raise AttributeError("states")  # so that the field has no default
        states = vars(log)["states"]
        return states if isinstance(states, np.ndarray | ColumnTable) else lent(states)

    def __set__(self, log: Any, states: Any) -> None:
        vars(log)["states"] = states


class Own:
    """A frozen dataclass whose arrays are read-only after unpickling and copying, too."""

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, sealed(value) if isinstance(value, np.ndarray) else value)
