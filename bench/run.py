"""Measures podium against the clock and against its peers; every figure is a ratio, or CPU time, of this one run.

make bench            # or: .venv/bin/python bench/run.py
"""

import os

# Before NumPy loads: CPU seconds of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from engines import bench_engine
from episodes import bench_proxy
from example1 import bench_command, bench_example1
from example2 import bench_example2
from example3 import bench_example3
from studio import bench_studio

import podium
from podium.estimates.bootstrap import bootstrap_differences
from podium.estimates.estimate import prepare
from podium.estimates.estimators import DRE, IPS, Estimator
from podium.estimates.terms import row_terms
from podium.worlds.simulator import Programme

HERE = Path(__file__).parent
OBP = HERE.parent / ".bench" / "obp" / "bin" / "python"
failures: list[str] = []


def report(what: str, value: str, limit: str, holds: bool) -> None:
    print(f"  {'ok  ' if holds else 'FAIL'}  {what:<58} {value:>14}   ({limit})", flush=True)
    if not holds:
        failures.append(what)


def cpu_of(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a child process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start


def cpu(work: Callable[[], object], repeat: int = 5) -> float:
    """Median CPU seconds of a call in this process."""
    work()
    spent = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def bench_start() -> None:
    print("Starting")
    runs = [[cpu_of([sys.executable, "-c", f"import {m}"])[0] for m in ("numpy", "podium")] for _ in range(7)]
    numpy_cpu, podium_cpu = np.median(np.array(runs), axis=0)
    ratio = podium_cpu / numpy_cpu
    report("import podium / import numpy, CPU", f"{ratio:.2f}x", "at most 2x", ratio <= 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        Programme().draw(200, 0).write_csv(path)
        command = [sys.executable, "-m", "podium", "compare", str(path)]
        spent = np.median(np.array([cpu_of(command) for _ in range(5)]), axis=0)
    report("podium compare of a 200-row CSV, CPU", f"{spent[0]:.2f} s", "under 1 s", spent[0] < 1)
    report("the same, wall clock", f"{spent[1]:.2f} s", "under 1 s", spent[1] < 1)


BIG = """
import resource, sys, time
import numpy as np, podium
rows, K, A = int(sys.argv[1]), 10, 10
rng = np.random.default_rng(0)
states, actions = rng.integers(0, rows // 5, rows), rng.integers(0, A, rows)
rewards, p = rng.normal(size=rows), np.full(rows, 1 / A)
policies = {f"p{k}": rng.random(rows) for k in range(K)}
podium.compare(podium.Log([0, 1], [0, 1], [0.0, 1.0]), {"a": "uniform", "b": "constant:1"})  # loads SciPy
start = time.process_time()
log = podium.Log(states, actions, rewards, propensities=p)
result = podium.compare(log, policies)
spent = time.process_time() - start
assert len(result.pairs) == 45 and len(log.latest) < rows
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def bench_million() -> None:
    print("N = 1e6 rows, K = 10 policies, integer states, dedup, four methods, 45 pairs")

    def run(rows: int) -> tuple[float, float]:
        output = subprocess.run([sys.executable, "-c", BIG, str(rows)], check=True, capture_output=True, text=True)
        seconds, memory = map(float, output.stdout.split())
        return seconds, memory

    runs = np.array([[run(10**5)[0], *run(10**6)] for _ in range(3)])
    small, large, memory = np.median(runs, axis=0)
    report("CPU time", f"{large:.2f} s", "at most 1.5 s", large <= 1.5)
    report("peak memory of the process, input included", f"{memory:.2f} GB", "at most 0.5 GB", memory <= 0.5)
    growth = large / small
    report("CPU time at 1e6 rows / at 1e5 rows", f"{growth:.1f}x", "linear: about 10x, at most 15x", growth <= 15)


REPORT = """
import time
import numpy as np, podium
from podium.outputs.report import page
rng = np.random.default_rng(0)
rows, K, A = 5_000, 20, 5
behavior = rng.dirichlet(np.full(A, 2.0), rows)
actions = (behavior.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=A - 1)
log = podium.Log(rng.normal(size=rows).round(2), actions, actions + rng.normal(size=rows), behavior=behavior)
result = podium.compare(log, {f"p{k}": rng.dirichlet(np.linspace(1, 2 + k, A), rows) for k in range(K)})
start = time.process_time()
text = page(result)
print(time.process_time() - start, len(text.encode()))
"""


def bench_report() -> None:
    print("Report of K = 20 policies, N = 5,000 rows, on top of the comparison")
    output = subprocess.run([sys.executable, "-c", REPORT], check=True, capture_output=True, text=True)
    seconds, size = map(float, output.stdout.split())
    report("CPU time", f"{seconds:.2f} s", "under 3 s", seconds < 3)
    report("size of the page", f"{size / 1e6:.2f} MB", "under 2 MB", size < 2e6)


def bench_obp(rows: int, actions: int = 10, policies: int = 10, draws: int = 1000) -> None:
    print(f"Open Bandit Pipeline 0.5.7: N = {rows:,}, {actions} actions, K = {policies}, B = {draws}")
    rng = np.random.default_rng(1)
    behavior = rng.dirichlet(np.ones(actions), rows)
    action = (behavior.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=actions - 1)
    p = behavior[np.arange(rows), action]
    reward = rng.normal(1.0, 1.0, rows)
    matrices = {f"p{k}": rng.dirichlet(np.ones(actions), rows) for k in range(policies)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.npz"
        arrays = {f"action_dist_{k}": m for k, m in enumerate(matrices.values())}
        names = np.array(list(matrices))
        np.savez(path, reward=reward, action=action, pscore=p, names=names, estimated_rewards=reward.mean(), **arrays)
        command = [str(OBP), str(HERE / "peer_obp.py"), str(path), "--bootstrap", str(draws)]
        peer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    log = podium.Log(np.arange(rows), action, reward, propensities=p, action_space=range(actions))
    ours = podium.evaluate(log, matrices, ["IPS", "DRE"], duplicates="all").values
    gaps = [abs(ours[n][m] - peer["values"][o][n]) for n in names for m, o in (("IPS", "ipw"), ("DRE", "dr"))]
    report("largest gap between the values of IPS and DR", f"{max(gaps):.1e}", "at most 1e-10", max(gaps) <= 1e-10)

    def bootstrap(estimator: Estimator) -> None:
        terms = row_terms(resolved_log, resolved, estimator, duplicates="all")
        bootstrap_differences(terms, draws, 0.95, 0)

    resolved_log, resolved = prepare(log, matrices)
    spent = cpu(lambda: (bootstrap(IPS), bootstrap(DRE)))
    whole = cpu(
        lambda: [
            podium.compare(log, matrices, m, duplicates="all", bootstrap=draws, verdicts="paired t")
            for m in ("IPS", "DRE")
        ]
    )
    theirs = peer["cpu_seconds"]["intervals"]["ipw"] + peer["cpu_seconds"]["intervals"]["dr"]
    faster = theirs / spent
    detail = f"{theirs:.2f} s / {spent:.3f} s"
    report(f"paired bootstrap of IPS and DRE: OBP / podium, {detail}", f"{faster:.0f}x", "at least 60x", faster >= 60)
    print(f"        two whole comparisons with all that they show: {whole:.3f} s, {theirs / whole:.0f}x")


if __name__ == "__main__":
    bench_start()
    bench_million()
    bench_report()
    bench_studio(report)
    for size in (10_000, 100_000):
        bench_obp(size)
    bench_engine(report)
    bench_example1(report)
    bench_command(report, cpu_of)
    bench_example2(report)
    bench_example3(report, cpu)
    bench_proxy(report, cpu)
    if failures:
        sys.exit("not reached: " + "; ".join(failures))
