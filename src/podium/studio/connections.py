"""Connections that must get on: whoever opens one and sends no whole request, or takes no answer, loses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from podium.studio.security import HEADERS

HEAD_SECONDS = 10.0
MOST = 100  # connections at once
MOST_HEAD = 64 * 1024  # bytes of a request before its body; a browser sends the cookies of every studio of the machine


class PromptConnection(H11Protocol):
    """HTTP/1.1 with a limit on the time that a request takes to begin, and that a client takes to read on.

    Without it a stranger on the machine, who knows no token, could hold every connection that the studio takes.
    """

    patience = HEAD_SECONDS
    most = MOST

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._seen: tuple[RequestResponseCycle | None] | None = None
        self._unread, self._took = 0, False
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle = self.loop.call_later(self.patience, self._look)
        if len(self.connections) > self.most:
            self._make_room()

    @property
    def waits(self) -> bool:
        """Whether no request is being worked on."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the connection that has waited longest for a request; if all are at work, turn this one away."""
        waiting = [c for c in self.connections if isinstance(c, PromptConnection) and c is not self and c.waits]
        if waiting:
            min(waiting, key=lambda c: c._since).transport.abort()
        else:
            self.app = self.turn_away

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        self._took = True
        super().resume_writing()

    def _look(self) -> None:
        """Close a connection that works on no request, or whose client took nothing, since it was looked at before."""
        cycle, waits = self.cycle, self.waits
        unread = self.transport.get_write_buffer_size()
        if unread and unread == self._unread and not self._took:
            self.transport.abort()
            return
        if waits and not unread and (cycle is None or self._seen == (cycle,)):
            self.transport.close()
            return
        self._seen, self._unread, self._took = (cycle,) if waits else None, unread, False
        self._timer = self.loop.call_later(self.patience, self._look)

    def refusal(self, status: int, message: str) -> Response:
        """The answer to a request that does not reach the application."""
        return PlainTextResponse(message, status)

    async def turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = self.refusal(503, "Too many pages are open at this studio. Close some, and try again.")
        page.headers.update({**HEADERS, "Connection": "close"})
        await page(scope, receive, send)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or too long, if the answer to this request has not begun yet."""
        page = self.refusal(400, "The studio could not read this request: it is broken, or its head is too long.")
        page.headers.update({**HEADERS, "Connection": "close"})
        if self.cycle is not None and not self.cycle.response_complete:  # its own answer would come too late
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = h11.Response(status_code=page.status_code, headers=page.raw_headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=bytes(page.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def with_pages(failed: Callable[[Scope, Exception], Response]) -> type[PromptConnection]:
    """Connections that refuse with the studio's own pages."""

    class Connection(PromptConnection):
        def refusal(self, status: int, message: str) -> Response:
            return failed({}, HTTPException(status, message))

    return Connection
