"""What went wrong, in words for a page: every error that a request meets is explained here."""

from __future__ import annotations

import contextlib
import errno
import secrets
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException

from podium.data.errors import PodiumError
from podium.outputs.display import printable
from podium.studio.disk import DISK_FULL, is_full_disk

BUSY = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
PLAIN = {  # what Starlette says without a word of its own
    404: "There is no such page in the studio.",
    405: "The studio does not answer this kind of request here.",
}


@dataclass(frozen=True)
class Failure:
    """An error as an answer: its status, what happened, and what to do."""

    status: int
    message: str
    hint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def explain(error: Exception) -> Failure:
    """What to say of an error. One that nobody foresaw gets a number, under which the terminal says more."""
    if isinstance(error, HTTPException):
        plain = error.detail == HTTPStatus(error.status_code).phrase
        message = PLAIN.get(error.status_code, error.detail) if plain else error.detail
        return Failure(error.status_code, message, headers=error.headers or {})
    if isinstance(error, PodiumError):
        return Failure(422, error.message, error.hint)
    if is_full_disk(error):
        return Failure(507, DISK_FULL["message"], DISK_FULL["hint"])
    if isinstance(error, FileNotFoundError):
        return Failure(
            404,
            "The files for this are gone: another page removed them, or the temporary folder was emptied.",
            "Drop the log again; if that fails too, start the studio again.",
        )
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in BUSY):
        return Failure(503, "This machine is too busy for this now.", "Close other programs, and try again.")
    number = secrets.token_hex(4)
    report(number, error)
    return Failure(
        500,
        f"Something happened that the studio did not expect (error {number}).",
        "Your logs are still here: go back and try again. The terminal in which the studio runs says more.",
    )


def report_callback(context: Mapping[str, Any]) -> None:
    """What went wrong outside any request, such as a connection that could not be accepted."""
    error = context.get("exception")
    report(secrets.token_hex(4), error if isinstance(error, Exception) else RuntimeError(context["message"]))


def report(number: str, error: Exception) -> None:
    """One line in the terminal: what it was, and where."""
    places = traceback.extract_tb(error.__traceback__)
    inner = [p for p in places if "podium" in p.filename] or places
    where = f"{inner[-1].filename}:{inner[-1].lineno}" if inner else "an unknown place"
    text = f"podium studio: error {number}: {type(error).__name__}: {printable(str(error))[:500]} ({where})"
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        print(text, file=sys.stderr, flush=True)
