"""A log that stays where it is: its rows are read in passes, and never all held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from podium.data.columns import Codes, Column, match_label, sort_key, times_column
from podium.data.errors import BadRows, PodiumError, count
from podium.data.frames import is_frame
from podium.data.log import Log, Roles, assign_roles, units_column
from podium.engines import AUTO, LATEST, ROW, Census, Engine, Keys, check_engine
from podium.engines.arrow import ArrowReader, array_of, numbers
from podium.engines.sample import SAMPLE_ROWS, BinCounts, draw_rows, unit_bins
from podium.estimates.moments import Moments
from podium.policies.batches import NewActions, Reader
from podium.propensities.loggers import Loggers

if TYPE_CHECKING:
    import pyarrow as pa

    from podium.engines.arrow import Survey

HEAD = 8192  # rows from which the forms of the policies are learned
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class ScannedLog:
    """Logged interactions behind an engine; made by `podium.scan_log`.

    Attributes
    ----------
    engine : what reads the rows
    roles : which column is what
    actions : the action space as it was given; empty for the logged actions, sorted
    behavior : the behaviour policy as it was given, if the log does not hold it
    """

    engine: Engine
    roles: Roles
    actions: tuple[Any, ...] = ()
    behavior: Any = None
    known: str = ""

    # --- what a log is asked --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.engine.rows()

    def header(self, role: str) -> str:
        return self.roles.names.get(role, role)

    @property
    def state_columns(self) -> Mapping[str, str]:
        return {h: self.engine.headers()[h] for h in self.roles.states}

    @cached_property
    def columns(self) -> Mapping[str, str]:
        return self.engine.headers()

    @property
    def action_space(self) -> tuple[Any, ...]:
        return self.actions or self.logged_actions

    @property
    def n_actions(self) -> int:
        return len(self.action_space)

    @property
    def knows(self) -> str:
        """What is known of the behaviour policy: "full", "logged" or "none"."""
        if self.known:
            return self.known
        if self.roles.full or self.behavior is not None:
            return "full"
        return "logged" if "propensity" in self.roles.names else "none"

    @property
    def estimated(self) -> None:
        """Propensities are estimated from a log in memory, never in passes."""
        return None

    @property
    def digest(self) -> str:
        """Rows that stay where they are have none."""
        return ""

    @cached_property
    def census(self) -> Census:
        """Exact counts, by the engine's own grouping."""
        return self.engine.census(self.keys)

    @property
    def n_states(self) -> int:
        return self.census.states

    @property
    def distinct(self) -> int:
        """How many (state, action) there are."""
        return self.census.distinct

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": len(self),
            "distinct": self.distinct,
            "states": self.n_states,
            "actions": self.n_actions,
            "propensities": self.knows,
        }

    def __repr__(self) -> str:
        known = {"full": "the full behaviour policy", "logged": "propensities", "none": "no propensities"}
        return (
            f"Log ({self.engine.name}): {count(len(self), 'row')}, {self.distinct:,} distinct (state, action), "
            f"{count(self.n_states, 'state')}, {count(self.n_actions, 'action')}, {known[self.knows]}"
        )

    # --- variants -------------------------------------------------------------------------------------------------

    def with_action_space(self, labels: Sequence[Any]) -> ScannedLog:
        given = tuple(match_label(x, self.logged_actions) if isinstance(x, str) else x for x in labels)
        lost = [x for x in self.logged_actions if x not in set(given)]
        if lost:
            raise PodiumError(
                f"the action space lacks {lost[0]!r}, which was logged", hint="name every action that may be taken."
            )
        return replace(self, actions=given)

    def with_behavior(self, policy: Any) -> ScannedLog:
        if isinstance(policy, Loggers):
            raise PodiumError(
                "a log of several loggers is read into memory, and this one stays where it is",
                hint="add their mixture as a column propensity, or use engine='memory'.",
            )
        estimate = isinstance(policy, str) and policy.partition(":")[0] == "estimate" and policy not in self.columns
        if (estimate or hasattr(policy, "belief")) and len(self) > SAMPLE_ROWS:
            raise PodiumError(
                "propensities are estimated from all rows at once, and this log is read in passes",
                hint="use engine='memory', write estimated propensities as a column, or leave `behavior` out: "
                "LDE and DiM need none.",
            )
        return replace(self, behavior=policy)

    def with_units(self, column: str) -> ScannedLog:
        if column not in self.columns:
            raise PodiumError(
                f"the log has no column {column!r} for the unit", hint="the columns are " + ", ".join(self.columns)
            )
        states = self.roles.states
        if self.roles.guessed and column in states and len(states) > 1:
            states = tuple(h for h in states if h != column)
        roles = replace(self.roles, names={**self.roles.names, "unit": column}, states=states)
        return ScannedLog(self.engine, roles, self.actions, self.behavior)

    # --- passes ---------------------------------------------------------------------------------------------------

    @property
    def keys(self) -> Keys:
        """Which rows repeat a state and an action, and which of them is the latest."""
        return Keys(self.roles.states, self.roles.names["action"], self.roles.names.get("time"))

    @property
    def role_columns(self) -> list[str]:
        return list(dict.fromkeys([*self.roles.names.values(), *self.roles.states]))

    @cached_property
    def survey(self) -> Survey:
        """The first pass; a log that breaks a rule is refused here, as `podium.Log` refuses it."""
        from podium.engines.arrow import SurveyWork

        if not self.roles.states:
            raise PodiumError(
                "the log has no state columns", hint="name at least one with --state, or add a constant column."
            )
        if len(self) == 0:
            raise PodiumError("the log has no rows", hint="a log needs at least one logged interaction.")
        names = self.roles.names
        shares = [names[role] for role in ("propensity",) if role in names]
        labels = dict.fromkeys([*self.roles.states, *(names[role] for role in ("time",) if role in names)])
        read = [names[role] for role in ("action", "reward", "unit") if role in names]
        sound = frozenset([*labels, *shares]) if self.engine.sound(list(labels), shares) else frozenset()
        columns = [h for h in self.role_columns if h in read or h not in sound]
        found = self.engine.fold(columns, SurveyWork(self.roles, sound), "first look")
        if found.bad:
            self.refuse(None)
        return found

    @cached_property
    def logged_actions(self) -> tuple[Any, ...]:
        return tuple(sorted(self.survey.actions, key=sort_key))

    @cached_property
    def unit_names(self) -> tuple[Any, ...] | None:
        """The units in order; None where there are none, or too many to name."""
        if "unit" not in self.roles.names or self.survey.units is None:
            return None
        return tuple(sorted(self.survey.units, key=sort_key))

    def fold(
        self, reader: ArrowReader, columns: Iterable[str], function: Callable[..., T], label: str, latest: bool
    ) -> T:
        """`function` of the parts of the log, on the engine; what is wrong is told of all rows."""
        from podium.engines.arrow import BatchWork, Fault

        names = self.roles.names
        own = [names[role] for role in ("action", "reward", "propensity", "unit") if role in names]
        needed = list(dict.fromkeys([*own, *columns]))
        work: BatchWork[T] = BatchWork(reader, function)
        found: Any = self.engine.fold(needed, work, label, self.keys if latest else None)  # type: ignore[type-var]
        if isinstance(found, Fault):
            if isinstance(found.error, BadRows):
                self.refuse(reader, needed)
            if isinstance(found.error, NewActions):  # all of them, not those of the first batch that has any
                raise NewActions(self.engine.fold(needed, PlayedWork(reader), "looking for actions").in_order())
            raise found.error
        result: T = found
        return result

    @property
    def mean(self) -> float:
        """The mean reward; equal rewards are their own mean, since that of many is rounded."""
        found = self.survey
        assert found.reward is not None
        return found.low if found.low == found.high else float(found.reward.mean[0])

    @cached_property
    def latest_mean(self) -> float:
        """The mean reward of the latest row of each state and action."""
        if self.survey.low == self.survey.high:
            return self.survey.low
        reward = self.roles.names["reward"]
        found = self.engine.fold([reward], LatestReward(reward), "latest rows", self.keys)
        return float(found.mean[0])

    # --- the sample -------------------------------------------------------------------------------------------------

    def draw(self, size: int, seed: int) -> Codes:
        """The numbers of the rows to look at closely: any, or those of whole units."""
        unit = self.roles.names.get("unit")
        if unit is None:
            return draw_rows(len(self), size, seed)
        counts = self.engine.fold([unit], BinWork(unit, seed), "units")
        last = counts.drawn(size)
        found: RowNumbers = self.engine.fold([unit], BinWork(unit, seed, last), "units of the sample")
        return found.numbers

    def sampled(self, rows: Codes, actions: tuple[Any, ...], behavior: Any) -> Log:
        """Some rows in memory, with all their columns."""
        batch = self.engine.take(list(self.columns), rows, "the sample")
        log = self.of_batch(batch, actions, behavior)
        names = self.roles.names
        for role, field, read in (("time", "times", times_column), ("unit", "units", units_column)):
            if role in names:
                log._set(**{field: read(array_of(batch.column(names[role])), f"column {names[role]!r}")})
        log._set(engine=self.engine.name)
        return log

    def of_batch(self, batch: pa.RecordBatch, actions: tuple[Any, ...], behavior: Any = None) -> Log:
        """Some rows as a log over an action space."""
        return ArrowReader(Reader({}), self.roles, actions, behavior).log_of(batch)

    def head(self, columns: Iterable[str]) -> pa.RecordBatch:
        return self.engine.head(list(dict.fromkeys([*self.role_columns, *columns])), HEAD)

    def refuse(self, reader: ArrowReader | None, columns: Sequence[str] = ()) -> None:
        """Say what is wrong with the rows, as `podium.Log` and the policies say it; nothing if nothing is."""
        needed = list(dict.fromkeys([*self.role_columns, *columns]))
        work = CheckWork(self.engine.as_memory, self.roles, self.actions, reader)
        found = self.engine.fold(needed, work, "looking for the rows at fault")
        if found.faults:
            names = self.roles.names
            first = [names["reward"], *self.roles.states, names["action"]]
            order = [
                f"column {h!r}" for h in (*first, *(names[r] for r in ("time", "unit", "propensity") if r in names))
            ]
            keys = sorted(found.faults, key=lambda key: order.index(key[0]) if key[0] in order else len(order))
            raise found.faults[keys[0]]
        if found.other is not None:
            raise found.other

    def collect(self) -> Log:
        """The log in memory; for logs of a few thousand rows, whatever the engine."""
        batch = self.engine.fold(list(self.columns), collect_rows, "reading").table
        columns = self.engine.as_memory(batch)
        names = self.roles.names
        actions = self.actions
        if actions and names["action"] in columns and columns[names["action"]].dtype != object:
            observed = np.unique(columns[names["action"]]).tolist()
            actions = tuple(match_label(a, observed) if isinstance(a, str) else a for a in actions)
        log = Log.from_columns(
            columns,
            state=list(self.roles.states) if not self.roles.guessed else None,
            action=names["action"],
            reward=names["reward"],
            propensity=names.get("propensity"),
            time=names.get("time"),
            unit=names.get("unit"),
            actions=actions,
        )
        log = log if self.behavior is None else log.with_behavior(self.behavior)
        log._set(engine=self.engine.name)
        return log


