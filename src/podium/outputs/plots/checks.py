"""Figures of trust: what was logged and what is wanted, weights, what drives a pair, rows needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.arguments import checked, optional, text, whole
from podium.outputs.display import label_text, share
from podium.outputs.insights import FAINTEST, insights_of
from podium.outputs.plots.canvas import DASHES, MARKERS, Canvas, plain, short_numbers, short_texts
from podium.outputs.report.scales import tick_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from podium.comparison.result import Comparison
    from podium.outputs.insights import Insights


@checked(most=whole(1, 12))
def coverage(result: Comparison | Insights, ax: Axes | None = None, *, most: int = 12, style: str = "light") -> Figure:
    """Which actions each policy wants, below those that were logged; at most so many actions."""
    from matplotlib.patches import Rectangle

    shown = insights_of(result).actions.table(most)
    labels = list(short_texts(shown.labels, 14).values()) + ([f"{shown.others} others"] if shown.others else [])
    page = Canvas.on(ax, 2.8 + 0.75 * len(labels), 1.2 + 0.34 * len(shown.rows), style)
    ax, theme = page.ax, page.theme
    names = [name for name, _ in shown.rows[1:]]
    short = page.names(names)
    ax.set_yticks(range(len(shown.rows)), ["logged", *(short[n] for n in names)])
    ax.set_ylim(len(shown.rows) - 0.5, -0.5)
    for y, (_, shares) in enumerate(shown.rows):
        if shares is None:
            page.write(-0.4, y, "known only at the logged actions", ha="left", color=theme.soft)
        for x, value in enumerate(shares or ()):
            box = (x - 0.46, y - 0.42)
            ax.add_patch(Rectangle(box, 0.92, 0.84, fill=False, edgecolor=theme.rule, linewidth=0.6))
            ax.add_patch(Rectangle(box, 0.92 * min(1.0, value), 0.84, facecolor=theme.up, alpha=0.35))
            page.write(x, y, share(value))
    ax.axhline(0.5, color=theme.ink, linewidth=1)
    ax.set_xticks(range(len(labels)), labels, rotation=35 if max(map(len, labels)) > 7 else 0)
    for label in ax.get_xticklabels():
        label.set_horizontalalignment("left" if label.get_rotation() else "center")
    ax.set_xlim(-0.5, len(labels) - 0.5)
    page.columns_on_top()
    page.title("Actions logged, and actions wanted")
    return page.figure


def weights(result: Comparison | Insights, ax: Axes | None = None, *, style: str = "light") -> Figure:
    """How unequal the rows' weights are: thick half of the rows, thin nine in ten, hollow circle the largest."""
    insights = insights_of(result)
    quantiles = insights.weights
    names = list(quantiles)
    page = Canvas.on(ax, 7, 1.3 + 0.32 * len(names), style)
    ax, theme = page.ax, page.theme
    page.names(names)
    effective = {c.name: c.ess for c in insights.diagnosis.coverage}
    ax.set_xscale("log")
    for y, name in enumerate(names):
        q = np.maximum(quantiles[name], FAINTEST)
        ax.plot([q[0], q[4]], [y, y], color=theme.soft, linewidth=1.2)
        ax.plot([q[1], q[3]], [y, y], color=theme.up, linewidth=7, solid_capstyle="butt")
        ax.plot(q[5], y, "o", color=theme.ink, markerfacecolor=theme.paper, markersize=6)
        page.beside(y, f"{effective[name]:,.0f} effective rows")
    ax.axvline(1, color=theme.soft, linewidth=1)
    ax.set_xlim(0.8 * FAINTEST, 1.4 * max(2.0, *(float(q[5]) for q in quantiles.values())))
    plain_ticks(ax.xaxis)
    ax.grid(axis="x", color=theme.rule, linewidth=0.7)
    known = insights.result.log.knows != "none"
    page.labels(f"weight {'π / p' if known else 'π (no propensities)'} of a row, relative to the average")
    page.title("Weights")
    return page.figure


