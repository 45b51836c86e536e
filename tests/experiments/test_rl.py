"""Example 3 as a user runs it, on a few hundred steps of training: what is written, and that it is the same again."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.experiments.rl import reproduce
from podium.experiments.rl.cells import run_cell
from podium.experiments.rl.deviations import DEVIATIONS
from podium.experiments.rl.plan import ALGORITHMS, ENVIRONMENTS, Plan, check_environments
from podium.experiments.rl.readings import Reading, comparison_scores
from podium.experiments.rl.rollouts import Simulations
from podium.experiments.rl.training import restore_policies, silence
from podium.experiments.runner import Arrays, load

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROOT = Path(__file__).parents[2]
FIGURES = ["ex3_comp", "ex3_comp_appendix", "ex3_readings", "ex3_truth", "ex3_verdicts"]
QUICK = "paper-seed-0-200-steps-4-logs-20-rollouts"
COMMAND = ["reproduce", "rl", "--quick", "--environments", "InvertedPendulum"]


trains = pytest.mark.heavy  # in a simulator, with torch


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run on InvertedPendulum: two trainings."""
    folder = tmp_path_factory.mktemp("rl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert main([*COMMAND, "--workers", "1", "--out", str(folder)]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run, the cells included."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_plan_is_the_papers() -> None:
    plan = Plan()
    chains = plan.chains(Path("cells"))
    assert len(chains) == 8 * 15
    assert plan.seeds * plan.logs == 225
    assert [c[0].arguments["environment"] for c in chains[:8]] == list(ENVIRONMENTS), "every environment starts early"
    assert len({cell.place for chain in chains for cell in chain}) == 240, "every cell has a seed of its own"


def test_a_cell_has_the_same_seed_whatever_else_is_run() -> None:
    whole = {c.name: c.place for chain in Plan().chains(Path("cells")) for c in chain}
    part = Plan(environments=("Ant",), seeds=3, defaults="current")
    assert all(whole[c.name] == c.place for chain in part.chains(Path("cells")) for c in chain)


def test_environments_by_any_of_their_names() -> None:
    assert check_environments(["Reacher-v0,Ant", "InvertedPendulumBulletEnv-v0", "Ant"]) == (
        "InvertedPendulum", "Reacher", "Ant",
    )  # fmt: skip
    with pytest.raises(PodiumError, match=r"^there is no environment 'Pong'\n\nHint: choose among InvertedPendulum, "):
        check_environments(["Pong"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 1}, "seeds must be at least 2; it is 1"),
        ({"seed": -1}, "seed must not be negative; it is -1"),
        ({"constant": 1.5}, "constant must lie in [0, 1); it is 1.5"),
        ({"sb3_defaults": "old"}, "sb3_defaults must be 'paper' or 'current'; it is 'old'"),
        ({"environments": []}, "no environment is given"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(PodiumError, match=f"^{re.escape(message)}\n\nHint: "):
        reproduce(tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("podium.experiments.rl.find_spec", lambda name: None if name == "torch" else object())
    assert main(["reproduce", "rl", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "podium: torch is not installed; Example 3 needs it\n\nHint: run: pip install 'podium[rl,experiments]'\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_command_line_alone_never_loads_torch() -> None:
    code = (
        "import sys\n"
        "from podium.command.cli import main\n"
        "import podium.experiments.rl, podium.experiments.rl.readings, podium.experiments.rl.measures\n"
        "assert main(['reproduce', 'rl', '--seeds', '1']) == 2\n"
        "print(sorted({'torch', 'gymnasium', 'stable_baselines3', 'pybullet'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@trains
@pytest.mark.parametrize("label", ["ex3", "ex3_appendix", "ex3_program", "ex3_appendix_program"])
def test_tables_follow_the_contract(quick: Path, label: str) -> None:
    with (quick / "tables" / f"{label}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["row", "column", "printed", "reproduced", "std_error", "z"]
    assert len(lines) == 8
    assert {line["row"] for line in lines} == {"InvertedPendulum-v0"}
    for line in lines:
        gap = float(line["reproduced"]) - float(line["printed"])
        assert float(line["z"]) == pytest.approx(gap / (math.sqrt(2) * float(line["std_error"])))
        assert 0 <= float(line["reproduced"]) <= 1


@trains
def test_every_figure_is_drawn_and_shown(quick: Path) -> None:
    page = (quick / "index.html").read_text(encoding="utf-8")
    for name in FIGURES:
        assert (quick / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (quick / "figures" / f"{name}.svg").read_bytes()
        assert f'src="figures/{name}.svg"' in page
    assert not re.search(r"""(?:src|href)=["'](?:[a-z]+:)?//""", page)
    for title, _ in DEVIATIONS:
        assert title in page


@trains
def test_results_are_plain_json(quick: Path) -> None:
    text = (quick / "results.json").read_text(encoding="utf-8")
    results = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert results["command"] == "podium reproduce rl --environments InvertedPendulum --quick"
    assert results["settings"] == {
        "environments": ["InvertedPendulum"], "seeds": 2, "sb3_defaults": "paper", "seed": 0,
        "timesteps": 200, "logs": 4, "rollouts": 20,
    }  # fmt: skip
    assert {"python", "torch", "stable-baselines3", "pybullet"} <= set(results["versions"])
    assert results["environments"]["InvertedPendulum"]["tests"] == 8


def test_every_deviation_is_in_the_docs() -> None:
    words = " ".join((ROOT / "docs" / "deviations.md").read_text(encoding="utf-8").split())
    assert [title for title, text in DEVIATIONS if f"**{title}.** {text}" not in words] == []


@pytest.fixture(scope="module")
def reacher() -> Arrays:
    """The logs of policies trained for a few steps in Reacher, whose actions have two coordinates."""
    train, deploy = Plan(("Reacher",), timesteps=150, logs=3, rollouts=4).chain(Path("cells"), "Reacher", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        policies = run_cell(train, np.random.SeedSequence(1), None)
        return run_cell(deploy, np.random.SeedSequence(2), policies)


@trains
def test_policies_that_draw_nothing_follow_their_own_log_to_the_last_bit(quick: Path, reacher: Arrays) -> None:
    for cell in (load(quick / "cells" / QUICK, "logs-InvertedPendulum-00"), reacher):
        for algorithm in ("DDPG", "TD3"):
            k = ALGORITHMS.index(algorithm)
            assert np.array_equal(cell["own"][:, k, k], cell["actions"][:, k])
            assert np.allclose(cell["at_logged"][:, k, k], cell["actions"][:, k], atol=1e-5)
        k = ALGORITHMS.index("SAC")
        assert not np.allclose(cell["own"][:, k, k], cell["actions"][:, k]), "SAC draws its actions"


@trains
def test_an_environment_that_never_ends_is_cut_at_the_horizon(reacher: Arrays) -> None:
    assert reacher["actions"].shape == (3, 5, 100, 2)
    assert reacher["at_logged"].shape == reacher["own"].shape == (3, 5, 5, 100, 2)
    assert (reacher["lengths"] == 100).all()
    assert (reacher["return_lengths"] == 100).all()
    assert reacher["observations"][:, :, -1].any()
    scores = comparison_scores(reacher, Reading(actions="own", coordinates="exponent"))
    assert ((scores >= 0) & (scores <= 1)).all()


@trains
def test_what_is_cached_is_what_the_environment_does(quick: Path) -> None:
    cell = load(quick / "cells" / QUICK, "logs-InvertedPendulum-00")
    steps = np.arange(100)
    inside = steps < cell["lengths"][..., None]
    assert (cell["rewards"] == inside).all(), "the pendulum pays 1 for each step that it stands"
    assert (np.abs(cell["actions"]) <= 1).all()
    assert not cell["actions"][~inside].any()
    assert (cell["returns"] == cell["return_lengths"]).all()
    assert (cell["own_lengths"] <= cell["lengths"][:, :, None]).all()
    assert np.array_equal(cell["own_returns"], cell["own_lengths"]), "what comes past the end is not counted"


@pytest.fixture
def again(quick: Path, tmp_path: Path) -> Path:
    """A copy of the quick run as an interruption leaves it: one training lost, another one's logs lost."""
    folder = tmp_path / "again"
    shutil.copytree(quick, folder)
    for name in ("policies-InvertedPendulum-01", "logs-InvertedPendulum-01", "logs-InvertedPendulum-00"):
        (folder / "cells" / QUICK / f"{name}.npz").unlink()
    for name in ("tables", "sweeps", "figures"):
        shutil.rmtree(folder / name)
    return folder


@trains
def test_a_run_resumes_to_the_same_bytes_with_other_workers(
    quick: Path, again: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, "--workers", "2", "--out", str(again)]) == 0
    assert contents(again) == contents(quick)
    said = capfd.readouterr()
    assert "argv[0]" not in said.out + said.err
    assert "build time" not in said.out + said.err
    assert "policies and logs: 1 of 4 are there already" in said.err


@trains
def test_tables_come_from_the_cache_without_torch(quick: Path) -> None:
    code = (
        "import sys\n"
        "from podium.command.cli import main\n"
        f"assert main([*{COMMAND}, '--workers', '1', '--out', {str(quick)!r}]) == 0\n"
        "print(sorted({'torch', 'gymnasium', 'stable_baselines3', 'pybullet'} & set(sys.modules)))"
    )
    before = contents(quick)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
    assert contents(quick) == before


@trains
def test_batches_do_not_change_what_a_policy_does(quick: Path) -> None:
    """Simulations that have run before give what new ones give, and a part of the resets what all of them give."""
    arrays = load(quick / "cells" / QUICK, "policies-InvertedPendulum-00")
    with silence():
        model = restore_policies("InvertedPendulum", "paper", arrays)["PPO"]
    resets = np.arange(6)
    with Simulations("InvertedPendulum", size=4) as simulations:
        first = simulations.run(model, resets, 50)
        again = simulations.run(model, resets[4:], 50)
    with Simulations("InvertedPendulum", size=4) as simulations:
        other = simulations.run(model, resets[4:], 50)
    assert np.array_equal(first.actions[4:], again.actions)
    assert np.array_equal(again.actions, other.actions)
    assert np.array_equal(again.rewards, other.rewards)


@trains
@pytest.mark.slow
def test_the_other_defaults_share_what_does_not_depend_on_them(tmp_path: Path) -> None:
    """Reusing A2C, PPO and SAC of the other generation gives the bytes that training them again gives."""
    for folder, order in (("shared", ("paper", "current")), ("alone", ("current",))):
        for defaults in order:
            reproduce(
                tmp_path / folder, environments=["InvertedPendulum"], quick=True, sb3_defaults=defaults, workers=2
            )
    name = "cells/current-seed-0-200-steps-4-logs-20-rollouts"
    shared, alone = contents(tmp_path / "shared" / name), contents(tmp_path / "alone" / name)
    assert shared == alone
    paper = load(tmp_path / "shared" / "cells" / QUICK, "policies-InvertedPendulum-00")
    current = load(tmp_path / "shared" / name, "policies-InvertedPendulum-00")
    same = {key.split(".")[0] for key, value in paper.items() if np.array_equal(value, current[key])}
    assert same == {"A2C", "PPO", "SAC"}
