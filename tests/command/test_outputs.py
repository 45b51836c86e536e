"""Files that the command writes: an input is never replaced, and what cannot be written is told before the work."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from podium.command.cli import main
from podium.worlds.simulator import Programme

COMPARE = ["compare", "log.csv", "--estimator", "LDE", "--verdicts", "paired t"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Programme().draw(60, 3).write_csv("log.csv")
    (tmp_path / "rules.py").write_text("def sms(states):\n    return ['sms'] * len(states)\n")
    (tmp_path / "table.csv").write_text("sms,call,letter,none\n" + "1,0,0,0\n" * 60)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "--overwrite"])
@pytest.mark.parametrize(
    ("html", "options"),
    [
        ("log.csv", []),
        ("./x/../log.csv", []),
        ("table.csv", ["--policy", "t=table.csv"]),
        ("table.csv", ["--behavior", "table.csv"]),
        ("rules.py", ["--policy", "r=rules:sms"]),
        ("rules.py", ["--baseline", "rules:sms"]),
        ("model.skops", ["--policy", "m=model.skops"]),
        ("model.zip", ["--policy", "m=sb3:PPO:model.zip"]),
        ("pi.txt", ["--policy", "m=vw:pi.txt"]),
    ],
)
def test_an_input_is_never_replaced(
    html: str, options: list[str], overwrite: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "x").mkdir()
    for name in ("model.skops", "model.zip", "pi.txt"):
        (folder / name).write_text("model")
    before = contents(folder)
    assert main([*COMPARE, *options, *overwrite, "--html", html]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"podium: cannot write {html!r}: it is an input of this run")
    assert contents(folder) == before


@pytest.mark.parametrize("html", ["used_helper.py", "used_package/__init__.py", "used_package/inner.py"])
def test_code_that_a_policy_loads_is_an_input(html: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "used_package").mkdir()
    (folder / "used_package" / "__init__.py").touch()
    (folder / "used_package" / "inner.py").write_text("from used_helper import sms\n")
    (folder / "rules.py").rename(folder / "used_helper.py")
    policies = ["--policy", "r=used_package.inner:sms", "--policy", "c=constant:call"]
    before = contents(folder)
    try:
        assert main([*COMPARE, *policies, "--overwrite", "--html", html]) == 2
    finally:
        for name in ("used_helper", "used_package", "used_package.inner"):
            sys.modules.pop(name, None)
    assert capsys.readouterr().err.startswith(f"podium: cannot write {html!r}: it is an input of this run")
    assert contents(folder) == before


def test_a_file_of_a_folder_of_logs_is_an_input(folder: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("a.csv", "b.csv"):
        (folder / name).write_bytes((folder / "log.csv").read_bytes())
    assert main(["compare", "?.csv", "--html", "b.csv", "--overwrite"]) == 2
    assert "cannot write 'b.csv': it is an input of this run" in capsys.readouterr().err


@pytest.mark.parametrize("html", ["notes.txt", "", ".", "missing/r.html", "log.csv/r.html"])
def test_a_bad_place_is_told_before_the_work_begins(
    html: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (folder / "notes.txt").write_text("mine")
    monkeypatch.setattr("podium.command.cli.checked_log", lambda options: pytest.fail("the log was opened"))
    assert main([*COMPARE, "--html", html]) == 2
    assert capsys.readouterr().err.startswith("podium: ")
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_file_of_others_needs_overwrite(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "notes.txt").write_text("mine")
    assert main([*COMPARE, "--html", "notes.txt"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main([*COMPARE, "--html", "notes.txt", "--overwrite"]) == 0
    assert main([*COMPARE, "--html", "notes.txt"]) == 0
    assert 'name="generator" content="podium ' in (folder / "notes.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["log.csv", "report.html"])
def test_the_demo_does_not_replace_files_of_others(name: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    out = folder / "mine"
    out.mkdir()
    (out / name).write_text("action,reward\na,1\n")
    assert main(["demo", "--out", "mine"]) == 2
    assert f"podium: 'mine{os.sep}{name}' exists, and podium did not write it" in capsys.readouterr().err
    assert contents(out) == {name: b"action,reward\na,1\n"}
    for options in (["--overwrite"], []):
        assert main(["demo", "--out", "mine", *options]) == 0
    assert sorted(contents(out)) == ["log.csv", "report.html"]


def test_reproduce_does_not_replace_files_of_others(folder: Path, capsys: pytest.CaptureFixture[str]):
    out = folder / "site"
    out.mkdir()
    (out / "index.html").write_text("my home page")
    for experiment in ("synthetic", "classification"):
        assert main(["reproduce", experiment, "--quick", "--out", "site"]) == 2
        assert "already contains 'index.html', which podium did not write" in capsys.readouterr().err
        assert contents(out) == {"index.html": b"my home page"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--out", ""], "the name of the folder is empty"),
        (["compare", ""], "the name of the log is empty"),
        (
            ["reproduce", "synthetic", "--quick", "--workers", "0", "--out", "new"],
            "workers must be at least 1; it is 0",
        ),
        (
            ["compare", "log.csv", "--engine", "duckdb", "--threads", "1000000000"],
            "threads must be a whole number from 1",
        ),
    ],
)
def test_bad_options_write_nothing(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    before = contents(folder)
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"podium: {message}")
    assert contents(folder) == before
