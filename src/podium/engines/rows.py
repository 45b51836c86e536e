"""A log with its policies, examined wherever its rows lie: the parts of all rows, and a sample of them in memory.

A log of up to 20,000 rows is its own sample and its only part. Of a larger one, values come from passes over its parts,
and certainty from the sample. Nobody beyond this module asks where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats, factorize
from podium.data.errors import BadRows, PodiumError
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scan import HEAD, ScannedLog
from podium.engines import fits
from podium.engines.arrow import ArrowReader
from podium.engines.parts import UNITS, Part, latest_rows, one_thread, part_rows, pieces, unit_codes
from podium.engines.sample import bin_counts, bins_to_draw, draw_rows, unit_bins
from podium.policies import PolicySet, named_policies, noticed, resolve_policies
from podium.policies.batches import NewActions, Reader, Trouble, columns_needed, prepare_policy, refuse_unnamed, widen
from podium.policies.cross_fitted import teach
from podium.policies.specs import spec_warnings
from podium.propensities.frequencies import contradiction

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Facts:
    """Exact figures of all rows of a log."""

    mean: float
    low: float
    high: float
    counts: Codes  # (A,) rows of each action
    single: int  # states with one row

    @classmethod
    def of(cls, log: Log) -> Facts:
        r = log.rewards
        counts = np.bincount(log.action_codes, minlength=log.n_actions)
        single = int((np.bincount(log.state_codes) == 1).sum())
        return cls(mean_of(r), float(r.min()), float(r.max()), counts, single)


class Source(Protocol):
    """Where the parts of a log come from."""

    def fold(self, function: Callable[[Iterable[Part]], T], label: str, latest: bool) -> T:
        """What a function makes of all parts, in their order; what it makes of some of them must add up with `+`."""
        ...

    def mean_reward(self, latest: bool) -> float:
        """Of all rows, or of the latest row of each state and action."""
        ...

    def facts(self) -> Facts:
        """Exact figures of all rows."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """A log and its policies.

    Parameters
    ----------
    log : as it is shown, over the action space of all policies
    sample : the rows that certainty comes from; the log itself where it is small
    policies : on the rows of the sample
    source : the parts of all rows
    groups : how many units, or groups of units, the parts have; 0 without units
    drawn : (n,) the numbers of the sample's rows; None where it holds all
    """

    log: Log | ScannedLog
    sample: Log
    policies: PolicySet
    source: Source
    groups: int = 0
    drawn: Codes | None = None

    @property
    def whole(self) -> bool:
        """Whether the sample holds every row."""
        return self.drawn is None

    def __len__(self) -> int:
        return len(self.log)

    @cached_property
    def numbers(self) -> Codes:
        """The numbers of the sample's rows, from 0."""
        return np.arange(len(self.sample)) if self.drawn is None else self.drawn

    @cached_property
    def contradiction(self) -> Fact | None:
        """What shows that the propensities cannot be right."""
        return contradiction(self.sample)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed about propensities and policies."""
        return (*((self.contradiction,) if self.contradiction else ()), *self.policies.warnings)

    @cached_property
    def sample_part(self) -> Part:
        """The sample as a part."""
        units = None if self.sample.units is None else factorize(self.sample.units)[0]
        return Part(self.numbers, self.sample, self.policies, latest_rows(self.sample), units)

    @cached_property
    def sample_alone(self) -> Rows:
        """The sample as a log of its own."""
        if self.whole:
            return self
        groups = 0 if self.sample_part.units is None else int(self.sample_part.units.max()) + 1
        part = replace(self.sample_part, rows=np.arange(len(self.sample)))
        return Rows(self.sample, self.sample, self.policies, WholeRows(part), groups)

    @property
    def all_at_once(self) -> Part:
        """All rows as one part, for what was opened so (`open_rows`, at_once)."""
        return self.source.part if isinstance(self.source, WholeRows) else self.sample_part

    def fold(self, function: Callable[[Iterable[Part]], T], label: str, latest: bool = False) -> T:
        """What a function makes of all parts."""
        return self.source.fold(function, label, latest)


def of_pieces(function: Callable[[Iterable[Part]], T], parts: Iterable[Part]) -> T:
    return function(piece for part in parts for piece in pieces(part))


# --- a log whose policies are known on all rows ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows that are arrays, with every policy on all of them."""

    part: Part

    @property
    def log(self) -> Log:
        return self.part.log

    def fold(self, function: Callable[[Iterable[Part]], T], label: str, latest: bool) -> T:
        with one_thread():
            return function(iter([self.part]))

    def mean_reward(self, latest: bool) -> float:
        return mean_of(self.log.rewards[self.log.latest] if latest else self.log.rewards)

    def facts(self) -> Facts:
        return Facts.of(self.log)


