"""What a comparison rests on: estimates by every method on all rows, and a judge of pairs.

A log of up to 20,000 rows is judged whole. Above, and from 2,000 rows on where rewards are rare (clicks), there are
two sources of certainty: the ordinary judge, of a sample where the log is large, and doubly robust differences on
every row. Each pair is judged by the one whose error, after all floors, is smaller. Every row assumes less: it also
judges where the other source is silent, where the two contradict each other, and under an alarm unless its error is
far larger. Neither the policy that an answer favors nor the other pairs play a part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.comparison.state_columns import state_warnings
from podium.comparison.weights import weight_warnings
from podium.data.columns import Floats
from podium.data.copies import copied_rows
from podium.data.errors import PodiumError, count, listed, show_value
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows
from podium.estimates.bootstrap import percentiles
from podium.estimates.costs import all_net
from podium.estimates.estimators import ESTIMATORS, Estimator
from podium.estimates.evaluate import on_rows, value_table
from podium.estimates.methods import Method, complete, prepare, prepare_all, run, sample_terms
from podium.estimates.options import Options
from podium.estimates.results import MethodResult
from podium.estimates.terms import RowTerms
from podium.outputs.display import share
from podium.policies import PolicySet
from podium.policies.labels import folded
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.doubly_robust import judge_every_row, method_of
from podium.verdicts.judge import JUDGES, by_terms, judge, pick_procedure
from podium.verdicts.judgement import Judgement
from podium.verdicts.leaks import check_columns, silence_leaks
from podium.verdicts.pairs import pair_indices
from podium.verdicts.posterior import WHOLE_ROWS, policy_values
from podium.verdicts.recipes import folds_of, recipe_pairs, recipes_in, refuse_posterior, widening, with_recipes
from podium.verdicts.thin import rare_rewards
from podium.verdicts.unseen_weight import unseen_errors

FEW_STATES = 5
MOST_SHARES = 8  # actions whose share a note tells
# Two sound sources differ that much on a pair with this probability. On a log of 60,000 rows of each of 31 families,
# none of them held out (`experiments.calibration.long_logs`), it was 1e-5 or less on the two logs where the sample was
# misled, by a hidden cause and by actions without a row, and 0.2 or more on all others.
CONTRADICTION = 0.001
# Under an alarm, every row judges unless its errors are more than this many times those of the sample. On three logs of
# 20,001 rows of "500 states, seeker, ties", where the factor was 1.3 to 1.9, the sample made 19 wrong claims and every
# row none; on "100 x 100, heavy-tailed logger", where it was 1,000, the sample was right and every row could not tell.
ALARM_PRICE = 3.0


@dataclass(frozen=True, eq=False)
class Analysis:
    """A log and its policies, analyzed.

    Parameters
    ----------
    rows : the log, its policies and its sample
    options : what was asked for
    main : the method that scores, on all rows
    terms : its row terms on the sample
    values : policy -> method -> estimate
    unavailable : method -> why it cannot be used
    usual, obstacle : the procedure that judges the sample, and why it is not the posterior; nothing if it is
    every_row : the doubly robust method and what it found on all rows, where it can judge
    notes, warnings : what should be said
    valued : what DRE found on all rows, for lifts; None where it cannot be used
    """

    rows: Rows
    options: Options
    main: MethodResult
    terms: RowTerms
    values: Mapping[str, Mapping[str, float | None]]
    unavailable: Mapping[str, str]
    usual: str
    obstacle: str
    every_row: tuple[Method, MethodResult] | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    valued: MethodResult | None = None

    @cached_property
    def units(self) -> float:
        """What turns a difference of the main method's scores into units of reward, whatever the normalisation."""
        estimator, log, proxies = self.main.estimator, self.rows.sample, self.rows.policies.proxies
        factor = estimator.reward_units(self.rows.log.mean_choices, proxies)
        if self.options.normalize == "states" and estimator.is_score and not proxies:
            factor *= len(np.unique(log.state_codes[self.terms.rows])) / len(self.terms.rows)
        return factor

    def judged(self, procedure: str) -> Judgement:
        """What a procedure says of every pair."""
        rows = self.rows
        if procedure == EVERY_ROW:
            return self._by_every_row
        if procedure in JUDGES:
            return judge(rows.sample, rows.policies, procedure)
        return by_terms(rows.log.knows, rows.policies, self.main, self.units, procedure, self.options.seed)

    @cached_property
    def _by_every_row(self) -> Judgement:
        if self.every_row is None:
            raise PodiumError(
                "doubly robust verdicts need propensities that were logged, and policies that are probabilities",
                hint="leave verdicts out.",
            )
        return judge_every_row(self.rows, *self.every_row)

    @property
    def judgement(self) -> Judgement:
        """What is said of every pair; nothing where a state column seems to have been recorded after the action."""
        return self._alarmed[0]

    @property
    def alarms(self) -> tuple[Fact, ...]:
        """Warnings of such columns, and of verdicts that DRE contradicts."""
        return self._alarmed[1]

    @cached_property
    def _alarmed(self) -> tuple[Judgement, tuple[Fact, ...]]:
        sample = self.rows.sample
        if self.rows.contradiction:  # columns seem unbalanced where propensities are wrong
            return self.best_source, ()
        return silence_leaks(self.best_source, sample, self.rows.policies, check_columns(sample))

    @property
    def two_sources(self) -> bool:
        """Whether every row may judge a pair as well; of a small log it only ranks, where that is asked for."""
        return self.every_row is not None and has_two_sources(self.rows)

    @cached_property
    def best_source(self) -> Judgement:
        """What the procedure that was asked for, or the better of the two sources, says of every pair."""
        if self.options.verdicts is not None:
            found = self.judged(self.usual)
        elif recipe_pairs(self.rows.policies).all():
            found = self.held_out
        elif not self.two_sources:
            found = self.by_sample
        else:
            found = best_of(self._by_every_row, self.by_sample)
        if recipes_in(self.rows.policies):
            held_out = found if self.options.verdicts is not None else self.held_out
            found = with_recipes(found, held_out, self.rows.policies, folds_of(self.rows.sample))
        needed = self.usual in (EVERY_ROW, *JUDGES) or self.main.estimator.uses_propensity
        return unbelieved(found) if needed and self.rows.contradiction else found

    @property
    def held_out(self) -> Judgement:
        """What judges recipes: differences that are sums over rows, by DRE where propensities are known."""
        return self._gated if self.every_row is None else self._by_every_row

    @cached_property
    def _gated(self) -> Judgement:
        return self.judged("gated")

    @cached_property
    def by_sample(self) -> Judgement:
        """What the sample says of every pair; that of a large log with errors for actions it has no row of."""
        judged = self.judged(self.usual)
        if self.rows.whole:
            return judged
        floor = unseen_errors(self.rows.sample, self.rows.policies)
        return judged.with_errors(np.maximum(judged.std_error, floor))

    def resampled(self) -> tuple[Floats, Floats]:
        """Percentile intervals of all differences, in units of reward."""
        if self.main.pieces is None:
            raise ValueError("the analysis was made without pieces to resample")
        low, high = percentiles(self.main.pieces, self.options.bootstrap, self.options.level, self.options.seed)
        return self.units * low, self.units * high


