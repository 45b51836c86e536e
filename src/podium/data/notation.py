"""Values as people write them: gaps, numbers with separators, currencies and percent, outcomes in words, dates.

A column is converted only if every cell that is not a gap fits one notation; otherwise it stays as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data.columns import Column, boxed, to_array
from podium.data.times import parse_time

GAPS = frozenset(
    ("", "n/a", "#n/a", "n.a.", "na", "nan", "null", "(null)", "<na>", "none", "nil", "missing", "-", "--", "–", "—",
     "?", ".", "#null!", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#nv", "#wert!", "#bezug!", "\\n", "[null]",
     "(blank)", "(not set)", "n/d", "k.a.", "no data", "not available", "not applicable", "not recorded")
)  # fmt: skip
NAME_GAPS = GAPS - {"na", "none", "nil", "missing", "."}  # among names, these may be names
CODE = re.compile(r"0[\d\s'’]")  # 007 is a name, not the number 7
CURRENCIES = r"(?:US\$|[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|INR|kr|zł)"
SPACE = "\u00a0\u202f\u2009 "
WRITTEN = re.compile(
    rf"(?P<open>\()?(?P<sign>[+\-−])?[{SPACE}]*(?P<before>{CURRENCIES})?[{SPACE}]*(?P<inner>[+\-−])?"
    rf"(?P<body>\d[\d.,'’{SPACE}]*?|[.,]\d+)(?P<tail>-)?[{SPACE}]*(?P<scale>[kKMB])?[{SPACE}]*"
    rf"(?P<after>{CURRENCIES}|%)?(?P<close>\))?"
)
SCALES = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}
SAME_END = re.compile(rf"(?P<number>.*\d)[{SPACE}]+(?P<unit>[^\W\d_]{{1,10}}\.?)")  # 68 kg
OUT_OF = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit> ?/ ?(?:4|5|6|7|10|100))")  # 4/5
CLOCK_LENGTH = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")  # 00:05:30
COMMA_GROUPS = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+"
)  # 1,234.5, and 12,34,567.5 in India
SIGNED_OTHERWISE = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d+(?:\.\d{3})*,\d+")  # 1.234.567, 3,5
EITHER_SIGN = re.compile(r"\d+(?:[.,](?:\d\d?|\d{4,}))?|0[.,]\d+")  # 1,5 and 1.5, neither of which separates thousands
POINT_THOUSANDS = re.compile(r"[1-9]\d{0,2}\.\d{3}")  # 1.234, which can be 1234
POINT_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+(?:,\d+)?|,\d+")  # 1.234,5
SPACE_GROUPS = re.compile(rf"\d{{1,3}}(?:[{SPACE}'’]\d{{3}})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?")  # 1 234,5
SUCCESSES = frozenset(
    ("yes", "y", "true", "t", "won", "win", "success", "successful", "succeeded", "converted", "clicked", "pass",
     "passed", "bought", "purchased", "paid", "accepted", "approved", "completed", "good", "satisfied", "improved",
     "better", "responded", "answered", "closed won", "closedwon", "ja", "oui", "sí", "si", "sì", "sim", "tak", "ano",
     "evet", "kyllä", "wahr", "vrai", "verdadero", "verdadeiro", "vero", "waar", "sant", "sann", "tosi", "да", "是",
     "はい", "✓", "✔", "☑")
)  # fmt: skip
FAILURES = frozenset(
    ("no", "n", "false", "f", "lost", "loss", "lose", "failure", "fail", "failed", "unsuccessful", "not converted",
     "not clicked", "not bought", "not purchased", "unpaid", "not paid", "rejected", "declined", "denied", "incomplete",
     "not completed", "bad", "unsatisfied", "dissatisfied", "not improved", "worse", "worsened", "no response",
     "not responded", "not answered", "unanswered", "closed lost", "closedlost", "nein", "non", "não", "nee", "nej",
     "nei", "nie", "ne", "hayır", "ei", "falsch", "faux", "falso", "onwaar", "falskt", "usann", "epätosi", "нет", "否",
     "いいえ", "✗", "✘", "✖", "☐")
)  # fmt: skip
ORDERS = ("year first", "named months", "day first", "month first")
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
CLOCK = re.compile(
    r"(?P<date>.+?)(?:(?:[ T,]+|:)(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.(?P<f>\d{1,6}))?)?"
    r"[ ]?(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
ZONE = re.compile(r"(?<=[\dMm.]) ?(?:UTC|GMT|Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d))$")  # after a time
WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? ")
NUMERIC_DATE = re.compile(r"(\d{1,4})([/.\-])(\d{1,2})\2(\d{1,4})")
NAMED_DATE = re.compile(r"(\d{1,2})[ .\-/]+([A-Za-z]{3,9})\.?[ ,\-/]+(\d{2,4})|([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4})")


def is_gap(cell: Any, gaps: Collection[str] = GAPS) -> bool:
    """Whether a cell is taken for missing."""
    if cell is None:
        return True
    if isinstance(cell, str):
        return len(cell) < 20 and cell.strip().lower() in gaps
    return isinstance(cell, float | np.floating) and cell != cell


def distinct_texts(column: Column) -> dict[str, int]:
    """The texts of a column and how often each occurs."""
    found: dict[str, int] = {}
    for x in column:
        if type(x) is str:
            found[x] = found.get(x, 0) + 1
    return found


# --- numbers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """How a column of numbers is written.

    Attributes
    ----------
    words : the notation in words: "thousands separators", "decimal commas", "percent", "currency ($)"
    example : a cell, and the number that it is read as
    """

    numbers: dict[str, int | float]
    words: str
    example: tuple[str, int | float]


def numbers_written(texts: Iterable[str], points: bool, semicolons: bool) -> Written | None:
    """The numbers that all these texts stand for, in one notation; None where one of them is no number.

    `points`: other cells of the column are numbers with a decimal point. `semicolons`: the file separates cells by
    semicolons, as programs do where the comma is the decimal sign.
    """
    texts = list(texts)
    if texts and all(CLOCK_LENGTH.fullmatch(text.strip()) for text in texts):
        return clock_lengths(texts)
    ends = same_end(texts)
    parts: dict[str, re.Match[str]] = {}
    for text in texts:
        match = WRITTEN.fullmatch(ends[0][text] if ends else text.strip())
        if match is None or bool(match["open"]) != bool(match["close"]):
            return None
        parts[text] = match
    units = {match["before"] or match["after"] or "" for match in parts.values()}
    bodies = {text: match["body"].strip(SPACE) for text, match in parts.items()}
    if not parts or len(units - {""}) > 1 or (units == {"%", ""}) or any(map(CODE.match, bodies.values())):
        return None
    scaled = {match["scale"] for match in parts.values()} - {None}
    style = style_of(list(bodies.values()), points, semicolons)
    unit = next(iter(units - {""}), "")
    if (
        style is None
        or (scaled and unit == "%")
        or (scaled & {"M", "B"} and not unit and style == "plain" and not any("." in body for body in bodies.values()))
    ):
        return None  # 2B may be a flat
    numbers = {text: value_of(match, bodies[text], style, unit == "%") for text, match in parts.items()}
    said = [style] if style != "plain" else []
    said += ["percent"] if unit == "%" else [f"currency ({unit})"] if unit else []
    said += [f"abbreviations ({', '.join(sorted(scaled))})"] if scaled else []
    said += [f"a unit ({ends[1]})"] if ends else []
    said += ["parentheses for negative numbers"] if any(match["open"] for match in parts.values()) else []
    said += ["a minus after the number"] if any(match["tail"] for match in parts.values()) else []
    if not said and all(map(is_plain_number, parts)):
        return None  # texts beside numbers in a file that tells them apart
    example = max(numbers, key=lambda text: (len(text) if not text.isdigit() else 0, text))
    return Written(numbers, " and ".join(said) or "spaces or signs", (example, numbers[example]))


def clock_lengths(texts: Sequence[str]) -> Written:
    """Times such as 00:05:30 as seconds."""
    numbers: dict[str, int | float] = {}
    for text in texts:
        hours, minutes, seconds = map(int, text.strip().split(":"))
        numbers[text] = 3600 * hours + 60 * minutes + seconds
    example = max(numbers)
    return Written(numbers, "hours:minutes:seconds as seconds", (example, numbers[example]))


def same_end(texts: Sequence[str]) -> tuple[dict[str, str], str] | None:
    """Texts without the unit that all of them end in (68 kg, 4/5), and that unit; None where they have no such unit."""
    if len(texts) < 2:
        return None
    for pattern in (SAME_END, OUT_OF):
        found = {text: pattern.fullmatch(text.strip()) for text in texts}
        units = {match["unit"].strip() if match else "" for match in found.values()}
        unit = next(iter(units))
        if len(units) == 1 and unit and unit not in SCALES and not re.fullmatch(CURRENCIES, unit):
            return {text: match["number"] for text, match in found.items() if match}, unit
    return None


def has_open_points(cells: Iterable[str], semicolons: bool) -> bool:
    """Whether points in the cells of a column may separate thousands.

    They may where semicolons separate cells and every number with a point is like 1.234; and they do, or the comma is
    the decimal sign, where others are like 1.234.567 or 3,5.
    """
    pointed = open_points = other_points = 0
    for cell in cells:
        text = cell.strip()
        if "." in text and text.count(".") == 1 and "," not in text and is_plain_number(text):
            pointed += 1
            other_points += POINT_THOUSANDS.fullmatch(text.lstrip("+-")) is None
        elif text[:1].isdigit() and SIGNED_OTHERWISE.fullmatch(text):
            open_points += 1
    return pointed > 0 and (open_points > 0 or (semicolons and not other_points))


def may_be_thousands(values: Collection[Any]) -> bool:
    """Whether all values are gaps, whole numbers, or like 1.234 in texts, and one is of the last kind."""
    texts = [x.lstrip("+-") for x in values if isinstance(x, str) and not is_gap(x)]
    others = any(x is not None and not isinstance(x, str) for x in values)
    open_ones = [x for x in texts if POINT_THOUSANDS.fullmatch(x)]
    return bool(open_ones) and not others and all(x in open_ones or x.isdigit() for x in texts)


def is_plain_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def style_of(bodies: Sequence[str], points: bool, semicolons: bool) -> str | None:
    """Which of comma and point is the decimal sign in all of these; None where no reading fits all."""
    if all(re.fullmatch(r"\d+(\.\d*)?|\.\d+", b) for b in bodies):
        return "plain"
    comma = all(map(COMMA_GROUPS.fullmatch, bodies))
    point = all(map(POINT_GROUPS.fullmatch, bodies)) and not points
    if comma and point:  # 1,234 alone: a decimal comma where a zero leads, or where semicolons separate cells
        return "decimal commas" if semicolons or any(b.startswith("0,") for b in bodies) else "thousands separators"
    if comma or point:
        return "thousands separators" if comma else "decimal commas"
    if not points and all(map(EITHER_SIGN.fullmatch, bodies)):
        return "decimal commas and points"
    if all(map(SPACE_GROUPS.fullmatch, bodies)):
        signs = {c for b in bodies for c in b if c in ".,"}
        return None if len(signs) > 1 or (points and "," in signs) else "spaces between thousands"
    return None


def value_of(match: re.Match[str], body: str, style: str, percent: bool) -> int | float:
    """The number that one cell stands for."""
    digits = re.sub(rf"[{SPACE}'’]", "", body)
    if style == "thousands separators":
        digits = digits.replace(",", "")
    elif style == "decimal commas":
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", ".")
    minus = (match["sign"] or match["inner"] or "") in ("-", "−") or match["open"] or match["tail"]
    if percent:
        value: int | float = float(Decimal(digits) / 100)
    else:
        exact = Decimal(digits) * SCALES.get(match["scale"], 1)
        value = int(exact) if digits.isdigit() or (match["scale"] and exact == int(exact)) else float(exact)
    return -value if minus else value


def as_numbers(column: Column, numbers: dict[str, int | float]) -> Column:
    """A column whose texts are replaced by the numbers they stand for; what is not among them is a gap."""
    cells = [numbers.get(x) if isinstance(x, str) else x for x in column]
    return boxed(cells) if any(x is None for x in cells) else to_array(cells)


# --- outcomes in words -----------------------------------------------------------------------------------------------


def success_known(texts: Collection[str]) -> list[str]:
    """Those of the texts that are a success, where each of them is surely a success or a failure.

    >>> success_known(["Yes", "yes ", "No"]), success_known(["alive", "dead"])
    (['Yes', 'yes '], [])
    """
    good = [text for text in texts if plain_word(text) in SUCCESSES]
    bad = [text for text in texts if plain_word(text) in FAILURES]
    return good if good and bad and len(good) + len(bad) == len(texts) else []


def plain_word(text: str) -> str:
    """A text in lower case, without spaces and quotes around it."""
    return text.strip(f"{SPACE}\t\"'‘’“”«»„").lower()


# --- dates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dates:
    """Dates as they were read: the moments, and the order of their parts in words."""

    moments: dict[str, datetime]
    order: str


class AmbiguousDates(ValueError):
    """Dates that can be read day first or month first."""


def looks_like_date(cell: Any) -> bool:
    """Whether a text is a date in one of the orders that people use."""
    return isinstance(cell, str) and 5 < len(cell) < 40 and (parse_time(cell) is not None or bool(readings(cell)))


def readings(text: str) -> dict[str, datetime]:
    """The moments that a text can stand for, by the order of day and month."""
    text = WEEKDAY.sub("", text.strip(), count=1)
    zone = zone_of(text)
    match = CLOCK.fullmatch(text[: zone.start()] if zone else text)
    if match is None:
        return {}
    found: dict[str, tuple[int, int, int]] = {}
    date = match["date"].strip()
    if parts := NUMERIC_DATE.fullmatch(date):
        first, sign, second, third = parts[1], parts[2], parts[3], parts[4]
        if len(first) == 4:
            found["year first"] = (int(first), int(second), int(third))
        elif len(third) in (2, 4):
            year = int(third) if len(third) == 4 else 2000 + int(third) - 100 * (int(third) >= 69)
            found["day first"] = (year, int(second), int(first))
            if sign != ".":  # with points, the day is always first
                found["month first"] = (year, int(first), int(second))
    elif parts := NAMED_DATE.fullmatch(date):
        day, month, year_text = (parts[1], parts[2], parts[3]) if parts[1] else (parts[5], parts[4], parts[6])
        if month[:3].lower() in MONTHS:
            year = int(year_text) if len(year_text) == 4 else 2000 + int(year_text) - 100 * (int(year_text) >= 69)
            found["named months"] = (year, MONTHS.index(month[:3].lower()) + 1, int(day))
    ahead = zone_ahead(zone)
    moments = {order: moment for order, date in found.items() if (moment := at_clock(date, match)) is not None}
    if not ahead:
        return moments
    return {order: moment - ahead for order, moment in moments.items() if 1 < moment.year < 9999}


def zone_of(text: str) -> re.Match[str] | None:
    """The time zone at the end of a moment; that of a date alone, 05-01-2024, is none."""
    return ZONE.search(text) if text.count(":") > 0 else None


def zone_ahead(zone: re.Match[str] | None) -> timedelta:
    """How far a time zone is ahead of UTC."""
    if zone is None or not zone["sign"]:
        return timedelta(0)
    ahead = timedelta(hours=int(zone["hours"]), minutes=int(zone["minutes"]))
    return ahead if zone["sign"] == "+" else -ahead


def at_clock(date: tuple[int, int, int], match: re.Match[str]) -> datetime | None:
    hour, half = int(match["h"] or 0), (match["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    micro = int((match["f"] or "").ljust(6, "0"))
    try:
        return datetime(*date, hour, int(match["m"] or 0), int(match["s"] or 0), micro)
    except ValueError:
        return None


def dates_written(cells: Sequence[str]) -> Dates | None:
    """Texts as moments in one order of day and month; None where one of them is no date.

    Raises AmbiguousDates where every date can be read in two orders, and the order of the rows does not tell which.
    """
    found = {text: readings(text) for text in dict.fromkeys(cells)}
    orders = [o for o in ORDERS if all(o in r for r in found.values())]
    if not orders or not found or len({zone_of(text.strip()) is None for text in found}) > 1:
        return None
    if len(orders) > 1 and any(found[text]["day first"] != found[text]["month first"] for text in found):
        sorted_by = [order for order in orders if len(found) > 3 and in_order([found[t][order] for t in cells])]
        if len(sorted_by) != 1:
            raise AmbiguousDates
        orders = sorted_by
    return Dates({text: moments[orders[0]] for text, moments in found.items()}, orders[0])


def in_order(moments: Sequence[datetime]) -> bool:
    """Whether rows run forward or backward in time."""
    pairs = list(pairwise(moments))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)


def dates_by_format(cells: Sequence[str], form: str) -> tuple[dict[str, datetime], str | None]:
    """Texts as moments by a strptime format, and the first text that does not fit it."""
    moments: dict[str, datetime] = {}
    for text in cells:
        if text not in moments:
            try:
                moments[text] = datetime.strptime(text.strip(), form)
            except (ValueError, re.error):
                return moments, text
    return moments, None
