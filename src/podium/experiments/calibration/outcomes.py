"""Guardrails, worths and lifts on logs whose truth is known: false "holds" of gates, and coverage of intervals.

python -m podium.calibration.outcomes

Every log has four states, three actions and two outcomes that depend on state and action: visits, which are coins, and
a cost with skewed noise. Both policies choose by state. A guardrail "cost(new) < cost(current) + margin" has its margin
at the true difference of costs (boundary: it does not hold), below it (violated) or above it (held).
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.comparison.lifts import Lift
from podium.comparison.pair import Interval
from podium.comparison.result import Comparison
from podium.data.columns import Floats
from podium.data.errors import count
from podium.data.log import Log
from podium.data.progress import counted
from podium.experiments.calibration.trials import one_thread
from podium.experiments.runner import run_bench
from podium.outputs.display import Table

ROWS = (200, 500, 1000)
STATES, ACTIONS = 4, ("email", "letter", "call")
WORTH = -0.2
LOGGERS = ("uniform", "uneven", "by state")
STEP = 0.125  # how far a violated or held guardrail is from its boundary, in units of cost, whose noise has sd 0.5


@dataclass(frozen=True, eq=False)
class World:
    """True means of both outcomes (S, A), the logger (S, A), and both policies (S, A); every state is as frequent."""

    visits: Floats
    cost: Floats
    logger: Floats
    policies: dict[str, Floats]

    def value(self, name: str, outcome: Floats) -> float:
        return float((self.policies[name] * outcome).sum(axis=1).mean())

    def difference(self, outcome: Floats) -> float:
        return self.value("new", outcome) - self.value("current", outcome)


def make_world(rng: np.random.Generator, logger: str) -> World:
    """A world in which both outcomes differ by action, and the policies differ in most states."""
    visits = np.clip(0.35 + 0.08 * rng.normal(size=(STATES, 1)) + 0.08 * rng.normal(size=(STATES, 3)), 0.05, 0.9)
    cost = 2.0 + 0.3 * rng.normal(size=(STATES, 1)) + np.array([0.0, 0.2, 0.5]) + 0.1 * rng.normal(size=(STATES, 3))
    shares = {"uniform": np.full(3, 1 / 3), "uneven": np.array([0.5, 0.3, 0.2])}.get(logger)
    log_p = rng.dirichlet(np.full(3, 6.0), size=STATES) if shares is None else np.tile(shares, (STATES, 1))
    log_p = np.maximum(log_p, 0.08)
    log_p = log_p / log_p.sum(axis=1, keepdims=True)
    one, other = rng.integers(3, size=STATES), rng.integers(3, size=STATES)
    other = np.where(one == other, (one + 1) % 3, other)
    return World(visits, cost, log_p, {"new": np.eye(3)[one], "current": 0.8 * np.eye(3)[other] + 0.2 / 3})


def draw(world: World, rng: np.random.Generator, rows: int) -> tuple[Log, dict[str, Floats]]:
    """A log of so many rows, and the policies on them."""
    states = rng.integers(STATES, size=rows)
    actions = (rng.random((rows, 1)) > world.logger[states].cumsum(axis=1)).sum(axis=1).clip(max=2)
    cost = world.cost[states, actions] + 0.5 * (rng.exponential(size=rows) - 1)
    columns: dict[str, Any] = {
        "state": np.array([f"s{s}" for s in states], dtype=object),
        "action": np.array(ACTIONS, dtype=object)[actions],
        "visits": (rng.random(rows) < world.visits[states, actions]).astype(np.float64),
        "cost": cost,
    }
    columns |= {f"propensity:{a}": world.logger[states, j] for j, a in enumerate(ACTIONS)}
    log = Log.from_columns(columns, reward="visits", also=["cost"], actions=ACTIONS)
    return log, {name: policy[states] for name, policy in world.policies.items()}


def gates(world: World, result: Comparison) -> dict[str, Floats]:
    """For each gate: whether it holds by the truth, and the exit codes 0, 3, 4 as indicators."""
    at, rise = world.difference(world.cost), world.difference(world.visits)
    share = at / world.value("current", world.cost)
    moved = {"violated": -STEP, "boundary": 0.0, "held": STEP}
    found = {}
    for kind, move in moved.items():
        found[f"cost, {kind}"] = exits(result, f"cost(new) < cost(current) {at + move:+.12f}")
        percent = 100 * (share + move / world.value("current", world.cost))
        found[f"cost in percent, {kind}"] = exits(result, f"cost(new) < cost(current) {percent:+.10f}%")
        # of both parts only the cost can fail: visits may fall by far more than they do
        visits = f"visits(new) > visits(current) {rise - 0.3:+.12f}"
        found[f"two parts, cost {kind}"] = exits(result, f"{visits} and cost(new) < cost(current) {at + move:+.12f}")
    both = f"visits(new) > visits(current) {rise:+.12f} and cost(new) < cost(current) {at:+.12f}"
    found["two parts, both at the boundary"] = exits(result, both)
    return found


def exits(result: Comparison, gate: str) -> Floats:
    code = result.gate(gate).exit_code
    return np.array([code == 0, code == 3, code == 4], dtype=np.float64)


def covers(world: World, result: Comparison) -> dict[str, Floats]:
    """For each interval: whether it is given, whether it covers the truth, and its width."""
    found = {}
    for name, of in (("visits", world.visits), ("cost", world.cost)):
        pair = result.outcomes[name].pair("new", "current")
        truth = 100 * world.difference(of) / world.value("current", of)
        found[f"lift of {name}, percent"] = covered(pair.lift, truth)
        found[f"difference of {name}"] = covered(pair.interval, world.difference(of))
    combined = result.pair("new", "current").interval
    found["net worth"] = covered(combined, world.difference(world.visits + WORTH * world.cost))
    return found


def covered(ends: Interval | Lift | None, truth: float) -> Floats:
    if ends is None:
        return np.zeros(3)
    return np.array([1.0, ends.low <= truth <= ends.high, ends.high - ends.low])


def run_one(logger: str, rows: int, repetition: int, seed: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """One log; its seed depends on the cell and the repetition alone."""
    rng = np.random.default_rng([seed, zlib.crc32(logger.encode()), rows, repetition])
    world = make_world(rng, logger)
    log, policies = draw(world, rng, rows)
    result = compare(log, policies, worth={"cost": WORTH})  # net worth ranks, both outcomes stand beside it
    return gates(world, result), covers(world, result)


def tables(logs: int, rows: Sequence[int], loggers: Sequence[str], seed: int) -> tuple[Table, Table]:
    """Gates by their truth, and coverage, for each number of rows."""
    cells = [(logger, n, k) for n in rows for logger in loggers for k in range(logs)]
    sums: dict[tuple[str, int], Floats] = {}
    spans: dict[tuple[str, int], Floats] = {}
    for logger, n, repetition in counted(cells, "outcomes", len(cells), "logs"):
        answered, intervals = run_one(logger, n, repetition, seed)
        for found, total in ((answered, sums), (intervals, spans)):
            for name, figures in found.items():
                total[name, n] = total.get((name, n), np.zeros(3)) + figures
    many = logs * len(loggers)
    note = f"{count(many, 'log')} in each cell; loggers: {', '.join(loggers)}; seed {seed}."
    gate_rows = []
    for name, n in sums:
        holds, unsure, opposite = (f"{100 * x / many:.1f}%" for x in sums[name, n])
        gate_rows.append([name, f"{n:,}", holds, unsure, opposite])
    span_rows = []
    for name, n in spans:
        given, inside, width = spans[name, n]
        share = f"{100 * inside / given:.1f}%" if given else "-"
        span_rows.append([name, f"{n:,}", f"{100 * given / many:.0f}%", share, f"{width / max(given, 1):.3g}"])
    return (
        Table("Gates", ["gate", "N", "holds", "cannot tell", "opposite"], gate_rows, "lrrrr", [note]),
        Table("Intervals", ["interval", "N", "given", "covers", "mean width"], span_rows, "lrrrr", [note]),
    )


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Measure gates on several outcomes, lifts and worths.")
    parser.add_argument("--logs", type=int, default=100, help="per logger and number of rows (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--logger", nargs="+", default=list(LOGGERS), choices=LOGGERS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    one_thread()
    for table in tables(options.logs, options.rows, options.logger, options.seed):
        print(f"\n| {' | '.join(table.columns)} |")
        print("|" + "---|" * len(table.columns))
        for row in table.rows:
            print(f"| {' | '.join(row)} |")
        print("\n" + table.notes[0])


if __name__ == "__main__":
    run_bench(main)
