"""What is inside a file that people export: compressed text, text in other encodings, the sheets of a workbook."""

from __future__ import annotations

import codecs
import gzip
import re
import zipfile
import zlib
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from podium.data.errors import PodiumError, count, listed, needs
from podium.data.facts import Fact

PACKED = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"PAR1": "Parquet"}  # first bytes
BOOKS = (".xlsx", ".xlsm", ".ods")
CHUNK = 1 << 20
MOST = 2 << 30  # bytes that a file may unpack to
MOST_CELLS = 50_000_000  # of a sheet
LAST_CELL = re.compile(rb' r="([A-Z]{1,3})(\d{1,7})"')
REPEATED = re.compile(rb'number-columns-repeated="(\d{6,})"')
AGAIN = "export it again."
SAVE_TABLE = "open it in a spreadsheet, and save it as .xlsx or CSV."
START = 4096  # bytes by which an encoding is known
WEB_PAGE = re.compile(rb"\s*(?:<!doctype html|<html|<table|<\?xml)", re.IGNORECASE)
MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def ending_of(path: Path) -> str:
    """The ending that says what a file holds: that before .gz or .zst, or that of the file inside a .zip."""
    name = path.name.lower()
    if path.suffix.lower() == ".zip":
        return Path(zip_member(path).lower()).suffix
    for packed in PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix


def is_packed(path: Path) -> bool:
    return path.suffix.lower() in PACKED


