"""A log that stays where it is: its rows are read in passes, and never all held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from podium.data.arguments import checked, choice
from podium.data.arguments import text as named
from podium.data.arrays import arrow_column, odd_values, refuse_odd
from podium.data.columns import Codes, match_label, sort_key
from podium.data.eligible import RULES
from podium.data.errors import BadRows, PodiumError, shown
from podium.data.exports import READING, read_log
from podium.data.frames import is_frame
from podium.data.log import TEXT_HINT, Log
from podium.data.read import match_actions
from podium.data.roles import Roles, assign_roles, available, describe_log, log_figures
from podium.data.states import units_column
from podium.data.times import times_column
from podium.data.unconverted import in_its_file, plain_states, refuse_gap_words, refuse_values, roles_in_file
from podium.engines import ROW, Census, Engine, Keys, check_engine
from podium.engines.arrow import ArrowReader, BatchWork, Fault, one_batch
from podium.engines.choosing import choose_engine
from podium.engines.sample import BINS, SAMPLE_ROWS, bins_to_draw, draw_rows
from podium.engines.works import (
    EachBatch,
    Survey,
    batch_trouble,
    count_bins,
    latest_rewards,
    rows_in_bins,
    survey_batch,
)
from podium.estimates.moments import Moments
from podium.policies.batches import NewActions, Reader, Trouble
from podium.policies.drafts import Policy
from podium.policies.shares import constant_shares
from podium.propensities.loggers import Loggers

if TYPE_CHECKING:
    import pyarrow as pa

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
    ineligible: str = "refuse"
    file: str | Path | None = None  # where the rows were exported to, if that is a file
    notes: tuple[str, ...] = ()  # what was done to read the file
    eligible: ClassVar[None] = None  # eligible actions are read into memory, see `head`
    estimated: ClassVar[None] = None  # propensities are estimated from a log in memory, never in passes
    logged_by: ClassVar[str] = ""

    def __len__(self) -> int:
        return self.engine.rows()

    def header(self, role: str) -> str:
        """The header of the column that plays a role: 'reward' unless it was renamed."""
        return self.roles.names.get(role, role)

    @cached_property
    def columns(self) -> Mapping[str, str]:
        return self.engine.headers()

    @property
    def state_columns(self) -> Mapping[str, str]:
        return {h: self.columns[h] for h in self.roles.states}

    @property
    def action_space(self) -> tuple[Any, ...]:
        return self.actions or self.logged_actions

    @property
    def n_actions(self) -> int:
        return len(self.action_space)

    @property
    def mean_choices(self) -> float:
        """How many actions were possible in a row."""
        return float(self.n_actions)

    @property
    def knows(self) -> str:
        """What is known of the behaviour policy: "full", "logged" or "none"."""
        if self.known or self.roles.full or self.behavior is not None:
            return self.known or "full"
        if self.shares is not None:
            return "full"
        return "logged" if "propensity" in self.roles.names else "none"

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
        """What the JSON output says of the log."""
        return log_figures(self)

    def __repr__(self) -> str:
        return describe_log(self, self.engine.name)

    # --- variants -------------------------------------------------------------------------------------------------

    def with_action_space(self, labels: Sequence[Any]) -> ScannedLog:
        given = tuple(match_label(x, self.logged_actions) if isinstance(x, str) else x for x in labels)
        lost = [x for x in self.logged_actions if x not in set(given)]
        if lost:
            raise PodiumError(
                f"the action space lacks {lost[0]!r}, which was logged", hint="name every action that may be taken."
            )
        return self.changed(actions=given)

    def changed(self, **fields: Any) -> ScannedLog:
        """The same rows in the same roles; what is known of them stays known."""
        twin = replace(self, **fields)
        for name in ("survey", "census", "latest_mean"):
            if name in vars(self):
                vars(twin)[name] = vars(self)[name]
        return twin

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
        return self.changed(behavior=policy)

    def with_units(self, column: str) -> ScannedLog:
        if column not in self.columns:
            raise PodiumError(f"the log has no column {column!r} for the unit", hint=available(self.columns, column))
        return replace(self, roles=self.roles.with_unit(column), known="")

    # --- passes ---------------------------------------------------------------------------------------------------

    @property
    def keys(self) -> Keys:
        """Which rows repeat a state and an action, and which of them is the latest."""
        return Keys(self.roles.states, self.roles.names["action"], self.roles.names.get("time"))

    @cached_property
    def survey(self) -> Survey:
        """The first pass; a log that breaks a rule is refused here, as `podium.Log` refuses it."""
        if not self.roles.states:
            raise PodiumError(
                "the log has no state columns",
                hint="name at least one with --state, add a constant column, or use --engine memory.",
            )
        if len(self) == 0:
            raise no_rows()
        refuse_odd(self.engine.odd, self.roles)
        work = EachBatch(partial(survey_batch, roles=self.roles), Survey())
        found = self.engine.fold(self.roles.columns, work, "first look")
        mixed = [h for h in (*self.roles.states, *self.roles.some("action", "time")) if h in self.engine.mixed]
        if found.bad or mixed:
            self.refuse(None)
        refuse_gap_words(self.file, self.engine, self.roles, found.actions)
        for header in mixed:  # its numbers and its texts lie in different batches
            raise PodiumError(f"column {header!r} mixes number and text", hint=TEXT_HINT.format(name=header))
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
        needed = list(dict.fromkeys([*self.roles.some("action", "reward", "propensity", "unit"), *columns]))
        work: BatchWork[T] = BatchWork(reader, function)
        found: Any = self.engine.fold(needed, work, label, self.keys if latest else None)  # type: ignore[type-var]
        if isinstance(found, Fault):
            if isinstance(found.error, BadRows | NewActions):
                self.refuse(reader, needed)
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
        work = EachBatch(partial(latest_rewards, reward=reward), Moments.of(np.zeros((0, 1))))
        return float(self.engine.fold([reward], work, "latest rows", self.keys).mean[0])

    @property
    def shares(self) -> dict[Any, float] | None:
        """The share of every action where the propensities show that it never changes."""
        if "propensity" not in self.roles.names:
            return None
        found = self.survey
        counts = np.array([found.actions.get(label, 0) for label in self.action_space], dtype=np.int64)
        low, high = np.array([found.shares.get(label, (0.0, 0.0)) for label in self.action_space]).T
        return constant_shares(self.action_space, counts, low, high)

    @property
    def own_behavior(self) -> Any:
        """The behavior policy as it was given, as columns give it, or as the propensities show it; None if unknown."""
        if self.behavior is not None or self.roles.full:
            return Policy(self.roles.propensity, kind="column") if self.behavior is None else self.behavior
        shares = self.shares
        return None if shares is None else Policy(shares, kind="shares")

    # --- the sample -------------------------------------------------------------------------------------------------

    def draw(self, size: int, seed: int) -> Codes:
        """The numbers of the rows to look at closely: any, or those of whole units."""
        unit = self.roles.names.get("unit")
        if unit is None:
            return draw_rows(len(self), size, seed)
        count = EachBatch(partial(count_bins, unit=unit, seed=seed), np.zeros(BINS, dtype=np.int64))
        bins = bins_to_draw(self.engine.fold([unit], count, "units"), size)
        drawn: tuple[Codes, ...] = ()
        pick = EachBatch(partial(rows_in_bins, unit=unit, seed=seed, bins=bins), drawn)
        return np.sort(np.concatenate(self.engine.fold([unit], pick, "units of the sample")))

    def sampled(self, rows: Codes, actions: tuple[Any, ...], behavior: Any) -> Log:
        """Some rows in memory, with all their columns."""
        batch = self.engine.take(list(self.columns), rows, "the sample")
        log = self.of_batch(batch, actions, behavior)
        names = self.roles.names
        for role, field, read in (("time", "times", times_column), ("unit", "units", units_column)):
            if role in names:
                log._set(**{field: read(arrow_column(batch.column(names[role])), f"column {names[role]!r}")})
        log._set(engine=self.engine.name, left_out=self.roles.left_out)
        return log

    def of_batch(self, batch: pa.RecordBatch, actions: tuple[Any, ...], behavior: Any = None) -> Log:
        """Some rows as a log over an action space."""
        return ArrowReader(Reader({}), self.roles, actions, behavior).log_of(batch)

    def head(self, columns: Iterable[str]) -> pa.RecordBatch:
        if self.roles.eligible:
            raise PodiumError(
                "eligible actions are read into memory, and this log is read in passes",
                hint="use engine='memory' (--engine memory), or a log of up to 20,000 rows.",
            )
        return self.engine.head(list(dict.fromkeys([*self.roles.columns, *columns])), HEAD)

    def refuse(self, reader: ArrowReader | None, columns: Sequence[str] = ()) -> None:
        """Say what is wrong with the rows, as `podium.Log` and the policies say it; nothing if nothing is."""
        look = partial(
            batch_trouble, as_memory=self.engine.as_memory, roles=self.roles, actions=self.actions, reader=reader
        )
        needed = list(dict.fromkeys([*self.roles.columns, *columns]))
        with in_its_file(self.file):
            self.engine.fold(needed, EachBatch(look, Trouble()), "looking for the rows at fault").tell()

    def collect(self) -> Log:
        """The log in memory; for logs of a few thousand rows, whatever the engine."""
        import pyarrow as pa

        if len(self) == 0:
            raise no_rows()
        refuse_odd(self.engine.odd, self.roles)
        batches = sorted(self.engine.fold(list(self.columns), tuple, "reading"), key=lambda b: b.column(ROW)[0].as_py())
        columns = self.engine.as_memory(one_batch(pa.Table.from_batches(batches)))
        refuse_odd(odd_values({name: columns[name] for name in self.roles.columns}), self.roles)
        space = match_actions(self.actions, columns[self.roles.names["action"]])
        with in_its_file(self.file):
            log = Log.in_roles(columns, self.roles, space, ineligible=self.ineligible)
        refuse_gap_words(self.file, self.engine, self.roles, log.action_space)
        log = log if self.behavior is None else log.with_behavior(self.behavior)
        log._set(engine=self.engine.name, notes=self.notes)
        return log


def no_rows() -> PodiumError:
    return PodiumError("the log has no rows", hint="a log needs at least one logged interaction.")


@checked(engine=named, **READING)
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
    eligible: str | None = None,
    ineligible: str = "refuse",
    success: Any = None,
    drop_missing: bool = False,
    date_format: str | None = None,
    sheet: str | None = None,
    also: Sequence[str] = (),
    **options: Any,
) -> Log | ScannedLog:
    """A log of any size: read into memory where it is small, left where it is where it is not.

    Parameters
    ----------
    source : a file, a pattern ("log/*.parquet"), a folder of Parquet files (also in hive partitions), a DuckDB
        database or relation, a Spark DataFrame, or a frame in memory (pandas, polars, arrow)
    engine : "memory", "duckdb", "spark", or "auto": memory for frames and for a file that is small by its rows, columns
        and actions, otherwise duckdb
    state, action, reward, propensity, time, unit, actions, text, eligible, ineligible, also : as in `podium.read_log`
    success, drop_missing, date_format, sheet : as in `podium.read_log`, for files that are read into memory
    options : of the engine; for duckdb `memory_limit`, `temp_dir`, `threads`, `table` and `progress`
    """
    check_engine(engine)
    roles: dict[str, Any] = {
        "state": state, "action": action, "reward": reward, "propensity": propensity, "time": time, "unit": unit,
        "eligible": eligible, "also": also,
    }  # fmt: skip
    values = {"success": success, "drop_missing": drop_missing, "date_format": date_format, "sheet": sheet}
    chosen = choose_engine(source, engine, action)
    refuse_values(values, chosen, is_frame(source))
    if chosen == "duckdb" and not (isinstance(source, str | Path) or hasattr(source, "columns")):
        raise PodiumError(
            f"a log cannot be read from {shown(source)}", hint="give a file, a folder, a DuckDB relation or a frame."
        )
    if chosen == "memory":
        if is_frame(source):
            return Log.from_frame(source, actions=actions, ineligible=ineligible, **roles)
        return read_log(source, actions=actions, text=text, ineligible=ineligible, **roles, **values)
    opened: Engine
    if chosen == "spark":
        opened = import_module("podium.engines.spark").SparkEngine(source, text=text, **options)
    else:
        from podium.engines.duckdb import DuckEngine

        opened = DuckEngine(source, text=text, **options)
    rule = choice(*RULES)("ineligible", ineligible)
    log = ScannedLog(opened, plain_states(opened, assign_roles(opened.headers(), **roles)), ineligible=rule)
    if isinstance(source, str | Path) and len(log):
        fitting, notes = roles_in_file(opened, log.roles, source, text)
        log = replace(log, roles=fitting, file=source, notes=notes)
    return log.with_action_space(actions) if len(actions) else log
