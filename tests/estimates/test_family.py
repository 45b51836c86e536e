"""The wider family of estimators: its limits, its errors, what it says when it ranks, and how it reads large logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_logs import as_array, cases, fixed, tables
from samples import logged_only, method_result, sample

import podium
from podium.data.errors import PodiumError, Unavailable
from podium.estimates.estimators import (
    DIRECT_MODEL,
    EPISODIC,
    FAMILY,
    SNDR,
    SNIPS,
    Estimator,
    clipped,
    find_estimator,
    shrunk,
    subgaussian,
    switch,
)
from podium.estimates.evaluate import rows_of
from podium.estimates.options import Options

approx = pytest.approx
WEIGHTED = [name for name, e in FAMILY.items() if e.uses_propensity]
SHRINKING = [name for name, e in FAMILY.items() if e.shrinks]


def values(log: podium.Log, policies: Any, *methods: Any, **options: Any) -> dict[str, list[float]]:
    """Method -> values of the policies."""
    found = podium.evaluate(log, policies, list(methods), **options)
    assert found.unavailable == {}
    return {m: [found.values[p][m] for p in found.policies] for m in found.settings["estimators"]}


def model(log: podium.Log, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(log), log.n_actions))


# --- limits ----------------------------------------------------------------------------------------------------------


@fixed
@given(st.data())
def test_limits(data: st.DataObject) -> None:
    """Without a bite every rule is IPS or DRE; with a full one the doubly robust ones are the direct model."""
    case = data.draw(cases())
    q = as_array(data.draw(tables(case.data)), case.data)
    gentle = [clipped(np.inf), clipped(np.inf, baseline=True), switch(np.inf), shrunk(np.inf), subgaussian(0)]
    gentle.append(subgaussian(0, baseline=True))
    harsh = [clipped(0, baseline=True), switch(0), shrunk(0)]
    found = podium.evaluate(case.log, case.policies, ["IPS", "DRE", DIRECT_MODEL, *gentle, *harsh], q).values
    for row in found.values():
        for e in gentle:
            assert row[e.name] == approx(row["DRE" if e.uses_baseline else "IPS"], rel=1e-9, abs=1e-9)
        for e in harsh:
            # A weight of 0 leaves the model alone.
            assert row[e.name] == approx(row["DirectModel"], rel=1e-9, abs=1e-9)


@fixed
@given(st.data())
def test_direct_model_is_the_average_of_the_model(data: st.DataObject) -> None:
    case = data.draw(cases())
    q = as_array(data.draw(tables(case.data)), case.data)
    found = podium.evaluate(case.log, case.policies, DIRECT_MODEL, q).values
    for name, policy in case.policies.items():
        assert found[name]["DirectModel"] == approx(float((q * policy).sum(axis=1).mean()), rel=1e-9, abs=1e-9)


@fixed
@given(st.data(), st.floats(0.1, 5))
def test_weights_that_are_bounded_are_left_alone(data: st.DataObject, room: float) -> None:
    """A cap or a threshold above the largest weight changes nothing."""
    case = data.draw(cases())
    n = np.arange(len(case.log))
    largest = max((p[n, case.log.action_codes] / case.log.propensities).max() for p in case.policies.values())
    found = values(case.log, case.policies, "IPS", "DRE", clipped(largest + room), switch(largest + room))
    assert found[clipped(largest + room).name] == approx(found["IPS"])
    assert found[switch(largest + room).name] == approx(found["DRE"])


def test_self_normalised_is_plain_where_weights_average_one() -> None:
    log = podium.Log(["x"] * 4, ["a", "b", "a", "b"], [1.0, 2.0, 3.0, 5.0], propensities=[0.5] * 4)
    policies = {"a": "constant:a", "uniform": "uniform"}  # weights 2, 0, 2, 0 and 1, 1, 1, 1
    found = values(log, policies, "IPS", "SNIPS", "DRE", "SNDR")
    assert found["SNIPS"] == found["IPS"] == [2.0, 2.75]
    assert found["SNDR"] == approx(found["DRE"])


@fixed
@given(st.data(), st.floats(-1e3, 1e3))
def test_self_normalised_moves_with_the_reward(data: st.DataObject, c: float) -> None:
    """SNIPS is equivariant, which IPS is not; and SNDR with a constant baseline is SNIPS, whatever the constant."""
    case = data.draw(cases())
    moved = replace(case, data=replace(case.data, rewards=[r + c for r in case.data.rewards]))
    before = podium.evaluate(case.log, case.policies, [SNIPS, SNDR], c)
    after = podium.evaluate(moved.log, case.policies, [SNIPS])
    for name in case.policies:
        if before.unavailable:
            assert set(before.unavailable) == {"SNIPS", "SNDR"}
            continue
        assert after.values[name]["SNIPS"] == approx(before.values[name]["SNIPS"] + c, abs=1e-6)
        assert before.values[name]["SNDR"] == approx(before.values[name]["SNIPS"], abs=1e-6)


def test_values_worked_out_by_hand() -> None:
    """Weights of "often": .9/.5 = 1.8 at a, .1/.5 = .2 at b; rewards 1 and 3; the model says 2 for a, 1 for b."""
    log = podium.Log(["x", "x"], ["a", "b"], [1.0, 3.0], propensities=[0.5, 0.5])
    often = {"often": [[0.9, 0.1], [0.9, 0.1]], "b": "constant:b"}
    q = np.array([[2.0, 1.0], [2.0, 1.0]])
    direct = 0.9 * 2 + 0.1 * 1
    expected = {
        "SNIPS": (1.8 * 1 + 0.2 * 3) / 2,
        "cIPS:1.5": (1.5 * 1 + 0.2 * 3) / 2,
        "cDR:1.5": direct + (1.5 * -1 + 0.2 * 2) / 2,
        "SwitchDR:1.5": direct + (0.2 * 2) / 2,
        "DRos:4": direct + (4 * 1.8 / (1.8**2 + 4) * -1 + 4 * 0.2 / (0.2**2 + 4) * 2) / 2,
        "sgIPS:0.5": (1.8 / 1.4 * 1 + 0.2 / 0.6 * 3) / 2,
        "SNDR": direct + (1.8 * -1 + 0.2 * 2) / 2,
        "DirectModel": direct,
    }
    found = podium.evaluate(log, often, list(expected), q).values["often"]
    assert found == approx(expected)


# --- what peers get wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [1.0, 0.1, -3.7, 1e6 + 0.1])
@pytest.mark.parametrize("method", ["SNIPS", "SNDR"])
def test_equal_rewards_give_an_interval_of_no_width(method: str, reward: float) -> None:
    log, policies = sample(60, 4, 3)
    log = podium.Log(log.states, log.actions, np.full(60, reward), behavior=log.behavior, action_space=range(4))
    found = podium.evaluate(log, policies, method)
    for name in policies:
        assert found.values[name][method] == approx(reward, rel=1e-12)
        low, high = found.interval(name, method)
        assert high - low == approx(0, abs=1e-12 * abs(reward))
    pair = podium.compare(log, policies, method, verdicts="paired t", bootstrap=50).pairs[0]
    assert (pair.difference, pair.verdict) == (0, "cannot tell")
    assert (pair.bootstrap.low, pair.bootstrap.high) == approx((0, 0), abs=1e-12 * abs(reward))


@pytest.mark.parametrize("method", [*WEIGHTED, "DirectModel", "DRos:0", "sgIPS:1", "cIPS:0"])
def test_deterministic_policies_are_no_trouble(method: str) -> None:
    """Weights of exactly 0 are ordinary."""
    log, _ = sample(60, 3, 1)
    policies = {"first": "constant:0", "last": np.where(np.arange(60) % 2, 2, 0)}
    found = podium.evaluate(log, policies, method, model(log))
    for name in policies:
        low, high = found.interval(name, find_estimator(method).name)
        assert low <= found.values[name][find_estimator(method).name] <= high


@pytest.mark.parametrize("method", FAMILY)
def test_the_value_lies_inside_its_interval(method: str) -> None:
    log, policies = sample(80, 3, 2)
    found = podium.evaluate(log, policies, method, "linear")
    for name in policies:
        low, high = found.interval(name, method)
        assert low < found.values[name][method] < high


@pytest.mark.parametrize("method", WEIGHTED)
def test_missing_propensities_are_never_taken_for_one(method: str) -> None:
    log, policies = sample(40, 3, 2, knows="none")
    found = podium.evaluate(log, policies, method)
    assert found.values["p0"][method] is None
    assert found.unavailable == {method: f"{method} needs the probability of each logged action, and the log has none"}
    with pytest.raises(Unavailable, match="needs the probability of each logged action"):
        podium.compare(log, policies, method)


def test_a_direct_model_needs_a_model() -> None:
    log, policies = sample(40, 3, 2)
    with pytest.raises(Unavailable) as error:
        podium.compare(log, policies, "DirectModel")
    assert str(error.value) == (
        "DirectModel needs a baseline that depends on the action; 'mean' gives every policy the same value\n\n"
        'Hint: use baseline="linear", an object with fit/predict, or a function q(states, actions).'
    )


def test_a_policy_without_any_weight_cannot_be_self_normalised() -> None:
    log = podium.Log(["x", "y"], ["a", "b"], [1.0, 0.0], propensities=[0.5, 0.5], action_space=("a", "b", "c"))
    found = podium.evaluate(log, {"a": "constant:a", "c": "constant:c"}, ["IPS", "SNIPS"])
    assert found.unavailable == {
        "SNIPS": "SNIPS divides by the sum of a policy's weights, and policy 'c' never plays an action that was logged"
    }
    assert found.values["c"]["IPS"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["IPS", "SNIPS", "DRE", "SNDR", "LDE"])
def test_intervals_cover_as_they_say(method: str) -> None:
    """95% of 95% intervals hold the truth: not 90%, as where a two-sided interval is made of one-sided tails."""
    rng = np.random.default_rng(5)
    n, runs = 400, 600
    behavior = np.array([0.5, 0.3, 0.2])
    target, other = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.4, 0.2])
    means = np.array([0.2, 0.5, 0.9])
    inside = {"value": 0, "pair": 0}
    truth = (target * means).sum()
    # LDE keeps every draw here, and its score is c + E[(r - c) pi].
    score = (behavior * means).sum() * (1 - (behavior * target).sum()) + (behavior * means * target).sum()
    for run in range(runs):
        actions = rng.choice(3, n, p=behavior)
        rewards = means[actions] + rng.normal(0, 0.5, n)
        log = podium.Log(np.arange(n), actions, rewards, propensities=behavior[actions], action_space=(0, 1, 2))
        policies = {"target": np.tile(target, (n, 1)), "other": np.tile(other, (n, 1))}
        found = podium.evaluate(log, policies, method)
        low, high = found.interval("target", method)
        inside["value"] += low <= (score if method == "LDE" else truth) <= high
        if run < 300 and method != "LDE":
            pair = podium.compare(log, policies, method, verdicts="paired t").pair("target", "other")
            inside["pair"] += pair.interval.low <= ((target - other) * means).sum() <= pair.interval.high
    assert 0.93 <= inside["value"] / runs <= 0.972
    if method != "LDE":
        assert 0.915 <= inside["pair"] / 300 <= 0.98


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*FAMILY, "cIPS:0.7", "DRos:0.5"])
@pytest.mark.parametrize("units", [0, 12])
def test_paired_errors_are_those_of_the_row_terms(method: str, units: int) -> None:
    """The jackknife, which knows nothing of row terms, agrees to first order."""
    log, policies = sample(150, 3, 2, units=units, seed=3)
    q = model(log)
    result = podium.compare(log, policies, method, q, verdicts="paired t", duplicates="all")
    difference, error = result.pair("p0", "p1").difference, result.pair("p0", "p1").std_error
    groups = np.arange(150) if not units else log.units
    left_out = []
    for g in np.unique(groups):
        keep = np.flatnonzero(groups != g)
        some = podium.Log(
            log.states[keep], log.actions[keep], log.rewards[keep], behavior=log.behavior[keep], action_space=(0, 1, 2)
        )
        parts = {name: p[keep] for name, p in policies.items()}
        row = podium.evaluate(some, parts, method, q[keep], duplicates="all").values
        gap = row["p0"][find_estimator(method).name] - row["p1"][find_estimator(method).name]
        left_out.append(gap * find_estimator(method).reward_units(3))
    assert np.mean(left_out) == approx(difference, abs=0.15 * error)
    jackknife = np.sqrt((len(left_out) - 1) / len(left_out) * ((left_out - np.mean(left_out)) ** 2).sum())
    assert jackknife == approx(error, rel=0.1)


def test_normalising_by_states_keeps_the_ratio() -> None:
    log, policies = sample(90, 3, 2, distinct=9)
    once = podium.evaluate(log, policies, ["SNIPS", "cIPS:2"], normalize="states").values
    sizes = np.bincount(log.state_codes)[log.state_codes]
    for name, policy in policies.items():
        weight = policy[np.arange(90), log.action_codes] / log.propensities
        assert once[name]["SNIPS"] == approx(np.average(log.rewards, weights=weight / sizes))
        assert once[name]["cIPS:2"] == approx((np.minimum(weight, 2) * log.rewards / sizes).sum() / log.n_states)


# --- ranking ----------------------------------------------------------------------------------------------------------


def test_clipping_can_turn_a_ranking_round_and_says_so() -> None:
    """ "rare" plays the better action, logged with p = .05: weight 20 at reward 1. Clipping at 10 halves it."""
    n = 200
    rare = np.arange(n) % 20 == 0
    log = podium.Log(
        np.arange(n) % 3, np.where(rare, "rare", "usual"), np.where(rare, 1.0, 0.6),
        propensities=np.where(rare, 0.05, 0.95),
    )  # fmt: skip
    policies = {"rare": "constant:rare", "usual": "constant:usual"}
    assert podium.compare(log, policies, "IPS").ranking == ["rare", "usual"]
    result = podium.compare(log, policies, "cIPS:10")
    assert result.ranking == ["usual", "rare"]
    assert [w.code for w in result.warnings] == ["verdict against ranking", "shrinks unevenly"]
    assert result.warnings[1] == (
        "cIPS:10 shrinks large weights, of each policy by another share, so that it can turn a ranking round; "
        "hold it against DRE. Here it takes 50% of the weight of 'rare' and 0% of that of 'usual'."
    )
    assert result.settings["estimator"] == "cIPS:10"


@pytest.mark.parametrize("method", FAMILY)
def test_only_methods_that_treat_policies_unlike_warn(method: str) -> None:
    log, policies = sample(60, 3, 2)
    result = podium.compare(log, policies, method, "linear")
    warned = [w for w in result.warnings if w.startswith(method)]
    assert bool(warned) == (method in SHRINKING or method == "DirectModel")
    assert [p.name for p in result.policies] == result.ranking
    assert {m for p in result.policies for m in p.estimates} >= {method, "LDE", "DRE", "IPS", "DiM"}


@pytest.mark.parametrize("method", ["SNIPS", "SNDR", "cIPS:10", "SwitchDR:10", "DRos:100", "DirectModel"])
def test_the_default_verdict_does_not_depend_on_who_ranks(method: str) -> None:
    log, policies = sample(60, 3, 2)
    ours, usual = podium.compare(log, policies, method, "linear"), podium.compare(log, policies, "IPS", "linear")
    pair, other = ours.pair("p0", "p1"), usual.pair("p0", "p1")
    assert (pair.verdict, pair.p_better, pair.path) == (other.verdict, other.p_better, other.path)
    classical = podium.compare(log, policies, method, "linear", verdicts="paired t").pairs[0]
    assert classical.path == method
    assert classical.difference == approx(abs(np.subtract(*[p.score for p in ours.policies])), abs=1e-12)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("snips", "SNIPS"), ("Switch-DR:5", "SwitchDR:5"), ("cips", "cIPS:10"), ("CIPS:2.50", "cIPS:2.5"),
        ("dros:inf", "DRos:inf"), ("direct_model", "DirectModel"), ("pdis", "PDIS"), ("dre", "DRE"),
    ],
)  # fmt: skip
def test_names(written: str, name: str) -> None:
    assert find_estimator(written).name == name
    assert find_estimator(find_estimator(written)) == find_estimator(written)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SNIPS:3", "unknown estimator 'SNIPS:3'"),
        ("cIPS:", "'cIPS:' names no number after the colon"),
        ("cIPS:nan", "the parameter of cIPS must be a number from 0 on; it is nan"),
        ("sgIPS:2", "the parameter of sgIPS and sgDR lies between 0 and 1; it is 2.0"),
    ],
)
def test_bad_names(name: str, message: str) -> None:
    with pytest.raises(PodiumError) as error:
        find_estimator(name)
    assert error.value.message == message


def test_all_is_the_whole_family() -> None:
    log, policies = sample(40, 3, 2)
    found = podium.evaluate(log, policies, "all", "linear")
    assert list(found.to_dict()["policies"][0]["estimates"]) == list(FAMILY)
    assert found.unavailable == {}
    assert all(e > 0 for e in found.std_errors["p0"].values())


def test_episodic_methods_need_episodes() -> None:
    log, policies = sample(40, 3, 2)
    with pytest.raises(PodiumError, match="TIS needs episodes with the probability of every step") as error:
        podium.evaluate(log, policies, list(EPISODIC))
    assert "podium.episodes.evaluate" in error.value.hint


def test_single_states_have_no_ratio() -> None:
    log, policies = sample(40, 3, 2)
    with pytest.raises(PodiumError, match="SNIPS is a ratio over the whole log"):
        podium.compare_states(log, policies, "SNIPS")
    states = podium.compare_states(log, policies, "cIPS:2")
    assert np.average(states.values[:, 0], weights=states.rows) == approx(
        podium.evaluate(log, policies, "cIPS:2").values["p0"]["cIPS:2"]
    )


# --- large logs -------------------------------------------------------------------------------------------------------

NONLINEAR = [e for e in FAMILY.values() if not e.linear]


def q(states: Any, actions: Any) -> Any:
    return np.cos(np.asarray(states, dtype=float)) + 0.3 * np.asarray(actions, dtype=float)


@pytest.mark.parametrize("baseline", ["mean", 0.7, q])
@pytest.mark.parametrize("units", [0, 40])
def test_parts_give_what_arrays_give(baseline: Any, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log, policies = sample(700, 3, 3, units=units, distinct=30)
    policies["p2"] = policies["p1"] + 1e-9 * np.array([1, -1, 0])  # nearly equal
    arrays = podium.evaluate(log, policies, NONLINEAR, baseline)
    wanted = {m: podium.compare(log, policies, m, baseline, verdicts="paired t") for m in usable(arrays)}
    small_parts(monkeypatch)
    parts = podium.evaluate(log, policies, NONLINEAR, baseline, sample_rows=300)
    assert parts.unavailable.keys() == arrays.unavailable.keys()
    for m in usable(arrays):
        for name in policies:
            assert parts.values[name][m] == approx(arrays.values[name][m], rel=1e-10, abs=1e-10)
            assert parts.std_errors[name][m] == approx(arrays.std_errors[name][m], rel=by_sample(baseline, 0.1, 1e-8))
        found = podium.compare(log, policies, m, baseline, verdicts="paired t", bootstrap=20, sample_rows=300)
        assert not found.basis.rows.whole
        assert found.ranking == wanted[m].ranking
        assert [w for w in found.warnings if w.startswith(m)] == [w for w in wanted[m].warnings if w.startswith(m)]
        for pair in wanted[m].pairs:
            other = found.pair(pair.a, pair.b)
            assert other.difference == approx(pair.difference, rel=1e-6, abs=1e-16)
            if pair.std_error is None:  # the model tells the nearly equal ones apart by the same in every row
                assert (m, other.std_error) == ("DirectModel", None)
            else:
                assert other.std_error == approx(pair.std_error, rel=1e-6, abs=1e-16)


def by_sample(baseline: Any, near: float, exact: float) -> float:
    """How much a value moves with the mean reward is known of the sample alone, and enters its error."""
    return near if isinstance(baseline, str) and baseline == "mean" else exact


def small_parts(monkeypatch: pytest.MonkeyPatch, rows: int = 50) -> None:
    """Logs beyond the sample are cut into parts of so many rows."""
    monkeypatch.setattr("podium.engines.parts.LEAST", rows)
    monkeypatch.setattr("podium.engines.parts.CELLS", 1)


def usable(found: podium.Estimates) -> list[str]:
    return [m for m in found.settings["estimators"] if m not in found.unavailable]


@pytest.mark.parametrize("baseline", ["mean", np.square], ids=["mean", "v(s)"])
@pytest.mark.parametrize("duplicates", ["latest", "all"])
@pytest.mark.parametrize("method", ["SNIPS", "SNDR", "LDE", "DRE"])
def test_parts_keep_the_rows_that_arrays_keep(
    method: str, duplicates: str, baseline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated rows of a state and action lie in different parts, and the sample's baseline is not that of all rows."""
    log, policies = sample(400, 3, 2, distinct=30)
    wanted = podium.evaluate(log, policies, method, baseline, duplicates=duplicates)
    small_parts(monkeypatch)
    found = podium.evaluate(log, policies, method, baseline, duplicates=duplicates, sample_rows=300)
    assert found.settings["samples"] == wanted.settings["samples"]
    for name in policies:
        assert found.values[name][method] == approx(wanted.values[name][method], rel=1e-10)
        error = wanted.std_errors[name][method]
        assert found.std_errors[name][method] == approx(error, rel=by_sample(baseline, 0.1, 1e-8))


