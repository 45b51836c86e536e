"""Example 1 as a user runs it: what is written, that it is the same however it was run, and the printed numbers."""

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

from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.experiments.printed import Entry, agreement, beside_printed
from podium.experiments.runner import end_workers, run_cells
from podium.experiments.synthetic import reproduce
from podium.experiments.synthetic.cells import replay_cell, run_cell
from podium.experiments.synthetic.deviations import DEVIATIONS
from podium.experiments.synthetic.measures import measure
from podium.experiments.synthetic.plan import QUICK_TESTS, QUICK_VERDICT_TESTS, Plan, load_bandit, sweep_points
from podium.experiments.synthetic.results import collect, evaluation_entries
from podium.experiments.synthetic.verdicts import own_verdict, proper

ROOT = Path(__file__).parents[2]
LABELS = [f"ex1.1_{kind}" for kind in ("eval_a", "eval_m", "correlation")]
FIGURES = [f"ex1.1_{kind}" for kind in ("comp", "state", "eval", "3d", "grid", "bounds", "verdicts")]
QUICK = ["reproduce", "synthetic", "--quick", "--reward", "1.1"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run on the first of the two reward functions."""
    folder = tmp_path_factory.mktemp("synthetic")
    assert main([*QUICK, "--workers", "2", "--out", str(folder)]) == 0
    end_workers()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that a run writes, but for the cells."""
    files = [p for p in folder.rglob("*") if p.is_file() and "cells" not in p.parts]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_the_plan_is_the_papers() -> None:
    plan = Plan()
    sizes = {sweep: len(cells) for sweep, cells in plan.cells.items()}
    assert sizes == {"alpha": 49, "m": 50, "grid": 100, "histogram": 15}
    assert sum(sizes.values()) * plan.tests == 214_000
    alphas, sizes_of_m = [a for a, _ in sweep_points("alpha")], [m for _, m in sweep_points("m")]
    assert alphas[8] == pytest.approx(0.05)
    assert (sizes_of_m[:4], sizes_of_m[-2:]) == ([1, 2, 3, 4], [453, 500])
    assert {10, 27, 71, 189, 500} <= set(sizes_of_m)
    assert sweep_points("grid")[:2] == [(0.01, 1), (pytest.approx(0.02), 1)]
    assert len({c.place for chain in plan.chains for c in chain}) == 214, "every cell has a seed of its own"


@pytest.mark.parametrize("label", LABELS)
def test_tables_follow_the_contract(quick: Path, label: str) -> None:
    with (quick / "tables" / f"{label}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["row", "column", "printed", "reproduced", "std_error", "z"]
    assert len(lines) == (80 if label.endswith("correlation") else 40)
    for line in lines:
        gap = float(line["reproduced"]) - float(line["printed"])
        assert float(line["z"]) == pytest.approx(gap / (math.sqrt(2) * float(line["std_error"])))
        assert abs(float(line["z"])) < 8, "a small run, but of the same thing"


def test_every_figure_is_drawn_and_shown(quick: Path) -> None:
    page = (quick / "index.html").read_text(encoding="utf-8")
    for name in [*FIGURES, "pem_spectrum"]:
        assert (quick / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (quick / "figures" / f"{name}.svg").read_bytes()
        assert f'src="figures/{name}.svg"' in page
    assert not re.search(r"""(?:src|href)=["'](?:[a-z]+:)?//""", page)
    for label in LABELS:
        with (quick / "tables" / f"{label}.csv").open(encoding="utf-8", newline="") as file:
            assert all(line["printed"] in page for line in csv.DictReader(file))
    for title, _ in DEVIATIONS:
        assert title in page


def test_results_are_plain_json(quick: Path) -> None:
    text = (quick / "results.json").read_text(encoding="utf-8")
    results = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert results["settings"] == {
        "replay": False, "seed": 0, "tests": 40, "verdict_tests": 1, "rewards": ["1.1"],
    }  # fmt: skip
    assert {name: group["entries"] for name, group in results["agreement"].items()} == {
        "all": 160, "evaluation": 80, "pearson": 40, "spearman": 40,
    }  # fmt: skip
    rates = results["examples"]["1.1"]["comparison_rate"]["m"]
    assert rates[-1]["m"] == 500
    assert rates[-1]["LDE"] > 0.9


def test_workers_do_not_change_a_byte(quick: Path, tmp_path: Path) -> None:
    """The cells, that is: everything else is made of them."""
    plan = Plan(("1.1",), tests=QUICK_TESTS, verdict_tests=QUICK_VERDICT_TESTS)
    chains = [*plan.chains[:20], *plan.chains[-20:]]
    run_cells(run_cell, chains, tmp_path, seed=plan.seed, workers=1)
    cells = {p.name: p.read_bytes() for p in tmp_path.glob("*.npz")}
    assert len(cells) == 40
    assert {name: (quick / "cells" / plan.name / name).read_bytes() for name in cells} == cells


@pytest.mark.slow  # runs everything twice and draws every figure of both reward functions
@pytest.mark.platforms("linux", "darwin")
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    command = [sys.executable, "-m", "podium", "reproduce", "synthetic", "--quick", "--workers", "2", "--out"]
    subprocess.run([*command, str(whole)], capture_output=True, check=True)
    with subprocess.Popen([*command, str(part)], start_new_session=True, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(list(part.glob("cells/*/*.npz"))) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert 20 <= len(list(part.glob("cells/*/*.npz"))) < 214, "it was to be killed in its middle"
    assert not (part / "index.html").exists()
    subprocess.run([*command, str(part), "--workers", "1"], capture_output=True, check=True)
    assert contents(part) == contents(whole)
    labels = {f"ex1.{n}_{kind}.csv" for n in (1, 2) for kind in ("eval_a", "eval_m", "correlation")}
    assert {p.name for p in (part / "tables").iterdir()} == labels
    results = json.loads((part / "results.json").read_text(encoding="utf-8"))
    assert {name: group["entries"] for name, group in results["agreement"].items()} == {
        "all": 320, "evaluation": 160, "pearson": 80, "spearman": 80,
    }  # fmt: skip


def test_settings_do_not_mix_in_one_folder(quick: Path) -> None:
    cells = {p.name for p in (quick / "cells").iterdir()}
    assert cells == {"seed-0-tests-40-1.1"}
    assert Plan(replay=True).name != Plan().name != Plan(seed=1).name != Plan(rewards=("1.2-text",)).name


@pytest.mark.slow  # runs the experiment once more
def test_other_rewards_have_results_but_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "synthetic", "--quick", "--reward", "1.2-text", "--verdict-tests", "0"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert list((tmp_path / "tables").iterdir()) == []
    assert (tmp_path / "figures" / "ex1.2-text_comp.png").exists()
    assert "Written" in capsys.readouterr().out


def test_a_function_of_the_users_own() -> None:
    bandit = load_bandit("user_reward:quadratic")
    assert bandit.rewards[-1, 0] == pytest.approx(2.0)
    plan = Plan(rewards=("1.1", "user_reward:quadratic"))
    assert plan.name == "seed-0-tests-1000-1.1-user_reward_quadratic"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"replay": True, "quick": True},
            "replay and quick exclude each other\n\nHint: the printed numbers come out of all 1,000 tests per cell.",
        ),
        (
            {"replay": True, "scheduler": "tcp://127.0.0.1:1"},
            "replay runs on this machine alone\n\nHint: its cells follow each other; leave the scheduler out.",
        ),
        ({"seed": -1}, "seed must not be negative; it is -1\n\nHint: use 0, 1, 2, ..."),
        ({"rewards": ["1.3"]}, "no example '1.3'\n\nHint: the examples are 1.1, 1.2, 1.2-text."),
    ],
)
def test_messages(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(PodiumError) as caught:
        reproduce(tmp_path, **options)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == [], "nothing is written"


@pytest.mark.parametrize("package", ["numba", "matplotlib"])
def test_a_missing_package_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PodiumError) as caught:
        reproduce(tmp_path)
    assert str(caught.value) == (
        f"{package} is not installed; Example 1 needs it\n\nHint: run: pip install 'podium[experiments]'"
    )
    assert list(tmp_path.iterdir()) == []


