"""The log: what it accepts, what it refuses and how it says so, its codes, and the way to frames and back."""

import dataclasses
import datetime as dt
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from podium import Log, PodiumError, Policy, compare, read_log
from podium.data.columns import descending, tiers

STATES, ACTIONS, REWARDS = [0, 0, 1], ["l", "r", "l"], [1.0, 0.0, 0.5]
REWARD = "a reward is a finite number in every row."
PROPENSITY = "a propensity is the probability of the logged action, in (0, 1]. LDE and DiM need no propensities."
FILL = "fill the gaps or drop those rows before comparing."
ROWS = "every column describes the same rows, in the same order."
TIME = "give every row a number or an ISO 8601 date; without times, the row order is the time order."
FULL = "give the propensities or the behaviour policy that really chose the actions."


def make(**changes: Any) -> Log:
    return Log(**({"states": STATES, "actions": ACTIONS, "rewards": REWARDS} | changes))


def refused(message: str, hint: str, function: Callable[[], Any]) -> None:
    with pytest.raises(PodiumError) as caught:
        function()
    assert str(caught.value) == f"{message}\n\nHint: {hint}"


# --- construction ----------------------------------------------------------------------------------------------


def test_a_log_from_lists():
    log = make(propensities=[0.5, 0.5, 1], times=[3, 1, 2], units=["p", "q", "p"])
    assert len(log) == 3
    assert (log.n_states, log.n_actions) == (2, 2)
    assert log.action_space == ("l", "r")
    assert_array_equal(log.action_codes, [0, 1, 0])
    assert_array_equal(log.state_codes, [0, 0, 1])
    assert_array_equal(log.first_rows, [0, 2])
    assert log.rewards.dtype == log.propensities.dtype == np.float64
    assert log.knows == "logged"
    assert log.state_labels == [0, 1]
    figures = {"rows": 3, "distinct": 3, "states": 2, "actions": 2, "propensities": "logged"}
    assert log.to_dict() == {**figures, "state_columns": ["state"]}


def test_the_input_is_left_alone():
    rewards, states = np.array([1, 0, 2]), np.array([5.0, 5.0, 6.0])
    log = make(states=states, rewards=rewards)
    assert_array_equal(log.states, states)
    assert states.flags.writeable
    assert rewards.flags.writeable
    assert rewards.dtype == np.int64


def test_a_log_is_frozen():
    log = make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        log.rewards = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del log.states


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Log (memory): 3 rows, 3 distinct (state, action), 2 states, 2 actions, no propensities"),
        (
            {"propensities": [1, 1, 1]},
            "Log (memory): 3 rows, 3 distinct (state, action), 2 states, 2 actions, propensities",
        ),
        (
            {"behavior": "uniform", "actions": ["l", "l", "l"]},
            "Log (memory): 3 rows, 2 distinct (state, action), 2 states, 1 action, the full behaviour policy",
        ),
        (
            {"states": range(1200), "actions": [1] * 1200, "rewards": [0] * 1200},
            "Log (memory): 1,200 rows, 1,200 distinct (state, action), 1,200 states, 1 action, no propensities",
        ),
    ],
)
def test_repr(changes: dict[str, Any], text: str):
    assert repr(make(**changes)) == text


# --- states ----------------------------------------------------------------------------------------------------

