"""A policy as it was read: its form, its numbers over its own actions, and the checks on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arguments import flag, mapping
from podium.data.columns import (
    REAL,
    Codes,
    Column,
    Floats,
    factorize,
    kind_of,
    labels_column,
    match_label,
    numbers_column,
    plain,
    to_array,
)
from podium.data.errors import PodiumError, count, listed, percent_hint, refuse_rows, show_value, shown, told_as
from podium.data.facts import Fact
from podium.data.frames import frame_to_columns, is_frame
from podium.data.log import Log
from podium.data.owned import ask, lent, owned
from podium.data.probabilities import AGREE
from podium.policies.labels import check_mapping, encoded_hint, matched, refuse_alike, refuse_shifted, renamed

KINDS = (
    "column", "probabilities", "distribution", "actions", "callable", "model", "table", "constant", "uniform", "shares",
    "logged", "sql", "learned",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class GivenTerms:
    """Row terms (N,) of a method that looks inside a row; the rows they rest on, where it divides by weights."""

    rows: Floats
    effective: float | None = None


@dataclass(frozen=True)
class Policy:
    """A policy whose form is stated rather than guessed.

    Parameters
    ----------
    source : column name, array, callable, classifier, table keyed by state, action, shares of actions, or SQL
        expression
    kind : one of `KINDS`; None decides by what `source` is
    proxy : the numbers are scores that stand for probabilities, so their rows need not sum to 1
    ratios : (N,) pi(a_n|s_n) / p_n, where the two are too small to be divided; for kind "probabilities"
    terms : method -> row terms of methods that look inside a row (see `podium.episodes`)
    labels : the log's actions that the policy's own stand for, {0: "a", 1: "b"} or ["a", "b"], where the two differ
    density : a proxy that is a density, so that `ratios` are true weights and methods that use them may claim

    Examples
    --------
    >>> Policy([0, 1, 1], kind="probabilities")
    Policy(source=[0, 1, 1], kind='probabilities', proxy=False, ratios=None)
    """

    source: Any = None
    kind: str | None = None
    proxy: bool = False
    ratios: Any = None
    terms: Mapping[str, GivenTerms] | None = field(default=None, repr=False)
    density: bool = field(default=False, repr=False)
    labels: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind is not None and (not isinstance(self.kind, str) or self.kind not in KINDS):
            raise PodiumError(
                f"unknown kind of policy {shown(self.kind)}", hint="the kinds are " + ", ".join(KINDS) + "."
            )
        for name in ("proxy", "density"):
            flag(name, getattr(self, name))
        if self.labels is not None:
            check_mapping(self.labels)
        if self.terms is not None:
            mapping("terms", self.terms)
        if self.ratios is not None and self.kind != "probabilities":
            raise PodiumError(
                f"ratios belong to probabilities of logged actions; the kind is {self.kind!r}",
                hint='give podium.Policy(x, kind="probabilities", ratios=...).',
            )


@dataclass(frozen=True, eq=False)
class Draft:
    """A policy as it was read, over its own actions; aligned with the log's action space afterwards."""

    kind: str
    logged: Floats | None = None  # (N,)
    labels: tuple[Any, ...] = ()
    matrix: Floats | None = None  # (N, len(labels))
    chosen: Codes | None = None  # (N,) into labels
    proxy: bool = False
    ratios: Floats | None = None  # (N,)
    terms: Mapping[str, GivenTerms] = field(default_factory=dict)
    density: bool = False
    notes: tuple[Fact, ...] = ()  # what was noticed when it was read

    def take(self, rows: Codes) -> Draft:
        """The policy on some of its rows, where it is known for all actions."""
        matrix, chosen = self.matrix, self.chosen
        return replace(
            self,
            matrix=None if matrix is None else matrix[rows],
            chosen=None if chosen is None else chosen[rows],
        )


