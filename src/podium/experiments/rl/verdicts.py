"""podium's own verdicts on the logs of Example 3: five episodes are a severe test of "cannot tell".

The same logs and policies go through `podium.compare`, which may say "cannot tell" and claims nothing from proxies;
then as if the proxies were probabilities, and through a plain paired t test. All that on each log of five episodes, and
on all logs of one training together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from podium.comparison.compare import compare
from podium.data.columns import Floats
from podium.data.log import Log
from podium.experiments.rl.measures import unclear_pairs
from podium.experiments.rl.plan import ALGORITHMS, Plan, cell_name
from podium.experiments.rl.readings import Reading, log_probabilities
from podium.experiments.runner import Arrays, Cell, load
from podium.policies.drafts import Policy

CLAIMS = {"better": 1, "cannot tell": 0, "worse": -1}
# Name -> (`verdicts` of `compare`, whether the policies are declared as proxies).
PROCEDURES: Mapping[str, tuple[str | None, bool]] = {
    "podium": (None, True),
    "podium, proxies believed": (None, False),
    "paired t": ("paired t", False),
}
PLACE = 100_000  # verdict cells have seeds of their own


@dataclass(frozen=True)
class Verdicts:
    """What one procedure says about all pairs of policies in one environment."""

    procedure: str
    episodes: int  # in each log
    pairs: int  # judged: logs times pairs of policies
    right: int
    wrong: int
    unclear: int  # claims on pairs whose true order is not clear, which are neither right nor wrong

    @property
    def decided(self) -> float:
        return (self.right + self.wrong + self.unclear) / self.pairs


def verdict_cells(plan: Plan, folder: Path) -> list[list[Cell]]:
    """One cell for each training: it judges what the cell of its logs holds."""
    chains = []
    for _, source in plan.chains(folder.parent):
        arguments = {"folder": str(folder), "source": source.name}
        chains.append([Cell(source.name.replace("logs", "verdicts", 1), PLACE + source.place, arguments)])
    return chains


def judge_cell(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
    """Verdicts on every log, and on all logs of the training together.

    Returns
    -------
    dict
        "single" (procedures, L, P) and "pooled" (procedures, 1, P) of 1, 0, -1: a is better, cannot tell, worse.
    """
    logs = load(Path(cell.arguments["folder"]), cell.arguments["source"])
    proxies = np.exp(log_probabilities(logs, Reading()))  # (L, N, J)
    states, rewards = logs["observations"][:, :, 0], logs["rewards"].sum(axis=2)
    propensities = np.einsum("lnn->ln", proxies)
    single = [
        [claims(s, r, p, x, procedure) for s, r, p, x in zip(states, rewards, propensities, proxies, strict=True)]
        for procedure in PROCEDURES.values()
    ]
    rows = states.shape[0] * states.shape[1]
    pooled = [
        [claims(states.reshape(rows, -1), rewards.ravel(), propensities.ravel(), proxies.reshape(rows, -1), procedure)]
        for procedure in PROCEDURES.values()
    ]
    return {"single": np.array(single, np.int8), "pooled": np.array(pooled, np.int8)}


def claims(
    states: Floats, rewards: Floats, propensities: Floats, proxies: Floats, procedure: tuple[str | None, bool]
) -> list[int]:
    """What is said of each pair: the episodes are rows, each with an action of its own."""
    usable = propensities if (propensities > 0).all() else None
    log = Log(states.astype(float), np.arange(len(rewards)), rewards, propensities=usable)
    verdicts, proxy = procedure
    policies = {name: Policy(proxies[:, j], kind="probabilities", proxy=proxy) for j, name in enumerate(ALGORITHMS)}
    result = compare(log, policies, verdicts=verdicts)
    return [CLAIMS[result.pair(a, b).verdict] for a, b in combinations(ALGORITHMS, 2)]


def collect_verdicts(plan: Plan, folder: Path, environment: str) -> list[Verdicts]:
    """The verdicts of all trainings in one environment, by procedure, on single logs and on pooled ones."""
    names = range(plan.seeds)
    logs = [load(folder, cell_name("logs", environment, i)) for i in names]
    judged = [load(folder, cell_name("verdicts", environment, i)) for i in names]
    found = []
    for kind, episodes in (("single", len(ALGORITHMS)), ("pooled", len(ALGORITHMS) * plan.logs)):
        for i, procedure in enumerate(PROCEDURES):
            right = wrong = unclear = pairs = 0
            for cell, verdict in zip(logs, judged, strict=True):
                said, open_ = verdict[kind][i], unclear_pairs(cell)
                values = cell["returns"].mean(axis=1)
                truth = np.array([np.sign(values[a] - values[b]) for a, b in combinations(range(len(values)), 2)])
                pairs += said.size
                unclear += int(((said != 0) & open_).sum())
                right += int((said * truth == 1)[:, ~open_].sum())
                wrong += int((said * truth == -1)[:, ~open_].sum())
            found.append(Verdicts(procedure, episodes, pairs, right, wrong, unclear))
    return found
