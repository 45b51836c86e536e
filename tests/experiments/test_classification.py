"""Example 2 as a user runs it: what is written, that it is the same however it was run, and the printed numbers."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.experiments.classification import command_of, reproduce, variants_of
from podium.experiments.classification.cells import estimate, run_cell, score_orders, score_values
from podium.experiments.classification.datasets import load_dataset
from podium.experiments.classification.deviations import DEVIATIONS
from podium.experiments.classification.measures import join, measure
from podium.experiments.classification.plan import PRINTED, Plan, Variant
from podium.experiments.classification.rounds import Program, Streams, text_round
from podium.experiments.classification.spread import numbers_of, run_seed, spread_table
from podium.experiments.classification.verdicts import judge_log
from podium.experiments.classification.zoo import load_zoo, ten_classifiers
from podium.experiments.printed import Entry, beside_printed, printed_table
from podium.experiments.runner import load
from podium.worlds.labelled import LabelledBandit

ROOT = Path(__file__).parents[2]
QUICK = ["reproduce", "classification", "--quick", "--workers", "1"]
SMALL = [*QUICK, "--datasets", "iris,wine", "--policies", "dlm,dlm-trained,sklearn"]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that a run writes, but for the cells."""
    files = [p for p in folder.rglob("*") if p.is_file() and "cells" not in p.parts]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run on two datasets that scikit-learn ships."""
    folder = tmp_path_factory.mktemp("classification")
    assert main([*SMALL, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run on two datasets of the paper."""
    folder = tmp_path_factory.mktemp("classification")
    assert main([*QUICK, "--datasets", "ecoli,glass", "--out", str(folder)]) == 0
    return folder


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- what is written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["ex2_comp", "ex2_eval", "ex2_comp_text", "ex2_eval_text"])
def test_tables_follow_the_contract(quick: Path, label: str) -> None:
    lines = lines_of(quick / "tables" / f"{label}.csv")
    assert list(lines[0]) == ["row", "column", "printed", "reproduced", "std_error", "z"]
    assert {line["row"] for line in lines} == {"ecoli", "glass"}
    assert [line["column"] for line in lines[:3]] == ["LDE avg", "LDE std", "DRE avg"]
    assert len(lines) == 16
    for line in lines:
        gap = float(line["reproduced"]) - float(line["printed"])
        assert float(line["z"]) == pytest.approx(gap / (math.sqrt(2) * float(line["std_error"])))


def test_the_datasets_as_stated_and_as_found(quick: Path) -> None:
    lines = lines_of(quick / "tables" / "ex2_datasets.csv")
    found = {(line["row"], line["column"]): (line["printed"], float(line["reproduced"])) for line in lines}
    assert found == {
        ("Size", "ecoli"): ("336", 336), ("Size", "glass"): ("214", 214),
        ("Input features", "ecoli"): ("8", 7), ("Input features", "glass"): ("10", 9),
        ("Classes", "ecoli"): ("8", 8), ("Classes", "glass"): ("7", 6),
    }  # fmt: skip


