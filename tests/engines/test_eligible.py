"""Eligible actions on every engine: logs that are read in passes say what the same log in memory says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from eligible_logs import plain_value, simulated
from logs import SAMPLE, assert_alike

import podium
from podium.command.cli import main

LABELS = np.array(["a", "b", "c", "d", "e"])
FORMS = ["texts", "json", "lists", "columns", "numbers"]
ASKED = {"steep": "column:pi_steep", "against": "column:pi_against", "random": "uniform"}


def made(form: str, known: str = "full", rows: int = 3 * SAMPLE) -> tuple[pa.Table, dict[str, Any], podium.Log]:
    """A table whose eligible actions have one form, with what names them, and the log it came from."""
    log, policies = simulated(rows=rows, distinct=40, uniform=known == "even")
    labels = np.arange(1, 6) if form == "numbers" else LABELS
    rng = np.random.default_rng(1)
    lists = [rng.permutation(labels[row]).tolist() for row in log.eligible]  # the order says nothing
    columns: dict[str, Any] = {
        "x": log.state_columns["state"], "action": labels[log.action_codes].tolist(), "reward": log.rewards,
    }  # fmt: skip
    shares = {f"propensity:{label}": log.behavior[:, j] for j, label in enumerate(labels)}
    columns |= {"full": shares, "even": {"propensity": 1 / log.choices}, "none": {}}[known]
    for name, policy in policies.items():
        columns |= {f"pi_{name}:{label}": policy[:, j] for j, label in enumerate(labels)}
    if form == "columns":
        columns |= {f"eligible:{label}": log.eligible[:, j].astype(int) for j, label in enumerate(labels)}
        return pa.table(columns), {}, log
    written = (
        {"texts": ["|".join(x) for x in lists], "json": [json.dumps(x) for x in lists]} if form != "numbers" else {}
    )
    return pa.table({**columns, "shown": written.get(form, lists)}), {"eligible": "shown"}, log


@pytest.mark.parametrize(("form", "known"), [*((form, "full") for form in FORMS), ("texts", "even"), ("lists", "none")])
def test_every_engine_says_what_memory_says(form: str, known: str, engine: str, open_table: Any) -> None:
    table, roles, _ = made(form, known)
    memory, log = (open_table(table, one, **roles) for one in ("memory", engine))
    assert repr(log).replace(engine, "memory") == repr(memory)
    assert "5 actions (1 to 5 eligible in a row)" in repr(log)
    answers = [podium.compare(one, ASKED).to_dict() for one in (memory, log)]
    for answer in answers:
        answer.pop("settings")
    assert_alike(answers[1], answers[0], 1.0)


def test_every_engine_has_the_values_of_plain_loops(engine: str, open_table: Any) -> None:
    table, roles, log = made("texts")
    found = podium.evaluate(open_table(table, engine, **roles), ASKED).values
    for name in ("steep", "against"):
        policy = np.column_stack([table[f"pi_{name}:{label}"].to_numpy() for label in LABELS])
        for method in ("IPS", "DRE", "LDE", "DiM"):
            assert found[name][method] == pytest.approx(plain_value(log, policy, method), abs=1e-10)


def test_a_separator_that_shows_late_counts_from_the_first_row(engine: str, open_table: Any) -> None:
    """Texts are split by what stands in any of them, and a text that is itself an action is not split."""
    rows = 2 * SAMPLE
    taken = ["a,b", "c"] * (rows // 2)
    cells = ["a,b", "c"] * (rows // 2 - 1) + ["c;a,b", "a,b;c;d"]
    table = pa.table({"x": list(range(rows)), "action": taken, "reward": [0.0, 1.0] * (rows // 2), "on": cells})
    log = open_table(table, engine, eligible="on")
    assert log.action_space == ("a,b", "c", "d")
    assert log.choice_range == (1, 3)
    assert log.mean_choices == (rows + 1 + 2) / rows


BAD = {
    "logged action": (
        {-2: ("c", ["a", "b"]), -1: ("c", ["a"])},
        "column 'action' must be eligible in its row; row 1499 holds 'c' (2 rows)\n\n"
        "Hint: that row lists 'a', 'b'; correct the action or column 'on'.",
    ),
    "nothing": (
        {-1: ("c", [])},
        "column 'on' must name at least one action; row 1500 holds [] (1 row)\n\n"
        'Hint: write the eligible actions as a|b|c or as a JSON list such as ["a", "b"].',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_rows_at_fault_are_told_of_all_rows(name: str, engine: str, open_table: Any) -> None:
    changes, message = BAD[name]
    taken, lists = ["a", "b", "c"] * SAMPLE, [["a", "b", "c"]] * (3 * SAMPLE)
    for row, (action, possible) in changes.items():
        taken[row], lists[row] = action, possible
    table = pa.table({"x": list(range(3 * SAMPLE)), "action": taken, "reward": [1.0] * (3 * SAMPLE), "on": lists})
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(open_table(table, engine, eligible="on"), {"u": "uniform"}, ["LDE"])
    assert str(error.value) == message


def test_policies_are_refused_or_renormalized_on_every_engine(engine: str, open_table: Any) -> None:
    table, roles, log = made("lists")
    bad = ~log.eligible[:, 2]
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(open_table(table, engine, **roles), {"p": "constant:c"}, ["IPS"])
    assert str(error.value) == (
        f"policy 'p' must choose eligible actions; row {np.argmax(bad) + 1} holds 'c' ({bad.sum():,} rows)\n\n"
        'Hint: use --ineligible renormalize (ineligible="renormalize") to share its probability among the eligible '
        "actions."
    )
    opened = open_table(table, engine, **roles, ineligible="renormalize")
    found = podium.evaluate(opened, {"p": "constant:c"}, ["IPS"])
    policy = np.where(bad[:, None], log.eligible / log.choices[:, None], np.arange(5) == 2)
    assert found.values["p"]["IPS"] == pytest.approx(plain_value(log, policy, "IPS"), abs=1e-10)
    assert [w.code for w in found.warnings] == ["renormalized"]
    assert f"of {SAMPLE} rows that were looked at" in found.warnings[0]


def test_given_actions_must_hold_the_eligible_ones(engine: str, open_table: Any) -> None:
    table, roles, _ = made("texts")
    table = table.set_column(table.column_names.index("action"), "action", pa.array(["a"] * len(table)))
    table = table.set_column(table.column_names.index("shown"), "shown", pa.array(["a|z"] * len(table)))
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(open_table(table, engine, **roles, actions=["a", "b"]), {"u": "uniform"}, ["DiM"])
    assert str(error.value) == (
        "column 'shown' names the action 'z', which the action space lacks\n\n"
        "Hint: the action space is 'a', 'b'; name every action that may be taken."
    )


def test_the_engine_that_auto_chooses_never_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyarrow import csv

    for form in ("texts", "columns"):
        table, roles, _ = made(form)
        path = tmp_path / f"{form}.csv"
        csv.write_csv(table, path)
        asked = ["evaluate", str(path), "--json", *(["--eligible", "shown"] if roles else [])]
        answers = []
        for cells in (podium.engines.fits.CELLS, 100):
            monkeypatch.setattr("podium.engines.fits.CELLS", cells)
            assert main(asked) == 0
            answers.append(json.loads(capsys.readouterr().out))
        assert [answer["settings"]["engine"] for answer in answers] == ["memory", "duckdb"]
        assert answers[0]["policies"] == answers[1]["policies"]
        assert answers[0]["log"] == answers[1]["log"]
        monkeypatch.undo()
