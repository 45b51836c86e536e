"""Bandits whose truth is known: a grid of states and actions with a reward for each, as in the paper's Example 1.

They make logs and policies for experiments: `draw_log` gives a `podium.Log`, `pair` two policies whose values differ
by a prescribed amount. Every array over the grid is (S, A): states down, actions across. `from_classification` makes
a bandit of any labelled data and classifiers, as in Example 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.data.arguments import MATRIX, VECTOR, checked, generator, numbers, one_of, optional, real, text, whole
from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.owned import ask, owned
from podium.worlds.labelled import LabelledBandit, from_classification
from podium.worlds.sampling import Random, invert, places, random_policy

MOST_DRAWS = 1_000_000  # in each state
RewardFunction = Callable[[Floats, Floats], Any]

__all__ = [
    "REWARDS", "Bandit", "LabelledBandit", "example", "from_classification", "reward_1_1", "reward_1_2",
    "reward_1_2_text",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Bandit:
    """A contextual bandit with equally likely states and a fixed reward for every (state, action).

    Parameters
    ----------
    states : (S,) coordinates of the states
    actions : (A,) coordinates of the actions
    rewards : (S, A) r(s, a)

    Examples
    --------
    >>> bandit = example("1.1")
    >>> bandit
    Bandit: 100 states, 100 actions, values from -0.6724 to 7.1795
    >>> rng = np.random.default_rng(0)
    >>> pi, mu = bandit.pair(0.05, rng)
    >>> round(float((bandit.value(pi) - bandit.value(mu)) / bandit.span), 12)
    0.05
    >>> bandit.draw_log(bandit.random_policy(rng), per_state=2, rng=rng)
    Log (memory): 200 rows, 198 distinct (state, action), 100 states, 100 actions, the full behaviour policy
    """

    states: Floats
    actions: Floats
    rewards: Floats

    def __post_init__(self) -> None:
        for name, dimensions in (("states", 1), ("actions", 1), ("rewards", None)):
            object.__setattr__(self, name, owned(numbers(name, getattr(self, name), dimensions)))
        shape = (len(self.states), len(self.actions))
        if self.rewards.shape != shape or not self.rewards.size:
            raise PodiumError(
                f"rewards must be {shape[0]} states x {shape[1]} actions, finite; their shape is {self.rewards.shape}",
                hint="one row per state, one column per action.",
            )

    @classmethod
    @checked(states=optional(VECTOR), actions=optional(VECTOR))
    def from_function(
        cls, reward: RewardFunction, states: Floats | None = None, actions: Floats | None = None
    ) -> Bandit:
        """A bandit whose reward is a function of the coordinates, on the paper's grid unless another is given.

        `reward(s, a)` gets arrays that broadcast against each other, (S, 1) and (1, A).

        >>> Bandit.from_function(lambda s, a: s * a, np.array([0.0, 1.0]), np.array([-1.0, 1.0])).rewards.tolist()
        [[-0.0, 0.0], [-1.0, 1.0]]
        """
        s = np.linspace(0, 1, 100) if states is None else states
        a = np.linspace(-1, 1, 100) if actions is None else actions
        try:
            rewards = np.broadcast_to(numbers("rewards", ask(reward, s[:, None], a[None, :])), (len(s), len(a)))
        except (Exception, SystemExit) as error:
            raise PodiumError(
                f"the reward function failed on the grid: {type(error).__name__}: {error}",
                hint="reward(s, a) gets arrays (S, 1) and (1, A), and gives (S, A) finite numbers.",
            ) from error
        return cls(s, a, rewards)

    # --- values ----------------------------------------------------------------------------------------------

    @cached_property
    def best_actions(self) -> Codes:
        """(S,) the action with the highest reward in each state."""
        return np.asarray(self.rewards.argmax(axis=1))

    @cached_property
    def worst_actions(self) -> Codes:
        """(S,) the action with the lowest reward in each state."""
        return np.asarray(self.rewards.argmin(axis=1))

    @cached_property
    def v_max(self) -> float:
        """The value of the optimal policy."""
        return float(self.rewards.max(axis=1).mean())

    @cached_property
    def v_min(self) -> float:
        """The value of the pessimal policy."""
        return float(self.rewards.min(axis=1).mean())

    @property
    def span(self) -> float:
        """V_max - V_min, by which differences and errors are divided."""
        return self.v_max - self.v_min

    @checked(policy=MATRIX)
    def value(self, policy: Floats) -> float:
        """V(pi) = mean over states of sum_a r(s, a) pi(a|s) of a policy (S, A)."""
        return float(self.state_values(policy).mean())

    @checked(policy=MATRIX)
    def state_values(self, policy: Floats) -> Floats:
        """(S,) V(pi|s) = sum_a r(s, a) pi(a|s)."""
        self._check("the policy", policy.shape, self.rewards.shape)
        return np.asarray((self.rewards * policy).sum(axis=1))

    def _check(self, what: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        if shape != wanted:
            raise PodiumError(
                f"{what} must have shape {wanted}; it has {shape}", hint="one row per state, one column per action."
            )

    # --- policies --------------------------------------------------------------------------------------------

    @checked(rng=generator)
    def random_policy(self, rng: Random) -> Floats:
        """(S, A) softmax over the actions of independent standard normals."""
        return random_policy(self.rewards.shape, rng)

    def greedy(self, actions: Codes) -> Floats:
        """(S, A) the policy that takes the given action in each state."""
        actions = places("actions", actions, len(self.actions), (len(self.states),))
        policy = np.zeros(self.rewards.shape)
        policy[np.arange(len(self.states)), actions] = 1.0
        return policy

    @checked(alpha=real(0, 1), rng=generator)
    def pair(self, alpha: float, rng: Random) -> tuple[Floats, Floats]:
        """Two random policies with V(pi) - V(mu) = alpha (V_max - V_min) (eq. value_diff)."""
        return self.prescribe(alpha, self.random_policy(rng), self.random_policy(rng))

    @checked(alpha=real(0, 1), first=MATRIX, second=MATRIX)
    def prescribe(self, alpha: float, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Move two policies toward the best and the worst one until their values differ by alpha.

        With delta the difference that they have and beta = (alpha - delta) / (1 - delta), pi is
        (1 - beta) first + beta best and mu is (1 - beta) second + beta worst. Where delta > alpha, beta is
        negative and so are some "probabilities", by a little; with random policies on the paper's grid that
        happens in 2-3% of pairs at alpha = .01 and never from .02 on.
        """
        if self.span == 0:
            raise PodiumError("all policies of this bandit have the same value", hint="vary its rewards.")
        delta = (self.value(first) - self.value(second)) / self.span
        beta = 0.0 if delta == 1 else (alpha - delta) / (1 - delta)
        pi = (1 - beta) * first + beta * self.greedy(self.best_actions)
        mu = (1 - beta) * second + beta * self.greedy(self.worst_actions)
        return pi, mu

    # --- logs ------------------------------------------------------------------------------------------------

    @checked(behavior=MATRIX, per_state=whole(1, 1, MOST_DRAWS), rng=generator)
    def draw_actions(self, behavior: Floats, per_state: int, rng: Random) -> Codes:
        """(S, m) positions of m actions drawn in each state, repeats allowed, by inversion of the cdf."""
        self._check("the behaviour policy", behavior.shape, self.rewards.shape)
        return invert(behavior, rng.random((len(behavior), per_state)))

    @checked(behavior=optional(MATRIX))
    def log_of(self, drawn: Codes, behavior: Floats | None) -> Log:
        """The log of drawn actions (S, m), state by state; with the full behaviour policy where it is given."""
        drawn = places("drawn", drawn, len(self.actions), (len(self.states), None))
        if behavior is not None:
            self._check("the behaviour policy", behavior.shape, self.rewards.shape)
        state = np.repeat(np.arange(len(self.states)), drawn.shape[1])
        action = drawn.ravel()
        return Log(
            states=self.states[state],
            actions=self.actions[action],
            rewards=self.rewards[state, action],
            behavior=None if behavior is None else behavior[state],
            action_space=tuple(self.actions.tolist()),
        )

    def draw_log(self, behavior: Floats, per_state: int, rng: Random) -> Log:
        """A log of m actions in each state, drawn from a behaviour policy (S, A)."""
        return self.log_of(self.draw_actions(behavior, per_state, rng), behavior)

    @checked(policy=MATRIX, log=one_of(Log, hint="use bandit.draw_log(...)."))
    def on_rows(self, policy: Floats, log: Log) -> Floats:
        """(N, A) a policy (S, A) on the rows of a log of this bandit, as `podium.compare` takes it."""
        self._check("the policy", policy.shape, self.rewards.shape)
        place = np.minimum(np.searchsorted(self.states, log.states), len(self.states) - 1)
        if log.states.ndim != 1 or (self.states[place] != log.states).any():
            raise PodiumError("the log has states that the bandit lacks", hint="use bandit.draw_log(...).")
        return np.asarray(policy[place])

    def __repr__(self) -> str:
        return (
            f"Bandit: {len(self.states)} states, {len(self.actions)} actions, "
            f"values from {self.v_min:.4f} to {self.v_max:.4f}"
        )


