"""Baselines: what is learned never sees the row it predicts, and every kind that people bring is understood."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import fitted as on_rows
from samples import sample
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import podium
from podium.estimates.baselines import describe_baseline
from podium.estimates.evaluate import rows_of
from podium.estimates.learned import FOLDS, NEIGHBOURS, LeastSquares, cross_fit, neighbour_means
from podium.estimates.options import Options

approx = pytest.approx
NEEDS_ALL = "depends on the action and needs pi(a|s) for every action; policy 'new' gives only the probability of"
FULL_HINT = "give its whole distribution: an (N, A) array, a callable, a classifier, or columns pi_<name>:<action>."


def random_log(rows: int = 40, actions: int = 3, seed: int = 0, **more: Any) -> podium.Log:
    """A log whose states are 0..N-1, so that a row can be told by its state."""
    rng = np.random.default_rng(seed)
    return podium.Log(
        np.arange(float(rows)),
        rng.permutation(np.arange(rows) % actions),
        rng.normal(size=rows),
        propensities=rng.uniform(0.2, 0.9, rows),
        action_space=tuple(range(actions)),
        **more,
    )


def random_policy(log: podium.Log, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(log.n_actions), len(log))


def all_rows(log: podium.Log) -> np.ndarray:
    return np.arange(len(log))


# --- cross-fitting -------------------------------------------------------------------------------------------------


class Recorder:
    """Remembers what every copy was fitted on and asked to predict."""

    copies: ClassVar[list[Recorder]] = []

    def fit(self, features: np.ndarray, rewards: np.ndarray) -> Recorder:
        Recorder.copies.append(self)
        self.fitted_on, self.rewards, self.asked = features, rewards, []
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        self.asked.append(features)
        return features[:, 0]


@pytest.fixture
def recorder() -> Recorder:
    Recorder.copies.clear()
    return Recorder()


@pytest.mark.parametrize("rows", [2, 3, 5, 23])
def test_no_model_predicts_a_row_that_it_saw(recorder: Recorder, rows: int) -> None:
    log = random_log(rows, actions=2)
    cross_fit(recorder, log, all_rows(log), seed=0)
    assert len(Recorder.copies) == min(FOLDS, rows)
    predicted: list[float] = []
    for copy in Recorder.copies:
        seen = set(copy.fitted_on[:, 0])
        assert len(copy.asked) == log.n_actions  # the whole fold once for each action
        for inputs in copy.asked:
            assert not seen & set(inputs[:, 0])
        assert len(seen) + len(copy.asked[0]) == rows
        predicted += copy.asked[0][:, 0].tolist()
    assert sorted(predicted) == log.state_columns["state"].tolist()
    sizes = [len(copy.asked[0]) for copy in Recorder.copies]
    assert max(sizes) - min(sizes) <= 1


def test_what_a_model_sees(recorder: Recorder) -> None:
    """State features, then one 0/1 column per action; at prediction the column of the action asked about is 1."""
    log = podium.Log([3.0, 4.0], ["b", "a"], [7.0, 8.0], action_space=("a", "b", "c"))
    fitted = cross_fit(recorder, log, all_rows(log), seed=0)
    by_state = {copy.fitted_on[0, 0]: copy for copy in Recorder.copies}
    assert by_state[3.0].fitted_on.tolist() == [[3.0, 0.0, 1.0, 0.0]]
    assert by_state[3.0].rewards.tolist() == [7.0]
    assert [x.tolist() for x in by_state[3.0].asked] == [[[4.0, 1, 0, 0]], [[4.0, 0, 1, 0]], [[4.0, 0, 0, 1]]]
    assert fitted.logged.tolist() == [3.0, 4.0]
    assert fitted.matrix is not None
    assert fitted.matrix.tolist() == [[3.0] * 3, [4.0] * 3]
    assert not hasattr(recorder, "fitted_on")  # the model that was given stays as it was


def test_texts_become_one_column_per_value(recorder: Recorder) -> None:
    log = podium.Log([("x", 5), ("y", 6), ("x", 7)], [0, 0, 0], [1.0, 2.0, 3.0])
    cross_fit(recorder, log, all_rows(log), seed=0)
    rows = {tuple(row) for copy in Recorder.copies for row in copy.fitted_on.tolist()}
    assert rows == {(1, 0, 5, 1), (0, 1, 6, 1), (1, 0, 7, 1)}


@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=25).filter(lambda units: len(set(units)) > 1), st.integers(0, 9)
)
def test_rows_of_one_unit_share_a_fold(units: list[int], seed: int) -> None:
    Recorder.copies.clear()
    log = random_log(len(units), units=[f"person {u}" for u in units])
    cross_fit(Recorder(), log, all_rows(log), seed)
    assert len(Recorder.copies) == min(FOLDS, len(set(units)))
    for copy in Recorder.copies:
        trained = {units[int(s)] for s in copy.fitted_on[:, 0]}
        tested = {units[int(s)] for s in copy.asked[0][:, 0]}
        assert not trained & tested


def test_only_kept_rows_are_learned_from(recorder: Recorder) -> None:
    """LDE overwrites the first row by the last, so its model sees neither twice."""
    log = podium.Log([1.0, 2.0, 1.0], ["a", "a", "a"], [10.0, 20.0, 30.0])
    podium.evaluate(log, {"pi": "constant:a"}, ["LDE"], recorder)
    assert sorted(r for copy in Recorder.copies for r in copy.rewards) == [20.0, 30.0]


@pytest.mark.parametrize("units", [0, 60])
def test_of_a_large_log_the_sample_is_learned_from(recorder: Recorder, units: int) -> None:
    """Rows of the sample are predicted by copies that did not see them, all others by one that saw the whole sample."""
    rows = 400
    more = {"units": np.arange(rows) % units} if units else {}
    log = random_log(rows, actions=2, **more)
    policies = {"new": random_policy(log)}
    drawn = set(rows_of(log, policies, Options(sample_rows=300)).numbers.tolist())
    assert len(drawn) <= 300
    found = podium.evaluate(log, policies, ["DRE"], recorder, sample_rows=300)
    assert found.unavailable == {}
    *folds, everything = Recorder.copies
    assert len(folds) == FOLDS
    assert set(everything.fitted_on[:, 0]) == drawn
    asked = {s for inputs in everything.asked for s in inputs[:, 0]}
    assert asked == set(range(rows)) - drawn
    for copy in folds:
        seen, predicted = set(copy.fitted_on[:, 0]), {s for inputs in copy.asked for s in inputs[:, 0]}
        assert seen | predicted == drawn
        assert not seen & predicted
        if units:
            assert not {s % units for s in seen} & {s % units for s in predicted}


@pytest.mark.parametrize("text", [False, True])
def test_the_state_baseline_of_a_large_log_comes_from_the_sample(text: bool) -> None:
    """Against a loop: the mean of the sample's other rows of the same state, of all its rows where there are none."""
    log, policies = sample(500, distinct=200, text=text)
    drawn = rows_of(log, policies, Options(sample_rows=200)).numbers
    r, s = log.rewards, log.state_codes
    by_hand = []
    for n in range(500):
        others = [r[m] for m in drawn if m != n and s[m] == s[n]]
        by_hand.append(np.mean(others) if others else r[drawn].mean())
    found = podium.evaluate(log, policies, baseline="state", sample_rows=200)
    wanted = podium.evaluate(log, policies, baseline=np.array(by_hand))
    for name in policies:
        assert found.values[name] == approx(wanted.values[name], rel=1e-10)
        assert found.std_errors[name] == approx(wanted.std_errors[name], rel=1e-8)