STATE_FORMS: dict[str, tuple[Any, list[Any]]] = {
    "integers": ([5, 3, 5], [3, 5]),
    "floats": ([0.5, 0.25, 0.5], [0.25, 0.5]),
    "whole and broken numbers": ([1, 0.5, 1.0], [0.5, 1.0]),
    "texts": (["y", "x", "y"], ["x", "y"]),
    "truth values": ([True, False, True], [False, True]),
    "an array of texts": (np.array(["y", "x", "y"]), ["x", "y"]),
    "an array of bytes": (np.array([b"y", b"x", b"y"]), ["x", "y"]),
    "unsigned 64-bit integers": (np.array([2**63 + 1, 2**63, 2**63 + 1], np.uint64), [2**63, 2**63 + 1]),
    "integers beyond 64 bits": ([10**20 + 1, 10**20, 10**20 + 1], [10**20, 10**20 + 1]),
    "dates": (np.array(["2024-01-02", "2024-01-01", "2024-01-02"], "M8[D]"), ["2024-01-01", "2024-01-02"]),
    "a pandas series": (pd.Series([5, 3, 5], index=[2, 0, 1]), [3, 5]),
    "a polars series": (pl.Series(["y", "x", "y"]), ["x", "y"]),
    "an arrow array": (pa.array([5, 3, 5]), [3, 5]),
    "a generator": ((x for x in [5, 3, 5]), [3, 5]),
    "a range": (range(3), [0, 1, 2]),
    "a masked array without gaps": (np.ma.array([5, 3, 5]), [3, 5]),
    "dates and times": (
        [dt.date(2024, 1, 2), dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
        [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    ),
    "tuples": ([("b", 1), ("a", 2), ("b", 1)], [("a", 2), ("b", 1)]),
    "lists": ([[2, 1.5], [1, 2.5], [2, 1.5]], [(1.0, 2.5), (2.0, 1.5)]),
    "lists of numbers and texts": ([["b", 1], ["a", 2], ["b", 1]], [("a", 2), ("b", 1)]),
    "an array of features": (np.array([[2, 1], [1, 2], [2, 1]]), [(1, 2), (2, 1)]),
    "one feature": (np.array([[2], [1], [2]]), [1, 2]),
    "a pandas frame": (pd.DataFrame({"a": [2, 1, 2], "b": ["x", "y", "x"]}), [(1, "y"), (2, "x")]),
    "a polars frame": (pl.DataFrame({"a": [2, 1, 2], "b": ["x", "y", "x"]}), [(1, "y"), (2, "x")]),
    "an arrow table": (pa.table({"a": [2, 1, 2], "b": ["x", "y", "x"]}), [(1, "y"), (2, "x")]),
}


@pytest.mark.parametrize("form", STATE_FORMS)
def test_states_in_many_forms(form: str):
    states, labels = STATE_FORMS[form]
    log = make(states=states)
    assert log.state_labels == labels
    if form != "a range":
        assert_array_equal(log.state_codes, [1, 0, 1])


@pytest.mark.parametrize("form", ["a pandas frame", "a polars frame", "an arrow table"])
def test_frames_reach_policies_as_they_came(form: str):
    states = STATE_FORMS[form][0]
    seen = []

    def policy(given: Any) -> list[str]:
        seen.append(given)
        return ["l"] * 3

    compare(make(states=states), {"a": policy, "b": "uniform"})
    assert type(seen[0]) is type(states)
    assert seen[0].equals(states)


def test_state_columns_carry_names():
    assert list(make().state_columns) == ["state"]
    assert list(make(states=np.zeros((3, 2))).state_columns) == ["state[0]", "state[1]"]
    assert list(make(states=pd.DataFrame({"a": [1, 2, 3], 5: [1, 2, 3]})).state_columns) == ["a", "5"]


def test_many_columns_of_many_values_are_coded_apart():
    rng = np.random.default_rng(3)
    states = rng.integers(0, 2**40, size=(500, 4))
    states[250:] = states[:250]
    log = Log(states, np.zeros(500), np.zeros(500))
    assert log.n_states == 250
    assert_array_equal(log.state_codes[:250], log.state_codes[250:])
    order = np.lexsort(states[:250].T[::-1])
    assert_array_equal(np.argsort(log.state_codes[:250]), order)


# --- actions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        ([10, 9, 10], (9, 10)),
        (["10", "9", "10"], ("10", "9")),
        ([0.5, 0.25, 0.5], (0.25, 0.5)),
        ([True, False, True], (False, True)),
        ([("a", 1), ("b", 2), ("a", 1)], (("a", 1), ("b", 2))),
        (pd.Series(["b", "a", "b"], dtype="category"), ("a", "b")),
        (np.array(["b", "a", "b"]), ("a", "b")),
    ],
)
def test_the_action_space_is_sorted(actions: Any, space: tuple[Any, ...]):
    assert make(actions=actions).action_space == space
    assert all(type(a) in (int, float, bool, str, tuple) for a in make(actions=actions).action_space)


def test_a_given_action_space_keeps_its_order_and_unobserved_actions():
    log = make(action_space=["z", "r", "l"])
    assert log.action_space == ("z", "r", "l")
    assert_array_equal(log.action_codes, [2, 1, 2])
    assert make(actions=[1, 2, 1], action_space=np.array([3, 2, 1])).action_space == (3, 2, 1)


SPACE_HINT = "give the actions as a list such as ['a', 'b'], in the order of the columns of probabilities."