def test_bad_usage_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "synthetic", "--replay", "--quick", "--out", str(tmp_path)]
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("podium: replay and quick exclude each other")


def test_every_deviation_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    words = " ".join(page.split())
    assert [title for title, text in DEVIATIONS if f"**{title}.** {text}" not in words] == []


@pytest.mark.slow  # judges many logs
def test_own_verdicts_are_those_of_compare() -> None:
    bandit = load_bandit("1.1")
    rng = np.random.default_rng(0)
    behavior = bandit.random_policy(rng)
    drawn = bandit.draw_actions(behavior, 10, rng)
    best, worst = bandit.greedy(bandit.best_actions), bandit.greedy(bandit.worst_actions)
    mixed = [0.5 * p + 0.5 / 100 for p in (best, worst)]
    assert own_verdict(bandit, behavior, drawn, mixed[0], mixed[1])[0] == "better"
    assert own_verdict(bandit, behavior, drawn, mixed[1], mixed[0])[0] == "worse"
    assert own_verdict(bandit, behavior, drawn, mixed[0], mixed[0])[0] == "cannot tell"


def test_a_policy_with_negative_probabilities_is_clipped() -> None:
    policy = proper(np.array([[-0.1, 0.6, 0.5], [0.2, 0.3, 0.5]]))
    assert policy == pytest.approx(np.array([[0, 6 / 11, 5 / 11], [0.2, 0.3, 0.5]]))


