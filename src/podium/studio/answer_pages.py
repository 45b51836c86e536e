"""The last step: comparing and its progress, the answer, and what can be taken from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from podium.data.errors import PodiumError
from podium.outputs.report import CONTENT_SECURITY_POLICY
from podium.studio.changes import what_changed
from podium.studio.choices import chosen_behavior, chosen_settings
from podium.studio.downloads import download
from podium.studio.question_pages import show_policies
from podium.studio.visits import after, go, place, posted, studio_of, target, told, workspace_of
from podium.studio.workspaces import Answer, Workspace

DOING = {"inspect": "Reading your file", "check": "Checking the log", "compare": "Comparing the policies"}


async def compare(request: Request) -> Response:
    workspace = workspace_of(request)
    async with posted(request) as form:
        if workspace.checked is None:
            return go(place(workspace, "columns"))
        try:
            if "estimator" in form:
                question = chosen_behavior(workspace.question, form, workspace.checked["propensities"])
                workspace.question = chosen_settings(question, form)
            if (count := len(workspace.question.candidates)) > (most := studio_of(request).limits.policies):
                raise PodiumError(
                    f"the studio compares at most {most} policies; these are {count}", hint="remove some."
                )
            if count < 2:
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
    path = workspace.question.path
    kind = "application/octet-stream"
    return FileResponse(path, media_type=kind, headers=headers, stat_result=os.stat(path))


def disposition(name: str) -> str:
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


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
