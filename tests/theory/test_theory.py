"""Theorems 1 to 3 against hand computation, exhaustive enumeration and simulation; the assumption check."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from podium.data.errors import PodiumError
from podium.theory import (
    AssumptionCheck,
    Bound,
    check_assumption,
    comparison_bound,
    expected_lde,
    reward_radius,
    reward_range_of,
    state_bound,
)

CEILING = 1 - math.exp(-0.5)


def random_problem(rng: np.random.Generator, states: int, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rewards in [0, 1], the gap between two policies, and a baseline; half of the time at the extremes."""
    reward = rng.random((states, n))
    gap = rng.dirichlet(np.full(n, 0.3), states) - rng.dirichlet(np.full(n, 0.3), states)
    baseline = float(rng.random())
    if rng.random() < 0.5:
        reward, baseline = reward.round(), float(rng.integers(2))
        gap = np.eye(n)[rng.integers(n, size=states)] - np.eye(n)[rng.integers(n, size=states)]
    return reward, gap, baseline


# --- R ----------------------------------------------------------------------------------------------------


def test_reward_radius_by_hand() -> None:
    assert reward_radius((0, 1), 0.5) == 0.5
    assert reward_radius((-1, 3), 0.0) == 3.0
    assert reward_radius((-5, 3)) == 5.0  # DiM and IPS: max(max R, -min R)
    assert reward_radius((1, 3), 5.0) == 4.0  # a baseline outside of the range


@given(st.floats(-10, 10), st.floats(0.1, 10), st.floats(-20, 20))
def test_reward_radius_is_at_least_half_of_the_range(low: float, width: float, baseline: float) -> None:
    assert reward_radius((low, low + width), baseline) >= 0.4999999 * width


def test_reward_range_of() -> None:
    assert reward_range_of(np.array([3, -1, 2])) == (-1.0, 3.0)
    for rewards, message in (
        ([], "rewards are empty"),
        ([1.0, np.inf], "rewards must be finite; row 2 holds inf (1 row)"),
        (["a"], "rewards must be numbers"),
    ):
        with pytest.raises(PodiumError) as error:
            reward_range_of(rewards)
        hint = "give the rewards of the log as a list or an array of finite numbers."
        assert str(error.value) == f"{message}\n\nHint: {hint}"


# --- Theorem 1 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(n, m) for n in (1, 2, 3, 5) for m in range(1, n + 1)])
def test_expected_lde_is_the_mean_over_all_action_sets(n: int, m: int) -> None:
    rng = np.random.default_rng([n, m])
    reward, policy, baseline = rng.normal(size=n), rng.dirichlet(np.ones(n)), 0.3
    value = float(reward @ policy)
    sums = [((reward - baseline) * policy)[list(seen)].sum() for seen in combinations(range(n), m)]
    rows = expected_lde(value, baseline=baseline, actions=n, observed=m)
    by_states = expected_lde(value, baseline=baseline, actions=n, observed=m, normalize="states")
    assert rows == pytest.approx(baseline + np.mean(sums) / m, abs=1e-12)
    assert by_states == pytest.approx(baseline + np.mean(sums), abs=1e-12)


def test_lde_is_unbiased_only_when_every_action_was_observed() -> None:
    settings: dict[str, Any] = {"baseline": 0.0, "actions": 4}
    assert expected_lde(1.0, **settings) == 0.25
    assert expected_lde(1.0, observed=4, **settings) == 0.25
    assert expected_lde(1.0, observed=3, normalize="states", **settings) == 0.75
    assert expected_lde(1.0, observed=4, normalize="states", **settings) == 1.0


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.floats(-5, 5), st.integers(1, 9))
def test_expected_lde_keeps_the_order(values: list[float], baseline: float, n: int) -> None:
    values = sorted(round(value, 3) for value in values)
    shrunk = [expected_lde(value, baseline=baseline, actions=n) for value in values]
    assert shrunk == sorted(shrunk)


# --- Theorem 2 --------------------------------------------------------------------------------------------


