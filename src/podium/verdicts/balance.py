"""Whether a state column is balanced: unrelated to the logged action, given the probabilities of the actions.

A column that was known before the action cannot depend on it beyond B(a|s). For every function f of the states

    E sum_n (1[a_n = a] - B(a|s_n)) f(s_n) = 0

and the variance of this sum follows from B alone. Here f is the rank of a number, and an indicator for each level of a
text (or sixth of the numbers), so that single values do not dominate; its mean is taken out, so that shares which were
declared a little wrong do no harm. The sums U of all actions are combined to Q = U' V^-1 U, which is chi-square in
large logs. In small ones its variance, which B gives as well, is larger, and Q is divided by a factor for that. Actions
too rare for a sum that is nearly normal are left out. Rows of one unit may have been assigned together; then every
action and f has a t test on the sums of the units.

Where only p_n is known, E[1[a_n = a] / p_n f(s_n)] <= E f(s_n) for every f >= 0, with equality if a is possible in
every state. Only an excess is held against a column, since an action may be impossible in some states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Column, Floats, descending, factorize, group_sums
from podium.data.log import Log
from podium.verdicts.pairs import degrees_of_freedom

LEVELS = 20  # levels of a text that are looked at; the others are one
BINS = 6  # of numbers
LEVEL_ROWS = 20  # rows of a level, below which it counts among the others
FREQUENT = 10  # actions that are looked at where only p_n is known
EXPECTED = 5.0  # rows that B expects of a group of actions
GROUPS = 100  # groups of actions, at most
WORK = 2_000_000  # rows x groups^2 of one sum of products, at most
SINGULAR = 1e-6  # eigenvalues of a correlation matrix below this are rounding
SMALL = 0.02  # p values above this are not worth a correction
KURTOSIS = 0.25  # of a sum beyond which its distribution is too far from a normal one


@dataclass(frozen=True, eq=False)
class Balance:
    """The logged actions beside their known probabilities."""

    log: Log

    @property
    def testable(self) -> bool:
        """Whether propensities were logged or declared: estimated ones follow the column that is to be tested."""
        return self.log.knows in ("full", "logged") and len(self.log) >= LEVEL_ROWS

    @cached_property
    def grouped(self) -> tuple[Floats, Floats]:
        return grouped_actions(self.log)

    @cached_property
    def units(self) -> Codes:
        """(N,) rows that may have been assigned together."""
        return np.arange(len(self.log)) if self.log.units is None else factorize(self.log.units)[0]

    def p_value(self, functions: Sequence[Floats]) -> float:
        """The chance that functions (N,) in 0..1 of states known before the action are related to it this much.

        Several functions are adjusted for; 1 where nothing can be tested.
        """
        if not self.testable:
            return 1.0
        if self.log.behavior is None:
            found = excess(self.log, self.units, functions)
        elif self.log.units is not None:
            found = by_units(self.units, functions, *self.grouped)
        else:
            found = [score_test(f - f.mean(), *self.grouped) for f in functions]
        return min([1.0, *(len(found) * p for p in found)])


# --- functions of a column ---------------------------------------------------------------------------------------


def ranks(codes: Codes) -> Floats:
    """(N,) mid-ranks of the rows' values, from 0 to 1."""
    counts = np.bincount(codes)
    middle: Floats = (np.cumsum(counts) - counts / 2) / len(codes)
    return middle[codes]


def is_ordered(column: Column) -> bool:
    """Whether values have an order that means something: numbers and times, not texts."""
    return column.dtype.kind != "O" or not isinstance(column[0], str)


def in_levels(column: Column, bins: int = BINS) -> Codes:
    """(N,) which level a row has: the value, for numbers of many values a range of them; rare texts share a level."""
    codes, distinct = factorize(column)
    if is_ordered(column) and len(distinct) > bins:
        codes = factorize(np.minimum((ranks(codes) * bins).astype(np.int64), bins - 1))[0]
    counts = np.bincount(codes)
    kept = descending(counts.astype(np.float64))[:LEVELS]
    place = np.full(len(counts), LEVELS)
    place[kept] = np.where(counts[kept] >= LEVEL_ROWS, np.arange(len(kept)), LEVELS)
    return factorize(place[codes])[0]


def functions_of(column: Column) -> list[Floats]:
    """Functions of a column in 0..1: the ranks of numbers, and indicators of levels."""
    codes, distinct = factorize(column)
    levels = in_levels(column)
    many = int(levels.max()) + 1
    found = [ranks(codes)] if is_ordered(column) and len(distinct) > 2 else []
    found += [(levels == level).astype(np.float64) for level in range(many if many > 2 else many - 1)]
    return found


# --- the whole behavior policy is known --------------------------------------------------------------------------


def grouped_actions(log: Log) -> tuple[Floats, Floats]:
    """(N, G) 1[a_n in g] - B(g|s_n), and B(g|s_n), for groups of actions that are expected often enough."""
    assert log.behavior is not None
    n, expected = len(log), log.behavior.sum(axis=0)
    most = max(2, min(GROUPS, int(np.sqrt(WORK / n))))
    least = EXPECTED if log.n_actions <= most else max(EXPECTED, n / most)
    group, filled, mass = np.empty(log.n_actions, dtype=np.int64), 0, 0.0
    for action in descending(expected):  # rare actions share a group
        group[action] = min(filled, most - 1)
        mass += expected[action]
        if mass >= least:
            filled, mass = filled + 1, 0.0
    if mass < least and filled:
        group[group == filled] = filled - 1
    chances = np.zeros((n, int(group.max()) + 1))
    for action, place in enumerate(group):
        chances[:, place] += log.behavior[:, action]
    gaps = -chances
    gaps[np.arange(n), group[log.action_codes]] += 1.0
    return gaps, chances