def test_what_cannot_be_used_is_said_of_large_logs_too() -> None:
    log, policies = sample(400, 3, 2, distinct=30)
    v = podium.evaluate(log, policies, "DirectModel", lambda states: np.asarray(states, dtype=float), sample_rows=300)
    assert "gives every policy the same value" in v.unavailable["DirectModel"]
    unknown, _ = sample(400, 3, 2, distinct=30, knows="none")
    assert set(podium.evaluate(unknown, policies, ["SNIPS", "LDE"], sample_rows=300).unavailable) == {"SNIPS"}
    with pytest.raises(Unavailable, match="SNIPS needs the probability"):
        podium.compare(unknown, policies, "SNIPS", sample_rows=300)


def test_states_of_a_large_log_are_those_of_its_sample() -> None:
    log, policies = sample(400, 3, 2, distinct=30)
    drawn = rows_of(log, policies, Options(sample_rows=300)).numbers
    found = podium.compare_states(log, policies, "cIPS:2", 0.5, sample_rows=300)
    some = {name: p[drawn] for name, p in policies.items()}
    wanted = podium.compare_states(log.take(drawn), some, "cIPS:2", 0.5)
    assert found.sample == len(drawn) == 300
    assert (found.states, found.rows.sum()) == (wanted.states, 300)
    assert np.array_equal(found.values, wanted.values)


