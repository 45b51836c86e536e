"""Rows that belong together, as units or as states, and what their sums say of variances."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.evidence import Evidence
from podium.verdicts.pairs import degrees_of_freedom


def by_cluster(e: Evidence, columns: Floats, alone: bool) -> Floats:
    """Columns summed over units; where there are none, over states, or left `alone`."""
    if e.units is None and alone:
        return columns
    clusters = e.states if e.units is None else e.units
    summed = np.zeros((int(clusters.max()) + 1, columns.shape[1]))
    np.add.at(summed, clusters, columns)
    return summed


def column_squares(e: Evidence, contributions: Floats) -> tuple[Floats, Floats]:
    """(P,) squares of what each unit (or state) contributes (N, P), summed, and degrees of freedom."""
    summed = by_cluster(e, contributions, alone=False)
    second = (summed**2).sum(axis=0)
    share = summed / np.sqrt(np.maximum(second, 1e-300))
    return second, degrees_of_freedom((share**4).sum(axis=0), len(summed))


def column_sampling(e: Evidence, values: Floats) -> Floats:
    """(P,) variance of the means of columns (N, P), whose rows (or units) are a sample."""
    centred = by_cluster(e, values - values.mean(axis=0), alone=True)
    return np.asarray((centred**2).sum(axis=0) / e.rows**2)


def sampling_covariance(e: Evidence, per_row: Floats) -> Floats:
    """(K, K) covariance of the mean of the rows' values, which vary as the states (or units) are a sample."""
    centred = by_cluster(e, per_row - per_row.mean(axis=0), alone=True)
    covariance: Floats = centred.T @ centred / e.rows**2
    return covariance
