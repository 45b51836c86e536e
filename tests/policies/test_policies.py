"""Policies in every form: each is read over the log's action space, and none is ever misaligned."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import podium
from podium import Log, PodiumError, Policy
from podium.policies import PolicyRows, PolicySet, resolve_policies

STATES = np.array([0, 0, 1, 1, 2])
ACTIONS = ["l", "r", "l", "m", "r"]
LOG = Log(STATES, ACTIONS, [1.0, 0.0, 0.5, 0.25, 2.0], propensities=[0.5, 0.25, 0.5, 0.125, 0.25])
BY_STATE = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.0, 1.0, 0.0]])  # l, m, r
FULL = BY_STATE[STATES]
LOGGED = np.array([0.2, 0.3, 0.6, 0.1, 0.0])
ACTIONS_HINT = "the actions are 'l', 'm', 'r'; probabilities are an array of floats, or (N, A)."
SCORE = "declare a score that is no probability with podium.Policy(x, proxy=True)."
SUMS = "its actions are 'l', 'm', 'r'; declare scores with podium.Policy(x, proxy=True)."
ROWS = "a policy gives one answer per log row, in the same order."
KIND = "say what the numbers are with podium.Policy(x, kind=...)."
PROBABILITY = "a probability is a number between 0 and 1."
FORM = (
    "give a column name, an array, a callable, a classifier, a table keyed by state, shares of actions, or a SPEC "
    "string."
)


def resolve(policy: Any, log: Log = LOG) -> tuple[Log, PolicySet]:
    return resolve_policies(log, {"x": policy})


def read(policy: Any, log: Log = LOG) -> PolicyRows:
    """The policy on the rows of a log, without a word of warning."""
    enlarged, found = resolve(policy, log)
    assert found.warnings == ()
    assert enlarged.action_space == log.action_space
    return found.policies[0]


def refused(message: str, hint: str, function: Callable[[], Any]) -> None:
    with pytest.raises(PodiumError) as caught:
        function()
    assert str(caught.value) == f"{message}\n\nHint: {hint}"


# --- the whole distribution, in every form ---------------------------------------------------------------------


class Classifier:
    """A classifier with an order of classes of its own."""

    classes_ = np.array(["r", "l", "m"])

    def predict_proba(self, states: Any) -> Any:
        return BY_STATE[np.asarray(states)][:, [2, 0, 1]]


class Unnamed:
    """A model without classes: its columns follow the action space."""

    def predict_proba(self, states: Any) -> Any:
        return BY_STATE[np.asarray(states)]


NAMED = {"r": FULL[:, 2], "l": FULL[:, 0], "m": FULL[:, 1]}
KEYED = {"state": [2, 0, 1], "r": BY_STATE[[2, 0, 1], 2], "m": BY_STATE[[2, 0, 1], 1], "l": BY_STATE[[2, 0, 1], 0]}
DISTRIBUTIONS: dict[str, Any] = {
    "array": FULL,
    "list of lists": FULL.tolist(),
    "float32 array": FULL.astype(np.float32),
    "callable": lambda states: BY_STATE[states],
    "callable that gives lists": lambda states: BY_STATE[states].tolist(),
    "callable that gives a pandas frame": lambda states: pd.DataFrame(NAMED),
    "callable that gives a polars frame": lambda states: pl.DataFrame(NAMED),
    "classifier": Classifier(),
    "model without classes": Unnamed(),
    "dict of dicts": {0: {"r": 0.3, "l": 0.2, "m": 0.5}, 1: {"m": 0.1, "l": 0.6, "r": 0.3}, 2: {"m": 1}},
    "dict of lists": {s: BY_STATE[s].tolist() for s in range(3)},
    "dict of tuples": {s: tuple(BY_STATE[s]) for s in range(3)},
    "dict of arrays": dict(enumerate(BY_STATE)),
    "dict of series": {s: pd.Series(BY_STATE[s][::-1], index=["r", "m", "l"]) for s in range(3)},
    "dict that knows more states": {s: BY_STATE[s % 3] for s in range(9)},
    "pandas frame in order": pd.DataFrame(NAMED),
    "pandas frame with another index": pd.DataFrame(NAMED, index=[7, 3, 5, 1, 9]),
    "polars frame in order": pl.DataFrame(NAMED),
    "arrow table in order": pa.table(NAMED),
    "frame in order, with the states": pd.DataFrame({"state": STATES, **NAMED}),
    "keyed pandas frame": pd.DataFrame(KEYED),
    "keyed polars frame": pl.DataFrame(KEYED),
    "keyed arrow table": pa.table(KEYED),
    "pandas frame keyed by its index": pd.DataFrame(KEYED).set_index("state"),
    "keyed frame with a row twice": pd.concat([pd.DataFrame(KEYED)] * 2),
    "frame as distribution": Policy(pd.DataFrame(NAMED), kind="distribution"),
    "array as distribution": Policy(FULL, kind="distribution"),
    "callable by kind": Policy(lambda states: BY_STATE[states], kind="callable"),
    "model by kind": Policy(Classifier(), kind="model"),
    "table by kind": Policy(pd.DataFrame(KEYED), kind="table"),
}


@pytest.mark.parametrize("form", DISTRIBUTIONS)
def test_every_form_gives_the_same_distribution(form: str):
    policy = read(DISTRIBUTIONS[form])
    assert policy.has_full
    assert not policy.proxy
    assert_allclose(policy.full(3), FULL, rtol=0, atol=1e-7)
    assert_allclose(policy.logged, LOGGED, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "actions", [["sms", "call", "mail"], [3, 1, 2], [0.5, 2.0, 1.5], [10, 9, 100], ["10", "9", "é:x"]], ids=str
)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_no_order_of_actions_misleads(actions: list[Any], order: tuple[int, ...], tmp_path: Path):
    """The same random policy, named in every way and order, is the same policy."""
    rng = np.random.default_rng(5)
    states, chosen = rng.integers(0, 4, 30), rng.integers(0, 3, 30)
    by_state = rng.dirichlet(np.ones(3), 4)  # columns follow `actions`
    labels = [actions[a] for a in chosen]
    log = Log.from_columns(
        {"state": states, "action": labels, "reward": np.zeros(30)}, actions=[actions[j] for j in order]
    )
    assert list(log.action_space) == [actions[j] for j in order]
    expected = by_state[states][:, order]
    shuffled = rng.permutation(4)
    keyed = pl.DataFrame({"state": shuffled, **{str(a): by_state[shuffled, j] for j, a in enumerate(actions)}})
    in_order = pl.DataFrame({str(a): by_state[states, j] for j, a in enumerate(actions)})
    for name, frame in (("keyed", keyed), ("rows", in_order)):
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
        frame.write_ndjson(tmp_path / f"{name}.jsonl")
    headers = {f"pi_x:{a}": by_state[states, j] for j, a in enumerate(actions)}
    with_columns = Log.from_columns({**log.columns, **headers}, actions=log.action_space)
    model = type("Model", (), {"classes_": np.array(actions), "predict_proba": lambda self, s: by_state[s]})()
    forms = [
        by_state[states][:, order],
        model,
        keyed,
        in_order,
        {s: {a: by_state[s, j] for j, a in enumerate(actions)} for s in range(4)},
        *(str(tmp_path / f"{name}.{ending}") for name in ("keyed", "rows") for ending in ("csv", "parquet", "jsonl")),
        "column:pi_x",
    ]
    for form in forms:
        policy = read(form, with_columns)
        assert_allclose(policy.full(3), expected, rtol=0, atol=1e-15)
        assert_allclose(policy.logged, by_state[states, chosen], rtol=0, atol=1e-15)


# --- chosen actions --------------------------------------------------------------------------------------------

CHOSEN = ["l", "l", "m", "m", "r"]
RULE = {0: "l", 1: "m", 2: "r"}


class Predictor:
    def predict(self, states: Any) -> Any:
        return np.array([RULE[s] for s in states])


class Agent:
    """As Stable-Baselines3 answers: actions, and a hidden state."""

    def predict(self, states: Any) -> Any:
        return np.array([RULE[s] for s in states]), None


CHOICES: dict[str, Any] = {
    "list": CHOSEN,
    "tuple": tuple(CHOSEN),
    "array of texts": np.array(CHOSEN),
    "array of objects": np.array(CHOSEN, dtype=object),
    "pandas series": pd.Series(CHOSEN, index=[4, 3, 2, 1, 0]),
    "pandas categories": pd.Series(CHOSEN, dtype="category"),
    "polars series": pl.Series(CHOSEN),
    "callable": lambda states: np.array(["l", "m", "r"])[states],
    "callable that gives a column": lambda states: np.array(["l", "m", "r"])[states][:, None],
    "predict only": Predictor(),
    "predict with a hidden state": Agent(),
    "dict of actions": RULE,
    "frame of actions": pd.DataFrame({"state": [2, 1, 0], "action": ["r", "m", "l"]}),
    "frame of actions in order": pl.DataFrame({"action": CHOSEN}),
    "SQL": "sql:CASE state WHEN 0 THEN 'l' WHEN 1 THEN 'm' ELSE 'r' END",
    "SQL by kind": Policy("list_element(['l', 'm', 'r'], state + 1)", kind="sql"),
    "actions by kind": Policy(CHOSEN, kind="actions"),
}


@pytest.mark.parametrize("form", CHOICES)
def test_chosen_actions_are_one_hot(form: str):
    policy = read(CHOICES[form])
    assert policy.chosen is not None
    assert_array_equal(policy.full(3), [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert_array_equal(policy.logged, [1, 0, 0, 1, 1])


def test_numbers_and_truth_values_as_chosen_actions():
    log = Log(STATES, [1, 2, 1, 3, 2], np.zeros(5))
    for chosen in ([1, 1, 3, 3, 2], np.array([1, 1, 3, 3, 2], np.int8), np.array([1.0, 1, 3, 3, 2], dtype=object)):
        kind = "actions" if isinstance(chosen, np.ndarray) and chosen.dtype == object else None
        assert_array_equal(read(Policy(chosen, kind=kind), log).logged, [1, 0, 0, 1, 1])
    flags = Log(STATES, [True, False, True, False, False], np.zeros(5))
    assert_array_equal(read([True, True, False, False, False], flags).logged, [1, 0, 0, 1, 1])
    assert_array_equal(read(lambda s: s > 0, flags).logged, [0, 1, 1, 0, 0])
    doses = Log(STATES, [0.5, 1.0, 0.5, 2.0, 1.0], np.zeros(5))
    assert_array_equal(read(lambda s: np.array([0.5, 0.5, 2.0, 2.0, 1.0]), doses).logged, [1, 0, 0, 1, 1])


# --- pi(a_n|s_n) alone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        LOGGED,
        LOGGED.tolist(),
        [0.2, 0.3, 0.6, 0.1, 0],
        np.array(LOGGED, dtype=object),
        pd.Series(LOGGED, index=[4, 3, 2, 1, 0]),
        pl.Series(LOGGED),
        Policy(LOGGED, kind="probabilities"),
    ],
    ids=lambda form: type(form).__name__,
)
def test_floats_are_probabilities_of_the_logged_actions(form: Any):
    policy = read(form)
    assert_array_equal(policy.logged, LOGGED)
    assert not policy.has_full
    refused(
        "policy 'x' is known only at the logged actions",
        "give its whole distribution: an (N, A) array, a callable, a classifier, or columns pi_<name>:<action>.",
        lambda: policy.full(3),
    )


def test_integers_may_be_declared_probabilities():
    policy = read(Policy([0, 1, 1, 0, 1], kind="probabilities"))
    assert_array_equal(policy.logged, [0, 1, 1, 0, 1])
    refused(
        "policy 'x' must choose actions of the log; row 1 holds 0 (5 rows)",
        ACTIONS_HINT,
        lambda: read([0, 1, 1, 0, 1]),
    )


# --- columns of the log ----------------------------------------------------------------------------------------

COLUMNS = {
    "state": STATES,
    "action": ACTIONS,
    "reward": np.zeros(5),
    "pi_whole": LOGGED,
    "pi_whole:r": FULL[:, 2],
    "pi_whole:l": FULL[:, 0],
    "pi_whole:m": FULL[:, 1],
    "pi_part": LOGGED,
    "pi_zero": [0, 1, 1, 0, 1],
    "choice": CHOSEN,
}


def test_columns_of_the_log():
    log = Log.from_columns(COLUMNS, state="state")
    _, found = resolve_policies(log)
    assert found.names == ("whole", "part", "zero")
    whole, part, zero = found
    assert_array_equal(whole.full(3), FULL)
    assert_array_equal(part.logged, LOGGED)
    assert not part.has_full
    assert_array_equal(zero.logged, [0, 1, 1, 0, 1])
    for spec in ("pi_whole", "column:pi_whole", Policy("pi_whole", kind="column")):
        assert_array_equal(read(spec, log).full(3), FULL)
    assert_array_equal(read("column:pi_whole:r", log).logged, FULL[:, 2])  # the exact header
    assert_array_equal(read("choice", log).logged, [1, 0, 0, 1, 1])
    assert resolve_policies(log, ["zero", "part"])[1].names == ("zero", "part")


def test_columns_without_the_logged_action_or_without_some_actions():
    columns = {k: v for k, v in COLUMNS.items() if k not in ("pi_whole", "pi_part", "pi_zero")}
    log = Log.from_columns(columns, state="state")
    assert_array_equal(read("column:pi_whole", log).full(3), FULL)
    del columns["pi_whole:m"]
    log = Log.from_columns(columns | {"pi_whole:l": 1 - FULL[:, 2]}, state="state")
    assert_array_equal(read("column:pi_whole", log).full(3)[:, 1], np.zeros(5))


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (
            {"pi_whole": [0.2, 0.3, 0.6, 0.1, 0.1]},
            "policy 'x': the probability of the logged action must agree with the full distribution within 1e-6; "
            "row 5 holds 0.1 (1 row)",
            "correct the one or the other, or leave the column of the logged action out.",
        ),
        (
            {"pi_whole:l": [0.2, 0.2, 0.7, 0.6, 0.0]},
            "policy 'x': the sum of a row's probabilities must be 1 within 1e-6; row 3 holds 1.1 (1 row)",
            "its actions are 'r', 'l', 'm'; declare scores with podium.Policy(x, proxy=True).",
        ),
        (
            {"pi_whole:l": [0.2, -0.2, 0.6, -0.6, 0.0]},
            "column 'pi_whole:l' must be a probability in [0, 1]; row 2 holds -0.2 (2 rows)",
            SCORE,
        ),
        (
            {"pi_whole": [0.2, None, 0.6, 0.1, 0.0]},
            "column 'pi_whole' must be a number; row 2 holds nothing (1 row)",
            PROBABILITY,
        ),
        (
            {"pi_whole": [0.2, 2, 0.6, 0.1, 0.0]},
            "column 'pi_whole' must be a probability in [0, 1]; row 2 holds 2 (1 row)",
            SCORE,
        ),
    ],
)  # fmt: skip
def test_columns_that_are_refused(change: dict[str, Any], message: str, hint: str):
    log = Log.from_columns(COLUMNS | change, state="state")
    refused(message, hint, lambda: read("column:pi_whole", log))


# --- constant, uniform, logged ---------------------------------------------------------------------------------


def test_constant():
    for policy in ("constant:m", Policy("m", kind="constant")):
        assert_array_equal(read(policy).full(3), [[0, 1, 0]] * 5)
    numbers = Log(STATES, [1, 2, 1, 3, 2], np.zeros(5))
    for policy in ("constant:2", "constant:2.0", Policy(2, kind="constant")):
        assert_array_equal(read(policy, numbers).logged, [0, 1, 0, 0, 1])
    unseen = Log(STATES, ACTIONS, np.zeros(5), action_space=["l", "m", "r", "z"])
    assert_array_equal(read("constant:z", unseen).logged, np.zeros(5))
    hint = "the actions are 'l', 'm', 'r'; name more with --actions."
    refused("policy 'x': 'z' is not an action of this log", hint, lambda: read("constant:z"))
    refused("policy 'x': [1, 2] is not an action of this log", hint, lambda: read(Policy([1, 2], kind="constant")))


def test_uniform():
    assert_array_equal(read("uniform").full(3), np.full((5, 3), 1 / 3))
    assert_array_equal(read(Policy(kind="uniform")).logged, np.full(5, 1 / 3))
    log, found = resolve_policies(LOG, {"u": "uniform", "new": ["z"] * 5})
    assert log.action_space == ("l", "m", "r", "z")
    assert_array_equal(found.policies[0].logged, np.full(5, 0.25))  # uniform over all that may be played


def test_logged():
    assert_array_equal(read("logged").logged, LOG.propensities)
    assert not read("logged").has_full
    whole = Log(STATES, ACTIONS, np.zeros(5), behavior=np.full((5, 3), 1 / 3))
    assert_array_equal(read("logged", whole).full(3), np.full((5, 3), 1 / 3))
    refused(
        "policy 'x' is the behaviour policy, and the log does not say what that is",
        "add a propensity column, or give the behaviour policy with --behavior.",
        lambda: read("logged", Log(STATES, ACTIONS, np.zeros(5))),
    )


# --- scikit-learn ----------------------------------------------------------------------------------------------

POINTS = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 1.5], [3.0, 0.0], [4.0, 2.0]])
TABLE = Log(POINTS, ACTIONS, np.zeros(5))


def test_a_classifier_and_its_classes():
    model = LogisticRegression().fit(POINTS, ACTIONS)
    assert_allclose(read(model, TABLE).full(3), model.predict_proba(POINTS))
    reordered = Log(POINTS, ACTIONS, np.zeros(5), action_space=["r", "l", "m"])
    assert_allclose(read(model, reordered).full(3), model.predict_proba(POINTS)[:, [2, 0, 1]])
    assert_allclose(read(model, reordered).logged, read(model, TABLE).logged)


def test_a_classifier_that_lacks_an_action():
    model = DecisionTreeClassifier().fit(POINTS, ["l", "r", "l", "l", "r"])
    full = read(model, TABLE).full(3)
    assert_array_equal(full[:, 1], np.zeros(5))
    assert_allclose(full[:, [0, 2]], model.predict_proba(POINTS))


def test_a_classifier_that_has_one_more_action():
    model = LogisticRegression().fit(POINTS, ["l", "r", "a", "z", "m"])
    log, found = resolve(model, TABLE)
    assert log.action_space == ("l", "m", "r", "a", "z")
    assert found.warnings == ("policy 'x' can play actions that the log's action space lacks: 'a', 'z'.",)
    assert_allclose(found.policies[0].full(5), model.predict_proba(POINTS)[:, [1, 2, 3, 0, 4]])
    assert_allclose(
        found.policies[0].logged, read(Policy(model.predict_proba(POINTS)[:, [1, 2, 3]], proxy=True), TABLE).logged
    )


def test_classes_that_are_numbers():
    log = Log(POINTS, [2, 10, 2, 9, 10], np.zeros(5))
    model = DecisionTreeClassifier().fit(POINTS, [10, 9, 2, 2, 9])
    assert_array_equal(read(model, log).full(3), np.eye(3)[[2, 1, 0, 0, 1]])
    floats = DecisionTreeClassifier().fit(POINTS, [10.0, 9.0, 2.0, 2.0, 9.0])
    assert_array_equal(read(floats, log).full(3), np.eye(3)[[2, 1, 0, 0, 1]])


def test_a_classifier_that_only_predicts():
    model = LinearSVC().fit(POINTS, ACTIONS)
    assert not hasattr(model, "predict_proba")
    space = np.array(["l", "m", "r"])
    assert_array_equal(space[read(model, TABLE).chosen], model.predict(POINTS))


def test_one_column_of_states_is_a_table_for_scikit_learn():
    numbers = LogisticRegression().fit(STATES[:, None], ACTIONS)
    assert_allclose(read(numbers).full(3), numbers.predict_proba(STATES[:, None]))
    places = np.array(["x", "y", "x", "y", "z"], dtype=object)
    texts = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(places[:, None], ACTIONS)
    log = Log(places, ACTIONS, np.zeros(5))
    assert_allclose(read(texts, log).full(3), texts.predict_proba(places[:, None]))


FRAME = pd.DataFrame({"age": POINTS[:, 0], "weight": POINTS[:, 1], "action": ACTIONS, "reward": np.zeros(5)})


@pytest.mark.parametrize("made_by", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_models_that_know_the_names_of_their_features(made_by: Callable[[Any], Any]):
    log = Log.from_frame(made_by(FRAME))
    other_order = LogisticRegression().fit(FRAME[["weight", "age"]], ACTIONS)
    assert_allclose(read(other_order, log).full(3), other_order.predict_proba(FRAME[["weight", "age"]]))
    one = LogisticRegression().fit(FRAME[["weight"]], ACTIONS)
    assert_allclose(read(one, log).full(3), one.predict_proba(FRAME[["weight"]]))
    nameless = LogisticRegression().fit(POINTS, ACTIONS)
    assert_allclose(read(nameless, log).full(3), nameless.predict_proba(POINTS))
    stranger = LogisticRegression().fit(FRAME[["age"]].rename(columns={"age": "height"}), ACTIONS)
    with pytest.raises(PodiumError, match=r"^policy 'x' failed on the log's states: ValueError: The feature names"):
        read(stranger, log)


def test_models_that_are_refused():
    class Wide(Classifier):
        def predict_proba(self, states: Any) -> Any:
            return np.full((len(states), 2), 0.5)

    class Regressor:
        def predict(self, states: Any) -> Any:
            return np.full(len(states), 0.5)

    refused(
        "policy 'x': predict_proba gives 2 columns for 3 actions",
        "give the model a `classes_` attribute that names its columns.",
        lambda: read(Wide()),
    )
    refused(
        "policy 'x' must choose actions of the log; row 1 holds 0.5 (5 rows)", ACTIONS_HINT, lambda: read(Regressor())
    )
    refused(
        "policy 'x' uses the action 0, which does not occur in the log",
        "the actions are 'l', 'm', 'r'; if 0, 1, 2 stand for them, map them with podium.Policy(policy, labels=['l', "
        "'m', 'r']).",
        lambda: read(DecisionTreeClassifier().fit(STATES[:, None], [0, 1, 2, 0, 1])),
    )
    refused(
        "policy 'x' is no model: int has neither predict_proba nor predict",
        "say what it is with podium.Policy(x, kind=...).",
        lambda: read(Policy(5, kind="model")),
    )


# --- callables -------------------------------------------------------------------------------------------------


def test_callables_get_the_states_as_given():
    seen: list[Any] = []

    def policy(states: Any) -> Any:
        seen.append(states)
        return ["l"] * 5

    frame = pd.DataFrame({"a": range(5), "b": list("vwxyz")})
    for states in (STATES, POINTS, frame, pl.DataFrame(frame)):
        read(policy, Log(states, ACTIONS, np.zeros(5)))
        given = seen.pop()
        assert type(given) is type(states)
        assert given is not states
        assert np.array_equal(given, states) if isinstance(states, np.ndarray) else given.equals(states)


def test_callables_get_a_pandas_frame_of_a_file(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text("age,sex,action,reward\n30,f,l,1\n40,m,r,0\n")
    seen: list[Any] = []

    def policy(states: Any) -> Any:
        seen.append(states)
        return np.where(states["age"] > 35, "r", "l")

    assert_array_equal(read(policy, podium.read_log(path)).logged, [1, 1])
    assert isinstance(seen[0], pd.DataFrame)
    assert list(seen[0].columns) == ["age", "sex"]


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (lambda s: ["l"], "policy 'x' has 1 row; the log has 5 rows", ROWS),
        (lambda s: "lmrlm", "policy 'x' has 1 row; the log has 5 rows", ROWS),
        (lambda s: BY_STATE, "policy 'x' has 3 rows; the log has 5 rows", ROWS),
        (lambda s: pd.DataFrame(NAMED)[:3], "policy 'x' has 3 rows; the log has 5 rows", ROWS),
        (
            lambda s: FULL[:, :2],
            "policy 'x' has 2 columns of probabilities; the action space has 3",
            "columns follow log.action_space: 'l', 'm', 'r'.",
        ),
        (lambda s: LOGGED, "policy 'x' must choose actions of the log; row 1 holds 0.2 (5 rows)", ACTIONS_HINT),
        (lambda s: s, "policy 'x' must choose actions of the log; row 1 holds 0 (5 rows)", ACTIONS_HINT),
        (lambda s: [*CHOSEN[:4], None], "policy 'x' must not be missing; row 5 holds nothing (1 row)", "..."),
        (lambda s: 2 * FULL, "policy 'x' must be a probability in [0, 1]; row 3 holds 1.2 (3 rows)", SCORE),
        (
            lambda s: FULL / 2,
            "policy 'x': the sum of a row's probabilities must be 1 within 1e-6; row 1 holds 0.5 (5 rows)",
            SUMS,
        ),
        (lambda s: {1, 2}, "a set is no column", "give a list or an array: one value per row."),
        (
            lambda s: 1 / 0,
            "policy 'x' failed on the log's states: ZeroDivisionError: division by zero",
            "it was called with an array of 5 states.",
        ),
        (
            lambda s: sys.exit("bye"),
            "policy 'x' failed on the log's states: SystemExit: bye",
            "it was called with an array of 5 states.",
        ),
    ],
)
def test_callables_that_are_refused(answer: Callable[[Any], Any], message: str, hint: str):
    hint = "fill the gaps or drop those rows before comparing." if hint == "..." else hint
    refused(message, hint, lambda: read(answer))


# --- tables ----------------------------------------------------------------------------------------------------


def test_tables_keyed_by_several_columns():
    states = pd.DataFrame({"age": [30, 30, 40, 40, 50], "sex": list("fmfmf")})
    log = Log(states, ACTIONS, np.zeros(5))
    table = states.assign(l=[0.1, 0.2, 0.3, 0.4, 0.5]).assign(r=lambda t: 1 - t.l)
    assert_allclose(read(table[::-1], log).full(3)[:, 0], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert_allclose(read(table.set_index(["sex", "age"])[::-1], log).full(3)[:, 0], [0.1, 0.2, 0.3, 0.4, 0.5])
    rule = {(age, sex): "l" if sex == "f" else "m" for age in (30, 40, 50) for sex in "fm"}
    assert_array_equal(read(rule, log).logged, [1, 0, 1, 1, 0])
    refused(
        "policy 'x': its table has the state column 'age' and lacks 'sex'",
        "give every state column as a key, or none and one row per log row.",
        lambda: read(table.drop(columns="sex"), log),
    )
    refused(
        "policy 'x' must name every state; row 2 holds (30, 'm') (2 rows)",
        "add the missing states to the table.",
        lambda: read({k: v for k, v in rule.items() if k[1] == "f"}, log),
    )


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        (
            pd.DataFrame(NAMED)[:4],
            "policy 'x': its table has 4 rows; the log has 5 rows",
            "give one row per log row in the same order, a single row for all, or key it by state.",
        ),
        (
            pd.DataFrame(KEYED)[1:],
            "policy 'x' must have a row for every state; row 5 holds 2 (1 row)",
            "add the missing states to its table.",
        ),
        (
            pd.DataFrame({"state": [0, 1, 2, 1], "l": [1, 1, 1, 0], "r": [0, 0, 0, 1]}),
            "policy 'x': rows 2 and 4 of its table describe one state and differ",
            "keep one row per state, or one row per log row in the same order.",
        ),
        (
            pd.DataFrame({"state": [0, 1, 2], "l": [1, 0.5, 1], "r": [0, 0.4, 0]}),
            "policy 'x': the sum of a row of its table must be 1 within 1e-6; row 2 holds 0.9 (1 row)",
            "its actions are 'l', 'r'; declare scores with podium.Policy(x, proxy=True).",
        ),
        (
            pd.DataFrame({"l": [0.3, 0.8], "r": [0.7, 0.2]}, index=["b", "a"]),
            "policy 'x': its table has an index of labels, such as 'b'",
            "make the states a column (table.reset_index()), named state.",
        ),
        (
            pd.DataFrame({"state": [0, 1, 2]}),
            "policy 'x': its table has no columns of probabilities",
            "the columns of a policy's table are the state columns, and one per action that holds its probability.",
        ),
        (
            {0: "l", 2: "r"},
            "policy 'x' must name every state; row 3 holds 1 (2 rows)",
            "add the missing states to the table.",
        ),
        (
            {0: {"l": np.nan, "r": 1}, 1: {"l": 1}, 2: {"l": 1}},
            "policy 'x': action 'l' must be a finite number; row 1 holds nan (2 rows)",
            SCORE,
        ),
        (
            {0: {"l": 1}, 1: {"l": 1.5, "r": -0.5}, 2: {"l": 1}},
            "policy 'x': action 'l' must be a probability in [0, 1]; row 3 holds 1.5 (2 rows)",
            SCORE,
        ),
        (
            {0: {"l": "x"}, 1: {"l": 1}, 2: {"l": 1}},
            "policy 'x': action 'l' must be a number; row 1 holds 'x' (2 rows)",
            PROBABILITY,
        ),
        (
            {0: "l", 1: 5, 2: "r"},
            "policy 'x' mixes text and number; row 3 holds 5 (2 rows)",
            "give every row the same kind of value.",
        ),
        (
            {0: {"l": 0.5}, 1: {"l": 1}, 2: {"l": 1}},
            "policy 'x': the sum of a row's probabilities must be 1 within 1e-6; row 1 holds 0.5 (2 rows)",
            "its actions are 'l'; declare scores with podium.Policy(x, proxy=True).",
        ),
    ],
)  # fmt: skip
def test_tables_that_are_refused(table: Any, message: str, hint: str):
    refused(message, hint, lambda: read(table))


def test_a_table_in_another_order_is_read_by_state_even_if_it_has_as_many_rows_as_the_log():
    log = Log([0, 1, 2], ["l", "r", "l"], np.zeros(3))
    table = pd.DataFrame({"state": [2, 0, 1], "l": [0.2, 0.0, 0.1], "r": [0.8, 1.0, 0.9]})
    assert_array_equal(read(table, log).full(2)[:, 0], [0.0, 0.1, 0.2])


def test_an_action_of_another_kind_is_never_a_new_action():
    numbers = Log(STATES, [1, 2, 1, 3, 2], np.zeros(5))
    refused(
        "policy 'x' must choose actions of the log; row 1 holds '1st' (5 rows)",
        "the actions are 1, 2, 3; probabilities are an array of floats, or (N, A).",
        lambda: read(["1st", "1st", "3", "3", "2"], numbers),
    )
    refused(
        "policy 'x' uses the action '1st', which does not occur in the log",
        "the actions are 1, 2, 3.",
        lambda: read({s: {"1st": 0.5, "2": 0.5} for s in range(3)}, numbers),
    )
    refused(
        "policy 'x' must choose actions of the log; row 1 holds 2.5 (5 rows)",
        "the actions are 1, 2, 3; probabilities are an array of floats, or (N, A).",
        lambda: read(lambda s: np.full(5, 2.5), numbers),
    )


def test_new_actions_enlarge_the_space_for_all():
    log, found = resolve_policies(LOG, {"a": ["l", "z", "l", "q", "l"], "b": {0: "y", 1: "l", 2: "z"}, "c": FULL})
    assert log.action_space == ("l", "m", "r", "q", "z", "y")
    assert found.warnings == (
        "policy 'a' can play actions that the log's action space lacks: 'q', 'z'.",
        "policy 'b' can play actions that the log's action space lacks: 'y'.",
    )
    assert_array_equal(found.policies[0].full(6).argmax(axis=1), [0, 4, 0, 3, 0])
    assert_array_equal(found.policies[2].full(6), np.hstack([FULL, np.zeros((5, 3))]))
    assert_array_equal(found.policies[2].logged, LOGGED)


# --- SQL -------------------------------------------------------------------------------------------------------


def test_sql_sees_what_a_policy_may_see():
    columns = {"age": [30, 40, 50], "first name": ["x", "y", "z"], "time": [1, 2, 3], "note": ["a", None, 5]}
    log = Log.from_columns(
        {**columns, "action": ["l", "r", "l"], "reward": [1, 2, 3], "propensity": [1, 1, 1], "pi_a": [1, 1, 1]},
        state=["age", "first name"],
    )
    rules = {
        "CASE WHEN age > 35 AND \"first name\" < 'z' THEN 'r' ELSE 'l' END": [1, 1, 1],
        "CASE WHEN time < 3 THEN 'l' ELSE 'r' END": [1, 0, 0],
        "CASE WHEN note IS NULL THEN 'r' WHEN note = '5' THEN 'l' ELSE 'r' END": [0, 1, 1],
        "if(age > 35, 'r', 'l') -- a comment": [1, 1, 0],
        "list_element(['l', 'r'], 1 + (age // 10) % 2)": [0, 0, 0],
    }
    for rule, logged in rules.items():
        assert_array_equal(read(f"sql:{rule}", log).logged, logged)
    hint = (
        "write CASE WHEN ... THEN 'a' ELSE 'b' END over age, \"first name\", time, note; "
        "a policy may not see action or reward."
    )
    for hidden in ("action", "reward", "propensity", "pi_a"):
        with pytest.raises(PodiumError) as caught:
            read(f"sql:CASE WHEN {hidden} IS NULL THEN 'l' ELSE 'r' END", log)
        assert f'"{hidden}"' in caught.value.message
        assert caught.value.hint == hint


def test_sql_numbers_match_numbers():
    log = Log(STATES, [1, 2, 1, 3, 2], np.zeros(5))
    for rule in ("state + 1", "(state + 1)::DOUBLE", "(state + 1)::DECIMAL(4, 1)", "(state + 1)::UTINYINT"):
        assert_array_equal(read(f"sql:{rule}", log).logged, [1, 0, 0, 0, 0])


def test_sql_answers_in_the_order_of_the_log():
    rng = np.random.default_rng(2)
    states = rng.integers(0, 1000, 5000)
    log = Log(states, np.where(states % 3 == 0, "a", "b"), np.zeros(5000))
    assert_array_equal(read("sql:CASE WHEN state % 3 = 0 THEN 'a' ELSE 'b' END", log).logged, np.ones(5000))


# --- SPEC strings ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("table", [NAMED, KEYED], ids=["in order", "keyed"])
def test_policy_files(folder: Path, ending: str, table: dict[str, Any]):
    frame = pl.DataFrame(table)
    path = f"new.{ending}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[ending](path)
    assert_allclose(read(path).full(3), FULL)


def test_keys_of_a_policy_file_are_read_as_the_log_reads_them(folder: Path):
    (folder / "log.csv").write_text("zip,action,reward\n007,a,1\n10,b,0\n")
    (folder / "new.csv").write_text("zip,a,b\n10,0.25,0.75\n007,0.5,0.5\n")
    (folder / "tens.csv").write_text("zip,a,b\n10,0.25,0.75\n")
    log = podium.read_log("log.csv")
    assert_array_equal(read("new.csv", log).logged, [0.5, 0.75])
    refused(
        "policy 'x' must have a row for every state; row 1 holds '007' (1 row)",
        "add the missing states to its table.",
        lambda: read("tens.csv", log),
    )


def test_policy_file_of_actions(folder: Path):
    (folder / "rule.csv").write_text("state,action\n2,r\n1,m\n0,l\n")
    assert_array_equal(read("rule.csv").logged, [1, 0, 0, 1, 1])


def test_objects_of_modules_in_the_current_folder(folder: Path):
    (folder / "my_rules_a.py").write_text(
        "import numpy as np\n"
        "def rule(states):\n    return np.array(['l', 'm', 'r'])[states]\n"
        "class Box:\n    inner = {0: 'l', 1: 'm', 2: 'r'}\n"
        "table = np.array([[0.2, 0.5, 0.3]] * 5)\n"
    )
    (folder / "my_package_a").mkdir()
    (folder / "my_package_a" / "__init__.py").write_text("")
    (folder / "my_package_a" / "deep.py").write_text("chosen = ['l', 'l', 'm', 'm', 'r']\n")
    for spec in ("my_rules_a:rule", "my_rules_a:Box.inner", "my_package_a.deep:chosen"):
        assert_array_equal(read(spec).logged, [1, 0, 0, 1, 1])
    assert_array_equal(read("my_rules_a:table").full(3), [[0.2, 0.5, 0.3]] * 5)


def test_skops_models(folder: Path):
    from skops import io

    model = LogisticRegression().fit(STATES[:, None], ACTIONS)
    io.dump(model, "model.skops")
    assert_allclose(read("model.skops").full(3), model.predict_proba(STATES[:, None]))
    io.dump(Unnamed(), "own.skops")
    hint = "load the model in Python yourself, and pass the object to podium.compare."
    said = f"own.skops holds what podium does not load from a file: {Unnamed.__module__}.Unnamed"
    refused(said, hint, lambda: read("own.skops"))


@pytest.mark.parametrize("spec", ["best", "a b:c", "..up:object", "json:", "1x:y", ""])
def test_unknown_specs(spec: str):
    hint = (
        "a SPEC is one of column:NAME, file.csv, constant:ACTION, shares:A=.4,B=.6, uniform, logged, sql:EXPRESSION, "
        "package.module:object, learned:package.module:object, model.skops, sb3:ALGO:model.zip, "
        "vw:predictions.txt; or name a column of the log."
    )
    refused(f"unknown policy {spec!r}", hint, lambda: read(spec))


@pytest.mark.parametrize(
    ("spec", "example"),
    [
        ("constant", "constant:ACTION with an action of the log"),
        ("constant:", "constant:ACTION with an action of the log"),
        ("column:", "column:NAME with a column of the log"),
        ("shares", "shares:A=.4,B=.6 with actions of the log"),
        ("sql:", "sql:EXPRESSION over the state columns"),
        ("vw:", "vw:predictions.txt with the file of predictions"),
        ("learned:m", "learned:package.module:object with the estimator or function that learns"),
    ],
)
def test_a_spec_without_its_rest_is_told_what_it_needs(spec: str, example: str):
    refused(f"unknown policy {spec!r}", f"write {example}; or name a column of the log.", lambda: read(spec))


@pytest.mark.parametrize(
    "spec", ["uniform", "logged", "constant:l", "sql:'l'", "table.csv", "rules_of_specs:rule", "column:other"]
)
def test_no_header_changes_what_a_spec_means(spec: str, folder: Path):
    """Otherwise whoever writes the log's header decides which policies are compared."""
    (folder / "table.csv").write_text("l,m,r\n" + "1,0,0\n" * 5)
    (folder / "rules_of_specs.py").write_text("def rule(states):\n    return ['l'] * len(states)\n")
    columns = {"state": STATES, "action": ACTIONS, "reward": np.zeros(5), "propensity": np.full(5, 0.5)}
    columns["other"] = LOGGED
    plain, sly = (
        Log.from_columns({**columns, **more}, state="state", propensity="propensity")
        for more in ({}, {spec: np.full(5, 0.125)})
    )
    (found,) = resolve(spec, sly)[1].policies
    assert_array_equal(found.logged, read(spec, plain).logged)
    assert_array_equal(read(f"column:{spec}", sly).logged, np.full(5, 0.125))
    warning = (
        f"policy 'x': {spec!r} is read as a SPEC, not as the log's column of that name; write column:{spec} for the "
        "column."
    )
    assert warning in resolve(spec, sly)[1].warnings


