"""Outcomes beside the reward, what they are worth, lifts, and pairs that are practically the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.comparison.lifts import Lift, Value, lift_of
from podium.comparison.pair import Interval
from podium.data.errors import PodiumError

approx = pytest.approx
POLICIES = {"new": "constant:b", "current": "constant:a", "any": "uniform"}


def make_columns(rows: int = 300, seed: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    actions = rng.choice(["a", "b"], size=rows)
    return {
        "age": rng.integers(3, size=rows),
        "action": actions,
        "reward": (rng.random(rows) < 0.3 + 0.25 * (actions == "b")).astype(float),
        "cost": 1 + 0.5 * (actions == "b") + 0.2 * rng.normal(size=rows),
        "propensity": np.full(rows, 0.5),
    }


def make_log(**changes: Any) -> podium.Log:
    return podium.Log.from_columns({**make_columns(), **changes})


def fails(call: Any) -> str:
    with pytest.raises(PodiumError) as error:
        call()
    return str(error.value)


def numbers(result: podium.Comparison) -> list[Any]:
    """What JSON says of policies and pairs."""
    found = result.to_dict()
    return [found["policies"], found["pairs"]]


# --- further outcomes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"verdicts": "gated"}, {"estimator": "DRE", "verdicts": "paired t"}])
def test_an_outcome_is_the_same_question_with_another_reward(options: dict[str, Any]) -> None:
    columns = make_columns()
    both = podium.compare(make_log(), POLICIES, also=["cost:lower"], **options)
    reward = podium.Log.from_columns({k: v for k, v in columns.items() if k != "cost"})
    other = {name: column for name, column in columns.items() if name != "cost"} | {"reward": columns["cost"]}
    cost = podium.Log.from_columns(other)
    assert numbers(both) == numbers(podium.compare(reward, POLICIES, **options))
    assert numbers(both.outcomes["cost"]) == numbers(podium.compare(cost, POLICIES, lower_is_better=True, **options))
    assert list(both.log.state_columns) == ["age"]


def test_outcomes_are_never_state() -> None:
    log = make_log()
    assert list(log.state_columns) == ["age", "cost"]
    assert list(podium.compare(log, POLICIES, also="cost").log.state_columns) == ["age"]
    assert list(podium.Log.from_columns(make_columns(), also=["cost:lower"]).state_columns) == ["age"]


def test_a_recipe_learns_from_the_reward_alone() -> None:
    """The policies of an outcome are those of the reward, not learned again from the outcome."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(4)
    columns = make_columns() | {"age": rng.normal(size=300)}
    log = podium.Log.from_columns(columns, also=["cost"])
    recipe = {"learned": podium.Learned(LogisticRegression()), "current": "constant:a"}
    result = podium.compare(log, recipe, also=["cost:lower"])
    assert result.outcomes["cost"].basis.policies.policies is result.basis.policies.policies


