"""A recipe as a candidate policy: a way to learn a policy from a log, rather than a policy that is already trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.data.arguments import attribute, flag, real
from podium.data.errors import PodiumError

HINT = "write podium.Learned(RandomForestRegressor()), or a function fit(states, actions, rewards, propensities)."


@dataclass(frozen=True)
class Learned:
    """A policy that is learned from the log it is judged on.

    podium deals the rows into 5 folds, whole units where the log has units. On each fold it judges a policy that
    learned from the other folds only. The answer is about the recipe, not about one fixed model.

    Parameters
    ----------
    estimator : an unfitted estimator of the reward with `fit` and `predict` (scikit-learn's regressors), or `fit` and
        `predict_proba` for rewards of a few values (its classifiers): the policy plays the action with the largest
        predicted reward. Or a function `fit(states, actions, rewards, propensities)` that returns a policy in any form
        that can be asked about new states: a function of states, a fitted classifier, a table, a SPEC
    explore : probability with which the policy plays an action at random instead
    per_action : fit one model for each action (default); False fits a single one, which sees a 0/1 column per action
    lower_is_better : choose the smallest prediction; `podium.compare(..., lower_is_better=True)` implies it

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 1] * 10, ["a", "a", "b", "b"] * 5, [1, 0, 0, 1] * 5, propensities=[0.5] * 20)
    >>> def best_on_average(states, actions, rewards, propensities):
    ...     return "constant:" + max("ab", key=lambda a: rewards[actions == a].mean())
    >>> result = podium.compare(log, {"new": podium.Learned(best_on_average), "old": "constant:b"})
    >>> result.settings.recipes
    ('new',)
    """

    estimator: Any
    explore: float = 0.0
    per_action: bool = True
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        made = self.estimator
        if isinstance(made, type):
            raise PodiumError(f"the estimator is the class {made.__name__}, not an instance of it", hint=HINT)
        if not self.is_function and not can(made, "predict", "predict_proba"):
            raise PodiumError(f"{type(made).__name__} has no fit and predict methods, and is not a function", hint=HINT)
        object.__setattr__(self, "explore", real(0, 1)("explore", self.explore))
        for name in ("per_action", "lower_is_better"):
            flag(name, getattr(self, name))

    @property
    def is_function(self) -> bool:
        """Whether a function of the user's makes the policy."""
        return attribute("the estimator", self.estimator, "fit") is None and callable(self.estimator)

    @property
    def title(self) -> str:
        """What learns, in a word."""
        return str(getattr(self.estimator, "__name__", type(self.estimator).__name__))


def can(estimator: Any, *verbs: str) -> bool:
    """Whether an estimator learns and has one of some methods."""
    return attribute("the estimator", estimator, "fit") is not None and any(
        attribute("the estimator", estimator, verb) is not None for verb in verbs
    )
