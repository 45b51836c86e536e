"""The gated verdict: LDE where the log shows no harm in ignoring propensities, DRE otherwise, for all pairs at once.

With g = pi - mu, A actions and b the mean reward of neighbouring states, x_n = A (r_n - b_n) g_n on one row per (s, a)
for LDE, and x_n = (r_n - b_n) g_n / p_n on all rows for DRE. C_j sums x over state (or unit) j of J. D = sum C / N and

    se = max(empirical, design),  empirical = sqrt(J) sd(C) / N,  design^2 = sigma^2 H / N.

H is what the KNOWN policies imply and the log may not have seen yet: mean_n A sum_a g^2 for LDE (sigma = sd(r - b)),
mean_n sum_a g^2 / B for DRE (sigma = sd(r)). P(better) = T_nu(D / se) with nu from the kurtosis of C.
LDE is taken only if N >= 50, good actions were not logged more often than others (|T_p|), and LDE and DRE agree
(|z_b| <= 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats, factorize, group_sums
from podium.data.facts import Fact
from podium.data.log import Log
from podium.estimates.estimators import DRE, LDE, Estimator, weight_gap
from podium.estimates.learned import neighbour_means
from podium.estimates.moments import Moments, merge
from podium.policies import PolicySet
from podium.propensities.preferences import has_fixed_preferences
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import correlation_t, degrees_of_freedom, pair_indices, pair_power_sums, pair_variance

# The four gates, measured on simulated families (`python -m podium.calibration`, column "gated"): with them 26% of
# pairs were decided at 50 rows or more, and 0.3% of the claims were wrong. |T_p| > 3 found 96% of loggers that seek
# reward at 20 rows and all at 100, and rang for 5% of the others.
FEW_ROWS = 50  # below this LDE is not trusted
ALARM = 3.0  # |T_p| above this: the logger seems to seek reward
ALARM_ESTIMATED = 2.0  # the same where each action's share of the rows stands for its probability
DISAGREE = 2.0  # |z_b| above this: LDE and DRE disagree
LACKING = {  # what is known of the logger -> what DRE lacks, and the remedy
    "none": (
        "the log has no propensities",
        'log them, or name the behavior policy with --behavior, such as "shares:a=.4,b=.6"',
    ),
    "logged": (
        "only the logged actions' propensities are known",
        "log propensity:<action> for every action, or name the behavior policy with --behavior",
    ),
    "full": (
        "some policies are known only at the logged actions",
        "give every policy in full, in columns pi_<name>:<action> or as a function of the state",
    ),
}
BLOCK = 1 << 14
CELLS = 1 << 22  # probabilities held at once
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Path:
    """One way to estimate every difference: (P,) arrays over the pairs."""

    difference: Floats
    empirical: Floats  # standard errors
    design: Floats  # nan where it cannot be known
    freedom: Floats
    rows: int
    clusters: int
    values: Floats  # (K,)

    @property
    def std_error(self) -> Floats:
        """The larger of the two errors; nan without spread or where the design error is unknown."""
        error = np.maximum(self.empirical, self.design)
        return np.where((error > 0) & (self.clusters > 1), error, np.nan)


@dataclass(frozen=True, eq=False)
class Gates:
    """What decides between LDE and DRE, computed once for a log and its policies."""

    log: Log
    policies: PolicySet

    @cached_property
    def baseline(self) -> Floats:
        """(N,) leave-one-out mean reward of neighbouring rows."""
        return neighbour_means(self.log)

    @cached_property
    def residual(self) -> Floats:
        """(N,) r - b, and 0 where only rounding keeps the two apart."""
        rewards = self.log.rewards
        gap = rewards - self.baseline
        return np.where(np.abs(gap) <= ROUNDING * np.abs(rewards).max(), 0.0, gap)

    @property
    def t_p(self) -> float:
        """How much the logger seems to seek reward: `preference`, or 0 for a logger that does not look at the state.

        Such a logger may well take the best action most often, but it cannot choose it where it pays.
        """
        return 0.0 if self.fixed else self.preference

    @cached_property
    def fixed(self) -> bool:
        """Whether the behavior policy is known and does not look at the state, only at what is eligible."""
        return has_fixed_preferences(self.log)

    @cached_property
    def preference(self) -> float:
        """t statistic of the correlation of log p and r - b: large where good actions were logged more often."""
        if self.log.propensities is not None:
            log_p = np.log(self.log.propensities)
            if self.log.eligible is not None:  # beside a uniform choice: few actions have large probabilities
                log_p = log_p + np.log(self.log.choices)
        else:
            counts, expected = action_counts(self.log)
            if looks_uniform(counts, expected):  # shares that chance alone explains show no preference of the logger's
                return 0.0
            log_p = np.log(counts[self.log.action_codes])
            if self.log.eligible is not None:
                log_p = log_p - np.log(expected[self.log.action_codes])
        return correlation_t(log_p, self.residual)

    @property
    def knows(self) -> str:
        return self.log.knows

    @cached_property
    def z_b(self) -> Floats:
        """(P,) how far LDE and DRE are apart, in standard errors, damped where the log has not seen what matters."""
        i, j = pair_indices(len(self.policies))
        p = self.log.propensities
        if p is None:
            return np.zeros(len(i))
        factor = weight_gap(self.log.choices, 1 / p)
        rewards = self.log.rewards / (float(np.abs(self.log.rewards).max()) or 1.0)
        weight = (rewards - rewards.mean()) * factor
        moments = merge(Moments.of(block) for block in logged_blocks(self.policies, weight))
        n = len(p)
        error = np.sqrt(pair_variance(moments.scatter, i, j) / max(n - 1, 1) / n)
        z: Floats = np.divide(moments.mean[i] - moments.mean[j], error, out=np.zeros(len(i)), where=error > 0)
        if self.log.behavior is None or not all(policy.has_full for policy in self.policies):
            return z
        seen = pair_variance(sum_of_products(logged_blocks(self.policies, factor)), i, j)
        expected = n * pair_variance(policy_products(self.log, self.policies, "disagreement"), i, j)
        share = np.divide(seen, expected, out=np.ones(len(i)), where=expected > 0)
        return np.asarray(z * np.sqrt(np.minimum(1.0, share)), dtype=np.float64)

    @cached_property
    def lde(self) -> Path:
        return self.path(LDE)

    @cached_property
    def dre(self) -> Path | None:
        return None if self.log.propensities is None else self.path(DRE)

    def path(self, estimator: Estimator) -> Path:
        """Differences and errors by one method with the neighbours' baseline."""
        log, policies = self.log, self.policies
        rows = log.latest if estimator.duplicates == "latest" else np.arange(len(log))
        n, units = len(rows), estimator.reward_units(log.mean_choices, policies.proxies)
        size = float(np.abs(self.residual).max()) or 1.0  # fourth powers of huge or tiny numbers are none
        residual = self.residual[rows] / size
        each = log.choices[rows] / log.mean_choices if units != 1 else 1.0  # of A_n eligible actions
        weight = units * each * residual
        if estimator.uses_propensity:
            assert log.propensities is not None
            weight = weight / log.propensities
        i, j = pair_indices(len(policies))
        groupings = [log.state_codes[rows]] + ([] if log.units is None else [factorize(log.units[rows])[0]])
        found = [clustered(policies, rows, weight, codes) for codes in groupings]
        total = found[0][0].sum(axis=0) / n
        empirical = np.max([error for _, error, _ in found], axis=0)
        freedom = np.min([degrees for _, _, degrees in found], axis=0)
        count = min(len(summed) for summed, _, _ in found)
        design = np.full(len(i), np.nan)
        kind = "LDE" if estimator is LDE else "DRE"
        if kind == "LDE" or (log.behavior is not None and all(p.has_full for p in policies)):
            spread = residual if kind == "LDE" else log.rewards / size
            design = np.sqrt(float(np.var(spread)) * pair_variance(policy_products(log, policies, kind), i, j) / n)
            design *= units / estimator.reward_units(log.mean_choices)
        return Path(
            difference=size * (total[i] - total[j]),
            empirical=size * empirical,
            design=size * design,
            freedom=freedom,
            rows=n,
            clusters=count,
            values=size * total + float(log.rewards.mean()),
        )


