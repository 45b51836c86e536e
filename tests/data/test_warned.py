"""Warnings of a comparison reach Python scripts, once, at their own line."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import podium


def doubtful() -> tuple[podium.Log, dict[str, str]]:
    rng = np.random.default_rng(0)
    actions = rng.choice(["mail", "Mail ", "call"], 90)
    return podium.Log(rng.integers(0, 5, 90), actions, rng.normal(size=90)), {
        "x": "constant:mail",
        "y": "constant:call",
    }


def test_each_warning_is_issued_at_the_line_of_the_caller() -> None:
    log, policies = doubtful()
    with pytest.warns(podium.PodiumWarning) as caught:
        result = podium.compare(log, policies)
    assert result.warnings
    assert [str(w.message) for w in caught] == [str(w) for w in result.warnings]
    assert {w.filename for w in caught} == {__file__}
    assert issubclass(podium.PodiumWarning, UserWarning)


def test_a_log_without_doubts_warns_of_nothing() -> None:
    log = podium.Log([0, 0, 1, 1] * 5, ["a", "b"] * 10, [1.0, 0.1, 0.9, 0.2] * 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert podium.compare(log, {"a": "constant:a", "b": "constant:b"}).warnings == ()


def test_warnings_can_be_made_errors_and_silenced() -> None:
    log, policies = doubtful()
    with warnings.catch_warnings():
        warnings.simplefilter("error", podium.PodiumWarning)
        with pytest.raises(podium.PodiumWarning, match="differ only by case or spaces"):
            podium.compare(log, policies)
        warnings.simplefilter("ignore", podium.PodiumWarning)
        assert podium.compare(log, policies).warnings


def test_the_command_says_a_warning_once(tmp_path: Path) -> None:
    log, _ = doubtful()
    path = tmp_path / "log.csv"
    rows = zip(log.states, log.actions, log.rewards, strict=True)
    path.write_text("state,action,reward\n" + "".join(f"{s},{a},{r}\n" for s, a, r in rows), encoding="utf-8")
    policies = ["--policy", "x=constant:mail", "--policy", "y=constant:call"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "podium", "compare", str(path), *policies], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Warning: the logged actions") == 1
