"""The first moments of the command, before anything that takes time is loaded: podium imports this module first.

Only the standard library is imported here.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def is_command() -> bool:
    """Whether this process was started as `podium` or `python -m podium`."""
    return is_module() or Path(sys.argv[0] if sys.argv else "").stem == "podium"


def is_module() -> bool:
    return ("-m", "podium") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)


def leave_folder() -> None:
    """Let `python -m podium` find packages where `podium` finds them, and not in the current folder first."""
    if is_module() and not sys.flags.safe_path and sys.path and sys.path[0] == os.getcwd():
        del sys.path[0]


def end_quietly_while_loading() -> None:
    """Let Ctrl-C end the command without a traceback while its modules are still being loaded.

    Only where this process is the command itself. There is nothing to clean up yet, and the modules of others do not
    expect an exception in the middle of being loaded, so the process ends at once.
    """
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, b"podium: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` within; after it, the command's process only ends, undisturbed."""
    loading = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is end_at_once
    if loading:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if loading:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


with suppress(OSError):  # the current folder may be gone
    leave_folder()
end_quietly_while_loading()
