"""Engines under one name each: a table goes in, a log comes out, and all of them must say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from logs import ENGINES, write_parts

import podium

Open = Callable[..., Any]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_table(tmp_path: Path) -> Open:
    """A table as a log behind an engine, in `parts` files."""

    def open_(table: pa.Table, engine: str, parts: int = 3, options: dict[str, Any] | None = None, **roles: Any) -> Any:
        if engine == "memory":
            return podium.Log.from_frame(table, **roles)
        place = tmp_path / f"{engine}-{parts}-{len(list(tmp_path.iterdir()))}"
        return podium.scan_log(write_parts(table, place, parts), engine=engine, **roles, **(options or {}))

    return open_
