"""How the logged actions were chosen: the behaviour policy, in any form that a policy may take, or estimated.

`"estimate"`, `"estimate:MODEL"` and what `estimate_propensities` returns stand for an estimate from the log itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data.columns import Floats
from podium.data.errors import PodiumError
from podium.data.log import Log
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
        shares = shares_in(log)
        if shares is None:
            return {}, None
        behavior = Policy(shares, kind="shares")
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
    if draft.kind == "shares" and policy.matrix is not None:
        counts = np.bincount(log.action_codes, minlength=log.n_actions)
        refuse_unshared(*(dict(zip(log.action_space, x, strict=True)) for x in (policy.matrix[0], counts)))
    fields = {
        "action_space": log.action_space,
        "behavior": policy.full(log.n_actions) if policy.has_full else None,
        "estimated": estimated or log.estimated,
        "logged_by": "",
        "shares": draft.kind == "shares",
    }
    return fields, policy.logged


def named_model(spec: str) -> Any:
    """The model that "estimate", "estimate:logistic" or "estimate:package.module:object" names."""
    name = spec.partition(":")[2]
    module, colon, member = name.partition(":")
    if not colon:
        return name or None
    return load_object(module, member, "model of the propensities")


Log.read_behavior = read_behavior
