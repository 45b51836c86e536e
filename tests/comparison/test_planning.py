"""Planning: closed forms, what enters and what does not, what to log more of, and the command."""

from __future__ import annotations

import json
import re
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import PROCEDURES, logged_only, sample
from scipy import stats

import podium
from podium.command.cli import main
from podium.comparison.planning import NORMAL, Precision
from podium.verdicts.evidence import gather
from podium.verdicts.growth import falling_rates

approx = pytest.approx
Z_80, Z_90 = 1.959964 + 0.841621, 1.959964 + 1.281552  # 2.80 and 3.24


# --- the arithmetic ------------------------------------------------------------------------------------------------


def precision(rows: int, variances: list[float], rate: float = 1.0, freedom: float = NORMAL) -> Precision:
    v = np.array(variances)
    return Precision(rows, v, np.full(len(v), np.inf), np.full(len(v), rate), np.full(len(v), freedom))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(2, 10**6), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.sampled_from([0.9, 1.0, 1.3, 2.5]))
def test_rows_follow_from_the_error(rows: int, error: float, difference: float, rate: float) -> None:
    """N* = N (2.80 se / delta)^(2/r) at 80% power, 3.24 at 90%."""
    now = precision(rows, [error**2], rate)
    for power, factor in ((0.8, Z_80), (0.9, Z_90)):
        assert now.detectable(0.95, power)[0] == approx(factor * error, rel=1e-5)
        expected = rows * (factor * error / difference) ** (2 / rate)
        assert now.rows_needed(difference, 0.95, power)[0] == approx(expected, rel=1e-4, abs=1)


def test_so_many_rows_detect_the_difference() -> None:
    """At N* rows, by the variance that is foreseen there, the difference is just detectable."""
    now = precision(400, [0.04], rate=1.4, freedom=9)
    need = float(now.rows_needed(0.1, 0.95, 0.8)[0])
    then = precision(int(need), [0.04 * (need / 400) ** -1.4], freedom=9)
    assert then.detectable(0.95, 0.8)[0] == approx(0.1, rel=1e-3)


def test_a_posterior_that_is_drawn_towards_zero_needs_larger_differences() -> None:
    """80% of the draws around a detectable difference are claimed, and as many after the rows that are asked for."""
    t, noise = 2.0, np.random.default_rng(0).standard_normal(200_000)
    now = Precision(100, np.array([0.04]), np.array([0.05]), np.ones(1), np.array([NORMAL]))
    level = 2 * stats.norm.cdf(t) - 1

    def claimed(difference: float, variance: float) -> float:
        learned = 0.05 / (0.05 + variance)
        mean = learned * (difference + np.sqrt(variance) * noise)
        return float((mean > t * np.sqrt(learned * variance)).mean())

    assert claimed(float(now.detectable(level, 0.8)[0]), 0.04) == approx(0.8, abs=0.005)
    rows = float(now.rows_needed(0.3, level, 0.8)[0])
    assert claimed(0.3, 0.04 * 100 / rows) == approx(0.8, abs=0.01)


def test_rounding_costs_no_row() -> None:
    """A number of rows that comes out whole stays whole, whatever the last bit of the variance."""
    for rows in (10, 33, 100, 1007):
        now = precision(rows, [1.0, 1 - 1e-15, 1 + 1e-15])
        difference = float(now.detectable(0.95, 0.8)[0])
        assert now.rows_needed(difference, 0.95, 0.8).tolist() == [rows] * 3


def test_rounded_factors() -> None:
    assert (round(Z_80, 2), round(Z_90, 2)) == (2.80, 3.24)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.floats(0.01, 10), st.sampled_from([0.8, 0.9]), st.sampled_from([0.9, 0.95]), st.sampled_from([8.0, NORMAL]))
def test_the_detectable_difference_is_decided_that_often(v: float, power: float, level: float, nu: float) -> None:
    """Estimates scatter normally; claims use the t distribution."""
    d = float(precision(10, [v], freedom=nu).detectable(level, power)[0])
    limit = stats.t.ppf((1 + level) / 2, nu) * sqrt(v)
    assert stats.norm.sf(limit, loc=d, scale=sqrt(v)) == approx(power, abs=1e-9)


