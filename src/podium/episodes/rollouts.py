"""Record episodes of a policy in a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3 import is_discrete, seeded
from podium.data.arguments import SEED, attribute, checked, flag, optional, refuse_class, text, whole
from podium.data.errors import MissingExtra, PodiumError, shown, told_as
from podium.data.owned import ask
from podium.episodes.actors import array_of, batch_predict, load_spec
from podium.episodes.bounds import bounds_of
from podium.episodes.recordings import Episode, check_steps

MOST_EPISODES = 1_000_000


@checked(episodes=whole(1, 100, MOST_EPISODES), seed=SEED, name=optional(text), deterministic=flag)
def record(
    env: Any,
    policy: Any,
    episodes: int = 1,
    horizon: int | None = None,
    seed: int = 0,
    *,
    name: str | None = None,
    deterministic: bool = False,
) -> list[Episode]:
    """Let a policy act in an environment and keep what happened, with the actions inside the environment's bounds.

    Parameters
    ----------
    env : a Gymnasium environment, or the name of one
    policy : a function of an observation, a Stable-Baselines3 model, or an object with `predict`
    episodes : how many
    horizon : the longest episode; without it, until the environment ends
    seed : of the environment and of a model's exploration; the same seed gives the same episodes
    name : of the policy, kept as `Episode.behavior`
    deterministic : without a model's exploration; a log should have it
    """
    check_steps("horizon", 1 if horizon is None else horizon, "use 100.")
    if isinstance(policy, str):
        policy = load_spec(policy)
    if isinstance(env, str):
        try:
            import gymnasium
        except ImportError as error:
            raise MissingExtra("gymnasium", "rl", "making an environment by name") from error
        try:
            made = gymnasium.make(env)
        except Exception as error:  # of many kinds
            raise PodiumError(f"no environment {env!r}: {error}", hint="use a name such as 'Ant-v5'.") from error
        try:
            return record(made, policy, episodes, horizon, seed, name=name, deterministic=deterministic)
        finally:
            made.close()
    if not all(hasattr(env, name) for name in ("action_space", "reset", "step")):
        raise PodiumError(f"env must be a Gymnasium environment; it is {shown(env)}", hint="use gymnasium.make(...).")
    bounds = None if is_discrete(env.action_space) else bounds_of(env.action_space)
    act = single_action(policy, deterministic)
    seeds = np.random.SeedSequence(seed).generate_state(episodes + 1)
    recorded = []
    with seeded(policy, int(seeds[-1])):
        for number in range(episodes):
            observation, _ = env.reset(seed=int(seeds[number]))
            observations: list[Any] = []
            actions: list[Any] = []
            rewards: list[float] = []
            terminated = False
            while not terminated and (horizon is None or len(rewards) < horizon):
                action = answer_of(act, observation, env.action_space.shape)
                if bounds is None:
                    action = action.astype(env.action_space.dtype)
                    sent: Any = action.item() if action.ndim == 0 else action
                else:
                    sent = action = np.clip(action, env.action_space.low, env.action_space.high)
                observations.append(np.array(observation))
                actions.append(np.asarray(action))
                observation, reward, terminated, truncated, _ = env.step(sent)
                rewards.append(float(reward))
                if truncated:
                    break
            recorded.append(
                Episode(np.array(observations), np.array(actions), np.array(rewards), terminated, name, bounds)
            )
    return recorded


def answer_of(act: Callable[[NDArray[Any]], NDArray[Any]], observation: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """What the policy does on one observation, in the shape of the environment's actions."""
    hint = f"it was called with one observation, and its action must have shape {shape}."
    with told_as("the policy failed on an observation", hint):
        return np.array(ask(act, observation)).reshape(shape)


def single_action(policy: Any, deterministic: bool) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """The policy on one observation."""
    refuse_class("the policy", policy)
    if attribute("the policy", policy, "predict") is not None:
        predict = batch_predict(policy, deterministic)
        return lambda observation: array_of(predict(np.asarray(observation)[None], 0))[0]
    if not callable(policy):
        raise PodiumError(
            f"a policy that is {type(policy).__name__} cannot act",
            hint="give a function of an observation, or a model.",
        )
    return lambda observation: array_of(policy(observation))
