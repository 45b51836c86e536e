"""How a comparison was made, and where each policy ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.data.owned import keep_fields


@dataclass(frozen=True)
class Ranked:
    """One policy in the ranking; its true rank lies in rank_low..rank_high if all claims hold."""

    name: str
    rank: int
    rank_low: int
    rank_high: int
    score: float
    p_best: float | None  # None where nothing is known
    regret: float | None  # expected loss of choosing it rather than the best
    estimates: Mapping[str, float | None]
    cost: float | None = None  # its mean cost, where costs are known

    def __post_init__(self) -> None:
        keep_fields(self)

    def to_dict(self) -> dict[str, Any]:
        known = {} if self.cost is None else {"cost": self.cost}
        return {name: value for name, value in vars(self).items() if name != "cost"} | {
            "estimates": dict(self.estimates), **known
        }  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How a comparison was made."""

    estimator: str  # what ranks
    baseline: str
    level: float
    engine: str
    verdicts: str  # the procedure that judges
    assumes: str
    multiplicity: str
    normalize: str
    duplicates: str
    unit: str | None
    lower_is_better: bool
    bootstrap: int
    seed: int
    proxies: tuple[str, ...]  # policies that are scores which stand for probabilities
    notes: tuple[str, ...]
    kernel: str | None = None  # of continuous actions
    bandwidth: tuple[float, ...] | None = None
    look: str | None = None  # which of the planned looks this is
    look_level: float | None = None  # the level of claims at this look
    costs: Mapping[str, Any] | None = None  # what actions cost, where that is known
    action_features: tuple[str, ...] | None = None  # columns that describe the actions
    recipes: tuple[str, ...] | None = None  # policies that are learned from the log itself
    by: tuple[str, ...] | None = None  # columns that cut the rows into groups
    worth: Mapping[str, float] | None = None  # what outcomes are worth in units of the reward
    difference: float | None = None  # the smallest difference that matters

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON."""
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {name: value for name, value in lists.items() if value is not None or name == "unit"}
