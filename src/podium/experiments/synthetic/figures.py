"""The curves of Example 1: comparison rates, evaluation errors, the theorems' bounds, verdicts; and the spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.columns import Floats
from podium.experiments.drawing import (
    GREY,
    LOOKS,
    draw_lines,
    draw_verdicts,
    new_figure,
    percent_axis,
    plain_log_axis,
    verdict_legend,
)
from podium.experiments.synthetic.details import DELTAS
from podium.experiments.synthetic.measures import METHODS, Measures
from podium.experiments.synthetic.results import ExampleResults
from podium.experiments.synthetic.verdicts import VerdictShares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHA = "value difference α (share of the span)"
SIZE = "logged actions per state, m"
TICKS = [1, 3, 10, 30, 100, 500]


def column(points: list[Measures], name: str) -> Floats:
    """(n, 4) one measure of a sweep."""
    return np.array([getattr(p, name) for p in points])


def alphas_of(points: list[Measures]) -> Floats:
    return np.array([p.alpha for p in points])


def sizes_of(points: list[Measures]) -> Floats:
    return np.array([float(p.m) for p in points])


def comparison_figure(result: ExampleResults) -> Figure:
    """Comparison rate over alpha (left, m = 1) and over m (right, alpha = .01)."""
    figure = new_figure(9, 3.7)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, sweep, x_of, label in ((left, "alpha", alphas_of, ALPHA), (right, "m", sizes_of, SIZE)):
        points = result.sweeps[sweep]
        band = 2 * column(points, "rate_error")
        draw_lines(axes, x_of(points), column(points, "rate"), band, every=6)
        axes.axhline(0.5, color=GREY, linewidth=0.8)
        axes.set_xlabel(label)
    plain_log_axis(right, TICKS)
    left.set_title("One action per state, m = 1")
    right.set_title("A small difference, α = 0.01")
    left.set_ylabel("pairs put in the right order")
    left.set_ylim(0.47, 1.02)
    left.text(0.25, 0.505, "coin toss", ha="right", color=GREY, fontsize=8)
    percent_axis(left.yaxis)
    left.legend(loc="upper left", ncols=2)
    return figure


def evaluation_figure(result: ExampleResults) -> Figure:
    """Evaluation errors: average and 5-95% band of each method, and all standard deviations."""
    figure = new_figure(11, 5.2)
    grid = figure.subplots(2, 5)
    for row, (sweep, x_of, label) in enumerate((("alpha", alphas_of, ALPHA), ("m", sizes_of, SIZE))):
        points = result.sweeps[sweep]
        x, low, high, average = x_of(points), column(points, "low"), column(points, "high"), column(points, "average")
        limit = 1.05 * max(float(np.abs(low).max()), float(np.abs(high).max()))
        for k, method in enumerate(METHODS):
            axes, look = grid[row, k], LOOKS[method]
            axes.fill_between(x, low[:, k], high[:, k], color=look.color, alpha=0.28, linewidth=0)
            axes.plot(x, average[:, k], color=look.color, linestyle=look.line)
            axes.axhline(0, color=GREY, linewidth=0.8)
            axes.set_ylim(-limit, limit)
            axes.set_title(method if row == 0 else "")
            if k:
                axes.tick_params(labelleft=False)
        draw_lines(grid[row, 4], x, column(points, "std"), every=8)
        grid[row, 4].set_title("standard deviation" if row == 0 else "")
        grid[row, 4].set_ylim(bottom=0)
        grid[row, 0].set_ylabel(("m = 1" if row == 0 else "α = 0.01") + "\nerror / span")
        for axes in grid[row]:
            if sweep == "m":
                plain_log_axis(axes, [1, 10, 100, 500])
        grid[row, 2].set_xlabel(label)
    grid[0, 4].legend(loc="upper left", fontsize=8)
    figure.suptitle("Evaluation error: average (line) and 5th to 95th percentile (band)", x=0.01, ha="left")
    return figure


def bounds_figure(result: ExampleResults) -> Figure:
    """The theorems beside what is measured, on logarithmic scales."""
    figure = new_figure(11, 3.8)
    panels = figure.subplots(1, 3)
    look = LOOKS["LDE"]
    for axes, sweep, x_of, label in (
        (panels[0], "alpha", alphas_of, ALPHA),
        (panels[1], "m", sizes_of, SIZE),
    ):
        points = result.sweeps[sweep]
        axes.plot(x_of(points), column(points, "rate")[:, 0], color=look.color, label="measured (LDE)")
        axes.plot(
            x_of(points), result.comparison_bounds(points), color=LOOKS["DRE"].color, linestyle=(0, (5, 1.5)),
            label="Theorem 2 promises at least",
        )  # fmt: skip
        axes.axhline(0.393, color=GREY, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_ylim(1e-9, 3)
        axes.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8], ["1", "1 in 100", "1 in 10⁴", "1 in 10⁶", "1 in 10⁸"])
        axes.minorticks_off()
        axes.set_xlabel(label)
    panels[0].text(0.01, 0.33, "no Theorem 2 bound can exceed 39%", va="top", fontsize=8, color=GREY)
    plain_log_axis(panels[1], TICKS)
    panels[0].set_title("Right order, m = 1")
    panels[1].set_title("Right order, α = 0.01")
    panels[1].tick_params(labelleft=False)
    panels[0].set_ylabel("probability")
    panels[0].legend(loc="center right", bbox_to_anchor=(1, 0.62))
    state_bound_panel(panels[2], result)
    return figure


def state_bound_panel(axes: Axes, result: ExampleResults) -> None:
    """Theorem 3: how often a state is badly mispredicted, against the bound."""
    for (alpha, m), line, marker in (((0.15, 5), "-", "o"), ((0.15, 177), (0, (5, 1.5)), "s")):
        cell = next(h for h in result.histograms if h.m == m and abs(h.alpha - alpha) < 1e-9)
        axes.plot(
            DELTAS[1:], np.maximum(cell.mispredicted[0, 1:], 1e-9), color=LOOKS["LDE"].color, linestyle=line,
            marker=marker, markevery=3, markeredgecolor="white", label=f"measured, m = {m}",
        )  # fmt: skip
        axes.plot(
            DELTAS[1:], cell.bound[1:], color=LOOKS["DRE"].color, linestyle=line, marker=marker, markevery=3,
            markeredgecolor="white", label=f"Theorem 3 allows, m = {m}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1], ["1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1"])
    axes.minorticks_off()
    axes.set_ylim(0, 1.03)
    percent_axis(axes.yaxis)
    axes.set_title("States badly wrong, α = 0.15")
    axes.set_xlabel("δ / span²: how wrong counts as badly wrong")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.62), fontsize=8)


def verdict_figure(result: ExampleResults, shares: list[VerdictShares]) -> Figure:
    """What podium itself claims on the same tests: right, wrong, or left open; and how often LDE alone is right."""
    figure = new_figure(11, 3.8)
    panels = figure.subplots(1, 3, sharey=True)
    groups = (
        ("One action per state, m = 1", [s for s in shares if s.sweep == "alpha"], "alpha", ALPHA),
        ("α = 0.05", [s for s in shares if s.sweep == "grid" and abs(s.alpha - 0.05) < 1e-9], "m", SIZE),
        ("α = 0.10", [s for s in shares if s.sweep == "grid" and abs(s.alpha - 0.10) < 1e-9], "m", SIZE),
    )
    for axes, (title, group, by, label) in zip(panels, groups, strict=True):
        right = np.array([s.right / s.tests for s in group])
        wrong = np.array([s.wrong / s.tests for s in group])
        draw_verdicts(axes, right, wrong, [float(rate_at(result, s)) for s in group])
        axes.set_xticks(np.arange(len(group)), [f"{s.alpha:g}" if by == "alpha" else str(s.m) for s in group])
        axes.set_title(title)
        axes.set_xlabel(label)
    panels[0].set_ylim(0, 1.02)
    panels[0].set_ylabel("share of tests")
    percent_axis(panels[0].yaxis)
    verdict_legend(figure, panels[0])
    return figure


def rate_at(result: ExampleResults, share: VerdictShares) -> Any:
    """LDE's comparison rate in the cell of a verdict."""
    points = result.sweeps[share.sweep]
    return next(p.rate[0] for p in points if p.m == share.m and abs(p.alpha - share.alpha) < 1e-9)


