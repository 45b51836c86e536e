"""The documentation site: every page has its place, every public name its entry, every option its line."""

from __future__ import annotations

import argparse
import doctest
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import podium
from podium.command.arguments import build_parser
from podium.command.completion import actions_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    """A script of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def places(nav: Any) -> Iterator[str]:
    """The pages of a nav, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from places(part)


def test_every_page_has_one_place_in_the_nav() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = list(places(yaml.safe_load(text)["nav"]))
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(listed) == pages, "give every page of docs/ a line in the nav of mkdocs.yml"


def test_every_public_name_is_in_the_reference() -> None:
    entries = set(re.findall(r"^::: (podium\S*)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE))
    # A function that shares its name with its module is named in full: podium.compare.compare.
    names = {entry.removeprefix("podium.").rpartition(".")[2] for entry in entries}
    assert set(podium.__all__) - names == set(), (
        "give every public name a line '::: podium.<name>' in docs/reference.md"
    )
    assert names - set(podium.__all__) == set()


def test_every_command_and_option_is_in_the_command_line_reference() -> None:
    page = script("command_line").on_page_markdown((DOCS / "command.md").read_text(encoding="utf-8"))
    for action in actions_of(build_parser()):
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                assert re.search(f"^#+ {re.escape(command.prog)}$", page, re.MULTILINE), command.prog
        elif action.dest not in ("help", "version"):
            shown = action.metavar or (" or ".join(action.choices) if action.choices else action.dest)
            name = action.option_strings[-1] if action.option_strings else shown
            assert f"| `{name}" in page, name
    assert "| `--difference D` | required; the smallest difference in reward that matters |" in page
    assert "| `--baseline BASELINE` | mean, linear, state, a number, or package.module:object (default: mean) |" in page
    assert "| `--normalize rows or states` | (default: rows) |" in page


def test_other_pages_are_left_as_they_are() -> None:
    assert script("command_line").on_page_markdown("# A page\n") == "# A page\n"


@pytest.mark.heavy
def test_docstrings_are_read_as_they_are_written() -> None:
    failed, tried = doctest.testmod(script("docstrings"))
    assert (failed, tried > 0) == (0, True)
