"""What every engine finds by itself, held against plain NumPy: rows by number, counts, and the latest duplicates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import ROWS, table, write_parts
from pyarrow import csv, parquet

import podium
from podium.data.errors import PodiumError
from podium.engines import LATEST, ROW, Census, Keys
from podium.engines.duckdb import DuckEngine

OPENERS = Callable[..., Any]
KEYS = Keys(("state",), "action", "time")


def folded(engine: Any, columns: list[str], keys: Keys | None) -> pa.Table:
    """All rows as work gets them."""

    def collect(batches: Iterator[Any]) -> tuple[Any, ...]:  # inside, so that it can go to Spark's workers
        return tuple(batches)

    return pa.Table.from_batches(engine.fold(columns, collect, "rows", latest=keys))


def latest_of(engine: Any, keys: Keys) -> list[int]:
    found = folded(engine, [keys.action], keys)
    assert found.column_names == [keys.action, ROW, LATEST]
    assert found[ROW].to_pylist() == list(range(engine.rows()))
    return np.flatnonzero(found[LATEST].to_numpy()).tolist()


def plainly_latest(columns: list[list[Any]], times: list[Any] | None) -> list[int]:
    """The last row of each group when rows are sorted by time, then by number."""
    numbers = range(len(columns[0]))
    order = numbers if times is None else sorted(numbers, key=lambda i: (times[i], i))
    return sorted({tuple(column[i] for column in columns): i for i in order}.values())


# --- rows by number --------------------------------------------------------------------------------------------------


def test_take_delivers_the_rows_in_the_order_of_their_numbers(engine: str, open_table: OPENERS) -> None:
    rows = table()
    log = open_table(rows, engine, state="state")
    wanted = np.sort(np.random.default_rng(0).choice(ROWS, 2000, replace=False))
    found = log.engine.take(["pi_p1", "action", "state", "pi_p1"], wanted, "the sample")
    assert found.schema.names == ["pi_p1", "action", "state", ROW]
    assert found.column(ROW).to_pylist() == wanted.tolist()
    for name in ("pi_p1", "action", "state"):
        assert found.column(name).to_pylist() == rows[name].take(wanted).to_pylist()


def test_take_of_the_first_the_last_and_no_row(engine: str, open_table: OPENERS) -> None:
    rows = table(reward=np.arange(ROWS, dtype=np.float32))
    log = open_table(rows, engine, state="state")
    for wanted in ([0], [ROWS - 1], [0, 8000, ROWS - 1], []):
        found = log.engine.take(["reward"], np.array(wanted, dtype=np.int64), "the sample")
        assert found.column("reward").type == pa.float64()
        assert found.column("reward").to_pylist() == found.column(ROW).to_pylist() == wanted


# --- counts ----------------------------------------------------------------------------------------------------------


def test_a_census_counts_states_and_actions(engine: str, open_table: OPENERS) -> None:
    rows = table(state=np.random.default_rng(1).integers(0, ROWS, ROWS))
    state, action = rows["state"].to_pylist(), rows["action"].to_pylist()
    sizes = np.unique(state, return_counts=True)[1]
    wanted = Census(len(sizes), len(set(zip(state, action, strict=True))), int(np.sum(sizes == 1)))
    log = open_table(rows, engine, state="state")
    assert log.engine.census(KEYS) == wanted
    assert log.engine.census(Keys(("state",), "action")) == wanted


# --- the latest rows -------------------------------------------------------------------------------------------------

MIDNIGHT = datetime(2026, 3, 28, 22, 0)  # a night before clocks change in many places
HOURS = [MIDNIGHT + timedelta(minutes=20 * int(i)) for i in np.random.default_rng(2).integers(0, 60, ROWS)]
ZONES = [timezone(timedelta(hours=h)) for h in (-5, 0, 2, 9)]
TIMES: dict[str, Any] = {
    "none": None,
    "sorted": np.arange(ROWS) // 3,
    "whole numbers": np.random.default_rng(3).integers(-9, 9, ROWS),
    "numbers": np.random.default_rng(4).choice([-1e300, -2.5, -1e-300, -0.0, 0.0, 1e-9, 0.1, 7e250], ROWS),
    "float32": np.random.default_rng(4).choice([-2.5, -0.5, 0.0, 1e-9, 0.1], ROWS).astype(np.float32),
    "truth values": np.arange(ROWS) % 3 == 0,
    "dates": np.array(HOURS, dtype="datetime64[D]"),
    "moments": np.array(HOURS, dtype="datetime64[us]"),
    "moments before 1970": np.array([h.replace(year=1926) for h in HOURS], dtype="datetime64[us]"),
    "moments in a zone": pa.array([h.replace(tzinfo=UTC) for h in HOURS], pa.timestamp("us", "America/New_York")),
    "texts": [h.isoformat() for h in HOURS],
    "dates as texts": [h.date().isoformat() for h in HOURS],
    "texts in zones": [h.replace(tzinfo=UTC).astimezone(ZONES[i % 4]).isoformat() for i, h in enumerate(HOURS)],
}


def at_times(kind: str, **changes: Any) -> pa.Table:
    return table(**changes).drop_columns(["time"]) if TIMES[kind] is None else table(time=TIMES[kind], **changes)


@pytest.mark.parametrize("kind", TIMES)
def test_the_latest_rows_are_those_of_the_log_in_memory(kind: str, engine: str, open_table: OPENERS) -> None:
    rows = at_times(kind)
    wanted = podium.Log.from_frame(rows, state="state").latest
    assert len(wanted) < ROWS
    keys = Keys(("state",), "action", None if TIMES[kind] is None else "time")
    opened = open_table(rows, engine, state="state").engine
    assert latest_of(opened, keys) == wanted.tolist()
    assert opened.census(keys).distinct == len(wanted)


@pytest.mark.system
def test_the_time_zone_of_a_spark_session_does_not_matter(spark: Any, open_table: OPENERS) -> None:
    """Between two and three in the morning of that day, clocks in Berlin show no time."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for kind in ("texts", "texts in zones", "moments"):
            rows = table(time=TIMES[kind])
            wanted = podium.Log.from_frame(rows, state="state").latest
            assert latest_of(open_table(rows, "spark", state="state").engine, KEYS) == wanted.tolist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_texts_that_are_not_moments_are_in_the_order_of_texts(engine: str, open_table: OPENERS) -> None:
    times = np.array(["b", "a", "c"])[np.random.default_rng(5).integers(0, 3, 300)].tolist()
    rows = table(300, time=times, state=np.arange(300) % 20)
    wanted = plainly_latest([rows["state"].to_pylist(), rows["action"].to_pylist()], times)
    assert latest_of(open_table(rows, engine, state="state", time="time").engine, KEYS) == wanted


