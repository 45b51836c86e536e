"""The data tables that podium ships, unpacked: whole, or an error that says what to do."""

from __future__ import annotations

import gzip
import zlib
from importlib.resources import files

from podium.data.errors import PodiumError


def shipped_text(package: str, path: str) -> str:
    """Return the text of a gzip file that podium ships.

    Parameters
    ----------
    package : the package that holds the file, such as "podium.experiments.calibration"
    path : the file inside that package, with "/" between folders
    """
    try:
        return gzip.decompress(files(package).joinpath(*path.split("/")).read_bytes()).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise damaged(path, missing=isinstance(error, FileNotFoundError)) from error


def damaged(path: str, *, missing: bool = False) -> PodiumError:
    """Return the error for a shipped file whose content is not what podium shipped."""
    what = "is missing" if missing else "is damaged"
    return PodiumError(f"{path}, a data file that podium ships, {what}", hint="install podium again.")
