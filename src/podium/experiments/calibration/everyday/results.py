"""Run the units, take in what they found, and count: claims, wrong ones, ties claimed, intervals that cover."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import podium
from podium.data.columns import Floats
from podium.experiments.calibration.everyday.rules import RULES
from podium.experiments.calibration.everyday.units import Setting, in_rounds, measure, units
from podium.experiments.runner import Arrays, Cell, cells_folder, is_finished, load, run_cells

Flags = NDArray[np.bool_]
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 1.0)
NOT_MEASURED = ("command", "studio", "outputs", "experiments")  # folders whose code changes no verdict
DRAWING = ("worlds.py", "peers.py", *(f"everyday/{n}.py" for n in ("worlds", "families", "trials", "rules", "units")))


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found of one setting: arrays (logs, pairs), or (logs,) for what concerns a whole log."""

    setting: Setting
    found: Arrays

    @property
    def logs(self) -> int:
        return len(self.found["truth"])

    @property
    def usable(self) -> Flags:
        """Pairs of different policies about which podium says something."""
        spoken = (self.found["silent"] == "") & np.isfinite(self.found["std_error"])
        return np.asarray(spoken & (self.found["tied"] == 0) & (self.found["p_better"] != 0.5))

    @property
    def total_error(self) -> Floats:
        """The error of the estimate and of the truth together."""
        return np.hypot(self.found["std_error"], self.found["truth_error"])

    def z_values(self) -> Floats:
        """Truth minus estimate over their error, for the usable pairs."""
        gap = self.found["truth"] - self.found["difference"]
        return np.asarray(gap[self.usable] / np.maximum(self.total_error[self.usable], 1e-300))

    def stated(self) -> tuple[Floats, Flags]:
        """The probability that the sign of the truth, which has its own error, is the stated one; whether it is."""
        from scipy.special import ndtr, ndtri

        f = self.found
        p = np.clip(f["p_better"], 1e-12, 1 - 1e-12)
        with np.errstate(invalid="ignore", divide="ignore"):
            shrunk = np.where(f["truth_error"] > 0, f["std_error"] / self.total_error, 1.0)
        return ndtr(np.abs(ndtri(p)) * shrunk), np.sign(p - 0.5) == np.sign(f["truth"])

    def covered(self) -> tuple[Flags, Flags]:
        """Whether each interval holds the truth, widened by the error of that; and which pairs have an interval."""
        f = self.found
        extra = 1.96 * f["truth_error"]
        above, below = np.hypot(f["high"] - f["difference"], extra), np.hypot(f["difference"] - f["low"], extra)
        gap = f["truth"] - f["difference"]
        inside = np.where(
            f["truth_error"] > 0, (gap <= above) & (-gap <= below), (f["low"] <= f["truth"]) & (f["truth"] <= f["high"])
        )
        given = np.isfinite(f["low"]) & (f["silent"] == "")
        return inside & given, given


def run(
    settings: Sequence[Setting],
    folder: Path,
    *,
    logs: int,
    seed: int,
    trials: str | None = None,
    workers: int = 1,
    budget: float = np.inf,
    overwrite: bool = False,
) -> tuple[list[Measured], float]:
    """Run what is not in the folder yet, until `budget` CPU seconds are spent.

    CPU seconds count over all runs into the folder, so that a run that was interrupted does not get more. Returns what
    was measured and the CPU seconds.
    """
    asked = units(settings, logs, trials)
    in_order = in_rounds(asked)
    cells = cells_folder(folder, f"seed-{seed}-{code_version()}", overwrite)
    meter = Meter(cells, in_order)
    run_cells(
        measure, [[c] for c in in_order], cells, seed=seed, workers=workers, label="everyday logs",
        enough=lambda: meter.seconds() >= budget,
    )  # fmt: skip
    done = [[load(cells, c.name) for c in group if is_finished(cells, c.name)] for group in asked]
    measured = [
        Measured(s, {key: np.concatenate([part[key] for part in parts]) for key in parts[0]})
        for s, parts in zip(settings, done, strict=True)
        if parts
    ]
    return measured, meter.seconds()


class Meter:
    """The CPU seconds of the finished units, each looked at once."""

    def __init__(self, folder: Path, cells: Sequence[Cell]) -> None:
        self.folder, self.left, self.total = folder, list(cells), 0.0

    def seconds(self) -> float:
        left = []
        for place, cell in enumerate(self.left):
            if not (self.folder / f"{cell.name}.npz").exists():
                left.append(cell)
                if len(left) > 64:  # units start in this order, so the rest has not been run
                    left += self.left[place + 1 :]
                    break
            elif is_finished(self.folder, cell.name):
                self.total += float(load(self.folder, cell.name)["seconds"].sum())
        self.left = left
        return self.total


