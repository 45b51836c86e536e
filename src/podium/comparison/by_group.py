"""A comparison cut into groups of rows: for whom is a policy better, and whom does it harm?

Each pair is judged in every group by the source of certainty that judged it on the whole: the posterior, the gated
procedure, or doubly robust differences on every row. What silences a pair silences its groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from podium.comparison.analysis import Analysis
from podium.comparison.groups import Group
from podium.comparison.pair import Interval, Pair
from podium.data.columns import Codes, Column, Floats, factorize, is_missing
from podium.data.errors import PodiumError, count
from podium.data.facts import Fact
from podium.data.grouping import FEW_ROWS, Grouping, find_column, group_rows, known_after
from podium.data.log import Log
from podium.data.scales import unit_of
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.engines.wider import fold_with
from podium.estimates.moments import GroupSums
from podium.estimates.options import Options
from podium.outputs.display import number
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.evidence import gather
from podium.verdicts.group_posterior import posterior_by_group
from podium.verdicts.group_rows import RowDifferences, by_every_row, by_gated, column_of, shrunk, taken
from podium.verdicts.judge import JUDGES, as_judged
from podium.verdicts.judgement import Judgement
from podium.verdicts.known_costs import moved_by
from podium.verdicts.leaks import check_columns
from podium.verdicts.looks import parse_look, spend
from podium.verdicts.multiplicity import claim, two_sided
from podium.verdicts.pairs import pair_indices
from podium.verdicts.recipes import folds_of, recipe_pairs, widening
from podium.verdicts.thin import thin
from podium.verdicts.unseen_weight import unseen_errors


def check_by(log: Any, options: Options) -> None:
    """Refuse columns that a log does not have, and procedures that judge no groups, before anything is worked out."""
    if not options.by:
        return
    if options.verdicts is not None and options.verdicts not in (EVERY_ROW, *JUDGES):
        raise PodiumError(
            f"verdicts by {options.verdicts!r} have no groups",
            hint='leave verdicts out, or use "posterior", "gated" or "doubly robust".',
        )
    if options.normalize != "rows":
        raise PodiumError(
            'groups are averages over rows, and normalize="states" averages over states', hint="leave one of them out."
        )
    outcomes = [outcome.column for outcome in options.outcomes]
    for asked in options.by:
        named = find_column(asked, headers_of(log), role_names(log))
        if named.column in outcomes:
            raise known_after(named.column, "it is an outcome")


def headers_of(log: Any) -> Collection[str]:
    return list(dict.fromkeys((*log.columns, *log.state_columns)))


def role_names(log: Any) -> dict[str, str]:
    return {role: log.header(role) for role in ("action", "reward", "propensity")}


@dataclass(frozen=True, eq=False)
class Cut:
    """One column's groups on the rows of a comparison."""

    grouping: Grouping
    codes: Codes  # (n,) of the sample
    rows: Codes  # (G,) of the whole log
    known: Floats | None  # (P * G,) differences by known costs
    alarm: Fact | None  # that the column seems to have been recorded after the action


def cut_rows(rows: Rows, asked: str) -> Cut:
    """The groups of a column: made by the sample, and counted on all rows."""
    sample, costs = rows.sample, rows.policies.costs
    named = find_column(asked, headers_of(rows.log), role_names(rows.log))
    column = column_of(sample, named.column)
    grouping = group_rows(named, column, len(rows) / len(sample))
    headers = [] if costs is None else [h for some in costs.headers for h in some]
    work = partial(count_rows, grouping=grouping, costs=costs)
    totals = fold_with(rows, [named.column, *headers], work, "rows of groups")
    known = None
    if costs is not None:
        i, j = pair_indices(len(rows.policies))
        losses = costs.sign * totals.sums / np.maximum(totals.sizes, 1)[:, None]  # (G, K)
        known = (losses[:, j] - losses[:, i]).T.ravel()
    alarm = None if named.column in sample.state_columns else recorded_after(sample, named.column, column)
    if not rows.whole:
        grouping = replace(grouping, notes=(*grouping.notes, Fact("groups of sample", column=named.column)))
    return Cut(grouping, grouping.codes(column), totals.sizes.astype(np.int64), known, alarm)