def test_every_figure_is_drawn_and_shown(small: Path) -> None:
    page = (small / "index.html").read_text(encoding="utf-8")
    for name in ("ex2_comp", "ex2_eval", "ex2_training", "ex2_verdicts"):
        assert (small / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (small / "figures" / f"{name}.svg").read_bytes()
        assert f'src="figures/{name}.svg"' in page
    assert not re.search(r"""(?:src|href)=["'](?:[a-z]+:)?//""", page)
    for title, _ in DEVIATIONS:
        assert title in page
    for heading in ("What training did", "podium&#x27;s own verdicts"):
        assert heading in page


def test_results_are_plain_json(small: Path) -> None:
    text = (small / "results.json").read_text(encoding="utf-8")
    results = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert results["settings"]["datasets"] == ["iris", "wine"]
    variants = [("dlm", "program"), ("dlm", "text"), ("dlm-trained", "text"), ("sklearn", "text")]
    assert [(v["policies"], v["reading"]) for v in results["settings"]["variants"]] == variants
    assert len(results["results"]) == 8
    assert results["tables"] == {}, "the paper has no table of these"
    by = {(r["policies"], r["reading"], r["dataset"]): r for r in results["results"]}
    void, real = by["dlm", "text", "wine"]["training"], by["dlm-trained", "text", "wine"]["training"]
    assert (void["untouched"], real["untouched"]) == (1.0, 0.0)
    assert void["after"] == void["before"] < real["after"]
    assert real["after"] > 0.9
    assert "training" not in by["sklearn", "text", "iris"]
    assert by["sklearn", "text", "iris"]["score"]["LDE"] > 0.6
    for result in results["results"]:
        verdicts = result["verdicts"]
        assert verdicts["pairs"] == 45 * verdicts["logs"] == 90
        assert 0 <= verdicts["right"] + verdicts["wrong"] <= verdicts["pairs"]


def test_sweeps_hold_the_numbers_behind_the_figures(small: Path) -> None:
    scores = lines_of(small / "sweeps" / "ex2_scores.csv")
    assert len(scores) == 8 * 4
    assert {line["method"] for line in scores} == {"LDE", "DRE", "IPS", "DiM"}
    assert len(lines_of(small / "sweeps" / "ex2_training.csv")) == 6
    verdicts = lines_of(small / "sweeps" / "ex2_verdicts.csv")
    assert all(sum(int(v[c]) for c in ("decided_right", "decided_wrong", "cannot_tell")) == 90 for v in verdicts)


@pytest.mark.slow  # draws every figure again
def test_workers_do_not_change_a_byte(small: Path, tmp_path: Path) -> None:
    assert main([*SMALL, "--workers", "2", "--out", str(tmp_path)]) == 0
    assert contents(tmp_path) == contents(small)


@pytest.mark.slow  # draws every figure again
@pytest.mark.platforms("linux", "darwin")
def test_a_killed_run_resumes_to_the_same_bytes(small: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "podium", *SMALL, "--out", str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("cells/*/*.npz"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    assert 3 <= len(list(tmp_path.glob("cells/*/*.npz"))) < 14, "it was to be killed in its middle"
    assert not (tmp_path / "index.html").exists()
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    assert contents(tmp_path) == contents(small)


def test_a_dataset_has_the_same_numbers_alone(small: Path, tmp_path: Path) -> None:
    arguments = [*QUICK, "--datasets", "wine", "--policies", "sklearn", "--reading", "text", "--out", str(tmp_path)]
    assert main(arguments) == 0
    alone = lines_of(tmp_path / "sweeps" / "ex2_scores.csv")
    assert alone == [x for x in lines_of(small / "sweeps" / "ex2_scores.csv") if x in alone]
    assert len(alone) == 4


def test_classifiers_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--datasets", "iris", "--policies", "user_classifiers:pair", "--verdict-logs", "0"]
    assert main([*QUICK, *own, "--out", str(tmp_path)]) == 0
    assert "Written" in capsys.readouterr().out
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert "verdicts" not in results["results"][0]
    assert not (tmp_path / "figures" / "ex2_verdicts.png").exists()
    assert not (tmp_path / "figures" / "ex2_training.png").exists()
    assert [path.name for path in (tmp_path / "sweeps").iterdir()] == ["ex2_scores.csv"], "no table is empty"
    assert list((tmp_path / "tables").iterdir()) == []
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    command = (
        "podium reproduce classification --quick --datasets iris --policies user_classifiers:pair --verdict-logs 0"
    )
    assert command in page


def test_commands_name_what_was_asked() -> None:
    iris = load_dataset("iris")
    plan = Plan((iris,), variants_of(["dlm"], ["text"]), seed=3)
    assert command_of(plan, False) == "podium reproduce classification --seed 3 --datasets iris --reading text"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"replay": True, "quick": True},
            "replay and quick exclude each other\n\nHint: the printed numbers come out of all 1,000 logs per dataset.",
        ),
        (
            {"replay": True, "policies": ["sklearn"]},
            "replay is of the paper's policies alone\n\nHint: leave --policies out.",
        ),
        ({"seed": -1}, "seed must not be negative; it is -1\n\nHint: use 0, 1, 2, ..."),
        ({"verdict_logs": -1}, "verdict logs must not be negative; they are -1\n\nHint: use 0 for none."),
        ({"datasets": []}, "no datasets are given\n\nHint: leave datasets out for the paper's five."),
        (
            {"policies": ["forest"]},
            "no policies 'forest'\n\nHint: use dlm, dlm-trained, sklearn, or package.module:function.",
        ),
        ({"policies": []}, "no policies are given\n\nHint: use dlm, dlm-trained or sklearn."),
        ({"readings": ["mine"]}, "no reading 'mine'\n\nHint: the readings are program and text."),
        (
            {"policies": ["sklearn"], "readings": ["program"]},
            "the policies 'sklearn' have the text's reading alone\n\n"
            "Hint: the program's reading is of the paper's own policies; leave --reading out.",
        ),
        (
            {"policies": ["user_classifiers:nothing"]},
            "user_classifiers:nothing gives no classifiers\n\n"
            'Hint: a function of a seed that returns {"name": classifier, ...}, two or more, is expected.',
        ),
    ],
)
def test_messages(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(PodiumError) as caught:
        reproduce(tmp_path, **({"datasets": ["iris"]} | options))  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == [], "nothing is written"


@pytest.mark.parametrize("package", ["numba", "matplotlib"])
def test_a_missing_package_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PodiumError) as caught:
        reproduce(tmp_path, datasets=["iris"])
    assert str(caught.value) == (
        f"{package} is not installed; Example 2 needs it\n\nHint: run: pip install 'podium[experiments]'"
    )
    assert list(tmp_path.iterdir()) == []


