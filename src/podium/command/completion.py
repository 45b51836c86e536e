"""Shell completion: scripts for bash, zsh and fish, made from the command's own parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from podium.estimates.estimators import FAMILY

SHELLS = ("bash", "zsh", "fish")
FILES = ("log", "file", "html", "trust")
FOLDERS = ("out", "data_dir")
# Values that the parser leaves open, because a number or package.module:object may stand there as well.
VALUES = {
    "estimator": tuple(dict.fromkeys(name.partition(":")[0] for name in FAMILY)),  # zsh reads a colon as its own
    "verdicts": ("posterior", "gated"),
    "baseline": ("mean", "linear", "state"),
}


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """A script that makes `shell` complete commands, options, files and known values; the parser is marked for it."""
    import shtab

    for action in actions_of(parser):
        if action.dest in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.dest in VALUES and action.choices is None:
            action.choices = VALUES[action.dest]
    return shtab.complete(parser, shell)


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and argument of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions_of(command)
