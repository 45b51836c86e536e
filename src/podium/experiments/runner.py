"""Runs an experiment cell by cell: own seeds, many workers, every finished cell on disk, so that it can be resumed.

A cell is a piece of work with a name. Its numbers depend on its own seed alone (or, in a chain, on the cell before),
never on the workers or on the order. Its result is a dictionary of arrays in one file, written whole or not at all:
after an interruption, even by kill -9, the same call goes on and loses at most the cells that were in flight.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.errors import MissingExtra, PodiumError
from podium.data.files import claim_folder, write_bytes
from podium.data.progress import watch_progress

Arrays = dict[str, NDArray[Any]]
RESULTS = ("cells", "tables", "sweeps", "figures", "results.json", "index.html")  # what a reproduction writes


@dataclass(frozen=True)
class Cell:
    """One piece of work: `name` is its file, `place` decides its seed, `arguments` say what to do."""

    name: str
    place: int
    arguments: Mapping[str, Any]


def run_bench(main: Callable[[], None]) -> None:
    """Run the command of a bench; errors are told without a traceback."""
    try:
        main()
    except PodiumError as error:
        sys.exit(f"podium: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


# work(cell, seed, before): `before` is the result of the previous cell of the chain, None for the first.
Work = Callable[[Cell, np.random.SeedSequence, Arrays | None], Arrays]


def run_cells(
    work: Work,
    chains: Sequence[Sequence[Cell]],
    folder: Path,
    *,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    label: str = "cells",
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Run every cell whose result is not in `folder` yet.

    Parameters
    ----------
    work : a function at the top level of a module, so that workers can find it
    chains : cells of one chain run one after the other, each with the result of the one before; cells that do
        not depend on each other are chains of one
    seed : the cell at place i gets the i-th child that `SeedSequence(seed)` spawns
    workers : processes; all cores by default, 1 for this process alone
    scheduler : address of a Dask scheduler whose workers do the work instead
    enough : asked before each chain; once it says yes, chains that have not started are left for another run
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = [rest for chain in chains if (rest := unfinished(chain, folder))]
    cells = sum(map(len, chains))
    with watch_progress(label, cells, lambda: count_finished(chains, folder)):
        if not todo:
            return
        if scheduler is None and (count := count_workers(workers)) == 1:
            for chain in todo:
                if enough():
                    return
                run_chain(work, chain, seed, folder, last_before(chain, chains, folder))
            return
        with backend(scheduler, 1 if scheduler else count) as parallel:
            # The first cell runs alone: what it compiles is then ready for all the others.
            for part in (todo[:1], todo[1:]) if len(todo[0]) == 1 else (todo,):
                run_parallel(parallel, work, part, chains, seed, folder, enough, shared=scheduler is None)


def run_parallel(
    parallel: Any,
    work: Work,
    todo: Sequence[Sequence[Cell]],
    chains: Sequence[Sequence[Cell]],
    seed: int,
    folder: Path,
    enough: Callable[[], bool],
    shared: bool,
) -> None:
    """Run chains on workers, which save the cells themselves where they share this machine's disk."""
    from joblib import delayed

    calls = (  # joblib takes them as workers become free
        delayed(run_chain)(work, chain, seed, folder if shared else None, last_before(chain, chains, folder))
        for chain in todo
        if not enough()
    )
    for results in parallel(calls):
        for name, arrays in results.items():
            save(folder, name, arrays)


def run_chain(
    work: Work,
    chain: Sequence[Cell],
    seed: int,
    folder: Path | None,
    before: Arrays | None,
) -> dict[str, Arrays]:
    """Run the cells of a chain one after the other; returns the results that it could not save itself."""
    results = {}
    for cell in chain:
        child = np.random.SeedSequence(seed, spawn_key=(cell.place,))
        before = work(cell, child, before)
        if folder is None:
            results[cell.name] = before
        else:
            save(folder, cell.name, before)
    return results


def end_with(parent: int) -> None:
    """Let this process end soon after its parent, even where that was killed and could not say so.

    A process whose parent has ended gets another parent; on Windows it does not, and a worker stays until it has had
    nothing to do for some minutes.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def backend(scheduler: str | None, workers: int) -> Iterator[Any]:
    """joblib's processes on this machine, or the workers of a Dask scheduler."""
    try:
        import joblib
    except ImportError as error:
        raise MissingExtra("joblib", "experiments", "running on several workers") from error
    if scheduler is None:
        with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
            ending = {"initializer": end_with, "initargs": (os.getpid(),)}
            yield joblib.Parallel(return_as="generator_unordered", batch_size=1, **ending)
        return
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra("distributed", "cluster", "running on a Dask cluster") from error
    try:
        connect: Any = distributed.Client
        client = connect(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise PodiumError(
            f"no Dask scheduler answers at {scheduler!r}", hint="give its address as in tcp://host:8786."
        ) from error
    with client, client.as_current(), joblib.parallel_config("dask"):
        yield joblib.Parallel(return_as="generator_unordered", batch_size=1)


def end_workers() -> None:
    """End the processes that joblib keeps for the next call: what follows may need their memory."""
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


def count_workers(workers: int | None) -> int:
    """How many processes: those asked for, or one for each core that this process may use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers < 1:
        raise PodiumError(f"workers must be at least 1; it is {workers}", hint="leave it out to use every core.")
    return workers


def check_start(seed: int, workers: int | None, packages: Sequence[str], purpose: str) -> None:
    """Refuse before anything is written what would be found out only later: bad numbers, a package that is missing."""
    count_workers(workers)
    if seed < 0:
        raise PodiumError(f"seed must not be negative; it is {seed}", hint="use 0, 1, 2, ...")
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package.replace("sklearn", "scikit-learn"), "experiments", purpose)


def cells_folder(out: Path, name: str, overwrite: bool = False) -> Path:
    """The folder of a plan's cells within the folder of an experiment, which becomes podium's own."""
    claim_folder(out, RESULTS, overwrite=overwrite)
    cells = out / "cells" / name
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PodiumError(f"cannot make the folder {str(cells)!r}: {error.strerror}", hint="use --out DIR.") from error
    return cells


# --- results on disk ---------------------------------------------------------------------------------------------


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.npz"


def mark_of(name: str) -> bytes:
    """What the file of a cell says of itself, in the comment of its archive."""
    return f"podium {name}".encode()


def save(folder: Path, name: str, arrays: Arrays) -> None:
    """Write the result of a cell, whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = mark_of(name)
    write_bytes(path_of(folder, name), buffer.getvalue())


def load(folder: Path, name: str) -> Arrays:
    """The result of a finished cell."""
    with np.load(path_of(folder, name), allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def is_finished(folder: Path, name: str) -> bool:
    """Whether a cell has a result of its own, and a whole one; what a crash or a full disk left is done again."""
    try:
        with zipfile.ZipFile(path_of(folder, name)) as archive:
            return archive.comment == mark_of(name) and bool(archive.namelist()) and archive.testzip() is None
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        return False


def unfinished(chain: Sequence[Cell], folder: Path) -> Sequence[Cell]:
    """What is left of a chain, from its first cell without a result on."""
    for i, cell in enumerate(chain):
        if not is_finished(folder, cell.name):
            return chain[i:]
    return ()


def last_before(rest: Sequence[Cell], chains: Sequence[Sequence[Cell]], folder: Path) -> Arrays | None:
    """The result that the rest of a chain goes on from."""
    for chain in chains:
        if chain[-1] is rest[-1]:
            place = len(chain) - len(rest)
            return load(folder, chain[place - 1].name) if place else None
    return None


def count_finished(chains: Sequence[Sequence[Cell]], folder: Path) -> int:
    """How many cells have a result."""
    present = {path.name for path in folder.iterdir()}
    return sum(f"{cell.name}.npz" in present for chain in chains for cell in chain)
