"""What every figure shares: light and dark colours, shapes that survive grey print, and no global state.

Nothing here goes through pyplot or changes rcParams; colours and sizes are set on the artists themselves.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium.data.errors import MissingExtra, PodiumError, shown
from podium.outputs.display import short_names, shorten
from podium.outputs.report.scales import tick_text

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtra("matplotlib", "plots", "drawing figures") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONG = 28  # characters of a name beside an axis


@dataclass(frozen=True)
class Theme:
    """Colours of one style. Blue and orange differ for every kind of colour vision, and in lightness."""

    paper: str
    ink: str
    soft: str
    rule: str
    up: str
    down: str
    open: str
    hatch: str

    @property
    def ramp(self) -> tuple[str, ...]:
        """For a handful of lines, each of which also has its own dashes and marker."""
        return (self.up, self.down, self.open, self.ink, self.soft)


THEMES = {
    "light": Theme("#ffffff", "#1b1b1a", "#5c5a55", "#dedbd2", "#174f86", "#e08a3c", "#8a867e", "#c9c5bb"),
    "dark": Theme("#16181b", "#ebe8e1", "#aaa69d", "#3a3d42", "#86b9ee", "#c76a1d", "#8f8b83", "#4d5056"),
}
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (8, 2, 1.5, 2)), (0, (3, 1.5)))
MARKERS = ("o", "s", "^", "D", "v")


class Picture(Figure):
    """A matplotlib figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(self)
        output = io.BytesIO()
        self.savefig(output, format="png", dpi=144)
        return output.getvalue()


def theme_of(style: str) -> Theme:
    if not isinstance(style, str) or style not in THEMES:
        raise PodiumError(f"unknown style {shown(style)}", hint="the styles are " + ", ".join(THEMES) + ".")
    return THEMES[style]


@dataclass(frozen=True)
class Canvas:
    """Axes to draw on, with the colours of a style."""

    ax: Axes
    theme: Theme

    @classmethod
    def on(cls, ax: Axes | None, width: float, height: float, style: str) -> Canvas:
        """The given axes, dressed; those of a new figure where none are given."""
        theme = theme_of(style)
        if ax is None:
            figure = Picture(figsize=(max(width, 6.0), min(height, 40.0)), layout="constrained", facecolor=theme.paper)
            ax = figure.add_subplot()
        if not hasattr(ax, "set_facecolor"):
            raise PodiumError(f"ax must be the axes of a figure; it is {shown(ax)}", hint="leave ax out.")
        ax.set_facecolor(theme.paper)
        for side, spine in ax.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(theme.soft)
        ax.tick_params(colors=theme.soft, labelcolor=theme.ink, labelsize=9, length=3, left=False)
        ax.grid(False)
        ax.set_axisbelow(True)
        return cls(ax, theme)

    @property
    def figure(self) -> Figure:
        figure = self.ax.get_figure(root=True)
        assert figure is not None
        return figure

    def title(self, text: str) -> None:
        self.ax.set_title(text, loc="left", fontsize=10.5, fontweight="bold", color=self.theme.ink, pad=8)

    def labels(self, x: str, y: str = "") -> None:
        """What the axes show."""
        self.ax.set_xlabel(x, color=self.theme.soft, fontsize=9)
        if y:
            self.ax.set_ylabel(y, color=self.theme.soft, fontsize=9)

    def names(self, names: Sequence[str], most: int = LONG) -> dict[str, str]:
        """Names down the left side, first on top; each as it is written."""
        short = short_texts(names, most)
        self.ax.set_yticks(range(len(names)), [short[n] for n in names], fontsize=9 if len(names) <= 30 else 7)
        self.ax.set_ylim(len(names) - 0.5, -0.5)
        return short

    def write(self, x: float, y: float, text: str, **look: Any) -> None:
        """A text in the middle of a cell, unless its look says otherwise."""
        self.ax.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": 8.5, "color": self.theme.ink, **look})

    def note(self, text: str, place: tuple[float, float], shift: tuple[float, float], **look: Any) -> None:
        """A text so many points away from a place."""
        look = {"textcoords": "offset points", "fontsize": 8.5, "color": self.theme.ink, **look}
        self.ax.annotate(text, place, xytext=shift, **look)

    def beside(self, y: float, text: str) -> None:
        """A text to the right of the axes."""
        self.write(1.02, y, text, ha="left", transform=self.ax.get_yaxis_transform())

    def legend(self, **look: Any) -> None:
        """The key, below the axes."""
        self.ax.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=self.theme.ink, **look)

    def columns_on_top(self) -> None:
        """The labels of columns above a table, which has no axis below."""
        self.ax.xaxis.tick_top()
        self.ax.tick_params(top=False)
        self.ax.spines["bottom"].set_visible(False)

    def say(self, text: str) -> Figure:
        """Why there is nothing to draw, in place of it."""
        self.ax.text(0.5, 0.5, text, ha="center", color=self.theme.soft, transform=self.ax.transAxes)
        self.ax.set_xticks([])
        self.ax.set_yticks([])
        return self.figure


def short_texts(names: Sequence[str], most: int = LONG) -> dict[str, str]:
    return {name: plain(text) for name, text in short_names(names, most).items()}


def plain(text: str, most: int = 200) -> str:
    """A text as it stands: no mathematics between dollars, and a box for what no font at hand can show."""
    known = characters()
    short = "\n".join(shorten(line, most) for line in text.split("\n"))
    return "".join(c if ord(c) in known or c == "\n" else "□" for c in short).replace("$", r"\$")


@lru_cache(maxsize=4)
def charmap(family: str) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        path = findfont(FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:
        return frozenset()
    return frozenset(get_font(path).get_charmap())


def characters() -> frozenset[int]:
    """Every character that the fonts in use can show."""
    from matplotlib.font_manager import FontProperties

    families: Iterable[str] = FontProperties().get_family()
    return frozenset().union(*(charmap(family) for family in families))


def short_numbers(axis: Any) -> None:
    """Axis numbers as the report writes them."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6))
    write: Callable[[float, Any], str] = lambda value, _: tick_text(float(f"{value:.6g}"))  # noqa: E731
    axis.set_major_formatter(FuncFormatter(write))
