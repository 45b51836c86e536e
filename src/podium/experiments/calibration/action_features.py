"""What features of the actions add: pairs decided with and without them, and how many of the claims are wrong.

python -m podium.calibration.action_features --logs 40

In the worlds of 1,000 actions the features explain most of the rewards; in those whose names begin with "useless" they
are random numbers and random categories. The kernels were chosen on `TUNED`; `HELD_OUT` was fixed before its first log
was compared. Every log is compared twice, so that both columns of the table are of the same rows and policies.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from podium.comparison.compare import compare
from podium.data.action_features import ActionFeatures
from podium.data.columns import Floats
from podium.data.progress import counted
from podium.experiments.calibration.trials import LEVEL, POLICIES, pool_of, said
from podium.experiments.calibration.worlds import (
    World,
    coin,
    example_world,
    gaussian_noise,
    one_hot,
    smooth_world,
    softmax,
)
from podium.experiments.runner import run_bench
from podium.verdicts.pairs import pair_indices

ACTIONS, STATES, ROWS = 1000, 200, 300
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
}
TUNED = ("catalogue", "catalogue, one item each", "useless: 5 actions")
HELD_OUT = tuple(name for name in WORLDS if name not in TUNED)


@dataclass(frozen=True, eq=False)
class Twice:
    """One log, compared without and with features: claims (P,), and whether each interval holds the truth."""

    world: str
    truth: Floats
    claims: tuple[Floats, Floats]
    covered: tuple[Floats, Floats]


def compare_twice(task: tuple[str, int, int, int]) -> Twice:
    name, rows, repetition, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    world, features = WORLDS[name](rng, POLICIES)
    draw = world.log(rng, rows)
    i, j = pair_indices(POLICIES)
    truth = draw.values[i] - draw.values[j]
    results = [compare(draw.log, draw.policies, level=LEVEL, action_features=f) for f in (None, features)]
    found = [said(result, list(draw.policies)) for result in results]
    covered = tuple(((low <= truth) & (truth <= high)).astype(float) for _, _, low, high in found)
    return Twice(name, truth, (found[0][1], found[1][1]), (covered[0], covered[1]))


def table(trials: Sequence[Twice]) -> str:
    """Decided pairs, wrong claims and coverage, without and with features, family by family."""
    head = f"{'':28s}{'pairs':>7s}{'decided %':>18s}{'wrong':>16s}{'of claims %':>18s}{'covered %':>18s}"
    lines = [head, f"{'':35s}" + f"{'without':>10s}{'with':>8s}" * 4]
    groups = [(name, [t for t in trials if t.world == name]) for name in WORLDS]
    groups += [
        ("all of 1,000 actions", [t for t in trials if not t.world.startswith("useless")]),
        ("all useless", [t for t in trials if t.world.startswith("useless")]),
    ]
    for name, group in groups:
        if group:
            lines.append(line(name, group))
    return "\n".join(lines)


def line(name: str, group: Sequence[Twice]) -> str:
    truth = np.concatenate([t.truth for t in group])
    cells = []
    for side in (0, 1):
        claims = np.concatenate([t.claims[side] for t in group])
        made, wrong = claims != 0, (claims != 0) & (claims != np.sign(truth))
        covered = np.concatenate([t.covered[side] for t in group])
        cells.append((100 * made.mean(), wrong.sum(), 100 * wrong.sum() / max(made.sum(), 1), 100 * covered.mean()))
    (d0, w0, s0, c0), (d1, w1, s1, c1) = cells
    return f"{name:28s}{len(truth):7,d}{d0:10.1f}{d1:8.1f}{w0:10d}{w1:6d}{s0:10.1f}{s1:8.1f}{c0:10.1f}{c1:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m podium.calibration.action_features", description=__doc__)
    parser.add_argument("--logs", type=int, default=40, metavar="N", help="logs of each world (%(default)s)")
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help="rows of each log (%(default)s)")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(HELD_OUT), metavar="NAME")
    parser.add_argument("--tuned", action="store_true", help="the worlds that the kernels were chosen on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    worlds = TUNED if options.tuned else options.worlds
    tasks = [(name, options.rows, n, options.seed) for name in worlds for n in range(options.logs)]
    with pool_of(options.workers) as pool:
        trials = list(counted(pool.map(compare_twice, tasks), "action features", len(tasks), "logs"))
    print(table(trials))


if __name__ == "__main__":
    run_bench(main)
