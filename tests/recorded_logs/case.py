"""A recorded log with its policies, and the questions that are asked about it.

To add a log, write a function that returns a `Case` and mark it with `@recorded`; the function's name becomes the name
of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import podium

FUNCTIONS = {
    "compare": "compare",
    "evaluate": "evaluate",
    "states": "compare_states",
    "check": "diagnose",
    "plan": "plan",
    "spectrum": "spectrum",
}
# Options of a case that these questions accept; the others accept all of them.
ACCEPTED = {
    "evaluate": ("baseline", "normalize", "duplicates", "behavior", "actions", "seed", "kernel", "bandwidth", "bounds",
                 "gamma", "horizon"),
    "states": ("baseline", "normalize", "duplicates", "lower_is_better", "behavior", "actions", "seed"),
    "spectrum": ("level", "unit", "lower_is_better", "behavior", "actions", "seed"),
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {"plan": {"difference": 0.2}, "evaluate": {"estimators": "all"}}
PROCEDURES = ("posterior", "gated", "paired t", "bootstrap t", "sign flip")


@dataclass(frozen=True)
class Case:
    """A log, its policies, and what is asked about them.

    Parameters
    ----------
    log, policies : as `podium.compare` takes them
    options : of every question that accepts them
    asked : the questions, by the names of the commands; each is asked once with `options`
    more : further questions: "compare joint" is `compare` with these options as well
    gates : conditions that are put to the first comparison
    home : the module that answers: `podium`, `podium.continuous` or `podium.episodes`
    """

    log: Any
    policies: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] = tuple(FUNCTIONS)
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    home: Any = podium


LOGS: dict[str, Callable[[], Case]] = {}


def recorded(make: Callable[[], Case]) -> Callable[[], Case]:
    """Add a log to the record under the name of the function that makes it."""
    LOGS[make.__name__.replace("_", " ")] = make
    return make


def answers_about(make_case: Callable[[], Case]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of every question about a log and its answer, as JSON has it.

    A refusal is an answer too. An error that is not a refusal is one that no record may hold.
    """
    try:
        case = make_case()
    except Exception as error:
        yield "making the log", failure(error)
        return
    for name in (*case.asked, *case.more):
        try:
            yield name, ask(case, name)
        except podium.PodiumError:
            yield name, {"refused": True}
        except Exception as error:
            yield name, failure(error)


def ask(case: Case, name: str) -> dict[str, Any]:
    """Answer one question; the first word of its name says which function does."""
    question = name.split()[0]
    options = {k: v for k, v in case.options.items() if k in ACCEPTED.get(question, case.options)}
    if case.home is podium:
        options = {**DEFAULTS.get(question, {}), **options}
    result = getattr(case.home, FUNCTIONS[question])(case.log, case.policies, **{**options, **case.more.get(name, {})})
    gates = case.gates if name == "compare" else ()
    return {**result.to_dict(), "gates": [result.gate(condition).to_dict() for condition in gates]}


def failure(error: Exception) -> dict[str, str]:
    return {"failed": f"{type(error).__name__}: {error}"}
