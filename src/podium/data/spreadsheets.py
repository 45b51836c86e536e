"""CSV that spreadsheets do not take for formulas."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

FORMULA = "=+-@"
INVISIBLE = ("Cf", "Zs", "Zl", "Zp")  # categories of characters that do not show, such as a byte order mark


def csv_text(header: Sequence[str], rows: Iterable[Iterable[Any]], *, end: str = "\n") -> str:
    """A header and rows as CSV, with `end` after every line; texts stay texts in a spreadsheet."""
    return "".join(csv_line(row) + end for row in (header, *rows))


def csv_line(row: Iterable[Any]) -> str:
    """One line without its end; the writer quotes only the line ends that it writes itself, so it writes both."""
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\r\n").writerow(map(safe_cell, row))
    return content.getvalue().removesuffix("\r\n")


def safe_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, made a text again by an apostrophe; numbers stay.

    >>> safe_cell("=1+1"), safe_cell("＝1+1"), safe_cell(-0.5), safe_cell("-0.5"), safe_cell("new")
    ("'=1+1", "'＝1+1", -0.5, '-0.5', 'new')
    """
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value


def is_formula(text: str) -> bool:
    """Whether a text begins as formulas do: also in full-width or other forms, and behind what does not show."""
    for character in text:
        if unicodedata.category(character) == "Cc":  # tab, line feed, carriage return: some programs drop them
            return True
        if unicodedata.category(character) not in INVISIBLE:
            return unicodedata.normalize("NFKC", character)[:1] in tuple(FORMULA) and not is_number(text)
    return False


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
