"""Verdicts: each procedure against plain loops, its size, its symmetries, and what many claims support together."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import PROCEDURES, sample
from scipy import stats

import podium
from podium.verdicts import classical
from podium.verdicts.judgement import Judgement, critical
from podium.verdicts.multiplicity import (
    benjamini_hochberg,
    best_and_regret,
    gaussian_draws,
    joint_covariance,
    max_t,
    two_sided,
)
from podium.verdicts.pairs import pair_indices

approx = pytest.approx
CLASSICAL = ("paired t", "bootstrap t", "sign flip")
WITHOUT_PROPENSITIES = [p for p in PROCEDURES if p != "doubly robust"]


def row_gaps(log: podium.Log, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What each row says of the difference by LDE, in units of reward; no (state, action) may repeat."""
    assert len(log.latest) == len(log)
    every = np.arange(len(log))
    gap = a[every, log.action_codes] - b[every, log.action_codes]
    return log.n_actions * (log.rewards - log.rewards.mean()) * gap


def judgement_of(log: podium.Log, policies: Any, **options: Any) -> Judgement:
    return podium.compare(log, policies, **options).basis.judgement


# --- the classical procedures --------------------------------------------------------------------------------------


def test_paired_t_is_scipys() -> None:
    """Row by row, policy a against policy b: a related t test."""
    log, policies = sample()
    result = podium.compare(log, policies, "LDE", verdicts="paired t")
    every = np.arange(len(log))
    terms = {
        name: 3 * (log.rewards - log.rewards.mean()) * matrix[every, log.action_codes]
        for name, matrix in policies.items()
    }
    for pair in result.pairs:
        t = stats.ttest_rel(terms[pair.a], terms[pair.b])
        assert pair.p_better == approx(stats.ttest_rel(terms[pair.a], terms[pair.b], alternative="less").pvalue)
        assert two_sided(np.array([pair.p_better]))[0] == approx(t.pvalue)
        assert pair.interval is not None
        inside = t.confidence_interval(0.95)
        assert (pair.interval.low, pair.interval.high) == approx((inside.low, inside.high))
        assert pair.path == "LDE"
    assert "rare rows that matter may be unseen" in result.settings["assumes"]


def test_bootstrap_t_is_a_loop() -> None:
    """Resample rows, studentise each draw, and count draws of |t*| at or beyond |t|."""
    log, policies = sample(rows=12, count=2, seed=3)
    a, b = policies.values()
    gaps = row_gaps(log, a, b)
    n = len(gaps)
    rng = np.random.default_rng([0, 2])
    picks = rng.integers(n, size=(classical.DRAWS, n))
    t_star = []
    for draw in picks:
        drawn = gaps[draw]
        error = drawn.std(ddof=1) / sqrt(n)
        t_star.append(abs(drawn.mean() - gaps.mean()) / error if error > 1e-12 else np.inf)
    t = gaps.mean() / (gaps.std(ddof=1) / sqrt(n))
    one_sided = (1 + sum(x >= abs(t) for x in t_star)) / (1 + len(t_star)) / 2
    pair = podium.compare(log, policies, "LDE", verdicts="bootstrap t").pair("p0", "p1")
    assert pair.p_better == approx(1 - one_sided if t > 0 else one_sided, abs=1e-12)
    reach = np.sort(t_star)[-int(0.05 * (1 + len(t_star)))]
    assert pair.interval is not None
    assert pair.interval.high - pair.difference == approx(reach * gaps.std(ddof=1) / sqrt(n))