def test_columns_may_be_called_anything(engine: str, open_table: OPENERS) -> None:
    names = {"state": 'a "b".`c`; --', "action": "last.row", "time": "count", "pi_p0": "g0", "pi_p1": "other"}
    rows = table(3000)
    expected = podium.Log.from_frame(rows, state="state").latest.tolist()
    odd = rows.rename_columns([names.get(n, n) for n in rows.column_names])
    log = open_table(odd, engine, state=names["state"], action=names["action"], time=names["time"])
    keys = Keys((names["state"],), names["action"], names["time"])
    assert latest_of(log.engine, keys) == expected
    assert log.engine.census(keys).distinct == len(expected)
    swapped = Keys((names["time"], names["pi_p0"]), names["state"], names["action"])
    assert log.engine.census(swapped) == Census(3000, 3000, 3000)
    found = log.engine.take(list(names.values()), np.array([7, 1999]), "two rows")
    assert found.column(names["pi_p1"]).to_pylist() == rows["pi_p1"].take([7, 1999]).to_pylist()


@pytest.mark.parametrize("name", [ROW, LATEST])
def test_names_that_podium_needs_are_refused(name: str, engine: str, open_table: OPENERS) -> None:
    with pytest.raises(PodiumError) as caught:
        open_table(table(30).rename_columns([*table(1).column_names[:-1], name]), engine, state="state")
    assert str(caught.value) == f"a column may not be called {name!r}\n\nHint: give it another name."


def test_marks_come_with_every_column_and_in_every_pass(engine: str, open_table: OPENERS) -> None:
    rows = table()
    opened = open_table(rows, engine, parts=7, state="state").engine
    columns = ["reward", "pi_p0", "action"]
    first, second = (folded(opened, columns, KEYS) for _ in range(2))
    assert first.equals(second)
    assert first.column_names == [*columns, ROW, LATEST]
    assert first.select(columns).equals(rows.select(columns))
    assert folded(opened, columns, None).equals(first.drop_columns([LATEST]))
    assert np.flatnonzero(first[LATEST]).tolist() == podium.Log.from_frame(rows, state="state").latest.tolist()


