"""`--continuous`: the command gives Python's numbers on logs of doses, and refuses what does not apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.command.cli import main
from podium.continuous import ContinuousLog, compare, evaluate, read_log
from podium.continuous.specs import FORMS

RNG = np.random.default_rng(5)
WEIGHT = RNG.normal(70, 12, 200).round(1)
DOSE = RNG.uniform(0, 10, 200).round(3)
EFFECT = (1 - ((DOSE - WEIGHT / 14) / 5) ** 2 + RNG.normal(0, 0.3, 200)).round(4)
ROLES = ["--continuous", "--action", "dose", "--reward", "effect", "--state", "weight"]
PYTHON = {"action": "dose", "reward": "effect", "state": "weight"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cells = enumerate(zip(WEIGHT, DOSE, EFFECT, strict=True))
    lines = [f"{w},{d},{e},0.1,{w / 14:.2f},p{i % 50}" for i, (w, d, e) in cells]
    (tmp_path / "doses.csv").write_text("weight,dose,effect,density,planned,patient\n" + "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) in (0, 3, 4)
    return json.loads(capsys.readouterr().out)


def same(found: Any, wanted: Any) -> None:
    """Equal as JSON."""
    assert found == json.loads(json.dumps(wanted))


def test_the_command_gives_the_numbers_of_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ["by weight=sql:weight / 14", "seven=constant:7", "now=logged", "planned=column:planned"]
    given = [x for policy in policies for x in ("--policy", policy)]
    options = ["--baseline", "linear", "--verdicts", "paired t", "--kernel", "gaussian", "--bandwidth", "1.5"]
    found = asked(capsys, "compare", "doses.csv", *ROLES, "--unit", "patient", *given, *options)
    log = ContinuousLog(WEIGHT, DOSE, EFFECT, np.full(200, 0.1), units=[f"p{i % 50}" for i in range(200)])
    plain = {"by weight": lambda w: w / 14, "seven": 7.0, "now": "logged", "planned": (WEIGHT / 14).round(2)}
    wanted = log.compare(plain, baseline="linear", verdicts="paired t", kernel="gaussian", bandwidth=1.5).to_dict()
    for mine, theirs in zip(found["policies"], wanted["policies"], strict=True):
        assert (mine["name"], mine["rank"]) == (theirs["name"], theirs["rank"])
        assert mine["estimates"] == pytest.approx(theirs["estimates"], rel=1e-12)
    for mine, theirs in zip(found["pairs"], wanted["pairs"], strict=True):
        for key in ("a", "b", "verdict"):
            assert mine[key] == theirs[key]
        for key in ("difference", "low", "high", "p_better"):
            assert mine[key] == pytest.approx(theirs[key], rel=1e-9)
    assert found["settings"]["kernel"] == "gaussian"
    assert found["settings"]["bandwidth"] == [1.5]


def test_the_same_specs_in_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, policies = read_log("doses.csv", **PYTHON), {"rule": "sql:weight / 14", "seven": "constant:7"}
    given = ["--policy", "rule=sql:weight / 14", "--policy", "seven=constant:7"]
    found = asked(capsys, "compare", "doses.csv", *ROLES, *given)
    wanted = compare(log, policies).to_dict()
    same(found["policies"], wanted["policies"])
    same(found["pairs"], wanted["pairs"])
    found = asked(capsys, "evaluate", "doses.csv", *ROLES, *given, "--estimator", "SNIPS", "--estimator", "DRE")
    same(found["policies"], evaluate(log, policies, ["SNIPS", "DRE"]).to_dict()["policies"])


def test_python_objects_and_bare_columns_are_policies(folder: Path) -> None:
    (folder / "dose_rules.py").write_text("def by_weight(weight):\n    return weight / 14\n")
    log = read_log("doses.csv", **PYTHON)
    assert log.chosen("p", "planned").ravel() == pytest.approx((WEIGHT / 14).round(2))
    assert log.chosen("p", "dose_rules:by_weight").ravel() == pytest.approx(WEIGHT / 14)


def test_a_model_file_is_a_policy(folder: Path) -> None:
    from sklearn.linear_model import LinearRegression
    from skops import io

    model = LinearRegression().fit(WEIGHT[:, None], WEIGHT / 14)
    io.dump(model, "model.skops")
    log = ContinuousLog(WEIGHT[:, None], DOSE, EFFECT)
    assert log.chosen("p", "model.skops").ravel() == pytest.approx(WEIGHT / 14)


def test_gate_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policy", "rule=sql:weight / 14", "--policy", "one=constant:1", "--estimator", "SNIPS"]
    claims = ["--verdicts", "paired t", "--html", "report.html"]
    assert main(["compare", "doses.csv", *ROLES, *options, *claims, "--gate", "rule > one"]) == 0
    assert "Gate 'rule > one': holds" in capsys.readouterr().out
    assert main(["compare", "doses.csv", *ROLES, *options, *claims, "--gate", "one > rule"]) == 4
    assert "smoothed by the epanechnikov kernel" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_column_called_density_holds_the_densities(folder: Path) -> None:
    log = read_log("doses.csv", action="dose", reward="effect")
    assert np.asarray(log.densities).tolist() == [0.1] * 200
    assert list(log.log.state_columns) == ["weight", "planned", "patient"]
    assert read_log("doses.csv", action="dose", reward="effect", state="density").densities is None


def test_long_texts_are_left_out_and_said(folder: Path) -> None:
    notes = [f"patient {i} said that the dose of last week was about right" for i in range(200)]
    table = {"weight": WEIGHT, "note": notes, "action": DOSE, "reward": EFFECT, "density": np.full(200, 0.1)}
    result = ContinuousLog.from_frame(table).compare({"a": 1.0, "b": 7.0})
    assert [w for w in result.warnings if "long texts" in w] == [
        "column 'note' holds long texts (median: 58 characters), so it is not part of the state. To include it: "
        "--state weight --state note"
    ]


TWO = ["--policy", "a=constant:1", "--policy", "b=constant:2"]
REFUSED: dict[str, tuple[list[str], str, str]] = {
    "check": (
        ["check", "doses.csv", "--continuous"],
        "podium check cannot be used with --continuous: it is for actions that can be listed",
        "use podium compare or podium evaluate.",
    ),
    "plan": (
        ["plan", "doses.csv", "--continuous", "--difference", "1"],
        "podium plan cannot be used with --continuous: it is for actions that can be listed",
        "use podium compare or podium evaluate.",
    ),
    "bandwidth alone": (
        ["compare", "doses.csv", "--bandwidth", "1"],
        "--bandwidth needs --continuous",
        "see podium compare --help.",
    ),
    "kernel alone": (
        ["evaluate", "doses.csv", "--kernel", "gaussian"],
        "--kernel needs --continuous",
        "see podium evaluate --help.",
    ),
    "no policies": (
        ["compare", "doses.csv", *ROLES],
        "no policies to compare",
        f"give each with --policy NAME=SPEC; a SPEC is one of {FORMS}.",
    ),
    "no name": (
        ["compare", "doses.csv", *ROLES, "--policy", "constant:2"],
        "--policy 'constant:2' is not NAME=SPEC",
        f"a SPEC is one of {FORMS}.",
    ),
    "uniform": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=uniform"],
        "policy 'a': 'uniform' is for actions that can be listed, and these are numbers",
        f"a SPEC is one of {FORMS}.",
    ),
    "a file of probabilities": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=doses.csv"],
        "policy 'a': 'doses.csv' is for actions that can be listed, and these are numbers",
        f"a SPEC is one of {FORMS}.",
    ),
    "unknown": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=nothing"],
        "unknown policy 'nothing'",
        f"a SPEC is one of {FORMS}; or name a column of the log.",
    ),
    "no number": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=constant:much"],
        "policy 'a': 'much' is not a number",
        "write constant:2.5.",
    ),
    "no column": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=column:x"],
        "policy 'a': the log has no column 'x'",
        "the columns are weight, dose, effect, density, planned, patient.",
    ),
    "a column of texts": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=column:patient"],
        "policy 'a': column 'patient' must be a number; row 1 holds 'p0' (200 rows)",
        "the column holds the number that the policy chooses in each row.",
    ),
    "SQL with a gap": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=sql:CASE WHEN weight > 70 THEN 1.5 END"],
        f"policy 'a' must choose an action in every row; row {int(np.argmax(WEIGHT <= 70)) + 1} holds nothing "
        f"({int((WEIGHT <= 70).sum())} rows)",
        "add an ELSE to the CASE.",
    ),
    "SQL that chooses names": (
        ["compare", "doses.csv", *ROLES, "--policy", "a=sql:'high'"],
        "policy 'a' must choose numbers; it gives object",
        "a policy is a number or a point, an array of chosen actions, a function of the states, or an object with "
        "predict.",
    ),
    "actions that are names": (
        ["compare", "doses.csv", "--continuous", "--action", "patient", "--reward", "effect", *TWO],
        "column 'patient' must be a number; row 1 holds 'p0' (200 rows)",
        "an action is a finite number, or a row of them; labels belong to podium.Log.",
    ),
    "a behavior policy": (
        ["compare", "doses.csv", *ROLES, *TWO, "--behavior", "uniform"],
        "--behavior has no meaning with --continuous",
        "see podium compare --help.",
    ),
    "several loggers": (
        ["compare", "doses.csv", *ROLES, *TWO, "--logged-by", "a=uniform"],
        "--logged-by has no meaning with --continuous",
        "see podium compare --help.",
    ),
    "a list of actions": (
        ["evaluate", "doses.csv", *ROLES, *TWO, "--actions", "1,2"],
        "--actions has no meaning with --continuous",
        "see podium evaluate --help.",
    ),
    "eligible actions": (
        ["compare", "doses.csv", *ROLES, *TWO, "--eligible", "planned"],
        "--eligible has no meaning with --continuous",
        "see podium compare --help.",
    ),
    "action features": (
        ["compare", "doses.csv", *ROLES, *TWO, "--action-features", "doses.csv"],
        "--action-features has no meaning with --continuous",
        "see podium compare --help.",
    ),
    "a cost": (
        ["evaluate", "doses.csv", *ROLES, *TWO, "--cost", "1=2.5"],
        "--cost has no meaning with --continuous",
        "see podium evaluate --help.",
    ),
    "episodes": (
        ["compare", "doses.csv", *ROLES, *TWO, "--episodes"],
        "--episodes and --continuous exclude each other",
        "leave --continuous out: actions of episodes may be numbers.",
    ),
    "an engine": (
        ["compare", "doses.csv", *ROLES, *TWO, "--engine", "duckdb"],
        "continuous actions are compared in memory, and --engine names duckdb",
        "leave --engine out, and give one file.",
    ),
    "a bandwidth of 0": (
        ["compare", "doses.csv", *ROLES, *TWO, "--bandwidth", "0"],
        "bandwidth must be a number above 0, or one per coordinate; it is 0.0",
        "leave it out for Silverman's rule, and try half and twice of it.",
    ),
    "duplicates": (
        ["evaluate", "doses.csv", *ROLES, *TWO, "--duplicates", "all"],
        "--duplicates has no meaning with --continuous",
        "see podium evaluate --help.",
    ),
    "a normalization": (
        ["evaluate", "doses.csv", *ROLES, *TWO, "--normalize", "states"],
        "--normalize has no meaning with --continuous",
        "see podium evaluate --help.",
    ),
    "no file": (["compare", "", *ROLES, *TWO], "the name of the log is empty", "name a file."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_whole_and_write_nothing(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message, hint = REFUSED[case]
    before = sorted(folder.iterdir())
    more = ["--html", "report.html"] if arguments[0] == "compare" else []
    assert main([*arguments, *more]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"podium: {message}\n\nHint: {hint}\n"
    assert printed.out == ""
    assert sorted(folder.iterdir()) == before
