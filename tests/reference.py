"""The four methods once more, in plain Python loops, straight from the paper's formulas: what the library must equal.

    V(pi) = mean_n [ (r_n - rhat(s_n, a_n)) w_n + sum_a rhat(s_n, a) pi(a|s_n) ]

with w_n = pi(a_n|s_n) (DiM, LDE) or pi(a_n|s_n) / p_n (IPS, DRE), and rhat = 0 (DiM, IPS) or a baseline (LDE, DRE).
Nothing here is fast, and nothing is shared with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isclose, sqrt
from typing import Any

METHODS = ("LDE", "DRE", "IPS", "DiM")
Policy = Sequence[Sequence[float]]  # one row per log row, one number per action of the space
Baseline = str | float | Mapping[tuple[Any, Any], float] | Sequence[float]


@dataclass(frozen=True)
class Data:
    """A log as plain lists."""

    states: list[Any]
    actions: list[Any]
    rewards: list[float]
    space: list[Any]
    propensities: list[float] | None = None
    times: list[float] | None = None
    units: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True)
class Form:
    """How the terms of a method are made and averaged."""

    method: str = "LDE"
    baseline: Baseline = "mean"  # "mean", a number, a table q[state, action], or v(s_n) of every row
    normalize: str = "rows"
    duplicates: str | None = None

    @property
    def weighted(self) -> bool:
        return self.method in ("IPS", "DRE")

    @property
    def based(self) -> bool:
        return self.method in ("LDE", "DRE")


@dataclass(frozen=True)
class Term:
    """One kept row: (r - rhat) w, and sum_a rhat pi(a|s).

    `size` is what their rounding errors grow with: everything before it cancels, and the level of the baseline.
    """

    row: int
    correction: float
    base: float
    size: float


def kept_rows(data: Data, form: Form) -> list[int]:
    """LDE and DiM keep the latest row of each (state, action), by time and then row order; IPS and DRE keep all."""
    rule = form.duplicates or ("all" if form.weighted else "latest")
    if rule == "all":
        return list(range(len(data)))
    latest: dict[Any, int] = {}
    for n in range(len(data)):
        cell = (data.states[n], data.actions[n])
        if cell not in latest or time_of(data, n) >= time_of(data, latest[cell]):
            latest[cell] = n
    return sorted(latest.values())


def time_of(data: Data, n: int) -> float:
    return n if data.times is None else data.times[n]


def baseline_of(data: Data, form: Form, rows: list[int]) -> Callable[[int, Any], float]:
    """rhat as a function of a row and an action."""
    baseline = form.baseline
    if not form.based:
        return lambda n, a: 0.0
    if isinstance(baseline, str):
        assert baseline == "mean"
        mean = fsum(data.rewards[n] for n in rows) / len(rows)
        return lambda n, a: mean
    if isinstance(baseline, Mapping):
        return lambda n, a: baseline[data.states[n], a]
    if isinstance(baseline, Sequence):
        return lambda n, a: baseline[n]
    return lambda n, a: float(baseline)


def terms(data: Data, policy: Policy, form: Form) -> list[Term]:
    """Every kept row's term."""
    rows = kept_rows(data, form)
    rhat = baseline_of(data, form, rows)
    level = fsum(abs(rhat(n, data.actions[n])) for n in rows) / len(rows)
    made = []
    for n in rows:
        logged = data.actions[n]
        weight = policy[n][data.space.index(logged)]
        if form.weighted:
            assert data.propensities is not None
            weight = weight / data.propensities[n]
        correction = (data.rewards[n] - rhat(n, logged)) * weight
        base = fsum(rhat(n, a) * p for a, p in zip(data.space, policy[n], strict=True))
        size = level + (abs(data.rewards[n]) + abs(rhat(n, logged))) * weight
        size += fsum(abs(rhat(n, a)) * p for a, p in zip(data.space, policy[n], strict=True))
        made.append(Term(n, correction, base, size))
    return made


def by_state(data: Data, made: list[Term]) -> dict[Any, list[Term]]:
    groups: dict[Any, list[Term]] = {}
    for term in made:
        groups.setdefault(data.states[term.row], []).append(term)
    return groups


def state_value(group: list[Term], form: Form) -> float:
    """V(pi|s). In the per-state form of Example 1, DiM and LDE sum over the actions logged in s."""
    corrections = fsum(t.correction for t in group)
    if form.normalize == "rows" or form.weighted:
        corrections /= len(group)
    return corrections + fsum(t.base for t in group) / len(group)


def state_values(data: Data, policy: Policy, form: Form) -> dict[Any, float]:
    return {s: state_value(group, form) for s, group in by_state(data, terms(data, policy, form)).items()}


def value(data: Data, policy: Policy, form: Form) -> float:
    """The estimate of one policy by one method."""
    if form.normalize == "states":
        values = state_values(data, policy, form)
        return fsum(values.values()) / len(values)
    made = terms(data, policy, form)
    return fsum(t.correction + t.base for t in made) / len(made)


def size(data: Data, policy: Policy, form: Form) -> float:
    """Mean absolute term, before anything cancels: what a rounding error is measured against."""
    made = terms(data, policy, form)
    states = len(by_state(data, made)) if form.normalize == "states" else len(made)
    return fsum(t.size for t in made) / states


def reward_units(data: Data, form: Form) -> float:
    """What turns a difference of scores into reward: A for LDE and DiM, and rows per state in the per-state form."""
    if form.weighted:
        return 1.0
    rows = kept_rows(data, form)
    states = len({data.states[n] for n in rows})
    return len(data.space) * (states / len(rows) if form.normalize == "states" else 1.0)


def difference(data: Data, a: Policy, b: Policy, form: Form) -> float:
    """V(a) - V(b) in units of reward."""
    return reward_units(data, form) * (value(data, a, form) - value(data, b, form))


def std_error(data: Data, a: Policy, b: Policy, form: Form) -> float | None:
    """The standard error of that difference; paired, because both policies are judged on the same rows.

    Rows are independent, or units if the log has them, or states in the per-state form. A group's sum of row
    differences is compared with what its share of the average leads to expect. One group alone tells nothing.
    """
    left, right = terms(data, a, form), terms(data, b, form)
    per_state = {s: len(group) for s, group in by_state(data, left).items()}
    n = len(left)
    gaps: dict[Any, float] = {}  # sums over groups, in parts of the average
    shares: dict[Any, float] = {}
    for x, y in zip(left, right, strict=True):
        state = data.states[x.row]
        correction, base = x.correction - y.correction, x.base - y.base
        if form.normalize == "rows":
            gap, share = (correction + base) / n, 1 / n
        else:
            share = 1 / (len(per_state) * per_state[state])
            gap = base * share + correction * (share if form.weighted else 1 / len(per_state))
        group: Any = data.units[x.row] if data.units is not None else state if form.normalize == "states" else x.row
        gaps[group] = gaps.get(group, 0.0) + gap
        shares[group] = shares.get(group, 0.0) + share
    if len(gaps) < 2:
        return None
    total = fsum(gaps.values())
    squares = fsum((gaps[g] - shares[g] * total) ** 2 for g in gaps)
    return reward_units(data, form) * sqrt(squares * len(gaps) / (len(gaps) - 1))


def close(ours: float, reference: float, scale: float, tolerance: float = 1e-12) -> bool:
    """Equal up to rounding, relative to the mean absolute term."""
    return isclose(ours, reference, rel_tol=0.0, abs_tol=tolerance * max(scale, 1e-300))
