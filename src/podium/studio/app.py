"""The studio as a web application: which address leads to which page, behind its guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from anyio import to_thread
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from podium.studio import answer_pages, question_pages, start_pages
from podium.studio.failures import report_callback
from podium.studio.limits import Limits
from podium.studio.security import Door, Guard
from podium.studio.visits import HERE, Studio

ROUTES = [
    Route("/open", start_pages.open_studio),
    Route("/health", start_pages.health),
    Route("/", start_pages.start),
    Route("/upload", start_pages.upload, methods=["POST"]),
    Route("/example", start_pages.example, methods=["POST"]),
    Route("/w/{workspace}/columns", question_pages.columns, methods=["GET"]),
    Route("/w/{workspace}/columns", question_pages.set_columns, methods=["POST"]),
    Route("/w/{workspace}/policies", question_pages.policies, methods=["GET"]),
    Route("/w/{workspace}/policies", question_pages.set_policies, methods=["POST"]),
    Route("/w/{workspace}/compare", answer_pages.compare, methods=["POST"]),
    Route("/w/{workspace}/working", answer_pages.working),
    Route("/w/{workspace}/status", answer_pages.status),
    Route("/w/{workspace}/cancel", answer_pages.cancel, methods=["POST"]),
    Route("/w/{workspace}/forget", start_pages.forget, methods=["POST"]),
    Route("/w/{workspace}/answer", answer_pages.answer),
    Route("/w/{workspace}/log", answer_pages.take_log),
    Route("/w/{workspace}/answers/{number}/report", answer_pages.report),
    Route("/w/{workspace}/answers/{number}/{file}", answer_pages.take),
    Mount("/static", StaticFiles(directory=HERE / "static")),
]


class Application(Starlette):
    """Routes alone: every error passes through to the guard, which makes a page of it."""

    def build_middleware_stack(self) -> ASGIApp:
        return self.router


def build_app(door: Door, limits: Limits | None = None) -> tuple[ASGIApp, Studio]:
    """The studio as an application, behind its guard; its files vanish when it shuts down."""
    studio = Studio(door, limits or Limits())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: report_callback(context))
        try:
            yield
        finally:
            await to_thread.run_sync(studio.close)

    app = Application(routes=ROUTES, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.studio = studio
    return Guard(app, door, studio.rooms, studio.failed), studio
