"""How strong a hidden cause must be before a claim falls: the marginal sensitivity model on the DRE contrast of a pair.

The logging policy may have used something that the log does not hold. Its true probability p of an action then differs
from what the log shows, p0, and the model bounds by how much: the odds p / (1 - p) lie within a factor Gamma of
p0 / (1 - p0) (Tan 2006). The inverse probability of a logged action is therefore between

    1 + (1/p0 - 1) / Gamma   and   1 + (1/p0 - 1) Gamma.

The bounds on V(a) - V(b) take one set of such weights for both policies, g = pi_a - pi_b, the most harmful one that is
consistent with the states (Dorn and Guo 2023): with e the residual of a reward model m(s, a), counted in the direction
of g, c its Gamma / (1 + Gamma) quantile, and R = c + Gamma (e - c)+ - (e - c)- / Gamma,

    x_n = sum_a g m + g_n e_n + |g_n| (1/p0 - 1) (R_n - k) + sum over a != a_n of |g(a|s_n)| k

where k is the weighted mean of R, and c and k are found apart for g > 0 and g < 0. The mean of x bounds the difference
from above for any m if p0 is right, is sharp if c is the conditional quantile, and is doubly robust: errors of p0 and
of k enter as a product. Its sampling error comes from the rows, clustered by unit. With Gamma = 1 it is DRE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from podium.data.columns import Codes, Floats, factorize, group_sums
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scales import standard_columns
from podium.estimates.learned import FOLDS, Encoder
from podium.outputs.display import number
from podium.policies import PolicyRows, PolicySet
from podium.propensities.nominal import nominal_behavior
from podium.verdicts.dealing import deal
from podium.verdicts.doubly_robust import MOST_TEXTS, fit_surface, with_level
from podium.verdicts.evidence import Evidence
from podium.verdicts.pairs import degrees_of_freedom

LARGEST = 10.0  # the largest odds factor that is looked at
STEPS = 9  # of bisection: Gamma is then known to half a percent
MOST_FITTED = 5_000  # rows that models are fitted on
MOST_CELLS = 20_000_000  # rows x actions beyond which no model of all rewards is fitted


@dataclass(frozen=True)
class Withstood:
    """How much hidden confounding a claim withstands.

    `gamma` is the odds factor at which the interval first includes 0: 1 where DRE's own interval does, `LARGEST` where
    it takes more than that, None where there is nothing to ask. `interval` is DRE's own, at Gamma = 1.
    """

    gamma: float | None
    interval: tuple[float, float] | None
    fact: Fact


def claims_withstand(
    log: Log, policies: PolicySet, claims: Sequence[tuple[str, str]], level: float, lower_is_better: bool
) -> list[Withstood]:
    """What it would take to undo each claim (winner, loser)."""
    reason = why_not_asked(log, policies)
    if reason is not None:
        return [Withstood(None, None, reason)] * len(claims)
    causes, by_name = HiddenCauses(log), {p.name: p for p in policies}
    sign = -1.0 if lower_is_better else 1.0
    losses = dict.fromkeys(policies.names, 0.0)
    if policies.costs is not None:
        losses = dict(zip(policies.names, policies.costs.losses.tolist(), strict=True))
    return [
        withstood(replace(causes.contrast(by_name[a], by_name[b]), known=losses[b] - losses[a]), a, b, level, sign)
        for a, b in claims
    ]


def why_not_asked(log: Log, policies: PolicySet) -> Fact | None:
    if policies.proxies:
        return Fact("hidden causes, scores")
    if log.knows in ("full", "logged"):
        return Fact("hidden causes, logged")
    return Fact("hidden causes, too large") if len(log) * log.n_actions > MOST_CELLS else None


def withstood(contrast: Contrast, winner: str, loser: str, level: float, sign: float) -> Withstood:
    """How much the claim that the winner is better withstands; `sign` is -1 where lower is better."""
    low, high = contrast.interval(1.0, level)
    gamma = contrast.falls_at(level, sign)
    names = {"winner": winner, "loser": loser}
    shown = f"[{number(low, 3)}, {number(high, 3)}]" if np.isfinite([low, high]).all() else "unbounded"
    if max(sign * low, sign * high) < 0:
        fact = Fact("hidden causes, opposed", **names, interval=shown)
    elif gamma == 1.0:
        fact = Fact("hidden causes, unconfirmed", **names, interval=shown)
    else:
        code = "hidden causes, beyond" if gamma >= LARGEST else "hidden causes, falls"
        fact = Fact(code, **names, gamma=gamma)
    return Withstood(gamma, None if shown == "unbounded" else (low, high), fact)


@dataclass(frozen=True, eq=False)
class HiddenCauses:
    """A log whose propensities are not known, ready to be asked how much hidden confounding its contrasts withstand."""

    log: Log

    @cached_property
    def folds(self) -> tuple[Codes, Codes]:
        """(N,) the fold of each row, units staying whole, whatever the order of the rows; and the rows fitted on."""
        n, a, units = len(self.log), self.log.n_actions, self.log.units
        blank, codes = np.zeros((n, 0)), None if units is None else factorize(units)[0]
        e = Evidence(
            blank, blank.astype(np.int64), self.log.state_codes, self.log.action_codes, self.log.rewards,
            np.zeros((0, n, a)), units=codes,
        )  # fmt: skip
        times = -(-n // MOST_FITTED)
        fold, used = np.zeros(n, dtype=np.int64), []
        for b, rows in enumerate(deal(e, min(FOLDS, n if codes is None else int(codes.max()) + 1) * times, n)):
            fold[rows] = b // times
            used += [rows] if b % times == 0 else []
        return factorize(fold)[0], np.sort(np.concatenate(used))

    @cached_property
    def features(self) -> Floats:
        """(N, d) standardized."""
        return standard_columns(Encoder.of(self.log, MOST_TEXTS, drop=True).features(self.log))

    @cached_property
    def behavior(self) -> Floats:
        """(N, A) p0."""
        return nominal_behavior(self.log, self.features, *self.folds)

    @cached_property
    def odds(self) -> Floats:
        """(N,) 1/p0 - 1 of the logged actions."""
        odds: Floats = 1 / self.behavior[np.arange(len(self.log)), self.log.action_codes] - 1
        return odds

    @cached_property
    def rewards(self) -> Floats:
        """(N,) around 0 and at most 1, so that no square of huge or tiny numbers is ever taken."""
        centred = self.log.rewards - self.log.rewards.mean()
        return np.asarray(centred / self.unit)

    @cached_property
    def unit(self) -> float:
        """What rewards are divided by."""
        return float(np.ptp(self.log.rewards)) or 1.0

    @cached_property
    def clusters(self) -> Codes:
        """(N,) codes of the rows that depend on each other."""
        return np.arange(len(self.log)) if self.log.units is None else factorize(self.log.units)[0]

    def _model(self, n_actions: int) -> Floats:
        """(N, A) expected rewards m(s_n, .), or (N, 1) where the action is ignored; no row is predicted by itself."""
        fold, used = self.folds
        folds = int(fold.max()) + 1
        x, actions = with_level(self.features), self.log.action_codes
        found = np.empty((len(x), n_actions or 1))
        for k in range(folds):
            train = used[fold[used] != k] if folds > 1 else used
            found[fold == k] = x[fold == k] @ fit_surface(x[train], self.rewards[train], actions[train], n_actions).T
        return found

    @cached_property
    def by_action(self) -> tuple[Floats, Floats, Codes]:
        """m(s_n, .) (N, A), the residuals (N,) of the logged actions, and the rows in the order of these."""
        model = self._model(self.log.n_actions)
        residual = self.rewards - model[np.arange(len(model)), self.log.action_codes]
        return model, residual, np.argsort(residual, kind="stable")

    @cached_property
    def by_state(self) -> Floats:
        """(N,) residuals of a model that ignores the action."""
        residual: Floats = self.rewards - self._model(0)[:, 0]
        return residual

    def contrast(self, a: PolicyRows, b: PolicyRows) -> Contrast:
        """V(a) - V(b), ready to be bounded."""
        g, n, n_actions = a.logged - b.logged, len(self.log), self.log.n_actions
        if not (a.has_full and b.has_full):
            return Contrast(g, self.by_state, np.zeros(n), self.odds, self.clusters, self.unit, ())
        model, residual, order = self.by_action
        gap, p = a.full(n_actions) - b.full(n_actions), self.behavior
        spread = np.divide((1 - p) ** 2, p, out=np.zeros_like(p), where=p > 0) * gap**2
        base = np.einsum("na,na->n", gap, model)
        halves = []
        for side in (1.0, -1.0):
            pull = np.maximum(side * gap, 0)
            design = float(spread[pull > 0].sum()) / n**2
            pull[np.arange(n), self.log.action_codes] = 0.0
            weight = self.odds * np.maximum(side * g, 0)
            halves.append(Half.of(side, weight, residual, order, pull.sum(axis=1), design))
        return Contrast(g, residual, base, self.odds, self.clusters, self.unit, tuple(halves))


@dataclass(frozen=True, eq=False)
class Contrast:
    """One pair on the rows of a log.

    Parameters
    ----------
    g : (N,) pi_a - pi_b at the logged actions
    residual : (N,) r - m(s_n, a_n)
    base : (N,) sum_a g m
    odds : (N,) 1/p0 - 1
    clusters : (N,) codes of rows that depend on each other
    unit : of the rewards
    halves : where a, and where b, is the likelier to act so; none where policies are known only at logged actions
    known : what known costs add to the difference
    """

    g: Floats
    residual: Floats
    base: Floats
    odds: Floats
    clusters: Codes
    unit: float
    halves: tuple[Half, ...]
    known: float = 0.0

    def interval(self, gamma: float, level: float) -> tuple[float, float]:
        """What the difference can be if hidden causes change the odds of an action by at most `gamma`, and chance."""
        return -self.upper(gamma, level, -1.0), self.upper(gamma, level, 1.0)

    def falls_at(self, level: float, sign: float) -> float:
        """The least Gamma at which the interval includes 0 or lies beyond it; 1 if it does so at once."""
        if not self.upper(1.0, level, -sign) < 0:
            return 1.0
        if self.upper(LARGEST, level, -sign) < 0:
            return LARGEST
        low, high = 0.0, float(np.log(LARGEST))
        for _ in range(STEPS):
            middle = (low + high) / 2
            stands = self.upper(float(np.exp(middle)), level, -sign) < 0
            low, high = (middle, high) if stands else (low, middle)
        return float(np.exp((low + high) / 2))

    def upper(self, gamma: float, level: float, sign: float) -> float:
        """The upper end of the interval of sign * (V(a) - V(b)); infinite where the rows show no spread."""
        from scipy.special import stdtrit

        x, least = self.terms(gamma, sign)
        groups = int(self.clusters.max()) + 1
        sums: Floats = group_sums(self.clusters, x - x.mean(), groups)
        square = sums**2
        total = float(square.sum())
        if total <= 0 or groups < 2:
            return float("inf")
        error = float(np.sqrt(max(total * groups / (groups - 1) / len(x) ** 2, least)))
        freedom = degrees_of_freedom(np.array([square @ square / total**2]), groups)
        reach = float(stdtrit(freedom, (1 + level) / 2)[0])
        # Heavy weights skew the terms, and a log that has missed them shows neither mean nor error (Johnson 1978).
        reach += max(0.0, float(sums @ square) / total**1.5) * (1 + 2 * reach**2) / 6
        end: float = float(x.mean()) + reach * error
        return self.unit * end + sign * self.known

    def terms(self, gamma: float, sign: float) -> tuple[Floats, float]:
        """(N,) whose mean bounds sign * (V(a) - V(b)) from above, and the least that the mean's variance can be."""
        x, least = sign * (self.base + self.g * self.residual), 0.0
        if not self.halves:  # only a baseline that all actions share can be averaged over actions that nobody knows
            worst: Floats = x * (1 + self.odds * np.where(x > 0, gamma, 1 / gamma))
            return worst, least
        for half in self.halves:
            toward = sign * half.side
            centre = half.quantile(gamma / (1 + gamma), toward)
            above = toward * self.residual - centre
            reached = centre + above * np.where(above > 0, gamma, 1 / gamma)
            level = float(half.weight @ reached) / half.total
            around = reached - level
            x += half.unseen * level + (half.weight * around if half.seen else 0.0)
            least += half.design * float(half.weight @ around**2) / half.total
        return x, least


