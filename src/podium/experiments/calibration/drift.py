"""Alarms for a world that changed: how often they ring on steady logs, and on logs in which one thing changes.

python -m podium.calibration.drift

In the steady families every alarm is false. In the others one thing changes halfway. "steady, coins" and "the
difference flips" served to choose the tests, with seed 1. All other families, and the seed 0 that is the default, were
named beforehand and are held out.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from podium.comparison.drift import KINDS, drift_of
from podium.data.columns import Floats
from podium.data.log import Log
from podium.experiments.calibration.recipes import coins, heavy, normal
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.policies import resolve_policies

ROWS = (200, 1000)
POLICIES = {"first": "constant:a0", "second": "constant:a1", "any": "uniform", "mostly": "shares:a0=.8,a1=.2"}


def log_of(
    rng: np.random.Generator,
    states: Floats,
    chances: Floats,
    expected: Floats,
    noise: Callable[..., Floats],
    units: Any = None,
    known: bool = True,
) -> Log:
    """A log of two actions with these chances of the second (N,) and expected rewards (N, 2)."""
    n = len(states)
    played = (rng.random(n) < chances).astype(np.int64)
    rewards = noise(rng, expected[np.arange(n), played])
    behavior = np.column_stack([1 - chances, chances]) if known else None
    labels = [f"a{a}" for a in played]
    named = {"x": states[:, 0], "y": np.round(states[:, 1]), "group": np.where(states[:, 2] > 0.5, "g", "h")}
    return Log(
        {name: c.astype(object) if c.dtype.kind == "U" else c for name, c in named.items()}, labels, rewards,
        behavior=behavior, action_space=["a0", "a1"], times=np.arange(n), units=units,
    )  # fmt: skip


def half(n: int) -> Floats:
    return np.full(n, 0.5)


def two(first: Floats, second: Floats) -> Floats:
    return np.column_stack([first, second])


def late(n: int) -> Any:
    return np.arange(n) >= n / 2


def steady_coins(rng: np.random.Generator, n: int) -> Log:
    return log_of(rng, rng.normal(size=(n, 3)), half(n), two(half(n) - 0.1, half(n) + 0.1), coins)


def steady_people(rng: np.random.Generator, n: int) -> Log:
    """People of five rows, with a level of their own, who come back at any time."""
    owner = rng.integers(n // 5, size=n)
    x, own = rng.normal(size=(n // 5, 3))[owner], rng.normal(size=n // 5)[owner]
    return log_of(rng, x, half(n), two(own, own + x[:, 0]), normal, units=owner)


def steady_waves(rng: np.random.Generator, n: int) -> Log:
    """People whose five rows follow each other."""
    owner = np.arange(n) // 5
    x, own = rng.normal(size=(n // 5 + 1, 3))[owner], rng.normal(size=n // 5 + 1)[owner]
    return log_of(rng, x, half(n), two(own, own), normal, units=owner)


def steady_uneven(rng: np.random.Generator, n: int) -> Log:
    x = rng.normal(size=(n, 3))
    return log_of(rng, x, 0.05 + 0.9 / (1 + np.exp(-2 * x[:, 0])), two(x[:, 1], x[:, 0]), heavy)


def steady_rare(rng: np.random.Generator, n: int) -> Log:
    return log_of(rng, rng.normal(size=(n, 3)), np.full(n, 0.1), two(half(n) / 10, half(n) / 10), coins)


def steady_unknown(rng: np.random.Generator, n: int) -> Log:
    x = rng.normal(size=(n, 3))
    return log_of(rng, x, 0.1 + 0.8 / (1 + np.exp(-x[:, 0])), two(x[:, 0], 0.3 + x[:, 0]), normal, known=False)


def flips(rng: np.random.Generator, n: int) -> Log:
    gap = np.where(late(n), -0.15, 0.15)
    return log_of(rng, rng.normal(size=(n, 3)), half(n), two(0.5 - gap, 0.5 + gap), coins)


def fades(rng: np.random.Generator, n: int) -> Log:
    x = rng.normal(size=(n, 3))
    gap = np.where(late(n), 0.0, 0.6)
    return log_of(rng, x, half(n), two(0.5 * x[:, 0], 0.5 * x[:, 0] + gap), normal)


def people_flip(rng: np.random.Generator, n: int) -> Log:
    owner = np.arange(n) // 5
    x, own = rng.normal(size=(n // 5 + 1, 3))[owner], 0.5 * rng.normal(size=n // 5 + 1)[owner]
    gap = np.where(late(n), -0.3, 0.3)
    return log_of(rng, x, half(n), two(own - gap, own + gap), normal, units=owner)


def level_rises(rng: np.random.Generator, n: int) -> Log:
    x = rng.normal(size=(n, 3))
    base = x[:, 0] + np.where(late(n), 0.5, 0.0)
    return log_of(rng, x, half(n), two(base, base + 0.3), normal)


def logger_changes(rng: np.random.Generator, n: int) -> Log:
    """A log without propensities, whose logger changes."""
    x = rng.normal(size=(n, 3))
    return log_of(rng, x, np.where(late(n), 0.65, 0.35), two(x[:, 0], x[:, 0] + 0.3), normal, known=False)


def logger_tells(rng: np.random.Generator, n: int) -> Log:
    """The same, with the right propensities in every row: nothing to warn of."""
    x = rng.normal(size=(n, 3))
    return log_of(rng, x, np.where(late(n), 0.65, 0.35), two(x[:, 0], x[:, 0] + 0.3), normal)


def stale(rng: np.random.Generator, n: int) -> Log:
    """The logger changes, and the propensities in the log do not."""
    log = logger_tells(rng, n)
    return log._copy(behavior=np.full((n, 2), 0.5), propensities=half(n))


def states_change(rng: np.random.Generator, n: int) -> Log:
    """Other people come, for whom the second action is better; the same people are served as before."""
    x = rng.normal(size=(n, 3)) + np.outer(np.where(late(n), 0.5, -0.5), [1.0, 0.0, 0.0])
    return log_of(rng, x, half(n), two(x[:, 1], 0.5 * x[:, 0] + x[:, 1]), normal)


STEADY = {
    "steady, coins": steady_coins, "steady, people who come back": steady_people,
    "steady, people in turn": steady_waves,
    "steady, uneven logger, heavy tails": steady_uneven, "steady, rare action and reward": steady_rare,
    "steady, no propensities": steady_unknown,
}  # fmt: skip
CHANGES = {
    "the difference flips": flips, "the difference fades": fades, "the difference flips, people": people_flip,
    "rewards rise": level_rises, "the logger changes, no propensities": logger_changes,
    "the logger changes, right propensities": logger_tells, "the logger changes, old propensities": stale,
    "only the states change": states_change,
}  # fmt: skip


def judge(family: str, n: int, repetition: int, seed: int) -> Floats:
    """Whether any alarm rings on one log, and which kinds do."""
    rng = np.random.default_rng([seed, zlib.crc32(family.encode()), n, repetition])
    log, policies = resolve_policies({**STEADY, **CHANGES}[family](rng, n), POLICIES)
    found = drift_of(log, policies)
    kinds = [bool(found is not None and found.rang(kind)) for kind in KINDS]
    return np.array([any(kinds), *kinds], dtype=np.float64)


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how often alarms for changes over time ring.")
    parser.add_argument("--logs", type=int, default=200, help="per family and number of rows (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", nargs="+", default=[*STEADY, *CHANGES], choices=[*STEADY, *CHANGES])
    options = parser.parse_args(arguments)
    one_thread()
    print("| family | rows | any alarm | " + " | ".join(KINDS) + " |")
    print("|---|---:|---:|" + "---:|" * len(KINDS))
    for family in options.family:
        for n in ROWS:
            mean = np.mean([judge(family, n, r, options.seed) for r in range(options.logs)], axis=0)
            print(f"| {family} | {n:,} | " + " | ".join(f"{share:.1%}" for share in mean) + " |", flush=True)


if __name__ == "__main__":
    run_bench(main)
