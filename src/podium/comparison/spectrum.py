"""Every method on one map, baseline by weighting: what each says of every policy, and how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.comparison.compare import rank_scores
from podium.comparison.result import Comparison
from podium.data.arguments import checked, optional, text
from podium.data.errors import BaselineRefused, PodiumError, Unavailable
from podium.data.facts import Fact
from podium.data.frames import rows_to_frame
from podium.data.log import Log
from podium.data.owned import fresh
from podium.data.roles import describe_columns
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows
from podium.estimates.baselines import check_baseline, describe_baseline
from podium.estimates.costs import all_net
from podium.estimates.estimators import Estimator, find_estimators
from podium.estimates.evaluate import known_settings, on_rows
from podium.estimates.methods import run_methods
from podium.estimates.options import Options
from podium.estimates.results import TIE, MethodResult
from podium.outputs.display import Block, Shown, Table, number
from podium.version import VERSION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTINGS = ("none", "pi", "shrunk", "self-normalised", "pi/p")  # from the model alone to the full ratio
SPECTRUM = ("level", "unit", "lower_is_better", "behavior", "actions", "seed", "sample_rows", "action_features", "cost")
CELL, LEFT = 19, 34  # columns of a terminal for a policy, and for what names a method


def weighting_of(estimator: Estimator) -> str:
    """Its place on the axis of weights, from none to the full ratio."""
    if estimator.rule == "none":
        return "none"
    if estimator.is_score:
        return "pi"
    if estimator.shrinks:
        return "shrunk"
    return "self-normalised" if estimator.self_normalized else "pi/p"


@dataclass(frozen=True)
class Stand:
    """One policy by one method."""

    name: str
    value: float
    rank: int
    std_error: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Place:
    """One method with one baseline on the map, and what it says of every policy, in the order of the policies."""

    estimator: str
    baseline: str  # "-" without one
    weighting: str
    policies: tuple[Stand, ...]
    caution: str = ""

    @property
    def ranking(self) -> list[str]:
        """Names, best first."""
        return [p.name for p in sorted(self.policies, key=lambda p: p.rank)]


@dataclass(frozen=True)
class Missing:
    """A method that cannot be used, and why."""

    estimator: str
    baseline: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Shown):
    """All methods on the map baseline x weighting.

    `places` go from no baseline to the last one, and within each from no weight to pi/p.
    """

    log: Log | ScannedLog
    policies: tuple[str, ...]
    places: tuple[Place, ...]
    missing: tuple[Missing, ...]
    settings: Mapping[str, Any]
    warnings: tuple[str, ...]

    @checked(estimator=text, baseline=optional(text))
    def place(self, estimator: str, baseline: str | None = None) -> Place:
        """One method; with several baselines, name one."""
        for p in self.places:
            if p.estimator.lower() == estimator.lower() and baseline in (None, p.baseline):
                return p
        shown = ", ".join(dict.fromkeys(p.estimator for p in self.places))
        raise PodiumError(f"the map has no {estimator!r} with baseline {baseline!r}", hint=f"it has {shown}.")

    @property
    def first(self) -> dict[str, int]:
        """Policy -> how many methods rank it first."""
        winners = [p.name for place in self.places for p in place.policies if p.rank == 1]
        return {name: winners.count(name) for name in self.policies}

    @checked(a=text, b=text)
    def agreement(self, a: str, b: str) -> float:
        """The share of methods that put a above b; equal ranks count half."""
        above = []
        for place in self.places:
            rank = {p.name: p.rank for p in place.policies}
            if a not in rank or b not in rank:
                missing = a if a not in rank else b
                raise PodiumError(f"no policy {missing!r}", hint="the policies are " + ", ".join(self.policies) + ".")
            above.append(0.5 if rank[a] == rank[b] else float(rank[a] < rank[b]))
        return float(np.mean(above))

    def to_dict(self) -> dict[str, Any]:
        """The content of `--json`."""
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": fresh(self.settings),
            "methods": [
                {
                    "estimator": p.estimator, "baseline": p.baseline, "weighting": p.weighting, "caution": p.caution,
                    "policies": [dict(vars(stand)) for stand in p.policies],
                }
                for p in self.places
            ],
            "unavailable": [dict(vars(m)) for m in self.missing],
            "first": self.first,
            "warnings": [*self.warnings, *self.cautions],
        }  # fmt: skip

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per method, baseline and policy."""
        rows = [
            {"estimator": p.estimator, "baseline": p.baseline, "weighting": p.weighting, "policy": s.name}
            | {key: value for key, value in vars(s).items() if key != "name"}
            for p in self.places
            for s in p.policies
        ]
        return rows_to_frame(rows, backend)

    def tables(self, most: int) -> list[Table]:
        """The map as tables of at most so many policies each."""
        made = []
        for start in range(0, len(self.policies), most):
            shown = self.policies[start : start + most]
            rows = [
                [p.baseline, p.weighting, p.estimator, *(stand_text(s) for s in p.policies[start : start + most])]
                for p in self.places
            ]
            title = "Every method: value ± standard error, #rank" if start == 0 else "The same of further policies"
            last = start + most >= len(self.policies)
            columns = ["baseline", "weight", "method", *shown]
            made.append(Table(title, columns, rows, "lll" + "r" * len(shown), self.notes() if last else ()))
        return made

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to keep in mind of the methods on the map."""
        return (Fact("shrunk weights"),) if any(p.weighting == "shrunk" for p in self.places) else ()

    def notes(self) -> list[str]:
        notes = [f"Ranked first: {', '.join(self.firsts())}.", *self.gaps(), *self.cautions]
        if any(p.weighting == "pi" for p in self.places):
            notes.append("LDE and DiM are scores for comparing, not values; the others estimate values.")
        return notes

    def firsts(self) -> list[str]:
        """Who is ranked first by how many methods; policies that share the place are named together."""
        winners = Counter(tuple(p.name for p in place.policies if p.rank == 1) for place in self.places)
        found = sorted(winners.items(), key=lambda item: (len(item[0]), self.policies.index(item[0][0])))
        return [
            f"{' and '.join(names) if len(names) < 4 else f'{len(names)} policies'}{' alike' if names[1:] else ''} "
            f"by {times} of {len(self.places)}"
            for names, times in found
        ]

    def gaps(self) -> list[str]:
        """What is not available, one sentence for each reason."""
        grouped: dict[str, dict[str, list[str]]] = {}
        whole: dict[str, str] = {}
        for m in self.missing:
            reason = m.reason.removeprefix(m.estimator).lstrip(": ")  # most reasons start with the method's name
            whole.setdefault(reason, m.reason)
            grouped.setdefault(reason, {}).setdefault(m.estimator, []).append(m.baseline)
        notes = []
        for reason, methods in grouped.items():
            names = [e + ("" if with_ == ["-"] else f" ({', '.join(with_)})") for e, with_ in methods.items()]
            own = reason != whole[reason] and len(names) > 1
            notes.append(f"Not available: {', '.join(names)}: {f'each {reason}' if own else whole[reason]}.")
        return notes

    def blocks(self, width: int) -> list[Block]:
        known = self.settings.get("notes", ()) if "costs" in self.settings else ()
        head = [repr(self.log), *describe_columns(self.log), *known, *(f"Warning: {w}" for w in self.warnings)]
        return [head, *self.tables(max(1, (width - LEFT) // CELL))]

    def plot(self, **options: Any) -> Figure:
        """The map as a figure (matplotlib); see `podium.plots.spectrum`."""
        return Comparison.shows.figure(self, "spectrum", **options)


def stand_text(stand: Stand) -> str:
    """'0.337 ±0.021 #4'."""
    error = "" if stand.std_error is None else f" ±{stand.std_error:.2g}"
    return f"{number(stand.value, 3)}{error} #{stand.rank}"


def spectrum(
    log: Log | ScannedLog,
    policies: Any = None,
    baselines: Sequence[Any] = ("mean", "linear"),
    estimators: Any = "all",
    **options: Any,
) -> Spectrum:
    """Every method on the map baseline (none, mean, model) x weighting (none, pi, shrunk, self-normalised, pi/p).

    Parameters
    ----------
    log, policies : as in `podium.compare`
    baselines : for the methods that use one, in the order of the map; a baseline that a log does not allow is named
        with the reason
    estimators : names of methods; "all" for the whole family
    options : `level` (of the intervals of values), `unit`, `lower_is_better`, `behavior`, `actions`, `seed`,
        `sample_rows`, `action_features` and `cost` of `podium.compare`

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2], propensities=[0.5] * 4)
    >>> found = podium.spectrum(log, {"a": "constant:a", "b": "constant:b"}, baselines=["mean"])
    >>> found.first, found.place("SNIPS").policies[0].value
    ({'a': 12, 'b': 0}, 0.95)
    """
    asked = Options.of(SPECTRUM, options)
    methods = find_estimators(estimators)
    wanted = list(baselines) if isinstance(baselines, Sequence) and not isinstance(baselines, str) else [baselines]
    for baseline in wanted:
        check_baseline(baseline)
    rows, places, missing = on_rows(log, policies, asked, lambda rows: (rows, *chart(rows, methods, wanted, asked)))
    if not places:
        raise PodiumError(missing[0].reason, hint="no method can be used on this log.")
    settings = {
        "baselines": [describe_baseline(b) for b in wanted],
        "level": float(asked.level),
        "lower_is_better": asked.lower_is_better,
        "unit": rows.log.header("unit") if rows.sample.units is not None else None,
        "seed": asked.seed,
        **known_settings(rows),
    }
    return Spectrum(rows.log, rows.policies.names, places, missing, settings, rows.warnings)


def spectrum_of(result: Comparison, baselines: Sequence[Any] = ("mean", "linear"), estimators: Any = "all") -> Spectrum:
    """The map of a comparison's own log and policies; of its sample where the log is large."""
    rows, options = result.basis.rows.sample_alone, result.basis.options
    plain = Options(level=options.level, lower_is_better=options.lower_is_better, seed=options.seed)
    places, missing = chart(rows, find_estimators(estimators), baselines, plain)
    return Spectrum(rows.log, rows.policies.names, places, missing, result.settings.to_dict(), ())


