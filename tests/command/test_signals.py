"""Signals: the command cleans up, says so in one line, and exits with 128 + the signal's number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.command.signals import ending_cleanly
from podium.worlds.simulator import Programme

pytestmark = pytest.mark.platforms("linux", "darwin")  # Windows has no such signals
PYTHON = [sys.executable, "-B", "-W", "error", "-m", "podium"]
SLOW = """
import atexit, pathlib, time
atexit.register(pathlib.Path('cleaned').touch)
def rule(states):
    pathlib.Path('started').touch()
    time.sleep(60)
"""


OTHER_ERROR = "    try: time.sleep(60)\n    except BaseException: raise TypeError from None"
SWALLOWED = SLOW.replace("    time.sleep(60)", OTHER_ERROR)
LATE = SLOW.replace("def rule", "pathlib.Path('started').touch(); time.sleep(60)\ndef rule")


def start(folder: Path, code: str = SLOW, command: Sequence[str] = PYTHON, **options: Any) -> subprocess.Popen[str]:
    """A comparison with a policy that takes a minute, once it has begun."""
    Programme().draw(60, 3).write_csv(folder / "log.csv")
    (folder / "slow.py").write_text(code)
    arguments = ["compare", "log.csv", "--policy", "slow=slow:rule", "--policy", "u=uniform", "--html", "r.html"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = subprocess.Popen([*command, *arguments], cwd=folder, text=True, **options)
    wait_for(folder / "started", process)
    return process


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    for _ in range(1500):
        if path.exists() or process.poll() is not None:
            break
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.parametrize("code", [SLOW, LATE, SWALLOWED], ids=["at work", "being loaded", "told as another error"])
def test_a_signal_ends_the_command_cleanly(name: str, code: str, tmp_path: Path):
    with start(tmp_path, code) as process:
        for _ in range(3):  # a group of processes is often sent more than one
            process.send_signal(getattr(signal, name))
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (128 + getattr(signal, name), "", f"podium: ended by {name}\n")
    assert sorted(os.listdir(tmp_path)) == ["cleaned", "log.csv", "slow.py", "started"]  # cleaned: atexit ran


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path):
    with start(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30)[1] == "podium: ended by SIGTERM\n"


def test_a_closed_terminal_does_not_change_the_exit_code(tmp_path: Path):
    controller, terminal = os.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    with start(tmp_path, start_new_session=True, **streams) as process:
        os.close(terminal)
        os.close(controller)
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 128 + signal.SIGHUP
    assert (tmp_path / "cleaned").exists()


def test_handlers_are_put_back():
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.getsignal(number) for number in numbers]
    with ending_cleanly():
        assert not set(before) & {signal.getsignal(number) for number in numbers}
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize("script", [True, False], ids=["podium", "python -m podium"])
def test_ctrl_c_while_podium_is_being_loaded(script: bool, tmp_path: Path):
    """NumPy is the first large package that is loaded; here it takes a minute."""
    (tmp_path / "numpy.py").write_text("import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(60)\n")
    (tmp_path / "podium").write_text("import sys\nfrom podium.command.cli import main\nsys.exit(main())\n")
    path = os.pathsep.join([str(tmp_path), str(Path(podium.__file__).parents[1])])
    command = [*PYTHON[:-2], "podium"] if script else PYTHON
    with subprocess.Popen(
        [*command, "--version"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_for(tmp_path / "started", process)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (130, "", "podium: interrupted\n")


def test_a_folder_does_not_lend_its_files_to_python_m_podium(tmp_path: Path):
    for name in ("numpy", "json", "shtab"):
        (tmp_path / f"{name}.py").write_text("print('a file of the folder was loaded')\n")
    done = subprocess.run([*PYTHON, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"podium {podium.__version__}\n", "")
