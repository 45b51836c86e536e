"""Every pair in rank order, with its interval, its verdict and why it is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from podium.comparison.analysis import Analysis
from podium.comparison.lifts import clear_values, lift_of
from podium.comparison.pair import Interval, Pair, within
from podium.data.columns import Floats
from podium.data.facts import Fact
from podium.verdicts.judge import JUDGES
from podium.verdicts.judgement import Judgement
from podium.verdicts.looks import parse_look, spend
from podium.verdicts.multiplicity import claim, claim_jointly, two_sided
from podium.verdicts.pairs import pair_indices


def arrange(analysis: Analysis, judgement: Judgement, order: Sequence[int]) -> tuple[Pair, ...]:
    """Every pair in rank order, with its verdict."""
    rows, options = analysis.rows, analysis.options
    names, level = rows.policies.names, options.level
    by_sample = np.full(len(judgement.path), not rows.whole and judgement.procedure in JUDGES)
    if judgement.every_row is not None:
        by_sample &= ~judgement.every_row
    p_above = judgement.p_above()
    p_value = np.where(judgement.usable, two_sided(p_above), 1.0)
    look = None if options.look is None else parse_look(options.look, len(rows))
    error = spend(look, level)
    claims = claim_jointly(p_value, judgement, error, options.seed) if options.joint else claim(p_value, error)
    adjusted = np.minimum(1.0, claims.adjusted * ((1 - level) / error))
    intervals = judgement.interval(level)
    deciding = judgement.interval(1 - claims.limit)
    index = {(int(i), int(j)): n for n, (i, j) in enumerate(zip(*pair_indices(len(order)), strict=True))}
    pairs = []
    for a, b in combinations(order, 2):
        turned = (a, b) not in index
        n = index[(b, a) if turned else (a, b)]
        flip = -1.0 if turned else 1.0
        p_better = 1 - float(p_above[n]) if turned != options.lower_is_better else float(p_above[n])
        claimed = bool(adjusted[n] <= 1 - level)
        pairs.append(
            Pair(
                a=names[a],
                b=names[b],
                difference=flip * float(judgement.difference[n]) + 0.0,  # no negative zero
                std_error=float(judgement.std_error[n]) if np.isfinite(judgement.std_error[n]) else None,
                interval=interval_of(intervals, n, flip),
                p_better=p_better,
                p_adjusted=float(adjusted[n]),
                verdict="cannot tell" if not claimed else "better" if p_better > 0.5 else "worse",
                path=judgement.path[n],
                source="sample" if by_sample[n] else "all rows",
                reasons=()
                if claimed
                else (judgement.silent[n] or why_open(p_value[n], claims.adjusted[n], level, len(index)),),
                adjusted=interval_of(deciding, n, flip),
                adjusted_level=1 - float(claims.limit[n]),
            )
        )
    return with_lifts(tuple(pairs), analysis)


def with_lifts(pairs: tuple[Pair, ...], analysis: Analysis) -> tuple[Pair, ...]:
    """The pairs with relative lifts, and with whether they are practically the same."""
    rows, options = analysis.rows, analysis.options
    scores = rows.policies.proxies or options.normalize != "rows"
    clear = [] if scores else clear_values(analysis.valued, options.level)
    values = dict(zip(rows.policies.names, clear, strict=False))
    found = []
    for p in pairs:
        same = within(p.interval, options.difference)
        said = (Fact("practically the same", difference=options.difference),) if same else ()
        lift = lift_of(p.difference, p.interval, values.get(p.b), p.path)
        found.append(replace(p, lift=lift, practically_the_same=same, reasons=(*p.reasons, *said)))
    return tuple(found)


def interval_of(intervals: tuple[Floats, Floats], n: int, flip: float) -> Interval | None:
    """The interval of pair n, turned round where `flip` is -1; None where nothing is known."""
    ends = sorted(flip * float(end[n]) for end in intervals)
    return Interval(*ends) if np.isfinite(ends).all() else None


def why_open(p_value: float, at_once: float, level: float, pairs: int) -> Fact:
    """Why a pair about which a claim may be made is left undecided: alone, among all pairs, or at this look."""
    if p_value > 1 - level:
        return Fact("open")
    return Fact("open among many", pairs=pairs) if at_once > 1 - level else Fact("open at this look")


def quarrels(pairs: Sequence[Pair]) -> tuple[Fact, ...]:
    """Verdicts that contradict the ranking."""
    worse = [p for p in pairs if p.verdict == "worse"]
    return tuple(Fact("verdict against ranking", a=p.a, b=p.b, p_better=p.p_better) for p in worse)


def add_bootstrap(pairs: tuple[Pair, ...], analysis: Analysis) -> tuple[Pair, ...]:
    """The pairs with percentile bootstrap intervals beside them."""
    low, high = analysis.resampled()
    if (costs := analysis.rows.policies.costs) is not None:
        known = costs.losses[None, :] - costs.losses[:, None]
        low, high = low + known, high + known
    place = {name: k for k, name in enumerate(analysis.rows.policies.names)}
    where = [(place[p.a], place[p.b]) for p in pairs]
    return tuple(
        replace(p, bootstrap=Interval(float(low[ij]), float(high[ij]))) for p, ij in zip(pairs, where, strict=True)
    )
