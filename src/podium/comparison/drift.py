"""Has the world changed? Early rows against late ones: states, actions, rewards, and the difference of every pair.

Each test is the coefficient b of "late" (0 or 1) in a regression on the rows,

    y_n = c + b late_n + d'x_n + error,   errors clustered by unit,

with x the states where y is an action or the difference of a pair, and states and actions where y is the reward, so
that a change in the mix of states alone is told as just that. A pair's y is (r - r-bar) (pi_a - pi_b) / p, which has
the pair's difference as its mean; without propensities p is each action's share, under which the mean may be biased,
but alike early and late. The four kinds of tests share the error rate of 5%, and so do the tests of one kind
(Bonferroni).

Where the behavior policy is known for all actions, an action's y is 1[a_n = a] - p(a|s_n): a logger that changed does
no harm as long as its propensities are right. Such an alarm says that they are wrong, and needs stronger evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats, factorize
from podium.data.errors import show_value
from podium.data.facts import Fact, fact_dict
from podium.data.log import Log
from podium.outputs.display import number, share
from podium.policies import PolicySet
from podium.verdicts.pairs import degrees_of_freedom

BLOCKS = 6
LEAST_ROWS = 40  # in each half
LEAST_CLUSTERS = 20  # units in all
LEVEL = 0.05  # of a false alarm, over all tests of a log
STRICT = 0.001  # of an alarm that says that known propensities are wrong
KINDS = ("states", "actions", "rewards", "pairs")
MOST_LEVELS = 10  # texts of a column, and actions, that are looked at: the most common ones
MOST_STATES = 50  # features of the states
ROUNDING = 1e-9


@dataclass(frozen=True)
class Change:
    """One test: what was looked at, early and late, and how likely chance alone would change it as much."""

    kind: str
    name: str
    early: float
    late: float
    p_value: float
    p_adjusted: float  # for all tests of the log
    level: float = LEVEL

    @property
    def rings(self) -> bool:
        return self.p_adjusted <= self.level


@dataclass(frozen=True)
class Block:
    """About a sixth of the rows, in the order of time: means with their standard errors."""

    start: str
    end: str
    rows: int
    reward: float
    reward_error: float
    pairs: tuple[tuple[float, float], ...]  # difference and error of each pair


@dataclass(frozen=True)
class Drift:
    """What changed over the time of a log.

    Attributes
    ----------
    changes : every test, those of one kind together
    blocks : the log in six parts
    pairs : the names of the pairs, as the blocks hold them
    """

    rows: int
    changes: tuple[Change, ...]
    blocks: tuple[Block, ...]
    pairs: tuple[tuple[str, str], ...]

    def rang(self, kind: str) -> list[Change]:
        """The tests of one kind that ring, the surest first."""
        return sorted((c for c in self.changes if c.kind == kind and c.rings), key=lambda c: c.p_adjusted)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What must be said; one sentence for each kind of change."""
        alone = not any(c.rings and c.kind in ("rewards", "pairs") for c in self.changes)
        found = []
        for kind in KINDS:
            rang = self.rang(kind)
            if not rang:
                continue
            code = "drift, states alone" if kind == "states" and alone else f"drift, {kind}"
            first = rang[0]
            text = share if kind == "actions" and first.level == LEVEL else number
            code = "drift, propensities" if first.level == STRICT else code
            more = f" and {len(rang) - 1} more" if rang[1:] else ""
            fields = {"early": text(first.early), "late": text(first.late), "p_value": first.p_adjusted}
            found.append(Fact(code, what=f"{first.name}{more}", **fields))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON."""
        return {
            "rows": self.rows,
            "changes": [{**vars(c), "rings": c.rings} for c in self.changes],
            "facts": [fact_dict(fact) for fact in self.facts],
            "blocks": [
                {"start": b.start, "end": b.end, "rows": b.rows, "reward": b.reward, "reward_error": b.reward_error}
                | {
                    "pairs": [
                        dict(zip(PAIR, (*ab, *d), strict=True)) for ab, d in zip(self.pairs, b.pairs, strict=True)
                    ]
                }
                for b in self.blocks
            ],
        }


PAIR = ("a", "b", "difference", "std_error")


def drift_of(log: Log, policies: PolicySet) -> Drift | None:
    """What changed between early and late rows; None where the log has no times, or too few rows to tell."""
    if log.times is None:
        return None
    place = positions(log)
    late = 2 * place >= len(log)
    clusters = np.arange(len(log)) if log.units is None else factorize(log.units)[0]
    if min(late.sum(), (~late).sum()) < LEAST_ROWS or clusters.max() + 1 < LEAST_CLUSTERS:
        return None
    states, names = state_features(log)
    played, labels = played_actions(log)
    pairs = list(combinations(range(len(policies)), 2)) if not policies.proxies else []
    differences = difference_terms(log, policies, pairs, late)
    test = Tests(late, clusters)
    known = log.knows == "full"
    beyond = played - log.behavior[:, common_actions(log)] if known and log.behavior is not None else played
    found = [
        *test.run("states", states, names, np.zeros((len(log), 0))),
        *test.run("actions", beyond, labels, states, STRICT if known else LEVEL),
        *test.run("rewards", log.rewards[:, None], ["the reward"], np.hstack([states, played])),
        *test.run("pairs", differences, [f"{policies.names[i]} − {policies.names[j]}" for i, j in pairs], states),
    ]
    named = tuple((policies.names[i], policies.names[j]) for i, j in pairs)
    return Drift(len(log), tuple(found), blocks_of(log, place, differences, clusters), named)


def positions(log: Log) -> Codes:
    """(N,) how many rows are earlier than each; rows of the same time share it."""
    codes, _ = factorize(np.asarray(log.times))
    return np.searchsorted(np.sort(codes), codes).astype(np.int64)


def state_features(log: Log) -> tuple[Floats, list[str]]:
    """(N, d) numbers as they are, and 0 or 1 for common texts, each with its name."""
    parts: list[Floats] = []
    names: list[str] = []
    for header, column in log.state_columns.items():
        if column.dtype.kind in "iufb":
            parts.append(column.astype(np.float64))
            names.append(header)
            continue
        codes, texts = factorize(column)
        common = np.argsort(-np.bincount(codes), kind="stable")[:MOST_LEVELS]
        for c in common if len(texts) > 2 else common[:1]:
            parts.append((codes == c).astype(np.float64))
            names.append(f"{header} {show_value(texts[c])}")
    kept = [k for k, x in enumerate(parts) if np.ptp(x) > 0][:MOST_STATES]
    features = np.column_stack([parts[k] for k in kept]) if kept else np.zeros((len(log), 0))
    return features, [names[k] for k in kept]


def common_actions(log: Log) -> list[int]:
    """The most common actions; one of two, since the other is its opposite."""
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    common = [int(a) for a in np.argsort(-counts, kind="stable")[:MOST_LEVELS] if 0 < counts[a] < len(log)]
    return common[:1] if np.count_nonzero(counts) == 2 else common


def played_actions(log: Log) -> tuple[Floats, list[str]]:
    """(N, b) 0 or 1 for common actions, and their names."""
    common = common_actions(log)
    played = (log.action_codes[:, None] == np.array(common, dtype=np.int64)).astype(np.float64)
    return played, [f"action {show_value(log.action_space[a])}" for a in common]


def difference_terms(log: Log, policies: PolicySet, pairs: Sequence[tuple[int, int]], late: Any) -> Floats:
    """(N, P) terms whose means are the pairs' differences."""
    if not pairs:
        return np.zeros((len(log), 0))
    shares = np.bincount(log.action_codes, minlength=log.n_actions) / len(log)
    p = shares[log.action_codes] if log.propensities is None else log.propensities
    centre = np.where(late, log.rewards[late].mean(), log.rewards[~late].mean())
    logged = np.column_stack([policy.logged for policy in policies])
    weighted = ((log.rewards - centre) / p)[:, None]
    return np.column_stack([weighted[:, 0] * (logged[:, i] - logged[:, j]) for i, j in pairs])


