"""All results of Example 1 in one object: every sweep measured, every printed table beside its reproduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.data.columns import Floats
from podium.experiments.printed import Entry, Key, beside_printed
from podium.experiments.runner import Arrays, load
from podium.experiments.synthetic.measures import METHODS, Correlations, Measures, correlate, measure, share_std_errors
from podium.experiments.synthetic.plan import GRID_ALPHAS, GRID_SIZES, PRINTED, SWEEPS, Plan
from podium.theory.bounds import comparison_bound, reward_range_of
from podium.worlds.bandits import Bandit

TABLES = ("eval_a", "eval_m", "correlation")


@dataclass(frozen=True, eq=False)
class Histogram:
    """Per-state products of one cell: counts (4, bins) over +-edge, mispredictions (4, D), Theorem 3's bound (D,)."""

    alpha: float
    m: int
    edge: float
    counts: Floats
    mispredicted: Floats
    bound: Floats

    @property
    def shares(self) -> Floats:
        """(4, bins) the share of each method in each bin, smoothed by one count: the paper's normalisation."""
        smooth = self.counts + 1
        shares: Floats = smooth / smooth.sum(axis=0)
        return shares


@dataclass(frozen=True, eq=False)
class ExampleResults:
    """One reward function."""

    name: str
    bandit: Bandit
    sweeps: Mapping[str, list[Measures]]
    correlations: list[Correlations]
    histograms: list[Histogram]

    @property
    def label(self) -> str:
        """How its tables and figures are called: ex1.1, ex1.2, ..."""
        return "ex" + "".join(c if c.isalnum() or c in ".-" else "_" for c in self.name)

    def tables(self) -> dict[str, list[Entry]]:
        """Label -> entries of every printed table; none for a reward function that the paper does not have."""
        if self.name not in PRINTED:
            return {}
        sources = {
            "eval_a": evaluation_entries(self.sweeps["alpha"], "alpha"),
            "eval_m": evaluation_entries(self.sweeps["m"], "m"),
            "correlation": correlation_entries(self.correlations),
        }
        return {f"{self.label}_{kind}": beside_printed(f"{self.label}_{kind}", sources[kind]) for kind in TABLES}

    def comparison_bounds(self, points: list[Measures]) -> Floats:
        """Theorem 2's bound for LDE at each point, as if all m draws of a state were distinct actions."""
        span, n = self.bandit.span, len(self.bandit.actions)
        limits, baseline = reward_range_of(self.bandit.rewards), float(self.bandit.rewards.mean())
        return np.array(
            [
                comparison_bound(
                    p.alpha * span, actions=n, per_state=min(p.m, n), reward_range=limits, baseline=baseline
                ).value
                for p in points
            ]
        )


def collect(plan: Plan, folder: Path) -> list[ExampleResults]:
    """Measure all finished cells."""
    loaded: dict[str, list[Arrays]] = {s: [load(folder, c.name) for c in plan.cells[s]] for s in SWEEPS}
    return [collect_example(plan, e, name, bandit, loaded) for e, (name, bandit) in enumerate(plan_bandits(plan))]


def plan_bandits(plan: Plan) -> list[tuple[str, Bandit]]:
    return list(zip(plan.rewards, plan.bandits(), strict=True))


def collect_example(
    plan: Plan, e: int, name: str, bandit: Bandit, loaded: Mapping[str, list[Arrays]]
) -> ExampleResults:
    def points(sweep: str) -> list[tuple[float, int, Arrays]]:
        cells = plan.cells[sweep]
        return [(c.arguments["alpha"], c.arguments["m"], a) for c, a in zip(cells, loaded[sweep], strict=True)]

    sweeps = {
        sweep: [measure(alpha, m, a, e, bandit.span, len(bandit.states)) for alpha, m, a in points(sweep)]
        for sweep in SWEEPS
    }
    sweeps |= {sweep: share_std_errors(sweeps[sweep]) for sweep in ("alpha", "m")}
    width = len(GRID_ALPHAS)
    correlations = [correlate(int(m), loaded["grid"][i * width : (i + 1) * width], e) for i, m in enumerate(GRID_SIZES)]
    histograms = [
        Histogram(alpha, m, float(a["edge"][e]), a["histogram"][e], a["mispredicted"][e], a["bound"][e])
        for alpha, m, a in points("histogram")
    ]
    return ExampleResults(name, bandit, sweeps, correlations, histograms)


def evaluation_entries(points: list[Measures], by: str) -> dict[Key, tuple[float, float]]:
    """(row, column) -> (number, standard error) of an evaluation table."""
    entries = {}
    for p in points:
        row = f"{p.alpha:.2f}" if by == "alpha" else str(p.m)
        if by == "alpha" and abs(float(row) - p.alpha) > 1e-9:
            continue
        for k, method in enumerate(METHODS):
            entries[row, f"{method} avg"] = float(p.average[k]), float(p.average_error[k])
            entries[row, f"{method} std"] = float(p.std[k]), float(p.std_error[k])
    return entries


def correlation_entries(points: list[Correlations]) -> dict[Key, tuple[float, float]]:
    """(row, column) -> (number, standard error) of a correlation table."""
    entries = {}
    for p in points:
        for k, method in enumerate(METHODS):
            entries[str(p.m), f"{method} pearson"] = float(p.pearson[k]), float(p.pearson_error[k])
            entries[str(p.m), f"{method} spearman"] = float(p.spearman[k]), float(p.spearman_error[k])
    return entries
