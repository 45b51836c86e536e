"""Numbers of any size: brought near 1 by powers of two, which changes no digit, so that squares stay within range."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats

SAFE = 200  # numbers between 2^-200 and 2^200 have fourth powers that a float can hold
EPSILON = float(np.finfo(np.float64).eps)
NOISE = 1e-12  # spread relative to size below which a column is constant


def unit_of(largest: float) -> float:
    """The power of two that numbers are divided by before they are squared; 1 unless they are huge or tiny.

    >>> unit_of(3.0), unit_of(0.0), unit_of(2.0**-500) == 2.0**-500
    (1.0, 1.0, True)
    """
    exponent = int(np.frexp(largest)[1]) - 1
    return float(np.ldexp(1.0, exponent)) if largest > 0 and abs(exponent) > SAFE else 1.0


def spread_of(numbers: Floats) -> float:
    """The standard deviation, also of numbers whose squares no float can hold.

    >>> spread_of(np.array([1e-200, 3e-200]))
    1e-200
    """
    unit = unit_of(float(np.abs(numbers).max()))
    return unit * float((numbers / unit).std())


def near_one(columns: Floats) -> Floats:
    """(N, d) columns, each times the power of two that brings its largest number to between 1/2 and 1.

    >>> near_one(np.array([[3e-200, 0.0], [1e-200, 0.0]])).round(3).tolist()
    [[0.574, 0.0], [0.191, 0.0]]
    """
    exponent = np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1]
    scaled: Floats = np.ldexp(columns, -exponent)
    return scaled


def standard_columns(x: Floats) -> Floats:
    """Columns of mean 0 and sd 1; one that varies by rounding noise alone becomes 0."""
    x = near_one(x)
    spread = x.std(axis=0)
    varies = spread > NOISE * np.abs(x).max(axis=0)
    return np.where(varies, x - x.mean(axis=0), 0.0) / np.where(varies, spread, 1.0)


def noise_of(numbers: Floats) -> float:
    """How far apart figures made of these numbers may be and yet differ by rounding alone: by spread, not by size.

    >>> bool(noise_of(np.array([1e9, 1e9 + 1])) < 1e-5), noise_of(np.array([2.0, 2.0])) < 1e-14
    (True, True)
    """
    low, high = float(numbers.min()), float(numbers.max())
    return 1e-9 * (high - low) + 16 * EPSILON * max(abs(low), abs(high))
