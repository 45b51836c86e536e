"""The record of podium's numbers: what counts as a change, what does not, and how the command says so."""

from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import record
import recorded_logs
from record import Change, compare_records, take_apart
from recorded_logs import LOGS
from recorded_logs.case import Case, answers_about

ANSWER: dict[str, Any] = {
    "podium": "0.1.0",
    "log": {"rows": 200},
    "policies": [{"name": "new", "rank": 1, "score": 0.4, "p_best": 0.9, "regret": None, "estimates": {"LDE": 0.4}}],
    "pairs": [
        {"a": "new", "b": "old", "difference": 0.03, "std_error": 2.0, "verdict": "better", "reasons": ["it is so"]},
        {"a": "new", "b": "odd", "difference": 0.0, "std_error": 1e6, "verdict": "cannot tell", "reasons": []},
    ],
    "alarms": [{"name": "ess", "value": 3.5, "meaning": "few rows"}, {"name": "ess", "value": 4.5, "meaning": "few"}],
    "unavailable": {"IPS": "the log has no propensities"},
    "warnings": ["take care"],
}
RECORD = take_apart(ANSWER, "log/compare")


def changed(path: str, value: Any) -> record.Changes:
    """The comparison with a record in which one number is another."""
    assert path in RECORD
    return compare_records(RECORD, {**RECORD, path: value})


def test_an_answer_becomes_paths_without_its_sentences() -> None:
    assert RECORD == {
        "log/compare/log/rows": 200,
        "log/compare/policies/length": 1,
        "log/compare/policies[new]/name": "new",
        "log/compare/policies[new]/rank": 1,
        "log/compare/policies[new]/score": 0.4,
        "log/compare/policies[new]/p_best": 0.9,
        "log/compare/policies[new]/regret": None,
        "log/compare/policies[new]/estimates/LDE": 0.4,
        "log/compare/pairs/length": 2,
        "log/compare/pairs[new > old]/a": "new",
        "log/compare/pairs[new > old]/b": "old",
        "log/compare/pairs[new > old]/difference": 0.03,
        "log/compare/pairs[new > old]/std_error": 2.0,
        "log/compare/pairs[new > old]/verdict": "better",
        "log/compare/pairs[new > odd]/a": "new",
        "log/compare/pairs[new > odd]/b": "odd",
        "log/compare/pairs[new > odd]/difference": 0.0,
        "log/compare/pairs[new > odd]/std_error": 1e6,
        "log/compare/pairs[new > odd]/verdict": "cannot tell",
        "log/compare/alarms/length": 2,
        "log/compare/alarms[ess]/name": "ess",
        "log/compare/alarms[ess]/value": 3.5,
        "log/compare/alarms[ess #2]/name": "ess",
        "log/compare/alarms[ess #2]/value": 4.5,
        "log/compare/unavailable/length": 1,
        "log/compare/unavailable[1]": "IPS",
    }


def test_the_same_record_is_the_same() -> None:
    found = compare_records(RECORD, dict(RECORD))
    assert (found.differ, found.allowed, found.same, found.largest) == ((), (), len(RECORD), 0.0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("log/compare/policies[new]/score", 0.4 + 2e-7),
        ("log/compare/pairs[new > old]/difference", -0.03),
        ("log/compare/pairs[new > old]/difference", None),
        ("log/compare/pairs[new > old]/verdict", "cannot tell"),
        ("log/compare/policies[new]/rank", 2),
        ("log/compare/log/rows", True),
        ("log/compare/unavailable[1]", "DRE"),
    ],
)
def test_a_changed_number_or_word_is_found(path: str, value: Any) -> None:
    found = changed(path, value)
    assert found.differ == (Change(path, RECORD[path], value),)
    assert found.same == len(RECORD) - 1


def test_a_missing_number_is_found() -> None:
    path = "log/compare/policies[new]/score"
    found = compare_records(RECORD, {p: v for p, v in RECORD.items() if p != path})
    assert found.differ == (Change(path, 0.4, "(missing)"),)


def test_one_more_entry_in_a_list_is_found() -> None:
    more = {**ANSWER, "alarms": [*ANSWER["alarms"], {"name": "T_p", "value": 5.0}]}
    found = compare_records(RECORD, take_apart(more, "log/compare"))
    assert found.differ == (Change("log/compare/alarms/length", 2, 3),)