def is_alarm(gates: Gates, statistic: float) -> bool:
    """Whether good actions were logged more often than others, by T_p or by the preference behind it."""
    return abs(statistic) > (ALARM if gates.knows != "none" else ALARM_ESTIMATED)


def lacking(gates: Gates) -> dict[str, str]:
    """What keeps DRE from being judged with its design error, and what to do about it."""
    lacks, remedy = LACKING["full" if gates.knows == "estimated" else gates.knows]
    return {"lacks": lacks, "remedy": remedy}


def gated(gates: Gates) -> Judgement:
    """The gated verdict of every pair."""
    policies = gates.policies
    alarm = is_alarm(gates, gates.t_p)
    i, _ = pair_indices(len(policies))
    lde = gates.lde
    trusted = lde.rows >= FEW_ROWS and not is_alarm(gates, gates.preference)
    use_lde = np.full(len(i), trusted) & (np.abs(gates.z_b) <= DISAGREE)
    dre = None if use_lde.all() else gates.dre
    other = lde if dre is None else dre
    known = np.zeros(len(i), dtype=bool) if dre is None else np.isfinite(dre.design)
    path = np.where(use_lde | (dre is None), "LDE", "DRE")
    silent = [
        why_silent(gates, bool(taken), bool(dre_known), lde.rows)
        for taken, dre_known in zip(use_lde, known, strict=True)
    ]
    if policies.proxies:
        silent = [reason or Fact("scores, not probabilities") for reason in silent]
    chosen = np.where(use_lde, lde.std_error, other.std_error)
    silent = [
        reason or ("" if np.isfinite(error) else Fact("no spread in rows"))
        for reason, error in zip(silent, chosen, strict=True)
    ]
    main = lde if use_lde.mean() >= 0.5 else other
    notes = [Fact("no propensities")] if gates.knows == "none" else []
    notes += [] if all(p.has_full for p in policies) else [Fact("policies at logged actions")]
    assumes = LDE.assumes if gates.knows == "none" else "the propensities are right, or logging did not seek reward"
    return Judgement(
        procedure="gated",
        difference=np.where(use_lde, lde.difference, other.difference),
        std_error=chosen,
        freedom=np.where(use_lde, lde.freedom, other.freedom),
        path=tuple(path.tolist()),
        silent=tuple(silent),
        values=main.values,
        assumes=assumes,
        notes=tuple(notes),
        rows=main.rows,
        t_p=gates.t_p,
        alarm=alarm,
        logger=gates,
    )


