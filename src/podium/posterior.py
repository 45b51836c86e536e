"""The posterior of the difference of two policies under a Gaussian-process prior on the rewards r(s, a).

The difference V(pi) - V(mu) = mean_n sum_a (pi - mu)(a|s_n) r(s_n, a) is linear in r, so its posterior is Gaussian
in closed form; LDE is its mean when the rewards of the actions of a state are exchangeable. The prior is a sum of

    shared by all actions   const, linear and smooth in the state (they drop out of a difference), and the
                            covariates h_k(s) = sum_a B pi_k and log B(.|s), against loggers that follow the state
    per action              1[a = a'] (const + linear + smooth); the same with smooth action kernels if given
    cell                    1[s = s', a = a']
    policies                pi_k(a|s) - 1/A: "what a policy prefers is better (or worse)"
    logger                  log B(a|s): "what the logger prefers is better", against loggers that seek reward

plus noise. Variances are fitted (MAP) on at most `FIT_ROWS` rows, except those of the last two parts, which are
integrated over a grid. What the model may have got wrong is met by a sandwich variance from leave-one-out
residuals, by degrees of freedom from their kurtosis, and, where the logger seems to seek reward, by a doubly
robust check (GP-AIPW). No claim is better than its weakest support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.evidence import (
    ALARM,
    ALARM_ESTIMATED,
    Codes,
    Evidence,
    Floats,
    degrees_of_freedom,
    pair_power_sums,
    reward_seeking,
)

FIT_ROWS = 250  # rows that the variances of the prior are fitted on
WHOLE_ROWS = 2000  # the longest log that is inverted at once
BLOCK_ROWS = 1000  # of longer logs
CALM = 1.15  # blocks share their hyperparameters, so their joint standard error is multiplied by this
GRID = 7  # points per integrated variance
SANDWICH = 0.7  # share of the leave-one-out variance below which no variance may fall
FREEDOM = (8.0, 30.0)  # bounds of the degrees of freedom
VETO = 0.8  # under an alarm, AIPW this sure of the opposite silences a pair
DISTINCT = 0.95  # share of distinct (s, a) from which cell and noise cannot be told apart

Components = list[tuple[str, Floats]]


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the log says of every pair (i, j), i < j, and of every policy.

    Attributes
    ----------
    i, j : (P,) the policies of each pair
    difference, variance, freedom : (P,) location, squared scale and degrees of freedom of a t distribution
    p_better : (P,) probability that i is better than j
    path : (P,) "posterior", or "none" where nothing may be said; then `reasons` says why, and P = 1/2
    values : (K,) posterior mean value of each policy
    covariance : (K, K) of the values, up to a constant that all policies share
    t_p : the alarm statistic; `alarm` says whether it rang
    reasons : (P,) one sentence each, empty where the posterior stands
    learned : (P,) share of the prior variance that the log removed, .2 to 1
    """

    i: Codes
    j: Codes
    difference: Floats
    variance: Floats
    freedom: Floats
    p_better: Floats
    path: tuple[str, ...]
    values: Floats
    covariance: Floats
    t_p: float
    alarm: bool
    reasons: tuple[str, ...]
    learned: Floats  # (P,)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The interval of each difference; it leaves out 0 iff P(better) is beyond (1 + level) / 2.

        The posterior mean shrinks a difference towards 0 by about `learned`, the share of its prior variance that
        the log removed. The end near 0 keeps that caution; the far end undoes it, so that large differences are
        not missed.
        """
        from scipy.special import stdtrit

        half = stdtrit(self.freedom, (1 + level) / 2) * np.sqrt(self.variance)
        low, high = self.difference - half, self.difference + half
        up = self.difference >= 0
        return np.where(up, low, low / self.learned), np.where(up, high / self.learned, high)


# --- kernels -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kernels:
    """The parts of the prior, on S distinct states, A actions and N rows; rewards are in units of their sd."""

    evidence: Evidence
    y: Floats  # (N,) standardised rewards
    state: Components  # name -> (S, S)
    shared: tuple[str, ...]  # which of them serve all actions
    per_action: tuple[str, ...]  # which of them serve each action apart
    action: Components  # name -> (A, A)
    covariates: Components  # name -> (N, c) features shared by all actions
    features: Floats  # (L, N, A) policy features, then the logger feature
    n_policy_features: int
    split: dict[str, float]  # shared parts that few rows tell from the cell part, and the share counted there too

    def cell(self, theta: dict[str, float]) -> float:
        """Variance of the cell part."""
        return theta["cell"] + sum(share * theta[name] for name, share in self.split.items())

    @property
    def names(self) -> list[str]:
        parts = [f"shared {s}" for s in self.shared] + [f"covariate {c}" for c, _ in self.covariates]
        parts += [f"action {a} {s}" for a, _ in self.action for s in self.per_action]
        if self.evidence.units is not None:
            parts.append("unit")
        return [*parts, "cell", "noise"]

    def rows(self, rows: Codes) -> Components:
        """Every part but the features as an (n, n) matrix over some rows, in the order of `names`."""
        e = self.evidence
        s, a = e.states[rows], e.actions[rows]
        state = {name: k[np.ix_(s, s)] for name, k in self.state}
        parts: Components = [(f"shared {name}", state[name]) for name in self.shared]
        parts += [(f"covariate {name}", x[rows] @ x[rows].T) for name, x in self.covariates]
        for name, k in self.action:
            block = k[np.ix_(a, a)]
            parts += [(f"action {name} {other}", block * state[other]) for other in self.per_action]
        if e.units is not None:
            parts.append(("unit", (e.units[rows][:, None] == e.units[rows]).astype(float)))
        cell = ((s[:, None] == s) & (a[:, None] == a)).astype(float)
        parts = [(name, k + self.split[name] * cell if name in self.split else k) for name, k in parts]
        return [*parts, ("cell", cell), ("noise", np.eye(len(rows)))]

    def row_features(self, rows: Codes) -> Floats:
        """(n, L) the features at the logged actions."""
        values: Floats = self.features[:, rows, self.evidence.actions[rows]].T
        return np.ascontiguousarray(values)

    def mixed_state(self, theta: dict[str, float], action: str) -> Floats:
        """(S, S) the state kernel that goes with an action kernel."""
        state = dict(self.state)
        total: Floats = sum(
            (theta[f"action {action} {s}"] * state[s] for s in self.per_action), np.zeros_like(self.state[0][1])
        )
        return total

    def apply(self, theta: dict[str, float], x: Floats) -> Floats:
        """The action parts of the prior covariance as an operator on (S, A, c) arrays."""
        s, a, c = x.shape
        total = self.cell(theta) * x
        for name, k in self.action:
            part = (self.mixed_state(theta, name) @ x.reshape(s, a * c)).reshape(s, a, c)
            total += part if name == "same" else np.einsum("ab,sbc->sac", k, part, optimize=True)
        return total


def squared_distances(x: Floats) -> Floats:
    square = (x * x).sum(axis=1)
    distances: Floats = np.maximum(square[:, None] + square - 2 * x @ x.T, 0)
    np.fill_diagonal(distances, 0.0)
    return distances


def build_kernels(evidence: Evidence, scale: float) -> Kernels:
    e = evidence
    points, texts = e.points, e.texts[e.first_rows]
    d, q = points.shape[1], texts.shape[1]
    n_states = e.n_states
    const = np.ones((n_states, n_states))
    if d == 0 and q <= 1:  # names alone: states are alike or not
        state: Components = [("const", const), ("same", np.eye(n_states))]
        shared: tuple[str, ...] = ("const", "same")
        per_action: tuple[str, ...] = ("const",)
    else:
        linear, distance = points @ points.T, squared_distances(points)
        for column in texts.T:
            match = (column[:, None] == column).astype(float)
            linear, distance = linear + match, distance + 2 * (1 - match)
        linear, distance = linear / (d + q), distance / (d + q)
        state = [
            ("const", const),
            ("linear", linear),
            ("smooth", np.exp(-distance / 2)),
            ("rough", np.exp(-distance / 0.18)),
        ]
        shared = ("const", "linear", "smooth", "rough")
        per_action = ("const", "linear", "smooth")
    action: Components = [("same", np.eye(e.n_actions))]
    if e.action_features is not None:
        spread = e.action_features.std(axis=0)
        z = (e.action_features - e.action_features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        apart = squared_distances(z) / z.shape[1]
        action += [("smooth", np.exp(-apart / 2)), ("rough", np.exp(-apart / 0.18))]

    centred = e.policies - 1 / e.n_actions
    size = np.sqrt((centred**2).mean(axis=(1, 2), keepdims=True))
    features = [centred / np.where(size > 0, size, 1.0) / np.sqrt(e.n_policies)]
    covariates: Components = []
    logger = logging_feature(e)
    if e.behavior is not None:
        agreement = np.einsum("na,kna->nk", e.behavior, e.policies)
        covariates.append(("agreement", unit_diagonal(standard_columns(agreement))))
        habits = np.log(np.maximum(e.behavior, 1e-12))
        habits = habits - habits.mean(axis=1, keepdims=True)
        covariates.append(("habits", unit_diagonal(habits - habits.mean(axis=0))))
    if logger is not None:
        features.append(logger[None])
    split = {
        f"shared {name}": 1 - nearest(k[np.ix_(e.states, e.states)]) for name, k in state if name in ("rough", "same")
    }
    split |= {f"covariate {name}": 1 - nearest(x @ x.T) for name, x in covariates if name == "habits"}
    y = (e.rewards - e.rewards.mean()) / scale
    return Kernels(e, y, state, shared, per_action, action, covariates, np.concatenate(features), e.n_policies, split)


def nearest(kernel: Floats) -> float:
    """Mean correlation of a row with the row most like it: near 0, a kernel is but noise under another name."""
    size = np.sqrt(np.maximum(np.diag(kernel), 1e-300))
    correlation = kernel / size / size[:, None]
    np.fill_diagonal(correlation, 0.0)
    return float(np.clip(correlation.max(axis=1), 0, 1).mean())


def logging_feature(e: Evidence) -> Floats | None:
    """(N, A) log B(a|s), centred per state, of unit sd; None where B is unknown or uniform."""
    if e.behavior is None:
        return None
    log_b = np.log(np.maximum(e.behavior, 1e-12))
    log_b = log_b - log_b.mean(axis=1, keepdims=True)
    size = log_b.std()
    return None if size < 1e-9 else log_b / size


def standard_columns(x: Floats) -> Floats:
    spread = x.std(axis=0)
    scaled: Floats = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def unit_diagonal(x: Floats) -> Floats:
    """Scaled so that the mean diagonal of x x' is 1."""
    size = np.sqrt((x * x).sum(axis=1).mean())
    return x / size if size > 0 else x


