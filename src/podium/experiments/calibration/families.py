"""Scenario families with known truth: a seed, a number of rows and of policies give a log and the true values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from podium.data.log import Log
from podium.experiments.calibration.worlds import (
    Draw,
    World,
    adaptive,
    classifiers,
    coin,
    confounded_world,
    example_1,
    example_world,
    forget,
    gaussian_noise,
    heavy_noise,
    learned_policies,
    one_hot,
    random_policies,
    risky_world,
    seeking_behavior,
    seeking_world,
    smooth_rewards,
    smooth_world,
    softmax,
    spread,
    unit_draw,
)


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


# --- the paper's grid ----------------------------------------------------------------------------------------


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


@family("state-confounded")
def confounded(rng: Generator, rows: int, k: int) -> Draw:
    return confounded_world(rng, k, False).log(rng, rows)


@family("state-confounded, text states")
def confounded_text(rng: Generator, rows: int, k: int) -> Draw:
    return confounded_world(rng, k, True).log(rng, rows)


@family("reward-seeking, ordinary pairs", seeks_reward=True)
def seeking(rng: Generator, rows: int, k: int) -> Draw:
    return seeking_world(rng, k).log(rng, rows)


@family("reward-seeking, risky pairs", seeks_reward=True)
def risky(rng: Generator, rows: int, k: int) -> Draw:
    return risky_world(rng, k).log(rng, rows)


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


def classification(dataset: str) -> Callable[[Generator, int, int], Draw]:
    def draw(rng: Generator, rows: int, k: int) -> Draw:
        bandit = classifiers(dataset)
        chosen = bandit.predictions[rng.choice(len(bandit.predictions), size=k, replace=False)]
        behavior = random_policies(rng, 1, bandit.rewards.shape)[0]
        world = World(bandit.states, bandit.rewards, behavior, one_hot(chosen, len(bandit.actions)))
        return world.log(rng, rows)

    return draw


for _name, _kind in {"digits": "main", "iris": "main", "wine": "main", "breast_cancer": "aside"}.items():
    family(f"classification: {_name}", kind=_kind)(classification(_name))


# --- stochastic rewards, more features, few or many actions --------------------------------------------------


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


@family("epsilon-greedy learner")
def epsilon_greedy(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=False)


@family("Thompson learner", kind="aside")
def thompson(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=True)


# --- rows that depend on each other --------------------------------------------------------------------------


@family("units", variant=True)
def dependent(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=False)


@family("stress: ties, units", variant=True)
def dependent_ties(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=True)


# --- the health programme, and ties --------------------------------------------------------------------------


@family("health programme")
def programme(rng: Generator, rows: int, k: int) -> Draw:
    from podium.worlds.simulator import Programme

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
