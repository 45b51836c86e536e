"""Who holds what: sessions, and their workspaces in a private folder that vanishes with the studio."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.data.errors import PodiumError
from podium.data.scratch import Scratch
from podium.studio.jobs import GRACE, Job
from podium.studio.limits import Limits
from podium.studio.questions import Question


@dataclass
class Answer:
    """One finished comparison: what was asked, its JSON, what its page says, and the folder that holds its report."""

    number: int
    question: Question
    result: Mapping[str, Any]
    told: Mapping[str, Any]  # headline, state columns, warnings, reasons
    folder: Path


@dataclass
class Workspace:
    """One log on its way from upload to answer."""

    id: str
    folder: Path
    question: Question
    inspected: Mapping[str, Any] | None = None  # columns, first rows, guesses
    checked: Mapping[str, Any] | None = None  # the log as podium read it: rows, states, actions
    job: Job | None = None
    asked: Question | None = None  # what the job works on; the question may change meanwhile
    error: Mapping[str, str] | None = None  # of the last job
    answers: list[Answer] = field(default_factory=list)
    made: int = 0  # folders of jobs so far
    replaced: list[Job] = field(default_factory=list)  # jobs that another took the place of, and that may still run
    unused: list[Path] = field(default_factory=list)  # folders to remove once no job runs that may use them
    used: float = field(default_factory=time.monotonic)  # when a request last named it

    @property
    def running(self) -> list[Job]:
        return [j for j in (*self.replaced, self.job) if j is not None and not j.finished]

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def start(self, job: Job) -> None:
        """Take up a job; the one before it ends."""
        if self.job is not None and not self.job.absorbed:
            self.job.cancel()
            self.unused.append(self.job.folder)
        self.replaced = self.running
        self.job, self.asked = job, self.question

    def new_folder(self) -> Path:
        """A fresh folder for a job or a file."""
        self.made += 1
        folder = self.folder / str(self.made)
        folder.mkdir(mode=0o700)
        return folder

    def discard(self, *folders: Path) -> None:
        """Remove folders: at once, or when the running jobs, which may use them, have ended."""
        self.unused.extend(folders)
        if not self.busy:
            while self.unused:
                shutil.rmtree(self.unused.pop(), ignore_errors=True)

    def answer(self, number: str) -> Answer | None:
        return next((a for a in self.answers if str(a.number) == number), None)

    def keep(self, answer: Answer, most: int) -> None:
        """Add an answer; the oldest goes where there are too many."""
        self.answers.append(answer)
        while len(self.answers) > most:
            self.discard(self.answers.pop(0).folder)

    def close(self) -> None:
        """End the jobs, then remove every file: a process that still writes would leave some."""
        running = self.running
        for job in running:
            job.cancel()
        for job in running:
            job.wait(2 * GRACE)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Session:
    """One browser; it sees its own workspaces alone."""

    id: str
    csrf: str
    workspaces: dict[str, Workspace] = field(default_factory=dict)
    used: float = field(default_factory=time.monotonic)  # when its last request came

    @property
    def busy(self) -> bool:
        return any(w.busy for w in list(self.workspaces.values()))


class Rooms:
    """Every session and workspace of a running studio."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.scratch = Scratch("studio")
        self.folder = self.scratch.path / "logs"
        self.folder.mkdir(mode=0o700)
        self.sessions: dict[str, Session] = {}

    def open_session(self) -> Session:
        """A new session. It costs nothing before it holds a log, so that it displaces nobody who does."""
        empty = [s for s in list(self.sessions.values()) if not s.workspaces]
        if len(empty) >= self.limits.visitors:
            del self.sessions[min(empty, key=lambda s: s.used).id]
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        self.sessions[session.id] = session
        return session

    def visit(self, name: str) -> Session | None:
        """The session of this name, which is in use now."""
        session = self.sessions.get(name)
        if session is not None:
            session.used = time.monotonic()
        return session

    def close_session(self, name: str) -> None:
        for workspace in list(self.sessions.pop(name).workspaces.values()):
            workspace.close()

    @contextlib.contextmanager
    def new_workspace(self, session: Session, shown: str) -> Iterator[Workspace]:
        """A workspace for a log, which the session holds once the block has ended well; else nothing of it stays.

        `shown` is what the file is called on pages, never a path.
        """
        self.room_for(session)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        workspace = Workspace(secrets.token_urlsafe(12), folder, Question(shown))
        try:
            yield workspace
            leaving = self.room_for(session)
            workspace.used = time.monotonic()
            session.workspaces[workspace.id] = workspace
            self.sessions[session.id] = session
        except BaseException:
            workspace.close()
            raise
        if isinstance(leaving, Workspace):
            session.workspaces.pop(leaving.id).close()
        elif leaving is not None:
            self.close_session(leaving.id)

    def room_for(self, session: Session) -> Session | Workspace | None:
        """What has to leave before a session may hold one more log; nobody who is at work ever has to."""
        if session.workspaces:
            if len(session.workspaces) < self.limits.workspaces:
                return None
            idle = [w for w in list(session.workspaces.values()) if not w.busy]
            if not idle:
                raise PodiumError(
                    f"the studio works on {len(session.workspaces)} logs of yours already",
                    hint="wait until one of them is done, or cancel it, and drop this one again.",
                )
            return min(idle, key=lambda w: (w.inspected is not None, w.used))  # first what could not be read
        holders = [s for s in list(self.sessions.values()) if s.workspaces]
        if len(holders) < self.limits.sessions:
            return None
        oldest = min(holders, key=lambda s: (s.busy, s.used))
        if oldest.busy or time.monotonic() - oldest.used < self.limits.idle_seconds:
            raise PodiumError(
                f"{len(holders)} browsers have logs in this studio, and all of them were used a short while ago",
                hint="remove the logs that are no longer needed, or start a studio of your own.",
            )
        return oldest

    def close(self) -> None:
        """End every job and remove every file."""
        for session in list(self.sessions.values()):
            for job in (j for w in list(session.workspaces.values()) for j in w.running):
                job.cancel()
        for name in list(self.sessions):
            self.close_session(name)
        self.scratch.close()