def chart(
    rows: Rows, methods: Sequence[Estimator], baselines: Sequence[Any], options: Options
) -> tuple[tuple[Place, ...], tuple[Missing, ...]]:
    """Every method with every baseline that it can have, and the reason for each that cannot be had."""
    places: list[Place] = []
    missing: list[Missing] = []
    for baseline in (None, *baselines):
        label = "-" if baseline is None else describe_baseline(baseline)
        some = [e for e in methods if e.uses_baseline == (baseline is not None)]
        asked = options if baseline is None else replace(options, baseline=baseline)
        try:
            results, reasons = run_methods(rows, some, asked)
        except (Unavailable, BaselineRefused) as error:  # such as policies that are known only at the logged actions
            missing += [Missing(e.name, label, error.message) for e in some]
            continue
        row = [place_of(label, r, rows.policies.names, options) for r in all_net(results, rows).values()]
        places += sorted(row, key=lambda p: WEIGHTINGS.index(p.weighting))
        missing += [Missing(name, label, reason) for name, reason in reasons.items()]
    modelled = any(p.weighting == "none" for p in places)  # then nobody asks for the mean as a model
    return tuple(places), tuple(m for m in missing if not (modelled and m.estimator == "DirectModel"))


def place_of(baseline: str, result: MethodResult, names: Sequence[str], options: Options) -> Place:
    """A method's values with ranks and intervals."""
    from scipy.special import stdtrit

    sign = -1.0 if options.lower_is_better else 1.0
    order, ranks = rank_scores((sign * result.centred).tolist(), TIE * result.scale)
    rank = dict(zip(order, ranks, strict=True))
    reach = np.full(len(names), np.nan)
    if result.samples > 1:
        reach = np.asarray(stdtrit(result.freedom, (1 + options.level) / 2))
    stands = []
    for k, name in enumerate(names):
        value, error = float(result.values[k]), float(result.value_error[k])
        around = (error, value - reach[k] * error, value + reach[k] * error)
        stands.append(Stand(name, value, rank[k], *(float(x) if np.isfinite(x) else None for x in around)))
    e = result.estimator
    return Place(e.name, baseline, weighting_of(e), tuple(stands), e.caution or "")
