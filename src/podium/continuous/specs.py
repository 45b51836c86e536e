"""SPEC strings of policies that choose numbers.

column:NAME · constant:2.5 · sql:EXPRESSION · logged · package.module:object · model.skops
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from podium.adapters.skops import load_skops
from podium.data.columns import numbers_column
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.roles import available
from podium.policies.specs import is_member, is_spec, load_object
from podium.policies.sql import chosen_actions

FORMS = "column:NAME, constant:2.5, sql:EXPRESSION, logged, package.module:object, model.skops"


def read_spec(name: str, spec: str, log: Log) -> Any:
    """What a SPEC stands for: a number, the chosen number of every row, or something to ask."""
    head, _, rest = spec.partition(":")
    if head == "column" and rest:
        return chosen_column(name, rest, log)
    if head == "constant" and rest:
        return constant(name, rest)
    if head == "sql" and rest:
        try:
            return chosen_actions(name, rest, log)
        except PodiumError as error:  # whose hint shows actions that are names
            raise PodiumError(error.message, error.hint.replace("THEN 'a' ELSE 'b'", "THEN 1.5 ELSE 2.5")) from error
    if Path(spec).suffix.lower() == ".skops":
        return load_skops(Path(spec)).model
    if spec in log.columns and not is_member(spec):
        return chosen_column(name, spec, log)
    listed = head in ("shares", "sb3", "vw") or spec in ("uniform", "logged")
    if is_member(spec) and not listed:
        return load_object(head, rest, "policy")
    if is_spec(spec):
        raise PodiumError(
            f"policy {name!r}: {spec!r} is for actions that can be listed, and these are numbers",
            hint=f"a SPEC is one of {FORMS}.",
        )
    raise PodiumError(f"unknown policy {spec!r}", hint=f"a SPEC is one of {FORMS}; or name a column of the log.")


def chosen_column(name: str, header: str, log: Log) -> Any:
    """The numbers of a column of the log."""
    if header not in log.columns:
        raise PodiumError(f"policy {name!r}: the log has no column {header!r}", hint=available(log.columns, header))
    what = f"policy {name!r}: column {header!r}"
    return numbers_column(log.columns[header], what, "the column holds the number that the policy chooses in each row.")


def constant(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise PodiumError(f"policy {name!r}: {text!r} is not a number", hint="write constant:2.5.")
    return value
