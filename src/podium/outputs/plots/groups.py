"""The figure of groups: one pair in every group, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.comparison.groups import Group, groups_of
from podium.comparison.pair import Pair
from podium.data.arguments import checked, optional, text
from podium.outputs.display import percent
from podium.outputs.insights import insights_of
from podium.outputs.plots.canvas import Canvas, short_numbers, short_texts
from podium.outputs.report.charts import MARKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from podium.comparison.result import Comparison
    from podium.outputs.insights import Insights


@checked(a=optional(text), b=optional(text), by=optional(text))
def groups(
    result: Comparison | Insights, a: str | None = None, b: str | None = None, ax: Axes | None = None, *,
    by: str | None = None, style: str = "light",
) -> Figure:  # fmt: skip
    """Two policies in every group, and on all rows; hollow and dashed where they cannot be told apart.

    Parameters
    ----------
    by : the column; None for the groups of every column
    """
    insights = insights_of(result)
    comparison = insights.result
    a, b = a or comparison.best, b or insights.rival
    short = short_texts([a, b], 24)
    title = f"{short[a]} against {short[b]}, by group"
    if not comparison.groups:
        page = Canvas.on(ax, 8, 2, style)
        page.title(title)
        return page.say("the comparison has no groups")
    shown, whole = groups_of(comparison.groups, a, b, by), comparison.pair(a, b)
    page = Canvas.on(ax, 8, 1.3 + 0.34 * (len(shown) + 1), style)
    ax, theme = page.ax, page.theme
    page.title(title)
    page.names([*(f"{g.by} {g.value}" for g in shown), "all rows"])
    colours = {"better": theme.up, "worse": theme.down, "cannot tell": theme.open}
    ax.axvline(0, color=theme.soft, linewidth=1)
    drawn: list[Group | Pair] = [*shown, whole]
    for y, one in enumerate(drawn):
        colour, decided = colours[one.verdict], one.verdict != "cannot tell"
        if one.interval is not None:
            ends = [one.interval.low, one.interval.high]
            ax.plot(ends, [y, y], color=colour, linewidth=2.4, linestyle="-" if decided else (0, (2.5, 1.5)))
        marker = {"better": "^", "worse": "v"}.get(one.verdict, "o")
        face = colour if decided else theme.paper
        ax.plot(one.difference, y, marker, color=colour, markerfacecolor=face, markersize=7.5, markeredgewidth=1.6)
        page.beside(y, f"{MARKS[one.verdict]} {one.verdict} {percent(one.p_better)}")
    ax.grid(axis="x", color=theme.rule, linewidth=0.7)
    short_numbers(ax.xaxis)
    side = "left" if comparison.settings["lower_is_better"] else "right"
    page.labels(f"{short[a]} − {short[b]} in a group, {comparison.level_text} interval; {side} is better")
    return page.figure
