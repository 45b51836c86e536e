"""How the text of Example 3 can be read, and what a reading makes of the logged episodes: proxies, estimates, scores.

Everything is computed from cached episodes, so another reading costs seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from podium.columns import Floats
from podium.experiments.runner import Arrays
from podium.proxy import Coordinates, log_proxy

METHODS = ("LDE", "DRE", "IPS", "DiM")


@dataclass(frozen=True)
class Reading:
    """One way to read the text.

    Parameters
    ----------
    actions : "logged": the policy's action at each logged state, as the text has it; "own": its action at the same
        step of its own episode from the same reset, as the authors' program does
    coordinates : how the proxies of several coordinates become one, see `podium.proxy.log_proxy`
    constant : added to each propensity before dividing by it; the authors' program adds 1e-6
    ties : "exact": the sign of a difference of estimates is that of the exact number, however small; "rounded":
        estimates are float64 numbers first, as in any program, so that two that differ in the 17th digit are equal,
        and a pair of equals counts as rightly compared
    """

    actions: str = "logged"
    coordinates: Coordinates = "mean"
    constant: float = 0.0
    ties: str = "rounded"


TEXT, PROGRAM = "text", "program"
PROGRAM_CONSTANT = 1e-6


def all_readings(constant: float = 0.0) -> dict[str, Reading]:
    """The readings that are reported: the text's, what changes when one thing is read otherwise, and the program's."""
    return {
        TEXT: Reading(constant=constant),
        "own way": Reading(actions="own", constant=constant),
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
    proxies = [
        log_proxy(
            ours[:, :, j].reshape(flat), theirs.reshape(flat), cell["low"], cell["high"], cell["lengths"].ravel(),
            reading.coordinates,
        ).reshape(logs, episodes)
        for j in range(policies)
    ]  # fmt: skip
    return np.stack(proxies, axis=2)


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
        signs = pair_signs(rewards - shift, shift[:, 0], weights[method], pairs, reading.ties)
        right[:, m] = signs * np.sign([truth[a] - truth[b] for a, b in pairs]) >= 0
    return right


def pair_signs(rewards: Floats, shift: Floats, weights: Floats, pairs: list[tuple[int, int]], ties: str) -> Floats:
    """(L, P) sign of the difference of two policies' estimates: rewards (L, N) times exp of weights (L, N, J)."""
    if ties == "rounded":
        with np.errstate(over="ignore"):
            scale = np.minimum(np.exp(weights), 1e300)
        values = shift[:, None] + np.einsum("ln,lnj->lj", rewards, scale) / rewards.shape[1]
        return np.stack([np.sign(values[:, a] - values[:, b]) for a, b in pairs], axis=1)
    signs = []
    for a, b in pairs:
        both = weights[:, :, [a, b]]
        top = both.max(axis=(1, 2), keepdims=True)
        scaled = np.exp(both - np.where(np.isfinite(top), top, 0.0))  # a common factor changes no sign
        signs.append(np.sign(np.einsum("ln,ln->l", rewards, scaled[:, :, 0] - scaled[:, :, 1])))
    return np.stack(signs, axis=1)
