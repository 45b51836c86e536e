"""Progress of long scans: rows done, rate and time left, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

from podium.errors import count

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
FIRST = 2.0  # seconds before anything is shown
EVERY = 0.5  # seconds between two lines on a terminal
SPARSE = 15.0  # and elsewhere


@contextmanager
def no_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Nothing is shown."""
    yield lambda rows: None


@contextmanager
def show_progress(label: str, total: int, stream: TextIO | None = None) -> Iterator[Callable[[int], None]]:
    """Shows `label  1,200,000 of 10,000,000 rows  3.1 million/s  0:05 left` once that takes more than two seconds."""
    out = stream or sys.stderr
    start = last = time.monotonic()
    done, shown = 0, False

    def advance(rows: int) -> None:
        nonlocal done, last, shown
        done += rows
        now = time.monotonic()
        if now - start > FIRST and now - last > (EVERY if out.isatty() else SPARSE if shown else 0):
            back = "\r\x1b[2K" if out.isatty() else ""
            print(
                back + scan_line(label, done, total, now - start),
                end="" if out.isatty() else "\n",
                file=out,
                flush=True,
            )
            last, shown = now, True

    try:
        yield advance
    finally:
        if shown and out.isatty():
            print("\r\x1b[2K", end="", file=out, flush=True)


def scan_line(label: str, done: int, total: int, seconds: float) -> str:
    """One line on how far a scan is.

    >>> scan_line("state by state", 2_500_000, 10_000_000, 5.0)
    'state by state  2,500,000 of 10,000,000 rows  0.50 million/s  0:15 left'
    """
    rate = done / seconds if seconds > 0 else 0.0
    left = round((total - done) / rate) if rate else 0
    clock = f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}" if left >= 3600 else f"{left // 60}:{left % 60:02d}"
    return f"{label}  {done:,} of {count(total, 'row')}  {rate / 1e6:.2f} million/s  {clock} left"