def test_with_actions_appends():
    log = make(behavior=[[0.5, 0.5]] * 3)
    more = log.with_actions(["r", "z", "a", "z"])
    assert more.action_space == ("l", "r", "z", "a")
    assert_array_equal(more.behavior, [[0.5, 0.5, 0, 0]] * 3)
    assert_array_equal(more.action_codes, log.action_codes)
    assert log.action_space == ("l", "r")
    assert log.with_actions(["l"]) is log


def test_with_action_space_reorders():
    log = make(behavior=[[0.25, 0.75]] * 3)
    other = log.with_action_space(["z", "r", "l"])
    assert other.action_space == ("z", "r", "l")
    assert_array_equal(other.action_codes, [2, 1, 2])
    assert_array_equal(other.behavior, [[0, 0.75, 0.25]] * 3)
    assert_array_equal(other.propensities, log.propensities)
    refused(
        "column 'action' must be in the action space; row 1 holds 'l' (2 rows)",
        "the action space is 'r'; name every action that may be taken.",
        lambda: log.with_action_space(["r"]),
    )
    wider = make(behavior=[[0.25, 0.5, 0.25]] * 3, action_space=["l", "r", "z"])
    refused(
        "the behaviour policy plays actions that the action space lacks",
        "name every action.",
        lambda: wider.with_action_space(["l", "r"]),
    )


@pytest.mark.parametrize(
    ("space", "message", "hint"),
    [
        (
            ["r", "z"],
            "column 'action' must be in the action space; row 1 holds 'l' (2 rows)",
            "the action space is 'r', 'z'; name every action that may be taken.",
        ),
        (["l", "r", "l"], "the action space names 'l' twice", "name each action once."),
        ({"l"}, "the action space must be a list; it is {'l'}", SPACE_HINT),
        ("lr", "the action space must be a list; it is 'lr'", SPACE_HINT),
    ],
)
def test_action_spaces_that_are_refused(space: Any, message: str, hint: str):
    refused(message, hint, lambda: make(action_space=space))