def unbelieved(judgement: Judgement) -> Judgement:
    """The judgement without any claim: it rests on propensities that the log contradicts."""
    return replace(judgement, silent=(Fact("propensities not believed"),) * len(judgement.silent))


def best_of(every: Judgement, sample: Judgement) -> Judgement:
    """Each pair by the better of its two sources."""
    chosen = prefers(every, sample)
    if chosen.all() or not chosen.any():
        return every if chosen.any() else sample
    merged = sample.with_pairs_of(every, chosen)
    i, j = pair_indices(len(sample.values))
    values = sample.values.mean() + policy_values(merged.difference, i, j, len(sample.values))
    return replace(merged, values=values, assumes=f"{sample.assumes}; for pairs judged by DRE, {every.assumes}")


def prefers(every: Judgement, sample: Judgement) -> NDArray[np.bool_]:
    """(P,) whether doubly robust differences on every row are the better source, whichever policy they favor."""
    price = ALARM_PRICE if sample.alarm else 1.0
    with np.errstate(invalid="ignore"):
        smaller = every.std_error < price * sample.std_error
    return every.usable & (~sample.usable | contradict(every, sample) | smaller)


def contradict(every: Judgement, sample: Judgement) -> NDArray[np.bool_]:
    """(P,) whether the two sources differ by more than chance explains; the sample then misreads the log.

    The errors are those that the rows show: floors stand for what no row shows, and neither source can know that.
    """
    from scipy.special import stdtr

    both = every.usable & sample.usable
    errors = [source.std_error if source.empirical is None else source.empirical for source in (every, sample)]
    error, gap = np.hypot(*errors), np.abs(every.difference - sample.difference)
    z = np.divide(gap, error, out=np.zeros_like(gap), where=both & (error > 0))
    return np.asarray(both & (2 * stdtr(every.freedom, -z) < CONTRADICTION))


def analyze(log: Log | ScannedLog, policies: Any, method: Estimator, options: Options) -> Analysis:
    """Estimates on all rows, and a judge."""
    return on_rows(log, policies, options, partial(analyze_rows, method=method, options=options))


