"""How honest the gated verdict is beyond 20,000 rows: few or endless states, seen in every way that p and pi can be.

python -m podium.calibration.large --logs 200 --rows 25000

"now" is the rule in use. "before" is that of smaller logs: LDE wherever the gates let it pass, also on rows alone in
their state where there is no p, and DRE only where all probabilities are known.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

import numpy as np
from numpy.random import Generator

from podium.calibration.families import FAMILIES
from podium.calibration.tables import cells, reliability, show_bin
from podium.calibration.trials import LEVEL, POLICIES, Trial, one_thread
from podium.calibration.worlds import (
    Draw,
    World,
    adaptive,
    coin,
    forget,
    gaussian_noise,
    heavy_noise,
    random_policies,
    sample,
    seeking_behavior,
    smooth_world,
    softmax,
    spread,
    unit_draw,
)
from podium.columns import Floats
from podium.estimators import LDE
from podium.files import write_text
from podium.findings import Findings
from podium.gated import Path, gated
from podium.large import open_large
from podium.pairs import pair_indices
from podium.policies import PolicySet
from podium.progress import counted
from podium.study import examine_large
from podium.verdicts import Judgement, benjamini_hochberg, two_sided

VIEWS = ("all known", "p at logged", "both at logged", "no p", "no p, pi at logged")
LOGS: dict[str, Callable[[Generator, int, int], Draw]] = {}


def large(name: str) -> Callable[[Callable[[Generator, int, int], Draw]], Callable[[Generator, int, int], Draw]]:
    """Register a family of large logs."""

    def register(draw: Callable[[Generator, int, int], Draw]) -> Callable[[Generator, int, int], Draw]:
        LOGS[name] = draw
        return draw

    return register


def level(rng: Generator, world: World) -> World:
    """The same world with policies of one value."""
    return replace(world, policies=spread(rng, world.policies, world.rewards, width=0.0))


def few(rng: Generator, k: int) -> World:
    """4 to 18 states, so that every (state, action) is repeated over and over."""
    states, n_actions = int(rng.integers(4, 19)), 6
    rewards = rng.standard_normal((states, 1)) + 0.7 * rng.standard_normal((states, n_actions))
    rewards += 0.7 * rng.standard_normal(n_actions)
    skill = rng.random(k)[:, None, None]
    belief = skill * rewards + (1 - skill) * rng.standard_normal((k, states, n_actions))
    behavior = random_policies(rng, 1, rewards.shape)[0]
    return World(np.arange(states, dtype=float)[:, None], rewards, behavior, softmax(2 * belief), noise=gaussian_noise)


def seek(rng: Generator, world: World) -> World:
    return replace(world, behavior=0.02 / world.rewards.shape[1] + 0.98 * seeking_behavior(rng, world.rewards))


def endless(rng: Generator, rows: int, k: int, n_actions: int = 4) -> World:
    """As many states as rows and more: hardly any is met twice."""
    return smooth_world(rng, k, 2, n_actions, states=2 * rows)


def unrepeated(world: World, rng: Generator, rows: int) -> Draw:
    """A log in which every row has a state of its own."""
    states = rng.permutation(len(world.points))[:rows]
    behavior = world.behavior[states]
    return world.record(rng, states, sample(rng, behavior), behavior)


def inert(world: World) -> World:
    """Rewards that no action changes, only the state; every policy has the same value."""
    shared = world.rewards.mean(axis=1, keepdims=True)
    return replace(world, rewards=np.repeat(shared, world.rewards.shape[1], axis=1))


def following(rng: Generator, world: World) -> World:
    """The logger follows what the state promises: one half of the actions in good states, the other in bad ones."""
    promise = world.rewards.mean(axis=1, keepdims=True)
    promise = (promise - promise.mean()) / promise.std()
    a = world.rewards.shape[1]
    side = np.where(np.arange(a) < a // 2, 1.0, -1.0)
    k = len(world.policies)
    taste = np.linspace(-1.5, 1.5, k)[rng.permutation(k)][:, None, None] * side
    policies = softmax(taste + 0.5 * np.log(world.policies))
    return replace(world, behavior=0.02 / a + 0.98 * softmax(promise * side), policies=policies)


# --- few states, each met a thousand times ---------------------------------------------------------------------------


@large("few states")
def few_plain(rng: Generator, rows: int, k: int) -> Draw:
    return few(rng, k).log(rng, rows)


@large("few states, ties")
def few_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, few(rng, k)).log(rng, rows)


@large("few states, seeker")
def few_seeker(rng: Generator, rows: int, k: int) -> Draw:
    return seek(rng, few(rng, k)).log(rng, rows)


@large("few states, seeker, ties")
def few_seeker_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, seek(rng, few(rng, k))).log(rng, rows)


@large("few states, nearly equal")
def few_near(rng: Generator, rows: int, k: int) -> Draw:
    """Policies that differ by a thousandth of what they are."""
    world = few(rng, k)
    return replace(world, policies=0.999 * world.policies[:1] + 0.001 * world.policies).log(rng, rows)


@large("few states, nearly equal, ties")
def few_near_ties(rng: Generator, rows: int, k: int) -> Draw:
    world = level(rng, few(rng, k))
    return replace(world, policies=0.999 * world.policies[:1] + 0.001 * world.policies).log(rng, rows)


@large("few states, heavy tails, ties")
def few_heavy_ties(rng: Generator, rows: int, k: int) -> Draw:
    """Rewards with endless kurtosis, and a logger that hardly ever plays some actions."""
    world = level(rng, few(rng, k))
    logits = 1.5 * rng.standard_t(3, size=world.rewards.shape)
    return replace(world, noise=heavy_noise, behavior=1e-3 + 0.994 * softmax(logits)).log(rng, rows)


@large("few states, rare prize")
def few_rare(rng: Generator, rows: int, k: int) -> Draw:
    """What tells the policies apart is an action that the logger plays once in ten thousand rows."""
    world = few(rng, k)
    behavior = world.behavior.copy()
    behavior[:, 0] = 1e-4
    rewards = world.rewards.copy()
    rewards[:, 0] += rng.choice([-3.0, 3.0], size=len(rewards))
    behavior[:, 1:] *= (1 - 1e-4) / behavior[:, 1:].sum(axis=1, keepdims=True)
    share = rng.random(k)[:, None, None] * np.eye(6)[0]
    policies = softmax(np.log(world.policies[:1]) + 0.2 * rng.standard_normal(world.policies.shape))
    return replace(world, rewards=rewards, behavior=behavior, policies=0.8 * policies + 0.2 * share + (
        0.2 * (1 - share.sum(axis=-1, keepdims=True)) * world.policies[:1])).log(rng, rows)  # fmt: skip


# --- hundreds of states ----------------------------------------------------------------------------------------------


@large("500 states")
def hundreds(rng: Generator, rows: int, k: int) -> Draw:
    return smooth_world(rng, k, 5, 8).log(rng, rows)


@large("500 states, ties")
def hundreds_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, smooth_world(rng, k, 5, 8)).log(rng, rows)


@large("500 states, seeker, ties")
def hundreds_seeker_ties(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 6)
    return level(rng, seek(rng, world)).log(rng, rows)


@large("500 states, coins, ties")
def hundreds_coins(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 6)
    return replace(level(rng, replace(world, rewards=1 / (1 + np.exp(1 - world.rewards)))), noise=coin).log(rng, rows)


@large("500 states, hidden cause, ties")
def hundreds_hidden(rng: Generator, rows: int, k: int) -> Draw:
    """Logger and reward follow something that the log does not hold; its p are right nevertheless."""
    world = inert(smooth_world(rng, k, 2, 4))
    secret = rng.integers(2, size=len(world.points)) * 2.0 - 1
    lean = np.array([1.0, -1.0, 0.5, -0.5])
    told = np.repeat(np.arange(len(world.points) // 2), 2)  # each state shown stands for two
    points = world.points[2 * told]
    policies = world.policies[:, 2 * told]
    hidden = replace(world, points=points, policies=policies, rewards=world.rewards + secret[:, None],
                     behavior=softmax(secret[:, None] * lean))  # fmt: skip
    return hidden.log(rng, rows)


def segments(draw: Draw) -> Draw:
    """The same log with nine segments for its states; policies and logger know more than these."""
    cuts = np.digitize(draw.log.states, [-0.5, 0.5])
    return replace(draw, log=replace(draw.log, states=3 * cuts[:, 0] + cuts[:, 1]))


@large("9 segments of 500 states")
def coarse(rng: Generator, rows: int, k: int) -> Draw:
    return segments(smooth_world(rng, k, 2, 4).log(rng, rows))


@large("9 segments of 500 states, ties")
def coarse_ties(rng: Generator, rows: int, k: int) -> Draw:
    return segments(level(rng, smooth_world(rng, k, 2, 4)).log(rng, rows))


@large("units, ties")
def units_ties(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=True)


@large("large units, ties")
def large_units_ties(rng: Generator, rows: int, k: int) -> Draw:
    """100 units of hundreds of rows across all states, each with a taste of its own."""
    world = inert(smooth_world(rng, k, 3, 4))
    units = rng.integers(100, size=rows)
    taste = 0.5 * rng.standard_normal((100, 4))
    states = rng.integers(len(world.points), size=rows)
    actions = sample(rng, world.behavior[states])
    own = taste[units, actions]
    draw = replace(world, noise=lambda g, expected: expected + own + 0.5 * g.standard_normal(rows)).record(
        rng, states, actions, world.behavior[states]
    )
    return replace(draw, log=replace(draw.log, units=units))


@large("epsilon-greedy learner")
def learner(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=False)


@large("100 x 100, heavy-tailed logger")
def grid_heavy(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["heavy-tailed logger"].draw(rng, rows, k)


@large("100 x 100, ties")
def grid_ties(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["stress: ties, 100 actions"].draw(rng, rows, k)


@large("100 x 100, risky seeker")
def grid_risky(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["reward-seeking, risky pairs"].draw(rng, rows, k)


# --- every row has a state of its own --------------------------------------------------------------------------------


@large("own states")
def own(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(endless(rng, rows, k), rng, rows)


@large("own states, inert")
def own_inert(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(inert(endless(rng, rows, k)), rng, rows)


@large("own states, seeker, ties")
def own_seeker(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(level(rng, seek(rng, endless(rng, rows, k))), rng, rows)


@large("own states, logger follows the state")
def own_following(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(following(rng, endless(rng, rows, k)), rng, rows)


@large("own states, logger follows the state, inert")
def own_following_inert(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(following(rng, inert(endless(rng, rows, k))), rng, rows)


@large("own states, heavy tails, inert")
def own_heavy(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(replace(inert(endless(rng, rows, k)), noise=heavy_noise), rng, rows)


@large("2 rows a state, logger follows the state, inert")
def pairs_of_rows(rng: Generator, rows: int, k: int) -> Draw:
    return following(rng, inert(smooth_world(rng, k, 2, 4, states=rows // 2))).log(rng, rows)


@large("500 states, logger follows the state, inert")
def hundreds_following_inert(rng: Generator, rows: int, k: int) -> Draw:
    return following(rng, inert(smooth_world(rng, k, 2, 4))).log(rng, rows)


# --- rules -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Before:
    """The same findings judged as those of a smaller log are."""

    found: Findings

    @property
    def policies(self) -> PolicySet:
        return self.found.policies

    @property
    def knows(self) -> str:
        return self.found.knows

    @property
    def t_p(self) -> float:
        return self.found.t_p

    @property
    def z_b(self) -> Floats:
        return self.found.z_b

    @property
    def lde(self) -> Path:
        return self.found.lde

    @property
    def dre(self) -> Path | None:
        path = self.found.dre
        if path is None or (self.knows == "full" and self.found.large.full):
            return path
        return replace(path, design=np.full(len(path.difference), np.nan))

    @property
    def many(self) -> bool:
        return False

    @property
    def left_out(self) -> float:
        return 0.0


def with_lonely_rows(found: Findings) -> Findings:
    """The same with rows alone in their state held against the mean of all rows also where there is no p."""
    large = found.large
    if large.knows != "none" or not found.left_out:
        return found
    return Findings(large, large.ask(large.question(states=True, gates=True, alone=True), "state by state"))


RULES: dict[str, Callable[[Findings], Judgement]] = {
    "now": gated,
    "before": lambda found: gated(Before(with_lonely_rows(found))),
}


def seen(draw: Draw, view: str) -> tuple[Any, dict[str, Floats]]:
    """The log and the policies as one would have them."""
    log, policies = draw.log, draw.policies
    if view != "all known":
        units = log.units
        log = forget(draw, everything=view.startswith("no p")).log
        log = log if units is None else replace(log, units=units)
    if view.endswith("at logged") and view != "p at logged":
        rows = np.arange(len(log))
        policies = {name: p[rows, draw.log.action_codes] for name, p in policies.items()}
    return log, policies


def trials_of(task: tuple[str, int, int, int]) -> list[Trial]:
    """One log under every view, judged by every rule."""
    name, rows, repetition, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    draw = LOGS[name](rng, rows, POLICIES)
    i, j = pair_indices(len(draw.policies))
    truth = draw.values[i] - draw.values[j]
    truth = np.where(np.abs(truth) < 1e-9 * max(1.0, float(np.abs(draw.values).max())), 0.0, truth)
    found = []
    for view in VIEWS:
        log, policies = seen(draw, view)
        study = examine_large(
            open_large(log, policies), LDE, "mean", verdicts="gated", ranker=None, duplicates=None, bootstrap=0,
            seed=0, coverage=False,
        )  # fmt: skip
        assert study.findings is not None
        judgements = {rule: judged(study.findings) for rule, judged in RULES.items()}
        first = judgements["now"]
        low, high = first.interval(LEVEL)
        found.append(
            Trial(
                family=f"{name} | {view}",
                rows=rows,
                truth=truth,
                p_better={rule: x.p_above() for rule, x in judgements.items()},
                claims={rule: claims_of(x) for rule, x in judgements.items()},
                order={},
                t_p=float(first.figures["t_p"]),
                alarm=bool(first.figures["alarm"]),
                seconds=0.0,
                covered=((low <= truth) & (truth <= high)).astype(float)[np.isfinite(low)],
            )
        )
    return found


def claims_of(judgement: Judgement) -> Floats:
    """(P,) +1, -1 or 0, after Benjamini-Hochberg over all pairs."""
    p = judgement.p_above()
    adjusted = benjamini_hochberg(np.where(judgement.usable, two_sided(p), 1.0))
    return np.where(adjusted <= 1 - LEVEL, np.sign(p - 0.5), 0.0)


def simulate(names: Iterable[str], rows: Sequence[int], logs: int, seed: int, workers: int) -> list[Trial]:
    tasks = [(name, n, repetition, seed) for n in rows for name in names for repetition in range(logs)]
    if workers == 1:
        return [
            trial for trials in counted(map(trials_of, tasks), "large logs", len(tasks), "logs") for trial in trials
        ]
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        return [
            trial
            for trials in counted(pool.map(trials_of, tasks), "large logs", len(tasks), "logs")
            for trial in trials
        ]


# --- tables ----------------------------------------------------------------------------------------------------------


def report(trials: Sequence[Trial]) -> str:
    """Claims and wrong claims of every family and view, logs with a wrong claim, and reliability."""
    rules = list(RULES)
    out = [
        "decided % (wrong claims; % of logs with one), by rule; coverage % of 95% intervals and alarms % of the first"
    ]
    out.append(
        f"  {'family':50s}{'view':21s}{'rows':>8s}" + "".join(f"{rule:>22s}" for rule in rules) + "   cover  alarm"
    )
    grouped: dict[tuple[str, int], list[Trial]] = {}
    for t in trials:
        grouped.setdefault((t.family, t.rows), []).append(t)
    for (label, rows), group in grouped.items():
        name, view = label.split(" | ")
        line = f"  {name:50s}{view:21s}{rows:8,d}"
        for rule in rules:
            cell = cells(group, rule)[label, rows]
            line += f"{100 * cell.decided:9.1f} ({cell.wrong:4d};{100 * logs_wrong(group, rule):5.1f})"
        held = np.concatenate([t.covered for t in group])
        cover = f"{100 * held.mean():7.1f}" if len(held) else "      -"
        out.append(line + cover + f"{100 * np.mean([t.alarm for t in group]):7.1f}")
    out += ["", "Reliability of P(better) where policies differ: share right (pairs, SE by log); ! = below its edge"]
    for view in VIEWS:
        part = [t for t in trials if t.family.endswith(f" | {view}") and t.truth.any()]
        for rule in rules:
            out.append(f"  {view:20s}{rule:8s}" + "  ".join(show_bin(*x) for x in reliability(part, rule)))
    return "\n".join(out)


def logs_wrong(group: Sequence[Trial], rule: str) -> float:
    """Share of logs with a wrong claim, which Benjamini-Hochberg keeps at 5% where all policies are equal."""
    return float(
        np.mean([((c := t.claims[rule]) != 0).any() and bool((c * np.sign(t.truth) != 1)[c != 0].any()) for t in group])
    )


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how honest verdicts on large logs are.")
    parser.add_argument("--logs", type=int, default=200, help="per family (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[25_000])
    parser.add_argument("--families", nargs="*", default=[""], help="by (part of) their names")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=File, help="write the table to a file")
    options = parser.parse_args(arguments)
    names = [n for n in LOGS if any(part in n for part in options.families)]
    text = report(simulate(names, options.rows, options.logs, options.seed, options.workers))
    print(text)
    if options.out:
        write_text(options.out, text + "\n")


if __name__ == "__main__":
    main()
