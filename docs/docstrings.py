"""Reads podium's short form of NumPy docstrings, `name : what it is`, for the reference of the site.

The types stand in the signatures, so what follows the colon is a description. mkdocstrings would take it for a type;
this extension moves it to where a description belongs before the docstring is parsed.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SECTIONS = ("Parameters", "Attributes")
TYPES = ("int", "float", "str", "bool", "tuple", "sequence", "array", "dict", "callable", "object", "Log", "{")
ITEM = re.compile(r"(?P<names>[\w*]+(?:, [\w*]+)*) : (?P<text>.+)")


class DescribeAfterColon(Extension):
    """Rewrites every docstring that griffe has loaded."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = spread(obj.docstring.value)


def spread(docstring: str) -> str:
    """`name : text` of the sections as a name and an indented text.

    >>> print(spread("Parameters\\n----------\\nlog : the rows,\\n    all of them"))
    Parameters
    ----------
    log
        the rows,
        all of them
    >>> spread(
    ...     "Parameters\\n----------\\nk : int\\n    How many."
    ... ) == "Parameters\\n----------\\nk : int\\n    How many."
    True
    """
    lines, section, out = docstring.split("\n"), False, []
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if following and set(following) == {"-"}:
            section = line in SECTIONS
        item = ITEM.fullmatch(line) if section else None
        if item and item["text"].startswith(TYPES) and following.startswith("    "):  # NumPy's own form
            item = None
        out += [item["names"], "    " + item["text"]] if item else [line]
    return "\n".join(out)
