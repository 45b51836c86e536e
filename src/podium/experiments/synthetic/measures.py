"""What the tests of Example 1 say: comparison rates, evaluation errors and correlations, with their standard errors.

Every standard error is clustered by test: the two policies of a test share its log, and most of the spread of their
errors is the prescribed gap between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.experiments.runner import Arrays

METHODS = ("LDE", "DRE", "IPS", "DiM")
DRAWS = 1000  # of the bootstrap
BOOTSTRAP_SEED = 20_221
REACH = 8  # neighbouring cells on either side


@dataclass(frozen=True, eq=False)
class Measures:
    """One cell and one reward function; every array is (4,), one entry per method."""

    alpha: float
    m: int
    rate: Floats  # share of tests whose policies are put in the right order
    rate_error: Floats
    state_rate: Floats  # share of (test, state)
    state_rate_error: Floats
    average: Floats  # of the normalised evaluation errors of both policies
    average_error: Floats
    std: Floats
    std_error: Floats
    low: Floats  # 5th and 95th percentile
    high: Floats


def measure(alpha: float, m: int, arrays: Arrays, example: int, span: float, states: int) -> Measures:
    """Measure one cell's tests of one reward function."""
    values, right = arrays["values"][:, example], arrays["right"][:, example]
    tests = len(values)
    truth, estimates = values[:, :2], values[:, 2:].reshape(tests, 4, 2)
    errors = (estimates - truth[:, None, :]) / span  # (T, 4, 2)
    correct = (estimates[..., 0] - estimates[..., 1]) * (truth[:, :1] - truth[:, 1:]) >= 0
    rate, state_rate = correct.mean(axis=0), right / states
    root = np.sqrt(tests)
    low, high = np.percentile(errors, [5, 95], axis=(0, 2))
    return Measures(
        alpha=alpha,
        m=m,
        rate=rate,
        rate_error=np.sqrt(rate * (1 - rate)) / root,
        state_rate=state_rate.mean(axis=0),
        state_rate_error=state_rate.std(axis=0, ddof=1) / root,
        average=errors.mean(axis=(0, 2)),
        average_error=errors.mean(axis=2).std(axis=0, ddof=1) / root,
        std=errors.std(axis=(0, 2)),
        std_error=bootstrap_std(errors),
        low=low,
        high=high,
    )


def bootstrap_std(errors: Floats) -> Floats:
    """(4,) standard error of the pooled standard deviation of errors (T, 4, 2), by resampling tests.

    The errors of IPS and DRE have heavy tails, where no formula from their fourth moment can be trusted.
    """
    tests = len(errors)
    centred = errors - errors.mean(axis=(0, 2), keepdims=True)
    sums = np.concatenate([centred.mean(axis=2), (centred**2).mean(axis=2)], axis=1)  # (T, 8)
    means = resampling_weights(tests) @ sums
    drawn = np.sqrt(np.maximum(means[:, 4:] - means[:, :4] ** 2, 0))
    deviation: Floats = drawn.std(axis=0, ddof=1)
    return deviation


def share_std_errors(points: Sequence[Measures]) -> list[Measures]:
    """A sweep whose standard errors of standard deviations draw on the neighbouring cells too.

    With heavy tails the few tests that decide a standard deviation occur in one cell and not in the next, and a
    bootstrap of a cell without them is far too sure. So the bootstrap variances of up to `REACH` cells on either
    side are averaged, each rescaled by the width of the 5-95% band.
    """
    width = np.array([p.high - p.low for p in points])
    variance = np.array([p.std_error for p in points]) ** 2 / width**2
    shared = []
    for i, point in enumerate(points):
        near = variance[max(0, i - REACH) : i + REACH + 1].mean(axis=0)
        shared.append(replace(point, std_error=width[i] * np.sqrt(near)))
    return shared


@lru_cache(maxsize=1)
def resampling_weights(tests: int) -> Floats:
    """(B, T) how much each test weighs in each resample; the same resamples serve every cell."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return rng.multinomial(tests, np.full(tests, 1 / tests), size=DRAWS) / tests


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlation of true and estimated differences over all alphas at one m; arrays are (4,), by method."""

    m: int
    pearson: Floats
    pearson_error: Floats
    spearman: Floats
    spearman_error: Floats


def correlate(m: int, cells: list[Arrays], example: int) -> Correlations:
    """Correlations over the tests of the given cells, one cell per alpha.

    Within one alpha the true differences are equal but for rounding. They are ranked as they are, as the
    paper's program must have done: the printed Spearman coefficients contain that noise.
    """
    values = np.concatenate([c["values"][:, example] for c in cells])
    stratum = np.repeat(np.arange(len(cells)), [len(c["values"]) for c in cells])
    truth = values[:, 0] - values[:, 1]
    gaps = [values[:, 2 + 2 * k] - values[:, 3 + 2 * k] for k in range(4)]
    pearson = [pearson_with_error(truth, gap, stratum) for gap in gaps]
    spearman = [spearman_with_error(truth, gap, stratum) for gap in gaps]
    return Correlations(
        m,
        *(np.array(column) for column in zip(*pearson, strict=True)),
        *(np.array(column) for column in zip(*spearman, strict=True)),
    )


def pearson_with_error(x: Floats, y: Floats, stratum: NDArray[np.int64]) -> tuple[float, float]:
    """Pearson's r and its standard error by the influence of each test, zx zy - r (zx^2 + zy^2) / 2."""
    zx, zy = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    r = float(np.mean(zx * zy))
    return r, stratified_error(zx * zy - r * (zx**2 + zy**2) / 2, stratum)


def spearman_with_error(x: Floats, y: Floats, stratum: NDArray[np.int64]) -> tuple[float, float]:
    """Spearman's rho and its standard error by the influence of each test.

    With U = F(x), W = G(y), rho is 12 E[UW] - 3 up to ties; a test moves E[UW] by its own product, and by
    moving the ranks of all tests above it.
    """
    u, w = shared_ranks(x) / len(x), shared_ranks(y) / len(y)
    rho = float(np.corrcoef(u, w)[0, 1])
    influence = u * w + mean_above(u, w) + mean_above(w, u)
    return rho, stratified_error(influence, stratum) / float(u.std() * w.std())


def shared_ranks(values: Floats) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    ranks: Floats = mean_rank[group]
    return ranks


def mean_above(rank: Floats, other: Floats) -> Floats:
    """For each i, the sum of `other` over all j with rank_j >= rank_i, divided by n."""
    order = np.argsort(-rank, kind="stable")
    sums = np.cumsum(other[order]) / len(rank)
    above = np.empty_like(sums)
    above[order] = sums
    return above


def stratified_error(influence: Floats, stratum: NDArray[np.int64]) -> float:
    """Standard error of a mean of influences when the number of tests in each stratum (each alpha) is fixed."""
    n, variance = len(influence), 0.0
    for s in np.unique(stratum):
        part = influence[stratum == s]
        variance += len(part) * float(part.var(ddof=1))
    return float(np.sqrt(variance)) / n
