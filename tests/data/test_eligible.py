"""Which actions were possible in a row: every form in which people hold it, and what is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from eligible_logs import simulated

import podium
from podium.command.cli import main
from podium.policies import resolve_policies

SETS = [["a", "b"], ["b", "c"], ["a", "b", "c"], ["c"]]
MATRIX = [[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]]
BASE: dict[str, Any] = {"state": [1, 2, 3, 4], "action": ["a", "b", "b", "c"], "reward": [1.0, 0.0, 0.5, 1.0]}
COLUMNS = {f"eligible:{label}": [row[j] for row in MATRIX] for j, label in enumerate("abc")}


def texts(sign: str) -> list[str]:
    return [sign.join(row) for row in SETS]


def log_of(**changes: Any) -> podium.Log:
    given = {"states": BASE["state"], "actions": BASE["action"], "rewards": BASE["reward"], **changes}
    return podium.Log(**given)


def csv(path: Path, columns: dict[str, Any]) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "given",
    [
        np.array(MATRIX, dtype=bool), np.array(MATRIX), [list(map(bool, row)) for row in MATRIX], SETS,
        [tuple(row) for row in SETS], [set(row) for row in SETS], [np.array(row) for row in SETS], texts("|"),
        texts(" | "), texts(","), texts("; "), [json.dumps(row) for row in SETS], [str(row) for row in SETS],
        {"a": [1, 0, 1, 0], "b": [True, True, True, False], "c": ["no", "Yes", "1", "true"]},
    ],
)  # fmt: skip
def test_every_form_says_the_same(given: Any) -> None:
    log = log_of(eligible=given)
    np.testing.assert_array_equal(log.eligible, np.array(MATRIX, dtype=bool))
    assert log.action_space == ("a", "b", "c")
    assert repr(log) == (
        "Log (memory): 4 rows, 4 distinct (state, action), 4 states, 3 actions (1 to 3 eligible in a row), "
        "no propensities"
    )
    assert log.to_dict()["eligible"] == {"least": 1, "mean": 2.0, "most": 3}


def test_files_and_frames_say_the_same(tmp_path: Path) -> None:
    lists = {**BASE, "shown": SETS}
    pd.DataFrame(lists).to_parquet(tmp_path / "lists.parquet")
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    (tmp_path / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    logs = [
        podium.read_log(csv(tmp_path / "columns.csv", {**BASE, **COLUMNS})),
        podium.read_log(csv(tmp_path / "texts.csv", {**BASE, "shown": texts("|")}), eligible="shown"),
        podium.read_log(csv(tmp_path / "python.csv", lists), eligible="shown"),
        podium.read_log(tmp_path / "lists.parquet", eligible="shown"),
        podium.read_log(tmp_path / "lists.jsonl", eligible="shown"),
        podium.Log.from_frame(pd.DataFrame(lists), eligible="shown"),
        podium.Log.from_frame(pl.DataFrame(lists), eligible="shown"),
        podium.Log.from_columns(lists, eligible="shown"),
        podium.Log.from_columns({**BASE, "eligible": SETS}),  # lists cannot be anything else
        podium.Log.from_columns(
            {**BASE, **{h.replace("eligible", "on"): c for h, c in COLUMNS.items()}}, eligible="on"
        ),
    ]
    for log in logs:
        np.testing.assert_array_equal(log.eligible, np.array(MATRIX, dtype=bool))
        assert list(log.state_columns) == ["state"]
    again = podium.Log.from_frame(logs[0].to_frame())
    np.testing.assert_array_equal(again.eligible, logs[0].eligible)
    again = podium.Log.from_frame(log_of(eligible=SETS).to_frame())
    np.testing.assert_array_equal(again.eligible, logs[0].eligible)
    assert len({log.digest for log in logs}) == 1
    assert logs[0].digest != podium.Log.from_columns(BASE).digest


def test_a_log_behind_duckdb_has_them(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {name: 60 * column for name, column in {**BASE, **COLUMNS}.items()})
    policies = {"u": "uniform", "b": "constant:c"}
    scanned = podium.scan_log(path, engine="duckdb", ineligible="renormalize")
    memory = podium.read_log(path, ineligible="renormalize")
    assert podium.evaluate(scanned, policies, ["LDE"]).values == podium.evaluate(memory, policies, ["LDE"]).values
    passes = podium.evaluate(scanned, policies, ["LDE"], sample_rows=100).values
    for name, values in podium.evaluate(memory, policies, ["LDE"]).values.items():
        assert passes[name]["LDE"] == pytest.approx(values["LDE"], abs=1e-12)


def test_numbers_are_matched_and_actions_that_were_never_logged_join_the_space() -> None:
    log = podium.Log([0, 0], [1, 2], [0.0, 1.0], eligible=["1|2|3", "2|10"])
    assert log.action_space == (1, 2, 3, 10)
    np.testing.assert_array_equal(log.eligible, [[1, 1, 1, 0], [0, 1, 0, 1]])
    np.testing.assert_array_equal(log.action_codes, [0, 1])
    log = podium.Log([0, 0], ["1", "2"], [0.0, 1.0], eligible=[[1, 2], [2]])
    assert log.action_space == ("1", "2")


def test_a_name_with_a_comma_is_one_action() -> None:
    log = podium.Log([0, 0], ["b, late", "a"], [0.0, 1.0], eligible=["b, late", "a|b, late"])
    np.testing.assert_array_equal(log.eligible, [[False, True], [True, True]])


def test_logs_of_some_rows_and_of_other_spaces_keep_them() -> None:
    log = log_of(eligible=SETS)
    np.testing.assert_array_equal(log.take(np.array([3, 0])).eligible, np.array(MATRIX, dtype=bool)[[3, 0]])
    np.testing.assert_array_equal(log.with_actions(["d"]).eligible[:, 3], [False] * 4)
    moved = log.with_action_space(["c", "b", "a"])
    np.testing.assert_array_equal(moved.eligible, np.array(MATRIX, dtype=bool)[:, ::-1])
    np.testing.assert_array_equal(log.choices, [2, 2, 3, 1])
    assert log.mean_choices == 2.0


def test_other_eligible_actions_make_another_context() -> None:
    log = podium.Log([7, 7, 7], ["a", "a", "a"], [1.0, 2.0, 3.0], eligible=["a|b", "a", "a|b"])
    assert log.latest.tolist() == [1, 2]
    assert log.context_codes.tolist() == [1, 0, 1]
    policies = podium.evaluate(log, {"u": "uniform"}, ["LDE"])  # no warning of conflicting probabilities
    assert policies.warnings == ()


def test_uniform_propensities_show_the_whole_behavior_policy() -> None:
    log, _ = simulated(uniform=True)
    shown = podium.Log(
        log.states, log.actions, log.rewards, 1 / log.choices, eligible=log.eligible, action_space=log.action_space
    )
    assert shown.knows == "full"
    np.testing.assert_allclose(shown.behavior, log.behavior, atol=1e-12)
    other = podium.Log(
        log.states, log.actions, log.rewards, 0.9 / log.choices, eligible=log.eligible, action_space=log.action_space
    )
    assert other.knows == "logged"


# --- what is refused ---------------------------------------------------------------------------------------------

LIST = 'write the eligible actions as a|b|c or as a JSON list such as ["a", "b"].'
SHARE = 'use --ineligible renormalize (ineligible="renormalize") to share its probability among the eligible actions.'
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "logged action": (
        {"eligible": [["a"], ["a", "c"], ["a"], ["c"]]},
        "column 'action' must be eligible in its row; row 2 holds 'b' (2 rows)\n\n"
        "Hint: that row lists 'a', 'c'; correct the action or column 'eligible'.",
    ),
    "empty": (
        {"eligible": ["a|b", None, "", "c"]},
        f"column 'eligible' must name at least one action; row 2 holds nothing (2 rows)\n\nHint: {LIST}",
    ),
    "no list": (
        {"eligible": ["a", "[b", "b", "c"]},
        f"column 'eligible' must be a list of actions; row 2 holds '[b' (1 row)\n\nHint: {LIST}",
    ),
    "no truth value": (
        {"eligible": {"a": [1, 0, 2, 0], "b": [1, 1, 1, 0], "c": [0, 1, 1, 1]}},
        "column 'eligible:a' must be 0 or 1; row 3 holds 2 (1 row)\n\n"
        "Hint: 1 means that the action was possible in the row, 0 that it was not.",
    ),
    "rows": (
        {"eligible": SETS[:3]},
        "column 'eligible' has 3 rows; column 'reward' has 4\n\n"
        "Hint: every column describes the same rows, in the same order.",
    ),
    "rows of a column": (
        {"eligible": {"a": [1, 0, 1]}},
        "column 'eligible:a' has 3 rows; the log has 4\n\n"
        "Hint: every column describes the same rows, in the same order.",
    ),
    "nested": (
        {"eligible": [["a"], [["b"]], ["b"], ["c"]]},
        f"column 'eligible' must be a list of actions; row 2 holds [['b']] (1 row)\n\nHint: {LIST}",
    ),
    "columns": (
        {"eligible": np.ones((4, 2), dtype=bool)},
        "column 'eligible' has 2 columns; the action space has 3\n\n"
        "Hint: columns follow action_space, which is 'a', 'b', 'c'; name all actions with action_space.",
    ),
    "outside the space": (
        {"eligible": ["a|z", "b", "b", "c"], "action_space": ["a", "b", "c"]},
        "column 'eligible' names the action 'z', which the action space lacks\n\n"
        "Hint: the action space is 'a', 'b', 'c'; name every action that may be taken.",
    ),
    "no column": (
        {"eligible": "shown"},
        f"column 'eligible' must hold the actions of every row; it is 'shown'\n\nHint: {LIST}",
    ),
    "behavior": (
        {"eligible": SETS, "behavior": np.full((4, 3), 1 / 3)},
        "policy 'behavior': the probability of actions that are not eligible must be 0; row 1 holds 0.3333333333 "
        f"(3 rows)\n\nHint: {SHARE}",
    ),
    "rule": (
        {"eligible": SETS, "ineligible": "drop"},
        "ineligible must be 'refuse' or 'renormalize'; it is 'drop'\n\nHint: use ineligible='refuse'.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused(name: str) -> None:
    given, message = BAD[name]
    with pytest.raises(podium.PodiumError) as error:
        log_of(**given)
    assert str(error.value) == message


POLICIES: dict[str, tuple[Any, str]] = {
    "constant": ("constant:a", f"policy 'p' must choose eligible actions; row 2 holds 'a' (2 rows)\n\nHint: {SHARE}"),
    "actions": (
        ["a", "b", "b", "a"],
        f"policy 'p' must choose eligible actions; row 4 holds 'a' (1 row)\n\nHint: {SHARE}",
    ),
    "callable": (
        lambda states: np.full((len(states), 3), [0.5, 0.25, 0.25]),
        "policy 'p': the probability of actions that are not eligible must be 0; row 1 holds 0.25 (3 rows)\n\n"
        f"Hint: {SHARE}",
    ),
    "shares": (
        {"a": 0.5, "b": 0.5},
        "policy 'p': the probability of actions that are not eligible must be 0; row 2 holds 0.5 (2 rows)\n\n"
        f"Hint: {SHARE}",
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_that_plays_what_was_not_possible_is_refused_or_renormalized(name: str) -> None:
    policy, message = POLICIES[name]
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(log_of(eligible=SETS), {"p": policy}, ["LDE"])
    assert str(error.value) == message
    result = podium.evaluate(log_of(eligible=SETS, ineligible="renormalize"), {"p": policy}, ["LDE"])
    assert [w.code for w in result.warnings] == ["renormalized"]


def test_what_is_renormalized_keeps_its_odds_and_says_how_much_was_moved() -> None:
    log = log_of(eligible=SETS, ineligible="renormalize")
    _, found = resolve_policies(log, {"p": {"a": 0.5, "b": 0.4, "c": 0.1}, "q": "constant:a"})
    p, q = found
    np.testing.assert_allclose(p.matrix, [[5 / 9, 4 / 9, 0], [0, 0.8, 0.2], [0.5, 0.4, 0.1], [0, 0, 1]])
    np.testing.assert_allclose(q.matrix, [[1, 0, 0], [0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]])  # else: uniform
    assert found.warnings == (
        "policy 'p' plays actions that were not eligible in 3 rows; 37.5% of its probability was moved to the eligible "
        "actions.",
        "policy 'q' plays actions that were not eligible in 2 rows; 50.0% of its probability was moved to the eligible "
        "actions.",
    )


def test_a_behavior_policy_can_be_renormalized_by_name() -> None:
    log = log_of(eligible=SETS, behavior="shares:a=.5,b=.25,c=.25", ineligible="renormalize")
    np.testing.assert_allclose(log.propensities, [2 / 3, 0.5, 0.25, 1.0])
    assert "the full behaviour policy, renormalized over the eligible actions" in repr(log)
    assert not log.shares


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = csv(tmp_path / "log.csv", {**BASE, "shown": texts("|")})
    asked = [
        "evaluate",
        str(path),
        "--eligible",
        "shown",
        "--policy",
        "c=constant:c",
        "--policy",
        "u=uniform",
        "--json",
    ]
    assert main(asked) == 2
    assert capsys.readouterr().err == (
        f"podium: policy 'c' must choose eligible actions; row 1 holds 'c' (1 row)\n\nHint: {SHARE}\n"
    )
    assert main([*asked, "--ineligible", "renormalize"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["log"]["eligible"] == {"least": 1, "mean": 2.0, "most": 3}
    assert answer["log"]["state_columns"] == ["state"]
    assert main(["evaluate", str(path), "--eligible", "offered", "--policy", "u=uniform"]) == 2
    assert capsys.readouterr().err == (
        "podium: the log has no column 'offered' for the eligible actions\n\n"
        "Hint: the columns are state, action, reward, shown.\n"
    )
    assert main(["evaluate", str(path), "--eligible", "action", "--policy", "u=uniform"]) == 2
    assert capsys.readouterr().err == (
        "podium: the column 'action' cannot hold both the action and the eligible actions\n\n"
        "Hint: name another column, or leave the option out.\n"
    )


def test_lists_of_numbers_are_found_in_every_form(tmp_path: Path) -> None:
    """Lists of numbers become columns elsewhere; those of eligible actions stay eligible actions."""
    lists = [[1, 2], [2, 3, 4], [1, 4]]
    table = {"x": [0.1, 0.2, 0.3], "action": [1, 3, 4], "reward": [1.0, 0.0, 1.0], "eligible": lists}
    frame = pd.DataFrame(table)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    logs = [podium.Log(table), podium.Log.from_frame(frame), podium.Log.from_frame(frame, eligible="eligible")]
    logs += [podium.read_log(tmp_path / name) for name in ("log.parquet", "log.jsonl")]
    for log in logs:
        assert log.action_space == (1, 2, 3, 4)
        assert [[a for a, yes in zip(log.action_space, row, strict=True) if yes] for row in log.eligible] == lists
        assert list(log.state_columns) == ["x"]


@pytest.mark.parametrize("name", ["candidates", "available", "Eligible", "slate", "action_set"])
def test_lists_of_actions_in_a_raw_export_are_proposed_and_never_silently_state(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"age": [20 + n % 40 for n in range(60)], name: 15 * texts("|")}
    raw = csv(tmp_path / "raw.csv", {**columns, "variant": 15 * BASE["action"], "clicked": 30 * [0, 1]})
    assert main(["check", str(raw), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"name": name, "role": "eligible", "why": "by its name or values"} in answer["columns"]
    assert answer["command"].endswith(f"--action variant --reward clicked --eligible {name} --ineligible renormalize")
    assert main([*shlex.split(answer["command"])[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["eligible"] == {"least": 1, "mean": 2.0, "most": 3}
    log = podium.read_log(csv(tmp_path / "log.csv", {**columns, "action": 15 * BASE["action"], "reward": 30 * [0, 1]}))
    assert list(log.state_columns) == ["age"]
    assert log.notes == (
        f"Not taken as state: {name} (lists of actions, which --eligible reads); --state COL takes a column as state",
    )


def test_a_name_with_a_separator_is_one_action_where_it_stands_alone() -> None:
    log = podium.Log([0, 1], ["a|b", "c"], [0.0, 1.0], eligible=["a|b", "c"])
    np.testing.assert_array_equal(log.eligible, np.eye(2, dtype=bool))
    with pytest.raises(podium.PodiumError) as error:
        podium.Log([0, 1], ["a|b", "c"], [0.0, 1.0], eligible=["a|b;c", "c"])
    assert str(error.value) == (
        "column 'action' must be eligible in its row; row 1 holds 'a|b' (1 row)\n\nHint: that row lists 'a', 'b;c'; "
        "correct the action or column 'eligible'. Where names hold | ; or , write lists as JSON."
    )


def test_rows_of_truth_values_are_equally_long() -> None:
    with pytest.raises(podium.PodiumError) as error:
        podium.Log([0, 1], ["a", "b"], [0.0, 1.0], eligible=[[True, True], [True]])
    assert str(error.value) == (
        "column 'eligible' must have 2 truth values in every row; row 2 holds [True] (1 row)\n\n"
        "Hint: columns follow action_space; or name the eligible actions of each row."
    )
