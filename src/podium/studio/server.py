"""`podium studio`: listens, prints its address, and leaves nothing behind when it ends."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from podium.command.signals import ENDING
from podium.data.errors import MissingExtra, PodiumError
from podium.studio.limits import MB, Limits

PORT = 8765


@dataclass(frozen=True)
class ServerOptions:
    """What the command line says."""

    host: str = "127.0.0.1"
    port: int | None = None  # None: the usual one, or a free one where that is taken
    browser: bool = True
    max_upload: int = Limits.upload_bytes // MB
    max_rows: int = Limits.rows


def serve(options: ServerOptions) -> None:
    """Run the studio until it is interrupted."""
    try:
        import uvicorn

        from podium.studio.app import build_app
        from podium.studio.connections import MOST_HEAD, with_pages
        from podium.studio.security import Door
    except ImportError as error:
        package = (error.name or "starlette").split(".")[0]
        raise MissingExtra(package, "studio", "the studio") from error
    if options.max_upload < 1 or options.max_rows < 1:
        raise PodiumError("--max-upload and --max-rows must be at least 1", hint="leave them out for the usual limits.")
    listener = listen(options.host, options.port)
    host, port = options.host, listener.getsockname()[1]
    door = Door(host, port, secrets.token_urlsafe(32))
    limits = Limits(upload_bytes=options.max_upload * MB, rows=options.max_rows)
    app, studio = build_app(door, limits)
    address = f"http://{shown_host(host)}:{port}/open?token="
    try:
        if not door.is_loopback:
            print(
                "podium: warning: other machines can reach this studio, and the way there is not encrypted; whoever "
                "knows the address below may use it.",
                file=sys.stderr,
            )
        print(
            f"podium studio: open this address in a browser (Ctrl-C ends the studio)\n\n  {address}{door.token}\n",
            flush=True,
        )
        if options.browser:
            webbrowser.open(address + studio.new_ticket())
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # a broken form has its page
        config = uvicorn.Config(
            app, http=with_pages(studio.failed), ws="none", lifespan="on", log_level="critical", access_log=False,
            proxy_headers=False, server_header=False, timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=MOST_HEAD,
        )  # fmt: skip
        server = uvicorn.Server(config)
        with ending(lambda: setattr(server, "should_exit", True)):
            server.run(sockets=[listener])
    finally:
        studio.close()
        listener.close()


@contextmanager
def ending(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGHUP and SIGQUIT stop the server, as uvicorn lets SIGINT and SIGTERM, and take effect when it has stopped.

    Raised in the middle of the event loop, they would tear the answers that are under way.
    """
    numbers = [n for n in ENDING if n != signal.SIGTERM and signal.getsignal(n) not in (signal.SIG_IGN, None)]
    received: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        received.append(number)
        stop()

    previous = {number: signal.signal(number, hear) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])


def shown_host(host: str) -> str:
    """The host as a browser on this machine writes it."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; the usual port gives way to a free one, a port that was asked for does not."""
    wanted = [PORT, 0] if port is None else [port]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for i, number in enumerate(wanted):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
            return listener
        except (OSError, OverflowError) as error:
            listener.close()
            if i + 1 < len(wanted):
                continue
            reason = getattr(error, "strerror", None) or str(error)
            raise PodiumError(
                f"the studio cannot listen on {host} port {number}: {reason}",
                hint="choose another with --port, or --port 0 for any free one.",
            ) from error
    raise AssertionError("there is always a port to try")
