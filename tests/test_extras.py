"""Without an optional package, the error gives the line that installs it."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import sample

import podium
from podium.adapters import vowpal

LOG, POLICIES = sample(rows=30, actions=3)
NAMED = podium.Log.from_columns({"x": np.arange(3.0), "y": np.arange(3.0), "action": [0, 1, 0], "reward": [1.0, 0, 1]})


def lazy_frame() -> Any:
    import duckdb

    return duckdb.sql("select 1 as x, 0 as action, 1.0 as reward")


def skops_file(folder: Path) -> str:
    (folder / "model.skops").write_bytes(b"x")
    return str(folder / "model.skops")


CASES: dict[str, tuple[tuple[str, ...], Callable[[Path], Any], str, str]] = {
    "estimating propensities": (
        ("sklearn",),
        lambda _: podium.estimate_propensities(LOG),
        "scikit-learn is not installed; estimating propensities by logistic (estimate:frequencies does without) "
        "needs it",
        "podium[sklearn]",
    ),
    "a skops model": (
        ("skops",),
        lambda folder: podium.compare(LOG, {"a": skops_file(folder), "b": "uniform"}),
        "skops is not installed; reading a .skops model needs it",
        "podium[sklearn]",
    ),
    "a SQL policy": (
        ("duckdb",),
        lambda _: podium.compare(LOG, {"a": "sql:1", "b": "uniform"}),
        "duckdb is not installed; a policy in SQL needs it",
        "podium[duckdb]",
    ),
    "Parquet": (
        ("pyarrow",),
        lambda folder: podium.read_log(folder / "log.parquet"),
        "pyarrow is not installed; reading Parquet needs it",
        "podium[parquet]",
    ),
    "a frame that lives elsewhere": (
        ("pyarrow",),
        lambda _: podium.Log.from_frame(RELATION),
        "pyarrow is not installed; a frame of duckdb needs it",
        "podium[parquet]",
    ),
    "a pandas frame": (
        ("pandas",),
        lambda _: NAMED.to_frame("pandas"),
        "pandas is not installed; a pandas frame needs it",
        "podium[sklearn]",
    ),
    "a callable on named columns": (
        ("pandas",),
        lambda _: podium.compare(NAMED, {"a": lambda s: s["x"], "b": "uniform"}),
        "pandas is not installed; a pandas frame needs it",
        "podium[sklearn]",
    ),
}
RELATION = lazy_frame()


@pytest.mark.parametrize("name", CASES)
def test_a_missing_package_gives_the_line_that_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, use, message, extra = CASES[name]
    (tmp_path / "log.parquet").write_bytes(b"x")
    absent(monkeypatch, *packages)
    with pytest.raises(podium.PodiumError) as error:
        use(tmp_path)
    assert str(error.value) == f"{message}\n\nHint: run: pip install '{extra}'"
    assert isinstance(error.value, ImportError)


def test_adapters_and_frequencies_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, "obp", "vowpalwabbit", "sklearn", "pandas", "pyarrow", "duckdb", "torch")
    from podium.adapters import obp

    assert len(obp.from_feedback(obp.to_feedback(LOG))) == 30
    vowpal.write_log(LOG, tmp_path / "log.dsjson")
    assert podium.read_log(tmp_path / "log.dsjson").knows == "full"
    blank, _ = sample(rows=30, actions=3, knows="none")
    assert podium.estimate_propensities(blank, "frequencies").log.knows == "estimated"


def absent(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Packages cannot be imported, also where they are loaded already."""
    for module in list(sys.modules):
        if module.split(".")[0] in packages:
            monkeypatch.delitem(sys.modules, module)
    real = builtins.__import__

    def fake(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in packages:
            raise ImportError(f"No module named {name!r}")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", fake)
