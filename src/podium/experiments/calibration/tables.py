"""What the bench prints: shares decided and wrong, reliability of P(better), ranking accuracy, peers, alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.peers import PEERS
from podium.experiments.calibration.trials import POLICIES, PROCEDURES, RANKERS, Trial

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 1.0)
GRID_ROWS = 50  # the fixed grid starts here


@dataclass(frozen=True)
class Cell:
    """Counts of one procedure in one (family, N)."""

    family: str
    rows: int
    pairs: int
    claims: int
    wrong_better: int
    wrong_worse: int

    @property
    def wrong(self) -> int:
        return self.wrong_better + self.wrong_worse

    @property
    def decided(self) -> float:
        return self.claims / self.pairs

    @property
    def wrong_share(self) -> float:
        return self.wrong / self.claims if self.claims else 0.0


def cells(trials: Sequence[Trial], procedure: str) -> dict[tuple[str, int], Cell]:
    grouped: dict[tuple[str, int], list[Trial]] = {}
    for t in trials:
        if procedure in t.claims:
            grouped.setdefault((t.family, t.rows), []).append(t)
    answer = {}
    for key, group in grouped.items():
        made = np.concatenate([t.claims[procedure] for t in group])
        truth = np.sign(np.concatenate([t.truth for t in group]))
        wrong = (made != 0) & (made != truth)
        answer[key] = Cell(
            *key, len(made), int((made != 0).sum()), int((wrong & (made > 0)).sum()), int((wrong & (made < 0)).sum())
        )
    return answer


def reliability(trials: Sequence[Trial], procedure: str) -> list[tuple[float, float, int, float, float]]:
    """Per bin of stated probability: edges, pairs, share right, its standard error clustered by log.

    Pairs with P = 1/2 exactly say nothing; a tie counts as half right.
    """
    table = []
    for low, high in pairwise(BINS):
        right, count = [], []
        for t in trials:
            p = t.p_better[procedure]
            stated = np.maximum(p, 1 - p)
            inside = (stated >= low) & ((stated < high) | (high == 1.0)) & (p != 0.5)
            correct = np.where(t.truth == 0, 0.5, np.sign(p - 0.5) == np.sign(t.truth))
            right.append(correct[inside].sum())
            count.append(inside.sum())
        r, c = np.array(right, dtype=float), np.array(count, dtype=float)
        if c.sum() == 0:
            table.append((low, high, 0, float("nan"), float("nan")))
            continue
        share = r.sum() / c.sum()
        error = np.sqrt(((r - share * c) ** 2).sum()) / c.sum()
        table.append((low, high, int(c.sum()), float(share), float(error)))
    return table


def accuracy(trials: Sequence[Trial], method: str) -> float:
    """Share of pairs (ties apart) that a method orders right."""
    right = total = 0.0
    for t in trials:
        if method in t.order:
            real = t.truth != 0
            d = t.order[method][real]
            right += float((np.sign(d) == np.sign(t.truth[real])).sum() + 0.5 * (d == 0).sum())
            total += real.sum()
    return right / total if total else float("nan")


@dataclass(frozen=True, eq=False)
class Results:
    """All trials, with the counts that several tables share."""

    trials: Sequence[Trial]

    @cached_property
    def families(self) -> list[str]:
        return list(dict.fromkeys(t.family for t in self.trials))

    @cached_property
    def fixed(self) -> list[str]:
        """The families of the fixed grid."""
        return [name for name in self.families if not FAMILIES[name].variant]

    @cached_property
    def rows(self) -> list[int]:
        return sorted({t.rows for t in self.trials})

    @cached_property
    def cells(self) -> dict[str, dict[tuple[str, int], Cell]]:
        return {p: cells(self.trials, p) for p in PROCEDURES}

    def grid(self, procedure: str) -> list[Cell]:
        """The cells of the fixed grid: N >= 50, no variants."""
        return [c for c in self.cells[procedure].values() if c.family in self.fixed and c.rows >= GRID_ROWS]

    def some(self, family: str | None = None, rows: Sequence[int] | None = None) -> list[Trial]:
        """Trials of one family (or of the fixed grid) at some N."""
        names = self.fixed if family is None else [family]
        return [t for t in self.trials if t.family in names and (rows is None or t.rows in rows)]


def decided_table(r: Results, procedure: str) -> list[str]:
    out = [f"{procedure}: decided % (wrong among claims %; claims) at N = {r.rows}"]
    for name in r.families:
        found = [r.cells[procedure].get((name, n)) for n in r.rows]
        parts = [
            "" if c is None else f"{100 * c.decided:5.1f} ({100 * c.wrong_share:4.1f};{c.claims:4d})" for c in found
        ]
        kind = FAMILIES[name].kind + ("*" if FAMILIES[name].variant else "")
        out.append(f"  {name:48s}{kind:9s}" + "  ".join(f"{x:>18s}" for x in parts))
    return [*out, "  (* not part of the fixed grid)"]


def grid_table(r: Results) -> list[str]:
    out = ["Fixed grid, N >= 50, equal weight per cell"]
    for p in PROCEDURES:
        found = r.grid(p)
        if found:
            decided = float(np.mean([c.decided for c in found]))
            wrong = float(np.mean([c.wrong / c.pairs for c in found])) / max(decided, 1e-12)
            over = [c for c in found if c.claims >= 30 and c.wrong_share > 0.05]
            names = "; ".join(f"{c.family} N={c.rows} {c.wrong}/{c.claims}" for c in over)
            out.append(
                f"  {p:14s} {len(found)} cells  decided {100 * decided:5.1f}%  wrong among claims {100 * wrong:5.2f}%  "
                f"cells with >= 30 claims and > 5% wrong: {len(over)}  {names}"
            )
    return out


def direction_table(r: Results) -> list[str]:
    out = ["Wrong claims as a share of all compared pairs (N >= 50): better, worse, [worst single N]; the largest"]
    lines = []
    for name in r.families:
        found = [c for c in r.cells["posterior"].values() if c.family == name and c.rows >= GRID_ROWS]
        if found:
            pairs = sum(c.pairs for c in found)
            better, worse = sum(c.wrong_better for c in found) / pairs, sum(c.wrong_worse for c in found) / pairs
            worst = max(max(c.wrong_better, c.wrong_worse) / c.pairs for c in found)
            lines.append((max(better, worse), f"  {name:48s} {better:7.2%} {worse:7.2%}  [{worst:.2%}]"))
    return out + [line for _, line in sorted(lines, reverse=True)[:8]]


def reliability_table(r: Results) -> list[str]:
    out = ["Reliability of P(better): share right (pairs, SE by log); ! = below the lower edge - .02 - 2 SE"]
    for label, rows in {"20-50": [20, 50], "20": [20], "50": [50], ">= 100": [n for n in r.rows if n >= 100]}.items():
        part = r.some(rows=rows)
        out += [
            f"  N = {label:7s}{p:10s} " + "  ".join(show_bin(*x) for x in reliability(part, p))
            for p in ("posterior", "gated")
            if part
        ]
    out.append("  families (ties apart) with a bin from .8 below its edge, all N:")
    for name in r.families:
        found = [x for x in reliability(r.some(name), "posterior") if x[2] >= 20 and show_bin(*x).endswith("!")]
        if found and "ties" not in name:
            out.append(f"    {name:46s} " + "  ".join(show_bin(*x) for x in found))
    return out


def show_bin(low: float, _high: float, pairs: int, right: float, error: float) -> str:
    mark = "!" if low >= 0.8 and right < low - 0.02 - 2 * error else ""
    return f"{low:.3g}: {right:.3f} ({pairs}, {error:.3f}){mark}"


def coverage_table(r: Results) -> list[str]:
    out = [f"Coverage % of the 95% interval, where one is given, at N = {r.rows}"]
    for name in r.families:
        line = f"  {name:48s}"
        for n in r.rows:
            given = [t.covered[t.p_better["posterior"] != 0.5] for t in r.some(name, [n])]
            held = np.concatenate(given) if given else np.zeros(0)
            line += f"{100 * held.mean():7.1f}" if len(held) else "      -"
        out.append(line)
    return out


def ranking_table(r: Results) -> list[str]:
    out = ["Ranking accuracy % (pairs in the right order)" + " " * 5 + "".join(f"{m:>10s}" for m in RANKERS)]
    groups = {name: r.some(name) for name in r.families} | {"the fixed grid, all N": r.some()}
    groups |= {f"the fixed grid, N = {n}": r.some(rows=[n]) for n in r.rows}
    known = [t for t in r.some() if "DRE" in t.order]
    groups["the fixed grid, where p is logged"] = known
    return out + [f"  {k:48s}" + "".join(f"{100 * accuracy(v, m):10.1f}" for m in RANKERS) for k, v in groups.items()]


def peer_table(r: Results) -> list[str]:
    out = ["More decided than each peer, over the cells (fixed grid, N >= 50) where that peer is at most 5% wrong"]
    for p in PEERS:
        fair = [(r.cells["posterior"][c.family, c.rows], c) for c in r.grid(p) if c.wrong_share <= 0.05]
        more = sum(ours.claims > c.claims for ours, c in fair)
        neither = sum(ours.claims == c.claims == 0 for ours, c in fair)
        fewer = "; ".join(
            f"{c.family} N={c.rows} ({100 * ours.decided:.1f} against {100 * c.decided:.1f})"
            for ours, c in fair
            if ours.claims <= c.claims and c.claims
        )
        share = more / max(1, len(fair))
        out.append(f"  {p:14s} {more} of {len(fair)} ({share:.0%}); neither decides: {neither}; not more: {fewer}")
    return out


def alarm_table(r: Results) -> list[str]:
    out = [f"Alarm rate % (T_p) at N = {r.rows}"]
    for name in r.families:
        line = f"  {name:48s}"
        for n in r.rows:
            rung = [t.alarm for t in r.some(name, [n])]
            line += f"{100 * np.mean(rung):7.1f}" if rung else "      -"
        out.append(line + ("   seeks reward" if FAMILIES[name].seeks_reward else ""))
    return out


def report(trials: Sequence[Trial]) -> str:
    """All tables as text."""
    r = Results(trials)
    logs = {n: len(r.some(rows=[n])) / max(1, len(r.fixed)) for n in r.rows}
    head = [f"{len(trials)} logs, K = {POLICIES}; logs per cell of the fixed grid: {logs}"]
    seconds = [f"N={n}: {np.mean([t.seconds for t in trials if t.rows == n]):.2f}" for n in r.rows]
    sections = [
        head, decided_table(r, "posterior"), decided_table(r, "gated"), grid_table(r), direction_table(r),
        reliability_table(r), coverage_table(r), ranking_table(r), peer_table(r), alarm_table(r),
        ["CPU seconds of the posterior per log: " + "  ".join(seconds)],
    ]  # fmt: skip
    return "\n\n".join("\n".join(s) for s in sections)


def counts_csv(trials: Sequence[Trial]) -> str:
    """Counts per family, N and procedure."""
    lines = ["family,kind,variant,rows,procedure,pairs,claims,wrong_better,wrong_worse"]
    for p in PROCEDURES:
        lines += [
            f'"{c.family}",{FAMILIES[c.family].kind},{FAMILIES[c.family].variant},{c.rows},{p},{c.pairs},{c.claims},'
            f"{c.wrong_better},{c.wrong_worse}"
            for c in cells(trials, p).values()
        ]
    return "\n".join(lines) + "\n"
