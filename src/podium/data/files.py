"""Writing files: whole or not at all, never over an input, and over a file of others only where that is asked for.

`write_text` and `write_bytes` serve podium's own folders. A file that a user names goes through `check_output` before
the work begins, and through `write_output` when it is written.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from podium.data.errors import PodiumError, listed
from podium.version import VERSION

AnyPath: TypeAlias = str | os.PathLike[str]

GENERATOR = f"podium {VERSION}"  # named in every page, so that podium knows it again
PAGE = re.compile(rb'\s*<!doctype html>.{0,4000}<meta name="generator" content="podium ', re.DOTALL | re.IGNORECASE)
SAVED = re.compile(rb'\{\s*"schema": "podium/')
MADE_BY = re.compile(rb"# [^\n]*\n\nMade by `python -m podium\.")
DESCRIPTOR = re.compile(r"(?:/dev|/proc/self|/proc/thread-self)/fd/(\d+)")
STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
MARK = ".podium"  # a file in every folder of results
HINTS = dict.fromkeys((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)), "free some disk space.")
HINTS[errno.EISDIR] = "name a file, not a folder."
INPUTS: set[str] = set()  # the files that this process reads


def note_input(path: AnyPath) -> None:
    """Remember a file that is read: nothing will be written over it."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path):
            INPUTS.add(os.path.realpath(path))


# --- files that users name ---------------------------------------------------------------------------------------


def check_output(path: AnyPath, *, overwrite: bool = False) -> Path:
    """Refuse a file that cannot or must not be written, before the work that leads to it begins."""
    with explained(path):
        if os.fspath(path).endswith(os.sep):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        refuse_input(path)
        target = Path(os.path.realpath(path))
        if descriptor_of(path) is None and is_replaced(target):
            refuse_foreign(path, target, overwrite)
            temporary, handle = beside(target, 0o600)
            os.close(handle)
            temporary.unlink()
    return Path(path)


def write_output(path: AnyPath, text: str, *, overwrite: bool = False) -> Path:
    """Write a file that a user named.

    A file that podium wrote is replaced. Any other is refused unless `overwrite` is given, and one that is an input
    of this process always. Links are followed; devices, pipes and open descriptors are written to.
    """
    content = encoded(text)
    with explained(path):
        target = Path(os.path.realpath(path))
        if descriptor_of(path) is None and is_replaced(target):
            if holds(target, content):
                return Path(path)
            refuse_input(path)
            refuse_foreign(path, target, overwrite)
    return write_bytes(path, content)


def holds(target: Path, content: bytes) -> bool:
    """Whether a file has this content already."""
    found = status(target)
    return found is not None and found.st_size == len(content) and target.read_bytes() == content


def refuse_foreign(path: AnyPath, target: Path, overwrite: bool) -> None:
    """Refuse to replace a file that podium did not write; an empty one is nobody's."""
    found = status(target)
    if overwrite or found is None or found.st_size == 0:
        return
    with target.open("rb") as file:
        start = file.read(8192)
        if any(own.match(start) for own in (PAGE, SAVED, MADE_BY)):
            return
    raise PodiumError(
        f"{os.fspath(path)!r} exists, and podium did not write it",
        hint="name another file, or replace it with --overwrite (in Python: overwrite=True).",
    )


# --- folders that podium fills -----------------------------------------------------------------------------------


def claim_folder(folder: Path, names: Sequence[str], *, overwrite: bool = False) -> None:
    """Make a folder podium's own: what bears one of `names` there is podium's from now on.

    Refused, before anything is written, where files of others bear these names.
    """
    with explained(folder, "name a folder that you may write to."):
        if not (folder / MARK).exists() and not overwrite:
            foreign = [name for name in names if os.path.lexists(folder / name)]
            if foreign:
                raise PodiumError(
                    f"the folder {str(folder)!r} already contains {listed(foreign)}, which podium did not write",
                    hint="name another folder, or replace them with --overwrite (in Python: overwrite=True).",
                )
        folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / MARK, "podium writes the files in this folder.\n")


