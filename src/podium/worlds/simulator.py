"""A health programme that sends reminders, small enough that the true value of every policy is known exactly.

Once a day the programme picks a person who is due for a check-up and sends one reminder: a call, an email,
a letter, a text message (sms) or none. The reward is 1 if the person attends within 30 days and 0 if not,
minus the cost of the reminder in the same unit. People come from a finite list of states, so the value

    V(pi) = sum_s P(s) sum_a pi(a|s) E[r | s, a]

is a finite sum, computed here without any sampling.

The numbers are invented, and chosen to teach. Two pairs of policies are nearly tied (`personalised` and
`call_over_65`; `current` and `random`; less than .01 apart): there "cannot tell" is the right answer.
All other pairs differ by more than .1. The staff who made the log follow habits, not success, so ignoring
propensities does little harm; every action has a chance of .05 or more, so weighting by them works as well.

Probabilities are whole multiples of 1e-9. Exponentials and matrix products differ in the last digit from one processor
to another, and this rounding removes that: the same seed writes the same file on every machine.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.data.files import write_output
from podium.worlds.sampling import softmax

Policy = Callable[[NDArray[Any]], Floats]  # states (N, 3) -> action probabilities (N, A)

DEFAULT_ROWS = 400
# Chosen because it teaches: the two best policies come out in the wrong order, and "cannot tell" says so.
DEFAULT_SEED = 13
PARTS = 10**9  # of which probabilities are whole multiples


@dataclass(frozen=True)
class Programme:
    """The people, what makes them attend, and five policies to compare.

    A state is ``(age, missed, distance_km)``: age in years, visits missed in the last year, distance to the
    clinic. With the features ``x = (1, (age - 60) / 10, missed, distance_km / 10)``,

        P(attend | s, a) = 1 / (1 + exp(-x . (unreminded + effects[a]))),    r = attend - costs[a].

    Every tuple of tuples below has one row per action and one column per feature.

    Examples
    --------
    >>> for name, value in Programme().true_values().items():
    ...     print(f"{name:13} {value:.3f}")
    current       0.353
    sms_all       0.468
    call_over_65  0.587
    personalised  0.593
    random        0.349
    """

    state_names: ClassVar[tuple[str, ...]] = ("age", "missed", "distance_km")

    actions: tuple[str, ...] = ("call", "email", "letter", "none", "sms")
    """Labels in sorted order; the axis A of every array follows it."""

    costs: tuple[float, ...] = (0.12, 0.005, 0.06, 0.0, 0.01)
    """Price of a reminder, as a share of what one attended visit is worth."""

    unreminded: tuple[float, ...] = (-0.8, 0.10, -0.25, -0.25)
    """Log odds of attending without a reminder: those who missed visits or live far away attend less."""

    effects: tuple[tuple[float, ...], ...] = (
        (1.6, 0.40, 0.05, 0.15),  # call: works for all, best for the old and those who live far away
        (0.6, -0.30, -0.20, 0.0),  # email: little, and less for those who missed visits
        (0.6, 0.35, -0.05, 0.0),  # letter: for the old
        (0.0, 0.0, 0.0, 0.0),  # none
        (1.3, -0.60, -0.05, 0.0),  # sms: for the young
    )
    """What a reminder adds to those log odds."""

    habits: tuple[tuple[float, ...], ...] = (
        (-0.35, 0.0, 0.30, 0.0),  # call those who missed visits
        (0.10, -0.20, 0.0, 0.0),  # email the young
        (0.0, 0.20, 0.0, 0.40),  # write to the old and those who live far away
        (0.35, 0.0, 0.0, 0.0),  # often nothing
        (0.20, 0.0, 0.0, 0.0),  # text anyone
    )
    """What the staff lean to now, in log odds."""

    beliefs: tuple[tuple[float, ...], ...] = (
        (0.45, 0.10, 0.0, 0.0),
        (0.35, -0.06, -0.05, 0.0),
        (0.33, 0.08, 0.0, 0.0),
        (0.25, 0.0, 0.0, 0.0),
        (0.45, -0.12, 0.0, 0.0),
    )
    """The expected reward in the eyes of `personalised`: linear, rounded, and blind to distance."""

    def population(self) -> tuple[NDArray[np.int64], Floats]:
        """All states (S, 3) and their probabilities (S,).

        Age, missed visits and distance are independent: age is a normal (mean 61, sd 15) kept to the whole
        years 30 to 89; the other two follow the tables in the code. S = 60 * 6 * 4 = 1440.
        """
        age = np.arange(30, 90)
        bell = np.exp(-(((age - 61) / 15) ** 2) / 2)
        missed = {0: 0.34, 1: 0.26, 2: 0.17, 3: 0.11, 4: 0.07, 5: 0.05}
        distance = {1: 0.30, 3: 0.35, 8: 0.25, 20: 0.10}

        grid = np.meshgrid(age, [*missed], [*distance], indexing="ij")
        joint = np.einsum("i,j,k->ijk", bell / bell.sum(), [*missed.values()], [*distance.values()])
        return np.stack(grid, axis=-1).reshape(-1, 3), joint.ravel()

    def attendance(self, states: NDArray[Any]) -> Floats:
        """Probability (N, A) that a person in each state attends after each reminder."""
        log_odds = _linear(states, np.array(self.unreminded) + np.array(self.effects))
        probability: Floats = 1 / (1 + np.exp(-log_odds))
        return probability

    def expected_reward(self, states: NDArray[Any]) -> Floats:
        """E[r | s, a] (N, A): the probability of attending minus the cost."""
        reward: Floats = self.attendance(states) - np.array(self.costs)
        return reward

    def policies(self) -> dict[str, Policy]:
        """The five candidates by name; each maps states (N, 3) to probabilities (N, A)."""
        return {
            "current": self.behavior,
            "sms_all": self.sms_all,
            "call_over_65": self.call_over_65,
            "personalised": self.personalised,
            "random": self.random,
        }

    def behavior(self, states: NDArray[Any]) -> Floats:
        """What the programme does now and has logged: a quarter at random, the rest by habit."""
        return _in_parts(0.25 * self.random(states) + 0.75 * softmax(_linear(states, np.array(self.habits))))

    def sms_all(self, states: NDArray[Any]) -> Floats:
        """Text everyone."""
        return self._chosen(np.full(len(states), "sms"))

    def call_over_65(self, states: NDArray[Any]) -> Floats:
        """Call those over 65, text the others."""
        return self._chosen(np.where(np.asarray(states)[:, 0] > 65, "call", "sms"))

    def personalised(self, states: NDArray[Any]) -> Floats:
        """Mostly the reminder that an imperfect model believes to be best: softmax(beliefs / .035)."""
        return _in_parts(softmax(_linear(states, np.array(self.beliefs)) / 0.035))

    def random(self, states: NDArray[Any]) -> Floats:
        """Each reminder with the same probability."""
        return np.full((len(states), len(self.actions)), 1 / len(self.actions))

    def true_value(self, policy: Policy) -> float:
        """V(policy), exactly."""
        states, probabilities = self.population()
        return float(probabilities @ (policy(states) * self.expected_reward(states)).sum(axis=1))

    def true_values(self) -> dict[str, float]:
        """V of each of the five candidates, exactly."""
        return {name: self.true_value(policy) for name, policy in self.policies().items()}

    def draw(self, rows: int = DEFAULT_ROWS, seed: int = DEFAULT_SEED) -> SimulatedLog:
        """Log `rows` days of the programme; a longer log of the same seed begins with the shorter one."""
        person, chance, luck = np.random.default_rng(seed).random((rows, 3)).T
        population, probabilities = self.population()
        # Inverse of the distribution function; the last edge, 1 up to rounding, is left out.
        states = population[np.searchsorted(np.cumsum(probabilities)[:-1], person, side="right")]
        behavior = self.behavior(states)
        sent = (chance[:, None] >= np.cumsum(behavior, axis=1)[:, :-1]).sum(axis=1)
        row = np.arange(rows)
        return SimulatedLog(
            states=states,
            state_names=self.state_names,
            action_space=self.actions,
            actions=np.array(self.actions)[sent],
            rewards=(luck < self.attendance(states)[row, sent]) - np.array(self.costs)[sent],
            propensities=behavior[row, sent],
            behavior=behavior,
            distributions={name: policy(states) for name, policy in self.policies().items()},
        )

    def _chosen(self, labels: NDArray[np.str_]) -> Floats:
        one_hot: Floats = (labels[:, None] == np.array(self.actions)).astype(float)
        return one_hot


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """What the programme wrote down, and what each candidate would have done in the same states."""

    states: NDArray[np.int64]  # (N, 3)
    state_names: tuple[str, ...]
    action_space: tuple[str, ...]
    actions: NDArray[np.str_]  # (N,)
    rewards: Floats  # (N,)
    propensities: Floats  # (N,), of the logged action
    behavior: Floats  # (N, A)
    distributions: dict[str, Floats]  # name -> (N, A)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The log as the columns of a log file; `time` is the day, counted from 1."""
        columns: dict[str, NDArray[Any]] = {"time": np.arange(1, len(self.actions) + 1)}
        columns |= dict(zip(self.state_names, self.states.T, strict=True))
        columns |= {"action": self.actions, "reward": self.rewards}
        logged = self.actions[:, None] == np.array(self.action_space)
        named = {"propensity": self.behavior}
        named |= {f"pi_{name}": distribution for name, distribution in self.distributions.items()}
        for name, distribution in named.items():
            columns[name] = distribution[logged]
            columns |= {f"{name}:{a}": distribution[:, i] for i, a in enumerate(self.action_space)}
        return columns

    def write_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a log file, whole or not at all; a file with other content is replaced only with `overwrite`."""
        write_output(path, self.csv_text(), overwrite=overwrite)

    def csv_text(self) -> str:
        """The log as CSV; its numbers read back unchanged."""
        columns = self.columns()
        content = io.StringIO(newline="")
        writer = csv.writer(content, lineterminator="\n")
        writer.writerow(columns)
        # Python floats are written by repr: the shortest text that reads back as the same number.
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        return content.getvalue()


def _linear(states: NDArray[Any], coefficients: Floats) -> Floats:
    """x . coefficients[a] (N, A), with the features x of `Programme`."""
    age, missed, distance = np.asarray(states, dtype=float).T[:, :, None]
    level, by_age, by_missed, by_distance = coefficients.T
    scores: Floats = level + (age - 60) / 10 * by_age + missed * by_missed + distance / 10 * by_distance
    return scores


def _in_parts(distribution: Floats) -> Floats:
    """The nearest whole multiples of 1e-9; the most probable action takes what they lack of 1.

    >>> _in_parts(np.array([[1 / 3, 1 / 3, 1 / 3]])).tolist()
    [[0.333333334, 0.333333333, 0.333333333]]
    """
    parts = np.rint(distribution * PARTS).astype(np.int64)
    parts[np.arange(len(parts)), parts.argmax(axis=1)] += PARTS - parts.sum(axis=1)
    rounded: Floats = parts / PARTS
    return rounded
