"""Labelled data as a bandit: splits, policies in every form, logs, and the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

import podium
from podium.data.errors import PodiumError
from podium.worlds.bandits import from_classification
from podium.worlds.labelled import split_rows
from podium.worlds.sampling import invert

X, y = load_iris(return_X_y=True)


class Witness(ClassifierMixin, BaseEstimator):
    """A classifier that remembers what it was shown, in a list that all copies share."""

    seen: list[tuple[np.ndarray, np.ndarray]] = []  # noqa: RUF012

    def fit(self, X: np.ndarray, y: np.ndarray) -> Witness:
        Witness.seen.append((X, y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.classes_[0])


def test_values_are_accuracies_on_examples_that_were_not_trained_on() -> None:
    Witness.seen.clear()
    bandit = from_classification(X, y, {"a": Witness(), "b": Witness(), "tree": DecisionTreeClassifier(random_state=0)})
    assert len(bandit.truth) == 75
    assert np.bincount(bandit.truth).tolist() == [25, 25, 25]
    tests = {tuple(row) for row in bandit.states}
    duplicates = {tuple(row) for row in X if (row == X).all(axis=1).sum() > 1}
    for features, labels in Witness.seen:
        assert len(labels) == 60, "80% of 75"
        assert not ({tuple(row) for row in features} & tests) - duplicates
    assert len({features.tobytes() for features, _ in Witness.seen}) == 2, "each policy has a share of its own"
    assert bandit.values["a"] == pytest.approx(1 / 3)
    assert bandit.values["tree"] > 0.85


def test_a_log_shows_each_test_example_once() -> None:
    bandit = from_classification(X, y, {"zero": DummyClassifier(), "tree": DecisionTreeClassifier(random_state=0)})
    log = bandit.draw_log(3)
    assert len(log.rewards) == 75
    assert (np.asarray(log.states) == bandit.states).all()
    assert set(np.unique(log.rewards)) == {0.0, 1.0}
    names = bandit.actions[bandit.truth]
    assert ((np.asarray(log.actions) == names) == (log.rewards == 1)).all()
    result = podium.compare(log, bandit.policies)
    assert result.best == "tree"
    assert (np.asarray(log.rewards) == np.asarray(bandit.draw_log(3).rewards)).all()


def test_ips_is_right_on_average() -> None:
    """Over many logs the mean of IPS is the accuracy: propensities and rewards are what they say."""
    bandit = from_classification(X, y, {"tree": DecisionTreeClassifier(max_depth=1, random_state=0)})
    rng = np.random.default_rng(0)
    estimates = [podium.evaluate(bandit.draw_log(rng), bandit.policies).values["tree"]["IPS"] for _ in range(150)]
    standard_error = np.std(estimates) / np.sqrt(150)
    assert abs(np.mean(estimates) - bandit.values["tree"]) < 4 * standard_error


def test_every_form_of_a_policy_and_of_the_data() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    fitted = DecisionTreeClassifier(random_state=0).fit(X, names)
    forms = {"fitted": fitted, "labels": names, "list": names.tolist(), "rule": lambda X: fitted.predict(X)}
    bandit = from_classification(X, names, forms, train=0)
    assert list(bandit.values.values()) == [1.0] * 4
    assert len(bandit.truth) == 150
    frame = pd.DataFrame(X, columns=list("abcd"))
    framed = from_classification(frame, names, {"tree": DecisionTreeClassifier(random_state=0), "labels": names})
    assert framed.states.shape == (75, 4)
    assert framed.values["labels"] == 1.0
    plain = from_classification(X, names, {"tree": DecisionTreeClassifier(random_state=0), "labels": names})
    assert (framed.predictions == plain.predictions).all()


def test_the_seed_decides_the_split() -> None:
    def policies() -> dict[str, object]:
        return {"tree": DecisionTreeClassifier(max_depth=2, random_state=0)}

    first, second = (from_classification(X, y, policies(), seed=5) for _ in range(2))
    other = from_classification(X, y, policies(), seed=6)
    assert (first.states == second.states).all()
    assert (first.predictions == second.predictions).all()
    assert not (first.states == other.states).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 10))
def test_a_split_is_of_equal_halves_with_every_class(labels: list[int], seed: int) -> None:
    codes = np.array(labels)
    train, test = split_rows(codes, 0.5, np.random.default_rng(seed))
    assert sorted([*train, *test]) == list(range(len(codes)))
    assert abs(len(train) - len(test)) <= 1
    for code in np.unique(codes):
        if (codes == code).sum() > 1:
            assert (codes[train] == code).any()
            assert (codes[test] == code).any()


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(0, 100))
def test_inversion_counts_the_edges_below(states: int, actions: int, draws: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy, uniforms = rng.dirichlet(np.ones(actions), states), rng.random((states, draws))
    edges = policy.cumsum(axis=1)
    edges /= edges[:, -1:]
    expected = [[sum(edge <= u for edge in row) for u in us] for row, us in zip(edges, uniforms, strict=True)]
    assert invert(policy, uniforms).tolist() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"y": y[:10]},
            "y must be one label for each of the 150 rows of X; its shape is (10,)\n\n"
            "Hint: give X as (N, F) and y as (N,).",
        ),
        ({"policies": {}}, 'no policies are given\n\nHint: give them as {"name": classifier}.'),
        (
            {"train": 1.0},
            "train must lie in [0, 1) and share in (0, 1]; they are 1.0 and 0.8\n\n"
            "Hint: train=0.5, share=0.8 is the paper's choice; train=0 takes predictions as they are.",
        ),
        (
            {"policies": {"odd": np.full(150, 7)}, "train": 0},
            "policy 'odd' must predict labels of y; row 1 holds 7 (150 rows)\n\nHint: the labels are 0, 1, 2.",
        ),
        (
            {"policies": {"short": [0, 1]}},
            "policy 'short' gives predictions of shape (2,) for 75 examples\n\n"
            "Hint: a policy is a classifier, a function from features to labels, or one label for each row of X.",
        ),
    ],
)
def test_messages(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"y": y, "policies": {"tree": DecisionTreeClassifier()}} | change
    with pytest.raises(PodiumError) as caught:
        from_classification(X, arguments.pop("y"), arguments.pop("policies"), **arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message
