"""Doubly robust differences on every row of a log, with a model of the rewards that was fitted on its sample.

    x_n = (r_n - q(s_n, a_n)) w_n + sum_a q(s_n, a) pi(a|s_n),   w = pi / p

q is linear in the state, apart for each action, and shrunk towards what all actions share; where a policy is known at
the logged actions alone, q depends on the state alone. No row is predicted by a model that saw it. As in the gated
verdict, an error is no less than what the known policies imply, mean_n sum_a (pi - mu)^2 / B, or, where that cannot be
known, than what their weights leave open (`podium.verdicts.unseen`). Degrees of freedom follow the kurtosis of the
sample's terms: of rare rewards, the few that are there decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.applied import folds_of
from podium.baselines import FOLDS, BaselineRows, Encoder
from podium.columns import Codes, Floats, factorize, group_sums
from podium.engines.parts import Part, latest_rows
from podium.engines.rows import Rows
from podium.estimate import MethodResult
from podium.estimators import DRE
from podium.log import Log
from podium.passes import Method, prepared
from podium.terms import WeightSums
from podium.verdicts import Judgement
from podium.verdicts.gated import policy_products
from podium.verdicts.pairs import degrees_of_freedom, pair_indices, pair_power_sums, pair_variance
from podium.verdicts.unseen import BY_LOG, REWARDS_UNSEEN, Weights

NAME = "doubly robust"
MOST_TEXTS = 50  # values of a text column that get coefficients of their own
MOST_FEATURES = 50  # beyond this an action has a level of its own, but no slopes
PULL = 10.0  # rows of an action that weigh as much as what all actions share


@dataclass(frozen=True, eq=False)
class Surface:
    """q(s, a) = x(s)' c_a, fitted on the sample once without each fold, and once on all of it."""

    encoder: Encoder
    centre: Floats  # (d,)
    scale: Floats  # (d,)
    coefficients: Floats  # (folds + 1, A, d + 1), or (folds + 1, 1, d + 1) where the action does not matter
    drawn: Codes
    fold: Codes

    @classmethod
    def fit(cls, rows: Rows, per_action: bool, seed: int) -> Surface:
        log = rows.sample
        encoder = Encoder.of(log, MOST_TEXTS, drop=True)
        raw = encoder.features(log)
        centre, spread = raw.mean(axis=0), raw.std(axis=0)
        scale = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, np.inf)
        groups = np.arange(len(log)) if log.units is None else factorize(log.units)[0]
        fold = (np.random.default_rng([seed, 6]).permutation(int(groups.max()) + 1) % FOLDS)[groups]
        x = with_level((raw - centre) / scale)
        fits = [fit_surface(x[fold != k], log, np.flatnonzero(fold != k), per_action) for k in range(FOLDS)]
        fits.append(fit_surface(x, log, np.arange(len(log)), per_action))
        return cls(encoder, centre, scale, np.array(fits), rows.numbers, fold)

    def on(self, part: Part) -> BaselineRows:
        x = with_level((self.encoder.features(part.log) - self.centre) / self.scale)
        fold = folds_of(part, self.drawn, self.fold)
        matrix = np.empty((len(x), self.coefficients.shape[1]))
        for k in np.unique(fold):
            some = fold == k
            matrix[some] = x[some] @ self.coefficients[k].T
        if matrix.shape[1] == 1:
            return BaselineRows(matrix[:, 0])
        return BaselineRows(matrix[np.arange(len(x)), part.log.action_codes], matrix)


def with_level(x: Floats) -> Floats:
    return np.hstack([np.ones((len(x), 1)), x])


def fit_surface(x: Floats, log: Log, rows: Codes, per_action: bool) -> Floats:
    """(A, d + 1) coefficients: ridge regression of all rewards, then of what it leaves, action by action."""
    rewards, actions = log.rewards[rows], log.action_codes[rows]
    shared = ridge(x, rewards, 1.0, level_free=True)
    if not per_action:
        return shared[None]
    found = np.tile(shared, (log.n_actions, 1))
    residual = rewards - x @ shared
    own = x if x.shape[1] <= MOST_FEATURES else x[:, :1]
    for a in np.unique(actions):
        some = actions == a
        found[a, : own.shape[1]] += ridge(own[some], residual[some], PULL)
    return found


def ridge(x: Floats, y: Floats, pull: float, level_free: bool = False) -> Floats:
    penalty = np.full(x.shape[1], pull)
    if level_free:
        penalty[0] = 0.0
    return np.asarray(np.linalg.solve(x.T @ x + np.diag(penalty), x.T @ y), dtype=np.float64)


def method_of(rows: Rows, seed: int) -> Method | None:
    """DRE with such a model, ready for a pass; None where it cannot judge."""
    if rows.log.knows not in ("full", "logged") or rows.policies.proxies or len(rows.sample) < FOLDS:
        return None
    full = all(p.has_full for p in rows.policies)
    surface = Surface.fit(rows, full, seed)
    mean = rows.source.mean_reward(False)
    return prepared(rows, DRE, surface, False, mean, "linear").judged()


def judge_every_row(rows: Rows, method: Method, result: MethodResult, weights: WeightSums) -> Judgement:
    """What the pass over all rows says of every pair."""
    policies, sample = rows.policies, rows.sample
    i, j = pair_indices(len(policies))
    empirical = result.std_error[i, j]
    spread = float(sample.rewards.std())
    silent = [""] * len(i)
    notes, assumes = [], DRE.assumes
    if sample.behavior is not None and all(p.has_full for p in policies):
        floor = spread * np.sqrt(pair_variance(policy_products(sample, policies, "DRE"), i, j) / len(rows))
    else:
        seen = Weights(policies.names, weights.rows, weights.total, weights.squares, weights.largest)
        floor = spread * seen.errors(i, j)
        doubts = seen.doubts
        silent = [doubts[a] or doubts[b] for a, b in zip(i, j, strict=True)]
        silent = [f"DRE alone would claim too much: {doubt}" if doubt else "" for doubt in silent]
        notes.append(BY_LOG)
        assumes += f"; {REWARDS_UNSEEN}"
    error = np.maximum(empirical, floor)
    return Judgement(
        procedure=NAME,
        difference=result.difference[i, j],
        std_error=np.where(error > 0, error, np.nan),
        freedom=freedom_of(rows, method),
        path=("DRE",) * len(i),
        silent=tuple(
            reason or ("" if e > 0 else "The logged rows give the pair no spread to judge it by")
            for reason, e in zip(silent, error, strict=True)
        ),
        values=result.values,
        assumes=assumes,
        notes=tuple(notes),
        figures={"rows": len(rows), "t_p": 0.0, "alarm": False, "empirical": empirical},
    )


def freedom_of(rows: Rows, method: Method) -> Floats:
    """(P,) degrees of freedom by the kurtosis of the sample's terms, for all rows."""
    part = Part(rows.numbers, rows.sample, rows.policies, latest_rows(rows.sample))
    terms = method.terms(part)
    blocks = np.vstack([block for _, block in terms.blocks()])
    blocks = blocks - blocks.mean(axis=0)
    clusters = len(blocks)
    if rows.sample.units is not None:
        codes, names = factorize(rows.sample.units)
        clusters = len(names)
        blocks = np.column_stack([group_sums(codes, column, clusters) for column in blocks.T])
    i, j = pair_indices(len(rows.policies))
    share = len(rows) / len(rows.sample)
    found = degrees_of_freedom(*pair_power_sums(blocks, i, j), clusters)
    return np.clip(share * found, 1.0, max(share * clusters - 1, 1.0))
