"""Example 1 of the paper, timed: the whole grid, one test against a plain NumPy loop, the quick run, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from podium.experiments.runner import Cell, run_cells
from podium.experiments.synthetic.cells import run_cell
from podium.experiments.synthetic.plan import PRINTED, Plan
from podium.worlds.bandits import Bandit, example
from podium.worlds.sampling import softmax

Report = Callable[[str, str, str, bool], None]


def plain_test(bandit: Bandit, alpha: float, m: int, rng: np.random.Generator) -> list[float]:
    """One test as one would write it at first: arrays (S, A), a `choice` in every state, four formulas."""
    states, actions = bandit.rewards.shape
    behavior = softmax(rng.standard_normal((states, actions)))
    counts = np.zeros((states, actions))
    for s in range(states):
        counts[s] = np.bincount(rng.choice(actions, m, p=behavior[s]), minlength=actions)
    first, second = (softmax(rng.standard_normal((states, actions))) for _ in range(2))
    pi, mu = bandit.prescribe(alpha, first, second)
    rewards, seen = bandit.rewards, counts > 0
    baseline = rewards[seen].mean()
    result = []
    for policy in (pi, mu):
        result += [
            bandit.value(policy),
            baseline + (seen * (rewards - baseline) * policy).sum(axis=1).mean(),
            baseline + (counts / m * (rewards - baseline) * policy / behavior).sum(axis=1).mean(),
            (counts / m * rewards * policy / behavior).sum(axis=1).mean(),
            (seen * rewards * policy).sum(axis=1).mean(),
        ]
    return result


def bench_example1(report: Report) -> None:
    print("Example 1 of the paper (CPU time of one thread)")
    bandit, rng = example("1.1"), np.random.default_rng(0)
    run_cell(cell(0.05, 1, 1), np.random.SeedSequence(0), None)  # compiles
    for alpha, m, plain, ours in ((0.05, 1, 60, 2000), (0.01, 10, 60, 2000), (0.01, 500, 40, 1000)):
        start = time.process_time()
        for _ in range(plain):
            plain_test(bandit, alpha, m, rng)
        middle = time.process_time()
        run_cell(cell(alpha, m, ours), np.random.SeedSequence(1), None)
        slow, fast = (middle - start) / plain, (time.process_time() - middle) / (ours * len(PRINTED))
        detail = f"{1e6 * slow:.0f} us / {1e6 * fast:.0f} us"
        ratio = slow / fast
        report(f"one test, m = {m}: NumPy loop / podium, {detail}", f"{ratio:.0f}x", "at least 30x", ratio >= 30)
    plan = Plan()
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        run_cells(run_cell, plan.chains, Path(folder), workers=1)
        spent = time.process_time() - start
    tests = sum(map(len, plan.chains)) * plan.tests * len(PRINTED)
    report(f"the whole grid, {tests:,} tests", f"{spent:.0f} s", "at most 60 s", spent <= 60)


def cell(alpha: float, m: int, tests: int) -> Cell:
    return Cell("bench", 0, {"alpha": alpha, "m": m, "tests": tests, "rewards": PRINTED, "detail": False})


def bench_command(report: Report, cpu_of: Callable[[list[str]], tuple[float, float]]) -> None:
    """The quick run, and the memory of a whole run with four workers, main process included."""
    podium = [sys.executable, "-m", "podium", "reproduce", "synthetic"]
    with tempfile.TemporaryDirectory() as folder:
        spent, _ = cpu_of([*podium, "--quick", "--out", folder])
        report("podium reproduce synthetic --quick", f"{spent:.1f} s", "at most 15 s", spent <= 15)
    if not Path("/proc/self/smaps_rollup").exists():
        print("        memory is measured on Linux alone")
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [*podium, "--workers", "4", "--verdict-tests", "4", "--out", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            peak = 0.0
            while process.poll() is None:
                peak = max(peak, sum(map(resident, family(process.pid))))
                time.sleep(0.2)
    holds = process.returncode == 0 and peak < 1.0
    report("the same in full, 4 workers: peak memory of all", f"{peak:.2f} GB", "below 1 GB", holds)


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    except OSError:
        pass
    return found


def resident(pid: int) -> float:
    """Gigabytes of memory that a process holds, shared pages counted in full."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1e6 for line in lines if line.startswith("VmRSS"))
