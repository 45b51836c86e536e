"""Jobs tell how far they are, can be cancelled, and end when time or memory is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from studio_visitor import LOG, Visitor, alerts, make_studio

from podium.studio.jobs import Job, Queue
from podium.studio.limits import MB, Limits
from podium.studio.visits import Studio


def start_frozen(visitor: Visitor, studio: Studio, workspace: str) -> Job:
    """A comparison whose process stands still, so that it can be looked at."""
    studio.queue._places.acquire()
    studio.queue._places.acquire()
    visitor.client.post(workspace + "/compare", data={"csrf": visitor.csrf}, follow_redirects=False)
    job = next(iter(studio.rooms.sessions.values())).workspaces[workspace.removeprefix("/w/")].job
    assert job is not None
    return job


def test_a_waiting_job_shows_that_it_waits_and_can_be_cancelled(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    job = start_frozen(visitor, studio, workspace)
    page = visitor.get(workspace + "/working")
    assert "Waiting for another comparison to end" in page.text
    assert 'http-equiv="refresh"' in page.text
    state = visitor.get(workspace + "/status").json()
    assert state["waiting"] is True
    assert state["finished"] is False
    page = visitor.post(workspace + "/cancel")
    assert job.state == "cancelled"
    assert "You cancelled this." in alerts(page)
    studio.queue._places.release(2)
    assert visitor.get("/health").text == "ok"
    assert visitor.compare(workspace).status_code == 200


def test_a_running_job_is_ended_when_it_is_cancelled(tmp_path: Path) -> None:
    for attempt in range(10):  # on a busy machine it may be done before it is stopped
        folder = tmp_path / str(attempt)
        folder.mkdir()
        job = running(folder, Limits())
        process = job._process
        assert process is not None
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)  # it cannot even listen to a friendly word
        if process.poll() is None:
            break
    job.cancel()
    assert job.wait(300)
    assert job.state == "cancelled"
    assert process.poll() is not None
    assert process.returncode in (-signal.SIGTERM, -signal.SIGKILL)
    job.cancel()
    assert job.state == "cancelled"


def running(folder: Path, limits: Limits) -> Job:
    (folder / "log.csv").write_text(LOG)
    task = {"path": str(folder / "log.csv"), "shown": "log.csv", "reading": {}}
    job = Job("check", folder, task, limits)
    assert Queue(limits).submit(job)
    end = time.monotonic() + 300
    while job.state == "waiting":
        assert time.monotonic() < end
        time.sleep(0.001)
    return job


def test_a_job_ends_when_its_time_is_up(tmp_path: Path) -> None:
    job = running(tmp_path, Limits(job_seconds=0.01))
    assert job.wait(300)
    assert job.state == "failed"
    assert job.error == {
        "message": "this took longer than 0.01 seconds and was stopped",
        "hint": "use fewer rows, columns or policies.",
    }


def test_a_job_ends_when_it_needs_too_much_memory() -> None:
    app, studio = make_studio(Limits(memory_bytes=450 * MB))
    visitor = Visitor(app)
    rows = "".join(f'{{"k{i}": 1}}\n' for i in range(10_000))  # each row has a column of its own: 10^8 cells
    page = visitor.upload("log.jsonl", rows)
    assert page.status_code == 422
    assert "memory" in alerts(page)
    assert visitor.get("/health").text == "ok"
    assert visitor.upload("log.csv", LOG).status_code == 200
    studio.close()


HANGS = {"asleep": "time.sleep(60)", "in one long call": "re.match('(a+)+$', 'a' * 60 + 'b')"}


@pytest.mark.parametrize("how", HANGS)
def test_a_job_never_outlives_the_studio(tmp_path: Path, how: str) -> None:
    """The worker of a studio that was killed ends by itself, whatever it is doing."""
    if how == "in one long call" and sys.platform != "linux":
        how = "asleep"
    code = (
        "import re, sys, time; from pathlib import Path; from podium.studio import worker\n"
        f"worker.TASKS['hang'] = lambda task, folder: (worker.tell(stage='here'), {HANGS[how]})\n"
        f"Path({str(tmp_path)!r}, 'task.json').write_text('{{\"kind\": \"hang\"}}')\n"
        f"sys.exit(worker.main(Path({str(tmp_path)!r}), 2**32))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert b"here" in process.stdout.readline()
        time.sleep(0.1)
        process.stdin.close()
        try:
            assert process.wait(30) in (3, -getattr(signal, "SIGIO", 0))
        finally:
            process.kill()


def test_too_many_jobs_are_turned_away(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    studio.queue.limits = Limits(jobs=0, waiting_jobs=0)
    answer: Any = visitor.client.post(workspace + "/compare", data={"csrf": visitor.csrf})
    assert answer.status_code == 503
    studio.queue.limits = Limits()
    assert visitor.compare(workspace).status_code == 200


def test_a_new_comparison_ends_the_one_before(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    first = start_frozen(visitor, studio, workspace)
    studio.queue._places.release(2)
    visitor.compare(workspace, estimator="LDE", baseline="mean", level="95")
    assert first.state in ("cancelled", "done")


@pytest.mark.parametrize("word", ["stage", "error"])
def test_the_worker_tells_its_stages(tmp_path: Path, word: str) -> None:
    limits = Limits()
    (tmp_path / "log.csv").write_text(LOG if word == "stage" else "x,action\n1,a\n")
    task = {"path": str(tmp_path / "log.csv"), "shown": "mine.csv", "reading": {}, "continuous": False}
    job = Job("check", tmp_path, task, limits)
    Queue(limits).submit(job)
    assert job.wait(300)
    assert job.stages == ["Checking the log"]
    if word == "stage":
        assert job.state == "done"
        assert job.output("checked.json")["rows"] == 60
    else:
        assert job.error is not None
        assert job.error["message"] == "the log has no column 'reward' for the reward; 'x' may be meant"


@pytest.mark.platforms("linux", "darwin")
def test_a_worker_that_the_system_kills_is_explained(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = visitor.prepare()
    usual = Job._follow

    def killed(job: Job, process: Any) -> None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        usual(job, process)

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_follow", killed)
        page = visitor.post(workspace + "/compare")
    assert page.status_code == 422
    assert "this was ended by the system" in alerts(page)
    assert visitor.compare(workspace).status_code == 200


def test_a_log_is_removed_while_it_is_worked_on(visitor: Visitor, studio: Studio) -> None:
    """Its process writes on for a moment; nothing of it may stay."""
    workspace = visitor.prepare()
    visitor.client.post(workspace + "/compare", data={"csrf": visitor.csrf}, follow_redirects=False)
    forms = [threading.Thread(target=visitor.post, args=(workspace + "/forget",)) for _ in range(3)]
    for form in forms:
        form.start()
    for form in forms:
        form.join()
    assert list(studio.rooms.folder.iterdir()) == []
    assert visitor.get(workspace + "/answer").status_code == 404