def test_other_keys_have_other_latest_rows(engine: str, open_table: OPENERS) -> None:
    rows = table(region=np.arange(ROWS) % 3)
    opened = open_table(rows, engine, state="state").engine
    for states, time in ((("region",), None), (("region",), "time"), (("region", "state"), "time")):
        columns = [rows[name].to_pylist() for name in (*states, "action")]
        wanted = plainly_latest(columns, None if time is None else rows[time].to_pylist())
        assert latest_of(opened, Keys(states, "action", time)) == wanted


def test_a_failure_in_marked_rows_is_told(engine: str, open_table: OPENERS) -> None:
    from podium.engines.arrow import Fault

    def fail(batches: Iterator[Any]) -> Any:
        return Fault(PodiumError("this cannot be", hint="none."))

    found = open_table(table(), engine, state="state").engine.fold(["reward"], fail, "rows", latest=KEYS)
    assert str(found.error) == "this cannot be\n\nHint: none."


@pytest.mark.parametrize("kind", ["csv", "jsonl", "hive"])
def test_files_of_every_kind(kind: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    rows = table(1200, time=TIMES["texts in zones"][:1200], region=np.array(["north", "south"])[np.arange(1200) // 600])
    folder = tmp_path / "log"
    for i, region in enumerate(("north", "south")):
        part = rows.slice(600 * i, 600)
        place = folder / f"region={region}" if kind == "hive" else folder
        place.mkdir(parents=True, exist_ok=True)
        if kind == "csv":
            csv.write_csv(part, place / f"{i}.csv")
        elif kind == "jsonl":
            (place / f"{i}.jsonl").write_text("\n".join(map(json.dumps, part.to_pylist())))
        else:
            parquet.write_table(part.drop_columns(["region"]), place / "part.parquet")
    source = str(folder) if kind == "hive" else str(folder / f"*.{kind}")
    options = {"session": request.getfixturevalue("spark")} if engine == "spark" else {}
    opened = podium.scan_log(source, engine=engine, state=["region", "state"], **options).engine
    keys = Keys(("region", "state"), "action", "time")
    wanted = podium.Log.from_frame(rows, state=["region", "state"]).latest
    assert latest_of(opened, keys) == wanted.tolist()
    assert opened.census(keys).states == len(
        set(zip(rows["region"].to_pylist(), rows["state"].to_pylist(), strict=True))
    )
    assert opened.take(["reward"], np.array([5, 600, 1199]), "rows").column("reward").to_pylist() == (
        rows["reward"].take([5, 600, 1199]).to_pylist()
    )


# --- DuckDB alone ----------------------------------------------------------------------------------------------------

STATES = st.one_of(
    st.lists(st.integers(-2, 2), min_size=1, max_size=40),
    st.lists(st.sampled_from(["", "a", "A", "ä", "a ", "'"]).filter(bool), min_size=1, max_size=40),
    st.lists(st.sampled_from([-0.0, 0.0, 0.1, 1e300]), min_size=1, max_size=40),
)
MOMENT = st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1))


def some_times(rows: int) -> st.SearchStrategy[Any]:
    """Times of one kind for so many rows, many of them equal."""

    def of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
        few = st.lists(values, min_size=1, max_size=4)
        return few.flatmap(lambda pool: st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))

    zoned = st.builds(lambda moment, zone: moment.replace(tzinfo=zone).isoformat(), MOMENT, st.sampled_from(ZONES))
    return st.one_of(
        st.none(),
        of(st.integers(-(2**53), 2**53)),
        of(st.floats(allow_nan=False, allow_infinity=False)),
        of(MOMENT.map(lambda moment: moment.date())),
        of(MOMENT),
        of(MOMENT.map(lambda moment: moment.isoformat())),
        of(MOMENT.map(lambda moment: str(moment))),
        of(zoned),
    )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_latest_is_that_of_a_log_for_all_small_tables(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    states = data.draw(STATES)
    rows = len(states)
    columns = {
        "x": states,
        "y": data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)),
        "action": data.draw(st.lists(st.sampled_from(["l", "r"]), min_size=rows, max_size=rows)),
        "reward": [0.0] * rows,
    }
    times = data.draw(some_times(rows))
    if times is not None:
        columns["time"] = times
    given_rows = pa.table(columns)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    parquet.write_table(given_rows, path)
    engine = DuckEngine(path, threads=1)
    log = podium.Log.from_frame(given_rows, state=["x", "y"])
    keys = Keys(("x", "y"), "action", None if times is None else "time")
    sizes = np.bincount(log.state_codes)
    assert latest_of(engine, keys) == log.latest.tolist()
    assert engine.census(keys) == Census(log.n_states, log.distinct, int(np.sum(sizes == 1)))
    engine.close()


