"""The first step: the way in, a log that is dropped or the example, and logs that are removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from podium.data.errors import PodiumError
from podium.studio.security import LOCKED, right_token
from podium.studio.uploads import clean_name, known_ending, store
from podium.studio.visits import Studio, after, go, look_after_logs, posted, session_of, studio_of, told, workspace_of
from podium.studio.workspaces import Workspace


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
        raise HTTPException(403, LOCKED)
    linked = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    response: Response = studio.render(request, "open.html") if linked else go("/")
    if request.scope["podium.session"] is None:
        session = studio.rooms.open_session()
        response.set_cookie(studio.door.cookie, session.id, path="/", httponly=True, samesite="strict")
    return response


async def health(request: Request) -> Response:
    return PlainTextResponse("ok")


async def start(request: Request) -> Response:
    look_after_logs(request)
    return studio_of(request).render(request, "start.html")


async def upload(request: Request) -> Response:
    studio, session = studio_of(request), session_of(request)
    try:
        look_after_logs(request)
        studio.rooms.room_for(session)
        async with posted(request) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise PodiumError("choose a file first", hint="or start with the example.")
            shown = clean_name(file.filename)
            ending = known_ending(shown)
            with studio.rooms.new_workspace(session, shown) as workspace:
                path = await to_thread.run_sync(store, file, workspace.folder, "log", ending)
                inspect(studio, workspace, path)
    except PodiumError as error:
        return studio.render(request, "start.html", 422, error=told(error))
    return await after(request, workspace)


async def example(request: Request) -> Response:
    studio, session = studio_of(request), session_of(request)
    try:
        look_after_logs(request)
        async with posted(request):
            with studio.rooms.new_workspace(session, "example.csv") as workspace:
                inspect(studio, workspace, workspace.folder / "log.csv", example=True)
    except PodiumError as error:
        return studio.render(request, "start.html", 422, error=told(error))
    return await after(request, workspace)


def inspect(studio: Studio, workspace: Workspace, path: Path, **more: Any) -> None:
    workspace.question = replace(workspace.question, path=str(path))
    studio.begin(workspace, "inspect", {**workspace.question.task(), **more})


async def forget(request: Request) -> Response:
    workspace = workspace_of(request)
    async with posted(request):
        session_of(request).workspaces.pop(workspace.id, None)
    await to_thread.run_sync(workspace.close)
    return go("/")
