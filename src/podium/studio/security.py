"""Who may speak to the studio, and what its pages may do: host, origin, session, size of a request, headers.

The studio listens on loopback, where every program and every open web page of the machine can reach it. So:
- a request must name a host that is the studio's own (a foreign name that resolves to 127.0.0.1 is refused);
- the first address holds a secret token, which is exchanged for a cookie that scripts and other sites cannot use;
- a request that changes anything must come from the studio's own pages (Origin, and a token in each form);
- pages may load nothing from elsewhere and run no script but the studio's own.
"""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.cookies import CookieError, SimpleCookie

from anyio import fail_after
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
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
    """Stands before the application: lets a request in, or answers it."""

    def __init__(self, app: ASGIApp, door: Door, rooms: Rooms, limits: Limits) -> None:
        self.app = app
        self.door = door
        self.rooms = rooms
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self.refuse(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        most = self.limits.upload_bytes if scope["path"].endswith(UPLOADS) else self.limits.form_bytes
        with contextlib.suppress(ClientDisconnect):  # somebody closed the page while it sent a file
            await self.app(scope, measured(receive, most, self.limits.stall_seconds), send_guarded)

    def refuse(self, scope: Scope) -> PlainTextResponse | None:
        """The answer to a request that may not come in; otherwise its session stands in the scope."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.admits(hosts[0]):
            return PlainTextResponse("This is not the address of the studio.", 421)
        if scope["method"] not in (*SAFE, "POST"):
            return PlainTextResponse("The studio knows GET and POST alone.", 405)
        if scope["method"] == "POST" and not same_origin(headers, hosts[0]):
            return PlainTextResponse("This request does not come from the studio's own pages.", 403)
        path = scope["path"]
        session = self.rooms.sessions.get(cookie_of(headers, self.door.cookie))
        scope["podium.session"] = session
        if session is None and path not in OPEN_PATHS and not path.startswith("/static/"):
            return PlainTextResponse("Open the whole address that podium studio printed: it holds a token.", 403)
        length = headers.get("content-length", "0")
        most = self.limits.upload_bytes if path.endswith(UPLOADS) else self.limits.form_bytes
        if length.isdigit() and int(length) > most + 64 * 1024:
            return PlainTextResponse(too_large(most), 413, {"Connection": "close"})
        return None


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


def cookie_of(headers: Headers, name: str) -> str:
    jar = SimpleCookie()
    try:
        jar.load(headers.get("cookie", ""))
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""


def measured(receive: Receive, most: int, patience: float) -> Receive:
    """The request's body, which ends with an error where it stalls or grows too large, whatever its headers said."""
    size, whole = 0, False

    async def receive_measured() -> Message:
        nonlocal size, whole
        try:
            with fail_after(None if whole else patience):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "The file stopped coming. Try again.") from error
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > most + 64 * 1024:  # what surrounds a file in a form
            raise HTTPException(413, too_large(most))
        return message

    return receive_measured


def too_large(most: int) -> str:
    size = f"{most / 1024**2:g} MB"
    return f"This is larger than the {size} that the studio takes; --max-upload allows more."


def right_token(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())
