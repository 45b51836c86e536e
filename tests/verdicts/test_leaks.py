"""Alarms for state columns that were recorded after the action: what rings, what does not, and what they silence."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import podium
from podium import Log, compare
from podium.comparison.analysis import analyze
from podium.estimates.estimators import LDE
from podium.estimates.options import Options
from podium.experiments.calibration.leaks import main
from podium.verdicts.balance import Balance, functions_of, mixed_actions, score_test
from podium.verdicts.leaks import check_columns, contradicted, predict, unconditional_differences

ARMS = {"call": "constant:call", "sms": "constant:sms"}


def columns_of(rows: int = 400, effect: float = 0.25, seed: int = 0, **more: Any) -> dict[str, Any]:
    """A randomized log: age, actions by a coin, a yes-or-no reward."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(2, size=rows)
    reward = (rng.random(rows) < 0.3 + effect * chosen).astype(float)
    columns = {"age": rng.normal(50, 10, rows).round(), "action": np.array(["call", "sms"], dtype=object)[chosen]}
    columns |= {"reward": reward, "propensity:call": np.full(rows, 0.5), "propensity:sms": np.full(rows, 0.5)}
    return columns | {name: make(rng, chosen, reward) for name, make in more.items()}


def status(rng: Any, chosen: Any, reward: Any) -> Any:
    return np.where(reward > 0, "attended", "no show").astype(object)


def alarms(log: Log) -> dict[str, str]:
    return {check.column: check.alarm for check in check_columns(log) if check.alarm}


# --- balance -----------------------------------------------------------------------------------------------------


def test_a_column_that_follows_the_outcome_is_unbalanced() -> None:
    assert alarms(Log.from_columns(columns_of(status=status))) == {"status": "unbalanced"}


@pytest.mark.parametrize("known", ["full", "logged", "units"])
def test_a_column_caused_by_the_action_is_unbalanced_whatever_is_known_of_the_logger(known: str) -> None:
    columns = columns_of(after=lambda rng, chosen, reward: chosen + rng.standard_normal(len(chosen)))
    options = {}
    if known == "logged":  # p that differs from row to row, so that B cannot be completed
        rng = np.random.default_rng(5)
        p = rng.uniform(0.3, 0.7, 400)
        chosen = rng.random(400) < p
        columns |= {"action": np.where(chosen, "sms", "call").astype(object), "propensity": np.where(chosen, p, 1 - p)}
        columns |= {"after": chosen + 0.5 * rng.standard_normal(400)}
        columns = {name: column for name, column in columns.items() if ":" not in name}
    if known == "units":
        columns["person"], options = np.arange(400) // 4, {"unit": "person"}
    log = Log.from_columns(columns, **options)
    assert log.knows == ("logged" if known == "logged" else "full")
    assert alarms(log) == {"after": "unbalanced"}


def test_without_propensities_or_with_estimated_ones_balance_is_not_judged() -> None:
    columns = columns_of(after=lambda rng, chosen, reward: chosen + rng.standard_normal(len(chosen)))
    bare = Log.from_columns({name: column for name, column in columns.items() if ":" not in name})
    assert not alarms(bare)
    assert not Balance(bare).testable
    estimated = Log.from_columns(columns)._copy(estimated="a label")  # what an estimate looks like
    assert estimated.knows == "estimated"
    assert not alarms(estimated)


def test_units_that_were_assigned_together_do_not_ring() -> None:
    """All rows of a person have one action and one age: by rows, age would seem to follow the action."""
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(12), 40)
    action, age = (np.arange(12) % 2)[person], (np.arange(12) % 2 * 10.0 + rng.normal(size=12))[person]
    log = Log(np.column_stack([age, age]), action, rng.normal(size=480), behavior=np.full((480, 2), 0.5))
    assert alarms(log)
    assert not alarms(replace(log, units=person))


def test_a_deterministic_logger_is_balanced() -> None:
    states = np.tile([0.0, 1.0, 2.0], 40)
    behavior = np.eye(3)[states.astype(int)]
    log = Log(states, states.astype(int), states + 0.1 * np.sin(np.arange(120)), behavior=behavior)
    assert Balance(log).p_value(functions_of(states)) == 1.0
    assert not alarms(log)


def test_an_action_that_is_impossible_in_some_states_does_not_ring() -> None:
    """Only p_n is known, and the third action exists for the old alone."""
    rng = np.random.default_rng(1)
    old = rng.integers(2, size=3000)
    behavior = np.where(old[:, None] == 1, [0.3, 0.3, 0.4], [0.5, 0.5, 0.0])
    action = (rng.random(3000)[:, None] > behavior.cumsum(axis=1)).sum(axis=1)
    p = behavior[np.arange(3000), action]
    assert not alarms(Log(old, action, rng.normal(size=3000), propensities=p))


def test_shares_that_are_declared_wrong_are_not_blamed_on_a_column() -> None:
    columns = columns_of(rows=2000, seed=4)
    columns |= {"propensity:call": np.full(2000, 0.45), "propensity:sms": np.full(2000, 0.55)}
    assert not alarms(Log.from_columns(columns))


