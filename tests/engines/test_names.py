"""The file that was named is read, unchanged, and nothing else: odd names, other files, databases, the network."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from logs import ROWS, table
from pyarrow import csv, parquet

import podium
from podium.data.errors import PodiumError

NAMES = [
    "a[1]", "a?", "*", "a**", "[!b]1", "a{1,2}", "a]b", "it's", "two\nlines", "-dash", "~", "~home", "ünïcode",
    "space #%20", "a:b", "file:a", "k=v", "back\\slash", "percent%41",
]  # fmt: skip
OTHERS = ["a1", "ab", "a2", "b1"]  # what these names would match as patterns


def few(reward: float) -> pa.Table:
    return table(40).drop_columns(["time"]).set_column(2, "reward", pa.array(np.arange(40.0) + reward))


def write(rows: pa.Table, path: Path, kind: str) -> None:
    with path.open("wb") as file:
        if kind == "csv":
            csv.write_csv(rows, file)
        elif kind == "jsonl":
            file.write("\n".join(map(json.dumps, rows.to_pylist())).encode())
        elif kind == "parquet":
            parquet.write_table(rows, file)
    if kind == "duckdb":
        path.unlink()
        with duckdb.connect(str(path.absolute())) as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE log AS FROM given")


def scan(path: Any, **options: Any) -> Any:
    return podium.scan_log(path, engine="duckdb", state="state", **options)


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(PodiumError) as caught:
        call()
    assert "\n\nHint: " in str(caught.value)
    return caught.value.message


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "duckdb"])
def test_a_name_that_exists_is_that_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for other in OTHERS:
        write(few(1000.0), Path(f"{other}.{kind}"), kind)
    write(few(7.0), Path("given"), kind)
    for i, name in enumerate(NAMES if kind == "parquet" else NAMES[:: 1 + len(NAMES) // 10]):
        path = Path(f"{name}.{kind}")
        Path("given").rename(path)
        log = scan((path, str(path), path.absolute())[i % 3])
        assert (len(log), log.survey.low) == (40, 7.0), name
        log.engine.close()
        path.rename("given")


def test_a_database_whose_name_duckdb_would_change(tmp_path: Path) -> None:
    (tmp_path / "back").mkdir()
    write(few(1000.0), tmp_path / "back" / "slash.duckdb", "duckdb")
    write(few(0.0), tmp_path / "given.duckdb", "duckdb")
    path = (tmp_path / "given.duckdb").rename(tmp_path / "back\\slash.duckdb")
    assert message(lambda: scan(path)).endswith("the name holds a backslash")


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_just_that_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for other in OTHERS:
        Path(other).mkdir()
        write(few(1000.0), Path(other, "log.parquet"), "parquet")
    Path(name).mkdir()
    write(few(0.0), Path(name, "log[1].parquet"), "parquet")
    write(few(40.0), Path(name, "log1.parquet"), "parquet")
    for given in (name, f"{name}/*.parquet"):
        if "\\" in name:  # DuckDB takes it for a separator where it stands before a pattern
            assert message(partial(scan, given)).startswith("DuckDB cannot open ")
            continue
        log = scan(given)
        assert (len(log), log.survey.low, log.survey.high) == (80, 0.0, 79.0)
        assert "k" not in log.columns
        log.engine.close()


def test_files_of_a_folder_keep_their_own_names(tmp_path: Path) -> None:
    write(few(0.0), tmp_path / "a?.parquet", "parquet")
    write(few(40.0), tmp_path / "ab.parquet", "parquet")
    assert len(scan(tmp_path)) == 80
    assert len(scan(str(tmp_path / "a*.parquet"))) == 80


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        path = tmp_path / os.fsdecode(f"\xff.{kind}".encode("latin-1"))
        write(few(0.0), path, kind)
        assert message(lambda: scan(path)).endswith("cannot be opened: the name is not UTF-8")  # noqa: B023
        assert len(podium.read_log(path, state="state")) == 40


def test_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "log.csv").symlink_to("/dev/zero")
    for engine in ("auto", "memory"):
        assert message(lambda: podium.scan_log(tmp_path / "log.csv", engine=engine)).endswith(  # noqa: B023
            "is a device, which may never end"
        )


def test_a_temporary_folder_of_an_odd_name(tmp_path: Path) -> None:
    write(few(0.0), tmp_path / "log.csv", "csv")
    (tmp_path / "it's [1]?").mkdir()
    (tmp_path / "it's 1x").mkdir()
    assert scan(tmp_path / "log.csv", temp_dir=str(tmp_path / "it's [1]?")).survey.low == 0.0


def test_a_path_through_a_link_leads_where_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "sub")
    write(few(5.0), tmp_path / "real" / "a.parquet", "parquet")
    write(few(1000.0), tmp_path / "a.parquet", "parquet")
    assert scan(str(tmp_path / "link" / ".." / "a.parquet")).survey.low == 5.0


def test_columns_that_duckdb_takes_for_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    for name in ("file_row_number", "File_Index"):
        write(few(0.0).append_column(name, pa.array(range(40))), path, "parquet")
        assert message(lambda: scan(path)) == f"log.parquet: DuckDB needs the name {name!r} for itself"
    write(few(0.0).append_column("State", pa.array(range(40))), path, "parquet")
    assert message(lambda: scan(path)) == "log.parquet: DuckDB cannot tell the columns 'state' and 'State' apart"
    write(few(0.0).append_column("state", pa.array(range(40))), path, "parquet")
    twice = "log.parquet: the column 'state' appears twice"
    assert message(lambda: scan(path)) == twice
    assert message(lambda: podium.read_log(path)) == twice


def test_a_folder_that_names_a_column_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "State=7").mkdir()
    write(few(0.0), tmp_path / "State=7" / "a.parquet", "parquet")
    assert message(lambda: scan(tmp_path)) == ("a.parquet has a column 'state', and its folder 'State=7' gives one too")
    assert len(scan(tmp_path / "State=7")) == 40


def test_values_of_folders_are_typed_as_cells(tmp_path: Path) -> None:
    for i, (day, code, share) in enumerate([("2024-01-01", "007", "0.5"), ("2024-01-02", "8", "2")]):
        folder = tmp_path / f"day={day}" / f"code={code}" / f"share={share}" / f"n={i}"
        folder.mkdir(parents=True)
        write(few(0.0), folder / "a.parquet", "parquet")
    log = podium.scan_log(tmp_path, engine="duckdb", state=["state", "day", "code", "share", "n"])
    kinds = {name: log.columns[name] for name in ("day", "code", "share", "n")}
    assert kinds == {"day": "text", "code": "text", "share": "number", "n": "whole"}
    assert log.engine.take(["code", "day"], np.array([0, 40]), "").to_pydict()["code"] == ["007", "8"]


# --- files that change -----------------------------------------------------------------------------------------------


def swap(rows: pa.Table, path: Path) -> None:
    parquet.write_table(rows, path.with_name("new"))
    path.with_name("new").replace(path)


@pytest.mark.parametrize("rows", [ROWS, ROWS - 1000, ROWS + 1000])
def test_a_file_that_is_replaced_between_passes(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(table(), path)
    log = scan(path)
    assert log.survey.low < 1000
    swap(table(rows, offset=1000.0), path)
    for ask in (lambda: podium.compare(log), lambda: log.head([]), lambda: log.census):
        assert message(ask) == "log.parquet changed while it was read"


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(table(), path)
    log = scan(path)

    def rule(states: Any) -> Any:
        swap(table(offset=1000.0), path)
        return np.full(len(states), "call")

    assert message(lambda: podium.compare(log, {"rule": rule, "u": "uniform"})) == (
        "log.parquet changed while it was read"
    )


@pytest.mark.parametrize("more", [-1000, 1000])
def test_every_pass_counts_its_rows(more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file system tells nothing of changes."""
    monkeypatch.setattr("podium.data.paths.fingerprint", lambda file: (0, 0, 0))
    path = tmp_path / "log.parquet"
    parquet.write_table(table(), path)
    log = scan(path)
    swap(table(ROWS + more), path)
    everything = np.arange(ROWS)
    passes: list[Callable[[], Any]] = [
        lambda: log.survey,
        lambda: log.engine.census(log.keys),
        lambda: log.engine.fold(["reward"], tuple, "", log.keys),
    ]
    if more < 0:
        passes += [lambda: log.engine.take(["reward"], everything, ""), lambda: log.engine.head(["reward"], ROWS)]
    for ask in passes:
        assert message(ask) == "log.parquet changed while it was read"


