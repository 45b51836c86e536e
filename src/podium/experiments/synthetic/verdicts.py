"""podium's own verdicts on tests of Example 1: how many pairs does it decide, and how often is it right?

The paper's methods always answer. Here the same logs and policies go through `podium.compare`, which may say
"cannot tell".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.comparison.compare import compare
from podium.data.columns import Codes, Floats
from podium.experiments.runner import Arrays, Cell, load
from podium.experiments.synthetic.cells import key_of, load_kernel, set_generator
from podium.experiments.synthetic.plan import REPLAY_SEED, Plan, load_bandit
from podium.worlds.bandits import Bandit
from podium.worlds.sampling import invert, softmax

CLAIMS = {"better": 1, "cannot tell": 0, "worse": -1}


@dataclass(frozen=True, eq=False)
class VerdictShares:
    """Verdicts on the tests of one cell by one reward function."""

    sweep: str
    alpha: float
    m: int
    tests: int
    right: int  # claims that the better policy is better
    wrong: int  # claims that it is worse
    sign_right: int  # tests whose P(better) lies on the right side of one half

    @property
    def decided(self) -> float:
        return (self.right + self.wrong) / self.tests

    @property
    def right_among_claims(self) -> float | None:
        claims = self.right + self.wrong
        return self.right / claims if claims else None


def verdict_cells(plan: Plan, folder: Path) -> list[list[Cell]]:
    """One cell for each of the plan's verdicts; it draws the first tests of the paper's cell once more."""
    chains = []
    for i, (sweep, alpha, m) in enumerate(plan.verdicts):
        position = plan.find(sweep, alpha, m)
        source = plan.cells[sweep][position]
        arguments: dict[str, Any] = dict(source.arguments)
        arguments |= {"place": source.place, "tests": min(plan.verdict_tests, plan.tests), "replay": plan.replay}
        if plan.replay and position:
            before = load(folder, plan.cells[sweep][position - 1].name)
            arguments["before"] = {key: a for key, a in before.items() if key.startswith("generator")}
        name = f"verdict-{sweep}-{position:03d}-tests-{arguments['tests']}"
        chains.append([Cell(name, 10_000 + i, arguments)])
    return chains


def judge_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """Verdicts on the first tests of a cell: "claim" (T, E) of 1, 0, -1 and "p_better" (T, E)."""
    arguments = cell.arguments
    bandits = [load_bandit(name) for name in arguments["rewards"]]
    claims, p_better = [], []
    for behavior, first, second, drawn in draws(arguments, seed, bandits[0].rewards.shape):
        answers = [own_verdict(b, behavior, drawn, *b.prescribe(arguments["alpha"], first, second)) for b in bandits]
        claims.append([CLAIMS[verdict] for verdict, _ in answers])
        p_better.append([p for _, p in answers])
    return {"claim": np.array(claims, np.int8), "p_better": np.array(p_better)}


def own_verdict(bandit: Bandit, behavior: Floats, drawn: Codes, pi: Floats, mu: Floats) -> tuple[str, float]:
    """What `podium.compare` says of pi against mu, with its defaults, and P(pi is better)."""
    log = bandit.log_of(drawn, behavior)
    policies = {"pi": bandit.on_rows(proper(pi), log), "mu": bandit.on_rows(proper(mu), log)}
    pair = compare(log, policies).pair("pi", "mu")
    return pair.verdict, pair.p_better


def proper(policy: Floats) -> Floats:
    """A policy without the tiny negative "probabilities" that a prescribed small difference can need."""
    if policy.min() >= 0:
        return policy
    clipped = np.maximum(policy, 0.0)
    shares: Floats = clipped / clipped.sum(axis=1, keepdims=True)
    return shares


def draws(
    arguments: Any, seed: np.random.SeedSequence, shape: tuple[int, ...]
) -> Iterator[tuple[Floats, Floats, Floats, Codes]]:
    """Behaviour policy, two raw policies and drawn actions (S, m) of a cell's tests, as its own run drew them."""
    tests, m = arguments["tests"], arguments["m"]
    if arguments["replay"]:
        rng = np.random.RandomState(REPLAY_SEED)  # the paper's own generator
        if "before" in arguments:
            set_generator(rng, arguments["before"])
        for _ in range(tests):
            behavior = softmax(rng.standard_normal(shape))
            uniforms = rng.random_sample((shape[0], m))
            first, second = softmax(rng.standard_normal(shape)), softmax(rng.standard_normal(shape))
            yield behavior, first, second, invert(behavior, uniforms)
        return
    key = key_of(np.random.SeedSequence(seed.entropy, spawn_key=(arguments["place"],)))
    weights, uniforms = np.empty((3, *shape)), np.empty((shape[0], m))
    for t in range(tests):
        load_kernel().draw_test(key, t, weights, uniforms)
        behavior, first, second = weights / weights.sum(axis=2, keepdims=True)
        yield behavior, first, second, invert(behavior, uniforms)


def collect_verdicts(plan: Plan, folder: Path) -> list[list[VerdictShares]]:
    """For each reward function, the shares of all verdict cells."""
    results: list[list[VerdictShares]] = [[] for _ in plan.rewards]
    for (sweep, alpha, m), [cell] in zip(plan.verdicts, verdict_cells(plan, folder), strict=True):
        arrays = load(folder, cell.name)
        for e, shares in enumerate(results):
            claim, p = arrays["claim"][:, e], arrays["p_better"][:, e]
            right, wrong, sign = (int(np.sum(x)) for x in (claim == 1, claim == -1, p > 0.5))
            shares.append(VerdictShares(sweep, alpha, m, len(claim), right, wrong, sign))
    return results
