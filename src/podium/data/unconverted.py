"""Files that engines read: no value is converted, columns play the roles that they play in memory, or it is refused."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from podium.data.columns import Column
from podium.data.conversions import Conversion
from podium.data.errors import BadRows, PodiumError, Unconverted, listed
from podium.data.exports import without_odd_states
from podium.data.facts import Fact
from podium.data.invisible import same_to_see
from podium.data.notation import NAME_GAPS, has_open_points, is_gap
from podium.data.paths import find_files
from podium.data.prose import FIRST, without_prose
from podium.data.read import KINDS, TEXT_ENDINGS, is_blank, read_csv_header, separator_of, start_of
from podium.data.roles import Roles
from podium.data.tables import export_cells, line_in_file
from podium.data.unlikely_states import HEAD
from podium.engines import Engine

WORDS = " In memory (--engine memory), words such as 'n/a' among numbers are taken for missing values."
REMARKS = ("harmful outcome", "codes of yes and no", "sentinel")  # which convert nothing
IN_MEMORY = " In memory (--engine memory), a missing state is a value of its own."


def refuse_values(values: Mapping[str, Any], engine: str, frame: bool) -> None:
    """Refuse options on how values are written where rows are not read from a file into memory."""
    given = [name for name, value in values.items() if value not in (None, False)]
    if given and (engine != "memory" or frame):
        option = f"{given[0]}= (--{given[0].replace('_', '-')})"
        hint = "convert the columns of the frame first." if frame else "use engine='memory' (--engine memory)."
        raise PodiumError(f"{option} works for files that are read into memory", hint=hint)


def plain_states(engine: Engine, roles: Roles) -> Roles:
    """The roles without long texts as states that nobody named, by the first rows."""
    texts = [h for h in roles.states if roles.guessed and engine.headers()[h] == "text" and h not in engine.odd]
    if not texts or not engine.rows():
        return roles
    return without_prose(roles, engine.as_memory(engine.head(texts, FIRST)))


def roles_in_file(
    engine: Engine, roles: Roles, file: str | Path, text: Sequence[str]
) -> tuple[Roles, tuple[Fact, ...]]:
    """The roles that the columns of a file play in memory; refused where values would be converted there.

    The first rows decide, as they do in memory.
    """
    headers = list(engine.headers())
    read = engine.as_memory(engine.head(headers, HEAD))
    columns = {header: read[header] for header in headers if header in read}
    pointed = open_points(file, [h for h in columns if columns[h].dtype.kind in "fO" and h not in text])
    work = Conversion({**columns, **pointed}, roles, text, bool(pointed), partial(line_in_file, file))
    work.run()
    asked = [problem for problem in work.problems if "decimal" in problem.settings]
    if asked:
        raise Unconverted(
            f"the engine {engine.name} reads values as they are, and {asked[0].text}",
            hint=f"use engine='memory' (--engine memory): {asked[0].error.hint}",
        )
    kept = [note for note in work.notes if note.code in REMARKS or note.fields.get("words") == "decimal points"]
    if converted := [note for note in work.notes if note not in kept]:
        note = converted[0]
        raise Unconverted(
            f"the engine {engine.name} reads values as they are, and in memory podium would convert some. {note}",
            hint="use engine='memory' (--engine memory), write the values in plain form, or read the column as text "
            f"(--text {note.fields['column']}).",
        )
    notes: list[Fact] = kept
    fitting = without_odd_states(columns, roles, text, notes)
    if not fitting.states:
        raise Unconverted(
            f"no column is left for the state. {notes[-1]}",
            hint="name the state (--state COL), or use engine='memory' (--engine memory), where all rows count as one.",
        )
    return fitting, tuple(notes)


def open_points(file: str | Path, headers: Sequence[str]) -> dict[str, Column]:
    """The columns of a file with semicolons in which points may separate thousands, as texts.

    They are known by the first rows, and where these hold whole numbers alone, by all up to the first with a point.
    """
    files = find_files(file, KINDS).files
    if not headers or any(one.suffix.lower() not in TEXT_ENDINGS for one in files):
        return {}
    if separator_of(start_of(files[0]), files[0]) != ";":
        return {}
    cells: dict[str, list[str]] = {header: [] for header in headers}
    waiting = set(headers)
    for number, row in enumerate(row for one in files for row in rows_of(one)):
        for header in headers if number < HEAD else list(waiting):
            cell = row.get(header, "")
            if number < HEAD or "." in cell:
                cells[header].append(cell)
            if "." in cell:
                waiting.discard(header)
        if number >= HEAD and not waiting:
            break
    found = {header: export_cells(True, texts, False) for header, texts in cells.items()}
    return {h: found[h] for h in found if found[h].dtype == object and has_open_points(cells[h], True)}


def rows_of(file: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file with semicolons, one at a time."""
    header = read_csv_header(file)
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = (row for row in csv.reader(lines, delimiter=";") if not is_blank(row))
        next(rows, None)
        for row in rows:
            yield dict(zip(header, row, strict=False))


def refuse_gap_words(file: str | Path | None, engine: Engine, roles: Roles, actions: Iterable[Any]) -> None:
    """Refuse actions such as 'n/a', which stand for a missing one in a file, and those that look the same."""
    header = roles.names["action"]
    twins = same_to_see(x for x in actions if isinstance(x, str)) if file is not None else {}
    if twins and header not in getattr(engine, "text", ()):
        raise Unconverted(
            f"the engine {engine.name} reads values as they are, and labels of column {header!r} look the same: "
            f"{listed(twins)}",
            hint="use engine='memory' (--engine memory), which merges them, or write them in one way.",
        )
    gaps = [x for x in actions if isinstance(x, str) and is_gap(x, NAME_GAPS)]
    if file is not None and gaps and header not in getattr(engine, "text", ()):
        raise PodiumError(
            f"column {header!r} must not be missing; it holds {listed(gaps)}",
            hint=f"use --engine memory with --drop-missing, or read the column as text (--text {header}).",
        )


@contextmanager
def in_its_file(file: str | Path | None) -> Iterator[None]:
    """What is wrong with a row, with its line in the file."""
    try:
        yield
    except BadRows as error:
        if file is None:
            raise
        more = IN_MEMORY if error.rule == "must not be missing" else WORDS if error.rule.startswith("mixes") else ""
        raise error.at_line(error.row, line_in_file(file, error.row), error.hint + more) from error