@pytest.mark.parametrize(
    "baseline", ["linear", DecisionTreeRegressor(random_state=0), RandomForestRegressor(5, random_state=0)]
)
def test_seeds_give_the_same_folds(baseline: Any) -> None:
    log = random_log()
    policies = {"new": random_policy(log)}

    def values(seed: int) -> dict[str, float | None]:
        return dict(podium.evaluate(log, policies, baseline=baseline, seed=seed).values["new"])

    assert values(0) == values(0)
    assert values(3) == values(3)
    assert values(0) != values(3)


# --- linear --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", ["number", "features", "texts", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_linear_recovers_a_linear_reward(states: str, seed: int) -> None:
    """Then LDE = DRE = the true mean of sum_a r(s, a) pi(a|s), whatever the propensities."""
    rng = np.random.default_rng(seed)
    rows, actions = 60, ["left", "right", "stay"]
    number, text = rng.normal(size=rows), rng.permutation(np.array(["x", "y", "z"] * 20))
    level = {"x": 1.0, "y": -2.0, "z": 0.5}
    given_states, part = {
        "number": (number, 3 * number),
        "features": (np.column_stack([number, number**2]), 3 * number - 2 * number**2),
        "texts": (text, np.array([level[t] for t in text])),
        "mixed": (list(zip(number, text.tolist(), strict=True)), 3 * number + [level[t] for t in text]),
    }[states]
    effect = np.array([0.7, -0.4, 0.1])
    logged = rng.permutation(np.arange(rows) % 3)
    truth = 5 + part[:, None] + effect  # (N, A)
    log = podium.Log(
        given_states,
        [actions[a] for a in logged],
        truth[np.arange(rows), logged],
        propensities=rng.uniform(0.1, 1, rows),
        action_space=tuple(actions),
    )
    policies = {"new": random_policy(log, seed), "right": "constant:right"}
    pi = {"new": policies["new"], "right": np.array([0.0, 1.0, 0.0])}
    result = podium.evaluate(log, policies, baseline="linear", duplicates="all")
    for name in policies:
        value = float((truth * pi[name]).sum(axis=1).mean())
        assert result.values[name]["LDE"] == approx(value, rel=1e-12)
        assert result.values[name]["DRE"] == approx(value, rel=1e-12)


