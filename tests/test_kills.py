"""Podium is killed at any moment, and leaves the log unharmed, whole reports or none, and no process or folder behind.

| after | exit code | temporary folders | processes | report | log |
|---|---|---|---|---|---|
| SIGINT | 130 | none | none | the old one, or the new one whole | unharmed |
| SIGTERM, SIGHUP, SIGQUIT | 128 + its number | none | none | the old one, or the new one whole | unharmed |
| SIGKILL | 137 | removed by the next run | none | the old one, or the new one whole | unharmed |

Nobody sees a traceback. `make test` kills every command a few times, `make test-slow` many times, at moments that are
spread over the whole run by a fixed seed.
"""

from __future__ import annotations

import http.client
import random
import re
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from kills import SIGNALS, Ended, Run, When, after, wait_for
from pyarrow import parquet

pytestmark = pytest.mark.platforms("linux")  # processes are found in /proc
KILLS = 5  # of each signal in `make test-slow`
OLD = "<!doctype html><title>the old report</title>"
NAMES = [number.name for number in SIGNALS]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Run(folder)


def moments(seconds: float, seed: int, count: int = KILLS) -> list[float]:
    """Moments spread over so many seconds: one drawn from each of `count` equal stretches."""
    draw = random.Random(seed).random
    return [(i + draw()) * seconds / count for i in range(count)]


def check_end(ended: Ended, number: signal.Signals, run: Run) -> None:
    """What holds after every kill."""
    assert "Traceback" not in ended.output + ended.errors, ended.errors
    assert "Exception ignored" not in ended.errors, ended.errors
    if ended.shell_code != 0:  # otherwise the signal came when all was done
        assert ended.shell_code == 128 + number, ended
    if number != signal.SIGKILL:
        assert run.left() == []


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- compare --html --------------------------------------------------------------------------------------------------

COMPARE = ("compare", "log.csv", "--html", "report.html")


def write_log(folder: Path, rows: int = 400) -> bytes:
    rng = np.random.default_rng(1)
    action, x = rng.integers(0, 2, rows), rng.random(rows).round(3)
    columns = rng.integers(20, 60, rows), action, rng.normal(size=rows) + action, x, 1 - x, 1 - x, x
    lines = ["age,action,reward,propensity:a,propensity:b,pi_x:a,pi_x:b,pi_y:a,pi_y:b"]
    lines += [
        f"{age},{'ab'[a]},{r:.4f},0.5,0.5," + ",".join(map(str, pi)) for age, a, r, *pi in zip(*columns, strict=True)
    ]
    (folder / "log.csv").write_text("\n".join(lines))
    return (folder / "log.csv").read_bytes()


def kill_compare(run: Run, number: signal.Signals, moment: float, old: bool) -> None:
    log, report = write_log(run.folder), run.folder / "report.html"
    if old:
        report.write_text(OLD)
    options = ["--overwrite"] if old else []
    ended = run.killed([*COMPARE, *options], number, after(moment))
    check_end(ended, number, run)
    found = contents(run.folder)
    assert found.pop("log.csv") == log
    page = found.pop("report.html", b"").decode()
    assert found == {}
    if ended.shell_code == 0:
        assert is_whole(page)
    else:
        assert page == (OLD if old else "") or is_whole(page)
    report.unlink(missing_ok=True)
    if number == signal.SIGKILL:
        assert run.finished(*COMPARE).code == 0
        assert run.left() == []
        assert set(contents(run.folder)) == {"log.csv", "report.html"}


def is_whole(page: str) -> bool:
    return page.startswith("<!doctype html>") and page.rstrip().endswith("</html>") and page.count("<table") >= 6


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_comparison_leaves_no_half_report(run: Run, name: str) -> None:
    kill_compare(run, signal.Signals[name], 0.3, old=False)


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["new report", "old report"])
@pytest.mark.parametrize("name", NAMES)
def test_a_comparison_killed_at_any_moment(run: Run, name: str, old: bool) -> None:
    for moment in moments(1.5, seed=len(name)):
        kill_compare(run, signal.Signals[name], moment, old)


WRITING = """
import sys, time
from pathlib import Path
import podium.data.files
def wait(self, target):
    Path("writing").touch()
    time.sleep(60)
Path.replace = wait
from podium.command.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_report_that_was_being_written_is_the_old_one(run: Run, name: str) -> None:
    """The signal comes when the new report has been written and not yet put in place of the old one."""
    log, number = write_log(run.folder), signal.Signals[name]
    (run.folder / "report.html").write_text(OLD)
    ended = run.killed([*COMPARE, "--overwrite"], number, lambda run: (run.folder / "writing").exists(), WRITING)
    check_end(ended, number, run)
    (run.folder / "writing").unlink()
    found = contents(run.folder)
    assert found.pop("log.csv") == log
    assert found.pop("report.html").decode() == OLD
    if number != signal.SIGKILL:
        assert found == {}


# --- DuckDB ----------------------------------------------------------------------------------------------------------

LIMIT = "20MB"  # with which DuckDB writes to its temporary folder


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that takes more memory to group than `LIMIT`."""
    rng, rows = np.random.default_rng(0), 200_000
    columns = {
        "state": np.char.add("person number ", rng.permutation(rows).astype(str)),
        "action": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)],
        "reward": rng.normal(size=rows),
        "propensity": np.full(rows, 1 / 3),
        "pi_x": rng.random(rows),
        "pi_y": rng.random(rows),
    }
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def scan(log: Path, spill: Path) -> list[str]:
    engine = ["--engine", "duckdb", "--threads", "1", "--memory-limit", LIMIT, "--temp-dir", str(spill)]
    return ["compare", str(log), "--state", "state", *engine]


