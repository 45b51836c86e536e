"""The figures of Example 3: score distributions, what each reading changes, true values, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.experiments.drawing import GREY, LOOKS, new_figure, percent_axis
from podium.experiments.printed import printed_table
from podium.experiments.rl.plan import ALGORITHMS
from podium.experiments.rl.readings import METHODS, PROGRAM, TEXT
from podium.experiments.rl.results import EnvironmentResults
from podium.experiments.rl.verdicts import Verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS = 11  # ten pairs of five policies: scores 0, 0.1, ..., 1
COLUMNS = 4
HALF = 0.42  # of a column of bars
SHOWN = ("text", "own way", "exponent", "p + 1e-6", "program")


def panels_for(results: Sequence[EnvironmentResults], height: float, share: bool = True) -> tuple[Figure, Any]:
    """A figure with one panel per environment, and the panels."""
    columns = min(COLUMNS, len(results))
    rows = -(-len(results) // columns)
    figure = new_figure(max(2.9 * columns, 5.2), height * rows + 0.4)
    grid = figure.subplots(rows, columns, sharey=share, squeeze=False).ravel()
    for axes in grid[len(results) :]:
        axes.set_visible(False)
    return figure, grid


def score_figure(results: Sequence[EnvironmentResults]) -> Figure:
    """For each environment and method, how the scores of all tests are distributed; averages, ours and printed."""
    figure, grid = panels_for(results, 2.9)
    printed = printed_table("ex3_appendix")
    for axes, result in zip(grid, results, strict=False):
        scores = result.scores[TEXT]
        for k, method in enumerate(METHODS):
            shares = np.bincount(np.rint(scores.tests[..., k].ravel() * (LEVELS - 1)).astype(int), minlength=LEVELS)
            width = 2 * HALF * shares / shares.max()
            axes.barh(
                np.arange(LEVELS) / (LEVELS - 1), width, left=k - width / 2, height=0.075, color=LOOKS[method].color,
                alpha=0.55, linewidth=0,
            )  # fmt: skip
            draw_average(axes, k, float(scores.average[k]), float(scores.average_error[k]))
            axes.plot(
                [k - HALF, k + HALF], [float(printed[result.row, f"{method} avg"])] * 2, color="black", linewidth=1.1,
                linestyle=(0, (3, 1.5)),
            )  # fmt: skip
        axes.set_title(result.name)
        axes.set_xticks(range(len(METHODS)), METHODS)
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.6, len(METHODS) - 0.4)
        axes.set_ylim(-0.05, 1.05)
    for axes in grid[::COLUMNS]:
        axes.set_ylabel("comparison score")
    legend(figure)
    return figure


def draw_average(axes: Axes, x: float, average: float, error: float, color: str = "white") -> None:
    """A diamond with two standard errors."""
    axes.errorbar(
        x, average, yerr=2 * error, fmt="D", color="black", markerfacecolor=color, markersize=5.5, elinewidth=1.2,
        capsize=2.5, zorder=5,
    )  # fmt: skip


def legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=LOOKS["LDE"].color, alpha=0.55, label="tests with each score"),
        Line2D([], [], color="black", marker="D", markerfacecolor="white", label="average, ± 2 standard errors"),
        Line2D([], [], color="black", linewidth=1.1, linestyle=(0, (3, 1.5)), label="the paper's average"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)


def reading_figure(results: Sequence[EnvironmentResults]) -> Figure:
    """The averages under each reading, beside the printed ones."""
    figure, grid = panels_for(results, 2.7)
    printed = printed_table("ex3_appendix")
    markers = {"text": "o", "own way": "v", "exponent": "s", "p + 1e-6": "^", "program": "D"}
    place = np.linspace(-0.3, 0.3, len(SHOWN))
    for axes, result in zip(grid, results, strict=False):
        for k, method in enumerate(METHODS):
            value = float(printed[result.row, f"{method} avg"])
            axes.plot([k - HALF, k + HALF], [value] * 2, color="black", linewidth=1.1, linestyle=(0, (3, 1.5)))
            for x, reading in zip(place, SHOWN, strict=True):
                scores = result.scores[reading]
                axes.errorbar(
                    k + x, scores.average[k], yerr=2 * scores.average_error[k], fmt=markers[reading],
                    color=LOOKS[method].color, markersize=4.2, elinewidth=0.9,
                    markerfacecolor=LOOKS[method].color if reading in (TEXT, PROGRAM) else "white",
                )  # fmt: skip
        axes.set_title(result.name)
        axes.set_xticks(range(len(METHODS)), METHODS)
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.6, len(METHODS) - 0.4)
        axes.set_ylim(0, 1.03)
    for axes in grid[::COLUMNS]:
        axes.set_ylabel("average score")
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=GREY, marker=markers[r], linestyle="", label=r,
            markerfacecolor=GREY if r in (TEXT, PROGRAM) else "white",
        )
        for r in SHOWN
    ]  # fmt: skip
    handles.append(Line2D([], [], color="black", linewidth=1.1, linestyle=(0, (3, 1.5)), label="printed"))
    figure.legend(handles=handles, loc="outside upper left", ncols=6)
    return figure


def truth_figure(results: Sequence[EnvironmentResults]) -> Figure:
    """The true values of all trained policies: each dot is a policy of one training, with two standard errors."""
    figure, grid = panels_for(results, 2.6, share=False)
    for axes, result in zip(grid, results, strict=False):
        truth = result.truth
        for values, errors in zip(truth.values, truth.errors, strict=True):
            axes.errorbar(
                np.arange(len(ALGORITHMS)), values, yerr=2 * errors, fmt="o", color=LOOKS["LDE"].color, markersize=3.2,
                elinewidth=0.8, alpha=0.45, markeredgewidth=0,
            )  # fmt: skip
        axes.plot(np.arange(len(ALGORITHMS)), truth.values.mean(axis=0), "_", color=LOOKS["DRE"].color, markersize=17,
                  markeredgewidth=2.2)  # fmt: skip
        axes.set_title(f"{result.name}\n{np.mean(truth.unclear):.0%} of pairs within 2 SE", fontsize=9)
        axes.set_xticks(range(len(ALGORITHMS)), ALGORITHMS)
        axes.set_xlim(-0.6, len(ALGORITHMS) - 0.4)
        axes.grid(visible=False, axis="x")
    for axes in grid[::COLUMNS]:
        axes.set_ylabel("true value (return in 100 steps)")
    return figure


def verdict_figure(results: Sequence[EnvironmentResults]) -> Figure:
    """What each procedure claims on the same pairs: right, wrong, on a pair without a clear order, or nothing."""
    sizes = sorted({v.episodes for r in results for v in r.verdicts})
    procedures = list(dict.fromkeys(v.procedure for v in results[0].verdicts))
    figure = new_figure(11, 1.3 + (0.5 + 0.25 * len(results)) * len(sizes))
    grid = figure.subplots(len(sizes), len(procedures), sharex=True, sharey=True, squeeze=False)
    for row, episodes in enumerate(sizes):
        for axes, procedure in zip(grid[row], procedures, strict=True):
            found = [v for r in results for v in r.verdicts if (v.procedure, v.episodes) == (procedure, episodes)]
            verdict_bars(axes, found)
            if not any(v.decided for v in found):
                axes.text(0.5, 0.5, "decides nothing", transform=axes.transAxes, ha="center", va="center", color=GREY)
            axes.set_title(procedure if row == 0 else "")
        grid[row, 0].set_ylabel(f"{episodes} episodes", fontweight="bold")
        grid[row, 0].set_yticks(range(len(results)), [r.name for r in results])
    grid[0, 0].invert_yaxis()
    for axes in grid[-1]:
        axes.set_xlabel("share of pairs")
        axes.set_xlim(0, 1)
        percent_axis(axes.xaxis)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    return figure


def verdict_bars(axes: Axes, found: Sequence[Verdicts]) -> None:
    """Stacked bars, one for each environment."""
    kinds: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("right", "decided, rightly", {"color": LOOKS["LDE"].color}),
        ("unclear", "decided, no clear true order", {"color": "#b9bec7"}),
        (
            "wrong", "decided, wrongly",
            {"facecolor": "white", "edgecolor": LOOKS["DRE"].color, "hatch": "/////", "linewidth": 0.8},
        ),
    )  # fmt: skip
    left = np.zeros(len(found))
    for name, label, look in kinds:
        shares = np.array([getattr(v, name) / v.pairs for v in found])
        some = np.flatnonzero(shares > 0)
        bars: Any = axes.barh(some, shares[some], left=left[some], height=0.62, **look)
        bars.set_label(label) if len(some) else axes.barh([0], [0], label=label, **{**look, "linewidth": 0})
        left += shares
    axes.grid(visible=False, axis="y")