def test_an_added_key_is_not_a_change() -> None:
    more = {**ANSWER, "answer": "new is better", "pairs": [{**pair, "gamma": 1.5} for pair in ANSWER["pairs"]]}
    assert compare_records(RECORD, take_apart(more, "log/compare")).differ == ()


def test_a_rewritten_sentence_is_not_a_change() -> None:
    more = {**ANSWER, "warnings": [], "podium": "0.2.0", "unavailable": {"IPS": {"code": "no_propensities"}}}
    assert compare_records(RECORD, take_apart(more, "log/compare")).differ == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("log/compare/policies[new]/score", 0.4 + 5e-8),  # of 1, since the number is smaller
        ("log/compare/pairs[new > old]/difference", 0.03 + 1.5e-7),  # of the standard error 2
        ("log/compare/pairs[new > odd]/difference", -0.05),  # rounding around 0, where the error is a million
        ("log/compare/pairs[new > odd]/std_error", 1e6 + 0.05),  # of the number itself
    ],
)
def test_rounding_is_not_a_change(path: str, value: float) -> None:
    found = changed(path, value)
    assert found.differ == ()
    assert 0 < found.largest <= 1e-7


@pytest.mark.parametrize(("name", "value"), [("p_best", None), ("p_best", 0.5), ("regret", 0.01)])
def test_p_best_and_regret_may_differ(name: str, value: float | None) -> None:
    path = f"log/compare/policies[new]/{name}"
    found = changed(path, value)
    assert found.differ == ()
    assert found.allowed == (Change(path, RECORD[path], value),)


def test_the_noise_of_an_estimate_is_measured_by_its_own_error() -> None:
    before = {"log/evaluate/policies[new]/estimates/IPS": 0.0, "log/evaluate/policies[new]/std_errors/IPS": 1e3}
    assert compare_records(before, {**before, "log/evaluate/policies[new]/estimates/IPS": 5e-5}).differ == ()
    assert len(compare_records(before, {**before, "log/evaluate/policies[new]/estimates/IPS": 5e-4}).differ) == 1


# --- the command ---------------------------------------------------------------------------------------------------

FEW = "three rows no"  # part of the name of one small log


def test_make_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json.gz"
    assert record.main(["make", str(path), "--only", FEW]) == 0
    assert "of 1 logs" in capsys.readouterr().out
    assert record.main(["compare", str(path), "--only", FEW]) == 0
    assert "0 allowed to differ, 0 different." in capsys.readouterr().out

    stored = json.loads(gzip.decompress(path.read_bytes()))
    place = f"{next(name for name in LOGS if FEW in name)}/compare/policies[one]"
    stored["record"] |= {f"{place}/score": 9.0, f"{place}/p_best": 9.0}
    path.write_bytes(gzip.compress(json.dumps(stored).encode()))
    assert record.main(["compare", str(path), "--only", FEW]) == 1
    shown = capsys.readouterr().out
    assert "Different: path, before, after" in shown
    assert f"{place}/score\n    9.0  ->  " in shown
    assert "1 allowed to differ, 1 different." in shown


def test_a_failure_is_not_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Case:
        raise ZeroDivisionError("no rows")

    monkeypatch.setitem(LOGS, "broken log", broken)
    assert record.main(["make", str(tmp_path / "record.json.gz"), "--only", "broken log"]) == 1
    assert "broken log/making the log: ZeroDivisionError: no rows" in capsys.readouterr().out
    assert not (tmp_path / "record.json.gz").exists()


def test_a_refusal_is_recorded() -> None:
    answers = dict(answers_about(LOGS["check of one policy"]))
    assert answers["compare"] == {"refused": True}
    assert answers["check"]["policies"][0]["name"] == "p1"


# --- the logs ------------------------------------------------------------------------------------------------------


def test_a_log_is_the_same_every_time() -> None:
    first, second = (dict(answers_about(LOGS["two loggers balanced"])) for _ in range(2))
    assert first == second
    assert first["evaluate"]["policies"][0]["estimates"]["DRE"] is not None


def test_the_logs_use_public_names_alone() -> None:
    for path in (*Path(recorded_logs.__file__).parent.glob("*.py"), Path(record.__file__)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("podium"), path.name
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("podium.") for alias in node.names), path.name
