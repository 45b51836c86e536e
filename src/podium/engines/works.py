"""What is asked of all rows besides the methods' sums: a first look, the units of the sample, and rows at fault.

Each is a function of one record batch; what it returns adds up with `+`. It may be sent to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from podium.data.arrays import odd_values, refuse_odd
from podium.data.columns import Codes, Column, Floats, plain
from podium.data.eligible import signs_in
from podium.data.eligible_parts import Listing, Offers
from podium.data.errors import PodiumError
from podium.data.log import LARGEST, Log
from podium.data.probabilities import AGREE, SMALLEST
from podium.data.roles import Roles
from podium.engines import LATEST, ROW, P
from podium.engines.arrow import ArrowReader, column_of, labels_of, numbers, numbers_of
from podium.engines.parts import UNITS
from podium.engines.sample import bin_counts, unit_bins
from podium.estimates.moments import Moments
from podium.policies.batches import Trouble

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class EachBatch(Generic[P]):
    """Work that looks at every batch by itself and adds up what it finds, beginning with `nothing`."""

    look: Callable[[pa.RecordBatch], P]
    nothing: P

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> P:
        total: P = self.nothing
        for batch in batches:
            if batch.num_rows:
                total = total + self.look(batch)
        return total


@dataclass(frozen=True, eq=False)
class Survey:
    """What a first look at all rows tells: rewards, actions, units, and whether anything is wrong."""

    reward: Moments | None = None
    low: float = np.inf
    high: float = -np.inf
    actions: Mapping[Any, int] = field(default_factory=dict)  # label -> rows
    units: frozenset[Any] | None = frozenset()  # None: too many to name
    shares: Mapping[Any, tuple[float, float]] = field(default_factory=dict)  # label -> least and largest propensity
    bad: frozenset[str] = frozenset()  # columns that break a rule

    def __add__(self, other: Survey) -> Survey:
        counts = dict(self.actions)
        for label, rows in other.actions.items():
            counts[label] = counts.get(label, 0) + rows
        units = None if self.units is None or other.units is None else self.units | other.units
        return Survey(
            self.reward + other.reward if self.reward and other.reward else self.reward or other.reward,
            min(self.low, other.low),
            max(self.high, other.high),
            counts,
            None if units is None or len(units) > UNITS else units,
            merged_ranges(self.shares, other.shares),
            self.bad | other.bad,
        )


def survey_batch(batch: pa.RecordBatch, roles: Roles) -> Survey:
    """Cheap signs of trouble; what exactly is wrong is told by `batch_trouble`, row by row."""
    import pyarrow.compute as pc

    names, bad = roles.names, set()
    for header in {*roles.states, *roles.some("action", "time", "unit")}:
        column = batch.column(header)
        if column.null_count or is_strange(column):
            bad.add(header)
    reward = numbers(batch.column(names["reward"]))
    low, high = (np.nan, np.nan) if reward is None else (float(reward.min()), float(reward.max()))
    if reward is None or not max(abs(low), abs(high)) <= LARGEST:  # nan would fail
        bad.add(names["reward"])
        reward, low, high = np.zeros(batch.num_rows), 0.0, 0.0
    for header in roles.some("propensity"):
        p = numbers(batch.column(header))
        if p is None or not (np.min(p) >= SMALLEST and np.max(p) <= 1 + AGREE):
            bad.add(header)
    shares: dict[Any, tuple[float, float]] = {}
    for header in roles.some("propensity"):
        if not {header, names["action"]} & bad:
            shares = ranges(batch.column(names["action"]), numbers_of(batch, header))
    counted = pc.value_counts(batch.column(names["action"]))
    units: frozenset[Any] | None = frozenset()
    if "unit" in names:
        distinct = pc.unique(batch.column(names["unit"]))
        units = frozenset(map(plain, labels_of(distinct))) if len(distinct) <= UNITS else None
    counts: dict[Any, int] = {}
    for label, rows in zip(labels_of(counted.field("values")), counted.field("counts").to_pylist(), strict=True):
        counts[plain(label)] = counts.get(plain(label), 0) + rows  # 0.0 and -0.0 are one
    return Survey(Moments.of(reward[:, None]), low, high, counts, units, shares, frozenset(bad))


def ranges(labels: pa.Array, values: Floats) -> dict[Any, tuple[float, float]]:
    """The least and the largest value of each label."""
    coded = labels.dictionary_encode()
    codes, names = coded.indices.to_numpy(zero_copy_only=False), labels_of(coded.dictionary)
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    found: dict[Any, tuple[float, float]] = {}
    for name, *ends in zip(map(plain, names), low.tolist(), high.tolist(), strict=True):
        found = merged_ranges(found, {name: (ends[0], ends[1])})  # 0.0 and -0.0 are one
    return found


def merged_ranges(
    one: Mapping[Any, tuple[float, float]], other: Mapping[Any, tuple[float, float]]
) -> dict[Any, tuple[float, float]]:
    found = dict(one)
    for name, (low, high) in other.items():
        before = found.get(name, (low, high))
        found[name] = (min(low, before[0]), max(high, before[1]))
    return found


def is_strange(column: pa.Array) -> bool:
    """Whether a column of labels may hold what no label may be: nan, an infinity, an empty text, a lossy number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        return not pc.all(pc.is_finite(column)).as_py()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return bool(pc.any(pc.equal(column, "")).as_py())
    if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
        return labels_of(column).dtype == object
    return bool(pa.types.is_null(kind))


