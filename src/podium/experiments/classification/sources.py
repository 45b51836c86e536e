"""The five datasets of Example 2 as the UCI repository publishes them, and the one table that each becomes.

A raw file is read into the table that the paper's program used; a checksum of that table, not of the file, decides
whether it is the right one, so that other line ends or another mirror do no harm.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podium.data.columns import Floats
from podium.data.spreadsheets import csv_text

Labels = list[int] | list[str]
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
BROKEN_ROW = ("14.69", "12.5", "10.4", "2.5")  # as the paper's copy of Algerian has it; see `read_algerian`
SEX = {"M": 0.0, "I": 0.5, "F": 1.0}


@dataclass(frozen=True, eq=False)
class Table:
    """Features (N, F) and N labels, in the order of the rows."""

    features: Floats
    labels: Labels

    def checksum(self) -> str:
        """SHA-256 of all features and labels, independent of how they were written."""
        rows = zip(self.features.tolist(), self.labels, strict=True)
        text = "\n".join(",".join(map(repr, [*row, label])) for row, label in rows)
        return hashlib.sha256(text.encode()).hexdigest()

    def csv_text(self) -> str:
        """The table as podium keeps it: feature_0, feature_1, ..., label."""
        header = [*(f"feature_{i}" for i in range(self.features.shape[1])), "label"]
        rows = zip(self.features.tolist(), self.labels, strict=True)
        return csv_text(header, ([*map(repr, row), label] for row, label in rows))


@dataclass(frozen=True)
class Source:
    """Where a dataset is published, how its file is read, and what its table must be."""

    path: str  # below UCI
    read: Callable[[str], Table]
    checksum: str

    @property
    def file(self) -> str:
        return self.path.rsplit("/", 1)[-1]


def read_prepared(text: str) -> Table:
    """A CSV whose columns feature_* hold numbers and whose column label holds the class; others are passed over."""
    header, *rows = lines_of(text, ",")
    columns = [i for i, name in enumerate(header) if name.startswith("feature_")]
    return table([[row[i] for i in columns] for row in rows], [row[header.index("label")] for row in rows])


def read_abalone(text: str) -> Table:
    """Sex, seven measures, rings; sex is coded M = 0, I = .5, F = 1."""
    rows = lines_of(text, ",")
    return table([[str(SEX[row[0]]), *row[1:8]] for row in rows], [row[8] for row in rows])


def read_ecoli(text: str) -> Table:
    """Name of the sequence, seven features, site of the protein."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return table([row[1:8] for row in rows], [row[8] for row in rows])


def read_glass(text: str) -> Table:
    """Number of the sample, refractive index and eight oxides, type of glass."""
    rows = lines_of(text, ",")
    return table([row[1:10] for row in rows], [row[10] for row in rows])


def read_winequality(text: str) -> Table:
    """Eleven measures and the quality, under a header."""
    rows = lines_of(text, ";")[1:]
    return table([row[:11] for row in rows], [row[11] for row in rows])


def read_algerian(text: str) -> Table:
    """Day, month, year, ten measures and the class, one part for each of two regions.

    Two things are done as in the paper's copy, so that its numbers come out: its two last rows stand first; and the
    row of 14 July of the second region, which the public file breaks ("14.6 9" in one field and none for FWI), reads
    DC, ISI, BUI, FWI = 14.69, 12.5, 10.4, 2.5. It should be 14.6, 9, 12.5, 10.4; no printed digit depends on it.
    """
    rows = [row for row in lines_of(text, ",") if row[0].isdigit()]
    rows = [row if row[13:14] in (["fire"], ["not fire"]) else [*row[:9], *BROKEN_ROW, "fire"] for row in rows]
    rows = rows[-2:] + rows[:-2]
    return table([row[:13] for row in rows], [row[13].replace(" ", "_") for row in rows])


def lines_of(text: str, delimiter: str) -> list[list[str]]:
    """Fields without the blanks around them, line by line; empty lines are passed over."""
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    return [[field.strip() for field in line] for line in lines if any(field.strip() for field in line)]


def table(features: list[list[str]], labels: list[str]) -> Table:
    """Text as numbers; labels are integers where all of them are."""
    whole = all(label.lstrip("-").isdigit() for label in labels)
    return Table(np.array(features, dtype=np.float64), [int(x) for x in labels] if whole else labels)


CHECKSUMS = {
    "abalone": "40ae2f97402c90197035a313cf6ca52f0568ac30153033ed7a8b11eca20fb30e",
    "algerian": "9047ecd2084a8e8ab13a1842ab753da63a05d52f862dbc8ebc01440ee354b906",
    "ecoli": "7a2622e2adb88fb4725dc06167d1630dd9797e1e366fd2591bb9b4766864a59b",
    "glass": "d26bdc73a3c03246dc282c5b28f78f53e425ec50539138b4b5ec2a6755841aaf",
    "winequality": "4fda14098a0765e1b8a551d6552f734f3e337324e4d0f07d125e8263c00bad1f",
}
SOURCES = {
    name: Source(path, read, CHECKSUMS[name])
    for name, (path, read) in {
        "abalone": ("abalone/abalone.data", read_abalone),
        "algerian": ("00547/Algerian_forest_fires_dataset_UPDATE.csv", read_algerian),
        "ecoli": ("ecoli/ecoli.data", read_ecoli),
        "glass": ("glass/glass.data", read_glass),
        "winequality": ("wine-quality/winequality-red.csv", read_winequality),
    }.items()
}
