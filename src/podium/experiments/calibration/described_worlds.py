"""Worlds whose actions have features: catalogues of 1,000 items, and worlds where the features explain nothing.

`TUNED` are the worlds that anything was chosen on: the kernels, the limit `GAIN` and the widening of the posterior.
`HELD_OUT` were fixed before the first of their logs was compared, and nothing was chosen on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from podium.data.action_features import ActionFeatures
from podium.data.columns import Floats
from podium.experiments.calibration.worlds import (
    World,
    coin,
    example_world,
    gaussian_noise,
    heavy_noise,
    one_hot,
    smooth_world,
    softmax,
)

ACTIONS, STATES = 1000, 200
Made = tuple[World, ActionFeatures]


def waves(rng: Generator, points: Floats, items: Floats, count: int = 8, scale: float = 1.0) -> Floats:
    """(S, A) a random smooth function of states and actions with sd about 1."""
    d, f = points.shape[1], items.shape[1]
    by_state = points @ rng.standard_normal((d, count)) * (scale / np.sqrt(d + f))
    by_item = items @ rng.standard_normal((f, count)) * (scale / np.sqrt(d + f))
    phase = rng.random(count) * 2 * np.pi
    total = sum(np.cos(by_state[:, [w]] + by_item[:, w] + phase[w]) for w in range(count))
    return np.asarray(np.sqrt(2 / count) * total)


def beliefs(rng: Generator, k: int, rewards: Floats, other: Callable[[], Floats]) -> Floats:
    """(K, S, A) what k policies hold the rewards to be: the truth mixed with a world of their own."""
    return np.stack([skill * rewards + (1 - skill) * other() for skill in rng.random(k)])


def features_of(**columns: Floats) -> ActionFeatures:
    """Features by name; a matrix gives one column for each of its own."""
    return ActionFeatures.of({"action": np.arange(len(next(iter(columns.values())))), **columns}, "features")


def catalogue(rng: Generator, k: int, chosen: bool) -> Made:
    """Items with four numbers; policies play all items by their beliefs, or the one that they hold to be the best."""
    points, items = rng.standard_normal((STATES, 2)), rng.standard_normal((ACTIONS, 4))
    known = waves(rng, points, items)
    rewards = known + 0.2 * rng.standard_normal((STATES, ACTIONS))
    held = beliefs(rng, k, known, lambda: waves(rng, points, items))
    policies = one_hot(held.argmax(axis=2), ACTIONS) if chosen else softmax(3 * held)
    behavior = np.full((STATES, ACTIONS), 1 / ACTIONS)
    return World(points, rewards, behavior, policies, noise=gaussian_noise), features_of(x=items)


def articles(rng: Generator, k: int) -> Made:
    """30 topics and an age: readers like some topics, and fresh articles; clicks."""
    points = rng.standard_normal((STATES, 3))
    topic, age = rng.integers(30, size=ACTIONS), rng.exponential(size=ACTIONS)

    def interest() -> Floats:
        taste = points @ rng.standard_normal((3, 30)) * 0.7 + rng.standard_normal(30)
        return np.asarray(taste[:, topic] - rng.random() * age)

    scores = interest()
    rewards = 1 / (1 + np.exp(1 - scores - 0.3 * rng.standard_normal((STATES, ACTIONS))))
    held = beliefs(rng, k, scores, interest)
    behavior = softmax(0.5 * rng.standard_normal((STATES, ACTIONS)))
    names = np.array([f"topic {t}" for t in topic], dtype=object)
    return World(points, rewards, behavior, softmax(4 * held), noise=coin), features_of(topic=names, age=age)


def embeddings(rng: Generator, k: int) -> Made:
    """Embeddings of 16 numbers; rewards follow how well an item's embedding fits the state's."""
    points, items = rng.standard_normal((STATES, 4)), rng.standard_normal((ACTIONS, 16))
    items /= np.linalg.norm(items, axis=1, keepdims=True)

    def fit() -> Floats:
        inner = points @ rng.standard_normal((4, 16)) @ items.T / 2
        return np.asarray(inner + 2 * (items @ rng.standard_normal(16)))

    known = fit()
    rewards = known + 0.3 * known.std() * rng.standard_normal(known.shape)
    held = beliefs(rng, k, known, fit)
    behavior = np.full((STATES, ACTIONS), 1 / ACTIONS)
    return World(points, rewards, behavior, softmax(4 * held), noise=gaussian_noise), features_of(embedding=items)


def prices(rng: Generator, k: int) -> Made:
    """A price and a brand; customers differ in what they pay, the logger prefers cheap items, policies own brands."""
    points = rng.standard_normal((STATES, 2))
    price, brand = rng.lognormal(0, 0.6, size=ACTIONS), rng.integers(12, size=ACTIONS)

    def profit() -> Floats:
        worth = 1.2 + 0.4 * points[:, [0]] * rng.standard_normal() + 0.5 * rng.standard_normal(12)[brand]
        return np.asarray(price / (1 + np.exp(4 * (price - worth))))

    known = 3 * profit()
    rewards = known + 0.2 * rng.standard_normal(known.shape)
    held = beliefs(rng, k, known, lambda: 3 * profit())
    behavior = np.tile(softmax(-0.5 * price), (STATES, 1))
    names = np.array([f"brand {b}" for b in brand], dtype=object)
    return World(points, rewards, behavior, softmax(5 * held), noise=gaussian_noise), features_of(
        price=price, brand=names
    )


def few_matter(rng: Generator, k: int) -> Made:
    """Eight numbers of which three matter, and a level of each item's own that no feature knows but policies do."""
    points, items = rng.standard_normal((STATES, 2)), rng.standard_normal((ACTIONS, 8))

    def part() -> Floats:
        return waves(rng, points, items[:, :3])

    rewards = part() + 0.5 * rng.standard_normal(ACTIONS)
    held = beliefs(rng, k, rewards, lambda: part() + 0.5 * rng.standard_normal(ACTIONS))
    behavior = softmax(0.5 * waves(rng, points, items))
    return World(points, rewards, behavior, softmax(4 * held), noise=gaussian_noise), features_of(x=items)


