"""The pages of the studio and what they do: start, columns, policies, answer."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from podium import __version__
from podium.display import number, percent, printable
from podium.errors import PodiumError
from podium.report import CONTENT_SECURITY_POLICY
from podium.studio import questions
from podium.studio.changes import what_changed
from podium.studio.choices import chosen_roles, chosen_settings, new_candidate
from podium.studio.downloads import download
from podium.studio.guesses import may_be_policy
from podium.studio.jobs import Job, Queue
from podium.studio.limits import Limits
from podium.studio.security import Door, Guard, right_token
from podium.studio.uploads import clean_name, known_ending, store
from podium.studio.workspaces import Answer, Rooms, Session, Workspace

HERE = Path(__file__).parent
PATIENCE = 1.5  # seconds that a page waits for a job before it shows its progress
AFTER = {"inspect": "columns", "check": "policies", "compare": "answer"}  # where a job leads
BEFORE = {"inspect": "", "check": "columns", "compare": "answer"}  # where its failure is told
DOING = {"inspect": "Reading your file", "check": "Checking the log", "compare": "Comparing the policies"}


class Studio:
    """A running studio: who is in it, what it works on, how its pages look."""

    def __init__(self, door: Door, limits: Limits) -> None:
        self.door = door
        self.limits = limits
        self.rooms = Rooms(limits)
        self.queue = Queue(limits)
        self.tickets: set[str] = set()
        self.pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True)
        self.pages.filters |= {"number": number, "percent": percent, "printable": lambda x: printable(str(x))}
        self.pages.globals |= {"version": __version__, "questions": questions, "limits": limits}

    def new_ticket(self) -> str:
        """A token that opens the studio once: for the browser's command line, which others on the machine can read."""
        ticket = secrets.token_urlsafe(32)
        self.tickets.add(ticket)
        return ticket

    def close(self) -> None:
        self.queue.close()
        self.rooms.close()

    def render(self, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        session: Session | None = request.scope.get("podium.session")
        values = {"csrf": session.csrf if session else "", "session": session, **values}
        page = self.pages.get_template(name).render(values)
        return HTMLResponse(page.encode("utf-8", errors="backslashreplace"), status)  # data may hold half characters

    def begin(self, workspace: Workspace, kind: str, task: Mapping[str, Any]) -> None:
        """Start a job of a workspace; the one before it ends."""
        if workspace.job is not None:
            workspace.job.cancel()
        workspace.error = None
        job = Job(kind, workspace.new_folder(), task, self.limits)
        if not self.queue.submit(job):
            raise HTTPException(503, "The studio is busy with other comparisons; try again in a minute.")
        workspace.job, workspace.asked = job, workspace.question

    def absorb(self, workspace: Workspace) -> None:
        """Take in what a finished job has found."""
        job = workspace.job
        if job is None or not job.finished or job.absorbed:
            return
        job.absorbed = True
        if job.state == "cancelled":
            workspace.error = {"message": "You cancelled this.", "hint": "Nothing was lost: go on when you like."}
        elif job.state == "failed":
            workspace.error = job.error
        elif job.kind == "inspect":
            found = job.output("inspected.json")
            workspace.inspected = found
            roles = {c["header"]: c["role"] for c in found["columns"]}
            question = replace(workspace.question, headers=tuple(found["headers"]), lower_is_better=found["cost"])
            workspace.question = questions.with_roles(question, roles, ())
        elif job.kind == "check":
            workspace.checked = job.output("checked.json")
        else:
            self.keep_answer(workspace, job)

    def keep_answer(self, workspace: Workspace, job: Job) -> None:
        result, told = job.output("result.json"), job.output("answer.json")
        number = 1 + max((a.number for a in workspace.answers), default=0)
        answer = Answer(number, workspace.asked or workspace.question, result, told["headline"], job.folder)
        workspace.keep(answer, self.limits.answers)


Handler = Callable[[Request], Awaitable[Response]]


def studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


def session_of(request: Request) -> Session:
    session: Session = request.scope["podium.session"]
    return session


def workspace_of(request: Request) -> Workspace:
    """The workspace that an address names, if it is this session's own."""
    workspace = session_of(request).workspaces.get(request.path_params["workspace"])
    if workspace is None:
        raise HTTPException(404, "There is no such log here. It may have been removed to make room for newer ones.")
    studio_of(request).absorb(workspace)
    return workspace


@contextlib.asynccontextmanager
async def posted(request: Request) -> AsyncIterator[FormData]:
    """The form of a request, once its token is found right. Every POST comes through here."""
    most = 2 * studio_of(request).limits.columns + 50
    async with request.form(max_files=1, max_fields=most, max_part_size=64 * 1024) as form:
        if not right_token(str(form.get("csrf", "")), session_of(request).csrf):
            raise HTTPException(403, "This form is out of date. Go back, reload the page and try again.")
        yield form


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


# --- start ---------------------------------------------------------------------------------------------------------


async def open_studio(request: Request) -> Response:
    """The first address: its token is exchanged for a cookie, and disappears from the address line.

    A browser that comes by a link of another site would not send a strict cookie with a redirect; it gets a page that
    leads on by itself.
    """
    studio = studio_of(request)
    given = request.query_params.get("token", "")
    if given in studio.tickets:
        studio.tickets.discard(given)
    elif not right_token(given, studio.door.token):
        return PlainTextResponse("Open the whole address that podium studio printed: it holds a token.", 403)
    linked = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    response: Response = studio.render(request, "open.html") if linked else go("/")
    if request.scope["podium.session"] is None:
        session = studio.rooms.open_session()
        response.set_cookie(studio.door.cookie, session.id, path="/", httponly=True, samesite="strict")
    return response


async def health(request: Request) -> Response:
    return PlainTextResponse("ok")


async def start(request: Request) -> Response:
    return studio_of(request).render(request, "start.html")


async def upload(request: Request) -> Response:
    studio = studio_of(request)
    try:
        async with posted(request) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise PodiumError("choose a file first", hint="or start with the example.")
            shown = clean_name(file.filename)
            ending = known_ending(shown)
            workspace = studio.rooms.open_workspace(session_of(request), shown)
            path = await to_thread.run_sync(store, file, workspace.folder, "log", ending)
    except PodiumError as error:
        return studio.render(request, "start.html", 422, error=told(error))
    return await inspect(request, workspace, path)


async def example(request: Request) -> Response:
    async with posted(request):
        workspace = studio_of(request).rooms.open_workspace(session_of(request), "example.csv")
    return await inspect(request, workspace, workspace.folder / "log.csv", example=True)


async def inspect(request: Request, workspace: Workspace, path: Path, **more: Any) -> Response:
    workspace.question = replace(workspace.question, path=str(path))
    limits = asdict(studio_of(request).limits)
    studio_of(request).begin(workspace, "inspect", {**workspace.question.task(), "limits": limits, **more})
    return await after(request, workspace)


def told(error: PodiumError) -> dict[str, str]:
    return {"message": error.message, "hint": error.hint}


# --- columns -------------------------------------------------------------------------------------------------------


async def columns(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.job is not None and not workspace.job.finished:
        return go(place(workspace, "working"))
    if workspace.inspected is None:
        error = workspace.error or {"message": "This file could not be read.", "hint": "Try another."}
        return studio_of(request).render(request, "start.html", 422, error=error, failed=workspace.question.shown)
    return show_columns(request, workspace)


def show_columns(
    request: Request, workspace: Workspace, problems: list[str] | None = None, status: int = 200
) -> Response:
    error = workspace.error if workspace.job is not None and workspace.job.kind == "check" else None
    return studio_of(request).render(
        request,
        "columns.html",
        422 if error and status == 200 else status,
        workspace=workspace,
        question=workspace.question,
        found=workspace.inspected,
        problems=problems or [],
        error=error,
    )


async def set_columns(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.inspected is None:
        return go(place(workspace, "columns"))
    async with posted(request) as form:
        try:
            roles, texts = chosen_roles(workspace.question, form)
        except PodiumError as error:
            return show_columns(request, workspace, [error.message], 422)
    problems = questions.role_problems(workspace.question, roles)
    workspace.question = questions.with_roles(workspace.question, roles, texts)
    workspace.checked = None
    if problems:
        workspace.error = None
        return show_columns(request, workspace, problems, 422)
    studio_of(request).begin(workspace, "check", workspace.question.task())
    return await after(request, workspace)


# --- policies ------------------------------------------------------------------------------------------------------


async def policies(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.checked is None:
        return go(place(workspace, "columns"))
    return show_policies(request, workspace)


def show_policies(request: Request, workspace: Workspace, error: PodiumError | None = None) -> Response:
    assert workspace.inspected is not None
    assert workspace.checked is not None
    used = {c.value for c in workspace.question.candidates if c.kind == "column"}
    used |= {h for h, role in workspace.question.roles.items() if role in questions.SINGLE}
    actions = set(workspace.checked["labels"])
    possible = [c["header"] for c in workspace.inspected["columns"] if may_be_policy(c, actions)]
    return studio_of(request).render(
        request,
        "policies.html",
        422 if error else 200,
        workspace=workspace,
        question=workspace.question,
        checked=workspace.checked,
        possible=[h for h in possible if h not in used],
        error=told(error) if error else None,
    )


async def set_policies(request: Request) -> Response:
    """Add one policy, or remove one."""
    workspace = workspace_of(request)
    if workspace.checked is None:
        return go(place(workspace, "columns"))
    question, limits = workspace.question, studio_of(request).limits
    try:
        async with posted(request) as form:
            if "remove" in form:
                kept = tuple(c for c in question.candidates if c.name != form["remove"])
            else:
                file = form.get("file")
                given = await keep_file(workspace, file) if isinstance(file, UploadFile) and file.filename else None
                kept = (*question.candidates, new_candidate(question, workspace.checked["labels"], form, given, limits))
    except PodiumError as error:
        return show_policies(request, workspace, error)
    workspace.question = replace(question, candidates=kept)
    return go(place(workspace, "policies"))


async def keep_file(workspace: Workspace, file: UploadFile) -> tuple[str, str]:
    """What a policy's file is called, and where it is kept."""
    shown = clean_name(file.filename)
    ending = known_ending(shown)
    taken = {workspace.question.shown, *(c.value for c in workspace.question.candidates if c.kind == "file")}
    if shown in taken:
        raise PodiumError(f"there is a file called {shown} already", hint="rename the file, so that each has its name.")
    return shown, str(await to_thread.run_sync(store, file, workspace.new_folder(), "policy", ending))


# --- answer --------------------------------------------------------------------------------------------------------


async def compare(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.checked is None:
        return go(place(workspace, "columns"))
    async with posted(request) as form:
        try:
            if "estimator" in form:
                workspace.question = chosen_settings(workspace.question, form)
            if len(workspace.question.candidates) < 2:
                raise PodiumError("a comparison needs at least two policies", hint="add one more.")
        except PodiumError as error:
            if not workspace.answers:
                return show_policies(request, workspace, error)
            return show_answer(request, workspace, told(error))
    studio_of(request).begin(workspace, "compare", workspace.question.task())
    return await after(request, workspace)


async def answer(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.job is not None and not workspace.job.finished:
        return go(place(workspace, "working"))
    if not workspace.answers and workspace.error is None:
        return go(place(workspace, "policies"))
    return show_answer(request, workspace, workspace.error)


def show_answer(request: Request, workspace: Workspace, error: Mapping[str, str] | None) -> Response:
    latest = workspace.answers[-1] if workspace.answers else None
    earlier = workspace.answers[-2] if len(workspace.answers) > 1 else None
    changes = what_changed(earlier.result, latest.result) if latest and earlier else []
    return studio_of(request).render(
        request,
        "answer.html",
        422 if error else 200,
        workspace=workspace,
        question=workspace.question,
        answer=latest,
        changes=changes,
        error=error,
    )


def answer_of(request: Request) -> Answer:
    found = workspace_of(request).answer(request.path_params["number"])
    if found is None:
        raise HTTPException(404, "There is no such answer any more.")
    return found


async def report(request: Request) -> Response:
    """The report for the frame: its own scripts alone, in an origin of its own."""
    content = (answer_of(request).folder / "report.html").read_bytes()
    policy = f"{CONTENT_SECURITY_POLICY}; frame-ancestors 'self'; sandbox allow-scripts allow-modals allow-downloads"
    headers = {"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


async def take(request: Request) -> Response:
    found = download(answer_of(request), request.path_params["file"])
    if found is None:
        raise HTTPException(404, "There is no such download.")
    headers = {"Content-Disposition": disposition(request.path_params["file"])}
    return Response(found[0], media_type=found[1], headers=headers)


async def take_log(request: Request) -> Response:
    """The log itself, so that the example can be compared elsewhere too."""
    workspace = workspace_of(request)
    if workspace.inspected is None:
        raise HTTPException(404, "This log could not be read.")
    headers = {"Content-Disposition": disposition(workspace.question.shown)}
    return FileResponse(workspace.question.path, media_type="application/octet-stream", headers=headers)


def disposition(name: str) -> str:
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


# --- progress ------------------------------------------------------------------------------------------------------


async def working(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.job is None or workspace.job.finished:
        return go(target(studio_of(request), workspace))
    job = workspace.job
    return studio_of(request).render(request, "working.html", workspace=workspace, job=job, doing=DOING[job.kind])


async def status(request: Request) -> Response:
    workspace = workspace_of(request)
    job = workspace.job
    return JSONResponse(
        {
            "finished": job is None or job.finished,
            "waiting": job is not None and job.state == "waiting",
            "stages": [] if job is None else job.stages,
            "seconds": 0 if job is None else round(job.seconds),
            "next": target(studio_of(request), workspace),
        }
    )


async def cancel(request: Request) -> Response:
    workspace = workspace_of(request)
    async with posted(request):
        job = workspace.job
    if job is not None:
        job.cancel()
        await to_thread.run_sync(job.wait, 5.0)
    return go(target(studio_of(request), workspace))


async def forget(request: Request) -> Response:
    workspace = workspace_of(request)
    async with posted(request):
        session_of(request).workspaces.pop(workspace.id).close()
    return go("/")


async def show_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"Connection": "close"} if error.status_code == 413 else {}
    page = studio_of(request).render(request, "error.html", error.status_code, message=error.detail)
    page.headers.update(headers)
    return page


ROUTES = [
    Route("/open", open_studio),
    Route("/health", health),
    Route("/", start),
    Route("/upload", upload, methods=["POST"]),
    Route("/example", example, methods=["POST"]),
    Route("/w/{workspace}/columns", columns, methods=["GET"]),
    Route("/w/{workspace}/columns", set_columns, methods=["POST"]),
    Route("/w/{workspace}/policies", policies, methods=["GET"]),
    Route("/w/{workspace}/policies", set_policies, methods=["POST"]),
    Route("/w/{workspace}/compare", compare, methods=["POST"]),
    Route("/w/{workspace}/working", working),
    Route("/w/{workspace}/status", status),
    Route("/w/{workspace}/cancel", cancel, methods=["POST"]),
    Route("/w/{workspace}/forget", forget, methods=["POST"]),
    Route("/w/{workspace}/answer", answer),
    Route("/w/{workspace}/log", take_log),
    Route("/w/{workspace}/answers/{number:int}/report", report),
    Route("/w/{workspace}/answers/{number:int}/{file}", take),
    Mount("/static", StaticFiles(directory=HERE / "static")),
]


def build_app(door: Door, limits: Limits | None = None) -> tuple[ASGIApp, Studio]:
    """The studio as an application, behind its guard; its files vanish when it shuts down."""
    studio = Studio(door, limits or Limits())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await to_thread.run_sync(studio.close)

    app = Starlette(routes=ROUTES, lifespan=lifespan, exception_handlers={HTTPException: show_error})
    app.state.studio = studio
    return Guard(app, door, studio.rooms, studio.limits), studio