def test_a_scanned_log_gives_what_arrays_give(tmp_path: Path) -> None:
    log, policies = sample(20_400, 3, 2, distinct=50)
    frame = log.to_frame()
    for name, p in policies.items():
        for a in range(3):
            frame[f"pi_{name}:{a}"] = p[:, a]
    frame.to_parquet(tmp_path / "log.parquet")
    scanned, arrays = (
        podium.scan_log(tmp_path / "log.parquet", engine="duckdb"),
        podium.read_log(tmp_path / "log.parquet"),
    )
    for found in (podium.evaluate(scanned, None, NONLINEAR), podium.evaluate(arrays, None, NONLINEAR)):
        assert set(found.unavailable) == {"DirectModel"}
    ours, other = podium.evaluate(scanned, None, NONLINEAR), podium.evaluate(arrays, None, NONLINEAR)
    for name in policies:
        for m in usable(ours):
            assert ours.values[name][m] == approx(other.values[name][m], rel=1e-9)
    result = podium.compare(scanned, None, "SNIPS", verdicts="paired t")
    assert result.pairs[0].path == "SNIPS"
    wanted = podium.compare(arrays, None, "SNIPS", verdicts="paired t")
    assert result.pairs[0].difference == approx(wanted.pairs[0].difference, rel=1e-8)


