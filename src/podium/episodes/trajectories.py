"""Importance sampling on episodes: whole trajectories or step by step, plain or self-normalised, in log space.

With rho_t = prod_{u <= t} pi(a_u|s_u) / p(a_u|s_u) and returns G = sum_t r_t, over n episodes:

| method | estimate | reference |
|---|---|---|
| TIS   | mean_n rho_T G                            | Kahn and Marshall, 1953 |
| PDIS  | mean_n sum_t rho_t r_t                    | Precup, Sutton and Singh, 2000 |
| WIS   | sum_n rho_T G / sum_n rho_T               | Mahmood et al., 2014 |
| PDWIS | sum_t (sum_n rho_t r_t / sum_n rho_t)     | Thomas, 2015, where it is called CWPDIS |

An episode that has ended rests: its later rewards are 0, and its weight stays what it was. With episodes of one step
all four are IPS or SNIPS.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.data.log import LARGEST
from podium.estimates.terms import ALL
from podium.policies.drafts import GivenTerms


def trajectory_terms(log_ratios: Floats, rewards: Floats) -> dict[str, GivenTerms]:
    """Method -> (n,) row terms of one policy: their mean is the estimate, their spread its error; with the effective
    episodes of the self-normalised ones.

    Parameters
    ----------
    log_ratios : (n, T) log pi - log p of every step, 0 after an episode's end
    rewards : (n, T), 0 after an episode's end

    A method whose weights leave what floating point can hold is left out.

    Examples
    --------
    >>> terms = trajectory_terms(np.log([[2.0, 0.5]]), np.array([[1.0, 1.0]]))
    >>> [float(round(terms[m].rows.mean(), 9)) for m in ("TIS", "PDIS", "WIS", "PDWIS")]
    [2.0, 3.0, 2.0, 2.0]
    >>> terms["PDIS"].effective, terms["WIS"].effective
    (None, 1.0)
    """
    logs = np.cumsum(log_ratios, axis=1)
    returns = rewards.sum(axis=1)
    terms: dict[str, GivenTerms] = {}
    if logs[:, -1].max() <= np.log(LARGEST):
        terms["TIS"] = GivenTerms(np.exp(logs[:, -1]) * returns)
    if logs.max() <= np.log(LARGEST):
        terms["PDIS"] = GivenTerms((np.exp(logs) * rewards).sum(axis=1))
    for name, weights, gains in (("WIS", logs[:, -1:], returns[:, None]), ("PDWIS", logs, rewards)):
        if (made := self_normalized(weights, gains)) is not None:
            terms[name] = GivenTerms(*made)
    return terms


def self_normalized(logs: Floats, rewards: Floats) -> tuple[Floats, float] | None:
    """(n,) terms of the sum over columns of weighted means, and the effective number of rows of the column that has
    the fewest, of those whose rewards vary; None where a column has no weight at all.

    C_t + rho_t (r_t - C_t) / mean(rho_t), added up over t: its mean is sum_t C_t. As in `terms.Ratio`, every row
    is held against the C_t of all others, and a constant keeps the mean. Weights are 1 on average; where those of the
    log are less, it lacks the episodes that would weigh most, and counts for fewer: (sum rho)^2 / sum rho^2 times
    mean(rho)^2.
    """
    top = logs.max(axis=0)
    if not np.isfinite(top).all():
        return None
    weight = np.exp(logs - top)  # a common factor of a column cancels
    seen = np.exp(np.minimum(top + np.log(weight.mean(axis=0)), 0.0))  # mean(rho), at most 1
    weight = weight / weight.mean(axis=0)
    middle = (rewards.min(axis=0) + rewards.max(axis=0)) / 2
    level = middle + (weight * (rewards - middle)).mean(axis=0)
    held = weight / len(weight)
    deviation = weight * (rewards - level) / np.where(held < ALL, 1 - held, 1.0)
    terms: Floats = (level + (deviation - deviation.mean(axis=0))).sum(axis=1)
    varies = np.ptp(rewards, axis=0) > 0
    effective = seen**2 / (held**2).sum(axis=0)
    return terms, float(effective[varies if varies.any() else slice(None)].min())
