"""Logs by their shape: units, times, states, rewards, and the numbers of rows, actions and policies."""

from __future__ import annotations

from typing import Any

import numpy as np

import podium
from recorded_logs.case import PROCEDURES, Case, recorded
from recorded_logs.rows import clicks, grid, plane, visits, wave


@recorded
def units() -> Case:
    columns, rows = visits(50, 320)
    log = podium.Log.from_columns({**columns, "propensity": rows.propensities, "person": np.arange(320) % 45})
    return Case(log, rows.policies, {"unit": "person"}, more={"compare gated": {"verdicts": "gated", "joint": True}})


@recorded
def units_with_policies_at_logged_actions() -> Case:
    rows = wave(51, 300, 3, seeks=1.0)
    names = np.array([f"device {n}" for n in np.random.default_rng(510).integers(25, size=300)])
    return Case(
        rows.log("logged", units=names), rows.policies_at_logged, more={"compare bootstrap": {"bootstrap": 200}}
    )


@recorded
def times_and_repeated_actions() -> Case:
    rows = grid(52, 300, 3, 15)
    times = np.random.default_rng(520).integers(100, size=300)  # several rows share a time
    more: dict[str, dict[str, Any]] = {
        f"{question} {duplicates}": {"duplicates": duplicates}
        for question in ("compare", "evaluate", "states", "check")
        for duplicates in ("latest", "all")
    }
    more |= {"states normalized": {"normalize": "states"}, "evaluate normalized": {"normalize": "states"}}
    more |= {"compare normalized": {"normalize": "states", "estimator": "LDE", "verdicts": "paired t"}}
    more |= {"plan latest": {"duplicates": "latest", "verdicts": "paired t", "estimator": "DRE"}}
    return Case(rows.log(times=times), rows.policies, more=more)


@recorded
def dates_and_policies_at_logged_actions() -> Case:
    rows = grid(53, 250, 4, 20)
    days = np.datetime64("2024-01-01") + np.random.default_rng(530).integers(60, size=250)
    return Case(rows.log("none", times=days), rows.policies_at_logged)


@recorded
def costs() -> Case:
    rows = wave(54, 250, 3)
    gates = ("p1 > p3", "p3 > p1 - 0.1")
    more = {"compare gated": {"verdicts": "gated"}, "compare LDE": {"estimator": "LDE", "verdicts": "paired t"}}
    return Case(rows.log(), rows.policies, {"lower_is_better": True}, more=more, gates=gates)


@recorded
def text_states() -> Case:
    rows = grid(55, 300, 3, 25)
    texts = np.array([f"customer {n}" for n in rows.states])
    log = podium.Log(texts, rows.actions, rows.rewards, behavior=rows.behavior)
    more = {"compare gated": {"verdicts": "gated"}, "evaluate linear": {"baseline": "linear"}}
    return Case(log, rows.policies, more=more)


@recorded
def texts_and_numbers_as_states() -> Case:
    columns, rows = visits(56, 400, count=4)
    return Case(podium.Log.from_columns(columns), rows.policies, gates=("p4 > p1",))


@recorded
def many_features() -> Case:
    rows = plane(57, 150, 3, 40)
    return Case(rows.log(), rows.policies)


@recorded
def many_features_no_propensities() -> Case:
    rows = plane(58, 300, 5, 12, count=4, seeks=0.5)
    return Case(rows.log("none"), rows.policies)


@recorded
def one_state() -> Case:
    rows = grid(59, 60, 4, 1)
    return Case(rows.log(), rows.policies, gates=("p3 > p1",))


@recorded
def one_row() -> Case:
    return Case(podium.Log([0], ["a"], [1.0], propensities=[0.5], action_space=("a", "b")), first_and_second())


@recorded
def two_rows() -> Case:
    return Case(podium.Log([0, 1], ["a", "b"], [1.0, 0.25], propensities=[0.5, 0.4]), first_and_second())


@recorded
def three_rows() -> Case:
    log = podium.Log([0, 0, 1], ["a", "b", "b"], [1.0, 0.2, 0.9], propensities=[0.5, 0.5, 0.6])
    return Case(log, {**first_and_second(), "uniform": "uniform"}, more={"compare joint": {"joint": True}})


@recorded
def three_rows_no_propensities() -> Case:
    return Case(podium.Log(["x", "y", "z"], [1, 2, 2], [3.0, 1.0, 2.5]), {"one": "constant:1", "two": "constant:2"})


