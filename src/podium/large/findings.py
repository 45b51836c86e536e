"""From the sums of a large log to its estimates, its gates and the coverage of its policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.columns import Codes, Floats
from podium.engines.sums import ELSEWHERE, Sums, family
from podium.errors import Unavailable
from podium.estimate import MethodResult, without_noise
from podium.estimators import DRE, LDE, Estimator
from podium.large import Large
from podium.moments import GroupSums, Moments
from podium.policies import PolicySet
from podium.terms import no_propensities
from podium.verdicts.gated import Path, looks_uniform
from podium.verdicts.pairs import degrees_of_freedom, pair_indices, pair_power_sums, pair_variance
from podium.verdicts.unseen import Weights


def kept_by(estimator: Estimator, duplicates: str | None) -> str:
    return duplicates or estimator.duplicates


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Pairs of K policies from columns of gaps, with those that are nearly equal from columns of their own."""

    policies: int
    near: tuple[tuple[int, int], ...]

    @cached_property
    def index(self) -> tuple[Codes, Codes]:
        return pair_indices(self.policies)

    @cached_property
    def places(self) -> list[int]:
        """Where each near pair stands among all pairs."""
        order = {(int(i), int(j)): n for n, (i, j) in enumerate(zip(*self.index, strict=True))}
        return [order[pair] for pair in self.near]

    def gaps(self, columns: Floats) -> Floats:
        """(P,) differences of the columns (K + E,)."""
        i, j = self.index
        found = columns[i] - columns[j]
        found[self.places] = columns[self.policies :]
        return found

    def squares(self, gram: Floats, near: Floats) -> Floats:
        """(P,) sums of squared differences, from products (K, K) and the near pairs' own squares (E,)."""
        found = pair_variance(gram, *self.index)
        found[self.places] = near
        return found

    def fourths(self, add: dict[str, Floats], name: str) -> Floats:
        """(P,) sums of fourth powers of differences."""
        i, j = self.index
        g22, g13 = add[f"{name} 22"], add[f"{name} 13"]
        found = g22[i, i] + g22[j, j] + 6 * g22[i, j] - 4 * g13[i, j] - 4 * g13[j, i]
        found[self.places] = add[f"{name} near 4"]
        return np.maximum(found, 0)


