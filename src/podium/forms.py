"""The forms in which people hold policies, and one reader for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import (
    REAL,
    Codes,
    Column,
    Floats,
    factorize,
    is_unequal,
    kind_of,
    labels_column,
    match_label,
    numbers_column,
    plain,
    to_array,
)
from podium.errors import PodiumError, count, listed, refuse_rows, show_value
from podium.frames import ColumnTable, columns_to_frame, frame_to_columns, is_frame
from podium.log import AGREE, Log, available

KINDS = (
    "column",
    "probabilities",
    "distribution",
    "actions",
    "callable",
    "model",
    "table",
    "constant",
    "uniform",
    "logged",
    "sql",
)


@dataclass(frozen=True)
class Policy:
    """A policy whose form is stated rather than guessed.

    Parameters
    ----------
    source : column name, array, callable, classifier, table keyed by state, action, or SQL expression
    kind : one of `KINDS`; None decides by what `source` is
    proxy : the numbers are scores that stand for probabilities, so their rows need not sum to 1

    Examples
    --------
    >>> Policy([0, 1, 1], kind="probabilities")
    Policy(source=[0, 1, 1], kind='probabilities', proxy=False)
    """

    source: Any = None
    kind: str | None = None
    proxy: bool = False

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise PodiumError(f"unknown kind of policy {self.kind!r}", hint="the kinds are " + ", ".join(KINDS) + ".")


@dataclass(frozen=True, eq=False)
class Draft:
    """A policy as it was read, over its own actions; aligned with the log's action space afterwards."""

    kind: str
    logged: Floats | None = None  # (N,)
    labels: tuple[Any, ...] = ()
    matrix: Floats | None = None  # (N, len(labels))
    chosen: Codes | None = None  # (N,) into labels
    proxy: bool = False


def draft_policy(name: str, policy: Any, log: Log) -> Draft:
    """Read one policy, whatever its form."""
    if isinstance(policy, str):
        if policy in log.columns:
            policy = Policy(policy, kind="column")
        else:
            from podium.specs import parse_spec  # SPEC strings build policies of the kinds known here

            policy = parse_spec(policy, log)
    if not isinstance(policy, Policy):
        policy = Policy(policy)
    kind = policy.kind or guess_kind(name, policy.source)
    draft = READERS[kind](name, policy, log)
    return check_draft(name, draft, log)


def guess_kind(name: str, source: Any) -> str:
    """The form of a policy that was given without saying which."""
    if is_frame(source) or isinstance(source, Mapping):
        return "table"
    if isinstance(source, np.ndarray | list | tuple) or hasattr(source, "to_numpy"):
        array = to_array(source)
        if array.ndim == 2:
            return "distribution"
        fractions = array.dtype.kind == "f" or (array.dtype == object and any(map(is_fraction, array)))
        return "probabilities" if fractions else "actions"
    if hasattr(source, "predict_proba") or hasattr(source, "predict"):
        return "model"
    if callable(source):
        return "callable"
    raise PodiumError(
        f"policy {name!r} has a form that podium does not know: {type(source).__name__}",
        hint="give a column name, an array, a callable, a classifier, a table keyed by state, or a SPEC string.",
    )


def is_fraction(value: Any) -> bool:
    """Whether a value is a number, present, and of a kind that need not be whole."""
    return isinstance(value, REAL) and not isinstance(value, Integral) and not is_unequal(value)


# --- one reader per kind ---------------------------------------------------------------------------------------


def read_column(name: str, policy: Policy, log: Log) -> Draft:
    header = str(policy.source)
    full = {h: log.columns[h] for h in log.columns if h.startswith(header + ":")}
    if header not in log.columns and not full:
        raise PodiumError(f"policy {name!r}: the log has no column {header!r}", hint=available(log.columns))
    logged = None
    if header in log.columns and not (full and header == log.header("propensity")):  # the log compares those itself
        column = log.columns[header]
        if column.dtype.kind in "OU" and all(isinstance(x, str) for x in column) and not full:
            return read_actions(name, Policy(column), log)
        logged = probabilities(column, f"column {header!r}", 1, policy.proxy)
    if not full:
        return Draft("column", logged=logged, proxy=policy.proxy)
    labels = tuple(match_label(h[len(header) + 1 :], log.action_space) for h in full)
    matrix = np.column_stack([probabilities(c, f"column {h!r}", 1, policy.proxy) for h, c in full.items()])
    return Draft("column", logged=logged, labels=labels, matrix=matrix, proxy=policy.proxy)


