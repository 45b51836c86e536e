"""Worlds of known rewards: states, actions, a logger and policies, from which logs of any length can be drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.log import Log
from podium.worlds.bandits import LabelledBandit, from_classification


@dataclass(frozen=True, eq=False)
class Draw:
    """One simulated log with K policies as (N, A) distributions, and their true values."""

    log: Log
    policies: dict[str, Floats]
    values: Floats  # (K,)
    world: World | None = None  # where it was drawn, so that more logs of the same policies can be drawn


@dataclass(frozen=True, eq=False)
class World:
    """A finite population: S states with features, A actions, expected rewards, behaviour, K policies."""

    points: Floats  # (S, d)
    rewards: Floats  # (S, A) expected
    behavior: Floats  # (S, A)
    policies: Floats  # (K, S, A)
    text: bool = False  # states are names, not numbers
    action_features: Floats | None = None
    noise: Callable[[Generator, Floats], Floats] | None = None  # expected rewards (N,) -> rewards (N,)

    @property
    def values(self) -> Floats:
        values: Floats = np.einsum("ksa,sa->k", self.policies, self.rewards) / len(self.points)
        return values

    def log(self, rng: Generator, rows: int) -> Draw:
        """States at random, actions by the behaviour policy."""
        states = rng.integers(len(self.points), size=rows)
        actions = sample(rng, self.behavior[states])
        return self.record(rng, states, actions, self.behavior[states])

    def record(self, rng: Generator, states: Codes, actions: Codes, behavior: Floats) -> Draw:
        expected = self.rewards[states, actions]
        rewards = expected if self.noise is None else self.noise(rng, expected)
        names: Any = range(self.rewards.shape[1])
        if self.action_features is not None:
            names = self.action_features[:, 0].tolist()
        log = Log(
            states=np.array([f"state {s}" for s in states], dtype=object) if self.text else self.points[states],
            actions=np.array(names)[actions],
            rewards=rewards,
            behavior=behavior,
            action_space=names,
        )
        policies = {f"policy {k}": p[states] for k, p in enumerate(self.policies)}
        return Draw(log, policies, self.values, self)


def sample(rng: Generator, distributions: Floats) -> Codes:
    """One action per row of probabilities."""
    edges = np.cumsum(distributions, axis=1)
    chosen: Codes = (rng.random(len(edges))[:, None] * edges[:, -1:] > edges).sum(axis=1).astype(np.int64)
    last: Codes = np.minimum(chosen, distributions.shape[1] - 1)
    return last


def softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    distribution: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return distribution


def one_hot(actions: NDArray[Any], n_actions: int) -> Floats:
    hot: Floats = np.eye(n_actions)[actions]
    return hot


def spread(rng: Generator, raw: Floats, rewards: Floats, width: float = 0.25) -> Floats:
    """Policies mixed with the best or the worst one, so that their values spread over `width` of the whole span.

    As in the paper's Example 1: pi = (1 - beta) raw + beta best (or worst), here with a value drawn uniformly.
    """
    span = rewards.max(axis=1).mean() - rewards.min(axis=1).mean()
    have = np.einsum("ksa,sa->k", raw, rewards) / len(rewards)
    return mix_to(raw, rewards, have.mean() + (rng.random(len(raw)) - 0.5) * width * span)


def mix_to(raw: Floats, rewards: Floats, target: Floats) -> Floats:
    """Policies mixed with the best or the worst one, so that their values are those of `target` (K,)."""
    best = one_hot(rewards.argmax(axis=1), rewards.shape[1])
    worst = one_hot(rewards.argmin(axis=1), rewards.shape[1])
    top, bottom = rewards.max(axis=1).mean(), rewards.min(axis=1).mean()
    have = np.einsum("ksa,sa->k", raw, rewards) / len(rewards)
    mixed = np.empty_like(raw)
    for k in range(len(raw)):
        end, value = (best, top) if target[k] >= have[k] else (worst, bottom)
        beta = np.clip((target[k] - have[k]) / (value - have[k]), 0, 1)
        mixed[k] = (1 - beta) * raw[k] + beta * end
    return mixed


def example_1(number: int) -> tuple[Floats, Floats, Floats]:
    """States, actions and rewards (100, 100) of the paper's Examples 1.1 and 1.2."""
    s, a = np.linspace(0, 1, 100)[:, None], np.linspace(-1, 1, 100)[None, :]
    if number == 1:
        rewards = (np.exp(s + a) + np.sin(2 * np.pi * (s - a))) * (np.cos(2 * np.pi * (s + a)) + np.exp(s - a))
    else:
        wave = 1.5 + np.cos(2 * np.pi * (s + a)) + 0.5 * np.cos(10 * np.pi * (s - a))
        rewards = wave * np.exp(-((a + np.cos(2 * np.pi * s)) ** 2))
    return s, a.T, rewards


