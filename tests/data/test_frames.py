"""Frames of every library give the same log, also those that live in a database (tests/system/ has Spark)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import podium
from podium.data import frames

COLUMNS: dict[str, list[Any]] = {
    "age": [41, 30, 25, 41],
    "where": ["north", "south", "north", "south"],
    "action": ["call", "sms", "call", "sms"],
    "reward": [1.0, 0.0, 0.5, 1.0],
    "propensity": [0.5, 0.5, 0.25, 0.5],
}


def relation() -> Any:
    table = pa.table(COLUMNS)
    return duckdb.connect().from_arrow(table)


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda: pl.LazyFrame(COLUMNS),
    "arrow": lambda: pa.table(COLUMNS),
    "duckdb": relation,
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_log_and_goes_back(name: str) -> None:
    log = podium.Log.from_frame(FRAMES[name]())
    plain = podium.Log.from_columns(COLUMNS)
    for role in ("actions", "rewards", "propensities", "state_codes"):
        np.testing.assert_array_equal(getattr(log, role), getattr(plain, role))
    for backend in ("pandas", "polars", "pyarrow"):
        again = podium.Log.from_frame(log.to_frame(backend))
        assert again.to_dict() == log.to_dict()
        np.testing.assert_array_equal(again.rewards, log.rewards)


@pytest.mark.parametrize("name", FRAMES)
def test_a_function_of_the_states_can_be_a_policy(name: str) -> None:
    def rule(states: Any) -> Any:
        return np.where(np.asarray(states["age"]) > 35, "call", "sms")

    result = podium.evaluate(podium.Log.from_frame(FRAMES[name]()), {"rule": rule}, ["IPS"])
    assert result.values["rule"]["IPS"] == pytest.approx((1.0 / 0.5 + 0.0 / 0.5) / 4)


def test_a_frame_too_large_to_fetch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_LAZY_ROWS", 3)
    with pytest.raises(podium.PodiumError) as error:
        podium.Log.from_frame(relation())
    assert str(error.value) == (
        "the frame of duckdb has more than 3 rows, too many to fetch\n\n"
        "Hint: use podium.scan_log(frame), which leaves its rows where they are."
    )
    with pytest.raises(podium.PodiumError) as error:
        podium.Log.from_frame(pl.LazyFrame(COLUMNS))
    assert str(error.value).endswith("Hint: write it as Parquet and use podium.scan_log(path).")


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "polars, lazy"])
def test_every_frame_can_be_scanned(name: str) -> None:
    policies = {"call": "constant:call", "sms": "constant:sms"}
    log = podium.scan_log(FRAMES[name](), state=["age", "where"])
    wanted = podium.compare(podium.Log.from_columns(COLUMNS), policies).to_dict()
    found = podium.compare(log, policies).to_dict()
    assert found["settings"].pop("engine") == ("duckdb" if name == "duckdb" else "memory")
    wanted["settings"].pop("engine")
    assert found == wanted


def test_a_relation_of_any_length_is_scanned() -> None:
    rows = 30_000
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 90, rows),
        "action": np.array(["call", "sms"])[rng.integers(0, 2, rows)],
        "reward": rng.normal(size=rows),
        "propensity": np.full(rows, 0.5),
    }
    policies = {"young": "sql:CASE WHEN age < 40 THEN 'sms' ELSE 'call' END", "now": "uniform"}
    wanted = podium.compare(podium.Log.from_columns(columns), policies, sample_rows=1000)
    found = podium.compare(podium.scan_log(duckdb.connect().from_arrow(pa.table(columns))), policies, sample_rows=1000)
    assert found.settings["engine"] == "duckdb"
    assert found.ranking == wanted.ranking
    assert found.pairs[0].difference == pytest.approx(wanted.pairs[0].difference, rel=1e-9)


def test_a_frame_is_no_log() -> None:
    with pytest.raises(podium.PodiumError, match=r"podium\.scan_log"):
        podium.compare(relation(), {"call": "constant:call", "sms": "constant:sms"})  # type: ignore[arg-type]


CATEGORIES: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "pandas": lambda columns, name: pd.DataFrame(columns).astype({name: "category"}),
    "polars": lambda columns, name: pl.DataFrame(columns).with_columns(pl.col(name).cast(pl.Categorical)),
    "arrow": lambda columns, name: pa.table({**columns, name: pa.array(columns[name]).dictionary_encode()}),
}


@pytest.mark.parametrize("column", ["action", "where"])
@pytest.mark.parametrize("library", CATEGORIES)
def test_categories_are_labels_and_their_gaps_are_missing(library: str, column: str, tmp_path: Path) -> None:
    make = CATEGORIES[library]
    plain = podium.Log.from_columns(COLUMNS)
    np.testing.assert_array_equal(podium.Log.from_frame(make(COLUMNS, column)).state_codes, plain.state_codes)
    gap = make({**COLUMNS, column: [None, *COLUMNS[column][1:]]}, column)
    path = tmp_path / "log.parquet"
    gap.write_parquet(path) if library == "polars" else parquet.write_table(
        pa.Table.from_pandas(gap) if library == "pandas" else gap, path
    )
    for read in (lambda: podium.Log.from_frame(gap), lambda: podium.read_log(path)):
        with pytest.raises(podium.PodiumError, match=f"column '{column}' must not be missing; row 1 holds "):
            read()
