"""Logs as Vowpal Wabbit reads them: cb text, and dsjson, in which every decision lists its own actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.errors import PodiumError
from podium.data.files import write_output
from podium.data.log import Log

ENDINGS = (".dsjson", ".vw")
UNSAFE = re.compile(r"[\s:|=^]+")


def write_log(log: Log, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a log as cb text (.vw) or dsjson (.dsjson); an action is its place in the action space, from 1.

    A file that exists with other content is replaced only with `overwrite`, and an input never.
    """
    if log.propensities is None:
        raise PodiumError(
            "Vowpal Wabbit needs probabilities, and the log has none",
            hint="estimate them: podium.estimate_propensities(log).log",
        )
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise PodiumError(f"{path.name!r} has an ending that is not Vowpal Wabbit's", hint="use .vw or .dsjson.")
    if ending == ".vw" and log.eligible is not None and not log.eligible.all():
        raise PodiumError(
            "cb text has one list of actions for all rows, and this log has eligible actions by row",
            hint="write a .dsjson file, in which every decision lists its own actions.",
        )
    lines = dsjson_lines(log) if ending == ".dsjson" else text_lines(log)
    write_output(path, "".join(line + "\n" for line in lines), overwrite=overwrite)


def text_lines(log: Log) -> Iterator[str]:
    for n, row in enumerate(state_rows(log)):
        words = [f"{safe(k)}={safe(v)}" if isinstance(v, str) else f"{safe(k)}:{float(v)!r}" for k, v in row.items()]
        label = f"{log.action_codes[n] + 1}:{float(0.0 - log.rewards[n])!r}:{float(log.propensities[n])!r}"  # type: ignore[index]
        yield f"{label} | {' '.join(words)}"


def dsjson_lines(log: Log) -> Iterator[str]:
    assert log.propensities is not None
    for n, row in enumerate(state_rows(log)):
        listed = range(log.n_actions) if log.eligible is None else np.flatnonzero(log.eligible[n]).tolist()
        place, p = listed.index(int(log.action_codes[n])), float(log.propensities[n])
        event: dict[str, Any] = {
            "_label_cost": float(0.0 - log.rewards[n]), "_label_probability": p, "_label_Action": place + 1,
            "_labelIndex": place, "EventId": str(n + 1),
        }  # fmt: skip
        if log.times is not None:
            event["Timestamp"] = str(log.times[n])
        if log.behavior is not None:
            order = [place, *(i for i in range(len(listed)) if i != place)]
            event |= {"a": [i + 1 for i in order], "p": [float(log.behavior[n, listed[i]]) for i in order]}
        labels = [str(log.action_space[j]) for j in listed]
        tags = [{"_tag": label} if log.eligible is not None else {} for label in labels]  # else the place is enough
        items = [{**tag, "Action": {"name": label}} for tag, label in zip(tags, labels, strict=True)]
        event["c"] = {"State": row, "_multi": items}
        yield json.dumps(event)


def state_rows(log: Log) -> Iterable[dict[str, Any]]:
    """The state of each row by column."""
    columns = {name: column.tolist() for name, column in log.state_columns.items()}
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def safe(text: Any) -> str:
    """A name without the characters that mean something in VW's text format."""
    return UNSAFE.sub("_", str(text))
