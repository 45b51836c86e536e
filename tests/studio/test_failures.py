"""What goes wrong gives a page that says so, in the studio's look, and nothing half-kept."""

from __future__ import annotations

import errno
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.exceptions import HTTPException
from studio_visitor import LOG, Visitor, alerts, make_studio, place

from podium.data.guesses import FEW, FIRST, SHOWN, Facts
from podium.studio import question_pages, reading, start_pages, visits, worker
from podium.studio.failures import explain
from podium.studio.limits import MB, Limits
from podium.studio.security import measured
from podium.studio.visits import Studio
from podium.studio.workspaces import Workspace

pytestmark = pytest.mark.usefixtures("quick")

LARGE = LOG + LOG.split("\n", 1)[1] * 800  # more than what a form keeps in memory


def is_page(answer: Any) -> bool:
    """Whether an answer is one of the studio's pages, without a traceback."""
    looks = '<link rel="stylesheet" href="/static/studio.css">' in answer.text
    return (
        looks and "Traceback" not in answer.text and "default-src 'none'" in answer.headers["content-security-policy"]
    )


def files_of(studio: Studio) -> set[Path]:
    return {p for p in studio.rooms.folder.rglob("*") if p.is_file()}


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def half_a_copy(source: Any, target: Any, *_: Any) -> None:
    target.write(b"age,city\n1,")
    full()


def full_at_close(patch: pytest.MonkeyPatch) -> None:
    usual = Path.open

    def opened(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        file = usual(path, mode, *rest, **more)
        if "x" not in mode:
            return file

        class Late:
            def __enter__(self) -> Any:
                return file

            def __exit__(self, *_: Any) -> None:
                file.close()
                full()

        return Late()

    patch.setattr(Path, "open", opened)


DISKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "while the form is read": lambda p: p.setattr(tempfile.SpooledTemporaryFile, "rollover", full),
    "while the file is written": lambda p: p.setattr(shutil, "copyfileobj", half_a_copy),
    "when the file is closed": full_at_close,
    "when a folder is made": lambda p: p.setattr(Path, "mkdir", full),
    "when the task is written": lambda p: p.setattr(Path, "write_text", full),
}


