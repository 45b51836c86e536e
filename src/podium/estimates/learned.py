"""Baselines that learn from a log: models of the reward, cross-fitted, and the mean reward of neighbouring states.

No row is predicted by a model that saw it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column, Floats, combine_codes, factorize, group_sums, to_array
from podium.data.errors import BaselineRefused, PodiumError
from podium.data.log import Log
from podium.data.owned import ask
from podium.data.scales import EPSILON, near_one, standard_columns
from podium.estimates.baselines import BaselineRows

NEIGHBOURS = 10
SAME_DISTANCE = 1e-9  # distances that differ by less, relatively, differ by rounding alone
MOST_BLUR = 1e-6  # standard deviations; numbers that rounding blurs more are taken as they are
SEARCHED = 2  # times as many states are searched as there are neighbours, since several may be equally near
ROUNDING = 1e-9  # relative to what it came from, a spread or a singular value this small is rounding
FOLDS = 5
MOST_INPUTS = 125_000_000  # numbers that a learned baseline is fitted on: a gigabyte
MOST_ASKED = 50_000_000_000  # numbers that it is asked about, over all actions


@dataclass(frozen=True, eq=False)
class Encoder:
    """Numbers that describe states: numeric columns as they are, texts as one 0/1 column per value."""

    levels: Mapping[str, Column | None]  # column -> its texts; None for numbers

    @classmethod
    def of(cls, log: Log, most_texts: int = 1_000, drop: bool = False) -> Encoder:
        """Columns of more than `most_texts` texts are refused, or left out."""
        levels: dict[str, Column | None] = {}
        for header, column in log.state_columns.items():
            texts = None if column.dtype.kind in "iufb" else factorize(column)[1]
            if texts is None or len(texts) <= most_texts:
                levels[header] = texts
            elif not drop:
                raise BaselineRefused(
                    f"column {header!r} has {len(texts):,} different texts, too many for a learned baseline",
                    hint='use baseline="state", which averages rows of the same text.',
                )
        return cls(levels)

    def features(self, log: Log) -> Floats:
        """(N, d); a text that was not there when the levels were read is none of them."""
        parts = []
        for header, texts in self.levels.items():
            column = log.state_columns[header]
            if texts is None:
                parts.append(column.astype(np.float64)[:, None])
                continue
            place = {text: i for i, text in enumerate(texts)}
            codes = np.fromiter((place.get(x, -1) for x in column), np.int64, len(column))
            parts.append((codes[:, None] == np.arange(len(texts))).astype(np.float64))
        return np.hstack(parts) if parts else np.zeros((len(log), 0))


def state_features(log: Log) -> Floats:
    """(N, d) numbers that describe the states of a log."""
    return Encoder.of(log).features(log)


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """A model fitted on the rows of a log, once for each fold of them without that fold, and once on all.

    It predicts rewards from the features of states (`Encoder`), one 0/1 column per action, and the features of the
    actions where they are known.
    """

    encoder: Encoder
    actions: int
    folds: tuple[Any, ...]  # the model without each fold
    fold: Codes  # (n,) of the rows that it was fitted on
    whole: Any  # the model of all of them; None where only these rows are asked for
    described: Floats  # (A, f) features of the actions; f may be 0

    @classmethod
    def fit(cls, model: Any, log: Log, rows: Codes, seed: int, whole: bool = False) -> CrossFitted:
        """Rows of one unit share a fold."""
        fold, folds = assign_folds(log, rows, seed)
        encoder = Encoder.of(log)
        features = encoder.features(log)[rows]
        known = log.action_features
        described = np.zeros((log.n_actions, 0)) if known is None else standard_columns(known.matrix)
        refuse_many_actions(len(rows), features.shape[1] + described.shape[1], log.n_actions)
        inputs = np.hstack([features, np.zeros((len(rows), log.n_actions)), described[log.action_codes[rows]]])
        inputs[np.arange(len(rows)), features.shape[1] + log.action_codes[rows]] = 1.0
        rewards = log.rewards[rows]
        models = tuple(clone(model, seed) for _ in range(folds))
        for k, fitted in enumerate(models):
            fit(fitted, inputs[fold != k], rewards[fold != k])
        everything = clone(model, seed) if whole else None
        if everything is not None:
            fit(everything, inputs, rewards)
        return cls(encoder, log.n_actions, models, fold, everything, described)

    def predict(self, log: Log, fold: Codes) -> BaselineRows:
        """On the rows of a log, each by the model without its fold, or by that of all rows where its fold is -1."""
        features = self.encoder.features(log)
        matrix = np.empty((len(log), self.actions))
        for k, model in [*enumerate(self.folds), (-1, self.whole)]:
            some = fold == k
            if not some.any():
                continue
            inputs = np.hstack([features[some], np.zeros((int(some.sum()), self.actions + self.described.shape[1]))])
            for a in range(self.actions):
                indicator = inputs[:, features.shape[1] + a]
                indicator[:] = 1.0
                inputs[:, features.shape[1] + self.actions :] = self.described[a]
                matrix[some, a] = predict(model, inputs)
                indicator[:] = 0.0
        return BaselineRows(matrix[np.arange(len(log)), log.action_codes], matrix)


def assign_folds(log: Log, rows: Codes, seed: Any) -> tuple[Codes, int]:
    """(n,) the fold of each row, units staying whole, and how many folds there are."""
    groups = np.arange(len(rows)) if log.units is None else factorize(log.units[rows])[0]
    n_groups = int(groups.max()) + 1
    if n_groups < 2:
        raise BaselineRefused(
            f"a learned baseline needs at least 2 {'rows' if log.units is None else 'units'}",
            hint='use baseline="mean" or a number.',
        )
    folds = min(FOLDS, n_groups)
    return (np.random.default_rng(seed).permutation(n_groups) % folds)[groups], folds


def cross_fit(model: Any, log: Log, rows: Codes, seed: int) -> BaselineRows:
    """Predict each row by a copy of the model fitted on other folds."""
    fitted = CrossFitted.fit(model, log, rows, seed)
    return fitted.predict(log.take(rows), fitted.fold)


def refuse_many_actions(rows: int, features: int, actions: int) -> None:
    """A model sees one 0/1 column per action, and is asked for every action in every row."""
    cells = rows * (features + actions)
    if cells > MOST_INPUTS or cells * actions > MOST_ASKED:
        raise BaselineRefused(
            f"{actions:,} actions are too many for a learned baseline, which has a column for each of them",
            hint='use baseline="mean" or "state", or a function q(states, actions).',
        )


def clone(model: Any, seed: int = 0) -> Any:
    """An unfitted copy; what it draws at random depends on the seed alone."""
    if hasattr(model, "get_params") and hasattr(model, "__sklearn_clone__"):
        from sklearn.base import clone as sklearn_clone

        twin = sklearn_clone(model)
        unset = [name for name, x in twin.get_params().items() if name.endswith("random_state") and x is None]
        return twin.set_params(**dict.fromkeys(unset, seed % 2**32)) if unset else twin
    return copy.deepcopy(model)


def fit(model: Any, inputs: Floats, rewards: Floats) -> None:
    """Fit a baseline model; what it raises is told with its name."""
    asked_of(model, "fit", inputs, rewards)


def predict(model: Any, inputs: Floats) -> Floats:
    """(n,) what a baseline model predicts, checked."""
    answer = to_array(asked_of(model, "predict", inputs))
    if answer.size != len(inputs) or answer.dtype.kind not in "iufb":
        raise PodiumError(
            f"the baseline model {type(model).__name__} must predict {len(inputs)} numbers; it gave "
            f"{answer.dtype} of shape {answer.shape}",
            hint="check the model on these rewards: predict(X) gives one number per row of X.",
        )
    if not np.isfinite(answer).all():
        hint = "check the model on these rewards."
        raise PodiumError("the baseline model predicts numbers that are not finite", hint=hint)
    return answer.astype(np.float64, copy=False).reshape(-1)


def asked_of(model: Any, verb: str, *arguments: Floats) -> Any:
    try:
        return ask(getattr(model, verb), *arguments)
    except PodiumError:
        raise
    except (Exception, SystemExit) as error:
        shape = " x ".join(map(str, arguments[0].shape))
        raise PodiumError(
            f"the baseline model {type(model).__name__} failed in {verb}: {type(error).__name__}: {error}",
            hint=f"it was called with an array of {shape}: state features, then one 0/1 column per action.",
        ) from error


class LeastSquares:
    """Ordinary least squares with an intercept; the shortest solution where several fit equally well.

    Columns that are constant, and combinations of columns that are 0, are so only up to rounding: what is that small
    counts as nothing.
    """

    def fit(self, features: Floats, rewards: Floats) -> LeastSquares:
        self.centre, self.level = features.mean(axis=0), float(rewards.mean())
        spread = features.std(axis=0)
        varies = spread > ROUNDING * np.abs(features).max(axis=0)
        self.scale = np.where(varies, spread, np.inf)
        standard = (features - self.centre) / self.scale
        self.weights, *_ = np.linalg.lstsq(standard, rewards - self.level, rcond=ROUNDING)
        return self

    def predict(self, features: Floats) -> Floats:
        answer: Floats = self.level + ((features - self.centre) / self.scale) @ self.weights
        return answer


def neighbour_means(log: Log, neighbours: int = NEIGHBOURS) -> Floats:
    """(N,) mean reward of the about 10 nearest other rows in state; never the row's own reward.

    Nearest states are added whole, and states at the same distance together, until they hold 10 other rows. Text
    columns must match: rows of the same texts are neighbours, by distance in the numeric columns (standardised); a
    row without neighbours gets the leave-one-out mean of all rows. With `neighbours=0` only rows of the same state
    count.
    """
    rewards, states = log.rewards, log.state_codes
    if len(log) == 1:
        return rewards.copy()
    centre = rewards.mean()
    counts = np.bincount(states).astype(float)
    sums = group_sums(states, rewards - centre, log.n_states)
    numeric = [c for c in log.state_columns.values() if c.dtype.kind in "iufb"]
    if numeric and neighbours:
        texts = [c for c in log.state_columns.values() if c.dtype.kind not in "iufb"]
        raw = np.column_stack([c[log.first_rows].astype(np.float64) for c in numeric])
        points, blur = standardise(raw)
        texts = [c[log.first_rows] for c in texts]
        counts, sums = add_nearest_states(points, texts, counts, sums, neighbours, blur)
    others, total = counts[states] - 1, sums[states] - (rewards - centre)
    everyone = -(rewards - centre) / (len(log) - 1)  # the leave-one-out mean of all rows, centred
    means: Floats = centre + np.where(others > 0, total / np.maximum(others, 1), everyone)
    return means


def standardise(columns: Floats) -> tuple[Floats, float]:
    """(S, d) columns of mean 0 and sd 1, and how far apart distances of such points may be by rounding alone.

    Another unit or zero point of a column rounds its numbers anew, by a share of their size and not of their spread.
    """
    scaled = near_one(columns)
    above = scaled - scaled.min(axis=0)  # exact where the zero point is far away
    width = above.max(axis=0)
    above = above / np.where(width > 0, width, 1.0)
    scale = np.where(width > 0, above.std(axis=0), 1.0)
    points: Floats = (above - above.mean(axis=0)) / scale
    size = np.divide(np.abs(scaled).max(axis=0), width * scale, out=np.zeros_like(width), where=width > 0)
    return points, min(4 * EPSILON * float(np.linalg.norm(size)), MOST_BLUR)


def add_nearest_states(
    points: Floats, texts: list[Any], counts: Floats, sums: Floats, neighbours: int, blur: float = 0.0
) -> tuple[Floats, Floats]:
    """Counts and sums (S,) over each state and as many nearest states as hold `neighbours` other rows, or more where
    several are equally near; distances that differ by no more than `blur` are equal."""
    from scipy.spatial import cKDTree

    new_counts, new_sums = counts.copy(), sums.copy()
    parts = [factorize(t) for t in texts]
    block = combine_codes([(c, len(d)) for c, d in parts]) if parts else np.zeros(len(points), dtype=np.int64)
    for members in np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1]):
        k = min(SEARCHED * (neighbours + 1), len(members))
        tree, rows = cKDTree(points[members]), np.arange(len(members))
        apart, near = map(np.asarray, tree.query(points[members], k=[*range(1, k + 1)]))
        enough = np.cumsum(counts[members][near], axis=1) - 1 >= neighbours
        last = np.where(enough.any(axis=1), enough.argmax(axis=1), k - 1)
        # Which of several states at one distance comes first is left to rounding, so all of them are taken.
        reach = apart[rows, last] * (1 + SAME_DISTANCE) + blur
        taken = apart <= reach[:, None]
        new_counts[members] = (counts[members][near] * taken).sum(axis=1)
        new_sums[members] = (sums[members][near] * taken).sum(axis=1)
        if k < len(members):
            for row in np.flatnonzero(taken[:, -1]):  # there may be more at that distance than were searched
                around = members[tree.query_ball_point(points[members[row]], reach[row], return_sorted=True)]
                new_counts[members[row]], new_sums[members[row]] = counts[around].sum(), sums[around].sum()
    return new_counts, new_sums
