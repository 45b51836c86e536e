"""How alike actions are by what is known of them: kernels over the actions, for the prior on rewards.

Numbers are standardised over the actions and texts match or differ, so neither units nor names of categories matter.
With z the d numbers and q texts of an action,

    linear   (z z' + matching texts) / (d + q)
    smooth   exp(-D / 2),   rough   exp(-D / .18),   D = (|z - z'|^2 + 2 differing texts) / (d + q)

each in units of its mean variance. They stand beside the identity, under which every action is like no other; how much
each of them explains is fitted to the log, so that features which explain nothing change next to nothing.
"""

from __future__ import annotations

import numpy as np

from podium.data.action_features import ActionFeatures
from podium.data.columns import Floats
from podium.data.scales import standard_columns


def action_kernels(features: ActionFeatures) -> tuple[tuple[str, Floats], ...]:
    """(A, A) the kernels of all actions of a log."""
    z = standard_columns(features.numeric)
    width = z.shape[1] + features.texts.shape[1]
    square = (z * z).sum(axis=1)
    linear = z @ z.T
    apart = np.maximum(square[:, None] + square - 2 * linear, 0.0)
    for codes in features.texts.T:
        match = (codes[:, None] == codes).astype(np.float64)
        linear, apart = linear + match, apart + 2 * (1 - match)
    np.fill_diagonal(apart, 0.0)
    linear, apart = linear / width, apart / width
    return (("linear", linear), ("smooth", np.exp(-apart / 2)), ("rough", np.exp(-apart / 0.18)))
