"""The latest row behind DuckDB, by times that floats and microseconds would merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from podium import scan_log
from podium.engines import Keys

MOMENT = "2024-01-01T00:00:00.12345678"


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ([1731780000000000100, 1731780000000000000], pa.int64()),
        ([2**63 + 1, 2**63], pa.uint64()),
        ([10**30 + 1, 10**30], pa.decimal128(38, 0)),
        ([f"{MOMENT}9Z", f"{MOMENT}8Z"], pa.string()),
    ],
)
def test_the_latest_row_is_found_by_exact_times(times: list[Any], kind: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    cells = {"state": [0, 0], "action": ["a", "a"], "reward": [1.0, 5.0], "time": pa.array(times, kind)}
    parquet.write_table(pa.table(cells), tmp_path / "log.parquet")
    log: Any = scan_log(tmp_path / "log.parquet", engine="duckdb", time="time")
    assert log.engine.latest(Keys(("state",), "action", "time")).to_pylist() == [True, False]
    assert log.collect().latest.tolist() == [0]
