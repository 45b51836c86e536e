"""Simulated logs, and what every procedure said of them: the same draws for ours and the peers'."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.result import Comparison
from podium.data.columns import Floats
from podium.data.progress import counted
from podium.estimates.estimators import LDE
from podium.estimates.evaluate import evaluate
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.peers import PEERS
from podium.experiments.runner import end_with
from podium.verdicts.pairs import pair_indices

ROWS = (20, 50, 100, 300, 1000)
POLICIES = 5
LEVEL = 0.95
PROCEDURES = ("posterior", "gated", *PEERS)
RANKERS = ("posterior", "LDE", "LDE state", "DRE", "IPS", "DiM")


@dataclass(frozen=True, eq=False)
class Trial:
    """One log: the truth of its pairs, what each procedure said, how each method ordered them."""

    family: str
    rows: int
    truth: Floats  # (P,) V(i) - V(j), 0 for ties
    p_better: dict[str, Floats]
    claims: dict[str, Floats]  # (P,) +1, -1, 0
    order: dict[str, Floats]  # (P,) estimated differences
    t_p: float
    alarm: bool
    seconds: float
    covered: Floats  # (P,) whether the interval holds the truth


def said(result: Comparison, names: Sequence[str]) -> tuple[Floats, Floats, Floats, Floats]:
    """What a comparison says of the pairs i < j: P(better), claims, and the ends of the intervals."""
    pairs = [result.pair(names[i], names[j]) for i, j in zip(*pair_indices(len(names)), strict=True)]
    claims = {"better": 1.0, "worse": -1.0, "cannot tell": 0.0}
    low = [-np.inf if p.interval is None else p.interval.low for p in pairs]
    high = [np.inf if p.interval is None else p.interval.high for p in pairs]
    made = np.array([claims[p.verdict] for p in pairs])
    return np.array([p.p_better for p in pairs]), made, np.array(low), np.array(high)


def run_one(task: tuple[str, int, int, int]) -> Trial:
    """Simulate one log; its seed depends on the cell and the repetition alone, never on the workers."""
    name, rows, repetition, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), rows, repetition])
    draw = FAMILIES[name].draw(rng, rows, POLICIES)
    names = list(draw.policies)
    i, j = pair_indices(len(names))
    truth = draw.values[i] - draw.values[j]
    truth = np.where(np.abs(truth) < 1e-9 * max(1.0, float(np.abs(draw.values).max())), 0.0, truth)
    start = time.process_time()
    main = compare(draw.log, draw.policies, level=LEVEL)
    seconds = time.process_time() - start
    p, made, low, high = said(main, names)
    p_gated, made_gated, *_ = said(compare(draw.log, draw.policies, LDE, level=LEVEL, verdicts="gated"), names)
    claims = {"posterior": made, "gated": made_gated}
    if draw.log.behavior is not None:
        claims |= {peer: rule(draw) for peer, rule in PEERS.items()}
    values = {m: [main.estimates[n].get(m) for n in names] for m in RANKERS if m != "LDE state"}
    local = evaluate(draw.log, draw.policies, [LDE], "state").values
    values["LDE state"] = [local[n]["LDE"] for n in names]
    order = {m: np.array(v)[i] - np.array(v)[j] for m, v in values.items() if None not in v}
    return Trial(
        family=name,
        rows=rows,
        truth=truth,
        p_better={"posterior": p, "gated": p_gated},
        claims=claims,
        order=order,
        t_p=main.basis.judgement.t_p,
        alarm=main.basis.judgement.alarm,
        seconds=seconds,
        covered=((low <= truth) & (truth <= high)).astype(float),
    )


def simulate(families: Iterable[str], rows: Sequence[int], logs: int, seed: int, workers: int) -> list[Trial]:
    """All trials, in an order that does not depend on the number of workers; the longest first."""
    tasks = [(f, n, rep, seed) for n in sorted(rows, reverse=True) for f in families for rep in range(logs)]
    if workers == 1:
        return list(counted(map(run_one, tasks), "calibration", len(tasks), "logs"))
    with pool_of(workers) as pool:
        try:
            return list(counted(pool.map(run_one, tasks, chunksize=2), "calibration", len(tasks), "logs"))
        except BaseException:  # an interruption waits for no log
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def pool_of(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: a copy of this one would inherit locks of threads that it does not have."""
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=prepare_worker, initargs=(os.getpid(),))


def prepare_worker(parent: int) -> None:
    end_with(parent)
    one_thread()


def one_thread() -> None:
    """Keep each worker's linear algebra to one thread: several workers share the cores."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)