@dataclass(frozen=True, eq=False)
class Tests:
    """Early against late rows, with errors clustered by unit."""

    late: Any
    clusters: Codes

    def run(
        self, kind: str, columns: Floats, names: Sequence[str], given: Floats, level: float = LEVEL
    ) -> list[Change]:
        """A test of every column (N, m), given others (N, d)."""
        if not names:
            return []
        from scipy.special import stdtr

        coefficient, error, freedom = self.coefficients(columns, given)
        z = np.divide(coefficient, error, out=np.zeros_like(coefficient), where=error > 0)
        p = np.where(error > 0, 2 * stdtr(freedom, -np.abs(z)), 1.0)
        adjusted = np.minimum(1.0, p * len(names) * len(KINDS))
        early, late = columns[~self.late].mean(axis=0), columns[self.late].mean(axis=0)
        return [
            Change(kind, name, float(early[k]), float(late[k]), float(p[k]), float(adjusted[k]), level)
            for k, name in enumerate(names)
        ]

    def coefficients(self, columns: Floats, given: Floats) -> tuple[Floats, Floats, Floats]:
        """(m,) coefficients of "late", their clustered standard errors and degrees of freedom."""
        base = np.column_stack([np.ones(len(self.late)), standardized(given)])
        contrast = residual(base, self.late.astype(np.float64)[:, None])[:, 0]
        size = float(contrast @ contrast)
        if size <= ROUNDING * len(contrast):  # the states tell early from late, so nothing else can be told
            nothing = np.zeros(columns.shape[1])
            return nothing, nothing, nothing + 1.0
        rest = residual(base, columns)
        coefficient = contrast @ rest / size
        scores = contrast[:, None] * (rest - contrast[:, None] * coefficient)
        summed = np.zeros((int(self.clusters.max()) + 1, columns.shape[1]))
        np.add.at(summed, self.clusters, scores)
        second = (summed**2).sum(axis=0)
        spare = len(summed) / max(1, len(summed) - base.shape[1] - 1)
        fourth = np.divide((summed**4).sum(axis=0), second**2, out=np.ones_like(second), where=second > 0)
        noise = ROUNDING * np.abs(columns).max(axis=0) * np.sqrt(size)
        error = np.where(np.sqrt(second) > noise, np.sqrt(second * spare) / size, 0.0)
        return coefficient, error, degrees_of_freedom(fourth, len(summed))


