"""The deployment gate: what it understands, its three answers, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import PROCEDURES, sample

import podium
from podium.command.cli import main
from podium.comparison.conditions import Condition, answer_gate, parse_gate

approx = pytest.approx
NAMES = ["new", "current", "new model", "v1-2", "v1", "a > b", "a", "b", "b - 0.5", "c-1e-3", "x+1", "x", ">"]

UNDERSTOOD = {
    "new > current": ("new", "current", 0.0),
    "new>current": ("new", "current", 0.0),
    "  new  >  current  ": ("new", "current", 0.0),
    "new > current - 0.02": ("new", "current", -0.02),
    "new > current-0.02": ("new", "current", -0.02),
    "new > current + 0.02": ("new", "current", 0.02),
    "new > current - .02": ("new", "current", -0.02),
    "new > current + 3.": ("new", "current", 3.0),
    "new > current + 2e-3": ("new", "current", 0.002),
    "new > current - 1.5E+2": ("new", "current", -150.0),
    "new > current - 1e-3": ("new", "current", -0.001),
    "new > current + 0": ("new", "current", 0.0),
    "new model > current": ("new model", "current", 0.0),
    "current > new model - 1": ("current", "new model", -1.0),
    "v1-2 > v1": ("v1-2", "v1", 0.0),
    "v1 > v1-2": ("v1", "v1-2", 0.0),
    "new > v1-3": ("new", "v1", -3.0),
    "new > v1-2-3": ("new", "v1-2", -3.0),
    "a > b > new": ("a > b", "new", 0.0),
    "new > a > b": ("new", "a > b", 0.0),
    "new > a > b - 0.1": ("new", "a > b", -0.1),
    "a > b": ("a", "b", 0.0),
    "a > b - 0.5": ("a", "b - 0.5", 0.0),  # a policy of that very name
    "a > b - 0.25": ("a", "b", -0.25),
    "a > c-1e-3": ("a", "c-1e-3", 0.0),
    "a > x+1": ("a", "x+1", 0.0),
    "a > x+2": ("a", "x", 2.0),
    "> > a": (">", "a", 0.0),
    "a > >": ("a", ">", 0.0),
}


@pytest.mark.parametrize(("text", "meaning"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_parsing(text: str, meaning: tuple[str, str, float]) -> None:
    assert parse_gate(text, NAMES) == Condition(*meaning)
    assert parse_gate(str(parse_gate(text, NAMES)), NAMES) == Condition(*meaning)


REFUSED = ["", "new", "new > ", "> current", "new < current", "new > other", "other > current", "new > current - x"]
REFUSED += ["new > current - 0.02 - 0.01", "new > current * 2", "new > current - nan"]
MISSPELLED = {
    "new >= current": "new > current",
    "NEW > current": "new > current",
    "new > curent - 0.02": "new > current - 0.02",
    "new > curren + .5": "new > current + .5",
}


@pytest.mark.parametrize(("text", "meant"), MISSPELLED.items(), ids=MISSPELLED)
def test_a_misspelled_condition_is_corrected(text: str, meant: str) -> None:
    with pytest.raises(podium.PodiumError) as error:
        parse_gate(text, ["new", "current"])
    assert str(error.value) == (
        f"the gate {text!r} is not of the form A > B or A > B - margin; the policies are new, current\n\n"
        f'Hint: did you mean "{meant}"? write --gate "new > current", or with a margin that does no harm: '
        '"new > current - 0.02".'
    )


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(podium.PodiumError) as error:
        parse_gate(text, ["new", "current"])
    message = str(error.value)
    assert f"the gate {text!r} is not of the form A > B or A > B - margin; the policies are new, current" in message
    assert message.endswith(
        '\n\nHint: write --gate "new > current", or with a margin that does no harm: "new > current - 0.02".'
    )


def test_a_policy_against_itself() -> None:
    with pytest.raises(podium.PodiumError, match="the gate compares 'new' with itself"):
        parse_gate("new > new - 0.1", ["new", "current"])


def test_a_margin_beyond_all_numbers() -> None:
    with pytest.raises(podium.PodiumError, match="the margin of the gate must be finite"):
        parse_gate("new > current - 1e999", ["new", "current"])


def test_answers() -> None:
    condition = Condition("new", "current", 0.0)
    found = [answer_gate(condition, p, 0.95, "") for p in (0.975, 0.974, 0.5, 0.026, 0.025)]
    assert [a.exit_code for a in found] == [0, 3, 3, 3, 4]
    assert [a.verdict for a in found] == ["holds", *["cannot tell"] * 3, "the opposite holds"]
    assert all(a.reasons for a in found if a.exit_code == 3)
    silent = answer_gate(condition, 0.999, 0.95, "Too few rows")
    assert (silent.exit_code, silent.reasons) == (3, ("Too few rows",))
    assert silent.sentence() == "Gate 'new > current': cannot tell (99.9% sure that it holds). Too few rows."
    assert found[0].sentence() == "Gate 'new > current': holds (97.5% sure)."
    assert found[4].sentence() == "Gate 'new > current': the opposite holds (97.5% sure)."


# --- on a log ------------------------------------------------------------------------------------------------------


def clear(rows: int = 90) -> podium.Log:
    """Action 1 pays one more than action 0, action 2 as much as action 1, with little noise."""
    rng = np.random.default_rng(0)
    actions = np.arange(rows) % 3
    rewards = (actions > 0) + rng.normal(scale=0.05, size=rows)
    full = np.full((rows, 3), 1 / 3)
    return podium.Log(rng.normal(size=rows), actions, rewards, behavior=full, action_space=(0, 1, 2))


POLICIES = {"new": "constant:1", "current": "constant:0", "rival": "constant:2"}


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_gate_of_every_procedure(procedure: str) -> None:
    result = podium.compare(clear(), POLICIES, verdicts=procedure)
    assert result.gate("new > current").exit_code == 0
    assert result.gate("current > new").exit_code == 4
    assert result.gate("new > rival").exit_code == 3
    assert result.gate("new > rival").reasons
    assert result.gate("new > current - 0.5").exit_code == 0
    assert result.gate("new > current + 5").exit_code == 4
    assert result.gate("current > new - 5").exit_code == 0


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_probabilities_of_the_gate(procedure: str) -> None:
    """Without a margin it is the pair's P(better), unadjusted; a condition and its mirror sum to 1."""
    log, policies = sample(rows=70, count=4)
    result = podium.compare(log, policies, verdicts=procedure)
    for pair in result.pairs:
        assert result.gate(f"{pair.a} > {pair.b}").probability == approx(pair.p_better)
        assert result.gate(f"{pair.b} > {pair.a}").probability == approx(1 - pair.p_better)
        there = [result.gate(f"{pair.a} > {pair.b} {m:+}").probability for m in (-0.5, -0.1, 0.0, 0.1, 0.5)]
        back = [result.gate(f"{pair.b} > {pair.a} {-m:+}").probability for m in (-0.5, -0.1, 0.0, 0.1, 0.5)]
        assert there == sorted(there, reverse=True)
        assert np.add(there, back).tolist() == approx([1.0] * 5)


