"""Open Bandit Pipeline itself, in its own environment: the same logs and policies give the same values."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import sample

import podium
from podium.adapters import obp

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".bench" / "obp" / "bin" / "python"


def ask_obp(*files: Path) -> dict[str, dict[str, float]]:
    if not PYTHON.exists():
        pytest.fail("Open Bandit Pipeline is not installed; run: make .bench/obp/.ready", pytrace=False)
    script = ROOT / "bench" / "obp_values.py"
    done = subprocess.run([PYTHON, script, *files], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def unpack(path: Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    data = np.load(path)
    feedback: dict[str, Any] = {k.partition("/")[2]: data[k] for k in data if k.startswith("feedback/")}
    feedback["n_actions"] = int(feedback["n_actions"])
    return feedback, {k.partition("/")[2]: data[k] for k in data if k.startswith("dist/")}, data["estimated"][:, :, 0]


OURS = {"ipw": "IPS", "snipw": "SNIPS", "dm": "DirectModel", "dr": "DRE", "sndr": "SNDR"}
RULES = {"ipw": "cIPS", "dr": "cDR", "switch-dr": "SwitchDR", "dr-os": "DRos", "sg-ipw": "sgIPS", "sg-dr": "sgDR"}


def our_name(theirs: str) -> str:
    """podium's name of one of OBP's estimators: "switch-dr:10" is SwitchDR:10."""
    head, colon, parameter = theirs.partition(":")
    return f"{RULES[head]}:{parameter}" if colon else OURS[head]


def test_the_estimators_that_both_have_agree_on_data_of_obp(tmp_path: Path) -> None:
    theirs = ask_obp(tmp_path / "data.npz")
    feedback, dists, estimated = unpack(tmp_path / "data.npz")
    assert feedback["n_actions"] == 10
    log = obp.from_feedback(feedback)
    assert log.knows == "full"
    policies = obp.from_action_dists(dists, feedback)
    names = {name: our_name(name) for name in theirs["chosen"] if name != "b-ipw"}
    assert len(names) == 19
    ours = podium.evaluate(log, policies, list(names.values()), baseline=estimated).values
    assert len(theirs) == 5
    for policy, values in theirs.items():
        for name, own in names.items():
            assert ours[policy][own] == pytest.approx(values[name], abs=1e-8), (policy, name)
        # Weights that a classifier estimated are ratios that a policy brings.
        weights = np.random.default_rng(7).lognormal(size=len(log))
        given = podium.Policy(np.ones(len(log)), "probabilities", proxy=True, ratios=weights)
        balanced = podium.evaluate(log, {"given": given}, "SNIPS").values["given"]["SNIPS"]
        assert balanced == pytest.approx(values["b-ipw"], abs=1e-8)


def test_several_loggers_agree(tmp_path: Path) -> None:
    theirs = ask_obp(tmp_path / "data.npz", Path("loggers"))
    feedback, dists, estimated = unpack(tmp_path / "data.npz")
    scores = np.exp(np.load(tmp_path / "data.npz")["betas"][:, None, None] * feedback["expected_reward"])
    loggers = dict(enumerate(scores / scores.sum(axis=2, keepdims=True)))
    plain = podium.Log(feedback["context"], feedback["action"], feedback["reward"], action_space=tuple(range(10)))
    policies = {name: dist[:, :, 0] for name, dist in dists.items()}
    names = {"ipw": "IPS", "dr": "DRE", "ipw:10": "cIPS:10"}
    for balanced in (True, False):
        mixture = podium.Loggers(loggers, by=feedback["stratum_idx"], balanced=balanced)
        log = plain.with_behavior(mixture)
        expected = feedback["pscore_avg" if balanced else "pscore"]
        assert log.propensities == pytest.approx(expected, abs=1e-12)
        ours = podium.evaluate(log, policies, list(names.values()), baseline=estimated).values
        for policy, values in theirs.items():
            for name, own in names.items():
                if balanced or f"naive {name}" in values:
                    value = values[name if balanced else f"naive {name}"]
                    assert ours[policy][own] == pytest.approx(value, abs=1e-8), (policy, name, balanced)


def test_continuous_actions_agree(tmp_path: Path) -> None:
    theirs = ask_obp(tmp_path / "data.npz", Path("continuous"))
    data = np.load(tmp_path / "data.npz")
    log = podium.continuous.ContinuousLog(
        data["feedback/context"], data["feedback/action"], data["feedback/reward"], densities=data["feedback/pscore"]
    )
    policies = {k.partition("/")[2]: data[k] for k in data if k.startswith("dist/")}
    names = {"ipw": "IPS", "snipw": "SNIPS", "dr": "DRE"}
    assert len(theirs["policy_0"]) == 3 * 4 * 2
    for policy, values in theirs.items():
        for name, value in values.items():
            method, kernel, bandwidth = name.split()
            own = log.evaluate(
                policies, names[method], data["critic"], kernel=kernel, bandwidth=float(bandwidth)
            ).values[policy][names[method]]
            assert own == pytest.approx(value, abs=1e-8), (policy, name)


def test_a_log_of_podium_goes_to_obp_and_gives_the_same_values(tmp_path: Path) -> None:
    log, policies = sample(rows=200, actions=10, count=3, text=True, distinct=12)
    feedback, dists = obp.to_feedback(log), obp.to_action_dists(log, policies)
    packed = {f"feedback/{k}": v for k, v in feedback.items() if v is not None}
    np.savez(tmp_path / "in.npz", **packed, **{f"dist/{k}": v for k, v in dists.items()})
    theirs = ask_obp(tmp_path / "out.npz", tmp_path / "in.npz")
    ours = podium.evaluate(log, policies, ["IPS", "DRE"]).values
    for name, values in theirs.items():
        assert ours[name]["IPS"] == pytest.approx(values["ipw"], abs=1e-8)
        assert ours[name]["DRE"] == pytest.approx(values["dr"], abs=1e-8)
