"""Estimates of K policies by every method, with the paired differences of every pair, from one pass each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.data.errors import PodiumError, Unavailable
from podium.data.frames import rows_to_frame
from podium.data.log import Log
from podium.estimates.baselines import describe_baseline
from podium.estimates.estimators import ESTIMATORS, Estimator, find_estimators
from podium.estimates.moments import GroupSums, Moments, merge
from podium.estimates.terms import RowTerms, mean_weights, removed_weight, row_terms
from podium.outputs.display import Block, Shown, Table, number
from podium.policies import PolicySet, resolve_policies
from podium.version import VERSION

NEAR = 1e-6  # policies whose terms differ by less, relatively, are subtracted row by row
TIE = 1e-12  # scores closer than this, relative to their terms, differ by rounding alone
FEW = 2.0  # effective rows below which a self-normalised method shows no spread
NORMALIZE = ("rows", "states")
DUPLICATES = ("latest", "all")
MANY = 6  # methods that a terminal has columns for


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method on K policies: estimates, and the difference and standard error of every pair (K, K)."""

    estimator: Estimator
    values: Floats  # (K,)
    centred: Floats  # (K,) values without what all policies share: their order survives a reward near 1e6
    scale: float  # root mean square of the largest row terms
    difference: Floats  # (K, K) values[i] - values[j], free of cancellation
    std_error: Floats  # (K, K), paired: the rows are the same
    rows: int  # rows kept
    samples: int  # independent pieces: rows, or units, or states
    terms: RowTerms | None = None  # where the rows are at hand
    pieces: GroupSums | None = None  # where they are not: sums of their terms over what is resampled
    own_error: Floats | None = None  # (K,) where they are not: standard errors of the values themselves
    removed: Floats | None = None  # (K,) the share of each policy's weight that shrinking took away
    effective: Floats | None = None  # (K,) effective rows (or units) of self-normalised methods

    @cached_property
    def value_error(self) -> Floats | None:
        """(K,) standard errors of the values themselves; None where the rows are not at hand, nan where too few rows
        carry the weight."""
        found = self.own_error if self.terms is None else own_errors(self.terms, self.samples)
        return found if found is None or self.effective is None else np.where(self.effective < FEW, np.nan, found)

    @property
    def freedom(self) -> Floats:
        """(K,) degrees of freedom of each value's error: as many as rows (or units) carry the weight, less 1."""
        many = np.full(len(self.values), self.samples - 1.0)
        fewer = many if self.effective is None else np.minimum(many, self.effective - 1)
        return np.asarray(np.maximum(fewer, 1.0), dtype=np.float64)


def without_noise(numbers: Floats, size: Floats | float) -> Floats:
    """Numbers, 0 where they are what rounding leaves of others of that size.

    >>> without_noise(np.array([2e-17, 0.3]), 1.0)
    array([0. , 0.3])
    """
    return np.where(np.abs(numbers) <= TIE * size, 0.0, numbers)


def own_terms(terms: RowTerms, part: slice, block: Floats, gain: Floats) -> Floats:
    """(n, K) row terms with what all policies share on a row, as far as it moves a value."""
    return block if terms.common is None else block + terms.common[part][:, None] * gain


def own_errors(terms: RowTerms, samples: int) -> Floats:
    """(K,) standard errors of the values themselves: of the terms with what all policies share on a row."""
    n, k = len(terms.rows), len(terms.policy)
    gain = 1 - mean_weights(terms) if terms.common_mean else np.ones(k)
    moments, sums = [], []
    for part, block in terms.blocks():
        whole = own_terms(terms, part, block, gain)
        moments.append(Moments.of(whole, paired=False))
        if terms.groups is not None:
            sums.append(GroupSums.of(whole, terms.groups[part], samples, terms.weight(part)))
    squares = np.diag(merge(sums).scatter()) if sums else merge(moments).squares
    return error_of(without_noise(np.sqrt(squares), term_sizes(terms) * np.sqrt(n)), n, samples)


