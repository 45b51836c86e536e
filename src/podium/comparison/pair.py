"""A pair of policies and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.comparison.lifts import Lift
from podium.data.facts import fact_dict
from podium.outputs.display import number


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def turned(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(-interval.high, -interval.low)


@dataclass(frozen=True)
class Pair:
    """Policy a against policy b, which it outranks.

    `difference` = V(a) - V(b) in units of reward; on the LDE and DiM paths the difference of scores times the
    number of actions, or just that difference where policies are proxies (see `Comparison.unit`). `p_better` is the
    probability that a is better, `p_adjusted` the two-sided p value after allowing for all pairs; the verdict is a
    claim iff p_adjusted <= 1 - level, that is, iff the interval `adjusted` (at `adjusted_level`) excludes 0.
    `practically_the_same` tells whether the whole interval lies within the smallest difference that matters; None
    where that was not named, or nothing is known.
    """

    a: str
    b: str
    difference: float
    std_error: float | None
    interval: Interval | None
    p_better: float
    p_adjusted: float
    verdict: str
    path: str
    reasons: tuple[str, ...]
    bootstrap: Interval | None = None
    source: str = "all rows"  # where the certainty comes from: "all rows" or "sample"
    adjusted: Interval | None = None  # the interval that decides
    adjusted_level: float | None = None
    lift: Lift | None = None
    practically_the_same: bool | None = None

    def reversed(self) -> Pair:
        """The same pair, b against a."""
        flip = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
        return Pair(
            self.b, self.a, -self.difference, self.std_error, turned(self.interval), 1 - self.p_better,
            self.p_adjusted, flip[self.verdict], self.path, self.reasons, turned(self.bootstrap), self.source,
            turned(self.adjusted), self.adjusted_level, None if self.lift is None else self.lift.turned(),
            self.practically_the_same,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON."""
        low, high = ends(self.interval)
        adjusted_low, adjusted_high = ends(self.adjusted)
        return {
            "a": self.a, "b": self.b, "difference": self.difference, "std_error": self.std_error, "low": low,
            "high": high, "p_better": self.p_better, "p_adjusted": self.p_adjusted, "verdict": self.verdict,
            "path": self.path, "reasons": list(self.reasons), "reason_facts": [fact_dict(r) for r in self.reasons],
            "source": self.source, "adjusted_low": adjusted_low, "adjusted_high": adjusted_high,
            "adjusted_level": self.adjusted_level, "lift": None if self.lift is None else self.lift.to_dict(),
            "practically_the_same": self.practically_the_same,
        }  # fmt: skip


def decided(interval: Interval | None) -> bool:
    """Whether an interval excludes 0."""
    return interval is not None and (interval.low > 0 or interval.high < 0)


def within(interval: Interval | None, difference: float | None) -> bool | None:
    """Whether a whole interval is closer to 0 than a difference that matters; None where one of them is not known."""
    if interval is None or difference is None:
        return None
    return max(abs(interval.low), abs(interval.high)) <= difference


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{number(interval.low, 3)}, {number(interval.high, 3)}]"


def without_facts(row: dict[str, Any]) -> dict[str, Any]:
    """A row of JSON as a row of a frame: reasons as one text."""
    left_out = ("reason_facts", "hidden_cause")
    return {key: "; ".join(x) if key == "reasons" else x for key, x in row.items() if key not in left_out}
