"""Where the tests find the five datasets: PODIUM_DATA_DIR, else ../shared/data/uci beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("PODIUM_DATA_DIR") or Path(__file__).parents[2] / "shared" / "data" / "uci")

needs_data = pytest.mark.skipif(
    not (FOLDER / "abalone.csv").is_file(), reason=f"no datasets in {FOLDER}; set PODIUM_DATA_DIR"
)
