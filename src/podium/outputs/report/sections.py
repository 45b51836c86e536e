"""The sections of the report, in the order in which questions come up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from podium.comparison.pair import interval_text, turned
from podium.data.columns import descending
from podium.data.errors import count
from podium.data.nested import grouped
from podium.outputs.answer import extra_rows, rounded, two_digits
from podium.outputs.display import Table, label_text, number, percent, share, short_names, shorten
from podium.outputs.insights import Insights
from podium.outputs.markup import Markup, name_of, tag
from podium.outputs.report import charts
from podium.verdicts.leaks import leak_warnings
from podium.version import VERSION

MOST_STATES = 25
UNSEEN = "What if something that is not in the log drove the actions?"


def section(name: str, title: str, lead: str, *content: Any) -> Markup:
    return tag(
        "section",
        tag("h2", title, id=f"{name}-title"),
        tag("p", lead, class_="lead") if lead else None,
        *content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def framed(table: Table, sortable: bool = True) -> Markup:
    """A table that scrolls inside its own frame where the screen is too narrow."""
    kind = "scroll sortable" if sortable else "scroll"
    return tag("div", Markup(table.html()), class_=kind)


def untitled(table: Table) -> Table:
    """A table whose title stands on the fold around it."""
    return replace(table, title=tag("span", table.title, class_="unseen"))


def fold(title: str, *content: Any) -> Markup:
    return tag("details", tag("summary", title), *content)


def listing(items: Sequence[Any], kind: str | None = None) -> Markup | None:
    return tag("ul", [tag("li", item) for item in items], class_=kind) if items else None


# --- ranking ------------------------------------------------------------------------------------------------------


def ranking(insights: Insights) -> Markup:
    lead = "Ranked by " + describe_ranker(insights) + "."
    return section("ranking", "Ranking", lead, charts.forest(insights), framed(score_table(insights)))


def describe_ranker(insights: Insights) -> str:
    s = insights.result.settings
    plain = {
        "posterior": "expected reward, given the log (the posterior)",
        "gated": "LDE or DRE, whichever the log allows",
    }
    by = plain.get(s["estimator"], f"{s['estimator']} with baseline {s['baseline']}")
    return by + (", lowest first" if s["lower_is_better"] else "")


def score_table(insights: Insights) -> Table:
    """Scores of every method with the rank that each would give."""
    result, short, methods = insights.result, insights.short, insights.methods
    sign = 1.0 if result.settings["lower_is_better"] else -1.0
    places: dict[str, dict[str, int]] = {}
    for m in methods:
        values = {p.name: p.estimates[m] for p in result.policies}
        known = [sign * v for v in values.values() if v is not None]
        places[m] = {n: 1 + sum(k < sign * v for k in known) for n, v in values.items() if v is not None}
    rows = []
    for p in result.policies:
        cells: list[str] = [str(p.rank), name_of(short[p.name]), percent(p.p_best), number(p.regret)]
        for m in methods:
            value = p.estimates[m]
            place = places[m].get(p.name)
            kind = "place" if place == p.rank else "place moved"
            cells.append(
                Markup("–") if value is None else tag("span", number(value), " ", tag("sup", str(place), class_=kind))
            )
        rows.append(cells)
    notes = ["The small figure after a score is the rank by that method; a frame marks ranks that differ."]
    notes += ["P(best): chance of being the best of all. Regret: expected loss of choosing this policy."]
    notes += [f"{m} is not available: {reason}." for m, reason in result.unavailable.items()]
    columns = ["rank", "policy", "P(best)", "regret", *methods]
    return Table("Scores by method", columns, rows, align="rl" + "r" * (len(methods) + 2), notes=notes)


# --- pairs --------------------------------------------------------------------------------------------------------


def pairs(insights: Insights) -> Markup:
    result = insights.result
    decided = sum(p.verdict != "cannot tell" for p in result.pairs)
    lead = f"{decided:,} of {count(len(result.pairs), 'pair')} decided at level {result.level_text}; "
    lead += f"{result.settings.multiplicity}."
    panel = tag("div", id="pair", class_="panel", aria_live="polite", role="region", aria_label="What drives the pair")
    hint = tag("noscript", tag("p", "Scripts are off; the table below holds every pair."))
    every = framed(pair_table(insights))
    if len(insights.pairs) > 15:
        every = fold(f"All {len(insights.pairs):,} pairs as a table", every)
    return section("pairs", "Pairs", lead, tag("div", charts.matrix(insights), panel, class_="explorer"), hint, every)


def pair_table(insights: Insights) -> Table:
    result, short = insights.result, insights.short
    rows = []
    for p in insights.pairs:
        check, planned = insights.check(p), insights.planned(p.a, p.b)
        needed = None if planned is None else planned.rows_80
        mark = tag("span", f"{charts.MARKS[p.verdict]} {p.verdict}", class_=f"verdict {charts.KINDS[p.verdict]}")
        cells = [name_of(short[p.a]), name_of(short[p.b]), mark, number(p.difference), interval_text(p.interval)]
        cells += [percent(p.p_better), *([interval_text(p.adjusted)] if result.adjusts else [])]
        cells += ["–" if check.rows_to_flip is None else f"{check.rows_to_flip:,}"]
        rows.append([*cells, "–" if needed is None else f"{needed:,}"])
    unit = insights.result.unit
    notes = [f"difference: V(a) − V(b) {unit}. flip: the fewest rows whose removal would turn its sign."]
    notes += [result.adjustment] if result.adjusts else []
    if insights.matters is not None:
        notes.append(f"rows needed: so many in all decide, 8 times in 10, a true difference of {insights.matters:g}.")
    if len(insights.pairs) < len(result.pairs):
        notes.append(f"{len(result.pairs) - len(insights.pairs):,} pairs of lower ranks are in the JSON output.")
    columns = ["a", "b", "a is", "difference", f"{result.level_text} interval", "P(better)"]
    columns += ["adjusted interval"] if result.adjusts else []
    columns += ["flip", "rows needed"]
    return Table("Every pair", columns, rows, "lllrrrrr" + "r" * result.adjusts, notes)


def pair_data(insights: Insights) -> dict[str, Any]:
    """What the page's script needs to show a pair: numbers for drawing, texts as they are read, each state once."""
    result, shares = insights.result, insights.state_shares
    place = {name: k for k, name in enumerate(result.ranking)}
    reasons: dict[str, int] = {}
    states: dict[str, int] = {}
    entries = []
    for p in insights.pairs:
        check, planned = insights.check(p), insights.planned(p.a, p.b)
        more = extra_rows(insights, p)
        interval = insights.interval(p)
        labels = [states.setdefault(shorten(label_text(d.label), 60), len(states)) for d in check.states]
        entry = {
            "a": place[p.a],
            "b": place[p.b],
            "difference": short_float(p.difference),
            "interval": None if interval is None else [short_float(interval.low), short_float(interval.high)],
            "texts": [number(p.difference), interval_text(interval), percent(p.p_better)],
            "turned": [number(-p.difference), interval_text(turned(interval)), percent(1 - p.p_better)],
            "verdict": ["better", "worse", "cannot tell"].index(p.verdict),
            "path": p.path,
            "reasons": [reasons.setdefault(r, len(reasons)) for r in p.reasons],
            "flip": check.rows_to_flip,
            "detects": None if planned is None or planned.detectable_now is None else rounded(planned.detectable_now),
            "more": more if more is None or more <= 0 else two_digits(more),
            "rows": [[d.label, short_float(d.effect), int(d.flips)] for d in check.rows],
            "states": [[n, short_float(d.effect), int(d.flips)] for n, d in zip(labels, check.states, strict=True)],
            "shares": None if (p.a, p.b) not in shares else [share(s) for s in shares[p.a, p.b]],
        }
        entries.append(entry)
    return {
        "names": list(insights.short.values()),
        "reasons": list(reasons),
        "states": list(states),
        "interval": insights.interval_name,
        "matters": None if insights.matters is None else f"{insights.matters:g}",
        "columns": shorten(", ".join(grouped(list(result.log.state_columns))), 60),
        "fields": list(entries[0]),
        "pairs": [list(entry.values()) for entry in entries],
    }