def random_policies(rng: Generator, count: int, shape: tuple[int, int], scale: float = 1.0) -> Floats:
    return softmax(scale * rng.standard_normal((count, *shape)))


def smooth_rewards(rng: Generator, points: Floats, n_actions: int, waves: int = 6) -> Floats:
    """(S, A) a random smooth surface per action, plus a part shared by all actions; sd about 1 and .7."""
    d = points.shape[1]

    def surface(count: int) -> Floats:
        frequency = rng.standard_normal((waves, d, count)) / np.sqrt(d)
        phase = rng.random((waves, 1, count)) * 2 * np.pi
        angle = np.einsum("sd,wdc->wsc", points, frequency) + phase
        total: Floats = np.sqrt(2 / waves) * np.cos(angle).sum(axis=0)
        return total

    level = rng.standard_normal(n_actions) * 0.5
    rewards: Floats = surface(n_actions) + level + 0.7 * surface(1)
    return rewards


def learned_policies(rng: Generator, count: int, points: Floats, rewards: Floats, heat: float = 1.0) -> Floats:
    """Policies such as people train: softmax of a noisy idea of the rewards, some with better ideas than others."""
    skill = rng.random(count)[:, None, None]
    noise = np.stack([smooth_rewards(rng, points, rewards.shape[1]) for _ in range(count)])
    belief = skill * rewards + (1 - skill) * noise
    return softmax(belief / (heat * belief.std()) * 1.5)


def gaussian_noise(rng: Generator, expected: Floats) -> Floats:
    return expected + 0.5 * rng.standard_normal(len(expected))


def heavy_noise(rng: Generator, expected: Floats) -> Floats:
    return expected + 0.5 * rng.standard_t(2.5, size=len(expected))


def coin(rng: Generator, expected: Floats) -> Floats:
    return (rng.random(len(expected)) < expected).astype(np.float64)


def smooth_world(rng: Generator, k: int, d: int, n_actions: int, states: int = 500) -> World:
    """States with d features; the logger has smooth habits of its own; policies are learned, well or badly."""
    points = rng.standard_normal((states, d))
    rewards = smooth_rewards(rng, points, n_actions)
    behavior = 0.2 / n_actions + 0.8 * softmax(0.8 * smooth_rewards(rng, points, n_actions))
    policies = learned_policies(rng, k, points, rewards)
    return World(points, rewards, behavior, policies, noise=gaussian_noise)


def example_world(
    rng: Generator, number: int, k: int, logits: Floats | None = None, coordinates: bool = False
) -> World:
    points, actions, rewards = example_1(number)
    shape = rewards.shape
    behavior = softmax(rng.standard_normal(shape) if logits is None else logits)
    policies = spread(rng, random_policies(rng, k, shape), rewards)
    return World(points, rewards, behavior, policies, action_features=actions if coordinates else None)


