"""Measures the probability proxy on recorded episodes: five Stable-Baselines3 policies on 15 logs of 5 episodes."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3

from podium.episodes import Episode, EpisodeLog

LOGS, LENGTH, OBSERVED, MOVED = 15, 100, 28, 8  # the sizes of Ant


class Body(gymnasium.Env[Any, Any]):
    """Spaces alone: nothing is simulated."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVED,))
    action_space = gymnasium.spaces.Box(-1, 1, (MOVED,))


def bench_proxy(report: Callable[..., None], cpu: Callable[..., float]) -> None:
    """CPU seconds from recorded steps and models to policies on logs."""
    print("\nProxy of 5 models on 15 x 5 episodes of 100 steps, 28 observed and 8 moved coordinates")
    algorithms = (A2C, DDPG, PPO, SAC, TD3)
    models = {a.__name__: a("MlpPolicy", Body(), seed=s, device="cpu") for s, a in enumerate(algorithms)}
    rng = np.random.default_rng(0)
    logs = [
        [
            Episode(
                rng.normal(size=(LENGTH, OBSERVED)).astype(np.float32),
                rng.uniform(-1, 1, (LENGTH, MOVED)).astype(np.float32),
                rng.normal(size=LENGTH),
                behavior=name,
            )
            for name in models
        ]
        for _ in range(LOGS)
    ]
    spent = cpu(lambda: [EpisodeLog(log).interactions(models) for log in logs], 3)
    report("proxies of every policy in every episode, CPU", f"{spent:.2f} s", "under 1 s", spent < 1)
