"""Sums over rows that merge: what a pass over a log is asked, and what a batch answers without knowing its states.

Rewards are centred on their mean and divided by their largest distance from it, x_n. Policies enter as
d_k = pi_k - pi_0, their difference from the first one, and pairs that are nearly equal as columns of their own, so that
no difference is what is left of two large sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import Codes, Floats
from podium.engines.batches import Batch
from podium.moments import GroupSums, Moments

BUCKETS = 1024  # random groups of rows for resampling
ELSEWHERE = 1e-6  # a policy's probability of actions never logged in the same state that counts as none
UNITS = 4096  # units beyond that number are put into as many random groups


@dataclass(frozen=True, eq=False)
class Sums:
    """What is known of some rows, by name: arrays that add up, arrays of which the largest counts, and moments.

    Examples
    --------
    >>> a = Sums({"rows": np.array(2.0)}, {"weight": np.array(3.0)})
    >>> b = Sums({"rows": np.array(1.0)}, {"weight": np.array(5.0)})
    >>> (a + b).add["rows"].item(), (a + b).top["weight"].item()
    (3.0, 5.0)
    """

    add: dict[str, Floats] = field(default_factory=dict)
    top: dict[str, Floats] = field(default_factory=dict)
    moments: dict[str, Moments | GroupSums] = field(default_factory=dict)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            {name: joined(self.add, other.add, name, np.add) for name in self.add | other.add},
            {name: joined(self.top, other.top, name, np.maximum) for name in self.top | other.top},
            {name: joined(self.moments, other.moments, name, plus) for name in self.moments | other.moments},
        )


def joined(ours: dict[str, Any], theirs: dict[str, Any], name: str, operation: Any) -> Any:
    if name not in ours or name not in theirs:
        return ours.get(name, theirs.get(name))
    return operation(ours[name], theirs[name])


def plus(a: Any, b: Any) -> Any:
    return a + b


@dataclass(frozen=True, eq=False)
class Question:
    """What a pass over a log is to find out; the same on every engine.

    Parameters
    ----------
    rows, actions, policies : N, A, K
    centre, size : mean reward, and the largest distance of a reward from it
    largest : the largest absolute reward: gaps that are rounding next to it are none
    near : pairs of policies that are subtracted row by row
    propensities : whether rows carry p_n
    full : every policy is known at every action
    behavior : so is the behaviour policy
    states : rows come state by state: gates, state sums, the most recent rows
    log_p : mean of log p_n; where p is unknown, of the logarithm of the action's count
    action_logs : (A,) those logarithms
    families : (weighted by 1/p, rows kept) of the methods whose estimates are wanted
    terms : methods whose pairs are judged by row terms: (name, weighted, kept, constant baseline or None)
    resampled : the method among them whose terms are summed into random groups of rows
    coverage : the trust panel's figures of each policy
    own : the spread of each value by itself, for its error
    alone : rows alone in their state count for LDE, held against the mean of all rows
    hidden : policies play actions that were never logged in the same state, so DRE's design error cannot be had
    seed : of the random groups
    """

    rows: int
    actions: int
    policies: int
    centre: float
    size: float
    largest: float
    near: tuple[tuple[int, int], ...] = ()
    propensities: bool = False
    full: bool = False
    behavior: bool = False
    states: bool = True
    gates: bool = True
    log_p: float = 0.0
    action_logs: Floats | None = None
    families: tuple[tuple[bool, str], ...] = ()
    terms: tuple[tuple[str, bool, str, float | None], ...] = ()
    resampled: str = ""
    coverage: bool = False
    own: bool = False
    alone: bool = True
    hidden: bool = False
    units: int = 0
    seed: int = 0

    @property
    def columns(self) -> int:
        return self.policies + len(self.near)

    @property
    def by_log(self) -> bool:
        """Some probabilities are known at the logged actions alone, where DRE's error may have to come from the log."""
        return self.gates and self.propensities and not (self.full and self.behavior)


@dataclass(frozen=True, eq=False)
class Gaps:
    """Columns in which policies differ: (n, K + E) d_k, and pi_i - pi_j of the pairs that are nearly equal."""

    policy: Floats
    gaps: Floats
    x: Floats  # (n,) centred and scaled reward
    inverse: Floats | None  # (n,) 1/p
    first: Floats  # (n,) pi_0

    @classmethod
    def of(cls, batch: Batch, question: Question) -> Gaps:
        k = question.policies
        gaps = np.empty((question.columns, len(batch))).T  # column by column, as the policies come
        first = np.ascontiguousarray(batch.policy[:, 0])
        for i in range(k):
            np.subtract(batch.policy[:, i], first, out=gaps[:, i])
        for e, (i, j) in enumerate(question.near):
            np.subtract(batch.policy[:, i], batch.policy[:, j], out=gaps[:, k + e])
        x = (batch.reward - question.centre) / question.size
        inverse = None if batch.propensity is None else 1.0 / batch.propensity
        return cls(batch.policy, gaps, x, inverse, first)


