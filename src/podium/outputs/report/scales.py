"""Numbers to places on a chart, and round numbers for its axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10


@dataclass(frozen=True)
class Scale:
    """A line from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, part)) * (self.end - self.start)


def scale_for(values: Iterable[float], start: float, end: float, margin: float = 0.04) -> Scale:
    """A scale that holds all finite values, with some room at both ends."""
    finite = [v for v in values if isfinite(v)] or [0.0]
    low, high = min(finite), max(finite)
    if low == high:
        low, high = low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
    room = margin * (high - low)
    return Scale(low - room, high + room, start, end)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round numbers from low to high.

    >>> ticks(-0.12, 0.47), ticks(0, 9e6, 4)
    ([-0.1, 0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 5000000.0])
    """
    span = high - low
    if not (isfinite(span) and span > 0):
        return [low]
    power = 10.0 ** floor(log10(span / most))
    step = next((m * power for m in (1, 2, 5, 10) if span / (m * power) <= most), 10 * power)
    return [float(f"{k * step:.12g}") for k in range(ceil(low / step), floor(high / step) + 1)]


def tick_text(value: float) -> str:
    """A round number as short as it can be said.

    >>> [tick_text(v) for v in (0.1, -0.25, 5e6, 20000, 1e-7)]
    ['0.1', '−0.25', '5M', '20k', '1e-07']
    """
    size = abs(value)
    if 1e4 <= size < 1e12:
        for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if size >= limit:
                return f"{value / limit:g}{letter}".replace("-", "−")
    return f"{value:g}".replace("-", "−", 1) if size >= 1e-4 or value == 0 else f"{value:g}"
