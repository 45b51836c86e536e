"""Continuous actions: kernels, their limits, baselines that depend on the action, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import podium
from podium.continuous import KERNELS, ContinuousLog
from podium.continuous.kernels import rule_of_thumb
from podium.data.errors import PodiumError
from podium.data.facts import Fact

approx = pytest.approx


def reward_at(states: Any, actions: Any) -> Any:
    return 1 - (np.asarray(actions) - 0.3 * np.asarray(states)) ** 2


def uniform_log(rows: int = 500, seed: int = 0, noise: float = 0.1) -> ContinuousLog:
    rng = np.random.default_rng(seed)
    states, actions = rng.normal(size=rows), rng.uniform(-2, 2, rows)
    return ContinuousLog(
        states, actions, reward_at(states, actions) + noise * rng.normal(size=rows), densities=np.full(rows, 0.25)
    )


POLICIES = {"good": lambda s: 0.3 * np.asarray(s), "late": lambda s: 0.3 * np.asarray(s) + 0.8, "zero": 0.0}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_densities(kernel: str) -> None:
    u = np.linspace(-8, 8, 160_001)
    k = KERNELS[kernel](u)
    assert np.trapezoid(k, u) == approx(1, abs=1e-6)
    assert np.trapezoid(k * u, u) == approx(0, abs=1e-9)
    assert k.min() >= 0


@pytest.mark.parametrize("method", ["IPS", "SNIPS", "DRE", "SNDR", "cIPS:2", "SwitchDR:2"])
def test_actions_on_a_grid_are_ordinary_actions(method: str) -> None:
    """Epanechnikov's kernel is .75 at 0: with h = .75 whole numbers have weight 1/p at a match, and 0 elsewhere."""
    rng = np.random.default_rng(1)
    states, actions = rng.integers(0, 4, 80), rng.integers(0, 3, 80)
    p, rewards = rng.uniform(0.2, 0.9, 80), rng.normal(size=80)
    wanted = {"a": rng.integers(0, 3, 80), "b": rng.integers(0, 3, 80)}
    plain = podium.Log(states, actions, rewards, propensities=p, action_space=(0, 1, 2))
    smooth = ContinuousLog(states, actions, rewards, densities=p)
    q = lambda s, a: np.asarray(s) * 0.1 + np.asarray(a, dtype=float) ** 2  # noqa: E731
    expected = podium.evaluate(plain, wanted, method, q)
    found = smooth.evaluate(wanted, method, q, bandwidth=0.75)
    for name in wanted:
        assert found.values[name][method] == approx(expected.values[name][method])
        assert found.std_errors[name][method] == approx(expected.std_errors[name][method])
    pair = smooth.compare(wanted, method, q, bandwidth=0.75, verdicts="paired t").pairs[0]
    other = podium.compare(plain, wanted, method, q, verdicts="paired t").pair(pair.a, pair.b)
    assert (pair.difference, pair.std_error) == approx((other.difference, other.std_error))


def test_estimates_approach_the_truth() -> None:
    log = uniform_log(20_000)
    truth = {"good": 1.0, "late": 1 - 0.64, "zero": 1 - 0.09}
    for kernel in KERNELS:
        found = log.evaluate(POLICIES, "all", "linear", kernel=kernel, bandwidth=0.1)
        for name, value in truth.items():
            for method in ("IPS", "SNIPS", "DRE", "SNDR"):
                assert found.values[name][method] == approx(value, abs=0.05), (kernel, method)
                low, high = found.interval(name, method, 0.9999)
                assert low - 0.02 <= value <= high + 0.02
    result = log.compare(POLICIES, bandwidth=0.1)
    assert result.settings["estimator"] == "DRE"
    assert result.ranking == ["good", "zero", "late"]


def test_bandwidth_by_default() -> None:
    log = uniform_log()
    result = log.compare(POLICIES)
    h = rule_of_thumb("epanechnikov", 500) * log.actions.std()
    assert f"epanechnikov kernel with bandwidth {h:.4g}" in result.settings["notes"][0]
    assert all(pair.verdict == "cannot tell" for pair in result.pairs)  # smoothed policies are scores by default
    assert log.compare(POLICIES, verdicts="paired t").pair("good", "late").verdict == "better"


