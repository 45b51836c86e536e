"""Writes what Example 3 found: tables beside the printed ones, readings, true values, verdicts, figures, index.html."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.files import write_text
from podium.data.spreadsheets import csv_text
from podium.experiments import pages
from podium.experiments.drawing import save_figure, style
from podium.experiments.printed import Entry, agreement, table_csv
from podium.experiments.rl import figures
from podium.experiments.rl.deviations import DEVIATIONS
from podium.experiments.rl.plan import ALGORITHMS, Plan
from podium.experiments.rl.readings import METHODS
from podium.experiments.rl.results import EnvironmentResults, printed_beside
from podium.outputs.display import Table
from podium.version import VERSION

LIBRARIES = ("numpy", "torch", "stable-baselines3", "gymnasium", "pybullet", "pybullet_envs_gymnasium")
MAIN_TEXT = ("InvertedPendulum", "Reacher", "Walker2D", "Ant")
CAPTIONS = {
    "ex3_comp": "Comparison scores of the four environments of the main text by the text's reading: how many of the "
    "tests have each score, the average with two standard errors (clustered by training), and the "
    "paper's average.",
    "ex3_comp_appendix": "The same for every environment that was run.",
    "ex3_readings": "Average scores under each reading of the text, with two standard errors, beside the printed "
    "averages. 'program' is what the authors' program does: own way, averaged in the exponent, p + "
    "1e-6.",
    "ex3_truth": "True values of all trained policies with two standard errors; red bars are averages over "
    "trainings. Where two policies are worth the same, no score can be near 1.",
    "ex3_verdicts": "podium's own verdicts at level 0.95 on the same logs, what it would say if it took the proxies "
    "for probabilities, and what a plain paired t test on LDE's terms says: on the five episodes of one log, and on "
    "all episodes of a training together.",
}


def write_outputs(plan: Plan, results: Sequence[EnvironmentResults], out: Path, command: str) -> dict[str, list[Entry]]:
    """Write every file of the reproduction and return the tables."""
    for name in ("tables", "sweeps", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    tables = printed_beside(list(results))
    for label, entries in tables.items():
        write_text(out / "tables" / f"{label}.csv", table_csv(entries))
    write_sweeps(results, out / "sweeps")
    drawn = write_figures(results, out / "figures")
    summary = results_dict(plan, results, tables, command)
    write_text(out / "results.json", json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    write_text(out / "index.html", index_page(plan, results, tables, drawn, command))
    return tables


# --- numbers behind the figures ----------------------------------------------------------------------------------


def write_sweeps(results: Sequence[EnvironmentResults], folder: Path) -> None:
    """Tidy: averages by reading, every single score by the text's reading, true values, pairs and verdicts."""
    readings = [
        [r.name, label, method, *(repr(float(getattr(s, name)[k])) for name in SCORES)]
        for r in results
        for label, s in r.scores.items()
        for k, method in enumerate(METHODS)
    ]
    write_text(folder / "ex3_readings.csv", csv_text(["environment", "reading", "method", *SCORES], readings))
    tests = [
        [r.name, label, training, log, *(f"{score:.1f}" for score in r.scores[label].tests[training, log])]
        for r in results
        for label in ("text", "program")
        for training, log in np.ndindex(r.scores[label].tests.shape[:2])
    ]
    write_text(folder / "ex3_tests.csv", csv_text(["environment", "reading", "training", "log", *METHODS], tests))
    values = [
        [r.name, training, policy, *(repr(float(x[training, k])) for x in (t.values, t.errors, t.lengths))]
        for r in results
        for t in [r.truth]
        for training in range(len(t.values))
        for k, policy in enumerate(ALGORITHMS)
    ]
    header = ["environment", "training", "policy", "true_value", "std_error", "average_length"]
    write_text(folder / "ex3_values.csv", csv_text(header, values))
    pairs = [
        [r.name, a, b, repr(float(r.truth.unclear[:, p].mean())), repr(float(r.truth.twins[:, p].mean()))]
        for r in results
        for p, (a, b) in enumerate(combinations(ALGORITHMS, 2))
    ]
    header = ["environment", "a", "b", "share_within_2_std_errors", "share_same_actions"]
    write_text(folder / "ex3_pairs.csv", csv_text(header, pairs))
    verdicts = [
        [r.name, v.procedure, v.episodes, v.pairs, v.right, v.wrong, v.unclear] for r in results for v in r.verdicts
    ]
    header = ["environment", "procedure", "episodes", "pairs", "decided_right", "decided_wrong", "decided_unclear"]
    write_text(folder / "ex3_verdicts.csv", csv_text(header, verdicts))


