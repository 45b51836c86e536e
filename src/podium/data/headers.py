"""Where the header of a table stands, and what its columns are called: clean names, each of them once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from podium.data.errors import count, listed
from podium.data.facts import Fact
from podium.data.invisible import visible
from podium.data.notation import FAILURES, SUCCESSES, is_gap, looks_like_date, plain_word

HIGHEST = 10  # lines above a header
MOST_FURTHER = 3  # rows of labels below a header
LEAST_ROWS = 3  # below them
IMPORT_ID = re.compile(r'\s*\{\s*"ImportId"')
LABELS = ("response", "open-ended response", "other (please specify)")  # of SurveyMonkey
LONG_LABEL = 10  # characters of a label that is no value
NO_HEADER = "no name in the file"
TWICE = "its name is there twice"


@dataclass(frozen=True)
class Header:
    """Where the header of a table stands among its rows, and the names in it."""

    place: int
    names: list[str]
    nameless: int  # empty columns at the end


@dataclass(frozen=True)
class Names:
    """The columns that are read: their names by place, what was done, and why some are no state unless named."""

    of: dict[int, str]
    notes: list[Fact] = field(default_factory=list)
    unsure: dict[str, str] = field(default_factory=dict)
    doubled: tuple[str, ...] = ()  # names that several columns with different values have


def invisible_note(written: Sequence[str]) -> list[Fact]:
    """What is said of a header with characters that do not show; spaces around names need no word."""
    cleaned = [visible(name) for name in written if visible(name) and visible(name) != name.strip(" \t\r\n")]
    return [Fact("invisible in names", columns=listed(cleaned))] if cleaned else []


# --- where the header is ---------------------------------------------------------------------------------------------


def find_header(rows: Sequence[Sequence[str]]) -> Header | None:
    """The first row such that all rows below fit it and all above are titles."""
    for place, row in enumerate(rows[:HIGHEST]):
        names = trimmed(row)
        body = rows[place + 1 :]
        if len(names) < 2 or not body:
            continue
        names += [""] * (min(len(row), max(len(trimmed(r)) for r in body)) - len(names))
        if any(len(r) < len(names) or any(c.strip() for c in r[len(names) :]) for r in body):
            continue
        blank = [i for i, name in enumerate(names) if not name and any(r[i].strip() for r in body)]
        index = blank == [0] and is_index([r[0] for r in body])
        if blank and not index and (2 * len(blank) >= len(names) or is_above_header(body)):
            continue
        above = rows[:place]
        if above and (any(is_number(n) for n in names) or any(len(filled(r)) >= len(filled(names)) for r in above)):
            continue
        return Header(place, names, max(len(r) for r in (row, *body)) - len(names))
    return None


def is_above_header(body: Sequence[Sequence[str]]) -> bool:
    """Whether the first of some rows is the header of those below: no number stands in it, and some below it."""
    first, rest = body[0], body[1:]
    if not rest or any(is_number(cell) or not cell.strip() for cell in first):
        return False
    width = min(map(len, body))
    return any(all(is_number(row[j]) for row in rest) for j in range(width))


def trimmed(row: Sequence[str]) -> list[str]:
    """The names in a row, without the empty ones at its end."""
    names = [visible(cell) for cell in row]
    while names and not names[-1]:
        names.pop()
    return names


def filled(row: Sequence[str]) -> list[str]:
    return [cell for cell in row if cell.strip()]


def is_index(cells: Sequence[str]) -> bool:
    """Whether cells are whole numbers that differ in every row, as those of a frame's index are."""
    return all(cell.strip().isdigit() for cell in cells) and len({*cells}) == len(cells)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- names -----------------------------------------------------------------------------------------------------------


def settled_names(header: Header, body: Sequence[Sequence[str]]) -> Names:
    """A name for every column: of those without one that hold something, and of those whose name is there twice."""
    found: dict[int, str] = {}
    notes, unsure, doubled, empty = [], {}, [], header.nameless
    for place, name in enumerate(header.names):
        cells = [row[place] for row in body]
        if not name and not any(cell.strip() for cell in cells):
            empty += place > 0
        elif not name and place == 0 and is_index(cells):
            notes.append(Fact("nameless index"))
        elif not name:
            own = free_name(f"column {place + 1}", header.names)
            found[place], unsure[own] = own, NO_HEADER
            notes.append(Fact("column without a name", column=own, place=place + 1))
        elif name not in header.names[:place]:
            found[place] = name
        else:
            same = [p for p, other in enumerate(header.names[:place]) if other == name]
            if any([row[p].strip() for row in body] == [cell.strip() for cell in cells] for p in same):
                notes.append(Fact("column twice", column=name))
                continue
            own = free_name(f"{name} ({len(same) + 1})", header.names)
            found[place], unsure[own] = own, TWICE
            doubled.append(name)
            notes.append(Fact("name twice", column=name, called=own))
    if empty:
        notes.insert(0, Fact("nameless columns", columns=count(empty, "empty column")))
    return Names(found, notes, unsure, tuple(dict.fromkeys(doubled)))


def free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "?"
    return name


# --- rows of labels below a header -----------------------------------------------------------------------------------


def further_headers(names: Sequence[str], body: Sequence[Sequence[str]]) -> int:
    """How many rows directly below a header hold labels or import ids, as surveys have them.

    Such a row repeats the header; or at least two columns that hold only numbers, dates, or yes and no further below
    have a long text or an import id there, and no column of this kind has a value that fits.
    """
    if not body or not may_be_labels(names, body[0]):
        return 0
    for rows in range(min(MOST_FURTHER, len(body) - LEAST_ROWS), 0, -1):
        if not all(may_be_labels(names, row) for row in body[:rows]):
            continue
        tests = kinds_below(body[rows:], len(names))
        if all(is_repeated(names, row) or labels_alone(row, tests) for row in body[:rows]):
            return rows
    return 0


def is_repeated(names: Sequence[str], row: Sequence[str]) -> bool:
    cells = [visible(cell) for cell in row[: len(names)]]
    return len(names) > 1 and all(names) and cells == list(names)


def may_be_labels(names: Sequence[str], row: Sequence[str]) -> bool:
    return is_repeated(names, row) or sum(map(is_label, row)) > 1


def is_label(cell: str) -> bool:
    """Whether a cell is a label or an import id rather than a value."""
    text = cell.strip()
    if IMPORT_ID.match(text) or text.lower() in LABELS:
        return True
    return len(text) >= LONG_LABEL and " " in text and not looks_like_date(text) and not text[0].isdigit()


def kinds_below(rows: Sequence[Sequence[str]], width: int) -> Mapping[int, Callable[[str], bool]]:
    """The columns that hold only numbers, dates, or yes and no, each with the test of that."""
    found = {}
    for place in range(width):
        cells = {row[place].strip() for row in rows if place < len(row) and not is_gap(row[place])}
        for test in (is_number, looks_like_date, is_yes_or_no):
            if cells and all(map(test, cells)):
                found[place] = test
                break
    return found


def is_yes_or_no(cell: str) -> bool:
    return plain_word(cell) in SUCCESSES | FAILURES


def labels_alone(row: Sequence[str], tests: Mapping[int, Callable[[str], bool]]) -> bool:
    """Whether at least two of these columns hold a label in a row, and none a value that fits."""
    cells = {place: row[place] for place in tests if place < len(row) and row[place].strip()}
    return sum(map(is_label, cells.values())) > 1 and not any(tests[place](cell) for place, cell in cells.items())
