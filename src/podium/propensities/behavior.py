"""How the logged actions were chosen: the behaviour policy, in any form that a policy may take, or estimated.

`"estimate"`, `"estimate:MODEL"` and what `estimate_propensities` returns stand for an estimate from the log itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data.columns import Floats
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.probabilities import AGREE
from podium.policies import align
from podium.policies.drafts import Policy
from podium.policies.forms import draft_policy
from podium.policies.shares import refuse_unshared, shares_in
from podium.policies.specs import load_object
from podium.propensities.estimated import estimate_propensities
from podium.propensities.loggers import Loggers, mixed


def read_behavior(log: Log, behavior: Any, seed: int) -> tuple[dict[str, Any], Floats | None]:
    """The fields of a log that its behavior policy sets, and the probabilities of the logged actions to be checked."""
    if isinstance(behavior, Loggers):
        return mixed(log, behavior), None
    if behavior is None:
        behavior = shown_by_propensities(log)
        if behavior is None:
            return {}, None
    estimated = None
    asked = isinstance(behavior, str) and behavior.partition(":")[0] == "estimate"
    if asked or hasattr(behavior, "belief"):
        if log.propensities is not None:
            raise PodiumError(
                "the log has propensities, so they are not estimated",
                hint="leave `behavior` out; podium.estimate_propensities(log) shows an estimate beside them.",
            )
        estimated = estimate_propensities(log, named_model(behavior), seed=seed) if asked else behavior
        behavior = estimated.behavior
    draft = draft_policy("behavior", behavior, log)
    log = log.with_actions(draft.labels)
    policy = align("behavior", draft, log)
    fixed = draft.kind == "shares" and (log.eligible is None or bool(log.eligible.all()))
    if fixed and policy.matrix is not None:
        counts = np.bincount(log.action_codes, minlength=log.n_actions)
        refuse_unshared(*(dict(zip(log.action_space, x, strict=True)) for x in (policy.matrix[0], counts)))
    fields = {
        "action_space": log.action_space,
        "behavior": policy.full(log.n_actions) if policy.has_full else None,
        "estimated": estimated or log.estimated,
        "logged_by": "the full behaviour policy, renormalized over the eligible actions"
        if policy.moved is not None
        else "",
        "shares": fixed,
    }
    return fields, policy.logged


def shown_by_propensities(log: Log) -> Policy | None:
    """The behavior policy that the propensities of the logged actions show: fixed shares, or uniform over the eligible
    actions; None where they do not."""
    if log.propensities is None or log.eligible is None or log.eligible.all():
        shares = shares_in(log)
        return None if shares is None else Policy(shares, kind="shares")
    seen = len(np.unique(log.action_codes))
    even = bool((np.abs(log.propensities - 1 / log.choices) <= AGREE).all())
    return Policy("uniform", kind="uniform") if even and len(log) >= 2 * seen else None


def named_model(spec: str) -> Any:
    """The model that "estimate", "estimate:logistic" or "estimate:package.module:object" names."""
    name = spec.partition(":")[2]
    module, colon, member = name.partition(":")
    if not colon:
        return name or None
    return load_object(module, member, "model of the propensities")


Log.read_behavior = read_behavior