def test_a_text_file_is_read_once(tmp_path: Path) -> None:
    """Its rows are those of the moment when it was opened."""
    path = tmp_path / "log.csv"
    csv.write_csv(table(), path)
    log = scan(path)
    csv.write_csv(table(100, offset=1000.0), path)
    assert (len(log), log.survey.high < 1000) == (ROWS, True)


def test_a_text_file_that_changes_while_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    csv.write_csv(few(0.0), path)

    def check(file: str, text: Any, columns: Any) -> None:
        csv.write_csv(few(1.0), path)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr("podium.engines.sources.check_text", check)
    assert message(lambda: scan(path)) == "log.csv changed while it was read"


# --- databases -------------------------------------------------------------------------------------------------------


def database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", few(3.0))
        for statement in statements:
            connection.execute(statement)
    return path


def test_a_view_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("state,action,reward,pi_p0\n1,a,2,1\n")
    view = f"CREATE VIEW log AS FROM read_csv('{tmp_path / 'secret.csv'}')"
    path = database(tmp_path / "log.duckdb", view)
    assert message(lambda: scan(path)) == "log.duckdb has no tables"
    assert message(lambda: scan(path, table="log")) == "log.duckdb has no table 'log'"


def test_a_table_in_another_schema(tmp_path: Path) -> None:
    path = database(tmp_path / "log.duckdb", 'CREATE SCHEMA "my x"', 'CREATE TABLE "my x".log AS FROM given')
    assert scan(path).survey.low == 3.0


