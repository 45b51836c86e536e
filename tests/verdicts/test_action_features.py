"""Features of the actions: read in every form, used where they explain rewards, harmless where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import podium
from podium.data.action_features import action_features
from podium.data.errors import PodiumError
from podium.experiments.calibration.action_features import HELD_OUT, TUNED, WORLDS, compare_twice
from podium.verdicts.doubly_robust import fit_surface

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
