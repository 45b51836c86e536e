"""Logs that several policies made: balanced propensities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from samples import sample

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError

approx = pytest.approx


def two_loggers(rows: int = 200, seed: int = 0) -> tuple[podium.Log, dict[str, np.ndarray], np.ndarray]:
    """A log without propensities, its loggers' policies (N, A), and which of them acted."""
    rng = np.random.default_rng(seed)
    who = np.where(rng.random(rows) < 0.25, "new", "old")
    policies = {"old": np.tile([0.8, 0.1, 0.1], (rows, 1)), "new": rng.dirichlet([1, 1, 3], rows)}
    taken = np.array([rng.choice(3, p=policies[w][n]) for n, w in enumerate(who)])
    log = podium.Log(np.arange(rows) % 10, taken, taken + rng.normal(size=rows), action_space=(0, 1, 2))
    return log, policies, who


def test_balanced_propensities_are_the_mixture() -> None:
    log, policies, who = two_loggers()
    share = np.mean(who == "new")
    mixture = share * policies["new"] + (1 - share) * policies["old"]
    found = log.with_behavior(podium.Loggers(policies, by=who))
    assert found.behavior == approx(mixture)
    assert found.propensities == approx(mixture[np.arange(200), log.action_codes])
    assert found.knows == "full"
    own = log.with_behavior(podium.Loggers(policies, by=who, balanced=False))
    expected = np.where((who == "new")[:, None], policies["new"], policies["old"])
    assert own.behavior == approx(expected)


def test_one_logger_is_nothing_new() -> None:
    log, policies = sample(60, 3, 2)
    plain = podium.Log(log.states, log.actions, log.rewards, action_space=(0, 1, 2))
    loggers = podium.Loggers({"only": log.behavior}, by=["only"] * 60)
    mixed = podium.evaluate(plain, policies, "all", behavior=loggers)
    alone = podium.evaluate(plain, policies, "all", behavior=log.behavior)
    assert mixed.values == alone.values
    assert mixed.std_errors == alone.std_errors


def test_balanced_weights_never_vary_more() -> None:
    """The variance over logs of IPS is smaller, and both are unbiased."""
    truth, found = 0.0, {True: [], False: []}
    for seed in range(150):
        log, policies, who = two_loggers(100, seed)
        target = {"new": policies["new"]}
        truth += float((policies["new"] * np.arange(3)).sum(axis=1).mean()) / 150
        for balanced, values in found.items():
            behavior = podium.Loggers(policies, by=who, balanced=balanced)
            values.append(podium.evaluate(log, target, "IPS", behavior=behavior).values["new"]["IPS"])
    for values in found.values():
        assert np.mean(values) == approx(truth, abs=4 * np.std(values) / np.sqrt(150))
    assert np.std(found[True]) < 0.7 * np.std(found[False])


def test_probabilities_of_logged_actions_suffice() -> None:
    log, policies, who = two_loggers()
    logged = {name: p[np.arange(200), log.action_codes] for name, p in policies.items()}
    found = log.with_behavior(podium.Loggers(logged, by=who))
    assert found.knows == "logged"
    assert found.propensities == approx(log.with_behavior(podium.Loggers(policies, by=who)).propensities)


def test_a_column_of_the_log_says_who_acted_and_is_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "age,logger,action,reward\n30,old,a,1\n40,old,b,0\n30,new,a,1\n40,new,a,0.5\n"
    path = tmp_path / "log.csv"
    path.write_text(rows, encoding="utf-8")
    log = podium.read_log(path)
    found = log.with_behavior(podium.Loggers({"old": "uniform", "new": "constant:a"}))
    assert list(found.state_columns) == ["age"]
    assert found.propensities.tolist() == [0.75, 0.25, 0.75, 0.75]
    options = ["--logged-by", "old=uniform", "--logged-by", "new=constant:a", "--policy", "a=constant:a"]
    assert main(["evaluate", str(path), *options, "--estimator", "IPS", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["log"]["propensities"] == "full"
    assert values["policies"][0]["estimates"]["IPS"] == approx((1 + 1 + 0.5) / 0.75 / 4)
    assert main(["evaluate", str(path), "--logger", "logger", "--policy", "a=constant:a"]) == 2
    assert "--logger needs --logged-by NAME=SPEC" in capsys.readouterr().err
    assert main(["evaluate", str(path), *options, "--behavior", "uniform"]) == 2
    assert "--behavior and --logged-by exclude each other" in capsys.readouterr().err


def test_recorded_propensities_must_be_those_of_the_logger() -> None:
    log, policies, who = two_loggers()
    own = np.where(
        who == "new", policies["new"][np.arange(200), log.action_codes], policies["old"][0, log.action_codes]
    )
    right = podium.Log(log.states, log.actions, log.rewards, propensities=own, action_space=(0, 1, 2))
    assert right.with_behavior(podium.Loggers(policies, by=who)).knows == "full"
    wrong = podium.Log(log.states, log.actions, log.rewards, propensities=np.full(200, 0.5), action_space=(0, 1, 2))
    with pytest.raises(PodiumError, match="column 'propensity' must agree with the logger's policy within 1e-6; row 1"):
        wrong.with_behavior(podium.Loggers(policies, by=who))


@pytest.mark.parametrize(
    ("loggers", "message"),
    [
        (podium.Loggers({}), "there are no loggers"),
        (podium.Loggers({"old": "uniform"}, by="who"), "the log has no column 'who' for the logger"),
        (podium.Loggers({"old": "uniform"}, by=["old"]), "the loggers' column has 1 row; the log has 2 rows"),
        (
            podium.Loggers({"old": "uniform"}, by=["old", "new"]),
            "the loggers' column must name a logger; row 2 holds 'new' (1 row)",
        ),
        (
            podium.Loggers({"old": "constant:a"}, by=["old", "old"]),
            "the logger's own probability of its action must be > 0; row 2 holds 0 (1 row)",
        ),
    ],
)
def test_refusals(loggers: podium.Loggers, message: str) -> None:
    log = podium.Log(["x", "y"], ["a", "b"], [1.0, 0.0])
    with pytest.raises(PodiumError) as error:
        log.with_behavior(loggers)
    assert error.value.message == message


def test_the_mixture_is_named() -> None:
    log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "a"], [1.0, 0.0, 1.0, 0.5])
    policies, by = {"old": "uniform", "new": "constant:a"}, ["old", "old", "new", "new"]
    balanced = log.with_behavior(podium.Loggers(policies, by=by))
    assert "the full behaviour policy, balanced over 2 loggers" in repr(balanced)
    assert balanced.to_dict()["propensities"] == "full"
    assert "balanced over 2 loggers" in balanced.to_dict()["logged_by"]
    own = log.with_behavior(podium.Loggers(policies, by=by, balanced=False))
    assert "of 2 loggers each on its own rows" in repr(own)
    assert "logged_by" not in log.to_dict()


def test_a_log_that_stays_where_it_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = ["state,logger,action,reward", *(f"{n % 7},old,{'ab'[n % 2]},{n % 3}" for n in range(20_010))]
    path.write_text("\n".join(lines), encoding="utf-8")
    scanned = podium.scan_log(path, engine="duckdb")
    with pytest.raises(PodiumError, match="a log of several loggers is read into memory"):
        podium.evaluate(scanned, {"a": "constant:a"}, behavior=podium.Loggers({"old": "uniform"}))
    found = podium.evaluate(
        podium.read_log(path), {"a": "constant:a"}, "SNIPS", behavior=podium.Loggers({"old": "uniform"})
    )
    assert found.unavailable == {}
