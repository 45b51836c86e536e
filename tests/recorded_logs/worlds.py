"""Bandits, continuous actions and recorded episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import podium
from recorded_logs.case import Case, recorded
from recorded_logs.files import folder, write_csv
from recorded_logs.methods import Ridge
from recorded_logs.rows import Steering, coin_episodes, doses, drives


def bandit_case(name: str, seed: int) -> Case:
    """An example of the paper: two actions in each state, and policies with prescribed differences."""
    bandit = podium.bandits.example(name)
    rng = np.random.default_rng(seed)
    log = bandit.draw_log(bandit.random_policy(rng), per_state=2, rng=rng)
    pairs = [bandit.pair(alpha, rng) for alpha in (0.05, 0.2)]
    policies = {
        f"{side} {n}": bandit.on_rows(p, log)
        for n, pair in enumerate(pairs)
        for side, p in zip("ab", pair, strict=True)
    }
    more: dict[str, dict[str, Any]] = {
        "evaluate normalized": {"normalize": "states"},
        "compare normalized": {"normalize": "states", "estimator": "LDE", "verdicts": "paired t"},
        "states normalized": {"normalize": "states"},
    }
    return Case(log, policies, more=more)


@recorded
def bandit_1_1() -> Case:
    return bandit_case("1.1", 100)


@recorded
def bandit_1_2() -> Case:
    return bandit_case("1.2", 101)


@recorded
def labelled_data() -> Case:
    rng = np.random.default_rng(102)
    features = rng.normal(size=(300, 3)).round(6)
    labels = np.array(["cat", "dog", "owl"])[(features @ rng.normal(size=(3, 3))).argmax(axis=1)]
    rules = {
        "truth": labels,
        "first": lambda x: np.where(x[:, 0] > 0, "cat", "dog"),
        "second": lambda x: np.where(x[:, 1] > 0, "owl", "cat"),
    }
    bandit = podium.bandits.from_classification(features, labels, rules, train=0)
    return Case(bandit.draw_log(0), bandit.policies, gates=("truth > first",))


@recorded
def labelled_data_with_trained_classifiers() -> Case:
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(103)
    features = rng.normal(size=(400, 4)).round(6)
    labels = (features @ rng.normal(size=(4, 5))).argmax(axis=1)
    models = {"bayes": GaussianNB(), "tree": DecisionTreeClassifier(max_depth=4, random_state=0)}
    bandit = podium.bandits.from_classification(features, labels, {**models, "one": np.ones(400, dtype=int)})
    return Case(bandit.draw_log(1), bandit.policies)


def dose_policies() -> dict[str, Any]:
    return {
        "follow": lambda states: states[:, 0],
        "half": lambda states: 0.5 * states[:, 0],
        "zero": 0.0,
        "now": "logged",
    }


def dose_questions() -> dict[str, dict[str, Any]]:
    more: dict[str, dict[str, Any]] = {
        "evaluate all": {"estimators": "all", "baseline": "linear"},
        "evaluate q": {"baseline": lambda states, actions: 1 - (actions - states[:, 0]) ** 2},
        "evaluate model": {"baseline": Ridge(), "estimators": ["DRE", "SNDR", "DirectModel"]},
        "compare LDE": {"estimator": "LDE"},
        "compare linear": {"baseline": "linear", "verdicts": "paired t", "bootstrap": 200},
        "compare bootstrap t": {"estimator": "SNIPS", "verdicts": "bootstrap t"},
    }
    more |= {f"evaluate {k}": {"kernel": k, "bandwidth": 0.6} for k in ("gaussian", "triangular", "cosine")}
    return more


@recorded
def continuous_actions() -> Case:
    log = podium.continuous.ContinuousLog(**doses(110, 300))
    return Case(log, dose_policies(), asked=("compare", "evaluate"), more=dose_questions(), home=podium.continuous)


@recorded
def continuous_actions_no_densities() -> Case:
    data = doses(111, 200)
    log = podium.continuous.ContinuousLog(data["states"], data["actions"], data["rewards"], units=np.arange(200) // 3)
    policies = {name: policy for name, policy in dose_policies().items() if policy != "logged"}
    return Case(log, policies, asked=("compare", "evaluate"), home=podium.continuous)


@recorded
def continuous_actions_of_two_coordinates() -> Case:
    log = podium.continuous.ContinuousLog(**doses(112, 300, coordinates=2))
    policies = {
        "follow": lambda states: np.repeat(states[:, :1], 2, axis=1),
        "point": np.array([0.2, -0.1]),
        "array": 0.5 * np.repeat(log.states[:, :1], 2, axis=1),
        "now": "logged",
    }
    more = {"compare paired t": {"verdicts": "paired t", "joint": True}}
    return Case(log, policies, asked=("compare", "evaluate"), more=more, home=podium.continuous)


GAINS = {"weak": 0.3, "middle": 0.8, "strong": 1.4}


@recorded
def episodes_by_proxy() -> Case:
    policies = {name: Steering(gain).predict for name, gain in GAINS.items()}
    more: dict[str, dict[str, Any]] = {
        "compare paired t": {"verdicts": "paired t", "estimator": "LDE", "bootstrap": 200},
        "compare exponent": {"coordinates": "exponent"},
        "compare horizon": {"horizon": 4, "gamma": 0.9},
        "evaluate rows": {"estimators": ["LDE", "DRE", "IPS", "DiM", "SNIPS"]},
    }
    options = {"bounds": (-4, 4)}
    episodes = drives(120, GAINS, 40, 12)
    return Case(episodes, policies, options, asked=("compare", "evaluate"), more=more, home=podium.episodes)


@recorded
def episodes_from_a_file() -> Case:
    path = folder() / "steps.csv"
    steps = [
        {"episode": n, "step": t, "x": s[0], "y": s[1], "action": a[0], "reward": r, "behavior": episode.behavior}
        for n, episode in enumerate(drives(123, GAINS, 20, 6))
        for t, (s, a, r) in enumerate(zip(episode.observations, episode.actions, episode.rewards, strict=True))
    ]
    write_csv(path, steps)
    policies = {name: Steering(gain).predict for name, gain in GAINS.items()}
    episodes = podium.episodes.read(path)
    return Case(episodes, policies, {"bounds": (-4, 4)}, ("compare", "evaluate"), home=podium.episodes)


@recorded
def episodes_of_one_known_policy() -> Case:
    data = [
        {"observations": e.observations, "actions": e.actions, "rewards": e.rewards, "terminated": n % 2 == 0}
        for n, e in enumerate(drives(124, {"middle": 0.8}, 25, 6))
    ]
    policies = {name: Steering(gain) for name, gain in GAINS.items()}
    more = {"compare SNIPS": {"estimator": "SNIPS", "verdicts": "paired t"}, "evaluate all": {"estimators": "all"}}
    return Case(data, policies, {"behavior": "middle"}, ("compare", "evaluate"), more, home=podium.episodes)


@recorded
def episodes_with_densities() -> Case:
    policies = {name: Steering(gain) for name, gain in GAINS.items()}
    more: dict[str, dict[str, Any]] = {
        f"compare {method}": {"estimator": method, "verdicts": "paired t"} for method in ("TIS", "PDIS", "WIS", "PDWIS")
    }
    more |= {"evaluate discounted": {"gamma": 0.9, "horizon": 5, "estimators": ["TIS", "PDIS", "WIS", "PDWIS", "IPS"]}}
    more |= {"compare proxy": {"probabilities": "proxy", "bounds": (-4, 4)}}
    episodes = drives(121, GAINS, 50, 8)
    return Case(episodes, {**policies, "now": "logged"}, asked=("compare", "evaluate"), more=more, home=podium.episodes)


@recorded
def episodes_of_choices() -> Case:
    def chance(slope: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        def log_prob(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
            yes = 1 / (1 + np.exp(-slope * observations[:, 0]))
            return np.log(np.where(actions == 1, yes, 1 - yes))

        return log_prob

    policies = {"turn": chance(1.5), "against": chance(-1.0), "coin": chance(0.0)}
    more = {"compare PDIS": {"estimator": "PDIS", "verdicts": "paired t"}}
    episodes = coin_episodes(122, 60, 5)
    return Case(episodes, policies, asked=("compare", "evaluate"), more=more, home=podium.episodes)