@checked(a=optional(text), b=optional(text))
def drivers(
    result: Comparison | Insights, a: str | None = None, b: str | None = None, ax: Axes | None = None, *,
    style: str = "light",
) -> Figure:  # fmt: skip
    """The rows and states without which the difference of a pair would be smaller (right) or larger (left)."""
    insights = insights_of(result)
    a, b = a or insights.result.best, b or insights.rival
    insights.result.pair(a, b)
    turned = (a, b) not in {(p.a, p.b) for p in insights.result.pairs}
    check = next(c for c in insights.diagnosis.pairs if {c.a, c.b} == {a, b})
    causes = [(f"row {d.label}", d) for d in check.rows]
    causes += [(f"state {plain(label_text(d.label), 26)}", d) for d in check.states]
    page = Canvas.on(ax, 7, 1.3 + 0.3 * max(1, len(causes)), style)
    ax, theme = page.ax, page.theme
    short = short_texts([a, b], 26)
    for y, (_, d) in enumerate(causes):
        effect = -d.effect if turned else d.effect
        behind = effect < 0
        colour, hatch = (theme.down, "////") if behind else (theme.up, None)
        ax.barh(y, effect, 0.7, color=colour, hatch=hatch, edgecolor=theme.paper, linewidth=0)
        if d.flips:
            side, shift = ("right", -4) if behind else ("left", 4)
            page.note("turns the sign", (effect, y), (shift, 0), va="center", ha=side, fontsize=8)
    ax.set_yticks(range(len(causes)), [label for label, _ in causes])
    ax.set_ylim(max(1, len(causes)) - 0.5, -0.5)
    ax.axvline(0, color=theme.soft, linewidth=1)
    ax.margins(x=0.18)
    short_numbers(ax.xaxis)
    page.labels("the difference would fall by so much without it")
    page.title(f"What drives {short[a]} against {short[b]}")
    return page.figure


@checked(most=whole(1, 5))
def plan(result: Comparison | Insights, ax: Axes | None = None, *, most: int = 5, style: str = "light") -> Figure:
    """Rows against the smallest true difference that they decide 8 times in 10, for the open pairs."""
    insights = insights_of(result)
    shown = insights.plan_lines(most)
    lines = [] if shown is None else shown.pairs
    short = short_texts(insights.result.ranking, 24)
    labels = [f"{short[p.a]} against {short[p.b]}" for p, *_ in lines]
    side_by_side = max(map(len, labels), default=0) <= 36
    page = Canvas.on(ax, 7, 3.8 if side_by_side else 3.8 + 0.1 * len(labels), style)
    ax, theme = page.ax, page.theme
    page.title("Smallest difference that so many rows decide 8 times in 10")
    if shown is None:
        return page.say("the log says too little for a plan")
    rows, matters = shown.rows, shown.matters
    x = np.geomspace(rows / 2, rows * shown.far, 60)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for n, (_, d, fall) in enumerate(lines):
        ax.plot(
            x, d * (rows / x) ** fall, color=theme.ramp[n % 5], linestyle=DASHES[n % 5], linewidth=2,
            marker=MARKERS[n % 5], markevery=15, markersize=5, label=labels[n],
        )  # fmt: skip
    ax.axvline(rows, color=theme.soft, linewidth=1, linestyle=(0, (2, 2)))
    ax.axhline(matters, color=theme.soft, linewidth=1, linestyle=(0, (2, 2)))
    page.note(f"now: {rows:,} rows", (rows, 1), (4, -9), xycoords=("data", "axes fraction"))
    wish = f"{tick_text(matters)} matters"
    page.note(wish, (1, matters), (-2, 4), xycoords=("axes fraction", "data"), ha="right")
    for axis in (ax.xaxis, ax.yaxis):
        plain_ticks(axis)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(top=1.7 * max(matters, *(2**fall * d for _, d, fall in lines)))
    page.labels("rows in all", "difference in reward")
    page.legend(bbox_to_anchor=(0, -0.2), ncols=1 + side_by_side, handlelength=3)
    return page.figure


def plain_ticks(axis: Any) -> None:
    """A logarithmic axis with ordinary numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(float(f"{value:.3g}"))))
    axis.set_minor_formatter(NullFormatter())
