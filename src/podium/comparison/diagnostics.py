"""The trust panel: what the log holds, how much of each policy it can speak of, and what each pair hangs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.comparison.analysis import log_warnings
from podium.comparison.compare import COMPARE, compare_with
from podium.comparison.coverage import Coverage, cover
from podium.comparison.influence import Driver, drivers, row_influence
from podium.comparison.pair import Interval, interval_text
from podium.comparison.result import Comparison
from podium.comparison.scores import score
from podium.comparison.spectrum import spectrum_of
from podium.comparison.weights import weight_warnings
from podium.data.errors import count
from podium.data.facts import Fact, fact_dict
from podium.data.log import Log
from podium.data.nested import grouped
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows, check_log
from podium.estimates.estimators import ESTIMATORS
from podium.estimates.evaluate import on_rows, rows_of
from podium.estimates.options import Options
from podium.outputs.display import Block, Shown, Table, label_json, number, share
from podium.policies import PolicySet, named_policies, policies_in
from podium.theory.assumption import AssumptionCheck, check_assumption
from podium.verdicts.gated import ALARM, Gates
from podium.verdicts.judgement import LoggerCheck
from podium.verdicts.leaks import check_columns, column_warnings
from podium.verdicts.pairs import pair_indices
from podium.verdicts.sensitivity import LARGEST, Withstood
from podium.version import VERSION

LOW_MASS = 0.1
LOW_ESS = 20.0
HIGH_SHARE = 0.2
FEW_ROWS_FLIP = 3
SHOWN = 10
MOST_CELLS = 20_000_000  # rows x actions beyond which no model of all rewards is fitted


@dataclass(frozen=True)
class PairCheck:
    """What one pair hangs on."""

    a: str
    b: str
    verdict: str
    difference: float
    empirical_se: float | None  # of LDE, from the rows
    design_se: float | None  # of LDE, from what the policies would do
    z_b: float | None  # disagreement of LDE and DRE
    rows_to_flip: int | None
    rows: tuple[Driver, ...]
    states: tuple[Driver, ...]
    hidden: Withstood | None = None  # what a hidden cause could do to the claim, where there is one

    def to_dict(self) -> dict[str, Any]:
        return {
            **{k: v for k, v in vars(self).items() if k not in ("rows", "states", "hidden")},
            "gamma": None if self.hidden is None else self.hidden.gamma,
            "hidden_cause": None if self.hidden is None else fact_dict(self.hidden.fact),
            "rows": [dict(vars(d)) for d in self.rows],
            "states": [{**vars(d), "label": label_json(d.label)} for d in self.states],
        }


@dataclass(frozen=True)
class Sensitivity:
    """The ranking by another method or baseline, and the share of pairs it orders as the comparison does."""

    estimator: str
    baseline: str
    ranking: tuple[str, ...]
    agreement: float


@dataclass(frozen=True)
class Alarm:
    name: str
    value: float
    meaning: str
    advice: str


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Shown):
    """Summary of the log, coverage of each policy, what drives each pair, sensitivity, and alarms."""

    log: Log | ScannedLog
    coverage: tuple[Coverage, ...]
    pairs: tuple[PairCheck, ...]
    sensitivity: tuple[Sensitivity, ...]
    assumption: AssumptionCheck
    t_p: float
    alarms: tuple[Alarm, ...]
    warnings: tuple[str, ...]
    details: Mapping[str, Any]
    engine: str = "memory"
    sample: int | None = None  # rows of the sample that pairs, states and "on logged" come from; None: all rows

    def to_dict(self) -> dict[str, Any]:
        return {
            "podium": VERSION,
            "log": {**self.log.to_dict(), **self.details},
            "settings": {"engine": self.engine},
            "sample": None if self.sample is None else {"rows": self.sample, "of": len(self.log)},
            "policies": [dict(vars(c)) for c in self.coverage],
            "pairs": [p.to_dict() for p in self.pairs],
            "sensitivity": [{**vars(s), "ranking": list(s.ranking)} for s in self.sensitivity],
            "t_p": self.t_p,
            "alarms": [dict(vars(a)) for a in self.alarms],
            "warnings": list(self.warnings),
        }

    def log_table(self) -> Table:
        d, log = self.details, self.log
        states = log.n_states
        single = share(d["single_row_states"])
        rows = [
            ["rows", f"{len(log):,}", "logged interactions"],
            ["distinct", f"{log.distinct:,}", "of a repeated (state, action) LDE and DiM keep one row"],
            ["states", f"{log.n_states:,}", f"from {', '.join(grouped(list(log.state_columns)))}"],
            ["rows per state", number(len(log) / states, 2), f"{single} of states have one row"],
            ["actions", f"{log.n_actions:,}", f"{count(d['unseen_actions'], 'action')} never logged"],
            ["reward", number(d["reward_mean"]), f"mean; from {number(d['reward_low'])} to {number(d['reward_high'])}"],
            ["propensities", log.knows, KNOWN[log.knows]],
            ["T_p", number(self.t_p, 1), "beyond 3: good actions were logged more often"],
        ]
        return Table(f"Log ({self.engine})", ["figure", "value", "meaning"], rows, align="lrl")

    def coverage_table(self) -> Table:
        rows = [
            [c.name, share(c.mass_on_logged), number(c.ess, 1), number(c.max_weight, 2), share(c.top_row_share)]
            for c in self.coverage
        ]
        weights = "pi/p" if self.log.knows != "none" else "pi (no propensities)"
        notes = [
            "on logged: probability that a policy gives to actions logged in the same state; the rest is unseen."
            if self.sample is None
            else f"on logged: probability that a policy gives to actions logged in the same state, at least, by the "
            f"sample of {self.sample:,} rows.",
            f"ESS: how many equally weighted rows its weights {weights} are worth.",
            "largest weight: relative to the average. top row: share of the estimate that one row carries.",
        ]
        columns = ["policy", "on logged", "ESS", "largest weight", "top row"]
        return Table("Policies", columns, rows, align="lrrrr", notes=notes)

    def pairs_table(self) -> Table:
        rows = []
        for p in self.pairs[:SHOWN]:
            ratio = "-" if not p.design_se or p.empirical_se is None else number(p.empirical_se / p.design_se, 2)
            flip = "-" if p.rows_to_flip is None else str(p.rows_to_flip)
            top = " ".join(f"{d.label}{'!' if d.flips else ''}" for d in p.rows[:3])
            rows.append([p.a, p.b, p.verdict, flip, top, ratio, number(p.z_b, 1)])
        notes = [
            "flip: the fewest rows whose removal would turn the sign. rows: those that matter most (! alone enough).",
            "seen/design: below .7 the log has not met the actions that matter to the pair; log those.",
            "z_b: beyond 2 LDE and DRE disagree; believe DRE if the propensities are right.",
        ]
        if len(self.pairs) > SHOWN:
            notes.append(f"{len(self.pairs) - SHOWN} more pairs, and the states that matter, are in the JSON output.")
        return Table("Pairs", ["a", "b", "a is", "flip", "rows", "seen/design", "z_b"], rows, "lllrlrr", notes)

    def hidden_table(self) -> Table:
        """How strong a cause that is not in the log must be to undo each claim, the weakest claims first."""
        claims = [(p, h, h.gamma) for p in self.pairs if (h := p.hidden) is not None and h.gamma is not None]
        claims.sort(key=lambda claim: claim[2])
        rows = [
            [p.a, p.b, p.verdict, gamma_text(gamma), interval_text(h.interval and Interval(*h.interval))]
            for p, h, gamma in claims[:SHOWN]
        ]
        notes = [f"{h.fact}." for _, h, _ in claims[:1]]
        notes += [
            "falls at: how many times as likely (in odds) something that is not in the log must make an action, beyond "
            "what the state columns explain, before the claim falls. 1: DRE alone does not confirm the claim.",
            "DRE alone: the interval of the doubly robust difference if there is nothing of that kind.",
        ]
        if len(claims) > SHOWN:
            notes.append(f"{len(claims) - SHOWN} more claims are in the JSON output.")
        return Table("Hidden causes", ["a", "b", "a is", "falls at", "DRE alone"], rows, "lllrr", notes)

    @property
    def hidden_note(self) -> str:
        """Why hidden causes are not asked about; nothing where they are, or where there is no claim."""
        facts = [p.hidden.fact for p in self.pairs if p.hidden is not None and p.hidden.gamma is None]
        return f"Hidden causes: {facts[0][0].lower()}{facts[0][1:]}." if facts else ""

    def sensitivity_table(self) -> Table:
        rows = [[s.estimator, s.baseline, share(s.agreement), " > ".join(s.ranking)] for s in self.sensitivity]
        notes = ["agrees: share of pairs in the order of the comparison. Orders that differ widely call for more rows."]
        return Table("Other methods", ["method", "baseline", "agrees", "ranking"], rows, "llrl", notes)

    def tables(self) -> list[Table]:
        """What there is to show."""
        tables = [self.log_table()]
        tables += [] if self.log.estimated is None else self.log.estimated.tables()
        tables += [self.coverage_table()] if self.coverage else []
        tables += [self.pairs_table()] if self.pairs else []
        tables += [self.hidden_table()] if any(p.hidden is not None and p.hidden.gamma for p in self.pairs) else []
        tables += [self.sensitivity_table()] if self.sensitivity else []
        return tables

    def blocks(self, width: int) -> list[Block]:
        lines = [f"Alarm: {a.meaning} {a.advice}" for a in self.alarms] + [f"Warning: {w}" for w in self.warnings]
        return [*self.tables(), *([line] for line in [*lines, self.hidden_note, self.assumption.verdict] if line)]


def gamma_text(gamma: float) -> str:
    return f"> {gamma:g}" if gamma >= LARGEST else number(gamma, 2)


KNOWN = {
    "full": "the whole behaviour policy is known",
    "logged": "known for the logged actions",
    "estimated": "learned from this log, not known",
    "none": "unknown: only LDE and DiM can be used",
}


def diagnose(log: Log | ScannedLog, policies: Any = None, **options: Any) -> Diagnosis:
    """What the log can and cannot say about the policies; the options are those of `compare`.

    Of a log of more than 20,000 rows, what drives each pair is looked for in its sample.
    """
    asked = Options.of(COMPARE, options)
    check_log(log)
    alone = policies is None and not policies_in(log)
    if not alone and len(named_policies(log, policies)) > 1:
        return diagnose_comparison(compare_with(log, policies, asked))
    if alone:  # a log can be looked at before there is a policy
        rows = rows_of(log, {"uniform": "uniform"}, asked)
        return look_at(replace(rows, policies=PolicySet(())), warnings_of(rows))
    return on_rows(log, policies, asked, lambda rows: look_at(rows, warnings_of(rows)))


def warnings_of(rows: Rows) -> tuple[Fact | str, ...]:
    """What looks wrong with a log that was not compared; columns seem unbalanced where propensities are wrong."""
    log = rows.sample
    columns = () if rows.contradiction else column_warnings(check_columns(log), log)
    return (*columns, *log_warnings(log, len(rows)), *rows.warnings, *weight_warnings(rows))


def diagnose_comparison(result: Comparison, among: Sequence[str] | None = None) -> Diagnosis:
    """The trust panel of a comparison that has been made; of all pairs, or of those among some policies."""
    return look_at(result.basis.rows, result.warnings, result, among)


def look_at(
    rows: Rows, warnings: tuple[str, ...], result: Comparison | None = None, among: Sequence[str] | None = None
) -> Diagnosis:
    """All that can be said of a log and its policies, and of the pairs where they were compared."""
    logger = None if result is None else result.basis.judgement.logger
    logger = Gates(rows.sample, rows.policies) if logger is None else logger
    pairs = () if result is None else tuple(check_pairs(result, logger, among))
    coverage = tuple(cover(rows))
    return Diagnosis(
        log=rows.log,
        coverage=coverage,
        pairs=pairs,
        sensitivity=() if result is None else tuple(other_rankings(result)),
        assumption=check_assumption(rows.sample),
        t_p=logger.t_p,
        alarms=(*log_alarms(logger), *policy_alarms(coverage, rows), *pair_alarms(pairs), *drift_alarms(result)),
        warnings=warnings,
        details=log_details(rows),
        engine=rows.sample.engine,
        sample=None if rows.whole else len(rows.sample),
    )


def log_details(rows: Rows) -> dict[str, Any]:
    """Figures of the log beyond its size."""
    log, facts = rows.log, rows.source.facts()
    return {
        "duplicates": len(log) - log.distinct,
        "unseen_actions": int((facts.counts == 0).sum()),
        "single_row_states": facts.single / log.n_states,
        "reward_mean": facts.mean,
        "reward_low": facts.low,
        "reward_high": facts.high,
    }


def check_pairs(result: Comparison, logger: LoggerCheck, among: Sequence[str] | None = None) -> list[PairCheck]:
    """What every pair (among some policies) hangs on, in the order of the comparison."""
    basis = result.basis
    names = basis.policies.names
    i, j = pair_indices(len(names))
    index = {(names[a], names[b]): n for n, (a, b) in enumerate(zip(i, j, strict=True))}
    influence = basis.judgement.influence
    if influence is None:
        influence = row_influence(basis.terms, len(basis.sample), basis.units)
    checks = []
    wanted = set(names if among is None else among)
    for p in result.pairs:
        if p.a not in wanted or p.b not in wanted:
            continue
        sign, n = (1.0, index[p.a, p.b]) if (p.a, p.b) in index else (-1.0, index[p.b, p.a])
        effects = influence[:, names.index(p.a)] - influence[:, names.index(p.b)]
        found = drivers(basis.sample, p.difference, effects, basis.rows.numbers + 1)
        lde, design = float(logger.lde.empirical[n]), float(logger.lde.design[n])
        checks.append(
            PairCheck(
                a=p.a,
                b=p.b,
                verdict=p.verdict,
                difference=p.difference,
                empirical_se=lde if np.isfinite(lde) else None,
                design_se=design if np.isfinite(design) else None,
                z_b=sign * float(logger.z_b[n]) if logger.knows != "none" else None,
                rows_to_flip=found.rows_to_flip,
                rows=found.rows,
                states=found.states,
                hidden=result.hidden_causes.get((p.a, p.b)),
            )
        )
    return checks


def other_rankings(result: Comparison) -> list[Sensitivity]:
    """The ranking under every method of the paper, and under other baselines for those that use one, on the sample."""
    log, policies, names = result.basis.sample, result.basis.policies, list(ESTIMATORS)
    learns = all(p.has_full for p in policies) and len(log) > 1 and len(log) * log.n_actions <= MOST_CELLS
    baselines = ["mean", "state", *(["linear"] if learns else [])]
    place = {name: k for k, name in enumerate(result.ranking)}
    ours = [-float(place[name]) for name in policies.names]
    found = []
    places = spectrum_of(result, baselines, names).places
    for p in sorted(places, key=lambda p: (baselines.index(p.baseline.replace("-", "mean")), names.index(p.estimator))):
        ranking = sorted(p.policies, key=lambda stand: (stand.rank, place[stand.name]))
        agreement = float(score(ours, [-float(stand.rank) for stand in p.policies], ties="half"))
        found.append(Sensitivity(p.estimator, p.baseline, tuple(stand.name for stand in ranking), agreement))
    return found


# --- alarms ------------------------------------------------------------------------------------------------------


def log_alarms(gates: LoggerCheck) -> list[Alarm]:
    if abs(gates.t_p) <= ALARM:
        return []
    known = gates.knows != "none"
    meaning = (
        f"good actions were logged more often than others (T_p = {gates.t_p:.1f})"
        if gates.t_p > 0
        else f"good actions were logged less often than others (T_p = {gates.t_p:.1f})"
    )
    advice = "LDE and DiM may rank wrongly; " + ("look at DRE." if known else "log the propensities.")
    return [Alarm("T_p", gates.t_p, meaning + ("." if known else ", judged by how often each occurs."), advice)]


def policy_alarms(coverage: Sequence[Coverage], rows: Rows) -> list[Alarm]:
    """What should make a reader doubt the estimates of a policy; of its mass on logged actions a sample shows the least
    that it can be."""
    found = []
    for c, p in zip(coverage, rows.policies, strict=True):
        if rows.whole and c.mass_on_logged < LOW_MASS and not p.proxy:
            meaning = f"{c.name} plays logged actions with probability {share(c.mass_on_logged)} only."
            found.append(Alarm("mass_on_logged", c.mass_on_logged, meaning, "Log more of the actions that it prefers."))
        if c.ess < LOW_ESS:
            meaning = f"{c.name} rests on about {c.ess:.1f} effective rows."
            found.append(Alarm("ess", c.ess, meaning, "Treat its importance-weighted estimates as anecdotes."))
        if c.top_row_share > HIGH_SHARE:
            meaning = f"one row carries {share(c.top_row_share)} of what is known of {c.name}."
            found.append(Alarm("top_row_share", c.top_row_share, meaning, "Check that row, or log more."))
    return found


def pair_alarms(pairs: Sequence[PairCheck]) -> list[Alarm]:
    """Claims that hang on a handful of rows."""
    fragile = [p for p in pairs if p.verdict != "cannot tell" and p.rows_to_flip and p.rows_to_flip <= FEW_ROWS_FLIP]
    return [
        Alarm(
            "rows_to_flip",
            float(p.rows_to_flip or 0),
            f"without {count(p.rows_to_flip or 0, 'row')} {p.a} would not come out ahead of {p.b}.",
            "Check rows " + ", ".join(str(d.label) for d in p.rows[:3]) + ".",
        )
        for p in fragile
    ]


def drift_alarms(result: Comparison | None) -> list[Alarm]:
    """Changes over time: the probability of each by chance, what changed, and what to do."""
    facts = () if result is None or result.drift is None else result.drift.facts
    return [
        Alarm("drift", fact.fields["p_value"], *(part + "." for part in str(fact).rstrip(".").rsplit(". ", 1)))
        for fact in facts
    ]
