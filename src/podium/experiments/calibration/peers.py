"""Peers' rule on the same draws: a policy is better where its 95% interval lies wholly above the other's."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.experiments.calibration.worlds import Draw
from podium.verdicts.pairs import pair_indices

LEVEL = 0.95


def disjoint(low: Floats, high: Floats) -> Floats:
    """(P,) +1 where i is claimed better than j, -1 where worse, 0 otherwise."""
    i, j = pair_indices(len(low))
    claims: Floats = (low[i] > high[j]).astype(float) - (high[i] < low[j])
    return claims


def importance_weights(draw: Draw) -> Floats:
    """(N, K) pi_k(a_n|s_n) / p_n."""
    log = draw.log
    assert log.propensities is not None
    logged = [p[np.arange(len(log)), log.action_codes] for p in draw.policies.values()]
    weights: Floats = np.column_stack(logged) / log.propensities[:, None]
    return weights


def ips_t(draw: Draw) -> Floats:
    """Mean of w r plus or minus t se."""
    from scipy.special import stdtrit

    x = importance_weights(draw) * draw.log.rewards[:, None]
    half = stdtrit(len(draw.log) - 1, (1 + LEVEL) / 2) * x.std(axis=0, ddof=1) / np.sqrt(len(draw.log))
    return disjoint(x.mean(axis=0) - half, x.mean(axis=0) + half)


def snips_t(draw: Draw) -> Floats:
    """Self-normalised mean, standard error by linearisation: w (r - estimate) / mean(w)."""
    from scipy.special import stdtrit

    w = importance_weights(draw)
    total = w.sum(axis=0)
    usable = total > 0
    estimate = (w * draw.log.rewards[:, None]).sum(axis=0) / np.where(usable, total, 1.0)
    x = w * (draw.log.rewards[:, None] - estimate) / np.where(usable, total / len(draw.log), 1.0)
    half = stdtrit(len(draw.log) - 1, (1 + LEVEL) / 2) * x.std(axis=0, ddof=1) / np.sqrt(len(draw.log))
    half = np.where(usable, half, np.inf)
    return disjoint(estimate - half, estimate + half)


def cressie_read(draw: Draw) -> Floats:
    """Interval of the empirical likelihood family (Euclidean likelihood) for E[w r] subject to E[w] = 1.

    The n rows and one unseen row (its weight 0 or the largest possible, its reward an end of the range) get
    weights q near 1/(n + 1) with sum q = 1 and sum q w = 1. By Lagrange, the least E_q[w r] within a squared
    distance rho of uniform is  x - sqrt(s2 (rho - (1 - mean w)^2 / var w)), where x is the regression of w r on w
    at w = 1 and s2 its residual variance; rho = the least possible distance + F_{1,n} / (n + 1).
    """
    from scipy.stats import f

    assert draw.log.behavior is not None
    w, n = importance_weights(draw), len(draw.log)
    delta = float(f.isf(1 - LEVEL, 1, n))
    largest = [float((p / np.maximum(draw.log.behavior, 1e-12)).max()) for p in draw.policies.values()]
    ends = (float(draw.log.rewards.min()), float(draw.log.rewards.max()))
    low, high = np.empty(len(largest)), np.empty(len(largest))
    for k in range(len(largest)):
        fake = largest[k] if w[:, k].sum() < n else 0.0
        unseen = np.append(w[:, k], fake)
        spread = unseen.var()
        rho = ((1 - unseen.mean()) ** 2 / spread if spread > 0 else 0.0) + delta / (n + 1)
        for sign, end in ((1.0, ends[0]), (-1.0, ends[1])):
            found = []
            for fake in (0.0, largest[k]):
                ws = np.append(w[:, k], fake)
                g = sign * ws * np.append(draw.log.rewards, end)
                vw = ws.var()
                if vw <= 0:
                    continue
                slope = np.mean((ws - ws.mean()) * (g - g.mean())) / vw
                left = rho - (1 - ws.mean()) ** 2 / vw
                if left >= 0:
                    residual = max(g.var() - slope**2 * vw, 0.0)
                    found.append(g.mean() + slope * (1 - ws.mean()) - np.sqrt(residual * left))
            bound = float(np.clip(sign * min(found), *ends)) if found else end
            if sign > 0:
                low[k] = bound
            else:
                high[k] = bound
    return disjoint(low, high)


PEERS = {"IPS-t": ips_t, "SNIPS-t": snips_t, "Cressie-Read": cressie_read}
