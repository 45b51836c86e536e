"""Signals that end a command: it cleans up, says so in one line, and exits with 128 + the signal's number."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from podium.command.start import end_at_once

# SIGHUP: the terminal was closed; SIGQUIT: Ctrl-\. Windows has neither.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
GRACE = 3.0  # seconds for cleaning up before another signal counts


class Ended(BaseException):
    """A signal ended this process; its exit code is 128 + the signal's number.

    Like `KeyboardInterrupt`, it passes by whoever catches the errors, or the `SystemExit`, of a user's function.
    """

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        self.signal = signal.Signals(number).name
        super().__init__(self.exit_code)


class Handler:
    """Raises what a signal stands for; then cleaning up is left undisturbed for some seconds."""

    def __init__(self, stands_for: Callable[[int], BaseException]) -> None:
        self.stands_for = stands_for
        self.number: int | None = None  # of the signal that came
        self.time = -math.inf

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self.time > GRACE:
            self.number, self.time = number, time.monotonic()
            raise self.stands_for(number)


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let SIGTERM, SIGHUP and SIGQUIT raise `Ended` within, so that every `finally` and every finalizer runs.

    A signal that is ignored stays ignored (`nohup`). After the first one, cleaning up is left undisturbed for some
    seconds (a group of processes is often sent two), and the end of the process altogether. In other threads than the
    main one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in ENDING}
    heard = [number for number, handler in previous.items() if handler not in (signal.SIG_IGN, None)]
    end = Handler(Ended)
    for number in heard:
        signal.signal(number, end)
    try:
        yield
    except (KeyboardInterrupt, Exception):  # DuckDB and Arrow make such errors of a signal that comes while they work
        if end.number is None:
            raise
        raise Ended(end.number) from None
    finally:
        for number in heard:
            signal.signal(number, previous[number] if end.number is None else signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` within; after it, the command's process only ends, undisturbed."""
    loading = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is end_at_once
    if loading:
        signal.signal(signal.SIGINT, Handler(lambda _: KeyboardInterrupt()))
    try:
        yield
    finally:
        if loading:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