@pytest.mark.parametrize("when", DISKS)
def test_a_full_disk_gives_a_page_and_keeps_nothing(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    workspace = visitor.prepare()
    for _ in range(studio.limits.workspaces - 1):
        visitor.upload("other.csv", LOG)  # there is no room left: another log would make the first one leave
    before = files_of(studio)
    with monkeypatch.context() as patch:
        DISKS[when](patch)
        answer = visitor.client.post("/upload", data={"csrf": visitor.csrf}, files={"file": ("a.csv", LARGE.encode())})
    assert answer.status_code == 507
    assert is_page(answer)
    assert alerts(answer).startswith("The disk is full, and nothing of this was kept.")
    assert files_of(studio) == before
    assert len(list(studio.rooms.folder.iterdir())) == studio.limits.workspaces
    assert visitor.get(workspace + "/policies").status_code == 200
    assert visitor.upload("a.csv", LARGE).status_code == 200


@pytest.mark.parametrize("when", ["while the file is written", "when a folder is made"])
def test_a_full_disk_keeps_nothing_of_a_policy_file(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    workspace = visitor.prepare()
    before = set(studio.rooms.folder.rglob("*"))
    with monkeypatch.context() as patch:
        DISKS[when](patch)
        answer = visitor.post(workspace + "/policies", {"kind": "file"}, files={"file": ("p.csv", b"x,y,z\n1,0,0\n")})
    assert answer.status_code == 507
    assert is_page(answer)
    assert set(studio.rooms.folder.rglob("*")) == before


@pytest.mark.platforms("linux")
@pytest.mark.parametrize("name", ["report.html", "result.json", "answer.json"])
def test_a_worker_that_meets_a_full_disk_says_so(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    workspace = visitor.prepare()
    visitor.compare(workspace)
    before = set(studio.rooms.folder.rglob("*"))
    usual = Workspace.new_folder

    def on_full_disk(own: Workspace) -> Path:
        folder = usual(own)
        (folder / name).symlink_to("/dev/full")
        return folder

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "new_folder", on_full_disk)
        page = visitor.post(workspace + "/compare")
    assert page.status_code == 422
    assert alerts(page).startswith("The disk is full, and nothing of this was kept.")
    assert "answers/1/report" in page.text  # the answer before is still there
    assert set(studio.rooms.folder.rglob("*")) == before
    assert "answers/2/report" in visitor.compare(workspace).text


def test_any_number_of_parallel_uploads_is_answered(visitor: Visitor, studio: Studio) -> None:
    answers: list[Any] = []

    def drop() -> None:
        answers.append(visitor.upload("a.csv", LOG))

    threads = [threading.Thread(target=drop) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 12
    assert all(is_page(a) for a in answers)
    assert {a.status_code for a in answers} <= {200, 404, 422, 503}
    said = {alerts(a) for a in answers if a.status_code != 200}
    assert all(word.startswith(("There is no such log here. It may have been removed", "the studio works on 4 logs of",
                                "The studio is busy with other")) for word in said)  # fmt: skip
    held = next(iter(studio.rooms.sessions.values())).workspaces
    assert 0 < len(held) <= studio.limits.workspaces
    assert set(studio.rooms.folder.iterdir()) == {w.folder for w in held.values()}
    assert visitor.upload("a.csv", LOG).status_code == 200


def test_a_log_that_is_worked_on_never_gives_way(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "PATIENCE", 0.0)
    studio.queue._places.acquire()
    studio.queue._places.acquire()
    for _ in range(studio.limits.workspaces):
        visitor.client.post("/example", data={"csrf": visitor.csrf}, follow_redirects=False)
    for answer in (visitor.client.post("/example", data={"csrf": visitor.csrf}), visitor.upload("a.csv", LOG)):
        assert answer.status_code == 422
        assert "the studio works on 4 logs of yours already" in alerts(answer)
    held = next(iter(studio.rooms.sessions.values())).workspaces
    assert set(studio.rooms.folder.iterdir()) == {w.folder for w in held.values()}
    studio.queue._places.release(2)


def test_the_least_recently_used_log_gives_way(visitor: Visitor, studio: Studio) -> None:
    first = visitor.prepare()
    second = place(visitor.upload("b.csv", LOG))
    for _ in range(studio.limits.workspaces - 2):
        visitor.upload("log.csv", LOG)
    assert visitor.get(first + "/policies").status_code == 200
    visitor.upload("log.csv", LOG)
    assert visitor.get(first + "/policies").status_code == 200
    assert visitor.get(second + "/columns").status_code == 404


def test_openings_displace_nobody(visitor: Visitor, studio: Studio, built: Any) -> None:
    workspace = visitor.prepare()
    for _ in range(30):
        Visitor(built[0])
    assert visitor.get(workspace + "/policies").status_code == 200
    assert len(studio.rooms.sessions) == 31


def test_sessions_without_a_log_are_limited_too() -> None:
    app, studio = make_studio(Limits(visitors=3))
    visitor = Visitor(app)
    workspace = place(visitor.upload("a.csv", LOG))
    people = [Visitor(app) for _ in range(5)]
    assert len(studio.rooms.sessions) == 4
    assert visitor.get(workspace + "/columns").status_code == 200
    assert people[-1].get("/").status_code == 200
    assert people[0].get("/").status_code == 403
    studio.close()


def test_a_newcomer_is_refused_until_a_session_is_idle() -> None:
    app, studio = make_studio(Limits(sessions=2, idle_seconds=600))
    first, second, third = (Visitor(app) for _ in range(3))
    kept = place(first.upload("a.csv", LOG))
    second.upload("a.csv", LOG)
    answer = third.upload("a.csv", LOG)
    assert answer.status_code == 422
    assert "2 browsers have logs in this studio, and all of them were used a short while ago" in alerts(answer)
    assert len(list(studio.rooms.folder.iterdir())) == 2
    idle = list(studio.rooms.sessions.values())[1]
    idle.used -= 700
    assert third.upload("a.csv", LOG).status_code == 200
    assert first.get(kept + "/columns").status_code == 200
    assert second.get("/").status_code == 403
    assert len(list(studio.rooms.folder.iterdir())) == 2
    studio.close()


def test_a_session_at_work_is_never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "PATIENCE", 0.0)
    app, studio = make_studio(Limits(sessions=1, idle_seconds=0))
    first, second = Visitor(app), Visitor(app)
    studio.queue._places.acquire()
    studio.queue._places.acquire()
    first.client.post("/example", data={"csrf": first.csrf}, follow_redirects=False)
    assert second.upload("a.csv", LOG).status_code == 422
    assert first.get("/").status_code == 200
    studio.queue._places.release(2)
    studio.close()


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "0", "²", "١", "1.0", "+1", "1e0", "01", "%00", "x"])
def test_an_odd_answer_number_is_no_answer(guest: Any, number: str) -> None:
    for part in ("report", "result.json"):
        answer = guest.get(f"{guest.good}/answers/{number}/{part}")
        assert answer.status_code == 404
        assert is_page(answer)
        assert "There is no such answer any more." in alerts(answer)