@pytest.mark.parametrize("kind", TIMES)
def test_few_duplicates_are_found_among_many_states(kind: str, tmp_path: Path) -> None:
    state = np.random.default_rng(7).integers(0, 3 * ROWS, ROWS)
    rows = at_times(kind, state=state)
    engine = DuckEngine(write_parts(rows, tmp_path / "log", 5), threads=4)
    log = podium.Log.from_frame(rows, state="state")
    keys = Keys(("state",), "action", None if TIMES[kind] is None else "time")
    single = int(np.sum(np.bincount(log.state_codes) == 1))
    assert ROWS / 2 < single < log.distinct < ROWS
    assert latest_of(engine, keys) == log.latest.tolist()
    assert engine.census(keys) == Census(log.n_states, log.distinct, single)


def test_nanoseconds_count(tmp_path: Path) -> None:
    times = np.datetime64("2026-01-01T00:00:00", "ns") + np.random.default_rng(6).integers(0, 900, ROWS)
    rows = table(time=times)
    engine = DuckEngine(write_parts(rows, tmp_path / "log", 1))
    assert latest_of(engine, KEYS) == podium.Log.from_frame(rows, state="state").latest.tolist()


IN_BERLIN = """
import json, sys
from podium.engines import Keys
from podium.engines.duckdb import DuckEngine

print(json.dumps(DuckEngine(sys.argv[1]).latest(Keys(("state",), "action", "time")).to_pylist()))
"""


def test_the_time_zone_of_the_machine_does_not_matter(tmp_path: Path) -> None:
    rows = table(time=TIMES["texts"])
    pattern = write_parts(rows, tmp_path / "log", 1)
    command = [sys.executable, "-c", IN_BERLIN, pattern]
    done = subprocess.run(
        command, env={**os.environ, "TZ": "Europe/Berlin"}, capture_output=True, text=True, check=True
    )
    found = np.flatnonzero(json.loads(done.stdout)).tolist()
    assert found == podium.Log.from_frame(rows, state="state").latest.tolist()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("time", [None, "time"])
def test_little_memory_changes_nothing(time: str | None, threads: int, tmp_path: Path) -> None:
    rows = table(300_000)
    pattern = write_parts(rows, tmp_path / "log", 2)
    engine = DuckEngine(pattern, memory_limit="40MB", threads=threads, temp_dir=str(tmp_path))
    keys = Keys(("state",), "action", time)
    wanted = podium.Log.from_frame(rows if time else rows.drop_columns(["time"]), state="state").latest
    assert latest_of(engine, keys) == wanted.tolist()
    engine.close()
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


def test_rows_deleted_from_a_table_leave_no_gaps(tmp_path: Path) -> None:
    source = tmp_path / "log.duckdb"
    rows = table(300_000)
    with duckdb.connect(str(source)) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE log AS FROM given; DELETE FROM log WHERE rowid % 3 = 0")
    left = rows.filter(pa.array(np.arange(300_000) % 3 != 0))
    engine = DuckEngine(source)
    assert engine.rows() == 200_000
    assert latest_of(engine, KEYS) == podium.Log.from_frame(left, state="state").latest.tolist()
    assert engine.take(["reward"], np.array([199_999]), "row").column("reward")[0] == left["reward"][199_999]


def test_the_default_memory_grows_with_the_threads(tmp_path: Path) -> None:
    pattern = write_parts(table(300), tmp_path / "log", 1)

    def limit(threads: int) -> str:
        engine = DuckEngine(pattern, threads=threads)
        ((found,),) = engine.connection.execute("SELECT current_setting('memory_limit')").fetchall()
        return str(found)

    assert limit(1) == limit(8) == "305.1 MiB"
    assert limit(32) == "1.1 GiB"


def test_the_search_for_the_latest_rows_tells_how_far_it_is(tmp_path: Path) -> None:
    told: dict[str, int] = {}

    @contextmanager
    def keep(label: str, total: int) -> Iterator[Callable[[int], None]]:
        assert total == ROWS

        def advance(rows: int) -> None:
            told[label] = told.get(label, 0) + rows

        yield advance

    engine = DuckEngine(write_parts(table(), tmp_path / "log", 3), progress=keep)
    latest_of(engine, KEYS)
    engine.census(KEYS)
    engine.take(["reward"], np.array([3]), "the sample")
    assert told == {"latest rows": ROWS, "rows": ROWS, "counting states": ROWS, "the sample": ROWS}
