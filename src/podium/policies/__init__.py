"""Candidate policies on the rows of a log: pi(a_n|s_n), and pi(.|s_n) where it is known, over one action space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.eligible import restricted, restricted_choices, uniform_over
from podium.data.errors import PodiumError, count, meant, refuse_rows
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.probabilities import AGREE
from podium.policies.drafts import Draft, GivenTerms, Policy
from podium.policies.forms import draft_policy
from podium.policies.labels import new_actions
from podium.policies.specs import spec_warnings


class HasColumns(Protocol):
    """A log, wherever its rows are."""

    @property
    def columns(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, eq=False)
class PolicyRows:
    """One policy on the rows of a log: pi(a_n|s_n), and pi(.|s_n) where it is known."""

    name: str
    kind: str
    logged: Floats  # (N,)
    matrix: Floats | None = None  # (N, A)
    chosen: Codes | None = None  # (N,), for a deterministic policy
    proxy: bool = False
    ratios: Floats | None = None  # (N,) pi(a_n|s_n)/p_n, where they were given
    terms: Mapping[str, GivenTerms] = field(default_factory=dict)  # method -> row terms, where they were given
    density: bool = False  # a proxy that is a density: its ratios are true weights
    moved: Floats | None = None  # (N,) probability that was moved to eligible actions

    @property
    def has_full(self) -> bool:
        return self.matrix is not None or self.chosen is not None

    def full(self, n_actions: int, rows: Codes | None = None) -> Floats:
        """(n, A) the whole distribution, at all rows or at some."""
        if self.matrix is not None:
            return self.matrix if rows is None else self.matrix[rows]
        if self.chosen is None:
            raise PodiumError(f"policy {self.name!r} is known only at the logged actions", hint=FULL_HINT)
        chosen = self.chosen if rows is None else self.chosen[rows]
        one_hot = np.zeros((len(chosen), n_actions))
        one_hot[np.arange(len(chosen)), chosen] = 1.0
        return one_hot

    def take(self, rows: Any) -> PolicyRows:
        """The policy on some of its rows."""
        return replace(
            self,
            logged=self.logged[rows],
            matrix=None if self.matrix is None else self.matrix[rows],
            chosen=None if self.chosen is None else self.chosen[rows],
            ratios=None if self.ratios is None else self.ratios[rows],
            moved=None if self.moved is None else self.moved[rows],
            terms={method: GivenTerms(given.rows[rows], given.effective) for method, given in self.terms.items()},
        )

    def mean(self, n_actions: int) -> Floats | None:
        """(A,) how often it plays each action, averaged over the rows; None where that is not known."""
        if self.chosen is not None:
            return np.asarray(np.bincount(self.chosen, minlength=n_actions) / len(self.chosen))
        return None if self.matrix is None else np.asarray(self.matrix.mean(axis=0))

    def average(self, values: Floats, rows: Codes) -> Floats:
        """(n,) sum_a values(s_n, a) pi(a|s_n) at some rows, for values of shape (n, A)."""
        if self.chosen is not None:
            return values[np.arange(len(rows)), self.chosen[rows]]
        average: Floats = np.einsum("na,na->n", values, self.full(values.shape[1], rows))
        return average


FULL_HINT = "give its whole distribution: an (N, A) array, a callable, a classifier, or columns pi_<name>:<action>."


@dataclass(frozen=True, eq=False)
class PolicySet:
    """Every candidate policy on the same rows, over one action space."""

    policies: tuple[PolicyRows, ...]
    warnings: tuple[str, ...] = ()
    costs: Any = None  # what they cost where that is known (`podium.estimates.costs`)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.policies)

    @property
    def proxies(self) -> bool:
        """Whether some are scores that stand for probabilities."""
        return any(p.proxy for p in self.policies)

    def __len__(self) -> int:
        return len(self.policies)

    def __iter__(self) -> Any:
        return iter(self.policies)


def resolve_policies(log: Log, policies: Any = None) -> tuple[Log, PolicySet]:
    """Read every policy on the log; the log returned has an action space that holds all their actions."""
    given = named_policies(log, policies)
    drafts = {name: draft_policy(name, policy, log) for name, policy in given.items()}
    warnings = spec_warnings(given, log.columns)
    for name, draft in drafts.items():
        known = set(log.action_space)
        new = [x for x in draft.labels if x not in known]
        if new:
            warnings.append(new_actions(name, new, log.action_space))
            log = log.with_actions(new)
    warnings += [note for draft in drafts.values() for note in draft.notes]
    rows = tuple(align(name, draft, log) for name, draft in drafts.items())
    return log, PolicySet(rows, (*warnings, *noticed(rows, log)))


def named_policies(log: HasColumns, policies: Any) -> dict[str, Any]:
    """The candidates by name: a mapping, names of the log's pi_ columns, or all of those columns."""
    own = policies_in(log)
    if (policies is None and not own) or (isinstance(policies, Mapping | Sequence) and not policies):
        raise PodiumError(
            "no policies to compare",
            hint="give policies={'name': ...} or --policy NAME=SPEC, or add pi_<name> columns to the log.",
        )
    if policies is None:
        policies = own
    if isinstance(policies, Mapping):
        if not all(isinstance(name, str) and name.strip() for name in policies):
            raise PodiumError("a policy's name must be a text", hint="give policies={'name': ...}.")
        return dict(policies)
    if isinstance(policies, Sequence) and not isinstance(policies, str) and all(isinstance(p, str) for p in policies):
        for name in policies:
            if name not in own:
                raise PodiumError(
                    f"the log has no policy {name!r}",
                    hint=meant(name, own) + "its pi_ columns hold: " + (", ".join(own) or "none") + ".",
                )
        return {name: own[name] for name in policies}
    raise PodiumError(
        f"policies must be a mapping of names to policies; it is {type(policies).__name__}",
        hint="give policies={'current': ..., 'new': ...}.",
    )


