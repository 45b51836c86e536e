"""The variances of the prior: fitted to convergence on all rows, whatever their order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from podium.data.columns import Floats
from podium.data.scales import standard_columns
from podium.estimates.evaluate import rows_of
from podium.estimates.options import Options
from podium.experiments.calibration.families import FAMILIES
from podium.verdicts import fitting
from podium.verdicts.dealing import deal, scramble
from podium.verdicts.evidence import Evidence, gather
from podium.verdicts.fitting import Block, Terms, fit_variances, minimise
from podium.verdicts.posterior import posterior
from podium.verdicts.prior import build_kernels, prior_scales


def evidence(family: str, rows: int, seed: int = 0) -> Evidence:
    draw = FAMILIES[family].draw(np.random.default_rng(seed), rows, 4)
    rows = rows_of(draw.log, draw.policies, Options())
    return gather(rows.sample, rows.policies)


# --- dealing -------------------------------------------------------------------------------------------------


def sparse(rows: int, successes: int, units: int = 0) -> Evidence:
    rng = np.random.default_rng(1)
    rewards = np.zeros(rows)
    rewards[rng.choice(rows, successes, replace=False)] = 1.0
    states = np.sort(rng.integers(7, size=rows))
    return Evidence(
        numeric=np.zeros((rows, 0)),
        texts=states[:, None],
        states=states,
        actions=rng.integers(3, size=rows),
        rewards=rewards,
        policies=rng.dirichlet(np.ones(3), size=(2, rows)),
        units=rng.integers(units, size=rows) if units else None,
    )


def test_every_block_has_its_share_of_rare_rewards() -> None:
    e = sparse(1000, 40)
    dealt = deal(e, 10, 100)
    assert [len(rows) for rows in dealt] == [100] * 10
    assert [e.rewards[rows].sum() for rows in dealt] == [4] * 10
    assert np.array_equal(np.sort(np.concatenate(dealt)), np.arange(1000))


def test_blocks_hold_the_same_rows_in_any_order() -> None:
    e = sparse(997, 40)
    order = np.random.default_rng(2).permutation(e.rows)
    turned = Evidence(
        e.numeric[order], e.texts[order], e.states[order], e.actions[order], e.rewards[order], e.policies[:, order]
    )
    for rows, others in zip(deal(e, 4, 250), deal(turned, 4, 250), strict=True):
        assert np.array_equal(rows, np.sort(order[others]))


def test_rounding_noise_moves_no_row() -> None:
    e = evidence("20 features", 700)
    rewards = e.rewards * (1 + 1e-15 * np.random.default_rng(3).standard_normal(e.rows))
    noisy = Evidence(e.numeric, e.texts, e.states, e.actions, rewards, e.policies, e.propensities, e.behavior)
    for rows, others in zip(deal(e, 2, 500), deal(noisy, 2, 500), strict=True):
        assert np.array_equal(rows, others)


def test_repeated_rows_meet_in_a_block_as_often_as_by_chance() -> None:
    """Dealt strictly by reward, state and action, the two rows of a pair would never meet."""
    pairs = 600
    states = np.repeat(np.arange(pairs), 2)
    e = Evidence(
        np.zeros((2 * pairs, 0)), states[:, None], states, np.zeros(2 * pairs, dtype=np.int64),
        np.repeat(np.arange(pairs) % 2, 2).astype(float), np.full((2, 2 * pairs, 2), 0.5),
    )  # fmt: skip
    together = sum(len(rows) - len(np.unique(states[rows])) for rows in deal(e, 4, 300))
    assert 110 < together < 190  # a quarter of 600


def test_units_stay_whole_and_blocks_even() -> None:
    e = sparse(1000, 40, units=90)
    assert e.units is not None
    dealt = deal(e, 4, 250)
    for u in range(90):
        assert sum(u in e.units[rows] for rows in dealt) == 1
    sizes = [len(rows) for rows in dealt]
    assert sum(sizes) == 1000
    assert max(sizes) - min(sizes) <= 25


def test_a_unit_larger_than_a_block_is_cut_into_equal_pieces() -> None:
    e = sparse(1000, 40, units=1)
    assert [len(rows) for rows in deal(e, 4, 250)] == [250] * 4


def test_scramble_gives_the_same_numbers_everywhere() -> None:
    """SplitMix64 seeded with 0 begins with this number."""
    assert scramble(np.array([0, 1]), np.array([0, 0])).tolist() == [0, 0xE220A8397B1DCDAF]


# --- fitting -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["example 1.1", "classification: iris", "units", "heavy-tailed logger"])
def test_a_fit_is_the_maximum(family: str) -> None:
    """Against SciPy's own optimiser, run to its end on the same blocks, and with a gradient of zero."""
    e = evidence(family, 90)
    kernels = build_kernels(e, float(e.rewards.std()))
    dealt = deal(e, 2, 45)
    theta = fit_variances([(kernels, rows) for rows in dealt])
    assert theta is not None
    pieces = [Block.of(kernels, rows) for rows in dealt]
    names = pieces[0].names
    centre, width = prior_scales(kernels)
    start = np.log([centre[n] for n in names])
    sd = np.array([width[n] for n in names])

    def objective(x: Floats) -> tuple[float, Floats]:
        terms = [piece.likelihood(np.exp(x)) for piece in pieces]
        known = [t for t in terms if t is not None]
        value = sum(t.value for t in known) + 0.5 * float((((x - start) / sd) ** 2).sum())
        return value, sum((t.slope for t in known), (x - start) / sd**2)

    here = np.log([theta[n] for n in names])
    assert np.abs(objective(here)[1]).max() < 1e-8
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 0, "gtol": 1e-7})
    assert objective(here)[0] == pytest.approx(best.fun, abs=1e-8)


def test_the_gradient_is_that_of_the_likelihood() -> None:
    e = evidence("units", 60)
    kernels = build_kernels(e, float(e.rewards.std()))
    piece = Block.of(kernels, np.arange(60))
    x = np.log(np.linspace(0.1, 0.5, len(piece.names)))
    terms = piece.likelihood(np.exp(x))
    assert terms is not None
    for k in range(len(x)):
        step = 1e-5 * (np.arange(len(x)) == k)
        up, down = piece.likelihood(np.exp(x + step)), piece.likelihood(np.exp(x - step))
        assert up is not None
        assert down is not None
        assert terms.slope[k] == pytest.approx((up.value - down.value) / 2e-5, rel=1e-5, abs=1e-7)


def test_all_families_converge_within_the_steps_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_STEPS", 80)
    for name in FAMILIES:
        e = evidence(name, 60, seed=4)
        kernels = build_kernels(e, float(e.rewards.std()) or 1.0)
        assert fit_variances([(kernels, np.arange(e.rows))]) is not None, name


def test_a_fit_that_does_not_converge_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_STEPS", 3)
    for rows in (100, 2100):
        found = posterior(evidence("health programme", rows))
        assert {reason.code for reason in found.reasons} == {"variances not fitted"}


def test_a_search_without_an_end_finds_nothing() -> None:
    def downhill(x: Floats) -> Terms:
        return Terms(-float(x.sum()), -np.ones(len(x)), np.eye(len(x)))

    assert minimise(downhill, np.zeros(2)) is None


def test_a_column_of_rounding_noise_is_constant() -> None:
    x = np.array([[0.1, 1e9], [np.nextafter(0.1, 1), 1e9 + 1], [0.1, 1e9 + 2]])
    assert standard_columns(x)[:, 0].tolist() == [0, 0, 0]
    assert standard_columns(x)[:, 1] == pytest.approx([-1.2247, 0, 1.2247], abs=1e-4)
