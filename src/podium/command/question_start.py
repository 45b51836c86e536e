"""`podium init`: a question file to begin with, from what a log seems to hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from podium.command.arguments import build_parser
from podium.command.exports import MOST_ACTIONS, WHY_STATE, FirstLook, first_look, frequent_actions, look_at_log
from podium.command.options import note_inputs, open_log
from podium.command.question_file import question_text
from podium.data.errors import PodiumError
from podium.data.files import check_output, write_output
from podium.data.guesses import is_cost
from podium.data.log import Log
from podium.data.paths import ADDRESS, path_in
from podium.data.refusals import Refused
from podium.data.toml import toml_value
from podium.policies import policies_in

BY_NAME = ("pi_", "propensity:", "eligible:")  # columns that are read by their names
ROLES = ("action", "reward", "propensity", "time", "unit")
OPENING = """\
A question for podium: edit this file, then answer it with: podium run
Paths are read from the folder of this file. Every option of podium compare can be a key: see podium compare --help.
An answer names the SHA-256 of this file: commit it before you look, to show which question was asked."""
ASKED = {  # what a log does not say of the roles that it needs or could have
    "action": "Which column holds the action that was taken?",
    "reward": "Which column holds the outcome that counts?",
    "propensity": "With which probability was each logged action chosen? Name its column, or say how they were chosen:",
    "unit": "Do several rows belong to one person or device? Name the column that identifies it.",
}


def start_question(log: str, file: str, *, overwrite: bool = False) -> str:
    """Write a question file about a log; return what to do next."""
    options = build_parser().parse_args(["check", path_in(log, "")])
    options.argv = ["check", log]
    note_inputs(options)
    if os.path.lexists(file) and os.path.isfile(file) and os.path.getsize(file) and not overwrite:
        hint = "name another file (podium init LOG FILE), or replace it with --overwrite."
        raise PodiumError(f"{file!r} exists", hint=hint)
    check_output(file, overwrite=True)
    sections, comments = first_question(options)
    sections["log"] = {"file": named_from(log, file), **sections["log"]}
    write_output(file, question_text(sections, comments), overwrite=True)
    answer = "podium run" if file == "podium.toml" else f"podium run {file}"
    lacks = [role for role in ("action", "reward") if role not in sections["log"]]
    missing = f" The column of the {' and of the '.join(lacks)} could not be found: name it." if lacks else ""
    return f"Wrote {file}.{missing} Edit it, then run: {answer}"


def first_question(options: Any) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, ...], str]]:
    """Sections and comments of a question about the log that the options name."""
    try:
        log = open_log(options)
    except Refused as error:
        look = first_look(error, options)
        action = next((header for header, role, _ in look.columns if role == "action"), None)
        labels = [] if action is None else frequent_actions(error.columns[action])
        settings = {name: value for name, value in error.settings.items() if name not in ROLES}
        whys = {name: p for p, each in zip(error.problems, error.each, strict=True) for name in each}
        return sections_of(look, labels, settings, whys)
    if not isinstance(log, Log):
        columns = tuple((header, role, "by its name") for role, header in log.roles.names.items() if role != "state")
        states = tuple((header, "state", WHY_STATE) for header in log.state_columns)
        own = tuple((f"pi_{name}", "policy", "") for name in policies_in(log))
        look = FirstLook(options.log, len(log), (*columns, *states, *own), tuple(log.notes), (), "")
        return sections_of(look, list(log.action_space[:MOST_ACTIONS]), {}, {})
    look = look_at_log(log, options)
    own = tuple((f"pi_{name}", "policy", "") for name in policies_in(log))
    left = tuple(column for column in look.columns if not column[0].startswith(BY_NAME))
    return sections_of(replace(look, columns=(*left, *own)), frequent_actions(log.actions), {}, {})


def sections_of(
    look: FirstLook, labels: Iterable[Any], settings: Mapping[str, Any], whys: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, ...], str]]:
    """What is known of a log as keys, why as comments behind them, and what is not as comments below them."""
    log: dict[str, Any] = {}
    comments: dict[tuple[str, ...], str] = {(): OPENING}
    for role in ROLES:
        for header, played, why in look.columns:
            if played == role and role not in log:
                log[role] = header
                comments["log", role] = why
    states = [header for header, role, _ in look.columns if role == "state"]
    if states:
        log["state"] = states
        comments["log", "state"] = f"{WHY_STATE}; keep those that were known before the action"
    for name, value in settings.items():
        log[name.replace("_", "-")] = value
        comments["log", name.replace("_", "-")] = whys.get(name, "")
    own = [header for header, role, _ in look.columns if role == "policy"]
    candidates = {f"always {label}".replace("=", " "): f"constant:{label}" for label in labels}
    candidates |= {header: f"column:{header}" for header in own if not header.startswith("pi_")}
    named = [header.removeprefix("pi_") for header in own if header.startswith("pi_")]
    policies = {} if named else candidates
    comments["log",] = "\n".join(questions_of_log(look, log))
    comments["policies",] = "\n".join(questions_of_policies(named, log))
    comments["question",] = "\n".join(questions(named or list(policies), states, log.get("reward")))
    comments["report",] = 'A report to write as well:\nhtml = "report.html"'
    return {"log": log, "policies": policies}, comments


def questions_of_log(look: FirstLook, log: Mapping[str, Any]) -> Iterable[str]:
    """What podium could not know of a log."""
    yield from (f"Left out: {header} ({why})" for header, role, why in look.columns if role == "left out")
    yield from look.notes
    for role, question in ASKED.items():
        if role not in log:
            yield question
            yield f'{role} = "COLUMN"'
            yield from ['behavior = "shares:A=.5,B=.5"'] if role == "propensity" else []
    if "state" not in log:
        yield "Which columns were known before the action was chosen?"
        yield 'state = ["COLUMN"]'


def questions_of_policies(named: list[str], log: Mapping[str, Any]) -> Iterable[str]:
    """How to name policies."""
    if named:
        yield f"Without a policy here, the log's own are compared: {', '.join(named)}."
    yield "Which policies do you want to compare? These can be written here, see podium compare --help:"
    if "propensity" in log:
        yield 'now = "logged"'
    column = (log.get("state") or ["age"])[0]
    quoted = column if column.isidentifier() else '"' + column.replace('"', '""') + '"'
    yield f"""new = {toml_value(f"sql:CASE WHEN {quoted} > 65 THEN 'A' ELSE 'B' END")}"""


def questions(policies: list[str], states: list[str], reward: str | None) -> Iterable[str]:
    """What only people can say: what to decide, and what matters."""
    a, b = (*policies, "new", "now")[:2] if len(policies) != 1 else (policies[0], "now")
    yield "Which condition decides? It sets the exit code: 0 holds, 3 cannot tell, 4 the opposite holds."
    yield f"gate = {toml_value(f'{a} > {b}')}"
    yield "What is the smallest difference in reward that matters?"
    yield "difference = 0.02"
    if states:
        yield "For whom is a policy better? Compare in groups as well:"
        yield f"by = {toml_value(states[:1])}"
    yield "Will you look again as the log grows? Then plan the looks; this is the first of four:"
    yield 'look = "1/4"'
    cost = f"; {reward!r} sounds like a cost" if is_cost(reward) else ""
    yield f"Is less better{cost}?"
    yield "lower-is-better = true"


def named_from(log: str, file: str) -> str:
    """The path of a log as it is read from the folder of a file."""
    folder = os.path.dirname(file)
    if os.path.isabs(log) or ADDRESS.match(log) or not folder:
        return log.replace(os.sep, "/")
    here, name = os.path.split(log)
    return os.path.relpath(os.path.join(os.path.realpath(here), name), os.path.realpath(folder)).replace(os.sep, "/")
