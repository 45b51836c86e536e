"""Every example in the README and the docs runs and prints what the page says, on this machine and on others.

To run the examples as another processor would: OPENBLAS_CORETYPE=Prescott python -m pytest tests/test_documents.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import PAGES, run_page
from numerals import disagreements

ROOT = Path(__file__).parents[1]
HEAVY = {"docs/adapters.md", "docs/episodes.md"}  # their examples use Stable-Baselines3 and Minari


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.heavy) if p in HEAVY else p for p in PAGES])
def test_a_page_shows_what_its_examples_print(page: str) -> None:
    path = ROOT / page
    found = disagreements(path.read_text(encoding="utf-8"), run_page(path))
    assert not found, "\n".join([f"{page} shows other numbers or words than its examples print:", *found])


@pytest.mark.parametrize("page", ["README.md", "docs/theory.md"])
def test_a_page_has_examples(page: str) -> None:
    assert "```python\n" in (ROOT / page).read_text(encoding="utf-8")
