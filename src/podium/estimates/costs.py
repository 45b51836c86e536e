"""Known costs in every value: V(pi) - mean_n sum_a pi(a|s_n) c(s_n, a), computed exactly and never estimated.

The reward is what a log must teach; a cost that is known is known of actions that were never logged too. So the cost of
a policy is an average over its own probabilities, without noise, and every estimate of the reward is moved by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from podium.data.columns import Floats, match_label, numbers_column
from podium.data.costs import CostNames
from podium.data.errors import PodiumError, count, listed, meant, show_value
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.roles import available
from podium.engines.parts import Part
from podium.engines.rows import Rows
from podium.engines.wider import fold_with
from podium.estimates.results import MethodResult
from podium.policies import FULL_HINT, PolicySet

SAME = 1e-9  # prices of an action that differ by less, relatively, differ by rounding alone
SHOWN = 8  # actions whose cost a note tells
MUST = "a cost is a finite number in every row."


@dataclass(frozen=True, eq=False)
class KnownCosts:
    """What policies cost.

    Parameters
    ----------
    actions : the action space
    by_action : (A,) what each action costs in every row
    headers : for each column that has a cost per row and action, its A headers
    sign : 1 where costs lower values, -1 where lower is better and they add to them
    means : (K,) of every policy, over all rows
    """

    actions: tuple[Any, ...]
    by_action: Floats
    headers: tuple[tuple[str, ...], ...]
    sign: float
    means: Floats

    def of_rows(self, log: Log, policies: PolicySet) -> Floats:
        """(n, K) sum_a pi(a|s_n) c(s_n, a) of every row."""
        costs = np.broadcast_to(self.by_action, (len(log), len(self.actions)))
        for headers in self.headers:
            costs = costs + np.column_stack([numbers_column(log.columns[h], f"column {h!r}", MUST) for h in headers])
        every = np.arange(len(log))
        return np.column_stack([p.average(costs, every) for p in policies])

    @property
    def losses(self) -> Floats:
        """(K,) what every value loses by them; below 0 where costs add to values."""
        return self.sign * self.means

    def note(self) -> Fact:
        """What the header says."""
        verb = "subtracted from" if self.sign > 0 else "added to"
        if self.headers:
            names = ", ".join(dict.fromkeys(h.partition(":")[0] for headers in self.headers for h in headers))
            return Fact("known costs by row", verb=verb, columns=names)
        named = [f"{show_value(a)} {c:.6g}" for a, c in zip(self.actions, self.by_action.tolist(), strict=True)]
        return Fact("known costs", verb=verb, costs=", ".join(named[:SHOWN]) + (", ..." if len(named) > SHOWN else ""))

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON: what each action costs, and which columns hold costs of single rows."""
        from podium.outputs.display import label_json

        by_action = [
            {"action": label_json(a), "cost": c} for a, c in zip(self.actions, self.by_action.tolist(), strict=True)
        ]
        return {"actions": by_action, "columns": [h for headers in self.headers for h in headers]}


def known_costs(rows: Rows, names: CostNames, features: Any, lower_is_better: bool) -> Rows:
    """The rows with what their policies cost."""
    refuse_unknown(rows.policies)
    space = rows.sample.action_space
    by_action = named_costs(names.actions, space)
    headers = []
    for name in names.columns:
        if features is not None and name in features.columns:
            by_action = by_action + feature_costs(features, name, space)
        elif found := action_headers(rows, name, space):
            headers.append(found)
        elif name in rows.log.columns:
            by_action = by_action + logged_costs(rows, name)
        else:
            raise no_column(rows, name, features)
    sign = -1.0 if lower_is_better else 1.0
    costs = KnownCosts(space, by_action, tuple(headers), sign, np.zeros(len(rows.policies)))
    needed = [h for some in headers for h in some]
    first = costs.of_rows(rows.sample.take(slice(0, 1)), first_row(rows.policies))[0]
    total = fold_with(rows, needed, partial(summed, costs=costs, first=first), "costs")
    costs = replace(costs, means=first + total / len(rows))
    return replace(rows, policies=replace(rows.policies, costs=costs))


def first_row(policies: PolicySet) -> PolicySet:
    return PolicySet(tuple(p.take(np.arange(1)) for p in policies))


def summed(parts: Iterable[Part], costs: KnownCosts, first: Floats) -> Any:
    """(K,) sums of what rows cost beyond a first one: a policy that always costs the same costs just that."""
    return sum(((costs.of_rows(part.log, part.policies) - first).sum(axis=0) for part in parts), np.float64(0.0))


def refuse_unknown(policies: PolicySet) -> None:
    """Costs need to be known of whatever a policy does."""
    for p in policies:
        if p.proxy:
            raise PodiumError(
                f"the cost of policy {p.name!r} cannot be computed: it is a score that stands for a probability",
                hint="leave the costs out, or subtract them from the rewards.",
            )
        if not p.has_full:
            raise PodiumError(
                f"the cost of policy {p.name!r} cannot be computed: it is known only at the logged actions",
                hint=FULL_HINT,
            )


