"""Logs by what is known of how their actions were chosen: in full, in part, not at all, estimated, several loggers."""

from __future__ import annotations

from typing import Any

import numpy as np

import podium
from recorded_logs.case import Case, recorded
from recorded_logs.rows import VISIT_ACTIONS, Rows, grid, plane, visits, wave


@recorded
def full_behavior() -> Case:
    rows = wave(1, 300, 4, count=4)
    more = {
        "compare joint": {"joint": True},
        "compare level 0.8": {"level": 0.8},
        "compare bootstrap": {"bootstrap": 200, "estimator": "DRE"},
        "compare seed 7": {"seed": 7, "joint": True, "bootstrap": 200},
        "states DRE": {"estimator": "DRE"},
        "states IPS": {"estimator": "IPS", "delta": 0.1, "true_values": rows_by_state(rows)},
        "states DiM": {"estimator": "DiM", "baseline": "linear"},
        "states cDR": {"estimator": "cDR:5"},
        "states SNIPS": {"estimator": "SNIPS"},
        "plan small difference": {"difference": 0.01, "level": 0.9},
    }
    gates = ("p4 > p1", "p1 > p4", "p3 > p2 - 0.1", "p2 > p3 + 0.05")
    return Case(rows.log(), rows.policies, more=more, gates=gates)


def rows_by_state(rows: Rows) -> dict[Any, list[float]]:
    """State -> the true values of the policies there."""
    values = np.stack([(rows.expected * policy).sum(axis=1) for policy in rows.policies.values()], axis=1)
    return dict(zip(rows.states.tolist(), values.tolist(), strict=True))


@recorded
def propensities_of_logged_actions() -> Case:
    rows = wave(2, 250, 3)
    return Case(rows.log("logged"), rows.policies, gates=("p3 > p1",), more={"compare gated": {"verdicts": "gated"}})


@recorded
def no_propensities() -> Case:
    rows = wave(3, 250, 3)
    return Case(rows.log("none"), rows.policies, gates=("p3 > p1",), more={"compare gated": {"verdicts": "gated"}})


@recorded
def propensities_estimated_by_logistic_regression() -> Case:
    rows = plane(4, 400, 3, 3, seeks=1.0)
    more = {"compare gated": {"verdicts": "gated"}, "compare paired t": {"verdicts": "paired t", "estimator": "DRE"}}
    return Case(rows.log("none"), rows.policies, {"behavior": "estimate"}, more=more)


@recorded
def propensities_estimated_by_frequencies() -> Case:
    rows = grid(5, 500, 3, 8)
    return Case(rows.log("none"), rows.policies, {"behavior": "estimate:frequencies", "seed": 3})


@recorded
def propensities_estimated_by_boosting() -> Case:
    columns, rows = visits(15, 250)
    return Case(podium.Log.from_columns(columns), rows.policies, {"behavior": "estimate:boosting"}, asked=("compare",))


@recorded
def propensities_estimated_by_a_bad_model() -> Case:
    from sklearn.tree import DecisionTreeClassifier

    columns, rows = visits(16, 400, seeks=3.0)
    del columns["plan"], columns["region"]
    found = podium.estimate_propensities(podium.Log.from_columns(columns), DecisionTreeClassifier(random_state=0))
    return Case(found.log, rows.policies)


@recorded
def propensities_estimated_from_few_rows() -> Case:
    rows = wave(17, 25, 4)
    return Case(rows.log("none"), rows.policies, {"behavior": "estimate:frequencies"})


@recorded
def propensities_estimated_beforehand() -> Case:
    rows = plane(6, 300, 3, 2, seeks=3.0)
    found = podium.estimate_propensities(rows.log("none"), "logistic", folds=3)
    return Case(found.log, {**rows.policies, "now": "logged"})


@recorded
def behavior_as_an_option() -> Case:
    rows = grid(7, 300, 3, 12)
    table = dict(zip(rows.states.tolist(), map(tuple, rows.behavior.tolist()), strict=True))
    return Case(rows.log("none"), rows.policies, {"behavior": table}, gates=("p3 > p1",))


def two_loggers() -> tuple[dict[str, np.ndarray], Rows, dict[str, np.ndarray]]:
    """Columns of a log that two policies made together, one of them in the first 150 of 400 rows."""
    columns, rows = visits(8, 400)
    rng = np.random.default_rng(80)
    old = np.full_like(rows.behavior, 1 / 3)
    taken = np.where(np.arange(400) < 150, rng.integers(3, size=400), rows.actions)
    logger = np.array(["old", "new"], dtype=object)[(np.arange(400) >= 150).astype(int)]
    rewards = rows.expected[np.arange(400), taken] + 0.5 * rng.normal(size=400)
    labels = np.array(VISIT_ACTIONS, dtype=object)[taken]
    return {**columns, "action": labels, "reward": rewards, "logger": logger}, rows, {"old": old, "new": rows.behavior}


@recorded
def two_loggers_balanced() -> Case:
    columns, rows, loggers = two_loggers()
    return Case(podium.Log.from_columns(columns), rows.policies, {"behavior": podium.Loggers(loggers, by="logger")})


@recorded
def two_loggers_each_on_its_own_rows() -> Case:
    columns, rows, loggers = two_loggers()
    behavior = podium.Loggers(loggers, by="logger", balanced=False)
    log = podium.Log.from_columns(columns).with_behavior(behavior)
    return Case(log, {**rows.policies, "now": "logged"}, {"verdicts": "gated"})


@recorded
def two_loggers_known_at_logged_actions() -> Case:
    rows = wave(9, 200, 3)
    by = np.where(np.arange(200) % 3 == 0, "a", "b")
    loggers = {"a": rows.propensities, "b": 0.5 * rows.propensities + 0.2}
    return Case(rows.log("none"), rows.policies_at_logged, {"behavior": podium.Loggers(loggers, by=by)})


@recorded
def logger_prefers_good_actions_full_behavior() -> Case:
    rows = wave(10, 400, 4, seeks=2.5)
    return Case(rows.log(), rows.policies, more={"compare gated": {"verdicts": "gated"}}, gates=("p3 > p1",))


@recorded
def logger_prefers_good_actions_and_methods_disagree() -> Case:
    rows = wave(309, 200, 3, seeks=4.0)
    return Case(rows.log(), {**rows.choices, "now": "logged"}, gates=("p3 > now",))


@recorded
def logger_prefers_good_actions_logged_propensities() -> Case:
    rows = wave(11, 400, 4, seeks=2.5)
    return Case(rows.log("logged"), rows.policies_at_logged, gates=("p3 > p1",))


@recorded
def logger_prefers_good_actions_no_propensities() -> Case:
    rows = grid(12, 400, 4, 20, seeks=2.5)
    return Case(rows.log("none"), rows.policies, more={"compare gated": {"verdicts": "gated"}})


@recorded
def logger_prefers_good_actions_estimated() -> Case:
    rows = grid(13, 600, 3, 10, seeks=1.5)
    options = {"behavior": "estimate:frequencies", "verdicts": "gated"}
    return Case(rows.log("none"), rows.policies, options)


@recorded
def uniform_logger() -> Case:
    rows = wave(14, 200, 3)
    actions = np.random.default_rng(140).integers(3, size=200)
    rewards = rows.expected[np.arange(200), actions] + 0.3 * np.random.default_rng(141).normal(size=200)
    log = podium.Log(rows.states, actions, rewards, behavior="uniform")
    return Case(log, {**rows.policies, "now": "logged"}, gates=("p3 > now",))