@pytest.mark.parametrize("method", ["SNIPS", "cIPS:2"])
def test_logged_probabilities_suffice_without_a_model(method: str) -> None:
    log, policies = sample(60, 3, 2, knows="logged")
    full, partial = values(log, policies, method), values(log, logged_only(log, policies), method)
    assert partial == full


def test_an_own_estimator() -> None:
    log, policies = sample(60, 3, 2)
    own = Estimator("clipped SNDR", True, True, rule="clip", parameter=2.0, self_normalized=True)
    found = podium.evaluate(log, policies, own, "linear")
    assert found.values["p0"]["clipped SNDR"] != found.values["p1"]["clipped SNDR"]


# --- few rows that carry the weight ----------------------------------------------------------------------------------


def rare(p: float, seed: int, rows: int = 200, reward: Any = None) -> podium.Log:
    """Two actions of equal value, one of which was seldom logged."""
    rng = np.random.default_rng(seed)
    actions = (rng.random(rows) < p).astype(int)
    rewards = rng.random(rows) if reward is None else np.full(rows, reward)
    return podium.Log(np.zeros(rows, int), actions, rewards, propensities=np.where(actions == 1, p, 1 - p))


TWO = {"one": "constant:1", "zero": "constant:0"}


@pytest.mark.parametrize("estimator", ["SNIPS", "SNDR"])
@pytest.mark.parametrize("p", [0.004, 0.02])
def test_self_normalised_methods_claim_nothing_from_few_rows(estimator: str, p: float) -> None:
    """Without the shares of heavy rows and their degrees of freedom, 42% and 26% of these logs claim a difference."""
    logs = [log for log in (rare(p, seed) for seed in range(60)) if log.action_codes.any()]
    found = [podium.compare(log, TWO, estimator, verdicts="paired t").pairs[0] for log in logs]
    assert sum(pair.verdict != "cannot tell" for pair in found) <= 5


