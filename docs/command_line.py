"""Writes the reference of the command line into docs/command.md when the site is built, from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

MARK = "<!-- the parser's own words -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs calls this for every page; one of them has the mark."""
    if MARK not in markdown:
        return markdown
    from podium.command.arguments import build_parser

    return markdown.replace(MARK, "\n".join(describe(build_parser())))


def describe(parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    """A section for each command: usage, what it does, a table of its arguments."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield from ("", f"{'#' * level} {command.prog}", "", f"{sentence(about.get(name) or '')}", "")
                rows = [argument_row(a) for a in command._actions if not skipped(a)]
                if rows:
                    yield from ("| argument | meaning |", "|---|---|", *rows, "")
                yield from describe(command, level + 1)


def skipped(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def argument_row(action: argparse.Action) -> str:
    """One argument: how it is written, and what its help says."""
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    if action.choices is not None:
        value = " or ".join(map(str, action.choices))
    takes_value = action.nargs != 0
    written = ", ".join(f"{option} {value}" if takes_value else option for option in action.option_strings) or str(
        value
    )
    shown = (action.help or "") % {"default": action.default, "prog": ""} if action.help else ""
    if action.required and action.option_strings:
        shown = f"required; {shown}"
    if "default" not in shown and action.option_strings and action.default not in (None, False, argparse.SUPPRESS):
        shown = f"{shown} (default: {action.default})".strip()
    return f"| {code(written)} | {text(shown)} |"


def sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "." if words else ""


def code(written: str) -> str:
    return "`" + written.replace("|", "\\|") + "`"


def text(words: str) -> str:
    for sign in "\\|<>*_":
        words = words.replace(sign, f"&#{ord(sign)};")
    return words
