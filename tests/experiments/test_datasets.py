"""The datasets of Example 2: tables that podium ships, folders, downloads from a local server, and what goes wrong."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.data.shipped import shipped_text
from podium.experiments.classification import datasets
from podium.experiments.classification.datasets import (
    BUNDLED,
    DOWNLOADED,
    PACKAGE,
    SHIPPED,
    TABLES,
    cache_folder,
    describe_origins,
    load_dataset,
)
from podium.experiments.classification.sources import SOURCES, UCI, read_prepared

FOLDER = Path(datasets.__file__).parent / TABLES
HINT = "leave --download out to use the table that podium ships, or name a folder with the file: --data-dir DIR."
WITHOUT = "leave --data-dir and PODIUM_DATA_DIR out to use the table that podium ships."


def table_text(name: str) -> str:
    """The table that podium ships, as CSV."""
    return shipped_text(PACKAGE, f"{TABLES}/{name}.csv.gz")


# --- what podium ships -------------------------------------------------------------------------------------------


def test_the_shipped_files_are_intact_and_written_the_same_way_everywhere() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    checksums = dict(re.findall(r"`(\w+)\.csv` \| `([0-9a-f]{64})`", readme))
    assert set(checksums) == set(SOURCES)
    packed = {name: (FOLDER / f"{name}.csv.gz").read_bytes() for name in SOURCES}
    assert {name: hashlib.sha256(gzip.decompress(content)).hexdigest() for name, content in packed.items()} == checksums
    assert {content[3:8] for content in packed.values()} == {bytes(5)}, "neither a name nor a time in the header"
    assert sum(map(len, packed.values())) < 200_000


def test_the_readme_gives_credit() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in readme
    for author, doi in {
        "Nash, W., Sellers, T., Talbot, S., Cawthorn, A., and Ford, W.": "10.24432/C55C7W",
        "Abid, F.": "10.24432/C5KW4N",
        "Nakai, K.": "10.24432/C5388M",
        "German, B.": "10.24432/C5WW2P",
        "Cortez, P., Cerdeira, A., Almeida, F., Matos, T., and Reis, J.": "10.24432/C56S3T",
    }.items():
        assert [line for line in readme.splitlines() if author in line and doi in line], author


@pytest.mark.parametrize("name", list(SOURCES))
def test_the_shipped_table_is_the_default_and_needs_no_network(name: str, server: Server) -> None:
    data = load_dataset(name)
    assert data.origin == SHIPPED
    assert server.requests == []


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that podium takes for its table of abalone."""
    package = tmp_path / "broken_package"
    (package / TABLES).mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_package", raising=False)  # that of the test before
    monkeypatch.setattr(datasets, "PACKAGE", "broken_package")
    return package / TABLES / "abalone.csv.gz"


