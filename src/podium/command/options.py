"""What the options of the command say, as the arguments of podium's functions."""

from __future__ import annotations

import argparse
import contextlib
import csv
from collections.abc import Sequence
from typing import Any

from podium.comparison.gate_parts import columns_named
from podium.data.errors import PodiumError, Unconverted
from podium.data.files import note_input
from podium.data.log import Log
from podium.data.opening import scan_log
from podium.data.outcomes import outcomes, worths
from podium.data.paths import find_files
from podium.data.progress import show_progress
from podium.data.read import KINDS
from podium.data.scan import ScannedLog
from podium.engines.choosing import choose_engine, memory_instead
from podium.engines.fits import Question, gives_table, is_asked
from podium.policies.specs import FORMS, check_models, file_of, is_recipe, load_object
from podium.propensities.loggers import Loggers

STEPS = ("bounds", "horizon", "gamma")


def open_log(options: argparse.Namespace) -> Log | ScannedLog:
    if not options.log:
        raise PodiumError("the name of the log is empty", hint="name a file, a pattern or a folder.")
    check_models(specs_of(options))
    given = {"memory_limit": options.memory_limit, "temp_dir": options.temp_dir, "threads": options.threads}
    question = question_of(options)
    chosen = choose_engine(options.log, options.engine, options.action, question)
    try:
        return opened(options, chosen, given)
    except Unconverted as refusal:
        if options.engine != "auto":
            raise
        memory_instead(refusal, options.log, options.action, question)
        return opened(options, "memory", given)


def opened(options: argparse.Namespace, chosen: str, given: dict[str, Any]) -> Log | ScannedLog:
    """The log, read by the chosen engine."""
    engine = {name: value for name, value in given.items() if value is not None and chosen == "duckdb"}
    if chosen == "duckdb":
        engine["progress"] = show_progress
    return scan_log(
        options.log,
        engine=chosen,
        state=options.state or None,
        action=options.action,
        reward=options.reward,
        propensity=options.propensity,
        time=options.time,
        unit=options.unit,
        actions=split(options.actions) if options.actions is not None else (),
        text=options.text or (),
        eligible=options.eligible,
        ineligible=options.ineligible,
        success=options.success,
        drop_missing=options.drop_missing,
        date_format=options.date_format,
        sheet=options.sheet,
        decimal=options.decimal,
        also=outcome_columns_of(options),
        **engine,
    )


def outcome_columns_of(options: argparse.Namespace) -> list[str]:
    """Every column that --also and --worth name."""
    also, worth = outcome_arguments(options).values()
    return list(dict.fromkeys([*(outcome.column for outcome in also), *(column for column, _ in worth)]))


def group_columns(options: argparse.Namespace, log: Log | ScannedLog) -> list[str]:
    """The columns of --by, and those in whose groups --gate asks a part to hold."""
    asked = list(options.by or ())
    named = {*asked, *(entry.rpartition(":")[0] for entry in asked)}
    return asked + [column for column in columns_named(options.gate or "", log.columns) if column not in named]


def outcome_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """--also and --worth, of the command that has them."""
    also, worth = getattr(options, "also", None), getattr(options, "worth", None)
    return {"also": outcomes("--also", also or ()), "worth": worths("--worth", worth or ())}


def note_inputs(options: argparse.Namespace) -> None:
    """Remember every file that the options name, so that no output takes its place."""
    with contextlib.suppress(PodiumError, OSError):  # a log that is not there is told of when it is opened
        for path in find_files(options.log, KINDS).files:
            note_input(path)
    for spec in (*specs_of(options), options.baseline, options.action_features or ""):
        note_input(file_of(spec))


def question_of(options: argparse.Namespace) -> Question:
    """What the options ask of the log, as far as it decides how much memory that takes."""
    specs = [entry.partition("=")[2] for entry in options.policy or ()]
    behavior = options.behavior or ""
    return Question(
        policies=len(specs) or 2,
        tables=sum(map(gives_table, specs)),
        actions=len(split(options.actions)) if options.actions is not None else 0,
        sample_rows=options.sample_rows,
        at_once=getattr(options, "normalize", "rows") == "states",
        whole=bool(options.logged_by)
        or any((options.success, options.drop_missing, options.date_format, options.sheet, options.decimal))
        or options.run == "suggest"
        or getattr(options, "since", None) is not None
        or behavior.partition(":")[0] == "estimate"
        or any(map(is_recipe, specs)),
        behavior=is_asked(behavior) or bool(options.logged_by),
    )


