"""A mixture of t distributions for every pair: what is left when the size of effects is not known but integrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.columns import Floats

MOST_STEPS = 100  # towards a quantile; most take less than ten
CLOSE = 1e-13  # of the bracket: where the search ends


@dataclass(frozen=True, eq=False)
class Mixture:
    """(G, P) weights (which sum to 1 over G), means and scales of t distributions, with (P,) degrees of freedom."""

    weights: Floats
    means: Floats
    scales: Floats
    freedom: Floats

    @property
    def mean(self) -> Floats:
        return np.asarray((self.weights * self.means).sum(axis=0))

    def below(self, x: Floats) -> Floats:
        """(P,) the probability of a value below x."""
        from scipy.special import stdtr

        z = (x - self.means) / np.maximum(self.scales, 1e-300)
        return np.asarray(np.clip((self.weights * stdtr(self.freedom, z)).sum(axis=0), 0.0, 1.0))

    def density(self, x: Floats) -> Floats:
        """(P,) the density at x."""
        from scipy.special import gammaln

        nu, scales = self.freedom, np.maximum(self.scales, 1e-300)
        front = np.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2)) / np.sqrt(nu * np.pi)
        parts = front / scales * (1 + ((x - self.means) / scales) ** 2 / nu) ** (-(nu + 1) / 2)
        return np.asarray((self.weights * parts).sum(axis=0))

    def quantile(self, q: Floats) -> Floats:
        """(P,) the values below which lies a share q of each mixture: Newton's method between the parts' quantiles."""
        from scipy.special import stdtrit

        own = self.means + stdtrit(self.freedom, q) * self.scales
        low, high = own.min(axis=0), own.max(axis=0)
        close = CLOSE * np.maximum(high - low, np.abs(high) + np.abs(low))
        x = (self.weights * own).sum(axis=0)
        for _ in range(MOST_STEPS):
            gap = self.below(x) - q
            low, high = np.where(gap < 0, x, low), np.where(gap < 0, high, x)
            with np.errstate(all="ignore"):
                step = x - gap / self.density(x)
            there = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            if (np.abs(there - x) <= close).all():
                return np.asarray(there)
            x = there
        return np.asarray(x)

    def merged(self, size: int) -> Mixture:
        """The same with every `size` parts in a row as one part of their mean and variance; all, where they are few."""
        parts, pairs = self.weights.shape
        if parts <= size**2:
            return self
        weights, means, scales = (x.reshape(-1, size, pairs) for x in (self.weights, self.means, self.scales))
        total = weights.sum(axis=1)
        share = weights / np.maximum(total, 1e-300)[:, None]
        mean = (share * means).sum(axis=1)
        variance = (share * (scales**2 + (means - mean[:, None]) ** 2)).sum(axis=1)
        return Mixture(total, mean, np.sqrt(variance), self.freedom)

    def widened(self, added: Floats) -> Mixture:
        """The same with (P,) variances added to every part."""
        return Mixture(self.weights, self.means, np.sqrt(self.scales**2 + added), self.freedom)

    def scaled(self, factor: float) -> Mixture:
        return Mixture(self.weights, factor * self.means, factor * self.scales, self.freedom)
