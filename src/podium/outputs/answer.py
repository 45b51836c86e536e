"""The answer in one sentence that needs no statistics, and the sentences that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.comparison.pair import Interval, Pair
from podium.data.errors import count
from podium.outputs.display import percent, short_names
from podium.outputs.insights import Insights

NAMED = 3  # policies named in one breath
OPEN = "cannot tell"


@dataclass(frozen=True)
class Answer:
    """The one sentence, and what a reader asks next."""

    sentence: str
    details: tuple[str, ...]


def answer(insights: Insights) -> Answer:
    """Who is better than whom, how sure that is, and what would settle the rest."""
    result, best = insights.result, insights.result.best
    short = short_names(result.ranking, 40)
    others = group_by_verdict(insights, best, [name for name in result.ranking if name != best])
    rivals, beaten, stronger = others[OPEN], others["better"], others["worse"]
    parts = []
    if beaten:
        losers = [insights.reference] if insights.reference in beaten else beaten
        parts = [f"{short[best]} is better than {enumerate_names(losers, short)} ({surety(insights, best, losers)})"]
    elif stronger:
        parts = [f"{short[best]} ranks first, yet is judged worse than {enumerate_names(stronger, short)}"]
    if rivals:
        names = enumerate_names(rivals, short)
        who = f"{short[best]} ranks first but cannot be told apart from {names}"
        who = f"{names} cannot be told apart from {short[best]}" if parts else who
        parts.append(who + remedy(insights, best, rivals))
    return Answer("; ".join(parts) + ".", tuple(details(insights, short)))


def group_by_verdict(insights: Insights, one: str, others: Sequence[str]) -> dict[str, list[str]]:
    """Verdict on `one` against others -> those others, in the order of the ranking."""
    verdicts = {name: insights.result.pair(one, name).verdict for name in others}
    return {verdict: [name for name in others if verdicts[name] == verdict] for verdict in ("better", OPEN, "worse")}


def details(insights: Insights, short: dict[str, str]) -> list[str]:
    """How the others compare with the policy that made the log, and how much of the whole is decided."""
    result, reference = insights.result, insights.reference
    lines = []
    if reference is not None and reference != result.best:
        rest = [n for n in result.ranking if n not in (result.best, reference)]
        against = group_by_verdict(insights, reference, rest)
        parts = [f"The log was made by {short[reference]}"]
        for verdict, (one, many) in VERBS.items():
            if names := against[verdict]:
                sure = remedy(insights, reference, names)
                sure = sure if verdict == OPEN else f" ({surety(insights, reference, names)})"
                parts.append(f"{enumerate_names(names, short)} {many if names[1:] else one} it{sure}")
        lines.append("; ".join(parts) + ".")
    elif reference is not None:
        lines.append(f"The log was made by {short[reference]} itself.")
    decided = [p for p in result.pairs if p.verdict != OPEN]
    if len(result.pairs) > 1:
        pairs, rows = count(len(result.pairs), "pair"), count(len(result.log), "row")
        lines.append(f"Of {pairs} {len(decided):,} are decided by the {rows} of the log.")
    return lines


VERBS = {  # what others are, by the verdict on the policy that made the log
    "worse": ("is better than", "are better than"),
    OPEN: ("cannot be told apart from", "cannot be told apart from"),
    "better": ("is worse than", "are worse than"),
}


def enumerate_names(names: Sequence[str], short: dict[str, str], most: int = NAMED) -> str:
    """Names as a person would list them.

    >>> enumerate_names(["a", "b", "c"], {"a": "a", "b": "b", "c": "c"}), enumerate_names(["a"] * 5, {"a": "a"})
    ('a, b and c', 'a, a and 3 others')
    """
    if len(names) > most:
        shown = [*(short[n] for n in names[: most - 1]), f"{len(names) - most + 1} others"]
    else:
        shown = [short[n] for n in names]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def surety(insights: Insights, one: str, others: Sequence[str]) -> str:
    """How sure the least sure of these claims is."""
    probabilities = [insights.result.pair(one, n).p_better for n in others]
    least = min(max(p, 1 - p) for p in probabilities)
    return f"{'' if len(others) == 1 or least > 0.999 else 'at least '}{percent(least)} sure"


def remedy(insights: Insights, one: str, others: Sequence[str]) -> str:
    """What would settle these open pairs, or why they need not be settled."""
    pairs = [insights.result.pair(one, n) for n in others]
    widths = [widest(insights.interval(p)) for p in pairs]
    reach = max(widths, default=float("inf"))
    if insights.matters is None:
        return ""
    if reach <= insights.matters:
        return f": the difference is likely below {rounded(reach)}"
    more = [extra_rows(insights, p) for p, width in zip(pairs, widths, strict=True) if width > insights.matters]
    known = [m for m in more if m is not None]
    if not known or len(known) < len(more):
        return ": the log cannot say how many rows would settle it"
    if max(known) <= 0:
        return f": the difference may reach {rounded(reach)}"
    return f": log about {two_digits(max(known)):,} more rows"


def widest(interval: Interval | None) -> float:
    """The largest difference, either way, that an interval leaves possible."""
    return float("inf") if interval is None else max(abs(interval.low), abs(interval.high))


def extra_rows(insights: Insights, pair: Pair) -> int | None:
    """Rows to add until the smallest difference that matters is decided 8 times in 10."""
    planned = insights.planned(pair.a, pair.b)
    return None if planned is None or planned.rows_80 is None else planned.rows_80 - insights.judged_rows


def two_digits(rows: int) -> int:
    """A number of rows that does not pretend to be exact: rounded up to two digits.

    >>> two_digits(1287), two_digits(43), two_digits(7)
    (1300, 43, 7)
    """
    step: int = 10 ** max(0, len(str(rows)) - 2)
    return -(-rows // step) * step


def rounded(value: float) -> str:
    """Two digits of a number.

    >>> rounded(0.08512), rounded(1234.5)
    ('0.085', '1200')
    """
    return f"{float(f'{value:.1e}'):.15g}" if 1e-4 <= value < 1e9 else f"{value:.1e}"
