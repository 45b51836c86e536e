"""Fixed shares: the whole behavior policy from propensities, a SPEC, a mapping or a table with one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fixed_shares import decide

import podium
from podium.command.cli import main
from podium.data.facts import Fact

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
LABELS = np.array(list("abcd"), dtype=object)
SPEC = "shares:a=.4,b=.3,c=.2,d=.1"
ENDS = {"always a": "constant:a", "always d": "constant:d"}
ALWAYS = {f"always {x}": f"constant:{x}" for x in "abcd"}


def drawn(rows: int = 300, seed: int = 0, effect: float = -0.4) -> dict[str, Any]:
    """A logger with fixed shares that takes the better actions more often; the columns of its log."""
    rng = np.random.default_rng([30, seed])
    codes = rng.choice(4, rows, p=SHARES)
    rewards = effect * codes + rng.normal(size=rows)
    return {"age": rng.integers(0, 9, rows), "action": LABELS[codes], "reward": rewards, "propensity": SHARES[codes]}


def without(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: c for name, c in columns.items() if name != "propensity"}


def refused(match: str, action: Any) -> None:
    with pytest.raises(podium.PodiumError) as error:
        action()
    assert match in str(error.value)


def test_constant_propensities_show_the_whole_behavior_policy() -> None:
    log = podium.Log.from_columns(drawn())
    assert (log.knows, log.behavior[7].tolist()) == ("full", SHARES.tolist())
    result = podium.compare(log, ALWAYS)
    assert result.settings.notes[0] == (
        "The behavior policy is known for all actions: it takes each with a fixed probability ('a' 0.4, 'b' 0.3, "
        "'c' 0.2, 'd' 0.1)"
    )


def test_a_preferred_arm_that_is_better_silences_nothing() -> None:
    """T_p was above 3 on such logs, and silenced every pair."""
    log = podium.Log.from_columns(drawn())
    for verdicts in (None, "gated"):
        result = podium.compare(log, ALWAYS, verdicts=verdicts)
        judgement = result.basis.judgement
        assert (judgement.t_p, judgement.alarm, set(judgement.silent)) == (0.0, False, {""})
        assert judgement.logger.preference > 3
        assert result.pair("always a", "always d").verdict == "better"
        assert podium.diagnose(log, ALWAYS, verdicts=verdicts).t_p == 0
    assert {p.path for p in result.pairs} == {"DRE"}  # LDE is still not trusted there


def test_policies_known_in_part_are_silent_with_a_remedy() -> None:
    columns = drawn()
    for name, favorite in (("one", "a"), ("two", "d")):
        columns[f"pi_{name}"] = np.where(columns["action"] == favorite, 0.7, 0.1)
    reasons = {p.reasons[0] for p in podium.compare(podium.Log.from_columns(columns)).pairs}
    assert {r.code for r in reasons} == {"uneven shares"}
    assert "Remedy: give every policy in full" in next(iter(reasons))


@pytest.mark.parametrize(
    ("p", "shares"),
    [
        ([0.333, 0.333, 0.333], [1 / 3, 1 / 3, 1 / 3]),  # rounded
        ([0.4, 0.35, 0.25], [0.4, 0.35, 0.25]),
        ([0.4, 0.3, 0.2], None),  # something is left, and nobody knows for whom
        ([0.5, 0.5, 0.5], None),
    ],
)
def test_shares_must_sum_to_1(p: list[float], shares: list[float] | None) -> None:
    codes = np.arange(60) % 3
    log = podium.Log(np.zeros(60), codes, np.zeros(60), propensities=np.array(p)[codes])
    if shares is None:
        assert log.knows == "logged"
        return
    assert log.behavior[0] == pytest.approx(shares, abs=1e-12)
    assert log.propensities == pytest.approx(log.behavior[np.arange(60), codes], abs=1e-12)


def test_propensities_that_vary_show_nothing() -> None:
    columns = drawn()
    columns["propensity"] = np.where(np.arange(300) == 250, 0.39, columns["propensity"])
    assert podium.Log.from_columns(columns).knows == "logged"
    few = podium.Log(np.zeros(4), [0, 1, 2, 2], np.zeros(4), propensities=[0.5, 0.3, 0.2, 0.2])
    assert few.knows == "logged"  # one row of an action is no evidence that its probability never changes


def test_an_action_without_rows_has_the_rest_or_nothing() -> None:
    codes = np.repeat([0, 1, 2], [40, 30, 20])
    log = podium.Log(np.zeros(90), codes, np.zeros(90), propensities=SHARES[codes])
    assert log.knows == "logged"
    assert log.with_action_space([0, 1, 2, 3]).behavior[0] == pytest.approx(SHARES)
    given = podium.Log(np.zeros(90), codes, np.zeros(90), propensities=SHARES[codes], action_space=[0, 1, 2, 3])
    assert given.behavior[0] == pytest.approx(SHARES)
    assert log.with_action_space([0, 1, 2, 3, 4]).knows == "logged"  # two of them: the rest cannot be divided
    whole = podium.Log(np.zeros(90), codes, np.zeros(90), propensities=np.array([0.4, 0.35, 0.25])[codes])
    assert whole.with_action_space([0, 1, 2, 3]).behavior[0] == pytest.approx([0.4, 0.35, 0.25, 0.0])


# --- declared shares -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behavior",
    [
        SPEC,
        "shares: d = 1/10, a=2/5,b=0.3, c=.2",
        'shares:{"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}',
        {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1},
        podium.Policy({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, kind="shares"),
        pd.DataFrame({"b": [0.3], "a": [0.4], "d": [0.1], "c": [0.2]}),
    ],
)
def test_every_form_of_shares(behavior: Any) -> None:
    log = podium.Log.from_columns(without(drawn())).with_behavior(behavior)
    assert (log.knows, log.shares) == ("full", True)
    assert log.behavior[0] == pytest.approx(SHARES)
    assert podium.Log.from_columns(drawn()).with_behavior(behavior).behavior[0] == pytest.approx(SHARES)


def test_names_with_commas_and_equals_signs() -> None:
    log = podium.Log(np.zeros(4), ["x,y", "u=v", "x,y", "u=v"], np.zeros(4))
    for spec in ('shares:"x,y"=.25,u=v=.75', 'shares:{"x,y": 0.25, "u=v": 0.75}'):
        assert log.with_behavior(spec).propensities.tolist() == [0.25, 0.75, 0.25, 0.75]


def test_shares_of_numbers_are_not_taken_for_states() -> None:
    log = podium.Log([0, 1, 0, 1], [0, 1, 1, 0], np.zeros(4))
    assert log.with_behavior({0: 0.25, 1: 0.75}).propensities.tolist() == [0.25, 0.75, 0.75, 0.25]
    assert log.with_behavior("shares:0=.25,1=.75").propensities.tolist() == [0.25, 0.75, 0.75, 0.25]
    by_state = podium.evaluate(log, {"x": {0: 1, 1: 0}, "y": {0: 0.5, 1: 0.5}}, ["DiM"])
    assert by_state.values["x"] == by_state.values["y"] == {"DiM": 0.0}
    assert not log.with_behavior({0: {0: 0.5, 1: 0.5}, 1: {0: 0.5, 1: 0.5}}).shares


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("shares:a=.4,b=.3,c=.2", "policy 'behavior': the shares sum to 0.9, not to 1"),
        ("shares:a=.4,b=.3,c=.3", "the behavior policy gives no probability to 'd', which the log holds"),
        ("shares:a=.4,b=.3,c=.3,d=0", "the behavior policy gives no probability to 'd', which the log holds"),
        ("shares:a=.4,b=.3,c=.2,a=.1", "names the action 'a' twice"),
        ("shares:a=.4,b=.3,c=.2,d", "'d' is not ACTION=SHARE"),
        ("shares:a=1.2,b=-.2", "the share of 'a' must be a number from 0 to 1; it is 1.2"),
        ("shares:a=nan,b=1", "the share of 'a' must be a number from 0 to 1; it is nan"),
        ("shares:a=1/0,b=1", "'1/0' is not a number"),
        ('shares:{"a": .4}', "is not valid JSON"),
        ('shares:{"a": "b"}', "the share of 'a' must be a number from 0 to 1; it is 'b'"),
        ({"a": 0.4, "b": 0.4}, "policy 'behavior': the shares sum to 0.8, not to 1"),
        (pd.DataFrame({"a": [0.4], "b": [0.4]}), "policy 'behavior': the shares sum to 0.8, not to 1"),
    ],
)
def test_shares_that_are_refused(behavior: Any, message: str) -> None:
    refused(message, lambda: podium.Log.from_columns(without(drawn())).with_behavior(behavior))


def test_shares_that_contradict_the_propensities_are_refused() -> None:
    log = podium.Log.from_columns(drawn())
    refused(
        "column 'propensity' must agree with the shares", lambda: log.with_behavior("shares:a=.25,b=.25,c=.25,d=.25")
    )
    assert log.with_behavior("shares:a=.4,b=.3,c=.2,d=.1").knows == "full"


def test_shares_as_a_candidate() -> None:
    log = podium.Log.from_columns(drawn())
    found = podium.evaluate(log, {"now": "logged", "same": SPEC, "half": "shares:a=1/2,d=1/2"}, ["IPS"])
    assert found.values["now"]["IPS"] == pytest.approx(float(np.mean(log.rewards)))
    assert found.values["now"] == found.values["same"] != found.values["half"]


def test_the_command_takes_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    pd.DataFrame(without(drawn())).to_csv(path, index=False)
    (tmp_path / "shares.csv").write_text("a,b,c,d\n.4,.3,.2,.1\n")
    policies = ["--policy", "a=constant:a", "--policy", "half=shares:a=.5,d=.5"]
    answers = []
    for behavior in (SPEC, str(tmp_path / "shares.csv")):
        assert main(["compare", str(path), *policies, "--behavior", behavior, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert answers[0]["log"]["propensities"] == "full"
    assert main(["compare", str(path), *policies, "--behavior", "shares:a=.4,b=.6"]) == 2
    assert "gives no probability to 'c', 'd'" in capsys.readouterr().err


# --- propensity and propensity:<action> ------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["propensity", "p"])
def test_propensities_and_the_whole_behavior_policy_together(header: str) -> None:
    rng = np.random.default_rng(3)
    behavior = rng.dirichlet([2.0, 2.0], 40)
    codes = (rng.random(40) > behavior[:, 0]).astype(int)
    columns: dict[str, Any] = {
        "age": rng.integers(0, 5, 40), "action": LABELS[codes], "reward": rng.random(40),
        header: behavior[np.arange(40), codes], "propensity:a": behavior[:, 0], "propensity:b": behavior[:, 1],
    }  # fmt: skip
    named = {} if header == "propensity" else {"propensity": header}
    log = podium.Log.from_columns(columns, **named)
    assert (log.knows, list(log.state_columns)) == ("full", ["age"])
    assert log.behavior == pytest.approx(behavior)
    columns[header] = np.where(np.arange(40) == 7, 0.5, columns[header])
    refused(
        f"column '{header}' must agree with the behaviour policy within 1e-6; row 8 holds 0.5 (1 row)",
        lambda: podium.Log.from_columns(columns, **named),
    )


# --- declarations that are false -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behavior", ["uniform", "shares:a=.1,b=.2,c=.3,d=.4", pd.DataFrame([[0.25] * 4], columns=list("abcd"))]
)
@pytest.mark.parametrize("verdicts", [None, "gated"])
def test_a_false_declaration_is_not_believed(behavior: Any, verdicts: str | None) -> None:
    log = podium.Log.from_columns(without(drawn()))
    result = podium.compare(log, ENDS, behavior=behavior, verdicts=verdicts)
    assert {(p.verdict, p.p_better, p.p_adjusted, p.reasons[0].code) for p in result.pairs} == {
        ("cannot tell", 0.5, 1.0, "propensities not believed")
    }
    assert result.warnings[0].code == "false propensities"
    assert result.warnings[0].fields["chance"] < 1e-4
    for other in (podium.evaluate(log, ENDS, behavior=behavior), podium.diagnose(log, ENDS, behavior=behavior)):
        assert "false propensities" in [w.code for w in other.warnings if isinstance(w, Fact)]


def test_methods_without_propensities_may_still_claim() -> None:
    log = podium.Log.from_columns(without(drawn()))
    options = {"estimator": "LDE", "duplicates": "all", "verdicts": "paired t", "behavior": "uniform"}
    assert podium.compare(log, ENDS, **options).pair("always a", "always d").verdict == "better"
    options["estimator"] = "DRE"
    assert podium.compare(log, ENDS, **options).pairs[0].reasons[0].code == "propensities not believed"


def test_false_columns_and_false_propensities_are_not_believed() -> None:
    columns = drawn(rows=600)
    rng = np.random.default_rng(4)
    noise = rng.uniform(0.9, 1.1, (600, 4))
    matrix = noise / noise.sum(axis=1, keepdims=True)
    full = {**without(columns), **{f"propensity:{x}": matrix[:, k] for k, x in enumerate("abcd")}}
    assert podium.compare(podium.Log.from_columns(full), ENDS).warnings[0].code == "false propensities"
    small = {**columns, "propensity": 0.5 * columns["propensity"] * rng.uniform(0.9, 1.1, 600)}
    found = podium.compare(podium.Log.from_columns(small), ENDS)
    assert found.warnings[0].code == "propensities too small"
    assert {p.reasons[0].code for p in found.pairs} == {"propensities not believed"}


@pytest.mark.slow
def test_fixed_shares_decide_pairs_and_claim_few_ties() -> None:
    for pairs, claims, wrong in decide("better", logs=10).values():
        assert (pairs, wrong) == (60, 0)
        assert claims >= 6
    for pairs, claims, _ in decide("as good as the others", logs=10).values():
        assert claims <= 0.05 * pairs
