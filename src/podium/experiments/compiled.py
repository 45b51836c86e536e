"""Compiled kernels: each is compiled once, by a process of its own, so that every run gives the same bytes."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from podium.data.errors import MissingExtra
from podium.data.files import write_text

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

COMPILING = "PODIUM_COMPILING"


def load_compiled(module: str, entry: str, compile_with: str, purpose: str) -> ModuleType:
    """A module of compiled functions, all of them on disk.

    A process that has just compiled a function may sum in another order than one that finds it on disk, and so may one
    that compiled it with parts from the disk. So one process compiles everything from scratch while others wait.

    Parameters
    ----------
    module : its full name
    entry : a function that is called from outside
    compile_with : `package.module:function` that calls every such function once with the types in use
    purpose : what needs numba, for the error where it is absent
    """
    try:
        kernel = importlib.import_module(module)
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] != "numba":
            raise
        raise MissingExtra("numba", "experiments", purpose) from error
    if os.environ.get(COMPILING):
        return kernel
    folder = Path(str(getattr(kernel, entry).stats.cache_path))
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f"{Path(str(kernel.__file__)).stem}.{state_of(kernel)}.compiled"
    if not mark.exists():
        with locked(mark.with_suffix(".lock")):
            if not mark.exists():
                for part in folder.glob(f"{mark.name.partition('.')[0]}.*.nb[ic]"):  # of an attempt that was cut off
                    part.unlink(missing_ok=True)
                package, _, function = compile_with.partition(":")
                code = f"from {package} import {function}; {function}()"
                subprocess.run([sys.executable, "-c", code], env={**os.environ, COMPILING: "1"}, check=True)
                write_text(mark, "")
    return kernel


def state_of(kernel: ModuleType) -> str:
    """What compiled code depends on: the source, the versions of Python and numba, and the processor."""
    from numba import __version__
    from numba.core.registry import cpu_target

    source = Path(str(kernel.__file__)).stat()
    processor = cpu_target.target_context.codegen().magic_tuple()
    parts = (source.st_mtime_ns, source.st_size, sys.version, __version__, processor)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds a file; the system lets go of it when its process ends, however it ends."""
    with path.open("a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
