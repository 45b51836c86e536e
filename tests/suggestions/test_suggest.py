"""A rule worth trying: found on half of the rows, judged on the other half, said in words and in SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.experiments.calibration.suggest import judge
from podium.suggestions.questions import RESERVED, Question, short_between
from podium.suggestions.rule import Leaf, Rule, Split
from podium.suggestions.suggest import halves


def people(n: int = 600, seed: int = 0, **more: Any) -> podium.Log:
    """Calls help people of 60 and more who missed something; all others answer messages better."""
    rng = np.random.default_rng(seed)
    states = {"age": rng.integers(20, 90, n), "missed": rng.integers(0, 4, n)}
    states["city"] = rng.choice(["oslo", "rome"], n).astype(object)
    action = rng.choice(["call", "sms"], n)
    called = np.where((states["age"] >= 60) & (states["missed"] >= 1), 1.5, -1.0)
    reward = np.where(action == "call", called, 0.0) + rng.normal(size=n)
    more = {"propensities": np.full(n, 0.5), **more}
    return podium.Log(states, action, reward, **more)


def test_a_rule_is_found_and_judged_on_rows_that_it_never_saw() -> None:
    log = people()
    found = podium.suggest(log)
    assert found.supported
    assert found.sentence is not None
    assert found.sentence.startswith("if age is at least ")
    assert found.fitted_rows + found.judged_rows == len(log)
    assert found.comparison is not None
    assert len(found.comparison.log) == found.judged_rows
    assert {p.name for p in found.comparison.policies} == {"suggested", "always sms", "always call"}
    assert found.answer.code == "rule supported"  # type: ignore[attr-defined]


def test_the_rewards_of_the_judging_rows_do_not_influence_the_rule() -> None:
    log = people()
    _, held = halves(log, 0)
    rewards = log.rewards.copy()
    rewards[held] = np.random.default_rng(5).normal(size=len(held))
    other = podium.Log(log.states, log.actions, rewards, propensities=log.propensities)
    assert podium.suggest(other).sql == podium.suggest(log).sql
    assert not podium.suggest(other).supported


def test_the_same_log_gives_the_same_answer() -> None:
    assert podium.suggest(people()).to_dict() == podium.suggest(people()).to_dict()


def test_sql_chooses_what_the_rule_chooses() -> None:
    log = people()
    found = podium.suggest(log)
    assert found.rule is not None
    chosen = [log.action_space[a] for a in found.rule.actions(log.state_columns, len(log))]
    policies = {"sql": f"sql:{found.sql}", "rule": chosen, "sms": "constant:sms"}
    result = podium.compare(log, policies)
    by_sql, by_rule, _ = (p.logged.tolist() for p in result.basis.policies)
    assert by_sql == by_rule


def test_units_stay_whole() -> None:
    log = people(units=np.arange(600) // 3)
    first, second = halves(log, 0)
    assert log.units is not None
    assert not set(log.units[first]) & set(log.units[second])
    assert abs(len(first) - 300) <= 3


def test_without_an_effect_there_is_no_rule() -> None:
    log = people()
    noise = podium.Log(log.states, log.actions, np.random.default_rng(3).normal(size=600), log.propensities)
    found = podium.suggest(noise)
    assert not found.supported
    assert str(found.answer).startswith("None that this log can support")


def test_few_rows() -> None:
    found = podium.suggest(people(80))
    assert str(found.answer) == (
        "None that this log can support: it has 80 rows, and a rule needs at least 100 rows, half of them to find it "
        "and half to judge it"
    )
    assert found.to_dict()["rule"] is None
    assert podium.suggest(people(200, units=np.arange(200) // 4)).answer.startswith(
        "None that this log can support: it has 50 units, and a rule needs at least 100 units"
    )


def test_costs_count() -> None:
    dear = podium.suggest(people(), cost={"call": 9.0})
    assert not dear.supported
    assert dear.rule is None
    assert "does better than always choosing sms" in dear.answer
    assert podium.suggest(people(), cost={"call": 0.1}).supported


def test_lower_is_better() -> None:
    log = people()
    turned = podium.Log(log.states, log.actions, -log.rewards, log.propensities)
    assert podium.suggest(turned, lower_is_better=True).sql == podium.suggest(log).sql


def test_without_propensities_it_says_what_it_assumes() -> None:
    found = podium.suggest(people(propensities=None))
    assert found.supported
    assert (
        "The log has no propensities: the search estimates them, and assumes that everything that influenced both the "
        "choice of actions and the reward is among the state columns"
    ) in found.notes


def test_only_possible_actions() -> None:
    log = people()
    old = np.asarray(log.state_columns["age"]) >= 40
    chosen = np.where(old, log.actions, "sms")
    lists = [["call", "sms"] if x else ["sms"] for x in old]
    p = np.where(old, 0.5, 1.0)
    given = podium.Log(log.states, chosen, log.rewards, propensities=p, eligible=lists)
    found = podium.suggest(given)
    assert found.supported
    assert found.rule is not None
    assert found.comparison is not None
    played = found.rule.actions(given.state_columns, len(given))
    assert given.eligible[np.arange(600), played].all()
    assert {x.name for x in found.comparison.policies} == {"suggested", "always sms"}


def test_text_columns_are_read_as_levels() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(["oslo", "rome", "it's"], 600).astype(object)
    action = rng.choice(["a", "b"], 600)
    reward = np.where((action == "a") == (city == "it's"), 1.0, 0.0) + 0.5 * rng.normal(size=600)
    found = podium.suggest(podium.Log({"home city": city}, action, reward, np.full(600, 0.5)))
    assert found.sentence == 'if home city is "it\'s" then a, otherwise b'
    assert found.sql == "CASE WHEN \"home city\" = 'it''s' THEN 'a' ELSE 'b' END"


def test_against() -> None:
    found = podium.suggest(people(), against={"same": "sql:CASE WHEN age >= 60 THEN 'call' ELSE 'sms' END"})
    assert found.comparison is not None
    assert "same" in found.comparison.ranking
    assert "same" in found.answer
    with pytest.raises(podium.PodiumError) as error:
        podium.suggest(people(), against={"suggested": "uniform"})
    assert str(error.value) == "the policy 'suggested' is given twice\n\nHint: give each policy a name of its own."
    with pytest.raises(podium.PodiumError) as error:
        podium.suggest(people(), against=3)  # type: ignore[arg-type]
    assert str(error.value) == (
        'against must name policies; it is 3\n\nHint: write against={"today": "constant:call"}, or against="logged".'
    )


def test_states_that_no_rule_can_ask_for() -> None:
    log = people()
    with pytest.raises(podium.PodiumError) as error:
        podium.suggest(podium.Log(np.zeros(600), log.actions, log.rewards, log.propensities))
    assert str(error.value) == (
        "no state column can be asked for in a rule: each is constant, or holds neither numbers nor texts that come "
        "back\n\nHint: name a column of numbers or of a few texts with --state."
    )


def test_rules_in_words_and_sql() -> None:
    call, sms = Leaf(0, "call", 10), Leaf(1, "sms", 90)
    inner = Split(Question("age", ">=", 70), call, sms)
    rule = Rule(Split(Question("age", ">=", 50), inner, sms))
    assert rule.sentence == "if age is at least 70 then call, otherwise sms"
    assert rule.sql == "CASE WHEN age >= 70 THEN 'call' ELSE 'sms' END"
    late = Rule(Split(Question("order", "true"), Leaf(2, 3, 1), Split(Question("x", ">", 0.5), call, sms)))
    assert late.sentence == "if order is true then 3; if order is false and x is above 0.5 then call, otherwise sms"
    assert late.sql == "CASE WHEN \"order\" THEN 3 WHEN NOT \"order\" AND x > 0.5 THEN 'call' ELSE 'sms' END"
    columns = {"order": np.array([True, False, False]), "x": np.array([1.0, 1.0, 0.0])}
    assert late.actions(columns, 3).tolist() == [2, 0, 1]


def test_words_that_sql_reserves_are_quoted() -> None:
    listing = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    assert {row[0] for row in duckdb.sql(listing).fetchall()} <= RESERVED


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.10000001), (-5.5, 3.0), (1e-9, 2e-9), (1e6, 1e6 + 0.25)])
def test_thresholds_lie_between_their_neighbors(low: float, high: float) -> None:
    assert low <= short_between(low, high) < high


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people().to_frame().to_csv(tmp_path / "log.csv", index=False)
    path = str(tmp_path / "log.csv")
    assert main(["suggest", path, "--depth", "1", "--against", "logged", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rule"].keys() == {"sentence", "sql", "tree"}
    assert content["fitted_rows"] + content["judged_rows"] == 600
    assert {pair["a"] for pair in content["pairs"]} | {pair["b"] for pair in content["pairs"]} == {
        "suggested", "always sms", "always call", "logged",
    }  # fmt: skip
    assert content["answer"]["code"] in ("rule supported", "rule not supported")
    rule = f"suggested=sql:{content['rule']['sql']}"
    assert main(["compare", path, "--policy", rule, "--policy", "sms=constant:sms"]) == 0
    assert main(["suggest", path]) == 0
    shown = capsys.readouterr().out
    assert "A rule worth trying: if age is at least" in shown
    assert '  --policy "suggested=sql:CASE WHEN age >= ' in shown
    assert main(["suggest", path, "--against", "today"]) == 2
    assert capsys.readouterr().err.startswith("podium: --against 'today' is not NAME=SPEC\n\nHint: a SPEC is one of")


def test_rows_on_an_engine(tmp_path: Path) -> None:
    people(150).to_frame().to_csv(tmp_path / "log.csv", index=False)
    log = podium.scan_log(tmp_path / "log.csv", engine="duckdb")
    assert podium.suggest(log).sql == podium.suggest(people(150)).sql
    with pytest.raises(podium.PodiumError) as error:
        podium.suggest(log, sample_rows=120)
    assert str(error.value) == (
        "podium suggest needs the rows in memory, and the log has 150\n\n"
        "Hint: use --engine memory (in Python, podium.read_log), or suggest from some of the rows."
    )


def test_gaps_can_be_asked_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gap, action = rng.random(400) < 0.4, rng.choice(["a", "b"], 400)
    reward = 2.0 * ((action == "a") == gap) + rng.normal(size=400)
    age = ["" if g else str(x) for g, x in zip(gap, rng.integers(20, 80, 400), strict=True)]
    lines = [f"{a},{b},{c},0.5" for a, b, c in zip(age, action, reward, strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(["age,action,reward,propensity", *lines]), encoding="utf-8")
    found = podium.suggest(podium.read_log(tmp_path / "log.csv"))
    assert found.sentence == "if age is missing then a, otherwise b"
    assert found.sql == "CASE WHEN \"age missing\" >= 1 THEN 'a' ELSE 'b' END"


def test_the_bench() -> None:
    assert judge("one threshold", 500, 0, 1).tolist() == [1, 0, 1, 1, 1]
    assert judge("coins", 500, 0, 1)[0] == 0
