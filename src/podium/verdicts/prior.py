"""The Gaussian-process prior on the rewards r(s, a): its parts as kernels, and where their variances are centred.

The parts, in units of the sd of the rewards; states are standardised, D = squared distance / number of columns:

    shared      const, linear, exp(-D/2), exp(-D/.18): the state matters whatever the action (no effect on differences)
    covariate   habits log B(.|s): loggers that follow the state
    action      1[a = a'] (and kernels of what is known of the actions) times (const, linear, exp(-D/2))
    cell        1[s = s', a = a'],  unit 1[u = u'],  noise
    features    pi_k(a|s) - 1/A over its rms, and log B(a|s): linear in what policies and logger prefer; A counts the
                eligible actions of a row, and the features of other actions are 0

Of the policy features, only those of the two policies of a pair enter the posterior of their difference (see `block`),
and none enters the fit: what is said of a pair does not depend on the other policies. Where actions have features, a
policy's feature is its order of preference instead: the ranks of pi_k(.|s) as normal quantiles, with ties broken by
what is like the preferred actions (C pi_k, with C as alike as the fit says that actions are). Policies may know what an
item is worth beyond its features; the order, unlike the probabilities, shows in rows of items that they hardly play.

A shared part that no two rows have in common is noise under another name, yet would drop out of every difference:
`split` counts its variance in the cell part too, as far as rows are not alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.eligible import Mask
from podium.data.scales import standard_columns
from podium.verdicts.evidence import Evidence

NOISE = 1e-9  # probabilities and log-odds closer than this are equal
DIGITS = 9  # of probabilities that are ranked: fewer differ by rounding alone
DISTINCT = 0.95  # share of distinct (s, a) from which cell and noise cannot be told apart

Components = list[tuple[str, Floats]]


@dataclass(frozen=True, eq=False)
class Kernels:
    """The parts of the prior, on S distinct states, A actions and N rows; rewards are in units of their sd."""

    evidence: Evidence
    y: Floats  # (N,) standardised rewards
    state: Components  # name -> (S, S)
    shared: tuple[str, ...]  # which of them serve all actions
    per_action: tuple[str, ...]  # which of them serve each action apart
    action: list[tuple[str, Floats | None]]  # name -> (A, A); None for the identity, which is never written out
    covariates: Components  # name -> (N, c) features shared by all actions
    features: Floats  # (L, N, A) policy features, then the logger feature
    n_policy_features: int
    split: dict[str, float]  # shared parts that few rows tell from the cell part, and the share counted there too
    logged: Floats  # (K, N) the policies' probabilities of the logged actions, and of actions like them once `tied`

    def tied(self, theta: dict[str, float]) -> Kernels:
        """The same with the policies' orders of preference as features, where something is known of the actions."""
        e = self.evidence
        if not e.action_kernels:
            return self
        like = np.zeros((e.n_actions, e.n_actions))
        for name, kernel in self.action:
            like += sum(theta[f"action {name} {s}"] for s in self.per_action) * (
                np.eye(e.n_actions) if kernel is None else kernel
            )
        spread = e.policies @ (like / np.diag(like).mean())
        scores = normal_scores(e.policies, spread, e.eligible)
        features = np.concatenate([scores, self.features[self.n_policy_features :]])
        return replace(self, features=features, logged=spread[:, np.arange(e.rows), e.actions])

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
        """Every part but the features as an (n, n) matrix over some rows, in the order of `names`.

        Parts that are counted in the cell part too hold their share of it.
        """
        e = self.evidence
        s, a = e.states[rows], e.actions[rows]
        state = {name: k[np.ix_(s, s)] for name, k in self.state}
        parts: Components = [(f"shared {name}", state[name]) for name in self.shared]
        parts += [(f"covariate {name}", x[rows] @ x[rows].T) for name, x in self.covariates]
        for name, k in self.action:
            block = (a[:, None] == a).astype(float) if k is None else k[np.ix_(a, a)]
            parts += [(f"action {name} {other}", block * state[other]) for other in self.per_action]
        if e.units is not None:
            parts.append(("unit", (e.units[rows][:, None] == e.units[rows]).astype(float)))
        cell = ((s[:, None] == s) & (a[:, None] == a)).astype(float)
        parts = [(name, k + self.split[name] * cell if name in self.split else k) for name, k in parts]
        return [*parts, ("cell", cell), ("noise", np.eye(len(rows)))]

    def sums(self, theta: dict[str, float]) -> tuple[Floats, Floats]:
        """(N, N) the covariances of all rows: the sum of the parts that actions do not change, and of those they do."""
        e, state = self.evidence, dict(self.state)
        apart = e.n_states == e.rows and bool((e.states == np.arange(e.rows)).all())

        def by_row(of_states: Floats) -> Floats:
            return of_states if apart else of_states[np.ix_(e.states, e.states)]

        rest = by_row(sum((theta[f"shared {s}"] * state[s] for s in self.shared), np.zeros_like(self.state[0][1])))
        for name, x in self.covariates:
            rest += theta[f"covariate {name}"] * (x @ x.T)
        if e.units is not None:
            rest += theta["unit"] * (e.units[:, None] == e.units)
        rest[np.diag_indices(e.rows)] += theta["noise"]
        acting = np.zeros((e.rows, e.rows))
        alike = e.actions[:, None] == e.actions
        for name, k in self.action:
            acting += by_row(self.mixed_state(theta, name)) * (alike if k is None else k[np.ix_(e.actions, e.actions)])
        acting[alike & (e.states[:, None] == e.states)] += self.cell(theta)
        return rest, acting

    def row_features(self, rows: Codes) -> Floats:
        """(n, L) the features at the logged actions."""
        values: Floats = self.features[:, rows, self.evidence.actions[rows]].T
        return np.ascontiguousarray(values)

    def mixed_state(self, theta: dict[str, float], action: str) -> Floats:
        """(S, S) the state kernel that goes with an action kernel."""
        state = dict(self.state)
        total: Floats = np.zeros_like(self.state[0][1])
        for s in self.per_action:  # in place: each of these arrays takes as much memory as the log of a large question
            total += theta[f"action {action} {s}"] * state[s]
        return total

    def apply(self, theta: dict[str, float], x: Floats, cell: float) -> Floats:
        """The action parts of the prior covariance as an operator on (S, A, c) arrays, with cells of this variance."""
        s, a, c = x.shape
        total = cell * x
        for name, k in self.action:
            part = (self.mixed_state(theta, name) @ x.reshape(s, a * c)).reshape(s, a, c)
            total += part if k is None else np.einsum("ab,sbc->sac", k, part, optimize=True)
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
    action: list[tuple[str, Floats | None]] = [("same", None), *e.action_kernels]
    if e.action_features is not None:
        z = standard_columns(e.action_features)
        apart = squared_distances(z) / z.shape[1]
        action += [("smooth", np.exp(-apart / 2)), ("rough", np.exp(-apart / 0.18))]

    features = [policy_features(e.policies, e.eligible)]
    covariates: Components = []
    logger = logging_feature(e)
    if e.behavior is not None:
        covariates.append(("habits", unit_diagonal(habits_of(e))))
    if logger is not None:
        features.append(logger[None])
    split = {
        f"shared {name}": 1 - nearest(k[np.ix_(e.states, e.states)]) for name, k in state if name in ("rough", "same")
    }
    split |= {f"covariate {name}": 1 - nearest(x @ x.T) for name, x in covariates if name == "habits"}
    y = (e.rewards - e.rewards.mean()) / scale
    stacked, logged = np.concatenate(features), e.policies[:, np.arange(e.rows), e.actions]
    return Kernels(e, y, state, shared, per_action, action, covariates, stacked, e.n_policies, split, logged)