def analyze_rows(rows: Rows, method: Estimator, options: Options) -> Analysis:
    check_two(rows.policies)
    usual, obstacle = pick_procedure(rows.sample, rows.policies, options.verdicts)
    (scoring,) = complete(rows, [prepare(rows, method, options)])
    others, unavailable = prepare_all(rows, [e for e in ESTIMATORS.values() if e != method], options)
    methods = [replace(scoring, paired=True), *others]
    refuse_posterior(rows.policies, options.verdicts or str(options.estimator).lower())
    asked = EVERY_ROW in (usual, str(options.estimator).lower()) or bool(recipes_in(rows.policies))
    extra = method_of(rows, options.seed) if asked or has_two_sources(rows) else None
    resamples = bool(options.bootstrap) or usual not in (EVERY_ROW, *JUDGES)
    results = run(rows, [*methods, *([] if extra is None else [extra])], pieces=resamples, seed=options.seed)
    by_name = {m.estimator.name: result for m, result in zip(methods, results, strict=False)}
    main, found = results[0], all_net(by_name, rows)
    shown = list(dict.fromkeys([*ESTIMATORS, method.name]))
    return Analysis(
        rows=rows,
        options=options,
        main=main,
        terms=sample_terms(scoring, rows),
        values=value_table(rows.policies.names, shown, found),
        unavailable=unavailable,
        usual=usual,
        obstacle=obstacle,
        every_row=None if extra is None else (extra, results[-1]),
        notes=(*recipe_notes(rows), *fixed_shares(rows.sample), *thin_evidence(rows.sample, rows.policies)),
        warnings=(
            *cautions(main, rows.policies.names),
            *log_warnings(rows.sample, len(rows)),
            *rows.warnings,
            *weight_warnings(rows),
        ),
        valued=found.get("DRE"),
    )


def has_two_sources(rows: Rows) -> bool:
    """Whether a log is large, or its posterior combines blocks of rare rewards, which every row often beats."""
    rewards = rows.sample.rewards
    return not rows.whole or (len(rewards) > WHOLE_ROWS and len(rare_rewards(rewards)) < len(rewards))


def check_two(policies: PolicySet) -> None:
    if len(policies) < 2:
        raise PodiumError(
            f"a comparison needs at least two policies; there is {len(policies)}: {', '.join(policies.names)}",
            hint="add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
        )


# --- what should be said --------------------------------------------------------------------------------------------


def cautions(main: MethodResult, names: Sequence[str]) -> tuple[Fact, ...]:
    """What must be said when a method ranks that shrinks the policies' weights, or does without logged rewards."""
    if main.estimator.caution is None or main.removed is None:
        return () if main.estimator.caution is None else (main.estimator.caution,)
    most, least = int(main.removed.argmax()), int(main.removed.argmin())
    if main.removed[most] <= 0:
        return ()  # no weight is so large that it would shrink
    method, larger, smaller = main.estimator.name, share(float(main.removed[most])), share(float(main.removed[least]))
    if larger == smaller:
        return (Fact("shrinks evenly", method=method, share=larger),)
    return (
        Fact("shrinks unevenly", method=method, most=larger, policy=names[most], least=smaller, other=names[least]),
    )


def recipe_notes(rows: Rows) -> list[Fact]:
    """That a recipe is judged, and how."""
    names, folds = recipes_in(rows.policies), folds_of(rows.sample)
    return [Fact("recipes", policies=listed(names), folds=folds, factor=widening(folds))] if names else []


def fixed_shares(log: Log) -> list[Fact]:
    """That the whole behavior policy is known, where it takes each action with a fixed probability."""
    if not log.shares or log.behavior is None:
        return []
    shares = zip(log.action_space, log.behavior[0], strict=True)
    named = [f"{show_value(label)} {p:.3g}" for label, p in shares if p > 0]
    more = ", ..." if len(named) > MOST_SHARES else ""
    return [Fact("fixed shares", shares=", ".join(named[:MOST_SHARES]) + more)]


def thin_evidence(log: Log, policies: PolicySet) -> list[Fact]:
    """What the log is too thin for."""
    kept = log.latest
    silent = [p.name for p in policies if not p.proxy and not np.any(p.logged[kept] > 0)]
    possible = log.n_actions if log.eligible is None else int(log.eligible.any(axis=0).sum())
    unseen = possible - len(np.unique(log.action_codes))
    facts = [Fact("policy never logged", policy=name) for name in silent]
    if unseen:
        facts.append(Fact("actions never logged", actions=possible, unseen=unseen))
    if log.n_states < FEW_STATES:
        facts.append(Fact("few states", states=count(log.n_states, "state")))
    if 1 < log.n_states == len(kept) < len(log):
        facts.append(Fact("one action per state"))
    return facts


def log_warnings(log: Log, of: int = 0) -> tuple[Fact, ...]:
    """What looks wrong with a log, or with a sample of so many rows, before any policy is asked."""
    copies = copied_rows(log)
    copied = [Fact("copied rows", copies=copies, rows=len(log))] if copies else []
    return (*log.left_out, *copied, *state_warnings(log, of or len(log)), *similar_actions(log.action_space))


def similar_actions(space: Sequence[Any]) -> list[Fact]:
    """Actions that differ only by case or by spaces: the same one, perhaps, written in two ways."""
    first: dict[str, str] = {}
    found = []
    for label in (x for x in space if isinstance(x, str)):
        twin = first.setdefault(folded(label), label)
        if twin != label:
            found.append(Fact("similar actions", one=show_value(twin), other=show_value(label)))
    return found
