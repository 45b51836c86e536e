"""Vowpal Wabbit's logs (dsjson, cb and cb_adf text) as columns, its prediction files as policies, and logs back.

    {"_label_cost": -1, "_label_probability": 0.8, "_labelIndex": 0, "a": [1, 2], "p": [0.8, 0.2], "c": {...}}   dsjson
    2:-1:0.5 |User age:41 sex=f                                                  cb: action:cost:probability | features
    shared |User age:41                                                          cb_adf: one line per action, a blank
    0:-1:0.5 |Action x                                                           line after each decision
    |Action y

Reward is minus cost. An action is called by its tag or id where the file has them (`adapters.vowpal_lists`), and the
actions that a line lists are the eligible ones. Otherwise it is its place, counted from 1, as cb labels and `a` count;
prediction files count from 0. A feature `age:41` is the column User.age, `sex=f` the text column User.sex; an absent
number is 0. Files are read line by line, and may end in .gz. Needs no vowpalwabbit.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from podium.adapters.vowpal_lists import (
    Listed,
    item_of,
    list_column,
    name_actions,
    refuse_other_kinds,
    slots_of,
    tag_of,
)
from podium.adapters.vowpal_writing import write_log
from podium.data.columns import Column, Floats, to_array
from podium.data.errors import PodiumError, count, refuse_rows, show_value
from podium.data.files import note_input
from podium.data.log import Log
from podium.data.paths import missing_file
from podium.data.probabilities import AGREE

__all__ = ["read_columns", "read_log", "read_predictions", "write_log"]
ABSENT = "absent"  # a text feature that a line lacks
RESERVED = ("action", "reward", "propensity", "time", "eligible", "slots")
MOST_FEATURES = 2_000
LABEL_HINT = "a label is action:cost:probability, such as 2:-1:0.5."
Features = dict[str, Any]


@dataclass
class Decision:
    """One logged decision: the place of its action (from 1), its cost and probability, and what else its lines say."""

    line: int
    action: int
    cost: float
    probability: float | None
    features: Features
    distribution: dict[int, float] = field(default_factory=dict)
    time: str | None = None
    items: tuple[Any, ...] = ()  # tags or ids of the actions that it lists
    size: int = 0  # how many those are; 0: it has no list
    contents: tuple[int, ...] = ()  # their features, as numbers


def read_log(path: str | Path, **roles: Any) -> Log:
    """A log from a .dsjson file, or from cb or cb_adf text (.vw); the roles are those of `podium.read_log`."""
    return Log.from_columns(read_columns(path), **roles)


def read_columns(path: str | Path) -> dict[str, Column]:
    """The columns action, reward, propensity, propensity:<action>, time, as far as the file has them, and features.

    `eligible` holds the list of each decision, where it has tags or ids; `slots` where it has none and lists differ in
    length.
    """
    path = Path(path)
    dsjson = str(path).lower().removesuffix(".gz").endswith(".dsjson")
    decisions = list(read_dsjson(path) if dsjson else read_text_log(path))
    if not decisions:
        raise PodiumError(f"{path.name} holds no decision with a cost", hint=LABEL_HINT)
    columns: dict[str, Column] = feature_columns(path, [d.features for d in decisions])
    clash = next((n for n in columns if n in RESERVED), None)
    if clash:
        raise PodiumError(f"{path.name}: a feature is called {clash!r}", hint="put it into a namespace: |User " + clash)
    labels, lists, header = name_actions(
        [Listed(f"{path.name}: line {d.line}", d.action, d.size, d.items, d.contents) for d in decisions]
    )
    columns["action"] = to_array(labels)
    if lists is not None:
        columns[header] = list_column(lists)
    columns["reward"] = np.array([0.0 - d.cost for d in decisions])
    known = [d.probability is not None for d in decisions]
    if any(known):
        if not all(known):
            line = decisions[known.index(False)].line
            raise PodiumError(f"{path.name}: line {line} has no probability, and others have one", hint=LABEL_HINT)
        columns["propensity"] = np.array([d.probability for d in decisions], dtype=np.float64)
    if all(d.distribution for d in decisions):
        rows = [d.distribution if lists is None else renamed(path, d, lists[n]) for n, d in enumerate(decisions)]
        for action in sorted({a for row in rows for a in row}):
            columns[f"propensity:{action}"] = np.array([row.get(action, 0.0) for row in rows])
    if all(d.time is not None for d in decisions):
        columns["time"] = to_array([d.time for d in decisions])
    return columns


def renamed(path: Path, decision: Decision, names: tuple[Any, ...]) -> dict[Any, float]:
    """The distribution of a decision by the names of its actions instead of their places."""
    if beyond := [a for a in decision.distribution if not 0 < a <= len(names)]:
        raise PodiumError(
            f"{path.name}: line {decision.line} gives a probability to the action {beyond[0]}, and lists {len(names)}",
            hint="'a' counts the actions of '_multi' from 1.",
        )
    return {names[a - 1]: p for a, p in decision.distribution.items()}


def feature_columns(path: Path, rows: list[Features]) -> dict[str, Column]:
    """Sparse features as columns: an absent number is 0, an absent text is "absent"; constants alone are kept too."""
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) > MOST_FEATURES:
        raise PodiumError(
            f"{path.name} has {len(names):,} different features; podium takes up to {MOST_FEATURES:,}",
            hint="leave out ids and crossed features; write texts as name=value.",
        )
    if not names:
        return {"state": np.zeros(len(rows))}
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(isinstance(v, str) for v in values):
            columns[name] = to_array([ABSENT if v is None else str(v) for v in values])
        else:
            columns[name] = np.array([0.0 if v is None else float(v) for v in values])
    return columns


# --- lines -------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a file, from which errors know where they are."""

    number: int  # from 1
    place: str  # "file: line 3"
    text: str


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file, one at a time."""
    if not path.is_file():
        raise missing_file(path)
    note_input(path)
    number = 0
    try:
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig") as stream:
            for number, text in enumerate(stream, start=1):
                yield Line(number, f"{path.name}: line {number}", text.rstrip("\r\n"))
    except UnicodeDecodeError as error:
        raise PodiumError(f"{path.name}: line {number + 1} is not UTF-8", hint="save the file as UTF-8.") from error
    except (OSError, EOFError) as error:
        raise PodiumError(f"{path.name} cannot be read: {error}", hint="check the file.") from error


def read_dsjson(path: Path) -> Iterator[Decision]:
    """One decision per line; lines with "_skipLearn" and lines without "c" (bare outcomes) are passed over."""
    dropped: float | None = None
    hint = "dsjson is one JSON object per line."
    for number, place, text in lines_of(path):
        if not text.strip():
            continue
        try:
            event = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PodiumError(f"{place} is not valid JSON: {error}", hint=hint) from error
        if not isinstance(event, dict):
            raise PodiumError(f"{place} is no JSON object", hint=hint)
        if event.get("_skipLearn") or ("c" not in event and "_label_cost" not in event):
            continue
        try:
            drop = float(event.get("pdrop") or 0.0)
        except (TypeError, ValueError) as error:
            raise PodiumError(
                f"{place}: 'pdrop' must be a number; it is {show_value(event['pdrop'])}",
                hint="it is the probability with which a decision was dropped from the file.",
            ) from error
        if dropped not in (None, drop):
            raise PodiumError(
                f"{place} has pdrop {drop:g}, earlier lines {dropped:g}",
                hint="rows that were dropped at different rates do not stand for one population; split the file.",
            )
        dropped = drop
        yield dsjson_decision(event, number, place)


def dsjson_decision(event: dict[str, Any], number: int, place: str) -> Decision:
    refuse_other_kinds(event, place)
    try:
        cost = float(event["_label_cost"])
        listed = [int(a) for a in event.get("a") or []]
        action = int(event["_labelIndex"]) + 1 if "_labelIndex" in event else int(event["_label_Action"])
        probabilities = [float(p) for p in event.get("p") or []]
        given = event.get("_label_probability")
        probability = None if given is None else float(given)
    except KeyError as error:
        raise PodiumError(f"{place} has no {error}", hint="join the outcomes with the decisions first.") from error
    except (TypeError, ValueError) as error:
        raise PodiumError(f"{place} holds what is no number: {error}", hint="see the dsjson format.") from error
    if "_labelIndex" in event and event.get("_label_Action", action) != action:
        raise PodiumError(
            f"{place}: '_label_Action' is {show_value(event['_label_Action'])}, and '_labelIndex' is {action - 1}",
            hint="actions are counted from 1 in '_label_Action' and 'a', and from 0 in '_labelIndex'.",
        )
    if len(listed) != len(probabilities):
        raise PodiumError(
            f"{place} lists {count(len(listed), 'action')} in 'a' and {len(probabilities)} probabilities in 'p'",
            hint="'p' holds one probability for each action of 'a'.",
        )
    if probabilities and abs(sum(probabilities) - 1) > AGREE:
        raise PodiumError(
            f"{place}: the probabilities in 'p' add up to {sum(probabilities):.10g}, and must to 1",
            hint="'p' holds one probability for each action of 'a', with all of its digits.",
        )
    features = event.get("c") or {}
    if not isinstance(features, dict):
        raise PodiumError(
            f"{place}: 'c' must be a JSON object of features; it is {show_value(features)}",
            hint='write the context as "c": {"User": {"age": 41}}.',
        )
    context = {k: v for k, v in features.items() if not k.startswith("_")}
    stamp, multi = event.get("Timestamp"), features.get("_multi") or []
    if not isinstance(multi, list):
        raise PodiumError(
            f"{place}: '_multi' must be a list of actions; it is {show_value(multi)}",
            hint='write the actions as "_multi": [{"_tag": "x", ...}, {"_tag": "y", ...}].',
        )
    return Decision(
        number, action, cost, probability, dict(flat(context)),
        dict(zip(listed, probabilities, strict=True)), None if stamp is None else str(stamp),
        tuple(map(item_of, multi)), len(multi) or len(listed), tuple(hash(repr(entry)) for entry in multi),
    )  # fmt: skip


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """{"User": {"age": 41, "tags": ["a"]}} -> User.age 41, User.tags[0] a."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from flat(member, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from flat(member, f"{name}[{i}]")
    elif value is not None:
        yield name, value


