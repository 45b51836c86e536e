"""Logs whose eligible actions change from row to row, and the methods on them as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np

import podium


def simulated(
    rows: int = 120,
    actions: int = 5,
    seed: int = 0,
    *,
    distinct: int | None = None,
    uniform: bool = False,
    **roles: Any,
) -> tuple[podium.Log, dict[str, np.ndarray]]:
    """A log with a known behavior policy over random sets of eligible actions, and two policies over them."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((rows, actions)) < 0.5
    eligible[np.arange(rows), rng.integers(actions, size=rows)] = True
    points = rng.normal(size=distinct or rows).round(4)
    states = points[np.arange(rows) if distinct is None else rng.integers(distinct, size=rows)]

    def policy(strength: float) -> np.ndarray:
        score = np.exp(strength * np.outer(states, np.arange(actions) - actions / 2) / actions)
        score = np.where(eligible, score, 0.0)
        return np.asarray(score / score.sum(axis=1, keepdims=True))

    behavior = policy(0.0 if uniform else 1.0)
    taken = np.array([rng.choice(actions, p=row) for row in behavior])
    rewards = np.sin(states) * taken + rng.normal(size=rows)
    given = {"behavior": behavior, "action_space": tuple(range(actions)), "eligible": eligible, **roles}
    return podium.Log(states, taken, rewards, **given), {"steep": policy(3.0), "against": policy(-1.5)}


def kept_rows(log: podium.Log) -> list[int]:
    """The latest row of each state, set of eligible actions and action."""
    last: dict[Any, int] = {}
    for n in range(len(log)):
        last[float(log.state_columns["state"][n]), tuple(log.eligible[n]), int(log.action_codes[n])] = n
    return sorted(last.values())


def plain_value(log: podium.Log, policy: np.ndarray, method: str, model: np.ndarray | None = None) -> float:
    """IPS, DRE, LDE or DiM of a policy (N, A); `model` (N, A) is a baseline, the mean reward by default."""
    terms = plain_terms(log, policy, method, model)
    return sum(terms) / len(terms)


def plain_error(terms: list[float]) -> float:
    """The standard error of their mean."""
    mean = sum(terms) / len(terms)
    return float(np.sqrt(sum((x - mean) ** 2 for x in terms) / (len(terms) - 1) / len(terms)))


def plain_terms(log: podium.Log, policy: np.ndarray, method: str, model: np.ndarray | None = None) -> list[float]:
    """The terms of a method, row by row, of the rows that it keeps."""
    score = method in ("LDE", "DiM")
    rows = kept_rows(log) if score else list(range(len(log)))
    counts = [sum(1 for a in range(log.n_actions) if log.eligible[n, a]) for n in range(len(log))]
    usual = sum(counts) / len(counts)
    mean = sum(float(log.rewards[n]) for n in rows) / len(rows)
    terms = []
    for n in rows:
        a = int(log.action_codes[n])
        weight = counts[n] / usual if score else 1 / float(log.propensities[n])
        base, average = (0.0, 0.0) if method in ("IPS", "DiM") else (mean, mean)
        if model is not None and method in ("DRE", "LDE"):
            base = float(model[n, a])
            average = sum(float(model[n, b] * policy[n, b]) for b in range(log.n_actions) if log.eligible[n, b])
        terms.append((float(log.rewards[n]) - base) * float(policy[n, a]) * weight + average)
    return terms
