"""Progress of long work on stderr: how much is done, the rate, and the time left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
FIRST = 2.0  # seconds before anything is shown of a scan
EVERY = 0.5  # seconds between two lines on a terminal, each over the one before
SPARSE = 15.0  # and elsewhere
WIDTH = 24
T = TypeVar("T")


@contextmanager
def no_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Nothing is shown."""
    yield lambda rows: None


@contextmanager
def show_progress(
    label: str, total: int, *, of: str = "rows", stream: TextIO | None = None
) -> Iterator[Callable[[int], None]]:
    """For work that tells how much it has done; shown once it takes more than two seconds, and wiped at the end."""
    lines = Lines(label, total, of, stream or sys.stderr)
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        lines.show_in_time(done)

    try:
        yield advance
    finally:
        lines.wipe()


@contextmanager
def watch_progress(label: str, total: int, done: Callable[[], int], stream: TextIO | None = None) -> Iterator[None]:
    """For work that others do: a thread looks every now and then how much is `done`; the last line stays."""
    lines = Lines(label, total, "", stream or sys.stderr, before=done())
    if lines.before and lines.before < total:
        lines.write(f"{label}: {lines.before} of {total} are there already\n")
    try:
        with meanwhile(lambda: lines.show(done()), lines.pause):
            yield
    finally:
        lines.show(done(), end="\n")


@contextmanager
def watch_share(progress: Progress, label: str, total: int, share: Callable[[], float]) -> Iterator[None]:
    """For work of which others tell what share is done."""
    with progress(label, total) as advance:
        done = 0

        def look() -> None:
            nonlocal done
            now = int(total * share())
            if now > done:
                advance(now - done)
                done = now

        with meanwhile(look, EVERY):
            yield
        advance(total - done)


@contextmanager
def meanwhile(look: Callable[[], None], pause: float) -> Iterator[None]:
    """A thread looks every `pause` seconds while other work goes on."""
    ended = threading.Event()

    def keep_looking() -> None:
        while not ended.wait(pause):
            look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def counted(things: Iterable[T], label: str, total: int, of: str) -> Iterator[T]:
    """Things as they come, with their progress."""
    with show_progress(label, total, of=of) as advance:
        for thing in things:
            yield thing
            advance(1)


@dataclass
class Lines:
    """The lines of one piece of work; on a terminal each takes the place of the one before."""

    label: str
    total: int
    of: str
    stream: TextIO
    before: int = 0  # done by an earlier run
    start: float = field(default_factory=lambda: time.monotonic())
    last: float | None = None

    @property
    def pause(self) -> float:
        return EVERY if self.stream.isatty() else SPARSE

    def show_in_time(self, done: int) -> None:
        now = time.monotonic()
        if now - self.start > FIRST and (self.last is None or now - self.last > self.pause):
            self.show(done)

    def show(self, done: int, end: str = "") -> None:
        self.last = time.monotonic()
        line = progress_line(self.label, done, self.total, self.last - self.start, self.of, self.before)
        terminal = self.stream.isatty()
        self.write(("\r\x1b[2K" if terminal else "") + line + (end or ("" if terminal else "\n")))

    def wipe(self) -> None:
        if self.last is not None and self.stream.isatty():
            self.write("\r\x1b[2K")

    def write(self, text: str) -> None:
        """Show a text; work does not stop because nobody can see how far it is."""
        with suppress(OSError):
            print(text, end="", file=self.stream, flush=True)


def progress_line(label: str, done: int, total: int, seconds: float, of: str = "", before: int = 0) -> str:
    """How far work is; the rate counts what was done in this run alone.

    >>> progress_line("state by state", 2_500_000, 10_000_000, 5.0, "rows")
    'state by state  ######------------------  2,500,000 of 10,000,000 rows  0.50 million/s  0:15 left'
    >>> progress_line("tests", 60, 100, 20.0, before=20)
    'tests  ##############----------  60 of 100  2.0/s  0:20 left'
    >>> progress_line("tests", 100, 100, 50.0)
    'tests  ########################  100 of 100  2.0/s  in 0:50'
    """
    filled = min(WIDTH, WIDTH * done // max(total, 1))
    rate = (done - before) / seconds if seconds > 0 else 0.0
    parts = [label, "#" * filled + "-" * (WIDTH - filled), f"{done:,} of {total:,} {of}".rstrip()]
    if rate > 0:
        parts.append(rate_text(rate))
        parts.append(f"in {clock(seconds)}" if done >= total else f"{clock((total - done) / rate)} left")
    return "  ".join(parts)


def rate_text(rate: float) -> str:
    """A number per second, or per minute where that is less than one.

    >>> rate_text(3_140_000), rate_text(12.3), rate_text(0.5)
    ('3.14 million/s', '12.3/s', '30.0/min')
    """
    if rate >= 1e5:
        return f"{rate / 1e6:.2f} million/s"
    return f"{rate:,.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min"


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss.

    >>> clock(65), clock(3725)
    ('1:05', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
