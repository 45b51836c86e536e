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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_studio_leaves_nothing(tmp_path: Path, number: int, code: int) -> None:
    with studio("--port", "0", folder=tmp_path) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        status, headers = ask(address)
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        assert ask(address, "/", cookie=cookie)[0] == 200
        assert ask(address, "/")[0] == 403
        assert ask(address, "/", cookie=cookie, host="evil.example")[0] == 421
        assert len(list(tmp_path.glob("podium-studio-*"))) == 1
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == code
    assert "Traceback" not in errors
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


@contextmanager
def served(patience: float) -> Iterator[tuple[str, int]]:
    """A server whose connections have little patience."""

    class Impatient(PromptConnection):
        pass

    Impatient.patience = patience

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

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
