"""The bench of comparison by group: its worlds are what they say, and it counts what was claimed."""

from __future__ import annotations

import numpy as np
import pytest

from podium.experiments.calibration.groups import REPORT, TUNING, World, binned, judge_log, main


def test_families_to_tune_on_are_not_those_reported() -> None:
    assert not {*TUNING} & {*REPORT}
    assert not {*TUNING.values()} & {*REPORT.values()}


def test_harm_is_in_one_group_of_four() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        effects = World.drawn(TUNING["harm, group is a state"], rng).effects
        gaps = effects[:, 1] - effects[:, 0]
        assert sorted(np.bincount((gaps > 0).astype(int), minlength=2).tolist()) == [1, 3]
        assert np.sign(gaps.mean()) == np.sign(np.median(gaps))


def test_probabilities_are_counted_in_the_direction_they_favor() -> None:
    said, right, number = binned([0.96, 0.04, 0.55], [1.0, 1.0, 0.0])
    assert number.tolist() == [1, 0, 0, 0, 0, 2, 0]
    assert right.tolist() == [0.5, 0, 0, 0, 0, 1, 0]
    assert said[5] == pytest.approx(1.92)


def test_a_log_is_judged_by_group_and_group_by_group() -> None:
    found = judge_log("harm, group is a state", TUNING["harm, group is a state"], 160, 0, 1, alone=True)
    assert (found.groups, found.bins[2].sum()) == (4, found.intervals)
    assert 0 <= found.wrong <= found.claims <= 4


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--set", "tuning", "--family", "no effects", "--rows", "120", "--logs", "1", "--without-alone"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[2].startswith("| no effects | 4 |")
    assert shown[-1].count("|") == 4
