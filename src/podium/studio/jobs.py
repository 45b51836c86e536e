"""Work in a process of its own, which tells how far it is, may be cancelled, and ends when its time is up."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import podium
from podium.data.errors import PodiumError
from podium.studio.limits import MB, Limits

GRACE = 2.0  # seconds between asking a process to end and ending it
MOST_OUTPUT = 16 * MB
SOURCE = str(Path(podium.__file__).parents[1])


class Job:
    """One task for the worker. States: waiting, running, done, failed, cancelled."""

    def __init__(self, kind: str, folder: Path, task: Mapping[str, Any], limits: Limits) -> None:
        self.kind = kind
        self.folder = folder
        self.limits = limits
        self.state = "waiting"
        self.stages: list[str] = []
        self.error: dict[str, str] | None = None
        self.started = time.monotonic()
        self.absorbed = False
        self._begun = False
        self._process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()
        self._lock = threading.Lock()
        whole = {**task, "kind": kind, "limits": asdict(limits)}
        (folder / "task.json").write_text(json.dumps(whole), encoding="utf-8")

    @property
    def finished(self) -> bool:
        return self.ended.is_set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def wait(self, seconds: float | None = None) -> bool:
        """Whether the job ends within this time."""
        return self.ended.wait(seconds)

    def output(self, name: str) -> Any:
        """One of the JSON files that the worker wrote."""
        path = self.folder / name
        if path.stat().st_size > MOST_OUTPUT:
            raise PodiumError(
                f"what the job found takes more than {MOST_OUTPUT // MB} MB",
                hint="use fewer columns, or shorter texts.",
            )
        return json.loads(path.read_text(encoding="utf-8"))

    def cancel(self) -> None:
        """End the job now; a job that has ended stays as it is."""
        with self._lock:
            if self.finished or self.state == "cancelled":
                return
            self.state = "cancelled"
            if not self._begun:
                self.ended.set()
            process = self._process
        if process is not None:
            end(process)

    def run(self) -> None:
        """Run the worker to its end; called by a thread of the queue."""
        with self._lock:
            if self.state == "cancelled":
                return
            self._begun = True
        process = start(self.folder, self.limits)  # may take a moment, in which the job can be cancelled
        with self._lock:
            self._process = process
            if self.state == "cancelled":
                end(process)
            else:
                self.state = "running"
                self.started = time.monotonic()
        timer = threading.Timer(self.limits.job_seconds, self._stop_late)
        timer.daemon = True
        timer.start()
        try:
            self._follow(process)
        finally:
            timer.cancel()

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Read what the worker tells until it ends."""
        assert process.stdout is not None
        assert process.stdin is not None
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                if not isinstance(told, dict):  # a library printed something
                    continue
                if "stage" in told:
                    self.stages.append(str(told["stage"]))
                elif "error" in told:
                    self.error = {"message": str(told["error"]), "hint": str(told.get("hint", ""))}
        code = process.wait()
        process.stdout.close()
        process.stdin.close()
        with self._lock:
            if self.state != "running":
                return
            self.state = "done" if code == 0 else "failed"
            if code != 0 and self.error is None:
                self.error = why(code, self.limits)

    def fail(self, message: str, hint: str) -> None:
        """Give up, unless the job has come to an end already."""
        with self._lock:
            if not self.finished and self.state in ("waiting", "running"):
                self.state, self.error = "failed", {"message": message, "hint": hint}

    def _stop_late(self) -> None:
        self.fail(
            f"this took longer than {self.limits.job_seconds:g} seconds and was stopped",
            "use fewer rows, columns or policies.",
        )
        if self._process is not None:
            end(self._process)


def start(folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    """Start the worker. It ends itself when its standard input closes: it never outlives the studio."""
    keep = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    environment |= {
        "PYTHONPATH": os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH")))),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # the other pools reserve address space that they do not use
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": "262144",  # what is freed goes back to the system
        "TMPDIR": str(folder),
    }
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "podium.studio.worker", str(folder), str(limits.memory_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        start_new_session=True,  # Ctrl-C reaches the studio, which ends its jobs
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and end it if it does not."""

    def finish() -> None:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()

    threading.Thread(target=finish, daemon=True).start()


def why(code: int, limits: Limits) -> dict[str, str]:
    """What an exit without a word means."""
    memory = f"{limits.memory_bytes / 1024**3:.3g} GB"
    if code < 0:  # ended by a signal
        return {
            "message": f"this was ended by the system; it may have needed more than the {memory} that a job may use",
            "hint": SMALLER,
        }
    return {"message": "the file could not be worked on", "hint": SMALLER}


SMALLER = "use fewer rows or columns, or give only the columns that matter."


class Queue:
    """Runs jobs, a few at a time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._places = threading.Semaphore(limits.jobs)
        self._jobs: set[Job] = set()
        self._lock = threading.Lock()

    def submit(self, job: Job, instead_of: Job | None = None) -> bool:
        """Take a job on, or say that too many wait; the one that it replaces does not count."""
        with self._lock:
            self._jobs = {j for j in self._jobs if not j.finished}
            if len(self._jobs - {instead_of}) >= self.limits.jobs + self.limits.waiting_jobs:
                return False
            self._jobs.add(job)
        try:
            threading.Thread(target=self._run, args=(job,), daemon=True).start()
        except RuntimeError:  # the system has no thread left
            job.ended.set()
            return False
        return True

    def _run(self, job: Job) -> None:
        with self._places:
            try:
                job.run()
            except OSError as error:
                job.fail(f"no process could be started: {error.strerror}", "try again in a minute.")
            except Exception as error:
                job.fail(f"the job ended unexpectedly ({type(error).__name__})", "try again in a minute.")
            finally:
                job.ended.set()

    def close(self) -> None:
        """Cancel every job and see it end."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        for job in jobs:
            job.wait(2 * GRACE)
