"""Costs that are known, as users name them: `call=2.5` of an action, `column:price` of a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from podium.data.errors import PodiumError, shown
from podium.data.log import Log
from podium.data.scan import ScannedLog
from podium.data.states import states_given

LARGEST = 1e100  # as for rewards
SEPARATORS = "write 1250 or 2.5: without separators, and with a point for decimals."
HINT = "write --cost call=2.5 for an action, or --cost column:price; in Python, cost={'call': 2.5} or 'column:price'."


@dataclass(frozen=True)
class CostNames:
    """What was asked for: costs of actions by name, and columns that hold costs; they add up."""

    actions: tuple[tuple[Any, float], ...] = ()
    columns: tuple[str, ...] = ()

    def as_python(self) -> str:
        """The argument of `podium.compare` that says the same."""
        named = dict(self.actions)
        columns = [f"column:{name}" for name in self.columns]
        if not columns:
            return repr(named)
        entries = [f"{label}={number:g}" for label, number in self.actions] + columns
        return repr(entries[0] if len(entries) == 1 else entries)


def cost_names(name: str, given: Any) -> CostNames:
    """Costs in any form that users may write."""
    if isinstance(given, CostNames):
        return given
    if isinstance(given, Mapping):
        return collected((label, number_of(f"the cost of {shown(label)}", number)) for label, number in given.items())
    entries = [given] if isinstance(given, str) else given
    texts = isinstance(entries, Sequence) and all(isinstance(entry, str) for entry in entries)
    if not texts or not entries:
        raise PodiumError(f"{name} must name actions or columns; it is {shown(given)}", hint=HINT)
    return collected(entry_of(name, entry) for entry in entries)


def entry_of(name: str, entry: str) -> tuple[Any, float] | str:
    """`column:COL` as the column, `ACTION=C` as both its parts; a name may hold `=`, a number does not."""
    if entry.startswith("column:") and len(entry) > len("column:"):
        return entry.removeprefix("column:")
    label, equals, text = entry.rpartition("=")
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not (label and equals) or number != number:
        if label and text.replace(",", "").replace(".", "").isdigit():
            raise PodiumError(f"the cost of {label!r} must be a plain number; it is {text!r}", hint=SEPARATORS)
        raise PodiumError(f"{name} {entry!r} is neither ACTION=NUMBER nor column:COL", hint=HINT)
    return label, number_of(f"the cost of {label!r}", number)


def number_of(what: str, number: Any) -> float:
    good = isinstance(number, Real) and not isinstance(number, bool)
    if not good or not abs(number) <= LARGEST:
        raise PodiumError(f"{what} must be a finite number; it is {shown(number)}", hint=HINT)
    return float(number)


def collected(entries: Iterable[tuple[Any, float] | str]) -> CostNames:
    """All entries together; none may be named twice."""
    actions: dict[Any, float] = {}
    columns: dict[str, None] = {}
    for entry in entries:
        if entry in columns or (isinstance(entry, tuple) and entry[0] in actions):
            what = f"of {shown(entry[0])}" if isinstance(entry, tuple) else f"column {entry!r}"
            raise PodiumError(f"the cost {what} is given twice", hint="give every cost once.")
        if isinstance(entry, tuple):
            actions[entry[0]] = entry[1]
        else:
            columns[entry] = None
    return CostNames(tuple(actions.items()), tuple(columns))


def without_cost_states(log: Any, names: CostNames) -> Any:
    """The log without these columns among its states, where the states are what was left over.

    A column that holds the price of the logged action says which action that was.
    """

    def holds_cost(header: str) -> bool:
        return any(header == name or header.startswith(f"{name}:") for name in names.columns)

    if isinstance(log, ScannedLog):
        states = tuple(h for h in log.roles.states if not log.roles.guessed or not holds_cost(h))
        if states == log.roles.states:
            return log
        refuse_stateless(states)
        return ScannedLog(log.engine, replace(log.roles, states=states), log.actions, log.behavior)
    if not isinstance(log, Log) or not log.states_guessed or not any(map(holds_cost, log.state_columns)):
        return log
    rest = {name: column for name, column in log.state_columns.items() if not holds_cost(name)}
    refuse_stateless(rest)
    return log._copy(state_columns=rest, states=states_given(rest, list(rest), log.states))


def refuse_stateless(states: Iterable[str]) -> None:
    if not list(states):
        raise PodiumError(
            "the log has no state columns beside the costs",
            hint="name at least one with --state, or add a constant column.",
        )
