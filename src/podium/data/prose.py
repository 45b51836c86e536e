"""Long texts (prompts, comments, messages) are not a state unless they are asked for: hardly two rows share one.

The first rows decide, so that every engine decides alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from podium.data.columns import Column
from podium.data.errors import PodiumError, listed
from podium.data.facts import Fact
from podium.data.nested import is_gap, lists_among
from podium.data.roles import Roles, shortened

FIRST = 1000  # rows that are looked at
LONG = 50  # characters beyond which a text is long
REPEATED = 3  # rows per text from which even long texts are names of categories
ENOUGH, WORDS = 20, 3  # rows from which texts that differ are judged, and words that make a sentence
MOST = 4  # state columns that a warning names in a command


def prose_length(column: Column) -> int | None:
    """The median number of characters of a column of long texts; None for any other column.

    Long texts have more than 50 characters, or three words and more where most of them differ.
    """
    if column.ndim != 1 or column.dtype.kind not in "OU":
        return None
    cells = column[:FIRST].tolist()
    texts = [x for x in cells if isinstance(x, str) and x]
    if not texts or not all(isinstance(x, str) or is_gap(x) for x in cells):
        return None
    rows, distinct = len(texts), len(set(texts))
    length = median(map(len, texts))
    sentences = rows >= ENOUGH and 2 * distinct > rows and median(len(x.split()) for x in texts) >= WORDS
    return int(length) if sentences or (length > LONG and REPEATED * distinct > rows) else None


def without_prose(roles: Roles, columns: Mapping[str, Column]) -> Roles:
    """The roles in which long texts that nobody named are no state; what was left out is told."""
    if not roles.guessed:
        return roles
    found = {h: prose_length(columns[h]) for h in roles.states if h in columns}
    lengths = {header: length for header, length in found.items() if length is not None}
    if not lengths:
        return roles
    rest = tuple(h for h in roles.states if h not in lengths)
    if not rest:
        first = next(iter(lengths))
        raise PodiumError(
            f"every column that could be the state holds long texts: {listed(lengths)}",
            hint="add what is known before the action as columns, such as an embedding of the text (a list of numbers),"
            f" or take each text as a state of its own: --state {shortened(first)}.",
        )
    names = {role: header for role, header in roles.names.items() if role != "state"}
    if len(rest) == 1:
        names["state"] = rest[0]
    facts = [
        Fact("long text", column=header, length=length, options=state_options(rest, header))
        for header, length in lengths.items()
    ]
    return replace(roles, names=names, states=rest, left_out=(*roles.left_out, *facts))


def state_options(states: tuple[str, ...], more: str) -> str:
    """The options that take these columns and one more as the state.

    >>> state_options(("age", "e[0]", "e[1]"), "note")
    '--state age --state e --state note'
    """
    lists = lists_among(states)
    inside = {header: name for name, headers in lists.items() for header in headers}
    named = list(dict.fromkeys([*(inside.get(h, h) for h in states), more]))
    if len(named) > MOST:
        return f"--state {shortened(more)}, and --state for every other state column"
    return " ".join(f"--state {shortened(name)}" for name in named)
