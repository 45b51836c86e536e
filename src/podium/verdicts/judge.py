"""Which procedure judges a comparison, by the size and the columns of the log alone, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.data.errors import PodiumError, meant
from podium.data.facts import Fact
from podium.data.log import Log
from podium.data.scales import unit_of
from podium.estimates.results import MethodResult
from podium.policies import PolicySet
from podium.propensities.belief import HIDDEN
from podium.verdicts.classical import LABELS, classical
from podium.verdicts.evidence import coordinates, gather
from podium.verdicts.gated import ALARM, Gates, gated
from podium.verdicts.judgement import Judgement
from podium.verdicts.posterior import posterior
from podium.verdicts.unseen_densities import silent_unless_seen

JUDGES = ("posterior", "gated")  # procedures that give values of their own, by which policies can be ranked
PROCEDURES = (*JUDGES, "doubly robust", *LABELS)
MOST_CELLS = 60_000_000  # policies x rows x actions that the posterior holds in memory
MOST_POINTS = 4_000  # actions that are points of a line or have features: each is held against every other
CONFIRMED = 0.9  # how sure DRE must be where an estimated logger seems to seek reward


def why_no_posterior(log: Log, policies: PolicySet) -> str:
    """Why the posterior cannot be used; nothing if it can."""
    partial = [p.name for p in policies if not p.has_full]
    if partial:
        return f"the posterior needs pi(a|s) for every action, and {partial[0]!r} is known only at the logged actions"
    if policies.proxies:
        return "the posterior needs probabilities, and some policies are scores that stand for them"
    if len(policies) * len(log) * log.n_actions > MOST_CELLS:
        return f"the posterior is for up to {MOST_CELLS:,} probabilities (policies x rows x actions)"
    if log.n_actions > MOST_POINTS and coordinates(log.action_space) is not None:
        return f"the posterior is for up to {MOST_POINTS:,} actions that are numbers"
    return ""


def pick_procedure(log: Log, policies: PolicySet, wanted: str | None) -> tuple[str, str]:
    """The procedure's name, and why it is not the default one where it is not."""
    if wanted is not None and wanted not in PROCEDURES:
        hint = meant(wanted, PROCEDURES) + "the procedures are " + ", ".join(PROCEDURES) + "."
        raise PodiumError(f"unknown verdicts {wanted!r}", hint=hint)
    obstacle = why_no_posterior(log, policies)
    if wanted == "posterior" and obstacle:
        raise PodiumError(
            f"the posterior cannot be used: {obstacle}", hint='leave verdicts out, or use verdicts="gated".'
        )
    if wanted is not None:
        return wanted, ""
    return ("gated", obstacle) if obstacle else ("posterior", "")


def judge(log: Log, policies: PolicySet, procedure: str) -> Judgement:
    """What the posterior or the gated procedure says of every pair.

    Estimated propensities are not knowledge. If they are believable the posterior takes them for the logger's habits;
    otherwise, and in the gated procedure, verdicts do without. Where they seek reward they silence every pair, except
    those that a believable estimate confirms by DRE.
    """
    if log.estimated is not None:
        plain = as_judged(log, procedure)
        return silence_seekers(judge(plain, policies, procedure), Gates(log, policies), plain.propensities is not None)
    return by_posterior(log, policies) if procedure == "posterior" else gated(Gates(log, policies))


def as_judged(log: Log, procedure: str) -> Log:
    """The log with the propensities that a procedure goes by: estimated ones count as known if it believes them."""
    if log.estimated is None:
        return log
    believed = procedure == "posterior" and log.estimated.belief.verdict == "believable"
    return log.taken_as_known() if believed else log.without_estimate()


def by_terms(knows: str, policies: PolicySet, main: MethodResult, units: float, procedure: str, seed: int) -> Judgement:
    """The row terms of the main method judged in a classical way; of proxies only weights that are true ratios of
    densities support a claim."""
    result = classical(main, units, procedure, seed)
    weighed = main.estimator.uses_propensity and all(p.density for p in policies if p.proxy)
    if policies.proxies and not weighed:
        result = replace(result, silent=tuple(r or Fact("scores, not probabilities") for r in result.silent))
    elif policies.proxies:
        result = replace(result, silent=silent_unless_seen(result.silent, policies))
    if knows != "estimated" or not main.estimator.uses_propensity:
        return result
    return replace(result, notes=(*result.notes, Fact("estimate taken as known")))


def silence_seekers(judgement: Judgement, gates: Gates, used: bool) -> Judgement:
    """A judgement that is silent where estimated propensities suggest that the logger seeks reward, and DRE with a
    believable estimate is not fairly sure of the same sign."""
    from scipy.special import stdtr

    t_p, silent = gates.t_p, judgement.silent
    if abs(t_p) > ALARM:
        confirmed = np.zeros(len(silent), dtype=bool)
        if used and gates.dre is not None:
            z = np.sign(judgement.difference) * gates.dre.difference / gates.dre.std_error
            confirmed = stdtr(gates.dre.freedom, np.nan_to_num(z)) >= CONFIRMED
        why = "DRE does not confirm the sign" if used else "they are no proof"
        reason = Fact("logger seeks reward by estimate", t_p=t_p, why=why)
        silent = tuple(other or ("" if ok else reason) for other, ok in zip(silent, confirmed, strict=True))
    note = Fact("estimate used", assumes=HIDDEN) if used else Fact("estimate not used")
    return replace(
        judgement,
        silent=silent,
        notes=(*judgement.notes, note),
        t_p=max(judgement.t_p, t_p, key=abs),
        alarm=judgement.alarm or abs(t_p) > ALARM,
    )


def by_posterior(log: Log, policies: PolicySet) -> Judgement:
    """The posterior of every difference as a judgement."""
    from threadpoolctl import threadpool_limits

    gates = Gates(log, policies)
    alarm = abs(gates.t_p) > ALARM
    features = log.action_features
    if log.n_actions > MOST_POINTS:
        log = log._copy(action_features=None)
    with threadpool_limits(limits=1, user_api="blas"):  # threads cost more than they give on such matrices
        unit = unit_of(float(np.ptp(log.rewards)))  # rewards whose squares no float can hold are scaled
        result = posterior(gather(log, policies, unit), alarm)
    notes: tuple[Fact, ...] = ()
    if log.propensities is None:
        notes = (Fact("no propensities"),)
    elif log.behavior is None:
        notes = (Fact("propensities at logged actions"),)
    if features is not None and log.action_features is None:
        why = f"they are for up to {MOST_POINTS:,} actions, and the log has {log.n_actions:,}"
        notes = (*notes, Fact("action features unused", columns=features.described(), why=why))
    elif features is not None:
        code = "action features" if result.described else "action features explain nothing"
        notes = (*notes, Fact(code, columns=features.described()))
    return Judgement(
        procedure="posterior",
        difference=unit * result.difference,
        std_error=unit * np.sqrt(result.variance),
        freedom=result.freedom,
        path=("posterior",) * len(result.difference),
        silent=result.reasons,
        values=unit * result.values,
        mixture=None if result.mixture is None else result.mixture.scaled(unit),
        learned=result.learned,
        assumes="what the log shows of states and actions holds for those it does not show",
        notes=notes,
        rows=len(log),
        t_p=gates.t_p,
        alarm=alarm,
        influence=unit * result.influence,
        logger=gates,
    )