def mean_of(rewards: Floats) -> float:
    """Equal rewards are their own mean: that of many is rounded."""
    first = float(rewards[0])
    return first if bool((rewards == first).all()) else float(rewards.mean())


# --- a large log in memory ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """Rows that are arrays, whose policies are asked part by part."""

    log: Log
    reader: Reader

    @cached_property
    def units(self) -> Codes | None:
        return None if self.log.units is None else unit_codes(self.log)[0]

    @cached_property
    def latest(self) -> NDArray[np.bool_]:
        return latest_rows(self.log)

    def fold(self, function: Callable[[Iterable[Part]], T], label: str, latest: bool) -> T:
        with one_thread(), self.told_of_all():
            return function(self.parts(latest))

    @contextmanager
    def told_of_all(self) -> Iterator[None]:
        """What is wrong with a policy on some rows, told of all rows."""
        try:
            yield
        except (BadRows, NewActions):
            found = Trouble()
            for rows, log in self.slices():
                found = found + self.reader.trouble(rows, log)
            found.tell()
            raise

    def mean_reward(self, latest: bool) -> float:
        return mean_of(self.log.rewards[self.latest] if latest else self.log.rewards)

    def facts(self) -> Facts:
        return Facts.of(self.log)

    def slices(self) -> Iterator[tuple[Codes, Log]]:
        """Consecutive rows: their numbers, and the log of them."""
        size = part_rows(self.log.n_actions, len(self.reader.policies))
        for start in range(0, len(self.log), size):
            some = slice(start, min(start + size, len(self.log)))
            yield np.arange(some.start, some.stop), self.log.take(some)

    def parts(self, latest: bool) -> Iterator[Part]:
        for rows, log in self.slices():
            yield Part(
                rows,
                log,
                self.reader.policies_on(rows, log),
                self.latest[rows] if latest else None,
                None if self.units is None else self.units[rows],
            )


# --- a log that stays where it is --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScannedRows:
    """Rows behind an engine."""

    log: ScannedLog
    reader: ArrowReader
    columns: tuple[str, ...]

    def fold(self, function: Callable[[Iterable[Part]], T], label: str, latest: bool) -> T:
        return self.log.fold(self.reader, self.columns, partial(of_pieces, function), label, latest)

    def mean_reward(self, latest: bool) -> float:
        return self.log.latest_mean if latest else self.log.mean

    def facts(self) -> Facts:
        survey = self.log.survey
        counts = np.array([survey.actions.get(label, 0) for label in self.log.action_space], dtype=np.int64)
        return Facts(self.log.mean, survey.low, survey.high, counts, self.log.census.single)


# --- opening -----------------------------------------------------------------------------------------------------


def open_rows(
    log: Log | ScannedLog,
    policies: Any,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    unit: str | None = None,
    seed: int = 0,
    *,
    size: int,
    at_once: bool = False,
    late: Mapping[str, Sequence[Any]] | None = None,
) -> Rows:
    """The log with the options that a call adds to it, every policy on its rows, and the sample.

    Parameters
    ----------
    size : rows of the sample; a log of no more is its own
    at_once : what is asked needs every policy on all rows at once, which a scanned log refuses
    late : policy -> actions that it was seen to play, beyond those of the first rows
    """
    late = late or {}
    if isinstance(log, ScannedLog):
        if len(log) > size and at_once:
            raise PodiumError(
                'normalize="states" is for logs in memory, or of up to 20,000 rows',
                hint="leave it out, or use engine='memory'.",
            )
        if len(log) > size:
            fits.check_log(log, policies, size, False, False, behavior)
            return open_scanned(log, policies, behavior, actions, unit, seed, size, late)
        log = log.collect()
    check_log(log)
    fits.check_log(log, policies, size, at_once, True, behavior)
    log = with_options(log, behavior, actions, unit, seed)
    doubts = () if log.estimated is None else log.estimated.warnings
    if len(log) <= size or at_once:
        log, resolved = resolve_policies(log, teach(log, policies, seed))
        resolved = PolicySet(resolved.policies, (*doubts, *resolved.warnings))
        units, names = (None, ()) if log.units is None else factorize(log.units)
        source = WholeRows(Part(np.arange(len(log)), log, resolved, latest_rows(log), units))
        if len(log) <= size:
            return Rows(log, log, resolved, source, len(names))
        drawn = draw_sample(log, size, seed)
        some = PolicySet(tuple(p.take(drawn) for p in resolved), resolved.warnings)
        return Rows(log, log.take(drawn), some, source, len(names), drawn)
    return open_memory(log, teach(log, policies, seed), seed, size, doubts, late)


