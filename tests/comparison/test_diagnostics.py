"""The trust panel: every figure against plain loops, what drives a pair against removal, and the alarms."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import logged_only, sample

import podium
from podium.command.cli import main
from podium.comparison.diagnostics import Alarm
from podium.comparison.influence import drivers, row_influence, rows_to_flip
from podium.data.facts import Fact
from podium.policies import resolve_policies
from podium.verdicts.gated import Gates

approx = pytest.approx
PAPER: dict[str, Any] = {"estimator": "LDE", "verdicts": "paired t"}


def alarms(found: podium.Diagnosis, name: str) -> list[Alarm]:
    return [a for a in found.alarms if a.name == name]


# --- coverage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("knows", ["full", "logged", "none"])
@pytest.mark.parametrize("partial", [False, True])
def test_coverage_is_a_loop(knows: str, partial: bool) -> None:
    log, policies = sample(rows=70, distinct=15, knows=knows)
    found = podium.diagnose(log, logged_only(log, policies) if partial else policies)
    rewards, centre = log.rewards.tolist(), float(log.rewards.mean())
    for cover, (name, matrix) in zip(found.coverage, policies.items(), strict=True):
        assert cover.name == name
        weights, mass = [], []
        for n in range(70):
            p = 1.0 if log.propensities is None else float(log.propensities[n])
            weights.append(float(matrix[n, log.action_codes[n]]) / p)
            logged = {int(log.action_codes[m]) for m in range(70) if log.state_codes[m] == log.state_codes[n]}
            mass.append(sum(float(matrix[n, a]) for a in logged))
        terms = [abs((r - centre) * w) for r, w in zip(rewards, weights, strict=True)]
        assert cover.mass_on_logged == approx(sum(mass) / 70)
        assert cover.ess == approx(sum(weights) ** 2 / sum(w * w for w in weights))
        assert cover.max_weight == approx(max(weights) / (sum(weights) / 70))
        assert cover.top_row_share == approx(max(terms) / sum(terms))


def test_a_policy_that_never_plays_a_logged_action() -> None:
    log, _ = sample(rows=40, actions=2)
    found = podium.diagnose(log, {"never": "constant:9", "zero": "constant:0"}, actions=(0, 1, 9), **PAPER)
    cover = found.coverage[0]
    assert (cover.mass_on_logged, cover.ess, cover.max_weight, cover.top_row_share) == (0, 0, 0, 0)
    assert alarms(found, "mass_on_logged")[0].meaning == "never plays logged actions with probability 0% only."
    assert {a.meaning.split(" ")[0] for a in alarms(found, "mass_on_logged")} == {"never"}


def test_figures_of_the_log() -> None:
    log = podium.Log(
        [0, 0, 0, 1, 2], ["a", "a", "b", "a", "b"], [1.0, 2.0, 3.0, -4.0, 0.5], action_space=("a", "b", "c")
    )
    content = podium.diagnose(log, {"a": "constant:a", "b": "constant:b"}).to_dict()["log"]
    expected = {"rows": 5, "distinct": 4, "states": 3, "actions": 3, "duplicates": 1, "unseen_actions": 1}
    assert content.items() >= expected.items()
    assert content["single_row_states"] == approx(2 / 3)
    assert (content["reward_mean"], content["reward_low"], content["reward_high"]) == (0.5, -4.0, 3.0)


# --- what drives a pair --------------------------------------------------------------------------------------------


def without(log: podium.Log, policies: dict[str, np.ndarray], rows: list[int], baseline: Any) -> float:
    """The difference p0 - p1 when rows are left out."""
    keep = np.setdiff1d(np.arange(len(log)), rows)
    fewer = podium.Log(log.states[keep], log.actions[keep], log.rewards[keep], action_space=log.action_space)
    cut = {name: m[keep] for name, m in policies.items()}
    return podium.compare(fewer, cut, baseline=baseline, **PAPER).pair("p0", "p1").difference


def test_drivers_are_what_removal_changes() -> None:
    """With a fixed baseline, leaving out a row changes the difference by exactly its effect."""
    log, policies = sample(rows=40, count=2, knows="none", effect=0.3)
    found = podium.diagnose(log, policies, baseline=0.3, **PAPER)
    pair = podium.compare(log, policies, baseline=0.3, **PAPER).pair("p0", "p1")
    sign = 1.0 if found.pairs[0].a == "p0" else -1.0
    effects = np.array([pair.difference - without(log, policies, [n], 0.3) for n in range(40)])
    order = np.argsort(-np.abs(effects))[:5]
    assert [d.label for d in found.pairs[0].rows] == (order + 1).tolist()
    assert [sign * d.effect for d in found.pairs[0].rows] == approx(effects[order].tolist())
    for d, n in zip(found.pairs[0].rows, order, strict=True):
        assert d.flips == (without(log, policies, [int(n)], 0.3) * pair.difference < 0)


def test_drivers_of_the_mean_baseline_come_near() -> None:
    """The mean moves a little when a row is left out; the effects stay nearly the same."""
    log, policies = sample(rows=60, count=2, knows="none", effect=0.3)
    basis = podium.compare(log, policies, **PAPER).basis
    influence = row_influence(basis.terms, 60, basis.units)
    ours = influence[:, 0] - influence[:, 1]
    whole = podium.compare(log, policies, **PAPER).pair("p0", "p1").difference
    exact = np.array([whole - without(log, policies, [n], "mean") for n in range(60)])
    assert np.corrcoef(ours, exact)[0, 1] > 0.95


def test_states_that_drive_a_pair() -> None:
    """To first order a state's effect is the sum of its rows' effects."""
    log, policies = sample(rows=90, distinct=30, actions=6, count=2, knows="none")
    found = podium.diagnose(log, policies, baseline=0.3, duplicates="all", **PAPER).pairs[0]
    sign = 1.0 if found.a == "p0" else -1.0

    def difference(keep: np.ndarray) -> float:
        fewer = podium.Log(log.states[keep], log.actions[keep], log.rewards[keep], action_space=log.action_space)
        cut = {name: m[keep] for name, m in policies.items()}
        return podium.compare(fewer, cut, baseline=0.3, duplicates="all", **PAPER).pair("p0", "p1").difference

    whole = difference(np.arange(90))
    assert len(found.states) == 5
    for d in found.states:
        exact = whole - difference(np.flatnonzero(log.states != d.label))
        assert sign * d.effect == approx(exact, rel=0.12)


def test_rows_to_flip_against_removal() -> None:
    """Take out the most helpful rows one by one until the sign turns."""
    for seed in range(2):
        log, policies = sample(rows=40, count=2, knows="none", effect=0.6, seed=seed)
        found = podium.diagnose(log, policies, baseline=0.3, **PAPER).pairs[0]
        whole = without(log, policies, [], 0.3)
        effects = np.array([whole - without(log, policies, [n], 0.3) for n in range(40)]) * np.sign(whole)
        order = np.argsort(-effects).tolist()
        exact = next(m for m in range(1, 40) if without(log, policies, order[:m], 0.3) * whole < 0)
        assert found.rows_to_flip is not None
        assert found.rows_to_flip == exact


def test_rows_to_flip() -> None:
    assert rows_to_flip(1.0, np.array([0.75, 0.5, -0.25])) == 2
    assert rows_to_flip(-1.0, np.array([-2.0, 0.5])) == 1
    assert rows_to_flip(1.0, np.array([0.2, 0.3])) is None
    assert rows_to_flip(0.0, np.array([1.0])) is None
    log = podium.Log(["x", "x", "y"], ["a", "b", "a"], [1.0, 2.0, 3.0])
    found = drivers(log, 1.0, np.array([1.5, -0.5, 0.0]))
    assert [(d.label, d.effect, d.flips) for d in found.rows] == [(1, 1.5, True), (2, -0.5, False)]
    assert [(d.label, d.effect, d.flips) for d in found.states] == [("x", 1.0, False)]


def test_rounding_decides_neither_which_rows_are_named_nor_how_many() -> None:
    """Rows with equal effects, rows without any, and a sum that reaches the difference exactly."""
    log = podium.Log(np.arange(40), ["a", "b"] * 20, np.arange(40.0))
    effects = np.concatenate([np.full(20, 0.1), np.zeros(10), np.full(10, -0.1)])
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = effects * (1 + 1e-13 * rng.standard_normal(40)) + 1e-16 * rng.standard_normal(40)
        found = drivers(log, 1.0, noisy)
        assert [d.label for d in found.rows] == [1, 2, 3, 4, 5]
        # Without m of the 30 rows that count it falls by 29 m / 10 / (30 - m): by exactly 1 for m = 7.69...
        assert found.rows_to_flip == 8
        whole = drivers(log, 0.1, noisy)
        assert not any(d.flips for d in whole.rows), "it becomes 0, and 0 is not the opposite"
    assert rows_to_flip(1.0, np.array([0.5, 0.5, -0.25, 1e-300])) == 2


def test_rankings_by_other_methods_share_ties() -> None:
    """Actions a and b earn the same in every state; only rounding tells the methods' values apart."""
    rng = np.random.default_rng(3)
    shuffled = rng.permutation(60)
    states, rewards = (np.repeat(rng.normal(size=30), 2)[shuffled] for _ in range(2))
    log = podium.Log(states, np.array(["a", "b"] * 30)[shuffled], rewards, propensities=np.full(60, 0.5))
    for order in (["a", "b"], ["b", "a"]):
        found = podium.diagnose(log, {name: f"constant:{name}" for name in order})
        kept = [s for s in found.sensitivity if s.baseline in ("-", "mean")]
        assert {s.ranking for s in kept} == {tuple(order)}
        assert {s.agreement for s in kept} == {0.5}


