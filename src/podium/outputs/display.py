"""One table, three outputs: the terminal, a notebook, an HTML page."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, TypeAlias

from podium.data.arguments import checked, flag, whole
from podium.data.columns import Column, plain, sort_key
from podium.data.owned import keep_fields
from podium.outputs.markup import Markup, join, tag, visible

WIDTH = 80
ENDLESS = 1_000_000  # the width of a page that scrolls
LONGEST = 200  # characters of a cell in HTML
# Means of round numbers often end in a 5, but for a last bit that is rounding; all of these are rounded away from 0.
AWAY = 1 + 1e-12


@dataclass(frozen=True)
class Table:
    """Cells that are texts already, with how each column is aligned ("l" or "r") and notes that go below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    notes: Sequence[str] = ()

    def text(self, width: int = WIDTH, bold: bool = False) -> str:
        """For a terminal; names are cut so that a line fits into `width`.

        >>> print(Table("T", ["name", "n"], [["a", "1"], ["bc", "10"]], align="lr").text())
        T
          name   n
          a      1
          bc    10
        """
        most = width + LONGEST  # no cell is shown further; a name may have a million characters
        rows = [[printable(cell[:most]) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(columns_wide(row[j]) for row in rows) for j in range(len(self.columns))]
        body = [max((columns_wide(row[j]) for row in rows[1:]), default=0) for j in range(len(self.columns))]
        narrow(widths, body, self.align, width - 2 * len(widths))
        lines = [printable(self.title)]
        for i, row in enumerate(rows):
            cells = [pad(cell, w, side) for cell, w, side in zip(row, widths, self.align, strict=True)]
            line = ("  " + "  ".join(cells)).rstrip()
            lines.append(f"\x1b[1m{line}\x1b[0m" if bold and i == 0 else line)
        return "\n".join([*lines, *(wrap(note, width) for note in self.notes)])

    def html(self) -> str:
        """A <table> with every label escaped; cells that are `Markup` already stay as they are."""
        sides = ["left" if side == "l" else "right" for side in self.align]
        head = [
            tag("th", cell(c), scope="col", class_=side) if c else tag("td")
            for c, side in zip(self.columns, sides, strict=True)
        ]
        body = [
            tag("tr", [tag("td", cell(c), class_=side) for c, side in zip(row, sides, strict=True)])
            for row in self.rows
        ]
        table = tag("table", tag("caption", self.title), tag("thead", tag("tr", head)), tag("tbody", body))
        return table + join(tag("p", note) for note in self.notes)


Block: TypeAlias = Table | Sequence[str]
"""A table, or lines that stay together."""


class Shown:
    """A result that a terminal and a notebook show block by block; nobody can change its arrays and mappings."""

    def __post_init__(self) -> None:
        keep_fields(self)

    def blocks(self, width: int) -> Iterable[Block]:
        """What there is to show, in order, where a line has so much room."""
        raise NotImplementedError

    @checked(width=whole(1, WIDTH), bold=flag)
    def text(self, width: int = WIDTH, bold: bool = False) -> str:
        """All of it for a terminal."""
        return as_text(self.blocks(width), width, bold)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return "".join(
            block.html() if isinstance(block, Table) else join(tag("p", line) for line in block)
            for block in self.blocks(ENDLESS)
        )


def as_text(blocks: Iterable[Block], width: int, bold: bool = False) -> str:
    """Blocks for a terminal, with an empty line between them."""
    return "\n\n".join(
        block.text(width, bold) if isinstance(block, Table) else "\n".join(wrap(line, width, "") for line in block)
        for block in blocks
    )


def first_rows_table(title: str, columns: Sequence[tuple[str, Column]], most: int) -> Table:
    """The first rows of columns of equal length, as a notebook shows a log."""
    total = len(columns[0][1])
    rows = [
        [str(n + 1), *(number(x) if isinstance(x, float) else label_text(x) for x in map(plain, cells))]
        for n, cells in enumerate(zip(*(c[:most] for _, c in columns), strict=True))
    ]
    sides = "".join("r" if c.dtype.kind in "iuf" else "l" for _, c in columns)
    notes = [f"{total - most:,} more rows"] if total > most else []
    return Table(title, ["row", *(header for header, _ in columns)], rows, "r" + sides, notes)


def cell(text: str) -> str:
    """What a cell shows: a text that is cut where it would burst the table."""
    return text if isinstance(text, Markup) else shorten(text, LONGEST)


def number(value: float | None, digits: int = 4) -> str:
    """A number as a person would read it: four decimals, fewer where it is large, two digits where it is small.

    >>> number(0.12345), number(1234.5678), number(-0.000033), number(1e-7), number(None), number(0.0)
    ('0.1235', '1234.6', '-0.000033', '1.00e-07', '-', '0')
    """
    if value is None or value != value:
        return "-"
    if value == 0:
        return "0"
    value *= AWAY
    size = floor(log10(abs(value))) if abs(value) != float("inf") else 0
    if size < -6 or size >= 9:
        return f"{value:.2e}"
    if size < -digits:
        return f"{value:.{1 - size}f}"
    return f"{value:.{max(0, digits - max(0, size))}f}"


def percent(probability: float | None) -> str:
    """A probability that never claims certainty; a dash where it is not known.

    >>> percent(0.5), percent(0.125), percent(0.987), percent(0.999), percent(0.99996), percent(0.0), percent(None)
    ('50%', '13%', '98.7%', '99.9%', '>99.9%', '<0.1%', '-')
    """
    if probability is None:
        return "-"
    share = round(100 * probability, 9)  # so that rounding does not lead past a limit
    if share > 99.9:
        return ">99.9%"
    if share < 0.1:
        return "<0.1%"
    return f"{share * AWAY:.{1 if share > 90 or share < 10 else 0}f}%"


def share(part: float) -> str:
    """A share that was counted: exactly none and all, but for rounding, may be said.

    >>> share(0.0), share(1 - 1e-15), share(0.25), share(0.9996)
    ('0%', '100%', '25%', '>99.9%')
    """
    whole = round(part, 12)
    return f"{100 * whole:.0f}%" if whole in (0.0, 1.0) else percent(part)


def whole_percent(probability: float) -> str:
    """A probability in whole percent, without the sign, that never claims certainty.

    >>> whole_percent(0.506), whole_percent(0.999), whole_percent(0.001)
    ('51', '>99', '<1')
    """
    whole = round(100 * probability)
    return ">99" if whole >= 100 else "<1" if whole <= 0 else str(whole)


def rank_range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}–{high}"


