"""Files to columns: CSV, Parquet and JSON lines. Rows are counted from 1, header excluded."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.adapters import vowpal
from podium.data.arrays import arrow_column, arrow_texts, odd_kind, shared_texts
from podium.data.columns import EXACT, Column, match_label, repeated, to_array
from podium.data.errors import PodiumError, count, needs
from podium.data.files import note_input
from podium.data.invisible import visible
from podium.data.json_rows import json_lines_of
from podium.data.nested import spread_table
from podium.data.paths import Watch, check_local, exists, missing_file
from podium.data.roles import available

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
PARQUET_ENDINGS = (".parquet", ".pq")
KINDS = (PARQUET_ENDINGS, TEXT_ENDINGS, JSON_ENDINGS)  # of a folder, the first that is there counts
VOWPAL_ENDINGS = (".dsjson", ".vw", ".dsjson.gz", ".vw.gz")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
WHOLE = re.compile(r"[+-]?\d{1,300}")
SEPARATORS = ",\t;|"  # of CSV files, the likeliest first
QUOTED = re.compile(r'"[^"]*"')
CODE = re.compile(r"[+-]?0\d+")  # 007 is a name, not the number 7
SAVE_HINT = "save the file as UTF-8."
QUOTE_HINT = 'close every quote, and write a quote inside a quoted cell as "".'
ROWS_HINT = "write a header line and at least one row."
START, LONGEST_HEADER = 1 << 16, 1 << 26  # bytes by which a file is known; that a header may have


def match_actions(actions: Sequence[Any], column: Column) -> list[Any]:
    """An action space in which texts name the numbers of a column that holds numbers."""
    observed = [] if column.dtype == object else np.unique(column).tolist()
    return [match_label(a, observed) if isinstance(a, str) else a for a in actions]


def read_columns(path: str | Path, text: Collection[str] = ()) -> dict[str, Column]:
    """The columns of a file by header; cells are numbers, texts, or None where empty."""
    path = one_file(path)
    ending = path.suffix.lower()
    if ending in PARQUET_ENDINGS:
        columns = read_parquet(path, text)
    elif ending in JSON_ENDINGS:
        columns = read_json_lines(path)
    elif ending in TEXT_ENDINGS:
        columns = read_csv(path, text)
    elif path.name.lower().endswith(VOWPAL_ENDINGS):
        columns = vowpal.read_columns(path)
    else:
        known = ", ".join((*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS, ".xlsx", ".ods", *VOWPAL_ENDINGS[:2]))
        raise PodiumError(f"{path.name!r} has an ending that podium does not know", hint=f"known endings: {known}.")
    refuse_zero_bytes(columns)
    check_text(path.name, text, columns)
    for name in text:
        if ending not in (*TEXT_ENDINGS, *PARQUET_ENDINGS):
            columns[name] = np.array([x if x is None else str(x) for x in columns[name].tolist()], dtype=object)
    return columns


def one_file(path: str | Path) -> Path:
    """The file that a path names, noted as an input."""
    check_local(path)
    path = Path(path)
    if not exists(path):
        raise missing_file(path)
    if path.is_dir():
        raise PodiumError(f"{str(path)!r} is a folder", hint="name one file.")
    if path.is_char_device() or path.is_block_device():
        raise PodiumError(f"{str(path)!r} is a device, which may never end", hint="name a file.")
    note_input(path)
    return path


def refuse_zero_bytes(names: Iterable[str]) -> None:
    for name in names:
        if "\0" in name:
            raise PodiumError(f"the name of the column {name!r} holds a zero byte", hint="give it another name.")


def check_text(file: str, text: Iterable[str], columns: Collection[str]) -> None:
    """Every column that is to be read as texts is there."""
    for name in text:
        if name not in columns:
            raise PodiumError(f"{file}: there is no column {name!r} to read as text", hint=available(columns))


def read_text(path: Path) -> str:
    """The text of a file, or a clear word on why it is none."""
    return decode(read_bytes(path), path)


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PodiumError(f"{path.name} cannot be read: {error.strerror}", hint="check who may read it.") from error


def decode(raw: bytes, path: Path, whole: bool = True) -> str:
    """The bytes of a text file as text; of its start, the last character may be cut off."""
    check_start(raw[:START], path)
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=whole)
    except UnicodeDecodeError as error:
        row = rows_in(raw[: error.start].decode("utf-8-sig") + "x", path)  # the byte's own row is the last
        place = f"row {row}" if row else "the header"
        raise PodiumError(
            f"{path.name} is not UTF-8: {place} holds the byte 0x{raw[error.start]:02x}", hint=SAVE_HINT
        ) from error


def check_start(raw: bytes, path: Path) -> None:
    """Refuse a file that does not begin like a text."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise PodiumError(f"{path.name} is UTF-16, not UTF-8", hint=SAVE_HINT)
    if b"\0" in raw or raw[:2] in (b"PK", b"\x1f\x8b"):
        raise PodiumError(
            f"{path.name} is not a text file",
            hint="give CSV or JSON lines as plain text; a Parquet file must end in .parquet.",
        )


