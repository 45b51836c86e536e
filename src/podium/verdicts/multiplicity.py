"""How many claims a judgement supports together, and how probable it is that each policy is the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices, pair_variance

DRAWS = 10_000
ALIKE = 1e-12  # variances below this, of the largest, are rounding noise
# The false discovery rate of a comparison, in units of the error of one pair. It binds only with several pairs of which
# few can be told apart; see docs/verdicts.md for what it was chosen by.
RATE = 3.0
CERTAIN = 1e-15  # p values below this are as good as 0
RESOLVED = 1e-7  # what draws resolve, in units of the largest error

Mask: TypeAlias = NDArray[np.bool_]


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


@dataclass(frozen=True, eq=False)
class Claims:
    """(P,) p values after allowing for all pairs, and the p value up to which each pair alone would be claimed.

    A pair is claimed iff `adjusted` <= error, iff its own p value <= `limit`, iff its interval at level 1 - `limit`
    excludes 0.
    """

    adjusted: Floats
    limit: Floats


def claim(p: Floats, error: float) -> Claims:
    """The rule of claims: p <= error, and a false discovery rate of at most RATE times that among all pairs.

    >>> found = claim(np.array([0.02, 0.03, 0.9, 0.9]), 0.05)
    >>> found.adjusted.tolist(), found.limit.tolist()
    ([0.02, 0.03, 0.9, 0.9], [0.05, 0.05, 0.05, 0.05])
    """
    rates = benjamini_hochberg(p)
    found = max(int((rates <= RATE * error).sum()), 1)
    limit = min(error, found * RATE * error / max(len(p), 1))
    return Claims(np.maximum(p, rates / RATE), np.full(len(p), limit))


def rule_text(error: float, joint: bool) -> str:
    """The rule of claims in words, as every output states it.

    >>> rule_text(0.05, joint=True)
    'all claims hold together with probability 0.95 (max-T)'
    """
    if joint:
        return f"all claims hold together with probability {1 - error:.4g} (max-T)"
    rate = min(RATE * error, 1.0)
    return (
        f"a claim needs an interval that excludes 0 (p <= {error:.3g}) and a false discovery rate of at most "
        f"{rate:.3g} among all pairs (Benjamini-Hochberg)"
    )


def claim_jointly(p: Floats, judgement: Judgement, error: float, seed: int) -> Claims:
    """All claims hold together with probability 1 - error (max-T)."""
    adjusted = max_t(p, joint_covariance(judgement), seed)
    limit = error * np.divide(p, adjusted, out=np.ones_like(p), where=adjusted > 0)
    return Claims(adjusted, np.maximum(limit, CERTAIN))


def max_t(p: Floats, covariance: Floats, seed: int, draws: int = DRAWS) -> Floats:
    """P values adjusted so that claims at 5% are all right together in 95% of logs (max-T step-down).

    The pairs' z values are correlated as the policies' covariance says; each pair is held against the largest
    |z| that chance gives among it and all less certain pairs. Pairs with p = 1 (silent ones, policies that do the same)
    cannot be claimed, so they do not compete.
    """
    from scipy.special import ndtri

    if len(p) <= 1 or not np.isfinite(covariance).all():
        return np.minimum(1.0, p * max(1, len(p)))
    i, j = pair_indices(len(covariance))
    noise = gaussian_draws(covariance, seed, draws)
    spread = np.sqrt(np.maximum(pair_variance(covariance, i, j), ALIKE))
    observed = -ndtri(np.clip(p / 2, 1e-300, 0.5))
    order = np.argsort(-observed)  # the most certain pair first
    largest = np.zeros(draws)
    adjusted = np.ones_like(p)
    for pair in order[::-1]:
        if p[pair] >= 1:
            continue
        largest = np.maximum(largest, np.abs(noise[:, i[pair]] - noise[:, j[pair]]) / spread[pair])
        adjusted[pair] = (1 + np.count_nonzero(largest >= observed[pair])) / (1 + draws)
    adjusted[order] = np.maximum.accumulate(np.maximum(adjusted[order], p[order]))
    return np.minimum(1.0, adjusted)


def joint_covariance(judgement: Judgement) -> Floats:
    """(K, K) a covariance whose differences have the pairs' variances, in units of the largest of their errors; nan if
    one is unknown."""
    k = len(judgement.values)
    i, j = pair_indices(k)
    errors = np.zeros((k, k))
    errors[i, j] = errors[j, i] = judgement.std_error
    return centred_covariance(errors)


def centred_covariance(errors: Floats) -> Floats:
    """(K, K) the covariance that errors (K, K) of differences imply, by double centring, in units of the largest."""
    if not np.isfinite(errors).all():
        return np.full_like(errors, np.nan)
    full = steady((errors / (float(errors.max()) or 1.0)).ravel()).reshape(errors.shape) ** 2
    full = full - full.mean(axis=0) - full.mean(axis=1)[:, None] + full.mean()
    scale, axes = np.linalg.eigh(-0.5 * full)
    covariance: Floats = (axes * np.maximum(scale, 0)) @ axes.T
    return covariance


def known_by_others(errors: Floats) -> Floats:
    """Errors (K, K) of differences, those that are unknown as large as the least sum of two that lead there."""
    unknown = np.isnan(errors)
    if not unknown.any():
        return errors
    least = np.full_like(errors, np.nan)
    for k in range(len(errors)):
        least = np.fmin(least, errors[:, [k]] + errors[[k], :])
    found = np.where(unknown, least, errors)
    return found if np.isnan(found).sum() == unknown.sum() else known_by_others(found)


def steady(numbers: Floats) -> Floats:
    """Numbers to six digits: engines add in different orders, and draws must not turn on the last bit.

    >>> steady(np.array([0.123456789, 98765432.1, 0.0])).tolist()
    [0.123457, 98765400.0, 0.0]
    """
    return np.array([float(f"{x:.5e}") for x in numbers])


def rounded_values(gaps: Floats, errors: Floats, known: Mask) -> Floats:
    """(K,) values with mean 0 that fit the known differences (K, K) best, to a millionth of the smallest error."""
    links = np.diag(known.sum(axis=1)) - known.astype(np.float64)
    centred = np.linalg.lstsq(links, np.where(known, gaps, 0.0).sum(axis=1), rcond=None)[0]
    unit = max(1e-6 * float(steady(errors[errors > 0]).min()), 1e-15 * float(np.abs(centred).max()), 1e-300)
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


def best_and_regret(judgement: Judgement, sign: float, seed: int, same: Codes | None = None) -> tuple[Floats, Floats]:
    """(K,) how often each policy is the best, and how much choosing it is expected to lose; nan where nothing is known.

    Values are those that fit the differences of all judged pairs best, and vary together with the variances and the
    tails (degrees of freedom) that these pairs state. The two policies of a silent pair never exclude each other: a
    draw is shared by the policies that no policy exceeds with which they were compared. Policies that do the same count
    once and share what they get. All is nan where the judged pairs do not connect all policies.

    Parameters
    ----------
    same : (K,) for each policy the first that does the same (`podium.policies.same_policies`)
    """
    k = len(judgement.values)
    leaders, group = np.unique(np.arange(k) if same is None else same, return_inverse=True)
    i, j = pair_indices(k)
    gaps, errors, usable = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k), dtype=bool)
    gaps[i, j], gaps[j, i], usable[i, j] = judgement.difference, -judgement.difference, judgement.usable
    errors[i, j] = errors[j, i] = judgement.std_error
    known = usable | usable.T | ((errors == 0) & (gaps == 0))  # also a policy and itself, and what is equal
    freedom = np.full((k, k), np.inf)
    freedom[i, j] = judgement.freedom
    pick = np.ix_(leaders, leaders)
    shares, regret = drawn_best(sign * gaps[pick], errors[pick], known[pick], freedom[pick][usable[pick]], seed)
    return shares[group] / np.bincount(group)[group], regret[group]


def drawn_best(gaps: Floats, errors: Floats, known: Mask, freedom: Floats, seed: int) -> tuple[Floats, Floats]:
    """The same for K policies that differ, from differences (K, K), their errors (K, K) and degrees of freedom."""
    if len(gaps) == 1:
        return np.ones(1), np.zeros(1)
    if known.all() and not errors.any():  # known costs alone
        return certain_best(gaps)
    errors = known_by_others(np.where(known, errors, np.nan))
    covariance, unit = centred_covariance(errors), float(np.max(errors))
    if not len(freedom) or not np.isfinite(covariance).all():
        return np.full(len(gaps), np.nan), np.full(len(gaps), np.nan)
    least = float(steady(freedom).min())
    tails = np.sqrt(least / np.random.default_rng([seed, 4]).chisquare(least, size=(DRAWS, 1)))
    values = rounded_values(gaps / unit, errors / unit, known)
    drawn = values + tails * gaussian_draws(covariance, seed, DRAWS)
    top = unbeaten(drawn, known)
    shares: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    regret: Floats = (drawn.max(axis=1, keepdims=True) - drawn).mean(axis=0) * unit
    return shares, regret


def certain_best(gaps: Floats) -> tuple[Floats, Floats]:
    """The same from differences (K, K) that are known without error."""
    behind: Floats = np.maximum(-gaps.min(axis=1), 0.0)
    first = behind <= RESOLVED * np.abs(gaps).max()
    return first / first.sum(), behind


def unbeaten(drawn: Floats, known: Mask) -> Mask:
    """(draws, K) which policies are exceeded by none with which they were compared."""
    top: Mask = drawn >= drawn.max(axis=1, keepdims=True) - RESOLVED
    for k in np.flatnonzero(~known.all(axis=1)):
        top[:, k] = drawn[:, k] >= drawn[:, known[k]].max(axis=1) - RESOLVED
    return top
