"""Per-state comparison: V(pi|s) of each policy in each state, and how badly states are mispredicted (Theorem 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from podium.data.arguments import checked, numbers, real
from podium.data.columns import Codes, Floats, group_sums, to_array
from podium.data.errors import PodiumError
from podium.data.frames import apart, columns_to_frame
from podium.data.log import Log
from podium.data.owned import fresh
from podium.data.roles import describe_columns
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows
from podium.estimates.baselines import describe_baseline
from podium.estimates.estimators import DRE, LDE, Estimator, find_estimator
from podium.estimates.evaluate import known_settings, rows_of
from podium.estimates.methods import prepare
from podium.estimates.moments import GroupSums
from podium.estimates.options import Options
from podium.estimates.results import TIE
from podium.outputs.display import Block, Shown, Table, label_json, label_text, number, share
from podium.verdicts.pairs import pair_indices
from podium.version import VERSION

SHOWN = 20
STATES = (
    "normalize", "duplicates", "lower_is_better", "behavior", "actions", "seed", "sample_rows", "action_features",
    "cost",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class StateComparison(Shown):
    """Each policy's value in each state, and the sign of every pair's difference there."""

    log: Log | ScannedLog
    policies: tuple[str, ...]
    states: tuple[Any, ...]
    rows: Floats  # (S,) rows kept in each state
    values: Floats  # (S, K)
    signs: Floats  # (S, K(K-1)/2) of -1, 0, 1, pairs in the order of `pairs`
    share_below_minus_delta: float | None
    settings: Mapping[str, Any]
    warnings: tuple[str, ...]
    shares: Floats  # (P, 3) of all states, in which the first policy of a pair is below, equal, above
    median_rows: float
    sample: int | None = None  # rows of the sample that the states come from; None where they come from all rows

    @property
    def kept(self) -> str:
        """Which rows of a state count."""
        latest = self.settings["duplicates"] == "latest"
        return "from the latest row of each action in a state" if latest else "from every row"

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.policies, 2))

    def to_dict(self) -> dict[str, Any]:
        names = self.log.state_columns
        keys = pair_keys(self.pairs)
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": fresh(self.settings),
            "states": [
                {
                    "state": dict(zip(names, label_json(state), strict=True)) if len(names) > 1 else label_json(state),
                    "rows": int(self.rows[i]),
                    "values": dict(zip(self.policies, self.values[i].tolist(), strict=True)),
                    "signs": dict(zip(keys, self.signs[i].astype(int).tolist(), strict=True)),
                }
                for i, state in enumerate(self.states)
            ],
            "share_below_minus_delta": self.share_below_minus_delta,
            "sample": None if self.sample is None else {"rows": self.sample, "of": len(self.log)},
            "shares": {
                key: {"above": s[2], "below": s[0], "equal": s[1]}
                for key, s in zip(keys, self.shares.tolist(), strict=True)
            },
            "warnings": list(self.warnings),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per state: its columns, the rows kept, and a column per policy.

        Where names collide, a state column becomes "state:rows" and a policy's "policy:x".
        """
        names = list(self.log.state_columns)
        rows = [state if len(names) > 1 else (state,) for state in self.states]
        columns = apart(["rows"], {x: to_array([row[j] for row in rows]) for j, x in enumerate(names)}, "state")
        columns["rows"] = self.rows.astype(np.int64)
        columns |= apart(columns, {name: self.values[:, k] for k, name in enumerate(self.policies)}, "policy")
        return columns_to_frame(columns, backend)

    def summary_table(self) -> Table:
        rows = [
            [a, b, *(share(float(self.shares[n, place])) for place in (2, 0, 1))]
            for n, (a, b) in enumerate(self.pairs[:SHOWN])
        ]
        notes = []
        if len(self.pairs) > SHOWN:
            notes.append(f"{len(self.pairs) - SHOWN} more pairs are in the JSON output.")
        if self.share_below_minus_delta is not None:
            share_text = share(self.share_below_minus_delta)
            notes.append(
                f"Mispredicted by more than delta = {self.settings['delta']:g}: {share_text} of (state, pair)."
            )
        notes.append(f"A state with few rows says little: the median state has {self.median_rows:g}.")
        return Table("Share of states in which", ["a", "b", "a is above", "b is above", "equal"], rows, "llrrr", notes)

    def states_table(self) -> Table:
        order = np.argsort(-self.rows, kind="stable")[:SHOWN]
        many = self.policies[:6]
        rows = [
            [
                label_text(self.states[i]),
                str(int(self.rows[i])),
                *(number(v) for v in self.values[i, : len(many)]),
            ]
            for i in order
        ]
        title = f"States with the most rows ({len(order)} of {len(self.states):,})"
        return Table(title, ["state", "rows", *many], rows, align="lr" + "r" * len(many))

    def blocks(self, width: int) -> list[Block]:
        head = [
            repr(self.log),
            *describe_columns(self.log),
            f"Per state by {self.settings['estimator']} with baseline {self.settings['baseline']}, {self.kept}",
            *self.settings.get("notes", ()),
        ]
        if self.sample is not None:
            head.append(f"From a random sample of {self.sample:,} of the {len(self.log):,} rows")
        return [head, *([f"Warning: {w}"] for w in self.warnings), self.states_table(), self.summary_table()]


