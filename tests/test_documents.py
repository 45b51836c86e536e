"""Every example in the README and the docs runs and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import PAGES, run_page

ROOT = Path(__file__).parents[1]
HEAVY = {"docs/adapters.md", "docs/episodes.md"}  # their examples use Stable-Baselines3 and Minari


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.heavy) if p in HEAVY else p for p in PAGES])
def test_a_page_shows_what_its_examples_print(page: str) -> None:
    path = ROOT / page
    assert run_page(path) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/theory.md"])
def test_a_page_has_examples(page: str) -> None:
    assert "```python\n" in (ROOT / page).read_text(encoding="utf-8")
