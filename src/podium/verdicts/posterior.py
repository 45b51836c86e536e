"""The posterior of the difference of two policies under a Gaussian-process prior on the rewards r(s, a).

The difference V(pi) - V(mu) = mean_n sum_a (pi - mu)(a|s_n) r(s_n, a) is linear in r, so its posterior is Gaussian
in closed form; LDE is its mean when the rewards of the actions of a state are exchangeable. The prior (see `prior`)
has its variances fitted, except those of the policy and logger features, which are integrated over a grid.

What the model may have got wrong is met in three ways: no variance falls below a share of the sandwich variance of
leave-one-out residuals; degrees of freedom come from the kurtosis of those residuals and from the number of rows that
tell the policies apart; and where the logger seems to seek reward, a doubly robust estimate (GP-AIPW) that is fairly
sure of the opposite silences a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.facts import Fact
from podium.verdicts.block import Solved, solve
from podium.verdicts.dealing import deal
from podium.verdicts.evidence import Evidence
from podium.verdicts.fitting import fit_variances
from podium.verdicts.pairs import pair_variance
from podium.verdicts.prior import build_kernels

WHOLE_ROWS = 2000  # the longest log that is inverted at once
BLOCK_ROWS = 1000  # of longer logs
FIT_ROWS = 500  # rows per block of the likelihood that the variances are fitted by
FIT_BLOCKS = 4  # blocks of a longer log that the variances are fitted on
# What blocks are combined with is itself estimated, so their joint standard error is multiplied by this. On one or two
# logs of each of 38 families, at N = 2,600 and 6,000, the 95% interval then held the truth in 98% and 88% of the pairs
# of the half that was looked at first, and in 99% and 97% of those of the other half. To measure it again:
# python -m podium.calibration --every --rows 2600 6000
BLOCK_WIDENING = 1.15
# The next three are those of the table in docs/calibration.md (`python -m podium.calibration`): no family and size with
# 30 claims or more had over 5% of them wrong.
SANDWICH = 0.7  # share of the leave-one-out variance below which no variance may fall
FREEDOM = (8.0, 30.0)  # bounds of the degrees of freedom
VETO = 0.8  # under an alarm, AIPW this sure of the opposite silences a pair


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the log says of every pair i < j, and of every policy.

    Attributes
    ----------
    difference, variance, freedom : (P,) location, squared scale and degrees of freedom of a t distribution
    values : (K,) posterior mean value of each policy
    reasons : (P,) why a pair is silenced, one sentence each; empty where the posterior stands
    learned : (P,) share of the prior variance that the log removed, .2 to 1
    influence : (N, K) how much each value falls without a row
    """

    difference: Floats
    variance: Floats
    freedom: Floats
    values: Floats
    reasons: tuple[str, ...]
    learned: Floats
    influence: Floats


def posterior(evidence: Evidence, alarm: bool = False) -> Posterior:
    """The posterior of every difference; see the module's head. `alarm`: the logger seems to seek reward."""
    from scipy.special import stdtr

    e = evidence
    i, j = e.pairs
    scale = float(e.rewards.std())
    if e.rows < 3 or scale <= 1e-12 * float(np.abs(e.rewards).max()):
        return silent(e, Fact("fewer than 3 rows" if e.rows < 3 else "equal rewards"))
    check = alarm and e.behavior is not None
    found = whole(e, scale, check) if e.rows <= WHOLE_ROWS else blocks(e, scale, check)
    if found is None:
        return silent(e, Fact("variances not fitted"))
    m, v = found.difference, found.variance
    reasons = np.full(len(i), "", dtype=object)
    if alarm and e.behavior is None:
        reasons[:] = Fact("logger seeks reward, unknown")
    if found.aipw is not None:
        d2, v2, nu2 = found.aipw
        against = stdtr(nu2, -np.sign(m) * d2 / np.sqrt(np.maximum(v2, 1e-300)))
        reasons[against > VETO] = Fact("logger seeks reward, opposed")
    reasons[v <= 1e-14] = Fact("same policies")
    return Posterior(
        difference=np.where(v <= 1e-14, 0.0, m * scale),
        variance=v * scale**2,
        freedom=found.freedom,
        values=float(e.rewards.mean()) + scale * (found.level + policy_values(m, i, j, e.n_policies)),
        reasons=tuple(reasons.tolist()),
        learned=found.learned,
        influence=scale * found.influence,
    )


