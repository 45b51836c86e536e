"""The posterior of the difference of two policies under a Gaussian-process prior on the rewards r(s, a).

The difference V(pi) - V(mu) = mean_n sum_a (pi - mu)(a|s_n) r(s_n, a) is linear in r, so its posterior is Gaussian
in closed form; LDE is its mean when the rewards of the actions of a state are exchangeable. The prior (see `prior`)
has its variances fitted, except the size of the actions' effects and the variances of the policy and logger features,
which are integrated over a grid (see `block`). The result is a mixture of t distributions for every pair.

What the model may have got wrong is met in four ways: no variance falls below a share of the sandwich variance of
leave-one-out residuals; degrees of freedom come from the kurtosis of those residuals, and from the number of rows and
of rare rewards that tell the policies apart; with fewer than a handful of these, or of units, nothing is claimed; and
where the logger seems to seek reward, a doubly robust estimate (GP-AIPW) that is fairly sure of the opposite silences a
pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.facts import Fact
from podium.data.scales import EPSILON
from podium.verdicts.block import GRID, NEGLIGIBLE, RHOS, Solved, normalized, solve
from podium.verdicts.dealing import deal
from podium.verdicts.described import explained
from podium.verdicts.evidence import Evidence
from podium.verdicts.fitting import fit_variances
from podium.verdicts.mixture import Mixture
from podium.verdicts.prior import Kernels, build_kernels
from podium.verdicts.thin import informative_rows, rare_rewards, thin

WHOLE_ROWS = 2000  # the longest log that is inverted at once
BLOCK_ROWS = 1000  # of longer logs
FIT_ROWS = 500  # rows per block of the likelihood that the variances are fitted by
FIT_BLOCKS = 4  # blocks of a longer log that the variances are fitted on
# What blocks are combined with is itself estimated, so their joint standard error is multiplied by this. On one or two
# logs of each of 38 families, at N = 2,600 and 6,000, the 95% interval then held the truth in 98% and 88% of the pairs
# of the half that was looked at first, and in 99% and 97% of those of the other half. To measure it again:
# python -m podium.calibration --every --rows 2600 6000
BLOCK_WIDENING = 1.15
# Policies may know more of the actions than their features say, and be drawn to the best of what a smooth prior levels
# out: where features are used, standard errors are multiplied by this. See docs/action-features.md.
TIED_WIDENING = 1.15
# The next three are those of the table in docs/calibration.md (`python -m podium.calibration`): no family and size with
# 30 claims or more had over 5% of them wrong.
SANDWICH = 0.7  # share of the leave-one-out variance below which no variance may fall
FREEDOM = (8.0, 100.0)  # bounds of the degrees of freedom
VETO = 0.8  # under an alarm, AIPW this sure of the opposite silences a pair,
APART = 3.0  # if the posterior mean is also this many of its standard errors away: a vague check opposes by chance


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the log says of every pair i < j, and of every policy.

    Attributes
    ----------
    difference, variance, freedom : (P,) mean, squared scale and degrees of freedom of the mixtures
    mixture : the distributions of the differences; None where there are none
    values : (K,) posterior mean value of each policy
    reasons : (P,) why a pair is silenced, one sentence each; empty where the posterior stands
    learned : (P,) share of the prior variance that the log removed, .2 to 1
    influence : (N, K) how much each value falls without a row
    described : whether features of the actions explain rewards, and were used
    """

    difference: Floats
    variance: Floats
    freedom: Floats
    mixture: Mixture | None
    values: Floats
    reasons: tuple[str, ...]
    learned: Floats
    influence: Floats
    described: bool = False


def posterior(evidence: Evidence, alarm: bool = False) -> Posterior:
    """The posterior of every difference; see the module's head. `alarm`: the logger seems to seek reward."""
    from scipy.special import stdtr

    e = evidence
    i, j = e.pairs
    scale = float(e.rewards.std())
    if e.rows < 3 or scale <= 16 * EPSILON * float(np.abs(e.rewards).max()):
        return silent(e, Fact("fewer than 3 rows" if e.rows < 3 else "equal rewards"))
    e = explained(e, scale)
    check = alarm and e.behavior is not None
    found = whole(e, scale, check) if e.rows <= WHOLE_ROWS else blocks(e, scale, check)
    logged = e.policies[:, np.arange(e.rows), e.actions] if found is None else found.logged
    thin_reasons = thin(e.rewards, logged, e.units, e.pairs, share=1.0)
    if found is None:
        unfitted = Fact("variances not fitted")
        return replace(silent(e, unfitted), reasons=tuple(reason or unfitted for reason in thin_reasons))
    m, v = found.difference, found.variance
    reasons = np.array([*thin_reasons, ""], dtype=object)[:-1]
    if alarm and e.behavior is None:
        reasons[:] = Fact("logger seeks reward, unknown")
    if found.aipw is not None:
        d2, v2, nu2 = found.aipw
        error = np.sqrt(np.maximum(v2, 1e-300))
        against = stdtr(nu2, -np.sign(m) * d2 / error)
        reasons[(against > VETO) & (np.abs(m - d2) > APART * error)] = Fact("logger seeks reward, opposed")
    reasons[v <= 1e-14] = Fact("same policies")
    return Posterior(
        difference=np.where(v <= 1e-14, 0.0, m * scale),
        variance=v * scale**2,
        freedom=found.mixture.freedom,
        mixture=found.mixture.scaled(scale),
        values=float(e.rewards.mean()) + scale * (found.level + policy_values(m, i, j, e.n_policies)),
        reasons=tuple(reasons.tolist()),
        learned=found.learned,
        influence=scale * found.influence,
        described=bool(e.action_kernels),
    )


