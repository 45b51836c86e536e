"""Changes of a log that should not matter, and how far each number of an answer moves with them.

python tests/invariances.py    # every change on every log, and the largest movement of each number
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import podium
from podium.worlds.simulator import Programme

Array = np.ndarray
VERDICTS = ("worse", "cannot tell", "better")
TWIN = "twin"  # the name under which a policy is listed a second time


@dataclass(frozen=True)
class Case:
    """A log with its policies, in parts that can be changed one by one.

    Parameters
    ----------
    states : column -> (N,)
    space : the actions; `actions` are places in it
    behavior : (N, A), or (N,) at the logged actions, or None
    policies : name -> (N, A), or (N,) at the logged actions
    """

    states: Mapping[str, Array]
    space: tuple[Any, ...]
    actions: Array
    rewards: Array
    behavior: Array | None
    policies: Mapping[str, Array]
    times: Array
    options: Mapping[str, Any] = field(default_factory=dict)

    def columns(self) -> dict[str, Array]:
        """The log as a table; times say which row is later, so that the order of the rows means nothing."""
        found = {"time": self.times, **self.states}
        found["action"] = np.array(self.space, dtype=object if isinstance(self.space[0], str) else None)[self.actions]
        found["reward"] = self.rewards
        if self.behavior is not None:
            found |= self.spread("propensity", self.behavior)
        for name, policy in self.policies.items():
            found |= self.spread(f"pi_{name}", policy)
        return found

    def spread(self, name: str, matrix: Array) -> dict[str, Array]:
        if matrix.ndim == 1:
            return {name: matrix}
        return {f"{name}:{label}": matrix[:, a] for a, label in enumerate(self.space)}


def make(rows: int, known: str, kind: str, seed: int, count: int = 3, texts: bool = False) -> Case:
    """A small log: what is known of probabilities ("all", "logged", "none"), and "binary" or "continuous" rewards."""
    rng, width = np.random.default_rng([16, seed]), 3
    age, ward = rng.integers(0, 12, rows), rng.integers(0, 3, rows)
    behavior = 0.2 / width + 0.8 * rng.dirichlet(np.full(width, 2.0), 36)[3 * age + ward]
    actions = np.array([rng.choice(width, p=p) for p in behavior])
    better = 0.15 * actions + 0.02 * age * (actions == 1)
    rewards = (
        (rng.random(rows) < 0.3 + better).astype(float) if kind == "binary" else better + rng.normal(size=rows) / 3
    )
    policies = {f"p{k}": rng.dirichlet(np.linspace(1, 1 + 3 * k, width), 36)[3 * age + ward] for k in range(count)}
    states = {"age": age, "ward": np.array([f"w{w}" for w in ward], dtype=object) if texts else ward}
    if known != "all":
        rows_ = np.arange(rows)
        policies = {name: p[rows_, actions] for name, p in policies.items()}
        behavior = behavior[rows_, actions]
    known_behavior = None if known == "none" else behavior
    return Case(states, ("call", "mail", "none"), actions, rewards, known_behavior, policies, np.arange(rows))


def bundled(rows: int = 150) -> Case:
    """The first rows of the bundled example."""
    drawn = Programme().draw(rows=rows, seed=3)
    space = tuple(drawn.action_space)
    codes = np.array([space.index(a) for a in drawn.actions.tolist()])
    states = {f"s{j}": np.asarray(column) for j, column in enumerate(np.asarray(drawn.states).T)}
    return Case(states, space, codes, drawn.rewards, drawn.behavior, drawn.distributions, np.arange(rows))


CASES: dict[str, Callable[[], Case]] = {
    "bundled example": bundled,
    "all probabilities, continuous": lambda: make(120, "all", "continuous", 1),
    "all probabilities, binary": lambda: make(250, "all", "binary", 2, texts=True),
    "logged probabilities, continuous": lambda: make(400, "logged", "continuous", 3),
    "logged probabilities, binary": lambda: make(60, "logged", "binary", 4),
    "no propensities, continuous": lambda: make(200, "none", "continuous", 5, texts=True),
    "no propensities, all of the policies": lambda: replace(make(90, "all", "binary", 6), behavior=None),
}


def drawn(seed: int) -> Case:
    """A random log of 60 to 400 rows with two to four policies."""
    rng = np.random.default_rng([17, seed])
    known, kind = ("all", "logged", "none")[seed % 3], ("binary", "continuous")[seed // 3 % 2]
    return make(int(rng.integers(60, 401)), known, kind, 100 + seed, int(rng.integers(2, 5)), bool(rng.integers(2)))


# --- changes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change of a log, and what it does to rewards: r becomes scale r + shift."""

    apply: Callable[[Case], Case]
    scale: float = 1.0
    shift: float = 0.0
    swaps: bool = False  # the first two policies have each other's name
    read: Callable[[Case], Any] = lambda case: podium.Log.from_columns(case.columns())


def scaled(by: float) -> Change:
    return Change(lambda c: replace(c, rewards=c.rewards * by), scale=by)


def shifted(by: float) -> Change:
    return Change(lambda c: replace(c, rewards=c.rewards + by), shift=by)