def test_refusals() -> None:
    log = make_log()
    columns = "the columns are age, action, reward, cost, propensity."
    assert fails(lambda: podium.compare(log, POLICIES, also=["cots"])) == (
        f"the log has no column 'cots' for an outcome\n\nHint: did you mean 'cost'? {columns}"
    )
    assert fails(lambda: podium.compare(log, POLICIES, worth={"cots": 1})) == (
        f"the log has no column 'cots' for an outcome\n\nHint: did you mean 'cost'? {columns}"
    )
    assert fails(lambda: podium.compare(log, POLICIES, also=["reward"])) == (
        "the column 'reward' is the reward, so it cannot be a further outcome\n\n"
        "Hint: leave it out: the reward is always compared."
    )
    assert fails(lambda: podium.compare(log, POLICIES, also=["action"])) == (
        "the column 'action' cannot be both the action and an outcome\n\n"
        "Hint: name another column, or leave the option out."
    )
    named = podium.Log.from_columns(make_columns(), state=["age", "cost"])
    assert fails(lambda: podium.compare(named, POLICIES, also=["cost"])) == (
        "the column 'cost' cannot be both the state and an outcome\n\n"
        "Hint: name another column, or leave the option out."
    )
    alone = podium.Log.from_columns({k: v for k, v in make_columns().items() if k != "age"})
    assert fails(lambda: podium.compare(alone, POLICIES, also=["cost"])) == (
        "the log has no state columns beside the outcomes\n\n"
        "Hint: name at least one with --state, or add a constant column."
    )
    assert fails(lambda: podium.compare(log, POLICIES, also=["cost", "cost:lower"])) == (
        "the outcome 'cost' is given twice\n\nHint: give it once."
    )
    assert fails(lambda: podium.compare(log, POLICIES, also=3)) == (
        "also must name columns of the log; it is 3\n\nHint: write --also visits, or --also cost:lower where lower is "
        "better; in Python, also=['visits', 'cost:lower']."
    )
    worth = "\n\nHint: write --worth cost=-0.2; in Python, worth={'cost': -0.2}."
    assert fails(lambda: podium.compare(log, POLICIES, worth="cost")) == f"worth 'cost' is not COLUMN=NUMBER{worth}"
    assert fails(lambda: podium.compare(log, POLICIES, worth={"cost": np.inf})) == (
        f"the worth of 'cost' must be a finite number; it is inf{worth}"
    )
    gaps = podium.Log.from_columns(make_columns() | {"cost": [np.nan, *make_columns()["cost"][1:]]}, also=["cost"])
    assert fails(lambda: podium.compare(gaps, POLICIES, also=["cost"])).startswith(
        "column 'cost' must be a finite number; row 1 holds nan (1 row)\n\n"
        "Hint: an outcome is a finite number in every row; podium.read_log(..., also=['cost'], drop_missing=True)"
    )
    with pytest.raises(PodiumError, match="unknown option 'also'"):
        podium.diagnose(log, POLICIES, also=["cost"])


# --- worth ---------------------------------------------------------------------------------------------------------


def test_worth_is_the_reward_of_every_row() -> None:
    columns = make_columns()
    total = columns["reward"] - 0.2 * columns["cost"]
    plain = podium.Log.from_columns({k: v for k, v in columns.items() if k != "cost"} | {"reward": total})
    result = podium.compare(make_log(), POLICIES, worth={"cost": -0.2})
    assert numbers(result) == numbers(podium.compare(plain, POLICIES))
    assert list(result.outcomes) == ["reward", "cost"]
    assert result.outcomes["cost"].settings.lower_is_better
    alone = podium.compare(make_log(), POLICIES, also="cost")
    assert numbers(result.outcomes["reward"]) == numbers(alone)
    assert "Policies are ranked by net worth = reward - 0.2 x cost, added up row by row" in " ".join(
        str(result).split()
    )
    assert result.to_dict()["settings"]["worth"] == {"cost": -0.2}


def test_the_direction_that_a_worth_implies() -> None:
    def lower(worth: float, also: str, lower_is_better: bool = False) -> bool:
        result = podium.compare(
            make_log(), POLICIES, also=[also], worth={"cost": worth}, lower_is_better=lower_is_better
        )
        return result.outcomes["cost"].settings.lower_is_better

    assert lower(-0.2, "cost")
    assert not lower(0.2, "cost")
    assert not lower(-0.2, "cost:higher")
    assert lower(0.2, "cost", lower_is_better=True)


# --- lifts and sameness --------------------------------------------------------------------------------------------


def test_lift_is_the_range_of_the_ratio() -> None:
    base = Value(0.5, 0.05, 0.4, 0.6)
    assert lift_of(0.1, Interval(0.06, 0.14), base, "posterior") == Lift(approx(20), approx(10), approx(35))
    assert lift_of(0.1, Interval(-0.04, 0.14), base, "DRE") == Lift(approx(20), approx(-10), approx(35))
    assert lift_of(-0.1, Interval(-0.2, -0.06), base, "DRE") == Lift(approx(-20), approx(-50), approx(-10))
    assert lift_of(0.1, Interval(0.06, 0.14), base, "LDE") is None
    assert lift_of(0.1, None, base, "DRE") is None
    assert lift_of(0.1, Interval(0.06, 0.14), None, "DRE") is None
    turned = Lift(25.0, 0.0, 100.0).turned()
    assert turned == Lift(approx(-20), approx(-50), approx(0))
    assert Lift(-90.0, -110.0, 5.0).turned() is None