def read_probabilities(name: str, policy: Policy, log: Log) -> Draft:
    return Draft(
        "probabilities",
        logged=probabilities(policy.source, f"policy {name!r}", 1, policy.proxy),
        proxy=policy.proxy,
    )


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


def read_actions(name: str, policy: Policy, log: Log) -> Draft:
    column = labels_column(policy.source, f"policy {name!r}")
    chosen, distinct = factorize(column)
    labels = tuple(plain(x) for x in distinct)
    fractions = column.dtype.kind == "f" and log.actions.dtype.kind != "f"  # rather probabilities than new actions
    known = set(log.action_space)
    strange = [x not in known and (fractions or not may_be_action(x, log)) for x in labels]
    refuse_rows(
        f"policy {name!r}",
        "must choose actions of the log",
        np.array(strange, dtype=bool)[chosen],
        column,
        f"the actions are {listed(log.action_space)}; probabilities are an array of floats, or (N, A).",
    )
    return Draft("actions", labels=labels, chosen=chosen)


def may_be_action(label: Any, log: Log) -> bool:
    """Whether a label could be one more action: a text among texts, a number among numbers."""
    return kind_of(label) == kind_of(log.action_space[0])


def read_callable(name: str, policy: Policy, log: Log) -> Draft:
    answer = call(name, policy.source, log.states)
    if not is_frame(answer):
        answer = to_array(answer)
        if answer.ndim == 2 and answer.shape[1] == 1 and log.n_actions > 1:
            answer = answer[:, 0]
    read = read_distribution if is_frame(answer) or answer.ndim > 1 else read_actions
    return read(name, Policy(answer, proxy=policy.proxy), log)


def read_model(name: str, policy: Policy, log: Log) -> Draft:
    model = policy.source
    if not hasattr(model, "predict_proba") and not hasattr(model, "predict"):
        raise PodiumError(
            f"policy {name!r} is no model: {type(model).__name__} has neither predict_proba nor predict",
            hint="say what it is with podium.Policy(x, kind=...).",
        )
    states = model_states(model, log)
    if hasattr(model, "predict_proba"):
        matrix = probabilities(call(name, model.predict_proba, states), f"policy {name!r}", 2, policy.proxy)
        labels = tuple(plain(x) for x in getattr(model, "classes_", log.action_space))
        if matrix.shape[1] != len(labels):
            raise PodiumError(
                f"policy {name!r}: predict_proba gives {matrix.shape[1]} columns for {len(labels)} actions",
                hint="give the model a `classes_` attribute that names its columns.",
            )
        return Draft("model", labels=labels, matrix=matrix, proxy=policy.proxy)
    answer = call(name, model.predict, states)
    answer = answer[0] if isinstance(answer, tuple) else answer  # Stable-Baselines3: (actions, hidden state)
    return read_actions(name, Policy(answer), log)


def model_states(model: Any, log: Log) -> Any:
    """The states as a scikit-learn model was fitted on them: a table, even of one column, by name if it has names."""
    if not hasattr(model, "n_features_in_"):
        return log.states
    names = getattr(model, "feature_names_in_", None)
    if names is not None and all(h in log.state_columns for h in names):
        return columns_to_frame({h: log.state_columns[h] for h in names}, "pandas")
    if is_frame(log.states) and names is None:
        return np.column_stack([c.astype(object) if c.dtype == object else c for c in log.state_columns.values()])
    is_column = isinstance(log.states, np.ndarray) and log.states.ndim == 1
    return log.states.reshape(-1, 1) if is_column else log.states


def read_table(name: str, policy: Policy, log: Log) -> Draft:
    table = policy.source
    if isinstance(table, Mapping) and not isinstance(table, ColumnTable):
        return read_mapping(name, table, log, policy.proxy)
    columns = frame_to_columns(index_as_column(name, table, log))
    keys = [h for h in log.state_columns if h in columns]
    rows = np.arange(len(log))
    if len(keys) == len(log.state_columns):
        rows = rows_by_state(name, columns, log)
        columns = {h: c for h, c in columns.items() if h not in keys}
    else:
        partial = [h for h in keys if match_label(h, log.action_space) not in log.action_space]
        if partial:
            lacking = [h for h in log.state_columns if h not in columns]
            raise PodiumError(
                f"policy {name!r}: its table has the state column {partial[0]!r} and lacks {lacking[0]!r}",
                hint="give every state column as a key, or none and one row per log row.",
            )
        size = len(next(iter(columns.values()), ()))
        if size != len(log):
            raise PodiumError(
                f"policy {name!r}: its table has {count(size, 'row')}; the log has {count(len(log), 'row')}",
                hint=f"give one row per log row in the same order, or key it by {', '.join(log.state_columns)}.",
            )
    if list(columns) == [log.header("action")]:
        return read_actions(name, Policy(columns[log.header("action")][rows]), log)
    labels, matrix = read_cells(name, columns, log, policy.proxy)
    if not policy.proxy:
        check_sums(f"policy {name!r}: the sum of a row of its table", matrix, labels)
    return Draft("table", labels=labels, matrix=matrix[rows], proxy=policy.proxy)