def test_linear_is_ordinary_least_squares() -> None:
    log = random_log(50)
    policies = {"new": random_policy(log), "old": random_policy(log, 2)}
    ours = podium.evaluate(log, policies, baseline="linear")
    theirs = podium.evaluate(log, policies, baseline=LinearRegression())
    for name in policies:
        assert ours.values[name] == approx(theirs.values[name], rel=1e-10)


@pytest.mark.parametrize("value", [0.1, 0.7, 1e8 + 0.1])
def test_a_constant_feature_is_not_told_from_its_rounded_mean(value: float) -> None:
    """The mean of equal numbers may miss them by a bit; divided by such a spread, another value would be huge."""
    rng = np.random.default_rng(3)
    for rows in range(2, 40):
        rewards = rng.normal(size=rows)
        model = LeastSquares().fit(np.full((rows, 1), value), rewards)
        assert model.predict(np.array([[value], [value + 1]])) == approx(rewards.mean(), abs=1e-12)


def test_features_that_depend_on_each_other_are_fitted_alike_by_every_rounding() -> None:
    """Indicators of all actions sum to 1, and twice a feature is that feature again."""
    rng = np.random.default_rng(4)
    for rows in (4, 7, 30):
        x = rng.normal(size=rows)
        features = np.column_stack([x, 2 * x, 0.1 - x, np.eye(3)[rng.integers(3, size=rows)]])
        rewards = rng.normal(size=rows)
        first = LeastSquares().fit(features, rewards).predict(features)
        for _ in range(20):
            moved = features * (1 + 1e-15 * rng.standard_normal(features.shape))
            assert LeastSquares().fit(moved, rewards).predict(moved) == approx(first, abs=1e-9)


def test_linear_ignores_the_scale_of_a_feature() -> None:
    log = random_log(50)
    grown = podium.Log(
        log.state_columns["state"] * 1e9 + 1e12,
        log.actions,
        log.rewards,
        log.propensities,
        action_space=log.action_space,
    )
    policies = {"new": random_policy(log)}
    before = podium.evaluate(log, policies, baseline="linear").values["new"]
    after = podium.evaluate(grown, policies, baseline="linear").values["new"]
    assert before == approx(after, rel=1e-9)


