"""The compiled kernel: its random numbers, and its estimates against the library's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import podium
from podium.experiments.runner import Cell
from podium.experiments.synthetic import kernel
from podium.experiments.synthetic.cells import Grid, get_generator, replay_cell, run_cell, set_generator
from podium.experiments.synthetic.verdicts import draws, invert
from podium.worlds.bandits import Bandit
from podium.worlds.sampling import softmax

NAMES = ("1.1", "1.2")
METHODS = ("LDE", "DRE", "IPS", "DiM")


def arguments(alpha: float, m: int, tests: int = 2, **more: Any) -> dict[str, Any]:
    return {"alpha": alpha, "m": m, "tests": tests, "rewards": NAMES, "detail": False, "place": 3} | more


def by_the_library(bandit: Bandit, alpha: float, behavior: Any, first: Any, second: Any, drawn: Any) -> list[float]:
    """V(pi), V(mu) and the four estimates of each, by `podium.evaluate`."""
    pi, mu = bandit.prescribe(alpha, first, second)
    log = bandit.log_of(drawn, behavior)
    policies = {name: podium.Policy(bandit.on_rows(p, log), proxy=True) for name, p in (("pi", pi), ("mu", mu))}
    baseline = float(log.rewards[log.latest].mean())
    estimates = podium.evaluate(log, policies, baseline=baseline, normalize="states").values
    return [bandit.value(pi), bandit.value(mu), *(estimates[p][m] for m in METHODS for p in ("pi", "mu"))]


@pytest.mark.parametrize(("alpha", "m"), [(0.05, 1), (0.01, 7), (0.2, 47), (0.1, 48), (0.01, 300)])
def test_a_test_gives_what_the_library_gives(alpha: float, m: int) -> None:
    seed = np.random.SeedSequence(11, spawn_key=(3,))
    given = arguments(alpha, m, replay=False)
    values = run_cell(Cell("cell", 3, given), seed, None)["values"]
    for t, drawn in enumerate(draws(given, seed, (100, 100))):
        for e, bandit in enumerate(Grid(NAMES).bandits):
            assert values[t, e] == pytest.approx(by_the_library(bandit, alpha, *drawn), abs=1e-11)


@pytest.mark.parametrize("m", [1, 60])
def test_a_replayed_test_gives_what_the_library_gives(m: int) -> None:
    seed = np.random.SeedSequence(0)
    given = arguments(0.05, m, replay=True)
    values = replay_cell(Cell("cell", 3, given), seed, None)["values"]
    for t, drawn in enumerate(draws(given, seed, (100, 100))):
        for e, bandit in enumerate(Grid(NAMES).bandits):
            assert values[t, e] == pytest.approx(by_the_library(bandit, 0.05, *drawn), abs=1e-11)


def test_replay_draws_as_the_paper_does() -> None:
    """Behaviour normals, a `choice` of m actions per state, normals of pi, normals of mu, from RandomState(2021)."""
    rng = np.random.RandomState(2021)
    for behavior, first, second, drawn in draws(arguments(0.05, 3, replay=True), np.random.SeedSequence(0), (100, 100)):
        nu = softmax(rng.randn(100, 100))
        assert behavior == pytest.approx(nu, abs=0)
        assert [list(row) for row in drawn] == [list(rng.choice(100, 3, p=nu[s])) for s in range(100)]
        assert first == pytest.approx(softmax(rng.randn(100, 100)), abs=0)
        assert second == pytest.approx(softmax(rng.randn(100, 100)), abs=0)


def test_the_paper_generator_is_put_back_where_a_cell_left_it() -> None:
    one, other = np.random.RandomState(2021), np.random.RandomState(1)
    one.standard_normal(7)  # an odd number leaves a second normal waiting
    set_generator(other, get_generator(one))
    assert other.standard_normal(9).tolist() == one.standard_normal(9).tolist()


def test_per_state_detail_and_counts() -> None:
    seed = np.random.SeedSequence(1, spawn_key=(3,))
    given = arguments(0.05, 4, tests=3, replay=False)
    grid = Grid(NAMES)
    values, right, detail = grid.room(3, detail=True)
    key = np.uint64(seed.generate_state(1, np.uint64)[0])
    kernel.run_tests(key, 0.05, 4, grid.rewards, grid.best, grid.worst, values, right, detail)
    for t, (behavior, first, second, drawn) in enumerate(draws(given, seed, (100, 100))):
        for e, bandit in enumerate(grid.bandits):
            pi, mu = bandit.prescribe(0.05, first, second)
            log = bandit.log_of(drawn, behavior)
            policies = {"pi": bandit.on_rows(pi, log), "mu": bandit.on_rows(mu, log)}
            truth = bandit.state_values(pi) - bandit.state_values(mu)
            baseline = float(log.rewards[log.latest].mean())
            for k, method in enumerate(METHODS):
                by_state = podium.compare_states(log, policies, method, baseline, normalize="states").values
                gaps = by_state[:, 0] - by_state[:, 1]
                assert detail[t, e, :, k] == pytest.approx(gaps, abs=1e-11)
                assert right[t, e, k] == np.sum(gaps * truth >= 0)
            assert detail[t, e, :, 4] == pytest.approx(truth, abs=1e-12)
            assert detail[t, e, :, 5].tolist() == [len(set(row)) for row in drawn.tolist()]


def test_at_one_action_per_state_two_pairs_of_methods_agree_in_every_state() -> None:
    right = run_cell(Cell("cell", 0, arguments(0.01, 1, tests=50)), np.random.SeedSequence(2), None)["right"]
    assert (right[..., 0] == right[..., 1]).all()
    assert (right[..., 2] == right[..., 3]).all()
    assert (right[..., 0] != right[..., 2]).any()


def test_weights_are_lognormal_and_independent() -> None:
    weights, uniforms = np.empty((3, 400, 400)), np.empty((400, 500))
    kernel.draw_test(np.uint64(99), 0, weights, uniforms)
    from scipy.stats import kstest

    normals = np.log(weights).ravel()
    assert kstest(normals[:200_000], "norm").pvalue > 1e-4
    assert kstest(uniforms.ravel(), "uniform").pvalue > 1e-4
    moments = [np.mean(normals**k) for k in (1, 2, 3, 4)]
    assert moments == pytest.approx([0, 1, 0, 3], abs=6 * np.sqrt(96 / len(normals)))
    assert np.abs(normals).max() > 4.5, "the tails are there"
    rows = normals.reshape(-1, 400)
    lag = [np.mean(rows[:, :-1] * rows[:, 1:]), np.mean(rows[:-1] * rows[1:]), np.mean(rows[:600] * rows[600:])]
    assert lag == pytest.approx([0, 0, 0], abs=6 / np.sqrt(len(normals) / 2))


def test_tests_and_keys_have_numbers_of_their_own() -> None:
    drawn = []
    for key, test in ((1, 0), (1, 1), (2, 0)):
        weights, uniforms = np.empty((3, 4, 100)), np.empty((4, 5))
        kernel.draw_test(np.uint64(key), test, weights, uniforms)
        drawn.append(np.concatenate([weights.ravel(), uniforms.ravel()]))
    assert all(not np.isin(a, b).any() for a, b in ((drawn[0], drawn[1]), (drawn[0], drawn[2]), (drawn[1], drawn[2])))


@pytest.mark.parametrize("m", [5, 48, 2000])
@pytest.mark.parametrize("actions", [1, 2, 3, 7, 100])
def test_draws_are_counted_as_a_search_in_the_cdf_counts_them(m: int, actions: int) -> None:
    rng = np.random.default_rng(m + actions)
    w = rng.lognormal(size=actions)
    u = rng.random(m)
    u[:2] = 0.0, np.nextafter(1.0, 0.0)
    cdf = np.empty(actions)
    kernel.fill_cdf(w, cdf)
    assert cdf == pytest.approx(w.cumsum())
    counts, seen = np.empty(actions, np.int64), np.empty(actions + 1, np.int64)
    found = kernel.count_draws(cdf, u, np.empty(kernel.GUIDE + 2, np.uint64), counts, seen)
    expected = np.minimum(np.searchsorted(cdf, u * cdf[-1], side="right"), actions - 1)
    assert counts.tolist() == np.bincount(expected, minlength=actions).tolist()
    assert sorted(seen[:found].tolist()) == sorted(set(expected.tolist()))


def test_inversion_follows_the_policy() -> None:
    policy = np.array([[0.25, 0.5, 0.25]])
    assert invert(policy, np.array([[0.0, 0.24, 0.25, 0.74, 0.75, 0.99]])).tolist() == [[0, 0, 1, 1, 2, 2]]