@pytest.mark.parametrize("procedure", ["bootstrap t", "sign flip"])
def test_nor_do_they_where_rows_are_resampled(procedure: str) -> None:
    logs = [log for log in (rare(0.02, seed) for seed in range(40)) if log.action_codes.any()]
    found = [podium.compare(log, TWO, "SNIPS", verdicts=procedure).pairs[0] for log in logs]
    assert sum(pair.verdict != "cannot tell" for pair in found) <= 5


def test_one_heavy_row_has_no_interval_and_says_why() -> None:
    log = podium.Log([0] * 4, [1, 0, 0, 0], [1.0, 0.0, 0.5, 0.2], propensities=[0.1, 0.9, 0.9, 0.9])
    found = podium.evaluate(log, TWO, "SNIPS")
    assert found.interval("one", "SNIPS") is None
    assert found.interval("zero", "SNIPS") is not None
    assert [w.code for w in found.warnings] == ["no error"]
    pair = podium.compare(log, TWO, "SNIPS", verdicts="paired t").pairs[0]
    assert pair.verdict == "cannot tell"
    assert (pair.reasons[0].code, pair.reasons[0].fields) == ("few effective rows", {"effective": 1.0})


def test_errors_of_self_normalised_methods_are_those_of_the_jackknife() -> None:
    log, policies = sample(60, 3, 2, distinct=10, seed=3)
    found = method_result(log, policies, SNIPS)
    for k, policy in enumerate(policies.values()):
        w = policy[np.arange(60), log.action_codes] / log.propensities
        left_out = np.array([np.average(np.delete(log.rewards, n), weights=np.delete(w, n)) for n in range(60)])
        assert found.value_error[k] == approx(np.sqrt(60 / 59 * ((left_out - left_out.mean()) ** 2).sum()), rel=1e-9)
        assert found.effective[k] == approx(w.sum() ** 2 / (w @ w))


