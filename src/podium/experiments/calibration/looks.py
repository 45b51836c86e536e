"""Growing logs that are compared again after every batch: how many ties are ever claimed, and what looking often costs.

python -m podium.calibration.looks

Each log of 800 rows is compared at 50, 100, ..., 800 rows. Every rule sees the same probabilities.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.data.columns import Floats
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.verdicts.looks import nominal_errors
from podium.verdicts.multiplicity import two_sided
from podium.verdicts.pairs import pair_indices

LOOKS, STEP, LEVEL = 16, 50, 0.95
TIES = ("exact ties", "stress: ties, coins", "stress: ties, confounded")
DIFFERENCES = ("5 features", "health programme", "heavy-tailed noise")
# The spending function was fixed beforehand, by the arithmetic of normal increments; none of these families was used.
RULES: dict[str, Floats] = {
    "no spending": np.full(LOOKS, 1 - LEVEL),
    "podium (t^2)": np.array(nominal_errors(LOOKS, LEVEL)),
    "t^3, like O'Brien-Fleming": np.array(nominal_errors(LOOKS, LEVEL, 3.0)),
    "t, like Pocock": np.array(nominal_errors(LOOKS, LEVEL, 1.0)),
    "Bonferroni": np.full(LOOKS, (1 - LEVEL) / LOOKS),
}


def watch(name: str, repetition: int, seed: int, verdicts: str | None) -> tuple[Floats, Floats, Floats]:
    """A log of 2 to 5 policies, look by look: p values (L, P) of each pair alone, those that decide, the truth (P,).

    The p values have the sign of the difference.
    """
    policies = 2 + repetition % 4
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), repetition])
    draw = FAMILIES[name].draw(rng, LOOKS * STEP, policies)
    names = list(draw.policies)
    i, j = pair_indices(policies)
    alone, decisive = np.ones((LOOKS, len(i))), np.ones((LOOKS, len(i)))
    for look in range(LOOKS):
        rows = np.arange((look + 1) * STEP)
        result = compare(draw.log.take(rows), {n: p[rows] for n, p in draw.policies.items()}, verdicts=verdicts)
        pairs = [result.pair(names[a], names[b]) for a, b in zip(i, j, strict=True)]
        side = np.array([p.p_better - 0.5 for p in pairs])
        silent = np.array([p.interval is None for p in pairs])
        p_value = two_sided(np.array([p.p_better for p in pairs]))
        alone[look] = np.copysign(np.where(silent, 1.0, p_value), side)
        decisive[look] = np.copysign([p.p_adjusted for p in pairs], side)
    truth = draw.values[i] - draw.values[j]
    return alone, decisive, np.where(np.abs(truth) < 1e-9, 0.0, truth)


def figures(p_values: Floats, truth: Floats, limits: Floats) -> Floats:
    """Ties, those ever claimed; differences, those claimed by a single look, at the last look, ever, ever wrongly; and
    the rows at which each was first claimed, summed."""
    claims = np.where(np.abs(p_values) <= limits[:, None], np.copysign(1.0, p_values), 0.0)
    single = np.abs(p_values[-1]) <= 1 - LEVEL
    tie, ever = truth == 0, claims.any(axis=0)
    wrong = (claims * truth < 0).any(axis=0)
    first = STEP * (1 + (claims != 0).argmax(axis=0))
    real = ~tie
    counts = [tie, tie & ever, real, real & single, real & (claims[-1] != 0), real & ever, wrong]
    return np.array([*(c.sum() for c in counts), first[real & ever].sum()], dtype=np.float64)


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure what looking at a growing log again and again does.")
    parser.add_argument("--logs", type=int, default=16, help="per family (default: %(default)s)")
    parser.add_argument("--family", nargs="+", default=[*TIES, *DIFFERENCES], choices=FAMILIES)
    parser.add_argument("--verdicts", help="the procedure that judges (default: podium's own choice)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    one_thread()
    kinds = ("each pair alone", "pairs adjusted")
    total = {(kind, rule): np.zeros(8) for kind in kinds for rule in RULES}
    for name in options.family:
        for repetition in range(options.logs):
            *seen, truth = watch(name, repetition, options.seed, options.verdicts)
            for kind, p_values in zip(kinds, seen, strict=True):
                for rule, limits in RULES.items():
                    total[kind, rule] += figures(p_values, truth, limits)
    print("| pairs | rule | ties ever claimed | decided at the last look | of a single look | ever wrong | mean rows |")
    print("|---|---|---|---|---|---|---|")
    for (kind, rule), (ties, claimed, real, single, last, ever, wrong, rows) in total.items():
        cells = [
            f"{claimed:.0f} of {ties:.0f} ({claimed / max(ties, 1):.1%})",
            f"{last:.0f} of {real:.0f}",
            f"{last / max(single, 1):.0%}",
            f"{wrong:.0f} of {ever:.0f}",
            f"{rows / max(ever, 1):.0f}",
        ]
        print(f"| {kind} | {rule} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    run_bench(main)
