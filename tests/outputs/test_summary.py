"""Every output begins with the answer, and no label can break its tables."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from samples import sample

import podium
from podium.command.cli import main
from podium.outputs.display import Table
from podium.outputs.markdown import as_markdown, escaped
from podium.outputs.report import headline

ODD = ["a|b", "`x`\nnew line", "<script>alert(1)</script>", "*bold* _it_ [link](x) \\| end"]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    return tmp_path / "demo" / "log.csv"


def odd_result() -> podium.Comparison:
    log, policies = sample(80, count=4)
    return podium.compare(log, dict(zip(ODD, policies.values(), strict=True)))


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table, by the rule of GitHub: pipes after a backslash do not separate."""
    return re.split(r"(?<!\\)(?:\\\\)*\|", line.strip("|"))


def test_every_output_begins_with_the_sentence_of_the_report() -> None:
    log, policies = sample(80)
    result = podium.compare(log, policies)
    sentence = headline(result)
    assert result.answer == result.to_dict()["answer"] == sentence
    joined = " ".join(result.text(width=200).split())
    assert joined.startswith(sentence)
    assert result.to_markdown().startswith(f"**{escaped(sentence)}**\n\n### Ranking")
    assert result._repr_html_().startswith("<p>")
    assert result._repr_html_().index("Ranking") < result._repr_html_().index("Log (memory)")