@pytest.mark.parametrize("procedure", ["posterior", "gated", "paired t"])
def test_a_single_huge_row_is_found(procedure: str) -> None:
    rng = np.random.default_rng(0)
    actions = np.arange(60) % 3
    rewards = rng.normal(scale=0.1, size=60)
    rewards[actions == 0] += 1.0
    rewards[16] = 40.0
    log = podium.Log(rng.normal(size=60), actions, rewards, behavior=np.full((60, 3), 1 / 3))
    found = podium.diagnose(log, {"one": "constant:1", "zero": "constant:0"}, verdicts=procedure)
    assert found.pairs[0].rows[0].label == 17
    assert found.pairs[0].rows_to_flip == 1
    assert found.pairs[0].rows[0].flips
    assert "17!" in repr(found)
    top = alarms(found, "top_row_share")
    assert [a.meaning.split(" of what is known of ")[1] for a in top] == ["one."]
    assert top[0].value > 0.5
    assert found.pairs[0].verdict == "cannot tell"


def test_claims_that_hang_on_few_rows_are_an_alarm() -> None:
    """At a level of one half three rows are enough for a claim."""
    rewards = np.full(40, 0.5)
    rewards[[3, 6, 8]] = 9.0
    policies = {"a": np.where(np.isin(np.arange(40), [3, 6, 8]), 0.9, 0.51), "b": np.full(40, 0.5)}
    log = podium.Log(np.arange(40), np.zeros(40, dtype=int), rewards, action_space=(0, 1))
    found = podium.diagnose(log, policies, level=0.5, **PAPER)
    assert found.pairs[0].verdict == "better"
    alarm = alarms(found, "rows_to_flip")[0]
    assert alarm.value == found.pairs[0].rows_to_flip
    assert alarm.value <= 3
    assert alarm.meaning.endswith(" a would not come out ahead of b.")
    assert {int(x) for x in alarm.advice.removeprefix("Check rows ").rstrip(".").split(", ")} == {4, 7, 9}
    assert not alarms(podium.diagnose(log, policies, **PAPER), "rows_to_flip")  # no claim, no alarm


