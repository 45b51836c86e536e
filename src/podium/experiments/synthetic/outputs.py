"""Writes what Example 1 found: tables beside the printed ones, sweeps, figures, results.json and index.html."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from podium.data.files import write_text
from podium.data.spreadsheets import csv_text
from podium.experiments import pages
from podium.experiments.drawing import save_figure, style
from podium.experiments.printed import Entry, agreement, table_csv
from podium.experiments.synthetic import figures, surfaces
from podium.experiments.synthetic.details import DELTAS
from podium.experiments.synthetic.deviations import DEVIATIONS
from podium.experiments.synthetic.measures import METHODS
from podium.experiments.synthetic.plan import Plan
from podium.experiments.synthetic.results import ExampleResults
from podium.experiments.synthetic.verdicts import VerdictShares
from podium.outputs.display import Table
from podium.version import VERSION

MEASURED = (
    "rate", "rate_error", "state_rate", "state_rate_error", "average", "average_error", "std", "std_error", "low",
    "high",
)  # fmt: skip
CAPTIONS = {
    "comp": "Policy comparison rate over the value difference α (left, m = 1) and over the amount of data m (right, "
    "α = 0.01); bands are two standard errors.",
    "state": "Reward function (left) and share of correct per-state comparisons over m (right, α = 0.01). At m = 1 LDE "
    "and DRE agree in every state, and so do DiM and IPS.",
    "eval": "Evaluation error over α (top, m = 1) and over m (bottom, α = 0.01), divided by V_max − V_min: average, "
    "5th to 95th percentile, and standard deviation of all four.",
    "3d": "Policy comparison rate (top) and average evaluation error (bottom) over α and m.",
    "grid": "Products of estimated and true difference in single states: each method's share among the products of "
    "every size. LDE hardly ever errs by much; IPS and DRE produce the large products, right and wrong.",
    "bounds": "The theorems beside what LDE does: Theorem 2 promises a few in 100,000 at most where 50 to 100% are "
    "right, Theorem 3 allows nearly every state to be badly wrong. Both hold, and neither says how sure a ranking is.",
    "verdicts": "podium's own verdicts on the same tests, at level 0.95: what it decides, rightly or wrongly, and what "
    "it leaves open (white), beside how often the order by LDE alone is right.",
}


def write_outputs(
    plan: Plan, results: Sequence[ExampleResults], verdicts: Sequence[Sequence[VerdictShares]], out: Path, command: str
) -> dict[str, list[Entry]]:
    """Write every file of the reproduction and return the tables."""
    for name in ("tables", "sweeps", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[Entry]] = {}
    for result, shares in zip(results, verdicts, strict=True):
        tables |= result.tables()
        write_sweeps(result, shares, out / "sweeps")
        write_figures(result, shares, out / "figures")
    with style():
        save_figure(figures.spectrum_figure(), out / "figures", "pem_spectrum")
    for label, entries in tables.items():
        write_text(out / "tables" / f"{label}.csv", table_csv(entries))
    summary = results_dict(plan, results, verdicts, tables)
    write_text(out / "results.json", json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    write_text(out / "index.html", index_page(plan, results, verdicts, tables, command))
    return tables


# --- sweeps ------------------------------------------------------------------------------------------------------


def write_sweeps(result: ExampleResults, shares: Sequence[VerdictShares], folder: Path) -> None:
    """The numbers behind the figures, tidy: one row per cell and method."""
    label = result.label
    for sweep, points in result.sweeps.items():
        rows = [
            [repr(p.alpha), p.m, method, *(repr(float(getattr(p, name)[k])) for name in MEASURED)]
            for p in points
            for k, method in enumerate(METHODS)
        ]
        write_text(folder / f"{label}_{sweep}.csv", csv_text(["alpha", "m", "method", *MEASURED], rows))
    cells = result.histograms
    bins = [
        [repr(c.alpha), c.m, method, b, repr(c.edge), int(c.counts[k, b]), repr(float(c.shares[k, b]))]
        for c in cells
        for k, method in enumerate(METHODS)
        for b in range(c.counts.shape[1])
    ]
    header = ["alpha", "m", "method", "bin", "edge", "count", "share"]
    write_text(folder / f"{label}_products.csv", csv_text(header, bins))
    states = [
        [repr(c.alpha), c.m, repr(float(d)), repr(float(c.mispredicted[0, i])), repr(float(c.bound[i]))]
        for c in cells
        for i, d in enumerate(DELTAS)
    ]
    header = ["alpha", "m", "delta_by_squared_span", "measured", "bound"]
    write_text(folder / f"{label}_theorem3.csv", csv_text(header, states))
    pairs = [
        [sweep, repr(p.alpha), p.m, repr(float(p.rate[0])), repr(float(bound))]
        for sweep in ("alpha", "m")
        for p, bound in zip(result.sweeps[sweep], result.comparison_bounds(result.sweeps[sweep]), strict=True)
    ]
    write_text(folder / f"{label}_theorem2.csv", csv_text(["sweep", "alpha", "m", "measured", "bound"], pairs))
    judged = [[s.sweep, s.alpha, s.m, s.tests, s.right, s.wrong, s.tests - s.right - s.wrong] for s in shares]
    header = ["sweep", "alpha", "m", "tests", "decided_right", "decided_wrong", "cannot_tell"]
    write_text(folder / f"{label}_verdicts.csv", csv_text(header, judged))
    bandit = result.bandit
    grid = [
        [repr(float(s)), repr(float(a)), repr(float(bandit.rewards[i, j]))]
        for i, s in enumerate(bandit.states)
        for j, a in enumerate(bandit.actions)
    ]
    write_text(folder / f"{label}_reward.csv", csv_text(["state", "action", "reward"], grid))


# --- figures -----------------------------------------------------------------------------------------------------


def write_figures(result: ExampleResults, shares: Sequence[VerdictShares], folder: Path) -> None:
    drawn: dict[str, Callable[[ExampleResults], Any]] = {
        "comp": figures.comparison_figure,
        "state": surfaces.state_figure,
        "eval": figures.evaluation_figure,
        "3d": surfaces.surface_figure,
        "grid": surfaces.histogram_figure,
        "bounds": figures.bounds_figure,
    }
    with style():
        for name, draw in drawn.items():
            save_figure(draw(result), folder, f"{result.label}_{name}")
        if shares:
            save_figure(figures.verdict_figure(result, list(shares)), folder, f"{result.label}_verdicts")


# --- summaries ---------------------------------------------------------------------------------------------------


def results_dict(
    plan: Plan,
    results: Sequence[ExampleResults],
    verdicts: Sequence[Sequence[VerdictShares]],
    tables: dict[str, list[Entry]],
) -> dict[str, Any]:
    """The content of results.json; it depends on the plan alone, not on how or when it was run."""
    return {
        "podium": VERSION,
        "experiment": "synthetic",
        "settings": {
            "replay": plan.replay,
            "seed": None if plan.replay else plan.seed,
            "tests": plan.tests,
            "verdict_tests": plan.verdict_tests,
            "rewards": list(plan.rewards),
        },
        "agreement": {name: agreement(entries) for name, entries in groups(tables).items() if entries},
        "tables": {label: agreement(entries) for label, entries in tables.items()},
        "examples": {
            r.name: {
                "v_max": r.bandit.v_max,
                "v_min": r.bandit.v_min,
                "comparison_rate": {
                    sweep: [
                        {"alpha": p.alpha, "m": p.m} | dict(zip(METHODS, map(float, p.rate), strict=True))
                        for p in r.sweeps[sweep]
                    ]
                    for sweep in ("alpha", "m", "grid")
                },
                "verdicts": [
                    {
                        "sweep": s.sweep, "alpha": s.alpha, "m": s.m, "tests": s.tests, "right": s.right,
                        "wrong": s.wrong,
                    }
                    for s in shares
                ],
            }
            for r, shares in zip(results, verdicts, strict=True)
        },
        "deviations": [f"{title}. {text}" for title, text in DEVIATIONS],
    }  # fmt: skip


def groups(tables: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    """All entries, and the kinds that a replay reproduces to a different degree."""
    every = [e for entries in tables.values() for e in entries]
    kinds = {"evaluation": ("avg", "std"), "pearson": ("pearson",), "spearman": ("spearman",)}
    return {"all": every} | {kind: [e for e in every if e.column.endswith(ends)] for kind, ends in kinds.items()}


def agreement_table(tables: dict[str, list[Entry]]) -> Table:
    """How each printed table compares, and all together."""
    return pages.agreement_table({**tables, **groups(tables)})


def index_page(
    plan: Plan,
    results: Sequence[ExampleResults],
    verdicts: Sequence[Sequence[VerdictShares]],
    tables: dict[str, list[Entry]],
    command: str,
) -> str:
    """The page that shows everything."""
    how = "the paper's own random numbers" if plan.replay else f"fresh random numbers, seed {plan.seed}"
    parts = [
        pages.paragraph(
            f"The synthetic bandit of Section 5.1 and Appendix C.1: {plan.tests:,} tests per cell, {how}. "
            f"Made by: {command}"
        )
    ]
    if tables:
        parts.append(f'<div class="table">{agreement_table(tables).html()}</div>')
    parts += [
        pages.links(["results.json", "tables/", "sweeps/", "figures/"]),
        pages.heading("The methods"),
        pages.figure("pem_spectrum", "The four methods by their use of a baseline and of importance weighting.", True),
    ]
    for result, shares in zip(results, verdicts, strict=True):
        parts.append(pages.heading(f"Example {result.name}"))
        own = result.tables()
        for kind, titles in {
            "comp": (), "eval": (("eval_a", "α", "over α (m = 1)"), ("eval_m", "m", "over m (α = 0.01)")), "state": (),
            "3d": (("correlation", "m", "of true and estimated differences"),), "grid": (), "bounds": (),
            "verdicts": (),
        }.items():  # fmt: skip
            if kind == "verdicts" and not shares:
                continue
            parts.append(pages.figure(f"{result.label}_{kind}", CAPTIONS[kind]))
            for table, first, what in titles:
                label = f"{result.label}_{table}"
                if label in own:
                    noun = "Correlations" if table == "correlation" else "Evaluation errors"
                    parts.append(pages.paired_table(f"{noun} {what}: printed, reproduced, z", first, own[label]))
    parts += [pages.heading("Deviations"), pages.numbered(DEVIATIONS)]
    return pages.page("Example 1: synthetic data", parts)
