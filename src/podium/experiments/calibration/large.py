"""How honest verdicts are around and beyond 20,000 rows, in every way that p and pi can be known.

python -m podium.calibration.large --logs 2
python -m podium.calibration.large --logs 10 --rules "every row" --rows 20001 60000 --views "all known" "p at logged"
python -m podium.calibration.large --redraws 5 --rows 60000 --logs 1 --views "all known" "p at logged"

"chosen" is what a comparison says: the better of the two sources of certainty, "sample" and "every row". More rows must
never decide less.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

import numpy as np

from podium.comparison.analysis import Analysis, analyze
from podium.data.columns import Floats
from podium.data.files import check_output, write_output
from podium.data.progress import counted
from podium.estimates.estimators import LDE
from podium.estimates.options import Options
from podium.experiments.calibration.long_logs import EVERY_SIZE, HELD_OUT, HIDDEN, LOGS
from podium.experiments.calibration.tables import cells, reliability, show_bin
from podium.experiments.calibration.trials import LEVEL, POLICIES, Trial, pool_of
from podium.experiments.calibration.worlds import Draw, forget
from podium.experiments.runner import run_bench
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.judgement import Judgement
from podium.verdicts.multiplicity import benjamini_hochberg, two_sided
from podium.verdicts.pairs import pair_indices

VIEWS = ("all known", "p at logged", "both at logged", "no p", "no p, pi at logged", "estimated p")
MAIN_VIEWS = ("all known", "p at logged", "no p", "estimated p")
RULES = ("chosen", "sample", "every row")
SIZES = (20_000, 20_001, 60_000, 1_000_000)


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


def trials_of(task: tuple[str, tuple[int, ...], int, int, tuple[str, ...], tuple[str, ...]]) -> list[Trial]:
    """One log and its first rows, one trial for each size and view.

    All sizes share the world, the policies and their first rows, so that differences between sizes are paired.
    """
    name, sizes, repetition, seed, views, rules = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), repetition])
    draw = LOGS[name](rng, max(sizes), POLICIES)
    return [trial_of(name, first_rows(draw, rows), view, rules) for rows in sizes for view in views]


def first_rows(draw: Draw, rows: int) -> Draw:
    some = slice(0, rows)
    return replace(draw, log=draw.log.take(some), policies={n: p[some] for n, p in draw.policies.items()})


def analysis_of(log: Any, policies: Mapping[str, Floats], view: str, seed: int = 0) -> Analysis:
    options = Options(behavior="estimate" if view == "estimated p" else None, seed=seed)
    return analyze(log, policies, LDE, options)


def trial_of(name: str, draw: Draw, view: str, rules: Sequence[str]) -> Trial:
    """One log as one would have it, judged by some rules."""
    start = time.process_time()
    i, j = pair_indices(len(draw.policies))
    truth = draw.values[i] - draw.values[j]
    truth = np.where(np.abs(truth) < 1e-9 * max(1.0, float(np.abs(draw.values).max())), 0.0, truth)
    analysis = analysis_of(*seen(draw, view), view)
    judgements = {rule: judgement_of(analysis, rule) for rule in rules}
    first = judgements[rules[0]]
    low, high = first.interval(LEVEL)
    return Trial(
        family=f"{name} | {view}",
        rows=len(draw.log),
        truth=truth,
        p_better={rule: x.p_above() for rule, x in judgements.items()},
        claims={rule: claims_of(x) for rule, x in judgements.items()},
        order={},
        t_p=first.t_p,
        alarm=first.alarm,
        seconds=time.process_time() - start,
        covered=((low <= truth) & (truth <= high)).astype(float)[np.isfinite(low)],
    )


def judgement_of(analysis: Analysis, rule: str) -> Judgement:
    """What one rule says; a log that has one source alone is judged by it."""
    if rule == "chosen" or analysis.rows.whole:
        return analysis.judgement
    return analysis.by_sample if rule == "sample" or analysis.every_row is None else analysis.judged(EVERY_ROW)


def claims_of(judgement: Judgement) -> Floats:
    """(P,) +1, -1 or 0, after Benjamini-Hochberg over all pairs."""
    p = judgement.p_above()
    adjusted = benjamini_hochberg(np.where(judgement.usable, two_sided(p), 1.0))
    return np.where(adjusted <= 1 - LEVEL, np.sign(p - 0.5), 0.0)


def simulate(
    names: Iterable[str],
    rows: Sequence[int],
    logs: int,
    seed: int,
    workers: int,
    views: Sequence[str] = VIEWS,
    rules: Sequence[str] = RULES,
) -> list[Trial]:
    """All trials, every family once before any family has its next log."""
    tasks = [
        (name, tuple(sorted(rows)), repetition, seed, tuple(views), tuple(rules))
        for repetition in range(logs)
        for name in names
    ]
    if workers == 1:
        trials = counted(map(trials_of, tasks), "large logs", len(tasks), "logs")
        return [trial for some in trials for trial in some]
    with pool_of(workers) as pool:
        trials = counted(pool.map(trials_of, tasks), "large logs", len(tasks), "logs")
        return [trial for some in trials for trial in some]


# --- what the sample's draw changes ----------------------------------------------------------------------------------


def redraws_of(task: tuple[str, int, int, int, str, int]) -> list[str]:
    """How much other seeds, and other orders of the rows, change what is said of one log, by rule."""
    name, rows, repetition, seed, view, count = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), repetition])
    log, policies = seen(LOGS[name](rng, rows, POLICIES), view)
    orders = [rng.permutation(rows) for _ in range(count)]
    analyses = [analysis_of(log, policies, view, other) for other in range(count)]
    analyses += [analysis_of(log.take(o), {n: p[o] for n, p in policies.items()}, view) for o in orders]
    lines = []
    for rule in ("chosen", "sample"):
        judgements = [judgement_of(analysis, rule) for analysis in analyses]
        by_seed, by_order = unsteadiness(judgements[:count]), unsteadiness(judgements[count:])
        lines.append(f"  {name:50s}{view:14s}{rule:8s}{by_seed}{by_order}   {judgements[0].procedure}")
    return lines


def unsteadiness(judgements: Sequence[Judgement]) -> str:
    """The sd of P(better), mean and largest over the pairs; pairs whose verdict changes or is reversed, in %."""
    deviation = np.array([x.p_above() for x in judgements]).std(axis=0, ddof=1)
    claims = np.array([claims_of(x) for x in judgements])
    spread = claims.max(axis=0) - claims.min(axis=0)
    changed, turned = 100 * float((spread > 0).mean()), 100 * float((spread == 2).mean())
    return f"{deviation.mean():9.3f}{deviation.max():7.3f}{changed:6.0f}{turned:4.0f}"


def redraws(names: Iterable[str], rows: int, logs: int, seed: int, views: Sequence[str], count: int) -> str:
    """A table of how much the seed and the order of the rows matter, log by log."""
    tasks = [(name, rows, log, seed, view, count) for name in names for log in range(logs) for view in views]
    head = [
        f"{count} seeds, then {count} orders of the {rows:,} rows: sd of P(better), mean and largest over the pairs;",
        "pairs whose verdict is not always the same %, and pairs with opposite verdicts %; procedure",
    ]
    tables = counted(map(redraws_of, tasks), "redraws", len(tasks), "logs")
    return "\n".join([*head, *(line for lines in tables for line in lines)])


# --- tables ----------------------------------------------------------------------------------------------------------


def report(trials: Sequence[Trial]) -> str:
    """Claims by size; claims and wrong claims of every family and view; reliability."""
    return "\n".join([*size_tables(trials), "", *family_table(trials), "", *reliability_table(trials)])


@dataclass(frozen=True)
class SizeRow:
    """What one rule says of some logs at one size, and how that differs from the next smaller size."""

    rows: int
    logs: int
    decided: float  # share of the pairs of different policies that have a claim
    change: float  # of that share since the size before; the same logs
    error: float  # standard error of the change, by log
    claims: int
    wrong: int
    by_every_row: float  # share of logs judged by every row
    covered: float  # share of the 95% intervals that hold the truth; of the first rule


def by_size(trials: Sequence[Trial], rule: str) -> list[SizeRow]:
    """One line for each size; the logs of all sizes must come in the same order."""
    table: list[SizeRow] = []
    before: Floats | None = None
    for rows in sorted({t.rows for t in trials}):
        group = [t for t in trials if t.rows == rows]
        decided = np.array([float((t.claims[rule][t.truth != 0] != 0).sum()) for t in group])
        pairs = sum(int((t.truth != 0).sum()) for t in group)
        shift = np.zeros(len(group)) if before is None else decided - before
        made = np.concatenate([t.claims[rule] for t in group])
        truth = np.sign(np.concatenate([t.truth for t in group]))
        table.append(
            SizeRow(
                rows=rows,
                logs=len(group),
                decided=decided.sum() / max(pairs, 1),
                change=shift.sum() / max(pairs, 1),
                error=float(np.sqrt(((shift - shift.mean()) ** 2).sum())) / max(pairs, 1),
                claims=int((made != 0).sum()),
                wrong=int(((made != 0) & (made != truth)).sum()),
                by_every_row=float(np.mean([judged_by_every_row(t) for t in group])),
                covered=share_of(np.concatenate([t.covered for t in group])),
            )
        )
        before = decided
    return table


def share_of(true: Floats) -> float:
    return float(true.mean()) if len(true) else float("nan")


def judged_by_every_row(t: Trial) -> bool:
    p = t.p_better
    return (
        p.keys() == set(RULES)
        and np.array_equal(p["chosen"], p["every row"])
        and not np.array_equal(p["chosen"], p["sample"])
    )


def size_tables(trials: Sequence[Trial]) -> list[str]:
    """For each view and rule: what more rows change, over all families, and over those that were held out."""
    out = [
        "By size: pairs of different policies with a claim %, its change since the size before (SE by log); of all",
        "pairs, wrong claims among claims; coverage % of the 95% intervals; logs judged by every row %",
    ]
    rules = list(trials[0].claims)
    for view in VIEWS:
        names = {t.family.split(" | ")[0] for t in trials if t.family.endswith(f" | {view}")}
        apart = names & {HIDDEN} if view.startswith(("no p", "estimated")) else set()
        rest = names - apart
        groups = {"all": rest, "tuned on": rest - HELD_OUT, "held out": rest & HELD_OUT, "hidden": apart}
        for rule in rules:
            for label, some in groups.items() if rule == rules[0] else [("all", rest)]:
                part = [t for t in trials if t.family in {f"{name} | {view}" for name in some}]
                for x in by_size(part, rule):
                    more = f"{100 * x.covered:7.1f}" if rule == rules[0] else ""
                    more += f"{100 * x.by_every_row:6.0f}" if rule == "chosen" else ""
                    out.append(
                        f"  {view:20s}{rule:10s}{label:9s}{x.rows:10,d}{x.logs:5d} logs{100 * x.decided:7.1f}"
                        f"{100 * x.change:+7.1f} ({100 * x.error:3.1f}){x.wrong:5d} of {x.claims:4d}"
                        f"{100 * x.wrong / max(x.claims, 1):6.1f}%{more}"
                    )
    return out


def family_table(trials: Sequence[Trial]) -> list[str]:
    """Claims and wrong claims of every family and view by the first rule, one column for each size."""
    rule = next(iter(trials[0].claims))
    sizes = sorted({t.rows for t in trials})
    found = cells(trials, rule)
    out = [f"{rule}: claims % of all pairs (wrong claims)" + " " * 30 + "".join(f"{n:>14,d}" for n in sizes)]
    for label in dict.fromkeys(t.family for t in trials):
        name, view = label.split(" | ")
        here = [found.get((label, n)) for n in sizes]
        shown = ["-" if c is None else f"{100 * c.decided:.0f} ({c.wrong})" for c in here]
        out.append(f"  {name:54s}{view:14s}" + "".join(f"{x:>14s}" for x in shown))
    return out


def reliability_table(trials: Sequence[Trial]) -> list[str]:
    out = ["Reliability of P(better) where policies differ: share right (pairs, SE by log); ! = below its edge"]
    for view in VIEWS:
        part = [t for t in trials if t.family.endswith(f" | {view}") and t.truth.any()]
        out += [
            f"  {view:20s}{rule:10s}" + "  ".join(show_bin(*x) for x in reliability(part, rule))
            for rule in (part[0].claims if part else ())
        ]
    return out


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how honest verdicts on large logs are.")
    parser.add_argument("--logs", type=int, default=2, help="per family (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--families", nargs="*", help="by their names or parts of these (default: the families of the table by size)"
    )
    parser.add_argument("--views", nargs="*", default=MAIN_VIEWS, choices=VIEWS, metavar="VIEW", help=", ".join(VIEWS))
    parser.add_argument("--rules", nargs="*", default=RULES, choices=RULES, metavar="RULE", help=", ".join(RULES))
    parser.add_argument("--redraws", type=int, default=0, help="seeds and row orders to try on each log instead")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=File, help="write the table to a file")
    parser.add_argument("--overwrite", action="store_true", help="also replace a file that podium did not write")
    options = parser.parse_args(arguments)
    if options.out:
        check_output(options.out, overwrite=options.overwrite)
    parts = options.families
    names = EVERY_SIZE if parts is None else [n for n in LOGS if any(n == p if p in LOGS else p in n for p in parts)]
    if options.redraws:
        text = redraws(names, max(options.rows), options.logs, options.seed, options.views, options.redraws)
    else:
        trials = simulate(
            names, options.rows, options.logs, options.seed, options.workers, options.views, options.rules
        )
        text = report(trials)
    print(text)
    if options.out:
        write_output(options.out, text + "\n", overwrite=options.overwrite)


if __name__ == "__main__":
    run_bench(main)