def test_a_bare_name_is_a_column_where_it_has_no_other_meaning():
    columns = {"state": STATES, "action": ACTIONS, "reward": np.zeros(5), "risk": LOGGED, "no_module_b:l": LOGGED}
    log = Log.from_columns(columns, state="state")
    for name in ("risk", "no_module_b:l"):
        assert_array_equal(read(name, log).logged, LOGGED)


def test_a_module_of_the_folder_does_not_open_the_folder_to_others(folder: Path):
    """The folder holds files with the names of packages: they are not loaded, now or later."""
    names = ("json", "colorsys", "xmlrpc", "skops")
    for name in names:
        (folder / f"{name}.py").write_text("raise SystemExit('a file of the folder was loaded')\n")
    (folder / "near_c.py").write_text("answer = ['l'] * 5\n")
    (folder / "rules_c.py").write_text(
        "import json, colorsys\nimport near_c\ndef rule(states):\n    return near_c.answer\n"
    )
    before = list(sys.path)
    assert_array_equal(read("rules_c:rule").logged, [1, 0, 1, 0, 0])
    assert sys.path == before
    for name in names:
        refused(
            f"cannot load the policy {name}:rule: {name!r} is in the current folder and also the name of another "
            "module; rename the file",
            "write package.module:object, with a module of the current folder or an installed one.",
            lambda name=name: read(f"{name}:rule"),
        )


