"""Comparison: ranking, paired differences, verdicts, and every way in which the answer is given."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import combinations
from math import nextafter, sqrt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import METHODS, Data, Form
from samples import PROCEDURES
from scipy import stats

import podium
from podium.comparison.compare import rank_scores
from podium.estimates import bootstrap as bootstrap_module
from podium.outputs.display import columns_wide, number, percent, share
from podium.verdicts.multiplicity import RATE, benjamini_hochberg

approx = pytest.approx


def compare_t(log: podium.Log, policies: Any = None, estimator: Any = "LDE", *more: Any, **options: Any) -> Any:
    """A comparison by one method, with paired t tests: what most of this file is about."""
    return podium.compare(log, policies, estimator, *more, **({"verdicts": "paired t"} | options))


def random_log(rows: int = 200, actions: int = 3, states: int = 12, seed: int = 0, **more: Any) -> podium.Log:
    rng = np.random.default_rng(seed)
    settings: dict[str, Any] = {
        "states": rng.integers(0, states, rows),
        "actions": rng.integers(0, actions, rows),
        "rewards": rng.normal(size=rows),
        "propensities": rng.uniform(0.2, 1.0, rows),
        "action_space": tuple(range(actions)),
    }
    return podium.Log(**(settings | more))


def random_policies(log: podium.Log, count: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Policies that depend on the state alone."""
    rng = np.random.default_rng(seed)
    return {f"policy {k}": rng.dirichlet(np.ones(log.n_actions), log.n_states)[log.state_codes] for k in range(count)}


def strong_log(rows: int = 60) -> tuple[podium.Log, dict[str, str]]:
    """Action 2 pays 2, action 1 pays 1, action 0 nothing, with little noise: everything can be claimed."""
    rng = np.random.default_rng(5)
    actions = np.arange(rows) % 3
    rewards = actions + rng.normal(scale=0.01, size=rows)
    log = podium.Log(np.arange(rows), actions, rewards, propensities=np.full(rows, 1 / 3))
    return log, {"zero": "constant:0", "one": "constant:1", "two": "constant:2"}


def telling_log(count: int) -> tuple[podium.Log, dict[str, np.ndarray]]:
    """Action 2 pays more, and policies lean to it more or less: some can be told apart, some not."""
    rng = np.random.default_rng(0)
    log = random_log(400, states=300)
    log = random_log(400, states=300, rewards=rng.normal(size=400) + 0.5 * log.action_codes)
    lean = [rng.dirichlet([1, 1, 1 + 3 * k / count], log.n_states)[log.state_codes] for k in range(count)]
    return log, {f"policy {k}": matrix for k, matrix in enumerate(lean)}


# --- ranking -------------------------------------------------------------------------------------------------------


def test_ranking_is_by_score() -> None:
    log, policies = strong_log()
    for method in METHODS:
        result = compare_t(log, policies, method)
        assert result.ranking == ["two", "one", "zero"]
        assert result.best == "two"
        scores = [p.score for p in result.policies]
        assert scores == sorted(scores, reverse=True)
        assert [p.score for p in result.policies] == [p.estimates[method] for p in result.policies]
        assert [(p.a, p.b) for p in result.pairs] == list(combinations(result.ranking, 2))


def test_lower_is_better_turns_the_ranking() -> None:
    """Scores and differences keep their sign; ranks, P(better), P(best) and verdicts turn."""
    log, policies = strong_log()
    high = compare_t(log, policies)
    low = compare_t(log, policies, lower_is_better=True)
    assert low.ranking == high.ranking[::-1] == ["zero", "one", "two"]
    assert low.estimates == {name: high.estimates[name] for name in low.ranking}
    first = low.pair("zero", "two")
    assert first.difference == high.pair("zero", "two").difference < 0
    assert first.interval == high.pair("zero", "two").interval
    assert first.p_better == 1 - high.pair("zero", "two").p_better
    assert (first.verdict, high.pair("zero", "two").verdict) == ("better", "worse")
    assert low.policies[0].p_best == approx(1)
    assert "lower is better" in str(low)


def test_equal_scores_share_a_rank_and_keep_the_given_order() -> None:
    log, _ = strong_log()
    twins = {"zero": "constant:0", "one again": "constant:1", "two": "constant:2", "one": "constant:1"}
    result = compare_t(log, twins)
    assert result.ranking == ["two", "one again", "one", "zero"]
    assert [p.rank for p in result.policies] == [1, 2, 2, 4]
    # Claims against the twins count for both; the twins claim nothing against each other.
    assert [(p.rank_low, p.rank_high) for p in result.policies] == [(1, 1), (2, 3), (2, 3), (4, 4)]


def test_scores_that_differ_by_rounding_are_equal() -> None:
    """.1 + .2 is not .3, but the policies are the same."""
    log = random_log(50, actions=2, propensities=np.full(50, 0.5))
    a = np.tile([0.1 + 0.2, 1 - (0.1 + 0.2)], (50, 1))
    b = np.tile([0.3, 0.7], (50, 1))
    assert (a != b).any()
    for method in METHODS:
        result = compare_t(log, {"b": b, "a": a}, method)
        assert result.ranking == ["b", "a"]
        assert [p.rank for p in result.policies] == [1, 1]
        assert (result.pairs[0].difference, result.pairs[0].verdict) == (0, "cannot tell")


def test_equal_scores_of_different_policies_keep_their_interval() -> None:
    """What one gains in the first state, the other gains in the second: a difference of 0 that is uncertain."""
    log = podium.Log(["x", "y"], ["a", "a"], [1.0, 1.0], action_space=("a", "b"))
    result = compare_t(log, {"first": [0.75, 0.25], "second": [0.25, 0.75]}, "DiM")
    pair = result.pairs[0]
    assert [p.rank for p in result.policies] == [1, 1]
    assert (pair.difference, pair.p_better, pair.verdict) == (0, 0.5, "cannot tell")
    assert pair.interval is not None
    assert pair.interval.high == -pair.interval.low > 0


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.floats(0, 0.4))
def test_rank_scores(scores: list[int], noise: float) -> None:
    """The rank of a score is 1 + the number of better ones; equal ones stay in order."""
    jitter = [s + noise * (k % 2) for k, s in enumerate(scores)]
    order, ranks = rank_scores(jitter, tie=noise + 1e-9)
    assert ranks == [1 + sum(other > scores[k] for other in scores) for k in order]
    assert order == sorted(range(len(scores)), key=lambda k: (-scores[k], k))


