"""Columns that are not taken as state unless they are named: ids, dates and lists of actions.

The first rows decide, so that the answer is the same wherever the rows are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.data.columns import Column
from podium.data.eligible import SEPARATORS
from podium.data.notation import looks_like_date

TIMES = ("time", "timestamp", "date", "datetime", "day", "created at", "logged at", "ts")
IDS = ("id", "row", "index", "row id", "event id", "uuid", "request id", "session id", "unnamed: 0", "")
OFFERS = ("eligible", "available", "allowed", "possible", "candidates", "slate", "offered", "shown", "options",
          "choices", "arms", "actions", "action set", "eligible actions", "available actions",
          "candidate actions")  # fmt: skip
AFTER = ("reward", "outcome", "outcomes", "result", "status", "stage", "deal stage", "order status", "payment status",
         "financial status", "final status", "lead status", "ticket status", "resolution", "disposition", "click",
         "clicked", "conversion", "conversions", "converted", "revenue", "profit", "success", "responded", "recovered",
         "purchased", "bought", "won", "won lost", "closed won", "retained", "churned", "readmitted", "readmission",
         "refunded", "refund amount", "amount refunded", "reopened", "resolved", "unsubscribed", "erfolg", "ergebnis",
         "gekauft", "résultat", "converti", "resultado")  # fmt: skip
RECORDED_AFTER = "may have been recorded after the action"
LISTED = "lists of actions, which --eligible reads"
HEAD = 8192  # rows by which a column is known to hold ids or dates, on every engine
EXCEL_DAYS = (20_000, 80_000)  # dates from 1954 to 2119 as Excel counts days
MOMENTS = {"time", "timestamp", "ts", "epoch", "ms", "at", "utc", "created", "date", "datetime"}  # words of names
EPOCHS = (8, 11, 14, 17)  # seconds, milliseconds, microseconds and nanoseconds since 1970 begin with these powers of 10
FEW_ROWS, MANY_IDS, SOME = 5, 20, 200
ID_NAME = re.compile(r"(?:.*[\s_.-])?(?:id|uuid|guid)", re.IGNORECASE)
CAMEL_ID = re.compile(r".*[a-z](?:Id|ID)")
NUMBER_NAME = re.compile(r"(?:.*[\s_.-])?(?:no|nr|num|number|nummer|ref|reference)\.?|.*#", re.IGNORECASE)
NUMBERED = re.compile(r"\S+@\S+\.\S+|#?[A-Za-z]*[-_#]?\d{2,}")  # a mail address, P1001, SUP-17, in every row another
UNIQUE_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{24,64}", re.IGNORECASE)


def plain_name(header: str) -> str:
    """A header in lower case, with its words apart: PatientID and patient_id are "patient id"."""
    return re.sub(r"[\s_.-]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", header)).strip().lower()


def is_recorded_after(header: str) -> bool:
    """Whether the whole name of a column says that it holds an outcome, or its time: Stage, IsWon, converted_at."""
    name = plain_name(header).rstrip("?! ").removesuffix(" at")
    return name.removeprefix("is ").removeprefix("has ") in AFTER


def odd_state(header: str, column: Column) -> str | None:
    """Why a column is not taken as state without being named: ids, dates or lists of actions. None if it is.

    The first rows decide, so that the answer is the same wherever the rows are.
    """
    head = column[:HEAD]
    if head.dtype.kind == "M":
        return "dates"
    if head.dtype.kind in "if" and len(head) and {*plain_name(header).split()} & {"date", "datetime"}:
        low, high = float(np.min(head)), float(np.max(head))
        if EXCEL_DAYS[0] < low and high < EXCEL_DAYS[1]:
            return "dates"
    if head.dtype.kind in "iu" and len(head) and {*plain_name(header).split()} & MOMENTS:
        low, high = int(np.min(head)), int(np.max(head))
        if any(low > 9 * 10**p and high < 42 * 10**p for p in EPOCHS):
            return "dates"
    if head.dtype.kind == "b" or (head.dtype.kind == "f" and plain_name(header) not in TIMES):
        return None
    cells = head.tolist()
    if not all(x is None or isinstance(x, str | int | float) for x in cells):
        return None
    values = [x for x in cells if x is not None and x == x and x != ""]
    texts = [x for x in values if isinstance(x, str)]
    if texts and len(texts) == len(values):
        some = list(dict.fromkeys(texts[:SOME]))
        if all(map(looks_like_date, some)):
            return "dates"
        if plain_name(header) in OFFERS and any(text[:1] == "[" or {*text} & {*SEPARATORS} for text in some):
            return LISTED
        if len(some) > 1 and all(map(UNIQUE_NAME.fullmatch, some)):
            return "ids"
        if len(some) == len(texts[:SOME]) >= MANY_IDS and all(map(NUMBERED.fullmatch, some)):
            return "ids"
    elif texts or not values:
        return None
    elif plain_name(header) in TIMES and plain_name(header) != "day" and min(values) > 1e8:
        return "dates"
    return "ids" if holds_ids(header, values) else None


def holds_ids(header: str, values: Sequence[Any]) -> bool:
    """Whether a column that is called an id has almost as many values as rows."""
    try:
        distinct = len(set(values))
    except TypeError:
        return False
    unique = distinct == len(values) > 1
    if plain_name(header) in IDS:
        return unique
    if unique and distinct >= MANY_IDS and NUMBER_NAME.fullmatch(header.strip()):
        return True
    named = ID_NAME.fullmatch(header.strip()) or CAMEL_ID.fullmatch(header.strip())
    return bool(named) and ((unique and distinct >= FEW_ROWS) or (distinct > MANY_IDS and 5 * distinct > len(values)))
