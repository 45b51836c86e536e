"""Comparison by group on logs whose group effects are known: is P(better) right, is harm found, what does sharing gain?

python -m podium.calibration.groups

Every log has its own world: two features, four groups, random policies, and effects of the actions that are the same
in every group, differ at random, or turn round in one of them. The truth of a group is the mean over 40,000 further
rows of the same world. Beside the comparison by group stands what each group's rows say alone: `podium.compare` on
them, adjusted over the groups of a pair in the same way.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.result import Comparison
from podium.data.columns import Codes, Floats
from podium.data.log import Log
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.verdicts.multiplicity import claim, two_sided

POPULATION = 40_000
GROUPS = 4
TUNING_SEED, SEED = 1, 3
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 1.0)


@dataclass(frozen=True)
class Family:
    """A kind of log: what differs between groups, how rewards look, what is known of the logger and of the group."""

    effects: str  # "same", "random", "harm", "weak", "none"
    knows: str = "full"  # "full", "logged", "estimate" or "none"
    binary: bool = False
    state: bool = True  # whether the group is a state column
    ages: bool = False  # whether it is a number, cut at its quartiles
    actions: int = 2
    follows: float = 0.0  # how much the logger follows the features
    policies: int = 2


TUNING = {
    "same effect": Family("same"),
    "harm, group is a state": Family("harm"),
    "harm, not a state, yes or no": Family("harm", binary=True, state=False, knows="none"),
    "random effects, 4 actions": Family("random", actions=4, state=False, follows=0.7, policies=3),
    "weak effects, ages": Family("weak", ages=True, knows="logged"),
    "no effects": Family("none", state=False),
}
REPORT = {
    "same effect, not a state": Family("same", state=False, knows="logged"),
    "same effect, ages, yes or no": Family("same", ages=True, binary=True, policies=3),
    "harm, not a state": Family("harm", state=False),
    "harm, group is a state, p unknown": Family("harm", knows="none", policies=3),
    "harm, yes or no": Family("harm", binary=True),
    "harm, ages": Family("harm", ages=True, state=False, follows=0.5),
    "harm, p estimated": Family("harm", knows="estimate", follows=0.5),
    "random effects, 3 actions, p at logged actions": Family("random", actions=3, follows=0.7, knows="logged"),
    "random effects, not a state, yes or no": Family("random", actions=3, binary=True, state=False, policies=3),
    "weak effects": Family("weak", policies=3),
    "weak effects, not a state, yes or no, p unknown": Family("weak", binary=True, state=False, knows="none"),
    "no effects, yes or no": Family("none", binary=True, policies=3),
}
SETS = {"tuning": TUNING, "report": REPORT}


def softmax(score: Floats) -> Floats:
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class World:
    """One world of a family."""

    family: Family
    level: Floats  # (3 + G,) of the reward: intercept, features, groups
    effects: Floats  # (G, A) of the actions
    slopes: Floats  # (A, 2) of the actions with the features
    policies: Floats  # (K, A, 3 + G)
    logger: Floats  # (A, 3)

    @classmethod
    def drawn(cls, family: Family, rng: np.random.Generator) -> World:
        a = family.actions
        size = {"same": 0.3, "random": 0.15, "harm": 0.4, "weak": 0.1, "none": 0.0}[family.effects]
        effects = np.tile(size * rng.normal(size=a), (GROUPS, 1))
        if family.effects in ("random", "weak"):
            effects += {"random": 0.3, "weak": 0.08}[family.effects] * rng.normal(size=(GROUPS, a))
        if family.effects == "harm":
            effects[rng.integers(GROUPS)] *= -1.5
        scores = 1.2 * rng.normal(size=(family.policies, a, 3 + GROUPS))
        scores[:, :, 3:] *= 0.3
        slopes = 0.4 * size * rng.normal(size=(a, 2))
        level = 0.5 * rng.normal(size=3 + GROUPS)
        return cls(family, level, effects, slopes, scores, family.follows * rng.normal(size=(a, 3)))

    def rows(self, rng: np.random.Generator, rows: int) -> tuple[Floats, Floats, Codes]:
        """Features, ages, and the group of each row: a quarter of life, or at random with the first feature."""
        x = rng.normal(size=(rows, 2))
        if self.family.ages:
            age = rng.uniform(20, 80, size=rows)
            return x, age, ((age - 20) // 15).astype(np.int64).clip(0, GROUPS - 1)
        group = softmax(np.outer(x[:, 0], [0.4, 0.0, -0.4, 0.0]))
        return x, np.zeros(rows), (group.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(0, GROUPS - 1)

    def means(self, x: Floats, g: Codes) -> Floats:
        """(n, A) expected rewards."""
        level = features(x, g) @ self.level
        score = level[:, None] + self.effects[g] + x @ self.slopes.T
        return np.asarray(1 / (1 + np.exp(-1.5 * score))) if self.family.binary else np.asarray(score)

    def chosen(self, x: Floats, g: Codes) -> Floats:
        """(K, n, A) the policies, which see features and groups."""
        return np.stack([softmax(features(x, g) @ one.T) for one in self.policies])

    def truth(self, rng: np.random.Generator) -> Floats:
        """(K, G) true values in every group."""
        x, _, g = self.rows(rng, POPULATION)
        each = np.einsum("kna,na->kn", self.chosen(x, g), self.means(x, g))
        return np.stack([each[:, g == one].mean(axis=1) for one in range(GROUPS)], axis=1)

    def log(self, rng: np.random.Generator, rows: int) -> tuple[Log, dict[str, Floats], Codes]:
        family = self.family
        x, age, g = self.rows(rng, rows)
        means = self.means(x, g)
        behavior = 0.9 * softmax(features(x, g)[:, :3] @ self.logger.T) + 0.1 / family.actions
        taken = (behavior.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(0, family.actions - 1)
        mean = means[np.arange(rows), taken]
        rewards = (rng.random(rows) < mean) * 1.0 if family.binary else mean + rng.normal(size=rows)
        group: Any = age if family.ages else np.array([f"group {k}" for k in g], dtype=object)
        columns = {"x1": x[:, 0], "x2": x[:, 1], "group": group, "action": taken, "reward": rewards}
        if family.knows == "logged":
            columns["propensity"] = behavior[np.arange(rows), taken]
        elif family.knows == "full":
            columns |= {f"propensity:{a}": behavior[:, a] for a in range(family.actions)}
        state = ["x1", "x2", "group"] if family.state else ["x1", "x2"]
        log = Log.from_frame(columns, state=state, actions=list(range(family.actions)))
        return log, {f"policy {k}": one for k, one in enumerate(self.chosen(x, g))}, g


def features(x: Floats, g: Codes) -> Floats:
    return np.hstack([np.ones((len(x), 1)), x, np.eye(GROUPS)[g]])


@dataclass
class Counts:
    """What was said of groups, and whether it was right."""

    groups: int = 0
    claims: int = 0
    wrong: int = 0
    alone: int = 0  # claims of separate analyses
    alone_wrong: int = 0
    held: int = 0  # intervals that hold the truth
    intervals: int = 0
    harmed: int = 0  # groups that a policy harms although it is better on average
    found: int = 0
    found_alone: int = 0
    bins: Floats = field(default_factory=lambda: np.zeros((3, len(BINS) - 1)))  # probabilities, right ones, number

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def judged_alone(log: Log, policies: dict[str, Floats], g: Codes, behavior: Any) -> list[Comparison | None]:
    """What each group's rows say by themselves; None where there are next to none."""
    found: list[Comparison | None] = []
    for one in range(GROUPS):
        rows = np.flatnonzero(g == one)
        own = {name: pi[rows] for name, pi in policies.items()}
        found.append(compare(log.take(rows), own, behavior=behavior) if len(rows) > 2 else None)
    return found


