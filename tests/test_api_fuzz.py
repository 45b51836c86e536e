"""Every public callable with every kind of wrong argument: a result, or a `PodiumError` that explains.

The callables are found by introspection, so that a new one fails here until it has an example of a valid call.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import podium
from podium import PodiumError, bandits, continuous, episodes, plots, theory


class Odd:
    """Cannot show itself, be compared, or say whether it is true."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    __hash__ = None  # type: ignore[assignment]


WRONG: dict[str, Any] = {
    "None": None, "2.5": 2.5, "nan": math.nan, "inf": math.inf, "-1": -1, "0": 0, "'x'": "x", "''": "", "b''": b"",
    "[]": [], "{}": {}, "object": object(), "class": dict, "lambda": lambda: 0, "lambda of three": lambda a, b, c: 0,
    "empty array": np.array([]), "10**30": 10**30, "10**5000": 10**5000, "True": True, "set": {1, 2}, "odd": Odd(),
    "[[]]": [[]], "[None]": [None], "3-d": np.zeros((1, 2, 2)), "complex": 1j, "texts": np.array(["a", "b"]),
    "{1: 2}": {1: 2}, "generator": iter([1, 2]), "NaT": np.datetime64("NaT"), "void": np.zeros(2, dtype="i4,f8"),
}  # fmt: skip


