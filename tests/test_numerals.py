"""Numbers in texts are compared as numbers, words as words."""

from __future__ import annotations

import pytest
from numerals import disagreements, pieces, value_and_unit

SAME = {
    "equal texts": ("a 0.10 b", "a 0.10 b"),
    "one unit of the last digit": ("P = 0.1234", "P = 0.1235"),
    "a leading dot": (".95 of them", "0.95 of them"),
    "another unit where the size changes": ("9.9999", "10.000"),
    "thousands": ("1,234.5 rows", "1,234.6 rows"),
    "a percent sign": ("38% of 98.7%", "39% of 98.6%"),
    "a minus sign": ("-0.0100 and −0.5", "-0.0101 and -0.5"),
    "zero with a sign": ("-0.0000", "0.0000"),
    "an exponent": ("1.20e-07", "1.21e-07"),
    "an interval": ("[-0.012, 0.034]", "[-0.011, 0.035]"),
    "padding": ("  a    9.99\n  b   10.01", "  a  10.00\n  b  10.01"),
    "a sentence wrapped elsewhere": ("it is\n9.99 of all", "it is 10.00\nof all"),
    "a number at the end of a sentence": ("by 0.05.", "by 0.06."),
}
DIFFERENT = {
    "two units": ("0.1234", "0.1236"),
    "a whole number": ("3,015 rows", "3,016 rows"),
    "a rank": ("1 (1-2)", "1 (1-3)"),
    "the sign": ("0.05", "-0.05"),
    "a word": ("a is better", "a is worse"),
    "a word with digits": ("call_over_65", "call_over_66"),
    "a version": ("0.4.1", "0.4.2"),
    "a limit": (">99.9%", "99.9%"),
    "a percent sign that is missing": ("5.0%", "5.0"),
    "noise instead of zero": ("0", "1.23e-17"),
    "a text that ends too soon": ("a 0.1 b", "a 0.1"),
    "a text that goes on": ("a 0.1", "a 0.1 b"),
    "a date": ("2026-01-02", "2026-01-03"),
    "words in another order": ("a b", "b a"),
}


@pytest.mark.parametrize("case", SAME)
def test_texts_that_say_the_same(case: str) -> None:
    assert disagreements(*SAME[case]) == []


@pytest.mark.parametrize("case", DIFFERENT)
def test_texts_that_do_not(case: str) -> None:
    assert len(disagreements(*DIFFERENT[case])) == 1


def test_every_number_that_differs_is_named() -> None:
    assert (
        disagreements("a 0.1 b 0.2 c 0.3", "a 0.5 b 0.2 c 0.7")
        == [
            "expected 'a 0.1 b 0.2 c 0.3'\n     got 'a 0.5 b 0.2 c 0.7'",
        ]
        * 2
    )


def test_pieces_of_a_table() -> None:
    line = "  personalised  call_over_65  better  -1,234.50  [-.1, 2e-05]  >99.9%\n"
    assert pieces(line) == [
        "personalised", "call_over_65", "better", "-1,234.50", "[", "-.1", ",", "2e-05", "]", ">", "99.9%",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["0.4.1", "3x", "p1", "1_000", "v2", "12ms", "-", "e5", "."])
def test_a_word_is_not_a_number(word: str) -> None:
    assert value_and_unit(word) is None
