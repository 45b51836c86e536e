"""The parts that columns play in a log: state, action, reward, propensity, time and unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from podium.data.arguments import checked, mapping, optional, text, texts
from podium.data.errors import PodiumError, count
from podium.data.facts import fact_dict

MOST = 50  # columns that a message lists
HEADED = 10  # state columns that the header of an answer lists
KNOWN = {
    "full": "the full behaviour policy",
    "logged": "propensities",
    "estimated": "estimated propensities",
    "none": "no propensities",
}


@dataclass(frozen=True)
class Roles:
    """Which column of a file or frame plays which part."""

    names: Mapping[str, str]  # role -> header
    states: tuple[str, ...]
    propensity: str  # the header before the colon in propensity:<action>
    full: bool  # such columns give the whole behaviour policy
    guessed: bool  # the state columns are what was left over

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that plays a part, the policies apart."""
        return tuple(dict.fromkeys([*self.names.values(), *self.states]))

    def some(self, *roles: str) -> list[str]:
        """The columns of those of these roles that the log has."""
        return [self.names[role] for role in roles if role in self.names]

    def with_unit(self, column: str) -> Roles:
        """The same with a column as the unit; it leaves the state where that was only what was left over."""
        states = self.states
        if self.guessed and len(states) > 1:
            states = tuple(h for h in states if h != column)
        return replace(self, names={**self.names, "unit": column}, states=states)


def header_text(name: Any) -> Any:
    """The text by which a column is known whose header in a frame is a number."""
    return str(name) if type(name) is int and abs(name) < 1 << 64 else name


def header(name: str, value: Any) -> str:
    return text(name, header_text(value))


def headers(name: str, value: Any) -> Any:
    return texts(name, [header_text(one) for one in value] if isinstance(value, list | tuple) else header_text(value))


@checked(
    columns=mapping, state=optional(headers), action=header, reward=header, propensity=optional(header),
    time=optional(header), unit=optional(header),
)  # fmt: skip
def assign_roles(
    columns: Mapping[str, Any],
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
) -> Roles:
    """The roles of named columns, see `Log.from_columns`."""
    named = {"action": action, "reward": reward, "propensity": propensity, "time": time, "unit": unit}
    for role, name in named.items():
        if name is not None and name not in columns:
            raise PodiumError(f"the log has no column {name!r} for the {role}", hint=available(columns))
    check_roles(action, reward, propensity, state)
    names = {role: name for role, name in named.items() if name is not None}
    as_state = {state} if isinstance(state, str) else set(state or ())
    for role in ("propensity", "time"):
        if role not in names and role in columns and role not in as_state:
            names[role] = role
    chosen = pick_states(columns, state, {*names.values()}, behavior_prefixes(propensity))
    if len(chosen) == 1:
        names["state"] = chosen[0]
    given = [p for p in behavior_prefixes(propensity) if any(name.startswith(p) for name in columns)]
    prefix = given[0].removesuffix(":") if given else propensity or "propensity"
    return Roles(names, tuple(chosen), prefix, bool(given), state is None)


def behavior_prefixes(propensity: str | None) -> tuple[str, ...]:
    """How the headers of the whole behavior policy begin: with the propensities' own header, or propensity:<action>."""
    return tuple(dict.fromkeys([f"{propensity or 'propensity'}:", "propensity:"]))


def check_roles(action: str, reward: str, propensity: str | None, state: str | Sequence[str] | None) -> None:
    """What happened after a state was seen is no state, and one column plays one of these roles."""
    taken = {action: "action"}
    states = [state] if isinstance(state, str) else list(state or ())
    roles = [(reward, "reward"), (propensity or "propensity", "propensity"), *((s, "state") for s in states)]
    for name, role in roles:
        if taken.setdefault(name, role) != role:
            raise PodiumError(
                f"the column {name!r} cannot be both the {taken[name]} and the {role}",
                hint="name another column, or leave the option out.",
            )


def pick_states(
    columns: Mapping[str, Any], state: str | Sequence[str] | None, taken: set[str], prefixes: tuple[str, ...]
) -> list[str]:
    """The state columns: those that are named, else all that are nothing else."""
    if state is not None:
        chosen = [state] if isinstance(state, str) else list(dict.fromkeys(state))
        for name in chosen:
            if name not in columns:
                raise PodiumError(f"the log has no column {name!r} for the state", hint=available(columns))
        return chosen
    return [n for n in columns if n not in taken and not n.startswith(("pi_", *prefixes))]


def available(columns: Collection[Any]) -> str:
    """The hint that lists what there is, as far as a person would read.

    >>> available(["a", "b"])
    'the columns are a, b.'
    """
    if not columns:
        return "the log was not made from named columns."
    names = ", ".join(shortened(str(name)) for name in islice(columns, MOST))
    more = f", and {len(columns) - MOST:,} more" if len(columns) > MOST else ""
    return f"the columns are {names}{more}."


def shortened(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def log_figures(log: Any) -> dict[str, Any]:
    """What the JSON output says of a log, wherever its rows are."""
    return {
        "rows": len(log),
        "distinct": log.distinct,
        "states": log.n_states,
        "actions": log.n_actions,
        "propensities": log.knows,
        "state_columns": list(log.state_columns),
        **({"notes": [fact_dict(note) for note in log.notes]} if getattr(log, "notes", ()) else {}),
        **({} if log.estimated is None else {"propensity_estimate": log.estimated.to_dict()}),
        **({"logged_by": log.logged_by} if log.logged_by else {}),
    }


def describe_log(log: Any, engine: str) -> str:
    """A log in one line."""
    return (
        f"Log ({engine}): {count(len(log), 'row')}, {log.distinct:,} distinct (state, action), "
        f"{count(log.n_states, 'state')}, {count(log.n_actions, 'action')}, {log.logged_by or KNOWN[log.knows]}"
    )


def describe_columns(log: Any) -> list[str]:
    """The state columns in one line, and a line for everything that was done to read the file."""
    return [describe_states(log), *getattr(log, "notes", ())]


def describe_states(log: Any) -> str:
    """The columns that were taken as state, in one line; the first of them where they are many."""
    names = [shortened(str(name)) for name in log.state_columns]
    more = ", ..." if len(names) > HEADED else ""
    return f"State: {', '.join(names[:HEADED])}{more} ({count(len(names), 'column')})"
