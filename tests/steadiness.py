"""How much an answer moves when nothing that matters changes: the last digit of the data, the seed, the row order.

python tests/steadiness.py                      # 20 logs, a table
python tests/steadiness.py --logs 4 --rows 300  # the first 4, none longer than 300 rows
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from machines import leaves

import podium
from podium.comparison.result import Comparison
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.worlds import Draw

MOVE = 1e-15  # by what share every distinct value of a log is moved
POLICIES = 4
ROWS = (400, 100, 250, 800, 150, 1000, 300, 2000, 200, 600, 120, 5000, 350, 1500, 500, 3000, 250, 4000, 700, 2500)
# Every family of the fixed grid that is meant to be decided, in the order in which the calibration names them.
NAMES = [name for name, family in FAMILIES.items() if family.kind != "failure" and not family.variant]


@dataclass(frozen=True)
class Moved:
    """How far answers are from the first one, at most."""

    answer: float  # any number of the answer, relative to 1 or to its own size
    p_better: float
    verdicts: int  # pairs whose verdict is not the same in all answers
    order: bool  # whether the ranking changed


def logs(count: int = len(ROWS), most_rows: int = max(ROWS)) -> list[tuple[str, Draw]]:
    """Simulated logs with times: a family and a number of rows for each, fixed before any was looked at."""
    found = []
    for place, rows in enumerate(ROWS[:count]):
        name = NAMES[place * 3 % len(NAMES)]
        draw = FAMILIES[name].draw(np.random.default_rng([14, place]), min(rows, most_rows), POLICIES)
        found.append((name, replace(draw, log=replace(draw.log, times=np.arange(len(draw.log))))))
    return found


def moved_values(draw: Draw, seed: int) -> Draw:
    """The log with every distinct fraction multiplied by 1 - 1e-15, 1 or 1 + 1e-15; equal ones stay equal."""
    log = draw.log
    numeric = log.states if log.states.dtype.kind == "f" else np.zeros(0)
    fields = [numeric, log.rewards, log.propensities, log.behavior, *draw.policies.values()]
    distinct = np.unique(np.concatenate([x.ravel() for x in fields if x is not None]))
    target = distinct * (1 + MOVE * np.random.default_rng(seed).integers(-1, 2, size=len(distinct)))

    def move(values: Any) -> Any:
        if values is None or values.dtype.kind != "f":
            return values
        return target[np.searchsorted(distinct, values)]

    changed = replace(
        log,
        states=move(log.states),
        rewards=move(log.rewards),
        propensities=move(log.propensities),
        behavior=move(log.behavior),
    )
    return replace(draw, log=changed, policies={name: move(p) for name, p in draw.policies.items()})


def reordered(draw: Draw, seed: int) -> Draw:
    """The same rows in another order; the times still tell which came first."""
    log = draw.log
    order = np.random.default_rng([seed, 5]).permutation(len(log))
    changed = replace(
        log,
        **{
            name: None if values is None else values[order]
            for name, values in {
                "states": log.states,
                "actions": log.actions,
                "rewards": log.rewards,
                "propensities": log.propensities,
                "behavior": log.behavior,
                "times": log.times,
                "units": log.units,
            }.items()
        },
    )
    return replace(draw, log=changed, policies={name: p[order] for name, p in draw.policies.items()})


def answer(draw: Draw, seed: int = 0) -> Comparison:
    return podium.compare(draw.log, draw.policies, seed=seed)


def moved(first: Comparison, others: Iterable[Comparison]) -> Moved:
    """How far the others are from the first."""
    names = [(p.a, p.b) for p in first.pairs]
    own = by_name(first)
    answers, chances, order, changed = 0.0, 0.0, False, set()
    for other in others:
        theirs = by_name(other)
        if own.keys() != theirs.keys():
            answers = np.inf
        for path in own.keys() & theirs.keys():
            answers = max(answers, abs(own[path] - theirs[path]) / max(1.0, abs(own[path])))
        for a, b in names:
            left, right = first.pair(a, b), other.pair(a, b)
            chances = max(chances, abs(left.p_better - right.p_better))
            changed |= {(a, b)} if left.verdict != right.verdict else set()
        order |= first.ranking != other.ranking
    return Moved(answers, chances, len(changed), order)


def by_name(result: Comparison) -> dict[str, float]:
    """Every number of an answer, by policies' names, so that a change of rank does not compare others."""
    policies = {p.name: asdict(p) for p in result.policies}
    pairs = {f"{a} - {b}": asdict(result.pair(a, b)) for a, b in combinations(sorted(policies), 2)}
    numbers = leaves(policies | pairs)
    return {path: float(x) for path, x in numbers if isinstance(x, float | int) and not isinstance(x, bool)}


def perturbed(draw: Draw, times: int = 3) -> Moved:
    """How far the answers move with the last digits of the data."""
    return moved(answer(draw), (answer(moved_values(draw, seed)) for seed in range(times)))


def reseeded(draw: Draw, seeds: int = 10) -> Moved:
    """How far they move with the seed."""
    return moved(answer(draw), (answer(draw, seed) for seed in range(1, seeds)))


def shuffled(draw: Draw, orders: int = 10) -> Moved:
    """How far they move with the order of the rows, where times are given."""
    return moved(answer(draw), (answer(reordered(draw, seed)) for seed in range(orders)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=len(ROWS), help="number of logs (default: 20)")
    parser.add_argument("--rows", type=int, default=max(ROWS), help="most rows of a log (default: 5000)")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default: 10)")
    parser.add_argument("--orders", type=int, default=10, help="number of row orders (default: 10)")
    parser.add_argument("--moves", type=int, default=3, help="number of perturbed logs (default: 3)")
    options = parser.parse_args()
    print(f"{'':36}{'data * (1 +- 1e-15)':>20}{'seeds':>24}{'row orders':>24}")
    print(
        f"{'family':30}{'rows':>6}{'answer':>12}{'verdicts':>9}" + f"{'P(better)':>11}{'verdicts':>9}{'order':>6}" * 2
    )
    total = np.zeros(5)
    for name, draw in logs(options.logs, options.rows):
        data, seeds, orders = (
            perturbed(draw, options.moves),
            reseeded(draw, options.seeds),
            shuffled(draw, options.orders),
        )
        total += [data.verdicts, seeds.verdicts, seeds.order, orders.verdicts, orders.order]
        line = f"{name:30}{len(draw.log):6}{data.answer:12.1e}{data.verdicts:9}"
        for found in (seeds, orders):
            line += f"{found.p_better:11.4f}{found.verdicts:9}{'turns' if found.order else '':>6}"
        print(line, flush=True)
    data_verdicts, seed_verdicts, seed_turns, order_verdicts, order_turns = total.astype(int).tolist()
    print(
        f"verdicts that change with the data's last digit: {data_verdicts}; with the seed: {seed_verdicts} "
        f"(order in {seed_turns} logs); with the row order: {order_verdicts} (order in {order_turns} logs)"
    )


if __name__ == "__main__":
    main()
