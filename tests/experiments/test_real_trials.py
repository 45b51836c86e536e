"""The randomized trials that podium ships, trials from a folder, and what goes wrong."""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.data.errors import PodiumError
from podium.experiments.calibration import real_trials
from podium.experiments.calibration.real_trials import CHECKSUMS, TABLES, load_trial, trial_names

FOLDER = Path(real_trials.__file__).parent / TABLES
SHIPPED = ("dating", "gums", "insurance", "party", "throat", "training")
# rows, arms with their numbers of rows, mean reward
FACTS = {
    "dating": (725, {"democrat": 362, "republican": 363}, 76.4745),
    "gums": (659, {"later": 339, "treated": 320}, -55.96139),
    "insurance": (
        1378, {"intensive": 349, "intensive+default": 323, "simple": 364, "simple+default": 342}, 635 / 1378,
    ),
    "party": (1198, {"GOP leaders": 367, "conservative Trump": 183, "control": 461, "liberal Trump": 187}, 985 / 1198),
    "throat": (233, {"licorice": 117, "sugar": 116}, -196 / 233),
    "training": (722, {"none": 425, "training": 297}, 5454.64),
}  # fmt: skip


def test_the_shipped_files_are_intact() -> None:
    packed = {path.name.removesuffix(".csv.gz"): path.read_bytes() for path in FOLDER.glob("*.csv.gz")}
    assert {name: hashlib.sha256(gzip.decompress(content)).hexdigest() for name, content in packed.items()} == CHECKSUMS
    assert {content[3:8] for content in packed.values()} == {bytes(5)}, "neither a name nor a time in the header"
    assert tuple(sorted(packed)) == trial_names() == SHIPPED


def test_the_readme_describes_every_trial_and_column() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    for name in SHIPPED:
        trial = load_trial(name)
        rows = [line for line in lines if line.startswith(f"| `{name}` |")]
        facts, columns, study, source = rows
        assert f"| {len(trial.rewards):,} |" in facts
        assert [arm for arm in trial.shares if f"`{arm}`" not in facts] == []
        assert [column for column in trial.states if f"`{column}`" not in columns] == []
        assert "doi.org" in study or name == "training"
        assert any(words in source for words in ("MIT, copyright (c)", "published by the authors", "public"))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_the_trials_are(name: str) -> None:
    trial = load_trial(name)
    rows, arms, reward = FACTS[name]
    assert trial.name == name
    assert len(trial.rewards) == len(trial.actions) == rows
    assert trial.rewards.mean() == pytest.approx(reward, rel=1e-5)
    assert trial.shares == pytest.approx({arm: count / rows for arm, count in arms.items()})
    assert sum(trial.shares.values()) == pytest.approx(1)
    assert trial.states
    assert {len(column) for column in trial.states.values()} == {rows}
    assert not {"action", "reward"} & set(trial.states)


def test_a_trial_makes_a_log() -> None:
    trial = load_trial("gums")
    shares = np.array([trial.shares[arm] for arm in trial.actions])
    log = podium.Log.from_columns(
        {**trial.states, "action": trial.actions, "reward": trial.rewards, "propensity": shares}
    )
    values = podium.evaluate(log, {"treated": "constant:treated", "later": "constant:later"}).values
    difference = trial.rewards[trial.actions == "treated"].mean() - trial.rewards[trial.actions == "later"].mean()
    assert values["treated"]["IPS"] - values["later"]["IPS"] == pytest.approx(difference)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text("age,action,reward\n30,a,1\n40,b,0\n50,b,0.5\n60,b,1\n", encoding="utf-8")
    return tmp_path


def test_further_trials_come_from_a_folder(folder: Path) -> None:
    (folder / "README.md").write_text("not a trial", encoding="utf-8")
    assert trial_names(folder) == tuple(sorted((*SHIPPED, "mine")))
    mine = load_trial("mine", folder)
    assert mine.states["age"].tolist() == [30, 40, 50, 60]
    assert mine.actions.tolist() == ["a", "b", "b", "b"]
    assert mine.rewards.tolist() == [1, 0, 0.5, 1]
    assert mine.shares == {"a": 0.25, "b": 0.75}
    assert len(load_trial("throat", folder).rewards) == 233, "shipped trials are there as well"


def test_a_file_in_the_folder_wins(folder: Path) -> None:
    (folder / "mine.csv").rename(folder / "throat.csv")
    assert len(load_trial("throat", folder).rewards) == 4


def refused(name: str, folder: Path | None) -> str:
    with pytest.raises(PodiumError) as caught:
        load_trial(name, folder)
    return str(caught.value)


def test_an_unknown_trial(folder: Path) -> None:
    hint = "Hint: the trials are dating, gums, insurance, "
    assert refused("colon", None) == f"no trial 'colon'\n\n{hint}party, throat, training."
    assert refused("colon", folder) == f"no trial 'colon'\n\n{hint}mine, party, throat, training."
    assert refused("../mine", folder / "missing").startswith("there is no folder ")
    (folder / "inside").mkdir()
    assert refused("../mine", folder / "inside").startswith("no trial '../mine'"), "a name is not a path"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,arm,reward\n1,a,1\n", "mine.csv has no column 'action'\n\nHint: the columns are age, arm, reward."),
        ("age,action\n1,a\n", "mine.csv has no column 'reward'\n\nHint: the columns are age, action."),
        (
            "action,reward\na,1\nb,2\n",
            "mine.csv has no state columns\n\nHint: add a column that describes each person.",
        ),
        (
            "age,action,reward\n1,a,1\n2,a,2\n",
            "mine.csv: column 'action' holds one arm only\n\nHint: a trial compares two arms or more.",
        ),
        (
            "age,action,reward\n1,a,1\n2,b,\n3,b,\n",
            "mine.csv: column 'reward' must be a number; row 2 holds nothing (2 rows)\n\n"
            "Hint: give one number per row.",
        ),
        (
            "age,action,reward\n1,a,1\n,b,2\n",
            "mine.csv: column 'age' must not be missing; row 2 holds nothing (1 row)\n\n"
            "Hint: fill the gaps or drop those rows before comparing.",
        ),
        ("", "mine.csv is empty\n\nHint: write a header line and at least one row."),
    ],
)
def test_a_table_that_is_not_a_trial(folder: Path, text: str, message: str) -> None:
    (folder / "mine.csv").write_text(text, encoding="utf-8")
    assert refused("mine", folder) == message


@pytest.mark.parametrize("damage", [lambda c: c[:100], lambda c: gzip.compress(gzip.decompress(c).replace(b"3", b"4"))])
def test_a_damaged_shipped_trial(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken_trials"
    (package / TABLES).mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_trials", raising=False)
    monkeypatch.setattr(real_trials, "PACKAGE", "broken_trials")
    file, says = f"{TABLES}/throat.csv.gz", "a data file that podium ships, is"
    assert refused("throat", None) == f"{file}, {says} missing\n\nHint: install podium again."
    (package / TABLES / "throat.csv.gz").write_bytes(damage((FOLDER / "throat.csv.gz").read_bytes()))
    assert refused("throat", None) == f"{file}, {says} damaged\n\nHint: install podium again."
