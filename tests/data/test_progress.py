"""Progress of long work: what is shown, where, and when."""

from __future__ import annotations

import io

import pytest

from podium.data import progress
from podium.data.progress import counted, show_progress, watch_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_quick_work_shows_nothing() -> None:
    out = io.StringIO()
    with show_progress("rows", 10, stream=out) as advance:
        advance(10)
    assert out.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_slow_work_shows_how_far_it_is(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 20))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(seconds)))
    out = Terminal() if terminal else io.StringIO()
    with show_progress("first look", 4_000_000, stream=out) as advance:
        advance(1_000_000)
        advance(1_000_000)
    first = "first look  ######------------------  1,000,000 of 4,000,000 rows  25,000.0/s  2:00 left"
    second = "first look  ############------------  2,000,000 of 4,000,000 rows  25,000.0/s  1:20 left"
    wiped = "\r\x1b[2K"
    assert out.getvalue() == (f"{wiped}{first}{wiped}{second}{wiped}" if terminal else f"{first}\n{second}\n")


def test_work_that_others_do_tells_what_was_there_and_how_it_ended() -> None:
    out = io.StringIO()
    done = [3]
    with watch_progress("cells", 5, lambda: done[0], out):
        done[0] = 5
    lines = out.getvalue().splitlines()
    assert lines[0] == "cells: 3 of 5 are there already"
    assert lines[-1].startswith("cells  ########################  5 of 5  ")


def test_things_are_counted_as_they_come() -> None:
    assert list(counted(iter("abc"), "letters", 3, "letters")) == ["a", "b", "c"]
