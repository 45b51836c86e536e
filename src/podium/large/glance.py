"""What figures and the report show of a large log beyond its sums, each by a pass of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from podium.engines.batches import Batch, slices
from podium.engines.memory import MemoryRows
from podium.engines.sums import Sums
from podium.estimators import Estimator
from podium.large import Large, ScannedRows
from podium.states import StateComparison, states_in_passes


def policies_at_a_glance(large: Large) -> Sums:
    """What every policy would do, next to what was done.

    "apart" (K,) is how far it is from the propensities at most, where there are any; "plays" (K, A) the sum of its
    probabilities of each action, where all policies are known in full.
    """
    look = partial(look_at_policies, actions=large.actions)
    return large.source.fold(False, look, "what the policies want")


def look_at_policies(batches: Iterable[Batch], actions: int) -> Sums:
    total = Sums()
    for batch in batches:
        for rows in slices(batch, max(1, len(batch.full)) * actions):
            add, top = {}, {}
            if rows.propensity is not None:
                top["apart"] = np.abs(rows.policy - rows.propensity[:, None]).max(axis=0)
            if rows.full:
                add["plays"] = np.array([p.full(actions).sum(axis=0) for p in rows.full])
            total = total + Sums(add, top)
    return total


def by_state(large: Large, method: Estimator, duplicates: str | None, lower_is_better: bool) -> StateComparison | None:
    """All policies state by state; None where the baseline is the state's own mean, which needs all rows at once."""
    if large.baseline == "state":
        return None
    method = method if method.linear else method.counterpart
    named = replace(large, source=naming_states(large))
    return states_in_passes(named, method, large.baseline, duplicates, None, 0.0, lower_is_better, 0)


def naming_states(large: Large) -> MemoryRows | ScannedRows:
    """The rows with the columns that name their states."""
    source = large.source
    if isinstance(source, MemoryRows):
        return replace(source, label_states=True)
    assert isinstance(source, ScannedRows)
    states = set(source.log.roles.states)
    columns = tuple(h for h in source.log.columns if h in states or h in source.columns)
    return ScannedRows(source.log, replace(source.reader, label_states=True), columns)
