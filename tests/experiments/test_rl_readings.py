"""What a reading makes of logged episodes: against the library's own estimators, against plain arithmetic, by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import podium
from podium.experiments.printed import printed_table
from podium.experiments.rl.measures import Scores, find_truth, measure, twin_pairs, unclear_pairs
from podium.experiments.rl.plan import ENVIRONMENTS
from podium.experiments.rl.readings import (
    METHODS,
    Reading,
    all_readings,
    comparison_scores,
    log_probabilities,
    log_weights,
    pair_signs,
)
from podium.experiments.runner import Arrays

K, T, D = 5, 12, 3


def random_cell(seed: int, logs: int = 6, spread: float = 0.3) -> Arrays:
    """A cell as deploying policies gives it, from random numbers: policy k acts around a constant of its own."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-0.8, 0.8, size=(K, D))
    lengths = rng.integers(3, T + 1, size=(logs, K))
    inside = np.arange(T) < lengths[..., None]

    def around(shape: tuple[int, ...], mean: np.ndarray) -> np.ndarray:
        return np.clip(mean + spread * rng.normal(size=shape), -1, 1).astype(np.float32)

    return {
        "observations": rng.normal(size=(logs, K, T, 2)).astype(np.float32),
        "actions": around((logs, K, T, D), centre[None, :, None]) * inside[..., None],
        "rewards": rng.normal(size=(logs, K, T)) * inside,
        "lengths": lengths,
        "at_logged": around((logs, K, K, T, D), centre[None, None, :, None]),
        "own": around((logs, K, K, T, D), centre[None, None, :, None]),
        "own_lengths": np.minimum(rng.integers(1, T + 1, size=(logs, K, K)), lengths[:, :, None]),
        "returns": rng.normal(size=(K, 40)) + np.arange(K)[:, None],
        "return_lengths": np.full((K, 40), T),
        "low": np.full(D, -1, np.float32),
        "high": np.full(D, 1, np.float32),
    }


@pytest.mark.parametrize(("label", "rows"), [("ex3", 4), ("ex3_appendix", 8)])
def test_the_printed_tables_are_whole(label: str, rows: int) -> None:
    table = printed_table(label)
    assert len(table) == 8 * rows
    assert {row.removesuffix("-v0") for row, _ in table} <= set(ENVIRONMENTS)
    assert {c for _, c in table} == {f"{m} {what}" for m in METHODS for what in ("avg", "std")}


def test_entries_as_the_paper_prints_them() -> None:
    assert printed_table("ex3")["Ant-v0", "LDE avg"] == "0.8760"
    assert printed_table("ex3_appendix")["Humanoid-v0", "DRE std"] == "0.067"
    small, large = printed_table("ex3"), printed_table("ex3_appendix")
    assert all(large[key] == text for key, text in small.items())


@pytest.mark.parametrize("name", all_readings())
def test_scores_are_those_of_the_library(name: str) -> None:
    """LDE, DRE, IPS and DiM by `podium.evaluate` on the same proxies order the same pairs rightly."""
    reading = all_readings()[name]
    cell = random_cell(1)
    scores = comparison_scores(cell, reading)
    truth = cell["returns"].mean(axis=1)
    rewards = cell["rewards"].sum(axis=2)
    for i, proxies in enumerate(np.exp(log_probabilities(cell, reading))):
        propensities = np.minimum(np.diag(proxies) + reading.constant, 1.0)
        log = podium.Log(np.arange(K), np.arange(K), rewards[i], propensities=propensities)
        policies = {str(j): podium.Policy(proxies[:, j], kind="probabilities", proxy=True) for j in range(K)}
        values = podium.evaluate(log, policies).values
        for m, method in enumerate(METHODS):
            expected = podium.score(truth, [values[str(j)][method] for j in range(K)])
            assert scores[i, m] == pytest.approx(float(expected)), (method, i)


def test_the_proxy_of_one_coordinate_by_hand() -> None:
    cell = random_cell(2, logs=1)
    cell["lengths"][:] = 2
    cell["actions"][...] = 0
    cell["at_logged"][...] = 0
    cell["at_logged"][0, 0, 1, :, :] = 1  # policy 1 is half the range away at both steps of episode 0
    proxies = log_probabilities(cell, Reading())
    assert proxies[0, 0, 1] == pytest.approx(-2 / 3)
    assert proxies[0, 0, 2] == 0


