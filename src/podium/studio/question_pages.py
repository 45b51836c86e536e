"""The second and third step: what each column is, and which policies are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anyio import to_thread
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from podium.data.errors import PodiumError
from podium.data.guesses import may_be_policy
from podium.studio import questions
from podium.studio.choices import chosen_behavior, chosen_reading, chosen_roles, new_candidate
from podium.studio.limits import Limits
from podium.studio.questions import Question
from podium.studio.reading import POLICY_ENDINGS
from podium.studio.uploads import clean_name, known_ending, store
from podium.studio.visits import after, go, place, posted, studio_of, told, workspace_of
from podium.studio.workspaces import Workspace


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
    workspace, limits = workspace_of(request), studio_of(request).limits
    async with posted(request, fields=2 * limits.columns + 50) as form:
        if workspace.inspected is None:
            return go(place(workspace, "columns"))
        try:
            roles, texts = chosen_roles(workspace.question, form)
            workspace.question = chosen_reading(workspace.question, form)
        except PodiumError as error:
            return show_columns(request, workspace, [error.message], 422)
    problems = questions.role_problems(workspace.question, roles, limits.policies)
    workspace.question = questions.with_roles(workspace.question, roles, texts)
    workspace.checked = None
    if problems:
        workspace.error = None
        return show_columns(request, workspace, problems, 422)
    studio_of(request).begin(workspace, "check", workspace.question.task())
    return await after(request, workspace)


async def policies(request: Request) -> Response:
    workspace = workspace_of(request)
    if workspace.checked is None:
        return go(place(workspace, "columns"))
    return show_policies(request, workspace)


def show_policies(request: Request, workspace: Workspace, error: PodiumError | None = None) -> Response:
    if workspace.inspected is None or workspace.checked is None:  # another page changed the columns meanwhile
        return go(place(workspace, "columns"))
    used = {c.value for c in workspace.question.candidates if c.kind == "column"}
    used |= {h for h, role in workspace.question.roles.items() if questions.played(role) in questions.SINGLE}
    actions = set(workspace.checked["labels"])
    continuous = workspace.question.continuous
    possible = [
        c["header"]
        for c in workspace.inspected["columns"]
        if (c["kind"] == "number" if continuous else may_be_policy(c, actions))
    ]
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
    """Add one policy, remove one, or say how propensities are had."""
    workspace = workspace_of(request)
    async with posted(request) as form:
        if workspace.checked is None:
            return go(place(workspace, "columns"))
        try:
            if "behavior" in form:
                known = workspace.checked["propensities"]
                workspace.question = chosen_behavior(workspace.question, form, known)
            elif "remove" in form:
                remove_policy(workspace, str(form["remove"]))
            else:
                await add_policy(workspace, form, studio_of(request).limits)
        except PodiumError as error:
            return show_policies(request, workspace, error)
    return go(place(workspace, "policies"))


def remove_policy(workspace: Workspace, name: str) -> None:
    """Take a policy out, and its file with it."""
    gone = [c for c in workspace.question.candidates if c.name == name]
    left = tuple(c for c in workspace.question.candidates if c.name != name)
    workspace.question = replace(workspace.question, candidates=left)
    workspace.discard(*(Path(c.path).parent for c in gone if c.path))


async def add_policy(workspace: Workspace, form: FormData, limits: Limits) -> None:
    """Add the policy that a form names; a file that does not become one is not kept.

    Other requests of the same person may change the workspace while the file is written, so that everything is looked
    at after that.
    """
    file = form.get("file") if form.get("kind") == "file" else None
    given = await keep_file(workspace, file) if isinstance(file, UploadFile) and file.filename else None
    try:
        if workspace.checked is None:
            raise PodiumError("the columns were changed meanwhile", hint="choose the columns again.")
        if given is not None:
            refuse_taken_name(workspace.question, given[0])
        added = new_candidate(workspace.question, workspace.checked["labels"], form, given, limits)
    except BaseException:
        if given is not None:
            workspace.discard(Path(given[1]).parent)
        raise
    workspace.question = replace(workspace.question, candidates=(*workspace.question.candidates, added))


async def keep_file(workspace: Workspace, file: UploadFile) -> tuple[str, str]:
    """What a policy's file is called, and where it is kept."""
    shown = clean_name(file.filename)
    ending = known_ending(shown, POLICY_ENDINGS)
    refuse_taken_name(workspace.question, shown)
    folder = workspace.new_folder()
    try:
        return shown, str(await to_thread.run_sync(store, file, folder, "policy", ending))
    except BaseException:
        workspace.discard(folder)
        raise


def refuse_taken_name(question: Question, shown: str) -> None:
    if shown in {question.shown, *(c.value for c in question.candidates if c.kind == "file")}:
        raise PodiumError(f"there is a file called {shown} already", hint="rename the file, so that each has its name.")
