"""The table of estimates: every policy by every method, on all rows of a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from podium.data.action_features import describe_actions
from podium.data.arguments import checked, real
from podium.data.costs import without_cost_states
from podium.data.errors import PodiumError, listed, shown
from podium.data.facts import Fact
from podium.data.frames import apart, rows_to_frame
from podium.data.owned import fresh
from podium.data.roles import describe_columns
from podium.data.since import rows_since
from podium.engines.rows import Rows, open_rows
from podium.estimates.baselines import KnownAverages, describe_baseline
from podium.estimates.costs import all_net, known_costs
from podium.estimates.estimators import ESTIMATORS, Estimator, find_estimators
from podium.estimates.methods import run_methods
from podium.estimates.options import Options
from podium.estimates.results import FEW, MethodResult
from podium.outputs.display import Block, Shown, Table, number
from podium.policies.batches import NewActions
from podium.policies.cross_fitted import aimed
from podium.policies.drafts import Policy
from podium.version import VERSION

T = TypeVar("T")
MANY = 6  # methods that a terminal has columns for
EVALUATE = (
    "normalize", "duplicates", "behavior", "actions", "unit", "seed", "sample_rows", "action_features", "cost",
    "lower_is_better",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Shown):
    """Policy x method; None where a method cannot be used, with the reason in `unavailable`."""

    log: Any  # Log or ScannedLog
    policies: tuple[str, ...]
    values: Mapping[str, Mapping[str, float | None]]  # policy -> method -> estimate
    unavailable: Mapping[str, str]
    settings: Mapping[str, Any]
    warnings: tuple[str, ...]
    std_errors: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)  # of values; None: not known
    freedom: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # degrees of freedom of these errors
    costs: Mapping[str, float] | None = None  # policy -> its mean cost, where costs are known

    @checked(level=real(0, 1))
    def interval(self, policy: str, method: str, level: float = 0.95) -> tuple[float, float] | None:
        """A t interval of one value, or of one score (LDE and DiM); None where its error is not known."""
        for name, given, known in (("policy", policy, self.policies), ("method", method, self.settings["estimators"])):
            if not isinstance(given, str) or given not in known:
                raise PodiumError(f"there is no {name} {shown(given)}", hint=f"choose from {listed(known)}.")
        value, error = self.values[policy][method], self.std_errors.get(policy, {}).get(method)
        if value is None or error is None:
            return None
        from scipy.special import stdtrit

        reach = float(stdtrit(self.freedom[policy][method], (1 + level) / 2)) * error
        return value - reach, value + reach

    def to_dict(self) -> dict[str, Any]:
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": fresh(self.settings),
            "policies": [
                {"name": name, "estimates": dict(self.values[name]), "std_errors": dict(self.std_errors[name])}
                | ({} if self.costs is None else {"cost": self.costs[name]})
                for name in self.policies
            ],
            "unavailable": dict(self.unavailable),
            "warnings": list(self.warnings),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per policy, one column per method."""
        return rows_to_frame(
            [{"policy": name, **apart(["policy"], self.values[name], "estimator")} for name in self.policies], backend
        )

    def table(self) -> Table:
        methods = list(self.settings["estimators"])
        rows = [[p, *(number(self.values[p][m]) for m in methods)] for p in self.policies]
        notes = [f"{m} is not available: {reason}." for m, reason in self.unavailable.items()]
        notes += [f"Warning: {w}" for w in self.warnings]
        others = "IPS and DRE estimate values" if set(methods) <= set(ESTIMATORS) else "the others estimate values"
        if {"LDE", "DiM"} & set(methods):
            notes.append(f"LDE and DiM are scores for comparing, not values; {others}.")
        columns = ["policy", *methods]
        if len(methods) > MANY:  # one line per method
            columns = ["method", *self.policies]
            rows = [[m, *(number(self.values[p][m]) for p in self.policies)] for m in methods]
        return Table("Estimates", columns, rows, align="l" + "r" * (len(columns) - 1), notes=notes)

    def blocks(self, width: int) -> list[Block]:
        return [[repr(self.log), *describe_columns(self.log), *self.settings.get("notes", ())], self.table()]


