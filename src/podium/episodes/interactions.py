"""Episodes as the rows of a log, with numbers for the probabilities of their sequences of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.data.errors import count
from podium.data.facts import Fact
from podium.data.log import LARGEST, Log
from podium.data.probabilities import SMALLEST
from podium.episodes.actors import Actor
from podium.policies.drafts import Policy


@dataclass(frozen=True, eq=False)
class Interactions:
    """Episodes and policies as a `Log` and policies for it: `podium.compare(i.log, i.policies)`."""

    log: Log
    policies: dict[str, Policy]
    log_probabilities: Mapping[str, Floats]  # (n,) of every policy, before scaling
    log_propensities: Floats | None  # (n,) of the behaviour policy
    notes: tuple[Fact, ...]
    lacking: str = ""  # why there is no importance sampling step by step


def as_interactions(
    states: NDArray[Any], returns: Floats, policies: Mapping[str, Floats], behavior: Floats | None, notes: list[Fact]
) -> Interactions:
    """Log-probabilities (n,) of the policies and the behaviour policy as numbers that floating point can hold."""
    top = max(float(logs.max()) for logs in (*policies.values(), *(() if behavior is None else (behavior,))))
    scale = 0.0 if not np.isfinite(top) or np.log(SMALLEST) <= top <= 0 else top
    if scale:
        notes = [*notes, Fact("probabilities rescaled", log=top)]
    propensities, ratios, more = ratios_of(np.array(list(policies.values())), behavior, scale)
    log = Log(states, np.arange(len(returns)), returns, propensities=propensities)
    made = {
        name: Policy(np.exp(logs - scale), "probabilities", proxy=True, ratios=None if ratios is None else ratios[k])
        for k, (name, logs) in enumerate(policies.items())
    }
    return Interactions(log, made, policies, behavior, (*notes, *more))


def ratios_of(
    policies: Floats, behavior: Floats | None, scale: float
) -> tuple[Floats | None, Floats | None, list[Fact]]:
    """Propensities (n,) and ratios (K, n) from logarithms, where floating point can hold them, and why it cannot."""
    if behavior is None:
        return None, None, []
    impossible = np.isneginf(behavior)
    if impossible.any():
        first, episodes = int(impossible.argmax()) + 1, count(int(impossible.sum()), "episode")
        return None, None, [Fact("behavior probability 0", episode=first, episodes=episodes)]
    gap = policies - behavior
    if gap.max() > np.log(LARGEST):
        return None, None, [Fact("ratio too large", log=float(gap.max()))]
    if (behavior - scale).min() >= np.log(SMALLEST):
        return np.exp(behavior - scale), np.exp(gap), []
    return None, np.exp(gap), [Fact("tiny propensities")]


def without_steps(
    actors: Sequence[Actor], candidates: Sequence[Actor], probabilities: str, behavior: Floats | None
) -> str:
    """Why importance sampling step by step cannot be used, if it cannot."""
    silent = next((actor for actor in actors if actor.density is None), None)
    if silent is not None:
        return f"which {repr(silent.name) if silent in candidates else 'the behaviour policy'} lacks"
    if probabilities == "proxy":
        return "and probabilities='proxy' does without"
    if behavior is None:
        return "and the behaviour policy is not known"
    return "and the behaviour policy's is 0 somewhere" if np.isneginf(behavior).any() else ""
