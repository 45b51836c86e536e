"""Logs that lack something: every command answers, says what is missing, and claims nothing that it cannot know."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import PROCEDURES, logged_only, sample

import podium

Case = tuple[podium.Log, Any]


def small(rows: int, **options: Any) -> Case:
    return sample(rows=rows, count=2, **options)


def partial(**options: Any) -> Case:
    log, policies = sample(**options)
    return log, logged_only(log, policies)


def one_action_per_state() -> Case:
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(30), 3)
    log = podium.Log(states, states % 4, rng.normal(size=90) + states % 4, action_space=(0, 1, 2, 3))
    return log, {"zero": "constant:0", "three": "constant:3", "any": "uniform"}


def deterministic() -> Case:
    log, _ = sample(rows=90)
    return log, {"zero": "constant:0", "two": "constant:2", "mixed": np.arange(90) % 3}


def equal_rewards(reward: float = 0.1, knows: str = "full") -> Case:
    log, policies = sample(rows=60, knows=knows)
    options = {"behavior": log.behavior} if knows == "full" else {"propensities": log.propensities}
    equal = podium.Log(log.states, log.actions, np.full(60, reward), action_space=log.action_space, **options)
    return equal, policies


def never_logged(knows: str = "full") -> Case:
    """Both policies play an action that the log does not hold; a third is the uniform one."""
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, 80)
    full = np.tile([0.5, 0.5, 0.0, 0.0], (80, 1))
    options: dict[str, Any] = {"behavior": full} if knows == "full" else {}
    log = podium.Log(rng.normal(size=80), actions, rng.normal(size=80), action_space=(0, 1, 2, 3), **options)
    return log, {"two": "constant:2", "three": "constant:3", "any": "uniform"}


def same_policies() -> Case:
    log, policies = sample(rows=80)
    return log, {"a": policies["p0"], "b": policies["p0"].copy()}


CASES: dict[str, Callable[[], Case]] = {
    "no propensities": lambda: sample(rows=80, knows="none"),
    "no propensities, texts": lambda: sample(rows=80, knows="none", text=True, distinct=12),
    "p of the logged action": lambda: sample(rows=80, knows="logged"),
    "full behaviour": lambda: sample(rows=80, knows="full"),
    "a logger that seeks reward": lambda: sample(rows=200, seeks=2.0),
    "seeks reward, p of the logged action": lambda: sample(rows=200, seeks=2.0, knows="logged"),
    "policies at logged actions": lambda: partial(rows=80),
    "policies at logged actions, p": lambda: partial(rows=80, knows="logged"),
    "policies at logged actions, no p": lambda: partial(rows=80, knows="none"),
    "one state": lambda: sample(rows=60, distinct=1),
    "one text": lambda: sample(rows=60, distinct=1, text=True),
    "two states": lambda: sample(rows=60, distinct=2),
    "three texts": lambda: sample(rows=60, distinct=3, text=True),
    "one action per state": one_action_per_state,
    "deterministic policies": deterministic,
    "equal rewards": equal_rewards,
    "equal rewards near a million": lambda: equal_rewards(1e6 + 0.1),
    "rewards of 0": lambda: equal_rewards(0.0, "logged"),
    "actions never logged": never_logged,
    "actions never logged, no p": lambda: never_logged("none"),
    "the same policy twice": same_policies,
    "one unit": lambda: sample(rows=60, units=1),
    "two units": lambda: sample(rows=60, units=2),
    **{f"{n} rows": (lambda n=n: small(n)) for n in range(1, 11)},
    **{f"{n} rows, no p": (lambda n=n: small(n, knows="none")) for n in (1, 2, 3, 10)},
    **{f"{n} rows, p": (lambda n=n: small(n, knows="logged", text=True)) for n in (1, 2, 3, 10)},
    **{f"{n} rows, partial": (lambda n=n: partial(rows=n, count=2)) for n in (1, 2, 3, 10)},
}
NOTHING_KNOWN = ["equal rewards", "equal rewards near a million", "rewards of 0", "the same policy twice"]
NOTHING_KNOWN += [name for name in CASES if name.split(" ")[0] in ("1", "2") and "row" in name]


def is_sentence(text: str) -> bool:
    return len(text) > 20 and text[0].isupper() and not text.endswith(".") and "\n" not in text and "nan" not in text


@pytest.mark.parametrize("name", CASES)
def test_compare_answers(name: str) -> None:
    log, policies = CASES[name]()
    for joint in (False, True):
        result = podium.compare(log, policies, joint=joint)
        content = json.dumps(result.to_dict(), allow_nan=False)
        assert "NaN" not in content
        assert "nan" not in repr(result).lower().replace("policynan", "")
        assert is_sentence("A" + result.settings["assumes"])
        assert all(is_sentence(note) for note in result.settings["notes"])
        for pair in result.pairs:
            assert 0 <= pair.p_better <= 1
            assert bool(pair.reasons) == (pair.verdict == "cannot tell")
            assert all(is_sentence(reason) for reason in pair.reasons)
        if all(pair.interval is None for pair in result.pairs):  # nothing is known of any pair, nor of the best
            best = (0.5, 0.0) if name == "the same policy twice" else (None, None)
            assert {(p.p_best, p.regret) for p in result.policies} == {best}
        elif None not in (shares := [p.p_best for p in result.policies]):
            assert sum(shares) == pytest.approx(1)
        if name in NOTHING_KNOWN:
            assert {p.verdict for p in result.pairs} == {"cannot tell"}
            assert {p.p_better for p in result.pairs} == {0.5}
            assert {p.interval for p in result.pairs} == {None}


@pytest.mark.parametrize("procedure", PROCEDURES[1:])
@pytest.mark.parametrize("name", CASES)
def test_every_procedure_answers(name: str, procedure: str) -> None:
    log, policies = CASES[name]()
    if procedure == "doubly robust" and (log.knows == "none" or len(log) < 5 or name == "one unit"):
        with pytest.raises(podium.PodiumError, match="doubly robust verdicts need propensities"):
            podium.compare(log, policies, "LDE", verdicts=procedure)
        return
    result = podium.compare(log, policies, "LDE", verdicts=procedure)
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.settings["verdicts"] == procedure
    for pair in result.pairs:
        assert bool(pair.reasons) == (pair.verdict == "cannot tell")
        assert all(is_sentence(reason) for reason in pair.reasons)
    if name in NOTHING_KNOWN and not name.startswith("2 rows"):
        assert {p.verdict for p in result.pairs} == {"cannot tell"}


@pytest.mark.parametrize("name", CASES)
def test_check_answers(name: str) -> None:
    log, policies = CASES[name]()
    found = podium.diagnose(log, policies)
    json.dumps(found.to_dict(), allow_nan=False)
    assert "nan" not in repr(found).lower()
    for alarm in found.alarms:
        assert alarm.meaning.endswith(".")
        assert alarm.advice.endswith(".")
        assert np.isfinite(alarm.value)
    assert found.assumption.verdict


@pytest.mark.parametrize("name", CASES)
def test_plan_answers(name: str) -> None:
    log, policies = CASES[name]()
    made = podium.plan(log, policies, difference=0.1)
    json.dumps(made.to_dict(), allow_nan=False)
    assert "nan" not in repr(made).lower()
    for pair in made.pairs:
        assert (pair.rows_80 is None) == (pair.rows_90 is None)
        assert pair.rows_80 is None or 1 <= pair.rows_80 <= (pair.rows_90 or 0)
        if name in NOTHING_KNOWN:
            assert (pair.detectable_now, pair.rows_80) == (None, None)
        if pair.rows_80 is None:
            assert any(note.startswith("Some pairs have no plan. ") for note in made.notes)


def notes(name: str) -> list[str]:
    log, policies = CASES[name]()
    return [note.code for note in podium.compare(log, policies).settings.notes]


def test_what_is_missing_is_said() -> None:
    assert notes("no propensities") == ["no propensities"]
    assert notes("p of the logged action") == ["propensities at logged actions"]
    assert notes("policies at logged actions") == ["policies at logged actions", "procedure"]
    assert notes("policies at logged actions, no p") == ["no propensities", "policies at logged actions", "procedure"]


def reasons(name: str) -> set[str]:
    log, policies = CASES[name]()
    return {reason.code for pair in podium.compare(log, policies).pairs for reason in pair.reasons}


def test_why_nothing_is_known_is_said() -> None:
    assert reasons("equal rewards") == {"equal rewards"}
    assert reasons("the same policy twice") == {"same policies"}
    assert reasons("1 rows") == reasons("2 rows") == {"fewer than 3 rows"}
    assert reasons("seeks reward, p of the logged action") == {"logger seeks reward, unknown"}


def test_actions_that_were_never_logged_claim_nothing() -> None:
    """Nothing tells the two apart that play what nobody logged."""
    for name in ("actions never logged", "actions never logged, no p"):
        log, policies = CASES[name]()
        pair = podium.compare(log, policies).pair("two", "three")
        assert (pair.verdict, bool(pair.reasons)) == ("cannot tell", True)
        alarms = podium.diagnose(log, policies).alarms
        assert {a.name for a in alarms} >= {"mass_on_logged"}


def test_ten_rows_claim_little() -> None:
    """Over 40 logs of 10 rows without any difference, at most a few claims."""
    claims = 0
    for seed in range(40):
        log, policies = sample(rows=10, count=2, seed=seed, effect=0.0)
        claims += podium.compare(log, policies).pairs[0].verdict != "cannot tell"
    assert claims <= 3
