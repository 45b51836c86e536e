"""Recorded episodes, checked once, with the probabilities that policies give to their sequences of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3 import is_discrete
from podium.comparison.compare import compare, retold
from podium.comparison.result import Comparison
from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError, Unavailable, count, listed, show_value, shown
from podium.data.facts import Fact
from podium.data.grouping import refuse_groups
from podium.data.outcomes import refuse_beside
from podium.data.owned import Own, sealed
from podium.data.probabilities import AGREE
from podium.data.warned import warn_caller
from podium.episodes.actors import Actor, as_actor, check_names, who_acted
from podium.episodes.bounds import HINT, Bounds, bounds_of
from podium.episodes.interactions import Interactions, as_interactions, without_steps
from podium.episodes.proxy import Coordinates, log_proxy
from podium.episodes.recordings import as_episodes, check_steps, refuse_steps
from podium.episodes.trajectories import trajectory_terms
from podium.estimates.estimators import EPISODIC, find_estimators
from podium.estimates.evaluate import Estimates, evaluate

STEPS_HINT = "give policies with log_prob, and behavior= such a policy, or Episode(..., propensities=...)."
PROBABILITIES = ("auto", "proxy", "density")


@dataclass(frozen=True, eq=False, repr=False)
class EpisodeLog(Own):
    """Recorded episodes, checked once; the parameters are those of `compare`."""

    episodes: Any
    bounds: Any = None
    horizon: int | None = None
    coordinates: Coordinates = "mean"
    probabilities: str = "auto"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.horizon is not None:
            check_steps("horizon", self.horizon, "use horizon=100 for the first 100 steps; None for whole episodes.")
        if not isinstance(self.probabilities, str) or self.probabilities not in PROBABILITIES:
            raise PodiumError(
                f"probabilities must be 'auto', 'proxy' or 'density'; it is {shown(self.probabilities)}",
                hint="'auto' uses densities where every policy offers them.",
            )
        g = self.gamma
        if isinstance(g, bool) or not isinstance(g, Real) or not 0 <= g <= 1:
            raise PodiumError(
                f"gamma must be a number from 0 to 1; it is {shown(g)}",
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
        return sealed(np.array([min(len(e), self.horizon or len(e)) for e in self.episodes]))

    @cached_property
    def starts(self) -> Codes:
        """(n,) where each episode starts among all those steps."""
        return sealed(np.cumsum(self.lengths) - self.lengths)

    @cached_property
    def returns(self) -> Floats:
        """(n,) the sum of the rewards of those steps, discounted."""
        return sealed(np.array([r.sum() for r in self.rewards]))

    @cached_property
    def rewards(self) -> tuple[Floats, ...]:
        """(T,) the rewards of those steps, times gamma^t, of every episode."""
        discount = float(self.gamma) ** np.arange(int(self.lengths.max()))
        parts = zip(self.episodes, self.lengths, strict=True)
        return tuple(sealed(e.rewards[:t] * discount[:t]) for e, t in parts)

    @cached_property
    def states(self) -> NDArray[Any]:
        """(n, D) the first observations."""
        return sealed(np.stack([e.observations[0].reshape(-1) for e in self.episodes]))

    @cached_property
    def observations(self) -> NDArray[Any]:
        """(M, ...) what was seen in all steps that count, one episode after the other."""
        return sealed(np.concatenate([e.observations[:t] for e, t in zip(self.episodes, self.lengths, strict=True)]))

    @cached_property
    def actions(self) -> NDArray[Any]:
        """(M, ...) what was done there."""
        return sealed(np.concatenate([e.actions[:t] for e, t in zip(self.episodes, self.lengths, strict=True)]))

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
        hint = "log the actions as the environment got them (clipped), or widen bounds."
        self._refuse_outside("the logged actions", logged, bounds, hint)
        ours = actor.actions(self.observations, logged)
        self._refuse_outside(f"policy {actor.name!r}", ours, bounds, "clip its actions, as the environment would.")
        ours, logged = self.padded(bounds.clip(ours)), self.padded(bounds.clip(logged))
        return log_proxy(ours, logged, bounds.low, bounds.high, self.lengths, self.coordinates)

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
        refuse_steps(f"policy {actor.name!r}", "must give a log-density", bad, steps, "repair it.", self.starts)
        if self.actions.dtype.kind in "iu":
            rule = "must give a log-probability, at most 0 where actions are whole numbers"
            hint = "give log(p), not p; actions that are continuous are decimal numbers."
            refuse_steps(f"policy {actor.name!r}", rule, steps > AGREE, steps, hint, self.starts)
        return steps

    def add_up(self, steps: Floats) -> Floats:
        """(n,) sums over the steps of each episode."""
        return np.add.reduceat(steps, self.starts)

    def padded(self, steps: Floats) -> Floats:
        """(n, T, ...) numbers of steps (M, ...), with 0 after an episode's end."""
        table = np.zeros((len(self), int(self.lengths.max()), *steps.shape[1:]))
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
        refuse_steps(what, "must be finite numbers", ~np.isfinite(actions), actions, "repair the policy.", self.starts)
        bad = bounds.outside(actions)
        ends = [f"[{show_value(lo)}, {show_value(hi)}]" for lo, hi in zip(bounds.low, bounds.high, strict=True)]
        j = int(bad.any(axis=0).argmax())
        refuse_steps(what, f"must lie within the bounds {ends[j]}", bad, actions, hint, self.starts)

    # --- interactions ----------------------------------------------------------------------------------------

    def interactions(self, policies: Mapping[str, Any], behavior: Any = None) -> Interactions:
        """The episodes as a `Log`, and the policies on it; the behaviour policy's own proxy is the propensity."""
        check_names(policies)
        candidates = {name: as_actor(name, policy) for name, policy in policies.items() if not is_logged(policy)}
        acted, notes = who_acted([e.behavior for e in self.episodes], behavior, candidates)
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
        sequences = {name: values[candidates[name]] if name in candidates else logp for name in policies}
        known = {name: logs for name, logs in sequences.items() if logs is not None}
        notes = [*notes, *more, *self._oddities(known)]
        made = as_interactions(self.states, self.returns, known, logp, notes)
        if lacking := without_steps(actors, list(candidates.values()), self.probabilities, logp):
            return replace(made, lacking=f"needs episodes with the probability of every step, {lacking}")
        assert logp is not None
        steps = {actor: self.step_densities(actor) for actor in actors}
        base = self.recorded if acted is None else self._acted_steps(acted, steps)
        assert base is not None
        own = {name: steps[actor] for name, actor in candidates.items()}
        rewards = self.padded(np.concatenate(self.rewards))
        weighted = {}
        for name, policy in made.policies.items():
            terms = trajectory_terms(self.padded(own.get(name, base) - base), rewards)
            weighted[name] = replace(policy, terms=terms, density=True)
        return replace(made, policies=weighted)

    def _acted_steps(self, acted: Sequence[Actor], steps: Mapping[Actor, Floats]) -> Floats:
        """(M,) log-densities of the steps under whoever acted in each episode."""
        return np.concatenate(
            [steps[a][start : start + t] for a, start, t in zip(acted, self.starts, self.lengths, strict=True)]
        )

    def compare(
        self, policies: Mapping[str, Any], behavior: Any = None, estimator: Any = "LDE", **options: Any
    ) -> Comparison:
        """Rank the policies and judge every pair; `options` are those of `podium.compare` but `by`, `also`, `worth`."""
        refuse_groups(options, "episodes")
        refuse_beside(options, "episodes")
        made = self.interactions(policies, behavior)
        asked = EPISODIC.get(estimator.upper()) if isinstance(estimator, str) else None
        if made.lacking and asked is not None:
            raise Unavailable(f"{asked.name} {made.lacking}", hint=STEPS_HINT)
        result = retold(compare(made.log, made.policies, estimator, **options), made.notes, made.log)
        warn_caller(result.warnings)
        return result

    def evaluate(
        self,
        policies: Mapping[str, Any],
        behavior: Any = None,
        estimators: str | Sequence[Any] = tuple(EPISODIC),
        **options: Any,
    ) -> Estimates:
        """The table of estimates alone: importance sampling by default; `options` are those of `podium.evaluate`."""
        made = self.interactions(policies, behavior)
        estimates = evaluate(made.log, made.policies, find_estimators(estimators, episodes=True), **options)
        settings = {**estimates.settings, "gamma": float(self.gamma), "notes": self._discounts()}
        reasons = dict(estimates.unavailable)
        if made.lacking:
            reasons |= {name: f"{name} {made.lacking}" for name in reasons if name in EPISODIC}
        return replace(estimates, settings=settings, unavailable=reasons)

    def _measure(self, actors: Sequence[Actor]) -> tuple[Any, list[Fact]]:
        """How sequences get their probabilities, the same way for all, and what to say of it."""
        offering = [actor.name for actor in actors if actor.density is not None]
        if self.probabilities == "density" or (self.probabilities == "auto" and len(offering) == len(actors)):
            return self.log_densities, [Fact("density products")]
        notes = [Fact("sequence proxies")]
        if offering and self.probabilities == "auto":
            notes.append(Fact("densities not used", policies=listed(offering)))
        known = {actor.name: actor.bounds for actor in actors if actor.bounds is not None}
        bounds = bounds_of(self.bounds) if self.bounds is not None else next(iter(known.values()), None)
        for name, own in known.items():
            if bounds is not None and not bounds.spread(len(own.low)).matches(own):
                raise PodiumError(
                    f"policy {name!r} was made for other bounds of the action space",
                    hint="compare policies of one environment, and give its bounds.",
                )
        return replace(self, bounds=bounds).log_proxies, notes

    def _discounts(self) -> list[Fact]:
        return [] if self.gamma == 1 else [Fact("discounted", gamma=self.gamma)]

    def _oddities(self, log_probabilities: Mapping[str, Floats]) -> list[Fact]:
        """What a reader should know of the episodes and the policies on them."""
        never = [name for name, logs in log_probabilities.items() if np.isneginf(logs).all()]
        notes = [*self._discounts(), *(Fact("policy impossible", policy=name) for name in never)]
        longest = int(self.lengths.max())
        cut = sum(e.terminated is False and t < longest for e, t in zip(self.episodes, self.lengths, strict=True))
        return [*notes, Fact("episodes cut short", episodes=count(cut, "episode"), step=longest)] if cut else notes


def is_logged(policy: Any) -> bool:
    return isinstance(policy, str) and policy == "logged"