SCORES = ("average", "average_error", "std", "std_error", "clear")


def write_figures(results: Sequence[EnvironmentResults], folder: Path) -> list[str]:
    """Draw every figure; the names of those drawn."""
    main = [r for r in results if r.name in MAIN_TEXT]
    drawn: dict[str, Callable[[], Any]] = {
        "ex3_comp_appendix": lambda: figures.score_figure(results),
        "ex3_readings": lambda: figures.reading_figure(results),
        "ex3_truth": lambda: figures.truth_figure(results),
        "ex3_verdicts": lambda: figures.verdict_figure(results),
    }
    if main:
        drawn = {"ex3_comp": lambda: figures.score_figure(main), **drawn}
    with style():
        for name, draw in drawn.items():
            save_figure(draw(), folder, name)
    return list(drawn)


# --- summaries ---------------------------------------------------------------------------------------------------


def results_dict(
    plan: Plan, results: Sequence[EnvironmentResults], tables: dict[str, list[Entry]], command: str
) -> dict[str, Any]:
    """The content of results.json; it depends on the plan and the libraries alone, not on how or when it was run."""
    return {
        "podium": VERSION,
        "experiment": "rl",
        "command": command,
        "settings": {
            "environments": list(plan.environments),
            "seeds": plan.seeds,
            "sb3_defaults": plan.defaults,
            "seed": plan.seed,
            "timesteps": plan.timesteps,
            "logs": plan.logs,
            "rollouts": plan.rollouts,
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "agreement": {label: agreement(entries) for label, entries in tables.items()},
        "environments": {r.name: environment_dict(r) for r in results},
        "deviations": [f"{title}. {text}" for title, text in DEVIATIONS],
    }


def environment_dict(result: EnvironmentResults) -> dict[str, Any]:
    return {
        "tests": int(np.prod(next(iter(result.scores.values())).tests.shape[:2])),
        "readings": {
            label: {
                method: {name: float(getattr(scores, name)[k]) for name in SCORES} for k, method in enumerate(METHODS)
            }
            for label, scores in result.scores.items()
        },
        "share_within_2_std_errors": float(result.truth.unclear.mean()),
        "share_same_actions": float(result.truth.twins.mean()),
        "verdicts": [
            {"procedure": v.procedure, "episodes": v.episodes, "pairs": v.pairs, "right": v.right, "wrong": v.wrong,
             "unclear": v.unclear}
            for v in result.verdicts
        ],
    }  # fmt: skip


def agreement_table(tables: dict[str, list[Entry]]) -> Table:
    """How each printed table compares."""
    rows = []
    for label, entries in tables.items():
        a = agreement(entries)
        beyond = sum(abs(e.z) > 3 for e in entries)
        rows.append([label, str(a["entries"]), f"{a['rms_z']:.2f}", f"{a['max_abs_z']:.2f}", str(beyond)])
    return Table(
        "Printed and reproduced",
        ["table", "entries", "rms z", "largest |z|", "|z| > 3"],
        rows,
        "lrrrr",
        notes=[
            "z = (reproduced - printed) / (sqrt(2) standard error), clustered by training. Tables _program follow the "
            "authors' program instead of the text."
        ],
    )


def truth_table(results: Sequence[EnvironmentResults]) -> Table:
    """How often the true order of two policies is clear at all, and what the scores are where it is."""
    rows = []
    for r in results:
        scores = r.scores["text"]
        clear = [f"{x:.3f}" for x in scores.clear]
        rows.append([r.name, f"{r.truth.unclear.mean():.0%}", f"{r.truth.twins.mean():.0%}", *clear])
    return Table(
        "Pairs of policies",
        ["environment", "within 2 SE", "same actions", *(f"{m}, clear pairs" for m in METHODS)],
        rows,
        "lrrrrrr",
        notes=[
            "within 2 SE: true values that differ by less than two standard errors. same actions: policies within 1% "
            "of the action range of each other at 99% of the logged states. Clear pairs: the average score without the "
            "former."
        ],
    )


def verdict_table(results: Sequence[EnvironmentResults]) -> Table:
    """How often each procedure decides, and how often rightly, in all environments together."""
    rows = []
    for key in dict.fromkeys((v.episodes, v.procedure) for r in results for v in r.verdicts):
        found = [v for r in results for v in r.verdicts if (v.episodes, v.procedure) == key]
        pairs, right, wrong, unclear = (sum(getattr(v, name) for v in found) for name in COUNTS)
        share = f"{right / (right + wrong):.1%}" if right + wrong else "-"
        decided = f"{(right + wrong + unclear) / pairs:.1%}"
        rows.append([key[1], *(f"{n:,}" for n in (key[0], pairs)), decided, *(f"{n:,}" for n in (right, wrong)), share])
    return Table(
        "Verdicts on the same logs, all environments",
        ["procedure", "episodes", "pairs", "decided", "right", "wrong", "right among both"],
        rows,
        "lrrrrrr",
        notes=["Claims on pairs whose true order is not clear count as decided, and as neither right nor wrong."],
    )


COUNTS = ("pairs", "right", "wrong", "unclear")


def index_page(
    plan: Plan,
    results: Sequence[EnvironmentResults],
    tables: dict[str, list[Entry]],
    drawn: Sequence[str],
    command: str,
) -> str:
    """The page that shows everything."""
    parts = [
        pages.paragraph(
            f"Section 5.3 and Appendix C.3: five policies (A2C, DDPG, PPO, SAC, TD3) trained for {plan.timesteps:,} "
            f"steps with the {plan.defaults} defaults of Stable-Baselines3, {plan.seeds} times in each environment; "
            f"{plan.logs} logs of each training, one episode of each policy in a log; seed {plan.seed}. Made by: "
            f"{command}"
        ),
        f'<div class="table">{agreement_table(tables).html()}</div>',
        pages.links(["results.json", "tables/", "sweeps/", "figures/"]),
    ]
    titles = {
        "ex3_comp": (),
        "ex3_comp_appendix": (
            ("ex3_appendix", "By the text: printed, reproduced, z"),
            ("ex3_appendix_program", "By the authors' program: printed, reproduced, z"),
        ),
        "ex3_readings": (),
        "ex3_truth": (),
        "ex3_verdicts": (),
    }
    headings = {
        "ex3_comp": "Comparison scores", "ex3_readings": "What each reading changes", "ex3_truth": "True values",
        "ex3_verdicts": "Verdicts",
    }  # fmt: skip
    for name in drawn:
        if name in headings or name == drawn[0]:
            parts.append(pages.heading(headings.get(name, "Comparison scores")))
        parts.append(pages.figure(name, CAPTIONS[name]))
        parts += [
            pages.paired_table(title, "environment", tables[label]) for label, title in titles[name] if label in tables
        ]
        if name == "ex3_truth":
            parts.append(f'<div class="table">{truth_table(results).html()}</div>')
        if name == "ex3_verdicts":
            parts.append(f'<div class="table">{verdict_table(results).html()}</div>')
    parts += [pages.heading("Deviations"), pages.numbered(DEVIATIONS)]
    return pages.page("Example 3: reinforcement learning", parts)
