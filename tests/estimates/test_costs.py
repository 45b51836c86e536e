"""Known costs enter values, differences, intervals, verdicts and gates exactly, on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError

POLICIES = {"call": "constant:call", "email": "constant:email", "anything": "uniform"}
COSTS = {"call": 0.25, "email": 0.02}
VALUES = ("DRE", "IPS", "SNIPS", "SNDR")


def make_log(seed: int = 0, rows: int = 60, **columns: Any) -> podium.Log:
    rng = np.random.default_rng(seed)
    actions = rng.choice(["call", "email", "none"], size=rows)
    rewards = (rng.random(rows) < 0.3 + 0.2 * (actions == "call")).astype(float)
    given = {
        "age": rng.integers(3, size=rows),
        "action": actions,
        "reward": rewards,
        "propensity": np.full(rows, 1 / 3),
    }
    return podium.Log.from_columns({**given, **columns})


def fails(call: Any) -> str:
    with pytest.raises(PodiumError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("logs", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_values_differ_by_the_exact_mean_cost(logs: int) -> None:
    for seed in range(logs):
        log = make_log(seed, 24)
        plain = podium.evaluate(log, POLICIES, ["DRE", "IPS", "LDE"])
        known = podium.evaluate(log, POLICIES, ["DRE", "IPS", "LDE"], cost=COSTS)
        for name, cost in {"call": 0.25, "email": 0.02, "anything": 0.09}.items():
            for method, factor in (("DRE", 1), ("IPS", 1), ("LDE", 3)):
                lost = plain.values[name][method] - known.values[name][method]  # type: ignore[operator]
                assert abs(lost - cost / factor) < 1e-10


@pytest.mark.parametrize("logs", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_known_costs_agree_on_average_with_costs_subtracted_from_rewards(logs: int) -> None:
    """Costs of the logged actions taken off the rewards give the same values on average, with noise of their own.

    The baseline is a number: the mean of the same rows would bias DRE by a share 1 / N of what it explains.
    """
    labels, prices = ["call", "email", "none"], np.array([0.5, 0.1, -0.2])  # a negative cost is a gain
    costs = dict(zip(labels, prices.tolist(), strict=True))
    gaps = []
    for seed in range(logs):
        log = make_log(seed, 30)
        paid = prices[[labels.index(action) for action in log.actions]]
        lower = podium.Log.from_columns({**log.columns, "reward": log.rewards - paid})
        known = podium.evaluate(log, POLICIES, ["IPS", "DRE"], 0.4, cost=costs).values
        subtracted = podium.evaluate(lower, POLICIES, ["IPS", "DRE"], 0.4).values
        gaps.append([subtracted[name]["IPS"] - known[name]["IPS"] for name in ("call", "email")])  # type: ignore[operator]
        gaps[-1] += [subtracted[name]["DRE"] - known[name]["DRE"] for name in ("call", "email")]  # type: ignore[operator]
    error = np.std(gaps, axis=0, ddof=1) / np.sqrt(logs)
    assert (error > 0).all()  # subtraction estimates what is known
    assert (np.abs(np.mean(gaps, axis=0)) < 4 * error).all()


def test_a_plain_loop_gives_the_same_costs_row_by_row() -> None:
    rng = np.random.default_rng(1)
    prices = {f"price:{a}": rng.random(60) for a in ("call", "email", "none")}
    log = make_log(1, **prices)
    mixed = rng.dirichlet(np.ones(3), size=60)
    result = podium.evaluate(log, {"mixed": mixed, "call": "constant:call"}, cost=["column:price", "call=1"])
    expected = 0.0
    for n in range(60):
        for j, action in enumerate(("call", "email", "none")):
            expected += mixed[n, j] * (prices[f"price:{action}"][n] + (1.0 if action == "call" else 0.0)) / 60
    assert result.costs is not None
    assert result.costs["mixed"] == pytest.approx(expected, abs=1e-12)
    assert result.costs["call"] == pytest.approx(1 + prices["price:call"].mean(), abs=1e-12)
    assert list(result.log.state_columns) == ["age"]  # prices of the rows are no states


@pytest.mark.parametrize("verdicts", [None, "gated", "doubly robust", "paired t", "bootstrap t", "sign flip"])
def test_intervals_move_and_keep_their_width(verdicts: str | None) -> None:
    log = make_log(rows=120)
    plain = podium.compare(log, POLICIES, verdicts=verdicts, bootstrap=50)
    known = podium.compare(log, POLICIES, verdicts=verdicts, bootstrap=50, cost=COSTS)
    before, after = plain.pair("call", "email"), known.pair("call", "email")
    assert after.difference - before.difference == pytest.approx(-0.23, abs=1e-10)
    assert before.interval is not None
    assert after.interval is not None
    assert before.bootstrap is not None
    assert after.bootstrap is not None
    assert after.interval.low - before.interval.low == pytest.approx(-0.23, abs=1e-10)
    assert after.interval.high - before.interval.high == pytest.approx(-0.23, abs=1e-10)
    assert after.bootstrap.low - before.bootstrap.low == pytest.approx(-0.23, abs=1e-10)
    assert after.std_error == pytest.approx(before.std_error)
    # "better after costs" is "better by more than the costs" before them
    assert known.gate("call > email").probability == pytest.approx(plain.gate("call > email + 0.23").probability)


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_equal_rewards_leave_the_costs_alone_and_certain(lower_is_better: bool) -> None:
    log = make_log()
    log = podium.Log.from_columns({**log.columns, "reward": np.zeros(60)})
    found = podium.compare(log, POLICIES, cost=COSTS, lower_is_better=lower_is_better)
    assert found.ranking == ["email", "anything", "call"]
    pair = found.pair("email", "call")
    assert pair.difference == (-0.23 if lower_is_better else 0.23)
    assert pair.interval == podium.comparison.pair.Interval(pair.difference, pair.difference)
    assert (pair.verdict, pair.p_better, pair.std_error, pair.path) == ("better", 1.0, 0.0, "costs")
    assert found.policies[0].p_best == 1.0
    assert found.gate("email > call - 0.1").exit_code == 0
    assert found.warnings[0] == (
        "every row has the same reward, so known costs alone tell policies apart. If rewards can differ, log more rows."
    )
    assert found.pair("email", "call").verdict == found.pair("call", "email").reversed().verdict


def test_costs_of_zero_leave_equal_rewards_undecided() -> None:
    log = make_log()
    log = podium.Log.from_columns({**log.columns, "reward": np.zeros(60)})
    pair = podium.compare(log, POLICIES, cost={"call": 0.0}).pair("call", "email")
    assert (pair.verdict, pair.reasons) == ("cannot tell", ("Rewards that are all equal tell no policy from another",))


def test_lower_is_better_adds_costs() -> None:
    log = make_log()
    plain = podium.compare(log, POLICIES, "DRE", lower_is_better=True)
    known = podium.compare(log, POLICIES, "DRE", lower_is_better=True, cost=COSTS)
    assert known.estimates["call"]["DRE"] - plain.estimates["call"]["DRE"] == pytest.approx(0.25)  # type: ignore[operator]
    assert "Known costs are added to every value exactly: 'call' 0.25, 'email' 0.02, 'none' 0" in known.header()


def test_states_spectrum_and_json_hold_the_costs() -> None:
    log = make_log()
    plain, known = (podium.compare_states(log, POLICIES, "DRE", cost=cost) for cost in (None, COSTS))
    assert np.allclose(plain.values - known.values, [0.25, 0.02, 0.09])
    values = [podium.spectrum(log, POLICIES, ["mean"], cost=c).place("SNIPS").policies[0].value for c in (None, COSTS)]
    assert values[0] - values[1] == pytest.approx(0.25)
    answer = podium.compare(log, POLICIES, cost=COSTS).to_dict()
    assert answer["settings"]["costs"]["actions"][0] == {"action": "call", "cost": 0.25}
    costs = {p["name"]: p["cost"] for p in answer["policies"]}
    assert costs == pytest.approx({"call": 0.25, "email": 0.02, "anything": 0.09})
    assert "cost" not in podium.compare(log, POLICIES).to_dict()["policies"][0]


def test_columns_of_the_logged_action() -> None:
    log = make_log()
    price = np.array([COSTS.get(a, 0.0) for a in log.actions])
    found = podium.evaluate(make_log(price=price), POLICIES, cost="column:price")
    assert found.costs == pytest.approx({"call": 0.25, "email": 0.02, "anything": 0.09})
    assert list(found.log.state_columns) == ["age"]
    varying = make_log(price=np.linspace(1, 2, 60))
    message = fails(lambda: podium.compare(varying, POLICIES, cost="column:price"))
    called = varying.columns["price"][log.actions == "call"]
    low, high = f"{called.min():.6g}", f"{called.max():.6g}"
    assert message == (
        f"column 'price' holds the cost of the logged action alone, and it varies: 'call' costs from {low} to {high} "
        "(3 actions vary), so the cost of the other actions in a row is unknown\n\n"
        "Hint: give the cost of every action in columns 'price:<action>', or a cost per action with --cost ACTION=C. "
        "A cost that is the same for all actions of a row changes no difference: leave it out."
    )
    unseen, space = {"new": "constant:letter", **POLICIES}, ["call", "email", "none", "letter"]
    assert fails(lambda: podium.compare(make_log(price=price), unseen, actions=space, cost="column:price")) == (
        "column 'price' does not say what 1 of the 4 actions cost, which were never logged: 'letter'\n\n"
        "Hint: give the cost of every action in columns 'price:<action>', or a cost per action with --cost ACTION=C."
    )


def test_what_is_refused() -> None:
    log = make_log(**{"price:call": np.ones(60), "pi_old": np.full(60, 0.5)})
    assert fails(lambda: podium.compare(log, POLICIES, cost={"cal": 1.0})) == (
        "the cost of 'cal' is given, and no row or policy has this action\n\n"
        "Hint: did you mean 'call'? The actions are 'call', 'email', 'none'."
    )
    assert fails(lambda: podium.compare(log, POLICIES, cost="column:price")) == (
        "the costs price:<action> lack 2 of the 3 actions: 'email', 'none'\n\n"
        "Hint: add the column 'price:email', and one for every other action."
    )
    assert fails(lambda: podium.compare(log, {"old": "column:pi_old", **POLICIES}, cost=COSTS)) == (
        "the cost of policy 'old' cannot be computed: it is known only at the logged actions\n\n"
        "Hint: give its whole distribution: an (N, A) array, a callable, a classifier, or columns pi_<name>:<action>."
    )
    hint = (
        "write --cost call=2.5 for an action, or --cost column:price; in Python, cost={'call': 2.5} or 'column:price'."
    )
    assert fails(lambda: podium.compare(log, POLICIES, cost="call")) == (
        f"cost 'call' is neither ACTION=NUMBER nor column:COL\n\nHint: {hint}"
    )
    assert fails(lambda: podium.compare(log, POLICIES, cost={"call": np.inf})) == (
        f"the cost of 'call' must be a finite number; it is inf\n\nHint: {hint}"
    )
    for text in ("1,250", "2,5", "1.250,5"):
        assert fails(lambda text=text: podium.compare(log, POLICIES, cost=f"call={text}")) == (  # type: ignore[misc]
            f"the cost of 'call' must be a plain number; it is {text!r}\n\n"
            "Hint: write 1250 or 2.5: without separators, and with a point for decimals."
        )
    assert fails(lambda: podium.compare(log, POLICIES, cost="call=nan")) == (
        f"cost 'call=nan' is neither ACTION=NUMBER nor column:COL\n\nHint: {hint}"
    )
    assert fails(lambda: podium.compare(log, POLICIES, cost=["call=1", "call=2"])) == (
        "the cost of 'call' is given twice\n\nHint: give every cost once."
    )
    assert fails(lambda: podium.compare(log, POLICIES, cost=COSTS, normalize="states")) == (
        "known costs are averaged over rows, not over states\n\n"
        'Hint: leave normalize="states" out, or subtract the costs from the rewards.'
    )
    missing = fails(lambda: podium.compare(log, POLICIES, cost="column:prize"))
    assert missing.startswith("the log has no column 'prize' or 'prize:<action>' for the cost\n\nHint: ")


def test_the_command_and_duckdb_agree_with_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    prices = {f"price:{a}": rng.random(400) for a in ("call", "email", "none")}
    log = make_log(3, 400, **prices)
    path = tmp_path / "log.csv"
    log.to_frame().to_csv(path, index=False)
    ask = ["evaluate", str(path), "--policy", "a=constant:call", "--policy", "b=uniform", "--json", "--cost"]
    answers = []
    for engine in ("memory", "duckdb"):
        for extra in (["column:price"], ["call=2.5", "--cost", "none=1"]):
            assert main([*ask, *extra, "--engine", engine, "--sample-rows", "100"]) == 0
            answers.append(json.loads(capsys.readouterr().out)["policies"])
    for mine, other in zip(answers[:2], answers[2:], strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a["cost"] == pytest.approx(b["cost"], rel=1e-12)
            assert a["estimates"]["DRE"] == pytest.approx(b["estimates"]["DRE"], rel=1e-9)
    assert answers[1][0]["cost"] == 2.5
    assert main([*ask, "cal=1"]) == 2
    assert "did you mean 'call'?" in capsys.readouterr().err
