"""The paper's four methods and the wider family as one formula, and the one kernel that computes its row terms.

    V(pi) = mean_n [ (r_n - rhat(s_n, a_n)) g(w_n) + sum_a rhat(s_n, a) pi(a|s_n) ]

The paper's 2 x 2 leaves the weight as it is, g(w) = w:

|                                  | rhat = 0          | rhat = a baseline  |
|----------------------------------|-------------------|--------------------|
| w = pi, of the logged action     | DiM (eq. dim)     | LDE (eq. lde)      |
| w = pi/p                         | IPS (eq. ips)     | DRE (eq. dre)      |

The wider family changes the weight pi/p, or leaves it out:

| g(w)                   | rhat = 0 | rhat = a baseline | reference |
|------------------------|----------|-------------------|-----------|
| w / mean(w)            | SNIPS    | SNDR              | Swaminathan and Joachims, 2015; Thomas and Brunskill, 2016 |
| min(w, c)              | cIPS:c   | cDR:c             | Strehl et al., 2010; Bottou et al., 2013 |
| w where w <= c, else 0 |          | SwitchDR:c        | Wang, Agarwal and Dudik, 2017 |
| c w / (w^2 + c)        |          | DRos:c            | Su et al., 2020 |
| w / (1 - c + c w)      | sgIPS:c  | sgDR:c            | Metelli, Russo and Restelli, 2021 |
| 0                      |          | DirectModel       | Dudik, Langford and Li, 2011 |

The paper's "Direct Method" (DiM) is NOT the model-based direct method that other libraries call DM: it fits no
model. That one is called DirectModel here. LDE and DiM are scores for comparing policies, not estimates of their value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isnan
from numbers import Real
from typing import Any

import numpy as np

from podium.data.arguments import checked, choice, flag, text
from podium.data.columns import Floats, is_huge
from podium.data.errors import PodiumError, meant, shown
from podium.data.facts import Fact
from podium.estimates.own_rules import WeightRule, apply_rule

__all__ = [
    "DIM", "DIRECT_MODEL", "DRE", "EPISODIC", "ESTIMATORS", "FAMILY", "IPS", "LDE", "SNDR", "SNIPS", "Estimator",
    "clipped", "correction", "find_estimator", "find_estimators", "shrunk", "subgaussian", "switch",
]  # fmt: skip

# Each rule changes weights (n, K), given its parameter; a parameter says where the change sets in.
RULES: dict[str, Callable[[Floats, float], Floats]] = {
    "full": lambda w, _: w,
    "clip": lambda w, c: np.minimum(w, c),
    "switch": lambda w, c: np.where(w <= c, w, 0.0),
    "shrink": lambda w, c: np.zeros_like(w) if c == 0 else w / (1.0 + w * (w / c)),
    "bend": lambda w, c: np.divide(w, 1.0 - c + c * w, out=np.zeros_like(w), where=w > 0),
    "none": lambda w, _: np.zeros_like(w),
}
ROUNDING = 1e-12  # relative
SHRINKING = ("clip", "switch", "shrink", "bend")


def is_parameter(value: Any) -> bool:
    """Whether a number can say where the change of weights sets in."""
    real = isinstance(value, Real) and not isinstance(value, bool) and not is_huge(value)
    return real and not isnan(value) and value >= 0


@dataclass(frozen=True)
class Estimator:
    """One method: does it weight by 1/p, does it use a baseline, and what becomes of its weights?

    Parameters
    ----------
    name : as results show it
    uses_propensity : the weight is pi/p; otherwise pi alone
    uses_baseline : rhat is a baseline; otherwise 0
    rule : what becomes of the weight: "full", "clip", "switch", "shrink", "bend", "none"; a function of your own that
        gets the weights (n,) of one policy and returns as many, each from its own weight alone; or "steps" for methods
        whose row terms come from the steps of episodes (`podium.episodes`)
    parameter : of a rule that is named
    self_normalized : weights are divided by their mean
    """

    name: str
    uses_propensity: bool
    uses_baseline: bool
    rule: str | WeightRule = "full"
    parameter: float = inf
    self_normalized: bool = False

    def __post_init__(self) -> None:
        text("name", self.name)
        if not callable(self.rule):
            choice(*RULES, "steps")("rule", self.rule)
        elif self.parameter != inf:
            raise PodiumError(
                f"a rule of your own takes no parameter; it is {shown(self.parameter)}",
                hint="put it into the function: rule=lambda w: np.minimum(w, 5).",
            )
        for name in ("uses_propensity", "uses_baseline", "self_normalized"):
            flag(name, getattr(self, name))
        if not is_parameter(self.parameter):
            raise PodiumError(
                f"parameter must be a number from 0 on; it is {shown(self.parameter)}", hint="use parameter=10."
            )

    @property
    def linear(self) -> bool:
        """Whether the estimate is linear in the policy: the paper's four methods."""
        return self.rule == "full" and not self.self_normalized

    @property
    def is_score(self) -> bool:
        """LDE and DiM: scores for comparing, not estimates of a value."""
        return not self.uses_propensity and self.rule == "full"

    @property
    def duplicates(self) -> str:
        """The rule for repeated (state, action): the paper's overwriting, or every draw.

        Weighting by 1/p_n needs every draw: dropping some makes the remaining weights wrong.
        """
        return "latest" if self.is_score else "all"

    @property
    def assumes(self) -> str:
        """What must hold for its ranking to be right."""
        if self.is_score:
            return "no action was logged more often because its reward is high or low"
        if self.rule == "none":
            return "the reward model is right wherever the policies differ"
        if self.own:
            return f"{self.counterpart.assumes}; what the rule does to the weights is alike for all policies"
        known = "the propensities are right, and every action that a policy plays could have been logged"
        return f"{known}; what shrinking takes away is alike for all policies" if self.shrinks else known

    @property
    def shrinks(self) -> bool:
        """Whether it trades bias for variance, policy by policy; a rule of one's own may."""
        return self.own or self.rule in SHRINKING

    @property
    def own(self) -> bool:
        """Whether its rule is a user's function."""
        return callable(self.rule)

    @property
    def caution(self) -> Fact | None:
        """What to say when it ranks; None for methods that treat all policies alike."""
        if self.shrinks:
            return Fact("shrinks weights", method=self.name)
        return Fact("ranks by a model", method=self.name) if self.rule == "none" else None

    @property
    def counterpart(self) -> Estimator:
        """The one of the paper's four methods that it changes."""
        if not self.uses_propensity:
            return LDE if self.uses_baseline else DIM
        return DRE if self.uses_baseline else IPS

    def reweight(self, weight: Floats) -> Floats:
        """g(w), before self-normalisation.

        >>> clipped(10).reweight(np.array([0.5, 40.0]))
        array([ 0.5, 10. ])
        """
        if not isinstance(self.rule, str):
            return apply_rule(self.name, self.rule, weight)
        return RULES[self.rule](weight, self.parameter)

    def reward_units(self, n_actions: float, proxies: bool = False) -> float:
        """What a difference of two scores is multiplied by to be in units of reward.

        With one action logged at random, E[LDE] = rhat + (V - rhat)/A: the scores shrink differences A-fold. Proxies
        are no probabilities, and scores by them stay scores. Where the eligible actions change from row to row, A is
        their mean number, and the terms of a row with A_n of them count A_n / A times.
        """
        return float(n_actions) if self.is_score and not proxies else 1.0


