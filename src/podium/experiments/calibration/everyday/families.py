"""Families of everyday logs by name, in sets; which of them may be looked at while tuning is fixed here.

| set | what | tuned on | held out |
|---|---|---|---|
| weak | actions explain 0.3% to 3% of the variance | 2 actions, uniform; 4, follows | 2 actions, follows; 6, uniform |
| shares | p of the logged action only, constant per action | 3 actions | 4 actions |
| sparse | rewards that are mostly zero | 3 actions; 0.1%, 0.5%, 2%, 5% | 5 actions; 0.1%, 0.3%, 1%, 5% |
| ties | all policies tied, nearly tied, or in two groups | see `TIES` | see `TIES` |
| many | 20 and 50 policies | 2 actions | 5 actions |
| trials | real randomized trials | insurance, training, throat | dating, gums, party, and any other |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.random import Generator

from podium.data.columns import Floats
from podium.experiments.calibration.everyday.worlds import flat, sparse_world, tied, weak_world
from podium.experiments.calibration.worlds import Draw, World, forget
from podium.verdicts.pairs import pair_indices

SETS = ("weak", "shares", "sparse", "ties", "many", "trials")
NEAR = 0.002  # values of nearly tied policies lie within this share of what the actions can change
APART = 0.05  # nearly tied policies choose differently at least this often; others may be easy to tell apart


@dataclass(frozen=True, eq=False)
class Case:
    """A log, K policies, and what is true of each of their pairs i < j."""

    draw: Draw
    difference: Floats  # (P,) V(i) - V(j); an estimate from rows outside the log where `error` is not 0
    error: Floats  # (P,) its standard error
    tied: Floats  # (P,) 1 where the policies have the same value, or nearly so


@dataclass(frozen=True)
class Family:
    """A way to draw cases, and the sizes at which it is measured."""

    name: str
    set: str
    held_out: bool  # never looked at while tuning
    draw: Callable[[Generator, int, int], Case]  # (rng, rows, policies)
    rows: tuple[int, ...]
    policies: tuple[int, ...] = (5,)
    strata: str = ""  # what tables group it by: the strength of the effects, the rate, the view

    @property
    def part(self) -> str:
        return "held out" if self.held_out else "tuned on"


def simulated(draw: Draw, near: bool = False) -> Case:
    """A case whose truth is known exactly.

    Policies of nearly the same value are nearly tied if their choices differ. If these are nearly the same, too, the
    difference can be easy to see (one policy has a little more of the best action), and the pair is an ordinary one.
    """
    i, j = pair_indices(len(draw.values))
    difference = draw.values[i] - draw.values[j]
    rounding = 1e-9 * max(1.0, float(np.abs(draw.values).max()))
    difference = np.where(np.abs(difference) < rounding, 0.0, difference)
    tie = difference == 0
    if near:
        tie |= [choose_differently(*pair) for pair in combinations(draw.policies.values(), 2)]
    return Case(draw, difference, np.zeros(len(i)), tie.astype(float))


def choose_differently(one: Floats, other: Floats) -> bool:
    """Whether two policies choose different actions in at least 5% of the rows."""
    return bool(np.abs(one - other).sum(axis=1).mean() / 2 >= APART)


def logged(world: World, rng: Generator, rows: int, view: str, near: bool = False) -> Case:
    """A case from a world, with p "known" for all actions, "at logged" ones, or "none"."""
    draw = world.log(rng, rows)
    return simulated(draw if view == "known" else forget(draw, everything=view == "none"), near)


# --- weak effects --------------------------------------------------------------------------------------------------

EFFECTS = (0.003, 0.01, 0.03)
WEAK_ROWS = (20, 30, 50, 100, 300, 1_000)
WEAK = (  # actions, features, logger, held out
    (2, 4, "uniform", False),
    (4, 5, "follows", False),
    (2, 3, "follows", True),
    (6, 6, "uniform", True),
)


def weak_family(share: float, actions: int, features: int, binary: bool, logger: str, view: str) -> Family:
    def draw(rng: Generator, rows: int, k: int) -> Case:
        return logged(weak_world(rng, k, share, actions, features, binary, logger), rng, rows, view)

    kind = "Bernoulli" if binary else "continuous"
    how = {"uniform": "uniform logger", "follows": "logger follows the state", "shares": "fixed shares"}[logger]
    seen = {"known": "p known", "at logged": "p at the logged action", "none": "no p"}[view]
    name = f"{100 * share:g}%, {kind}, {actions} actions, {how}, {seen}"
    return Family(name, "weak", False, draw, WEAK_ROWS, strata=f"{100 * share:g}%")


def weak_families() -> list[Family]:
    found = [
        replace(weak_family(share, actions, features, binary, logger, view), held_out=held_out)
        for share in EFFECTS
        for actions, features, logger, held_out in WEAK
        for binary in (False, True)
        for view in ("known", "none")
    ]
    for actions, features, held_out in ((3, 4, False), (4, 2, True)):
        for share in (0.01, 0.1):
            for binary in (False, True):
                family = weak_family(share, actions, features, binary, "shares", "at logged")
                found.append(replace(family, set="shares", held_out=held_out, rows=(50, 100, 300, 1_000)))
    return found


# --- rewards that are mostly zero ----------------------------------------------------------------------------------

SPARSE_ROWS = (100, 300, 1_000, 3_000, 20_000)
RATES = {False: (0.001, 0.005, 0.02, 0.05), True: (0.001, 0.003, 0.01, 0.05)}  # held out -> rates
SPARSE = (  # few states, skewed logger, revenue, held out: each pair of properties occurs in both parts
    (True, False, False, False), (True, True, True, False), (False, False, True, False), (False, True, False, False),
    (True, False, True, True), (True, True, False, True), (False, False, False, True), (False, True, True, True),
)  # fmt: skip


def sparse_family(rate: float, few: bool, skewed: bool, revenue: bool, held_out: bool) -> Family:
    actions, states, tail = (5, 12, 1.3) if held_out else (3, 6, 1.0)

    def draw(rng: Generator, rows: int, k: int) -> Case:
        world = sparse_world(rng, k, rate, actions, states if few else None, skewed, tail if revenue else None)
        return logged(world, rng, rows, "known")

    kind = "revenue" if revenue else "clicks"
    where = f"{states} states" if few else "many states"
    name = f"{kind} at {100 * rate:g}%, {where}, {'skewed' if skewed else 'uniform'} logger"
    return Family(name, "sparse", held_out, draw, SPARSE_ROWS, strata=kind)


def sparse_families() -> list[Family]:
    return [sparse_family(rate, *kind) for kind in SPARSE for rate in RATES[kind[-1]]]


# --- ties and many policies ----------------------------------------------------------------------------------------

TIE_ROWS, TIE_POLICIES = (50, 300, 1_000), (5, 20, 50)
Worlds = Callable[[Generator, int], World]
TIES: tuple[tuple[str, str, bool, str, Worlds], ...] = (  # name, how they are tied, held out, view, world
    ("continuous, uniform logger", "no effect", False, "known",
     lambda g, k: weak_world(g, k, 0.01, 2, 4, False, "uniform")),
    ("clicks at 2%, uniform logger", "no effect", False, "known",
     lambda g, k: sparse_world(g, k, 0.02, 3, None, False, None)),
    ("Bernoulli, logger follows the state", "one value", False, "known",
     lambda g, k: weak_world(g, k, 0.1, 4, 5, True, "follows")),
    ("continuous, logger follows the state", "two groups", False, "known",
     lambda g, k: weak_world(g, k, 0.1, 4, 5, False, "follows")),
    ("Bernoulli, logger follows the state", "no effect", True, "known",
     lambda g, k: weak_world(g, k, 0.01, 5, 3, True, "follows")),
    ("Bernoulli, uniform logger", "no effect", True, "none",
     lambda g, k: weak_world(g, k, 0.01, 3, 3, True, "uniform")),
    ("revenue at 5%, 12 states, skewed logger", "no effect", True, "known",
     lambda g, k: sparse_world(g, k, 0.05, 5, 12, True, 1.3)),
    ("continuous, uniform logger", "one value", True, "known",
     lambda g, k: weak_world(g, k, 0.1, 6, 6, False, "uniform")),
    ("continuous, logger follows the state", "nearly one value", True, "known",
     lambda g, k: weak_world(g, k, 0.1, 3, 2, False, "follows")),
    ("Bernoulli, uniform logger", "two groups", True, "known",
     lambda g, k: weak_world(g, k, 0.1, 6, 3, True, "uniform")),
)  # fmt: skip


def tie_family(name: str, how: str, held_out: bool, view: str, world: Worlds) -> Family:
    def draw(rng: Generator, rows: int, k: int) -> Case:
        drawn = world(rng, k)
        if how == "no effect":
            return logged(flat(drawn), rng, rows, view)
        if how == "nearly one value":
            return logged(tied(drawn, width=NEAR, rng=rng), rng, rows, view, near=True)
        return logged(tied(drawn, groups=2 if how == "two groups" else 1), rng, rows, view)

    seen = "" if view == "known" else ", no p"
    return Family(f"{how}: {name}{seen}", "ties", held_out, draw, TIE_ROWS, TIE_POLICIES, how)


def many_families() -> list[Family]:
    def family(share: float, actions: int, features: int, binary: bool, held_out: bool) -> Family:
        found = weak_family(share, actions, features, binary, "follows", "known")
        return replace(found, set="many", held_out=held_out, rows=(100, 300, 1_000), policies=(20, 50))

    return [
        family(share, actions, features, binary, actions == 5)
        for actions, features in ((2, 4), (5, 3))
        for share, binary in ((0.03, True), (0.1, False))
    ]


FAMILIES: tuple[Family, ...] = (
    *weak_families(),
    *sparse_families(),
    *(tie_family(*kind) for kind in TIES),
    *many_families(),
)
