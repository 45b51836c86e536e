"""CSV files whose lines DuckDB would not tell apart as `podium.data.read` does, written again with plain ones."""

from __future__ import annotations

import csv
import re
from functools import partial
from pathlib import Path

from podium.data.errors import PodiumError
from podium.data.read import is_blank, quote_hint

SPACES = re.compile(rb"\n[ \t\f\v]+(?:\r?\n|\Z)")  # a line of them
BLOCK = 1 << 20  # bytes that are looked through at once
OVERLAP = 256  # of which so many again with the next
BOM = b"\xef\xbb\xbf"


def plain_file(file: Path, separator: str, copy: Path) -> Path:
    """The file itself if DuckDB tells its lines apart, else a copy with plain ones."""
    if has_plain_lines(file):
        return file
    rows = 0
    with (
        file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as read,
        copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as written,
    ):
        writer = csv.writer(written, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
        try:
            for row in csv.reader(read, delimiter=separator, strict=True):
                if not is_blank(row):
                    writer.writerow(row)
                    rows += 1
        except csv.Error as error:
            raise PodiumError(
                f"{file.name}: {f'row {rows}' if rows else 'the header'} cannot be read: {error}",
                hint=quote_hint(error),
            ) from error
    return copy


def has_plain_lines(file: Path) -> bool:
    """Whether every line ends in \\n, or every one in \\r\\n, none holds only spaces, and the first is not blank.

    DuckDB leaves out other empty lines, as `podium.data.read` does.
    """
    endings: set[str] = set()
    held = b""
    with file.open("rb") as opened:
        for block in iter(partial(opened.read, BLOCK), b""):
            if block.endswith(b"\r"):
                block += opened.read(1)
            if not held and block.removeprefix(BOM).lstrip(b" \t\f\v").startswith((b"\r", b"\n")):
                return False
            returns = block.count(b"\r")
            windows = block.count(b"\r\n") if returns else 0
            endings |= {"\r\n"} if windows else set()
            endings |= {"\n"} if block.count(b"\n") > windows else set()
            if returns > windows or len(endings) > 1 or has_line_of_spaces(held + block):
                return False
            held = block[-OVERLAP:]
    return True


def has_line_of_spaces(text: bytes) -> bool:
    joined = text.translate(None, b" \t\f\v\r")  # which is faster than looking at every line
    return (b"\n\n" in joined or text[-1:].isspace()) and SPACES.search(text) is not None