def count_rows(parts: Iterable[Part], grouping: Grouping, costs: Any) -> Any:
    """Rows of every group, and what each policy costs there in sum."""
    total: Any = None
    for part in parts:
        codes = grouping.codes(column_of(part.log, grouping.column))
        spent = np.zeros((len(codes), 1)) if costs is None else costs.of_rows(part.log, part.policies)
        found = GroupSums.of(spent[codes >= 0], codes[codes >= 0], len(grouping))
        total = found if total is None else total + found
    return total


def recorded_after(log: Log, name: str, column: Column) -> Fact | None:
    """That a column which is no state is related to the action beyond the propensities, or repeats the reward."""
    whole = np.flatnonzero(~is_missing(column))
    (check,) = check_columns(log.take(whole)._copy(state_columns={name: factorable(column[whole])}))
    if check.alarm == "unbalanced":
        return Fact("group follows action", column=name)
    return Fact("group repeats reward", column=name, r2=check.r2) if check.alarm else None


def factorable(column: Column) -> Column:
    """Numbers as numbers, all else as texts."""
    if column.dtype.kind in "iufb":
        return column
    if all(isinstance(x, int | float) for x in column):
        return column.astype(np.float64)
    return np.array([str(x) for x in column], dtype=object)


# --- what is said of groups --------------------------------------------------------------------------------------


def find_groups(
    analysis: Analysis, judgement: Judgement, order: Sequence[int], options: Options, same_rewards: bool
) -> tuple[tuple[Group, ...], tuple[Fact, ...]]:
    """Every pair in every group, and notes; nothing where no column was asked for."""
    if not options.by:
        return (), ()
    cuts = [cut_rows(analysis.rows, asked) for asked in options.by]
    by_posterior = posterior_judgements(analysis, judgement, cuts)
    groups: list[Group] = []
    for cut, posterior in zip(cuts, by_posterior, strict=True):
        beliefs = beliefs_of(analysis, judgement, cut, posterior, same_rewards)
        groups += arranged(beliefs, judgement, cut, analysis.rows, order, options)
    notes = [Fact("groups", columns=", ".join(c.grouping.column for c in cuts))]
    return tuple(groups), (*notes, *(note for c in cuts for note in c.grouping.notes))


def sources_of(judgement: Judgement) -> list[str]:
    """Which source judged each pair: "posterior", "rows" (every row) or "gated"."""
    every = np.full(len(judgement.path), judgement.procedure == EVERY_ROW)
    if judgement.every_row is not None:
        every |= judgement.every_row
    by_posterior = judgement.procedure == "posterior"
    return [
        "rows" if all_rows else "posterior" if by_posterior and path in ("posterior", "costs") else "gated"
        for all_rows, path in zip(every, judgement.path, strict=True)
    ]


def posterior_judgements(analysis: Analysis, judgement: Judgement, cuts: Sequence[Cut]) -> list[Judgement | None]:
    """What the posterior says by each column; None where it judges no pair."""
    from threadpoolctl import threadpool_limits

    none: list[Judgement | None] = [None] * len(cuts)
    if "posterior" not in sources_of(judgement):
        return none
    sample, policies = as_judged(analysis.rows.sample, "posterior"), analysis.rows.policies
    groupings = [(cut.codes, len(cut.grouping)) for cut in cuts]
    unit = unit_of(float(np.ptp(sample.rewards)))
    with threadpool_limits(limits=1, user_api="blas"):
        found = posterior_by_group(gather(sample, policies, unit), groupings)
    if found is None:
        return none
    judged: list[Judgement | None] = []
    for cut, one in zip(cuts, found, strict=True):
        groups = len(cut.grouping)
        silent = [Fact("group in blocks") if lost else "" for lost in one.lost.tolist()] * (
            len(one.difference) // groups
        )
        own = plain_judgement(
            unit * one.difference, unit * np.sqrt(one.variance), one.mixture.freedom, one.mixture.scaled(unit), silent
        )
        own = replace(own, learned=one.learned)
        if not analysis.rows.whole:
            floor = np.column_stack(
                [unseen_errors(sample.take(some), taken(policies, some)) for some in members(cut)]
            ).ravel()
            own = own.with_errors(np.maximum(own.std_error, floor))
        judged.append(own)
    return judged