@dataclass(frozen=True, eq=False)
class Collected:
    """Record batches one after the other."""

    parts: tuple[Any, ...]

    def __add__(self, other: Collected) -> Collected:
        return Collected(self.parts + other.parts)

    @property
    def table(self) -> Any:
        import pyarrow as pa

        return pa.concat_batches(self.parts)


def collect_rows(batches: Iterator[pa.RecordBatch]) -> Collected:
    return Collected(tuple(batches))


@dataclass(frozen=True, eq=False)
class Faults:
    """Rules that rows break: the first row of each, and how many."""

    faults: Mapping[tuple[str, str], BadRows]
    other: PodiumError | None = None

    def __add__(self, later: Faults) -> Faults:
        merged = dict(self.faults)
        for key, fault in later.faults.items():
            merged[key] = merged[key].merged(fault) if key in merged else fault
        return Faults(merged, self.other or later.other)


@dataclass(frozen=True, eq=False)
class CheckWork:
    """Every batch checked as a log of its own, in the order of the rows."""

    as_memory: Callable[[Any], dict[str, Column]]
    roles: Roles
    actions: tuple[Any, ...]
    reader: ArrowReader | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Faults:
        found = Faults({})
        for batch in batches:
            if not batch.num_rows:
                continue
            names = self.roles.names
            try:
                Log.from_columns(
                    {h: c for h, c in self.as_memory(batch).items() if h in {*names.values(), *self.roles.states}},
                    state=list(self.roles.states),
                    action=names["action"],
                    reward=names["reward"],
                    propensity=names.get("propensity"),
                    time=names.get("time"),
                    unit=names.get("unit"),
                    actions=self.actions,
                )
                if self.reader is not None:
                    self.reader.part(batch)
            except BadRows as error:
                moved = error.moved(int(batch.column(ROW)[0].as_py()))
                found = found + Faults({(error.what, error.rule): moved})
            except PodiumError as error:
                found = found + Faults({}, error)
        return found


