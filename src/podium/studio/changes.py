"""What an answer says that the one before did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def what_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences on settings, order and verdicts; the policies must be the same.

    >>> a = {"policies": [{"name": "x"}, {"name": "y"}], "pairs": [{"a": "x", "b": "y", "verdict": "cannot tell"}]}
    >>> b = {"policies": [{"name": "y"}, {"name": "x"}], "pairs": [{"a": "y", "b": "x", "verdict": "better"}]}
    >>> print(*what_changed(a | {"settings": {"level": 0.95}}, b | {"settings": {"level": 0.9}}), sep=chr(10))
    Level 0.9 instead of 0.95.
    The order changed: before, it was x, y.
    Decided now: y is better than x.
    """
    order = [[p["name"] for p in result["policies"]] for result in (before, after)]
    if set(order[0]) != set(order[1]):
        return []
    found = [f"{name} {b} instead of {a}." for name, a, b in settings(before, after)]
    found += [
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


def settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The settings that differ: what they are called, before, after."""
    names = {"estimator": "Ranked by", "baseline": "Baseline", "level": "Level", "lower_is_better": "Lower is better:"}
    pairs = [(label, before["settings"].get(key), after["settings"].get(key)) for key, label in names.items()]
    pairs.append(("Propensities:", *(result.get("log", {}).get("propensities") for result in (before, after))))
    words = {True: "yes", False: "no"}
    return [(label, str(words.get(a, a)), str(words.get(b, b))) for label, a, b in pairs if a != b]


def claims(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs (better, worse) that are decided."""
    decided = [p for p in result["pairs"] if p["verdict"] != "cannot tell"]
    return [(p["a"], p["b"]) if p["verdict"] == "better" else (p["b"], p["a"]) for p in decided]


def listing(items: list[str], most: int = 4) -> str:
    return "; ".join(items[:most]) + (f"; and {len(items) - most} more" if len(items) > most else "")