def hotels(rng: Generator, k: int) -> Made:
    """A region, stars and a price; every hotel has a level of its own, which logger and policies know."""
    points = rng.standard_normal((STATES, 3))
    region, stars = rng.integers(15, size=ACTIONS), rng.integers(1, 6, size=ACTIONS)
    price = np.exp(0.3 * stars + 0.3 * rng.standard_normal(ACTIONS))
    level = 0.3 * rng.standard_normal(ACTIONS)

    def worth() -> Floats:
        taste = (0.4 * points @ rng.standard_normal((3, 15)) + 0.5 * rng.standard_normal(15))[:, region]
        return np.asarray(taste + rng.random() * 0.4 * stars - 0.3 * (1 + 0.3 * points[:, [0]]) * price)

    known = worth()
    rewards = known + level
    held = beliefs(rng, k, rewards, lambda: worth() + 0.3 * rng.standard_normal(ACTIONS))
    behavior = np.tile(softmax(2 * level + 0.3 * rng.standard_normal(ACTIONS)), (STATES, 1))
    policies = 0.9 * one_hot(held.argmax(axis=2), ACTIONS) + 0.1 / ACTIONS
    regions = np.array([f"region {r}" for r in region], dtype=object)
    world = World(points, rewards, behavior, policies, noise=gaussian_noise)
    return world, features_of(region=regions, stars=stars.astype(float), price=price)


def songs(rng: Generator, k: int) -> Made:
    """32 numbers that are noisy views of three hidden factors; rewards are factors times tastes, with heavy tails."""
    points, factors = rng.standard_normal((STATES, 3)), rng.standard_normal((ACTIONS, 3))
    seen = factors @ rng.standard_normal((3, 32)) + rng.standard_normal((ACTIONS, 32))

    def liking() -> Floats:
        tastes = 0.5 * points @ rng.standard_normal((3, 3)) + rng.standard_normal(3)
        return np.asarray(tastes @ factors.T)

    rewards = liking() + 0.3 * rng.standard_normal(ACTIONS)
    held = beliefs(rng, k, rewards, liking)
    behavior = 0.5 / ACTIONS + 0.5 * softmax(rng.standard_normal((STATES, ACTIONS)))
    return World(points, rewards, behavior, softmax(2 * held), noise=heavy_noise), features_of(view=seen)


def half_known(rng: Generator, k: int) -> Made:
    """Four numbers explain half of what items are worth; the other half is each item's own, and policies know both."""
    points, items = rng.standard_normal((STATES, 2)), rng.standard_normal((ACTIONS, 4))

    def part() -> Floats:
        by_state = points @ rng.standard_normal((2, 4)) * 0.3 + rng.standard_normal(4)
        return np.asarray(by_state @ items.T / 2 + rng.standard_normal(ACTIONS))

    rewards = part()
    held = beliefs(rng, k, rewards, part)
    behavior = np.full((STATES, ACTIONS), 1 / ACTIONS)
    return World(points, rewards, behavior, softmax(2 * held), noise=gaussian_noise), features_of(x=items)