def public(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The callables of a module, a class or a function, by their paths."""
    if isinstance(thing, ModuleType):
        for name in thing.__all__:
            yield from public(getattr(thing, name), f"{path}.{name}" if path else name)
    elif inspect.isclass(thing):
        yield path, thing
        for name in dir(thing):
            member = inspect.getattr_static(thing, name)
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod)):
                yield f"{path}.{name}", member
    elif callable(thing):
        yield path, thing


FOUND = dict(public(podium, ""))

# --- examples of valid calls ---------------------------------------------------------------------------------------


@cache
def things() -> SimpleNamespace:
    """One small object of every public kind."""
    states, actions = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], ["a", "b", "a", "b", "a", "b"]
    rewards, half = [1.0, 0.1, 0.9, 0.2, 0.8, 0.4], [0.5] * 6
    columns = {
        "x": states, "action": actions, "reward": rewards, "propensity": half, "who": [1, 1, 2, 2, 3, 3],
        "pi_a": [0.9, 0.1] * 3, "pi_b": half,
    }  # fmt: skip
    log = podium.Log.from_columns(columns, state=["x"])
    policies = {"a": "constant:a", "b": "constant:b"}
    grid = bandits.Bandit(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    uniform = np.full((2, 2), 0.5)
    points = continuous.ContinuousLog(states, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], rewards, densities=[1.0] * 6)
    steps = [episodes.Episode([[0.0], [0.5]], [0.1, 0.2], [1.0, float(k)], behavior="go") for k in range(3)]
    acts = {"go": lambda s: 0.1 * s, "stay": lambda s: 0 * s}
    labels = np.array([0, 1, 0, 1])
    return SimpleNamespace(
        columns=columns, doses={"x": states, "action": half, "reward": rewards, "density": half},
        log=log, policies=policies, grid=grid, uniform=uniform, points=points, steps=steps, acts=acts,
        episodes=episodes.EpisodeLog(steps, bounds=(-1.0, 1.0)), rng=np.random.default_rng(0),
        comparison=podium.compare(log, policies, bootstrap=10), estimates=podium.evaluate(log, policies),
        states=podium.compare_states(log, policies), plan=podium.plan(log, policies, difference=0.1),
        diagnosis=podium.diagnose(log, policies), spectrum=podium.spectrum(log, policies, baselines=["mean"]),
        propensities=podium.estimate_propensities(log, "frequencies", folds=2),
        labelled=bandits.LabelledBandit(np.zeros((4, 1)), labels, np.array([0, 1]), ("p",), labels[None]),
        bound=theory.reward_range_of(rewards), check=theory.check_assumption(log),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with a log and a file of steps."""
    path = tmp_path_factory.mktemp("files")
    lines = ["x,action,reward,propensity,pi_a", "0,a,1,0.5,0.9", "0,b,0,0.5,0.1", "1,a,1,0.5,0.9"]
    (path / "log.csv").write_text("\n".join(lines) + "\n")
    (path / "doses.csv").write_text("x,action,reward,density\n0,0.1,1,0.5\n1,0.2,0,0.5\n2,0.4,1,0.5\n")
    (path / "steps.csv").write_text("episode,step,s,action,reward\n0,0,0.1,0.2,1\n0,1,0.2,0.2,0\n1,0,0.3,0.1,1\n")
    return path


def fields(result: Any) -> dict[str, Any]:
    """The arguments that make a dataclass again."""
    return {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.init}


def examples(folder: Any) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Path -> a callable, bound to an object where it is a method, and arguments that it accepts."""
    t = things()
    both = {"log": t.log, "policies": t.policies}
    figure = {"result": t.comparison}
    made: dict[str, Any] = {
        "Comparison": t.comparison, "Estimates": t.estimates, "StateComparison": t.states, "Plan": t.plan,
        "Diagnosis": t.diagnosis, "Spectrum": t.spectrum, "PropensityEstimate": t.propensities, "Log": t.log,
        "Estimator": podium.LDE, "estimators.Estimator": podium.LDE, "Pair": t.comparison.pairs[0],
        "Interval": t.comparison.pairs[0].interval, "Policy": podium.Policy("uniform"),
        "Loggers": podium.Loggers({"a": "uniform"}), "Suggestion": podium.suggest(t.log),
        "Learned": podium.Learned(lambda s, a, r, p: "uniform"),
        "bandits.Bandit": t.grid, "bandits.LabelledBandit": t.labelled,
        "continuous.ContinuousLog": t.points, "episodes.Episode": t.steps[0], "episodes.EpisodeLog": t.episodes,
        "theory.AssumptionCheck": t.check,
        "theory.Bound": theory.state_bound(0.1, 0.1, actions=2, per_state=1, reward_range=(0, 1)),
    }  # fmt: skip
    calls: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        name: (type(thing), fields(thing)) for name, thing in made.items()
    }
    arguments: dict[str, dict[str, Any]] = {
        "compare": both | dict.fromkeys(("estimator", "verdicts", "unit", "behavior", "duplicates")) | {"bootstrap": 0},
        "compare_states": both | {"estimator": "LDE", "true_values": [[1, 2]] * 3, "delta": 0.0, "seed": 0},
        "evaluate": both | {"estimators": ["LDE"], "seed": 0, "unit": None, "behavior": None, "actions": ()},
        "diagnose": both | {"seed": 0, "level": 0.9},
        "plan": both | {"difference": 0.1, "seed": 0},
        "suggest": {"log": t.log, "depth": 1, "against": None, "seed": 0, "since": None},
        "spectrum": both | {"baselines": ["mean"], "estimators": ["LDE", "IPS"], "level": 0.9},
        "estimate_propensities": {"log": t.log, "model": "frequencies", "folds": 2, "unit": None, "seed": 0},
        "score": {"true_values": [1, 2], "estimated_values": [1, 3], "ties": "half"},
        "kendall": {"true_values": [1, 2], "estimated_values": [1, 3]},
        "spearman": {"true_values": [1, 2], "estimated_values": [1, 3]},
        "regret": {"true_values": [1, 2], "estimated_values": [1, 3], "k": 1},
        "read_log": {"path": folder / "log.csv"},
        "load": {"path": t.comparison.save(folder / "saved.json")},
        "scan_log": {"source": folder / "log.csv", "engine": "memory"},
        "bandits.example": {"name": "1.1"},
        "bandits.from_classification": {
            "X": np.arange(8.0)[:, None], "y": [0, 1] * 4, "policies": {"p": lambda x: np.zeros(len(x), int)},
        },
        **{f"bandits.{name}": {"s": 0.5, "a": 0.5} for name in ("reward_1_1", "reward_1_2", "reward_1_2_text")},
        "continuous.read_log": {"path": folder / "doses.csv"},
        "continuous.compare": {"log": t.points, "policies": {"low": 0.2, "high": 0.5}},
        "continuous.evaluate": {"log": t.points, "policies": {"low": 0.2}, "estimators": ["IPS"]},
        "episodes.compare": {
            "episodes": t.steps, "policies": t.acts, "behavior": None, "bounds": (-1.0, 1.0), "horizon": 2,
        },
        "episodes.evaluate": {"episodes": t.steps, "policies": t.acts, "bounds": (-1.0, 1.0), "estimators": ["LDE"]},
        "episodes.log_proxy": {
            "policy_actions": [[[0.0]]], "logged_actions": [[[0.5]]], "low": -1.0, "high": 1.0, "lengths": [1],
        },
        "episodes.read": {"path": folder / "steps.csv"},
        "episodes.record": {"env": Coin(), "policy": lambda s: 0.1, "episodes": 1, "horizon": 2, "seed": 0},
        "estimators.clipped": {"cap": 10.0}, "estimators.shrunk": {"strength": 1.0},
        "estimators.subgaussian": {"share": 0.1}, "estimators.switch": {"threshold": 2.0},
        "estimators.find_estimator": {"name": "LDE"}, "estimators.find_estimators": {"names": ["LDE"]},
        "theory.check_assumption": {"log": t.log},
        "theory.comparison_bound": {"difference": 0.1, "actions": 3, "per_state": 1, "reward_range": (0.0, 1.0)},
        "theory.expected_lde": {"value": 0.5, "baseline": 0.2, "actions": 3, "observed": 1},
        "theory.reward_radius": {"reward_range": (0.0, 1.0), "baseline": 0.5},
        "theory.reward_range_of": {"rewards": [0.0, 1.0]},
        "theory.state_bound": {
            "delta": 0.1, "difference": 0.2, "actions": 3, "per_state": 1, "reward_range": (0.0, 1.0),
        },
        **{f"plots.{name}": figure | {"style": "light"} for name in plots.__all__},
        "plots.draw": figure | {"kind": "ranking"},
    }  # fmt: skip
    calls |= {path: (FOUND[path], given) for path, given in arguments.items() if path in FOUND}
    methods: dict[str, dict[str, Any]] = {
        "Comparison.gate": {"condition": "a > b"}, "Comparison.pair": {"a": "a", "b": "b"},
        "Comparison.save": {"path": folder / "s.json", "overwrite": False},
        "Comparison.to_markdown": {"gate": None, "verbose": False},
        "Comparison.to_frame": {"table": "pairs", "backend": "pandas"},
        "Comparison.plot": {"kind": "pairs"}, "Comparison.report": {"path": folder / "r.html", "difference": 0.1},
        "Estimates.interval": {"policy": "a", "method": "LDE", "level": 0.9},
        "Spectrum.agreement": {"a": "a", "b": "b"}, "Spectrum.place": {"estimator": "LDE", "baseline": "mean"},
        "Spectrum.plot": {"style": "light"},
        "Log.column": {"role": "action"}, "Log.header": {"role": "action"}, "Log.take": {"rows": slice(0, 3)},
        "Log.from_columns": {"columns": t.columns, "state": ["x"]}, "Log.from_frame": {"frame": t.log.to_frame()},
        "Log.with_action_space": {"labels": ["b", "a"]}, "Log.with_actions": {"labels": ["c"]},
        "Log.with_behavior": {"policy": "uniform", "seed": 0}, "Log.with_units": {"column": "who"},
        "bandits.Bandit.draw_actions": {"behavior": t.uniform, "per_state": 1, "rng": t.rng},
        "bandits.Bandit.draw_log": {"behavior": t.uniform, "per_state": 1, "rng": t.rng},
        "bandits.Bandit.from_function": {"reward": lambda s, a: s * a, "states": [0.0, 1.0], "actions": [0.0, 1.0]},
        "bandits.Bandit.greedy": {"actions": [0, 1]},
        "bandits.Bandit.log_of": {"drawn": np.array([[0], [1]]), "behavior": t.uniform},
        "bandits.Bandit.on_rows": {"policy": t.uniform, "log": t.grid.log_of(np.array([[0], [1]]), None)},
        "bandits.Bandit.pair": {"alpha": 0.1, "rng": t.rng},
        "bandits.Bandit.prescribe": {"alpha": 0.1, "first": t.uniform, "second": t.uniform},
        "bandits.Bandit.random_policy": {"rng": t.rng},
        "bandits.Bandit.state_values": {"policy": t.uniform}, "bandits.Bandit.value": {"policy": t.uniform},
        "bandits.LabelledBandit.draw_actions": {"behavior": np.full((4, 2), 0.5), "rng": t.rng},
        "bandits.LabelledBandit.draw_log": {"rng": 0, "behavior": np.full((4, 2), 0.5)},
        "bandits.LabelledBandit.log_of": {"drawn": np.array([0, 0, 1, 1]), "behavior": None},
        "bandits.LabelledBandit.random_behavior": {"rng": t.rng},
        "continuous.ContinuousLog.bandwidths": {"bandwidth": None, "kernel": "cosine"},
        "continuous.ContinuousLog.from_columns": {"columns": t.doses},
        "continuous.ContinuousLog.from_frame": {"frame": t.doses},
        "continuous.ContinuousLog.chosen": {"name": "low", "policy": 0.2},
        "continuous.ContinuousLog.compare": {"policies": {"low": 0.2, "high": 0.5}, "bandwidth": None, "seed": 0},
        "continuous.ContinuousLog.evaluate": {"policies": {"low": 0.2}, "estimators": ["IPS"], "baseline": "mean"},
        "continuous.ContinuousLog.interactions": {"policies": {"low": 0.2}, "kernel": "cosine"},
        "continuous.ContinuousLog.smoothing": {"kernel": "cosine", "bandwidth": None},
        "episodes.EpisodeLog.compare": {"policies": t.acts, "behavior": None, "estimator": "LDE"},
        "episodes.EpisodeLog.evaluate": {"policies": t.acts, "estimators": ["LDE"]},
        "episodes.EpisodeLog.interactions": {"policies": t.acts, "behavior": None},
    }  # fmt: skip
    for path in FOUND:
        owner, _, name = path.rpartition(".")
        if owner not in made or path in INSIDE:
            continue
        if name == "to_frame":
            methods.setdefault(path, {"backend": "pandas"})
        if name == "text":
            methods.setdefault(path, {"width": 80, "bold": False})
        if path in methods or len(inspect.signature(getattr(made[owner], name)).parameters) == 0:
            calls[path] = (getattr(made[owner], name), methods.get(path, {}))
    return calls


class Coin:
    """A Gymnasium environment of one step."""

    observation_space = SimpleNamespace(shape=(1,))
    action_space = SimpleNamespace(low=np.array([-1.0]), high=np.array([1.0]), shape=(1,))

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1), 1.0, True, False, {}


# What takes objects that podium itself makes, and is public for the modules of podium alone.
INSIDE = {
    "PodiumError", "PodiumWarning",
    "Log.in_roles", "Log.read_behavior", "ScannedLog", "episodes.Interactions", "estimators.correction",
    *(path for path in FOUND if path.startswith("ScannedLog.")),
    *(path for path in FOUND if path.rpartition(".")[2] in ("blocks", "tables", "pairs_table")),
    *(f"{owner}.{name}" for owner in ("Estimator", "estimators.Estimator") for name in ("reweight", "reward_units")),
    *(f"episodes.EpisodeLog.{name}" for name in ("add_up", "log_densities", "log_proxies", "padded", "step_densities")),
    "continuous.ContinuousLog.smoothed",
}  # fmt: skip


def outcome(call: Callable[[], Any]) -> str:
    """Nothing if a call gives a result or an error of podium's own; otherwise what it raised."""
    try:
        call()
    except PodiumError as error:
        return "" if error.message.strip() and error.hint.strip() else "an empty message"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def answers(call: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, list[str]]:
    """What is raised that is not podium's own -> the argument and the value that did it."""
    known = inspect.signature(call).parameters.values()
    names = dict.fromkeys(arguments) | {p.name: None for p in known if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    found: dict[str, list[str]] = {}
    for name in names:
        for label, value in WRONG.items():
            given = iter([1, 2]) if label == "generator" else value
            if raised := outcome(partial(call, **{**arguments, name: given})):
                found.setdefault(raised, []).append(f"{name}={label}")
    return found


@pytest.fixture(scope="module")
def calls(folder: Any) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    return examples(folder)


def test_every_public_callable_has_an_example(calls: dict[str, Any]) -> None:
    assert len(FOUND) > 150, "introspection looks at nothing"
    assert sorted(set(FOUND) - set(calls) - INSIDE) == []
    assert sorted(INSIDE - set(FOUND)) == []


@pytest.mark.parametrize("path", sorted(set(FOUND) - INSIDE))
def test_wrong_arguments_are_explained(
    path: str, calls: dict[str, Any], folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)  # a file called 'x' may be written
    call, arguments = calls[path]
    call(**arguments)  # the example is valid
    assert answers(call, arguments) == {}


def test_a_foreign_exception_would_be_seen() -> None:
    def fragile(x: Any) -> Any:
        return x + 1

    assert "TypeError: unsupported operand" in " ".join(answers(fragile, {"x": 1}))
