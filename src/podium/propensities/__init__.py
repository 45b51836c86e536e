"""How the logged actions were chosen: the behaviour policy, in any form that a policy may take, or estimated.

`"estimate"`, `"estimate:MODEL"` and what `estimate_propensities` returns stand for an estimate from the log itself.
"""

from __future__ import annotations

from typing import Any

from podium.errors import PodiumError
from podium.log import Log
from podium.policies import PolicyRows, align
from podium.policies.forms import draft_policy


def resolve_behavior(log: Log, behavior: Any, seed: int = 0) -> tuple[Log, PolicyRows, Any]:
    """The behaviour policy on the log's rows, the log over an action space that holds its actions, and the
    `PropensityEstimate` if it was estimated."""
    from podium.propensities.estimated import estimate_propensities

    asked = isinstance(behavior, str) and behavior not in log.columns and behavior.partition(":")[0] == "estimate"
    if asked or hasattr(behavior, "belief"):
        if log.propensities is not None:
            raise PodiumError(
                "the log has propensities, so they are not estimated",
                hint="leave `behavior` out; podium.estimate_propensities(log) shows an estimate beside them.",
            )
        found = estimate_propensities(log, named_model(behavior), seed=seed) if asked else behavior
        return log, align("behavior", draft_policy("behavior", found.behavior, log), log), found
    draft = draft_policy("behavior", behavior, log)
    log = log.with_actions(draft.labels)
    return log, align("behavior", draft, log), None


def named_model(spec: str) -> Any:
    """The model that "estimate", "estimate:logistic" or "estimate:package.module:object" names."""
    name = spec.partition(":")[2]
    module, colon, member = name.partition(":")
    if not colon:
        return name or None
    from podium.policies.specs import load_object

    return load_object(module, member, "model of the propensities")
