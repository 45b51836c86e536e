"""How well planning foresees: the rows that `plan` predicts against those that really decide a pair 8 times in 10.

    python -m podium.calibration.foresight

For one world at a time, logs of growing size show at which N each pair is decided rightly in 80% of logs. Logs of
moderate size, too short to decide the pair, are asked how many rows it needs; they are told its true difference and
nothing else.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.planning import planning_variance, rows_needed
from podium.data.columns import Floats
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.trials import LEVEL, POLICIES, pool_of, said
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices

BENIGN = (
    "example 1.1", "example 1.2", "uniform logger", "random softmax", "Bernoulli rewards", "5 features", "2 actions",
    "fewer than 20 states",
)  # fmt: skip
GRID = (200, 400, 600, 800, 1200, 1800)
ASKED = (400,)
POWER = 0.8


def measure(task: tuple[str, int, int, int]) -> list[tuple[str, float, float]]:
    """(family, predicted rows, true rows) of the pairs of one world, one entry per log that was asked."""
    name, number, logs, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    world = FAMILIES[name].draw(rng, GRID[0], POLICIES).world
    assert world is not None
    i, j = pair_indices(POLICIES)
    truth = world.values[i] - world.values[j]
    power = np.zeros((len(GRID), len(i)))
    predicted: list[tuple[int, Floats]] = []
    for place, rows in enumerate(GRID):
        for _ in range(logs):
            draw = world.log(rng, rows)
            result = compare(draw.log, draw.policies, level=LEVEL)
            p, *_ = said(result, list(draw.policies))
            sure = np.where(truth > 0, p, 1 - p) >= (1 + LEVEL) / 2
            power[place] += sure / logs
            if rows in ASKED:
                assert result.basis is not None
                predicted.append((rows, rows_for(result.basis.judgement, rows, np.abs(truth))))
    true = [crossing(np.maximum.accumulate(power[:, n])) for n in range(len(i))]
    return [
        (name, float(need[n]), true[n])
        for asked, need in predicted
        for n in range(len(i))
        if true[n] > asked and np.isfinite(need[n])  # nan is never greater
    ]


def rows_for(judgement: Judgement, rows: int, differences: Floats) -> Floats:
    """(P,) the rows that planning predicts when each pair's true difference is asked for."""
    v = planning_variance(judgement)
    need = [rows_needed(rows, v[[n]], float(d), LEVEL, POWER)[0] for n, d in enumerate(differences)]
    return np.array(need)


def crossing(power: Floats) -> float:
    """The N at which a rising curve crosses 80%, between points of the grid; nan outside it."""
    if power[0] >= POWER or power[-1] < POWER:
        return float("nan")
    k = int(np.argmax(power >= POWER))
    share = (POWER - power[k - 1]) / (power[k] - power[k - 1])
    return float(np.exp(np.log(GRID[k - 1]) + share * np.log(GRID[k] / GRID[k - 1])))


def report(found: Sequence[tuple[str, float, float]]) -> str:
    lines = ["Predicted / true rows for 80% power: 10th, 50th, 90th percentile (pairs x logs)"]
    for name in (*BENIGN, "all benign families"):
        ratio = np.array([p / t for family, p, t in found if family == name or name.startswith("all")])
        if len(ratio):
            low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
            lines.append(f"  {name:24s} {low:5.2f} {middle:5.2f} {high:5.2f}  ({len(ratio)})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m podium.calibration.foresight", description="Measure planning.")
    parser.add_argument("--worlds", type=int, default=3, help="per family")
    parser.add_argument("--logs", type=int, default=20, help="per world and N")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    tasks = [(name, w, options.logs, options.seed) for name in BENIGN for w in range(options.worlds)]
    with pool_of(options.workers) as pool:
        found = [entry for part in pool.map(measure, tasks) for entry in part]
    print(report(found))


if __name__ == "__main__":
    main()