def score_test(f: Floats, gaps: Floats, chances: Floats) -> float:
    """The chance of so large a Q for one function of the states: that of c chi2, Var(c chi2) = c^2 Var(Q) under B.

    With u_n = 1[a_n] - B_n and W the inverse of V, Var Q <= 2 rank + sum_n Var(f_n^2 u_n' W u_n).
    """
    from scipy.special import chdtrc

    square = f**2
    heavy = chances * square[:, None]
    variance: Floats = np.diag(heavy.sum(axis=0)) - heavy.T @ chances
    each = chances * (1 - chances)
    fourth = square**2 @ (each * (1 - 6 * each))  # fourth cumulants of the sums
    steady = (np.diag(variance) > 0) & (fourth <= KURTOSIS * np.diag(variance) ** 2)
    inverse, rank = pseudo_inverse(variance, steady)
    if rank < 1:
        return 1.0
    total = gaps.T @ f
    q = max(float(total @ inverse @ total), 0.0)
    if (plain := float(chdtrc(rank, q))) > SMALL:  # the factor would only raise it
        return plain
    crossed = chances @ inverse
    alone = square[:, None] * (np.diag(inverse) - 2 * crossed + (crossed * chances).sum(axis=1, keepdims=True))
    mean = (chances * alone).sum(axis=1)
    extra = float((chances * alone**2).sum() - mean @ mean)
    stretch = 1 + max(extra, 0.0) / (2 * rank)
    return float(chdtrc(rank, q / stretch))


def pseudo_inverse(variance: Floats, kept: NDArray[np.bool_]) -> tuple[Floats, int]:
    """The inverse of a variance on the directions of some coordinates that vary, and how many directions there are."""
    scale = np.zeros(len(variance))
    scale[kept] = 1 / np.sqrt(np.diag(variance)[kept])
    values, axes = np.linalg.eigh(scale[:, None] * variance * scale)
    vary = values > SINGULAR
    roots = scale[:, None] * axes[:, vary] / np.sqrt(values[vary])
    inverse: Floats = roots @ roots.T
    return inverse, int(vary.sum())


def by_units(units: Codes, functions: Sequence[Floats], gaps: Floats, chances: Floats) -> list[float]:
    """P values of t tests on the sums of units, for all functions and groups of actions."""
    found: list[float] = []
    for f in functions:
        centered = f - f.mean()
        design = centered**2 @ (chances * (1 - chances))
        found += [2 * sum_p(centered * gap, units, float(v)) for gap, v in zip(gaps.T, design, strict=True)]
    return found


# --- only the logged actions' probabilities are known ------------------------------------------------------------


def excess(log: Log, units: Codes, functions: Sequence[Floats]) -> list[float]:
    """P values of an excess of weighted rows, for all functions, either way round, and frequent actions."""
    assert log.propensities is not None
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    found = []
    for action in (a for a in descending(counts.astype(np.float64))[:FREQUENT] if counts[a] >= LEVEL_ROWS):
        weight = (log.action_codes == action) / log.propensities
        spread = weight * (1 / log.propensities - 1)  # its sum estimates the variance, also where no row differs
        possible = 1.0 if log.eligible is None else log.eligible[:, action]
        for f in functions:
            found += [sum_p((weight - possible) * g, units, float(spread @ g**2), above=True) for g in (f, 1 - f)]
    return found


def sum_p(terms: Floats, units: Codes, variance: float, above: bool = False) -> float:
    """The chance (one-sided) of so large a sum of terms whose mean is 0, or at most 0, clustered by unit."""
    from scipy.special import stdtr

    many = int(units.max()) + 1
    sums = group_sums(units, terms, many)
    second = float(sums @ sums)  # around 0, the mean that is tested: a few units that agree prove little
    if many < 2 or max(second, variance) <= 0:
        return 1.0
    fourth = float(sums**2 @ sums**2) / max(second**2, 1e-300)
    freedom = float(degrees_of_freedom(np.array([fourth]), many)[0])
    t = float(sums.sum()) / float(np.sqrt(max(second, variance)))
    return float(stdtr(freedom, -(t if above else abs(t))))


def mixed_actions(actions: Codes, levels: Codes) -> float:
    """How much actions differ within levels, beside how much they differ in all rows; 1 where levels say nothing.

    >>> mixed_actions(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    0.0
    """

    def pairs(codes: Codes) -> float:
        counts = np.unique(codes, return_counts=True)[1].astype(np.float64)
        return float((counts * (counts - 1)).sum())

    inside = levels * (int(actions.max()) + 1) + actions
    n = float(len(actions))
    differing, alike = n * (n - 1) - pairs(actions), pairs(levels)
    if differing <= 0 or alike <= 0:
        return 0.0
    return (1 - pairs(inside) / alike) / (differing / (n * (n - 1)))
