"""A log of more than 20,000 rows: which rows and policies a pass reads, whatever the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np

from podium.baselines import fit_baseline, takes_actions
from podium.columns import Codes, Floats, sort_key
from podium.engines.arrow import LazyColumns, label_codes, numbers
from podium.engines.kernel import answer
from podium.engines.memory import MemoryRows
from podium.engines.reading import NewActions, Reader, columns_needed, prepare_policy
from podium.engines.sums import UNITS, Question, Sums
from podium.errors import BadRows, BaselineRefused, listed
from podium.estimate import prepare
from podium.log import Log
from podium.policies import FULL_HINT, PolicyRows, PolicySet, align, named_policies
from podium.policies.drafts import Policy
from podium.scan import HEAD, SMALL, ScannedLog

NEAR = 0.03  # policies whose squared difference is a smaller share of their squares get a column of their own
T = TypeVar("T")


class Source(Protocol):
    """Rows with their policies, in batches for a function whose results add up."""

    def fold(self, by_state: bool, function: Callable[..., T], label: str, policies: bool = True) -> T: ...


@dataclass(frozen=True, eq=False)
class ScannedRows:
    """The rows of a scanned log."""

    log: ScannedLog
    reader: Reader
    columns: tuple[str, ...]

    def fold(self, by_state: bool, function: Callable[..., T], label: str, policies: bool = True) -> T:
        reader = self.reader if policies else replace(self.reader, policies={}, baseline=None)
        return self.log.fold(reader, self.columns if policies else (), by_state, function, label)


@dataclass(frozen=True, eq=False)
class Large:
    """A large log ready for its passes.

    Parameters
    ----------
    log : as it is shown
    policies : on the first rows, for names and forms
    source : the rows
    mean, variance, low, high : of the rewards
    counts : (A,) rows of each action
    knows : what is known of the behaviour policy
    units : how many units or groups of units there are; 0 without units
    baseline : a number, "mean", "state", or "model" for a callable
    near : pairs of policies that are nearly equal
    """

    log: Log | ScannedLog
    policies: PolicySet
    source: Source
    mean: float
    variance: float
    low: float
    high: float
    counts: Codes
    knows: str
    units: int
    baseline: float | str
    near: tuple[tuple[int, int], ...]
    engine: str

    @property
    def rows(self) -> int:
        return len(self.log)

    @property
    def actions(self) -> int:
        return len(self.counts)

    @property
    def centre(self) -> float:
        """What rewards are centred on; equal rewards on themselves, since the mean of many is rounded."""
        return self.low if self.low == self.high else self.mean

    @property
    def size(self) -> float:
        return max(self.high - self.centre, self.centre - self.low) or 1.0

    @property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def full(self) -> bool:
        return all(p.has_full for p in self.policies)

    def question(self, **wanted: Any) -> Question:
        """What to ask of a pass, with all that is known already."""
        logs = None
        if self.knows == "none":
            logs = np.log(np.maximum(self.counts, 1))
        wanted = {"alone": self.knows != "none" or self.baseline == "state", **wanted}
        return Question(
            rows=self.rows,
            actions=self.actions,
            policies=len(self.policies),
            centre=self.centre,
            size=self.size,
            largest=self.largest,
            near=self.near,
            propensities=self.knows != "none",
            full=self.full,
            behavior=self.knows == "full",
            action_logs=logs,
            units=self.units,
            **wanted,
        )

    def without_estimate(self) -> Large:
        """The same without estimated propensities."""
        assert isinstance(self.log, Log)
        assert isinstance(self.source, MemoryRows)
        log = self.log.without_estimate()
        return replace(self, log=log, source=replace(self.source, log=log), knows="none")

    def ask(self, question: Question, label: str) -> Sums:
        """One pass of the kernel; a second one where pairs turn out to be nearer than the first rows showed."""
        sums = self.source.fold(question.states, partial(answer, question=question), label)
        missed = tuple(p for p in near_pairs(sums, question) if p not in question.near)
        if not missed:
            return sums
        closer = replace(question, near=(*question.near, *missed))
        object.__setattr__(self, "near", closer.near)
        return self.source.fold(question.states, partial(answer, question=closer), label)


def near_pairs(sums: Sums, question: Question) -> list[tuple[int, int]]:
    """Pairs whose difference the products of a pass cannot resolve."""
    found: set[tuple[int, int]] = set()
    grams = [sums.add[name] for name in ("LDE 11", "DRE 11") if name in sums.add]
    grams += [m.scatter for name, m in sums.moments.items() if name.endswith(" terms")]  # type: ignore[misc]
    k = question.policies
    for gram in grams:
        found |= {(i, j) for i, j in close(gram[:k, :k], 1e-3)}
    return sorted(found)


def close(gram: Floats, share: float) -> list[tuple[int, int]]:
    """Pairs i < j, neither of them the first policy, whose difference is small next to them."""
    own = np.diag(gram)[:, None] + np.diag(gram)[None, :]
    gap = own - 2 * gram
    pairs = np.argwhere(np.triu((gap < share * own) & (own > 0), 1))
    return [(int(i), int(j)) for i, j in pairs if i > 0]


def is_large(log: Any) -> bool:
    return len(log) > SMALL


def with_every_action(work: Callable[[Mapping[str, Sequence[Any]]], T]) -> T:
    """What `work` gives; once more where a policy turns out to play actions that its first rows did not show.

    A log in memory asks its policies for all rows before it starts; this is the same for rows read in passes.
    """
    try:
        return work({})
    except NewActions as error:
        return work(error.played)


def open_large(
    log: Log | ScannedLog,
    policies: Any,
    baseline: Any = "mean",
    behavior: Any = None,
    actions: Sequence[Any] = (),
    unit: str | None = None,
    label_states: bool = False,
    late: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    seed: int = 0,
) -> Large:
    """The log, the options that a call adds to it, and its policies.

    `late` are actions that a policy plays, and that neither the log nor the policy's first rows show.
    """
    constant: float | str = "model"
    model = None
    if isinstance(baseline, str) and baseline in ("mean", "state"):
        constant = baseline
    elif isinstance(baseline, int | float | np.number) and not isinstance(baseline, bool):
        constant = float(fit_baseline(baseline, ONE, np.arange(1)).logged[0])
    else:
        model = baseline
    if isinstance(log, ScannedLog):
        return scan(log, policies, constant, model, behavior, actions, unit, label_states, late)
    log, resolved = prepare(log, policies, behavior, actions, unit, seed)
    full = all(p.has_full for p in resolved)
    check_model(model, resolved.policies)
    rows = MemoryRows(log, resolved, model, full, label_states)
    sample = np.column_stack([p.logged[:HEAD] for p in resolved])
    return Large(
        log=log,
        policies=resolved,
        source=rows,
        mean=float(log.rewards.mean()),
        variance=float(log.rewards.var()),
        low=float(log.rewards.min()),
        high=float(log.rewards.max()),
        counts=np.bincount(log.action_codes, minlength=log.n_actions),
        knows=log.knows,
        units=0 if log.units is None else rows.units[1],
        baseline=constant,
        near=near_at_first(sample),
        engine=log.engine,
    )


ONE = Log(np.zeros(1), np.zeros(1), np.zeros(1))


def mergeable(baseline: Any) -> bool:
    """Whether a baseline can be had in passes over batches: a number, the mean, the state's mean, a callable."""
    if isinstance(baseline, str):
        return baseline in ("mean", "state")
    if hasattr(baseline, "fit") and hasattr(baseline, "predict"):
        return False
    return callable(baseline) or (isinstance(baseline, int | float | np.number) and not isinstance(baseline, bool))