# --- errors, disagreement, sensitivity -----------------------------------------------------------------------------


def test_errors_and_disagreement_are_those_of_the_gates() -> None:
    log, policies = sample(rows=90, count=4)
    found = podium.diagnose(log, policies)
    _, resolved = resolve_policies(log, policies)
    gates = Gates(log, resolved)
    place = {pair: n for n, pair in enumerate(combinations(policies, 2))}
    for pair in found.pairs:
        turned = (pair.a, pair.b) not in place
        n = place[(pair.b, pair.a) if turned else (pair.a, pair.b)]
        assert pair.empirical_se == approx(gates.lde.empirical[n])
        assert pair.design_se == approx(gates.lde.design[n])
        assert pair.z_b == approx((-1 if turned else 1) * gates.z_b[n])
    assert found.t_p == gates.t_p
    none, more = sample(rows=90, knows="none")
    assert {p.z_b for p in podium.diagnose(none, more).pairs} == {None}


@pytest.mark.parametrize("lower", [False, True])
def test_sensitivity(lower: bool) -> None:
    """The ranking by every method and baseline, and the share of pairs ordered as in the comparison."""
    log, policies = sample(rows=90, count=4, effect=0.1)
    result = podium.compare(log, policies, lower_is_better=lower)
    found = podium.diagnose(log, policies, lower_is_better=lower)
    seen = {(s.estimator, s.baseline): s for s in found.sensitivity}
    assert set(seen) == {
        *((m, b) for m in ("LDE", "DRE") for b in ("mean", "state", "linear")),
        ("IPS", "-"),
        ("DiM", "-"),
    }
    for (method, baseline), entry in seen.items():
        values = podium.evaluate(log, policies, [method], "mean" if baseline == "-" else baseline).values
        score = {name: (-1 if lower else 1) * (values[name][method] or 0.0) for name in policies}
        assert list(entry.ranking) == sorted(policies, key=lambda name: -score[name])
        agree = [score[a] > score[b] for a, b in combinations(result.ranking, 2)]
        assert entry.agreement == approx(np.mean(agree))


