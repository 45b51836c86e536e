"""Verdicts that a user may ask for by name: paired t, symmetric bootstrap-t and sign flips of one method."""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.data.facts import Fact
from podium.data.scales import unit_of
from podium.estimates.moments import GroupSums
from podium.estimates.results import FEW, TIE, MethodResult
from podium.outputs.display import share
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices

DRAWS = 2000
ROUNDING = 1e-12  # of the squares that cancel, what remains below this share is rounding
UNEVEN = 0.03  # shares of two policies' weights, taken by shrinking, that differ by more may make a difference
LABELS = {
    "paired t": "rows are independent and many enough for a t test; rare rows that matter may be unseen",
    "bootstrap t": "rows are independent and resemble those to come; rare rows that matter may be unseen",
    "sign flip": "without a difference, the rows' differences would be symmetric around 0",
}


def classical(main: MethodResult, units: float, procedure: str, seed: int) -> Judgement:
    """One of the classical procedures on the paired row terms of a method; `units` turns scores into rewards."""
    i, j = pair_indices(len(main.values))
    difference, error = units * main.difference[i, j], units * main.std_error[i, j]
    # A spread, or a difference, of rounding alone is none.
    flat = error * np.sqrt(main.samples) <= units * TIE * main.scale
    equal = np.abs(main.centred[i] - main.centred[j]) <= TIE * main.scale
    error = np.where((error > 0) & ~flat, error, np.nan)
    difference = np.where(flat & equal, 0.0, difference)
    reference = None
    if procedure != "paired t" and main.samples > 1:
        draw = bootstrap_t if procedure == "bootstrap t" else sign_flips
        reference = draw(main, seed)
        if main.effective is not None:  # resampling cannot know of heavy rows that it has not seen
            reference = reference * widening(np.minimum(main.freedom[i], main.freedom[j]), main.samples)[:, None]
    silent = [
        no_claim(main, int(a), int(b)) or ("" if np.isfinite(e) else no_spread(main.samples, d))
        for a, b, d, e in zip(i, j, difference, error, strict=True)
    ]
    return Judgement(
        procedure=procedure,
        difference=difference,
        std_error=error,
        freedom=np.minimum(main.freedom[i], main.freedom[j]),
        path=(main.estimator.name,) * len(i),
        silent=tuple(silent),
        values=units * main.values,
        reference=reference,
        assumes=f"{main.estimator.assumes}; {LABELS[procedure]}",
    )


def widening(freedom: Floats, samples: int) -> Floats:
    """(P,) how much further a t distribution with few degrees of freedom reaches than one with as many as rows."""
    from scipy.special import stdtrit

    wider: Floats = np.asarray(stdtrit(freedom, 0.975) / stdtrit(samples - 1.0, 0.975), dtype=np.float64)
    return wider


def no_claim(main: MethodResult, a: int, b: int) -> str:
    """Why the error of a method cannot support a claim of a pair; nothing if it can."""
    if main.effective is not None and (few := min(main.effective[a], main.effective[b])) < FEW:
        return Fact("few effective rows", effective=float(few))
    if main.estimator.rule == "none":
        return Fact("error of a model", method=main.estimator.name)
    if main.removed is not None and abs(main.removed[a] - main.removed[b]) > UNEVEN:
        taken = " and ".join(share(float(main.removed[k])) for k in (a, b))
        return Fact("uneven shrinking", method=main.estimator.name, taken=taken)
    return ""


def no_spread(samples: int, difference: float) -> str:
    """Why nothing can be said without spread."""
    return Fact("single row" if samples < 2 else "equal scores" if difference == 0 else "same difference in every row")


def pieces_of(main: MethodResult) -> GroupSums:
    """What is resampled: rows, units, or random groups of them."""
    if main.pieces is None:
        raise ValueError("the method was run without pieces")
    return main.pieces


def bootstrap_t(main: MethodResult, seed: int) -> Floats:
    """(P, B) |t*| of resampled pieces (rows, units, or buckets of them), studentised draw by draw."""
    sums = pieces_of(main)
    sums = GroupSums(sums.sizes, sums.sums / unit_of(float(np.abs(sums.sums).max())))  # t is the same in every unit
    pieces, policies = sums.sums.shape
    i, j = pair_indices(policies)
    mean = sums.sums.sum(axis=0) / sums.sizes.sum()
    products = np.einsum("pk,pl->pkl", sums.sums, sums.sums).reshape(pieces, -1)
    cross = sums.sums * sums.sizes[:, None]
    rng = np.random.default_rng([seed, 2])
    reference = np.empty((len(i), DRAWS))
    step = max(1, (1 << 22) // max(pieces, policies**2))
    for start in range(0, DRAWS, step):
        size = min(step, DRAWS - start)
        picks = rng.integers(pieces, size=(size, pieces)) + np.arange(size)[:, None] * pieces
        times = np.bincount(picks.ravel(), minlength=size * pieces).reshape(size, pieces).astype(float)
        total = times @ sums.sizes
        means = (times @ sums.sums) / total[:, None]
        gram = (times @ products).reshape(size, policies, policies)
        linear, square = times @ cross, times @ sums.sizes**2
        gap = means[:, i] - means[:, j]
        whole = gram[:, i, i] + gram[:, j, j]
        second = whole - 2 * gram[:, i, j]
        second = second - 2 * gap * (linear[:, i] - linear[:, j]) + gap**2 * square[:, None]
        spread = second > ROUNDING * whole
        error = np.sqrt(np.maximum(second, 0) * pieces / max(pieces - 1, 1)) / total[:, None]
        moved = np.abs(gap - (mean[i] - mean[j]))
        # A draw without spread that has moved is as extreme as can be.
        t = np.full(moved.shape, np.inf)
        reference[:, start : start + size] = np.divide(moved, error, out=t, where=spread).T
    return reference


def sign_flips(main: MethodResult, seed: int) -> Floats:
    """(P, B) |t| when each piece's difference keeps its size and gets a random sign."""
    sums = pieces_of(main)
    i, j = pair_indices(sums.sums.shape[1])
    signs = np.random.default_rng([seed, 3]).integers(0, 2, size=(DRAWS, len(sums.sums))) * 2.0 - 1.0
    flipped = signs @ sums.sums / sums.sizes.sum()
    error = main.std_error[i, j]
    reference = np.abs(flipped[:, i] - flipped[:, j]) / np.where(error > 0, error, np.inf)
    return np.asarray(reference.T, dtype=np.float64)
