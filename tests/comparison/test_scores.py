"""Ranking measures against known truth: hand-computed values, properties, ties, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import podium.comparison.scores
from podium.comparison.scores import Score, kendall, regret, score, spearman
from podium.data.errors import PodiumError

# Whole numbers: they tie often, and monotone transforms of them are exact.
whole = st.integers(-20, 20)
two_lists = st.lists(st.tuples(whole, whole), min_size=2, max_size=25)
two_orders = st.integers(2, 15).flatmap(
    lambda size: st.tuples(st.permutations(range(size)), st.permutations(range(size)))
)


def plain_count(true: Any, estimated: Any) -> tuple[int, int, int]:
    """Concordant, inverted and tied pairs, one pair at a time."""
    concordant = inverted = tied = 0
    for i, j in combinations(range(len(true)), 2):
        product = (true[i] - true[j]) * (estimated[i] - estimated[j])
        concordant, inverted, tied = (
            concordant + (product > 0),
            inverted + (product < 0),
            tied + (product == 0),
        )
    return concordant, inverted, tied


def test_score_by_hand() -> None:
    # Order 1 2 3 4 estimated as 2 1 4 3: the pairs (1, 2) and (3, 4) are inverted, 4 of 6 are right.
    result = score([1, 2, 3, 4], [2, 1, 4, 3])
    assert (result, result.pairs, result.inversions, result.ties) == (1 - 2 / 6, 6, 2, 0)


@pytest.mark.parametrize(
    ("true", "estimated", "inversions", "ties", "correct", "half"),
    [
        ([1, 2, 3], [5, 5, 5], 0, 3, 1.0, 0.5),
        ([1, 1, 1], [1, 2, 3], 0, 3, 1.0, 0.5),
        ([1, 1, 2], [3, 3, 4], 0, 1, 1.0, 5 / 6),
        ([1, 2, 3], [2, 2, 1], 2, 1, 1 / 3, 1 / 6),
        ([0, 1], [1, 0], 1, 0, 0.0, 0.0),
    ],
)
def test_score_of_ties(
    true: list[int], estimated: list[int], inversions: int, ties: int, correct: float, half: float
) -> None:
    for rule, expected in (("correct", correct), ("half", half)):
        result = score(true, estimated, ties=rule)  # type: ignore[arg-type]
        assert result == pytest.approx(expected, abs=1e-15)
        assert (result.inversions, result.ties) == (inversions, ties)


def test_score_neither_underflows_nor_overflows() -> None:
    assert score([0.0, 5e-324], [1e-300, 0.0]).inversions == 1
    assert score([-1e308, 1e308], [1e308, -1e308]).inversions == 1


@given(two_lists)
def test_score_counts_like_a_plain_loop(pairs: list[tuple[int, int]]) -> None:
    true, estimated = zip(*pairs, strict=True)
    concordant, inverted, tied = plain_count(true, estimated)
    result = score(true, estimated)
    assert (result.inversions, result.ties) == (inverted, tied)
    assert result.pairs == concordant + inverted + tied
    # ties="half" is tau_a on another scale.
    tau_a = (concordant - inverted) / result.pairs
    assert score(true, estimated, ties="half") == pytest.approx((tau_a + 1) / 2)


@given(two_orders)
def test_without_ties_score_reversed_and_tau(orders: tuple[list[int], list[int]]) -> None:
    true, estimated = orders
    assert score(true, true) == 1.0
    assert score(true, [-x for x in true]) == 0.0
    assert score(true, estimated) + score(true, [-x for x in estimated]) == pytest.approx(1.0)
    assert score(true, estimated) == pytest.approx((kendall(true, estimated) + 1) / 2)


@given(two_lists)
def test_monotone_transforms_change_nothing(pairs: list[tuple[int, int]]) -> None:
    true, estimated = map(np.array, zip(*pairs, strict=True))
    for measure in (score, kendall, spearman):
        assert measure(true, estimated) == measure(true**3, np.exp(estimated / 10.0))
        assert measure(true, estimated) == pytest.approx(measure(-true, -estimated), abs=1e-12)
        assert measure(true, estimated) == pytest.approx(measure(estimated, true), abs=1e-12)


@given(two_lists)
def test_correlations_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    true, estimated = zip(*pairs, strict=True)
    if len(set(true)) == 1 or len(set(estimated)) == 1:
        assert kendall(true, estimated) == spearman(true, estimated) == 0.0
    else:
        assert kendall(true, estimated) == pytest.approx(stats.kendalltau(true, estimated)[0], abs=1e-12)
        assert spearman(true, estimated) == pytest.approx(stats.spearmanr(true, estimated)[0], abs=1e-12)


def test_correlations_by_hand() -> None:
    # One tie in the truth: C = 4, D = 1, sqrt((6 - 1)(6 - 0)).
    assert kendall([1, 1, 2, 3], [1, 2, 4, 3]) == pytest.approx(3 / np.sqrt(30))
    assert kendall([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / np.sqrt(30))
    # Rank differences 0, 0, 1, 1: 1 - 6 * 2 / (4 * 15).
    assert spearman([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(0.8)


def test_many_policies_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    true, estimated = rng.integers(50, size=(2, 300))
    whole_result = score(true, estimated)
    monkeypatch.setattr(podium.comparison.scores, "_BLOCK_CELLS", 1000)
    assert repr(score(true, estimated)) == repr(whole_result)
    size = 5000
    reverse = score(np.arange(size), -np.arange(size))
    assert reverse == 0.0
    assert reverse.inversions == size * (size - 1) // 2


def test_score_is_a_float_that_keeps_its_counts() -> None:
    result = score([1, 2, 3, 4], [1, 2, 4, 3])
    for twin in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(twin) is Score
        assert repr(twin) == repr(result) == "Score(0.8333333333333334, pairs=6, inversions=1, ties=0)"
    assert f"{result} {result:.2f} {result!s}" == "0.8333333333333334 0.83 0.8333333333333334"
    assert json.dumps(result) == "0.8333333333333334"
    assert np.mean([result, result]) == result
    with pytest.raises(AttributeError):
        result.pairs = 7  # type: ignore[misc]


def test_regret_by_hand() -> None:
    true, estimated = [3.0, 1.0, 7.0, 5.0], [0.9, 0.7, 0.1, 0.5]
    assert [regret(true, estimated, k) for k in (1, 2, 3, 4)] == [4.0, 4.0, 2.0, 0.0]
    assert regret(true, estimated, normalized=True) == pytest.approx(4 / 6)
    # As costs: best is 1, the lowest estimate is chosen first (7), then 5, then 1.
    assert [regret(true, estimated, k, lower_is_better=True) for k in (1, 2, 3, 4)] == [6.0, 4.0, 0.0, 0.0]


def test_regret_of_ties_is_the_mean_over_draws() -> None:
    # Top 2 by estimate: 2.0 for certain, and one of the three that tie: 1, 4, 6.
    true, estimated = [2.0, 1.0, 4.0, 6.0, 9.0], [5, 3, 3, 3, 1]
    assert regret(true, estimated, k=2) == pytest.approx(9 - (2 + 4 + 6) / 3)
    # A blind choice of two from four: the best is 4 in 3, 3 in 2 and 2 in 1 of 6 draws.
    assert regret([1, 2, 3, 4], [0, 0, 0, 0], k=2) == pytest.approx(4 - (4 * 3 + 3 * 2 + 2) / 6)


def test_regret_of_equal_policies_is_zero() -> None:
    assert regret([2, 2, 2], [1, 2, 3]) == regret([2, 2, 2], [1, 2, 3], normalized=True) == 0.0


@given(st.lists(st.tuples(whole, st.integers(0, 2)), min_size=2, max_size=5), st.data())
def test_regret_is_the_mean_over_tie_breaks(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(pairs)))
    true, estimated = zip(*pairs, strict=True)
    losses = []
    for order in permutations(range(len(pairs))):
        chosen = sorted(order, key=lambda i: -estimated[i])[:k]
        losses.append(max(true) - max(true[i] for i in chosen))
    assert regret(true, estimated, k) == pytest.approx(np.mean(losses), abs=1e-9)


@given(two_lists, st.data())
def test_regret_falls_with_k_and_ignores_order(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    true, estimated = map(np.array, zip(*pairs, strict=True))
    losses = [regret(true, estimated, k, normalized=True) for k in range(1, true.size + 1)]
    assert losses[-1] == 0.0
    assert all(0.0 <= loss <= 1.0 + 1e-12 for loss in losses)
    assert all(late <= early + 1e-12 for early, late in pairwise(losses))
    order = data.draw(st.permutations(range(true.size)))
    assert regret(true[order], estimated[order], 1) == pytest.approx(regret(true, estimated, 1), abs=1e-9)
    mirrored = regret(-true, -estimated, 1, lower_is_better=True)
    assert mirrored == pytest.approx(regret(true, estimated, 1), abs=1e-9)


HINT = "\n\nHint: give a list or an array with one finite number for each policy."

TWO = "\n\nHint: a ranking measure compares pairs of policies."


@pytest.mark.parametrize("measure", [score, kendall, spearman, regret])
@pytest.mark.parametrize(
    ("true", "estimated", "message"),
    [
        ([1], [1], "at least two policies are needed; there is 1" + TWO),
        ([], [], "at least two policies are needed; there is none" + TWO),
        (
            [1, 2],
            [1, 2, 3],
            "true_values and estimated_values must have the same length; they have 2 and 3\n\n"
            "Hint: give one true and one estimated value for each policy, in the same order.",
        ),
        ([1, 2], [1, np.nan], "estimated_values must be finite; row 2 holds nan (1 row)" + HINT),
        ([np.inf, 2], [1, 2], "true_values must be finite; row 1 holds inf (1 row)" + HINT),
        ([1, None], [1, 2], "true_values must be finite; row 2 holds nan (1 row)" + HINT),
        (["1", "2"], [1, 2], "true_values must be numbers" + HINT),
        ({"a": 1, "b": 2}, [1, 2], "true_values must be numbers" + HINT),
        ([[1, 2]], [1, 2], "true_values must be one row of numbers; its shape is (1, 2)" + HINT),
    ],
)
def test_bad_values_are_refused(measure: Any, true: Any, estimated: Any, message: str) -> None:
    with pytest.raises(PodiumError) as error:
        measure(true, estimated)
    assert str(error.value) == message


def test_bad_options_are_refused() -> None:
    with pytest.raises(PodiumError) as error:
        score([1, 2], [1, 2], ties="random")  # type: ignore[arg-type]
    assert str(error.value) == (
        "ties must be 'correct' or 'half'; it is 'random'\n\n"
        "Hint: 'correct' is the paper's rule, 'half' gives a constant estimate the score 0.5."
    )
    for k in (0, 3, 1.0, True):
        with pytest.raises(PodiumError) as error:
            regret([1, 2], [1, 2], k=k)  # type: ignore[arg-type]
        assert str(error.value) == (
            f"k must be a whole number from 1 to 2; it is {k!r}\n\nHint: k is the number of policies on the shortlist."
        )
