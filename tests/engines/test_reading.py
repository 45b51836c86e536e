"""What the DuckDB engine reads, and what it says of files, rows and disks that are not in order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from logs import ROWS, assert_alike, table, write_parts
from pyarrow import csv, parquet

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.data.read import read_csv_header
from podium.engines.choosing import choose_engine

TWO = ["p0", "p1"]


def small(rows: int = 40) -> pa.Table:
    return table(rows)


def scan(path: Any, **options: Any) -> Any:
    return podium.scan_log(path, engine="duckdb", state="state", **options)


# --- sources ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [40, ROWS])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "hive", "database", "relation"])
def test_every_source_gives_the_same_answer(kind: str, rows: int, tmp_path: Path) -> None:
    given = table(rows).drop_columns(["time"])
    source: Any = tmp_path / f"log.{kind}"
    options: dict[str, Any] = {}
    if kind in ("csv", "tsv"):
        csv.write_csv(given, source, csv.WriteOptions(delimiter="," if kind == "csv" else "\t"))
    elif kind == "jsonl":
        source.write_text("\n".join(map(json.dumps, given.to_pylist())))
    elif kind == "hive":
        source = tmp_path / "hive"
        half = rows // 2
        for i, part in enumerate((given.slice(0, half), given.slice(half))):
            folder = source / f"month={i + 1}"
            folder.mkdir(parents=True)
            parquet.write_table(part, folder / "part.parquet")
    elif kind == "database":
        source = tmp_path / "log.duckdb"
        with duckdb.connect(str(source)) as connection:
            connection.register("given", given)
            connection.execute("CREATE TABLE log AS SELECT * FROM given; CREATE TABLE other AS SELECT 1 AS x")
        options["table"] = "log"
    else:
        source = duckdb.from_arrow(given)
    wanted = podium.compare(podium.Log.from_frame(given, state="state"), TWO)
    found = podium.compare(scan(source, **options), TWO)
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


def test_a_hive_partition_can_be_a_state(tmp_path: Path) -> None:
    rows = small()
    for region in ("north", "south"):
        (tmp_path / f"region={region}").mkdir()
        parquet.write_table(rows, tmp_path / f"region={region}" / "a.parquet")
    result = podium.compare(podium.scan_log(tmp_path, engine="duckdb", state=["region", "state"]), TWO)
    single = podium.compare(podium.Log.from_frame(rows, state="state"), TWO)
    assert result.log.to_dict()["states"] == 2 * single.log.to_dict()["states"]


@pytest.mark.parametrize("rows", [40, ROWS])
def test_categories_of_a_database_are_texts(rows: int, tmp_path: Path) -> None:
    given = table(rows).drop_columns(["time"])
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", given)
        connection.execute("CREATE TYPE kind AS ENUM ('sms', 'none', 'mail', 'call', 'never')")
        connection.execute("CREATE TABLE log AS SELECT * REPLACE (action::kind AS action) FROM given")
    wanted = podium.compare(podium.Log.from_frame(given, state="state"), TWO)
    assert_alike(podium.compare(scan(path), TWO).to_dict(), wanted.to_dict(), 1.0)


def test_csv_is_typed_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("code,age,action,reward,pi_a,pi_b\n" + "".join(
        f"{i % 30:03},{i % 7},{i % 2},{i % 5}.5,0.{i % 9},0.5\n" for i in range(60)))  # fmt: skip
    wanted = podium.compare(podium.read_log(path))
    found = podium.compare(podium.scan_log(path, engine="duckdb"))
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
    assert found.log.state_columns["code"][7] == "007"


def test_nested_json_becomes_columns_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(
        json.dumps({"s": [i % 3, i % 2], "action": "xy"[i % 2], "reward": i % 5, "pi_a": {"x": 0.25, "y": 0.75},
                    "pi_b": {"x": 0.5, "y": 0.5}}) for i in range(50)))  # fmt: skip
    wanted = podium.compare(podium.read_log(path))
    found = podium.compare(podium.scan_log(path, engine="duckdb"))
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


@pytest.mark.parametrize(
    "pair",
    [
        ("2024-1-1", "2024-01-01"),
        ("2024-01-01 10:00:00", "2024-01-01T10:00:00"),
        ("2024-01-01T10:00:00+02:00", "2024-01-01T08:00:00Z"),
        ("10:00", "10:00:00"),
        ("6F1C2D0E-7A37-4F5C-9D0B-1F2E3D4C5B6A", "6f1c2d0e-7a37-4f5c-9d0b-1f2e3d4c5b6a"),
    ],
)
def test_texts_of_json_stay_as_they_are_written(pair: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"s": text, "in": {"DATE": text}, "action": "a", "reward": 1} for text in pair]
    path.write_text("\n".join(map(json.dumps, rows)))
    wanted = podium.read_log(path)
    found = podium.scan_log(path, engine="duckdb").collect()  # type: ignore[union-attr]
    assert found.state_columns["s"].tolist() == wanted.state_columns["s"].tolist() == list(pair)
    assert found.state_columns["in:DATE"].tolist() == list(pair)


def test_auto_takes_memory_for_one_small_file_and_duckdb_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(small(), tmp_path / "a.parquet")
    path = str(tmp_path / "a.parquet")
    assert choose_engine(path, "auto") == "memory"
    assert choose_engine(str(tmp_path / "*.parquet"), "auto") == "duckdb"
    assert choose_engine(tmp_path, "auto") == "duckdb"
    assert choose_engine(path, "spark") == "spark"
    monkeypatch.setattr("podium.engines.fits.HELD", 100)
    assert choose_engine(path, "auto") == "duckdb"


def test_the_command_says_which_engine_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = write_parts(table(), tmp_path / "log", 3)
    options = ["--state", "state", "--memory-limit", "300MB", "--temp-dir", str(tmp_path), "--threads", "1"]
    assert main(["compare", pattern, *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["engine"] == "duckdb"
    assert answer["log"]["rows"] == ROWS
    assert main(["check", pattern, *options]) == 0
    assert "24,000" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


# --- faults ----------------------------------------------------------------------------------------------------------


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(PodiumError) as caught:
        call()
    assert "\n\nHint: " in str(caught.value)
    return caught.value.message


LINES = ["age,city,action,reward", "30,oslo,a,1", "30,rome,b,0", "40,oslo,a,0.5", "50,rome,b,0"]
BROKEN = {
    "a quote that is never closed": [(2, '30,"rome,b,0')],
    "a quote after the last cell": [(2, '30,rome,b,0,"')],
    "a quote in the last row": [(4, '50,rome,b,"0')],
    "a quote in the header": [(0, 'age,"city,action,reward')],
    "a zero byte": [(2, "30,ro\0me,b,0")],
    "a zero byte in the header": [(0, "age,ci\0ty,action,reward")],
    "a byte that no encoding has": [(2, "30,r\udc81me,b,0")],
    "a byte that no encoding has in the header": [(0, "age,c\udc81ty,action,reward")],
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_text_files_are_refused_as_in_memory(case: str, tmp_path: Path) -> None:
    """DuckDB would leave out the rows after an open quote, and take other names for such headers."""
    lines = list(LINES)
    for row, text in BROKEN[case]:
        lines[row] = text
    path = tmp_path / "log.csv"
    path.write_bytes("\n".join(lines).encode("utf-8", errors="surrogateescape"))
    wanted = message(lambda: podium.read_log(path))
    assert message(lambda: podium.scan_log(path, engine="duckdb")) == wanted


def test_a_quote_inside_a_cell_without_quotes_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(LINES).replace("30,rome", '30,ro"me'))
    log = podium.scan_log(path, engine="duckdb").collect()  # type: ignore[union-attr]
    assert log.state_columns["city"].tolist() == ["oslo", 'ro"me', "oslo", "rome"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_zero_byte_in_a_name_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{kind}"
    row = {"a\0b": 1, "action": "x", "reward": 1.0}
    if kind == "jsonl":
        path.write_text(json.dumps(row))
    else:
        parquet.write_table(pa.Table.from_pylist([row]), path)
    wanted = "the name of the column 'a\\x00b' holds a zero byte"
    assert message(lambda: podium.scan_log(path, engine="duckdb")) == wanted


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_without_rows_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        path.write_text(LINES[0])
    else:
        parquet.write_table(small().slice(0, 0), path)
    assert message(lambda: podium.compare(podium.scan_log(path, engine="duckdb"), TWO)) == "the log has no rows"


BAD = {
    "reward": [("reward", 7, np.nan), ("reward", ROWS - 2, np.nan)],
    "a reward that is too large": [("reward", 9, 1e200)],
    "propensity": [("propensity", 3, 0.0), ("propensity", 12_000, -1.0)],
    "action": [("action", 5, None), ("action", 20_500, "")],
    "time": [("time", 11, None)],
    "policy": [("pi_p1", 13, 1.5), ("pi_p1", 23_000, -0.5)],
    "a gap in a policy": [("pi_p0", 19_999, None)],
    "the first rule counts": [("action", 1, None), ("action", 20_000, None)],
}


@pytest.mark.parametrize("rows", [ROWS, 300])
@pytest.mark.parametrize("what", BAD)
def test_bad_rows_are_told_as_in_memory(what: str, rows: int, tmp_path: Path) -> None:
    columns = {name: column.to_pylist() for name, column in zip(table(rows).column_names, table(rows), strict=True)}
    for name, row, value in BAD[what]:
        columns[name][row % rows] = value
    given = pa.table(columns)
    pattern = write_parts(given, tmp_path / "log", 3)
    parquet.write_table(given, tmp_path / "whole.parquet")
    wanted = message(lambda: podium.compare(podium.read_log(tmp_path / "whole.parquet", state="state"), TWO))
    assert message(lambda: podium.compare(scan(pattern), TWO)) == wanted


def test_a_truncated_file(tmp_path: Path) -> None:
    pattern = write_parts(small(), tmp_path / "log", 2)
    broken = tmp_path / "log" / "part-002.parquet"
    broken.write_bytes(broken.read_bytes()[:-20])
    assert message(lambda: scan(pattern)).startswith("part-002.parquet is not a whole Parquet file: ")


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.jsonl"])
def test_a_file_that_may_not_be_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).touch()

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    for engine in ("memory", "duckdb"):
        with pytest.raises(PodiumError) as caught:
            podium.scan_log(tmp_path / name, engine=engine)
        assert str(caught.value) == f"{name} cannot be read: Permission denied\n\nHint: check who may read it."


def test_a_file_whose_rows_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = write_parts(table(), tmp_path / "log", 2)
    broken = tmp_path / "log" / "part-002.parquet"
    content = bytearray(broken.read_bytes())
    content[4:4000] = bytes(3996)
    broken.write_bytes(bytes(content))
    report = tmp_path / "report.html"
    assert main(["compare", pattern, "--state", "state", "--html", str(report)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "cannot be read" in shown.err
    assert "Hint: check the files" in shown.err
    assert not report.exists()


def test_a_file_that_disappears(tmp_path: Path) -> None:
    log = scan(write_parts(table(), tmp_path / "log", 2))
    assert sum(log.survey.actions.values()) == ROWS
    (tmp_path / "log" / "part-002.parquet").unlink()
    assert message(lambda: podium.compare(log)) == "part-002.parquet disappeared while it was read"


def test_a_column_that_one_file_lacks(tmp_path: Path) -> None:
    parquet.write_table(small(), tmp_path / "a.parquet")
    parquet.write_table(small().drop_columns(["pi_p1"]), tmp_path / "b.parquet")
    assert message(lambda: scan(tmp_path)) == "b.parquet has no column 'pi_p1'; a.parquet has"


def test_a_column_that_the_first_file_lacks(tmp_path: Path) -> None:
    parquet.write_table(small().drop_columns(["pi_p1"]), tmp_path / "a.parquet")
    parquet.write_table(small(), tmp_path / "b.parquet")
    assert message(lambda: scan(tmp_path)) == "a.parquet has no column 'pi_p1'; b.parquet has"


def test_a_column_of_two_types(tmp_path: Path) -> None:
    parquet.write_table(small(), tmp_path / "a.parquet")
    changed = small().set_column(0, "state", pa.array([str(i) for i in range(40)]))
    parquet.write_table(changed, tmp_path / "b.parquet")
    assert message(lambda: scan(tmp_path)) == "the column 'state' is string in b.parquet and int64 in a.parquet"


def test_headers_that_differ(tmp_path: Path) -> None:
    csv.write_csv(small(), tmp_path / "a.csv")
    csv.write_csv(small().drop_columns(["pi_p1"]), tmp_path / "b.csv")
    assert message(lambda: scan(str(tmp_path / "*.csv"))) == (
        "b.csv and a.csv have different headers: the column 'pi_p1' is in one and not in the other"
    )


def test_a_full_disk(tmp_path: Path) -> None:
    """No file may grow beyond 8 MB, which stops DuckDB in the temporary folder as a full disk would."""
    pattern = write_parts(table(1_500_000), tmp_path / "log", 1)
    (tmp_path / "spill").mkdir()
    command = ["compare", pattern, "--state", "state", "--engine", "duckdb", "--memory-limit", "60MB", "--threads", "1"]
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (8_000_000, 8_000_000)); "
        "from podium.command.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "--temp-dir", str(tmp_path / "spill")], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "podium: the temporary folder is full: " in done.stderr
    assert "Hint: make room in " in done.stderr
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_limit_on_the_disk(tmp_path: Path) -> None:
    """Whoever runs into it, nothing stays behind."""
    (tmp_path / "spill").mkdir()
    pattern = write_parts(table(1_500_000), tmp_path / "log", 1)
    options = {"memory_limit": "30MB", "threads": 1, "disk_limit": "10MB"}
    log = scan(pattern, temp_dir=str(tmp_path / "spill"), **options)
    with pytest.raises(PodiumError) as caught:
        podium.compare(log, TWO)
    assert str(caught.value) == (
        "reading the log takes more than the 10MB that podium may write to the temporary folder\n\n"
        "Hint: raise disk_limit=, or leave it out."
    )
    log.engine.close()
    assert list((tmp_path / "spill").iterdir()) == []


STOPPED = """
import _thread, sys, threading, time
from pathlib import Path
import podium