def named_costs(given: Sequence[tuple[Any, float]], space: Sequence[Any]) -> Floats:
    """(A,) costs of the actions that were named; 0 for the others."""
    found = np.zeros(len(space))
    place = {label: i for i, label in enumerate(space)}
    for name, cost in given:
        label = name if name in place else match_label(str(name), space)
        if label not in place:
            hint = meant(str(name), [str(x) for x in space])
            raise PodiumError(
                f"the cost of {name!r} is given, and no row or policy has this action",
                hint=f"{hint}The actions are {listed(space)}.",
            )
        found[place[label]] += cost
    return found


def feature_costs(features: Any, name: str, space: Sequence[Any]) -> Floats:
    """(A,) a column of the action features."""
    column = features.columns[name][features.rows_of(space)]
    if column.dtype.kind != "f":
        raise PodiumError(
            f"{features.source}: column {name!r} cannot be a cost: it holds texts", hint="name a column of numbers."
        )
    return np.asarray(column, dtype=np.float64)


def action_headers(rows: Rows, name: str, space: Sequence[Any]) -> tuple[str, ...]:
    """The headers NAME:<action> of all actions; empty where the log has none."""
    found = {h.removeprefix(f"{name}:"): h for h in rows.log.columns if h.startswith(f"{name}:")}
    if not found:
        return ()
    place = {match_label(text, space): header for text, header in found.items()}
    missing = [label for label in space if label not in place]
    if missing:
        raise PodiumError(
            f"the costs {name}:<action> lack {len(missing):,} of the {count(len(space), 'action')}: "
            f"{listed(missing, 5)}",
            hint=f"add the column '{name}:{missing[0]}', and one for every other action.",
        )
    return tuple(place[label] for label in space)


@dataclass(frozen=True, eq=False)
class Range:
    """The lowest and the highest number of each action, in its rows."""

    low: Floats
    high: Floats

    def __add__(self, other: Range) -> Range:
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def ranges(parts: Iterable[Part], name: str, n_actions: int) -> Range:
    total = Range(np.full(n_actions, np.inf), np.full(n_actions, -np.inf))
    for part in parts:
        column = numbers_column(part.log.columns[name], f"column {name!r}", MUST)
        low, high = np.full(n_actions, np.inf), np.full(n_actions, -np.inf)
        np.minimum.at(low, part.log.action_codes, column)
        np.maximum.at(high, part.log.action_codes, column)
        total = total + Range(low, high)
    return total


def logged_costs(rows: Rows, name: str) -> Floats:
    """(A,) a column that holds the cost of the logged action, where every action always costs the same."""
    space = rows.sample.action_space
    found = fold_with(rows, [name], partial(ranges, name=name, n_actions=len(space)), "costs")
    others = f"give the cost of every action in columns '{name}:<action>', or a cost per action with --cost ACTION=C."
    unseen = [label for label, low in zip(space, found.low, strict=True) if np.isinf(low)]
    if unseen:
        raise PodiumError(
            f"column {name!r} does not say what {len(unseen):,} of the {count(len(space), 'action')} cost, which were "
            f"never logged: {listed(unseen, 5)}",
            hint=others,
        )
    varies = np.flatnonzero(found.high - found.low > SAME * np.maximum(np.abs(found.high), np.abs(found.low)))
    if varies.size:
        a = int(varies[0])
        raise PodiumError(
            f"column {name!r} holds the cost of the logged action alone, and it varies: {show_value(space[a])} costs "
            f"from {found.low[a]:.6g} to {found.high[a]:.6g} ({count(varies.size, 'action')} vary), so the cost of the "
            "other actions in a row is unknown",
            hint=f"{others} A cost that is the same for all actions of a row changes no difference: leave it out.",
        )
    return found.low


def no_column(rows: Rows, name: str, features: Any) -> PodiumError:
    headers = [*rows.log.columns, *(() if features is None else features.columns)]
    near = get_close_matches(name, headers, 1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    where = "the log has no column" if features is None else "neither the log nor the action features have a column"
    return PodiumError(f"{where} {name!r} or '{name}:<action>' for the cost", hint=guess + available(rows.log.columns))


def net(result: MethodResult, policies: PolicySet, choices: float) -> MethodResult:
    """What a method finds of reward less cost; scores, which are not in units of reward, in their own units."""
    if policies.costs is None:
        return result
    losses = policies.costs.losses / result.estimator.reward_units(choices, policies.proxies)
    return replace(
        result,
        values=result.values - losses,
        centred=result.centred - (losses - losses.mean()),
        difference=result.difference - (losses[:, None] - losses[None, :]),
    )


def all_net(results: Mapping[str, MethodResult], rows: Rows) -> dict[str, MethodResult]:
    """The same of several methods by name."""
    return {name: net(result, rows.policies, rows.log.mean_choices) for name, result in results.items()}