@dataclass(frozen=True, eq=False)
class Played:
    """Actions that nobody has named, by the policies that play them."""

    labels: Mapping[str, frozenset[Any]]

    def __add__(self, other: Played) -> Played:
        names = dict.fromkeys([*self.labels, *other.labels])
        none: frozenset[Any] = frozenset()
        return Played({name: self.labels.get(name, none) | other.labels.get(name, none) for name in names})

    def in_order(self) -> dict[str, list[Any]]:
        return {name: sorted(labels, key=sort_key) for name, labels in self.labels.items()}


@dataclass(frozen=True, eq=False)
class PlayedWork:
    """What the policies play that the action space lacks."""

    reader: ArrowReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Played:
        found = Played({})
        for batch in batches:
            if batch.num_rows:
                try:
                    log = self.reader.log_of(batch)
                except NewActions as error:
                    played: Mapping[str, Sequence[Any]] = error.played
                else:
                    played = self.reader.reader.played(batch.column(ROW).to_numpy(zero_copy_only=False), log)
                found = found + Played({name: frozenset(labels) for name, labels in played.items()})
        return found


@dataclass(frozen=True)
class LatestReward:
    """The rewards of the latest row of each state and action."""

    reward: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Moments:
        found = Moments.of(np.zeros((0, 1)))
        for batch in batches:
            values = numbers(batch.column(self.reward))
            assert values is not None
            found = found + Moments.of(values[batch.column(LATEST).to_numpy(zero_copy_only=False)][:, None])
        return found


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """Numbers of rows, in order."""

    numbers: Codes

    def __add__(self, other: RowNumbers) -> RowNumbers:
        return RowNumbers(np.concatenate([self.numbers, other.numbers]))