def rows_in(content: str, path: Path) -> int:
    """How many rows a text holds, header excluded."""
    if path.suffix.lower() in JSON_ENDINGS:
        return sum(1 for line in content.split("\n") if line.strip())
    lines = csv.reader(io.StringIO(content, newline=""), delimiter=separator_of(content, path))
    return sum(1 for row in lines if row) - 1


def separator_of(content: str, path: Path) -> str:
    """A comma; a tab, a semicolon or a pipe where the header has no comma outside quotes."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    header = QUOTED.sub("", next((line for line in content.splitlines() if line.strip()), ""))
    return next((s for s in SEPARATORS if s in header), ",")


def read_csv(path: Path, text: Collection[str]) -> dict[str, Column]:
    """A CSV file."""
    return parse_csv(read_text(path), path, text)


def parse_csv(
    content: str, path: Path, text: Collection[str] = (), typed: Callable[[Sequence[str], bool], Column] | None = None
) -> dict[str, Column]:
    """The columns of a CSV text; `path` is the file it came from, for the separator and for messages.

    `typed` makes a column of cells; those that are to be read as text are named by `text`.
    """
    typed = typed or type_cells
    lines = io.StringIO(content, newline="")  # lines end as CSV lines do; a cell may hold any other separator
    reader = csv.reader(lines, delimiter=separator_of(content, path), strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if not is_blank(row))
    except csv.Error as error:
        place = f"row {len(rows)}" if rows else "the header"
        raise PodiumError(
            f"{path.name}: {place} cannot be read: {error}",
            hint=quote_hint(error),
        ) from error
    if not rows:
        raise PodiumError(f"{path.name} is empty", hint=ROWS_HINT)
    header, *body = rows
    header = [visible(h) for h in header]
    check_header(header, path)
    if not body:
        raise PodiumError(f"{path.name} has a header and no rows", hint="write at least one row below the header.")
    widths = np.fromiter(map(len, body), np.int64, len(body))
    ragged = np.flatnonzero(widths != len(header))
    if ragged.size:
        raise PodiumError(
            f"{path.name}: row {ragged[0] + 1} has {count(int(widths[ragged[0]]), 'cell')}; "
            f"the header has {len(header)} ({count(ragged.size, 'row')})",
            hint='quote cells that hold a separator: "a, b".',
        )
    cells = zip(*body, strict=True)
    return {name: typed(column, name in text) for name, column in zip(header, cells, strict=True)}


def check_quotes(path: Path, separator: str) -> int | None:
    """Refuse a quote that is not closed: engines leave out what comes after it without a word.

    Returns the number of rows without the header; None for a file without quotes.
    """
    with path.open("rb") as raw:
        if not any(b'"' in block for block in iter(partial(raw.read, 1 << 20), b"")):
            return None
    rows = 0
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            for row in csv.reader(file, delimiter=separator, strict=True):
                rows += not is_blank(row)
        except csv.Error as error:
            raise PodiumError(
                f"{path.name}: {f'row {rows}' if rows else 'the header'} cannot be read: {error}",
                hint=quote_hint(error),
            ) from error
    return rows - 1


def quote_hint(error: csv.Error) -> str:
    long = "field larger" in str(error)
    return "keep cells shorter; is a quote left open that begins before this cell?" if long else QUOTE_HINT


def is_blank(row: Sequence[str]) -> bool:
    return not row or (len(row) == 1 and row[0].isspace())


def read_csv_header(path: Path) -> list[str]:
    """The names in the first line of a CSV file that may be too large to read."""
    start = start_of(path)
    lines = csv.reader(io.StringIO(start, newline=""), delimiter=separator_of(start, path), strict=True)
    try:
        header = [visible(h) for h in next((row for row in lines if not is_blank(row)), [])]
    except csv.Error as error:
        raise PodiumError(f"{path.name}: the header cannot be read: {error}", hint=quote_hint(error)) from error
    if not header:
        raise PodiumError(f"{path.name} is empty", hint=ROWS_HINT)
    check_header(header, path)
    return header


def start_of(path: Path) -> str:
    """The first lines of a text file."""
    try:
        with path.open("rb") as file:
            raw = file.read(START)
            if b"\n" not in raw:
                raw += file.readline(LONGEST_HEADER)
    except OSError as error:
        raise PodiumError(f"{path.name} cannot be read: {error.strerror}", hint="check who may read it.") from error
    return decode(raw, path, whole=False)


def check_header(header: Sequence[str], path: Path) -> None:
    """Every column has a name of its own."""
    if "" in header:
        raise PodiumError(f"{path.name}: column {header.index('') + 1} has no name", hint="give every column a header.")
    if (twice := repeated(header)) is not None:
        said = f"{path.name}: the column {twice!r} appears twice"
        raise PodiumError(said, hint="give each column a name of its own.")


def type_cells(cells: Sequence[str], as_text: bool) -> Column:
    """A column of a CSV file as whole numbers, numbers or texts; a mixture stays one, for the log to refuse."""
    if not as_text:
        stripped = [cell.strip() for cell in cells]
        as_text = any(map(CODE.fullmatch, stripped))
    if not as_text:
        try:
            column = np.fromiter(map(float, stripped), np.float64) if "_" not in "".join(stripped) else None
        except ValueError:
            column = None
        if column is not None:
            large = bool((np.abs(column) >= EXACT).any())  # where floats do not tell all whole numbers apart
            exact = large or all(map(WHOLE.fullmatch, stripped))
            return to_array([number_of(cell) for cell in stripped]) if exact else column
    mixed = np.empty(len(cells), dtype=object)
    mixed[:] = [cell_value(c, not as_text) for c in cells]
    return mixed


def cell_value(cell: str, numeric: bool) -> Any:
    if not cell:
        return None
    if numeric and NUMBER.fullmatch(cell.strip()):
        return number_of(cell.strip())
    return cell


def number_of(cell: str) -> int | float:
    return int(cell) if WHOLE.fullmatch(cell) else float(cell)


def read_json_lines(path: Path, content: str | None = None) -> dict[str, Column]:
    """One JSON object per line; a list or an object as a value becomes several columns."""
    content = read_text(path) if content is None else content
    hint = "write one JSON object per line."
    records: list[dict[str, Any]] = []
    for line in json_lines_of(content):
        place = f"{path.name}: row {len(records) + 1}"
        try:
            record = json.loads(line, object_pairs_hook=Pairs)
            pairs = list(flatten(record)) if isinstance(record, Pairs) else None
        except json.JSONDecodeError as error:
            raise PodiumError(f"{place} is not valid JSON: {error.msg} (character {error.colno})", hint) from error
        except RecursionError as error:
            raise PodiumError(f"{place} is nested too deeply", hint="give numbers, texts and short lists.") from error
        except ValueError as error:  # a number of thousands of digits
            raise PodiumError(f"{place} is not valid JSON: {error}", hint) from error
        if pairs is None:
            raise PodiumError(f"{place} is no JSON object", hint)
        if (twice := repeated(name for name, _ in pairs)) is not None:
            raise PodiumError(f"{place}: the column {twice!r} appears twice", hint="give each column its own name.")
        records.append(dict(pairs))
    names = list(dict.fromkeys(name for record in records for name in record))
    if not names:
        raise PodiumError(f"{path.name} is empty", hint)
    check_header(names, path)
    return {name: json_column([record.get(name) for record in records]) for name in names}


def json_column(values: list[Any]) -> Column:
    column = to_array(values)
    return column if column.ndim == 1 else np.array(values, dtype=object)


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its members in order, so that a repeated name is seen."""


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """{"state": [1, 2], "pi_new": {"a": 1}} -> state[0] 1, state[1] 2, pi_new:a 1."""
    if isinstance(value, Pairs):
        for key, member in value:
            yield from flatten(member, f"{name}:{key}" if name else key)
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from flatten(member, f"{name}[{i}]")
    else:
        yield name, value