def specs_of(options: argparse.Namespace) -> list[str]:
    """The SPEC of every policy that the options name."""
    entries = (*(options.policy or ()), *(options.logged_by or ()), *(getattr(options, "against", None) or ()))
    named = [entry.partition("=")[2] for entry in entries]
    return [*named, options.behavior or ""]


def policies_of(options: argparse.Namespace) -> dict[str, str] | None:
    """--policy NAME=SPEC as a mapping; None leaves the log's own pi_ columns."""
    return named_specs(options.policy, "--policy") if options.policy else None


def rivals_of(options: argparse.Namespace) -> dict[str, str]:
    """--against NAME=SPEC, or the one word logged, as a mapping."""
    given = options.against or ()
    return named_specs(["logged=logged" if entry == "logged" else entry for entry in given], "--against")


def named_specs(entries: Sequence[str], option: str, forms: str = FORMS) -> dict[str, str]:
    policies: dict[str, str] = {}
    for entry in entries:
        name, equals, spec = entry.partition("=")
        if not (name and equals and spec):
            raise PodiumError(f"{option} {entry!r} is not NAME=SPEC", hint=f"a SPEC is one of {forms}.")
        if name in policies:
            raise PodiumError(f"the policy {name!r} is given twice", hint="give each policy a name of its own.")
        policies[name] = spec
    return policies


def baseline_of(text: str) -> Any:
    """A baseline named on the command line: mean, linear, state, a number, or package.module:object."""
    try:
        return float(text)
    except ValueError:
        pass
    module, colon, name = text.partition(":")
    if colon:
        return load_object(module, name, "baseline")
    return text


def judge_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options that compare, check and plan share."""
    return {
        "estimator": options.estimator,
        "baseline": baseline_of(options.baseline),
        "level": options.level,
        "verdicts": options.verdicts,
        "lower_is_better": options.lower_is_better,
        "behavior": behavior_of(options),
        "joint": options.joint,
        "look": options.look,
        "since": options.since,
        **method_arguments(options),
    }


def method_arguments(options: argparse.Namespace) -> dict[str, Any]:
    names = ("normalize", "duplicates", "seed", "sample_rows")
    return {name: getattr(options, name) for name in names} | known_arguments(options)


def known_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What is known of the actions, where something is: their features, their costs."""
    given = {"action_features": options.action_features, "cost": options.cost}
    return {name: value for name, value in given.items() if value is not None}


def behavior_of(options: argparse.Namespace) -> Any:
    """--behavior SPEC, or --logged-by NAME=SPEC for each of several loggers with --logger COL."""
    if not options.logged_by:
        if options.logger is not None:
            raise PodiumError("--logger needs --logged-by NAME=SPEC", hint="name the policy of every logger.")
        return options.behavior
    if options.behavior is not None:
        raise PodiumError("--behavior and --logged-by exclude each other", hint="give the one or the other.")
    return Loggers(named_specs(options.logged_by, "--logged-by"), by=options.logger or "logger")


def split(text: str, option: str = "--actions") -> list[str]:
    """Comma-separated labels; quote one that holds a comma."""
    labels = [label.strip() for label in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(labels) or not labels:
        what = "names an empty action" if option == "--actions" else "has an empty name"
        raise PodiumError(f"{option} {text!r} {what}", hint=f"write {option} a,b,c.")
    return labels


def recorded(options: argparse.Namespace) -> tuple[list[Any], dict[str, str], dict[str, Any]]:
    """The episodes of a file of steps, the policies, and the options that belong to episodes."""
    from podium.episodes import read

    unused = (
        "propensity", "time", "unit", "text", "actions", "eligible", "action_features", "cost", "success",
        "date_format", "sheet", "decimal",
    )  # fmt: skip
    refuse_options(options, unused, "has no meaning with --episodes")
    refuse_options(options, ("also", "worth"), "cannot be used with --episodes")
    steps = [*read(options.log, action=options.action, reward=options.reward, observation=options.state or ())]
    given = {name: getattr(options, name) for name in STEPS if getattr(options, name) is not None}
    return steps, policies_of(options) or {}, given


def refuse_options(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(options, name, None) is not None:
            raise PodiumError(f"--{name.replace('_', '-')} {why}", hint=f"see podium {options.run} --help.")