def error_of(spread: Floats, rows: int, samples: int) -> Floats:
    """Standard errors of means over `rows` rows, given the root of the centred squares of `samples` pieces."""
    return spread * np.sqrt(samples / (samples - 1)) / rows if samples > 1 else np.full_like(spread, np.nan)


def term_sizes(terms: RowTerms) -> Floats:
    """(K,) how large row terms may be before anything cancels: the largest reward times the policy's weights."""
    largest = max(float(np.abs(terms.reward).max()), float(np.abs(terms.baseline).max()))
    if terms.estimator.rule == "steps":
        return np.array([np.abs(own).mean() for own in terms.policy])
    if terms.ratio is not None:
        return np.full(len(terms.policy), largest)
    part = slice(0, len(terms.rows))
    where = part if terms.whole else terms.rows
    weights = [float(np.sqrt(np.mean(terms.weights(k, part, where) ** 2))) for k in range(len(terms.policy))]
    return largest * (np.array(weights) + (terms.common is not None))


def run_method(terms: RowTerms) -> MethodResult:
    """Estimates and paired differences of all policies from one Gram matrix of the row terms."""
    with np.errstate(over="ignore", invalid="ignore"):
        moments = merge(Moments.of(block) for _, block in terms.blocks())
    if not np.isfinite(moments.scatter).all():
        raise PodiumError(
            f"{terms.estimator.name}: rewards, baseline or weights are too large for floating point numbers",
            hint="give the rewards in a larger unit, and a baseline from their range.",
        )
    n, samples, scatter = moments.count, moments.count, moments.scatter
    if terms.groups is not None:
        samples = int(terms.groups.max()) + 1
        sums = [GroupSums.of(block, terms.groups[part], samples, terms.weight(part)) for part, block in terms.blocks()]
        scatter = merge(sums).scatter()
    difference = moments.mean[:, None] - moments.mean[None, :]
    spread = np.diag(scatter)[:, None] + np.diag(scatter)[None, :] - 2 * scatter
    size = np.abs(moments.mean)[:, None] + np.abs(moments.mean)[None, :]
    own = np.diag(scatter)[:, None] + np.diag(scatter)[None, :]
    near = (spread <= NEAR * own) | (np.abs(difference) <= NEAR * size)
    difference, spread = repair_cancellation(terms, difference, spread, near, samples)
    result = assemble(
        terms.estimator,
        terms.shared,
        moments.mean,
        difference,
        spread,
        rows=n,
        samples=samples,
        size=np.sqrt(moments.mean**2 + np.diag(moments.scatter) / n),
        largest=float(np.abs(terms.reward).max()),
        removed=removed_weight(terms),
        effective=terms.effective,
        level=terms.ratio.level if terms.ratio is not None and terms.per_policy is None else None,
    )
    return replace(result, terms=terms)


def assemble(
    estimator: Estimator,
    shared: float,
    mean: Floats,
    difference: Floats,
    spread: Floats,
    *,
    rows: int,
    samples: int,
    size: Floats,
    largest: float,
    removed: Floats | None,
    effective: Floats | None,
    level: Floats | None,
) -> MethodResult:
    """One method's result from the mean (K,) of its terms, and the differences and centred squares (K, K) of pairs.

    `size` (K,) is the root mean square of the terms; `level` what a self-normalised method found, with every digit.
    """
    values = shared + (mean if level is None else level)
    return MethodResult(
        estimator=estimator,
        values=without_noise(values, size + abs(shared) if effective is None else largest),
        centred=mean,
        scale=float(size.max()),
        difference=difference,
        std_error=error_of(np.sqrt(np.maximum(spread, 0.0)), rows, samples),
        rows=rows,
        samples=samples,
        removed=removed,
        effective=effective,
    )


