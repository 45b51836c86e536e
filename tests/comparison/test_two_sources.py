"""Which of the two sources of certainty judges a large log, and the floors and the table that go with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from podium import Log, compare
from podium.comparison.analysis import Analysis, analyze, best_of, contradict, prefers
from podium.estimates.estimators import LDE
from podium.estimates.options import Options
from podium.experiments.calibration.large import RULES, by_size
from podium.experiments.calibration.trials import Trial
from podium.policies import resolve_policies
from podium.verdicts.judgement import Judgement
from podium.verdicts.unseen_weight import unseen_errors


def judged(
    difference: list[float], error: float, *, silent: str = "", freedom: float = 100.0, **figures: Any
) -> Judgement:
    """Three pairs with one error."""
    return Judgement(
        procedure="any",
        difference=np.array(difference),
        std_error=np.full(3, error),
        freedom=np.full(3, freedom),
        path=("any",) * 3,
        silent=(silent,) * 3,
        values=np.zeros(3),
        **{"empirical": np.full(3, error), **figures},
    )


AGREED = [0.1, 0.2, 0.1]


def test_the_source_with_the_smaller_error_judges_each_pair() -> None:
    narrow, wide = judged(AGREED, 0.1), judged(AGREED, 0.2)
    assert prefers(narrow, wide).all()
    assert not prefers(wide, narrow).any()
    assert prefers(replace(narrow, silent=("unseen", "", "")), wide).tolist() == [False, True, True]


def test_under_an_alarm_every_row_judges_unless_its_errors_are_far_larger() -> None:
    doubtful = judged(AGREED, 0.1, alarm=True)
    assert prefers(judged(AGREED, 0.29), doubtful).all()
    assert not prefers(judged(AGREED, 0.31), doubtful).any()


def test_every_row_judges_where_the_sample_is_silent() -> None:
    silent, wide = judged(AGREED, 0.1, silent="an alarm"), judged(AGREED, 5.0)
    assert prefers(wide, silent).all()
    assert prefers(replace(wide, silent=("unseen", "", "")), silent).tolist() == [False, True, True]
    assert not prefers(judged(AGREED, 5.0, silent="unseen"), silent).any()


def test_every_row_judges_where_the_sample_contradicts_it() -> None:
    """0.4 is 4 standard errors of a gap: chance gives it once in 5,000 times with many rows, often with two rows."""
    sample = judged(AGREED, 0.06)
    every = judged([0.5, 0.2, 0.1], 0.3, empirical=np.full(3, 0.08))
    assert contradict(every, sample).tolist() == [True, False, False]
    assert prefers(every, sample).tolist() == [True, False, False]
    assert not contradict(replace(every, freedom=np.full(3, 2.0)), sample).any()
    assert not contradict(replace(every, silent=("unseen", "", "")), sample).any()
    assert not prefers(replace(every, difference=np.array(AGREED)), sample).any()


def test_pairs_of_two_sources_stand_side_by_side() -> None:
    sample, every = judged(AGREED, 0.06), judged([0.5, 0.2, 0.1], 0.3, empirical=np.full(3, 0.08))
    merged = best_of(every, sample)
    assert merged.every_row is not None
    assert merged.every_row.tolist() == [True, False, False]
    assert merged.difference.tolist() == [0.5, 0.2, 0.1]
    assert merged.std_error.tolist() == [0.3, 0.06, 0.06]
    assert merged.p_above().tolist() == [every.p_above()[0], *sample.p_above()[1:]]
    assert best_of(judged(AGREED, 0.1), judged(AGREED, 0.2)).every_row is None


ACTIONS = ["a", "b", "a", "b", "a", "b"]
REWARDS = [0.0, 2.0, 0.0, 2.0, 0.0, 2.0]  # a standard deviation of 1


def test_actions_without_a_row_leave_differences_open() -> None:
    log = Log(np.arange(6), ACTIONS, REWARDS, action_space=["a", "b", "c", "d"])
    spread = np.tile([0.3, 0.3, 0.3, 0.1], (6, 1))
    whole = {"spread": spread, "c in one row of two": np.array(["a", "c"] * 3), "seen": np.array(["a", "b"] * 3)}
    log, policies = resolve_policies(log, whole)
    assert_allclose(unseen_errors(log, policies), 3 * np.array([np.hypot(0.2, 0.1), np.hypot(0.3, 0.1), 0.5]))
    log, partial = resolve_policies(log, {**whole, "at logged actions": np.full(6, 0.5)})
    assert_array_equal(unseen_errors(log, partial), np.zeros(6))


def test_actions_that_every_policy_lacks_cost_nothing() -> None:
    log = Log(np.arange(6), ACTIONS, REWARDS, action_space=["a", "b", "c"])
    log, policies = resolve_policies(log, {"one": np.array(["a"] * 6), "other": np.array(["b"] * 6)})
    assert_array_equal(unseen_errors(log, policies), [0.0])


def analysis_of(rows: int, sample_rows: int) -> Analysis:
    rng = np.random.default_rng(3)
    behavior = np.tile([0.499, 0.499, 0.002], (rows, 1))
    actions = rng.integers(2, size=rows)
    log = Log(rng.integers(5, size=rows), actions, rng.standard_normal(rows) + actions, behavior=behavior,
              action_space=range(3))  # fmt: skip
    policies = {"one": np.tile([0.1, 0.9, 0.0], (rows, 1)), "other": np.tile([0.1, 0.5, 0.4], (rows, 1))}
    return analyze(log, policies, LDE, Options(sample_rows=sample_rows))


def test_only_samples_allow_for_actions_without_a_row() -> None:
    large, small = analysis_of(400, sample_rows=200), analysis_of(400, sample_rows=400)
    plain = large.judged(large.usual).std_error
    floor = 3 * 0.4 * large.rows.sample.rewards.std()
    assert plain < floor
    assert_allclose(large.by_sample.std_error, floor)
    assert_allclose(large.by_sample.empirical, plain)
    assert_array_equal(small.judgement.std_error, small.judged("posterior").std_error)


def trial(rows: int, truth: list[float], chosen: list[float]) -> Trial:
    claims = np.array(chosen)
    p = np.where(claims > 0, 0.99, 0.5)
    return Trial(
        family="a family | all known", rows=rows, truth=np.array(truth), order={}, t_p=0.0, alarm=False, seconds=0.0,
        p_better={"chosen": p, "sample": p if rows == 10 else 1 - p, "every row": p},
        claims=dict.fromkeys(RULES, claims), covered=np.ones(3),
    )  # fmt: skip


def test_sizes_are_compared_log_by_log() -> None:
    differ, tied = [1.0, 1.0, -1.0], [0.0, 0.0, 0.0]
    trials = [
        trial(10, differ, [1, 0, 0]), trial(10, differ, [1, -1, 0]), trial(10, tied, [0, 0, 0]),
        trial(20, differ, [1, 1, -1]), trial(20, differ, [1, 0, 0]), trial(20, tied, [1, 0, 0]),
    ]  # fmt: skip
    small, large = by_size(trials, "chosen")
    assert (small.logs, small.claims, small.wrong, small.change, small.by_every_row) == (3, 3, 1, 0.0, 0.0)
    assert (large.logs, large.claims, large.wrong, large.by_every_row) == (3, 5, 1, 1.0)
    assert small.decided == pytest.approx(3 / 6)  # pairs of equal policies cannot be decided rightly
    assert large.change == pytest.approx(1 / 6)
    shift = np.array([2.0, -1.0, 0.0])
    assert large.error == pytest.approx(np.sqrt(((shift - shift.mean()) ** 2).sum()) / 6)


@pytest.mark.slow
def test_a_long_log_of_rare_rewards_says_which_pairs_every_row_judges() -> None:
    rng = np.random.default_rng(7)
    rows, n_actions = 2_400, 3
    actions = rng.integers(n_actions, size=rows)
    rewards = (rng.random(rows) < 0.03 + 0.03 * actions).astype(float)
    log = Log(rng.standard_normal(rows), actions, rewards, behavior=np.full((rows, n_actions), 1 / n_actions))
    result = compare(log, {f"always {a}": f"constant:{a}" for a in range(n_actions)})
    by_rows = sum(pair.path == "DRE" for pair in result.pairs)
    told = [(note.fields["pairs"], note.fields["of"]) for note in result.settings.notes if note.code == "DRE judges"]
    assert told == ([(by_rows, 3)] if by_rows else [])
    assert by_rows
    assert {pair.source for pair in result.pairs} == {"all rows"}
    short = log.take(np.arange(2_000))
    assert {pair.path for pair in compare(short, {"a": "constant:0", "b": "constant:2"}).pairs} == {"posterior"}
    common = replace(log, rewards=np.where(actions > 0, rewards, 1 - rewards))
    assert {pair.path for pair in compare(common, {"a": "constant:0", "b": "constant:2"}).pairs} == {"posterior"}


def test_a_small_log_that_is_ranked_by_every_row_is_judged_as_usual() -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(3, size=200)
    log = Log(
        rng.standard_normal(200), actions, rng.standard_normal(200) + 0.5 * actions, behavior=np.full((200, 3), 1 / 3)
    )
    result = compare(log, {"a": "constant:0", "b": "constant:2"}, estimator="doubly robust")
    assert (result.settings.estimator, result.pairs[0].path) == ("doubly robust", "posterior")
