"""Features of the actions: read in every form, used where they explain rewards, harmless where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import podium
from podium.data.action_features import action_features
from podium.data.errors import PodiumError
from podium.experiments.calibration.action_features import HELD_OUT, TUNED, WORLDS, compare_twice
from podium.verdicts.doubly_robust import fit_surface
from podium.verdicts.prior import normal_scores

TABLE = {"a": {"price": 1.0, "brand": "x"}, "b": {"price": 2.0, "brand": "x"}, "c": {"price": 4.0, "brand": "y"}}


def fails(call: Any) -> str:
    with pytest.raises(PodiumError) as error:
        call()
    return str(error.value)


def test_every_form_gives_the_same(tmp_path: Path) -> None:
    frame = pd.DataFrame([{"action": k, **v} for k, v in TABLE.items()])
    frame.to_csv(tmp_path / "items.csv", index=False)
    forms = [TABLE, frame, frame.rename(columns={"action": "item"}), frame.set_index("action"), tmp_path / "items.csv"]
    for form in forms:
        found = action_features("action_features", form).on(["c", "a"])
        assert found.names == ("price",)  # both brands occur once among these two
        assert found.numeric.tolist() == [[4.0], [1.0]]
    embedded = action_features("action_features", pd.DataFrame({"action": [1, 2], "e": [[1.0, 0.0], [0.0, 2.0]]}))
    assert embedded.on([1, 2]).names == ("e[0]", "e[1]")


def test_what_is_refused() -> None:
    features = action_features("action_features", TABLE)
    assert fails(lambda: features.on(["a", "bb", "q"])) == (
        "action_features lacks 2 of the 3 actions: 'bb', 'q'\n\n"
        "Hint: did you mean 'b' by 'bb'? Add one row for every action that was logged or that a policy plays."
    )
    twice = pd.DataFrame({"action": ["a", "b", "a"], "price": [1.0, 2.0, 3.0]})
    assert fails(lambda: action_features("action_features", twice)) == (
        "action_features: rows 1 and 3 both describe the action 'a'\n\nHint: keep one row per action."
    )
    gap = pd.DataFrame({"action": ["a", "b"], "price": [1.0, np.nan]})
    assert fails(lambda: action_features("action_features", gap)) == (
        "action_features: column 'price' must not be missing; row 2 holds nan (1 row)\n\n"
        "Hint: fill in the missing values, or leave the column out."
    )


def small_log() -> podium.Log:
    rng = np.random.default_rng(0)
    actions = rng.choice(["a", "b", "c"], size=60)
    return podium.Log(rng.integers(4, size=60), actions, rng.standard_normal(60), propensities=np.full(60, 1 / 3))


def test_useless_features_change_nothing_and_the_header_says_so() -> None:
    log, policies = small_log(), {"a": "constant:a", "c": "constant:c"}
    plain, known = (podium.compare(log, policies, action_features=f) for f in (None, TABLE))
    assert known.pairs == plain.pairs
    assert known.to_dict()["settings"]["action_features"] == ["price", "brand"]
    note = "Action features: price, brand. They explain nothing that this log shows, so the verdicts do without them"
    assert note in known.header()
    gated = podium.compare(log, policies, action_features=TABLE, verdicts="gated")
    note = "The action features (price, brand) are not used: the gated procedure has no model of the actions"
    assert note in gated.header()


def test_a_thousand_actions_say_something_by_their_features() -> None:
    found = compare_twice(("embeddings of 16 numbers", 300, 0, 0))
    without, with_features = ((c != 0).sum() for c in found.claims)
    assert with_features >= 3 * max(without, 1)
    assert not (found.claims[1] * np.sign(found.truth) < 0).any()


def test_the_scale_of_features_and_the_order_of_their_rows_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    world, features = WORLDS["prices and brands"](rng, 3)
    draw = world.log(rng, 80)
    frame = pd.DataFrame({"action": features.labels, **features.columns})
    moved = frame.assign(price=1000 * frame["price"] + 7).sample(frac=1, random_state=0)
    one, other = (podium.compare(draw.log, draw.policies, action_features=f) for f in (frame, moved))
    for a, b in zip(one.pairs, other.pairs, strict=True):
        assert a.difference == pytest.approx(b.difference, rel=1e-6, abs=1e-9)


def test_the_doubly_robust_model_reads_unlogged_actions_off_their_features() -> None:
    rng = np.random.default_rng(0)
    price = rng.standard_normal((50, 1))
    actions = rng.integers(40, size=2000)  # ten actions are never logged
    rewards = 3 * price[actions, 0] + 0.1 * rng.standard_normal(2000)
    x = np.ones((2000, 1))
    known = fit_surface(x, rewards, actions, 50, price)
    assert np.abs(known[40:, 0] - 3 * price[40:, 0]).max() < 0.3
    assert np.abs(fit_surface(x, rewards, actions, 50)[40:, 0] - 3 * price[40:, 0]).max() > 1


def test_a_learned_baseline_takes_features() -> None:
    log = small_log()
    plain, known = (
        podium.evaluate(log, {"a": "constant:a"}, "DRE", "linear", action_features=f) for f in (None, TABLE)
    )
    assert known.settings["action_features"] == ["price", "brand"]
    assert plain.values["a"]["DRE"] == pytest.approx(known.values["a"]["DRE"], abs=0.2)


def test_held_out_worlds_are_not_tuned_on() -> None:
    assert set(TUNED) | set(HELD_OUT) == set(WORLDS)
    assert not set(TUNED) & set(HELD_OUT)


def test_features_of_too_many_actions_leave_the_posterior_as_it_is() -> None:
    rng = np.random.default_rng(0)
    labels = [f"item {i}" for i in range(4001)]
    actions = [labels[i] for i in rng.integers(4001, size=30)]
    log = podium.Log(rng.integers(2, size=30), actions, rng.random(30), action_space=labels)
    policies = {"a": f"constant:{actions[0]}", "b": "uniform"}
    features = {label: {"price": float(i)} for i, label in enumerate(labels)}
    plain, known = (podium.compare(log, policies, action_features=f) for f in (None, features))
    assert known.pairs == plain.pairs
    assert known.pairs[0].path == "posterior"
    note = "The action features (price) are not used: they are for up to 4,000 actions, and the log has 4,001"
    assert note in known.settings.notes


def test_orders_of_preference_are_normal_scores_among_the_eligible() -> None:
    first = np.array([[[0.7, 0.1, 0.2, 0.0], [0.0, 1.0, 0.0, 0.0]]])
    like = np.array([[[0.5, 0.2, 0.2, 0.1], [0.3, 0.5, -0.2, -2.0]]])
    scores = normal_scores(first, like, None)
    assert scores.argsort(axis=2).tolist() == [[[3, 1, 2, 0], [3, 2, 0, 1]]]  # ties by what is like the preferred one
    assert scores.sum(axis=2) == pytest.approx(np.zeros((1, 2)), abs=1e-12)
    assert scores[0, 0, 0] == pytest.approx(norm.ppf(3.5 / 4) / np.sqrt(2))
    eligible = np.array([[True, True, True, False], [True, True, True, False]])
    among = normal_scores(first, like, eligible)
    assert (among[:, :, 3] == 0).all()
    assert among[0, 1] == pytest.approx(np.array([0.0, norm.ppf(2.5 / 3), norm.ppf(0.5 / 3), 0.0]) / np.sqrt(2))
    assert (normal_scores(np.full((1, 2, 4), 0.25), np.full((1, 2, 4), 0.25), None) == 0).all()
