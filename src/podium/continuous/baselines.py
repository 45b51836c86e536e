"""Baselines that depend on the action, where actions are numbers: at the logged and at the chosen actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from podium.data.columns import Floats
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.owned import ask
from podium.estimates.baselines import KnownAverages, check_baseline, describe_baseline, takes_actions
from podium.estimates.learned import LeastSquares, assign_folds, clone, fit, predict, state_features


def baseline_at(spec: Any, log: Log, actions: Floats, chosen: Mapping[str, Floats], seed: int = 0) -> Any:
    """A baseline at the logged actions (N, d) and at those that policies choose; one without actions as it is.

    "linear" is least squares in the state features, the action, its square and their products; an object with fit
    and predict sees the state features and the action. Both are cross-fitted. q(states, actions) is asked as it is.
    """
    check_baseline(spec)
    if isinstance(spec, str) and spec == "linear":
        return cross_fit(LeastSquares(), with_products, log, actions, chosen, seed, "linear")
    if hasattr(spec, "fit") and hasattr(spec, "predict"):
        return cross_fit(spec, side_by_side, log, actions, chosen, seed, describe_baseline(spec))
    if not (callable(spec) and takes_actions(spec)):
        return spec

    def numbers_at(given: Floats) -> Floats:
        try:
            answer = np.asarray(ask(spec, log.states, given[:, 0] if given.shape[1] == 1 else given), np.float64)
        except PodiumError:
            raise
        except (Exception, SystemExit) as error:
            raise PodiumError(
                f"the baseline failed on the log's states: {type(error).__name__}: {error}",
                hint="q(states, actions) gets whole arrays and gives one number per row.",
            ) from error
        if answer.shape != (len(log),) or not np.isfinite(answer).all():
            raise PodiumError(
                f"the baseline must give {len(log)} finite numbers; it gave shape {answer.shape}",
                hint="q(states, actions) gets whole arrays and gives one number per row.",
            )
        return answer

    return KnownAverages("q(s, a)", numbers_at(actions), {name: numbers_at(a) for name, a in chosen.items()})


def cross_fit(
    model: Any,
    inputs: Callable[[Floats, Floats], Floats],
    log: Log,
    actions: Floats,
    chosen: Mapping[str, Floats],
    seed: int,
    name: str,
) -> KnownAverages:
    """Each row by a copy of the model fitted on other folds; rows of one unit share a fold."""
    fold, folds = assign_folds(log, np.arange(len(log)), seed)
    features = state_features(log)
    logged, averages = np.empty(len(log)), {policy: np.empty(len(log)) for policy in chosen}
    for k in range(folds):
        train, test = fold != k, fold == k
        fitted = clone(model, seed)
        fit(fitted, inputs(features[train], actions[train]), log.rewards[train])
        for answer, asked in ((logged, actions), *((averages[policy], chosen[policy]) for policy in chosen)):
            answer[test] = predict(fitted, inputs(features[test], asked[test]))
    return KnownAverages(name, logged, averages)


def side_by_side(features: Floats, actions: Floats) -> Floats:
    return np.hstack([features, actions])


def with_products(features: Floats, actions: Floats) -> Floats:
    """The features, the actions, their squares, and all products of a feature and an action."""
    products = (features[:, :, None] * actions[:, None, :]).reshape(len(features), -1)
    return np.hstack([features, actions, actions**2, products])
