"""The synthetic bandit: its values, policies with a prescribed difference, and the logs it draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.worlds.bandits import Bandit, example, reward_1_2, reward_1_2_text
from podium.worlds.sampling import softmax


def small() -> Bandit:
    return Bandit(np.array([0.0, 1.0]), np.array([-1.0, 0.0, 1.0]), np.array([[0.0, 1.0, 2.0], [4.0, 1.0, 1.0]]))


def test_values_worked_by_hand() -> None:
    bandit = small()
    assert (bandit.v_max, bandit.v_min, bandit.span) == (3.0, 0.5, 2.5)
    uniform = np.full((2, 3), 1 / 3)
    assert bandit.state_values(uniform) == pytest.approx([1.0, 2.0])
    assert bandit.value(uniform) == pytest.approx(1.5)
    assert bandit.value(bandit.greedy(bandit.best_actions)) == bandit.v_max


@pytest.mark.parametrize(("name", "span"), [("1.1", 7.8519), ("1.2", 2.6670)])
def test_the_papers_spans(name: str, span: float) -> None:
    assert example(name).span == pytest.approx(span, abs=5e-5)


def test_rewards_at_a_point() -> None:
    s, a = np.array([[0.25]]), np.array([[0.5]])
    first = (np.exp(0.75) + np.sin(-np.pi / 2)) * (np.cos(1.5 * np.pi) + np.exp(-0.25))
    assert Bandit.from_function(podium.bandits.reward_1_1, [0.25], [0.5]).rewards[0, 0] == pytest.approx(first)
    assert reward_1_2(s, a)[0, 0] == pytest.approx(1.5 * np.exp(-0.25))
    assert reward_1_2_text(s, a)[0, 0] == pytest.approx(1.5 * np.exp(-0.25))
    s, a = np.array([[0.1]]), np.array([[0.0]])
    wave, ridge = np.cos(0.2 * np.pi), np.exp(-(np.cos(0.2 * np.pi) ** 2))
    assert reward_1_2(s, a)[0, 0] == pytest.approx((1.5 + wave - 0.5) * ridge)
    assert reward_1_2_text(s, a)[0, 0] == pytest.approx((3 + wave - 1) / 2 * ridge)


@settings(deadline=None, max_examples=25)
@given(alpha=st.floats(0.02, 0.9), seed=st.integers(0, 2**32))
def test_a_pair_has_the_prescribed_difference_and_proper_policies(alpha: float, seed: int) -> None:
    bandit = example("1.2")
    pi, mu = bandit.pair(alpha, np.random.default_rng(seed))
    assert (bandit.value(pi) - bandit.value(mu)) / bandit.span == pytest.approx(alpha, abs=1e-12)
    for policy in (pi, mu):
        assert policy.sum(axis=1) == pytest.approx(1.0)
        assert policy.min() >= 0


def test_policies_that_differ_by_more_already_are_pulled_together() -> None:
    bandit = small()
    high, low = softmax(np.array([[0, 0, 3.0], [3.0, 0, 0]])), softmax(np.array([[3.0, 0, 0], [0, 0, 3.0]]))
    pi, mu = bandit.prescribe(0.1, high, low)
    assert (bandit.value(pi) - bandit.value(mu)) / bandit.span == pytest.approx(0.1)
    assert min(pi.min(), mu.min()) < 0, "the paper's formula leaves the simplex here, and so does ours"


def test_a_log_holds_what_was_drawn() -> None:
    bandit = example("1.1")
    rng = np.random.default_rng(3)
    behavior = bandit.random_policy(rng)
    log = bandit.draw_log(behavior, 3, rng)
    assert (len(log), log.n_states, log.n_actions) == (300, 100, 100)
    rows = np.searchsorted(bandit.states, log.states)
    assert log.rewards == pytest.approx(bandit.rewards[rows, log.action_codes])
    assert log.propensities == pytest.approx(behavior[rows, log.action_codes])
    assert bandit.on_rows(behavior, log) == pytest.approx(log.behavior)


def test_actions_are_drawn_as_often_as_the_policy_says() -> None:
    bandit = small()
    behavior = np.array([[0.2, 0.3, 0.5], [0.0, 0.9, 0.1]])
    drawn = bandit.draw_actions(behavior, 40_000, np.random.default_rng(0))
    shares = np.array([np.bincount(row, minlength=3) / 40_000 for row in drawn])
    assert shares == pytest.approx(behavior, abs=0.01)
    assert shares[1, 0] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Bandit(np.arange(2.0), np.arange(3.0), np.zeros((3, 2))),
            "rewards must be 2 states x 3 actions, finite; their shape is (3, 2)\n\n"
            "Hint: one row per state, one column per action.",
        ),
        (lambda: example("1.3"), "no example '1.3'\n\nHint: the examples are 1.1, 1.2, 1.2-text."),
        (
            lambda: small().pair(1.5, np.random.default_rng(0)),
            "alpha must be a number from 0 to 1; it is 1.5\n\nHint: give a number as alpha.",
        ),
        (
            lambda: small().draw_actions(np.full((2, 3), 1 / 3), 0, np.random.default_rng(0)),
            "per_state must be a whole number from 1 to 1,000,000; it is 0\n\nHint: use per_state=1.",
        ),
    ],
)
def test_messages(call: object, message: str) -> None:
    with pytest.raises(podium.PodiumError) as caught:
        call()  # type: ignore[operator]
    assert str(caught.value) == message