def label_text(label: Any) -> str:
    """An action or a state as text; a state of several columns with commas.

    >>> label_text((65, 0.5, "rural")), label_text("a")
    ('65, 0.5, rural', 'a')
    """
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in parts)


def label_json(label: Any) -> Any:
    """An action or a state as JSON holds it: numbers and texts as they are, several columns as a list, times in ISO
    8601, and all else as text.

    >>> from datetime import date
    >>> label_json((65, date(2024, 5, 1), b"x")), label_json(frozenset("ba"))
    ([65, '2024-05-01', 'x'], ['a', 'b'])
    """
    label = plain(label)
    if isinstance(label, tuple | list):
        return [label_json(x) for x in label]
    if isinstance(label, set | frozenset):
        return sorted(map(label_json, label), key=sort_key)
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    if label is None or isinstance(label, str | bool | int | float):
        return label
    return label.isoformat() if hasattr(label, "isoformat") else str(label)


def shorten(text: str, most: int = 48) -> str:
    """A long label cut in its middle, so that both ends can be recognised.

    >>> shorten("a policy with a very long name, version 12", 20)
    'a policy w…ersion 12'
    """
    text = visible(text)
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1 - most // 2) :]}"


def short_names(names: Sequence[str], most: int = 48) -> dict[str, str]:
    """Each name, cut where it is long, and numbered where two would look alike.

    >>> short_names(["new", "abcdefgh1xyz", "abcdefgh2xyz"], 8)
    {'new': 'new', 'abcdefgh1xyz': 'abcd…xyz', 'abcdefgh2xyz': 'abcd…xyz (2)'}
    """
    seen: dict[str, int] = {}
    short = {}
    for name in names:
        text = shorten(name, most) or "(empty)"
        seen[text] = seen.get(text, 0) + 1
        short[name] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return short


def printable(text: str) -> str:
    """Text that cannot move the cursor or break a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns_wide(text: str) -> int:
    """How many terminal columns a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def narrow(widths: list[int], body: Sequence[int], align: str, room: int) -> None:
    """Shrink the widest text columns, in place, until the table fits; then long headers above numbers."""
    for side in "lr":
        least = [8 if side == "l" else max(8, w) for w in body]
        cut = [j for j, s in enumerate(align) if s == side and widths[j] > least[j]]
        while cut and sum(widths) > room:
            widest = max(cut, key=lambda j: widths[j])
            widths[widest] -= 1
            cut = [j for j in cut if widths[j] > least[j]]


def pad(text: str, width: int, side: str) -> str:
    """Cut and fill a cell to its column."""
    if columns_wide(text) > width:
        while text and columns_wide(text) > width - 1:
            text = text[:-1]
        text += "…"
    fill = " " * (width - columns_wide(text))
    return fill + text if side == "r" else text + fill


def wrap(text: str, width: int, indent: str = "  ") -> str:
    """A sentence over as many lines as it needs, all but the first indented by two more."""
    text = printable(text)
    if columns_wide(text) > len(text):
        return wrap_wide(text, width, indent)
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


def wrap_wide(text: str, width: int, indent: str) -> str:
    """The same for a text with characters that take two columns.

    >>> print(wrap_wide("政策政策 is new", 10, ""))
    政策政策
      is new
    """
    lines, line = [], indent
    for word in text.split(" "):
        while columns_wide(line) + 1 + columns_wide(word) > width:
            if line.strip():
                lines.append(line)
                line = indent + "  "
                continue
            room = width - columns_wide(line)
            fits = next((n for n in range(len(word), 1, -1) if columns_wide(word[:n]) <= room), 1)
            lines.append(line + word[:fits])
            line, word = indent + "  ", word[fits:]
        line += word if not line.strip() else f" {word}"
    return "\n".join([*lines, line] if line.strip() else lines)
