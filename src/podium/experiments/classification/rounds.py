"""One round of Example 2: a split, ten distinct policies trained on it, and the logs that they are compared on.

There are two readings. The program's draws everything from two generators that run through all rounds (the replay);
the text's gives every round a split, every policy a random 80% of the training examples, and every log a behaviour
policy of its own.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError
from podium.experiments.classification.datasets import Dataset
from podium.experiments.classification.dlm import DirectLossClassifier, generator_state, load_kernel, train_linear
from podium.experiments.classification.plan import EPS, POLICIES, SHARE
from podium.experiments.classification.zoo import load_zoo
from podium.worlds.labelled import LabelledBandit, split_rows
from podium.worlds.sampling import random_policy

MOST_TRAININGS = 20_000  # per round, in search of ten distinct policies


@dataclass(frozen=True, eq=False)
class Trained:
    """One policy: what it predicts for the test examples, and what training did to it.

    `before` is its accuracy on the test examples before any training (NaN where that is not known), `updates` the
    steps that changed it (-1 where there are no such steps).
    """

    predictions: Codes
    before: float = float("nan")
    updates: int = -1


@dataclass(frozen=True, eq=False)
class Round:
    """Ten policies on one set of test examples."""

    bandit: LabelledBandit
    policies: list[Trained]
    trainings: int

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent test label."""
        return float(np.bincount(self.bandit.truth).max() / len(self.bandit.truth))


def make_round(dataset: Dataset, test: Codes, policies: list[Trained], trainings: int, names: Iterable[str]) -> Round:
    predictions = np.array([p.predictions for p in policies])
    bandit = LabelledBandit(dataset.features[test], dataset.codes[test], dataset.classes, tuple(names), predictions)
    return Round(bandit, policies, trainings)


# --- the program's reading ---------------------------------------------------------------------------------------


class Streams:
    """The two generators of the paper's program: NumPy's legacy one, and Python's own for every shuffle."""

    def __init__(self, numpy_seed: Any, python_seed: int) -> None:
        self.rng = np.random.RandomState(numpy_seed)  # the paper's own generator
        self.state = generator_state(random.Random(python_seed))

    def shuffle(self, rows: Codes) -> None:
        load_kernel().shuffle(self.state, rows)


class Program:
    """The program's protocol on one dataset: one split, one behaviour policy, then round after round.

    `next_round` trains, `draw` then makes a log; both move the same generators, so the order of calls matters.
    """

    def __init__(self, dataset: Dataset, streams: Streams, epochs: int, in_step: bool) -> None:
        self.dataset, self.streams, self.epochs, self.in_step = dataset, streams, epochs, in_step
        self.train, self.test = split_by_class(dataset.codes, streams.rng)
        self.behavior = random_policy((len(self.test), len(dataset.classes)), streams.rng)
        # Scores are kept in the order in which the labels first occur, which also breaks their ties.
        self.code_of = np.argsort(dataset.appearance)

    def next_round(self) -> Round:
        """Train until ten policies have distinct accuracies; the list is reshuffled whenever one repeats another."""
        found: dict[float, Trained] = {}
        trainings = 0
        truth = self.dataset.codes[self.test]
        while len(found) < POLICIES:
            policy = self.train_policy()
            trainings += 1
            accuracy = float(np.mean(policy.predictions == truth))
            if accuracy in found:
                self.streams.shuffle(self.train)
            else:
                found[accuracy] = policy
            refuse_endless(trainings, len(found), self.dataset)
        names = [f"policy {k + 1}" for k in range(POLICIES)]
        return make_round(self.dataset, self.test, list(found.values()), trainings, names)

    def train_policy(self) -> Trained:
        data = self.dataset
        shape = len(data.classes), data.features.shape[1]
        theta = np.ascontiguousarray(self.streams.rng.standard_normal(shape).T)
        first = self.predict(theta)
        rows = self.train[: int(SHARE * len(self.train))]
        steps = len(self.train) * self.epochs
        codes = self.code_of[data.codes[rows]]
        state = self.streams.state
        updates, _ = train_linear(data.features[rows], codes, theta, EPS, steps, state, self.in_step)
        before = float(np.mean(first == data.codes[self.test]))
        return Trained(self.predict(theta) if updates else first, before, updates)

    def predict(self, theta: Floats) -> Codes:
        chosen: Codes = self.dataset.appearance[(self.dataset.features[self.test] @ theta).argmax(axis=1)]
        return chosen

    def draw(self, bandit: LabelledBandit, logs: int) -> Iterator[tuple[Floats, Codes]]:
        """(behaviour, drawn labels) of each log; the behaviour policy is always the same."""
        for _ in range(logs):
            yield self.behavior, bandit.draw_actions(self.behavior, self.streams.rng)


