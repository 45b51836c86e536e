"""A file of any format as a table: its columns, where each row stands in the file, and what was done to read it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from podium.data.columns import Column
from podium.data.errors import PodiumError, count
from podium.data.facts import Fact
from podium.data.formats import (
    BOOKS,
    MOST,
    content_of,
    ending_of,
    holds_book,
    is_book,
    packing_notes,
    packing_of,
    read_sheet,
    refuse_old_books,
    text_in_other_encoding,
    unpack,
    zip_member,
)
from podium.data.headers import (
    HIGHEST,
    Header,
    filled,
    find_header,
    further_headers,
    invisible_note,
    is_label,
    is_number,
    settled_names,
)
from podium.data.invisible import visible
from podium.data.json_rows import has_a_row_per_line
from podium.data.notation import has_open_points, is_gap, may_be_thousands, numbers_written
from podium.data.read import (
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    SEPARATORS,
    TEXT_ENDINGS,
    check_text,
    decode,
    is_blank,
    one_file,
    parse_csv,
    read_bytes,
    read_columns,
    read_json_lines,
    read_parquet,
    refuse_zero_bytes,
    separator_of,
    type_cells,
)

MOST_FEET = 5  # rows of notes below a table
TOTALS = ("total", "totals", "grand total", "sum", "summe", "gesamt")  # what a row of totals says
READ = (*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS, *BOOKS)


@dataclass(frozen=True)
class Table:
    """The columns of a file by header, and what is known of how they were read.

    Attributes
    ----------
    notes : what was done to read the file
    line : the line of the file (the row of the sheet) on which a row stands, counted from 1; 0 where there is none
    semicolons : whether semicolons separate the cells
    unsure : columns that are no state unless they are named, and why
    doubled : names that several columns have; the second is called "name (2)"
    """

    file: str
    columns: dict[str, Column]
    notes: tuple[Fact, ...]
    line: Callable[[int], int]
    semicolons: bool = False
    unsure: Mapping[str, str] = field(default_factory=dict)
    doubled: tuple[str, ...] = ()


def open_table(path: str | Path, text: Collection[str] = (), sheet: str | None = None, most: int = MOST) -> Table:
    """The table in a file; it may unpack to `most` bytes."""
    path = one_file(path)
    ending = ending_of(path)
    if ending not in (*JSON_ENDINGS, *PARQUET_ENDINGS):
        refuse_old_books(path)
    if is_book(path) or (ending in TEXT_ENDINGS and holds_book(path)):
        rows, notes = read_sheet(path, sheet, most)
        return headed_table(path, rows, range(1, len(rows) + 1), text, notes)
    if sheet is not None:
        raise PodiumError(f"{path.name} has no sheets", hint=f"leave --sheet out; {', '.join(BOOKS)} have sheets.")
    if ending in (*TEXT_ENDINGS, *JSON_ENDINGS) and content_of(path) == "Parquet":
        said = Fact("another format", file=path.name, format="Parquet")
        return Table(path.name, read_parquet_table(path, text), (said,), partial(line_in_file, path))
    if ending in TEXT_ENDINGS or (ending in JSON_ENDINGS and packing_of(path)):
        content, notes = text_of(path, most)
        notes = [*packing_notes(path), *notes]
        if ending in JSON_ENDINGS:
            columns = read_json_lines(path, content)
            refuse_zero_bytes(columns)
            return Table(path.name, columns, tuple(notes), partial(line_in_file, path))
        return csv_table(path, content, text, notes)
    if path.suffix.lower() == ".zip":
        raise PodiumError(
            f"{path.name} holds {zip_member(path)!r}, and podium reads only CSV and JSON inside a zip file",
            hint="unpack it, and name the file.",
        )
    line = partial(line_in_file, path)
    return Table(path.name, read_columns(path, text), (), line)


def read_parquet_table(path: Path, text: Collection[str]) -> dict[str, Column]:
    """The columns of a Parquet file that is called otherwise."""
    columns = read_parquet(path, text)
    refuse_zero_bytes(columns)
    check_text(path.name, text, columns)
    return columns


def text_of(path: Path, most: int = MOST) -> tuple[str, list[Fact]]:
    """The text of a file, and in which encoding it was where that is not UTF-8."""
    raw = unpack(path, most) if packing_of(path) else read_bytes(path)
    try:
        return decode(raw, path), []
    except PodiumError:
        found = text_in_other_encoding(raw, path)
        if found is None:
            raise
    return found[0], [Fact("encoding", file=path.name, encoding=found[1])]


# --- CSV and sheets --------------------------------------------------------------------------------------------------


def csv_table(path: Path, content: str, text: Collection[str], notes: list[Fact]) -> Table:
    """A CSV file; one that does not begin with its header is searched for it."""
    refused: PodiumError | None = None
    columns: dict[str, Column] = {}
    try:
        columns = parse_csv(content, path, text, partial(export_cells, separator_of(content, path) == ";"))
    except PodiumError as error:
        refused = error
    if len(columns) < 2 or ends_in_total(content) or ends_in_foot(content) or begins_with_labels(columns):
        for separator in SEPARATORS if len(columns) < 2 else separator_of(content, path):
            lines, rows, feet = without_feet(*split_rows(content, separator))
            if (found := find_header(rows)) is not None:
                said = [*notes, *foot_note(feet)]
                return table_below(path, found, rows, lines, text, said, separator == ";")
    if refused is not None:
        raise refused
    refuse_zero_bytes(columns)
    check_text(path.name, text, columns)
    separator = separator_of(content, path)
    notes = [*notes, *invisible_note(header_cells(content, separator))]
    return Table(path.name, columns, tuple(notes), partial(line_in_file, path), separator == ";")


def begins_with_labels(columns: Mapping[str, Column]) -> bool:
    """Whether the first row of a table may hold labels of its columns, or their names again."""
    first = {header: column[0] for header, column in columns.items() if column.dtype == object}
    return sum(isinstance(cell, str) and (is_label(cell) or visible(cell) == h) for h, cell in first.items()) > 1


def header_cells(content: str, separator: str) -> list[str]:
    """The names in the header of a CSV text as they are written."""
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
    return next((row for row in rows if not is_blank(row)), [])


def headed_table(
    path: Path, rows: Sequence[list[str]], lines: Sequence[int], text: Collection[str], notes: list[Fact]
) -> Table:
    """The rows of a sheet, the header of which may stand below a title."""
    there = [(line, row) for line, row in zip(lines, rows, strict=True) if any(cell.strip() for cell in row)]
    if not there:
        raise PodiumError(f"{path.name} is empty", hint="write a header line and at least one row.")
    places, body, feet = without_feet([line for line, _ in there], [row for _, row in there])
    notes = [*notes, *foot_note(feet)]
    found = find_header(body)
    if found is None:
        found = Header(0, [visible(h) for h in body[0]], 0)
        if len(body) == 1:
            raise PodiumError(f"{path.name} has a header and no rows", hint="write at least one row below the header.")
    return table_below(path, found, body, places, text, notes, False)


def table_below(
    path: Path,
    header: Header,
    rows: Sequence[Sequence[str]],
    lines: Sequence[int],
    text: Collection[str],
    notes: list[Fact],
    semicolons: bool,
) -> Table:
    """The columns below a header, without those that have no name."""
    said = list(notes)
    if header.place:
        said.append(Fact("title", lines=count(header.place, "line"), header=lines[header.place]))
    body = rows[header.place + 1 :]
    if len(body) > 1 and is_total(body[-1]) and not any(map(is_total, body[:-1])):
        said.append(Fact("total row", line=lines[-1]))
        body = body[:-1]
    further = further_headers(header.names, body)
    places = list(lines[header.place + 1 + further :])
    if further:
        body = body[further:]
        first = lines[header.place + 1]
        which = f"line {first}" if further == 1 else f"lines {first} to {lines[header.place + further]}"
        said.append(Fact("further headers", rows=count(further, "row"), lines=which))
    names = settled_names(header, body)
    said += [*invisible_note(rows[header.place]), *names.notes]
    check_text(path.name, text, names.of.values())
    refuse_zero_bytes(names.of.values())
    columns = {name: export_cells(semicolons, [row[j] for row in body], name in text) for j, name in names.of.items()}
    line = partial(line_among, places)
    return Table(path.name, columns, tuple(said), line, semicolons, names.unsure, names.doubled)


def line_among(places: Sequence[int], row: int) -> int:
    return places[row - 1]


def export_cells(semicolons: bool, cells: Sequence[str], as_text: bool) -> Column:
    """A column of cells; numbers in which a point may separate thousands stay texts, for their column to decide."""
    if as_text or not has_open_points(cells, semicolons):
        return type_cells(cells, as_text)
    texts = {cell.strip() for cell in cells if not is_gap(cell)}
    if not (semicolons and may_be_thousands(texts)) and numbers_written(texts, False, semicolons) is None:
        return type_cells(cells, as_text)
    kept = np.empty(len(cells), dtype=object)
    kept[:] = [cell.strip() or None for cell in cells]
    return kept


def foot_note(feet: Sequence[tuple[int, str]]) -> list[Fact]:
    if not feet:
        return []
    line, text = feet[0]
    return [
        Fact("foot", rows=count(len(feet), "row"), line=line, note=repr(text if len(text) < 60 else text[:59] + "…"))
    ]


def ends_in_foot(content: str) -> bool:
    """Whether the last line of a text may be a note: all but its first cell are empty."""
    cells = re.split(r"[,;\t|]", content[-2000:].rstrip().rpartition("\n")[2])
    return len(cells) > 1 and not any(cell.strip(' "') for cell in cells[1:])


def ends_in_total(content: str) -> bool:
    """Whether the last line of a text looks like that of the totals."""
    last = content[-2000:].rstrip().rpartition("\n")[2]
    return is_total(["", *(cell.strip(' "') for cell in re.split(r"[,;\t|]", last))])


def is_total(row: Sequence[str]) -> bool:
    """Whether a row holds totals: a cell says so, and another one is empty."""
    cells = [cell.strip().lower().partition(":")[0] for cell in row]
    return "" in cells and any(cell in TOTALS for cell in cells)


def is_ruler(row: Sequence[str]) -> bool:
    """Whether a row only draws a line: ---+---."""
    return (
        any(cell.strip() for cell in row)
        and all(re.fullmatch(r"[\s:+=-]*", cell) for cell in row)
        and (max(map(len, row)) > 2)
    )


def without_feet(
    lines: Sequence[int], rows: Sequence[list[str]]
) -> tuple[list[int], list[list[str]], list[tuple[int, str]]]:
    """Rows without notes below a table, and these notes: up to five last rows with a single text.

    Lines that only divide the header from the rows are left out, too.
    """
    kept = [(line, row) for line, row in zip(lines, rows, strict=True) if not is_ruler(row)]
    feet: list[tuple[int, str]] = []
    width = max((len(filled(row)) for _, row in kept[:HIGHEST]), default=0)
    while width > 2 and len(kept) > 2 and len(feet) < MOST_FEET and len(filled(kept[-1][1])) == 1:
        if not kept[-1][1][0].strip() or is_number(kept[-1][1][0]):
            break
        line, row = kept.pop()
        feet.insert(0, (line, filled(row)[0].strip()))
    return [line for line, _ in kept], [row for _, row in kept], feet


def split_rows(content: str, separator: str) -> tuple[list[int], list[list[str]]]:
    """The rows of a CSV text that are not blank, and the line on which each begins; nothing where quotes are open."""
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    lines, rows, before = [], [], 0
    try:
        for row in reader:
            if not is_blank(row):
                lines.append(before + 1)
                rows.append(row)
            before = reader.line_num
    except csv.Error:
        return [], []
    return lines, rows


# --- lines -----------------------------------------------------------------------------------------------------------


def csv_line(content: str, separator: str, row: int) -> int:
    """The line on which a row of a CSV text begins."""
    lines, _ = split_rows(content, separator)
    return lines[row] if row < len(lines) else 0


def json_line(content: str, row: int) -> int:
    """The line of a row among JSON lines; 0 where rows are not on lines."""
    if not has_a_row_per_line(content):
        return 0
    filled = [n for n, line in enumerate(content.split("\n"), start=1) if line.strip()]
    return filled[row - 1] if row <= len(filled) else 0


def line_in_file(path: str | Path, row: int) -> int:
    """The line of a row of a file whose content is not at hand; 0 where the file has no lines, or cannot be read."""
    path = Path(path)
    ending = ending_of(path)
    if ending not in (*TEXT_ENDINGS, *JSON_ENDINGS) or not path.is_file():
        return 0
    try:
        content, _ = text_of(path)
    except PodiumError:
        return 0
    return json_line(content, row) if ending in JSON_ENDINGS else csv_line(content, separator_of(content, path), row)
