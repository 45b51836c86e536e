"""A policy's names of actions held against the log's: off by one, other kinds, other spellings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import podium
from podium import Log, PodiumError, Policy
from podium.data.errors import percent_hint
from podium.policies import PolicySet, resolve_policies

STATES = np.array([0, 0, 1, 1, 2, 2])
REWARDS = np.array([1.0, 0.0, 0.5, 0.25, 2.0, 1.0])
ONE = Log(STATES, [1, 2, 3, 1, 2, 3], REWARDS, propensities=np.full(6, 1 / 3))
ZERO = Log(STATES, [0, 1, 2, 0, 1, 2], REWARDS)
DIGITS = Log(STATES, ["1", "2", "3", "1", "2", "3"], REWARDS)
WORDS = Log(STATES, ["email", "call", "b", "b", "call", "email"], REWARDS)
SPACE = "name the whole action space with actions=[...] (--actions)."
FROM_0 = (
    "policy 'x' numbers its actions from 0 (0, 1, 2), and the log numbers them from 1 ({}): the labels are off by "
    "one\n\nHint: map them with podium.Policy(policy, labels={{{}}}), or correct them in the file; if {} is one more "
    "action, " + SPACE
)
FROM_1 = (
    "policy 'x' numbers its actions from 1 (1, 2, 3), and the log numbers them from 0 (0, 1, 2): the labels are off by "
    "one\n\nHint: map them with podium.Policy(policy, labels={1: 0, 2: 1, 3: 2}), or correct them in the file; if 3 is "
    "one more action, " + SPACE
)


class Model:
    """A fitted classifier of its classes."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, states: Any) -> Any:
        return np.tile(np.eye(len(self.classes_))[0], (len(states), 1))


def resolve(policy: Any, log: Log = ONE) -> PolicySet:
    return resolve_policies(log, {"x": policy})[1]


def message(policy: Any, log: Log = ONE) -> str:
    with pytest.raises(PodiumError) as caught:
        resolve(policy, log)
    return str(caught.value)


NUMBERED: dict[str, Any] = {
    "classifier": Model([0, 1, 2]),
    "chosen actions": [0, 1, 2, 0, 1, 2],
    "function": lambda states: np.array([0, 1, 2, 0, 1, 2]),
    "table by state": {0: 0, 1: 1, 2: 2},
    "table of probabilities": {s: {0: 0.5, 1: 0.25, 2: 0.25} for s in range(3)},
    "sql": "sql:state",
}


@pytest.mark.parametrize("policy", NUMBERED.values(), ids=NUMBERED)
def test_labels_that_are_off_by_one_are_refused_in_every_form(policy: Any) -> None:
    assert message(policy) == FROM_0.format("1, 2, 3", "0: 1, 1: 2, 2: 3", "0")


def test_labels_that_begin_at_one_are_refused_where_the_log_begins_at_zero() -> None:
    assert message([1, 2, 3, 1, 2, 3], ZERO) == FROM_1


def test_numbers_against_digits_that_are_off_by_one() -> None:
    assert message(Model([0, 1, 2]), DIGITS) == FROM_0.format("'1', '2', '3'", "0: '1', 1: '2', 2: '3'", "0")


def test_labels_map_a_policy_to_the_log() -> None:
    model = Model([0, 1, 2])
    for labels in ({0: 1, 1: 2, 2: 3}, [1, 2, 3]):
        mapped = resolve(Policy(model, labels=labels))
        assert mapped.warnings == ()
        assert mapped.policies[0].full(3)[0].tolist() == [1.0, 0.0, 0.0]
    chosen = resolve(Policy([0, 1, 2, 0, 1, 2], labels=[1, 2, 3])).policies[0]
    assert chosen.logged.tolist() == [1.0] * 6
    assert message(Policy(model, labels={0: 1, 1: 2})) == (
        "policy 'x': labels has no name for the action 2\n\nHint: name each of the policy's actions: 0, 1, 2."
    )
    with pytest.raises(PodiumError) as caught:
        Policy(model, labels="abc")
    assert str(caught.value) == (
        "labels must map a policy's actions to those of the log; it is 'abc'\n\n"
        "Hint: write podium.Policy(model, labels={0: 'a', 1: 'b'}), or labels=['a', 'b']."
    )


def test_an_action_space_that_names_them_lets_new_numbers_pass() -> None:
    wide = ONE.with_action_space([0, 1, 2, 3])
    assert resolve([0, 1, 2, 0, 1, 2], wide).policies[0].logged.sum() == 0.0


@pytest.mark.parametrize("chosen", [[0, 3, 0, 3, 0, 3], [4, 4, 4, 4, 4, 4], [2, 3, 4, 2, 3, 4]])
def test_other_new_numbers_are_new_actions(chosen: list[int]) -> None:
    new = min(set(chosen) - {1, 2, 3})
    assert resolve(chosen).warnings == (f"policy 'x' can play actions that the log's action space lacks: {new}.",)


