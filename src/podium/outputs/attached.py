"""What a comparison can show by itself: its insights, its report and its figures, attached to the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.comparison.result import Comparison
from podium.outputs.insights import Insights
from podium.outputs.report import write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Attached:
    """The outputs of results; figures need matplotlib, so they are loaded when one is drawn."""

    def insights(self, result: Comparison) -> Insights:
        return Insights(result)

    def report(self, result: Comparison, path: str | Path, **options: Any) -> Path:
        return write_report(result, path, **options)

    def figure(self, result: Any, kind: str, **options: Any) -> Figure:
        from podium.outputs.plots import draw

        return draw(result, kind, **options)


Comparison.shows = Attached()
