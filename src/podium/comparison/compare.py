"""Compare policies (Section 3.1 of the paper): rank them by a surrogate, and judge every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from podium.comparison.analysis import Analysis, analyze
from podium.comparison.arranged import add_bootstrap, arrange, quarrels
from podium.comparison.basis import Basis
from podium.comparison.by_group import check_by, find_groups, harmed
from podium.comparison.outcomes import asked_beside, header_notes, of_outcome
from podium.comparison.pair import Pair
from podium.comparison.planning import Plan, make_plan
from podium.comparison.result import Comparison
from podium.comparison.settings import Ranked, Settings
from podium.comparison.state_columns import state_warnings
from podium.data.columns import Floats, tiers
from podium.data.errors import PodiumError
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scales import noise_of
from podium.data.scan import ScannedLog
from podium.data.warned import warn_caller
from podium.engines.outcomes import beside_states, with_worth
from podium.engines.rows import Rows
from podium.engines.sample import SAMPLE_ROWS
from podium.estimates.baselines import describe_baseline, learned
from podium.estimates.costs import net
from podium.estimates.estimators import LDE, Estimator, find_estimator
from podium.estimates.options import OUTCOMES, Options
from podium.estimates.results import TIE
from podium.policies import same_policies
from podium.verdicts.judge import JUDGES, why_no_posterior
from podium.verdicts.judgement import Judgement
from podium.verdicts.known_costs import with_costs
from podium.verdicts.looks import parse_look, spend
from podium.verdicts.multiplicity import best_and_regret, rule_text
from podium.verdicts.recipes import recipes_in

COMPARE = tuple(field.name for field in fields(Options) if field.name not in OUTCOMES)  # what its siblings take too
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
    look: str | tuple[int, int] | None = None,
    action_features: Any = None,
    cost: Any = None,
    by: str | Sequence[str] = (),
    also: Any = (),
    worth: Any = (),
    difference: float | None = None,
    since: Any = None,
) -> Comparison:
    """Rank policies from a log and judge every pair.

    Parameters
    ----------
    log : the logged interactions, in memory or scanned (`podium.scan_log`)
    policies : name -> policy in any form (see `podium.policies`); None for the log's own pi_ columns
    estimator : what ranks: "posterior", "gated", "LDE", "DRE", "IPS" or "DiM"; by default what judges the pairs
    baseline : "mean", a number, "linear", "state", q(s, a), v(s), an object with fit/predict, or an array
    level : of the intervals and claims
    verdicts : the procedure that judges pairs: "posterior", "gated", "doubly robust", "paired t", "bootstrap t" or
        "sign flip"; by default the posterior where it can be used, else gated (see `podium.verdicts.judge`)
    normalize : "rows" for 1/N, "states" for the per-state form of the paper's Example 1
    duplicates : "latest" or "all"; by default LDE and DiM keep the latest row of a (state, action), IPS and DRE all
    unit : a column whose rows depend on each other (one person, one device); errors are clustered by it
    lower_is_better : the reward is a cost
    behavior : the behaviour policy in any policy form, if the log does not hold it; "estimate" or
        "estimate:MODEL" estimates it (see `podium.estimate_propensities`)
    actions : the action space, in the order that (N, A) columns follow; it must hold every logged action
    joint : all claims hold together with probability `level` (max-T)
    bootstrap : draws of a paired percentile bootstrap of the method's differences, added to each pair
    seed : of folds, resampling and P(best)
    sample_rows : rows of a larger log that are looked at closely: certainty comes from them, or from all rows by a
        doubly robust estimate, whichever is surer (`podium.comparison.analysis`)
    look : which of the planned looks at a growing log this is: "3/16" or (3, 16) for the third of 16 equally spaced
        ones, "rows:3200" where looks go on until the log has 3,200 rows; claims and gates of all looks together then
        keep `level` (see `podium.verdicts.looks`)
    action_features : one row per action (price, category, embedding), so that alike actions inform each other: a path,
        a frame whose first column or whose column `action` names the actions, or a dict from action to features
    cost : known costs, subtracted from every value exactly (added where lower is better): {"call": 2.5}, actions that
        are not named cost 0; "column:price" for a column of the action features, for columns `price:<action>` of the
        log, or for a column of the log that always holds the same cost of an action; a list of such texts adds them up
    by : columns whose groups are judged too: "device" by values, "age" in four ranges, "age:40,65" with these cuts
    also : further outcomes, columns that are never state: ["visits", "cost:lower"], where lower is better
    worth : what outcomes are worth in units of the reward, {"cost": -0.2}: rows count as reward + W x outcome
    difference : the smallest difference that matters; pairs within it are practically the same
    since : only rows from this time on: a number or a date, as the log's times are

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2])
    >>> podium.compare(log, {"always a": "constant:a", "always b": "constant:b"}).ranking
    ['always a', 'always b']
    """
    options = Options(
        estimator, baseline, level, verdicts, normalize, duplicates, unit, lower_is_better, behavior, actions, joint,
        bootstrap, seed, sample_rows, look, action_features, cost, by, also, worth, difference, since,
    )  # fmt: skip
    result = compare_with(log, policies, options)
    warn_caller(result.warnings)
    return result


def compare_with(log: Log | ScannedLog, policies: Any, options: Options) -> Comparison:
    """The comparison that some options ask for."""
    judges = str(options.estimator).lower() in RANKERS  # ranked by the values that a procedure itself gives
    method = LDE if options.estimator is None or judges else find_estimator(options.estimator, RANKERS)
    log = beside_states(log, [outcome.column for outcome in options.outcomes])
    check_by(log, options)
    reward = log.header("reward")
    analysis = analyze(with_worth(log, options.worth) if options.worth else log, policies, method, options)
    ranker = str(options.estimator).lower() if judges else None
    found = replace(analysis, notes=(*header_notes(options, reward), *analysis.notes))
    result = compared(found, ranker)
    beside = asked_beside(options, reward)
    others = {o.column: compared(of_outcome(analysis, method, o), ranker) for o in beside}
    return replace(result, outcomes=others)


def compared(analysis: Analysis, asked: str | None) -> Comparison:
    """The comparison that an analysis allows; `asked` is the procedure that ranks, where one was asked for."""
    rows, options, costs = analysis.rows, analysis.options, analysis.rows.policies.costs
    judgement = analysis.judgement.without_noise()
    same = costs is not None and same_rewards(rows)
    if costs is not None:
        judgement = with_costs(judgement, costs.losses, same)
    ranking = rank(analysis, judgement, asked)
    sign = -1.0 if options.lower_is_better else 1.0
    order, ranks = rank_scores((sign * ranking.centred).tolist(), ranking.tie)
    pairs = arrange(analysis, judgement, order)
    if options.bootstrap:
        pairs = add_bootstrap(pairs, analysis)
    groups, notes = find_groups(analysis, judgement, order, options, same)
    unavailable = analysis.unavailable
    if analysis.obstacle:
        unavailable = {"posterior": analysis.obstacle, **unavailable}
    ranked = ranked_policies(ranking, judgement, pairs, order, ranks, rows, options)
    if any(p.p_best is None for p in ranked):
        unavailable = {**unavailable, "P(best)": Fact("best unknown")}
    basis = Basis(rows, judgement, analysis.main, analysis.terms, analysis.units, options, analysis.valued)
    said = (*quarrels(pairs), *harmed(groups, pairs), *costs_alone(judgement))
    drifted = () if basis.drift is None else basis.drift.facts
    return Comparison(
        log=rows.log,
        settings=settings_of(analysis, judgement, ranking.by, notes),
        policies=ranked,
        pairs=pairs,
        unavailable=unavailable,
        warnings=(*analysis.alarms, *said, *analysis.warnings, *drifted),
        basis=basis,
        groups=groups,
    )


@dataclass(frozen=True, eq=False)
class Scores:
    """What ranks: `by` a method or a procedure, with the scores (K,), also centred, and how near they may be to tie."""

    by: str
    scores: Floats
    centred: Floats
    tie: float
    values: Mapping[str, Mapping[str, float | None]]  # policy -> method or procedure -> estimate


def rank(analysis: Analysis, judgement: Judgement, asked: str | None) -> Scores:
    """The scores that rank: those of the procedure that judges, unless another procedure or a method is asked for."""
    rows, main, procedure = analysis.rows, analysis.main, judgement.procedure
    by = asked or (procedure if analysis.options.estimator is None and procedure in RANKERS else main.estimator.name)
    if by == "posterior" and (why := why_no_posterior(rows.sample, rows.policies)):
        raise PodiumError(f"the posterior cannot rank: {why}", hint="use estimator='gated', or leave it out.")
    main = net(main, rows.policies, rows.log.mean_choices)
    losses = 0.0 if rows.policies.costs is None else rows.policies.costs.losses
    found = Scores(by, main.values, main.centred, TIE * main.scale, analysis.values)
    for name in (n for n in RANKERS if n in (procedure, by)):
        own = judgement.values if name == procedure else analysis.judged(name).values - losses
        places = enumerate(rows.policies.names)
        found = replace(found, values={p: {name: float(own[k]), **found.values[p]} for k, p in places})
        if name == by:
            found = replace(found, scores=own, centred=own - own.mean(), tie=noise_of(rows.sample.rewards))
    return found


def ranked_policies(
    ranking: Scores,
    judgement: Judgement,
    pairs: Sequence[Pair],
    order: Sequence[int],
    ranks: Sequence[int],
    rows: Rows,
    options: Options,
) -> tuple[Ranked, ...]:
    """The policies, best first, with the ranks that the claims leave possible."""
    costs = None if rows.policies.costs is None else rows.policies.costs.means
    names, same = rows.policies.names, same_policies(rows.policies, rows.sample.n_actions)
    p_best, regret = best_and_regret(judgement, -1.0 if options.lower_is_better else 1.0, options.seed, same)
    claims = [(p.a, p.b) if p.verdict == "better" else (p.b, p.a) for p in pairs if p.verdict != "cannot tell"]
    beaten, beats = Counter(loser for _, loser in claims), Counter(winner for winner, _ in claims)
    return tuple(
        Ranked(
            name=names[k],
            rank=ranks[place],
            rank_low=1 + beaten[names[k]],
            rank_high=len(order) - beats[names[k]],
            score=float(ranking.scores[k]),
            p_best=float(p_best[k]) if np.isfinite(p_best[k]) else None,
            regret=float(regret[k]) if np.isfinite(regret[k]) else None,
            estimates=ranking.values[names[k]],
            cost=None if costs is None else float(costs[k]),
        )
        for place, k in enumerate(order)
    )


def settings_of(analysis: Analysis, judgement: Judgement, ranker: str, more: Sequence[Fact]) -> Settings:
    """How a comparison was made; `more` are notes on its groups."""
    rows, options = analysis.rows, analysis.options
    notes = [*judgement.notes, *analysis.notes, *sources(analysis, judgement), *known_facts(analysis, judgement)]
    notes += more
    if analysis.obstacle:
        notes.append(Fact("procedure", procedure=judgement.procedure, why=analysis.obstacle))
    look = None if options.look is None else parse_look(options.look, len(rows))
    if look is not None:
        needed = 1 - spend(look, options.level)
        notes.append(Fact("look", number=look.number, of=look.of, needed=needed, level=options.level))
    return Settings(
        estimator=ranker,
        baseline=describe_baseline(options.baseline),
        level=float(options.level),
        engine=rows.sample.engine,
        verdicts=judgement.procedure,
        assumes=judgement.assumes,
        multiplicity=rule_text(spend(look, options.level), options.joint),
        normalize=options.normalize,
        duplicates=options.duplicates or "by method",
        unit=rows.log.header("unit") if rows.sample.units is not None else None,
        lower_is_better=options.lower_is_better,
        bootstrap=options.bootstrap,
        seed=options.seed,
        proxies=tuple(p.name for p in rows.policies if p.proxy),
        notes=tuple(notes),
        look=options.look,
        look_level=None if look is None else 1 - spend(look, options.level),
        costs=None if rows.policies.costs is None else rows.policies.costs.to_dict(),
        action_features=None if rows.sample.action_features is None else rows.sample.action_features.names,
        recipes=recipes_in(rows.policies) or None,
        by=tuple(options.by) or None,
        worth=dict(options.worth) or None,
        difference=options.difference,
    )


def known_facts(analysis: Analysis, judgement: Judgement) -> list[Fact]:
    """What the header says of known costs, and of features of the actions."""
    costs, features = analysis.rows.policies.costs, analysis.rows.sample.action_features
    facts = [] if costs is None else [costs.note()]
    if features is None:
        return facts
    learns = analysis.every_row is not None or learned(analysis.options.baseline)
    if judgement.procedure != "posterior" and learns:
        facts.append(Fact("action features", columns=features.described()))
    elif judgement.procedure != "posterior":
        why = f"the {judgement.procedure} procedure has no model of the actions"
        facts.append(Fact("action features unused", columns=features.described(), why=why))
    ignored = [Fact("action features ignored", columns=", ".join(features.ignored))] if features.ignored else []
    return [*facts, *ignored]


def same_rewards(rows: Rows) -> bool:
    """Whether every row of the log has the same reward."""
    facts = rows.source.facts()
    return facts.low == facts.high


def costs_alone(judgement: Judgement) -> list[Fact]:
    return [Fact("costs alone")] if judgement.certain.any() else []


def plan(log: Log | ScannedLog, policies: Any = None, *, difference: float, **options: Any) -> Plan:
    """Rows needed to decide a difference, what the log can detect now, and what to log more of.

    Parameters
    ----------
    difference : the smallest difference in reward that would matter; never the one observed
    options : those of `compare`
    """
    return make_plan(compare_with(log, policies, Options.of(COMPARE, options)), difference)


def retold(result: Comparison, notes: Sequence[str], log: Log) -> Comparison:
    """A comparison of rows that stand for something else, with notes on that.

    There every state is new, which is no sign of a mistake.
    """
    usual = state_warnings(log, len(log))
    settings = replace(result.settings, notes=(*notes, *result.settings.notes))
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


def sources(analysis: Analysis, judgement: Judgement) -> list[Fact]:
    """Where the numbers of a long log come from."""
    rows, pairs = analysis.rows, len(judgement.path)
    if not rows.whole:
        code = "sample judges" if judgement.procedure in JUDGES else "all rows judge"
        return [Fact(code, rows=len(rows.sample), of=len(rows))]
    if not analysis.two_sources or analysis.options.verdicts is not None:
        return []
    by_rows = pairs if judgement.procedure not in JUDGES else 0
    if judgement.every_row is not None:
        by_rows = int(judgement.every_row.sum())
    return [Fact("DRE judges", pairs=by_rows, of=pairs)] if by_rows else []