def check_log(log: Any) -> None:
    """Refuse what is no log."""
    if not isinstance(log, Log | ScannedLog):
        raise PodiumError(
            f"log must be a podium.Log; it is {type(log).__name__}",
            hint="make one with podium.read_log, podium.scan_log, podium.Log.from_frame or podium.Log.",
        )


def with_options(log: Log, behavior: Any, actions: Sequence[Any], unit: str | None, seed: int) -> Log:
    if len(actions):
        log = log.with_action_space(actions)
    if unit is not None:
        log = log.with_units(unit)
    return log if behavior is None else log.with_behavior(behavior, seed)


def draw_sample(log: Log, size: int, seed: int) -> Codes:
    """The numbers of the rows to look at closely: any, or those of whole units."""
    if log.units is None:
        return draw_rows(len(log), size, seed)
    bins = unit_bins(log.units, seed)
    return np.flatnonzero(bins < bins_to_draw(bin_counts(bins), size))


def open_memory(
    log: Log, given: Any, seed: int, size: int, doubts: tuple[str, ...], late: Mapping[str, Sequence[Any]]
) -> Rows:
    """A log in memory, its policies asked on the first rows, on the sample, and then part by part."""
    head = log.take(slice(0, HEAD))
    reader = Reader({name: prepare_policy(name, p, head, len(log)) for name, p in named_policies(log, given).items()})
    with MemoryRows(log, reader).told_of_all():
        space, warnings = widen(log.action_space, reader.policies, late, lambda space: head.with_actions(space))
    log = log.with_actions(space)
    drawn = draw_sample(log, size, seed)
    sample, source = log.take(drawn), MemoryRows(log, reader)
    with source.told_of_all():
        resolved = reader.policies_on(drawn, sample)
    warnings += spec_warnings(named_policies(log, given), log.columns)
    said = (*doubts, *warnings, *noticed(resolved, sample, drawn=True))
    groups = 0 if log.units is None else unit_codes(log)[1]
    return Rows(log, sample, PolicySet(resolved.policies, said), source, groups, drawn)


def open_scanned(
    log: ScannedLog,
    given: Any,
    behavior: Any,
    actions: Sequence[Any],
    unit: str | None,
    seed: int,
    size: int,
    late: Mapping[str, Sequence[Any]],
) -> Rows:
    """A log behind an engine, its policies asked on the first rows, on the sample, and then batch by batch."""
    if unit is not None:
        log = log.with_units(unit)
    if len(actions):
        log = log.with_action_space(actions)
    if behavior is not None:
        log = log.with_behavior(behavior)
    roles = log.roles
    own = log.own_behavior
    first = log.head(log.columns)
    start = log.of_batch(first, log.action_space)
    if own is not None:
        own = prepare_policy("behavior", own, start, len(log))
        refuse_unnamed(own, start, log.survey.actions)
    prepared = {name: prepare_policy(name, p, start, len(log)) for name, p in named_policies(log, given).items()}
    asked = [*prepared.values(), *([] if own is None else [own])]
    columns = set().union(*(columns_needed(p, log.columns, roles) for p in asked), roles.states)
    needed = tuple(h for h in log.columns if h in columns)
    try:
        everyone = prepared if own is None else {"behavior": own, **prepared}
        space, warnings = widen(log.action_space, everyone, late, lambda space: log.of_batch(first, space, own))
        known = log.of_batch(first, space, own).knows
    except BadRows:  # told of all rows, not of the first ones alone
        log.refuse(log.reader(Reader(prepared), log.action_space, own), sorted(columns))
        raise
    reader = log.reader(Reader(prepared), space, own, log.unit_names)
    log = log.changed(actions=space, known=known)
    drawn = log.draw(size, seed)
    try:
        sample = log.sampled(drawn, space, own)
        resolved = reader.reader.policies_on(drawn, sample)
    except (BadRows, NewActions):
        log.refuse(reader, needed)
        raise
    log = log.changed(logged_by=sample.logged_by)
    warnings += spec_warnings(named_policies(log, given), log.columns)
    said = (*warnings, *noticed(resolved, sample, drawn=True))
    groups = 0 if "unit" not in roles.names else UNITS if log.unit_names is None else len(log.unit_names)
    return Rows(log, sample, PolicySet(resolved.policies, said), ScannedRows(log, reader, needed), groups, drawn)
