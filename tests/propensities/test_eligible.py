"""How actions were chosen among the eligible ones: fixed weights, logistic regression, estimates and their checks."""

from __future__ import annotations

import numpy as np
import pytest
from eligible_logs import simulated

import podium
from podium.propensities.belief import balance, calibration_curve
from podium.propensities.frequencies import contradiction
from podium.propensities.logistic import fit_logistic, softmax
from podium.propensities.preferences import fitted_weights, has_fixed_preferences, shares_over
from podium.verdicts.gated import Gates, action_counts, looks_uniform


def test_fixed_weights_are_found_from_what_they_imply() -> None:
    rng = np.random.default_rng(0)
    eligible = rng.random((200, 6)) < 0.5
    eligible[:, 0] = True
    weights = rng.dirichlet(np.ones(6))
    shares = shares_over(weights, eligible)
    np.testing.assert_allclose(fitted_weights(shares.sum(axis=0), eligible), weights, atol=1e-9)


def test_a_logger_that_looks_at_eligible_actions_alone_does_not_seek_reward() -> None:
    """Its fixed weights favor the best action, but nowhere more than elsewhere."""
    rng = np.random.default_rng(1)
    n = 400
    eligible = rng.random((n, 4)) < 0.6
    eligible[:, 3] = True
    behavior = shares_over(np.array([0.1, 0.2, 0.3, 0.4]), eligible)
    taken = np.array([rng.choice(4, p=row) for row in behavior])
    rewards = taken + rng.normal(size=n) * 0.1
    log = podium.Log(rng.normal(size=n), taken, rewards, behavior=behavior, eligible=eligible)
    policies = {"u": "uniform", "logged": "logged"}
    rows = podium.compare(log, policies).basis
    gates = Gates(rows.sample, rows.policies)
    assert has_fixed_preferences(log)
    assert gates.preference > 3
    assert gates.t_p == 0
    assert not has_fixed_preferences(simulated()[0])


def test_few_eligible_actions_are_not_taken_for_a_preference() -> None:
    """Rows with few eligible actions have large propensities; where they pay more, a uniform logger seeks nothing."""
    log, policies = simulated(rows=400, uniform=True)
    rewards = 3.0 / log.choices + 0.1 * np.random.default_rng(0).normal(size=400)
    log = podium.Log(
        log.states, log.actions, rewards, 1 / log.choices, eligible=log.eligible, action_space=log.action_space
    )
    found = podium.diagnose(log, policies)
    assert abs(found.t_p) < 3
    assert "T_p" not in [alarm.name for alarm in found.alarms]
    assert contradiction(log) is None


def test_shares_of_actions_are_held_against_how_often_they_were_eligible() -> None:
    rng = np.random.default_rng(2)
    eligible = rng.random((600, 3)) < [0.9, 0.5, 0.2]
    eligible[:, 0] |= ~eligible.any(axis=1)
    taken = np.array([rng.choice(np.flatnonzero(row)) for row in eligible])
    log = podium.Log(np.zeros(600), taken, rng.normal(size=600), eligible=eligible, action_space=range(3))
    counts, expected = action_counts(log)
    assert expected.sum() == pytest.approx(600)
    assert looks_uniform(counts, expected)
    assert not looks_uniform(counts, np.full(3, 200.0))


def test_the_logistic_fit_is_that_of_a_choice_among_the_eligible() -> None:
    """At the optimum the slope of the penalized likelihood is 0, row by row over the eligible actions."""
    rng = np.random.default_rng(3)
    x, eligible = rng.normal(size=(300, 2)), rng.random((300, 4)) < 0.6
    eligible[:, 1] = True
    chances = softmax(x @ rng.normal(size=(2, 4)), eligible)
    codes = np.array([rng.choice(4, p=row) for row in chances])
    found = fit_logistic(x, codes, 4, None, eligible)
    slope = np.zeros((3, 4))
    for n in range(300):
        weights = [np.exp(found[0, a] + x[n] @ found[1:, a]) if eligible[n, a] else 0.0 for a in range(4)]
        for a in range(4):
            slope[:, a] += (weights[a] / sum(weights) - (codes[n] == a)) * np.array([1.0, *x[n]])
    slope[1:] += found[1:]
    assert np.abs(slope).max() < 1e-3


@pytest.mark.parametrize("model", ["logistic", "frequencies", "boosting"])
def test_estimates_stay_on_eligible_actions(model: str) -> None:
    log, _ = simulated(rows=400, behavior=None)
    found = podium.estimate_propensities(log, model)
    assert not found.behavior[~log.eligible].any()
    np.testing.assert_allclose(found.behavior.sum(axis=1), 1)
    assert found.log.knows == "estimated"
    assert np.isfinite(found.belief.balance_z)


def test_the_estimate_of_a_choice_among_the_eligible_is_right_and_believed() -> None:
    known, policies = simulated(rows=1500, actions=4)
    log = podium.Log(known.states, known.actions, known.rewards, eligible=known.eligible, action_space=range(4))
    found = podium.estimate_propensities(log)
    assert np.abs(found.behavior - known.behavior).mean() < 0.03
    assert found.belief.verdict == "believable"
    truth = podium.evaluate(known, policies, ["IPS"]).values["steep"]["IPS"]
    assert podium.evaluate(found.log, policies, ["IPS"]).values["steep"]["IPS"] == pytest.approx(truth, abs=0.15)


def test_balance_and_calibration_look_at_eligible_cells_alone() -> None:
    log, _ = simulated(rows=300)
    features = np.column_stack([np.ones(300), log.state_columns["state"]])
    counts = np.bincount(log.action_codes, minlength=5)
    z, _ = balance(log, log.behavior, features, counts)
    for a in range(5):
        for j in range(2):
            total = spread = 0.0
            for n in np.flatnonzero(log.eligible[:, a]):
                p = log.behavior[n, a]
                total += ((log.action_codes[n] == a) / p - 1) * features[n, j]
                spread += (1 / p - 1) * features[n, j] ** 2
            assert z[a, j] == pytest.approx(total / np.sqrt(spread), rel=1e-9)
    curve, _, _ = calibration_curve(log.behavior, log.action_codes, log.eligible)
    assert sum(b.cells for b in curve) == log.eligible.sum()