def scan(
    log: ScannedLog,
    given: Any,
    constant: float | str,
    model: Any,
    behavior: Any,
    actions: Sequence[Any],
    unit: str | None,
    label_states: bool,
    late: Mapping[str, Sequence[Any]],
) -> Large:
    if unit is not None:
        log = log.with_units(unit)
    if len(actions):
        log = log.with_action_space(actions)
    if behavior is not None:
        log = log.with_behavior(behavior)
    survey = log.survey
    assert survey.reward is not None
    head = log.head(log.columns)
    names, roles = log.roles.names, log.roles
    space = log.action_space
    own = log.behavior if log.behavior is not None else Policy(roles.propensity, kind="column") if roles.full else None
    plain = Reader(roles, space, {})

    def first(reader: Reader) -> Log:
        reward = numbers(head.column(names["reward"]))
        p = numbers(head.column(names["propensity"])) if "propensity" in names else None
        assert reward is not None
        codes = label_codes(head.column(names["action"]), reader.actions)
        return reader.log_of(LazyColumns(head), reward, codes, p)

    start = first(plain)
    wanted = named_policies(log, given)
    if own is not None:
        own = prepare_policy("behavior", own, start, len(log))
    prepared: dict[str, Policy] = {name: prepare_policy(name, p, start, len(log)) for name, p in wanted.items()}
    columns: set[str] = set().union(*(columns_needed(p, log.columns, roles) for p in prepared.values()))
    if own is not None:
        columns |= columns_needed(own, log.columns, roles)
    if model is not None or label_states:
        columns |= set(roles.states)
    rows = np.arange(head.num_rows)
    try:
        space, warnings = widen(space, prepared, own, plain, first, rows, late)
        reader = Reader(roles, space, prepared, own, model, False, label_states)
        sample_log = first(reader)
        resolved = tuple(
            align(name, reader.draft(name, p, rows, sample_log), sample_log) for name, p in prepared.items()
        )
    except BadRows:  # told of all rows, not of the first ones alone
        log.refuse(Reader(roles, space, prepared, own), sorted(columns))
        raise
    full = all(p.has_full for p in resolved)
    check_model(model, resolved)
    reader = replace(reader, full=full)
    log = replace(log, actions=space, known=sample_log.knows)
    sample = np.column_stack([p.logged for p in resolved])
    units = 0
    if "unit" in names:
        units = UNITS if survey.units is None else len(survey.units)
    return Large(
        log=log,
        policies=PolicySet(resolved, tuple(warnings)),
        source=ScannedRows(log, reader, tuple(h for h in log.columns if h in columns)),
        mean=float(survey.reward.mean[0]),
        variance=float(survey.reward.scatter[0, 0] / survey.rows),
        low=survey.low,
        high=survey.high,
        counts=np.array([survey.actions.get(label, 0) for label in space], dtype=np.int64),
        knows=sample_log.knows,
        units=units,
        baseline=constant,
        near=near_at_first(sample),
        engine=log.engine.name,
    )


