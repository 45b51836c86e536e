"""The command: what it prints, its JSON, its exit codes, its report, and the demo."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.command.cli import main
from podium.worlds.simulator import Programme

WIDTH = 80
COMMANDS = ["compare", "evaluate", "states", "check"]
PAPER = ["--estimator", "LDE", "--verdicts", "paired t"]
PYTHON = [sys.executable, "-B", "-W", "error", "-m", "podium"]
PAIR_KEYS = {"a", "b", "difference", "low", "high", "p_better", "p_adjusted", "verdict", "path", "reasons"}
POLICY_KEYS = {"name", "rank", "rank_low", "rank_high", "score", "p_best", "estimates"}
LOG_KEYS = {"rows", "distinct", "states", "actions", "propensities"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the log of the demo."""
    Programme().draw(120, 3).write_csv(tmp_path / "log.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    answer = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert isinstance(answer, dict)
    return answer


def policies(*specs: str) -> list[str]:
    return [part for spec in specs for part in ("--policy", spec)]


# --- help and version ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [[], ["demo"], ["init"], ["run"], *([c] for c in COMMANDS)], ids=lambda a: " ".join(a) or "podium"
)
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--help"])
    out, error = capsys.readouterr()
    assert (stop.value.code, error) == (0, "")
    assert out.startswith(" ".join(["usage: podium", *arguments]))
    assert max(map(len, out.splitlines())) <= WIDTH
    if not arguments:
        assert all(f"\n    {command} " in out for command in ["demo", *COMMANDS])


