"""The paper's Theorems 1 to 3 as functions, each with what it is worth."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from podium.data.arguments import checked, flag, text
from podium.data.errors import PodiumError, refuse_rows, shown
from podium.theory.checks import checked_count, checked_difference, checked_number, checked_observed, checked_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Form = Literal["appendix", "main"]

_HIGHEST = -math.expm1(-0.5)
"""The largest value that Theorem 2's proved bound can take, 1 - exp(-1/2) = 0.393."""


@dataclass(frozen=True)
class Bound:
    """A bound on a probability, in words as well as in a number.

    Attributes
    ----------
    value : the bound; ``float(bound)`` gives the same
    form : which statement was used: "appendix" or "main" (Theorem 2), "state" (Theorem 3)
    statement : what the number says
    caveats : what it does not say
    """

    value: float
    form: str
    statement: str
    caveats: tuple[str, ...]

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return "\n".join([self.statement, *(f"- {caveat}" for caveat in self.caveats)])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return asdict(self) | {"caveats": list(self.caveats)}


def reward_range_of(rewards: ArrayLike) -> tuple[float, float]:
    """Lowest and highest of the given rewards, as the `reward_range` of the bounds.

    The theorems mean the range of all possible rewards. Observed rewards can only show a part of it, and a
    range that is too narrow makes a bound too good: prefer the known limits of the reward.

    >>> reward_range_of([0.2, 1.0, 0.5])
    (0.2, 1.0)
    """
    hint = "give the rewards of the log as a list or an array of finite numbers."
    try:
        values = np.asarray(rewards, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise PodiumError("rewards must be numbers", hint=hint) from None
    if values.size == 0:
        raise PodiumError("rewards are empty", hint=hint)
    refuse_rows("rewards", "must be finite", ~np.isfinite(values), values, hint)
    return float(values.min()), float(values.max())


def reward_radius(reward_range: tuple[float, float], baseline: float = 0.0) -> float:
    r"""The constant R of Theorems 2 and 3: how far a reward can lie from the baseline.

    .. math:: R = \max\{\max\mathcal{R} - E_s[\hat r(s)],\ E_s[\hat r(s)] - \min\mathcal{R}\}

    DiM and IPS have no baseline; theirs is R at baseline 0, max(max R, -min R) (the Remark).

    Parameters
    ----------
    reward_range : lowest and highest possible reward
    baseline : mean baseline over the states

    Examples
    --------
    >>> reward_radius((0.0, 1.0), baseline=0.25)
    0.75
    >>> reward_radius((-3.0, 1.0))
    3.0
    """
    low, high = checked_range(reward_range)
    centre = checked_number("baseline", baseline)
    return max(high - centre, centre - low)


@checked(form=text, uniform_behavior=flag)
def comparison_bound(
    difference: float,
    *,
    actions: int,
    per_state: int | None = None,
    rows: int | None = None,
    reward_range: tuple[float, float],
    baseline: float = 0.0,
    estimator: Literal["LDE", "DiM", "IPS", "DRE"] = "LDE",
    uniform_behavior: bool = False,
    form: Form = "appendix",
) -> Bound:
    r"""Lower bound on the chance that two policies are put in the right order (Theorem 2 and its Remark).

    With n actions in all, m distinct observed actions in each state and R from `reward_radius`:

    .. math:: p_{comp} \ge 1 - \exp\Big(-\frac{m^2 (V(\pi) - V(\mu))^2}{8 n^2 R^2}\Big)
              \qquad \text{(appendix, the form that is proved)}

    .. math:: p_{comp} \ge 1 - \exp\Big(-\frac{|D|^2 (V(\pi) - V(\mu))^2}{8 n^4 R^2}\Big)
              \qquad \text{(main text, the same only when the number of states is n)}

    The appendix form holds and never exceeds 1 - exp(-1/2) = 0.393, less than a coin toss. Do not report it
    as the certainty of a ranking.

    Parameters
    ----------
    difference : V(pi) - V(mu), the true difference, which a user has to suppose; the sign does not matter
    actions : n, the size of the action space
    per_state : m, the number of distinct observed actions, the same in every state; the appendix form needs it
    rows : \|D\|, the number of distinct (state, action) rows; the main-text form needs it
    reward_range : lowest and highest possible reward
    baseline : mean baseline over the states (LDE and DRE only)
    estimator : DiM and IPS use R at baseline 0; IPS and DRE are covered only under uniform logging
    uniform_behavior : the log comes from a uniformly random behaviour policy
    form : which of the two printed statements: "appendix" or "main"

    Examples
    --------
    >>> bound = comparison_bound(0.2, actions=5, per_state=2, reward_range=(0, 1), baseline=0.5)
    >>> round(bound.value, 5)
    0.00319
    >>> wrong = comparison_bound(0.02, actions=2, rows=1000, reward_range=(0, 1), form="main")
    >>> round(float(wrong), 3)  # about 0.74 is what one measures
    0.956
    """
    _check_estimator(estimator, baseline, uniform_behavior)
    gap = checked_difference(difference, reward_range)
    n = checked_count("actions", actions)
    m = None if per_state is None else checked_observed("per_state", per_state, n)
    size = None if rows is None else checked_count("rows", rows)
    radius = reward_radius(reward_range, baseline)
    share, caveat = _observed_share(form, m, size, n)
    caveats = [caveat, _ASSUMPTION_CAVEAT, *([_REMARK_CAVEAT] if estimator in ("IPS", "DRE") else [])]
    value = -math.expm1(-((share * gap / radius) ** 2) / 8.0)
    source = "appendix" if form == "appendix" else "main-text"
    claim = "has" if form == "appendix" else "is said to have"
    statement = (
        f"Theorem 2 ({source} form): if two policies truly differ by {gap:.4g}, {estimator} {claim} "
        f"a chance of at least {value:.3g} to order them correctly."
    )
    return Bound(value, form, statement, tuple(caveats))


def _observed_share(form: str, per_state: int | None, rows: int | None, actions: int) -> tuple[float, str]:
    """The share of the actions that a form of Theorem 2 takes as observed, and what to know of that form."""
    if form == "appendix":
        if per_state is None:
            raise PodiumError(
                "the appendix form of Theorem 2 needs per_state",
                hint="per_state is the number of distinct actions observed in each state.",
            )
        return per_state / actions, _APPENDIX_CAVEAT
    if form == "main":
        if rows is None:
            raise PodiumError(
                "the main-text form of Theorem 2 needs rows",
                hint="rows is the number of distinct (state, action) rows; form='appendix' needs per_state.",
            )
        same = per_state is not None and rows == per_state * actions
        return rows / actions**2, _SAME_CAVEAT if same else _MAIN_CAVEAT
    raise PodiumError(
        f"form must be 'appendix' or 'main'; it is {shown(form)}", hint="'appendix' is the form that is proved."
    )


def state_bound(
    delta: float,
    difference: float,
    *,
    actions: int,
    per_state: int,
    reward_range: tuple[float, float],
    baseline: float = 0.0,
) -> Bound:
    r"""Upper bound on the chance that LDE is badly wrong in one state (Theorem 3).

    .. math:: p(\delta|s) = P\big[(V_{LDE}(\pi|s) - V_{LDE}(\mu|s)) (V(\pi|s) - V(\mu|s)) \le -\delta\big]
              \le \Big(1 + \frac{\delta + \frac{m}{n} (V(\pi|s) - V(\mu|s))^2}{2 R^2}\Big)^{-1}

    The theorem is about the per-state sum, V_LDE(pi|s) = rhat + sum over observed a of (r - rhat) pi(a|s).
    If LDE is divided by the m rows of the state, use ``delta * m``.

    Parameters
    ----------
    delta : how wrong counts as badly wrong, in squared reward units, >= 0
    difference : V(pi|s) - V(mu|s), the true difference in the state; the sign does not matter
    actions : n, the size of the action space
    per_state : m, the number of distinct observed actions in the state
    reward_range : lowest and highest possible reward
    baseline : the baseline in the state

    Examples
    --------
    >>> bound = state_bound(0.1, 0.5, actions=4, per_state=2, reward_range=(0, 1), baseline=0.5)
    >>> round(bound.value, 4)
    0.6897
    """
    threshold = checked_number("delta", delta)
    if threshold < 0.0:
        raise PodiumError(
            f"delta must be >= 0; it is {threshold:.10g}",
            hint="delta is the size of a product of two differences that counts as badly wrong.",
        )
    gap = checked_difference(difference, reward_range)
    n = checked_count("actions", actions)
    m = checked_observed("per_state", per_state, n)
    radius = reward_radius(reward_range, baseline)
    value = 1.0 / (1.0 + (threshold + m / n * gap**2) / (2.0 * radius**2))
    statement = (
        f"Theorem 3: in a state where two policies truly differ by {gap:.4g}, the chance that the product of "
        f"the estimated and the true difference is {-threshold + 0.0:.4g} or less is at most {value:.3g}."
    )
    return Bound(value, "state", statement, (_STATE_CAVEAT, _ASSUMPTION_CAVEAT.replace(_SAME_SIZE, "")))


def expected_lde(
    value: float,
    *,
    baseline: float,
    actions: int,
    observed: int = 1,
    normalize: Literal["rows", "states"] = "rows",
) -> float:
    r"""What LDE estimates on average under uniform action sets: the correction of Theorem 1.

    .. math:: E[V_{LDE}] = \hat r + \frac{1}{n} (V - \hat r) \qquad \text{("rows": eq. lde)}

    .. math:: E[V_{LDE}] = \hat r + \frac{m}{n} (V - \hat r) \qquad \text{("states": sum in each state)}

    Theorem 1 says V; its proof loses the factor 1/n. LDE shrinks every value toward the baseline by a
    common factor, so it keeps the order of policies but is no estimate of their value. The formula is for a
    baseline that does not depend on the draw, and for equally many observed actions m in every state.

    Parameters
    ----------
    value : V(pi), the true value
    baseline : rhat, a constant or its mean over the states
    actions : n, the size of the action space
    observed : m, the number of distinct observed actions in each state; it cancels in the "rows" form
    normalize : divide by the number of "rows" (eq. lde) or of "states" (the paper's Example 1)

    Examples
    --------
    >>> expected_lde(1.0, baseline=0.5, actions=10)
    0.55
    >>> expected_lde(1.0, baseline=0.5, actions=10, observed=4, normalize="states")
    0.7
    >>> expected_lde(1.0, baseline=0.5, actions=10, observed=10, normalize="states")
    1.0
    """
    truth = checked_number("value", value)
    centre = checked_number("baseline", baseline)
    n = checked_count("actions", actions)
    m = checked_observed("observed", observed, n)
    if not isinstance(normalize, str) or normalize not in ("rows", "states"):
        raise PodiumError(
            f"normalize must be 'rows' or 'states'; it is {shown(normalize)}",
            hint="'rows' is eq. lde, 'states' is the per-state sum of the paper's Example 1.",
        )
    return centre + (truth - centre) * (1 if normalize == "rows" else m) / n


_SAME_SIZE = ", of the same size in every state"
_ASSUMPTION_CAVEAT = (
    "It assumes that the observed actions of every state are a uniformly random set"
    f"{_SAME_SIZE}; a logger that seeks reward breaks this unseen."
)
_APPENDIX_CAVEAT = (
    f"It is vacuous: |V(pi) - V(mu)| <= 2R and m <= n, so it never exceeds 1 - exp(-1/2) = {_HIGHEST:.3f}, "
    "less than a coin toss. It does not say how sure a ranking is."
)
_MAIN_CAVEAT = (
    "The main-text form is wrong unless |S| = |A|: with more states than actions it promises more than "
    "is true, with fewer it promises less than is proved. Use form='appendix'."
)
_SAME_CAVEAT = (
    "The main-text form is wrong unless |S| = |A|, which holds here: it equals the appendix form and "
    f"is as vacuous, never above {_HIGHEST:.3f}."
)
_REMARK_CAVEAT = (
    "For IPS and DRE it holds only under a uniformly random behaviour policy, with one row per "
    "(state, action); repeated draws, which both normally keep, are outside the proof."
)
_STATE_CAVEAT = (
    "It is loose: no delta that can occur, 0 to 4R^2, brings it below 1/5, and at delta = 0 it never falls "
    "below 1/3. It does not say how sure a comparison is."
)


def _check_estimator(estimator: str, baseline: float, uniform_behavior: bool) -> None:
    if not isinstance(estimator, str) or estimator not in ("LDE", "DiM", "IPS", "DRE"):
        raise PodiumError(
            f"Theorem 2 and its Remark know LDE, DiM, IPS and DRE; the estimator is {shown(estimator)}",
            hint="no bound is known for other estimators.",
        )
    if estimator in ("IPS", "DRE") and not uniform_behavior:
        raise PodiumError(
            f"Theorem 2 covers {estimator} only under a uniformly random behaviour policy",
            hint="pass uniform_behavior=True if the log was collected that way; otherwise there is no bound.",
        )
    if estimator in ("DiM", "IPS") and baseline != 0.0:
        raise PodiumError(
            f"{estimator} has no baseline; baseline is {shown(baseline)}",
            hint="leave baseline out; it belongs to LDE and DRE.",
        )
