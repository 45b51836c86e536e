"""Episodes as interactions: whole recorded episodes become the rows of a log (Section 5.3 and Appendix C.3).

The state is the first observation, the action is the whole sequence of actions, the reward is the return up to a
horizon. Policies that act deterministically have no probabilities of sequences; a proxy stands for them
(`podium.episodes.proxy`), taken at the LOGGED observations, so that no simulator is needed.

Scales. IPS and DRE use pi/p alone, which is computed from logarithms, so that probabilities of 1e-300 do no harm.
LDE and DiM use pi itself: a proxy of 1e-8 beside one of 1 counts for nothing, and is meant to. Only where every
number would vanish (below 1e-30), or where densities exceed 1, are all of them divided by the largest: a common
factor, which changes no order. `compare` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3 import is_discrete
from podium.comparison.compare import compare as compare_policies
from podium.comparison.compare import retold
from podium.comparison.result import Comparison
from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError, Unavailable, count, listed, show_value
from podium.data.log import AGREE, LARGEST, SMALLEST, Log
from podium.episodes.actors import Actor, as_actor
from podium.episodes.bounds import HINT, Bounds, bounds_of
from podium.episodes.proxy import Coordinates, log_proxy
from podium.episodes.recordings import Episode, as_episodes
from podium.episodes.rollouts import record
from podium.episodes.steps import read
from podium.episodes.trajectories import trajectory_terms
from podium.estimates.estimators import EPISODIC, find_estimators
from podium.estimates.evaluate import Estimates
from podium.estimates.evaluate import evaluate as evaluate_policies
from podium.policies.drafts import Policy

__all__ = ["Episode", "EpisodeLog", "Interactions", "compare", "evaluate", "log_proxy", "read", "record"]

STEPS_HINT = "give policies with log_prob, and behavior= such a policy, or Episode(..., propensities=...)."
PROBABILITIES = ("auto", "proxy", "density")


def compare(
    episodes: Any,
    policies: Mapping[str, Any],
    *,
    behavior: Any = None,
    bounds: Any = None,
    horizon: int | None = None,
    coordinates: Coordinates = "mean",
    probabilities: str = "auto",
    gamma: float = 1.0,
    estimator: Any = "LDE",
    **options: Any,
) -> Comparison:
    """Rank policies on recorded episodes and judge every pair.

    Parameters
    ----------
    episodes : a list of episodes (see `Episode`; mappings and tuples serve), a Minari dataset, or what `read` and
        `record` return
    policies : name -> policy: a function of an observation or of a batch of them, a Stable-Baselines3 model, an object
        with `predict`, or "sb3:ALGO:model.zip"; "logged" is the behaviour policy itself. An object with
        `log_prob(observations, actions)`, or a function of the two, offers log-densities, one per step
    behavior : who acted: the name of a policy, a policy, one of those per episode, or a mapping of further policies
        that the episodes name. By default the names in `Episode.behavior`. Without it IPS and DRE are unavailable
    bounds : (low, high) of the actions, a Gymnasium space or environment; by default those of the recording or models
    horizon : steps that count; by default whole episodes
    coordinates : how several coordinates of an action are averaged; see `podium.episodes.proxy.log_proxy`
    probabilities : "proxy", "density", or "auto": densities where every policy offers them, else the proxy for all
    gamma : the discount: the reward of step t = 0, 1, ... counts gamma^t times; weights do not change
    estimator : what ranks; LDE did best in the paper
    options : those of `podium.compare`

    Examples
    --------
    >>> import podium
    >>> rng = np.random.default_rng(0)
    >>> seen = [rng.normal(size=(10, 1)) for _ in range(5)]
    >>> steps = [(s, a := np.clip(k * s, -1, 1), -np.abs(s - a)[:, 0]) for k, s in enumerate(seen)]
    >>> podium.episodes.compare(steps, {"follow": lambda s: s, "stay": lambda s: 0 * s}, bounds=(-9, 9)).ranking
    ['follow', 'stay']
    """
    log = EpisodeLog(episodes, bounds, horizon, coordinates, probabilities, gamma)
    return log.compare(policies, behavior=behavior, estimator=estimator, **options)


def evaluate(
    episodes: Any,
    policies: Mapping[str, Any],
    *,
    behavior: Any = None,
    bounds: Any = None,
    horizon: int | None = None,
    gamma: float = 1.0,
    estimators: str | Sequence[Any] = tuple(EPISODIC),
    **options: Any,
) -> Estimates:
    """The values of policies by importance sampling on episodes: TIS, PDIS, WIS, PDWIS (see `trajectories.py`).

    They need the probability, or density, of every logged step: policies with `log_prob(observations, actions)`, or
    functions of the two, and the behaviour policy likewise, or `Episode.propensities`. The other methods of
    `podium.estimators` see whole episodes as rows. `gamma` discounts: the reward of step t = 0, 1, ... counts gamma^t
    times.

    Examples
    --------
    >>> coin = [Episode([[0.0], [0.0]], [1, 0], [1.0, 0.0], propensities=[0.5, 0.5])]
    >>> always = lambda observations, actions: np.where(actions == 1, 0.0, -np.inf)
    >>> evaluate(coin, {"always 1": always}, estimators=["TIS", "PDIS"]).values["always 1"]
    {'TIS': 0.0, 'PDIS': 2.0}
    """
    log = EpisodeLog(episodes, bounds=bounds, horizon=horizon, gamma=gamma)
    return log.evaluate(policies, behavior, estimators, **options)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Episodes and policies as a `Log` and policies for it: `podium.compare(i.log, i.policies)`."""

    log: Log
    policies: dict[str, Policy]
    log_probabilities: dict[str, Floats]  # (n,) of every policy, before scaling
    log_propensities: Floats | None  # (n,) of the behaviour policy
    notes: tuple[str, ...]
    lacking: str = ""  # why there is no importance sampling step by step


@dataclass(frozen=True, eq=False, repr=False)
class EpisodeLog:
    """Recorded episodes, checked once; the parameters are those of `compare`."""

    episodes: Any
    bounds: Any = None
    horizon: int | None = None
    coordinates: Coordinates = "mean"
    probabilities: str = "auto"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        h = self.horizon
        if h is not None and (isinstance(h, bool) or not isinstance(h, int | np.integer) or h < 1):
            raise PodiumError(
                f"horizon must be a whole number from 1 on; it is {show_value(h)}",
                hint="use horizon=100 for the first 100 steps; None for whole episodes.",
            )
        if self.probabilities not in PROBABILITIES:
            raise PodiumError(
                f"probabilities must be 'auto', 'proxy' or 'density'; it is {self.probabilities!r}",
                hint="'auto' uses densities where every policy offers them.",
            )
        g = self.gamma
        if isinstance(g, bool) or not isinstance(g, int | float | np.number) or not 0 <= g <= 1:
            raise PodiumError(
                f"gamma must be a number from 0 to 1; it is {show_value(g)}",
                hint="use gamma=1 for plain sums of rewards, gamma=0.99 to discount later ones.",
            )
        log_proxy(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), 0.0, 1.0, coordinates=self.coordinates)  # its name is known
        object.__setattr__(self, "episodes", as_episodes(self.episodes))
        given = self.bounds if self.bounds is not None else self.episodes[0].bounds
        if given is not None:
            space = getattr(given, "action_space", given)
            late = is_discrete(space) and self.probabilities != "proxy"  # densities may still do without bounds
            object.__setattr__(self, "bounds", given if late else bounds_of(given))

    def __len__(self) -> int:
        return len(self.episodes)

    def __repr__(self) -> str:
        return f"EpisodeLog: {count(len(self), 'episode')} of up to {count(int(self.lengths.max()), 'step')}"

    @cached_property
    def lengths(self) -> Codes:
        """(n,) steps that count."""
        return np.array([min(len(e), self.horizon or len(e)) for e in self.episodes])

    @cached_property
    def returns(self) -> Floats:
        """(n,) the sum of the rewards of those steps, discounted."""
        return np.array([r.sum() for r in self.rewards])

    @cached_property
    def rewards(self) -> list[Floats]:
        """(T,) the rewards of those steps, times gamma^t, of every episode."""
        discount = float(self.gamma) ** np.arange(int(self.lengths.max()))
        return [e.rewards[:t] * discount[:t] for e, t in zip(self.episodes, self.lengths, strict=True)]

    @cached_property
    def states(self) -> NDArray[Any]:
        """(n, D) the first observations."""
        return np.stack([e.observations[0].reshape(-1) for e in self.episodes])

    @cached_property
    def observations(self) -> NDArray[Any]:
        """(M, ...) what was seen in all steps that count, one episode after the other."""
        return np.concatenate([e.observations[:t] for e, t in zip(self.episodes, self.lengths, strict=True)])

    @cached_property
    def actions(self) -> NDArray[Any]:
        """(M, ...) what was done there."""
        return np.concatenate([e.actions[:t] for e, t in zip(self.episodes, self.lengths, strict=True)])

    # --- probabilities of sequences --------------------------------------------------------------------------

    def log_proxies(self, actor: Actor) -> Floats:
        """(n,) the log of the proxy of every logged sequence under a policy."""
        if actor.act is None:
            raise PodiumError(
                f"policy {actor.name!r} offers densities and no actions; the proxy needs its actions",
                hint="give log_prob for every policy and for the behaviour policy, or functions of an observation.",
            )
        bounds = actor.bounds if self.bounds is None else bounds_of(self.bounds)
        if bounds is None:
            raise PodiumError("the bounds of the action space are not known", hint=HINT)
        logged = self.actions.reshape(len(self.actions), -1).astype(np.float64)
        bounds = bounds.spread(logged.shape[1])
        if len(bounds.low) != logged.shape[1]:
            raise PodiumError(
                f"the logged actions have {count(logged.shape[1], 'coordinate')}; the bounds have {len(bounds.low)}",
                hint=HINT,
            )
        self._refuse_outside(
            "the logged actions",
            logged,
            bounds,
            "log the actions as the environment got them (clipped), or widen bounds.",
        )
        ours = actor.actions(self.observations, logged)
        self._refuse_outside(f"policy {actor.name!r}", ours, bounds, "clip its actions, as the environment would.")
        shape = (len(self), int(self.lengths.max()), logged.shape[1])
        inside = np.arange(shape[1]) < self.lengths[:, None]
        policy_actions, logged_actions = np.zeros(shape), np.zeros(shape)
        policy_actions[inside], logged_actions[inside] = bounds.clip(ours), bounds.clip(logged)
        return log_proxy(policy_actions, logged_actions, bounds.low, bounds.high, self.lengths, self.coordinates)

    def log_densities(self, actor: Actor) -> Floats:
        """(n,) the sum of the steps' log-densities under a policy that offers them."""
        if actor.density is None:
            raise PodiumError(
                f"policy {actor.name!r} offers no densities",
                hint="give it a method log_prob(observations, actions), or use probabilities='proxy'.",
            )
        return self.add_up(self.step_densities(actor))

    def step_densities(self, actor: Actor) -> Floats:
        """(M,) the log-density of every step under a policy that offers them."""
        steps = actor.log_densities(self.observations, self.actions)
        bad = np.isnan(steps) | (steps == np.inf)
        self._refuse(f"policy {actor.name!r}", "must give a log-density", bad[:, None], steps[:, None], "repair it.")
        if self.actions.dtype.kind in "iu":
            self._refuse(
                f"policy {actor.name!r}", "must give a log-probability, at most 0 where actions are whole numbers",
                (steps > AGREE)[:, None], steps[:, None],
                "give log(p), not p; actions that are continuous are decimal numbers.",
            )  # fmt: skip
        return steps

    def add_up(self, steps: Floats) -> Floats:
        """(n,) sums over the steps of each episode."""
        return np.add.reduceat(steps, np.cumsum(self.lengths) - self.lengths)

    def padded(self, steps: Floats) -> Floats:
        """(n, T) numbers of steps (M,), with 0 after an episode's end."""
        table = np.zeros((len(self), int(self.lengths.max())))
        table[np.arange(table.shape[1]) < self.lengths[:, None]] = steps
        return table

    @cached_property
    def recorded(self) -> Floats | None:
        """(M,) the logarithms of recorded propensities, where every episode has them."""
        if any(e.propensities is None for e in self.episodes):
            return None
        parts = [e.propensities[:t] for e, t in zip(self.episodes, self.lengths, strict=True)]
        logs: Floats = np.log(np.concatenate(parts))
        return logs

    def _refuse_outside(self, what: str, actions: Floats, bounds: Bounds, hint: str) -> None:
        self._refuse(what, "must be finite numbers", ~np.isfinite(actions), actions, "repair the policy.")
        bad = bounds.outside(actions)
        ends = [f"[{show_value(lo)}, {show_value(hi)}]" for lo, hi in zip(bounds.low, bounds.high, strict=True)]
        j = int(bad.any(axis=0).argmax())
        self._refuse(what, f"must lie within the bounds {ends[j]}", bad, actions, hint)

    def _refuse(self, what: str, rule: str, bad: NDArray[np.bool_], values: Floats, hint: str) -> None:
        """Raise if any step is bad, naming the first."""
        steps = np.flatnonzero(bad.any(axis=1))
        if not steps.size:
            return
        starts = np.cumsum(self.lengths) - self.lengths
        number = int(np.searchsorted(starts, steps[0], side="right"))
        j = int(bad[steps[0]].argmax())
        place = f"step {steps[0] - starts[number - 1] + 1} of episode {number}"
        coordinate = f" at coordinate {j + 1}" if bad.shape[1] > 1 else ""
        raise PodiumError(
            f"{what} {rule}; {place} holds {show_value(values[steps[0], j])}{coordinate} ({count(steps.size, 'step')})",
            hint=hint,
        )

    # --- interactions ----------------------------------------------------------------------------------------

    def interactions(self, policies: Mapping[str, Any], behavior: Any = None) -> Interactions:
        """The episodes as a `Log`, and the policies on it; the behaviour policy's own proxy is the propensity."""
        if not isinstance(policies, Mapping) or not policies:
            raise PodiumError("no policies to compare", hint="give policies={'name': ...}.")
        candidates = {name: as_actor(name, policy) for name, policy in policies.items() if not is_logged(policy)}
        acted, notes = self._who_acted(behavior, candidates)
        actors = list(dict.fromkeys([*candidates.values(), *(acted or ())]))
        measure, more = self._measure(actors)
        values = {actor: measure(actor) for actor in actors}
        logp = None if acted is None else np.array([values[actor][n] for n, actor in enumerate(acted)])
        by_density = all(actor.density is not None for actor in actors) and self.probabilities != "proxy"
        if logp is None and by_density and self.recorded is not None:
            logp = self.add_up(self.recorded)
        if logp is None and len(candidates) < len(policies):
            raise PodiumError(
                "the policy 'logged' is the behaviour policy, and the episodes do not say what that is",
                hint="give behavior=, or record episodes with the name of the policy that acts.",
            )
        found: dict[str, Floats] = {}
        for name in policies:
            if name in candidates:
                found[name] = values[candidates[name]]
            elif logp is not None:
                found[name] = logp
        made = self._scaled(found, logp, [*notes, *more, *self._oddities(found)])
        if lacking := self._lacking(actors, list(candidates.values()), logp):
            return replace(made, lacking=f"needs episodes with the probability of every step, {lacking}")
        assert logp is not None
        steps = {actor: self.step_densities(actor) for actor in actors}
        base = self.recorded if acted is None else self._acted_steps(acted, steps)
        assert base is not None
        own = {name: steps[actor] for name, actor in candidates.items()}
        terms = {name: self._trajectory_terms(own.get(name, base), base) for name in policies}
        known = {
            name: replace(p, terms=terms[name][0], effective=terms[name][1], density=True)
            for name, p in made.policies.items()
        }
        return replace(made, policies=known)

    def _lacking(self, actors: Sequence[Actor], candidates: Sequence[Actor], logp: Floats | None) -> str:
        """Who keeps importance sampling from being had, if anybody does."""
        silent = next((actor for actor in actors if actor.density is None), None)
        if silent is not None:
            return f"which {repr(silent.name) if silent in candidates else 'the behaviour policy'} lacks"
        if self.probabilities == "proxy":
            return "and probabilities='proxy' does without"
        if logp is None:
            return "and the behaviour policy is not known"
        return "and the behaviour policy's is 0 somewhere" if np.isneginf(logp).any() else ""

    def _acted_steps(self, acted: Sequence[Actor], steps: Mapping[Actor, Floats]) -> Floats:
        """(M,) log-densities of the steps under whoever acted in each episode."""
        ends = np.cumsum(self.lengths)
        parts = [steps[a][end - t : end] for a, end, t in zip(acted, ends, self.lengths, strict=True)]
        return np.concatenate(parts)

    def _trajectory_terms(self, steps: Floats, base: Floats) -> tuple[dict[str, Floats], dict[str, float]]:
        """Row terms of importance sampling, and how many episodes they rest on."""
        return trajectory_terms(self.padded(steps - base), self.padded(np.concatenate(self.rewards)))

    def compare(
        self, policies: Mapping[str, Any], behavior: Any = None, estimator: Any = "LDE", **options: Any
    ) -> Comparison:
        """Rank the policies and judge every pair; `options` are those of `podium.compare`."""
        made = self.interactions(policies, behavior)
        if made.lacking and (asked := EPISODIC.get(str(estimator).upper())) is not None:
            raise Unavailable(f"{asked.name} {made.lacking}", hint=STEPS_HINT)
        result = compare_policies(made.log, made.policies, estimator, **options)
        return retold(result, made.notes, made.log)

    def evaluate(
        self,
        policies: Mapping[str, Any],
        behavior: Any = None,
        estimators: str | Sequence[Any] = tuple(EPISODIC),
        **options: Any,
    ) -> Estimates:
        """The table of estimates alone: importance sampling by default; `options` are those of `podium.evaluate`."""
        made = self.interactions(policies, behavior)
        found = evaluate_policies(made.log, made.policies, find_estimators(estimators, episodes=True), **options)
        settings = {**found.settings, "gamma": float(self.gamma), "notes": self._discounts()}
        reasons = dict(found.unavailable)
        if made.lacking:
            reasons |= {name: f"{name} {made.lacking}" for name in reasons if name in EPISODIC}
        return replace(found, settings=settings, unavailable=reasons)

    def _discounts(self) -> list[str]:
        return [] if self.gamma == 1 else [f"The reward of step t = 0, 1, ... counts {self.gamma:g}^t times"]

    def _who_acted(self, behavior: Any, candidates: Mapping[str, Actor]) -> tuple[list[Actor] | None, list[str]]:
        """The actor of every episode, or None where it is not known, and why."""
        who: list[Any] = [e.behavior for e in self.episodes]  # names, or policies
        if isinstance(behavior, Mapping):
            candidates = {**candidates, **{name: as_actor(name, policy) for name, policy in behavior.items()}}
        elif isinstance(behavior, Sequence) and not isinstance(behavior, str):
            who = list(behavior)
            if len(who) != len(self):
                raise PodiumError(
                    f"behavior must have one entry per episode; it has {len(who)} for {count(len(self), 'episode')}",
                    hint="name the policy that acted in each episode.",
                )
        elif isinstance(behavior, str) and behavior not in candidates:  # a SPEC
            who = [as_actor("behavior", behavior)] * len(self)
        elif behavior is not None:
            who = [behavior] * len(self)
        elif all(name is None for name in who):
            return None, []
        others = {id(x): x for x in who if x is not None and not isinstance(x, str)}
        made = {key: x if isinstance(x, Actor) else as_actor("behavior", x) for key, x in others.items()}
        found = [made.get(id(x)) or candidates.get(x) for x in who]
        acted = [actor for actor in found if actor is not None]
        if len(acted) == len(who):
            return acted, []
        strange = listed(sorted({str(x) for x, actor in zip(who, found, strict=True) if actor is None}))
        if behavior is None:
            return None, [f"The policies that acted are not all known ({strange}), so there are no propensities"]
        raise PodiumError(
            f"the episodes were recorded with policies that are not given: {strange}",
            hint=f"known are {listed(candidates)}; give the others with behavior={{name: policy}}.",
        )

    def _measure(self, actors: Sequence[Actor]) -> tuple[Any, list[str]]:
        """How sequences get their probabilities, the same way for all, and what to say of it."""
        offering = [actor.name for actor in actors if actor.density is not None]
        if self.probabilities == "density" or (self.probabilities == "auto" and len(offering) == len(actors)):
            return self.log_densities, ["Probabilities of sequences are products of the policies' densities"]
        notes = [
            "Probabilities of sequences are proxies (how near a policy's actions are to the logged ones): "
            "read the order of scores and differences, not their size"
        ]
        if offering and self.probabilities == "auto":
            notes.append(f"The densities that {listed(offering)} can give are not used: not every policy has them")
        known = [actor for actor in actors if actor.bounds is not None]
        bounds = bounds_of(self.bounds) if self.bounds is not None else known[0].bounds if known else None
        for actor in known:
            if (
                actor.bounds is not None
                and bounds is not None
                and not bounds.spread(len(actor.bounds.low)).matches(actor.bounds)
            ):
                raise PodiumError(
                    f"policy {actor.name!r} was made for other bounds of the action space",
                    hint="compare policies of one environment, and give its bounds.",
                )
        return replace(self, bounds=bounds).log_proxies, notes

    def _scaled(self, found: dict[str, Floats], logp: Floats | None, notes: list[str]) -> Interactions:
        """Log-probabilities as numbers that floating point can hold."""
        everything = np.concatenate([*found.values(), *([] if logp is None else [logp])])
        top = float(everything.max())
        scale = 0.0 if not np.isfinite(top) or np.log(SMALLEST) <= top <= 0 else top
        if scale:
            notes.append(
                f"All probabilities were divided by the largest, e^{top:.4g}: a common factor changes no order"
            )
        propensities, ratios = None, None
        if logp is not None:
            lost = np.flatnonzero(np.isneginf(logp))
            gap = np.array(list(found.values())) - np.where(np.isneginf(logp), 0.0, logp)
            if lost.size:
                notes.append(
                    f"IPS and DRE are left out: the behaviour policy's own probability is 0 in episode {lost[0] + 1} "
                    f"({count(lost.size, 'episode')})"
                )
            elif gap.max() > np.log(LARGEST):
                notes.append(f"IPS and DRE are left out: a ratio of probabilities is e^{gap.max():.4g}")
            else:
                ratios = np.exp(gap)
                if (logp - scale).min() >= np.log(SMALLEST):
                    propensities = np.exp(logp - scale)
                else:
                    notes.append("Propensities below 1e-30 are used only inside the ratios of IPS and DRE")
        log = Log(self.states, np.arange(len(self)), self.returns, propensities=propensities)
        policies = {
            name: Policy(
                np.exp(logs - scale), "probabilities", proxy=True, ratios=None if ratios is None else ratios[k]
            )
            for k, (name, logs) in enumerate(found.items())
        }
        return Interactions(log, policies, found, logp, tuple(notes))

    def _oddities(self, found: Mapping[str, Floats]) -> list[str]:
        """What a reader should know of the episodes and the policies on them."""
        notes = self._discounts() + [
            f"Policy {name!r} has probability 0 in every episode: nothing that was logged speaks of it"
            for name, logs in found.items()
            if np.isneginf(logs).all()
        ]
        longest = int(self.lengths.max())
        cut = sum(e.terminated is False and t < longest for e, t in zip(self.episodes, self.lengths, strict=True))
        if cut:
            notes.append(
                f"{count(cut, 'episode')} stopped before step {longest} without having ended: returns are not whole"
            )
        return notes


def is_logged(policy: Any) -> bool:
    return isinstance(policy, str) and policy == "logged"
