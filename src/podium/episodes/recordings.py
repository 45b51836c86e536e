"""Recorded episodes: one `Episode` from whatever holds observations, actions and rewards, Minari datasets included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3 import is_discrete
from podium.data.arguments import optional, text
from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError, count, show_value, shown
from podium.data.owned import Own, owned
from podium.data.probabilities import AGREE
from podium.episodes.bounds import Bounds, bounds_of

PARTS = ("observations", "actions", "rewards")
NAMES = (*PARTS, "terminated", "terminations", "behavior", "propensities")
FORMS = "give Episode(observations, actions, rewards), a mapping or an object with those names, or a tuple of the three"


@dataclass(frozen=True, eq=False, repr=False)
class Episode(Own):
    """One recorded episode of T steps.

    Parameters
    ----------
    observations : (T, ...) what was seen before each action; a last one, after the final step, is dropped
    actions : (T, d) or (T,) what was done
    rewards : (T,)
    terminated : whether the environment ended the episode (True) or the recording stopped (False); None: not known
    behavior : the name of the policy that acted, if known
    bounds : of the action space, if known
    propensities : (T,) probability, or density, of each logged action under the policy that acted, if known

    Examples
    --------
    >>> Episode(observations=[[0.0], [0.5]], actions=[0.1, 0.2], rewards=[1.0, 2.0])
    Episode: 2 steps, return 3
    """

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: Floats
    terminated: bool | None = None
    behavior: str | None = None
    bounds: Bounds | None = None
    propensities: Floats | None = None

    if TYPE_CHECKING:  # anything that reads as an array is welcome; the fields hold what was read

        def __init__(
            self,
            observations: Any,
            actions: Any,
            rewards: Any,
            terminated: bool | None = None,
            behavior: str | None = None,
            bounds: Any = None,
            propensities: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        rewards = numeric("rewards", self.rewards)
        if rewards.ndim != 1:
            raise PodiumError(
                f"rewards must have one number per step; their shape is {rewards.shape}", hint=FORMS + "."
            )
        steps = len(rewards)
        if steps == 0:
            raise PodiumError("the episode has no steps", hint="leave empty episodes out.")
        observations, actions = numeric("observations", self.observations), numeric("actions", self.actions)
        if observations.ndim == 0 or len(observations) not in (steps, steps + 1):
            raise PodiumError(
                f"there are {count(steps, 'reward')} and {count(size(observations), 'observation')}",
                hint="give one observation per step, with or without the one after the last step.",
            )
        if size(actions) != steps:
            raise PodiumError(
                f"there are {count(steps, 'reward')} and {count(size(actions), 'action')}",
                hint="give one action per step.",
            )
        if actions.size == 0:
            raise PodiumError("its actions have no coordinates", hint="an action is at least one number.")
        observations = observations[:steps]
        for name, values in zip(PARTS, (observations, actions, rewards), strict=True):
            refuse_steps(name, "must be finite numbers", ~np.isfinite(values), values, "repair or drop the episode.")
        if self.propensities is not None:
            object.__setattr__(self, "propensities", owned(step_propensities(self.propensities, actions)))
        ended = None
        if self.terminated is not None:
            marks = np.asarray(self.terminated)
            if marks.dtype.kind not in "biuf":
                raise PodiumError(f"terminated must be True or False; it is {shown(self.terminated)}", hint=FORMS + ".")
            ended = bool(marks.any())
        behavior, bounds = optional(text)("behavior", self.behavior), self.bounds
        object.__setattr__(self, "behavior", behavior)
        object.__setattr__(self, "bounds", bounds if bounds is None or is_discrete(bounds) else bounds_of(bounds))
        parts = {"observations": observations, "actions": actions, "rewards": rewards, "terminated": ended}
        for name, value in parts.items():
            object.__setattr__(self, name, owned(value) if isinstance(value, np.ndarray) else value)

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return f"Episode: {count(len(self), 'step')}, return {self.rewards.sum():g}"


def numeric(name: str, values: Any) -> NDArray[Any]:
    """An array of numbers; whole numbers stay whole."""
    if isinstance(values, Mapping):
        raise PodiumError(
            f"{name} are a mapping of {', '.join(map(str, values))}",
            hint="flatten them into one array per step, and give policies that take it.",
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu":
            if array.dtype.kind == "c":
                raise TypeError("complex numbers")
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise PodiumError(
            f"{name} must be numbers, the same count in every step", hint=f"{FORMS}; an array each."
        ) from error
    return array.astype(np.float64) if name == "rewards" else array


def step_propensities(values: Any, actions: NDArray[Any]) -> Floats:
    """(T,) what is above 0, and at most 1 where actions are whole numbers."""
    steps = len(actions)
    p = numeric("propensities", values).astype(np.float64)
    if p.shape != (steps,):
        raise PodiumError(
            f"there are {count(steps, 'reward')} and propensities of shape {p.shape}", hint="give one per step."
        )
    refuse_steps("propensities", "must be above 0", ~(p > 0), p, "a step that was logged had some probability.")
    if actions.dtype.kind in "iu":
        hint = "a probability is at most 1; actions that are continuous, with densities, are decimal numbers."
        refuse_steps("propensities", "must be at most 1 where actions are whole numbers", p > 1 + AGREE, p, hint)
    return p


def check_steps(what: str, value: Any, hint: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise PodiumError(f"{what} must be a whole number from 1 on; it is {show_value(value)}", hint=hint)


def size(array: NDArray[Any]) -> int:
    return len(array) if array.ndim else 0


def refuse_steps(
    what: str, rule: str, bad: NDArray[np.bool_], values: NDArray[Any], hint: str, starts: Codes | None = None
) -> None:
    """Raise if any step is bad, naming the first one (from 1), its value, and the count.

    The steps are those of one episode, or of several that begin at `starts`.
    """
    flat, cells = bad.reshape(len(bad), -1), values.reshape(len(bad), -1)
    steps = np.flatnonzero(flat.any(axis=1))
    if not steps.size:
        return
    t, j = int(steps[0]), int(flat[steps[0]].argmax())
    place, coordinate = f"step {t + 1}", ""
    if starts is not None:
        number = int(np.searchsorted(starts, t, side="right"))
        place = f"step {t - starts[number - 1] + 1} of episode {number}"
        coordinate = f" at coordinate {j + 1}" if flat.shape[1] > 1 else ""
    raise PodiumError(
        f"{what} {rule}; {place} holds {show_value(cells[t, j])}{coordinate} ({count(steps.size, 'step')})", hint=hint
    )


def as_episodes(source: Any) -> tuple[Episode, ...]:
    """Episodes from a list of them in any form, or a Minari dataset; all of one shape."""
    if isinstance(source, Episode | Mapping | str | bytes) or not isinstance(source, Iterable):
        raise PodiumError(f"episodes must be a list of episodes; it is {type(source).__name__}", hint=FORMS + ".")
    episodes = []
    for number, item in enumerate(source, start=1):
        try:
            episodes.append(as_episode(item))
        except PodiumError as error:
            raise PodiumError(f"episode {number}: {error.message}", hint=error.hint) from error
    if not episodes:
        raise PodiumError("there are no episodes", hint="a comparison needs at least one.")
    check_shapes(episodes)
    space = getattr(source, "action_space", None)  # of a Minari dataset
    if space is not None and not is_discrete(space):
        bounds = bounds_of(space)
        episodes = [e if e.bounds is not None else replace(e, bounds=bounds) for e in episodes]
    return tuple(episodes)


def as_episode(item: Any) -> Episode:
    """One episode in any of its forms."""
    if isinstance(item, Episode):
        return item
    if isinstance(item, Sequence) and not isinstance(item, str | bytes) and len(item) in (3, 4):
        return Episode(*item)
    parts: dict[str, Any] = (
        dict(item) if isinstance(item, Mapping) else {name: getattr(item, name, None) for name in NAMES}
    )
    missing = [name for name in PARTS if parts.get(name) is None]
    if missing:
        raise PodiumError(f"it has no {missing[0]}", hint=FORMS + ".")
    ended = parts.get("terminated")
    ended = parts.get("terminations") if ended is None else ended  # Minari has one per step
    given = parts.get("propensities")
    return Episode(
        parts["observations"], parts["actions"], parts["rewards"], ended, parts.get("behavior"), propensities=given
    )


def check_shapes(episodes: Sequence[Episode]) -> None:
    """Every observation has the size of the first, and so has every action."""
    first = episodes[0]
    for number, episode in enumerate(episodes[1:], start=2):
        for name in ("observations", "actions"):
            here, there = getattr(episode, name).shape[1:], getattr(first, name).shape[1:]
            if here != there:
                raise PodiumError(
                    f"episode {number}: {name} of shape {here}, where those of episode 1 have {there}",
                    hint="compare episodes of one environment.",
                )
