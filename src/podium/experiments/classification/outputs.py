"""Writes what Example 2 found: tables beside the printed ones, the numbers behind the figures, figures, the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.data.files import write_text
from podium.data.spreadsheets import csv_text
from podium.experiments import pages
from podium.experiments.classification import figures
from podium.experiments.classification.cells import METHODS
from podium.experiments.classification.datasets import describe_origins
from podium.experiments.classification.deviations import DEVIATIONS
from podium.experiments.classification.measures import Measures
from podium.experiments.classification.plan import Plan
from podium.experiments.classification.results import Results
from podium.experiments.drawing import save_figure, style
from podium.experiments.printed import Entry, agreement, table_csv
from podium.outputs.display import Table
from podium.version import VERSION

SCORES = ("score", "score_std", "error", "error_std", "ties")
TRAINING = ("trainings", "policies", "untouched", "updates", "before", "after", "majority")
CAPTIONS = {
    "comp": "Policy comparison scores: average over all logs, and a band of one standard deviation to either side. "
    "Arrowheads are the printed averages.",
    "eval": "Policy evaluation errors, estimated minus true accuracy: average and one standard deviation over all logs "
    "and policies. LDE and DiM are scores for comparing and shrink toward their baseline, so they err as values.",
    "training": "What training did. Left: mean accuracy of the policies before and after, and of always choosing the "
    "most frequent class. Right: the share of policies that no step changed, with the mean number of updates above.",
    "verdicts": "podium's own verdicts on the same logs, at level 0.95: the pairs that it decides, rightly or wrongly, "
    "and those that it leaves open (white), beside the share that LDE alone puts in the right order, over all logs.",
}


def write_outputs(plan: Plan, results: Results, out: Path, command: str) -> dict[str, list[Entry]]:
    """Write every file of the reproduction and return the tables."""
    for name in ("tables", "sweeps", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    tables = results.tables()
    for label, entries in tables.items():
        write_text(out / "tables" / f"{label}.csv", table_csv(entries))
    write_sweeps(results, out / "sweeps")
    drawn = write_figures(results, out / "figures")
    summary = results_dict(plan, results, tables)
    write_text(out / "results.json", json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    write_text(out / "index.html", index_page(plan, results, tables, drawn, command))
    return tables


def every(results: Results) -> list[Measures]:
    return [m for found in results.measures.values() for m in found]


def write_sweeps(results: Results, folder: Path) -> None:
    """Write the numbers behind the figures, tidy: one row per variant, dataset and method. No table is empty."""
    scores = [
        [*place_of(m), method, *(repr(float(getattr(m, n)[k])) for n in SCORES)]
        for m in every(results)
        for k, method in enumerate(METHODS)
    ]
    training = [[*place_of(m), *(repr(getattr(m.training, n)) for n in TRAINING)] for m in every(results) if m.training]
    judged = [
        [*place_of(m), v.logs, v.pairs, v.right, v.wrong, v.pairs - v.right - v.wrong]
        for m in every(results)
        if (v := m.verdicts)
    ]
    sweeps: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
        "ex2_scores": (("method", *SCORES), scores),
        "ex2_training": (TRAINING, training),
        "ex2_verdicts": (("logs", "pairs", "decided_right", "decided_wrong", "cannot_tell"), judged),
    }
    for name, (columns, rows) in sweeps.items():
        if rows:
            write_text(folder / f"{name}.csv", csv_text(["policies", "reading", "dataset", *columns], rows))


def place_of(m: Measures) -> list[str]:
    return [m.variant.policies, m.variant.reading, m.dataset]


def write_figures(results: Results, folder: Path) -> list[str]:
    """Draw what there are numbers for; the names of the figures."""
    drawn = {"comp": figures.comparison_figure, "eval": figures.evaluation_figure}
    if any(m.training for m in every(results)):
        drawn["training"] = figures.training_figure
    if any(m.verdicts for m in every(results)):
        drawn["verdicts"] = figures.verdict_figure
    with style():
        for name, draw in drawn.items():
            save_figure(draw(results), folder, f"ex2_{name}")
    return list(drawn)


# --- summaries ---------------------------------------------------------------------------------------------------


def results_dict(plan: Plan, results: Results, tables: dict[str, list[Entry]]) -> dict[str, Any]:
    """The content of results.json; it depends on the plan alone, not on how or when it was run."""
    return {
        "podium": VERSION,
        "experiment": "classification",
        "settings": {
            "replay": plan.replay,
            "seed": None if plan.replay else plan.seed,
            "datasets": [d.name for d in plan.datasets],
            "data": {d.name: d.origin.words for d in plan.datasets},
            "variants": [{"policies": v.policies, "reading": v.reading} for v in plan.variants],
            "rounds": plan.rounds,
            "logs": plan.logs,
            "epochs": plan.epochs,
            "verdict_logs": plan.verdict_logs,
        },
        "agreement": {name: agreement(entries) for name, entries in groups(tables).items()},
        "tables": {label: agreement(entries) for label, entries in tables.items()},
        "results": [measures_dict(m) for m in every(results)],
        "deviations": [f"{title}. {text}" for title, text in DEVIATIONS],
    }


def measures_dict(m: Measures) -> dict[str, Any]:
    entry: dict[str, Any] = {"policies": m.variant.policies, "reading": m.variant.reading, "dataset": m.dataset}
    entry |= {name: dict(zip(METHODS, map(float, getattr(m, name)), strict=True)) for name in SCORES}
    if m.training:
        entry["training"] = {name: getattr(m.training, name) for name in TRAINING}
    if v := m.verdicts:
        counts = {"logs": v.logs, "pairs": v.pairs, "right": v.right, "wrong": v.wrong}
        entry["verdicts"] = counts | {"decided": v.decided, "right_among_claims": v.right_among_claims}
    return entry


def groups(tables: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    """The numbers of the experiment, without the counts of the datasets, by reading."""
    program = [e for label in ("ex2_comp", "ex2_eval") for e in tables.get(label, [])]
    text = [e for label in ("ex2_comp_text", "ex2_eval_text") for e in tables.get(label, [])]
    return {name: entries for name, entries in {"program": program, "text": text}.items() if entries}


def agreement_table(tables: dict[str, list[Entry]], replay: bool = False) -> Table:
    """How each printed table compares, and all together; of a replay, how many numbers are the printed ones."""
    measured = {label: entries for label, entries in tables.items() if label != "ex2_datasets"}  # counts, no samples
    together = {f"all ({name})": entries for name, entries in groups(tables).items()}
    table = pages.agreement_table(measured | together)
    if not replay:
        return table
    found = agreement(entry for entries in together.values() for entry in entries)
    said = f"The replay gives {found['equal']} of {found['entries']} printed numbers, digit for digit."
    return replace(table, notes=[said, *table.notes])


# --- the page ----------------------------------------------------------------------------------------------------


def training_table(results: Results) -> Table:
    """The finding that training is nearly void, in numbers."""
    rows = [
        [
            m.variant.short, m.dataset, f"{t.trainings:,}", f"{t.untouched:.0%}", figures.short_number(t.updates),
            f"{t.before:.3f}", f"{t.after:.3f}", f"{t.majority:.3f}",
        ]
        for m in every(results)
        if (t := m.training)
    ]  # fmt: skip
    return Table(
        "What training did",
        ["policies", "dataset", "trainings", "never changed", "updates", "before", "after", "most frequent class"],
        rows,
        "llrrrrrr",
        notes=["before, after: mean accuracy on test examples; updates: mean number of steps that changed a policy."],
    )


def verdict_table(results: Results) -> Table:
    """podium's own verdicts, in numbers."""
    rows = []
    for m in every(results):
        if v := m.verdicts:
            among = v.right_among_claims
            rows.append(
                [
                    m.variant.short, m.dataset, f"{v.pairs:,}", f"{v.decided:.0%}",
                    "-" if among is None else f"{among:.1%}", f"{m.score[0]:.1%}",
                ]
            )  # fmt: skip
    return Table(
        "podium's own verdicts",
        ["policies", "dataset", "pairs", "decided", "right among decided", "LDE's order right"],
        rows,
        "llrrrr",
    )