def read_actions(name: str, policy: Policy, log: Log) -> Draft:
    column = labels_column(policy.source, f"policy {name!r}")
    chosen, distinct = factorize(column)
    labels = tuple(plain(x) for x in distinct)
    fractions = column.dtype.kind == "f" and log.actions.dtype.kind != "f"  # rather probabilities than new actions
    known = set(log.action_space)
    if fractions and not known.issuperset(labels):
        refuse_choices(name, np.array([x not in known for x in labels])[chosen], column, log)
    return Draft("actions", labels=labels, chosen=chosen)


def refuse_choices(name: str, bad: NDArray[np.bool_], chosen: Any, log: Log) -> None:
    """Refuse rows in which a policy chooses what cannot be an action."""
    hint = f"the actions are {listed(log.action_space)}; probabilities are an array of floats, or (N, A)."
    refuse_rows(f"policy {name!r}", "must choose actions of the log", bad, chosen, hint)


def may_be_action(label: Any, log: Log) -> bool:
    """Whether a label could be one more action: a text among texts, a number among numbers."""
    return kind_of(label) == kind_of(log.action_space[0])


def read_distribution(name: str, policy: Policy, log: Log) -> Draft:
    if is_frame(policy.source):  # the names of its columns say which action is which
        labels, cells = read_cells(name, frame_to_columns(policy.source), log, policy.proxy)
        return Draft("distribution", labels=labels, matrix=cells, proxy=policy.proxy)
    matrix = probabilities(policy.source, f"policy {name!r}", 2, policy.proxy)
    if matrix.shape[1] != log.n_actions:
        raise PodiumError(
            f"policy {name!r} has {matrix.shape[1]} columns of probabilities; the action space has {log.n_actions}",
            hint=f"columns follow log.action_space: {listed(log.action_space)}.",
        )
    return Draft("distribution", labels=log.action_space, matrix=matrix, proxy=policy.proxy)


def read_cells(name: str, columns: Mapping[str, Column], log: Log, proxy: bool) -> tuple[tuple[Any, ...], Floats]:
    """Columns named by actions as those actions and a matrix of probabilities, one row per row of the table."""
    hint = "the columns of a policy's table are the state columns, and one per action that holds its probability."
    if not columns:
        raise PodiumError(f"policy {name!r}: its table has no columns of probabilities", hint=hint)
    cells = [probabilities(c, f"policy {name!r}: column {h!r}", 1, proxy, hint) for h, c in columns.items()]
    return tuple(match_label(h, log.action_space) for h in columns), np.column_stack(cells)


def probabilities(values: Any, what: str, dimensions: int, proxy: bool, hint: str = "") -> Floats:
    """Numbers in [0, 1]; a proxy may be any number that is not negative."""
    array = to_array(values)
    if array.ndim != dimensions or array.dtype.kind not in "iufb":
        hint = hint or "a probability is a number between 0 and 1."
        if array.ndim == dimensions == 1:
            array = numbers_column(array, what, hint)
        elif array.ndim == dimensions and array.dtype == object and all(isinstance(x, REAL) for x in array.flat):
            array = np.column_stack([numbers_column(column, what, hint) for column in array.T])
        else:
            raise PodiumError(
                f"{what} must hold probabilities of shape {'(N,)' if dimensions == 1 else '(N, A)'}; "
                f"it holds {array.dtype} of shape {array.shape}",
                hint="say what the numbers are with podium.Policy(x, kind=...).",
            )
    result: Floats = array.astype(np.float64, copy=False)
    if result.size and result.min() >= -AGREE and result.max() <= (np.finfo(np.float64).max if proxy else 1 + AGREE):
        return owned(result)  # nan would fail both
    bad: NDArray[np.bool_] = ~np.isfinite(result)
    rule = "must be a finite number"
    if not bad.any():
        bad = result < -AGREE if proxy else (result < -AGREE) | (result > 1 + AGREE)
        rule = "must not be negative" if proxy else "must be a probability in [0, 1]"
    if bad.any():
        flat, worst = bad.reshape(len(bad), -1), result.reshape(len(bad), -1)
        worst = worst[np.arange(len(bad)), flat.argmax(axis=1)]
        hint = "declare a score that is no probability with podium.Policy(x, proxy=True)."
        hint = "a score that stands for a probability is a number from 0 on." if proxy else hint
        hint = hint if proxy else percent_hint(result, what) or hint
        refuse_rows(what, rule, flat.any(axis=1), worst, hint)
    return owned(result)


