"""Forms to questions: what a person chose on a page, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.data.errors import PodiumError
from podium.studio.limits import Limits
from podium.studio.questions import (
    BASELINES,
    BEHAVIORS,
    ESTIMATORS,
    ROLES,
    Candidate,
    Question,
    free_name,
    policy_name,
    with_behavior,
)

LONGEST = 100  # characters of a value that a person writes
KINDS = ("column", "constant", "uniform", "logged", "file")


def chosen_roles(question: Question, form: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The role of every column, by its place on the page, and the columns to read as names."""
    roles = {h: str(form.get(f"role-{i}", "")) for i, h in enumerate(question.roles)}
    if not set(roles.values()) <= set(ROLES):
        raise PodiumError("that is no role of a column", hint="choose a role for every column.")
    texts = [h for i, h in enumerate(question.roles) if form.get(f"text-{i}") and h in question.headers]
    return roles, texts


def chosen_reading(question: Question, form: Mapping[str, Any]) -> Question:
    """The question with values read as a form wants it."""
    success, dates = (str(form.get(name, "")).strip()[:LONGEST] for name in ("success", "date_format"))
    return replace(question, success=success, date_format=dates, drop_missing=bool(form.get("drop_missing")))


def chosen_behavior(question: Question, form: Mapping[str, Any], known: str) -> Question:
    """The question with propensities as a form wants them; `known` says what the log itself has."""
    behavior = str(form.get("behavior", question.behavior))
    if behavior not in BEHAVIORS:
        raise PodiumError("that is no way to have propensities", hint="choose one from the list.")
    if behavior and known != "none":
        raise PodiumError("the log has propensities, so they are not estimated", hint="leave them as they are.")
    return question if behavior == question.behavior else with_behavior(question, behavior)


def chosen_settings(question: Question, form: Mapping[str, Any]) -> Question:
    """The question with the method that a form names."""
    estimator, baseline = str(form.get("estimator", "")), str(form.get("baseline", "mean"))
    if estimator not in ESTIMATORS or baseline not in BASELINES:
        raise PodiumError("that is no method of the studio", hint="choose one from the list.")
    if baseline == "number":
        baseline = repr(number(form.get("baseline-number"), "the baseline"))
    level = number(form.get("level", "95"), "the level") / 100
    if not 0.5 <= level <= 0.9999:
        raise PodiumError("the level must lie between 50% and 99.99%", hint="95 is usual.")
    return replace(
        question,
        estimator=estimator,
        baseline=baseline,
        level=round(level, 6),
        lower_is_better=bool(form.get("lower")),
        joint=bool(form.get("joint")),
    )


def number(text: Any, what: str) -> float:
    try:
        value = float(str(text).strip().replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise PodiumError(f"{what} must be a number", hint="write digits, as in 0.5.")
    return value


def new_candidate(
    question: Question, labels: list[str], form: Mapping[str, Any], file: tuple[str, str] | None, limits: Limits
) -> Candidate:
    """The policy that a form adds; `file` is what an uploaded policy is called and where it is kept."""
    kind = str(form.get("kind", ""))
    if kind not in KINDS:
        raise PodiumError("that is no kind of policy", hint="choose one from the page.")
    if len(question.candidates) >= limits.policies:
        raise PodiumError(f"the studio compares at most {limits.policies} policies", hint="remove one first.")
    value, path = str(form.get("value", "")), ""
    default = kind
    if kind == "column":
        if value not in question.roles:
            raise PodiumError("there is no such column", hint="choose one from the list.")
        default = policy_name(value)
    elif question.continuous and kind in ("uniform", "file"):
        raise PodiumError("that policy is for actions that can be listed", hint="choose one from the page.")
    elif kind == "constant" and question.continuous:
        value = f"{number(value, 'the constant'):.12g}"
        default = f"always {value}"
    elif kind == "constant":
        if value not in labels:
            raise PodiumError("the log knows no such action", hint="choose one from the list.")
        default = f"always {value}"
    elif kind == "file":
        if file is None:
            raise PodiumError("choose the policy's file first", hint="it has one row per row of the log, or per state.")
        value, path = file
        default = value.rpartition(".")[0]
    else:
        value = ""
    taken = {c.name for c in question.candidates}
    name = str(form.get("name", "")).strip()
    if not name:
        name = free_name(default.replace("=", " ").strip()[:100] or "policy", taken)
    check_name(name, taken)
    return Candidate(name, kind, value, path)


def check_name(name: str, taken: set[str]) -> None:
    if name in taken:
        raise PodiumError(f"there is a policy called {name} already", hint="give each policy a name of its own.")
    if "=" in name or len(name) > 100 or not name.isprintable():
        raise PodiumError(
            "a policy's name has at most 100 printable characters and no equals sign", hint="choose a plain name."
        )
