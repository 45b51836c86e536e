"""The files that a path names: a name that exists is that file or folder, and only another one is a pattern."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from podium.data.errors import PodiumError
from podium.data.files import note_input

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # of at least two letters: C:/ is a drive
WEB = ("http", "https", "ftp", "ftps")
PATTERN = "*?["
NOWHERE = "__HIVE_DEFAULT_PARTITION__"  # the folder of rows whose value is missing
KEEP_HINT = "keep the files as they are until the answer is there."


@dataclass(frozen=True)
class Found:
    """The files that a path names, in the order of their names, and the folder below which they were looked for."""

    files: tuple[Path, ...]
    base: Path

    def folder_values(self) -> dict[str, list[str | None]]:
        """What the folders below the base say of each file: country=de/ gives {"country": ["de"]}."""
        said = [folder_names(file.parent.relative_to(self.base).parts) for file in self.files]
        for file, names in zip(self.files, said, strict=True):
            if list(names) != list(said[0]):
                raise PodiumError(
                    f"{shown(file, self.base)!r} and {shown(self.files[0], self.base)!r} lie in folders that give "
                    "different columns",
                    hint="give every file the same folders, such as country=de/, or name the files of one of them.",
                )
        return {name: [names[name] for names in said] for name in said[0]}


def exists(path: Path) -> bool:
    """Whether there is something of that name; a name that the system refuses is that of nothing."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, in a folder that may not be entered, or with a NUL
        return False


def check_local(path: str | Path, schemes: Sequence[str] = ()) -> None:
    """Refuse an address: podium opens no connection. `schemes` limits this to some of them."""
    found = ADDRESS.match(str(path))
    if found and not exists(Path(path)) and (not schemes or found[1].lower() in schemes):
        raise PodiumError(
            f"{str(path)!r} is an address, and podium reads only files of this machine",
            hint="download it first, and give the path of the file.",
        )


def path_in(path: str, folder: str) -> str:
    """A path that is read from a folder, as it is read from the current one; addresses stay as they are.

    >>> path_in("log.csv", "july"), path_in("log.csv", ""), path_in("-1.csv", "")
    ('july/log.csv', 'log.csv', './-1.csv')
    """
    if not path or ADDRESS.match(path):
        return path
    joined = os.path.join(folder, path)
    return os.path.join(".", joined) if joined.startswith("-") else joined


def missing_file(path: str | Path) -> PodiumError:
    return PodiumError(f"there is no file {str(path)!r}", hint="check the path; it is read from the current folder.")


def find_files(path: str | Path, kinds: Sequence[Sequence[str]]) -> Found:
    """The files that a path names: itself, those of a folder, or those that a pattern matches.

    `kinds` are endings of files: of a folder, those of the first kind count, or those of the kind that its own name
    ends in, as log.csv/ does.
    """
    check_local(path)
    named = Path(path)
    if path == "":
        raise missing_file(path)
    if exists(named):
        if named.is_dir():
            endings = next((kind for kind in kinds if named.suffix.lower() in kind), kinds[0])
            files = sorted(files_below(named, endings), key=str)
            if not files:
                what = "Parquet" if endings is kinds[0] else endings[0]
                raise PodiumError(f"the folder {str(path)!r} holds no {what} files", hint="name files: 'folder/*.csv'.")
            return Found(tuple(map(regular, files)), named)
        return Found((regular(named),), named.parent)
    if not any(c in str(path) for c in PATTERN) or "\0" in str(path):
        raise missing_file(path)
    base, rest = literal_part(named)
    pattern = os.path.join(glob.escape(str(base)), rest) if str(base) != "." else rest
    files = sorted((Path(f) for f in glob.glob(pattern, recursive=True) if Path(f).is_file()), key=str)
    if not files:
        raise PodiumError(
            f"no file matches {str(path)!r}", hint="check the pattern; it is read from the current folder."
        )
    return Found(tuple(files), base)


def literal_part(path: Path) -> tuple[Path, str]:
    """The folders at the beginning of a pattern that exist under just that name, and the pattern inside the last."""
    base, parts = Path(path.anchor), list(path.parts[1 if path.anchor else 0 :])
    while len(parts) > 1 and exists(base / parts[0]):
        base = base / parts.pop(0)
    return base, os.path.join(*parts)


def files_below(folder: Path, endings: Sequence[str], above: tuple[tuple[int, int], ...] = ()) -> Iterable[Path]:
    """The files in a folder and those inside it, but for what is hidden or unfinished (.x, _x), as Spark lists them."""
    try:
        here = folder.stat()
        entries = list(os.scandir(folder))
    except OSError as error:
        raise PodiumError(
            f"the folder {str(folder)!r} cannot be listed: {error.strerror}", hint="check the folder's permissions."
        ) from error
    if (here.st_dev, here.st_ino) in above:
        raise PodiumError(
            f"the folder {str(folder)!r} is a link to a folder that holds it", hint="remove the link, or name files."
        )
    for entry in entries:
        if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
            continue
        if is_folder(entry):
            yield from files_below(folder / entry.name, endings, (*above, (here.st_dev, here.st_ino)))
        elif Path(entry.name).suffix.lower() in endings:
            yield folder / entry.name


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def regular(file: Path) -> Path:
    """A file that can be read more than once; pipes and devices cannot."""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise PodiumError(f"{file.name} cannot be read: {error.strerror}", hint="check the file.") from error
    if not stat.S_ISREG(mode):
        raise PodiumError(
            f"{file.name} is not a regular file, and this engine reads files more than once",
            hint="write its content to a file first, or use engine='memory'.",
        )
    return file


def folder_names(parts: Iterable[str]) -> dict[str, str | None]:
    """("country=de", "x") -> {"country": "de"}, as Hive and Spark name folders."""
    found: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not (name and equals):
            continue
        if unquote(name).lower() in map(str.lower, found):
            raise PodiumError(f"two folders of one file give the column {unquote(name)!r}", hint="rename one of them.")
        found[unquote(name)] = None if value == NOWHERE else unquote(value)
    return found


def shown(file: Path, base: Path) -> str:
    return str(file.relative_to(base))


# --- whether files are still the same ------------------------------------------------------------------------------


class Watch:
    """Files as they were when a log was opened: inputs, which nothing may overwrite, and which must stay the same."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.marks = {file: fingerprint(file) for file in files}
        for file in self.marks:
            note_input(file)

    def check(self) -> None:
        """Refuse to go on where a file is not the one that was opened."""
        for file, mark in self.marks.items():
            try:
                same = fingerprint(file) == mark
            except FileNotFoundError as error:
                raise PodiumError(f"{file.name} disappeared while it was read", hint=KEEP_HINT) from error
            except OSError:  # who may look at it has changed; what is in it has not
                continue
            if not same:
                raise changed_file(file.name)


def fingerprint(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def changed_file(name: str) -> PodiumError:
    return PodiumError(
        f"{name} changed while it was read", hint="open the log again once nothing writes to it; " + KEEP_HINT
    )
