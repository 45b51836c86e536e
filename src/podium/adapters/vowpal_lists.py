"""The actions that a decision of Vowpal Wabbit lists: named by their tags or ids, else by their place in the list.

Lists may change from line to line. A place then holds different items, so that only a tag (`_tag` in dsjson, 'tag in
text) or an id (a feature called id) says which action is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.columns import Column, boxed
from podium.data.errors import PodiumError, count, show_value

IDS = ("_tag", "tag", "id", "_id")
ID_HINT = 'give every action a tag: {"_tag": "x", ...} in "_multi", or \'x| in text.'


@dataclass(frozen=True)
class Listed:
    """The list of one decision: the place of the action that was taken (from 1), and what names the actions."""

    place: str  # "file: line 3"
    taken: int
    size: int  # 0: unknown
    items: tuple[Any, ...]  # None for an action without tag or id
    features: tuple[int, ...] = ()  # of its actions, as numbers that differ where these do


def item_of(entry: Any) -> Any:
    """The tag or id of an entry of "_multi", on its own level or inside one of its namespaces; None without one."""
    if not isinstance(entry, Mapping):
        return None
    spaces = [entry, *(x for x in entry.values() if isinstance(x, Mapping))]
    found = [space[key] for key in IDS for space in spaces if is_name(space.get(key))]
    return found[0] if found else None


def is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def tag_of(head: str, features: Mapping[str, Any]) -> Any:
    """The tag of a line of text, 'x or a word that touches the bar, else the feature id; None without one."""
    word = head.split()[-1] if head.split() else ""
    if word.startswith("'"):
        return word[1:] or None
    if word and not head[-1].isspace() and ":" not in word:
        return word
    value = next((v for name, v in features.items() if name.rpartition(".")[2].lower() == "id"), None)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def name_actions(lists: Sequence[Listed]) -> tuple[list[Any], list[tuple[Any, ...]] | None, str]:
    """The action of each decision, the actions that it lists in their order, and the header of that column.

    The lists are None where actions are named by their place, and every place has the same features in all lists.
    """
    named = [bool(x.items) and all(item is not None for item in x.items) for x in lists]
    if any(named):
        if not all(named):
            bare = lists[named.index(False)]
            raise PodiumError(f"{bare.place} has actions without a tag or id, and others have one", hint=ID_HINT)
        texts = not all(isinstance(item, int) for x in lists for item in x.items)
        items = [tuple(map(str, x.items)) if texts else x.items for x in lists]
        for x, names in zip(lists, items, strict=True):
            refuse_twice(x, names)
        return [names[x.taken - 1] for x, names in zip(lists, items, strict=True)], items, "eligible"
    taken = [x.taken for x in lists]
    for x in lists:
        if x.size or x.taken < 1:
            refuse_beyond(x, x.size)
    if len({(x.size, x.features) for x in lists}) == 1:
        return taken, None, ""
    return taken, [tuple(range(1, max(x.size, x.taken) + 1)) for x in lists], "slots"


def refuse_twice(listed: Listed, names: tuple[Any, ...]) -> None:
    """Refuse a list that names an action twice, or whose action is not in it."""
    refuse_beyond(listed, len(names))
    for i, name in enumerate(names):
        if name in names[:i]:
            raise PodiumError(f"{listed.place} lists the action {show_value(name)} twice", hint=ID_HINT)


def refuse_beyond(listed: Listed, size: int) -> None:
    """Refuse an action that is not in its list."""
    if not 0 < listed.taken <= size:
        raise PodiumError(
            f"{listed.place}: the action {listed.taken} is not among the {count(size, 'action')} of its list",
            hint="actions are counted from 1 in '_label_Action' and 'a', and from 0 in '_labelIndex'.",
        )


def refuse_other_kinds(event: dict[str, Any], place: str) -> None:
    """Refuse decisions with several slots, and those whose actions are numbers on a scale."""
    context = event.get("c")
    if "_outcomes" in event or (isinstance(context, dict) and "_slots" in context):
        raise PodiumError(
            f"{place} fills several slots (ccb or slates), and podium compares decisions for one action",
            hint="write one decision per slot, with its own '_label_cost', '_label_probability' and '_labelIndex'.",
        )
    if "_label_ca" in event:
        raise PodiumError(
            f"{place} has a continuous action ('_label_ca')",
            hint="write actions, costs and densities as columns, and use podium.continuous (--continuous).",
        )


def list_column(lists: Sequence[tuple[Any, ...]]) -> Column:
    """(N,) lists in their order."""
    return boxed([list(names) for names in lists])


def slots_of(columns: Mapping[str, Column]) -> Sequence[Sequence[Any]] | None:
    """The lists of a log that was read from such a file; None where actions are named by their place."""
    column = next((columns[h] for h in ("eligible", "slots") if h in columns), None)
    return None if column is None or not isinstance(column[0], list | np.ndarray) else [*column]
