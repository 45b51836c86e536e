"""Baselines rhat(s, a): the six kinds of the paper's Appendix A, and the mean of neighbouring states.

1. an environment model, a callable q(states, actions)      4. "linear", a linear model of the logged rewards
2. a critic, a callable v(states)                           5. "mean", the average of the logged rewards (default)
3. a learned reward model, any object with fit/predict      6. a fixed number
Also: "state", the leave-one-out mean of neighbouring states; an array (N,) of v(s_n) or (N, A) of q(s_n, .).

Learned baselines are cross-fitted: no row is predicted by a model that saw it.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.arguments import refuse_class
from podium.data.columns import Codes, Floats, is_huge, numbers_column, to_array
from podium.data.errors import PodiumError, meant, shown
from podium.data.log import Log
from podium.data.owned import ask

NAMED = ("mean", "linear", "state")
NAMES = '"mean", "linear", "state", a number, q(states, actions), v(states), an object with fit/predict, or an array'


@dataclass(frozen=True, eq=False)
class BaselineRows:
    """A baseline on the rows that a method keeps."""

    logged: Floats  # (n,) rhat(s_n, a_n)
    matrix: Floats | None = None  # (n, A) rhat(s_n, .), None where the action does not matter
    averages: Mapping[str, Floats] | None = None  # (n,) sum_a rhat pi of each policy, where actions cannot be listed


@dataclass(frozen=True, eq=False)
class KnownAverages:
    """A baseline given at the logged actions and on average under each policy: for actions that cannot be listed."""

    name: str
    logged: Floats  # (N,) rhat(s_n, a_n)
    averages: Mapping[str, Floats]  # policy -> (N,) rhat averaged over its actions


def describe_baseline(spec: Any) -> str:
    """The name of a baseline in headers and JSON."""
    if isinstance(spec, str):
        return spec
    if isinstance(spec, KnownAverages):
        return spec.name
    if isinstance(spec, numbers.Real):
        return f"{float(spec):g}"
    if hasattr(spec, "fit") and hasattr(spec, "predict"):
        return f"model {type(spec).__name__}"
    if callable(spec):
        return "q(s, a)" if takes_actions(spec) else "v(s)"
    return "array"


def check_baseline(spec: Any) -> None:
    """Refuse what no log allows."""
    if isinstance(spec, str) and spec not in NAMED:
        raise PodiumError(f"unknown baseline {spec!r}", hint=f"{meant(spec, NAMED)}a baseline is {NAMES}.")
    refuse_class("the baseline", spec)
    if spec is None or is_huge(spec) or isinstance(spec, bool | np.bool_ | bytes | Mapping | Set):
        raise PodiumError(f"a baseline cannot be {shown(spec)}", hint=f"a baseline is {NAMES}.")
    known = isinstance(spec, KnownAverages | numbers.Real | Sequence) or callable(spec)
    try:
        known = any(hasattr(spec, name) for name in ("fit", "__array__", "to_numpy")) or known
    except Exception as error:  # a property of the user's that fails
        raise PodiumError(
            f"the baseline {type(spec).__name__} cannot be asked what it is: {type(error).__name__}: {error}",
            hint=f"a baseline is {NAMES}.",
        ) from error
    if not known:
        raise PodiumError(f"a baseline cannot be {shown(spec)}", hint=f"a baseline is {NAMES}.")


def learned(spec: Any) -> bool:
    """Whether a baseline is a model that learns from the log, of states and actions."""
    return (isinstance(spec, str) and spec == "linear") or (hasattr(spec, "fit") and hasattr(spec, "predict"))


def constant(value: float, size: int) -> BaselineRows:
    return BaselineRows(np.broadcast_to(np.float64(value), (size,)))


def from_array(values: Any, log: Log, rows: Codes) -> BaselineRows:
    """v(s_n) as (N,) or q(s_n, .) as (N, A)."""
    array = to_array(values)
    if array.shape == (len(log),):
        return BaselineRows(numbers_column(array, "the baseline", "give a finite number per row.")[rows])
    if array.shape == (len(log), log.n_actions):
        if array.dtype.kind not in "iufbO":
            raise PodiumError(f"the baseline must hold numbers; it holds {array.dtype}", hint=f"a baseline is {NAMES}.")
        hint = "give a finite number per row and action."
        matrix = np.column_stack([numbers_column(column, "the baseline", hint) for column in array.T])[rows]
        return BaselineRows(matrix[np.arange(len(rows)), log.action_codes[rows]], matrix)
    raise wrong_shape(array.shape, len(log), log.n_actions)


def wrong_shape(shape: tuple[int, ...], rows: int, actions: int) -> PodiumError:
    return PodiumError(
        f"the baseline has shape {shape}; the log has {rows} rows and {actions} actions",
        hint=f"give (N,) or (N, A) = ({rows}, {actions}) numbers; columns follow log.action_space.",
    )


def takes_actions(function: Callable[..., Any]) -> bool:
    """Whether a callable baseline is q(states, actions) rather than v(states)."""
    if isinstance(function, np.ufunc):
        return function.nin == 2
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in callables do not tell
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) >= 2


def from_callable(function: Callable[..., Any], log: Log, rows: Codes) -> BaselineRows:
    """An environment model q(states, actions) -> (N,) or a critic v(states) -> (N,)."""
    states = log.states

    def numbers_of(*arguments: Any) -> Floats:
        try:
            answer = np.asarray(ask(function, *arguments), dtype=np.float64)
        except PodiumError:
            raise
        except (Exception, SystemExit) as error:
            raise PodiumError(
                f"the baseline failed on the log's states: {type(error).__name__}: {error}",
                hint="q(states, actions) and v(states) get whole arrays and give one number per row.",
            ) from error
        answer = np.broadcast_to(answer, (len(log),)) if answer.ndim == 0 else answer
        if answer.shape != (len(log),) or not np.isfinite(answer).all():
            raise PodiumError(
                f"the baseline must give {len(log)} finite numbers; it gave shape {answer.shape}",
                hint="q(states, actions) and v(states) get whole arrays and give one number per row.",
            )
        return answer

    if not takes_actions(function):
        return BaselineRows(numbers_of(states)[rows])
    columns = []
    for label in log.action_space:
        repeated = np.empty(len(log), dtype=log.actions.dtype)
        repeated[:] = label
        columns.append(numbers_of(states, repeated)[rows])
    matrix = np.column_stack(columns)
    return BaselineRows(matrix[np.arange(len(rows)), log.action_codes[rows]], matrix)
