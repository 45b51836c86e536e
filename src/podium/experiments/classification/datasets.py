"""Labelled datasets by name: the paper's five, which podium ships, and four that scikit-learn ships.

podium reads its own tables unless the user names another source: a folder (`--data-dir`, PODIUM_DATA_DIR), or the
originals (`--download`; PODIUM_DATA_URL names another address), which it keeps in the user's cache. Whatever the
source, the table must have the checksum of the one that the paper used. A dataset remembers where it came from.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.errors import MissingExtra, PodiumError
from podium.data.files import write_text
from podium.data.shipped import damaged, shipped_text
from podium.experiments.classification.download import DEADLINE, TIMEOUT, download
from podium.experiments.classification.sources import SOURCES, UCI, Source, Table, read_prepared

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
DATA_DIR, DATA_URL = "PODIUM_DATA_DIR", "PODIUM_DATA_URL"
PACKAGE, TABLES = "podium.experiments.classification", "uci_tables"


@dataclass(frozen=True)
class Origin:
    """Where a dataset was read from, in words and as the options that read it from there again."""

    words: str
    options: str = ""


SHIPPED = Origin("shipped with podium")
DOWNLOADED = Origin("downloaded originals", "--download")
SCIKIT_LEARN = Origin("shipped with scikit-learn")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features (N, F) with one label each.

    Attributes
    ----------
    classes : the labels that occur, sorted; actions are in this order
    codes : (N,) each row's label as a position in `classes`
    appearance : (A,) positions in `classes` in the order in which the labels first occur
    """

    name: str
    features: Floats
    labels: NDArray[Any]
    origin: Origin

    @cached_property
    def classes(self) -> NDArray[Any]:
        return np.unique(self.labels)

    @cached_property
    def codes(self) -> Codes:
        codes: Codes = np.searchsorted(self.classes, self.labels).astype(np.int64)
        return codes

    @cached_property
    def appearance(self) -> Codes:
        first = np.unique(self.codes, return_index=True)[1]
        order: Codes = np.argsort(first, kind="stable")
        return order


def load_dataset(
    name: str,
    data_dir: str | Path | None = None,
    *,
    download: bool = False,
    cache: Path | None = None,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
) -> Dataset:
    """Return a dataset by name; without further arguments, the table that podium ships.

    Parameters
    ----------
    name : abalone, algerian, ecoli, glass, winequality; or iris, wine, breast_cancer, digits
    data_dir : a folder with `<name>.csv`, or with the file as it is published; PODIUM_DATA_DIR by default
    download : fetch the original once and keep it in the cache
    cache : the folder where downloaded tables are kept, `cache_folder()` by default
    timeout, deadline : seconds to wait for the server, and for the whole file
    """
    if download and data_dir is not None:
        raise PodiumError("--data-dir and --download exclude each other", hint="name one source of the datasets.")
    if name in BUNDLED:
        return bundled(name)
    if name not in SOURCES:
        raise PodiumError(f"no dataset {name!r}", hint="the datasets are " + ", ".join((*SOURCES, *BUNDLED)) + ".")
    folder = data_dir if data_dir is not None else os.environ.get(DATA_DIR) or None
    if download:
        cached = (cache or cache_folder()) / f"{name}.csv"
        table, origin = from_cache(name, cached) or from_web(name, cached, timeout, deadline), DOWNLOADED
    elif folder is not None:
        table = from_folder(name, Path(folder))
        origin = Origin(f"from the folder {str(folder)!r}", f"--data-dir {shlex.quote(str(folder))}")
    else:
        table, origin = from_package(name), SHIPPED
    return Dataset(name, table.features, np.array(table.labels), origin)


def describe_origins(datasets: Iterable[Dataset]) -> str:
    """Return where datasets were read from, as in 'glass, ecoli (shipped with podium); iris (...)'."""
    names: dict[str, list[str]] = {}
    for dataset in datasets:
        names.setdefault(dataset.origin.words, []).append(dataset.name)
    return "; ".join(f"{', '.join(group)} ({words})" for words, group in names.items())


def from_package(name: str) -> Table:
    """Return the table that podium ships."""
    path = f"{TABLES}/{name}.csv.gz"
    table = right_table(SOURCES[name], read_prepared, shipped_text(PACKAGE, path))
    if table is None:
        raise damaged(path)
    return table


def from_folder(name: str, folder: Path) -> Table:
    """Return the table in a folder of the user's: `<name>.csv`, or the published file."""
    source = SOURCES[name]
    without = f"leave --data-dir and {DATA_DIR} out to use the table that podium ships."
    for path, read in ((folder / f"{name}.csv", read_prepared), (folder / source.file, source.read)):
        if path.is_file():
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                raise PodiumError(f"cannot read {str(path)!r}: {error.strerror}", hint="check the file.") from error
            except UnicodeDecodeError:
                text = ""  # no table of ours
            table = right_table(source, read, text)
            if table is None:
                raise PodiumError(
                    f"{str(path)!r} is not the table of {name} that the paper used: its checksum differs",
                    hint=f"use {address(source)} as it is published, or {without}",
                )
            return table
    raise PodiumError(f"{str(folder)!r} has no {name}.csv", hint=f"put {address(source)} there, or {without}")


def from_cache(name: str, path: Path) -> Table | None:
    """The table that an earlier download kept; a damaged one is removed."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    table = right_table(SOURCES[name], read_prepared, text)
    if table is None:
        with contextlib.suppress(OSError):
            path.unlink()
    return table


def from_web(name: str, cached: Path, timeout: float, deadline: float) -> Table:
    """Download a dataset, check its table, and keep that in the cache."""
    source = SOURCES[name]
    hint = "leave --download out to use the table that podium ships, or name a folder with the file: --data-dir DIR."
    content = download(address(source), timeout=timeout, deadline=deadline, hint=hint)
    table = right_table(source, source.read, content.decode("utf-8", errors="replace"))
    if table is None:
        raise PodiumError(
            f"{address(source)} is not the table of {name} that the paper used: its checksum differs", hint=hint
        )
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_text(cached, table.csv_text())
    except (OSError, PodiumError) as error:  # the data are here all the same
        print(f"podium: {name} is not kept for the next time: {error}", file=sys.stderr)
    return table


def right_table(source: Source, read: Callable[[str], Table], text: str) -> Table | None:
    """Return the table in a text if it is the one that the paper used, else None."""
    try:
        table = read(text)
    except (ValueError, IndexError, KeyError):
        return None
    return table if table.checksum() == source.checksum else None


def address(source: Source) -> str:
    base = os.environ.get(DATA_URL) or UCI
    return base.rstrip("/") + "/" + source.path


def cache_folder() -> Path:
    """Where this system keeps what can be fetched again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podium"


def bundled(name: str) -> Dataset:
    """Return a dataset that scikit-learn ships."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtra("scikit-learn", "experiments", f"the dataset {name}") from error
    bunch = getattr(datasets, f"load_{name}")()
    return Dataset(name, np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target), SCIKIT_LEARN)
