"""Recipes that learn from the log they are judged on: claims on pure noise, and decisions where actions matter.

python -m podium.calibration.recipes

Two recipes are held against a fixed policy and, on noise, against each other. Each log is judged four ways: as podium
does (`podium.Learned`), the same without propensities, the same without widened errors, and by the posterior with
models that were trained on all rows. The first family of each kind served to choose
the rule, with seed 1. The others were named beforehand and are held out, like the seed 0 that is the default.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.result import Comparison
from podium.data.columns import Codes, Floats
from podium.data.errors import needs
from podium.data.log import Log
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.policies.recipes import Learned
from podium.verdicts.recipes import folds_of, widening

LEVEL = 0.95
ROWS = (100, 300, 1000)
DECIDES = 500  # rows at which recipes should decide strong effects


@dataclass(frozen=True, eq=False)
class Drawn:
    """A log, and the expected rewards (N, A) of all actions in its states."""

    log: Log
    expected: Floats


def drawn(
    rng: np.random.Generator,
    states: Floats,
    chances: Floats,
    expected: Floats,
    noise: Callable[..., Floats],
    units: Any = None,
) -> Drawn:
    """A log of actions by these chances (N, A), with rewards around what is expected."""
    n, actions = expected.shape
    beyond = rng.random((n, 1)) > chances.cumsum(axis=1)
    played: Codes = np.minimum(np.count_nonzero(beyond, axis=1), actions - 1)
    space = [f"a{k}" for k in range(actions)]
    rewards = noise(rng, expected[np.arange(n), played])
    logged = [space[a] for a in played]
    return Drawn(Log(states, logged, rewards, behavior=chances, action_space=space, units=units), expected)


def coins(rng: np.random.Generator, expected: Floats) -> Floats:
    return (rng.random(len(expected)) < expected).astype(np.float64)


def normal(rng: np.random.Generator, expected: Floats) -> Floats:
    return expected + rng.normal(size=len(expected))


def heavy(rng: np.random.Generator, expected: Floats) -> Floats:
    return expected + rng.standard_t(3, size=len(expected))


def even(n: int, actions: int) -> Floats:
    return np.full((n, actions), 1 / actions)


def level(values: Floats, actions: int) -> Floats:
    """(N, A) the same expected reward whatever the action."""
    return np.repeat(values[:, None], actions, axis=1)


def coin_noise(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 2))
    return drawn(rng, x, even(n, 2), level(np.full(n, 0.5), 2), coins)


def state_noise(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 3))
    return drawn(rng, x, even(n, 3), level(2 * x[:, 0], 3), normal)


def heavy_noise(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 3))
    return drawn(rng, x, even(n, 4), level(x[:, 1], 4), heavy)


def uneven_noise(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 2))
    first = 0.15 + 0.7 / (1 + np.exp(-2 * x[:, 0]))
    return drawn(rng, x, np.column_stack([first, 1 - first]), level(np.where(x[:, 0] > 0, 0.5, 0.2), 2), coins)


def unit_noise(rng: np.random.Generator, n: int) -> Drawn:
    """People of five rows each, who share a state and a level of the reward."""
    people = np.arange(n) // 5
    x = rng.normal(size=(n // 5 + 1, 2))[people]
    own = rng.normal(size=n // 5 + 1)[people]
    return drawn(rng, x, even(n, 2), level(own, 2), normal, people)


def personal(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 2))
    effect = 0.3 * np.sign(x[:, 0])
    return drawn(rng, x, even(n, 2), np.column_stack([0.5 - effect, 0.5 + effect]), coins)


def best_of_three(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 2))
    expected = np.column_stack([np.zeros(n), x[:, 0], -x[:, 0]]) + 0.5 * x[:, [1]]
    return drawn(rng, x, even(n, 3), expected, normal)


def uneven_effects(rng: np.random.Generator, n: int) -> Drawn:
    x = rng.normal(size=(n, 2))
    first = 0.15 + 0.7 / (1 + np.exp(-2 * x[:, 0]))
    expected = np.column_stack([1.5 * (x[:, 1] > 0), 1.5 * (x[:, 1] <= 0)])
    return drawn(rng, x, np.column_stack([first, 1 - first]), expected, normal)


NOISE = {
    "coins": coin_noise, "states matter": state_noise, "heavy tails": heavy_noise, "uneven logger": uneven_noise,
    "people of five rows": unit_noise,
}  # fmt: skip
EFFECTS = {"personal": personal, "best of three": best_of_three, "uneven logger, effects": uneven_effects}
WAYS = ("podium", "without propensities", "errors not widened", "trained on all rows")


def recipes(rewards: Floats) -> dict[str, Any]:
    """Estimators that fit noise well: a deep tree, and a linear model with all interactions of state and action."""
    with needs("scikit-learn", "sklearn", "this bench"):
        from sklearn.linear_model import LinearRegression, LogisticRegression
        from sklearn.tree import DecisionTreeRegressor

    linear = LogisticRegression() if len(np.unique(rewards)) == 2 else LinearRegression()
    return {"tree": DecisionTreeRegressor(min_samples_leaf=3), "linear": linear}


def trained(estimator: Any, log: Log) -> Any:
    """(N,) what a model plays that was trained on all rows."""
    found = np.empty((len(log), log.n_actions))
    for a, label in enumerate(log.action_space):
        some = log.actions == label
        estimator.fit(log.states[some], log.rewards[some])
        last = getattr(estimator, "predict_proba", None)
        found[:, a] = estimator.predict(log.states) if last is None else last(log.states)[:, -1]
    return np.array(log.action_space)[found.argmax(axis=1)]


def claims_of(result: Comparison, truth: dict[str, float], factor: float = 1.0) -> Floats:
    """Pairs; claims; wrong claims. A factor narrows the errors."""
    from scipy.special import stdtr

    judgement, names = result.basis.judgement, result.basis.policies.names
    place = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    counts = np.zeros(3)
    for n, (i, j) in enumerate(place):
        a, b = names[i], names[j]
        if "other" not in (a, b) and matters(truth):  # two recipes that learned the same are as good as equal
            continue
        pair = result.pair(a, b)
        claim = {"better": 1, "worse": -1, "cannot tell": 0}[pair.verdict]
        if factor != 1.0 and judgement.usable[n]:
            z = judgement.difference[n] / judgement.std_error[n] * factor
            claim = int(np.sign(z)) if 2 * stdtr(judgement.freedom[n], -abs(z)) <= 1 - LEVEL else 0
        gap = truth[a] - truth[b]
        counts += [1, claim != 0, claim * gap < 0 or (claim != 0 and abs(gap) < 1e-9)]
    return counts


def matters(truth: dict[str, float]) -> bool:
    """Whether policies differ at all in a log."""
    return max(truth.values()) - min(truth.values()) > 1e-9


def values(result: Comparison, expected: Floats) -> dict[str, float]:
    """What every policy is truly worth in the states of a log: a recipe by what it played on each fold."""
    return {p.name: float((p.full(expected.shape[1]) * expected).sum(axis=1).mean()) for p in result.basis.policies}


def judge(family: str, n: int, repetition: int, seed: int) -> dict[str, Floats]:
    """One log, judged in each way."""
    rng = np.random.default_rng([seed, zlib.crc32(family.encode()), n, repetition])
    drew = {**NOISE, **EFFECTS}[family](rng, n)
    log, made = drew.log, recipes(drew.log.rewards)
    others = {"other": "uniform" if repetition % 2 else f"constant:{log.action_space[0]}"}
    learned = {name: Learned(estimator) for name, estimator in made.items()}
    result = compare(log, {**learned, **others})
    bare = compare(Log(log.states, log.actions, log.rewards, units=log.units), {**learned, **others})
    fixed = compare(log, {**{name: trained(e, log) for name, e in made.items()}, **others})
    widened = widening(folds_of(log))
    return {
        "podium": claims_of(result, values(result, drew.expected)),
        "without propensities": claims_of(bare, values(bare, drew.expected)),
        "errors not widened": claims_of(result, values(result, drew.expected), widened),
        "trained on all rows": claims_of(fixed, values(fixed, drew.expected)),
    }


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how recipes are judged on the log that they learn from.")
    parser.add_argument("--logs", type=int, default=40, help="per family and number of rows (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", nargs="+", default=[*NOISE, *EFFECTS], choices=[*NOISE, *EFFECTS])
    options = parser.parse_args(arguments)
    one_thread()
    print("| family | rows | pairs | " + " | ".join(WAYS) + " |")
    print("|---|---:|---:|" + "---:|" * len(WAYS))
    for family in options.family:
        for n in ROWS if family in NOISE else (DECIDES,):
            total = dict.fromkeys(WAYS, np.zeros(3))
            for repetition in range(options.logs):
                found = judge(family, n, repetition, options.seed)
                total = {way: total[way] + found[way] for way in WAYS}
            print(f"| {family} | {n:,} | {total[WAYS[0]][0]:.0f} | " + " | ".join(map(cell, total.values())) + " |")


def cell(counts: Floats) -> str:
    """The share of claims, and how many of them are wrong."""
    pairs, claims, wrong = counts
    return f"{claims / pairs:.1%} ({wrong:.0f} wrong)"


if __name__ == "__main__":
    run_bench(main)