def standardized(columns: Floats) -> Floats:
    spread = columns.std(axis=0)
    varies = spread > ROUNDING * np.abs(columns).max(axis=0, initial=0.0)
    result: Floats = (columns[:, varies] - columns[:, varies].mean(axis=0)) / spread[varies]
    return result


def residual(base: Floats, columns: Floats) -> Floats:
    """What remains of columns after a regression on others."""
    weights, *_ = np.linalg.lstsq(base, columns, rcond=ROUNDING)
    rest: Floats = columns - base @ weights
    return rest


def blocks_of(log: Log, place: Codes, differences: Floats, clusters: Codes) -> tuple[Block, ...]:
    """The log in six parts of about as many rows."""
    number_of = BLOCKS * place // len(log)
    found = []
    for b in np.unique(number_of):
        rows = np.flatnonzero(number_of == b)
        columns = np.column_stack([log.rewards[rows], differences[rows]])
        means = columns.mean(axis=0)
        summed = np.zeros((int(clusters.max()) + 1, columns.shape[1]))
        np.add.at(summed, clusters[rows], columns - means)
        errors = np.sqrt((summed**2).sum(axis=0)) / len(rows)
        times = np.asarray(log.times)[rows]
        start, end = (times[pick(place[rows])] for pick in (np.argmin, np.argmax))
        pairs = tuple((float(m), float(e)) for m, e in zip(means[1:], errors[1:], strict=True))
        found.append(Block(str(start), str(end), len(rows), float(means[0]), float(errors[0]), pairs))
    return tuple(found)