def test_what_always_stays_visible_and_what_is_verbose(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rng = np.random.default_rng(0)
    rows = [
        f"{'MAIL' if n % 7 == 0 else 'mail' if n % 2 else 'call'},{'' if n == 3 else n % 5},{rng.integers(3)}"
        for n in range(80)
    ]
    path.write_text("action,reward,age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    log = podium.read_log(path, drop_missing=True)
    result = podium.compare(log, {"m": "constant:mail", "c": "constant:call"})
    text, verbose = " ".join(str(result).split()), " ".join(result.text(verbose=True).split())
    for said in (
        result.answer,
        "Left out 1 row of 80 (--drop-missing)",
        "Warning: the logged actions 'MAIL' and 'mail' differ only by case or spaces",
        "Ranking (scores by method)",
        f"at level 0.95; assumes that {result.settings.assumes}",
        *(str(note) for note in log.notes),
    ):
        assert " ".join(said.split()) in text
    order = [
        text.index(x) for x in ("Ranking (", "Pairs", "Warning:", "Left out 1 row", "Log (memory)", "assumes that")
    ]
    assert order == sorted(order)
    assert "a claim needs an interval that excludes 0" not in text
    for line in result.header():
        assert " ".join(line.split()) in verbose


def test_warnings_that_put_the_answer_in_doubt_come_before_the_ranking() -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, 300)
    rewards = actions + rng.normal(size=300)
    states = np.column_stack([rng.normal(size=300), actions + 0.1 * rng.normal(size=300)])
    log = podium.Log(states, actions, rewards, behavior=np.full((300, 2), 0.5))
    result = podium.compare(log, {"0": "constant:0", "1": "constant:1"})
    assert any("recorded after the action" in w for w in result.warnings)
    blocks = result.text(width=100).split("\n\n")
    assert blocks[1].startswith("Warning: column")
    assert blocks[2].startswith("Ranking")


def test_no_label_breaks_a_table() -> None:
    text = odd_result().to_markdown()
    tables = [part for part in text.split("\n\n") if part.startswith("| ")]
    assert len(tables) == 2
    for table in tables:
        assert len({len(cells_of(line)) for line in table.splitlines()}) == 1
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "a\\|b" in text
    assert "\\`x\\`\\\\nnew line" in text


def test_lines_start_no_list_heading_or_quotation() -> None:
    lines = ["# a", "- b", "+ c", "1. d", "2) e", "> f", "=== g", "    code", "!x"]
    found = as_markdown([["first"], *([line] for line in lines)]).split("\n\n")[1:]
    assert found == ["\\# a", "\\- b", "\\+ c", "1\\. d", "2\\) e", "&gt; f", "\\=== g", "code", "\\!x\n"]


def test_a_table_shows_alignment_and_notes() -> None:
    table = Table("T|", ["n", "x"], [["1", "2"]], align="lr", notes=["a note"])
    assert as_markdown([["answer."], table]) == (
        "**answer.**\n\n### T\\|\n\n| n | x |\n|:---|---:|\n| 1 | 2 |\n\na note\n"
    )


def test_the_command_prints_markdown_with_the_gate(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    gate = "personalised > current"
    assert main(["compare", str(log_file), "--markdown", "--gate", gate]) == 0
    result = podium.compare(podium.read_log(log_file))
    printed = capsys.readouterr().out
    assert printed == result.to_markdown(result.gate(gate))
    assert (
        printed.index("### Pairs") < printed.index("Gate 'personalised &gt; current': holds") < printed.index("Log (")
    )
    assert main(["compare", str(log_file), "--markdown", "--json"]) == 2
    message = "podium: --json and --markdown ask for two outputs at once\n\nHint: leave one of them out.\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    "options", [["--gate", "current > personalised"], ["--markdown"], ["--json", "--gate", "current > random"]]
)
def test_the_step_summary_gets_the_markdown(
    options: list[str], log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    before = set(tmp_path.rglob("*"))
    main(["compare", str(log_file), *options])
    result = podium.compare(podium.read_log(log_file))
    gate = result.gate(options[-1]) if "--gate" in options else None
    assert summary.read_text(encoding="utf-8") == "# before\n" + result.to_markdown(gate)
    assert set(tmp_path.rglob("*")) == before


def test_without_gate_or_markdown_the_step_summary_is_left_alone(
    log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert main(["compare", str(log_file)]) == 0
    assert not (tmp_path / "summary.md").exists()


@pytest.mark.parametrize("place", ["folder", "missing/summary.md", "log"])
def test_a_step_summary_that_cannot_be_written_fails_no_gate(
    place: str, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    target = log_file if place == "log" else tmp_path / place
    content = log_file.read_bytes()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    capsys.readouterr()
    assert main(["compare", str(log_file), "--gate", "personalised > current"]) == 0
    why = {
        "folder": "it is a folder",
        "missing/summary.md": "No such file or directory",
        "log": "it is an input of this run, 'log.csv'",
    }[place]
    told = f"podium: warning: the step summary was not written: cannot write {str(target)!r}: {why}\n"
    assert capsys.readouterr().err == told
    assert log_file.read_bytes() == content


@pytest.mark.platforms("linux", "darwin")
def test_a_pipe_that_nobody_reads_is_not_waited_for(
    log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "pipe"))
    assert main(["compare", str(log_file), "--gate", "personalised > current"]) == 0
    assert "warning: the step summary was not written" in capsys.readouterr().err


def test_a_saved_answer_is_shown_again(log_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "answer.json"
    for options in ([], ["--json"], ["--markdown"], ["--verbose"], ["--gate", "current > personalised"]):
        capsys.readouterr()
        code = main(["compare", str(log_file), *options, "--save", str(saved)])
        printed = capsys.readouterr().out.removesuffix(f"\nSaved: {saved}\n")
        assert main(["show", str(saved), *options]) == code
        assert capsys.readouterr().out == printed
        assert code == (4 if "--gate" in options else 0)
    assert json.loads(saved.read_text(encoding="utf-8"))["schema"] == "podium/comparison/1"
    assert main(["show", str(log_file)]) == 2
    assert capsys.readouterr().err == (
        f"podium: {str(log_file)!r} is not whole JSON (line 1)\n\nHint: save the comparison again.\n"
    )


def test_the_smallest_difference_that_matters_is_that_of_the_report(
    log_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    page = tmp_path / "report.html"
    assert main(["compare", str(log_file), "--json", "--difference", "0.001", "--html", str(page)]) == 0
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert answer == headline(podium.compare(podium.read_log(log_file)), 0.001)
    assert f"<h1>{answer.replace('>', '&gt;')}</h1>" in page.read_text(encoding="utf-8")
