"""The paper's printed numbers, and how a reproduced one is set beside them."""

from __future__ import annotations

import math

import pytest

from podium.experiments.printed import Entry, agreement, as_printed, beside_printed, printed_table, table_csv

LABELS = {
    f"ex1.{n}_{kind}": size for n in (1, 2) for kind, size in (("eval_a", 40), ("eval_m", 40), ("correlation", 80))
}


@pytest.mark.parametrize(("label", "size"), LABELS.items())
def test_every_table_is_whole(label: str, size: int) -> None:
    table = printed_table(label)
    rows, columns = {row for row, _ in table}, {column for _, column in table}
    assert len(table) == size == len(rows) * len(columns)
    assert {column.split()[0] for column in columns} == {"LDE", "DRE", "IPS", "DiM"}
    assert all(math.isfinite(float(text)) for text in table.values())


def test_some_entries_as_the_paper_prints_them() -> None:
    assert printed_table("ex1.1_eval_m")["500", "LDE avg"] == "-7.60e-05"
    assert printed_table("ex1.2_eval_m")["500", "DRE avg"] == "4.63e-07"
    assert printed_table("ex1.2_correlation")["10", "DiM spearman"] == "0.6953"


@pytest.mark.parametrize(
    ("value", "pattern", "text"),
    [
        (0.125, "0.12", "0.13"),
        (-0.125, "0.12", "-0.13"),
        (9.9951e-3, "1.00e-02", "1.00e-02"),
        (1.2349999e-5, "1.23e-05", "1.23e-05"),
        (0.0, "1.00e-02", "0.00e+00"),
    ],
)
def test_numbers_are_rounded_half_up_in_the_printed_notation(value: float, pattern: str, text: str) -> None:
    assert as_printed(value, pattern) == text


def test_an_entry_is_equal_after_one_or_two_roundings() -> None:
    once = Entry("1", "LDE avg", "-5.77e-04", -0.00057671, 1e-5)
    twice = Entry("1", "LDE avg", "1.05e-04", 0.00010449, 1e-5)  # 0.000104 first would give 1.04e-04
    six = Entry("1", "LDE avg", "1.05e-03", 0.0010446, 1e-5)  # 0.001045 first, then half up
    off = Entry("1", "LDE avg", "1.05e-03", 0.0010444, 1e-5)
    assert [e.is_equal for e in (once, twice, six, off)] == [True, False, True, False]


def test_z_counts_both_numbers_as_samples_and_the_rounding_of_the_printed_one() -> None:
    table = printed_table("ex1.1_correlation")
    [entry] = [
        e
        for e in beside_printed("ex1.1_correlation", {key: (float(text) + 0.02, 0.01) for key, text in table.items()})
        if (e.row, e.column) == ("3", "IPS pearson")
    ]
    error = math.sqrt(0.01**2 + 0.0001**2 / 24)
    assert entry.std_error == pytest.approx(error)
    assert entry.z == pytest.approx(0.02 / (math.sqrt(2) * error))


def test_the_file_keeps_the_printed_text_and_every_digit() -> None:
    entry = Entry("0.05", "LDE avg", "-5.77e-04", 1 / 3, 0.1)
    lines = table_csv([entry]).splitlines()
    assert lines[0] == "row,column,printed,reproduced,std_error,z"
    assert lines[1].startswith("0.05,LDE avg,-5.77e-04,0.3333333333333333,0.1,")


def test_agreement_of_a_set() -> None:
    entries = [Entry("1", "LDE avg", "1.00", 1.0 + d, 1 / math.sqrt(2)) for d in (3.0, 4.0, 0.0)]
    assert agreement(entries) == pytest.approx(
        {"entries": 3, "rms_z": math.sqrt(25 / 3), "max_abs_z": 4.0, "equal": 1, "max_gap": 4.0}
    )
