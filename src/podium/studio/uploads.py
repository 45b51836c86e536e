"""Files that people hand over: names are shown and never used as paths, contents go to a private folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from podium.data.errors import PodiumError
from podium.outputs.display import printable
from podium.studio.reading import ENDINGS

LONGEST = 120


def clean_name(name: str | None) -> str:
    """The last part of a file's name, printable and short.

    >>> clean_name("../../etc/my log.CSV"), clean_name("C:\\\\data\\\\a.parquet"), clean_name("a\\x00b\\n.csv")
    ('my log.CSV', 'a.parquet', 'ab.csv')
    """
    last = PurePosixPath((name or "").replace("\\", "/")).name
    shown = "".join(c for c in last if c.isprintable()).strip().lstrip(".")
    ending = PurePosixPath(shown).suffix
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - len(ending)] + ending[:LONGEST]
    return shown


def known_ending(name: str, endings: Sequence[str] = ENDINGS) -> str:
    """The ending that tells the format, in small letters, or an error that lists those there are."""
    ending = PurePosixPath(name).suffix.lower()
    if ending not in endings:
        what = "log" if endings is ENDINGS else "policy"
        raise PodiumError(
            f"the studio cannot read {printable(name) or 'a file without a name'}",
            hint=f"give a {what} as {', '.join(endings)}; a spreadsheet can be saved as CSV.",
        )
    return ending


def store(upload: Any, folder: Path, stem: str, ending: str) -> Path:
    """Copy an upload into a folder under a name of the studio's own."""
    path = folder / f"{stem}{ending}"
    with path.open("xb") as file:
        upload.file.seek(0)
        shutil.copyfileobj(upload.file, file, 1 << 20)
    return path