# --- mean of neighbouring states -----------------------------------------------------------------------------------


def neighbours_by_loop(states: list[Any], rewards: list[float]) -> list[float]:
    """The same by hand: whole states by distance, among those with equal texts, until they hold 10 other rows; states
    at one distance come together."""
    rows = [s if isinstance(s, tuple) else (s,) for s in states]
    numeric = [j for j, x in enumerate(rows[0]) if not isinstance(x, str)]
    distinct = list(dict.fromkeys(rows))
    centre, spread = {}, {}
    for j in numeric:
        values = [s[j] for s in distinct]
        centre[j] = sum(values) / len(values)
        spread[j] = (sum((x - centre[j]) ** 2 for x in values) / len(values)) ** 0.5 or 1.0
    answers = []
    for n, here in enumerate(rows):
        texts = [x for x in here if isinstance(x, str)]
        alike = [s for s in distinct if [x for x in s if isinstance(x, str)] == texts]
        far = {s: sum(((s[j] - here[j]) / spread[j]) ** 2 for j in numeric) ** 0.5 for s in alike}
        alike = sorted(alike, key=far.__getitem__) if numeric else [here]
        found: list[float] = []
        reach = 0.0
        for state in alike:
            if len(found) >= NEIGHBOURS and far[state] > reach * (1 + 1e-9):
                break
            found += [rewards[m] for m, s in enumerate(rows) if s == state and m != n]
            reach = far[state]
        if not found:
            found = [r for m, r in enumerate(rewards) if m != n]
        answers.append(sum(found) / len(found))
    return answers


KINDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "number": lambda rng: float(rng.normal()),
    "features": lambda rng: (float(rng.normal()), float(rng.normal()) * 100, float(rng.normal()) * 1e-3),
    "text": lambda rng: str(rng.choice(list("abcdef"))),
    "texts": lambda rng: (str(rng.choice(list("abc"))), str(rng.choice(list("xy")))),
    "mixed": lambda rng: (float(rng.normal()), str(rng.choice(list("abc")))),
    "grid": lambda rng: (int(rng.integers(5)), int(rng.integers(5))),
    "corners": lambda rng: tuple(int(x) for x in rng.integers(2, size=6)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [2, 3, 11, 12, 40, 120])
@pytest.mark.parametrize("repeats", [1, 4])
def test_neighbour_means_equal_a_loop(kind: str, rows: int, repeats: int) -> None:
    """Without and with repeated states; many distances are equal on a grid and between the corners of a cube."""
    rng = np.random.default_rng([rows, repeats])
    pool = [KINDS[kind](rng) for _ in range(max(1, rows // repeats))]
    states = [pool[n % len(pool)] for n in rng.permutation(rows)]
    rewards = rng.normal(size=rows) + 3
    log = podium.Log(states, rng.integers(0, 2, rows), rewards)
    assert neighbour_means(log) == approx(np.array(neighbours_by_loop(states, rewards.tolist())), rel=1e-12)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 5, 9]), st.sampled_from("xy"), st.floats(-9, 9)), min_size=2, max_size=30
    ),
    st.sampled_from(["number", "text", "mixed"]),
    st.data(),
)
def test_a_row_never_sees_its_own_reward(rows: list[tuple[int, str, float]], kind: str, data: st.DataObject) -> None:
    """Also where neighbours are equally far: whatever a row's reward, its own baseline stays."""
    states: list[Any] = [{"number": s, "text": t, "mixed": (s, t)}[kind] for s, t, _ in rows]
    rewards = [r for *_, r in rows]
    n = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rewards[:n], 1000.0, *rewards[n + 1 :]]
    actions = ["a"] * len(rows)
    before = neighbour_means(podium.Log(states, actions, rewards))
    after = neighbour_means(podium.Log(states, actions, changed))
    assert after[n] == approx(before[n], rel=1e-9, abs=1e-9)
    assert min(rewards) - 1e-9 <= before[n] <= max(rewards) + 1e-9


