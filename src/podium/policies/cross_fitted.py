"""Recipes made policies: what is played in a row comes from a policy that learned from the other folds only."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats, to_array
from podium.data.copies import copied_rows
from podium.data.eligible import uniform_over
from podium.data.errors import BaselineRefused, PodiumError, count, listed, show_value, told_as
from podium.data.log import Log
from podium.data.owned import ask
from podium.estimates.learned import Encoder, assign_folds, clone
from podium.policies import align, named_policies
from podium.policies.drafts import Draft, Policy
from podium.policies.forms import draft_policy
from podium.policies.recipes import Learned
from podium.policies.specs import is_recipe, load_object

MOST_VALUES = 20  # different rewards that a classifier may tell apart
LAST = np.finfo(np.float64).max  # what no prediction reaches: actions that were never seen come last
MOST_CELLS = 500_000_000  # probabilities (rows x actions) of one recipe


def recipe_of(given: Any) -> Learned | None:
    """The recipe that a policy is; None for any other policy."""
    if isinstance(given, Policy) and given.kind in (None, "learned"):
        stated, given = given.kind is not None, given.source
        if stated and not isinstance(given, Learned | Draft | str):
            given = Learned(given)
    if isinstance(given, str) and is_recipe(given):
        _, module, name = given.split(":", 2)
        made = load_object(module, name, "recipe")
        return made if isinstance(made, Learned) else Learned(made)
    return given if isinstance(given, Learned) else None


def aimed(policies: Any, lower_is_better: bool) -> Any:
    """The policies, with recipes that look for low rewards where these are better."""
    if not lower_is_better or not isinstance(policies, Mapping):
        return policies
    recipes = {name: recipe for name, given in policies.items() if (recipe := recipe_of(given)) is not None}
    return {**policies, **{name: replace(recipe, lower_is_better=True) for name, recipe in recipes.items()}}


def teach(log: Log, policies: Any, seed: int) -> Any:
    """The policies, with every recipe as what its cross-fitted policies play in each row."""
    given = named_policies(log, policies)
    recipes = {name: recipe for name, one in given.items() if (recipe := recipe_of(one)) is not None}
    if not recipes:
        return policies
    groups = len(log) if log.units is None else len(set(log.units.tolist()))
    if groups < 2:
        raise PodiumError(
            f"a recipe needs at least 2 {'rows' if log.units is None else 'units'} to learn from some and be judged on "
            "others",
            hint="log more, or judge a policy that is already trained.",
        )
    refuse_copies(log, next(iter(recipes)))
    fold, folds = assign_folds(log, np.arange(len(log)), [seed, 6])  # those of the judge's own model of the reward
    return {
        name: Policy(cross_fit(name, recipes[name], log, fold, folds, seed), kind="learned") if name in recipes else one
        for name, one in given.items()
    }


def refuse_copies(log: Log, name: str) -> None:
    """Refuse a log in which rows were copied: a copy of a held-out row would teach the policy that is judged on it."""
    if not (copies := copied_rows(log)):
        return
    raise PodiumError(
        f"policy {name!r} is a recipe, and {copies:,} of the {len(log):,} rows repeat another one in state, action and "
        "reward: it would be judged on rows that it learned from",
        hint="remove the copies, in pandas frame.drop_duplicates(), or name the column that identifies dependent rows "
        "with unit= (--unit).",
    )


def cross_fit(name: str, recipe: Learned, log: Log, fold: Codes, folds: int, seed: int) -> Draft:
    """One recipe on all rows of a log: on each fold, what was learned from the others."""
    if recipe.is_function:
        chosen, matrix = by_function(name, recipe, log, fold, folds)
    else:
        chosen, matrix = by_rewards(name, recipe, log, fold, folds, seed), None
    if matrix is None and not recipe.explore:
        return Draft("learned", labels=log.action_space, chosen=chosen)
    refuse_many(name, log)
    if matrix is None:
        matrix = np.zeros((len(log), log.n_actions))
        matrix[np.arange(len(log)), chosen] = 1.0
    anything = 1 / log.n_actions if log.eligible is None else uniform_over(log.eligible)
    mixed = (1 - recipe.explore) * matrix + recipe.explore * anything
    return Draft("learned", labels=log.action_space, matrix=mixed)


def refuse_many(name: str, log: Log) -> None:
    if len(log) * log.n_actions > MOST_CELLS:
        raise PodiumError(
            f"policy {name!r}: a recipe with probabilities for {len(log):,} rows and {log.n_actions:,} actions is too "
            "large for memory",
            hint="learn a policy that chooses one action in each state (explore=0), or use fewer rows.",
        )


# --- a function that returns a policy ------------------------------------------------------------------------------


def by_function(name: str, recipe: Learned, log: Log, fold: Codes, folds: int) -> tuple[Codes, Floats | None]:
    """What the policies that a function returns play: (N,) actions, or (N, A) probabilities."""
    chosen, matrix = np.zeros(len(log), dtype=np.int64), None
    for k in range(folds):
        held, others = np.flatnonzero(fold == k), log.take(np.flatnonzero(fold != k))
        given = (others.states, others.actions, others.rewards, others.propensities)
        hint = f"it was called with {count(len(others), 'row')}: fit(states, actions, rewards, propensities)."
        with told_as(f"policy {name!r}: the recipe {recipe.title} failed", hint):
            made = ask(recipe.estimator, *given)
        apart = log.take(held)
        draft = draft_policy(name, made, apart)
        new = [label for label in draft.labels if label not in set(log.action_space)]
        if new:
            raise PodiumError(
                f"policy {name!r}: the recipe plays {listed(new, 5)}, which the log's action space lacks",
                hint="name the whole action space with actions=[...] or --actions.",
            )
        rows = align(name, draft, apart)
        if rows.chosen is not None and matrix is None:
            chosen[held] = rows.chosen
            continue
        if not rows.has_full or rows.proxy:
            raise PodiumError(
                f"policy {name!r}: the recipe {recipe.title} must return a policy that is known for every action",
                hint="return a function of states, a fitted classifier, a table keyed by state, or a SPEC.",
            )
        if matrix is None:
            refuse_many(name, log)
            matrix = np.zeros((len(log), log.n_actions))
            before = np.flatnonzero(fold < k)
            matrix[before, chosen[before]] = 1.0
        matrix[held] = rows.full(log.n_actions)
    return chosen, matrix


# --- models of the reward ------------------------------------------------------------------------------------------


def by_rewards(name: str, recipe: Learned, log: Log, fold: Codes, folds: int, seed: int) -> Codes:
    """(N,) the eligible action of the largest predicted reward in each row."""
    levels = reward_levels(name, recipe, log)
    features = features_of(name, log)
    chosen = np.empty(len(log), dtype=np.int64)
    sign = -1.0 if recipe.lower_is_better else 1.0
    for k in range(folds):
        held, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        learn = each_action if recipe.per_action else all_actions
        learner = Learner(name, recipe.estimator, levels, seed)
        predicted = learn(learner, features[others], log.action_codes[others], log.rewards[others], features[held], log)
        seen = np.bincount(log.action_codes[others], minlength=log.n_actions) > 0
        predicted = np.where(seen, sign * predicted, -LAST)
        if log.eligible is not None:
            predicted = np.where(log.eligible[held], predicted, -np.inf)
        chosen[held] = predicted.argmax(axis=1)
    return chosen


def features_of(name: str, log: Log) -> Floats:
    """(N, d) numbers that describe the states, as learned baselines see them."""
    try:
        return Encoder.of(log).features(log)
    except BaselineRefused as error:
        raise PodiumError(
            f"policy {name!r}: {error.message.replace('a learned baseline', 'an estimator')}",
            hint="leave the column out of the state (--state), or give a function fit(states, actions, rewards, "
            "propensities).",
        ) from error


def reward_levels(name: str, recipe: Learned, log: Log) -> Floats | None:
    """The values of the reward that a classifier tells apart; None where numbers are predicted."""
    if getattr(recipe.estimator, "predict_proba", None) is None:
        return None
    levels = np.unique(log.rewards)
    if len(levels) > MOST_VALUES:
        raise PodiumError(
            f"policy {name!r}: {recipe.title} is a classifier, and the reward has {len(levels):,} different values",
            hint="give an estimator that predicts numbers, such as podium.Learned(RandomForestRegressor()).",
        )
    return levels


class Learner:
    """Copies of an estimator, fitted on some rows and asked about others; what it raises is told with its name."""

    def __init__(self, policy: str, estimator: Any, levels: Floats | None, seed: int) -> None:
        self.what = f"policy {policy!r}: {type(estimator).__name__} failed"
        self.estimator, self.levels, self.seed = estimator, levels, seed

    def fit(self, inputs: Floats, rewards: Floats, of: str) -> Any:
        """A fitted copy; the mean where the rewards are all equal."""
        if rewards.min() == rewards.max():
            return float(rewards[0])
        y = rewards if self.levels is None else np.searchsorted(self.levels, rewards)
        model = clone(self.estimator, self.seed)
        with told_as(f"{self.what} in fit", f"it was called with {count(len(inputs), 'row')} {of}."):
            quietly(model.fit, inputs, y)
        return model

    def predict(self, model: Any, inputs: Floats) -> Floats:
        """(n,) the rewards that a fitted copy expects."""
        if isinstance(model, float):
            return np.full(len(inputs), model)
        verb = "predict" if self.levels is None else "predict_proba"
        with told_as(f"{self.what} in {verb}", f"it was called with {count(len(inputs), 'row')}."):
            answer = np.asarray(to_array(quietly(getattr(model, verb), inputs)), dtype=np.float64)
            if self.levels is not None:
                known = np.asarray(model.classes_, dtype=np.int64)
                answer = answer @ self.levels[known]
            answer = answer.reshape(-1)
        if len(answer) != len(inputs) or not np.isfinite(answer).all():
            raise PodiumError(
                f"{self.what}: it must predict {count(len(inputs), 'finite number')}; it gave {len(answer):,}",
                hint="check the estimator on these rewards: predict(X) gives one number per row of X.",
            )
        return answer


def quietly(function: Any, *given: Any) -> Any:
    """What a user's function answers, without the warnings of its library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(function, *given)


def each_action(learner: Learner, x: Floats, actions: Codes, rewards: Floats, asked: Floats, log: Log) -> Floats:
    """(n, A) predictions by a model for each action."""
    found = np.zeros((len(asked), log.n_actions))
    for a in np.unique(actions):
        some = actions == a
        model = learner.fit(x[some], rewards[some], f"of action {show_value(log.action_space[a])}")
        found[:, a] = learner.predict(model, asked)
    return found


def all_actions(learner: Learner, x: Floats, actions: Codes, rewards: Floats, asked: Floats, log: Log) -> Floats:
    """(n, A) predictions by one model, which sees a 0/1 column per action."""
    codes = np.arange(log.n_actions)
    model = learner.fit(np.hstack([x, (actions[:, None] == codes).astype(np.float64)]), rewards, "of all actions")
    found = np.empty((len(asked), log.n_actions))
    for a in codes:
        found[:, a] = learner.predict(model, np.hstack([asked, np.broadcast_to(codes == a, (len(asked), len(codes)))]))
    return found
