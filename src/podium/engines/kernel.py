"""The kernel: batches of rows become sums, and all that a large log is asked follows from them.

With c rows in state s, the leave-one-out residual of a row is c/(c-1) x_n - sum_s x/(c-1), and N/(N-1) x_n where the
row is alone in its state: x_n is the reward, centred and scaled (see `podium.engines.sums`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from podium.columns import Codes, Floats
from podium.engines.batches import Batch, join, slices, state_slices, whole_states
from podium.engines.sums import ELSEWHERE, Gaps, Question, Sums, group_by, row_sums, sum_columns
from podium.estimators import weight_gap
from podium.moments import GroupSums, Moments

ROUNDING = 16 * float(np.finfo(np.float64).eps)
AGREE = 1e-6


def answer(batches: Iterable[Batch], question: Question) -> Sums:
    """The sums of all batches, added up in their order."""
    total = Sums()
    if not question.states:
        for batch in batches:
            for part in slices(batch, question.columns):
                total = total + row_sums(part, question, Gaps.of(part, question))
        return total
    pieces, before, first = Sums(), None, 0.0
    for batch in whole_states(batches):
        if before is None and batch.whole:
            for part in state_slices(batch, question.columns):
                total = total + of_states(part, question)
            if question.gates and not question.hidden:
                question = replace(question, hidden=all_hidden(total, question))
            continue
        for part in slices(batch, question.columns):
            if before is None:
                first = float(part.reward[0] - question.centre) / question.size
            pieces = pieces + piece_of_state(part, question, first, before)
            before = part
        if batch.whole:
            total = total + finish_state(pieces, question)
            pieces, before = Sums(), None
    return total


# --- sums over states ------------------------------------------------------------------------------------------------


def of_states(batch: Batch, question: Question) -> Sums:
    """The sums of rows and of states, each of which is whole."""
    assert batch.state is not None
    assert batch.latest is not None
    data = Gaps.of(batch, question)
    n = len(batch)
    fresh = np.empty(n, dtype=bool)
    fresh[0] = True
    np.not_equal(batch.state[1:], batch.state[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    counts = np.diff(starts, append=n)
    of_state = StateSums(starts, n)
    x, tiny = data.x, ROUNDING * question.largest / question.size
    kept = batch.latest.astype(float)
    alone = counts == 1
    others = np.maximum(counts - 1, 1).astype(float)
    shifted = x - np.repeat(np.where(alone, 0.0, x[starts]), counts)
    shifted[np.abs(shifted) <= tiny] = 0.0
    a = np.where(alone, question.rows / max(question.rows - 1, 1), counts / others)
    b = np.where(alone, 0.0, of_state(shifted, np.ones(n)) / others)
    residual = np.repeat(a, counts) * shifted - np.repeat(b, counts)

    sums = row_sums(batch, question, data)
    add, moments = sums.add, sums.moments
    state_facts(question, counts, of_state(kept, np.ones(n)), add)
    if question.gates:
        told = residual if question.alone else np.where(np.repeat(alone, counts), 0.0, residual)
        told = told * kept
        gate_rows(batch, question, data, residual, told, add)
        paths = {"LDE": told}
        if data.inverse is not None:
            paths["DRE"] = residual * data.inverse
        rows_first = np.ascontiguousarray(data.gaps)
        for name, weight in paths.items():
            add |= power_sums(name, of_state(weight, rows_first), question.policies)
            add[f"{name} level"] = np.array(float(weight @ data.first))
            if batch.unit is not None:
                moments[f"{name} units"] = group_by(batch.unit, weight[:, None] * data.gaps, question.units)
            if question.own:
                rows = batch.latest if name == "LDE" else np.ones(n, dtype=bool)
                terms = weight[:, None] * data.policy + (x - residual)[:, None]
                spread_out(
                    f"{name} own", terms[rows], None if batch.unit is None else batch.unit[rows], question, moments
                )
    if question.gates or question.coverage:
        add |= masses(of_state(kept, data.policy), counts.astype(float), question.coverage)
        rows_kept = np.repeat(counts, counts) * kept
        if question.gates and not question.full:
            add["seen"], add["seen near"] = gram(np.sqrt(rows_kept)[:, None] * data.gaps, question.policies)
        if (
            question.gates
            and data.inverse is not None
            and not (question.hidden or (question.full and question.behavior))
        ):
            root = np.sqrt(rows_kept * data.inverse)
            add["seen/p"], add["seen/p near"] = gram(root[:, None] * data.gaps, question.policies)
    add["conflicts"] = conflicts(batch.policy, np.flatnonzero(~batch.latest))
    return sums


def spread_out(
    name: str, terms: Floats, unit: Codes | None, question: Question, moments: dict[str, Moments | GroupSums]
) -> None:
    """Moments of rows, or sums of units, of which there may be none."""
    if len(terms):
        moments[name] = Moments.of(terms) if unit is None else group_by(unit, terms, question.units)


class StateSums:
    """Sums over the rows of each state, with a weight for every row."""

    def __init__(self, starts: Codes, rows: int) -> None:
        from scipy.sparse import csr_array

        ends = np.append(starts, rows).astype(np.int32)
        self.matrix = csr_array((np.ones(rows), np.arange(rows, dtype=np.int32), ends), shape=(len(starts), rows))

    def __call__(self, weight: Floats, values: Floats) -> Floats:
        self.matrix.data = weight
        return np.asarray(self.matrix @ values)


def all_hidden(sums: Sums, question: Question) -> bool:
    """Whether of every pair a policy plays actions never logged in the same state; more rows cannot undo it."""
    lack = np.sqrt(sums.add["unseen"] / question.rows)
    return bool(np.count_nonzero(lack <= ELSEWHERE) < 2)


def state_facts(question: Question, counts: Codes, distinct: Floats, add: dict[str, Floats]) -> None:
    """How many states there are, and how many rows and distinct actions they have."""
    actions = question.actions
    sizes = np.bincount(counts)
    expected = np.power(1.0 - 1.0 / actions, np.arange(len(sizes)))
    add["states"] = np.array(float(len(counts)))
    add["single"] = np.array(float(sizes[1]))
    add["distinct"] = np.bincount(distinct.astype(np.int64), minlength=actions + 1).astype(float)
    add["expected"] = np.array([sizes @ expected, sizes @ (expected * (1 - expected))])


def gate_rows(
    batch: Batch, question: Question, data: Gaps, residual: Floats, told: Floats, add: dict[str, Floats]
) -> None:
    """Row sums behind the gates: T_p, z_b, and the spread of the residuals that LDE keeps (`told`, 0 elsewhere)."""
    add["kept residual"] = np.array([told.sum(), told @ told])
    logs = log_p(batch, question)
    add["T_p"] = np.array([logs.sum(), logs @ logs, residual.sum(), residual @ residual, logs @ residual])
    disagreement(batch, question, data, add)


def log_p(batch: Batch, question: Question) -> Floats:
    """(n,) centred log p_n, or the logarithm of how often the action was logged."""
    if batch.propensity is not None:
        return np.log(batch.propensity) - question.log_p
    assert question.action_logs is not None
    logs: Floats = question.action_logs[batch.action] - question.log_p
    return logs


def disagreement(batch: Batch, question: Question, data: Gaps, add: dict[str, Floats]) -> None:
    """Sums and products behind z_b."""
    if data.inverse is None:
        return
    factor = weight_gap(question.actions, data.inverse)
    weight = data.x * factor
    terms = weight[:, None] * data.gaps
    add["z_b"] = weight @ data.gaps
    add["z_b2"], add["z_b2 near"] = gram(terms, question.policies)
    if question.full and question.behavior:
        add["factor2"], add["factor2 near"] = gram(factor[:, None] * data.gaps, question.policies)


def gram(columns: Floats, policies: int) -> tuple[Floats, Floats]:
    """(K, K) products of the policies' columns, and (E,) squares of those of near pairs."""
    main, rest = columns[:, :policies], columns[:, policies:]
    return main.T @ main, squares(rest)