@dataclass(frozen=True, eq=False)
class Findings:
    """All that the sums of one pass say."""

    large: Large
    sums: Sums

    @property
    def policies(self) -> PolicySet:
        return self.large.policies

    @property
    def knows(self) -> str:
        return self.large.knows

    @property
    def many(self) -> bool:
        return True

    @property
    def left_out(self) -> float:
        return float(self.sums.add["single"]) / self.large.rows if self.knows == "none" else 0.0

    @cached_property
    def pairs(self) -> Pairwise:
        return Pairwise(len(self.policies), self.large.near)

    def kept(self, rule: str) -> int:
        return round(float(self.sums.add["kept" if rule == "latest" else "rows"]))

    @property
    def states(self) -> int | None:
        return round(float(self.sums.add["states"])) if "states" in self.sums.add else None

    # --- estimates -----------------------------------------------------------------------------------------------

    def mean_reward(self, rule: str) -> float:
        """Of the rows kept."""
        if rule == "all":
            return self.large.centre
        return self.large.centre + self.large.size * float(self.sums.add["kept_x"]) / self.kept(rule)

    def constant(self, estimator: Estimator, rule: str) -> float | None:
        """The number that an estimator takes as its baseline; None where it is none."""
        if not estimator.uses_baseline:
            return 0.0
        if self.large.baseline == "mean":
            return self.mean_reward(rule)
        return None if isinstance(self.large.baseline, str) else self.large.baseline

    def method(self, estimator: Estimator, duplicates: str | None) -> MethodResult:
        """Estimates by one method; differences with errors where the pass was asked for its row terms."""
        if estimator.uses_propensity and self.knows == "none":
            raise no_propensities(estimator)
        rule = kept_by(estimator, duplicates)
        n, k, size = self.kept(rule), len(self.policies), self.large.size
        shared, level, gaps = self.levels(estimator, rule)
        gaps, level = gaps / n, level / n
        centred = level + gaps[:k]
        i, j = self.pairs.index
        difference, error = np.zeros((k, k)), np.full((k, k), np.nan)
        pair_gaps = self.pairs.gaps(gaps)
        samples, pieces = n, None
        terms = self.sums.moments.get(f"{estimator.name} terms")
        if isinstance(terms, Moments):
            pair_gaps = self.pairs.gaps(terms.mean)
            spread = self.pairs.squares(terms.scatter[:k, :k], np.diag(terms.scatter)[k:])
            groups = self.sums.moments.get(f"{estimator.name} pieces")
            if isinstance(groups, GroupSums):
                pieces = GroupSums(groups.sizes, groups.sums[:, :k])
                if self.large.units:
                    whole = groups.scatter()
                    present = groups.sizes > 0
                    samples, pieces = int(present.sum()), GroupSums(groups.sizes[present], pieces.sums[present])
                    spread = self.pairs.squares(whole[:k, :k], np.diag(whole)[k:])
            factor = samples / ((samples - 1) * n**2) if samples > 1 else np.nan
            error[i, j] = error[j, i] = np.sqrt(spread * factor)
        difference[i, j], difference[j, i] = pair_gaps, -pair_gaps
        scale = max(size, float(np.abs(centred).max()))
        own, samples = self.own_error(estimator, rule, samples)
        values = without_noise(shared + centred, scale + abs(shared))
        return MethodResult(
            estimator, values, centred, scale, difference, error, n, samples, None, pieces, own_error=own
        )

    def own_error(self, estimator: Estimator, rule: str, samples: int) -> tuple[Floats | None, int]:
        """(K,) standard errors of the values themselves, where the pass was asked for them, and how many rows or units
        they rest on.

        A row moves a value by (r - rhat) w, and the mean reward, where that is rhat, by 1 - mean(w) times as much.
        """
        constant = self.constant(estimator, rule)
        name = f"{family(estimator.uses_propensity, rule)} own" + ("" if constant is not None else " based")
        if constant is None and self.large.baseline == "state":
            name = f"{estimator.name} own"
        found = self.sums.moments.get(name)
        if found is None:
            return None, samples
        n, k, size = self.kept(rule), len(self.policies), self.large.size
        if isinstance(found, GroupSums):
            samples, scatter, mean = int((found.sizes > 0).sum()), found.scatter(), found.sums.sum(axis=0) / n
        else:
            scatter, mean = found.scatter, found.mean
        if samples < 2:
            return np.full(k, np.nan), samples
        mix, noise = np.eye(k), np.zeros(k)
        if constant is not None:
            weights = np.sqrt(mean[k : 2 * k] ** 2 + np.diag(scatter)[k : 2 * k] / n)  # root mean square
            moved = estimator.uses_baseline and self.large.baseline == "mean"
            mix = np.zeros((2 * k + 1, k))
            mix[:k], mix[k : 2 * k] = np.eye(k), np.eye(k) * (self.large.centre - constant) / size
            mix[2 * k] = 1 - mean[k : 2 * k] if moved else 0.0
            noise = self.large.largest / size * (weights + moved)
        spread = np.sqrt(np.maximum(np.einsum("ak,ab,bk->k", mix, scatter, mix), 0.0))
        error = size * np.sqrt(samples / (samples - 1)) * without_noise(spread, noise * np.sqrt(n)) / n
        return error, samples

    def levels(self, estimator: Estimator, rule: str) -> tuple[float, float, Floats]:
        """What all policies share, and the sums over rows of policy 0's terms and of all gaps to it."""
        large, add = self.large, self.sums.add
        name = family(estimator.uses_propensity, rule)
        constant = self.constant(estimator, rule)
        if constant is not None:
            sums = large.size * add[f"{name} x"] + (large.centre - constant) * add[f"{name} 1"]
            return constant, float(sums[0]), sums[1:]
        n = self.kept(rule)
        if large.baseline == "model":
            based = large.size * add[f"{name} based"]
            level = float(add[f"{name} based level"]) / n
            depends = f"{name} averages" in add
            return (0.0 if depends else level), float(based[0]), based[1:]
        if (estimator, rule) not in ((LDE, "latest"), (DRE, "all")):
            raise Unavailable(
                f'the baseline "state" with duplicates="{rule}" is for logs of up to 20,000 rows',
                hint="leave duplicates out.",
            )
        path = estimator.name
        left = add["kept residual"][0] if rule == "latest" else add["T_p"][2]
        shared = self.mean_reward(rule) - large.size * float(left) / n
        return shared, large.size * float(add[f"{path} level"]), large.size * add[f"{path} 1"]

    # --- gates -----------------------------------------------------------------------------------------------------

    @cached_property
    def t_p(self) -> float:
        """t statistic of the correlation of log p and the residual."""
        n = self.large.rows
        if self.knows == "none" and looks_uniform(self.large.counts):
            return 0.0
        x, xx, y, yy, xy = self.sums.add["T_p"]
        sxx, syy, sxy = xx - x * x / n, yy - y * y / n, xy - x * y / n
        if n < 8 or sxx <= 1e-24 * n or syy <= 1e-24 * n:
            return 0.0
        r = float(np.clip(sxy / np.sqrt(sxx * syy), -1 + 1e-12, 1 - 1e-12))
        return r * float(np.sqrt((n - 2) / (1 - r * r)))

    @cached_property
    def z_b(self) -> Floats:
        """(P,) how far LDE and DRE are apart, in standard errors."""
        add, n = self.sums.add, self.large.rows
        if self.knows == "none":
            return np.zeros(len(self.pairs.index[0]))
        gap = self.pairs.gaps(add["z_b"])
        scatter = np.maximum(self.pairs.squares(add["z_b2"], add["z_b2 near"]) - gap**2 / n, 0)
        error = np.sqrt(scatter / max(n - 1, 1) / n)
        z: Floats = np.divide(gap / n, error, out=np.zeros(len(gap)), where=error > 0)
        if not (self.knows == "full" and self.large.full):
            return z
        seen = self.pairs.squares(add["factor2"], add["factor2 near"])
        expected = self.pairs.squares(add["H disagreement"], add["H disagreement near"])
        share = np.divide(seen, expected, out=np.ones(len(gap)), where=expected > 0)
        return np.asarray(z * np.sqrt(np.minimum(1.0, share)), dtype=np.float64)

    @cached_property
    def lde(self) -> Path:
        return self.path("LDE", self.kept("latest"), LDE.reward_units(self.large.actions, self.policies.proxies))

    @cached_property
    def dre(self) -> Path | None:
        return None if self.knows == "none" else self.path("DRE", self.large.rows, 1.0)

    @cached_property
    def weights(self) -> Weights | None:
        """What may be missing of each policy; None where all probabilities are known, or none."""
        if self.knows == "none" or (self.knows == "full" and self.large.full):
            return None
        add, top = self.sums.add, self.sums.top
        return Weights(self.policies.names, self.large.rows, add["weight"], add["weight2"], top["weight"])

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """(P,) pairs of policies that play no action that was never logged in the same state."""
        i, j = self.pairs.index
        hidden = self.proxies | (np.sqrt(self.sums.add["unseen"] / self.large.rows) > ELSEWHERE)
        return np.asarray(~(hidden[i] | hidden[j]))

    @cached_property
    def by_log(self) -> NDArray[np.bool_]:
        """(P,) pairs whose error by DRE has to come from the weights."""
        i, j = self.pairs.index
        if self.weights is None or self.knows == "estimated":
            return np.zeros(len(i), dtype=bool)
        return ~(self.shown | self.proxies[i] | self.proxies[j])

    @property
    def proxies(self) -> NDArray[np.bool_]:
        return np.array([p.proxy for p in self.policies], dtype=bool)

    @property
    def doubts(self) -> tuple[str, ...]:
        """(P,) why such a pair's error cannot be had from them; "" where it can."""
        i, j = self.pairs.index
        each = [""] * len(self.policies) if self.weights is None else self.weights.doubts
        return tuple((each[a] or each[b]) if by else "" for a, b, by in zip(i, j, self.by_log, strict=True))

    def path(self, name: str, n: int, units: float) -> Path:
        """Differences and errors by LDE or DRE with the leave-one-out mean of the state as baseline."""
        add, k, large = self.sums.add, len(self.policies), self.large
        size, own = large.size * units, (LDE if name == "LDE" else DRE).reward_units(large.actions)
        total = add[f"{name} 1"]
        clusters = self.states or 0
        second = self.pairs.squares(add[f"{name} 11"], add[f"{name} near 2"])
        found = [self.clustered(self.pairs.gaps(total), second, self.pairs.fourths(add, name), clusters)]
        groups = self.sums.moments.get(f"{name} units")
        if isinstance(groups, GroupSums):
            sums = groups.sums[groups.sizes > 0]
            i, j = self.pairs.index
            second, fourth = pair_power_sums(sums[:, :k], i, j)
            for column, place in enumerate(self.pairs.places):
                square = sums[:, k + column] ** 2
                second[place], fourth[place] = square.sum(), square @ square
            found.append(self.clustered(self.pairs.gaps(total), second, fourth, len(sums)))
            clusters = min(clusters, len(sums))
        return Path(
            difference=size * self.pairs.gaps(total) / n,
            empirical=size * np.max([error for error, _ in found], axis=0) / n,
            design=large.size * self.design(name, n) * (units / own),
            freedom=np.min([freedom for _, freedom in found], axis=0),
            rows=n,
            clusters=clusters,
            values=size * (float(add[f"{name} level"]) + total[:k]) / n + large.centre,
            by_log=self.by_log if name == "DRE" else None,
            doubts=self.doubts if name == "DRE" else (),
        )

    def clustered(self, gap: Floats, second: Floats, fourth: Floats, clusters: int) -> tuple[Floats, Floats]:
        """(P,) standard error times the rows, and degrees of freedom."""
        centred = np.maximum(second - gap**2 / max(clusters, 1), 0)
        error = np.sqrt(clusters / max(clusters - 1, 1) * centred)
        return error, degrees_of_freedom(second, fourth, clusters)

    def design(self, name: str, n: int) -> Floats:
        """(P,) the error that the policies imply, in units of `size`."""
        add, large, rows = self.sums.add, self.large, self.large.rows
        if name == "LDE":
            total, squares = add["kept residual"]
            variance = max(float(squares / n - (total / n) ** 2), 0.0)
            if large.full:
                implied = self.pairs.squares(add["H LDE"], add["H LDE near"]) / rows
            else:
                i, j = self.pairs.index
                unseen = add["unseen"]
                seen = self.pairs.squares(add["seen"], add["seen near"])
                implied = large.actions * (seen + unseen[i] + unseen[j]) / rows
            return np.asarray(np.sqrt(variance * implied / n))
        if self.weights is None:
            implied = self.pairs.squares(add["H DRE"], add["H DRE near"]) / rows
        else:
            implied = np.where(self.by_log, n * self.weights.errors(*self.pairs.index) ** 2, np.nan)
            if self.shown.any():
                implied[self.shown] = self.pairs.squares(add["seen/p"], add["seen/p near"])[self.shown] / rows
        return np.asarray(np.sqrt(large.variance / large.size**2 * implied / n))

    # --- coverage ------------------------------------------------------------------------------------------------

    def covered(self) -> Findings:
        """These with gates and coverage; by a pass of its own where the first one was not asked for them."""
        if "terms" in self.sums.add and "T_p" in self.sums.add:
            return self
        large = replace(self.large)  # a pass may find more pairs that are nearly equal
        return Findings(large, large.ask(large.question(states=True, gates=True, coverage=True), "trust panel"))

    def coverage(self, k: int) -> dict[str, Any]:
        """The trust panel's figures of one policy."""
        add, top, n = self.sums.add, self.sums.top, self.large.rows
        total, squares, terms = float(add["weight"][k]), float(add["weight2"][k]), float(add["terms"][k])
        proxy = self.policies.policies[k].proxy
        return {
            "name": self.policies.names[k],
            "mass_on_logged": float(add["mass" if proxy else "mass at most 1"][k]) / n,
            "ess": total**2 / squares if squares > 0 else 0.0,
            "max_weight": float(top["weight"][k]) / (total / n) if total > 0 else 0.0,
            "top_row_share": float(top["terms"][k]) / terms if terms > 0 else 0.0,
        }

    def warnings(self) -> list[str]:
        """Policies that differ between rows of one (state, action)."""
        from podium.errors import count

        found = self.sums.add.get("conflicts", np.zeros(len(self.policies)))
        return [
            f"policy {name!r} has different probabilities in rows of one (state, action) ({count(int(rows), 'row')}): "
            "it depends on something that the state columns leave out."
            for name, rows in zip(self.policies.names, found, strict=True)
            if rows
        ]
