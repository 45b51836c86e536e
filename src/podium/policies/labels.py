"""A policy's names of actions held against the log's: other kinds, other spellings, and numbers that are off by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.data.columns import kind_of, plain
from podium.data.errors import PodiumError, close_to, listed, show_value, shown
from podium.data.facts import Fact

KINDS = {"text": "texts", "number": "numbers", "truth value": "truth values"}
MOST_NAMES = 10  # actions that a hint writes out
OWN = "name the whole action space with actions=[...] (--actions)"


def check_mapping(labels: Any) -> None:
    """Refuse what names no actions: `labels` is a mapping, or the actions that 0, 1, 2, ... stand for."""
    if isinstance(labels, str) or not isinstance(labels, Mapping | Sequence):
        raise PodiumError(
            f"labels must map a policy's actions to those of the log; it is {shown(labels)}",
            hint="write podium.Policy(model, labels={0: 'a', 1: 'b'}), or labels=['a', 'b'].",
        )


def renamed(name: str, labels: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
    """A policy's actions under the names that were given for them."""
    if given is None:
        return labels
    names = given if isinstance(given, Mapping) else dict(enumerate(given))
    names = {plain(own): plain(label) for own, label in names.items()}
    missing = [label for label in labels if label not in names]
    if missing:
        raise PodiumError(
            f"policy {name!r}: labels has no name for the action {show_value(missing[0])}",
            hint=f"name each of the policy's actions: {listed(labels)}.",
        )
    return tuple(names[label] for label in labels)


def matched(name: str, labels: tuple[Any, ...], space: Sequence[Any]) -> tuple[tuple[Any, ...], Fact | None]:
    """The actions of the log that labels of another kind are written like, such as '1' for 1; a fact that says so.

    Labels stay as they are unless each has exactly one action that is written like it.
    """
    known = set(space)
    others = [label for label in labels if label not in known]
    if not others or any(kind_of(label) == kind_of(space[0]) or kind_of(label) not in KINDS for label in others):
        return labels, None
    places: dict[str, list[Any]] = {}
    for action in space:
        places.setdefault(written(action), []).append(action)
    found = [label if label in known else next(iter(places.get(written(label), ())), None) for label in labels]
    ambiguous = any(len(places.get(written(label), ())) != 1 for label in others)
    if ambiguous or None in found or len(set(found)) < len(found):
        return labels, None
    ours = [label for label, own in zip(found, labels, strict=True) if own in set(others)]
    said = {"kind": KINDS[kind_of(others[0])], "theirs": listed(others, 5), "ours": listed(ours, 5)}
    return tuple(found), Fact("labels matched", policy=name, **said)


def written(label: Any) -> str:
    """A label as it would be typed.

    >>> written(1), written(1.0), written(" 1"), written(True)
    ('1', '1', '1', 'true')
    """
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    text = str(label).strip()
    return text.lower() if text.lower() in ("true", "false") else text


def refuse_shifted(name: str, labels: tuple[Any, ...], space: Sequence[Any]) -> None:
    """Refuse actions that are numbered from 0 where those of the log are numbered from 1, or the reverse."""
    theirs, ours = [whole(x) for x in labels], [whole(x) for x in space]
    played, logged = {x for x in theirs if x is not None}, {x for x in ours if x is not None}
    if None in theirs or None in ours or len(played) < 2 or not played - logged:
        return
    from_zero = min(logged) == 1 and min(played) == 0 and max(played) < max(logged)
    from_one = min(logged) == 0 and min(played) >= 1 and max(played) == max(logged) + 1
    if not (from_zero or from_one):
        return
    action = dict(zip(ours, space, strict=True))
    shift = 1 if from_zero else -1
    pairs = [(own, action.get((n or 0) + shift)) for own, n in zip(labels, theirs, strict=True)]
    mapping = ", ".join(f"{show_value(own)}: {show_value(label)}" for own, label in pairs[:5] if label is not None)
    new = next(own for own, n in zip(labels, theirs, strict=True) if n not in logged)
    raise PodiumError(
        f"policy {name!r} numbers its actions from {0 if from_zero else 1} ({listed(sorted(played), 5)}), and the log "
        f"numbers them from {min(logged)} ({listed(space, 5)}): the labels are off by one",
        hint=f"map them with podium.Policy(policy, labels={{{mapping}{', ...' if len(pairs) > 5 else ''}}}), or "
        f"correct them in the file; if {show_value(new)} is one more action, {OWN}.",
    )


def whole(label: Any) -> int | None:
    """The whole number that a label is or is written like; None for all others."""
    text = written(label) if isinstance(label, str | int | float) and not isinstance(label, bool) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def encoded_hint(labels: Sequence[Any], space: Sequence[Any]) -> str:
    """What the actions are; and how to map 0, 1, 2, ..., as an encoder of labels numbers them, to their names."""
    said = f"the actions are {listed(space)}"
    if len(labels) != len(space) or [whole(x) for x in labels] != list(range(len(space))):
        return f"{said}."
    names = ", ".join(show_value(x) for x in space)
    given = f"[{names}]" if len(space) <= MOST_NAMES else "log.action_space"
    return f"{said}; if {listed(labels, 5)} stand for them, map them with podium.Policy(policy, labels={given})."


def refuse_alike(name: str, labels: tuple[Any, ...], space: Sequence[Any]) -> None:
    """Refuse an action that differs from one of the log only by case or by spaces around it."""
    known = set(space)
    for label in labels:
        alike = [x for x in space if same_text(x, label)] if label not in known else []
        if alike:
            wrong, right = show_value(label), show_value(alike[0])
            raise PodiumError(
                f"policy {name!r} names the action {wrong}, which does not occur in the log; did you mean {right}?",
                hint=f"write {right}, or map it with podium.Policy(policy, labels={{{wrong}: {right}, ...}}); if "
                f"{wrong} is an action of its own, {OWN}.",
            )


def same_text(one: Any, other: Any) -> bool:
    """Whether two texts differ only by case and by spaces."""
    return isinstance(one, str) and isinstance(other, str) and folded(one) == folded(other)


def folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def new_actions(name: str, labels: Sequence[Any], space: Sequence[Any]) -> Fact:
    """The warning that a policy plays actions that the log lacks, with the one of the log that was perhaps meant."""
    near = [meant for label in labels if (meant := close_to(label, space))]
    meant = f" Did you mean {show_value(near[0])}?" if near else ""
    return Fact("new actions", policy=name, actions=listed(labels, 5), meant=meant)