def policies_in(log: HasColumns) -> dict[str, Policy]:
    """The policies that the log itself carries in `pi_<name>` and `pi_<name>:<action>` columns."""
    headers = [h for h in log.columns if h.startswith("pi_")]
    whole = {h for h in headers if ":" not in h}
    found: dict[str, Policy] = {}
    for header in headers:
        if header in whole:
            name = header
        else:  # the longest pi_ column that it completes, else the part before the first colon
            name = max((w for w in whole if header.startswith(w + ":")), key=len, default=header.split(":")[0])
        found.setdefault(name.removeprefix("pi_"), Policy(name, kind="column"))
    return found


def same_policies(policies: PolicySet, n_actions: int) -> Codes:
    """(K,) the first policy that does the same on all rows, but for rounding: a policy's own place where there is none.

    A policy that is known only at the logged actions is the same as another that is known there and agrees.
    """
    first: dict[bytes, list[int]] = {}
    found = np.arange(len(policies))
    for k, policy in enumerate(policies):
        alike = first.setdefault((np.round(policy.logged, 9) + 0.0).tobytes(), [])
        for other in alike:
            twin = policies.policies[other]
            if twin.has_full == policy.has_full and (
                not twin.has_full or np.abs(twin.full(n_actions) - policy.full(n_actions)).max() <= 1e-9
            ):
                found[k] = other
                break
        else:
            alike.append(k)
    return found


def align(name: str, draft: Draft, log: Log) -> PolicyRows:
    """The policy over the log's whole action space; actions it does not know have probability 0."""
    rows = np.arange(len(log))
    position = {label: j for j, label in enumerate(log.action_space)}
    columns = np.array([position[x] for x in draft.labels], dtype=np.int64)
    if draft.kind == "uniform" and log.eligible is not None:
        return PolicyRows(name, "uniform", 1 / log.choices, uniform_over(log.eligible))
    if draft.kind == "uniform":
        matrix = np.broadcast_to(np.float64(1 / log.n_actions), (len(log), log.n_actions))
        return PolicyRows(name, "uniform", np.full(len(log), 1 / log.n_actions), matrix)
    if draft.chosen is not None:
        chosen = columns[draft.chosen]
        if log.eligible is not None:
            spread, moved = restricted_choices(f"policy {name!r}", chosen, log)
            if spread is not None:
                return PolicyRows(name, draft.kind, spread[rows, log.action_codes], spread, moved=moved)
        return PolicyRows(name, draft.kind, (chosen == log.action_codes).astype(float), chosen=chosen)
    if draft.matrix is None:
        assert draft.logged is not None
        return PolicyRows(
            name, draft.kind, draft.logged, proxy=draft.proxy, ratios=draft.ratios, terms=draft.terms,
            density=draft.density,
        )  # fmt: skip
    matrix = draft.matrix
    if draft.labels != log.action_space:
        matrix = np.zeros((len(log), log.n_actions))
        matrix[:, columns] = draft.matrix
    moved = None
    if log.eligible is not None:
        matrix, moved = restricted(f"policy {name!r}", matrix, log, draft.proxy)
    logged = matrix[rows, log.action_codes]
    if draft.logged is not None and moved is None:
        refuse_rows(
            f"policy {name!r}: the probability of the logged action",
            "must agree with the full distribution within 1e-6",
            np.abs(logged - draft.logged) > AGREE,
            draft.logged,
            "correct the one or the other, or leave the column of the logged action out.",
        )
    return PolicyRows(name, draft.kind, logged, matrix, proxy=draft.proxy, moved=moved)


def noticed(policies: Iterable[PolicyRows], log: Log, *, drawn: bool = False) -> list[Fact]:
    """What to say of the policies on the rows of a log; `drawn`: they are a sample of its rows."""
    facts = [Fact("actions named by slot")] if log.names.get("eligible") == "slots" else []
    for p in policies:
        if (conflict := conflicting_rows(p, log)) is not None:
            facts.append(conflict)
        if p.moved is not None and p.moved.any():
            moved = int(np.count_nonzero(p.moved))
            rows = f"{moved:,} of {len(log):,} rows that were looked at" if drawn else count(moved, "row")
            facts.append(Fact("renormalized", policy=p.name, rows=rows, share=float(p.moved.mean())))
    return facts


def conflicting_rows(policy: PolicyRows, log: Log) -> Fact | None:
    """A warning when rows of one (state, action) carry different probabilities."""
    estimated = policy.kind == "logged" and log.estimated is not None
    fitted = estimated or policy.kind == "learned"  # out of fold, so each row has its own
    if len(log.latest) == len(log) or fitted:
        return None
    differ = int(np.count_nonzero(np.abs(policy.logged[log.overwritten_by] - policy.logged) > AGREE))
    return Fact("conflicting rows", policy=policy.name, rows=count(differ, "row")) if differ else None
