"""Commands on logs whose actions are numbers (--continuous): log, policies, and options that do not apply."""

from __future__ import annotations

import argparse
from typing import Any

from podium.command.options import (
    STEPS,
    baseline_of,
    judge_arguments,
    method_arguments,
    named_specs,
    refuse_options,
)
from podium.comparison.result import Comparison
from podium.continuous import ContinuousLog, read_log
from podium.continuous.log import METHODS
from podium.continuous.specs import FORMS
from podium.data.errors import PodiumError
from podium.estimates.evaluate import Estimates

# options for actions that can be listed
LISTED = ("behavior", "logged_by", "logger", "actions", "eligible", "action_features", "cost")
SMOOTHING = ("kernel", "bandwidth")
ABLE = ("compare", "evaluate")  # the commands that take such logs


def check_commands(options: argparse.Namespace) -> None:
    """Refuse --continuous where it has no meaning, and its options where it is not given."""
    if not getattr(options, "continuous", False):
        refuse_options(options, [name for name in SMOOTHING if hasattr(options, name)], "needs --continuous")
        return
    if options.run not in ABLE:
        raise PodiumError(
            f"podium {options.run} cannot be used with --continuous: it is for actions that can be listed",
            hint="use podium compare or podium evaluate.",
        )
    if options.episodes:
        raise PodiumError(
            "--episodes and --continuous exclude each other",
            hint="leave --continuous out: actions of episodes may be numbers.",
        )
    refuse_options(options, STEPS, "needs --episodes")
    refuse_options(options, LISTED, "has no meaning with --continuous")
    refuse_options(options, ("also", "worth"), "cannot be used with --continuous")
    if options.engine not in ("auto", "memory"):
        raise PodiumError(
            f"continuous actions are compared in memory, and --engine names {options.engine}",
            hint="leave --engine out, and give one file.",
        )


def opened(options: argparse.Namespace) -> ContinuousLog:
    """The log that the options name."""
    if not options.log:
        raise PodiumError("the name of the log is empty", hint="name a file.")
    return read_log(
        options.log,
        text=options.text or (),
        state=options.state or None,
        action=options.action,
        reward=options.reward,
        propensity=options.propensity,
        time=options.time,
        unit=options.unit,
    )


def policies(options: argparse.Namespace) -> dict[str, str]:
    if not options.policy:
        raise PodiumError(
            "no policies to compare", hint=f"give each with --policy NAME=SPEC; a SPEC is one of {FORMS}."
        )
    return named_specs(options.policy, "--policy", FORMS)


def smoothing(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in SMOOTHING if getattr(options, name) is not None}


def compare_numbers(options: argparse.Namespace, bootstrap: int) -> Comparison:
    """`podium compare --continuous`."""
    asked = {"bootstrap": bootstrap, "difference": options.difference}
    given, judged = policies(options), {**judge_arguments(options), **asked}
    return opened(options).compare(given, **judged, **smoothing(options))


def evaluate_numbers(options: argparse.Namespace) -> Estimates:
    """`podium evaluate --continuous`."""
    refuse_unused(options)
    how: dict[str, Any] = {"baseline": baseline_of(options.baseline), "seed": options.seed, **smoothing(options)}
    return opened(options).evaluate(policies(options), options.estimator or METHODS, **how)


def refuse_unused(options: argparse.Namespace) -> None:
    """Refuse options of evaluate that the estimates of such logs do not take."""
    given = method_arguments(options)
    if given["normalize"] != "rows":
        raise PodiumError("--normalize has no meaning with --continuous", hint="see podium evaluate --help.")
    if given["duplicates"] is not None:
        raise PodiumError("--duplicates has no meaning with --continuous", hint="see podium evaluate --help.")
