"""Fit the variances of the prior's parts to a log: the maximum of their posterior density, to the last digit.

The log marginal likelihoods of blocks of rows (see `dealing`) are summed, so that every row counts and the cost grows
with the number of rows alone. The search is a damped Newton method in the logarithms x = log theta. It starts from the
average information

    A_kl = 1/2 sum_blocks (theta_k K_k alpha)' K^-1 (theta_l K_l alpha),  alpha = K^-1 y

(Gilmour, Thompson and Cullis 1995), which costs no more than the gradient, and corrects it by BFGS near the end. A fit
counts only with a gradient below 1e-8: what comes out then does not depend on the processor that computed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.data.columns import Codes, Floats
from podium.verdicts.prior import Kernels, prior_scales

GRADIENT = 1e-8  # what counts as zero
MOST_STEPS = 200  # 774 simulated logs of 43 families took 14 evaluations (median), at most 59
LONGEST = 3.0  # step in any log variance
NEAR = 1.0  # gradient from which BFGS corrects the average information


@dataclass(frozen=True, eq=False)
class Block:
    """The parts of the prior covariance over the n rows of one block."""

    names: tuple[str, ...]
    parts: Floats  # (p, n * n)
    y: Floats  # (n,)

    @classmethod
    def of(cls, kernels: Kernels, rows: Codes) -> Block:
        parts = kernels.rows(rows)
        logger = kernels.row_features(rows)[:, kernels.n_policy_features :]
        if logger.shape[1]:
            parts.append(("logger", logger @ logger.T))
        stack = np.stack([matrix for _, matrix in parts])
        return cls(tuple(name for name, _ in parts), stack.reshape(len(parts), -1), kernels.y[rows])

    def likelihood(self, theta: Floats) -> Terms | None:
        """Minus the log marginal likelihood; None where the covariance is not positive definite."""
        from scipy.linalg import lapack

        n = len(self.y)
        gram = (theta @ self.parts).reshape(n, n)
        gram[np.diag_indices(n)] += 1e-6
        lower, failed = lapack.dpotrf(gram, lower=1, clean=1)
        if failed:
            return None
        alpha, _ = lapack.dpotrs(lower, self.y, lower=1)
        inverse, _ = lapack.dpotri(lower, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        pulled = (self.parts.reshape(-1, n) @ alpha).reshape(-1, n)  # K_k alpha
        slope = 0.5 * theta * (self.parts @ inverse.ravel() - pulled @ alpha)
        pulled *= theta[:, None]
        value = 0.5 * self.y @ alpha + np.log(np.diag(lower)).sum()
        return Terms(float(value), slope, 0.5 * pulled @ inverse @ pulled.T)


@dataclass(frozen=True, eq=False)
class Terms:
    """The objective at a point: value, gradient (p,), and an approximate Hessian (p, p)."""

    value: float
    slope: Floats
    curvature: Floats


def fit_variances(blocks: Sequence[tuple[Kernels, Codes]]) -> dict[str, float] | None:
    """The variance of each part, from the rows of all blocks; None where the search does not converge."""
    centre, width = prior_scales(blocks[0][0])
    pieces = [Block.of(kernels, rows) for kernels, rows in blocks]
    names = max((piece.names for piece in pieces), key=len)
    places = [np.array([names.index(name) for name in piece.names]) for piece in pieces]
    start = np.log([centre[name] for name in names])
    firmness = np.array([width[name] for name in names]) ** -2.0

    def at(x: Floats) -> Terms | None:
        theta = np.exp(x)
        value, slope = 0.0, np.zeros(len(x))
        curvature = np.diag(firmness)
        for piece, place in zip(pieces, places, strict=True):
            terms = piece.likelihood(theta[place])
            if terms is None:
                return None
            value += terms.value
            slope[place] += terms.slope
            curvature[np.ix_(place, place)] += terms.curvature
        # Where the likelihood falls, theta itself bends the logarithm's curve upwards.
        curvature += np.diag(np.maximum(slope, 0))
        pull = firmness * (x - start)
        return Terms(value + 0.5 * float(pull @ (x - start)), slope + pull, curvature)

    found = minimise(at, start)
    return None if found is None else dict(zip(names, np.exp(found).tolist(), strict=True))


def log_likelihood(blocks: Sequence[tuple[Kernels, Codes]], theta: dict[str, float]) -> float:
    """The log marginal likelihood of the rows of all blocks, up to a constant; minus infinity where it has none."""
    total = 0.0
    for kernels, rows in blocks:
        piece = Block.of(kernels, rows)
        terms = piece.likelihood(np.array([theta[name] for name in piece.names]))
        total -= np.inf if terms is None else terms.value
    return float(total)


def minimise(objective: Callable[[Floats], Terms | None], start: Floats) -> Floats | None:
    """Where the gradient vanishes, downhill from a start; None if that is not reached."""
    x, here = start, objective(start)
    curvature: Floats | None = None  # as BFGS has learned it; None for the one that comes with the point
    for _ in range(MOST_STEPS):
        if here is None or np.abs(here.slope).max() < GRADIENT:
            return None if here is None else x
        bend = here.curvature if curvature is None else curvature
        step = np.asarray(-np.linalg.solve(bend, here.slope), dtype=np.float64)
        step *= min(1.0, LONGEST / float(np.abs(step).max()))
        moved = line_search(objective, x, here, step)
        if moved is None:
            if curvature is None:
                return None
            curvature = None
            continue
        share, there = moved
        if np.abs(here.slope).max() < NEAR:
            curvature = bfgs(
                there.curvature if curvature is None else curvature, share * step, there.slope - here.slope
            )
        else:
            curvature = None
        x, here = x + share * step, there
    return None


def line_search(
    objective: Callable[[Floats], Terms | None], x: Floats, here: Terms, step: Floats
) -> tuple[float, Terms] | None:
    """How much of a step to take, and the point there; None if no part of it helps.

    Near the end the value cannot resolve what a step gains; a smaller gradient then decides.
    """
    share, expected = 1.0, float(here.slope @ step)
    noise = 1e-9 * (1 + abs(here.value))
    while share > 1e-6:
        there = objective(x + share * step)
        if there is not None:
            gain = here.value - there.value
            smaller = np.abs(there.slope).max() < np.abs(here.slope).max()
            if gain >= -1e-4 * share * expected or (gain >= -noise and smaller):
                return share, there
        share /= 2
    return None


def bfgs(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """The curvature corrected so that it explains how the gradient changed along a step."""
    along = float(change @ step)
    pulled = curvature @ step
    if along <= 1e-4 * float(step @ pulled):  # the objective bends the other way there: nothing to learn
        return curvature
    corrected: Floats = curvature - np.outer(pulled, pulled) / (step @ pulled) + np.outer(change, change) / along
    return corrected
