"""Logs of a policy with fixed shares: what is decided, and how often propensities that are false are found out.

python tests/fixed_shares.py    # the tables of docs/propensities.md, two minutes
"""

from __future__ import annotations

import numpy as np

import podium
from podium.propensities.frequencies import contradiction

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
SEED = 77
EFFECTS = {"better": [0.6, 0.4, 0.2, 0.0], "worse": [0.0, 0.2, 0.4, 0.6], "as good as the others": [0.0] * 4}
POLICIES = {f"always {k}": f"constant:{k}" for k in range(4)}


def decide(kind: str, logs: int, rows: int = 400) -> dict[str, tuple[int, int, int]]:
    """Pairs, claims and wrong claims by each procedure; a claim about policies that are equal is wrong."""
    found = {}
    for procedure in ("posterior", "gated"):
        pairs = claims = wrong = 0
        for log_number in range(logs):
            rng = np.random.default_rng([SEED, list(EFFECTS).index(kind), log_number])
            state, action = rng.integers(0, 12, rows), rng.choice(4, rows, p=SHARES)
            value = np.array(EFFECTS[kind])
            rewards = value[action] + 0.3 * rng.normal(size=12)[state] + rng.normal(size=rows)
            log = podium.Log(state, action, rewards, propensities=SHARES[action], action_space=range(4))
            for pair in podium.compare(log, POLICIES, verdicts=procedure).pairs:
                gap = value[int(pair.a[-1])] - value[int(pair.b[-1])]
                pairs += 1
                claims += pair.verdict != "cannot tell"
                wrong += (pair.verdict == "better" and gap <= 0) or (pair.verdict == "worse" and gap >= 0)
        found[procedure] = (pairs, claims, wrong)
    return found


def found_out(rows: int, logs: int) -> float:
    """The share of logs with these shares on which "uniform" is not believed."""
    refused = 0
    for log_number in range(logs):
        rng = np.random.default_rng([SEED, rows, log_number])
        action = rng.choice(4, rows, p=SHARES)
        log = podium.Log(np.zeros(rows), action, np.zeros(rows), behavior="uniform", action_space=range(4))
        refused += contradiction(log) is not None
    return refused / logs


def accused(logs: int) -> dict[str, int]:
    """Honest logs that are not believed: with the whole behavior policy, and with p of the logged actions alone."""
    shapes = np.random.default_rng(SEED).integers([5, 2, 1, 0], [400, 8, 20, 2], (logs, 4)).tolist()
    found = {"whole": 0, "logged": 0}
    for log_number, (rows, actions, states, by_unit) in enumerate(shapes):
        rng = np.random.default_rng([SEED, 1, log_number])
        state = rng.integers(0, states, rows)
        behavior = np.maximum(rng.dirichlet(np.full(actions, rng.choice([0.1, 0.5, 2.0])), states)[state], 1e-9)
        unit = rng.integers(0, 40, rows) if by_unit else np.arange(rows)
        chance = rng.random(unit.max() + 1)[unit]  # rows of one unit share a draw
        action = np.minimum((chance[:, None] > behavior.cumsum(axis=1)).sum(axis=1), actions - 1)
        units, space = unit if by_unit else None, range(actions)
        logged = behavior[np.arange(rows), action]
        for name, known in (("whole", {"behavior": behavior}), ("logged", {"propensities": logged})):
            log = podium.Log(state, action, np.zeros(rows), action_space=space, units=units, **known)
            found[name] += contradiction(log) is not None
    return found


def main() -> None:
    for kind in EFFECTS:
        print(kind, decide(kind, 25), flush=True)
    for rows in (60, 100, 150, 200, 300):
        print(f'"uniform" refused at {rows} rows: {found_out(rows, 200):.0%}')
    print("honest logs not believed, of 6,000:", accused(6_000))


if __name__ == "__main__":
    main()