def spectrum_figure() -> Figure:
    """The four methods by what they use: a baseline, importance weighting, both or neither."""
    from matplotlib.patches import FancyBboxPatch

    figure = new_figure(5.6, 4.3)
    axes = figure.subplots()
    cells = {
        "LDE": (0, 1, "(r − r̂) π + r̂", "fewest data"),
        "DRE": (1, 1, "(r − r̂) π/p + r̂", ""),
        "DiM": (0, 0, "r π", ""),
        "IPS": (1, 0, "r π/p", "most data"),
    }
    for name, (x, y, formula, note) in cells.items():
        look = LOOKS[name]
        box = FancyBboxPatch(
            (x + 0.06, y + 0.08), 0.88, 0.84, boxstyle="round,pad=0,rounding_size=0.06", facecolor="white",
            edgecolor=look.color, linewidth=2.5,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(x + 0.5, y + 0.62, name, ha="center", va="center", fontsize=17, weight="bold", color=look.color)
        axes.text(x + 0.5, y + 0.37, formula, ha="center", va="center", fontsize=11)
        axes.text(x + 0.5, y + 0.19, note, ha="center", va="center", fontsize=8.5, color=GREY)
    axes.set_xlim(0, 2)
    axes.set_ylim(0, 2)
    axes.set_xticks([0.5, 1.5], ["w = π", "w = π / p"])
    axes.set_yticks([0.5, 1.5], ["no baseline", "baseline r̂"], rotation=90, va="center")
    axes.tick_params(length=0, labelsize=10)
    axes.set_xlabel("importance weighting →  needs more data", fontsize=10)
    axes.set_ylabel("baseline →  needs less data", fontsize=10)
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure
