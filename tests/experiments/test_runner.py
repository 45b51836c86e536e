"""The runner: numbers that depend on seeds alone, and runs that can be interrupted in any way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import runner_work as work

from podium.data.errors import PodiumError
from podium.experiments.runner import Cell, end_workers, load, run_bench, run_cells, save


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.npz"))}


def test_a_cell_depends_on_its_own_seed_alone(tmp_path: Path) -> None:
    run_cells(work.draw, work.cells(4), tmp_path / "all", seed=7, workers=1)
    run_cells(work.draw, work.cells(4)[::-1], tmp_path / "reversed", seed=7, workers=1)
    run_cells(work.draw, work.cells(4)[2:3], tmp_path / "one", seed=7, workers=1)
    assert contents(tmp_path / "all") == contents(tmp_path / "reversed")
    expected = np.random.default_rng(np.random.SeedSequence(7).spawn(4)[2]).random(3)
    assert load(tmp_path / "one", "cell-2")["numbers"] == pytest.approx(expected, abs=0)
    run_cells(work.draw, work.cells(4), tmp_path / "other", seed=8, workers=1)
    assert contents(tmp_path / "all") != contents(tmp_path / "other")


def test_workers_change_nothing(tmp_path: Path) -> None:
    run_cells(work.draw, work.cells(6), tmp_path / "1", seed=7, workers=1)
    run_cells(work.draw, work.cells(6), tmp_path / "2", seed=7, workers=2)
    end_workers()
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_what_is_finished_is_not_run_again_and_a_broken_file_is(tmp_path: Path) -> None:
    run_cells(work.draw, work.cells(3), tmp_path, seed=1, workers=1)
    before = contents(tmp_path)
    save(tmp_path, "cell-0", {"numbers": np.zeros(3)})  # stands for a result that a second run must leave alone
    (tmp_path / "cell-1.npz").write_bytes(before["cell-1.npz"][:50])
    run_cells(work.draw, work.cells(3), tmp_path, seed=1, workers=1)
    after = contents(tmp_path)
    assert load(tmp_path, "cell-0")["numbers"].tolist() == [0, 0, 0]
    assert after["cell-1.npz"] == before["cell-1.npz"]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_cell_starts_after_enough(tmp_path: Path, workers: int) -> None:
    def enough() -> bool:
        return len(contents(tmp_path)) >= 2

    run_cells(work.draw, work.cells(20, seconds=0.02), tmp_path, seed=1, workers=workers, enough=enough)
    end_workers()
    assert len(contents(tmp_path)) == 2 if workers == 1 else 2 <= len(contents(tmp_path)) <= 8  # some were waiting
    run_cells(work.draw, work.cells(20), tmp_path, seed=1, workers=1)
    assert len(contents(tmp_path)) == 20


def test_torn_and_foreign_cells_are_done_again(tmp_path: Path) -> None:
    """What a crash of the machine, a full disk or another program may leave under the name of a cell."""
    run_cells(work.draw, work.cells(8), tmp_path, seed=1, workers=1)
    before = contents(tmp_path)
    whole = before["cell-0.npz"]
    end = whole.index(b"PK\x01\x02")  # of the numbers
    torn = [b"", b"\0" * len(whole), whole[: len(whole) // 2], whole[:-1], whole[: end - 16] + bytes(16) + whole[end:]]
    for i, content in enumerate([*torn, whole]):
        (tmp_path / f"cell-{i}.npz").write_bytes(content)
    np.savez(tmp_path / "cell-6.npz", other=np.zeros(3))
    with zipfile.ZipFile(tmp_path / "cell-7.npz", "w") as archive:
        archive.writestr("numbers.npy", b"nothing")
    run_cells(work.draw, work.cells(8), tmp_path, seed=1, workers=1)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
@pytest.mark.platforms("linux", "darwin")
def test_workers_end_with_their_parent(tmp_path: Path, how: str) -> None:
    """Also where the parent alone is sent a signal, even one that gives it no time to tell them."""
    command = [sys.executable, str(Path(work.__file__)), str(tmp_path), "2"]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*.npz"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.Signals[how])
        process.wait(timeout=30)
    deadline = time.monotonic() + 20
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not living(process.pid), "workers live on without their parent"


def living(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_chain_hands_results_on_and_resumes_in_its_middle(tmp_path: Path) -> None:
    chain = [Cell(f"step-{i}", i, {}) for i in range(5)]
    run_cells(work.count_up, [chain], tmp_path, workers=1)
    assert [int(load(tmp_path, c.name)["number"]) for c in chain] == [1, 2, 3, 4, 5]
    for cell in chain[3:]:
        (tmp_path / f"{cell.name}.npz").unlink()
    save(tmp_path, "step-2", {"number": np.array(100)})
    run_cells(work.count_up, [chain], tmp_path, workers=1)
    assert int(load(tmp_path, "step-4")["number"]) == 102


def test_an_error_in_a_cell_reaches_the_caller_and_loses_nothing_else(tmp_path: Path) -> None:
    bad = [*work.cells(2), [Cell("bad", 2, {"fails": True})]]
    with pytest.raises(RuntimeError, match="this cell fails"):
        run_cells(work.draw, bad, tmp_path, workers=1)
    assert set(contents(tmp_path)) == {"cell-0.npz", "cell-1.npz"}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
@pytest.mark.platforms("linux", "darwin")
def test_an_interrupted_run_goes_on_to_the_same_result(tmp_path: Path, workers: int, how: str) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    run_cells(work.draw, work.cells(12), whole, seed=5, workers=1)
    command = [sys.executable, str(Path(work.__file__)), str(part), str(workers)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(list(part.glob("*.npz"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.Signals[how])
        process.wait(timeout=60)
    finished = contents(part)
    assert 2 <= len(finished) < 12, "the run was to be interrupted in its middle"
    assert all(whole_bytes == contents(whole)[name] for name, whole_bytes in finished.items())
    stamps = {path.name: path.stat().st_mtime_ns for path in part.glob("*.npz")}
    run_cells(work.draw, work.cells(12), part, seed=5, workers=1)
    assert contents(part) == contents(whole)
    assert all((part / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items()), "finished cells ran again"


@pytest.mark.heavy
def test_a_dask_cluster_gives_the_same(tmp_path: Path) -> None:
    """A scheduler and two workers, each a process of its own that does part of the work."""
    from distributed import Client, LocalCluster

    run_cells(work.where, work.cells(8), tmp_path / "here", seed=7, workers=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        run_cells(
            work.where, work.cells(8, seconds=0.2), tmp_path / "dask", seed=7, scheduler=cluster.scheduler_address
        )
    names = [f"cell-{i}" for i in range(8)]
    here, there = ([load(tmp_path / folder, name) for name in names] for folder in ("here", "dask"))
    for one, other in zip(here, there, strict=True):
        assert one["numbers"].tobytes() == other["numbers"].tobytes()
    assert {int(cell["process"]) for cell in here} == {os.getpid()}
    processes = {int(cell["process"]) for cell in there}
    assert len(processes) == 2
    assert os.getpid() not in processes


@pytest.mark.heavy
def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(PodiumError) as caught:
        run_cells(work.draw, work.cells(1), tmp_path, scheduler="tcp://127.0.0.1:1")
    assert str(caught.value) == (
        "no Dask scheduler answers at 'tcp://127.0.0.1:1'\n\nHint: give its address as in tcp://host:8786."
    )


def test_without_joblib_the_line_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(PodiumError) as caught:
        run_cells(work.draw, work.cells(2), tmp_path, workers=2)
    assert str(caught.value) == (
        "joblib is not installed; running on several workers needs it\n\nHint: run: pip install 'podium[experiments]'"
    )


def test_the_number_of_workers_is_checked(tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as caught:
        run_cells(work.draw, work.cells(1), tmp_path, workers=0)
    assert str(caught.value) == "workers must be at least 1; it is 0\n\nHint: leave it out to use every core."


@pytest.mark.parametrize("error", [PodiumError("there is a mistake", hint="mend it."), KeyboardInterrupt()])
def test_a_bench_tells_its_errors_without_a_traceback(error: BaseException) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as told:
        run_bench(main)
    assert told.value.code == (
        "podium: there is a mistake\n\nHint: mend it." if isinstance(error, PodiumError) else 130
    )
