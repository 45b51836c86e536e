"""The row terms of one method on some rows: the formula, and the weights in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.errors import BaselineRefused, Unavailable
from podium.data.log import Log
from podium.estimates.baselines import BaselineRows, describe_baseline
from podium.estimates.estimators import Estimator, correction
from podium.estimates.moments import GroupSums
from podium.policies import FULL_HINT, PolicySet

ALL = 1 - 1e-9  # a share of the weight that leaves nothing to others but rounding


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The row terms of one method on the rows it keeps.

    V_k = shared + mean over rows of the terms. What all policies share (a baseline that does not depend on the action,
    or the mean of one that does) is kept out of the terms, so that it cannot blur their differences.
    """

    estimator: Estimator
    rows: Codes  # (n,) the rows kept
    reward: Floats  # (n,)
    baseline: Floats  # (n,) rhat(s_n, a_n)
    policy: Floats  # (n, K) pi_k(a_n|s_n), or ratios, or terms, that the policies bring
    propensity: Floats | None = None  # (n,)
    per_policy: Floats | None = None  # (n, K) sum_a rhat(s_n, a) pi_k(a|s_n), less `shared`
    shared: float = 0.0
    scale: Floats | None = None  # (n,) weight of a row's correction, None for 1
    base_scale: Floats | None = None  # (n,) weight of a row's baseline part
    groups: Codes | None = None  # (n,) rows of one group depend on each other
    ratio: Ratio | None = None  # of self-normalised methods
    common: Floats | None = None  # (n,) how a row moves what all policies share
    common_mean: bool = False  # which is the mean reward: a value moves by 1 - mean(w) times as much
    effective: Floats | None = None  # (K,) effective rows (or units) of self-normalised methods: (sum w)^2 / sum w^2
    total: int = 0  # rows of the whole log that these are part of; 0: these are all

    def matrix(self) -> Floats:
        """(n, K) the terms."""
        return self._with_base(self._correction(self.policy), self.per_policy)

    def gaps(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """(n, P) the differences of some pairs; policies are subtracted before they are weighted, which keeps every
        digit of nearly equal ones."""
        i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        base = None if self.per_policy is None else self.per_policy[:, i] - self.per_policy[:, j]
        if self.estimator.linear:
            return self._with_base(self._correction(self.policy[:, i] - self.policy[:, j]), base)
        own = self._correction(self.policy)
        return self._with_base(own[:, i] - own[:, j], base)

    def weights(self) -> Floats:
        """(n, K) g(w), with the weight of the row."""
        weight = self.policy if self.propensity is None else self.policy / self.propensity[:, None]
        weight = self.estimator.reweight(weight)
        return weight if self.scale is None else weight * self.scale[:, None]

    def deviations(self) -> Floats:
        """(n, K) how far each row is from all others, of a self-normalised method; 0 of any other."""
        if self.ratio is None:
            return np.zeros_like(self.policy)
        residual = (self.reward - self.baseline)[:, None]
        return self.ratio.deviation(residual, self.weights(), self.total or len(self.rows), self.groups)

    def _correction(self, policy: Floats) -> Floats:
        """The part that rests on the logged reward."""
        if self.estimator.rule == "steps":
            return policy
        if self.estimator.linear:
            terms = correction(self.reward, self.baseline, policy, self.propensity)
            return terms if self.scale is None else terms * self.scale[:, None]
        if self.ratio is None:
            return (self.reward - self.baseline)[:, None] * self.weights()
        level = self.ratio.level - self.ratio.shift
        return (level if self.base_scale is None else level * self.base_scale[:, None]) + self.deviations()

    def _with_base(self, terms: Floats, base: Floats | None) -> Floats:
        if base is None:
            return terms
        return terms + (base if self.base_scale is None else base * self.base_scale[:, None])


@dataclass(frozen=True, eq=False)
class Ratio:
    """What a self-normalised method divides by, and what it finds: C = sum w (r - rhat) / sum w of every policy.

    To first order (the delta method) its row terms are C + w_n (r_n - rhat - C) / mean(w). A row that carries much of
    the weight draws C to itself, and hides its own spread; so each row is held against the C of all others, which
    divides its deviation by 1 - h_n, h_n = w_n / sum w (the jackknife). Of rows that depend on each other h is the
    share of their unit. A constant keeps the terms' mean at the estimate.
    """

    level: Floats  # (K,) C
    weight: Floats  # (K,) mean(w)
    shares: Floats | None = None  # (J, K) each unit's share of the weight; None where every row is a unit
    shift: Floats = field(default_factory=lambda: np.zeros(1))  # (K,) mean deviation

    def deviation(self, residual: Floats, weight: Floats, rows: int, units: Codes | None) -> Floats:
        """(n, K) w_n (r_n - rhat - C) / mean(w) / (1 - h_n)."""
        scaled = weight / self.weight
        held = scaled / rows if self.shares is None or units is None else self.shares[units]
        rest = np.where(held < ALL, 1 - held, 1.0)  # a row with all the weight is C itself
        deviation: Floats = (residual - self.level) * (scaled / rest)
        return deviation


def moves_with_mean(estimator: Estimator, baseline: Any) -> bool:
    """Whether the baseline is the mean reward, which every row moves."""
    return estimator.uses_baseline and isinstance(baseline, str) and baseline == "mean"


def build_terms(
    log: Log,
    policies: PolicySet,
    estimator: Estimator,
    rows: Codes,
    fitted: BaselineRows,
    *,
    shared: float | None = None,
    scales: tuple[Floats | None, Floats | None] = (None, None),
    groups: Codes | None = None,
    common_mean: bool = False,
) -> RowTerms:
    """The terms of some rows, given their baseline; `shared` is what all policies share, by default on these rows."""
    scale, base_scale = scales
    per_policy = None
    if fitted.matrix is not None:
        if any(p.proxy for p in policies):  # a distribution sums to 1, so a constant is shared by all; scores do not
            shared = 0.0
        shared = float(fitted.logged.mean()) if shared is None else shared
        centred = fitted.matrix - shared
        per_policy = side_by_side([p.average(centred, rows) for p in policies])
    elif fitted.averages is not None:
        shared = float(fitted.logged.mean()) if shared is None else shared
        per_policy = side_by_side([fitted.averages[name] - shared for name in policies.names])
    elif shared is None:
        shared = float(np.mean(fitted.logged if base_scale is None else fitted.logged * base_scale))
    common = None
    if common_mean:
        common = log.rewards[rows] - shared
    elif per_policy is None and estimator.uses_baseline:
        common = fitted.logged - shared
    if common is not None and base_scale is not None:
        common = common * base_scale
    ratios = given_ratios(policies, estimator)
    weighted = estimator.uses_propensity and not ratios and log.propensities is not None
    return RowTerms(
        estimator=estimator,
        rows=rows,
        reward=log.rewards[rows],
        baseline=without_rounding(fitted.logged, log.rewards[rows]),
        policy=side_by_side([column[rows] for column in ratios or [p.logged for p in policies]]),
        propensity=log.propensities[rows] if weighted and log.propensities is not None else None,
        per_policy=per_policy,
        shared=shared,
        scale=scale,
        base_scale=base_scale,
        groups=groups,
        common=common,
        common_mean=common_mean,
    )


def side_by_side(columns: Sequence[Floats]) -> Floats:
    """(n, K) columns, each in one stretch of memory: sums over rows are then twice as fast."""
    return np.stack(columns).T


def given_ratios(policies: PolicySet, estimator: Estimator) -> tuple[Floats, ...]:
    """pi/p of every policy, free of underflow, where all were given; else nothing."""
    ratios = tuple(p.ratios for p in policies if p.ratios is not None) if estimator.uses_propensity else ()
    return ratios if len(ratios) == len(policies) else ()


def no_propensities(estimator: Estimator) -> Unavailable:
    return Unavailable(
        f"{estimator.name} needs the probability of each logged action, and the log has none",
        hint="add a propensity column or give the behaviour policy; LDE and DiM need no propensities.",
    )


def no_model(baseline: Any) -> Unavailable:
    return Unavailable(
        f"DirectModel needs a baseline that depends on the action; {describe_baseline(baseline)!r} gives every policy "
        "the same value",
        hint='use baseline="linear", an object with fit/predict, or a function q(states, actions).',
    )


def step_terms(log: Log, policies: PolicySet, estimator: Estimator, groups: Codes | None) -> RowTerms:
    """Row terms that the policies bring: those of episodes, made from their steps."""
    given = [p.terms[estimator.name] for p in policies if estimator.name in p.terms]
    missing = [p for p in policies if estimator.name not in p.terms]
    if missing:
        reason = f"{estimator.name} needs episodes with the probability of every step, which {missing[0].name!r} lacks"
        if missing[0].terms:
            reason = f"{estimator.name}: the weights of {missing[0].name!r} are all 0, or too large for floating point"
        hint = "use podium.episodes with policies that offer log_prob, and a behaviour policy or propensities."
        raise Unavailable(reason, hint=hint)
    effective = [own.effective for own in given if own.effective is not None]
    return RowTerms(
        estimator,
        np.arange(len(log)),
        log.rewards,
        np.zeros(len(log)),
        side_by_side([own.rows for own in given]),
        groups=groups,
        effective=np.array(effective) if len(effective) == len(policies) else None,
    )


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Sums over rows of the weights (K,) of a method, of weights times what the baseline leaves, of their squares, and
    the largest weight."""

    rows: int
    total: Floats
    level: Floats
    squares: Floats
    largest: Floats
    units: Floats | None = None  # (J, K) sums of each unit

    @classmethod
    def of(cls, terms: RowTerms, units: int = 0) -> WeightSums:
        weight, residual = terms.weights(), terms.reward - terms.baseline
        held = None
        if units and terms.groups is not None:
            held = GroupSums.of(weight, terms.groups, units).sums
        squares = np.einsum("nk,nk->k", weight, weight)
        largest = weight.max(axis=0, initial=0.0)
        return cls(len(terms.rows), weight.sum(axis=0), residual @ weight, squares, largest, held)

    def __add__(self, other: WeightSums) -> WeightSums:
        return WeightSums(
            self.rows + other.rows,
            self.total + other.total,
            self.level + other.level,
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
            None if self.units is None or other.units is None else self.units + other.units,
        )

    def ratio(self, estimator: Estimator, names: Sequence[str]) -> tuple[Ratio, Floats]:
        """What a self-normalised method divides by, and the effective rows (or units) of every policy."""
        total = refuse_weightless(estimator, self.total, names)
        shares = None if self.units is None else self.units / total
        effective = total**2 / self.squares if shares is None else 1 / (shares**2).sum(axis=0)
        return Ratio(self.level / total, total / self.rows, shares, np.zeros(len(names))), effective


def self_normalize(terms: RowTerms, names: Sequence[str]) -> RowTerms:
    """The terms with the weighted mean of what the baseline leaves of the rewards, of every policy, on these rows."""
    units = 0 if terms.groups is None else int(terms.groups.max()) + 1
    ratio, effective = WeightSums.of(terms, units).ratio(terms.estimator, names)
    terms = replace(terms, ratio=ratio, effective=effective, total=0)
    return replace(terms, ratio=replace(ratio, shift=terms.deviations().mean(axis=0)))


def refuse_weightless(estimator: Estimator, total: Floats, names: Sequence[str]) -> Floats:
    """Sums of weights (K,), none of which is 0."""
    if not (total > 0).all():
        raise Unavailable(
            f"{estimator.name} divides by the sum of a policy's weights, and policy {names[int(np.argmin(total))]!r} "
            "never plays an action that was logged",
            hint="use DRE or LDE, or leave that policy out.",
        )
    return total


def mean_weights(terms: RowTerms) -> Floats:
    """(K,) the mean of every policy's weight as it counts: 1 where it is divided by itself."""
    return np.ones(terms.policy.shape[1]) if terms.ratio is not None else terms.weights().mean(axis=0)


def without_rounding(baseline: Floats, reward: Floats) -> Floats:
    """The baseline at the logged actions, equal to the reward where only rounding keeps them apart.

    The mean of equal rewards may miss them by 1e-17; that residual must not pass for a signal.
    """
    close = np.abs(reward - baseline) <= 4 * np.finfo(np.float64).eps * np.abs(reward)
    return np.where(close, reward, baseline) if close.any() else baseline


def refuse_partial(policies: PolicySet, baseline: Any) -> None:
    """A baseline that depends on the action needs whole distributions."""
    partial = [p.name for p in policies if not p.has_full]
    if partial:
        raise BaselineRefused(
            f"the baseline {describe_baseline(baseline)!r} depends on the action and needs pi(a|s) for every action; "
            f"policy {partial[0]!r} gives only the probability of the logged action",
            hint=FULL_HINT,
        )


def state_scales(log: Log, rows: Codes, estimator: Estimator) -> tuple[Floats, Floats]:
    """Row weights of the per-state form of the paper's Example 1: average within states, then over states.

    IPS and DRE average the draws of a state; DiM and LDE sum over the distinct actions logged in it.
    """
    states = log.state_codes[rows]
    sizes = np.bincount(states, minlength=log.n_states)
    each = len(rows) / (np.count_nonzero(sizes) * sizes[states])
    whole = np.full(len(rows), len(rows) / np.count_nonzero(sizes))
    return (whole if estimator.is_score else each), each
