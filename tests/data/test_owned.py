"""Nobody can change a log, a policy's answer or a result behind podium's back."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import podium
from podium import Log, PodiumError, episodes
from podium.continuous import ContinuousLog
from podium.data.owned import Fixed, owned

N = 40
RNG = np.random.default_rng(0)
STATES, ACTIONS, REWARDS = RNG.normal(size=(N, 2)), RNG.integers(2, size=N), RNG.random(N)


def frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"x": STATES[:, 0], "y": STATES[:, 1], "action": ACTIONS, "reward": REWARDS, "p": [0.5] * N})


def logs() -> dict[str, Callable[[], Log]]:
    """A log of every form of states."""
    import polars as pl

    return {
        "array": lambda: Log(STATES.copy(), ACTIONS, REWARDS, propensities=[0.5] * N),
        "column": lambda: Log(STATES[:, 0].copy(), ACTIONS, REWARDS, propensities=[0.5] * N),
        "pandas": lambda: Log.from_frame(frame(), propensity="p"),
        "polars": lambda: Log.from_frame(pl.DataFrame(frame().to_dict("list")), propensity="p"),
        "columns": lambda: Log.from_columns(frame().to_dict("list"), propensity="p"),
    }


def spoil(states: Any) -> None:
    """Write into whatever a function was handed, in every way that it allows."""
    if isinstance(states, np.ndarray):
        states[...] = 0
    elif hasattr(states, "iloc"):
        states.iloc[:, :] = 0
        states["new"] = 1
        del states[states.columns[0]]
    else:
        states[0, 0] = 0.0
        states.drop_in_place(states.columns[0])


def first(states: Any) -> Any:
    return np.asarray(states.to_numpy() if hasattr(states, "to_numpy") else states).reshape(N, -1)[:, 0]


def chooses(states: Any) -> Any:
    return (first(states) > 0).astype(int)


class Vandal:
    """A classifier, a baseline and a function, each of which writes into what it gets."""

    def predict_proba(self, states: Any) -> Any:
        choice = chooses(states)
        spoil(states)
        return np.column_stack([1 - choice, choice]).astype(float)

    def predict(self, features: Any) -> Any:
        answer = features[:, 0].copy()
        features[...] = 7.0
        return answer

    def fit(self, features: Any, rewards: Any) -> Vandal:
        features[...] = 7.0
        rewards[...] = 7.0
        return self

    def __call__(self, states: Any) -> Any:
        choice = chooses(states)
        spoil(states)
        return choice


@pytest.mark.parametrize("form", list(logs()))
def test_policies_and_baselines_that_write_into_their_arguments(form: str) -> None:
    log = logs()[form]()
    digest = log.digest

    class Model:
        def predict_proba(self, states: Any) -> Any:
            return Vandal().predict_proba(states)

    def v(states: Any) -> Any:
        answer = first(states).copy()
        spoil(states)
        return answer

    def q(states: Any, actions: Any) -> Any:
        answer = first(states) + actions
        spoil(states)
        actions[...] = 0
        return answer

    clean = podium.compare(log, {"a": chooses, "b": "constant:1"}, baseline=lambda s: first(s)).to_dict()
    dirty = {"a": Vandal().__call__, "b": "constant:1"}
    assert podium.compare(log, dirty, baseline=v).to_dict()["pairs"] == clean["pairs"]
    both = podium.evaluate(log, {"one": Vandal().__call__, "model": Model(), "two": chooses}, baseline=v).values
    assert both["one"] == both["model"] == both["two"]
    plain = podium.evaluate(log, {"a": chooses}, baseline=lambda s, a: first(s) + a).values
    assert podium.evaluate(log, {"a": Vandal().__call__}, baseline=q).values == plain
    assert log._copy().digest == logs()[form]().digest == digest


def test_models_that_write_into_their_training_data() -> None:
    log = logs()["array"]()

    class Honest:
        def fit(self, features: Any, rewards: Any) -> Honest:
            return self

        def predict(self, features: Any) -> Any:
            return features[:, 0].copy()

    class Writes(Honest):
        fit, predict = Vandal.fit, Vandal.predict

    policies = {"a": chooses, "b": "constant:1"}
    found = [podium.compare(log, policies, baseline=model).to_dict() for model in (Honest(), Writes())]
    assert [found[0][part] for part in ("pairs", "policies")] == [found[1][part] for part in ("pairs", "policies")]
    assert log.digest == logs()["array"]().digest


def test_a_log_shares_nothing_with_the_caller() -> None:
    states, actions, rewards = STATES.copy(), ACTIONS.copy(), REWARDS.copy()
    times, units, p = np.arange(N), np.arange(N) // 2, np.full(N, 0.5)
    behavior = np.full((N, 2), 0.5)
    log = Log(states, actions, rewards, propensities=p, behavior=behavior, times=times, units=units)
    before, result = log.digest, podium.compare(log, {"a": chooses, "b": "constant:1"}).to_dict()
    for array in (states, actions, rewards, times, units, p, behavior):
        assert array.flags.writeable
        array[...] = 1
    assert log._copy().digest == before
    assert podium.compare(log, {"a": chooses, "b": "constant:1"}).to_dict() == result
    table = frame()
    log = Log.from_frame(table, propensity="p")
    table.iloc[:, 0] = 0.0
    table["reward"] = 0.0
    np.testing.assert_array_equal(first(log.states), STATES[:, 0])
    np.testing.assert_array_equal(log.rewards, REWARDS)


def test_a_read_only_view_of_the_callers_array_is_copied_too() -> None:
    rewards = REWARDS.copy()
    view = rewards.view()
    view.flags.writeable = False
    log = Log(STATES, ACTIONS, view)
    rewards[...] = 0
    np.testing.assert_array_equal(log.rewards, REWARDS)
    kept = owned(rewards)
    with pytest.raises(ValueError, match="WRITEABLE"):
        kept.flags.writeable = True


def test_what_a_log_hands_out_cannot_be_written() -> None:
    log = Log.from_frame(frame(), propensity="p", unit="x").with_behavior(np.full((N, 2), 0.5))
    some = log.take(np.array([1, 2]))
    for name in (
        "rewards", "actions", "propensities", "behavior", "units", "action_codes", "state_codes", "cell_codes",
        "latest", "overwritten_by", "first_rows",
    ):  # fmt: skip
        for each in (log, some):
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, name)[0] = 1
    for columns in (log.columns, log.state_columns, log.names):
        with pytest.raises(TypeError, match="read-only"):
            columns["reward"] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        log.columns["reward"][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        log.states[0] = 1
    table = Log.from_frame(frame())
    spoil(table.states)
    np.testing.assert_array_equal(first(table.states), STATES[:, 0])
    assert pickle.loads(pickle.dumps(log)).digest == copy.deepcopy(log).digest == log.digest


def test_answers_that_a_function_writes_again_later() -> None:
    """Two policies that fill one buffer, and an array that is changed after the comparison."""
    log, buffer = logs()["array"](), np.zeros((N, 2))

    def filling(*shares: float) -> Callable[[Any], Any]:
        def policy(states: Any) -> Any:
            buffer[...] = shares
            return buffer

        return policy

    values = podium.evaluate(log, {"a": filling(0.9, 0.1), "b": filling(0.1, 0.9)}).values
    assert values == podium.evaluate(log, {"a": np.full((N, 2), [0.9, 0.1]), "b": np.full((N, 2), [0.1, 0.9])}).values
    given = np.full((N, 2), [0.9, 0.1])
    result = podium.compare(log, {"a": given, "b": "constant:1"})
    rows = result.basis.policies.policies[0].logged.copy()
    given[...] = 0.5
    np.testing.assert_array_equal(result.basis.policies.policies[0].logged, rows)


def test_results_cannot_be_changed() -> None:
    log = logs()["array"]()
    policies = {"a": chooses, "b": "constant:1"}
    comparison = podium.compare(log, policies)
    results: list[Any] = [
        comparison, podium.evaluate(log, policies), podium.plan(log, policies, difference=0.1),
        podium.diagnose(log, policies), podium.spectrum(log, policies), podium.compare_states(log, policies),
    ]  # fmt: skip
    for result in results:
        before = json.dumps(result.to_dict(), default=str)
        scribble(result.to_dict())
        assert json.dumps(result.to_dict(), default=str) == before, type(result).__name__
    states = results[-1]
    for array in (states.values, states.signs, states.rows, states.shares):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9
    for mapping in (comparison.unavailable, comparison.policies[0].estimates, results[1].values["a"]):
        with pytest.raises(TypeError, match="read-only"):
            mapping["LDE"] = 9.0
    found = podium.estimate_propensities(log, "frequencies")
    with pytest.raises(ValueError, match="read-only"):
        found.behavior[0, 0] = 9


def scribble(thing: Any) -> None:
    """Change every list and dict in a structure."""
    if isinstance(thing, dict):
        for key in list(thing):
            scribble(thing[key])
            thing[key] = "changed"
    elif isinstance(thing, list):
        for item in thing:
            scribble(item)
        thing.append("more")


def test_episodes_and_continuous_actions() -> None:
    seen = RNG.normal(size=(5, 4, 1))
    steps = [episodes.Episode(s, 0.5 * s, s[:, 0]) for s in seen.copy()]

    def writes(s: Any) -> Any:
        answer = 0.1 * s
        s[...] = 0
        return answer

    clean = episodes.compare(steps, {"a": lambda s: 0.1 * s, "b": lambda s: 0 * s}, bounds=(-9, 9))
    found = episodes.compare(steps, {"a": writes, "b": lambda s: 0 * s}, bounds=(-9, 9))
    assert found.to_dict()["pairs"] == clean.to_dict()["pairs"]
    with pytest.raises(ValueError, match="read-only"):
        steps[0].rewards[0] = 1
    given = RNG.random(N)
    log = ContinuousLog(STATES[:, 0].copy(), given, REWARDS.copy(), densities=np.ones(N))
    kept = log.actions.copy()
    given[...] = 0

    def doubles(states: Any) -> Any:
        states *= 0
        return states + 0.5

    first_one = log.evaluate({"a": doubles, "b": lambda s: s}).values
    assert first_one == log.evaluate({"a": lambda s: 0 * s + 0.5, "b": lambda s: s}).values
    np.testing.assert_array_equal(log.actions, kept)


def test_settings_of_numpy_and_warnings_survive_and_do_not_matter() -> None:
    log = logs()["array"]()

    def meddles(states: Any) -> Any:
        np.seterr(all="raise")
        np.random.seed(1)  # noqa: NPY002 (what a user's function may do)
        warnings.simplefilter("error")
        return chooses(states)

    policies = {"a": chooses, "b": "constant:1"}
    clean = podium.compare(log, policies, joint=True, bootstrap=50).to_dict()
    settings, filters = np.geterr(), list(warnings.filters)
    np.random.seed(5)  # noqa: NPY002
    found = podium.compare(log, {"a": meddles, "b": "constant:1"}, joint=True, bootstrap=50).to_dict()
    assert (np.geterr(), list(warnings.filters)) == (settings, filters)
    assert found == clean
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    podium.diagnose(log, policies)
    podium.estimate_propensities(log, "boosting")
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_a_model_without_a_seed_of_its_own_follows_that_of_the_call() -> None:
    from sklearn.ensemble import RandomForestRegressor

    log, forest = logs()["array"](), RandomForestRegressor(n_estimators=3)
    found = [podium.compare(log, {"a": chooses, "b": "constant:1"}, baseline=forest, seed=1) for _ in range(2)]
    assert found[0].to_dict() == found[1].to_dict()
    assert forest.random_state is None


def test_a_fixed_mapping() -> None:
    fixed = Fixed({"a": {"b": [1]}, "c": np.zeros(2)})
    for change in (
        lambda: fixed.pop("a"), fixed.popitem, fixed.clear, lambda: fixed.update(a=1), lambda: fixed.setdefault("d", 1),
        lambda: fixed.__delitem__("a"), lambda: fixed["a"].update(b=2), lambda: fixed.__ior__({"a": 1}),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert fixed | {"d": 1} == {**fixed, "d": 1}
    twin = pickle.loads(pickle.dumps(fixed))
    assert type(twin) is Fixed
    assert twin["a"] == {"b": [1]}
    assert json.dumps(fixed["a"]) == '{"b": [1]}'


def test_a_failing_model_is_named() -> None:
    class Broken:
        def fit(self, features: Any, rewards: Any) -> None:
            raise KeyError("no convergence")

        def predict(self, features: Any) -> Any:
            return features[:, 0]

    class Short(Broken):
        def fit(self, features: Any, rewards: Any) -> None:
            pass

        def predict(self, features: Any) -> Any:
            return [1.0]

    log, policies = logs()["array"](), {"a": chooses, "b": "constant:1"}
    with pytest.raises(
        PodiumError, match="the baseline model Broken failed in fit: KeyError: 'no convergence'"
    ) as error:
        podium.compare(log, policies, baseline=Broken())
    assert isinstance(error.value.__cause__, KeyError)
    with pytest.raises(PodiumError, match="the baseline model Short must predict"):
        podium.compare(log, policies, baseline=Short())


def arrow_logs() -> dict[str, Callable[[Any], Any]]:
    """Logs and columns of them that hold arrow data, made of an array that the caller keeps."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    def table(x: Any) -> Any:
        return pa.table({"x": pa.array(x), "y": pa.array(STATES[:, 1]), "action": ACTIONS, "reward": pa.array(x)})

    def typed(x: Any) -> Any:
        return pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(x))), "y": STATES[:, 1]})

    return {
        "from_frame": lambda x: Log.from_frame(table(x)),
        "polars": lambda x: Log.from_frame(pl.from_arrow(table(x))),
        "rewards": lambda x: Log(STATES, ACTIONS, pa.array(x)),
        "states": lambda x: Log(table(x).select(["x", "y"]), ACTIONS, REWARDS),
        "pandas": lambda x: Log(typed(x), ACTIONS, REWARDS),
        "densities": lambda x: ContinuousLog(STATES, REWARDS, REWARDS, densities=pa.array(x)),
    }