@pytest.mark.parametrize("units", [False, True])
def test_heavy_rows_of_large_logs_as_in_memory(units: bool) -> None:
    log = rare(0.0005, 1, 20_001)
    log = replace(log, units=np.arange(20_001) // 40) if units else log
    large = podium.compare(log, TWO, "SNIPS", verdicts="paired t").basis.main
    small = method_result(log, TWO, SNIPS)
    for what in ("values", "difference", "std_error", "value_error", "effective"):
        assert getattr(large, what) == approx(getattr(small, what), rel=1e-9, abs=1e-12)
    assert large.freedom[0] < 20


@pytest.mark.parametrize("rows", [200, 20_001])
def test_a_constant_reward_has_no_width(rows: int) -> None:
    found = podium.evaluate(rare(0.3, 0, rows, reward=0.1), TWO, ["SNIPS", "SNDR"])
    assert {found.std_errors[name][m] for name in TWO for m in ("SNIPS", "SNDR")} == {0.0}


def test_a_value_of_nothing_but_rounding_is_zero() -> None:
    """Action 1 earns nothing; the mean of all rewards must not shine through."""
    for rows in (20_000, 20_001):
        log = rare(0.3, 0, rows)
        log = replace(log, rewards=np.where(log.action_codes == 1, 0.0, log.rewards))
        assert podium.evaluate(log, TWO, "SNIPS").values["one"]["SNIPS"] == 0.0


# --- methods that change policies unevenly ----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2000, 20_400])
@pytest.mark.parametrize("method", ["sgIPS:0.1", "cIPS:10", "SwitchDR:10", "DRos:100", "cDR:10", "sgDR:0.1"])
def test_no_claim_where_shrinking_takes_unequal_shares(method: str, rows: int) -> None:
    """The rare action is twice as good, and loses most of its weight."""
    log = rare(0.01, 0, rows)
    log = replace(log, rewards=np.where(log.action_codes == 1, 1.0, 0.5) + 0.1 * log.rewards)
    pair = podium.compare(log, TWO, method, verdicts="paired t").pairs[0]
    assert pair.verdict == "cannot tell"
    assert (pair.reasons[0].code, pair.reasons[0].fields["method"]) == ("uneven shrinking", method)


def test_shrinking_that_takes_nothing_may_claim() -> None:
    log = rare(0.5, 0, 500)
    log = replace(log, rewards=np.where(log.action_codes == 1, 1.0, 0.5) + 0.1 * log.rewards)
    assert podium.compare(log, TWO, "cIPS:10", verdicts="paired t").pair("one", "zero").verdict == "better"


@pytest.mark.parametrize("procedure", ["paired t", "bootstrap t", "sign flip"])
def test_the_direct_model_ranks_and_never_claims(procedure: str) -> None:
    log, policies = sample(300, 3, 2, distinct=30)
    result = podium.compare(log, policies, "DirectModel", "linear", verdicts=procedure)
    assert {pair.verdict for pair in result.pairs} == {"cannot tell"}
    assert result.pairs[0].reasons[0].code == "error of a model"


# --- errors of single values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize(
    "baseline", ["mean", 3.0, lambda states, actions: 1.1 * np.asarray(actions, float), lambda states: states % 3.0]
)
def test_values_of_large_logs_have_the_errors_of_arrays(baseline: Any, units: bool) -> None:
    rng, n = np.random.default_rng(1), 20_400
    actions, states = rng.integers(0, 3, n), rng.integers(0, 8000, n)
    rewards = rng.random(n) + actions + states % 3 + 10
    log = podium.Log(
        states,
        actions,
        rewards,
        propensities=0.3 + rng.random(n) / 2,
        units=rng.integers(500, size=n) if units else None,
    )
    policies = {"one": "constant:1", "uniform": "uniform"}
    found = podium.evaluate(log, policies, baseline=baseline)
    for method in ("LDE", "DRE", "IPS", "DiM"):
        small = method_result(log, policies, find_estimator(method), baseline)
        assert [found.values[p][method] for p in policies] == approx(small.values, rel=1e-9)
        errors = [found.std_errors[p][method] for p in policies]
        assert errors == approx(small.value_error.tolist(), rel=by_sample(baseline, 0.01, 1e-9))
        assert found.freedom["one"][method] == small.freedom[0]
        assert found.interval("one", method) is not None


