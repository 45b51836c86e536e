"""Measures the DuckDB engine against DuckDB's own scan of the same columns, each in a process of its own.

make bench            # 1e7 rows, as part of all
make bench-large      # 1e8 rows: about 10 GB of disk and a quarter of an hour
python bench/engines.py --duplicates  # the latest rows and samples alone
python bench/engines.py --memory      # a log in memory beside DuckDB
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

SPENT = """
import json, resource, sys, time
def spent():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime
def told(start, clock, **more):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"cpu": spent() - start, "wall": time.perf_counter() - clock, "peak": peak, **more}))
"""
GENERATE = """
import duckdb, sys
path, rows, K = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
states = int(sys.argv[4]) if len(sys.argv) > 4 else 4 * rows
c = duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False})
c.execute("SET enable_progress_bar = false")
def draw(k):  # bits that look random; hash(i, k) would not do: its values for several k are correlated
    return f"hash(i * 256 + {k})"
def share(k):
    return f"(({draw(k)} >> 11) / 9007199254740992.0)"
pis = ", ".join(f"{share(k + 9)} AS pi_p{k}" for k in range(K))
c.execute(f'''COPY (SELECT ({draw(1)} % {states})::BIGINT AS state, ({draw(2)} % 10)::BIGINT AS action,
    2 * {share(3)} - 1 AS reward, 0.05 + 0.9 * {share(4)} AS propensity, {pis}
    FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)''')
"""
SCAN = (
    SPENT
    + """
import duckdb
path, K = sys.argv[1], int(sys.argv[2])
c = duckdb.connect(config={"threads": 2})
c.execute("SET enable_progress_bar = false")
columns = ["state", "action", "reward", "propensity", *(f"pi_p{k}" for k in range(K))]
query = "SELECT " + ", ".join(f"sum({x})" for x in columns) + f" FROM '{path}'"
c.execute(query).fetchall()
start, clock = spent(), time.perf_counter()
c.execute(query).fetchall()
told(start, clock)
"""
)
COMPARE = (
    SPENT
    + """
import podium, duckdb, pyarrow.compute, pyarrow.parquet, scipy.sparse, scipy.special, threadpoolctl
path, options = sys.argv[1], json.loads(sys.argv[2])
engine = {"threads": 2, **options.pop("engine", {})}
start, clock = spent(), time.perf_counter()
log = podium.scan_log(path, engine="duckdb", state="state", **engine)
result = podium.compare(log, **options)
told(start, clock, pairs=len(result.pairs), rows=len(result.log))
"""
)
JUDGE = (
    SPENT
    + """
import podium, duckdb, pyarrow.compute, pyarrow.parquet, scipy.sparse, scipy.special, threadpoolctl
from podium.engines.sample import SAMPLE_ROWS, draw_rows
path, policies = sys.argv[1], json.loads(sys.argv[2])
log = podium.scan_log(path, engine="duckdb", state="state", threads=2)
sample = log.sampled(draw_rows(len(log), SAMPLE_ROWS, 0), log.action_space, None)
start, clock = spent(), time.perf_counter()
podium.compare(sample, policies, sample_rows=len(sample))
told(start, clock)
"""
)
READ = (
    SPENT
    + """
import numpy as np, podium, duckdb, pyarrow.compute, pyarrow.parquet, scipy.sparse, scipy.special, threadpoolctl
from podium.engines import LATEST, Keys
from podium.engines.duckdb import DuckEngine
path, K, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
columns = ["state", "action", "reward", "propensity", *(f"pi_p{k}" for k in range(K))]
keys = Keys(("state",), "action")
def look(batches):
    return sum(batch.num_rows if what == "pass" else batch.column(LATEST).true_count for batch in batches)
start, clock = spent(), time.perf_counter()
engine = DuckEngine(path, threads=2)
if what == "pass":
    engine.fold(columns, look, what)
elif what == "marked":
    engine.fold(columns, look, what, latest=keys)
