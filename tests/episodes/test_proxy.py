"""The probability proxy against a direct product in high precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

import podium
from podium.data.errors import PodiumError
from podium.episodes.proxy import log_proxy

LOW, HIGH = -1.0, 1.0


def direct(ours: NDArray[np.float64], theirs: NDArray[np.float64], low: float, high: float, coordinates: str) -> float:
    """The log of eq. ex3_prob_proxy for one episode (T, d), multiplied out factor by factor with 60 digits."""
    with mpmath.workdps(60):

        def exponent(t: int, j: int) -> mpmath.mpf:
            x = (mpmath.mpf(float(ours[t, j])) - mpmath.mpf(float(theirs[t, j]))) / (mpmath.mpf(high) - mpmath.mpf(low))
            return -mpmath.inf if abs(x) >= 1 else 1 - 1 / (1 - x * x)

        steps, d = ours.shape
        if coordinates == "mean":
            value = sum(mpmath.fprod(mpmath.exp(exponent(t, j)) for t in range(steps)) for j in range(d)) / d
        elif coordinates == "step":
            value = mpmath.fprod(sum(mpmath.exp(exponent(t, j)) for j in range(d)) / d for t in range(steps))
        else:
            value = mpmath.fprod(mpmath.exp(sum(exponent(t, j) for j in range(d)) / d) for t in range(steps))
        return float(mpmath.log(value)) if value > 0 else -np.inf


@st.composite
def episodes(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Actions of a policy and of the log, (n, T, d), saturated ones among them, and lengths that end early."""
    n, steps, d = draw(st.integers(1, 3)), draw(st.integers(1, 12)), draw(st.integers(1, 3))
    action = st.one_of(st.floats(LOW, HIGH), st.sampled_from([LOW, HIGH, 0.0, 1 - 2**-24, 1 - 2**-53]))
    ours, theirs = (draw(npst.arrays(np.float64, (n, steps, d), elements=action)) for _ in range(2))
    return ours, theirs, np.array(draw(st.lists(st.integers(1, steps), min_size=n, max_size=n)))


@given(case=episodes(), coordinates=st.sampled_from(["mean", "step", "exponent"]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_proxy_is_the_product_worked_out_in_high_precision(case, coordinates) -> None:
    ours, theirs, lengths = case
    result = log_proxy(ours, theirs, LOW, HIGH, lengths, coordinates)
    for n, length in enumerate(lengths):
        expected = direct(ours[n, :length], theirs[n, :length], LOW, HIGH, coordinates)
        assert result[n] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@given(case=episodes(), coordinates=st.sampled_from(["mean", "step", "exponent"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_lists_of_early_ended_episodes_are_padded_arrays(case, coordinates) -> None:
    ours, theirs, lengths = case
    padded = log_proxy(ours, theirs, LOW, HIGH, lengths, coordinates)
    cut = [[x[:length] for x, length in zip(a, lengths, strict=True)] for a in (ours, theirs)]
    found = log_proxy(cut[0], cut[1], LOW, HIGH, coordinates=coordinates)
    np.testing.assert_allclose(found, padded, rtol=1e-12, atol=1e-15)  # other lengths add up in another order


@given(case=episodes())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_averaging_inside_the_exponent_is_never_larger(case) -> None:
    ours, theirs, lengths = case
    inside = log_proxy(ours, theirs, LOW, HIGH, lengths, "exponent")
    for reading in ("mean", "step"):
        larger = log_proxy(ours, theirs, LOW, HIGH, lengths, reading)
        assert all(a <= b or a == pytest.approx(b, rel=1e-12, abs=1e-12) for a, b in zip(inside, larger, strict=True))


def test_the_padding_may_hold_anything() -> None:
    ours, theirs = np.zeros((1, 4, 2)), np.ones((1, 4, 2))
    expected = log_proxy(ours[:, :2], theirs[:, :2], -2.0, 2.0)
    for filler in (np.nan, np.inf, 1e308):
        ours[:, 2:], theirs[:, 2:] = filler, filler
        np.testing.assert_array_equal(log_proxy(ours, theirs, -2.0, 2.0, lengths=[2]), expected)


def test_probabilities_far_below_the_smallest_float_keep_their_digits() -> None:
    ours, theirs = np.full((1, 100, 1), 0.95), np.full((1, 100, 1), -0.95)
    result = log_proxy(ours, theirs, LOW, HIGH)
    assert result[0] == pytest.approx(100 * (1 - 1 / (1 - 0.95**2)), rel=1e-12)
    assert np.exp(result[0]) == 0, "the case would not show underflow"


def test_opposite_saturated_actions_are_an_exact_zero() -> None:
    ours, theirs = np.array([[[1.0, 0.0]]]), np.array([[[-1.0, 0.0]]])
    assert log_proxy(ours, theirs, LOW, HIGH, coordinates="exponent") == -np.inf
    assert log_proxy(ours, theirs, LOW, HIGH, coordinates="mean") == pytest.approx(np.log(0.5))
    assert log_proxy(ours[..., :1], theirs[..., :1], LOW, HIGH) == -np.inf


def test_several_policies_at_once() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.uniform(-1, 1, (5, 3, 10, 2)), rng.uniform(-1, 1, (3, 10, 2))
    together = log_proxy(ours, theirs, LOW, HIGH, lengths=[10, 4, 1])
    assert together.shape == (5, 3)
    for k in range(5):
        np.testing.assert_array_equal(log_proxy(ours[k], theirs, LOW, HIGH, lengths=[10, 4, 1]), together[k])


def test_bounds_of_each_coordinate() -> None:
    ours, theirs = np.array([[[0.5, 5.0]]]), np.array([[[0.0, 0.0]]])
    result = log_proxy(ours, theirs, low=[0.0, 0.0], high=[1.0, 10.0])
    assert result == pytest.approx(1 - 1 / (1 - 0.25))


def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(PodiumError) as caught:
        log_proxy(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), LOW, HIGH, coordinates="median")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "coordinates must be 'mean', 'step' or 'exponent'; it is 'median'\n\n"
        "Hint: 'mean' is the paper's text, 'exponent' its authors' program."
    )


@pytest.mark.parametrize("estimator", ["LDE", "IPS", "SNIPS"])
def test_proxies_claim_nothing_whatever_the_procedure(estimator: str) -> None:
    rng = np.random.default_rng(0)
    actions, near = rng.integers(2, size=400), rng.random((2, 400))
    log = podium.Log(np.arange(400) % 7, actions, actions + near[0], propensities=np.full(400, 0.5))
    policies = {name: podium.Policy(x, "probabilities", proxy=True) for name, x in zip("ab", near, strict=True)}
    pair = podium.compare(log, policies, estimator, verdicts="paired t").pairs[0]
    assert pair.verdict == "cannot tell"
    assert "cannot be told from them" in pair.reasons[0]