@pytest.mark.parametrize("form", arrow_logs())
def test_arrow_data_that_share_memory_with_an_array_are_copied(form: str) -> None:
    given = RNG.random(N)
    log, same = arrow_logs()[form](given), arrow_logs()[form](given.copy())
    given[...] = 0.5
    for name in ("rewards", "densities"):
        np.testing.assert_array_equal(getattr(log, name, 0), getattr(same, name, 0))
    np.testing.assert_array_equal(first(log.states), first(same.states))
    for header, column in getattr(log, "state_columns", {}).items():
        np.testing.assert_array_equal(column, same.state_columns[header])


def test_a_function_gets_a_copy_of_an_arrow_table() -> None:
    log = arrow_logs()["states"](STATES[:, 0].copy())
    kept = first(log.states).copy()

    def writes(states: Any) -> Any:
        memory = states.column("x").chunk(0).buffers()[1]
        if memory.is_mutable:
            np.frombuffer(memory)[:] = 0.0
        return np.zeros(N, dtype=int)

    podium.compare(log, {"a": writes, "b": "constant:1"})
    np.testing.assert_array_equal(first(log.states), kept)


def test_copies_and_unpickled_logs_cannot_be_written() -> None:
    log = logs()["array"]()
    assert log.distinct > 0  # cached columns travel along
    smooth = ContinuousLog(STATES, REWARDS, REWARDS, densities=np.ones(N))
    episode = episodes.Episode(STATES, STATES, REWARDS)
    for given in (log, smooth, episode, log.take(np.arange(3)), log.take(slice(3))):
        for twin in (given, copy.deepcopy(given), copy.copy(given), pickle.loads(pickle.dumps(given))):
            for array in vars(twin).values():
                if isinstance(array, np.ndarray):
                    with pytest.raises(ValueError, match="WRITEABLE"):
                        array.flags.writeable = True


def test_arrays_of_the_caller_stay_writable() -> None:
    states, space, chances = STATES.copy(), np.array([0, 1]), np.full((N, 2), 0.5)
    log = Log(states, ACTIONS, REWARDS)
    log.with_action_space(space)
    log.with_behavior(chances)
    assert all(array.flags.writeable for array in (states, space, chances))