def short_float(value: float | None) -> float | None:
    """Four digits: enough to draw."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.4g}")


# --- trust --------------------------------------------------------------------------------------------------------


def trust(insights: Insights) -> Markup:
    d, order = insights.diagnosis, insights.result.ranking.index
    lead = "No alarm was raised: nothing in the log speaks against reading it this way."
    if d.alarms:
        lead = f"{count(len(d.alarms), 'alarm')} that should make you doubt what rests on it."
    seen = {(a.meaning, a.advice) for a in d.alarms}
    alarms = [[tag("b", shorten(meaning, 300)), " ", advice] for meaning, advice in sorted(seen)]
    ordered = replace(d, coverage=tuple(sorted(d.coverage, key=lambda c: order(c.name))))
    table = ordered.coverage_table()
    rows = [
        [name_of(insights.short[c.name]), bar(c.mass_on_logged), *cells[2:]]
        for c, cells in zip(ordered.coverage, table.rows, strict=True)
    ]
    columns = ["policy", "on logged actions", *table.columns[2:]]
    coverage = replace(table, title="How much of each policy the log has seen", columns=columns, rows=rows)
    learned = estimate.tables() if (estimate := d.log.estimated) is not None else []
    hidden = d.hidden_table()
    plan = charts.plan(insights)
    more = None
    if insights.plan is not None and insights.plan.log_more:
        more = fold("What to log more of", framed(untitled(insights.plan.log_more_table())))
    return section(
        "trust",
        "Can it be trusted?",
        lead,
        listing(alarms, "alarms"),
        framed(coverage),
        [framed(table, sortable=False) for table in learned[:1]],
        [fold(table.title + " of the estimate", framed(untitled(table), sortable=False)) for table in learned[1:]],
        charts.wanted(insights),
        charts.weights(insights),
        framed(replace(hidden, title=UNSEEN)) if hidden.rows else None,
        tag("p", d.hidden_note) if d.hidden_note else None,
        tag("h3", "What would make it sure") if plan or more else None,
        plan,
        more,
    )


def bar(part: float) -> Markup:
    """A share as a number with a bar behind it."""
    fill = tag("rect", width=f"{100 * min(1.0, max(0.0, part)):.1f}%", height="100%")
    return tag("span", tag("svg", fill, class_="share", height="10", aria_hidden="true"), " ", share(part))


# --- states -------------------------------------------------------------------------------------------------------


def states(insights: Insights) -> Markup:
    result = insights.result
    a, b = result.best, insights.rival
    view = insights.states(a, b)
    if len(view.labels) == 1:
        return section("states", "State by state", "The log has one state: there is nothing to tell apart.")
    short = insights.short
    sign = -1.0 if view.lower_is_better else 1.0
    ahead = float(view.rows[sign * view.differences > 0].sum() / view.rows.sum())
    behind = float(view.rows[sign * view.differences < 0].sum() / view.rows.sum())
    lead = (
        f"By {view.method}, {short[a]} is ahead of {short[b]} in states that hold {share(ahead)} of the rows, "
        f"and behind in {share(behind)}. "
        f"The median state has {count(int(np.median(view.rows)), 'row')}: a single one proves little."
    )
    order = descending(view.rows * np.abs(view.differences))[:MOST_STATES]
    rows = [
        [shorten(label_text(view.labels[i]), 60), f"{view.rows[i]:.0f}", charts.signed(float(view.differences[i]))]
        for i in order
    ]
    names = shorten(", ".join(grouped(list(result.log.state_columns))), 60)
    title = f"The states that weigh most ({len(rows)} of {len(view.labels):,})"
    table = Table(title, [names, "rows", "difference"], rows, "lrr")
    drawn = charts.figure(f"{short[a]} against {short[b]}, state by state.", charts.states(view, short[a], short[b]))
    return section("states", "State by state", lead, drawn, fold(title, framed(untitled(table))))


# --- method, data, reproduction -----------------------------------------------------------------------------------


def method(insights: Insights) -> Markup:
    result = insights.result
    lines = [line + "." for line in result.header()[1:]]
    lines += [
        "LDE and DiM are scores for comparing policies, not estimates of their value.",
        "“Cannot tell” is an answer: log more, or accept the risk.",
        insights.diagnosis.assumption.verdict,
    ]
    return section("method", "Method and assumptions", "", listing(lines, "prose"), spectrum(insights))


def spectrum(insights: Insights) -> Markup | None:
    """The methods as a plane, baseline by weighting: what each would say of the order."""
    methods = {(s.estimator, s.baseline): s for s in insights.diagnosis.sensitivity}
    if not methods:
        return None
    short = short_names(insights.result.ranking, 24)
    lines = [("none", "DiM", "IPS", "-")]
    lines += [(b, "LDE", "DRE", b) for b in dict.fromkeys(s.baseline for s in methods.values() if s.baseline != "-")]
    rows: list[list[str]] = []
    for label, plain, weighted, key in lines:
        cells: list[str] = [label]
        for estimator in (plain, weighted):
            s = methods.get((estimator, key))
            if s is None:
                cells.append("not available")
                continue
            order = " › ".join(short[n] for n in s.ranking[:3]) + (" › …" if len(s.ranking) > 3 else "")
            cells.append(tag("span", tag("b", estimator), " ", bar(s.agreement), tag("br"), tag("small", order)))
        rows.append(cells)
    notes = ["The share is of pairs in the order of this report. Orders that differ widely call for more rows."]
    columns = ["baseline", "w = π", "w = π/p"]
    table = Table("The order by other methods", columns, rows, "lll", notes)
    return tag("div", framed(table, sortable=False), class_="spectrum")


def data(insights: Insights) -> Markup:
    result, d = insights.result, insights.diagnosis
    table = d.log_table()
    rest = [w for w in result.warnings if w not in leak_warnings(result.warnings)]  # those stand at the top
    warnings = [f"{w[:1].upper()}{w[1:]}" for w in (shorten(w, 400) for w in rest)]
    cut = [n for n, s in insights.short.items() if n != s]
    names = [tag("p", name_of(n), class_="whole") for n in cut]
    return section(
        "data",
        "The data",
        "",
        listing(warnings, "alarms"),
        framed(replace(table, title="Log"), sortable=False),
        fold("Names in full", *names) if cut else None,
    )


def reproduce(insights: Insights, command: str, source: str, question: str = "") -> Markup:
    result = insights.result
    unread = f"read in place ({result.settings.engine}), {count(len(result.log), 'row')}; no digest"
    log = ("log, sha256", result.log.digest) if result.log.digest else ("log", unread)
    facts = [("podium", VERSION), ("seed", str(result.settings.seed)), log]
    facts = ([("file", source)] if source else []) + facts + ([("question", question)] if question else [])
    code = command or result.basis.options.as_python()
    return section(
        "reproduce",
        "How to reproduce",
        "The same log, version and seed give the same numbers.",
        tag("pre", tag("code", code), tabindex="0", role="region", aria_label="Command"),
        tag("dl", [(tag("dt", k), tag("dd", v)) for k, v in facts]),
    )
