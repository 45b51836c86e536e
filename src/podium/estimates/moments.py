"""Centred sums of row terms that merge with `+`: all that estimates and paired differences need of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np

from podium.data.columns import Codes, Floats, group_sums


@dataclass(frozen=True, eq=False)
class Moments:
    """Number of rows, mean (K,) and centred scatter (K, K) of their terms.

    The scatter is one Gram matrix; every paired variance is read off it:
    sum_n (x_n - mean x)^2 = S_ii + S_jj - 2 S_ij for the difference x = t_i - t_j.

    Examples
    --------
    >>> a, b = Moments.of(np.array([[1.0], [2.0]])), Moments.of(np.array([[6.0]]))
    >>> (a + b).mean, (a + b).scatter
    (array([3.]), array([[14.]]))
    """

    count: int
    mean: Floats
    scatter: Floats  # (K, K); its diagonal (K,) where columns are not paired

    @classmethod
    def of(cls, terms: Floats, paired: bool = True) -> Moments:
        """The moments of one batch (n, K)."""
        k = terms.shape[1]
        if not len(terms):
            return cls(0, np.zeros(k), np.zeros((k, k) if paired else k))
        mean = terms.mean(axis=0)
        centred = terms - mean
        return cls(len(terms), mean, centred.T @ centred if paired else np.einsum("nk,nk->k", centred, centred))

    def __add__(self, other: Moments) -> Moments:
        if not self.count or not other.count:
            return self if self.count else other
        total = self.count + other.count
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / total)
        square = np.outer(step, step) if self.scatter.ndim == 2 else step * step
        return Moments(total, mean, self.scatter + other.scatter + square * (self.count * other.count / total))

    @property
    def squares(self) -> Floats:
        """(K,) the centred sum of squares of each column."""
        return np.diag(self.scatter) if self.scatter.ndim == 2 else self.scatter


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums (J, K) of the row terms of each group, and the sizes (J,) of the groups: their rows, or weights of rows."""

    sizes: Floats
    sums: Floats

    @classmethod
    def of(cls, terms: Floats, groups: Codes, n_groups: int, weights: Floats | None = None) -> GroupSums:
        sums = np.column_stack([group_sums(groups, column, n_groups) for column in terms.T])
        return cls(np.bincount(groups, weights, n_groups).astype(float), sums)

    def __add__(self, other: GroupSums) -> GroupSums:
        return GroupSums(self.sizes + other.sizes, self.sums + other.sums)

    def present(self) -> GroupSums:
        """The groups that hold any row."""
        held = self.sizes > 0
        return GroupSums(self.sizes[held], self.sums[held])

    def moved(self, step: Floats) -> GroupSums:
        """The sums of terms (K,) that are all larger by a step."""
        return GroupSums(self.sizes, self.sums + self.sizes[:, None] * step)

    def times(self, factor: float) -> GroupSums:
        """The sums of terms in another unit."""
        return GroupSums(self.sizes, factor * self.sums)

    def scatter(self) -> Floats:
        """Scatter (K, K) of the groups' deviations from what their size leads to expect."""
        mean = self.sums.sum(axis=0) / self.sizes.sum()
        deviation = self.sums - self.sizes[:, None] * mean
        scatter: Floats = deviation.T @ deviation
        return scatter


Part = TypeVar("Part", Moments, GroupSums)


def merge(parts: Iterable[Part]) -> Part:
    """All batches together, in the order given."""
    return reduce(add, parts)
