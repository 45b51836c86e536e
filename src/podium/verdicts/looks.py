"""Looking at a growing log again and again: the error of a claim is spent over the planned looks.

A log that is compared after every batch gives chance many opportunities. Here look k of K may spend what the spending
function a(t) = (1 - level) t^2 allows up to t = k / K, less what the earlier looks spent (Lan and DeMets 1983, Kim and
DeMets 1987). With equal batches and no difference, the test statistic is a Brownian motion seen at K times, so that the
nominal error of each look follows from integrating its density within the earlier limits, look by look (Armitage,
McPherson and Rowe 1969).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from podium.data.errors import PodiumError, shown

POWER = 2.0  # of the spending function; docs/monitoring.md compares others
OFTEN = 64  # looks that a plan by rows allows for
MOST = 400
HINT = 'use look="3/16" for the third of 16 planned looks, or look="rows:3200" where 3,200 rows are planned.'


@dataclass(frozen=True)
class Look:
    """Look `number` of `of` planned ones."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def look_text(name: str, value: Any) -> str:
    """A look as it is written: "3/16", (3, 16) or "rows:3200"; anything else is refused."""
    whole = isinstance(value, tuple | list) and all(isinstance(x, Integral) and not isinstance(x, bool) for x in value)
    if whole and len(value) == 2:
        value = f"{int(value[0])}/{int(value[1])}"
    if not isinstance(value, str):
        raise PodiumError(f"{name} must be a text such as '3/16'; it is {shown(value)}", hint=HINT)
    parse_look(value, rows=1)
    return value.strip()


def parse_look(text: str, rows: int) -> Look:
    """The look that a text names, for a log of so many rows.

    >>> parse_look("3/16", rows=150), parse_look("rows:3200", rows=800)
    (Look(number=3, of=16), Look(number=16, of=64))
    """
    if found := re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text):
        number, of = int(found[1]), int(found[2])
        if not 1 <= number <= of <= MOST:
            raise PodiumError(
                f"look {text!r} must be K/N with K from 1 to N, and N at most {MOST:,}; it is {number} of {of}",
                hint=HINT,
            )
        return Look(number, of)
    if found := re.fullmatch(r"\s*rows:\s*(\d{1,15})\s*", text):
        planned = int(found[1])
        if planned < 1:
            raise PodiumError(f"look {text!r} plans no rows", hint=HINT)
        return Look(min(OFTEN, -(-OFTEN * rows // planned)), OFTEN)
    raise PodiumError(f"look {text!r} is not of the form K/N or rows:N", hint=HINT)


def spend(look: Look | None, level: float) -> float:
    """The nominal two-sided error of a claim at this look; 1 - level without planned looks.

    >>> [round(spend(Look(k, 4), 0.95), 4) for k in (1, 2, 3, 4)], spend(None, 0.95) == 1 - 0.95
    ([0.0031, 0.0105, 0.0214, 0.0364], True)
    """
    return 1 - level if look is None else nominal_errors(look.of, float(level))[look.number - 1]


@lru_cache(maxsize=32)
def nominal_errors(looks: int, level: float, power: float = POWER) -> tuple[float, ...]:
    """The nominal two-sided error of every look.

    The statistic is a sum of standard normal steps, one for each look. `density` is that of the sum where no earlier
    look has made a claim, at Gauss-Legendre points between the limits.
    """
    from scipy.special import ndtr, ndtri

    error = 1 - level
    spent = error * (np.arange(1, looks + 1) / looks) ** power
    nodes, weights = np.polynomial.legendre.leggauss(int(40 + 14 * np.sqrt(looks)))
    found = [float(spent[0])]
    limit = float(-ndtri(spent[0] / 2))
    points, density = limit * nodes, normal_density(limit * nodes) * limit * weights
    for k in range(2, looks + 1):
        wanted = float(spent[k - 1] - spent[k - 2])
        low, high = 0.0, float(np.sqrt(k) * 40)
        for _ in range(60):
            middle = (low + high) / 2
            crossed = float(density @ (ndtr(points - middle) + ndtr(-points - middle)))
            low, high = (middle, high) if crossed > wanted else (low, middle)
        limit = (low + high) / 2
        found.append(float(2 * ndtr(-limit / np.sqrt(k))))
        reached = limit * nodes
        density = (normal_density(reached[:, None] - points) @ density) * limit * weights
        points = reached
    return tuple(found)


def normal_density(x: Any) -> Any:
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
