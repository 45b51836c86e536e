"""Columns recorded after the action: false gates that they open, and alarms with and without such a column.

python -m podium.calibration.leaks --seed 6
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from podium.comparison.analysis import analyze
from podium.data.columns import Column, Floats
from podium.data.log import Log
from podium.estimates.estimators import LDE
from podium.estimates.options import Options
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.real_trials import RealTrial, load_trial, trial_names
from podium.experiments.calibration.trials import one_thread
from podium.experiments.calibration.worlds import sample, softmax
from podium.experiments.runner import run_bench
from podium.outputs.display import Table, share
from podium.verdicts.judgement import Judgement
from podium.verdicts.leaks import WARNINGS, check_columns
from podium.verdicts.pairs import pair_indices

ALARMS = tuple(dict.fromkeys(WARNINGS.values()))
LEVEL = 0.95
HONEST_ROWS = (30, 60, 120, 240)
STRENGTHS = (0.1, 0.2, 0.3, 0.5, 0.8)  # effect of the action, in standard deviations of the reward
SIZES = (100, 300, 1000, 3000, 10_000)
R2 = (1.0, 0.9, 0.5)
KINDS = ("status", "noisy copy", "later measurement", "caused by the action", "mediator", "two columns")
CLEARLY = 2.0  # standard errors of the truth (of a trial) by which it must be against a gate


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a randomized log before a leak, and the true mean reward of every action with its error."""

    name: str
    states: Mapping[str, Column]
    actions: Column
    rewards: Floats
    shares: Mapping[Any, float]
    means: Mapping[str, float]
    errors: Mapping[str, float]

    def log(self, **more: Column) -> Log:
        behavior = np.tile(list(self.shares.values()), (len(self.rewards), 1))
        columns = {**self.states, **more, "action": self.actions, "reward": self.rewards}
        columns |= {f"propensity:{arm}": behavior[:, j] for j, arm in enumerate(self.shares)}
        return Log.from_columns(columns, actions=list(self.shares))


# --- logs with a leak --------------------------------------------------------------------------------------------


def simulated(rng: Generator, rows: int, arms: int, binary: bool) -> Rows:
    """People with an age and a city; every arm is better than the one before it."""
    shares = {f"arm {k}": s for k, s in enumerate(np.linspace(1.5, 0.5, arms) / arms)}
    age, city = rng.normal(50, 12, rows).round(), rng.choice(["A", "B", "C"], size=rows)
    chosen = sample(rng, np.tile(list(shares.values()), (rows, 1)))
    level, step = (0.3, 0.3 / (arms - 1)) if binary else (0.0, 1.0 / (arms - 1))
    expected = level + step * chosen + 0.004 * (age - 50)
    rewards = (rng.random(rows) < expected).astype(float) if binary else expected + rng.standard_normal(rows)
    means = {arm: level + step * k for k, arm in enumerate(shares)}
    name = f"simulated, {arms} arms, {'yes or no' if binary else 'numbers'}, {rows} rows"
    states = {"age": age, "city": city.astype(object)}
    return Rows(name, states, np.array(list(shares))[chosen], rewards, shares, means, dict.fromkeys(means, 0.0))


def of_trial(rng: Generator, trial: RealTrial, rows: int) -> Rows:
    """Some rows of a real trial; all of them give the truth."""
    some = rng.choice(len(trial.rewards), size=min(rows, len(trial.rewards)), replace=False)
    by_arm = {str(arm): trial.rewards[trial.actions == arm] for arm in trial.shares}
    means = {arm: float(y.mean()) for arm, y in by_arm.items()}
    errors = {arm: float(y.std() / np.sqrt(len(y))) for arm, y in by_arm.items()}
    states = {name: column[some] for name, column in trial.states.items()}
    return Rows(f"trial {trial.name}", states, trial.actions[some], trial.rewards[some], trial.shares, means, errors)


def leaked(rng: Generator, rows: Rows, kind: str) -> Log:
    """The log with a column that was recorded after the action."""
    y, n = rows.rewards, len(rows.rewards)
    spread = float(y.std())
    noise = rng.standard_normal(n)
    arm = np.searchsorted(list(rows.shares), rows.actions) if kind != "status" else np.zeros(n)
    column: Column
    if kind == "status":
        column = np.where(y > np.median(y) if len(np.unique(y)) > 2 else y > y.min(), "attended", "no show")
        column = column.astype(object)
    elif kind == "noisy copy":
        column = y + spread / 3 * noise  # R2 = 0.9
    elif kind == "later measurement":
        column = y + spread * noise  # R2 = 0.5
    elif kind == "caused by the action":
        column = arm + noise
    elif kind == "mediator":  # lies between action and reward
        column = 0.5 * arm + 0.5 * y / spread + 0.5 * noise
    else:  # neither column says anything of the reward without the other
        sign = rng.choice([-1.0, 1.0], size=n)
        return rows.log(later=sign * (y - y.mean()) / spread + 0.1 * noise, sign=sign)
    return rows.log(later=column)