# --- sums over rows --------------------------------------------------------------------------------------------------


def row_sums(batch: Batch, question: Question, data: Gaps) -> Sums:
    """What needs no state: estimates, row terms of pairs, coverage, what the policies imply."""
    latest = batch.latest
    add: dict[str, Floats] = {"rows": np.array(float(len(batch)))}
    top: dict[str, Floats] = {}
    moments: dict[str, Moments | GroupSums] = {}
    if latest is not None:
        add["kept"] = np.array(float(np.count_nonzero(latest)))
        add["kept_x"] = np.array(float(data.x[latest].sum()))
        add["seen_in"] = np.bincount(batch.action[latest], minlength=question.actions).astype(float)
    weights = {key: family_weight(batch, data, *key) for key in question.families}
    named = {f"{family(*key)} 1": weight for key, weight in weights.items()}
    named |= {f"{family(*key)} x": weight * data.x for key, weight in weights.items()}
    add |= dict(zip(named, sum_columns(list(named.values()), data), strict=True)) if named else {}
    for (weighted, kept), weight in weights.items():
        if batch.baseline is not None:
            terms = weight * (batch.reward - batch.baseline) / question.size
            key = f"{family(weighted, kept)} based"
            (add[key],) = sum_columns([terms], data)
            mask = latest if kept == "latest" and latest is not None else np.ones(len(batch), dtype=bool)
            if batch.averages is not None:
                add[f"{family(weighted, kept)} averages"] = np.array(1.0)
                add[key] = add[key] + with_gaps(batch.averages[mask].sum(axis=0), question.near) / question.size
            add[key + " level"] = np.array(float(batch.baseline[mask].sum()))
    for name, weighted, kept, constant in question.terms:
        part, terms = method_terms(batch, question, data, weighted, kept, constant)
        if not len(terms):
            continue
        if name == question.resampled:
            groups, pieces = (batch.unit, question.units) if batch.unit is not None else (None, BUCKETS)
            codes = row_buckets(batch.rows, question.seed) if groups is None else groups
            codes = codes if part is None else codes[part]
            moments[f"{name} pieces"] = group_by(codes, terms, pieces)
        moments[f"{name} terms"] = near_moments(terms, question.policies)  # which overwrites the terms
    if question.own:
        for weighted, kept in question.families:
            own_moments(batch, question, data, weighted, kept, moments)
    if question.coverage or question.by_log:
        weight = policy_weights(batch, data, add, top)
        if question.coverage:
            terms = np.abs(data.x[:, None] * weight)
            add["terms"], top["terms"] = terms.sum(axis=0), terms.max(axis=0)
    if question.full and question.gates:
        implied(batch, question, add)
    return Sums(add, top, moments)


def family(weighted: bool, kept: str) -> str:
    return f"{'1/p' if weighted else '1'} {kept}"


def family_weight(batch: Batch, data: Gaps, weighted: bool, kept: str) -> Floats:
    weight = data.inverse if weighted else np.ones(len(batch))
    assert weight is not None
    return weight * batch.latest if kept == "latest" and batch.latest is not None else weight


def sum_columns(weights: Sequence[Floats], data: Gaps) -> list[Floats]:
    """For each weight (1 + K + E,) sums of it times pi_0, and times every gap."""
    stacked = np.stack(weights)
    return [*np.column_stack([stacked @ data.first, stacked @ data.gaps])]


def with_gaps(values: Floats, near: tuple[tuple[int, int], ...]) -> Floats:
    """Values (K,) as pi_0's, every gap to it, and the gaps of near pairs."""
    return np.array([values[0], *(values - values[0]), *(values[i] - values[j] for i, j in near)])


def method_terms(
    batch: Batch, question: Question, data: Gaps, weighted: bool, kept: str, constant: float | None
) -> tuple[NDArray[np.bool_] | None, Floats]:
    """(n, K + E) one method's row terms on the rows that it keeps, less those of policy 0; and which rows these are."""
    rows = batch.latest if kept == "latest" else None
    pick: Any = slice(None) if rows is None else rows
    base = batch.baseline if constant is None and batch.baseline is not None else (constant or 0.0)
    residual = (batch.reward - base)[pick]
    if weighted and data.inverse is not None:
        residual = residual * data.inverse[pick]
    terms = residual[:, None] * data.gaps[pick]
    if constant is None and batch.averages is not None:
        averages = batch.averages[pick]
        terms[:, : question.policies] += averages - averages[:, :1]
        for e, (i, j) in enumerate(question.near):
            terms[:, question.policies + e] += averages[:, i] - averages[:, j]
    return rows, terms