def test_a_column_does_not_stand_for_estimated_propensities():
    columns = {"state": [0, 1] * 40, "action": ["l", "r"] * 40, "reward": np.arange(80.0)}
    columns["estimate"] = np.full(80, 0.5)
    log = Log.from_columns(columns, state="state")
    assert log.with_behavior("estimate").knows == "estimated"
    assert log.with_behavior("column:estimate").knows == "logged"


# --- Policy ----------------------------------------------------------------------------------------------------


def test_scores_must_be_declared():
    scores = 3 * FULL
    refused("policy 'x' must be a probability in [0, 1]; row 1 holds 1.5 (5 rows)", SCORE, lambda: read(scores))
    whole, part = read(Policy(scores, proxy=True)), read(Policy(3 * LOGGED, proxy=True))
    assert whole.proxy
    assert part.proxy
    assert_array_equal(whole.full(3), scores)
    assert_array_equal(part.logged, 3 * LOGGED)
    for source in (lambda s: 3 * BY_STATE[s], dict(enumerate(3 * BY_STATE)), pd.DataFrame(NAMED) * 3):
        assert_allclose(read(Policy(source, proxy=True)).full(3), scores)
    hint = "a score that stands for a probability is a number from 0 on."
    refused("policy 'x' must not be negative; row 2 holds -1 (1 row)", hint,
            lambda: read(Policy([1.0, -1, 2, 3, 4], proxy=True)))  # fmt: skip
    refused("policy 'x' must be a finite number; row 2 holds inf (1 row)", hint,
            lambda: read(Policy([1.0, np.inf, 2, 3, 4], proxy=True)))  # fmt: skip