@checked(delta=real(0))
def compare_states(
    log: Log | ScannedLog,
    policies: Any = None,
    estimator: str | Estimator | None = None,
    baseline: Any = "mean",
    *,
    true_values: Any = None,
    delta: float = 0.0,
    **options: Any,
) -> StateComparison:
    """Compare policies state by state.

    V(pi|s) = [sum of (r - rhat) w over the rows of s] / rows of s + sum_a rhat(s, a) pi(a|s); their average over
    rows is the estimate of `evaluate`. With `normalize="states"` DiM and LDE sum over the distinct actions of s
    instead of averaging, as the paper's Example 1 does; the signs are the same.

    Parameters
    ----------
    estimator : "LDE", "DRE", "IPS", "DiM", ...; by default DRE where the propensities are known, which uses every draw
        of a state and is right however often each action was logged, and otherwise LDE
    true_values : (S, K) true V(pi|s) of the states in the order of `log.state_labels`, or a mapping from state
        to K values; then `share_below_minus_delta` is the share of (state, pair) whose product of estimated and
        true difference is <= -delta (Theorem 3's misprediction; for delta = 0, whose product is negative)
    delta : the misprediction threshold
    options : `normalize`, `duplicates`, `lower_is_better`, `behavior`, `actions`, `seed`, `sample_rows`,
        `action_features` and `cost` of `compare`

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1], ["a", "b", "b"], [1.0, 0.0, 1.0])
    >>> podium.compare_states(log, {"a": "constant:a", "b": "constant:b"}).signs.tolist()
    [[1.0], [-1.0]]
    """
    chosen = None if estimator is None else refuse_ratios(find_estimator(estimator))
    asked = Options.of(STATES, options, estimator=chosen, baseline=baseline)
    rows = rows_of(log, policies, asked)
    method = chosen or usual_method(rows)
    sample, names = rows.sample, rows.policies.names
    terms = prepare(rows, method, asked).terms(rows.sample_part)
    states = sample.state_codes[terms.rows]
    sums = GroupSums.of(terms.matrix(), states, sample.n_states)
    shared = np.full(sample.n_states, terms.shared)
    if terms.per_policy is None:
        shared = group_sums(states, terms.baseline, sample.n_states) / sums.sizes
    # Row terms carry the weights of an average over rows (1) or states (n / S per state).
    whole = asked.normalize == "rows"
    corrections = sums.sums / (sums.sizes[:, None] if whole else len(states) / sample.n_states)
    corrections -= costs_of_states(rows, terms.rows) / method.reward_units(sample.mean_choices)
    left, right = pair_indices(len(names))
    gaps = gaps_of(corrections, left, right, TIE)
    mispredicted = None
    if true_values is not None:
        mispredicted = mispredicted_share(gaps, check_truth(true_values, sample.state_labels, len(names)), delta)
    signs = np.sign(gaps) * (-1 if asked.lower_is_better else 1)
    settings = {
        "estimator": method.name,
        "baseline": describe_baseline(baseline),
        "normalize": asked.normalize,
        "duplicates": asked.duplicates or method.duplicates,
        "delta": delta,
        "lower_is_better": asked.lower_is_better,
        "engine": sample.engine,
        "seed": asked.seed,
        **known_settings(rows),
    }
    return StateComparison(
        log=rows.log,
        sample=None if rows.whole else len(sample),
        policies=names,
        states=tuple(sample.state_labels),
        rows=sums.sizes,
        values=corrections + shared[:, None],
        signs=signs,
        share_below_minus_delta=mispredicted,
        settings=settings,
        warnings=rows.warnings,
        shares=np.stack([(signs == sign).mean(axis=0) for sign in (-1, 0, 1)], axis=1),
        median_rows=float(np.median(sums.sizes)),
    )


