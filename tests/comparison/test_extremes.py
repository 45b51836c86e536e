"""Extreme and odd input beside logs: refused by name, or answered without a warning of another library."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import podium
from podium import Log, PodiumError
from podium.adapters.obp import from_action_dists, from_feedback
from podium.continuous import ContinuousLog
from podium.data.columns import sort_key

FEEDBACK: dict[str, Any] = {
    "context": np.zeros((4, 1)), "action": np.array([0, 1, 0, 1]), "reward": np.ones(4), "pscore": np.full(4, 0.5),
}  # fmt: skip


def test_continuous_actions_have_bounds() -> None:
    with pytest.raises(PodiumError, match=r"the actions must lie within -1e\+100 and 1e\+100; row 2 holds 1e\+200"):
        ContinuousLog([0, 1], [1.0, 1e200], [1.0, 0.0])


def test_a_tiny_bandwidth_is_refused_without_a_warning() -> None:
    log = ContinuousLog(range(4), [0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 0.0], densities=[1.0] * 4)
    for kernel in ("epanechnikov", "gaussian", "triangular", "cosine"):
        with pytest.raises(PodiumError, match="the weights of 'a' are too large"):
            log.evaluate({"a": 1.0, "b": 2.0}, bandwidth=1e-310, kernel=kernel)


def test_a_complex_baseline_is_refused() -> None:
    log = Log([0, 1], ["a", "b"], [1.0, 0.0])
    with pytest.raises(PodiumError, match="the baseline must hold numbers; it holds complex128"):
        podium.evaluate(log, {"a": "constant:a"}, baseline=np.full((2, 2), 1j))


def test_feedback_of_the_open_bandit_pipeline() -> None:
    for wrong in (2.5, "2", 0, np.nan):
        with pytest.raises(PodiumError, match="n_actions must be a whole number from 1 on"):
            from_feedback({**FEEDBACK, "n_actions": wrong})
    assert from_feedback({**FEEDBACK, "n_actions": np.int64(3)}).n_actions == 3
    dist = np.full((4, 2, 1), 0.5)
    dist[2, 1] = np.nan
    with pytest.raises(PodiumError, match="policy 'x' must be finite numbers"):
        from_action_dists({"x": dist}, FEEDBACK)
    with pytest.raises(PodiumError, match="policy 'x'"):
        from_action_dists({"x": "half"}, FEEDBACK)


def test_the_order_of_sets_does_not_follow_their_hashes() -> None:
    code = "from podium.data.columns import sort_key; print(sort_key(frozenset(['x', 'yy', 'zzz', 4])))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert found == {f"{sort_key(frozenset(['x', 'yy', 'zzz', 4]))}\n"}


def test_sparse_matrices_and_lazy_frames_are_no_columns() -> None:
    import polars as pl
    from scipy.sparse import csr_matrix

    for states, hint in ((csr_matrix(np.eye(2)), "toarray"), (pl.LazyFrame({"x": [1, 2]}), "collect")):
        with pytest.raises(PodiumError, match=f"a {type(states).__name__} is no column\n\nHint: give x.{hint}()"):
            Log(states, ["a", "b"], [1.0, 0.0])
    with pytest.raises(PodiumError, match="a csr_matrix is no column"):
        podium.evaluate(Log([0, 1], ["a", "b"], [1.0, 0.0]), {"a": lambda states: csr_matrix(np.eye(2))})


@pytest.mark.parametrize("rewards", [1, 2])
def test_blocks_without_any_reward_get_an_answer(rewards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.verdicts.posterior.WHOLE_ROWS", 120)
    monkeypatch.setattr("podium.verdicts.posterior.BLOCK_ROWS", 60)
    n = 480
    rng = np.random.default_rng(3)
    paid = np.zeros(n)
    paid[rng.choice(n, rewards, replace=False)] = rng.lognormal(3, 1, rewards)
    log = podium.Log(
        states=rng.integers(6, size=n), actions=rng.integers(3, size=n), rewards=paid, propensities=np.full(n, 1 / 3)
    )
    result = podium.compare(log, {"zero": "constant:0", "one": "constant:1"})
    pair = result.pairs[0]
    assert pair.verdict == "cannot tell"
    assert np.isfinite(pair.difference)
    assert "Too few rows" in pair.reasons[0]


def test_a_handful_of_rewards_decides_nothing_on_every_row_either() -> None:
    rng = np.random.default_rng(2)
    n = 300
    paid = np.zeros(n)
    paid[:4] = 1
    actions = np.where(paid > 0, 1, rng.integers(2, size=n))
    log = Log(rng.integers(4, size=n), actions, paid, behavior=np.full((n, 2), 0.5))
    for verdicts in (None, "doubly robust"):
        pair = podium.compare(log, {"zero": "constant:0", "one": "constant:1"}, verdicts=verdicts).pairs[0]
        assert pair.verdict == "cannot tell"
        assert "Too few rows" in pair.reasons[0]
