"""The forms in which people hold policies, and one reader for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from podium.adapters.sb3 import read_model_choices
from podium.data.arguments import attribute, refuse_class
from podium.data.columns import REAL, is_unequal, match_label, plain, to_array
from podium.data.errors import PodiumError, listed, meant, show_value, shown
from podium.data.frames import columns_to_frame, is_frame
from podium.data.log import Log
from podium.data.roles import available
from podium.policies.drafts import Draft, Policy, call, check_draft, probabilities, read_actions, read_distribution
from podium.policies.recipes import Learned
from podium.policies.shares import read_shares
from podium.policies.specs import parse_spec
from podium.policies.sql import chosen_actions
from podium.policies.tables import read_table


def draft_policy(name: str, policy: Any, log: Log) -> Draft:
    """Read one policy, whatever its form."""
    policy = stated(name, policy, log)
    return check_draft(name, READERS[policy.kind](name, policy, log), log, policy.labels)


def stated(name: str, policy: Any, log: Log) -> Policy:
    """A policy in any form with its kind."""
    if isinstance(policy, str):
        policy = parse_spec(policy, log)
    found: Policy = policy if isinstance(policy, Policy) else Policy(policy)
    return found if found.kind else replace(found, kind=guess_kind(name, found.source))


def guess_kind(name: str, source: Any) -> str:
    """The form of a policy that was given without saying which."""
    refuse_class(f"policy {name!r}", source)
    if isinstance(source, Learned | Draft):
        return "learned"
    if is_frame(source) or isinstance(source, Mapping):
        return "table"
    what = f"policy {name!r}"
    given = isinstance(source, np.ndarray | list | tuple) or attribute(what, source, "to_numpy") is not None
    if given and (array := to_array(source)).ndim > 0:
        if array.ndim == 2:
            return "distribution"
        fractions = array.dtype.kind == "f" or (array.dtype == object and any(map(is_fraction, array)))
        return "probabilities" if fractions else "actions"
    if any(attribute(what, source, verb) is not None for verb in ("predict_proba", "predict")):
        return "model"
    if callable(source):
        return "callable"
    raise PodiumError(
        f"policy {name!r} has a form that podium does not know: {type(source).__name__}",
        hint="give a column name, an array, a callable, a classifier, a table keyed by state, shares of actions, or a "
        "SPEC string.",
    )


def is_fraction(value: Any) -> bool:
    """Whether a value is a number, present, and of a kind that need not be whole."""
    return isinstance(value, REAL) and not isinstance(value, Integral) and not is_unequal(value)


def read_column(name: str, policy: Policy, log: Log) -> Draft:
    header = str(policy.source)
    full = {h: log.columns[h] for h in log.columns if h.startswith(header + ":")}
    if header not in log.columns and not full:
        raise PodiumError(f"policy {name!r}: the log has no column {header!r}", hint=available(log.columns, header))
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
        ratios=None if policy.ratios is None else probabilities(policy.ratios, f"policy {name!r}: ratios", 1, True),
        terms=dict(policy.terms or {}),
        density=policy.density,
    )


def read_callable(name: str, policy: Policy, log: Log) -> Draft:
    answer = call(name, policy.source, log.states)
    if not is_frame(answer):
        answer = to_array(answer)
        if answer.ndim == 2 and answer.shape[1] == 1 and log.n_actions > 1:
            answer = answer[:, 0]
    read = read_distribution if is_frame(answer) or answer.ndim > 1 else read_actions
    return read(name, Policy(answer, proxy=policy.proxy), log)


def read_model(name: str, policy: Policy, log: Log) -> Draft:
    model, what = policy.source, f"policy {name!r}"
    refuse_class(what, model)
    chances, choices = (attribute(what, model, verb) for verb in ("predict_proba", "predict"))
    if chances is None and choices is None:
        raise PodiumError(
            f"{what} is no model: {type(model).__name__} has neither predict_proba nor predict",
            hint="say what it is with podium.Policy(x, kind=...).",
        )
    if all(attribute(what, model, space, ...) is not ... for space in ("action_space", "observation_space")):
        return read_model_choices(name, model, log)
    if is_regressor(name, model):
        raise PodiumError(
            f"{what}: {type(model).__name__} predicts numbers, not actions",
            hint="give a classifier whose classes are the actions; a model of the rewards is a baseline.",
        )
    states = model_states(name, model, log)
    if chances is not None:
        answer, labels = call(name, chances, states), model_classes(name, model, log)
        if is_frame(answer):
            unnamed = attribute(what, model, "classes_") is None
            return read_named(name, Policy(answer, proxy=policy.proxy), None if unnamed else labels, log)
        matrix = probabilities(answer, what, 2, policy.proxy)
        if matrix.shape[1] != len(labels):
            raise PodiumError(
                f"{what}: predict_proba gives {matrix.shape[1]} columns for {len(labels)} actions",
                hint="give the model a `classes_` attribute that names its columns.",
            )
        return Draft("model", labels=labels, matrix=matrix, proxy=policy.proxy)
    answer = call(name, choices, states)
    answer = answer[0] if isinstance(answer, tuple) else answer  # (actions, hidden state)
    return read_actions(name, Policy(answer), log)


def read_named(name: str, policy: Policy, classes: Sequence[Any] | None, log: Log) -> Draft:
    """A frame of probabilities by the names of its columns, which the model's classes must not contradict."""
    draft = replace(read_distribution(name, policy, log), kind="model")
    known = draft.labels if classes is None else classes
    if sorted(map(str, draft.labels)) != sorted(map(str, known)):
        raise PodiumError(
            f"policy {name!r}: predict_proba names its columns {listed(draft.labels)}; classes_ names {listed(known)}",
            hint="name the columns of its frame by the actions, or give an array whose columns follow `classes_`.",
        )
    return draft