@dataclass(frozen=True, eq=False)
class PairPosterior:
    """(P,) arrays over the pairs, in units of the sd of the rewards."""

    difference: Floats
    variance: Floats
    mixture: Mixture
    learned: Floats
    aipw: tuple[Floats, Floats, Floats] | None
    level: float
    influence: Floats  # (N, K)
    logged: Floats  # (K, N) the policies' probabilities of the logged actions, and of actions like them


@dataclass(frozen=True, eq=False)
class Points:
    """(G, P) posteriors at the points of the grid, with their weights; (P,) what the rows say without the model."""

    weights: Floats
    means: Floats
    variances: Floats
    priors: Floats
    sampling: Floats
    sandwich: Floats
    freedom: Floats  # degrees of freedom that the residuals have

    @classmethod
    def of(cls, s: Solved) -> Points:
        return cls(s.weights, s.means, s.variances, s.priors, s.sampling, s.sandwich, s.freedom)

    def average(self, of: Floats) -> Floats:
        return np.asarray((self.weights * of).sum(axis=0))

    def judged(
        self,
        e: Evidence,
        level: float,
        aipw: tuple[Floats, Floats, Floats] | None,
        influence: Floats,
        logged: Floats,
        wider: float = 1.0,
    ) -> PairPosterior:
        """The mixture of all points, no narrower than the rows allow.

        Dependent rows make the model's own variance too small, so with units the sandwich counts in full.
        """
        mean = self.average(self.means)
        modelled = self.average(self.variances + self.sampling + (self.means - mean) ** 2)
        v = np.maximum(modelled, (SANDWICH if e.units is None else 1.0) * self.sandwich)
        wider = wider * TIED_WIDENING if e.action_kernels else wider
        scales = wider * np.sqrt(self.variances + self.sampling + (v - modelled))
        learned = np.clip(self.average(1 - self.variances / np.maximum(self.priors, 1e-300)), 0.2, 1.0)
        variance = self.average(scales**2 + (self.means - mean) ** 2)
        mixture = Mixture(self.weights, self.means, scales, self.degrees(e, v, logged)).merged(GRID)
        return PairPosterior(mean, variance, mixture, learned, aipw, level, influence, logged)

    def degrees(self, e: Evidence, v: Floats, logged: Floats) -> Floats:
        """(P,) degrees of freedom: the less of the variance rests on residuals, the less their few degrees matter."""
        ratio = v / np.maximum(self.sandwich, 1e-9 * v + 1e-300)
        freedom = np.clip(self.freedom * ratio, *FREEDOM)
        rare = informative_rows(logged[:, rare_rewards(e.rewards)], e.pairs)
        freedom = np.minimum(freedom, np.maximum(rare - 1, 1.0))
        return freedom if e.units is None else np.minimum(freedom, max(float(e.units.max()), 1.0))


def whole(e: Evidence, scale: float, check: bool) -> PairPosterior | None:
    """All rows at once; None where the variances cannot be fitted."""
    fitted = fit_whole(e, scale)
    if fitted is None:
        return None
    kernels, theta = fitted
    solved = solve(kernels, theta, check)
    return Points.of(solved).judged(e, solved.level, solved.aipw, solved.influence, kernels.logged)