def test_bad_usage_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--datasets", "iris,,wine", "--out", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == "podium: --datasets 'iris,,wine' has an empty name\n\nHint: write --datasets a,b,c.\n"
    )


def test_every_deviation_is_in_the_docs() -> None:
    words = " ".join((ROOT / "docs" / "deviations.md").read_text(encoding="utf-8").split())
    assert [title for title, text in DEVIATIONS if f"**{title}.** {text}" not in words] == []


# --- the parts ---------------------------------------------------------------------------------------------------


def small_bandit(seed: int = 0) -> LabelledBandit:
    rng = np.random.default_rng(seed)
    return LabelledBandit(
        np.arange(40.0)[:, None], rng.integers(3, size=40), np.arange(3), tuple("abcd"), rng.integers(3, size=(4, 40))
    )


def test_the_four_methods_are_those_of_the_library() -> None:
    bandit, rng = small_bandit(), np.random.default_rng(1)
    behavior = bandit.random_behavior(rng)
    drawn = bandit.draw_actions(behavior, rng)
    ours = estimate(bandit, behavior, drawn)
    theirs = podium.evaluate(bandit.log_of(drawn, behavior), bandit.policies).values
    for k, method in enumerate(("LDE", "DRE", "IPS", "DiM")):
        assert ours[k] == pytest.approx([theirs[name][method] for name in "abcd"])


def test_scores_by_hand() -> None:
    values = np.array([0.1, 0.2, 0.3])
    estimates = np.array([[[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 2.0, 1.0]]])
    assert score_orders(values, estimates)[0] == pytest.approx([1, 0, 1, 1 / 3]), "ties stand in their order"
    assert score_values(values, estimates)[0] == pytest.approx([1, 0, 1 / 2, 1 / 6]), "ties are half right"
    assert score_values(np.array([0.1, 0.1, 0.3]), estimates)[0] == pytest.approx([1, 1 / 3, 2 / 3, 1 / 3])


def test_scores_are_those_of_the_library_where_nothing_ties() -> None:
    rng = np.random.default_rng(0)
    values, estimates = rng.random(10), rng.random((5, 4, 10))
    expected = [[float(podium.score(values, row)) for row in log] for log in estimates]
    assert score_values(values, estimates) == pytest.approx(np.array(expected))
    assert score_orders(values, estimates) == pytest.approx(np.array(expected))


def test_verdicts_are_those_of_compare() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    predictions = np.array([truth, 1 - truth])
    bandit = LabelledBandit(rng.random((400, 1)), truth, np.arange(2), ("right", "wrong"), predictions)
    behavior = np.full((400, 2), 0.5)
    assert judge_log(bandit, behavior, bandit.draw_actions(behavior, rng)) == (1, 1, 0)


