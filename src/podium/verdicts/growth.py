"""How fast rows make a difference certain: the rate r of v ~ N^-r, read off the two halves of a log.

Where the reward of one state says nothing of another, variances fall as 1/N, and r = 1. Where it does, every row also
teaches how to read the others, and they fall faster: as N^-1.2 in smooth worlds, as N^-2 and more where rewards follow
a pattern with little noise. Each half of the log, judged like the whole, shows which of these it is. The rates that
halves show are drawn towards 1, which they approach as a log grows.
"""

from __future__ import annotations

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.dealing import deal
from podium.verdicts.evidence import Evidence
from podium.verdicts.posterior import posterior

FEWEST = 40  # rows without which halves show nothing
MOST = 800  # rows that are halved; of a longer log, a block of so many
# How much of a rate beyond 1 is believed, and the bounds of rates. In 14 worlds of the families that
# `podium.experiments.calibration.foresight` calls TUNED (seed 5, logs of 400 rows), .5 to 1 foresaw about equally well
# and 0 (1/N) clearly worse in Example 1.
BELIEVED = 0.8
RATES = (0.9, 3.0)


def falling_rates(evidence: Evidence, variance: Floats) -> Floats:
    """(P,) the rates at which the variances of all differences fall as rows are added.

    Parameters
    ----------
    variance : (P,) of the differences, as all rows give them, without the prior's part
    """
    from threadpoolctl import threadpool_limits

    e = evidence
    with threadpool_limits(limits=1, user_api="blas"):  # as for the verdicts
        if e.rows > MOST:
            e = e.take(deal(e, -(-e.rows // MOST), MOST)[0])
            variance = variance_without_prior(e)
        halves = deal(e, 2, e.rows)
        if e.rows < FEWEST or len(halves) < 2:  # too few rows, or a single unit
            return np.ones(len(variance))
        parts = [variance_without_prior(e.take(rows)) for rows in halves]
    with np.errstate(divide="ignore", invalid="ignore"):  # policies that are the same have no variance
        rates = 1 + BELIEVED * (np.log2(parts).mean(axis=0) - np.log2(variance) - 1)
    return np.clip(np.where(np.isfinite(rates), rates, 1.0), *RATES)


def variance_without_prior(e: Evidence) -> Floats:
    """(P,) the variances of the differences, from which the prior's part is taken out."""
    found = posterior(e)
    return np.asarray(found.variance / found.learned)
