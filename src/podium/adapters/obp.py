"""Open Bandit Pipeline's `bandit_feedback` and `action_dist` as a log and policies, and back; needs no OBP.

A `bandit_feedback` is a dict of arrays: context (N, d), action (N,) as 0..A-1, reward (N,), pscore (N,), perhaps
pi_b (N, A, L), and position (N,) where lists of L places are filled. An `action_dist` is (N, A, L).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.arguments import numbers, whole
from podium.data.columns import Floats
from podium.data.errors import PodiumError, count, refuse_rows
from podium.data.log import Log
from podium.estimates.learned import state_features
from podium.policies import resolve_policies

NEEDED = ("context", "action", "reward")


def from_feedback(feedback: Mapping[str, Any]) -> Log:
    """A log from a `bandit_feedback`; the position joins the state where lists have several places.

    Examples
    --------
    >>> import numpy as np
    >>> pi_b = np.full((2, 3, 1), 1 / 3)
    >>> from_feedback({"context": np.zeros((2, 1)), "action": [0, 2], "reward": [1, 0], "pi_b": pi_b, "n_actions": 3})
    Log (memory): 2 rows, 2 distinct (state, action), 1 state, 3 actions, the full behaviour policy
    """
    actions, size = checked_actions(feedback, NEEDED)
    try:
        context = np.asarray(feedback["context"], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PodiumError(
            f"bandit_feedback['context'] must hold numbers: {error}", hint="encode texts as numbers first."
        ) from error
    context = context.reshape(len(context), -1) if context.size else np.zeros((len(actions), 1))
    place = places(feedback)
    if place is not None and place.max() > 0:
        context = np.column_stack([context, place])
    behavior = feedback.get("pi_b")
    return Log(
        states=context,
        actions=actions,
        rewards=feedback["reward"],
        propensities=feedback.get("pscore"),
        behavior=None if behavior is None else at_place("pi_b", behavior, len(actions), size, place),
        action_space=tuple(range(size)),
    )


def from_action_dists(action_dists: Mapping[str, Any], feedback: Mapping[str, Any]) -> dict[str, Floats]:
    """Policies (N, A) from one `action_dist` (N, A, L) per name."""
    if not isinstance(action_dists, Mapping):
        raise PodiumError(
            f"action_dists must name every policy; it is {type(action_dists).__name__}",
            hint="give {'name': action_dist, ...}.",
        )
    actions, size = checked_actions(feedback, ("action",))
    place = places(feedback)
    return {name: at_place(f"policy {name!r}", dist, len(actions), size, place) for name, dist in action_dists.items()}


def checked_actions(feedback: Any, needed: Sequence[str]) -> tuple[NDArray[Any], int]:
    """(N,) the actions of a `bandit_feedback`, and how many there are."""
    if not isinstance(feedback, Mapping):
        raise PodiumError(
            f"bandit_feedback must be a dict of arrays; it is {type(feedback).__name__}",
            hint="give what an OBP dataset's obtain_batch_bandit_feedback returns.",
        )
    missing = [key for key in needed if feedback.get(key) is None]
    if missing:
        held = "it holds " + ", ".join(map(str, feedback)) if feedback else "it is empty"
        raise PodiumError(f"bandit_feedback has no {missing[0]!r}", hint=held + ".")
    actions = np.asarray(feedback["action"])
    if actions.size == 0:
        raise PodiumError("bandit_feedback has no rows", hint="a log needs at least one logged interaction.")
    if actions.dtype.kind not in "iu" or actions.ndim != 1:
        raise PodiumError(
            f"bandit_feedback['action'] must hold whole numbers, one per row; it holds {actions.dtype} of shape "
            f"{actions.shape}",
            hint="continuous actions are podium.continuous.ContinuousLog(context, action, reward, densities=pscore).",
        )
    size = feedback.get("n_actions")
    size = int(actions.max()) + 1 if size is None else whole(1, 2)("n_actions", size)
    refuse_rows(
        "bandit_feedback['action']", f"must lie in 0..{size - 1}", (actions < 0) | (actions >= size), actions,
        "n_actions is the size of the action space.",
    )  # fmt: skip
    return actions, size


def to_feedback(log: Log) -> dict[str, Any]:
    """A `bandit_feedback` from a log; texts of the state become 0/1 columns, actions places in the action space."""
    if log.propensities is None:
        raise PodiumError(
            "Open Bandit Pipeline needs propensities, and the log has none",
            hint="estimate them: podium.estimate_propensities(log).log",
        )
    return {
        "n_rounds": len(log),
        "n_actions": log.n_actions,
        "context": state_features(log),
        "action_context": np.eye(log.n_actions),
        "action": log.action_codes.copy(),
        "position": None,
        "reward": log.rewards.copy(),
        "pscore": log.propensities.copy(),
        "pi_b": None if log.behavior is None else log.behavior[:, :, None].copy(),
    }


def to_action_dists(log: Log, policies: Any = None) -> dict[str, Floats]:
    """One `action_dist` (N, A, 1) per policy, in any form that `podium.compare` takes."""
    log, resolved = resolve_policies(log, policies)
    return {p.name: p.full(log.n_actions)[:, :, None].copy() for p in resolved}


def places(feedback: Mapping[str, Any]) -> NDArray[np.int64] | None:
    """(N,) the position of each row, from 0, where the feedback has one."""
    position = feedback.get("position")
    if position is None:
        return None
    place = np.asarray(position)
    rows = len(np.asarray(feedback["action"]))
    if place.dtype.kind not in "iu" or place.shape != (rows,):
        raise PodiumError(
            f"bandit_feedback['position'] must hold {count(rows, 'whole number')}; it holds {place.dtype} of shape "
            f"{place.shape}",
            hint="it is the place of the row's action in its list, from 0.",
        )
    refuse_rows("bandit_feedback['position']", "must not be negative", place < 0, place, "places count from 0.")
    return place.astype(np.int64)


def at_place(what: str, dist: Any, rows: int, size: int, place: NDArray[np.int64] | None) -> Floats:
    """(N, A) the distribution at each row's position."""
    array: Floats = numbers(what, dist)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[:2] != (rows, size):
        raise PodiumError(
            f"{what} must have the shape ({rows}, {size}, L); it has {array.shape}",
            hint=f"the log has {count(rows, 'row')} and {count(size, 'action')}.",
        )
    if place is None and array.shape[2] > 1:
        raise PodiumError(
            f"{what} fills {array.shape[2]} places, and bandit_feedback has no 'position'",
            hint="say which place each row is about with bandit_feedback['position'].",
        )
    index = np.zeros(rows, dtype=np.int64) if place is None else place
    refuse_rows(
        "bandit_feedback['position']", f"must lie below {array.shape[2]}", index >= array.shape[2], index,
        f"{what} has {count(array.shape[2], 'place')}.",
    )  # fmt: skip
    return array[np.arange(rows), :, index]
