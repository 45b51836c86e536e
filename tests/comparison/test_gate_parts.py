"""Gates of several parts: what they understand, whole messages of what they do not, answers, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.comparison.gate_parts import Part, parse_parts
from podium.comparison.groups import group_claims
from podium.comparison.groups import tested_in_every as in_every
from podium.data.errors import PodiumError

POLICIES = ["new", "current", "new model", "a and b", "it's"]
OUTCOMES = ["cost", "visit rate"]

UNDERSTOOD = {
    "new < current": Part("new", "current", above=False),
    "cost(new) < cost(current)": Part("new", "current", "cost", above=False),
    "cost( new )<cost( current )+.1": Part("new", "current", "cost", False, 0.1),
    "cost(new) > cost(current) - 0.02": Part("new", "current", "cost", True, -0.02),
    "cost(new) < cost(current) + 5%": Part("new", "current", "cost", False, 0.05, True),
    "new > current - 2.5 %": Part("new", "current", None, True, -0.025, True),
    "visit rate(new model) > visit rate(current)": Part("new model", "current", "visit rate"),
    "'visit rate'('new model') > \"visit rate\"(current)": Part("new model", "current", "visit rate"),
    "a and b > 'new model'": Part("a and b", "new model"),
    '"it\'s" > new': Part("it's", "new"),
    "new > current - .05 in every device": Part("new", "current", None, True, -0.05, False, "device"),
    "new > current in every 'device type'": Part("new", "current", every="device type"),
    "new > current in every device type": Part("new", "current", every="device type"),
}


@pytest.mark.parametrize(("text", "meaning"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_one_part(text: str, meaning: Part) -> None:
    assert parse_parts(text, POLICIES, OUTCOMES) == (meaning,)
    assert parse_parts(str(meaning), POLICIES, OUTCOMES) == (meaning,)


def test_several_parts() -> None:
    text = "new > current and cost(new) < cost(current) + .1 and new > a and b - 1 in every device and current < new"
    assert [str(part) for part in parse_parts(text, POLICIES, OUTCOMES)] == [
        "new > current",
        "cost(new) < cost(current) + 0.1",
        "new > 'a and b' - 1 in every device",
        "current < new",
    ]


WRITE = 'write --gate "new > current and cost(new) < cost(current) + 5%".'
USES = "It can use new, current, cost(...)."
ANY = "a policy or outcome(policy)"
REFUSED = {  # text -> where it cannot be read, what is expected there, what was perhaps meant
    "new > current and cots(new) < cost(current)": (18, ANY, "did you mean 'cost'? "),
    "new > current and cost(curent) < cost(new)": (23, "a policy", "did you mean 'current'? "),
    "new > current and cost(new) < curent": (30, ANY, "did you mean 'current'? "),
    "new > current and cost(new) < current": (30, "cost(policy)", "did you mean 'current'? "),
    "new > cost(current)": (6, "a policy without an outcome", "did you mean 'cost'? "),
    "cost(new) < cost(current": (24, "')'", ""),
    "cost(new) < cost(current) + x": (28, "a number", ""),
    "cost(new) < cost(current) + 5% 3": (31, "'and'", ""),
    "cost(new) < cost(current) or new > current": (26, "a margin such as + 0.1, or 'and'", ""),
    "cost(new) = cost(current)": (10, "'>' or '<'", ""),
    "new > current and": (17, ANY, ""),
    "(new > current)": (0, ANY, ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_read_is_marked(text: str) -> None:
    at, expected, meant = REFUSED[text]
    with pytest.raises(PodiumError) as error:
        parse_parts(text, ["new", "current"], ["cost"])
    assert str(error.value) == (
        f"the gate cannot be read here; podium expects {expected}\n\n  {text}\n  {' ' * at}^\n\n"
        f"Hint: {meant}{WRITE} {USES}"
    )


def test_a_policy_against_itself_and_an_endless_margin() -> None:
    with pytest.raises(PodiumError, match=r"^the gate compares 'new' with itself: cost\(new\) < cost\(new\)\n"):
        parse_parts("new > current and cost(new) < cost(new)", POLICIES, OUTCOMES)
    with pytest.raises(PodiumError, match=r"^the margin of the gate must be finite\n"):
        parse_parts("cost(new) < cost(current) + 1e999", POLICIES, OUTCOMES)


# --- on a log ------------------------------------------------------------------------------------------------------


def make_columns(rows: int = 400) -> dict[str, Any]:
    """`b` brings 0.25 more visits than `a` and costs 0.5 more, of about 1."""
    rng = np.random.default_rng(1)
    actions = rng.choice(["a", "b"], size=rows)
    return {
        "age": rng.integers(3, size=rows),
        "action": actions,
        "reward": (rng.random(rows) < 0.3 + 0.25 * (actions == "b")).astype(float),
        "cost": 1 + 0.5 * (actions == "b") + 0.2 * rng.normal(size=rows),
        "noise": rng.normal(size=rows),
        "propensity": np.full(rows, 0.5),
    }


ASKED = {"new": "constant:b", "current": "constant:a"}


@pytest.fixture(scope="module")
def result() -> podium.Comparison:
    return podium.compare(podium.Log.from_columns(make_columns()), ASKED, also=["cost:lower", "noise"])


GATES = {
    "new > current and cost(new) < cost(current) + .65": (0, [0, 0]),
    "new > current and cost(new) < cost(current) + 65%": (0, [0, 0]),
    "new > current and cost(new) < cost(current) + .5": (3, [0, 3]),
    "new > current and noise(new) > noise(current)": (3, [0, 3]),
    "new > current and cost(new) < cost(current) + 5%": (4, [0, 4]),
    "noise(new) > noise(current) and cost(new) < cost(current)": (4, [3, 4]),
    "current > new and cost(new) > cost(current)": (4, [4, 0]),
    "current < new and cost(current) < cost(new) - .3": (0, [0, 0]),
    "reward(new) > reward(current) and new > current - 10%": (0, [0, 0]),
    "noise(new) > noise(current) - 5%": (3, [3]),
}


@pytest.mark.parametrize("gate", GATES)
def test_all_parts_must_hold(gate: str, result: podium.Comparison) -> None:
    code, parts = GATES[gate]
    answer = result.gate(gate)
    assert answer.exit_code == code
    found = answer.to_dict()
    assert [part["exit_code"] for part in found["parts"]] == parts
    assert found["probability"] == min(part["probability"] for part in found["parts"])
    assert found["verdict"] == {0: "holds", 3: "cannot tell", 4: "the opposite holds"}[code]
    assert "parts" not in found["parts"][0]


def test_a_part_alone_is_answered_like_the_same_condition_of_before(result: podium.Comparison) -> None:
    old, new = (
        result.gate("new > current - 0.1").to_dict(),
        result.gate("reward(new) > reward(current) - 0.1").to_dict(),
    )
    assert {k: v for k, v in old.items() if k not in ("condition", "parts")} == {
        k: v for k, v in new.items() if k not in ("condition", "parts")
    }
    assert result.gate("current < new + .1").probability == result.gate("new > current - .1").probability
    assert [
        part["outcome"] for part in result.gate("cost(new) < cost(current) and new > current").to_dict()["parts"]
    ] == [
        "cost",
        None,
    ]


def test_margins_in_percent_are_less_sure_than_the_same_number(result: podium.Comparison) -> None:
    """The value that the percentage is of has an error too."""
    value = result.outcomes["cost"].estimates["current"]["DRE"]
    assert value is not None
    for share in (0.3, 0.45, 0.6, 0.65):
        percent = result.gate(f"cost(new) < cost(current) + {100 * share:.12f}%").probability
        number = result.gate(f"cost(new) < cost(current) + {share * value:.12f}").probability
        assert abs(percent - 0.5) < abs(number - 0.5)


def test_a_percentage_of_nothing_stays_open(result: podium.Comparison) -> None:
    assert result.gate("noise(new) > noise(current) - 500%").reasons == (
        "A margin in percent needs the value of 'current', and DRE does not show it to be clearly above 0",
    )


def test_sentence(result: podium.Comparison) -> None:
    lines = result.gate("new > current and cost(new) < cost(current) + 5%").sentence().split("\n")
    assert lines[0] == (
        "Gate 'new > current and cost(new) < cost(current) + 5%': the opposite holds. 1 of 2 parts hold."
    )
    assert lines[1].startswith("Part 'new > current': holds (>99.9% sure). new - current is 0.")
    assert lines[2].startswith(
        "Part 'cost(new) < cost(current) + 5%': the opposite holds (>99.9% sure). cost(new) - cost(current) is 0."
    )


def test_less_than_is_ambiguous_where_lower_is_better() -> None:
    columns = make_columns()
    log = podium.Log.from_columns(columns, reward="cost", state="age")
    result = podium.compare(log, ASKED, lower_is_better=True)
    assert result.gate("current > new").exit_code == 0
    assert result.gate("cost(current) < cost(new)").exit_code == 0
    with pytest.raises(PodiumError) as error:
        result.gate("current < new")
    assert str(error.value) == (
        "'<' is ambiguous in 'current < new', since lower is better\n\n"
        'Hint: write "current > new" if current is to be better, or "cost(current) < cost(new)" if its cost is to be '
        "lower."
    )


# --- groups --------------------------------------------------------------------------------------------------------


def make_groups(loss: float, seed: int = 0) -> dict[str, Any]:
    """600 rows in which action b gains 1 on phones and loses `loss` on TVs."""
    rng = np.random.default_rng(seed)
    device = rng.choice(["phone", "tv"], 600)
    call = rng.random(600) < 0.5
    gain = np.where(device == "phone", 1.0, -loss)
    return {
        "device": device.astype(object),
        "age": rng.integers(20, 70, 600).astype(float),
        "action": np.where(call, "b", "a").astype(object),
        "reward": gain * call + rng.normal(0, 0.4, 600),
        "minutes": np.where(call, 2.0, 0.5) + rng.normal(0, 0.2, 600),
        "propensity": np.full(600, 0.5),
    }


@pytest.fixture(scope="module", params=[False, True], ids=["gains", "costs"])
def in_groups(request: pytest.FixtureRequest) -> podium.Comparison:
    """By device, with a further outcome; once more with rewards that are costs."""
    columns = make_groups(loss=0.5)
    if request.param:
        columns["reward"] = -columns["reward"]
    log = podium.Log.from_columns(columns, state=["device", "age"])
    return podium.compare(log, ASKED, by="device", also=["minutes:lower"], lower_is_better=request.param)


@pytest.mark.parametrize(
    ("gate", "code", "reasons"),
    [
        ("new > current - 0.8 in every device", 0, ()),
        ("new > current - 0.5 in every device", 3, ("The log cannot tell in 1 of 2 groups: 'tv'",)),
        ("new > current - 0.2 in every device", 4, ("It does not hold for 'tv'",)),
        ("new > current + 0.5 in every device", 4, ("It does not hold for 'tv'",)),
        ("current > new in every device", 4, ("It does not hold for 'phone'",)),
        ("minutes(new) < minutes(current) + 2 in every device", 0, ()),
        ("minutes(new) < minutes(current) in every device", 4, ("It does not hold for 'phone', 'tv'",)),
    ],
)
def test_a_part_in_every_group(in_groups: podium.Comparison, gate: str, code: int, reasons: tuple[str, ...]) -> None:
    answer = in_groups.gate(gate)
    assert (answer.exit_code, answer.reasons) == (code, reasons)
    assert in_groups.gate(f"new > current - 9 and {gate}").exit_code == code


def test_parts_in_groups_agree_with_the_claims_of_groups(in_groups: podium.Comparison) -> None:
    """Non-inferiority is what `group_claims` says, margin by margin."""
    for margin in (0.0, 0.2, 0.4, 0.5, 0.6, 0.8):
        claim = group_claims(in_groups.groups, "new", "current", margin, by="device")
        answer = in_groups.gate(f"new > current - {margin} in every device")
        assert (answer.verdict, answer.probability) == (claim.verdict, pytest.approx(claim.probability))


def test_a_silent_group_leaves_a_part_open() -> None:
    columns = make_groups(loss=-1.0)
    columns["device"][:590], columns["device"][590:] = "phone", "tv"
    result = podium.compare(podium.Log.from_columns(columns, state="age"), ASKED, by="device")
    answer = result.gate("new > current - 5 in every device")
    assert (answer.exit_code, answer.reasons) == (
        3,
        (
            "The log cannot tell in 1 of 2 groups: 'tv'",
            "The group has 10 rows, and a claim needs 20",
        ),
    )


def test_that_a_part_fails_somewhere_allows_for_the_number_of_groups() -> None:
    """A probability of 1% excludes a claim in one group, but not in one of four."""
    groups = [SimpleNamespace(usable=True, claim_level=0.95) for _ in range(4)]
    assert in_every(groups[:1], [0.01]) == ([0], [])
    assert in_every(groups, [0.01, 0.99, 0.99, 0.99]) == ([], [0])
    assert in_every(groups, [0.004, 0.99, 0.003, 0.99]) == ([2, 0], [])


def test_a_percentage_in_every_group_is_refused(in_groups: podium.Comparison) -> None:
    with pytest.raises(PodiumError) as error:
        in_groups.gate("new > current - 5% in every device")
    assert str(error.value) == (
        "a margin in percent cannot be judged in every group\n\nHint: give the margin as a number."
    )


def test_outputs_show_groups_then_outcomes_then_the_gate(in_groups: podium.Comparison) -> None:
    gate = in_groups.gate("new > current - 0.8 in every device and minutes(new) < minutes(current) + 2")
    for shown in (in_groups.text(gate=gate, verbose=True), in_groups.to_markdown(gate, verbose=True)):
        first = ("Warning", "Ranking", "Pairs", "Relative lift", "Groups", "Outcome minutes", "Gate ", "Part ", "Log (")
        places = [shown.index(title) for title in first]
        assert places == sorted(places)
    assert in_groups.text().startswith(in_groups.answer[:40])
    assert set(in_groups.to_dict()["outcomes"]["minutes"]["groups"][0]) == set(in_groups.to_dict()["groups"][0])


def test_an_outcome_makes_no_groups() -> None:
    log = podium.Log.from_columns(make_groups(loss=0.5), state=["device", "age"])
    with pytest.raises(PodiumError) as error:
        podium.compare(log, ASKED, by="minutes", also="minutes")
    assert str(error.value) == (
        "column 'minutes' cannot make groups: it is an outcome, which depends on the action that was chosen\n\n"
        "Hint: group by a column that is known before the action."
    )
    with pytest.raises(PodiumError, match=r"^column 'reward' cannot make groups: it is the reward"):
        podium.compare(log, ASKED, by="reward", worth={"minutes": -0.1})


def test_options_are_written_as_the_call_that_gives_them(in_groups: podium.Comparison) -> None:
    options = replace(
        in_groups.basis.options, lower_is_better=False, worth=(("minutes", -0.5),), difference=0.1, since=3
    )
    assert options.as_python() == (
        "podium.compare(log, policies, by=['device'], also=['minutes:lower'], worth={'minutes': -0.5}, difference=0.1, "
        "since=3)"
    )


@pytest.mark.parametrize(("margin", "code"), [(0.8, 0), (0.5, 3), (0.2, 4)])
def test_a_gate_that_names_a_column_compares_its_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], margin: float, code: int
) -> None:
    columns = make_groups(loss=0.5)
    path = tmp_path / "log.csv"
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    gate = f"new > current - {margin} in every device"
    given = ["--policy", "new=constant:b", "--policy", "current=constant:a", "--state", "device", "--state", "age"]
    assert main(["compare", str(path), *given, "--gate", gate, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert {group["value"] for group in found["groups"]} == {"phone", "tv"}
    assert found["gate"]["exit_code"] == code


def test_groups_that_were_not_asked_for(result: podium.Comparison) -> None:
    with pytest.raises(PodiumError) as error:
        result.gate("new > current - .05 in every age")
    assert str(error.value) == (
        "the gate asks for every age, and the comparison has no groups of that column\n\nHint: compare with by='age' "
        "(--by age)."
    )
    with pytest.raises(PodiumError) as error:
        result.gate("new > current - .05 in every agge")
    assert str(error.value) == (
        "the log has no column 'agge' for the groups of the gate\n\nHint: did you mean 'age'? the columns are age, "
        "action, reward, cost, noise, propensity."
    )


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    columns = make_columns()
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ["compare", "log.csv", "--policy", "new=constant:b", "--policy", "current=constant:a"]
COMMAND += ["--also", "cost:lower", "--also", "noise"]


@pytest.mark.parametrize(
    ("gate", "code", "said"),
    [
        ("new > current and cost(new) < cost(current) + .65", 0, "deploy\n0\n"),
        ("new > current and cost(new) < cost(current) + .5", 3, "no\n3\n"),
        ("new > current and cost(new) < cost(current)", 4, "no\n4\n"),
        ("new > current and cost(new < cost(current)", 2, "no\n2\n"),
    ],
)
def test_shell_pipeline(gate: str, code: int, said: str, folder: Path) -> None:
    """The gate decides what a shell script goes on with."""
    words = " ".join(f"'{word}'" for word in COMMAND)
    script = f"'{sys.executable}' -m podium {words} --gate '{gate}' >answer.txt 2>error.txt && echo deploy || echo no\n"
    script += f"'{sys.executable}' -m podium {words} --gate '{gate}' >/dev/null 2>&1; echo $?\n"
    source = str(Path(podium.__file__).parents[1])
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}, cwd=folder
    )
    assert done.stdout == said
    assert ((folder / "error.txt").read_text() == "") == (code != 2)
    assert ((folder / "answer.txt").read_text() == "") == (code == 2)


def test_json_of_the_gate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--gate", "new > current and cost(new) < cost(current) + 65%", "--json"]) == 0
    gate = json.loads(capsys.readouterr().out)["gate"]
    assert set(gate) == {
        "condition",
        "probability",
        "verdict",
        "exit_code",
        "reasons",
        "difference",
        "low",
        "high",
        "parts",
    }
    assert (gate["difference"], gate["low"], gate["high"]) == (None, None, None)
    assert [part["condition"] for part in gate["parts"]] == ["new > current", "cost(new) < cost(current) + 65%"]
    assert all(part["low"] < part["difference"] < part["high"] for part in gate["parts"])