def check_model(model: Any, policies: Sequence[PolicyRows]) -> None:
    """A baseline q(s, a) needs whole distributions."""
    partial_ = [p.name for p in policies if not p.has_full]
    if model is not None and partial_ and takes_actions(model):
        raise BaselineRefused(
            "the baseline 'q(s, a)' depends on the action and needs pi(a|s) for every action; "
            f"policy {partial_[0]!r} gives only the probability of the logged action",
            hint=FULL_HINT,
        )


def widen(
    space: tuple[Any, ...],
    policies: Mapping[str, Policy],
    behavior: Policy | None,
    reader: Reader,
    first: Callable[[Reader], Log],
    rows: Codes,
    late: Mapping[str, Sequence[Any]],
) -> tuple[tuple[Any, ...], list[str]]:
    """The action space with what the policies can play, and warnings where they enlarge it."""
    warnings = []
    for name, policy in [*([("behavior", behavior)] if behavior is not None else []), *policies.items()]:
        own = behavior if name != "behavior" else None
        labels = new_labels(name, policy, replace(reader, actions=space), first, rows, own)
        if name in late:
            labels = tuple(sorted({*labels, *late[name]} - set(space), key=sort_key))
        if labels and name != "behavior":
            shown = listed(labels, 5)
            warnings.append(f"policy {name!r} can play actions that the log's action space lacks: {shown}.")
        space = (*space, *labels)
    return space, warnings


def new_labels(
    name: str, policy: Policy, reader: Reader, first: Callable[[Reader], Log], rows: Codes, behavior: Any
) -> tuple[Any, ...]:
    """Actions of a policy that the action space lacks, by its first rows and by what it names itself."""
    log = first(replace(reader, behavior=None if policy.kind != "logged" else behavior))
    known = set(reader.actions)
    try:
        draft = reader.draft(name, policy, rows, log)
    except NewActions as error:
        return tuple(label for labels in error.played.values() for label in labels)
    return tuple(x for x in draft.labels if x not in known)


def near_at_first(policy: Floats) -> tuple[tuple[int, int], ...]:
    """Pairs that the first rows show to be nearly equal."""
    gaps = policy - policy[:, :1]
    return tuple(close(gaps.T @ gaps, NEAR))
