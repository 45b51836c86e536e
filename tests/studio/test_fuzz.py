"""Odd requests of every kind: each gets an answer in the studio's look, and none leaves anything behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from studio_visitor import HOME, LOG, PORT, Visitor, make_studio, place

from podium.studio.jobs import Job
from podium.studio.limits import Limits
from podium.studio.security import HEADERS

ALLOWED = {200, 303, 304, 400, 403, 404, 405, 408, 413, 421, 422, 503}
FUZZ = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
FEW = settings(FUZZ, max_examples=60)

words = st.sampled_from(
    ["", "csrf", "file", "kind", "value", "name", "remove", "behavior", "estimator", "baseline", "baseline-number",
     "level", "lower", "joint", "role-0", "role-1999", "text-0", "uniform", "constant", "logged", "column", "estimate",
     "number", "posterior", "LDE", "nan", "inf", "-1",
     "1e999", "9" * 5000, "²", "\x00", "../..", "=1+1", "＝1",
     "<script>", "{{7*7}}", "%s", "\ud7ff", "😀" * 50, "a" * 70_000]
)  # fmt: skip
texts = st.one_of(words, st.text(max_size=30))
raw = st.one_of(st.binary(max_size=60), texts.map(lambda t: t.encode("utf-8", "surrogatepass")))
parts = st.sampled_from(
    ["", "w", "upload", "example", "open", "health", "static", "studio.css", "columns", "policies", "compare",
     "working", "status", "cancel", "answer", "answers", "1", "report", "result.json", "log", "..", "%2e%2e", "%00",
     "%ff", ".", "%2f", "9" * 5000, "-1", "²", "WORKSPACE"]
)  # fmt: skip
paths = st.lists(st.one_of(parts, texts.map(lambda t: quote(t, errors="replace")[:300])), max_size=5).map(
    lambda found: "/" + "/".join(found)
)
methods = st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get", "BREW"])
header_values = st.one_of(
    st.sampled_from(
        [b"", b"x", b"null", b"cross-site", b"same-origin", b"9" * 5000, b"-1", b"bytes=0-1", b"\xff", b"chunked",
         b"*/*", b"podium_studio_8123", b'a="', b"a" * 8192, b"multipart/form-data", b"application/json", HOME.encode()]
    ),
    st.binary(max_size=30).map(lambda b: b.replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")),
)  # fmt: skip
header_names = st.sampled_from(
    [b"cookie", b"range", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"if-none-match", b"accept",
     b"if-modified-since", b"transfer-encoding", b"expect", b"x-forwarded-for", b"x-http-method-override", b"upgrade"]
)  # fmt: skip


class Fuzzed(Visitor):
    """A visitor with a log up to its policies, who sends anything."""

    def __init__(self) -> None:
        app, self.studio = make_studio(Limits(workspaces=3, stall_seconds=2))
        super().__init__(app)
        self.workspace = self.prepare()
        self.compare(self.workspace)
        self.cookie = "; ".join(f"{k}={v}" for k, v in self.client.cookies.items()).encode()

    def send(self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Any:
        """Send a request as it is, and check what no answer may lack or hold."""
        own = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"origin", HOME.encode()), (b"cookie", self.cookie)]
        given = {name for name, _ in headers}
        whole = [*((n, v) for n, v in own if n not in given), *headers]
        path = path.replace("WORKSPACE", self.workspace.removeprefix("/w/"))
        request = self.client.build_request(method, HOME + path, headers=whole, content=body)
        answer = self.client.send(request, follow_redirects=False)
        assert answer.status_code in ALLOWED, (method, path, headers, body[:100])
        assert [name for name in HEADERS if name not in answer.headers] == []
        if answer.status_code >= 400 and method != "HEAD":
            assert "/static/studio.css" in answer.text, (method, path)
        assert "Traceback" not in answer.text
        assert ".py" not in answer.text or answer.status_code == 200
        return answer

    def check_nothing_is_left(self) -> None:
        """Every folder belongs to a log that a session holds, and that could be read."""
        held = [w for s in self.studio.rooms.sessions.values() for w in s.workspaces.values()]
        for workspace in held:
            self.studio.absorb(workspace)
        assert set(self.studio.rooms.folder.iterdir()) == {w.folder for w in held if w.inspected}
        assert self.client.get("/health").text == "ok"


@pytest.fixture
def fuzzed(quick: None) -> Iterator[Fuzzed]:
    visitor = Fuzzed()
    yield visitor
    visitor.studio.close()


def test_odd_addresses_methods_and_headers(fuzzed: Fuzzed) -> None:
    headers = st.lists(st.tuples(header_names, header_values), max_size=3)

    @FUZZ
    @given(methods, paths, headers, raw)
    def send(method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        fuzzed.send(method, path, headers, body)
        fuzzed.check_nothing_is_left()

    send()


POSTS = ["/upload", "/example", *(f"/w/WORKSPACE/{p}" for p in ("columns", "policies", "compare", "cancel", "forget"))]


def test_odd_forms(fuzzed: Fuzzed) -> None:
    """Fields of any name and content, some twice, with and without the right token."""
    fields = st.lists(st.tuples(texts, texts), max_size=6)

    @FEW
    @given(st.sampled_from(POSTS[:-1]), fields, st.booleans())
    def send(path: str, fields: list[tuple[str, str]], token: bool) -> None:
        known = [("csrf", fuzzed.csrf)] if token else []
        pairs = [*fields, *known]
        body = "&".join(f"{quote(k, errors='replace')}={quote(v, errors='replace')}" for k, v in pairs).encode()
        answer = fuzzed.send("POST", path, [(b"content-type", b"application/x-www-form-urlencoded")], body)
        assert token or answer.status_code != 303
        fuzzed.check_nothing_is_left()

    send()


# Starlette leaves the temporary file of a part that never ends to the garbage collector, which closes and removes it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_odd_multipart_bodies(fuzzed: Fuzzed) -> None:
    """Parts with odd heads, broken boundaries and charsets, cut at any place: what is refused leaves nothing."""
    disposition = st.one_of(
        st.tuples(texts, texts).map(lambda n: f'form-data; name="{n[0]}"; filename="{n[1]}"'.encode(errors="replace")),
        texts.map(lambda n: f'form-data; name="{n}"'.encode(errors="replace")),
        st.sampled_from(
            [b"", b"form-data", b'form-data; name="file"; filename="a.csv"', b'form-data; name="csrf"',
             b"form-data; name=file; filename*=utf-8''%ff.csv", b'attachment; filename="x.parquet"; name="file"']
        ),
        raw,
    )  # fmt: skip
    contents = st.one_of(raw, st.just(LOG.encode()), st.just(b"x,action,reward\n1,a,1\n"))
    kinds = st.sampled_from(
        [b"multipart/form-data; boundary=b", b'multipart/form-data; boundary="b"; charset=undefined',
         b"multipart/form-data; boundary=b; charset=utf-7", b"multipart/form-data", b"multipart/mixed; boundary=b",
         b"multipart/form-data; boundary=" + b"b" * 300, b"text/csv"]
    )  # fmt: skip

    @FEW
    @given(
        st.sampled_from(["/upload", "/w/WORKSPACE/policies"]),
        kinds,
        st.lists(st.tuples(disposition, contents), max_size=4),
        st.booleans(),
        st.integers(0, 40),
    )
    def send(path: str, kind: bytes, parts: list[tuple[bytes, bytes]], token: bool, cut: int) -> None:
        known = [(b'form-data; name="csrf"', fuzzed.csrf.encode())] if token else []
        body = (
            b"".join(b"--b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % part for part in (*known, *parts)) + b"--b--\r\n"
        )
        files = set(fuzzed.studio.rooms.folder.rglob("*"))
        answer = fuzzed.send("POST", path, [(b"content-type", kind)], body[: len(body) - cut] if cut < 20 else body)
        fuzzed.check_nothing_is_left()
        if answer.status_code != 303:
            assert set(fuzzed.studio.rooms.folder.rglob("*")) == files
        else:
            assert token

    send()


def test_fuzzing_reaches_what_it_should(fuzzed: Fuzzed) -> None:
    """The requests above can do something: the same way of sending them uploads a log."""
    body = (
        b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n%b\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n%b\r\n--b--\r\n'
    ) % (fuzzed.csrf.encode(), LOG.encode())
    answer = fuzzed.send("POST", "/upload", [(b"content-type", b"multipart/form-data; boundary=b")], body)
    assert answer.status_code == 303
    assert place(fuzzed.client.get(answer.headers["location"])) != fuzzed.workspace
    assert all(isinstance(w.job, Job) for s in fuzzed.studio.rooms.sessions.values() for w in s.workspaces.values())