def test_states_too_close_to_tell_apart_still_leave_the_row_out() -> None:
    """Standardised, the first thirty states fall on one point."""
    states = np.r_[np.arange(30) * 1e-19, 1e3]
    rewards = np.arange(31.0)
    for n in range(31):
        changed = rewards.copy()
        changed[n] = 1e6
        before = neighbour_means(podium.Log(states, ["a"] * 31, rewards))
        after = neighbour_means(podium.Log(states, ["a"] * 31, changed))
        assert after[n] == approx(before[n], rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1 / 3, 1e6])
def test_neighbours_at_one_distance_are_not_chosen_by_rounding(shift: float) -> None:
    """The order of the rows and the origin of the states change the rounding of distances, and nothing else."""
    rng = np.random.default_rng(2)
    states, rewards = rng.integers(0, 12, size=(150, 2)), rng.normal(size=150)
    order = rng.permutation(150)
    before = neighbour_means(podium.Log(states, ["a"] * 150, rewards))
    after = neighbour_means(podium.Log(states[order] + shift, ["a"] * 150, rewards[order]))
    assert after == approx(before[order], abs=1e-12)


@pytest.mark.parametrize(
    ("factor", "zero"), [(0.1, 0), (1.8, 32), (-1 / 3, 0), (1e-170, 0), (1e200, 0), (1, 1e6), (1, 1e9)]
)
def test_neighbours_do_not_depend_on_the_unit_of_a_column(factor: float, zero: float) -> None:
    """Steps of equal size make many equal distances, which the outlier and the zero point blur."""
    rng = np.random.default_rng(5)
    steps = np.where(np.arange(150) == 0, 10**7 if zero == 0 else 100, rng.integers(0, 30, 150)) / 10
    states, rewards = np.column_stack([steps, rng.integers(0, 3, 150)]), rng.normal(size=150)
    before = neighbour_means(podium.Log(states, ["a"] * 150, rewards))
    after = neighbour_means(podium.Log(states * [factor, 1] + [zero, 0], ["a"] * 150, rewards))
    assert after == approx(before, rel=1e-9, abs=1e-12)


def test_more_states_at_one_distance_than_are_searched() -> None:
    """A centre and 60 states around it, all as far: the centre's neighbours are all of them."""
    states = np.vstack([np.zeros(60), np.eye(60)]).astype(int)
    rewards = np.arange(61.0)
    assert neighbour_means(podium.Log(states, ["a"] * 61, rewards))[0] == approx(rewards[1:].mean())


def test_neighbours_of_one_and_two_rows() -> None:
    assert neighbour_means(podium.Log([5], ["a"], [3.0])).tolist() == [3.0]  # there is nothing else
    assert neighbour_means(podium.Log([5, 9], ["a", "a"], [3.0, 4.0])).tolist() == [4.0, 3.0]
    assert neighbour_means(podium.Log(["x", "y"], ["a", "a"], [3.0, 4.0])).tolist() == [4.0, 3.0]
    assert neighbour_means(podium.Log([("x", 1), ("y", 1)], ["a", "a"], [3.0, 4.0])).tolist() == [4.0, 3.0]


def test_neighbours_come_from_all_rows() -> None:
    """LDE overwrites row 1 by row 3, but row 1 still tells about its state: (2 + 8) / 2 and (2 + 4) / 2."""
    log = podium.Log(["x", "x", "x"], ["a", "b", "a"], [2.0, 4.0, 8.0])
    assert on_rows("state", log, log.latest).logged.tolist() == [5.0, 3.0]


# --- callables, models, arrays -------------------------------------------------------------------------------------


class Critic:
    def value(self, states: Any) -> np.ndarray:
        return np.asarray(states, dtype=float) * 2

    def quality(self, states: Any, actions: Any) -> np.ndarray:
        return np.asarray(states, dtype=float) * 2 + np.asarray(actions)

    def __call__(self, states: Any, actions: Any) -> np.ndarray:
        return self.quality(states, actions)

    @staticmethod
    def fixed(states: Any, actions: Any) -> float:
        return 1.0


