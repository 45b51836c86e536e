"""What the bench of everyday logs prints: sections of tables in Markdown, which pages can take in by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from podium.data.errors import PodiumError
from podium.experiments.calibration.everyday.families import SETS
from podium.experiments.calibration.everyday.results import (
    Bin,
    Counts,
    Flags,
    Measured,
    counts_of,
    reliability,
    total,
    wrong_tests,
)
from podium.experiments.calibration.everyday.rules import OWN, RULES
from podium.experiments.calibration.everyday.trials import VIEWS
from podium.experiments.calibration.everyday.units import silences

PARTS = ("tuned on", "held out")
DRE = "DRE with ridge, paired t"
SUCCESSES = (0, 5, 20, 100, np.inf)
REGION = "<!-- everyday: {} -->"
END = "<!-- end -->"
Rows = list[list[str]]


def section(name: str, measured: Sequence[Measured]) -> str:
    """A section by name, or by "SET: NAME" for one set alone; empty where nothing was measured."""
    only, colon, rest = name.rpartition(": ")
    if colon and only in SETS:
        name, measured = rest, [m for m in measured if m.setting.family.set == only]
    if name in VIEWS:
        return view_table([m for m in measured if m.setting.family.strata == name])
    if name not in SECTIONS:
        raise PodiumError(f"no section {name!r}", hint="the sections are " + ", ".join((*SECTIONS, *VIEWS)) + ".")
    return SECTIONS[name](measured) if measured else ""


def update_page(text: str, section: Callable[[str], str]) -> str:
    """A page with new contents in its regions `<!-- everyday: NAME -->` ... `<!-- end -->`."""
    for name in re.findall(REGION.format("(.*?)"), text):
        start = REGION.format(name)
        before, _, rest = text.partition(start)
        _, end, after = rest.partition(END)
        if not end:
            raise PodiumError(f"the region {start} has no end", hint=f"add {END} below it.")
        if not (new := section(name)):
            raise PodiumError(f"nothing was measured for {name!r}", hint="run the sets that the page shows.")
        text = f"{before}{start}\n\n{new}\n\n{END}{after}"
    return text


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns line up in plain text, too; the first column to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    side = ["<", *[">"] * (len(head) - 1)]
    shown = [
        "| " + " | ".join(f"{x:{s}{w}}" for x, s, w in zip(line, side, widths, strict=True)) + " |" for line in lines
    ]
    rule = (
        "|"
        + "|".join("-" * (w + 2) if s == "<" else "-" * (w + 1) + ":" for s, w in zip(side, widths, strict=True))
        + "|"
    )
    return "\n".join([shown[0], rule, *shown[1:]])


def percent(part: float, digits: int = 1) -> str:
    return f"{100 * part:.{digits}f}%"


def groups(measured: Sequence[Measured]) -> dict[tuple[str, str], list[Measured]]:
    """By set and part, in the order of the sets."""
    found = {
        (s, p): [m for m in measured if (m.setting.family.set, m.setting.family.part) == (s, p)]
        for s in SETS
        for p in PARTS
    }
    return {key: group for key, group in found.items() if group}


def logs_table(measured: Sequence[Measured]) -> str:
    """How many logs of each set, and whether anything was warned of on the way."""
    rows = []
    for (name, part), group in groups(measured).items():
        sizes = sorted({m.setting.rows for m in group})
        warned = sum(int((m.found["warnings"] > 0).sum()) for m in group)
        spent = f"{sizes[0]:,} to {sizes[-1]:,}"
        policies = ", ".join(map(str, sorted({m.setting.policies for m in group})))
        families = len({m.setting.family.name for m in group})
        rows.append([name, part, str(families), spent, policies, f"{sum(m.logs for m in group):,}", str(warned)])
    return markdown(["set", "part", "families", "N", "K", "logs", "logs with warnings"], rows)


def shown(counts: Counts) -> list[str]:
    """Decided, wrong among claims, ties claimed."""
    ties = f"{percent(counts.tied_claims / counts.tied)} of {counts.tied:,}" if counts.tied else "-"
    wrong = f"{percent(counts.wrong_share, 2)} ({counts.wrong} of {counts.claims:,})" if counts.claims else "-"
    return [percent(counts.decided) if counts.pairs else "-", wrong, ties]


def rules_table(measured: Sequence[Measured]) -> str:
    """podium's rule and other rules for the same P(better), on all logs."""
    rows = [
        [name, part, rule, *shown(total(group, rule))]
        for (name, part), group in groups(measured).items()
        for rule in OWN
    ]
    return markdown(["set", "part", "rule", "decided", "wrong among claims", "ties claimed"], rows)