# --- what is refused -------------------------------------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("no rows", {"states": [], "actions": [], "rewards": []}, "the log has no rows",
     "a log needs at least one logged interaction."),
    ("nan reward", {"rewards": [1, np.nan, np.nan]},
     "column 'reward' must be a finite number; row 2 holds nan (2 rows)", REWARD),
    ("inf reward", {"rewards": [1, 2, np.inf]}, "column 'reward' must be a finite number; row 3 holds inf (1 row)",
     REWARD),
    ("text reward", {"rewards": ["1", "2", "3"]}, "column 'reward' must be a number; row 1 holds '1' (3 rows)", REWARD),
    ("no reward", {"rewards": [1, None, 2]}, "column 'reward' must be a number; row 2 holds nothing (1 row)", REWARD),
    ("masked reward", {"rewards": np.ma.array([1.0, 2, 3], mask=[0, 0, 1])},
     "column 'reward' must be a number; row 3 holds nothing (1 row)", REWARD),
    ("complex reward", {"rewards": [1j, 2, 3]}, "column 'reward' must be a number; row 1 holds 1j (1 row)", REWARD),
    ("integer that no float can hold", {"rewards": [1, 10**400, 3]},
     f"column 'reward' must be a finite number; row 2 holds {'1' + '0' * 56}... (1 row)", REWARD),
    ("large reward", {"rewards": [1, -2e100, 3]},
     "column 'reward' must lie within -1e+100 and 1e+100; row 2 holds -2e+100 (1 row)",
     "give the rewards in a larger unit."),
    ("table of rewards", {"rewards": [[1], [2], [3]]}, "column 'reward' must be one-dimensional; its shape is (3, 1)",
     REWARD),
    ("states too many", {"states": [1, 2, 3, 4]}, "column 'state' has 4 rows; column 'reward' has 3", ROWS),
    ("features too few", {"states": np.zeros((2, 2))}, "column 'state' has 2 rows; column 'reward' has 3", ROWS),
    ("frame too long", {"states": pd.DataFrame({"a": range(4), "b": range(4)})},
     "column 'state' has 4 rows; column 'reward' has 3", ROWS),
    ("actions too few", {"actions": ["l"]}, "column 'action' has 1 row; column 'reward' has 3", ROWS),
    ("propensities too few", {"propensities": [1.0]}, "column 'propensity' has 1 row; column 'reward' has 3", ROWS),
    ("times too few", {"times": [1, 2]}, "column 'time' has 2 rows; column 'reward' has 3", ROWS),
    ("units too few", {"units": [1, 2]}, "column 'unit' has 2 rows; column 'reward' has 3", ROWS),
    ("a text as states", {"states": "xyz"}, "column 'state' has 1 row; column 'reward' has 3", ROWS),
    ("a set of states", {"states": {1, 2, 3}}, "a set is no column", "give a list or an array: one value per row."),
    ("a dict of actions", {"actions": {"l": 1, "r": 2, "x": 3}}, "a dict is no column",
     "give a list or an array: one value per row."),
    ("no state", {"states": [1, None, 2]}, "column 'state' must not be missing; row 2 holds nothing (1 row)", FILL),
    ("nan state", {"states": [1, 2, np.nan]}, "column 'state' must not be missing; row 3 holds nan (1 row)", FILL),
    ("NA state", {"states": pd.array([1, 2, None], dtype="Int64")},
     "column 'state' must not be missing; row 3 holds nan (1 row)", FILL),
    ("NaT state", {"states": np.array(["2024-01-01", "NaT", "2024-01-01"], "M8[D]")},
     "column 'state' must not be missing; row 2 holds nothing (1 row)", FILL),
    ("empty state", {"states": ["x", "", ""]},
     "column 'state' must not be missing; row 2 holds nothing (2 rows)", FILL),
    ("infinite state", {"states": [1, 2, -np.inf]}, "column 'state' must be finite; row 3 holds -inf (1 row)", FILL),
    ("mixed states", {"states": [1, "x", 2]}, "column 'state' mixes number and text; row 2 holds 'x' (1 row)",
     "correct those rows; where the values are names and not numbers, read the column as text (--text state)."),
    ("nan feature", {"states": [[1, 2], [1, np.nan], [3, 4]]},
     "column 'state[1]' must not be missing; row 2 holds nan (1 row)", FILL),
    ("rows of several lengths", {"states": [(1, 2), (1,), (1, 2)]},
     "column 'state' must hold 2 features in every row; row 2 holds (1,) (1 row)", "give rows of one length."),
    ("lists of several lengths", {"states": [[1, 2], [1, 2], [1]]},
     "column 'state' must hold 2 features in every row; row 3 holds [1] (1 row)", "give rows of one length."),
    ("three dimensions", {"states": np.zeros((3, 2, 2))},
     "column 'state' must be one-dimensional; its shape is (3, 2, 2)", "give one value per row."),
    ("no features", {"states": np.zeros((3, 0))}, "the log has no state columns",
     "name at least one with --state, or add a constant column."),
    ("dicts as states", {"states": [{"a": 1}] * 3},
     "column 'state' must hold numbers or texts; row 1 holds {'a': 1} (3 rows)", "give one number or text per row."),
    ("no action", {"actions": ["l", None, "r"]}, "column 'action' must not be missing; row 2 holds nothing (1 row)",
     FILL),
    ("mixed actions", {"actions": ["l", 1, "r"]}, "column 'action' mixes text and number; row 2 holds 1 (1 row)",
     "correct those rows; where the values are names and not numbers, read the column as text (--text action)."),
    ("table of actions", {"actions": [[1], [2], [1]]}, "column 'action' must be one-dimensional; its shape is (3, 1)",
     "give one value per row."),
    ("propensity 0", {"propensities": [0.5, 0, 0]}, "column 'propensity' must be > 0; row 2 holds 0 (2 rows)",
     PROPENSITY),
    ("propensity above 1", {"propensities": [0.5, 0.5, 1.1]},
     "column 'propensity' must be <= 1; row 3 holds 1.1 (1 row)", PROPENSITY),
    ("nan propensity", {"propensities": [np.nan, 0.5, 0.5]},
     "column 'propensity' must be a finite number; row 1 holds nan (1 row)", PROPENSITY),
    ("tiny propensity", {"propensities": [1, 1e-31, 1]},
     "column 'propensity' must be at least 1e-30; row 2 holds 1e-31 (1 row)", PROPENSITY),
    ("table of propensities", {"propensities": np.full((3, 2), 0.5)},
     "column 'propensity' must be one-dimensional; its shape is (3, 2)", PROPENSITY),
    ("gap in time", {"times": [1, np.nan, 3]}, "column 'time' must not have gaps; row 2 holds nan (1 row)", TIME),
    ("gap in dates", {"times": ["2024-01-01", None, "2024-01-03"]},
     "column 'time' must not have gaps; row 2 holds nothing (1 row)", TIME),
    ("text in time", {"times": ["2024-01-01", "noon", "2024-01-03"]},
     "column 'time' must be a number or an ISO 8601 date; row 2 holds 'noon' (1 row)", TIME),
    ("zones in some times", {"times": ["2024-01-01", "2024-01-01T00:00Z", "2024-01-03"]},
     "column 'time' must name a time zone in every row or in none; row 1 holds '2024-01-01' (2 rows)", TIME),
    ("table of times", {"times": [[1], [2], [3]]}, "column 'time' must be one-dimensional; its shape is (3, 1)", TIME),
    ("gap in units", {"units": [1, None, 2]}, "column 'unit' must not be missing; row 2 holds nothing (1 row)", FILL),
    ("gap in mixed units", {"units": [1, np.nan, "b"]}, "column 'unit' must not be missing; row 2 holds nan (1 row)",
     FILL),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message", "hint"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_a_log_refuses(changes: dict[str, Any], message: str, hint: str):
    refused(message, hint, lambda: make(**changes))