def read_text_log(path: Path) -> Iterator[Decision]:
    """Decisions of cb text, or of cb_adf text, where a decision is a block of lines that a blank line ends."""
    lines = lines_of(path)
    start, adf = first_block(lines)
    block: list[Line] = []
    for line in chain(start, lines):
        if line.text.strip() and adf:
            block.append(line)
        elif line.text.strip():
            decision = labelled(line)
            if decision is None:
                raise PodiumError(f"{line.place} has no label", hint=LABEL_HINT)
            yield decision
        else:
            yield from adf_decision(block)
            block = []
    yield from adf_decision(block)


def first_block(lines: Iterator[Line]) -> tuple[list[Line], bool]:
    """The lines that tell cb from cb_adf text, and whether it is cb_adf, where one line of a decision has a label."""
    seen: list[Line] = []
    labels = bare = 0
    for line in lines:
        seen.append(line)
        if not line.text.strip():
            if labels:
                break
            continue
        if not labels and line.text.lstrip().startswith(("shared", "|")):
            return seen, True
        has_label = ":" in line.text.partition("|")[0]
        labels, bare = labels + has_label, bare + (not has_label)
        if labels > 1 or (not has_label and not labels):
            return seen, False
    return seen, bare > 0


def adf_decision(block: list[Line]) -> Iterator[Decision]:
    """The decision of one block: its action is the place of the labelled line; shared features are the state."""
    shared: Features = {}
    if block and block[0].text.lstrip().startswith("shared"):
        shared, block = dict(text_features(block[0])), block[1:]
    chosen = [(i, decision) for i, line in enumerate(block, 1) if (decision := labelled(line))]
    if len(chosen) > 1:
        raise PodiumError(
            f"{block[chosen[1][0] - 1].place} is the second labelled action of one decision",
            hint="one action per decision has a label; end each decision with a blank line.",
        )
    for action, decision in chosen:  # a decision without a label has no outcome yet
        items = tuple(tag_of(line.text.partition("|")[0], dict(text_features(line))) for line in block)
        contents = tuple(hash(line.text.partition("|")[2].strip()) for line in block)
        yield replace(decision, action=action, features=shared, items=items, size=len(block), contents=contents)


