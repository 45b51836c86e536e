"""What an answer says that the one before did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def what_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences on order and verdicts; the policies must be the same.

    >>> a = {"policies": [{"name": "x"}, {"name": "y"}], "pairs": [{"a": "x", "b": "y", "verdict": "cannot tell"}]}
    >>> b = {"policies": [{"name": "y"}, {"name": "x"}], "pairs": [{"a": "y", "b": "x", "verdict": "better"}]}
    >>> what_changed(a, b)
    ['The order changed: before, it was x, y.', 'Decided now: y is better than x.']
    """
    order = [[p["name"] for p in result["policies"]] for result in (before, after)]
    if set(order[0]) != set(order[1]):
        return []
    found = [
        f"The order changed: before, it was {', '.join(order[0])}."
        if order[0] != order[1]
        else "The order is the same."
    ]
    old, new = claims(before), claims(after)
    gained = [f"{a} is better than {b}" for a, b in new if (a, b) not in old]
    lost = [f"{a} and {b}" for a, b in old if (a, b) not in new]
    if gained:
        found.append(f"Decided now: {listing(gained)}.")
    if lost:
        found.append(f"No longer decided: {listing(lost)}.")
    if not gained and not lost:
        found.append("Every verdict is the same.")
    return found


def claims(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs (better, worse) that are decided."""
    decided = [p for p in result["pairs"] if p["verdict"] != "cannot tell"]
    return [(p["a"], p["b"]) if p["verdict"] == "better" else (p["b"], p["a"]) for p in decided]


def listing(items: list[str], most: int = 4) -> str:
    return "; ".join(items[:most]) + (f"; and {len(items) - most} more" if len(items) > most else "")
