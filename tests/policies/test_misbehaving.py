"""Models and answers that misbehave: each refusal names the policy and what the model said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import podium
from podium import Log, PodiumError, episodes
from podium.continuous import ContinuousLog

N = 6
LOG = Log(np.arange(N) % 3, ["a", "b"] * 3, [1.0, 0.0, 0.5, 1.0, 0.0, 1.0])
SMOOTH = ContinuousLog(np.arange(N), np.linspace(0, 1, N), np.linspace(0, 1, N), densities=np.ones(N))


class Tensor:
    """What a torch tensor with a graph does: it is an array only after detach."""

    def __init__(self, values: Any, attached: bool = True) -> None:
        self.values, self.requires_grad = np.asarray(values), attached
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def detach(self) -> Tensor:
        return Tensor(self.values, False)

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()


class Stubborn:
    """An answer that cannot be read."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array today")


class Model:
    classes_: Any = ("a", "b")

    def fit(self, states: Any, actions: Any) -> None:
        pass

    def predict_proba(self, states: Any) -> Any:
        return np.full((len(states), 2), 0.5)


def broken(name: str) -> Any:
    """A model one of whose attributes raises."""

    def fails(self: Any) -> Any:
        raise ZeroDivisionError("mine")

    return type("Odd", (Model,), {name: fails if name == "__sklearn_tags__" else property(fails)})()


def with_classes(classes: Any) -> Any:
    return type("Odd", (Model,), {"classes_": classes})()


def agent(**changes: Any) -> Any:
    """What podium asks of a Stable-Baselines3 model."""

    def predict(observations: Any, deterministic: bool = False) -> Any:
        return np.zeros(len(observations), dtype=np.int64), None

    box = SimpleNamespace(shape=(1,), dtype=np.float32)
    given = {"action_space": SimpleNamespace(n=2), "observation_space": box, "predict": predict}
    return SimpleNamespace(**{**given, **changes})


def fails(*arguments: Any, **options: Any) -> Any:
    raise ZeroDivisionError("mine")


def test_a_tensor_leaves_its_graph() -> None:
    half = np.full((N, 2), 0.5)
    policies = {"net": lambda states: Tensor(half), "model": Model(), "u": "uniform"}
    found = podium.evaluate(LOG, policies).values
    assert found["net"] == found["u"]
    assert podium.evaluate(LOG, {"net": podium.Policy(Tensor(half), kind="distribution")}).values["net"] == found["u"]
    smooth = SMOOTH.evaluate({"net": lambda states: Tensor(np.full(N, 0.5)), "plain": 0.5}, bandwidth=0.5).values
    assert smooth["net"] == smooth["plain"]
    np.testing.assert_array_equal(Log(LOG.states, LOG.actions, Tensor(LOG.rewards)).rewards, LOG.rewards)
    steps = [episodes.Episode(np.ones((3, 1)), np.zeros((3, 1)), np.ones(3)) for _ in range(3)]
    acts = {"net": lambda s: Tensor(0.1 * s), "plain": lambda s: 0.1 * s}
    same = episodes.compare(steps, acts, bounds=(-1, 1)).pairs[0]
    assert same.difference == 0.0

    class Net(Model):
        def predict_proba(self, states: Any) -> Any:
            return Tensor(np.full((len(states), 2), 0.5))

        def predict(self, features: Any) -> Any:
            return Tensor(np.zeros(len(features)))

    learned = podium.evaluate(LOG, {"u": "uniform"}, ["LDE", "DiM"], baseline=Net()).values["u"]
    assert learned["LDE"] == learned["DiM"]
    net = Net()
    net.classes_ = [0, 1]
    podium.estimate_propensities(LOG, net)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda s: Stubborn(), "policy 'x' gave an answer that cannot be read: .*RuntimeError: no array today"),
        (lambda s: [Stubborn()] * N, "policy 'x' gave an answer that cannot be read: RuntimeError: no array today"),
        (broken("__sklearn_tags__"), "policy 'x': its __sklearn_tags__ failed: ZeroDivisionError: mine"),
        (broken("classes_"), "policy 'x': its attribute 'classes_' cannot be read: ZeroDivisionError: mine"),
        (broken("predict_proba"), "policy 'x': its attribute 'predict_proba' cannot be read: ZeroDivisionError: mine"),
        (broken("predict"), "policy 'x': its attribute 'predict' cannot be read: ZeroDivisionError: mine"),
        (broken("n_features_in_"), "policy 'x': its attribute 'n_features_in_' cannot be read"),
        (broken("to_numpy"), "policy 'x': its attribute 'to_numpy' cannot be read"),
        (with_classes(None), "policy 'x': its classes_ must name an action per column; it is None"),
        (with_classes([np.array([0, 1])] * 2), "policy 'x': its classes_ must name an action per column; it is .array"),
        (agent(predict=fails), "policy 'x' failed on the log's states: ZeroDivisionError: mine"),
        (agent(predict=lambda s, deterministic: None), "policy 'x' gives object of shape .1,. for 6 states"),
        (agent(observation_space=None), "policy 'x' has the observation space None, which has no shape"),
        (agent(action_space=None), "policy 'x' has the action space None"),
        (Mock(), "policy 'x'"),
    ],
)
def test_what_a_model_said_is_told(policy: Any, message: str) -> None:
    with pytest.raises(PodiumError, match=message) as error:
        podium.compare(LOG, {"x": policy, "u": "uniform"})
    if "mine" in message or "today" in message:
        assert error.value.__cause__ is not None


def test_of_continuous_actions_episodes_and_propensities_too() -> None:
    for policy in (broken("predict"), Mock(), lambda s: Stubborn()):
        with pytest.raises(PodiumError, match="policy 'x'"):
            SMOOTH.evaluate({"x": policy})
    steps = [episodes.Episode(np.ones((3, 1)), np.zeros((3, 1)), np.ones(3))] * 3
    for name in ("predict", "log_prob", "action_space"):
        with pytest.raises(PodiumError, match=f"policy 'x': its attribute '{name}' cannot be read"):
            episodes.compare(steps, {"x": broken(name), "y": np.zeros_like}, bounds=(-1, 1))
    with pytest.raises(PodiumError):
        episodes.compare(steps, {"x": Mock(), "y": np.zeros_like}, bounds=(-1, 1))
    for model in (broken("classes_"), broken("predict_proba"), with_classes([np.zeros(2), np.zeros(3)])):
        with pytest.raises(PodiumError):
            podium.estimate_propensities(LOG, model)