# --- times -----------------------------------------------------------------------------------------------------

ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("times", "latest"),
    [
        (None, [2, 3]),
        ([1, 2, 3, 4], [2, 3]),
        ([3, 2, 1, 0], [0, 3]),
        ([2, 2, 1, 0], [1, 3]),
        ([0, 0, 0, 0], [2, 3]),
        ([1.5, 1.25, 1.0, 0.0], [0, 3]),
        (["2024-01-02", "2024-01-01", "2024-01-01T12:00", "2024-01-01"], [0, 3]),
        (["2024-01-01T00:00Z", "2024-01-01T01:00+02:00", "2024-01-01T00:00+00:00", "2024-01-01T00:00Z"], [2, 3]),
        (np.array([3, 2, 1, 0], dtype="M8[h]"), [0, 3]),
        ([dt.date(2024, 1, day) for day in (3, 2, 1, 1)], [0, 3]),
        ([dt.datetime(2024, 1, day, tzinfo=ZONE) for day in (1, 3, 2, 1)], [1, 3]),
        (pd.Series(pd.to_datetime(["2024-01-03", "2024-01-02", "2024-01-03", "2024-01-01"])), [2, 3]),
        (np.array([3, 2, 1, 0], dtype="m8[s]"), [0, 3]),
    ],
)
def test_the_latest_row_of_a_repeated_state_and_action(times: Any, latest: list[int]):
    log = Log([7, 7, 7, 7], ["a", "a", "a", "b"], [1.0, 2.0, 3.0, 4.0], times=times)
    assert_array_equal(log.latest, latest)


def test_the_latest_rows_of_many_states():
    """More cells than rows, so that they are sorted rather than counted."""
    rng = np.random.default_rng(11)
    states, actions, times = rng.integers(0, 300, 2000), rng.integers(0, 300, 2000), rng.integers(0, 40, 2000)
    log = Log(states, actions, np.zeros(2000), times=times)
    last: dict[tuple[int, int], int] = {}
    for row in sorted(range(2000), key=lambda n: times[n]):
        last[states[row], actions[row]] = row
    assert_array_equal(log.latest, sorted(last.values()))


# --- behaviour -------------------------------------------------------------------------------------------------

FULL_FORMS: dict[str, Any] = {
    "table of probabilities": [[0.25, 0.75], [0.25, 0.75], [0.5, 0.5]],
    "array": np.array([[0.25, 0.75], [0.25, 0.75], [0.5, 0.5]]),
    "callable": lambda states: np.where(states[:, None] == 0, [[0.25, 0.75]], [[0.5, 0.5]]),
    "states to dicts": {0: {"r": 0.75, "l": 0.25}, 1: {"l": 0.5, "r": 0.5}},
    "states to lists": {0: [0.25, 0.75], 1: [0.5, 0.5]},
    "keyed pandas frame": pd.DataFrame({"state": [1, 0], "r": [0.5, 0.75], "l": [0.5, 0.25]}),
    "polars frame in order": pl.DataFrame({"r": [0.75, 0.75, 0.5], "l": [0.25, 0.25, 0.5]}),
}


@pytest.mark.parametrize("form", FULL_FORMS)
def test_behaviour_in_any_form(form: str):
    log = make(behavior=FULL_FORMS[form])
    assert log.knows == "full"
    assert_array_equal(log.behavior, FULL_FORMS["array"])
    assert_array_equal(log.propensities, [0.25, 0.75, 0.5])
    agreed = make(behavior=FULL_FORMS[form], propensities=[0.25, 0.75 + 9e-7, 0.5])
    assert agreed.propensities[1] == 0.75 + 9e-7
    refused(
        "column 'propensity' must agree with the behaviour policy within 1e-6; row 2 holds 0.7500011 (1 row)",
        FULL,
        lambda: make(behavior=FULL_FORMS[form], propensities=[0.25, 0.75 + 1.1e-6, 0.5]),
    )


