"""Random policies and their actions: softmax of scores, and actions by inversion of a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data.arguments import numbers
from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError

Random = np.random.Generator | np.random.RandomState


def places(name: str, values: Any, most: int, shape: tuple[int | None, ...]) -> Codes:
    """Positions among `most` labels, of some shape; None for any length."""
    array = numbers(name, values)
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits or (array != np.round(array)).any() or (array < 0).any() or (array >= most).any():
        raise PodiumError(
            f"{name} must be whole numbers from 0 to {most - 1}; their shape is {array.shape}",
            hint="give the positions of actions, one row per state.",
        )
    return array.astype(np.int64)


def softmax(scores: Floats) -> Floats:
    """(S, A) probabilities proportional to exp(score) in each row."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def random_policy(shape: tuple[int, ...], rng: Random) -> Floats:
    """(S, A) softmax over the actions of independent standard normals."""
    return softmax(rng.standard_normal(shape))


def invert(policy: Floats, uniforms: Floats) -> Codes:
    """(S, m) the actions that uniforms (S, m) stand for in the cumulative distribution of a policy (S, A).

    >>> invert(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([[0.2, 0.5], [0.05, 0.3]])).tolist()
    [[0, 1], [0, 1]]
    """
    cdf = policy.cumsum(axis=1)
    if (cdf[:, -1] <= 0).any():
        raise PodiumError("a policy must give some action a probability above 0", hint="its rows sum to 1.")
    cdf /= cdf[:, -1:]
    if uniforms.shape[1] == 1:  # all rows at once
        counted: Codes = (cdf <= uniforms).sum(axis=1, keepdims=True, dtype=np.int64)
        return counted
    rows = [row.searchsorted(u, side="right") for row, u in zip(cdf, uniforms, strict=True)]
    return np.array(rows, dtype=np.int64)