def test_sign_flip_is_a_loop() -> None:
    log, policies = sample(rows=12, count=2, seed=4)
    a, b = policies.values()
    gaps = row_gaps(log, a, b)
    n = len(gaps)
    signs = np.random.default_rng([0, 3]).integers(0, 2, size=(classical.DRAWS, n)) * 2 - 1
    beyond = sum(abs((s * gaps).mean()) >= abs(gaps.mean()) - 1e-12 for s in signs)
    one_sided = (1 + beyond) / (1 + len(signs)) / 2
    pair = podium.compare(log, policies, "LDE", verdicts="sign flip").pair("p0", "p1")
    assert pair.p_better == approx(1 - one_sided if gaps.mean() > 0 else one_sided, abs=1e-12)


def test_sign_flip_near_all_flips() -> None:
    """2,000 random flips of 10 rows come near the 1,024 flips that there are."""
    log, policies = sample(rows=10, count=2, seed=5)
    gaps = row_gaps(log, *policies.values())
    flips = [[1 - 2 * ((k >> n) & 1) for n in range(10)] for k in range(1024)]
    exact = np.mean([abs(np.dot(s, gaps)) >= abs(gaps.sum()) - 1e-9 for s in flips])
    pair = podium.compare(log, policies, "LDE", verdicts="sign flip").pair("p0", "p1")
    assert two_sided(np.array([pair.p_better]))[0] == approx(exact, abs=0.04)


@pytest.mark.parametrize("procedure", CLASSICAL)
def test_units_are_resampled_whole(procedure: str) -> None:
    """Each person repeats one row: five times the rows tell nothing more."""
    log, policies = sample(rows=30, count=2, seed=2)
    fold = np.tile(np.arange(30), 5)
    repeated = podium.Log(
        np.arange(150), log.actions[fold], log.rewards[fold], units=fold, action_space=log.action_space
    )
    alone = podium.compare(log, policies, "LDE", verdicts=procedure).pair("p0", "p1")
    again = podium.compare(repeated, {name: m[fold] for name, m in policies.items()}, "LDE", verdicts=procedure).pair(
        "p0", "p1"
    )
    assert (again.difference, again.std_error) == approx((alone.difference, alone.std_error))
    assert again.p_better == approx(alone.p_better, abs=1e-9)


@pytest.mark.parametrize("procedure", CLASSICAL)
def test_size_without_a_difference(procedure: str) -> None:
    """Where no action pays more, p values are about uniform: 10% of them lie below .1."""
    below = []
    for seed in range(200):
        log, policies = sample(rows=40, count=2, seed=1000 + seed, effect=0.0, knows="none")
        pair = podium.compare(log, policies, "LDE", verdicts=procedure).pairs[0]
        below.append(2 * min(pair.p_better, 1 - pair.p_better) <= 0.1)
    assert 0.04 <= np.mean(below) <= 0.165  # 3 standard errors


# --- probabilities and intervals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_intervals_and_probabilities_agree(procedure: str, level: float) -> None:
    """c lies outside the interval iff it is exceeded with probability beyond (1 +- level) / 2."""
    log, policies = sample(rows=70, count=4)
    judgement = judgement_of(log, policies, estimator="LDE", verdicts=procedure)
    low, high = judgement.interval(level)
    assert judgement.usable.any()
    steps = np.linspace(-3, 3, 61)
    for c in np.concatenate([steps, low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6]):
        p = judgement.p_above(float(c))
        outside = (c < low) | (c > high)
        surely = (p >= (1 + level) / 2 - 1e-12) | (p <= (1 - level) / 2 + 1e-12)
        assert (outside == surely)[judgement.usable].all()
        assert ((p > 0.5) == (c < judgement.difference))[judgement.usable & (np.abs(p - 0.5) > 1e-9)].all()


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_p_above_falls_with_the_threshold(procedure: str) -> None:
    log, policies = sample(rows=70, count=4)
    judgement = judgement_of(log, policies, estimator="LDE", verdicts=procedure)
    p = np.array([judgement.p_above(float(c)) for c in np.linspace(-4, 4, 81)])
    assert (np.diff(p, axis=0) <= 1e-12).all()
    assert p.min() >= 0
    assert p.max() <= 1