# --- writing -----------------------------------------------------------------------------------------------------


def write_text(path: AnyPath, text: str) -> Path:
    """Write a text file, whole or not at all."""
    return write_bytes(path, encoded(text))


def append_text(path: AnyPath, text: str) -> None:
    """Add to the end of a text file, which need not exist; a pipe that nobody reads is refused, not waited for."""
    with explained(path):
        refuse_input(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        write_all(os.open(path, flags, 0o666), encoded(text))


def encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")


def write_bytes(path: AnyPath, content: bytes) -> Path:
    """Write a file, whole or not at all; devices, pipes and open descriptors are written to."""
    with explained(path):
        refuse_input(path)
        descriptor = descriptor_of(path)
        target = Path(os.path.realpath(path))
        if descriptor is not None:
            sys.stdout.flush()  # what was printed before comes first
            write_all(os.dup(descriptor), content)
        elif is_replaced(target):
            replace(target, content)
        else:
            write_all(os.open(target, os.O_WRONLY | getattr(os, "O_NOCTTY", 0)), content)
    return Path(path)


def replace(target: Path, content: bytes) -> None:
    """Put a new file in place of an old one at once; it keeps the old one's mode and, where allowed, its owner."""
    old = status(target)
    temporary, handle = beside(target, 0o666 if old is None else 0o600)
    try:
        if old is not None and hasattr(os, "fchown"):
            with suppress(OSError):
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode))
        write_all(handle, content)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def beside(target: Path, mode: int) -> tuple[Path, int]:
    """A new file in the folder of another."""
    temporary = target.parent / f"{MARK}-{secrets.token_hex(8)}"
    return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)


def write_all(handle: int, content: bytes) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(content)


# --- what a path leads to ----------------------------------------------------------------------------------------


def refuse_input(path: AnyPath) -> None:
    """Refuse a file that this process reads, by whatever name it is called."""
    descriptor = descriptor_of(path)
    found = os.fstat(descriptor) if descriptor is not None else status(Path(path))
    if found is None:
        return
    for known in INPUTS:
        with suppress(OSError):
            if os.path.samestat(found, os.stat(known)):
                raise PodiumError(
                    f"cannot write {os.fspath(path)!r}: it is an input of this run, {Path(known).name!r}",
                    hint="name another file.",
                )


def descriptor_of(path: AnyPath) -> int | None:
    """The number of the open descriptor that a path such as /dev/stdout stands for."""
    name = os.path.abspath(path)
    for _ in range(40):  # as many links as systems follow
        if name in STREAMS and os.path.exists(name):
            return STREAMS[name]
        if match := DESCRIPTOR.fullmatch(name.replace(f"/proc/{os.getpid()}/", "/proc/self/", 1)):
            return int(match[1])
        if not os.path.islink(name):
            return None
        name = os.path.normpath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


def status(path: Path) -> os.stat_result | None:
    """What the system knows of a file; None where there is none. A folder is refused."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    return found


def is_replaced(target: Path) -> bool:
    """Whether a file is written by replacing it; devices and pipes are written to."""
    found = status(target)
    return found is None or stat.S_ISREG(found.st_mode)


@contextmanager
def explained(path: AnyPath, hint: str = "name a file in an existing folder that you may write to.") -> Iterator[None]:
    """What the system refuses, as an error that names the file."""
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has seen enough
        raise
    except OSError as error:
        hint = HINTS.get(error.errno or 0, hint)
        raise PodiumError(f"cannot write {os.fspath(path)!r}: {error.strerror or error}", hint=hint) from error
    except ValueError as error:
        if isinstance(error, PodiumError):
            raise
        raise PodiumError(f"cannot write {os.fspath(path)!r}: {error}", hint=hint) from error