def read_parquet(path: Path, text: Collection[str] = ()) -> dict[str, Column]:
    with needs("pyarrow", "parquet", "reading Parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    watch = Watch([path])
    try:
        # A file that is mapped into memory and truncated meanwhile would end the process.
        with path.open("rb") as source:
            table = parquet.ParquetFile(source).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        watch.check()
        raise parquet_error(path, error) from error
    watch.check()
    parts = spread_table(table)
    check_header([name for name, _ in parts], path)
    if table.num_rows == 0:
        raise PodiumError(f"{path.name} has no rows", hint="write at least one row.")
    columns: dict[str, Column] = {}
    for name, column in parts:
        try:
            is_text, as_text = pa.types.is_string(column.type), name in text and odd_kind(column.type) is None
            reader = shared_texts if is_text else partial(arrow_texts, name=name) if as_text else arrow_column
            columns[name] = reader(column)
        except UnicodeDecodeError as error:
            raise PodiumError(f"{path.name}: the column {name!r} is not UTF-8", hint="write the file again.") from error
        except (pa.ArrowException, OverflowError) as error:
            raise PodiumError(
                f"{path.name}: the column {name!r} is of a type that podium does not read: {column.type}",
                hint="convert it to numbers, texts or times first.",
            ) from error
    return columns


def parquet_error(path: Path, error: Exception) -> PodiumError:
    """Why a Parquet file cannot be read."""
    if isinstance(error, PermissionError):
        return PodiumError(f"{path.name} cannot be read: {error.strerror}", hint="check who may read it.")
    reason = str(error).strip().split("\n")[0]
    return PodiumError(f"{path.name} is not a whole Parquet file: {reason}", hint="write the file again.")