def test_sensitivity_without_propensities_and_full_policies() -> None:
    log, policies = sample(rows=90, knows="none")
    found = podium.diagnose(log, logged_only(log, policies))
    assert {(s.estimator, s.baseline) for s in found.sensitivity} == {("LDE", "mean"), ("LDE", "state"), ("DiM", "-")}


# --- alarms --------------------------------------------------------------------------------------------------------


def test_a_logger_that_seeks_reward_is_found() -> None:
    log, policies = sample(rows=200, seeks=1.5)
    alarm = alarms(podium.diagnose(log, policies), "T_p")[0]
    assert alarm.value > 3
    assert alarm.meaning.startswith("good actions were logged more often than others (T_p = ")
    assert alarm.advice.endswith("look at DRE.")
    avoids, policies = sample(rows=200, seeks=-1.5)
    alarm = alarms(podium.diagnose(avoids, policies), "T_p")[0]
    assert alarm.value < -3
    assert alarm.meaning.startswith("good actions were logged less often than others")


def test_seeking_loggers_are_flagged_nearly_always() -> None:
    flagged = 0
    for seed in range(20):
        log, policies = sample(rows=100, count=2, seed=seed, seeks=1.5, knows="logged")
        flagged += bool(alarms(podium.diagnose(log, policies, **PAPER), "T_p"))
    assert flagged >= 19


def test_a_harmless_log_raises_no_alarm() -> None:
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, 400)
    log = podium.Log(rng.integers(0, 40, 400), actions, rng.normal(size=400), np.full(400, 0.5))
    found = podium.diagnose(log, {"a": np.full((400, 2), 0.5), "b": np.tile([0.4, 0.6], (400, 1))})
    assert found.alarms == ()


