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
