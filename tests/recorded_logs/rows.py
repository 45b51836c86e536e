"""Simulated interactions for `recorded_logs.py`: made with NumPy alone, the same from the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import podium


@dataclass(frozen=True)
class Rows:
    """Interactions with their logging policy and candidate policies known in full; N rows, A actions."""

    states: Any  # (N,) or (N, d)
    behavior: np.ndarray  # (N, A)
    actions: np.ndarray  # (N,) positions
    rewards: np.ndarray  # (N,)
    expected: np.ndarray  # (N, A) the expected reward of every action
    policies: dict[str, np.ndarray]  # (N, A) each

    def log(self, knows: str = "full", **options: Any) -> podium.Log:
        """A log that knows the propensities of all actions ("full"), of the logged ones ("logged") or none ("none")."""
        if knows == "full":
            options["behavior"] = self.behavior
        elif knows == "logged":
            options["propensities"] = self.propensities
        return podium.Log(self.states, self.actions, self.rewards, action_space=self.action_space, **options)

    @property
    def action_space(self) -> tuple[int, ...]:
        return tuple(range(self.behavior.shape[1]))

    @property
    def propensities(self) -> np.ndarray:
        """(N,) the probability of the logged action."""
        return self.at_logged(self.behavior)

    @property
    def policies_at_logged(self) -> dict[str, np.ndarray]:
        """The policies as (N,) probabilities of the logged actions."""
        return {name: self.at_logged(policy) for name, policy in self.policies.items()}

    @property
    def choices(self) -> dict[str, np.ndarray]:
        """The policies as (N,) chosen actions: the most probable one of each row."""
        return {name: policy.argmax(axis=1) for name, policy in self.policies.items()}

    def at_logged(self, matrix: np.ndarray) -> np.ndarray:
        return matrix[np.arange(len(matrix)), self.actions]


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N,) one position from every row of probabilities."""
    steps = np.cumsum(probabilities, axis=1) / probabilities.sum(axis=1, keepdims=True)
    return (rng.random((len(steps), 1)) > steps[:, :-1]).sum(axis=1)


def simulate(
    rng: np.random.Generator,
    points: np.ndarray,
    expected: np.ndarray,
    rows: int,
    *,
    count: int = 3,
    seeks: float = 0.0,
    noise: float = 0.5,
    binary: bool = False,
) -> Rows:
    """Draw rows from S states with expected rewards (S, A).

    Every state occurs once if there are as many rows as states. `count` policies prefer good actions more and more;
    `seeks` makes the logging policy prefer them too; `binary` rewards are 1 with the expected reward as probability.
    """
    many, actions = expected.shape
    at = rng.permutation(many) if many == rows else rng.integers(many, size=rows)
    behavior = 0.9 * softmax(rng.normal(size=expected.shape) + seeks * expected) + 0.1 / actions
    taken = draw(behavior[at], rng)
    mean = expected[at, taken]
    rewards = (rng.random(rows) < mean).astype(float) if binary else mean + noise * rng.normal(size=rows)
    strengths = np.linspace(0, 2, count)
    policies = {f"p{k + 1}": softmax(rng.normal(size=expected.shape) + s * expected) for k, s in enumerate(strengths)}
    rows_of = {name: policy[at] for name, policy in policies.items()}
    return Rows(points[at], behavior[at], taken, rewards, expected[at], rows_of)


def wave(seed: int, rows: int, actions: int, states: int | None = None, **options: Any) -> Rows:
    """One numeric state; the reward of every action is a wave over it."""
    rng = np.random.default_rng(seed)
    points = np.sort(rng.normal(size=states or rows)).round(6)
    expected = np.sin(points[:, None] + np.arange(actions)) + 0.3 * np.cos(np.arange(actions))
    return simulate(rng, points, expected, rows, **options)


def plane(seed: int, rows: int, actions: int, features: int, **options: Any) -> Rows:
    """Several numeric features; the reward of every action is linear in them."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, features)).round(6)
    expected = points @ rng.normal(size=(features, actions)) / np.sqrt(features) + rng.normal(size=actions)
    return simulate(rng, points, expected, rows, **options)


def grid(seed: int, rows: int, actions: int, states: int, **options: Any) -> Rows:
    """A few states that return again and again, and unrelated rewards."""
    rng = np.random.default_rng(seed)
    return simulate(rng, np.arange(states), rng.normal(size=(states, actions)), rows, **options)


def clicks(seed: int, rows: int, actions: int, rate: float, **options: Any) -> Rows:
    """Rewards 0 and 1 with probabilities around `rate`, in one numeric state."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=rows).round(6)
    slope = rng.normal(size=actions)
    expected = 1 / (1 + np.exp(-(np.log(rate / (1 - rate)) + points[:, None] * slope)))
    return simulate(rng, points, expected, rows, binary=True, **options)


