"""What a log of more than 20,000 rows may not have seen of a policy, by the mean of the policy's weights.

Where propensities or policies are known at the logged actions alone, DRE's design error cannot be computed. Yet the
mean of w_n = pi(a_n|s_n) / p_n is 1 but for chance, and what it lacks is the probability of what was not logged. That
is known up to m, m^2 = (1 - mean w)^2 + var(w) / N, and a reward that nobody saw is taken to lie within 3 standard
deviations of the mean. The error of a difference is then no less than 3 sd(r) sqrt(m_i^2 + m_j^2), which is also more
than the error that the log's own squares (g_n / p_n)^2 imply, as these are at most twice var(w_i) + var(w_j).

The judge of a sample takes actions without any row for ordinary ones. Its errors are no less than the same rule gives
for them, 3 sd(r) |u_i - u_j| with u the policies' probabilities of these actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scales import spread_of
from podium.policies import PolicySet
from podium.verdicts.pairs import pair_indices

# Standard deviations from the mean reward within which rewards that were not seen are taken to lie. For actions without
# a row in the sample, half as much left 7 of 10 claims on a log of "500 states, a little never logged, ties" wrong.
REACH = 3.0
# The limits below are those that docs/calibration.md reports on: python -m podium.calibration.large
LACKS = 0.05  # a mean weight that far from 1 says that the log has not seen what the policy does
CHANCE = 4.0  # standard errors of the mean weight that chance explains
EXACT = 0.01  # a mean weight that near to 1 is right in any case: probabilities are rounded
ONE_ROW = 0.1  # the share of the squared weights that a single row may have
REWARDS_UNSEEN = "actions that were not logged have rewards within 3 standard deviations of the mean"


@dataclass(frozen=True, eq=False)
class Weights:
    """Sums of the weights of K policies over the rows of a log, of their squares, and the largest: (K,) each."""

    names: tuple[str, ...]
    rows: int
    total: Floats
    squares: Floats
    largest: Floats

    @property
    def mean(self) -> Floats:
        return self.total / self.rows

    @property
    def variance(self) -> Floats:
        """(K,) of the mean."""
        return np.maximum(self.squares / self.rows - self.mean**2, 0) / self.rows

    @property
    def missing(self) -> Floats:
        """(K,) m^2, the square of what may be missing."""
        return (1 - self.mean) ** 2 + self.variance

    @cached_property
    def doubts(self) -> list[Fact | None]:
        """(K,) why the log cannot stand for what is not known of a policy; None where it can."""
        off = np.abs(1 - self.mean)
        chance = CHANCE * np.sqrt(self.variance)
        share = np.divide(self.largest**2, self.squares, out=np.ones(len(off)), where=self.squares > 0)
        found: list[Fact | None] = []
        for k, name in enumerate(self.names):
            if off[k] > min(LACKS, max(EXACT, chance[k])):
                found.append(Fact("unseen weight", policy=name, mean_weight=float(self.mean[k])))
            elif share[k] > ONE_ROW:
                found.append(Fact("one heavy row", policy=name, share=float(share[k])))
            else:
                found.append(None)
        return found

    def errors(self, i: Codes, j: Codes) -> Floats:
        """(P,) errors of the differences of policies i and j in standard deviations of the reward; nan if in doubt."""
        known = np.array([doubt is None for doubt in self.doubts])
        error = REACH * np.sqrt(self.missing[i] + self.missing[j])
        return np.where(known[i] & known[j], error, np.nan)


def unseen_errors(log: Log, policies: PolicySet) -> Floats:
    """(P,) errors of the differences that actions without a row leave open; 0 where a policy is only partly known."""
    i, j = pair_indices(len(policies))
    unseen = np.flatnonzero(np.bincount(log.action_codes, minlength=log.n_actions) == 0)
    means = [mean[unseen] for p in policies if (mean := p.mean(log.n_actions)) is not None]
    if not len(unseen) or policies.proxies or len(means) < len(policies):
        return np.zeros(len(i))
    played = np.array(means)
    return np.asarray(REACH * spread_of(log.rewards) * np.linalg.norm(played[i] - played[j], axis=1))