def rename_actions(case: Case) -> Case:
    """Labels that sort in the opposite order."""
    return replace(case, space=tuple(f"{'zyxwv'[a]}-{label}" for a, label in enumerate(case.space)))


def relabel_states(case: Case) -> Case:
    """Other names for the state columns and for the texts in them, which sort in another order."""
    return replace(case, states={f"{'zyxwv'[i]}_{name}": renamed(c) for i, (name, c) in enumerate(case.states.items())})


def renamed(column: Array) -> Array:
    return np.array([f"~{9 - int(x[1:])}" for x in column], dtype=object) if column.dtype == object else column


def permute_rows(case: Case) -> Case:
    order = np.random.default_rng(5).permutation(len(case.rewards))
    return replace(
        case,
        states={name: c[order] for name, c in case.states.items()},
        actions=case.actions[order],
        rewards=case.rewards[order],
        behavior=None if case.behavior is None else case.behavior[order],
        policies={name: p[order] for name, p in case.policies.items()},
        times=case.times[order],
    )


def permute_columns(case: Case) -> Case:
    return replace(case, states=dict(reversed(case.states.items())))


def permute_policies(case: Case) -> Case:
    return replace(case, policies=dict(reversed(case.policies.items())))


def duplicate_policy(case: Case) -> Case:
    first = next(iter(case.policies))
    return replace(case, policies={**case.policies, TWIN: case.policies[first]})


def near_duplicate(case: Case) -> Case:
    """A second policy that differs from the first by a ten-thousandth."""
    first = next(iter(case.policies.values()))
    twin = 0.9999 * first + 0.0001 / len(case.space)
    return replace(case, policies={**case.policies, TWIN: twin})


def add_irrelevant(case: Case) -> Case:
    """A policy between two others, which is never the best."""
    one, two = list(case.policies.values())[:2]
    return replace(case, policies={**case.policies, "between": 0.5 * one + 0.5 * two})


def swap_names(case: Case) -> Case:
    a, b = list(case.policies)[:2]
    return replace(case, policies={{a: b, b: a}.get(name, name): policy for name, policy in case.policies.items()})


def add_constant(case: Case) -> Case:
    return replace(case, states={**case.states, "country": np.full(len(case.rewards), 7)})


def convert_states(case: Case, factor: float, zero: float) -> Case:
    """Numbers of the state in another unit and from another zero point, as degrees Fahrenheit for Celsius."""
    states = {name: c if c.dtype == object else factor * c + zero for name, c in case.states.items()}
    return replace(case, states=states)


def states_as_texts(case: Case) -> Case:
    """The same states as names: nothing is said of which are near each other."""
    return replace(
        case, states={name: np.array([f"s{x}" for x in c.tolist()], dtype=object) for name, c in case.states.items()}
    )


def negate(case: Case) -> Case:
    return replace(case, rewards=-case.rewards, options={"lower_is_better": True})


# --- the same log in other forms -------------------------------------------------------------------------------------


def from_pandas(case: Case) -> Any:
    import pandas as pd

    return podium.Log.from_frame(pd.DataFrame(case.columns()))


def from_polars(case: Case) -> Any:
    import polars as pl

    return podium.Log.from_frame(pl.DataFrame({name: c.tolist() for name, c in case.columns().items()}))


def from_arrow(case: Case) -> Any:
    return podium.Log.from_frame(arrow(case))


def arrow(case: Case) -> Any:
    import pyarrow as pa

    return pa.table({name: c.tolist() for name, c in case.columns().items()})


def from_file(ending: str, engine: str) -> Callable[[Case], Any]:
    def read(case: Case) -> Any:
        from pyarrow import csv, parquet

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"log.{ending}"
            (parquet.write_table if ending == "parquet" else csv.write_csv)(arrow(case), path)
            log = podium.scan_log(path, engine=engine)
            return log if isinstance(log, podium.Log) else log.collect()

    return read


def same(case: Case) -> Case:
    return case


CHANGES = {
    "rewards times 0.001": scaled(1e-3),
    "rewards times 7": scaled(7.0),
    "rewards times 1e6": scaled(1e6),
    "rewards plus 10": shifted(10.0),
    "rewards plus 1e6": shifted(1e6),
    "rewards plus 1e9": shifted(1e9),
    "rewards times 1e-170": scaled(1e-170),
    "rewards negated, lower is better": Change(negate, scale=-1.0),
    "actions renamed": Change(rename_actions),
    "states renamed": Change(relabel_states),
    "states in another unit": Change(lambda c: convert_states(c, 1.8, 32.0)),
    "states times 1e-170": Change(lambda c: convert_states(c, 1e-170, 0.0)),
    "states plus 1e6": Change(lambda c: convert_states(c, 1.0, 1e6)),
    "states as texts": Change(states_as_texts),
    "a constant state column": Change(add_constant),
    "rows in another order": Change(permute_rows),
    "state columns in another order": Change(permute_columns),
    "policies in another order": Change(permute_policies),
    "a policy listed twice": Change(duplicate_policy),
    "a policy listed nearly twice": Change(near_duplicate),
    "an irrelevant policy": Change(add_irrelevant),
    "two names swapped": Change(swap_names, swaps=True),
    "a pandas frame": Change(same, read=from_pandas),
    "a polars frame": Change(same, read=from_polars),
    "an arrow table": Change(same, read=from_arrow),
    "a CSV file": Change(same, read=from_file("csv", "memory")),
    "a Parquet file": Change(same, read=from_file("parquet", "memory")),
    "a CSV file in DuckDB": Change(same, read=from_file("csv", "duckdb")),
    "a Parquet file in DuckDB": Change(same, read=from_file("parquet", "duckdb")),
}

