"""Continuous actions: kernels smooth a policy's chosen action, so that logged actions near it can speak for it.

A policy that chooses the number pi(s) is replaced by one that draws around it, with the density

    K_h(a - pi(s)) = K((a - pi(s)) / h) / h,

and everything else is as for any log: w_n = K_h(a_n - pi(s_n)) / p_n for IPS and its family, where p_n is the density
with which the logger drew a_n, and w_n = K_h(a_n - pi(s_n)) for LDE and DiM (Kallus and Zhou, 2018). Actions of several
coordinates have the product of the coordinates' kernels. What is judged are the smoothed policies: the bias that
remains grows with the bandwidth, the noise as it falls. A model of the reward is asked at pi(s) and not averaged over
the kernel, as in other libraries: with one, DRE, SNDR and DirectModel aim at the policies themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.comparison.compare import compare as compare_policies
from podium.comparison.compare import retold
from podium.comparison.result import Comparison
from podium.data.columns import Codes, Floats, factorize, numbers_column, to_array
from podium.data.errors import PodiumError, Unavailable, count, refuse_rows
from podium.data.log import LARGEST, SMALLEST, Log
from podium.estimates.baselines import KnownAverages, describe_baseline, takes_actions
from podium.estimates.estimators import find_estimators
from podium.estimates.evaluate import Estimates
from podium.estimates.evaluate import evaluate as evaluate_policies
from podium.estimates.learned import FOLDS, LeastSquares, clone, state_features
from podium.policies.drafts import Policy

__all__ = ["KERNELS", "ContinuousLog", "compare", "evaluate"]

KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u * u, 0.0),
    "gaussian": lambda u: np.exp(-u * u / 2) / np.sqrt(2 * np.pi),
    "triangular": lambda u: np.maximum(1 - np.abs(u), 0.0),
    "cosine": lambda u: np.where(np.abs(u) < 1, np.pi / 4 * np.cos(u * np.pi / 2), 0.0),
}
AIM = (
    "The model of the reward is asked at the actions that policies choose: with it DRE, SNDR and DirectModel aim at "
    "the policies themselves, not at the smoothed ones that IPS and SNIPS judge"
)
SHAPES = {  # of every kernel the integrals of K^2 and of u^2 K
    "epanechnikov": (3 / 5, 1 / 5),
    "gaussian": (1 / (2 * sqrt(pi)), 1.0),
    "triangular": (2 / 3, 1 / 6),
    "cosine": (pi**2 / 16, 1 - 8 / pi**2),
}


def rule_of_thumb(kernel: str, rows: int, coordinates: int = 1) -> float:
    """The bandwidth of normal data with spread 1 that a kernel estimates best: Silverman's rule for every kernel.

    >>> [round(rule_of_thumb(kernel, 1), 2) for kernel in KERNELS]
    [2.34, 1.06, 2.58, 2.41]
    """
    square, spread = SHAPES[kernel]
    d = coordinates
    constant = square**d * 2 ** (d + 2) * pi ** (d / 2) / (spread**2 * (d + 2))
    return float((constant / rows) ** (1 / (d + 4)))


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousLog:
    """Logged interactions whose actions are numbers.

    Parameters
    ----------
    states : as in `podium.Log`
    actions : (N,) numbers, or (N, d)
    rewards : (N,) numbers
    densities : (N,) the density p_n > 0 with which the logged action was drawn, if known; it may exceed 1
    units : (N,) labels: rows of one unit depend on each other

    Examples
    --------
    >>> log = ContinuousLog([0, 1, 2], [0.1, 0.5, 0.9], [1.0, 0.5, 0.2], densities=[1.0, 1.0, 1.0])
    >>> log.evaluate({"low": 0.2, "high": 0.8}, "SNIPS", bandwidth=0.5).values["low"]["SNIPS"] > 0.7
    True
    """

    states: Any
    actions: Floats
    rewards: Floats
    densities: Floats | None = None
    units: Any = None
    log: Log = field(init=False)  # the same rows, with actions as labels

    if TYPE_CHECKING:  # anything that reads as a column is welcome; the fields hold what was read

        def __init__(
            self, states: Any, actions: Any, rewards: Any, densities: Any = None, units: Any = None
        ) -> None: ...

    def __post_init__(self) -> None:
        array = to_array(self.actions)
        hint = "an action is a finite number, or a row of them; labels belong to podium.Log."
        if array.ndim not in (1, 2) or array.dtype.kind not in "iufO":
            raise PodiumError(f"actions must be numbers; their shape is {array.shape}", hint=hint)
        columns = array[:, None] if array.ndim == 1 else array
        cells = [numbers_column(c, "the actions", hint) for c in columns.T]
        object.__setattr__(self, "actions", np.column_stack(cells))
        if self.densities is not None:
            p = numbers_column(self.densities, "the densities", "a density is a number above 0.")
            refuse_rows("the densities", f"must be at least {SMALLEST:g}", p < SMALLEST, p, "leave such rows out.")
            object.__setattr__(self, "densities", p)
        labels = np.unique(self.actions, axis=0, return_inverse=True)[1].ravel()
        log = Log(self.states, labels, self.rewards, units=self.units)
        if self.densities is not None and len(self.densities) != len(log):
            raise PodiumError(
                f"there are {count(len(log), 'row')} and {len(self.densities):,} densities",
                hint="every column describes the same rows, in the same order.",
            )
        object.__setattr__(log, "logged_by", "no densities" if self.densities is None else "densities")
        object.__setattr__(self, "log", log)

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        known = "no densities" if self.densities is None else "densities"
        return f"ContinuousLog: {count(len(self), 'row')}, {count(self.actions.shape[1], 'coordinate')}, {known}"

    # --- policies ------------------------------------------------------------------------------------------------

    def chosen(self, name: str, policy: Any) -> Floats:
        """(N, d) what a policy would have done."""
        answer = policy
        if hasattr(policy, "predict"):
            answer = policy.predict(self.log.states)
        elif callable(policy):
            answer = policy(self.log.states)
        array = np.asarray(answer) if np.ndim(answer) == 0 else to_array(answer)
        hint = (
            "a policy is a number or a point, an array of chosen actions, a function of the states, or an object with "
            "predict."
        )
        if array.dtype.kind not in "iuf":
            raise PodiumError(f"policy {name!r} must choose numbers; it gives {array.dtype}", hint=hint)
        array = array.astype(np.float64)
        d = self.actions.shape[1]
        if array.ndim == 0 or (d > 1 and array.shape == (d,)):  # the same for every row
            array = np.broadcast_to(array, self.actions.shape)
        if array.size != self.actions.size or len(array) != len(self):
            raise PodiumError(
                f"policy {name!r} gives actions of shape {array.shape}; the logged ones have {self.actions.shape}",
                hint=hint,
            )
        array = array.reshape(self.actions.shape)
        refuse_rows(
            f"policy {name!r}", "must choose finite numbers", ~np.isfinite(array).all(axis=1), array[:, 0], hint
        )
        return array

    def smoothed(self, chosen: Floats, kernel: str, bandwidth: Floats) -> Floats:
        """(N,) the density of the logged action under a policy that draws around what it chooses."""
        density: Floats = (KERNELS[kernel]((self.actions - chosen) / bandwidth) / bandwidth).prod(axis=1)
        return density

    def bandwidths(self, bandwidth: Any, kernel: str = "epanechnikov") -> Floats:
        """(d,) the bandwidth of every coordinate; by default Silverman's rule on the logged actions."""
        if bandwidth is None:
            spread = self.actions.std(axis=0)
            varies = spread > 1e-12 * np.abs(self.actions).max(axis=0)  # equal actions miss their mean by a bit
            found: Floats = np.where(varies, rule_of_thumb(kernel, *self.actions.shape) * spread, 1.0)
            return found
        try:
            array = np.asarray(bandwidth, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.size not in (1, self.actions.shape[1]) or not (np.isfinite(array) & (array > 0)).all():
            raise PodiumError(
                f"bandwidth must be a number above 0, or one per coordinate; it is {bandwidth!r}",
                hint="leave it out for Silverman's rule, and try half and twice of it.",
            )
        return np.broadcast_to(array.ravel(), (self.actions.shape[1],)).astype(np.float64)

    def interactions(
        self, policies: Mapping[str, Any], *, kernel: str = "epanechnikov", bandwidth: Any = None
    ) -> tuple[dict[str, Policy], dict[str, Floats | None], list[str]]:
        """The policies for `self.log`, what each chooses, and what to say of it."""
        if not isinstance(policies, Mapping) or not policies:
            raise PodiumError("no policies to compare", hint="give policies={'name': ...}.")
        if kernel not in KERNELS:
            raise PodiumError(f"unknown kernel {kernel!r}", hint="the kernels are " + ", ".join(KERNELS) + ".")
        h = self.bandwidths(bandwidth, kernel)
        made: dict[str, Policy] = {}
        chosen: dict[str, Floats | None] = {}
        for name, policy in policies.items():
            logged = isinstance(policy, str) and policy == "logged"
            if logged and self.densities is None:
                raise PodiumError(
                    "the policy 'logged' is the behaviour policy, and the log has no densities",
                    hint="give ContinuousLog(..., densities=...), or leave it out.",
                )
            chosen[name] = None if logged else self.chosen(name, policy)
            density = self.densities if logged else self.smoothed(chosen[name], kernel, h)  # type: ignore[arg-type]
            assert density is not None
            ratios = None if self.densities is None else density / self.densities
            if ratios is not None and ratios.max(initial=0.0) > LARGEST:
                raise PodiumError(f"the weights of {name!r} are too large", hint="leave rows of tiny density out.")
            made[name] = Policy(density, "probabilities", proxy=True, ratios=ratios, density=ratios is not None)
        shown = ", ".join(f"{x:.4g}" for x in h)
        notes = [f"Policies are smoothed by the {kernel} kernel with bandwidth {shown}: what is judged are those"]
        if self.densities is not None:
            notes.append("The densities of the logged actions are known, and weights are ratios to them")
        return made, chosen, notes

    # --- answers -------------------------------------------------------------------------------------------------

    def baseline(self, spec: Any, chosen: Mapping[str, Floats | None], seed: int = 0) -> Any:
        """A baseline that depends on the action, at the logged and at the chosen actions; others as they are.

        "linear" is least squares in the state features, the action, its square and their products; an object with fit
        and predict sees the state features and the action. Both are cross-fitted. q(states, actions) is asked as it is.
        """
        if isinstance(spec, str) and spec == "linear":
            return self._cross_fit(LeastSquares(), with_products, chosen, seed, "linear")
        if hasattr(spec, "fit") and hasattr(spec, "predict"):
            return self._cross_fit(spec, side_by_side, chosen, seed, describe_baseline(spec))
        if callable(spec) and takes_actions(spec):

            def ask(actions: Floats | None) -> Floats:
                given = self.actions if actions is None else actions
                answer = np.asarray(spec(self.log.states, given[:, 0] if given.shape[1] == 1 else given), np.float64)
                if answer.shape != (len(self),) or not np.isfinite(answer).all():
                    raise PodiumError(
                        f"the baseline must give {len(self)} finite numbers; it gave shape {answer.shape}",
                        hint="q(states, actions) gets whole arrays and gives one number per row.",
                    )
                return answer

            return KnownAverages("q(s, a)", ask(None), {name: ask(a) for name, a in chosen.items()})
        return spec

    def _cross_fit(
        self,
        model: Any,
        inputs: Callable[[Floats, Floats], Floats],
        chosen: Mapping[str, Floats | None],
        seed: int,
        name: str,
    ) -> KnownAverages:
        """Each row by a copy of the model fitted on other folds; rows of one unit share a fold."""
        groups: Codes = np.arange(len(self)) if self.log.units is None else factorize(self.log.units)[0]
        many = int(groups.max()) + 1
        if many < 2:
            raise PodiumError("a learned baseline needs at least 2 rows or units", hint='use baseline="mean".')
        folds = min(FOLDS, many)
        fold = (np.random.default_rng(seed).permutation(many) % folds)[groups]
        features = state_features(self.log)
        logged, averages = np.empty(len(self)), {policy: np.empty(len(self)) for policy in chosen}
        for k in range(folds):
            train, test = fold != k, fold == k
            fitted = clone(model)
            fitted.fit(inputs(features[train], self.actions[train]), self.log.rewards[train])

            def ask(actions: Floats, fitted: Any = fitted, test: Any = test) -> Floats:
                answer = fitted.predict(inputs(features[test], actions[test]))
                return np.asarray(answer, dtype=np.float64).reshape(-1)

            logged[test] = ask(self.actions)
            for policy, actions in chosen.items():
                averages[policy][test] = ask(self.actions if actions is None else actions)
        return KnownAverages(name, logged, averages)

    def evaluate(
        self,
        policies: Mapping[str, Any],
        estimators: str | Sequence[Any] = ("IPS", "SNIPS", "DRE", "SNDR"),
        baseline: Any = "mean",
        *,
        kernel: str = "epanechnikov",
        bandwidth: Any = None,
        seed: int = 0,
    ) -> Estimates:
        """The table of estimates alone; see `evaluate`."""
        made, chosen, notes = self.interactions(policies, kernel=kernel, bandwidth=bandwidth)
        known = self.baseline(baseline, chosen, seed)
        found = evaluate_policies(self.log, made, estimators, known, seed=seed)
        methods, warnings = find_estimators(estimators), found.warnings
        modelled = isinstance(known, KnownAverages) and any(m.uses_baseline and not m.is_score for m in methods)
        if modelled and any(not m.uses_baseline for m in methods):  # which do not estimate the same
            warnings = (*warnings, f"{AIM[0].lower()}{AIM[1:]}.")
        settings = {**found.settings, **self.smoothing(kernel, bandwidth), "notes": notes}
        reasons = {method: in_densities(reason) for method, reason in found.unavailable.items()}
        return replace(found, settings=settings, unavailable=reasons, warnings=warnings)

    def smoothing(self, kernel: str, bandwidth: Any) -> dict[str, Any]:
        """What the settings of an answer say of the kernel."""
        return {"kernel": kernel, "bandwidth": self.bandwidths(bandwidth, kernel).tolist()}

    def compare(
        self,
        policies: Mapping[str, Any],
        estimator: Any = None,
        baseline: Any = "mean",
        *,
        kernel: str = "epanechnikov",
        bandwidth: Any = None,
        seed: int = 0,
        **options: Any,
    ) -> Comparison:
        """Rank the policies and judge every pair; see `compare`."""
        for name in ("behavior", "actions"):
            if options.get(name) is not None:
                raise PodiumError(
                    f"{name}= is for actions that can be listed, and these are numbers",
                    hint="who acted is known by ContinuousLog(..., densities=...); leave it out otherwise.",
                )
        made, chosen, notes = self.interactions(policies, kernel=kernel, bandwidth=bandwidth)
        if estimator is None:
            estimator = "LDE" if self.densities is None else "DRE"
        known = self.baseline(baseline, chosen, seed)
        try:
            result = compare_policies(self.log, made, estimator, known, seed=seed, **options)
        except Unavailable as error:
            message, hint = in_densities(error.message), error.hint
            if message != error.message:
                hint = "give ContinuousLog(..., densities=...); LDE and DiM need none."
            raise Unavailable(message, hint) from error
        if isinstance(known, KnownAverages):
            notes.append(AIM)
        result = retold(result, notes, self.log)
        told = [in_densities(note) for note in result.settings.notes]
        if self.densities is not None:
            told = [UNUSED if note == UNKNOWN else note for note in told]
        settings = replace(
            result.settings,
            assumes=in_densities(result.settings.assumes),
            notes=tuple(told),
            kernel=kernel,
            bandwidth=tuple(self.bandwidths(bandwidth, kernel).tolist()),
        )
        reasons = {method: in_densities(reason) for method, reason in result.unavailable.items()}
        return replace(result, settings=settings, unavailable=reasons)


UNKNOWN = "Without densities it is assumed that logging did not seek reward"
UNUSED = "The gated procedure does without the densities, and assumes that logging did not seek reward"


def in_densities(sentence: str) -> str:
    """What is said of a log's propensities, of densities."""
    sentence = sentence.replace("the probability of each logged action", "the density of each logged action")
    return sentence.replace("propensities", "densities")


def side_by_side(features: Floats, actions: Floats) -> Floats:
    return np.hstack([features, actions])


def with_products(features: Floats, actions: Floats) -> Floats:
    """The features, the actions, their squares, and all products of a feature and an action."""
    products = (features[:, :, None] * actions[:, None, :]).reshape(len(features), -1)
    return np.hstack([features, actions, actions**2, products])


def compare(log: ContinuousLog, policies: Mapping[str, Any], estimator: Any = None, **options: Any) -> Comparison:
    """Rank policies that choose numbers, and judge every pair.

    Parameters
    ----------
    log : a `ContinuousLog`
    policies : name -> a number or a point, an array of chosen actions, a function of the states, or an object with
        predict; "logged" is what the logger itself does
    estimator : what ranks; DRE where densities are known, else LDE
    options : `baseline` ("mean", a number, "linear", an object with fit/predict, v(states) or q(states, actions)),
        `kernel`, `bandwidth`, and those of `podium.compare` other than `behavior` and `actions`

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.uniform(0, 1, 200)
    >>> log = ContinuousLog(np.zeros(200), a, -((a - 0.7) ** 2), densities=np.ones(200))
    >>> compare(log, {"0.2": 0.2, "0.7": 0.7}).ranking
    ['0.7', '0.2']
    """
    return log.compare(policies, estimator, **options)


def evaluate(
    log: ContinuousLog,
    policies: Mapping[str, Any],
    estimators: str | Sequence[Any] = ("IPS", "SNIPS", "DRE", "SNDR"),
    **options: Any,
) -> Estimates:
    """The table of estimates alone; the options are those of `compare` in this module."""
    return log.evaluate(policies, estimators, **options)
