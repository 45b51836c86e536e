"""The families of everyday logs, real trials as logs, and the rules that judge both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.data.log import Log
from podium.experiments.calibration.everyday import trials
from podium.experiments.calibration.everyday.families import FAMILIES, NEAR, SETS, TIES, simulated, tie_family
from podium.experiments.calibration.everyday.rules import (
    PEERS,
    cross_fitted_ridge,
    own_rules,
    paired_t,
    peer_rules,
    snips_difference,
)
from podium.experiments.calibration.everyday.units import all_families
from podium.experiments.calibration.everyday.worlds import (
    BY_STATE,
    everyday_policies,
    flat,
    sparse_world,
    tied,
    weak_world,
    zero_inflated,
)
from podium.experiments.calibration.real_trials import RealTrial, load_trial
from podium.experiments.calibration.worlds import Draw, forget
from podium.verdicts.pairs import pair_indices


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- families ------------------------------------------------------------------------------------------------------


def test_every_set_has_families_to_tune_on_and_others_held_out() -> None:
    families = all_families().values()
    assert {(f.set, f.part) for f in families} == {(s, part) for s in SETS for part in ("tuned on", "held out")}
    assert len({(f.set, f.name) for f in (*FAMILIES, *trials.trial_families())}) == len(families)
    tuned = {f.name.split(",")[0] for f in families if f.set == "trials" and not f.held_out}
    assert tuned == set(trials.TUNED) == {"insurance", "training", "throat"}
    names = " | ".join(f.name for f in families)
    for kind in ("0.3%", "3%", "0.1%", "5%", "Bernoulli", "revenue", "clicks", "skewed", "fixed shares", "no p"):
        assert kind in names
    assert {k for f in families if f.set == "ties" for k in f.policies} == {5, 20, 50}
    assert {n for f in families if f.set == "sparse" for n in f.rows} >= {100, 20_000}
    assert min(n for f in families if f.set == "weak" for n in f.rows) == 20


@pytest.mark.parametrize("name", [f.name for f in FAMILIES[::7]])
def test_a_seed_gives_the_same_case_again(name: str) -> None:
    family = next(f for f in FAMILIES if f.name == name)
    one, same, other = (family.draw(rng(seed), 25, 5) for seed in (1, 1, 2))
    assert np.array_equal(one.draw.log.rewards, same.draw.log.rewards)
    assert np.array_equal(one.difference, same.difference)
    assert not np.array_equal(one.draw.policies["policy 4"], other.draw.policies["policy 4"])


@pytest.mark.parametrize("share", [0.003, 0.03])
def test_actions_explain_the_stated_share_of_the_variance(share: float) -> None:
    world = weak_world(rng(), 2, share, actions=4, features=3, binary=False, logger="uniform")
    assert world.rewards.var(axis=1).mean() == pytest.approx(share)
    assert world.rewards.mean(axis=1).var() == pytest.approx(BY_STATE)
    assert world.noise is not None
    assert world.noise(rng(), np.zeros(100_000)).var() == pytest.approx(1 - BY_STATE - share, rel=0.02)
    coins = weak_world(rng(1), 2, share, actions=4, features=3, binary=True, logger="follows")
    rate = coins.rewards.mean()
    assert coins.rewards.var(axis=1).mean() == pytest.approx(share * rate * (1 - rate), rel=0.1)


def test_the_truth_of_a_tiny_world_is_what_every_state_and_action_add_up_to() -> None:
    world = sparse_world(rng(3), 3, 0.05, actions=3, states=6, skewed=True, tail=1.0)
    case = simulated(world.log(rng(), 10))
    values = [
        sum(world.policies[k, s, a] * world.rewards[s, a] for s in range(6) for a in range(3)) / 6 for k in range(3)
    ]
    assert case.difference == pytest.approx([values[0] - values[1], values[0] - values[2], values[1] - values[2]])
    assert world.rewards.mean() == pytest.approx(0.05, rel=0.05)
    sizes = zero_inflated(1.0)(rng(), np.full(200_000, 0.05))
    assert (sizes > 0).mean() == pytest.approx(0.05, rel=0.05)
    assert sizes.mean() == pytest.approx(0.05, rel=0.1)


def test_policies_are_distributions_of_four_kinds() -> None:
    points, effect = rng().standard_normal((50, 2)), rng(1).standard_normal((50, 3))
    policies = everyday_policies(rng(2), points, effect, 8)
    assert policies.shape == (8, 50, 3)
    assert policies.sum(axis=2) == pytest.approx(1)
    fixed = (policies == policies[:, :1]).all(axis=(1, 2))
    certain = (policies.max(axis=2) == 1).all(axis=1)
    for kind in ((True, True), (False, True), (True, False), (False, False)):
        assert sum((f, c) == kind for f, c in zip(fixed, certain, strict=True)) == 2
    arms = policies[fixed & certain][:, 0].argmax(axis=1)
    assert arms[0] != arms[1]


def test_ties_are_exact_near_or_within_groups() -> None:
    world = weak_world(rng(), 6, 0.1, actions=3, features=2, binary=False, logger="follows")
    span = world.rewards.max(axis=1).mean() - world.rewards.min(axis=1).mean()
    assert np.ptp(world.values) > 0.05 * span
    assert np.ptp(flat(world).values) == pytest.approx(0, abs=1e-12)
    assert np.ptp(tied(world).values) == pytest.approx(0, abs=1e-12)
    near = tied(world, width=NEAR, rng=rng(1)).values
    assert 0 < np.ptp(near) <= NEAR * span
    groups = tied(world, groups=2).values
    assert groups[1::2] - groups[::2] == pytest.approx(0.25 * span)


@pytest.mark.parametrize("kind", TIES, ids=lambda kind: f"{kind[1]}: {kind[0]}")
def test_tied_families_know_which_pairs_are_tied(kind: tuple[str, str, bool, str, object]) -> None:
    case = tie_family(*kind).draw(rng(), 20, 6)  # type: ignore[arg-type]
    i, j = pair_indices(6)
    assert np.array_equal(case.tied > 0, (i - j) % 2 == 0 if kind[1] == "two groups" else i >= 0)
    assert (case.difference[case.tied > 0] == 0).all() == (kind[1] != "nearly one value")
    assert (case.draw.log.behavior is None) == (kind[3] == "none")


def test_policies_that_hardly_differ_are_not_nearly_tied() -> None:
    """Their small difference can be easy to see: one has a little more of the best action."""
    world = weak_world(rng(), 2, 0.1, actions=3, features=2, binary=False, logger="follows")
    a = world.policies[0]
    near = replace(world, policies=np.stack([a, 0.99 * a + 0.01 * world.policies[1], world.policies[1]]))
    case = simulated(near.log(rng(), 200), near=True)
    assert case.tied.tolist() == [0, 1, 1]


def test_fixed_shares_are_known_from_p_of_the_logged_action_alone() -> None:
    family = next(f for f in FAMILIES if f.set == "shares" and f.held_out)
    log = family.draw(rng(), 200, 3).draw.log
    assert log.behavior is not None
    assert log.behavior == pytest.approx(np.tile([0.4, 0.3, 0.2, 0.1], (200, 1)))
    assert log.propensities is not None
    by_action = {int(a): set(log.propensities[log.actions == a].round(12).tolist()) for a in np.unique(log.actions)}
    assert by_action == {0: {0.4}, 1: {0.3}, 2: {0.2}, 3: {0.1}}


# --- real trials ---------------------------------------------------------------------------------------------------


def test_thinning_gives_the_stated_behavior_policy_and_weights() -> None:
    n = 40_000
    state = rng().integers(2, size=n)
    arms, shares = rng(1).choice(2, size=n, p=[0.3, 0.7]), np.array([0.3, 0.7])
    points = (2.0 * state - 1)[:, None]
    order = rng(2).permutation(n)
    behavior, kept, offered = trials.thin(rng(3), points, arms, shares, order, 10_000)
    assert len(kept) == 10_000
    assert set(kept) <= set(order[:offered])
    assert offered <= trials.OFFERED * n
    weight = 1 / (behavior / shares).max(axis=1)
    for s in (0, 1):
        inside = kept[state[kept] == s]
        q = behavior[state == s][0, 1]
        assert abs((arms[inside] == 1).mean() - q) < 4 * np.sqrt(q * (1 - q) / len(inside))
        assert abs(q - 0.7) > 0.02, "this logger follows nothing"
    share = weight[state == 1].sum() / weight.sum()
    assert abs((state[kept] == 1).mean() - share) < 4 * 0.5 / 100


def test_a_logger_follows_less_closely_where_rows_are_scarce() -> None:
    arms, points = rng().integers(2, size=100), rng(1).standard_normal((100, 2))
    shares, order = np.array([0.5, 0.5]), np.arange(100)
    strong, _, _ = trials.thin(rng(2), points, arms, shares, order, 10)
    mild, kept, offered = trials.thin(rng(2), points, arms, shares, order, 60)
    assert np.ptp(mild[:, 0]) < np.ptp(strong[:, 0])
    assert len(kept) == 60
    assert offered <= 75


def test_the_truth_comes_from_the_other_rows_with_its_error() -> None:
    n = 30_000
    points = rng().standard_normal((n, 1))
    arms, shares = rng(1).choice(2, size=n, p=[0.3, 0.7]), np.array([0.3, 0.7])
    rewards = 5 * points[:, 0] + np.where(arms == 1, 1 + points[:, 0], 0) + rng(2).standard_normal(n)
    policies = np.stack([np.tile([1.0, 0.0], (n, 1)), np.tile([0.0, 1.0], (n, 1)), np.full((n, 2), 0.5)])
    weight = np.where(points[:, 0] > 0, 1.0, 0.5)
    rest = np.arange(n)[::2]
    values, difference, error = trials.truth_of(rewards, points, arms, shares, policies, weight, rest)
    effect = np.average(1 + points[:, 0], weights=weight)
    assert (np.abs(difference - [-effect, -effect / 2, effect / 2]) < 4 * error).all()
    assert error[0] == pytest.approx(2 * error[1])
    assert values[1] - values[0] == pytest.approx(-difference[0])
    plain = np.std(rewards) * np.sqrt(1 / 0.3 + 1 / 0.7) / np.sqrt(len(rest))
    assert error[0] < 0.5 * plain, "the state explains most of the reward"


@pytest.mark.parametrize("view", trials.VIEWS)
def test_a_trial_becomes_a_log_with_a_truth_from_elsewhere(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward of each person is unique, so rows of the log can be recognized in the truth."""
    real = load_trial("throat")
    marked = RealTrial("throat", real.states, real.actions, np.arange(233.0))
    seen: dict[str, np.ndarray] = {}  # type: ignore[type-arg]
    truth_of = trials.truth_of

    def spy(rewards: np.ndarray, *others: np.ndarray) -> object:  # type: ignore[type-arg]
        seen["rest"] = rewards[others[-1]]
        return truth_of(rewards, *others)

    monkeypatch.setattr(trials, "read", lambda name, folder: marked)
    monkeypatch.setattr(trials, "truth_of", spy)
    case = trials.draw_trial("throat", None, view, rng(5), 100, 5)
    log = case.draw.log
    assert len(log) == len(set(log.rewards.tolist())) == 100
    assert set(log.rewards.tolist()).isdisjoint(seen["rest"].tolist())
    assert len(seen["rest"]) == 133 if view != "follows" else len(seen["rest"]) >= 58
    assert list(log.state_columns) == list(real.states)
    assert (log.behavior is None) == (view == "no p")
    if view == "p known":
        assert log.behavior is not None
        assert log.behavior == pytest.approx(np.tile(list(real.shares.values()), (100, 1)))
    assert ((case.error > 0) == (case.tied == 0)).all()


