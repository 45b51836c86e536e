"""The experiments are tested with what podium ships, whatever the user has set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def shipped_tables() -> Iterator[None]:
    """No variable names another source of the datasets."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PODIUM_DATA_DIR", "PODIUM_DATA_URL"):
            patch.delenv(name, raising=False)
        yield