def test_where_nothing_is_known() -> None:
    nothing = Judgement(
        procedure="paired t",
        difference=np.array([1.0, 2.0, 3.0]),
        std_error=np.array([np.nan, 0.0, 1.0]),
        freedom=np.array([5.0, 5.0, 5.0]),
        path=("LDE",) * 3,
        silent=("", "", "because"),
        values=np.zeros(3),
    )
    assert nothing.p_above().tolist() == [0.5] * 3
    assert np.isnan(nothing.interval(0.95)).all()


def test_critical_values_belong_to_p_values() -> None:
    reference = np.random.default_rng(0).exponential(size=(5, 200))
    for level in (0.5, 0.8, 0.95, 0.99):
        reach = critical(reference, level)
        for row, r in zip(reference, reach, strict=True):
            assert (1 + (row >= r).sum()) / 201 > 1 - level + 1e-12
            assert (1 + (row > r).sum()) / 201 <= 1 - level + 1e-12
    assert critical(reference, 0.999).tolist() == [np.inf] * 5  # 200 draws cannot show 1 in 1,000


# --- many claims ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=15))
def test_benjamini_hochberg_is_scipys(p: list[float]) -> None:
    assert benjamini_hochberg(np.array(p)) == approx(stats.false_discovery_control(p))


def pair_p(z: np.ndarray) -> np.ndarray:
    return np.asarray(2 * stats.norm.sf(np.abs(z)))


COVARIANCE = np.array([[1.0, 0.5, 0.0, 0.2], [0.5, 2.0, 0.3, 0.0], [0.0, 0.3, 0.5, 0.1], [0.2, 0.0, 0.1, 1.5]])
FIRST, SECOND = np.triu_indices(4, 1)
ERRORS = np.sqrt(np.diag(COVARIANCE)[FIRST] + np.diag(COVARIANCE)[SECOND] - 2 * COVARIANCE[FIRST, SECOND])


def test_max_t_keeps_all_claims_right_together() -> None:
    """Without any difference, some pair is claimed in about 5% of logs, and not in far fewer."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(COVARIANCE)
    some = []
    for seed in range(600):
        values = root @ rng.standard_normal(4)
        some.append(max_t(pair_p((values[FIRST] - values[SECOND]) / ERRORS), COVARIANCE, seed, 1000).min() <= 0.05)
    assert 0.02 <= np.mean(some) <= 0.08


def test_max_t_steps_down() -> None:
    """One true difference that is surely found leaves the others' error where it should be."""
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(COVARIANCE)
    wrong = []
    for seed in range(600):
        values = root @ rng.standard_normal(4) + np.array([0, 0, 0, 40.0])
        adjusted = max_t(pair_p((values[FIRST] - values[SECOND]) / ERRORS), COVARIANCE, seed, 1000)
        assert (adjusted[SECOND == 3] <= 0.05).all()
        wrong.append(adjusted[SECOND != 3].min() <= 0.05)
    assert 0.02 <= np.mean(wrong) <= 0.08


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_max_t_is_monotone_and_never_below_the_raw_p(p: list[float]) -> None:
    raw = np.array(p)
    adjusted = max_t(raw, COVARIANCE, 0, 500)
    assert (adjusted >= raw).all()
    assert (adjusted <= 1).all()
    order = np.argsort(raw)
    assert (np.diff(adjusted[order]) >= 0).all()
    assert (adjusted <= np.minimum(1.0, raw * 6) + 0.1).all()  # Bonferroni, and the error of 500 draws


@pytest.mark.parametrize("twins", [1.0, 0.5])
def test_a_policy_listed_twice_takes_no_joint_claim_away(twins: float) -> None:
    """The difference of policies that do the same is rounding noise, whatever p it has."""
    root = np.vstack([np.linalg.cholesky(COVARIANCE), np.zeros(4)])
    root[4] = root[3] * (1 + 1e-13)
    p = np.full(10, 0.001)
    p[-1] = twins
    assert (max_t(p, root @ root.T, 0)[:-1] < 0.02).all()


