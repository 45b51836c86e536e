"""The forms in which people hold policies, and one reader for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import Codes, Column, Floats, factorize, labels_column, match_label, numbers_column, plain, to_array
from podium.errors import PodiumError, count, refuse_rows, show_value
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
        return "probabilities" if array.dtype.kind == "f" else "actions"
    if hasattr(source, "predict_proba") or hasattr(source, "predict"):
        return "model"
    if callable(source):
        return "callable"
    raise PodiumError(
        f"policy {name!r} has a form that podium does not know: {type(source).__name__}",
        hint="give a column name, an array, a callable, a classifier, a table keyed by state, or a SPEC string.",
    )


# --- one reader per kind ---------------------------------------------------------------------------------------


def read_column(name: str, policy: Policy, log: Log) -> Draft:
    header = str(policy.source)
    full = {h: log.columns[h] for h in log.columns if h.startswith(header + ":")}
    if header not in log.columns and not full:
        raise PodiumError(f"policy {name!r}: the log has no column {header!r}", hint=available(log.columns))
    logged = None
    if header in log.columns:
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
    matrix = probabilities(policy.source, f"policy {name!r}", 2, policy.proxy)
    if matrix.shape[1] != log.n_actions:
        raise PodiumError(
            f"policy {name!r} has {matrix.shape[1]} columns of probabilities; the action space has {log.n_actions}",
            hint="columns follow log.action_space: " + ", ".join(map(str, log.action_space[:20])) + ".",
        )
    return Draft("distribution", labels=log.action_space, matrix=matrix, proxy=policy.proxy)


def read_actions(name: str, policy: Policy, log: Log) -> Draft:
    chosen, labels = factorize(labels_column(policy.source, f"policy {name!r}"))
    return Draft("actions", labels=tuple(plain(x) for x in labels), chosen=chosen)


def read_callable(name: str, policy: Policy, log: Log) -> Draft:
    answer = to_array(call(name, policy.source, log.states))
    if answer.ndim == 2 and answer.shape[1] == 1 and log.n_actions > 1:
        answer = answer[:, 0]
    read = read_distribution if answer.ndim == 2 else read_actions
    return read(name, Policy(answer, proxy=policy.proxy), log)


def read_model(name: str, policy: Policy, log: Log) -> Draft:
    model = policy.source
    states = log.states
    if isinstance(states, np.ndarray) and states.ndim == 1 and hasattr(model, "n_features_in_"):
        states = states.reshape(-1, 1)  # scikit-learn wants a table even of one column
        if hasattr(model, "feature_names_in_"):
            states = columns_to_frame(dict(log.state_columns), "pandas")
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


def read_table(name: str, policy: Policy, log: Log) -> Draft:
    table = policy.source
    if isinstance(table, Mapping) and not isinstance(table, ColumnTable):
        return read_mapping(name, table, log, policy.proxy)
    columns = frame_to_columns(table)
    keys = [h for h in log.state_columns if h in columns]
    rows = np.arange(len(log))
    if len(keys) == len(log.state_columns):
        rows = rows_by_state(name, columns, log)
        columns = {h: c for h, c in columns.items() if h not in keys}
    else:
        size = len(next(iter(columns.values()), ()))
        if size != len(log):
            raise PodiumError(
                f"policy {name!r}: its table has {count(size, 'row')}; the log has {count(len(log), 'row')}",
                hint="give one row per log row in the same order, or the state columns "
                + ", ".join(log.state_columns)
                + " as keys.",
            )
    if list(columns) == [log.header("action")]:
        return read_actions(name, Policy(columns[log.header("action")][rows]), log)
    matrix = (
        np.column_stack(
            [probabilities(c, f"policy {name!r}: column {h!r}", 1, policy.proxy)[rows] for h, c in columns.items()]
        )
        if columns
        else np.zeros((len(log), 0))
    )
    labels = tuple(match_label(h, log.action_space) for h in columns)
    return Draft("table", labels=labels, matrix=matrix, proxy=policy.proxy)


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
    answers = [table.get(label, MISSING) for label in log.state_labels]
    refuse_rows(
        f"policy {name!r}",
        "must name every state",
        np.array([a is MISSING for a in answers])[log.state_codes],
        StateText(log),
        "add the missing states to the table.",
    )
    if all(isinstance(a, Mapping) for a in answers):
        labels = tuple(dict.fromkeys(x for a in answers for x in a))
        matrix = np.array([[float(a.get(x, 0.0)) for x in labels] for a in answers])
        return Draft("table", labels=labels, matrix=matrix[log.state_codes], proxy=proxy)
    array = to_array(answers)
    if array.ndim == 2:
        return read_distribution(name, Policy(array[log.state_codes], proxy=proxy), log)
    return read_actions(name, Policy(array[log.state_codes]), log)


def read_constant(name: str, policy: Policy, log: Log) -> Draft:
    label = policy.source
    if isinstance(label, str):
        label = match_label(label, log.action_space)
    if label not in log.action_space:
        raise PodiumError(
            f"policy {name!r}: {show_value(label)} is not an action of this log",
            hint="the actions are " + ", ".join(map(str, log.action_space[:20])) + "; name more with --actions.",
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
    except Exception as error:
        raise PodiumError(
            f"policy {name!r} failed on the log's states: {type(error).__name__}: {error}",
            hint=f"it was called with {describe_states(states)}.",
        ) from error


def describe_states(states: Any) -> str:
    shape = " x ".join(map(str, states.shape))
    if isinstance(states, np.ndarray):
        return f"an array of {shape} states"
    return f"a frame of {shape} with the columns " + ", ".join(map(str, list(frame_to_columns(states))))


def probabilities(values: Any, what: str, dimensions: int, proxy: bool) -> Floats:
    """Numbers in [0, 1]; a proxy may be any number that is not negative."""
    array = to_array(values)
    if array.ndim != dimensions or array.dtype.kind not in "iufb":
        if array.ndim == dimensions == 1:
            array = numbers_column(array, what, "a probability is a number between 0 and 1.")
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
    repeated = [x for i, x in enumerate(draft.labels) if x in draft.labels[:i]]
    if repeated:
        raise PodiumError(
            f"policy {name!r} names the action {show_value(repeated[0])} twice", hint="name each action once."
        )
    if draft.matrix is not None and not draft.proxy:
        total = draft.matrix.sum(axis=1)
        refuse_rows(
            f"policy {name!r}: the sum of a row's probabilities",
            "must be 1 within 1e-6",
            np.abs(total - 1) > AGREE,
            total,
            f"its actions are {', '.join(map(str, draft.labels[:20]))}; declare scores by Policy(x, proxy=True).",
        )
    return draft


@dataclass(frozen=True)
class StateText:
    """The states of a log, row by row, for messages."""

    log: Log

    def __getitem__(self, row: int) -> Any:
        return self.log.state_labels[self.log.state_codes[row]]