def repair_cancellation(
    terms: RowTerms, difference: Floats, spread: Floats, near: NDArray[np.bool_], samples: int
) -> tuple[Floats, Floats]:
    """Sum the differences of nearly equal policies directly: a Gram matrix cannot resolve them."""
    near = near & ~np.eye(len(near), dtype=bool)
    if not near.any():
        return difference, spread
    involved = np.flatnonzero(near.any(axis=1)).tolist()
    twin = {k: twin_key(terms, k) for k in involved}
    first: dict[bytes, int] = {}
    leader = {k: first.setdefault(twin[k], k) for k in involved}
    pairs = sorted({(leader[i], leader[j]) for i, j in np.argwhere(near).tolist() if leader[i] < leader[j]})
    exact: dict[tuple[int, int], tuple[float, float]] = {}
    for start in range(0, len(pairs), 64):
        exact |= direct_differences(terms, pairs[start : start + 64], samples)
    for i, j in np.argwhere(near).tolist():
        a, b = leader[i], leader[j]
        if a == b:
            difference[i, j] = spread[i, j] = 0.0
        else:
            mean, squares = exact[min(a, b), max(a, b)]
            difference[i, j], spread[i, j] = (mean if a < b else -mean), squares
    return difference, spread


def twin_key(terms: RowTerms, k: int) -> bytes:
    """The same bytes for policies that are equal on the kept rows."""
    import hashlib

    digest = hashlib.blake2b(terms.policy[k][terms.rows].tobytes())
    if terms.per_policy is not None:
        digest.update(terms.per_policy[k].tobytes())
    return digest.digest()


def direct_differences(
    terms: RowTerms, pairs: Sequence[tuple[int, int]], samples: int
) -> dict[tuple[int, int], tuple[float, float]]:
    """Mean and centred squares of the row differences of a few pairs."""
    moments, sums = [], []
    for part, gaps in terms.blocks(pairs):
        moments.append(Moments.of(gaps))
        if terms.groups is not None:
            sums.append(GroupSums.of(gaps, terms.groups[part], samples, terms.weight(part)))
    whole = merge(moments)
    squares = np.diag(merge(sums).scatter() if sums else whole.scatter)
    return {pair: (float(whole.mean[c]), float(squares[c])) for c, pair in enumerate(pairs)}


def try_methods(
    log: Log, policies: PolicySet, estimators: Sequence[Estimator], baseline: Any, **options: Any
) -> tuple[dict[str, MethodResult], dict[str, str]]:
    """Every method that can be used, and the reason for each that cannot."""
    results: dict[str, MethodResult] = {}
    unavailable: dict[str, str] = {}
    for estimator in estimators:
        try:
            results[estimator.name] = run_method(row_terms(log, policies, estimator, baseline, **options))
        except Unavailable as error:
            unavailable[estimator.name] = error.message
    return results, unavailable


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise PodiumError(f"seed must be a whole number from 0 on; it is {seed!r}", hint="use seed=0.")


def check_level(level: Any) -> None:
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise PodiumError(f"level must lie between 0 and 1; it is {level!r}", hint="use level=0.95 for 95% intervals.")