def test_the_score_test_is_exact_on_average() -> None:
    """Under B, p values of a coin and of rare actions are spread evenly, or lie higher."""
    rng = np.random.default_rng(0)
    chances = np.tile([0.6, 0.3, 0.1], (80, 1))
    f = rng.random(80) - 0.5
    found = []
    for _ in range(400):
        drawn = np.eye(3)[(rng.random(80)[:, None] > chances.cumsum(axis=1)).sum(axis=1)]
        found.append(score_test(f, drawn - chances, chances))
    assert abs(np.mean(np.array(found) < 0.5) - 0.5) < 0.12
    assert np.mean(np.array(found) < 0.01) < 0.03


def test_checks_do_not_depend_on_the_order_of_rows() -> None:
    log = Log.from_columns(columns_of(rows=200, status=status))
    turned = log.take(np.random.default_rng(9).permutation(200))
    for a, b in zip(check_columns(log), check_columns(turned), strict=True):
        assert (a.column, a.alarm) == (b.column, b.alarm)
        assert [a.p_value, a.r2] == pytest.approx([b.p_value, b.r2])


# --- repetition --------------------------------------------------------------------------------------------------


def test_a_copy_of_the_reward_rings_without_propensities_and_without_an_effect() -> None:
    columns = columns_of(effect=0.0, status=status)
    bare = {name: column for name, column in columns.items() if ":" not in name}
    assert alarms(Log.from_columns(bare)) == {"status": "repeats"}


@pytest.mark.parametrize("r2", [0.9, 0.99])
def test_an_honest_earlier_measurement_does_not_ring(r2: float) -> None:
    rng = np.random.default_rng(2)
    before, action = rng.standard_normal(600), rng.integers(2, size=600)
    rest = 0.7 * (2 * action - 1) + 0.7 * rng.standard_normal(600)
    rewards = before + np.sqrt(1 / r2 - 1) * rest
    log = Log(before, action, rewards, behavior=np.full((600, 2), 0.5))
    (check,) = check_columns(log)
    assert check.r2 > r2 - 0.03
    assert check.alarm == ""


def test_a_reward_of_state_and_action_is_not_repeated_by_the_state() -> None:
    rng = np.random.default_rng(2)
    state, action = rng.integers(10, size=500), rng.integers(3, size=500)
    assert not alarms(Log(state, action, np.sin(state) + 0.5 * action, behavior=np.full((500, 3), 1 / 3)))


def test_a_column_that_stands_for_the_action_does_not_repeat_the_reward() -> None:
    """Without propensities: the logger follows the column, so the column predicts whatever the action does."""
    state = np.tile(np.arange(4), 50)
    assert not alarms(Log(state, state % 2, (state % 2).astype(float)))
    assert mixed_actions(state % 2, state) == 0.0


def test_predictions_leave_their_row_out() -> None:
    names = np.array([f"row {n}" for n in range(100)], dtype=object)
    assert predict(names, np.random.default_rng(0).normal(size=100)).r2 == 0.0
    assert predict(np.arange(100.0), 1e90 * np.arange(100)).r2 == pytest.approx(1.0)
    assert predict(np.arange(100.0), np.full(100, 0.1)).r2 == 0.0


# --- contradiction -----------------------------------------------------------------------------------------------


def two_columns(seed: int = 0, rows: int = 200) -> Log:
    """Two columns that know the reward together, and nothing alone."""
    rng = np.random.default_rng([rows, seed])
    action = rng.integers(2, size=rows)
    reward = rng.standard_normal(rows) + 0.8 * action
    sign = rng.choice([-1.0, 1.0], size=rows)
    states = np.column_stack([sign, sign * (reward - reward.mean()) + 0.1 * rng.standard_normal(rows)])
    return Log(states, action, reward, behavior=np.full((rows, 2), 0.5))


def test_columns_that_know_the_outcome_only_together_contradict_dre() -> None:
    log = two_columns()
    assert not alarms(log)
    result = compare(log, {"a": "constant:0", "b": "constant:1"})
    (fact,) = result.to_dict()["warning_facts"][:1]
    assert (fact["code"], fact["pairs"], fact["of"]) == ("verdict contradicts DRE, warning", 1, 1)
    assert result.pairs[0].verdict == "cannot tell"
    assert result.pairs[0].p_adjusted == 1.0
    assert result.pairs[0].reasons[0].code == "verdict contradicts DRE"  # type: ignore[attr-defined]


def test_only_pairs_that_differ_are_silent() -> None:
    log = two_columns(rows=400)
    by_sign = np.eye(2)[(log.states[:, 0] > 0).astype(int)]  # neither better nor worse than a coin
    analysis = analyze(log, {"b": "constant:1", "any": "uniform", "by sign": by_sign}, LDE, Options())
    assert [bool(reason) for reason in analysis.judgement.silent] == [True, True, False]


