"""Tables and lines as Markdown, in which no label can break a table, start a list or become HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from podium.outputs.display import Block, Table, shorten

MARKS = re.compile(r"([\\`*\[\]|~$#!])")
EDGES = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word it marks nothing
LIST = re.compile(r"^([-+=]|\d+(?=[.)]))")
MOST = 200  # characters of a cell
LONGEST = 4000  # of a line


def as_markdown(blocks: Iterable[Block]) -> str:
    """Blocks as Markdown: the first line in bold, tables below headings, lists of several lines.

    >>> print(as_markdown([["b is better than a."], Table("T", ["name", "n"], [["a|b", "1"]], align="lr")]), end="")
    **b is better than a.**
    <BLANKLINE>
    ### T
    <BLANKLINE>
    | name | n |
    |:---|---:|
    | a\\|b | 1 |
    """
    parts = []
    for n, block in enumerate(blocks):
        if isinstance(block, Table):
            parts.append(table(block))
        else:
            lines = [line(text) for text in block]
            parts += [f"**{lines.pop(0)}**"] if n == 0 else []
            parts += [lines[0] if len(lines) == 1 else "\n".join(f"- {text}" for text in lines)] if lines else []
    return "\n\n".join(parts) + "\n"


def table(block: Table) -> str:
    """One table with its title and its notes."""
    sides = "|".join(":---" if side == "l" else "---:" for side in block.align)
    rows = [row(block.columns), f"|{sides}|", *(row(cells) for cells in block.rows)]
    return "\n\n".join([f"### {line(block.title)}", "\n".join(rows), *(line(note) for note in block.notes)])


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(escaped(shorten(cell, MOST)) for cell in cells)} |"


def line(text: str) -> str:
    """A sentence in one line that starts no list, heading or quotation."""
    return LIST.sub(lambda found: f"\\{found[1]}" if not found[1].isdigit() else f"{found[1]}\\", plain(text))


def plain(text: str) -> str:
    return escaped(shorten(text, LONGEST)).strip()


def escaped(text: str) -> str:
    """Text that Markdown shows as it is.

    >>> escaped("call_over_65"), escaped("_a_ | <b>"), escaped("`x`")
    ('call_over_65', '\\\\_a\\\\_ \\\\| &lt;b&gt;', '\\\\`x\\\\`')
    """
    marked = EDGES.sub(r"\\_", MARKS.sub(r"\\\1", text))
    return marked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