def test_the_programs_reading() -> None:
    """One split of halves by class, the first 80% of a list sorted by class, ten distinct accuracies."""
    data = load_dataset("ecoli")
    program = Program(data, Streams(1, 1), epochs=2, in_step=False)
    counts, train = np.bincount(data.codes), np.bincount(data.codes[program.train], minlength=8)
    assert train.tolist() == (counts // 2).tolist()
    assert (np.diff(data.codes[program.train]) >= 0).all()
    assert sorted([*program.train, *program.test]) == list(range(336))
    ten = program.next_round()
    assert len(set(ten.bandit.accuracies.tolist())) == 10
    behaviors = [behavior for behavior, _ in program.draw(ten.bandit, 3)]
    assert all(behavior is program.behavior for behavior in behaviors)


@pytest.mark.parametrize("kind", ["dlm", "dlm-trained", "sklearn"])
def test_the_texts_reading(kind: str) -> None:
    data = load_dataset("glass")
    first, second = (text_round(data, kind, 2, np.random.default_rng(seed)) for seed in (0, 1))
    assert len(first.bandit.truth) == 107
    assert not (first.bandit.states == second.bandit.states).all(), "a split of its own"
    if kind != "sklearn":
        assert len({p.predictions.tobytes() for p in first.policies}) == 10


def test_the_zoo_has_ten_classifiers() -> None:
    assert len(ten_classifiers(0)) == 10
    assert load_zoo("sklearn", 0).keys() == ten_classifiers(1).keys()


# --- the printed numbers -----------------------------------------------------------------------------------------


def replayed(names: list[str], reading: str = "program") -> list[Entry]:
    """The printed numbers of some datasets beside their replay."""
    plan = Plan(tuple(load_dataset(n) for n in names), (Variant("dlm", reading),), replay=True, verdict_logs=0)
    entries = []
    for (variant, name), cells in plan.cells.items():
        arrays = join([run_cell(cell, np.random.SeedSequence(0), None) for cell in cells])
        measures = measure(variant, name, arrays)
        for table in ("ex2_comp", "ex2_eval"):
            entries += beside_printed(table, {key: (x, 0.0) for key, x in measures.entries(table).items()})
    return entries


def test_replay_gives_the_printed_numbers_of_ecoli_and_glass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = ["reproduce", "classification", "--replay", "--datasets", "ecoli,glass", "--verdict-logs", "0"]
    assert main([*replay, "--workers", "1", "--out", str(tmp_path)]) == 0
    assert "  The replay gives 32 of 32 printed numbers, digit for digit.\n" in capsys.readouterr().out
    page = " ".join((tmp_path / "index.html").read_text(encoding="utf-8").split())
    assert "The replay gives 32 of 32 printed numbers, digit for digit." in page
    lines = [line for table in ("ex2_comp", "ex2_eval") for line in lines_of(tmp_path / "tables" / f"{table}.csv")]
    assert len(lines) == 32
    assert [x for x in lines if abs(float(x["reproduced"]) - float(x["printed"])) > 0.000501] == []


@pytest.mark.slow
def test_replay_gives_every_printed_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "classification", "--replay", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "  The replay gives 80 of 80 printed numbers, digit for digit.\n" in said
    assert "\nData: abalone, algerian, ecoli, glass, winequality (shipped with podium)\n" in said
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["agreement"]["program"]["entries"] == 80
    assert results["agreement"]["program"]["equal"] == 80


@pytest.mark.slow
def test_the_repaired_row_of_algerian_changes_no_printed_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    load_whole = load_dataset

    def repaired(name: str) -> object:
        data = load_whole(name)
        [row] = np.flatnonzero(data.features[:, 9] == 14.69)
        data.features[row, 9:] = [14.6, 9, 12.5, 10.4]
        return data

    monkeypatch.setitem(globals(), "load_dataset", repaired)
    entries = replayed(["algerian"])
    assert len(entries) == 16
    assert [(e.row, e.column) for e in entries if not e.is_equal] == []


def test_the_spread_covers_every_printed_number() -> None:
    spread = spread_table()
    for reading in ("program", "text"):
        for table in ("ex2_comp", "ex2_eval"):
            assert {key for r, t, key in spread if (r, t) == (reading, table)} == set(printed_table(table))
    assert all(sd > 0 for _, sd in spread.values())
    noise = {"abalone": 0.009, "algerian": 0.001, "ecoli": 0.011, "glass": 0.021, "winequality": 0.011}
    for name, sd in noise.items():
        assert spread["program", "ex2_comp", (name, "LDE avg")][1] < 2.5 * sd


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 101, 102])
def test_fresh_numbers_are_within_4_seed_deviations_of_the_printed_ones(tmp_path: Path, seed: int) -> None:
    """LDE's scores are. The printed number is a draw, too, so of all averages one in 200 is expected outside."""
    plan = run_seed(seed, ["program"], None, tmp_path, workers=2)
    spread = spread_table()
    gaps = {
        (table, *key): (value - float(printed_table(table)[key])) / spread[reading, table, key][1]
        for (reading, table, key), value in numbers_of(plan, tmp_path).items()
        if key[1].endswith("avg")
    }
    assert len(gaps) == 40
    assert [key for key, gap in gaps.items() if key[0] == "ex2_comp" and key[2] == "LDE avg" and abs(gap) > 4] == []
    assert sum(abs(gap) > 4 for gap in gaps.values()) <= 2
    assert max(map(abs, gaps.values())) < 4 * math.sqrt(2)
    assert len(list((tmp_path / plan.name).glob("*.npz"))) == len(PRINTED)
    assert load(tmp_path / plan.name, "dlm-program-glass-00")["scores"].shape == (10, 100, 4)
