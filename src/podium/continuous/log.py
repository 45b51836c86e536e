"""Logged interactions whose actions are numbers, and the policies that choose such actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.comparison.compare import compare, retold
from podium.comparison.result import Comparison
from podium.continuous.baselines import baseline_at
from podium.continuous.kernels import KERNELS, rule_of_thumb
from podium.continuous.specs import read_spec
from podium.data.arguments import SEED, attribute, checked, choice, mapping, refuse_class, text
from podium.data.arrays import odd_values, refuse_odd
from podium.data.columns import Column, Floats, numbers_column, to_array
from podium.data.errors import PodiumError, Unavailable, count, refuse_rows, shown
from podium.data.facts import Fact
from podium.data.frames import frame_to_columns, named_arrays
from podium.data.grouping import refuse_groups
from podium.data.log import LARGEST, Log
from podium.data.outcomes import refuse_beside
from podium.data.owned import Own, owned
from podium.data.probabilities import SMALLEST
from podium.data.prose import without_prose
from podium.data.roles import ROLE_RULES, assign_roles
from podium.data.states import states_given
from podium.data.warned import warn_caller
from podium.estimates.baselines import KnownAverages
from podium.estimates.estimators import find_estimators
from podium.estimates.evaluate import Estimates, evaluate
from podium.policies.drafts import Policy, call
from podium.verdicts.unseen_densities import mean_weight_lacking

METHODS = ("IPS", "SNIPS", "DRE", "SNDR")
CHOICES = (
    "a policy is a number or a point, an array of chosen actions, a function of the states, or an object with predict."
)


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousLog(Own):
    """Logged interactions whose actions are numbers.

    Parameters
    ----------
    states : as in `podium.Log`
    actions : (N,) numbers, or (N, d)
    rewards : (N,) numbers
    densities : (N,) the density p_n > 0 with which the logged action was drawn, if known; it may exceed 1
    units : (N,) labels: rows of one unit depend on each other
    times : (N,) numbers or dates
    columns, names, left_out : as in `podium.Log`

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
    times: Any = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[Fact, ...] = ()
    log: Log = field(init=False)  # the same rows, with actions as labels

    if TYPE_CHECKING:  # anything that reads as a column is welcome; the fields hold what was read

        def __init__(
            self,
            states: Any,
            actions: Any,
            rewards: Any,
            densities: Any = None,
            units: Any = None,
            times: Any = None,
            **details: Any,
        ) -> None: ...

    def __post_init__(self) -> None:
        mapping("names", self.names)
        array = to_array(self.actions)
        hint = "an action is a finite number, or a row of them; labels belong to podium.Log."
        what, densities = self._called("action", "the actions"), self._called("propensity", "the densities")
        if array.ndim not in (1, 2) or array.dtype.kind not in "iufO" or not array.size:
            raise PodiumError(f"actions must be numbers; their shape is {array.shape}", hint=hint)
        columns = array[:, None] if array.ndim == 1 else array
        cells = [numbers_column(c, what, hint) for c in columns.T]
        for c in cells:
            rule = f"must lie within -{LARGEST:g} and {LARGEST:g}"
            refuse_rows(what, rule, np.abs(c) > LARGEST, c, "give the actions in a larger unit.")
        object.__setattr__(self, "actions", owned(np.column_stack(cells)))
        if self.densities is not None:
            p = numbers_column(self.densities, densities, "a density is a number above 0.")
            refuse_rows(densities, f"must be at least {SMALLEST:g}", p < SMALLEST, p, "leave such rows out.")
            object.__setattr__(self, "densities", owned(p))
        labels = np.unique(self.actions, axis=0, return_inverse=True)[1].ravel()
        given = {name: getattr(self, name) for name in ("units", "times", "columns", "names", "left_out")}
        log = Log(vars(self)["states"], labels, self.rewards, **given)
        if self.densities is not None and len(self.densities) != len(log):
            raise PodiumError(
                f"there are {count(len(log), 'row')} and {len(self.densities):,} densities",
                hint="every column describes the same rows, in the same order.",
            )
        object.__setattr__(log, "logged_by", "no densities" if self.densities is None else "densities")
        kept = {"log": log, "states": log.states, "rewards": log.rewards, "units": log.units, "times": log.times}
        kept |= {"columns": log.columns, "names": log.names}
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        known = "no densities" if self.densities is None else "densities"
        return f"ContinuousLog: {count(len(self), 'row')}, {count(self.actions.shape[1], 'coordinate')}, {known}"

    def _called(self, role: str, otherwise: str) -> str:
        """The column that plays a role, as messages name it."""
        return f"column {self.names[role]!r}" if role in self.names else otherwise

    @classmethod
    def from_frame(cls, frame: Any, **roles: Any) -> ContinuousLog:
        """A log from a pandas, polars or Spark frame, an arrow table, a DuckDB relation or a dict of columns."""
        return cls.from_columns(frame_to_columns(frame), **roles)

    @classmethod
    @checked(**{role: rule for role, rule in ROLE_RULES.items() if role != "eligible"})
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        *,
        state: str | Sequence[str] | None = None,
        action: str = "action",
        reward: str = "reward",
        propensity: str | None = None,
        time: str | None = None,
        unit: str | None = None,
    ) -> ContinuousLog:
        """A log from named columns: `action`, `reward`, `propensity` or `density`, `time`; the rest is state."""
        arrays = named_arrays(mapping("columns", columns))
        if propensity is None and "density" in arrays and "propensity" not in arrays:
            as_state = [state] if isinstance(state, str) else state or ()
            propensity = None if "density" in as_state or "density" in (action, reward, time, unit) else "density"
        roles = without_prose(assign_roles(arrays, state, action, reward, propensity, time, unit), arrays)
        refuse_odd(odd_values({name: arrays[name] for name in roles.columns}), roles)
        of = {role: arrays[header] for role, header in roles.names.items()}
        return cls(
            states=states_given(arrays, list(roles.states), None),
            actions=of["action"],
            rewards=of["reward"],
            densities=of.get("propensity"),
            units=of.get("unit"),
            times=of.get("time"),
            columns=arrays,
            names=roles.names,
            left_out=roles.left_out,
        )

    # --- policies ------------------------------------------------------------------------------------------------

    @checked(name=text)
    def chosen(self, name: str, policy: Any) -> Floats:
        """(N, d) what a policy would have done."""
        refuse_class(f"policy {name!r}", policy)
        if isinstance(policy, str):
            policy = read_spec(name, policy, self.log)
        answer, predict = policy, attribute(f"policy {name!r}", policy, "predict")
        if predict is not None:
            answer = call(name, predict, self.log.states)
        elif callable(policy):
            answer = call(name, policy, self.log.states)
        array = np.asarray(answer) if isinstance(answer, Real) else to_array(answer)
        if array.dtype.kind not in "iuf":
            raise PodiumError(f"policy {name!r} must choose numbers; it gives {array.dtype}", hint=CHOICES)
        array = array.astype(np.float64)
        d = self.actions.shape[1]
        if array.ndim == 0 or (d > 1 and array.shape == (d,)):  # the same for every row
            array = np.broadcast_to(array, self.actions.shape)
        if array.size != self.actions.size or len(array) != len(self):
            raise PodiumError(
                f"policy {name!r} gives actions of shape {array.shape}; the logged ones have {self.actions.shape}",
                hint=CHOICES,
            )
        array = array.reshape(self.actions.shape)
        bad = ~np.isfinite(array).all(axis=1)
        refuse_rows(f"policy {name!r}", "must choose finite numbers", bad, array[:, 0], CHOICES)
        return array

    @np.errstate(over="ignore", invalid="ignore")  # a tiny bandwidth: what is not finite is refused by name
    def smoothed(self, chosen: Floats, kernel: str, bandwidth: Floats) -> Floats:
        """(N,) the density of the logged action under a policy that draws around what it chooses."""
        return np.asarray((KERNELS[kernel]((self.actions - chosen) / bandwidth) / bandwidth).prod(axis=1))

    @checked(kernel=choice(*KERNELS))
    def bandwidths(self, bandwidth: Any, kernel: str = "epanechnikov") -> Floats:
        """(d,) the bandwidth of every coordinate; by default Silverman's rule on the logged actions."""
        if bandwidth is None:
            spread = self.actions.std(axis=0)
            varies = spread > 1e-12 * np.abs(self.actions).max(axis=0)  # equal actions miss their mean by a bit
            return np.where(varies, rule_of_thumb(kernel, *self.actions.shape) * spread, 1.0)
        try:
            array = np.asarray(bandwidth, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.empty(0)
        if array.size not in (1, self.actions.shape[1]) or not (np.isfinite(array) & (array > 0)).all():
            raise PodiumError(
                f"bandwidth must be a number above 0, or one per coordinate; it is {shown(bandwidth)}",
                hint="leave it out for Silverman's rule, and try half and twice of it.",
            )
        return np.broadcast_to(array.ravel(), (self.actions.shape[1],)).astype(np.float64)

    def interactions(
        self, policies: Mapping[str, Any], *, kernel: str = "epanechnikov", bandwidth: Any = None
    ) -> tuple[dict[str, Policy], dict[str, Floats], list[Fact]]:
        """The policies for `self.log`, what each chooses, and what to say of it."""
        if not isinstance(policies, Mapping) or not policies:
            raise PodiumError("no policies to compare", hint="give policies={'name': ...}.")
        if not isinstance(kernel, str) or kernel not in KERNELS:
            raise PodiumError(f"unknown kernel {shown(kernel)}", hint="the kernels are " + ", ".join(KERNELS) + ".")
        h = self.bandwidths(bandwidth, kernel)
        made: dict[str, Policy] = {}
        chosen: dict[str, Floats] = {}
        for name, policy in policies.items():
            density = self.densities
            if not (isinstance(policy, str) and policy == "logged"):
                chosen[name] = self.chosen(name, policy)
                density = self.smoothed(chosen[name], kernel, h)
            elif density is None:
                raise PodiumError(
                    "the policy 'logged' is the behaviour policy, and the log has no densities",
                    hint="give ContinuousLog(..., densities=...), or leave it out.",
                )
            else:
                chosen[name] = self.actions
            ratios = None if self.densities is None else density / self.densities
            if ratios is not None and ratios.max(initial=0.0) > LARGEST:
                raise PodiumError(f"the weights of {name!r} are too large", hint="leave rows of tiny density out.")
            made[name] = Policy(density, "probabilities", proxy=True, ratios=ratios, density=ratios is not None)
        notes = [Fact("smoothed", kernel=kernel, bandwidth=", ".join(f"{x:.4g}" for x in h))]
        if self.densities is not None:
            notes.append(Fact("densities known"))
        return made, chosen, notes

    # --- answers -------------------------------------------------------------------------------------------------

    @checked(seed=SEED)
    def evaluate(
        self,
        policies: Mapping[str, Any],
        estimators: str | Sequence[Any] = METHODS,
        baseline: Any = "mean",
        *,
        kernel: str = "epanechnikov",
        bandwidth: Any = None,
        seed: int = 0,
    ) -> Estimates:
        """The table of estimates alone; see `evaluate`."""
        made, chosen, notes = self.interactions(policies, kernel=kernel, bandwidth=bandwidth)
        known = baseline_at(baseline, self.log, self.actions, chosen, seed)
        estimates = evaluate(self.log, made, estimators, known, seed=seed)
        methods, warnings = find_estimators(estimators), estimates.warnings
        modelled = isinstance(known, KnownAverages) and any(m.uses_baseline and not m.is_score for m in methods)
        if modelled and any(not m.uses_baseline for m in methods):  # which do not estimate the same
            warnings = (*warnings, Fact("model at chosen actions, warning"))
        warnings = (*unseen_warnings(made), *warnings)
        settings = {**estimates.settings, **self.smoothing(kernel, bandwidth), "notes": notes}
        reasons = {method: in_densities(reason) for method, reason in estimates.unavailable.items()}
        return replace(estimates, settings=settings, unavailable=reasons, warnings=warnings)

    def smoothing(self, kernel: str, bandwidth: Any) -> dict[str, Any]:
        """What the settings of an answer say of the kernel."""
        return {"kernel": kernel, "bandwidth": self.bandwidths(bandwidth, kernel).tolist()}

    @checked(seed=SEED)
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
        refuse_beside(options, "continuous actions")
        for name in ("behavior", "actions"):
            if options.get(name) is not None:
                raise PodiumError(
                    f"{name}= is for actions that can be listed, and these are numbers",
                    hint="who acted is known by ContinuousLog(..., densities=...); leave it out otherwise.",
                )
        refuse_groups(options, "continuous actions")
        made, chosen, notes = self.interactions(policies, kernel=kernel, bandwidth=bandwidth)
        if estimator is None:
            estimator = "LDE" if self.densities is None else "DRE"
        known = baseline_at(baseline, self.log, self.actions, chosen, seed)
        try:
            result = compare(self.log, made, estimator, known, seed=seed, **options)
        except Unavailable as error:
            message, hint = in_densities(error.message), error.hint
            if message != error.message:
                hint = "give ContinuousLog(..., densities=...); LDE and DiM need none."
            raise Unavailable(message, hint) from error
        if isinstance(known, KnownAverages):
            notes.append(Fact("model at chosen actions"))
        result = retold(result, notes, self.log)
        said = [in_densities(note) for note in result.settings.notes]
        unused = self.densities is not None
        settings = replace(
            result.settings,
            assumes=in_densities(result.settings.assumes),
            notes=tuple(Fact("densities not needed") if unused and note == UNKNOWN else note for note in said),
            kernel=kernel,
            bandwidth=tuple(self.bandwidths(bandwidth, kernel).tolist()),
        )
        reasons = {method: in_densities(reason) for method, reason in result.unavailable.items()}
        warnings = (*unseen_warnings(made), *result.warnings)
        result = replace(result, settings=settings, unavailable=reasons, warnings=warnings)
        warn_caller(result.warnings)
        return result


UNKNOWN = "Without densities it is assumed that logging did not seek reward"


def in_densities(sentence: str) -> str:
    """What is said of a log's propensities, of densities."""
    said = sentence.replace("the probability of each logged action", "the density of each logged action")
    said = said.replace("propensities", "densities")
    return sentence if said == sentence else said


def unseen_warnings(made: Mapping[str, Policy]) -> tuple[Fact, ...]:
    """Warnings of policies that choose actions which the log does not cover."""
    means = {name: mean_weight_lacking(policy.ratios) for name, policy in made.items()}
    return tuple(
        Fact("unseen densities, warning", policy=name, mean_weight=mean)
        for name, mean in means.items()
        if mean is not None
    )