def with_p(m: Measured) -> bool:
    """Whether all rules can judge the logs of a setting."""
    return bool(np.isfinite(m.found[f"claim {DRE}"]).all())


def peers_table(measured: Sequence[Measured]) -> str:
    """podium's rule and the peers' on the same draws: logs with propensities."""
    rows = []
    for (name, part), group in groups([m for m in measured if with_p(m)]).items():
        for rule in RULES:
            counts = total(group, rule)
            rows += [[name, part, rule, *shown(counts)]] if counts.logs else []
    return markdown(["set", "part", "rule", "decided", "wrong among claims", "ties claimed"], rows) if rows else ""


def view_table(measured: Sequence[Measured]) -> str:
    """Every rule on the trials of one view, by part, and how well podium's probabilities hold."""
    rows = []
    for (_, part), group in groups(measured).items():
        rows += [[part, rule, *shown(c)[:2]] for rule in RULES if (c := total(group, rule)).logs]
    if not rows:
        return ""
    said = [[part, *bins_shown(reliability(group))] for (_, part), group in groups(measured).items()]
    both = markdown(["part", "rule", "decided", "wrong among claims"], rows)
    return both + "\n\n" + markdown(["part", *BIN_HEADS], said)


BIN_HEADS = ("said 0.6 to 0.7", "0.7 to 0.8", "0.8 to 0.9", "0.9 to 0.95", "0.95 to 0.975", "above")


def bins_shown(bins: Sequence[Bin]) -> list[str]:
    """Said, right, its standard error and the number of pairs of every bin from 0.6 up; ! where it falls short."""
    by_edge = {b.low: b for b in bins}
    found = [by_edge.get(edge) for edge in (0.6, 0.7, 0.8, 0.9, 0.95, 0.975)]
    return [
        "-" if b is None else f"{b.said:.3f}: {b.right:.3f} ± {b.error:.3f} ({b.pairs}){' !' if b.short else ''}"
        for b in found
    ]


def reliability_table(measured: Sequence[Measured]) -> str:
    """Reliability of P(better) by set, part, strata and N."""
    rows: Rows = []
    for (name, part), group in groups(measured).items():
        sizes = sorted({m.setting.rows for m in group})
        strata = list(dict.fromkeys(m.setting.family.strata for m in group))
        some = [("all", group)]
        some += [(s, [m for m in group if m.setting.family.strata == s]) for s in strata if len(strata) > 1]
        if name != "trials":
            some += [(f"N = {n:,}", [m for m in group if m.setting.rows == n]) for n in sizes]
        else:
            edges = (30, 100, 200, 10**9)
            for low, high in pairwise(edges):
                label = f"N from {low}" + (f" below {high}" if high < 10**9 else "")
                some.append((label, [m for m in group if low <= m.setting.rows < high]))
        rows += [[name, part, label, *bins_shown(bins)] for label, x in some if (bins := reliability(x))]
    return markdown(["set", "part", "logs", *BIN_HEADS], rows) if rows else ""


def cells_table(measured: Sequence[Measured]) -> str:
    """Settings with the strongest evidence for more than 5% wrong claims."""
    rows = []
    for (name, part), group in groups(measured).items():
        tests = wrong_tests(group, "podium")
        over = sum(adjusted <= 0.05 for *_, adjusted in tests)
        many = sum(c.claims >= 30 and c.wrong_share > 0.05 for _, c, *_ in tests)
        worst = next(((m, c, a) for m, c, _, a in tests if c.wrong), None)
        shown_worst = "-"
        if worst:
            m, c, adjusted = worst
            shown_worst = (
                f"{m.setting.family.name}, N = {m.setting.rows:,}: {c.wrong} of {c.claims} (p = {adjusted:.3f})"
            )
        rows.append([name, part, str(len(tests)), str(over), str(many), shown_worst])
    head = ["set", "part", "cells with claims", "significantly above 5%", "30 claims, over 5%", "worst (p after Holm)"]
    return markdown(head, rows)


def ties_table(measured: Sequence[Measured]) -> str:
    """Tied pairs claimed, and logs with any claim where all policies are tied, by rule and number of policies."""
    rows = []
    for (name, part), group in groups(measured).items():
        if name == "trials" or not total(group, "podium").tied:
            continue
        kinds = list(dict.fromkeys(m.setting.family.strata for m in group)) if name == "ties" else []
        for label in ("all", *kinds):
            for k in sorted({m.setting.policies for m in group}):
                some = [m for m in group if m.setting.policies == k and label in ("all", m.setting.family.strata)]
                counts = [total(some, rule) for rule in OWN]
                pairs, logs = counts[0].tied, counts[0].all_tied
                claimed = [percent(c.tied_claims / pairs) if pairs else "-" for c in counts]
                anything = [percent(c.any_claim / logs, 0) if logs else "-" for c in counts]
                rows.append([name, part, label, str(k), f"{pairs:,}", *claimed, str(logs), *anything])
    head = ["set", "part", "ties", "K", "tied pairs", *OWN, "logs, all tied", *(f"any: {rule}" for rule in OWN)]
    return markdown(head, rows) if rows else ""


