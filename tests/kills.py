"""Podium as a child process that is killed: what it left on the disk, and which of its processes still run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

MARK = "PODIUM_TEST_RUN"  # names, in the environment of every process of a run, that run
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
PATIENCE = 60.0  # seconds; a test that waits longer fails


@dataclass
class Run:
    """One run of the command `podium` in a folder of its own, with its own temporary folder.

    Parameters
    ----------
    folder : where it runs; its temporary folder is beside it
    """

    folder: Path
    mark: str = field(default_factory=lambda: uuid4().hex)

    @property
    def temporary(self) -> Path:
        return self.folder.parent / "temporary"

    @contextmanager
    def started(self, *arguments: str, script: str | None = None) -> Iterator[subprocess.Popen[str]]:
        """The running command, or a script that stands for it; whatever of it is left at the end is killed."""
        self.temporary.mkdir(exist_ok=True)
        start = ["-m", "podium"] if script is None else ["-c", script]
        process = subprocess.Popen(
            [sys.executable, *start, *arguments],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.temporary), MARK: self.mark, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            for number in {process.pid, *self.processes()}:
                kill(number)
            process.communicate()

    def killed(self, arguments: Sequence[str], number: signal.Signals, when: When, script: str | None = None) -> Ended:
        """Run the command, and send it a signal as soon as `when` says so, unless it ended before."""
        with self.started(*arguments, script=script) as process:
            wait_for(lambda: process.poll() is not None or when(self))
            process.send_signal(number)
            output, errors = process.communicate(timeout=PATIENCE)
            wait_for(lambda: not self.processes(), "processes of the run are left")
        return Ended(process.returncode, output, errors)

    def finished(self, *arguments: str) -> Ended:
        """Run the command to its end."""
        with self.started(*arguments) as process:
            output, errors = process.communicate(timeout=10 * PATIENCE)
        return Ended(process.returncode, output, errors)

    def processes(self) -> list[int]:
        """The living processes of this run."""
        wanted, found = f"{MARK}={self.mark}".encode(), []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    marked = wanted in (folder / "environ").read_bytes().split(b"\0")
                    dead = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
                except OSError:  # it ended, or belongs to somebody else
                    continue
                if marked and not dead:
                    found.append(int(folder.name))
        return found

    def left(self) -> list[str]:
        """What is in the temporary folder."""
        return sorted(str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*"))


@dataclass
class Ended:
    """How a run ended."""

    code: int
    output: str
    errors: str

    @property
    def shell_code(self) -> int:
        """The exit code as a shell shows it: 128 and the number of the signal that ended the process."""
        return self.code if self.code >= 0 else 128 - self.code


When = Callable[[Run], bool]


def after(seconds: float) -> When:
    """True so many seconds after podium began to load what it needs; nothing of podium runs before that."""
    begun: list[float] = []

    def ready(run: Run) -> bool:
        if not begun and any("_multiarray_umath" in maps_of(number) for number in run.processes()):
            begun.append(time.monotonic())
        return bool(begun) and time.monotonic() >= begun[0] + seconds

    return ready


def maps_of(number: int) -> str:
    """The files that a process has mapped into its memory."""
    try:
        return Path(f"/proc/{number}/maps").read_text()
    except OSError:
        return ""


def wait_for(ready: Callable[[], bool], failure: str = "nothing happened") -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, failure
        time.sleep(0.005)


def kill(number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
