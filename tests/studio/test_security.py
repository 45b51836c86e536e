"""Who may speak to the studio, and what its answers allow."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from studio_visitor import HOME, LOG, PORT, TOKEN, Visitor, make_studio

from podium.studio.app import ROUTES
from podium.studio.limits import Limits
from podium.studio.security import Door, measured
from podium.studio.visits import Studio


def stranger(app: Any, **headers: str) -> TestClient:
    return TestClient(app, base_url=HOME, headers={"origin": HOME, **headers}, raise_server_exceptions=False)


def test_without_the_token_nothing_is_shown(built: Any) -> None:
    client = stranger(built[0])
    for path in ("/", "/w/x/columns", "/open", "/open?token=", "/open?token=wrong", "/w/x/status", "/nothing"):
        assert client.get(path).status_code == 403, path
    assert client.post("/upload", files={"file": ("a.csv", LOG)}).status_code == 403
    assert not client.cookies
    assert client.get("/health").text == "ok"


def test_the_token_becomes_a_cookie_and_leaves_the_address(built: Any) -> None:
    client = stranger(built[0])
    answer = client.get(f"/open?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert f"podium_studio_{PORT}" in cookie
    assert "set-cookie" not in client.get(f"/open?token={TOKEN}", follow_redirects=False).headers


def test_a_ticket_opens_the_studio_once(built: Any) -> None:
    ticket = built[1].new_ticket()
    assert stranger(built[0]).get(f"/open?token={ticket}").status_code == 200
    assert stranger(built[0]).get(f"/open?token={ticket}").status_code == 403


def test_a_link_on_another_site_leads_on_by_a_page(built: Any) -> None:
    """A strict cookie is not sent with a redirect that another site began."""
    answer = stranger(built[0], **{"sec-fetch-site": "cross-site"}).get(f"/open?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/">' in answer.text
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    assert TOKEN not in answer.text


@pytest.mark.parametrize("cookie", ["x", "", '"', "\\", "a" * 5000, "podium_studio_8123", "podium_studio_8123=guess"])
def test_a_made_up_cookie_opens_nothing(built: Any, cookie: str) -> None:
    assert stranger(built[0], cookie=cookie).get("/").status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{PORT}", "",
     "x" * 300, f"localhost.:{PORT}", f"0.0.0.0:{PORT}", f"user@127.0.0.1:{PORT}"],
)  # fmt: skip
def test_a_foreign_host_is_refused(visitor: Visitor, host: str) -> None:
    assert visitor.client.get("/", headers={"host": host}).status_code == 421
    assert visitor.client.get("/health", headers={"host": host}).status_code == 421
    assert visitor.get("/health").text == "ok"


@pytest.mark.parametrize("host", [f"localhost:{PORT}", f"[::1]:{PORT}", f"127.0.0.1:{PORT}"])
def test_the_studios_own_names_are_admitted(visitor: Visitor, host: str) -> None:
    assert visitor.client.get("/health", headers={"host": host}).status_code == 200


def test_beyond_loopback_only_addresses_and_the_machines_own_name_are_admitted() -> None:
    door = Door("0.0.0.0", 80, "t")
    assert door.admits("192.168.1.7:80")
    assert door.admits("[fe80::1]:80")
    assert not door.admits("evil.example:80")
    assert not door.is_loopback
    assert Door("::1", 80, "t").is_loopback


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": HOME, "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "same-site"},
        {"origin": "null", "sec-fetch-site": "none"},
    ],
)
def test_a_forged_origin_changes_nothing(visitor: Visitor, studio: Studio, headers: dict[str, str]) -> None:
    answer = visitor.client.post("/example", data={"csrf": visitor.csrf}, headers=headers)
    assert answer.status_code == 403
    assert not any(s.workspaces for s in studio.rooms.sessions.values())


def test_a_form_whose_origin_the_browser_hides_is_taken_from_the_same_site_alone(visitor: Visitor) -> None:
    headers = {"origin": "null", "sec-fetch-site": "same-origin"}
    assert visitor.client.post("/example", data={"csrf": visitor.csrf}, headers=headers).status_code == 200


def test_every_post_needs_the_token_of_its_own_session(visitor: Visitor, other: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    paths = [r.path for r in ROUTES if "POST" in (getattr(r, "methods", None) or ())]
    assert len(paths) >= 7
    for path in paths:
        address = path.replace("/w/{workspace}", workspace)
        for form in ({}, {"csrf": ""}, {"csrf": other.csrf}, {"csrf": visitor.csrf[:-1]}, {"csrf": "é"}):
            before = len(next(iter(studio.rooms.sessions.values())).workspaces)
            assert visitor.client.post(address, data=form).status_code == 403, (address, form)
            assert len(next(iter(studio.rooms.sessions.values())).workspaces) == before
    assert visitor.get(workspace + "/policies").status_code == 200


def test_a_token_replayed_after_the_session_is_gone_opens_nothing(visitor: Visitor, studio: Studio) -> None:
    studio.rooms.close_session(next(iter(studio.rooms.sessions)))
    assert visitor.client.post("/example", data={"csrf": visitor.csrf}).status_code == 403


def test_nobody_sees_the_workspace_of_another(visitor: Visitor, other: Visitor) -> None:
    workspace = visitor.prepare()
    visitor.compare(workspace)
    parts = ("columns", "policies", "working", "status", "answer", "log", "answers/1/report", "answers/1/result.json")
    for part in parts:
        assert visitor.get(f"{workspace}/{part}").status_code == 200, part
        assert other.get(f"{workspace}/{part}").status_code == 404, part
    for part in ("columns", "policies", "compare", "cancel", "forget"):
        assert other.client.post(f"{workspace}/{part}", data={"csrf": other.csrf}).status_code == 404, part
    assert "log.csv" not in other.get("/").text
    assert visitor.get(f"{workspace}/answer").status_code == 200


@pytest.mark.parametrize("path", ["/", "/health", "/static/studio.css", "/static/studio.js", "/nothing", "/open"])
def test_every_answer_carries_the_headers(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers


def test_pages_hold_no_inline_script_or_style_and_no_foreign_address(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    visitor.compare(workspace)
    for path in ("/", f"{workspace}/columns", f"{workspace}/policies", f"{workspace}/answer", "/nothing"):
        page = visitor.get(path).text
        assert not re.search(r"<script(?! src=\"/static/)", page), path
        assert "<style" not in page, path
        assert not re.search(r"\s(style|on\w+)=", page), path
        assert not re.search(r"(src|href|action)=\"(?!/|#)", page), path


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X"])
def test_other_methods_are_refused(visitor: Visitor, method: str) -> None:
    assert visitor.client.request(method, "/").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/%00",
     "/w/../../etc/passwd", "/w/x/answers/1/..%2f..%2ftask.json", "/w/x/answers/-1/report"],
)  # fmt: skip
def test_no_path_leads_outside(visitor: Visitor, path: str) -> None:
    answer = visitor.client.get(path)
    assert answer.status_code in (400, 404)
    assert "Starlette" not in answer.text
    assert "root:" not in answer.text


def test_a_download_has_a_fixed_name_list(visitor: Visitor) -> None:
    workspace = visitor.prepare()
    visitor.compare(workspace)
    for name in ("task.json", "answer.json", "..", "%2e%2e", "log.csv"):
        assert visitor.get(f"{workspace}/answers/1/{name}").status_code == 404, name
    assert visitor.get(f"{workspace}/answers/2/result.json").status_code == 404


def test_uploads_are_limited_by_what_arrives_and_not_by_what_is_said() -> None:
    app, studio = make_studio(Limits(upload_bytes=100_000))
    visitor = Visitor(app)
    assert visitor.upload("log.csv", LOG).status_code == 200
    large = LOG + LOG.split("\n", 1)[1] * 200
    assert len(large) > 200_000
    answer = visitor.client.post("/upload", data={"csrf": visitor.csrf}, files={"file": ("a.csv", large)})
    assert answer.status_code == 413

    def chunks() -> Any:
        yield b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n' + visitor.csrf.encode() + b"\r\n"
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 10_000

    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert visitor.client.post("/upload", content=chunks(), headers=kind).status_code == 413
    assert visitor.client.post("/example", content=b"csrf=" + b"x" * 2_000_000).status_code == 413
    assert len(next(iter(studio.rooms.sessions.values())).workspaces) == 1
    assert visitor.get("/health").text == "ok"
    studio.close()


def test_files_lie_in_a_private_folder_that_goes_with_the_studio(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare("../../../escape.csv")
    visitor.compare(workspace)
    folders = [p for p in (studio.rooms.folder, *studio.rooms.folder.rglob("*")) if p.is_dir()]
    assert len(folders) == 3
    assert {stat.S_IMODE(p.stat().st_mode) for p in folders} == {0o700}
    names = {p.name for p in studio.rooms.folder.rglob("*") if p.is_file()}
    assert names == {"log.csv", "task.json", "report.html", "result.json", "answer.json"}
    assert not list(Path().glob("**/escape.csv"))
    studio.close()
    assert not studio.rooms.folder.exists()


def test_a_session_keeps_few_logs(visitor: Visitor, studio: Studio) -> None:
    first = visitor.prepare()
    for _ in range(studio.limits.workspaces):
        visitor.upload("log.csv", LOG)
    assert visitor.get(first + "/columns").status_code == 404
    assert len(list(studio.rooms.folder.iterdir())) == studio.limits.workspaces


def test_a_body_that_stalls_is_given_up() -> None:
    parts = [{"type": "http.request", "body": b"x", "more_body": True}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        await anyio.sleep_forever()

    async def read() -> None:
        body = measured(receive, 100, Limits(stall_seconds=0.01))
        assert (await body())["body"] == b"x"
        with pytest.raises(HTTPException, match="stopped coming"):
            await body()

    anyio.run(read)
