"""How many claims a judgement supports together, and how probable it is that each policy is the best."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices, pair_variance

DRAWS = 10_000


def two_sided(p_better: Floats) -> Floats:
    """The two-sided p value that goes with a probability of being better."""
    p: Floats = np.minimum(1.0, 2 * np.minimum(p_better, 1 - p_better))
    return p


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


def max_t(p: Floats, covariance: Floats, seed: int, draws: int = DRAWS) -> Floats:
    """P values adjusted so that claims at 5% are all right together in 95% of logs (max-T step-down).

    The pairs' z values are correlated as the policies' covariance says; each pair is held against the largest
    |z| that chance gives among it and all less certain pairs.
    """
    from scipy.special import ndtri

    if len(p) <= 1 or not np.isfinite(covariance).all():
        return np.minimum(1.0, p * max(1, len(p)))
    i, j = pair_indices(len(covariance))
    noise = gaussian_draws(covariance, seed, draws)
    spread = np.sqrt(np.maximum(pair_variance(covariance, i, j), 1e-300))
    observed = -ndtri(np.clip(p / 2, 1e-300, 0.5))
    order = np.argsort(-observed)  # the most certain pair first
    largest = np.zeros(draws)
    adjusted = np.empty_like(p)
    for pair in order[::-1]:
        largest = np.maximum(largest, np.abs(noise[:, i[pair]] - noise[:, j[pair]]) / spread[pair])
        adjusted[pair] = (1 + np.count_nonzero(largest >= observed[pair])) / (1 + draws)
    adjusted[order] = np.maximum.accumulate(np.maximum(adjusted[order], p[order]))
    return np.minimum(1.0, adjusted)


def joint_covariance(judgement: Judgement) -> Floats:
    """(K, K) a covariance whose differences have the pairs' variances, by double centring; nan if one is unknown."""
    k = len(judgement.values)
    i, j = pair_indices(k)
    full = np.zeros((k, k))
    full[i, j] = full[j, i] = steady(judgement.std_error) ** 2
    if not np.isfinite(full).all():
        return np.full((k, k), np.nan)
    full = full - full.mean(axis=0) - full.mean(axis=1)[:, None] + full.mean()
    scale, axes = np.linalg.eigh(-0.5 * full)
    covariance: Floats = (axes * np.maximum(scale, 0)) @ axes.T
    return covariance


def steady(numbers: Floats) -> Floats:
    """Numbers to six digits: engines add in different orders, and draws must not turn on the last bit.

    >>> steady(np.array([0.123456789, 98765432.1, 0.0])).tolist()
    [0.123457, 98765400.0, 0.0]
    """
    return np.array([float(f"{x:.5e}") for x in numbers])


def rounded_values(judgement: Judgement) -> Floats:
    """(K,) values with mean 0 that fit all differences best, to a millionth of the smallest standard error."""
    k = len(judgement.values)
    i, j = pair_indices(k)
    gaps = np.zeros((k, k))
    gaps[i, j], gaps[j, i] = judgement.difference, -judgement.difference
    centred: Floats = gaps.mean(axis=1)
    errors = steady(judgement.std_error[judgement.std_error > 0])
    unit = max(1e-6 * float(errors.min()), 1e-15 * float(np.abs(centred).max()), 1e-300)
    rounded: Floats = np.round(centred / unit) * unit
    return rounded


def gaussian_draws(covariance: Floats, seed: int, draws: int) -> Floats:
    """(draws, K) normal draws with this covariance, which may be singular.

    Noise is multiplied by the symmetric root of the covariance. Unlike the eigenvectors, whose signs (and, of equal
    eigenvalues, directions) are left to rounding, that root is unique.
    """
    scale, axes = np.linalg.eigh(covariance)
    scale = np.where(scale > 1e-12 * scale.max(), scale, 0.0)
    noise = np.random.default_rng(seed).standard_normal((draws, len(covariance)))
    drawn: Floats = noise @ ((axes * np.sqrt(scale)) @ axes.T)
    return drawn


def best_and_regret(judgement: Judgement, sign: float, seed: int) -> tuple[Floats, Floats]:
    """(K,) how often each policy is the best, and how much choosing it is expected to lose; nan where nothing is known.

    Values are those that fit all differences best, and vary together with the variances and the tails (degrees of
    freedom) that the pairs state.
    """
    k = len(judgement.values)
    covariance = joint_covariance(judgement)
    if not judgement.usable.any() or not np.isfinite(covariance).all():
        return np.full(k, np.nan), np.full(k, np.nan)
    freedom = float(steady(judgement.freedom[judgement.usable]).min())
    tails = np.sqrt(freedom / np.random.default_rng([seed, 4]).chisquare(freedom, size=(DRAWS, 1)))
    values = rounded_values(judgement)
    drawn = sign * (values + tails * gaussian_draws(covariance, seed, DRAWS))
    best = drawn.max(axis=1, keepdims=True)
    top = drawn >= best - 1e-7 * float(judgement.std_error.max())  # nearer than that, draws resolve nothing
    shares: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    regret: Floats = (best - drawn).mean(axis=0)
    return shares, regret
