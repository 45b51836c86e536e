"""One studio for a test, and people in it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from studio_visitor import LOG, Visitor, make_studio

from podium.studio import worker
from podium.studio.jobs import Job
from podium.studio.limits import Limits
from podium.studio.visits import Studio


@pytest.fixture
def built() -> Iterator[tuple[object, Studio]]:
    app, studio = make_studio()
    yield app, studio
    studio.close()


class Guest(Visitor):
    """Somebody who stays for all tests of a file, with one log that is ready to be compared."""

    def __init__(self, app: object) -> None:
        super().__init__(app)
        self.good = self.prepare()
        self.spare = str(self.upload("spare.csv", LOG).url)


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    app, studio = make_studio(Limits(workspaces=1000))
    yield Guest(app)
    studio.close()


def run_here(job: Job) -> None:
    """Do what the worker does, without a process of its own, which takes half a second to start."""
    job.state = "running"
    task = json.loads((job.folder / "task.json").read_text(encoding="utf-8"))
    try:
        worker.TASKS[job.kind](task, job.folder)
        job.state = "done"
    except Exception as error:
        message, hint = worker.words(error, task)
        job.state, job.error = "failed", {"message": message, "hint": hint}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "run", run_here)


@pytest.fixture
def studio(built: tuple[object, Studio]) -> Studio:
    return built[1]


@pytest.fixture
def visitor(built: tuple[object, Studio]) -> Visitor:
    return Visitor(built[0])


@pytest.fixture
def other(built: tuple[object, Studio]) -> Visitor:
    return Visitor(built[0])
