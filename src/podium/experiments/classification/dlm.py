"""Direct Loss Minimization (McAllester, Hazan and Keshet, 2010) as a scikit-learn classifier."""

from __future__ import annotations

import random
from functools import cache
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from podium.data.columns import Codes, Floats
from podium.experiments.compiled import load_compiled


@cache
def load_kernel() -> ModuleType:
    """The compiled kernel, loaded where it is used."""
    package = "podium.experiments.classification"
    return load_compiled(f"{package}.kernel", "train", f"{package}.dlm:compile_kernel", "Direct Loss Minimization")


def compile_kernel() -> None:
    """Call every entry once with the types in use."""
    state = generator_state(random.Random(0))
    train_linear(np.zeros((2, 1)), np.zeros(2, np.int64), np.zeros((1, 2)), 0.1, 4, state)
    load_kernel().shuffle(state, np.arange(2))


def generator_state(generator: random.Random) -> NDArray[np.uint32]:
    """(625,) the state of Python's generator, as the kernel moves it."""
    return np.array(generator.getstate()[1], dtype=np.uint32)


def train_linear(
    features: Floats,
    codes: Codes,
    theta: Floats,
    eps: float,
    steps: int,
    state: NDArray[np.uint32],
    in_step: bool = False,
) -> tuple[int, int]:
    """Train theta (F, L) in place; how many updates were made, and after how many passes it was at rest."""
    updates, passes = load_kernel().train(features, codes, theta, float(eps), int(steps), state, in_step)
    return int(updates), int(passes)


class DirectLossClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier, argmax over labels of theta_label . x, trained by direct loss minimization.

    At step t, with a2 the label that is predicted for an example (x, y) and a1 = argmax (theta_l . x - eps [l != y]),

        theta_a1 += eta x,   theta_a2 -= eta x,   eta = (t + 1)^-0.3 / 2

    ("toward better"). Nothing happens unless y is within eps of the highest score: with raw features and the paper's
    eps = .1 that is so rare that training hardly changes anything. `standardize=True, eps=10` does train.

    Parameters
    ----------
    eps : how much worse than the top label the true one may score and still be moved
    epochs : passes over the examples, shuffled after each; training stops at a fixed point
    standardize : scale every feature to mean 0 and standard deviation 1, and add a constant one
    random_state : of the initial theta, standard normal, and of the shuffles

    Attributes
    ----------
    classes_ : (L,) labels
    theta_ : (F, L) weights (of the standardised features and a constant, if standardised)
    n_updates_ : steps that changed theta
    n_iter_ : passes until the fixed point, or all of them

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DirectLossClassifier(standardize=True, eps=10, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self, eps: float = 0.1, epochs: int = 1000, standardize: bool = False, random_state: Any = None
    ) -> None:
        self.eps = eps
        self.epochs = epochs
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        rng = check_random_state(self.random_state)
        if self.standardize:
            self.mean_, spread = X.mean(axis=0), X.std(axis=0)
            self.scale_ = np.where(spread > 0, spread, 1.0)
        features = self._prepare(X)
        self.theta_ = rng.standard_normal((len(self.classes_), features.shape[1])).T.copy()
        state = generator_state(random.Random(int(rng.randint(2**31 - 1))))
        steps = self.epochs * len(features)
        self.n_updates_, self.n_iter_ = train_linear(
            features, codes.astype(np.int64), self.theta_, self.eps, steps, state
        )
        return self

    def decision_scores(self, X: Any) -> Floats:
        """(N, L) theta_label . x."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores: Floats = self._prepare(X) @ self.theta_
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        chosen: NDArray[Any] = self.decision_scores(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def _prepare(self, X: Floats) -> Floats:
        if not self.standardize:
            return np.ascontiguousarray(X)
        scaled = (X - self.mean_) / self.scale_
        return np.ascontiguousarray(np.hstack([scaled, np.ones((len(X), 1))]))
