"""Exports in the studio: workbooks, outcomes in words and gaps are read as the command reads them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from studio_visitor import Form, Visitor, alerts, guessed, roles_on

from podium.command.cli import main

MESSY = Path(__file__).parents[1] / "messy"
CLINIC = {
    "Patient ID": "ignore",
    "Visit Date": "time",
    "Patient Age": "state",
    "Spend": "state",
    "Treatment Given": "action",
    "Recovered": "reward",
}


def answered(visitor: Visitor, page: Any) -> dict[str, Any]:
    """The answer to the question whether to call or to mail, from the page of the policies on."""
    place = str(page.url.path).rpartition("/")[0]
    for action in ("call", "email"):
        visitor.post(f"{place}/policies", {"kind": "constant", "value": action})
    visitor.compare(place)
    found: dict[str, Any] = visitor.get(f"{place}/answers/1/result.json").json()
    return found


@pytest.mark.parametrize("file", ["clinic.csv", "clinic.xlsx"])
def test_the_clinic_is_read_as_the_command_reads_it(
    file: str, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = visitor.upload(file, (MESSY / file).read_bytes())
    assert guessed(page) == CLINIC
    page = visitor.accept_columns(page)
    assert page.status_code == 422
    assert alerts(page) == (
        "column 'Recovered' must be a number; row 12 (line 13) holds nothing (1 row) "
        "tick 'leave out rows' below, or fill the gaps in the file."
    )
    place = str(page.url.path).rpartition("/")[0]
    page = visitor.post(f"{place}/columns", {**roles_on(page), "drop_missing": "1"})
    assert str(page.url).endswith("/policies"), alerts(page)
    texts = Form(page.text).texts
    assert "Column 'Recovered': 'Yes' counts as 1, 'No' as 0" in texts
    assert "Left out 1 row of 60: column 'Recovered' is missing, empty (1 row)" in texts
    answer = answered(visitor, page)
    command = visitor.get(f"{place}/answers/1/compare.sh").text
    monkeypatch.chdir(MESSY)
    assert main([*shlex.split(command.replace("\\\n", " "))[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == answer["pairs"]


def test_the_first_sheet_with_a_table_is_read_with_a_word(visitor: Visitor) -> None:
    page = visitor.upload("book.xlsx", (MESSY / "two_sheets.xlsx").read_bytes())
    assert "Read the sheet 'Data'; the others are not read: 'Log'" in Form(page.text).texts
    page = visitor.accept_columns(page)
    assert answered(visitor, page)["log"]["rows"] == 60


def test_a_sheet_of_ods_is_read(visitor: Visitor) -> None:
    page = visitor.accept_columns(visitor.upload("log.ods", (MESSY / "plain.ods").read_bytes()))
    assert str(page.url).endswith("/policies"), alerts(page)
    assert answered(visitor, page)["log"]["rows"] == 60


def test_the_success_is_asked_for(visitor: Visitor) -> None:
    page = visitor.accept_columns(visitor.upload("log.csv", (MESSY / "unknown_success.csv").read_bytes()))
    assert page.status_code == 422
    assert alerts(page).endswith("write the value that counts as 1 below, such as renewed.")
    place = str(page.url.path).rpartition("/")[0]
    page = visitor.post(f"{place}/columns", {**roles_on(page), "success": "renewed"})
    assert str(page.url).endswith("/policies"), alerts(page)
    assert "Column 'reward': 'renewed' counts as 1, 'expired' as 0" in Form(page.text).texts
