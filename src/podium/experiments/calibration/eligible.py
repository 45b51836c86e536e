"""Logs whose eligible actions change from row to row: how many claims are wrong, how many intervals hold the truth.

python -m podium.calibration.eligible

Every log has its own world: two features, random effects of the actions, random sets of eligible actions, and 3 to 5
policies over them. The truth is the mean over 20,000 further states and sets of the same world.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.data.columns import Floats
from podium.data.eligible import Mask
from podium.data.log import Log
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.verdicts.pairs import pair_indices

POPULATION = 20_000
Sets = Callable[[np.random.Generator, Floats, int], Mask]


def random_sets(rng: np.random.Generator, x: Floats, actions: int) -> Mask:
    """Each action with probability one half, and at least two."""
    order = rng.random((len(x), actions))
    least = np.argsort(order, axis=1) < 2
    return np.asarray((rng.random((len(x), actions)) < 0.5) | least)


def lists_of_five(rng: np.random.Generator, x: Floats, actions: int) -> Mask:
    """Five items, each as likely as any other."""
    return np.asarray(np.argsort(np.argsort(rng.random((len(x), actions)), axis=1), axis=1) < 5)


def by_state(rng: np.random.Generator, x: Floats, actions: int) -> Mask:
    """Half of the actions are offered where the first feature is large, the other half where it is small."""
    near = np.where(np.arange(actions) % 2 == 0, 1.0, -1.0)
    likely = 1 / (1 + np.exp(-2 * np.outer(x[:, 0], near)))
    found = rng.random((len(x), actions)) < likely
    found[np.arange(len(x)), rng.integers(actions, size=len(x))] = True
    return np.asarray(found)


def by_popularity(rng: np.random.Generator, x: Floats, actions: int) -> Mask:
    """Lists of 2 to 8 items; the first items stand in most lists, the last ones in few."""
    order = rng.gumbel(size=(len(x), actions)) - np.log1p(np.arange(actions))
    place = np.argsort(np.argsort(-order, axis=1), axis=1)
    return np.asarray(place < rng.integers(2, 9, size=(len(x), 1)))


def often_one(rng: np.random.Generator, x: Floats, actions: int) -> Mask:
    """In half of the rows a single action is possible, in the others any two or more."""
    found = random_sets(rng, x, actions)
    single = np.arange(actions) == rng.integers(actions, size=(len(x), 1))
    return np.where(rng.random((len(x), 1)) < 0.5, single, found)


@dataclass(frozen=True)
class Family:
    """A kind of log: its sets of eligible actions, its logger, and what is known of that."""

    actions: int = 6
    sets: Sets = random_sets
    follows: float = 0.0  # how much the logger follows the state
    seeks: float = 0.0  # how much it prefers actions with high rewards
    knows: str = "logged"  # "full", "logged" or "none"
    effect: float = 1.0  # of actions; 0: all policies tie
    binary: bool = False
    steps: int = 0  # features take as many values, so that states come again; 0: any number


FAMILIES = {
    "uniform among eligible": Family(),
    "uniform, propensities unknown": Family(knows="none"),
    "follows the state": Family(follows=1.0, knows="full"),
    "follows the state, p only": Family(follows=1.0),
    "seeks reward": Family(follows=0.5, seeks=1.0, knows="full"),
    "eligible by state": Family(sets=by_state),
    "lists of 5 from 40 items": Family(actions=40, sets=lists_of_five),
    "yes or no": Family(binary=True),
    "no effects (ties)": Family(effect=0.0),
    "lists by popularity": Family(actions=20, sets=by_popularity, follows=0.5),
    "often one action": Family(sets=often_one, follows=0.5, knows="full"),
    "states come again": Family(steps=3, knows="none"),
}
ASIDE = ("lists by popularity", "often one action", "states come again")  # never used in development


def softmax(score: Floats, eligible: Mask) -> Floats:
    weight = np.where(eligible, np.exp(score - score.max(axis=1, keepdims=True)), 0.0)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class World:
    """One world of a family: effects of the actions, and the coefficients of logger and policies."""

    family: Family
    effects: Floats  # (A, 3)
    logger: Floats  # (A, 3)
    policies: Floats  # (K, A, 3)

    @classmethod
    def drawn(cls, family: Family, policies: int, rng: np.random.Generator) -> World:
        shape = (family.actions, 3)
        effects, logger = family.effect * rng.normal(size=shape) * 0.5, family.follows * rng.normal(size=shape)
        return cls(family, effects, logger, 1.5 * rng.normal(size=(policies, *shape)))

    def contexts(self, rng: np.random.Generator, rows: int) -> tuple[Floats, Mask]:
        x = rng.normal(size=(rows, 2))
        if steps := self.family.steps:
            x = np.clip(np.round(x), -(steps // 2), steps // 2)
        return x, self.family.sets(rng, x, self.family.actions)

    def means(self, x: Floats) -> Floats:
        """(n, A) expected rewards."""
        level = np.sin(x[:, :1]) + with_level(x) @ self.effects.T
        return np.asarray(1 / (1 + np.exp(-level))) if self.family.binary else np.asarray(level)

    def chosen(self, x: Floats, eligible: Mask) -> Floats:
        """(K, n, A) the policies."""
        return np.stack([softmax(with_level(x) @ one.T, eligible) for one in self.policies])

    def values(self, rng: np.random.Generator) -> Floats:
        """(K,) true values."""
        x, eligible = self.contexts(rng, POPULATION)
        return np.asarray(np.einsum("kna,na->k", self.chosen(x, eligible), self.means(x)) / POPULATION)

    def log(self, rng: np.random.Generator, rows: int) -> tuple[Log, dict[str, Floats]]:
        family = self.family
        x, eligible = self.contexts(rng, rows)
        means = self.means(x)
        behavior = softmax(with_level(x) @ self.logger.T + family.seeks * means, eligible)
        behavior = 0.95 * behavior + 0.05 * eligible / eligible.sum(axis=1, keepdims=True)
        taken = (behavior.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(0, family.actions - 1)
        mean = means[np.arange(rows), taken]
        rewards = (rng.random(rows) < mean) * 1.0 if family.binary else mean + rng.normal(size=rows)
        known: dict[str, Any] = {}
        if family.knows == "full":
            known["behavior"] = behavior
        elif family.knows == "logged":
            known["propensities"] = behavior[np.arange(rows), taken]
        log = Log(x, taken, rewards, action_space=range(family.actions), eligible=eligible, **known)
        return log, {f"policy {k}": one for k, one in enumerate(self.chosen(x, eligible))}


def with_level(x: Floats) -> Floats:
    return np.hstack([np.ones((len(x), 1)), x])


def judge_log(name: str, rows: int, repetition: int, seed: int, verdicts: str | None) -> Floats:
    """Pairs, claims, wrong claims, pairs with an interval, and of these those whose interval holds the truth."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    world = World.drawn(FAMILIES[name], 3 + repetition % 3, rng)
    truth = world.values(rng)
    log, policies = world.log(rng, rows)
    result = compare(log, policies, verdicts=verdicts)
    names, found = list(policies), np.zeros(5)
    for a, b in zip(*pair_indices(len(names)), strict=True):
        pair, gap = result.pair(names[a], names[b]), float(truth[a] - truth[b])
        claim = {"better": 1, "worse": -1, "cannot tell": 0}[pair.verdict]
        found[:3] += 1, claim != 0, claim * gap < 0 or (claim != 0 and FAMILIES[name].effect == 0)
        if pair.interval is not None:
            found[3:] += 1, pair.interval.low <= gap <= pair.interval.high
    return found


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure verdicts on logs whose eligible actions change.")
    parser.add_argument("--logs", type=int, default=40, help="per family and size (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300], help="sizes of the logs (%(default)s)")
    parser.add_argument("--family", nargs="+", default=[*FAMILIES], choices=FAMILIES)
    parser.add_argument("--verdicts", help="the procedure that judges (default: podium's own choice)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    one_thread()
    print("| family | rows | pairs | decided | wrong of the claims | intervals that hold the truth |")
    print("|---|---|---|---|---|---|")
    everything = np.zeros(5)
    for name in options.family:
        for rows in options.rows:
            each = [judge_log(name, rows, n, options.seed, options.verdicts) for n in range(options.logs)]
            everything += np.sum(each, axis=0)
            print(f"| {name} | {rows} | {figures(np.sum(each, axis=0))} |", flush=True)
    print(f"| all | | {figures(everything)} |")


def figures(counts: Floats) -> str:
    pairs, claims, wrong, intervals, held = counts
    share = f"{wrong / claims:.1%}" if claims else "-"
    covered = f"{held / intervals:.1%}" if intervals else "-"
    return f"{pairs:.0f} | {claims / pairs:.0%} | {wrong:.0f} of {claims:.0f} ({share}) | {covered}"


if __name__ == "__main__":
    run_bench(main)