def successes_table(measured: Sequence[Measured]) -> str:
    """Sparse rewards by the number of rewards in a log that are not zero."""
    rows = []
    for (name, part), group in groups(measured).items():
        if name != "sparse":
            continue
        for low, high in pairwise(SUCCESSES):
            label = f"{low:g} to {high - 1:g}" if np.isfinite(high) else f"from {low:g}"
            ours, theirs = (
                sum((counts_of(m, rule, inside(m, low, high)) for m in group), Counts()) for rule in ("podium", DRE)
            )
            right = theirs.claims - theirs.wrong
            decided, wrong, _ = shown(ours)
            rows.append(
                [part, label, str(ours.logs), decided, wrong, percent(right / max(theirs.pairs, 1)), shown(theirs)[1]]
            )
    head = [
        "part",
        "successes",
        "logs",
        "decided",
        "wrong among claims",
        "DRE decides rightly",
        "DRE wrong among claims",
    ]
    return markdown(head, rows) if rows else ""


def inside(m: Measured, low: float, high: float) -> Flags:
    """(logs,) whether the number of successes lies in a range."""
    return np.asarray((m.found["successes"] >= low) & (m.found["successes"] < high))


def coverage_table(measured: Sequence[Measured]) -> str:
    """Coverage of the 95% intervals by set, the spread of z, and the families that are covered least."""
    rows = []
    for (name, part), group in groups(measured).items():
        families: dict[str, list[Measured]] = {}
        for m in group:
            families.setdefault(m.setting.family.name, []).append(m)
        shares = {family: coverage(some) for family, some in families.items()}
        known = {family: share for family, share in shares.items() if np.isfinite(share)}
        least = min(known, key=lambda f: known[f]) if known else ""
        below = sum(share < 0.93 for share in known.values())
        z = np.concatenate([m.z_values() for m in group])
        spread = f"{z.std():.2f}" if len(z) else "-"
        worst = f"{percent(known[least])}: {least}" if least else "-"
        rows.append([name, part, percent(coverage(group)), spread, str(below), worst])
    head = ["set", "part", "coverage", "sd of z", "families below 93%", "least"]
    return markdown(head, rows)


def coverage(measured: Iterable[Measured]) -> float:
    covered = given = 0
    for m in measured:
        held, there = m.covered()
        covered, given = covered + int(held.sum()), given + int(there.sum())
    return covered / given if given else float("nan")


def silences_table(measured: Sequence[Measured]) -> str:
    """Why podium refuses to judge pairs."""
    rows = [
        [name, part, reason, f"{count:,}"]
        for (name, part), group in groups(measured).items()
        for reason, count in silences(m.found for m in group).items()
    ]
    return markdown(["set", "part", "reason", "silent pairs"], rows) if rows else ""


def earlier_table(measured: Sequence[Measured], path: Path) -> str:
    """Decided now and in an earlier run, over the settings that have the same logs in both."""
    with path.open(encoding="utf-8", newline="") as file:
        before = {
            (r["set"], r["family"], int(r["rows"]), int(r["policies"])): r
            for r in csv.DictReader(file)
            if r["rule"] == "podium"
        }
    rows = []
    for (name, part), group in groups(measured).items():
        same = [m for m in group if m.setting.key in before and int(before[m.setting.key]["logs"]) == m.logs]
        now = total(same, "podium")
        old = [{key: int(before[m.setting.key][key]) for key in ("claims", "wrong")} for m in same]
        claims, wrong = sum(x["claims"] for x in old), sum(x["wrong"] for x in old)
        more = f"{now.claims / claims - 1:+.0%}" if claims else "-"
        rows.append([name, part, str(now.logs), f"{claims:,} ({wrong})", f"{now.claims:,} ({now.wrong})", more])
    return markdown(["set", "part", "logs", "claims before (wrong)", "claims now (wrong)", "more"], rows)


SECTIONS: dict[str, Callable[[Sequence[Measured]], str]] = {
    "logs": logs_table,
    "rules": rules_table,
    "peers": peers_table,
    "cells": cells_table,
    "ties": ties_table,
    "successes": successes_table,
    "reliability": reliability_table,
    "coverage": coverage_table,
    "silences": silences_table,
}
