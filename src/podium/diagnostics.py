"""The trust panel: what the log holds, and how much of each policy it can speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.columns import group_sums
from podium.compare import log_warnings
from podium.display import Table, number, percent, wrap
from podium.errors import count
from podium.estimate import prepare
from podium.log import Log
from podium.policies import PolicyRows, PolicySet

if TYPE_CHECKING:
    from podium.assumption import AssumptionCheck

LOW_MASS = 0.1
LOW_ESS = 20.0
HIGH_SHARE = 0.2


@dataclass(frozen=True)
class Coverage:
    """How much of one policy the log can speak of."""

    name: str
    mass_on_logged: float  # average probability that the policy gives to actions logged in the same state
    ess: float  # effective sample size of its weights
    max_weight: float  # largest weight, relative to the average one
    top_row_share: float  # share of the sum of absolute row terms that the largest row carries


@dataclass(frozen=True)
class Alarm:
    name: str
    value: float
    meaning: str
    advice: str


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """Summary of the log, coverage of each policy, and alarms."""

    log: Log
    coverage: tuple[Coverage, ...]
    assumption: AssumptionCheck
    alarms: tuple[Alarm, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        from podium import __version__

        return {
            "podium": __version__,
            "log": {**self.log.to_dict(), **log_details(self.log)},
            "policies": [vars(c) for c in self.coverage],
            "alarms": [vars(a) for a in self.alarms],
            "warnings": list(self.warnings),
        }

    def log_table(self) -> Table:
        d = log_details(self.log)
        log = self.log
        rows = [
            ["rows", f"{len(log):,}", "logged interactions"],
            [
                "distinct",
                f"{len(log.latest):,}",
                "of a repeated (state, action) LDE and DiM keep one row",
            ],
            ["states", f"{log.n_states:,}", f"from {', '.join(log.state_columns)}"],
            [
                "rows per state",
                number(len(log) / log.n_states, 2),
                f"{percent(d['single_row_states'])} of states have one row",
            ],
            ["actions", f"{log.n_actions:,}", f"{count(d['unseen_actions'], 'action')} never logged"],
            [
                "reward",
                number(d["reward_mean"]),
                f"mean; from {number(d['reward_low'])} to {number(d['reward_high'])}",
            ],
            ["propensities", log.knows, KNOWN[log.knows]],
        ]
        return Table("Log", ["figure", "value", "meaning"], rows, align="lrl")

    def coverage_table(self) -> Table:
        rows = [
            [
                c.name,
                percent(c.mass_on_logged),
                number(c.ess, 1),
                number(c.max_weight, 2),
                percent(c.top_row_share),
            ]
            for c in self.coverage
        ]
        weights = "pi/p" if self.log.propensities is not None else "pi (no propensities)"
        notes = [
            "on logged: probability that a policy gives to actions logged in the same state; the rest is unseen.",
            f"ESS: how many equally weighted rows its weights {weights} are worth.",
            "largest weight: relative to the average. top row: share of the estimate that one row carries.",
        ]
        columns = ["policy", "on logged", "ESS", "largest weight", "top row"]
        return Table("Policies", columns, rows, align="lrrrr", notes=notes)

    def text(self, width: int = 80, bold: bool = False) -> str:
        parts = [self.log_table().text(width, bold), self.coverage_table().text(width, bold)]
        lines = [f"Alarm: {a.meaning} {a.advice}" for a in self.alarms] + [f"Warning: {w}" for w in self.warnings]
        return "\n\n".join([*parts, *(wrap(line, width, "") for line in [*lines, self.assumption.verdict])])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.log_table().html() + self.coverage_table().html()


KNOWN = {
    "full": "the whole behaviour policy is known",
    "logged": "known for the logged actions",
    "none": "unknown: only LDE and DiM can be used",
}


def diagnose(log: Log, policies: Any = None, *, behavior: Any = None, actions: Sequence[Any] = ()) -> Diagnosis:
    """What the log can and cannot say about the policies."""
    from podium.assumption import check_assumption

    log, resolved = prepare(log, policies, behavior, actions)
    coverage = tuple(cover(log, p) for p in resolved)
    return Diagnosis(
        log=log,
        coverage=coverage,
        assumption=check_assumption(log),
        alarms=tuple(alarms(coverage, resolved)),
        warnings=(*log_warnings(log), *resolved.warnings),
    )


def log_details(log: Log) -> dict[str, Any]:
    """Figures of the log beyond its size."""
    rows_per_state = np.bincount(log.state_codes)
    seen = np.bincount(log.action_codes, minlength=log.n_actions)
    return {
        "duplicates": len(log) - len(log.latest),
        "unseen_actions": int((seen == 0).sum()),
        "single_row_states": float((rows_per_state == 1).mean()),
        "reward_mean": float(log.rewards.mean()),
        "reward_low": float(log.rewards.min()),
        "reward_high": float(log.rewards.max()),
    }


def cover(log: Log, policy: PolicyRows) -> Coverage:
    """Coverage of one policy; weights are pi/p where propensities are known, else pi."""
    weight = policy.logged if log.propensities is None else policy.logged / log.propensities
    terms = np.abs((log.rewards - log.rewards.mean()) * weight)
    total, squares = float(weight.sum()), float((weight**2).sum())
    return Coverage(
        name=policy.name,
        mass_on_logged=mass_on_logged(log, policy),
        ess=total**2 / squares if squares > 0 else 0.0,
        max_weight=float(weight.max()) / (total / len(log)) if total > 0 else 0.0,
        top_row_share=float(terms.max() / terms.sum()) if terms.sum() > 0 else 0.0,
    )


def mass_on_logged(log: Log, policy: PolicyRows) -> float:
    """Average over rows of the probability of the actions that were logged in the row's state."""
    kept = log.latest  # one row per (state, action)
    mass = group_sums(log.state_codes[kept], policy.logged[kept], log.n_states)
    return (
        float(np.minimum(mass, 1.0)[log.state_codes].mean())
        if not policy.proxy
        else float(mass[log.state_codes].mean())
    )


def alarms(coverage: Sequence[Coverage], policies: PolicySet) -> list[Alarm]:
    """What should make a reader doubt the estimates of a policy."""
    found = []
    for c, p in zip(coverage, policies, strict=True):
        if c.mass_on_logged < LOW_MASS and not p.proxy:
            meaning = f"{c.name} plays logged actions with probability {percent(c.mass_on_logged)} only."
            found.append(Alarm("mass_on_logged", c.mass_on_logged, meaning, "Log more of the actions that it prefers."))
        if c.ess < LOW_ESS:
            meaning = f"{c.name} rests on about {c.ess:.1f} effective rows."
            found.append(Alarm("ess", c.ess, meaning, "Treat its importance-weighted estimates as anecdotes."))
        if c.top_row_share > HIGH_SHARE:
            meaning = f"one row carries {percent(c.top_row_share)} of what is known of {c.name}."
            found.append(Alarm("top_row_share", c.top_row_share, meaning, "Check that row, or log more."))
    return found
