"""Figures: each is drawn for every kind of result, on axes that are given or its own, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from samples import adjusting, logged_only, sample

import podium
from podium import plots
from podium.outputs.plots.canvas import THEMES, plain

NAMES = [
    "three",
    "two, no propensities, long names",
    "no intervals",
    "huge, lower is better",
    "fifty, known at logged actions",
]


def drawn(figure: Figure) -> np.ndarray:
    """The pixels of a figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


@cache
def results() -> dict[str, podium.Comparison]:
    log, policies = sample(rows=60, count=3)
    bare, few = sample(rows=30, count=2, knows="none")
    long = {"a $very$ long name, " * 9: few["p0"], "🎉 b_{x}^$": few["p1"]}
    flat = podium.Log([0, 0, 1], ["a", "b", "a"], [1.0, 1.0, 1.0])
    huge = podium.Log(log.states, log.actions, log.rewards * 1e90, behavior=log.behavior, action_space=(0, 1, 2))
    big, many = sample(rows=80, count=50, actions=20)
    made = {
        "three": podium.compare(log, {**policies, "now": "logged"}),
        "two, no propensities, long names": podium.compare(bare, long),
        "no intervals": podium.compare(flat, {"x": "constant:a", "y": "uniform"}),
        "huge, lower is better": podium.compare(huge, policies, lower_is_better=True),
        "fifty, known at logged actions": podium.compare(big, logged_only(big, many)),
    }
    assert list(made) == NAMES
    return made


@pytest.mark.parametrize("kind", list(plots.KINDS))
@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_every_result(kind: str, name: str) -> None:
    if name.startswith("fifty") and kind == "overview":
        name = "three"  # its parts are drawn alone
    pixels = drawn(results()[name].plot(kind))
    assert len(np.unique(np.ascontiguousarray(pixels).view(np.uint32))) > 10, "colors"


@pytest.mark.parametrize("kind", [k for k in plots.KINDS if k != "overview"])
def test_figures_compose_and_change_nothing_global(kind: str) -> None:
    before = dict(mpl.rcParams)
    figure = Figure(figsize=(12, 4))
    left, right = figure.subplots(1, 2)
    assert results()["three"].plot(kind, ax=left, style="dark") is figure
    assert left.has_data() or left.patches or left.texts
    assert not any((right.has_data(), right.patches, right.texts))
    assert dict(mpl.rcParams) == before


def test_dark_is_dark() -> None:
    light, dark = (drawn(results()["three"].plot("ranking", style=style))[..., :3].mean() for style in THEMES)
    assert light > 200
    assert dark < 60


@pytest.mark.parametrize("style", list(THEMES))
def test_verdicts_differ_in_grey_print(style: str) -> None:
    """Better and worse are told apart by lightness alone; "cannot tell" is hatched."""
    from matplotlib.colors import to_rgb

    from podium.outputs.plots.answers import cell_looks

    looks = cell_looks(THEMES[style])
    grey = {verdict: float(np.dot(to_rgb(face), (0.299, 0.587, 0.114))) for verdict, (face, _, _) in looks.items()}
    assert abs(grey["better"] - grey["worse"]) > 0.2
    assert [verdict for verdict, (_, _, hatch) in looks.items() if hatch] == ["cannot tell"]


def test_the_ranking_shows_the_numbers_of_the_result() -> None:
    result = results()["three"]
    ax = result.plot("ranking", against="p0").axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == result.ranking
    markers = [line.get_xdata()[0] for line in ax.lines if line.get_marker() in ("^", "v", "o")]
    expected = [result.pair(name, "p0").difference for name in result.ranking if name != "p0"]
    assert markers == pytest.approx(expected)


def test_the_ranking_draws_the_interval_that_decides() -> None:
    result = adjusting()
    ax = result.plot("ranking", against="always 0").axes[0]
    drawn = [sorted(line.get_xdata()) for line in ax.lines if line.get_linewidth() == 2.4]
    pairs = [result.pair(name, "always 0") for name in result.ranking if name != "always 0"]
    assert drawn == [pytest.approx([p.adjusted.low, p.adjusted.high]) for p in pairs if p.adjusted]
    assert "adjusted interval" in ax.get_xlabel()


def test_names_are_texts_and_not_mathematics() -> None:
    assert plain("a $x$ b") == r"a \$x\$ b"
    assert plain("🎉") == "□"
    ax = results()["two, no propensities, long names"].plot("ranking").axes[0]
    assert all(len(t.get_text()) < 40 for t in ax.get_yticklabels())


def test_the_plan_falls_at_the_rate_of_the_pair() -> None:
    result = results()["three"]
    line = result.plot("plan").axes[0].lines[0]
    x, y = (np.asarray(v, dtype=float) for v in (line.get_xdata(), line.get_ydata()))
    (pair, now, _), *_ = result.insights.plan_lines(5).pairs
    planned = result.insights.planned(pair.a, pair.b)
    assert y == pytest.approx(now * (result.insights.judged_rows / x) ** (planned.rate / 2))
    assert planned.rate != 1


def test_what_drives_a_pair_turns_with_it() -> None:
    def widths(a: str, b: str) -> list[Any]:
        return [p.get_width() for p in plots.drivers(results()["three"], a, b).axes[0].patches]

    assert widths("p0", "p2") == pytest.approx([-w for w in widths("p2", "p0")])


def test_unknown_figures_styles_and_policies_are_refused() -> None:
    result = results()["three"]
    with pytest.raises(podium.PodiumError, match="there is no figure 'pie'\n\nHint: the figures are overview, ranking"):
        result.plot("pie")
    with pytest.raises(podium.PodiumError, match="unknown style 'neon'\n\nHint: the styles are light, dark"):
        result.plot("ranking", style="neon")
    with pytest.raises(podium.PodiumError, match="no pair 'p0' against 'nobody'"):
        result.plot("states", a="p0", b="nobody")


def test_without_matplotlib_the_error_says_how_to_install_it_and_the_report_works() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import podium\n"
        "log = podium.Log([0, 0, 1], ['a', 'b', 'a'], [1.0, 0.0, 0.5])\n"
        "result = podium.compare(log, {'x': 'constant:a', 'y': 'uniform'})\n"
        "from podium.outputs.report import page\n"
        "assert page(result).startswith('<!doctype html>')\n"
        "try:\n    result.plot()\nexcept podium.PodiumError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "matplotlib is not installed; drawing figures needs it\n\nHint: run: pip install 'podium[plots]'\n"
    )


def test_a_notebook_shows_a_figure_without_pyplot() -> None:
    assert results()["three"].plot("weights")._repr_png_().startswith(b"\x89PNG")
    code = (
        "import sys, podium\n"
        "log = podium.Log([0, 0, 1], ['a', 'b', 'a'], [1.0, 0.0, 0.5])\n"
        "podium.compare(log, {'x': 'constant:a', 'y': 'uniform'}).plot()._repr_png_()\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