else:
    rows = np.sort(np.random.default_rng(0).choice(engine.rows(), 20_000, replace=False))
    assert engine.take(columns, rows, what).num_rows == len(rows)
told(start, clock)
"""
)
CLASSIFIERS = (
    SPENT
    + """
import numpy as np, podium, duckdb, pyarrow.compute, pyarrow.parquet, scipy.sparse, scipy.special, threadpoolctl
path, engine = sys.argv[1], sys.argv[2]
class Classifier:
    def __init__(self, seed):
        self.classes_ = np.arange(300)
        self.weights = np.random.default_rng(seed).normal(size=(2, 300))
    def predict_proba(self, states):
        scores = np.asarray(states, dtype=float) @ self.weights
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)
policies = {f"model {k}": Classifier(k) for k in range(3)}
options = {"threads": 2} if engine == "duckdb" else {}
start, clock = spent(), time.perf_counter()
log = podium.scan_log(path, engine=engine, state=["x0", "x1"], **options)
podium.compare(log, policies, verdicts="gated", sample_rows=5000)
told(start, clock)
"""
)
MANY_ACTIONS = """
import numpy as np, pyarrow as pa, sys
from pyarrow import parquet
rng, rows = np.random.default_rng(0), int(sys.argv[2])
columns = {"x0": rng.integers(0, 50, rows) / 25, "x1": rng.integers(0, 50, rows) / 25}
columns |= {"action": rng.integers(0, 300, rows), "reward": rng.normal(size=rows), "propensity": np.full(rows, 1 / 300)}
parquet.write_table(pa.table(columns), sys.argv[1])
"""
Report = Callable[[str, str, str, bool], None]
TIMES = 3
WHOLE = {"one": "constant:1", "two": "constant:2", "any": "uniform", "rule": "sql:state % 10"}


def run(code: str, *arguments: Any) -> dict[str, float]:
    """What a process of its own prints of itself."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else {}


def in_turn(**jobs: tuple[Any, ...]) -> dict[str, dict[str, float]]:
    """What each job spends, the median of `TIMES` runs: all of them in turn, so that what else runs slows all alike."""
    found = [{name: run(*job) for name, job in jobs.items()} for _ in range(TIMES)]
    return {
        name: {"cpu": median(f[name]["cpu"] for f in found), "peak": max(f[name]["peak"] for f in found)}
        for name in jobs
    }


def bench_engine(report: Report, rows: int = 10**7) -> None:
    print(f"DuckDB engine: N = {rows:.0e} rows, K = 10 policies, four methods, 45 pairs, nearly all keys distinct")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        run(GENERATE, path, rows, 10)
        found = in_turn(
            scan=(SCAN, path, 10),
            compare=(COMPARE, path, "{}"),
            judge=(JUDGE, path, "null"),
            posterior=(JUDGE, path, json.dumps(WHOLE)),
        )
        scan, compare, judge, posterior = (found[name]["cpu"] for name in found)
        print(
            f"        CPU: DuckDB's own scan-and-sum {scan:.2f} s; comparison {compare:.2f} s, its judge {judge:.2f} s"
        )
        ratio = (compare - judge) / scan
        report("comparison without the sample's judge / scan-and-sum, CPU", f"{ratio:.1f}x", "at most 6x", ratio <= 6)
        for label, cpu in (("gated, ten columns", judge), ("posterior, four whole policies", posterior)):
            report(f"the sample's judge ({label}), CPU", f"{cpu:.1f} s", "at most 8 s", cpu <= 8)
        peak = found["compare"]["peak"]
        report("peak memory of the process", f"{peak:.2f} GB", "under 0.6 GB", peak < 0.6)
        some = rows // 10
        wide, narrow = Path(folder) / "wide.parquet", Path(folder) / "narrow.parquet"
        run(GENERATE, wide, some, 100)
        run(GENERATE, narrow, some, 10)
        found = in_turn(wide=(COMPARE, wide, "{}"), narrow=(COMPARE, narrow, "{}"))
        ratio = found["wide"]["cpu"] / found["narrow"]["cpu"]
        report(f"K = 100 / K = 10 at {some:.0e} rows, CPU", f"{ratio:.1f}x", "at most 10x", ratio <= 10)


