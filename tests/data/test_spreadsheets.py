"""CSV that spreadsheets do not take for formulas."""

import csv
import io

import pytest

from podium.data.spreadsheets import csv_text, safe_cell


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠a", "﹦1", "\ufeff=1", " =1",
     "\u200b=1", "\xa0＝1", "=", "-1+1", "+1 or 2"],
)  # fmt: skip
def test_what_looks_like_a_formula_becomes_a_text(text: str):
    assert safe_cell(text) == "'" + text
    header, row = csv.reader(io.StringIO(csv_text([text], [[text]]), newline=""))
    assert header == row == ["'" + text]


@pytest.mark.parametrize("value", ["new", "a=b", "", " ", "-0.5", "+1", "-1e-9", "1", -1, -0.5, None, True, "é", "'=1"])
def test_numbers_and_other_texts_stay(value: object):
    assert safe_cell(value) is value
