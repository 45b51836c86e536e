"""Arithmetic for all pairs of K columns at once: variances and fourth powers of differences, degrees of freedom."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Floats


def pair_indices(policies: int) -> tuple[Codes, Codes]:
    """(P,) the policies i < j of all pairs, in the order that every procedure uses."""
    i, j = np.triu_indices(policies, 1)
    return i.astype(np.int64), j.astype(np.int64)


def pair_variance(covariance: Floats, i: Codes, j: Codes) -> Floats:
    """(P,) the variances of differences that a covariance implies."""
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    variance: Floats = diagonal[..., i] + diagonal[..., j] - 2 * covariance[..., i, j]
    return np.maximum(variance, 0)


def pair_power_sums(columns: Floats, i: Codes, j: Codes) -> tuple[Floats, Floats]:
    """For many pairs, sums over rows of (x_i - x_j)^2, and those of ^4 over their squares, from K x K products.

    The second is the same in every unit of x, in which x^4 itself could overflow. Nearly equal columns, which such
    products cannot resolve, are subtracted first.
    """
    scale = float(np.abs(columns).max()) or 1.0
    x = columns / scale
    square = x * x
    gram, g13, g22 = x.T @ x, x.T @ (square * x), square.T @ square
    second = gram[i, i] + gram[j, j] - 2 * gram[i, j]
    fourth = np.maximum(g22[i, i] + g22[j, j] + 6 * g22[i, j] - 4 * g13[i, j] - 4 * g13[j, i], 0)
    for pair in np.flatnonzero(second < 1e-2 * (gram[i, i] + gram[j, j])):
        gap = (x[:, i[pair]] - x[:, j[pair]]) ** 2
        second[pair], fourth[pair] = gap.sum(), gap @ gap
    return second * scale**2, fourth / np.maximum(second**2, 1e-300)


def degrees_of_freedom(fourth: Floats, clusters: int) -> Floats:
    """nu = clip(2 J / (k - 1), 1, J - 1), k = J sum C^4 / (sum C^2)^2: few clusters that matter give few degrees.

    `fourth` is sum C^4 / (sum C^2)^2, as `pair_power_sums` gives it.
    """
    kurtosis = clusters * fourth
    freedom: Floats = np.clip(2 * clusters / np.maximum(kurtosis - 1, 1e-9), 1.0, max(clusters - 1, 1))
    return freedom


def correlation_t(x: Floats, y: Floats) -> float:
    """t statistic of a correlation; 0 where x or y does not vary, or with fewer than 8 rows.

    >>> correlation_t(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    0.0
    """
    spread = float(np.ptp(y))
    if len(x) < 8 or np.ptp(x) < 1e-12 or spread <= 1e-12 * float(np.abs(y).max()):
        return 0.0
    x, y = x - x.mean(), (y - y.mean()) / spread
    r = float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1 + 1e-12, 1 - 1e-12))
    return r * float(np.sqrt((len(x) - 2) / (1 - r * r)))