VISIT_ACTIONS = ("call", "email", "wait")


def visits(seed: int, rows: int, **options: Any) -> tuple[dict[str, np.ndarray], Rows]:
    """Named columns as a file has them (age, plan, region, action, reward), and the same rows; actions are texts."""
    rng = np.random.default_rng(seed)
    ages, plans, regions = np.arange(20, 80, 5), ("basic", "family"), ("east", "north", "south", "west")
    points = np.array([(a, p, r) for a in ages for p in range(len(plans)) for r in range(len(regions))])
    age, plan, region = points.T
    expected = np.stack([0.02 * age - 0.5, 0.8 * plan + 0.1 * region, np.full(len(points), 0.6)], axis=1)
    made = simulate(rng, points, expected, rows, **options)
    columns = {
        "age": made.states[:, 0],
        "plan": np.array(plans, dtype=object)[made.states[:, 1]],
        "region": np.array(regions, dtype=object)[made.states[:, 2]],
        "action": np.array(VISIT_ACTIONS, dtype=object)[made.actions],
        "reward": made.rewards,
    }
    return columns, made


def doses(seed: int, rows: int, coordinates: int = 1) -> dict[str, np.ndarray]:
    """States (N, 2), actions (N, d) that are numbers, their densities and rewards, best near the first feature."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(rows, 2)).round(6)
    around = 0.5 * states[:, :1] + rng.normal(size=(rows, coordinates))
    spread = np.prod(np.exp(-((around - 0.5 * states[:, :1]) ** 2) / 2) / np.sqrt(2 * np.pi), axis=1)
    rewards = 1 - ((around - states[:, :1]) ** 2).sum(axis=1) + 0.3 * states[:, 1] + 0.2 * rng.normal(size=rows)
    return {"states": states, "actions": around, "densities": spread, "rewards": rewards}


@dataclass(frozen=True)
class Steering:
    """A policy of episodes that steers toward 0: it acts deterministically, and knows its density with noise."""

    gain: float
    noise: float = 0.4

    def predict(self, observations: np.ndarray) -> np.ndarray:
        return np.clip(-self.gain * observations[:, :1], -1, 1)

    def log_prob(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        gap = (actions - self.predict(observations)).reshape(len(actions)) / self.noise
        return -(gap**2) / 2 - np.log(self.noise * np.sqrt(2 * np.pi))


def drives(seed: int, gains: dict[str, float], episodes: int, longest: int) -> list[podium.episodes.Episode]:
    """Recorded episodes in which noisy steering policies take turns; some end early."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(episodes):
        name = list(gains)[n % len(gains)]
        policy, position, steps = (
            Steering(gains[name]),
            rng.normal(size=2),
            int(rng.integers(longest // 2, longest + 1)),
        )
        seen, done, paid = [], [], []
        for _ in range(steps):
            action = policy.predict(position[None])[0] + policy.noise * rng.normal(size=1)
            seen.append(position)
            done.append(action)
            position = 0.9 * position + np.array([0.5 * action[0], 0.0]) + 0.1 * rng.normal(size=2)
            paid.append(1 - float(np.abs(position).sum()))
        found.append(podium.episodes.Episode(np.array(seen), np.array(done), np.array(paid), behavior=name))
    return found


def coin_episodes(seed: int, episodes: int, steps: int) -> list[podium.episodes.Episode]:
    """Recorded episodes of yes-or-no actions with their propensities."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        seen = rng.normal(size=(steps, 1)).round(6)
        chance = 0.2 + 0.6 / (1 + np.exp(-seen[:, 0]))
        done = (rng.random(steps) < chance).astype(int)
        paid = np.where(done == 1, seen[:, 0], 0.2) + 0.3 * rng.normal(size=steps)
        found.append(podium.episodes.Episode(seen, done, paid, propensities=np.where(done == 1, chance, 1 - chance)))
    return found
