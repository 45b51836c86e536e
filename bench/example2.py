"""Example 2 of the paper, timed: the whole replay, and one training step against plain Python."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np

from podium.experiments.classification.cells import run_cell
from podium.experiments.classification.datasets import Dataset, load_dataset
from podium.experiments.classification.dlm import generator_state, train_linear
from podium.experiments.classification.plan import PRINTED, Plan, Variant

Report = Callable[[str, str, str, bool], None]


def plain_steps(x: np.ndarray, y: np.ndarray, theta: list[np.ndarray], eps: float, steps: int) -> None:
    """Steps of Direct Loss Minimization as one would write them at first: a dot product for each label, twice."""
    labels, n = range(len(theta)), len(x)
    for t in range(steps):
        features, true = x[t % n], y[t % n]
        lowered = {a: np.dot(features, theta[a]) - eps * (a != true) for a in labels}
        scores = {a: np.dot(features, theta[a]) for a in labels}
        a1, a2 = max(lowered, key=lowered.__getitem__), max(scores, key=scores.__getitem__)
        eta = (t + 1) ** -0.3 / 2
        theta[a1] = theta[a1] + eta * features
        theta[a2] = theta[a2] - eta * features


def step_times(data: Dataset, plain: int, ours: int) -> tuple[float, float]:
    """CPU seconds of a step, plain and compiled; standardised and with eps = 10, where training never comes to rest."""
    scale = data.features.std(axis=0)
    x = np.ascontiguousarray((data.features - data.features.mean(axis=0)) / np.where(scale > 0, scale, 1))
    theta = np.random.default_rng(0).standard_normal((x.shape[1], len(data.classes)))
    start = time.process_time()
    plain_steps(x, data.codes, [column.copy() for column in theta.T], 10.0, plain)
    middle = time.process_time()
    _, passes = train_linear(x, data.codes, theta, 10.0, ours, generator_state(random.Random(0)))
    spent = time.process_time() - middle
    assert passes == ours // len(x), "it came to rest, so fewer steps were made"
    return (middle - start) / plain, spent / ours


def bench_example2(report: Report) -> None:
    print("Example 2 of the paper (CPU time of one thread)")
    datasets = {name: load_dataset(name) for name in PRINTED}
    train_linear(np.zeros((2, 1)), np.zeros(2, np.int64), np.zeros((1, 2)), 0.1, 4, generator_state(random.Random(0)))
    for name in ("abalone", "winequality"):
        slow, fast = step_times(datasets[name], 20_000, 2_000_000)
        detail = f"{1e6 * slow:.0f} us / {1e6 * fast:.2f} us"
        ratio = slow / fast
        report(f"a training step, {name}: plain / podium, {detail}", f"{ratio:.0f}x", "at least 100x", ratio >= 100)
    plan = Plan(tuple(datasets.values()), (Variant("dlm", "program"),), replay=True, verdict_logs=0)
    start = time.process_time()
    for chain in plan.chains:
        run_cell(chain[0], np.random.SeedSequence(0), None)
    spent = time.process_time() - start
    report("the replay of all five datasets", f"{spent:.0f} s", "at most 60 s", spent <= 60)
