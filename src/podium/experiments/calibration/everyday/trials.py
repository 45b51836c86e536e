"""Real randomized trials as cases: some rows make the log, rows outside it give the truth with its standard error.

| view | the log |
|---|---|
| p known | N rows of the trial; each arm has the probability of its share |
| follows | rows kept with probability q(a|s) / share(a) over its maximum in that state, until N are kept |
| no p | as "p known", without the probabilities |

Thinning makes q(a|s) the behavior policy and also changes the frequency of states: a state is kept in proportion to
1 / max_a q(a|s) / share(a). The truth is weighted in the same way, and comes from rows
that were not offered to the log.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.random import Generator

from podium.data.columns import Codes, Floats, factorize
from podium.data.frames import ColumnTable
from podium.data.log import Log
from podium.experiments.calibration.everyday.families import Case, Family
from podium.experiments.calibration.everyday.worlds import everyday_policies
from podium.experiments.calibration.real_trials import RealTrial, load_trial, trial_names
from podium.experiments.calibration.worlds import Draw, smooth_rewards, softmax
from podium.verdicts.pairs import pair_indices

TUNED = ("insurance", "training", "throat")
VIEWS = ("p known", "follows", "no p")
SIZES = (30, 50, 100, 200, 400)
OFFERED = 0.75  # most rows that thinning may look at: the others are kept for the truth

read = lru_cache(maxsize=16)(load_trial)


def trial_families(folder: str | Path | None = None) -> list[Family]:
    """Every trial in three views, at sizes from 30 up to half of its rows."""
    found = []
    for name in trial_names(folder):
        half = len(read(name, folder).rewards) // 2
        rows = (*(n for n in SIZES if n < half), half)
        for view in VIEWS:
            draw = partial(draw_trial, name, folder, view)
            found.append(Family(f"{name}, {view}", "trials", name not in TUNED, draw, rows, strata=view))
    return found


def draw_trial(name: str, folder: str | Path | None, view: str, rng: Generator, rows: int, k: int) -> Case:
    """Draw N rows of a trial as a log in one of the views, with K policies."""
    trial = read(name, folder)
    points, arms, shares = points_of(trial), *arms_of(trial)
    policies = everyday_policies(rng, points, smooth_rewards(rng, points, len(shares)), k)
    behavior = np.tile(shares, (len(arms), 1))
    order = rng.permutation(len(arms))
    kept, offered = order[:rows], rows
    if view == "follows":
        behavior, kept, offered = thin(rng, points, arms, shares, order, rows)
    log = Log(
        states=ColumnTable({key: column[kept] for key, column in trial.states.items()}),
        actions=trial.actions[kept],
        rewards=trial.rewards[kept],
        behavior=None if view == "no p" else behavior[kept],
        action_space=list(trial.shares),
    )
    weight = 1 / (behavior / shares).max(axis=1)
    values, difference, error = truth_of(trial.rewards, points, arms, shares, policies, weight, order[offered:])
    same = np.array([np.array_equal(policies[i], policies[j]) for i, j in zip(*pair_indices(k), strict=True)])
    draw = Draw(log, {f"policy {n}": p[kept] for n, p in enumerate(policies)}, values)
    return Case(draw, difference, error, same.astype(float))


def points_of(trial: RealTrial) -> Floats:
    """(N, d) the state columns as numbers with mean 0 and standard deviation 1; texts in alphabetical order."""
    columns = [
        c.astype(float) if c.dtype.kind in "iufb" else factorize(c)[0].astype(float) for c in trial.states.values()
    ]
    points = np.column_stack(columns)
    return np.asarray((points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12))


def arms_of(trial: RealTrial) -> tuple[Codes, Floats]:
    """(N,) the arm of each person as a number, and (A,) the shares of the arms."""
    place = {arm: n for n, arm in enumerate(trial.shares)}
    return np.array([place[arm] for arm in trial.actions.tolist()]), np.array(list(trial.shares.values()))


def thin(
    rng: Generator, points: Floats, arms: Codes, shares: Floats, order: Codes, rows: int
) -> tuple[Floats, Codes, int]:
    """A logger that follows the state, the rows that it keeps, and how many rows it was offered.

    Where three quarters of the rows do not suffice, the logger follows the state less closely.
    """
    taste = points @ rng.standard_normal((points.shape[1], len(shares))) / np.sqrt(points.shape[1])
    luck = rng.random(len(arms))
    strength = 1.2
    while True:
        behavior = 0.1 * shares + 0.9 * softmax(np.log(shares) + strength * taste)
        ratio = behavior / shares
        keep = ratio[np.arange(len(arms)), arms] / ratio.max(axis=1)
        kept = np.flatnonzero(luck[order] < keep[order])
        if len(kept) >= rows and kept[rows - 1] < OFFERED * len(arms):
            return behavior, order[kept[:rows]], int(kept[rows - 1]) + 1
        strength *= 0.8


def truth_of(
    rewards: Floats, points: Floats, arms: Codes, shares: Floats, policies: Floats, weight: Floats, rest: Codes
) -> tuple[Floats, Floats, Floats]:
    """Values (K,), differences (P,) and their standard errors (P,) from the rows outside the log.

    V(k) is the weighted mean of pi_k(a|s) / share(a) (r - f(s)) + f(s), where f is linear in the state: whatever f is,
    it cancels from differences on average, and it removes from their errors what the state explains.
    """
    inputs = np.column_stack([np.ones(len(rest)), points[rest]])
    fitted = inputs @ np.linalg.lstsq(inputs, rewards[rest], rcond=None)[0]
    w = weight[rest] / weight[rest].mean()
    ratio = policies[:, rest, arms[rest]] / shares[arms[rest]]
    terms = (w * (ratio * (rewards[rest] - fitted) + fitted)).T
    values = terms.mean(axis=0)
    i, j = pair_indices(len(policies))
    gap = terms[:, i] - terms[:, j]
    difference = gap.mean(axis=0)
    residual = gap - w[:, None] * difference  # the mean weight is estimated, too
    return values, difference, np.sqrt((residual**2).sum(axis=0)) / len(rest)
