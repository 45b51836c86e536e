"""Temporary folders that do not outlive their process, however it ends."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from podium.data.errors import PodiumError

try:
    import fcntl
except ImportError:  # Windows, where a file that a living process holds open cannot be removed: that is the lock
    fcntl = None  # type: ignore[assignment]

PREFIX = "podium-"
LOCK = ".podium-lock"


class Scratch:
    """A private folder (mode 0700), removed when it is closed, collected, or when the process ends.

    A process that is killed cannot remove its folder. So the living process holds a lock on a file in it, and whoever
    makes the next folder in the same place first removes those of the same user whose lock nobody holds.

    Parameters
    ----------
    kind : a word that becomes part of the folder's name
    parent : where to make it; the system's temporary folder by default
    """

    def __init__(self, kind: str, parent: str | os.PathLike[str] | None = None) -> None:
        where = Path(parent if parent is not None else tempfile.gettempdir())
        if not where.is_dir():
            raise PodiumError(
                f"there is no folder {str(where)!r} for temporary files", hint="make it, or name another."
            )
        sweep(where)
        try:
            self.path, self.lock = locked_folder(where, f"{PREFIX}{kind}-")
        except OSError as error:
            raise PodiumError(
                f"cannot make a temporary folder in {str(where)!r}: {error.strerror}",
                hint="make room in it, or name another folder.",
            ) from error
        self.close = weakref.finalize(self, remove, self.path, self.lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def locked_folder(where: Path, prefix: str) -> tuple[Path, IO[bytes] | None]:
    """A new folder, and the lock on it; no lock where the file system has none: such a folder is never swept."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        lock = None
        try:
            lock = (folder / LOCK).open("wb")
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / LOCK).stat()  # gone if another process swept it before it was locked
            return folder, lock
        except OSError as error:
            if lock is not None:
                lock.close()
            if isinstance(error, BlockingIOError | FileNotFoundError):  # another process is sweeping it, or has
                continue
            with suppress(OSError):
                (folder / LOCK).unlink()
            return folder, None


def remove(folder: Path, lock: IO[bytes] | None, owner: int) -> None:
    """Remove the folder, then let go of the lock; a forked child leaves its parent's folder alone."""
    if os.getpid() != owner:
        return
    if fcntl is None and lock is not None:
        lock.close()
    clear(folder)
    if lock is not None:
        lock.close()


def sweep(where: Path) -> None:
    """Remove the folders in `where` that this user's dead processes left."""
    with suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    if is_own_folder(entry):
                        remove_abandoned(Path(entry.path))


def is_own_folder(entry: os.DirEntry[str]) -> bool:
    mine = not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()
    return mine and entry.is_dir(follow_symlinks=False)


def remove_abandoned(folder: Path) -> None:
    """Remove a folder unless a living process holds its lock; a folder without a lock is not one of ours."""
    if fcntl is None:
        (folder / LOCK).unlink()  # fails while its process lives
        clear(folder)
        return
    if not stat.S_ISREG((folder / LOCK).lstat().st_mode):
        return
    with open(os.open(folder / LOCK, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        clear(folder)


def clear(folder: Path) -> None:
    """Remove a folder, its lock last: if this process is killed meanwhile, the next one sweeps what is left."""
    with suppress(OSError):
        for path in [p for p in folder.iterdir() if p.name != LOCK]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if all(p.name == LOCK for p in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
