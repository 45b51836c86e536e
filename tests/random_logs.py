"""Random small logs with their policies, for tests that hold for any log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import Data

import podium

# The same examples in every run: a random failure in CI would be no use to whoever meets it.
fixed = settings(deadline=None, max_examples=40, derandomize=True)

NUMBERS = st.floats(-1e3, 1e3, allow_subnormal=False)
STATES = {
    "integers": [0, 1, 7, -3],
    "numbers": [0.5, -1.25, 3.0, 1e-3],
    "texts": ["x", 'ÿ, "z"', "Ω", "x "],
    "features": [(0.0, 1.0), (0.0, 2.0), (1.0, 1.0), (-2.5, 0.0)],
    "mixed features": [(1, "x"), (1, "y"), (2, "x"), (3, "y")],
}
SPACES = [["a", "b", "c", "d"], ["d", "b", "a"], [3, 1, 2], [10, 20], ["only"], [False, True]]


@dataclass(frozen=True)
class Case:
    """One random log in both forms, with its policies."""

    data: Data
    policies: dict[str, np.ndarray]  # name -> (N, A)

    @property
    def log(self) -> podium.Log:
        d = self.data
        return podium.Log(
            d.states, d.actions, d.rewards, d.propensities, action_space=tuple(d.space), times=d.times, units=d.units
        )

    def plain(self, name: str) -> list[list[float]]:
        return self.policies[name].tolist()


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    rows: tuple[int, int] = (1, 12),
    repeated: bool = True,
    timed: str = "perhaps",
    propensities: str = "random",
    units: bool = False,
    policies: tuple[int, int] = (2, 4),
) -> Case:
    """A small log, with unobserved actions and (if `repeated`) repeated (state, action), and policies (N, A)."""
    space = draw(st.sampled_from(SPACES))
    pool = STATES[draw(st.sampled_from(list(STATES)))]
    cell = st.tuples(st.integers(0, len(pool) - 1), st.integers(0, len(space) - 1))
    low, high = rows
    if not repeated:
        low, high = min(low, len(pool) * len(space)), min(high, len(pool) * len(space))
    cells = draw(st.lists(cell, min_size=low, max_size=high, unique=not repeated))
    n = len(cells)
    times = None
    if timed == "unique":
        times = [float(t) for t in draw(st.permutations(range(n)))]
    elif timed == "perhaps" and draw(st.booleans()):
        times = draw(st.lists(st.integers(0, 3).map(float), min_size=n, max_size=n))
    p: Any = {
        "random": st.lists(st.floats(0.05, 1.0), min_size=n, max_size=n),
        "one": st.just([1.0] * n),
        "uniform": st.just([1 / len(space)] * n),
    }[propensities]
    data = Data(
        states=[pool[s] for s, _ in cells],
        actions=[space[a] for _, a in cells],
        rewards=draw(st.lists(NUMBERS, min_size=n, max_size=n)),
        space=space,
        propensities=draw(p),
        times=times,
        units=draw(st.lists(st.sampled_from(["u", "v", "w"]), min_size=n, max_size=n)) if units else None,
    )
    count = draw(st.integers(*policies))
    weights = draw(hnp.arrays(np.int64, (count, n, len(space)), elements=st.integers(0, 9)))
    weights = np.where(weights.sum(axis=2, keepdims=True) == 0, 1, weights)
    matrices = weights / weights.sum(axis=2, keepdims=True)
    return Case(data, {f"policy {k}": matrices[k] for k in range(count)})


@st.composite
def tables(draw: st.DrawFn, data: Data) -> dict[tuple[Any, Any], float]:
    """q(s, a) for every state of the log and every action of its space."""
    keys = [(s, a) for s in dict.fromkeys(data.states) for a in data.space]
    return dict(zip(keys, draw(st.lists(NUMBERS, min_size=len(keys), max_size=len(keys))), strict=True))


def as_array(table: dict[tuple[Any, Any], float], data: Data) -> np.ndarray:
    """The same table as podium takes it: (N, A)."""
    return np.array([[table[s, a] for a in data.space] for s in data.states])
