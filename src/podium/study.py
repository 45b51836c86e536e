"""What a comparison rests on: estimates by every method on all rows, and a judge of pairs.

A log of up to 20,000 rows is judged whole. Above, there are two sources of certainty, and one of them serves the whole
comparison: the ordinary judge on the sample, and doubly robust differences on every row. It is the one whose errors,
after all floors, are smaller on average over the pairs. Every row assumes less: it also judges where the sample is
silent, where the two contradict each other, and under an alarm unless its errors are far larger. Which policies an
answer favors plays no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from podium.baselines import KnownAverages, take_baseline
from podium.bootstrap import bootstrap_differences, percentiles
from podium.columns import Floats
from podium.display import share
from podium.engines.rows import Rows, WholeRows, open_rows
from podium.engines.sample import SAMPLE_ROWS
from podium.errors import PodiumError, Unavailable, count
from podium.estimate import MethodResult, run_method, value_table
from podium.estimators import ESTIMATORS, Estimator
from podium.log import Log
from podium.passes import Method, Wanted, near_pairs, ready_methods, run_methods, run_pass
from podium.policies import PolicySet
from podium.policies.drafts import Policy
from podium.scan import ScannedLog
from podium.terms import WeightSums, row_terms
from podium.verdicts import Judgement
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.doubly_robust import judge_every_row, method_of
from podium.verdicts.judge import JUDGES, by_terms, judge, pick_procedure
from podium.verdicts.unseen import unseen_errors

FEW_STATES = 5
# Two sound sources differ that much on any pair with this probability. On a log of 60,000 rows of each of 31 families,
# none of them held out (podium.calibration.long_logs), it was 1e-5 or less on the two logs where the sample was misled,
# by a hidden cause and by actions without a row, and 0.2 or more on all others.
CONTRADICTION = 0.01
# Under an alarm, every row judges unless its errors are more than this many times those of the sample. On three logs of
# 20,001 rows of "500 states, seeker, ties", where the factor was 1.3 to 1.9, the sample made 19 wrong claims and every
# row none; on "100 x 100, heavy-tailed logger", where it was 1,000, the sample was right and every row could not tell.
ALARM_PRICE = 3.0


@dataclass(frozen=True, eq=False)
class Study:
    """A log and its policies, examined.

    Parameters
    ----------
    rows : the log, its policies and its sample
    main : the method that scores, on all rows
    sample_main : the same on the sample, with its row terms
    values : policy -> method -> estimate
    unavailable : method -> why it cannot be used
    units : turns differences of the main method's scores into rewards
    obstacle : why the posterior cannot judge; nothing if it can
    every_row : the doubly robust method, what it found on all rows, and the sums of its weights, where it can judge
    verdicts : the procedure that was asked for by name
    notes, warnings : what should be said
    """

    rows: Rows
    main: MethodResult
    sample_main: MethodResult
    values: Mapping[str, Mapping[str, float | None]]
    unavailable: Mapping[str, str]
    units: float
    usual: str
    obstacle: str
    every_row: tuple[Method, MethodResult, WeightSums] | None
    verdicts: str | None
    seed: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def judged(self, procedure: str) -> Judgement:
        """What a procedure says of every pair."""
        rows = self.rows
        if procedure == EVERY_ROW:
            return self._by_every_row
        if procedure in JUDGES:
            return judge(rows.sample, rows.policies, procedure, self.sample_main, self.units, self.seed)
        return by_terms(rows.log.knows, rows.policies, self.main, self.units, procedure, self.seed)

    @cached_property
    def _by_every_row(self) -> Judgement:
        if self.every_row is None:
            raise PodiumError(
                "doubly robust verdicts need propensities that were logged, and policies that are probabilities",
                hint="leave verdicts out.",
            )
        return judge_every_row(self.rows, *self.every_row)

    @cached_property
    def judgement(self) -> Judgement:
        """What is said of every pair, by the procedure that was asked for or by the better of the two sources."""
        if self.verdicts is not None or self.rows.whole:
            return self.judged(self.usual)
        sample = self.by_sample
        return self._by_every_row if self.every_row is not None and prefers(self._by_every_row, sample) else sample

    @cached_property
    def by_sample(self) -> Judgement:
        """What the sample of a large log says of every pair, with errors that allow for actions it has no row of."""
        judged = self.judged(self.usual)
        floor = unseen_errors(self.rows.sample, self.rows.policies)
        figures = {**judged.figures, "empirical": judged.std_error}
        return replace(judged, std_error=np.maximum(judged.std_error, floor), figures=figures)

    def resampled(self, draws: int, level: float) -> tuple[Floats, Floats]:
        """Percentile intervals of all differences."""
        if self.main.terms is not None:
            return bootstrap_differences(self.main.terms, draws, level, self.seed)
        assert self.main.pieces is not None
        return percentiles(self.main.pieces, draws, level, self.seed, poisson=True)


def prefers(every: Judgement, sample: Judgement) -> bool:
    """Whether doubly robust differences on every row are the better source, whichever policy they favor."""
    if not every.usable.any():
        return False
    if not sample.usable.any() or contradict(every, sample):
        return True
    both = sample.usable
    price = ALARM_PRICE if sample.figures["alarm"] else 1.0
    return bool(every.usable.all()) and float(every.std_error[both].mean() / sample.std_error[both].mean()) < price


def contradict(every: Judgement, sample: Judgement) -> bool:
    """Whether the two sources differ on a pair by more than chance explains; the sample then misreads the log.

    The errors are those that the rows show: floors stand for what no row shows, and neither source can know that.
    """
    from scipy.special import stdtr

    both = every.usable & sample.usable
    error = np.hypot(every.figures["empirical"], sample.figures["empirical"])[both]
    gap = np.abs(every.difference - sample.difference)[both]
    chance = 2 * stdtr(every.freedom[both], -np.divide(gap, error, out=np.zeros_like(gap), where=error > 0))
    return bool((chance < CONTRADICTION / len(both)).any())


def examine(
    log: Log | ScannedLog,
    policies: Any,
    method: Estimator,
    baseline: Any,
    *,
    verdicts: str | None,
    normalize: str,
    duplicates: str | None,
    behavior: Any,
    actions: Sequence[Any],
    unit: str | None,
    bootstrap: int,
    seed: int,
    sample_rows: int = SAMPLE_ROWS,
    alone: bool = False,
) -> Study:
    """Estimates on all rows, and a judge; `alone` allows a single policy."""
    at_once = needs_all_at_once(log, baseline, normalize, policies)
    rows = open_rows(log, policies, behavior, actions, unit, seed, size=sample_rows, at_once=at_once)
    check_two(rows.policies, alone)
    usual, obstacle = pick_procedure(rows.sample, rows.policies, verdicts)
    options: dict[str, Any] = {"normalize": normalize, "duplicates": duplicates, "seed": seed}
    own = take_baseline(baseline, rows.drawn)
    sample_main = run_method(row_terms(rows.sample, rows.policies, method, own, **options))
    others = [e for e in ESTIMATORS.values() if e != method]
    resamples = bool(bootstrap) or usual not in (EVERY_ROW, *JUDGES)
    results, unavailable, every_row = estimate(
        rows, method, others, baseline, resamples, usual == EVERY_ROW or not rows.whole, **options
    )
    if rows.whole:
        results[method.name] = sample_main
    main = results[method.name]
    return Study(
        rows=rows,
        main=main,
        sample_main=sample_main,
        values=value_table(rows.policies.names, shown_methods(method), results),
        unavailable=unavailable,
        units=unit_factor(sample_main, rows.sample, normalize, rows.policies.proxies),
        usual=usual,
        obstacle=obstacle,
        every_row=every_row,
        verdicts=verdicts,
        seed=seed,
        notes=tuple(thin_evidence(rows.sample, rows.policies)),
        warnings=(*cautions(main, rows.policies.names), *log_warnings(rows.sample), *rows.policies.warnings),
    )


def estimate(
    rows: Rows,
    method: Estimator,
    others: Sequence[Estimator],
    baseline: Any,
    resamples: bool,
    doubly_robust: bool,
    *,
    normalize: str,
    duplicates: str | None,
    seed: int,
) -> tuple[dict[str, MethodResult], dict[str, str], tuple[Method, MethodResult, WeightSums] | None]:
    """All methods on all rows, and the doubly robust one that may judge, in one pass where rows come in parts."""
    extra = method_of(rows, seed) if doubly_robust else None
    wanted = Wanted(near_pairs(rows), resamples, rows.groups, seed)
    if isinstance(rows.source, WholeRows):
        wider = others if rows.whole else [method, *others]
        results, unavailable = run_methods(rows, wider, baseline, normalize=normalize, duplicates=duplicates, seed=seed)
        found = run_pass(rows, [extra], wanted) if extra is not None else []
        return results, unavailable, None if extra is None else (extra, *found[0])
    ready, unavailable = ready_methods(rows, [method, *others], baseline, duplicates, seed)
    if method.name in unavailable:
        hint = "LDE and DiM need no propensities; a model of the reward is baseline=q(states, actions)."
        raise Unavailable(unavailable[method.name], hint=hint)
    ready = [m.judged() if m.estimator == method and resamples else m for m in ready]
    passed = run_pass(rows, [*ready, *([] if extra is None else [extra])], wanted)
    results = {m.estimator.name: result for m, (result, _) in zip(ready, passed, strict=False)}
    return results, unavailable, None if extra is None else (extra, *passed[-1])


def estimate_all(
    log: Any,
    policies: Any,
    methods: Sequence[Estimator],
    baseline: Any,
    normalize: str,
    duplicates: str | None,
    behavior: Any,
    actions: Sequence[Any],
    seed: int,
    unit: str | None = None,
) -> tuple[Rows, dict[str, MethodResult], dict[str, str]]:
    """Estimates alone by several methods: the rows, the results, and what is unavailable."""
    at_once = needs_all_at_once(log, baseline, normalize, policies)
    rows = open_rows(log, policies, behavior, actions, unit, seed, size=SAMPLE_ROWS, at_once=at_once)
    return rows, *run_methods(rows, methods, baseline, normalize=normalize, duplicates=duplicates, seed=seed)


def needs_all_at_once(log: Any, baseline: Any, normalize: str, policies: Any) -> bool:
    """Whether what is asked needs all rows at once; an error where they stay where they are."""
    given = policies.values() if isinstance(policies, Mapping) else ()
    brought = isinstance(baseline, KnownAverages) or any(
        isinstance(p, Policy) and (p.ratios is not None or p.terms) for p in given
    )
    if normalize == "rows" and not brought:
        return False
    if isinstance(log, ScannedLog) and len(log) > SAMPLE_ROWS:
        raise PodiumError(
            'normalize="states" is for logs in memory, or of up to 20,000 rows',
            hint="leave it out, or use engine='memory'.",
        )
    return True


def check_two(policies: PolicySet, any_number: bool) -> None:
    if len(policies) < 2 and not any_number:
        raise PodiumError(
            f"a comparison needs at least two policies; there is {len(policies)}: {', '.join(policies.names)}",
            hint="add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
        )


# --- what should be said --------------------------------------------------------------------------------------------


def unit_factor(main: MethodResult, log: Log, normalize: str, proxies: bool) -> float:
    """What turns a difference of scores into units of reward, whatever the normalisation."""
    factor = main.estimator.reward_units(log.n_actions, proxies)
    if normalize == "states" and main.estimator.is_score and not proxies:
        assert main.terms is not None
        factor *= len(np.unique(log.state_codes[main.terms.rows])) / main.rows
    return factor


def shown_methods(method: Estimator) -> list[str]:
    """The paper's four methods, and the one that ranks."""
    return list(dict.fromkeys([*ESTIMATORS, method.name]))


