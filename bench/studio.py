"""The studio on a Parquet log of 1e6 rows: most memory held at once by its server and its job together."""

import http.cookiejar
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

PAGE = 4096


def write_log(path: Path, rows: int, policies: int, full: bool) -> None:
    """Integer states, five actions, propensities, and policies known at the logged action or in full."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    names = np.array(["call", "email", "letter", "none", "sms"])
    taken = rng.integers(0, 5, rows)
    columns: dict[str, Any] = {
        "age": rng.integers(40, 90, rows),
        "distance": rng.integers(0, 400, rows),
        "action": names[taken],
        "reward": rng.random(rows),
        "propensity": np.full(rows, 0.2),
    }
    for k in range(policies):
        matrix = rng.dirichlet(np.ones(5), rows)
        columns[f"pi_p{k}"] = matrix[np.arange(rows), taken]
        if full:
            columns |= {f"pi_p{k}:{a}": matrix[:, i] for i, a in enumerate(names)}
    parquet.write_table(pa.table(columns), path)


def resident(pid: int) -> int:
    """Bytes that a process and its children hold now."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    except (OSError, ValueError):
        return 0
    return own + sum(resident(child) for child in children)


class Browser:
    """As much of a browser as the path needs."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.home = f"{parts.scheme}://{parts.netloc}"
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', self.fetch(address)[1])[0]

    def fetch(self, address: str, body: bytes | None = None, kind: str = "") -> tuple[str, str]:
        """The address and the page, after all progress pages."""
        request = urllib.request.Request(address, body, {"Origin": self.home, "Content-Type": kind})
        while True:
            with self.opener.open(request) as answer:
                url, text = answer.geturl(), answer.read().decode()
            if not url.endswith("/working"):
                return url, text
            time.sleep(0.2)
            request = urllib.request.Request(url)

    def post(self, path: str, form: dict[str, str]) -> tuple[str, str]:
        body = urlencode({"csrf": self.csrf, **form}).encode()
        return self.fetch(self.home + path, body, "application/x-www-form-urlencoded")

    def upload(self, path: Path) -> tuple[str, str]:
        head = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{self.csrf}\r\n--b\r\n'
        head += f'Content-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
        body = head.encode() + path.read_bytes() + b"\r\n--b--\r\n"
        return self.fetch(self.home + "/upload", body, "multipart/form-data; boundary=b")


def bench_studio(report: Callable[[str, str, str, bool], None], rows: int = 10**6) -> None:
    """Upload, columns, comparison and report, through the real server."""
    print(f"The studio on a Parquet log of {rows:,} rows, five policies")
    for full in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.parquet"
            write_log(path, rows, 5, full)
            held = walk(path)
        what = "policies in full (25 columns more)" if full else "policies at the logged action"
        report(f"memory of server and job, {what}", f"{held / 1e9:.2f} GB", "under 1 GB", held < 1e9)


def walk(path: Path) -> int:
    """From upload to answer; the most memory held at any moment."""
    command = [sys.executable, "-m", "podium", "studio", "--no-browser", "--port", "0"]
    most, ended = 0, threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))

        def watch() -> None:
            nonlocal most
            while not ended.wait(0.01):
                most = max(most, resident(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            browser = Browser(address)
            url, text = browser.upload(path)
            where = urlsplit(url).path.rpartition("/")[0]
            roles = dict(re.findall(r'name="(role-\d+)".*?value="(\w+)" selected', text, re.DOTALL))
            url, text = browser.post(f"{where}/columns", roles)
            assert url.endswith("/policies"), text
            url, text = browser.post(f"{where}/compare", {})
            assert url.endswith("/answer"), text
            assert "ranking" in text
        finally:
            ended.set()
            watcher.join()
            process.terminate()
    return most


if __name__ == "__main__":
    bench_studio(lambda what, value, limit, holds: print(f"{'ok' if holds else 'FAIL'}  {what}: {value} ({limit})"))