# --- hyperparameters -----------------------------------------------------------------------------------------


def prior_scales(kernels: Kernels) -> tuple[dict[str, float], dict[str, float]]:
    """Where each log variance is centred, and how firmly (sd)."""
    e = kernels.evidence
    cells = e.states * e.n_actions + e.actions
    distinct = len(np.unique(cells)) >= DISTINCT * e.rows
    centre = dict.fromkeys([*kernels.names, "policies", "logger"], 0.1)
    width = dict.fromkeys(centre, 2.0)
    centre["shared const"], width["shared const"] = 1.0, 0.5
    for name, _ in kernels.covariates:
        centre[f"covariate {name}"] = 0.5
    if distinct:  # cell and noise cannot be told apart, so most of both is taken to be signal: the wider answer
        centre["cell"] = 0.5
        centre["noise"], width["noise"] = 1e-3, 0.3
    else:
        centre["cell"] = centre["noise"] = 0.25
    return centre, width


def fit_scales(kernels: Kernels, seed: int) -> dict[str, float]:
    """MAP variances of all parts, on at most FIT_ROWS rows, with the analytic gradient."""
    from scipy.linalg import cho_factor, cho_solve, lapack
    from scipy.optimize import minimize

    e = kernels.evidence
    rows = np.arange(e.rows)
    if e.rows > FIT_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(e.rows, size=FIT_ROWS, replace=False))
    parts = kernels.rows(rows)
    u = kernels.row_features(rows)
    p = kernels.n_policy_features
    parts.append(("policies", u[:, :p] @ u[:, :p].T))
    if u.shape[1] > p:
        parts.append(("logger", u[:, p:] @ u[:, p:].T))
    names = [name for name, _ in parts]
    stack = np.stack([k for _, k in parts])
    flat = stack.reshape(len(names), -1)
    centre, width = prior_scales(kernels)
    start = np.log([centre[name] for name in names])
    firm = np.array([width[name] for name in names])
    y, n = kernels.y[rows], len(rows)
    jitter = 1e-6 * np.eye(n)

    def objective(x: Floats) -> tuple[float, Floats]:
        theta = np.exp(x)
        k = (theta @ flat).reshape(n, n) + jitter
        factor = cho_factor(k, lower=True, check_finite=False)
        alpha = cho_solve(factor, y, check_finite=False)
        inverse, _ = lapack.dpotri(factor[0], lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        value = 0.5 * y @ alpha + np.log(np.diag(factor[0])).sum() + 0.5 * (((x - start) / firm) ** 2).sum()
        slope = 0.5 * flat @ (inverse - np.outer(alpha, alpha)).ravel() * theta + (x - start) / firm**2
        return float(value), slope

    bounds = [(s - 9, s + 5) for s in start]
    best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return dict(zip(names, np.exp(best.x).tolist(), strict=True))


# --- the posterior of one block ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solved:
    """The posterior of all policy values from one block of rows (rewards in units of their sd)."""

    means: Floats  # (G, K) per grid point
    covariances: Floats  # (G, K, K) per grid point
    weights: Floats  # (G,)
    sampling: Floats  # (K, K) covariance from the states being a sample
    sandwich: Floats  # (P,) variance per pair from leave-one-out residuals
    freedom: Floats  # (P,)
    prior: Floats  # (P,) prior variance per pair
    level: float  # mean value of a policy that all share
    aipw: tuple[Floats, Floats, Floats] | None  # difference, variance, freedom per pair


def solve(kernels: Kernels, theta: dict[str, float], doubly_robust: bool) -> Solved:
    from scipy.linalg import cholesky, lapack, solve_triangular

    e = kernels.evidence
    n, k_policies = e.rows, e.n_policies
    i, j = e.pairs
    every = np.arange(n)
    y = kernels.y
    gram = 1e-6 * np.eye(n)
    for name, part in kernels.rows(every):
        gram += theta[name] * part
    lower = cholesky(gram, lower=True, check_finite=False)
    inverse, _ = lapack.dpotri(lower, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T

    u = kernels.row_features(every)  # (N, L)
    pi = np.moveaxis(e.policies, 0, 2)  # (N, A, K)
    mean_policy = np.zeros((e.n_states, e.n_actions, k_policies))
    np.add.at(mean_policy, e.states, pi / n)
    mean_policy -= mean_policy.mean(axis=2, keepdims=True)
    applied = kernels.apply(theta, mean_policy)
    cross = applied[e.states, e.actions]  # (N, K) covariance of values and rewards, without features
    prior0 = np.einsum("sak,sal->kl", mean_policy, applied, optimize=True)
    functional = np.einsum("lna,nak->kl", kernels.features, pi, optimize=True) / n
    functional = functional - functional.mean(axis=0)

    inv_u, inv_c, inv_y = inverse @ u, inverse @ cross, inverse @ y
    g, h, t = u.T @ inv_u, u.T @ inv_y, cross.T @ inv_u
    rest = functional - t  # what the rows leave open of each feature's effect
    base_mean, base_cov = cross.T @ inv_y, prior0 - cross.T @ inv_c

    # Integrate the variances of the policy and logger features.
    p = kernels.n_policy_features
    has_logger = u.shape[1] > p
    steps = np.log(0.1) + np.linspace(-5, 5, GRID)
    points = [(a, b) for a in steps for b in (steps if has_logger else [0.0])]
    means, covariances, log_weights, shrunk, betas = [], [], [], [], []
    priors = []
    for a, b in points:
        d = np.full(u.shape[1], np.exp(a))
        log_prior = half_cauchy(a)
        if has_logger:
            d[p:] = np.exp(b)
            log_prior += half_cauchy(b)
        feature_prior = (functional * d) @ functional.T
        # Differences as large as the range of the rewards are implausible, so such variances are too.
        log_prior -= 0.5 * float(pair_variance(feature_prior, i, j).max()) / (np.ptp(y) / 2) ** 2
        precision = g + np.diag(1 / d)
        factor = np.linalg.cholesky(precision)
        root = solve_triangular(factor, np.eye(len(d)), lower=True)
        spread = root.T @ root
        beta = spread @ h
        log_weights.append(0.5 * h @ beta - np.log(np.diag(factor)).sum() - 0.5 * np.log(d).sum() + log_prior)
        means.append(base_mean + rest @ beta)
        covariances.append(base_cov + rest @ spread @ rest.T)
        shrunk.append(spread)
        betas.append(beta)
        priors.append(feature_prior + prior0)
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    spread, beta = np.tensordot(weights, shrunk, axes=1), weights @ np.array(betas)
    prior = np.tensordot(weights, priors, axes=1)

    # Leave-one-out residuals and what each row contributes, at the mean over the grid.
    w = inv_c + inv_u @ spread @ rest.T
    alpha = inv_y - inv_u @ beta
    diagonal = np.diag(inverse) - np.einsum("nl,lm,nm->n", inv_u, spread, inv_u, optimize=True)
    residual = alpha / np.maximum(diagonal, 1e-12)
    clusters = e.units if e.units is not None else e.states
    contributions = w * residual[:, None]
    summed = np.zeros((int(clusters.max()) + 1, k_policies))
    np.add.at(summed, clusters, contributions)
    second, fourth = pair_power_sums(summed, i, j)
    freedom = degrees_of_freedom(second, fourth, len(summed))

    # The states are a sample: the per-row value sum_a pi r varies, by its posterior mean and by its cell part.
    scattered = np.zeros((e.n_states, e.n_actions, 1))
    np.add.at(scattered, (e.states, e.actions), alpha[:, None])
    surface = kernels.apply(theta, scattered)[e.states, :, 0] + np.tensordot(beta, kernels.features, axes=1)
    per_row = np.einsum("nak,na->nk", pi, surface, optimize=True)
    centred = per_row - per_row.mean(axis=0)
    if e.units is None:
        sampling = centred.T @ centred / n**2
    else:
        by_unit = np.zeros((int(e.units.max()) + 1, k_policies))
        np.add.at(by_unit, e.units, centred)
        sampling = by_unit.T @ by_unit / n**2
    sampling = sampling + kernels.cell(theta) * np.einsum("nak,nal->kl", pi, pi, optimize=True) / n**2
    shared = y - surface[every, e.actions] - theta["noise"] * alpha
    level = float(shared.mean() + per_row.mean())

    aipw = None
    if doubly_robust and e.behavior is not None:
        behavior = np.maximum(e.behavior, 1e-12)
        aipw = gp_aipw(kernels, theta, inverse, inv_u, spread, residual, surface, pi, sampling, behavior)
    return Solved(
        np.array(means),
        np.array(covariances),
        weights,
        sampling,
        second,
        freedom,
        pair_variance(prior, i, j),
        level,
        aipw,
    )


def half_cauchy(log_variance: float) -> float:
    """Log density of log w^2, up to a constant, where w / sqrt(.1) is half-Cauchy."""
    w = np.exp(0.5 * log_variance) / np.sqrt(0.1)
    return float(np.log(w / (1 + w * w)))


def pair_variance(covariance: Floats, i: Codes, j: Codes) -> Floats:
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    variance: Floats = diagonal[..., i] + diagonal[..., j] - 2 * covariance[..., i, j]
    return np.maximum(variance, 0)


def gp_aipw(
    kernels: Kernels,
    theta: dict[str, float],
    inverse: Floats,
    inv_u: Floats,
    spread: Floats,
    residual: Floats,
    surface: Floats,
    pi: Floats,
    sampling: Floats,
    behavior: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Doubly robust differences with the leave-one-out posterior mean as the model.

    x_n = sum_a g f_-n(s_n, a) + g_n e_n / p_n, with f_-n = f - e_n [K^-1 k(., (s_n, a))]_n in closed form.
    """
    e = kernels.evidence
    n, k_policies = e.rows, e.n_policies
    i, j = e.pairs
    every = np.arange(n)
    precision = inverse - inv_u @ spread @ inv_u.T
    centred = pi - pi.mean(axis=2, keepdims=True)
    s = e.states
    own = np.zeros((n, k_policies))
    weighted = [(precision * kernels.mixed_state(theta, name)[np.ix_(s, s)], action) for name, action in kernels.action]
    weighted.append((precision * (kernels.cell(theta) * (s[:, None] == s)), np.eye(e.n_actions)))
    for matrix, action in weighted:
        # sum_m P[n, m] k_s(n, m) sum_a pi(a|n) k_a(a_m, a): first collect P k_s over the actions of the rows m.
        by_action = np.zeros((n, e.n_actions))
        for a in np.unique(e.actions):
            by_action[:, a] = matrix[:, e.actions == a].sum(axis=1)
        own += np.einsum("na,nak->nk", by_action @ action, centred, optimize=True)
    modelled = np.einsum("nak,na->nk", centred, surface, optimize=True) - residual[:, None] * own
    x = modelled + centred[every, e.actions] * (residual / behavior[every, e.actions])[:, None]
    deviation = x - x.mean(axis=0)
    clusters = e.units if e.units is not None else e.states
    summed = np.zeros((int(clusters.max()) + 1, k_policies))
    np.add.at(summed, clusters, deviation)
    second, fourth = pair_power_sums(summed, i, j)
    inverse_b = 1 / behavior
    h = np.einsum("nak,na,nal->kl", centred, inverse_b, centred, optimize=True) / n
    design = np.mean(residual**2) * pair_variance(h, i, j) / n + pair_variance(sampling, i, j)
    total = x.mean(axis=0)
    freedom = degrees_of_freedom(second, fourth, len(summed))
    return total[i] - total[j], np.maximum(second / n**2, design), freedom


# --- all together --------------------------------------------------------------------------------------------


def posterior(evidence: Evidence, seed: int = 0) -> Posterior:
    """The posterior of every difference; see the module's head.

    `seed` picks the rows that variances are fitted on (logs over FIT_ROWS rows) and the blocks of long logs.
    """
    from scipy.special import stdtr

    e = evidence
    i, j = e.pairs
    t_p = reward_seeking(e)
    alarm = abs(t_p) > (ALARM if e.propensities is not None else ALARM_ESTIMATED)
    scale = float(e.rewards.std())
    if e.rows < 3 or scale <= 1e-12 * max(1.0, float(np.abs(e.rewards).max())):
        return silent(e, t_p, alarm)
    check = alarm and e.behavior is not None
    found = whole(e, scale, check, seed) if e.rows <= WHOLE_ROWS else blocks(e, scale, check, seed)
    m, v = found.difference, found.variance
    reasons = np.full(len(i), "", dtype=object)
    if alarm and e.behavior is None:
        reasons[:] = BLIND
    if found.aipw is not None:
        d2, v2, nu2 = found.aipw
        against = stdtr(nu2, -np.sign(m) * d2 / np.sqrt(np.maximum(v2, 1e-300)))
        reasons[against > VETO] = OPPOSED
    reasons[v <= 1e-14] = SAME
    stands = reasons == ""
    p_better = np.where(stands, stdtr(found.freedom, m / np.sqrt(np.maximum(v, 1e-300))), 0.5)
    return Posterior(
        i, j, m * scale, v * scale**2, found.freedom, p_better, tuple(np.where(stands, "posterior", "none").tolist()),
        float(e.rewards.mean()) + scale * (found.level + policy_values(m, i, j, e.n_policies)),
        scale**2 * from_pairs(v, i, j, e.n_policies), t_p, alarm, tuple(reasons.tolist()), found.learned,
    )  # fmt: skip


BLIND = "The logger seems to seek reward, and its probabilities are not known in full"
OPPOSED = "The logger seems to seek reward, and a doubly robust estimate points the other way"
SAME = "Policies that do the same in every logged state cannot be told apart"
FLAT = "Rewards that are all equal tell no policy from another"


@dataclass(frozen=True, eq=False)
class Found:
    """(P,) arrays over the pairs, in units of the sd of the rewards."""

    difference: Floats
    variance: Floats
    freedom: Floats
    learned: Floats
    aipw: tuple[Floats, Floats, Floats] | None
    level: float


def whole(e: Evidence, scale: float, check: bool, seed: int) -> Found:
    """All rows at once."""
    kernels = build_kernels(e, scale)
    solved = solve(kernels, fit_scales(kernels, seed), check)
    m, v, nu = summarise(solved, e)
    within = solved.weights @ pair_variance(solved.covariances, *e.pairs)
    return Found(m, v, nu, learned_share(within, solved.prior), solved.aipw, solved.level)


def summarise(s: Solved, e: Evidence) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and degrees of freedom per pair, over the grid."""
    i, j = e.pairs
    differences = s.means[:, i] - s.means[:, j]
    m = s.weights @ differences
    within = s.weights @ pair_variance(s.covariances, i, j)
    between = s.weights @ (differences - m) ** 2
    # Dependent rows make the model's own variance too small, so with units the sandwich counts in full.
    sandwich = (SANDWICH if e.units is None else 1.0) * s.sandwich
    v = np.maximum(within + between + pair_variance(s.sampling, i, j), sandwich)
    # The less of the variance rests on residuals, the less their few degrees of freedom matter.
    ratio = v / np.maximum(s.sandwich, 1e-9 * v + 1e-300)
    least = FREEDOM[0] if e.units is None else min(FREEDOM[0], float(e.units.max()))
    freedom = np.clip(s.freedom * ratio, max(least, 1.0), FREEDOM[1])
    return m, v, np.minimum(freedom, np.maximum(informative_rows(e) - 1, 1.0))


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


def blocks(e: Evidence, scale: float, check: bool, seed: int) -> Found:
    """Random blocks under one set of hyperparameters, combined as precision = sum 1/v_b - (B - 1)/v_0 per pair.

    With units, all rows of one unit stay in one block.
    """
    count = -(-e.rows // BLOCK_ROWS)
    rng = np.random.default_rng(seed)
    if e.units is None:
        block = rng.permutation(e.rows) % count
    else:
        block = rng.integers(count, size=int(e.units.max()) + 1)[e.units]
    theta: dict[str, float] | None = None
    solved, summaries = [], []
    for b in range(count):
        rows = np.flatnonzero(block == b)
        if len(rows) == 0:
            continue
        part = e.take(rows)
        kernels = build_kernels(part, scale)
        theta = fit_scales(kernels, seed) if theta is None else theta
        solved.append(solve(kernels, theta, check))
        summaries.append(summarise(solved[-1], part))
    m, v, nu = (np.array(x) for x in zip(*summaries, strict=True))
    v = np.maximum(v, 1e-15)
    prior = np.maximum(np.mean([s.prior for s in solved], axis=0), 1e-15)
    together = (1 / v).sum(axis=0)
    precision = np.maximum(together - (len(solved) - 1) / prior, 0.5 * together)
    checks = [s.aipw for s in solved if s.aipw is not None]
    aipw = None
    if checks:
        d2, v2, nu2 = (np.array(x) for x in zip(*checks, strict=True))
        aipw = (d2.mean(axis=0), v2.mean(axis=0) / len(checks), nu2.sum(axis=0))
    return Found(
        (m / v).sum(axis=0) / precision, CALM**2 / precision, nu.sum(axis=0), learned_share(1 / precision, prior),
        aipw, float(np.mean([s.level for s in solved])),
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


def from_pairs(variance: Floats, i: Codes, j: Codes, k: int) -> Floats:
    """(K, K) a covariance with these variances of the differences, by double centring."""
    full = np.zeros((k, k))
    full[i, j] = full[j, i] = variance
    full = full - full.mean(axis=0) - full.mean(axis=1)[:, None] + full.mean()
    scale, axes = np.linalg.eigh(-0.5 * full)
    covariance: Floats = (axes * np.maximum(scale, 0)) @ axes.T
    return covariance


def silent(e: Evidence, t_p: float, alarm: bool) -> Posterior:
    """No answer where rewards do not vary: P = 1/2 everywhere."""
    i, j = e.pairs
    spread = float(e.rewards.var()) or 1.0
    flat = np.full(len(i), spread)
    return Posterior(
        i, j, np.zeros(len(i)), flat, np.ones(len(i)), np.full(len(i), 0.5), ("none",) * len(i),
        np.full(e.n_policies, float(e.rewards.mean())), from_pairs(flat, i, j, e.n_policies), t_p, alarm,
        (FLAT,) * len(i), np.ones(len(i)),
    )  # fmt: skip
