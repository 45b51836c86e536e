"""Memory: a log whose rows are arrays, in the batches that every engine delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from podium.baselines import BaselineRows, from_callable
from podium.columns import Codes, factorize, plain
from podium.engines.arrow import unit_group
from podium.engines.batches import ROWS, Batch
from podium.engines.sums import UNITS
from podium.log import Log
from podium.policies import PolicySet

T = TypeVar("T")
CELLS = 1_000_000  # probabilities that a batch holds
LEAST = 8_192  # rows of a batch, however wide


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of a log with its policies, in the log's order or state by state."""

    log: Log
    policies: PolicySet
    baseline: Any = None  # v(states) or q(states, actions)
    full: bool = False
    label_states: bool = False

    def fold(self, by_state: bool, function: Callable[..., T], label: str, policies: bool = True) -> T:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return function(self.batches(by_state, policies))

    @property
    def size(self) -> int:
        """Rows of a batch: fewer where whole distributions make each of them wide."""
        wide = sum(p.matrix.shape[1] for p in self.policies.policies if p.matrix is not None) if self.full else 0
        return min(ROWS, max(LEAST, CELLS // max(1, wide)))

    @cached_property
    def order(self) -> Codes:
        """The rows sorted by state, action, time and row number."""
        log = self.log
        if log.times is None:
            return np.argsort(log.cell_codes, kind="stable")
        return np.lexsort((factorize(log.times)[0], log.cell_codes))

    @cached_property
    def units(self) -> tuple[Codes, int]:
        """Each row's unit, and how many there are; beyond 4,096 they are put into as many random groups."""
        assert self.log.units is not None
        codes, labels = factorize(self.log.units)
        if len(labels) <= UNITS:
            return codes, len(labels)
        return np.array([unit_group(plain(x)) for x in labels], dtype=np.int64)[codes], UNITS

    @cached_property
    def fitted(self) -> BaselineRows | None:
        return None if self.baseline is None else from_callable(self.baseline, self.log, np.arange(len(self.log)))

    def batches(self, by_state: bool, policies: bool = True) -> Iterator[Batch]:
        log, size = self.log, self.size
        for start in range(0, len(log), size):
            stop = min(start + size, len(log))
            rows = self.order[start:stop] if by_state else np.arange(start, stop)
            pick: Any = rows if by_state else slice(start, stop)
            resolved = self.policies.policies if policies else ()
            policy = np.empty((len(resolved), stop - start)).T
            for k, p in enumerate(resolved):
                policy[:, k] = p.logged[pick]
            baseline = averages = None
            if self.fitted is not None and policies:
                baseline = self.fitted.logged[pick]
                if self.fitted.matrix is not None:
                    matrix = self.fitted.matrix[pick]
                    averages = np.column_stack([p.average(matrix, rows) for p in resolved])
            yield Batch(
                rows=rows,
                reward=log.rewards[pick],
                action=log.action_codes[pick],
                policy=policy,
                propensity=None if log.propensities is None else log.propensities[pick],
                state=log.state_codes[pick] if by_state else None,
                unit=None if log.units is None else self.units[0][pick],
                full=tuple(p.take(pick) for p in resolved) if self.full else (),
                behavior=None if log.behavior is None or not self.full else log.behavior[pick],
                baseline=baseline,
                averages=averages,
                labels={h: c[pick] for h, c in log.state_columns.items()} if self.label_states else {},
            )
