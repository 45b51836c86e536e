"""The studio on logs of doses, of embeddings and of prompts: the same numbers as the command and Python."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from studio_visitor import Visitor, alerts, guessed, place

import podium
from podium.command.cli import main
from podium.data.columns import boxed
from podium.data.guesses import group, guess, look
from podium.studio.questions import Candidate, Question, role_problems

RNG = np.random.default_rng(2)
WEIGHT = RNG.normal(70, 12, 150).round(1)
DOSE = RNG.uniform(0, 10, 150).round(3)
EFFECT = (1 - ((DOSE - WEIGHT / 14) / 5) ** 2 + RNG.normal(0, 0.3, 150)).round(4)
DOSES = "weight,dose,outcome,density,planned\n" + "".join(
    f"{w},{d},{e},0.1,{w / 14:.2f}\n" for w, d, e in zip(WEIGHT, DOSE, EFFECT, strict=True)
)


def result_of(visitor: Visitor, workspace: str) -> dict[str, Any]:
    found: dict[str, Any] = visitor.get(f"{workspace}/answers/1/result.json").json()
    return found


def test_a_log_of_doses_becomes_an_answer(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = visitor.upload("doses.csv", DOSES)
    roles = {"weight": "state", "dose": "dose", "outcome": "reward", "density": "propensity", "planned": "state"}
    assert guessed(page) == roles
    assert "many different numbers: a dose, a price, an amount" in page.text
    page = visitor.accept_columns(page, planned="policy")
    assert "actions from " in page.text
    assert "By chance" not in page.text
    workspace = place(page)
    page = visitor.post(workspace + "/policies", {"kind": "constant", "value": "7,5"})
    assert "always 7.5" in page.text
    page = visitor.post(workspace + "/policies", {"kind": "logged"})
    answer = visitor.compare(workspace, estimator="SNIPS")
    assert "<h1" in answer.text
    found = result_of(visitor, workspace)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "doses.csv").write_text(DOSES)
    log = podium.continuous.read_log("doses.csv", state="weight", action="dose", reward="outcome", propensity="density")
    policies = {"planned": "column:planned", "always 7.5": 7.5, "logged": "logged"}
    wanted = podium.continuous.compare(log, policies, "SNIPS").to_dict()
    assert found["policies"] == json.loads(json.dumps(wanted["policies"]))
    assert found["pairs"] == json.loads(json.dumps(wanted["pairs"]))

    question = Question(
        "doses.csv",
        headers=("weight", "dose", "outcome", "density", "planned"),
        roles={**roles, "planned": "policy"},
        candidates=(Candidate("planned", "column", "planned"), Candidate("always 7.5", "constant", "7.5")),
        estimator="SNIPS",
    )
    command = question.command()
    assert command == (
        "podium compare ./doses.csv \\\n  --policy planned=column:planned \\\n  --policy 'always 7.5=constant:7.5' \\\n"
        "  --continuous \\\n  --state weight \\\n  --action dose \\\n  --reward outcome \\\n  --propensity density \\\n"
        "  --estimator SNIPS"
    )
    assert main([*shlex.split(command.replace("\\\n", ""))[1:], "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)["policies"]
    exec(question.code().replace("print(result)", "").replace('result.report("report.html")', ""), scope := {})
    assert by_command == json.loads(json.dumps(scope["result"].to_dict()["policies"]))
    assert "podium.continuous.read_log(" in question.code()


def test_what_is_refused_of_numbers(visitor: Visitor) -> None:
    page = visitor.accept_columns(visitor.upload("doses.csv", DOSES))
    workspace = place(page)
    page = visitor.post(workspace + "/policies", {"kind": "constant", "value": "much"})
    assert alerts(page) == "the constant must be a number write digits, as in 0.5."
    page = visitor.post(workspace + "/policies", {"kind": "uniform"})
    assert alerts(page) == "that policy is for actions that can be listed choose one from the page."


def test_without_densities_the_page_says_so(visitor: Visitor) -> None:
    lines = [line.split(",") for line in DOSES.splitlines()]
    content = "\n".join(",".join((*cells[:3], cells[4])) for cells in lines)
    page = visitor.accept_columns(visitor.upload("doses.csv", content))
    assert "does not say with which density each number was drawn" in page.text
    assert "What was done until now" not in page.text


def test_roles_of_doses_that_contradict_each_other() -> None:
    question = Question("log.csv", headers=("x", "a", "b", "reward", "density"))
    roles = {"x": "state", "a": "dose", "b": "action", "reward": "reward", "density": "ignore"}
    assert role_problems(question, roles, 10) == [
        "Only one column can be the action; you chose a, b.",
        "A column called density is always read as the propensity of such actions, or as state; rename it in the file "
        "to leave it out.",
    ]


def test_an_embedding_is_one_column_of_the_page(visitor: Visitor, tmp_path: Path) -> None:
    vectors = RNG.normal(size=(60, 12)).round(4)
    prompts = [f"please write {'a very ' * 9}long text number {i}" for i in range(60)]
    table = {
        "embedding": vectors.tolist(),
        "prompt": prompts,
        "topic": ["xyz"[i % 3] for i in range(60)],
        "action": ["ab"[i % 2] for i in range(60)],
        "reward": RNG.random(60).round(3).tolist(),
    }
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    page = visitor.upload("log.parquet", (tmp_path / "log.parquet").read_bytes())
    assert guessed(page) == {
        "embedding": "state", "prompt": "ignore", "topic": "state", "action": "action", "reward": "reward",
    }  # fmt: skip
    assert "a list of 12 numbers" in page.text
    page = visitor.accept_columns(page)
    assert "State: embedding (12 columns), topic" in page.text
    assert "choose the role State for it in the step Columns" in page.text
    workspace = place(page)
    for action in "ab":
        visitor.post(workspace + "/policies", {"kind": "constant", "value": action})
    visitor.compare(workspace)
    log = podium.read_log(tmp_path / "log.parquet")
    wanted = podium.compare(log, {"always a": "constant:a", "always b": "constant:b"}).to_dict()
    assert result_of(visitor, workspace)["policies"] == json.loads(json.dumps(wanted["policies"]))


def test_lists_and_long_texts_as_arguments() -> None:
    question = Question(
        "log.csv",
        headers=("e[0]", "e[1]", "e[2]", "e[3]", "note", "x", "action", "reward"),
        roles={"e": "state", "note": "ignore", "x": "state", "action": "action", "reward": "reward"},
        prose=("note",),
    )
    assert question.reading() == {}
    without = Question(**{**vars(question), "roles": {**question.roles, "x": "ignore"}})
    assert without.reading() == {"state": ["e"]}
    named = Question(**{**vars(question), "roles": {**question.roles, "note": "state"}})
    assert named.reading() == {"state": ["e", "note", "x"]}


def test_items_with_numbers_for_names_are_no_doses() -> None:
    facts = [look("action", np.arange(300) % 120), look("reward", np.arange(300) % 7), look("x", boxed(["a"] * 300))]
    assert {f.header: f.role for f in guess(group(facts))} == {"action": "action", "reward": "reward", "x": "state"}
