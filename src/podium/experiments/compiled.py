"""Compiled kernels: each is compiled by a process of its own, so that a first run gives the same bytes as any other."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from podium.data.errors import MissingExtra

COMPILING = "PODIUM_COMPILING"


def load_compiled(module: str, entries: Sequence[str], compile_with: str, purpose: str) -> ModuleType:
    """A module of compiled functions, all of them on disk.

    A process that has just compiled a function may sum in another order than one that finds it on disk, so another
    process compiles it first.

    Parameters
    ----------
    module : its full name
    entries : the functions that are called from outside
    compile_with : `package.module:function` that calls every entry once with the types in use
    purpose : what needs numba, for the error where it is absent
    """
    try:
        kernel = importlib.import_module(module)
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] != "numba":
            raise
        raise MissingExtra("numba", "experiments", purpose) from error
    if not is_compiled(kernel, entries) and not os.environ.get(COMPILING):
        package, _, function = compile_with.partition(":")
        code = f"from {package} import {function}; {function}()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, COMPILING: "1"}, check=True)
    return kernel


def is_compiled(kernel: ModuleType, entries: Sequence[str]) -> bool:
    """Whether every entry of a kernel is on disk, and no older than its source."""
    source = Path(str(kernel.__file__))
    written = source.stat().st_mtime
    for name in entries:
        folder = Path(str(getattr(kernel, name).stats.cache_path))
        if not any(index.stat().st_mtime >= written for index in folder.glob(f"{source.stem}.{name}-*.nbi")):
            return False
    return True
