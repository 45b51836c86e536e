"""How well planning foresees: the rows that `plan` predicts against those that really decide a pair 8 times in 10.

    python -m podium.calibration.foresight

For one world at a time, logs of growing size show at which N each pair is decided rightly in 80% of logs: a probit line
through the shares of decided logs at all sizes crosses 80% there. Logs of moderate size, too short to decide the pair,
are asked how many rows it needs; they are told its true difference and nothing else.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.planning import Precision
from podium.data.columns import Floats
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.trials import LEVEL, POLICIES, pool_of, said
from podium.experiments.runner import run_bench
from podium.verdicts.pairs import pair_indices

# Worlds of these, with seed 5, chose what `verdicts.growth` believes; those set aside were not looked at before.
TUNED = ("example 1.1", "uniform logger", "random softmax", "5 features", "2 actions")
ASIDE = ("example 1.2", "heavy-tailed logger", "Bernoulli rewards", "fewer than 20 states", "20 features")
GRID = (250, 400, 600, 850, 1200, 1800)
ASKED = 400
POWER = 0.8


def measure(task: tuple[str, int, int, int]) -> list[tuple[str, float, float]]:
    """(family, predicted rows, true rows) of the pairs of one world, one entry per log that was asked."""
    name, number, logs, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    world = FAMILIES[name].draw(rng, GRID[0], POLICIES).world
    assert world is not None
    i, j = pair_indices(POLICIES)
    truth = world.values[i] - world.values[j]
    decided = np.zeros((len(GRID), len(i)))
    predicted: list[Floats] = []
    for place, rows in enumerate(GRID):
        for _ in range(logs):
            draw = world.log(rng, rows)
            result = compare(draw.log, draw.policies, level=LEVEL)
            p, *_ = said(result, list(draw.policies))
            decided[place] += np.where(truth > 0, p, 1 - p) >= (1 + LEVEL) / 2
            if rows == ASKED:
                predicted.append(Precision.of(result).rows_needed(np.abs(truth), LEVEL, POWER))
    true = [crossing(decided[:, n], logs) for n in range(len(i))]
    return [
        (name, float(need[n]), true[n])
        for need in predicted
        for n in range(len(i))
        if ASKED < true[n] <= GRID[-1] and np.isfinite(need[n])
    ]


def crossing(decided: Floats, logs: int) -> float:
    """The N at which a probit line in log N, through how many of the logs of each size were decided, crosses 80%."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr, ndtri

    x = np.log(np.array(GRID) / ASKED)

    def loss(line: Floats) -> float:
        z = line[0] + np.exp(line[1]) * x
        likelihood = decided @ log_ndtr(z) + (logs - decided) @ log_ndtr(-z)
        return float(0.5 * (line[1] - np.log(1.5)) ** 2 - likelihood)  # 1.4 is the slope where variances fall as 1/N

    level, slope = minimize(loss, [0.0, np.log(1.5)], method="Nelder-Mead").x
    return float(ASKED * np.exp((ndtri(POWER) - level) / np.exp(slope)))


def report(found: Sequence[tuple[str, float, float]]) -> str:
    lines = ["Predicted / true rows for 80% power: 10th, 50th, 90th percentile (pairs x logs)"]
    everything = "all of them"
    for name in (*dict.fromkeys(family for family, *_ in found), everything):
        ratio = np.array([p / t for family, p, t in found if name in (family, everything)])
        if len(ratio):
            low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
            lines.append(f"  {name:24s} {low:5.2f} {middle:5.2f} {high:5.2f}  ({len(ratio)})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m podium.calibration.foresight", description="Measure planning.")
    parser.add_argument("--families", nargs="+", choices=[*TUNED, *ASIDE], default=ASIDE, metavar="FAMILY")
    parser.add_argument("--worlds", type=int, default=3, help="per family")
    parser.add_argument("--logs", type=int, default=20, help="per world and N")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    tasks = [(name, w, options.logs, options.seed) for name in options.families for w in range(options.worlds)]
    with pool_of(options.workers) as pool:
        found = [entry for part in pool.map(measure, tasks) for entry in part]
    print(report(found))


if __name__ == "__main__":
    run_bench(main)
