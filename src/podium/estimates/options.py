"""The options of every question, checked once: what `compare` takes, and what its siblings take of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from podium.data.action_features import action_features
from podium.data.arguments import SEED, choice, flag, optional, real, text, whole
from podium.data.coded import space
from podium.data.costs import CostNames, cost_names
from podium.data.errors import PodiumError, close_to, shown
from podium.data.grouping import by_columns
from podium.data.outcomes import Outcome, asked_outcomes, outcomes, worths
from podium.data.since import since_time
from podium.engines.sample import SAMPLE_ROWS
from podium.estimates.baselines import check_baseline
from podium.estimates.estimators import Estimator
from podium.verdicts.looks import look_text

LEAST_SAMPLE = 100
MOST_DRAWS = 1_000_000


def method(name: str, value: Any) -> Any:
    """The name of a method, or a method itself."""
    return value if isinstance(value, Estimator) else text(name, value)


RULES = {
    "level": real(0, 1), "estimator": optional(method), "verdicts": optional(text), "unit": optional(text),
    "normalize": choice("rows", "states"), "duplicates": optional(choice("latest", "all")),
    "lower_is_better": flag, "joint": flag, "actions": space,
    "bootstrap": whole(0, 1000, MOST_DRAWS), "seed": SEED, "sample_rows": whole(LEAST_SAMPLE, SAMPLE_ROWS),
    "look": optional(look_text), "action_features": optional(action_features),
    "cost": optional(cost_names), "by": by_columns, "also": outcomes, "worth": worths, "difference": optional(real()),
    "since": optional(since_time),
}  # fmt: skip
OUTCOMES = ("by", "also", "worth", "difference")  # what only a comparison takes


@dataclass(frozen=True)
class Options:
    """What a question asks for besides the log and the policies; `podium.compare` says what each option means."""

    estimator: Any = None
    baseline: Any = "mean"
    level: float = 0.95
    verdicts: str | None = None
    normalize: str = "rows"
    duplicates: str | None = None
    unit: str | None = None
    lower_is_better: bool = False
    behavior: Any = None
    actions: Sequence[Any] = ()
    joint: bool = False
    bootstrap: int = 0
    seed: int = 0
    sample_rows: int = SAMPLE_ROWS
    look: Any = None
    action_features: Any = None
    cost: Any = None
    by: Sequence[str] = ()
    also: Any = ()
    worth: Any = ()
    difference: float | None = None
    since: Any = None

    def __post_init__(self) -> None:
        level = self.level
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            hint = "use level=0.95 for 95% intervals."
            raise PodiumError(f"level must lie between 0 and 1; it is {shown(level)}", hint=hint)
        for name, rule in RULES.items():
            object.__setattr__(self, name, rule(name, getattr(self, name)))
        check_baseline(self.baseline)
        if self.difference is not None and self.difference <= 0:
            hint = "name the smallest difference in reward that would matter to you."
            raise PodiumError(f"difference must be a positive number; it is {shown(self.difference)}", hint=hint)
        if self.cost is not None and self.normalize == "states":
            hint = 'leave normalize="states" out, or subtract the costs from the rewards.'
            raise PodiumError("known costs are averaged over rows, not over states", hint=hint)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every outcome beside the reward, with its direction."""
        return asked_outcomes(self.also, self.worth, self.lower_is_better)

    @classmethod
    def of(cls, allowed: Sequence[str], given: Mapping[str, Any], **others: Any) -> Options:
        """Options by keyword, those that a question knows; any other is refused by name."""
        for name in given:
            if name not in allowed:
                near = close_to(name, allowed)
                hint = f"did you mean {near}?" if near else "the options are " + ", ".join(allowed) + "."
                raise PodiumError(f"unknown option {name!r}", hint=hint)
        return cls(**given, **others)

    def as_python(self) -> str:
        """The call of `podium.compare` with these options; what has no literal is named like the option itself."""
        changed = [f for f in fields(self) if not is_same(getattr(self, f.name), f.default)]
        given = [f"{f.name}={literal(f.name, getattr(self, f.name))}" for f in changed]
        return f"podium.compare({', '.join(['log', 'policies', *given])})"


def is_same(value: Any, default: Any) -> bool:
    """Whether an option has its default value; arrays and models never have."""
    return value is default or (isinstance(value, str | Real | tuple | list) and tuple_of(value) == tuple_of(default))


def tuple_of(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


def literal(name: str, value: Any) -> str:
    """An option as it is written in code.

    >>> literal("baseline", 0.25), literal("baseline", print), literal("actions", ("a", "b"))
    ('0.25', 'baseline', "['a', 'b']")
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, CostNames):
        return value.as_python()
    if name in ("also", "worth"):
        return repr(dict(value) if name == "worth" else [str(outcome) for outcome in value])
    if value is None or isinstance(value, str | bool | int | float):
        return repr(value)
    if isinstance(value, tuple | list) and all(isinstance(x, str | int | float) for x in value):
        return repr(list(value))
    return str(getattr(value, "name", name)) if name == "estimator" else name