def test_proxies_are_named_in_the_header():
    result = podium.compare(LOG, {"scored": Policy(3 * LOGGED, proxy=True), "any": "uniform"})
    assert result.settings["proxies"] == ("scored",)
    assert "Scores that stand for probabilities (proxies): scored" in str(result)


def test_probabilities_may_miss_their_range_by_rounding():
    assert read([1 + 9e-7, 0.2, 0.3, -9e-7, 0.1]).logged[0] == 1 + 9e-7
    with pytest.raises(PodiumError, match=r"row 1 holds 1\.0000011 \(1 row\)"):
        read([1 + 1.1e-6, 0.2, 0.3, 0.4, 0.1])
    read(FULL + np.array([9e-7, 0, 0]))
    with pytest.raises(PodiumError, match=r"must be 1 within 1e-6; row 1 holds 1\.0000011 \(5 rows\)"):
        read(FULL + np.array([1.1e-6, 0, 0]))


@pytest.mark.parametrize(
    ("policy", "message", "hint"),
    [
        (None, "policy 'x' has a form that podium does not know: NoneType", FORM),
        (5, "policy 'x' has a form that podium does not know: int", FORM),
        ({"l", "r"}, "policy 'x' has a form that podium does not know: set", FORM),
        ((a for a in CHOSEN), "policy 'x' has a form that podium does not know: generator", FORM),
        (CHOSEN[:4], "policy 'x' has 4 rows; the log has 5 rows", ROWS),
        (LOGGED[:4], "policy 'x' has 4 rows; the log has 5 rows", ROWS),
        (FULL[:4], "policy 'x' has 4 rows; the log has 5 rows", ROWS),
        (FULL[:, :2], "policy 'x' has 2 columns of probabilities; the action space has 3",
         "columns follow log.action_space: 'l', 'm', 'r'."),
        (np.zeros((5, 3, 1)),
         "policy 'x' must hold probabilities of shape (N,); it holds float64 of shape (5, 3, 1)", KIND),
        (Policy(FULL, kind="probabilities"),
         "policy 'x' must hold probabilities of shape (N,); it holds float64 of shape (5, 3)", KIND),
        (Policy(LOGGED, kind="distribution"),
         "policy 'x' must hold probabilities of shape (N, A); it holds float64 of shape (5,)", KIND),
        (Policy(CHOSEN, kind="probabilities"), "policy 'x' must be a number; row 1 holds 'l' (5 rows)", PROBABILITY),
        (Policy(LOGGED, kind="actions"), "policy 'x' must choose actions of the log; row 1 holds 0.2 (5 rows)",
         ACTIONS_HINT),
        (Policy(5, kind="callable"), "policy 'x' failed on the log's states: TypeError: 'int' object is not callable",
         "it was called with an array of 5 states."),
        (Policy(5, kind="table"), "columns cannot be read from builtins.int",
         "give a pandas, polars or Spark frame, an arrow table or a DuckDB relation."),
        (["l", "r", 1, "l", "m"], "policy 'x' mixes text and number; row 3 holds 1 (1 row)",
         "give every row the same kind of value."),
        (["l", "r", None, "l", "m"], "policy 'x' must not be missing; row 3 holds nothing (1 row)",
         "fill the gaps or drop those rows before comparing."),
        ([0.1, 0.2, np.nan, 0.1, 0.2], "policy 'x' must be a finite number; row 3 holds nan (1 row)", SCORE),
        (np.ma.array(LOGGED, mask=[0, 0, 1, 0, 0]), "policy 'x' must be a number; row 3 holds nothing (1 row)",
         PROBABILITY),
        ([(0.2, 0.5, 0.3)] * 5, "policy 'x' must choose actions of the log; row 1 holds (0.2, 0.5, 0.3) (5 rows)",
         ACTIONS_HINT),
        ("column:pi_x", "policy 'x': the log has no column 'pi_x'", "the log was not made from named columns."),
    ],
)  # fmt: skip
def test_what_is_no_policy(policy: Any, message: str, hint: str):
    refused(message, hint, lambda: read(policy))