DIM = Estimator("DiM", uses_propensity=False, uses_baseline=False)
IPS = Estimator("IPS", uses_propensity=True, uses_baseline=False)
DRE = Estimator("DRE", uses_propensity=True, uses_baseline=True)
LDE = Estimator("LDE", uses_propensity=False, uses_baseline=True)
ESTIMATORS = {e.name: e for e in (LDE, DRE, IPS, DIM)}

SNIPS = Estimator("SNIPS", uses_propensity=True, uses_baseline=False, self_normalized=True)
SNDR = Estimator("SNDR", uses_propensity=True, uses_baseline=True, self_normalized=True)
DIRECT_MODEL = Estimator("DirectModel", uses_propensity=False, uses_baseline=True, rule="none")


@checked(baseline=flag)
def clipped(cap: float = 10.0, *, baseline: bool = False) -> Estimator:
    """cIPS, or cDR with a baseline: no weight counts more than `cap`. Without limit it is IPS, or DRE.

    >>> clipped(10).name, clipped(2.5, baseline=True).name
    ('cIPS:10', 'cDR:2.5')
    """
    return changed("cDR" if baseline else "cIPS", "clip", cap, baseline)


def switch(threshold: float = 10.0) -> Estimator:
    """Switch-DR: the logged reward where the weight is at most `threshold`, the model alone elsewhere.

    At infinity it is DRE, at 0 the DirectModel.
    """
    return changed("SwitchDR", "switch", threshold, True)


def shrunk(strength: float = 100.0) -> Estimator:
    """DRos, doubly robust with optimistic shrinkage: c w / (w^2 + c), which halves the weight w = sqrt(c).

    At infinity it is DRE, at 0 the DirectModel.
    """
    return changed("DRos", "shrink", strength, True)


@checked(baseline=flag)
def subgaussian(share: float = 0.1, *, baseline: bool = False) -> Estimator:
    """sgIPS, or sgDR with a baseline: w / (1 - c + c w), which never exceeds 1/c. At 0 it is IPS, or DRE."""
    if not isinstance(share, Real) or not 0 <= share <= 1:
        raise PodiumError(
            f"the parameter of sgIPS and sgDR lies between 0 and 1; it is {shown(share)}", hint="use 0.1."
        )
    return changed("sgDR" if baseline else "sgIPS", "bend", share, baseline)


def changed(name: str, rule: str, parameter: float, baseline: bool) -> Estimator:
    if not is_parameter(parameter):
        raise PodiumError(
            f"the parameter of {name} must be a number from 0 on; it is {shown(parameter)}",
            hint=f"write {name}:10, say.",
        )
    digits = repr(float(parameter)).removesuffix(".0")  # the fewest that tell it from every other number
    return Estimator(f"{name}:{digits}", True, baseline, rule, float(parameter))


