"""The paper's four methods as one formula, and the one kernel that computes its row terms.

    V(pi) = mean_n [ (r_n - rhat(s_n, a_n)) w_n + sum_a rhat(s_n, a) pi(a|s_n) ]

|                      | rhat = 0          | rhat = a baseline  |
|----------------------|-------------------|--------------------|
| w = pi(a_n|s_n)      | DiM (eq. dim)     | LDE (eq. lde)      |
| w = pi(a_n|s_n)/p_n  | IPS (eq. ips)     | DRE (eq. dre)      |

The paper's "Direct Method" (DiM) is NOT the model-based direct method that other libraries call DM: it fits no
model. LDE and DiM are scores for comparing policies, not estimates of their value.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.columns import Floats
from podium.errors import PodiumError


@dataclass(frozen=True)
class Estimator:
    """One cell of the 2x2: does it weight by 1/p, and does it use a baseline?"""

    name: str
    uses_propensity: bool
    uses_baseline: bool

    @property
    def duplicates(self) -> str:
        """The rule for repeated (state, action): the paper's overwriting, or every draw.

        Weighting by 1/p_n needs every draw: dropping some makes the remaining weights wrong.
        """
        return "all" if self.uses_propensity else "latest"

    @property
    def assumes(self) -> str:
        """What must hold for its ranking to be right."""
        if self.uses_propensity:
            return "the propensities are right, and every action that a policy plays could have been logged"
        return "no action was logged more often because its reward is high or low"

    def reward_units(self, n_actions: int) -> float:
        """What a difference of two scores is multiplied by to be in units of reward.

        With one action logged at random, E[LDE] = rhat + (V - rhat)/A: the scores shrink differences A-fold.
        """
        return 1.0 if self.uses_propensity else float(n_actions)


DIM = Estimator("DiM", uses_propensity=False, uses_baseline=False)
IPS = Estimator("IPS", uses_propensity=True, uses_baseline=False)
DRE = Estimator("DRE", uses_propensity=True, uses_baseline=True)
LDE = Estimator("LDE", uses_propensity=False, uses_baseline=True)
ESTIMATORS = {e.name: e for e in (LDE, DRE, IPS, DIM)}


def find_estimator(name: str | Estimator, others: tuple[str, ...] = ()) -> Estimator:
    """A method by its name, in any case."""
    if isinstance(name, Estimator):
        return name
    found = {e.name.lower(): e for e in ESTIMATORS.values()}.get(str(name).lower())
    if found is None:
        raise PodiumError(
            f"unknown estimator {name!r}", hint="the estimators are " + ", ".join((*others, *ESTIMATORS)) + "."
        )
    return found


def correction(reward: Floats, baseline: Floats, policy: Floats, propensity: Floats | None) -> Floats:
    """The part of the row terms that rests on the logged reward, (n, K).

    Parameters
    ----------
    reward : (n,) r_n
    baseline : (n,) rhat(s_n, a_n), zeros for DiM and IPS
    policy : (n, K) pi_k(a_n|s_n)
    propensity : (n,) p_n for IPS and DRE, None for DiM and LDE

    Examples
    --------
    >>> import numpy as np
    >>> correction(np.array([3.0]), np.array([1.0]), np.array([[0.5, 0.1]]), np.array([0.25]))
    array([[4. , 0.8]])
    """
    residual = reward - baseline
    if propensity is not None:
        residual = residual / propensity
    terms: Floats = residual[:, None] * policy
    return terms
