"""Connections to DuckDB that load nothing and reach nothing by themselves, and the pieces of SQL that podium writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.data.errors import PodiumError

if TYPE_CHECKING:
    import duckdb

ALONE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_persistent_secrets": False}
PATTERN = "[?*"  # characters that DuckDB takes for a pattern


def connect(settings: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """A database in memory; extensions are neither installed nor loaded, and times without a zone are UTC."""
    import duckdb

    connection = duckdb.connect(":memory:", config={**ALONE, **settings})
    connection.execute("SET python_enable_replacements = false; SET TimeZone = 'UTC'")
    return connection


def confine(connection: duckdb.DuckDBPyConnection, files: Iterable[Path], folder: Path) -> None:
    """Let a connection read these files, use this folder, and reach nothing else."""
    names = [name for file in files for name in (place(file), file_name(file))]
    connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, names))}]")
    connection.execute(f"SET allowed_directories = [{quoted(place(folder))}, {quoted(file_name(folder))}]")
    connection.execute("SET enable_external_access = false")


def place(file: Path) -> str:
    """An absolute path, which is neither an address nor below a home folder."""
    path = file.absolute().as_posix()
    if not path.isprintable() and path.encode(errors="replace").decode() != path:
        raise PodiumError(
            f"{path!r} cannot be opened: the name is not UTF-8", hint="rename it, or use engine='memory'."
        )
    return path


def file_name(file: Path) -> str:
    """A file as DuckDB reads just this one, although it takes every name for a pattern."""
    path = place(file)
    if "\\" in path and any(c in path for c in PATTERN):  # before a pattern, DuckDB takes it for the end of a folder
        raise PodiumError(
            f"DuckDB cannot open {path!r}: the name holds a backslash and one of {' '.join(PATTERN)}",
            hint="rename the file.",
        )
    return "".join(f"[{c}]" if c in PATTERN else c for c in path)


def file_list(files: Iterable[Path]) -> str:
    """Files as a list in SQL."""
    return "[" + ", ".join(quoted(file_name(file)) for file in files) + "]"


def name_of(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is what Ctrl-C becomes inside DuckDB."""
    import duckdb

    return isinstance(error, duckdb.InterruptException) or (
        isinstance(error, RuntimeError) and str(error) == "Query interrupted"
    )