def test_comparison_bound_by_hand() -> None:
    # m/n = 1/2, R = 1/2, dV = 1/2: the exponent is (1/4 * 1/4) / (8 * 1/4) = 1/32.
    bound = comparison_bound(0.5, actions=4, per_state=2, reward_range=(0, 1), baseline=0.5)
    assert float(bound) == bound.value == pytest.approx(1 - math.exp(-1 / 32), rel=1e-14)
    # |D|^2 / |A|^4 = 36 / 16, R = 2, dV = 1: the exponent is 36 / (8 * 16 * 4) = 9 / 128.
    main = comparison_bound(-1, actions=2, rows=6, reward_range=(-1, 2), form="main")
    assert float(main) == pytest.approx(1 - math.exp(-9 / 128), rel=1e-14)
    assert comparison_bound(0, actions=2, per_state=1, reward_range=(0, 1)).value == 0.0


def test_bound_is_frozen_and_speaks() -> None:
    bound = comparison_bound(0.5, actions=4, per_state=2, reward_range=(0, 1), baseline=0.5)
    assert bound.statement == (
        "Theorem 2 (appendix form): if two policies truly differ by 0.5, LDE has a chance of at least 0.0308 "
        "to order them correctly."
    )
    assert len(bound.caveats) == 2
    assert bound.caveats[0] == (
        "It is vacuous: |V(pi) - V(mu)| <= 2R and m <= n, so it never exceeds 1 - exp(-1/2) = 0.393, "
        "less than a coin toss. It does not say how sure a ranking is."
    )
    assert str(bound).splitlines() == [bound.statement, *(f"- {caveat}" for caveat in bound.caveats)]
    assert bound.to_dict() == {
        "value": bound.value,
        "form": "appendix",
        "statement": bound.statement,
        "caveats": list(bound.caveats),
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.value = 1.0  # type: ignore[misc]


@given(
    st.integers(1, 50), st.integers(1, 50), st.floats(0, 1), st.floats(-10, 10), st.floats(0.1, 10),
    st.floats(-20, 20),
)  # fmt: skip
def test_appendix_form_never_exceeds_its_ceiling(
    n: int, m: int, share: float, low: float, width: float, baseline: float
) -> None:
    m, limits = min(m, n), (low, low + width)
    gap = share * (limits[1] - limits[0])
    for estimator, centre in (("LDE", baseline), ("DiM", 0.0)):
        settings: dict[str, Any] = {"reward_range": limits, "baseline": centre, "estimator": estimator}
        bound = comparison_bound(gap, actions=n, per_state=m, **settings)
        assert 0.0 <= bound.value <= CEILING + 1e-9
        # The mean over the maximum, m dV / 2nR, never promises less.
        assert bound.value <= m / n * gap / (2 * reward_radius(limits, centre)) + 1e-12


def test_the_ceiling_is_reached() -> None:
    bound = comparison_bound(1, actions=3, per_state=3, reward_range=(0, 1), baseline=0.5)
    assert bound.value == pytest.approx(CEILING)


def test_main_form_equals_the_appendix_when_there_are_as_many_states_as_actions() -> None:
    settings: dict[str, Any] = {"actions": 7, "reward_range": (0, 1), "baseline": 0.4}
    appendix = comparison_bound(0.3, per_state=3, **settings)
    main = comparison_bound(0.3, per_state=3, rows=21, form="main", **settings)
    assert main.value == pytest.approx(appendix.value, rel=1e-12)
    assert main.caveats[0] == (
        "The main-text form is wrong unless |S| = |A|, which holds here: it equals the appendix form and is "
        "as vacuous, never above 0.393."
    )
    assert comparison_bound(0.3, rows=20, form="main", **settings).value < appendix.value


def test_appendix_form_is_never_violated() -> None:
    """Exact chances over all action sets, drawn independently in each state, of 300 random problems."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        states, n = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        m = int(rng.integers(1, n + 1))
        reward, gap, baseline = random_problem(rng, states, n)
        difference = float(np.sum(reward * gap)) / states
        terms = (reward - baseline) * gap
        sums = [[row[list(seen)].sum() for seen in combinations(range(n), m)] for row in terms]
        estimates = np.array([sum(draw) for draw in product(*sums)])
        chance = np.mean(estimates * difference > 1e-12)
        limits: dict[str, Any] = {"reward_range": (0, 1), "baseline": baseline}
        if difference != 0.0:
            bound = comparison_bound(difference, actions=n, per_state=m, **limits)
            assert chance >= bound.value, (reward, gap, baseline, m)


def test_appendix_form_holds_in_simulation() -> None:
    """Twenty states, 8 actions, 4,000 draws of the action sets for each of 20 problems."""
    rng = np.random.default_rng(3)
    for m in (1, 3, 6, 8) * 5:
        reward, gap, baseline = random_problem(rng, 20, 8)
        difference = float(np.sum(reward * gap)) / 20
        seen = rng.random((4000, 20, 8)).argsort(2).argsort(2) < m
        estimates = np.einsum("tsa,sa->t", seen, (reward - baseline) * gap)
        chance = np.mean(estimates * difference > 1e-12)
        limits: dict[str, Any] = {"reward_range": (0, 1), "baseline": baseline}
        assert chance >= comparison_bound(difference, actions=8, per_state=m, **limits).value


@pytest.mark.parametrize(("gap", "rewards", "expected"), [(0.5, (1.0, 0.96), 0.747), (1.0, (1.0, 0.98), 0.636)])
def test_main_form_is_false(gap: float, rewards: tuple[float, float], expected: float) -> None:
    """n = 2, m = 1, baseline 0, 1,000 states, dV = .02: .956 promised; about .74 and less is what happens."""
    assert gap * (rewards[0] - rewards[1]) == pytest.approx(0.02)
    main = comparison_bound(0.02, actions=2, per_state=1, rows=1000, reward_range=(0, 1), form="main")
    assert main.value == pytest.approx(0.956, abs=5e-4)
    assert main.caveats[0] == (
        "The main-text form is wrong unless |S| = |A|: with more states than actions it promises more than "
        "is true, with fewer it promises less than is proved. Use form='appendix'."
    )
    first = np.arange(1001)  # states in which the first action was observed
    right = gap * (first * rewards[0] - (1000 - first) * rewards[1]) > 0
    exact = stats.binom.pmf(first, 1000, 0.5)[right].sum()
    assert exact == pytest.approx(expected, abs=5e-4)
    assert comparison_bound(0.02, actions=2, per_state=1, reward_range=(0, 1)).value < exact < main.value

    rng = np.random.default_rng(4)
    saw_first = rng.random((2000, 1000)) < 0.5
    estimates = np.where(saw_first, gap * rewards[0], -gap * rewards[1]).mean(1)
    assert np.mean(estimates > 0) == pytest.approx(exact, abs=0.04)


def test_remark() -> None:
    settings: dict[str, Any] = {"actions": 4, "per_state": 2, "reward_range": (-1, 3)}
    dim = comparison_bound(0.5, estimator="DiM", **settings)
    ips = comparison_bound(0.5, estimator="IPS", uniform_behavior=True, **settings)
    assert dim.value == ips.value == pytest.approx(1 - math.exp(-((0.5 * 0.5 / 3) ** 2) / 8))
    lde = comparison_bound(0.5, baseline=1.0, **settings)
    dre = comparison_bound(0.5, baseline=1.0, estimator="DRE", uniform_behavior=True, **settings)
    assert lde.value == dre.value > dim.value
    assert len(ips.caveats) == len(dre.caveats) == 3
    assert ips.caveats[-1].startswith("For IPS and DRE it holds only under a uniformly random behaviour policy")


# --- Theorem 3 --------------------------------------------------------------------------------------------


def test_state_bound_by_hand() -> None:
    # (0.1 + 2/4 * 0.25) / (2 * 0.25) = 0.45.
    bound = state_bound(0.1, -0.5, actions=4, per_state=2, reward_range=(0, 1), baseline=0.5)
    assert isinstance(bound, Bound)
    assert bound.value == pytest.approx(1 / 1.45, rel=1e-14)
    assert bound.form == "state"
    assert bound.statement == (
        "Theorem 3: in a state where two policies truly differ by 0.5, the chance that the product of the "
        "estimated and the true difference is -0.1 or less is at most 0.69."
    )
    assert bound.caveats[1] == (
        "It assumes that the observed actions of every state are a uniformly random set; a logger that seeks "
        "reward breaks this unseen."
    )
    limits: dict[str, Any] = {"actions": 2, "per_state": 2, "reward_range": (0, 1), "baseline": 0.5}
    assert state_bound(0, 0, **limits).value == 1.0
    assert state_bound(0, 1, **limits).value == pytest.approx(1 / 3)
    assert state_bound(1, 1, **limits).value == pytest.approx(1 / 5)


def test_state_bound_is_never_violated() -> None:
    """Exact chances over all action sets of 1,000 random problems, at every threshold that occurs."""
    rng = np.random.default_rng(5)
    for _ in range(1000):
        n = int(rng.integers(2, 7))
        m = int(rng.integers(1, n + 1))
        reward, gap, baseline = random_problem(rng, 1, n)
        difference = float((reward @ gap.T)[0, 0])
        terms = ((reward - baseline) * gap)[0]
        sums = np.array([terms[list(seen)].sum() for seen in combinations(range(n), m)])
        products = sums * difference
        for delta in {0.0, *(-products[products < 0])}:
            chance = np.mean(products <= -delta)
            limits: dict[str, Any] = {"reward_range": (0, 1), "baseline": baseline}
            bound = state_bound(delta, difference, actions=n, per_state=m, **limits)
            assert chance <= bound.value, (reward, gap, baseline, m, delta)


# --- What is refused --------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"difference": 0.1, "actions": 3, "per_state": 2, "reward_range": (0, 1)}


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (
            {"estimator": "IPS"},
            "Theorem 2 covers IPS only under a uniformly random behaviour policy",
            "pass uniform_behavior=True if the log was collected that way; otherwise there is no bound.",
        ),
        (
            {"estimator": "DRE"},
            "Theorem 2 covers DRE only under a uniformly random behaviour policy",
            "pass uniform_behavior=True if the log was collected that way; otherwise there is no bound.",
        ),
        (
            {"estimator": "SNIPS"},
            "Theorem 2 and its Remark know LDE, DiM, IPS and DRE; the estimator is 'SNIPS'",
            "no bound is known for other estimators.",
        ),
        (
            {"estimator": "DiM", "baseline": 0.5},
            "DiM has no baseline; baseline is 0.5",
            "leave baseline out; it belongs to LDE and DRE.",
        ),
        (
            {"per_state": None},
            "the appendix form of Theorem 2 needs per_state",
            "per_state is the number of distinct actions observed in each state.",
        ),
        (
            {"form": "main"},
            "the main-text form of Theorem 2 needs rows",
            "rows is the number of distinct (state, action) rows; form='appendix' needs per_state.",
        ),
        (
            {"form": "short"},
            "form must be 'appendix' or 'main'; it is 'short'",
            "'appendix' is the form that is proved.",
        ),
        (
            {"per_state": 4},
            "per_state must not exceed actions; they are 4 and 3",
            "count distinct actions in a state; repeated draws count once.",
        ),
        (
            {"per_state": 1.5},
            "per_state must be a whole number >= 1; it is 1.5",
            "the theorem counts distinct things; means and shares do not fit it.",
        ),
        (
            {"actions": 0},
            "actions must be a whole number >= 1; it is 0",
            "the theorem counts distinct things; means and shares do not fit it.",
        ),
        (
            {"difference": 1.5},
            "difference must not exceed the reward range; it is 1.5 and the range 1",
            "both in reward units: two policies cannot differ by more than two rewards can.",
        ),
        (
            {"difference": math.nan},
            "difference must be a finite number; it is nan",
            "give a number as difference.",
        ),
        (
            {"reward_range": (1, 1)},
            "reward_range must have low < high; it is (1, 1)",
            "for example reward_range=(0, 1); with a single possible reward all policies are equal.",
        ),
        (
            {"reward_range": 1.0},
            "reward_range must be a pair (low, high); it is 1.0",
            "for example reward_range=(0, 1), or reward_range_of(rewards).",
        ),
        (
            {"reward_range": (0, "high")},
            "reward_range[1] must be a finite number; it is 'high'",
            "give a number as reward_range[1].",
        ),
    ],
)
def test_comparison_bound_refuses(change: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(PodiumError) as error:
        comparison_bound(**(GOOD | change))
    assert str(error.value) == f"{message}\n\nHint: {hint}"


def test_others_refuse() -> None:
    with pytest.raises(PodiumError, match=r"^delta must be >= 0; it is -1\n\nHint: "):
        state_bound(-1, **GOOD)
    with pytest.raises(PodiumError, match=r"^observed must not exceed actions; they are 4 and 3\n\nHint: "):
        expected_lde(1, baseline=0, actions=3, observed=4)
    with pytest.raises(PodiumError, match=r"^normalize must be 'rows' or 'states'; it is 'both'\n\nHint: "):
        expected_lde(1, baseline=0, actions=3, normalize="both")  # type: ignore[arg-type]


# --- The check of the assumption --------------------------------------------------------------------------


def make_log(states: Any, actions: Any, space: int, n_states: int | None = None) -> Any:
    states, actions = np.asarray(states), np.asarray(actions)
    n_states = n_states or int(states.max()) + 1
    return SimpleNamespace(
        eligible=None,
        state_codes=states,
        n_states=n_states,
        state_labels=[f"s{code}" for code in range(n_states)],
        action_codes=actions,
        action_space=tuple("abcdefghijklmnopqrst"[:space]),
    )


def random_sets(rng: np.random.Generator, sizes: np.ndarray, space: int) -> Any:
    """A log in which every state holds a uniformly random set of actions of the given size."""
    seen = rng.random((sizes.size, space)).argsort(1).argsort(1) < sizes[:, None]
    states, actions = np.nonzero(seen)
    return make_log(states, actions, space)


def test_check_by_hand() -> None:
    # Distinct rows: (0, a), (1, a), (1, b), (2, a); shares 3/4, 1/4, 0 against 1/3 each.
    check = check_assumption(make_log([0, 0, 1, 1, 2], [0, 0, 0, 1, 0], space=3))
    assert (check.rows, check.distinct_rows, check.states, check.actions) == (5, 4, 3, 3)
    assert check.tv == pytest.approx(5 / 12)
    # An action is seen in 0, 1, 2, 3 states with chances 4, 12, 9, 2 (of 27); mean 4/3: E|X - 4/3| = 56/81.
    assert check.expected_tv == pytest.approx(3 * 56 / 81 / 8)
    # Cochran's Q = 2/3 * ((5/3)^2 + (1/3)^2 + (4/3)^2) / (3 * 2/9) = 14/3, two degrees of freedom.
    assert check.p_value == pytest.approx(math.exp(-14 / 6))
    assert check.state_labels == ["s0", "s1", "s2"]
    assert check.state_rows.tolist() == [2, 2, 1]
    assert check.state_distinct.tolist() == [1, 2, 1]
    assert check.state_tv == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert check.state_expected_tv == pytest.approx([4 / 9, 4 / 9, 2 / 3])
    assert check.share_single == pytest.approx(2 / 3)
    assert check.never_observed == ("c",)


def test_check_is_pearsons_test_when_every_state_holds_one_action() -> None:
    counts = np.array([30, 22, 18, 30])
    check = check_assumption(make_log(np.arange(100), np.repeat(np.arange(4), counts), space=4))
    assert check.p_value == pytest.approx(stats.chisquare(counts).pvalue)
    assert check.share_single == 1.0
    # De Moivre: the mean absolute deviation of a binomial(100, 1/4), at k = floor(100/4) + 1.
    k = 26
    deviation = 2 * k * 0.75 * stats.binom.pmf(k, 100, 0.25)
    assert check.expected_tv == pytest.approx(4 * deviation / 200, rel=1e-10)


@pytest.mark.parametrize("space", [2, 5, 12])
def test_uniform_sets_pass(space: int) -> None:
    rng = np.random.default_rng(space)
    sizes = rng.integers(1, space + 1, size=150)
    checks = [check_assumption(random_sets(rng, sizes, space)) for _ in range(300)]
    assert np.mean([check.p_value < 0.05 for check in checks]) == pytest.approx(0.05, abs=0.04)
    assert np.mean([check.p_value < 0.5 for check in checks]) == pytest.approx(0.5, abs=0.1)
    assert np.mean([check.tv for check in checks]) == pytest.approx(checks[0].expected_tv, rel=0.1)


def test_uniform_draws_pass_in_words() -> None:
    rng = np.random.default_rng(0)
    check = check_assumption(make_log(rng.integers(60, size=600), rng.integers(5, size=600), 5, 60))
    assert check.state_tv.mean() == pytest.approx(check.state_expected_tv.mean(), abs=0.03)
    assert re.fullmatch(
        r"No departure from uniform actions shows \(distance 0\.\d+, uniform sampling gives 0\.\d+ on "
        r"average, p = 0\.\d+\)\. A logger that seeks reward can pass this check and still make LDE rank "
        r"wrongly: states and actions alone cannot show it, logged propensities against rewards can\.",
        check.verdict,
    )


def test_skewed_actions_are_found() -> None:
    rng = np.random.default_rng(1)
    chosen = rng.choice(4, size=400, p=[0.55, 0.25, 0.1, 0.1])
    check = check_assumption(make_log(np.arange(400), chosen, 4))
    assert check.p_value < 1e-10
    assert check.tv > 3 * check.expected_tv
    assert check.verdict.startswith("The actions do not look uniform (distance 0.3")
    assert "do not lean on Theorems 1 to 3" in check.verdict


def test_a_logger_with_a_fixed_action_in_each_state_is_named() -> None:
    rng = np.random.default_rng(2)
    favourite = rng.permutation(np.arange(100) % 5)
    states = np.repeat(np.arange(100), 20)
    check = check_assumption(make_log(states, favourite[states], 5))
    assert check.p_value == 1.0  # evenly spread over the log, and yet nothing like uniform draws
    assert check.state_tv == pytest.approx(np.full(100, 0.8))
    assert check.state_expected_tv == pytest.approx(np.full(100, 0.8**20))
    assert "the same actions come back more often than under uniform draws" in check.verdict


def test_a_small_log_says_so() -> None:
    check = check_assumption(make_log([0, 1, 2], [0, 1, 1], space=4))
    assert "With 0.8 distinct rows per action only a gross departure could show." in check.verdict
    assert check.never_observed == ("c", "d")


def test_a_log_with_every_action_everywhere_and_a_log_with_one_action() -> None:
    full = check_assumption(make_log(np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), space=3))
    assert (full.tv, full.expected_tv, full.p_value, full.share_single) == (0.0, 0.0, 1.0, 0.0)
    assert full.verdict == (
        "Every state has seen every action: the assumption holds trivially and LDE misses no action."
    )
    single = check_assumption(make_log([0, 1], [0, 0], space=1))
    assert (single.tv, single.expected_tv, single.p_value) == (0.0, 0.0, 1.0)
    assert single.verdict == "There is only one action: nothing to check and nothing to compare."


def test_check_with_many_unseen_cells_agrees_with_the_table() -> None:
    """A large action space takes the sorting path; unseen actions do not change the distinct counts."""
    rng = np.random.default_rng(3)
    states, actions = rng.integers(500, size=700), rng.integers(20, size=700)
    dense = check_assumption(make_log(states, actions, 20, 500))
    sparse_log = make_log(states, actions, 20, 500)
    sparse_log.action_space = tuple(range(200))
    sparse = check_assumption(sparse_log)
    assert sparse.state_distinct.tolist() == dense.state_distinct.tolist()
    assert sparse.distinct_rows == dense.distinct_rows == len(set(zip(states, actions, strict=True)))
    assert len(sparse.never_observed) == 180


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40), st.randoms())
def test_check_ignores_row_order_repeats_and_labels(rows: list[tuple[int, int]], random: Any) -> None:
    states, actions = zip(*rows, strict=True)
    first = check_assumption(make_log(states, actions, 4, 5))
    shuffled = [(state, (action + 1) % 4) for state, action in rows * 2]
    random.shuffle(shuffled)
    states, actions = zip(*shuffled, strict=True)
    second = check_assumption(make_log(states, actions, 4, 5))
    assert second.tv == pytest.approx(first.tv)
    assert second.expected_tv == pytest.approx(first.expected_tv)
    assert second.p_value == pytest.approx(first.p_value)
    assert second.state_tv == pytest.approx(first.state_tv)
    assert 0.0 <= first.p_value <= 1.0
    assert 0.0 <= first.tv <= 1.0


def test_check_is_frozen_and_readable() -> None:
    check = check_assumption(make_log([0, 0, 1, 1, 2], [0, 0, 0, 1, 0], space=3))
    assert isinstance(check, AssumptionCheck)
    with pytest.raises(dataclasses.FrozenInstanceError):
        check.tv = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        check.state_tv[0] = 0.0
    assert repr(check).splitlines()[:5] == [
        "AssumptionCheck: 5 rows, 4 distinct, 3 states, 3 actions",
        "                  distance  if uniform",
        "overall              0.417       0.259  p = 0.097",
        "mean over states     0.556       0.519",
        "states with a single action: 66.7%; actions never observed: 1",
    ]
    plain = check.to_dict()
    assert plain["state_rows"] == [2, 2, 1]
    assert plain["never_observed"] == ["c"]
    assert set(plain) == {field.name for field in dataclasses.fields(check)}


# --- The page ---------------------------------------------------------------------------------------------
