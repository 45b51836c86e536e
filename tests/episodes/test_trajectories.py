"""Importance sampling on episodes: whole trajectories or step by step, plain or self-normalised."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError, Unavailable
from podium.episodes import Episode, evaluate, read
from podium.episodes.trajectories import trajectory_terms

approx = pytest.approx
fixed = settings(deadline=None, max_examples=100, derandomize=True)
METHODS = ("TIS", "PDIS", "WIS", "PDWIS")


def chance(p: float) -> Any:
    """A policy that does 1 with probability p and 0 otherwise, wherever it is."""
    return lambda observations, actions: np.log(np.where(actions == 1, p, 1 - p))


def coins(episodes: int = 200, p: float = 0.4, seed: int = 0, longest: int = 4, recorded: bool = True) -> list[Episode]:
    """Episodes of 1 to 4 steps, in which 1 pays 1; an episode ends early after a 0, with probability 1/2."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(episodes):
        actions = []
        while len(actions) < longest and not (actions and actions[-1] == 0 and rng.random() < 0.5):
            actions.append(int(rng.random() < p))
        taken = np.array(actions)
        made.append(
            Episode(
                np.zeros((len(taken), 1)),
                taken,
                taken.astype(float),
                propensities=np.where(taken == 1, p, 1 - p) if recorded else None,
            )
        )
    return made


def by_hand(episodes: list[Episode], p: float, target: float) -> dict[str, float]:
    """The four estimates in plain loops; an episode that has ended keeps its weight and earns nothing."""
    longest = max(len(e) for e in episodes)
    weights, rewards = [], []
    for e in episodes:
        rho, row, earned = 1.0, [], []
        for t in range(longest):
            if t < len(e):
                rho *= (target / p) if e.actions[t] == 1 else (1 - target) / (1 - p)
            row.append(rho)
            earned.append(float(e.rewards[t]) if t < len(e) else 0.0)
        weights.append(row)
        rewards.append(earned)
    n = len(episodes)
    return {
        "TIS": sum(w[-1] * sum(r) for w, r in zip(weights, rewards, strict=True)) / n,
        "PDIS": sum(a * b for w, r in zip(weights, rewards, strict=True) for a, b in zip(w, r, strict=True)) / n,
        "WIS": sum(w[-1] * sum(r) for w, r in zip(weights, rewards, strict=True)) / sum(w[-1] for w in weights),
        "PDWIS": sum(
            sum(w[t] * r[t] for w, r in zip(weights, rewards, strict=True)) / sum(w[t] for w in weights)
            for t in range(longest)
        ),
    }


@pytest.mark.parametrize("target", [0.1, 0.4, 0.9])
def test_estimates_equal_plain_loops(target: float) -> None:
    episodes = coins(60)
    found = evaluate(episodes, {"target": chance(target)}).values["target"]
    assert found == approx(by_hand(episodes, 0.4, target))


def test_recorded_probabilities_and_a_behaviour_policy_agree() -> None:
    policies = {"more": chance(0.7), "logger": "logged"}
    recorded = evaluate(coins(), policies)
    known = evaluate(coins(recorded=False), policies, behavior=chance(0.4))
    for name in policies:
        assert recorded.values[name] == approx(known.values[name])
    assert list(recorded.values["logger"].values()) == approx([np.mean([e.rewards.sum() for e in coins()])] * 4)


def test_estimates_are_near_the_truth() -> None:
    """E[G] = p (1 + c + c^2 + c^3), where c = (1 + p)/2 is the chance to go on."""
    for target in (0.3, 0.6):
        c = (1 + target) / 2
        truth = target * (1 + c + c**2 + c**3)
        found = evaluate(coins(20_000), {"target": chance(target), "other": chance(0.5)})
        for method in METHODS:
            low, high = found.interval("target", method, 0.9999)
            assert low <= truth <= high
            assert high - low < 0.5


@pytest.mark.parametrize("method", METHODS)
def test_errors_are_those_of_the_jackknife(method: str) -> None:
    episodes, policies = coins(120), {"a": chance(0.6), "b": chance(0.2)}
    result = podium.episodes.compare(episodes, policies, estimator=method, verdicts="paired t")
    pair = result.pair("a", "b")
    gaps = []
    for n in range(len(episodes)):
        rest = [e for k, e in enumerate(episodes) if k != n]
        row = evaluate(rest, policies, estimators=method).values
        gaps.append(row["a"][method] - row["b"][method])
    jackknife = np.sqrt(119 / 120 * ((gaps - np.mean(gaps)) ** 2).sum())
    assert pair.difference == approx(np.mean(gaps), abs=0.2 * jackknife)
    assert pair.std_error == approx(jackknife, rel=0.15)
    assert result.ranking == ["a", "b"]


