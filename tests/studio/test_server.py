"""The command `podium studio`: its address, its port, and what is left when it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from studio_visitor import LOG

from podium.command.cli import main
from podium.studio.connections import PromptConnection
from podium.studio.server import listen


@contextmanager
def studio(*options: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running studio and its address."""
    command = [sys.executable, "-m", "podium", "studio", "--no-browser", *options]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            found = re.search(r"http://\S+", line)
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def ask(address: str, path: str | None = None, **headers: str) -> tuple[int, http.client.HTTPMessage]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        connection.request("GET", path or f"{parts.path}?{parts.query}", headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


def drop(address: str, cookie: str, content: bytes) -> int:
    """Upload a log, and give the status of the answer."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        connection.request("GET", "/", headers={"cookie": cookie})
        csrf = re.findall(rb'name="csrf" value="([^"]+)"', connection.getresponse().read())[0]
        body = (
            b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n%b\r\n'
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n%b\r\n--b--\r\n'
        ) % (csrf, content)
        kind = "multipart/form-data; boundary=b"
        headers = {"cookie": cookie, "origin": f"http://{parts.netloc}", "content-type": kind}
        connection.request("POST", "/upload", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.platforms("linux", "darwin")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_an_interrupted_studio_leaves_nothing(tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    with studio("--port", "0", folder=tmp_path) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        status, headers = ask(address)
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        assert ask(address, "/", cookie=cookie)[0] == 200
        assert ask(address, "/")[0] == 403
        assert ask(address, "/", cookie=cookie, host="evil.example")[0] == 421
        assert drop(address, cookie, LOG.encode()) == 303
        assert len(list(tmp_path.glob("podium-studio-*"))) == 1
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def drop_unanswered(address: str, content: bytes) -> None:
    """Upload a log to a studio that is killed meanwhile."""
    with suppress(OSError, http.client.HTTPException):
        drop(address, ask(address)[1]["set-cookie"].partition(";")[0], content)


@pytest.mark.platforms("linux")
def test_the_next_studio_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """Its worker ends by itself; the studio that is still running keeps its files."""
    rows = LOG.split("\n", 1)[1]
    with studio("--port", "0", folder=tmp_path) as (living, address), studio("--port", "0", folder=tmp_path) as killed:
        cookie = ask(address)[1]["set-cookie"].partition(";")[0]
        assert drop(address, cookie, LOG.encode()) == 303
        process, other = killed
        sent = threading.Thread(target=drop_unanswered, args=(other, (LOG + rows * 2000).encode()))
        sent.start()
        end = time.monotonic() + 300
        while not (workers := children(process.pid)):
            assert time.monotonic() < end
            time.sleep(0.01)
        process.kill()
        process.wait()
        sent.join()
        while any(map(is_running, workers)):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(list(tmp_path.glob("podium-studio-*/logs/*/log.csv"))) == 2
        with studio("--port", "0", folder=tmp_path) as (next_one, _):
            assert len(list(tmp_path.glob("podium-studio-*"))) == 2
            assert len(list(tmp_path.glob("podium-studio-*/logs/*/log.csv"))) == 1
            assert ask(address, "/", cookie=cookie)[0] == 200
            for one in (next_one, living):
                one.send_signal(signal.SIGHUP)
                one.communicate(timeout=300)
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["studio", "--no-browser", "--port", str(port)]) == 2
    message = f"podium: the studio cannot listen on 127.0.0.1 port {port}: Address already in use\n\n"
    assert capsys.readouterr().err == message + "Hint: choose another with --port, or --port 0 for any free one.\n"


@pytest.mark.parametrize("option", [["--port", "70000"], ["--max-rows", "0"], ["--max-upload", "-1"], ["--port", "x"]])
def test_an_impossible_option_is_a_clear_error(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", "--no-browser", *option]) == 2
    assert "Hint:" in capsys.readouterr().err


def test_a_studio_for_other_machines_warns(tmp_path: Path) -> None:
    with studio("--port", "0", "--host", "0.0.0.0", folder=tmp_path) as (process, address):
        assert ask(address)[0] == 303
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert "warning: other machines can reach this studio" in errors


def test_without_the_extra_the_error_gives_the_line_that_installs_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = None\n"
        "from podium.command.cli import main; sys.exit(main(['studio', '--no-browser', '--port', '0']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.endswith("Hint: run: pip install 'podium[studio]'\n")
    assert "starlette is not installed; the studio needs it" in done.stderr
    assert tempfile.gettempdir() not in done.stderr


def test_a_page_that_is_closed_while_it_sends_a_file_is_no_error(tmp_path: Path) -> None:
    with studio("--port", "0", folder=tmp_path) as (process, address):
        parts = urlsplit(address)
        cookie = ask(address)[1]["set-cookie"].partition(";")[0]
        with socket.create_connection((parts.hostname, parts.port)) as half:
            half.sendall(
                f"POST /upload HTTP/1.1\r\nHost: {parts.netloc}\r\nOrigin: http://{parts.netloc}\r\n"
                f"Cookie: {cookie}\r\n"
                "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000\r\n\r\n--b\r\n".encode()
            )
        assert ask(address, "/", cookie=cookie)[0] == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=300)
    assert "Traceback" not in errors


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(100_000), b""))


def test_a_studio_that_ends_during_an_upload_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    with studio("--port", "0", folder=tmp_path) as (process, address):
        parts = urlsplit(address)
        cookie = ask(address)[1]["set-cookie"].partition(";")[0]
        with socket.create_connection((parts.hostname, parts.port), timeout=300) as half:
            half.sendall(
                f"POST /upload HTTP/1.1\r\nHost: {parts.netloc}\r\nOrigin: http://{parts.netloc}\r\n"
                f"Cookie: {cookie}\r\n"
                "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000000\r\n\r\n"
                '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'.encode()
                + b"x" * 2_000_000
            )
            assert ask(address, "/", cookie=cookie)[0] == 200
            process.send_signal(signal.SIGTERM)
            page = read_all(half)
        _, errors = process.communicate(timeout=300)
    assert page.startswith(b"HTTP/1.1 503")
    assert b"The studio is ending." in page
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


async def say_ok(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def say_much(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(500):
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})


async def say_after_the_body(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await say_ok(scope, receive, send)


@contextmanager
def served(patience: float, app: Any = say_ok, most: int = 100) -> Iterator[tuple[str, int]]:
    """A server whose connections have little patience."""

    class Impatient(PromptConnection):
        pass

    Impatient.patience = patience
    Impatient.most = most
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, http=Impatient, ws="none", lifespan="off", log_level="error", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()


def test_who_sends_no_whole_request_loses_the_connection() -> None:
    """At the first request, and at one that follows another."""
    whole, half = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
    with served(0.2) as address:
        for sent in (b"", half):
            with socket.create_connection(address, timeout=300) as connection:
                connection.sendall(sent)
                assert connection.recv(1000) == b""
        with socket.create_connection(address, timeout=300) as connection:
            connection.sendall(whole)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            connection.sendall(half)
            while connection.recv(1000):
                pass


def test_silent_connections_give_way_to_new_ones() -> None:
    with served(600, most=5) as address:
        silent = [socket.create_connection(address, timeout=300) for _ in range(20)]
        with socket.create_connection(address, timeout=300) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        for one in silent:
            one.close()


def test_where_all_connections_are_at_work_a_new_one_is_turned_away() -> None:
    half = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nx"
    with served(600, say_after_the_body, most=3) as address:
        busy = [socket.create_connection(address, timeout=300) for _ in range(3)]
        for one in busy:
            one.sendall(half)
        time.sleep(0.2)
        with socket.create_connection(address, timeout=300) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = connection.recv(5000)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"content-security-policy" in answer.lower()
        for one in busy:
            one.sendall(b"xxxx")
            assert one.recv(1000).startswith(b"HTTP/1.1 200")
            one.close()


def test_who_reads_no_answer_loses_the_connection() -> None:
    with served(0.2, say_much) as address, socket.create_connection(address, timeout=300) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1)
        assert len(read_all(connection)) < 500 * 100_000


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 what is this?\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000])
def test_what_is_not_http_is_answered_once(sent: bytes) -> None:
    with served(600) as address, socket.create_connection(address, timeout=300) as connection:
        connection.sendall(sent)
        answer = connection.recv(5000)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"content-security-policy" in answer.lower()


def test_a_body_that_breaks_is_answered_once(capsys: pytest.CaptureFixture[str], caplog: Any) -> None:
    """Before the application answered, and after it did."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for app in (say_ok, say_after_the_body):
        with served(600, app) as address, socket.create_connection(address, timeout=300) as connection:
            connection.sendall(head + b"1\r\nx\r\nzz\r\n")
            answer = read_all(connection)
            assert answer.count(b"HTTP/1.1 ") == 1
    assert not caplog.records
    assert "Traceback" not in capsys.readouterr().err
