"""Logs with the traps that engines fall into, and how close two answers must be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 24_000


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
            assert math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12 * scale), (name, value, other)
        else:
            assert value == other, name