def fit_whole(e: Evidence, scale: float) -> tuple[Kernels, dict[str, float]] | None:
    """The prior on all rows, and its variances; None where they cannot be fitted."""
    kernels = build_kernels(e, scale)
    theta = fit_variances([(kernels, rows) for rows in deal(e, -(-e.rows // FIT_ROWS), FIT_ROWS)])
    return None if theta is None else (kernels.tied(theta), theta)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a long log in blocks, and the variances that all of them share."""

    dealt: list[Codes]
    theta: dict[str, float]
    scale: float

    def kernels(self, e: Evidence, block: int) -> Kernels:
        """The prior on one block, built again each time, since kernels are large."""
        return self.of_rows(e, self.dealt[block]).tied(self.theta)

    def double(self, e: Evidence) -> Kernels:
        """The prior on the first two blocks together."""
        return self.of_rows(e, np.sort(np.concatenate(self.dealt[:2]))).tied(self.theta)

    def of_rows(self, e: Evidence, rows: Codes) -> Kernels:
        return build_kernels(e.take(rows), self.scale)


def fit_blocks(e: Evidence, scale: float) -> Blocks | None:
    """The blocks of a long log; None where the variances cannot be fitted."""
    dealt = deal(e, -(-e.rows // BLOCK_ROWS), WHOLE_ROWS)
    first = [build_kernels(e.take(rows), scale) for rows in dealt[:FIT_BLOCKS]]
    theta = fit_variances(
        [(k, rows) for k in first for rows in deal(k.evidence, -(-k.evidence.rows // FIT_ROWS), FIT_ROWS)]
    )
    return None if theta is None else Blocks(dealt, theta, scale)


def blocks(e: Evidence, scale: float, check: bool) -> PairPosterior | None:
    """Blocks under one set of variances, their posterior means combined as what they are: correlated.

    At each point of the grid, with v_0 the prior variance of a difference and v that of a block, the means of two
    blocks covary by c = v_0 - v each with the difference, and by r with each other. The best linear prediction from B
    of them is

        m = f sum_b m_b,   f = c / (c + (B - 1) r),   with variance   v_0 - f B c.

    What no block has seen stays open however many there are: then r is large. It is read off a block of twice the
    rows, whose variance w obeys the same formula: r = 2 c^2 / (v_0 - w) - c, between c^2 / v_0 (the blocks share
    nothing but the difference) and c (each knows what all know). The likelihoods of the blocks multiply.
    """
    fitted = fit_blocks(e, scale)
    if fitted is None:
        return None
    double = solve(fitted.double(e), fitted.theta, False)
    rhos, allowed = rhos_that_matter(double)
    found = []
    influence, logged = np.zeros((e.rows, e.n_policies)), np.zeros((e.n_policies, e.rows))
    for b, rows in enumerate(fitted.dealt):
        kernels = fitted.kernels(e, b)
        found.append(solve(kernels, fitted.theta, check, rhos, allowed))
        influence[rows], logged[:, rows] = found[-1].influence, kernels.logged
    checks = [s.aipw for s in found if s.aipw is not None]
    aipw = None
    if checks:
        d2, v2, nu2 = (np.array(x) for x in zip(*checks, strict=True))
        aipw = (d2.mean(axis=0), v2.mean(axis=0) / len(checks), nu2.sum(axis=0))
    level = float(np.mean([s.level for s in found]))
    together = combined(found, double.at(rhos))
    return together.judged(e, level, aipw, influence / len(found), logged, BLOCK_WIDENING)


def rhos_that_matter(double: Solved) -> tuple[list[float], NDArray[np.bool_]]:
    """The rhos that have weight in a block of twice the rows, and (R, P) for which pairs."""
    allowed = double.rho_weights >= NEGLIGIBLE
    kept = allowed.any(axis=1)
    return np.array(RHOS)[kept].tolist(), allowed[kept]


def combined(found: list[Solved], double: Solved) -> Points:
    """The posteriors of all blocks as one; `double` is that of a block of twice the rows, at the same rhos."""
    count = len(found)
    prior = np.maximum(np.mean([s.priors for s in found], axis=0), 1e-15)
    known = np.maximum(prior - np.mean([s.variances for s in found], axis=0), 1e-9 * prior)
    twice = np.maximum(double.priors - double.variances, known)
    common = np.clip(2 * known**2 / twice - known, known**2 / prior, known)
    factor = known / (known + (count - 1) * common)
    weights = normalized(np.sum([s.likelihood for s in found], axis=0) + found[0].prior_weight)
    return Points(
        weights=weights,
        means=factor * np.sum([s.means for s in found], axis=0),
        variances=prior - factor * count * known,
        priors=prior,
        sampling=np.mean([s.sampling for s in found], axis=0) / count,
        sandwich=(weights * factor).sum(axis=0) ** 2 * np.sum([s.sandwich for s in found], axis=0),
        freedom=np.sum([s.freedom for s in found], axis=0),
    )


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
        mixture=None,
        values=np.full(e.n_policies, float(e.rewards.mean())),
        reasons=(reason,) * len(i),
        learned=np.ones(len(i)),
        influence=np.zeros((e.rows, e.n_policies)),
    )
