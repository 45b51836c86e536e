"""The section of the report on outcomes beside the reward."""

from __future__ import annotations

from dataclasses import replace

from podium.comparison.outcome_tables import ALONE, outcome_table, title_of
from podium.data.errors import count
from podium.outputs.display import Table
from podium.outputs.insights import Insights
from podium.outputs.markup import Markup, name_of, tag
from podium.outputs.report import charts
from podium.outputs.report.sections import framed, section


def outcome_section(insights: Insights) -> Markup | None:
    """A table for every outcome; None where only the reward was compared."""
    result = insights.result
    if not result.outcomes:
        return None
    lead = f"{count(len(result.outcomes), 'outcome')} on the same rows with the same policies. {ALONE}"
    tables = [framed(marked(outcome_table(result, name), insights, title_of(result, name))) for name in result.outcomes]
    return section("outcomes", "Outcomes", lead, *tables)


def marked(table: Table, insights: Insights, title: str) -> Table:
    """The table with names as the page shows them, and verdicts with their marks."""
    rows = []
    for a, b, verdict, *cells in table.rows:
        mark = tag("span", f"{charts.MARKS[verdict]} {verdict}", class_=f"verdict {charts.KINDS[verdict]}")
        rows.append([name_of(insights.short[a]), name_of(insights.short[b]), mark, *cells])
    return replace(table, title=title, rows=rows, notes=[note for note in table.notes if note != ALONE])
