"""What a raw export seems to hold, all of its problems, and the command that goes on."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.command.options import open_log, policies_of
from podium.data.asked import Asked, spelled
from podium.data.columns import Column, is_missing
from podium.data.errors import PodiumError, count
from podium.data.exports import guessed
from podium.data.facts import fact_dict
from podium.data.log import Log
from podium.data.refusals import Refused, problems_text
from podium.data.scan import ScannedLog
from podium.data.tables import Table as FileTable
from podium.outputs.display import Block, Shown, Table, label_text
from podium.policies.sql import chosen_actions, quote_columns, visible_columns

MOST_ACTIONS = 4  # policies that a suggested command compares
CHOICES = ("success", "date_format", "decimal")  # settings that a person should look at before running a command
ROLE_WORDS = {"ignore": "left out", "policy": "policy"}
WHY_STATE = "every column that has no other role"
COLUMN, SPEC = "COLUMN", "NAME=SPEC"  # what a person has to fill in
LOGGED = "policy {name!r} is the behaviour policy, and the log does not say what that is"
QUOTES = "policy {name!r}: the SQL uses a column whose name needs double quotes: {sql}"


@dataclass(frozen=True, eq=False, repr=False)
class FirstLook(Shown):
    """A file before its roles are named: which column seems to be what, and the command that compares."""

    file: str
    rows: int
    columns: tuple[tuple[str, str, str], ...]  # header, role, why
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    command: str

    def blocks(self, width: int) -> list[Block]:
        rows = [[label_text(header), role, why] for header, role, why in self.columns]
        lines = [*self.notes, *(f"Problem: {problem}" for problem in self.problems)]
        head = [f"{self.file}: {count(self.rows, 'row')}, {count(len(self.columns), 'column')}"]
        return [head, Table("Columns", ["column", "role", "why"], rows, align="lll"), *([lines] if lines else [])]

    def text(self, width: int = 80, bold: bool = False) -> str:
        """All of it for a terminal; the command stays on one line, so that it can be pasted."""
        if not self.command:
            return super().text(width, bold)
        open_ones = [word for word in (COLUMN, SPEC) if word in shlex.split(self.command)]
        lead = f"Replace {' and '.join(open_ones)} in this command to compare" if open_ones else "This command compares"
        return f"{super().text(width, bold)}\n\n{lead}:\n\n  {self.command}"

    def to_dict(self) -> dict[str, Any]:
        """The content of `--json`."""
        return {
            "file": self.file,
            "rows": self.rows,
            "columns": [{"name": header, "role": role, "why": why} for header, role, why in self.columns],
            "notes": [fact_dict(note) for note in self.notes],
            "problems": list(self.problems),
            "command": self.command,
        }


# --- refusals --------------------------------------------------------------------------------------------------------


def with_command(error: Refused, options: argparse.Namespace) -> PodiumError:
    """The refusal of a file with the problems of the policies, and the command that solves all of them."""
    settings = dict(error.settings)
    problems, hints = list(error.problems), list(error.hints)
    specs = policies_of(options) or {}
    propensity = settings.get("propensity") or options.propensity or "propensity"
    known = any(h == propensity or h.startswith((f"{propensity}:", "propensity:")) for h in error.columns)
    right = {name: quoted_spec(spec, error.columns) for name, spec in specs.items()}
    found, argv = policy_problems(specs, right, known, settings, options)
    problems += found
    own = [h for h in error.columns if h.startswith("pi_")]
    if not specs and not own and hasattr(options, "policy"):
        action = settings.get("action", spelled(options.action, list(error.columns)) or options.action)
        if action in error.columns:
            problems.append("no policies to compare")
            argv += suggested_policies(error.columns[action])
    if len(error.columns) > 1:
        settings |= {role: COLUMN for role in ("action", "reward") if lacks(error, role)}
    open_ones = SPEC in argv or COLUMN in settings.values()
    solved = error.solved and not open_ones and "--policy" in [*argv, *("--policy" for _ in own)]
    asking = [h for h, s in zip(hints, error.each, strict=True) if not s or any(choice in s for choice in CHOICES)]
    replaced = [word for word in (COLUMN, SPEC) if word in (*settings.values(), *argv)]
    then = f"Replace {' and '.join(replaced)}, and go on with:" if replaced else "Then go on with:"
    lead = " ".join([*dict.fromkeys(asking), "This command goes on:" if solved else then])
    if not settings and not found:
        return PodiumError(problems_text(error.file, problems), hint=" ".join(dict.fromkeys(hints)))
    command = shlex.join(["podium", *edited(argv, settings)])
    return PodiumError(problems_text(error.file, problems), hint=f"{lead}\n\n  {command}")


def lacks(error: Refused, role: str) -> bool:
    """Whether the file has no column that seems to be meant for a role."""
    unsolved = [p for p, s in zip(error.problems, error.each, strict=True) if role not in s]
    return any(p.startswith("the log has no column") and p.endswith(f"for the {role}") for p in unsolved)


def checked_log(options: argparse.Namespace) -> Log | ScannedLog:
    """The log that the options name; what is wrong with policies in SQL and with `logged` is told at once."""
    log = open_log(options)
    specs = policies_of(options)
    if not specs or not isinstance(log, Log):
        return log
    settings: dict[str, Any] = {}
    right = {name: runnable_spec(name, spec, log) for name, spec in specs.items()}
    problems, argv = policy_problems(specs, right, log.knows != "none", settings, options)
    if problems:
        command = shlex.join(["podium", *edited(argv, settings)])
        raise PodiumError(problems_text(Path(options.log).name, problems), hint=f"This command goes on:\n\n  {command}")
    return log


def policy_problems(
    specs: Mapping[str, str],
    right: Mapping[str, str],
    known: bool,
    settings: dict[str, Any],
    options: argparse.Namespace,
) -> tuple[list[str], list[str]]:
    """What is wrong with policies, and the arguments that put it right; what has to be added goes to `settings`.

    `right` has the SPEC of every policy as it should be, `known` tells whether the log has propensities.
    """
    problems: list[str] = []
    changed: dict[str, str] = {}
    for name, spec in specs.items():
        if spec == "logged" and not known and options.behavior is None and not options.logged_by:
            problems.append(LOGGED.format(name=name))
            settings["behavior"] = "estimate"
        if right[name] != spec:
            problems.append(QUOTES.format(name=name, sql=right[name].removeprefix("sql:")))
            changed[f"{name}={spec}"] = f"{name}={right[name]}"
            changed[f"--policy={name}={spec}"] = f"--policy={name}={right[name]}"
    return problems, [changed.get(word, word) for word in options.argv]


def quoted_spec(spec: str, columns: Iterable[str]) -> str:
    """A policy in SQL with quotes around the names that need them; any other as it is."""
    return f"sql:{quote_columns(spec.removeprefix('sql:'), columns)}" if spec.startswith("sql:") else spec


def runnable_spec(name: str, spec: str, log: Log) -> str:
    """A policy in SQL with quotes where it cannot be run without them and can be run with them; else as it is."""
    right = quoted_spec(spec, visible_columns(log))
    if right == spec or runs(name, spec, log) or not runs(name, right, log):
        return spec
    return right


def runs(name: str, spec: str, log: Log) -> bool:
    """Whether a policy in SQL can be run on the first row."""
    try:
        chosen_actions(name, spec.removeprefix("sql:"), log.take(slice(0, 1)))
    except PodiumError:
        return False
    return True


def edited(argv: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Arguments of the command with settings added, in place of what they said before.

    >>> edited(["compare", "log.csv", "--action", "actoin"], {"action": "arm", "drop_missing": True})
    ['compare', 'log.csv', '--action', 'arm', '--drop-missing']
    """
    words = list(argv)
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            words += [word for one in value for word in (option, str(one))]
            continue
        while option in words:
            place = words.index(option)
            del words[place : place + (1 if value is True else 2)]
        words = [word for word in words if not word.startswith(f"{option}=")]
        words += [option] if value is True else [option, str(value)]
    return words


