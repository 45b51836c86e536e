"""The committed run of Example 3: its tables follow from its single scores, and the page tells what they hold."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from podium.experiments.printed import printed_table
from podium.experiments.rl.plan import ENVIRONMENTS
from podium.experiments.rl.readings import METHODS

ROOT = Path(__file__).parents[2]
RUN = ROOT / "results" / "rl" / "paper"
TODAY = ROOT / "results" / "rl" / "current"
PAGE = ROOT / "docs" / "example3.md"
READINGS = {"text": "ex3_appendix", "program": "ex3_appendix_program"}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_of(label: str, run: Path = RUN) -> dict[tuple[str, str], dict[str, str]]:
    return {(line["row"], line["column"]): line for line in rows_of(run / "tables" / f"{label}.csv")}


def test_it_is_the_whole_experiment() -> None:
    results = json.loads((RUN / "results.json").read_text(encoding="utf-8"))
    assert results["command"] == "podium reproduce rl"
    assert results["settings"] == {
        "environments": list(ENVIRONMENTS), "seeds": 15, "sb3_defaults": "paper", "seed": 0, "timesteps": 1000,
        "logs": 15, "rollouts": 100,
    }  # fmt: skip
    assert {e["tests"] for e in results["environments"].values()} == {225}
    assert {"python", "torch", "stable-baselines3", "pybullet", "pybullet_envs_gymnasium"} <= set(results["versions"])


@pytest.mark.parametrize(("label", "rows"), [("ex3", 4), ("ex3_appendix", 8), ("ex3_appendix_program", 8)])
def test_tables_are_whole(label: str, rows: int) -> None:
    table = table_of(label)
    printed = printed_table(label.removesuffix("_program"))
    assert len(table) == 8 * rows
    assert {key: line["printed"] for key, line in table.items()} == printed
    for line in table.values():
        gap = float(line["reproduced"]) - float(line["printed"])
        assert float(line["z"]) == pytest.approx(gap / (math.sqrt(2) * float(line["std_error"])))


@pytest.mark.parametrize(("reading", "label"), READINGS.items())
def test_tables_follow_from_the_single_scores(reading: str, label: str) -> None:
    table = table_of(label)
    lines = [line for line in rows_of(RUN / "sweeps" / "ex3_tests.csv") if line["reading"] == reading]
    for environment in ENVIRONMENTS:
        own = [line for line in lines if line["environment"] == environment]
        assert [(int(x["training"]), int(x["log"])) for x in own] == [(i, j) for i in range(15) for j in range(15)]
        for method in METHODS:
            scores = np.array([float(x[method]) for x in own]).reshape(15, 15)
            average, std = table[f"{environment}-v0", f"{method} avg"], table[f"{environment}-v0", f"{method} std"]
            assert float(average["reproduced"]) == pytest.approx(scores.mean())
            assert float(std["reproduced"]) == pytest.approx(scores.std())
            error = scores.mean(axis=1).std(ddof=1) / math.sqrt(15)
            assert float(average["std_error"]) == pytest.approx(math.hypot(error, 1e-4 / math.sqrt(24)))


def shown(label: str, environment: str, method: str) -> str:
    """An entry of the page's table: average (std) ± standard error, z of the average (and of the std)."""
    table = table_of(label)
    average, std = table[f"{environment}-v0", f"{method} avg"], table[f"{environment}-v0", f"{method} std"]
    return (
        f"{float(average['reproduced']):.3f} ({float(std['reproduced']):.3f}) ± {float(average['std_error']):.3f}, "
        f"z {float(average['z']):+.1f} ({float(std['z']):+.1f})"
    )


def test_the_page_shows_the_whole_table() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for environment in ENVIRONMENTS:
        start = next(i for i, line in enumerate(lines) if line.startswith(f"| {environment} | printed |"))
        printed = printed_table("ex3_appendix")
        row = f"{environment}-v0"
        assert (
            lines[start]
            == f"| {environment} | printed | "
            + " | ".join(f"{printed[row, f'{m} avg']} ({printed[row, f'{m} std']})" for m in METHODS)
            + " |"
        )
        for line, reading, label in zip(
            lines[start + 1 : start + 3], ("text", "program"), ("ex3_appendix", "ex3_appendix_program"), strict=True
        ):
            assert line == f"| | {reading} | " + " | ".join(shown(label, environment, m) for m in METHODS) + " |"


def test_every_large_z_is_explained() -> None:
    """What is further than 3 from the printed number has its place in the section that says why."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split("## Where z is large")[1].split("\n## ")[0]
    named = set(re.findall(r"\*\*(\w+), (\w+) (avg|std), (text|program)\*\*", section))
    far = set()
    for reading, label in READINGS.items():
        for (row, column), line in table_of(label).items():
            if abs(float(line["z"])) > 3:
                far.add((row.removesuffix("-v0"), *column.split(), reading))
    assert named == far


def test_the_page_shows_what_todays_defaults_gave() -> None:
    settings = json.loads((TODAY / "results.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["sb3_defaults"], settings["seeds"], settings["seed"]) == ("current", 5, 0)
    section = PAGE.read_text(encoding="utf-8").split("## With today's defaults")[1].split("\n## ")[0]
    far = []
    for environment in settings["environments"]:
        for reading, label in READINGS.items():
            now, then, cells = table_of(label, TODAY), table_of(label), []
            for method in METHODS:
                key = f"{environment}-v0", f"{method} avg"
                value, error = float(now[key]["reproduced"]), float(now[key]["std_error"])
                before = float(then[key]["reproduced"])
                cells.append(f"{value:.3f} ± {error:.3f} ({before:.3f})")
                if abs(value - before) > 2 * math.hypot(error, float(then[key]["std_error"])):
                    far.append(f"{environment}, {method}, {reading}")
            assert f"| {reading} | " + " | ".join(cells) + " |" in section
    assert len(settings["environments"]) == section.count("| program |") == 4
    assert far == ["Walker2D, IPS, text"]
    assert far[0] in section
