"""What is asked of a file: roles of columns, and how to read values; names of roles as the file spells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.data.facts import Fact
from podium.data.headers import TWICE
from podium.data.tables import Table

ROLES = ("action", "reward", "propensity", "time", "unit")
BY_NAME = ("propensity", "time")  # roles that a column of that name plays without being asked


@dataclass(frozen=True)
class Asked:
    """What was asked of a file: roles of columns, and how to read values."""

    state: str | Sequence[str] | None = None
    action: str = "action"
    reward: str = "reward"
    propensity: str | None = None
    time: str | None = None
    unit: str | None = None
    text: Sequence[str] = ()
    eligible: str | None = None
    ineligible: str = "refuse"
    success: Any = None
    drop_missing: bool = False
    date_format: str | None = None
    sheet: str | None = None
    decimal: str | None = None
    also: Sequence[str] = ()

    def arguments(self) -> dict[str, Any]:
        """Those that differ from the defaults."""
        plain = Asked()
        return {name: value for name, value in vars(self).items() if value != getattr(plain, name) and value != ()}


def spelled_roles(asked: Asked, columns: Iterable[str]) -> tuple[Asked, list[Fact]]:
    """The same with the names of roles as the file spells them, and what was taken for what."""
    headers = list(columns)
    states = {asked.state} if isinstance(asked.state, str) else set(asked.state or ())
    notes = []
    for role in ROLES:
        name = getattr(asked, role) or (role if role in BY_NAME else None)
        found = spelled(name, headers) if name is not None else None
        if found is not None and found not in states:
            change: dict[str, Any] = {role: found}
            asked = replace(asked, **change)
            notes.append(Fact("role by its name", column=found, role=role))
    return asked, notes


def spelled(name: str, headers: Sequence[str]) -> str | None:
    """The only header that differs from a name by case and spaces alone; None where the name itself is there.

    >>> spelled("action", ["Age", "Action"])
    'Action'
    """
    if name in headers:
        return None
    same = [header for header in headers if header.strip().lower() == name.strip().lower()]
    return same[0] if len(same) == 1 else None


def with_numbered_roles(table: Table, asked: Asked) -> Table:
    """A table in which a name that two columns have is "name (1)" and "name (2)" where a role is asked by it."""
    roles = {re.sub(r" \(\d+\)$", "", getattr(asked, role) or "") for role in ROLES}
    unsure, first = dict(table.unsure), {}
    for name in table.doubled:
        if name in roles and f"{name} (1)" not in table.columns:
            first[name] = f"{name} (1)"
            unsure[first[name]] = TWICE
    columns = {first.get(name, name): column for name, column in table.columns.items()}
    return replace(table, columns=columns, unsure=unsure)
