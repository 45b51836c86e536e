"""Connections that must get on: whoever opens one and does not send the whole head of a request loses it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 10.0


class PromptConnection(H11Protocol):
    """HTTP/1.1 with a limit on the time that a request takes to begin.

    Without it a stranger on the machine, who knows no token, could hold every connection that the studio takes.
    """

    patience = HEAD_SECONDS

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._seen: tuple[RequestResponseCycle | None] | None = None
        self._timer: asyncio.TimerHandle = self.loop.call_later(self.patience, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close a connection that works on no request and did not when it was looked at before."""
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete
        if waits and (cycle is None or self._seen == (cycle,)):
            self.transport.close()
            return
        self._seen = (cycle,) if waits else None
        self._timer = self.loop.call_later(self.patience, self._look)