def test_max_t_of_one_pair_is_the_raw_p() -> None:
    assert max_t(np.array([0.03]), np.eye(2), 0).tolist() == [0.03]
    unknown = max_t(np.array([0.01, 0.2, 0.5]), np.full((3, 3), np.nan), 0)
    assert unknown.tolist() == approx([0.03, 0.6, 1.0])


def two_policies(error: float, freedom: float) -> Judgement:
    return Judgement(
        procedure="paired t",
        difference=np.array([0.1]),
        std_error=np.array([error]),
        freedom=np.array([freedom]),
        path=("LDE",),
        silent=("",),
        values=np.array([1.0, 0.9]),
    )


def test_best_and_regret() -> None:
    """Two policies: P(best) = P(better) = T(d / s), and the regret of the first is E max(0, -d - s T)."""
    s, d = sqrt(0.04 + 0.09 - 0.02), 0.1
    sure, heavy = two_policies(s, 1e6), two_policies(s, 4.0)
    shares, regret = best_and_regret(sure, 1.0, seed=0)
    assert shares.sum() == approx(1)
    assert shares[0] == approx(stats.norm.cdf(d / s), abs=0.015)
    loss = s * stats.norm.pdf(d / s) - d * stats.norm.cdf(-d / s)
    assert regret.tolist() == approx([loss, loss + d], abs=0.01)
    turned, cost = best_and_regret(sure, -1.0, seed=0)
    assert turned[0] == approx(1 - shares[0], abs=0.015)
    assert cost.tolist() == approx([loss + d, loss], abs=0.01)
    assert best_and_regret(heavy, 1.0, 0)[0][0] == approx(stats.t.cdf(d / s, 4), abs=0.015)
    assert np.isnan(best_and_regret(two_policies(float("nan"), 5.0), 1.0, 0)).all()


@pytest.mark.parametrize("policies", [2, 3, 6])
def test_draws_do_not_depend_on_how_eigenvectors_are_chosen(policies: int) -> None:
    """Equal variances leave the eigenvectors to rounding; the draws must not follow them."""
    centred = np.eye(policies) - 1 / policies
    first = gaussian_draws(centred, 0, 2000)
    assert np.cov(first.T) == approx(centred, abs=0.1)
    rng = np.random.default_rng(1)
    for _ in range(5):
        noise = 1e-15 * rng.standard_normal(centred.shape)
        again = gaussian_draws(centred + noise + noise.T, 0, 2000)
        assert again == approx(first, abs=1e-6)


@pytest.mark.parametrize("step", [0.1, 0.3, 1 / 3])
def test_draws_of_one_row_alone_have_no_spread(step: float) -> None:
    """Of three rows, one draw in nine is three times the same; rounding must not pass for its spread."""
    log = podium.Log([0, 1, 2], ["a", "b", "a"], step * np.array([1.0, 2.0, 7.0]))
    policies = {"p": [[0.1, 0.9], [0.3, 0.7], [0.6, 0.4]], "q": [[0.7, 0.3], [0.2, 0.8], [0.9, 0.1]]}
    reference = judgement_of(log, {k: np.array(v) for k, v in policies.items()}, verdicts="bootstrap t").reference
    assert reference is not None
    assert np.isinf(reference).mean() == approx(1 / 9, abs=0.03)
    assert reference[np.isfinite(reference)].max() < 1e6


