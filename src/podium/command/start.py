"""The first moments of the command, before anything that takes time is loaded: podium imports this module first.

Only what Python has loaded anyway is imported here, and `signal`.
"""

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT


def is_command() -> bool:
    """Whether this process was started as `podium` or `python -m podium`."""
    script = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    return is_module() or script == "podium"


def is_module() -> bool:
    return ("-m", "podium") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)


def end_quietly_while_loading() -> None:
    """Let Ctrl-C end the command without a traceback while its modules are still being loaded.

    Only where this process is the command itself. There is nothing to clean up yet, and the modules of others do not
    expect an exception in the middle of being loaded, so the process ends at once.
    """
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


def end_at_once(number: int, frame: object) -> None:
    try:
        os.write(2, b"podium: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


def leave_folder() -> None:
    """Let `python -m podium` find packages where `podium` finds them, and not in the current folder first."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    if is_module() and not sys.flags.safe_path and sys.path and sys.path[0] == here:
        del sys.path[0]


end_quietly_while_loading()
leave_folder()