def count_signs(batch: pa.RecordBatch, listing: Listing) -> Codes:
    """How often each separator stands in the texts that list eligible actions."""
    return signs_in(batch.column(listing.name).unique().to_pylist(), listing.space)


def look_at_offers(batch: pa.RecordBatch, listing: Listing, roles: Roles) -> Offers:
    """The eligible actions of a batch."""
    columns = {h: column_of(batch, h) for h in listing.headers}
    p = [numbers_of(batch, h) for h in roles.some("propensity")]
    return Offers.of(listing, columns, labels_of(batch.column(roles.names["action"])), p[0] if p else None)


def latest_rewards(batch: pa.RecordBatch, reward: str) -> Moments:
    """The rewards of the latest row of each state and action."""
    values = numbers_of(batch, reward)
    return Moments.of(values[batch.column(LATEST).to_numpy(zero_copy_only=False)][:, None])


def count_bins(batch: pa.RecordBatch, unit: str, seed: int) -> Codes:
    """Rows in each bin of units."""
    return bin_counts(unit_bins(labels_of(batch.column(unit)), seed))


def rows_in_bins(batch: pa.RecordBatch, unit: str, seed: int, bins: int) -> tuple[Codes, ...]:
    """The numbers of the rows whose units are in the first bins."""
    inside = unit_bins(labels_of(batch.column(unit)), seed) < bins
    return (batch.column(ROW).to_numpy(zero_copy_only=False)[inside],)


def batch_trouble(
    batch: pa.RecordBatch,
    as_memory: Callable[[Any], dict[str, Column]],
    roles: Roles,
    actions: tuple[Any, ...],
    reader: ArrowReader | None,
    listing: Listing | None = None,
) -> Trouble:
    """What is wrong with the rows of a batch, as a log of their own and the policies on it would say."""
    order = [roles.names["reward"], *roles.states, *roles.some("action")]
    order += [] if listing is None else [*listing.headers, listing.name]
    order += roles.some("time", "unit", "propensity")
    rows = batch.column(ROW).to_numpy(zero_copy_only=False)
    try:
        columns = {h: c for h, c in as_memory(batch).items() if h in order}
        refuse_odd(odd_values(columns), roles)
        plain_roles = replace(roles, full=False, eligible=() if listing is None else listing.headers)
        Log.in_roles(columns, plain_roles, actions, listing=listing)
        if reader is None:
            return Trouble()
        log = reader.log_of(batch)
    except PodiumError as error:
        places = {f"column {h!r}": i - len(order) for i, h in enumerate(order)}
        return Trouble.of(error, places.get(getattr(error, "what", ""), -1), int(rows[0]))
    return reader.reader.trouble(rows, log)