def split_by_class(codes: Codes, rng: np.random.RandomState) -> tuple[Codes, Codes]:
    """Half of each class, rounded down, to train with and the rest to test, classes one after the other."""
    train, test = [], []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        chosen = rng.choice(len(rows), size=len(rows) // 2, replace=False)
        train.append(rows[chosen])
        test.append(np.delete(rows, chosen))
    return np.concatenate(train), np.concatenate(test)


# --- the text's reading ------------------------------------------------------------------------------------------


def text_round(dataset: Dataset, kind: str, epochs: int, rng: np.random.Generator) -> Round:
    """A new split; each policy is trained on its own random 80% of the training examples."""
    train, test = split_rows(dataset.codes, 0.5, rng)

    def own_share() -> Codes:
        rows: Codes = rng.permutation(train)[: int(SHARE * len(train))]
        return rows

    if kind in ("dlm", "dlm-trained"):
        policies: list[Trained] = []
        trainings = 0
        while len(policies) < POLICIES:
            classifier = direct_loss(kind, epochs, int(rng.integers(2**31 - 1)))
            policy = fit_direct_loss(classifier, dataset, own_share(), test)
            trainings += 1
            if not any(np.array_equal(policy.predictions, other.predictions) for other in policies):
                policies.append(policy)
            refuse_endless(trainings, len(policies), dataset)
        return make_round(dataset, test, policies, trainings, [f"policy {k + 1}" for k in range(POLICIES)])
    zoo = load_zoo(kind, int(rng.integers(2**31 - 1)))
    policies = [Trained(fit_predict(classifier, dataset, own_share(), test)) for classifier in zoo.values()]
    return make_round(dataset, test, policies, len(policies), zoo)


def direct_loss(kind: str, epochs: int, seed: int) -> DirectLossClassifier:
    if kind == "dlm":
        return DirectLossClassifier(eps=EPS, epochs=epochs, random_state=seed)
    return DirectLossClassifier(eps=10.0, epochs=epochs, standardize=True, random_state=seed)


def fit_direct_loss(classifier: DirectLossClassifier, dataset: Dataset, rows: Codes, test: Codes) -> Trained:
    """A trained policy, with its accuracy before training: the same one after no epoch at all."""
    predictions = fit_predict(classifier, dataset, rows, test)
    first = predictions
    if classifier.n_updates_:
        first = fit_predict(type(classifier)(**classifier.get_params() | {"epochs": 0}), dataset, rows, test)
    before = float(np.mean(first == dataset.codes[test]))
    return Trained(predictions, before, classifier.n_updates_)


def fit_predict(classifier: Any, dataset: Dataset, rows: Codes, test: Codes) -> Codes:
    """(N,) predictions for the test rows. Classes too small for a classifier's taste are no reason to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = classifier.fit(dataset.features[rows], dataset.codes[rows])
        answer: NDArray[Any] = np.asarray(fitted.predict(dataset.features[test]))
    codes: Codes = answer.astype(np.int64)
    return codes


def text_logs(bandit: LabelledBandit, logs: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Codes]]:
    """(behaviour, drawn labels) of each log, each from a behaviour policy of its own."""
    for _ in range(logs):
        behavior = bandit.random_behavior(rng)
        yield behavior, bandit.draw_actions(behavior, rng)


def refuse_endless(trainings: int, found: int, dataset: Dataset) -> None:
    if trainings >= MOST_TRAININGS and found < POLICIES:
        raise PodiumError(
            f"{dataset.name}: {trainings:,} trainings gave only {found} distinct policies",
            hint="the dataset has too few test examples for ten different policies; leave it out.",
        )
