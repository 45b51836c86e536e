"""The numbers that the paper prints, one CSV per table named by its LaTeX label, and how close reproduced ones come."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from pathlib import Path

from podium.data.spreadsheets import csv_text

Key = tuple[str, str]  # (row, column)
HEADER = ["row", "column", "printed", "reproduced", "std_error", "z"]


@dataclass(frozen=True)
class Entry:
    """One number of a printed table beside its reproduction.

    `std_error` is that of the reproduced number, with the rounding of the printed one; both numbers are
    samples, so z = (reproduced - printed) / (sqrt(2) std_error).
    """

    row: str
    column: str
    printed: str
    reproduced: float
    std_error: float

    @property
    def z(self) -> float:
        gap = self.reproduced - float(self.printed)
        return gap / (math.sqrt(2) * self.std_error) if self.std_error > 0 else math.copysign(math.inf, gap)

    @property
    def is_equal(self) -> bool:
        """Whether the reproduced number, rounded half up as the paper rounds, is the printed text."""
        return self.printed in (as_printed(self.reproduced, self.printed), self.twice_rounded)

    @property
    def twice_rounded(self) -> str:
        """The text after rounding to six decimals first, as most columns of the paper went through."""
        return as_printed(float(round_half_up(self.reproduced, 6)), self.printed)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What an experiment wrote: the folder, every printed table beside its reproduction, where its data came from."""

    folder: Path
    tables: dict[str, list[Entry]]
    data: str = ""


def printed_table(label: str) -> dict[Key, str]:
    """(row, column) -> the paper's own text of the number.

    >>> printed_table("ex1.1_eval_a")["0.05", "LDE avg"]
    '-5.77e-04'
    """
    text = files("podium.experiments").joinpath("printed_tables", f"{label}.csv").read_text(encoding="utf-8")
    return {(line["row"], line["column"]): line["printed"] for line in csv.DictReader(io.StringIO(text))}


def beside_printed(label: str, reproduced: Mapping[Key, tuple[float, float]]) -> list[Entry]:
    """The entries of a printed table that were reproduced, given as (row, column) -> (number, standard error)."""
    entries = []
    for (row, column), text in printed_table(label).items():
        if (row, column) not in reproduced:
            continue
        value, error = reproduced[row, column]
        entries.append(Entry(row, column, text, value, math.hypot(error, last_digit(text) / math.sqrt(24))))
    return entries


def last_digit(text: str) -> float:
    """The unit of the last printed digit.

    A printed number is off by up to half of it, with variance unit^2 / 12. The two numbers together have
    2 std_error^2, so each carries unit^2 / 24.

    >>> last_digit("-3.96e-01"), last_digit("0.3594")
    (0.001, 0.0001)
    """
    exponent = Decimal(text).as_tuple().exponent
    return float(Decimal(1).scaleb(int(exponent)))


def round_half_up(value: float, places: int) -> Decimal:
    """A number rounded to decimal places, halves away from zero."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)


def as_printed(value: float, pattern: str) -> str:
    """A number in the notation of a printed one: 0.1234, or -1.23e-04 with as many digits.

    >>> as_printed(-0.00057651, "-5.77e-04"), as_printed(0.35945, "0.3594"), as_printed(0.0, "1.00e-04")
    ('-5.77e-04', '0.3595', '0.00e+00')
    """
    mantissa, e, _ = pattern.partition("e")
    places = len(mantissa.partition(".")[2])
    if not e:
        return str(round_half_up(value, places))
    exact = Decimal(repr(value))
    if not exact:
        return f"{0:.{places}e}"
    power = exact.adjusted()
    rounded = exact.scaleb(-power).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    if abs(rounded) >= 10:
        rounded, power = rounded / 10, power + 1
    return f"{rounded:.{places}f}e{power:+03d}"


def table_csv(entries: Iterable[Entry]) -> str:
    """The table as tidy CSV: the printed text, and the reproduced number at full precision."""
    rows = ([e.row, e.column, e.printed, repr(e.reproduced), repr(e.std_error), repr(e.z)] for e in entries)
    return csv_text(HEADER, rows)


def agreement(entries: Iterable[Entry]) -> dict[str, float | int]:
    """How a set of entries agrees: their number, the root mean square and the largest |z|, and how many are equal."""
    entries = list(entries)
    z = [abs(e.z) for e in entries]
    return {
        "entries": len(entries),
        "rms_z": math.sqrt(sum(x * x for x in z) / len(z)),
        "max_abs_z": max(z),
        "equal": sum(e.is_equal for e in entries),
        "max_gap": max(abs(e.reproduced - float(e.printed)) for e in entries),
    }
