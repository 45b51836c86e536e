"""What a comparison rests on: estimates by every method and a judge of pairs, from arrays or from passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from podium.baselines import check_baseline, describe_baseline
from podium.bootstrap import bootstrap_differences, percentiles
from podium.columns import Floats
from podium.display import share
from podium.engines.batches import Batch, mark_latest
from podium.engines.sums import Sums
from podium.errors import BaselineRefused, PodiumError, Unavailable, count
from podium.estimate import MethodResult, prepare, run_method, try_methods, value_table
from podium.estimators import ESTIMATORS, LDE, Estimator
from podium.large import Large, is_large, mergeable, open_large, with_every_action
from podium.large.findings import Findings, kept_by
from podium.large.wider import run_wider
from podium.log import Log
from podium.policies import PolicySet
from podium.policies.drafts import Policy
from podium.scan import ScannedLog
from podium.terms import row_terms
from podium.verdicts import Judgement
from podium.verdicts.gated import gated
from podium.verdicts.judge import JUDGES, by_terms, judge, pick_procedure, silence_seekers

FEW_STATES = 5


@dataclass(frozen=True, eq=False)
class Study:
    """A log and its policies, examined.

    Parameters
    ----------
    log : with the action space that all policies share
    policies : their names and forms
    main : the method that scores
    values : policy -> method -> estimate
    unavailable : method -> why it cannot be used
    units : turns differences of the main method's scores into rewards
    largest : the largest absolute reward
    procedure, obstacle : who judges, and why it is not the posterior
    judged : the judgement of a procedure, by name
    resampled : percentile intervals of all differences, from draws and level
    notes, warnings : what should be said
    findings : where the rows were read in passes
    """

    log: Log | ScannedLog
    policies: PolicySet
    main: MethodResult
    values: Mapping[str, Mapping[str, float | None]]
    unavailable: Mapping[str, str]
    units: float
    largest: float
    procedure: str
    obstacle: str
    judged: Callable[[str], Judgement]
    resampled: Callable[[int, float], tuple[Floats, Floats]]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    engine: str
    findings: Findings | None = None


def examine(
    log: Log | ScannedLog,
    policies: Any,
    method: Estimator,
    baseline: Any,
    *,
    verdicts: str | None,
    ranker: str | None,
    normalize: str,
    duplicates: str | None,
    behavior: Any,
    actions: Sequence[Any],
    unit: str | None,
    bootstrap: int,
    seed: int,
    coverage: bool = False,
) -> Study:
    """Estimates and a judge; in passes where the log has more than 20,000 rows, whatever the engine."""
    if isinstance(log, ScannedLog) and not is_large(log):
        log = log.collect()
    if in_passes(log, baseline, normalize, verdicts, policies):

        def by_passes(late: Mapping[str, Sequence[Any]]) -> Study:
            large = open_large(log, policies, baseline, behavior, actions, unit, late=late, seed=seed)
            return examine_large(
                large, method, baseline, verdicts=verdicts, ranker=ranker, duplicates=duplicates, bootstrap=bootstrap,
                seed=seed, coverage=coverage,
            )  # fmt: skip

        return with_every_action(by_passes)
    assert not isinstance(log, ScannedLog)
    log, resolved = prepare(log, policies, behavior, actions, unit, seed)
    check_two(resolved, coverage)
    procedure, obstacle = pick_procedure(log, resolved, verdicts)
    options: dict[str, Any] = {"normalize": normalize, "duplicates": duplicates, "seed": seed}
    main = run_method(row_terms(log, resolved, method, baseline, **options))
    results, unavailable = try_methods(
        log, resolved, [e for e in ESTIMATORS.values() if e != method], baseline, **options
    )
    results[method.name] = main
    units = unit_factor(main, log, normalize, resolved.proxies)

    def resampled(draws: int, level: float) -> tuple[Floats, Floats]:
        assert main.terms is not None
        return bootstrap_differences(main.terms, draws, level, seed)

    return Study(
        log=log,
        policies=resolved,
        main=main,
        values=value_table(resolved.names, shown_methods(method), results),
        unavailable=unavailable,
        units=units,
        largest=float(np.abs(log.rewards).max()),
        procedure=procedure,
        obstacle=obstacle,
        judged=lambda name: judge(log, resolved, name, main, units, seed),
        resampled=resampled,
        notes=tuple(thin_evidence(log, resolved)),
        warnings=(*cautions(main, resolved.names), *log_warnings(log), *resolved.warnings),
        engine=log.engine,
    )


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
) -> tuple[Any, PolicySet, dict[str, MethodResult], dict[str, str], tuple[str, ...]]:
    """Estimates alone by several methods: the log, the policies, the results, what is unavailable, and warnings."""
    if isinstance(log, ScannedLog) and not is_large(log):
        log = log.collect()
    if not in_passes(log, baseline, normalize, None, policies):
        log, resolved = prepare(log, policies, behavior, actions, seed=seed)
        options = {"normalize": normalize, "duplicates": duplicates, "seed": seed}
        results, unavailable = try_methods(log, resolved, methods, baseline, **options)
        return log, resolved, results, unavailable, resolved.warnings
    opened = partial(open_large, log, policies, baseline, behavior, actions, seed=seed)
    return with_every_action(lambda late: estimate_in_passes(opened(late=late), methods, duplicates, seed))


def estimate_in_passes(
    large: Large, methods: Sequence[Estimator], duplicates: str | None, seed: int
) -> tuple[Any, PolicySet, dict[str, MethodResult], dict[str, str], tuple[str, ...]]:
    """The same of a large log."""
    results, unavailable = run_wider(large, [e for e in methods if not e.linear], duplicates=duplicates, seed=seed)
    methods = [e for e in methods if e.linear]
    if not methods:
        return large.log, large.policies, results, unavailable, own_warnings(large)
    usable = [e for e in methods if not (e.uses_propensity and large.knows == "none")]
    families = {(e.uses_propensity, kept_by(e, duplicates)) for e in usable}
    gates = large.baseline == "state"
    by_state = gates or any(kept == "latest" for _, kept in families)
    question = large.question(states=by_state, gates=gates, families=tuple(sorted(families)), own=True, seed=seed)
    found = Findings(large, large.ask(question, "state by state" if by_state else "all rows"))
    for estimator in methods:
        try:
            results[estimator.name] = found.method(estimator, duplicates)
        except Unavailable as error:
            unavailable[estimator.name] = error.message
    return seen(found), large.policies, results, unavailable, (*own_warnings(large), *found.warnings())


def seen(found: Findings) -> Log | ScannedLog:
    """The log with the states that a pass has counted."""
    log = found.large.log
    if isinstance(log, ScannedLog) and found.states is not None:
        return replace(log, n_states=found.states, distinct=found.kept("latest"))
    return log


def in_passes(log: Any, baseline: Any, normalize: str, verdicts: str | None, policies: Any = None) -> bool:
    """Whether a log is read in passes; an error where it must be and what is asked cannot be had that way."""
    if not isinstance(log, Log | ScannedLog) or not is_large(log):
        return False
    given = policies.values() if isinstance(policies, Mapping) else ()
    if isinstance(log, Log) and any(isinstance(p, Policy) and (p.ratios is not None or p.terms) for p in given):
        return False  # they bring arrays for every row
    by_state = isinstance(baseline, str) and baseline == "state" and verdicts not in (None, "gated")
    if normalize == "rows" and mergeable(baseline) and not by_state:
        return True
    if isinstance(log, ScannedLog):
        raise at_scale(baseline, normalize, verdicts)
    return False


def examine_log(
    log: Log | ScannedLog, policies: Any, behavior: Any = None, actions: Sequence[Any] = (), unit: Any = None
) -> Study:
    """The study of a large log with any number of policies, for the trust panel."""

    def by_passes(late: Mapping[str, Sequence[Any]]) -> Study:
        large = open_large(log, policies, "mean", behavior, actions, unit, late=late)
        return examine_large(
            large, LDE, "mean", verdicts="gated", ranker=None, duplicates=None, bootstrap=0, seed=0, coverage=True
        )

    return with_every_action(by_passes)


def check_two(policies: PolicySet, any_number: bool) -> None:
    if len(policies) < 2 and not any_number:
        raise PodiumError(
            f"a comparison needs at least two policies; there is {len(policies)}: {', '.join(policies.names)}",
            hint="add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
        )


def at_scale(baseline: Any, normalize: str, verdicts: str | None) -> PodiumError:
    """Why a log that is read in passes cannot be asked for something."""
    check_baseline(baseline)
    if normalize != "rows":
        return PodiumError(
            'normalize="states" is for logs in memory, or of up to 20,000 rows',
            hint="leave it out, or use engine='memory'.",
        )
    if isinstance(baseline, str) and baseline == "state":
        return PodiumError(
            f'verdicts="{verdicts}" with the baseline "state" is for logs in memory, or of up to 20,000 rows',
            hint='use verdicts="gated", which rests on that baseline.',
        )
    return BaselineRefused(
        f"the baseline {describe_baseline(baseline)!r} must see all rows at once, and this log is read in passes",
        hint="fit it on a sample and give it as a function q(states, actions), or use engine='memory'.",
    )


# --- a large log -----------------------------------------------------------------------------------------------------


def examine_large(
    large: Large,
    method: Estimator,
    baseline: Any,
    *,
    verdicts: str | None,
    ranker: str | None,
    duplicates: str | None,
    bootstrap: int,
    seed: int,
    coverage: bool,
) -> Study:
    """The same from one pass, or two where row terms need a mean that a first one finds."""
    check_two(large.policies, coverage)
    procedure, obstacle = pick_procedure(large.log, large.policies, verdicts)
    row_terms_wanted = procedure not in JUDGES or bool(bootstrap)
    gates = procedure == "gated" or ranker == "gated" or coverage or large.baseline == "state"
    methods = [e for e in ESTIMATORS.values() if not (e.uses_propensity and large.knows == "none")]
    families = {(e.uses_propensity, kept_by(e, duplicates)) for e in methods}
    by_state = gates or any(kept == "latest" for _, kept in families)
    terms: tuple[tuple[str, bool, str, float | None], ...] = ()
    if row_terms_wanted and method in methods:
        rule = kept_by(method, duplicates)
        terms = ((method.name, method.uses_propensity, rule, term_baseline(large, method, rule)),)
    sums = large.ask(
        large.question(
            states=by_state,
            gates=gates,
            families=tuple(sorted(families)),
            terms=terms,
            resampled=method.name if terms and (bootstrap or procedure != "paired t" or large.units) else "",
            coverage=coverage,
            seed=seed,
        ),
        "state by state" if by_state else "all rows",
    )
    found = Findings(large, sums)
    main = main_in_passes(found, method, duplicates, bool(bootstrap) or procedure not in ("paired t", *JUDGES), seed)
    results, unavailable = methods_at_hand(found, main, duplicates)
    units = method.reward_units(large.actions, large.policies.proxies)

    def judged(name: str) -> Judgement:
        return (
            judge_large(found, seed)
            if name == "gated"
            else by_terms(large.log, large.policies, main, units, name, seed)
        )

    def resampled(draws: int, level: float) -> tuple[Floats, Floats]:
        assert main.pieces is not None
        return percentiles(main.pieces, draws, level, seed, poisson=True)

    return Study(
        log=seen(found),
        policies=large.policies,
        main=main,
        values=value_table(large.policies.names, shown_methods(method), results),
        unavailable=unavailable,
        units=units,
        largest=large.largest,
        procedure=procedure,
        obstacle=obstacle,
        judged=judged,
        resampled=resampled,
        notes=tuple(thin_at_scale(found)),
        warnings=(
            *cautions(main, large.policies.names),
            *warnings_at_scale(found),
            *own_warnings(large),
            *found.warnings(),
        ),
        engine=large.engine,
        findings=found,
    )


def judge_large(found: Findings, seed: int) -> Judgement:
    """The gated verdict; without propensities, and where they are estimates, by a pass of its own if need be.

    As on smaller logs, estimated propensities can only silence a pair.
    """
    large = found.large
    plain = large.without_estimate() if large.knows == "estimated" else large
    if plain.knows == "none" and (plain is not large or large.baseline == "state"):
        question = plain.question(states=True, gates=True, alone=False, seed=seed)
        judgement = gated(Findings(plain, plain.ask(question, "state by state")))
    else:
        judgement = gated(found)
    return judgement if plain is large else silence_seekers(judgement, found, used=False)


def main_in_passes(found: Findings, method: Estimator, duplicates: str | None, pieces: bool, seed: int) -> MethodResult:
    """The method that ranks: from the sums of the pass, or by passes of its own where it is none of the four."""
    if method.linear:
        return found.method(method, duplicates)
    results, unavailable = run_wider(found.large, [method], duplicates=duplicates, pieces=pieces, seed=seed)
    if method.name not in results:
        hint = "LDE and DiM need no propensities; a model of the reward is baseline=q(states, actions)."
        raise Unavailable(unavailable[method.name], hint=hint)
    return results[method.name]


def methods_at_hand(
    found: Findings, main: MethodResult, duplicates: str | None
) -> tuple[dict[str, MethodResult], dict[str, str]]:
    """Every method that can be used, the main one first; the reason for each that cannot."""
    results = {main.estimator.name: main}
    unavailable: dict[str, str] = {}
    for estimator in ESTIMATORS.values():
        if estimator != main.estimator:
            try:
                results[estimator.name] = found.method(estimator, duplicates)
            except Unavailable as error:
                unavailable[estimator.name] = error.message
    return results, unavailable


def term_baseline(large: Large, method: Estimator, rule: str) -> float | None:
    """The constant that row terms subtract; found by a pass of its own where it is the mean of the latest rows."""
    if not method.uses_baseline:
        return 0.0
    if large.baseline != "mean":
        return None if isinstance(large.baseline, str) else large.baseline
    if rule == "all":
        return large.centre
    return latest_mean(large)


def latest_mean(large: Large) -> float:
    """The mean reward of the most recent row of each (state, action)."""
    sums = large.source.fold(True, partial(latest_reward, centre=large.centre), "most recent rows", policies=False)
    return large.centre + float(sums.add["x"] / sums.add["n"])


def latest_reward(batches: Iterable[Batch], centre: float) -> Sums:
    total = Sums({"n": np.array(0.0), "x": np.array(0.0)})
    for batch in mark_latest(batches):
        assert batch.latest is not None
        kept = batch.reward[batch.latest] - centre
        total = total + Sums({"n": np.array(float(len(kept))), "x": np.array(float(kept.sum()))})
    return total


def own_warnings(large: Large) -> tuple[str, ...]:
    """Warnings on the policies' forms; those on their numbers come from the pass."""
    return tuple(w for w in large.policies.warnings if "has different probabilities" not in w)


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
    return thin_sentences(silent, unseen, log.n_actions, log.n_states, len(kept), len(log))


