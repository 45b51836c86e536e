"""Files to columns and logs: CSV, Parquet and JSON lines. Rows are counted from 1, header excluded."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.columns import Column, match_label, to_array
from podium.errors import MissingExtra, PodiumError, count
from podium.frames import frame_to_columns
from podium.log import Log

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
PARQUET_ENDINGS = (".parquet", ".pq")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
WHOLE = re.compile(r"[+-]?\d{1,18}")
CODE = re.compile(r"[+-]?0\d+")  # 007 is a name, not the number 7


def read_log(
    path: str | Path,
    *,
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
    actions: Sequence[Any] = (),
    text: Sequence[str] = (),
) -> Log:
    """Read a log from a CSV, Parquet or JSON lines file.

    Parameters
    ----------
    path : a file that ends in .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .pq
    state, action, reward, propensity, time, unit : the columns that play these roles; every column that plays
        none, and is no policy (pi_<name>), is state
    actions : the action space, where it holds more than the logged actions; texts are matched to numbers
    text : columns to read as texts although they look like numbers (codes, postcodes)
    """
    columns = read_columns(path, text)
    if actions and action in columns:
        observed = [] if columns[action].dtype == object else np.unique(columns[action]).tolist()
        actions = [match_label(a, observed) if isinstance(a, str) else a for a in actions]
    return Log.from_columns(
        columns,
        state=state,
        action=action,
        reward=reward,
        propensity=propensity,
        time=time,
        unit=unit,
        actions=actions,
    )


def read_columns(path: str | Path, text: Collection[str] = ()) -> dict[str, Column]:
    """The columns of a file by header; cells are numbers, texts, or None where empty."""
    path = Path(path)
    if not path.exists():
        raise PodiumError(f"there is no file {str(path)!r}", hint="check the path; it is read from the current folder.")
    if path.is_dir():
        raise PodiumError(f"{str(path)!r} is a folder", hint="name one file.")
    ending = path.suffix.lower()
    if ending in PARQUET_ENDINGS:
        columns = read_parquet(path)
    elif ending in JSON_ENDINGS:
        columns = read_json_lines(path)
    elif ending in TEXT_ENDINGS:
        columns = read_csv(path, text)
    else:
        known = ", ".join((*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS))
        raise PodiumError(f"{path.name!r} has an ending that podium does not know", hint=f"known endings: {known}.")
    for name in text:
        if name not in columns:
            raise PodiumError(f"{path.name}: there is no column {name!r} to read as text", hint=have(columns))
        if ending not in TEXT_ENDINGS:
            columns[name] = np.array([x if x is None else str(x) for x in columns[name].tolist()], dtype=object)
    return columns


def have(columns: Mapping[str, Any]) -> str:
    return "the columns are " + ", ".join(columns) + "."


def read_text(path: Path) -> str:
    """The text of a file, or a clear word on why it is none."""
    raw = path.read_bytes()
    if b"\0" in raw[:65536] or raw[:2] in (b"PK", b"\x1f\x8b"):
        raise PodiumError(
            f"{path.name} is not a text file",
            hint="give CSV or JSON lines as plain text; a Parquet file must end in .parquet.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = raw.count(b"\n", 0, error.start)  # the header is line 0
        place = f"row {row}" if row else "the header"
        raise PodiumError(
            f"{path.name} is not UTF-8: {place} holds the byte 0x{raw[error.start]:02x}",
            hint="save the file as UTF-8.",
        ) from error


def read_csv(path: Path, text: Collection[str]) -> dict[str, Column]:
    """A CSV file; the separator is a comma, or a semicolon or tab where the header has no comma."""
    content = read_text(path)
    first = content.split("\n", 1)[0]
    separator = next((s for s in ",\t;" if s in first), ",") if path.suffix != ".tsv" else "\t"
    reader = csv.reader(content.splitlines(keepends=True), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error as error:
        raise PodiumError(
            f"{path.name}: row {max(len(rows), 1)} or the next cannot be read: {error}",
            hint='write a quote inside a quoted cell as "".',
        ) from error
    if not rows:
        raise PodiumError(f"{path.name} is empty", hint="a log has a header line and one line per interaction.")
    header, *body = rows
    header = [h.strip() for h in header]
    for i, name in enumerate(header):
        if not name:
            raise PodiumError(f"{path.name}: column {i + 1} has no name", hint="give every column a header.")
        if name in header[:i]:
            raise PodiumError(
                f"{path.name}: the column {name!r} appears twice", hint="give each column a name of its own."
            )
    if not body:
        raise PodiumError(f"{path.name} has a header and no rows", hint="a log needs at least one logged interaction.")
    widths = np.fromiter(map(len, body), np.int64, len(body))
    ragged = np.flatnonzero(widths != len(header))
    if ragged.size:
        raise PodiumError(
            f"{path.name}: row {ragged[0] + 1} has {count(int(widths[ragged[0]]), 'cell')}; "
            f"the header has {len(header)} ({count(ragged.size, 'row')})",
            hint='quote cells that hold a separator: "a, b".',
        )
    cells = zip(*body, strict=True)
    return {name: type_cells(column, name in text) for name, column in zip(header, cells, strict=True)}


def type_cells(cells: Sequence[str], as_text: bool) -> Column:
    """A column of a CSV file as whole numbers, numbers or texts; a mixture stays one, for the log to refuse."""
    if not as_text:
        try:
            column = np.array(cells, dtype=np.str_).astype(np.float64) if "_" not in "".join(cells) else None
        except ValueError:
            column = None
        if column is not None and not any(map(CODE.fullmatch, cells)):
            if all(map(WHOLE.fullmatch, cells)):
                return np.array(cells, dtype=np.str_).astype(np.int64)
            return column
    mixed = np.empty(len(cells), dtype=object)
    numeric = not as_text and not any(CODE.fullmatch(c.strip()) for c in cells)
    mixed[:] = [cell_value(c, numeric) for c in cells]
    return mixed


def cell_value(cell: str, numeric: bool) -> Any:
    if not cell:
        return None
    return float(cell) if numeric and NUMBER.fullmatch(cell.strip()) else cell


def read_json_lines(path: Path) -> dict[str, Column]:
    """One JSON object per line; a list or an object as a value becomes several columns."""
    content = read_text(path)
    if not content.strip():
        raise PodiumError(f"{path.name} is empty", hint="a log has one JSON object per line.")
    records: list[dict[str, Any]] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=unrepeated)
        except ValueError as error:
            raise PodiumError(
                f"{path.name}: row {number} is not valid JSON: {error}",
                hint="write one JSON object per line.",
            ) from error
        if not isinstance(record, dict):
            raise PodiumError(f"{path.name}: row {number} is no JSON object", hint="write one JSON object per line.")
        records.append(flatten(record))
    names = list(dict.fromkeys(name for record in records for name in record))
    return {name: json_column([record.get(name) for record in records]) for name in names}


def json_column(values: list[Any]) -> Column:
    column = to_array(values)
    return column if column.ndim == 1 else np.array(values, dtype=object)


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"the column {twice!r} appears twice")
    return seen


def flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """{"state": [1, 2], "pi_new": {"a": 1}} -> {"state[0]": 1, "state[1]": 2, "pi_new:a": 1}."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, list):
            flat |= {f"{name}[{i}]": v for i, v in enumerate(value)}
        elif isinstance(value, dict):
            flat |= {f"{name}:{key}": v for key, v in value.items()}
        else:
            flat[name] = value
    return flat


def read_parquet(path: Path) -> dict[str, Column]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet") from error
    try:
        with pa.memory_map(str(path)) as source:
            table = parquet.ParquetFile(source).read()
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise PodiumError(f"{path.name} is not a whole Parquet file: {error}", hint="write the file again.") from error
    if table.num_rows == 0:
        raise PodiumError(f"{path.name} has no rows", hint="a log needs at least one logged interaction.")
    return frame_to_columns(table)
