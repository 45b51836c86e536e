"""Example 3's plan: environments, algorithms, sizes, and the cells of a run, one training at a time everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.data.errors import PodiumError
from podium.experiments.runner import Cell

# In the order of the paper's table; the environment of name X is XBulletEnv-v0.
ENVIRONMENTS = (
    "InvertedPendulum",
    "InvertedPendulumSwingup",
    "Reacher",
    "Walker2D",
    "HalfCheetah",
    "Ant",
    "Hopper",
    "Humanoid",
)
ALGORITHMS = ("A2C", "DDPG", "PPO", "SAC", "TD3")

TIMESTEPS = 1000  # of training; PPO collects 2,048 before it learns at all
HORIZON = 100  # an interaction is an episode of at most so many steps
SEEDS = 15  # sets of trained policies for each environment
LOGS = 15  # logs for each set: each policy deployed once
ROLLOUTS = 100  # for the true value of a policy

QUICK = {"timesteps": 200, "logs": 4, "rollouts": 20}
QUICK_ENVIRONMENTS = ("InvertedPendulum", "Reacher")
QUICK_SEEDS = 2

# What Stable-Baselines3 had as defaults when the paper was written, where they differ from today's.
OFF_POLICY_THEN = {"train_freq": (1, "episode"), "gradient_steps": -1, "batch_size": 100}
DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {"DDPG": OFF_POLICY_THEN, "TD3": OFF_POLICY_THEN},
    "current": {},
}
CHANGED = ("DDPG", "TD3")  # algorithms whose defaults differ between the two


@dataclass(frozen=True)
class Plan:
    """What is run.

    Parameters
    ----------
    environments : names in `ENVIRONMENTS`
    seeds : sets of policies trained in each environment
    defaults : "paper" or "current", the generation of Stable-Baselines3's hyperparameters
    seed : of the cells. A cell's own seed depends on its environment and on which training it is, not on what
        else is run; both generations of defaults share it, so that their results are paired
    timesteps, logs, rollouts : of training, for each set of policies, and for each policy's true value
    """

    environments: tuple[str, ...] = ENVIRONMENTS
    seeds: int = SEEDS
    defaults: str = "paper"
    seed: int = 0
    timesteps: int = TIMESTEPS
    logs: int = LOGS
    rollouts: int = ROLLOUTS

    @property
    def name(self) -> str:
        """A folder name that differs where the cells differ."""
        full = (self.timesteps, self.logs, self.rollouts) == (TIMESTEPS, LOGS, ROLLOUTS)
        size = "" if full else f"-{self.timesteps}-steps-{self.logs}-logs-{self.rollouts}-rollouts"
        return f"{self.defaults}-seed-{self.seed}{size}"

    @property
    def other(self) -> Plan:
        """The same with the other generation's defaults."""
        return replace(self, defaults=next(name for name in DEFAULTS if name != self.defaults))

    def chains(self, cells: Path) -> list[list[Cell]]:
        """For each training: the cell that trains, then the cell that deploys what was trained.

        `cells` is the folder in which every plan has its own; a training looks there for the other generation's.
        """
        return [self.chain(cells, environment, i) for i in range(self.seeds) for environment in self.environments]

    def chain(self, cells: Path, environment: str, training: int) -> list[Cell]:
        place = 2 * (training * len(ENVIRONMENTS) + ENVIRONMENTS.index(environment))
        return [
            Cell(
                cell_name(step, environment, training),
                place + i,
                {
                    "step": step,
                    "environment": environment,
                    "defaults": self.defaults,
                    "timesteps": self.timesteps,
                    "logs": self.logs,
                    "rollouts": self.rollouts,
                    "other": str(cells / self.other.name),
                },
            )
            for i, step in enumerate(("policies", "logs"))
        ]


def cell_name(step: str, environment: str, training: int) -> str:
    """The file of a cell: `logs-Ant-03`."""
    return f"{step}-{environment}-{training:02d}"


def check_environments(names: Iterable[str]) -> tuple[str, ...]:
    """The environments asked for, one by one or as "Ant,Reacher", without repetition and in the paper's order."""
    split = [part.strip() for name in names for part in name.split(",") if part.strip()]
    asked = [name.removesuffix("BulletEnv-v0").removesuffix("-v0") for name in split]
    for name in asked:
        if name not in ENVIRONMENTS:
            raise PodiumError(f"there is no environment {name!r}", hint=f"choose among {', '.join(ENVIRONMENTS)}.")
    if not asked:
        raise PodiumError("no environment is given", hint=f"choose among {', '.join(ENVIRONMENTS)}.")
    return tuple(name for name in ENVIRONMENTS if name in asked)
