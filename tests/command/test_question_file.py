"""Question files: `podium run` answers as `podium compare` does, and refuses what is wrong with its line."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.command.arguments import build_parser
from podium.command.cli import main
from podium.command.question_file import parse_question, question_text, read_question
from podium.command.question_keys import BY_HAND, FILE, SECTIONS, question_keys
from podium.data.errors import PodiumError
from podium.worlds.simulator import Programme

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
POLICIES = {"now": "logged", "new": "sql:CASE WHEN age > 65 THEN 'call' ELSE 'sms' END"}
TWO = ["--policy", "now=logged", "--policy", f"new={POLICIES['new']}"]
Sections = dict[str, dict[str, Any]]

# What a file says (beside the log and two policies), and the same as options of `podium compare`.
SAME: dict[str, tuple[Sections, list[str]]] = {
    "nothing else": ({}, []),
    "roles": (
        {"log": {"action": "action", "reward": "reward", "state": ["age", "missed"], "unit": "missed"}},
        ["--action", "action", "--reward", "reward", "--state", "age", "--state", "missed", "--unit", "missed"],
    ),
    "gate and level": (
        {"question": {"gate": "new > now - 0.02", "level": 0.9, "difference": 0.05}},
        ["--gate", "new > now - 0.02", "--level", "0.9", "--difference", "0.05"],
    ),
    "a look": (
        {"question": {"look": "1/4", "joint": True, "lower-is-better": False}},
        ["--look", "1/4", "--joint"],
    ),
    "groups": ({"question": {"by": ["age:40,65", "missed"]}}, ["--by", "age:40,65", "--by", "missed"]),
    "one group": ({"question": {"by": "age"}}, ["--by", "age"]),
    "costs": (
        {"question": {"cost": {"call": 0.25, "sms": 1}, "lower-is-better": True}},
        ["--cost", "call=0.25", "--cost", "sms=1", "--lower-is-better"],
    ),
    "a method": (
        {"question": {"estimator": "DRE", "baseline": "0.25", "verdicts": "paired t", "bootstrap": 20, "seed": 3}},
        ["--estimator", "DRE", "--baseline", "0.25", "--verdicts", "paired t", "--bootstrap", "20", "--seed", "3"],
    ),
    "a table as policy": (
        {"policies": {"table": "tables/rule.csv"}},
        ["--policy", "table=tables/rule.csv"],
    ),
    "action features": (
        {"log": {"action-features": "tables/features.csv", "engine": "memory"}},
        ["--action-features", "tables/features.csv", "--engine", "memory"],
    ),
    "names and time": (
        {"log": {"time": "time", "text": ["missed"], "actions": "none,call,email,letter,sms,fax"}},
        ["--time", "time", "--text", "missed", "--actions", "none,call,email,letter,sms,fax"],
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the log of the demo, a policy as a table, and features of its actions."""
    Programme().draw(120, 3).write_csv(tmp_path / "log.csv")
    (tmp_path / "tables").mkdir()
    chosen = "".join(f"{['call', 'sms', 'none'][row % 3]}\n" for row in range(120))
    (tmp_path / "tables" / "rule.csv").write_text(f"action\n{chosen}", encoding="utf-8")
    costs = {"none": 0, "call": 3, "email": 0.5, "letter": 1, "sms": 0.75}
    features = "".join(f"{action},{cost}\n" for action, cost in costs.items())
    (tmp_path / "tables" / "features.csv").write_text(f"action,cost\n{features}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def file_with(sections: Sections) -> str:
    """A question about the log with two policies, and what else is asked."""
    base: Sections = {"log": {"file": "log.csv"}, "policies": POLICIES}
    return question_text({name: base.get(name, {}) | sections.get(name, {}) for name in SECTIONS})


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--json"])
    out, error = capsys.readouterr()
    assert error == ""
    return code, json.loads(out)


def refused(capsys: pytest.CaptureFixture[str], content: str, *arguments: str) -> str:
    """The message of `podium run` about a file; nothing is printed or written beside it."""
    Path("podium.toml").write_text(content, encoding="utf-8")
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    assert main(["run", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == before
    return error.removeprefix("podium: ").removesuffix("\n")


# --- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAME)
def test_run_answers_as_compare_does(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sections, options = SAME[name]
    text = file_with(sections)
    Path("podium.toml").write_text(text, encoding="utf-8")
    code, asked = answer(capsys, "run")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert asked.pop("question") == {"file": "podium.toml", "sha256": sha256, "overridden": []}
    assert (code, asked) == answer(capsys, "compare", "log.csv", *TWO, *options)


def test_paths_are_read_from_the_folder_of_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("july").mkdir()
    for name in ("log.csv", "tables"):
        shutil.move(name, f"july/{name}")
    sections = {"log": {"action-features": "tables/features.csv"}, "policies": {"table": "tables/rule.csv"}}
    sections["report"] = {"html": "report.html"}
    Path("july/q.toml").write_text(file_with(sections), encoding="utf-8")
    _, asked = answer(capsys, "run", "july/q.toml")
    assert asked.pop("question")["file"] == "q.toml"
    given = ["--policy", "table=july/tables/rule.csv", "--action-features", "july/tables/features.csv"]
    assert asked == answer(capsys, "compare", "july/log.csv", *TWO, *given)[1]
    assert "<dt>question</dt><dd>q.toml, SHA-256 " in Path("july/report.html").read_text(encoding="utf-8")


def test_running_twice_gives_the_same_bytes(folder: Path) -> None:
    Path("podium.toml").write_text(file_with({"question": {"gate": "new > now"}}), encoding="utf-8")
    command = [sys.executable, "-m", "podium", "run", "--json"]
    first, second = (subprocess.run(command, capture_output=True, check=False) for _ in range(2))
    assert first.stdout == second.stdout != b""
    assert (first.returncode, first.stderr) == (second.returncode, b"")


@pytest.mark.parametrize(("gate", "code"), [("new > now", 0), ("now > never", 3), ("now > new", 4)])
def test_exit_codes_are_those_of_the_gate(
    gate: str, code: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections: Sections = {"policies": {"never": "constant:none"}, "question": {"gate": gate}}
    Path("podium.toml").write_text(file_with(sections), encoding="utf-8")
    assert answer(capsys, "run")[0] == code


def test_terminal_and_report_name_the_question(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = file_with({})
    Path("podium.toml").write_text(text, encoding="utf-8")
    assert main(["run", "--html", "report.html", "--level", "0.9"]) == 0
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    lines = f"Question: podium.toml, SHA-256 {sha256}\nOverridden on the command line: --level 0.9\n"
    assert capsys.readouterr().out.endswith(f"\nReport: report.html\n\n{lines}")
    page = Path("report.html").read_text(encoding="utf-8")
    said = f"podium.toml, SHA-256 {sha256}. Overridden on the command line: --level 0.9"
    assert f"<dt>question</dt><dd>{said}</dd>" in page
    assert "podium run --html report.html --level 0.9" in page


def test_the_command_line_overrides_the_file_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sections: Sections = {"question": {"level": 0.9, "by": ["age"], "seed": 3}}
    Path("podium.toml").write_text(file_with(sections), encoding="utf-8")
    given = ["--level", "0.8", "--by", "missed", "--seed", "3", "--joint"]
    more = ["--policy", "new=uniform", "--policy", "sms=constant:sms"]
    _, asked = answer(capsys, "run", *given, *more)
    changed = ["--policy", "new=uniform", "--policy", "sms=constant:sms", "--joint", "--level", "0.8", "--by", "missed"]
    assert sorted(asked.pop("question")["overridden"]) == sorted(changed)  # the seed is the file's own
    policies = ["--policy", "now=logged", "--policy", "new=uniform", "--policy", "sms=constant:sms"]
    assert asked == answer(capsys, "compare", "log.csv", *policies, *given)[1]


def test_a_gate_may_name_a_policy_of_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("podium.toml").write_text(file_with({"question": {"gate": "sms > now - 10"}}), encoding="utf-8")
    assert answer(capsys, "run", "--policy", "sms=constant:sms")[0] == 0


def test_a_report_never_replaces_the_question(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, file_with({}), "--html", "podium.toml", "--overwrite") == (
        "cannot write 'podium.toml': it is an input of this run, 'podium.toml'\n\nHint: name another file."
    )


# --- keys --------------------------------------------------------------------------------------------------------


def test_every_option_of_compare_can_stand_in_a_file(folder: Path) -> None:
    """Options that are added to the parser work without a change here."""
    keys = question_keys()
    plain = build_parser().parse_args(["compare", "log.csv"])
    tried = 0
    for name, key in keys.items():
        if name in (FILE, "policy", *BY_HAND):
            continue
        line = key.example(None)
        log = "file = 'log.csv'\n"
        text = f"[log]\n{log}{line}\n" if key.section == "log" else f"[log]\n{log}[{key.section}]\n{line}\n"
        arguments, _ = parse_question(text.encode()).ask()
        found = build_parser().parse_args(arguments)
        value, written = getattr(found, key.action.dest), next(iter(tomllib.loads(line).values()))
        assert value in (written, [written]), name
        tried += 1
        others = {dest for dest in vars(found) if getattr(found, dest) != getattr(plain, dest)}
        assert others <= {key.action.dest}, name
    assert tried > 40


@settings(deadline=None, max_examples=40, derandomize=True)  # every example builds two parsers
@given(st.dictionaries(TEXTS.filter(lambda name: name and "=" not in name), TEXTS.filter(bool)), TEXTS)
def test_odd_names_and_texts_arrive_as_they_were_written(policies: dict[str, str], text: str) -> None:
    specs = {name: f"sql:{spec}" for name, spec in policies.items()}
    sections = {"log": {"file": "/", "reward": text, "state": [text, "-x"]}, "policies": specs}
    comments = {(): text, ("log", "file"): text, ("policies",): text}
    question = parse_question(question_text(sections, comments).encode())
    assert {name: dict(entries) for name, entries in question.sections.items()} == sections
    found = build_parser().parse_args(question.ask()[0])
    assert (found.log, found.reward, found.state) == ("/", text, [text, "-x"])
    assert found.policy == ([f"{name}={spec}" for name, spec in specs.items()] or None)


# --- refusals ----------------------------------------------------------------------------------------------------

LOG = "[log]\nfile = 'log.csv'\n"
TOML_HINT = 'texts stand in quotes (action = "reminder"), lists in brackets, and a key stands only once in its section.'
GATE_HINT = 'write gate = "new > current", or with a margin that does no harm: "new > current - 0.02".'
WRONG = {
    "bad TOML": (
        "[log]\nfile = log.csv\n",
        "podium.toml, line 2, column 8: this is not valid TOML: invalid value",
        TOML_HINT,
    ),
    "no log": (
        "[policies]\na = 'uniform'\n",
        "podium.toml: it does not name the log",
        'write file = "log.csv" below [log]; podium init LOG writes a question file.',
    ),
    "unknown section": (
        f"{LOG}\n[polices]\nnew = 'uniform'\n",
        "podium.toml, line 4: there is no section [polices]",
        "did you mean 'policies'? the sections are [log], [policies], [question], [report].",
    ),
    "a key outside of sections": (
        f"level = 0.9\n{LOG}",
        "podium.toml, line 1: 'level' stands outside of a section",
        "move it below [question].",
    ),
    "a section that is not one": (
        f"question = 3\n{LOG}",
        "podium.toml, line 1: question must be a section; it is 3",
        "write [question] on a line of its own, and its keys below.",
    ),
    "unknown key": (
        f"{LOG}# ids\nuint = 'patient'\n",
        "podium.toml, line 4: there is no key 'uint'",
        "did you mean 'unit'? [log] may have action, action-features, actions, behavior, bounds, continuous, "
        "date-format, decimal, drop-missing, eligible, engine, episodes, file, ineligible, logged-by, logger, "
        "memory-limit, propensity, reward, sample-rows, sheet, state, success, temp-dir, text, threads, time, unit.",
    ),
    "a key of another section": (
        f"{LOG}gate = 'a > b'\n",
        "podium.toml, line 3: 'gate' does not belong into [log]",
        "move it below [question].",
    ),
    "policies elsewhere": (
        f"{LOG}policy = 'uniform'\n",
        "podium.toml, line 3: policies do not belong into [log]",
        'write them below [policies]: new = "constant:call".',
    ),
    "trust": (
        f"{LOG}[question]\ntrust = ['model.zip']\n",
        "podium.toml, line 4: 'trust' cannot stand in a question file",
        "give it when the question is asked: podium run --trust",
    ),
    "a text for a number": (
        f"{LOG}[question]\nlevel = 'high'\n",
        "podium.toml, line 4: level must be a number; it is 'high'",
        "write level = 0.95.",
    ),
    "a fraction for a whole number": (
        f"{LOG}[question]\nseed = 1.5\n",
        "podium.toml, line 4: seed must be a whole number; it is 1.5",
        "write seed = 0.",
    ),
    "a number for a text": (
        f"{LOG}[question]\nbaseline = 0.5\n",
        "podium.toml, line 4: baseline must be a text; it is 0.5",
        'write baseline = "0.5".',
    ),
    "a text for a flag": (
        f"{LOG}drop-missing = 'yes'\n",
        "podium.toml, line 3: drop-missing must be true or false; it is 'yes'",
        "write drop-missing = true.",
    ),
    "numbers for texts": (
        f"{LOG}state = [\n  'age',\n  3,\n]\n",
        "podium.toml, line 3: state must be a text or a list of texts; it is ['age', 3]",
        'write state = "COL".',
    ),
    "a table where none is": (
        f"{LOG}[question]\ncost = 3\n",
        "podium.toml, line 4: cost must be a table, such as {ACTION = C}, or a list of texts; it is 3",
        'write cost = ["ACTION=C"].',
    ),
    "too few numbers": (
        f"{LOG}bounds = [1]\n",
        "podium.toml, line 3: bounds must be a list of 2 numbers; it is [1]",
        "write bounds = [1, 1].",
    ),
    "a choice that there is not": (
        f"{LOG}engine = 'duckbd'\n",
        'podium.toml, line 3: engine must be one of "auto", "memory", "duckdb", "spark"; it is \'duckbd\'',
        "did you mean 'duckdb'? write engine = \"auto\".",
    ),
    "a policy that is not a text": (
        f"{LOG}[policies]\nnew = 3\n",
        "podium.toml, line 4: the policy 'new' must be a text; it is 3",
        "a SPEC is one of column:NAME, file.csv, constant:ACTION, shares:A=.4,B=.6, uniform, logged, sql:EXPRESSION, "
        "package.module:object, learned:package.module:object, model.skops, sb3:ALGO:model.zip, vw:predictions.txt.",
    ),
    "a name with an equals sign": (
        f"{LOG}[policies]\n'a=b' = 'uniform'\n",
        "podium.toml, line 4: the name of the policy 'a=b' is empty or contains '='",
        "give it another name.",
    ),
    "a log that is not there": (
        "[log]\nfile = 'visits.csv'\n",
        "podium.toml, line 2: there is no file 'visits.csv'",
        "paths are read from the folder of the question file.",
    ),
    "a gate with a typo": (
        f"{LOG}[policies]\nnew = 'uniform'\nnow = 'logged'\n[question]\ngate = 'nwe > now'\n"
        "[report]\nhtml = 'r.html'\n",
        "podium.toml, line 7: the gate 'nwe > now' is not of the form A > B or A > B - margin; "
        "the policies are new, now",
        f'did you mean "new > now"? {GATE_HINT}',
    ),
    "a log that is not there and a gate with a typo": (
        "[log]\nfile = 'visits.csv'\n[policies]\nnew = 'uniform'\nnow = 'logged'\n[question]\ngate = 'nwe > now'\n",
        "podium.toml has 2 problems:\n- line 2: there is no file 'visits.csv'\n- line 7: the gate 'nwe > now' is not "
        "of the form A > B or A > B - margin; the policies are new, now",
        f'Paths are read from the folder of the question file. Did you mean "new > now"? {GATE_HINT}',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_its_line(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, message, hint = WRONG[name]
    assert refused(capsys, content) == f"{message}\n\nHint: {hint}"


def test_no_policies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("log.csv").read_text(encoding="utf-8").splitlines()
    width = next(i for i, header in enumerate(lines[0].split(",")) if header.startswith("pi_"))
    plain = "\n".join(",".join(line.split(",")[:width]) for line in lines)
    Path("log.csv").write_text(plain, encoding="utf-8")
    assert refused(capsys, LOG) == (
        "no policies to compare\n\n"
        'Hint: name them below [policies] in podium.toml: new = "constant:A"; or add pi_<name> columns to the log.'
    )


def test_files_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"]) == 2
    hint = "podium init LOG writes a question file. podium run FILE answers it."
    assert capsys.readouterr().err == f"podium: there is no file 'podium.toml'\n\nHint: {hint}\n"
    assert main(["run", "tables"]) == 2
    hint = "check the path and its permissions."
    assert capsys.readouterr().err == f"podium: cannot read 'tables': {os.strerror(errno.EISDIR)}\n\nHint: {hint}\n"
    Path("latin.toml").write_bytes(b"[log]\n# caf\xe9\nfile = 'log.csv'\n")
    assert main(["run", "latin.toml"]) == 2
    assert capsys.readouterr().err == "podium: latin.toml, line 2: this is not UTF-8\n\nHint: save the file as UTF-8.\n"
    assert main(["run", "log.csv"]) == 2
    message = capsys.readouterr().err
    assert re.match(r"podium: log.csv, line 1, column \d+: this is not valid TOML: ", message)
    assert message.endswith("\n\nHint: podium init LOG writes a question file.\n")


def test_studio_can_check_a_file_that_is_not_on_disk() -> None:
    with pytest.raises(PodiumError, match=r"^q\.toml, line 2: there is no key 'lvel'"):
        parse_question(b"[question]\nlvel = 0.9\n[log]\nfile = '/'\n", "q.toml")


# --- podium init -------------------------------------------------------------------------------------------------


def test_init_writes_a_question_that_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "log.csv"]) == 0
    assert capsys.readouterr().out == "Wrote podium.toml. Edit it, then run: podium run\n"
    _, asked = answer(capsys, "run")
    assert {policy["name"] for policy in asked["policies"]} >= {"current", "random"}
    assert asked["log"]["rows"] == 120


def test_init_guesses_roles_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    rows = [f"P{100 + i},{20 + i % 50},{['drug', 'advice'][i % 3 == 0]},{['Yes', 'No'][i % 2]}" for i in range(90)]
    table = "\n".join(["Patient ID,Patient Age,Treatment,Recovered", *rows, "P900,30,drug,"])
    Path("data/visits.csv").write_text(table + "\n", encoding="utf-8")
    Path("questions").mkdir()
    assert main(["init", "data/visits.csv", "questions/q.toml"]) == 0
    assert capsys.readouterr().out == "Wrote questions/q.toml. Edit it, then run: podium run questions/q.toml\n"
    text = Path("questions/q.toml").read_text(encoding="utf-8")
    assert (
        'file = "../data/visits.csv"\naction = "Treatment"  # by its name\nreward = "Recovered"  # by its name\n'
        in text
    )
    assert '\nstate = ["Patient Age"]  # every column that has no other role; ' in text
    assert (
        "\ndrop-missing = true  # column 'Recovered' must be a number; row 91 (line 92) holds nothing (1 row)\n" in text
    )
    assert "\n# Left out: Patient ID (it holds ids: no state unless you name it)\n" in text
    assert '\n"always drug" = "constant:drug"\n"always advice" = "constant:advice"\n' in text
    assert '\n# gate = "always drug > always advice"\n' in text
    _, asked = answer(capsys, "run", "questions/q.toml")
    assert asked["log"]["rows"] == 90
    sections = dict(read_question("questions/q.toml").sections)
    asked_for = re.sub(r"^# (\S+ = )", r"\1", text, flags=re.MULTILINE)  # what the comments ask for can be written
    assert {*sections} == {"log", "policies", "question", "report"}
    assert parse_question(asked_for.encode(), folder="questions").sections["question"]["look"] == "1/4"


def test_init_asks_for_what_it_cannot_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{i % 7}" for i in range(30))
    Path("log.csv").write_text(f"first,second\n{rows}\n", encoding="utf-8")
    assert main(["init", "log.csv"]) == 0
    out = capsys.readouterr().out
    assert (
        out
        == "Wrote podium.toml. The column of the action could not be found: name it. Edit it, then run: podium run\n"
    )
    text = Path("podium.toml").read_text(encoding="utf-8")
    assert '\n# Which column holds the action that was taken?\n# action = "COLUMN"\n' in text


def test_init_never_overwrites_without_being_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("podium.toml").write_text("mine = true\n", encoding="utf-8")
    assert main(["init", "log.csv"]) == 2
    hint = "name another file (podium init LOG FILE), or replace it with --overwrite."
    assert capsys.readouterr() == ("", f"podium: 'podium.toml' exists\n\nHint: {hint}\n")
    assert Path("podium.toml").read_text(encoding="utf-8") == "mine = true\n"
    assert main(["init", "log.csv", "--overwrite"]) == 0
    assert "mine" not in Path("podium.toml").read_text(encoding="utf-8")
    capsys.readouterr()
    before = Path("log.csv").read_bytes()
    assert main(["init", "log.csv", "log.csv", "--overwrite"]) == 2
    message = "cannot write 'log.csv': it is an input of this run, 'log.csv'"
    assert capsys.readouterr().err == f"podium: {message}\n\nHint: name another file.\n"
    assert Path("log.csv").read_bytes() == before


def test_init_takes_logs_of_several_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("log.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("parts").mkdir()
    for name, rows in (("a", lines[1:60]), ("b", lines[60:])):
        Path(f"parts/{name}.csv").write_text("".join([lines[0], *rows]), encoding="utf-8")
    assert main(["init", "parts/*.csv"]) == 0
    capsys.readouterr()
    _, asked = answer(capsys, "run")
    assert asked["log"]["rows"] == 120
    assert {policy["name"] for policy in asked["policies"]} >= {"current", "random"}


def test_init_without_a_log_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "visits.csv"]) == 2
    hint = "check the path; it is read from the current folder."
    assert capsys.readouterr() == ("", f"podium: there is no file 'visits.csv'\n\nHint: {hint}\n")
    assert not Path("podium.toml").exists()


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_workflow_of_the_page_runs_a_gate(folder: Path) -> None:
    """Its command, in a shell, with the question file of the page: the step fails unless the gate holds."""
    page = (Path(__file__).parents[2] / "docs" / "question-file.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (command,) = [s["run"] for s in workflow["jobs"]["gate"]["steps"] if s.get("run", "").startswith("podium")]
    Path("podium").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m podium "$@"\n', encoding="utf-8")
    Path("podium").chmod(0o755)
    for gate, code in (("new > now", 0), ("now > new", 4)):
        Path("podium.toml").write_text(file_with({"question": {"gate": gate}}), encoding="utf-8")
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(command, shell=True, env={**os.environ, "PATH": path}, check=False)
        assert done.returncode == code
        assert json.loads(Path("answer.json").read_text(encoding="utf-8"))["gate"]["exit_code"] == code
