"""The figures of Example 2: comparison scores, evaluation errors, what training did, and podium's own verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from podium.data.columns import Floats
from podium.experiments.classification.cells import METHODS
from podium.experiments.classification.measures import Measures
from podium.experiments.classification.plan import Variant
from podium.experiments.classification.results import Results
from podium.experiments.drawing import GREY, LOOKS, draw_verdicts, new_figure, percent_axis, verdict_legend
from podium.experiments.printed import printed_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Callable[[Measures], tuple[Floats, Floats]]
WIDTH = 0.19


def comparison_figure(results: Results) -> Figure:
    """Average comparison score with its standard deviation over logs, a panel for each variant."""
    figure = bars_figure(results, "ex2_comp", lambda m: (m.score, m.score_std), "pairs put in the right order")
    lowest = min(float((m.score - m.score_std).min()) for found in results.measures.values() for m in found)
    for axes in figure.axes:
        axes.set_ylim(min(0.5, lowest - 0.02), 1.03)
        percent_axis(axes.yaxis)
    return figure


def evaluation_figure(results: Results) -> Figure:
    """Average evaluation error with its standard deviation over logs and policies, a panel for each variant."""
    figure = bars_figure(results, "ex2_eval", lambda m: (m.error, m.error_std), "estimated − true accuracy")
    for axes in figure.axes:
        axes.axhline(0, color=GREY, linewidth=0.8)
    return figure


def bars_figure(results: Results, table: str, numbers: Numbers, label: str) -> Figure:
    """A point with a bar of one standard deviation for each method and dataset; printed averages as white diamonds."""
    variants = list(results.measures)
    figure = new_figure(10, 0.6 + 2.9 * len(variants))
    for axes, variant in zip(np.ravel(figure.subplots(len(variants), 1, sharey=True)), variants, strict=True):
        found = results.measures[variant]
        for k, method in enumerate(METHODS):
            look = LOOKS[method]
            place = np.arange(len(found)) + (k - 1.5) * WIDTH
            average = np.array([numbers(m)[0][k] for m in found])
            std = np.array([numbers(m)[1][k] for m in found])
            axes.bar(place, 2 * std, WIDTH * 0.8, bottom=average - std, color=look.color, alpha=0.3, linewidth=0)
            axes.hlines(average, place - WIDTH * 0.4, place + WIDTH * 0.4, color=look.color, linewidth=2.5)
            axes.plot(place, average, look.marker, color=look.color, markeredgecolor="white", label=method)
        if variant.policies == "dlm":
            mark_printed(axes, table, found)
        name_datasets(axes, found)
        axes.set_title(variant.short[0].upper() + variant.short[1:])
        axes.set_ylabel(label)
    handles = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=5)
    return figure


def mark_printed(axes: Axes, table: str, found: list[Measures]) -> None:
    """The paper's averages, where it has them."""
    printed = printed_table(table)
    points = [
        (i + (k - 1.5) * WIDTH, float(printed[m.dataset, f"{method} avg"]))
        for i, m in enumerate(found)
        for k, method in enumerate(METHODS)
        if (m.dataset, f"{method} avg") in printed
    ]
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(
            np.array(x) + WIDTH * 0.42,
            y,
            "<",
            color="white",
            markeredgecolor="black",
            markersize=5,
            label="printed average",
        )


def name_datasets(axes: Axes, found: list[Measures]) -> None:
    axes.set_xticks(np.arange(len(found)), [m.dataset for m in found])
    axes.grid(visible=False, axis="x")


def training_figure(results: Results) -> Figure:
    """Accuracy before and after training beside the most frequent class, and the share of policies never changed."""
    trained = {v: found for v, found in results.measures.items() if found and found[0].training}
    figure = new_figure(10, 0.6 + 2.6 * len(trained))
    panels = figure.subplots(len(trained), 2, squeeze=False, width_ratios=(2, 1))
    for (left, right), (variant, found) in zip(panels, trained.items(), strict=True):
        place = np.arange(len(found))
        parts = [m.training for m in found if m.training]
        before, after = np.array([t.before for t in parts]), np.array([t.after for t in parts])
        left.vlines(place, before, after, color=LOOKS["LDE"].color, linewidth=2)
        left.plot(place, before, "o", color="white", markeredgecolor=LOOKS["LDE"].color, label="before training")
        left.plot(place, after, "o", color=LOOKS["LDE"].color, label="after training")
        majority = [t.majority for t in parts]
        left.hlines(majority, place - 0.3, place + 0.3, color=LOOKS["DRE"].color, label="most frequent class")
        left.set_ylim(0, 1)
        left.set_ylabel("accuracy on test examples")
        left.set_title(variant.short[0].upper() + variant.short[1:])
        untouched = np.array([t.untouched for t in parts])
        right.bar(place, untouched, color=LOOKS["DiM"].color, width=0.62)
        for x, t in zip(place, parts, strict=True):
            right.text(x, t.untouched + 0.02, short_number(t.updates), ha="center", fontsize=8, color=GREY)
        right.set_ylim(0, 1.12)
        right.set_yticks([0, 0.5, 1])
        right.set_title("Policies never changed")
        for axes in (left, right):
            percent_axis(axes.yaxis)
            name_datasets(axes, found)
        right.tick_params(axis="x", labelsize=8)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    return figure


def short_number(value: float) -> str:
    """A mean number of updates in a few characters.

    >>> short_number(0.0), short_number(0.13), short_number(2.26), short_number(14624.4), short_number(1339589.0)
    ('0', '0.13', '2.3', '14,624', '1.3 M')
    """
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def verdict_figure(results: Results) -> Figure:
    """What podium itself claims on the same logs, beside how often the order by LDE alone is right."""
    judged: dict[Variant, list[Measures]] = {
        variant: kept for variant, found in results.measures.items() if (kept := [m for m in found if m.verdicts])
    }
    rows, columns = -(-len(judged) // 2), min(2, len(judged))
    figure = new_figure(1.0 + 5.0 * columns, 0.6 + 2.9 * rows)
    panels = np.ravel(figure.subplots(rows, columns, sharey=True, squeeze=False))
    for axes in panels[len(judged) :]:
        axes.set_visible(False)
    for axes, (variant, found) in zip(panels, judged.items(), strict=False):
        shares = [m.verdicts for m in found if m.verdicts]
        right = np.array([s.right / s.pairs for s in shares])
        wrong = np.array([s.wrong / s.pairs for s in shares])
        draw_verdicts(axes, right, wrong, [float(m.score[0]) for m in found])
        name_datasets(axes, found)
        axes.set_title(variant.short[0].upper() + variant.short[1:])
    panels[0].set_ylim(0, 1.02)
    for axes in panels[::columns]:
        axes.set_ylabel("share of pairs")
    percent_axis(panels[0].yaxis)
    verdict_legend(figure, panels[0])
    return figure
