"""How well estimated values order policies whose true values are known: score, Kendall, Spearman, regret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from podium.data.errors import PodiumError, refuse_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_BLOCK_CELLS = 4_000_000
"""Pairs looked at in one go: bounds the memory of `score` to a few megabytes at any number of policies."""


class Score(float):
    """A comparison score: a float that remembers the pairs behind it.

    Attributes
    ----------
    pairs : int
        All pairs of policies, K(K-1)/2.
    inversions : int
        Pairs that the estimate orders against the truth.
    ties : int
        Pairs that are equal in the truth, in the estimate, or in both.

    Examples
    --------
    >>> Score(0.5, pairs=6, inversions=3, ties=0)
    Score(0.5, pairs=6, inversions=3, ties=0)
    >>> print(Score(0.5, pairs=6, inversions=3, ties=0))
    0.5
    """

    __slots__ = ("_inversions", "_pairs", "_ties")
    _pairs: int
    _inversions: int
    _ties: int

    def __new__(cls, value: float, pairs: int, inversions: int, ties: int) -> Score:
        self = super().__new__(cls, value)
        self._pairs = pairs
        self._inversions = inversions
        self._ties = ties
        return self

    @property
    def pairs(self) -> int:
        """All pairs of policies, K(K-1)/2."""
        return self._pairs

    @property
    def inversions(self) -> int:
        """Pairs that the estimate orders against the truth."""
        return self._inversions

    @property
    def ties(self) -> int:
        """Pairs that are equal in the truth, in the estimate, or in both."""
        return self._ties

    def __repr__(self) -> str:
        counts = f"pairs={self.pairs}, inversions={self.inversions}, ties={self.ties}"
        return f"Score({float.__repr__(self)}, {counts})"

    def __str__(self) -> str:
        # The plain number, so that text files and f-strings get what they expect of a float.
        return float.__repr__(self)

    def __reduce__(self) -> tuple[type[Score], tuple[float, int, int, int]]:
        return Score, (float(self), self.pairs, self.inversions, self.ties)


def score(
    true_values: ArrayLike,
    estimated_values: ArrayLike,
    ties: Literal["correct", "half"] = "correct",
) -> Score:
    r"""Share of the pairs of policies that the estimate orders correctly (eq. comp_score).

    .. math:: \text{score} = 1 - \frac{\text{inversions}}{K (K - 1) / 2}

    A pair is inverted when the true and the estimated difference have opposite signs. As in the paper's
    experiments, a tie is no inversion, so a constant estimate scores 1: look at `.ties`, or use
    ``ties="half"``. Turning both sequences around (lower is better) changes nothing.

    Parameters
    ----------
    true_values, estimated_values : (K,)
        One value per policy, in the same order of policies.
    ties : {"correct", "half"}
        What a pair counts that is tied in the truth or in the estimate: as correct, or as half correct.
        With "half" the score is (tau_a + 1) / 2, and a constant estimate scores 0.5.

    Returns
    -------
    Score
        A float in [0, 1] with `pairs`, `inversions` and `ties`.

    Examples
    --------
    >>> score([1, 2, 3, 4], [10, 20, 40, 30])
    Score(0.8333333333333334, pairs=6, inversions=1, ties=0)
    >>> score([1, 2, 3], [7, 7, 7])
    Score(1.0, pairs=3, inversions=0, ties=3)
    >>> score([1, 2, 3], [7, 7, 7], ties="half")
    Score(0.5, pairs=3, inversions=0, ties=3)
    """
    if ties not in ("correct", "half"):
        raise PodiumError(
            f"ties must be 'correct' or 'half'; it is {ties!r}",
            hint="'correct' is the paper's rule, 'half' gives a constant estimate the score 0.5.",
        )
    count = _count_pairs(*_checked(true_values, estimated_values))
    wrong = count.inversions + (0.5 * count.ties if ties == "half" else 0.0)
    value = 1.0 - wrong / count.pairs
    return Score(value, pairs=count.pairs, inversions=count.inversions, ties=count.ties)


def kendall(true_values: ArrayLike, estimated_values: ArrayLike) -> float:
    r"""Kendall's rank correlation tau-b, which corrects for ties.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_1)(n_0 - n_2)}}

    with C concordant and D inverted pairs, n_0 = K(K-1)/2, and n_1, n_2 the pairs tied in the truth and in
    the estimate. Without ties tau-b = 2 score - 1. If either sequence is constant it holds no order, and the
    result is 0.

    Parameters
    ----------
    true_values, estimated_values : (K,)
        One value per policy, in the same order of policies.

    Returns
    -------
    float
        A number in [-1, 1].

    Examples
    --------
    >>> round(kendall([1, 2, 3, 4], [10, 20, 40, 30]), 4)
    0.6667
    >>> kendall([1, 2, 3], [7, 7, 7])
    0.0
    """
    true, estimated = _checked(true_values, estimated_values)
    count = _count_pairs(true, estimated)
    untied_true = count.pairs - _tied_pairs(true)
    untied_estimated = count.pairs - _tied_pairs(estimated)
    if untied_true == 0 or untied_estimated == 0:
        return 0.0
    # sqrt of each factor apart, and the clip: rounding may not push a perfect order past 1.
    tau = (count.concordant - count.inversions) / (np.sqrt(untied_true) * np.sqrt(untied_estimated))
    return float(np.clip(tau, -1.0, 1.0))


def spearman(true_values: ArrayLike, estimated_values: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's correlation of the ranks, ties sharing their mean rank.

    If either sequence is constant it holds no order, and the result is 0.

    Parameters
    ----------
    true_values, estimated_values : (K,)
        One value per policy, in the same order of policies.

    Returns
    -------
    float
        A number in [-1, 1].

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 4)
    0.8
    >>> spearman([1, 2, 3], [7, 7, 7])
    0.0
    """
    true, estimated = _checked(true_values, estimated_values)
    x, y = _centred_ranks(true), _centred_ranks(estimated)
    scale = np.sqrt(x @ x) * np.sqrt(y @ y)
    if scale == 0.0:
        return 0.0
    return float(np.clip(x @ y / scale, -1.0, 1.0))


