"""Multinomial logistic regression with a ridge penalty, also of a choice among the eligible actions of each row.

It needs NumPy alone.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.eligible import Mask
from podium.data.log import Log

PENALTY = 1.0  # on the sum of squared slopes, beside the sum of -log p; the features are standardized
MOST_STEPS, CLOSE = 200, 1e-7
TINY = 1e-9  # keeps columns that repeat each other apart


def fit_logistic(
    x: Floats, codes: Codes, actions: int, start: Floats | None = None, eligible: Mask | None = None
) -> Floats:
    """(d + 1, A) coefficients, the levels first; with `eligible` (n, A), of a choice among the eligible actions.

    Steps are those of the quadratic that bounds the loss from above, X'X / 2 for every action (Boehning 1992), with
    Nesterov's momentum, which starts anew where it points uphill.
    """
    n, d = x.shape
    x = np.hstack([np.ones((n, 1)), x])
    hot = np.zeros((n, actions))
    hot[np.arange(n), codes] = 1.0
    penalty = np.full((d + 1, 1), PENALTY)
    penalty[0] = 0.0
    steps = 2 * np.linalg.inv(x.T @ x + np.diag(2 * penalty[:, 0] + TINY * n))
    if start is None:
        start = np.zeros((d + 1, actions))
        start[0] = np.log((hot.sum(axis=0) + 0.5) / n)
    here = ahead = start
    momentum = 1.0
    for _ in range(MOST_STEPS):
        slope = x.T @ (softmax(x @ ahead, eligible) - hot) + penalty * ahead
        moved = ahead - steps @ slope
        if float(np.abs(moved - ahead).max()) < CLOSE:
            break
        if float((slope * (moved - here)).sum()) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / faster * (moved - here)
        here, momentum = moved, faster
    return moved


def softmax(score: Floats, eligible: Mask | None = None) -> Floats:
    """(n, A) probabilities in proportion to exp(score) among the eligible actions."""
    if eligible is not None:
        score = np.where(eligible, score, -np.inf)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    shares: Floats = weight / weight.sum(axis=1, keepdims=True)
    return shares


def among_eligible(log: Log, features: Floats, fold: Codes, used: Codes) -> Floats:
    """(N, A) probabilities of the eligible actions, each row's by a fit on the rows of other folds.

    Parameters
    ----------
    features : (N, d) standardized, without a column of ones
    used : the rows that models are fitted on, which may be fewer than all
    """
    start = fit_logistic(features[used], log.action_codes[used], log.n_actions, None, log.eligible[used])
    found = np.zeros((len(log), log.n_actions))
    for k in range(int(fold.max()) + 1):
        train, here = used[fold[used] != k], np.flatnonzero(fold == k)
        model = fit_logistic(features[train], log.action_codes[train], log.n_actions, start, log.eligible[train])
        found[here] = softmax(model[0] + features[here] @ model[1:], log.eligible[here])
    return found