def content_of(path: Path) -> str | None:
    """What a file is by its first bytes, whatever it is called: gzip, zstd, zip, Parquet, or None of these."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError:
        return None
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)


def packing_of(path: Path) -> str | None:
    """How a file is compressed: as its ending says, else by its first bytes."""
    named = PACKED.get(path.suffix.lower())
    found = named or content_of(path)
    return found if found in PACKED.values() else None


def packing_notes(path: Path) -> list[Fact]:
    """What is said of a file in a .zip, and of one that is compressed and not called so."""
    packing = packing_of(path)
    if packing == "zip":
        return [Fact("file inside", member=zip_member(path), file=path.name)]
    return [] if packing is None or is_packed(path) else [Fact("packed", file=path.name, packing=packing)]


def zip_member(path: Path) -> str:
    """The name of the only file in a .zip; what macOS adds does not count."""
    try:
        with zipfile.ZipFile(path) as parts:
            names = [name for name in parts.namelist() if not name.endswith("/")]
    except (OSError, zipfile.BadZipFile) as error:
        raise PodiumError(f"{path.name} is not a whole zip file: {error}", hint=AGAIN) from error
    own = [name for name in names if not name.startswith("__MACOSX/") and not Path(name).name.startswith(".")]
    if len(own) != 1:
        held = f"holds {count(len(own), 'file')}: {listed(own)}" if own else "is empty"
        raise PodiumError(f"{path.name} {held}", hint="unpack it, and name one file.")
    return own[0]


def is_book(path: Path) -> bool:
    return path.suffix.lower() in BOOKS


def holds_book(path: Path) -> bool:
    """Whether a file is a workbook by what is inside, whatever it is called."""
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                return False
        with zipfile.ZipFile(path) as parts:
            names = set(parts.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names & {"xl/workbook.xml", "content.xml"})


def refuse_old_books(path: Path) -> None:
    """Refuse what spreadsheets open and podium does not: workbooks of before 2007, and web pages called otherwise."""
    try:
        with path.open("rb") as file:
            start = file.read(START)
    except OSError:
        return
    if WEB_PAGE.match(start.removeprefix(codecs.BOM_UTF8)):
        raise PodiumError(f"{path.name} is a web page (HTML) inside, not a table", hint=SAVE_TABLE)
    if path.suffix.lower() in (".xls", ".xlsb"):
        raise PodiumError(f"{path.name} is of a format of Excel that podium does not read", hint=SAVE_TABLE)


# --- compressed files ------------------------------------------------------------------------------------------------


def unpack(path: Path, most: int = MOST) -> bytes:
    """The bytes of a file, unpacked where it is compressed, up to `most` of them."""
    parts: list[bytes] = []
    total = 0
    try:
        with opened(path) as file:
            while part := file.read(CHUNK):
                total += len(part)
                if total > most:
                    raise PodiumError(
                        f"{path.name} unpacks to more than {in_units(most)}",
                        hint="unpack it and give only the columns that matter, or write it as Parquet.",
                    )
                parts.append(part)
    except PodiumError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise PodiumError(f"{path.name} is not a whole {packing_of(path)} file: {error}", hint=AGAIN) from error
    except (RuntimeError, NotImplementedError) as error:  # of zipfile
        raise PodiumError(f"{path.name} cannot be unpacked: {error}", hint="unpack it, and name one file.") from error
    except OSError as error:
        if packing_of(path) == "zstd" and error.errno is None:
            reason = str(error).strip().split("\n")[0]
            raise PodiumError(f"{path.name} is not a whole zstd file: {reason}", hint=AGAIN) from error
        raise PodiumError(f"{path.name} cannot be read: {error.strerror}", hint="check who may read it.") from error
    return b"".join(parts)


def opened(path: Path) -> Any:
    """A file to read the unpacked bytes from."""
    packing = packing_of(path)
    if packing == "gzip":
        return gzip.open(path, "rb")
    if packing == "zip":
        return zipfile.ZipFile(path).open(zip_member(path))
    if packing == "zstd":
        with needs("pyarrow", "parquet", "reading .zst files"):
            import pyarrow as pa
        return pa.input_stream(str(path), compression="zstd")
    return path.open("rb")


def in_units(size: int) -> str:
    return f"{size / (1 << 30):.3g} GB" if size >= 1 << 29 else f"{size / (1 << 20):.3g} MB"


# --- encodings -------------------------------------------------------------------------------------------------------


def text_in_other_encoding(raw: bytes, path: Path) -> tuple[str, str] | None:
    """The text of bytes in UTF-16 or Windows-1252 (Latin-1), and the name of that; None where they are neither."""
    if raw[:2] in MARKS:
        try:
            return raw.decode("utf-16"), "UTF-16"
        except UnicodeDecodeError as error:
            message = f"{path.name} is not whole UTF-16 text: {error.reason}"
            raise PodiumError(message, hint="save the file as UTF-8.") from error
    if (unmarked := utf_16_order(raw[:START])) is not None:
        try:
            return raw.decode(unmarked), "UTF-16"
        except UnicodeDecodeError:
            return None
    if b"\0" in raw or raw[:2] in (b"PK", b"\x1f\x8b"):
        return None
    try:
        return raw.decode("cp1252"), "Latin-1 (Windows-1252)"
    except UnicodeDecodeError:
        return None


def utf_16_order(start: bytes) -> str | None:
    """The order of bytes of UTF-16 without a mark: every second byte of most Western characters is zero."""
    first, second = start[0::2].count(0), start[1::2].count(0)
    half = len(start) // 2
    if half < 4 or max(first, second) < 0.5 * half or min(first, second) > 0:
        return None
    return "utf-16-be" if first > second else "utf-16-le"


# --- workbooks -------------------------------------------------------------------------------------------------------


def read_sheet(path: Path, sheet: str | None, most: int = MOST) -> tuple[list[list[str]], list[Fact]]:
    """The rows of a sheet as a CSV file would hold them, from the first row of the sheet on."""
    with needs("python-calamine", "excel", "reading Excel and ODS files"):
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError
    check_book(path, most)
    try:
        with CalamineWorkbook.from_path(str(path)) as book:
            names = sheet_names(book, sheet is None)
            chosen = choose_sheet(path, names, sheet)
            rows = book.get_sheet_by_name(chosen).to_python(skip_empty_area=False)
            if sheet is None and not is_table(rows):
                for name in names[1:]:
                    others = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
                    if is_table(others):
                        chosen, rows = name, others
                        break
            filled = [name for name in names if name != chosen]
    except PasswordError as error:
        raise PodiumError(f"{path.name} is protected by a password", hint="save it without one.") from error
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, PodiumError):
            raise
        raise not_whole(path, str(error)) from error
    notes = [Fact("sheet", sheet=chosen, others=listed(filled))] if filled and sheet is None else []
    return [[cell_text(cell) for cell in row] for row in rows], notes


def sheet_names(book: Any, visible: bool) -> list[str]:
    """The names of the sheets of a workbook; of those that are neither hidden nor charts, if there are any."""
    found = [
        sheet.name
        for sheet in book.sheets_metadata
        if str(sheet.visible).endswith(".Visible") and str(sheet.typ).endswith(".WorkSheet")
    ]
    return found if visible and found else list(book.sheet_names)


def is_table(rows: list[list[Any]]) -> bool:
    """Whether a sheet holds more than notes: two rows or more with two cells or more."""
    wide = (row for row in rows if sum(cell not in ("", None) for cell in row) > 1)
    return next(wide, None) is not None and next(wide, None) is not None


def choose_sheet(path: Path, names: list[str], sheet: str | None) -> str:
    if sheet is None and names:
        return names[0]
    if sheet not in names:
        raise PodiumError(
            f"{path.name} has no sheet {sheet!r}", hint=f"the sheets are {listed(names)}." if names else AGAIN
        )
    return str(sheet)


def check_book(path: Path, most: int) -> None:
    """Refuse a workbook that unpacks to too much, before it is unpacked as a whole."""
    try:
        with zipfile.ZipFile(path) as parts:
            members = parts.infolist()
            total = sum(member.file_size for member in members)
            if total > most:
                raise PodiumError(
                    f"{path.name} unpacks to {in_units(total)}; the limit is {in_units(most)}",
                    hint="save the sheet as CSV or Parquet.",
                )
            for member in members:  # a member that is longer than it says is found to be damaged
                check_member(path, parts, member)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise not_whole(path, str(error)) from error
    except OSError as error:
        raise PodiumError(f"{path.name} cannot be read: {error.strerror}", hint="check who may read it.") from error


def check_member(path: Path, parts: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse a sheet whose last cell is so far out that the cells up to it would fill the memory."""
    sheet = member.filename.startswith("xl/worksheets/") and member.filename.endswith(".xml")
    table = member.filename == "content.xml"
    width = height = 0
    rest = b""
    with parts.open(member) as file:
        while chunk := file.read(CHUNK):
            text = rest + chunk
            if sheet:
                found = LAST_CELL.findall(text)
                width = max([width, *(column_number(letters) for letters in {letters for letters, _ in found})])
                height = max([height, *(int(row) for _, row in found)])
            if (sheet and width * height > MOST_CELLS) or (table and REPEATED.search(text)):
                raise PodiumError(
                    f"{path.name} has a sheet of more than {count(MOST_CELLS, 'cell')}",
                    hint="remove cells far from the table, or save the sheet as CSV or Parquet.",
                )
            rest = text[-64:]


def column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def not_whole(path: Path, reason: str) -> PodiumError:
    kind = "ODS" if path.suffix.lower() == ".ods" else "Excel"
    return PodiumError(f"{path.name} is not a whole {kind} file: {reason}", hint="save it again.")


def cell_text(cell: Any) -> str:
    """A cell of a sheet as a CSV file would hold it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        whole_day = cell.time() == time(0) and cell.tzinfo is None
        return cell.date().isoformat() if whole_day else cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return repr(cell.total_seconds())
    return str(cell)
