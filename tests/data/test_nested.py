"""Lists of numbers and objects become columns of the same names, whoever reads them; ragged lists are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import podium
from podium import Log, PodiumError
from podium.data.columns import boxed
from podium.data.nested import arrow_parts, grouped, lists_among, members_of, spread
from podium.data.roles import describe_states

ROWS = 150
RNG = np.random.default_rng(3)
VECTORS = RNG.normal(size=(ROWS, 5)).round(3).tolist()
TABLE: dict[str, list[Any]] = {
    "e": VECTORS,
    "user": [{"age": i % 7, "home": {"lat": float(i % 3)}} for i in range(ROWS)],
    "topic": ["xyz"[i % 3] for i in range(ROWS)],
    "action": ["ab"[i % 2] for i in range(ROWS)],
    "reward": RNG.random(ROWS).round(3).tolist(),
}
HEADERS = [*(f"e[{j}]" for j in range(5)), "user:age", "user:home:lat", "topic"]


def json_lines(path: Path, table: dict[str, list[Any]]) -> Path:
    rows = zip(*table.values(), strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(table, row, strict=True))) for row in rows))
    return path


def parquet_file(path: Path, table: dict[str, Any]) -> Path:
    parquet.write_table(pa.table(table), path)
    return path


def fixed(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "e": pa.array(table["e"], pa.list_(pa.float64(), 5))}


READERS: dict[str, Callable[[Path], Log]] = {
    "one dict": lambda folder: Log(TABLE),
    "a dict as a frame": lambda folder: Log.from_frame(TABLE),
    "a dict of arrays": lambda folder: Log.from_columns({**TABLE, "e": np.array(VECTORS)}),
    "a dict of states": lambda folder: Log({h: TABLE[h] for h in ("e", "user", "topic")}, *others()),
    "pandas": lambda folder: Log.from_frame(pd.DataFrame(TABLE)),
    "pandas, arrays in cells": lambda folder: Log.from_frame(
        pd.DataFrame({**TABLE, "e": [np.array(v) for v in VECTORS]})
    ),
    "pandas as states": lambda folder: Log(pd.DataFrame({h: TABLE[h] for h in ("e", "user", "topic")}), *others()),
    "a pandas frame alone": lambda folder: Log(pd.DataFrame(TABLE)),
    "polars": lambda folder: Log.from_frame(pl.DataFrame(TABLE)),
    "polars arrays": lambda folder: Log.from_frame(
        pl.DataFrame(TABLE).with_columns(pl.col("e").cast(pl.Array(pl.Float64, 5)))
    ),
    "arrow": lambda folder: Log.from_frame(pa.table(TABLE)),
    "arrow, fixed size": lambda folder: Log.from_frame(pa.table(fixed(TABLE))),
    "JSON lines": lambda folder: podium.read_log(json_lines(folder / "log.jsonl", TABLE)),
    "JSON lines on DuckDB": lambda folder: scanned(json_lines(folder / "log.jsonl", TABLE)),
    "Parquet": lambda folder: podium.read_log(parquet_file(folder / "log.parquet", TABLE)),
    "Parquet, fixed size": lambda folder: podium.read_log(parquet_file(folder / "log.parquet", fixed(TABLE))),
    "Parquet on DuckDB": lambda folder: scanned(parquet_file(folder / "log.parquet", TABLE)),
    "Parquet, fixed size, on DuckDB": lambda folder: scanned(parquet_file(folder / "log.parquet", fixed(TABLE))),
    "a table of DuckDB": lambda folder: scanned(database(folder)),
}


def others() -> tuple[Any, Any]:
    return TABLE["action"], TABLE["reward"]


def scanned(path: Path) -> Log:
    found: Log = podium.scan_log(path, engine="duckdb").collect()  # type: ignore[union-attr]
    return found


def database(folder: Path) -> Path:
    import duckdb

    source = parquet_file(folder / "rows.parquet", TABLE)
    with duckdb.connect(str(folder / "log.duckdb")) as connection:
        connection.execute(f"CREATE TABLE log AS SELECT e::DOUBLE[5] AS e, * EXCLUDE e FROM read_parquet('{source}')")
    return folder / "log.duckdb"


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_columns(reader: str, tmp_path: Path) -> None:
    log, wanted = READERS[reader](tmp_path), READERS["one dict"](tmp_path)
    assert list(log.state_columns) == HEADERS
    assert log.digest == wanted.digest
    assert describe_states(log) == "State: e (5 columns), user:age, user:home:lat, topic"


def test_both_engines_give_the_same_answer(tmp_path: Path) -> None:
    path = parquet_file(tmp_path / "log.parquet", {**TABLE, "pi_new": [{"a": 0.25, "b": 0.75}] * ROWS})
    policies = {"new": "column:pi_new", "a": "constant:a"}
    answers = [
        podium.compare(podium.scan_log(path, engine=engine), policies, sample_rows=rows).to_dict()
        for engine, rows in (("memory", 20_000), ("duckdb", 20_000), ("duckdb", 100))
    ]
    for answer in answers[1:]:
        for mine, theirs in zip(answer["policies"], answers[0]["policies"], strict=True):
            assert mine["estimates"]["LDE"] == pytest.approx(theirs["estimates"]["LDE"], rel=1e-12)
        assert answer["log"]["state_columns"] == answers[0]["log"]["state_columns"] == HEADERS


def test_a_list_is_chosen_as_state_by_its_name() -> None:
    assert list(Log.from_frame(TABLE, state=["topic", "e"]).state_columns) == ["topic", *HEADERS[:5]]
    assert list(Log.from_frame(TABLE, state="user").state_columns) == ["user:age", "user:home:lat"]
    with pytest.raises(PodiumError) as error:
        Log.from_frame(TABLE, state="f")
    assert str(error.value) == (
        "the log has no column 'f' for the state\n\n"
        "Hint: the columns are e (5 columns), user:age, user:home:lat, topic, action, reward."
    )


def test_models_get_a_frame_of_the_columns() -> None:
    seen: list[Any] = []

    def policy(states: Any) -> Any:
        seen.append(list(states.columns))
        return ["a"] * len(states)

    podium.evaluate(Log.from_frame(pd.DataFrame(TABLE)), {"p": policy}, "LDE")
    assert seen[0] == HEADERS


RAGGED = {**TABLE, "e": [v if i % 10 != 3 else v[:3] for i, v in enumerate(VECTORS)]}
RAGGED_READERS: dict[str, Callable[[Path], Any]] = {
    "one dict": lambda folder: Log(RAGGED),
    "pandas": lambda folder: Log.from_frame(pd.DataFrame(RAGGED)),
    "polars": lambda folder: Log.from_frame(pl.DataFrame(RAGGED)),
    "JSON lines": lambda folder: podium.read_log(json_lines(folder / "log.jsonl", RAGGED)),
    "Parquet": lambda folder: podium.read_log(parquet_file(folder / "log.parquet", RAGGED)),
    "JSON lines on DuckDB": lambda folder: compared(json_lines(folder / "log.jsonl", RAGGED)),
    "Parquet on DuckDB": lambda folder: compared(parquet_file(folder / "log.parquet", RAGGED)),
}


def compared(path: Path) -> Any:
    return podium.compare(podium.scan_log(path, engine="duckdb"), {"a": "constant:a", "u": "uniform"})


@pytest.mark.parametrize("reader", RAGGED_READERS)
def test_lists_of_several_lengths_are_refused_alike(reader: str, tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as error:
        RAGGED_READERS[reader](tmp_path)
    line = " (line 4)" if reader.startswith("JSON lines") else ""
    assert str(error.value) == (
        f"column 'e' must hold 5 values in every row; row 4{line} holds 3 of them (15 rows)\n\n"
        "Hint: give every row a list of one length, or choose the state columns without it (--state)."
    )
    log = Log.from_frame(RAGGED, state=["topic"])
    assert list(log.state_columns) == ["topic"]


def test_a_missing_list_is_a_gap_and_not_a_short_list() -> None:
    table = {**TABLE, "e": [None, *VECTORS[1:]]}
    with pytest.raises(PodiumError) as error:
        Log.from_frame(table)
    assert error.value.message == "column 'e[0]' must not be missing; row 1 holds nothing (1 row)"


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (
            {"states": [1, 2], "actions": ["a", "b"]},
            "a log needs rewards",
            "give podium.Log(states, actions, rewards), or one dict of columns with 'action' and 'reward'.",
        ),
        (
            {"states": [1, 2]},
            "a log needs actions",
            "give podium.Log(states, actions, rewards), or one dict of columns with 'action' and 'reward'.",
        ),
        (
            {"states": TABLE, "propensities": [0.5] * ROWS},
            "propensities cannot be given beside a dict or frame that holds the whole log",
            "put propensities into its columns and use podium.Log.from_frame(table, ...), which takes their names, or "
            "give podium.Log(states, actions, rewards, ...).",
        ),
        ({"states": {"x": [1]}}, "the log has no column 'action' for the action", "the columns are x."),
        (
            {"states": {**TABLE, "e[0]": TABLE["reward"]}},
            "the column 'e[0]' appears twice",
            "give each column a name of its own.",
        ),
        (
            {"states": {**TABLE, "action": VECTORS}},
            "column 'action' holds several values in each row, which cannot be the action",
            "name one of its parts, such as 'action[0]'.",
        ),
    ],
)
def test_tables_that_are_refused(given: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(PodiumError) as error:
        Log(**given)
    assert str(error.value) == f"{message}\n\nHint: {hint}"


def test_lists_of_texts_stay_as_they_are() -> None:
    tags = spread({"tags": np.array([["x"], ["y", "z"]], dtype=object), "n": np.array([1, 2])})
    assert list(tags) == ["tags", "n"]
    array = pa.array([["x"], ["y", "z"]])
    assert arrow_parts("tags", array) == [("tags", array)]


def test_lists_inside_lists_and_objects_inside_lists() -> None:
    column = pa.array([[{"x": 1, "y": [0.5, 1.5]}], [{"x": 2, "y": [2.5, 3.5]}]])
    found = {name: cells.to_pylist() for name, cells in arrow_parts("l", column)}
    assert found == {"l[0]:x": [1, 2], "l[0]:y[0]": [0.5, 2.5], "l[0]:y[1]": [1.5, 3.5]}
    plain = spread({"l": boxed(column.to_pylist())})
    assert {name: cells.tolist() for name, cells in plain.items()} == found


def test_names_of_many_columns_are_counted() -> None:
    names = [*(f"e[{j}]" for j in range(384)), "topic", "p[0]", "p[1]", "q[7]"]
    assert grouped(names) == ["e (384 columns)", "topic", "p[0]", "p[1]", "q[7]"]
    assert list(lists_among(names)) == ["e", "p"]
    assert members_of("p", names) == ["p[0]", "p[1]"]