@pytest.mark.parametrize("rows", [20_000, 20_001])
@pytest.mark.parametrize("reward", [0.0, 0.1, 5.0])
def test_errors_of_nothing_but_rounding_are_zero(rows: int, reward: float) -> None:
    log = rare(0.3, 0, rows, reward)
    found = podium.evaluate(log, {**TWO, "uniform": "uniform"}, ["DRE", "LDE", "DiM", "SNIPS", "SNDR"])
    own = found.std_errors["uniform"]
    assert own == {"DRE": 0.0, "LDE": 0.0, "DiM": 0.0, "SNIPS": 0.0, "SNDR": 0.0}


def test_cautions_say_what_is_there() -> None:
    log = podium.Log([0, 0, 1, 1], ["a", "b"] * 2, [1.0, 0.5, 1.0, 0.2], propensities=[0.5] * 4)
    both = {"a": "constant:a", "b": "constant:b"}
    (said,) = podium.compare(log, both, "cIPS:1").warnings
    assert said.endswith("Here it takes 50% of the weight of every policy.")
    for name in ("cIPS:inf", "DRos:inf"):
        assert podium.compare(log, both, name).warnings == ()


@pytest.mark.parametrize(
    ("name", "hint"), [("DR", "DR is DRE here."), ("IPW", "IPW is IPS here."), ("SNIPW", "SNIPW is SNIPS here.")]
)
def test_names_of_other_libraries(name: str, hint: str) -> None:
    with pytest.raises(PodiumError, match="unknown estimator") as error:
        find_estimator(name)
    assert error.value.hint == hint
