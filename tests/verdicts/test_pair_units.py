"""Pairs of rewards in any unit: the degrees of freedom do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest

from podium.verdicts.pairs import degrees_of_freedom, pair_indices, pair_power_sums


@pytest.mark.parametrize("unit", [1e-100, 1e-78, 1e78, 1e100])
def test_degrees_of_freedom_are_the_same_in_every_unit(unit: float) -> None:
    columns = np.random.default_rng(0).exponential(size=(40, 3))
    second, fourth = pair_power_sums(columns, *pair_indices(3))
    second_there, fourth_there = pair_power_sums(columns * unit, *pair_indices(3))
    assert second_there == pytest.approx(second * unit**2, rel=1e-9, abs=0)
    assert degrees_of_freedom(fourth_there, 40) == pytest.approx(degrees_of_freedom(fourth, 40))
