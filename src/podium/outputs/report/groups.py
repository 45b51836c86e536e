"""The section of the report on groups: for whom a policy is better, and whom it harms."""

from __future__ import annotations

from collections.abc import Sequence

from podium.comparison.groups import Group
from podium.comparison.pair import interval_text
from podium.data.errors import count
from podium.outputs.display import Table, number, percent, shorten
from podium.outputs.insights import Insights
from podium.outputs.markup import Markup, name_of, tag
from podium.outputs.report import charts
from podium.outputs.report.scales import scale_for, tick_text, ticks
from podium.outputs.report.sections import framed, section


def groups(insights: Insights) -> Markup | None:
    """The groups of the two policies that matter most as a chart, and those of all pairs as a table."""
    result = insights.result
    if not result.groups:
        return None
    a, b = result.best, insights.rival
    shown = [g for g in result.groups if (g.a, g.b) == (a, b)]
    better, worse = ([g for g in shown if g.verdict == verdict] for verdict in ("better", "worse"))
    short = insights.short
    lead = f"{short[a]} against {short[b]}: better in {len(better)}, worse in {len(worse)} of "
    lead += f"{count(len(shown), 'group')}. Differences within groups are shrunk towards the whole, and a verdict also "
    lead += "allows for the number of groups."
    columns = list(dict.fromkeys(g.by for g in shown))
    drawn = [forest(insights, [g for g in shown if g.by == by]) for by in columns]
    return section("groups", "For whom?", lead, drawn, framed(group_table(insights)))


def forest(insights: Insights, shown: Sequence[Group]) -> Markup:
    """The groups of a pair by one column, and the whole, with their intervals."""
    result, first = insights.result, shown[0]
    whole = result.pair(first.a, first.b)
    intervals = [g.interval for g in shown if g.interval is not None] + ([whole.interval] if whole.interval else [])
    ends = [end for i in intervals for end in (i.low, i.high)]
    x = scale_for([0.0, *ends, whole.difference, *(g.difference for g in shown)], 0, 100)
    marks = ticks(x.low, x.high)
    rows = [(f"{g.value} ({g.rows:,} rows)", g.verdict, g.difference, g.interval, g.p_better) for g in shown]
    rows.append(("all rows", whole.verdict, whole.difference, whole.interval, whole.p_better))
    lines = []
    for name, verdict, difference, interval, p_better in rows:
        kind = charts.KINDS[verdict]
        tip = f"{name}: {number(difference)}, {result.level_text} interval {interval_text(interval)}, "
        tip += f"P(better) {percent(p_better)}"
        drawn = charts.strip(x, marks, charts.interval_shapes(x, interval, difference, kind), tip)
        by = f" {charts.signed(difference)}, {percent(p_better)}"
        says = tag("span", tag("b", f"{charts.MARKS[verdict]} {verdict}"), tag("i", by), class_="says")
        lines.append(charts.row(None, shorten(name, 40), drawn, says, kind))
    a, b = insights.short[first.a], insights.short[first.b]
    side = "left is better" if result.settings["lower_is_better"] else "right is better"
    caption = f"{a} against {b} by {first.by}, with {result.level_text} intervals."
    below = charts.axis(x, marks, [tick_text(v) for v in marks], f"{a} − {b} in a group; {side}")
    return charts.strips(caption, lines, below, "forest")


def group_table(insights: Insights) -> Table:
    """Every pair in every group."""
    result, short = insights.result, insights.short
    known = {(p.a, p.b) for p in insights.pairs}
    rows = []
    for g in result.groups:
        if (g.a, g.b) in known:
            mark = tag("span", f"{charts.MARKS[g.verdict]} {g.verdict}", class_=f"verdict {charts.KINDS[g.verdict]}")
            cells: list[str] = [shorten(f"{g.by} {g.value}", 60), f"{g.rows:,}", name_of(short[g.a])]
            cells += [name_of(short[g.b]), mark, number(g.difference), interval_text(g.interval)]
            rows.append([*cells, percent(g.p_better)])
    reasons = sorted({f"{r}." for g in result.groups for r in g.reasons})
    columns = ["group", "rows", "a", "b", "a is", "difference", f"{result.level_text} interval", "P(better)"]
    return Table("Every group", columns, rows, "lrlllrrr", reasons[:6])