MAKERS: dict[str, Callable[..., Estimator]] = {
    "cIPS": clipped,
    "cDR": lambda *cap: clipped(*cap, baseline=True),
    "SwitchDR": switch,
    "DRos": shrunk,
    "sgIPS": subgaussian,
    "sgDR": lambda *share: subgaussian(*share, baseline=True),
}
FAMILY = {e.name: e for e in (*ESTIMATORS.values(), SNIPS, SNDR, *(make() for make in MAKERS.values()), DIRECT_MODEL)}
# Importance sampling on episodes: whole trajectories or step by step, plain or self-normalised (`podium.episodes`).
EPISODIC = {
    name: Estimator(name, uses_propensity=True, uses_baseline=False, rule="steps")
    for name in ("TIS", "PDIS", "WIS", "PDWIS")
}


ELSEWHERE = {"dr": "DRE", "ipw": "IPS", "snipw": "SNIPS", "is": "IPS", "sndre": "SNDR"}  # names in other libraries


def find_estimator(name: str | Estimator, others: tuple[str, ...] = ()) -> Estimator:
    """A method by its name, in any case; a parameter may follow it, as in "cIPS:10".

    >>> find_estimator("switch-dr:5").name
    'SwitchDR:5'
    """
    if isinstance(name, Estimator):
        refuse_name(name, others)
        return name
    if not isinstance(name, str):
        hint = "the estimators are " + ", ".join(n.partition(":")[0] for n in FAMILY) + "."
        raise PodiumError(f"an estimator must be the name of a method; it is {shown(name)}", hint=hint)
    head, colon, text = name.partition(":")
    head = plain_name(head)
    plain = {plain_name(e.name): e for e in (*FAMILY.values(), *EPISODIC.values()) if ":" not in e.name}
    makers = {plain_name(known): make for known, make in MAKERS.items()}
    if head in plain and not colon:
        return plain[head]
    if head in makers:
        return makers[head](*([parameter_of(str(name), text)] if colon else []))
    if head == "dm":
        raise PodiumError(
            "'DM' could be two methods",
            hint="the paper's Direct Method is DiM; the model-based direct method of other libraries is DirectModel.",
        )
    if head in ELSEWHERE and not colon:
        raise PodiumError(f"unknown estimator {name!r}", hint=f"{name} is {ELSEWHERE[head]} here.")
    known = (*others, *(n.partition(":")[0] for n in FAMILY))
    raise PodiumError(
        f"unknown estimator {name!r}", hint=meant(name, known) + "the estimators are " + ", ".join(known) + "."
    )


def refuse_name(own: Estimator, others: tuple[str, ...]) -> None:
    """Raise if a method that was made by hand has the name of another, under which results would show it."""
    try:
        known = None if plain_name(own.name) in map(plain_name, others) else find_estimator(own.name)
    except PodiumError:  # nobody else has this name
        return
    if own != known:
        raise PodiumError(
            f"the estimator {own.name!r} is not the method of that name",
            hint="give it a name of its own: dataclasses.replace(estimator, name='mine').",
        )


def plain_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").strip()


def parameter_of(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PodiumError(f"{name!r} names no number after the colon", hint="write cIPS:10, say.") from None


def find_estimators(names: Any, *, episodes: bool = False) -> list[Estimator]:
    """Methods by their names; "all" is the whole family. Those of episodes have names for episodes alone."""
    given = [names] if isinstance(names, str | Estimator) else list(names) if isinstance(names, Iterable) else []
    if not given:
        raise PodiumError(
            f"estimators must be names of methods; they are {shown(names)}",
            hint="the estimators are " + ", ".join(n.partition(":")[0] for n in FAMILY) + "; 'all' for all of them.",
        )
    found: dict[str, Estimator] = {}
    for name in given:
        for e in FAMILY.values() if isinstance(name, str) and name.lower() == "all" else [find_estimator(name)]:
            if e.rule == "steps" and not isinstance(name, Estimator) and not episodes:
                raise PodiumError(
                    f"{e.name} needs episodes with the probability of every step, and this log has rows",
                    hint="use podium.episodes.evaluate, or podium evaluate --episodes on a file of steps.",
                )
            if found.setdefault(e.name, e) != e:
                raise PodiumError(f"two estimators are named {e.name!r}", hint="give each a name of its own.")
    return list(found.values())


def weight_gap(n_actions: float | Floats, inverse: Floats) -> Floats:
    """(n,) A - 1/p_n, by which the weights of LDE, in units of reward, and of DRE differ; 0 where that is rounding.

    A uniform logger has p = 1/A, but 1/p need not come out as A. A statistic of such remains would be noise.

    >>> weight_gap(49, 1 / np.array([1 / 49, 0.5])).tolist()
    [0.0, 47.0]
    """
    gap: Floats = n_actions - inverse
    return np.where(np.abs(gap) <= ROUNDING * n_actions, 0.0, gap)


def correction(reward: Floats, baseline: Floats, policy: Floats, propensity: Floats | None) -> Floats:
    """The part of the row terms that rests on the logged reward, (n, K), where weights stay as they are.

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