def leaks(seed: int) -> Iterator[tuple[str, Rows, Log]]:
    """Logs with a leak: worlds and real trials, each with every kind of column."""
    worlds = [(200, 2, True), (400, 2, True), (300, 3, False), (1000, 4, True)]
    for k, kind in enumerate(KINDS):
        for w, world in enumerate(worlds):
            rng = np.random.default_rng([seed, 1, k, w])
            rows = simulated(rng, *world)
            yield kind, rows, leaked(rng, rows, kind)
        for t, name in enumerate(trial_names()):
            rng = np.random.default_rng([seed, 2, k, t])
            rows = of_trial(rng, load_trial(name), 600)
            yield kind, rows, leaked(rng, rows, kind)


def opened(judgement: Judgement, names: Sequence[str], truth: Rows, clearly: float = CLEARLY) -> int:
    """Pairs with an open gate that the truth is against: a worse arm is better, or worse by less than half as much.

    The truth must be against it by `clearly` of its own standard errors.
    """
    count = 0
    surely = (1 + LEVEL) / 2
    for n, (i, j) in enumerate(zip(*pair_indices(len(names)), strict=True)):
        gap = truth.means[names[i]] - truth.means[names[j]]
        error = float(np.hypot(truth.errors[names[i]], truth.errors[names[j]]))
        margins = [m for m in (0.0, gap / 2) if abs(gap - m) > clearly * error]
        sides = [judgement.p_above(margin)[n] for margin in margins]
        count += any(p <= 1 - surely if gap > 0 else p >= surely for p in sides)
    return count