def labelled(line: Line) -> Decision | None:
    """The label and the features of one line; None without a label."""
    head, bar, _ = line.text.partition("|")
    if not bar:
        raise PodiumError(f"{line.place} has no '|'", hint="features follow a '|': 2:-1:0.5 | age:41")
    words = [w for w in head.split() if ":" in w]
    if not words:
        return None
    parts = words[0].split(":")
    if len(words) > 1 or len(parts) not in (2, 3):
        raise PodiumError(f"{line.place} has the label {head.strip()!r}", hint=LABEL_HINT)
    try:
        action, cost = int(parts[0]), float(parts[1])
        probability = float(parts[2]) if len(parts) == 3 else None
    except ValueError as error:
        raise PodiumError(f"{line.place} has the label {words[0]!r}", hint=LABEL_HINT) from error
    return Decision(line.number, action, cost, probability, dict(text_features(line)))


def text_features(line: Line) -> Iterator[tuple[str, Any]]:
    """`|User age:41 sex=f|Item x` -> User.age 41, User.sex f, Item.x 1; a namespace touches its bar."""
    for part in line.text.split("|")[1:]:
        words = part.split()
        space = words.pop(0).partition(":")[0] + "." if words and not part[0].isspace() else ""
        for word in words:
            name, colon, value = word.rpartition(":")
            try:
                weight = float(value) if colon else 1.0
            except ValueError as error:
                raise PodiumError(
                    f"{line.place}: the feature {word!r} has no number after its colon",
                    hint="write numbers as name:value and texts as name=value.",
                ) from error
            name, equals, text = (name if colon else word).partition("=")
            yield space + name, (text if equals else weight)


