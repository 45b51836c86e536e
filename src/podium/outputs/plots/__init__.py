"""Figures of a comparison: each function draws on the axes it is given, or on a new figure, and returns the figure.

>>> import podium
>>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2])
>>> result = podium.compare(log, {"always a": "constant:a", "always b": "constant:b"})
>>> podium.plots.ranking(result, style="dark").axes[0].get_title(loc="left")
'Against always a'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.data.arguments import checked, text
from podium.data.errors import PodiumError
from podium.outputs.insights import insights_of
from podium.outputs.plots.answers import methods, pairs, ranking, states
from podium.outputs.plots.canvas import Picture, theme_of
from podium.outputs.plots.checks import coverage, drivers, plan, weights
from podium.outputs.plots.groups import groups
from podium.outputs.plots.map import spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from podium.comparison.result import Comparison
    from podium.outputs.insights import Insights

__all__ = [
    "KINDS", "coverage", "draw", "drivers", "groups", "methods", "overview", "pairs", "plan", "ranking", "spectrum",
    "states", "weights",
]  # fmt: skip


def overview(result: Comparison | Insights, *, style: str = "light") -> Figure:
    """The four figures that one looks at first: ranking, pairs, methods, coverage."""
    insights = insights_of(result)
    many = len(insights.result.policies)
    height = min(40.0, 2.6 + 0.72 * max(4, many))
    figure = Picture(figsize=(14.5, height), layout="constrained", facecolor=theme_of(style).paper)
    axes = figure.subplots(2, 2, gridspec_kw={"width_ratios": (1.25, 1)})
    first: tuple[Any, ...] = (ranking, pairs, methods, coverage)
    for ax, drawn in zip(axes.flat, first, strict=True):
        drawn(insights, ax, style=style)
    return figure


KINDS: dict[str, Any] = {
    "overview": overview, "ranking": ranking, "pairs": pairs, "methods": methods, "spectrum": spectrum,
    "groups": groups, "states": states, "coverage": coverage, "weights": weights, "drivers": drivers, "plan": plan,
}  # fmt: skip


@checked(kind=text)
def draw(result: Comparison | Insights, kind: str = "overview", **options: Any) -> Figure:
    """The figure of that name; the options are those of its function."""
    if kind not in KINDS:
        raise PodiumError(f"there is no figure {kind!r}", hint="the figures are " + ", ".join(KINDS) + ".")
    figure: Figure = KINDS[kind](result, **options)
    return figure
