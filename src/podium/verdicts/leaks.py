"""Alarms for state columns that were recorded after the action: they know the outcome, and hide the effect of actions.

Conditioning on such a column biases every method that looks at states. Three signs give it away:

- balance: it depends on the logged action beyond the known propensities (`verdicts.balance`), which no column that was
  known before the action can;
- repetition: it alone predicts the reward almost perfectly, leave-one-out, although actions differ within its values,
  and what it leaves unexplained does not depend on the action;
- contradiction: a verdict and DRE with a constant baseline, which conditions on nothing, differ on a pair by more than
  chance explains. The error of the gap is taken as that of independent estimates; as both aim at the same value and the
  verdict is the more precise one, the true error is smaller.

A column that predicts the reward well would do more harm. What it predicts is tested for balance once more, as a single
function and at a higher level.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Column, Floats, factorize, group_sums
from podium.data.facts import Fact
from podium.data.log import Log
from podium.policies import PolicySet
from podium.verdicts.balance import Balance, functions_of, in_levels, is_ordered, mixed_actions, ranks
from podium.verdicts.gated import clustered, policy_products
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices, pair_variance
from podium.verdicts.unseen_weight import Weights

# Chosen with seeds 1 to 5 of `python -m podium.calibration.leaks`; docs/leaks.md reports seed 6.
# The chances of an alarm on an honest log, by kind: for all columns together, for those that predict the reward well,
# and for all pairs together.
UNBALANCED, UNBALANCED_STRONG, CONTRADICTS = 0.004, 0.01, 0.005
PREDICTS = 0.5  # R2 from which a column counts as a good predictor of the reward
REPEATS = 0.98  # R2 from which it repeats the reward
DIFFER = 0.75  # how much actions must differ within the values of a column that repeats the reward
APART = 0.5  # p value of a gap below which other pairs are silent as well, where one pair is contradicted
DEPENDS = 0.05  # p value below which what is left unexplained depends on the action
FEW_ROWS = 30
ROWS_PER_BIN = 10
MOST_BINS = 500
LISTED = 20  # columns that a remedy lists
WARNINGS = {
    "column follows action, warning": "unbalanced",
    "column repeats reward, warning": "repeats the reward",
    "verdict contradicts DRE, warning": "contradicts DRE",
    "verdict contradicts DRE, column, warning": "contradicts DRE",
}
CONDITIONING = ("posterior", "gated", "doubly robust")  # procedures whose differences condition on the states


@dataclass(frozen=True)
class ColumnCheck:
    """What speaks for and against one state column.

    Attributes
    ----------
    p_value : the chance that a column known before the action is related to it this much, given the propensities
    r2 : the share of the reward's variance that the column predicts, leave-one-out
    alarm : "unbalanced", "repeats" or ""
    """

    column: str
    p_value: float
    r2: float
    alarm: str


def check_columns(log: Log) -> tuple[ColumnCheck, ...]:
    """Return what is found for every state column of a log; no policy plays a part."""
    balance, columns = Balance(log), log.state_columns
    predicted = {name: predict_best(column, log.rewards) for name, column in columns.items()}
    strong = max(1, sum(p.r2 >= PREDICTS for p in predicted.values()))
    found = []
    for name, column in columns.items():
        p, r2 = balance.p_value(functions_of(column)), predicted[name].r2
        p_strong = balance.p_value([predicted[name].scaled]) if r2 >= PREDICTS else 1.0
        alarm = ""
        if p * len(columns) < UNBALANCED or p_strong * strong < UNBALANCED_STRONG:
            alarm = "unbalanced"
        elif r2 >= REPEATS and repeats_reward(log, column, predicted[name].residual):
            alarm = "repeats"
        found.append(ColumnCheck(name, min(p, p_strong), r2, alarm))
    return tuple(found)


def silence_leaks(
    judgement: Judgement, log: Log, policies: PolicySet, checks: Sequence[ColumnCheck]
) -> tuple[Judgement, tuple[Fact, ...]]:
    """Return a judgement that is silent where an alarm rings, and the warnings to show."""
    alarms = [check for check in checks if check.alarm]
    if alarms:
        every = (reason_of(alarms, log),) * len(judgement.silent)
        return replace(judgement, silent=every), column_warnings(checks, log)
    apart = contradicted(judgement, log, policies)
    if not apart.any():
        return judgement, ()
    suspect = suspected(checks)
    code, fields = "verdict contradicts DRE", {"procedure": judgement.procedure}
    if suspect is not None:
        code, fields = f"{code}, column", {**fields, "column": suspect, "remedy": remedy(log, [suspect])}
    silent = tuple(Fact(code, **fields) if flag else old for flag, old in zip(apart, judgement.silent, strict=True))
    warning = Fact(f"{code}, warning", pairs=int(apart.sum()), of=len(apart), **fields)
    return replace(judgement, silent=silent), (warning,)


# --- what is said ------------------------------------------------------------------------------------------------


def leak_warnings(warnings: Sequence[str]) -> list[Fact]:
    """Return the warnings of this module among others."""
    return [w for w in warnings if isinstance(w, Fact) and w.code in WARNINGS]


def column_warnings(checks: Sequence[ColumnCheck], log: Log) -> tuple[Fact, ...]:
    """Return one warning for every column with an alarm."""
    alarms = [check for check in checks if check.alarm]
    without = remedy(log, [check.column for check in alarms])
    return tuple(
        Fact("column follows action, warning", column=check.column, p_value=check.p_value, remedy=without)
        if check.alarm == "unbalanced"
        else Fact("column repeats reward, warning", column=check.column, r2=check.r2, remedy=without)
        for check in alarms
    )


def reason_of(alarms: Sequence[ColumnCheck], log: Log) -> Fact:
    """Return why no pair gets a verdict: the most suspicious column, and what to do about all of them."""
    worst = min(alarms, key=lambda check: (check.alarm != "unbalanced", check.p_value, -check.r2))
    without = remedy(log, [check.column for check in alarms])
    if worst.alarm == "unbalanced":
        return Fact("column follows action", column=worst.column, remedy=without)
    return Fact("column repeats reward", column=worst.column, r2=worst.r2, remedy=without)


def remedy(log: Log, columns: Sequence[str]) -> str:
    """Return the options that name the state columns without some of them."""
    rest = [name for name in log.state_columns if name not in columns]
    if not rest:
        return "name another column with --state, or add a constant column"
    if len(rest) > LISTED:
        return f"name the other {len(rest):,} columns with --state"
    return " ".join(f"--state {shlex.quote(name)}" for name in rest)


def suspected(checks: Sequence[ColumnCheck]) -> str | None:
    """Return the column that most probably explains a contradiction: the least balanced, else the best predictor."""
    best = min(checks, key=lambda check: check.p_value, default=None)
    if best is not None and best.p_value < DEPENDS / len(checks):
        return best.column
    strong = [check for check in checks if check.r2 >= PREDICTS]
    return max(strong, key=lambda check: check.r2).column if strong else None


# --- a column and the reward -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prediction:
    """The best leave-one-out prediction of the reward from one column: its R2, the prediction scaled to 0..1 (N,), and
    what it leaves unexplained (N,), in units of the largest reward."""

    r2: float
    scaled: Floats
    residual: Floats


def predict_best(column: Column, rewards: Floats) -> Prediction:
    """Predict the reward, or its rank where the column repeats that: a few huge rewards would hide it."""
    found = predict(column, rewards)
    ranked = found if found.r2 >= REPEATS else predict(column, ranks(factorize(rewards)[0]))
    return ranked if ranked.r2 >= REPEATS else found


def predict(column: Column, rewards: Floats) -> Prediction:
    """Predict the reward by the means of levels (or of ranges of some ten rows) and, for numbers, by a line."""
    y = rewards - rewards.mean()
    size = float(np.abs(y).max(initial=0.0))
    if len(y) < FEW_ROWS or size <= 1e-12 * float(np.abs(rewards).max()):
        return Prediction(0.0, np.zeros(len(y)), np.zeros(len(y)))
    y = y / size
    codes, distinct = factorize(column)
    tries = []
    bins = max(2, min(MOST_BINS, len(y) // ROWS_PER_BIN))
    if is_ordered(column) and len(distinct) > bins:
        rank = ranks(codes)
        codes = factorize((rank * bins).astype(np.int64))[0]
        tries.append(outside_line(rank, y))
    tries.append(outside_level(codes, y))
    if column.dtype.kind in "iuf" and len(distinct) > 2:
        tries.append(outside_line(column.astype(np.float64), y))
    residual = min(tries, key=lambda e: float(e @ e))
    predicted = y - residual
    low, high = float(predicted.min()), float(predicted.max())
    scaled = (predicted - low) / (high - low) if high > low else np.zeros(len(y))
    return Prediction(max(0.0, 1 - float(residual @ residual) / float(y @ y)), scaled, residual)


def outside_level(codes: Codes, y: Floats) -> Floats:
    """Return y less the mean of the other rows of the same level; y itself where there are none (its mean is 0)."""
    counts = np.bincount(codes)[codes]
    others = group_sums(codes, y, int(codes.max()) + 1)[codes] - y
    residual: Floats = y - np.divide(others, counts - 1, out=np.zeros_like(y), where=counts > 1)
    return residual


def outside_line(x: Floats, y: Floats) -> Floats:
    """Return y less its prediction by a line through the other rows."""
    size = float(np.abs(x).max()) or 1.0
    x = x / size
    x = x - x.mean()
    spread = float(x @ x)
    if spread <= 1e-18 * len(x):
        return y
    leverage = np.minimum(1 / len(x) + x**2 / spread, 1 - 1e-9)
    residual: Floats = (y - y.mean() - x * float(x @ y) / spread) / (1 - leverage)
    return residual


def repeats_reward(log: Log, column: Column, residual: Floats) -> bool:
    """Whether a near-perfect prediction by one column is none that the state could honestly give.

    Actions must differ within its values, or the column only stands for the action; and what it leaves unexplained
    must not depend on the action, as it does when an earlier measurement predicts most of the reward.
    """
    certain = log.propensities is not None and bool((log.propensities > 1 - 1e-9).all())
    if certain or log.n_actions * 2 > len(log):
        return False
    fine = factorize(column)[0]
    if is_ordered(column):
        fine = (ranks(fine) * (len(log) / ROWS_PER_BIN)).astype(np.int64)
    if mixed_actions(log.action_codes, fine) < DIFFER:
        return False
    actions = log.action_codes
    cells = in_levels(column) * log.n_actions + actions
    return all(depends(residual, codes) >= DEPENDS for codes in (actions, cells))


def depends(y: Floats, codes: Codes) -> float:
    """Return the p value of the F test that the mean of y is the same in every group of two rows or more."""
    from scipy.special import fdtrc

    codes = factorize(codes)[0]
    counts = np.bincount(codes)
    kept = counts[codes] > 1
    codes, y = factorize(codes[kept])[0], y[kept]
    groups = int(codes.max(initial=-1)) + 1
    if groups < 2 or len(y) <= groups:
        return 1.0
    means = group_sums(codes, y, groups) / np.bincount(codes)
    within = float(((y - means[codes]) ** 2).sum())
    between = float(((means[codes] - y.mean()) ** 2).sum())
    if within <= 1e-24 * len(y):  # rewards are on a scale of 1: nothing is left but rounding
        return 1.0 if between <= 1e-24 * len(y) else 0.0
    return float(fdtrc(groups - 1, len(y) - groups, between / (groups - 1) / (within / (len(y) - groups))))


# --- a verdict and DRE -------------------------------------------------------------------------------------------


def contradicted(judgement: Judgement, log: Log, policies: PolicySet) -> NDArray[np.bool_]:
    """(P,) which pairs a verdict and DRE place apart; none unless one of them is so far apart that chance is excluded.

    That is judged over all pairs. Where it is excluded for one, the states mislead, and of the others only pairs that
    are no further apart than usual keep their verdicts.
    """
    from scipy.special import stdtr

    usable = judgement.usable
    none = np.zeros(len(usable), dtype=bool)
    known = log.knows in ("full", "logged") and not policies.proxies
    if not known or judgement.procedure not in CONDITIONING or not usable.any() or len(log) < FEW_ROWS:
        return none
    difference, error, freedom = unconditional_differences(log, policies)
    gap = np.abs(difference - judgement.difference)
    total = np.hypot(error, judgement.std_error)
    sure = usable & np.isfinite(total) & (total > 0)
    t = np.divide(gap, total, out=np.zeros_like(gap), where=sure)
    dre = np.divide(error, total, out=np.ones_like(total), where=sure) ** 2  # its share of the variance
    degrees = 1 / (dre**2 / freedom + (1 - dre) ** 2 / judgement.freedom)  # Welch and Satterthwaite
    p = np.where(sure, 2 * stdtr(degrees, -t), 1.0)
    return none if p.min() * len(p) >= CONTRADICTS else sure & (p < APART)


def unconditional_differences(log: Log, policies: PolicySet) -> tuple[Floats, Floats, Floats]:
    """(P,) differences by DRE with the mean reward as its baseline, their errors (nan: unknown), degrees of freedom."""
    assert log.propensities is not None
    i, j = pair_indices(len(policies))
    n = len(log)
    y = log.rewards - log.rewards.mean()
    size = float(np.abs(y).max()) or 1.0
    groupings = [log.state_codes] + ([] if log.units is None else [factorize(log.units)[0]])
    found = [clustered(policies, np.arange(n), y / size / log.propensities, codes) for codes in groupings]
    value = found[0][0].sum(axis=0) / n
    error = np.max([e for _, e, _ in found], axis=0)
    spread = float(np.std(y / size))
    if log.behavior is not None and all(p.has_full for p in policies):
        floor = spread * np.sqrt(pair_variance(policy_products(log, policies, "DRE"), i, j) / n)
    else:
        weights = [p.logged / log.propensities for p in policies]
        totals, second, largest = (np.array([f(w) for w in weights]) for f in (np.sum, sum_of_squares, np.max))
        floor = spread * Weights(policies.names, n, totals, second, largest).errors(i, j)
    freedom = np.min([f for _, _, f in found], axis=0)
    return size * (value[i] - value[j]), size * np.maximum(error, floor), freedom


def sum_of_squares(x: Floats) -> float:
    return float(x @ x)
