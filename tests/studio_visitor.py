"""A person at the studio without a browser: opens it, fills in forms, waits, reads pages without scripts."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser
from typing import Any

from starlette.testclient import TestClient

from podium.studio.app import build_app
from podium.studio.limits import Limits
from podium.studio.security import Door
from podium.studio.visits import Studio

PORT = 8123
HOME = f"http://127.0.0.1:{PORT}"
TOKEN = "the-token"

LOG = "age,city,action,reward,propensity,pi_new,pi_old\n" + "".join(
    f"{20 + i % 5},{'ab'[i % 2]},{'xyz'[i % 3]},{i % 3 + 0.1 * (i % 7)},0.3333333,{0.8 if i % 3 == 2 else 0.1},{0.3}\n"
    for i in range(60)
)


def make_studio(limits: Limits | None = None) -> tuple[Any, Studio]:
    return build_app(Door("127.0.0.1", PORT, TOKEN), limits)


class Visitor:
    """One browser with its own cookies."""

    def __init__(self, app: Any) -> None:
        self.client = TestClient(app, base_url=HOME, headers={"origin": HOME}, raise_server_exceptions=False)
        opened = self.client.get(f"/open?token={TOKEN}")
        assert opened.status_code == 200
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', opened.text)[0]

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def post(self, path: str, data: dict[str, Any] | None = None, **options: Any) -> Any:
        return self.settle(self.client.post(path, data={"csrf": self.csrf, **(data or {})}, **options))

    def settle(self, response: Any) -> Any:
        """Wait at the progress page until it leads on."""
        end = time.monotonic() + 600
        while str(response.url).endswith("/working"):
            assert time.monotonic() < end, "the job does not end"
            time.sleep(0.05)
            response = self.client.get(response.url)
        return response

    def upload(self, name: str, content: bytes | str) -> Any:
        body = content.encode() if isinstance(content, str) else content
        return self.post("/upload", files={"file": (name, body)})

    def accept_columns(self, page: Any, **changes: str) -> Any:
        """Send the form of the columns, with other roles for some of them."""
        return self.post(place(page) + "/columns", roles_on(page, **changes))

    def prepare(self, name: str = "log.csv", content: bytes | str = LOG) -> str:
        """A log, up to its policies; gives the address of the workspace."""
        page = self.accept_columns(self.upload(name, content))
        assert str(page.url).endswith("/policies"), alerts(page)
        return place(page)

    def compare(self, workspace: str, **settings: Any) -> Any:
        page = self.post(workspace + "/compare", settings)
        assert str(page.url).endswith("/answer"), alerts(page)
        return page


def place(page: Any) -> str:
    """The workspace that a page belongs to."""
    return re.match(r"(/w/[^/]+)", page.url.path)[1]  # type: ignore[index]


class Form(HTMLParser):
    """Names of columns, and the fields of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._select = self._label = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = dict(attrs)
        self.tags.append((tag, got))
        if tag == "select":
            self._select = got.get("name") or ""
        elif tag == "option" and "selected" in got:
            self.fields[self._select] = got["value"] or ""
        elif tag == "label":
            self._label = got.get("for") or ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._label:
            self.labels[self._label] = data
            self._label = ""


def roles_on(page: Any, **changes: str) -> dict[str, str]:
    form = Form(page.text)
    roles = {name: value for name, value in form.fields.items() if name.startswith("role-")}
    place_of = {text.removeprefix("Role of "): name for name, text in form.labels.items() if name in roles}
    return roles | {place_of[header]: role for header, role in changes.items()}


def guessed(page: Any) -> dict[str, str]:
    form = Form(page.text)
    return {form.labels[n].removeprefix("Role of "): v for n, v in form.fields.items() if n.startswith("role-")}


def alerts(page: Any) -> str:
    """What a page complains of, as text."""
    found = re.findall(r'<(div|p)[^>]* role="alert"[^>]*>(.*?)</\1>', page.text, re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", " ".join(text for _, text in found)).split()))
