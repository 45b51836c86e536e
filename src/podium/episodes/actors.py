"""Policies that act: whatever turns observations into actions, or says how probable actions are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.adapters.sb3 import is_discrete, load_model
from podium.data.arguments import attribute, refuse_class
from podium.data.columns import Floats, foreign_array
from podium.data.errors import PodiumError, count, listed, told_as
from podium.data.facts import Fact
from podium.data.owned import ask
from podium.episodes.bounds import Bounds, bounds_of
from podium.policies.specs import load_object

CLOSE = 1e-5  # single precision: the same network answers slightly differently to batches of different sizes
FORMS = (
    "a policy is a function of an observation (or a batch of them), a Stable-Baselines3 model, an object with "
    "predict(observations), one with log_prob(observations, actions), 'sb3:ALGO:model.zip' or 'package.module:object'."
)


@dataclass(frozen=True, eq=False)
class Actor:
    """One policy: how it acts on a batch of observations, and its log-densities, where it has them."""

    name: str
    act: Callable[[NDArray[Any], int], Any] | None  # observations and the number of an action's coordinates
    density: Callable[[NDArray[Any], NDArray[Any]], Any] | None
    bounds: Bounds | None

    def actions(self, observations: NDArray[Any], logged: NDArray[Any]) -> Floats:
        """(M, d) what the policy would have done where the logged actions (M, d) were taken."""
        assert self.act is not None
        answer = self._call(self.act, observations, logged[0].size)
        if answer.size != logged.size or len(np.atleast_1d(answer)) != len(logged):
            raise PodiumError(
                f"policy {self.name!r} gives actions of shape {answer.shape} for {count(len(logged), 'observation')}; "
                f"the logged ones have {logged.shape}",
                hint="it must give one action per observation, with the coordinates of the logged actions.",
            )
        return answer.reshape(logged.shape)

    def log_densities(self, observations: NDArray[Any], actions: NDArray[Any]) -> Floats:
        """(M,) log pi(a_t|s_t) of every logged step."""
        assert self.density is not None
        answer = self._call(self.density, observations, actions)
        if answer.shape not in ((len(actions),), (len(actions), 1)):
            raise PodiumError(
                f"policy {self.name!r} gives log-densities of shape {answer.shape} for {count(len(actions), 'step')}",
                hint="log_prob(observations, actions) gives one number per step; add up the coordinates.",
            )
        return answer.reshape(-1)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Floats:
        shapes = " and ".join(str(x.shape) for x in arguments if isinstance(x, np.ndarray))
        hint = f"it was called with arrays of shape {shapes}."
        with told_as(f"policy {self.name!r} failed on the logged steps", hint):
            return numbers_of(ask(function, *arguments))


def as_actor(name: str, policy: Any) -> Actor:
    """Read a policy in any form that acts."""
    refuse_class(f"policy {name!r}", policy)
    if isinstance(policy, str):
        policy = load_spec(policy)
    density, space, predict = (
        attribute(f"policy {name!r}", policy, part) for part in ("log_prob", "action_space", "predict")
    )
    bounds = None if space is None or is_discrete(space) else bounds_of(space)
    if predict is not None:
        if is_discrete(space) and density is None:
            bounds_of(space)  # says that the proxy is for continuous actions
        return Actor(name, batch_predict(policy), density, bounds)
    if callable(policy):
        if density is None and takes_two(policy):
            return Actor(name, None, policy, bounds)
        return Actor(name, Answers(name, policy), density, bounds)
    if density is not None:
        return Actor(name, None, density, bounds)
    raise PodiumError(f"policy {name!r} cannot act: it is {type(policy).__name__}", hint=FORMS)


def check_names(policies: Any) -> None:
    """Policies of episodes are a mapping of names to whatever acts."""
    if not isinstance(policies, Mapping) or not policies:
        raise PodiumError("no policies to compare", hint="give policies={'name': ...}.")
    if not all(isinstance(name, str) and name.strip() for name in policies):
        raise PodiumError("a policy's name must be a text", hint="give policies={'name': ...}.")


def who_acted(
    names: Sequence[str | None], behavior: Any, candidates: Mapping[str, Actor]
) -> tuple[list[Actor] | None, list[Fact]]:
    """The actor of every episode, or None where it is not known, and why; `names` are those that were recorded."""
    who: list[Any] = list(names)  # or policies
    if isinstance(behavior, Mapping):
        candidates = {**candidates, **{name: as_actor(name, policy) for name, policy in behavior.items()}}
    elif isinstance(behavior, Sequence) and not isinstance(behavior, str):
        who = list(behavior)
        if len(who) != len(names):
            raise PodiumError(
                f"behavior must have one entry per episode; it has {len(who)} for {count(len(names), 'episode')}",
                hint="name the policy that acted in each episode.",
            )
    elif isinstance(behavior, str) and behavior not in candidates:  # a SPEC
        who = [as_actor("behavior", behavior)] * len(names)
    elif behavior is not None:
        who = [behavior] * len(names)
    elif all(name is None for name in who):
        return None, []
    others = {id(x): x for x in who if x is not None and not isinstance(x, str)}
    made = {key: x if isinstance(x, Actor) else as_actor("behavior", x) for key, x in others.items()}
    actors = [made.get(id(x)) or candidates.get(x) for x in who]
    acted = [actor for actor in actors if actor is not None]
    if len(acted) == len(who):
        return acted, []
    strange = listed(sorted({str(x) for x, actor in zip(who, actors, strict=True) if actor is None}))
    if behavior is None:
        return None, [Fact("actors unknown", policies=strange)]
    raise PodiumError(
        f"the episodes were recorded with policies that are not given: {strange}",
        hint=f"known are {listed(candidates)}; give the others with behavior={{name: policy}}.",
    )


def load_spec(spec: str) -> Any:
    """A policy named by a text."""
    head, _, rest = spec.partition(":")
    if head == "sb3":
        return load_model(spec)
    if rest and all(part.isidentifier() for part in head.split(".")):
        return load_object(head, rest, "policy")
    raise PodiumError(f"unknown policy {spec!r}", hint=FORMS)


def takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function needs two arguments: observations and actions."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is inspect.Parameter.empty for p in parameters) == 2


def batch_predict(model: Any, deterministic: bool = True) -> Callable[[NDArray[Any], int], Any]:
    """`predict` of a model on a batch, without exploration where it can be asked for."""
    try:
        asks = "deterministic" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):
        asks = False

    def predict(observations: NDArray[Any], width: int) -> Any:
        answer = model.predict(observations, deterministic=deterministic) if asks else model.predict(observations)
        return answer[0] if isinstance(answer, tuple) else answer  # Stable-Baselines3: (actions, hidden state)

    return predict


@dataclass(frozen=True, eq=False)
class Answers:
    """A plain function on a batch of observations: at once where it takes batches, one by one otherwise.

    A function may be written for one observation or for many, and one written for one may answer a batch with
    something else of the right shape. So its answers to the batch count only where they equal those to single
    observations.
    """

    name: str
    function: Callable[[NDArray[Any]], Any]

    def __call__(self, observations: NDArray[Any], width: int) -> Floats:
        rows = sorted({0, len(observations) // 2, len(observations) - 1})
        single = self.one_by_one(observations[rows], width)
        if single is not None and not same(single, self.one_by_one(observations[rows], width)):
            raise PodiumError(
                f"policy {self.name!r} acts at random: it gave two actions for one observation",
                hint="give its most likely action, or log_prob(observations, actions).",
            )
        try:
            batch = numbers_of(ask(self.function, observations))
        except Exception:
            if single is None:
                raise
            batch = np.empty(0)
        if single is None or (batch.shape[:1] == (len(observations),) and same(batch[rows], single)):
            return batch
        return self.each(observations, width)

    def each(self, observations: NDArray[Any], width: int) -> Floats:
        """Its answers to one observation after the other; what it returned before may be written again."""
        return np.stack([numbers_of(ask(self.function, o)).reshape(width) for o in observations])

    def one_by_one(self, observations: NDArray[Any], width: int) -> Floats | None:
        """Its answers to single observations; None where it takes none."""
        try:
            return self.each(observations, width)
        except Exception:
            return None


def array_of(answer: Any) -> NDArray[Any]:
    """What a policy answers, as an array."""
    return foreign_array(answer) if hasattr(answer, "detach") else np.asarray(answer)


def numbers_of(answer: Any) -> Floats:
    """A copy of an answer as numbers: the function may write into it again."""
    return np.array(array_of(answer), dtype=np.float64)


def same(a: Floats, b: Floats | None) -> bool:
    if b is None or a.size != b.size:
        return False
    return np.allclose(a.ravel(), b.ravel(), rtol=CLOSE, atol=CLOSE, equal_nan=True)
