"""Streams of the command that are closed, full, or cut off in the middle: a message or silence, never a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from podium.worlds.simulator import Programme

pytestmark = pytest.mark.platforms("linux", "darwin")  # redirections of a POSIX shell
PYTHON = shlex.join([sys.executable, "-B", "-W", "error", "-m", "podium"])


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `podium` is this podium."""
    if not (folder / "log.csv").exists():
        Programme().draw(60, 3).write_csv(folder / "log.csv")
    line = "set -o pipefail; " + command.replace("podium ", PYTHON + " ")
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str, tmp_path: Path):
    done = shell(tmp_path, f"podium compare log.csv --html report.html {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_an_error_does_not_move_to_standard_output(tmp_path: Path):
    done = shell(tmp_path, "podium compare missing.csv 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.platforms("linux")  # /dev/full
def test_a_full_disk_behind_a_stream(tmp_path: Path):
    done = shell(tmp_path, "podium compare log.csv > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "podium: cannot write the answer: No space left on device\n\nHint: free some disk space.\n"
    done = shell(tmp_path, "podium compare missing.csv 2> /dev/full")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_gate_keeps_its_exit_code_when_nobody_reads_the_answer(tmp_path: Path):
    gate = "podium compare log.csv --policy a=uniform --policy b=uniform --gate 'a > b'"
    assert shell(tmp_path, gate).returncode == 3
    read, write = os.pipe()
    os.close(read)
    line = gate.replace("podium ", PYTHON + " ")
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (3, b"")