def index_as_column(name: str, table: Any, log: Log) -> Any:
    """A pandas frame that holds the states as its index, with the states as columns; other frames as they are."""
    index = getattr(table, "index", None)
    if index is None or isinstance(table, ColumnTable):
        return table
    if set(index.names) & set(log.state_columns):
        return table.reset_index()
    if index.dtype.kind in "iu" or len(index) == 0:
        return table
    raise PodiumError(
        f"policy {name!r}: its table has an index of labels, such as {show_value(index[0])}",
        hint=f"make the states a column (table.reset_index()), named {', '.join(log.state_columns)}.",
    )


def rows_by_state(name: str, columns: Mapping[str, Column], log: Log) -> Codes:
    """For each log row, the row of a table that describes its state."""
    keys = [labels_column(columns[h], f"policy {name!r}: column {h!r}") for h in log.state_columns]
    if len(keys[0]) == len(log) and all(
        np.array_equal(key, column) for key, column in zip(keys, log.state_columns.values(), strict=True)
    ):
        return np.arange(len(log))  # the same rows in the same order
    place: dict[Any, int] = {}
    others = [c for h, c in columns.items() if h not in log.state_columns]
    for i, key in enumerate(zip(*(k.tolist() for k in keys), strict=True)):
        j = place.setdefault(key, i)
        if j != i and any(c[i] != c[j] for c in others):
            raise PodiumError(
                f"policy {name!r}: rows {j + 1} and {i + 1} of its table describe one state and differ",
                hint="keep one row per state, or one row per log row in the same order.",
            )
    wanted = zip(*(c[log.first_rows].tolist() for c in log.state_columns.values()), strict=True)
    found = np.array([place.get(key, -1) for key in wanted])
    refuse_rows(
        f"policy {name!r}",
        "must have a row for every state",
        (found < 0)[log.state_codes],
        StateText(log),
        "add the missing states to its table.",
    )
    return found[log.state_codes]


def read_mapping(name: str, table: Mapping[Any, Any], log: Log, proxy: bool) -> Draft:
    answers = [as_mapping(table.get(label, MISSING)) for label in log.state_labels]
    refuse_rows(
        f"policy {name!r}",
        "must name every state",
        np.array([a is MISSING for a in answers])[log.state_codes],
        StateText(log),
        "add the missing states to the table.",
    )
    if all(isinstance(a, Mapping) for a in answers):
        labels = tuple(dict.fromkeys(x for a in answers for x in a))
        cells = {x: to_array([a.get(x, 0.0) for a in answers])[log.state_codes] for x in labels}
        columns = [probabilities(c, f"policy {name!r}: action {show_value(x)}", 1, proxy) for x, c in cells.items()]
        matrix = np.column_stack(columns) if columns else np.zeros((len(log), 0))
        return Draft("table", labels=tuple(plain(x) for x in labels), matrix=matrix, proxy=proxy)
    rows = all(isinstance(a, tuple) for a in answers) and not set(answers) <= set(log.action_space)
    array = to_array([list(a) for a in answers] if rows else answers)
    if array.ndim == 2:
        return read_distribution(name, Policy(array[log.state_codes], proxy=proxy), log)
    return read_actions(name, Policy(array[log.state_codes]), log)


def as_mapping(answer: Any) -> Any:
    """A pandas Series as a mapping from its index, so that its order does not matter."""
    return dict(answer.items()) if hasattr(answer, "index") and hasattr(answer, "items") else answer


def read_constant(name: str, policy: Policy, log: Log) -> Draft:
    label = policy.source
    if isinstance(label, str):
        label = match_label(label, log.action_space)
    if not isinstance(label, Hashable) or label not in log.action_space:
        raise PodiumError(
            f"policy {name!r}: {show_value(label)} is not an action of this log",
            hint=f"the actions are {listed(log.action_space)}; name more with --actions.",
        )
    return Draft("constant", labels=(label,), chosen=np.zeros(len(log), dtype=np.int64))


