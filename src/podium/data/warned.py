"""Warnings of results as Python's own, so that scripts, tests and filters see them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable


class PodiumWarning(UserWarning):
    """Something about a log or its policies that puts an answer in doubt; the text is that of `Comparison.warnings`."""


def warn_caller(messages: Iterable[str]) -> None:
    """Issue warnings at the line outside podium that called the function that calls this one.

    Nothing is issued if podium itself called that function: the command, the studio and the benches show warnings in
    their own outputs.
    """
    level = 2  # the caller of the function that calls this one
    while owner(level) == "podium.data.arguments":  # functions that check arguments stand between
        level += 1
    if owner(level).partition(".")[0] != "podium":
        for message in messages:
            warnings.warn(str(message), PodiumWarning, stacklevel=level + 1)


def owner(level: int) -> str:
    """The module of a frame, counted from the function that asks `warn_caller`'s frames."""
    try:
        return str(sys._getframe(level + 1).f_globals.get("__name__", ""))
    except ValueError:  # there is no frame that far out
        return ""