WHOLE = (FOLDER / "abalone.csv.gz").read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"abalone",
        WHOLE[:1000],
        WHOLE[:1000] + b"?" + WHOLE[1001:],
        gzip.compress(b"\xff\xfe"),
        gzip.compress(gzip.decompress(WHOLE).replace(b"0.455", b"0.456", 1)),
        (FOLDER / "glass.csv.gz").read_bytes(),
    ],
    ids=["empty", "not gzip", "truncated", "one byte", "not text", "one number", "another table"],
)
def test_a_damaged_shipped_table_stops_the_run(
    broken: Path, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken.write_bytes(content)
    assert main(["reproduce", "classification", "--quick", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f"podium: {TABLES}/abalone.csv.gz, a data file that podium ships, is damaged\n\nHint: install podium again.\n"
    )
    assert not (tmp_path / "out").exists(), "nothing is written"


def test_a_whole_table_elsewhere_is_read(broken: Path) -> None:
    broken.write_bytes(WHOLE)
    assert len(load_dataset("abalone").labels) == 4177


def test_a_missing_shipped_table_stops_the_run(
    broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "classification", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f"podium: {TABLES}/abalone.csv.gz, a data file that podium ships, is missing\n\nHint: install podium again.\n"
    )
    assert not (tmp_path / "out").exists()


# --- the public form of each dataset, made from its table --------------------------------------------------------


def published(name: str) -> str:
    """The file as the repository publishes it."""
    table = read_prepared(table_text(name))
    rows = [(list(map(str, row)), str(label)) for row, label in zip(table.features.tolist(), table.labels, strict=True)]
    if name == "abalone":
        sex = {"0.0": "M", "0.5": "I", "1.0": "F"}
        return "".join(f"{sex[x[0]]},{','.join(x[1:])},{y}\n" for x, y in rows)
    if name == "ecoli":
        return "".join(f"P{i:03d}_ECOLI  {'  '.join(x)}   {y}\n" for i, (x, y) in enumerate(rows))
    if name == "glass":
        return "".join(f"{i + 1},{','.join(x)},{y}\n" for i, (x, y) in enumerate(rows))
    if name == "winequality":
        return '"fixed acidity";"volatile acidity";"quality"\n' + "".join(f"{';'.join(x)};{y}\n" for x, y in rows)
    return published_algerian(rows)


def published_algerian(rows: list[tuple[list[str], str]]) -> str:
    """Two parts with a title and a header each, labels with blanks, and the one row that is broken."""
    header = "day,month,year,Temperature, RH, Ws,Rain ,FFMC,DMC,DC,ISI,BUI,FWI,Classes  \n"
    rows = rows[2:] + rows[:2]
    lines = []
    for x, y in rows:
        if x[9:] == ["14.69", "12.5", "10.4", "2.5"]:
            lines.append(",".join(["14", "07", "2012", *x[3:9], "14.6 9", "12.5", "10.4", "fire   ", ""]))
        else:
            lines.append(",".join([f"{int(float(x[0])):02d}", *x[1:], y.replace("_", " ") + "   "]))
    parts = ["Bejaia Region Dataset ,,,,,,,,,,,,,\n", header, *(f"{line}\r\n" for line in lines[:122]), "\n"]
    parts += ["Sidi-Bel Abbes Region Dataset,,,,,,,,,,,,,\n", header, *(f"{line}\r\n" for line in lines[122:])]
    return "".join(parts)


@pytest.mark.parametrize("name", list(SOURCES))
def test_the_public_file_becomes_the_papers_table(name: str) -> None:
    assert SOURCES[name].read(published(name)).checksum() == SOURCES[name].checksum


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("abalone", (4177, 8), 28), ("algerian", (244, 13), 2), ("ecoli", (336, 7), 8), ("glass", (214, 9), 6),
        ("winequality", (1599, 11), 6),
    ],
)  # fmt: skip
def test_what_the_datasets_are(name: str, shape: tuple[int, int], classes: int) -> None:
    data = load_dataset(name)
    assert (data.features.shape, len(data.classes)) == (shape, classes)
    assert (data.classes[data.codes] == data.labels).all()
    assert data.classes[data.appearance[0]] == data.labels[0]


def test_the_checksum_sees_every_cell_and_the_order() -> None:
    text = table_text("glass")
    lines = text.splitlines()
    for changed in (
        text.replace("1.52101", "1.52102", 1),
        "\n".join([*lines[:-1], lines[-1][:-1] + "6"]),
        "\n".join([lines[0], lines[2], lines[1], *lines[3:]]),
        "\n".join(lines[:-1]),
    ):
        assert read_prepared(changed).checksum() != SOURCES["glass"].checksum
    assert read_prepared(text.replace("\n", "\r\n")).checksum() == SOURCES["glass"].checksum


@pytest.mark.parametrize("name", BUNDLED)
def test_datasets_that_scikit_learn_ships(name: str) -> None:
    data = load_dataset(name)
    assert data.origin.words == "shipped with scikit-learn"
    assert len(data.labels) == len(data.features) > 100
    assert len(np.unique(data.codes)) == len(data.classes)


# --- a server ----------------------------------------------------------------------------------------------------

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """A web server on this machine that answers every request as it is told, and counts them."""

    def __init__(self) -> None:
        self.answer: Answer = lambda request: request.send_error(404)
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                outer.answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("PODIUM_DATA_URL", server.url)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


