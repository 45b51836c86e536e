"""Labelled datasets by name: the paper's five, from a folder, the cache or the web, and four that scikit-learn brings.

A dataset of the paper is looked for in the data folder (`--data-dir`, PODIUM_DATA_DIR), then in the user's cache, then
at its public address (PODIUM_DATA_URL names another one). Wherever it comes from, its table has to have the checksum of
the one that the paper used; what is in the cache and has another one is thrown away and fetched again.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import Codes, Floats
from podium.errors import MissingExtra, PodiumError
from podium.experiments.classification.download import DEADLINE, TIMEOUT, download
from podium.experiments.classification.sources import SOURCES, UCI, Source, Table, read_prepared
from podium.files import write_text

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
DATA_DIR, DATA_URL = "PODIUM_DATA_DIR", "PODIUM_DATA_URL"


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
    cache: Path | None = None,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
) -> Dataset:
    """A dataset by name.

    Parameters
    ----------
    name : abalone, algerian, ecoli, glass, winequality; or iris, wine, breast_cancer, digits
    data_dir : a folder with `<name>.csv`, or with the file as it is published; PODIUM_DATA_DIR by default
    cache : the folder where downloaded tables are kept, `cache_folder()` by default
    timeout, deadline : seconds to wait for the server, and for the whole file
    """
    if name in BUNDLED:
        return bundled(name)
    if name not in SOURCES:
        raise PodiumError(f"no dataset {name!r}", hint="the datasets are " + ", ".join((*SOURCES, *BUNDLED)) + ".")
    folder = data_dir if data_dir is not None else os.environ.get(DATA_DIR) or None
    if folder is not None:
        table = from_folder(name, Path(folder))
    else:
        cached = (cache or cache_folder()) / f"{name}.csv"
        table = from_cache(name, cached) or from_web(name, cached, timeout, deadline)
    return Dataset(name, table.features, np.array(table.labels))


def from_folder(name: str, folder: Path) -> Table:
    """The table of a dataset in a folder of the user's: `<name>.csv`, or the published file."""
    source = SOURCES[name]
    for path, read in ((folder / f"{name}.csv", read_prepared), (folder / source.file, source.read)):
        if path.is_file():
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                raise PodiumError(f"cannot read {str(path)!r}: {error.strerror}", hint="check the file.") from error
            except UnicodeDecodeError:
                text = ""  # no table of ours
            table = parse(read, text)
            if not is_right(table, source):
                raise PodiumError(
                    f"{str(path)!r} is not the table of {name} that the paper used: its checksum differs",
                    hint=f"use {address(source)} as it is published, or leave --data-dir and {DATA_DIR} out.",
                )
            assert table is not None
            return table
    raise PodiumError(
        f"{str(folder)!r} has no {name}.csv",
        hint=f"put {address(source)} there, or leave --data-dir and {DATA_DIR} out to download it.",
    )


def from_cache(name: str, path: Path) -> Table | None:
    """The table that an earlier download kept; a damaged one is removed."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    table = parse(read_prepared, text)
    if is_right(table, SOURCES[name]):
        return table
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def from_web(name: str, cached: Path, timeout: float, deadline: float) -> Table:
    """Download a dataset, check its table, and keep that in the cache."""
    source = SOURCES[name]
    hint = (
        f"fetch that file on another machine, put it into a folder, and name the folder with --data-dir or {DATA_DIR}; "
        f"or go on with what needs no download: --datasets {','.join(BUNDLED)}."
    )
    content = download(address(source), timeout=timeout, deadline=deadline, hint=hint)
    table = parse(source.read, content.decode("utf-8", errors="replace"))
    if not is_right(table, source):
        raise PodiumError(
            f"{address(source)} is not the table of {name} that the paper used: its checksum differs", hint=hint
        )
    assert table is not None
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_text(cached, table.csv_text())
    except (OSError, PodiumError) as error:  # the data are here all the same
        print(f"podium: {name} is not kept for the next time: {error}", file=sys.stderr)
    return table


def parse(read: Any, text: str) -> Table | None:
    """The table in a text, or None where it is none."""
    try:
        table: Table = read(text)
    except (ValueError, IndexError, KeyError):
        return None
    return table


def is_right(table: Table | None, source: Source) -> bool:
    return table is not None and table.checksum() == source.checksum


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
    """A dataset that scikit-learn brings along."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtra("scikit-learn", "experiments", f"the dataset {name}") from error
    bunch = getattr(datasets, f"load_{name}")()
    return Dataset(name, np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target))