def confounded_world(rng: Generator, k: int, text: bool) -> World:
    """The logger follows the state, and so does the reward: agreeing with the logger in good states looks good.

    r = 4 s + effect(s, a). The logger prefers the first half of the actions in good states and the second half in
    bad ones; a policy that plays the first half is rewarded in the log although its effect is no better.
    """
    s = np.linspace(0, 1, 60)
    n_actions = 20
    first = (np.arange(n_actions) < n_actions // 2).astype(float)
    effect = 0.5 * rng.standard_normal(n_actions) - 0.4 * first
    rewards = 4 * s[:, None] + effect + 0.2 * rng.standard_normal((60, n_actions))
    lean = 4 * (s[:, None] - 0.5) * (2 * first - 1)
    behavior = softmax(lean + 0.3 * rng.standard_normal((60, n_actions)))
    taste = np.linspace(-1.5, 1.5, k)[rng.permutation(k)][:, None, None] * (2 * first - 1)
    policies = softmax(taste + rng.standard_normal((k, 60, n_actions)) * 0.5)
    return World(s[:, None], rewards, behavior, policies, text=text)


def seeking_behavior(rng: Generator, rewards: Floats) -> Floats:
    scaled = (rewards - rewards.mean(axis=1, keepdims=True)) / rewards.std(axis=1, keepdims=True)
    return softmax(1.2 * scaled + 0.3 * rng.standard_normal(rewards.shape))


def seeking_world(rng: Generator, k: int) -> World:
    points, _, rewards = example_1(1 + int(rng.integers(2)))
    policies = spread(rng, random_policies(rng, k, rewards.shape), rewards)
    return World(points, rewards, seeking_behavior(rng, rewards), policies)


def risky_world(rng: Generator, k: int) -> World:
    """Policies that differ in how often they play middling actions (often logged) and bad ones (rarely logged)."""
    points, _, rewards = example_1(1 + int(rng.integers(2)))
    rank = rewards.argsort(axis=1).argsort(axis=1) / (rewards.shape[1] - 1)
    middling = softmax(np.where((rank > 0.5) & (rank < 0.75), 3.0, -3.0) + rng.standard_normal((k, *rewards.shape)))
    bad = softmax(np.where(rank < 0.3, 3.0, -3.0) + rng.standard_normal((k, *rewards.shape)))
    share = np.linspace(0.1, 0.9, k)[rng.permutation(k)][:, None, None]
    return World(points, rewards, seeking_behavior(rng, rewards), share * middling + (1 - share) * bad)


def forget(draw: Draw, everything: bool = True) -> Draw:
    """The same log without its propensities (or without the full distribution alone)."""
    log = draw.log
    known = None if everything else log.propensities
    return replace(
        draw, log=Log(log.states, log.actions, log.rewards, propensities=known, action_space=log.action_space)
    )


def adaptive(rng: Generator, rows: int, k: int, thompson: bool) -> Draw:
    """The logger keeps mean and count per (state group, action) and plays by what it has learned so far."""
    n_actions = 5
    world = smooth_world(rng, k, 2, n_actions)
    points, rewards = world.points, world.rewards
    group = (points[:, 0] > 0).astype(int) * 2 + (points[:, 1] > 0)
    count, total = np.zeros((4, n_actions)), np.zeros((4, n_actions))
    states = rng.integers(len(points), size=rows)
    behavior = np.empty((rows, n_actions))
    actions = np.empty(rows, dtype=np.int64)
    noise = 0.5 * rng.standard_normal(rows)
    for n in range(rows):
        g = group[states[n]]
        mean = total[g] / (count[g] + 1)
        if thompson:
            draws = mean + rng.standard_normal((200, n_actions)) / np.sqrt(count[g] + 1)
            wins = np.bincount(draws.argmax(axis=1), minlength=n_actions)
            behavior[n] = 0.95 * wins / 200 + 0.05 / n_actions
        else:
            behavior[n] = 0.2 / n_actions
            behavior[n, mean.argmax()] += 0.8
        actions[n] = sample(rng, behavior[n : n + 1])[0]
        count[g, actions[n]] += 1
        total[g, actions[n]] += rewards[states[n], actions[n]] + noise[n]
    fixed = replace(world, noise=lambda _, expected: expected + noise)
    return fixed.record(rng, states, actions, behavior)


def unit_draw(rng: Generator, rows: int, k: int, ties: bool) -> Draw:
    """Units of 10 rows in one state each, with a level and a taste for actions of their own."""
    world = smooth_world(rng, k, 3, 4)
    if ties:
        world = replace(world, rewards=np.repeat(world.rewards.mean(axis=1, keepdims=True), 4, axis=1))
    count = -(-rows // 10)
    units = np.repeat(np.arange(count), 10)[:rows]
    states = rng.integers(len(world.points), size=count)[units]
    behavior = world.behavior[states]
    actions = sample(rng, behavior)
    own = rng.standard_normal(count)[units] + 0.7 * rng.standard_normal((count, 4))[units, actions]
    draw = replace(world, noise=lambda g, expected: expected + own + 0.3 * g.standard_normal(rows)).record(
        rng, states, actions, behavior
    )
    return replace(draw, log=replace(draw.log, units=units))


@lru_cache(maxsize=8)
def classifiers(dataset: str) -> LabelledBandit:
    """A dataset's test examples and the predictions of 40 classifiers for them, weak and strong."""
    import warnings

    from sklearn import datasets, linear_model, naive_bayes, neighbors, tree
    from sklearn.preprocessing import StandardScaler

    bunch = getattr(datasets, f"load_{dataset}")()
    rng = np.random.default_rng(7)
    order = rng.permutation(len(bunch.target))
    x, y = StandardScaler().fit_transform(bunch.data)[order], bunch.target[order]
    half = len(y) // 2
    predictions = []
    models: list[Any] = [
        linear_model.LogisticRegression(max_iter=200),
        naive_bayes.GaussianNB(),
        neighbors.KNeighborsClassifier(3),
        tree.DecisionTreeClassifier(max_depth=2, random_state=0),
        tree.DecisionTreeClassifier(random_state=0),
    ]
    n_classes = int(y.max()) + 1
    for size in (3 * n_classes, 6 * n_classes, half // 3, half):
        for model in models:
            for _ in range(2):
                rows = np.concatenate([rng.choice(half, size=min(size, half), replace=False), first_of_each(y[:half])])
                seen = rng.choice(x.shape[1], size=max(2, x.shape[1] // 2), replace=False)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predictions.append(model.fit(x[rows][:, seen], y[rows]).predict(x[half:][:, seen]))
    return from_classification(x[half:], y[half:], {str(k): p for k, p in enumerate(predictions)}, train=0)


def first_of_each(labels: NDArray[Any]) -> Codes:
    return np.unique(labels, return_index=True)[1].astype(np.int64)
