"""Outcomes and lifts as tables, rows of frames and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.comparison.groups import refuse_no_groups
from podium.comparison.pair import Pair, interval_text, without_facts
from podium.data.errors import PodiumError, meant, shown
from podium.data.frames import EXTRAS, apart
from podium.outputs.display import Table, number, percent

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
    return {
        "policies": [p.to_dict() for p in outcome.policies],
        "pairs": outcome.pair_dicts(),
        "lower_is_better": outcome.settings.lower_is_better,
        "warnings": [w for w in outcome.warnings if w not in result.warnings],
        **({"groups": [g.to_dict() for g in outcome.groups]} if outcome.groups else {}),
    }


# --- tables as frames --------------------------------------------------------------------------------------------


def ranking_rows(result: Any) -> list[dict[str, Any]]:
    rows = []
    for policy in result.policies:
        row = policy.to_dict()
        estimates = row.pop("estimates")
        rows.append(row | apart(row, estimates, "estimator"))
    return rows


def pair_rows(result: Any) -> list[dict[str, Any]]:
    """Every pair as one row of numbers and texts."""
    rows = []
    for row in map(without_facts, result.pair_dicts()):
        lift = row.pop("lift") or {}
        rows.append(row | {"lift": lift.get("percent"), "lift_low": lift.get("low"), "lift_high": lift.get("high")})
    return rows


def group_rows(result: Any) -> list[dict[str, Any]]:
    refuse_no_groups(result.groups)
    return [without_facts(g.to_dict()) for g in result.groups]


def outcome_rows(result: Any) -> list[dict[str, Any]]:
    if not result.outcomes:
        raise PodiumError(
            "the comparison has no outcomes beside the reward", hint="name them with also=['cost:lower']."
        )
    return [{"outcome": name} | row for name, outcome in result.outcomes.items() for row in pair_rows(outcome)]


TABLES = {"ranking": ranking_rows, "pairs": pair_rows, "groups": group_rows, "outcomes": outcome_rows}


def frame_rows(result: Any, table: str, backend: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of a table, and the backend; a backend that stands alone asks for the ranking, as in version 0.1."""
    if table in EXTRAS:
        table, backend = "ranking", table
    if table not in TABLES:
        hint = f"{meant(table, list(TABLES))}the tables are {', '.join(TABLES)}."
        raise PodiumError(f"unknown table {shown(table)}", hint=hint)
    return TABLES[table](result), backend
