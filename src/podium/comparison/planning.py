"""What would make it sure: the difference that a log can detect now, the rows for a smaller one, and what to log.

The observed difference never enters: planning by it is worthless, because it is large where luck made it so. The user
names the smallest difference worth detecting, and only the precision of the log is used. With v the variance of a
difference, which falls as N^-r, a true difference d is decided with probability `power` once

    d >= (t_level + z_power) sqrt(v),   so   N* = N (v ((t_level + z_power) / d)^2)^(1/r)   (2.80 for 95% and 80%).

For the posterior, v is its own variance without the prior's part, t has its degrees of freedom, and r comes from the
halves of the log (`verdicts.growth`). For other procedures t is normal and r = 1. How well this foresees is measured by
`podium.experiments.calibration.foresight`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from podium.comparison.result import Comparison
from podium.comparison.settings import Settings
from podium.data.columns import Floats, descending, group_sums, is_huge, plain
from podium.data.errors import PodiumError, shown
from podium.data.facts import Fact
from podium.data.frames import rows_to_frame
from podium.data.log import Log
from podium.data.roles import describe_columns
from podium.data.scales import unit_of
from podium.data.scan import ScannedLog
from podium.outputs.display import Block, Shown, Table, label_json, label_text, number, share
from podium.policies import PolicySet
from podium.propensities.preferences import fitted_weights, shares_over
from podium.verdicts.evidence import gather
from podium.verdicts.growth import falling_rates
from podium.verdicts.judge import as_judged
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices
from podium.version import VERSION

POWERS = (0.8, 0.9)
MOST_CELLS = 100_000_000  # policies x rows x actions that are looked at for what to log more of
SHOWN = 8
NORMAL = 1e10  # degrees of freedom of a normal distribution, as good as
ROUNDING = 1e-9  # what differs by less differs by rounding alone
HALVINGS, STEPS = 1000.0, 70  # bounds of how often a variance is halved, and steps between them


@dataclass(frozen=True)
class PlannedPair:
    """One pair: the difference detectable now (80% power), and the rows in all for the wanted one; None: unknown.

    `rate` says how fast rows help: the variance of the difference falls as rows^-rate.
    """

    a: str
    b: str
    detectable_now: float | None
    rows_80: int | None
    rows_90: int | None
    verdict: str
    rate: float


@dataclass(frozen=True)
class LogMore:
    """An action or a state that carries the uncertainty of the undecided pairs."""

    kind: str  # "action" or "state"
    label: Any
    now: float  # its share of the rows
    ideal: float | None  # the share that would serve the undecided pairs best, for actions
    carries: float  # its share of their variance


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """Rows needed per pair, and what to log more of."""

    log: Log | ScannedLog
    difference: float
    pairs: tuple[PlannedPair, ...]
    log_more: tuple[LogMore, ...]
    settings: Settings
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": self.settings.to_dict(),
            "difference": self.difference,
            "pairs": [dict(vars(p)) for p in self.pairs],
            "log_more": [{**vars(m), "label": label_json(m.label)} for m in self.log_more],
            "notes": list(self.notes),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per pair."""
        numbers = ("detectable_now", "rows_80", "rows_90", "rate")
        rows = [
            {"a": p.a, "b": p.b, "verdict": p.verdict}
            | {key: None if (value := getattr(p, key)) is None else float(value) for key in numbers}
            for p in self.pairs
        ]
        return rows_to_frame(rows, backend)

    def pairs_table(self) -> Table:
        shown = sorted(self.pairs, key=lambda p: (p.verdict != "cannot tell", -(p.rows_80 or 0)))[:20]
        rows = [
            [p.a, p.b, p.verdict, number(p.detectable_now), count_text(p.rows_80), count_text(p.rows_90)] for p in shown
        ]
        notes = [
            f"detects: the smallest true difference that {len(self.log):,} rows decide 8 times in 10.",
            f"80%, 90%: rows in all, logged as these were, to decide a difference of {self.difference:g} that often.",
        ]
        if len(self.pairs) > len(shown):
            notes.append(f"{len(self.pairs) - len(shown)} more pairs are in the JSON output.")
        return Table("Rows needed", ["a", "b", "a is now", "detects", "80%", "90%"], rows, "lllrrr", notes)

    def log_more_table(self) -> Table:
        rows = [
            [
                m.kind,
                label_text(m.label),
                share(m.now),
                "-" if m.ideal is None else share(m.ideal),
                share(m.carries),
            ]
            for m in self.log_more
        ]
        notes = ["carries: its part in the variance of the undecided pairs. best: the share of rows that helps most."]
        return Table("What to log more of", ["", "label", "now", "best", "carries"], rows, "llrrr", notes)

    def blocks(self, width: int) -> list[Block]:
        aim = f"To detect a difference of {self.difference:g} in reward, by {self.settings.verdicts}"
        more = [self.log_more_table()] if self.log_more else []
        head = [repr(self.log), *describe_columns(self.log), aim]
        return [head, self.pairs_table(), *more, *([note] for note in self.notes)]


