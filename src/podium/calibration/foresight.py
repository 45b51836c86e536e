"""How well planning foresees: the rows that `plan` predicts against those that really decide a pair 8 times in 10.

    python -m podium.calibration.foresight

For one world at a time, logs of growing size show at which N each pair is decided rightly in 80% of logs. Logs of
moderate size are then asked how many rows that difference needs; they are told its true size and nothing else.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from podium.calibration.families import FAMILIES
from podium.calibration.trials import LEVEL, POLICIES, one_thread, said
from podium.columns import Floats
from podium.compare import compare
from podium.pairs import pair_indices
from podium.planning import row_variance, rows_needed

BENIGN = (
    "example 1.1", "example 1.2", "uniform logger", "random softmax", "Bernoulli rewards", "5 features", "2 actions",
    "fewer than 20 states",
)  # fmt: skip
GRID = (50, 100, 200, 400, 800, 1600)
ASKED = (200, 400)
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
    predicted: list[Floats] = []
    for place, rows in enumerate(GRID):
        for _ in range(logs):
            draw = world.log(rng, rows)
            result = compare(draw.log, draw.policies, level=LEVEL)
            p, *_ = said(result, list(draw.policies))
            sure = np.where(truth > 0, p, 1 - p) >= (1 + LEVEL) / 2
            power[place] += sure / logs
            if rows in ASKED:
                assert result.basis is not None
                judgement = result.basis.judgement
                prior = np.asarray(judgement.figures["prior_variance"])
                v = np.where(judgement.usable, row_variance(judgement.std_error**2, prior), np.inf)
                need = [
                    rows_needed(rows, v[[n]], prior[[n]], abs(float(truth[n])), LEVEL, POWER)[0] for n in range(len(i))
                ]
                predicted.append(np.array(need))
    true = [crossing(np.maximum.accumulate(power[:, n])) for n in range(len(i))]
    return [
        (name, float(need[n]), true[n])
        for need in predicted
        for n in range(len(i))
        if np.isfinite(true[n]) and np.isfinite(need[n])
    ]


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
    with ProcessPoolExecutor(options.workers, initializer=one_thread) as pool:
        found = [entry for part in pool.map(measure, tasks) for entry in part]
    print(report(found))


if __name__ == "__main__":
    main()