def test_the_joint_covariance_has_the_variances_of_the_pairs() -> None:
    log, policies = sample(rows=70, count=4)
    judgement = judgement_of(log, policies, estimator="LDE", verdicts="paired t")
    covariance = joint_covariance(judgement)
    i, j = np.triu_indices(4, 1)
    variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
    assert variance == approx((judgement.std_error / judgement.std_error.max()) ** 2, rel=2e-5)  # to six digits


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("joint", [False, True])
def test_ranks_and_claims(procedure: str, joint: bool) -> None:
    """rank_low = 1 + policies claimed better, rank_high = K - policies claimed worse; a claim iff p_adjusted <= .05."""
    log, policies = sample(rows=150, count=5)
    result = podium.compare(log, policies, verdicts=procedure, joint=joint)
    claims = []
    for p in result.pairs:
        assert (p.verdict == "cannot tell") == (p.p_adjusted > 0.05) == bool(p.reasons)
        assert p.p_adjusted >= 2 * min(p.p_better, 1 - p.p_better) - 1e-12
        if p.verdict != "cannot tell":
            claims.append((p.a, p.b) if p.verdict == "better" else (p.b, p.a))
    assert claims
    for policy in result.policies:
        assert policy.rank_low == 1 + sum(loser == policy.name for _, loser in claims)
        assert policy.rank_high == 5 - sum(winner == policy.name for winner, _ in claims)
        assert policy.regret is not None
        assert policy.regret >= 0
    assert sum(p.p_best for p in result.policies) == approx(1)
    by_regret = min(result.policies, key=lambda p: p.regret or 0.0)
    assert by_regret.p_best == max(p.p_best for p in result.policies)


# --- symmetries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_against_b_is_minus_b_against_a(procedure: str) -> None:
    log, policies = sample(rows=60, count=2)
    there = podium.compare(log, policies, verdicts=procedure).pair("p0", "p1")
    back = podium.compare(log, dict(reversed(policies.items())), verdicts=procedure).pair("p1", "p0")
    assert there.difference == approx(-back.difference, rel=1e-9)
    assert there.p_better == approx(1 - back.p_better, abs=1e-9)
    assert there.interval is not None
    assert back.interval is not None
    assert there.interval.low == approx(-back.interval.high, rel=1e-9)
    assert there.reversed().verdict == back.verdict


@pytest.mark.parametrize(
    ("procedure", "knows"),
    [(p, k) for p in PROCEDURES for k in ("full", "none") if (p, k) != ("doubly robust", "none")],
)
def test_the_order_of_policies_means_nothing(procedure: str, knows: str) -> None:
    log, policies = sample(rows=60, count=4, knows=knows)
    other = {name: policies[name] for name in ("p2", "p0", "p3", "p1")}
    first = podium.compare(log, policies, verdicts=procedure)
    second = podium.compare(log, other, verdicts=procedure)
    assert first.ranking == second.ranking
    same_pairs(first, second)


@pytest.mark.parametrize("procedure", ["posterior", "gated", "paired t"])
@pytest.mark.parametrize("knows", ["full", "logged", "none"])
def test_the_order_of_rows_means_nothing(procedure: str, knows: str) -> None:
    log, policies = sample(rows=60, count=3, knows=knows)
    turn = np.random.default_rng(9).permutation(60)
    moved = podium.Log(
        log.states[turn],
        log.actions[turn],
        log.rewards[turn],
        propensities=None if log.propensities is None else log.propensities[turn],
        behavior=None if log.behavior is None else log.behavior[turn],
        action_space=log.action_space,
    )
    first = podium.compare(log, policies, verdicts=procedure)
    second = podium.compare(moved, {name: m[turn] for name, m in policies.items()}, verdicts=procedure)
    assert first.ranking == second.ranking
    same_pairs(first, second)


