"""HTML and SVG as nested calls: every text and every attribute is escaped here, and nowhere else."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

EMPTY = frozenset({"meta", "br", "hr", "line", "circle", "rect", "path", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | Markup | None | Iterable[Any]


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """An element. Attributes: `class_` for class, `aria_label` for aria-label; None and False are left out.

    >>> tag("p", "a < b", tag("b", "!"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b<b>!</b></p>'
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{escape(value)}"')
    if name in EMPTY:
        return Markup("".join([*parts, "/>" if name in ("line", "circle", "rect", "path") else ">"]))
    return Markup("".join([*parts, ">", join(children), f"</{name}>"]))


def join(children: Iterable[Child]) -> Markup:
    """Children in turn; plain texts are escaped."""
    parts = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(str(child))
        elif isinstance(child, str):
            parts.append(escape(child))
        elif child is not None:
            parts.append(str(join(child)))
    return Markup("".join(parts))


def escape(value: Any) -> str:
    """Text without markup and without marks that turn the writing direction or end a line."""
    if isinstance(value, float):
        value = f"{value:.1f}".removesuffix(".0")
    return html.escape(visible(str(value)))


def data_block(name: str, data: Any) -> Markup:
    """Data for the page's script: inert, and unable to end its block."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def name_of(text: str) -> Markup:
    """A label from data, kept apart from the writing direction of what surrounds it."""
    return tag("bdi", text)


JOINERS = "\u200c\u200d"  # inside emoji and words of some scripts


def visible(text: str) -> str:
    """Text whose control and direction marks are written out; what joins letters stays."""
    return "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in text)