@pytest.mark.parametrize("repeats", [1, 13, 40])
@pytest.mark.parametrize(
    "procedure", [p for p in PROCEDURES if p != "doubly robust"]
)  # whose model is learned in folds
def test_policies_that_only_rounding_tells_apart_are_equal(procedure: str, repeats: int) -> None:
    """Each action earns .1 and .3 in turn, so that all policies are worth the same, and no noise is shown."""
    states, actions = np.arange(4 * repeats) // 2, np.tile(["a", "b"], 2 * repeats)
    rewards = np.tile([0.1, 0.3, 0.3, 0.1], repeats) + np.repeat(np.arange(repeats) * 0.1, 4)
    log = podium.Log(states, actions, rewards, propensities=np.full(4 * repeats, 0.5))
    policies = {"a": "constant:a", "b": "constant:b", "u": "uniform"}
    for baseline in ("mean", "state"):
        result = podium.compare(log, policies, baseline=baseline, verdicts=procedure)
        assert [(p.difference, p.p_better) for p in result.pairs] == [(0.0, 0.5)] * 3
        assert [p.rank for p in result.policies] == [1, 1, 1]
    centred = podium.Log(states, actions, rewards - rewards.mean(), propensities=np.full(4 * repeats, 0.5))
    found = podium.evaluate(centred, policies, ["LDE", "DRE", "IPS", "DiM", "SNIPS", "cIPS"]).values
    assert {x for values in found.values() for x in values.values()} == {0.0}


def test_rank_limits_count_claims() -> None:
    """rank_low = 1 + policies claimed better; rank_high = K - policies claimed worse."""
    log, policies = telling_log(8)
    result = compare_t(log, policies)
    claimed = {(p.a, p.b) for p in result.pairs if p.verdict == "better"}
    assert 0 < len(claimed) < len(result.pairs)
    assert not [p for p in result.pairs if p.verdict == "worse"]
    for p in result.policies:
        assert p.rank_low == 1 + sum(b == p.name for _, b in claimed)
        assert p.rank_high == 8 - sum(a == p.name for a, _ in claimed)
        assert p.rank_low <= p.rank <= p.rank_high


# --- differences and their errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_standard_errors_are_paired(method: str) -> None:
    """std(terms_a - terms_b, ddof=1) / sqrt(n), in units of reward: times A for LDE and DiM."""
    log = random_log(states=100_000)  # no duplicates
    assert len(log.latest) == len(log)
    policies = random_policies(log, 4)
    result = compare_t(log, policies, method)
    b = log.rewards.mean() if method in ("LDE", "DRE") else 0.0
    weight = np.ones(len(log)) * 3 if method in ("LDE", "DiM") else 1 / log.propensities
    logged = {name: matrix[np.arange(len(log)), log.action_codes] for name, matrix in policies.items()}
    for pair in result.pairs:
        gaps = (log.rewards - b) * weight * (logged[pair.a] - logged[pair.b])
        error = gaps.std(ddof=1) / sqrt(len(log))
        assert pair.difference == approx(gaps.mean(), rel=1e-10)
        assert pair.std_error == approx(error, rel=1e-10)
        t = stats.ttest_1samp(gaps, 0)
        assert pair.p_better == approx(stats.t.cdf(t.statistic, len(log) - 1), rel=1e-9)
        interval = t.confidence_interval(0.95)
        assert pair.interval is not None
        assert (pair.interval.low, pair.interval.high) == approx((interval.low, interval.high), rel=1e-9)
        assert pair.path == method


def test_pairing_tells_similar_policies_apart() -> None:
    """Their scores vary a lot, their difference does not: unpaired errors would miss it."""
    log = random_log(300, states=10**6, rewards=np.random.default_rng(1).normal(loc=5, size=300))
    pi = random_policies(log, 1)["policy 0"]
    shift = np.where(np.arange(3) == 0, 0.999, 0.0) * pi
    other = pi - shift * 0.01
    other[:, 1] += shift.sum(axis=1) * 0.01
    rewards = log.rewards + np.where(log.action_codes == 0, 3.0, 0.0)
    log = podium.Log(log.states, log.actions, rewards, action_space=log.action_space)
    result = compare_t(log, {"pi": pi, "other": other})
    pair = result.pair("pi", "other")
    terms = 3 * (rewards - rewards.mean()) * pi[np.arange(300), log.action_codes]
    assert pair.verdict == "better"
    assert pair.std_error is not None
    assert pair.std_error < terms.std(ddof=1) / sqrt(300) / 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["log", "column"])
def test_units_cluster_the_errors(method: str, how: str) -> None:
    """Against a loop over persons; a person with more rows weighs more in the mean, and is one sample."""
    rng = np.random.default_rng(3)
    rows = 120
    person = rng.integers(0, 15, rows)
    person[:30] = 3
    log = random_log(rows, states=10**6)
    columns = {
        "state": log.states,
        "action": log.actions,
        "reward": log.rewards + rng.normal(size=15)[person],
        "propensity": log.propensities,
        "person": [f"p{u}" for u in person],
    }
    log = podium.Log.from_columns(columns, state="state", unit="person" if how == "log" else None, actions=(0, 1, 2))
    policies = random_policies(log, 3)
    result = compare_t(log, policies, method, unit=None if how == "log" else "person")
    data = Data(log.states.tolist(), log.actions.tolist(), log.rewards.tolist(), [0, 1, 2], log.propensities.tolist())
    clustered = Data(**(vars(data) | {"units": columns["person"]}))
    for pair in result.pairs:
        a, b = policies[pair.a].tolist(), policies[pair.b].tolist()
        assert pair.std_error == approx(reference.std_error(clustered, a, b, Form(method)), rel=1e-10)
        assert pair.std_error != approx(reference.std_error(data, a, b, Form(method)), rel=1e-3)
        assert pair.interval is not None
        half = stats.t.ppf(0.975, 15 - 1) * pair.std_error
        assert pair.interval.high - pair.difference == approx(half, rel=1e-9)
    assert result.settings["unit"] == "person"
    assert "Rows of one person depend on each other" in str(result)