def action_counts(log: Log) -> tuple[Codes, Floats]:
    """(A,) rows of each action, and how many there would be if every eligible action were as likely."""
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    if log.eligible is None:
        return counts, np.full(len(counts), counts.sum() / len(counts))
    return counts, (1 / log.choices) @ log.eligible


def looks_uniform(counts: NDArray[np.int64], expected: Floats) -> bool:
    """Whether actions occur as evenly as chance would have it (chi-square at 5%), given 5 rows or more for each.

    Actions that were never eligible do not count.
    """
    from scipy.special import chdtrc

    possible = expected > 0
    counts, expected = counts[possible], expected[possible]
    if expected.min() < 5:
        return False
    return bool(chdtrc(max(len(counts) - 1, 1), float(((counts - expected) ** 2 / expected).sum())) > 0.05)


def why_silent(gates: Gates, lde_taken: bool, dre_known: bool, rows: int) -> str:
    """Why no claim may be made of a pair; nothing if one may."""
    if lde_taken or dre_known:
        return ""
    if is_alarm(gates, gates.t_p):
        return Fact("logger seeks reward", t_p=gates.t_p, **lacking(gates))
    if is_alarm(gates, gates.preference):
        return Fact("uneven shares", **lacking(gates))
    if rows < FEW_ROWS:
        return Fact("few distinct rows", least=FEW_ROWS, **lacking(gates))
    return Fact("LDE and DRE disagree", **lacking(gates))


