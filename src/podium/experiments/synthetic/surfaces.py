"""The pictures of Example 1 over two variables: rewards, rates and errors as surfaces, and per-state products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.columns import Floats
from podium.experiments.drawing import GREY, LOOKS, draw_lines, new_figure, percent_axis, plain_log_axis
from podium.experiments.synthetic.figures import SIZE, TICKS, column, sizes_of
from podium.experiments.synthetic.measures import METHODS
from podium.experiments.synthetic.plan import GRID_ALPHAS, GRID_SIZES, HISTOGRAM_ALPHAS, HISTOGRAM_SIZES
from podium.experiments.synthetic.results import ExampleResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = "cividis"  # from dark blue to yellow, ever lighter: the same order in grey and to the colour-blind


def state_figure(result: ExampleResults) -> Figure:
    """The reward function (left) and the per-state comparison rate over m (right)."""
    figure = new_figure(9.5, 4)
    left: Any = figure.add_subplot(1, 2, 1, projection="3d")
    bandit = result.bandit
    s, a = np.meshgrid(bandit.states[::3], bandit.actions, indexing="ij")
    # Every patch has four corners: matplotlib pads others with whatever is in memory, and warns of overflows there.
    left.plot_surface(s, a, bandit.rewards[::3], cmap=COLORS, rstride=1, cstride=1, linewidth=0, antialiased=True)
    left.set_title("Reward r(s, a)")
    left.set_xlabel("state s")
    left.set_ylabel("action a")
    left.view_init(elev=32, azim=-55)
    left.set_box_aspect((1, 1, 0.6), zoom=1.0)
    axes = figure.add_subplot(1, 2, 2)
    points = result.sweeps["m"]
    draw_lines(axes, sizes_of(points), column(points, "state_rate"), 2 * column(points, "state_rate_error"), every=6)
    plain_log_axis(axes, TICKS)
    axes.axhline(0.5, color=GREY, linewidth=0.8)
    axes.set_title("Single states, α = 0.01")
    axes.set_xlabel(SIZE)
    axes.set_ylabel("states compared rightly")
    percent_axis(axes.yaxis)
    axes.legend(loc="upper left")
    return figure


def surface_figure(result: ExampleResults) -> Figure:
    """Comparison rate (top) and average evaluation error (bottom) of each method over alpha and m."""
    figure = new_figure(11.5, 6)
    points = result.sweeps["grid"]
    shape = (len(GRID_SIZES), len(GRID_ALPHAS))
    alpha, m = np.meshgrid(GRID_ALPHAS, GRID_SIZES)
    rows = (
        ("right order", column(points, "rate"), None),
        ("average error", column(points, "average"), 0.0),
    )
    for row, (title, values, zero) in enumerate(rows):
        low, high = float(values.min()), float(values.max())
        for k, method in enumerate(METHODS):
            axes: Any = figure.add_subplot(2, 4, 4 * row + k + 1, projection="3d")
            axes.plot_surface(
                alpha, m, values[:, k].reshape(shape), cmap=COLORS, vmin=low, vmax=high, edgecolor="white",
                linewidth=0.3, rstride=1, cstride=1,
            )  # fmt: skip
            axes.set_title(f"{method}: {title}", y=0.96)
            axes.set_zticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if zero is None else [-0.4, -0.3, -0.2, -0.1, 0.0])
            axes.set_zlim(min(low, 0.5) if zero is None else low, 1.0 if zero is None else max(high, 0.02))
            axes.set_xlabel("α", labelpad=-4)
            axes.set_ylabel("m", labelpad=-4)
            axes.set_xticks([0.01, 0.05, 0.10], ["0.01", "0.05", "0.1"])
            axes.set_yticks([1, 5, 10])
            axes.tick_params(labelsize=7.5, pad=-1)
            axes.view_init(elev=24, azim=-130)
            axes.set_box_aspect((1, 1, 0.85), zoom=0.9)
    return figure


def histogram_figure(result: ExampleResults) -> Figure:
    """Each method's share among the per-state products of every size: wrong left of 0, right to its right."""
    figure = new_figure(11.5, 6.2)
    grid = figure.subplots(len(HISTOGRAM_ALPHAS), len(HISTOGRAM_SIZES), sharey=True)
    for i, alpha in enumerate(HISTOGRAM_ALPHAS):
        for j, m in enumerate(HISTOGRAM_SIZES):
            axes = grid[i, j]
            cell = next(h for h in result.histograms if h.m == m and abs(h.alpha - alpha) < 1e-9)
            stack_shares(axes, cell.shares)
            axes.axvline(0, color="white", linewidth=1.6)
            axes.axvline(0, color="black", linewidth=0.8)
            axes.set_xlim(-1, 1)
            axes.set_ylim(0, 1)
            axes.set_xticks([-0.5, 0.5], ["wrong", "right"])
            axes.tick_params(axis="x", length=0)
            axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
            axes.grid(visible=False)
            percent_axis(axes.yaxis)
            axes.set_title(f"m = {m}" if i == 0 else "", loc="center")
            if j == 0:
                axes.set_ylabel(f"α = {alpha:.2f}")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper left", ncols=4)
    figure.supxlabel("product of estimated and true difference in a state (each panel to its own 90th percentile)")
    return figure


def stack_shares(axes: Any, shares: Floats) -> None:
    """Shares (4, bins) as stacked steps over -1..1, LDE on top."""
    edges = np.linspace(-1, 1, shares.shape[1] + 1)
    floor = np.zeros(shares.shape[1])
    for k in reversed(range(len(METHODS))):
        top = floor + shares[k]
        axes.stairs(top, edges, baseline=floor, fill=True, color=LOOKS[METHODS[k]].color, label=METHODS[k])
        axes.stairs(top, edges, baseline=None, color="white", linewidth=0.8)
        floor = top
