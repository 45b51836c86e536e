"""Arguments of public functions, checked at the door: a rule is written once, and a refusal names the argument."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import is_huge, to_array
from podium.data.errors import PodiumError, shown, told_as

P = ParamSpec("P")
R = TypeVar("R")
Rule = Callable[[str, Any], Any]  # the name of an argument and its value -> the value as it is used


def checked(**rules: Rule) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Apply rules to the arguments that are given of a function; its defaults are trusted.

    >>> @checked(level=real(0, 1))
    ... def double(level):
    ...     return 2 * level
    >>> double("x")
    Traceback (most recent call last):
    podium.data.errors.PodiumError: level must be a number from 0 to 1; it is 'x'
    <BLANKLINE>
    Hint: give a number as level.
    """

    def at_the_door(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checking(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # which says what is wrong with the call
            for name, rule in rules.items():
                if name in bound.arguments:
                    bound.arguments[name] = rule(name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return checking

    return at_the_door


def refused(name: str, rule: str, value: Any, hint: str) -> PodiumError:
    return PodiumError(f"{name} must be {rule}; it is {shown(value)}", hint=hint)


def optional(rule: Rule) -> Rule:
    """The same rule, or None."""
    return lambda name, value: None if value is None else rule(name, value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refused(name, "a text", value, f"give {name} as a text.")
    return value


def texts(name: str, value: Any) -> Any:
    """A text or several: as they were given."""
    if isinstance(value, str):
        return value
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping) else [None]
    if all(isinstance(x, str) for x in given):
        return given
    raise refused(name, "a list of texts", value, f"give {name} as a list such as ['a', 'b'].")


def label(name: str, value: Any) -> Any:
    """One value of a column: as it was given."""
    huge = isinstance(value, int) and abs(value) >= 1 << 64
    if huge or not isinstance(value, str | bool | int | float | np.bool_ | np.number):
        raise refused(name, "a text or a number", value, f"give {name} as it stands in the column.")
    return value


def path(name: str, value: Any) -> Any:
    if not isinstance(value, str | os.PathLike):
        raise refused(name, "the path of a file", value, f"give {name} as a text such as 'log.csv'.")
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise refused(name, "True or False", value, f"use {name}=True or {name}=False.")
    return bool(value)


def choice(*known: str) -> Rule:
    """One of some texts."""

    def rule(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            either = " or ".join((", ".join(map(repr, known[:-1])), repr(known[-1])))
            raise refused(name, either, value, f"use {name}={known[0]!r}.")
        return value

    return rule


def real(low: float = -math.inf, high: float = math.inf) -> Rule:
    """A finite number between two others."""

    def rule(name: str, value: Any) -> float:
        known = isinstance(value, Real) and not isinstance(value, bool) and not is_huge(value)
        if not known or not math.isfinite(value) or not low <= value <= high:
            ends = f" from {low:g} to {high:g}" if math.isfinite(high) else f" from {low:g} on"
            raise refused(name, "a number" + (ends if math.isfinite(low) else ""), value, f"give a number as {name}.")
        return float(value)

    return rule


def whole(least: int, usual: int, most: int | None = None) -> Rule:
    """A whole number; NumPy's are welcome, 2.0 and True are not."""

    def rule(name: str, value: Any) -> int:
        known = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not known or value < least or (most is not None and value > most):
            end = "on" if most is None else f"to {most:,}"
            raise refused(name, f"a whole number from {least} {end}", value, f"use {name}={usual}.")
        return int(value)

    return rule


SEED = whole(0, 0)


def numbers(name: str, values: Any, dimensions: int | None = None) -> NDArray[np.float64]:
    """An array of finite numbers, of so many dimensions where that matters."""
    hint = f"give {name} as a list or an array of finite numbers."
    try:
        given = to_array(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise refused(name, "numbers", values, hint) from None
    if dimensions is not None and array.ndim != dimensions:
        raise PodiumError(f"{name} must have {dimensions} dimensions; its shape is {array.shape}", hint=hint)
    if not np.isfinite(array).all():
        raise PodiumError(f"{name} must be finite numbers", hint=hint)
    return array


VECTOR: Rule = partial(numbers, dimensions=1)
MATRIX: Rule = partial(numbers, dimensions=2)


def generator(name: str, value: Any) -> Any:
    """A source of random numbers."""
    if not isinstance(value, np.random.Generator | np.random.RandomState):
        raise refused(name, "a NumPy generator", value, f"use {name}=np.random.default_rng(0).")
    return value


def one_of(*kinds: type, hint: str) -> Rule:
    """An instance of some class."""

    def rule(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            known = " or ".join(kind.__name__ for kind in kinds)
            raise PodiumError(f"{name} must be a {known}; it is a {type(value).__name__}", hint=hint)
        return value

    return rule


def row_numbers(name: str, value: Any) -> Any:
    """Which rows are taken: a slice, their numbers, or one truth value per row."""
    if isinstance(value, slice):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty(1)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise refused(name, "a slice or the numbers of rows", value, f"use {name}=slice(0, 100).")
    return array if array.size else array.astype(np.int64)


def mapping(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise refused(name, "a mapping", value, f"give {name} as a dict.")
    return value


def refuse_class(what: str, thing: Any) -> None:
    """Raise if a class was given where one of its instances is meant."""
    if isinstance(thing, type):
        raise PodiumError(
            f"{what} is the class {thing.__name__}, not an instance of it",
            hint=f"write {thing.__name__}(...); a policy's model must have been fitted, too.",
        )


def attribute(what: str, thing: Any, name: str, default: Any = None) -> Any:
    """An attribute of a user's object, or the default; what a property raises is told with the object's name."""
    hint = f"mend {name!r} of {type(thing).__name__}, or give a function of the states."
    with told_as(f"{what}: its attribute {name!r} cannot be read", hint):
        return getattr(thing, name, default)