def check_choice(what: str, value: Any, choices: Sequence[Any]) -> None:
    if value not in choices:
        raise PodiumError(
            f"{what} must be one of {', '.join(map(repr, choices))}; it is {value!r}",
            hint="see help(podium.compare).",
        )


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

    def interval(self, policy: str, method: str, level: float = 0.95) -> tuple[float, float] | None:
        """A t interval of one value, or of one score (LDE and DiM); None where its error is not known."""
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
            "settings": dict(self.settings),
            "policies": [
                {"name": name, "estimates": dict(self.values[name]), "std_errors": dict(self.std_errors[name])}
                for name in self.policies
            ],
            "unavailable": dict(self.unavailable),
            "warnings": list(self.warnings),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per policy, one column per method."""
        return rows_to_frame([{"policy": name, **self.values[name]} for name in self.policies], backend)

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
        return [[repr(self.log), *self.settings.get("notes", ())], self.table()]


def evaluate(
    log: Any,
    policies: Any = None,
    estimators: str | Sequence[str | Estimator] = tuple(ESTIMATORS),
    baseline: Any = "mean",
    *,
    normalize: str = "rows",
    duplicates: str | None = None,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    seed: int = 0,
) -> Estimates:
    """The table of estimates alone.

    Parameters
    ----------
    log : the logged interactions
    policies : name -> policy in any form; None for the log's own pi_ columns
    estimators : names of methods, "cIPS:10" with a parameter; "all" for the whole family (`podium.estimators`)
    baseline : see `podium.estimates.baselines`
    normalize : "rows" for 1/N as in eq. (lde), "states" for the per-state form of the paper's Example 1
    duplicates : "latest" or "all" for every method; by default LDE and DiM keep the most recent row of a
        repeated (state, action), IPS and DRE every draw
    behavior : the behaviour policy in any policy form, if the log does not hold it
    actions : the action space, in the order that (N, A) columns follow; it must hold every logged action
    seed : of the folds of learned baselines

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 1], ["a", "b"], [1.0, 0.0], propensities=[0.5, 0.5])
    >>> podium.evaluate(log, {"a": "constant:a", "uniform": "uniform"}).values["a"]
    {'LDE': 0.75, 'DRE': 1.0, 'IPS': 1.0, 'DiM': 0.5}
    """
    methods = find_estimators(estimators)
    check_choice("normalize", normalize, NORMALIZE)
    check_choice("duplicates", duplicates, (None, *DUPLICATES))
    check_seed(seed)
    from podium.comparison.analysis import estimate_all  # which rests on this module, and on the passes over large logs

    rows, results, unavailable = estimate_all(
        log, policies, methods, baseline, normalize, duplicates, behavior, actions, seed
    )
    log, resolved = rows.log, rows.policies
    values = value_table(resolved.names, [m.name for m in methods], results)
    settings = {
        "estimators": [m.name for m in methods],
        "baseline": describe_baseline(baseline),
        "normalize": normalize,
        "duplicates": duplicates or "by method",
        "engine": engine_of(log),
        "seed": seed,
        "samples": {name: found.samples for name, found in results.items()},
    }
    errors = error_table(resolved.names, [m.name for m in methods], results)
    freedom = {name: {m: float(found.freedom[k]) for m, found in results.items()} for k, name in enumerate(errors)}
    warnings = (*resolved.warnings, *heavy_rows(resolved.names, results))
    return Estimates(log, resolved.names, values, unavailable, settings, warnings, errors, freedom)


def heavy_rows(names: Sequence[str], results: Mapping[str, MethodResult]) -> list[str]:
    """Which values have no error since too few rows carry the weight."""
    found = []
    for method, result in results.items():
        few = [] if result.effective is None else [names[int(k)] for k in np.flatnonzero(result.effective < FEW)]
        if few:
            more = f" and {len(few) - 1} more" if len(few) > 1 else ""
            found.append(
                f"{method} of {few[0]!r}{more} has no error: fewer than two effective rows (or units) carry the "
                "weight, and show no spread."
            )
    return found


def engine_of(log: Any) -> str:
    """The name of the engine that read a log."""
    return log.engine if isinstance(log.engine, str) else str(log.engine.name)


def prepare(
    log: Log,
    policies: Any,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    unit: str | None = None,
    seed: int = 0,
) -> tuple[Log, PolicySet]:
    """The log with the options that a call adds to it, and every policy on its rows."""
    if not isinstance(log, Log):
        raise PodiumError(
            f"log must be a podium.Log; it is {type(log).__name__}",
            hint="make one with podium.read_log, podium.scan_log, podium.Log.from_frame or podium.Log.",
        )
    if len(actions):
        log = log.with_action_space(actions)
    if unit is not None:
        log = log.with_units(unit)
    if behavior is not None:
        log = log.with_behavior(behavior, seed)
    log, resolved = resolve_policies(log, policies)
    doubts = () if log.estimated is None else log.estimated.warnings
    return log, PolicySet(resolved.policies, (*doubts, *resolved.warnings))


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
