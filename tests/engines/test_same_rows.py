"""Files that DuckDB by itself would read otherwise than podium does in memory: read alike, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from logs import assert_alike
from pyarrow import parquet

import podium
from podium.data.errors import PodiumError
from podium.engines import csv_lines, json_lines

BOTH = {"a": "constant:a", "u": "uniform"}
ROWS = [{"x": i % 3, "action": "ab"[i * 7 // 3 % 2], "reward": i * 37 % 11 / 10} for i in range(40)]


def write(file: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows in the format that the file's ending names."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines) + "\n")
    return file


def scan(path: Any, **options: Any) -> Any:
    return podium.scan_log(path, engine="duckdb", **options)


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(PodiumError) as caught:
        call()
    assert "\n\nHint: " in str(caught.value)
    return caught.value.message


# --- what folders say ------------------------------------------------------------------------------------------------

FORMATS = ("parquet", "csv", "jsonl")


@pytest.mark.parametrize("folder", ["reward=5", "x=7", "c=1"])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_folder_of_a_named_file_says_nothing(kind: str, folder: str, tmp_path: Path) -> None:
    file = write(tmp_path / folder / f"log.{kind}", ROWS)
    wanted = podium.read_log(file)
    found = scan(file)
    assert list(found.columns) == ["x", "action", "reward"]
    assert found.collect().rewards.tolist() == wanted.rewards.tolist()
    assert found.collect().states.tolist() == wanted.states.tolist()


@pytest.mark.parametrize("kind", FORMATS)
def test_folders_are_columns_in_every_format(kind: str, tmp_path: Path) -> None:
    for code in ("2", "10"):
        write(tmp_path / f"code={code}" / "land=de" / f"log.{kind}", ROWS)
    log = scan(str(tmp_path / "*" / "*" / f"*.{kind}"))
    assert log.roles.states == ("x", "code", "land")
    columns = log.collect().state_columns
    assert columns["code"].tolist() == [10] * 40 + [2] * 40
    assert columns["land"].tolist() == ["de"] * 80


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_that_names_a_column_is_refused(kind: str, tmp_path: Path) -> None:
    write(tmp_path / "X=1" / f"log.{kind}", ROWS)
    said = f"log.{kind} has a column 'x', and its folder 'X=1' gives one too"
    assert message(lambda: scan(str(tmp_path / "*" / f"*.{kind}"))) == said


def test_a_column_that_duckdb_needs_beside_folders_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "c=1" / "log.csv", [{"file_index": 3, **row} for row in ROWS])
    said = "log.csv: DuckDB needs the name 'file_index' for itself"
    assert message(lambda: scan(str(tmp_path / "*" / "*.csv"))) == said


# --- several files ---------------------------------------------------------------------------------------------------

TYPES = [(pa.float32(), pa.float64(), [0.1, 0.2]), (pa.int8(), pa.int64(), [1, 2]), (pa.uint8(), pa.int16(), [1, 2])]


@pytest.mark.parametrize(("narrow", "wide", "values"), TYPES, ids=str)
def test_the_first_file_does_not_set_the_precision(narrow: Any, wide: Any, values: list[Any], tmp_path: Path) -> None:
    beyond = [values[0] * 1000, values[1]]
    for order in ("ab", "ba"):
        for name, kind, cells in zip(order, (narrow, wide), (values, beyond), strict=True):
            rows = {"x": pa.array(cells, kind), "action": ["a", "b"], "reward": pa.array(cells, kind)}
            parquet.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
        exact = [*pa.array(values, narrow).to_pylist(), *pa.array(beyond, wide).to_pylist()]
        assert sorted(scan(tmp_path).collect().rewards.tolist()) == sorted(exact)


def test_whole_numbers_that_no_type_holds_together_are_refused(tmp_path: Path) -> None:
    for name, kind in (("a", pa.uint64()), ("b", pa.int64())):
        rows = {"x": pa.array([1, 2], kind), "action": ["a", "b"], "reward": [0.0, 1.0]}
        parquet.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    assert message(lambda: scan(tmp_path)) == "the column 'x' is int64 in b.parquet and uint64 in a.parquet"


def test_csv_and_json_are_typed_over_all_files(tmp_path: Path) -> None:
    for i in range(34):
        rows = [{**row, "x": row["x"] if i < 33 else 0.5} for row in ROWS[:2]]
        write(tmp_path / f"{i:02}.csv", rows)
        write(tmp_path / f"{i:02}.jsonl", rows)
    for kind in ("csv", "jsonl"):
        assert scan(str(tmp_path / f"*.{kind}")).collect().states.tolist() == [0.0, 1.0] * 33 + [0.5, 0.5]


# --- JSON ------------------------------------------------------------------------------------------------------------

BAD_JSON = ['{"x": 1, "action": "a", "reward": 1,}', '{"x": [1, ], "action": "a", "reward": 1}']


@pytest.mark.parametrize("line", BAD_JSON)
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_a_comma_after_the_last_member_is_refused(
    line: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", block)
    file = write(tmp_path / "log.jsonl", ROWS)
    with file.open("a") as opened:
        opened.write("\n" + line + "\n")
    wanted = message(lambda: podium.read_log(file))
    assert wanted.startswith("log.jsonl: row 41 is not valid JSON: ")
    assert message(lambda: scan(file)) == wanted


def test_a_comma_before_a_bracket_may_be_part_of_a_text(tmp_path: Path) -> None:
    file = write(tmp_path / "log.jsonl", [{**row, "x": ",}"} for row in ROWS])
    assert scan(file).collect().states.tolist() == [",}"] * 40


def test_nested_names_that_become_the_same_column_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "log.jsonl", [{"x": {"a:b": 1}, "x:a": {"b": 2}, "action": "a", "reward": 1}])
    assert message(lambda: scan(file)) == "log.jsonl: the column 'x:a:b' appears twice"


@pytest.mark.parametrize("values", [(1, "1"), (1, True), ("a", True), ([1, "1"], [2, 3])])
def test_kinds_that_json_mixes_are_refused_by_both(values: tuple[Any, Any], tmp_path: Path) -> None:
    rows = [{"x": value, "action": action, "reward": 1} for value in values for action in "ab"]
    file = write(tmp_path / "log.jsonl", rows)
    message(lambda: podium.read_log(file))
    assert message(lambda: scan(file).collect()).startswith(("log.jsonl: the column 'x", "column 'x"))


def test_objects_of_many_keys_stay_objects(tmp_path: Path) -> None:
    rows = [{**row, "x": {f"k{k}": (i + k) % 3 for k in range(250)}} for i, row in enumerate(ROWS)]
    file = write(tmp_path / "log.jsonl", rows)
    found, wanted = scan(file).collect().state_columns, podium.read_log(file).state_columns
    assert {h: c.tolist() for h, c in found.items()} == {h: c.tolist() for h, c in wanted.items()}


@pytest.mark.parametrize("values", [[2**64, 2**64 + 1], [2**70, 1], [2**63 + 1, -1]])
def test_whole_numbers_that_duckdb_would_round_are_refused(values: list[int], tmp_path: Path) -> None:
    file = write(tmp_path / "log.jsonl", [{"x": v, "action": "a", "reward": 1} for v in values])
    assert message(lambda: scan(file)) == "log.jsonl: the column 'x' holds whole numbers of more than 64 bits"


def test_large_numbers_with_fractions_beside_them_are_read(tmp_path: Path) -> None:
    file = write(tmp_path / "log.jsonl", [{"x": v, "action": "a", "reward": 1} for v in (2.0**70, 0.5)])
    assert scan(file).collect().states.tolist() == [2.0**70, 0.5]


@pytest.mark.parametrize("cell", ["{}", "[{}]", '{{"y": [{}], "z": "1:, 2"}}'])
def test_whole_numbers_that_fractions_would_merge_are_refused(cell: str, tmp_path: Path) -> None:
    lines = [
        f'{{"x": {cell.format(x)}, "action": "a", "reward": 1}}\n' for x in (9007199254740993, 9007199254740992, 0.5)
    ]
    (tmp_path / "log.jsonl").write_text("".join(lines))
    with pytest.raises(PodiumError, match="mixes fractions with whole numbers that floats cannot tell apart"):
        scan(tmp_path / "log.jsonl")


# --- CSV -------------------------------------------------------------------------------------------------------------

CELLS = [f"{row['x']},{row['action']},{row['reward']}" for row in ROWS]
LINES = {
    "blank lines first": "\n \n\nx,action,reward\n" + "\n".join(CELLS),
    "blank lines inside and after": "x,action,reward\n" + "\n\n".join(CELLS) + "\n\n\n",
    "lines of spaces": "x,action,reward\n" + "\n  \n".join(CELLS) + "\n \t ",
    "two kinds of line ends": "x,action,reward\r\n" + "\n".join(CELLS[:20]) + "\r\n" + "\r\n".join(CELLS[20:]),
    "three kinds of line ends": "x,action,reward\r" + "\n".join(CELLS[:20]) + "\r\n" + "\r\n".join(CELLS[20:]),
    "old line ends": "\rx,action,reward\r" + "\r".join(CELLS),
    "a mark of the encoding": "\ufeff\nx,action,reward\n" + "\n".join(CELLS),
    "line ends inside of cells": 'x,action,reward\n"a\rb",a,1\n"a\r\nb",b,0\n"a\nb",a,0.5\n \n"a""b, ",b,1\n',
}


@pytest.mark.parametrize("block", [16, 1 << 20])
@pytest.mark.parametrize("case", LINES)
def test_lines_are_told_apart_as_in_memory(
    case: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_lines, "BLOCK", block)
    file = tmp_path / "log.csv"
    file.write_bytes(LINES[case].encode())
    wanted, log = podium.read_log(file), scan(file)
    found = log.collect()
    assert found.states.tolist() == wanted.states.tolist()
    assert found.rewards.tolist() == wanted.rewards.tolist()
    assert sorted(p.name for p in log.engine.folder.iterdir() if p.suffix) == ["rows.parquet"]


def test_ordinary_lines_are_not_written_again(tmp_path: Path) -> None:
    file = write(tmp_path / "log.csv", ROWS)
    assert csv_lines.plain_file(file, ",", tmp_path / "copy.csv") == file
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert csv_lines.plain_file(file, ",", tmp_path / "copy.csv") == file


# --- databases -------------------------------------------------------------------------------------------------------


def database(path: Path, script: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", pa.Table.from_pylist(ROWS))
        connection.execute(script)
    return path


def test_tables_of_the_same_name_are_told_apart_by_their_schemas(tmp_path: Path) -> None:
    path = database(
        tmp_path / "log.duckdb",
        "CREATE TABLE log AS FROM given; CREATE SCHEMA s; CREATE TABLE s.log AS FROM given LIMIT 4; "
        "CREATE TABLE s.other AS FROM given LIMIT 3",
    )
    for table, said in ((None, "log.duckdb has 3 tables"), ("log", "log.duckdb has 2 tables 'log'")):
        with pytest.raises(PodiumError) as caught:
            scan(path, table=table)
        assert str(caught.value) == (
            f"{said}\n\nHint: name one with table=; the tables are 'main.log', 'other', 's.log'."
        )
    rows = {"main.log": 40, "s.log": 4, "s.other": 3, "other": 3}
    assert {table: len(scan(path, table=table)) for table in rows} == rows
    assert message(lambda: scan(path, table="t.log")) == "log.duckdb has no table 't.log'"


def test_columns_of_several_types_at_once_are_refused(tmp_path: Path) -> None:
    path = database(tmp_path / "log.duckdb", "CREATE TABLE log AS SELECT union_value(n := x) AS x FROM given")
    assert message(lambda: scan(path)) == "the column 'x' is a UNION(n BIGINT)"
    relation = duckdb.sql("SELECT union_value(n := 1) AS x, 'a' AS action, 1.0 AS reward")
    assert message(lambda: scan(relation)) == "the column 'x' is a UNION(n INTEGER)"


@pytest.mark.parametrize("limit", ["-1", -1, "none", "-2GB"])
@pytest.mark.parametrize("name", ["memory_limit", "disk_limit"])
def test_no_limit_is_no_limit(name: str, limit: Any, tmp_path: Path) -> None:
    file = write(tmp_path / "log.csv", ROWS)
    assert message(lambda: scan(file, **{name: limit})) == f"{name} must be a size; it is {limit!r}"


# --- policies in SQL -------------------------------------------------------------------------------------------------

COLUMNS = {
    "x = 0.1": pa.array([0.1, 0.2, 0.3] * 40, pa.float32()),
    "x * 3 > 100": pa.array([50, 100, 20] * 40, pa.int8()),
    "x > 5": pa.array([None, 7.0, 2.0] * 40),
}


@pytest.mark.parametrize("condition", COLUMNS)
def test_a_rule_sees_the_same_types_on_every_engine(condition: str, tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    s = np.arange(120) % 3
    parquet.write_table(pa.table({"s": s, "x": COLUMNS[condition], "action": ["a", "b"] * 60, "reward": s / 2}), file)
    policies = {"p": f"sql:CASE WHEN {condition} THEN 'a' ELSE 'b' END", "u": "uniform"}
    wanted = podium.compare(podium.scan_log(file, engine="memory", state="s"), policies, sample_rows=100)
    found = podium.compare(scan(file, state="s"), policies, sample_rows=100)
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
