"""Propensities are held against how often actions occur: honest ones are believed, false ones are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixed_shares import accused
from scipy import stats

import podium
from podium.propensities.frequencies import common_chance, contradiction, divergence


def drawn(seed: int, rows: int = 200, actions: int = 3, states: int = 6, units: int = 0) -> tuple[Any, np.ndarray]:
    """States, actions and the (N, A) probabilities that chose them; rows of one unit share a draw."""
    rng = np.random.default_rng([31, seed])
    state = rng.integers(0, states, rows)
    behavior = rng.dirichlet(np.full(actions, rng.choice([0.3, 2.0])), states)[state]
    unit = rng.integers(0, units, rows) if units else np.arange(rows)
    chance = rng.random(unit.max() + 1)[unit]
    action = np.minimum((chance[:, None] > behavior.cumsum(axis=1)).sum(axis=1), actions - 1)
    return (state, action, unit if units else None), np.maximum(behavior, 1e-9)


def log_of(given: Any, behavior: Any, partly: bool = False) -> podium.Log:
    state, action, unit = given
    known = {"propensities": behavior[np.arange(len(state)), action]} if partly else {"behavior": behavior}
    space = range(behavior.shape[1]) if isinstance(behavior, np.ndarray) else ()
    return podium.Log(state, action, np.zeros(len(state)), action_space=space, units=unit, **known)


def test_the_chi_square_of_fixed_shares_is_pearsons() -> None:
    (state, action, _), _ = drawn(0, rows=300, actions=4)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    counts = np.bincount(action, minlength=4)
    log = log_of((state, action, None), np.tile(shares, (300, 1)))
    assert common_chance(log, log.behavior, counts) == pytest.approx(stats.chisquare(counts, 300 * shares).pvalue)


def test_an_action_that_is_too_frequent_is_seen_however_rare_it_should_be() -> None:
    action = np.where(np.arange(1000) % 50 == 0, 1, 0)
    rare = np.tile([0.999, 0.001], (1000, 1))  # one row is expected, there are 20
    found = contradiction(log_of((np.zeros(1000), action, None), rare))
    assert (found.code, found.fields["action"], found.fields["logged"]) == ("false propensities", "0", 0.98)
    assert contradiction(log_of((np.zeros(1000), action, None), np.tile([0.98, 0.02], (1000, 1)))) is None
    assert divergence(np.array([0.0, 1.0]), np.array([0.0, 1.0])).tolist() == [0.0, 0.0]


def test_rows_of_one_unit_may_be_one_draw() -> None:
    """Of 8 people with 50 rows each, 7 got the first action: as rows impossible, as people a matter of chance."""
    unit = np.repeat(np.arange(8), 50)
    state, action, half = np.zeros(400), np.where(unit < 7, 0, 1), np.full((400, 2), 0.5)
    assert contradiction(log_of((state, action, None), half)).code == "false propensities"
    assert contradiction(log_of((state, action, unit), half)) is None
    assert contradiction(log_of((state, action, unit), np.tile([0.2, 0.8], (400, 1)), partly=True)) is None
    many = np.repeat(np.arange(300), 2)
    given = (np.zeros(600), np.where(many < 225, 0, 1), many)
    assert contradiction(log_of(given, np.full((600, 2), 0.5))).code == "false propensities"


def test_propensities_of_logged_actions_that_are_too_small() -> None:
    given, behavior = drawn(5, rows=400)
    assert contradiction(log_of(given, behavior, partly=True)) is None
    found = contradiction(log_of(given, 0.4 * behavior, partly=True))
    assert found.code == "propensities too small"
    assert found.fields["total"] > 1.5


def test_what_is_not_declared_is_not_tested() -> None:
    given, _ = drawn(6, rows=80)
    assert contradiction(podium.Log(given[0], given[1], np.zeros(80))) is None
    estimated = podium.Log(given[0], given[1], np.zeros(80)).with_behavior("estimate:frequencies")
    assert contradiction(estimated) is None
    every = podium.Log(np.zeros(40), np.arange(40), np.zeros(40), propensities=np.full(40, 1e-9))
    assert contradiction(every) is None  # episodes: each row is an action of its own


def test_many_actions_are_tested_together() -> None:
    rng = np.random.default_rng(7)
    action = rng.integers(0, 300, 3000)
    log = podium.Log(np.zeros(3000), action, np.zeros(3000), behavior="uniform", action_space=range(300))
    assert contradiction(log) is None
    skewed = podium.Log(np.zeros(3000), action // 2, np.zeros(3000), behavior="uniform", action_space=range(300))
    assert contradiction(skewed) is not None


@pytest.mark.slow
def test_honest_logs_are_believed() -> None:
    """Of 3,000 logs, 0.3 are expected to be accused, half of them with units whose rows share a draw."""
    assert max(accused(3_000).values()) <= 3
