"""The columns of an export as a log needs them: numbers, outcomes and dates read, gaps and problems found."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import (
    FILL_HINT,
    Codes,
    Column,
    boxed,
    is_missing,
    is_unequal,
    labels_column,
    match_label,
    to_array,
)
from podium.data.errors import BadRows, PodiumError, count, listed, show_value
from podium.data.facts import Fact
from podium.data.invisible import same_to_see
from podium.data.notation import (
    FAILURES,
    GAPS,
    NAME_GAPS,
    SUCCESSES,
    AmbiguousDates,
    as_numbers,
    dates_by_format,
    dates_written,
    distinct_texts,
    is_gap,
    is_plain_number,
    may_be_thousands,
    numbers_written,
    plain_word,
    success_known,
)
from podium.data.remarks import remarks
from podium.data.roles import Roles
from podium.data.times import parse_time

MISSING = "(missing)"  # the level of a text that is missing
REWARD_HINT = "a reward is a finite number in every row."
OUTCOME_HINT = "an outcome is a finite number in every row."
NEEDED = ("action", "reward", "propensity", "time", "unit")  # roles in which nothing may be missing
FIRST = 1000  # rows by which the decimal sign of a column is known
DECIMAL_COMMA = re.compile(r"\D*\d+(?:[.\s]\d{3})*,(?:\d{1,2}|\d{4,})\D*")
FORMATS = {"day first": "%d{0}%m{0}%Y", "month first": "%m{0}%d{0}%Y"}


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file, and the settings that would solve it."""

    error: PodiumError
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.error.message


