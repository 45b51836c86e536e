"""A progress bar with rate and time left, for work that others do: it looks every now and then how far they are."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

WIDTH = 24
EVERY = 0.5  # seconds between two looks
SPARSE = 15.0  # seconds between two lines where no terminal can overwrite them


class Progress:
    """Shows `label  ####----  12/214  3.1/s  1:05 left` on stderr while the block runs.

    Parameters
    ----------
    label : what is counted
    total : how many there are
    done : tells how many are finished; called from another thread
    """

    def __init__(self, label: str, total: int, done: Callable[[], int], stream: TextIO | None = None) -> None:
        self.label, self.total, self.done = label, total, done
        self.stream = stream or sys.stderr
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self) -> Self:
        self.start, self.first = time.monotonic(), self.done()
        if self.first and self.first < self.total:
            print(f"{self.label}: {self.first} of {self.total} are there already", file=self.stream, flush=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self.thread.join()
        self.show(end="\n")

    def watch(self) -> None:
        while not self.stop.wait(EVERY if self.stream.isatty() else SPARSE):
            self.show(end="" if self.stream.isatty() else "\n")

    def show(self, end: str) -> None:
        """One line; on a terminal it overwrites the last one."""
        line = progress_line(self.label, self.done(), self.first, self.total, time.monotonic() - self.start)
        back = "\r\x1b[2K" if self.stream.isatty() else ""
        print(back + line, end=end, file=self.stream, flush=True)


def progress_line(label: str, done: int, first: int, total: int, seconds: float) -> str:
    """The line of a bar; the rate counts what was done in this run alone.

    >>> progress_line("tests", 60, 20, 100, 20.0)
    'tests  ##############----------  60/100  2.0/s  0:20 left'
    >>> progress_line("tests", 100, 0, 100, 50.0)
    'tests  ########################  100/100  2.0/s  in 0:50'
    """
    filled = WIDTH * done // max(total, 1)
    rate = (done - first) / seconds if seconds > 0 else 0.0
    parts = [label, "#" * filled + "-" * (WIDTH - filled), f"{done}/{total}"]
    if rate > 0:
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        parts.append(f"in {clock(seconds)}" if done == total else f"{clock((total - done) / rate)} left")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss.

    >>> clock(65), clock(3725)
    ('1:05', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