def test_a_unit_per_row_changes_nothing() -> None:
    log = random_log(80, states=10**6)
    alone = random_log(80, states=10**6, units=np.arange(80))
    for pair in compare_t(log, random_policies(log, 3)).pairs:
        other = compare_t(alone, random_policies(log, 3)).pair(pair.a, pair.b)
        assert (other.difference, other.std_error) == approx((pair.difference, pair.std_error), rel=1e-10)


def test_one_unit_shows_no_spread() -> None:
    log = random_log(30, units=["u"] * 30)
    for pair in compare_t(log, random_policies(log, 2)).pairs:
        assert (pair.std_error, pair.interval, pair.verdict) == (None, None, "cannot tell")
        assert pair.reasons == ("A single row (or unit) shows no spread to judge a difference by",)


def test_states_of_unequal_size_weigh_alike_in_the_per_state_form() -> None:
    """In each state one policy is better by the same 2, however many rows it has: no spread at all."""
    log = podium.Log(["x", "x", "x", "y"], ["a"] * 4, [2.0] * 4, propensities=[0.5] * 4, action_space=("a", "b"))
    policies = {"a": "constant:a", "half": [0.5] * 4}
    pair = compare_t(log, policies, "IPS", normalize="states").pairs[0]
    assert pair.difference == 2
    assert (pair.std_error, pair.interval, pair.verdict) == (None, None, "cannot tell")
    assert pair.reasons == ("Every row gives the same difference, so there is no spread to judge it by",)


# --- nearly equal policies -----------------------------------------------------------------------------------------


def exact_difference(log: podium.Log, a: np.ndarray, b: np.ndarray, method: str) -> tuple[Fraction, Fraction, float]:
    """Difference and mean absolute row difference in exact arithmetic, and the standard error."""
    n = len(log)
    rewards = [Fraction(r) for r in log.rewards.tolist()]
    baseline = sum(rewards) / n if method in ("LDE", "DRE") else Fraction(0)
    gaps = []
    for k in range(n):
        column = int(log.action_codes[k])
        weight = Fraction(log.n_actions) if method in ("LDE", "DiM") else 1 / Fraction(float(log.propensities[k]))
        gaps.append((rewards[k] - baseline) * weight * (Fraction(float(a[k, column])) - Fraction(float(b[k, column]))))
    mean = sum(gaps) / n
    variance = sum((g - mean) ** 2 for g in gaps) / (n - 1)
    return mean, sum(abs(g) for g in gaps) / n, sqrt(float(variance / n))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("mix", [1e-7, 1e-4])
def test_differences_of_nearly_equal_policies_are_exact(method: str, offset: float, mix: float) -> None:
    """Policies 1e-7 apart, also where every reward is near a million: nothing may cancel."""
    rng = np.random.default_rng(int(offset) + 3)
    log = random_log(150, states=10**6, rewards=rng.normal(size=150) + offset)
    pi, towards = random_policies(log, 2).values()
    other = (1 - mix) * pi + mix * towards
    pair = compare_t(log, {"pi": pi, "other": other, "towards": towards}, method).pair("other", "pi")
    mean, size, error = exact_difference(log, other, pi, method)
    assert abs(Fraction(pair.difference) - mean) <= Fraction(1e-9) * size
    if offset == 0 or method in ("DiM", "IPS"):
        assert pair.difference == approx(float(mean), rel=1e-9)
    assert pair.std_error == approx(error, rel=1e-9)


def test_terms_that_are_large_and_alike_lose_no_digits() -> None:
    """DiM on rewards near a million: every term is near 500,000, and the policies differ in the eighth digit."""
    rng = np.random.default_rng(2)
    log = random_log(150, actions=2, states=10**6, rewards=rng.normal(size=150) + 1e6)
    step = 1e-7 * rng.uniform(-1, 1.1, (150, 1)) * [1, -1]
    a, b = 0.5 + step, np.full((150, 2), 0.5)
    pair = compare_t(log, {"a": a, "b": b}, "DiM").pair("a", "b")
    mean, _, error = exact_difference(log, a, b, "DiM")
    assert pair.difference == approx(float(mean), rel=1e-12)
    assert pair.std_error == approx(error, rel=1e-9)