def alone_claims(alone: list[Comparison | None], a: str, b: str) -> Floats:
    """(G,) +1, -1 or 0: the claims of separate analyses, adjusted over the groups."""
    above, p = np.full(GROUPS, 0.5), np.ones(GROUPS)
    for one, result in enumerate(alone):
        if result is not None and (pair := result.pair(a, b)).interval is not None:
            above[one] = pair.p_better
            p[one] = two_sided(above[one : one + 1])[0]
    claimed = claim(p, 0.05).adjusted <= 0.05
    return np.where(claimed, np.sign(above - 0.5), 0.0)


def judge_log(name: str, family: Family, rows: int, repetition: int, seed: int, alone: bool) -> Counts:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    world = World.drawn(family, rng)
    truth = world.truth(rng)
    log, policies, g = world.log(rng, rows)
    behavior = "estimate" if family.knows == "estimate" else None
    by = "group:35,50,65" if family.ages and repetition % 2 else "group"
    result = compare(log, policies, behavior=behavior, by=by)
    counts, share = Counts(), np.bincount(g, minlength=GROUPS) / rows
    names = list(policies)
    apart = judged_alone(log, policies, g, behavior) if alone else []
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            gaps = truth[i] - truth[j]
            if family.effects == "none":
                gaps = np.zeros(GROUPS)
            own = [x if x.a == names[i] else x.reversed() for x in result.groups if {x.a, x.b} == {names[i], names[j]}]
            said = np.array([{"better": 1.0, "worse": -1.0, "cannot tell": 0.0}[x.verdict] for x in own])
            separate = alone_claims(apart, names[i], names[j])
            harm = np.sign(gaps) == -np.sign(gaps @ share)
            judged = [n for n, x in enumerate(own) if x.interval is not None]
            ends = [(x.interval.low, x.interval.high) for x in own if x.interval is not None]
            harms = harm & (family.effects == "harm")
            counts.add(
                Counts(
                    groups=GROUPS,
                    claims=int((said != 0).sum()),
                    wrong=int(((said != 0) & (said * gaps <= 0)).sum()),
                    alone=int((separate != 0).sum()),
                    alone_wrong=int(((separate != 0) & (separate * gaps <= 0)).sum()),
                    held=sum(low <= gaps[n] <= high for n, (low, high) in zip(judged, ends, strict=True)),
                    intervals=len(judged),
                    harmed=int(harms.sum()),
                    found=int((harms & (said * gaps > 0)).sum()),
                    found_alone=int((harms & (separate * gaps > 0)).sum()),
                    bins=binned([own[n].p_better for n in judged], [gaps[n] for n in judged]),
                )
            )
    return counts


