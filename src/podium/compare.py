"""Compare policies (Section 3.1 of the paper): rank them by a surrogate, and judge every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from podium.baselines import describe_baseline
from podium.bootstrap import bootstrap_differences
from podium.comparison import Comparison, Interval, Pair, Ranked
from podium.errors import PodiumError
from podium.estimate import (
    DUPLICATES,
    NORMALIZE,
    TIE,
    MethodResult,
    check_choice,
    check_seed,
    prepare,
    row_terms,
    run_method,
    try_methods,
    value_table,
)
from podium.estimators import ESTIMATORS, Estimator, find_estimator
from podium.log import Log
from podium.verdicts import PROCEDURE, Verdicts, paired_t, probability_best


def compare(
    log: Log,
    policies: Any = None,
    estimator: str | Estimator = "LDE",
    baseline: Any = "mean",
    level: float = 0.95,
    *,
    normalize: str = "rows",
    duplicates: str | None = None,
    unit: str | None = None,
    lower_is_better: bool = False,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    joint: bool = False,
    bootstrap: int = 0,
    seed: int = 0,
) -> Comparison:
    """Rank policies from a log and judge every pair.

    Parameters
    ----------
    log : the logged interactions
    policies : name -> policy in any form (see `podium.policies`); None for the log's own pi_ columns
    estimator : the method that ranks: "LDE", "DRE", "IPS" or "DiM"
    baseline : "mean", a number, "linear", "state", q(s, a), v(s), an object with fit/predict, or an array
    level : of the intervals and claims
    normalize : "rows" for 1/N, "states" for the per-state form of the paper's Example 1
    duplicates : "latest" or "all" for every method; by default LDE and DiM keep the most recent row of a
        repeated (state, action), IPS and DRE every draw
    unit : a column whose rows depend on each other (one person, one device); errors are clustered by it
    lower_is_better : the reward is a cost
    behavior : the behaviour policy in any policy form, if the log does not hold it
    actions : the action space, in the order that (N, A) columns follow; it must hold every logged action
    joint : claims hold all together with probability `level` (Holm), not each in its share (Benjamini-Hochberg)
    bootstrap : draws of a paired percentile bootstrap, added to each pair
    seed : of folds, bootstrap and P(best)

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2])
    >>> podium.compare(log, {"always a": "constant:a", "always b": "constant:b"}).ranking
    ['always a', 'always b']
    """
    method = find_estimator(estimator)
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise PodiumError(f"level must lie between 0 and 1; it is {level!r}", hint="use level=0.95 for 95% intervals.")
    if bootstrap < 0:
        raise PodiumError(f"bootstrap must be a number of draws; it is {bootstrap}", hint="use bootstrap=1000.")
    check_choice("normalize", normalize, NORMALIZE)
    check_choice("duplicates", duplicates, (None, *DUPLICATES))
    check_seed(seed)
    log, resolved = prepare(log, policies, behavior, actions, unit)
    if len(resolved) < 2:
        raise PodiumError(
            f"a comparison needs at least two policies; there is {len(resolved)}: {', '.join(resolved.names)}",
            hint="add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
        )
    options: dict[str, Any] = {"normalize": normalize, "duplicates": duplicates, "seed": seed}
    main = run_method(row_terms(log, resolved, method, baseline, **options))
    others = [e for e in ESTIMATORS.values() if e != method]
    results, unavailable = try_methods(log, resolved, others, baseline, **options)
    results[method.name] = main
    values = value_table(resolved.names, list(ESTIMATORS), results)

    sign = -1.0 if lower_is_better else 1.0
    order, ranks = rank_scores((sign * main.centred).tolist(), TIE * main.scale)
    units = unit_factor(main, log, normalize)
    pairs, claims = judge(main, order, ranks, resolved.names, units, sign, level, joint)
    if bootstrap:
        pairs = add_bootstrap(pairs, main, resolved.names, units, bootstrap, level, seed)
    p_best = probability_best(main.values, main.covariance, sign, seed)
    ranked = tuple(
        Ranked(
            name=resolved.names[k],
            rank=ranks[place],
            rank_low=1 + sum(claims[(other, place)] for other in range(len(order)) if other < place),
            rank_high=len(order) - sum(claims[(place, other)] for other in range(len(order)) if other > place),
            score=float(main.values[k]),
            p_best=float(p_best[k]),
            estimates=values[resolved.names[k]],
        )
        for place, k in enumerate(order)
    )
    settings = {
        "estimator": method.name,
        "assumes": method.assumes,
        "baseline": describe_baseline(baseline),
        "level": float(level),
        "engine": "memory",
        "verdicts": PROCEDURE,
        "multiplicity": "all claims together (Holm)" if joint else "share of false claims (Benjamini-Hochberg)",
        "normalize": normalize,
        "duplicates": duplicates or "by method",
        "unit": None if log.units is None else log.header("unit"),
        "lower_is_better": lower_is_better,
        "bootstrap": bootstrap,
        "seed": seed,
        "proxies": [p.name for p in resolved if p.proxy],
    }
    return Comparison(log, settings, ranked, pairs, unavailable, (*log_warnings(log), *resolved.warnings))


def rank_scores(scores: Sequence[float], tie: float) -> tuple[list[int], list[int]]:
    """Which score comes at each place, best first, and the rank of each place.

    Scores at most `tie` apart are equal: they share a rank and keep the order in which they were given.

    >>> rank_scores([2.0, 1.0, 3.0, 2.1], tie=0.2)
    ([2, 0, 3, 1], [1, 2, 2, 4])
    """
    order = sorted(range(len(scores)), key=lambda k: -scores[k])
    ranks: list[int] = []
    for place, k in enumerate(order):
        equal = place > 0 and scores[order[place - 1]] - scores[k] <= tie
        ranks.append(ranks[-1] if equal else place + 1)
    rank_of = dict(zip(order, ranks, strict=True))
    return sorted(rank_of, key=lambda k: (rank_of[k], k)), ranks


def unit_factor(main: MethodResult, log: Log, normalize: str) -> float:
    """What turns a difference of scores into units of reward, whatever the normalisation."""
    factor = main.estimator.reward_units(log.n_actions)
    if normalize == "states" and not main.estimator.uses_propensity:
        factor *= len(np.unique(log.state_codes[main.terms.rows])) / main.rows
    return factor


def judge(
    main: MethodResult,
    order: Sequence[int],
    ranks: Sequence[int],
    names: Sequence[str],
    units: float,
    sign: float,
    level: float,
    joint: bool,
) -> tuple[tuple[Pair, ...], dict[tuple[int, int], bool]]:
    """Every pair in rank order, and which of them are claims (by place in the ranking)."""
    places = list(combinations(range(len(order)), 2))
    i, j = (np.array([order[pair[side]] for pair in places]) for side in (0, 1))
    difference, error = units * main.difference[i, j], units * main.std_error[i, j]
    equal = np.array([ranks[a] == ranks[b] for a, b in places])
    flat = error * np.sqrt(main.samples) <= units * TIE * main.scale  # a spread of rounding alone is none
    error[flat], difference[flat & equal] = 0.0, 0.0
    v = paired_t(difference, error, main.samples, level, joint)
    pairs, claims = [], {}
    for n, (a, b) in enumerate(places):
        claims[a, b] = bool(v.claim[n])
        p_better = float(v.p_better[n]) if sign > 0 else 1 - float(v.p_better[n])
        verdict = "cannot tell" if not v.claim[n] else "better" if sign * difference[n] > 0 else "worse"
        known = np.isfinite(v.low[n])
        pairs.append(
            Pair(
                a=names[order[a]],
                b=names[order[b]],
                difference=float(difference[n]),
                std_error=float(error[n]) if np.isfinite(error[n]) else None,
                interval=Interval(float(v.low[n]), float(v.high[n])) if known else None,
                p_better=p_better,
                p_adjusted=float(v.p_adjusted[n]),
                verdict=verdict,
                path=main.estimator.name,
                reasons=() if v.claim[n] else why_not(v, n, bool(equal[n]), level, main.samples),
            )
        )
    return tuple(pairs), claims


def why_not(v: Verdicts, n: int, equal: bool, level: float, samples: int) -> tuple[str, ...]:
    """Why a pair is left undecided."""
    if samples < 2:
        return ("A single row (or unit) shows no spread to judge a difference by",)
    if not np.isfinite(v.low[n]):
        if equal:
            return ("Policies with equal scores cannot be told apart",)
        return ("Every row gives the same difference, so there is no spread to judge it by",)
    if v.p_value[n] <= 1 - level:
        return (f"An interval without 0 is no claim where it does not hold up among {len(v.p_value)} pairs",)
    return ("An interval that includes 0 leaves the sign of the difference open",)


def add_bootstrap(
    pairs: tuple[Pair, ...],
    main: MethodResult,
    names: Sequence[str],
    units: float,
    draws: int,
    level: float,
    seed: int,
) -> tuple[Pair, ...]:
    """The pairs with percentile bootstrap intervals beside them."""
    low, high = bootstrap_differences(main.terms, draws, level, seed)
    place = {name: k for k, name in enumerate(names)}
    return tuple(
        replace(
            p,
            bootstrap=Interval(units * float(low[place[p.a], place[p.b]]), units * float(high[place[p.a], place[p.b]])),
        )
        for p in pairs
    )


def log_warnings(log: Log) -> tuple[str, ...]:
    """What looks wrong with a log before any policy is asked."""
    if 1 < len(log) == log.n_states:
        names = ", ".join(log.state_columns)
        return (f"every row has a state of its own; is an id or a time among the state columns ({names})?",)
    return ()
