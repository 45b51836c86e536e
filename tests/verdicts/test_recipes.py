"""Recipes that learn from the log they are judged on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium import Learned, Log, PodiumError
from podium.experiments.calibration.recipes import claims_of, coin_noise, judge, personal, values
from podium.policies.cross_fitted import teach

NOTE = (
    "'new' learned from this log: on each of 5 folds podium judges what was learned from the other folds, with errors "
    "widened 1.5 times since these share rows. The answer is about the recipe, not about one fixed model"
)


class Means:
    """An estimator of the mean reward."""

    def fit(self, x: Any, y: Any) -> Means:
        self.mean = float(np.mean(y))
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.mean)


def small(n: int = 60, seed: int = 0, **more: Any) -> Log:
    rng = np.random.default_rng(seed)
    actions = rng.choice(["a", "b"], n)
    return Log(rng.normal(size=n), actions, rng.normal(size=n) + (actions == "b"), propensities=np.full(n, 0.5), **more)


def refused(message: str, hint: str, function: Callable[[], Any]) -> None:
    with pytest.raises(PodiumError) as caught:
        function()
    assert str(caught.value) == f"{message}\n\nHint: {hint}"


def test_no_row_is_played_by_what_saw_its_reward() -> None:
    """Changing the reward of one row changes nothing that is played in its own fold."""
    log = small()
    rewards = log.rewards.copy()
    rewards[7] += 1000.0
    other = Log(log.states, log.actions, rewards, propensities=log.propensities)
    first, second = (teach(x, {"new": Learned(Means())}, 0)["new"].source.chosen for x in (log, other))
    changed = np.flatnonzero(first != second)
    assert first[7] == second[7]
    fold = np.random.default_rng([0, 6]).permutation(60) % 5
    assert not np.any(fold[changed] == fold[7])


def test_rows_of_one_unit_share_a_fold() -> None:
    log = small(60, units=np.arange(60) // 6)
    taught: list[set[int]] = []

    def recipe(states: Any, actions: Any, rewards: Any, propensities: Any) -> str:
        taught.append({int(np.flatnonzero(log.rewards == r)[0]) // 6 for r in rewards})
        assert len(rewards) == 6 * len(taught[-1])
        return "constant:b"

    podium.compare(log, {"new": Learned(recipe), "old": "constant:a"})
    assert len(taught) == 5
    assert all(len(units) == 8 for units in taught)


def test_the_answer_says_that_it_judges_a_recipe() -> None:
    log = small(200)
    result = podium.compare(log, {"new": Learned(Means()), "old": "constant:a", "any": "uniform"})
    assert NOTE in result.settings.notes
    assert result.settings.recipes == ("new",)
    assert result.to_dict()["settings"]["recipes"] == ["new"]
    assert result.pair("new", "old").path == "DRE"
    assert result.pair("any", "old").path == "posterior"
    assert result.best == "new"
    alone = podium.compare(log, {"old": "constant:a", "any": "uniform"})
    mine, theirs = (x.pair("any", "old") for x in (result, alone))
    assert mine.difference == pytest.approx(theirs.difference)
    assert mine.std_error == pytest.approx(theirs.std_error)
    assert "recipes" not in alone.to_dict()["settings"]


def test_errors_are_widened_by_what_folds_share() -> None:
    log = small(200)
    policies = {"new": Learned(Means()), "old": "constant:a"}
    wide = podium.compare(log, policies, verdicts="doubly robust").pair("new", "old")
    chosen = teach(log, policies, 0)["new"].source
    fixed = {"new": [log.action_space[k] for k in chosen.chosen], "old": "constant:a"}
    plain = podium.compare(log, fixed, verdicts="doubly robust").pair("new", "old")
    assert wide.difference == pytest.approx(plain.difference)
    assert wide.std_error == pytest.approx(1.5 * plain.std_error)


def test_a_large_log_is_judged_the_same_way() -> None:
    log = small(400)
    policies = {"new": Learned(Means()), "old": "constant:a"}
    result = podium.compare(log, policies, sample_rows=100)
    assert result.pair("new", "old").source == "all rows"
    whole = podium.compare(log, policies)
    assert result.pair("new", "old").difference == pytest.approx(whole.pair("new", "old").difference, abs=0.1)


def test_lower_is_better_and_exploration_reach_the_recipe() -> None:
    log = small(200)
    assert (
        podium.compare(log, {"new": Learned(Means()), "a": "constant:a"}, lower_is_better=True).pairs[0].difference == 0
    )
    taught = teach(log, {"new": Learned(Means(), explore=0.2)}, 0)["new"].source.matrix
    assert np.unique(taught).tolist() == pytest.approx([0.1, 0.9])
    one = teach(log, {"new": Learned(Means(), per_action=False)}, 0)["new"].source
    assert set(one.chosen) == {0}  # a model that cannot tell actions apart takes the first


def test_a_function_may_return_any_policy() -> None:
    log = small(100)
    for made in ("uniform", "constant:b", lambda states: np.full((len(states), 2), 0.5), {"a": 0.3, "b": 0.7}):
        result = podium.compare(log, {"new": Learned(lambda *given, made=made: made), "old": "constant:a"})
        assert result.settings.recipes == ("new",)


def test_what_cannot_be_a_recipe_is_refused(tmp_path: Path) -> None:
    hint = "write podium.Learned(RandomForestRegressor()), or a function fit(states, actions, rewards, propensities)."
    refused("the estimator is the class Means, not an instance of it", hint, lambda: Learned(Means))
    refused("int has no fit and predict methods, and is not a function", hint, lambda: Learned(3))
    log = small(50)
    policies = {"new": Learned(Means()), "old": "constant:a"}
    refused(
        "the posterior cannot judge 'new', a recipe: the rewards it learned from are its evidence",
        'leave verdicts and estimator out, or use "doubly robust" or "gated".',
        lambda: podium.compare(log, policies, verdicts="posterior"),
    )
    memory = "read the log with podium.read_log (--engine memory), or give a policy that is already trained."
    refused(
        "policy 'behavior' is a recipe that learns from the log; only a candidate policy can be one, and only on a log "
        "in memory",
        memory,
        lambda: podium.compare(log, {"a": "constant:a", "b": "constant:b"}, behavior=Learned(Means())),
    )
    refused(
        "policy 'new': the recipe broken failed: ZeroDivisionError: no rows to divide by",
        "it was called with 40 rows: fit(states, actions, rewards, propensities).",
        lambda: podium.compare(log, {"new": Learned(broken), "old": "constant:a"}),
    )
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward\n" + "".join(f"{i % 9},{'ab'[i % 2]},{i % 3}\n" for i in range(300)))
    scanned = podium.scan_log(path, engine="duckdb")
    refused(
        "policy 'new' is a recipe that learns from the log; only a candidate policy can be one, and only on a log in "
        "memory",
        memory,
        lambda: podium.compare(scanned, policies, sample_rows=100),
    )


def broken(*given: Any) -> Any:
    raise ZeroDivisionError("no rows to divide by")


def test_classifiers_need_rewards_of_a_few_values() -> None:
    from sklearn.linear_model import LogisticRegression

    log = small(50)
    refused(
        "policy 'new': LogisticRegression is a classifier, and the reward has 50 different values",
        "give an estimator that predicts numbers, such as podium.Learned(RandomForestRegressor()).",
        lambda: podium.compare(log, {"new": Learned(LogisticRegression()), "old": "constant:a"}),
    )


def test_the_command_takes_a_recipe_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_recipe.py").write_text("def best(s, a, r, p):\n    return 'constant:b'\n")
    result = podium.compare(small(80), {"new": "learned:my_recipe:best", "old": "constant:a"})
    assert result.settings.recipes == ("new",)


def test_noise_is_not_claimed_and_strong_effects_are() -> None:
    """A small part of `python -m podium.calibration.recipes`."""
    noise = sum(judge("coins", 100, repetition, 3)["podium"] for repetition in range(6))
    assert noise[1] <= 1
    drawn = personal(np.random.default_rng(5), 500)
    from sklearn.tree import DecisionTreeRegressor

    policies = {"tree": Learned(DecisionTreeRegressor(min_samples_leaf=20)), "other": "uniform"}
    result = podium.compare(drawn.log, policies)
    assert claims_of(result, values(result, drawn.expected)).tolist() == [1, 1, 0]
    assert coin_noise(np.random.default_rng(0), 50).expected.max() == 0.5
