"""Mixtures of t distributions, and the posterior that is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import podium
from podium.data.columns import Floats
from podium.verdicts import fitting
from podium.verdicts.block import RHOS, scale_prior
from podium.verdicts.mixture import Mixture


def mixture(parts: int = 4, pairs: int = 3) -> Mixture:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(parts), size=pairs).T
    return Mixture(
        weights, rng.standard_normal((parts, pairs)), rng.uniform(0.1, 2, (parts, pairs)), np.array([1, 5, 40])
    )


def test_below_and_density_are_those_of_scipy() -> None:
    m, x = mixture(), np.array([-0.3, 0.2, 1.5])
    below: Floats = (m.weights * stats.t.cdf(x, m.freedom, m.means, m.scales)).sum(axis=0)
    density: Floats = (m.weights * stats.t.pdf(x, m.freedom, m.means, m.scales)).sum(axis=0)
    assert m.below(x) == pytest.approx(below, rel=1e-12)
    assert m.density(x) == pytest.approx(density, rel=1e-12)


@pytest.mark.parametrize("q", [0.0005, 0.025, 0.5, 0.975, 0.9995])
def test_quantiles_invert_the_distribution(q: float) -> None:
    m = mixture()
    assert m.below(m.quantile(np.full(3, q))) == pytest.approx(np.full(3, q), abs=1e-12)


def test_a_quantile_of_parts_without_width_is_their_place() -> None:
    point = Mixture(np.ones((1, 2)), np.array([[0.0, 2.0]]), np.zeros((1, 2)), np.array([8.0, 8.0]))
    assert point.quantile(np.array([0.025, 0.975])) == pytest.approx([0.0, 2.0], abs=1e-200)


def test_merging_keeps_mean_and_variance() -> None:
    m = mixture(parts=12)
    merged = m.merged(3)
    assert len(merged.weights) == 4
    assert merged.mean == pytest.approx(m.mean)
    for one in (m, merged):
        spread = (one.weights * (one.scales**2 + (one.means - one.mean) ** 2)).sum(axis=0)
        assert spread == pytest.approx((m.weights * (m.scales**2 + (m.means - m.mean) ** 2)).sum(axis=0))
    assert m.merged(4) is m


def test_widening_adds_variance_to_every_part() -> None:
    m = mixture()
    assert m.widened(np.full(3, 3.0)).scales ** 2 == pytest.approx(m.scales**2 + 3)


def test_effects_that_were_fitted_to_be_small_are_not_shrunk_once_more() -> None:
    usual, small = (np.exp(scale_prior({"action same const": v, "noise": 1.0}, RHOS)) for v in (0.03, 0.001))
    assert usual.sum() == pytest.approx(1)
    assert usual[0] > usual[1] > usual[2]
    assert small[0] > usual[0]


def clicks(rows: int, successes: int, units: int = 0) -> podium.Log:
    rng = np.random.default_rng(3)
    actions = rng.integers(2, size=rows)
    rewards = np.zeros(rows)
    rewards[np.flatnonzero(actions == 1)[:successes]] = 1.0
    columns = {"x": rng.standard_normal(rows), "action": actions, "reward": rewards}
    columns |= {"propensity:0": np.full(rows, 0.5), "propensity:1": np.full(rows, 0.5)}
    return podium.Log.from_columns(columns | ({"person": np.arange(rows) % units} if units else {}))


POLICIES = {"one": "constant:1", "zero": "constant:0"}


@pytest.mark.parametrize(
    ("successes", "verdict"), [(1, "cannot tell"), (2, "cannot tell"), (4, "cannot tell"), (40, "better")]
)
def test_a_handful_of_successes_is_needed_for_a_claim(successes: int, verdict: str) -> None:
    pair = podium.compare(clicks(600, successes), POLICIES).pair("one", "zero")
    assert pair.verdict == verdict
    assert ("Too few rows whose reward" in str(pair.reasons)) == (successes < 5)


def test_too_few_successes_are_the_reason_where_the_fit_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_STEPS", 3)
    reasons = [podium.compare(clicks(600, n), POLICIES).pair("one", "zero").reasons[0] for n in (2, 40)]
    assert [reason.code for reason in reasons] == ["few successes", "variances not fitted"]


@pytest.mark.parametrize(("units", "verdict"), [(1, "cannot tell"), (4, "cannot tell"), (300, "better")])
def test_a_handful_of_units_is_needed_for_a_claim(units: int, verdict: str) -> None:
    pair = podium.compare(clicks(600, 60, units), POLICIES, unit="person").pair("one", "zero")
    assert pair.verdict == verdict
    assert ("too few units" in str(pair.reasons)) == (units < 5)


def test_what_is_said_of_a_pair_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(5)
    rows = 300
    x, actions = rng.standard_normal(rows), rng.integers(4, size=rows)
    log = podium.Log(x, actions, rng.standard_normal(rows) + 0.2 * actions, behavior=np.full((rows, 4), 0.25))
    policies = {f"p{k}": rng.dirichlet(np.ones(4), size=rows) for k in range(6)}
    two = podium.compare(log, {name: policies[name] for name in ("p0", "p1")}).pair("p0", "p1")
    six = podium.compare(log, policies).pair("p0", "p1")
    assert six.p_better == pytest.approx(two.p_better, abs=1e-9)
    assert six.difference == pytest.approx(two.difference, abs=1e-9)
    assert two.interval is not None
    assert six.interval is not None
    assert six.interval.low == pytest.approx(two.interval.low, abs=1e-9)