def test_version(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert (stop.value.code, capsys.readouterr().out) == (0, f"podium {podium.__version__}\n")


def test_the_installed_script_and_the_module_are_the_same():
    script = Path(sys.executable).parent / "podium"
    for command in ([str(script)], PYTHON):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (f"podium {podium.__version__}\n", "")


# --- tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_text_is_plain_and_narrow(command: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main([command, "log.csv"]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= WIDTH
    for name in ("current", "sms_all", "call_over_65", "personalised", "random"):
        assert name in out
    assert not any(line != line.rstrip() for line in out.splitlines())


def test_text_says_what_was_done(folder: Path, capsys: pytest.CaptureFixture[str]):
    main(["compare", "log.csv", "--estimator", "dre", "--baseline", "0.25", "--level", "0.9", "--lower-is-better"])
    text = capsys.readouterr().out
    assert "Log (memory): 120 rows" in text
    assert "Ranked by DRE with baseline 0.25, lower is better" in text
    assert "at level 0.9" in text
    assert "90% interval" in text
    assert text.count("cannot tell") >= 1


def test_text_and_api_agree(folder: Path, capsys: pytest.CaptureFixture[str]):
    log = podium.read_log("log.csv")
    results = [podium.compare(log), podium.evaluate(log), podium.compare_states(log), podium.diagnose(log)]
    for command, result in zip(COMMANDS, results, strict=True):
        main([command, "log.csv"])
        assert capsys.readouterr().out == result.text() + "\n" == repr(result) + "\n"  # type: ignore[attr-defined]


def test_a_terminal_gets_a_bold_header(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    main(["compare", "log.csv"])
    plain = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    main(["compare", "log.csv"])
    bold = capsys.readouterr().out
    assert bold.count("\x1b[1m") == bold.count("\x1b[0m") == 2
    assert re.sub(r"\x1b\[[01]m", "", bold) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    main(["compare", "log.csv"])
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize(("columns", "most"), [("70", 70), ("100", 100), ("300", 120), ("20", 72)])
def test_tables_fit_the_terminal(
    columns: str, most: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", columns)
    main(["compare", "log.csv"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= most


def test_long_names_are_cut(folder: Path, capsys: pytest.CaptureFixture[str]):
    names = ["a very long name of a policy that nobody can remember", "日本語の方策" * 8]
    assert main(["compare", "log.csv", *policies(f"{names[0]}=uniform", f"{names[1]}=logged")]) == 0
    out = capsys.readouterr().out
    tables = [line for line in out.splitlines() if "…" in line]
    assert len(tables) >= 2
    assert all(sum(2 if ord(c) > 0x3000 else 1 for c in line) <= WIDTH for line in tables)


# --- JSON ------------------------------------------------------------------------------------------------------


def test_compare_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    answer = ask(capsys, "compare", "log.csv")
    assert {"podium", "log", "settings", "policies", "pairs", "unavailable", "warnings"} <= set(answer)
    assert answer["podium"] == podium.__version__
    assert set(answer["log"]) >= LOG_KEYS
    assert (
        answer["settings"]
        | {"estimator": "posterior", "baseline": "mean", "level": 0.95, "engine": "memory", "seed": 0}
        == (answer["settings"])
    )
    assert answer["settings"]["verdicts"] == "posterior"
    assert all(set(p) >= POLICY_KEYS for p in answer["policies"])
    assert all(set(p["estimates"]) == {"posterior", "LDE", "DRE", "IPS", "DiM"} for p in answer["policies"])
    assert all(set(p) >= PAIR_KEYS for p in answer["pairs"])
    assert len(answer["pairs"]) == 10
    scores = [p["score"] for p in answer["policies"]]
    assert scores == sorted(scores, reverse=True)
    assert [p["score"] for p in answer["policies"]] == [p["estimates"]["posterior"] for p in answer["policies"]]
    place = {p["name"]: i for i, p in enumerate(answer["policies"])}
    for pair in answer["pairs"]:
        assert place[pair["a"]] < place[pair["b"]]
        assert pair["low"] < pair["difference"] < pair["high"]
        assert 0 <= pair["p_better"] <= 1
        assert pair["verdict"] in ("better", "worse", "cannot tell")
        assert (pair["verdict"] == "cannot tell") == (pair["p_adjusted"] > 0.05) == bool(pair["reasons"])
    for p in answer["policies"]:
        claimed_better = [q for q in answer["pairs"] if q["b"] == p["name"] and q["verdict"] == "better"]
        claimed_worse = [q for q in answer["pairs"] if q["a"] == p["name"] and q["verdict"] == "better"]
        assert p["rank_low"] == 1 + len(claimed_better)
        assert p["rank_high"] == 5 - len(claimed_worse)


def test_compare_json_of_the_paper(folder: Path, capsys: pytest.CaptureFixture[str]):
    """LDE and a paired t test, one option away."""
    answer = ask(capsys, "compare", "log.csv", *PAPER)
    assert answer["settings"]["estimator"] == "LDE"
    assert answer["settings"]["verdicts"] == "paired t"
    assert all(set(p["estimates"]) == {"LDE", "DRE", "IPS", "DiM"} for p in answer["policies"])
    assert [p["score"] for p in answer["policies"]] == [p["estimates"]["LDE"] for p in answer["policies"]]
    assert all(p["path"] == "LDE" for p in answer["pairs"])
    assert all(p["low"] < p["difference"] < p["high"] for p in answer["pairs"])


def test_json_equals_the_api(folder: Path, capsys: pytest.CaptureFixture[str]):
    log = podium.read_log("log.csv")
    assert ask(capsys, "compare", "log.csv") == podium.compare(log).to_dict()
    assert ask(capsys, "evaluate", "log.csv") == podium.evaluate(log).to_dict()
    assert ask(capsys, "states", "log.csv") == podium.compare_states(log).to_dict()
    assert ask(capsys, "check", "log.csv") == podium.diagnose(log).to_dict()


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("--estimator IPS", {"estimator": "IPS"}),
        ("--estimator dim", {"estimator": "DiM"}),
        ("--baseline linear --seed 4", {"baseline": "linear", "seed": 4}),
        ("--baseline state", {"baseline": "state"}),
        ("--baseline 0.5", {"baseline": 0.5}),
        ("--baseline=-1e-3", {"baseline": -0.001}),
        ("--level 0.8 --joint", {"level": 0.8, "joint": True}),
        ("--look 3/16", {"look": (3, 16)}),
        ("--bootstrap 50 --seed 9", {"bootstrap": 50, "seed": 9}),
        ("--unit distance_km", {"unit": "distance_km"}),
        ("--lower-is-better", {"lower_is_better": True}),
        ("--normalize states", {"normalize": "states"}),
        ("--duplicates all", {"duplicates": "all"}),
        ("--policy u=uniform --policy now=logged", {"policies": {"u": "uniform", "now": "logged"}}),
        (
            "--policy \"rule=sql:CASE WHEN age > 65 THEN 'call' ELSE 'sms' END\" --policy x=column:pi_random",
            {"policies": {"rule": "sql:CASE WHEN age > 65 THEN 'call' ELSE 'sms' END", "x": "column:pi_random"}},
        ),
        ("--behavior column:propensity", {"behavior": "column:propensity"}),
    ],
)
def test_options_of_compare(options: str, arguments: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]):
    answer = ask(capsys, "compare", "log.csv", *shlex.split(options))
    assert answer == podium.compare(podium.read_log("log.csv"), **arguments).to_dict()


def test_options_of_the_log(folder: Path, capsys: pytest.CaptureFixture[str]):
    text = (folder / "log.csv").read_text()
    header, body = text.split("\n", 1)
    columns = header.split(",")
    renamed = ["when" if c == "time" else {"action": "deed", "reward": "gain"}.get(c, c) for c in columns]
    renamed = [c.replace("propensity", "p") for c in renamed]
    (folder / "other.csv").write_text(",".join(renamed) + "\n" + body)
    words = ["--action", "deed", "--reward", "gain", "--propensity", "p"]
    words += ["--time", "when"] if "time" in columns else []
    states = [f"--state={c}" for c in ("age", "missed", "distance_km")]
    assert ask(capsys, "compare", "other.csv", *words, *states) == ask(capsys, "compare", "log.csv", *states)
    fewer = ask(capsys, "compare", "log.csv", "--state", "missed")
    assert fewer["log"]["states"] < ask(capsys, "compare", "log.csv")["log"]["states"]


def test_actions_enlarge_the_space(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "few.csv").write_text("age,action,reward\n1,a,1\n1,b,0\n2,b,1\n")
    two = policies("x=uniform", "y=constant:a")
    assert ask(capsys, "compare", "few.csv", *two)["log"]["actions"] == 2
    answer = ask(capsys, "compare", "few.csv", *two, "--actions", 'a, b ,"c,d"')
    assert answer["log"]["actions"] == 3
    assert answer["unavailable"].keys() == {"DRE", "IPS", "P(best)"}
    assert all(p["estimates"]["IPS"] is None for p in answer["policies"])
    never = policies("x=uniform", "y=constant:c,d")
    assert ask(capsys, "compare", "few.csv", *never, "--actions", 'a,b,"c,d"')["log"]["actions"] == 3


def test_evaluate_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    answer = ask(capsys, "evaluate", "log.csv", "--estimator", "ips", "--estimator", "LDE")
    assert [set(p) for p in answer["policies"]] == [{"name", "estimates", "std_errors"}] * 5
    assert [list(p["estimates"]) for p in answer["policies"]] == [["IPS", "LDE"]] * 5
    assert list(ask(capsys, "evaluate", "log.csv")["policies"][0]["estimates"]) == ["LDE", "DRE", "IPS", "DiM"]
    alone = ask(capsys, "evaluate", "log.csv", *policies("only=uniform"))  # one policy is enough to evaluate
    assert [p["name"] for p in alone["policies"]] == ["only"]


def test_states_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    answer = ask(capsys, "states", "log.csv", *policies("u=uniform", "now=logged"))
    assert {"states", "share_below_minus_delta"} <= set(answer)
    assert len(answer["states"]) == answer["log"]["states"]
    for state in answer["states"]:
        assert set(state) == {"state", "rows", "values", "signs"}
        assert set(state["state"]) == {"age", "missed", "distance_km"}
        assert set(state["values"]) == {"u", "now"}
        gap = state["values"]["u"] - state["values"]["now"]
        sign = state["signs"]["u > now"]
        assert sign in (-1, 0, 1)
        assert sign * gap >= 0
    lower = ask(capsys, "states", "log.csv", *policies("u=uniform", "now=logged"), "--lower-is-better")
    signs = [[s["signs"]["u > now"] for s in a["states"]] for a in (answer, lower)]
    assert signs[0] == [-s for s in signs[1]]


def test_check_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    answer = ask(capsys, "check", "log.csv")
    assert set(answer["log"]) >= LOG_KEYS
    for policy in answer["policies"]:
        assert set(policy) >= {"name", "mass_on_logged", "ess", "max_weight", "top_row_share"}
        assert 0 <= policy["mass_on_logged"] <= 1
    assert all(set(alarm) >= {"name", "value", "meaning", "advice"} for alarm in answer["alarms"])
    assert isinstance(answer["alarms"], list)


def test_alarms(folder: Path, capsys: pytest.CaptureFixture[str]):
    rows = "".join(f"{n},a,{n % 3},0.{90 + n % 2},0.001,0.5\n" for n in range(30))
    (folder / "narrow.csv").write_text("s,action,reward,propensity,pi_rare,pi_half\n" + rows + "99,b,50,0.1,1,0.5\n")
    answer = ask(capsys, "check", "narrow.csv")
    assert {a["name"] for a in answer["alarms"]} == {"T_p", "mass_on_logged", "ess", "top_row_share"}
    main(["check", "narrow.csv"])
    assert "Alarm: " in capsys.readouterr().out


def test_a_leaked_column_is_named_and_the_remedy_works(folder: Path, capsys: pytest.CaptureFixture[str]):
    rows = [("call", int(n % 10 < 3)) for n in range(150)] + [("sms", int(n % 10 < 6)) for n in range(150)]
    lines = [f"{n % 7},{'came' if r else 'stayed away'},{a},{r},0.5,0.5" for n, (a, r) in enumerate(rows)]
    header = "home town,status,action,reward,propensity:call,propensity:sms"
    (folder / "leaked.csv").write_text("\n".join([header, *lines]) + "\n")
    asked = ["compare", "leaked.csv", *policies("call=constant:call", "sms=constant:sms"), "--gate", "sms > call"]
    assert main([*asked, "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    (fact,) = answer["pairs"][0]["reason_facts"]
    assert (fact["code"], fact["column"]) == ("column follows action", "status")
    assert answer["log"]["state_columns"] == ["home town", "status"]
    assert main([*asked, *shlex.split(fact["remedy"]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_files_give_the_same_numbers_in_every_format(folder: Path, capsys: pytest.CaptureFixture[str]):
    frame = podium.read_log("log.csv").to_frame("polars")
    frame.write_parquet("log.parquet")
    frame.write_ndjson("log.jsonl")
    expected = ask(capsys, "compare", "log.csv")
    assert ask(capsys, "compare", "log.parquet") == expected
    assert ask(capsys, "compare", "log.jsonl") == expected


# --- exit codes ------------------------------------------------------------------------------------------------


def test_interruption(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("podium.command.cli.compare", stop)
    assert main(["compare", "log.csv", "--html", "report.html"]) == 130
    assert capsys.readouterr() == ("", "podium: interrupted\n")
    assert os.listdir(folder) == ["log.csv"]


@pytest.mark.platforms("linux", "darwin")  # Windows sends no such signal
def test_interruption_from_outside(folder: Path):
    (folder / "slow.py").write_text(
        "import pathlib, time\ndef rule(states):\n    pathlib.Path('started').touch()\n    time.sleep(60)\n"
    )
    command = [*PYTHON, "compare", "log.csv", *policies("slow=slow:rule", "u=uniform")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(1000):
            if (folder / "started").exists() or process.poll() is not None:
                break
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (130, "", "podium: interrupted\n")


def test_too_little_memory(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def burst(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("podium.command.cli.compare", burst)
    assert main(["compare", "log.csv"]) == 2
    expected = "podium: there is not enough memory\n\nHint: use fewer rows, columns, policies or bootstrap draws.\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.platforms("linux", "darwin")  # needs a shell with pipes
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_reader_that_has_seen_enough(options: str, folder: Path):
    wide = ",".join(f"pi_p{k}" for k in range(150))
    rows = "".join(
        f"{n},{'ab'[n % 2]},{n % 5}," + ",".join(f"0.{(n * k) % 10}" for k in range(150)) + "\n" for n in range(30)
    )
    (folder / "wide.csv").write_text(f"s,action,reward,{wide}\n{rows}")
    command = f"{shlex.join(PYTHON)} compare wide.csv {options} | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_a_closed_pipe_from_the_start(folder: Path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PYTHON, "compare", "log.csv"], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# --- demo ------------------------------------------------------------------------------------------------------


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert main(["demo"]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert "\x1b" not in out
    assert sorted(os.listdir("podium-demo")) == ["log.csv", "report.html"]
    assert max(map(len, out.splitlines())) <= WIDTH
    result = podium.compare(podium.read_log("podium-demo/log.csv"))
    assert result.text() in out
    truth = Programme().true_values()
    lines = [line.split() for line in out.splitlines()]
    for place, name in enumerate(result.ranking):
        true_rank = 1 + sum(v > truth[name] for v in truth.values())
        assert [str(place + 1), name, f"{truth[name]:.4f}", str(true_rank)] in lines
    decided = [p for p in result.pairs if p.verdict != "cannot tell"]
    right = [p for p in decided if (p.verdict == "better") == (truth[p.a] > truth[p.b])]
    assert f"Of 10 pairs {len(decided)} are decided, {len(right)} of them rightly." in out
    assert f"Written: {Path('podium-demo/log.csv')}, {Path('podium-demo/report.html')}" in out


def test_demo_says_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    outputs = []
    for _ in range(2):
        assert main(["demo", "--out", str(tmp_path / "deep" / "folder")]) == 0
        log, report = (tmp_path / "deep" / "folder" / name for name in ("log.csv", "report.html"))
        outputs.append((capsys.readouterr().out, log.read_bytes(), report.read_bytes()))
    assert outputs[0] == outputs[1]


def test_the_next_steps_of_the_demo_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    main(["demo"])
    out = capsys.readouterr().out.replace("\\\n", "")
    steps = re.findall(r"(?m)^  \S.*?\b((?:compare|check|states|evaluate) podium-demo.*)$", out)
    assert len(steps) >= 4
    for step in steps:
        assert main(shlex.split(step)) == 0, step
        capsys.readouterr()


# --- report ----------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Every tag in turn; tags must close in order."""

    EMPTY = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_report_is_whole_and_needs_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", "log.csv", "--html", "report.html"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\nReport: report.html\n")
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    tags = [tag for tag, _ in page.seen]
    assert tags[:3] == ["html", "head", "meta"]
    assert page.seen[2][1] == {"charset": "utf-8"}
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(tags)
    assert not any(name in ("src", "style") or name.startswith("on") for _, a in page.seen for name in a)
    assert all(a["href"].startswith("#") for _, a in page.seen if a.get("href"))
    assert "http:" not in text
    assert "https" not in text
    assert "url(" not in text
    assert "@import" not in text
    result = podium.compare(podium.read_log("log.csv"))
    words = " ".join(page.words)
    assert all(name in words for name in result.ranking)
    assert tags.count("section") == 7


def test_the_report_escapes_markup(folder: Path, capsys: pytest.CaptureFixture[str]):
    evil = "<img src=x onerror=alert(1)>&\"'"
    log = f's,action,reward,"pi_{evil.replace(chr(34), chr(34) * 2)}",pi_plain\n'
    (folder / "evil.csv").write_text(log + "<b>x</b>,<i>,1,0.5,0.2\n<b>x</b>,<u>,0,0.5,0.8\n<b>x</b>,<u>,0,0.2,0.8\n")
    arguments = ["compare", "evil.csv", "--html", "report.html", "--unit", "s", "--state", "s"]
    assert main(arguments) == 0
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert not {"img", "u"} & {tag for tag, _ in page.seen}
    assert not any(name.startswith("on") for _, a in page.seen for name in a)
    assert evil in "".join(page.words)


def test_a_report_that_cannot_be_finished_leaves_nothing_behind(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fail(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    (folder / "report.html").write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    assert main(["compare", "log.csv", "--html", "report.html", "--overwrite"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("podium: cannot write 'report.html': No space left on device\n\nHint: ")
    assert sorted(os.listdir(folder)) == ["log.csv", "report.html"]
    assert (folder / "report.html").read_text() == "old"


def test_the_report_replaces_an_old_one_and_leaves_nothing_behind(folder: Path, capsys: pytest.CaptureFixture[str]):
    for _ in range(2):
        assert main(["compare", "log.csv", "--html", "report.html", "--json"]) == 0
        capsys.readouterr()
    assert main(["compare", "log.csv", "--html", "report.html", "--json", "--estimator", "DRE"]) == 0
    json.loads(capsys.readouterr().out)  # JSON alone, so that it can be piped
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert sorted(os.listdir(folder)) == ["log.csv", "report.html"]
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        assert (folder / "report.html").stat().st_mode & 0o777 == 0o666 & ~mask