def test_the_gate_is_unadjusted() -> None:
    """Among many pairs a claim may be lost; the gate asks about one pair alone."""
    log, policies = sample(rows=90, count=8, effect=0.35)
    result = podium.compare(log, policies, "LDE", verdicts="paired t", joint=True)
    lost = [p for p in result.pairs if p.verdict == "cannot tell" and 2 * min(p.p_better, 1 - p.p_better) <= 0.05]
    assert lost
    for pair in lost:
        assert result.gate(f"{pair.a} > {pair.b}").exit_code == (0 if pair.p_better > 0.5 else 4)


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_lower_is_better(procedure: str) -> None:
    """The reward is a cost: better is lower, and a margin that does no harm is a higher cost."""
    log = clear()
    assert log.behavior is not None
    costs = podium.Log(log.states, log.actions, -log.rewards, behavior=log.behavior, action_space=log.action_space)
    high = podium.compare(log, POLICIES, verdicts=procedure)
    low = podium.compare(costs, POLICIES, verdicts=procedure, lower_is_better=True)
    for margin in ("", " - 0.5", " + 0.5", " - 0.02", " + 5"):
        for a, b in (("new", "current"), ("current", "new"), ("new", "rival"), ("rival", "new")):
            one, two = high.gate(f"{a} > {b}{margin}"), low.gate(f"{a} > {b}{margin}")
            assert one.exit_code == two.exit_code
            assert two.probability == approx(one.probability, abs=1e-6)


