"""How the text of Example 3 can be read, and what a reading makes of the logged episodes: proxies, estimates, scores.

Everything is computed from cached episodes, so another reading costs seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Floats
from podium.episodes.proxy import Coordinates, log_proxy
from podium.experiments.runner import Arrays

METHODS = ("LDE", "DRE", "IPS", "DiM")


@dataclass(frozen=True)
class Reading:
    """One way to read the text.

    Parameters
    ----------
    actions : "logged": the policy's action at each logged state, as the text has it; "own": its action at the same
        step of its own episode from the same reset, as the authors' program does
    coordinates : how the proxies of several coordinates become one, see `podium.episodes.proxy.log_proxy`
    constant : added to each propensity before dividing by it; the authors' program adds 1e-6
    past_end : whether a policy's own episode that ends before the logged one is followed past its end, as long as the
        logged one lasts; otherwise the comparison stops there
    """

    actions: str = "logged"
    coordinates: Coordinates = "mean"
    constant: float = 0.0
    past_end: bool = True


TEXT, PROGRAM = "text", "program"
PROGRAM_CONSTANT = 1e-6


def all_readings(constant: float = 0.0) -> dict[str, Reading]:
    """The readings that are reported: the text's, what changes when one thing is read otherwise, and the program's."""
    return {
        TEXT: Reading(constant=constant),
        "own way": Reading(actions="own", constant=constant),
        "own way to its end": Reading(actions="own", constant=constant, past_end=False),
        "step": Reading(coordinates="step", constant=constant),
        "exponent": Reading(coordinates="exponent", constant=constant),
        "p + 1e-6": Reading(constant=PROGRAM_CONSTANT),
        "own way, exponent": Reading(actions="own", coordinates="exponent", constant=constant),
        PROGRAM: Reading(actions="own", coordinates="exponent", constant=PROGRAM_CONSTANT),
    }


def log_probabilities(cell: Arrays, reading: Reading) -> Floats:
    """(L, N, J) log proxy of policy j for episode n of log l."""
    theirs, ours = cell["actions"], cell["at_logged" if reading.actions == "logged" else "own"]
    logs, episodes, policies = ours.shape[:3]
    flat = (logs * episodes, *theirs.shape[2:])
    found = []
    for j in range(policies):
        lengths = cell["lengths"]
        if reading.actions == "own" and not reading.past_end:
            lengths = np.minimum(lengths, cell["own_lengths"][:, :, j])
        proxy = log_proxy(
            ours[:, :, j].reshape(flat), theirs.reshape(flat), cell["low"], cell["high"], lengths.ravel(),
            reading.coordinates,
        )  # fmt: skip
        found.append(proxy.reshape(logs, episodes))
    return np.stack(found, axis=2)


def log_weights(cell: Arrays, reading: Reading) -> dict[str, Floats]:
    """Method -> (L, N, J) log of what multiplies an episode's reward: the proxy, or the proxy by the propensity.

    The propensity of an episode is the proxy of the policy that logged it. Where that is exactly 0 the episode
    cannot be weighed: it is left out of IPS and DRE.
    """
    proxy = log_probabilities(cell, reading)
    own = np.einsum("lnn->ln", proxy)[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = proxy - (np.logaddexp(own, np.log(reading.constant)) if reading.constant else own)
    ratio = np.where(np.isnan(ratio) | (ratio == np.inf), -np.inf, ratio)
    return {"LDE": proxy, "DRE": ratio, "IPS": ratio, "DiM": proxy}


def comparison_scores(cell: Arrays, reading: Reading) -> Floats:
    """(L, 4) the paper's score of each method on each log: the share of pairs of policies that it puts in order."""
    scores: Floats = right_pairs(cell, reading).mean(axis=2)
    return scores


def right_pairs(cell: Arrays, reading: Reading) -> NDArray[np.bool_]:
    """(L, 4, P) whether a method puts a pair of policies in the order of their true values; a tie counts as right."""
    rewards = cell["rewards"].sum(axis=2)  # (L, N)
    baseline = rewards.mean(axis=1, keepdims=True)
    weights = log_weights(cell, reading)
    truth = cell["returns"].mean(axis=1)
    pairs = list(combinations(range(len(truth)), 2))
    right = np.zeros((len(rewards), len(METHODS), len(pairs)), bool)
    for m, method in enumerate(METHODS):
        shift = baseline if method in ("LDE", "DRE") else np.zeros_like(baseline)
        signs = pair_signs(rewards - shift, weights[method], pairs)
        right[:, m] = signs * np.sign([truth[a] - truth[b] for a, b in pairs]) >= 0
    return right


def pair_signs(rewards: Floats, weights: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """(L, P) sign of the difference of two policies' estimates, rewards (L, N) times exp of log weights (L, N, J).

    Both are divided by their largest weight first, which changes no sign and loses nothing to under- or overflow.
    """
    signs = []
    for a, b in pairs:
        both = weights[:, :, [a, b]]
        top = both.max(axis=(1, 2), keepdims=True)
        scaled = np.exp(both - np.where(np.isfinite(top), top, 0.0))
        signs.append(np.sign(np.einsum("ln,ln->l", rewards, scaled[:, :, 0] - scaled[:, :, 1])))
    return np.stack(signs, axis=1)
