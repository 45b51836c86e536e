"""Runs one cell of Example 3: trains policies, or deploys them for logs, replays and true values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.experiments.rl.plan import HORIZON
from podium.experiments.rl.rollouts import Ints, Simulations
from podium.experiments.rl.training import one_thread, restore_policies, silence, train_policies
from podium.experiments.runner import Arrays, Cell, is_finished, load

CHUNK = 500  # observations in one forward pass where nothing is replayed


def run_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """Train, or deploy what the cell before has trained."""
    arguments = cell.arguments
    environment, defaults = arguments["environment"], arguments["defaults"]
    with one_thread():
        if before is None:
            folder = Path(arguments["other"])
            other = load(folder, cell.name) if is_finished(folder, cell.name) else None
            with silence():
                return train_policies(environment, defaults, arguments["timesteps"], seed, other)
        with silence():
            models = list(restore_policies(environment, defaults, before).values())
        with Simulations(environment) as simulations:
            return deploy(simulations, models, arguments["logs"], arguments["rollouts"], seed)


def deploy(
    simulations: Simulations, models: list[Any], logs: int, rollouts: int, seed: np.random.SeedSequence
) -> Arrays:
    """What every table is computed from: L logs of K policies, each deployed once, and the policies' true values.

    Returns
    -------
    dict
        "observations" (L, K, T, O), "actions" (L, K, T, D), "rewards" (L, K, T), "lengths" (L, K): the episodes that
        policy k logged, by its own draws;
        "at_logged" (L, K, J, T, D): what policy j would do, without draws, where episode (l, k) was;
        "own" (L, K, J, T, D): what it does from the same reset on its own way, followed as long as the logged
        episode; "own_lengths" (L, K, J): when its way ended; "own_returns" (L, K, J) until then;
        "returns", "return_lengths" (K, R): of the rollouts for the true values;
        "low", "high" (D,): the bounds of the actions.
    """
    resets, draws, values = seed.spawn(3)
    shape = (logs, len(models))
    reset = integers(resets, shape)
    draw = integers(draws, (len(models),))
    parts = [simulations.run(model, reset[:, k], HORIZON, draws=int(draw[k])) for k, model in enumerate(models)]
    observations = np.stack([part.observations for part in parts], axis=1)
    lengths = np.stack([part.lengths for part in parts], axis=1)
    flat = lengths.ravel()
    own = [simulations.run(model, reset.ravel(), HORIZON, steps=flat) for model in models]
    going = np.arange(HORIZON) < np.stack([part.lengths for part in own], axis=1)[:, :, None]
    truth = integers(values, (len(models), rollouts + 1))
    rolled = [simulations.run(model, s[1:], HORIZON, draws=int(s[0])) for model, s in zip(models, truth, strict=True)]
    return {
        "observations": observations,
        "actions": np.stack([part.actions for part in parts], axis=1),
        "rewards": np.stack([part.rewards for part in parts], axis=1),
        "lengths": lengths,
        "at_logged": np.stack([act(model, observations, lengths) for model in models], axis=2),
        "own": np.stack([part.actions.reshape(*shape, HORIZON, -1) for part in own], axis=2),
        "own_lengths": np.stack([part.lengths.reshape(shape) for part in own], axis=2),
        "own_returns": (np.stack([part.rewards for part in own], axis=1) * going).sum(axis=2).reshape(*shape, -1),
        "returns": np.stack([part.rewards.sum(axis=1) for part in rolled]),
        "return_lengths": np.stack([part.lengths for part in rolled]),
        "low": simulations.low,
        "high": simulations.high,
    }


def act(model: Any, observations: NDArray[np.float32], lengths: Ints) -> NDArray[np.float32]:
    """(L, K, T, D) a policy's deterministic actions at logged observations, zero behind an episode's end."""
    inside = np.arange(observations.shape[2]) < lengths[..., None]
    rows = observations[inside]
    chosen = np.concatenate(
        [model.predict(rows[i : i + CHUNK], deterministic=True)[0] for i in range(0, len(rows), CHUNK)]
    )
    actions = np.zeros((*inside.shape, chosen.shape[1]), np.float32)
    actions[inside] = chosen
    return actions


def integers(seed: np.random.SeedSequence, shape: tuple[int, ...]) -> Ints:
    """Seeds of 31 bits, which every generator takes; a little room is left for counting on."""
    return (seed.generate_state(int(np.prod(shape))) >> 1).astype(np.int64).reshape(shape)
