"""Labelled data and classifiers as a bandit whose truth is known, as in the paper's Example 2.

A classifier is a policy, an example its state, a label its action; the reward is 1 for the right label and 0 for any
other, so the value of a policy is its accuracy on the test examples. A log shows one label per example, tried by a
random behaviour policy, and whether it was right.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arguments import (
    MATRIX,
    SEED,
    checked,
    generator,
    mapping,
    optional,
    real,
    refuse_class,
    texts,
)
from podium.data.columns import Codes, Floats, labels_column, to_array
from podium.data.errors import PodiumError, listed, refuse_rows
from podium.data.frames import take_rows
from podium.data.log import Log
from podium.data.owned import ask, owned
from podium.worlds.sampling import Random, invert, places, random_policy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


SHAPES = "give states (N, F), truth (N,), actions (A,), one name per policy and predictions (K, N)."
POLICIES = "a policy is a classifier, a function from features to labels, or one label for each row of X."


@dataclass(frozen=True, eq=False, repr=False)
class LabelledBandit:
    """Test examples with their labels, and what K classifiers predict for them.

    Parameters
    ----------
    states : (N, F) features of the test examples
    truth : (N,) their labels, as positions in `actions`
    actions : (A,) the labels
    names : (K,) of the policies
    predictions : (K, N) the labels that they predict, as positions in `actions`
    """

    states: NDArray[Any]
    truth: Codes
    actions: NDArray[Any]
    names: tuple[str, ...]
    predictions: Codes

    def __post_init__(self) -> None:
        actions, states = to_array(self.actions), to_array(self.states)
        if actions.ndim != 1 or not actions.size or states.ndim < 1:
            raise PodiumError("actions must be a list of labels, and states one row per example", hint=SHAPES)
        names = tuple(texts("names", self.names))
        truth = places("truth", self.truth, len(actions), (len(states),))
        predictions = places("predictions", self.predictions, len(actions), (len(names), len(states)))
        fields = {"states": states, "truth": truth, "actions": actions, "predictions": predictions}
        for name, value in fields.items():
            object.__setattr__(self, name, owned(value))
        object.__setattr__(self, "names", names)

    @property
    def rewards(self) -> Floats:
        """(N, A) 1 for the right label, 0 for any other."""
        return one_hot(self.truth, len(self.actions))

    @property
    def policies(self) -> dict[str, Floats]:
        """Each policy as (N, A) probabilities on the rows of a log, as `podium.compare` takes it."""
        return {name: one_hot(p, len(self.actions)) for name, p in zip(self.names, self.predictions, strict=True)}

    @cached_property
    def accuracies(self) -> Floats:
        """(K,) true values, in the order of `names`."""
        shares: Floats = np.array([float(np.mean(p == self.truth)) for p in self.predictions])
        return shares

    @property
    def values(self) -> dict[str, float]:
        """Policy -> its true value, the accuracy on the test examples."""
        return dict(zip(self.names, self.accuracies.tolist(), strict=True))

    @checked(rng=generator)
    def random_behavior(self, rng: Random) -> Floats:
        """(N, A) softmax over the labels of independent standard normals."""
        return random_policy((len(self.truth), len(self.actions)), rng)

    @checked(behavior=MATRIX, rng=generator)
    def draw_actions(self, behavior: Floats, rng: Random) -> Codes:
        """(N,) one label for each example, drawn from a behaviour policy (N, A)."""
        self._check(behavior)
        return invert(behavior, rng.random(len(self.truth))[:, None])[:, 0]

    @checked(behavior=optional(MATRIX))
    def log_of(self, drawn: Codes, behavior: Floats | None) -> Log:
        """The log of drawn labels (N,), example by example; with the behaviour policy where it is given."""
        drawn = places("drawn", drawn, len(self.actions), (len(self.truth),))
        if behavior is not None:
            self._check(behavior)
        return Log(
            states=self.states,
            actions=self.actions[drawn],
            rewards=(drawn == self.truth).astype(np.float64),
            behavior=behavior,
            action_space=tuple(self.actions.tolist()),
        )

    def _check(self, behavior: Floats) -> None:
        wanted = (len(self.truth), len(self.actions))
        if behavior.shape != wanted:
            raise PodiumError(f"the behaviour policy must have shape {wanted}; it has {behavior.shape}", hint=SHAPES)

    def draw_log(self, rng: Random | int, behavior: Floats | None = None) -> Log:
        """A log of every test example once, from a behaviour policy (N, A), a random one by default."""
        rng = generator_of("rng", rng)
        behavior = self.random_behavior(rng) if behavior is None else behavior
        return self.log_of(self.draw_actions(behavior, rng), behavior)

    def __repr__(self) -> str:
        low, high = float(self.accuracies.min()), float(self.accuracies.max())
        return (
            f"LabelledBandit: {len(self.truth)} examples, {len(self.actions)} labels, {len(self.names)} policies, "
            f"values from {low:.3f} to {high:.3f}"
        )


def generator_of(name: str, value: Any) -> Random:
    """A source of random numbers, or that of a seed."""
    known = isinstance(value, np.random.Generator | np.random.RandomState)
    return value if known else np.random.default_rng(SEED(name, value))


@checked(policies=mapping, train=real(0, 1), share=real(0, 1))
def from_classification(
    X: Any,
    y: ArrayLike,
    policies: Mapping[str, Any],
    *,
    train: float = 0.5,
    share: float = 0.8,
    seed: int | np.random.Generator = 0,
) -> LabelledBandit:
    """A benchmark for policy comparison from any labelled data and any classifiers.

    Its `draw_log(rng)` gives logs, `policies` what `podium.compare` takes, `values` the truth.

    Parameters
    ----------
    X : (N, F) features, an array or a frame
    y : (N,) labels
    policies : name -> a classifier with `fit` and `predict`, of which a copy is trained; a function from features to
        labels; or the labels (N,) that are predicted for all of X
    train : share of the examples to train with, class by class: both parts have every class of two or more. With 0
        nothing is trained, every example is a test example, and a classifier has to be fitted already.
    share : part of the training examples that each classifier gets to see, at random, so that they differ
    seed : of the split and of the shares; a classifier's own randomness is its own affair

    Examples
    --------
    >>> X, y = np.arange(8.0)[:, None], np.array(list("aabbaabb"))
    >>> rules = {"half": lambda X: np.where(X[:, 0] < 4, "a", "b"), "odd": lambda X: np.where(X[:, 0] % 2, "a", "b")}
    >>> bandit = from_classification(X, y, {**rules, "right": y}, train=0)
    >>> bandit
    LabelledBandit: 8 examples, 2 labels, 3 policies, values from 0.500 to 1.000
    >>> bandit.draw_log(0)
    Log (memory): 8 rows, 8 distinct (state, action), 8 states, 2 actions, the full behaviour policy
    """
    X, labels = X if hasattr(X, "shape") else to_array(X), to_array(y)
    if labels.dtype.kind == "O":
        labels = labels_column(labels, "y") if labels.ndim == 1 else labels
    if X.ndim == 0 or labels.ndim != 1 or not labels.size or size(X) != len(labels):
        raise PodiumError(
            f"y must be one label for each of the {size(X)} rows of X; its shape is {labels.shape}",
            hint="give X as (N, F) and y as (N,).",
        )
    if not policies:
        raise PodiumError("no policies are given", hint='give them as {"name": classifier}.')
    if not 0 <= train < 1 or not 0 < share <= 1:
        raise PodiumError(
            f"train must lie in [0, 1) and share in (0, 1]; they are {train!r} and {share!r}",
            hint="train=0.5, share=0.8 is the paper's choice; train=0 takes predictions as they are.",
        )
    rng = generator_of("seed", seed)
    actions, codes = np.unique(labels, return_inverse=True)
    learn, test = split_rows(codes, train, rng) if train else (np.array([], np.int64), np.arange(len(codes)))
    predictions = []
    for name, policy in policies.items():
        rows = rng.permutation(learn)[: max(1, int(share * len(learn)))] if train else None
        predictions.append(positions(name, predict(name, policy, X, labels, rows, test), actions))
    states = np.asarray(take_rows(X, test))
    return LabelledBandit(states, codes[test].astype(np.int64), actions, tuple(policies), np.array(predictions))


def predict(name: str, policy: Any, X: Any, labels: NDArray[Any], rows: Codes | None, test: Codes) -> NDArray[Any]:
    """(N,) the labels that a policy predicts for the test rows, trained on `rows` if it is a classifier."""
    refuse_class(f"policy {name!r}", policy)
    try:
        if hasattr(policy, "predict"):
            if rows is not None:
                policy = ask(blank(policy).fit, take_rows(X, rows), labels[rows])
            answer = np.asarray(ask(policy.predict, take_rows(X, test)))
        elif callable(policy):
            answer = np.asarray(ask(policy, take_rows(X, test)))
        else:
            answer = to_array(policy)
    except PodiumError:
        raise
    except (Exception, SystemExit) as error:
        raise PodiumError(
            f"policy {name!r} failed on the examples: {type(error).__name__}: {error}", hint=POLICIES
        ) from error
    given = not callable(policy) and not hasattr(policy, "predict")
    if given and answer.shape == labels.shape:
        answer = answer[test]
    if answer.shape != test.shape:
        raise PodiumError(
            f"policy {name!r} gives predictions of shape {answer.shape} for {len(test)} examples",
            hint=POLICIES,
        )
    return answer


def blank(classifier: Any) -> Any:
    """A copy of a classifier that has seen nothing."""
    if not hasattr(classifier, "get_params"):
        return copy.deepcopy(classifier)
    from sklearn.base import clone

    return clone(classifier)


def positions(name: str, answer: NDArray[Any], actions: NDArray[Any]) -> Codes:
    """(N,) predicted labels as positions in `actions`."""
    known = np.isin(answer, actions)
    hint = f"the labels are {listed(actions.tolist())}."
    refuse_rows(f"policy {name!r}", "must predict labels of y", ~known, answer, hint)
    places: Codes = np.searchsorted(actions, answer).astype(np.int64)
    return places


def split_rows(codes: Codes, train: float, rng: Random) -> tuple[Codes, Codes]:
    """Training and test rows at random, class by class, of the sizes that `train` asks for.

    Each class gives the whole part of its share; what is left over, at most one row per class, fills up the training
    rows in random order. So with half of them for training, both parts hold every class of two or more.

    >>> learn, test = split_rows(np.array([0, 0, 0, 1, 1, 2]), 0.5, np.random.default_rng(0))
    >>> len(learn), len(test)
    (3, 3)
    """
    learn, test, spare = [], [], []
    for code in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        whole = int(train * len(rows))
        rest = len(rows) - int(np.ceil(train * len(rows)))
        learn += rows[:whole].tolist()
        test += rows[whole : whole + rest].tolist()
        spare += rows[whole + rest :].tolist()
    wanted = max(0, round(train * len(codes)) - len(learn))
    spare = rng.permutation(np.array(spare, dtype=np.int64)).tolist()
    return np.sort(np.array(learn + spare[:wanted])), np.sort(np.array(test + spare[wanted:]))


def size(X: Any) -> int:
    return int(X.shape[0]) if len(X.shape) else 0


def one_hot(codes: Codes, n: int) -> Floats:
    """(N, n) rows of zeros with a one at each code."""
    rows: Floats = np.eye(n)[codes]
    return rows
