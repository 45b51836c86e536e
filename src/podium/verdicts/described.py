"""Whether what is known of the actions explains the rewards of a log: features that do not are left out.

The variances of the prior are fitted with and without the kernels of the features. Unless the log likelihood gains
`GAIN` by them, the posterior is the one without features, to the last digit: useless features cost nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.data.columns import Codes
from podium.verdicts.dealing import deal
from podium.verdicts.evidence import Evidence
from podium.verdicts.fitting import fit_variances, log_likelihood
from podium.verdicts.prior import Kernels, build_kernels

# On five logs of 300 rows of the world "catalogue" of `podium.calibration.action_features` they gained 21 to 69. The
# six logs of its held-out worlds with useless features all stayed below this limit.
GAIN = 4.0
ROWS = 500  # rows per block of the likelihood
BLOCKS = 4


def explained(evidence: Evidence, scale: float) -> Evidence:
    """The evidence with the kernels of the actions' features where they explain rewards, and without where not."""
    if not evidence.action_kernels:
        return evidence
    plain = replace(evidence, action_kernels=())
    rows = deal(evidence, -(-evidence.rows // ROWS), ROWS)[:BLOCKS]
    gains = [fitted_likelihood(e, rows, scale) for e in (evidence, plain)]
    return evidence if gains[0] - gains[1] > GAIN else plain


def fitted_likelihood(evidence: Evidence, dealt: list[Codes], scale: float) -> float:
    """The log likelihood of some blocks of rows at the variances fitted to them; minus infinity without a fit."""
    blocks: list[tuple[Kernels, Codes]] = []
    for rows in dealt:
        part = evidence.take(rows)
        blocks.append((build_kernels(part, scale), np.arange(part.rows)))
    theta = fit_variances(blocks)
    return -np.inf if theta is None else log_likelihood(blocks, theta)