# --- predictions -------------------------------------------------------------------------------------------------


def read_predictions(path: str | Path, log: Log) -> Floats:
    """(N, A) a policy from a file of action probabilities: `0:0.9,1:0.1` for each row of the log.

    Columns follow the log's action space. VW counts the actions of each list from 0; where the log has no lists, its
    action 0 is called 1.
    """
    path = Path(path)
    hint = "write probabilities with --cb_explore or --cb_explore_adf, -t and -p; --epsilon 0 for the greedy policy."
    place = {label: j for j, label in enumerate(log.action_space)}
    lists = slots_of(log.columns)
    rows: list[dict[Any, float]] = []
    for line in lines_of(path):
        if not line.text.strip():
            continue
        try:
            pairs = [pair.split(":") for pair in line.text.split()[0].split(",")]
            by_place = {int(a) + 1: float(p) for a, p in pairs}
        except ValueError as error:
            raise PodiumError(f"{line.place} is no list of action:probability", hint=hint) from error
        names = lists[len(rows)] if lists is not None and len(rows) < len(lists) else None
        if unknown := [a for a in by_place if (a not in place if names is None else a > len(names))]:
            said = f"{line.place} names the action {unknown[0] - 1}"
            if names is not None:
                hint = "predict the log's own rows, in their order."
                raise PodiumError(
                    f"{said}; row {len(rows) + 1} of the log lists {count(len(names), 'action')}", hint=hint
                )
            raise PodiumError(
                f"{said}, which is no action of the log",
                hint=f"it would be {unknown[0]} in the log; name every action with actions=[...] or --actions.",
            )
        rows.append(by_place if names is None else {names[a - 1]: p for a, p in by_place.items()})
    if len(rows) != len(log):
        raise PodiumError(
            f"{path.name} has {count(len(rows), 'prediction')}; the log has {count(len(log), 'row')}",
            hint="predict the log's own rows, in their order.",
        )
    matrix = np.zeros((len(log), log.n_actions))
    for n, probabilities in enumerate(rows):
        for action, p in probabilities.items():
            matrix[n, place[action]] = p
    total = matrix.sum(axis=1)
    off = np.abs(total - 1) > 1e-4  # printed with six digits
    refuse_rows(
        f"{path.name}: the sum of a row's probabilities", "must be 1", off | (matrix.min(axis=1) < 0), total, hint
    )
    matrix /= total[:, None]
    return matrix