@fixed
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(1)), elements=st.floats(-3, 3)),
    st.lists(st.floats(-10, 10), min_size=8, max_size=8),
)
def test_one_step_is_ips_and_snips(logs: np.ndarray, rewards: list[float]) -> None:
    earned = np.array(rewards[: len(logs)])[:, None]
    terms = trajectory_terms(logs, earned)
    weight = np.exp(logs)
    assert terms["TIS"].rows == approx(terms["PDIS"].rows)
    assert terms["TIS"].rows.mean() == approx(float((weight * earned).mean()), abs=1e-9)
    assert terms["WIS"].rows == approx(terms["PDWIS"].rows)
    assert terms["WIS"].rows.mean() == approx(float((weight * earned).sum() / weight.sum()), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_one_step_episodes_keep_their_rewards(method: str) -> None:
    """That an episode ended after its only step takes nothing from its reward."""
    episodes = [
        Episode([[0.0]], [a], [r], terminated=True, propensities=[0.5])
        for a, r in ((1, 1.0), (0, 0.5), (1, 3.0), (0, 0.5))
    ]
    assert evaluate(episodes, {"uniform": chance(0.5)}).values["uniform"][method] == approx(1.25)


@pytest.mark.parametrize("method", ["WIS", "PDWIS"])
def test_equal_rewards_give_no_width(method: str) -> None:
    rng = np.random.default_rng(0)
    episodes = [
        Episode(np.zeros((3, 1)), a, np.full(3, 0.1), propensities=np.full(3, 0.5)) for a in rng.integers(0, 2, (30, 3))
    ]
    found = evaluate(episodes, {"a": chance(0.9)})
    assert found.values["a"][method] == approx(0.3)
    assert found.std_errors["a"][method] == approx(0, abs=1e-15)


def test_long_episodes_stay_within_floating_point() -> None:
    """2,000 steps of weight e^-2 or e^2: products of 1e+-1700 that only logarithms hold."""
    logs = np.full((3, 2000), -2.0)
    logs[0] = 2.0
    rewards = np.ones((3, 2000))
    terms = trajectory_terms(logs, rewards)
    assert set(terms) == {"WIS", "PDWIS"}
    assert terms["WIS"].rows.mean() == approx(2000)
    episodes = [
        Episode(np.zeros((2000, 1)), np.ones(2000), np.ones(2000), propensities=np.full(2000, 1e-3)) for _ in range(3)
    ]
    found = evaluate(episodes, {"sure": chance(1 - 1e-12)})
    assert found.unavailable.keys() == {"TIS", "PDIS"}
    assert found.values["sure"]["WIS"] == approx(2000)


def test_impossible_actions_have_no_weight() -> None:
    episodes, always = coins(200), {"always": lambda o, a: np.where(a == 1, 0.0, -np.inf)}
    assert any(e.actions.all() for e in episodes)
    found = evaluate(episodes, always)
    assert (found.unavailable, found.values["always"]["WIS"]) == ({}, approx(4.0))
    none = evaluate([e for e in episodes if not e.actions.all()], always)
    reason = "the weights of 'always' are all 0, or too large for floating point"
    assert none.unavailable == {"WIS": f"WIS: {reason}", "PDWIS": f"PDWIS: {reason}"}
    assert none.values["always"]["TIS"] == 0


def test_without_probabilities_of_steps_they_are_unavailable() -> None:
    steps = coins(20, recorded=False)
    found = evaluate(steps, {"a": chance(0.6)})
    assert set(found.unavailable) == set(METHODS)
    assert found.values["a"] == dict.fromkeys(METHODS)
    needs = "PDIS needs episodes with the probability of every step"
    assert found.unavailable["PDIS"] == f"{needs}, and the behaviour policy is not known"
    both = SimpleNamespace(predict=lambda o: 0 * o, log_prob=chance(0.6))
    found = evaluate(steps, {"a": both}, behavior=lambda o: 0 * o, bounds=(0, 2))
    assert found.unavailable["PDIS"] == f"{needs}, which the behaviour policy lacks"
    with pytest.raises(Unavailable, match=r"PDIS needs episodes .*, and the behaviour policy is not known"):
        podium.episodes.compare(steps, {"a": chance(0.6), "b": chance(0.5)}, estimator="pdis")
    acts = {"a": lambda o: 0 * o, "b": lambda o: 0 * o + 0.5}
    with pytest.raises(Unavailable, match="PDIS needs episodes with the probability of every step, which 'a' lacks"):
        podium.episodes.compare(steps, acts, bounds=(0, 2), behavior="a", estimator="PDIS")


def test_propensities_are_checked_and_read(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="propensities must be above 0; step 2 holds 0"):
        Episode(np.zeros((2, 1)), [0, 1], [0.0, 1.0], propensities=[0.5, 0.0])
    with pytest.raises(PodiumError, match="there are 2 rewards and propensities of shape"):
        Episode(np.zeros((2, 1)), [0, 1], [0.0, 1.0], propensities=[0.5])
    with pytest.raises(PodiumError, match="must be at most 1 where actions are whole numbers; step 1 holds 2"):
        Episode(np.zeros((2, 1)), [0, 1], [0.0, 1.0], propensities=[2.0, 0.5])
    assert Episode(np.zeros((2, 1)), [0.0, 1.0], [0.0, 1.0], propensities=[2.0, 0.5]).propensities is not None
    path = tmp_path / "steps.csv"
    path.write_text("episode,x,action,reward,propensity\n0,0,1,1,0.5\n0,0,0,0,0.25\n1,0,1,2,0.5\n", encoding="utf-8")
    episodes = read(path)
    assert episodes[0].propensities.tolist() == [0.5, 0.25]
    assert episodes[0].observations.shape == (2, 1)
    assert evaluate(episodes, {"a": chance(0.5)}).values["a"]["PDIS"] == approx((1 + 0 + 2) / 2)


def test_a_horizon_cuts_weights_and_rewards() -> None:
    episodes = coins(80)
    cut = [Episode(e.observations[:2], e.actions[:2], e.rewards[:2], propensities=e.propensities[:2]) for e in episodes]
    assert evaluate(episodes, {"a": chance(0.7)}, horizon=2).values == evaluate(cut, {"a": chance(0.7)}).values


@pytest.mark.parametrize(("steps", "method"), [(5, "WIS"), (5, "PDWIS"), (10, "WIS"), (40, "WIS"), (40, "PDWIS")])
def test_intervals_of_weighted_importance_sampling_cover_or_are_not_given(steps: int, method: str) -> None:
    """Of 50 episodes few carry the weight: the spread of all would be that of one episode, and cover nothing."""
    given = covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        taken = (rng.random((50, steps)) < 0.5).astype(int)
        episodes = [
            Episode(np.zeros((steps, 1)), a, a + 0.3 * rng.normal(size=steps), propensities=np.full(steps, 0.5))
            for a in taken
        ]
        found = evaluate(episodes, {"bold": chance(0.9)}, estimators=[method]).interval("bold", method)
        if found is not None:
            given += 1
            covered += found[0] <= 0.9 * steps <= found[1]
    assert covered >= 0.85 * given
    assert given > 20 if steps == 5 else given < 15


def test_probabilities_are_no_logarithms() -> None:
    with pytest.raises(PodiumError, match="must give a log-probability, at most 0") as error:
        evaluate(coins(20), {"a": lambda o, a: np.where(a == 1, 0.7, 0.3)})
    assert "give log(p), not p" in error.value.hint


def test_a_discount_multiplies_rewards() -> None:
    episodes = coins(80)
    less = [
        Episode(e.observations, e.actions, e.rewards * 0.9 ** np.arange(len(e)), propensities=e.propensities)
        for e in episodes
    ]
    found = evaluate(episodes, {"a": chance(0.7)}, gamma=0.9)
    assert found.values == evaluate(less, {"a": chance(0.7)}).values
    assert found.settings["gamma"] == 0.9
    assert "counts 0.9^t times" in found.text()
    agents = {"a": chance(0.7), "b": chance(0.4)}
    assert podium.episodes.compare(episodes, agents, gamma=0.9).estimates == (
        podium.episodes.compare(less, agents).estimates
    )
    for gamma in (1.1, -0.1, "x", True):
        with pytest.raises(PodiumError, match="gamma must be a number from 0 to 1"):
            evaluate(episodes, agents, gamma=gamma)  # type: ignore[arg-type]


def test_the_command_evaluates_recorded_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steps.csv").write_text(
        "episode,x,action,reward,propensity\n0,0,1,1,0.5\n0,0,0,1,0.25\n1,0,1,2,0.5\n", encoding="utf-8"
    )
    Path("coin_players.py").write_text(
        "import numpy as np\n\ndef even(observations, actions):\n    return np.full(len(actions), np.log(0.5))\n"
    )
    command = ["evaluate", "steps.csv", "--policy", "even=coin_players:even"]
    assert main([*command, "--episodes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["policies"][0]["estimates"]
    assert set(found) == set(METHODS)
    assert found["PDIS"] == approx((1 + 2 + 2) / 2)
    assert main([*command, "--episodes", "--gamma", "0.5", "--estimator", "PDIS", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["policies"][0]["estimates"]
    assert found == {"PDIS": approx((1 + 1 + 2) / 2)}
    assert main([*command, "--gamma", "0.5"]) == 2
    assert capsys.readouterr().err == "podium: --gamma needs --episodes\n\nHint: see podium evaluate --help.\n"
    assert main([*command, "--estimator", "TIS"]) == 2
    assert "Hint: use podium.episodes.evaluate, or podium evaluate --episodes" in capsys.readouterr().err