def suggested_policies(actions: Column) -> list[str]:
    """Options that compare the most frequent actions with each other."""
    most = frequent_actions(actions)
    options = [word for label in most for word in ("--policy", f"always {label}=constant:{label}")]
    return [*options, "--policy", SPEC] if len(most) == 1 else options


def frequent_actions(actions: Column) -> list[Any]:
    """The most frequent actions, those that a first comparison is about."""
    counts: dict[Any, int] = {}
    for label in actions[~is_missing(actions)].tolist():
        counts[label] = counts.get(label, 0) + 1
    return sorted(counts, key=lambda label: (-counts[label], str(label)))[:MOST_ACTIONS]


# --- a first look ----------------------------------------------------------------------------------------------------


def first_look(error: Refused, options: argparse.Namespace) -> FirstLook:
    """What a file that was refused seems to hold, and the command that compares."""
    refusal = with_command(error, options)
    settings = dict(error.settings)
    table = FileTable(error.file, dict(error.columns), (), lambda row: 0)
    facts = guessed(table, Asked(text=options.text or ()))
    roles = {header: role for role, header in settings.items() if isinstance(header, str)}
    for role in ("action", "reward", "propensity", "time", "unit"):
        name = getattr(options, role)
        name = name and (spelled(name, list(error.columns)) or name)
        if name in error.columns:
            roles[name] = role
    columns = []
    for fact in facts:
        role = roles.get(
            fact.header, fact.role if fact.role in ("state", "ignore", "policy", "time", "unit") else "state"
        )
        why = fact.why if role == fact.role and fact.why else WHY_STATE if role == "state" else "by its name or values"
        columns.append((fact.header, ROLE_WORDS.get(role, role), why))
    command = refusal.hint.partition("\n\n  ")[2].replace("podium check", "podium compare", 1)
    rows = len(next(iter(error.columns.values())))
    problems = [*error.problems]
    return FirstLook(error.file, rows, tuple(columns), tuple(error.notes), tuple(problems), command)


def look_at_log(log: Any, options: argparse.Namespace) -> FirstLook:
    """What a log without policies holds, and a command that compares its actions."""
    why = {"action": "the column that was chosen", "reward": "the column that was observed"}
    roles = {header: role for role, header in log.names.items() if role != "state"}
    columns = []
    for header in log.columns:
        role = roles.get(header, "state" if header in log.state_columns else "left out")
        said = WHY_STATE if role == "state" else "see below" if role == "left out" else why.get(role, "by its name")
        columns.append((header, role, said))
    argv = [*options.argv, *suggested_policies(log.actions)]
    command = shlex.join(["podium", *edited(argv, {})]).replace("podium check", "podium compare", 1)
    return FirstLook(options.log.rpartition("/")[2], len(log), tuple(columns), tuple(log.notes), (), command)