def test_behaviour_that_is_known_at_the_logged_actions_only():
    log = make(behavior=[0.25, 0.75, 0.5])
    assert log.knows == "logged"
    assert log.behavior is None
    assert_array_equal(log.propensities, [0.25, 0.75, 0.5])


def test_behaviour_may_play_actions_that_were_never_logged():
    log = make(behavior={0: {"l": 0.5, "r": 0.3, "z": 0.2}, 1: {"l": 1.0}})
    assert log.action_space == ("l", "r", "z")
    assert_array_equal(log.behavior, [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [1, 0, 0]])
    assert_array_equal(make(behavior="uniform", action_space=["l", "r", "x", "y"]).propensities, [0.25] * 3)


def test_deterministic_behaviour():
    log = make(behavior=["l", "r", "l"])
    assert_array_equal(log.behavior, [[1, 0], [0, 1], [1, 0]])
    refused(
        "the behaviour policy's probability of the logged action must be > 0; row 2 holds 0 (1 row)",
        PROPENSITY,
        lambda: make(behavior="constant:l"),
    )


def test_behaviour_later():
    log = make(propensities=[0.5, 0.5, 0.5])
    assert log.with_behavior("uniform").knows == "full"
    assert log.knows == "logged"
    assert compare(log, {"now": "logged", "l": "constant:l"}, behavior="uniform").log.knows == "full"
    refused(
        "column 'propensity' must agree with the behaviour policy within 1e-6; row 1 holds 0.5 (3 rows)",
        FULL,
        lambda: log.with_behavior([0.4, 0.6, 0.4]),
    )


def test_scores_are_no_behaviour():
    refused(
        "policy 'behavior': the sum of a row's probabilities must be 1 within 1e-6; row 1 holds 1.1 (3 rows)",
        "its actions are 'l', 'r'; declare scores with podium.Policy(x, proxy=True).",
        lambda: make(behavior=[[0.5, 0.6]] * 3),
    )
    refused(
        "the behaviour policy's probability of the logged action must be <= 1; row 1 holds 2 (2 rows)",
        PROPENSITY,
        lambda: make(behavior=Policy([[2.0, 0.5]] * 3, proxy=True)),
    )


# --- units -----------------------------------------------------------------------------------------------------


def test_units_are_names():
    assert make(units=[7, "7b", 7]).units.tolist() == ["7", "7b", "7"]
    log = Log.from_frame(
        pd.DataFrame({"who": [1, "b", 1], "s": STATES, "action": ACTIONS, "reward": REWARDS}), state="s"
    )
    assert log.with_units("who").units.tolist() == ["1", "b", "1"]
    assert log.with_units("s").units.tolist() == STATES
    refused(
        "the log has no column 'whom' for the unit",
        "did you mean 'who'? the columns are who, s, action, reward.",
        lambda: log.with_units("whom"),
    )


def test_a_unit_is_no_state_unless_it_is_named_one():
    frame = pd.DataFrame({"who": [1, 2, 1], "s": STATES, "action": ACTIONS, "reward": REWARDS})
    assert list(Log.from_frame(frame).with_units("who").state_columns) == ["s"]
    assert list(Log.from_frame(frame, unit="who").state_columns) == ["s"]
    assert list(Log.from_frame(frame, state=["who", "s"], unit="who").state_columns) == ["who", "s"]


# --- frames ----------------------------------------------------------------------------------------------------

FRAME = {
    "age": [30, 30, 40],
    "sex": ["f", "m", "f"],
    "action": ["sms", "call", "sms"],
    "reward": [1.0, 0.0, 0.5],
    "propensity": [0.25, 0.75, 0.25],
    "time": [3, 1, 2],
    "pi_new": [0.1, 0.9, 0.1],
    "pi_new:sms": [0.1, 0.1, 0.1],
    "pi_new:call": [0.9, 0.9, 0.9],
    "propensity:sms": [0.25, 0.25, 0.25],
    "propensity:call": [0.75, 0.75, 0.75],
}
MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("made_by", MAKERS)
@pytest.mark.parametrize("backend", MAKERS)
def test_round_trip(made_by: str, backend: str):
    log = Log.from_frame(MAKERS[made_by](FRAME))
    assert log.knows == "full"
    assert list(log.state_columns) == ["age", "sex"]
    frame = log.to_frame(backend)
    assert type(frame) is type(MAKERS[backend](FRAME))
    again = Log.from_frame(frame)
    assert list(again.columns) == list(FRAME)
    for name, values in FRAME.items():
        assert again.columns[name].tolist() == values
    assert again.action_space == log.action_space == ("call", "sms")
    assert_array_equal(again.behavior, log.behavior)
    assert_array_equal(again.state_codes, log.state_codes)
    assert_array_equal(again.latest, log.latest)