def test_trials_go_up_to_half_of_their_rows(tmp_path: Path) -> None:
    rows = {f.name: f.rows for f in trials.trial_families()}
    assert rows["throat, no p"] == (30, 50, 100, 116)
    assert rows["insurance, follows"] == (30, 50, 100, 200, 400, 689)
    (tmp_path / "own.csv").write_text("\n".join(["x,action,reward", *(f"{n},{n % 2},{n % 7}" for n in range(80))]))
    own = [f for f in trials.trial_families(str(tmp_path)) if f.name.startswith("own")]
    assert [(f.held_out, f.rows) for f in own] == [(True, (30, 40))] * 3
    assert all_families(str(tmp_path))["trials", "own, p known"].draw(rng(), 30, 3).draw.log.n_actions == 2


# --- rules ---------------------------------------------------------------------------------------------------------


def small_draw(seed: int = 0, rows: int = 60) -> Draw:
    return weak_world(rng(seed), 3, 0.1, actions=3, features=2, binary=False, logger="follows").log(rng(seed), rows)


def test_rules_for_the_same_probability() -> None:
    p = np.array([0.99, 0.02, 0.96, 0.999])
    rules = own_rules(p, np.array([1.0, 1.0, 1.0, 0.0]))
    assert rules["interval excludes 0"].tolist() == [1, -1, 0, 0]
    assert rules["Benjamini-Hochberg"].tolist() == [0, 0, 0, 0]
    assert rules["P >= 0.95"].tolist() == [1, -1, 1, 0]
    assert own_rules(p, np.ones(4))["Benjamini-Hochberg"].tolist() == [1, 0, 0, 1]


