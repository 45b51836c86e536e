"""What podium says when it cannot go on: the rule that was broken, where, how often, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


LONGEST = 4000  # characters of a message: names and lists of columns may have millions


class PodiumError(ValueError):
    """Bad input, with a hint that says how to go on.

    >>> print(PodiumError("level must lie between 0 and 1; it is 2", hint="use level=0.95"))
    level must lie between 0 and 1; it is 2
    <BLANKLINE>
    Hint: use level=0.95
    """

    def __init__(self, message: str, hint: str) -> None:
        message, hint = (x if len(x) <= LONGEST else x[:LONGEST] + "..." for x in (message, hint))
        super().__init__(f"{message}\n\nHint: {hint}")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:  # errors travel between processes
        return restored, (type(self), self.message, self.hint)


def restored(kind: type[PodiumError], message: str, hint: str) -> PodiumError:
    """An error as it was before it was sent."""
    error = kind.__new__(kind)
    PodiumError.__init__(error, message, hint)
    return error


class Unavailable(PodiumError):
    """A method cannot be used on this log, through no fault of the call."""


class BaselineRefused(PodiumError):
    """A baseline that a log or its policies do not allow, where others would do."""


class Unconverted(PodiumError):
    """Values that an engine reads as they are, and that would be converted in memory."""


class BadRows(PodiumError):
    """Rows that break a rule; of several parts of a log, what they hold in all can be told."""

    def __init__(self, what: str, rule: str, row: int, value: str, rows: int, hint: str, line: int = 0) -> None:
        place = f"row {row} (line {line})" if line else f"row {row}"
        super().__init__(f"{what} {rule}; {place} holds {value} ({count(rows, 'row')})", hint=hint)
        self.what, self.rule, self.row, self.value, self.rows, self.line = what, rule, row, value, rows, line

    def __reduce__(self) -> tuple[Any, ...]:
        return BadRows, (self.what, self.rule, self.row, self.value, self.rows, self.hint, self.line)

    def at_line(self, row: int, line: int, hint: str = "") -> BadRows:
        """The same, at the place that the row has in its file (line 0: the file has no lines)."""
        return BadRows(self.what, self.rule, row, self.value, self.rows, hint or self.hint, line)

    def moved(self, rows: int) -> BadRows:
        """The same, that many rows further down."""
        return BadRows(self.what, self.rule, self.row + rows, self.value, self.rows, self.hint)

    def merged(self, other: BadRows) -> BadRows:
        """The same rule broken in other rows."""
        first = min(self, other, key=lambda error: error.row)
        return BadRows(self.what, self.rule, first.row, first.value, self.rows + other.rows, self.hint)


class MissingExtra(PodiumError, ImportError):
    """An optional package is needed and absent."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{package} is not installed; {purpose} needs it",
            hint=f"run: pip install 'podium[{extra}]'" if extra else f"run: pip install {package}",
        )


@contextmanager
def needs(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Imports of an optional package: without it, an error that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(package, extra, purpose) from error


@contextmanager
def told_as(what: str, hint: str | Callable[[], str]) -> Iterator[None]:
    """Whatever a user's code raises, as an error that says what failed; podium's own errors pass."""
    try:
        yield
    except PodiumError:
        raise
    except (Exception, SystemExit) as error:
        raise PodiumError(
            f"{what}: {type(error).__name__}: {error}", hint=hint if isinstance(hint, str) else hint()
        ) from error


def refuse_rows(what: str, rule: str, bad: ArrayLike, values: Any, hint: str) -> None:
    """Raise if any row is bad, naming the rule, the first bad row (from 1), its value, and the count.

    >>> refuse_rows("column 'propensity'", "must be > 0", [True, False], [0, 1], "LDE needs none.")
    Traceback (most recent call last):
    podium.data.errors.BadRows: column 'propensity' must be > 0; row 1 holds 0 (1 row)
    <BLANKLINE>
    Hint: LDE needs none.
    """
    rows = np.flatnonzero(bad)
    if rows.size == 0:
        return
    raise BadRows(what, rule, int(rows[0]) + 1, show_value(values[rows[0]]), int(rows.size), hint)


def show_value(value: Any) -> str:
    """One cell as a person would write it, cut where it is long."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or (isinstance(value, str) and not value):
        return "nothing"
    try:
        text = f"{value:.10g}" if isinstance(value, float) else repr(value)
    except Exception:  # whole numbers of thousands of digits, and objects that cannot show themselves
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def shown(value: Any) -> str:
    """An argument as it was written; unlike a cell of a table, None and an empty text are values here.

    >>> shown(None), shown(""), shown(2.5)
    ('None', "''", '2.5')
    """
    value = value.item() if isinstance(value, np.floating) else value
    plain = value is None or isinstance(value, float) or (isinstance(value, str) and not value)
    return repr(value) if plain else show_value(value)


def listed(labels: Iterable[Any], most: int = 20) -> str:
    """Labels as a person would write them in code, so that 1 and '1' differ; cut where there are many.

    >>> listed(["a", "b"]), listed([1, 2, 3], most=2)
    ("'a', 'b'", '1, 2, ...')
    """
    shown = [show_value(x) for x in islice(labels, most + 1)]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def close_to(word: Any, known: Iterable[Any], cutoff: float = 0.7) -> str | None:
    """The one of some names that a misspelled one was probably meant to be; None where none is near.

    >>> close_to("unifrom", ["uniform", "logged"]), close_to("Email ", ["email"]), close_to("x", ["email"])
    ('uniform', 'email', None)
    """
    if not isinstance(word, str):
        return None
    names = {" ".join(name.split()).casefold(): name for name in known if isinstance(name, str)}
    asked = " ".join(word.split()).casefold()
    near = get_close_matches(asked, names, 1, cutoff) or [name for name in names if swapped(asked, name)]
    return names[near[0]] if near else None


def swapped(word: str, name: str) -> bool:
    """Whether two neighboring letters of a name changed places.

    >>> swapped("nwe", "new"), swapped("enw", "wen")
    (True, False)
    """
    wrong = [i for i, (x, y) in enumerate(zip(word, name, strict=False)) if x != y]
    pair = len(word) == len(name) and len(wrong) == 2 and wrong[1] == wrong[0] + 1
    return pair and word[wrong[0]] == name[wrong[1]] and word[wrong[1]] == name[wrong[0]]


def meant(word: Any, known: Iterable[Any]) -> str:
    """The beginning of a hint: the name that was probably meant, as a question; nothing where none is near.

    >>> meant("unifrom", ["uniform", "logged"]), meant("x", ["uniform"])
    ("did you mean 'uniform'? ", '')
    """
    near = close_to(word, known)
    return "" if near is None else f"did you mean {near!r}? "


def percent_hint(values: Any, what: str) -> str:
    """What to do about probabilities that were given in percent; nothing where they do not look like that.

    >>> percent_hint(np.array([40.0, 60.0]), "column 'p'")
    "these look like percents: divide them by 100, in pandas frame['p'] /= 100."
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    positive = numbers[numbers > 0]
    if not len(positive) or numbers.min() < 0 or numbers.max() > 100 + 1e-6 or np.mean(positive > 1) < 0.5:
        return ""
    if numbers.max() < 5:  # ratios and scores, rather
        return ""
    column = what.rpartition("column ")[2]
    way = f", in pandas frame[{column}] /= 100" if "column " in what and column.startswith("'") else ""
    return f"these look like percents: divide them by 100{way}."


def count(number: int, noun: str) -> str:
    """'1 row', '2,000 rows'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
