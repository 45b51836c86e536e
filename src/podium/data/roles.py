"""The parts that columns play in a log: state, action, reward, propensity, time and unit."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from podium.data.arguments import Rule, checked, mapping, optional, text, texts
from podium.data.eligible import eligible_given, eligible_headers
from podium.data.errors import PodiumError, count, meant
from podium.data.facts import Fact, fact_dict
from podium.data.nested import grouped, members_of
from podium.data.outcomes import outcome_columns

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
    eligible: tuple[str, ...] = ()  # the columns that hold the eligible actions
    eligible_name: str = "eligible"  # their header, or what their headers begin with
    left_out: tuple[Fact, ...] = ()  # what was left over and is no state all the same
    also: tuple[str, ...] = ()  # outcomes beside the reward

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that plays a part, the policies apart."""
        return tuple(dict.fromkeys([*self.names.values(), *self.states]))

    def some(self, *roles: str) -> list[str]:
        """The columns of those of these roles that the log has."""
        return [self.names[role] for role in roles if role in self.names]

    def given(self, columns: Mapping[str, Any]) -> Any:
        """The columns of eligible actions as `podium.Log` takes them; None where there are none."""
        return eligible_given(columns, self.eligible, self.eligible_name)

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


# The rules of arguments that name the columns of roles.
ROLE_RULES: dict[str, Rule] = {
    "state": optional(headers), "action": header, "reward": header, "propensity": optional(header),
    "time": optional(header), "unit": optional(header), "eligible": optional(header), "also": outcome_columns,
}  # fmt: skip


@checked(columns=mapping, **ROLE_RULES)
def assign_roles(
    columns: Mapping[str, Any],
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
    eligible: str | None = None,
    also: Sequence[str] = (),
) -> Roles:
    """The roles of named columns, see `Log.from_columns`."""
    named = {"action": action, "reward": reward, "propensity": propensity, "time": time, "unit": unit}
    for role, name in named.items():
        inside = members_of(name, columns) if name is not None and name not in columns and role != "propensity" else []
        if inside:
            raise PodiumError(
                f"column {name!r} holds several values in each row, which cannot be the {role}",
                hint=f"name one of its parts, such as {inside[0]!r}.",
            )
        if name is not None and name not in columns:
            raise PodiumError(f"the log has no column {name!r} for the {role}", hint=available(columns, name))
    check_roles(action, reward, propensity, state)
    names = {role: name for role, name in named.items() if name is not None}
    as_state = {state} if isinstance(state, str) else set(state or ())
    for role in ("propensity", "time"):
        if role not in names and role in columns and role not in as_state:
            names[role] = role
    possible = eligible_headers(columns, eligible)
    refuse_eligible(columns, eligible, possible, {**names, **{f"state {h}": h for h in as_state}})
    taken = {header: role for role, header in names.items()}
    refuse_outcomes(columns, also, {**taken, **dict.fromkeys(as_state, "state")})
    prefixes = (*behavior_prefixes(propensity), "eligible:")
    chosen = pick_states(columns, state, {*names.values(), *possible, *also}, prefixes)
    if len(chosen) == 1:
        names["state"] = chosen[0]
    given = [p for p in behavior_prefixes(propensity) if any(name.startswith(p) for name in columns)]
    prefix = given[0].removesuffix(":") if given else propensity or "propensity"
    name = eligible or (re.split(r"[:\[]", possible[0])[0] if possible else "eligible")
    return Roles(names, tuple(chosen), prefix, bool(given), state is None, possible, name, also=tuple(also))


def refuse_eligible(
    columns: Mapping[str, Any], name: str | None, possible: Sequence[str], taken: Mapping[str, str]
) -> None:
    """Refuse a column of eligible actions that is not there, or that plays another part."""
    if name is not None and not possible:
        raise PodiumError(f"the log has no column {name!r} for the eligible actions", hint=available(columns, name))
    for role, header in taken.items():
        if header in possible:
            raise PodiumError(
                f"the column {header!r} cannot hold both the {role.partition(' ')[0]} and the eligible actions",
                hint="name another column, or leave the option out.",
            )


def refuse_outcomes(columns: Collection[str], also: Sequence[str], taken: Mapping[str, str]) -> None:
    """Refuse outcomes that are no columns of the log, or that play another part; `taken`: column -> role."""
    for name in also:
        if name not in columns:
            raise PodiumError(f"the log has no column {name!r} for an outcome", hint=available(columns, name))
        if taken.get(name) == "reward":
            raise PodiumError(
                f"the column {name!r} is the reward, so it cannot be a further outcome",
                hint="leave it out: the reward is always compared.",
            )
        if name in taken:
            raise PodiumError(
                f"the column {name!r} cannot be both the {taken[name]} and an outcome",
                hint="name another column, or leave the option out.",
            )


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
        chosen: list[str] = []
        for name in [state] if isinstance(state, str) else state:
            found = [name] if name in columns else members_of(name, columns)
            if not found:
                raise PodiumError(f"the log has no column {name!r} for the state", hint=available(columns, name))
            chosen += found
        return list(dict.fromkeys(chosen))
    return [n for n in columns if n not in taken and not n.startswith(("pi_", *prefixes))]


def available(columns: Collection[Any], wanted: str = "") -> str:
    """The hint that names the column that was probably meant, and lists what there is, as far as a person would read.

    >>> available(["a", "b"]), available(["age", "day"], "agge")
    ('the columns are a, b.', "did you mean 'age'? the columns are age, day.")
    """
    if not columns:
        return "the log was not made from named columns."
    listed = grouped([str(name) for name in columns])
    names = ", ".join(shortened(name) for name in islice(listed, MOST))
    more = f", and {len(listed) - MOST:,} more" if len(listed) > MOST else ""
    return f"{meant(wanted, columns)}the columns are {names}{more}."


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
        **({} if log.eligible is None else {"eligible": eligible_figures(log)}),
    }


def eligible_figures(log: Any) -> dict[str, Any]:
    """How many actions were possible in a row."""
    least, most = log.choice_range
    return {"least": least, "mean": log.mean_choices, "most": most}


def describe_log(log: Any, engine: str) -> str:
    """A log in one line."""
    return (
        f"Log ({engine}): {count(len(log), 'row')}, {log.distinct:,} distinct (state, action), "
        f"{count(log.n_states, 'state')}, {count(log.n_actions, 'action')}{eligible_text(log)}, "
        f"{log.logged_by or KNOWN[log.knows]}"
    )


def eligible_text(log: Any) -> str:
    """What a log's line says of its eligible actions."""
    if log.eligible is None:
        return ""
    least, most = log.choice_range
    numbers = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f" ({numbers} eligible in a row)"


def describe_columns(log: Any) -> list[str]:
    """The state columns in one line, and a line for everything that was done to read the file."""
    return [describe_states(log), *getattr(log, "notes", ())]


def describe_states(log: Any) -> str:
    """The columns that were taken as state, in one line; a list as one, and the first of them where they are many."""
    headers = [str(name) for name in log.state_columns]
    names = grouped(headers)
    more = ", ..." if len(names) > HEADED else ""
    total = "" if len(names) < len(headers) and not more else f" ({count(len(headers), 'column')})"
    return f"State: {', '.join(shortened(name) for name in names[:HEADED])}{more}{total}"
