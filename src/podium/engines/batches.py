"""Rows of a log in batches, side by side state by state where asked for: what every engine hands to the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import Codes, Floats

if TYPE_CHECKING:
    from podium.policies import PolicyRows

ROWS = 61_440  # rows that an engine delivers at once: half of what DuckDB writes and reads together
CELLS = 1 << 17  # numbers (rows x policies) that the kernel looks at together: they stay in the processor's cache
WHOLE = 1 << 18  # rows of one state that are held together; a state with more comes in pieces


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a log, with every policy's probability of the logged action.

    Parameters
    ----------
    rows : (n,) their numbers in the log, from 0
    reward, propensity : (n,)
    action : (n,) codes of the logged actions
    policy : (n, K) pi_k(a_n|s_n)
    state : (n,) numbers that differ between states and never fall; None where rows come in the log's order
    latest : (n,) whether no later row has the same state and action; None with `state`
    unit : (n,) codes of units, or of random groups of them
    full : the policies on these rows with their whole distributions, where all are known in full
    behavior : (n, A) the behaviour policy, where it is known in full
    baseline : (n,) rhat(s_n, a_n) of a baseline that is no constant
    averages : (n, K) sum_a rhat(s_n, a) pi_k(a|s_n), where that baseline depends on the action
    whole : the last state ends here; False for all but the last piece of a state with very many rows
    """

    rows: Codes
    reward: Floats
    action: Codes
    policy: Floats
    propensity: Floats | None = None
    state: Codes | None = None
    latest: NDArray[np.bool_] | None = None
    unit: Codes | None = None
    full: tuple[PolicyRows, ...] = ()
    behavior: Floats | None = None
    baseline: Floats | None = None
    averages: Floats | None = None
    whole: bool = True
    labels: dict[str, Any] = field(default_factory=dict)  # state columns, for those who name states

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: slice | Codes) -> Batch:
        """Some of these rows."""
        parts: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.ndarray):
                parts[entry.name] = value[rows]
        parts["full"] = tuple(p.take(rows) for p in self.full)
        parts["labels"] = {name: column[rows] for name, column in self.labels.items()}
        return replace(self, **parts)


def join(parts: Sequence[Batch]) -> Batch:
    """Batches as one."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {}
    for entry in fields(Batch):
        values = [getattr(part, entry.name) for part in parts]
        if isinstance(values[0], np.ndarray):
            joined[entry.name] = np.concatenate(values)
    joined["full"] = tuple(one.join([p.full[k] for p in parts]) for k, one in enumerate(parts[0].full))
    joined["labels"] = {name: np.concatenate([p.labels[name] for p in parts]) for name in parts[0].labels}
    return replace(parts[-1], **joined)


def mark_latest(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Sorted by state, action and time, the last row of each (state, action) is the most recent one."""
    held: Batch | None = None
    for batch in batches:
        if held is not None:
            yield with_latest(held, batch)
        held = batch
    if held is not None:
        yield with_latest(held, None)


def with_latest(batch: Batch, following: Batch | None) -> Batch:
    assert batch.state is not None
    latest = np.ones(len(batch), dtype=bool)
    latest[:-1] = (batch.state[1:] != batch.state[:-1]) | (batch.action[1:] != batch.action[:-1])
    if following is not None and len(following):
        assert following.state is not None
        latest[-1] = batch.state[-1] != following.state[0] or batch.action[-1] != following.action[0]
    return replace(batch, latest=latest)


def whole_states(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows cut between states; a state of more than `WHOLE` rows in pieces, its last one marked whole."""
    held: list[Batch] = []
    size = 0
    inside = False  # pieces of the state that is held have gone out
    for batch in mark_latest(batches):
        assert batch.state is not None
        if held and held[-1].state is not None and batch.state[0] != held[-1].state[-1]:
            yield join(held)
            held, size, inside = [], 0, False
        start = int(np.searchsorted(batch.state, batch.state[-1]))  # where the last state begins
        if start > 0:
            if inside:  # the end of a long state goes out alone
                first = int(np.searchsorted(batch.state, batch.state[0], side="right"))
                yield join([*held, batch.take(slice(0, first))])
                if first < start:
                    yield batch.take(slice(first, start))
            else:
                yield join([*held, batch.take(slice(0, start))])
            held, size, inside = [], 0, False
        rest = batch.take(slice(start, len(batch))) if start else batch
        held.append(rest)
        size += len(rest)
        if size > WHOLE:
            # One row stays behind, so that the state always has an end to come.
            everything = join(held)
            yield replace(everything.take(slice(0, size - 1)), whole=False)
            held, size, inside = [everything.take(slice(size - 1, size))], 1, True
    if held:
        yield join(held)


def slices(batch: Batch, columns: int) -> Iterator[Batch]:
    """A batch in pieces of a size that suits the processor, wherever its states end."""
    step = slice_rows(batch, columns)
    if len(batch) <= step:
        yield batch
        return
    for start in range(0, len(batch), step):
        yield batch.take(slice(start, start + step))


def slice_rows(batch: Batch, columns: int) -> int:
    """Rows in each of some equal pieces."""
    most = max(1024, CELLS // max(1, columns))
    return -(-len(batch) // max(1, round(len(batch) / most)))


def state_slices(batch: Batch, columns: int) -> Iterator[Batch]:
    """The same, with every state in one piece."""
    assert batch.state is not None
    step = slice_rows(batch, columns)
    start = 0
    while len(batch) - start > step:
        stop = int(np.searchsorted(batch.state, batch.state[start + step - 1], side="right"))
        yield batch.take(slice(start, stop))
        start = stop
    if start < len(batch):
        yield batch.take(slice(start, len(batch))) if start else batch
