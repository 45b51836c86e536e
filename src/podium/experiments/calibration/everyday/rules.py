"""Rules that decide pairs, on the same draws: podium's claims, other rules for its P(better), and peers' intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.data.columns import Codes, Floats
from podium.estimates.learned import state_features
from podium.experiments.calibration.peers import LEVEL, cressie_read, importance_weights, ips_t, snips_t
from podium.experiments.calibration.worlds import Draw
from podium.verdicts.multiplicity import benjamini_hochberg, two_sided
from podium.verdicts.pairs import pair_indices

FOLDS = 5
PENALTY = 1.0  # of the ridge, for features with standard deviation 1


def own_rules(p_better: Floats, usable: Floats) -> dict[str, Floats]:
    """(P,) +1, -1 or 0 for each pair by rules that use the same P(better); pairs that are silent stay undecided."""
    p = np.where(usable > 0, two_sided(p_better), 1.0)
    sign = np.sign(p_better - 0.5)
    return {
        "interval excludes 0": sign * (p <= 1 - LEVEL),
        "Benjamini-Hochberg": sign * (benjamini_hochberg(p) <= 1 - LEVEL),
        "P >= 0.95": sign * (p <= 2 * (1 - LEVEL)),
    }


def paired_t(terms: Floats) -> Floats:
    """(P,) claims where the t interval of the mean difference of two columns of (N, K) terms excludes 0."""
    from scipy.special import stdtrit

    i, j = pair_indices(terms.shape[1])
    gap = terms[:, i] - terms[:, j]
    mean, rows = gap.mean(axis=0), len(gap)
    half = stdtrit(rows - 1, (1 + LEVEL) / 2) * gap.std(axis=0, ddof=1) / np.sqrt(rows)
    claims: Floats = np.sign(mean) * (np.abs(mean) > half + 1e-12 * np.abs(terms).max())
    return claims


def dre_ridge(draw: Draw) -> Floats:
    """Paired t on DRE whose model of the reward is a cross-fitted ridge with interactions of state and action."""
    log = draw.log
    predicted = cross_fitted_ridge(draw)
    logged = predicted[np.arange(len(log)), log.action_codes]
    residual = log.rewards - logged
    terms = importance_weights(draw) * residual[:, None]
    terms += np.column_stack([(p * predicted).sum(axis=1) for p in draw.policies.values()])
    return paired_t(terms)


def cross_fitted_ridge(draw: Draw) -> Floats:
    """(N, A) the reward of every action, each row predicted by a ridge fitted without its fold."""
    log = draw.log
    states = state_features(log)
    states = (states - states.mean(axis=0)) / np.maximum(states.std(axis=0), 1e-12)
    by_action = [design(states, np.full(len(log), a), log.n_actions) for a in range(log.n_actions)]
    inputs = design(states, log.action_codes, log.n_actions)
    folds = min(FOLDS, len(log))
    fold = np.random.default_rng(0).permutation(len(log)) % folds
    predicted = np.empty((len(log), log.n_actions))
    for k in range(folds):
        train, test = fold != k, fold == k
        x, level = inputs[train], log.rewards[train].mean()
        weights = np.linalg.solve(x.T @ x + PENALTY * np.eye(x.shape[1]), x.T @ (log.rewards[train] - level))
        predicted[test] = np.column_stack([level + features[test] @ weights for features in by_action])
    return predicted


def design(states: Floats, actions: Codes, count: int) -> Floats:
    """State features, one 0/1 column per action, and their products."""
    chosen = (actions[:, None] == np.arange(count)).astype(float)
    products = (states[:, :, None] * chosen[:, None, :]).reshape(len(states), -1)
    return np.hstack([states, chosen, products])


def ips_difference(draw: Draw) -> Floats:
    return paired_t(importance_weights(draw) * draw.log.rewards[:, None])


def snips_difference(draw: Draw) -> Floats:
    """Self-normalized means, their difference by linearization; no claim about a policy without any weight."""
    weights = importance_weights(draw)
    mean = weights.mean(axis=0)
    usable = mean > 0
    share = weights / np.where(usable, mean, 1.0)
    value = (share * draw.log.rewards[:, None]).mean(axis=0)
    i, j = pair_indices(len(mean))
    claims: Floats = paired_t(share * (draw.log.rewards[:, None] - value) + value) * (usable[i] & usable[j])
    return claims


PEERS: dict[str, Callable[[Draw], Floats]] = {
    "DRE with ridge, paired t": dre_ridge,
    "IPS, difference": ips_difference,
    "SNIPS, difference": snips_difference,
    "IPS, disjoint": ips_t,
    "SNIPS, disjoint": snips_t,
    "Cressie-Read, disjoint": cressie_read,
}
OWN = ("podium", "interval excludes 0", "Benjamini-Hochberg", "P >= 0.95")
RULES = (*OWN, *PEERS)


def peer_rules(draw: Draw) -> dict[str, Floats]:
    """The claims of the peers that can judge a log: all need p, Cressie-Read also those of the other actions."""
    if draw.log.propensities is None:
        return {}
    return {name: rule(draw) for name, rule in PEERS.items() if draw.log.behavior is not None or rule != cressie_read}