def test_lifts_agree_with_differences() -> None:
    result = podium.compare(make_log(), POLICIES, also=["cost"])
    for outcome in (result, *result.outcomes.values()):
        for pair in outcome.pairs:
            assert pair.lift is not None
            assert pair.interval is not None
            value = outcome.estimates[pair.b]["DRE"]
            assert value is not None
            assert pair.lift.percent == approx(100 * pair.difference / value)
            assert pair.lift.low < pair.lift.percent < pair.lift.high
            assert (pair.lift.low > 0, pair.lift.high < 0) == (pair.interval.low > 0, pair.interval.high < 0)
            back = outcome.pair(pair.b, pair.a).lift
            assert back is not None
            assert back.turned() == Lift(approx(pair.lift.percent), approx(pair.lift.low), approx(pair.lift.high))


def test_no_lift_over_a_value_near_0_or_without_propensities() -> None:
    columns = make_columns()
    near = podium.compare(make_log(reward=columns["reward"] - 0.4), POLICIES, also=["cost"])
    assert near.pair("new", "current").lift is None
    assert near.outcomes["cost"].pair("new", "current").lift is not None
    unknown = podium.Log.from_columns({k: v for k, v in columns.items() if k != "propensity"}, also=["cost"])
    assert all(pair.lift is None for pair in podium.compare(unknown, POLICIES).pairs)
    assert all(entry["lift"] is None for entry in podium.compare(unknown, POLICIES).to_dict()["pairs"])


def test_practically_the_same() -> None:
    log = podium.Log.from_columns(make_columns(), also=["cost"])
    pair = podium.compare(log, POLICIES, difference=0.6).pair("new", "current")
    assert (pair.practically_the_same, pair.verdict) == (True, "better")
    assert pair.reasons == ("The whole interval lies within 0.6: practically the same",)
    pair = podium.compare(log, POLICIES, difference=0.05).pair("new", "current")
    assert (pair.practically_the_same, pair.reasons) == (False, ())
    assert podium.compare(log, POLICIES).pair("new", "current").practically_the_same is None
    assert fails(lambda: podium.compare(log, POLICIES, difference=0)) == (
        "difference must be a positive number; it is 0.0\n\n"
        "Hint: name the smallest difference in reward that would matter to you."
    )


def test_frames() -> None:
    result = podium.compare(make_log(), POLICIES, also=["cost:lower"])
    assert result.to_frame("outcomes")["outcome"].tolist() == ["cost"] * 3
    assert result.to_frame("pairs", "polars")["lift"].to_list() == [p.lift.percent for p in result.pairs if p.lift]
    assert result.to_frame("polars")["name"].to_list() == result.ranking
    assert fails(lambda: result.to_frame("outcome")) == (
        "unknown table 'outcome'\n\nHint: did you mean 'outcomes'? the tables are ranking, pairs, groups, outcomes."
    )
    assert fails(lambda: podium.compare(make_log(), POLICIES).to_frame("outcomes")) == (
        "the comparison has no outcomes beside the reward\n\nHint: name them with also=['cost:lower']."
    )


# --- the command and engines ---------------------------------------------------------------------------------------

GIVEN = ["--policy", "new=constant:b", "--policy", "current=constant:a"]


