"""Columns are guessed from their names and from what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.data.errors import PodiumError
from podium.data.guesses import Facts, group, guess, is_cost
from podium.studio.limits import Limits
from podium.studio.questions import Question
from podium.studio.reading import survey

LIMITS = vars(Limits())


def facts_of(folder: Path, text: str) -> list[Facts]:
    path = folder / "log.csv"
    path.write_text(text)
    return guess(group(survey(path, LIMITS)[0]))


def roles(folder: Path, header: str, rows: list[str]) -> dict[str, str]:
    return {f.header: f.role for f in facts_of(folder, "\n".join([header, *rows]))}


@pytest.mark.parametrize(
    ("header", "rows", "expected"),
    [
        (
            "timestamp,user_id,treatment,clicked,pscore",
            ["1,u1,a,0,0.5", "2,u1,b,1,0.5", "3,u2,a,1,0.25", "4,u2,a,0,0.1"],
            ["time", "unit", "action", "reward", "propensity"],
        ),
        ("id,age,arm,Revenue", ["1,3,x,0.5", "2,4,y,2", "3,3,x,3"], ["ignore", "state", "action", "reward"]),
        (  # a propensity above 1 is none
            "x,action,reward,prob",
            ["1,a,1,7", "2,b,2,8", "1,a,3,9"],
            ["state", "action", "reward", "state"],
        ),
        (  # values that are all actions: what a policy would choose
            "x,action,rule,reward",
            ["1,a,b,1", "2,b,b,0", "1,a,a,1"],
            ["state", "action", "policy", "reward"],
        ),
        ("group,value,score", ["a,1,0.5", "b,2,0.7", "a,3,0.9"], ["action", "state", "reward"]),  # no name helps
        (  # where an action was possible is read by its name, and is no state
            "x,eligible:a,eligible:b,action,reward",
            ["1,1,1,a,2", "2,0,1,b,3", "1,1,0,a,1"],
            ["state", "ignore", "ignore", "action", "reward"],
        ),
        ("x,empty,action,reward", ["1,,a,2", "2,,b,3", "1,,a,1"], ["state", "ignore", "action", "reward"]),
    ],
)
def test_roles(tmp_path: Path, header: str, rows: list[str], expected: list[str]) -> None:
    assert list(roles(tmp_path, header, rows).values()) == expected


def test_full_distributions_are_one_policy(tmp_path: Path) -> None:
    header = "x,action,reward,propensity,propensity:a,propensity:b,pi_new:a,pi_new:b,pi_old,pi_old:a,pi_old:b,age:group"
    found = facts_of(tmp_path, f"{header}\n1,a,1,0.5,0.5,0.5,0,1,0.5,0.5,0.5,7\n2,b,1,0.5,0.5,0.5,0,1,0.5,0.5,0.5,8\n")
    assert {f.header: (f.role, f.parts) for f in found if f.parts} == {
        "propensity": ("propensity", ("propensity:a", "propensity:b")),
        "pi_new": ("policy", ("pi_new:a", "pi_new:b")),
        "pi_old": ("policy", ("pi_old:a", "pi_old:b")),
    }
    assert [f.role for f in found if f.header == "age:group"] == ["state"]


def test_propensities_may_have_another_name_than_the_whole_distribution(tmp_path: Path) -> None:
    header = "x,action,reward,pscore,propensity:a,propensity:b"
    found = facts_of(tmp_path, f"{header}\n1,a,1,0.4,0.4,0.6\n2,b,1,0.6,0.4,0.6\n")
    assert {f.header: f.role for f in found if f.role == "propensity"} == dict.fromkeys(
        ["pscore", "propensity"], "propensity"
    )
    question = Question("log.csv", headers=tuple(header.split(",")), roles={f.header: f.role for f in found})
    assert question.reading() == {"propensity": "pscore"}  # the states are what podium takes by itself


def test_long_texts_that_begin_alike_are_not_taken_for_actions(tmp_path: Path) -> None:
    long = "x" * 80
    rows = [f"{long}{i % 3},{long}{i % 2},{i}" for i in range(9)]
    assert list(roles(tmp_path, "note,action,reward", rows).values()) == ["state", "action", "reward"]


def test_a_cost_is_known_by_its_name() -> None:
    assert is_cost("total_cost")
    assert not is_cost("costume")
    assert not is_cost(None)


def test_lines_may_end_in_carriage_returns_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"age,action,reward\r1,a,2\r2,b,3\r")
    assert [facts.header for facts in survey(path, LIMITS)[0]] == ["age", "action", "reward"]
    with pytest.raises(PodiumError, match="the file has about 3 rows; this studio takes 2"):
        survey(path, {**LIMITS, "rows": 2})


def test_a_number_beyond_every_float_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"age": {10**400}, "action": "a", "reward": 1}}\n')
    age, *_ = survey(path, LIMITS)[0]
    assert (age.kind, age.low, age.high) == ("number", None, None)
