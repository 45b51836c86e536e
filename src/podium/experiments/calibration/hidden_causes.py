"""Bounds under hidden causes of known strength: how often they cover the true difference, and DRE alone does.

python -m podium.calibration.hidden_causes

Each world has a cause u that is not in its logs. It changes the probabilities of the actions by an odds factor that
reaches Gamma in every state, and it changes the rewards. The logs hold states, actions and rewards, no propensities.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from podium.data.columns import Floats
from podium.data.log import Log
from podium.experiments.calibration.trials import one_thread
from podium.experiments.calibration.worlds import one_hot, sample, softmax
from podium.experiments.runner import run_bench
from podium.policies import resolve_policies
from podium.verdicts.sensitivity import HiddenCauses

GAMMAS = (1.5, 2.0, 3.0)
ROWS = (100, 400, 1600)
STATES = 400
LEVEL = 0.95
FOLDED = float(np.sqrt(2 / np.pi))  # the mean of |z|


@dataclass(frozen=True, eq=False)
class HiddenWorld:
    """S states, A actions and a hidden u in {0, 1}.

    Parameters
    ----------
    points : (S, d)
    chance : (S,) P(u = 1)
    behavior, rewards : (2, S, A) given u
    policies : (2, S, A)
    noise : the rewards of expected ones, given u
    text : states are names of segments
    visits : rows of one unit, which share state and u
    """

    points: Floats
    chance: Floats
    behavior: Floats
    rewards: Floats
    policies: Floats
    noise: Callable[[Generator, Floats, Floats], Floats]
    text: bool = False
    visits: int = 1

    @property
    def difference(self) -> float:
        """The true one."""
        expected = self.chance[:, None] * self.rewards[1] + (1 - self.chance[:, None]) * self.rewards[0]
        gap = self.policies[0] - self.policies[1]
        return float((gap * expected).sum() / len(expected))

    def interval(self, rng: Generator, rows: int, gammas: tuple[float, ...]) -> list[tuple[float, float]]:
        """What a log of this world says of the difference, for each Gamma."""
        people = -(-rows // self.visits)
        states = np.repeat(rng.integers(len(self.points), size=people), self.visits)
        u = np.repeat((rng.random(people) < self.chance[states[:: self.visits]]).astype(int), self.visits)
        actions = sample(rng, self.behavior[u, states])
        rewards = self.noise(rng, self.rewards[u, states, actions], 2.0 * u - 1)
        n_actions = self.rewards.shape[2]
        columns: dict[str, Any] = {"action": actions, "reward": rewards}
        if self.text:
            columns["segment"] = np.array([f"segment {k}" for k in self.points[states].argmax(axis=1)], dtype=object)
        else:
            columns |= {f"x{k}": column for k, column in enumerate(self.points[states].T)}
        if self.visits > 1:
            columns["person"] = np.repeat(np.arange(people), self.visits)
        unit = "person" if self.visits > 1 else None
        log = Log.from_columns(columns, unit=unit, actions=range(n_actions))
        log, policies = resolve_policies(log, {"a": self.policies[0][states], "b": self.policies[1][states]})
        contrast = HiddenCauses(log).contrast(*policies)
        return [contrast.interval(gamma, LEVEL) for gamma in gammas]


# --- worlds ------------------------------------------------------------------------------------------------------


def normal(rng: Generator, expected: Floats, side: Floats) -> Floats:
    return expected + 0.5 * rng.standard_normal(len(expected))


def folded(rng: Generator, expected: Floats, side: Floats) -> Floats:
    """Noise on the side of u alone: what u is can be read off the residual, which helps an adversary most."""
    rewards: Floats = expected + side * (np.abs(rng.standard_normal(len(expected))) - FOLDED)
    return rewards


def clicks(rng: Generator, expected: Floats, side: Floats) -> Floats:
    return (rng.random(len(expected)) < expected).astype(np.float64)


def worst(rng: Generator, gamma: float, steep: float) -> HiddenWorld:
    """Two actions; the odds of the better-looking one are Gamma times as large, or as small, in every state.

    u = 1 has just the probability that makes the odds look as they would without it, so the bounds are attained.
    """
    x = rng.standard_normal((STATES, 2))
    odds = np.exp(steep * x[:, 0] - 0.3)
    up, down, seen = (k * odds / (1 + k * odds) for k in (gamma, 1 / gamma, 1.0))
    level = 0.3 * x[:, :1] + 0.2 * x[:, 1:] + np.array([0.0, 0.2])
    return HiddenWorld(
        points=x,
        chance=(seen - down) / (up - down),
        behavior=np.stack([np.column_stack([1 - p, p]) for p in (down, up)]),
        rewards=np.stack([level - FOLDED, level + FOLDED]),
        policies=np.stack([np.tile(one_hot(np.array(k), 2), (STATES, 1)) for k in (1, 0)]),
        noise=folded,
    )


def leaning(
    rng: Generator, gamma: float, x: Floats, actions: int, reward: Callable[[Floats], Floats], heat: float = 1.0
) -> dict[str, Any]:
    """u = 1 in half of the rows; it favors some actions and raises every reward, so that these actions look good."""
    d = x.shape[1]
    score = heat * x @ rng.standard_normal((d, actions)) / np.sqrt(d) + 0.3 * rng.standard_normal(actions)
    lean = rng.permutation(np.linspace(-1, 1, actions))
    low, high = np.zeros((len(x), 1)), np.full((len(x), 1), 20.0)
    for _ in range(24):  # how much each state's odds can lean until the factor is Gamma
        middle = (low + high) / 2
        both = np.stack([softmax(score - middle * lean), softmax(score + middle * lean)])
        far = (odds_factors(both).max(axis=(0, 2)) > gamma)[:, None]
        low, high = np.where(far, low, middle), np.where(far, middle, high)
    level = 0.4 * x @ rng.standard_normal((d, actions)) / np.sqrt(d) + 0.3 * rng.standard_normal(actions)
    liked, rival = softmax(3 * lean), softmax(-3 * lean * rng.random())
    return {
        "points": x,
        "chance": np.full(len(x), 0.5),
        "behavior": np.stack([softmax(score - low * lean), softmax(score + low * lean)]),
        "rewards": np.stack([reward(level - 1), reward(level + 1)]),
        "policies": np.stack([np.tile(p, (len(x), 1)) for p in (liked, rival)]),
    }


def odds_factors(behavior: Floats) -> Floats:
    """(2, S, A) the factor between the odds given u and those that show, where u = 1 in half of the rows."""
    behavior = np.clip(behavior, 1e-12, 1 - 1e-12)
    seen = behavior.mean(axis=0)
    factor: Floats = np.exp(np.abs(np.log(behavior / (1 - behavior)) - np.log(seen / (1 - seen))))
    return factor


def as_they_are(level: Floats) -> Floats:
    return level


def click_rate(level: Floats) -> Floats:
    rate: Floats = 1 / (1 + np.exp(1.5 - level))
    return rate


def segments(rng: Generator) -> Floats:
    """(S, 6) which of six segments a state is."""
    members: Floats = np.sqrt(6) * one_hot(rng.integers(6, size=STATES), 6)
    return members


# The bounds were developed on the first three; the others were named aside and only reported on.
WORLDS: dict[str, Callable[[Generator, float], HiddenWorld]] = {
    "worst case, 2 actions": lambda rng, g: worst(rng, g, 0.5),
    "worst case, 2 actions, thin overlap": lambda rng, g: worst(rng, g, 1.5),
    "4 actions": lambda rng, g: HiddenWorld(
        **leaning(rng, g, rng.standard_normal((STATES, 3)), 4, as_they_are), noise=normal
    ),
    "clicks, 3 actions (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, rng.standard_normal((STATES, 2)), 3, click_rate), noise=clicks
    ),
    "segments as text, 3 actions (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, segments(rng), 3, as_they_are), noise=normal, text=True
    ),
    "segments as text, thin overlap (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, segments(rng), 3, as_they_are, heat=2.5), noise=normal, text=True
    ),
    "segments as text, hardly any overlap (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, segments(rng), 3, as_they_are, heat=6.0), noise=normal, text=True
    ),
    "4 visits per person, 3 actions (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, rng.standard_normal((STATES, 2)), 3, as_they_are), noise=normal, visits=4
    ),
    "8 actions (aside)": lambda rng, g: HiddenWorld(
        **leaning(rng, g, rng.standard_normal((STATES, 4)), 8, as_they_are), noise=normal
    ),
}


def covered(name: str, gamma: float, rows: int, logs: int, seed: int) -> Floats:
    """Shares of logs whose interval holds the true difference: with the bounds, and by DRE alone."""
    hits = np.zeros(2)
    for repetition in range(logs):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), int(10 * gamma), rows, repetition])
        world = WORLDS[name](rng, gamma)
        found = np.array(world.interval(rng, rows, (gamma, 1.0)))
        hits += (found[:, 0] <= world.difference) & (world.difference <= found[:, 1])
    shares: Floats = hits / logs
    return shares


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how often bounds under hidden causes cover the truth.")
    parser.add_argument("--logs", type=int, default=80, help="per cell (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--gamma", type=float, nargs="+", default=GAMMAS)
    parser.add_argument("--world", nargs="+", default=list(WORLDS), choices=WORLDS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    one_thread()
    heads = [f"Γ = {gamma:g}" for gamma in options.gamma]
    print("| world | rows | " + " | ".join(heads) + " | " + " | ".join(f"DRE alone, {h}" for h in heads) + " |")
    print("|" + "---|" * (2 + 2 * len(heads)), flush=True)
    for name in options.world:
        for rows in options.rows:
            cells = np.array([covered(name, gamma, rows, options.logs, options.seed) for gamma in options.gamma])
            shares = [f"{share:.0%}" for share in cells.T.ravel()]
            print(f"| {name} | {rows:,} | " + " | ".join(shares) + " |", flush=True)


if __name__ == "__main__":
    run_bench(main)
