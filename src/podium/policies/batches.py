"""Policies read batch by batch: each form prepared once, then asked for the rows at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, sort_key, to_array
from podium.data.errors import BadRows, PodiumError, listed
from podium.data.facts import Fact
from podium.data.frames import ColumnTable
from podium.data.log import Log
from podium.data.owned import owned
from podium.data.roles import Roles, behavior_prefixes
from podium.policies import PolicyRows, PolicySet, align
from podium.policies.drafts import Draft, Policy, check_rows
from podium.policies.forms import draft_policy, stated
from podium.policies.labels import new_actions
from podium.policies.shares import is_shares, refuse_unshared
from podium.policies.tables import Table, open_table


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
class Trouble:
    """What is wrong with rows and policies: the first row of each rule broken and how many, and new actions.

    Faults are in the order in which a log in memory would look for them: `place` is smaller for what comes first.
    """

    faults: Mapping[tuple[int, str, str], BadRows] = field(default_factory=dict)  # (place, what, rule)
    played: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    other: PodiumError | None = None

    @classmethod
    def of(cls, error: PodiumError, place: int, start: int) -> Trouble:
        """An error of rows that begin at `start`."""
        if isinstance(error, BadRows):
            return cls({(place, error.what, error.rule): error.moved(start)})
        if isinstance(error, NewActions):
            return cls(played={name: frozenset(labels) for name, labels in error.played.items()})
        return cls(other=error)

    def __add__(self, later: Trouble) -> Trouble:
        faults, played = dict(self.faults), dict(self.played)
        for key, fault in later.faults.items():
            faults[key] = faults[key].merged(fault) if key in faults else fault
        for name, labels in later.played.items():
            played[name] = played.get(name, frozenset()) | labels
        return Trouble(faults, played, self.other or later.other)

    def tell(self) -> None:
        """Raise what comes first, if anything is wrong."""
        if self.faults:
            raise min(self.faults.items(), key=lambda fault: (fault[0][0], fault[1].row))[1]
        if self.other is not None:
            raise self.other
        if self.played:
            raise NewActions({name: sorted(labels, key=sort_key) for name, labels in self.played.items()})


@dataclass(frozen=True, eq=False)
class Reader:
    """Prepared policies, asked on the rows of any part of the log."""

    policies: Mapping[str, Policy]

    def policies_on(self, rows: Codes, log: Log) -> PolicySet:
        """Every policy on these rows of the log; `log` holds them, over the whole action space."""
        return PolicySet(tuple(self.policy_on(name, policy, rows, log) for name, policy in self.policies.items()))

    def policy_on(self, name: str, policy: Policy, rows: Codes, log: Log) -> PolicyRows:
        draft = self.draft(name, policy, rows, log)
        known = set(log.action_space)
        new = [x for x in draft.labels if x not in known]
        if new:
            raise NewActions({name: new})
        return align(name, draft, log)

    def draft(self, name: str, policy: Policy, rows: Codes, log: Log) -> Draft:
        """One policy on these rows, over its own actions."""
        return draft_policy(name, on_rows(policy, rows), log)

    def trouble(self, rows: Codes, log: Log) -> Trouble:
        """What is wrong with the policies on these rows."""
        found = Trouble()
        for place, (name, policy) in enumerate(self.policies.items()):
            try:
                self.policy_on(name, policy, rows, log)
            except PodiumError as error:
                found = found + Trouble.of(error, place, int(rows[0]))
        return found


def on_rows(policy: Policy, rows: Codes) -> Policy:
    """A prepared policy for some rows of the log: of answers row by row, those of these rows."""
    if policy.kind in BY_ROW:
        return replace(policy, source=policy.source[rows])
    if isinstance(policy.source, Draft):
        return replace(policy, source=policy.source.take(rows))
    return replace(policy, source=policy.source.take(rows)) if isinstance(policy.source, Table) else policy


def prepare_policy(name: str, given: Any, log: Log, rows: int) -> Policy:
    """A policy of any form in the form in which batches can ask it, given the first rows as a log."""
    policy = stated(name, given, log)
    kind = policy.kind
    if kind in BY_ROW:
        source = to_array(policy.source)
        check_rows(name, source, rows)
        return replace(policy, source=source if isinstance(source, np.memmap) else owned(source))
    if kind == "table" and (isinstance(policy.source, ColumnTable) or not isinstance(policy.source, Mapping)):
        return replace(policy, source=open_table(name, policy, log, rows))
    if kind == "table" and is_shares(policy.source, log):
        return replace(policy, source=dict(policy.source), kind="shares")
    if kind == "table" and isinstance(policy.source, dict):
        return replace(policy, source=deepcopy(policy.source))
    return policy


def refuse_unnamed(behavior: Policy, log: Log, counts: Mapping[Any, int]) -> None:
    """Refuse a behavior policy of fixed shares that gives none to a logged action; `log` holds the first rows."""
    if behavior.kind == "shares" or (isinstance(behavior.source, Table) and behavior.source.single):
        draft = draft_policy("behavior", behavior, log)
        if draft.matrix is not None:
            refuse_unshared(dict(zip(draft.labels, draft.matrix[0], strict=True)), counts)


def columns_needed(policy: Policy, headers: Mapping[str, Any], roles: Roles) -> set[str]:
    """The columns of the log that a policy reads."""
    kind, source = policy.kind, policy.source
    if kind == "column":
        return {h for h in headers if h == source or h.startswith(f"{source}:")}
    if kind == "logged":
        return {h for h in headers if h.startswith(roles.propensity + ":")}
    if kind == "sql":
        hidden = {roles.names.get(role) for role in ("action", "reward", "propensity")}
        policies = {h for h in headers if h.startswith(("pi_", *behavior_prefixes(roles.names.get("propensity"))))}
        return {h for h in headers if h in roles.states or h not in hidden | policies}
    by_row = isinstance(source, Table) and source.place is None
    if kind in ("callable", "model") or (kind == "table" and not by_row):
        return set(roles.states)
    return set()


def widen(
    space: tuple[Any, ...],
    policies: Mapping[str, Policy],
    late: Mapping[str, Sequence[Any]],
    first: Callable[[tuple[Any, ...]], Log],
) -> tuple[tuple[Any, ...], list[Fact]]:
    """The action space with what the policies can play on the first rows, and warnings where they enlarge it."""
    warnings = []
    for name, policy in policies.items():
        log = first(space)
        draft = Reader({}).draft(name, policy, np.arange(len(log)), log)
        known = set(space)
        labels = tuple(x for x in draft.labels if x not in known)
        if name in late:
            labels = tuple(sorted({*labels, *late[name]} - known, key=sort_key))
        if labels and name != "behavior":
            warnings.append(new_actions(name, labels, space))
        warnings += draft.notes if name != "behavior" else ()
        space = (*space, *labels)
    return space, warnings