def test_the_logger_itself_is_the_mean_reward() -> None:
    log = uniform_log()
    found = log.evaluate({"logged": "logged", "good": POLICIES["good"]}, ["IPS", "SNIPS", "DRE"], reward_at)
    assert list(found.values["logged"].values()) == approx([log.rewards.mean()] * 3)


def test_an_exact_model_leaves_no_noise() -> None:
    log = uniform_log(noise=0.0)
    found = log.evaluate(POLICIES, ["DRE", "DirectModel", "SNDR"], reward_at, bandwidth=0.2)
    for name, policy in POLICIES.items():
        chosen = policy(log.states) if callable(policy) else policy
        truth = float(np.mean(reward_at(log.states, chosen)))
        assert list(found.values[name].values()) == approx([truth] * 3)


class Remembers:
    """A model that knows the rewards that it was fitted on, to the digit: cross-fitting must keep it from cheating."""

    def fit(self, x: Any, y: Any) -> Remembers:
        self.known = {tuple(row): r for row, r in zip(x, y, strict=True)}
        return self

    def predict(self, x: Any) -> Any:
        return np.array([self.known.get(tuple(row), 0.0) for row in x])


def test_models_are_cross_fitted() -> None:
    log = uniform_log(200)
    plain, learned = log.evaluate(POLICIES, "IPS"), log.evaluate(POLICIES, "DRE", Remembers())
    for name in POLICIES:
        assert learned.values[name]["DRE"] == approx(plain.values[name]["IPS"])
    linear = log.evaluate(POLICIES, "DirectModel", "linear").values
    assert linear["good"]["DirectModel"] > linear["zero"]["DirectModel"] > linear["late"]["DirectModel"]


def test_several_coordinates() -> None:
    rng = np.random.default_rng(2)
    actions = rng.uniform(-1, 1, (4000, 2))
    log = ContinuousLog(np.zeros(4000), actions, -(actions**2).sum(axis=1), densities=np.full(4000, 0.25))
    policies = {"centre": np.zeros((4000, 2)), "corner": np.full((4000, 2), 0.7)}
    found = log.evaluate(policies, "SNIPS", bandwidth=[0.2, 0.3]).values
    assert found["centre"]["SNIPS"] == approx(-(0.2**2 + 0.3**2) / 5, abs=0.02)
    assert found["corner"]["SNIPS"] == approx(-0.98 - (0.2**2 + 0.3**2) / 5, abs=0.05)
    assert repr(log) == "ContinuousLog: 4,000 rows, 2 coordinates, densities"


def test_without_densities_there_are_scores_alone() -> None:
    log = ContinuousLog([0, 1, 2], [0.1, 0.5, 0.9], [1.0, 0.5, 0.2])
    result = log.compare({"low": 0.1, "high": 0.9}, bandwidth=0.5)
    assert (result.settings["estimator"], result.ranking) == ("LDE", ["low", "high"])
    assert set(result.unavailable) == {"IPS", "DRE", "posterior", "P(best)"}
    with pytest.raises(PodiumError, match="SNIPS needs the density of each logged action"):
        log.compare({"low": 0.1, "high": 0.9}, "SNIPS")
    with pytest.raises(PodiumError, match="DirectModel needs a baseline") as error:
        log.compare({"low": 0.1, "high": 0.9}, "DirectModel")
    assert "fit/predict" in error.value.hint


def test_more_than_20_000_rows() -> None:
    log = uniform_log(20_500)
    found = log.evaluate(POLICIES, ["IPS", "SNIPS", "LDE"])
    assert found.unavailable == {}
    assert log.compare(POLICIES, "SNIPS").ranking == ["good", "zero", "late"]


