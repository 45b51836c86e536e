"""Which actions were eligible in the rows of a log that stays where it is: passes that find it out, once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from podium.data.columns import sort_key
from podium.data.eligible import SEPARATORS, first_sign, joined_space
from podium.data.eligible_parts import Listing, Offers, Sets
from podium.data.roles import Roles
from podium.engines import Engine
from podium.engines.works import EachBatch, count_signs, look_at_offers

OFFERED = ("eligible", "offers", "offered_actions")  # what is known of them once it was asked for


class OfferedActions:
    """Eligible actions behind an engine; `podium.data.scan.ScannedLog` brings the rest."""

    engine: Engine
    roles: Roles
    actions: tuple[Any, ...]
    logged_actions: Any
    action_space: Any
    columns: Any
    refuse: Any

    def __len__(self) -> int:
        return self.engine.rows()

    @cached_property
    def eligible(self) -> Listing | None:
        """How eligible actions are read, where the log has them; a pass finds out what separates them in texts."""
        roles = self.roles
        if not roles.eligible:
            return None
        listing = Listing(roles.eligible_name, roles.eligible, self.actions or self.logged_actions)
        if roles.eligible != (roles.eligible_name,) or self.columns[roles.eligible_name] != "text":
            return listing
        work = EachBatch(partial(count_signs, listing=listing), np.zeros(len(SEPARATORS), dtype=np.int64))
        return replace(listing, separator=first_sign(self.engine.fold(listing.headers, work, "eligible actions")))

    @cached_property
    def offers(self) -> Offers:
        """What all rows tell of their eligible actions; a log that breaks a rule is refused."""
        assert self.eligible is not None
        work = EachBatch(partial(look_at_offers, listing=self.eligible, roles=self.roles), Offers())
        columns = [*self.eligible.headers, *self.roles.some("action", "propensity")]
        found = self.engine.fold(columns, work, "eligible actions")
        if found.bad:
            self.refuse(None)
        return found

    @cached_property
    def offered_actions(self) -> tuple[Any, ...]:
        """The actions that were given, or else logged or eligible."""
        if self.eligible is None:
            return self.actions or self.logged_actions
        named, labels = bool(self.actions), sorted(self.offers.labels, key=sort_key)
        return joined_space(labels, self.eligible.space, named, self.eligible.what)

    def check_offers(self) -> None:
        """Refuse a given action space that lacks an eligible action."""
        _ = self.offered_actions

    @property
    def every(self) -> bool:
        """Whether every action was eligible in every row."""
        return self.eligible is None or self.offers.least == len(self.offered_actions)

    @property
    def sets(self) -> Sets:
        assert self.eligible is not None
        return Sets(self.eligible, self.offered_actions)

    @property
    def mean_choices(self) -> float:
        """How many actions were possible in a row, on average."""
        return float(len(self.action_space)) if self.eligible is None else self.offers.total / len(self)

    @property
    def choice_range(self) -> tuple[int, int]:
        """The least and the largest number of actions that were possible in a row."""
        return int(self.offers.least), int(self.offers.most)