def scaled(states: Any, factor: float = 2.0) -> np.ndarray:
    return np.asarray(states, dtype=float) * factor


def weighted(factor: float, states: Any, actions: Any, *, shift: float = 0.0) -> np.ndarray:
    return np.asarray(states, dtype=float) * factor + np.asarray(actions) + shift


V_OF = [
    pytest.param(lambda s: s * 2.0, id="lambda"),
    pytest.param(scaled, id="default argument"),
    pytest.param(Critic().value, id="method"),
    pytest.param(functools.partial(scaled, factor=2.0), id="partial"),
    pytest.param(lambda *args: args[0] * 2.0, id="star args"),
    pytest.param(np.vectorize(lambda s: s * 2.0), id="np.vectorize"),
]
Q_OF = [
    pytest.param(lambda s, a: s * 2.0 + a, id="lambda"),
    pytest.param(lambda s, a, slope=2.0: s * slope + a, id="default argument"),
    pytest.param(Critic().quality, id="method"),
    pytest.param(Critic(), id="callable object"),
    pytest.param(functools.partial(weighted, 2.0), id="partial"),
]
SMALL = podium.Log([1.0, 2.0, 3.0], [0, 1, 0], [1.0, 2.0, 3.0], action_space=(0, 1, 2))


@pytest.mark.parametrize("v", V_OF)
def test_critics(v: Any) -> None:
    fitted = on_rows(v, SMALL)
    assert describe_baseline(v) == "v(s)"
    assert fitted.logged.tolist() == [2.0, 4.0, 6.0]
    assert fitted.matrix is None


@pytest.mark.parametrize("q", Q_OF)
def test_environment_models(q: Any) -> None:
    fitted = on_rows(q, SMALL)
    assert describe_baseline(q) == "q(s, a)"
    assert fitted.logged.tolist() == [2.0, 5.0, 6.0]
    assert fitted.matrix is not None
    assert fitted.matrix.tolist() == [[2.0, 3.0, 4.0], [4.0, 5.0, 6.0], [6.0, 7.0, 8.0]]


def test_functions_of_numpy() -> None:
    assert on_rows(np.square, SMALL).logged.tolist() == [1.0, 4.0, 9.0]
    assert on_rows(np.add, SMALL).logged.tolist() == [1.0, 3.0, 3.0]


def test_one_number_for_all_rows_is_enough() -> None:
    assert on_rows(lambda s: 4, SMALL).logged.tolist() == [4.0] * 3
    assert on_rows(Critic.fixed, SMALL).logged.tolist() == [1.0] * 3


def test_a_builtin_that_does_not_tell_its_arguments_is_a_critic() -> None:
    log = podium.Log(pd.DataFrame({"x": [1.0, 2.0], "value": [5.0, 6.0]}), ["a", "a"], [0.0, 0.0])
    assert on_rows(operator.itemgetter("value"), log).logged.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("actions", [["a", "b"], [1, 2], [True, False], [0.5, 1.5]])
def test_models_get_states_and_actions_as_they_are(actions: list[Any]) -> None:
    asked = []

    def q(states: Any, labels: Any) -> np.ndarray:
        asked.append((states, list(labels)))
        return np.zeros(len(states))

    frame = pd.DataFrame({"x": [1, 2], "y": ["u", "v"]})
    log = podium.Log(frame, actions, [0.0, 1.0])
    on_rows(q, log)
    assert all(states.equals(frame) for states, _ in asked)
    assert [labels for _, labels in asked] == [[a, a] for a in log.action_space]


