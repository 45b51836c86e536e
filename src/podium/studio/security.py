"""Who may speak to the studio, and what its pages may do: host, origin, session, size of a request, headers.

The studio listens on loopback, where every program and every open web page of the machine can reach it. So:
- a request must name a host that is the studio's own (a foreign name that resolves to 127.0.0.1 is refused);
- the first address holds a secret token, which is exchanged for a cookie that scripts and other sites cannot use;
- a request that changes anything must come from the studio's own pages (Origin, and a token in each form);
- pages may load nothing from elsewhere and run no script but the studio's own.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import time
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from anyio import fail_after
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.studio.limits import Limits
from podium.studio.workspaces import Rooms

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
OPEN_PATHS = ("/open", "/health")  # and /static/: neither shows nor changes anything
UPLOADS = ("/upload", "/policies")  # paths that end so take files
SAFE = ("GET", "HEAD")
AROUND = 64 * 1024  # bytes that surround a file in a form
LOCKED = "Open the whole address that podium studio printed: it holds a token."


@dataclass(frozen=True)
class Door:
    """Where the studio listens, and the token that opens it."""

    host: str
    port: int
    token: str

    @property
    def cookie(self) -> str:
        """Cookies do not tell ports apart, so that two studios need two names."""
        return f"podium_studio_{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or is_address(self.host, lambda a: a.is_loopback)

    def admits(self, host: str) -> bool:
        """Whether a Host header names this studio.

        Beyond loopback the machine has addresses that nobody knows beforehand: any address in digits is right, for a
        hostile page has a name; of names only the machine's own.
        """
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        name = name.strip("[]") if name.startswith("[") else name
        if self.is_loopback:
            return name in ("127.0.0.1", "localhost", "::1", self.host)
        return is_address(name, lambda a: True) or name.lower() in {self.host.lower(), *machine_names()}


@cache
def machine_names() -> frozenset[str]:
    """What this machine is called, in small letters."""
    return frozenset(name.lower() for name in ("localhost", socket.gethostname(), socket.getfqdn()))


def is_address(text: str, test: Callable[[ipaddress.IPv4Address | ipaddress.IPv6Address], bool]) -> bool:
    try:
        return test(ipaddress.ip_address(text))
    except ValueError:
        return False


class Guard:
    """Stands before the application: lets a request in or refuses it, and makes a page of every error."""

    def __init__(self, app: ASGIApp, door: Door, rooms: Rooms, failed: Callable[[Scope, Exception], Response]) -> None:
        self.app = app
        self.door = door
        self.rooms = rooms
        self.limits = rooms.limits
        self.failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            most = self.admit(scope)
            await self.app(scope, measured(receive, most, self.limits), send_guarded)
        except ClientDisconnect:
            pass  # somebody closed the page while it sent a file
        except CancelledError:  # the server ends, and waits for no answer any more
            await self.answer(HTTPException(503, "The studio is ending."), begun, scope, receive, send_guarded)
        except Exception as error:
            await self.answer(error, begun, scope, receive, send_guarded)

    async def answer(self, error: Exception, begun: bool, scope: Scope, receive: Receive, send: Send) -> None:
        """Say what went wrong; an answer that has begun is broken off."""
        page = self.failed(scope, error)
        if not begun:
            await page(scope, receive, send)

    def admit(self, scope: Scope) -> int:
        """The most bytes that a request may bring, or an error; its session then stands in the scope."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.admits(hosts[0]):
            raise HTTPException(421, "This is not the address of the studio.")
        if scope["method"] not in (*SAFE, "POST"):
            raise HTTPException(405, "The studio knows GET and POST alone.", {"Allow": "GET, HEAD, POST"})
        if scope["method"] == "POST" and not same_origin(headers, hosts[0]):
            raise HTTPException(403, "This request does not come from the studio's own pages.")
        path = scope["path"]
        session = self.rooms.visit(cookie_parser(headers.get("cookie", "")).get(self.door.cookie, ""))
        scope["podium.session"] = session
        if session is None and path not in OPEN_PATHS and not path.startswith("/static/"):
            raise HTTPException(403, LOCKED)
        length = headers.get("content-length", "")
        most = self.limits.upload_bytes if path.endswith(UPLOADS) else self.limits.form_bytes
        if length.isascii() and length.isdigit() and int(length[:20]) > most + AROUND:
            raise HTTPException(413, too_large(most, self.limits))
        scope["headers"] = [h for h in scope["headers"] if h[0] != b"range"]  # files are given whole
        return most


def same_origin(headers: Headers, host: str) -> bool:
    """Whether a browser says that a request comes from the studio's own pages.

    Under "no-referrer" browsers hide the origin of forms ("null") even from their own site; Sec-Fetch-Site, which no
    page can forge, then says whether it is the same.
    """
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    origin = headers.get("origin")
    return origin == f"http://{host}" or (origin == "null" and site == "same-origin")


def measured(receive: Receive, most: int, limits: Limits) -> Receive:
    """The request's body, which ends with an error where it stalls, drips or grows too large, whatever it announced."""
    size, whole, begin = 0, False, time.monotonic()

    async def receive_measured() -> Message:
        nonlocal size, whole
        left = limits.stall_seconds + size / limits.slowest_bytes - (time.monotonic() - begin)
        try:
            with fail_after(None if whole else max(0.0, min(left, limits.stall_seconds))):
                message = await receive()
        except TimeoutError as error:
            late = {"Connection": "close"}
            raise HTTPException(408, "The file stopped coming, or came too slowly. Try again.", late) from error
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > most + AROUND:
            raise HTTPException(413, too_large(most, limits))
        return message

    return receive_measured


def too_large(most: int, limits: Limits) -> str:
    more = "; start it with --max-upload for more." if most == limits.upload_bytes else " for a form."
    return f"This is larger than the {most / 1024**2:g} MB that the studio takes{more}"


def right_token(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(errors="backslashreplace"), wanted.encode())
