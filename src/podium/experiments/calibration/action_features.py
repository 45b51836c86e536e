"""What features of the actions add: pairs decided with and without them, and how many of the claims are wrong.

python -m podium.calibration.action_features --logs 20 --seed 11

In the worlds of 1,000 actions the features explain most of the rewards; in those whose names begin with "useless" they
say nothing of rewards. Choices were made on `TUNED` alone; `HELD_OUT` was fixed before its first log was compared.
Every log is compared twice, so that both columns of the table are of the same rows and policies.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.comparison.compare import compare
from podium.data.columns import Floats
from podium.data.progress import counted
from podium.experiments.calibration.described_worlds import HELD_OUT, TUNED, WORLDS
from podium.experiments.calibration.trials import LEVEL, POLICIES, pool_of, said
from podium.experiments.runner import run_bench
from podium.verdicts.pairs import pair_indices

ROWS = 300


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
