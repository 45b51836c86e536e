"""How sure is a difference? P(better), intervals, and better / worse / cannot tell, many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.columns import Floats

PROCEDURE = "paired t (provisional)"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """One entry per pair: P(better), interval, two-sided p value, and the same after multiplicity."""

    p_better: Floats
    low: Floats  # nan where no interval exists
    high: Floats
    p_value: Floats
    p_adjusted: Floats
    claim: NDArray[np.bool_]


def paired_t(difference: Floats, std_error: Floats, samples: int, level: float, joint: bool) -> Verdicts:
    """Verdicts by the t distribution of paired row differences.

    z = D / se with `samples` - 1 degrees of freedom; P(better) = T(z). Without spread (one row, or the same
    difference in every row) nothing can be judged: P = 1/2 and no interval.
    """
    from scipy.special import stdtr, stdtrit

    usable = np.isfinite(std_error) & (std_error > 0)
    z = np.divide(difference, std_error, out=np.zeros_like(difference), where=usable)
    freedom = max(samples - 1, 1)
    p_better = stdtr(freedom, z)
    p_value = np.where(usable, 2 * stdtr(freedom, -np.abs(z)), 1.0)
    half = np.where(usable, stdtrit(freedom, (1 + level) / 2) * std_error, np.nan)
    adjusted = holm(p_value) if joint else benjamini_hochberg(p_value)
    return Verdicts(p_better, difference - half, difference + half, p_value, adjusted, usable & (adjusted <= 1 - level))


def benjamini_hochberg(p: Floats) -> Floats:
    """P values adjusted so that claims at 5% are false in at most 5% of claims, on average.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(p)[::-1]
    ranks = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * len(p) / ranks))
    return adjusted


def holm(p: Floats) -> Floats:
    """P values adjusted so that claims at 5% are all right together in 95% of logs.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def probability_best(values: Floats, covariance: Floats, sign: float, seed: int, draws: int = 10_000) -> Floats:
    """(K,) how often each policy comes out best when the estimates vary as their covariance says."""
    if not np.isfinite(covariance).all():
        return np.full(len(values), 1 / len(values))
    scale, axes = np.linalg.eigh(covariance)
    noise = np.random.default_rng(seed).standard_normal((draws, len(values)))
    drawn = sign * (values + (noise * np.sqrt(np.maximum(scale, 0))) @ axes.T)
    top = drawn >= drawn.max(axis=1, keepdims=True) - 1e-12 * np.abs(values).max(initial=0.0)
    shares: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