def first_and_second() -> dict[str, str]:
    return {"first": "constant:a", "second": "constant:b"}


@recorded
def ten_rows() -> Case:
    rows = wave(60, 10, 2)
    more: dict[str, dict[str, Any]] = {f"compare {verdicts}": {"verdicts": verdicts} for verdicts in PROCEDURES}
    more["check at a low level"] = {"verdicts": "paired t", "estimator": "LDE", "level": 0.6}
    return Case(rows.log(), rows.policies, more=more)


@recorded
def equal_policies() -> Case:
    rows = wave(61, 150, 3)
    near = rows.policies["p1"] + 1e-9 * (rows.policies["p2"] - rows.policies["p1"])
    policies = {**rows.policies, "twin of p1": rows.policies["p1"].copy(), "almost p1": near}
    more = {f"compare {v}": {"verdicts": v, "estimator": "DRE"} for v in ("gated", "paired t")}
    return Case(rows.log(), policies, more=more)


@recorded
def equal_scores() -> Case:
    states, actions = np.repeat(np.arange(10), 2), np.tile(["a", "b"], 10)
    log = podium.Log(states, actions, np.ones(20), propensities=np.full(20, 0.5))
    return Case(log, {**first_and_second(), "uniform": "uniform"})


@recorded
def constant_rewards_within_actions() -> Case:
    rows = grid(62, 80, 2, 10, noise=0.0)
    rewards = np.where(rows.actions == 1, 1.0, 0.0)
    log = podium.Log(rows.states, rows.actions, rewards, behavior=rows.behavior)
    return Case(log, {"one": "constant:1", "zero": "constant:0", "uniform": "uniform"})


@recorded
def rewards_near_a_million() -> Case:
    rows = wave(63, 200, 3)
    log = podium.Log(rows.states, rows.actions, rows.rewards + 1e6, behavior=rows.behavior)
    return Case(log, rows.policies, more={"compare gated": {"verdicts": "gated"}})


@recorded
def rewards_of_a_billion() -> Case:
    rows = plane(64, 200, 3, 2)
    log = podium.Log(rows.states, rows.actions, 1e9 * rows.rewards, propensities=rows.propensities)
    return Case(log, {**rows.policies_at_logged, "twin": rows.policies_at_logged["p1"]})


@recorded
def clicks_common() -> Case:
    rows = clicks(65, 500, 4, 0.3)
    return Case(rows.log(), rows.policies, gates=("p3 > p1",))


@recorded
def clicks_rare() -> Case:
    rows = clicks(66, 2000, 3, 0.02)
    asked = ("compare", "evaluate", "check", "plan", "spectrum")
    more = {"compare gated": {"verdicts": "gated"}}
    return Case(rows.log("logged"), rows.policies, {"bootstrap": 200}, asked, more)


@recorded
def two_policies_two_actions() -> Case:
    rows = wave(67, 120, 2, count=2)
    return Case(
        rows.log(), rows.policies, more={f"compare {v}": {"verdicts": v} for v in PROCEDURES}, gates=("p2 > p1",)
    )


@recorded
def twelve_policies() -> Case:
    rows = plane(68, 120, 8, 3, count=12)
    return Case(
        rows.log(), rows.policies, more={"compare joint": {"joint": True}, "compare gated": {"verdicts": "gated"}}
    )


@recorded
def a_hundred_actions() -> Case:
    rows = wave(69, 400, 100, count=6, seeks=1.0)
    return Case(rows.log(), rows.policies, more={"compare gated": {"verdicts": "gated"}})


@recorded
def a_hundred_actions_no_propensities() -> Case:
    rows = grid(70, 300, 100, 12, count=4)
    return Case(rows.log("none"), rows.policies)


@recorded
def policies_far_from_the_log() -> Case:
    rows = wave(71, 200, 5)
    rare = np.full_like(rows.behavior, 0.01)
    rare[np.arange(200), rows.behavior.argmin(axis=1)] = 0.96
    return Case(rows.log(), {**rows.policies, "rare": rare, "now": "logged"}, gates=("rare > now",))


@recorded
def check_of_one_policy() -> Case:
    rows = wave(72, 150, 3)
    asked = ("evaluate", "check", "states", "spectrum", "compare")
    return Case(rows.log("logged"), {"p1": rows.policies["p1"]}, asked=asked)


@recorded
def check_without_policies() -> Case:
    return Case(grid(73, 200, 3, 30).log("logged"), asked=("check",))