@pytest.mark.parametrize("backend", MAKERS)
def test_round_trip_of_arrays(backend: str):
    log = make(
        states=[("x", 1), ("x", 2), ("y", 1)],
        behavior=[[0.5, 0.25, 0.25]] * 3,
        action_space=["l", "r", "z"],
        times=[1, 2, 3],
        units=["p", "q", "p"],
    )
    again = Log.from_frame(log.to_frame(backend), unit="unit")
    assert list(again.state_columns) == ["state[0]", "state[1]"]
    assert again.state_labels == log.state_labels
    assert again.action_space == log.action_space
    assert_array_equal(again.behavior, log.behavior)
    assert_array_equal(again.times, log.times)
    assert again.units.tolist() == ["p", "q", "p"]


@pytest.mark.parametrize("backend", MAKERS)
def test_a_behaviour_given_later_is_in_the_frame(backend: str):
    frame = pd.DataFrame({"s": STATES, "deed": ACTIONS, "gain": REWARDS})
    log = Log.from_frame(frame, action="deed", reward="gain").with_behavior([[0.5, 0.5]] * 3)
    again = Log.from_frame(log.to_frame(backend), action="deed", reward="gain")
    assert list(again.columns) == ["s", "deed", "gain", "propensity", "propensity:l", "propensity:r"]
    assert again.knows == "full"


@pytest.mark.parametrize("backend", MAKERS)
def test_a_frame_holds_columns_that_mix_kinds(backend: str):
    log = Log.from_columns({"s": STATES, "action": ACTIONS, "reward": REWARDS, "note": [1, None, "x"]}, state="s")
    notes = Log.from_frame(log.to_frame(backend), state="s").columns["note"].tolist()
    assert (notes[0], notes[2]) == ("1", "x")
    assert notes[1] is None or notes[1] != notes[1]


def test_columns_may_be_renamed():
    frame = pd.DataFrame(FRAME).rename(columns=lambda h: h.replace("propensity", "p").replace("time", "when"))
    log = Log.from_frame(frame, propensity="p", time="when", state="sex")
    assert log.knows == "full"
    assert_array_equal(log.times, [3, 1, 2])
    assert log.names == {"action": "action", "reward": "reward", "propensity": "p", "time": "when", "state": "sex"}
    assert log.column("state") == "column 'sex'"
    with pytest.raises(PodiumError, match=r"column 'p' must be > 0; row 1 holds 0 \(1 row\)"):
        Log.from_frame(frame.assign(p=[0, 1, 1]), propensity="p", state="sex")


def test_a_column_called_time_may_be_state():
    frame = pd.DataFrame({"time": ["noon", "noon", "dusk"], "action": ACTIONS, "reward": REWARDS})
    log = Log.from_frame(frame, state="time")
    assert log.times is None
    assert log.state_labels == ["dusk", "noon"]
    numbers = frame.assign(time=[3, 1, 2])
    both = Log.from_frame(numbers, state=["time"], time="time")  # named as both, it is both
    assert_array_equal(both.times, [3, 1, 2])
    with pytest.raises(PodiumError, match=r"column 'time' must be a number or an ISO 8601 date; row 1 holds 'noon'"):
        Log.from_frame(frame.assign(s=1))


def test_one_state_column_reaches_policies_as_an_array_and_several_as_a_frame():
    frame = pd.DataFrame(FRAME)
    assert_array_equal(Log.from_frame(frame, state="age").states, FRAME["age"])
    several = Log.from_frame(frame, state=["sex", "age"]).states
    assert isinstance(several, pd.DataFrame)
    assert list(several.columns) == ["sex", "age"]
    assert list(Log.from_frame(frame, state=["age", "age"]).state_columns) == ["age"]


