"""TOML: a text as tables whose keys know their lines, and values as the text that gives them back."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.data.errors import PodiumError, show_value

BARE = re.compile(r"[A-Za-z0-9_-]+")
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
HINT = 'texts stand in quotes (action = "reminder"), lists in brackets, and a key stands only once in its section.'


@dataclass(frozen=True)
class Document:
    """The tables of a TOML text, and the line on which each key stands."""

    text: str
    tables: Mapping[str, Any]

    def line(self, *path: str) -> int:
        """The line, from 1, on which a key of some tables is first written.

        >>> read_toml("[log]\\n# the visits\\nfile = 'visits.csv'\\n", "x.toml").line("log", "file")
        3
        """
        low, high = 0, self.text.count("\n") + 1  # the key is not in the first `low` lines, but in the first `high`
        while high - low > 1:
            middle = (low + high) // 2
            ends = (n for n in (*range(middle, low, -1), *range(middle + 1, high)) if self.first(n) is not None)
            end = next(ends, high)
            if end == high:  # one statement of several lines
                break
            low, high = (low, end) if has(self.first(end) or {}, path) else (end, high)
        return low + 1

    def first(self, lines: int) -> Mapping[str, Any] | None:
        """The tables of the first lines; None where these end inside a list or a text."""
        try:
            return tomllib.loads("\n".join(self.text.split("\n")[:lines]) + "\n")
        except ValueError:
            return None


def has(tables: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether nested tables have a key."""
    found: Any = tables
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return False
        found = found[key]
    return True


def read_toml(text: str, name: str, hint: str = HINT) -> Document:
    """The tables of a text; what is not TOML is refused with its line."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        return Document(text, tomllib.loads(text))
    except RecursionError as error:
        raise PodiumError(f"{name} is not valid TOML: its lists or tables are nested too deeply", hint) from error
    except ValueError as error:
        placed = PLACE.fullmatch(str(error))
        if not isinstance(error, tomllib.TOMLDecodeError):  # Python refuses to read so long a number
            raise PodiumError(f"{name} has a number of too many digits", hint="write it in quotes.") from error
        if placed is None:
            said = str(error).removesuffix(" (at end of document)")
            raise PodiumError(f"{name}, at its end, is not valid TOML: {plain(said)}", hint) from error
        where = f"{name}, line {placed[2]}, column {placed[3]}"
        raise PodiumError(f"{where}: this is not valid TOML: {plain(placed[1])}", hint) from error


def plain(reason: str) -> str:
    """A reason as the end of a sentence."""
    return reason[:1].lower() + reason[1:]


# --- writing -----------------------------------------------------------------------------------------------------


def toml_key(name: str) -> str:
    """A key, in quotes where its characters need them.

    >>> toml_key("drop-missing"), toml_key("always call")
    ('drop-missing', '"always call"')
    """
    return name if BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A value as TOML writes it, on one line.

    >>> print(toml_value({"age": [1, 2.5], "said": 'a "b"'}))
    {age = [1, 2.5], said = "a \\"b\\""}
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return f'"{"".join(map(escaped, value))}"'
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(key)} = {toml_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    raise PodiumError(f"TOML has no value for {show_value(value)}", hint="use texts, numbers, true, false and lists.")


def escaped(character: str) -> str:
    """A character inside a quoted text."""
    if character in ESCAPES:
        return ESCAPES[character]
    if "\ud800" <= character <= "\udfff":
        raise PodiumError(
            f"TOML cannot hold the character {character!r}", hint="rename the file or column that is not valid Unicode."
        )
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character
