"""Which procedure judges a comparison, by the size and the columns of the log alone, and why."""

from __future__ import annotations

import numpy as np

from podium.errors import PodiumError
from podium.estimate import MethodResult
from podium.gated import FEW_ROWS, gated
from podium.log import Log
from podium.policies import PolicySet
from podium.resampling import LABELS, classical
from podium.verdicts import Judgement

PROCEDURES = ("posterior", "gated", *LABELS)
MOST_CELLS = 60_000_000  # policies x rows x actions that the posterior holds in memory
MOST_ROWS = 20_000


def why_no_posterior(log: Log, policies: PolicySet) -> str:
    """Why the posterior cannot be used; nothing if it can."""
    partial = [p.name for p in policies if not p.has_full]
    if partial:
        return f"the posterior needs pi(a|s) for every action, and {partial[0]!r} is known only at the logged actions"
    if any(p.proxy for p in policies):
        return "the posterior needs probabilities, and some policies are scores that stand for them"
    if len(log) > MOST_ROWS or len(policies) * len(log) * log.n_actions > MOST_CELLS:
        return f"the posterior is for logs of up to {MOST_ROWS:,} rows"
    return ""


def pick_procedure(log: Log, policies: PolicySet, wanted: str | None) -> tuple[str, str]:
    """The procedure's name, and why it is not the default one where it is not."""
    if wanted is not None and wanted not in PROCEDURES:
        raise PodiumError(f"unknown verdicts {wanted!r}", hint="the procedures are " + ", ".join(PROCEDURES) + ".")
    obstacle = why_no_posterior(log, policies)
    if wanted == "posterior" and obstacle:
        raise PodiumError(
            f"the posterior cannot be used: {obstacle}", hint='leave verdicts out, or use verdicts="gated".'
        )
    if wanted is not None:
        return wanted, ""
    return ("gated", obstacle) if obstacle else ("posterior", "")


def judge(log: Log, policies: PolicySet, procedure: str, main: MethodResult, units: float, seed: int) -> Judgement:
    """What a procedure says of every pair; the classical ones judge the row terms of the main method."""
    if procedure == "posterior":
        return by_posterior(log, policies, seed)
    if procedure == "gated":
        return gated(log, policies)
    return classical(main, units, procedure, seed)


def by_posterior(log: Log, policies: PolicySet, seed: int) -> Judgement:
    """The posterior of every difference as a judgement."""
    from podium.evidence import gather
    from podium.posterior import posterior

    found = posterior(gather(log, policies), seed)
    reason = found.reasons[0] if found.reasons else "The doubly robust check contradicts the posterior"
    few = f"Fewer than {FEW_ROWS} rows are too few for a claim" if len(log) < FEW_ROWS else ""
    return Judgement(
        procedure="posterior",
        difference=found.difference,
        std_error=np.sqrt(found.variance),
        freedom=found.freedom,
        path=tuple("posterior" for _ in found.path),
        silent=tuple(reason if path == "none" else few for path in found.path),
        values=found.values,
        covariance=found.covariance,
        assumes="rewards vary with state and action as the prior allows (see the docs)",
        figures={"t_p": found.t_p, "alarm": found.alarm, "rows": len(log)},
    )
