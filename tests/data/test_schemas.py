"""The form of JSON, checked by a schema."""

from __future__ import annotations

from typing import Any

import pytest

from podium.data.schemas import first_flaw

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": "integer", "minimum": 1, "maximum": 9},
        "s": {"enum": ["a", "b"]},
        "l": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/x"}},
        "c": {"const": 3},
    },
    "additionalProperties": {"type": ["string", "null"]},
    "$defs": {"x": {"type": "number"}},
}


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ({"n": 1, "s": "a", "l": [1, 2.5], "c": 3, "more": None}, ""),
        ([], "$ must be of type object; it is []"),
        ({}, "$.n is missing"),
        ({"n": True}, "$.n must be of type integer; it is True"),
        ({"n": 1.5}, "$.n must be of type integer; it is 1.5"),
        ({"n": 10}, "$.n must lie between 1 and 9; it is 10"),
        ({"n": 1, "s": "c"}, "$.s must be 'a' or 'b'; it is 'c'"),
        ({"n": 1, "c": 4}, "$.c must be 3; it is 4"),
        ({"n": 1, "l": []}, "$.l must have at least 1 entries; it has 0"),
        ({"n": 1, "l": [1, "x"]}, "$.l[1] must be of type number; it is 'x'"),
        ({"n": 1, "more": 5}, "$.more must be of type string or null; it is 5"),
        (
            {"n": 1, "more": list(range(99))},
            f"$.more must be of type string or null; it is {str(list(range(99)))[:57]}...",
        ),
    ],
)
def test_the_first_flaw_is_named(value: Any, flaw: str) -> None:
    assert first_flaw(value, SCHEMA) == flaw