@dataclass(frozen=True, eq=False)
class PairPosterior:
    """(P,) arrays over the pairs, in units of the sd of the rewards."""

    difference: Floats
    variance: Floats
    freedom: Floats
    learned: Floats
    aipw: tuple[Floats, Floats, Floats] | None
    level: float
    influence: Floats  # (N, K)


def whole(e: Evidence, scale: float, check: bool) -> PairPosterior | None:
    """All rows at once; None where the variances cannot be fitted."""
    kernels = build_kernels(e, scale)
    theta = fit_variances([(kernels, rows) for rows in deal(e, -(-e.rows // FIT_ROWS), FIT_ROWS)])
    if theta is None:
        return None
    solved = solve(kernels, theta, check)
    m, modelled = model_moments(solved, e)
    within = solved.weights @ pair_variance(solved.covariances, *e.pairs)
    return PairPosterior(
        m, widened(solved, e, modelled), degrees(solved, e, modelled), learned_share(within, solved.prior),
        solved.aipw, solved.level, solved.influence,
    )  # fmt: skip


def model_moments(s: Solved, e: Evidence) -> tuple[Floats, Floats]:
    """Mean and variance per pair by the model alone, over the grid."""
    i, j = e.pairs
    differences = s.means[:, i] - s.means[:, j]
    m = s.weights @ differences
    return m, s.weights @ (pair_variance(s.covariances, i, j) + (differences - m) ** 2)


def widened(s: Solved, e: Evidence, modelled: Floats) -> Floats:
    """The variance per pair with the sampling of states, no less than a share of the sandwich.

    Dependent rows make the model's own variance too small, so with units the sandwich counts in full.
    """
    share = SANDWICH if e.units is None else 1.0
    return np.maximum(modelled + pair_variance(s.sampling, *e.pairs), share * s.sandwich)


def degrees(s: Solved, e: Evidence, modelled: Floats) -> Floats:
    """Degrees of freedom per pair: the less of the variance rests on residuals, the less their few degrees matter."""
    v = widened(s, e, modelled)
    ratio = v / np.maximum(s.sandwich, 1e-9 * v + 1e-300)
    least = FREEDOM[0] if e.units is None else min(FREEDOM[0], float(e.units.max()))
    freedom = np.clip(s.freedom * ratio, max(least, 1.0), FREEDOM[1])
    return np.minimum(freedom, np.maximum(informative_rows(e) - 1, 1.0))


def informative_rows(e: Evidence) -> Floats:
    """(P,) how many rows tell two policies apart: (sum |g|)^2 / sum g^2, g = pi_i - pi_j at the logged actions."""
    i, j = e.pairs
    logged = e.policies[:, np.arange(e.rows), e.actions]
    total, square = np.empty(len(i)), np.empty(len(i))
    for k in np.unique(i):
        rows = i == k
        g = logged[k] - logged[j[rows]]
        total[rows], square[rows] = np.abs(g).sum(axis=1), (g * g).sum(axis=1)
    count: Floats = total**2 / np.maximum(square, 1e-300)
    return count


def blocks(e: Evidence, scale: float, check: bool) -> PairPosterior | None:
    """Blocks under one set of variances, their posterior means combined as what they are: correlated.

    With v_0 the prior variance of a difference and v that of a block, the means of two blocks covary by c = v_0 - v
    each with the difference, and by r with each other. The best linear prediction from B of them is

        m = f sum_b m_b,   f = c / (c + (B - 1) r),   with variance   v_0 - f B c.

    What no block has seen stays open however many there are: then r is large. It is read off a block of twice the
    rows, whose variance w obeys the same formula: r = 2 c^2 / (v_0 - w) - c, between c^2 / v_0 (the blocks share
    nothing but the difference) and c (each knows what all know).
    """
    dealt = deal(e, -(-e.rows // BLOCK_ROWS), WHOLE_ROWS)
    parts = [e.take(rows) for rows in dealt]
    first = [build_kernels(part, scale) for part in parts[:FIT_BLOCKS]]
    theta = fit_variances(
        [(k, rows) for k in first for rows in deal(k.evidence, -(-k.evidence.rows // FIT_ROWS), FIT_ROWS)]
    )
    if theta is None:
        return None
    found = []
    influence = np.zeros((e.rows, e.n_policies))
    for b, (rows, part) in enumerate(zip(dealt, parts, strict=True)):
        found.append(solve(first[b] if b < len(first) else build_kernels(part, scale), theta, check))
        influence[rows] = found[-1].influence
    both = e.take(np.sort(np.concatenate(dealt[:2])))
    double = solve(build_kernels(both, scale), theta, False)
    i, j = e.pairs
    count = len(found)
    means, spreads = (np.array(x) for x in zip(*(model_moments(s, e) for s in found), strict=True))
    prior = np.maximum(np.mean([s.prior for s in found], axis=0), 1e-15)
    known = np.maximum(prior - spreads.mean(axis=0), 1e-9 * prior)
    twice = np.maximum(double.prior - model_moments(double, both)[1], known)
    common = np.clip(2 * known**2 / twice - known, known**2 / prior, known)
    factor = known / (known + (count - 1) * common)
    within = prior - factor * count * known
    sampling = np.mean([pair_variance(s.sampling, i, j) for s in found], axis=0) / count
    sandwich = factor**2 * np.sum([s.sandwich for s in found], axis=0)
    v = np.maximum(within + sampling, (SANDWICH if e.units is None else 1.0) * sandwich)
    freedom = np.sum(
        [degrees(s, part, model_moments(s, part)[1]) for s, part in zip(found, parts, strict=True)], axis=0
    )
    if e.units is not None:
        freedom = np.minimum(freedom, max(float(e.units.max()), 1.0))
    checks = [s.aipw for s in found if s.aipw is not None]
    aipw = None
    if checks:
        d2, v2, nu2 = (np.array(x) for x in zip(*checks, strict=True))
        aipw = (d2.mean(axis=0), v2.mean(axis=0) / len(checks), nu2.sum(axis=0))
    return PairPosterior(
        factor * means.sum(axis=0), BLOCK_WIDENING**2 * v, freedom, learned_share(within, prior), aipw,
        float(np.mean([s.level for s in found])), influence / count,
    )  # fmt: skip


def learned_share(within: Floats, prior: Floats) -> Floats:
    share: Floats = np.clip(1 - within / np.maximum(prior, 1e-300), 0.2, 1.0)
    return share


def policy_values(differences: Floats, i: Codes, j: Codes, k: int) -> Floats:
    """(K,) centred values whose differences come nearest to those of the pairs."""
    full = np.zeros((k, k))
    full[i, j], full[j, i] = differences, -differences
    values: Floats = full.mean(axis=1)
    return values


def silent(e: Evidence, reason: Fact) -> Posterior:
    """No answer, for a stated reason."""
    i, _ = e.pairs
    spread = float(e.rewards.var()) or 1.0
    flat = np.full(len(i), spread)
    return Posterior(
        difference=np.zeros(len(i)),
        variance=flat,
        freedom=np.ones(len(i)),
        values=np.full(e.n_policies, float(e.rewards.mean())),
        reasons=(reason,) * len(i),
        learned=np.ones(len(i)),
        influence=np.zeros((e.rows, e.n_policies)),
    )
