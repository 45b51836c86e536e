"""Which engine reads a log where none was named, by what the source is and how large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.data.errors import PodiumError, Unconverted
from podium.data.frames import is_frame
from podium.engines.fits import Question, check_file, served_by
from podium.engines.memory import SET_HINT

DATABASES = (".duckdb", ".db")


def choose_engine(source: Any, engine: str, action: str = "action", question: Question | None = None) -> str:
    """The engine that "auto" stands for; refuses a file that cannot fit into memory, before it is read."""
    path = file_path(source)
    chosen = engine
    if engine == "auto":
        chosen = automatic(source) if path is None else served_by(path, action, question or Question())
    if path is not None:
        check_file(path, action, question or Question(), chosen)
    return chosen


def memory_instead(refusal: Unconverted, source: Any, action: str, question: Question) -> None:
    """Make sure that a file fits into memory, where "auto" chose an engine that cannot convert its values."""
    path = file_path(source)
    if path is None:
        raise refusal
    try:
        check_file(path, action, question, "memory")
    except PodiumError as error:
        raise PodiumError(
            f"{error.message}. {refusal.message[0].upper()}{refusal.message[1:]}",
            hint=f"write the values in plain form, such as 0 and 1. {SET_HINT}",
        ) from error


def file_path(source: Any) -> Path | None:
    """The one file that a source names, unless it is a database."""
    if not isinstance(source, str | Path):
        return None
    try:
        path = Path(source)
        return path if path.is_file() and path.suffix.lower() not in DATABASES else None
    except (OSError, ValueError):
        return None


def automatic(source: Any) -> str:
    """The engine for what is not one file."""
    if is_frame(source):
        return "memory"
    if not isinstance(source, str | Path):
        return "spark" if type(source).__module__.startswith("pyspark") else "duckdb"
    path = Path(source)
    try:
        several = path.is_dir() or (not path.exists() and any(c in str(source) for c in "*?["))
        return "duckdb" if several or path.is_file() else "memory"
    except (OSError, ValueError):
        return "memory"