def regret(
    true_values: ArrayLike,
    estimated_values: ArrayLike,
    k: int = 1,
    *,
    normalized: bool = False,
    lower_is_better: bool = False,
) -> float:
    r"""What is lost by trying only the k policies that the estimate ranks highest (regret@k).

    .. math:: \max_i V_i - \max_{j \in \text{top-}k} V_j

    as in the DOPE benchmark (Fu et al., 2021). Policies whose estimates tie at the edge of the top k are
    drawn at random, and the result is the mean over those draws: a constant estimate has the regret of a
    blind choice, and the order of the input does not matter.

    Parameters
    ----------
    true_values, estimated_values : (K,)
        One value per policy, in the same order of policies.
    k : int
        Size of the shortlist, from 1 to K.
    normalized : bool
        Divide by the range of the true values, which puts the result in [0, 1]. If all true values are
        equal nothing can be lost, and the result is 0.
    lower_is_better : bool
        Values are costs: the best is the lowest, in the truth and in the estimate.

    Returns
    -------
    float
        The loss in units of the values, never negative.

    Examples
    --------
    >>> regret([1.0, 2.0, 4.0], [0.3, 0.9, 0.5])
    2.0
    >>> regret([1.0, 2.0, 4.0], [0.3, 0.9, 0.5], k=2)
    0.0
    >>> round(regret([1.0, 2.0, 4.0], [7, 7, 7]), 4)  # blind: (3 + 2 + 0) / 3
    1.6667
    """
    true, estimated = _checked(true_values, estimated_values)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= true.size:
        raise PodiumError(
            f"k must be a whole number from 1 to {true.size}; it is {k!r}",
            hint="k is the number of policies on the shortlist.",
        )
    if lower_is_better:
        true, estimated = -true, -estimated
    best = float(true.max())
    span = best - float(true.min())
    if span == 0.0:
        return 0.0
    edge = np.sort(estimated)[-k]
    certain = true[estimated > edge]
    drawn = _mean_of_best(np.sort(true[estimated == edge]), k - certain.size, certain)
    loss = max(best - drawn, 0.0)
    return loss / span if normalized else loss


class _PairCount(NamedTuple):
    pairs: int
    concordant: int
    inversions: int

    @property
    def ties(self) -> int:
        return self.pairs - self.concordant - self.inversions


def _checked(true_values: ArrayLike, estimated_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    true = _values("true_values", true_values)
    estimated = _values("estimated_values", estimated_values)
    if true.size != estimated.size:
        raise PodiumError(
            f"true_values and estimated_values must have the same length; they have {true.size} and {estimated.size}",
            hint="give one true and one estimated value for each policy, in the same order.",
        )
    if true.size < 2:
        raise PodiumError(
            f"at least two policies are needed; there is {true.size or 'none'}",
            hint="a ranking measure compares pairs of policies.",
        )
    return true, estimated


def _values(name: str, values: ArrayLike) -> NDArray[np.float64]:
    hint = "give a list or an array with one finite number for each policy."
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError):
        raise PodiumError(f"{name} must be numbers", hint=hint) from None
    if array.ndim != 1:
        raise PodiumError(f"{name} must be one row of numbers; its shape is {array.shape}", hint=hint)
    refuse_rows(name, "must be finite", ~np.isfinite(array), array, hint)
    return array


def _count_pairs(true: NDArray[np.float64], estimated: NDArray[np.float64]) -> _PairCount:
    """Count concordant and inverted pairs by comparing, never by multiplying differences (no underflow)."""
    size = true.size
    concordant = inversions = 0
    step = max(1, _BLOCK_CELLS // size)
    for start in range(0, size, step):
        block = slice(start, start + step)
        # Every unordered pair with different true values appears once as (i, j) with true_i < true_j.
        below = true[block, None] < true
        concordant += int(np.count_nonzero(below & (estimated[block, None] < estimated)))
        inversions += int(np.count_nonzero(below & (estimated[block, None] > estimated)))
    return _PairCount(size * (size - 1) // 2, concordant, inversions)


def _tied_pairs(values: NDArray[np.float64]) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int(np.sum(counts * (counts - 1) // 2))


def _centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2.0
    ranks: NDArray[np.float64] = mean_rank[group] - (values.size + 1) / 2.0
    return ranks


def _mean_of_best(tied: NDArray[np.float64], draws: int, certain: NDArray[np.float64]) -> float:
    """Mean of max(certain and `draws` of the sorted `tied`, drawn without replacement).

    The i-th smallest of g is the largest of q draws with probability C(i-1, q-1) / C(g, q).
    """
    size = tied.size
    index = np.arange(size, draws, -1)
    chances = np.cumprod(np.concatenate(([draws / size], (index - draws) / (index - 1.0))))
    best_drawn = tied[::-1][: chances.size]
    floor = certain.max() if certain.size else -np.inf
    return float(np.sum(chances * np.maximum(best_drawn, floor)))
