"""How probable an action sequence is under a policy that offers no probabilities: a proxy, in log space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data.arguments import checked, numbers, optional
from podium.data.errors import PodiumError, shown

Coordinates: TypeAlias = Literal["mean", "step", "exponent"]
Actions: TypeAlias = NDArray[np.floating] | Sequence[ArrayLike]


@checked(low=numbers, high=numbers, lengths=optional(numbers))
def log_proxy(
    policy_actions: Actions,
    logged_actions: Actions,
    low: ArrayLike,
    high: ArrayLike,
    lengths: ArrayLike | None = None,
    coordinates: Coordinates = "mean",
) -> NDArray[np.float64]:
    r"""(..., n) the log of the probability proxy of each episode's action sequence.

    With x_tj = (π_j(s_t) − a_tj) / (high_j − low_j), the distance of the policy's action from the logged one as a
    share of the action range, one coordinate j of a one-dimensional action space has (arXiv paper, eq. ex3_prob_proxy)

        π(a|s) = Π_t exp(1 − 1 / (1 − x_t²)) = exp(−Σ_t x_t² / (1 − x_t²)).

    It is 1 where the policy would have taken every logged action, and exactly 0 where it would once have taken the
    opposite end of the range (|x| >= 1). An episode that ended early has a product of fewer factors.

    Several coordinates are "computed coordinate-wise and then averaged" (Appendix C.3), which can be read in three
    ways, of which the first is the text's:

    - ``"mean"``: (1/d) Σ_j Π_t exp(1 − 1/(1 − x_tj²)), the average of the coordinates' proxies;
    - ``"step"``: Π_t (1/d) Σ_j exp(1 − 1/(1 − x_tj²)), averaged at each step;
    - ``"exponent"``: Π_t exp((1/d) Σ_j (1 − 1/(1 − x_tj²))), averaged inside the exponent, as the authors' program.

    By Jensen's inequality "exponent" is never larger than the other two. With one coordinate they are the same.

    Parameters
    ----------
    policy_actions, logged_actions : arrays (..., n, T, d), padded after each episode's end with anything; or lists of
        n arrays (T_n, d)
    low, high : the bounds of the action space, (d,) or numbers
    lengths : (n,) steps of each episode, where the arrays are padded
    coordinates : one of the readings above

    Examples
    --------
    Two steps, each half the range away: 2 (1 − 1/(1 − 1/4)) = −2/3. Then the opposite ends of the range.

    >>> log_proxy([[[0.0], [0.0]], [[1.0]]], [[[1.0], [-1.0]], [[-1.0]]], low=-1.0, high=1.0)
    array([-0.66666667,        -inf])
    """
    if not isinstance(coordinates, str) or coordinates not in get_args(Coordinates):
        raise PodiumError(
            f"coordinates must be 'mean', 'step' or 'exponent'; it is {shown(coordinates)}",
            hint="'mean' is the paper's text, 'exponent' its authors' program.",
        )
    if not isinstance(logged_actions, np.ndarray):
        logged_actions = _episodes(logged_actions)
        lengths = np.array([len(episode) for episode in logged_actions]) if lengths is None else lengths
    ours, theirs = _padded(policy_actions), _padded(logged_actions)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    _check_shapes(ours, theirs, low, high, lengths)
    if lengths is not None:  # the padding may hold anything; a match adds nothing to the sum
        inside = (np.arange(theirs.shape[-2]) < np.asarray(lengths)[:, None])[..., None]
        ours, theirs = np.where(inside, ours, low), np.where(inside, theirs, low)
    logs = _log_factors(ours, theirs, low, high)
    d = logs.shape[-1]
    if coordinates == "exponent":
        result = logs.sum(axis=-2).mean(axis=-1)
    elif coordinates == "step":
        result = (_log_sum(logs) - np.log(d)).sum(axis=-1)
    else:
        result = _log_sum(logs.sum(axis=-2)) - np.log(d)
    return np.asarray(result, dtype=np.float64)


def _check_shapes(
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    lengths: ArrayLike | None,
) -> None:
    """Arrays that do not fit together are refused with their shapes."""
    d = theirs.shape[-1] if theirs.ndim > 2 else 0
    sizes = {bound.shape for bound in (low, high)} - {(), (1,), (d,)}
    episodes = None if lengths is None else np.shape(lengths)
    fits = d and theirs.size and ours.shape[-3:] == theirs.shape[-3:] and not sizes
    if not fits or episodes not in (None, theirs.shape[-3:-2]) or not (high > low).all():
        raise PodiumError(
            f"the actions of the policy have shape {ours.shape}, the logged ones {theirs.shape}, the bounds "
            f"{low.shape} and {high.shape}, the lengths {episodes}; they must fit, and low must be below high",
            hint="give actions (n, T, d), bounds that are numbers or (d,), and n lengths.",
        )


def _log_factors(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1 − 1/(1 − x²) = −x² / ((1 − x)(1 + x)), and −inf where x >= 1.

    1 − x is added up from the rooms between the two actions and the bounds: subtracting x from 1 would lose all
    digits next to saturation, where most of the proxy is decided.
    """
    span = high - low
    x = np.abs(ours - theirs) / span
    rest = ((high - np.maximum(ours, theirs)) + (np.minimum(ours, theirs) - low)) / span
    opposite = rest <= 0
    return np.where(opposite, -np.inf, -(x * x) / (np.where(opposite, 1.0, rest) * (1 + x)))


def _log_sum(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ exp over the last axis, where every summand may be exactly 0."""
    top = logs.max(axis=-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift[..., None]).sum(axis=-1)) + shift)


def _episodes(actions: Actions) -> list[NDArray[np.float64]]:
    """Episodes as arrays (T, d) of one width."""
    hint = "give one array (T, d) of numbers per episode."
    try:
        parts = [np.atleast_1d(np.asarray(episode, dtype=np.float64)) for episode in actions]
    except (TypeError, ValueError, OverflowError) as error:
        raise PodiumError("the actions of episodes must be numbers", hint=hint) from error
    parts = [part[:, None] if part.ndim == 1 else part for part in parts]
    if not parts or len({part.shape[1:] for part in parts}) > 1 or parts[0].ndim != 2:
        raise PodiumError("the actions of episodes must all have the same coordinates", hint=hint)
    return parts


def _padded(actions: Actions) -> NDArray[np.float64]:
    """An array (..., n, T, d); of a list of episodes, padded with zeros."""
    if isinstance(actions, np.ndarray):
        if actions.dtype.kind not in "biuf":
            raise PodiumError("the actions of episodes must be numbers", hint="give an array (..., n, T, d).")
        return actions.astype(np.float64)
    episodes = _episodes(actions)
    result = np.zeros((len(episodes), max(map(len, episodes)), episodes[0].shape[1]))
    for row, episode in zip(result, episodes, strict=True):
        row[: len(episode)] = episode
    return result