@dataclass(frozen=True)
class BinWork:
    """Rows per bin of units; with `last`, the numbers of the rows whose units are in the bins before it."""

    unit: str
    seed: int
    last: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Any:
        found: Any = BinCounts.of(np.zeros(0, dtype=np.int64)) if self.last is None else RowNumbers(NO_ROWS)
        for batch in batches:
            bins = unit_bins(array_of(batch.column(self.unit)), self.seed)
            if self.last is None:
                found = found + BinCounts.of(bins)
            else:
                rows = batch.column(ROW).to_numpy(zero_copy_only=False)
                found = found + RowNumbers(rows[bins < self.last])
        return found


NO_ROWS = np.zeros(0, dtype=np.int64)


def scan_log(
    source: Any,
    *,
    engine: str = "auto",
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
    actions: Sequence[Any] = (),
    text: Sequence[str] = (),
    **options: Any,
) -> Log | ScannedLog:
    """A log of any size: read into memory where it is small, left where it is where it is not.

    Parameters
    ----------
    source : a file, a pattern ("log/*.parquet"), a folder of Parquet files (also in hive partitions), a DuckDB
        database or relation, a Spark DataFrame, or a frame in memory (pandas, polars, arrow)
    engine : "memory", "duckdb", "spark", or "auto": memory for one file under 256 MB, otherwise duckdb
    state, action, reward, propensity, time, unit, actions, text : as in `podium.read_log`
    options : of the engine; for duckdb `memory_limit`, `temp_dir`, `threads`, `table` and `progress`
    """
    check_engine(engine)
    roles: dict[str, Any] = {
        "state": state, "action": action, "reward": reward, "propensity": propensity, "time": time, "unit": unit,
    }  # fmt: skip
    chosen = choose_engine(source, engine)
    if chosen == "memory":
        if is_frame(source):
            return Log.from_frame(source, actions=actions, **roles)
        from podium.data.read import read_log

        return read_log(source, actions=actions, text=text, **roles)
    opened: Engine
    if chosen == "spark":
        opened = import_module("podium.engines.spark").SparkEngine(source, text=text, **options)
    else:
        from podium.engines.duckdb import DuckEngine

        opened = DuckEngine(source, text=text, **options)
    log = ScannedLog(opened, assign_roles(opened.headers(), **roles))
    return log.with_action_space(actions) if len(actions) else log


def choose_engine(source: Any, engine: str) -> str:
    """The engine that "auto" stands for."""
    if engine != "auto":
        return engine
    if is_frame(source):
        return "memory"
    if not isinstance(source, str | Path):
        return "spark" if type(source).__module__.startswith("pyspark") else "duckdb"
    path = Path(source)
    try:
        single = path.is_file() and path.suffix.lower() not in (".duckdb", ".db")
        pattern = not path.exists() and any(c in str(source) for c in "*?[")
        return (
            "duckdb"
            if pattern or path.is_dir() or (path.is_file() and not single)
            else ("duckdb" if single and path.stat().st_size >= AUTO else "memory")
        )
    except OSError:
        return "memory"
