"""Frames of every library give the same log, also those that live in a database (tests/system/ has Spark)."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
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
from podium.data.errors import PodiumError
from podium.data.frames import LazyColumns, check_names, series_to_array
from podium.data.read import check_header
from podium.data.roles import assign_roles

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


# --- headers and types that few frames have ------------------------------------------------------------------------

ROWS = {
    "state": [1, 2, 1, 2],
    "action": ["a", "b", "a", "b"],
    "reward": [1.0, 2.0, 3.0, 1.0],
    "pi_x": [0.1, 0.2, 0.3, 0.4],
}


def refusal(frame: Any, **roles: Any) -> str:
    with pytest.raises(PodiumError) as caught:
        podium.Log.from_frame(frame, **roles)
    return caught.value.message


def test_numbers_are_headers() -> None:
    frame = pd.DataFrame({0: [1, 2, 1], "x": [3, 4, 5], 2: ["a", "b", "a"], 3: [1.0, 2.0, 3.0]})
    for roles in (
        {"action": 2, "reward": 3},
        {"action": "2", "reward": "3"},
        {"action": 2, "reward": 3, "state": [0, "x"]},
    ):
        log = podium.Log.from_frame(frame, **roles)
        assert list(log.state_columns) == ["0", "x"]
    columns = {0: [1, 2, 1], "action": ["a", "b", "a"], "reward": [1.0, 2.0, 3.0]}
    assert list(podium.Log.from_columns(columns).state_columns) == ["0"]


def test_headers_that_are_refused() -> None:
    frame = pd.DataFrame(ROWS)
    several = frame.set_axis(pd.MultiIndex.from_tuples([("x", name) for name in frame]), axis=1)
    assert refusal(several) == "the frame has headers of several levels"
    assert refusal(frame.rename(columns={"state": None})) == "column 1 of the frame has no name"
    assert refusal(frame.rename(columns={"state": ""})) == "column 1 of the frame has no name"
    assert refusal(frame.assign(**{"0": 1}).assign(x=2).rename(columns={"x": 0})) == "the column '0' appears twice"
    assert refusal(pd.concat([frame, frame[["state"]]], axis=1)) == "the column 'state' appears twice"


def test_whole_numbers_of_128_bits_are_read() -> None:
    small = pl.Series([1, 2, 3, 4], dtype=pl.Int128)
    large = pl.Series([1, 2, 3, 10**30], dtype=pl.Int128)
    assert podium.Log.from_frame(pl.DataFrame({**ROWS, "state": small})).state_columns["state"].dtype == np.int64
    log = podium.Log.from_frame(pl.DataFrame({**ROWS, "state": large, "reward": large}))
    assert (log.state_columns["state"][3], log.rewards[3]) == (10**30, 1e30)


def test_a_type_that_no_array_holds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strange:
        dtype = "Strange"

        def to_numpy(self) -> Any:
            raise RuntimeError("no")

        to_list = to_numpy

    with pytest.raises(PodiumError, match="the column 'x' is of a type that podium does not read: Strange"):
        series_to_array(Strange(), "x")


@pytest.mark.parametrize("role", ["state", "action", "reward", "pi_x"])
def test_a_signaling_nan_is_missing(role: str) -> None:
    cells = pd.Series([Decimal("sNaN"), Decimal(1), Decimal(1), Decimal(1)], dtype=object)
    frame = pd.DataFrame({**ROWS, role: cells})
    with pytest.raises(PodiumError, match=rf"column '{role}' must .*; row 1 holds Decimal\('sNaN'\) \(1 row\)"):
        podium.evaluate(podium.Log.from_frame(frame))


def test_a_duration_is_a_label_and_not_a_number() -> None:
    days = pd.Series(pd.to_timedelta([1, 2, 1, 2], unit="D")).astype("timedelta64[us]")
    log = podium.Log.from_frame(pd.DataFrame({**ROWS, "state": days}))
    assert log.state_columns["state"][0] == "86400000000 microseconds"
    assert refusal(pd.DataFrame({**ROWS, "reward": days})).startswith("column 'reward' must be a number; row 1 holds ")


def test_a_hundred_thousand_columns_take_seconds() -> None:
    """Headers are looked at once each: every check that compared all pairs of them took minutes."""
    wide = {f"c{i}": np.ones(2) for i in range(100_000)}
    columns = {**wide, "action": np.array(["a", "b"]), "reward": np.ones(2)}
    start = time.process_time()
    check_header(list(columns), Path("log.csv"))
    check_names(list(columns))
    roles = assign_roles(columns)
    lazy = LazyColumns(columns, columns.__getitem__)
    assert len([lazy[name] for name in roles.states]) == 100_000
    with pytest.raises(PodiumError) as caught:
        assign_roles(columns, action="none")
    assert caught.value.hint.endswith("c49, and 99,952 more.")
    with pytest.raises(PodiumError, match="the column 'c7' appears twice"):
        check_header([*columns, "c7"], Path("log.csv"))
    assert time.process_time() - start < 10


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
    refused = [lambda: podium.Log.from_frame(gap), *([lambda: podium.read_log(path)] if column == "action" else [])]
    for read in refused:
        with pytest.raises(podium.PodiumError, match=f"column '{column}' must not be missing; row 1 holds "):
            read()
    if column == "where":  # of a file, a missing state is a value of its own
        assert podium.read_log(path).state_columns["where"][0] == "(missing)"