def own_moments(
    batch: Batch, question: Question, data: Gaps, weighted: bool, kept: str, moments: dict[str, Moments | GroupSums]
) -> None:
    """Moments of what the values of one family are made of, by row (and unit): x w, w and x with constant baselines, as
    they can be found afterwards; the terms with rhat themselves where batches bring it."""
    pick: Any = batch.latest if kept == "latest" and batch.latest is not None else slice(None)
    weight = batch.policy[pick]
    if weighted and data.inverse is not None:
        weight = weight * data.inverse[pick][:, None]
    x, name = data.x[pick][:, None], family(weighted, kept)
    columns = {f"{name} own": np.hstack([x * weight, weight, x])}
    if batch.baseline is not None:
        base = batch.baseline[pick][:, None]
        residual, centre = batch.reward[pick][:, None] - base, question.centre
        average = base if batch.averages is None else batch.averages[pick]
        columns[f"{name} own based"] = (residual * weight + (average - centre)) / question.size
    for key, found in columns.items():
        if len(found) and batch.unit is None:
            moments[key] = Moments.of(found)
        elif len(found) and batch.unit is not None:
            moments[key] = group_by(batch.unit[pick], found, question.units)


def near_moments(terms: Floats, policies: int) -> Moments:
    """Moments of the K columns, with those of near pairs as further diagonal entries alone."""
    mean = np.ones(len(terms)) @ terms / len(terms)
    centred = np.subtract(terms, mean, out=terms)
    if terms.shape[1] == policies:
        return Moments(len(terms), mean, centred.T @ centred)
    scatter = np.zeros((terms.shape[1], terms.shape[1]))
    scatter[:policies, :policies] = centred[:, :policies].T @ centred[:, :policies]
    rest = np.arange(policies, terms.shape[1])
    scatter[rest, rest] = np.einsum("nk,nk->k", centred[:, policies:], centred[:, policies:])
    return Moments(len(terms), mean, scatter)


def group_by(codes: Codes, terms: Floats, groups: int) -> GroupSums:
    """Sums (groups, C) of the rows of each group."""
    from scipy.sparse import csr_array

    n = len(codes)
    pick = csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, groups))
    return GroupSums(np.bincount(codes, minlength=groups).astype(float), np.asarray(pick.T @ terms))


def row_buckets(rows: Codes, seed: int) -> Codes:
    """A random group of `BUCKETS` for each row number: the same whatever the order or the engine."""
    return (mixed(rows.astype(np.uint64), seed) % np.uint64(BUCKETS)).astype(np.int64)


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 of a number and a seed (Steele, Lea and Flood, 2014): bits that look random."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(31))


def policy_weights(batch: Batch, data: Gaps, add: dict[str, Floats], top: dict[str, Floats]) -> Floats:
    """(n, K) each policy's weights pi/p; their sums, their squares' sums and the largest are added."""
    weight = batch.policy if data.inverse is None else batch.policy * data.inverse[:, None]
    add["weight"] = weight.sum(axis=0)
    add["weight2"] = np.einsum("nk,nk->k", weight, weight)
    top["weight"] = weight.max(axis=0)
    return weight


def implied(batch: Batch, question: Question, add: dict[str, Floats]) -> None:
    """H of every pair, from the whole distributions: of policies less the first, and of near pairs.

    LDE: A sum_a g^2; DRE: sum_a g^2 / B; disagreement: sum_a B (A - 1/B)^2 g^2; summed over rows.
    """
    a, k = question.actions, question.policies
    kinds = ["LDE", *(["DRE", "disagreement"] if question.behavior else [])]
    step = max(64, (1 << 20) // (a * k))
    for kind in kinds:
        add[f"H {kind}"], add[f"H {kind} near"] = np.zeros((k, k)), np.zeros(len(question.near))
    for start in range(0, len(batch), step):
        rows = np.arange(start, min(start + step, len(batch)))
        full = [p.full(a, rows) for p in batch.full]
        gaps = np.stack([p - full[0] for p in full]).reshape(k, -1)
        near = [((full[i] - full[j]) ** 2).reshape(-1) for i, j in question.near]
        for kind in kinds:
            weight = np.full(len(rows) * a, float(a))
            if kind != "LDE":
                assert batch.behavior is not None
                b = np.maximum(batch.behavior[rows], 1e-12).reshape(-1)
                weight = 1 / b if kind == "DRE" else b * (a - 1 / b) ** 2
            add[f"H {kind}"] += (gaps * weight) @ gaps.T
            add[f"H {kind} near"] += [float(square @ weight) for square in near]