def test_own_episodes_may_stop_where_they_end() -> None:
    cell = random_cell(3)
    past = log_probabilities(cell, Reading(actions="own"))
    stop = log_probabilities(cell, Reading(actions="own", past_end=False))
    assert (stop >= past).all(), "fewer factors, each at most 1"
    whole = cell["own_lengths"] == cell["lengths"][:, :, None]
    assert np.array_equal(stop[whole], past[whole])
    assert (stop[~whole] > past[~whole]).any()


def test_the_constant_is_added_to_the_propensity() -> None:
    cell = random_cell(4)
    proxy = log_probabilities(cell, Reading())
    own = np.exp(np.einsum("lnn->ln", proxy))[:, :, None]
    for constant in (0.0, 1e-6, 0.1):
        ratio = np.exp(log_weights(cell, Reading(constant=constant))["IPS"])
        assert ratio == pytest.approx(np.exp(proxy) / (own + constant))


def test_an_episode_without_propensity_is_left_out() -> None:
    cell = random_cell(5)
    cell["actions"][0, 2, 0], cell["at_logged"][0, 2, 2, 0] = 1, -1  # the opposite end of the range: proxy 0
    weights = log_weights(cell, Reading())
    assert np.isneginf(weights["LDE"][0, 2, 2])
    assert np.isneginf(weights["DRE"][0, 2]).all()
    assert np.isfinite(comparison_scores(cell, Reading())).all()


def test_signs_survive_numbers_that_no_float_can_hold() -> None:
    rewards = np.array([[1.0, -2.0]])
    weights = np.array([[[-2000.0, -2001.0], [-3000.0, -3000.0]]])
    assert pair_signs(rewards, weights, [(0, 1), (1, 0)]).tolist() == [[1.0, -1.0]]
    assert pair_signs(rewards, -weights, [(0, 1)]).tolist() == [[0.0]], "the larger weights are equal here"
    assert pair_signs(rewards, np.full((1, 2, 2), -np.inf), [(0, 1)]).tolist() == [[0.0]]


def test_standard_errors_are_clustered_by_training() -> None:
    """Fifteen copies of one log say nothing that one does not say."""
    rng = np.random.default_rng(0)
    once = rng.uniform(size=(15, 1, 4))
    copied = Scores(np.repeat(once, 15, axis=1), np.ones(4))
    alone = Scores(once, np.ones(4))
    assert copied.average_error == pytest.approx(alone.average_error)
    assert copied.average_error == pytest.approx(once[:, 0].std(axis=0, ddof=1) / np.sqrt(15))
    assert copied.std_error == pytest.approx(alone.std_error)
    assert copied.std == pytest.approx(once.std(axis=(0, 1)))


def test_the_standard_error_of_a_standard_deviation_is_about_right() -> None:
    rng = np.random.default_rng(1)
    drawn = [Scores(rng.normal(size=(15, 4, 4)), np.ones(4)) for _ in range(60)]
    spread = np.std([s.std for s in drawn])
    assert np.mean([s.std_error for s in drawn]) == pytest.approx(spread, rel=0.2)


def test_pairs_without_a_clear_order() -> None:
    cell = random_cell(6)
    cell["returns"] = np.tile(np.array([-1.0, 1.0]), (K, 20)) + np.array([0, 0.1, 5, 9, 9])[:, None]
    unclear = {pair for pair, x in zip(combinations(range(K), 2), unclear_pairs(cell), strict=True) if x}
    assert unclear == {(0, 1), (3, 4)}
    truth = find_truth([cell, cell])
    assert truth.unclear.mean() == 0.2
    assert truth.values[0] == pytest.approx([0, 0.1, 5, 9, 9])


def test_policies_that_act_alike_are_found() -> None:
    cell = random_cell(7)
    cell["at_logged"][:, :, 4] = cell["at_logged"][:, :, 1]
    twins = [pair for pair, x in zip(combinations(range(K), 2), twin_pairs(cell), strict=True) if x]
    assert twins == [(1, 4)]


def test_clear_pairs_leave_the_others_out() -> None:
    cells = [random_cell(8), random_cell(9)]
    for cell in cells:
        cell["returns"] = np.tile(np.array([-1.0, 1.0]), (K, 20)) + 10.0 * np.arange(K)[:, None]
    scores = measure(cells, Reading())
    assert scores.clear == pytest.approx(scores.average), "every order is clear"
    cells[0]["returns"][:] = cells[0]["returns"][0]  # no order is
    scores = measure(cells, Reading())
    assert scores.clear == pytest.approx(comparison_scores(cells[1], Reading()).mean(axis=0))
