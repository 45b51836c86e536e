"""Policies read batch by batch: each form prepared once, then asked for the rows at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats, labels_column, to_array
from podium.data.errors import PodiumError, count, listed, refuse_rows
from podium.data.frames import ColumnTable, frame_to_columns
from podium.data.log import Log, Roles
from podium.policies import PolicyRows, PolicySet, align
from podium.policies.drafts import Draft, Policy, check_draft, check_sums, read_actions, read_cells
from podium.policies.forms import draft_policy, guess_kind
from podium.policies.specs import parse_spec
from podium.policies.tables import index_as_column


class NewActions(PodiumError):
    """Policies play actions that nobody has named: policy -> actions."""

    def __init__(self, played: Mapping[str, Sequence[Any]]) -> None:
        name, labels = next(iter(played.items()))
        super().__init__(
            f"policy {name!r} plays {listed(labels, 5)}, which neither the log nor the first rows it was asked for "
            "hold",
            hint="name the whole action space with actions=[...] or --actions.",
        )
        self.played = played

    def __reduce__(self) -> tuple[Any, ...]:
        return NewActions, (self.played,)


BY_ROW = ("probabilities", "distribution", "actions")


@dataclass(frozen=True, eq=False)
class KeyedTable:
    """A policy's table keyed by state, looked up for the states of a batch."""

    keys: tuple[str, ...]
    place: Mapping[Any, int]
    labels: tuple[Any, ...] = ()
    matrix: Floats | None = None
    chosen: Column | None = None

    @classmethod
    def of(cls, name: str, policy: Policy, log: Log) -> KeyedTable | None:
        """The table prepared, or None where it has one row per row of the log."""
        columns = frame_to_columns(index_as_column(name, policy.source, log))
        keys = tuple(log.state_columns)
        if not all(h in columns for h in keys):
            return None
        cells = {h: c for h, c in columns.items() if h not in keys}
        clean = [labels_column(columns[h], f"policy {name!r}: column {h!r}") for h in keys]
        place: dict[Any, int] = {}
        for i, key in enumerate(zip(*(k.tolist() for k in clean), strict=True)):
            j = place.setdefault(key, i)
            if j != i and any(c[i] != c[j] for c in cells.values()):
                raise PodiumError(
                    f"policy {name!r}: rows {j + 1} and {i + 1} of its table describe one state and differ",
                    hint="keep one row per state, or one row per log row in the same order.",
                )
        if list(cells) == [log.header("action")]:
            return cls(keys, place, chosen=cells[log.header("action")])
        labels, matrix = read_cells(name, cells, log, policy.proxy)
        if not policy.proxy:
            check_sums(f"policy {name!r}: the sum of a row of its table", matrix, labels)
        return cls(keys, place, labels, matrix)

    def draft(self, name: str, log: Log, proxy: bool) -> Draft:
        wanted = list(zip(*(log.state_columns[h].tolist() for h in self.keys), strict=True))
        found = np.fromiter((self.place.get(key, -1) for key in wanted), np.int64, len(wanted))
        shown = to_array([key[0] for key in wanted]) if len(self.keys) == 1 else wanted
        hint = "add the missing states to its table."
        refuse_rows(f"policy {name!r}", "must have a row for every state", found < 0, shown, hint)
        if self.chosen is not None:
            return read_actions(name, Policy(self.chosen[found]), log)
        assert self.matrix is not None
        return Draft("table", labels=self.labels, matrix=self.matrix[found], proxy=proxy)


@dataclass(frozen=True, eq=False)
class Reader:
    """Prepared policies, asked on the rows of any part of the log."""

    policies: Mapping[str, Policy]

    def policies_on(self, rows: Codes, log: Log) -> PolicySet:
        """Every policy on these rows of the log; `log` holds them, over the whole action space."""
        return PolicySet(tuple(self.policy_on(name, policy, rows, log) for name, policy in self.policies.items()))

    def policy_on(self, name: str, policy: Policy, rows: Codes, log: Log) -> PolicyRows:
        draft = self.draft(name, policy, rows, log)
        new = [x for x in draft.labels if x not in set(log.action_space)]
        if new:
            raise NewActions({name: new})
        return align(name, draft, log)

    def draft(self, name: str, policy: Policy, rows: Codes, log: Log) -> Draft:
        """One policy on these rows, over its own actions."""
        given = policy
        if isinstance(given.source, KeyedTable):
            return check_draft(name, given.source.draft(name, log, given.proxy), log)
        if given.kind in BY_ROW:
            given = replace(given, source=given.source[rows])
        elif given.kind == "table" and isinstance(given.source, ColumnTable):
            given = replace(given, source=ColumnTable({h: c[rows] for h, c in given.source.columns.items()}))
        return draft_policy(name, given, log)

    def played(self, rows: Codes, log: Log) -> dict[str, Sequence[Any]]:
        """The actions of every policy on these rows that the action space lacks."""
        found: dict[str, Sequence[Any]] = {}
        for name, policy in self.policies.items():
            try:
                self.policy_on(name, policy, rows, log)
            except NewActions as error:
                found |= error.played
        return found


def behaved(log: Log, behavior: Any, actions: tuple[Any, ...]) -> Log:
    """The log with its behaviour policy, checked against the propensities."""
    twin = log._copy(behavior=behavior)
    twin._check_behavior()
    new = [x for x in twin.action_space if x not in set(actions)]
    if new:
        raise NewActions({"behavior": new})
    return twin


def prepare_policy(name: str, given: Any, log: Log, rows: int) -> Policy:
    """A policy of any form in the form in which batches can ask it, given the first rows as a log."""
    if isinstance(given, str):
        given = Policy(given, kind="column") if given in log.columns else parse_spec(given, log)
    policy: Policy = given if isinstance(given, Policy) else Policy(given)
    kind = policy.kind or guess_kind(name, policy.source)
    policy = replace(policy, kind=kind)
    if kind in BY_ROW:
        source = to_array(policy.source)
        check_rows(name, len(source), rows)
        return replace(policy, source=source)
    if kind == "table" and (isinstance(policy.source, ColumnTable) or not isinstance(policy.source, Mapping)):
        table = KeyedTable.of(name, policy, log)
        if table is not None:
            return replace(policy, source=table)
        columns = frame_to_columns(policy.source)
        check_rows(name, len(next(iter(columns.values()), ())), rows)
        return replace(policy, source=ColumnTable(columns))
    return policy


def check_rows(name: str, have: int, rows: int) -> None:
    if have != rows:
        raise PodiumError(
            f"policy {name!r} has {count(have, 'row')}; the log has {count(rows, 'row')}",
            hint="a policy gives one answer per log row, in the same order.",
        )


def columns_needed(policy: Policy, headers: Mapping[str, Any], roles: Roles) -> set[str]:
    """The columns of the log that a policy reads."""
    kind, source = policy.kind, policy.source
    if kind == "column":
        return {h for h in headers if h == source or h.startswith(f"{source}:")}
    if kind == "logged":
        return {h for h in headers if h.startswith(roles.propensity + ":")}
    if kind == "sql":
        hidden = {roles.names.get(role) for role in ("action", "reward", "propensity")}
        policies = {h for h in headers if h.startswith(("pi_", roles.propensity + ":"))}
        return {h for h in headers if h in roles.states or h not in hidden | policies}
    if kind in ("callable", "model") or (kind == "table" and not isinstance(source, ColumnTable)):
        return set(roles.states)
    return set()
