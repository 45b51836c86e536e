"""Per-state comparison: V(pi|s) of each policy in each state, and how badly states are mispredicted (Theorem 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from podium.comparison.analysis import needs_all_at_once
from podium.data.columns import Floats, group_sums, to_array
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.scan import ScannedLog
from podium.engines.rows import open_rows
from podium.engines.sample import SAMPLE_ROWS
from podium.estimates.baselines import describe_baseline, take_baseline
from podium.estimates.estimate import DUPLICATES, NORMALIZE, TIE, check_choice, check_seed, engine_of
from podium.estimates.estimators import Estimator, find_estimator
from podium.estimates.moments import GroupSums, merge
from podium.estimates.terms import row_terms
from podium.outputs.display import Table, label_text, number, share, wrap
from podium.outputs.markup import tag
from podium.policies.actions import with_every_action
from podium.verdicts.pairs import pair_indices
from podium.version import VERSION

SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class StateComparison:
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
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.policies, 2))

    def to_dict(self) -> dict[str, Any]:
        names = self.log.state_columns
        keys = [" > ".join(pair) for pair in self.pairs]
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": dict(self.settings),
            "states": [
                {
                    "state": dict(zip(names, state, strict=True)) if len(names) > 1 else state,
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
        """One row per state: its columns, the rows kept, and a column per policy."""
        from podium.data.frames import columns_to_frame

        names = list(self.log.state_columns)
        rows = [state if len(names) > 1 else (state,) for state in self.states]
        columns = {name: to_array([row[j] for row in rows]) for j, name in enumerate(names)}
        columns["rows"] = self.rows.astype(np.int64)
        columns |= {name: self.values[:, k] for k, name in enumerate(self.policies)}
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

    def text(self, width: int = 80, bold: bool = False) -> str:
        header = wrap(repr(self.log), width, "")
        header += f"\nPer state by {self.settings['estimator']} with baseline {self.settings['baseline']}"
        if self.sample is not None:
            header += f"\nFrom a random sample of {self.sample:,} of the {len(self.log):,} rows"
        parts = [header, *(wrap(f"Warning: {w}", width, "") for w in self.warnings)]
        return "\n\n".join([*parts, self.states_table().text(width, bold), self.summary_table().text(width, bold)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return tag("p", repr(self.log)) + self.states_table().html() + self.summary_table().html()


@with_every_action
def compare_states(
    log: Log | ScannedLog,
    policies: Any = None,
    estimator: str | Estimator = "LDE",
    baseline: Any = "mean",
    *,
    normalize: str = "rows",
    duplicates: str | None = None,
    true_values: Any = None,
    delta: float = 0.0,
    lower_is_better: bool = False,
    behavior: Any = None,
    actions: Sequence[Any] = (),
    seed: int = 0,
) -> StateComparison:
    """Compare policies state by state.

    V(pi|s) = [sum of (r - rhat) w over the rows of s] / rows of s + sum_a rhat(s, a) pi(a|s); their average over
    rows is the estimate of `evaluate`. With `normalize="states"` DiM and LDE sum over the distinct actions of s
    instead of averaging, as the paper's Example 1 does; the signs are the same.

    Parameters
    ----------
    true_values : (S, K) true V(pi|s) of the states in the order of `log.state_labels`, or a mapping from state
        to K values; then `share_below_minus_delta` is the share of (state, pair) whose product of estimated and
        true difference is <= -delta (Theorem 3's misprediction; for delta = 0, whose product is negative)
    delta : the misprediction threshold

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1], ["a", "b", "b"], [1.0, 0.0, 1.0])
    >>> podium.compare_states(log, {"a": "constant:a", "b": "constant:b"}).signs.tolist()
    [[1.0], [-1.0]]
    """
    method = find_estimator(estimator)
    refuse_ratios(method)
    check_choice("normalize", normalize, NORMALIZE)
    check_choice("duplicates", duplicates, (None, *DUPLICATES))
    check_seed(seed)
    if not delta >= 0:
        raise PodiumError(
            f"delta must not be negative; it is {delta!r}",
            hint="it is a threshold on a product of differences.",
        )
    at_once = needs_all_at_once(log, baseline, normalize, policies)
    rows = open_rows(log, policies, behavior, actions, None, seed, size=SAMPLE_ROWS, at_once=at_once)
    shown, log, resolved = rows.log, rows.sample, rows.policies
    terms = row_terms(
        log,
        resolved,
        method,
        take_baseline(baseline, rows.drawn),
        normalize=normalize,
        duplicates=duplicates,
        seed=seed,
    )
    states = log.state_codes[terms.rows]
    sums = merge(GroupSums.of(block, states[part], log.n_states) for part, block in terms.blocks())
    shared = np.full(log.n_states, terms.shared)
    if terms.per_policy is None:
        shared = group_sums(states, terms.baseline, log.n_states) / sums.sizes
    # Row terms carry the weights of an average over rows (1) or states (n / S per state).
    per_state = sums.sizes if normalize == "rows" else np.full(log.n_states, len(states) / log.n_states)
    corrections = sums.sums / per_state[:, None]
    values = corrections + shared[:, None]
    left, right = pair_indices(len(resolved))
    gaps = gaps_of(corrections, left, right, TIE)
    share = None
    if true_values is not None:
        truth = check_truth(true_values, log.state_labels, len(resolved))
        products = gaps * (truth[:, left] - truth[:, right])
        share = float(np.mean(products <= -delta if delta > 0 else products < 0))
    signs = np.sign(gaps) * (-1 if lower_is_better else 1)
    settings = state_settings(method, baseline, normalize, duplicates, delta, lower_is_better, engine_of(shown), seed)
    return StateComparison(
        log=shown,
        sample=None if rows.whole else len(log),
        policies=resolved.names,
        states=tuple(log.state_labels),
        rows=sums.sizes,
        values=values,
        signs=signs,
        share_below_minus_delta=share,
        settings=settings,
        warnings=resolved.warnings,
        shares=np.stack([(signs == sign).mean(axis=0) for sign in (-1, 0, 1)], axis=1),
        median_rows=float(np.median(sums.sizes)),
    )


def gaps_of(corrections: Floats, i: Any, j: Any, tie: float) -> Floats:
    """(S, P) differences, 0 where only rounding keeps them from it."""
    gaps: Floats = corrections[:, i] - corrections[:, j]
    gaps[np.abs(gaps) <= tie * np.abs(corrections).max(axis=1, keepdims=True)] = 0.0
    return gaps


def refuse_ratios(method: Estimator) -> None:
    """A self-normalised estimate is a ratio of sums over the whole log, which no state has a part of its own in."""
    if method.self_normalized or method.rule == "steps":
        raise PodiumError(
            f"{method.name} is a ratio over the whole log, and has no values of single states",
            hint=f"use {method.counterpart.name}.",
        )


def state_settings(
    method: Estimator,
    baseline: Any,
    normalize: str,
    duplicates: str | None,
    delta: float,
    lower_is_better: bool,
    engine: str,
    seed: int,
) -> dict[str, Any]:
    return {
        "estimator": method.name,
        "baseline": describe_baseline(baseline),
        "normalize": normalize,
        "duplicates": duplicates or method.duplicates,
        "delta": delta,
        "lower_is_better": lower_is_better,
        "engine": engine,
        "seed": seed,
    }


def check_truth(true_values: Any, labels: Sequence[Any], policies: int) -> Floats:
    """True values per state as (S, K)."""
    if isinstance(true_values, Mapping):
        missing = [s for s in labels if s not in true_values]
        if missing:
            raise PodiumError(f"true_values lacks the state {missing[0]!r}", hint="name every state of the log.")
        true_values = [list(true_values[s]) for s in labels]
    truth = to_array(true_values).astype(np.float64)
    if truth.shape != (len(labels), policies) or not np.isfinite(truth).all():
        raise PodiumError(
            f"true_values must be {len(labels)} states x {policies} policies, finite; its shape is {truth.shape}",
            hint="rows follow log.state_labels, columns the policies.",
        )
    return truth
