"""All that there is to see in a comparison, worked out once when first looked at: for figures and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from podium.comparison.basis import Basis
from podium.comparison.diagnostics import Diagnosis, PairCheck, diagnose_comparison
from podium.comparison.pair import Interval, Pair
from podium.comparison.planning import Plan, PlannedPair, make_plan
from podium.comparison.result import Comparison
from podium.comparison.saved import SavedBasis
from podium.data.columns import Floats, descending, group_sums
from podium.data.errors import PodiumError, shown
from podium.data.log import Log
from podium.data.scales import spread_of
from podium.outputs.display import label_text, short_names

SMALL = 0.2  # of a standard deviation: the smallest difference that is held to matter when nobody says
SAME = 1e-6  # how far a policy may be from the propensities and still be the one that made the log
MOST_CELLS = 20_000_000  # states x pairs beyond which states are not counted for every pair
MOST_SHOWN = 50
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
FAINTEST = 0.01  # weights below are drawn here
BINS = 31  # odd, so that the middle one holds 0
FARTHEST = 1e4  # times the rows at hand, up to which the plan is drawn


@dataclass(frozen=True)
class ActionUse:
    """How often each action was logged, and how often each policy wants it; None where that is not known."""

    labels: tuple[str, ...]
    logged: Floats  # (A,)
    wanted: dict[str, Floats | None]

    def table(self, most: int) -> ActionTable:
        """The actions in which some policy differs most from the log, at most so many, in their own order."""
        known = [w for w in self.wanted.values() if w is not None]
        gap = np.max([np.abs(w - self.logged) for w in known], axis=0) if known else self.logged
        chosen = sorted(descending(gap)[:most].tolist())
        others = len(self.labels) - len(chosen)

        def cells(shares: Floats | None) -> list[float] | None:
            if shares is None:
                return None
            values = [float(shares[j]) for j in chosen]
            return [*values, max(0.0, 1 - sum(values))] if others else values

        rows = [("logged", cells(self.logged)), *((name, cells(shares)) for name, shares in self.wanted.items())]
        return ActionTable([self.labels[j] for j in chosen], others, rows)


class ActionTable(NamedTuple):
    """Shares of actions: first those of the log, then those that each policy wants; None where not known."""

    labels: list[str]
    others: int  # how many actions share the last column, which has no label
    rows: list[tuple[str, list[float] | None]]


class Bar(NamedTuple):
    """The rows in states whose difference lies between two limits."""

    low: float
    high: float
    rows: float
    kind: str  # "up" where the first policy is ahead, "down", or "tie"


@dataclass(frozen=True, eq=False)
class StateDifferences:
    """One pair state by state: rows, and differences in `unit`."""

    labels: list[Any]
    rows: Floats  # (S,)
    differences: Floats  # (S,)
    method: str
    unit: str
    lower_is_better: bool

    @property
    def size(self) -> float:
        """The largest difference, either way."""
        return float(np.abs(self.differences).max()) or 1.0

    def bars(self) -> list[Bar]:
        """The histogram of the differences, counted in rows."""
        counts, edges = np.histogram(self.differences, bins=BINS, range=(-self.size, self.size), weights=self.rows)
        limits = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        return [
            Bar(low, high, rows, "tie" if low < 0 < high else "up" if (high <= 0) == self.lower_is_better else "down")
            for low, high, rows in limits
        ]


class PlanLines(NamedTuple):
    """Open pairs with the difference that the rows at hand decide 8 times in 10, for a chart of rows against it.

    With each goes the power of the rows by which that difference falls.
    """

    pairs: list[tuple[Pair, float, float]]
    rows: int
    matters: float
    far: float  # times the rows at hand, where the chart ends


@dataclass(frozen=True, eq=False)
class Insights:
    """A comparison with its trust panel, its plan and its states.

    Parameters
    ----------
    result : the comparison
    difference : the smallest difference in reward that matters; None for a fifth of the rewards' standard deviation
    """

    result: Comparison
    difference: float | None = None

    @cached_property
    def short(self) -> dict[str, str]:
        """The names of the policies, cut where they are long."""
        return short_names(self.result.ranking)

    @property
    def basis(self) -> Basis:
        return self.result.basis

    @property
    def sample(self) -> Log:
        """The rows that are looked at: all of them where they are few."""
        return self.basis.sample

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return diagnose_comparison(self.result, self.shown)

    @cached_property
    def shown(self) -> list[str]:
        """The policies whose pairs are looked at one by one: the first ones, and the one that made the log."""
        first = self.result.ranking[:MOST_SHOWN]
        return first if self.reference is None or self.reference in first else [*first, self.reference]

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs among them."""
        shown = set(self.shown)
        return [p for p in self.result.pairs if p.a in shown and p.b in shown]

    @property
    def interval_name(self) -> str:
        """What charts call the interval that they show of every pair."""
        return "adjusted interval" if self.result.adjusts else f"{self.result.level_text} interval"

    def interval(self, pair: Pair) -> Interval | None:
        """The interval that charts show: the one that decides, so that it excludes 0 iff there is a claim."""
        return pair.adjusted if self.result.adjusts else pair.interval

    @cached_property
    def matters(self) -> float | None:
        """The smallest difference that matters, rounded to one digit where nobody named it; None without any spread."""
        named = self.result.settings.difference if self.difference is None else self.difference
        if named is not None:
            return float(named)
        spread = SMALL * spread_of(self.sample.rewards)
        return float(f"{spread:.0e}") if spread > 0 else None

    @cached_property
    def plan(self) -> Plan | None:
        if self.matters is None:
            return None
        return make_plan(self.result, self.matters)

    @cached_property
    def _planned(self) -> dict[frozenset[str], PlannedPair]:
        return {} if self.plan is None else {frozenset((p.a, p.b)): p for p in self.plan.pairs}

    def planned(self, a: str, b: str) -> PlannedPair | None:
        return self._planned.get(frozenset((a, b)))

    @cached_property
    def _checks(self) -> dict[tuple[str, str], PairCheck]:
        return {(p.a, p.b): p for p in self.diagnosis.pairs}

    def check(self, pair: Pair) -> PairCheck:
        """What drives a pair of `result.pairs`."""
        return self._checks[pair.a, pair.b]

    @cached_property
    def reference(self) -> str | None:
        """The candidate that made the log, if one did: it plays the logged actions with the propensities."""
        if isinstance(self.basis, SavedBasis):
            return None if self.basis.reference is None else str(self.basis.reference)
        if self.result.log.knows == "none":
            return None
        p = self.sample.propensities
        apart = [float(np.abs(q.logged - p).max()) for q in self.basis.policies]
        proxies = (q.proxy for q in self.basis.policies)  # those have no probabilities to be equal
        names = self.basis.policies.names
        same = (n for n, gap, proxy in zip(names, apart, proxies, strict=True) if gap <= SAME and not proxy)
        return next(same, None)

    @cached_property
    def anchor(self) -> str:
        """Whom all are held against: the policy that made the log, else the first."""
        return self.reference or self.result.best

    @cached_property
    def rival(self) -> str:
        """Whom the first is held against: the policy that made the log, else the second."""
        first, second = self.result.ranking[:2]
        return second if self.reference in (None, first) else str(self.reference)

    @cached_property
    def methods(self) -> list[str]:
        """The methods with estimates, first the one that ranks."""
        return sorted(self.result.policies[0].estimates, key=lambda m: m != self.result.settings["estimator"])

    @cached_property
    def actions(self) -> ActionUse:
        """Which actions were logged, and which each policy wants."""
        log, facts = self.sample, self.basis.rows.source.facts()
        shares = facts.counts / facts.counts.sum()
        wanted = {p.name: p.mean(log.n_actions) for p in self.basis.policies}
        ordered = {name: wanted[name] for name in self.result.ranking}
        return ActionUse(tuple(label_text(a) for a in log.action_space), shares, ordered)

    @cached_property
    def weights(self) -> dict[str, Floats]:
        """Policy -> QUANTILES of its weights pi/p, or pi without propensities, relative to their mean."""
        p = 1.0 if self.sample.propensities is None else self.sample.propensities
        weights = {policy.name: policy.logged / p for policy in self.basis.policies}
        relative = {name: w / w.mean() if w.mean() > 0 else w for name, w in weights.items()}
        return {name: np.quantile(relative[name], QUANTILES) for name in self.result.ranking}

    def states(self, a: str, b: str) -> StateDifferences:
        """Two policies state by state, by the method behind the scores."""
        sums, sizes = self._state_sums([(a, b)])
        kept = sizes > 0
        labels = [label for label, is_kept in zip(self.sample.state_labels, kept, strict=True) if is_kept]
        method, lower = self.basis.main.estimator, bool(self.result.settings["lower_is_better"])
        unit = "as scores" if method.is_score and self.basis.policies.proxies else "in units of reward"
        return StateDifferences(
            labels, sizes[kept], self.basis.units * sums[kept, 0] / sizes[kept], method.name, unit, lower
        )

    @cached_property
    def state_shares(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Pair -> shares of states in which a is above b, and below; empty where there are too many states."""
        pairs = [(p.a, p.b) for p in self.pairs]
        if len(pairs) * self.sample.n_states > MOST_CELLS:
            return {}
        sign = -1.0 if self.result.settings["lower_is_better"] else 1.0
        shares = {}
        for start in range(0, len(pairs), 64):
            some = pairs[start : start + 64]
            sums, _ = self._state_sums(some)
            tie = 1e-12 * np.abs(sums).max()
            for n, pair in enumerate(some):
                gap = sign * sums[:, n]
                shares[pair] = (float(np.mean(gap > tie)), float(np.mean(gap < -tie)))
        return shares

    def _state_sums(self, pairs: Sequence[tuple[str, str]]) -> tuple[Floats, Floats]:
        """(S, P) sums over the rows of each state of the differences of pairs, and (S,) the rows."""
        terms, log, names = self.basis.terms, self.sample, self.basis.policies.names
        codes = log.state_codes[terms.rows]
        sums = np.zeros((log.n_states, len(pairs)))
        for n, gap in enumerate(terms.gaps([(names.index(a), names.index(b)) for a, b in pairs]).T):
            sums[:, n] = group_sums(codes, gap, log.n_states)
        return sums, np.bincount(codes, minlength=log.n_states).astype(np.float64)

    @cached_property
    def judged_rows(self) -> int:
        """The rows that the plan counts from."""
        return self.basis.judgement.rows or len(self.result.log)

    def plan_lines(self, most: int) -> PlanLines | None:
        """Undecided pairs, those of the first policies first; where all are decided, the closest; None without any."""
        undecided = [p for p in self.result.pairs if p.verdict == "cannot tell"]
        closest = descending(np.array([-abs(p.difference) for p in self.result.pairs]))
        some = (undecided or [self.result.pairs[n] for n in closest])[:most]
        planned = [(p, self.planned(p.a, p.b)) for p in some]
        known = [(p, plan) for p, plan in planned if plan is not None]
        pairs = [(p, plan.detectable_now, plan.rate / 2) for p, plan in known if plan.detectable_now]
        if not pairs or self.matters is None:
            return None
        far = min(FARTHEST, max(4.0, *(1.5 * min(d / self.matters, FARTHEST) ** (1 / fall) for _, d, fall in pairs)))
        return PlanLines(pairs, self.judged_rows, self.matters, far)


def insights_of(result: Comparison | Insights, difference: float | None = None) -> Insights:
    """What there is to see in a comparison."""
    if isinstance(result, Insights):
        return result
    if not isinstance(result, Comparison):
        raise PodiumError(f"a figure needs a comparison; it got {shown(result)}", hint="use compare(...).plot().")
    insights: Insights = result.insights
    return insights if difference is None else Insights(result, difference)