@pytest.mark.parametrize("baseline", ["mean", "state", "linear", "q"])
@pytest.mark.parametrize("method", ["LDE", "DRE"])
@pytest.mark.parametrize("rounded", [False, True])
def test_the_level_of_the_rewards_does_not_blur_differences(baseline: str, method: str, rounded: bool) -> None:
    """A million more on every reward: the same differences, also where probabilities sum to 1 only within 1e-6."""
    log = random_log(80)
    high = random_log(80, rewards=log.rewards + 1e6)
    q = np.random.default_rng(7).normal(size=(80, 3))
    policies = {}
    for k, (name, matrix) in enumerate(random_policies(log, 3).items()):
        matrix[:, 2] += (9e-7 if rounded else 0.0) * (k - 1)
        policies[name] = np.maximum(matrix, 0)
    policies["near"] = policies["policy 0"] * (1 - 1e-5) + policies["policy 1"] * 1e-5
    low_result = compare_t(log, policies, method, q if baseline == "q" else baseline)
    high_result = compare_t(high, policies, method, q + 1e6 if baseline == "q" else baseline)
    for pair in low_result.pairs:
        other = high_result.pair(pair.a, pair.b)
        assert other.difference == approx(pair.difference, rel=1e-4, abs=1e-8)
        assert other.std_error == approx(pair.std_error, rel=1e-4)
        assert other.verdict == pair.verdict


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_nearly_equal_policies_are_ranked_by_their_difference(offset: float) -> None:
    """A difference of 1e-8 that shows in every row is claimed, and the ranking agrees, whatever the rewards' level."""
    rng = np.random.default_rng(0)
    rewards = rng.choice([-1.0, 1.0], 200) + rng.normal(scale=0.01, size=200) + offset
    log = podium.Log(np.arange(200), np.zeros(200, dtype=int), rewards, action_space=(0, 1))
    step = np.where(rewards > rewards.mean(), 1e-8, -1e-8)
    base = np.full(200, 0.5)
    result = compare_t(log, {"worse": base - step, "base": base, "better": base + step})
    assert result.ranking == ["better", "base", "worse"]
    assert [p.rank for p in result.policies] == [1, 2, 3]
    assert [p.verdict for p in result.pairs] == ["better"] * 3
    assert result.pair("better", "base").difference == approx(2e-8, rel=0.05)


@pytest.mark.parametrize("baseline", ["mean", "state", "linear", 0.3])
@pytest.mark.parametrize("method", METHODS)
def test_identical_policies_cannot_be_told_apart(method: str, baseline: Any) -> None:
    log = random_log(60)
    pi = random_policies(log, 2)
    twins = {"a": pi["policy 0"], "other": pi["policy 1"], "b": pi["policy 0"].copy()}
    result = compare_t(log, twins, method, baseline)
    pair = result.pair("a", "b")
    assert (pair.difference, pair.std_error, pair.interval) == (0, None, None)
    assert (pair.p_better, pair.p_adjusted, pair.verdict) == (0.5, 1, "cannot tell")
    assert pair.reasons == ("Policies with equal scores cannot be told apart",)
    assert result.estimates["a"] == result.estimates["b"]
    alone = compare_t(log, {"a": twins["a"], "other": twins["other"]}, method, baseline)
    best, before = ({p.name: p.p_best for p in found.policies} for found in (result, alone))
    assert best == {"other": before["other"], "a": before["a"] / 2, "b": before["a"] / 2}  # twins share what one had


@pytest.mark.parametrize("baseline", ["mean", "state", "linear", "own mean"])
@pytest.mark.parametrize("reward", [0.1, 1 / 3, -7.3, 1e6 + 0.1, 0.0])
@pytest.mark.parametrize("method", ["LDE", "DRE"])
def test_equal_rewards_tell_nothing(baseline: Any, reward: float, method: str) -> None:
    """The mean of 0.1 and 0.1 and 0.1 is not quite 0.1; that must not become a claim."""
    rng = np.random.default_rng(0)
    for rows in (2, 3, 7, 59):
        share = rng.uniform(0.0, 0.1, rows)
        policies = {
            "mostly": np.column_stack([0.6 + share, 0.4 - share]),
            "rarely": np.column_stack([0.3 - share, 0.7 + share]),
        }
        rewards = np.full(rows, reward)
        log = podium.Log(np.arange(rows) % 5, ["a"] * rows, rewards, [0.7] * rows, action_space=("a", "b"))
        b = float(rewards.mean()) if baseline == "own mean" else baseline
        result = compare_t(log, policies, method, b, duplicates="all")
        assert [p.rank for p in result.policies] == [1, 1]
        assert [p.p_best for p in result.policies] == [None, None]
        assert (result.pairs[0].difference, result.pairs[0].verdict) == (0, "cannot tell")
        for p in result.policies:
            assert p.score == approx(reward, rel=1e-12)


def test_one_row() -> None:
    log = podium.Log(["x"], ["a"], [2.0], propensities=[0.5], action_space=("a", "b"))
    result = compare_t(log, {"a": "constant:a", "b": "constant:b"}, "IPS", bootstrap=10)
    pair = result.pairs[0]
    assert result.estimates["a"] == {"LDE": 2.0, "DRE": 2.0, "IPS": 4.0, "DiM": 2.0}
    assert (pair.difference, pair.std_error, pair.interval) == (4.0, None, None)
    assert (pair.p_better, pair.p_adjusted, pair.verdict) == (0.5, 1.0, "cannot tell")
    assert [(p["p_best"], p["regret"]) for p in result.to_dict()["policies"]] == [(None, None)] * 2
    assert [row[-1] for row in result.ranking_table().rows] == ["-", "-"]
    json.dumps(result.to_dict(), allow_nan=False)
    assert "cannot tell" in str(result)


def test_two_hundred_policies() -> None:
    log = random_log(500)
    result = compare_t(log, random_policies(log, 200))
    assert len(result.policies) == 200
    assert len(result.pairs) == 200 * 199 // 2
    assert sum(p.p_best for p in result.policies) == approx(1)
    for pair in result.pairs[::997]:
        gap = (result.estimates[pair.a]["LDE"] or 0) - (result.estimates[pair.b]["LDE"] or 0)
        assert pair.difference == approx(3 * gap, abs=1e-12)
    assert len(result.pairs_table().rows) == 199 + 198  # against the best, and between neighbours
    assert len(result.pairs_table(every=True).rows) == len(result.pairs)


# --- verdicts ------------------------------------------------------------------------------------------------------


