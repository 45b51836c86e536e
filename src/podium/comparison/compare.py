"""Compare policies (Section 3.1 of the paper): rank them by a surrogate, and judge every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from podium.comparison.analysis import Analysis, analyze, log_warnings
from podium.comparison.planning import Plan, make_plan
from podium.comparison.result import Basis, Comparison, Interval, Pair, Ranked
from podium.data.columns import tiers
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows
from podium.engines.sample import SAMPLE_ROWS
from podium.estimates.baselines import describe_baseline
from podium.estimates.estimate import DUPLICATES, NORMALIZE, TIE, check_choice, check_level, check_seed, engine_of
from podium.estimates.estimators import LDE, Estimator, find_estimator
from podium.verdicts.judgement import Judgement
from podium.verdicts.multiplicity import benjamini_hochberg, best_and_regret, joint_covariance, max_t, two_sided
from podium.verdicts.judge import JUDGES, why_no_posterior
from podium.verdicts.pairs import pair_indices

RANKERS = (*JUDGES, "doubly robust")  # what can rank besides the methods: procedures that give values of their own


def compare(
    log: Log | ScannedLog,
    policies: Any = None,
    estimator: str | Estimator | None = None,
    baseline: Any = "mean",
    level: float = 0.95,
    *,
    verdicts: str | None = None,
    normalize: str = "rows",
    duplicates: str | None = None,
    unit: str | None = None,
    lower_is_better: bool = False,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    joint: bool = False,
    bootstrap: int = 0,
    seed: int = 0,
    sample_rows: int = SAMPLE_ROWS,
) -> Comparison:
    """Rank policies from a log and judge every pair.

    Parameters
    ----------
    log : the logged interactions, in memory or scanned (`podium.scan_log`)
    policies : name -> policy in any form (see `podium.policies`); None for the log's own pi_ columns
    estimator : what ranks: "posterior", "gated", "LDE", "DRE", "IPS" or "DiM"; by default what judges the pairs, so
        that order and verdicts agree
    baseline : "mean", a number, "linear", "state", q(s, a), v(s), an object with fit/predict, or an array
    level : of the intervals and claims
    verdicts : the procedure that judges pairs: "posterior", "gated", "doubly robust", "paired t", "bootstrap t" or
        "sign flip"; by default the posterior where it can be used, else gated (see `podium.verdicts.judge`)
    normalize : "rows" for 1/N, "states" for the per-state form of the paper's Example 1
    duplicates : "latest" or "all" for every method; by default LDE and DiM keep the most recent row of a
        repeated (state, action), IPS and DRE every draw
    unit : a column whose rows depend on each other (one person, one device); errors are clustered by it
    lower_is_better : the reward is a cost
    behavior : the behaviour policy in any policy form, if the log does not hold it; "estimate" or
        "estimate:MODEL" estimates it (see `podium.estimate_propensities`)
    actions : the action space, in the order that (N, A) columns follow; it must hold every logged action
    joint : claims hold all together with probability `level` (max-T), not each in its share (Benjamini-Hochberg)
    bootstrap : draws of a paired percentile bootstrap of the method's differences, added to each pair
    seed : of folds, resampling and P(best)
    sample_rows : rows of a larger log that are looked at closely: certainty comes from them, or from all rows by a
        doubly robust estimate, whichever is surer (`podium.comparison.analysis`)

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2])
    >>> podium.compare(log, {"always a": "constant:a", "always b": "constant:b"}).ranking
    ['always a', 'always b']
    """
    judges = str(estimator).lower() in RANKERS  # ranked by the values that a procedure itself gives
    method = LDE if estimator is None or judges else find_estimator(estimator, RANKERS)
    check_level(level)
    if bootstrap < 0:
        raise PodiumError(f"bootstrap must be a number of draws; it is {bootstrap}", hint="use bootstrap=1000.")
    check_choice("normalize", normalize, NORMALIZE)
    check_choice("duplicates", duplicates, (None, *DUPLICATES))
    check_seed(seed)
    check_sample(sample_rows)
    analysis = analyze(
        log, policies, method, baseline, verdicts=verdicts, normalize=normalize, duplicates=duplicates,
        behavior=behavior, actions=actions, unit=unit, bootstrap=bootstrap, seed=seed, sample_rows=sample_rows,
    )  # fmt: skip
    rows, main, obstacle = analysis.rows, analysis.main, analysis.obstacle
    log, resolved, judgement = rows.log, rows.policies, analysis.judgement.without_noise()
    procedure = judgement.procedure
    ranker = procedure if estimator is None and procedure in RANKERS else method.name
    if judges:
        ranker = str(estimator).lower()
    if ranker == "posterior" and (why := why_no_posterior(rows.sample, resolved)):
        raise PodiumError(f"the posterior cannot rank: {why}", hint="use estimator='gated', or leave it out.")
    values, unavailable = analysis.values, analysis.unavailable

    scores, centred, tie = main.values, main.centred, TIE * main.scale
    for judge_name in RANKERS:
        if judge_name not in (procedure, ranker):
            continue
        found = judgement if judge_name == procedure else analysis.judged(judge_name)
        values = {name: {judge_name: float(found.values[k]), **values[name]} for k, name in enumerate(resolved.names)}
        if judge_name == ranker:
            scores, centred = found.values, found.values - found.values.mean()
            tie = 1e-9 * (float(np.abs(rows.sample.rewards).max()) or 1.0)
    if obstacle:
        unavailable = {"posterior": obstacle, **unavailable}

    sign = -1.0 if lower_is_better else 1.0
    order, ranks = rank_scores((sign * centred).tolist(), tie)
    source = "all rows" if rows.whole or procedure not in JUDGES else "sample"
    pairs = arrange(judgement, order, resolved.names, sign, level, joint, seed, source)
    if bootstrap:
        pairs = add_bootstrap(pairs, analysis, bootstrap, level)
    p_best, regret = best_and_regret(judgement, sign, seed)
    better = dict.fromkeys(resolved.names, 0)  # policies claimed better, and worse, than each
    worse = dict(better)
    for p in pairs:
        if p.verdict != "cannot tell":
            winner, loser = (p.a, p.b) if p.verdict == "better" else (p.b, p.a)
            worse[winner] += 1
            better[loser] += 1
    ranked = tuple(
        Ranked(
            name=resolved.names[k],
            rank=ranks[place],
            rank_low=1 + better[resolved.names[k]],
            rank_high=len(order) - worse[resolved.names[k]],
            score=float(scores[k]),
            p_best=float(p_best[k]),
            regret=float(regret[k]) if np.isfinite(regret[k]) else None,
            estimates=values[resolved.names[k]],
        )
        for place, k in enumerate(order)
    )
    settings = {
        "estimator": ranker,
        "baseline": describe_baseline(baseline),
        "level": float(level),
        "engine": engine_of(log),
        "verdicts": procedure,
        "assumes": judgement.assumes,
        "multiplicity": "all claims hold together (max-T)" if joint else "false claims limited (Benjamini-Hochberg)",
        "normalize": normalize,
        "duplicates": duplicates or "by method",
        "unit": log.header("unit") if rows.sample.units is not None else None,
        "lower_is_better": lower_is_better,
        "bootstrap": bootstrap,
        "seed": seed,
        "proxies": [p.name for p in resolved if p.proxy],
        "notes": [*judgement.notes, *analysis.notes, *sampled(rows, procedure)]
        + ([f"Judged by the {procedure} procedure: {obstacle}"] if obstacle else []),
    }
    basis = Basis(rows, judgement, main, analysis.sample_main, analysis.units)
    warnings = (*quarrels(pairs), *analysis.warnings)
    return Comparison(log, settings, ranked, pairs, unavailable, warnings, basis)


def check_sample(rows: Any) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 100:
        raise PodiumError(
            f"sample_rows must be a whole number from 100 on; it is {rows!r}", hint=f"use sample_rows={SAMPLE_ROWS}."
        )


def plan(log: Log | ScannedLog, policies: Any = None, *, difference: float, **options: Any) -> Plan:
    """Rows needed to decide a difference, what the log can detect now, and what to log more of.

    Parameters
    ----------
    difference : the smallest difference in reward that would matter; never the one observed
    options : those of `compare`
    """
    result = compare(log, policies, **options)
    assert result.basis is not None
    return make_plan(result, difference)


def retold(result: Comparison, notes: Sequence[str], log: Log) -> Comparison:
    """A comparison of rows that stand for something else, with notes on that.

    There every state is new, which is no sign of a mistake.
    """
    usual = log_warnings(log)
    settings = {**result.settings, "notes": [*notes, *result.settings["notes"]]}
    return replace(result, settings=settings, warnings=tuple(w for w in result.warnings if w not in usual))


def rank_scores(scores: Sequence[float], tie: float) -> tuple[list[int], list[int]]:
    """Which score comes at each place, best first, and the rank of each place.

    Scores at most `tie` apart are equal: they share a rank and keep the order in which they were given.

    >>> rank_scores([2.0, 1.0, 3.0, 2.1], tie=0.2)
    ([2, 0, 3, 1], [1, 2, 2, 4])
    """
    found = tiers(np.asarray(scores, dtype=np.float64), tie)
    in_order = np.sort(found)
    ranks = np.searchsorted(in_order, in_order) + 1
    return np.argsort(found, kind="stable").tolist(), ranks.tolist()


def sampled(rows: Rows, procedure: str) -> list[str]:
    """Where the numbers of a large log come from."""
    if rows.whole:
        return []
    shown = f"a random sample of {len(rows.sample):,} of the {len(rows):,} rows"
    if procedure in JUDGES:
        return [f"Values come from all rows, certainty and what drives it from {shown}"]
    return [f"Values and certainty come from all rows, what drives them from {shown}"]


def arrange(
    judgement: Judgement,
    order: Sequence[int],
    names: Sequence[str],
    sign: float,
    level: float,
    joint: bool,
    seed: int,
    source: str,
) -> tuple[Pair, ...]:
    """Every pair in rank order, with its verdict."""
    p_above = judgement.p_above()
    p_value = np.where(judgement.usable, two_sided(p_above), 1.0)
    adjusted = max_t(p_value, joint_covariance(judgement), seed) if joint else benjamini_hochberg(p_value)
    low, high = judgement.interval(level)
    index = {(int(i), int(j)): n for n, (i, j) in enumerate(zip(*pair_indices(len(order)), strict=True))}
    pairs = []
    for a, b in combinations(order, 2):
        turned = (a, b) not in index
        n = index[(b, a) if turned else (a, b)]
        flip = -1.0 if turned else 1.0
        difference, p_better = flip * float(judgement.difference[n]), float(p_above[n])
        p_better = 1 - p_better if turned != (sign < 0) else p_better
        claim = adjusted[n] <= 1 - level
        interval = None
        if np.isfinite(low[n]):
            ends = (flip * float(low[n]), flip * float(high[n]))
            interval = Interval(min(ends), max(ends))
        pairs.append(
            Pair(
                a=names[a],
                b=names[b],
                difference=difference + 0.0,  # no negative zero
                std_error=float(judgement.std_error[n]) if np.isfinite(judgement.std_error[n]) else None,
                interval=interval,
                p_better=p_better,
                p_adjusted=float(adjusted[n]),
                verdict="cannot tell" if not claim else "better" if p_better > 0.5 else "worse",
                path=judgement.path[n],
                source=source,
                reasons=() if claim else (judgement.silent[n] or why_open(float(p_value[n]), level, len(p_value)),),
            )
        )
    return tuple(pairs)


def why_open(p_value: float, level: float, pairs: int) -> str:
    """Why a pair about which a claim may be made is left undecided."""
    if p_value <= 1 - level:
        return f"Sure enough alone, but not among {pairs} pairs judged together"
    return "The interval includes 0: the sign of the difference is open"


def quarrels(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Verdicts that contradict the ranking."""
    return tuple(
        f"{p.a} ranks above {p.b}, but the verdict is that it is worse (P(better) = {p.p_better:.3f})."
        for p in pairs
        if p.verdict == "worse"
    )


def add_bootstrap(pairs: tuple[Pair, ...], analysis: Analysis, draws: int, level: float) -> tuple[Pair, ...]:
    """The pairs with percentile bootstrap intervals beside them."""
    low, high = analysis.resampled(draws, level)
    place = {name: k for k, name in enumerate(analysis.rows.policies.names)}
    units = analysis.units
    return tuple(
        replace(
            p,
            bootstrap=Interval(units * float(low[place[p.a], place[p.b]]), units * float(high[place[p.a], place[p.b]])),
        )
        for p in pairs
    )
