"""A first look at an uploaded file, column by column, that refuses what is too large before it is unpacked."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from podium.data.errors import MissingExtra, PodiumError
from podium.data.exports import surveyed
from podium.data.facts import Fact
from podium.data.formats import BOOKS, content_of, is_book
from podium.data.frames import frame_to_columns
from podium.data.guesses import Facts, look
from podium.data.read import JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, separator_of
from podium.data.tables import open_table

POLICY_ENDINGS = (*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS)
ENDINGS = (*POLICY_ENDINGS, *BOOKS)
CHUNK = 1 << 20


def survey(path: Path, limits: Mapping[str, int], sheet: str | None = None) -> tuple[list[Facts], list[Fact]]:
    """The facts of every column of a file, and what was done to read it."""
    if path.suffix in PARQUET_ENDINGS or content_of(path) == "Parquet":
        return survey_parquet(path, limits), []
    if path.stat().st_size == 0:
        raise PodiumError(f"{path.name} is empty", hint="write a header line and at least one row.")
    if not is_book(path):
        check_lines(path, limits)
    table = open_table(path, sheet=sheet, most=limits["memory_bytes"] // 4)
    check_headers(list(table.columns), limits)
    refuse_rows(len(next(iter(table.columns.values()))), limits)
    return surveyed(table), list(table.notes)


def check_lines(path: Path, limits: Mapping[str, int]) -> None:
    """No more rows, and no longer a header, than a studio takes."""
    lines = 0
    with path.open("rb") as file:
        first = file.readline(limits["header_bytes"] + 1)
        if first[:2] not in (b"PK", b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff") and b"\0" not in first[:65536]:
            if len(first) > limits["header_bytes"]:
                raise PodiumError(
                    f"the first line of {path.name} is longer than {limits['header_bytes']:,} bytes",
                    hint="a log has one row per line, and its first line names the columns.",
                )
            if path.suffix in TEXT_ENDINGS:
                text = first.decode("utf-8-sig", errors="replace")
                header = csv.reader(text.splitlines(keepends=True), delimiter=separator_of(text, path))
                refuse_columns(sum(1 for _ in next(header, [])), limits)
        lines += first.count(b"\r") if b"\n" not in first else 0
        while chunk := file.read(CHUNK):
            lines += max(chunk.count(b"\n"), chunk.count(b"\r"))
    refuse_rows(lines, limits)


def survey_parquet(path: Path, limits: Mapping[str, int]) -> list[Facts]:
    """A Parquet file's columns, read one at a time."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet") from error
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        with parquet.ParquetFile(path) as file:
            metadata = file.metadata
            refuse_rows(metadata.num_rows, limits)
            refuse_columns(metadata.num_columns, limits)
            if metadata.num_rows == 0:
                raise PodiumError(f"{path.name} has no rows", hint="write at least one row.")
            unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
            if unpacked > limits["memory_bytes"] // 2:
                raise PodiumError(
                    f"{path.name} unpacks to {unpacked / 1024**3:.3g} GB, more than the studio takes",
                    hint="give only the columns that matter, or use the command podium compare.",
                )
            headers = file.schema_arrow.names
            check_headers(headers, limits)
            if twice := next((h for i, h in enumerate(headers) if h in headers[:i]), None):
                raise PodiumError(
                    f"{path.name}: the column {twice!r} appears twice", hint="give each column a name of its own."
                )
            found = [
                look(name, column)
                for h in headers
                for name, column in frame_to_columns(file.read(columns=[h], use_threads=False)).items()
            ]
            check_headers([f.header for f in found], limits)
            return found
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        if isinstance(error, PodiumError):
            raise
        raise PodiumError(f"{path.name} is not a whole Parquet file", hint="write the file again.") from error


def check_headers(headers: list[str], limits: Mapping[str, int]) -> None:
    refuse_columns(len(headers), limits)
    for i, header in enumerate(headers):
        if len(header) > limits["name_length"]:
            raise PodiumError(
                f"the name of column {i + 1} has {len(header):,} characters; the studio takes {limits['name_length']}",
                hint="give the column a shorter name.",
            )


def refuse_rows(rows: int, limits: Mapping[str, int]) -> None:
    if rows > limits["rows"]:
        raise PodiumError(
            f"the file has about {rows:,} rows; this studio takes {limits['rows']:,}",
            hint=f"start the studio with --max-rows {rows}, or use the command podium compare.",
        )


def refuse_columns(columns: int, limits: Mapping[str, int]) -> None:
    if columns > limits["columns"]:
        raise PodiumError(
            f"the file has {columns:,} columns; the studio takes {limits['columns']:,}",
            hint="give only the columns that matter.",
        )
