"""Names that collide and labels that JSON does not know: nothing is dropped, and nothing is mistaken for another."""

from __future__ import annotations

import enum
import json
import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pytest

import podium
from podium import DRE, IPS, LDE, Log, PodiumError
from podium.estimates.estimators import find_estimators

Color = enum.Enum("Color", ["RED", "BLUE"])
N = 12
ACTIONS, REWARDS = ["a", "b"] * (N // 2), [1.0, 0.0, 0.5, 0.2] * (N // 4)
POLICIES = {"a": "constant:a", "b": "constant:b"}
LABELS: dict[str, tuple[Any, Any, Any]] = {
    "dates": (date(2024, 5, 1), date(2024, 5, 2), "2024-05-01"),
    "datetimes": (datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC), "2024-05-01T00:00:00+00:00"),
    "identifiers": (uuid.UUID(int=1), uuid.UUID(int=2), str(uuid.UUID(int=1))),
    "times": (time(1), time(2), "01:00:00"),
    "members": (Color.RED, Color.BLUE, "Color.RED"),
    "bytes": (b"x", b"y", "x"),
    "sets": (frozenset("ab"), frozenset("cd"), ["a", "b"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_are_json(kind: str) -> None:
    one, other, expected = LABELS[kind]
    labels = np.empty(N, dtype=object)
    labels[:] = [one, one, other, other] * (N // 4)
    log = Log(labels, ACTIONS, REWARDS)
    states = json.loads(json.dumps(podium.compare_states(log, POLICIES).to_dict()))["states"]
    assert expected in [s["state"] for s in states]
    chosen = {"one": podium.Policy(one, kind="constant"), "other": podium.Policy(other, kind="constant")}
    labels[1::4] = [other] * (N // 4)
    noisy = Log([0] * N, labels, np.random.default_rng(0).normal(size=N))
    plan = json.loads(json.dumps(podium.plan(noisy, chosen, difference=0.01).to_dict()))
    assert expected in [m["label"] for m in plan["log_more"]]
    told = json.loads(json.dumps(podium.diagnose(log, POLICIES).to_dict()))
    assert expected in [s["label"] for pair in told["pairs"] for s in pair["states"]]
    json.dumps(podium.compare(log, POLICIES).to_dict())


def test_colliding_columns_are_named_after_their_kind() -> None:
    import pandas as pd

    log = Log([0, 1] * (N // 2), ACTIONS, REWARDS)
    found = podium.compare_states(log, {"rows": "constant:a", "state": "constant:b"})
    frame = found.to_frame()
    assert list(frame) == ["state", "rows", "policy:rows", "policy:state"]
    assert frame["state"].tolist() == [0, 1]
    np.testing.assert_array_equal(frame["rows"], found.rows)
    np.testing.assert_array_equal(frame["policy:state"], found.values[:, 1])
    table = pd.DataFrame({"x": [0, 1] * (N // 2), "rows": [3] * N, "policy:x": [4] * N})
    frame = podium.compare_states(Log(table, ACTIONS, REWARDS), {"x": "constant:a", "y": "constant:b"}).to_frame()
    assert list(frame) == ["x", "state:rows", "policy:x", "rows", "policy:policy:x", "y"]
    kept = Log(pd.DataFrame({"action": np.arange(N), "z": [0] * N}), ACTIONS, REWARDS).to_frame()
    assert list(kept) == ["state:action", "z", "action", "reward"]
    assert kept["state:action"].tolist() == list(range(N))
    assert kept["action"].tolist() == ACTIONS
    own = podium.compare(log, POLICIES, estimator=replace(LDE, name="rank")).to_frame()
    assert own["rank"].tolist() == [1, 2]
    assert own["estimator:rank"].tolist() == own["LDE"].tolist()
    assert list(podium.evaluate(log, POLICIES, replace(LDE, name="policy")).to_frame()) == [
        "policy",
        "estimator:policy",
    ]


def test_every_estimator_has_a_name_of_its_own() -> None:
    log = Log([0, 1] * (N // 2), ACTIONS, REWARDS, propensities=[0.5] * N)
    with pytest.raises(PodiumError, match="two estimators are named 'X'"):
        podium.evaluate(log, POLICIES, [replace(LDE, name="X"), replace(IPS, name="X")])
    for name in ("LDE", "lde", "cIPS:10", "TIS"):
        with pytest.raises(PodiumError, match=f"the estimator '{name}' is not the method of that name"):
            podium.evaluate(log, POLICIES, [replace(IPS, name=name)])
        with pytest.raises(PodiumError, match="is not the method of that name"):
            podium.compare(log, POLICIES, estimator=replace(IPS, name=name))
    for name in ("posterior", "Gated", "doubly robust"):
        with pytest.raises(PodiumError, match="is not the method of that name"):
            podium.compare(log, POLICIES, estimator=replace(IPS, name=name))
    assert find_estimators([IPS, "IPS", replace(DRE, name="mine")]) == [IPS, replace(DRE, name="mine")]


def test_spaces_and_arrows_in_names_tell_policies_apart() -> None:
    log = Log([0, 1] * (N // 2), ACTIONS, REWARDS)
    found = podium.compare(log, {" s": "constant:a", "s": "constant:b", "x": "uniform"})
    assert found.gate(" s > x").condition.better == " s"
    assert found.gate("s > x").condition.better == "s"
    assert found.gate("x >  s - 0.1").condition.other == " s"
    assert found.gate("  x  >  s+0.1 ").condition.other == " s"
    with pytest.raises(PodiumError, match="is not of the form A > B"):
        found.gate("   s > x")
    names = {"a": "constant:a", "b > c": "constant:b", "a > b": "uniform", "c": "constant:a"}
    told = podium.compare_states(log, names).to_dict()
    assert len(told["shares"]) == len(told["states"][0]["signs"]) == 6
    assert {"'a' > 'b > c'", "'a > b' > 'c'", "a > c"} <= set(told["shares"])


def test_a_plan_for_a_tiny_difference_is_unknown_without_a_warning() -> None:
    log = Log([0, 1] * (N // 2), ACTIONS, REWARDS)
    (pair,) = podium.plan(log, POLICIES, difference=1e-300).pairs
    assert (pair.rows_80, pair.rows_90) == (None, None)
    json.dumps(podium.plan(log, POLICIES, difference=1e-300).to_dict(), allow_nan=False)
