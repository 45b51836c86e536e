"""What a verdict rests on: the log and the policies as plain arrays, and the alarm for loggers that seek reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import factorize
from podium.log import Log
from podium.policies import PolicySet

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

NEIGHBOURS = 10
ALARM = 3.0  # |T_p| above this: the logger seems to seek reward
ALARM_ESTIMATED = 3.0  # the same where propensities are only estimated


@dataclass(frozen=True, eq=False)
class Evidence:
    """Arrays for N rows, A actions, K policies; nothing is checked here, the log has done that.

    Parameters
    ----------
    numeric : (N, d) numeric state columns, any scale; d may be 0
    texts : (N, q) codes of the text state columns; q may be 0
    states : (N,) codes 0..S-1 of the distinct states
    actions : (N,) codes 0..A-1
    rewards : (N,)
    policies : (K, N, A) full distributions pi_k(.|s_n)
    propensities : (N,) p_n, if logged
    behavior : (N, A) B(.|s_n), if known in full
    units : (N,) codes of units whose rows depend on each other, if any
    action_features : (A, f) coordinates of the actions, if they have any
    """

    numeric: Floats
    texts: Codes
    states: Codes
    actions: Codes
    rewards: Floats
    policies: Floats
    propensities: Floats | None = None
    behavior: Floats | None = None
    units: Codes | None = None
    action_features: Floats | None = None

    @property
    def rows(self) -> int:
        return len(self.rewards)

    @property
    def n_actions(self) -> int:
        return int(self.policies.shape[2])

    @property
    def n_policies(self) -> int:
        return len(self.policies)

    @cached_property
    def n_states(self) -> int:
        return int(self.states.max()) + 1

    @cached_property
    def first_rows(self) -> Codes:
        """(S,) the first row of each distinct state."""
        rows = np.empty(self.n_states, dtype=np.int64)
        rows[self.states[::-1]] = np.arange(self.rows)[::-1]
        return rows

    @cached_property
    def pairs(self) -> tuple[Codes, Codes]:
        """All K (K - 1) / 2 pairs (i, j), i < j."""
        i, j = np.array(list(combinations(range(self.n_policies), 2)), dtype=np.int64).reshape(-1, 2).T
        return i, j

    @cached_property
    def points(self) -> Floats:
        """(S, d) the numeric columns of each distinct state, standardised over rows."""
        spread = self.numeric.std(axis=0)
        scaled: Floats = (self.numeric - self.numeric.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return scaled[self.first_rows]

    @cached_property
    def baseline(self) -> Floats:
        """(N,) mean reward of the about 10 nearest other rows in state; never the row's own reward."""
        return neighbour_means(self)

    def take(self, rows: Codes) -> Evidence:
        """The evidence of some rows alone."""
        pick = [None if x is None else x[rows] for x in (self.propensities, self.behavior)]
        states = np.unique(self.states[rows], return_inverse=True)[1].astype(np.int64)
        units = None if self.units is None else np.unique(self.units[rows], return_inverse=True)[1].astype(np.int64)
        return Evidence(
            self.numeric[rows], self.texts[rows], states, self.actions[rows], self.rewards[rows],
            self.policies[:, rows], pick[0], pick[1], units, self.action_features,
        )  # fmt: skip


def gather(log: Log, policies: PolicySet) -> Evidence:
    """The arrays of a log and its policies, each of which must be known at every action."""
    columns = log.state_columns.values()
    numeric = [c.astype(np.float64) for c in columns if c.dtype.kind in "iufb"]
    texts = [factorize(c)[0] for c in columns if c.dtype.kind not in "iufb"]
    rows = len(log)
    return Evidence(
        numeric=np.column_stack(numeric) if numeric else np.zeros((rows, 0)),
        texts=np.column_stack(texts) if texts else np.zeros((rows, 0), dtype=np.int64),
        states=log.state_codes,
        actions=log.action_codes,
        rewards=log.rewards,
        policies=np.stack([p.full(log.n_actions) for p in policies]),
        propensities=log.propensities,
        behavior=log.behavior,
        units=None if log.units is None else factorize(log.units)[0],
        action_features=coordinates(log.action_space),
    )