def evaluate(
    log: Any,
    policies: Any = None,
    estimators: str | Sequence[str | Estimator] = tuple(ESTIMATORS),
    baseline: Any = "mean",
    **options: Any,
) -> Estimates:
    """The table of estimates alone.

    Parameters
    ----------
    log : the logged interactions
    policies : name -> policy in any form; None for the log's own pi_ columns
    estimators : names of methods, "cIPS:10" with a parameter; "all" for the whole family (`podium.estimators`)
    baseline : see `podium.baselines`
    options : `normalize`, `duplicates`, `behavior`, `actions`, `unit`, `seed`, `sample_rows`, `action_features`, `cost`
        and `lower_is_better` of `podium.compare`

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 1], ["a", "b"], [1.0, 0.0], propensities=[0.5, 0.5])
    >>> podium.evaluate(log, {"a": "constant:a", "uniform": "uniform"}).values["a"]
    {'LDE': 0.75, 'DRE': 1.0, 'IPS': 1.0, 'DiM': 0.5}
    """
    methods = find_estimators(estimators)
    chosen = Options.of(EVALUATE, options, baseline=baseline)
    rows, results, unavailable = on_rows(
        log, policies, chosen, lambda rows: (rows, *run_methods(rows, methods, chosen))
    )
    results, names = all_net(results, rows), [m.name for m in methods]
    settings = {
        "estimators": names,
        "baseline": describe_baseline(baseline),
        "normalize": chosen.normalize,
        "duplicates": chosen.duplicates or "by method",
        "engine": rows.sample.engine,
        "seed": chosen.seed,
        "samples": {name: result.samples for name, result in results.items()},
        **known_settings(rows),
    }
    values = value_table(rows.policies.names, names, results)
    errors = error_table(rows.policies.names, names, results)
    freedom = {name: {m: float(result.freedom[k]) for m, result in results.items()} for k, name in enumerate(errors)}
    warnings = (*rows.warnings, *heavy_rows(rows.policies.names, results))
    costs = None if rows.policies.costs is None else dict(zip(values, rows.policies.costs.means.tolist(), strict=True))
    return Estimates(rows.log, rows.policies.names, values, unavailable, settings, warnings, errors, freedom, costs)


def on_rows(log: Any, policies: Any, options: Options, work: Callable[[Rows], T]) -> T:
    """What some work makes of the rows that a question is about; done again where a policy turns out to play actions
    that neither the first rows nor the sample have shown."""
    try:
        return work(rows_of(log, policies, options))
    except NewActions as error:
        return work(rows_of(log, policies, options, error.played))


def rows_of(log: Any, policies: Any, options: Options, late: Mapping[str, Sequence[Any]] | None = None) -> Rows:
    """The rows that a question is about, with the policies on them; `late` as in `open_rows`."""
    given = policies.values() if isinstance(policies, Mapping) else ()
    log = log if options.since is None else rows_since(log, options.since, options.sample_rows)
    log = log if options.cost is None else without_cost_states(log, options.cost)
    at_once = (
        options.normalize != "rows"
        or isinstance(options.baseline, KnownAverages)
        or any(isinstance(p, Policy) and (p.ratios is not None or p.terms) for p in given)
    )
    policies = aimed(policies, options.lower_is_better)
    rows = open_rows(
        log, policies, options.behavior, options.actions, options.unit, options.seed, size=options.sample_rows,
        at_once=at_once, late=late,
    )  # fmt: skip
    if options.action_features is not None:
        rows = replace(rows, sample=describe_actions(rows.sample, options.action_features))
    if options.cost is not None:
        rows = known_costs(rows, options.cost, options.action_features, options.lower_is_better)
    return rows


def known_settings(rows: Rows) -> dict[str, Any]:
    """What settings say of known costs and of features of the actions, where there are any."""
    costs, features = rows.policies.costs, rows.sample.action_features
    found: dict[str, Any] = {}
    if features is not None:
        found["action_features"] = list(features.names)
    if costs is not None:
        found |= {"costs": costs.to_dict(), "notes": [costs.note()]}
    return found


def heavy_rows(names: Sequence[str], results: Mapping[str, MethodResult]) -> list[Fact]:
    """Which values have no error since too few rows carry the weight."""
    found = []
    for method, result in results.items():
        few = [] if result.effective is None else [names[int(k)] for k in np.flatnonzero(result.effective < FEW)]
        if few:
            more = f" and {len(few) - 1} more" if len(few) > 1 else ""
            found.append(Fact("no error", method=method, policy=few[0], more=more))
    return found


def value_table(
    names: Sequence[str], methods: Sequence[str], results: Mapping[str, MethodResult]
) -> dict[str, dict[str, float | None]]:
    """Policy -> method -> estimate, None where there is none."""
    return {
        name: {m: float(results[m].values[k]) if m in results else None for m in methods}
        for k, name in enumerate(names)
    }


def error_table(
    names: Sequence[str], methods: Sequence[str], results: Mapping[str, MethodResult]
) -> dict[str, dict[str, float | None]]:
    """Policy -> method -> standard error of the estimate, None where it is not known."""
    errors = {m: results[m].value_error for m in methods if m in results}
    table: dict[str, dict[str, float | None]] = {name: dict.fromkeys(methods) for name in names}
    for m, found in errors.items():
        for k, name in enumerate(names):
            table[name][m] = None if found is None or not np.isfinite(found[k]) else float(found[k])
    return table