def bench_memory(report: Report, rows: int = 2 * 10**6) -> None:
    print(f"In memory: N = {rows:.0e} rows, 300 actions, three classifiers")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        run(MANY_ACTIONS, path, rows)
        found = in_turn(memory=(CLASSIFIERS, path, "memory"), duckdb=(CLASSIFIERS, path, "duckdb"))
        peak, ratio = found["memory"]["peak"], found["memory"]["cpu"] / found["duckdb"]["cpu"]
        report("peak memory of the process", f"{peak:.2f} GB", "at most 2 GB", peak <= 2)
        report("memory / DuckDB, CPU", f"{ratio:.2f}x", "at most 1.05x", ratio <= 1.05)


def bench_duplicates(report: Report, rows: int = 10**7) -> None:
    print(f"DuckDB engine, latest rows marked: N = {rows:.0e} rows, 10 actions, K = 10 columns")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        for states, label in ((500, "5,000 keys"), (45 * rows // 1000, "40% distinct"), (4 * rows, "99% distinct")):
            run(GENERATE, path, rows, 10, states)
            read = {what: (READ, path, 10, what) for what in ("pass", "marked", "take")}
            found = in_turn(scan=(SCAN, path, 10), **read)
            scan, once, marked, take = (found[name]["cpu"] for name in ("scan", "pass", "marked", "take"))
            print(f"        {label}: CPU scan-and-sum {scan:.2f} s; pass {once:.2f} s, marked {marked:.2f} s")
            ratio = (marked - once) / scan
            report(f"{label}: marks / scan-and-sum, CPU", f"{ratio:.1f}x", "at most 2x", ratio <= 2)
            ratio = take / scan
            report(f"{label}: 20,000 rows by number / scan-and-sum", f"{ratio:.1f}x", "at most 1.6x", ratio <= 1.6)
            peak = max(found[name]["peak"] for name in read)
            report(f"{label}: peak memory of the process", f"{peak:.2f} GB", "under 0.6 GB", peak < 0.6)


def bench_large(report: Report, rows: int = 10**8) -> None:
    print(f"DuckDB engine: N = {rows:.0e} rows, K = 10 policies, memory limit 1 GB")
    with tempfile.TemporaryDirectory() as folder:
        path, tenth = Path(folder) / "log.parquet", Path(folder) / "tenth.parquet"
        run(GENERATE, path, rows, 10)
        run(GENERATE, tenth, rows // 10, 10)
        options = json.dumps({"engine": {"memory_limit": "1GB", "temp_dir": folder}})
        small, large = run(COMPARE, tenth, options), run(COMPARE, path, options)
        growth = large["cpu"] / small["cpu"]
        report("CPU / at a tenth of the rows", f"{growth:.1f}x", "linear: at most 13x", growth <= 13)
        report("peak memory", f"{large['peak']:.2f} GB", "under 1.5 GB", large["peak"] < 1.5)
        print(f"        {large['cpu']:.0f} s CPU, {large['wall']:.0f} s wall clock")


def main() -> None:
    failures: list[str] = []

    def report(what: str, value: str, limit: str, holds: bool) -> None:
        print(f"  {'ok  ' if holds else 'FAIL'}  {what:<58} {value:>14}   ({limit})", flush=True)
        if not holds:
            failures.append(what)

    if "--large" in sys.argv:
        bench_large(report)
    elif "--duplicates" in sys.argv:
        bench_duplicates(report)
    elif "--memory" in sys.argv:
        bench_memory(report)
    else:
        bench_engine(report)
    if failures:
        sys.exit("not reached: " + "; ".join(failures))


if __name__ == "__main__":
    main()
