"""Logs that are asked by every method, baseline and verdict procedure."""

from __future__ import annotations

from typing import Any

import numpy as np

import podium
from recorded_logs.case import PROCEDURES, Case, recorded
from recorded_logs.rows import plane, visits, wave

FAMILY = ("SNIPS", "SNDR", "cIPS:5", "cDR:5", "SwitchDR:3", "DRos:10", "sgIPS:0.2", "sgDR:0.2", "DirectModel")


@recorded
def judges_and_methods() -> Case:
    rows = plane(40, 150, 3, 2)
    more: dict[str, dict[str, Any]] = {
        f"compare {verdicts}, ranked by {method}": {"verdicts": verdicts, "estimator": method}
        for verdicts in PROCEDURES
        for method in ("LDE", "DRE", "IPS", "DiM")
    }
    more |= {"compare ranked by gated": {"estimator": "gated"}, "compare joint": {"verdicts": "gated", "joint": True}}
    more |= {f"check {verdicts}": {"verdicts": verdicts} for verdicts in PROCEDURES}
    more |= {f"plan {verdicts}": {"verdicts": verdicts, "estimator": "DRE"} for verdicts in PROCEDURES}
    return Case(rows.log(), rows.policies, more=more)


@recorded
def judges_with_units() -> Case:
    rows = wave(41, 240, 3)
    more = {f"compare {verdicts}": {"verdicts": verdicts, "estimator": "DRE"} for verdicts in PROCEDURES}
    log = rows.log(units=np.random.default_rng(410).integers(40, size=240))
    return Case(log, rows.policies, more={**more, "compare bootstrap": {"bootstrap": 200}})


@recorded
def the_wider_family() -> Case:
    rows = wave(42, 250, 4, seeks=1.0)
    more: dict[str, dict[str, Any]] = {
        f"compare {method}": {"estimator": method, "verdicts": "paired t", "baseline": "linear", "bootstrap": 200}
        for method in FAMILY
    }
    more |= {f"compare bootstrap t {m}": {"estimator": m, "verdicts": "bootstrap t"} for m in ("SNIPS", "SNDR", "DRos")}
    more |= {"evaluate parameters": {"estimators": ["cIPS:2", "cDR:2", "SwitchDR:0", "DRos:1", "sgIPS:1", "sgDR:0"]}}
    return Case(rows.log(), rows.policies, more=more)


@recorded
def verdicts_against_the_ranking() -> Case:
    rows = wave(45, 400, 3, seeks=-2.0)
    log = podium.Log(rows.states, rows.actions, rows.rewards + 3, behavior=rows.behavior)
    return Case(log, rows.policies, {"estimator": "DiM"}, more={"compare joint": {"joint": True}}, gates=("p3 > p1",))


@recorded
def few_rows_carry_the_weight() -> Case:
    rows = wave(46, 40, 6)
    more: dict[str, dict[str, Any]] = {
        f"compare {method}, {verdicts}": {"estimator": method, "verdicts": verdicts}
        for method in ("SNIPS", "SNDR", "cDR:2", "DRE")
        for verdicts in ("paired t", "bootstrap t", "sign flip")
    }
    return Case(rows.log("logged"), {**rows.choices, "now": "logged"}, more=more)


class Ridge:
    """A small reward model with fit and predict."""

    def fit(self, features: np.ndarray, rewards: np.ndarray) -> Ridge:
        inputs = np.column_stack([np.ones(len(features)), features])
        self.weights = np.linalg.solve(inputs.T @ inputs + np.eye(inputs.shape[1]), inputs.T @ rewards)
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(features)), features]) @ self.weights


@recorded
def baselines() -> Case:
    from sklearn.tree import DecisionTreeRegressor

    rows = wave(43, 200, 3)
    known: dict[str, Any] = {
        "mean": "mean",
        "number": 0.25,
        "linear": "linear",
        "state": "state",
        "q": lambda states, actions: np.sin(states + actions),
        "v": lambda states: 0.5 * np.cos(states),
        "model": Ridge(),
        "tree": DecisionTreeRegressor(max_depth=3, random_state=0),
        "array of states": 0.3 * rows.states,
        "array of actions": 0.5 * rows.expected,
    }
    more: dict[str, dict[str, Any]] = {}
    for name, baseline in known.items():
        more[f"compare {name}"] = {"baseline": baseline, "estimator": "DRE", "verdicts": "paired t"}
        more[f"evaluate {name}"] = {"baseline": baseline}
        more[f"states {name}"] = {"baseline": baseline}
    more["check state"] = {"baseline": "state", "estimator": "LDE", "verdicts": "sign flip"}
    more["spectrum all baselines"] = {"baselines": list(known.values())}
    return Case(rows.log(), rows.policies, more=more)


@recorded
def baselines_with_units_and_texts() -> Case:
    columns, rows = visits(44, 300)
    log = podium.Log.from_columns({**columns, "propensity": rows.propensities, "person": np.arange(300) // 4})
    more: dict[str, dict[str, Any]] = {}
    for name, baseline in {"linear": "linear", "state": "state", "model": Ridge()}.items():
        more[f"compare {name}"] = {"baseline": baseline, "estimator": "LDE", "verdicts": "paired t"}
        more[f"evaluate {name}"] = {"baseline": baseline, "seed": 5}
    return Case(log, rows.policies, {"unit": "person"}, more=more)
