"""Differences within groups as averages of row terms, shrunk towards what all groups share.

This serves pairs that the posterior does not judge: each group's difference, error and degrees of freedom are those
that the gated or the doubly robust procedure finds on the rows of that group alone, floors included. Groups tell
something of each other: with d_g ~ N(theta_g, se_g^2) and theta_g ~ N(mu, tau^2), mu flat, the posterior of theta_g
given tau is normal. How strongly groups are shrunk is not known, so the shrinkage factor of a typical group,
s^2 / (s^2 + tau^2), is uniform between 0 and 1 a priori (Daniels 1999, the uniform shrinkage prior) and integrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.grouping import Grouping
from podium.data.log import Log
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.engines.wider import fold_with
from podium.estimates.methods import Method, group_count, result_of
from podium.estimates.results import TermSums, Wanted, near_pairs
from podium.policies import PolicySet
from podium.verdicts.doubly_robust import judge_every_row
from podium.verdicts.gated import Gates
from podium.verdicts.mixture import Mixture

FACTORS = np.arange(0.05, 1.0, 0.1)  # shrinkage factors that are integrated over
FEWEST = 2  # rows of a group without which it has no difference of its own


@dataclass(frozen=True, eq=False)
class RowDifferences:
    """(P, G) differences, errors (nan: none), degrees of freedom, and why no claim may be made ("" where one may)."""

    difference: Floats
    std_error: Floats
    freedom: Floats
    silent: list[list[str]]

    @classmethod
    def empty(cls, pairs: int, groups: int) -> RowDifferences:
        shape = (pairs, groups)
        nothing = [[""] * groups for _ in range(pairs)]
        return cls(np.zeros(shape), np.full(shape, np.nan), np.ones(shape), nothing)

    def put(self, g: int, difference: Floats, std_error: Floats, freedom: Floats, silent: Sequence[str]) -> None:
        """Set what is known of one group."""
        self.difference[:, g], self.std_error[:, g], self.freedom[:, g] = difference, std_error, freedom
        for pair, reason in enumerate(silent):
            self.silent[pair][g] = reason


def taken(policies: PolicySet, rows: Codes) -> PolicySet:
    return PolicySet(tuple(p.take(rows) for p in policies))


def column_of(log: Log, name: str) -> Any:
    """The values of a column, as the file has them where it is in a file."""
    return log.columns[name] if name in log.columns else log.state_columns[name]


# --- every row --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupRows(Rows):
    """The rows of one group; of a large log, the sample of them."""

    size: int = field(default=0, kw_only=True)

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True, eq=False)
class ByGroup:
    """Sums of the groups that some rows have."""

    each: Mapping[int, Any]

    def __add__(self, other: ByGroup) -> ByGroup:
        merged = dict(self.each)
        for g, sums in other.each.items():
            merged[g] = merged[g] + sums if g in merged else sums
        return ByGroup(merged)


def sum_groups(parts: Iterable[Part], method: Method, wanted: Wanted, grouping: Grouping) -> ByGroup:
    """The sums of a method's terms in every group."""
    total = ByGroup({})
    for part in parts:
        codes = grouping.codes(column_of(part.log, grouping.column))
        found = {}
        for g in np.unique(codes[codes >= 0]).tolist():
            rows = np.flatnonzero(codes == g)
            units = None if part.units is None else part.units[rows]
            own = Part(part.rows[rows], part.log.take(rows), taken(part.policies, rows), None, units)
            found[g] = TermSums.of(method.terms(own), own, method.gain, wanted, method.unit)
        total = total + ByGroup(found)
    return total