def binned(p_better: list[float], gaps: list[float]) -> Floats:
    """(3, B) sums of P in the favored direction, how many were right, and how many there were; ties count half."""
    p, d = np.array(p_better), np.array(gaps)
    sure = np.maximum(p, 1 - p)
    right = np.where(d == 0, 0.5, (p > 0.5) == (d > 0))
    place = np.clip(np.searchsorted(BINS, sure, side="right") - 1, 0, len(BINS) - 2)
    return np.array([np.bincount(place, weights, len(BINS) - 1) for weights in (sure, right, np.ones(len(p)))])


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure comparison by group on logs whose truth is known.")
    parser.add_argument("--set", default="report", choices=SETS, help="families (default: %(default)s)")
    parser.add_argument("--logs", type=int, default=3, help="per family and size (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 400, 1000], help="sizes (default: %(default)s)")
    parser.add_argument("--family", nargs="+", help="some of the families")
    parser.add_argument("--without-alone", action="store_true", help="leave separate analyses out")
    parser.add_argument("--seed", type=int, help=f"default: {SEED}, or {TUNING_SEED} of the tuning families")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else SEED if options.set == "report" else TUNING_SEED
    families = {name: f for name, f in SETS[options.set].items() if not options.family or name in options.family}
    one_thread()
    print("| family | groups | decided | wrong | decided alone | wrong | harm found | found alone | intervals hold |")
    print("|---|---|---|---|---|---|---|---|---|")
    total, by_rows = Counts(), {rows: Counts() for rows in options.rows}
    for name, family in families.items():
        own = Counts()
        for rows in options.rows:
            for repetition in range(options.logs):
                found = judge_log(name, family, rows, repetition, seed, not options.without_alone)
                own.add(found)
                by_rows[rows].add(found)
        total.add(own)
        print(f"| {name} | {figures(own)} |", flush=True)
    for rows, counts in by_rows.items():
        print(f"| all, {rows} rows | {figures(counts)} |")
    print(f"| all | {figures(total)} |\n\n| P(better) said | right | groups |\n|---|---|---|")
    for said, right, number in total.bins.T:
        if number:
            print(f"| {said / number:.3f} | {right / number:.3f} | {number:.0f} |")


def figures(c: Counts) -> str:
    def part(n: int, of: int) -> str:
        return f"{n / of:.1%}" if of else "-"

    harm = f"{part(c.found, c.harmed)} of {c.harmed} | {part(c.found_alone, c.harmed)}" if c.harmed else "- | -"
    return (
        f"{c.groups} | {c.claims} ({part(c.claims, c.groups)}) | {c.wrong} ({part(c.wrong, c.claims)}) | {c.alone} "
        f"({part(c.alone, c.groups)}) | {c.alone_wrong} ({part(c.alone_wrong, c.alone)}) | {harm} | "
        f"{part(c.held, c.intervals)}"
    )


if __name__ == "__main__":
    run_bench(main)