def test_a_column_called_rowid(tmp_path: Path) -> None:
    path = database(tmp_path / "log.duckdb", "CREATE TABLE log AS SELECT *, 7 AS rowid FROM given")
    log = scan(path)
    assert log.engine.head(["reward"], 3).to_pydict()["podium row"] == [0, 1, 2]
    assert log.columns["rowid"] == "whole"


def test_a_generated_column_is_computed_once(tmp_path: Path) -> None:
    make = "CREATE TABLE log (state INT, action VARCHAR, reward DOUBLE, half DOUBLE GENERATED ALWAYS AS (reward / 2))"
    path = database(tmp_path / "log.duckdb", make, "INSERT INTO log SELECT state, action, reward FROM given")
    log = scan(path)
    assert log.engine.head(["half"], 1).to_pydict()["half"] == [1.5]
    assert (log.engine.folder / "rows.parquet").exists()


def test_files_that_are_no_duckdb_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "it's.db") as connection:
        connection.execute("CREATE TABLE log (state, action, reward)")
    connection.close()
    with pytest.raises(PodiumError) as caught:
        podium.scan_log(tmp_path / "it's.db")
    assert caught.value.message == "it's.db is an SQLite database, which podium does not read"
    assert "sqlite3 -header -csv " in caught.value.hint
    (tmp_path / "x.db").write_text("state,action,reward\n")
    assert message(lambda: podium.scan_log(tmp_path / "x.db")) == "x.db is not a DuckDB database"
    assert message(lambda: scan(tmp_path, table="log")).endswith("this engine reads files more than once")


def test_a_connection_reads_nothing_beside_its_log(tmp_path: Path) -> None:
    write(few(0.0), tmp_path / "log.parquet", "parquet")
    write(few(0.0), tmp_path / "other.parquet", "parquet")
    log = scan(tmp_path / "log.parquet")
    for statement in (
        f"FROM '{tmp_path}/other.parquet'",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        f"ATTACH '{tmp_path}/new.duckdb' AS other",
        "INSTALL sqlite",
        "LOAD sqlite",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            log.engine.connection.execute(statement)


ALONE = """
import socket, sys
from pathlib import Path

def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")

socket.socket.connect = refuse
sys.addaudithook(lambda event, arguments: refuse() if event in ("socket.connect", "socket.getaddrinfo") else None)
import podium
from podium.command.cli import main
folder = Path(sys.argv[1])
for name in ("s.db", "https://127.0.0.1:9/log.parquet", "s3://bucket/log.parquet", "hf://x/y/*.parquet"):
    assert main(["compare", str(folder / name) if "/" not in name else name]) == 2
for name in ("log.parquet", "log.csv", "log.jsonl"):
    assert main(["compare", str(folder / name), "--engine", "duckdb", "--state", "state", "--policy", "p=column:pi_p0",
                 "--policy", "q=sql:CASE WHEN state > 3 THEN 'call' ELSE 'sms' END"]) == 0
"""


def test_nothing_is_sent_and_nothing_is_left_at_home(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    data.mkdir()
    sqlite3.connect(data / "s.db").execute("CREATE TABLE log (state, action, reward)").connection.close()
    for kind in ("parquet", "csv", "jsonl"):
        write(few(0.0), data / f"log.{kind}", kind)
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    before = sorted(p.name for p in data.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(data)], env=environment, cwd=data, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "s.db is an SQLite database" in done.stderr
    assert done.stderr.count("is an address, and podium reads only files of this machine") == 3
    assert "Traceback" not in done.stderr
    assert (list(home.iterdir()), sorted(p.name for p in data.iterdir())) == ([], before)