def test_non_inferiority() -> None:
    """Two policies that are alike: neither is better, but neither is worse by a margin that the log can exclude."""
    result = podium.compare(clear(300), POLICIES)
    assert result.gate("new > rival").exit_code == 3
    assert result.gate("new > rival - 0.5").exit_code == 0
    assert result.gate("new > rival + 0.5").exit_code == 4


def test_nothing_known() -> None:
    log, policies = sample(rows=2, count=2)
    answer = podium.compare(log, policies).gate("p0 > p1")
    assert (answer.exit_code, answer.probability, answer.verdict) == (3, 0.5, "cannot tell")
    assert answer.reasons[0] == "Fewer than 3 rows tell no policy from another"


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log = clear()
    rows = zip(log.states.tolist(), log.actions.tolist(), log.rewards.tolist(), strict=True)
    third = f"{1 / 3!r}"
    lines = [f"{s!r},{a},{r!r},{third},{third},{third}\n" for s, a, r in rows]
    header = "s,action,reward,propensity:0,propensity:1,propensity:2\n"
    (tmp_path / "log.csv").write_text(header + "".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ["compare", "log.csv", *(part for name, spec in POLICIES.items() for part in ("--policy", f"{name}={spec}"))]


@pytest.mark.parametrize(
    ("gate", "code", "verdict"),
    [
        ("new > current", 0, "holds"),
        ("new > rival", 3, "cannot tell"),
        ("current > new", 4, "the opposite holds"),
        ("rival > new - 0.5", 0, "holds"),
        ("new > current + 3", 4, "the opposite holds"),
    ],
)
def test_exit_codes(gate: str, code: int, verdict: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--gate", gate]) == code
    out, error = capsys.readouterr()
    assert error == ""
    shown = " ".join(out.split())
    assert f"Gate {gate!r}: {verdict} (" in shown
    sure = {0: "", 3: "sure that it holds). new - rival is ", 4: "sure). "}
    sure[0] = f"sure). {gate.split()[0]} - "
    if code == 3:
        assert "A probability between 0.025 and 0.975 leaves it open" in shown
    assert sure[code].strip() in shown
    assert main([*COMMAND, "--gate", gate, "--json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    contract = {"condition", "probability", "verdict", "exit_code", "reasons"}
    assert set(answer["gate"]) == contract | {"difference", "low", "high", "parts"}
    assert answer["gate"] | {"condition": gate, "verdict": verdict, "exit_code": code} == answer["gate"]
    assert (answer["gate"]["reasons"] != []) == (code == 3)
    assert main([*COMMAND, "--json"]) == 0
    assert "gate" not in json.loads(capsys.readouterr().out)


def test_lower_is_better_in_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--gate", "new > current", "--lower-is-better"]) == 4
    assert main([*COMMAND, "--gate", "current > new", "--lower-is-better"]) == 0


@pytest.mark.parametrize("gate", ["new > nobody", "nobody > current", "new", "new > new", ""])
def test_bad_gates_write_nothing(gate: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--gate", gate, "--html", "report.html"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("podium: the gate ")
    assert "\n\nHint: write --gate" in error
    assert sorted(p.name for p in folder.iterdir()) == ["log.csv"]