def test_headers_name_densities_kernel_and_bandwidth() -> None:
    log = uniform_log(100)
    for found in (log.compare(POLICIES, bandwidth=0.5), log.evaluate(POLICIES, bandwidth=0.5)):
        text = " ".join(found.text(200).split())
        assert "epanechnikov kernel with bandwidth 0.5" in text
        assert " densities" in text
        assert "propensities" not in text
        assert (found.settings["kernel"], list(found.settings["bandwidth"])) == ("epanechnikov", [0.5])
    assert "The gated procedure does without the densities" in log.compare(POLICIES).text(200)
    without = ContinuousLog(log.log.states, log.actions, log.rewards)
    text = " ".join(without.compare(POLICIES).text(200).split())
    assert "no densities" in text
    assert "Without densities it is assumed" in text
    assert "propensities" not in text
    assert "needs the density of each logged action" in without.evaluate(POLICIES).unavailable["IPS"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("coordinates", [1, 2])
def test_the_rule_of_thumb_is_the_best_bandwidth_for_normal_data(kernel: str, coordinates: int) -> None:
    u = np.linspace(-8, 8, 160_001)
    step, weight = u[1] - u[0], KERNELS[kernel](u)
    square, spread = (weight**2).sum() * step, (u**2 * weight).sum() * step
    d, rows = coordinates, 1_000
    curvature = d * (d + 2) / (2 ** (d + 2) * np.pi ** (d / 2))  # of the normal density

    def error(h: float) -> float:  # the leading terms of the mean integrated squared error
        return float(square**d / (rows * h**d) + h**4 * spread**2 * curvature / 4)

    best = rule_of_thumb(kernel, rows, d)
    assert error(best) < min(error(0.97 * best), error(1.03 * best))


def test_a_point_is_a_constant_policy() -> None:
    actions = np.random.default_rng(0).uniform(0, 10, (50, 2))
    log = ContinuousLog(np.zeros(50), actions, actions.sum(axis=1), densities=np.full(50, 0.01))
    found = log.evaluate({"point": [5.0, 5.0], "rows": np.full((50, 2), 5.0)}).values
    assert found["point"] == found["rows"]


LOG = ContinuousLog([0, 1], [0.1, 0.5], [1.0, 0.5], densities=[1.0, 2.0])
REFUSED: dict[str, tuple[Any, str]] = {
    "labels": (lambda: ContinuousLog([0, 1], ["a", "b"], [1, 2]), "the actions must be a number; row 1 holds 'a'"),
    "density": (lambda: ContinuousLog([0, 1], [1, 2], [1, 2], densities=[0, 1]), "the densities must be at least"),
    "densities": (lambda: ContinuousLog([0, 1], [1, 2], [1, 2], densities=[1]), "there are 2 rows and 1 densities"),
    "kernel": (lambda: LOG.evaluate({"a": 0.1}, kernel="box"), "unknown kernel 'box'"),
    "behavior": (
        lambda: LOG.compare({"a": 0.1, "b": 0.2}, behavior="estimate"), "behavior= is for actions that can be listed",
    ),
    "actions": (lambda: LOG.compare({"a": 0.1, "b": 0.2}, actions=[1]), "actions= is for actions that can be listed"),
    "no bandwidth": (lambda: LOG.evaluate({"a": 0.1}, bandwidth="x"), "bandwidth must be a number above 0"),
    "bandwidth": (lambda: LOG.evaluate({"a": 0.1}, bandwidth=0), "bandwidth must be a number above 0"),
    "shape": (lambda: LOG.evaluate({"a": [0.1, 0.2, 0.3]}), "policy 'a' gives actions of shape"),
    "text": (lambda: LOG.evaluate({"a": "left"}), "unknown policy 'left'"),
    "nan": (lambda: LOG.evaluate({"a": [0.1, np.nan]}), "policy 'a' must choose finite numbers; row 2"),
    "no policies": (lambda: LOG.evaluate({}), "no policies to compare"),
    "logged": (
        lambda: ContinuousLog([0, 1], [1.0, 2.0], [1, 2]).evaluate({"a": "logged"}),
        "the policy 'logged' is the behaviour policy, and the log has no densities",
    ),
    "baseline": (
        lambda: LOG.evaluate({"a": 0.1}, "DRE", lambda s, a: [1.0]), "the baseline must give 2 finite numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(PodiumError) as error:
        make()
    assert message in error.value.message
    assert error.value.hint


def hill(rows: int, known: bool = True) -> ContinuousLog:
    rng = np.random.default_rng(0)
    actions = rng.uniform(0, 10, rows)
    rewards = -((actions - 5) ** 2) / 10 + 0.3 * rng.normal(size=rows)
    return ContinuousLog(np.zeros(rows), actions, rewards, densities=np.full(rows, 0.1) if known else None)


@pytest.mark.parametrize("procedure", ["paired t", "bootstrap t", "sign flip", "gated"])
@pytest.mark.parametrize("estimator", ["LDE", "DiM"])
def test_scores_are_not_multiplied_by_the_number_of_rows_and_never_claim(estimator: str, procedure: str) -> None:
    sizes = []
    for rows in (200, 800):
        result = hill(rows).compare({"5": 5.0, "7": 7.0}, estimator, bandwidth=1.0, verdicts=procedure)
        pair = result.pair("5", "7")
        assert pair.verdict == "cannot tell"
        assert "cannot be told from them" in pair.reasons[0]
        assert result.unit == "as scores, which have no unit"
        assert "as scores, which have no unit" in str(result)
        sizes.append(pair.difference)
    assert 0.5 < sizes[1] / sizes[0] < 2
    scores = {p.name: p.score for p in result.policies}
    if procedure != "gated":
        assert pair.difference == pytest.approx(scores["5"] - scores["7"])


@pytest.mark.parametrize("estimator", ["IPS", "SNIPS", "DRE"])
def test_weights_by_known_densities_may_claim_when_asked_by_name(estimator: str) -> None:
    result = hill(800).compare({"5": 5.0, "8": 8.0}, estimator, bandwidth=1.0, verdicts="paired t")
    assert result.pair("5", "8").verdict == "better"
    assert result.unit == "in units of reward"


def test_it_is_said_what_a_model_aims_at() -> None:
    """With the exact model DRE is the value at the chosen action, IPS that of the smoothed policy: -h^2/5 apart."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(0, 10, 20_000)
    log = ContinuousLog(np.zeros(20_000), actions, -((actions - 5) ** 2), densities=np.full(20_000, 0.1))
    found = log.evaluate({"5": 5.0}, ["IPS", "DRE"], lambda s, a: -((a - 5) ** 2), bandwidth=3.0)
    assert found.values["5"] == pytest.approx({"IPS": -1.8, "DRE": 0.0}, abs=0.05)
    assert Fact("model at chosen actions, warning") in found.warnings
    result = log.compare({"5": 5.0, "6": 6.0}, baseline=lambda s, a: -((a - 5) ** 2), bandwidth=3.0)
    assert Fact("model at chosen actions") in result.settings["notes"]
    plain = log.evaluate({"5": 5.0}, ["IPS", "DRE"], bandwidth=3.0)
    assert plain.values["5"]["DRE"] == pytest.approx(-1.8, abs=0.3)
    assert Fact("model at chosen actions, warning") not in plain.warnings


def test_equal_actions_have_the_bandwidth_1_whatever_their_mean_rounds_to() -> None:
    for rows in range(2, 40):
        log = ContinuousLog(np.zeros(rows), np.full(rows, 0.1), np.arange(rows))
        assert log.bandwidths(None).tolist() == [1.0]


@pytest.mark.parametrize("estimator", ["IPS", "DRE"])
def test_actions_that_were_never_logged_are_not_claimed(estimator: str) -> None:
    """A policy beyond the range has no weights: its value is a baseline's guess, however small its error."""
    log = uniform_log()
    result = log.compare({"zero": 0.0, "far": 300.0}, estimator, verdicts="paired t")
    pair = result.pair("zero", "far")
    assert pair.verdict == "cannot tell"
    assert pair.reasons == (Fact("unseen densities", policy="far", mean_weight=0.0),)
    warning = Fact("unseen densities, warning", policy="far", mean_weight=0.0)
    assert warning in result.warnings
    assert warning in log.evaluate({"far": 300.0}, "IPS").warnings


def test_a_policy_at_the_edge_is_not_claimed_and_one_inside_is() -> None:
    log = uniform_log(2000)
    result = log.compare({"zero": 0.0, "inside": 1.0, "edge": 2.0}, "DRE", verdicts="paired t", bandwidth=0.4)
    assert result.pair("zero", "inside").verdict == "better"
    assert result.pair("zero", "edge").verdict == "cannot tell"
    assert [w.code for w in result.warnings if isinstance(w, Fact)].count("unseen densities, warning") == 1
