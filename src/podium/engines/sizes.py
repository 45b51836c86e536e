"""How many rows, columns and actions a file holds, known from its metadata or from a few of its lines."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

from podium.data.formats import content_of
from podium.data.read import JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, separator_of

CHUNK = 1 << 18  # bytes of a text file that are looked at, at its beginning, in the middle and at its end
FIRST = 8192  # rows whose actions are counted


@dataclass(frozen=True)
class Size:
    """A file as it seems: exact for Parquet, but for the actions; of text, as its lines are long."""

    kind: str  # "parquet", "text" or "json"
    rows: int
    columns: int
    actions: int  # that occur in the first rows


def size_of(path: Path, action: str) -> Size | None:
    """The size of a file; None of one that cannot be known before it is read."""
    ending = path.suffix.lower()
    if ending not in PARQUET_ENDINGS and content_of(path) is not None:
        return None
    try:
        if ending in PARQUET_ENDINGS:
            return parquet_size(path, action)
        if ending in TEXT_ENDINGS:
            return text_size(path, action)
        return json_size(path, action) if ending in JSON_ENDINGS else None
    except Exception:  # what is wrong with the file is told when it is read
        return None


def parquet_size(path: Path, action: str) -> Size:
    from pyarrow import parquet

    with path.open("rb") as source:
        file = parquet.ParquetFile(source)
        facts = file.metadata
        actions = 0
        if action in file.schema_arrow.names and facts.num_rows:
            first = next(file.iter_batches(batch_size=FIRST, columns=[action]))
            actions = len(first.column(0).unique())
        return Size("parquet", facts.num_rows, facts.num_columns, actions)


def text_size(path: Path, action: str) -> Size:
    start, rows = first_lines(path)
    lines = csv.reader(io.StringIO(start, newline=""), delimiter=separator_of(start, path))
    header = [h.strip() for h in next(lines)]
    place = header.index(action) if action in header else None
    seen = set() if place is None else {row[place] for row in lines if len(row) == len(header)}
    return Size("text", max(rows - 1, 0), len(header), len(seen))


def json_size(path: Path, action: str) -> Size:
    start, rows = first_lines(path)
    records = [json.loads(line) for line in start.splitlines() if line.strip()]
    actions = len({json.dumps(record.get(action)) for record in records})
    return Size("json", rows, max(len(json.dumps(record).split('":')) - 1 for record in records), actions)


def first_lines(path: Path) -> tuple[str, int]:
    """The whole lines at the beginning of a text, and how many lines it has in all, as long as those looked at."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(CHUNK)
        looked, breaks = len(start), start.count(b"\n")
        for place in (size // 2, size - CHUNK):
            if size > 3 * CHUNK:
                file.seek(place)
                block = file.read(CHUNK)
                looked, breaks = looked + len(block), breaks + block.count(b"\n")
    text = start.decode("utf-8-sig", errors="replace")
    if len(start) == size:
        return text, breaks + (not start.endswith(b"\n"))
    return text[: text.rfind("\n") + 1], int(float(f"{size * breaks / looked:.2g}"))
