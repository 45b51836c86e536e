"""TOML: what is written is read again, and every key knows its line."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data.errors import PodiumError
from podium.data.toml import read_toml, toml_key, toml_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.one_of(TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(TEXTS, VALUES))
def test_what_is_written_is_read_again(table: dict[str, Any]) -> None:
    written = "\n".join(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())
    assert repr(tomllib.loads(written)) == repr(table)  # so that 1, 1.0 and true differ
    assert dict(read_toml(written, "x.toml").tables) == table


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(TEXTS, st.lists(TEXTS), min_size=1), st.data())
def test_every_key_knows_its_line(table: dict[str, list[str]], data: st.DataObject) -> None:
    """Also below comments, blank lines, and lists and texts of several lines."""
    lines, places = ["[first]", 'said = """', "[part]", 'x = 1 """', "[part]"], {}
    for key, value in table.items():
        lines += data.draw(st.lists(st.sampled_from(["", "# a = [", "  "])))
        places[key] = len(lines) + 1
        if data.draw(st.booleans()):
            lines += [f"{toml_key(key)} = [", *(f"  {toml_value(text)}," for text in value), "]"]
        else:
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
    document = read_toml("\n".join(lines), "x.toml")
    assert {key: document.line("part", key) for key in table} == places
    assert (document.line("first"), document.line("first", "said"), document.line("part")) == (1, 2, 5)


def test_windows_files_are_read() -> None:
    document = read_toml("\ufeff[log]\r\nfile = 'a'\r\n", "x.toml")
    assert (dict(document.tables), document.line("log", "file")) == ({"log": {"file": "a"}}, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[log]\nfile = visits.csv", "x.toml, line 2, column 8: this is not valid TOML: invalid value"),
        ("a = 1\na = 2\n", "x.toml, line 2, column 6: this is not valid TOML: cannot overwrite a value"),
        ("a = [1,", "x.toml, at its end, is not valid TOML: invalid value"),
        ("a = " + 5000 * "9", "x.toml has a number of too many digits"),
        ("a = " + 5000 * "[", "x.toml is not valid TOML: its lists or tables are nested too deeply"),
    ],
)
def test_what_is_not_toml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PodiumError) as error:
        read_toml(text, "x.toml")
    assert error.value.message == message


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(PodiumError, match=r"^TOML cannot hold the character '.udcff'"):
        toml_value("caf\udcff")
    with pytest.raises(PodiumError, match=r"^TOML has no value for nothing"):
        toml_value(None)