def test_every_alarm_says_what_to_do() -> None:
    log, _ = sample(rows=60, actions=5, seeks=2.0)
    found = podium.diagnose(log, {"zero": "constant:0", "four": "constant:4"})
    assert found.alarms
    for alarm in found.alarms:
        assert alarm.meaning.endswith(".")
        assert alarm.advice[0].isupper()
        assert alarm.advice.endswith(".")
        assert f"Alarm: {alarm.meaning}"[:40] in repr(found)


# --- how the answer is given ---------------------------------------------------------------------------------------


def test_json_follows_the_contract() -> None:
    log, policies = sample(rows=60)
    content = json.loads(json.dumps(podium.diagnose(log, policies).to_dict(), allow_nan=False))
    assert set(content) >= {"log", "policies", "alarms", "pairs", "sensitivity", "t_p", "warnings"}
    assert set(content["log"]) >= {"rows", "distinct", "states", "actions", "propensities"}
    for p in content["policies"]:
        assert set(p) == {"name", "mass_on_logged", "ess", "max_weight", "top_row_share"}
    assert all(set(a) == {"name", "value", "meaning", "advice"} for a in content["alarms"])
    for p in content["pairs"]:
        assert set(p) >= {"a", "b", "verdict", "empirical_se", "design_se", "z_b", "rows_to_flip", "rows", "states"}
        assert all(set(d) == {"label", "effect", "flips"} for d in [*p["rows"], *p["states"]])
    assert all(set(s) == {"estimator", "baseline", "ranking", "agreement"} for s in content["sensitivity"])


def test_states_of_several_columns_in_json() -> None:
    log = podium.Log([("x", 1), ("x", 2), ("y", 1), ("y", 2)], ["a", "b", "a", "b"], [1.0, 0.0, 2.0, 0.5])
    content = podium.diagnose(log, {"a": "constant:a", "b": "constant:b"}, **PAPER).to_dict()
    assert content == json.loads(json.dumps(content, allow_nan=False))
    assert all(d["label"] in ([["x", 1], ["x", 2], ["y", 1], ["y", 2]]) for d in content["pairs"][0]["states"])


def test_a_log_without_policies() -> None:
    log, _ = sample(rows=60)
    found = podium.diagnose(log)
    assert (found.coverage, found.pairs, found.sensitivity) == ((), (), ())
    content = found.to_dict()
    assert content["log"]["rows"] == 60
    assert content["policies"] == []
    assert "propensities" in repr(found)


def test_one_policy() -> None:
    log, policies = sample(rows=60)
    found = podium.diagnose(log, {"p0": policies["p0"]})
    assert [c.name for c in found.coverage] == ["p0"]
    assert found.pairs == ()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n % 9},{'ab'[n % 2]},{n % 5},0.5,0.{n % 7 + 1},0.5\n" for n in range(70))
    (tmp_path / "log.csv").write_text("s,action,reward,propensity,pi_new,pi_old\n" + rows)
    assert main(["check", "log.csv", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == podium.diagnose(podium.read_log("log.csv")).to_dict()
    assert main(["check", "log.csv", "--verdicts", "paired t", "--estimator", "DRE"]) == 0
    text = capsys.readouterr().out
    for title in ("Log", "Policies", "Pairs", "Other methods"):
        assert f"\n{title}" in "\n" + text
    assert max(map(len, text.splitlines())) <= 80


def test_a_log_alone_blames_no_column_where_its_propensities_are_wrong() -> None:
    """The logger follows the age, the propensities say that it tossed a coin of another kind."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 2, 400)
    action = (rng.random(400) < np.where(age == 1, 0.95, 0.6)).astype(int)
    log = podium.Log.from_columns({"age": age, "action": action, "reward": rng.random(400), "propensity": [0.5] * 400})
    codes = [w.code for w in podium.diagnose(log).warnings if isinstance(w, Fact)]
    assert codes == ["false propensities"]