def test_claims_need_an_adjusted_p_value_below_the_level() -> None:
    log, policies = telling_log(8)
    for level in (0.5, 0.8, 0.95, 0.999):
        for joint in (False, True):
            result = compare_t(log, policies, level=level, joint=joint)
            p = np.array([2 * min(pair.p_better, 1 - pair.p_better) for pair in result.pairs])
            if not joint:
                expected = np.maximum(p, benjamini_hochberg(p) / RATE)
                assert [pair.p_adjusted for pair in result.pairs] == approx(expected.tolist(), rel=1e-9)
            for pair in result.pairs:
                assert (pair.verdict != "cannot tell") == (pair.p_adjusted <= 1 - level)
                assert bool(pair.reasons) == (pair.verdict == "cannot tell")
                assert pair.interval is not None
                if pair.verdict == "better":
                    assert pair.interval.low > 0
                assert pair.adjusted is not None
                decides = pair.adjusted.low > 0 or pair.adjusted.high < 0
                assert decides == (pair.verdict != "cannot tell")
                assert pair.adjusted_level is not None
                assert pair.adjusted_level >= level
    together = compare_t(log, policies, level=0.9, joint=True).settings["multiplicity"]
    assert together == "all claims hold together with probability 0.9 (max-T)"
    rule = (
        "a claim needs an interval that excludes 0 (p <= {}) and a false discovery rate of at most {} among all pairs"
    )
    for level, numbers in ((0.95, ("0.05", "0.15")), (0.9, ("0.1", "0.3")), (0.5, ("0.5", "1"))):
        result = compare_t(log, policies, level=level)
        assert result.settings["multiplicity"] == rule.format(*numbers) + " (Benjamini-Hochberg)"
        assert f"Verdicts: paired t at level {level}; {result.settings['multiplicity']}" in result.header()


def test_joint_claims_are_fewer() -> None:
    log, policies = telling_log(12)
    each = {(p.a, p.b) for p in compare_t(log, policies).pairs if p.verdict != "cannot tell"}
    joint = {(p.a, p.b) for p in compare_t(log, policies, joint=True).pairs if p.verdict != "cannot tell"}
    assert joint < each
    lost = next(p for p in compare_t(log, policies, joint=True).pairs if (p.a, p.b) in each - joint)
    assert lost.reasons == ("Sure enough alone, but not among 66 pairs judged together",)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values(p: list[float]) -> None:
    """Benjamini-Hochberg as in SciPy."""
    values = np.array(p)
    assert benjamini_hochberg(values) == approx(stats.false_discovery_control(values))


@pytest.mark.parametrize("method", METHODS)
def test_p_best_of_two_is_p_better(method: str) -> None:
    log = random_log(40)
    result = compare_t(log, random_policies(log, 2), method)
    pair = result.pair(result.best, result.ranking[1])
    assert result.policies[0].p_best == approx(pair.p_better, abs=0.015)


@pytest.mark.parametrize("method", METHODS)
def test_p_best_sums_to_one(method: str) -> None:
    log = random_log(40)
    result = compare_t(log, random_policies(log, 5), method)
    assert sum(p.p_best for p in result.policies) == approx(1)
    assert all(0 <= p.p_best <= 1 for p in result.policies)
    again = compare_t(log, random_policies(log, 5), method)
    assert [p.p_best for p in again.policies] == [p.p_best for p in result.policies]


# --- bootstrap -----------------------------------------------------------------------------------------------------


