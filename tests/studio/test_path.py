"""The whole path from a dropped file to the downloads, as somebody without scripts walks it."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio_visitor import LOG, Form, Visitor, alerts, guessed, place

import podium
from podium.outputs.display import number
from podium.worlds.simulator import Programme


def result_of(visitor: Visitor, workspace: str, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = visitor.get(f"{workspace}/answers/{number}/result.json").json()
    return found


def test_a_csv_becomes_an_answer(visitor: Visitor) -> None:
    page = visitor.upload("log.csv", LOG)
    assert page.status_code == 200
    assert guessed(page) == {
        "age": "state",
        "city": "state",
        "action": "action",
        "reward": "reward",
        "propensity": "propensity",
        "pi_new": "policy",
        "pi_old": "policy",
    }
    page = visitor.accept_columns(page)
    assert "The log has 60 rows" in page.text
    page = visitor.compare(place(page))
    assert "<h1" in page.text
    assert result_of(visitor, place(page))["policies"][0]["name"] == "new"
    report = visitor.get(place(page) + "/answers/1/report")
    assert "default-src 'none'" in report.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in report.headers["content-security-policy"]
    assert "sandbox allow-scripts" in report.headers["content-security-policy"]
    assert report.text.startswith("<!doctype html>")


def test_the_example_is_one_click_away(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.post("/example")
    assert set(guessed(page).values()) == {"time", "state", "action", "reward", "propensity", "policy"}
    page = visitor.compare(place(visitor.accept_columns(page)))
    path = tmp_path / "log.csv"
    Programme().draw().write_csv(path)
    ours = podium.compare(podium.read_log(path)).to_dict()
    assert result_of(visitor, place(page))["policies"] == json.loads(json.dumps(ours["policies"]))
    assert visitor.get(place(page) + "/log").content == path.read_bytes()


def test_parquet_and_json_lines_give_the_same_answer(visitor: Visitor, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = list(csv.DictReader(io.StringIO(LOG)))
    typed = [{k: float(v) if k not in ("city", "action") else v for k, v in row.items()} for row in rows]
    parquet.write_table(pa.Table.from_pylist(typed), tmp_path / "log.parquet")
    lines = "\n".join(json.dumps(row) for row in typed)
    answers = []
    for name, content in (
        ("log.csv", LOG.encode()),
        ("log.parquet", (tmp_path / "log.parquet").read_bytes()),
        ("log.jsonl", lines.encode()),
    ):
        workspace = visitor.prepare(name, content)
        visitor.compare(workspace)
        answers.append(result_of(visitor, workspace)["policies"])
    assert answers[0] == answers[1] == answers[2]


def test_every_kind_of_policy_and_the_same_numbers_by_command_and_code(visitor: Visitor, tmp_path: Path) -> None:
    """The downloads are run where a stranger would run them: in a folder that holds the files."""
    name = "-my 'log' $(x).csv"
    text = LOG.replace("city", "the city").replace("action", "what we did").replace("reward", "cost")
    workspace_page = visitor.upload(name, text)
    assert guessed(workspace_page)["cost"] == "reward"
    page = visitor.accept_columns(
        workspace_page, **{"what we did": "action", "age": "ignore", "the city": "state", "propensity": "propensity"}
    )
    workspace = place(page)
    table = "the city,x,y,z\na,0.5,0.25,0.25\nb,0,1,0\n"
    for form in ({"kind": "uniform", "name": "by chance"}, {"kind": "logged"}, {"kind": "constant", "value": "y"}):
        page = visitor.post(workspace + "/policies", form)
        assert page.status_code == 200, alerts(page)
    page = visitor.post(
        workspace + "/policies", {"kind": "file", "name": "-from file"}, files={"file": ("a b.csv", table.encode())}
    )
    assert "file a b.csv" in page.text
    page = visitor.post(workspace + "/policies", {"remove": "old"})
    assert "pi_old" not in "".join(t for t in Form(page.text).texts if "column" in t)
    settings = {"estimator": "LDE", "baseline": "number", "baseline-number": "-0.25", "level": "90", "lower": "1"}
    page = visitor.compare(workspace, **settings)
    assert page.status_code == 200, alerts(page)
    wanted = result_of(visitor, workspace)
    assert {p["name"] for p in wanted["policies"]} == {"new", "by chance", "logged", "always y", "-from file"}
    assert wanted["settings"]["lower_is_better"] is True
    assert wanted["settings"]["baseline"] == "-0.25"

    (tmp_path / name).write_text(text)
    (tmp_path / "a b.csv").write_text(table)
    command = visitor.get(workspace + "/answers/1/compare.sh").text
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "podium"
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == wanted

    code = visitor.get(workspace + "/answers/1/compare.py").text
    script = tmp_path / "script.py"
    script.write_text(code + "import json\nprint('JSON' + json.dumps(result.to_dict()))\n")
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.rpartition("JSON")[2]) == wanted
    assert (tmp_path / "report.html").exists()


def test_the_command_runs_in_a_real_shell(visitor: Visitor, tmp_path: Path) -> None:
    name = "a;touch pwned;'$(touch pwned)`touch pwned`.csv"
    workspace = visitor.prepare(name)
    visitor.compare(workspace)
    (tmp_path / name).write_text(LOG)
    command = visitor.get(workspace + "/answers/1/compare.sh").text.replace("podium", f"{sys.executable} -m podium", 1)
    done = subprocess.run(["sh", "-c", command.strip() + " --json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == result_of(visitor, workspace)
    assert not (tmp_path / "pwned").exists()


def test_other_settings_change_the_answer_and_the_page_says_how(visitor: Visitor) -> None:
    workspace = place(visitor.accept_columns(visitor.post("/example")))
    visitor.compare(workspace)
    page = visitor.compare(workspace, estimator="DiM", baseline="mean", level="99.9")
    assert "Ranked by DiM instead of posterior." in page.text
    assert "No longer decided:" in page.text
    first, second = result_of(visitor, workspace, 1), result_of(visitor, workspace, 2)
    assert first["settings"]["estimator"] == "posterior"
    assert second["settings"]["estimator"] == "DiM"
    assert second["settings"]["level"] == 0.999
    page = visitor.compare(workspace, estimator="LDE", baseline="linear", level="95")
    assert result_of(visitor, workspace, 3)["settings"]["baseline"] == "linear"


def test_bad_rows_are_told_where_roles_are_chosen(visitor: Visitor) -> None:
    page = visitor.upload("log.csv", "state,action,reward\n1,a,1\n2,b,oops\n3,a,2\n")
    page = visitor.accept_columns(page, reward="reward", state="state")
    assert page.status_code == 422
    assert str(page.url).endswith("/columns")
    assert "column 'reward' must be a number; row 2 (line 3) holds 'oops' (1 row)" in alerts(page)


def test_numbers_that_are_names_can_be_read_as_names(visitor: Visitor) -> None:
    text = "state,action,reward\n" + "".join(f"{i % 3},{['1', '2', 'x'][i % 3]},{i}\n" for i in range(9))
    page = visitor.upload("log.csv", text)
    page = visitor.accept_columns(page)
    assert "tick 'names' for that column" in alerts(page)
    roles = {f"role-{i}": role for i, role in enumerate(("state", "action", "reward"))}
    page = visitor.post(place(page) + "/columns", {**roles, "text-1": "1"})
    assert str(page.url).endswith("/policies"), alerts(page)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"reward": "state"}, "Choose the column that holds the reward."),
        ({"age": "action"}, "Only one column can be the action; you chose age, action."),
        ({"age": "ignore", "city": "ignore"}, "Choose at least one state column: what was known before acting."),
        ({"propensity": "ignore"}, "A column called propensity is always read as the propensity, or as state"),
        ({"age": "pickle"}, "that is no role of a column"),
    ],
)
def test_roles_that_cannot_be_are_refused(guest: Any, changes: dict[str, str], complaint: str) -> None:
    page = guest.get(guest.spare)
    usual = ("state", "state", "action", "reward", "propensity", "policy", "policy")
    page = guest.accept_columns(page, **{**dict(zip(guessed(page), usual, strict=True)), **changes})
    assert page.status_code == 422
    assert complaint in alerts(page)


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"kind": "constant", "value": "no such"}, "the log knows no such action"),
        ({"kind": "column", "value": "no such"}, "there is no such column"),
        ({"kind": "sql", "value": "SELECT 1"}, "that is no kind of policy"),
        ({"kind": "os:system"}, "that is no kind of policy"),
        ({"kind": "uniform", "name": "new"}, "there is a policy called new already"),
        ({"kind": "uniform", "name": "a=b"}, "no equals sign"),
        ({"kind": "uniform", "name": "x" * 101}, "at most 100"),
        ({"kind": "file"}, "choose the policy's file first"),
    ],
)
def test_policies_that_cannot_be_are_refused(guest: Any, form: dict[str, str], complaint: str) -> None:
    page = guest.post(guest.good + "/policies", form)
    assert page.status_code == 422
    assert complaint in alerts(page)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"estimator": "os:system"}, "no method of the studio"),
        ({"estimator": "", "baseline": "os:system"}, "no method of the studio"),
        ({"estimator": "", "baseline": "number", "baseline-number": "inf"}, "must be a number"),
        ({"estimator": "", "level": "100"}, "the level must lie between"),
        ({"estimator": "", "level": "nan"}, "must be a number"),
    ],
)
def test_settings_that_cannot_be_are_refused(guest: Any, settings: dict[str, str], complaint: str) -> None:
    page = guest.post(guest.good + "/compare", settings)
    assert page.status_code == 422
    assert complaint in alerts(page)


def test_one_policy_is_not_compared(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    page = visitor.post(workspace + "/policies", {"remove": "old"})
    assert "disabled" in page.text
    assert "a comparison needs at least two policies" in alerts(visitor.post(workspace + "/compare"))


def test_an_error_of_a_policy_is_told_with_the_answer(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    table = b"x,y,z\n0.5,0.5,0.5\n0.5,0.5,0.5\n"
    visitor.post(workspace + "/policies", {"kind": "file"}, files={"file": ("mine.csv", table)})
    page = visitor.post(workspace + "/compare")
    assert page.status_code == 422
    assert "policy 'mine': its table has 2 rows; the log has 60 rows" in alerts(page)


def test_a_log_can_be_forgotten(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    assert "log.csv" in visitor.get("/").text
    page = visitor.post(workspace + "/forget")
    assert page.url.path == "/"
    assert visitor.get(workspace + "/columns").status_code == 404
    assert "log.csv" not in visitor.get("/").text


def test_unit_and_time_reach_podium(visitor: Visitor) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"2024-01-{i % 28 + 1:02},u{i % 7},{i % 4},{'ab'[i % 2]},{rng.random():.3f},{'ab'[i % 3 % 2]}"
        for i in range(80)
    ]
    page = visitor.upload("log.csv", "\n".join(["date,user_id,x,action,reward,rule", *lines]))
    roles = guessed(page)
    assert roles == {
        "date": "time", "user_id": "unit", "x": "state", "action": "action", "reward": "reward", "rule": "policy"
    }  # fmt: skip
    workspace = place(visitor.accept_columns(page))
    visitor.post(workspace + "/policies", {"kind": "uniform"})
    page = visitor.compare(workspace)
    assert result_of(visitor, workspace)["settings"]["unit"] == "user_id"
    assert "--unit user_id" in visitor.get(workspace + "/answers/1/compare.sh").text


def test_propensities_that_the_log_lacks_can_be_estimated(visitor: Visitor, tmp_path: Path) -> None:
    """What was done until now becomes a candidate, "estimated" stands everywhere, and the command says the same."""
    rows = list(csv.reader(io.StringIO(LOG)))
    text = "".join(",".join(row[:4] + row[5:6]) + "\n" for row in rows)
    workspace = visitor.prepare("log.csv", text)
    page = visitor.get(workspace + "/policies")
    assert "Estimate it" in page.text
    assert "Add what was logged" not in page.text
    page = visitor.post(workspace + "/policies", {"behavior": "estimate"})
    assert "Add what was logged" in page.text
    visitor.post(workspace + "/policies", {"kind": "logged", "name": "now"})
    page = visitor.compare(workspace)
    assert "estimated propensities (believable)" in page.text
    assert "estimate them from the log" in page.text
    assert result_of(visitor, workspace)["log"]["propensities"] == "estimated"
    report = visitor.get(workspace + "/answers/1/report.html").text
    assert "Calibration of the estimate" in report
    (tmp_path / "log.csv").write_text(text)
    command = visitor.get(workspace + "/answers/1/compare.sh").text
    parts = [sys.executable, "-m", *shlex.split(command.replace("\\\n", " ")), "--json"]
    done = subprocess.run(parts, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["policies"] == result_of(visitor, workspace)["policies"]

    visitor.post(workspace + "/policies", {"kind": "uniform"})
    settings = {"estimator": "", "baseline": "mean", "level": "95"}
    page = visitor.compare(workspace, **settings, behavior="")
    assert [p["name"] for p in result_of(visitor, workspace, 2)["policies"]] == ["new", "uniform"]
    page = visitor.compare(workspace, **settings, behavior="estimate")
    assert "Propensities: estimated instead of none." in page.text
    page = visitor.post(workspace + "/compare", {**settings, "behavior": "os:system"})
    assert "that is no way to have propensities" in alerts(page)


def test_propensities_of_the_log_are_never_replaced(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    assert "Estimate it" not in visitor.get(workspace + "/policies").text
    page = visitor.post(workspace + "/policies", {"behavior": "estimate"})
    assert "the log has propensities, so they are not estimated" in alerts(page)
    assert visitor.compare(workspace).status_code == 200


def leaked(rows: int = 300) -> str:
    """A log with a column that was written after the action, which follows it."""
    rng = np.random.default_rng(0)
    age, action = rng.integers(20, 25, rows), rng.integers(0, 2, rows)
    reward = 0.5 * action + rng.normal(size=rows)
    noted = np.round(action + 0.3 * rng.normal(size=rows), 3)
    lines = zip(age, noted, action, np.round(reward, 3), strict=True)
    return "age,noted,action,reward,propensity\n" + "".join(f"{a},{n},{'xy'[x]},{r},0.5\n" for a, n, x, r in lines)


def test_a_leaked_column_is_named_with_the_remedy_of_the_page(visitor: Visitor, quick: None) -> None:
    """Before the comparison and after it, beside the columns that were taken as state."""
    page = visitor.accept_columns(visitor.upload("log.csv", leaked()))
    remedy = "Compare without it (choose &#39;Leave out&#39; for it in the step Columns)"
    workspace = place(page)
    for value in ("x", "y"):
        visitor.post(workspace + "/policies", {"kind": "constant", "value": value})
    for shown in (visitor.get(workspace + "/policies"), visitor.compare(workspace)):
        assert "State: age, noted (2 columns)." in shown.text
        assert "<strong>Please check:</strong> column &#39;noted&#39; is related to the logged action" in shown.text
        assert remedy in shown.text
        assert "--state age" not in shown.text.split("The same without the studio")[0]
    assert "Why podium cannot tell:" in shown.text
    assert "P(best) is not available: the pairs that podium can judge do not connect all policies." in shown.text
    assert "<meter" not in shown.text
    page = visitor.accept_columns(visitor.get(workspace + "/columns"), noted="ignore")
    assert "State: age (1 column)." in page.text
    assert "Please check" not in page.text
    assert "<meter" in visitor.compare(workspace).text


def test_the_answer_shows_the_interval_that_decides(visitor: Visitor, quick: None) -> None:
    rng = np.random.default_rng(1)
    columns = zip(rng.integers(0, 3, 120), rng.integers(0, 8, 120), rng.normal(size=120), strict=True)
    lines = "".join(f"{state},{'abcdefgh'[a]},{r:.3f},0.125\n" for state, a, r in columns)
    workspace = visitor.prepare("log.csv", "s,action,reward,propensity\n" + lines)
    for value in "abcdefgh":
        visitor.post(workspace + "/policies", {"kind": "constant", "value": value})
    page = visitor.compare(workspace, estimator="", baseline="mean", level="80", joint="1")
    result = result_of(visitor, workspace)
    opened = [p for p in result["pairs"] if p["low"] > 0 and p["verdict"] == "cannot tell"]
    assert opened
    assert "adjusted interval</th>" in page.text
    assert "The adjusted interval decides: a claim needs one that excludes 0. It allows for 28 pairs." in page.text
    assert result["settings"]["multiplicity"] in page.text
    for p in opened:
        assert p["adjusted_low"] <= 0
        assert f"{number(p['adjusted_low'], 3)} to {number(p['adjusted_high'], 3)}</td>" in page.text
    table = csv.DictReader(io.StringIO(visitor.get(workspace + "/answers/1/pairs.csv").text))
    assert float(next(table)["adjusted_low"]) == result["pairs"][0]["adjusted_low"]