def test_two_thousand_columns_of_long_texts_are_shown(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = tuple(f"{i:02d}" + "😀" * (SHOWN - 2) for i in range(FEW))
    facts = [Facts("action", "text", 99, 2, 0, labels=("a", "b"), first=("a",) * FIRST)]
    facts += [Facts(f"{i:0200d}", "text", 99, FEW, 0, labels=cells, first=cells[:FIRST]) for i in range(1999)]
    monkeypatch.setattr(reading, "survey", lambda *_: (facts, []))
    page = visitor.upload("a.csv", LOG)
    assert page.status_code == 200, alerts(page)
    assert f"{1998:0200d}" in page.text


@pytest.mark.parametrize("content", ["", "[]", "{", '{"headers": 1}', "x" * 17 * MB])
def test_what_a_worker_left_half_is_an_error_and_not_an_answer(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    workspace = visitor.prepare()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "write", lambda folder, name, _: (folder / name).write_text(content))
        page = visitor.upload("b.csv", LOG)
    assert page.status_code == 422
    assert is_page(page)
    assert "the job found" in alerts(page)
    assert visitor.get(workspace + "/policies").status_code == 200
    assert visitor.compare(workspace).status_code == 200


def test_an_error_that_nobody_foresaw_has_a_number(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = visitor.prepare()

    def broken(*_: Any) -> None:
        raise RuntimeError("a secret\nof the machine")

    monkeypatch.setattr(start_pages, "clean_name", broken)
    answer = visitor.upload("a.csv", LOG)
    assert answer.status_code == 500
    assert is_page(answer)
    assert "secret" not in answer.text
    number = alerts(answer).partition("(error ")[2].partition(")")[0]
    assert len(number) == 8
    logged = capsys.readouterr().err
    assert logged.count("\n") == 1
    assert f"error {number}: RuntimeError: a secret" in logged
    assert visitor.get(workspace + "/policies").status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [(MemoryError(), 503), (OSError(errno.EMFILE, "x"), 503), (FileNotFoundError(2, "x"), 404),
     (OSError(errno.EDQUOT, "x"), 507), (HTTPException(404), 404), (HTTPException(405), 405)],
)  # fmt: skip
def test_known_errors_are_explained(error: Exception, status: int) -> None:
    failure = explain(error)
    assert failure.status == status
    assert len(failure.message) > 30


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE", "PUT", "TRACE", "BREW"])
def test_another_method_is_answered_by_a_page(visitor: Visitor, method: str) -> None:
    answer = visitor.client.request(method, "/")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert is_page(answer)


def test_a_page_that_takes_posts_alone_says_so(visitor: Visitor) -> None:
    answer = visitor.get("/upload")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert is_page(answer)


def test_refusals_are_pages(built: Any, visitor: Visitor) -> None:
    client = visitor.client
    for answer, status in (
        (client.get("/", headers={"host": "evil.example"}), 421),
        (client.get("/nothing"), 404),
        (client.get("/upload/"), 404),
        (client.get("/static/nothing.css"), 404),
        (client.get("/static/" + "x" * 5000), 404),
        (client.get("/static/%00"), 404),
        (client.post("/upload", headers={"origin": "null"}), 403),
        (client.post("/upload", data={"csrf": "x"}), 403),
        (client.post("/example", headers={"content-length": "9" * 5000}), 413),
        (client.post("/upload", content=b"x", headers={"content-type": "multipart/form-data"}), 400),
        (client.get("/", headers={"cookie": "x"}), 403),
        (client.get("/open?token=x", headers={"cookie": "x"}), 403),
    ):
        assert answer.status_code == status
        assert is_page(answer), status


@pytest.mark.parametrize("charset", ["undefined", "utf-7", "hex", "unicode_escape", "idna", "\xff", "none\x00"])
def test_a_form_in_an_odd_charset_is_refused(visitor: Visitor, charset: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n+2AA-\\x\xff\r\n--b--\r\n'
    kind = f"multipart/form-data; boundary=b; charset={charset}".encode("latin-1")
    answer = visitor.client.post("/example", content=body, headers={"content-type": kind})
    assert answer.status_code in (400, 403)
    assert is_page(answer)


def test_the_cookies_of_other_programs_do_no_harm(visitor: Visitor) -> None:
    """Cookies know no ports: a browser sends those of every program on the machine, whatever they hold."""
    name, value = next(iter(visitor.client.cookies.items()))
    for other in ('a={"b": [1, 2]}', "x", "=", 'c="open', "é=ü", "a=b" * 2500):
        header = f"{other}; {name}={value}; d=(x)".encode()
        answer = visitor.client.get("/", headers={"cookie": header.decode("latin-1").encode("latin-1")})
        assert answer.status_code == 200, other


def test_a_file_is_given_whole(guest: Any) -> None:
    for wanted in ("bytes=0-1", "bytes=" + "9" * 5000 + "-", "bytes=5-1", "lines=1", "bytes=0-1,3-4,6-7"):
        answer = guest.client.get(guest.good + "/log", headers={"range": wanted})
        assert answer.status_code == 200
        assert answer.text == LOG


def test_a_body_that_drips_is_given_up() -> None:
    """One byte now and then would hold a connection forever."""
    limits = Limits(stall_seconds=0.2, slowest_bytes=1000)

    async def receive() -> Any:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    parts = 0

    async def read() -> None:
        nonlocal parts
        body = measured(receive, 10**6, limits)
        while parts < 1000:
            await body()
            parts += 1

    with pytest.raises(HTTPException, match="came too slowly"):
        anyio.run(read)
    assert parts < 100


def test_what_vanished_from_the_disk_is_explained(visitor: Visitor, studio: Studio) -> None:
    """A cleaner of temporary files may take anything away."""
    workspace = visitor.prepare()
    visitor.compare(workspace)
    shutil.rmtree(studio.rooms.folder)
    for path in ("/log", "/answers/1/report", "/answers/1/report.html"):
        answer = visitor.get(workspace + path)
        assert answer.status_code == 404
        assert "The files for this are gone" in alerts(answer)
    for answer in (visitor.upload("a.csv", LOG), visitor.post(workspace + "/compare")):
        assert answer.status_code == 404
        assert "start the studio again" in alerts(answer)


def test_a_policy_that_is_removed_takes_its_file_along(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    content = b"x,y,z\n" + b"0.2,0.3,0.5\n" * 60
    before = set(studio.rooms.folder.rglob("*"))
    refused = visitor.post(workspace + "/policies", {"kind": "file", "name": "a=b"}, files={"file": ("p.csv", content)})
    assert refused.status_code == 422
    visitor.post(workspace + "/policies", {"kind": "uniform"}, files={"file": ("p.csv", content)})
    assert set(studio.rooms.folder.rglob("*")) == before
    visitor.post(workspace + "/policies", {"kind": "file"}, files={"file": ("p.csv", content)})
    assert "policy.csv" in {p.name for p in studio.rooms.folder.rglob("*")}
    visitor.post(workspace + "/policies", {"remove": "p"})
    assert set(studio.rooms.folder.rglob("*")) == before


def test_two_policies_that_are_added_at_once_both_stay(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = visitor.prepare()
    usual = question_pages.store

    def slow(*arguments: Any) -> Path:
        time.sleep(0.2)
        return usual(*arguments)

    monkeypatch.setattr(question_pages, "store", slow)
    names = ("one", "two", "three")
    threads = [
        threading.Thread(
            target=visitor.post,
            args=(workspace + "/policies", {"kind": "file"}),
            kwargs={"files": {"file": (f"{name}.csv", b"x,y,z\n" + b"0.2,0.3,0.5\n" * 60)}},
        )
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page = visitor.get(workspace + "/policies").text
    assert all(f"file {name}.csv" in page for name in names)


def test_a_comparison_that_is_turned_away_leaves_the_one_before(visitor: Visitor, studio: Studio) -> None:
    workspace = visitor.prepare()
    before = set(studio.rooms.folder.rglob("*"))
    studio.queue.limits = Limits(jobs=0, waiting_jobs=0)
    assert visitor.post(workspace + "/compare").status_code == 503
    assert visitor.upload("b.csv", LOG).status_code == 503
    assert set(studio.rooms.folder.rglob("*")) == before
    studio.queue.limits = Limits()
    assert visitor.compare(workspace).status_code == 200


def test_a_file_that_cannot_be_read_is_not_kept(visitor: Visitor, studio: Studio) -> None:
    page = visitor.upload("a.csv", b"x,y\n")
    assert page.status_code == 422
    assert visitor.get(str(page.url)).status_code == 422  # the page still says why
    assert list(studio.rooms.folder.iterdir()) == []
    good = [visitor.prepare() for _ in range(studio.limits.workspaces - 1)]
    for _ in range(3):
        visitor.upload("a.csv", b"x,y\n")
    assert [visitor.get(w + "/policies").status_code for w in good] == [200] * len(good)


def test_the_start_page_lists_logs_whose_pages_nobody_has_seen(
    visitor: Visitor, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "PATIENCE", 0.0)
    studio.queue._places.acquire()
    studio.queue._places.acquire()
    form = {"data": {"csrf": visitor.csrf}, "files": {"file": ("unseen.csv", LOG)}}
    visitor.client.post("/upload", **form, follow_redirects=False)
    (workspace,) = next(iter(studio.rooms.sessions.values())).workspaces.values()
    assert f'href="/w/{workspace.id}/working"' in visitor.get("/").text
    studio.queue._places.release(2)
    assert workspace.job is not None
    assert workspace.job.wait(300)
    assert f'href="/w/{workspace.id}/columns"' in visitor.get("/").text