def count_text(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


# --- the arithmetic ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Precision:
    """(P,) arrays over the pairs: what a log of so many rows knows of each difference, and how fast more rows help.

    Attributes
    ----------
    rows : that the variances rest on
    variance : of the differences, without the prior's part, in squares of `unit`; inf where the log says nothing yet
    prior : variance of the differences before any row, which draws a posterior towards 0; inf where nothing does
    rate : the variance falls as rows^-rate
    freedom : degrees of freedom of a claim
    unit : of the rewards, so that squares of tiny and huge ones stay within range
    """

    rows: int
    variance: Floats
    prior: Floats
    rate: Floats
    freedom: Floats
    unit: float = 1.0

    @classmethod
    def of(cls, result: Comparison) -> Precision:
        judgement, basis = result.basis.judgement, result.basis
        unit = unit_of(float(np.ptp(basis.sample.rewards)))
        rows, v = judgement.rows or len(result.log), variance_without_prior(judgement, unit)
        rate, freedom = np.ones(len(v)), np.full(len(v), NORMAL)
        if judgement.mixture is not None:
            sample = as_judged(basis.sample, judgement.procedure)
            rate, freedom = falling_rates(gather(sample, basis.policies, unit), v), judgement.freedom
        return cls(rows, v, prior_variance(judgement, v), rate, freedom, unit)

    @np.errstate(over="ignore", invalid="ignore")  # where the log says nothing yet
    def detectable(self, level: float, power: float) -> Floats:
        """(P,) the true differences that these rows decide with this power."""
        return np.asarray(self.reached(self.variance, level, power) * self.unit)

    def reached(self, variance: Floats, level: float, power: float) -> Floats:
        """(P,) the true differences, in `unit`, that such variances decide with this power.

        A difference d + e, where e has variance s^2, is drawn towards 0 by the factor L = v_0 / (v_0 + s^2), and its
        posterior variance is L s^2. It is claimed if L (d + e) > t sqrt(L) s, that is, d + e > t s / sqrt(L).
        """
        from scipy.special import ndtri, stdtrit

        t = stdtrit(self.freedom, (1 + level) / 2)
        return np.asarray(np.sqrt(variance) * (t * np.sqrt(1 + variance / self.prior) + ndtri(power)))

    @np.errstate(over="ignore", under="ignore", invalid="ignore")  # more rows than can be counted
    def rows_needed(self, difference: float | Floats, level: float, power: float) -> Floats:
        """(P,) rows in all that decide a difference with this power; inf where the log says nothing yet."""
        low, high = np.full(len(self.variance), -HALVINGS), np.full(len(self.variance), HALVINGS)
        for _ in range(STEPS):  # by which power of 2 the variance must fall
            middle = (low + high) / 2
            enough = self.reached(self.variance * 2.0**-middle, level, power) * self.unit <= difference
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        exact = np.where(np.isfinite(self.variance), self.rows * 2.0 ** (high / self.rate), np.inf)
        return np.asarray(np.ceil(exact * (1 - ROUNDING)))  # no row more for what rounding adds to a whole number


@np.errstate(over="ignore", invalid="ignore")  # of pairs that the log says nothing about, or whose variance is huge
def variance_without_prior(judgement: Judgement, unit: float) -> Floats:
    """(P,) variances of the differences, in squares of a unit; inf where the log says nothing yet."""
    v = (np.where(judgement.usable, judgement.std_error, np.inf) / unit) ** 2
    return v if judgement.learned is None else np.asarray(v / judgement.learned)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def prior_variance(judgement: Judgement, variance: Floats) -> Floats:
    """(P,) the variance v_0 with which a share L = v_0 / (v_0 + s^2) was learned, given the variances s^2."""
    if judgement.learned is None:
        return np.full(len(variance), np.inf)
    prior = variance * judgement.learned / (1 - judgement.learned)
    return np.where(np.isfinite(prior), prior, np.inf)


def what_to_log(log: Log, policies: PolicySet, undecided: Sequence[tuple[int, int]]) -> tuple[LogMore, ...]:
    """Actions and states that carry the variance of the undecided pairs.

    With g = pi - mu the variance of a difference is a sum of g(a|s)^2 / B(a|s), least if actions are logged in
    proportion to |g|. B is the behaviour policy, or the actions' shares of the rows where that is unknown. A state that
    was seen once is not expected to return, so nobody can log more of it.
    """
    if not undecided or not all(p.has_full for p in policies):
        return ()
    share = np.bincount(log.action_codes, minlength=log.n_actions) / len(log)
    least = np.maximum(share, 1 / (2 * len(log)))
    if log.behavior is not None:
        behavior = log.behavior
    elif log.eligible is not None:
        behavior = shares_over(fitted_weights(len(log) * least, log.eligible), log.eligible)
    else:
        behavior = np.broadcast_to(least, (len(log), log.n_actions))
    full = [p.full(log.n_actions) for p in policies]
    wanted, carried = np.zeros(log.n_actions), np.zeros((len(log), log.n_actions))
    for i, j in undecided:
        gap = np.abs(full[i] - full[j])
        total = gap.sum()
        if total > 0:
            wanted += gap.sum(axis=0) / total
            part = gap**2 / np.maximum(behavior, 1e-12)
            carried += part / part.sum()
    if wanted.sum() == 0:
        return ()
    wanted, carried = wanted / wanted.sum(), carried / carried.sum()
    by_action = carried.sum(axis=0)
    found = [*actions_to_log(log.action_space, share, wanted, by_action)]
    by_state = group_sums(log.state_codes, carried.sum(axis=1), log.n_states)
    seen = np.bincount(log.state_codes, minlength=log.n_states)
    rows = seen / len(log)
    heavy = [s for s in descending(by_state) if seen[s] > 1 and by_state[s] > 2 * rows[s] + ROUNDING][:SHOWN]
    found += [LogMore("state", log.state_labels[s], float(rows[s]), None, float(by_state[s])) for s in heavy]
    return tuple(found)


def actions_to_log(actions: Sequence[Any], share: Floats, wanted: Floats, carried: Floats) -> tuple[LogMore, ...]:
    """The actions that carry the most variance, of those that were logged less often than is best."""
    return tuple(
        LogMore("action", plain(actions[a]), float(share[a]), float(wanted[a]), float(carried[a]))
        for a in descending(carried)[:SHOWN]
        if wanted[a] > share[a] + ROUNDING
    )


def positive(name: str, value: Any) -> float:
    """The difference that is to be detected."""
    real = isinstance(value, Real) and not isinstance(value, bool) and not is_huge(value)
    if not (real and 0 < value < np.inf):
        raise PodiumError(
            f"{name} must be a positive number; it is {shown(value)}",
            hint="name the smallest difference in reward that would matter to you.",
        )
    return float(value)


def make_plan(result: Comparison, difference: float) -> Plan:
    """The plan that goes with a comparison and the judgement behind it."""
    difference = positive("difference", difference)
    basis = result.basis
    sample, policies, judgement = basis.sample, basis.policies, basis.judgement
    level = result.settings.level
    precision = Precision.of(result)
    now = precision.detectable(level, POWERS[0])
    need = [precision.rows_needed(difference, level, power) for power in POWERS]
    names, (i, j) = policies.names, pair_indices(len(policies))
    order = {name: place for place, name in enumerate(result.ranking)}
    pairs, undecided = [], []
    for p in range(len(i)):
        a, b = sorted((names[i[p]], names[j[p]]), key=order.__getitem__)
        verdict = result.pair(a, b).verdict
        if verdict == "cannot tell":
            undecided.append((int(i[p]), int(j[p])))
        known = [None if not np.isfinite(x[p]) or x[p] > 1e15 else int(x[p]) for x in need]
        detects = float(now[p]) if np.isfinite(now[p]) else None
        pairs.append(PlannedPair(a, b, detects, known[0], known[1], verdict, float(precision.rate[p])))
    pairs.sort(key=lambda p: (order[p.a], order[p.b]))
    notes = [Fact("logged as before")]
    notes += [Fact("pairs without plan", why=why) for why in sorted(set(judgement.silent) - {""})]
    more: tuple[LogMore, ...] = ()
    if len(policies) * len(sample) * sample.n_actions <= MOST_CELLS:
        more = what_to_log(sample, policies, undecided)
    else:
        notes.append(Fact("plan too large"))
    if undecided and not all(p.has_full for p in policies):
        notes.append(Fact("plan needs policies"))
    return Plan(result.log, float(difference), tuple(pairs), more, result.settings, tuple(notes))
