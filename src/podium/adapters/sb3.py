"""Stable-Baselines3 models: loading them, and their choices on the states of a log.

A model file holds pickled objects, which can run any code when they are loaded. So a file is loaded only after
`trust(path)`, and where it holds nothing unusual `sb3_files` reads it without unpickling even then.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3_files import read_policy
from podium.data.columns import to_array
from podium.data.errors import MissingExtra, PodiumError, count, shown
from podium.data.files import note_input
from podium.data.log import Log
from podium.policies.drafts import Draft, Policy, call, read_actions

ALGORITHMS = ("A2C", "DDPG", "DQN", "PPO", "SAC", "TD3")
TRUSTED: set[str] = set()  # real paths of files that may run code


def trust(path: str | os.PathLike[str]) -> None:
    """Allow a model file to be loaded, although it can run any code that was put into it.

    >>> trust("missing.zip")
    Traceback (most recent call last):
    podium.data.errors.PodiumError: there is no file 'missing.zip'
    <BLANKLINE>
    Hint: check the path of the model.
    """
    if not Path(path).is_file():
        raise PodiumError(f"there is no file {os.fspath(path)!r}", hint="check the path of the model.")
    TRUSTED.add(os.path.realpath(path))


def is_model(policy: Any) -> bool:
    """Whether an object is a Stable-Baselines3 model, or acts like one."""
    return all(hasattr(policy, name) for name in ("predict", "action_space", "observation_space"))


def is_discrete(space: Any) -> bool:
    """Whether a Gymnasium space holds single choices (Discrete, MultiDiscrete, MultiBinary)."""
    return hasattr(space, "n") or hasattr(space, "nvec")


def load_model(spec: str) -> Any:
    """The model that `sb3:ALGO:model.zip` names, if its file is trusted: a policy that can predict."""
    algorithm, _, path = spec.removeprefix("sb3:").partition(":")
    if algorithm.upper() not in ALGORITHMS or not path:
        raise PodiumError(
            f"unknown policy {spec!r}",
            hint=f"write sb3:ALGO:model.zip, with ALGO one of {', '.join(ALGORITHMS)}.",
        )
    if not Path(path).is_file():
        raise PodiumError(f"there is no file {path!r}", hint="check the path of the model.")
    if os.path.realpath(path) not in TRUSTED:
        raise PodiumError(
            f"{path!r} is not loaded: a Stable-Baselines3 file can run any code that was put into it",
            hint=f"if you know where it comes from, add --trust {shlex.quote(path)} (in Python: "
            f"podium.adapters.sb3.trust({path!r}), or load the model yourself and give the object).",
        )
    note_input(path)
    try:
        import stable_baselines3
    except ImportError as error:
        raise MissingExtra("stable-baselines3", "rl", "loading an sb3: policy") from error
    kind = getattr(stable_baselines3, algorithm.upper())
    try:
        with suppress(Exception):  # a file that is unusual, or older than this version
            return read_policy(Path(path), kind)
        return kind.load(path, device="cpu")
    except Exception as error:  # zip, pickle, torch and version troubles alike
        raise PodiumError(
            f"{Path(path).name} cannot be loaded as a {algorithm.upper()} model: {type(error).__name__}: {error}",
            hint="save it with model.save(path), and name the algorithm that trained it.",
        ) from error


def read_model_choices(name: str, model: Any, log: Log) -> Draft:
    """What a model with discrete actions chooses at the states of a log: numbers, or places in the action space."""
    space = model.action_space
    if not is_discrete(space) or not hasattr(space, "n"):
        raise PodiumError(
            f"policy {name!r} has the action space {space}, and the log has single actions",
            hint="compare policies with continuous actions on recorded episodes: podium.episodes.compare(episodes, "
            "policies), or podium compare STEPS --episodes.",
        )
    answer = call(name, model.predict, model_states(name, model, log), deterministic=True)
    chosen = to_array(answer[0] if isinstance(answer, tuple) else answer).reshape(-1)
    if len(chosen) != len(log) or chosen.dtype.kind not in "iu":
        raise PodiumError(
            f"policy {name!r} gives {chosen.dtype} of shape {chosen.shape} for {count(len(log), 'state')}",
            hint="predict(observations) gives (actions, state), with the number of an action per observation.",
        )
    if log.actions.dtype.kind in "iu":
        return read_actions(name, Policy(chosen), log)
    if space.n != log.n_actions:
        raise PodiumError(
            f"policy {name!r} chooses among {count(int(space.n), 'action')}; the log has {log.n_actions}",
            hint="name every action in the model's order with actions=[...] or --actions a,b,c.",
        )
    return Draft("actions", labels=log.action_space, chosen=chosen.astype(np.int64) - int(getattr(space, "start", 0)))


def model_states(name: str, model: Any, log: Log) -> NDArray[Any]:
    """The log's states as the observations that a model was trained on."""
    space = model.observation_space
    try:
        shape, kind = tuple(space.shape), np.dtype(space.dtype)
    except Exception as error:
        raise PodiumError(
            f"policy {name!r} has the observation space {shown(space)}, which has no shape",
            hint="a model's observation_space is a Box or a Discrete space of Gymnasium.",
        ) from error
    columns = list(log.state_columns.values())
    if any(column.dtype.kind not in "iufb" for column in columns):
        raise PodiumError(
            f"policy {name!r} needs states that are numbers",
            hint="choose the columns of its observations with state=[...] or --state.",
        )
    states = np.column_stack(columns)
    if not shape and states.shape[1] == 1:  # one of several numbered states
        return states[:, 0].astype(np.int64)
    if int(np.prod(shape)) != states.shape[1]:
        raise PodiumError(
            f"policy {name!r} was trained on observations of shape {shape}; the log has "
            f"{count(states.shape[1], 'state column')}",
            hint="choose the columns of its observations, in their order, with state=[...] or --state.",
        )
    return states.reshape(len(states), *shape).astype(kind)


@contextmanager
def seeded(policy: Any, seed: int) -> Iterator[None]:
    """Make what a model draws depend on the seed alone, and leave the program's own random numbers as they were."""
    if not is_model(policy):
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