def clustered(policies: PolicySet, rows: Codes, weight: Floats, codes: Codes) -> tuple[Floats, Floats, Floats]:
    """Sums (J, K) of the terms of each cluster; empirical error and degrees of freedom (P,) of every difference."""
    count, n = int(codes.max()) + 1, len(rows)
    summed = np.empty((count, len(policies)))
    for k, policy in enumerate(policies):
        summed[:, k] = group_sums(codes, weight * policy.logged[rows], count)
    i, j = pair_indices(len(policies))
    second, fourth = pair_power_sums(summed, i, j)
    total = summed.sum(axis=0)
    centred = np.maximum(second - (total[i] - total[j]) ** 2 / count, 0)
    return summed, np.sqrt(count / max(count - 1, 1) * centred) / n, degrees_of_freedom(fourth, count)


# --- arithmetic ------------------------------------------------------------------------------------------------


def policy_products(log: Log, policies: PolicySet, kind: str) -> Floats:
    """(K, K) M with M_kk + M_ll - 2 M_kl = H, the second moment that the policies imply for a pair.

    kind "LDE": mean_n A_n sum_a pi_k pi_l, A_n eligible actions; "DRE": mean_n sum_a pi_k pi_l / B; "disagreement":
    mean_n sum_a B (A_n - 1/B)^2 pi_k pi_l. Policies known only at logged actions: the actions logged in a
    state stand for all, and the mass m of the others is bounded, sum_a g^2 <= sum_seen g^2 + m_k^2 + m_l^2.
    """
    n, a = len(log), log.n_actions
    if not all(p.has_full for p in policies):
        return bounded_products(log, policies)
    total = np.zeros((len(policies), len(policies)))
    each = list(policies)
    spread = [k for k, p in enumerate(each) if p.chosen is None]
    single = [k for k, p in enumerate(each) if p.chosen is not None]  # they play one action: a pick, not a sum
    step = max(1, min(BLOCK, CELLS // (a * max(1, len(spread)))))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        every = np.arange(len(rows))
        many = log.choices[rows, None]
        weight: Floats = np.broadcast_to(many, (len(rows), a))
        if kind != "LDE":
            assert log.behavior is not None
            b = np.maximum(log.behavior[rows], 1e-12)
            weight = 1 / b if kind == "DRE" else b * (many - 1 / b) ** 2
        block = np.stack([each[k].full(a, rows) for k in spread]) if spread else np.empty((0, len(rows), a))
        cells = (len(spread), len(rows) * a)
        total[np.ix_(spread, spread)] += block.reshape(cells) @ (block * weight).reshape(cells).T
        for k in single:
            action = each[k].chosen[rows]
            heavy = weight[every, action]
            total[k, spread] += block[:, every, action] @ heavy
            total[k, single] += [float(heavy[each[other].chosen[rows] == action].sum()) for other in single]
    total[np.ix_(spread, single)] = total[np.ix_(single, spread)].T
    return total / n


def bounded_products(log: Log, policies: PolicySet) -> Floats:
    """The same for LDE from the logged actions alone, an upper bound."""
    kept = log.latest
    codes = log.context_codes
    states, many = codes[kept], int(codes.max()) + 1
    weight = np.bincount(codes, log.choices, minlength=many) / len(log)  # of a state among the rows, times its actions
    root = np.zeros(len(log))
    root[kept] = np.sqrt(weight[states])
    seen = sum_of_products(logged_blocks(policies, root))
    mass = [group_sums(states, p.logged[kept], many) for p in policies]
    unseen = np.array([weight @ np.maximum(1 - m, 0) ** 2 for m in mass])
    return np.asarray(seen + np.diag(unseen), dtype=np.float64)


def logged_blocks(policies: PolicySet, weight: Floats) -> Iterator[Floats]:
    """(n, K) blocks of weight(n) pi_k(a_n|s_n)."""
    for start in range(0, len(weight), BLOCK):
        part = slice(start, start + BLOCK)
        yield np.column_stack([weight[part] * p.logged[part] for p in policies])


def sum_of_products(blocks: Iterable[Floats]) -> Floats:
    """(K, K) the Gram matrix of all blocks."""
    total: Floats = sum(block.T @ block for block in blocks)  # type: ignore[assignment]
    return total
