"""Judgements of the reward, moved by costs that are known.

A difference of rewards is uncertain, a difference of known costs is not: it moves the whole distribution and adds no
width. Where every row has the same reward nothing but the costs tells policies apart, and their difference is exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.data.columns import Floats
from podium.verdicts.judgement import Judgement
from podium.verdicts.mixture import Mixture
from podium.verdicts.pairs import pair_indices


def with_costs(judgement: Judgement, losses: Floats | None, same_rewards: bool) -> Judgement:
    """The judgement of reward less cost; `losses` (K,) is what every value loses, None where nothing is known."""
    if losses is None:
        return judgement
    i, j = pair_indices(len(losses))
    moved = moved_by(judgement, losses[j] - losses[i], same_rewards)
    return replace(moved, values=judgement.values - losses)


def moved_by(judgement: Judgement, known: Floats, same_rewards: bool) -> Judgement:
    """The judgement with differences that are larger by (P,) known amounts; nothing but these where rewards never
    differ."""
    if same_rewards:
        nothing = np.zeros(len(known))
        silent = tuple(why if gap == 0 else "" for why, gap in zip(judgement.silent, known, strict=True))
        return replace(
            judgement, difference=known, std_error=nothing, known=known, mixture=None, learned=None, reference=None,
            empirical=None, silent=silent, path=("costs",) * len(known),
        )  # fmt: skip
    mixture = judgement.mixture
    if mixture is not None:
        mixture = Mixture(mixture.weights, mixture.means + known, mixture.scales, mixture.freedom)
    return replace(judgement, difference=judgement.difference + known, known=known, mixture=mixture)
