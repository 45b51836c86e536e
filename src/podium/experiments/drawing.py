"""One look for every figure: methods are told apart in colour, in grey print, and without seeing red or green."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.errors import MissingExtra
from podium.data.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#5f6368"
SETTINGS: dict[str, Any] = {
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "grid.color": "#d9dce1",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "svg.hashsalt": "podium",  # the same figure gives the same file
}


@dataclass(frozen=True)
class Look:
    """How a method is drawn. The colours differ in lightness by 15 steps or more, so a grey print keeps them apart."""

    color: str
    line: Any
    marker: str


LOOKS = {
    "LDE": Look("#10274b", "-", "o"),
    "DRE": Look("#a5301f", (0, (5, 1.5)), "s"),
    "IPS": Look("#38a397", (0, (4, 1.2, 1, 1.2)), "^"),
    "DiM": Look("#e6b03a", (0, (1.2, 1.0)), "D"),
}
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": LOOKS["DRE"].color, "hatch": "////"}


@contextmanager
def style() -> Iterator[None]:
    """The settings of all figures; without matplotlib, the line that installs it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "experiments", "drawing figures") from error
    settings: Any = SETTINGS
    with matplotlib.rc_context(settings):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that needs no display."""
    from matplotlib.figure import Figure as Empty

    return Empty(figsize=(width, height), layout="constrained")


def draw_lines(axes: Axes, x: Any, columns: Any, band: Any = None, every: int = 1) -> None:
    """One line per method: columns (n, 4), and a band (n, 4) on either side."""
    for k, (name, look) in enumerate(LOOKS.items()):
        if band is not None:
            axes.fill_between(
                x, columns[:, k] - band[:, k], columns[:, k] + band[:, k], color=look.color, alpha=0.15, linewidth=0
            )
        axes.plot(
            x, columns[:, k], color=look.color, linestyle=look.line, marker=look.marker, markevery=every,
            markeredgecolor="white", markeredgewidth=0.7, label=name,
        )  # fmt: skip


def draw_verdicts(axes: Axes, right: Any, wrong: Any, rates: Any) -> None:
    """Bars of what podium decides, rightly and wrongly (n,), and how often the order by LDE alone is right (n,)."""
    place = np.arange(len(right))
    axes.bar(place, right, color=LOOKS["LDE"].color, width=0.62, label="podium decides, rightly")
    some = wrong > 0  # a bar without height would still show its edge
    axes.bar(place[some], wrong[some], bottom=right[some], width=0.62, **HATCHED)
    axes.plot(
        place, rates, "D", color="white", markeredgecolor="black", markersize=6, clip_on=False, zorder=5,
        label="LDE's order is right (it always answers)",
    )  # fmt: skip
    axes.grid(visible=False, axis="x")


def verdict_legend(figure: Figure, axes: Axes) -> None:
    """The legend of panels that `draw_verdicts` filled."""
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    handles.append(Patch(label="podium decides, wrongly", **HATCHED))
    figure.legend(handles=handles, loc="outside upper left", ncols=3)


def percent_axis(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))


def plain_log_axis(axes: Axes, ticks: list[int]) -> None:
    """A logarithmic x axis with ordinary numbers."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.xaxis.set_minor_locator(_no_ticks())


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG, the same bytes whenever it is drawn from the same numbers.

    Straight through the two canvases: `savefig` would draw everything twice for each.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    png, svg = io.BytesIO(), io.BytesIO()
    figure.set_dpi(150)
    pixels: Any = FigureCanvasAgg(figure)
    pixels.print_png(png, metadata={"Software": None})
    figure.set_layout_engine("none")  # its work is done
    shapes: Any = FigureCanvasSVG(figure)
    shapes.print_svg(svg, metadata={"Date": None, "Creator": None})
    write_bytes(folder / f"{name}.png", png.getvalue())
    write_bytes(folder / f"{name}.svg", svg.getvalue())
