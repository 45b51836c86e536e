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
from podium.propensities.logistic import among_eligible, fit_logistic, softmax

MOST_SLOPES = 5_000  # features x actions beyond which the actions' shares stand for the fit


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
    if log.eligible is not None:
        return calibrate(among_eligible(log, features, fold, used), shares, log.action_codes, fold, folds)
    codes = np.searchsorted(logged, log.action_codes)
    start = fit_logistic(features[used], codes[used], len(logged), None)
    raw = np.zeros((len(log), log.n_actions))
    for k in range(folds):
        train, here = used[fold[used] != k], np.flatnonzero(fold == k)
        found = fit_logistic(features[train], codes[train], len(logged), start)
        raw[np.ix_(here, logged)] = softmax(found[0] + features[here] @ found[1:])
    return calibrate(raw, shares, log.action_codes, fold, folds)