def test_the_paired_t_is_that_of_scipy() -> None:
    from scipy.stats import ttest_1samp

    terms = rng().standard_normal((40, 4)) + np.array([0, 0.3, 0.6, 0.9])
    i, j = pair_indices(4)
    tests = ttest_1samp(terms[:, i] - terms[:, j], 0)
    assert np.array_equal(paired_t(terms), np.sign(tests.statistic) * (tests.pvalue < 0.05))
    assert paired_t(terms)[2] == -1


def test_no_row_is_predicted_by_a_ridge_that_saw_its_reward() -> None:
    draw = small_draw()
    log = draw.log
    before = cross_fitted_ridge(draw)
    rewards = log.rewards.copy()
    rewards[7] += 100
    changed = Draw(Log(log.states, log.actions, rewards, behavior=log.behavior), draw.policies, draw.values)
    after = cross_fitted_ridge(changed)
    assert before[7] == pytest.approx(after[7])
    assert np.abs(before - after).max() > 1


def test_peers_judge_where_they_can() -> None:
    draw = small_draw(rows=400)
    assert list(peer_rules(draw)) == list(PEERS)
    assert set(PEERS) - set(peer_rules(forget(draw, everything=False))) == {"Cressie-Read, disjoint"}
    assert peer_rules(forget(draw)) == {}
    assert all(set(np.unique(claims)) <= {-1, 0, 1} for claims in peer_rules(draw).values())
    never = {**draw.policies, "policy 0": 0 * draw.policies["policy 0"]}
    assert snips_difference(Draw(draw.log, never, draw.values))[:2].tolist() == [0, 0]