def test_the_posterior_plans_without_its_prior_at_the_rate_of_its_halves() -> None:
    log, policies = sample(rows=120)
    result = podium.compare(log, policies)
    j, basis = result.basis.judgement, result.basis
    assert j.learned is not None
    found = Precision.of(result)
    assert found.variance == approx(j.std_error**2 / j.learned)
    assert found.freedom.tolist() == j.freedom.tolist()
    rates = falling_rates(gather(basis.sample, basis.policies), found.variance)
    assert found.rate.tolist() == rates.tolist()
    assert [p.rate for p in podium.plan(log, policies, difference=0.1).pairs] != [1.0] * len(rates)


@pytest.mark.parametrize("verdict", ["believable", "not believable"])
def test_halves_are_judged_with_the_propensities_that_judged_the_whole(
    verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a believable estimate count as known; others do not count."""
    log, policies = sample(rows=120, knows="none", effect=0.0)
    estimate = podium.estimate_propensities(log, "frequencies")
    judged = log.with_behavior(estimate.behavior) if verdict == "believable" else log
    monkeypatch.setattr(type(estimate.belief), "verdict", verdict)
    estimated = Precision.of(podium.compare(log, policies, behavior=estimate))
    assert estimated.rate == approx(Precision.of(podium.compare(judged, policies)).rate)


def test_a_log_that_says_nothing_needs_unknown_rows() -> None:
    assert np.isinf(precision(10, [np.inf]).rows_needed(0.1, 0.95, 0.8)).all()


# --- plans ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", ["paired t", "gated"])
def test_plans_follow_from_the_error(procedure: str) -> None:
    """N* from the standard error that the comparison shows."""
    log, policies = sample(rows=120)
    result = podium.compare(log, policies, "LDE", verdicts=procedure)
    made = podium.plan(log, policies, difference=0.2, estimator="LDE", verdicts=procedure)
    assert [(p.a, p.b) for p in made.pairs] == [(p.a, p.b) for p in result.pairs]
    for pair in made.pairs:
        error = result.pair(pair.a, pair.b).std_error
        assert error is not None
        assert pair.detectable_now == approx(Z_80 * error, rel=1e-5)
        assert pair.rows_80 == approx((Z_80 * sqrt(120) * error / 0.2) ** 2, abs=1.01)
        assert pair.rows_90 == approx((Z_90 * sqrt(120) * error / 0.2) ** 2, abs=1.01)
        assert pair.verdict == result.pair(pair.a, pair.b).verdict
        assert pair.rate == 1.0


def test_rows_are_those_that_the_path_keeps() -> None:
    """LDE keeps one row per (state, action): the rows to plan are such rows."""
    log, policies = sample(rows=200, distinct=30, knows="none", effect=0.0)
    made = podium.plan(log, policies, difference=0.2, verdicts="gated")
    result = podium.compare(log, policies, verdicts="gated")
    kept = len(log.latest)
    assert kept < 200
    for pair in made.pairs:
        error = result.pair(pair.a, pair.b).std_error
        if error is not None and pair.rows_80 is not None:
            assert pair.rows_80 == approx((Z_80 * sqrt(kept) * error / 0.2) ** 2, abs=1.01)


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_smaller_differences_need_more_rows(procedure: str) -> None:
    log, policies = sample(rows=90)
    plans = [podium.plan(log, policies, difference=d, verdicts=procedure) for d in (0.01, 0.05, 0.2, 1.0)]
    for pairs in zip(*(p.pairs for p in plans), strict=True):
        rows_80, rows_90 = [p.rows_80 or 0 for p in pairs], [p.rows_90 or 0 for p in pairs]
        assert rows_80 == sorted(rows_80, reverse=True)
        assert rows_80[0] > rows_80[-1] > 0
        assert all(a <= b for a, b in zip(rows_80, rows_90, strict=True))
        assert len({p.detectable_now for p in pairs}) == 1  # what can be seen now does not depend on what is wanted


def test_the_observed_difference_does_not_enter() -> None:
    """Policies a and b differ by +-g at the logged action; rewards 1 + e and g = +-c: an effect leaves the error."""
    rng = np.random.default_rng(0)
    side = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    noise = rng.normal(size=100)
    noise -= noise.mean() + side * (noise @ side) / 100  # no effect at all, and centred
    policies = {"a": 0.5 + 0.1 * side, "b": np.full(100, 0.5)}
    made = []
    for effect in (0.0, 0.4):
        rewards = noise + effect * side
        log = podium.Log(np.arange(100), np.zeros(100, dtype=int), rewards, action_space=(0, 1))
        result = podium.compare(log, policies, "LDE", verdicts="paired t")
        plan = podium.plan(log, policies, difference=0.05, estimator="LDE", verdicts="paired t")
        made.append((result.pairs[0].difference, plan.pairs[0]))
    # The row differences are 2 (noise + effect side) .1 side: the effect moves all by the same amount.
    assert made[0][0] == approx(0, abs=1e-12)
    assert made[1][0] == approx(0.08)
    assert made[1][1].detectable_now == approx(made[0][1].detectable_now)
    assert (made[1][1].rows_80, made[1][1].rows_90) == (made[0][1].rows_80, made[0][1].rows_90)


@pytest.mark.parametrize("procedure", ["posterior", "gated", "paired t"])
def test_the_size_of_the_rewards_does_not_change_the_rows_needed(procedure: str) -> None:
    log, policies = sample(rows=80, count=2)

    def planned(scale: float, shift: float = 0.0) -> Any:
        rewards = scale * log.rewards + shift
        moved = podium.Log(log.states, log.actions, rewards, behavior=log.behavior, action_space=(0, 1, 2))
        return podium.plan(moved, policies, difference=0.1 * scale, verdicts=procedure).pairs[0]

    before = planned(1.0)
    assert before.rows_80 > 80
    for scale, shift, error in ((1e-170, 0.0, 1e-9), (1e-300, 0.0, 1e-9), (1e90, 0.0, 1e-9), (1.0, 1e9, 1e-5)):
        after = planned(scale, shift)
        assert abs(after.rows_80 - before.rows_80) <= 1
        assert after.detectable_now / scale == approx(before.detectable_now, rel=error)
        assert after.rate == approx(before.rate, rel=1e-5)


def test_what_to_log_more_of() -> None:
    """Two policies that differ only in actions x and y, of which x was rarely logged."""
    rng = np.random.default_rng(3)
    rows = 120
    behavior = np.tile([0.02, 0.08, 0.45, 0.45], (rows, 1))
    actions = rng.choice(4, rows, p=behavior[0])
    log = podium.Log(
        rng.normal(size=rows), np.array(["x", "y", "u", "v"])[actions], rng.normal(size=rows), behavior=behavior,
        action_space=("x", "y", "u", "v"),
    )  # fmt: skip
    policies = {
        "one": np.tile([0.4, 0.0, 0.3, 0.3], (rows, 1)),
        "two": np.tile([0.0, 0.4, 0.3, 0.3], (rows, 1)),
    }
    made = podium.plan(log, policies, difference=0.1)
    assert made.pairs[0].verdict == "cannot tell"
    found = [m for m in made.log_more if m.kind == "action"]
    assert [m.label for m in found] == ["x", "y"]
    assert [m.ideal for m in found] == approx([0.5, 0.5])
    assert [m.now for m in found] == approx([(actions == 0).mean(), (actions == 1).mean()])
    assert [m.carries for m in found] == approx([0.8, 0.2])  # 1/.02 against 1/.08
    assert "What to log more of" in repr(made)


def test_states_that_carry_the_variance() -> None:
    """The policies differ in one state of four only."""
    rng = np.random.default_rng(3)
    states = np.array(["n", "e", "s", "w"])[np.arange(80) % 4]
    log = podium.Log(states, rng.integers(0, 2, 80), rng.normal(size=80), behavior=np.full((80, 2), 0.5))
    differ = (states == "e")[:, None]
    made = podium.plan(
        log,
        {"a": np.where(differ, [0.9, 0.1], 0.5), "b": np.where(differ, [0.1, 0.9], 0.5)},
        difference=0.1,
    )
    found = [m for m in made.log_more if m.kind == "state"]
    assert [(m.label, m.now, m.carries, m.ideal) for m in found] == [("e", 0.25, approx(1.0), None)]


def test_states_that_were_seen_once_are_never_advised() -> None:
    """The policies differ in states that came once and, less, in one that came twice."""
    rng = np.random.default_rng(3)
    states = np.array([*range(20), 20, 20, *[21] * 58])
    apart = np.where(states < 20, 0.9, np.where(states == 20, 0.8, 0.5))
    log = podium.Log(states, rng.integers(0, 2, 80), rng.normal(size=80), behavior=np.full((80, 2), 0.5))
    one = np.column_stack([apart, 1 - apart])
    made = podium.plan(log, {"a": one, "b": one[:, ::-1]}, difference=0.1)
    assert [m.label for m in made.log_more if m.kind == "state"] == [20]


def test_nothing_to_log_more_of_where_all_is_decided() -> None:
    rng = np.random.default_rng(0)
    actions = np.arange(90) % 2
    log = podium.Log(rng.normal(size=90), actions, actions + 0.01 * rng.normal(size=90), np.full(90, 0.5))
    made = podium.plan(log, {"one": "constant:1", "zero": "constant:0"}, difference=0.1)
    assert made.pairs[0].verdict == "better"
    assert made.log_more == ()


def test_policies_at_logged_actions_cannot_say_what_to_log() -> None:
    log, policies = sample(rows=60, effect=0.0)
    made = podium.plan(log, logged_only(log, policies), difference=0.1)
    assert made.log_more == ()
    assert [note.code for note in made.notes] == ["logged as before", "plan needs policies"]


@pytest.mark.parametrize("difference", [0, 0.0, -1.0, float("nan"), float("inf"), "1", None])
def test_refused_differences(difference: Any) -> None:
    log, policies = sample(rows=20)
    message = re.escape(
        f"difference must be a positive number; it is {difference!r}\n\n"
        "Hint: name the smallest difference in reward that would matter to you."
    )
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        podium.plan(log, policies, difference=difference)


# --- how the answer is given ---------------------------------------------------------------------------------------


def test_json_follows_the_contract() -> None:
    log, policies = sample(rows=60)
    content = json.loads(json.dumps(podium.plan(log, policies, difference=0.1).to_dict(), allow_nan=False))
    assert set(content) >= {"podium", "log", "settings", "difference", "pairs", "log_more"}
    assert content["difference"] == 0.1
    assert all(set(p) >= {"a", "b", "detectable_now", "rows_80", "rows_90", "rate"} for p in content["pairs"])
    assert all(isinstance(p["rows_80"], int) for p in content["pairs"])
    assert all(set(m) == {"kind", "label", "now", "ideal", "carries"} for m in content["log_more"])


def test_frame() -> None:
    log, policies = sample(rows=60)
    made = podium.plan(log, policies, difference=0.1)
    frame = made.to_frame()
    assert list(frame.columns) == ["a", "b", "verdict", "detectable_now", "rows_80", "rows_90", "rate"]
    assert frame["rows_80"].tolist() == [p.rows_80 for p in made.pairs]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from podium.worlds.simulator import Programme

    monkeypatch.chdir(tmp_path)
    Programme().draw(120, 3).write_csv(tmp_path / "log.csv")
    assert main(["plan", "log.csv", "--difference", "0.05"]) == 0
    text = capsys.readouterr().out
    assert "To detect a difference of 0.05 in reward" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["plan", "log.csv", "--difference", "0.05", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    made = podium.plan(podium.read_log("log.csv"), difference=0.05)
    assert answer == made.to_dict()
    assert repr(made) + "\n" == text
    for difference in ("0", "-1", "nan", "x"):
        assert main(["plan", "log.csv", f"--difference={difference}"]) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert "Hint: " in error
    assert main(["plan", "log.csv"]) == 2
    assert "--difference" in capsys.readouterr().err
