"""Mistakes that once passed in silence: shifted shares, swapped letters, rows that were exported twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import podium
from podium import Learned, Log, PodiumError, Policy, compare
from podium.command.cli import main


def noise(rows: int, seed: int, copies: int = 1, units: bool = False) -> Log:
    """Rewards that no action changes, each row written several times."""
    rng = np.random.default_rng(seed)
    states, actions = rng.normal(size=(rows, 2)), rng.choice(["a", "b"], rows)
    rewards, again = rng.integers(0, 2, rows), np.tile(np.arange(rows), copies)
    log = (states[again], actions[again], rewards[again])
    return Log(*log, propensities=np.full(rows * copies, 0.5), units=again if units else None)


def test_a_recipe_is_not_judged_on_rows_that_were_exported_twice():
    policies = {"new": Learned(KNeighborsRegressor(1)), "even": "uniform"}
    with pytest.raises(PodiumError) as refused:
        compare(noise(200, 0, copies=2), policies)
    assert str(refused.value) == (
        "policy 'new' is a recipe, and 200 of the 400 rows repeat another one in state, action and reward: it would be "
        "judged on rows that it learned from\n\nHint: remove the copies, in pandas frame.drop_duplicates(), or name "
        "the column that identifies dependent rows with unit= (--unit)."
    )


def test_copies_of_one_unit_stay_in_one_fold():
    policies = {"new": Learned(KNeighborsRegressor(1)), "even": "uniform"}
    claims = [compare(noise(100, s, copies=2, units=True), policies).pairs[0].verdict for s in range(5)]
    assert claims == ["cannot tell"] * 5


def test_states_that_come_back_are_not_copies():
    rng = np.random.default_rng(0)
    log = Log(rng.integers(0, 3, 300), rng.choice(["a", "b"], 300), rng.integers(0, 2, 300), propensities=[0.5] * 300)
    result = compare(log, {"new": Learned(Ridge()), "even": "uniform"})
    assert result.settings.recipes == ("new",)
    assert not any("leave out" in str(warning) for warning in result.warnings)  # its folds differ, not its states


def test_an_estimator_whose_kind_is_stated_is_a_recipe():
    log = noise(100, 1)
    stated = compare(log, {"new": Policy(Ridge(), kind="learned"), "even": "uniform"})
    assert stated.to_dict() == compare(log, {"new": Learned(Ridge()), "even": "uniform"}).to_dict()


@pytest.mark.parametrize("role", ["policy", "behavior"])
def test_shares_that_are_numbered_from_zero(role: str):
    log = Log([0] * 6, [1, 2, 3] * 2, [0, 1] * 3)
    shares = {0: 0.5, 1: 0.5}
    name = "x" if role == "policy" else "behavior"
    policies = {"x": Policy(shares, kind="shares") if role == "policy" else "constant:1", "even": "uniform"}
    behavior = Policy(shares, kind="shares") if role == "behavior" else None
    with pytest.raises(PodiumError) as refused:
        compare(log, policies, behavior=behavior)
    assert str(refused.value) == (
        f"policy {name!r} numbers its actions from 0 (0, 1), and the log numbers them from 1 (1, 2, 3): the labels are "
        "off by one\n\nHint: map them with podium.Policy(policy, labels={0: 1, 1: 2}), or correct them in the file; if "
        "0 is one more action, name the whole action space with actions=[...] (--actions)."
    )


def test_shares_in_percent_are_told_from_other_texts():
    with pytest.raises(PodiumError) as refused:
        compare(noise(20, 0), {"x": "shares:a=40%,b=60%", "even": "uniform"})
    assert str(refused.value) == "shares:a=40%,b=60%: '40%' is a percent\n\nHint: divide by 100: .4 for 40%."


LOG = "age,action,reward,propensity,pi_new,pi_current\n" + "20,a,1,0.5,0.9,0.5\n30,b,0,0.5,0.1,0.5\n" * 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--gate", "nwe > current"],
            "the gate 'nwe > current' is not of the form A > B or A > B - margin; the policies are new, current\n\n"
            'Hint: did you mean "new > current"? write --gate "new > current", or with a margin that does no harm: '
            '"new > current - 0.02".',
        ),
        (
            ["--state", "aeg"],
            "the log has no column 'aeg' for the state\n\n"
            "Hint: did you mean 'age'? the columns are age, action, reward, "
            "propensity, pi_new, pi_current.",
        ),
        (
            ["--baseline", "maen"],
            "unknown baseline 'maen'\n\n"
            "Hint: did you mean 'mean'? a baseline is "
            '"mean", "linear", "state", a number, '
            "q(states, actions), v(states), an object with fit/predict, or an array.",
        ),
        (
            ["--cost", "A=2", "--policy", "even=uniform"],
            "the cost of 'A' is given, and no row or policy has this action\n\nHint: did you mean 'a'? The actions are "
            "'a', 'b'.",
        ),
        (
            ["--policy", "x=missing.pkl"],
            "there is no file 'missing.pkl'\n\nHint: check the path of the model.",
        ),
    ],
)
def test_typos_on_the_command_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    assert main(["compare", "log.csv", *options]) == 2
    assert capsys.readouterr().err == f"podium: {said}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


YES = "age,action,reward,propensity\n" + "20,a,Yes,0.5\n30,b,No,0.5\n" * 2000


def test_values_that_need_memory_are_read_there_where_they_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(YES)
    ask = ["evaluate", "log.csv", "--policy", "even=uniform"]
    monkeypatch.setenv("PODIUM_MEMORY", "3MB")  # 2 MB are needed, more than half of it
    assert main(ask) == 0
    assert capsys.readouterr().out.startswith("Log (memory): 4,000 rows")
    monkeypatch.setenv("PODIUM_MEMORY", "1MB")
    assert main(ask) == 2
    assert capsys.readouterr().err == (
        "podium: this needs about 0.0020 GB of memory, and 0.0010 GB are available: 4,000 rows x 4 columns of log.csv. "
        "The engine duckdb reads values as they are, and in memory podium would convert some. Column 'reward': 'Yes' "
        "counts as 1, 'No' as 0\n\n"
        "Hint: write the values in plain form, such as 0 and 1. "
        "PODIUM_MEMORY=8GB sets how much memory podium may use.\n"
    )


def test_options_on_values_choose_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PODIUM_MEMORY", "3MB")
    (tmp_path / "log.csv").write_text(YES)
    assert isinstance(podium.scan_log(tmp_path / "log.csv", success="Yes"), Log)
