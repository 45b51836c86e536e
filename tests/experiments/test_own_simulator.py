"""podium's bench on a simulator of one's own, from a module outside the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from podium.calibration.own import Measured, Simulated, measure

import podium
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.trials import run_one

MODULE = """
import numpy as np
import podium
from podium.calibration.own import Simulated, measure

CHANCE = {"mail": 0.2, "call": 0.5}

def draw(rng, rows):
    actions = rng.choice(list(CHANCE), rows)
    rewards = (rng.random(rows) < [CHANCE[a] for a in actions]).astype(float)
    log = podium.Log(rng.integers(0, 3, rows), actions, rewards, propensities=np.full(rows, 0.5))
    return Simulated(log, {a: f"constant:{a}" for a in CHANCE}, CHANCE)

if __name__ == "__main__":
    one, two = (measure(draw, name="mail or call", rows=[40], logs=4, workers=n) for n in (1, 2))
    assert one.to_dict() == two.to_dict(), (one, two)
    print(one)
"""
HINT = "\n\nHint: return podium.calibration.own.Simulated(log, policies, values), as in docs/own-parts.md."


def test_the_counts_are_those_of_the_bench() -> None:
    name = "uniform logger"

    def draw(rng: Generator, rows: int) -> Simulated:
        made = FAMILIES[name].draw(rng, rows, 5)
        return Simulated(made.log, made.policies, dict(zip(made.policies, made.values, strict=True)))

    found = measure(draw, name=name, rows=[30], logs=3, seed=7).cells[0]
    trials = [run_one((name, 30, repetition, 7)) for repetition in range(3)]
    claims = np.concatenate([t.claims["posterior"] for t in trials])
    truth = np.concatenate([t.truth for t in trials])
    assert (found.pairs, found.claims) == (30, int((claims != 0).sum()))
    assert found.wrong == int(((claims != 0) & (claims * truth <= 0)).sum())
    assert found.covered == int(sum(t.covered.sum() for t in trials)) - (found.pairs - found.intervals)


def coin(rng: Generator, rows: int, effect: float = 0.0) -> Simulated:
    actions = rng.integers(0, 2, rows)
    rewards = effect * actions + rng.normal(size=rows)
    log = podium.Log(np.zeros(rows), actions, rewards, propensities=np.full(rows, 0.5))
    return Simulated(log, {"0": "constant:0", "1": "constant:1"}, {"0": 0.0, "1": effect})


def test_claims_between_equal_policies_are_wrong_and_large_effects_are_found() -> None:
    def sure(rng: Generator, rows: int) -> Simulated:
        return coin(rng, rows, 3.0)

    def turned(rng: Generator, rows: int) -> Simulated:
        made = coin(rng, rows, 3.0)
        return Simulated(made.log, made.policies, {"0": 3.0, "1": 0.0})

    right, wrong = (measure(d, rows=[100], logs=5).cells[0] for d in (sure, turned))
    assert (right.claims, right.wrong, wrong.wrong) == (5, 0, 5)
    cost = measure(turned, rows=[100], logs=5, lower_is_better=True).cells[0]
    assert (cost.claims, cost.wrong) == (5, 5)  # the truth says the opposite of the log
    equal = measure(coin, rows=[100], logs=5).cells[0]
    assert equal.wrong == equal.claims


def test_it_is_shown_as_a_table() -> None:
    found = measure(coin, name="coin", rows=[40, 80], logs=2)
    assert isinstance(found, Measured)
    lines = str(found).splitlines()
    assert lines[0] == "Calibration on coin, seed 2026"
    assert lines[1].split() == ["rows", "logs", "pairs", "decided", "wrong", "claims", "of", "claims", "95%", "cover"]
    assert [line.split()[:3] for line in lines[2:4]] == [["40", "2", "2"], ["80", "2", "2"]]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rng, rows: None, "must return a log with its truth; it returned None"),
        (lambda rng, rows: 1 / 0, "failed: ZeroDivisionError: division by zero"),
        (
            lambda rng, rows: Simulated(coin(rng, rows).log, {"0": "constant:0"}, {"0": 0.0}),
            "must return at least two policies, by name",
        ),
        (
            lambda rng, rows: Simulated(coin(rng, rows).log, coin(rng, rows).policies, {"0": 0.0}),
            "must give the true value of policy '1'; it is None",
        ),
        (
            lambda rng, rows: Simulated(coin(rng, rows).log, coin(rng, rows).policies, {"0": 0.0, "1": float("nan")}),
            "must give the true value of policy '1'; it is nan",
        ),
    ],
)
def test_what_is_no_simulation_is_refused(draw: Any, message: str) -> None:
    joined = f"the simulator 'coin' {message}{HINT}"
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(joined)}$"):
        measure(draw, name="coin", rows=[20], logs=1)


def test_wrong_arguments() -> None:
    message = f"a simulator must be a function of (rng, rows); it is 3{HINT}"
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(message)}$"):
        measure(3)  # type: ignore[arg-type]
    with pytest.raises(podium.PodiumError, match=r"^a simulator for several workers must stand in a module; it is "):
        measure(lambda rng, rows: coin(rng, rows), workers=2)


def test_from_outside_the_package(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(MODULE, encoding="utf-8")
    done = subprocess.run([sys.executable, "theirs.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Calibration on mail or call, seed 2026\n")
