"""Every example in the README and the docs runs and prints what the page says, on this machine and on others.

To run the examples as another processor would: OPENBLAS_CORETYPE=Prescott python -m pytest tests/test_documents.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from documents import PAGES, run_page
from numerals import disagreements

ROOT = Path(__file__).parents[1]
HEAVY = {"docs/adapters.md", "docs/episodes.md"}  # their examples use Stable-Baselines3 and Minari
FIRST = {"README.md", "docs/tutorial.md", "docs/theory.md"}


def marked(page: str) -> Any:
    kinds = [pytest.mark.heavy] if page in HEAVY else [] if page in FIRST else [pytest.mark.slow]
    return pytest.param(page, marks=kinds)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_a_page_shows_what_its_examples_print(page: str) -> None:
    path = ROOT / page
    found = disagreements(path.read_text(encoding="utf-8"), run_page(path))
    assert not found, "\n".join([f"{page} shows other numbers or words than its examples print:", *found])


@pytest.mark.parametrize("page", ["README.md", "docs/theory.md"])
def test_a_page_has_examples(page: str) -> None:
    assert "```python\n" in (ROOT / page).read_text(encoding="utf-8")
