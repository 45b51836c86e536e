"""Engines under one name each: a table goes in, a log comes out, and all of them must say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from logs import ENGINES, SAMPLE, write_parts

import podium
from podium.engines.rows import Rows, open_rows
from podium.engines.sample import SAMPLE_ROWS

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs of more than 500 rows be read in parts: judging a sample of 20,000 takes seconds."""
    monkeypatch.setattr("podium.data.scan.SAMPLE_ROWS", SAMPLE)
    monkeypatch.setattr("podium.estimates.evaluate.open_rows", open_with_small_sample)


def open_with_small_sample(*arguments: Any, size: int, **options: Any) -> Rows:
    return open_rows(*arguments, size=SAMPLE if size == SAMPLE_ROWS else size, **options)


@pytest.fixture(params=[*ENGINES, pytest.param("spark", marks=pytest.mark.system)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    """A session on a cluster of two workers."""
    session = cluster.session()
    yield session
    session.stop()


@pytest.fixture
def open_table(tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """A table as a log behind an engine, in `parts` files."""

    def open_(table: pa.Table, engine: str, parts: int = 3, options: dict[str, Any] | None = None, **roles: Any) -> Any:
        if engine == "memory":
            return podium.Log.from_frame(table, **roles)
        place = tmp_path / f"{engine}-{parts}-{len(list(tmp_path.iterdir()))}"
        if engine == "spark":
            options = {"session": request.getfixturevalue("spark"), **(options or {})}
        return podium.scan_log(write_parts(table, place, parts), engine=engine, **roles, **(options or {}))

    return open_