def model_classes(name: str, model: Any, log: Log) -> tuple[Any, ...]:
    """The actions that the columns of a classifier's probabilities belong to."""
    classes = attribute(f"policy {name!r}", model, "classes_", log.action_space)
    try:
        labels = tuple(plain(x) for x in classes)
        hash(labels)
    except Exception as error:
        raise PodiumError(
            f"policy {name!r}: its classes_ must name an action per column; it is {shown(classes)}",
            hint="`classes_` is a list of actions in the order of the columns of predict_proba.",
        ) from error
    return labels


def is_regressor(name: str, model: Any) -> bool:
    """Whether a scikit-learn model says of itself that it predicts numbers."""
    tags = attribute(f"policy {name!r}", model, "__sklearn_tags__")
    try:
        return tags is not None and getattr(tags(), "estimator_type", None) == "regressor"
    except Exception as error:
        raise PodiumError(
            f"policy {name!r}: its __sklearn_tags__ failed: {type(error).__name__}: {error}",
            hint=f"mend {type(model).__name__}, or give its predict_proba as a function of the states.",
        ) from error


def model_states(name: str, model: Any, log: Log) -> Any:
    """The states as a scikit-learn model was fitted on them: a table, even of one column, by name if it has names."""
    states, what = log.states, f"policy {name!r}"
    if attribute(what, model, "n_features_in_") is None:
        return states
    names = attribute(what, model, "feature_names_in_")
    if names is not None and all(h in log.state_columns for h in names):
        return columns_to_frame({h: log.state_columns[h] for h in names}, "pandas")
    if is_frame(states) and names is None:
        return np.column_stack([c.astype(object) if c.dtype == object else c for c in log.state_columns.values()])
    is_column = isinstance(states, np.ndarray) and states.ndim == 1
    return states.reshape(-1, 1) if is_column else states


def read_constant(name: str, policy: Policy, log: Log) -> Draft:
    label = policy.source
    if isinstance(label, str):
        label = match_label(label, log.action_space)
    if not isinstance(label, Hashable) or label not in log.action_space:
        raise PodiumError(
            f"policy {name!r}: {show_value(label)} is not an action of this log",
            hint=f"{meant(label, log.action_space)}the actions are {listed(log.action_space)}; name more with "
            "--actions.",
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
    return read_actions(name, Policy(chosen_actions(name, str(policy.source), log)), log)


def read_learned(name: str, policy: Policy, log: Log) -> Draft:
    if isinstance(policy.source, Draft):  # cross-fitted before it was asked on any rows
        return policy.source
    raise PodiumError(
        f"policy {name!r} is a recipe that learns from the log; only a candidate policy can be one, and only on a log "
        "in memory",
        hint="read the log with podium.read_log (--engine memory), or give a policy that is already trained.",
    )


READERS: dict[str | None, Callable[[str, Policy, Log], Draft]] = {
    "column": read_column,
    "probabilities": read_probabilities,
    "distribution": read_distribution,
    "actions": read_actions,
    "callable": read_callable,
    "model": read_model,
    "table": read_table,
    "constant": read_constant,
    "uniform": read_uniform,
    "shares": read_shares,
    "logged": read_logged,
    "sql": read_sql,
    "learned": read_learned,
}
