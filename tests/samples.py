"""Small simulated logs that several test files share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import podium
from podium.estimates.applied import apply_baseline
from podium.estimates.baselines import BaselineRows
from podium.estimates.estimators import Estimator
from podium.estimates.evaluate import rows_of
from podium.estimates.methods import complete, prepare, run
from podium.estimates.options import Options
from podium.estimates.results import MethodResult

PROCEDURES = ("posterior", "gated", "paired t", "bootstrap t", "sign flip", "doubly robust")
LEAST = 100  # the smallest sample


def sample(
    rows: int = 80,
    actions: int = 3,
    count: int = 3,
    seed: int = 0,
    *,
    knows: str = "full",
    distinct: int | None = None,
    text: bool = False,
    effect: float = 1.0,
    noise: float = 0.5,
    seeks: float = 0.0,
    units: int = 0,
) -> tuple[podium.Log, dict[str, np.ndarray]]:
    """A log whose reward grows by `effect` from action to action, and policies (N, A) that depend on the state.

    `knows` is what the log says of the behaviour policy: "full", "logged" or "none"; `seeks` makes the logger prefer
    actions that pay; `distinct` limits the number of states.
    """
    rng = np.random.default_rng(seed)
    many = distinct or rows
    codes = rng.permutation(rows) if distinct is None else rng.integers(0, distinct, rows)
    points = np.round(rng.normal(size=many), 6)
    behavior = rng.dirichlet(np.full(actions, 2.0), many)
    if seeks:
        behavior = np.exp(seeks * np.arange(actions))[None, :] * behavior
        behavior /= behavior.sum(axis=1, keepdims=True)
    behavior = 0.9 * behavior + 0.1 / actions
    taken = np.array([rng.choice(actions, p=behavior[s]) for s in codes])
    rewards = effect * taken + np.sin(points[codes]) + noise * rng.normal(size=rows)
    options: dict[str, Any] = {"action_space": tuple(range(actions))}
    if knows == "full":
        options["behavior"] = behavior[codes]
    elif knows == "logged":
        options["propensities"] = behavior[codes, taken]
    if units:
        options["units"] = rng.integers(0, units, rows)
    states = np.array([f"s{c}" for c in codes]) if text else points[codes]
    log = podium.Log(states, taken, rewards, **options)
    policies = {f"p{k}": rng.dirichlet(np.linspace(1, 1 + 4 * k, actions), many)[codes] for k in range(count)}
    return log, policies


def logged_only(log: podium.Log, policies: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same policies known only at the logged actions."""
    return {name: matrix[np.arange(len(log)), log.action_codes] for name, matrix in policies.items()}


def degenerate(rows: int = 120, seed: int = 0) -> tuple[podium.Log, dict[str, np.ndarray]]:
    """A log with all that is constant but for rounding: a state column, a uniform logger, a uniform policy."""
    rng = np.random.default_rng(seed)
    states = np.column_stack([np.round(rng.normal(size=rows), 3), np.full(rows, 0.1)])
    actions = rng.integers(0, 3, rows)
    rewards = np.sin(states[:, 0]) + 0.3 * actions + 0.5 * rng.normal(size=rows)
    third = np.full((rows, 3), 1 / 3)
    log = podium.Log(states, actions, rewards, behavior=third, action_space=(0, 1, 2))
    sloped = rng.dirichlet([1.0, 2.0, 3.0], rows)
    return log, {"uniform": third, "mostly 2": np.tile([0.1, 0.2, 0.7], (rows, 1)), "sloped": sloped}


def method_result(
    log: podium.Log, policies: Any, estimator: Estimator, baseline: Any = "mean", **options: Any
) -> MethodResult:
    """One method, with its pairs, on all rows at once, however many they are."""
    chosen = Options(baseline=baseline, **({"sample_rows": max(len(log), LEAST)} | options))
    rows = rows_of(log, policies, chosen)
    (method,) = complete(rows, [replace(prepare(rows, estimator, chosen), paired=True)])
    return run(rows, [method])[0]


def fitted(baseline: Any, log: podium.Log, rows: np.ndarray | None = None) -> BaselineRows:
    """A baseline on some rows of a log, by default on all."""
    every = rows_of(log, {"any": "uniform"}, Options(sample_rows=max(len(log), LEAST)))
    ready = apply_baseline(baseline, every, False, 0)
    return ready.on(every.all_at_once, np.arange(len(log)) if rows is None else rows)


def adjusting(count: int = 8, **options: Any) -> podium.Comparison:
    """A comparison in which intervals at 95% exclude 0 for pairs that are left open among so many."""
    rng, rows = np.random.default_rng(1), 120
    states, actions = rng.integers(0, 3, rows), rng.integers(0, count, rows)
    log = podium.Log(states, actions, rng.normal(size=rows), propensities=np.full(rows, 1 / count))
    policies = {f"always {k}": f"constant:{k}" for k in range(count)}
    return podium.compare(log, policies, **{"verdicts": "paired t", **options})
