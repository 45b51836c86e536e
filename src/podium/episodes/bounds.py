"""The bounds of a continuous action space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.adapters.sb3 import is_discrete
from podium.data.columns import Floats
from podium.data.errors import PodiumError, count, show_value

ROUNDING = 1e-6  # as a share of the range: bounds are often kept in single precision
HINT = "give bounds=(low, high), numbers or one per coordinate; a Gymnasium space or environment also serves."


@dataclass(frozen=True, eq=False)
class Bounds:
    """low and high, (d,) each, both finite.

    Examples
    --------
    >>> bounds_of((-1, [1, 2]))
    Bounds(low=array([-1., -1.]), high=array([1., 2.]))
    """

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        for name, values in (("low", self.low), ("high", self.high)):
            if not np.isfinite(values).all():
                j = int(np.flatnonzero(~np.isfinite(values))[0])
                raise PodiumError(
                    f"the action space is unbounded: {name} is {show_value(values[j])} at coordinate {j + 1}",
                    hint="the proxy measures distances as shares of the action range; give bounds=(low, high) that "
                    "hold every action, or policies that offer log_prob(observations, actions).",
                )
        empty = np.flatnonzero(self.high <= self.low)
        if empty.size:
            j = int(empty[0])
            raise PodiumError(
                f"the action space must have low < high; coordinate {j + 1} has low {show_value(self.low[j])} and "
                f"high {show_value(self.high[j])} ({count(empty.size, 'coordinate')})",
                hint=HINT,
            )

    def outside(self, actions: Floats) -> Any:
        """Which actions (..., d) lie outside by more than rounding."""
        slack = ROUNDING * (self.high - self.low)
        return (actions < self.low - slack) | (actions > self.high + slack)

    def clip(self, actions: Floats) -> Floats:
        return np.clip(actions, self.low, self.high)

    def matches(self, other: Bounds) -> bool:
        if len(self.low) != len(other.low):
            return False
        pairs = ((self, other.low), (self, other.high), (other, self.low), (other, self.high))
        return not any(bounds.outside(end).any() for bounds, end in pairs)

    def spread(self, d: int) -> Bounds:
        """The same bounds for each of d coordinates, where one pair was given for all."""
        if len(self.low) == d or len(self.low) > 1:
            return self
        return Bounds(np.repeat(self.low, d), np.repeat(self.high, d))


def bounds_of(source: Any) -> Bounds:
    """Bounds from a pair (low, high), a Gymnasium space, or whatever has such an `action_space`."""
    if isinstance(source, Bounds):
        return source
    space = getattr(source, "action_space", source)
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = space.low, space.high
    elif isinstance(space, tuple | list) and len(space) == 2:
        low, high = space
    elif is_discrete(space):
        raise PodiumError(
            f"the action space is discrete: {space}",
            hint="the proxy is for continuous actions. Give policies that offer log_prob(observations, actions), or "
            "one row per step: podium.Log(observations, actions, rewards).",
        )
    else:
        raise PodiumError(f"no bounds of an action space can be read from {type(source).__name__}", hint=HINT)
    try:
        pair = np.broadcast_arrays(np.asarray(low, np.float64).reshape(-1), np.asarray(high, np.float64).reshape(-1))
    except (TypeError, ValueError, OverflowError) as error:
        raise PodiumError("bounds must be two numbers, or two lists of the same length", hint=HINT) from error
    return Bounds(pair[0].copy(), pair[1].copy())