def policy_features(preferences: Floats, eligible: Mask | None) -> Floats:
    """(K, N, A) what each policy prefers among the eligible actions, over its rms; 0 for the others."""
    if eligible is None:
        centred = preferences - preferences.mean(axis=2, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=(1, 2), keepdims=True))
    else:
        mean = np.where(eligible, preferences, 0.0).sum(axis=2, keepdims=True) / eligible.sum(axis=1)[:, None]
        centred = np.where(eligible, preferences - mean, 0.0)
        size = np.sqrt((centred**2).sum(axis=(1, 2), keepdims=True) / eligible.sum())
    return np.asarray(np.where(size > NOISE, centred, 0.0) / np.maximum(size, NOISE) / np.sqrt(2))


def normal_scores(preferences: Floats, spread: Floats, eligible: Mask | None) -> Floats:
    """(K, N, A) the ranks of what each policy prefers among the eligible actions as normal quantiles; 0 for the others.

    Actions of equal probability are ranked by `spread`, the probability of what is like them. Ranks keep a policy that
    plays one item in a thousand on the scale of the items' own levels, and read what its order is worth off every row.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    mask = np.ones(preferences.shape[1:], dtype=np.bool_) if eligible is None else eligible
    count, actions = mask.sum(axis=1)[:, None], preferences.shape[2]

    def ranks(values: Floats) -> Floats:
        return np.asarray(rankdata(np.where(mask, values, -np.inf), axis=2))

    first, then = (ranks(np.round(x / np.abs(x).max(axis=2, keepdims=True), DIGITS)) for x in (preferences, spread))
    place = (ranks(2 * actions * first + then) - (actions - count) - 0.5) / count
    scores = ndtri(np.where(mask, place, 0.5))
    mean = scores.sum(axis=2, keepdims=True) / count
    return np.asarray(np.where(mask, scores - mean, 0.0) / np.sqrt(2))


def nearest(kernel: Floats) -> float:
    """Mean correlation of a row with the row most like it: near 0, a kernel is but noise under another name."""
    size = np.sqrt(np.maximum(np.diag(kernel), 1e-300))
    correlation = kernel / size / size[:, None]
    np.fill_diagonal(correlation, 0.0)
    return float(np.clip(correlation.max(axis=1), 0, 1).mean())


def log_behavior(e: Evidence) -> Floats:
    """(N, A) log B(a|s), centred over the eligible actions of a row; 0 elsewhere: nothing is known of the others."""
    log_b = np.log(np.maximum(np.asarray(e.behavior), 1e-12))
    if e.eligible is None:
        return np.asarray(log_b - log_b.mean(axis=1, keepdims=True))
    mean = np.where(e.eligible, log_b, 0.0).sum(axis=1) / e.eligible.sum(axis=1)
    return np.where(e.eligible, log_b - mean[:, None], 0.0)


def habits_of(e: Evidence) -> Floats:
    """(N, A) how the logger departs in a row from what it does on average where an action is eligible."""
    log_b = log_behavior(e)
    if e.eligible is None:
        return np.asarray(log_b - log_b.mean(axis=0))
    return np.where(e.eligible, log_b - log_b.sum(axis=0) / np.maximum(e.eligible.sum(axis=0), 1), 0.0)


def logging_feature(e: Evidence) -> Floats | None:
    """(N, A) log B(a|s), centred per state, of unit sd; None where B is unknown or uniform."""
    if e.behavior is None:
        return None
    log_b = log_behavior(e)
    size = log_b.std() if e.eligible is None else np.sqrt((log_b**2).sum() / e.eligible.sum())
    return None if size <= NOISE else log_b / size


def unit_diagonal(x: Floats) -> Floats:
    """Scaled so that the mean diagonal of x x' is 1; 0 where there is nothing but rounding noise."""
    size = np.sqrt((x * x).sum(axis=1).mean())
    return x / size if size > NOISE else np.zeros_like(x)


def prior_scales(kernels: Kernels) -> tuple[dict[str, float], dict[str, float]]:
    """Where each log variance is centred, and how firmly (sd)."""
    e = kernels.evidence
    cells = e.states * e.n_actions + e.actions
    distinct = len(np.unique(cells)) >= DISTINCT * e.rows
    centre = dict.fromkeys([*kernels.names, "logger"], 0.1)
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
