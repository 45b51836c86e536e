"""The figure of every method on one map, baseline by weighting: the order in which each puts the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.comparison.spectrum import WEIGHTINGS, Place, Spectrum, spectrum_of
from podium.outputs.insights import insights_of
from podium.outputs.plots.canvas import Canvas, Theme, plain, short_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from podium.comparison.result import Comparison
    from podium.outputs.insights import Insights

MOST = 9  # policies that are numbered
LABELS = {
    "none": "no weight",
    "pi": "weight π",
    "shrunk": "π / p, shrunk",
    "self-normalised": "π / p, self-normalised",
    "pi/p": "weight π / p",
}


def spectrum(result: Spectrum | Comparison | Insights, ax: Axes | None = None, *, style: str = "light") -> Figure:
    """Every method on the plane baseline by weighting, with its order of the policies, best first.

    Policies carry numbers in the order of the comparison, or of DRE for a `Spectrum`; a number in a filled circle
    stands at that place here too, one in a hollow square does not.
    """
    if isinstance(result, Spectrum):
        reference = next((p for p in result.places if p.estimator == "DRE"), result.places[0])
        methods, names, by = result, reference.ranking, reference.estimator
    else:
        comparison = insights_of(result).result
        methods, names, by = spectrum_of(comparison), comparison.ranking, "the comparison"
    columns = [w for w in WEIGHTINGS if any(p.weighting == w for p in methods.places)]
    baselines = list(dict.fromkeys(p.baseline for p in methods.places))
    cells: dict[tuple[str, str], list[Place]] = {}
    for p in methods.places:
        cells.setdefault((p.baseline, p.weighting), []).append(p)
    tall = [max(len(cells.get((b, c), ())) for c in columns) for b in baselines]
    shown = names[:MOST]
    numbers = {name: n + 1 for n, name in enumerate(shown)}
    page = Canvas.on(ax, 2.4 * len(columns) + 1.2, 1.9 + 0.36 * sum(tall) + 0.2 * len(tall), style)
    ax, theme = page.ax, page.theme
    from matplotlib.patches import Rectangle

    y, middles = 0.0, []
    for baseline, height in zip(baselines, tall, strict=True):
        for x, column in enumerate(columns):
            ax.add_patch(Rectangle((x + 0.02, y + 0.05), 0.96, height + 0.4, fill=False, edgecolor=theme.rule))
            for line, place in enumerate(cells.get((baseline, column), ())):
                at = y + 0.75 + line
                page.write(x + 0.06, at, plain(place.estimator), ha="left")
                order = [name for name in place.ranking if name in numbers]
                step = min(0.085, 0.5 / max(len(order), 1))
                for k, name in enumerate(order):
                    look = badge(theme, shown[k] == name)
                    page.write(x + 0.46 + step * k, at, str(numbers[name]), fontsize=7, **look)
        middles.append(y + 0.25 + height / 2)
        y += height + 0.6
    ax.set_yticks(middles, ["no baseline" if b == "-" else f"baseline {plain(b)}" for b in baselines])
    ax.set_ylim(y, 0)
    ax.set_xticks([x + 0.5 for x in range(len(columns))], [LABELS[c] for c in columns])
    ax.set_xlim(0, len(columns))
    page.columns_on_top()
    page.title("The order by every method, best first")
    short = short_texts(shown, 24)
    key = "   ".join(f"{numbers[name]} {short[name]}" for name in shown)
    more = f"   and {len(names) - MOST} more" if len(names) > MOST else ""
    page.labels(f"{key}{more}\nfilled circle: at the place that {by} gives it; square: elsewhere")
    return page.figure


def badge(theme: Theme, same: bool) -> dict[str, Any]:
    """How a number looks: in a filled circle at the same place, else in a hollow square."""
    shape, face, edge = (
        ("circle,pad=0.18", theme.up, theme.up) if same else ("square,pad=0.22", theme.paper, theme.down)
    )
    box = {"boxstyle": shape, "facecolor": face, "edgecolor": edge}
    return {"color": theme.paper if same else theme.ink, "bbox": box}