def resampled_width(gaps: np.ndarray, draws: int = 4000) -> float:
    """Width of the 95% percentile interval of the mean, by plain resampling of rows."""
    rng = np.random.default_rng(99)
    means = [gaps[rng.integers(len(gaps), size=len(gaps))].mean() for _ in range(draws)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(high - low)


def test_bootstrap_resamples_the_same_rows_for_every_policy() -> None:
    log = random_log(80, states=10**6)
    policies = random_policies(log, 3)
    result = compare_t(log, policies, bootstrap=4000)
    logged = {name: matrix[np.arange(80), log.action_codes] for name, matrix in policies.items()}
    for pair in result.pairs:
        gaps = 3 * (log.rewards - log.rewards.mean()) * (logged[pair.a] - logged[pair.b])
        assert pair.bootstrap is not None
        width = pair.bootstrap.high - pair.bootstrap.low
        assert width == approx(resampled_width(gaps), rel=0.06)
        assert pair.bootstrap.low < pair.difference < pair.bootstrap.high
    assert "bootstrap" in str(result)


def test_bootstrap_resamples_units_whole() -> None:
    """Every person repeats one row ten times: ten times the rows, but no more to resample."""
    log = random_log(40, states=10**6)
    tenfold = np.repeat(np.arange(40), 10)
    repeated = podium.Log(
        np.arange(400), log.actions[tenfold], log.rewards[tenfold], units=tenfold, action_space=log.action_space
    )
    policies = {name: matrix[tenfold] for name, matrix in random_policies(log, 2).items()}
    plain = compare_t(log, random_policies(log, 2), bootstrap=4000).pairs[0]
    clustered = compare_t(repeated, policies, bootstrap=4000).pairs[0]
    assert plain.bootstrap is not None
    assert clustered.bootstrap is not None
    width = plain.bootstrap.high - plain.bootstrap.low
    assert clustered.bootstrap.high - clustered.bootstrap.low == approx(width, rel=0.06)
    assert clustered.difference == approx(plain.difference)


def test_bootstrap_is_reproducible() -> None:
    log = random_log(50)
    policies = random_policies(log, 3)

    def intervals(seed: int) -> list[Any]:
        return [p.bootstrap for p in compare_t(log, policies, bootstrap=50, seed=seed).pairs]

    assert intervals(4) == intervals(4)
    assert intervals(4) != intervals(5)
    assert all(p.bootstrap is None for p in compare_t(log, policies).pairs)


def test_bootstrap_of_many_rows_by_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than buckets are summed at random first; the intervals stay about the same."""
    log = random_log(900, states=10**6)
    policies = random_policies(log, 3)
    exact = compare_t(log, policies, bootstrap=2000)
    monkeypatch.setattr(bootstrap_module, "BUCKETS", 200)
    rough = compare_t(log, policies, bootstrap=2000)
    for pair in exact.pairs:
        other = rough.pair(pair.a, pair.b)
        assert pair.bootstrap is not None
        assert other.bootstrap is not None
        width = pair.bootstrap.high - pair.bootstrap.low
        assert other.bootstrap.high - other.bootstrap.low == approx(width, rel=0.2)
        assert other.bootstrap.low == approx(pair.bootstrap.low, abs=0.15 * width)


def test_bootstrap_of_identical_policies_is_a_point() -> None:
    log = random_log(30)
    pi = random_policies(log, 1)["policy 0"]
    pair = compare_t(log, {"a": pi, "b": pi}, bootstrap=100).pairs[0]
    assert pair.bootstrap == podium.Interval(0.0, 0.0)


# --- how the answer is given ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.33695, 0.12345, 0.0125, 0.125, 0.001, 0.999, 0.9, 0.1, 1.0, 2.5e-05, 0.5, 0.00015])
def test_the_last_bit_of_a_number_is_not_seen(value: float) -> None:
    """The mean of round numbers may lie a bit above or below the middle of what can be printed."""
    near = [value, nextafter(value, 0.0), nextafter(value, 2.0), value * (1 + 1e-15), value * (1 - 1e-15)]
    for show in (number, percent, share):
        assert len({show(x) for x in near}) == 1


def test_json_follows_the_contract() -> None:
    log = random_log(50)
    result = compare_t(log, random_policies(log, 3), bootstrap=20)
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(content) >= {"podium", "log", "settings", "policies", "pairs", "warnings", "unavailable", "sample"}
    assert content["podium"] == podium.__version__
    assert content["log"] == {
        "rows": 50,
        "distinct": len(log.latest),
        "states": log.n_states,
        "actions": 3,
        "propensities": "logged",
        "state_columns": ["state"],
    }
    given_settings = {"estimator": "LDE", "baseline": "mean", "level": 0.95, "engine": "memory", "seed": 0}
    assert content["settings"].items() >= given_settings.items()
    assert "verdicts" in content["settings"]
    for p in content["policies"]:
        assert list(p) == ["name", "rank", "rank_low", "rank_high", "score", "p_best", "regret", "estimates"]
        assert set(p["estimates"]) == set(METHODS)
        assert isinstance(p["rank"], int)
    contract = {"a", "b", "difference", "low", "high", "p_better", "p_adjusted", "verdict", "path", "reasons"}
    for p, pair in zip(content["pairs"], result.pairs, strict=True):
        assert set(p) == contract | {
            "std_error", "bootstrap_low", "bootstrap_high", "source", "reason_facts", "gamma", "hidden_cause",
            "adjusted_low", "adjusted_high", "adjusted_level", "lift", "practically_the_same",
        }  # fmt: skip
        assert p["difference"] == pair.difference  # at full precision
        assert p["verdict"] in ("better", "worse", "cannot tell")
        assert isinstance(p["reasons"], list)


def test_json_has_null_where_there_is_no_number() -> None:
    log = podium.Log(["x"], ["a"], [1.0])
    content = compare_t(log, {"a": "constant:a", "u": "uniform"}, actions=["a", "b"]).to_dict()
    json.dumps(content, allow_nan=False)
    assert content["policies"][0]["estimates"] == {"LDE": 1.0, "DRE": None, "IPS": None, "DiM": 1.0}
    assert (content["pairs"][0]["low"], content["pairs"][0]["high"]) == (None, None)
    assert set(content["unavailable"]) == {"DRE", "IPS", "P(best)"}
    assert content["log"]["propensities"] == "none"


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
@pytest.mark.parametrize("propensities", [True, False])
def test_frames(backend: str, kind: type, propensities: bool) -> None:
    log = random_log(30) if propensities else random_log(30, propensities=None)
    policies = random_policies(log, 3)
    result = compare_t(log, policies)
    frame = result.to_frame(backend)
    assert isinstance(frame, kind)
    columns = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert columns == ["name", "rank", "rank_low", "rank_high", "score", "p_best", "regret", *METHODS]
    table = pd.DataFrame({name: np.asarray(frame[name]) for name in columns})
    assert table["name"].tolist() == result.ranking
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["score"].tolist() == [p.score for p in result.policies]
    assert table["IPS"].isna().all() != propensities
    estimates = podium.evaluate(log, policies).to_frame(backend)
    assert isinstance(estimates, kind)
    states = podium.compare_states(log, policies).to_frame(backend)
    assert isinstance(states, kind)
    assert len(states) == log.n_states


def test_unknown_frame_library() -> None:
    log = random_log(10)
    message = re.escape("unknown frame library 'excel'\n\nHint: use one of pandas, polars, pyarrow.")
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        compare_t(log, random_policies(log, 2)).to_frame(backend="excel")


NAMES = {
    "short": ["a", "b", "c"],
    "long": ["the policy that the clinic has used since spring", "a candidate of the data team", "x" * 100],
    "wide": ["政策" * 30, "политика № 2", "naïve\tbaseline\nnew"],
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("scale", [1.0, 1e7, 1e-7])
@pytest.mark.parametrize("propensities", [True, False])
def test_what_is_printed_fits_into_80_columns(names: str, scale: float, propensities: bool) -> None:
    log = random_log(1500, rewards=np.random.default_rng(0).normal(size=1500) * scale)
    if not propensities:
        log = random_log(1500, rewards=log.rewards, propensities=None)
    policies = dict(zip(NAMES[names], random_policies(log, 3).values(), strict=True))
    shown = [
        compare_t(log, policies, bootstrap=20),
        compare_t(log, policies, joint=True, duplicates="all", lower_is_better=True),
        podium.evaluate(log, policies),
        podium.compare_states(log, policies, true_values=np.zeros((12, 3))),
    ]
    for result in shown:
        for line in repr(result).splitlines():
            assert columns_wide(line) <= 80
            assert line.isprintable()


def test_what_is_printed_says_what_matters() -> None:
    log, policies = strong_log()
    lines = repr(compare_t(log, policies)).splitlines()
    assert lines[0] == "two is better than one and zero (>99.9% sure)."
    assert any(line.startswith("Log (memory): 60 rows, 60 distinct (state, action), 60 states,") for line in lines)
    assert any(line.startswith("Ranked by LDE with baseline mean; judged by paired t (LDE) at level") for line in lines)
    full = compare_t(log, policies).text(verbose=True).splitlines()
    assert "Ranked by LDE with baseline mean" in full
    assert any(line.startswith("Verdicts: paired t at level 0.95") for line in full)
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("Ranking")) :]
    assert table[1].split() == ["rank", "policy", *METHODS, "P(best)"]
    assert [line.split()[1] for line in table[2:5]] == ["two", "one", "zero"]
    assert "better" in "".join(table)


def test_many_policies_show_the_pairs_that_matter() -> None:
    log = random_log(100)
    result = compare_t(log, random_policies(log, 9))
    text = repr(result)
    assert "Pairs against the best and between neighbours (15 of 36)" in text
    assert len(result.to_dict()["pairs"]) == 36


def test_reversed_pairs() -> None:
    log, policies = strong_log()
    result = compare_t(log, policies, bootstrap=20)
    pair = result.pairs[0]
    back = pair.reversed()
    assert (back.a, back.b) == (pair.b, pair.a)
    assert back.difference == -pair.difference
    assert back.std_error == pair.std_error
    assert pair.interval is not None
    assert back.interval == podium.Interval(-pair.interval.high, -pair.interval.low)
    assert pair.bootstrap is not None
    assert back.bootstrap == podium.Interval(-pair.bootstrap.high, -pair.bootstrap.low)
    assert (pair.verdict, back.verdict) == ("better", "worse")
    assert back.p_better == 1 - pair.p_better
    assert back.p_adjusted == pair.p_adjusted
    again = back.reversed()
    assert again.p_better == approx(pair.p_better)
    assert (again.interval, again.difference, again.verdict) == (pair.interval, pair.difference, pair.verdict)


def test_pairs_by_name() -> None:
    log, policies = strong_log()
    result = compare_t(log, policies)
    assert result.pair("two", "zero") in result.pairs
    assert result.pair("zero", "two") == result.pair("two", "zero").reversed()
    for a, b in (("two", "three"), ("two", "two")):
        message = re.escape(f"no pair {a!r} against {b!r}\n\nHint: the policies are two, one, zero.")
        with pytest.raises(podium.PodiumError, match=f"^{message}$"):
            result.pair(a, b)


# --- what cannot be used -------------------------------------------------------------------------------------------


def test_methods_without_propensities() -> None:
    log = random_log(30, propensities=None)
    result = compare_t(log, random_policies(log, 2))
    for method in ("DRE", "IPS"):
        reason = f"{method} needs the probability of each logged action, and the log has none"
        assert result.unavailable[method] == reason
        assert result.estimates["policy 0"][method] is None
        assert f"{method} is not available: {method} needs" in repr(result)
    assert set(result.unavailable) == {"DRE", "IPS"}
    table = podium.evaluate(log, random_policies(log, 2), ["IPS", "DiM"])
    assert table.unavailable == {"IPS": "IPS needs the probability of each logged action, and the log has none"}


@pytest.mark.parametrize("method", ["DRE", "IPS"])
def test_a_comparison_by_a_method_that_cannot_be_used_is_refused(method: str) -> None:
    log = random_log(30, propensities=None)
    message = re.escape(
        f"{method} needs the probability of each logged action, and the log has none\n\n"
        "Hint: add a propensity column or give the behaviour policy; LDE and DiM need no propensities."
    )
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        compare_t(log, random_policies(log, 2), method)
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        podium.compare_states(log, random_policies(log, 2), method)
    behavior = np.full((30, 3), 1 / 3)
    assert compare_t(log, random_policies(log, 2), method, behavior=behavior).unavailable == {}


REFUSED = {
    "level": ({"level": 1.0}, "level must lie between 0 and 1; it is 1.0", "use level=0.95 for 95% intervals."),
    "estimator": (
        {"estimator": "DM"},
        "'DM' could be two methods",
        "the paper's Direct Method is DiM; the model-based direct method of other libraries is DirectModel.",
    ),
    "bootstrap": (
        {"bootstrap": -1},
        "bootstrap must be a whole number from 0 to 1,000,000; it is -1",
        "use bootstrap=1000.",
    ),
    "normalize": (
        {"normalize": "units"},
        "normalize must be 'rows' or 'states'; it is 'units'",
        "use normalize='rows'.",
    ),
    "duplicates": (
        {"duplicates": "first"},
        "duplicates must be 'latest' or 'all'; it is 'first'",
        "use duplicates='latest'.",
    ),
    "one policy": (
        {"policies": {"only": "uniform"}},
        "a comparison needs at least two policies; there is 1: only",
        "add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
    ),
}


@pytest.mark.parametrize(("options", "message", "hint"), REFUSED.values(), ids=REFUSED)
def test_refused(options: dict[str, Any], message: str, hint: str) -> None:
    log = random_log(20)
    arguments = {"policies": random_policies(log, 2)} | options
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(f'{message}{chr(10) * 2}Hint: {hint}')}$"):
        compare_t(log, **arguments)


def test_estimators_are_found_in_any_case() -> None:
    log = random_log(20)
    assert compare_t(log, random_policies(log, 2), "dim").settings["estimator"] == "DiM"
    assert compare_t(log, random_policies(log, 2), podium.DRE).settings["estimator"] == "DRE"


def test_a_state_per_row_is_warned_about() -> None:
    log, policies = strong_log()
    assert compare_t(log, policies).warnings == (
        "the state column 'state' looks like an ID (60 different values in 60 rows): a state that never comes back "
        "teaches nothing about other rows. Compare without it (name another column with --state, or add a constant "
        "column).",
    )
    assert compare_t(random_log(30), random_policies(random_log(30), 2)).warnings == ()


# --- state by state ------------------------------------------------------------------------------------------------
#
#  state x: a pays 1, b pays 0; state y: only b was logged and pays 1; the mean reward is 2/3.
#  LDE, policy "a": x 2/3 + (1/3) / 2 = 5/6, y 2/3.  Policy "b": x 2/3 + (-2/3) / 2 = 1/3, y 2/3 + 1/3 = 1.

TWO_STATES = podium.Log(["x", "x", "y"], ["a", "b", "b"], [1.0, 0.0, 1.0])
BOTH = {"a": "constant:a", "b": "constant:b"}


def test_values_and_signs_by_state() -> None:
    result = podium.compare_states(TWO_STATES, BOTH)
    assert result.states == ("x", "y")
    assert result.rows.tolist() == [2, 1]
    assert result.values == approx(np.array([[5 / 6, 1 / 3], [2 / 3, 1.0]]))
    assert result.pairs == [("a", "b")]
    assert result.signs.tolist() == [[1], [-1]]
    assert podium.compare_states(TWO_STATES, BOTH, lower_is_better=True).signs.tolist() == [[-1], [1]]
    assert result.share_below_minus_delta is None


def test_signs_of_every_pair() -> None:
    log = random_log(80)
    policies = random_policies(log, 4) | {"twin": random_policies(log, 1)["policy 0"]}
    for method in METHODS:
        result = podium.compare_states(log, policies, method)
        assert result.pairs == list(combinations(policies, 2))
        names = list(policies)
        for n, (a, b) in enumerate(result.pairs):
            gap = result.values[:, names.index(a)] - result.values[:, names.index(b)]
            clear = np.abs(gap) > 1e-12
            assert (result.signs[clear, n] == np.sign(gap[clear])).all()
        assert not result.signs[:, result.pairs.index(("policy 0", "twin"))].any()


def test_values_that_differ_by_rounding_have_no_sign() -> None:
    policies = {"sum": np.tile([0.1 + 0.2, 1 - (0.1 + 0.2)], (3, 1)), "plain": np.tile([0.3, 0.7], (3, 1))}
    for method in ("LDE", "DiM"):
        assert not podium.compare_states(TWO_STATES, policies, method).signs.any()


def test_mispredicted_states() -> None:
    """Products of estimated and true difference: x 1/2 x D, y -1/3 x D; counted at or below -delta, strictly at 0."""

    def share(truth: Any, delta: float = 0.0, **options: Any) -> float | None:
        result = podium.compare_states(TWO_STATES, BOTH, true_values=truth, delta=delta, **options)
        return result.share_below_minus_delta

    assert share([[1.0, 0.0], [0.0, 1.0]]) == 0.0  # both states right
    assert share([[0.0, 1.0], [0.0, 1.0]]) == 0.5  # x wrong: -1/2
    assert share([[0.0, 1.0], [1.0, 0.0]]) == 1.0  # both wrong: -1/2 and -1/3
    assert share([[0.0, 1.0], [1.0, 0.0]], delta=0.4) == 0.5
    assert share([[0.0, 1.0], [1.0, 0.0]], delta=0.5) == 0.5  # -1/2 <= -1/2 counts
    assert share([[0.0, 1.0], [1.0, 0.0]], delta=0.6) == 0.0
    assert share([[1.0, 1.0], [1.0, 1.0]]) == 0.0  # a true tie is no misprediction
    assert share({"y": [1.0, 0.0], "x": [0.0, 1.0]}) == 1.0
    assert share([[0.0, 1.0], [1.0, 0.0]], lower_is_better=True) == 1.0  # a product has no direction


def test_mispredictions_of_several_pairs_are_pooled() -> None:
    """Three policies, two states: six products. The twin of "b" repeats its two, and ties with it twice."""
    policies = BOTH | {"b too": "constant:b"}
    truth = {"x": [0.0, 1.0, 1.0], "y": [0.0, 1.0, 1.0]}
    result = podium.compare_states(TWO_STATES, policies, true_values=truth)
    assert result.share_below_minus_delta == approx(2 / 6)
    assert "Mispredicted" in repr(result)


def test_states_in_json() -> None:
    log = podium.Log([("x", 1), ("x", 2)], ["a", "b"], [1.0, 0.0])
    content = json.loads(json.dumps(podium.compare_states(log, BOTH).to_dict(), allow_nan=False))
    assert set(content) >= {"states", "share_below_minus_delta"}
    assert content["states"] == [
        {"state": {"state[0]": "x", "state[1]": 1}, "rows": 1, "values": {"a": 1.0, "b": 0.5}, "signs": {"a > b": 1}},
        {"state": {"state[0]": "x", "state[1]": 2}, "rows": 1, "values": {"a": 0.5, "b": 0.0}, "signs": {"a > b": 1}},
    ]
    single = podium.compare_states(TWO_STATES, BOTH).to_dict()["states"][0]
    assert single["state"] == "x"


STATES_REFUSED = {
    "negative delta": (
        {"delta": -1.0},
        "delta must be a number from 0 on; it is -1.0",
        "give a number as delta.",
    ),
    "shape": (
        {"true_values": [[1.0, 2.0]]},
        "true_values must be 2 states x 2 policies, finite; its shape is (1, 2)",
        "rows follow log.state_labels, columns the policies.",
    ),
    "nan": (
        {"true_values": [[1.0, float("nan")], [1.0, 2.0]]},
        "true_values must be finite numbers",
        "give true_values as a list or an array of finite numbers.",
    ),
    "missing state": (
        {"true_values": {"x": [1.0, 2.0]}},
        "true_values lacks the state 'y'",
        "name every state of the log.",
    ),
}


@pytest.mark.parametrize(("options", "message", "hint"), STATES_REFUSED.values(), ids=STATES_REFUSED)
def test_states_refused(options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(f'{message}{chr(10) * 2}Hint: {hint}')}$"):
        podium.compare_states(TWO_STATES, BOTH, **options)


def test_one_policy_by_state() -> None:
    result = podium.compare_states(TWO_STATES, {"a": "constant:a"})
    assert result.pairs == []
    assert result.signs.shape == (2, 0)
    assert "States with the most rows" in repr(result)
