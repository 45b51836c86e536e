"""Features and known costs of actions in logs whose eligible actions change from row to row."""

from __future__ import annotations

import numpy as np
import pytest
from eligible_logs import simulated

import podium
from podium.policies import resolve_policies
from podium.verdicts.evidence import gather
from podium.verdicts.prior import build_kernels

FEATURES = {a: {"size": float(a), "kind": "low" if a < 3 else "high"} for a in range(5)}
COSTS = {a: 0.5 * a for a in range(5)}


def test_known_costs_count_by_the_mean_number_of_eligible_actions() -> None:
    log, policies = simulated()
    plain = podium.evaluate(log, policies, ["DRE", "LDE"])
    known = podium.evaluate(log, policies, ["DRE", "LDE"], cost=COSTS)
    usual = sum(int(row.sum()) for row in log.eligible) / len(log)
    for name, pi in policies.items():
        cost = sum(pi[n, a] * COSTS[a] for n in range(len(log)) for a in range(5)) / len(log)
        for method, factor in (("DRE", 1.0), ("LDE", usual)):
            lost = plain.values[name][method] - known.values[name][method]  # type: ignore[operator]
            assert lost == pytest.approx(cost / factor, abs=1e-12)


def test_features_say_nothing_of_actions_that_were_not_eligible() -> None:
    log, policies = simulated()
    compared = podium.compare(log, policies, action_features=FEATURES)
    assert compared.settings.action_features == ("size", "kind")
    log, found = resolve_policies(compared.basis.sample, policies)
    kernels = build_kernels(gather(log, found), 1.0)
    assert [name for name, _ in kernels.action] == ["same", "linear", "smooth", "rough"]
    tied = kernels.tied(dict.fromkeys(kernels.names, 1.0))
    assert not np.allclose(tied.features, kernels.features)
    for features in (kernels.features, tied.features):
        assert not features[:, ~log.eligible].any()
        np.testing.assert_allclose(features[:2].sum(axis=2), 0.0, atol=1e-12)


def test_sums_of_the_prior_are_those_of_its_parts() -> None:
    log, policies = simulated(distinct=40)
    sample = podium.compare(log, policies, action_features=FEATURES).basis.sample
    kernels = build_kernels(gather(*resolve_policies(sample, policies)), 1.0)
    rng = np.random.default_rng(0)
    theta = {name: float(v) for name, v in zip(kernels.names, rng.random(len(kernels.names)), strict=True)}
    rest, acting = kernels.sums(theta)
    total = sum(theta[name] * part for name, part in kernels.rows(np.arange(len(log))))
    np.testing.assert_allclose(rest + acting, total, atol=1e-12)


def test_every_action_eligible_is_the_same_as_no_list() -> None:
    log, policies = simulated()
    every = podium.Log(
        log.state_columns["state"], log.actions, log.rewards, propensities=np.full(len(log), 0.2), action_space=range(5)
    )
    lists = podium.Log(
        log.state_columns["state"], log.actions, log.rewards, propensities=np.full(len(log), 0.2),
        action_space=range(5), eligible=np.ones((len(log), 5), dtype=bool),
    )  # fmt: skip
    one, other = (podium.compare(x, policies, action_features=FEATURES, cost=COSTS) for x in (every, lists))
    assert one.pairs[0].difference == pytest.approx(other.pairs[0].difference, abs=1e-9)
    assert one.pairs[0].std_error == pytest.approx(other.pairs[0].std_error, abs=1e-9)