def by_every_row(rows: Rows, method: Method, grouping: Grouping, codes: Codes, seed: int) -> RowDifferences:
    """Doubly robust differences in every group, from all rows; `codes` are those of the sample."""
    near = near_pairs(method.terms(rows.sample_part), rows.whole)
    wanted = Wanted(paired=method.paired, near=near, groups=group_count(rows, method))
    work = partial(sum_groups, method=method, wanted=wanted, grouping=grouping)
    sums = fold_with(rows, [grouping.column], work, "groups").each
    pairs = len(rows.policies) * (len(rows.policies) - 1) // 2
    found = RowDifferences.empty(pairs, len(grouping))
    for g in range(len(grouping)):
        some = np.flatnonzero(codes == g)
        if len(some) < FEWEST or g not in sums:
            continue
        own = GroupRows(
            rows.log, rows.sample.take(some), taken(rows.policies, some), rows.source, rows.groups,
            rows.numbers[some], size=sums[g].moments.count,
        )  # fmt: skip
        judged = judge_every_row(own, method, result_of(method, sums[g], wanted, seed))
        found.put(g, judged.difference, judged.std_error, judged.freedom, judged.silent)
    return found


# --- the gated procedure ------------------------------------------------------------------------------------------


def by_gated(log: Log, policies: PolicySet, path: Sequence[str], grouping: Grouping, codes: Codes) -> RowDifferences:
    """Differences in every group by the path (LDE or DRE) that each pair was judged by."""
    found = RowDifferences.empty(len(path), len(grouping))
    use_dre = np.array([name == "DRE" for name in path])
    for g in range(len(grouping)):
        some = np.flatnonzero(codes == g)
        if len(some) < FEWEST:
            continue
        gates = Gates(log.take(some), taken(policies, some))
        lde, dre = gates.lde, gates.dre if use_dre.any() else None
        other = lde if dre is None else dre
        difference, std_error, freedom = (
            np.where(use_dre, getattr(other, name), getattr(lde, name))
            for name in ("difference", "std_error", "freedom")
        )
        found.put(g, difference, std_error, freedom, [""] * len(path))
    return found


# --- shrinking ----------------------------------------------------------------------------------------------------


def shrunk(found: RowDifferences) -> tuple[Mixture, Floats, Floats]:
    """The distribution of every pair in every group, (P * G,) columns, with its mean and standard error."""
    pairs, groups = found.difference.shape
    shape = (len(FACTORS), pairs, groups)
    weights, means, scales = np.full(shape, 1 / len(FACTORS)), np.zeros(shape), np.ones(shape)
    error = np.full((pairs, groups), np.nan)
    for pair in range(pairs):
        known = np.isfinite(found.std_error[pair]) & (found.std_error[pair] > 0)
        if known.any():
            w, m, s = normal_normal(found.difference[pair, known], found.std_error[pair, known])
            weights[:, pair, known], means[:, pair, known], scales[:, pair, known] = w[:, None], m, s
            centre = w @ m
            error[pair, known] = np.sqrt(w @ (s**2 + (m - centre) ** 2))
    flat = (len(FACTORS), pairs * groups)
    mixture = Mixture(weights.reshape(flat), means.reshape(flat), scales.reshape(flat), found.freedom.ravel())
    return mixture, mixture.mean, error.ravel()


def normal_normal(d: Floats, se: Floats) -> tuple[Floats, Floats, Floats]:
    """(F,) weights of the shrinkage factors; (F, G) means and standard errors of the groups' own differences.

    >>> w, m, s = normal_normal(np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    >>> (w @ m).round(6).tolist()
    [1.0, 1.0]
    """
    typical = 1 / np.mean(1 / se**2)
    tau2 = typical * (1 / FACTORS - 1)[:, None]
    precision = 1 / (se**2 + tau2)  # (F, G)
    total = precision.sum(axis=1, keepdims=True)
    mu = (precision * d).sum(axis=1, keepdims=True) / total
    log_weight = 0.5 * (np.log(precision).sum(axis=1) - np.log(total[:, 0]) - (precision * (d - mu) ** 2).sum(axis=1))
    weight = np.exp(log_weight - log_weight.max())
    pull = se**2 * precision  # towards mu
    variance = (1 - pull) * se**2 + pull**2 / total
    return weight / weight.sum(), pull * mu + (1 - pull) * d, np.sqrt(variance)
