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


def test_the_estimators_that_both_have_agree_on_data_of_obp(tmp_path: Path) -> None:
    theirs = ask_obp(tmp_path / "data.npz")
    feedback, dists, estimated = unpack(tmp_path / "data.npz")
    assert feedback["n_actions"] == 10
    log = obp.from_feedback(feedback)
    assert log.knows == "full"
    policies = obp.from_action_dists(dists, feedback)
    ours = podium.evaluate(log, policies, ["IPS", "DRE"], baseline=estimated).values
    assert len(theirs) == 5
    for name, values in theirs.items():
        assert ours[name]["IPS"] == pytest.approx(values["ipw"], abs=1e-8)
        assert ours[name]["DRE"] == pytest.approx(values["dr"], abs=1e-8)
        direct = np.einsum("na,na->n", policies[name], estimated).mean()  # the model-based direct method, DM
        assert direct == pytest.approx(values["dm"], abs=1e-8)


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
