"""Relative lift: V(a)/V(b) - 1 in percent, with an interval that holds whatever goes with the error of V(b).

Fieller: a lift L is possible if D - L V(b) = 0 is, D being the difference. The standard error of D - L V(b) is at most
se(D) + |L| se(V(b)), whatever the correlation of the two, which is not known where D is a posterior and V(b) a DRE
estimate. With that bound the interval is the range of D / V(b) over the intervals of both. It covers at least as often
as these do, and it includes 0 just where the interval of D does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.data.columns import Floats
from podium.estimates.estimators import ESTIMATORS

NEAR_ZERO = 0.2  # the lower end of V(b) as a share of V(b) below which a lift says nothing


@dataclass(frozen=True)
class Lift:
    """V(a)/V(b) - 1 in percent, and its interval."""

    percent: float
    low: float
    high: float

    def turned(self) -> Lift | None:
        """V(b)/V(a) - 1: the same interval of the ratio, upside down; None where V(a) may be 0 or below."""
        if self.low <= -100:
            return None
        back = [100 * (100 / (100 + end) - 1) for end in (self.percent, self.high, self.low)]
        return Lift(*back)

    def to_dict(self) -> dict[str, float]:
        return {"percent": self.percent, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{self.percent:+.1f}% [{self.low:+.1f}%, {self.high:+.1f}%]"


@dataclass(frozen=True)
class Value:
    """The value of a policy by DRE, clearly above 0, with its standard error and interval."""

    estimate: float
    error: float
    low: float
    high: float


class Valued(Protocol):
    """The values of policies (K,), their standard errors and degrees of freedom."""

    @property
    def values(self) -> Floats: ...
    @property
    def value_error(self) -> Floats: ...
    @property
    def freedom(self) -> Floats: ...


@dataclass(frozen=True, eq=False)
class KnownValues:
    """Values as a file keeps them."""

    values: Floats
    value_error: Floats
    freedom: Floats


def clear_values(valued: Valued | None, level: float) -> list[Value | None]:
    """The value of every policy; None where it is not known, or where its interval is near 0 or includes it."""
    if valued is None:
        return []
    from scipy.special import stdtrit

    reach = stdtrit(valued.freedom, (1 + level) / 2) * valued.value_error
    found: list[Value | None] = []
    for value, error, half in zip(valued.values.tolist(), valued.value_error.tolist(), reach.tolist(), strict=True):
        clear = np.isfinite(half) and value > 0 and value - half > NEAR_ZERO * value
        found.append(Value(value, error, value - half, value + half) if clear else None)
    return found


def lift_of(difference: float, interval: Any, base: Value | None, path: str) -> Lift | None:
    """The lift of a pair with this difference and interval over the value of b; None on the path of a score."""
    if base is None or interval is None or (path in ESTIMATORS and ESTIMATORS[path].is_score):
        return None
    low = interval.low / (base.high if interval.low > 0 else base.low)
    high = interval.high / (base.low if interval.high > 0 else base.high)
    return Lift(100 * difference / base.estimate, 100 * low, 100 * high)
