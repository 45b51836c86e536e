"""Scenario families with known truth: a seed, a number of rows and of policies give a log and the true values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from podium.columns import Codes, Floats
from podium.log import Log


@dataclass(frozen=True, eq=False)
class Draw:
    """One simulated log with K policies as (N, A) distributions, and their true values."""

    log: Log
    policies: dict[str, Floats]
    values: Floats  # (K,)
    world: World | None = None  # where it was drawn, so that more logs of the same policies can be drawn


@dataclass(frozen=True)
class Family:
    """A way to draw logs. `kind`: "main", "aside" (not looked at while tuning), or "failure" (must abstain)."""

    name: str
    draw: Callable[[Generator, int, int], Draw]
    kind: str = "main"
    seeks_reward: bool = False
    variant: bool = False  # a second view of another family; not part of the fixed grid


FAMILIES: dict[str, Family] = {}


def family(
    name: str, kind: str = "main", seeks_reward: bool = False, variant: bool = False
) -> Callable[[Callable[[Generator, int, int], Draw]], Callable[[Generator, int, int], Draw]]:
    """Register a function (rng, rows, policies) -> Draw as a family."""

    def register(draw: Callable[[Generator, int, int], Draw]) -> Callable[[Generator, int, int], Draw]:
        FAMILIES[name] = Family(name, draw, kind, seeks_reward, variant)
        return draw

    return register


# --- building blocks -----------------------------------------------------------------------------------------


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
    best = one_hot(rewards.argmax(axis=1), rewards.shape[1])
    worst = one_hot(rewards.argmin(axis=1), rewards.shape[1])
    top, bottom = rewards.max(axis=1).mean(), rewards.min(axis=1).mean()
    have = np.einsum("ksa,sa->k", raw, rewards) / len(rewards)
    target = have.mean() + (rng.random(len(raw)) - 0.5) * width * (top - bottom)
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


# --- the paper's grid ----------------------------------------------------------------------------------------


def example_world(
    rng: Generator, number: int, k: int, logits: Floats | None = None, coordinates: bool = False
) -> World:
    points, actions, rewards = example_1(number)
    shape = rewards.shape
    behavior = softmax(rng.standard_normal(shape) if logits is None else logits)
    policies = spread(rng, random_policies(rng, k, shape), rewards)
    return World(points, rewards, behavior, policies, action_features=actions if coordinates else None)


@family("example 1.1")
def example_11(rng: Generator, rows: int, k: int) -> Draw:
    return example_world(rng, 1, k).log(rng, rows)


@family("example 1.2")
def example_12(rng: Generator, rows: int, k: int) -> Draw:
    return example_world(rng, 2, k).log(rng, rows)


@family("example 1.1, numeric actions", variant=True)
def example_11_numeric(rng: Generator, rows: int, k: int) -> Draw:
    return example_world(rng, 1, k, coordinates=True).log(rng, rows)


@family("example 1.2, numeric actions", variant=True)
def example_12_numeric(rng: Generator, rows: int, k: int) -> Draw:
    return example_world(rng, 2, k, coordinates=True).log(rng, rows)


@family("example 1.1, text states", variant=True)
def example_11_text(rng: Generator, rows: int, k: int) -> Draw:
    return replace(example_world(rng, 1, k), text=True).log(rng, rows)


@family("uniform logger")
def uniform(rng: Generator, rows: int, k: int) -> Draw:
    return example_world(rng, 1 + int(rng.integers(2)), k, logits=np.zeros((100, 100))).log(rng, rows)


@family("heavy-tailed logger")
def heavy_logger(rng: Generator, rows: int, k: int) -> Draw:
    logits = 1.5 * rng.standard_t(3, size=(100, 100))
    return example_world(rng, 1 + int(rng.integers(2)), k, logits=logits).log(rng, rows)


@family("random softmax")
def random_softmax(rng: Generator, rows: int, k: int) -> Draw:
    """Independent random policies that know nothing of the rewards: nearly tied, and hard to tell apart."""
    points = rng.standard_normal((500, 2))
    rewards = smooth_rewards(rng, points, 10)
    policies = random_policies(rng, k, rewards.shape, 1.5)
    level = softmax(rng.standard_normal((k, 1, 10)))
    policies = 0.5 * policies + 0.5 * level
    return World(points, rewards, random_policies(rng, 1, rewards.shape)[0], policies).log(rng, rows)


# --- loggers that mislead ------------------------------------------------------------------------------------


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


@family("state-confounded")
def confounded(rng: Generator, rows: int, k: int) -> Draw:
    return confounded_world(rng, k, False).log(rng, rows)


@family("state-confounded, text states")
def confounded_text(rng: Generator, rows: int, k: int) -> Draw:
    return confounded_world(rng, k, True).log(rng, rows)


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


@family("reward-seeking, ordinary pairs", seeks_reward=True)
def seeking(rng: Generator, rows: int, k: int) -> Draw:
    return seeking_world(rng, k).log(rng, rows)


@family("reward-seeking, risky pairs", seeks_reward=True)
def risky(rng: Generator, rows: int, k: int) -> Draw:
    return risky_world(rng, k).log(rng, rows)


def forget(draw: Draw, everything: bool = True) -> Draw:
    """The same log without its propensities (or without the full distribution alone)."""
    log = draw.log
    known = None if everything else log.propensities
    return replace(
        draw, log=Log(log.states, log.actions, log.rewards, propensities=known, action_space=log.action_space)
    )


@family("reward-seeking, no propensities, ordinary", kind="failure")
def seeking_blind(rng: Generator, rows: int, k: int) -> Draw:
    return forget(seeking_world(rng, k).log(rng, rows))


@family("reward-seeking, no propensities, risky", kind="failure")
def risky_blind(rng: Generator, rows: int, k: int) -> Draw:
    return forget(risky_world(rng, k).log(rng, rows))


@family("reward-seeking, p of logged action only", kind="failure", seeks_reward=True)
def risky_logged(rng: Generator, rows: int, k: int) -> Draw:
    return forget(risky_world(rng, k).log(rng, rows), everything=False)


@family("stress: strong seeker, no propensities", kind="failure", variant=True)
def stress_blind(rng: Generator, rows: int, k: int) -> Draw:
    """A logger that seeks reward hard, and policies that play middling or bad actions."""
    world = risky_world(rng, k)
    behavior = softmax(3 * np.log(np.maximum(world.behavior, 1e-9)) / 1.2)
    return forget(replace(world, behavior=behavior).log(rng, rows))


@family("stress: strong seeker", seeks_reward=True, variant=True)
def stress_seeker(rng: Generator, rows: int, k: int) -> Draw:
    world = risky_world(rng, k)
    behavior = 0.1 / 100 + 0.9 * softmax(3 * np.log(np.maximum(world.behavior, 1e-9)) / 1.2)
    return replace(world, behavior=behavior).log(rng, rows)


@family("stress: greedy oracle", seeks_reward=True, variant=True)
def stress_greedy(rng: Generator, rows: int, k: int) -> Draw:
    """Half the rows go to the ten best actions of a state, so log B says little of the reward of the others."""
    world = risky_world(rng, k)
    best = world.rewards.argsort(axis=1).argsort(axis=1) >= 90
    return replace(world, behavior=np.where(best, 0.05, 0.5 / 90)).log(rng, rows)


@family("stress: logger of bad actions", variant=True)
def stress_averse(rng: Generator, rows: int, k: int) -> Draw:
    """The logger prefers what the policies would rather avoid, not in proportion to the reward."""
    points, _, rewards = example_1(1 + int(rng.integers(2)))
    rank = rewards.argsort(axis=1).argsort(axis=1) / 99
    behavior = softmax(np.where((rank > 0.2) & (rank < 0.5), 1.5, 0.0) + 0.5 * rng.standard_normal(rewards.shape))
    policies = spread(rng, random_policies(rng, k, rewards.shape), rewards)
    return World(points, rewards, behavior, policies).log(rng, rows)


@family("stress: seeker of few actions, no propensities", kind="failure", variant=True)
def stress_few(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 8)
    policies = learned_policies(rng, k, world.points, -world.rewards)
    return forget(replace(world, policies=policies, behavior=seeking_behavior(rng, 2 * world.rewards)).log(rng, rows))


@family("stress: ties, confounded", variant=True)
def stress_ties_confounded(rng: Generator, rows: int, k: int) -> Draw:
    """Every action has the same reward; only the state matters, and the logger follows it."""
    world = confounded_world(rng, k, bool(rng.integers(2)))
    rewards = np.repeat(world.rewards.mean(axis=1, keepdims=True), world.rewards.shape[1], axis=1)
    return replace(world, rewards=rewards, noise=gaussian_noise).log(rng, rows)


@family("stress: ties, 100 actions", variant=True)
def stress_ties_grid(rng: Generator, rows: int, k: int) -> Draw:
    """Example 1 with policies brought to one value, logged at random or by a seeker of reward."""
    points, _, rewards = example_1(1 + int(rng.integers(2)))
    policies = spread(rng, random_policies(rng, k, rewards.shape, 1.5), rewards, width=0.0)
    behavior = seeking_behavior(rng, rewards) if rng.random() < 0.5 else random_policies(rng, 1, rewards.shape)[0]
    return World(points, rewards, behavior, policies).log(rng, rows)


@family("stress: ties, coins", variant=True)
def stress_ties_coins(rng: Generator, rows: int, k: int) -> Draw:
    """Coins that no action turns; policies and logger have habits."""
    world = smooth_world(rng, k, 3, 5)
    level = 1 / (1 + np.exp(-world.points[:, :1]))
    return replace(world, rewards=np.repeat(level, 5, axis=1), noise=coin).log(rng, rows)


@family("no propensities")
def blind(rng: Generator, rows: int, k: int) -> Draw:
    points = rng.standard_normal((500, 2))
    rewards = smooth_rewards(rng, points, 8)
    behavior = softmax(0.7 * smooth_rewards(rng, points, 8))
    world = World(points, rewards, behavior, learned_policies(rng, k, points, rewards), noise=gaussian_noise)
    return forget(world.log(rng, rows))


@family("no propensities, example 1", variant=True)
def blind_example(rng: Generator, rows: int, k: int) -> Draw:
    return forget(example_world(rng, 1 + int(rng.integers(2)), k).log(rng, rows))


@family("p of logged action only", variant=True)
def logged_only(rng: Generator, rows: int, k: int) -> Draw:
    return forget(example_world(rng, 1 + int(rng.integers(2)), k).log(rng, rows), everything=False)


# --- classification with deterministic policies --------------------------------------------------------------


@lru_cache(maxsize=8)
def classifiers(dataset: str) -> tuple[Floats, Codes, Codes]:
    """Test features (S, d), labels (S,), and the predictions (C, S) of about 30 classifiers, weak and strong."""
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
    return x[half:], y[half:].astype(np.int64), np.array(predictions, dtype=np.int64)


def first_of_each(labels: NDArray[Any]) -> Codes:
    return np.unique(labels, return_index=True)[1].astype(np.int64)


def classification(dataset: str) -> Callable[[Generator, int, int], Draw]:
    def draw(rng: Generator, rows: int, k: int) -> Draw:
        points, labels, predictions = classifiers(dataset)
        n_classes = int(labels.max()) + 1
        chosen = predictions[rng.choice(len(predictions), size=k, replace=False)]
        rewards = one_hot(labels, n_classes)
        behavior = random_policies(rng, 1, rewards.shape)[0]
        world = World(points, rewards, behavior, one_hot(chosen, n_classes))
        return world.log(rng, rows)

    return draw


for _name, _kind in {"digits": "main", "iris": "main", "wine": "main", "breast_cancer": "aside"}.items():
    family(f"classification: {_name}", kind=_kind)(classification(_name))


# --- stochastic rewards, more features, few or many actions --------------------------------------------------


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


@family("Bernoulli rewards")
def bernoulli(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 6)
    return replace(world, rewards=1 / (1 + np.exp(1 - world.rewards)), noise=coin).log(rng, rows)


@family("heavy-tailed noise", kind="aside")
def heavy_rewards(rng: Generator, rows: int, k: int) -> Draw:
    return replace(smooth_world(rng, k, 2, 6), noise=heavy_noise).log(rng, rows)


@family("5 features")
def five(rng: Generator, rows: int, k: int) -> Draw:
    return smooth_world(rng, k, 5, 8).log(rng, rows)


@family("20 features", kind="aside")
def twenty(rng: Generator, rows: int, k: int) -> Draw:
    return smooth_world(rng, k, 20, 8).log(rng, rows)


@family("2 actions")
def two_actions(rng: Generator, rows: int, k: int) -> Draw:
    return smooth_world(rng, k, 3, 2).log(rng, rows)


@family("1,000 actions")
def thousand_actions(rng: Generator, rows: int, k: int) -> Draw:
    points = rng.standard_normal((200, 2))
    rewards = smooth_rewards(rng, points, 1000)
    policies = spread(rng, random_policies(rng, k, rewards.shape), rewards)
    return World(points, rewards, random_policies(rng, 1, rewards.shape)[0], policies).log(rng, rows)


@family("fewer than 20 states")
def few_states(rng: Generator, rows: int, k: int) -> Draw:
    states, n_actions = int(rng.integers(4, 19)), 6
    points = np.arange(states, dtype=float)[:, None]
    rewards = rng.standard_normal((states, 1)) + 0.7 * rng.standard_normal((states, n_actions))
    rewards += 0.7 * rng.standard_normal(n_actions)
    skill = rng.random(k)[:, None, None]
    belief = skill * rewards + (1 - skill) * rng.standard_normal((k, states, n_actions))
    world = World(points, rewards, random_policies(rng, 1, rewards.shape)[0], softmax(2 * belief), noise=gaussian_noise)
    return replace(world, text=bool(rng.integers(2))).log(rng, rows)


# --- loggers that learn while they log -----------------------------------------------------------------------


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


@family("epsilon-greedy learner")
def epsilon_greedy(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=False)


@family("Thompson learner", kind="aside")
def thompson(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=True)


# --- rows that depend on each other --------------------------------------------------------------------------


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


@family("units", variant=True)
def dependent(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=False)


@family("stress: ties, units", variant=True)
def dependent_ties(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=True)


# --- the health programme, and ties --------------------------------------------------------------------------


@family("health programme")
def programme(rng: Generator, rows: int, k: int) -> Draw:
    from podium.simulator import Programme

    source = Programme()
    log = source.draw(rows, int(rng.integers(2**31)))
    names = list(log.distributions)[:k]
    truth = source.true_values()
    whole = Log(log.states, log.actions, log.rewards, behavior=log.behavior, action_space=log.action_space)
    return Draw(whole, {n: log.distributions[n] for n in names}, np.array([truth[n] for n in names]))


@family("exact ties")
def ties(rng: Generator, rows: int, k: int) -> Draw:
    """Different policies of equal value: each plays well in one half of the states and badly in the other."""
    points = np.linspace(-1.5, 1.5, 200)[:, None]
    rewards = smooth_rewards(rng, points, 6)
    best, worst = one_hot(rewards.argmax(axis=1), 6), one_hot(rewards.argmin(axis=1), 6)
    raw = random_policies(rng, k, rewards.shape)
    target = (np.einsum("ksa,sa->k", raw, rewards) / len(rewards)).max() + 0.05
    mixed = np.empty_like(raw)
    for i in range(k):
        value = (raw[i] * rewards).sum(axis=1).mean()
        third = rng.random(len(points)) < 0.5
        end = np.where(third[:, None], best, 0.5 * best + 0.5 * worst)
        beta = (target - value) / ((end * rewards).sum(axis=1).mean() - value)
        mixed[i] = (1 - beta) * raw[i] + beta * end
    return World(points, rewards, random_policies(rng, 1, rewards.shape)[0], mixed, noise=gaussian_noise).log(rng, rows)
