"""What is said of values that are read as they are and may not mean what they seem to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from podium.data.columns import Column, is_missing
from podium.data.errors import count
from podium.data.facts import Fact
from podium.data.guesses import is_harmful, says_yes_or_no
from podium.data.roles import Roles

SENTINELS = (-9999, -999, -99, 999, 9999, 99999)  # numbers that programs write for a missing value
LEAST_OTHERS = 10  # rows with other values by which a sentinel is known


def remarks(columns: Mapping[str, Column], written: Mapping[str, Column], roles: Roles) -> list[Fact]:
    """What a person should look at in the rewards and the states; nothing is changed."""
    reward = roles.names["reward"]
    found = [Fact("harmful outcome", column=reward)] if is_harmful(reward) else []
    numbers = numbers_of(written[reward])
    if says_yes_or_no(reward) and {*np.unique(numbers).tolist()} == {1.0, 2.0}:
        found.append(Fact("codes of yes and no", column=reward))
    for header in dict.fromkeys((reward, *roles.states)):
        found += sentinels(header, numbers_of(columns[header]))
    return found


def numbers_of(column: Column) -> Column:
    """The finite numbers of a column of numbers; none of any other."""
    present = column[~is_missing(column)]
    if present.dtype == object and not all(type(x) in (int, float) for x in present):
        return np.zeros(0)
    if present.dtype.kind not in "iufO":
        return np.zeros(0)
    try:
        numbers = present.astype(np.float64)
    except OverflowError:  # a whole number beyond every float
        return np.zeros(0)
    return numbers[np.isfinite(numbers)]


def sentinels(header: str, numbers: Column) -> list[Fact]:
    """A number for a missing value: it is farther from all others than they are from each other."""
    for value in SENTINELS:
        others = numbers[numbers != value]
        rows = len(numbers) - len(others)
        if not rows or len(others) < LEAST_OTHERS:
            continue
        low, high = float(others.min()), float(others.max())
        far = max(low - value, value - high) > max(2 * (high - low), 10.0)
        if far or (value < 0 <= low and low - value > high - low):
            return [Fact("sentinel", column=header, value=float(value), rows=count(rows, "row"))]
    return []