def members(cut: Cut) -> list[Codes]:
    """The rows of the sample in every group."""
    return [np.flatnonzero(cut.codes == g) for g in range(len(cut.grouping))]


def plain_judgement(
    difference: Floats, std_error: Floats, freedom: Floats, mixture: Any, silent: Sequence[str]
) -> Judgement:
    return Judgement(
        "groups", difference, std_error, freedom, ("",) * len(difference), tuple(silent), np.zeros(2), mixture=mixture
    )


def row_judgement(found: RowDifferences, policies: Any, folds: int) -> Judgement:
    """Differences of row terms, shrunk; errors of pairs with a recipe are widened as on the whole."""
    wide = np.where(recipe_pairs(policies), widening(folds) if folds > 1 else 1.0, 1.0)[:, None]
    mixture, mean, error = shrunk(replace(found, std_error=wide * found.std_error))
    silent = [
        reason or ("" if np.isfinite(e) else Fact("no spread in rows"))
        for reason, e in zip((r for row in found.silent for r in row), error.tolist(), strict=True)
    ]
    return plain_judgement(mean, error, mixture.freedom, mixture, silent)


def beliefs_of(
    analysis: Analysis, judgement: Judgement, cut: Cut, posterior: Judgement | None, same_rewards: bool
) -> list[Judgement]:
    """(P * G) what is said of every pair in every group, each as a judgement of one difference."""
    rows, groups, sources = analysis.rows, len(cut.grouping), sources_of(judgement)
    by_source: dict[str, Judgement | None] = {"posterior": posterior}
    folds = folds_of(rows.sample)
    if "rows" in sources and analysis.every_row is not None:
        found = by_every_row(rows, analysis.every_row[0], cut.grouping, cut.codes, analysis.options.seed)
        by_source["rows"] = row_judgement(found, rows.policies, folds)
    if "gated" in sources:
        log = as_judged(rows.sample, "gated")
        gated = by_gated(log, rows.policies, judgement.path, cut.grouping, cut.codes)
        by_source["gated"] = row_judgement(gated, rows.policies, folds)
    silences = silences_of(judgement, cut, rows)
    beliefs = []
    for n, reason in enumerate(silences):
        source = by_source.get(sources[n // groups])
        one = nothing_known() if source is None else source.only(n)
        one = replace(one, silent=(reason or one.silent[0],), path=(judgement.path[n // groups],))
        if cut.known is not None:
            one = moved_by(one, cut.known[n : n + 1], same_rewards)
        beliefs.append(one.without_noise())
    return beliefs


def nothing_known() -> Judgement:
    nan = np.full(1, np.nan)
    return plain_judgement(np.zeros(1), nan, np.ones(1), None, [Fact("nothing known")])


def silences_of(judgement: Judgement, cut: Cut, rows: Rows) -> list[str]:
    """(P * G) why no claim may be made of a group: what silences the pair, the column, or the few rows of the group."""
    sample, pairs = rows.sample, pair_indices(len(rows.policies))
    logged = np.stack([p.logged for p in rows.policies])
    units = None if sample.units is None else factorize(sample.units)[0]
    share = len(rows) / len(sample)
    few: list[list[str]] = []
    for g, some in enumerate(members(cut)):
        if cut.rows[g] < FEW_ROWS:
            few.append([Fact("few rows in group", rows=count(int(cut.rows[g]), "row"), least=FEW_ROWS)] * len(pairs[0]))
        elif not len(some):
            few.append([Fact("nothing known")] * len(pairs[0]))
        else:
            own = None if units is None else factorize(units[some])[0]
            few.append(thin(sample.rewards[some], logged[:, some], own, pairs, share))
    return [
        judgement.silent[p] or cut.alarm or few[g][p] for p in range(len(pairs[0])) for g in range(len(cut.grouping))
    ]


def arranged(
    beliefs: Sequence[Judgement], judgement: Judgement, cut: Cut, rows: Rows, order: Sequence[int], options: Options
) -> list[Group]:
    """Every pair in rank order and its groups, each with its verdict."""
    names, groups, level = rows.policies.names, len(cut.grouping), options.level
    index = {(int(i), int(j)): n for n, (i, j) in enumerate(zip(*pair_indices(len(order)), strict=True))}
    look = None if options.look is None else parse_look(options.look, len(rows))
    error = spend(look, level)
    found = []
    for a, b in combinations(order, 2):
        turned = (a, b) not in index
        n = index[(b, a) if turned else (a, b)]
        own = beliefs[n * groups : (n + 1) * groups]
        above = np.array([float(one.p_above()[0]) for one in own])
        alone = np.array([p if one.usable[0] else 1.0 for p, one in zip(two_sided(above), own, strict=True)])
        rates = bonferroni_holm(alone) if options.joint else claim(alone, error).adjusted
        adjusted = np.minimum(1.0, rates * ((1 - level) / error))
        for g, one in enumerate(own):
            p_better = 1 - above[g] if turned != options.lower_is_better else above[g]
            claimed = bool(adjusted[g] <= 1 - level)
            low, high = (float(end[0]) for end in one.interval(level))
            ends = sorted((-low, -high) if turned else (low, high))
            found.append(
                Group(
                    by=cut.grouping.column,
                    value=cut.grouping.values[g],
                    rows=int(cut.rows[g]),
                    a=names[a],
                    b=names[b],
                    difference=float(-one.difference[0] if turned else one.difference[0]) + 0.0,
                    std_error=float(one.std_error[0]) if np.isfinite(one.std_error[0]) else None,
                    interval=Interval(*ends) if np.isfinite(ends).all() else None,
                    p_better=float(p_better),
                    p_adjusted=float(adjusted[g]),
                    verdict="cannot tell" if not claimed else "better" if p_better > 0.5 else "worse",
                    path=one.path[0],
                    reasons=() if claimed else (one.silent[0] or why_open(alone[g], rates[g], level, groups),),
                    claim_level=1 - error,
                    lower_is_better=options.lower_is_better,
                    belief=one,
                    turned=turned,
                )
            )
    return found


def bonferroni_holm(p: Floats) -> Floats:
    """P values adjusted so that all claims hold together (Holm).

    >>> bonferroni_holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def why_open(alone: float, at_once: float, level: float, groups: int) -> Fact:
    """Why a group about which a claim may be made is left undecided: alone, among all groups, or at this look."""
    if alone > 1 - level:
        return Fact("open")
    return Fact("open among groups", groups=groups) if at_once > 1 - level else Fact("open at this look")


def harmed(groups: Sequence[Group], pairs: Sequence[Pair]) -> tuple[Fact, ...]:
    """Groups in which a policy is worse than one that it outranks."""
    return tuple(
        Fact(
            "harm in group", a=g.a, b=g.b, by=g.by, value=g.value, difference=number(g.difference),
            p_worse=1 - g.p_better,
        )
        for g in groups
        if g.verdict == "worse" and any((p.a, p.b) == (g.a, g.b) and p.verdict != "worse" for p in pairs)
    )  # fmt: skip