def test_columns_named_by_numbers():
    frame = pd.DataFrame({0: [1, 2, 3], 1: [4, 5, 6], "action": ACTIONS, "reward": REWARDS})
    log = Log.from_frame(frame)
    assert list(log.state_columns) == ["0", "1"]
    assert list(log.states.columns) == [0, 1]


@pytest.mark.parametrize(
    ("frame", "message", "hint"),
    [
        (
            7,
            "columns cannot be read from builtins.int",
            "give a pandas, polars or Spark frame, an arrow table or a DuckDB relation.",
        ),
        (
            pd.DataFrame([[1, 2, "a", 1.0]], columns=["s", "s", "action", "reward"]),
            "the column 's' appears twice",
            "give each column a name of its own.",
        ),
        (
            pa.table([[1], [2]], names=["action", "action"]),
            "the column 'action' appears twice",
            "give each column a name of its own.",
        ),
        (
            pd.DataFrame({"s": [1], "action": ["a"]}),
            "the log has no column 'reward' for the reward",
            "the columns are s, action.",
        ),
        (pd.DataFrame(FRAME).iloc[:0], "the log has no rows", "a log needs at least one logged interaction."),
    ],
)
def test_frames_that_are_refused(frame: Any, message: str, hint: str):
    refused(message, hint, lambda: Log.from_frame(frame))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"state": "reward"}, "the column 'reward' cannot be both the reward and the state"),
        ({"state": ["age", "action"]}, "the column 'action' cannot be both the action and the state"),
        ({"state": "propensity"}, "the column 'propensity' cannot be both the propensity and the state"),
        ({"reward": "action"}, "the column 'action' cannot be both the action and the reward"),
        ({"propensity": "reward"}, "the column 'reward' cannot be both the reward and the propensity"),
    ],
)
def test_a_column_plays_one_role(roles: dict[str, Any], message: str):
    hint = "name another column, or leave the option out."
    refused(message, hint, lambda: Log.from_frame(pd.DataFrame(FRAME), **roles))


def test_unknown_frame_library():
    refused("unknown frame library 'excel'", "use one of pandas, polars, pyarrow.", lambda: make().to_frame("excel"))


@pytest.mark.parametrize(
    ("package", "install"), [("pandas", "'podium[sklearn]'"), ("polars", "polars"), ("pyarrow", "'podium[parquet]'")]
)
def test_a_frame_library_that_is_not_installed(package: str, install: str, monkeypatch: pytest.MonkeyPatch):
    log = make()
    monkeypatch.setitem(sys.modules, package, None)
    refused(
        f"{package} is not installed; a {package} frame needs it",
        f"run: pip install {install}",
        lambda: log.to_frame(package),
    )


# --- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_files_written_by_polars_read_back(ending: str, tmp_path: Any):
    path = tmp_path / f"log.{ending}"
    frame = pl.DataFrame(FRAME)
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[ending](path)
    log, expected = read_log(path), Log.from_frame(frame)
    assert {h: c.tolist() for h, c in log.columns.items()} == FRAME
    assert_array_equal(log.behavior, expected.behavior)
    assert_array_equal(log.state_codes, expected.state_codes)


def test_read_log_matches_actions_to_numbers(tmp_path: Any):
    path = tmp_path / "log.csv"
    path.write_text("s,action,reward\n1,2,0\n1,3,1\n")
    assert read_log(path, actions=["1", "2", "3.0"]).action_space == (1, 2, 3)
    assert read_log(path, actions=[3, 2]).action_space == (3, 2)
    assert read_log(path, actions=["2", "3"], text=["action"]).action_space == ("2", "3")
    path.write_text("s,action,reward\n1,2.5,0\n1,3,1\n")
    assert read_log(path, actions=["3", "2.50", "1e1"]).action_space == (3.0, 2.5, 10.0)


# --- an order that rounding cannot change --------------------------------------------------------------------------


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.integers(0, 9))
def test_order_does_not_follow_rounding(values: list[int], seed: int) -> None:
    """Equal values keep their order, however they were rounded; unequal ones come largest first."""
    rng = np.random.default_rng(seed)
    noisy = 0.1 * np.array(values) + 1e-13 * rng.standard_normal(len(values)) * bool(any(values))
    assert descending(noisy).tolist() == sorted(range(len(values)), key=lambda n: -values[n])
    assert tiers(noisy).tolist() == [sorted(set(values), reverse=True).index(v) for v in values]


def test_nothing_to_order() -> None:
    assert descending(np.zeros(0)).tolist() == []
    assert tiers(np.zeros(3)).tolist() == [0, 0, 0]