def cautions(main: MethodResult, names: Sequence[str]) -> tuple[str, ...]:
    """What must be said when a method ranks that shrinks the policies' weights, or does without logged rewards."""
    said = main.estimator.caution
    if not said or main.removed is None:
        return (said,) if said else ()
    most, least = int(main.removed.argmax()), int(main.removed.argmin())
    if main.removed[most] <= 0:
        return ()  # no weight is so large that it would shrink
    larger, smaller = share(float(main.removed[most])), share(float(main.removed[least]))
    if larger == smaller:
        said = f"{main.estimator.name} shrinks large weights, which can turn a ranking round; hold it against DRE."
        return (f"{said} Here it takes {larger} of the weight of every policy.",)
    return (
        f"{said} Here it takes {larger} of the weight of {names[most]!r} and {smaller} of that of {names[least]!r}.",
    )


def thin_evidence(log: Log, policies: PolicySet) -> list[str]:
    """What the log is too thin for, in sentences."""
    kept = log.latest
    silent = [p.name for p in policies if not p.proxy and not np.any(p.logged[kept] > 0)]
    unseen = log.n_actions - len(np.unique(log.action_codes))
    found = [
        f"Policy {name!r} never plays an action that was logged; what is said of it rests on other actions"
        for name in silent
    ]
    if unseen:
        found.append(
            f"Of {log.n_actions:,} actions {unseen:,} were never logged; their rewards are guessed from others"
        )
    if log.n_states < FEW_STATES:
        found.append(f"The log has {count(log.n_states, 'state')} and says little of any other")
    if 1 < log.n_states == len(kept) < len(log):
        found.append("In every state only one action was logged, so actions are compared across states")
    return found


def log_warnings(log: Log) -> tuple[str, ...]:
    """What looks wrong with a log before any policy is asked."""
    if not 1 < len(log) == log.n_states:
        return ()
    names = ", ".join(log.state_columns)
    return (f"every row has a state of its own; is an id or a time among the state columns ({names})?",)
