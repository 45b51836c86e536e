"""Who holds what: sessions, and their workspaces in a private folder that vanishes with the studio."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.studio.jobs import Job
from podium.studio.limits import Limits
from podium.studio.questions import Question


@dataclass
class Answer:
    """One finished comparison: what was asked, its JSON, and the folder that holds its report."""

    number: int
    question: Question
    result: Mapping[str, Any]
    headline: str
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

    def new_folder(self) -> Path:
        """A fresh folder for a job or a file."""
        self.made += 1
        folder = self.folder / str(self.made)
        folder.mkdir(mode=0o700)
        return folder

    def answer(self, number: int) -> Answer | None:
        return next((a for a in self.answers if a.number == number), None)

    def keep(self, answer: Answer, most: int) -> None:
        """Add an answer; the oldest goes where there are too many."""
        self.answers.append(answer)
        while len(self.answers) > most:
            shutil.rmtree(self.answers.pop(0).folder, ignore_errors=True)

    def close(self) -> None:
        if self.job is not None:
            self.job.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Session:
    """One browser; it sees its own workspaces alone."""

    id: str
    csrf: str
    workspaces: dict[str, Workspace] = field(default_factory=dict)


class Rooms:
    """Every session and workspace of a running studio."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.folder = Path(tempfile.mkdtemp(prefix="podium-studio-"))  # mode 0700
        self.sessions: dict[str, Session] = {}

    def open_session(self) -> Session:
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        while len(self.sessions) >= self.limits.sessions:
            self.close_session(next(iter(self.sessions)))
        self.sessions[session.id] = session
        return session

    def close_session(self, name: str) -> None:
        for workspace in self.sessions.pop(name).workspaces.values():
            workspace.close()

    def open_workspace(self, session: Session, shown: str) -> Workspace:
        """A new workspace for a log; `shown` is what the file is called on pages, never a path."""
        while len(session.workspaces) >= self.limits.workspaces:
            session.workspaces.pop(next(iter(session.workspaces))).close()
        name = secrets.token_urlsafe(12)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        session.workspaces[name] = Workspace(name, folder, Question(shown))
        return session.workspaces[name]

    def close(self) -> None:
        """End every job and remove every file."""
        for name in list(self.sessions):
            self.close_session(name)
        shutil.rmtree(self.folder, ignore_errors=True)
