"""How much of each policy a log can speak of: weights on all rows, the mass on logged actions on the sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np

from podium.data.columns import Floats, group_sums
from podium.data.log import Log
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.estimates.baselines import constant
from podium.estimates.estimators import DRE, LDE
from podium.estimates.terms import WeightSums, build_terms
from podium.policies import PolicyRows


@dataclass(frozen=True)
class Coverage:
    """How much of one policy the log can speak of."""

    name: str
    mass_on_logged: float  # average probability that the policy gives to actions logged in the same state
    ess: float  # effective sample size of its weights
    max_weight: float  # largest weight, relative to the average one
    top_row_share: float  # share of the sum of absolute row terms that the largest row carries


@dataclass(frozen=True, eq=False)
class RowShares:
    """Sums over rows of the absolute terms (r - mean) w of K policies, and the largest: (K,) each."""

    weights: WeightSums
    total: Floats
    largest: Floats

    @classmethod
    def of(cls, part: Part, mean: float) -> RowShares:
        """Weights are pi/p where propensities are known, else pi."""
        estimator = LDE if part.log.propensities is None else DRE
        every = np.arange(len(part.rows))
        scales = (part.log.choices, None) if estimator is LDE and part.log.eligible is not None else (None, None)
        fitted = constant(mean, len(every))
        terms = build_terms(part.log, part.policies, estimator, every, fitted, shared=mean, scales=scales)
        carried = np.abs(terms.matrix())
        return cls(WeightSums.of(terms), carried.sum(axis=0), carried.max(axis=0))

    def __add__(self, other: RowShares) -> RowShares:
        return RowShares(
            self.weights + other.weights, self.total + other.total, np.maximum(self.largest, other.largest)
        )


def row_shares(parts: Iterable[Part], mean: float) -> RowShares:
    return reduce(add, (RowShares.of(part, mean) for part in parts))


def cover(rows: Rows) -> list[Coverage]:
    """Coverage of every policy: weights on all rows, the mass on logged actions on the sample."""
    if not len(rows.policies):
        return []
    found = rows.fold(partial(row_shares, mean=rows.source.mean_reward(False)), "coverage")
    weights, shares = found.weights, found.largest / np.where(found.total > 0, found.total, np.inf)
    mean = weights.total / weights.rows
    return [
        Coverage(
            name=policy.name,
            mass_on_logged=mass_on_logged(rows.sample, policy),
            ess=float(weights.total[k] ** 2 / weights.squares[k]) if weights.squares[k] > 0 else 0.0,
            max_weight=float(weights.largest[k] / mean[k]) if mean[k] > 0 else 0.0,
            top_row_share=float(shares[k]),
        )
        for k, policy in enumerate(rows.policies)
    ]


def mass_on_logged(log: Log, policy: PolicyRows) -> float:
    """Average over rows of the probability of the actions that were logged in the row's state, among its eligible
    actions."""
    kept, codes = log.latest, log.context_codes  # one row per (state, action)
    mass = group_sums(codes[kept], policy.logged[kept], int(codes.max()) + 1)
    return float((mass if policy.proxy else np.minimum(mass, 1.0))[codes].mean())
