"""One refusal that holds all problems of a file, and the settings that would solve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.data.columns import Column
from podium.data.conversions import Problem
from podium.data.errors import PodiumError, count
from podium.data.tables import Table


class Refused(PodiumError):
    """All problems of a file, and the settings that would solve them.

    Attributes
    ----------
    file : the name of the file
    problems : what is wrong, one sentence each
    hints : what to do about each
    settings : arguments of `read_log` that solve what can be solved
    columns : the columns of the file, by header
    """

    file: str = ""
    problems: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    columns: Mapping[str, Column] = {}
    each: tuple[Mapping[str, Any], ...] = ()  # the settings that solve each problem
    notes: tuple[str, ...] = ()
    solved: bool = False

    @classmethod
    def of(cls, table: Table, problems: Sequence[Problem], asked: Mapping[str, Any], notes: Sequence[str]) -> Refused:
        """The refusal of a file with these problems, read with these arguments."""
        settings = merged([problem.settings for problem in problems])
        said, hints = tuple(p.error.message for p in problems), tuple(p.error.hint for p in problems)
        hint = python_hint(table.file, hints, {**asked, **settings}, settings)
        error = cls(problems_text(table.file, said), hint=hint)
        error.file, error.columns, error.notes = table.file, table.columns, tuple(notes)
        error.problems, error.hints, error.settings = said, hints, settings
        error.each = tuple(problem.settings for problem in problems)
        error.solved = all(problem.settings for problem in problems)
        return error


def problems_text(file: str, problems: Sequence[str]) -> str:
    """One problem as it is, several as a list."""
    if len(problems) == 1:
        return problems[0]
    return "\n".join([f"{file} has {count(len(problems), 'problem')}:", *(f"- {problem}" for problem in problems)])


def python_hint(file: str, hints: Sequence[str], arguments: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """What to do, with the call that goes on where one would."""
    own = " ".join(dict.fromkeys(hints))
    if not settings:
        return own
    given = "".join(f", {name}={value!r}" for name, value in arguments.items() if value not in (None, (), [], False))
    return f"{own} This call goes on: podium.read_log({file!r}{given})"


def merged(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings together; lists of columns are joined."""
    found: dict[str, Any] = {}
    for one in settings:
        for name, value in one.items():
            found[name] = [*found.get(name, []), *value] if isinstance(value, list) else value
    return found
