"""Writing files so that nothing is ever half-written: to a temporary file first, then renamed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from podium.data.errors import PodiumError


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    return write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file, whole or not at all."""
    path = Path(path)
    try:
        if path.is_dir():
            raise PodiumError(f"cannot write {str(path)!r}: it is a folder", hint="name a file, not a folder.")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    except PodiumError:
        raise
    except (OSError, ValueError) as error:
        raise PodiumError(
            f"cannot write {str(path)!r}: {getattr(error, 'strerror', error)}",
            hint="name a file in an existing folder that you may write to.",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # a temporary file is private; the result is an ordinary one
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise PodiumError(
                f"cannot write {str(path)!r}: {error.strerror}", hint="name a file on a disk that has room."
            ) from error
        raise
    return path