def same_pairs(first: podium.Comparison, second: podium.Comparison) -> None:
    for pair in first.pairs:
        other = second.pair(pair.a, pair.b)
        assert other.difference == approx(pair.difference, rel=1e-9, abs=1e-9)
        assert other.p_better == approx(pair.p_better, abs=1e-9)
        assert other.p_adjusted == approx(pair.p_adjusted, abs=1e-9)
        assert (other.verdict, other.path) == (pair.verdict, pair.path)
        assert (other.interval is None) == (pair.interval is None)
        if pair.interval and other.interval:
            assert (other.interval.low, other.interval.high) == approx((pair.interval.low, pair.interval.high))


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("joint", [False, True])
def test_the_same_seed_gives_the_same_numbers(procedure: str, joint: bool) -> None:
    log, policies = sample(rows=60)

    def numbers(seed: int) -> dict[str, Any]:
        result = podium.compare(log, policies, verdicts=procedure, joint=joint, seed=seed).to_dict()
        return {key: result[key] for key in ("policies", "pairs")}

    assert numbers(3) == numbers(3)
    if procedure in ("bootstrap t", "sign flip"):
        assert numbers(3) != numbers(4)


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_lower_is_better_mirrors_negated_rewards(procedure: str) -> None:
    log, policies = sample(rows=60)
    costs = podium.Log(log.states, log.actions, -log.rewards, behavior=log.behavior, action_space=log.action_space)
    high = podium.compare(log, policies, verdicts=procedure)
    low = podium.compare(costs, policies, verdicts=procedure, lower_is_better=True)
    assert low.ranking == high.ranking
    for pair in high.pairs:
        other = low.pair(pair.a, pair.b)
        assert other.difference == approx(-pair.difference, rel=1e-6)
        assert other.p_better == approx(pair.p_better, abs=1e-6)
        assert other.p_adjusted == approx(pair.p_adjusted, abs=1e-6)
        assert other.verdict == pair.verdict
        assert pair.interval is not None
        assert other.interval is not None
        assert other.interval.low == approx(-pair.interval.high, rel=1e-6)
    for one, two in zip(high.policies, low.policies, strict=True):
        assert (one.rank, one.rank_low, one.rank_high) == (two.rank, two.rank_low, two.rank_high)
        assert two.p_best == approx(one.p_best, abs=0.03)  # other draws
        assert one.regret is not None
        assert two.regret == approx(one.regret, abs=0.02)


# --- order and verdict ---------------------------------------------------------------------------------------------