def write(path: Path, columns: dict[str, Any]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "log.csv", make_columns())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["compare", "log.csv", *GIVEN, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--also", "cost:lower")
    assert set(found["outcomes"]) == {"cost"}
    assert set(found["outcomes"]["cost"]) == {"policies", "pairs", "lower_is_better", "warnings"}
    assert found["outcomes"]["cost"]["policies"][0]["name"] == "current"
    assert found["log"]["state_columns"] == ["age"]
    assert set(found["pairs"][0]["lift"]) == {"percent", "low", "high"}
    assert main(["compare", "log.csv", *GIVEN, "--worth", "cost=-.2", "--verbose", "--html", "report.html"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Ranked by net worth, posterior" in out
    assert "Outcome cost (lower is better)" in out
    assert "Relative lift in net worth" in out
    page = (folder / "report.html").read_text()
    assert '<a href="#outcomes">Outcomes</a>' in page
    assert "Outcome reward (higher is better)" in page


def test_words_and_gaps_are_read_as_those_of_the_reward(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = make_columns()
    words = np.where(columns["cost"] > 1.2, "Yes", "No").astype(object)
    write(folder / "log.csv", {**columns, "cost": words})
    with_words = answer(capsys, "--also", "cost")["outcomes"]["cost"]["pairs"]
    write(folder / "log.csv", {**columns, "cost": (columns["cost"] > 1.2).astype(int)})
    assert with_words == answer(capsys, "--also", "cost")["outcomes"]["cost"]["pairs"]
    words[[3, 7]] = ""
    write(folder / "log.csv", {**columns, "cost": words})
    asked = ["compare", "log.csv", *GIVEN, "--also", "cost"]
    assert main(asked) == 2
    assert "column 'cost' must be a number; row 4 (line 5) holds nothing (2 rows)" in capsys.readouterr().err
    found = answer(capsys, "--also", "cost", "--drop-missing")
    assert found["log"]["rows"] == 298
    write(folder / "log.csv", {**columns, "cost": np.where(columns["cost"] > 1.2, "gold", "silver")})
    assert main(asked) == 2
    assert capsys.readouterr().err == (
        "podium: column 'cost' holds words, and which of them is a success is not known: "
        f"'gold' ({(columns['cost'] > 1.2).sum()} rows), 'silver' ({(columns['cost'] <= 1.2).sum()} rows)\n\n"
        "Hint: write the column as 1 and 0, such as 1 for 'silver' and 0 for every other value.\n"
    )


def test_the_command_refuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in {
        ("--also", "cots"): "the log has no column 'cots' for an outcome",
        ("--also", "reward"): "the column 'reward' is the reward, so it cannot be a further outcome",
        ("--worth", "cost"): "--worth 'cost' is not COLUMN=NUMBER",
        ("--worth", "cost=x"): "--worth 'cost=x' is not COLUMN=NUMBER",
        ("--also", "cost", "--episodes"): "--also cannot be used with --episodes",
        ("--worth", "cost=1", "--continuous"): "--worth cannot be used with --continuous",
    }.items():
        assert main(["compare", "log.csv", *GIVEN, *words]) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert error.startswith(f"podium: {message}\n\nHint: ")


@pytest.mark.parametrize("sample", ["300", "100"])
@pytest.mark.parametrize("words", [["--also", "cost:lower"], ["--worth", "cost=-.2"]])
def test_engines_agree(sample: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DuckDB in one pass over all rows, or in several, gives what memory gives."""
    in_memory = answer(capsys, *words, "--sample-rows", sample)
    scanned = answer(capsys, *words, "--sample-rows", sample, "--engine", "duckdb")
    assert (in_memory["sample"] is None) == (sample == "300")
    for found in (in_memory, scanned):
        assert list(found["outcomes"]) == (["cost"] if "--also" in words else ["reward", "cost"])
    pairs = [(in_memory["pairs"], scanned["pairs"])]
    pairs += [
        (in_memory["outcomes"][name]["pairs"], scanned["outcomes"][name]["pairs"]) for name in scanned["outcomes"]
    ]
    for one, other in pairs:
        for key in ("difference", "low", "high", "p_better"):
            assert [p[key] for p in one] == approx([p[key] for p in other], rel=1e-9)


def test_a_scanned_outcome_is_refused_before_anything_is_computed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = make_columns()
    write(folder / "log.csv", {**columns, "cost": ["", *columns["cost"][1:]]})
    for words in (["--also", "cost"], ["--worth", "cost=1"]):
        asked = ["compare", "log.csv", *GIVEN, *words, "--sample-rows", "100", "--engine", "duckdb"]
        assert main(asked) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            "podium: column 'cost' must be a finite number; row 1 (line 2) holds nan (1 row)\n\nHint"
        )
