"""Outcomes beside the reward, as users name them: `visits`, `cost:lower`, and what one is worth, `cost=-0.2`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from podium.data.errors import PodiumError, shown

LARGEST = 1e100  # as for rewards
DIRECTIONS = {"lower": True, "higher": False}
ALSO_HINT = "write --also visits, or --also cost:lower where lower is better; in Python, also=['visits', 'cost:lower']."
WORTH_HINT = "write --worth cost=-0.2; in Python, worth={'cost': -0.2}."


@dataclass(frozen=True)
class Outcome:
    """A column that is compared beside the reward, and whether lower is better; None where that was not said."""

    column: str
    lower: bool | None = None

    def __str__(self) -> str:
        return self.column if self.lower is None else f"{self.column}:{'lower' if self.lower else 'higher'}"


def outcome_of(entry: str) -> Outcome:
    """`COL`, `COL:lower` or `COL:higher` as an outcome.

    >>> outcome_of("cost:lower"), outcome_of("visits")
    (Outcome(column='cost', lower=True), Outcome(column='visits', lower=None))
    """
    column, colon, direction = entry.rpartition(":")
    if colon and column and direction in DIRECTIONS:
        return Outcome(column, DIRECTIONS[direction])
    return Outcome(entry)


def outcomes(name: str, given: Any) -> tuple[Outcome, ...]:
    """Outcomes in any form that users may write; each only once."""
    entries = [given] if isinstance(given, str | Outcome) else given
    if not isinstance(entries, Sequence) or not all(isinstance(entry, str | Outcome) and entry for entry in entries):
        raise PodiumError(f"{name} must name columns of the log; it is {shown(given)}", hint=ALSO_HINT)
    found = tuple(entry if isinstance(entry, Outcome) else outcome_of(entry) for entry in entries)
    refuse_twice("outcome", [outcome.column for outcome in found])
    return found


def outcome_columns(name: str, given: Any) -> tuple[str, ...]:
    """The columns of outcomes, whichever direction is better."""
    return tuple(outcome.column for outcome in outcomes(name, given))


def worths(name: str, given: Any) -> tuple[tuple[str, float], ...]:
    """What outcomes are worth in units of the reward: a mapping, `COL=W`, or several such texts."""
    if isinstance(given, Mapping):
        pairs = [(column, given[column]) for column in given]
    else:
        entries = [given] if isinstance(given, str) else given
        if not isinstance(entries, Sequence):
            raise PodiumError(f"{name} must say what outcomes are worth; it is {shown(given)}", hint=WORTH_HINT)
        pairs = [worth_of(name, entry) for entry in entries]
    for column, number in pairs:
        good = isinstance(number, Real) and not isinstance(number, bool) and abs(float(number)) <= LARGEST
        if not isinstance(column, str) or not good:
            raise PodiumError(
                f"the worth of {shown(column)} must be a finite number; it is {shown(number)}", hint=WORTH_HINT
            )
    refuse_twice("worth of", [column for column, _ in pairs])
    return tuple((column, float(number)) for column, number in pairs)


def worth_of(name: str, entry: Any) -> tuple[Any, Any]:
    """`COL=W` as its parts; a column may have `=` in its name, a number has none."""
    if isinstance(entry, tuple) and len(entry) == 2:
        return entry
    column, equals, text = entry.rpartition("=") if isinstance(entry, str) else ("", "", "")
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not (column and equals) or number != number:
        raise PodiumError(f"{name} {shown(entry)} is not COLUMN=NUMBER", hint=WORTH_HINT)
    return column, number


def refuse_twice(what: str, columns: Iterable[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise PodiumError(f"the {what} {column!r} is given twice", hint="give it once.")
        seen.add(column)


def asked_outcomes(
    also: Sequence[Outcome], worth: Sequence[tuple[str, float]], lower_is_better: bool
) -> tuple[Outcome, ...]:
    """All outcomes that are named, each with its direction: as it was said, else as its worth says, else higher."""
    said = {outcome.column: outcome.lower for outcome in also} | {
        column: next((o.lower for o in also if o.column == column), None) for column, _ in worth
    }
    weights = dict(worth)
    implied = {column: (weights.get(column, 0.0) < 0) != lower_is_better for column in said if weights.get(column)}
    return tuple(
        Outcome(column, implied.get(column, False) if lower is None else lower) for column, lower in said.items()
    )


def formula(reward: str, worth: Sequence[tuple[str, float]]) -> str:
    """What a row is worth, as a person would write it.

    >>> formula("reward", [("cost", -0.2), ("visits", 3.0)])
    'reward - 0.2 x cost + 3 x visits'
    """
    return reward + "".join(f" {'-' if w < 0 else '+'} {abs(w):g} x {column}" for column, w in worth)


def refuse_beside(options: Mapping[str, Any], what: str) -> None:
    """Refuse outcomes beside the reward where only the reward can be compared."""
    for name in ("also", "worth"):
        if options.get(name):
            raise PodiumError(f"{name}= cannot be used with {what}", hint="compare one reward at a time.")
