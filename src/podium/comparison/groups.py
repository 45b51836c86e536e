"""A pair of policies in one group of rows, and whether a claim holds in every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.comparison.pair import Interval, decided, ends, interval_text
from podium.data.arguments import checked, optional, real, text
from podium.data.errors import PodiumError, meant
from podium.data.facts import Fact, fact_dict
from podium.outputs.display import Table, number, percent
from podium.verdicts.judgement import Judgement


@dataclass(frozen=True)
class Group:
    """Policy a against policy b in the rows of one group.

    `difference` = V(a) - V(b) in that group, in units of reward, shrunk towards the whole; `interval` is central at the
    comparison's level, `p_better` the probability that a is better there. The verdict is a claim iff p_adjusted <= 1 -
    level, which allows for all groups of the pair by this column.

    Attributes
    ----------
    by, value, rows : the column, what the group is called, and its rows in the whole log
    claim_level : of a claim about this group by itself; higher than the comparison's level at a planned look
    """

    by: str
    value: str
    rows: int
    a: str
    b: str
    difference: float
    std_error: float | None
    interval: Interval | None
    p_better: float
    p_adjusted: float
    verdict: str
    path: str
    reasons: tuple[str, ...]
    claim_level: float = 0.95
    lower_is_better: bool = False
    belief: Judgement | None = field(default=None, repr=False, compare=False)  # of the first policy less the second
    turned: bool = field(default=False, repr=False, compare=False)  # b is the first policy there

    @property
    def usable(self) -> bool:
        """Whether a claim about this group may be made at all."""
        return self.belief is not None and bool(self.belief.usable[0])

    @checked(margin=real())
    def p_above(self, margin: float = 0.0) -> float:
        """The probability that V(a) - V(b) in this group exceeds a margin; 1/2 where nothing is known."""
        if self.belief is None:
            return 0.5
        above = float(self.belief.p_above(-margin if self.turned else margin)[0])
        return 1 - above if self.turned else above

    def reversed(self) -> Group:
        """The same group, b against a."""
        flip = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
        interval = None if self.interval is None else Interval(-self.interval.high, -self.interval.low)
        return Group(
            self.by, self.value, self.rows, self.b, self.a, -self.difference + 0.0, self.std_error, interval,
            1 - self.p_better, self.p_adjusted, flip[self.verdict], self.path, self.reasons, self.claim_level,
            self.lower_is_better, self.belief, not self.turned,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON."""
        low, high = ends(self.interval)
        return {
            "by": self.by, "value": self.value, "rows": self.rows, "a": self.a, "b": self.b,
            "difference": self.difference, "std_error": self.std_error, "low": low, "high": high,
            "p_better": self.p_better, "p_adjusted": self.p_adjusted, "verdict": self.verdict, "path": self.path,
            "reasons": list(self.reasons), "reason_facts": [fact_dict(r) for r in self.reasons],
        }  # fmt: skip


@dataclass(frozen=True)
class GroupClaim:
    """Whether "a is worse than b by no more than a margin" holds in every group.

    Attributes
    ----------
    verdict : "holds" where every group claims it by itself; "the opposite holds" where some group claims that a is
        worse by more than the margin, allowing for the number of groups; otherwise "cannot tell"
    weakest : the group in which it is least probable
    probability : how probable it is there
    reasons : why it cannot be told, group by group; empty where it can
    """

    a: str
    b: str
    margin: float
    groups: tuple[Group, ...]
    verdict: str
    weakest: Group
    probability: float
    reasons: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"


@checked(a=text, b=text, margin=real(0), by=optional(text))
def group_claims(groups: Sequence[Group], a: str, b: str, margin: float, by: str | None = None) -> GroupClaim:
    """Whether policy a is worse than policy b by no more than `margin` in every group.

    This is an intersection-union test: every group must claim it by itself, at the level of its comparison, so that no
    adjustment for their number is needed. A group of which nothing may be claimed leaves it open.

    Parameters
    ----------
    groups : those of a comparison, `Comparison.groups`
    margin : the loss, in units of reward, that would be accepted; 0 asks for a claim that a is better everywhere
    by : the column; None for the groups of every column
    """
    chosen = groups_of(groups, a, b, by)
    probable = [p_no_worse(g, margin) for g in chosen]
    failing, undecided = tested_in_every(chosen, probable)
    if failing:
        return GroupClaim(a, b, margin, chosen, "the opposite holds", chosen[failing[0]], probable[failing[0]])
    weakest = min(range(len(chosen)), key=lambda n: (chosen[n].usable, probable[n]))
    reasons = tuple(f"{chosen[n].by} {chosen[n].value}: {why_undecided(chosen[n], probable[n])}" for n in undecided)
    verdict = "cannot tell" if reasons else "holds"
    return GroupClaim(a, b, margin, chosen, verdict, chosen[weakest], probable[weakest], reasons)


