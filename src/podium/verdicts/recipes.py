"""Pairs with a recipe (`podium.Learned`): judged on held-out rows, with errors for what its folds share.

In fold k a recipe plays what it learned from the other folds, so each row is judged by a policy that never saw its
reward, and a doubly robust difference is unbiased. The posterior is not: rewards that taught the policy of one fold are
its evidence on the others. Nor is the usual standard error right. Any two folds learned from shared rows, so that where
one is lucky the others tend to be as well: with 5 folds and no effects of actions, the variance of the mean over folds
is about twice what independent rows would give. Errors are therefore multiplied by

    sqrt(1 + K / (K - 1)),   1.5 for K = 5 folds

the correction of Nadeau and Bengio (2003, "Inference for the generalization error") for training sets that overlap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.estimates.learned import FOLDS
from podium.policies import PolicySet
from podium.verdicts.doubly_robust import NAME as EVERY_ROW
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices
from podium.verdicts.posterior import policy_values


def recipes_in(policies: PolicySet) -> tuple[str, ...]:
    """The names of the policies that are recipes."""
    return tuple(p.name for p in policies if p.kind == "learned")


def refuse_posterior(policies: PolicySet, asked: str | None) -> None:
    """Refuse the posterior by name where it would have to judge a recipe."""
    recipes = recipes_in(policies)
    if asked == "posterior" and recipes:
        raise PodiumError(
            f"the posterior cannot judge {recipes[0]!r}, a recipe: the rewards it learned from are its evidence",
            hint='leave verdicts and estimator out, or use "doubly robust" or "gated".',
        )


def folds_of(log: Log) -> int:
    """How many folds a recipe was dealt on a log."""
    groups = len(log) if log.units is None else len(set(log.units.tolist()))
    return min(FOLDS, groups)


def widening(folds: int) -> float:
    """What standard errors of a recipe's differences are multiplied by.

    >>> widening(5)
    1.5
    """
    return float(np.sqrt(1 + folds / (folds - 1)))


def recipe_pairs(policies: PolicySet) -> NDArray[np.bool_]:
    """(P,) which pairs have a recipe."""
    learned = np.array([p.kind == "learned" for p in policies])
    i, j = pair_indices(len(policies))
    return np.asarray(learned[i] | learned[j])


def with_recipes(others: Judgement, held_out: Judgement, policies: PolicySet, folds: int) -> Judgement:
    """A judgement in which pairs with a recipe come from held-out rows.

    Parameters
    ----------
    others : what judges pairs of fixed policies
    held_out : differences that are sums over rows, each by the policy of its fold
    """
    chosen = recipe_pairs(policies)
    wide = held_out.with_errors(np.where(chosen, widening(folds), 1.0) * held_out.std_error)
    if others is held_out:
        return wide
    i, j = pair_indices(len(policies))
    merged = others.with_pairs_of(wide, chosen)
    every = chosen & (held_out.procedure == EVERY_ROW)
    return replace(
        merged,
        values=held_out.values.mean() + policy_values(merged.difference, i, j, len(policies)),
        assumes=f"{others.assumes}; for pairs with a recipe, {held_out.assumes}",
        every_row=every if others.every_row is None else every | (others.every_row & ~chosen),
        notes=tuple(dict.fromkeys([*others.notes, *held_out.notes])),
    )
