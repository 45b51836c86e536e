"""Rules of users' own: functions that change the importance weights, called with copies and checked every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from podium.data.columns import Floats
from podium.data.errors import PodiumError, count, shown, told_as

WeightRule: TypeAlias = Callable[[Floats], Floats]
"""Weights (n,) of one policy on some rows -> the weights (n,) that count instead."""

SAME = 1e-9  # how far, relatively, a weight may move by rounding where other rows are left out
FORM = "write a function of an array of weights that returns as many, such as lambda w: np.minimum(w, 5)."
BY_ROW = "let each weight depend on itself alone; weights divided by their mean are self_normalized=True."


def apply_rule(name: str, rule: WeightRule, weights: Floats) -> Floats:
    """(n, K) the weights that a user's rule gives, policy by policy, so that no policy moves another's.

    Engines deliver rows in parts, so the rule must treat each row by itself; every other row, in reverse, must give the
    same weights again.
    """
    columns = [changed(name, rule, column) for column in weights.T]
    for column, new in zip(weights.T, columns, strict=True):
        again = changed(name, rule, column[::-2])
        apart = np.abs(again - new[::-2]) > SAME * np.maximum(np.abs(new[::-2]), 1e-300)
        if apart.any():
            raise PodiumError(
                f"the rule of estimator {name!r} gives a row another weight where other rows are left out "
                f"({count(int(apart.sum()), 'row')} of {len(again):,})",
                hint=BY_ROW,
            )
    return np.stack(columns).T


def changed(name: str, rule: WeightRule, weights: Floats) -> Floats:
    """(n,) what a rule returns for the weights of one policy, if these are weights."""
    with told_as(f"the rule of estimator {name!r} failed", FORM), np.errstate(all="ignore"):
        found = np.asarray(rule(weights.copy()))
    if found.dtype.kind not in "iufb" or found.shape != weights.shape:
        what = f"shape {found.shape}" if found.dtype.kind in "iufb" else shown(found.tolist())
        raise PodiumError(
            f"the rule of estimator {name!r} must return {len(weights):,} numbers, shape {weights.shape}; it returned "
            f"{what}",
            hint=FORM,
        )
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise PodiumError(
            f"the rule of estimator {name!r} must return finite weights; the weight {weights[bad[0]]:.6g} became "
            f"{found[bad[0]]} ({count(bad.size, 'row')})",
            hint="return a finite weight for every finite weight from 0 on.",
        )
    return np.array(found, dtype=np.float64)