def kill_scan(run: Run, large: Path, number: signal.Signals, when: When) -> None:
    log, spill = large.read_bytes(), run.folder / "spill"
    spill.mkdir(exist_ok=True)
    ended = run.killed(scan(large, spill), number, when)
    check_end(ended, number, run)
    assert large.read_bytes() == log
    if number == signal.SIGKILL:
        write_log(run.folder)
        again = run.finished("compare", "log.csv", "--engine", "duckdb", "--temp-dir", str(spill))
        assert again.code == 0, again.errors
    assert list(spill.iterdir()) == []


def spills(run: Run) -> bool:
    """DuckDB has written to its temporary folder."""
    return any((run.folder / "spill").glob("*/spill/*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_that_is_killed_while_it_spills_leaves_no_file(run: Run, large: Path, name: str) -> None:
    kill_scan(run, large, signal.Signals[name], spills)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_killed_at_any_moment_leaves_no_file(run: Run, large: Path, name: str) -> None:
    for moment in moments(2.0, seed=len(name)):
        kill_scan(run, large, signal.Signals[name], after(moment))


# --- the studio ------------------------------------------------------------------------------------------------------

BOUNDARY = "----boundary"


class Sending:
    """A studio, and a visitor whose upload is under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            found = re.search(r"http://\S+", line)
        parts = urlsplit(found[0])
        self.home = f"http://{parts.netloc}"
        self.host, self.port = parts.hostname or "", parts.port
        status, headers, _ = self.ask("GET", f"{parts.path}?{parts.query}")
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', self.ask("GET", "/", cookie=self.cookie)[2])[0]

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any, str]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers={"Origin": self.home, **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def form(self, content: bytes) -> bytes:
        """An upload as a browser sends it."""
        start = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{self.csrf}\r\n--{BOUNDARY}\r\n'
            'Content-Disposition: form-data; name="file"; filename="log.csv"\r\nContent-Type: text/csv\r\n\r\n'
        )
        return start.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()

    def headers(self) -> dict[str, str]:
        return {"cookie": self.cookie, "content-type": f"multipart/form-data; boundary={BOUNDARY}"}

    def begin(self, content: bytes, share: float) -> http.client.HTTPConnection:
        """Send only a part of an upload."""
        body = self.form(content)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.putrequest("POST", "/upload")
        for name, value in {**self.headers(), "Origin": self.home, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(body[: int(len(body) * share)])
        return connection


STUDIO = ("studio", "--no-browser", "--port", "0")


def kill_studio(run: Run, number: signal.Signals, rows: int, share: float, seconds: float) -> None:
    """Kill a studio that holds one log, while another one arrives (`share` below 1) or is looked at (1)."""
    write_log(run.folder, rows)
    content = (run.folder / "log.csv").read_bytes()
    with run.started(*STUDIO) as process:
        visitor = Sending(process)
        assert visitor.ask("POST", "/upload", visitor.form(content), **visitor.headers())[0] in (200, 303)
        pending = visitor.begin(content, share)
        moment = after(seconds)
        wait_for(lambda: moment(run))
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
        pending.close()
        wait_for(lambda: not run.processes(), "processes of the studio are left")
    check_end(Ended(process.returncode, output, errors), number, run)
    assert process.returncode != 0
    if number == signal.SIGKILL:
        with run.started(*STUDIO) as process:
            Sending(process)
            texts = [path for path in run.temporary.rglob("*") if path.is_file() and b"pi_x:a" in path.read_bytes()]
            assert texts == []
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert run.left() == []
    assert (run.folder / "log.csv").read_bytes() == content


@pytest.mark.parametrize("name", ["SIGHUP", "SIGKILL"])
def test_a_killed_studio_leaves_no_upload(run: Run, name: str) -> None:
    kill_studio(run, signal.Signals[name], rows=20_000, share=0.9, seconds=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 1.0])
def test_a_studio_killed_at_any_moment_leaves_no_upload(run: Run, name: str, share: float) -> None:
    for seconds in moments(1.5, seed=int(100 * share), count=2):
        kill_studio(run, signal.Signals[name], rows=20_000, share=share, seconds=seconds)


# --- reproduce -------------------------------------------------------------------------------------------------------

REPRODUCE = ("reproduce", "synthetic", "--quick", "--reward", "1.1", "--workers", "2", "--out")


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run that nobody kills writes."""
    run = Run(tmp_path_factory.mktemp("whole") / "folder")
    run.folder.mkdir()
    ended = run.finished(*REPRODUCE, "out")
    assert ended.code == 0, ended.errors
    return contents(run.folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_reproduction_killed_again_and_again_ends_with_the_same_bytes(
    run: Run, name: str, reproduced: dict[str, bytes]
) -> None:
    for moment in moments(12.0, seed=len(name), count=4):
        number = signal.Signals[name]
        ended = run.killed([*REPRODUCE, "out"], number, after(moment))
        check_end(ended, number, run)
        for path, content in contents(run.folder).items():
            whole = reproduced.get(str(Path(path).relative_to("out")))
            assert content == whole, f"{path} is not what it will be"
    assert run.finished(*REPRODUCE, "out").code == 0
    assert contents(run.folder / "out") == reproduced
    assert run.left() == []
