"""Propensities to start a sensitivity analysis from: those that were estimated, or a quick fit where there are none.

The fit is a ridge-penalized multinomial logistic regression on the features of the states. No row is predicted by a
model that saw it, and the predictions are calibrated and mixed with the actions' shares like any estimate
(`propensities.estimated`). It needs NumPy and SciPy alone.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Floats
from podium.data.log import Log
from podium.propensities.estimated import calibrate, held_out_shares

PENALTY = 1.0  # on the sum of squared slopes, beside the sum of -log p; the features are standardized
MOST_SLOPES = 5_000  # features x actions beyond which the actions' shares stand for the fit
MOST_STEPS, CLOSE = 200, 1e-7
TINY = 1e-9  # keeps columns that repeat each other apart


def nominal_behavior(log: Log, features: Floats, fold: Codes, used: Codes) -> Floats:
    """(N, A) p(a|s_n) as it looks from the log.

    Parameters
    ----------
    features : (N, d) standardized, without a column of ones
    fold : (N,) of each row
    used : the rows that models are fitted on, which may be fewer than all
    """
    if log.behavior is not None:
        return log.behavior
    folds = int(fold.max()) + 1
    shares = held_out_shares(log, fold, folds)
    logged = np.flatnonzero(np.bincount(log.action_codes, minlength=log.n_actions))
    slopes = features.shape[1] * len(logged)
    if folds < 2 or len(logged) < 2 or not 0 < slopes <= MOST_SLOPES:
        return shares
    codes = np.searchsorted(logged, log.action_codes)
    start = fit_logistic(features[used], codes[used], len(logged), None)
    raw = np.zeros((len(log), log.n_actions))
    for k in range(folds):
        train, here = used[fold[used] != k], np.flatnonzero(fold == k)
        found = fit_logistic(features[train], codes[train], len(logged), start)
        raw[np.ix_(here, logged)] = softmax(found[0] + features[here] @ found[1:])
    return calibrate(raw, shares, log.action_codes, fold, folds)


def fit_logistic(x: Floats, codes: Codes, actions: int, start: Floats | None) -> Floats:
    """(d + 1, A) coefficients, the levels first.

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
        slope = x.T @ (softmax(x @ ahead) - hot) + penalty * ahead
        moved = ahead - steps @ slope
        if float(np.abs(moved - ahead).max()) < CLOSE:
            break
        if float((slope * (moved - here)).sum()) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / faster * (moved - here)
        here, momentum = moved, faster
    return moved


def softmax(score: Floats) -> Floats:
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    shares: Floats = weight / weight.sum(axis=1, keepdims=True)
    return shares