def tested_in_every(groups: Sequence[Group], probable: Sequence[float]) -> tuple[list[int], list[int]]:
    """Where a claim fails, the least probable first, and where it can be neither claimed nor excluded.

    The claim is tested in each group at its own level, which is valid for claiming it of all of them. That it fails
    somewhere is claimed only after allowing for their number (Bonferroni). Of a silent group nothing is claimed.

    Parameters
    ----------
    probable : how probable the claim is in each group
    """
    errors = [(1 - g.claim_level) / 2 for g in groups]
    usable = [n for n, g in enumerate(groups) if g.usable]
    failing = sorted((n for n in usable if probable[n] <= errors[n] / len(groups)), key=lambda n: probable[n])
    held = [n for n in usable if probable[n] >= 1 - errors[n]]
    return failing, [n for n in range(len(groups)) if n not in held and n not in failing]


def p_no_worse(group: Group, margin: float) -> float:
    """The probability that a is worse by no more than the margin in a group."""
    return 1 - group.p_above(margin) if group.lower_is_better else group.p_above(-margin)


def why_undecided(group: Group, probability: float) -> str:
    """Why a claim is neither made nor excluded in a group."""
    if not group.usable and group.reasons:
        return group.reasons[0]
    sure = (1 + group.claim_level) / 2
    return Fact("gate open", low=1 - sure, high=sure, level=group.claim_level) + f" ({percent(probability)})"


def groups_of(groups: Sequence[Group], a: str, b: str, by: str | None) -> tuple[Group, ...]:
    """The groups of a pair by a column, a against b; names that there are not are refused."""
    columns = list(dict.fromkeys(g.by for g in groups))
    refuse_no_groups(groups)
    if by is not None and by not in columns:
        hint = meant(by, columns) + "the columns are " + ", ".join(columns) + "."
        raise PodiumError(f"the comparison has no groups by {by!r}", hint=hint)
    found = []
    for g in groups:
        if by is None or g.by == by:
            found += [g] if (g.a, g.b) == (a, b) else [g.reversed()] if (g.b, g.a) == (a, b) else []
    if not found:
        names = list(dict.fromkeys(name for g in groups for name in (g.a, g.b)))
        unknown = next((name for name in (a, b) if name not in names), "")
        hint = meant(unknown, names) + "the policies are " + ", ".join(names) + "."
        raise PodiumError(f"no pair {a!r} against {b!r}", hint=hint)
    return tuple(found)


def refuse_no_groups(groups: Sequence[Any]) -> None:
    if not groups:
        raise PodiumError("the comparison has no groups", hint='compare with by="COLUMN" (--by COLUMN).')


def groups_table(groups: Sequence[Group], only: str | None, level: str) -> Table:
    """The groups of all pairs, or of one policy against the others; the rest is in JSON."""
    shown = [g for g in groups if only in (None, g.a)]
    pairs = {(g.a, g.b) for g in shown}
    rows = [
        [f"{g.by} {g.value}", f"{g.rows:,}", *([g.a, g.b] if len(pairs) > 1 else []), g.verdict,
         number(g.difference, 3), interval_text(g.interval), percent(g.p_better)]
        for g in shown
    ]  # fmt: skip
    names = ["a", "b", "a is"] if len(pairs) > 1 else [f"{a} is" for a, _ in pairs]
    columns = ["group", "rows", *names, "by", f"{level} interval", "P(better)"]
    notes = ["Differences within groups are shrunk towards the whole. A verdict also allows for the number of groups."]
    if any(decided(g.interval) and g.verdict == "cannot tell" for g in groups):
        notes.append("A group whose interval excludes 0 may still be open among all groups of its pair.")
    reasons = sorted({f"{r}." for g in groups for r in g.reasons if getattr(r, "code", "") != "open"})
    title = "Groups" if len(pairs) > 1 else "".join(f"Groups: {a} against {b}" for a, b in pairs)
    if len(shown) < len(groups):
        title += f" ({len(shown)} of {len(groups)}; all are in the JSON output)"
    return Table(title, columns, rows, align="lr" + "l" * len(names) + "rrr", notes=[*notes, *reasons[:4]])