def thin_at_scale(found: Findings) -> list[str]:
    large, add = found.large, found.sums.add
    rule = "latest" if "kept" in add else "all"
    mass = next((add[name] for name in (f"1 {rule} 1", "1 latest 1", "1/p all 1") if name in add), None)
    silent = []
    if mass is not None:
        total = mass[0] + mass[1 : 1 + len(found.policies)]
        silent = [p.name for p, m in zip(found.policies, total, strict=True) if not p.proxy and not m > 0]
    unseen = int(np.count_nonzero(large.counts == 0))
    if found.states is None:
        return thin_sentences(silent, unseen, large.actions, FEW_STATES, 0, 0)
    return thin_sentences(silent, unseen, large.actions, found.states, found.kept("latest"), large.rows)


def thin_sentences(silent: Sequence[str], unseen: int, actions: int, states: int, kept: int, rows: int) -> list[str]:
    found = [
        f"Policy {name!r} never plays an action that was logged; what is said of it rests on other actions"
        for name in silent
    ]
    if unseen:
        found.append(f"Of {actions:,} actions {unseen:,} were never logged; their rewards are guessed from others")
    if states < FEW_STATES:
        found.append(f"The log has {count(states, 'state')} and says little of any other")
    if 1 < states == kept < rows:
        found.append("In every state only one action was logged, so actions are compared across states")
    return found


def warnings_at_scale(found: Findings) -> tuple[str, ...]:
    own = found.states == found.large.rows
    return own_state(tuple(found.large.log.state_columns)) if own and found.large.rows > 1 else ()


def log_warnings(log: Log) -> tuple[str, ...]:
    """What looks wrong with a log before any policy is asked."""
    return own_state(tuple(log.state_columns)) if 1 < len(log) == log.n_states else ()


def own_state(columns: Sequence[str]) -> tuple[str, ...]:
    names = ", ".join(columns)
    return (f"every row has a state of its own; is an id or a time among the state columns ({names})?",)
