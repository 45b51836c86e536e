"""Rolls policies out in many simulations side by side: one forward pass of the network for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.experiments.rl.training import make_environment, silence

Ints = NDArray[np.int64]
BATCH = 20


@dataclass(frozen=True)
class Episodes:
    """M episodes of at most T steps; what lies behind an episode's end is zero.

    `lengths` (M,) are the steps until the environment ended the episode, or until the horizon.
    """

    observations: NDArray[np.float32]  # (M, T, O): what the policy saw before each action
    actions: NDArray[np.float32]  # (M, T, D)
    rewards: Floats  # (M, T)
    lengths: Ints  # (M,)


class Simulations:
    """Simulations of one environment that are used again and again.

    Results do not depend on what ran before: each simulation is reset twice when it is made, because the first
    reset of a PyBullet environment differs from all later ones. The network sees batches of exactly `size`
    observations, whatever is asked for, because float32 results depend on the size of a batch: the same policy from
    the same reset takes the same actions, to the last bit.
    """

    def __init__(self, environment: str, size: int = BATCH) -> None:
        with silence():
            self.wrapped = [make_environment(environment) for _ in range(size)]
            self.simulations = [env.unwrapped for env in self.wrapped]
            for simulation in self.simulations:
                simulation.reset(seed=0)
                simulation.reset(seed=0)
        self.observations: int = self.wrapped[0].observation_space.shape[0]
        self.low: NDArray[np.float32] = self.wrapped[0].action_space.low
        self.high: NDArray[np.float32] = self.wrapped[0].action_space.high

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for env in self.wrapped:
            env.close()

    def run(
        self,
        model: Any,
        resets: Ints,
        horizon: int,
        *,
        draws: int | None = None,
        steps: Ints | None = None,
    ) -> Episodes:
        """One episode from each reset.

        Parameters
        ----------
        resets : (M,) seeds of the environment
        draws : seed of the policy's own draws; without it the policy takes its deterministic actions
        steps : (M,) go exactly so far, even past an end, as a replay beside a logged episode has to
        """
        size = len(self.simulations)
        parts = [
            self.run_batch(
                model,
                resets[start : start + size],
                horizon,
                None if draws is None else draws + start,
                None if steps is None else steps[start : start + size],
            )
            for start in range(0, len(resets), size)
        ]
        return Episodes(
            np.concatenate([part.observations for part in parts]),
            np.concatenate([part.actions for part in parts]),
            np.concatenate([part.rewards for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def run_batch(self, model: Any, resets: Ints, horizon: int, draws: int | None, steps: Ints | None) -> Episodes:
        """At most one episode in each simulation."""
        import torch

        count, dimension = len(resets), len(self.low)
        seen = np.zeros((count, horizon, self.observations), np.float32)
        actions = np.zeros((count, horizon, dimension), np.float32)
        rewards = np.zeros((count, horizon))
        lengths = np.full(count, horizon)
        last = np.full(count, horizon) if steps is None else steps
        now = np.zeros((len(self.simulations), self.observations), np.float32)
        with silence():
            for simulation, row, seed in zip(self.simulations, now, resets.tolist(), strict=False):
                row[:] = simulation.reset(seed=seed)[0]
        if draws is not None:
            torch.manual_seed(draws)
        ended = np.zeros(count, bool)
        for t in range(horizon):
            going = np.flatnonzero(t < last if steps is not None else ~ended)
            if not len(going):
                break
            chosen, _ = model.predict(now, deterministic=draws is None)
            for i in going:
                seen[i, t], actions[i, t] = now[i], chosen[i]
                now[i], rewards[i, t], done, _, _ = self.simulations[i].step(chosen[i])
                if done and not ended[i]:
                    ended[i], lengths[i] = True, t + 1
        return Episodes(seen, actions, rewards, np.minimum(lengths, last))
