"""Rates, errors and correlations of Example 1, and their standard errors, against slower ways to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from podium.experiments.synthetic.measures import (
    correlate,
    measure,
    pearson_with_error,
    share_std_errors,
    shared_ranks,
    spearman_with_error,
)


def fake_cell(tests: int, seed: int, alpha: float = 0.1) -> dict[str, np.ndarray]:
    """Tests whose two policies share most of their error, as in the experiment."""
    rng = np.random.default_rng(seed)
    values = np.empty((tests, 1, 10))
    middle = rng.normal(3.0, 0.05, tests)
    values[:, 0, 0], values[:, 0, 1] = middle + alpha / 2, middle - alpha / 2
    for k in range(4):
        common = rng.standard_t(9, tests) * 0.1
        for j in (0, 1):
            values[:, 0, 2 + 2 * k + j] = values[:, 0, j] * 0.5 + common + rng.normal(0, 0.02 * (k + 1), tests)
    return {"values": values, "right": rng.integers(0, 101, (tests, 1, 4)).astype(np.int16)}


def test_a_cell_measured_by_hand() -> None:
    values = np.array([[[1.0, 0.5, 2.0, 1.0, 0.0, 1.0, 1.0, 1.0, 3.0, 0.0]], [[1.0, 0.5, 0, 2.0, 1, 0, 0, 1.0, 1, 0]]])
    got = measure(0.25, 1, {"values": values, "right": np.array([[[100, 50, 0, 10]], [[50, 50, 0, 20]]])}, 0, 2.0, 100)
    assert got.rate.tolist() == [0.5, 0.5, 0.5, 1.0], "equal estimates count as right"
    assert got.state_rate == pytest.approx([0.75, 0.5, 0.0, 0.15])
    errors = np.array([(2.0 - 1.0) / 2, (1.0 - 0.5) / 2, (0 - 1.0) / 2, (2.0 - 0.5) / 2])
    assert got.average[0] == pytest.approx(errors.mean())
    assert got.std[0] == pytest.approx(errors.std())
    assert got.low[0] == pytest.approx(np.percentile(errors, 5))


def test_standard_errors_are_those_of_repeated_experiments() -> None:
    many = [measure(0.1, 1, fake_cell(200, seed), 0, 1.0, 100) for seed in range(300)]
    for name in ("average", "std", "rate", "state_rate"):
        spread = np.std([getattr(m, name) for m in many], axis=0)
        error = np.median([getattr(m, f"{name}_error") for m in many], axis=0)
        assert error == pytest.approx(spread, rel=0.25), name


def test_errors_of_the_average_are_clustered_by_test() -> None:
    cell = fake_cell(500, 1)
    got = measure(0.1, 1, cell, 0, 1.0, 100)
    values = cell["values"][:, 0]
    mean = ((values[:, 2] - values[:, 0]) + (values[:, 3] - values[:, 1])) / 2
    assert got.average_error[0] == pytest.approx(mean.std(ddof=1) / np.sqrt(500))


def test_correlations_are_those_of_scipy_and_their_errors_those_of_repetition() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    stratum = np.repeat(np.arange(5), 200)
    found = []
    for _ in range(200):
        x = stratum + rng.normal(0, 1e-9, 1000)
        y = 0.5 * stratum + rng.standard_t(5, 1000)
        found.append([*pearson_with_error(x, y, stratum), *spearman_with_error(x, y, stratum)])
    assert found[-1][0] == pytest.approx(stats.pearsonr(x, y)[0])
    assert found[-1][2] == pytest.approx(stats.spearmanr(x, y)[0])
    spread, error = np.std(found, axis=0), np.median(found, axis=0)
    assert error[1] == pytest.approx(spread[0], rel=0.2)
    assert error[3] == pytest.approx(spread[2], rel=0.2)


def test_the_error_of_a_standard_deviation_is_shared_among_neighbours() -> None:
    points = [measure(0.1, 1, fake_cell(300, seed), 0, 1.0, 100) for seed in range(30)]
    wide = [measure(0.1, 1, fake_cell(300, seed), 0, 0.5, 100) for seed in range(30)]
    shared = share_std_errors([*points[:15], *wide[15:]])
    own = np.array([p.std_error for p in points])
    middle = np.array([p.std_error for p in shared])[7]
    assert middle == pytest.approx(np.sqrt((own[:16] ** 2).mean(axis=0)), rel=0.15)
    assert [p.std.tolist() for p in shared[:15]] == [p.std.tolist() for p in points[:15]]
    spread = [np.std([p.std_error[0] / (p.high[0] - p.low[0]) for p in ps]) for ps in (points, shared)]
    assert spread[1] < 0.5 * spread[0], "neighbours steady each other, whatever their scale"


def test_equal_values_share_their_rank() -> None:
    assert shared_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_correlations_pool_the_cells_of_one_m() -> None:
    cells = [fake_cell(50, seed, alpha) for seed, alpha in enumerate((0.1, 0.5, 0.9))]
    got = correlate(2, cells, 0)
    pooled = np.concatenate([c["values"][:, 0] for c in cells])
    expected = np.corrcoef(pooled[:, 0] - pooled[:, 1], pooled[:, 2] - pooled[:, 3])[0, 1]
    assert got.m == 2
    assert got.pearson[0] == pytest.approx(expected)
