"""The same rows and policies with another column as the reward, or with a sum of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from podium.data.columns import Floats, numbers_column
from podium.data.conversions import OUTCOME_HINT
from podium.data.errors import PodiumError, refuse_rows
from podium.data.log import LARGEST, Log
from podium.data.owned import own_columns
from podium.data.roles import refuse_outcomes
from podium.data.scan import ScannedLog
from podium.data.states import states_given
from podium.engines.combined import Combination, CombinedEngine
from podium.engines.rows import MemoryRows, Rows, ScannedRows, WholeRows, check_log

NET_WORTH = "net worth"
READ_HINT = (
    f"{OUTCOME_HINT[:-1]}; podium.read_log(..., also=['{{0}}'], drop_missing=True) reads words, and leaves gaps out."
)


def beside_states(log: Log | ScannedLog, columns: Sequence[str]) -> Log | ScannedLog:
    """The log without outcomes among its states; refused where one is no column, or was named as something else.

    Every outcome is checked here, before anything is computed.
    """
    check_log(log)
    if not columns:
        return log
    names = log.roles.names if isinstance(log, ScannedLog) else log.names
    guessed = log.roles.guessed if isinstance(log, ScannedLog) else log.states_guessed
    taken = {header: role for role, header in names.items() if role != "state"}
    named = {} if guessed else dict.fromkeys(log.state_columns, "state")
    refuse_outcomes(log.columns, columns, {**taken, **named})
    states = [header for header in log.state_columns if header not in columns]
    if not states:
        raise PodiumError(
            "the log has no state columns beside the outcomes",
            hint="name at least one with --state, or add a constant column.",
        )
    if isinstance(log, ScannedLog):
        for column in columns:
            _ = on_column(log, column).survey  # refuses what is wrong with it
        same = len(states) == len(log.roles.states)
        return log if same else replace(log, roles=replace(log.roles, states=tuple(states)))
    for column in columns:
        outcome_numbers(log, column)
    if len(states) == len(log.state_columns):
        return log
    rest = {name: log.state_columns[name] for name in states}
    return log._copy(state_columns=own_columns(rest), states=states_given(rest, states, log.states))


def outcome_numbers(log: Log, column: str) -> Floats:
    """(N,) an outcome, checked as a reward is."""
    what = f"column {column!r}"
    numbers = numbers_column(log.columns[column], what, READ_HINT.format(column))
    hint = "give the outcome in a larger unit."
    refuse_rows(what, f"must lie within -{LARGEST:g} and {LARGEST:g}", np.abs(numbers) > LARGEST, numbers, hint)
    return numbers


def with_worth(log: Log | ScannedLog, worth: Sequence[tuple[str, float]]) -> Log | ScannedLog:
    """The log whose reward is what its rows are worth: the reward, and every outcome times its worth."""
    reward = log.header("reward")
    name = NET_WORTH
    while name in log.columns:
        name += " of all"
    if isinstance(log, ScannedLog):
        _ = log.survey  # a reward that cannot be used is told under its own name
        engine = CombinedEngine(log.engine, Combination(name, ((reward, 1.0), *worth)))
        return replace(log, engine=engine, roles=replace(log.roles, names={**log.roles.names, "reward": name}))
    total = log.rewards.copy()
    for column, factor in worth:
        total = total + factor * outcome_numbers(log, column)
    if not (np.abs(total) <= LARGEST).all():
        raise PodiumError("the net worth of some rows is too large", hint="give the worths in a larger unit.")
    columns = {**log.columns, reward: log.rewards, name: total}
    return log._copy(rewards=total, columns=own_columns(columns), names={**log.names, "reward": name})


def on_column(log: ScannedLog, column: str) -> ScannedLog:
    """The scanned log with this column as the reward; its counts of states stay known."""
    twin = replace(log, roles=replace(log.roles, names={**log.roles.names, "reward": column}))
    if "census" in vars(log):
        vars(twin)["census"] = log.census
    return twin


def with_reward(rows: Rows, column: str) -> Rows:
    """The same rows, sample and policies with another column as the reward; known costs belong to the reward alone."""
    policies = replace(rows.policies, costs=None)

    def changed(log: Log) -> Log:
        return log._copy(rewards=outcome_numbers(log, column), names={**log.names, "reward": column})

    source = rows.source
    sample = changed(rows.sample)
    if isinstance(source, ScannedRows):
        log = on_column(source.log, column)
        return replace(
            rows, log=log, sample=sample, policies=policies,
            source=replace(source, log=log, reader=replace(source.reader, roles=log.roles)),
        )  # fmt: skip
    assert isinstance(rows.log, Log)
    whole = sample if rows.log is rows.sample else changed(rows.log)
    if isinstance(source, MemoryRows):
        return replace(rows, log=whole, sample=sample, policies=policies, source=replace(source, log=whole))
    assert isinstance(source, WholeRows)
    own = policies if source.part.policies is rows.policies else replace(source.part.policies, costs=None)
    part = replace(source.part, log=whole, policies=own)
    return replace(rows, log=whole, sample=sample, policies=policies, source=WholeRows(part))
