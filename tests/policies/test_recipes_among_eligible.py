"""Recipes in logs whose eligible actions change from row to row: they learn to choose among what was possible."""

from __future__ import annotations

import numpy as np
import pytest
from eligible_logs import simulated

import podium
from podium.policies.cross_fitted import teach


class Mean:
    """Predicts the mean reward."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> Mean:
        self.mean = float(y.mean())
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.mean)

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {}


@pytest.mark.parametrize("explore", [0.0, 0.3])
def test_a_recipe_plays_eligible_actions_alone(explore: float) -> None:
    log, policies = simulated()
    learned = teach(log, {"new": podium.Learned(Mean(), explore=explore)}, 0)["new"].source
    played = learned.matrix if learned.matrix is not None else np.eye(5)[learned.chosen]
    assert not played[~log.eligible].any()
    np.testing.assert_allclose(played.sum(axis=1), 1.0)
    np.testing.assert_allclose(played[log.eligible].min(), explore / log.choices.max() if explore else 0.0)
    result = podium.compare(log, {**policies, "new": podium.Learned(Mean(), explore=explore)})
    assert result.settings.recipes == ("new",)


def test_pairs_without_a_recipe_are_judged_as_if_there_were_none() -> None:
    log, policies = simulated()
    alone = podium.compare(log, policies).pairs[0]
    beside = podium.compare(log, {**policies, "new": podium.Learned(Mean())})
    (same,) = [p for p in beside.pairs if "new" not in (p.a, p.b)]
    sign = 1.0 if (same.a, same.b) == (alone.a, alone.b) else -1.0
    assert sign * same.difference == pytest.approx(alone.difference, rel=1e-12)
    assert same.std_error == pytest.approx(alone.std_error, rel=1e-12)
