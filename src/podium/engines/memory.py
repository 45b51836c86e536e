"""How much memory a question needs, and how much there is: what cannot fit is refused before it starts.

Only what grows with the data is counted, so that an estimate is never larger than what is really taken: the rows of a
log that is held in memory, and probabilities of all actions on rows that are held at once.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from podium.data.errors import PodiumError

VARIABLE = "PODIUM_MEMORY"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
UNLIMITED = 1 << 60  # what the system writes where there is no limit
PROBABILITY = 24  # bytes of a probability: the number itself, and the copies that are checked and judged
CELL = {"parquet": 40, "text": 125, "json": 250}  # bytes of a cell while a file is read into memory
SET_HINT = f"{VARIABLE}=8GB sets how much memory podium may use."


@dataclass(frozen=True)
class Need:
    """Bytes that something takes, which factors they come from, and what to do if they are too many."""

    bytes: float
    factors: str
    hint: str


def check_fits(*needs: Need, limit: float | None = None) -> None:
    """Refuse what cannot fit, naming the largest need."""
    free = available() if limit is None else limit
    total = sum(need.bytes for need in needs)
    if free is None or total <= free:
        return
    largest = max(needs, key=lambda need: need.bytes)
    raise PodiumError(
        f"this needs about {gigabytes(total)} of memory, and {gigabytes(free)} are available: {largest.factors}",
        hint=f"{largest.hint} {SET_HINT}",
    )


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 5e7 else f"{size / 1e9:.4f} GB"


def log_need(kind: str, rows: int, columns: int, file: str) -> Need:
    """A file that is read into memory."""
    installed = find_spec("duckdb") is not None
    way = "use engine='duckdb' (--engine duckdb), which reads the rows in parts"
    return Need(
        CELL[kind] * float(rows) * columns,
        f"{rows:,} rows x {columns:,} columns of {file}",
        f"{way}." if installed else f"run: pip install 'podium[duckdb]', and {way}.",
    )


def sample_need(rows: int, actions: int, policies: int, free: float | None) -> Need:
    """The rows that are judged, with every policy on them."""
    row = float(PROBABILITY) * actions * max(policies, 1)
    fits = 0 if free is None else min(int(free / 2 / row), rows // 2, 20_000) // 100 * 100
    fewer = f"sample_rows={fits} (--sample-rows {fits})" if fits else "fewer actions"
    return Need(
        row * rows if policies else 0.0,
        f"{policies} policies x {rows:,} rows x {actions:,} actions",
        f"use fewer policies, or {fewer}.",
    )


def at_once_need(rows: int, actions: int, policies: int) -> Need:
    """Every policy on all rows at once."""
    return Need(
        float(PROBABILITY) * rows * actions * policies,
        f"{policies} policies x {rows:,} rows x {actions:,} actions",
        'leave normalize="states" (--normalize states) out, so that policies are asked part by part; or use fewer '
        "policies.",
    )


def behavior_need(rows: int, actions: int) -> Need:
    """A behavior policy that a log in memory holds in full."""
    return Need(
        float(PROBABILITY) * rows * actions,
        f"the behavior policy at {rows:,} rows x {actions:,} actions",
        "use engine='duckdb' (--engine duckdb), or add the probability of each logged action as a column propensity.",
    )


# --- how much there is -------------------------------------------------------------------------------------------


def available(root: Path = Path("/")) -> int | None:
    """Bytes that podium may take: what PODIUM_MEMORY says, else what the system leaves; None where that is unknown."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return amount(given)
    limits = [free_of_machine(root), free_of_group(root), free_addresses(root)]
    return min((limit for limit in limits if limit is not None), default=None)


def amount(text: str) -> int:
    """2GB, 500 MB or 1.5GiB as bytes."""
    found = AMOUNT.fullmatch(text)
    if found is None or float(found[1]) == 0:
        raise PodiumError(f"{VARIABLE} is {text!r}, which is not an amount of memory", hint=f"write {VARIABLE}=2GB.")
    place = list(UNITS).index(found[2].upper())
    return int(float(found[1]) * (1024**place if found[3] else UNITS[found[2].upper()]))


def free_of_machine(root: Path) -> int | None:
    """What the machine can give without swapping, by the kernel's own estimate."""
    kilobytes = fields(root / "proc/meminfo").get("MemAvailable")
    return None if kilobytes is None else kilobytes * 1024


def free_of_group(root: Path) -> int | None:
    """What is left of the control groups that the process belongs to, as in a container."""
    lines = [line.split(":", 2) for line in read(root / "proc/self/cgroup").splitlines() if line.count(":") >= 2]
    left = []
    for _, names, path in lines:
        if names not in ("", "memory"):
            continue
        base = root / "sys/fs/cgroup" / names
        most, used = ("memory.limit_in_bytes", "memory.usage_in_bytes") if names else ("memory.max", "memory.current")
        for folder in (base, *(base.joinpath(*Path(path).parts[1:end]) for end in range(2, len(Path(path).parts) + 1))):
            limit, now = number(folder / most), number(folder / used)
            if limit is not None and limit < UNLIMITED and now is not None:
                stat = fields(folder / "memory.stat")
                cached = stat.get("total_inactive_file", stat.get("inactive_file", 0))
                left.append(max(limit - now + cached, 0))
    return min(left, default=None)


def free_addresses(root: Path) -> int | None:
    """What is left of the process's limit on its address space (ulimit -v)."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    taken = fields(root / "proc/self/status").get("VmSize", 0) * 1024
    return max(limit - taken, 0)


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def number(path: Path) -> int | None:
    text = read(path).strip()
    return int(text) if text.isdigit() else None


def fields(path: Path) -> dict[str, int]:
    """The whole numbers of a file of names and numbers, such as /proc/meminfo."""
    pairs = (line.replace(":", " ").split() for line in read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) > 1 and pair[1].isdigit()}
