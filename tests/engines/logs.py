"""Logs with the traps that engines fall into, and how close two answers must be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROWS = 24_000
SAMPLE = 500  # rows of the sample in these tests
ENGINES = ["duckdb"]  # each is held against the log in memory


def write_parts(table: pa.Table, folder: Path, parts: int) -> str:
    """The rows in several Parquet files, some with small row groups and one of them empty."""
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-table.num_rows // parts)
    for i in range(parts):
        parquet.write_table(table.slice(i * step, step), folder / f"part-{2 * i:03}.parquet", row_group_size=7000)
    if parts > 1:
        parquet.write_table(table.slice(0, 0), folder / "part-001.parquet")
    return str(folder / "*.parquet")


def table(rows: int = ROWS, seed: int = 0, offset: float = 0.0, **changes: Any) -> pa.Table:
    """Rows with repeated states, ties in time, propensities, and policies of which two are nearly equal."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 4, rows)
    columns: dict[str, Any] = {
        "state": rng.integers(0, max(1, rows // 5), rows),
        "action": np.array(["call", "mail", "none", "sms"])[action],
        "reward": offset + rng.normal(size=rows) + 0.1 * action,
        "propensity": rng.uniform(0.1, 0.9, rows),
        "time": rng.integers(0, 20, rows),
    }
    columns |= {f"pi_p{k}": rng.random(rows) for k in range(4)}
    columns["pi_twin"] = np.where(rng.random(rows) < 0.5, columns["pi_p2"], np.clip(columns["pi_p2"] + 1e-7, 0, 1))
    columns |= changes
    return pa.table(columns)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from flat(member, f"{name}/{key}")
    elif isinstance(value, list | tuple):
        for i, member in enumerate(value):
            yield from flat(member, f"{name}/{i}")
    else:
        yield name, value


def assert_alike(found: dict[str, Any], wanted: dict[str, Any], scale: float) -> None:
    """Numbers within 1e-12 of the scale of the terms and 1e-9 of themselves; everything else equal."""
    ours, theirs = dict(flat(found)), dict(flat(wanted))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        if name.endswith("settings/engine"):
            continue
        other = theirs[name]
        if isinstance(value, float) and isinstance(other, float):
            close = 0.0 if name.endswith("p_best") else 1e-12 * scale
            assert math.isclose(value, other, rel_tol=1e-9 if close else 0.0, abs_tol=close), (name, value, other)
        else:
            assert value == other, name