def read_uniform(name: str, policy: Policy, log: Log) -> Draft:
    return Draft("uniform")


def read_logged(name: str, policy: Policy, log: Log) -> Draft:
    if log.behavior is not None:
        return Draft("logged", logged=log.propensities, labels=log.action_space, matrix=log.behavior)
    if log.propensities is None:
        raise PodiumError(
            f"policy {name!r} is the behaviour policy, and the log does not say what that is",
            hint="add a propensity column, or give the behaviour policy with --behavior.",
        )
    return Draft("logged", logged=log.propensities)


def read_sql(name: str, policy: Policy, log: Log) -> Draft:
    from podium.sql import chosen_actions

    return read_actions(name, Policy(chosen_actions(name, str(policy.source), log)), log)


READERS: dict[str, Callable[[str, Policy, Log], Draft]] = {
    "column": read_column,
    "probabilities": read_probabilities,
    "distribution": read_distribution,
    "actions": read_actions,
    "callable": read_callable,
    "model": read_model,
    "table": read_table,
    "constant": read_constant,
    "uniform": read_uniform,
    "logged": read_logged,
    "sql": read_sql,
}
MISSING = object()


def call(name: str, function: Callable[[Any], Any], states: Any) -> Any:
    """A user's function on the states; what it raises is told with the policy's name."""
    if isinstance(states, ColumnTable):
        states = columns_to_frame(states.columns, "pandas")
    try:
        return function(states)
    except PodiumError:
        raise
    except (Exception, SystemExit) as error:
        raise PodiumError(
            f"policy {name!r} failed on the log's states: {type(error).__name__}: {error}",
            hint=f"it was called with {describe_states(states)}.",
        ) from error


def describe_states(states: Any) -> str:
    shape = " x ".join(map(str, states.shape))
    if isinstance(states, np.ndarray):
        return f"an array of {shape} states"
    return f"a frame of {shape} with the columns " + ", ".join(map(str, list(frame_to_columns(states))))


def probabilities(values: Any, what: str, dimensions: int, proxy: bool, hint: str = "") -> Floats:
    """Numbers in [0, 1]; a proxy may be any number that is not negative."""
    array = to_array(values)
    if array.ndim != dimensions or array.dtype.kind not in "iufb":
        if array.ndim == dimensions == 1:
            array = numbers_column(array, what, hint or "a probability is a number between 0 and 1.")
        else:
            raise PodiumError(
                f"{what} must hold probabilities of shape {'(N,)' if dimensions == 1 else '(N, A)'}; "
                f"it holds {array.dtype} of shape {array.shape}",
                hint="say what the numbers are with podium.Policy(x, kind=...).",
            )
    result: Floats = array.astype(np.float64, copy=False)
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
        refuse_rows(what, rule, flat.any(axis=1), worst, hint)
    return result


def check_draft(name: str, draft: Draft, log: Log) -> Draft:
    """A policy has one row per log row, sums to 1, and agrees with itself."""
    for part in (draft.logged, draft.matrix, draft.chosen):
        if part is not None and len(part) != len(log):
            raise PodiumError(
                f"policy {name!r} has {count(len(part), 'row')}; the log has {count(len(log), 'row')}",
                hint="a policy gives one answer per log row, in the same order.",
            )
    known, seen = set(log.action_space), set()
    for label in draft.labels:
        if label in seen:
            raise PodiumError(
                f"policy {name!r} names the action {show_value(label)} twice", hint="name each action once."
            )
        seen.add(label)
        if label not in known and not may_be_action(label, log):
            raise PodiumError(
                f"policy {name!r} names the action {show_value(label)}, which is no action of the log",
                hint=f"the actions are {listed(log.action_space)}.",
            )
    if draft.matrix is not None and not draft.proxy:
        check_sums(f"policy {name!r}: the sum of a row's probabilities", draft.matrix, draft.labels)
    return draft


def check_sums(what: str, matrix: Floats, labels: tuple[Any, ...]) -> None:
    total = matrix.sum(axis=1)
    hint = f"its actions are {listed(labels)}; declare scores with podium.Policy(x, proxy=True)."
    refuse_rows(what, "must be 1 within 1e-6", np.abs(total - 1) > AGREE, total, hint)


@dataclass(frozen=True)
class StateText:
    """The states of a log, row by row, for messages."""

    log: Log

    def __getitem__(self, row: int) -> Any:
        return self.log.state_labels[self.log.state_codes[row]]
