"""Everyday worlds: actions that explain little of the reward, rewards that are mostly zero, policies that are tied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from podium.data.columns import Floats
from podium.experiments.calibration.worlds import World, coin, mix_to, one_hot, smooth_rewards, softmax

STATES = 3_000  # of a world with many states: few of them appear twice in a log
BY_STATE = 0.3  # share of the variance of continuous rewards that the state explains
COIN_BY_STATE = 0.15
SHARES = (0.4, 0.3, 0.2, 0.1)  # of a logger that prefers some actions, whatever the state

Noise = Callable[[Generator, Floats], Floats]


def everyday_policies(rng: Generator, points: Floats, effect: Floats, count: int) -> Floats:
    """(K, S, A): in turn one action for everybody, a threshold rule, a learned softmax, and fixed probabilities.

    Learned policies know `effect` (S, A) with a skill between 0 and 1.
    """
    states, actions = effect.shape
    scale = float(effect.std()) or 1.0
    arms = rng.permutation(actions)
    policies = []
    for k, kind in enumerate(np.resize(rng.permutation(4), count)):
        if kind == 0:
            policies.append(np.tile(one_hot(arms[k // 4 % actions], actions), (states, 1)))
        elif kind == 1:
            column = points[:, rng.integers(points.shape[1])]
            above, below = rng.choice(actions, 2, replace=False)
            high = column > np.quantile(column, rng.uniform(0.2, 0.8))
            policies.append(one_hot(np.where(high, above, below), actions))
        elif kind == 2:
            skill, idea = rng.random(), smooth_rewards(rng, points, actions)
            belief: Floats = skill * effect / scale + (1 - skill) * idea / idea.std()
            policies.append(softmax(2 * belief))
        else:
            policies.append(np.tile(softmax(rng.standard_normal((1, actions))), (states, 1)))
    return np.array(policies)


def action_effects(rng: Generator, points: Floats, actions: int, by_state: float = 0.6, overall: float = 0.8) -> Floats:
    """(S, A) effects of the actions: mean 0 in every state, variance 1 over all; partly the same in every state."""
    surface = smooth_rewards(rng, points, actions)
    surface = surface - surface.mean(axis=1, keepdims=True)
    level = rng.standard_normal(actions)
    level = level - level.mean()
    effects = by_state * surface / surface.std() + overall * level / level.std()
    return np.asarray(effects / effects.std())


def state_level(rng: Generator, points: Floats) -> Floats:
    """(S, 1) what the state alone contributes to the reward: mean 0, variance 1."""
    level = smooth_rewards(rng, points, 1)
    return np.asarray((level - level.mean()) / level.std())


def logger_of(rng: Generator, kind: str, points: Floats, level: Floats, actions: int) -> Floats:
    """(S, A) the behavior policy: "uniform", fixed "shares", or one that "follows" the state and so confounds."""
    if kind == "uniform":
        return np.full((len(points), actions), 1 / actions)
    if kind == "shares":
        shares = np.array(SHARES[:actions])
        return np.tile(shares / shares.sum(), (len(points), 1))
    lean = 0.5 * level * rng.standard_normal(actions)
    return np.asarray(0.2 / actions + 0.8 * softmax(0.8 * smooth_rewards(rng, points, actions) + lean))


def weak_world(
    rng: Generator, count: int, share: float, actions: int, features: int, binary: bool, logger: str
) -> World:
    """A world in which the actions explain `share` of the variance of the reward.

    That share is the variance between the actions of a state, each equally frequent, averaged over the states.
    """
    points = rng.standard_normal((STATES, features))
    level, effects = state_level(rng, points), action_effects(rng, points, actions)
    behavior = logger_of(rng, logger, points, level, actions)
    policies = everyday_policies(rng, points, effects, count)
    if not binary:
        rewards = np.sqrt(BY_STATE) * level + np.sqrt(share) * effects
        return World(points, rewards, behavior, policies, noise=normal(np.sqrt(1 - BY_STATE - share)))
    rate = rng.uniform(0.2, 0.6)
    spread = np.sqrt(rate * (1 - rate))
    rewards = rate + spread * (np.sqrt(COIN_BY_STATE) * level + np.sqrt(share) * effects)
    return World(points, np.clip(rewards, 0.005, 0.995), behavior, policies, noise=coin)


def sparse_world(
    rng: Generator, count: int, rate: float, actions: int, states: int | None, skewed: bool, tail: float | None
) -> World:
    """A world in which a share `rate` of the rewards is not zero.

    `states`: a few states that are names, or None for many with three features. `tail`: None for clicks, else the
    rewards that are not zero are lognormal with this standard deviation of their logarithms and mean 1.
    """
    points = rng.standard_normal((states or STATES, 1 if states else 3))
    level = state_level(rng, points)
    effects = 0.57 * action_effects(rng, points, actions, by_state=0.35, overall=0.45)
    rates = np.exp(0.5 * level + effects)
    rates = np.minimum(rates / rates.mean() * rate, 0.9)
    behavior = np.full(rates.shape, 1 / actions)
    if skewed:
        habits = rng.standard_normal((1, actions)) + 0.5 * smooth_rewards(rng, points, actions)
        behavior = 0.1 / actions + 0.9 * softmax(habits)
    policies = everyday_policies(rng, points, effects, count)
    noise = coin if tail is None else zero_inflated(tail)
    return World(points, rates, behavior, policies, text=states is not None, noise=noise)


def flat(world: World) -> World:
    """The same world, but actions make no difference: all policies are tied."""
    mean = world.rewards.mean(axis=1, keepdims=True)
    return replace(world, rewards=np.repeat(mean, world.rewards.shape[1], axis=1))


def tied(world: World, groups: int = 1, width: float = 0.0, rng: Generator | None = None) -> World:
    """The same world with policies brought to one value, or to one value per group, exactly or up to `width`.

    `width` is relative to the span from the worst to the best policy there is; the groups lie a quarter of it apart.
    """
    rewards, raw = world.rewards, world.policies
    span = rewards.max(axis=1).mean() - rewards.min(axis=1).mean()
    target = np.full(len(raw), float(np.median(world.values)))
    target += 0.25 * span * (np.arange(len(raw)) % groups - (groups - 1) / 2)
    if rng is not None:
        target += width * span * (rng.random(len(raw)) - 0.5)
    return replace(world, policies=mix_to(raw, rewards, target))


def normal(sd: float) -> Noise:
    def noise(rng: Generator, expected: Floats) -> Floats:
        return expected + sd * rng.standard_normal(len(expected))

    return noise


def zero_inflated(tail: float) -> Noise:
    """Rewards that are zero, or lognormal with mean 1 with the expected reward as their probability."""

    def noise(rng: Generator, expected: Floats) -> Floats:
        sizes = np.exp(tail * rng.standard_normal(len(expected)) - tail**2 / 2)
        return np.where(rng.random(len(expected)) < expected, sizes, 0.0)

    return noise
