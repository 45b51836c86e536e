"""What a comparison can show by itself: its answer, insights, file, report and figures, attached to the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.comparison.conditions import GateAnswer
from podium.comparison.result import Comparison
from podium.comparison.saved import SavedBasis, save
from podium.outputs.answer import answer
from podium.outputs.display import Block
from podium.outputs.insights import Insights, insights_of
from podium.outputs.report import write_report
from podium.outputs.summary import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Attached:
    """The outputs of results; figures need matplotlib, so they are loaded when one is drawn."""

    def answer(self, result: Comparison) -> tuple[str, ...]:
        if isinstance(result.basis, SavedBasis):
            return tuple(result.basis.answer_lines)
        found = answer(insights_of(result))
        return (found.sentence, *found.details)

    def blocks(self, result: Comparison, verbose: bool, gate: GateAnswer | None) -> list[Block]:
        return summary(result, verbose, gate)

    def insights(self, result: Comparison) -> Insights:
        return Insights(result, result.difference)

    def save(self, result: Comparison, path: str | Path, overwrite: bool) -> Path:
        return save(result, path, overwrite=overwrite)

    def report(self, result: Comparison, path: str | Path, **options: Any) -> Path:
        return write_report(result, path, **options)

    def figure(self, result: Any, kind: str, **options: Any) -> Figure:
        from podium.outputs.plots import draw

        return draw(result, kind, **options)


Comparison.shows = Attached()
