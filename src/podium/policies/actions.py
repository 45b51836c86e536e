"""Action spaces that policies enlarge: a policy may play actions that were never logged, and show them late."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from podium.data.columns import sort_key
from podium.data.errors import listed
from podium.data.facts import Fact
from podium.data.log import Log
from podium.policies import named_policies
from podium.policies.batches import NewActions, Playing, Reader
from podium.policies.drafts import Policy

T = TypeVar("T")
Q = ParamSpec("Q")


def widen(
    space: tuple[Any, ...],
    policies: Mapping[str, Policy],
    late: Mapping[str, Sequence[Any]],
    first: Callable[[tuple[Any, ...]], Log],
) -> tuple[tuple[Any, ...], list[Fact]]:
    """The action space with what the policies can play on the first rows, and warnings where they enlarge it."""
    warnings = []
    for name, policy in policies.items():
        log = first(space)
        draft = Reader({}).draft(name, policy, np.arange(len(log)), log)
        labels = tuple(x for x in draft.labels if x not in set(space))
        if name in late:
            labels = tuple(sorted({*labels, *late[name]} - set(space), key=sort_key))
        if labels and name != "behavior":
            warnings.append(Fact("new actions", policy=name, actions=listed(labels, 5)))
        space = (*space, *labels)
    return space, warnings


def with_every_action(function: Callable[Q, T]) -> Callable[Q, T]:
    """Call a function of `log`, `policies` and `behavior` once more where one of them plays actions that neither the
    first rows nor the sample have shown."""
    names = list(inspect.signature(function).parameters)

    @wraps(function)
    def called(*args: Q.args, **options: Q.kwargs) -> T:
        try:
            return function(*args, **options)
        except NewActions as error:
            given: dict[str, Any] = {**dict(zip(names, args, strict=False)), **options}
            policies = named_policies(given["log"], given.get("policies"))
            if "behavior" in error.played:
                given["behavior"] = Playing(given.get("behavior"), error.played["behavior"])
            given["policies"] = {
                name: Playing(p, error.played[name]) if name in error.played else p for name, p in policies.items()
            }
            return function(**given)  # type: ignore[call-arg]

    return called


def seen_playing(behavior: Any, policies: Any) -> tuple[dict[str, Sequence[Any]], Any, Any]:
    """The actions that policies were seen to play, and the policies themselves."""
    late: dict[str, Sequence[Any]] = {}

    def opened(name: str, policy: Any) -> Any:
        if isinstance(policy, Playing):
            late[name] = policy.actions
            return policy.policy
        return policy

    behavior = opened("behavior", behavior)
    if isinstance(policies, Mapping):
        policies = {name: opened(name, policy) for name, policy in policies.items()}
    return late, behavior, policies
