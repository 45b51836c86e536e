"""How the logged actions were chosen: the behaviour policy, given in any form that a policy may take."""

from __future__ import annotations

from typing import Any

from podium.forms import draft_policy
from podium.log import Log
from podium.policies import PolicyRows, align


def resolve_behavior(log: Log, behavior: Any) -> tuple[Log, PolicyRows]:
    """The behaviour policy on the log's rows, and the log over an action space that holds its actions."""
    draft = draft_policy("behavior", behavior, log)
    log = log.with_actions(draft.labels)
    return log, align("behavior", draft, log)
