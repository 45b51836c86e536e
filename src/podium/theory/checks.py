"""The numbers that the theorems are asked about: each is refused where the theorem would not fit it."""

from __future__ import annotations

import math

from podium.data.errors import PodiumError, shown


def checked_number(name: str, value: float) -> float:
    try:
        number = float(value)
    except Exception:  # whatever it is
        number = math.nan
    if not math.isfinite(number):
        raise PodiumError(f"{name} must be a finite number; it is {shown(value)}", hint=f"give a number as {name}.")
    return number


def checked_count(name: str, value: int) -> int:
    number = checked_number(name, value)
    if number < 1 or number != int(number):
        raise PodiumError(
            f"{name} must be a whole number >= 1; it is {shown(value)}",
            hint="the theorem counts distinct things; means and shares do not fit it.",
        )
    return int(number)


def checked_observed(name: str, value: int, actions: int) -> int:
    number = checked_count(name, value)
    if number > actions:
        raise PodiumError(
            f"{name} must not exceed actions; they are {number} and {actions}",
            hint="count distinct actions in a state; repeated draws count once.",
        )
    return number


def checked_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        raise PodiumError(
            f"reward_range must be a pair (low, high); it is {shown(reward_range)}",
            hint="for example reward_range=(0, 1), or reward_range_of(rewards).",
        ) from None
    bottom, top = checked_number("reward_range[0]", low), checked_number("reward_range[1]", high)
    if bottom >= top:
        raise PodiumError(
            f"reward_range must have low < high; it is ({bottom:.10g}, {top:.10g})",
            hint="for example reward_range=(0, 1); with a single possible reward all policies are equal.",
        )
    return bottom, top


def checked_difference(difference: float, reward_range: tuple[float, float]) -> float:
    low, high = checked_range(reward_range)
    gap = abs(checked_number("difference", difference))
    if gap > (high - low) * (1.0 + 1e-9):
        raise PodiumError(
            f"difference must not exceed the reward range; it is {gap:.10g} and the range {high - low:.10g}",
            hint="both in reward units: two policies cannot differ by more than two rewards can.",
        )
    return gap