def test_numbers_and_texts_that_are_written_alike_are_matched_and_said() -> None:
    found = resolve(Model(["1", "2", "3"]))
    assert found.warnings == (
        "policy 'x' names its actions by texts ('1', '2', '3'); podium takes them for the log's 1, 2, 3.",
    )
    assert found.policies[0].full(3)[0].tolist() == [1.0, 0.0, 0.0]
    found = resolve([1, 2, 3, 1, 2, 3], DIGITS)
    assert found.warnings == (
        "policy 'x' names its actions by numbers (1, 2, 3); podium takes them for the log's '1', '2', '3'.",
    )
    assert found.policies[0].logged.tolist() == [1.0] * 6


def test_what_could_be_two_actions_is_not_matched() -> None:
    log = Log(STATES, ["1", " 1", "2", "2", "1", "2"], REWARDS)
    assert message([1, 2, 2, 1, 1, 2], log) == (
        "policy 'x' must choose actions of the log; row 1 holds 1 (6 rows)\n\n"
        "Hint: the actions are ' 1', '1', '2'; probabilities are an array of floats, or (N, A)."
    )


@pytest.mark.parametrize("policy", [["B "] * 6, Model(["B ", "call"]), dict.fromkeys(range(3), "B ")])
def test_case_and_spaces_are_questioned(policy: Any) -> None:
    assert message(policy, WORDS) == (
        "policy 'x' names the action 'B ', which does not occur in the log; did you mean 'b'?\n\n"
        "Hint: write 'b', or map it with podium.Policy(policy, labels={'B ': 'b', ...}); if 'B ' is an action of its "
        "own, " + SPACE
    )


def test_a_misspelled_new_action_is_questioned() -> None:
    assert resolve(["emial"] * 6, WORDS).warnings == (
        "policy 'x' can play actions that the log's action space lacks: 'emial'. Did you mean 'email'?",
    )
    assert message("constant:emial", WORDS) == (
        "policy 'x': 'emial' is not an action of this log\n\n"
        "Hint: did you mean 'email'? the actions are 'b', 'call', 'email'; name more with --actions."
    )


def test_logged_actions_that_differ_by_case_are_a_warning() -> None:
    log = Log(STATES, ["b", "B ", "c", "b", "c", "b"], REWARDS)
    result = podium.compare(log, {"c": "constant:c", "any": "uniform"}, verdicts="gated")
    assert result.warnings == (
        "the logged actions 'B ' and 'b' differ only by case or spaces; if they are the same, give them one name.",
    )


# --- names ---------------------------------------------------------------------------------------------------------


def test_misspelled_specs_methods_and_columns() -> None:
    assert message("unifrom").startswith("unknown policy 'unifrom'\n\nHint: did you mean 'uniform'? a SPEC is one of ")
    assert message("consant:1").startswith("unknown policy 'consant:1'\n\nHint: did you mean 'constant:1'? a SPEC is ")
    with pytest.raises(PodiumError) as caught:
        podium.compare(ONE, {"a": "constant:1", "b": "uniform"}, "SNIP")
    assert str(caught.value).startswith("unknown estimator 'SNIP'\n\nHint: did you mean 'SNIPS'? the estimators are ")
    with pytest.raises(PodiumError) as caught:
        podium.compare(ONE, {"a": "constant:1", "b": "uniform"}, verdicts="posteriour")
    assert str(caught.value) == (
        "unknown verdicts 'posteriour'\n\nHint: did you mean 'posterior'? the procedures are posterior, gated, doubly "
        "robust, paired t, bootstrap t, sign flip."
    )
    with pytest.raises(PodiumError) as caught:
        Log.from_columns({"age": [1], "action": ["a"], "reward": [1.0]}, state="agge")
    assert str(caught.value) == (
        "the log has no column 'agge' for the state\n\nHint: did you mean 'age'? the columns are age, action, reward."
    )


# --- percents ------------------------------------------------------------------------------------------------------


def test_percents_are_recognized() -> None:
    with pytest.raises(PodiumError) as caught:
        Log.from_columns(
            {"age": [1, 2], "action": ["a", "b"], "reward": [1.0, 0.0], "propensity": [40.0, 60.0]},
        )
    assert str(caught.value) == (
        "column 'propensity' must be <= 1; row 1 holds 40 (2 rows)\n\n"
        "Hint: these look like percents: divide them by 100, in pandas frame['propensity'] /= 100."
    )
    assert message(np.tile([40.0, 35.0, 25.0], (6, 1))) == (
        "policy 'x' must be a probability in [0, 1]; row 1 holds 40 (6 rows)\n\n"
        "Hint: these look like percents: divide them by 100."
    )
    assert message("shares:1=40,2=60") == (
        "policy 'x': the shares sum to 100; they look like percents\n\nHint: divide them by 100: {'1': 0.4, '2': 0.6}."
    )


@pytest.mark.parametrize("values", [[1.2, 0.5], [0.2, 0.3], [250.0, 3.0], [-5.0, 50.0], [2.0, 3.0]])
def test_other_numbers_are_not_percents(values: list[float]) -> None:
    assert percent_hint(np.array(values), "column 'p'") == ""