def leak_table(seed: int) -> Table:
    """Which alarms rang on logs with a leaked column, and the false gates that opened with and without alarms."""
    keys = ("logs", "rang", *ALARMS, "pairs", "before", "after", "before, any", "after, any")
    count = {kind: Counter[str]() for kind in (*KINDS, "all")}
    for kind, rows, log in leaks(seed):
        analysis = analyze(log, {name: f"constant:{name}" for name in rows.means}, LDE, Options())
        names, found = analysis.rows.policies.names, {WARNINGS[a.code] for a in analysis.alarms}
        figures = Counter(found) + Counter(logs=1, rang=int(bool(found)), pairs=len(names) * (len(names) - 1) // 2)
        figures["before"] = opened(analysis.best_source, names, rows)
        figures["after"] = opened(analysis.judgement, names, rows)
        figures["before, any"] = opened(analysis.best_source, names, rows, 0.0)
        figures["after, any"] = opened(analysis.judgement, names, rows, 0.0)
        count[kind] += figures
        count["all"] += figures
        if figures["after"]:
            print(f"false gate: {kind}, {rows.name}", flush=True)
    cells = [[kind, *(str(figures[key]) for key in keys)] for kind, figures in count.items()]
    columns = ["column", "logs", "alarm", *ALARMS, "pairs", "before", "opened", "any before", "any"]
    notes = [
        "opened: pairs with a gate that holds against the truth (of a trial: by more than 2 of its standard errors).",
        "any: the same against a trial's estimate, however uncertain. before: without alarms.",
    ]
    return Table(f"Logs with a leaked column (seed {seed})", columns, cells, "l" + "r" * 10, notes)


# --- how strong a leak must be -----------------------------------------------------------------------------------


def strength_table(seed: int, logs: int) -> Table:
    """How often a copy of the reward is noticed, by the effect of the action, the quality of the copy, and N."""
    cells = []
    for r2 in R2:
        for effect in STRENGTHS:
            rates = []
            for rows in SIZES:
                rng = np.random.default_rng([seed, 3, int(10 * r2), int(10 * effect), rows])
                rates.append(np.mean([noticed(rng, rows, effect, r2) for _ in range(logs)]))
            cells.append([f"{r2:g}", f"{effect:g}", *(share(float(rate)) for rate in rates)])
    columns = ["R2 of the copy", "effect", *(f"N = {rows:,}" for rows in SIZES)]
    notes = ["effect: difference between two equally frequent actions, in standard deviations of the reward."]
    return Table(f"Copies of the reward that are noticed (seed {seed})", columns, cells, "rr" + "r" * len(SIZES), notes)


def copied(rng: Generator, rows: int, effect: float, r2: float) -> tuple[Rows, Log]:
    """Two actions by a coin, an honest column, and one with a noisy copy of the reward."""
    actions = rng.integers(2, size=rows)
    rewards = rng.standard_normal(rows) + effect * (actions - 0.5)
    copy = rewards + np.sqrt(1 / r2 - 1) * rng.standard_normal(rows)
    means = {"x": -effect / 2, "y": effect / 2}
    shares = dict.fromkeys(means, 0.5)
    arms = np.array(["x", "y"], dtype=object)[actions]
    source = Rows("a copy", {"age": rng.standard_normal(rows)}, arms, rewards, shares, means, dict.fromkeys(means, 0.0))
    return source, source.log(later=copy)


def noticed(rng: Generator, rows: int, effect: float, r2: float) -> bool:
    """Whether one column with a noisy copy of the reward raises an alarm."""
    return any(check.alarm for check in check_columns(copied(rng, rows, effect, r2)[1]))


def missed_table(seed: int, logs: int) -> Table:
    """How often such a copy opens a false gate, with and without alarms: what the alarms miss."""
    cells = []
    for rows in SIZES[:2]:
        for effect in STRENGTHS:
            count: Counter[str] = Counter()
            for draw in range(logs):
                rng = np.random.default_rng([seed, 5, rows, int(10 * effect), draw])
                source, log = copied(rng, rows, effect, 0.9)
                analysis = analyze(log, {name: f"constant:{name}" for name in source.means}, LDE, Options())
                names = analysis.rows.policies.names
                count["alarm"] += bool(analysis.alarms)
                count["before"] += opened(analysis.best_source, names, source)
                count["after"] += opened(analysis.judgement, names, source)
            rates = (share(count[key] / logs) for key in ("alarm", "before", "after"))
            cells.append([f"{rows:,}", f"{effect:g}", *rates])
    columns = ["N", "effect", "alarm", "false gate without alarms", "false gate"]
    return Table(f"False gates of copies with R2 = 0.9 (seed {seed})", columns, cells, "rrrrr")


# --- honest logs -------------------------------------------------------------------------------------------------


def earlier_measurement(rng: Generator, rows: int) -> tuple[Log, dict[str, Any]]:
    """A state column that predicts the reward well because it measured the same thing before the action."""
    r2 = float(rng.choice([0.5, 0.7, 0.9, 0.95]))
    arms = int(rng.integers(2, 6))
    before, other = rng.standard_normal(rows), rng.choice(["A", "B", "C"], size=rows).astype(object)
    habit = rng.choice([0.0, 1.0]) * before[:, None] * rng.standard_normal(arms) + 0.5 * rng.standard_normal(arms)
    behavior = softmax(habit)
    actions = sample(rng, behavior)
    effects = rng.choice([0.0, 0.3]) * rng.standard_normal(arms)
    rewards = before + np.sqrt(1 / r2 - 1) * (effects[actions] + rng.standard_normal(rows))
    if rng.random() < 0.3:
        rewards = (rewards > 0).astype(np.float64)
    columns = {"before": before, "city": other, "action": actions, "reward": rewards}
    columns |= {f"propensity:{a}": behavior[:, a] for a in range(arms)}
    policies = {"first": "constant:0", "last": f"constant:{arms - 1}", "any": "uniform"}
    return Log.from_columns(columns, actions=range(arms)), policies


def honest(seed: int, number: int) -> tuple[str, Log, Mapping[str, Any]]:
    """An honest log and policies: half from the families, the others with earlier measurements or from real trials."""
    rng = np.random.default_rng([seed, 4, number])
    rows = int(rng.choice(HONEST_ROWS))
    kind = number % 4
    if kind < 2:
        family = list(FAMILIES.values())[number // 2 % len(FAMILIES)]
        draw = family.draw(rng, rows, 3)
        return "families", draw.log, draw.policies
    if kind == 2:
        return "earlier measurements", *earlier_measurement(rng, rows)
    source = of_trial(rng, load_trial(str(rng.choice(trial_names()))), rows)
    return "real trials", source.log(), {str(arm): f"constant:{arm}" for arm in source.shares}


def honest_table(seed: int, logs: int) -> Table:
    """How often honest logs raise an alarm."""
    count: dict[str, Counter[str]] = {}
    for number in range(logs):
        kind, log, policies = honest(seed, number)
        alarms = {WARNINGS[alarm.code] for alarm in analyze(log, policies, LDE, Options()).alarms}
        for key in (kind, "all"):
            count.setdefault(key, Counter()).update(["logs", *(["alarm"] if alarms else []), *alarms])
    keys = ("logs", "alarm", *ALARMS)
    cells = [[kind, *(str(count[kind][key]) for key in keys)] for kind in (*(k for k in count if k != "all"), "all")]
    return Table(f"Honest logs (seed {seed})", ["source", *keys], cells, "l" + "r" * len(keys))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m podium.calibration.leaks", description="Measure the alarms for leaks.")
    parser.add_argument("--logs", type=int, default=1000, help="honest logs")
    parser.add_argument("--draws", type=int, default=100, help="logs per cell of the table of strengths")
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args(arguments)
    one_thread()
    seed, draws = options.seed, options.draws
    print(leak_table(seed).text(120), end="\n\n", flush=True)
    for table, size in ((strength_table, draws), (missed_table, max(1, draws // 2)), (honest_table, options.logs)):
        print(table(seed, size).text(120), end="\n\n", flush=True)


if __name__ == "__main__":
    run_bench(main)