def test_states_of_a_file_reach_a_model_as_a_frame() -> None:
    log = podium.Log.from_columns({"x": [1, 2], "y": [3, 4], "action": ["a", "a"], "reward": [0.0, 1.0]})
    fitted = on_rows(lambda states: states["x"] + states["y"], log)
    assert fitted.logged.tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    "model",
    [Ridge(), DecisionTreeRegressor(random_state=0), make_pipeline(StandardScaler(), Ridge())],
    ids=["ridge", "tree", "pipeline"],
)
def test_regressors_of_scikit_learn(model: Any) -> None:
    """A copy per fold: the same predictions as fitting by hand, and the model given stays unfitted."""
    log = random_log(23)
    fitted = cross_fit(model, log, all_rows(log), seed=5)
    Recorder.copies.clear()
    cross_fit(Recorder(), log, all_rows(log), seed=5)
    for copy in Recorder.copies:  # the same folds
        by_hand = type(model)(**model.get_params(deep=False)).fit(copy.fitted_on, copy.rewards)
        rows = copy.asked[0][:, 0].astype(int)
        for a, inputs in enumerate(copy.asked):
            assert fitted.matrix is not None
            assert fitted.matrix[rows, a] == approx(by_hand.predict(inputs), rel=1e-12)
    if not hasattr(model, "steps"):
        assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0, 3.0], (1, 2, 3), np.array([1.0, 2.0, 3.0]), pd.Series([1, 2, 3]), pl.Series([1, 2, 3])],
    ids=["list", "tuple", "array", "pandas", "polars"],
)
def test_arrays_of_one_number_per_row(values: Any) -> None:
    fitted = on_rows(values, SMALL, np.array([0, 2]))
    assert fitted.logged.tolist() == [1.0, 3.0]
    assert describe_baseline(values) == "array"


@pytest.mark.parametrize(
    ("baseline", "name"),
    [
        ("mean", "mean"),
        (0, "0"),
        (0.25, "0.25"),
        (np.float64(2.5), "2.5"),
        (np.int64(3), "3"),
        ("linear", "linear"),
        ("state", "state"),
        (Ridge(), "model Ridge"),
        (lambda s: s, "v(s)"),
        (lambda s, a: s, "q(s, a)"),
        (np.zeros((3, 3)), "array"),
    ],
)
def test_settings_name_the_baseline(baseline: Any, name: str) -> None:
    result = podium.evaluate(SMALL, {"new": "uniform"}, baseline=baseline)
    assert result.settings["baseline"] == name


# --- what is refused -----------------------------------------------------------------------------------------------


def whole(message: str, hint: str) -> str:
    """A pattern that matches one error from its first to its last character."""
    return "^" + re.escape(f"{message}\n\nHint: {hint}") + "$"


@pytest.mark.parametrize(
    ("baseline", "name"),
    [("linear", "linear"), (lambda s, a: s, "q(s, a)"), (Ridge(), "model Ridge"), (np.zeros((3, 3)), "array")],
)
def test_baselines_of_the_action_need_the_whole_distribution(baseline: Any, name: str) -> None:
    policies = {"old": "uniform", "new": [0.5, 0.25, 0.125]}
    message = whole(f"the baseline {name!r} {NEEDS_ALL} the logged action", FULL_HINT)
    with pytest.raises(podium.PodiumError, match=message):
        podium.evaluate(SMALL, policies, baseline=baseline)
    with pytest.raises(podium.PodiumError, match=message):
        podium.compare(SMALL, policies, baseline=baseline)


@pytest.mark.parametrize("baseline", ["mean", 1.5, "state", lambda s: s, [1.0, 2.0, 3.0]])
def test_baselines_of_the_state_do_not(baseline: Any) -> None:
    """(1 - b1)/2 + (2 - b2)/4 + (3 - b3)/8, and the mean of b."""
    b = on_rows(baseline, SMALL).logged
    value = podium.evaluate(SMALL, {"new": [0.5, 0.25, 0.125]}, baseline=baseline).values["new"]["LDE"]
    assert value == approx(((1 - b[0]) / 2 + (2 - b[1]) / 4 + (3 - b[2]) / 8 + b.sum()) / 3)


def test_methods_without_baseline_do_not_ask_for_it() -> None:
    result = podium.evaluate(SMALL, {"new": [0.5, 0.25, 0.125]}, ["DiM"], baseline="linear")
    assert result.values["new"]["DiM"] == approx((0.5 + 0.5 + 0.375) / 3)