def squares(columns: Floats) -> Floats:
    """(E,) sums of squares of columns, of which there are mostly none."""
    found: Floats = np.einsum("nk,nk->k", columns, columns) if columns.shape[1] else np.zeros(0)
    return found


def power_sums(name: str, clusters: Floats, policies: int) -> dict[str, Floats]:
    """Sums, products and products of powers of cluster sums (J, K + E): second and fourth powers of every pair."""
    main, rest = clusters[:, :policies], clusters[:, policies:]
    square = main * main
    found = {
        f"{name} 1": np.ones(len(clusters)) @ clusters,
        f"{name} 11": main.T @ main,
        f"{name} 22": square.T @ square,
        f"{name} near 2": squares(rest),
        f"{name} near 4": squares(rest * rest),
    }
    found[f"{name} 13"] = main.T @ np.multiply(square, main, out=square)
    return found


def masses(mass: Floats, counts: Floats, every: bool) -> dict[str, Floats]:
    """Row sums of the probability of actions logged in the same state: what 1 lacks, as it is, and at most 1."""
    found = {"mass": counts @ mass, "mass at most 1": counts @ np.minimum(mass, 1.0)} if every else {}
    lack = np.maximum(np.subtract(1.0, mass, out=mass), 0.0, out=mass)
    found["unseen"] = counts @ np.multiply(lack, lack, out=lack)
    return found


def conflicts(policy: Floats, same: Codes) -> Floats:
    """(K,) rows that give the next row another probability, of those whose next row has their state and action."""
    if not same.size:
        return np.zeros(policy.shape[1])
    differ: Floats = np.count_nonzero(np.abs(policy[same + 1] - policy[same]) > AGREE, axis=0).astype(float)
    return differ


# --- a state with too many rows to hold ------------------------------------------------------------------------------