def two_texts(rng: Generator, k: int) -> Made:
    """Nothing but a category and a size, which act together; the states are names."""
    points = rng.standard_normal((40, 1))
    category, size = rng.integers(25, size=ACTIONS), rng.integers(4, size=ACTIONS)

    def worth() -> Floats:
        shared = rng.standard_normal((25, 4)) * 0.7 + rng.standard_normal((25, 1))
        own = 0.3 * rng.standard_normal((40, 25))
        return np.asarray(shared[category, size] + own[:, category])

    rewards = worth() + 0.2 * rng.standard_normal(ACTIONS)
    held = beliefs(rng, k, rewards, worth)
    behavior = np.tile(softmax(0.5 * rng.standard_normal(ACTIONS)), (40, 1))
    names = {
        "category": np.array([f"category {c}" for c in category], dtype=object),
        "size": np.array(["S", "M", "L", "XL"], dtype=object)[size],
    }
    return World(points, rewards, behavior, softmax(2 * held), text=True, noise=gaussian_noise), features_of(**names)


def loans(rng: Generator, k: int) -> Made:
    """A rate, a term and a limit; most offers are refused, so most rewards are 0 and a few are large."""
    points, terms = rng.standard_normal((STATES, 2)), rng.standard_normal((ACTIONS, 3))

    def profit() -> Floats:
        score = points @ rng.standard_normal((2, 3)) * 0.4 + rng.standard_normal(3)
        return np.asarray(np.exp(0.5 * score @ terms.T) / 3)

    def payments(generator: Generator, expected: Floats) -> Floats:
        taken = generator.random(len(expected)) < 0.3
        return np.asarray(taken * generator.exponential(size=len(expected)) * expected / 0.3)

    rewards = profit()
    held = beliefs(rng, k, rewards, profit)
    behavior = np.full((STATES, ACTIONS), 1 / ACTIONS)
    return World(points, rewards, behavior, softmax(2 * held), noise=payments), features_of(terms=terms)


def shuffled(rng: Generator, made: Made) -> Made:
    """The same world with the features of its actions dealt out at random."""
    world, features = made
    order = rng.permutation(len(features.labels))
    return world, replace(features, columns={name: column[order] for name, column in features.columns.items()})


def of_the_logger(rng: Generator, k: int) -> Made:
    """30 actions whose features say how often each is logged, and nothing of rewards."""
    world = smooth_world(rng, k, 2, 30)
    liked = rng.standard_normal(30)
    behavior = np.tile(softmax(liked), (len(world.points), 1))
    return replace(world, behavior=behavior), features_of(
        popularity=liked, rank=np.argsort(np.argsort(liked)).astype(np.float64)
    )


def useless(rng: Generator, world: World, numbers: int) -> Made:
    """A world of few actions with random numbers and a random category."""
    actions = world.rewards.shape[1]
    category = np.array([f"c{c}" for c in np.arange(actions) % max(2, actions // 3)], dtype=object)
    return world, features_of(x=rng.standard_normal((actions, numbers)), category=rng.permutation(category))


WORLDS: dict[str, Callable[[Generator, int], Made]] = {
    "catalogue": lambda rng, k: catalogue(rng, k, chosen=False),
    "catalogue, one item each": lambda rng, k: catalogue(rng, k, chosen=True),
    "useless: 5 actions": lambda rng, k: useless(rng, smooth_world(rng, k, 5, 5), 3),
    "articles: topics, clicks": articles,
    "embeddings of 16 numbers": embeddings,
    "prices and brands": prices,
    "three of eight matter": few_matter,
    "useless: 20 actions": lambda rng, k: useless(rng, smooth_world(rng, k, 2, 20), 4),
    "useless: Example 1.1": lambda rng, k: useless(rng, example_world(rng, 1, k), 2),
    "hotels with levels": hotels,
    "songs: 32 noisy numbers": songs,
    "half of it known": half_known,
    "category and size": two_texts,
    "loans, mostly refused": loans,
    "useless: 1,000 shuffled": lambda rng, k: shuffled(rng, catalogue(rng, k, chosen=False)),
    "useless: songs, shuffled": lambda rng, k: shuffled(rng, songs(rng, k)),
    "useless: 100 actions": lambda rng, k: useless(rng, smooth_world(rng, k, 3, 100), 6),
    "useless: logger's taste": of_the_logger,
}
HELD_OUT = tuple(WORLDS)[9:]
TUNED = tuple(WORLDS)[:9]
