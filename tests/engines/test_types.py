"""Columns of every type: memory and DuckDB give the same labels, hand functions the same values, or refuse alike."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import podium
from podium.data.errors import PodiumError
from podium.data.scan import ScannedLog
from podium.engines.spark_files import names_in

ROWS = 120
ROWS_RANGE = range(ROWS)
UTC = dt.UTC
DAY = dt.datetime(2020, 1, 1)


def hours(i: int) -> dt.datetime:
    return DAY + dt.timedelta(hours=i)


KINDS: dict[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "uint64 over 2^63": (lambda i: 2**63 + 1 + i, pa.uint64()),
    "small uint64": (lambda i: i, pa.uint64()),
    "int8": (lambda i: i, pa.int8()),
    "float32": (lambda i: i / 10, pa.float32()),
    "truth values": (lambda i: i == 1, pa.bool_()),
    "decimals": (lambda i: Decimal(i) / 10, pa.decimal128(10, 2)),
    "whole decimals": (lambda i: Decimal(10**17 + i), pa.decimal128(18, 0)),
    "decimals beyond int64": (lambda i: Decimal(10**30 + i), pa.decimal128(38, 0)),
    "dates": (lambda i: hours(24 * i).date(), pa.date32()),
    "date64": (lambda i: hours(24 * i).date(), pa.date64()),
    "seconds": (hours, pa.timestamp("s")),
    "milliseconds": (hours, pa.timestamp("ms")),
    "microseconds": (hours, pa.timestamp("us")),
    "nanoseconds": (lambda i: 10**18 + i, pa.timestamp("ns")),
    "time zone": (lambda i: hours(i).replace(tzinfo=UTC), pa.timestamp("ms", "Europe/Berlin")),
    "times of day": (lambda i: dt.time(1, i), pa.time64("us")),
    "bytes": (lambda i: b"k%d" % i, pa.binary()),
    "texts": (lambda i: f"k{i}", pa.string()),
}


def column(kind: str) -> pa.Array:
    make, of = KINDS[kind]
    return pa.array([make(i % 3) for i in ROWS_RANGE], type=of)


def written(path: Path, **columns: Any) -> Path:
    log = {
        "x": [i % 3 for i in ROWS_RANGE],
        "action": ["ab"[i * 7 // 3 % 2] for i in ROWS_RANGE],
        "reward": [i * 37 % 11 / 10 for i in ROWS_RANGE],
    }
    parquet.write_table(pa.table({**log, **columns}), path)
    return path


def both_paths(path: Path, **options: Any) -> tuple[podium.Log, list[podium.Log]]:
    """A file read into memory, and by DuckDB: collected, and in batches."""
    scanned = podium.scan_log(path, engine="duckdb", **options)
    assert isinstance(scanned, ScannedLog)
    wanted = podium.read_log(path, **options)
    in_batches = scanned.of_batch(scanned.head(scanned.columns), scanned.action_space)
    assert (scanned.n_states, scanned.distinct) == (wanted.n_states, wanted.distinct)
    return wanted, [scanned.collect(), in_batches]


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_every_type_are_those_of_memory(kind: str, tmp_path: Path) -> None:
    wanted, others = both_paths(written(tmp_path / "log.parquet", x=column(kind)))
    for log in others:
        assert log.states.dtype == wanted.states.dtype
        assert log.states.tolist() == wanted.states.tolist()
        assert log.state_columns["x"].tolist() == wanted.state_columns["x"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_actions_of_every_type_are_those_of_memory(kind: str, tmp_path: Path) -> None:
    wanted, others = both_paths(written(tmp_path / "log.parquet", action=column(kind)))
    for log in others:
        assert list(map(repr, log.action_space)) == list(map(repr, wanted.action_space))
        assert log.action_codes.tolist() == wanted.action_codes.tolist()


@pytest.mark.parametrize("kind", ["decimals", "whole decimals", "truth values", "float32"])
def test_rewards_of_every_type_are_those_of_memory(kind: str, tmp_path: Path) -> None:
    make, of = KINDS[kind]
    cells = {"truth values": lambda i: i % 2 == 1, "decimals": lambda i: Decimal(i * 7) / 100}
    many = [cells.get(kind, make)(i) for i in ROWS_RANGE]
    wanted, others = both_paths(written(tmp_path / "log.parquet", reward=pa.array(many, type=of)))
    for log in others:
        assert log.rewards.tolist() == wanted.rewards.tolist()


ODD = {
    "lists": pa.array([["x", "y"][: i % 3] for i in ROWS_RANGE]),
    "long lists": pa.array([[i % 3] * 9000 if i < 2 else [1] for i in ROWS_RANGE]),
    "maps": pa.array([[("k", i % 3)] for i in ROWS_RANGE], type=pa.map_(pa.string(), pa.int64())),
    "durations": pa.array([dt.timedelta(hours=i % 3) for i in ROWS_RANGE]),
    "decimals of 20 digits": pa.array([Decimal(10**17 + i % 3) for i in ROWS_RANGE], type=pa.decimal128(20, 2)),
    "decimals of 50 digits": pa.array([Decimal(i % 3) for i in ROWS_RANGE], type=pa.decimal256(50, 0)),
}


def only_refusal(path: Path) -> str:
    """What every engine says of a file that none of them reads, in one piece and in batches."""
    said = refusals(path)
    assert len(said) == 1
    return said.pop()


def refusals(path: Path) -> set[str]:
    """What the engines say of a file that none of them reads, in one piece and in batches."""
    said = set()
    for engine, rows in (("memory", 20_000), ("duckdb", 20_000), ("duckdb", 100)):
        with pytest.raises(PodiumError) as error:
            podium.compare(podium.scan_log(path, engine=engine), {"u": "uniform", "v": "uniform"}, sample_rows=rows)
        said.add(str(error.value))
    return said


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("role", ["x", "action"])
def test_what_is_no_label_is_refused_by_every_engine(kind: str, role: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", **{role: ODD[kind]})
    assert f"column {role!r} holds " in only_refusal(path)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_duration_is_no_reward(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", reward=ODD["durations"])
    with pytest.raises(PodiumError, match="column 'reward' holds durations"):
        podium.compare(podium.scan_log(path, engine=engine), {"u": "uniform", "v": "uniform"})


def scores(path: Path, policies: dict[str, Any], **options: Any) -> list[Any]:
    """What memory and DuckDB say of policies, of a small log and of one that is read in batches."""
    found = []
    for engine, rows in (("memory", 20_000), ("duckdb", 20_000), ("duckdb", 100)):
        log = podium.scan_log(path, engine=engine, **options)
        result = podium.compare(log, policies, estimator="LDE", sample_rows=rows).to_dict()
        found.append({p["name"]: round(p["estimates"]["LDE"], 9) for p in result["policies"]} | {"log": result["log"]})
    return found


@pytest.mark.parametrize(
    ("kind", "constant"),
    [
        ("microseconds", "2020-01-01T01:00:00.000000"),
        ("milliseconds", "2020-01-01T01:00:00.000000"),
        ("decimals", "0.1"),
    ],
)
def test_constants_name_labels_of_every_engine(kind: str, constant: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", action=column(kind))
    first, *others = scores(path, {"u": "uniform", "c": f"constant:{constant}"})
    assert first["log"]["actions"] == 3
    assert others == [first, first]


def test_zero_and_minus_zero_are_one_action(tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", action=pa.array([[0.0, -0.0, 1.0][i * 7 // 3 % 3] for i in ROWS_RANGE]))
    first, *others = scores(path, {"u": "uniform", "c": "constant:1"})
    assert first["log"]["actions"] == 2
    assert others == [first, first]


def test_functions_compare_times_on_every_engine(tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", x=column("microseconds"))
    late = lambda states: np.where(np.asarray(states) > np.datetime64("2020-01-01T00:30"), "a", "b")  # noqa: E731
    first, *others = scores(path, {"u": "uniform", "late": late})
    assert others == [first, first]


@pytest.mark.parametrize(
    "kind", ["small uint64", "float32", "truth values", "decimals", "microseconds", "dates", "nanoseconds"]
)
def test_text_columns_are_texts_on_every_engine(kind: str, tmp_path: Path) -> None:
    wanted, others = both_paths(written(tmp_path / "log.parquet", x=column(kind)), text=["x"])
    assert all(isinstance(x, str) for x in wanted.states)
    for log in others:
        assert log.states.tolist() == wanted.states.tolist()


@pytest.mark.parametrize("kind", ["bytes", "times of day"])
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_what_has_no_text_is_refused(kind: str, engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", x=column(kind))
    with pytest.raises(PodiumError, match="the column 'x' cannot be read as text"):
        podium.scan_log(path, engine=engine, text=["x"])


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_times_beyond_what_can_be_held_are_refused(engine: str, tmp_path: Path) -> None:
    far = pa.array([9 * 10**18 + i % 3 for i in ROWS_RANGE]).cast(pa.timestamp("ms"))
    path = written(tmp_path / "log.parquet", x=far)
    with pytest.raises(PodiumError, match=r"type that podium does not read|Could not convert Timestamp"):
        podium.compare(podium.scan_log(path, engine=engine), {"u": "uniform", "v": "uniform"})


def json_lines(path: Path, x: Callable[[int], Any]) -> Path:
    rows = ({"x": x(i), "action": "ab"[i * 7 // 3 % 2], "reward": i * 37 % 11 / 10} for i in ROWS_RANGE)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_text_columns_of_json(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "log.jsonl", lambda i: [1, 2.5][i % 2])
    wanted, others = both_paths(path, text=["x"])
    assert set(wanted.states) == {"1.0", "2.5"}
    assert [log.states.tolist() for log in others] == [wanted.states.tolist()] * 2
    with pytest.raises(PodiumError, match="there is no column 'y' to read as text"):
        podium.scan_log(path, engine="duckdb", text=["y"])


def test_json_objects_of_many_keys_are_columns(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "log.jsonl", lambda i: {f"k{k}": (i + k) % 3 for k in range(250)})
    wanted, others = both_paths(path)
    assert [len(log.state_columns) for log in (wanted, *others)] == [250] * 3


def test_whole_numbers_of_128_bits_stay_exact(tmp_path: Path) -> None:
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as connection:
        columns = f"{2**70}::HUGEINT + i % 3 AS x, i % 2 AS action, i % 5 AS reward"
        connection.execute(f"CREATE TABLE log AS SELECT {columns} FROM range(120) t(i)")
    log = podium.scan_log(path)
    assert isinstance(log, ScannedLog)
    assert (log.n_states, log.collect().n_states) == (3, 3)
    assert sorted(set(log.collect().states)) == [2**70, 2**70 + 1, 2**70 + 2]


def test_numbers_among_texts_are_refused_in_batches_too(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = (f"{['1', '2', 'old'][i % 3]},{'ab'[i * 7 // 3 % 2]},{i % 5}\n" for i in ROWS_RANGE)
    path.write_text("x,action,reward\n" + "".join(lines))
    both = (
        "column 'x' mixes number and text; row 3 (line 4) holds 'old' (40 rows)\n\nHint: correct those rows; where the "
        "values are names and not numbers, read the column as text (--text x). "
    )
    assert refusals(path) == {
        f"{both}This call goes on: podium.read_log('log.csv', text=['x'])",
        f"{both}In memory (--engine memory), words such as 'n/a' among numbers are taken for missing values.",
    }


def test_codes_in_one_batch_make_all_of_them_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = (f"{'007' if i == 0 else ['1', '2', 'n/a'][i % 3]},{'ab'[i * 7 // 3 % 2]},{i % 5}\n" for i in ROWS_RANGE)
    path.write_text("x,action,reward\n" + "".join(lines))
    wanted, others = both_paths(path)
    assert [log.states.tolist() for log in others] == [wanted.states.tolist()] * 2


@pytest.mark.parametrize("line", ['{"x": 1}{"x": 2}', "[1]", "[" * 100_000])
def test_lines_that_are_not_one_json_object(line: str) -> None:
    with pytest.raises(PodiumError, match=r"log\.jsonl holds a line that is"):
        names_in([line], "log.jsonl")
