"""The report's charts as inline SVG whose places are percentages: text keeps its size on every screen."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

import numpy as np

from podium.comparison.pair import Interval, interval_text
from podium.outputs.display import number, percent, rank_range, share, short_names, whole_percent
from podium.outputs.insights import FAINTEST, Insights, PlanLines, StateDifferences
from podium.outputs.markup import Markup, name_of, tag
from podium.outputs.report.scales import Scale, scale_for, tick_text, ticks

KINDS = {"better": "up", "worse": "down", "cannot tell": "open"}
MARKS = {"better": "▲", "worse": "▼", "cannot tell": "○"}


def at(place: float) -> str:
    return f"{place:.2f}%"


def figure(caption: str, *content: Any, kind: str = "") -> Markup:
    return tag("figure", tag("figcaption", caption), *content, class_=kind or None)


def grid(x: Scale, marks: Sequence[float], height: str = "100%", strong: float | None = 0.0) -> list[Markup]:
    """Vertical lines at round numbers."""
    return [
        tag("line", x1=at(x(v)), x2=at(x(v)), y1="0", y2=height, class_="zero" if v == strong else "grid")
        for v in marks
    ]


def axis(x: Scale, marks: Sequence[float], texts: Sequence[str], label: str) -> Markup:
    """The numbers below a chart, and what they are."""
    words = [tag("text", t, x=at(x(v)), y="14", text_anchor="middle") for v, t in zip(marks, texts, strict=True)]
    drawn = tag("svg", words, height="20", aria_hidden="true")
    return tag("div", drawn, tag("p", label), class_="axis")


def strip(x: Scale, marks: Sequence[float], shapes: Sequence[Markup], tip: str = "") -> Markup:
    """One line of a chart that has a line for each policy."""
    return tag("svg", grid(x, marks), shapes, class_="strip", height="30", aria_hidden="true", data_tip=tip or None)


def interval_shapes(x: Scale, interval: Interval | None, middle: float, kind: str) -> list[Markup]:
    """An interval with its middle: solid and filled where decided, dashed and hollow where open."""
    shapes = []
    if interval is not None:
        reach = {"x1": at(x(interval.low)), "x2": at(x(interval.high))}
        shapes.append(tag("line", **reach, y1="15", y2="15", class_=f"range {kind}"))
    shapes.append(tag("circle", cx=at(x(middle)), cy="15", r="5.5", class_=f"dot {kind}"))
    return shapes


def forest(insights: Insights) -> Markup:
    """Every policy against one: the policy that made the log, else the first."""
    result, short, anchor = insights.result, insights.short, insights.anchor
    pairs = {p.name: result.pair(p.name, anchor) for p in result.policies if p.name != anchor}
    intervals = {name: insights.interval(p) for name, p in pairs.items()}
    ends = [end for i in intervals.values() if i is not None for end in (i.low, i.high)]
    x = scale_for([0.0, *ends, *(p.difference for p in pairs.values())], 0, 100)
    marks = ticks(x.low, x.high)
    lines = []
    for p in result.policies:
        rank = rank_range(p.rank_low, p.rank_high)
        if p.name == anchor:
            says = "made the log" if anchor == insights.reference else "ranks first"
            shapes = [tag("circle", cx=at(x(0)), cy="15", r="3.5", class_="dot anchor")]
            lines.append(row(rank, short[p.name], strip(x, marks, shapes), tag("span", says, class_="says"), "anchor"))
            continue
        pair, interval = pairs[p.name], intervals[p.name]
        kind = KINDS[pair.verdict]
        tip = f"{short[p.name]} − {short[anchor]}: {number(pair.difference)}, {insights.interval_name} "
        tip += f"{interval_text(interval)}, P(better) {percent(pair.p_better)}"
        verdict = tag("b", f"{MARKS[pair.verdict]} {pair.verdict}")
        by = f" {signed(pair.difference)}, {percent(pair.p_better)}"
        drawn = strip(x, marks, interval_shapes(x, interval, pair.difference, kind), tip)
        lines.append(row(rank, short[p.name], drawn, tag("span", verdict, tag("i", by), class_="says"), kind))
    side = "left is better" if result.settings["lower_is_better"] else "right is better"
    label = f"difference in reward to {short[anchor]}; {side}"
    caption = (
        f"Difference to {short[anchor]}, with {insights.interval_name} and the probability of being better. "
        "The number before a name is its rank, or the ranks that the verdicts leave possible."
    )
    caption += f" {result.adjustment}" if result.adjusts else ""
    return strips(caption, lines, axis(x, marks, [tick_text(v) for v in marks], label), "forest")


def strips(caption: str, lines: Sequence[Markup], below: Markup, kind: str) -> Markup:
    """A chart with a line for each policy, and its axis below."""
    last = tag("li", below, class_="row axis-row", aria_hidden="true")
    return figure(caption, tag("ol", lines, last, class_="strips"), kind=kind)


def row(rank: str | None, name: str, drawn: Markup, says: Markup, kind: str) -> Markup:
    place = None if rank is None else tag("span", rank, class_="rank")
    return tag("li", place, tag("span", name_of(name), class_="who"), drawn, says, class_=f"row {kind}")


def signed(value: float) -> str:
    """A difference with its sign; two digits more than its size needs."""
    text = number(abs(value), 3)
    return text if value == 0 else f"{'+' if value > 0 else '−'}{text}"


def matrix(insights: Insights) -> Markup:
    """P(row better than column) for all pairs, each a button that opens the pair."""
    result, names, short = insights.result, insights.shown, insights.short
    place = {(p.a, p.b): n for n, p in enumerate(insights.pairs)}
    first = place.get((result.best, insights.rival), 0)
    head = [tag("td")] + [
        tag("th", str(j + 1), tag("span", f" {short[b]}", class_="unseen"), scope="col", data_tip=short[b])
        for j, b in enumerate(names)
    ]
    lines = []
    for i, a in enumerate(names):
        cells = [tag("th", f"{i + 1} ", name_of(short[a]), scope="row")]
        for b in names:
            if a == b:
                cells.append(tag("td", class_="self"))
                continue
            pair = result.pair(a, b)
            n = place.get((a, b), place.get((b, a)))
            words = f"{short[a]} against {short[b]}: {pair.verdict}, P(better) {percent(pair.p_better)}"
            button = tag(
                "button", tag("span", MARKS[pair.verdict], class_="mark", aria_hidden="true"),
                whole_percent(pair.p_better), type="button", class_=KINDS[pair.verdict], data_pair=n,
                data_turn=(a, b) not in place, aria_label=words, data_tip=words,
                tabindex="0" if n == first and (a, b) in place else "-1",
            )  # fmt: skip
            cells.append(tag("td", button))
        lines.append(tag("tr", cells))
    caption = tag("caption", "How sure is it that the row is better than the column, in %?")
    kind = "matrix dense" if len(names) > 12 else "matrix"
    table = tag("table", caption, tag("thead", tag("tr", head)), tag("tbody", lines), class_=kind)
    keys = "   ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    how = tag("span", " Choose a cell, or move with the arrow keys, to see what drives the pair.", class_="how")
    key = tag("p", f"{keys}.", how, class_="note")
    return tag("div", tag("div", table, class_="scroll"), key, class_="overview")


def wanted(insights: Insights, most: int = 12) -> Markup:
    """How often each action was logged and is wanted, as a table shaded by size."""
    shown, short = insights.actions.table(most), insights.short
    labels: list[str] = [name_of(text) for text in short_names(shown.labels, 24).values()]
    labels += [f"{shown.others} others"] if shown.others else []
    unknown = tag("td", "known only at the logged actions", colspan=len(labels), class_="unknown")
    lines = []
    for n, (name, shares) in enumerate(shown.rows):
        header = tag("th", name_of(short[name]) if n else name, scope="row")
        cells = [tag("td", share(v), class_=f"heat{round(9 * min(1.0, v))}") for v in shares or ()]
        lines.append(tag("tr", header, unknown if shares is None else cells, class_=None if n else "logged"))
    caption = tag("caption", "How often each action was logged, and how often each policy would take it")
    head = tag("tr", [tag("th", text, scope="col") for text in ("policy", *labels)])
    return tag("div", tag("table", caption, tag("thead", head), tag("tbody", lines), class_="heat"), class_="scroll")


def weights(insights: Insights) -> Markup:
    """The weights of each policy, relative to their mean: most rows, half of them, the largest."""
    short, effective = insights.short, {c.name: c.ess for c in insights.diagnosis.coverage}
    largest = max([2.0, *(float(q[-1]) for q in insights.weights.values())])
    x = scale_for([log10(FAINTEST), log10(largest)], 0, 100)
    marks = [float(m) for m in range(-2, 9) if x.low <= m <= x.high]
    if len(marks) > 6:
        marks = marks[:: -(-len(marks) // 6)]

    def place(value: float) -> str:
        return at(x(log10(max(value, FAINTEST))))

    lines = []
    for name, q in insights.weights.items():
        shapes = [
            tag("line", x1=place(q[0]), x2=place(q[4]), y1="15", y2="15", class_="thin"),
            tag("line", x1=place(q[1]), x2=place(q[3]), y1="15", y2="15", class_="thick"),
            tag("circle", cx=place(q[5]), cy="15", r="4.5", class_="dot open"),
        ]
        tip = f"{short[name]}: median weight {number(float(q[2]), 2)}, largest {number(float(q[5]), 1)}"
        says = tag("span", tag("b", number(effective[name], 0)), tag("i", " effective rows"), class_="says")
        lines.append(row(None, short[name], strip(x, marks, shapes, tip), says, ""))
    known = insights.result.log.knows != "none"
    label = f"weight {'π/p' if known else 'π (no propensities)'} of a row, relative to the average"
    caption = "How unequal the rows' weights are: thick half of the rows, thin nine in ten, circle the largest."
    return strips(caption, lines, axis(x, marks, [tick_text(10.0**m) for m in marks], label), "weights")


def states(view: StateDifferences, a: str, b: str) -> Markup:
    """How the difference of two policies is spread over states, counted in rows."""
    size, every = view.size, view.bars()
    x = Scale(-size, size, 0, 100)
    top = max(bar.rows for bar in every) or 1.0
    bars = []
    for low, high, rows, kind in every:
        if rows:
            height = max(2.0, 150 * rows / top)
            tip = f"{rows:,.0f} rows in states where {a} − {b} is between {number(low, 3)} and {number(high, 3)}"
            bars.append(
                tag(
                    "rect", x=at(x(low) + 0.15), width=at(x(high) - x(low) - 0.3), y=f"{160 - height:.1f}",
                    height=f"{height:.1f}", class_=f"bar {kind}", data_tip=tip,
                )
            )  # fmt: skip
    marks = ticks(-size, size)
    drawn = tag("svg", grid(x, marks, "160"), bars, class_="plot", height="160", aria_hidden="true")
    label = f"{a} − {b} in a state, {view.unit} (by {view.method}); height: rows"
    return tag("div", drawn, axis(x, marks, [tick_text(v) for v in marks], label), class_="chart")


def plan(insights: Insights, most: int = 5) -> Markup | None:
    """Rows against the smallest difference that they decide, on two logarithmic axes."""
    shown = insights.plan_lines(most)
    if shown is None:
        return None
    short = short_names(insights.result.ranking, 30)
    which = "open" if any(p.verdict == "cannot tell" for p, *_ in shown.pairs) else "closest"
    caption = f"Smallest true difference that so many rows decide 8 times in 10, for the {which} pairs."
    swatch = {"class_": "swatch", "height": "12", "aria_hidden": "true"}
    key = [
        tag(
            "li",
            tag("svg", tag("line", x1="0", x2="100%", y1="6", y2="6", class_=f"line line{n}"), **swatch),
            name_of(short[pair.a]), " against ", name_of(short[pair.b]),
        )
        for n, (pair, *_) in enumerate(shown.pairs)
    ]  # fmt: skip
    return figure(caption, plan_chart(shown, short), tag("ul", key, class_="key"))


def plan_chart(shown: PlanLines, short: dict[str, str]) -> Markup:
    """The lines of the pairs, with the rows at hand and the difference that matters."""
    rows, matters, decided = shown.rows, shown.matters, [d for _, d, _ in shown.pairs]
    x = Scale(log10(rows / 2), log10(rows * shown.far), 0, 100)
    before = (d * 2**fall for _, d, fall in shown.pairs)
    y = Scale(log10(min(matters, *decided) / 2), log10(max(matters, *before) * 1.6), 220, 0)
    shapes = []
    for n, (pair, d, fall) in enumerate(shown.pairs):
        ends = [(v, log10(d) + (log10(rows) - v) * fall) for v in (x.low, x.high)]
        if ends[1][1] < y.low:
            ends[1] = (log10(rows) + (log10(d) - y.low) / fall, y.low)
        tip = f"{short[pair.a]} against {short[pair.b]}: {rows:,} rows decide {number(d)}"
        (x1, y1), (x2, y2) = ends
        line = {"x1": at(x(x1)), "y1": f"{y(y1):.1f}", "x2": at(x(x2)), "y2": f"{y(y2):.1f}", "data_tip": tip}
        shapes += [tag("line", **line, class_=kind) for kind in (f"line line{n}", "target")]
    x_marks, y_marks = log_ticks(x.low, x.high), log_ticks(y.low, y.high)
    frame = [upright(at(x(v)), "grid") for v in x_marks] + [level(f"{y(v):.1f}", "grid") for v in y_marks]
    here, wish = at(x(log10(rows))), f"{y(log10(matters)):.1f}"
    frame += [upright(here, "now"), level(wish, "now")]
    labels = [tag("text", log_text(v), x="2", y=f"{y(v) - 4:.1f}") for v in y_marks]
    labels += [
        tag("text", f"now: {rows:,} rows", x=here, y="12", dx="6"),
        tag("text", f"{tick_text(matters)} matters", x="100%", y=wish, dx="-2", dy="-5", text_anchor="end"),
    ]
    drawn = tag("svg", frame, shapes, labels, class_="plot", height="220", aria_hidden="true")
    return tag("div", drawn, axis(x, x_marks, [log_text(v) for v in x_marks], "rows in all"), class_="chart")


def upright(x: str, kind: str) -> Markup:
    return tag("line", x1=x, x2=x, y1="0", y2="220", class_=kind)


def level(y: str, kind: str) -> Markup:
    return tag("line", x1="0", x2="100%", y1=y, y2=y, class_=kind)


def log_text(place: float) -> str:
    """The number at a place on a logarithmic axis."""
    return tick_text(float(f"{10**place:.2g}"))


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, and their doubles and halves where few fit."""
    tens = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    steps = (1, 2, 5) if high - low < 2.2 else (1,)
    places = [k + log10(m) for k in tens for m in steps]
    kept = [v for v in places if low <= v <= high]
    return kept[:: max(1, -(-len(kept) // 8))]
