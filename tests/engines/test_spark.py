"""Spark for real: a master and two workers on loopback, faults, and a worker that dies at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster
from logs import ROWS, assert_alike, table, write_parts
from pyarrow import csv, parquet

import podium
from podium.data.errors import PodiumError
from podium.engines import ROW

pytestmark = pytest.mark.system


def test_a_worker_that_dies_changes_nothing(cluster: Cluster, spark: Any, tmp_path: Path) -> None:
    rows = table().drop_columns(["pi_p0", "pi_p1", "pi_p2", "pi_p3", "pi_twin"])
    path = write_parts(rows, tmp_path / "log", 8)
    doomed, driver = tmp_path / "doomed", os.getpid()

    def rule(states: Any) -> Any:
        return np.where(np.asarray(states) % 3 == 0, "call", "none")

    def watched(states: Any) -> Any:
        """The rule. Every task waits for one on worker-0, which says that it is there and waits for its end."""
        end = time.monotonic() + 120
        if os.getpid() != driver:
            on_worker = "worker-0" in os.getcwd()
            if on_worker:
                doomed.touch()
            while on_worker or not doomed.exists():
                if time.monotonic() > end:
                    raise TimeoutError("no task on worker-0 was killed")
                time.sleep(0.02)
        return rule(states)

    wanted = podium.compare(podium.Log.from_frame(rows, state="state"), {"rule": rule, "sms": "constant:sms"})
    log = podium.scan_log(path, engine="spark", session=spark, state="state", partitions=8)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(podium.compare, log, {"rule": watched, "sms": "constant:sms"})
        while not doomed.exists():
            assert not asked.done(), asked.result()
            time.sleep(0.02)
        cluster.kill("worker-0")
        found = asked.result(timeout=300)
    cluster.add_worker("worker-2")
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


def test_a_data_frame_is_a_log(spark: Any) -> None:
    rows = table()
    frame = spark.createDataFrame(rows.to_pandas())
    wanted = podium.compare(podium.Log.from_frame(rows, state="state"))
    log = podium.scan_log(frame, state="state")
    assert log.engine.name == "spark"
    assert_alike(podium.compare(log).to_dict(), wanted.to_dict(), 1.0)
    log.engine.close()


def test_a_shuffled_data_frame_keeps_its_row_numbers(spark: Any) -> None:
    frame = spark.createDataFrame(table().to_pandas()).repartition(5, "action").repartition(3)
    log = podium.scan_log(frame, state="state")
    numbers = [row[0] for row in log.engine.frame.select(f"`{ROW}`").collect()]
    assert sorted(numbers) == list(range(ROWS))
    assert podium.compare(log).to_dict() == podium.compare(log).to_dict()


def test_files_are_numbered_by_their_names(spark: Any, tmp_path: Path) -> None:
    rows = table()
    for i, size in enumerate((5000, 100, 18_900)):  # Spark reads the largest file first
        start = (0, 5000, 5100)[i]
        parquet.write_table(rows.slice(start, size), tmp_path / f"{i}.parquet")
    log = podium.scan_log(str(tmp_path / "*.parquet"), engine="spark", session=spark, state="state")
    head = log.engine.head(["reward"], ROWS)
    assert head.column(ROW).to_pylist() == list(range(ROWS))
    assert head.column("reward").to_pylist() == rows["reward"].to_pylist()


def test_text_files_are_typed_as_in_memory(spark: Any, tmp_path: Path) -> None:
    rows = table(
        code=np.array([f"{i % 9:03}" for i in range(ROWS)]), name=np.array(["a, b", 'say "x"'])[np.arange(ROWS) % 2]
    )
    for i in range(2):
        csv.write_csv(rows.slice(i * 12_000, 12_000), tmp_path / f"part-{i}.csv")
    csv.write_csv(rows, tmp_path / "whole-log.txt.csv")
    states = ["state", "code", "name"]
    wanted = podium.compare(podium.read_log(tmp_path / "whole-log.txt.csv", state=states))
    log = podium.scan_log(str(tmp_path / "part-*.csv"), engine="spark", session=spark, state=states)
    assert log.engine.headers()["code"] == "text"
    assert_alike(podium.compare(log).to_dict(), wanted.to_dict(), 1.0)


@pytest.mark.parametrize("rows", [300, ROWS])
def test_json_lines_are_read_as_in_memory(rows: int, spark: Any, tmp_path: Path) -> None:
    given = table(rows).drop_columns(["pi_p2", "pi_p3", "pi_twin"]).to_pylist()
    lines = [
        json.dumps(
            {
                "where": {"region": f"r{row['state'] % 3}"},
                "state": [row["state"] % 7, row["state"] % 5 + 0.5],
                **{name: value for name, value in row.items() if name != "state"},
                **({"comment": None} if i % 2 else {}),
            }
        )
        for i, row in enumerate(given)
    ]
    third = rows // 3
    for i, part in enumerate((lines[:third], lines[third:])):  # the second file is the larger one
        (tmp_path / f"part-{i}.jsonl").write_text("\n\n".join(part) + "\n", encoding="utf-8")
    (tmp_path / "whole.jsonl").write_text("\n".join(lines), encoding="utf-8")
    states = ["where:region", "state[0]", "state[1]"]
    wanted = podium.compare(podium.read_log(tmp_path / "whole.jsonl", state=states))
    log = podium.scan_log(str(tmp_path / "part-*.jsonl"), engine="spark", session=spark, state=states)
    assert list(log.columns)[:4] == ["where:region", "state[0]", "state[1]", "action"]
    assert_alike(podium.compare(log).to_dict(), wanted.to_dict(), 1.0)


def test_a_line_that_is_no_json(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"action": 1, "reward": 2, "s": 1}\n{"action": 1,', encoding="utf-8")
    with pytest.raises(PodiumError, match="a line is not valid JSON"):
        podium.scan_log(str(tmp_path / "log.jsonl"), engine="spark", session=spark)


def test_rows_at_fault_are_named_as_in_memory(spark: Any, tmp_path: Path) -> None:
    reward = np.asarray(table()["reward"]).copy()
    reward[[17_000, 20_001]] = np.nan
    rows = table(reward=reward)
    with pytest.raises(PodiumError) as wanted:
        podium.Log.from_frame(rows, state="state")
    log = podium.scan_log(write_parts(rows, tmp_path / "log", 3), engine="spark", session=spark, state="state")
    with pytest.raises(PodiumError) as found:
        podium.compare(log)
    assert str(found.value) == str(wanted.value)
    assert "row 17001" in str(found.value)


def test_a_policy_that_fails_on_a_worker_is_named(spark: Any, tmp_path: Path) -> None:
    log = podium.scan_log(write_parts(table(), tmp_path / "log", 3), engine="spark", session=spark, state="state")

    def broken(states: Any) -> Any:
        if len(states) and np.asarray(states).max() >= 4799:
            raise RuntimeError("the model has no answer")
        return np.full(len(states), "call")

    with pytest.raises(PodiumError, match="the model has no answer"):
        podium.compare(log, {"broken": broken, "sms": "constant:sms"})


def test_a_policy_that_cannot_be_sent_is_refused(spark: Any, tmp_path: Path) -> None:
    log = podium.scan_log(write_parts(table(), tmp_path / "log", 3), engine="spark", session=spark, state="state")
    lock = threading.Lock()

    def locked(states: Any) -> Any:
        with lock:
            return np.full(len(states), "call")

    with pytest.raises(PodiumError) as caught:
        podium.compare(log, {"locked": locked, "sms": "constant:sms"})
    assert str(caught.value) == (
        "policy 'locked' cannot be sent to Spark's workers: cannot pickle '_thread.lock' object\n\n"
        "Hint: open connections, locks and files inside it, not before; or write its answers as a column."
    )


def test_a_policy_too_large_to_send_is_refused(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.engines.workers.LARGEST_POLICY", 1000)
    log = podium.scan_log(write_parts(table(), tmp_path / "log", 3), engine="spark", session=spark, state="state")
    with pytest.raises(PodiumError, match="policy 'array' takes 0 MB, too much to send to every worker"):
        podium.compare(log, {"array": np.random.default_rng(0).random(ROWS), "sms": "constant:sms"})


def damage(kind: str, folder: Path) -> None:
    rows = table()
    write_parts(rows, folder, 3)
    last = folder / "part-004.parquet"
    if kind == "truncated":
        last.write_bytes(last.read_bytes()[:5000])
    elif kind == "another type":
        parquet.write_table(
            pa.table({**{n: rows[n] for n in rows.column_names}, "reward": pa.array(["x"] * ROWS)}), last
        )
    elif kind == "a column less":
        parquet.write_table(rows.drop_columns(["propensity"]), last)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "a file is not a whole Parquet file"),
        ("another type", "the files have different types for one column"),
        ("a column less", "column 'propensity' must"),
    ],
)
def test_damaged_files_are_refused(kind: str, message: str, spark: Any, tmp_path: Path) -> None:
    damage(kind, tmp_path)
    with pytest.raises(PodiumError, match=message):
        podium.compare(podium.scan_log(str(tmp_path / "*.parquet"), engine="spark", session=spark, state="state"))


def test_a_file_that_disappears_is_named(spark: Any, tmp_path: Path) -> None:
    log = podium.scan_log(write_parts(table(), tmp_path / "log", 3), engine="spark", session=spark, state="state")
    (tmp_path / "log" / "part-002.parquet").unlink()
    with pytest.raises(PodiumError, match=r"part-002\.parquet disappeared while it was read"):
        podium.compare(log)


def test_other_files_are_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "log.xlsx").touch()
    with pytest.raises(PodiumError, match=r"the spark engine does not read \.xlsx files"):
        podium.scan_log(str(tmp_path / "log.xlsx"), engine="spark", session=spark)
    with pytest.raises(PodiumError, match="is an address, and podium reads only files of this machine"):
        podium.scan_log("https://127.0.0.1:9/log.parquet", engine="spark", session=spark)
    with pytest.raises(PodiumError, match="there is no file "):
        podium.scan_log(str(tmp_path / "nowhere.parquet"), engine="spark", session=spark)
    with pytest.raises(PodiumError, match="Spark cannot read a log from dict"):
        podium.scan_log({}, engine="spark", session=spark)


# --- the files that were named ---------------------------------------------------------------------------------------

NAMES = [
    "a[1]",
    "a?",
    "*",
    "a{1,2}",
    "b}c",
    "space x",
    "hash#1",
    "percent%41",
    "back\\slash",
    "it's",
    "ü",
    "two\nlines",
]


def few(reward: float, rows: int = 40) -> pa.Table:
    return table(rows).drop_columns(["time"]).set_column(2, "reward", pa.array(np.arange(float(rows)) + reward))


def write(rows: pa.Table, path: Path) -> None:
    with path.open("wb") as file:
        if path.suffix == ".parquet":
            parquet.write_table(rows, file)
        elif path.suffix == ".csv":
            csv.write_csv(rows, file)
        else:
            file.write("\n".join(map(json.dumps, rows.to_pylist())).encode())


def scan(path: Any, spark: Any, **options: Any) -> Any:
    return podium.scan_log(path, engine="spark", session=spark, state="state", **options)


def values(log: Any) -> list[float]:
    return list(log.engine.head(["reward"], 1000).to_pydict()["reward"])


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_name_that_exists_is_that_file(kind: str, spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("a1", "ab", "a2", "hash"):
        write(few(1000.0), Path(f"{other}.{kind}"))
    write(few(7.0), Path(f"given.{kind}"))
    for name in NAMES if kind == "parquet" else NAMES[::3]:
        path = Path(f"given.{kind}").rename(f"{name}.{kind}")
        log = scan(path, spark)
        assert values(log) == list(np.arange(40.0) + 7), name
        log.engine.close()
        path.rename(f"given.{kind}")
    path = Path(f"given.{kind}").rename(f"a:b.{kind}")
    with pytest.raises(PodiumError, match="the name holds a colon"):
        scan(path, spark)


def test_a_folder_that_exists_is_that_folder(spark: Any, tmp_path: Path) -> None:
    for name, reward in (("runs[1]", 0.0), ("runs1", 1000.0)):
        (tmp_path / name).mkdir()
        for part, more in (("b 1", 0.0), ("b!", 40.0)):  # as addresses, they would be in another order
            write(few(reward + more), tmp_path / name / f"{part}.parquet")
        write(few(1000.0), tmp_path / name / "_unfinished.parquet")
    for given in (tmp_path / "runs[1]", str(tmp_path / "runs[1]" / "b*.parquet")):
        assert values(scan(given, spark)) == list(np.arange(80.0))


def test_folders_name_columns_as_on_duckdb(spark: Any, tmp_path: Path) -> None:
    for i, (country, code) in enumerate([("de", "007"), ("a b", "8")]):
        folder = tmp_path / f"country={country}" / f"code={code}" / f"n={i}"
        folder.mkdir(parents=True)
        write(few(40.0 * i), folder / "a.parquet")
    found = [
        podium.scan_log(tmp_path, engine=engine, state=["state", "country", "code", "n"], **options)
        for engine, options in (("duckdb", {}), ("spark", {"session": spark}))
    ]
    heads = [log.engine.head(["reward", "country", "code", "n"], 80).to_pydict() for log in found]
    assert heads[0] == heads[1]
    assert dict(found[0].columns) == dict(found[1].columns)
    assert (heads[0]["code"][0], heads[0]["code"][40]) == ("8", "007")


def test_a_folder_that_names_a_column_of_its_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "State=7").mkdir()
    write(few(0.0), tmp_path / "State=7" / "a.parquet")
    for options in ({"engine": "duckdb"}, {"engine": "spark", "session": spark}):
        with pytest.raises(PodiumError) as caught:
            podium.scan_log(tmp_path, **options)
        assert caught.value.message == "a.parquet has a column 'state', and its folder 'State=7' gives one too"
    assert len(scan(tmp_path / "State=7", spark)) == 40


def test_columns_that_spark_cannot_tell_apart(spark: Any, tmp_path: Path) -> None:
    twins = few(0.0).append_column("State", pa.array(range(40)))
    for kind in ("csv", "parquet"):
        write(twins, tmp_path / f"log.{kind}")
        with pytest.raises(PodiumError, match=r"cannot tell the columns|a column appears twice"):
            scan(tmp_path / f"log.{kind}", spark)


@pytest.mark.parametrize("rows", [ROWS, ROWS - 1000])
def test_a_file_that_is_replaced_between_passes(rows: int, spark: Any, tmp_path: Path) -> None:
    write(table(), tmp_path / "log.parquet")
    log = scan(tmp_path / "log.parquet", spark)
    write(table(rows, offset=1000.0), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(tmp_path / "log.parquet")
    with pytest.raises(PodiumError, match=r"log\.parquet changed while it was read"):
        podium.compare(log)


def test_every_pass_counts_its_rows(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """Also where the file system tells nothing of changes."""
    monkeypatch.setattr("podium.data.paths.fingerprint", lambda file: (0, 0, 0))
    write(table(), tmp_path / "log.parquet")
    log = scan(tmp_path / "log.parquet", spark)
    write(table(ROWS - 1000), tmp_path / "log.parquet")
    (tmp_path / ".log.parquet.crc").unlink(missing_ok=True)
    for ask in (
        lambda: log.engine.fold(["reward"], lambda batches: sum(b.num_rows for b in batches), ""),
        lambda: log.engine.census(log.keys),
        lambda: log.engine.take(["reward"], np.arange(ROWS), ""),
        lambda: log.engine.head(["reward"], ROWS),
    ):
        with pytest.raises(PodiumError, match=r"log\.parquet changed while it was read"):
            ask()


def test_without_workers_podium_says_so_and_waits(tmp_path: Path) -> None:
    """Until Ctrl-C, which ends it as it ends any command."""
    write(few(0.0), tmp_path / "log.parquet")
    with Cluster(tmp_path, workers=0) as empty:
        arguments = (
            f"--master {empty.url} --conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 "
            "--conf spark.driver.host=127.0.0.1 --conf spark.ui.showConsoleProgress=false pyspark-shell"
        )
        command = [sys.executable, "-m", "podium", "compare", str(tmp_path / "log.parquet"), "--engine", "spark"]
        environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": arguments}
        with (tmp_path / "said").open("wb") as said:
            asked = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
        try:
            end = time.monotonic() + 120
            while "Spark has run no task for 10 seconds" not in (tmp_path / "said").read_text():
                assert asked.poll() is None, (tmp_path / "said").read_text()
                assert time.monotonic() < end
                time.sleep(0.2)
            asked.send_signal(signal.SIGINT)
            assert asked.wait(60) == 130
        finally:
            if asked.poll() is None:
                os.killpg(asked.pid, signal.SIGKILL)
        said_so = (tmp_path / "said").read_text()
        assert "Traceback" not in said_so
        assert "FutureWarning" not in said_so
