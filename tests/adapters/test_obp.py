"""Open Bandit Pipeline's dicts become logs and policies, and back (tests/system/test_obp.py asks OBP itself)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import sample

import podium
from podium.adapters import obp


def feedback(rows: int = 60, actions: int = 4, places: int = 1, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    pi_b = rng.dirichlet(np.ones(actions), (rows, places)).transpose(0, 2, 1)
    position = rng.integers(places, size=rows)
    at = pi_b[np.arange(rows), :, position]
    action = np.array([rng.choice(actions, p=p) for p in at])
    return {
        "n_rounds": rows,
        "n_actions": actions,
        "context": rng.normal(size=(rows, 3)),
        "action_context": np.eye(actions),
        "action": action,
        "position": None if places == 1 else position,
        "reward": rng.normal(size=rows),
        "pscore": at[np.arange(rows), action],
        "pi_b": pi_b,
    }


def test_feedback_becomes_a_log() -> None:
    given = feedback()
    log = obp.from_feedback(given)
    assert log.knows == "full"
    assert log.action_space == (0, 1, 2, 3)
    assert log.states.shape == (60, 3)
    np.testing.assert_array_equal(log.behavior, given["pi_b"][:, :, 0])
    np.testing.assert_array_equal(log.rewards, given["reward"])


def test_there_and_back_nothing_changes() -> None:
    given = feedback()
    back = obp.to_feedback(obp.from_feedback(given))
    assert set(back) == set(given)
    for key, value in given.items():
        if value is None:
            assert back[key] is None
        else:
            np.testing.assert_array_equal(back[key], value, err_msg=key)


def test_back_and_there_nothing_changes() -> None:
    log, policies = sample(rows=50, actions=3)
    again = obp.from_feedback(obp.to_feedback(log))
    dists = obp.to_action_dists(log, policies)
    assert dists["p0"].shape == (50, 3, 1)
    first = podium.evaluate(log, policies)
    second = podium.evaluate(again, obp.from_action_dists(dists, obp.to_feedback(log)))
    assert first.values == second.values


def test_a_position_joins_the_state_and_picks_the_distribution() -> None:
    given = feedback(places=3)
    log = obp.from_feedback(given)
    assert log.states.shape == (60, 4)
    np.testing.assert_array_equal(log.states[:, 3], given["position"])
    rows = np.arange(60)
    np.testing.assert_array_equal(log.behavior, given["pi_b"][rows, :, given["position"]])
    policies = obp.from_action_dists({"same": given["pi_b"]}, given)
    np.testing.assert_array_equal(policies["same"], log.behavior)


def test_a_feedback_without_pi_b_or_pscore() -> None:
    given = feedback()
    del given["pi_b"]
    assert obp.from_feedback(given).knows == "logged"
    given["pscore"] = None
    assert obp.from_feedback(given).knows == "none"


def test_texts_become_columns_and_labels_places() -> None:
    log = podium.Log(["a", "b", "a"], ["x", "y", "y"], [1.0, 0.0, 1.0], propensities=[0.5, 0.5, 0.5])
    back = obp.to_feedback(log)
    np.testing.assert_array_equal(back["context"], [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(back["action"], [0, 1, 1])
    assert back["pi_b"] is None


def test_estimated_propensities_keep_no_label_in_a_dict_but_get_there() -> None:
    log, _ = sample(rows=200, actions=3, knows="none")
    given = obp.to_feedback(podium.estimate_propensities(log, "frequencies").log)
    assert given["pscore"].min() > 0


BAD = {
    "no context": (
        {"context": None},
        "bandit_feedback has no 'context'\n\nHint: it holds n_rounds, n_actions, context, action_context, action, "
        "position, reward, pscore, pi_b.",
    ),
    "continuous": (
        {"action": np.linspace(0, 1, 60)},
        "bandit_feedback['action'] must hold whole numbers, one per row; it holds float64 of shape (60,)\n\nHint: "
        "continuous actions are podium.continuous.ContinuousLog(context, action, reward, densities=pscore).",
    ),
    "too few actions": (
        {"n_actions": 2, "action": np.array([0, 1, 3] + [0] * 57)},
        "bandit_feedback['action'] must lie in 0..1; row 3 holds 3 (1 row)\n\nHint: n_actions is the size of the "
        "action space.",
    ),
    "shape": (
        {"pi_b": np.ones((60, 3, 1)) / 3},
        "pi_b must have the shape (60, 4, L); it has (60, 3, 1)\n\nHint: the log has 60 rows and 4 actions.",
    ),
    "places without a position": (
        {"pi_b": np.ones((60, 4, 2)) / 4},
        "pi_b fills 2 places, and bandit_feedback has no 'position'\n\nHint: say which place each row is about with "
        "bandit_feedback['position'].",
    ),
    "position too far": (
        {"position": np.array([2] + [0] * 59)},
        "bandit_feedback['position'] must lie below 1; row 1 holds 2 (1 row)\n\nHint: pi_b has 1 place.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_feedback_is_refused(name: str) -> None:
    change, message = BAD[name]
    with pytest.raises(podium.PodiumError) as error:
        obp.from_feedback({**feedback(), **change})
    assert str(error.value) == message


def test_a_position_that_is_always_0_is_one() -> None:
    given = {**feedback(), "position": np.zeros(60, dtype=int), "pi_b": np.full((60, 4, 3), 0.25), "pscore": None}
    log = obp.from_feedback(given)
    assert log.states.shape == (60, 3)
    assert log.knows == "full"
    assert obp.from_action_dists({"a": given["pi_b"]}, given)["a"].shape == (60, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: obp.from_feedback([1]), "bandit_feedback must be a dict of arrays; it is list"),  # type: ignore[arg-type]
        (lambda: obp.from_feedback({}), "bandit_feedback has no 'context'"),
        (
            lambda: obp.from_feedback({"context": np.zeros((0, 1)), "action": [], "reward": []}),
            "bandit_feedback has no rows",
        ),
        (lambda: obp.from_feedback({**feedback(), "context": [["a"]] * 60}), "bandit_feedback['context'] must hold"),
        (lambda: obp.from_feedback({**feedback(), "position": ["a"] * 60}), "bandit_feedback['position'] must hold 60"),
        (
            lambda: obp.from_action_dists(np.zeros((60, 4, 1)), feedback()),  # type: ignore[arg-type]
            "action_dists must name every policy; it is ndarray",
        ),
        (lambda: obp.from_action_dists({"a": np.zeros((60, 4, 1))}, {}), "bandit_feedback has no 'action'"),
    ],
)
def test_what_is_no_feedback_is_refused(make: Any, message: str) -> None:
    with pytest.raises(podium.PodiumError) as error:
        make()
    assert message in error.value.message
    assert error.value.hint


def test_a_log_without_propensities_cannot_go_to_obp() -> None:
    log, _ = sample(knows="none")
    with pytest.raises(podium.PodiumError) as error:
        obp.to_feedback(log)
    assert str(error.value) == (
        "Open Bandit Pipeline needs propensities, and the log has none\n\n"
        "Hint: estimate them: podium.estimate_propensities(log).log"
    )