@checked(s=numbers, a=numbers)
@np.errstate(over="ignore", invalid="ignore")  # far outside the grid
def reward_1_1(s: Floats, a: Floats) -> Floats:
    """Example 1.1 (eq. ex1.1_reward)."""
    rise, wave = np.exp(s + a) + np.sin(2 * np.pi * (s - a)), np.cos(2 * np.pi * (s + a)) + np.exp(s - a)
    return np.asarray(rise * wave)


@checked(s=numbers, a=numbers)
@np.errstate(over="ignore", invalid="ignore")  # far outside the grid
def reward_1_2(s: Floats, a: Floats) -> Floats:
    """Example 1.2 as the printed tables have it: 3/2 + cos 2pi(s+a) + (1/2) cos 10pi(s-a), times a Gaussian ridge."""
    waves = 1.5 + np.cos(2 * np.pi * (s + a)) + 0.5 * np.cos(10 * np.pi * (s - a))
    return np.asarray(waves * np.exp(-((a + np.cos(2 * np.pi * s)) ** 2)))


@checked(s=numbers, a=numbers)
@np.errstate(over="ignore", invalid="ignore")  # far outside the grid
def reward_1_2_text(s: Floats, a: Floats) -> Floats:
    """Example 1.2 as the text prints it (eq. ex1.2_reward); it does not give the printed tables."""
    waves = (3 + np.cos(2 * np.pi * (s + a)) + np.cos(10 * np.pi * (s - a))) / 2
    return np.asarray(waves * np.exp(-((a + np.cos(2 * np.pi * s)) ** 2)))


REWARDS: dict[str, RewardFunction] = {"1.1": reward_1_1, "1.2": reward_1_2, "1.2-text": reward_1_2_text}


@checked(name=text)
def example(name: str) -> Bandit:
    """A bandit of the paper: "1.1", "1.2" (as in the printed tables) or "1.2-text" (as in the text).

    >>> round(example("1.2").span, 4)
    2.667
    """
    if name not in REWARDS:
        raise PodiumError(f"no example {name!r}", hint="the examples are " + ", ".join(REWARDS) + ".")
    return Bandit.from_function(REWARDS[name])