def index_page(plan: Plan, results: Results, tables: dict[str, list[Entry]], drawn: list[str], command: str) -> str:
    """The page that shows everything."""
    how = "the paper's own random numbers" if plan.replay else f"fresh random numbers, seed {plan.seed}"
    parts = [
        pages.paragraph(
            "Classifiers as policies (Section 5.2 and Appendix C.2): an example is a state, a label an action, the "
            "reward is 1 for the right one. A log shows one label per test example, tried by a random behaviour "
            "policy; the methods compare ten classifiers on it. "
            f"{plan.rounds} sets of policies with {plan.logs} logs each, {how}. "
            f"Data: {describe_origins(plan.datasets)}. "
            f"Made by: {command}"
        )
    ]
    if groups(tables):
        parts.append(f'<div class="table">{agreement_table(tables, plan.replay).html()}</div>')
    parts.append(pages.links(["results.json", "tables/", "sweeps/", "figures/"]))
    titles = {
        "comp": ("Comparison scores", "Comparison scores: printed, reproduced, z"),
        "eval": ("Evaluation errors", "Evaluation errors: printed, reproduced, z"),
        "training": ("Training is nearly void", ""),
        "verdicts": ("Verdicts", ""),
    }
    for name in drawn:
        heading, caption = titles[name]
        parts += [pages.heading(heading), pages.figure(f"ex2_{name}", CAPTIONS[name])]
        for label, reading in ((f"ex2_{name}", "the program's reading"), (f"ex2_{name}_text", "the text's reading")):
            if label in tables:
                parts.append(pages.paired_table(f"{caption} ({reading})", "dataset", tables[label]))
        if name == "training":
            parts.append(f'<div class="table">{training_table(results).html()}</div>')
        if name == "verdicts":
            parts.append(f'<div class="table">{verdict_table(results).html()}</div>')
    if "ex2_datasets" in tables:
        parts += [
            pages.heading("The datasets"),
            pages.paired_table("As stated in the paper, and as found", "", tables["ex2_datasets"]),
        ]
    parts += [pages.heading("Deviations"), pages.numbered(DEVIATIONS)]
    return pages.page("Example 2: classification", parts)