def test_unknown_kind():
    refused(
        "unknown kind of policy 'guess'",
        "the kinds are column, probabilities, distribution, actions, callable, model, table, constant, uniform, "
        "shares, logged, sql, learned.",
        lambda: Policy(1, kind="guess"),
    )


# --- several policies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policies", "message", "hint"),
    [
        (None, "no policies to compare",
         "give policies={'name': ...} or --policy NAME=SPEC, or add pi_<name> columns to the log."),
        ({}, "no policies to compare",
         "give policies={'name': ...} or --policy NAME=SPEC, or add pi_<name> columns to the log."),
        ({1: "uniform"}, "a policy's name must be a text", "give policies={'name': ...}."),
        ({" ": "uniform"}, "a policy's name must be a text", "give policies={'name': ...}."),
        (["new"], "the log has no policy 'new'", "its pi_ columns hold: none."),
        ("uniform", "policies must be a mapping of names to policies; it is str",
         "give policies={'current': ..., 'new': ...}."),
        ([FULL, FULL], "policies must be a mapping of names to policies; it is list",
         "give policies={'current': ..., 'new': ...}."),
    ],
)  # fmt: skip
def test_what_is_no_set_of_policies(policies: Any, message: str, hint: str):
    refused(message, hint, lambda: resolve_policies(LOG, policies))


def test_a_policy_that_depends_on_something_else_is_noted():
    log = Log([0, 0, 1, 0], ["l", "l", "r", "l"], np.zeros(4))
    _, found = resolve_policies(log, {"ok": [0.1, 0.1, 0.3, 0.1], "odd": [0.1, 0.2, 0.3, 0.3]})
    assert found.warnings == (
        "policy 'odd' has different probabilities in rows of one (state, action) (2 rows): "
        "it depends on something that the state columns leave out.",
    )
    many = Log(np.arange(2000).repeat(2), np.arange(2000).repeat(2), np.zeros(4000))  # cells are sorted, not counted
    _, found = resolve_policies(many, {"odd": np.tile([0.25, 0.5], 2000)})
    assert "(2,000 rows)" in found.warnings[0]