@dataclass(frozen=True, eq=False)
class Half:
    """The rows where g has one sign, with residuals sorted for every quantile.

    Parameters
    ----------
    side : 1 for g > 0, -1 for g < 0
    weight, total : (N,) |g| (1/p0 - 1) there and 0 elsewhere, and their sum; 1 each if the log has no such row
    seen : whether it has
    values, summed : (N,) the residuals in order, and the weights up to each of them
    unseen : (N,) sums of |g| over the actions on this side that were not logged in a row
    design : sum over all such actions of p0 (g (1/p0 - 1) / N)^2: what the policies imply for the variance, whether or
        not the log has met the actions that matter
    """

    side: float
    weight: Floats
    total: float
    seen: bool
    values: Floats
    summed: Floats
    unseen: Floats
    design: float

    @classmethod
    def of(cls, side: float, weight: Floats, residual: Floats, order: Codes, unseen: Floats, design: float) -> Half:
        seen = bool(weight.any())
        weight = weight if seen else np.ones(len(weight))
        summed = np.cumsum(weight[order])
        return cls(side, weight, float(summed[-1]), seen, residual[order], summed, unseen, design)

    def quantile(self, share: float, toward: float) -> float:
        """Of the residuals, or of their negatives where `toward` is below 0."""
        place = int(np.searchsorted(self.summed, (share if toward > 0 else 1 - share) * self.total))
        return toward * float(self.values[min(place, len(self.values) - 1)])