def usual_method(rows: Rows) -> Estimator:
    """DRE where the propensities are known: LDE keeps the latest row of an action alone, however many there are."""
    return DRE if rows.log.knows in ("full", "logged") and not rows.policies.proxies else LDE


def mispredicted_share(gaps: Floats, truth: Floats, delta: float) -> float:
    """The share of (state, pair) whose estimated and true differences have a product of -delta or less."""
    left, right = pair_indices(truth.shape[1])
    products = gaps * (truth[:, left] - truth[:, right])
    return float(np.mean(products <= -delta if delta > 0 else products < 0))


def costs_of_states(rows: Rows, kept: Codes) -> Floats | float:
    """(S, K) what every policy's value in a state loses by known costs, over the rows that are kept; 0 without any."""
    costs, sample = rows.policies.costs, rows.sample
    if costs is None:
        return 0.0
    lost = costs.sign * costs.of_rows(sample, rows.policies)[kept]
    sums = GroupSums.of(lost, sample.state_codes[kept], sample.n_states)
    return np.asarray(sums.sums / sums.sizes[:, None])


def gaps_of(corrections: Floats, i: Any, j: Any, tie: float) -> Floats:
    """(S, P) differences, 0 where only rounding keeps them from it."""
    gaps: Floats = corrections[:, i] - corrections[:, j]
    gaps[np.abs(gaps) <= tie * np.abs(corrections).max(axis=1, keepdims=True)] = 0.0
    return gaps


def pair_keys(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What the JSON output calls pairs: "a > b"; the names in quotes where two pairs would be called the same.

    >>> pair_keys([("a", "b > c"), ("a > b", "c"), ("a", "c")])
    ["'a' > 'b > c'", "'a > b' > 'c'", 'a > c']
    """
    keys = Counter(" > ".join(pair) for pair in pairs)
    return [" > ".join(pair if keys[" > ".join(pair)] == 1 else map(repr, pair)) for pair in pairs]


def refuse_ratios(method: Estimator) -> Estimator:
    """The method, unless it is self-normalised: a ratio over the whole log, in which no state has its own part."""
    if method.self_normalized or method.rule == "steps":
        raise PodiumError(
            f"{method.name} is a ratio over the whole log, and has no values of single states",
            hint=f"use {method.counterpart.name}.",
        )
    return method


def check_truth(true_values: Any, labels: Sequence[Any], policies: int) -> Floats:
    """True values per state as (S, K)."""
    if isinstance(true_values, Mapping):
        missing = [s for s in labels if s not in true_values]
        if missing:
            raise PodiumError(f"true_values lacks the state {missing[0]!r}", hint="name every state of the log.")
        true_values = [true_values[s] for s in labels]
    truth = numbers("true_values", true_values)
    if truth.shape != (len(labels), policies) or not np.isfinite(truth).all():
        raise PodiumError(
            f"true_values must be {len(labels)} states x {policies} policies, finite; its shape is {truth.shape}",
            hint="rows follow log.state_labels, columns the policies.",
        )
    return truth
