"""The report's picture of a log over time: rewards and differences in about six blocks of rows, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from podium.comparison.drift import Drift
from podium.comparison.pair import Interval, interval_text
from podium.outputs.display import number, shorten
from podium.outputs.insights import Insights
from podium.outputs.markup import Markup, tag
from podium.outputs.report.charts import axis, interval_shapes, row, strip, strips
from podium.outputs.report.scales import scale_for, tick_text, ticks

MOST_PAIRS = 3  # that are drawn: those of the policies that rank first
WIDE = 1.96  # standard errors of a 95% interval


def over_time(insights: Insights) -> list[Markup]:
    """A chart of rewards, and one for each of the first pairs; nothing where the log has no times."""
    drift = insights.result.drift
    if drift is None:
        return []
    rewards = [(block.reward, block.reward_error) for block in drift.blocks]
    drawn = [chart(drift, "Mean reward over time", "mean reward of a block of rows", rewards, None)]
    for pair in insights.result.pairs[:MOST_PAIRS]:
        turned = (pair.a, pair.b) not in drift.pairs
        key = (pair.b, pair.a) if turned else (pair.a, pair.b)
        if key not in drift.pairs:
            continue
        place, sign = drift.pairs.index(key), -1.0 if turned else 1.0
        points = [(sign * b.pairs[place][0], b.pairs[place][1]) for b in drift.blocks]
        name = f"{insights.short[pair.a]} − {insights.short[pair.b]}"
        caption = f"Difference over time: {name}, by importance weighting within each block of rows"
        drawn.append(chart(drift, caption, "difference in reward", points, 0.0))
    return [tag("h3", "Has the world changed?"), *drawn]


def chart(drift: Drift, caption: str, label: str, points: Sequence[tuple[float, float]], zero: float | None) -> Markup:
    """A line for each block: its mean and 95% interval."""
    intervals = [Interval(mean - WIDE * error, mean + WIDE * error) for mean, error in points]
    ends = [end for i in intervals for end in (i.low, i.high)]
    x = scale_for([*ends, *(() if zero is None else (zero,))], 0, 100)
    marks = ticks(x.low, x.high)
    lines = []
    for block, (mean, _), interval in zip(drift.blocks, points, intervals, strict=True):
        tip = f"{block.start} to {block.end}, {block.rows:,} rows: {number(mean)} {interval_text(interval)}"
        drawn = strip(x, marks, interval_shapes(x, interval, mean, "up"), tip)
        says = tag("span", tag("b", number(mean, 3)), tag("i", f" {interval_text(interval)}"), class_="says")
        lines.append(row(None, shorten(f"from {block.start}", 30), drawn, says, ""))
    return strips(
        f"{caption}, with 95% intervals.", lines, axis(x, marks, [tick_text(v) for v in marks], label), "time"
    )