NAMES = '"mean", "linear", "state", a number, q(states, actions), v(states), an object with fit/predict, or an array'
WHOLE_ARRAYS = "q(states, actions) and v(states) get whole arrays and give one number per row."
SHAPES = "give (N,) or (N, A) = (3, 3) numbers; columns follow log.action_space."


class Broken:
    def fit(self, features: np.ndarray, rewards: np.ndarray) -> None: ...

    def predict(self, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), np.nan)


def failing(states: Any) -> Any:
    raise KeyError("speed")


REFUSED = {
    "unknown name": ("median", "unknown baseline 'median'", f"did you mean 'mean'? a baseline is {NAMES}."),
    "nothing": (None, "a baseline cannot be None", f"a baseline is {NAMES}."),
    "truth value": (True, "a baseline cannot be True", f"a baseline is {NAMES}."),
    "mapping": ({"x": 1}, "a baseline cannot be {'x': 1}", f"a baseline is {NAMES}."),
    "nan": (
        float("nan"),
        "the baseline must be a finite number",
        "use the mean reward, or a number from its range.",
    ),
    "infinite": (
        float("inf"),
        "the baseline must be a finite number",
        "use the mean reward, or a number from its range.",
    ),
    "too short": ([1.0, 2.0], "the baseline has shape (2,); the log has 3 rows and 3 actions", SHAPES),
    "too wide": (np.zeros((3, 4)), "the baseline has shape (3, 4); the log has 3 rows and 3 actions", SHAPES),
    "array with nan": (
        [1.0, float("nan"), 2.0],
        "the baseline must be a finite number; row 2 holds nan (1 row)",
        "give a finite number per row.",
    ),
    "matrix with inf": (
        np.full((3, 3), np.inf),
        "the baseline must be a finite number; row 1 holds inf (3 rows)",
        "give a finite number per row and action.",
    ),
    "callable of a wrong shape": (
        lambda s: np.zeros((3, 3)),
        "the baseline must give 3 finite numbers; it gave shape (3, 3)",
        WHOLE_ARRAYS,
    ),
    "callable with nan": (
        lambda s: s * np.nan,
        "the baseline must give 3 finite numbers; it gave shape (3,)",
        WHOLE_ARRAYS,
    ),
    "callable that fails": (failing, "the baseline failed on the log's states: KeyError: 'speed'", WHOLE_ARRAYS),
    "model that predicts nan": (
        Broken(),
        "the baseline model predicts numbers that are not finite",
        "check the model on these rewards.",
    ),
}


@pytest.mark.parametrize(("baseline", "message", "hint"), REFUSED.values(), ids=REFUSED)
def test_refused(baseline: Any, message: str, hint: str) -> None:
    with pytest.raises(podium.PodiumError, match=whole(message, hint)):
        podium.evaluate(SMALL, {"new": "uniform"}, baseline=baseline)


def test_learning_needs_two_rows_and_two_units() -> None:
    hint = 'use baseline="mean" or a number.'
    with pytest.raises(podium.PodiumError, match=whole("a learned baseline needs at least 2 rows", hint)):
        podium.evaluate(podium.Log([1], ["a"], [1.0]), {"new": "uniform"}, baseline="linear")
    log = podium.Log([1, 2], ["a", "b"], [1.0, 2.0], units=["u", "u"])
    with pytest.raises(podium.PodiumError, match=whole("a learned baseline needs at least 2 units", hint)):
        podium.evaluate(log, {"new": "uniform"}, baseline="linear")


def test_learning_refuses_a_column_of_ids() -> None:
    log = podium.Log([f"id {n}" for n in range(1001)], ["a"] * 1001, [1.0] * 1001)
    message = "column 'state' has 1,001 different texts, too many for a learned baseline"
    hint = 'use baseline="state", which averages rows of the same text.'
    with pytest.raises(podium.PodiumError, match=whole(message, hint)):
        podium.evaluate(log, {"new": "uniform"}, baseline="linear")