def piece_of_state(batch: Batch, question: Question, first: float, before: Batch | None) -> Sums:
    """Part of a state: sums of x times anything (U) and of anything (W), from which its residuals' sums follow.

    `first` is the reward x of the state's first row, from which x is counted; `before` the row ahead of these.
    """
    assert batch.latest is not None
    assert batch.state is not None
    data = Gaps.of(batch, question)
    shifted = data.x - first
    shifted[np.abs(shifted) <= ROUNDING * question.largest / question.size] = 0.0
    sums = row_sums(batch, question, data)
    add, moments = sums.add, sums.moments
    kept = batch.latest.astype(float)
    add["~x"] = np.array([len(batch), shifted.sum(), shifted @ shifted])
    add["~kept"] = np.array([kept.sum(), kept @ shifted, kept @ shifted**2])
    ahead = batch if before is None else join([before.take(slice(-1, None)), batch])
    add["conflicts"] = conflicts(ahead.policy, np.flatnonzero(ahead.action[1:] == ahead.action[:-1]))
    add["~mass"] = kept @ data.policy
    if not question.gates:
        return sums
    logs = log_p(batch, question)
    add["~log"] = np.array([logs.sum(), logs @ logs, logs @ shifted])
    disagreement(batch, question, data, add)
    if not question.full:
        add["~seen"], add["~seen near"] = gram(kept[:, None] * data.gaps, question.policies)
    if data.inverse is not None and not (question.hidden or (question.full and question.behavior)):
        root = np.sqrt(kept * data.inverse)
        add["~seen/p"], add["~seen/p near"] = gram(root[:, None] * data.gaps, question.policies)
    for name, weight in {"LDE": kept, **({"DRE": data.inverse} if data.inverse is not None else {})}.items():
        for letter, column in (("U", weight * shifted), ("W", weight)):
            (add[f"~{name} {letter}"],) = sum_columns([column], data)
            if batch.unit is not None:
                moments[f"~{name} {letter}"] = group_by(batch.unit, column[:, None] * data.gaps, question.units)
        if question.own:
            rows = batch.latest if name == "LDE" else np.ones(len(batch), dtype=bool)
            own = weight[rows][:, None] * data.policy[rows]
            parts = np.hstack([shifted[rows][:, None] * own, own, data.x[rows][:, None], shifted[rows][:, None]])
            spread_out(f"~{name} own", parts, None if batch.unit is None else batch.unit[rows], question, moments)
    return sums


def finish_state(pieces: Sums, question: Question) -> Sums:
    """The sums of a state that came in pieces, as `of_states` would give them."""
    add = {name: value for name, value in pieces.add.items() if not name.startswith("~")}
    moments = {name: value for name, value in pieces.moments.items() if not name.startswith("~")}
    parts, groups = pieces.add, pieces.moments
    count, x, xx = parts["~x"]
    kept, kept_x, kept_xx = parts["~kept"]
    a, b = count / (count - 1), x / (count - 1)
    expected = (1.0 - 1.0 / question.actions) ** count
    add |= {"states": np.array(1.0), "single": np.array(0.0)}
    add["distinct"] = np.bincount([round(kept)], minlength=question.actions + 1).astype(float)
    add["expected"] = np.array([expected, expected * (1 - expected)])
    if question.gates or question.coverage:
        add |= masses(parts["~mass"][None].copy(), np.array([count]), question.coverage)
    if not question.gates:
        return Sums(add, pieces.top, moments)
    log, log2, log_x = parts["~log"]
    spread = a * a * xx - 2 * a * b * x + b * b * count
    add["T_p"] = np.array([log, log2, a * x - b * count, spread, a * log_x - b * log])
    add["kept residual"] = np.array([a * kept_x - b * kept, a * a * kept_xx - 2 * a * b * kept_x + b * b * kept])
    for name in ("seen", "seen near", "seen/p", "seen/p near"):
        if f"~{name}" in parts:
            add[name] = count * parts[f"~{name}"]
    for name in ("LDE", "DRE"):
        if f"~{name} U" in parts:
            cluster = a * parts[f"~{name} U"] - b * parts[f"~{name} W"]
            add |= power_sums(name, cluster[None, 1:], question.policies)
            add[f"{name} level"] = np.asarray(cluster[0])
        if f"~{name} U" in groups:
            u, w = groups[f"~{name} U"], groups[f"~{name} W"]
            assert isinstance(u, GroupSums)
            assert isinstance(w, GroupSums)
            moments[f"{name} units"] = GroupSums(u.sizes, a * u.sums - b * w.sums)
        if f"~{name} own" in groups:
            moments[f"{name} own"] = finish_own(groups[f"~{name} own"], question.policies, float(a), float(b))
    return Sums(add, pieces.top, moments)


def finish_own(found: Moments | GroupSums, policies: int, a: float, b: float) -> Moments | GroupSums:
    """(a y - b) w + x - (a y - b) of every policy, from columns y w, w, x and y: y is x less the state's first."""
    one = np.eye(policies)
    mix = np.vstack([a * one, -b * one, np.ones((1, policies)), np.full((1, policies), -a)])
    if isinstance(found, GroupSums):
        return GroupSums(found.sizes, found.sums @ mix + b * found.sizes[:, None])
    return Moments(found.count, found.mean @ mix + b, mix.T @ found.scatter @ mix)
