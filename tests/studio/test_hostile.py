"""Hostile and broken files: none gets through, and the studio stays healthy after each."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studio_visitor import LOG, Form, Visitor, alerts, make_studio, place

from podium.studio.limits import MB, Limits
from podium.studio.visits import Studio

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"
NAME = MARKUP.replace("=", "")  # a policy's name has no equals sign


def parquet_bytes(table: Any, **options: Any) -> bytes:
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def small_table() -> Any:
    import pyarrow as pa

    return pa.table({"x": [1, 2, 3], "action": ["a", "b", "a"], "reward": [1.0, 0.0, 2.0]})


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.csv", LOG)
    return content.getvalue()


def bomb() -> bytes:
    """Fifty columns of five million zeros: small on disk, 2 GB in memory."""
    import pyarrow as pa

    zeros = pa.array([0.0]).take(pa.array([0] * 1000, pa.int64()))
    column = pa.chunked_array([zeros] * 5000)
    return parquet_bytes(pa.table({f"x{i}": column for i in range(60)}), compression="zstd", use_dictionary=False)


def dictionary_bomb() -> bytes:
    """A text of a megabyte in each of 100,000 rows: 100 GB when it is unpacked."""
    import pyarrow as pa

    column = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * MB]))
    table = pa.table({"x": column, "action": ["a", "b"] * 50_000, "reward": [1.0] * 100_000})
    return parquet_bytes(table, compression="zstd", store_schema=False)


def wide(columns: int) -> str:
    return ",".join(f"c{i}" for i in range(columns)) + "\n" + ",".join("1" * columns) + "\n"


HOSTILE: dict[str, tuple[str, Callable[[], bytes | str], str]] = {
    "empty file": ("a.csv", lambda: b"", "a.csv is empty"),
    "blank lines": ("a.csv", lambda: b"\n\n\n", "a.csv is empty"),
    "header only": ("a.csv", lambda: b"state,action,reward\n", "a header and no rows"),
    "zip as csv": ("a.csv", lambda: zipped()[:-30], "a.csv is not a whole zip file"),
    "gzip as csv": ("a.csv", lambda: gzip.compress(LOG.encode())[:-12], "a.csv is not a whole gzip file"),
    "csv as parquet": ("a.parquet", lambda: LOG, "a.parquet is not a whole Parquet file"),
    "truncated parquet": ("a.parquet", lambda: parquet_bytes(small_table())[:-20], "not a whole Parquet file"),
    "parquet with a broken page": (
        "a.parquet",
        lambda: (lambda b: b[:10] + b"\xff" * 60 + b[70:])(parquet_bytes(small_table())),
        "a.parquet",
    ),
    "parquet without rows": ("a.parquet", lambda: parquet_bytes(small_table().slice(0, 0)), "has no rows"),
    "decompression bomb": ("a.parquet", bomb, "unpacks to"),
    "dictionary bomb": ("a.parquet", dictionary_bomb, "memory"),
    "nul bytes": ("a.csv", lambda: b"a,b\0,c\n1,2,3\n", "a.csv is not a text file"),
    "half of a utf-16": ("a.csv", lambda: LOG.encode("utf-16")[:-1], "a.csv is not whole UTF-16 text: truncated data"),
    "no encoding": ("a.csv", lambda: b"state,action,reward\n\x81,a,1\n", "a.csv is not UTF-8: row 1"),
    "a broken workbook": ("a.xlsx", lambda: b"PK\3\4" + b"\0" * 99, "a.xlsx is not a whole Excel file: "),
    "a web page as a workbook": ("a.xlsx", lambda: b"<html></html>", "a.xlsx is a web page (HTML) inside, not a table"),
    "10,000 columns": ("a.csv", lambda: wide(10_000), "the file has 10,000 columns; the studio takes 2,000"),
    "a very long first line": ("a.csv", lambda: "x" * (2 * MB), "the first line of a.csv is longer than"),
    "a very long header": ("a.csv", lambda: "x" * 5000 + ",b\n1,2\n", "the name of column 1 has 5,000 characters"),
    "a 10 MB cell": ("a.csv", lambda: f"x,action,reward\n1,a,1\n{'y' * 10 * MB},b,2\n", "row 2 cannot be read"),
    "an open quote": ("a.csv", lambda: 'x,action,reward\n"1,a,1\n2,b,2\n', "a.csv"),
    "ragged rows": ("a.csv", lambda: b"a,b\n1,2\n1,2,3\n", "row 2 has 3 cells; the header has 2 (1 row)"),
    "json that is no object": ("a.jsonl", lambda: b"[1]\n", "row 1 is no JSON object"),
    "deep json": ("a.jsonl", lambda: '{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    "a json number of a million digits": ("a.jsonl", lambda: '{"a": ' + "9" * 1_000_000 + "}", "not valid JSON"),
    "a pickle": ("a.pkl", lambda: b"\x80\x04.", "the studio cannot read a.pkl"),
    "a python module": ("a.py", lambda: b"import os", "the studio cannot read a.py"),
    "a skops model": ("a.skops", zipped, "the studio cannot read a.skops"),
    "a model of Stable-Baselines3": ("model.zip", zipped, "the studio cannot read model.zip"),
    "a file without ending": ("passwd", lambda: b"root:x:0:0\n", "the studio cannot read passwd"),
    "a name that is all dots": ("....", lambda: LOG, "the studio cannot read"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_broken_file_is_refused_with_a_clear_word(guest: Any, what: str) -> None:
    name, make, complaint = HOSTILE[what]
    page = guest.upload(name, make())
    assert page.status_code == 422, alerts(page)
    assert complaint in alerts(page)
    assert "/tmp" not in alerts(page)
    assert guest.get("/health").text == "ok"
    assert guest.get("/").status_code == 200
    assert guest.get(guest.good + "/policies").status_code == 200


def test_too_many_rows_are_refused_before_they_are_read() -> None:
    app, studio = make_studio(Limits(rows=50))
    visitor = Visitor(app)
    assert "this studio takes 50" in alerts(visitor.upload("log.csv", LOG))
    import pyarrow as pa

    table = pa.table({"x": range(60), "action": ["a", "b"] * 30, "reward": [1.0] * 60})
    assert "about 60 rows; this studio takes 50" in alerts(visitor.upload("a.parquet", parquet_bytes(table)))
    assert visitor.get("/health").text == "ok"
    studio.close()


def test_half_a_character_does_no_harm(visitor: Visitor) -> None:
    """JSON may name what is no text: a lone surrogate in every label."""
    rows = "".join(f'{{"\\ud800x": {i % 3}, "action": "\\ud800{i % 2}", "reward": {i % 4}}}\n' for i in range(30))
    page = visitor.upload("a.jsonl", rows)
    assert page.status_code == 200, alerts(page)
    page = visitor.accept_columns(page)
    assert page.status_code in (200, 422)
    assert visitor.get("/health").text == "ok"


@pytest.mark.parametrize("size", [201, 10 * MB])
def test_a_long_action_is_refused_and_makes_no_long_page(visitor: Visitor, size: int) -> None:
    rows = [{"x": i % 3, "action": "y" * size if i == 3 else "ab"[i % 2], "reward": i % 5} for i in range(30)]
    page = visitor.accept_columns(visitor.upload("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert page.status_code == 422
    assert "an action has more than 200 characters; one begins with 'yyyy" in alerts(page)
    assert len(page.text) < 50_000
    assert visitor.get("/health").text == "ok"


def test_a_file_of_policies_alone_is_cut_to_what_can_be_compared(visitor: Visitor, studio: Studio) -> None:
    """A thousand policies would be half a million pairs."""
    header = ["x", "action", "reward", *(f"pi_{i}" for i in range(1000))]
    lines = [[str(i % 3), "ab"[i % 2], str(i % 5), *["0.5"] * 1000] for i in range(30)]
    page = visitor.upload("a.csv", "".join(",".join(line) + "\n" for line in (header, *lines)))
    roles = Form(page.text).fields
    assert list(roles.values()).count("policy") == studio.limits.policies
    workspace = place(visitor.accept_columns(page))
    assert len(next(iter(studio.rooms.sessions.values())).workspaces[workspace[3:]].question.candidates) == 50
    every = {name: "policy" if role == "ignore" else role for name, role in roles.items() if name.startswith("role-")}
    page = visitor.post(workspace + "/columns", every)
    assert "at most 50 policies; you chose 1,000" in alerts(page)
    assert visitor.get("/health").text == "ok"


def tags_of(page: Any) -> set[str]:
    return {tag for tag, _ in Form(page.text).tags}


def test_markup_in_every_label_is_shown_and_never_run(visitor: Visitor) -> None:
    """Column, action, policy, file: each is markup, and no page has an element that was not in the template."""
    header = ["state", f"act{MARKUP}", "reward", f"pi_{MARKUP}", "pi_plain"]
    content = io.StringIO()
    writer = csv.writer(content)
    writer.writerow(header)
    for i in range(40):
        writer.writerow([f"{MARKUP}{i % 3}", f"{MARKUP}{i % 2}", i % 5, 0.5, 0.25])
    name = f"{MARKUP.replace('/', '')}.csv"
    page = visitor.upload(name, content.getvalue())
    usual = tags_of(visitor.upload("log.csv", LOG))
    page = visitor.post(
        place(page) + "/columns",
        {f"role-{i}": r for i, r in enumerate(("state", "action", "reward", "policy", "policy"))},
    )
    assert str(page.url).endswith("/policies"), alerts(page)
    workspace = place(page)
    page = visitor.post(workspace + "/policies", {"kind": "constant", "value": f"{MARKUP}1", "name": NAME + "!"})
    page = visitor.post(workspace + "/policies", {"kind": "uniform", "name": NAME + "?"})
    assert page.status_code == 200, alerts(page)
    page = visitor.compare(workspace)
    assert page.status_code == 200, alerts(page)
    pages = [visitor.get(p) for p in ("/", *(f"{workspace}/{x}" for x in ("columns", "policies", "answer")))]
    for seen in pages:
        assert seen.status_code == 200
        assert "<script>alert" not in seen.text
        assert "49" not in [t.strip() for t in Form(seen.text).texts]
        assert [a for t, a in Form(seen.text).tags if t == "script"] == [{"src": "/static/studio.js", "defer": None}]
        assert all("onerror" not in a for _, a in Form(seen.text).tags)
        assert [a["src"] for t, a in Form(seen.text).tags if t == "img"] == ["/static/mark.svg"]
    assert tags_of(pages[1]) <= usual
    assert NAME + "!" in "".join(Form(pages[3].text).texts)
    report = visitor.get(workspace + "/answers/1/report")
    assert "<script>alert" not in report.text
    assert "<img" not in report.text
    taken = json.loads(visitor.get(workspace + "/answers/1/result.json").text)
    assert NAME + "!" in [p["name"] for p in taken["policies"]]


def test_a_spreadsheet_finds_no_formula_in_the_downloads(visitor: Visitor) -> None:
    starts = ["=", "+", "-", "@"]
    header, *rows = LOG.splitlines()
    names = ",".join(f"pi_{start}cmd|' /C calc'!A0" for start in starts)
    text = "".join(f"{line}\n" for line in (f"{header},{names}", *(f"{row},0.1,0.2,0.3,0.4" for row in rows)))
    workspace = visitor.prepare("log.csv", text)
    visitor.compare(workspace)
    for file in ("ranking.csv", "pairs.csv"):
        content = visitor.get(f"{workspace}/answers/1/{file}").content.decode()
        cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
        numbers = [c for c in cells if c.lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit()]
        assert [c for c in cells if c.startswith(("=", "+", "-", "@", "\t")) and c not in numbers] == []
        assert len({c for c in cells if "cmd|' /C calc'!A0" in c}) == len(starts)


@pytest.mark.parametrize(
    "name",
    ["../../../../tmp/evil.csv", "/etc/evil.csv", "C:\\windows\\evil.csv", "..\\..\\evil.csv", "evil.csv/../../x.csv",
     "a\r\nSet-Cookie: x=1.csv", "\u202evsc.exe.csv", "a" * 1500 + ".csv", "%2e%2e%2fevil.csv",
     "log.csv\x00.parquet.csv"],
)  # fmt: skip
def test_a_name_never_becomes_a_path_or_a_header(visitor: Visitor, studio: Studio, name: str) -> None:
    page = visitor.upload(name, "x,action,reward\n1,a,2\n2,b,1\n1,a,3\n")
    assert page.status_code == 200, alerts(page)
    files = {p.name for p in studio.rooms.folder.rglob("*") if p.is_file()}
    assert files == {"log.csv"}
    answer = visitor.get(place(page) + "/log")
    assert "set-cookie" not in answer.headers
    assert "\r" not in answer.headers["content-disposition"]
    assert "/" not in answer.headers["content-disposition"].split("''")[1]
    assert not Path(tempfile.gettempdir(), "evil.csv").exists()
    assert visitor.get("/health").text == "ok"


BODIES: dict[str, tuple[bytes, str]] = {
    "no boundary": (b"--x\r\n", "multipart/form-data"),
    "a boundary of a million bytes": (b"--x\r\n", "multipart/form-data; boundary=" + "x" * 60_000),
    "an empty boundary": (b"--\r\n--", 'multipart/form-data; boundary=""'),
    "a boundary that never comes": (b"a" * 100_000, "multipart/form-data; boundary=zzz"),
    "a part without end": (
        b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\nabc',
        "multipart/form-data; boundary=b",
    ),
    "a part without headers": (b"--b\r\n\r\nabc\r\n--b--\r\n", "multipart/form-data; boundary=b"),
    "a thousand files": (
        b"".join(
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx\r\n' for _ in range(1000)
        ),
        "multipart/form-data; boundary=b",
    ),
    "fifty thousand fields": (b"&".join(b"a%d=1" % i for i in range(50_000)), "application/x-www-form-urlencoded"),
    "a header of a megabyte": (
        b'--b\r\nContent-Disposition: form-data; name="' + b"n" * MB + b'"\r\n\r\nx\r\n--b--\r\n',
        "multipart/form-data; boundary=b",
    ),
    "a foreign charset": (b"csrf=%ff%fe%00", "application/x-www-form-urlencoded; charset=utf-7"),
    "json": (b'{"csrf": "x"}', "application/json"),
    "nothing": (b"", "text/plain"),
}


@pytest.mark.parametrize("what", BODIES)
def test_an_absurd_form_is_refused(visitor: Visitor, studio: Studio, what: str) -> None:
    body, kind = BODIES[what]
    for path in ("/upload", "/example"):
        answer = visitor.client.post(path, content=body, headers={"content-type": kind})
        assert 400 <= answer.status_code < 500, (path, answer.status_code)
        assert visitor.get("/health").text == "ok"
    assert not any(s.workspaces for s in studio.rooms.sessions.values())


def test_two_parallel_uploads_do_not_mix(visitor: Visitor, other: Visitor) -> None:
    """Two people, and two tabs of one of them, at the same moment."""
    seen: dict[str, Any] = {}

    def walk(who: Visitor, label: str) -> None:
        workspace = who.prepare(f"{label}.csv", LOG.replace("pi_new", f"pi_{label}"))
        seen[label] = (workspace, who.compare(workspace))

    people = [(visitor, "one"), (other, "two"), (visitor, "three")]
    threads = [threading.Thread(target=walk, args=person) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({workspace for workspace, _ in seen.values()}) == 3
    for who, label in people:
        names = {p["name"] for p in who.get(seen[label][0] + "/answers/1/result.json").json()["policies"]}
        assert names == {label, "old"}
        assert f"{label}.csv" in seen[label][1].text


def test_a_policy_file_is_held_to_the_same_rules(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    for name, content in (("model.pkl", b"\x80\x04."), ("model.skops", zipped()), ("mine.py", b"x"), ("log.csv", b"x")):
        page = visitor.post(workspace + "/policies", {"kind": "file"}, files={"file": (name, content)})
        assert page.status_code == 422, name
    for name, content in (("a.csv", zipped()), ("b.parquet", b"PAR1"), ("c.csv", b"")):
        visitor.post(workspace + "/policies", {"kind": "file"}, files={"file": (name, content)})
        page = visitor.post(workspace + "/compare")
        assert page.status_code == 422
        assert name in alerts(page)
        visitor.post(workspace + "/policies", {"remove": name.partition(".")[0]})
    assert visitor.get("/health").text == "ok"
    assert visitor.compare(workspace).status_code == 200