# --- the printed numbers -----------------------------------------------------------------------------------------


def test_replay_gives_the_printed_row_of_alpha_005(tmp_path: Path) -> None:
    """The first nine cells of the first sweep: 16 printed numbers to their last digit."""
    plan = Plan(replay=True)
    chain = plan.cells["alpha"][:9]
    run_cells(replay_cell, [chain], tmp_path, workers=1)
    with np.load(tmp_path / f"{chain[-1].name}.npz") as arrays:
        for e, name in enumerate(plan.rewards):
            point = measure(0.05, 1, {k: arrays[k] for k in ("values", "right")}, e, load_bandit(name).span, 100)
            reproduced = evaluation_entries([point], "alpha")
            table = f"ex{name}_eval_a"
            entries = [x for x in beside_row(table, "0.05", reproduced) if x.row == "0.05"]
            assert len(entries) == 8
            assert [x.column for x in entries if not x.is_equal] == []
            if name == "1.1":
                assert point.rate.tolist() == [0.772, 0.678, 0.644, 0.713]


def beside_row(label: str, row: str, reproduced: dict[tuple[str, str], tuple[float, float]]) -> list[Entry]:
    """One row of a printed table beside its reproduction."""
    from podium.experiments.printed import printed_table

    filled = {key: reproduced.get(key, (0.0, 1.0)) for key in printed_table(label)}
    return [e for e in beside_printed(label, filled) if e.row == row]


@pytest.mark.slow
def test_replay_gives_every_printed_number(tmp_path: Path) -> None:
    plan = Plan(replay=True)
    run_cells(replay_cell, plan.chains, tmp_path, workers=2)
    tables = {label: e for result in collect(plan, tmp_path) for label, e in result.tables().items()}
    evaluation = [e for label, entries in tables.items() if "_eval_" in label for e in entries]
    correlation = [e for label, entries in tables.items() if label.endswith("correlation") for e in entries]
    pearson = [e for e in correlation if e.column.endswith("pearson")]
    spearman = [e for e in correlation if e.column.endswith("spearman")]
    assert (len(evaluation), len(pearson), len(spearman)) == (160, 80, 80)
    assert [e for e in evaluation + pearson if not e.is_equal] == []
    assert max(abs(e.reproduced - float(e.printed)) for e in spearman) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fresh_numbers_agree_with_every_printed_one(tmp_path: Path, seed: int) -> None:
    plan = Plan(seed=seed)
    run_cells(run_cell, plan.chains, tmp_path, seed=seed, workers=2)
    entries = [e for result in collect(plan, tmp_path) for table in result.tables().values() for e in table]
    assert len(entries) == 320
    whole = agreement(entries)
    assert whole["max_abs_z"] < 4.5
    assert 0.8 < whole["rms_z"] < 1.25


@pytest.mark.slow
def test_the_formula_of_the_text_misses_the_tables(tmp_path: Path) -> None:
    plan = Plan(rewards=("1.2-text",))
    run_cells(run_cell, [[c] for c in plan.cells["alpha"][:9]], tmp_path, workers=1)
    with np.load(tmp_path / "alpha-008.npz") as arrays:
        cell = {k: arrays[k] for k in ("values", "right")}
    point = measure(0.05, 1, cell, 0, load_bandit("1.2-text").span, 100)
    entries = beside_row("ex1.2_eval_a", "0.05", evaluation_entries([point], "alpha"))
    assert agreement(entries)["max_abs_z"] > 20
