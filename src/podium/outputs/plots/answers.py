"""Figures of the answer: the ranking, the pairs, other methods, single states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.arguments import checked, optional, text
from podium.data.columns import descending
from podium.outputs.display import percent, rank_range, whole_percent
from podium.outputs.insights import insights_of
from podium.outputs.plots.canvas import DASHES, MARKERS, Canvas, Theme, short_numbers, short_texts
from podium.outputs.report.charts import MARKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from podium.comparison.result import Comparison
    from podium.outputs.insights import Insights

MOST_NUMBERS = 16  # policies beyond which the matrix has no room for numbers


@checked(against=optional(text))
def ranking(
    result: Comparison | Insights, ax: Axes | None = None, *, against: str | None = None, style: str = "light"
) -> Figure:
    """Every policy against one, with intervals; hollow and dashed where the two cannot be told apart.

    Parameters
    ----------
    against : the policy on the zero line; by default the one that made the log, else the first
    """
    insights = insights_of(result)
    comparison = insights.result
    anchor = against or insights.anchor
    names = comparison.ranking
    page = Canvas.on(ax, 8, 1.3 + 0.34 * len(names), style)
    ax, theme = page.ax, page.theme
    short = page.names(names)
    colours = {"better": theme.up, "worse": theme.down, "cannot tell": theme.open}
    ax.axvline(0, color=theme.soft, linewidth=1)
    for y, policy in enumerate(comparison.policies):
        says = f"rank {rank_range(policy.rank_low, policy.rank_high)}"
        if policy.name == anchor:
            ax.plot(0, y, "D", color=theme.ink, markersize=4.5)
        else:
            pair = comparison.pair(policy.name, anchor)
            colour, decided = colours[pair.verdict], pair.verdict != "cannot tell"
            if (interval := insights.interval(pair)) is not None:
                ends = [interval.low, interval.high]
                ax.plot(ends, [y, y], color=colour, linewidth=2.4, linestyle="-" if decided else (0, (2.5, 1.5)))
            marker = {"better": "^", "worse": "v"}.get(pair.verdict, "o")
            face = colour if decided else theme.paper
            ax.plot(pair.difference, y, marker, color=colour, markerfacecolor=face, markersize=7.5, markeredgewidth=1.6)
            says += f"   {MARKS[pair.verdict]} {pair.verdict} {percent(pair.p_better)}"
        page.beside(y, says)
    ax.grid(axis="x", color=theme.rule, linewidth=0.7)
    short_numbers(ax.xaxis)
    side = "left" if comparison.settings["lower_is_better"] else "right"
    page.labels(f"difference in reward to {short[anchor]}, {insights.interval_name}; {side} is better")
    page.title(f"Against {short[anchor]}")
    return page.figure


def pairs(result: Comparison | Insights, ax: Axes | None = None, *, style: str = "light") -> Figure:
    """P(row better than column) in percent: dark for better, light for worse, hatched where one cannot tell."""
    from matplotlib.patches import Patch, Rectangle

    insights = insights_of(result)
    comparison = insights.result
    names = insights.shown
    cell = 0.5 if len(names) <= MOST_NUMBERS else 0.22
    page = Canvas.on(ax, 3.4 + cell * len(names), 1.7 + cell * len(names), style)
    ax, theme = page.ax, page.theme
    page.names(names)
    ax.set_xlim(-0.5, len(names) - 0.5)
    looks = cell_looks(theme)
    for y, a in enumerate(names):
        for x, b in enumerate(names):
            if a == b:
                continue
            pair = comparison.pair(a, b)
            face, ink, hatch = looks[pair.verdict]
            box = Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=face, edgecolor=theme.hatch, hatch=hatch)
            box.set_linewidth(0.0 if hatch is None else 0.4)
            ax.add_patch(box)
            if len(names) <= MOST_NUMBERS:
                backing = {"facecolor": theme.paper, "edgecolor": "none", "pad": 1.6} if hatch else None
                page.write(x, y, whole_percent(pair.p_better), color=ink, bbox=backing)
    every = 1 if len(names) <= 25 else 5
    ax.set_xticks(range(0, len(names), every), [str(n + 1) for n in range(0, len(names), every)])
    page.columns_on_top()
    page.title("P(row is better than column), in %")
    keys = [
        Patch(facecolor=face, edgecolor=theme.hatch, hatch=hatch, label=verdict)
        for verdict, (face, _, hatch) in looks.items()
    ]
    page.legend(handles=keys, bbox_to_anchor=(0, -0.01), ncols=3, handlelength=1.4, columnspacing=1.2)
    return page.figure


def cell_looks(theme: Theme) -> dict[str, tuple[str, str, str | None]]:
    """Verdict -> colour of the cell, of its text, hatching."""
    dark = theme.paper == "#ffffff"
    return {
        "better": (theme.up, "white" if dark else "black", None),
        "worse": ("#f6d3b3" if dark else "#6b3a10", "black" if dark else "white", None),
        "cannot tell": (theme.paper, theme.ink, "////"),
    }


def methods(result: Comparison | Insights, ax: Axes | None = None, *, style: str = "light") -> Figure:
    """The ranks that each method gives, side by side; a line that crosses others is a matter of method."""
    insights = insights_of(result)
    comparison = insights.result
    main = comparison.settings["estimator"]
    sign = 1.0 if comparison.settings["lower_is_better"] else -1.0
    table = {m: [p.estimates[m] for p in comparison.policies] for m in insights.methods}
    known = {m: np.array(v, dtype=float) for m, v in table.items() if None not in v}
    names = comparison.ranking
    page = Canvas.on(ax, 8, 1.3 + 0.32 * len(names), style)
    ax, theme = page.ax, page.theme
    short = page.names(names)
    order = {m: place_of(sign * v) for m, v in known.items()}
    special = {comparison.best: 0, insights.reference or names[-1]: 1}
    for k, name in enumerate(names):
        line = special.get(name)
        places = [order[m][k] for m in known]
        ax.plot(
            range(len(known)), places, color=theme.open if line is None else (theme.up, theme.down)[line],
            linewidth=1.2 if line is None else 2.6, marker=MARKERS[2 if line is None else line], markersize=5,
            linestyle="-" if line is None else DASHES[line], zorder=2 if line is None else 3, clip_on=False,
        )  # fmt: skip
        size = 9 if len(names) <= 30 else 7
        page.note(short[name], (len(known) - 1, places[-1]), (9, 0), va="center", fontsize=size)
    ax.set_xlim(-0.1, max(0.9, len(known) - 0.9))
    labels = [m + ("\n(ranks)" if m == main else "") for m in known]
    ax.set_xticks(range(len(known)), labels)
    page.columns_on_top()
    page.title("Rank by each method")
    if missing := [m for m in comparison.unavailable if m != "P(best)"]:
        page.labels("not available: " + ", ".join(missing))
    return page.figure


def place_of(values: Any) -> list[int]:
    """The place 0..K-1 of each value, smallest first; equal values keep their order."""
    places: list[int] = np.argsort(descending(values.mean() - values)).tolist()
    return places


@checked(a=optional(text), b=optional(text))
def states(
    result: Comparison | Insights, a: str | None = None, b: str | None = None, ax: Axes | None = None, *,
    style: str = "light",
) -> Figure:  # fmt: skip
    """How the difference of two policies is spread over states, counted in rows; hatched where a is behind."""
    insights = insights_of(result)
    a, b = a or insights.result.best, b or insights.rival
    insights.result.pair(a, b)  # names the policies there are
    view = insights.states(a, b)
    page = Canvas.on(ax, 7, 3, style)
    ax, theme = page.ax, page.theme
    short = short_texts([a, b], 24)
    page.title(f"{short[a]} against {short[b]}, state by state")
    if len(view.labels) == 1:
        return page.say("the log has one state")
    colours = {"up": theme.up, "down": theme.down, "tie": theme.open}
    for low, high, rows, kind in view.bars():
        look: dict[str, Any] = {"color": colours[kind], "hatch": "////" if kind == "down" else None}
        ax.bar((low + high) / 2, rows, 0.92 * (high - low), edgecolor=theme.paper, linewidth=0, **look)
    ax.axvline(0, color=theme.soft, linewidth=1)
    short_numbers(ax.xaxis)
    gap = f"{short[a]} − {short[b]} in a state,"
    page.labels(gap + ("\n" if len(gap) > 40 else " ") + f"{view.unit}, by {view.method}", "rows")
    return page.figure
