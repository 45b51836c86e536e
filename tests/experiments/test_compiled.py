"""Compiled kernels are compiled once, whole, and by one process, however many need them at the same moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import podium

KERNEL = "from numba import njit\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n"
USER = """
from podium.experiments.compiled import load_compiled
def compile_kernel():
    import os, pathlib, time
    from slow_kernel import double
    double(1)
    with pathlib.Path("log").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(0.5)  # the files are there already, and it is not finished
if __name__ == "__main__":
    kernel = load_compiled("slow_kernel", "double", "user_of_kernel:compile_kernel", "this")
    kernel.double(1)
    print(sum(kernel.double.stats.cache_misses.values()))
"""


@pytest.mark.slow  # four processes load numba
def test_one_process_compiles_while_others_wait(tmp_path: Path) -> None:
    (tmp_path / "slow_kernel.py").write_text(KERNEL)
    (tmp_path / "user_of_kernel.py").write_text(USER)
    source = str(Path(podium.__file__).parents[1])
    path = os.pathsep.join([str(tmp_path), source])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "user_of_kernel.py"]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)

    together = [start() for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in together]
    answers.append(start().communicate(timeout=60)[0])
    assert answers == ["0\n"] * 3, "a process compiled the kernel for itself"
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    (mark,) = (tmp_path / "cache").rglob("*.compiled")
    mark.unlink()  # as if the first attempt had been cut off
    assert start().communicate(timeout=60)[0] == "0\n"
    assert len((tmp_path / "log").read_text().splitlines()) == 2
