"""Whether JSON has the form that a schema asks for: the part of JSON Schema that podium's own schemas use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def first_flaw(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, at: str = "$") -> str:
    """Where a value first departs from a schema, as a sentence; "" where it does not.

    It knows type, enum, const, required, properties, additionalProperties, items, minItems, minimum, maximum and
    references to "#/$defs/NAME".

    >>> first_flaw({"rows": "x"}, {"type": "object", "properties": {"rows": {"type": "integer"}}})
    "$.rows must be of type integer; it is 'x'"
    """
    root = schema if root is None else root
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(is_type(value, kind) for kind in wanted):
        return f"{at} must be of type {' or '.join(wanted)}; it is {brief(value)}"
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and value not in allowed:
        return f"{at} must be {' or '.join(map(repr, allowed))}; it is {brief(value)}"
    if is_type(value, "number"):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return "" if low <= value <= high else f"{at} must lie between {low} and {high}; it is {brief(value)}"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"{at} must have at least {schema['minItems']} entries; it has {len(value)}"
        parts = {f"{at}[{n}]": (item, schema.get("items", {})) for n, item in enumerate(value)}
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return f"{at}.{name} is missing"
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        parts = {f"{at}.{name}": (item, known.get(name, others)) for name, item in value.items()}
    else:
        return ""
    return next((flaw for place, (item, part) in parts.items() if (flaw := first_flaw(item, part, root, place))), "")


def is_type(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