def confounded(rows: int = 300) -> tuple[podium.Log, dict[str, str]]:
    """In good states mostly a was logged, in bad ones mostly b; in every state b pays .3 more."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1, 1, rows)
    p_a = np.where(state > 0, 0.9, 0.1)
    taken = rng.random(rows) < p_a
    rewards = 2.0 * np.sign(state) + 0.3 * ~taken + 0.1 * rng.normal(size=rows)
    log = podium.Log(
        state, np.where(taken, "a", "b"), rewards, behavior=np.column_stack([p_a, 1 - p_a]), action_space=("a", "b")
    )
    return log, {"always a": "constant:a", "always b": "constant:b"}


def test_a_verdict_against_the_ranking_comes_first() -> None:
    log, policies = confounded()
    result = podium.compare(log, policies, "LDE")
    assert (result.ranking, result.settings["verdicts"]) == (["always a", "always b"], "posterior")
    assert result.pairs[0].verdict == "worse"
    assert result.pairs[0].difference == approx(-0.3, abs=0.1)
    assert result.warnings[0].code == "verdict against ranking"
    assert result.warnings[0] == (
        "always a ranks above always b, but the verdict is that it is worse (P(better) = 0.000)."
    )
    text = repr(result)
    assert text.index("Warning: always a ranks above") < text.index("Ranking (scores")
    assert result.policies[0].rank_low == 2
    assert result.policies[1].rank_high == 1


def test_order_and_verdict_agree_by_default() -> None:
    log, policies = confounded()
    result = podium.compare(log, policies)
    assert result.settings["estimator"] == "posterior"
    assert result.ranking == ["always b", "always a"]
    assert result.pairs[0].verdict == "better"
    assert "verdict against ranking" not in [w.code for w in result.warnings]
    assert (result.estimates["always a"]["LDE"] or 0) > (result.estimates["always b"]["LDE"] or 0)  # shown beside it


# --- which procedure -----------------------------------------------------------------------------------------------


def test_the_default_procedure_follows_from_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    log, policies = sample(rows=60)
    every = np.arange(60)
    assert podium.compare(log, policies).settings["verdicts"] == "posterior"
    partial = policies | {"p1": policies["p1"][every, log.action_codes]}
    result = podium.compare(log, partial)
    assert (result.settings["verdicts"], result.settings["estimator"]) == ("gated", "gated")
    assert "'p1' is known only at the logged actions" in result.unavailable["posterior"]
    assert "known only at the logged actions" in repr(result)
    scores = {"s": podium.Policy(3 * policies["p0"], proxy=True), "u": "uniform"}
    assert podium.compare(log, scores).settings["verdicts"] == "gated"
    monkeypatch.setattr("podium.verdicts.judge.MOST_CELLS", 3 * 60 * 3 - 1)
    result = podium.compare(log, policies)
    assert result.settings.verdicts == "gated"
    assert result.unavailable["posterior"] == "the posterior is for up to 539 probabilities (policies x rows x actions)"


@pytest.mark.parametrize("what", ["verdicts", "estimator"])
def test_a_posterior_that_cannot_be_used_is_refused(what: str) -> None:
    log, policies = sample(rows=60, count=2)
    partial = {name: m[np.arange(60), log.action_codes] for name, m in policies.items()}
    with pytest.raises(podium.PodiumError, match=r"the posterior c.*'p0' is known only at the logged actions") as error:
        podium.compare(log, partial, **{what: "posterior"})  # type: ignore[arg-type]
    assert "Hint: " in str(error.value)


def test_unknown_verdicts() -> None:
    log, policies = sample(rows=20, count=2)
    names = "posterior, gated, doubly robust, paired t, bootstrap t, sign flip"
    with pytest.raises(podium.PodiumError, match=rf"^unknown verdicts 'z'\n\nHint: the procedures are {names}\.$"):
        podium.compare(log, policies, verdicts="z")


@pytest.mark.parametrize("lacks", ["propensities", "rows", "probabilities"])
def test_doubly_robust_verdicts_need_propensities_rows_and_probabilities(lacks: str) -> None:
    log, policies = sample(
        rows=4 if lacks == "rows" else 60, count=2, knows="none" if lacks == "propensities" else "full"
    )
    if lacks == "probabilities":
        policies = {name: podium.Policy(3 * p, proxy=True) for name, p in policies.items()}
    message = "doubly robust verdicts need propensities that were logged, and policies that are probabilities"
    with pytest.raises(podium.PodiumError, match=rf"^{message}\n\nHint: leave verdicts out\.$"):
        podium.compare(log, policies, verdicts="doubly robust")


@pytest.mark.parametrize("procedure", [None, "paired t", "doubly robust"])
def test_doubly_robust_values_can_rank(procedure: str | None) -> None:
    log, policies = sample(rows=120)
    result = podium.compare(log, policies, "doubly robust", verdicts=procedure)
    judged = judgement_of(log, policies, verdicts="doubly robust").values
    assert result.settings.estimator == "doubly robust"
    assert {p.name: p.score for p in result.policies} == approx(dict(zip(policies, judged.tolist(), strict=True)))
    assert result.ranking == sorted(policies, key=lambda name: -judged[list(policies).index(name)])
    assert all(p.estimates["doubly robust"] == p.score for p in result.policies)


def test_the_posterior_does_not_rank_what_it_cannot_judge() -> None:
    """Also where another procedure judges the pairs."""
    log, policies = sample(rows=60)
    partial = policies | {"p1": policies["p1"][np.arange(60), log.action_codes]}
    for procedure in (None, "gated", "paired t"):
        with pytest.raises(podium.PodiumError, match=r"^the posterior cannot rank: .*'p1' is known only at the logged"):
            podium.compare(log, partial, "posterior", verdicts=procedure)


def test_the_best_does_not_turn_on_the_last_bit() -> None:
    """Two of four policies are nearly equal, rewards are large, and engines add in different orders."""
    rng = np.random.default_rng(0)
    values = np.array([0.3, 0.31, 0.31 + 1e-9, 0.2])
    i, j = pair_indices(4)
    gaps, errors = values[i] - values[j], np.full(6, 0.02)
    errors[3] = 1e-9  # of the pair (1, 2)
    shares = []
    for _ in range(20):
        noise = 1 + 1e-15 * rng.standard_normal((3, 6))
        judgement = Judgement(
            "gated", gaps * noise[0], errors * noise[1], 30.0 * noise[2], ("LDE",) * 6, ("",) * 6, 1e6 + values
        )
        shares.append(best_and_regret(judgement, 1.0, seed=0)[0].tolist())
    assert all(share == shares[0] for share in shares)
    assert shares[0][1] + shares[0][2] > 0.5


def test_policies_that_do_the_same_count_once() -> None:
    """A pair of twins has no error of its own; the others keep their P(best), to the last digit."""

    def of(values: list[float], errors: list[float], silent: tuple[str, ...] = ()) -> Judgement:
        level, many = np.array(values), len(errors)
        i, j = pair_indices(len(values))
        silent = silent or ("",) * many
        gaps = level[i] - level[j]
        return Judgement("gated", gaps, np.array(errors), np.full(many, 9.0), ("LDE",) * many, silent, level)

    nan = float("nan")
    alone, regret = best_and_regret(of([0.1, 0.0], [0.1]), 1.0, 0)
    judged = of([0.1, 0.0, 0.1], [0.1, nan, 0.1], ("", "same", ""))
    shares, loss = best_and_regret(judged, 1.0, 0, np.array([0, 1, 0]))
    assert shares.tolist() == [alone[0] / 2, alone[1], alone[0] / 2]
    assert loss.tolist() == [regret[0], regret[1], regret[0]]
    assert best_and_regret(of([0.1, 0.1], [nan], ("same",)), 1.0, 0, np.array([0, 0]))[0].tolist() == [0.5, 0.5]


def test_a_silent_pair_adds_no_certainty_to_the_best() -> None:
    """Its difference is not used, its policies do not exclude each other, and P(best) still sums to 1."""
    i, j = pair_indices(3)
    values = np.array([1.0, 0.9, 0.0])

    def shares(*silent: str, gap: float = 0.1) -> list[float]:
        gaps = values[i] - values[j]
        gaps[0] = gap
        judgement = Judgement("gated", gaps, np.full(3, 0.01), np.full(3, 30.0), ("LDE",) * 3, silent, values)
        return best_and_regret(judgement, 1.0, seed=0)[0].tolist()

    assert shares("", "", "") == approx([1, 0, 0])
    assert shares("alarm", "", "") == approx([0.5, 0.5, 0])  # both exceed the third, and nothing tells them apart
    assert shares("alarm", "", "", gap=-5.0) == shares("alarm", "", "")
    assert shares("", "", "alarm") == approx([1, 0, 0])  # a pair that cannot matter for the first place
    assert np.isnan(shares("alarm", "alarm", "")).all()  # nothing connects the first with the others
    assert np.isnan(shares("alarm", "alarm", "alarm")).all()


def test_policies_that_are_one_share_the_best_place() -> None:
    i, j = pair_indices(3)
    values = np.array([1.0, 1.0, 0.0])
    judgement = Judgement(
        "gated", values[i] - values[j], np.array([0.0, 0.1, 0.1]), np.full(3, 30.0), ("LDE",) * 3, ("",) * 3, values
    )
    shares, _ = best_and_regret(judgement, 1.0, seed=0)
    assert shares.tolist() == [0.5, 0.5, 0.0]
