"""The sample of a large log: the same rows on every engine, drawn in little memory from any number of rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from podium.engines.sample import SAMPLE_ROWS, bin_counts, bins_to_draw, draw_rows, unit_bins


@pytest.mark.parametrize("rows", [SAMPLE_ROWS + 1, 10**6, 10**9, 10**12])
def test_a_draw_takes_little_memory_however_many_rows_there_are(rows: int) -> None:
    tracemalloc.start()
    drawn = draw_rows(rows, SAMPLE_ROWS, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert len(drawn) == SAMPLE_ROWS
    assert np.all(np.diff(drawn) > 0)
    assert 0 <= drawn[0] < drawn[-1] < rows


def test_a_draw_depends_on_the_rows_and_the_seed_alone() -> None:
    first = draw_rows(10**9, 1000, 0)
    np.testing.assert_array_equal(draw_rows(10**9, 1000, 0), first)
    assert not np.array_equal(draw_rows(10**9, 1000, 1), first)
    assert not np.array_equal(draw_rows(10**9 + 1, 1000, 0), first)


def test_every_row_is_equally_likely() -> None:
    counts = np.zeros(50)
    for seed in range(2000):
        counts[draw_rows(50, 10, seed)] += 1
    assert np.sum((counts - 400) ** 2 / (400 * 0.8)) < 95  # chi-square of 49 degrees: beyond 95 once in 10,000


def test_units_are_drawn_whole_by_their_names_in_any_order_of_rows() -> None:
    units = np.array([f"u{i}" for i in np.random.default_rng(0).integers(0, 3000, 30_000)], dtype=object)
    bins = unit_bins(units, 7)
    drawn = bins < bins_to_draw(bin_counts(bins), 5000)
    assert 4500 < drawn.sum() <= 5000
    assert not set(units[drawn]) & set(units[~drawn])
    order = np.random.default_rng(1).permutation(len(units))
    np.testing.assert_array_equal(unit_bins(units[order], 7), bins[order])
    halves = bin_counts(bins[:9000]) + bin_counts(bins[9000:])
    np.testing.assert_array_equal(halves, bin_counts(bins))


def test_a_unit_larger_than_the_sample_is_drawn_whole() -> None:
    bins = unit_bins(np.array(["one"] * 900, dtype=object), 0)
    assert (bins < bins_to_draw(bin_counts(bins), 500)).all()
