"""What the posterior rests on: the log and its policies as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats, factorize, first_rows
from podium.data.log import Log
from podium.data.scales import standard_columns
from podium.engines.memory import available, check_fits, sample_need
from podium.policies import PolicySet
from podium.verdicts.action_kernels import action_kernels
from podium.verdicts.pairs import pair_indices


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
    eligible : (N, A) which actions were possible, if not all
    action_kernels : (A, A) similarities of the actions by name, where something is known of them
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
    eligible: NDArray[np.bool_] | None = None
    action_kernels: tuple[tuple[str, Floats], ...] = ()

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
        return first_rows(self.states, self.n_states)

    @cached_property
    def pairs(self) -> tuple[Codes, Codes]:
        """All K (K - 1) / 2 pairs (i, j), i < j."""
        return pair_indices(self.n_policies)

    @cached_property
    def points(self) -> Floats:
        """(S, d) the numeric columns of each distinct state, standardised over rows."""
        return standard_columns(self.numeric)[self.first_rows]

    def take(self, rows: Codes) -> Evidence:
        """The evidence of some rows alone."""
        pick = [None if x is None else x[rows] for x in (self.propensities, self.behavior)]
        states = np.unique(self.states[rows], return_inverse=True)[1].astype(np.int64)
        units = None if self.units is None else np.unique(self.units[rows], return_inverse=True)[1].astype(np.int64)
        return Evidence(
            self.numeric[rows], self.texts[rows], states, self.actions[rows], self.rewards[rows],
            self.policies[:, rows], pick[0], pick[1], units, self.action_features,
            None if self.eligible is None else self.eligible[rows],
            self.action_kernels,
        )  # fmt: skip


def gather(log: Log, policies: PolicySet, unit: float = 1.0) -> Evidence:
    """The arrays of a log and its policies, each of which must be known at every action; rewards in a given unit."""
    columns = log.state_columns.values()
    numeric = [c.astype(np.float64) for c in columns if c.dtype.kind in "iufb"]
    texts = [factorize(c)[0] for c in columns if c.dtype.kind not in "iufb"]
    rows = len(log)
    check_fits(sample_need(rows, log.n_actions, len(policies), available()))
    return Evidence(
        numeric=np.column_stack(numeric) if numeric else np.zeros((rows, 0)),
        texts=np.column_stack(texts) if texts else np.zeros((rows, 0), dtype=np.int64),
        states=log.state_codes,
        actions=log.action_codes,
        rewards=log.rewards / unit,
        policies=np.stack([p.full(log.n_actions) for p in policies]),
        propensities=log.propensities,
        behavior=log.behavior,
        units=None if log.units is None else factorize(log.units)[0],
        action_features=coordinates(log.action_space) if log.action_features is None else None,
        eligible=log.eligible,
        action_kernels=() if log.action_features is None else action_kernels(log.action_features),
    )


def coordinates(actions: Sequence[Any]) -> Floats | None:
    """(A, 1) actions that are numbers with decimals, as points of a line; whole numbers and texts are mere names."""
    if not all(isinstance(a, float) for a in actions) or all(float(a).is_integer() for a in actions):
        return None
    return standard_columns(np.array(actions, dtype=np.float64)[:, None])
