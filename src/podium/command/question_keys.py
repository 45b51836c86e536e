"""The keys of a question file: the options of `podium compare`, where each belongs and which values it takes."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.command.arguments import command_parser
from podium.data.paths import path_in
from podium.data.toml import toml_value
from podium.policies.specs import spec_in

FILE, POLICY = "file", "policy"  # the key of the log, and the option that has a section of its own
SECTIONS = ("log", "policies", "question", "report")
LOG = (
    FILE, "action", "reward", "state", "propensity", "time", "unit", "text", "success", "drop-missing", "date-format",
    "decimal", "sheet", "actions", "eligible", "ineligible", "action-features", "behavior", "logged-by", "logger",
    "since", "episodes", "continuous", "bounds", "engine", "memory-limit", "temp-dir", "threads", "sample-rows",
)  # fmt: skip
REPORT = ("html", "markdown", "save", "title", "note", "json", "overwrite")
BY_HAND = ("trust",)  # whoever runs a file decides whether code in models may run, and not the file
KINDS: Mapping[Any, str] = {int: "a whole number", float: "a number"}
PATHS = ("LOG", "FILE", "DIR")  # how the parser calls values that are paths


@dataclass(frozen=True)
class Key:
    """An option of `podium compare` as a key of the file."""

    name: str
    section: str  # "" where it stands on the command line alone
    action: argparse.Action

    @property
    def option(self) -> str:
        return f"--{self.name}"

    @property
    def is_flag(self) -> bool:
        return self.action.nargs == 0

    @property
    def is_repeated(self) -> bool:
        return isinstance(self.action, argparse._AppendAction)

    @property
    def names_parts(self) -> bool:
        """Whether it takes NAME=SPEC several times: a table."""
        return self.is_repeated and "=" in str(self.action.metavar)

    @property
    def kind(self) -> str:
        return KINDS.get(self.action.type, "a text")

    def rule(self) -> str:
        """What its value must be."""
        if self.is_flag:
            return "must be true or false"
        if self.names_parts:
            return f"must be a table, such as {{{str(self.action.metavar).replace('=', ' = ')}}}, or a list of texts"
        plural = self.kind.removeprefix("a ") + "s"
        if self.is_repeated:
            return f"must be {self.kind} or a list of {plural}"
        if self.action.nargs is not None and self.action.nargs != "?":
            return f"must be a list of {self.action.nargs} {plural}"
        return f"must be {self.kind}"

    def values(self, value: Any, folder: str = "") -> list[str] | None:
        """A value of the file as the texts of the command line, paths seen from a folder; None for a wrong type."""
        if self.is_flag:
            return [""] * value if isinstance(value, bool) else None
        if self.names_parts and isinstance(value, Mapping):
            parts = {name: plain_text(part) for name, part in value.items()}
            if not all(parts.values()) or not all(name and "=" not in name for name in parts):
                return None
            return [self.moved(f"{name}={part}", folder) for name, part in parts.items()]
        several = self.is_repeated or self.action.nargs not in (None, "?")
        if isinstance(value, list) and several:
            if isinstance(self.action.nargs, int) and not self.is_repeated and len(value) != self.action.nargs:
                return None
            found = [self.text(part) for part in value]
        else:
            found = [self.text(value)] if self.is_repeated or not several else [None]
        return None if None in found else [self.moved(text, folder) for text in found if text is not None]

    def text(self, value: Any) -> str | None:
        """One value as a text; None for a wrong type."""
        if self.kind == "a text":
            dates = isinstance(value, datetime.date | datetime.time)
            return value.isoformat() if dates else value if isinstance(value, str) else None
        numbers = (int,) if self.kind == "a whole number" else (int, float)
        return plain_text(value) if isinstance(value, numbers) and not isinstance(value, bool) else None

    def moved(self, text: str, folder: str) -> str:
        """A text whose path is read from a folder, as it is read from the current one."""
        if self.action.metavar in PATHS:
            return path_in(text, folder)
        if str(self.action.metavar).endswith("=SPEC"):
            name, equals, spec = text.partition("=")
            return f"{name}{equals}{spec_in(spec, folder)}"
        return spec_in(text, folder) if self.action.metavar == "SPEC" else text

    def words(self, texts: Sequence[str]) -> list[str]:
        """The words of the command line that give these texts to the option."""
        if self.name == FILE:
            return list(texts)
        if self.is_flag:
            return [self.option] if texts else []
        if not self.is_repeated and self.action.nargs not in (None, "?"):
            return [self.option, *texts]
        return [w for t in texts for w in ([f"{self.option}={t}"] if t.startswith("-") else [self.option, t])]

    def example(self, value: Any) -> str:
        """A line of the file that would be right."""
        if self.is_flag:
            return f"{self.name} = true"
        if self.names_parts:
            return f"{self.name} = {toml_value([str(self.action.metavar)])}"
        if self.action.choices is not None:
            return f"{self.name} = {toml_value(next(iter(self.action.choices)))}"
        if self.kind == "a text":
            plain = plain_text(value)
            return f"{self.name} = {toml_value(plain if plain is not None else str(self.action.metavar))}"
        number: Any = 1 if self.action.default is None else self.action.default
        count = self.action.nargs
        return f"{self.name} = {toml_value([number] * count if isinstance(count, int) else number)}"


def plain_text(value: Any) -> str | None:
    """A text or number as a word of the command line; None for anything else."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def question_keys() -> dict[str, Key]:
    """Every option of `podium compare` by the name that it has in the file."""
    found = {}
    for action in command_parser("compare")._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        name = max(action.option_strings, key=len).removeprefix("--") if action.option_strings else FILE
        section = "log" if name in LOG else "report" if name in REPORT else "question"
        section = "policies" if name == POLICY else "" if name in BY_HAND else section
        found[name] = Key(name, section, action)
    return found
