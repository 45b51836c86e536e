"""Example 1's test as one compiled pass: draw three policies and a log, and tally all four methods, state by state.

Nothing of size (S, A) is stored. A policy is its unnormalised softmax weights exp(z) in one state at a time; the four
estimates are linear in it, so a few sums per state suffice, and all reward functions share the draws.

All compiled code is in this one file, because the compiler's cache looks at the file of the entry point alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]

f32, i32, u64 = np.float32, np.int32, np.uint64

LDE, DRE, IPS, DIM = 0, 1, 2, 3  # columns of every array over methods
FEW, GUIDE = 48, 256  # draws from which the search is guided, and the size of the guide
# Columns of a state's tally: what the reward functions share, then eight per reward function.
SEEN, M1, M2, W1, W2, SHARED = 0, 1, 2, 3, 4, 5
MR, V1, V2, D1, D2, I1, I2, BEST_M, BEST_W, WORST_M, WORST_W, OWN = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11


def compiled(function: F) -> F:
    """Compiled at its first call and kept on disk; sums may be reordered, nan and inf do not occur."""
    relaxed = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=relaxed)(function))


# --- random numbers: xoshiro256++ in many lanes, Box-Muller and exp as polynomials that vectorise ----------------


@compiled
def fill_seeds(key: int, test: int, lanes: Array) -> None:
    """Seed every lane (4, n) of one test by splitmix64; the key of a cell and the number of the test decide all."""
    x = u64(key) ^ (u64(test + 1) * u64(0xD1342543DE82EF95))
    x = (x ^ (x >> u64(32))) * u64(0xDABA0B6EB09322E3)
    x = x ^ (x >> u64(32))
    for i in range(lanes.shape[0]):
        for j in range(lanes.shape[1]):
            x += u64(0x9E3779B97F4A7C15)
            z = x
            z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
            lanes[i, j] = z ^ (z >> u64(31))


@compiled
def fill_bits(lanes: Array, high: Array, low: Array) -> None:
    """One step of xoshiro256++ in each lane: two independent 31-bit integers."""
    s0, s1, s2, s3 = lanes[0], lanes[1], lanes[2], lanes[3]
    for j in range(high.shape[0]):
        a, b, c, d = s0[j], s1[j], s2[j], s3[j]
        x = a + d
        x = ((x << u64(23)) | (x >> u64(41))) + a
        high[j], low[j] = i32(x >> u64(33)), i32(x & u64(0x7FFFFFFF))
        t = b << u64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        s0[j], s1[j], s2[j], s3[j] = a, b, c, (d << u64(45)) | (d >> u64(19))


@compiled
def fill_lognormals(lanes: Array, high: Array, low: Array, w: Array) -> None:
    """w (2n,) = exp(z) with z standard normal, in single precision: n lanes give n pairs by Box and Muller."""
    fill_bits(lanes, high, low)
    n = high.shape[0]
    one, other = w[:n], w[n:]  # as slices: the compiler then sees that they do not overlap
    for j in range(n):
        u = f32(high[j]) * f32(2.0**-31) + f32(2.0**-32)  # reaches 6.6 standard deviations
        i = i32(np.float32(u).view(np.int32) - i32(0x3F3504F3))
        exponent = f32(i32(i >> i32(23)))
        x = np.int32(i32((i & i32(0x007FFFFF)) + i32(0x3F3504F3))).view(np.float32) - f32(1)
        p = f32(7.0376836292e-2)
        p = p * x - f32(1.1514610310e-1)
        p = p * x + f32(1.1676998740e-1)
        p = p * x - f32(1.2420140846e-1)
        p = p * x + f32(1.4249322787e-1)
        p = p * x - f32(1.6668057665e-1)
        p = p * x + f32(2.0000714765e-1)
        p = p * x - f32(2.4999993993e-1)
        p = p * x + f32(3.3333331174e-1)
        log_u = x + (p * x - f32(0.5)) * x * x + exponent * f32(0.6931471805599453)
        radius = np.sqrt(f32(-2) * log_u)
        bits = low[j]
        t = (f32(i32(bits >> i32(7))) + f32(0.5)) * f32(np.pi * 2.0**-25) - f32(np.pi / 4)
        q = t * t
        sine = t + t * q * (f32(-1.6666654611e-1) + q * (f32(8.3321608736e-3) - q * f32(1.9515295891e-4)))
        cosine = q * (f32(4.166664568298827e-2) + q * (f32(-1.388731625493765e-3) + q * f32(2.443315711809948e-5)))
        cosine = f32(1) + q * (cosine - f32(0.5))
        # The angle covers a quarter; two spare bits turn it to one of the four.
        turn = (bits & i32(1)) != 0
        radius = radius if (bits & i32(2)) != 0 else -radius
        one[j] = radius * (sine if turn else cosine)
        other[j] = radius * (cosine if turn else -sine)
    for j in range(2 * n):
        z = w[j]
        k = np.floor(z * f32(1.4426950408889634) + f32(0.5))
        x = z - k * f32(0.693359375) + k * f32(2.12194440e-4)
        p = f32(1.9875691500e-4)
        p = p * x + f32(1.3981999507e-3)
        p = p * x + f32(8.3334519073e-3)
        p = p * x + f32(4.1665795894e-2)
        p = p * x + f32(1.6666665459e-1)
        p = p * x + f32(5.0000001201e-1)
        p = p * x * x + x + f32(1)
        w[j] = p * np.int32(i32((i32(k) + i32(127)) << i32(23))).view(np.float32)


@compiled
def fill_uniforms(state: Array, u: Array) -> None:
    """u (m,) uniform in (0, 1), 32 bits each, from one generator xoshiro256++."""
    a, b, c, d = state[0, 0], state[1, 0], state[2, 0], state[3, 0]
    for j in range(0, u.shape[0], 2):
        x = a + d
        x = ((x << u64(23)) | (x >> u64(41))) + a
        u[j] = (np.float64(np.int64(x >> u64(32))) + 0.5) * 2.0**-32
        if j + 1 < u.shape[0]:
            u[j + 1] = (np.float64(np.int64(x & u64(0xFFFFFFFF))) + 0.5) * 2.0**-32
        t = b << u64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = (d << u64(45)) | (d >> u64(19))
    state[0, 0], state[1, 0], state[2, 0], state[3, 0] = a, b, c, d


# --- one state ---------------------------------------------------------------------------------------------------


@compiled
def fill_cdf(w: Array, cdf: Array) -> None:
    """Running sums of the weights; four stretches at a time, since one addition waits for the one before."""
    n = w.shape[0]
    step = n // 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(step):
        a += w[i]
        b += w[step + i]
        c += w[2 * step + i]
        d += w[3 * step + i]
        cdf[i], cdf[step + i], cdf[2 * step + i], cdf[3 * step + i] = a, b, c, d
    c += a + b
    b += a
    for i in range(step):
        cdf[step + i] += a
        cdf[2 * step + i] += b
        cdf[3 * step + i] += c
    d += c
    for i in range(4 * step, n):
        d += w[i]
        cdf[i] = d


@compiled
def count_draws(cdf: Array, u: Array, guide: Array, counts: Array, seen: Array) -> int:
    """Turn uniforms into actions: `counts` (A,) and the distinct actions in `seen`; returns how many these are.

    An action is the number of running sums that do not exceed u. A few draws count them all, without a branch to
    mispredict; many draws start from a table over equal parts of the unit interval.
    """
    n, parts, found = cdf.shape[0], guide.shape[0] - 2, 0
    total = cdf[n - 1]
    for a in range(n):
        counts[a] = 0
    if u.shape[0] < FEW:
        for j in range(u.shape[0]):
            target, at = u[j] * total, 0
            for i in range(n - 1):
                at += cdf[i] <= target
            seen[found] = at
            found += counts[at] == 0
            counts[at] += 1
    else:
        for g in range(parts + 2):
            guide[g] = u64(0)
        last = u64(n - 1)
        for i in range(n):
            guide[int(cdf[i] / total * parts) + 1] += u64(1)
        below = u64(0)
        for g in range(parts):
            below += guide[g]
            guide[g] = below  # as unsigned numbers: they are never taken for places counted from the end
        for j in range(u.shape[0]):
            target = u[j] * total
            place = guide[u64(int(u[j] * parts))]
            place = min(place + u64(cdf[place] <= target), last)  # one step, without a branch, is nearly always enough
            while place < last and cdf[place] <= target:
                place += u64(1)
            counts[place] += 1
        for a in range(n):
            seen[found] = a
            found += counts[a] > 0
    return found


@compiled
def tally_state(
    s: int, m: int, found: int, rewards: Array, best: Array, worst: Array,
    logged: Array, first: Array, second: Array, counts: Array, seen: Array, total: float, terms: Array, row: Array,
) -> None:  # fmt: skip
    """All that the four methods need of one state, into `row`.

    logged, first, second : (A,) weights of the behaviour policy and of the two raw target policies
    total : sum of `logged`
    terms : (3, A) room for pi, mu and (D / m) / nu at the distinct actions
    """
    examples, n = rewards.shape[0], first.shape[0]
    sum1, sum2 = 0.0, 0.0
    for a in range(n):
        sum1 += first[a]
        sum2 += second[a]
    scale = total / m
    p1, p2, weight = terms[0], terms[1], terms[2]
    m1, m2, w1, w2 = 0.0, 0.0, 0.0, 0.0
    for k in range(found):
        a = seen[k]
        x, y, z = first[a] / sum1, second[a] / sum2, scale * counts[a] / logged[a]
        p1[k], p2[k], weight[k] = x, y, z
        m1 += x
        m2 += y
        w1 += z * x
        w2 += z * y
    row[SEEN], row[M1], row[M2], row[W1], row[W2] = found, m1, m2, w1, w2
    for e in range(examples):
        reward = rewards[e, s]
        v1, v2 = 0.0, 0.0
        for a in range(n):
            v1 += first[a] * reward[a]
            v2 += second[a] * reward[a]
        mr, d1, d2, i1, i2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(found):
            r = reward[seen[k]]
            x, y = r * p1[k], r * p2[k]
            mr += r
            d1 += x
            d2 += y
            i1 += weight[k] * x
            i2 += weight[k] * y
        at, top, low = SHARED + e * OWN, best[e, s], worst[e, s]
        row[at + V1], row[at + V2], row[at + MR] = v1 / sum1, v2 / sum2, mr
        row[at + D1], row[at + D2], row[at + I1], row[at + I2] = d1, d2, i1, i2
        row[at + BEST_M], row[at + BEST_W] = counts[top] > 0, scale * counts[top] / logged[top]
        row[at + WORST_M], row[at + WORST_W] = counts[low] > 0, scale * counts[low] / logged[low]


# --- one test ----------------------------------------------------------------------------------------------------


@compiled
def conclude(
    e: int, alpha: float, rewards: Array, best: Array, worst: Array, tally: Array,
    values: Array, right: Array, detail: Array,
) -> None:  # fmt: skip
    """Mix the raw policies to the prescribed difference and read every result off the tallies (S, columns).

    values : (10,) V(pi), V(mu), then the estimates of pi and mu by each method
    right : (4,) states in which each method compares correctly
    detail : (S, 6) per state the estimated differences of the four methods, the true one, and the distinct
        actions; or (0, 6)
    """
    states, at = tally.shape[0], SHARED + e * OWN
    v1, v2, v_max, v_min, seen, reward_sum = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(states):
        v1 += tally[s, at + V1]
        v2 += tally[s, at + V2]
        v_max += rewards[e, s, best[e, s]]
        v_min += rewards[e, s, worst[e, s]]
        seen += tally[s, SEEN]
        reward_sum += tally[s, at + MR]
    delta = (v1 - v2) / (v_max - v_min)
    beta = (alpha - delta) / (1.0 - delta)
    rho, keep = reward_sum / seen, 1.0 - beta
    values[:] = 0.0
    right[:] = 0
    for s in range(states):
        row = tally[s]
        top, low = rewards[e, s, best[e, s]], rewards[e, s, worst[e, s]]
        pi, mu = keep * row[at + V1] + beta * top, keep * row[at + V2] + beta * low
        dim1 = keep * row[at + D1] + beta * row[at + BEST_M] * top
        dim2 = keep * row[at + D2] + beta * row[at + WORST_M] * low
        ips1 = keep * row[at + I1] + beta * row[at + BEST_W] * top
        ips2 = keep * row[at + I2] + beta * row[at + WORST_W] * low
        # LDE and DRE subtract the baseline from every reward they sum; what they add back is the same for all.
        lde1 = dim1 - rho * (keep * row[M1] + beta * row[at + BEST_M])
        lde2 = dim2 - rho * (keep * row[M2] + beta * row[at + WORST_M])
        dre1 = ips1 - rho * (keep * row[W1] + beta * row[at + BEST_W])
        dre2 = ips2 - rho * (keep * row[W2] + beta * row[at + WORST_W])
        values[0] += pi
        values[1] += mu
        values[2] += lde1
        values[3] += lde2
        values[4] += dre1
        values[5] += dre2
        values[6] += ips1
        values[7] += ips2
        values[8] += dim1
        values[9] += dim2
        gap = pi - mu
        right[LDE] += (lde1 - lde2) * gap >= 0
        right[DRE] += (dre1 - dre2) * gap >= 0
        right[IPS] += (ips1 - ips2) * gap >= 0
        right[DIM] += (dim1 - dim2) * gap >= 0
        if detail.shape[0]:
            detail[s, LDE], detail[s, DRE] = lde1 - lde2, dre1 - dre2
            detail[s, IPS], detail[s, DIM] = ips1 - ips2, dim1 - dim2
            detail[s, 4], detail[s, 5] = gap, row[SEEN]
    for k in range(10):
        values[k] /= states
    for k in range(2, 6):
        values[k] += rho


# --- entry points ------------------------------------------------------------------------------------------------


@compiled
def run_tests(
    key: int, alpha: float, m: int, rewards: Array, best: Array, worst: Array,
    values: Array, right: Array, detail: Array,
) -> None:  # fmt: skip
    """Run the tests 0..T-1 of a cell on all reward functions.

    rewards (E, S, A); best, worst (E, S); values (T, E, 10), right (T, E, 4), detail (T, E, S or 0, 6).
    """
    examples, states, n = rewards.shape
    lanes = np.empty((4, (3 * n + 1) // 2), np.uint64)
    high, low = np.empty(lanes.shape[1], np.int32), np.empty(lanes.shape[1], np.int32)
    dice = np.empty((4, 1), np.uint64)
    w = np.empty(2 * lanes.shape[1], np.float32)
    u, cdf, guide, terms = np.empty(m), np.empty(n), np.empty(GUIDE + 2, np.uint64), np.empty((3, n))
    counts, seen = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    tally = np.empty((states, SHARED + examples * OWN))
    for t in range(values.shape[0]):
        fill_seeds(key, 2 * t, lanes)
        fill_seeds(key, 2 * t + 1, dice)
        for s in range(states):
            fill_lognormals(lanes, high, low, w)
            fill_uniforms(dice, u)
            fill_cdf(w[:n], cdf)
            found = count_draws(cdf, u, guide, counts, seen)
            tally_state(
                s, m, found, rewards, best, worst, w[:n], w[n : 2 * n], w[2 * n : 3 * n],
                counts, seen, cdf[n - 1], terms, tally[s],
            )  # fmt: skip
        for e in range(examples):
            conclude(e, alpha, rewards, best, worst, tally, values[t, e], right[t, e], detail[t, e])


@compiled
def run_given(
    alpha: float, logged: Array, u: Array, first: Array, second: Array, rewards: Array, best: Array, worst: Array,
    values: Array, right: Array, detail: Array,
) -> None:  # fmt: skip
    """Run one test on given numbers: normals (S, A) of three policies and uniforms (S, m).

    values (E, 10), right (E, 4), detail (E, S or 0, 6).
    """
    examples, states, n = rewards.shape
    cdf, guide, terms = np.empty(n), np.empty(GUIDE + 2, np.uint64), np.empty((3, n))
    counts, seen = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    tally = np.empty((states, SHARED + examples * OWN))
    w0, w1, w2 = np.empty(n), np.empty(n), np.empty(n)
    for s in range(states):
        for a in range(n):
            w0[a], w1[a], w2[a] = np.exp(logged[s, a]), np.exp(first[s, a]), np.exp(second[s, a])
        fill_cdf(w0, cdf)
        found = count_draws(cdf, u[s], guide, counts, seen)
        tally_state(
            s, u.shape[1], found, rewards, best, worst, w0, w1, w2, counts, seen, cdf[n - 1], terms, tally[s]
        )  # fmt: skip
    for e in range(examples):
        conclude(e, alpha, rewards, best, worst, tally, values[e], right[e], detail[e])


@compiled
def draw_test(key: int, test: int, weights: Array, u: Array) -> None:
    """The draws of one test of `run_tests`: weights (3, S, A) of the policies, uniforms (S, m) of the log."""
    states, n = weights.shape[1], weights.shape[2]
    lanes = np.empty((4, (3 * n + 1) // 2), np.uint64)
    high, low = np.empty(lanes.shape[1], np.int32), np.empty(lanes.shape[1], np.int32)
    dice = np.empty((4, 1), np.uint64)
    w = np.empty(2 * lanes.shape[1], np.float32)
    fill_seeds(key, 2 * test, lanes)
    fill_seeds(key, 2 * test + 1, dice)
    for s in range(states):
        fill_lognormals(lanes, high, low, w)
        fill_uniforms(dice, u[s])
        for k in range(3):
            for a in range(n):
                weights[k, s, a] = w[k * n + a]
