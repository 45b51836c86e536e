"""How well estimated values order policies whose true values are known: score, Kendall, Spearman, regret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from podium.data.arguments import checked, flag
from podium.data.columns import Floats
from podium.data.errors import PodiumError, refuse_rows, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BLOCK_CELLS = 4_000_000  # pairs looked at in one go: memory stays at a few megabytes for any number of policies


class Score(float):
    """A comparison score: a float that remembers the pairs behind it.

    `pairs` are all pairs of policies, K(K-1)/2; `inversions` those that the estimate orders against the truth; `ties`
    those that are equal in the truth, in the estimate, or in both.

    >>> Score(0.5, pairs=6, inversions=3, ties=0)
    Score(0.5, pairs=6, inversions=3, ties=0)
    >>> print(Score(0.5, pairs=6, inversions=3, ties=0))
    0.5
    """

    pairs: int
    inversions: int
    ties: int

    def __new__(cls, value: float, pairs: int, inversions: int, ties: int) -> Score:
        score = super().__new__(cls, value)
        score.pairs, score.inversions, score.ties = pairs, inversions, ties
        return score

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{name} of a score cannot be changed")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"Score({float.__repr__(self)}, pairs={self.pairs}, inversions={self.inversions}, ties={self.ties})"

    def __str__(self) -> str:  # the plain number, so that text files and f-strings get what they expect of a float
        return float.__repr__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Score, (float(self), self.pairs, self.inversions, self.ties)


def score(true_values: ArrayLike, estimated_values: ArrayLike, ties: Literal["correct", "half"] = "correct") -> Score:
    r"""Share of the pairs of policies that the estimate orders correctly (eq. comp_score).

    .. math:: \text{score} = 1 - \frac{\text{inversions}}{K (K - 1) / 2}

    A pair is inverted when the true and the estimated difference have opposite signs. As in the paper's
    experiments, a tie is no inversion, so a constant estimate scores 1: look at `.ties`, or use
    ``ties="half"``. Turning both sequences around (lower is better) changes nothing.

    Parameters
    ----------
    true_values, estimated_values : (K,) one value per policy, in the same order of policies
    ties : what a pair counts that is tied in the truth or in the estimate: as "correct", or as "half" correct; with
        "half" the score is (tau_a + 1) / 2, and a constant estimate scores 0.5

    Examples
    --------
    >>> score([1, 2, 3, 4], [10, 20, 40, 30])
    Score(0.8333333333333334, pairs=6, inversions=1, ties=0)
    >>> score([1, 2, 3], [7, 7, 7])
    Score(1.0, pairs=3, inversions=0, ties=3)
    >>> score([1, 2, 3], [7, 7, 7], ties="half")
    Score(0.5, pairs=3, inversions=0, ties=3)
    """
    if not isinstance(ties, str) or ties not in ("correct", "half"):
        raise PodiumError(
            f"ties must be 'correct' or 'half'; it is {shown(ties)}",
            hint="'correct' is the paper's rule, 'half' gives a constant estimate the score 0.5.",
        )
    true, estimated = both_values(true_values, estimated_values)
    concordant, inversions = count_pairs(true, estimated)
    pairs = true.size * (true.size - 1) // 2
    tied = pairs - concordant - inversions
    wrong = inversions + (0.5 * tied if ties == "half" else 0.0)
    return Score(1.0 - wrong / pairs, pairs=pairs, inversions=inversions, ties=tied)


def kendall(true_values: ArrayLike, estimated_values: ArrayLike) -> float:
    r"""Kendall's rank correlation tau-b, which corrects for ties; 0 where either sequence is constant.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_1)(n_0 - n_2)}}

    with C concordant and D inverted pairs, n_0 = K(K-1)/2, and n_1, n_2 the pairs tied in the truth and in
    the estimate. Without ties tau-b = 2 score - 1.

    >>> round(kendall([1, 2, 3, 4], [10, 20, 40, 30]), 4), kendall([1, 2, 3], [7, 7, 7])
    (0.6667, 0.0)
    """
    from scipy.stats import kendalltau

    true, estimated = both_values(true_values, estimated_values)
    return 0.0 if is_constant(true) or is_constant(estimated) else float(kendalltau(true, estimated).statistic)


def spearman(true_values: ArrayLike, estimated_values: ArrayLike) -> float:
    """Spearman's rank correlation, ties sharing their mean rank; 0 where either sequence is constant.

    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 4), spearman([1, 2, 3], [7, 7, 7])
    (0.8, 0.0)
    """
    from scipy.stats import spearmanr

    true, estimated = both_values(true_values, estimated_values)
    return 0.0 if is_constant(true) or is_constant(estimated) else float(spearmanr(true, estimated).statistic)


@checked(normalized=flag, lower_is_better=flag)
def regret(
    true_values: ArrayLike,
    estimated_values: ArrayLike,
    k: int = 1,
    *,
    normalized: bool = False,
    lower_is_better: bool = False,
) -> float:
    r"""What is lost by trying only the k policies that the estimate ranks highest (regret@k), never negative.

    .. math:: \max_i V_i - \max_{j \in \text{top-}k} V_j

    as in the DOPE benchmark (Fu et al., 2021). Policies whose estimates tie at the edge of the top k are
    drawn at random, and the result is the mean over those draws: a constant estimate has the regret of a
    blind choice, and the order of the input does not matter.

    Parameters
    ----------
    true_values, estimated_values : (K,) one value per policy, in the same order of policies
    k : size of the shortlist, from 1 to K
    normalized : divide by the range of the true values, which puts the result in [0, 1]
    lower_is_better : values are costs: the best is the lowest, in the truth and in the estimate

    Examples
    --------
    >>> regret([1.0, 2.0, 4.0], [0.3, 0.9, 0.5]), regret([1.0, 2.0, 4.0], [0.3, 0.9, 0.5], k=2)
    (2.0, 0.0)
    >>> round(regret([1.0, 2.0, 4.0], [7, 7, 7]), 4)  # blind: (3 + 2 + 0) / 3
    1.6667
    """
    true, estimated = both_values(true_values, estimated_values)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= true.size:
        raise PodiumError(
            f"k must be a whole number from 1 to {true.size}; it is {shown(k)}",
            hint="k is the number of policies on the shortlist.",
        )
    if lower_is_better:
        true, estimated = -true, -estimated
    best, span = float(true.max()), float(np.ptp(true))
    if span == 0.0:
        return 0.0
    edge = np.sort(estimated)[-k]
    certain = true[estimated > edge]
    drawn = mean_of_best(np.sort(true[estimated == edge]), k - certain.size, certain)
    loss = max(best - drawn, 0.0)
    return loss / span if normalized else loss


def both_values(true_values: ArrayLike, estimated_values: ArrayLike) -> tuple[Floats, Floats]:
    true, estimated = values_of("true_values", true_values), values_of("estimated_values", estimated_values)
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


def values_of(name: str, values: ArrayLike) -> Floats:
    hint = "give a list or an array with one finite number for each policy."
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise PodiumError(f"{name} must be numbers", hint=hint) from None
    if array.ndim != 1:
        raise PodiumError(f"{name} must be one row of numbers; its shape is {array.shape}", hint=hint)
    refuse_rows(name, "must be finite", ~np.isfinite(array), array, hint)
    return array


def is_constant(values: Floats) -> bool:
    return bool((values == values[0]).all())


def count_pairs(true: Floats, estimated: Floats) -> tuple[int, int]:
    """Concordant and inverted pairs, by comparing, never by multiplying differences (no underflow)."""
    concordant = inversions = 0
    step = max(1, BLOCK_CELLS // true.size)
    for start in range(0, true.size, step):
        block = slice(start, start + step)
        # Every unordered pair with different true values appears once as (i, j) with true_i < true_j.
        below = true[block, None] < true
        concordant += int(np.count_nonzero(below & (estimated[block, None] < estimated)))
        inversions += int(np.count_nonzero(below & (estimated[block, None] > estimated)))
    return concordant, inversions


def mean_of_best(tied: Floats, draws: int, certain: Floats) -> float:
    """Mean of max(certain and `draws` of the sorted `tied`, drawn without replacement).

    The i-th smallest of g is the largest of q draws with probability C(i-1, q-1) / C(g, q).
    """
    size = tied.size
    index = np.arange(size, draws, -1)
    chances = np.cumprod(np.concatenate(([draws / size], (index - draws) / (index - 1.0))))
    best_drawn = tied[::-1][: chances.size]
    floor = certain.max() if certain.size else -np.inf
    return float(np.sum(chances * np.maximum(best_drawn, floor)))
