"""Direct Loss Minimization and Python's own shuffle, compiled.

The generator is the Mersenne Twister as Python's `random` holds it: 624 words and a position, one array of 625 unsigned
32-bit integers (`random.getstate()[1]`). Shuffles draw from it what `random.shuffle` draws, so a run that alternates
between the two stays in step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint32

N = 624
MIDDLE = 397


@njit(cache=True, inline="always")
def next_word(state: Any) -> Any:
    """The next 32 random bits."""
    place = state[N]
    if place >= N:
        for k in range(N):
            joined = (state[k] & uint32(0x80000000)) | (state[(k + 1) % N] & uint32(0x7FFFFFFF))
            word = state[(k + MIDDLE) % N] ^ (joined >> uint32(1))
            state[k] = word ^ uint32(0x9908B0DF) if joined & uint32(1) else word
        place = uint32(0)
    word = state[place]
    state[N] = place + uint32(1)
    word ^= word >> uint32(11)
    word ^= (word << uint32(7)) & uint32(0x9D2C5680)
    word ^= (word << uint32(15)) & uint32(0xEFC60000)
    return uint32(word ^ (word >> uint32(18)))


@njit(cache=True)
def shuffle(state: Any, items: Any) -> None:
    """`random.shuffle` of an array: from the last item down, each swaps with one at or before its place."""
    for i in range(len(items) - 1, 0, -1):
        j = below(state, i + 1)
        items[i], items[j] = items[j], items[i]


@njit(cache=True, inline="always")
def below(state: Any, n: Any) -> Any:
    """A random integer in 0..n-1: as many bits as n has, drawn again while they are too large."""
    bits = 0
    while n >> bits:
        bits += 1
    drop = uint32(32 - bits)
    j = next_word(state) >> drop
    while j >= n:
        j = next_word(state) >> drop
    return j


@njit(cache=True)
def skip_shuffle(state: Any, n: Any) -> None:
    """Move the generator as a shuffle of n items does."""
    for i in range(n - 1, 0, -1):
        below(state, i + 1)


@njit(cache=True)
def train(x: Any, y: Any, theta: Any, eps: Any, steps: Any, state: Any, in_step: Any) -> Any:
    """Direct Loss Minimization of a linear score, in place.

    Step t takes an example (x, y), the label a2 = argmax theta_l . x that it is given, and
    a1 = argmax (theta_l . x - eps [l != y]); it moves theta_a1 by eta x and theta_a2 by -eta x,
    eta = (t + 1)^-0.3 / 2. The two labels differ only where y is not the top label but within eps of it, and then
    a1 = y. A pass without such an example is a fixed point: no later pass changes anything.

    Parameters
    ----------
    x : (N, F) features
    y : (N,) positions of the true labels
    theta : (F, L) the weights, changed in place
    steps : examples to look at, pass after pass, shuffled after each
    state : (625,) the generator
    in_step : at a fixed point keep drawing the shuffles that are left, so that the generator ends where it
        would without the early exit

    Returns
    -------
    tuple
        updates made, and passes until the fixed point (or all of them).
    """
    n, features = x.shape
    labels = theta.shape[1]
    order = np.arange(n)
    scores = np.empty(labels)
    updates, passes = 0, steps // n
    for e in range(passes + 1):
        before = updates
        for q in range(n if e < passes else steps - passes * n):
            i = order[q]
            for label in range(labels):
                scores[label] = 0.0
            for f in range(features):
                for label in range(labels):
                    scores[label] += x[i, f] * theta[f, label]
            top = 0
            for label in range(1, labels):
                if scores[label] > scores[top]:
                    top = label
            true = y[i]
            margin = scores[top] - eps
            if true != top and (scores[true] > margin or (scores[true] == margin and true < top)):
                eta = float(e * n + q + 1) ** -0.3 / 2
                for f in range(features):
                    theta[f, true] += eta * x[i, f]
                    theta[f, top] -= eta * x[i, f]
                updates += 1
        if e == passes:
            break
        if updates == before:
            if in_step:
                for _ in range(e, passes):
                    skip_shuffle(state, n)
            return updates, e + 1
        shuffle(state, order)
    return updates, passes