@dataclass
class Conversion:
    """Columns that are being made ready; what was done and what is wrong collects here."""

    columns: dict[str, Column]
    roles: Roles
    text: Sequence[str]
    semicolons: bool
    line: Callable[[int], int]
    success: Any = None
    date_format: str | None = None
    decimal: str | None = None
    notes: list[Fact] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    written: dict[str, Column] = field(init=False)  # the columns as the file has them

    def __post_init__(self) -> None:
        self.written = dict(self.columns)

    def run(self) -> None:
        """Convert every column that is not read as it is."""
        names = self.roles.names
        as_names = {*self.text, names["action"], *self.roles.some("unit"), *self.roles.eligible}
        for header, column in self.columns.items():
            if column.dtype == object and header not in {*as_names, *self.roles.some("time")}:
                self.columns[header] = self.numbers(header, column)
        if names["action"] not in self.text:
            self.columns[names["action"]] = self.merged_labels(names["action"])
        for header in (names["reward"], *self.roles.also):
            self.columns[header] = self.outcome(header)
        if "time" in names and names["time"] not in self.text:
            self.columns[names["time"]] = self.moments(names["time"])
        self.notes += remarks(self.columns, self.columns if self.success is not None else self.written, self.roles)

    def numbers(self, header: str, column: Column) -> Column:
        """A column with its texts as the numbers they stand for; as it is where one of them is none."""
        values = distinct(column)
        if self.semicolons and may_be_thousands(values):
            return self.open_points(header, column)
        texts = [x for x in values if isinstance(x, str)]
        written = [text for text in texts if not is_gap(text)]
        others = [x for x in values if x is not None and not isinstance(x, str)]
        if not texts or (not written and not others):
            return column
        if any(isinstance(x, bool) or not isinstance(x, int | float | np.number) for x in others):
            return column
        if not written:
            return as_numbers(column, {})  # numbers and words for gaps
        points = any(math.isfinite(x) and x != int(x) for x in others if not isinstance(x, int))
        found = numbers_written(written, points, self.semicolons)
        alone = found is not None and found.words.startswith(("percent", "a unit", "hours"))
        if found is None or (alone and any(x != 0 for x in others)):
            return column
        example, number = found.example
        self.notes.append(
            Fact("numbers as written", column=header, words=found.words, example=repr(example), number=number)
        )
        return as_numbers(column, found.numbers)

    def merged_labels(self, header: str) -> Column:
        """The actions, of which those that look the same are one."""
        column = self.columns[header]
        if column.dtype != object:
            return column
        looks = same_to_see(text for text in distinct_texts(column) if not is_gap(text, NAME_GAPS))
        if not looks:
            return column
        cells = [looks.get(x, x) if isinstance(x, str) else x for x in column.tolist()]
        changed = sum(x is not y and x != y for x, y in zip(cells, column.tolist(), strict=True))
        labels = listed(dict.fromkeys(looks.values()))
        self.notes.append(Fact("labels merged", column=header, labels=labels, rows=count(changed, "row")))
        return boxed(cells)

    def open_points(self, header: str, column: Column) -> Column:
        """A column of numbers such as 1.234, which are 1234 where the comma is the decimal sign."""
        decimal = self.decimal or self.decimal_elsewhere(header)
        texts = [x for x in column.tolist() if isinstance(x, str) and not is_gap(x)]
        example = next(x for x in texts if "." in x)
        if decimal is None:
            thousands, plain = example.replace(".", ""), example
            error = PodiumError(
                f"column {header!r} holds numbers such as {example!r}, and the point may separate thousands or "
                "decimals",
                hint=f"write --decimal , if {example!r} is {thousands}, or --decimal . if it is {plain}.",
            )
            self.problems.append(Problem(error, {"decimal": ","}))
            return column
        numbers = {x: int(x.replace(".", "")) if decimal == "," else float(x) for x in texts}
        words = "points between thousands" if decimal == "," else "decimal points"
        self.notes.append(
            Fact("numbers as written", column=header, words=words, example=repr(example), number=numbers[example])
        )
        return as_numbers(column, numbers)

    def decimal_elsewhere(self, header: str) -> str | None:
        """The decimal sign of the other columns of the file; None where they have none, or both."""
        found = set()
        for other, column in self.written.items():
            if other == header:
                continue
            if column.dtype.kind == "f":
                found |= {"."} if (column[np.isfinite(column)] % 1 != 0).any() else set()
            elif column.dtype == object:
                some = [x for x in column[:FIRST].tolist() if isinstance(x, str | float)]
                found |= {"."} if any(isinstance(x, float) and x % 1 != 0 for x in some) else set()
                found |= {","} if any(isinstance(x, str) and DECIMAL_COMMA.fullmatch(x) for x in some) else set()
        return found.pop() if len(found) == 1 else None

    # --- rewards -----------------------------------------------------------------------------------------------------

    def outcome(self, header: str) -> Column:
        """Rewards or another outcome as numbers, where words tell a success from a failure."""
        column = self.columns[header]
        further = header in self.roles.also
        if self.success is not None and not further:
            return self.as_success(header, column, self.success, gaps_fail=True)
        asked = any(f"column {header!r}" in problem.text for problem in self.problems)
        if asked or column.dtype != object or not any(isinstance(x, str) for x in column):
            return column
        texts = {text: n for text, n in distinct_texts(column).items() if not is_gap(text, NAME_GAPS | {"na"})}
        numbers = [x for x in column if x is not None and not isinstance(x, str)]
        known = success_known([*texts, *(["no"] if numbers and set(numbers) <= {0, 1} else [])])
        if not texts or (numbers and not known):
            return column
        if known:
            return self.as_success(header, column, [*known, *(x for x in (1,) if x in numbers)])
        if all(map(is_plain_number, texts)):
            found = {text: float(text) if not text.strip().isdigit() else int(text) for text in texts}
            example = max(found)
            words = {"words": "texts as numbers", "example": repr(example), "number": found[example]}
            self.notes.append(Fact("numbers as written", column=header, **words))
            return as_numbers(column, found)
        gaps = int(self.gaps(header).sum())
        if len(texts) == 1 and gaps:
            text = next(iter(texts))
            hint = f"write --success {text} if nothing means a failure; otherwise fill the gaps."
            if further:
                hint = f"write 1 for {text!r}, and 0 where nothing means a failure."
            error = PodiumError(
                f"column {header!r} holds {text!r} ({count(texts[text], 'row')}) or nothing ({count(gaps, 'row')})",
                hint,
            )
            self.problems.append(Problem(error, {} if further else {"success": text}))
        elif len(texts) > 1 and len(texts) <= 20 and sum(texts.values()) > len(texts):
            shown = ", ".join(f"{text!r} ({count(n, 'row')})" for text, n in sorted(texts.items(), key=lambda x: -x[1]))
            value = likely_success(texts)
            hint = f"name the value that counts as 1: --success {value}; every other value counts as 0."
            error = PodiumError(
                f"column {header!r} holds words, and which of them is a success is not known: {shown}", hint
            )
            if further:
                hint = f"write the column as 1 and 0, such as 1 for {value!r} and 0 for every other value."
                error = PodiumError(error.message, hint)
            self.problems.append(Problem(error, {} if further else {"success": value}))
        return column

    def as_success(self, header: str, column: Column, success: Any, gaps_fail: bool = False) -> Column:
        """1 where a column has this value or one of these, 0 where it has another, and gaps as they are."""
        gaps = self.gaps(header)
        labels = list(dict.fromkeys(column[~gaps].tolist()))
        values = [
            match_label(x, labels) if isinstance(x, str) else x
            for x in (success if isinstance(success, list) else [success])
        ]
        folded = {plain_word(x) for x in values if isinstance(x, str)}
        good = [x for x in labels if x in values or (isinstance(x, str) and plain_word(x) in folded)]
        if not good:
            error = PodiumError(
                f"column {header!r} never holds the success {success!r}", hint=f"its values are {listed(labels)}."
            )
            self.problems.append(Problem(error))
            return column
        others = [x for x in labels if x not in good]
        if gaps_fail and not others and gaps.any():  # what has no mark has failed
            said = self.gap_words(header, gaps)
            self.notes.append(Fact("outcome in words", column=header, success=listed(good), others=said))
            return to_array([int(not gap) for gap in gaps.tolist()])
        self.notes.append(
            Fact("outcome in words", column=header, success=listed(good), others=listed(others) or "nothing")
        )
        cells = [None if gap else int(x in good) for x, gap in zip(column.tolist(), gaps.tolist(), strict=True)]
        return boxed(cells) if gaps.any() else to_array(cells)

    # --- times -------------------------------------------------------------------------------------------------------

    def moments(self, header: str) -> Column:
        """Times as moments where they are dates that are not written year first."""
        column = self.columns[header]
        if column.dtype != object:
            return column
        gaps = self.gaps(header)
        texts = [x for x in column[~gaps].tolist() if isinstance(x, str)]
        if not texts or len(texts) < int((~gaps).sum()):
            return column
        found: Mapping[str, datetime]
        if self.date_format is not None:
            found, wrong = dates_by_format(texts, self.date_format)
            if wrong is not None:
                row = column.tolist().index(wrong) + 1
                rule = f"must be a date of the format {self.date_format}"
                hint = "write %d for the day, %m for the month, %Y for the year, %H:%M:%S for the time."
                self.problems.append(Problem(self.bad_row(header, rule, row, 1, hint)))
                return column
            order = self.date_format
        else:
            if all(parse_time(text) is not None for text in texts[:50]) and all(map(parse_time, set(texts))):
                return column
            try:
                dates = dates_written(texts)
            except AmbiguousDates:
                self.ask_order(header, texts[0])
                return column
            if dates is None:
                return column
            found, order = dates.moments, dates.order
        example = texts[0]
        self.notes.append(
            Fact("dates as written", column=header, order=order, example=repr(example), date=date_text(found[example]))
        )
        if not gaps.any():
            return np.array([found[text] for text in texts], dtype="datetime64[us]")
        return boxed([None if gap else found[x] for x, gap in zip(column.tolist(), gaps.tolist(), strict=True)])

    def ask_order(self, header: str, example: str) -> None:
        sign = next(c for c in example if c in "/-.")
        day_first, month_first = (FORMATS[order].format(sign) for order in ("day first", "month first"))
        if len(example.split()[0].split(sign)[-1]) == 2:
            day_first, month_first = day_first.replace("%Y", "%y"), month_first.replace("%Y", "%y")
        rest = example.strip().partition(" ")[2]
        if rest:
            clock = "%I:%M %p" if rest[-1] in "mM" else "%H:%M:%S" if rest.count(":") == 2 else "%H:%M"
            day_first, month_first = f"{day_first} {clock}", f"{month_first} {clock}"
        error = PodiumError(
            f"column {header!r} holds dates such as {example!r}, and the day or the month may be first",
            hint=f"write --date-format '{day_first}' if the day is first, or '{month_first}'.",
        )
        self.problems.append(Problem(error, {"date_format": day_first}))

    # --- gaps --------------------------------------------------------------------------------------------------------

    def gaps(self, header: str) -> NDArray[np.bool_]:
        """Which cells of a column are taken for missing; among names, fewer words are."""
        column = self.columns[header]
        if column.dtype != object:
            return is_missing(column)
        values = distinct(column)
        if header in self.text or header in self.roles.some("unit"):
            words: frozenset[str] = frozenset([""])
        else:
            numeric = any(isinstance(x, int | float) and x == x for x in values)
            words = GAPS if numeric or header in self.roles.some("propensity", "time") else NAME_GAPS
            words = words | {"na"} if header in (*self.roles.some("reward"), *self.roles.also) else words
        if not any(is_gap(x, words) or is_unequal(x) for x in values):
            return np.zeros(len(column), dtype=bool)
        return np.fromiter((is_gap(x, words) or is_unequal(x) for x in column), bool, len(column))

    def bad_row(self, header: str, rule: str, row: int, rows: int, hint: str) -> BadRows:
        value = show_value(self.written[header][row - 1])
        return BadRows(f"column {header!r}", rule, row, value, rows, hint, self.line(row))

    def needed_gaps(self) -> dict[str, NDArray[np.bool_]]:
        """The gaps of the columns in which nothing may be missing."""
        found = {header: self.gaps(header) for header in dict.fromkeys((*self.roles.some(*NEEDED), *self.roles.also))}
        return {header: gaps for header, gaps in found.items() if gaps.any()}

    def blank_rows(self) -> NDArray[np.bool_]:
        """Rows in which every cell is empty."""
        return np.asarray(np.logical_and.reduce([is_missing(column) for column in self.columns.values()]))

    def refuse_gaps(self) -> None:
        """A problem for every column in which something is missing that may not be."""
        numbers, times = [*self.roles.some("reward", "propensity"), *self.roles.also], self.roles.some("time")
        blank = self.blank_rows()
        for header, found in self.needed_gaps().items():
            gaps = found & ~blank
            if not gaps.any() or any(f"column {header!r} holds" in problem.text for problem in self.problems):
                continue
            row = int(np.flatnonzero(gaps)[0]) + 1
            finite = "must be a finite number" if self.written[header].dtype.kind == "f" else "must be a number"
            rule = finite if header in numbers else "must not have gaps" if header in times else "must not be missing"
            hint = f"{FILL_HINT[:-1]}; --drop-missing leaves them out and counts them."
            error = self.bad_row(header, rule, row, int(gaps.sum()), hint)
            self.problems.append(Problem(error, {"drop_missing": True}))

    def keep(self, rows: Codes) -> None:
        """Leave out all other rows."""
        self.columns = {header: settled(column[rows]) for header, column in self.columns.items()}
        self.written = {header: column[rows] for header, column in self.written.items()}

    def gap_words(self, header: str, gaps: NDArray[np.bool_]) -> str:
        """What was taken for missing, and how often."""
        counts: dict[str, int] = {}
        for cell in self.written[header][gaps].tolist():
            word = repr(cell.strip()) if isinstance(cell, str) and cell.strip() else "empty"
            counts[word] = counts.get(word, 0) + 1
        return ", ".join(
            f"{word} ({count(n, 'row')})" for word, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))
        )


def settled(column: Column) -> Column:
    """A column whose gaps are gone as numbers or moments of one type."""
    if column.dtype != object or not len(column):
        return column
    kinds = {type(x) for x in column}
    if kinds <= {int} or kinds <= {int, float}:
        return labels_column(column, "")
    return column.astype("datetime64[us]") if kinds == {datetime} else column


def distinct(column: Column) -> Collection[Any]:
    """The values of a column, each once where they can be told apart."""
    values: list[Any] = column.tolist()
    try:
        return set(values)
    except TypeError:  # lists and the like
        return values


def likely_success(texts: Mapping[str, int]) -> str:
    """The value that is most likely the success: by its words, else the rarer one."""
    bad = ("not", "no", "un", "dis", "fail", "lost", "reject", "dead", "die", "churn", "bounce", "declin", "abandon")
    neutral = [x for x in texts if plain_word(x) not in FAILURES and not plain_word(x).startswith(bad)]
    good = [x for x in texts if plain_word(x) in SUCCESSES] or neutral
    return min(good or texts, key=lambda text: (texts[text], text))


def date_text(moment: datetime) -> str:
    midnight = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    return moment.date().isoformat() if midnight else moment.isoformat(sep=" ")
