"""Units of work: a few logs of one family and size, judged through `podium.compare`, with what every rule said."""

from __future__ import annotations

import re
import time
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.comparison.compare import compare
from podium.comparison.pair import Pair
from podium.comparison.result import Comparison
from podium.data.columns import Floats
from podium.experiments.calibration.everyday.families import FAMILIES, Case, Family
from podium.experiments.calibration.everyday.rules import OWN, PEERS, own_rules, peer_rules
from podium.experiments.calibration.everyday.trials import trial_families
from podium.experiments.calibration.peers import LEVEL
from podium.experiments.runner import Arrays, Cell
from podium.verdicts.pairs import pair_indices

CLAIMS = {"better": 1.0, "worse": -1.0, "cannot tell": 0.0}


@dataclass(frozen=True)
class Setting:
    """A family at one size."""

    family: Family
    rows: int
    policies: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.family.set, self.family.name, self.rows, self.policies


@lru_cache(maxsize=4)
def all_families(folder: str | None = None) -> dict[tuple[str, str], Family]:
    """Every family by set and name, with the trials of a folder."""
    return {(f.set, f.name): f for f in (*FAMILIES, *trial_families(folder))}


def units(settings: Iterable[Setting], logs: int, folder: str | None = None) -> list[list[Cell]]:
    """The units of each setting; `logs` of them hold for up to 1,000 rows (see `logs_of`).

    The seed of a unit depends on its name alone, so that a log is the same whatever else is asked for.
    """
    return [
        [unit(s, batch, folder) for batch in range(-(-logs_of(s, logs) // logs_per_unit(s.rows)))] for s in settings
    ]


def unit(s: Setting, batch: int, folder: str | None) -> Cell:
    name = file_name(f"{s.family.set} {s.family.name} N{s.rows} K{s.policies} {batch}")
    where = {"set": s.family.set, "family": s.family.name, "rows": s.rows, "policies": s.policies}
    return Cell(name, zlib.crc32(name.encode()), {**where, "logs": logs_per_unit(s.rows), "folder": folder})


def logs_of(s: Setting, logs: int) -> int:
    """How many logs a setting gets: trials twice as many, being few; long logs fewer, being slow."""
    share = 2.0 if s.family.set == "trials" else 1.0 if s.rows <= 1_000 else 0.25 if s.rows <= 10_000 else 0.125
    return max(1, int(share * logs))


def logs_per_unit(rows: int) -> int:
    return 2 if rows <= 1_000 else 1


def in_rounds(units: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Every setting once before any comes again, so that a budget that ends early ends fairly."""
    return [cell for group in zip_longest(*units) for cell in group if cell is not None]


def file_name(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9.]+", "-", text.replace("%", "pc"))


def measure(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None = None) -> Arrays:
    """Draw the logs of a unit and judge them."""
    chosen = cell.arguments
    family = all_families(chosen["folder"])[chosen["set"], chosen["family"]]
    answers = []
    for child in seed.spawn(chosen["logs"]):
        start = time.process_time()
        case = family.draw(np.random.default_rng(child), chosen["rows"], chosen["policies"])
        try:
            answer = judge(case)
        except Exception as error:
            error.add_note(f"in {cell.name}")
            raise
        answers.append({**answer, "seconds": np.array(time.process_time() - start)})
    return {key: np.stack([a[key] for a in answers]) for key in answers[0]}


def judge(case: Case) -> Arrays:
    """What `podium.compare` and every rule say of the pairs of a case."""
    draw = case.draw
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = compare(draw.log, draw.policies, level=LEVEL)
    spent = time.process_time() - start
    answer = said(result, list(draw.policies))
    claims = {"podium": answer.pop("claim"), **own_rules(answer["p_better"], answer["silent"] == "")}
    claims |= peer_rules(draw)
    nothing = np.full(len(case.difference), np.nan)
    _, counts = np.unique(draw.log.rewards, return_counts=True)
    return {
        **answer,
        **{f"claim {rule}": claims.get(rule, nothing) for rule in (*OWN, *PEERS)},
        "truth": case.difference,
        "truth_error": case.error,
        "tied": case.tied,
        "successes": np.array(len(draw.log) - counts.max()),
        "warnings": np.array(len(caught)),
        "compare_seconds": np.array(spent),
    }


def said(result: Comparison, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The fields of the pairs i < j as arrays; a reason in `silent` where podium refuses to judge a pair."""
    pairs = [result.pair(names[i], names[j]) for i, j in zip(*pair_indices(len(names)), strict=True)]
    return {
        "difference": numbers(p.difference for p in pairs),
        "std_error": numbers(p.std_error for p in pairs),
        "low": numbers(None if p.interval is None else p.interval.low for p in pairs),
        "high": numbers(None if p.interval is None else p.interval.high for p in pairs),
        "p_better": numbers(p.p_better for p in pairs),
        "p_adjusted": numbers(p.p_adjusted for p in pairs),
        "claim": np.array([CLAIMS[p.verdict] for p in pairs]),
        "silent": np.array([silence(p) for p in pairs]),
    }


def numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if x is None else x for x in values], dtype=float)


def silence(pair: Pair) -> str:
    """Why podium refuses to judge a pair: the code of the reason; "" where it is decided or merely open."""
    codes = [getattr(reason, "code", "") or str(reason) for reason in pair.reasons]
    return next((code for code in codes if not code.startswith("open")), "") if pair.verdict == "cannot tell" else ""


def silences(answers: Iterable[Mapping[str, NDArray[Any]]]) -> dict[str, int]:
    """How many pairs each reason silences, the most frequent first."""
    found: dict[str, int] = {}
    for answer in answers:
        for reason in answer["silent"].ravel().tolist():
            if reason:
                found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
