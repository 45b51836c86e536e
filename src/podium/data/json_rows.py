"""The rows of a JSON text: one object per line, a list of objects, or an object that holds a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def json_lines_of(content: str) -> Iterator[str]:
    """The objects of a JSON text, one per line: those of a list, of the only list inside an object, or its lines."""
    whole: Any = None
    if not has_a_row_per_line(content):
        try:
            whole = json.loads(content)
        except (ValueError, RecursionError):
            whole = None
    if isinstance(whole, dict):
        whole = rows_inside(whole)
    if isinstance(whole, list) and whole and all(isinstance(row, dict) for row in whole):
        yield from map(json.dumps, whole)
    else:
        yield from filter(str.strip, content.split("\n"))


def has_a_row_per_line(content: str) -> bool:
    """Whether the first line of a JSON text is an object that does not hold a table."""
    first, _, rest = content.lstrip().partition("\n")
    if not first.startswith("{"):
        return False
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest.strip()) or not isinstance(row, dict) or rows_inside(row) is None


def rows_inside(table: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of {"data": [{...}, ...]}, of {"x": [1, 2], "y": [3, 4]}, or of {"x": {"0": 1, "1": 2}, ...}."""
    lists = [x for x in table.values() if isinstance(x, list)]
    tables = [x for x in lists if len(x) > 1 and all(isinstance(row, dict) for row in x)]
    if len(lists) == len(tables) == 1:
        return list(tables[0])
    columns = [list(x.values()) if isinstance(x, dict) else x for x in table.values()]
    keys = {tuple(x) for x in table.values() if isinstance(x, dict)}
    numbered = len(keys) == 1 and len(next(iter(keys))) > 1 and all(key.isdigit() for key in next(iter(keys)))
    same = all(isinstance(x, list) for x in columns) and len({len(x) for x in columns}) == 1
    if len(columns) < 2 or not same or len(columns[0]) < 2 or (keys and not numbered) or (keys and lists):
        return None
    if any(isinstance(cell, list | dict) for column in columns for cell in column):
        return None
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]
