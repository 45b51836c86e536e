"""Eligible actions of a log that is read in passes: its columns mean in every part what they mean in the whole log.

What separates labels, and which actions these name, is found out once for all rows; then any part is read by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats
from podium.data.eligible import SEPARATORS, Mask, PartOf, eligible_given, over_space, read_cells
from podium.data.errors import PodiumError
from podium.data.probabilities import AGREE


@dataclass(frozen=True)
class Listing:
    """How the columns of eligible actions are read.

    Parameters
    ----------
    name, headers : of the columns
    space : the actions that their labels are matched with: the logged ones, or those that were given
    separator : what separates labels in texts
    """

    name: str
    headers: tuple[str, ...]
    space: tuple[Any, ...]
    separator: str = SEPARATORS[0]

    @property
    def what(self) -> str:
        """The column, as messages name it."""
        return f"column {self.name!r}"

    def given(self, columns: Mapping[str, Column]) -> PartOf:
        """Those columns of some rows as `podium.Log` takes them."""
        return PartOf(eligible_given(columns, self.headers, self.name), self.space, self.separator)

    def mask(self, columns: Mapping[str, Column], actions: tuple[Any, ...]) -> Mask:
        """(n, A) truth values over an action space that holds every eligible action."""
        rows = len(columns[self.headers[0]])
        labels, cells, _ = read_cells(self.given(columns), self.space, rows, self.what)
        return over_space(labels, cells, actions)


@dataclass(frozen=True)
class Sets:
    """Which rows have the same eligible actions, told by a number that is the same in every part."""

    listing: Listing
    actions: tuple[Any, ...]

    def numbers(self, columns: Mapping[str, Column]) -> Codes:
        """(n,) a number for the set of each row: 64 bits of a digest of it."""
        packed = np.packbits(self.listing.mask(columns, self.actions), axis=1)
        distinct, codes = np.unique(packed, axis=0, return_inverse=True)
        digests = b"".join(blake2b(row.tobytes(), digest_size=8).digest() for row in distinct)
        return np.frombuffer(digests, dtype="<i8").astype(np.int64)[codes.ravel()]


@dataclass(frozen=True)
class Offers:
    """What a look at all rows tells of their eligible actions; parts add up with `+`.

    `even` says that each propensity is 1 over the number of eligible actions; `bad`, that a row breaks a rule.
    """

    labels: frozenset[Any] = frozenset()
    least: float = np.inf
    most: float = 0.0
    total: float = 0.0
    even: bool = True
    bad: bool = False

    def __add__(self, other: Offers) -> Offers:
        return Offers(
            self.labels | other.labels,
            min(self.least, other.least),
            max(self.most, other.most),
            self.total + other.total,
            self.even and other.even,
            self.bad or other.bad,
        )

    @classmethod
    def of(cls, listing: Listing, columns: Mapping[str, Column], actions: Column, p: Floats | None) -> Offers:
        """Of some rows with these actions and propensities."""
        try:
            labels, cells, _ = read_cells(listing.given(columns), listing.space, len(actions), listing.what)
        except PodiumError:
            return cls(bad=True)
        place = {label: j for j, label in enumerate(labels)}
        taken = np.array([place.get(x, -1) for x in actions.tolist()], dtype=np.int64)
        choices = cells.sum(axis=1)
        if taken.min() < 0 or not cells[np.arange(len(taken)), taken].all():  # then no row without actions is left
            return cls(bad=True)
        even = p is None or bool((np.abs(p - 1 / choices) <= AGREE).all())
        return cls(frozenset(labels), float(choices.min()), float(choices.max()), float(choices.sum()), even)