pattern, spill = sys.argv[1:]
log = podium.scan_log(pattern, engine="duckdb", state="state", temp_dir=spill, memory_limit="30MB", threads=1)

def stop():
    while not any(p.is_file() and p.stat().st_size for p in Path(spill).rglob("*")):
        time.sleep(0.005)
    print("writes", flush=True)
    _thread.interrupt_main()

threading.Thread(target=stop, daemon=True).start()
try:
    podium.compare(log)
except KeyboardInterrupt:
    print("stopped", [str(p) for p in Path(spill).rglob("*")])
"""


def test_ctrl_c_while_duckdb_writes_to_the_disk(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    pattern = write_parts(table(1_500_000), tmp_path / "log", 1)
    command = [sys.executable, "-c", STOPPED, pattern, str(tmp_path / "spill")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert done.stdout == "writes\nstopped []\n"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert message(lambda: scan(str(tmp_path / "*.parquet"))).startswith("no file matches ")
    assert message(lambda: scan(tmp_path / "x.parquet")).startswith("there is no file ")
    assert message(lambda: scan(tmp_path)).endswith("holds no Parquet files")


def test_settings_that_duckdb_does_not_know(tmp_path: Path) -> None:
    pattern = write_parts(small(), tmp_path / "log", 1)
    assert message(lambda: scan(pattern, memory_limit="lots")).startswith("DuckDB does not accept the settings")
    assert message(lambda: scan(pattern, temp_dir=str(tmp_path / "no"))).startswith("there is no folder ")


@pytest.mark.parametrize("threads", [0, -1, 10**9, 2.5, "2", True])
def test_a_number_of_threads_that_no_machine_has(threads: Any, tmp_path: Path) -> None:
    """DuckDB would start a billion of them."""
    pattern = write_parts(small(), tmp_path / "log", 1)
    assert message(lambda: scan(pattern, threads=threads)).startswith("threads must be a whole number from 1 to 1,024;")


TEXTS = {
    "e.csv": (b"", "e.csv is empty"),
    "blank.csv": (b"\n  \n", "blank.csv is empty"),
    "blank.jsonl": (b"\n\n", "blank.jsonl is empty"),
    "gzip.csv": (b"\x1f\x8b\x08abc", "gzip.csv is not a text file"),
    "zip.jsonl": (b"PK\x03\x04abc", "zip.jsonl is not a text file"),
    "wide.csv": ("a,b\n1,2\n".encode("utf-16"), "wide.csv is UTF-16, not UTF-8"),
    "latin.csv": (b"state,action,reward\n\xe9,a,1\n", "latin.csv is not UTF-8: row 1 holds the byte 0xe9"),
    "quote.csv": (b'state,action,reward\n"x,a,1\n', "quote.csv: row 1 cannot be read: unexpected end of data"),
    "short.csv": (b"state,action,reward\nx,a\n", "short.csv: line 2 does not have as many cells as the header"),
    "header.csv": (b"state,action,reward\n", "the log has no rows"),
    "case.jsonl": (
        b'{"s": 1, "S": 2, "action": 1, "reward": 1}',
        "case.jsonl: DuckDB cannot tell the columns 's' and 'S' apart",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_files_that_are_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content, said = TEXTS[name]
    Path(name).write_bytes(content)
    assert message(lambda: podium.compare(podium.scan_log(name, engine="duckdb"))) == said


@pytest.mark.parametrize("rest", ["", "\n", "\n" + "1,a,2\n" * 9])
def test_a_quote_that_is_not_closed_loses_no_rows(rest: str, tmp_path: Path) -> None:
    """DuckDB leaves out all rows after it without a word."""
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward\n" + "1,a,2\n" * 5 + '2,b,"3' + rest)
    wanted = message(lambda: podium.read_log(path))
    assert wanted == "log.csv: row 6 cannot be read: unexpected end of data"
    assert message(lambda: podium.scan_log(path, engine="duckdb")) == wanted


def test_a_header_of_many_columns_is_read_whole(tmp_path: Path) -> None:
    names = [f"{'long' * 20}{i}" for i in range(1000)]
    path = tmp_path / "log.csv"
    path.write_text(",".join([*names, "action", "reward"]) + "\n" + ",".join(["1"] * 1000 + ["a", "1"]) + "\n")
    assert read_csv_header(path)[-1] == "reward"


def test_what_must_see_all_rows_is_refused_with_the_reason(tmp_path: Path) -> None:
    log = scan(write_parts(table(), tmp_path / "log", 2))
    assert message(lambda: podium.compare(log, normalize="states")).startswith(
        'normalize="states" is for logs in memory'
    )


def test_propensities_are_not_estimated_in_passes(tmp_path: Path) -> None:
    without = table().drop_columns(["propensity"])
    log = scan(write_parts(without, tmp_path / "log", 2))
    for ask in (podium.compare, podium.evaluate, podium.diagnose):
        with pytest.raises(PodiumError) as caught:
            ask(log, TWO, behavior="estimate")
        assert str(caught.value) == (
            "propensities are estimated from all rows at once, and this log is read in passes\n\n"
            "Hint: use engine='memory', write estimated propensities as a column, or leave `behavior` out: "
            "LDE and DiM need none."
        )
    few = scan(write_parts(without.slice(0, 400), tmp_path / "few", 2))
    assert podium.compare(few, TWO, behavior="estimate").log.knows == "estimated"


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    log = scan(write_parts(table(), tmp_path / "log", 2), temp_dir=str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2

    def stop(states: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        podium.compare(log, {"stop": stop, "u": "uniform"})
    del log
    import gc

    gc.collect()
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


# --- progress --------------------------------------------------------------------------------------------------------


def test_every_pass_tells_how_far_it_is(tmp_path: Path) -> None:
    parquet.write_table(table(ROWS), tmp_path / "log.parquet")
    told: dict[str, int] = {}

    @contextmanager
    def keep(label: str, total: int) -> Iterator[Callable[[int], None]]:
        assert total == ROWS
        told.setdefault(label, 0)

        def advance(rows: int) -> None:
            told[label] += rows

        yield advance

    podium.compare(scan(tmp_path / "log.parquet", progress=keep), TWO)
    assert {"first look", "latest rows", "the sample", "all rows"} <= set(told)
    assert all(rows > 0 and rows % ROWS == 0 for rows in told.values()), told


def test_whole_numbers_beyond_64_bits_are_refused_or_read_as_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = "".join(f"{2**63 + i % 3},{'ab'[i % 2]},{i % 5}\n" for i in range(30))
    path.write_text("id,action,reward\n" + rows)
    assert podium.read_log(path).n_states == 3
    with pytest.raises(PodiumError, match=r"the column 'id' holds whole numbers of more than 64 bits \(30 rows\)"):
        podium.scan_log(path, engine="duckdb")
    assert podium.scan_log(path, engine="duckdb", text=["id"]).collect().n_states == 3


def test_large_ids_beside_a_fraction_are_refused_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = "".join(f"{0.5 if i == 7 else 2**53 + i % 2},{'ab'[i % 2]},{i % 5}\n" for i in range(30))
    path.write_text("id,action,reward\n" + rows)
    with pytest.raises(PodiumError, match="floats can tell apart"):
        podium.read_log(path)
    with pytest.raises(PodiumError, match=r"whole numbers that floats cannot tell apart \(29 rows\)"):
        podium.scan_log(path, engine="duckdb")


@pytest.mark.parametrize("cell", ["\x1c0.5", "０.5", "٠.٥"])
@pytest.mark.parametrize("column", ["reward", "propensity"])
def test_numbers_that_only_python_reads_are_never_dropped(column: str, cell: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = [{"reward": "0.5", "propensity": "0.5"} for _ in range(300)]
    cells[277][column] = cell
    rows = "".join(f"{i % 3},{'ab'[i // 2 % 2]},{c['reward']},{c['propensity']}\n" for i, c in enumerate(cells))
    path.write_text("x,action,reward,propensity\n" + rows, encoding="utf-8")
    log = podium.scan_log(path, engine="duckdb")
    with pytest.raises(PodiumError, match=f"'{column}'"):
        podium.compare(log, {"u": "uniform", "a": "constant:a"}, sample_rows=100)
