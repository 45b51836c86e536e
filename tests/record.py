"""Record every number that podium computes on a fixed set of logs, and compare the numbers after a change.

    python tests/record.py make record.json.gz      # before the change
    python tests/record.py compare record.json.gz   # after it; the exit code is 1 if any number or word differs

The logs and the questions are in `recorded_logs/`. An answer is the `.to_dict()` of a result, taken apart into paths
such as `one state/compare/pairs[p2 > p1]/difference`. Only recorded paths are compared, so a later version may add
keys. Sentences (warnings, notes, reasons) are not recorded. P(best) and expected regret are recorded, but a change in
them is counted as allowed.

Make and compare a record on the same machine and with the same packages: the last digits depend on both.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorded_logs import LOGS, answers_about
from threadpoolctl import threadpool_limits

TOLERANCE = 1e-7  # of the larger of 1, the number, and the standard error of the same entry
ALLOWED = ("p_best", "regret")
SENTENCES = (
    "podium", "warnings", "notes", "reasons", "reason", "assumes", "multiplicity", "logged_by", "caution", "meaning",
    "advice", "balance_at",
)  # fmt: skip
ERRORS = ("std_error", "empirical_se")
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "duckdb")
SHOWN = 40

Value = float | int | str | bool | None
Record = dict[str, Value]


# --- making a record ---------------------------------------------------------------------------------------------


def make_record(only: str = "") -> Record:
    """Return path -> number or word for every answer about the logs whose names contain `only`."""
    record: Record = {}
    with threadpool_limits(limits=1):
        for name, make_case in LOGS.items():
            if only in name:
                for question, answer in answers_about(make_case):
                    record |= take_apart(answer, f"{name}/{question}")
    return record


def take_apart(value: Any, path: str) -> Record:
    """Return path -> number or word for a nested answer; list entries are named by what identifies them."""
    if isinstance(value, Mapping):
        parts = {str(key): part for key, part in value.items() if key not in SENTENCES}
        if isinstance(parts.get("unavailable"), Mapping):  # method -> why, of which only the names are recorded
            parts["unavailable"] = sorted(parts["unavailable"])
        return {p: v for key, part in parts.items() for p, v in take_apart(part, f"{path}/{key}").items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        found: Record = {f"{path}/length": len(value)}
        for key, part in zip(entry_names(value), value, strict=True):
            found |= take_apart(part, f"{path}[{key}]")
        return found
    return {path: value.item() if hasattr(value, "item") else value}


def entry_names(entries: Sequence[Any]) -> Iterator[str]:
    """A name for every entry of a list: the pair, method, state or policy that it describes, else its position."""
    seen: Counter[str] = Counter()
    for position, entry in enumerate(entries, start=1):
        name = str(position)
        for keys in (("a", "b"), ("estimator", "baseline"), ("state",), ("name",), ("condition",)):
            if isinstance(entry, Mapping) and all(key in entry for key in keys):
                name = (" > " if keys == ("a", "b") else ", ").join(str(entry[key]) for key in keys)
                break
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}"


# --- comparing two records ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A recorded number or word that is different now; `after` is "(missing)" where the path is gone."""

    path: str
    before: Value
    after: Value


@dataclass(frozen=True)
class Changes:
    """What `compare_records` found."""

    differ: tuple[Change, ...]
    allowed: tuple[Change, ...]  # P(best) and regret
    same: int
    largest: float  # change among the numbers that count as the same, as a share of their scale


def compare_records(before: Record, after: Record) -> Changes:
    """Look up every recorded path in a new record; paths that only the new record has are ignored."""
    differ, allowed, same, largest = [], [], 0, 0.0
    for path, old in before.items():
        new = after.get(path, "(missing)")
        if is_number(old) and is_number(new):
            change = abs(new - old) / scale_of(path, before)
            if change <= TOLERANCE:
                same, largest = same + 1, max(largest, change)
                continue
        elif type(old) is type(new) and old == new:
            same += 1
            continue
        (allowed if path.rpartition("/")[2] in ALLOWED else differ).append(Change(path, old, new))
    return Changes(tuple(differ), tuple(allowed), same, largest)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scale_of(path: str, record: Record) -> float:
    """The larger of 1, the number's own size, and the standard error of its entry or of an entry around it.

    The error matters where rewards are large: a difference of 1e-5 that should be 0 is rounding if its error is 1e6.
    """
    sizes = [1.0, abs(record[path])]
    if "/estimates/" in path:
        sizes.append(record.get(path.replace("/estimates/", "/std_errors/")))
    around = path
    while "/" in around:
        around = around.rpartition("/")[0]
        sizes += [record.get(f"{around}/{error}") for error in ERRORS]
    return max(size for size in sizes if is_number(size))


# --- the command -------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The versions on which the last digits depend."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "machine": platform.machine(), **versions}


def print_changes(title: str, changes: Sequence[Change]) -> None:
    if changes:
        print(f"\n{title}: path, before, after")
    for change in changes[:SHOWN]:
        print(f"  {change.path}\n    {change.before!r}  ->  {change.after!r}")
    if len(changes) > SHOWN:
        print(f"  ... and {len(changes) - SHOWN:,} more")


def make(path: Path, only: str) -> int:
    record = make_record(only)
    failed = [p for p in record if p.endswith("/failed")]
    for p in failed:
        print(f"{p.removesuffix('/failed')}: {record[p]}")
    if failed:
        print("Nothing was written: every question must be answered or refused.")
        return 1
    content = json.dumps({"environment": environment(), "record": record}, indent=0)
    path.write_bytes(gzip.compress(content.encode(), mtime=0))
    numbers = sum(map(is_number, record.values()))
    refused = sorted(p.removesuffix("/refused") for p in record if p.endswith("/refused"))
    print(f"{numbers:,} numbers and {len(record) - numbers:,} words of {sum(only in n for n in LOGS)} logs: {path}")
    print(f"podium refused {len(refused)} questions: {', '.join(refused)}" if refused else "No question was refused.")
    return 0


def compare(path: Path, only: str) -> int:
    stored = json.loads(gzip.decompress(path.read_bytes()))
    before: Record = {p: v for p, v in stored["record"].items() if only in p.partition("/")[0]}
    now = environment()
    for name, version in stored["environment"].items():
        if now.get(name) != version:
            print(f"Note: the record was made with {name} {version}; this is {now.get(name)}.")
    changes = compare_records(before, make_record(only))
    print_changes("Allowed to differ", changes.allowed)
    print_changes("Different", changes.differ)
    by_log = Counter(change.path.partition("/")[0] for change in changes.differ)
    print("".join(f"\n  {count:,} in {name}" for name, count in by_log.most_common()))
    print(
        f"{len(before):,} recorded: {changes.same:,} the same (largest change {changes.largest:.1e}), "
        f"{len(changes.allowed):,} allowed to differ, {len(changes.differ):,} different."
    )
    return 1 if changes.differ else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Record every number of podium on fixed logs; compare after a change.")
    parser.add_argument("task", choices=("make", "compare"))
    parser.add_argument("file", type=Path, help="the record, such as record.json.gz")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the logs whose names contain this text")
    options = parser.parse_args(arguments)
    start = time.process_time()
    code = {"make": make, "compare": compare}[options.task](options.file, options.only)
    print(f"CPU time: {time.process_time() - start:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
