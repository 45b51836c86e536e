"""A reward function of a user's own, which tests name as `user_reward:quadratic`."""

from __future__ import annotations

import numpy as np


def quadratic(s: np.ndarray, a: np.ndarray) -> np.ndarray:
    """r(s, a) = s + a^2."""
    return s + a**2
