"""Values that differ stay apart and in order: whole numbers, decimals, times, moments with and without a zone."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium import Log, PodiumError, compare, read_log

ACTIONS = list("ababab")
REWARDS = [1.0, 0.1, 0.9, 0.2, 0.8, 0.4]
BIG = 2**60
APART = "must hold numbers that floats can tell apart"
WHOLE: dict[str, tuple[Any, int]] = {
    "NumPy's beside Python's": ([np.int64(BIG + 1), np.int64(BIG + 2), BIG + 3, BIG + 4, BIG + 5, BIG + 6], 6),
    "beyond 64 bits": ([2**63, 2**63 + 1, 2**63 + 2, -1, 5, 6], 6),
    "NumPy's unsigned beside a negative one": ([np.uint64(2**63 + 1), np.uint64(2**63 + 2), -1] * 2, 3),
    "rows of features": ([[BIG + 1, 0.5], [BIG + 2, 0.5], [BIG + 3, 0.5]] * 2, 3),
    "rows that are arrays": ([np.array([BIG + 1, 2]), np.array([BIG + 2, 2]), np.array([float(BIG), 0.5])] * 2, 3),
    "rows that are tuples": ([(BIG + 1, 0.5), (BIG + 2, 0.5), (BIG + 3, 0.5)] * 2, 3),
    "decimals": ([Decimal(BIG + 1), Decimal(BIG + 2), Decimal(3)] * 2, 3),
    "NumPy's in an array of objects": (np.array([np.int64(BIG + 1), np.int64(BIG + 2), 3] * 2, dtype=object), 3),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_stay_apart_as_states(name: str) -> None:
    states, distinct = WHOLE[name]
    assert Log(states, ACTIONS, REWARDS).n_states == distinct


def test_a_policy_sees_whole_numbers_beside_fractions_exactly() -> None:
    seen = Log([(BIG + 1, 0.5), (BIG + 2, 0.5), (BIG + 3, 0.5)] * 2, ACTIONS, REWARDS).states
    assert seen[:3, 0].tolist() == [BIG + 1, BIG + 2, BIG + 3]


def test_whole_numbers_stay_apart_as_actions_and_units() -> None:
    log = Log(range(6), [np.int64(BIG + 1), BIG + 2] * 3, REWARDS, units=[np.int64(BIG + 1), BIG + 2, BIG + 3] * 2)
    assert log.action_space == (BIG + 1, BIG + 2)
    assert len(set(np.asarray(log.units).tolist())) == 3


@pytest.mark.parametrize(
    "states",
    [
        [BIG + 1, BIG + 2, 0.5] * 2,
        [Decimal(BIG + 1), Decimal(BIG + 2), Decimal("0.5")] * 2,
        [Decimal("0.1"), Decimal("0.5"), Decimal("0.10000000000000000001")] * 2,
    ],
)
def test_numbers_that_floats_would_merge_are_refused(states: list[Any]) -> None:
    with pytest.raises(PodiumError, match=APART):
        Log(states, ACTIONS, REWARDS)


def test_a_file_keeps_whole_numbers_beside_fractions_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = [f"{BIG + 1}", f"{BIG + 2}", "0.5"] * 2
    path.write_text("state,action,reward\n" + "".join(f"{s},{a},1\n" for s, a in zip(cells, ACTIONS, strict=True)))
    with pytest.raises(PodiumError, match=APART):
        read_log(path)


MOMENT = "2024-01-01T00:00:00.12345678"
LATER_FIRST: dict[str, list[Any]] = {
    "nanoseconds": [1731780000000000100, 1731780000000000000],
    "NumPy's beside Python's": [np.int64(1731780000000000100), 1731780000000000000],
    "beyond 64 bits": [2**70 + 1, 2**70],
    "unsigned": [np.uint64(2**63 + 1), np.uint64(2**63)],
    "beside a float": [BIG + 1, float(BIG)],
    "decimals": [Decimal("1731780000000000000.2"), Decimal("1731780000000000000.1")],
    "fractions": [Fraction(10**20 + 1, 3), Fraction(10**20, 3)],
    "texts": [f"{MOMENT}9Z", f"{MOMENT}8Z"],
    "texts without a zone": [f"{MOMENT}9", f"{MOMENT}"],
    "texts of several zones": ["2024-01-01T01:00:00.123456789+01:00", f"{MOMENT}8Z"],
}


@pytest.mark.parametrize("name", LATER_FIRST)
def test_the_latest_row_is_found_by_exact_times(name: str) -> None:
    times = LATER_FIRST[name]
    assert Log([0, 0], ["a", "a"], [1.0, 5.0], times=times).latest.tolist() == [0]
    assert Log([0, 0], ["a", "a"], [1.0, 5.0], times=times[::-1]).latest.tolist() == [1]


@pytest.mark.parametrize("time", [f"{MOMENT}91Z", "1600-01-01T00:00:00Z"])
def test_moments_beyond_nanoseconds_are_refused(time: str) -> None:
    with pytest.raises(PodiumError, match="column 'time' must lie between 1678 and 2261, with at most nine digits"):
        Log([0, 0], ["a", "a"], [1.0, 5.0], times=[time, f"{MOMENT}8Z"])


@pytest.mark.parametrize("role", ["states", "actions", "units"])
def test_moments_with_and_without_a_zone_are_refused(role: str) -> None:
    given: dict[str, Any] = {"states": range(6), "actions": ACTIONS, "rewards": REWARDS}
    given[role] = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)] * 3
    with pytest.raises(PodiumError, match=f"column '{role[:-1]}' must name a time zone in every row or in none; row 2"):
        Log(**given)


HUGE = 10**400


@pytest.mark.parametrize("value", [Fraction(HUGE), Decimal(HUGE), HUGE])
def test_numbers_beyond_every_float_are_refused(value: Any) -> None:
    with pytest.raises(PodiumError, match="column 'reward' must be a finite number; row 1"):
        Log(range(6), ACTIONS, [value] * 6)
    with pytest.raises(PodiumError, match="column 'state' must be finite; row 1"):
        Log([value, 0.5] * 3, ACTIONS, REWARDS)


def test_a_baseline_that_holds_texts_is_refused() -> None:
    log = Log(range(6), ACTIONS, REWARDS)
    with pytest.raises(PodiumError, match="the baseline must be a number; row 1 holds 'x'"):
        compare(log, {"a": ["a"] * 6, "b": ["b"] * 6}, baseline=np.full((6, 2), "x", dtype=object))


class Broken:
    """A model whose own property fails."""

    @property
    def fit(self) -> Any:
        raise RuntimeError("no weights")


def test_a_baseline_whose_property_fails_is_refused() -> None:
    log = Log(range(6), ACTIONS, REWARDS)
    with pytest.raises(PodiumError, match="the baseline Broken cannot be asked what it is: RuntimeError: no weights"):
        compare(log, {"a": ["a"] * 6, "b": ["b"] * 6}, baseline=Broken())


def test_a_difference_that_is_tiny_beside_the_errors_can_be_drawn(tmp_path: Path) -> None:
    log = Log(np.arange(60) % 6, ACTIONS * 10, REWARDS * 10)
    result = compare(log, {"a": ["a"] * 60, "b": ["b"] * 60})
    result.report(tmp_path / "report.html", difference=1e-155)
    assert (tmp_path / "report.html").stat().st_size > 0