def code_version() -> str:
    """A digest of the code that draws logs and judges them: results of other code are never taken for its own."""
    root = Path(podium.__file__).parent
    paths = [p for p in sorted(root.rglob("*.py")) if p.relative_to(root).parts[0] not in NOT_MEASURED]
    paths += [root / "experiments" / "calibration" / name for name in DRAWING]
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


# --- counts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """What one rule did: claims about pairs that differ, how many were wrong, claims about ties."""

    logs: int = 0
    pairs: int = 0
    claims: int = 0
    wrong: int = 0
    tied: int = 0
    tied_claims: int = 0
    all_tied: int = 0  # logs in which all policies are tied
    any_claim: int = 0  # of these, logs with a claim

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def decided(self) -> float:
        return self.claims / max(self.pairs, 1)

    @property
    def wrong_share(self) -> float:
        return self.wrong / max(self.claims, 1)


def counts_of(measured: Measured, rule: str, some: Flags | None = None) -> Counts:
    """Counts of a rule in one setting, over the logs (or some of them) that it can judge."""
    f = measured.found
    claims = f[f"claim {rule}"]
    judged = np.isfinite(claims).all(axis=1) & (np.ones(measured.logs, dtype=bool) if some is None else some)
    claims, truth, tied = claims[judged], f["truth"][judged], f["tied"][judged] > 0
    made = claims != 0
    all_tied = tied.all(axis=1)
    return Counts(
        logs=int(judged.sum()),
        pairs=int((~tied).sum()),
        claims=int((made & ~tied).sum()),
        wrong=int((made & ~tied & (claims != np.sign(truth))).sum()),
        tied=int(tied.sum()),
        tied_claims=int((made & tied).sum()),
        all_tied=int(all_tied.sum()),
        any_claim=int(made.any(axis=1)[all_tied].sum()),
    )


def total(measured: Iterable[Measured], rule: str) -> Counts:
    return sum((counts_of(m, rule) for m in measured), Counts())


@dataclass(frozen=True)
class Bin:
    """Pairs whose stated probability lies in a range: the mean that was stated, the share right, its error by log."""

    low: float
    pairs: int
    said: float
    right: float
    error: float

    @property
    def short(self) -> bool:
        """Right less often than said, by more than 0.03 and two standard errors."""
        return self.right < self.said - 0.03 - 2 * self.error


def reliability(measured: Sequence[Measured]) -> list[Bin]:
    """One entry per bin that holds pairs; the errors are clustered by log, and at least those of independent pairs."""
    said, right, log = [], [], []
    start = 0
    for m in measured:
        stated, correct = m.stated()
        rows, pairs = np.nonzero(m.usable)
        said.append(stated[rows, pairs])
        right.append(correct[rows, pairs])
        log.append(start + rows)
        start += m.logs
    if not said:
        return []
    s, r, g = np.concatenate(said), np.concatenate(right).astype(float), np.concatenate(log)
    place = np.clip(np.searchsorted(BINS, s, side="right") - 1, 0, len(BINS) - 2)
    bins = []
    for b in np.unique(place):
        inside = place == b
        share = float(r[inside].mean())
        by_log = np.bincount(g[inside], weights=r[inside] - share)
        size, mean = int(inside.sum()), float(s[inside].mean())
        clustered, independent = np.sqrt((by_log**2).sum()) / size, np.sqrt(mean * (1 - mean) / size)
        bins.append(Bin(BINS[b], size, mean, share, float(max(clustered, independent))))
    return bins


def wrong_tests(measured: Sequence[Measured], rule: str) -> list[tuple[Measured, Counts, float, float]]:
    """For each setting with claims: the exact one-sided p value of "at most 5% are wrong", and that after Holm."""
    from scipy.stats import binom

    found = [(m, c) for m in measured if (c := counts_of(m, rule)).claims]
    p = np.array([float(binom.sf(c.wrong - 1, c.claims, 0.05)) for _, c in found])
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [(*found[n], float(p[n]), float(a)) for n, a in zip(order, adjusted, strict=True)]


HEAD = ("set", "part", "family", "rows", "policies", "rule")


def counts_csv(measured: Sequence[Measured]) -> str:
    """Counts of every setting and rule, with the coverage of podium's intervals."""
    names = [f.name for f in fields(Counts)]
    lines = [",".join((*HEAD, *names, "intervals", "covered"))]
    for m in measured:
        inside, given = m.covered()
        family = m.setting.family
        start = f'{family.set},{family.part},"{family.name}",{m.setting.rows},{m.setting.policies}'
        for rule in RULES:
            counts = counts_of(m, rule)
            if counts.logs:
                row = [rule, *(getattr(counts, n) for n in names), int(given.sum()), int(inside.sum())]
                lines.append(start + "," + ",".join(f'"{x}"' if isinstance(x, str) else str(x) for x in row))
    return "\n".join(lines) + "\n"
