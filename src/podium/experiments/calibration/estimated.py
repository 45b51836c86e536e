"""What estimated propensities are worth: claims, wrong claims and rankings where the log has known, no, or estimated p.

python -m podium.calibration.estimated --logs 8
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from podium.comparison.compare import compare
from podium.data.columns import Floats
from podium.experiments.calibration.trials import POLICIES, one_thread, said
from podium.experiments.calibration.worlds import Draw, confounded_world, forget, smooth_world, softmax
from podium.experiments.runner import run_bench
from podium.propensities.estimated import estimate_propensities
from podium.verdicts.pairs import pair_indices

ROWS = (100, 400)
WAYS = ("known", "none", "estimated")


def at_random(rng: Generator, rows: int) -> Draw:
    """The logger ignores the state."""
    world = smooth_world(rng, POLICIES, 3, 4)
    shares = rng.dirichlet(np.full(4, 4.0))
    return replace(world, behavior=np.broadcast_to(shares, world.behavior.shape)).log(rng, rows)


def by_state(rng: Generator, rows: int) -> Draw:
    """The logger follows the state by a logistic rule, which the default model can learn."""
    world = smooth_world(rng, POLICIES, 3, 4)
    habit = softmax(1.5 * world.points @ rng.standard_normal((3, 4)))
    return replace(world, behavior=0.05 + 0.8 * habit).log(rng, rows)


def misleading(rng: Generator, rows: int) -> Draw:
    """Logger and reward both follow the state, so that agreeing with the logger looks good (20 actions)."""
    return confounded_world(rng, POLICIES, False).log(rng, rows)


def seeking(rng: Generator, rows: int) -> Draw:
    """The logger seeks reward, by what the state says of it."""
    world = smooth_world(rng, POLICIES, 2, 5)
    return replace(world, behavior=0.02 + 0.9 * softmax(1.5 * world.rewards)).log(rng, rows)


def hidden(rng: Generator, rows: int) -> Draw:
    """Logger and reward follow something that the log does not hold: no estimate can be right."""
    world = smooth_world(rng, POLICIES, 3, 4)
    secret = world.points[:, 2:]
    lean = np.array([1.5, -1.5, 0.5, -0.5])
    draw = replace(world, rewards=world.rewards + secret, behavior=softmax(secret * lean)).log(rng, rows)
    return replace(draw, log=replace(draw.log, states=draw.log.states[:, :2]))


LOGGERS: dict[str, Callable[[Generator, int], Draw]] = {
    "at random": at_random,
    "by the state": by_state,
    "misleading": misleading,
    "seeks reward": seeking,
    "hidden cause": hidden,
}


def run(name: str, rows: int, repetition: int, seed: int) -> tuple[dict[str, Floats], str]:
    """For every way: claims, wrong claims, intervals that cover, pairs that DRE orders rightly; and the belief."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    draw = LOGGERS[name](rng, rows)
    names = list(draw.policies)
    i, j = pair_indices(len(names))
    truth = draw.values[i] - draw.values[j]
    blank = forget(draw).log
    found = estimate_propensities(blank, seed=repetition)
    logs = dict(zip(WAYS, (draw.log, blank, found.log), strict=True))
    figures = {}
    for way, log in logs.items():
        result = compare(log, draw.policies)
        _, made, low, high = said(result, names)
        values = [result.estimates[p]["DRE"] for p in names]
        order = np.zeros(len(i)) if None in values else np.array(values)[i] - np.array(values)[j]
        covered = (low <= truth) & (truth <= high)
        counts = [len(i), (made != 0).sum(), (made * truth < 0).sum(), covered.sum(), (order * truth > 0).sum()]
        figures[way] = np.array(counts, dtype=np.float64)
    return figures, found.belief.verdict


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure what estimated propensities are worth.")
    parser.add_argument("--logs", type=int, default=8, help="per cell (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--logger", nargs="+", default=list(LOGGERS), choices=LOGGERS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    one_thread()
    print("| logger | rows | propensities | decided | wrong among claims | intervals that cover | DRE orders rightly |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in options.logger:
        for rows in options.rows:
            total = {way: np.zeros(5) for way in WAYS}
            beliefs: Counter[str] = Counter()
            for repetition in range(options.logs):
                figures, belief = run(name, rows, repetition, options.seed)
                beliefs[belief] += 1
                for way in WAYS:
                    total[way] += figures[way]
            for way, (pairs, claims, wrong, covered, right) in total.items():
                label = way + (f" ({', '.join(f'{b} {c}' for b, c in beliefs.items())})" if way == "estimated" else "")
                dre = "-" if way == "none" else f"{right / pairs:.0%}"
                share = f"{wrong:.0f} of {claims:.0f}"
                print(
                    f"| {name} | {rows:,} | {label} | {claims / pairs:.0%} | {share} | {covered / pairs:.0%} | {dre} |",
                    flush=True,
                )


if __name__ == "__main__":
    run_bench(main)
