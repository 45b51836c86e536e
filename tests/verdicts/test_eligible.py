"""Verdicts where only some actions are eligible: the prior's features, large logs, states, plans and hidden causes."""

from __future__ import annotations

import numpy as np
import pytest
from eligible_logs import plain_value, simulated

import podium
from podium.experiments.calibration.eligible import FAMILIES, main
from podium.policies import resolve_policies
from podium.propensities.preferences import shares_over
from podium.theory import check_assumption
from podium.verdicts.balance import Balance
from podium.verdicts.evidence import gather
from podium.verdicts.prior import build_kernels, habits_of, logging_feature
from podium.verdicts.sensitivity import HiddenCauses


def test_features_are_centred_over_eligible_actions_and_zero_elsewhere() -> None:
    log, given = simulated()
    log, policies = resolve_policies(log, given)
    e = gather(log, policies)
    features = build_kernels(e, 1.0).features
    assert not features[:, ~log.eligible].any()
    for feature in features:
        np.testing.assert_allclose(feature.sum(axis=1), 0, atol=1e-12)
    for k, policy in enumerate(given.values()):
        gap = [policy[n, a] - 1 / log.choices[n] for n, a in np.argwhere(log.eligible)]
        expected = np.array(gap) / np.sqrt(np.mean(np.square(gap))) / np.sqrt(2)
        np.testing.assert_allclose(features[k][log.eligible], expected, atol=1e-10)


def test_actions_that_were_not_possible_are_no_outliers_of_the_logger() -> None:
    """The logarithm of a probability of 0 would outweigh everything that the logger did choose between."""
    log, given = simulated()
    e = gather(*resolve_policies(log, given))
    feature = logging_feature(e)
    assert feature is not None
    assert np.abs(feature).max() < 10
    assert not feature[~log.eligible].any()
    assert feature[log.eligible].std() == pytest.approx(1)
    habits = habits_of(e)
    assert not habits[~log.eligible].any()
    for a in range(log.n_actions):
        assert habits[log.eligible[:, a], a].mean() == pytest.approx(0, abs=1e-12)


def test_a_uniform_logger_has_no_feature() -> None:
    log, given = simulated(uniform=True)
    assert logging_feature(gather(*resolve_policies(log, given))) is None


@pytest.mark.parametrize("method", ["IPS", "DRE", "LDE", "DiM"])
def test_a_log_that_is_read_in_parts_gives_the_same(method: str) -> None:
    log, policies = simulated(rows=700)
    values = podium.evaluate(log, policies, [method], sample_rows=100).values
    for name, policy in policies.items():
        assert values[name][method] == pytest.approx(plain_value(log, policy, method), abs=1e-10)


def test_an_ineligible_choice_is_told_of_all_rows_of_a_log_that_is_read_in_parts() -> None:
    log, _ = simulated(rows=700)
    bad = ~log.eligible[:, 2]
    with pytest.raises(podium.PodiumError, match=rf"row {np.argmax(bad) + 1} holds 2 \({bad.sum()} rows\)"):
        podium.evaluate(log, {"c": lambda states: np.full(len(states), 2)}, ["IPS"], sample_rows=100)


def test_every_question_has_an_answer() -> None:
    log, policies = simulated(rows=200, distinct=20)
    plain = podium.Log(log.states, log.actions, log.rewards, eligible=log.eligible, action_space=log.action_space)
    for one in (log, plain):
        assert len(podium.compare_states(one, policies).states) == one.n_states
        assert podium.plan(one, policies, difference=0.2).pairs[0].rows_80 is not None
        assert podium.spectrum(one, policies).places
        found = podium.diagnose(one, policies)
        assert 0 < found.coverage[0].mass_on_logged < 1
        podium.compare(one, policies).to_dict()


def test_hidden_causes_start_from_propensities_of_eligible_actions() -> None:
    log, _ = simulated(rows=150, behavior=None)
    behavior = HiddenCauses(log).behavior
    assert not behavior[~log.eligible].any()
    np.testing.assert_allclose(behavior.sum(axis=1), 1)


def test_an_action_that_is_offered_by_state_does_not_unbalance_it() -> None:
    """Where only p_n is known, an action that is possible in some states only has too few rows elsewhere by right."""
    rng = np.random.default_rng(4)
    x = rng.random(500).round(3)
    eligible = np.column_stack([np.ones(500, dtype=bool), x > 0.5, x < 0.8])
    chances = shares_over(np.array([0.5, 0.3, 0.2]), eligible)
    taken = np.array([rng.choice(3, p=row) for row in chances])
    p = chances[np.arange(500), taken]
    log = podium.Log(x, taken, rng.normal(size=500), p, eligible=eligible, action_space=range(3))
    assert log.knows == "logged"
    assert Balance(log).p_value([x]) > 0.01
    late = np.where(taken == 1, x, 1 - x)  # a column that follows the action is still found
    assert Balance(log).p_value([late]) < 0.01


def test_uniformity_is_among_eligible_actions() -> None:
    log, _ = simulated(rows=600, uniform=True)
    assert check_assumption(log).p_value > 0.01
    steep, _ = simulated(rows=600, seed=1)
    taken = np.array([np.flatnonzero(row)[-1] for row in steep.eligible])
    seeking = podium.Log(steep.states, taken, steep.rewards, eligible=steep.eligible, action_space=range(5))
    assert check_assumption(seeking).p_value < 1e-6
    everything = np.ones((600, 5), dtype=bool)
    whole = podium.Log(log.states, log.actions, log.rewards, eligible=everything, action_space=range(5))
    plain = podium.Log(log.states, log.actions, log.rewards, action_space=range(5))
    a, b = check_assumption(whole), check_assumption(plain)
    assert a.p_value == pytest.approx(b.p_value, rel=1e-8)
    assert (a.tv, a.expected_tv) == (pytest.approx(b.tv), pytest.approx(b.expected_tv))
    np.testing.assert_allclose(a.state_expected_tv, b.state_expected_tv)
    assert a.verdict == b.verdict


def test_the_bench_counts_claims_and_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--logs", "2", "--rows", "60", "--family", "uniform among eligible", "no effects (ties)"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[2].startswith("| uniform among eligible | 60 | ")
    assert set(FAMILIES) >= {"uniform among eligible", "follows the state"}
