"""The paper's assumption on a log: how far its actions are from uniform, overall and in each state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.errors import PodiumError, shown
from podium.data.log import Log
from podium.theory.among_eligible import uniformity_among_eligible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class AssumptionCheck:
    """How far the observed actions are from uniform, the assumption of Theorems 1 to 3.

    Distances are total variation, (1/2) sum_a |share of a - 1/A|: 0 is uniform, 1 - 1/A is one action only.

    Attributes
    ----------
    rows, distinct_rows, states, actions : rows of the log, distinct (state, action) rows, states, and actions
    tv : distance of all distinct rows from uniform
    expected_tv : what `tv` is on average when each state's set of actions is uniform and as large as observed
    p_value : chi-square test (Cochran's Q) of uniform action sets over all states: the chance of a distance like the
        observed one under uniform sampling; coarse below about 5 distinct rows per action
    state_labels : the states, in the order of the arrays below
    state_rows, state_distinct : (S,) rows and distinct actions in each state
    state_tv : (S,) distance of the state's distinct actions from uniform, 1 - distinct/A
    state_expected_tv : (S,) its mean if the state's rows were uniform independent draws, (1 - 1/A)^rows; an observed
        distance well above it means that the same actions come back: the logger has preferences in that state
    share_single : share of the states with a single distinct action
    never_observed : actions of the action space that no row holds
    verdict : what follows from all this, and what does not
    """

    rows: int
    distinct_rows: int
    states: int
    actions: int
    tv: float
    expected_tv: float
    p_value: float
    state_labels: Sequence[Any]
    state_rows: NDArray[np.int64]
    state_distinct: NDArray[np.int64]
    state_tv: NDArray[np.float64]
    state_expected_tv: NDArray[np.float64]
    share_single: float
    never_observed: tuple[Any, ...]
    verdict: str

    def __repr__(self) -> str:
        mean_tv, mean_expected = self.state_tv.mean(), self.state_expected_tv.mean()
        return "\n".join(
            [
                f"AssumptionCheck: {self.rows} rows, {self.distinct_rows} distinct, "
                f"{self.states} states, {self.actions} actions",
                "                  distance  if uniform",
                f"overall           {self.tv:8.3f}  {self.expected_tv:10.3f}  p = {self.p_value:.3g}",
                f"mean over states  {mean_tv:8.3f}  {mean_expected:10.3f}",
                f"states with a single action: {self.share_single:.1%}; "
                f"actions never observed: {len(self.never_observed)}",
                self.verdict,
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, with one list per per-state array."""
        arrays = ("state_rows", "state_distinct", "state_tv", "state_expected_tv")
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lists = {name: plain[name].tolist() for name in arrays}
        labels = {name: list(plain[name]) for name in ("state_labels", "never_observed")}
        return plain | lists | labels


def check_assumption(log: Log) -> AssumptionCheck:
    r"""How far a log is from the uniform action sets that Theorems 1 to 3 assume (eq. hist_assumption).

    Works on distinct (state, action) rows, as LDE does. With D of them, m_s in state s, c_a states in which
    action a was observed, and A actions, the test statistic is Cochran's Q,

    .. math:: Q = \frac{A - 1}{A} \, \frac{\sum_a (c_a - D/A)^2}{\sum_s \frac{m_s}{A} (1 - \frac{m_s}{A})}

    chi-square with A - 1 degrees of freedom under uniform sets. It is Pearson's statistic when every state
    holds one action, and stays right when states hold several. The mean distance under uniform sets is
    computed exactly, without simulation.

    Where only some actions are eligible in a row, uniform means uniform among these (see
    `podium.theory.among_eligible`).

    A log that passes may still come from a logger that seeks reward: choosing the better action in each
    state can leave the actions evenly spread over the log. Nothing in states and actions alone shows that.

    Rewards and propensities of the log are not used.

    Examples
    --------
    >>> states, actions = ["home", "home", "work", "work", "car"], ["call", "call", "call", "mail", "call"]
    >>> check = check_assumption(Log(states, actions, np.zeros(5), action_space=("call", "mail", "none")))
    >>> check.distinct_rows, check.never_observed
    (4, ('none',))
    >>> round(check.tv, 3), round(check.expected_tv, 3)
    (0.417, 0.259)
    """
    if not hasattr(log, "action_codes"):
        hint = "make one with podium.read_log, podium.Log.from_frame or podium.Log."
        raise PodiumError(f"log must be a podium.Log in memory; it is {shown(log)}", hint=hint)
    actions, states = len(log.action_space), log.n_states
    state_rows = np.bincount(log.state_codes, minlength=states)
    cells = _distinct(log.state_codes.astype(np.int64) * actions + log.action_codes, states * actions)
    state_distinct = np.bincount(cells // actions, minlength=states)
    seen_in = np.bincount(cells % actions, minlength=actions)
    distinct = cells.size
    variance, tv, expected_tv, p_value = _uniformity(seen_in, *np.unique(state_distinct, return_counts=True))

    state_tv: NDArray[np.float64] = 1.0 - state_distinct / actions
    state_expected_tv = np.power(1.0 - 1.0 / actions, state_rows, dtype=np.float64)
    repeats = _repeats_too_often(state_tv, state_expected_tv, actions)
    if log.eligible is not None:
        found = uniformity_among_eligible(log, state_distinct, _mean_absolute_deviation)
        variance, tv, expected_tv, p_value = found.variance, found.tv, found.expected_tv, found.p_value
        state_tv, state_expected_tv, repeats = found.state_tv, found.state_expected_tv, found.repeats
    for array in (state_rows, state_distinct, state_tv, state_expected_tv):
        array.setflags(write=False)
    never_observed = tuple(log.action_space[code] for code in np.flatnonzero(seen_in == 0).tolist())
    return AssumptionCheck(
        rows=int(log.state_codes.size),
        distinct_rows=distinct,
        states=states,
        actions=actions,
        tv=tv,
        expected_tv=expected_tv,
        p_value=p_value,
        state_labels=log.state_labels,
        state_rows=state_rows,
        state_distinct=state_distinct,
        state_tv=state_tv,
        state_expected_tv=state_expected_tv,
        share_single=float(np.mean(state_distinct == 1)),
        never_observed=never_observed,
        verdict=_verdict(actions, distinct, variance, tv, expected_tv, p_value, repeats),
    )


def _uniformity(
    seen_in: NDArray[Any], sizes: NDArray[np.int64], size_counts: NDArray[np.int64]
) -> tuple[float, float, float, float]:
    """Variance of the states in which one action is seen, distance from uniform, its mean if uniform, and p-value.

    `seen_in` (A,) are the states in which each action was seen; states have `sizes` distinct actions, and
    `size_counts` is how many states have each.
    """
    actions, distinct = len(seen_in), int(seen_in.sum())
    chances = sizes / actions
    variance = float(np.sum(size_counts * chances * (1.0 - chances)))
    deviation: NDArray[np.float64] = seen_in - np.float64(distinct / actions)
    tv = float(np.abs(deviation).sum() / (2 * distinct))
    mean_deviation = 0.0 if variance < 1e-12 else _mean_absolute_deviation(chances, size_counts)
    return variance, tv, actions * mean_deviation / (2 * distinct), _uniformity_p_value(deviation, variance)


def _distinct(cells: NDArray[np.int64], space: int) -> NDArray[np.int64]:
    """The distinct cells, sorted; marking them in a table is six times faster than sorting where it fits."""
    if space > 8 * cells.size + 1024:
        return np.unique(cells)
    seen = np.zeros(space, dtype=np.bool_)
    seen[cells] = True
    return np.flatnonzero(seen)


def _mean_absolute_deviation(chances: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """E|X - E X| for X = sum of independent binomials(counts_j, chances_j), exact to rounding.

    The probabilities come from the characteristic function by an inverse Fourier transform on a window of
    at least 12 standard deviations around the mean, outside of which less than 1e-20 is left.
    """
    mean = float(counts @ chances)
    spread = math.sqrt(max(float(counts @ (chances * (1.0 - chances))), 0.0))
    half = math.ceil(12.0 * spread + 40.0)
    first = max(0, math.floor(mean) - half)
    length = min(int(counts.sum()), math.ceil(mean) + half) - first + 1
    turn = np.exp(-2j * np.pi * np.arange(length) / length)
    transform = np.ones(length, dtype=np.complex128)
    for p, count in zip(chances, counts, strict=True):
        transform *= (1.0 - p + p * turn) ** int(count)
    probabilities = np.fft.ifft(transform).real
    support = np.arange(first, first + length)
    return float(np.abs(support - mean) @ probabilities[support % length])


def _uniformity_p_value(deviation: NDArray[np.float64], variance: float) -> float:
    """Upper tail of Cochran's Q; 1 where every state holds all actions, which leaves nothing to test."""
    actions = deviation.size
    if variance < 1e-12:
        return 1.0
    from scipy.special import chdtrc

    statistic = (actions - 1) / actions * float(deviation @ deviation) / variance
    return float(chdtrc(actions - 1, statistic))


def _verdict(
    actions: int, distinct: int, variance: float, tv: float, expected_tv: float, p_value: float, repeats: bool
) -> str:
    if actions == 1:
        return "There is only one action: nothing to check and nothing to compare."
    if variance < 1e-12:
        return "Every state has seen every action: the assumption holds trivially and LDE misses no action."
    figures = f"distance {tv:.3f}, uniform sampling gives {expected_tv:.3f} on average, p = {p_value:.2g}"
    if p_value < 0.05:
        parts = [f"The actions do not look uniform ({figures}): do not lean on Theorems 1 to 3."]
    else:
        parts = [f"No departure from uniform actions shows ({figures})."]
    if distinct < 5 * actions:
        parts.append(f"With {distinct / actions:.1f} distinct rows per action only a gross departure could show.")
    if repeats:
        parts.append(
            "Within states the same actions come back more often than under uniform draws: "
            "the logger has preferences there."
        )
    parts.append(
        "A logger that seeks reward can pass this check and still make LDE rank wrongly: "
        "states and actions alone cannot show it, logged propensities against rewards can."
    )
    return " ".join(parts)


def _repeats_too_often(observed: NDArray[np.float64], expected: NDArray[np.float64], actions: int) -> bool:
    """Whether states miss more actions than uniform draws would, by more than chance explains.

    A state of uniform draws misses U actions with mean A q and Var[U] <= A q (1 - q), q = (1 - 1/A)^rows:
    whether one action is missed and whether another is are negatively correlated.
    """
    excess = float(np.sum(observed - expected))
    limit = float(np.sum(expected * (1.0 - expected))) / actions
    return excess > 3.0 * math.sqrt(limit)