# --- numbers ---------------------------------------------------------------------------------------------------------

Numbers = dict[str, dict[Any, Any]]  # kind of number -> what it belongs to -> the number
UNMOVED = Change(same)


def answer(case: Case, change: Change = UNMOVED) -> Numbers:
    """Every number of the answer to a changed log, in the units and under the names of the log before the change."""
    changed = change.apply(case)
    log = change.read(changed)
    result, trust = podium.compare(log, **changed.options), podium.diagnose(log, **changed.options)
    a, b = list(case.policies)[:2]
    old = {a: b, b: a} if change.swaps else {}
    own = [p for p in result.policies if p.name in case.policies]

    def value(x: float | None) -> float | None:
        return None if x is None else (x - change.shift) / change.scale

    found: Numbers = {
        f"estimate {method}": {old.get(p.name, p.name): value(p.estimates[method]) for p in own}
        for method in own[0].estimates
    }
    found["P(best)"] = {old.get(p.name, p.name): p.p_best for p in own}
    for p in result.policies:
        if p.name == TWIN and p.p_best is not None:
            found["P(best)"][a] += p.p_best  # two policies that are one share its chance
    found["order"] = {0: tuple(old.get(p.name, p.name) for p in sorted(own, key=lambda p: p.rank))}
    found["score"] = {old.get(p.name, p.name): value(p.score) for p in own}
    for kind in ("difference", "error", "low", "high", "P(better)", "P adjusted", "verdict", "path"):
        found[kind] = {}
    new = {name: place for place, name in old.items()}
    for one, two in combinations(case.policies, 2):
        pair = result.pair(new.get(one, one), new.get(two, two))
        ends = (None, None) if pair.interval is None else (pair.interval.low, pair.interval.high)
        low, high = (None if x is None else x / change.scale for x in (ends if change.scale > 0 else ends[::-1]))
        numbers = (
            pair.difference / change.scale, None if pair.std_error is None else pair.std_error / abs(change.scale),
            low, high, pair.p_better, pair.p_adjusted, pair.verdict, pair.path,
        )  # fmt: skip
        for kind, number in zip(list(found)[-8:], numbers, strict=True):
            found[kind][one, two] = number
    for c in trust.coverage:
        if c.name in case.policies:
            for kind in ("mass_on_logged", "ess", "max_weight", "top_row_share"):
                found.setdefault(kind, {})[old.get(c.name, c.name)] = getattr(c, kind)
    found["T_p"] = {0: trust.t_p * np.sign(change.scale)}
    found["alarms"] = {0: tuple(sorted(a.name for a in trust.alarms))}
    return found


def movement(before: Numbers, after: Numbers, spread: float) -> dict[str, float]:
    """How far each kind of number moves: rewards in standard deviations of the reward, what is not a number 0 or 1.

    A verdict that becomes a claim, or is no longer one, moves by 1, one that is reversed by 2.
    """
    in_rewards = ("estimate", "score", "difference", "error", "low", "high")
    moved = {}
    for kind in before.keys() | after.keys():
        ours, theirs = before.get(kind, {}), after.get(kind, {})
        unit = spread if kind.startswith(in_rewards) else 1.0
        moved[kind] = 0.0 if ours.keys() == theirs.keys() else np.inf
        for key in ours.keys() & theirs.keys():
            x, y = ours[key], theirs[key]
            if kind == "verdict":
                moved[kind] = max(moved[kind], abs(float(VERDICTS.index(x) - VERDICTS.index(y))))
            elif isinstance(x, float) and isinstance(y, float):
                size = max(1.0, abs(x)) if kind in ("ess", "max_weight", "T_p") else 1.0
                moved[kind] = max(moved[kind], abs(x - y) / unit / size)
            else:
                moved[kind] = max(moved[kind], float(x != y))
    return moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=0, help="number of further random logs (default: 0)")
    options = parser.parse_args()
    cases = [make_case() for make_case in CASES.values()] + [drawn(seed) for seed in range(options.draws)]
    first = [answer(case) for case in cases]
    for title, change in CHANGES.items():
        worst: dict[str, float] = {}
        for case, before in zip(cases, first, strict=True):
            for kind, x in movement(before, answer(case, change), float(case.rewards.std())).items():
                worst[kind] = max(worst.get(kind, 0.0), x)
        shown = ", ".join(f"{kind} {x:.1e}" for kind, x in sorted(worst.items()) if x > 1e-12)
        print(f"{title:36} {shown or 'nothing'}", flush=True)


if __name__ == "__main__":
    main()
