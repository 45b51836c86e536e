"""How honest verdicts are around and beyond 20,000 rows, in every way that p and pi can be known.

python -m podium.calibration.large --logs 40 --rows 20000 20001 60000

"chosen" is what a comparison says: the surer of the two sources of certainty, "sample" and "every row". More rows must
never decide less.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import numpy as np

from podium.comparison.analysis import analyze
from podium.data.columns import Floats
from podium.data.files import write_text
from podium.data.progress import counted
from podium.estimates.estimators import LDE
from podium.estimates.options import Options
from podium.experiments.calibration.long_logs import LOGS
from podium.experiments.calibration.tables import cells, reliability, show_bin
from podium.experiments.calibration.trials import LEVEL, POLICIES, Trial, pool_of
from podium.experiments.calibration.worlds import Draw, forget
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.judgement import Judgement
from podium.verdicts.multiplicity import benjamini_hochberg, two_sided
from podium.verdicts.pairs import pair_indices

VIEWS = ("all known", "p at logged", "both at logged", "no p", "no p, pi at logged", "estimated p")
RULES = ("chosen", "sample", "every row")


def seen(draw: Draw, view: str) -> tuple[Any, dict[str, Floats]]:
    """The log and the policies as one would have them."""
    log, policies = draw.log, draw.policies
    if view != "all known":
        units = log.units
        log = forget(draw, everything=view.startswith(("no p", "estimated"))).log
        log = log if units is None else replace(log, units=units)
    if view.endswith("at logged") and view != "p at logged":
        rows = np.arange(len(log))
        policies = {name: p[rows, draw.log.action_codes] for name, p in policies.items()}
    return log, policies


def trials_of(task: tuple[str, int, int, int, tuple[str, ...]]) -> list[Trial]:
    """One log under every view asked for, judged by every rule."""
    name, rows, repetition, seed, views = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    draw = LOGS[name](rng, rows, POLICIES)
    i, j = pair_indices(len(draw.policies))
    truth = draw.values[i] - draw.values[j]
    truth = np.where(np.abs(truth) < 1e-9 * max(1.0, float(np.abs(draw.values).max())), 0.0, truth)
    found = []
    for view in views:
        log, policies = seen(draw, view)
        analysis = analyze(log, policies, LDE, Options(behavior="estimate" if view == "estimated p" else None))
        judgements = {"chosen": analysis.judgement, "sample": analysis.judged(analysis.usual)}
        judgements["every row"] = analysis.judged(EVERY_ROW) if analysis.every_row is not None else judgements["chosen"]
        first = judgements["chosen"]
        low, high = first.interval(LEVEL)
        found.append(
            Trial(
                family=f"{name} | {view}",
                rows=rows,
                truth=truth,
                p_better={rule: x.p_above() for rule, x in judgements.items()},
                claims={rule: claims_of(x) for rule, x in judgements.items()},
                order={},
                t_p=first.t_p,
                alarm=first.alarm,
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


def simulate(
    names: Iterable[str], rows: Sequence[int], logs: int, seed: int, workers: int, views: Sequence[str] = VIEWS
) -> list[Trial]:
    tasks = [(name, n, repetition, seed, tuple(views)) for n in rows for name in names for repetition in range(logs)]
    if workers == 1:
        return [
            trial for trials in counted(map(trials_of, tasks), "large logs", len(tasks), "logs") for trial in trials
        ]
    with pool_of(workers) as pool:
        return [
            trial
            for trials in counted(pool.map(trials_of, tasks), "large logs", len(tasks), "logs")
            for trial in trials
        ]


# --- tables ----------------------------------------------------------------------------------------------------------


def report(trials: Sequence[Trial]) -> str:
    """Claims and wrong claims of every family and view, logs with a wrong claim, and reliability."""
    rules = RULES
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
        for rule in rules if part else []:
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
    parser.add_argument("--views", nargs="*", default=VIEWS, choices=VIEWS, metavar="VIEW", help=", ".join(VIEWS))
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=File, help="write the table to a file")
    options = parser.parse_args(arguments)
    names = [n for n in LOGS if any(part in n for part in options.families)]
    text = report(simulate(names, options.rows, options.logs, options.seed, options.workers, options.views))
    print(text)
    if options.out:
        write_text(options.out, text + "\n")


if __name__ == "__main__":
    main()
