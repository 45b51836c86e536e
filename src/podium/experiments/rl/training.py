"""Trains the five policies of Example 3 with Stable-Baselines3, and brings trained ones back from plain arrays."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from podium.data.errors import MissingExtra
from podium.experiments.rl.plan import ALGORITHMS, CHANGED, DEFAULTS
from podium.experiments.runner import Arrays

BUFFER = 10_000  # transitions kept for off-policy learning: more than are ever seen, so the size changes no number


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: processes that share the cores lose far more to its threads than they gain."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def silence(*streams: int) -> Iterator[None]:
    """Nothing reaches standard output (1), or the streams given, not even from C: pybullet prints `argv[0]=` there."""
    streams = streams or (1,)
    flush_output()
    kept = [os.dup(stream) for stream in streams]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in streams:
            os.dup2(nowhere, stream)
        yield
    finally:
        flush_output()
        for stream, copy in zip(streams, kept, strict=True):
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


def flush_output() -> None:
    """Empty Python's buffer of standard output and C's own, which would otherwise come out later."""
    sys.stdout.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


def make_environment(name: str) -> Any:
    """A PyBullet environment of the paper."""
    try:
        import gymnasium

        if "pybullet" not in sys.modules:
            with silence(1, 2):  # it tells its build time on stderr
                import_module("pybullet")
        import_module("pybullet_envs_gymnasium")  # registers the environments
    except ImportError as error:
        raise MissingExtra(error.name or "pybullet_envs_gymnasium", "rl", "Example 3") from error
    return gymnasium.make(f"{name}BulletEnv-v0", disable_env_checker=True)


def make_model(algorithm: str, environment: Any, defaults: str, seed: int | None = None) -> Any:
    """An untrained model with the default hyperparameters of one generation."""
    try:
        import stable_baselines3
    except ImportError as error:
        raise MissingExtra("stable_baselines3", "rl", "Example 3") from error
    options = dict(DEFAULTS[defaults].get(algorithm, {}))
    if algorithm not in ("A2C", "PPO"):
        options["buffer_size"] = BUFFER
    return getattr(stable_baselines3, algorithm)("MlpPolicy", environment, seed=seed, device="cpu", **options)


def train_policies(
    environment: str, defaults: str, timesteps: int, seed: np.random.SeedSequence, other: Arrays | None = None
) -> Arrays:
    """Train the five policies, each with its own seed and in a new environment.

    Parameters
    ----------
    other : the same training with the other generation's defaults; what does not depend on them is taken from it,
        since it would come out the same

    Returns
    -------
    dict
        "PPO.mlp_extractor.policy_net.0.weight" and so on: everything that acting takes, which is small.
    """
    arrays: Arrays = {}
    for algorithm, own in zip(ALGORITHMS, seed.generate_state(len(ALGORITHMS)), strict=True):
        if other is not None and algorithm not in CHANGED:
            arrays |= {key: value for key, value in other.items() if key.startswith(f"{algorithm}.")}
            continue
        env = make_environment(environment)
        try:
            model = make_model(algorithm, env, defaults, seed=int(own >> 1))  # 31 bits, which every generator takes
            model.learn(timesteps)
        finally:
            env.close()
        arrays |= {f"{algorithm}.{key}": value.numpy() for key, value in acting_part(model).state_dict().items()}
    return arrays


def restore_policies(environment: str, defaults: str, arrays: Arrays) -> dict[str, Any]:
    """Trained policies (Stable-Baselines3 models) from their arrays."""
    import torch

    env = make_environment(environment)
    models = {}
    try:
        for algorithm in ALGORITHMS:
            model = make_model(algorithm, env, defaults)
            start = f"{algorithm}."
            own = {key.removeprefix(start): torch.as_tensor(a) for key, a in arrays.items() if key.startswith(start)}
            acting_part(model).load_state_dict(own)
            models[algorithm] = model
    finally:
        env.close()
    return models


def acting_part(model: Any) -> Any:
    """The network that acts: the actor where actor and critic are apart, otherwise the whole."""
    return getattr(model.policy, "actor", model.policy)
