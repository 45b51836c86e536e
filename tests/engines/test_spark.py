"""Spark for real: a master and two workers on loopback, faults, and a worker that dies at work."""

from __future__ import annotations

import json
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

    def slow(states: Any) -> Any:
        time.sleep(1.0)
        return np.where(np.asarray(states) % 3 == 0, "call", "none")

    def quick(states: Any) -> Any:
        return np.where(np.asarray(states) % 3 == 0, "call", "none")

    wanted = podium.compare(podium.Log.from_frame(rows, state="state"), {"rule": quick, "sms": "constant:sms"})
    log = podium.scan_log(path, engine="spark", session=spark, state="state", partitions=8)
    tracker = spark.sparkContext.statusTracker()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(podium.compare, log, {"rule": slow, "sms": "constant:sms"})
        while not at_work(tracker):
            assert not asked.done(), asked.result()
            time.sleep(0.02)
        cluster.kill("worker-0")
        found = asked.result(timeout=300)
    cluster.add_worker("worker-2")
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


def at_work(tracker: Any) -> bool:
    """Whether a stage of several tasks is half done."""
    stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
    return any(s is not None and s.numTasks > 3 and s.numCompletedTasks and s.numActiveTasks for s in stages)


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
    monkeypatch.setattr("podium.engines.spark.LARGEST_POLICY", 1000)
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
    with pytest.raises(PodiumError, match="a file disappeared while it was read"):
        podium.compare(log)


def test_other_files_are_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match=r"the spark engine does not read \.xlsx files"):
        podium.scan_log(str(tmp_path / "log.xlsx"), engine="spark", session=spark)
    with pytest.raises(PodiumError, match="there is no such file"):
        podium.scan_log(str(tmp_path / "nowhere.parquet"), engine="spark", session=spark)
    with pytest.raises(PodiumError, match="Spark cannot read a log from dict"):
        podium.scan_log({}, engine="spark", session=spark)
