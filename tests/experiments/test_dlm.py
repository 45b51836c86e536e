"""Direct Loss Minimization: the compiled loop against plain Python, Python's own shuffle, and scikit-learn's checks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from podium.experiments.classification.dlm import DirectLossClassifier, generator_state, load_kernel, train_linear


def plain_training(
    x: np.ndarray, y: np.ndarray, theta: np.ndarray, eps: float, steps: int, generator: random.Random
) -> int:
    """The algorithm as the paper's text has it, in plain loops: no early exit, both labels by argmax."""
    order, updates, t = list(range(len(x))), 0, 0
    while t < steps:
        for i in order[: steps - t]:
            scores = [sum(x[i, f] * theta[f, a] for f in range(x.shape[1])) for a in range(theta.shape[1])]
            lowered = [score - eps * (a != y[i]) for a, score in enumerate(scores)]
            a1, a2 = lowered.index(max(lowered)), scores.index(max(scores))
            if a1 != a2:
                eta = (t + 1) ** -0.3 / 2
                theta[:, a1] += eta * x[i]
                theta[:, a2] -= eta * x[i]
                updates += 1
            t += 1
        if len(order) <= steps - t or t % len(order) == 0:
            generator.shuffle(order)
    return updates


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 12), features=st.integers(1, 4), labels=st.integers(2, 5),
    passes=st.integers(0, 6), rest=st.integers(0, 11), eps=st.sampled_from([0.1, 1.0, 10.0]),
)  # fmt: skip
def test_the_kernel_is_the_plain_algorithm(
    seed: int, n: int, features: int, labels: int, passes: int, rest: int, eps: float
) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, features)), rng.integers(labels, size=n)
    theta = rng.standard_normal((features, labels))
    steps = passes * n + rest % n
    ours, plain = theta.copy(), theta.copy()
    state = generator_state(random.Random(seed))
    updates, _ = train_linear(x, y, ours, eps, steps, state, in_step=True)
    generator = random.Random(seed)
    assert updates == plain_training(x, y, plain, eps, steps, generator)
    assert ours == pytest.approx(plain)
    assert state.tolist() == list(generator.getstate()[1]), "the generator is where Python's own would be"


@pytest.mark.parametrize("n", [1, 2, 3, 64, 97, 1000, 1670])
def test_the_shuffle_is_pythons(n: int) -> None:
    generator = random.Random(n)
    state = generator_state(generator)
    ours, theirs = np.arange(n), list(range(n))
    for _ in range(3):
        load_kernel().shuffle(state, ours)
        generator.shuffle(theirs)
        assert ours.tolist() == theirs
    assert state.tolist() == list(generator.getstate()[1])


def test_training_stops_at_a_fixed_point() -> None:
    x, y = np.array([[1.0], [2.0]]), np.array([0, 0])
    theta = np.array([[5.0, -5.0]])
    assert train_linear(x, y, theta, 0.1, 2000, generator_state(random.Random(0))) == (0, 1)
    assert theta.tolist() == [[5.0, -5.0]]


def test_the_papers_settings_hardly_train_and_others_do() -> None:
    X, y = load_iris(return_X_y=True)
    papers = [DirectLossClassifier(random_state=seed).fit(X, y) for seed in range(10)]
    others = [DirectLossClassifier(standardize=True, eps=10, random_state=seed).fit(X, y) for seed in range(10)]
    assert np.mean([c.n_updates_ == 0 for c in papers]) >= 0.5
    assert np.mean([c.score(X, y) for c in papers]) < 0.7
    assert min(c.score(X, y) for c in others) > 0.9


def test_the_seed_decides_everything() -> None:
    X, y = load_iris(return_X_y=True)
    first, again, other = (
        DirectLossClassifier(eps=10, standardize=True, epochs=20, random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    assert (first.theta_ == again.theta_).all()
    assert not (first.theta_ == other.theta_).all()


def failing(estimator: BaseEstimator) -> dict[str, str]:
    """The checks that cannot pass, with the reason."""
    if estimator.standardize:
        return {}
    return {"check_classifiers_train": "wants an accuracy of .83 on blobs; with the paper's eps it hardly trains"}


def needs_other_packages(check: Any) -> bool:
    return getattr(check, "func", check).__name__ == "check_array_api_input"  # SciPy has to be told at its start


@parametrize_with_checks(
    [DirectLossClassifier(epochs=100), DirectLossClassifier(standardize=True, eps=10.0, epochs=100)],
    expected_failed_checks=failing,
)
def test_it_is_a_scikit_learn_classifier(estimator: BaseEstimator, check: Any) -> None:
    if not needs_other_packages(check):
        check(estimator)
