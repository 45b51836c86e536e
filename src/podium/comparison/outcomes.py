"""Every outcome beside the reward: the same question of the same rows and policies, with another reward."""

from __future__ import annotations

from dataclasses import replace

from podium.comparison.analysis import Analysis, analyze_rows
from podium.data.facts import Fact
from podium.data.outcomes import Outcome, formula
from podium.engines.outcomes import with_reward
from podium.estimates.baselines import learned
from podium.estimates.estimators import Estimator
from podium.estimates.options import Options


def asked_beside(options: Options, reward: str) -> tuple[Outcome, ...]:
    """What is compared besides the main answer; where worths are given, that is the reward by itself too."""
    own = (Outcome(reward, options.lower_is_better),) if options.worth else ()
    return (*own, *options.outcomes)


def of_outcome(analysis: Analysis, method: Estimator, outcome: Outcome) -> Analysis:
    """The analysis of an outcome; baselines that were given for the reward, and known costs, belong to the reward."""
    given = analysis.options.baseline
    baseline = given if isinstance(given, str) or learned(given) else "mean"
    options = replace(
        analysis.options, lower_is_better=bool(outcome.lower), cost=None, also=(), worth=(), difference=None,
        baseline=baseline,
    )  # fmt: skip
    return analyze_rows(with_reward(analysis.rows, outcome.column), method, options)


def header_notes(options: Options, reward: str) -> tuple[Fact, ...]:
    """What the header says of the score that ranks."""
    return (Fact("net worth", formula=formula(reward, options.worth)),) if options.worth else ()
