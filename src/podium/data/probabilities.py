"""Probabilities that were logged: how far they may be off, and a column of them, checked."""

from __future__ import annotations

from typing import Any

from podium.data.columns import Floats, numbers_column
from podium.data.errors import percent_hint, refuse_rows

AGREE = 1e-6  # how far probabilities may be from their sum, and p_n from the behaviour policy
ROUNDED, MOST_ROUNDED = 5e-4, 5e-3  # what three decimals may lack of a share, and of all shares together
SMALLEST = 1e-30  # propensities below overflow when they are squared
HINT = "a propensity is the probability of the logged action, in (0, 1]. LDE and DiM need no propensities."


def checked_propensities(values: Any, what: str) -> Floats:
    """Probabilities of the logged actions, in (0, 1]."""
    p = numbers_column(values, what, HINT)
    refuse_rows(what, "must be > 0", p <= 0, p, HINT)
    refuse_rows(what, f"must be at least {SMALLEST:g}", p < SMALLEST, p, HINT)
    refuse_rows(what, "must be <= 1", p > 1 + AGREE, p, percent_hint(p, what) or HINT)
    return p
