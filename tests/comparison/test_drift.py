"""Has the world changed? Alarms that ring where it did, and are silent where it did not; rows from some time on."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.comparison.drift import drift_of
from podium.experiments.calibration.drift import judge

POLICIES = {"call": "constant:call", "sms": "constant:sms"}


def visits(n: int = 600, change: str = "", seed: int = 0, **more: Any) -> podium.Log:
    rng = np.random.default_rng(seed)
    late = np.arange(n) >= n / 2
    age = rng.normal(50, 10, n).round() + (15 * late if change == "states" else 0)
    action = rng.choice(["call", "sms"], n)
    effect = np.where(late & (change == "pairs"), -0.6, 0.6)
    reward = 0.02 * age + np.where(action == "call", effect, 0.0) + rng.normal(size=n)
    reward += 1.0 * late if change == "rewards" else 0.0
    more = {"times": np.arange(n), **more}
    return podium.Log({"age": age}, action, reward, propensities=np.full(n, 0.5), **more)


def codes(result: podium.Comparison) -> list[str]:
    return [w.code for w in result.warnings if w.code.startswith("drift")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", []),
        ("states", ["drift, states alone"]),
        ("rewards", ["drift, rewards"]),
        ("pairs", ["drift, pairs"]),
    ],
)
def test_what_changed_is_named(change: str, expected: list[str]) -> None:
    result = podium.compare(visits(change=change), POLICIES)
    found = codes(result)
    assert found[-1:] == expected[-1:]
    assert len(found) <= 2
    panel = podium.diagnose(visits(change=change), POLICIES)
    assert [a.name for a in panel.alarms if a.name == "drift"] == ["drift"] * len(found)


def test_a_logger_that_changes() -> None:
    """With the right propensities it does no harm; with old ones, or without any, it is told."""
    rng = np.random.default_rng(0)
    n = 800
    chance = np.where(np.arange(n) >= 400, 0.7, 0.3)
    action = np.where(rng.random(n) < chance, "call", "sms")
    told = {"right": np.column_stack([chance, 1 - chance]), "old": np.full((n, 2), 0.5), "none": None}
    found = {}
    for name, behavior in told.items():
        log = podium.Log(
            {"age": rng.integers(20, 80, n)}, action, rng.normal(size=n), behavior=behavior,
            action_space=["call", "sms"], times=np.arange(n),
        )  # fmt: skip
        found[name] = codes(podium.compare(log, POLICIES))
    assert found == {"right": [], "old": ["drift, propensities"], "none": ["drift, actions"]}


def test_the_alarm_says_what_to_do() -> None:
    panel = podium.diagnose(visits(change="pairs"), POLICIES)
    alarm = next(a for a in panel.alarms if a.name == "drift" and "difference" in a.meaning)
    assert alarm.value < 0.05
    assert alarm.meaning.startswith("the difference of policies changed over time (call − sms: ")
    assert alarm.advice == "Compare recent rows alone with --since TIME."


def test_without_times_or_with_few_rows_nothing_is_said() -> None:
    log = visits(change="pairs")
    bare = podium.Log(log.states, log.actions, log.rewards, propensities=log.propensities)
    assert podium.compare(bare, POLICIES).drift is None
    assert podium.compare(bare, POLICIES).to_dict()["drift"] is None
    assert podium.compare(visits(70, change="pairs"), POLICIES).drift is None
    assert podium.compare(log.take(np.arange(600))._copy(times=np.zeros(600)), POLICIES).drift is None


def test_the_order_of_rows_does_not_matter() -> None:
    log = visits(change="rewards")
    some = np.random.default_rng(1).permutation(600)
    a, b = (podium.compare(x, POLICIES).drift for x in (log, log.take(some)))
    assert a is not None
    assert b is not None
    assert [c.p_value for c in a.changes] == pytest.approx([c.p_value for c in b.changes], rel=1e-6)


def test_units_are_clustered() -> None:
    """Rows that are copies of one another are no further evidence."""
    log = visits(100, change="rewards", seed=2)
    once = podium.compare(log, POLICIES).drift
    rows = np.repeat(np.arange(100), 4)
    copies = log.take(rows)._copy(units=rows)
    again = podium.compare(copies, POLICIES).drift
    assert once is not None
    assert again is not None
    p = {c.name: c.p_value for c in once.changes}
    for change in again.changes:
        assert change.p_value == pytest.approx(p[change.name], rel=0.35)


def test_json_and_report(tmp_path: Path) -> None:
    result = podium.compare(visits(change="pairs"), POLICIES)
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))["drift"]
    assert content.keys() == {"rows", "changes", "facts", "blocks"}
    assert [b["rows"] for b in content["blocks"]] == [100] * 6
    assert content["blocks"][0]["pairs"][0].keys() == {"a", "b", "difference", "std_error"}
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Has the world changed?" in page
    assert "Mean reward over time, with 95% intervals." in page


def test_since_keeps_later_rows() -> None:
    log = visits()
    result = podium.compare(log, POLICIES, since=400)
    assert len(result.log) == 200
    assert "Used only the 200 rows of 600 from 400 on (column 'time')" in repr(result)
    again = podium.compare(log.take(np.arange(400, 600)), POLICIES)
    assert result.to_dict()["pairs"] == again.to_dict()["pairs"]


def test_since_reads_dates() -> None:
    days = [datetime(2026, 1, 1) + timedelta(days=int(k)) for k in range(600)]
    texts = [day.date().isoformat() for day in days]
    for times, since in ((texts, "2027-01-01"), (days, "2027-01-01"), (np.array(days, dtype="M8[s]"), "2027-01-01")):
        assert len(podium.compare(visits(times=times), POLICIES, since=since).log) == 235
    assert len(podium.compare(visits(times=days), POLICIES, since=datetime(2027, 1, 1)).log) == 235


@pytest.mark.parametrize(
    ("since", "more", "message"),
    [
        (
            600, {},
            "no row is from 600 or later; the latest of column 'time' is '599'\n\nHint: name an earlier time.",
        ),
        (
            "yesterday", {},
            "'yesterday' cannot be compared with column 'time', which holds 0\n\n"
            "Hint: write the time as the column does.",
        ),
        (
            3, {"times": None},
            "the log has no time column, so no rows can be left out by time\n\n"
            "Hint: name it with --time COL (in Python, time='COL', or times=...).",
        ),
        (True, {}, "since must be a time; it is True\n\nHint: write since='2026-03-01', or a number."),
    ],
)  # fmt: skip
def test_since_is_refused_where_it_cannot_be_used(since: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.PodiumError) as error:
        podium.compare(visits(**more), POLICIES, since=since)
    assert str(error.value) == message


def test_since_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    visits().to_frame().to_csv(tmp_path / "log.csv", index=False)
    policies = ["--policy", "call=constant:call", "--policy", "sms=constant:sms"]
    for command in ("compare", "check"):
        assert main([command, str(tmp_path / "log.csv"), "--since", "300", "--json", *policies]) == 0
        assert json.loads(capsys.readouterr().out)["log"]["rows"] == 300
    assert main(["suggest", str(tmp_path / "log.csv"), "--since", "300", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["rows"] == 300


def test_since_needs_the_rows_in_memory(tmp_path: Path) -> None:
    visits(150).to_frame().to_csv(tmp_path / "log.csv", index=False)
    log = podium.scan_log(tmp_path / "log.csv", engine="duckdb")
    assert len(podium.compare(log, POLICIES, since=100).log) == 50
    with pytest.raises(podium.PodiumError) as error:
        podium.compare(log, POLICIES, since=100, sample_rows=120)
    assert str(error.value) == (
        "--since needs the rows in memory, and the log has 150 on engine duckdb\n\n"
        "Hint: use --engine memory, or give a table that holds only the rows from that time on."
    )


def test_the_bench() -> None:
    assert judge("steady, coins", 200, 1, 1).tolist() == [0, 0, 0, 0, 0]
    assert judge("the difference flips", 1000, 0, 1)[-1] == 1


def test_constant_rewards_and_states() -> None:
    log = podium.Log(np.zeros(200), ["a", "b"] * 100, np.ones(200), times=np.arange(200))
    found = podium.compare(log, {"a": "constant:a", "b": "constant:b"}).basis
    drift = drift_of(found.sample, found.policies)
    assert drift is not None
    assert not drift.facts