def test_the_gap_of_dre_needs_no_states() -> None:
    log = two_columns()
    policies = analyze(log, {"a": "constant:0", "b": "constant:1"}, LDE, Options()).rows.policies
    difference, error, _ = unconditional_differences(log, policies)
    assert difference[0] == pytest.approx(-0.8, abs=3 * error[0])


def test_classical_procedures_are_not_held_against_dre() -> None:
    analysis = analyze(two_columns(), {"a": "constant:0", "b": "constant:1"}, LDE, Options(verdicts="paired t"))
    assert not contradicted(analysis.best_source, analysis.rows.sample, analysis.rows.policies).any()


# --- what is said ------------------------------------------------------------------------------------------------


def test_an_alarm_silences_every_pair_and_names_the_column_and_the_remedy() -> None:
    result = compare(Log.from_columns(columns_of(status=status)), {**ARMS, "any": "uniform"})
    assert {p.verdict for p in result.pairs} == {"cannot tell"}
    assert {p.p_adjusted for p in result.pairs} == {1.0}
    for pair in result.to_dict()["pairs"]:
        (fact,) = pair["reason_facts"]
        assert (fact["code"], fact["column"], fact["remedy"]) == ("column follows action", "status", "--state age")
    gate = result.gate("call > sms - 0.02")
    assert (gate.verdict, gate.exit_code) == ("cannot tell", 3)
    assert "Column 'status'" in gate.reasons[0]
    assert str(result).count("Warning: column 'status'") == 1
    assert result.warnings[0].code == "column follows action, warning"  # type: ignore[attr-defined]


def test_the_remedy_works_and_the_answer_lists_its_states() -> None:
    columns = columns_of(status=status)
    with_leak = compare(Log.from_columns(columns), ARMS)
    without = compare(Log.from_columns(columns, state=["age"]), ARMS)
    assert not without.warnings
    assert without.pair("sms", "call").verdict == "better"
    assert with_leak.to_dict()["log"]["state_columns"] == ["age", "status"]
    assert "; state: age, status (2 columns)" in with_leak.text(width=200)
    assert "; state: age (1 column)" in without.text(width=200)


def test_many_state_columns_are_listed_in_part() -> None:
    columns = columns_of(rows=40) | {f"x{k}": np.arange(40) % (k + 2) for k in range(11)}
    text = str(podium.evaluate(Log.from_columns(columns), ARMS))
    assert "State: age, x0, x1, x2, x3, x4, x5, x6, x7, x8, ... (12 columns)" in " ".join(text.split())


def test_the_only_column_and_names_with_spaces_have_remedies() -> None:
    columns = columns_of(**{"the status": status})
    columns["home town"] = columns.pop("age")
    (fact,) = compare(Log.from_columns(columns), ARMS).to_dict()["warning_facts"]
    assert fact["remedy"] == "--state 'home town'"
    (fact,) = compare(Log.from_columns(columns, state=["the status"]), ARMS).to_dict()["warning_facts"]
    assert fact["remedy"] == "name another column with --state, or add a constant column"


def test_check_and_report_show_the_alarm() -> None:
    log = Log.from_columns(columns_of(status=status))
    assert "Warning: column 'status' is related to the logged action" in str(podium.diagnose(log))
    assert "Warning: column 'status' is related to the logged action" in str(podium.diagnose(log, ARMS))
    from podium.outputs.report import page

    html = page(compare(log, ARMS))
    assert html.count("is related to the logged action beyond the propensities") == 1


def test_alarms_are_cheap() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    columns = {f"x{k}": rng.standard_normal(n) for k in range(15)}
    columns |= {f"t{k}": rng.choice(list("abcdefgh"), size=n).astype(object) for k in range(5)}
    columns |= {"action": rng.integers(5, size=n), "reward": rng.standard_normal(n)}
    log = Log.from_columns(columns | {f"propensity:{a}": np.full(n, 0.2) for a in range(5)})
    started = time.process_time()
    assert not alarms(log)
    assert time.process_time() - started < 5.0  # 0.5 s on an idle machine


@pytest.mark.slow
def test_leaked_columns_open_no_gate_and_honest_logs_do_not_ring(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--logs", "150", "--draws", "2", "--seed", "7"])
    leaked, _, _, honest = capsys.readouterr().out.split("\n\n")[:4]
    assert "false gate" not in leaked
    (every,) = [line.split() for line in honest.splitlines() if line.split()[:1] == ["all"]]
    assert int(every[2]) <= 5


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_column_that_determines_huge_rewards_is_found_by_their_ranks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = rng.integers(2, size=1_000)
    y = 0.9 * rng.normal(size=1_000) + 0.1 * chosen
    signs = np.where(rng.random(1_000) < 0.5, 1, -1)
    columns = {"after": signs * y, "age": rng.normal(size=1_000), "reward": np.exp(3 * np.abs(y))}
    columns |= {"action": np.array(["call", "sms"], dtype=object)[chosen], "propensity": np.full(1_000, 0.5)}
    assert predict(columns["after"], columns["reward"]).r2 < 0.98
    assert alarms(Log.from_columns(columns)) == {"after": "repeats"}
