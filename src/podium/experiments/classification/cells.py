"""Runs one cell of Example 2: rounds of policies, their logs, and the four methods on each log."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.data.columns import Codes, Floats
from podium.experiments.classification.plan import REPLAY_SEED
from podium.experiments.classification.rounds import Program, Round, Streams, text_logs, text_round
from podium.experiments.classification.verdicts import judge_log
from podium.experiments.runner import Arrays, Cell
from podium.worlds.labelled import LabelledBandit

METHODS = ("LDE", "DRE", "IPS", "DiM")


def run_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """All rounds of a cell.

    Returns
    -------
    dict
        for R rounds of K policies and T logs: "scores" and "ties" (R, T, 4), "estimates" (R, T, 4, K), "values"
        (R, K), "judged" (R, V, 3), the pairs, right and wrong claims of the first V logs; and of the training
        "updates", "before" (R, K), "majority", "trainings" (R,).
    """
    given = cell.arguments
    dataset, variant = given["dataset"], given["variant"]
    parts = []
    if variant.reading == "program":
        seeds = (REPLAY_SEED, REPLAY_SEED) if given["replay"] else legacy_seeds(seed)
        program = Program(dataset, Streams(*seeds), given["epochs"], in_step=given["replay"])
        for _ in range(given["rounds"]):
            ten = program.next_round()
            parts.append(measure_round(ten, program.draw(ten.bandit, given["logs"]), given["verdict_logs"], True))
    else:
        rng = np.random.default_rng(seed)
        for _ in range(given["rounds"]):
            ten = text_round(dataset, variant.policies, given["epochs"], rng)
            parts.append(measure_round(ten, text_logs(ten.bandit, given["logs"], rng), given["verdict_logs"], False))
    return {key: np.stack([part[key] for part in parts]) for key in parts[0]}


def legacy_seeds(seed: np.random.SeedSequence) -> tuple[int, int]:
    """Seeds for the two legacy generators."""
    first, second = seed.generate_state(2, np.uint32).tolist()
    return first, second


def measure_round(ten: Round, logs: Iterable[tuple[Floats, Codes]], verdict_logs: int, in_order: bool) -> Arrays:
    """Estimates and scores on every log of a round, verdicts on the first ones, and what training did."""
    estimates, judged = [], []
    for i, (behavior, drawn) in enumerate(logs):
        estimates.append(estimate(ten.bandit, behavior, drawn))
        if i < verdict_logs:
            judged.append(judge_log(ten.bandit, behavior, drawn))
    stacked, values = np.array(estimates), ten.bandit.accuracies
    return {
        "scores": score_orders(values, stacked) if in_order else score_values(values, stacked),
        "ties": share_tied(stacked),
        "estimates": stacked,
        "values": values,
        "judged": np.array(judged, dtype=np.int64).reshape(-1, 3),
        "updates": np.array([p.updates for p in ten.policies]),
        "before": np.array([p.before for p in ten.policies]),
        "majority": np.array(ten.majority),
        "trainings": np.array(ten.trainings),
    }


def estimate(bandit: LabelledBandit, behavior: Floats, drawn: Codes) -> Floats:
    """(4, K) the four methods on one log, each example an own state, the baseline the mean reward.

    Written row by row as the paper's program sums it: two policies that agree with equally many rows differ by
    rounding alone, and a replay needs the same rounding.
    """
    rewards = (drawn == bandit.truth).astype(np.float64)
    propensities = behavior[np.arange(len(drawn)), drawn]
    agrees = (bandit.predictions == drawn).astype(np.float64)
    baseline = rewards.mean()
    centred = (rewards - baseline) * agrees
    terms = (centred + baseline, centred / propensities + baseline, rewards * agrees / propensities, rewards * agrees)
    values: Floats = np.array([term.mean(axis=1) for term in terms])
    return values


def score_orders(values: Floats, estimates: Floats) -> Floats:
    """(T, 4) share of pairs in the right order, as the program counts: equal estimates stand in the order of training.

    The true values (K,) are all different.
    """
    places = np.argsort(np.argsort(estimates, axis=-1, kind="stable"), axis=-1, kind="stable")
    return score_values(values, places.astype(np.float64))


def score_values(values: Floats, estimates: Floats) -> Floats:
    """(T, 4) share of pairs in the right order; policies with equal estimates are half right.

    Equal true values cannot be ordered wrongly. Counting equal estimates as right would favour methods that often
    cannot tell two policies apart: with few hits, DiM and IPS tie on many pairs.
    """
    a, b = np.triu_indices(len(values), 1)
    truth, guess = values[a] - values[b], differences(estimates)
    right = np.where(truth == 0, 1.0, np.where(guess == 0, 0.5, truth * guess > 0))
    scores: Floats = right.mean(axis=-1)
    return scores


def share_tied(estimates: Floats) -> Floats:
    """(T, 4) share of pairs to which a method gives the same value."""
    shares: Floats = (differences(estimates) == 0).mean(axis=-1)
    return shares


def differences(estimates: Floats) -> Floats:
    """(T, 4, pairs) estimated differences; those that are rounding alone are zero."""
    a, b = np.triu_indices(estimates.shape[-1], 1)
    gaps: Floats = np.round(estimates[..., a] - estimates[..., b], 12)
    return gaps
