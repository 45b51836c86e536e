"""A pair of policies and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def reversed(self) -> Pair:
        """The same pair, b against a."""
        flip = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
        return Pair(
            self.b, self.a, -self.difference, self.std_error, turned(self.interval), 1 - self.p_better,
            self.p_adjusted, flip[self.verdict], self.path, self.reasons, turned(self.bootstrap), self.source,
            turned(self.adjusted), self.adjusted_level,
        )  # fmt: skip


def decided(interval: Interval | None) -> bool:
    """Whether an interval excludes 0."""
    return interval is not None and (interval.low > 0 or interval.high < 0)


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{number(interval.low, 3)}, {number(interval.high, 3)}]"


def without_facts(row: dict[str, Any]) -> dict[str, Any]:
    """A row of JSON as a row of a frame: reasons as one text."""
    left_out = ("reason_facts", "hidden_cause")
    return {key: "; ".join(x) if key == "reasons" else x for key, x in row.items() if key not in left_out}
