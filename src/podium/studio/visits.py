"""A running studio, and what a request finds there: its session, its workspace, the form it posts, the way on."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyio import to_thread
from jinja2 import Environment, FileSystemLoader
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from podium.data.errors import PodiumError
from podium.outputs.display import number, percent, printable
from podium.studio import questions
from podium.studio.failures import explain
from podium.studio.jobs import Job, Queue
from podium.studio.limits import Limits
from podium.studio.security import Door, right_token
from podium.studio.workspaces import Answer, Rooms, Session, Workspace
from podium.version import VERSION

HERE = Path(__file__).parent
PATIENCE = 1.5  # seconds that a page waits for a job before it shows its progress
AFTER = {"inspect": "columns", "check": "policies", "compare": "answer"}  # where a job leads
BEFORE = {"inspect": "", "check": "columns", "compare": "answer"}  # where its failure is told


class Studio:
    """A running studio: who is in it, what it works on, how its pages look."""

    def __init__(self, door: Door, limits: Limits) -> None:
        self.door = door
        self.limits = limits
        self.rooms = Rooms(limits)
        self.queue = Queue(limits)
        self.tickets: set[str] = set()
        templates = FileSystemLoader(HERE / "templates")
        self.pages = Environment(loader=templates, autoescape=True, trim_blocks=True, auto_reload=False)
        self.pages.filters |= {"number": number, "percent": percent, "printable": lambda x: printable(str(x))}
        self.pages.globals |= {"version": VERSION, "questions": questions, "limits": limits}
        for name in ("base.html", "error.html"):  # an error may be that no file can be opened
            self.pages.get_template(name)

    def new_ticket(self) -> str:
        """A token that opens the studio once: for the browser's command line, which others on the machine can read."""
        ticket = secrets.token_urlsafe(32)
        self.tickets.add(ticket)
        return ticket

    def close(self) -> None:
        self.queue.close()
        self.rooms.close()

    def render(self, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        return self.page(request.scope, name, status, **values)

    def page(self, scope: Scope, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        session: Session | None = scope.get("podium.session")
        values = {"csrf": session.csrf if session else "", "session": session, **values}
        page = self.pages.get_template(name).render(values)
        return HTMLResponse(page.encode("utf-8", errors="backslashreplace"), status)  # data may hold half characters

    def failed(self, scope: Scope, error: Exception) -> Response:
        """The page that says what went wrong."""
        failure = explain(error)
        page = self.page(scope, "error.html", failure.status, failure=failure)
        page.headers.update(failure.headers)
        return page

    def begin(self, workspace: Workspace, kind: str, task: Mapping[str, Any]) -> None:
        """Start a job of a workspace; the one before it ends, unless this one cannot be taken on."""
        self.absorb(workspace)
        before, folder = workspace.job, workspace.new_folder()
        try:
            job = Job(kind, folder, task, self.limits)
            if not self.queue.submit(job, instead_of=before):
                raise HTTPException(503, "The studio is busy with other comparisons; try again in a minute.")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        workspace.error = None
        workspace.start(job)

    def absorb(self, workspace: Workspace) -> None:
        """Take in what a finished job has found."""
        job = workspace.job
        if job is None or not job.finished or job.absorbed:
            return
        job.absorbed = True
        if job.state == "cancelled":
            unread = workspace.inspected is None
            again = "Drop the file again to go on." if unread else "Nothing was lost: go on when you like."
            workspace.error = {"message": "You cancelled this.", "hint": again}
        elif job.state == "failed":
            workspace.error = job.error
        else:
            try:
                self.take_in(workspace, job)
            except (OSError, ValueError, LookupError, TypeError) as error:
                job.state, workspace.error = "failed", told(unreadable(error))
        if workspace.inspected is None:  # nothing can be done with this file
            workspace.discard(workspace.folder)
        elif all(answer.folder != job.folder for answer in workspace.answers):
            workspace.discard(job.folder)

    def take_in(self, workspace: Workspace, job: Job) -> None:
        """Read what the worker wrote; nothing of the workspace changes if that fails."""
        if job.kind == "inspect":
            found = job.output("inspected.json")
            roles = questions.few_policies({c["header"]: c["role"] for c in found["columns"]}, self.limits.policies)
            prose = tuple(c["header"] for c in found["columns"] if c["prose"] or c["odd"])
            question = replace(workspace.question, headers=tuple(found["headers"]), lower_is_better=found["cost"])
            question = replace(question, prose=prose)
            workspace.question = questions.with_roles(question, roles, ())
            workspace.inspected = found
        elif job.kind == "check":
            checked = job.output("checked.json")
            if checked["propensities"] != "none":
                workspace.question = replace(workspace.question, behavior="")
            workspace.checked = checked
        else:
            self.keep_answer(workspace, job)

    def keep_answer(self, workspace: Workspace, job: Job) -> None:
        result, told = job.output("result.json"), job.output("answer.json")
        number = 1 + max((a.number for a in workspace.answers), default=0)
        answer = Answer(number, workspace.asked or workspace.question, result, told, job.folder)
        workspace.keep(answer, self.limits.answers)


def studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


def session_of(request: Request) -> Session:
    session: Session = request.scope["podium.session"]
    return session


def look_after_logs(request: Request) -> None:
    """Take in what the jobs of this session have found, also where nobody looked at their pages."""
    for workspace in list(session_of(request).workspaces.values()):
        studio_of(request).absorb(workspace)


def workspace_of(request: Request) -> Workspace:
    """The workspace that an address names, if it is this session's own."""
    workspace = session_of(request).workspaces.get(request.path_params["workspace"])
    if workspace is None:
        raise HTTPException(404, "There is no such log here. It may have been removed to make room for newer ones.")
    workspace.used = time.monotonic()
    studio_of(request).absorb(workspace)
    return workspace


@contextlib.asynccontextmanager
async def posted(request: Request, fields: int = 50) -> AsyncIterator[FormData]:
    """The form of a request, once its token is found right. Every POST comes through here."""
    try:
        form = await request.form(max_files=1, max_fields=fields, max_part_size=64 * 1024)
    except ValueError as error:  # a charset that does not fit, or half a character
        raise HTTPException(400, "This form could not be read.") from error
    except HTTPException as error:
        if error.status_code == 400:  # what Starlette found wrong
            raise HTTPException(400, f"This form could not be read: {error.detail}") from error
        raise
    try:
        if not right_token(str(form.get("csrf", "")), session_of(request).csrf):
            raise HTTPException(403, "This form is out of date. Go back, reload the page and try again.")
        yield form
    finally:
        await form.close()


def go(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def place(workspace: Workspace, page: str) -> str:
    return f"/w/{workspace.id}/{page}"


async def after(request: Request, workspace: Workspace) -> Response:
    """Where to go while, or after, a job: a short one shows no progress page."""
    assert workspace.job is not None
    await to_thread.run_sync(workspace.job.wait, PATIENCE)
    return go(target(studio_of(request), workspace))


def target(studio: Studio, workspace: Workspace) -> str:
    job = workspace.job
    if job is None:
        return place(workspace, "columns")
    if not job.finished:
        return place(workspace, "working")
    studio.absorb(workspace)
    page = (AFTER if job.state == "done" else BEFORE)[job.kind]
    return place(workspace, page) if page else place(workspace, "columns")


def unreadable(error: Exception) -> PodiumError:
    """What a worker left cannot be used: its file is gone, too large, or not what it should be."""
    if isinstance(error, FileNotFoundError):
        return PodiumError("the files of this job are gone", hint="something emptied the temporary folder; try again.")
    if isinstance(error, PodiumError):
        return error
    return PodiumError("what the job found cannot be shown", hint="use fewer columns, or shorter texts.")


def told(error: PodiumError) -> dict[str, str]:
    return {"message": error.message, "hint": error.hint}
