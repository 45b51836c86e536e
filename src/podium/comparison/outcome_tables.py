"""Outcomes and lifts as tables, rows of frames and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.comparison.groups import refuse_no_groups
from podium.comparison.pair import Pair, interval_text, without_facts
from podium.data.errors import PodiumError, meant, shown
from podium.data.frames import apart
from podium.outputs.display import Table, number, percent

TABLES = ("ranking", "pairs", "groups", "outcomes")
BACKENDS = ("pandas", "polars", "pyarrow")
MANY = 6  # as for the pairs of the reward
ALONE = "Each outcome is judged by itself, and its verdicts allow for its own pairs."
LIFT = "lift: V(a)/V(b) - 1, by Fieller's interval with the largest error that any correlation allows; V(b) is DRE's."


def turned_as(outcome: Any, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of an outcome, each the way round in which the ranking has it."""
    return [outcome.pair(p.a, p.b) for p in pairs]


def title_of(result: Any, name: str) -> str:
    lower = result.outcomes[name].settings.lower_is_better
    return f"Outcome {name} ({'lower' if lower else 'higher'} is better)"


def pairs_to_show(result: Any) -> list[Pair]:
    """All pairs, or where policies are many those of the best one."""
    return [p for p in result.pairs if len(result.policies) <= MANY or p.a == result.best]


def outcome_table(result: Any, name: str) -> Table:
    """What an outcome says of the pairs of the ranking."""
    outcome = result.outcomes[name]
    pairs = turned_as(outcome, pairs_to_show(result))
    rows = [[p.a, p.b, p.verdict, number(p.difference), interval_text(p.interval), percent(p.p_better)] for p in pairs]
    columns = ["a", "b", "a is", "by", f"{outcome.level_text} interval", "P(better)"]
    if any(p.lift for p in pairs):
        columns.append("lift")
        rows = [[*row, lift_text(p)] for row, p in zip(rows, pairs, strict=True)]
    reasons = sorted({f"{r}." for p in pairs for r in p.reasons})
    notes = [*new_warnings(result, name), *reasons[:3]]
    notes += [ALONE] if name == next(reversed(result.outcomes)) else []
    return Table(title_of(result, name), columns, rows, align="lllrrr" + "r" * (len(columns) - 6), notes=notes)


def new_warnings(result: Any, name: str) -> list[str]:
    """Warnings of an outcome that the reward does not have."""
    return [f"Warning: {w}" for w in result.outcomes[name].warnings if w not in result.warnings]


def lift_text(pair: Pair) -> str:
    return "-" if pair.lift is None else f"{pair.lift.percent:+.1f}%"


def lift_table(result: Any) -> Table:
    """Every pair that is shown with its relative lift and the interval of it."""
    rows = []
    for p in pairs_to_show(result):
        ends = "-" if p.lift is None else f"[{p.lift.low:+.1f}%, {p.lift.high:+.1f}%]"
        rows.append([p.a, p.b, lift_text(p), ends])
    columns = ["a", "b", "lift", f"{result.level_text} interval"]
    return Table(f"Relative lift in {result.log.header('reward')}", columns, rows, align="llrr", notes=[LIFT])


def outcome_dict(result: Any, name: str) -> dict[str, Any]:
    """The content of JSON for one outcome."""
    outcome = result.outcomes[name]
    whole = outcome.to_dict()
    return {
        "policies": whole["policies"],
        "pairs": whole["pairs"],
        "lower_is_better": outcome.settings.lower_is_better,
        "warnings": [w for w in whole["warnings"] if w not in result.warnings],
        **({"groups": whole["groups"]} if outcome.groups else {}),
    }


def frame_rows(result: Any, table: str, backend: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of a table, and the backend; a backend that stands alone asks for the ranking."""
    if not isinstance(table, str) or table not in TABLES:
        near = meant(table, TABLES)
        if near and table not in BACKENDS:
            raise PodiumError(f"there is no table {shown(table)}", hint=f"{near}the tables are {', '.join(TABLES)}.")
        table, backend = "ranking", table  # which is refused there if it is no backend
    if table == "ranking":
        flat = []
        for row in (p.to_dict() for p in result.policies):
            estimates = row.pop("estimates")
            flat.append(row | apart(row, estimates, "estimator"))
        return flat, backend
    if table == "pairs":
        return [flat_pair(p) for p in result.pairs], backend
    if table == "groups":
        refuse_no_groups(result.groups)
        return [without_facts(g.to_dict()) for g in result.groups], backend
    if not result.outcomes:
        raise PodiumError(
            "the comparison has no outcomes beside the reward", hint="name them with also=['cost:lower']."
        )
    named = [{"outcome": name} | flat_pair(p) for name, outcome in result.outcomes.items() for p in outcome.pairs]
    return named, backend


def flat_pair(pair: Pair) -> dict[str, Any]:
    """A pair as one row of numbers and texts."""
    row = {name: value for name, value in pair.to_dict().items() if name not in ("reasons", "reason_facts", "lift")}
    lift = pair.lift
    return row | {
        "lift": None if lift is None else lift.percent,
        "lift_low": None if lift is None else lift.low,
        "lift_high": None if lift is None else lift.high,
        "reasons": " ".join(f"{r}." for r in pair.reasons),
    }
