"""Which procedure judges a comparison, by the size and the columns of the log alone, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.estimates.estimate import MethodResult
from podium.policies import PolicySet
from podium.propensities.belief import HIDDEN
from podium.verdicts import Judgement
from podium.verdicts.classical import LABELS, classical
from podium.verdicts.gated import ALARM, PROXIES, Gates, gated

JUDGES = ("posterior", "gated")  # procedures that give values of their own, by which policies can be ranked
PROCEDURES = (*JUDGES, "doubly robust", *LABELS)
MOST_CELLS = 60_000_000  # policies x rows x actions that the posterior holds in memory
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
    """What a procedure says of every pair; the classical ones judge the row terms of the main method.

    Estimated propensities are not knowledge. If they are believable the posterior takes them for the logger's habits;
    otherwise, and in the gated procedure, verdicts do without. Where they seek reward they silence every pair, except
    those that a believable estimate confirms by DRE.
    """
    if log.estimated is not None and procedure in JUDGES:
        used = procedure == "posterior" and log.estimated.belief.verdict == "believable"
        plain = log.taken_as_known() if used else log.without_estimate()
        found = judge(plain, policies, procedure, main, units, seed)
        return silence_seekers(found, Gates(log, policies), used)
    if procedure == "posterior":
        return by_posterior(log, policies)
    if procedure == "gated":
        return gated(Gates(log, policies))
    return by_terms(log.knows, policies, main, units, procedure, seed)


def by_terms(knows: str, policies: PolicySet, main: MethodResult, units: float, procedure: str, seed: int) -> Judgement:
    """The row terms of the main method judged in a classical way; of proxies only weights that are true ratios of
    densities support a claim."""
    found = classical(main, units, procedure, seed)
    weighed = main.estimator.uses_propensity and all(p.density for p in policies if p.proxy)
    if policies.proxies and not weighed:
        found = replace(found, silent=tuple(reason or PROXIES for reason in found.silent))
    if knows != "estimated" or not main.estimator.uses_propensity:
        return found
    return replace(found, notes=(*found.notes, "The errors take the estimated propensities as if they were known"))


USED = "The estimated propensities are taken for the logger's habits, which assumes that " + HIDDEN
UNUSED = "The verdicts do without the estimated propensities, which serve IPS and DRE and can only silence a pair"


def silence_seekers(found: Judgement, gates: Gates, used: bool) -> Judgement:
    """A judgement that is silent where estimated propensities suggest that the logger seeks reward, and DRE with a
    believable estimate is not fairly sure of the same sign."""
    from scipy.special import stdtr

    t_p, silent, note = gates.t_p, found.silent, USED if used else UNUSED
    if abs(t_p) > ALARM:
        confirmed = np.zeros(len(silent), dtype=bool)
        if used and gates.dre is not None:
            z = np.sign(found.difference) * gates.dre.difference / gates.dre.std_error
            confirmed = stdtr(gates.dre.freedom, np.nan_to_num(z)) >= CONFIRMED
        seeks = f"The logger seems to seek reward by the estimated propensities (T_p = {t_p:.1f})"
        reason = seeks + (", and DRE does not confirm the sign" if used else ", and they are no proof")
        silent = tuple(other or ("" if ok else reason) for other, ok in zip(silent, confirmed, strict=True))
    figures = {**found.figures, "t_p": max(found.figures["t_p"], t_p, key=abs)}
    figures["alarm"] = figures["alarm"] or abs(t_p) > ALARM
    return replace(found, silent=silent, notes=(*found.notes, note), figures=figures)


def by_posterior(log: Log, policies: PolicySet) -> Judgement:
    """The posterior of every difference as a judgement."""
    from threadpoolctl import threadpool_limits

    from podium.verdicts.evidence import gather
    from podium.verdicts.posterior import posterior

    gates = Gates(log, policies)
    t_p = gates.t_p
    alarm = abs(t_p) > ALARM
    with threadpool_limits(limits=1, user_api="blas"):  # threads cost more than they give on such matrices
        found = posterior(gather(log, policies), alarm)
    notes = []
    if log.propensities is None:
        notes.append("Without propensities it is assumed that logging did not seek reward")
    elif log.behavior is None:
        notes.append(
            "Only the propensities of logged actions are known; they serve to watch for loggers that seek reward"
        )
    return Judgement(
        procedure="posterior",
        difference=found.difference,
        std_error=np.sqrt(found.variance),
        freedom=found.freedom,
        path=("posterior",) * len(found.difference),
        silent=found.reasons,
        values=found.values,
        learned=found.learned,
        assumes="what the log shows of states and actions holds for those it does not show",
        notes=tuple(notes),
        figures={
            "t_p": t_p,
            "alarm": alarm,
            "rows": len(log),
            "steady_variance": gates.lde.std_error**2,
            "influence": found.influence,
            "gates": gates,
        },
    )
