"""The historical data D = {(s_n, a_n, r_n, p_n)} (eq. 1 of the paper), and the only place where data is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from podium.data.arguments import SEED, checked, choice, mapping, row_numbers, text
from podium.data.coded import CodedRows, checked_space, refuse_rows_beyond, rows_of
from podium.data.columns import Codes, Column, Floats, factorize, labels_column, numbers_column, plain
from podium.data.eligible import RULES, eligible_fields, reordered, widened
from podium.data.errors import PodiumError, count, listed, refuse_rows
from podium.data.facts import Fact
from podium.data.frames import LazyColumns, columns_to_frame, frame_to_columns, is_frame, named_arrays, take_rows
from podium.data.layout import log_columns, log_table
from podium.data.owned import Own, OwnStates, own_columns, owned, sealed
from podium.data.probabilities import AGREE, MOST_ROUNDED, ROUNDED, checked_propensities
from podium.data.prose import without_prose
from podium.data.roles import Roles, assign_roles, available, describe_log, log_figures
from podium.data.states import state_columns, states_given, table_alone, units_column
from podium.data.times import times_column

LARGEST = 1e100  # rewards beyond overflow when they are squared
TEXT_HINT = "correct those rows; where the values are names and not numbers, read the column as text (--text {name})."


@dataclass(frozen=True, eq=False, repr=False)
class Log(Own, CodedRows):
    """Logged interactions: states, actions, rewards, and what is known of how the actions were chosen.

    Row order is time order unless `times` are given. Everything is checked here, once.

    Parameters
    ----------
    states : (N,) numbers or texts, (N, d) features, or a dict of columns or a pandas, polars or arrow frame with N
        rows; alone, such a dict or frame holds the actions and rewards too, as `from_frame` reads them
    actions : (N,) labels of any one kind
    rewards : (N,) numbers
    propensities : (N,) probability p_n with which the logged action was taken, if known
    behavior : the behaviour policy in any form that a policy may take; (N, A) is its full distribution;
        `podium.Loggers` where several policies made the log
    action_space : every action there is, also those never logged; the logged ones (sorted) by default
    times : (N,) numbers or dates
    units : (N,) labels: rows of one unit (a person, a device) depend on each other
    columns : the columns of the file or frame that the log was read from, by header
    names : the header that each role ("state", "action", "reward", ...) had there
    estimated : what `podium.estimate_propensities` found, where the behaviour policy is an estimate
    states_guessed : the state columns are what was left over, so a unit named later is taken out of them
    left_out : columns that were left over and are no state all the same
    engine : what read the rows
    eligible : which actions were possible in each row: (N, A) truth values, or N lists of actions; all by default
    ineligible : "refuse" policies that play what was not possible, or "renormalize" them over the eligible actions

    Examples
    --------
    >>> log = Log(states=[0, 0, 1], actions=["a", "b", "a"], rewards=[1.0, 0.0, 0.5])
    >>> log
    Log (memory): 3 rows, 3 distinct (state, action), 2 states, 2 actions, no propensities
    """

    states: Any
    actions: Column = None  # type: ignore[assignment]
    rewards: Floats = None  # type: ignore[assignment]
    propensities: Floats | None = None
    behavior: Floats | None = None
    action_space: tuple[Any, ...] = ()
    times: Column | None = None
    units: Column | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    states_guessed: bool = False
    estimated: Any = None
    left_out: tuple[Fact, ...] = ()
    logged_by: str = field(default="", init=False)  # what headers say of the logger, where it is no single policy
    shares: bool = field(default=False, init=False)  # the logger takes each action with a fixed probability
    notes: tuple[str, ...] = field(default=(), init=False)  # what was done to read the file
    engine: str = "memory"
    eligible: Any = None
    ineligible: str = "refuse"
    action_features: Any = field(default=None, init=False)  # `podium.data.action_features`, on the action space
    state_columns: Mapping[str, Column] = field(init=False)
    action_codes: Codes = field(init=False)
    # Set by `podium.propensities.behavior`, which comes later in the flow: a log, the behavior policy in any form and a
    # seed give the fields of the log that change, and the p_n that are to be checked.
    read_behavior: ClassVar[Callable[[Log, Any, int], tuple[dict[str, Any], Floats | None]]]

    if TYPE_CHECKING:  # anything that reads as a column is welcome; the fields hold what was read

        def __init__(
            self,
            states: Any,
            actions: Any = None,
            rewards: Any = None,
            propensities: Any = None,
            behavior: Any = None,
            action_space: Sequence[Any] = (),
            times: Any = None,
            units: Any = None,
            **details: Any,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.actions is None or self.rewards is None:
            self._set(**vars(type(self).from_frame(table_alone(vars(self)), ineligible=self.ineligible)))
            return
        for name in ("columns", "names"):
            self._set(**{name: own_columns(mapping(name, getattr(self, name)))})
        rewards = numbers_column(self.rewards, self.column("reward"), "a reward is a finite number in every row.")
        if len(rewards) == 0:
            raise PodiumError("the log has no rows", hint="a log needs at least one logged interaction.")
        rule, hint = f"must lie within -{LARGEST:g} and {LARGEST:g}", "give the rewards in a larger unit."
        refuse_rows(self.column("reward"), rule, np.abs(rewards) > LARGEST, rewards, hint)
        self._set(rewards=owned(rewards))
        self._set(state_columns=own_columns(self._check_states()))
        labels = labels_column(
            self.actions, self.column("action"), mixed_hint=TEXT_HINT.format(name=self.header("action"))
        )
        self._check_length("action", len(labels))
        self._set(actions=owned(labels))
        named = self._code_actions()
        choice(*RULES)("ineligible", self.ineligible)
        if self.eligible is not None:
            self._set(**eligible_fields(self, named))
        if self.times is not None:
            self._set(times=owned(times_column(self.times, self.column("time"))))
            self._check_length("time", len(self.times))
        if self.units is not None:
            self._set(units=owned(units_column(self.units, self.column("unit"))))
            self._check_length("unit", len(self.units))
        if self.propensities is not None:
            self._set(propensities=self._check_propensities(self.propensities))
        self._check_behavior()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, sealed(value) if isinstance(value, np.ndarray) else value)

    # --- names, for messages -------------------------------------------------------------------------------

    @checked(role=text)
    def header(self, role: str) -> str:
        """The header of the column that plays a role: 'reward' unless it was renamed."""
        return self.names.get(role, role)

    def column(self, role: str) -> str:
        """That column, as messages name it."""
        return f"column {self.header(role)!r}"

    # --- checks --------------------------------------------------------------------------------------------

    def _check_length(self, role: str, rows: int) -> None:
        if rows != len(self.rewards):
            raise PodiumError(
                f"{self.column(role)} has {count(rows, 'row')}; {self.column('reward')} has {len(self.rewards):,}",
                hint="every column describes the same rows, in the same order.",
            )

    def _check_states(self) -> dict[str, Column]:
        given, raw = state_columns(vars(self)["states"], self.header("state"))
        self._set(states=given)
        if not raw:
            raise PodiumError(
                "the log has no state columns",
                hint="name at least one with --state, or add a constant column.",
            )
        checked = {}
        for header, values in raw.items():
            what = f"column {header!r}"
            checked[header] = labels_column(values, what, mixed_hint=TEXT_HINT.format(name=header))
            if len(checked[header]) != len(self.rewards):
                self._check_length("state", len(checked[header]))
        return checked

    def _code_actions(self) -> bool:
        """Code the actions; return whether the action space was given."""
        codes, observed = factorize(self.actions)
        space = checked_space(self.action_space)
        if not space:
            self._set(action_space=tuple(plain(x) for x in observed), action_codes=codes)
            return False
        position = {label: i for i, label in enumerate(space)}
        known = np.array([position.get(plain(x), -1) for x in observed], dtype=np.int64)
        codes = known[codes]
        refuse_rows(
            self.column("action"),
            "must be in the action space",
            codes < 0,
            self.actions,
            f"the action space is {listed(space)}; name every action that may be taken.",
        )
        self._set(action_space=space, action_codes=codes)
        return True

    def _check_propensities(self, values: Any, what: str = "") -> Floats:
        p = checked_propensities(values, what or self.column("propensity"))
        self._check_length("propensity", len(p))
        return owned(p)

    def _check_behavior(self, seed: int = 0) -> None:
        """Read the behavior policy where it was given, or where the propensities show it."""
        if self.behavior is None and self.propensities is None:
            return
        changes, logged = type(self).read_behavior(self._copy(behavior=None), self.behavior, seed)
        self._set(**changes)
        if logged is None:
            return
        if self.propensities is not None:
            rule = f"must agree with the {'shares' if self.shares else 'behaviour policy within 1e-6'}"
            near = ROUNDED + MOST_ROUNDED * logged if self.shares else AGREE
            hint = "give the propensities or the behaviour policy that really chose the actions."
            bad = np.abs(logged - self.propensities) > near
            refuse_rows(self.column("propensity"), rule, bad, self.propensities, hint)
        if self.propensities is None or self.shares:
            what = "the behaviour policy's probability of the logged action"
            self._set(propensities=self._check_propensities(logged, what))

    def _copy(self, **changes: Any) -> Log:
        twin = object.__new__(Log)
        fields = {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}
        twin._set(**{**fields, **changes})
        return twin

    # --- what is known of the logger --------------------------------------------------------------------------

    @property
    def knows(self) -> str:
        """What is known of the behaviour policy: "full", "logged" (p_n alone), "estimated" or "none"."""
        if self.estimated is not None:
            return "estimated"
        return "full" if self.behavior is not None else "logged" if self.propensities is not None else "none"

    def with_actions(self, labels: Sequence[Any]) -> Log:
        """The same log over an action space that also holds `labels`, appended in the given order."""
        extra = tuple(dict.fromkeys((*self.action_space, *checked_space(labels, repeated=True))))[self.n_actions :]
        if not extra:
            return self
        zeros = np.zeros((len(self), len(extra)))
        behavior = None if self.behavior is None else np.hstack([self.behavior, zeros])
        eligible = widened(self.eligible, len(extra))
        return self._copy(action_space=self.action_space + extra, behavior=behavior, eligible=eligible)

    def with_action_space(self, labels: Sequence[Any]) -> Log:
        """The same log over this action space, in this order; it must hold every logged action."""
        space = checked_space(labels)
        twin = self._copy(action_space=space, behavior=None, eligible=reordered(self, space))
        twin._code_actions()
        if self.behavior is not None:
            place = {label: j for j, label in enumerate(twin.action_space)}
            to = np.array([place.get(label, -1) for label in self.action_space], dtype=np.int64)
            if np.any(self.behavior[:, to < 0] > AGREE):
                raise PodiumError(
                    "the behaviour policy plays actions that the action space lacks", hint="name every action."
                )
            behavior = np.zeros((len(self), twin.n_actions))
            behavior[:, to[to >= 0]] = self.behavior[:, to >= 0]
            twin._set(behavior=behavior)
        elif self.estimated is None:
            twin._check_behavior()
        return twin

    @checked(seed=SEED)
    def with_behavior(self, policy: Any, seed: int = 0) -> Log:
        """The same log with this behaviour policy (any policy form, or "estimate"), checked against the propensities.

        `seed` is that of the folds of an estimate.
        """
        twin = self._copy(behavior=owned(policy) if isinstance(policy, np.ndarray) else policy)
        twin._check_behavior(seed)
        return twin

    def without_estimate(self) -> Log:
        """The same log without estimated propensities."""
        return self if self.estimated is None else self._copy(propensities=None, behavior=None, estimated=None)

    def taken_as_known(self) -> Log:
        """The same log without the label that its propensities are estimated."""
        return self._copy(estimated=None)

    @checked(column=text)
    def with_units(self, column: str) -> Log:
        """The same log with a column of its file or frame as the unit that makes rows dependent."""
        if column not in self.columns and column not in self.state_columns:
            raise PodiumError(f"the log has no column {column!r} for the unit", hint=available(self.columns, column))
        values = self.columns[column] if column in self.columns else self.state_columns[column]
        units = units_column(values, f"column {column!r}")
        log = self._copy(units=units, names={**self.names, "unit": column})
        if self.states_guessed and column in self.state_columns and len(self.state_columns) > 1:
            rest = {name: c for name, c in self.state_columns.items() if name != column}
            log._set(state_columns=rest, states=states_given(rest, list(rest), self.states))
        return log

    @checked(rows=row_numbers)
    def take(self, rows: slice | Codes) -> Log:
        """The log of some rows, over the same action space."""

        refuse_rows_beyond(rows, len(self))

        def picked(values: Any) -> Any:
            return None if values is None else values[rows]

        states = {name: column[rows] for name, column in self.state_columns.items()}
        return self._copy(
            states=take_rows(vars(self)["states"], rows),
            state_columns=states,
            actions=self.actions[rows],
            action_codes=self.action_codes[rows],
            rewards=self.rewards[rows],
            propensities=picked(self.propensities),
            behavior=picked(self.behavior),
            times=picked(self.times),
            units=picked(self.units),
            eligible=picked(self.eligible),
            columns=LazyColumns(self.columns, partial(rows_of, self.columns, rows)),
        )

    # --- in and out ----------------------------------------------------------------------------------------

    @classmethod
    def from_frame(cls, frame: Any, **roles: Any) -> Log:
        """A log from a pandas, polars, Spark or lazy frame, an arrow table, a DuckDB relation or a dict of columns; see
        `from_columns` for the roles. Frames that live elsewhere are fetched, up to a million rows."""
        return cls.from_columns(frame_to_columns(frame), frame=frame if is_frame(frame) else None, **roles)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        *,
        state: str | Sequence[str] | None = None,
        action: str = "action",
        reward: str = "reward",
        propensity: str | None = None,
        time: str | None = None,
        unit: str | None = None,
        actions: Sequence[Any] = (),
        eligible: str | None = None,
        ineligible: str = "refuse",
        frame: Any = None,
        also: Sequence[str] = (),
    ) -> Log:
        """A log from named columns: `action`, `reward`, perhaps `propensity`, `time`; the rest is state.

        Columns `pi_<name>` and `pi_<name>:<action>` are policies, `propensity:<action>` the full behaviour
        distribution, `eligible:<action>` 1 where an action was possible; they and outcomes (`also`) are never state.
        """
        arrays = named_arrays(mapping("columns", columns))
        roles = assign_roles(arrays, state, action, reward, propensity, time, unit, eligible, also)
        return cls.in_roles(arrays, without_prose(roles, arrays), actions, frame, ineligible)

    @classmethod
    def in_roles(
        cls,
        columns: Mapping[str, Column],
        roles: Roles,
        actions: Sequence[Any] = (),
        frame: Any = None,
        ineligible: str = "refuse",
        listing: Any = None,
    ) -> Log:
        """A log from columns whose roles are known, and which came from `frame`; `listing`: see `eligible_parts`."""
        columns = own_columns(columns)
        of = {role: columns[header] for role, header in roles.names.items()}
        return cls(
            states=states_given(columns, list(roles.states), frame),
            actions=of["action"],
            rewards=of["reward"],
            propensities=of.get("propensity"),
            action_space=actions,
            times=of.get("time"),
            units=of.get("unit"),
            columns=columns,
            names={**roles.names, **({"eligible": roles.eligible_name} if roles.eligible else {})},
            states_guessed=roles.guessed,
            left_out=roles.left_out,
            behavior=f"column:{roles.propensity}" if roles.full else None,
            eligible=(listing or roles).given(columns),
            ineligible=ineligible,
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """The log as a frame of "pandas", "polars" or "pyarrow", in the layout that `from_frame` reads."""
        return columns_to_frame(log_columns(self), backend)

    def to_dict(self) -> dict[str, Any]:
        """What the JSON output says of the log."""
        return log_figures(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the size, and the first rows."""
        return log_table(self).html()

    def __repr__(self) -> str:
        return describe_log(self, self.engine)


Log.states = OwnStates()  # a frame is handed out as a copy