def send(content: bytes, length: int | None = None) -> Answer:
    """Answer with some content, and perhaps with another length than it has."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content) if length is None else length))
        request.end_headers()
        request.wfile.write(content)

    return answer


def refused(cache: Path, **options: float) -> str:
    """The message with which glass is refused; nothing is left in the cache."""
    with pytest.raises(PodiumError) as caught:
        load_dataset("glass", download=True, cache=cache, **options)
    assert list(cache.rglob("*")) == []
    return str(caught.value)


def test_the_right_file_is_kept_and_not_fetched_again(server: Server, tmp_path: Path) -> None:
    server.answer = send(published("glass").encode())
    cache = tmp_path / "new" / "folder"
    first = load_dataset("glass", download=True, cache=cache)
    again = load_dataset("glass", download=True, cache=cache)
    assert server.requests == ["/glass/glass.data"]
    assert first.origin == again.origin == DOWNLOADED
    assert (again.features == first.features).all()
    assert (again.labels == first.labels).all()
    assert [path.name for path in cache.iterdir()] == ["glass.csv"]


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b.replace(b"1.5", b"1.6"), lambda b: b"\xff"])
def test_a_damaged_cache_does_not_survive(server: Server, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    server.answer = send(published("glass").encode())
    load_dataset("glass", download=True, cache=tmp_path)
    whole = (tmp_path / "glass.csv").read_bytes()
    (tmp_path / "glass.csv").write_bytes(damage(whole))
    load_dataset("glass", download=True, cache=tmp_path)
    assert (tmp_path / "glass.csv").read_bytes() == whole
    assert len(server.requests) == 2
    (tmp_path / "glass.csv").write_bytes(damage(whole))
    server.answer = lambda request: request.send_error(404)
    refused(tmp_path)


def test_a_wrong_file(server: Server, tmp_path: Path) -> None:
    server.answer = send(published("glass").replace("1.5", "1.6", 1).encode())
    message = "glass/glass.data is not the table of glass that the paper used: its checksum differs"
    assert refused(tmp_path) == f"{server.url}{message}\n\nHint: {HINT}"
    for other in (b"<html>Please log in</html>", b"", b"\x00\xff\xfe"):
        server.answer = send(other)
        assert "its checksum differs" in refused(tmp_path)


def test_a_truncated_file(server: Server, tmp_path: Path) -> None:
    content = published("glass").encode()
    server.answer = send(content[:5000], length=len(content))
    assert refused(tmp_path) == (
        f"{server.url}glass/glass.data sent 5,000 of {len(content):,} bytes and stopped\n\nHint: try again; else {HINT}"
    )
    server.answer = send(content[:5000])  # a server that does not know that there is more
    assert "its checksum differs" in refused(tmp_path)


def test_no_such_file(server: Server, tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{server.url}glass/glass.data answers 404 Not Found\n\nHint: {HINT}"


def test_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    monkeypatch.setenv("PODIUM_DATA_URL", url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert refused(tmp_path) == f"cannot reach {url}glass/glass.data: Connection refused\n\nHint: {HINT}"


@pytest.mark.parametrize("silent", [True, False], ids=["says nothing", "says a little again and again"])
def test_a_stalled_server(server: Server, tmp_path: Path, silent: bool) -> None:
    over = threading.Event()

    def stall(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        while not over.wait(0.02):
            if not silent:
                try:
                    request.wfile.write(b"1,")
                except OSError:
                    return

    server.answer = stall
    start = time.monotonic()
    message = refused(tmp_path, timeout=0.4, deadline=0.4)
    over.set()
    assert message == f"{server.url}glass/glass.data does not answer in time\n\nHint: {HINT}"
    assert time.monotonic() - start < 60, "it does not wait for ever"


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    server.answer = send(published("glass").encode())
    assert len(load_dataset("glass", download=True, cache=tmp_path / "file").labels) == 214
    assert capsys.readouterr().err.startswith("podium: glass is not kept for the next time:")


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "podium"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "podium"


# --- folders -----------------------------------------------------------------------------------------------------


def test_a_folder_wins_over_the_shipped_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, given = tmp_path / "named", tmp_path / "given"
    for folder in (named, given):
        folder.mkdir()
        (folder / "abalone.data").write_text(published("abalone"), encoding="utf-8")
    monkeypatch.setenv("PODIUM_DATA_DIR", str(named))
    for folder, data in ((named, load_dataset("abalone")), (given, load_dataset("abalone", given))):
        assert data.origin.words == f"from the folder {str(folder)!r}"
        assert (data.features == read_prepared(table_text("abalone")).features).all()
    monkeypatch.setenv("PODIUM_DATA_DIR", "")
    assert load_dataset("abalone").origin == SHIPPED


def test_a_download_that_is_asked_for_wins_over_the_variable(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATA_DIR", str(tmp_path))
    server.answer = send(published("glass").encode())
    assert load_dataset("glass", cache=tmp_path / "cache", download=True).origin == DOWNLOADED


def test_a_folder_and_a_download_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--data-dir", str(tmp_path), "--download"]
    assert main(["reproduce", "classification", *both, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "podium: --data-dir and --download exclude each other\n\nHint: name one source of the datasets.\n"
    )


def test_a_folder_without_the_dataset(tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as caught:
        load_dataset("ecoli", tmp_path)
    assert str(caught.value) == (
        f"{str(tmp_path)!r} has no ecoli.csv\n\nHint: put {UCI}ecoli/ecoli.data there, or {WITHOUT}"
    )


def test_a_folder_with_another_table(tmp_path: Path) -> None:
    path = tmp_path / "ecoli.csv"
    for content in (b"feature_0,label\n1,a\n", b"nonsense", b"\xff\xfe", b""):
        path.write_bytes(content)
        with pytest.raises(PodiumError) as caught:
            load_dataset("ecoli", tmp_path)
        assert str(caught.value) == (
            f"{str(path)!r} is not the table of ecoli that the paper used: its checksum differs\n\n"
            f"Hint: use {UCI}ecoli/ecoli.data as it is published, or {WITHOUT}"
        )


def test_an_unknown_dataset() -> None:
    with pytest.raises(PodiumError) as caught:
        load_dataset("mnist")
    assert str(caught.value) == (
        "no dataset 'mnist'\n\nHint: the datasets are abalone, algerian, ecoli, glass, winequality, iris, wine, "
        "breast_cancer, digits."
    )


# --- what a run says of its data ---------------------------------------------------------------------------------


def test_origins_in_words(tmp_path: Path) -> None:
    (tmp_path / "glass.csv").write_text(table_text("glass"), encoding="utf-8")
    data = [load_dataset("ecoli"), load_dataset("iris"), load_dataset("glass", tmp_path), load_dataset("abalone")]
    assert describe_origins(data) == (
        "ecoli, abalone (shipped with podium); iris (shipped with scikit-learn); "
        f"glass (from the folder {str(tmp_path)!r})"
    )


def test_a_run_names_its_source_and_writes_the_same_numbers_from_each(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    server.answer = send(published("glass").encode())
    Path("my data").mkdir()
    Path("my data", "glass.csv").write_text(table_text("glass"), encoding="utf-8")
    command = "reproduce classification --quick --datasets glass --reading text --verdict-logs 0"
    written = set()
    sources = {
        "shipped with podium": [],
        "from the folder 'my data'": ["--data-dir", "my data"],
        "downloaded originals": ["--download"],
    }
    for number, (words, options) in enumerate(sources.items()):
        out = Path(f"out-{number}")
        assert main([*command.split(), *options, "--workers", "1", "--out", str(out)]) == 0
        assert f"\nData: glass ({words})\n" in capsys.readouterr().out
        results = json.loads((out / "results.json").read_text(encoding="utf-8"))
        assert results["settings"]["data"] == {"glass": words}
        page = (out / "index.html").read_text(encoding="utf-8").replace("&#x27;", "'")
        quoted = " ".join("'my data'" if " " in option else option for option in options)
        assert f"Data: glass ({words}). Made by: podium {command} {quoted}".rstrip() + "<" in page
        written.add((out / "tables" / "ex2_comp_text.csv").read_bytes())
    assert len(written) == 1
    assert server.requests == ["/glass/glass.data"]


def test_a_download_that_fails_says_how_to_go_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    assert main(["reproduce", "classification", "--download", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error == f"podium: {server.url}abalone/abalone.data answers 404 Not Found\n\nHint: {HINT}\n"
    assert not (tmp_path / "out").exists()
