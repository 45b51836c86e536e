"""Whether a log's actions occur as often as its propensities say.

With the whole behavior policy B, the rows of action a are expected to number sum_n B(a|s_n). The gaps D_a to the counts
have the covariance V = sum_n diag(B_n) - B_n B_n', which makes D' V^+ D a chi-square; rare actions, of which few rows
are expected, are held one by one against Chernoff's bound. Rows of one unit may be one draw, so that a row of a unit of
m rows counts m times in V.

Where only the propensities p_n of the logged actions are known, E 1[a_n = a] / p_n is at most 1 for every action. Bets
at fixed odds against that, prod_n (1 + b (1[a_n = a] / p_n - 1)), exceed 1 / alpha with a probability of at most alpha.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Codes, Floats, descending, factorize, group_sums
from podium.data.errors import show_value
from podium.data.facts import Fact
from podium.data.log import Log

CHANCE = 1e-4  # how unlikely the frequencies must be before the propensities are held to be wrong
COMMON = 10.0  # the variance of a count from which it is as good as normal
MOST_COMMON = 200  # actions that are tested by themselves
ROWS_PER_ACTION = 10  # of an action, below which its logged propensities are not tested
BETS = (0.02, 0.05, 0.1, 0.2, 0.4)


def contradiction(log: Log) -> Fact | None:
    """What shows that propensities that were logged or declared cannot be right; None where nothing does.

    An honest log is accused with a probability of about 1e-4.
    """
    if log.propensities is None or log.estimated is not None:
        return None
    return by_counts(log, log.behavior) if log.behavior is not None else by_weights(log)


def by_counts(log: Log, behavior: Floats) -> Fact | None:
    """The test where the whole behavior policy is known."""
    n, expected = len(log), behavior.sum(axis=0)
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    gap = counts - expected
    chances = [common_chance(log, behavior, counts)]
    if log.units is None:
        chances.append(2 * log.n_actions * float(np.exp(-n * divergence(counts / n, expected / n)).min()))
    chance = min(1.0, len(chances) * min(chances))
    if chance > CHANCE:
        return None
    z = np.abs(gap) / np.sqrt(np.maximum(expected - (behavior**2).sum(axis=0), 1e-12 * n))
    a = int(np.argmax(np.round(z, 6)))
    return Fact(
        "false propensities",
        action=show_value(log.action_space[a]),
        expected=float(expected[a] / n),
        logged=float(counts[a] / n),
        chance=chance,
    )


def unit_sizes(log: Log) -> Floats:
    """(N,) how many rows the unit of each row has; 1 without units."""
    if log.units is None:
        return np.ones(len(log))
    codes = factorize(log.units)[0]
    return np.bincount(codes)[codes].astype(np.float64)


def common_chance(log: Log, behavior: Floats, counts: Codes) -> float:
    """How likely such counts of the actions that are common enough are by chance; the others count together."""
    from scipy.special import chdtrc

    sizes, spread = unit_sizes(log), behavior * (1 - behavior)
    draws = spread.sum(axis=0) ** 2 / np.maximum(sizes @ spread, 1e-300)  # variances in numbers of independent draws
    common = np.zeros(len(counts), dtype=bool)
    common[descending(draws)[:MOST_COMMON]] = True
    common &= draws >= COMMON
    rest = behavior[:, ~common].sum(axis=1)
    spread_of_rest = rest * (1 - rest)
    cells, seen = behavior[:, common], counts[common]
    if spread_of_rest.sum() ** 2 > COMMON * (sizes @ spread_of_rest):
        cells, seen = np.column_stack([cells, rest]), np.append(seen, counts[~common].sum())
    if not len(seen):
        return 1.0
    weighted = cells * sizes[:, None]
    scale, axes = np.linalg.eigh(np.diag(weighted.sum(axis=0)) - cells.T @ weighted)
    kept = scale > 1e-9 * scale.max()
    square = float(((axes.T @ (seen - cells.sum(axis=0)))[kept] ** 2 / scale[kept]).sum())
    return float(chdtrc(int(kept.sum()), square))


def divergence(seen: Floats, said: Floats) -> Floats:
    """(A,) Kullback-Leibler divergence of the share that was seen of each action from the one that was said."""
    from scipy.special import rel_entr

    found: Floats = rel_entr(seen, said) + rel_entr(1 - seen, np.maximum(1 - said, 0.0))
    return np.maximum(found, 0.0)


def by_weights(log: Log) -> Fact | None:
    """The test where only the propensities of the logged actions are known."""
    assert log.propensities is not None
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    codes, many = np.arange(len(log)), len(log)
    if log.units is not None:
        codes, names = factorize(log.units)
        many = len(names)
    sizes = np.bincount(codes, minlength=many)
    worst, at = 0.0, 0
    for a in np.flatnonzero(counts >= ROWS_PER_ACTION).tolist():
        weights = group_sums(codes, (log.action_codes == a) / log.propensities, many) / sizes  # of whole units
        gains = [float(np.log1p(bet * (weights - 1)).sum()) for bet in BETS]
        evidence = max(gains) - float(np.log(len(BETS)))
        if evidence > worst:
            worst, at = evidence, a
    chance = float(min(1.0, log.n_actions * np.exp(-worst)))
    if chance > CHANCE:
        return None
    total = float((1 / log.propensities[log.action_codes == at]).sum() / len(log))
    return Fact("propensities too small", action=show_value(log.action_space[at]), total=total, chance=chance)
