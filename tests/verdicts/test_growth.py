"""How fast rows make a difference certain: rates from the halves of a log."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from podium.verdicts import growth
from podium.verdicts.evidence import Evidence
from podium.verdicts.growth import RATES, falling_rates, variance_without_prior


def evidence(rows: int, seed: int, pattern: bool, units: int = 0) -> Evidence:
    """Rewards that follow a pattern of 50 states and 20 actions without noise, or coins in ever new states."""
    rng = default_rng(seed)
    count, actions = (50, 20) if pattern else (10**6, 2)
    codes = rng.integers(count, size=rows)
    states = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    point = codes / count
    chosen = rng.integers(actions, size=rows)
    rewards = np.sin(3 * point + chosen / 3) if pattern else rng.integers(0, 2, rows).astype(float)
    logits = rng.normal(size=(2, count, actions))[:, codes] if pattern else np.tile([1.0, -1.0], (2, rows, 1))
    policies = np.exp(logits * (1 if pattern else np.array([1, -1])[:, None, None]))
    return Evidence(
        numeric=point[:, None] if pattern else np.zeros((rows, 0)),
        texts=np.zeros((rows, 0), dtype=np.int64) if pattern else states[:, None],
        states=states,
        actions=chosen,
        rewards=rewards,
        policies=policies / policies.sum(axis=2, keepdims=True),
        behavior=np.full((rows, actions), 1 / actions),
        units=np.arange(rows) * units // rows if units else None,
    )


def rates(e: Evidence) -> float:
    return float(falling_rates(e, variance_without_prior(e))[0])


def test_coins_in_new_states_become_certain_as_one_over_n() -> None:
    assert rates(evidence(200, 0, pattern=False)) == pytest.approx(1, abs=0.1)


def test_a_pattern_becomes_certain_faster() -> None:
    assert rates(evidence(80, 0, pattern=True)) > 1.4


def test_few_rows_and_single_units_show_no_rate() -> None:
    short = evidence(39, 0, pattern=True)
    assert rates(short) == 1.0
    assert rates(evidence(60, 0, pattern=True, units=1)) == 1.0


def test_the_order_of_rows_plays_no_part() -> None:
    e = evidence(100, 1, pattern=True)
    assert rates(e.take(default_rng(0).permutation(100))) == pytest.approx(rates(e), abs=1e-9)


def test_of_a_long_log_a_block_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MOST", 100)
    sizes = []
    monkeypatch.setattr(growth, "variance_without_prior", lambda part: sizes.append(part.rows) or np.ones(1))
    falling_rates(evidence(1000, 0, pattern=True), np.ones(1))
    assert sizes == [100, 50, 50]


def test_policies_that_are_the_same_have_a_rate_too() -> None:
    e = evidence(80, 0, pattern=True)
    same = Evidence(**{**vars(e), "policies": e.policies[[0, 0]]})
    assert RATES[0] <= rates(same) <= RATES[1]