def check_draft(name: str, draft: Draft, log: Log, names: Any = None) -> Draft:
    """A policy has one row per log row, names actions of the log, sums to 1, and agrees with itself.

    `names` are those that were given for its actions (`Policy.labels`).
    """
    draft = named_draft(name, draft, log, names)
    for part in (draft.logged, draft.matrix, draft.chosen, draft.ratios):
        if part is not None:
            check_rows(name, part, len(log))
    seen = set()
    for label in draft.labels:
        if label in seen:
            raise PodiumError(
                f"policy {name!r} names the action {show_value(label)} twice", hint="name each action once."
            )
        seen.add(label)
    if draft.matrix is not None and not draft.proxy:
        check_sums(f"policy {name!r}: the sum of a row's probabilities", draft.matrix, draft.labels)
    return draft


def named_draft(name: str, draft: Draft, log: Log, names: Any) -> Draft:
    """The policy with its actions as the log names them; what cannot be an action of the log is refused."""
    labels, note = matched(name, renamed(name, draft.labels, names), log.action_space)
    known = set(log.action_space)
    strange = [label not in known and not may_be_action(label, log) for label in labels]
    refuse_shifted(name, labels, log.action_space)
    if any(strange) and draft.kind == "actions" and draft.chosen is not None:
        chosen = [labels[k] for k in draft.chosen]
        refuse_choices(name, np.array(strange)[draft.chosen], chosen, log)
    if any(strange):
        first = show_value(labels[strange.index(True)])
        raise PodiumError(
            f"policy {name!r} uses the action {first}, which does not occur in the log",
            hint=encoded_hint(labels, log.action_space),
        )
    refuse_alike(name, labels, log.action_space)
    return replace(draft, labels=labels, notes=draft.notes if note is None else (*draft.notes, note))


def check_rows(name: str, answers: Any, rows: int) -> None:
    if len(answers) != rows:
        raise PodiumError(
            f"policy {name!r} has {count(len(answers), 'row')}; the log has {count(rows, 'row')}",
            hint="a policy gives one answer per log row, in the same order.",
        )


def check_sums(what: str, matrix: Floats, labels: tuple[Any, ...]) -> None:
    total = matrix.sum(axis=1)
    hint = f"its actions are {listed(labels)}; declare scores with podium.Policy(x, proxy=True)."
    refuse_rows(what, "must be 1 within 1e-6", np.abs(total - 1) > AGREE, total, hint)


def call(name: str, function: Callable[..., Any], states: Any, **options: Any) -> Any:
    """A user's function on the states; what it raises is told with the policy's name, and so is an answer of another
    library that cannot be read."""

    def called_with() -> str:
        return f"it was called with {describe_states(lent(states))}."

    with told_as(f"policy {name!r} failed on the log's states", called_with):
        answer = ask(function, states, **options)
    if answer is None or isinstance(answer, Real | str | tuple | set | frozenset | Mapping) or is_frame(answer):
        return answer
    try:
        return to_array(answer)
    except Exception as error:
        said = error.message if isinstance(error, PodiumError) else f"{type(error).__name__}: {error}"
        raise PodiumError(
            f"policy {name!r} gave an answer that cannot be read: {said}",
            hint="it gives one action or one row of probabilities per state, as a list or an array.",
        ) from error


def describe_states(states: Any) -> str:
    shape = " x ".join(map(str, states.shape))
    if isinstance(states, np.ndarray):
        return f"an array of {shape} states"
    return f"a frame of {shape} with the columns " + ", ".join(map(str, list(frame_to_columns(states))))