def coordinates(actions: Sequence[Any]) -> Floats | None:
    """(A, 1) actions that are numbers with decimals, as points of a line; whole numbers and texts are mere names."""
    if not all(isinstance(a, float) for a in actions) or all(float(a).is_integer() for a in actions):
        return None
    points = np.array(actions, dtype=np.float64)[:, None]
    spread = points.std()
    scaled: Floats = (points - points.mean()) / (spread or 1.0)
    return scaled


def neighbour_means(evidence: Evidence, neighbours: int = NEIGHBOURS) -> Floats:
    """Leave-one-out mean reward of the nearest states, added whole until they hold `neighbours` other rows.

    Text columns must match exactly; a row without neighbours gets the leave-one-out mean of all rows.
    """
    from scipy.spatial import cKDTree

    rewards, states = evidence.rewards, evidence.states
    rows = evidence.rows
    if rows == 1:
        return rewards.copy()
    centred = rewards - rewards.mean()
    counts = np.bincount(states).astype(float)
    sums = np.bincount(states, weights=centred)
    if evidence.numeric.shape[1]:
        near_counts, near_sums = counts.copy(), sums.copy()
        texts = evidence.texts[evidence.first_rows]
        block = (
            np.unique(texts, axis=0, return_inverse=True)[1].ravel() if texts.shape[1] else np.zeros(len(counts), int)
        )
        for members in np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1]):
            k = min(neighbours + 1, len(members))
            points = evidence.points[members]
            _, near = cKDTree(points).query(points, k=[*range(1, k + 1)])
            total = np.cumsum(counts[members][near], axis=1)
            enough = total - 1 >= neighbours
            last = np.where(enough.any(axis=1), enough.argmax(axis=1), k - 1)
            index = np.arange(len(members))
            near_counts[members] = total[index, last]
            near_sums[members] = np.cumsum(sums[members][near], axis=1)[index, last]
        counts, sums = near_counts, near_sums
    others, total = counts[states] - 1, sums[states] - centred
    everyone = -centred / (rows - 1)
    means: Floats = rewards.mean() + np.where(others > 0, total / np.maximum(others, 1), everyone)
    return means


def reward_seeking(evidence: Evidence) -> float:
    """T_p: t statistic of corr(log p, r - b), b the mean reward of neighbouring rows.

    A logger that plays good actions more often shows up as a large positive value. Without logged propensities
    each action's share of the rows stands for p. Constant p or r - b: 0.
    """
    if evidence.propensities is not None:
        log_p = np.log(evidence.propensities)
    else:
        log_p = np.log(np.bincount(evidence.actions, minlength=evidence.n_actions)[evidence.actions])
    return correlation_t(log_p, evidence.rewards - evidence.baseline)


def correlation_t(x: Floats, y: Floats) -> float:
    """t statistic of a correlation; 0 where x or y does not vary.

    >>> correlation_t(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    0.0
    """
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    if len(x) < 3 or scale <= 1e-12 * max(len(x), 1):
        return 0.0
    r = float(np.clip(x @ y / scale, -1 + 1e-12, 1 - 1e-12))
    return r * float(np.sqrt((len(x) - 2) / (1 - r * r)))


def degrees_of_freedom(second: Floats, fourth: Floats, clusters: int) -> Floats:
    """nu = clip(2 J / (k - 1), 1, J - 1), k = J sum C^4 / (sum C^2)^2: few clusters that matter give few degrees."""
    kurtosis = clusters * fourth / np.maximum(second**2, 1e-300)
    freedom: Floats = np.clip(2 * clusters / np.maximum(kurtosis - 1, 1e-9), 1.0, max(clusters - 1, 1))
    return freedom


def pair_power_sums(columns: Floats, i: Codes, j: Codes) -> tuple[Floats, Floats]:
    """Sums over rows of (x_i - x_j)^2 and ^4 for many pairs, from K x K products of powers."""
    scale = np.abs(columns).max() or 1.0
    x = columns / scale
    gram = x.T @ x
    square = x * x
    g13, g22 = x.T @ (square * x), square.T @ square
    second = gram[i, i] + gram[j, j] - 2 * gram[i, j]
    fourth = g22[i, i] + g22[j, j] + 6 * g22[i, j] - 4 * g13[i, j] - 4 * g13[j, i]
    return np.maximum(second, 0) * scale**2, np.maximum(fourth, 0) * scale**4
