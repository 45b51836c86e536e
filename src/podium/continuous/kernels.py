"""Kernels, and the bandwidth that suits each of them."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from podium.data.columns import Floats

KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u * u, 0.0),
    "gaussian": lambda u: np.exp(-u * u / 2) / np.sqrt(2 * np.pi),
    "triangular": lambda u: np.maximum(1 - np.abs(u), 0.0),
    "cosine": lambda u: np.where(np.abs(u) < 1, np.pi / 4 * np.cos(u * np.pi / 2), 0.0),
}
SHAPES = {  # of every kernel the integrals of K^2 and of u^2 K
    "epanechnikov": (3 / 5, 1 / 5),
    "gaussian": (1 / (2 * sqrt(pi)), 1.0),
    "triangular": (2 / 3, 1 / 6),
    "cosine": (pi**2 / 16, 1 - 8 / pi**2),
}


def rule_of_thumb(kernel: str, rows: int, coordinates: int = 1) -> float:
    """The bandwidth of normal data with spread 1 that a kernel estimates best: Silverman's rule for every kernel.

    >>> [round(rule_of_thumb(kernel, 1), 2) for kernel in KERNELS]
    [2.34, 1.06, 2.58, 2.41]
    """
    square, spread = SHAPES[kernel]
    d = coordinates
    constant = square**d * 2 ** (d + 2) * pi ** (d / 2) / (spread**2 * (d + 2))
    return float((constant / rows) ** (1 / (d + 4)))
