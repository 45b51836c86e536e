"""The parts of a gate: "new > current and cost(new) < cost(current) + 5% and new > current - .05 in every device".

    gate   := part [and part]*
    part   := side (> | <) side [(+ | -) number [%]] [in every column]
    side   := policy | outcome(policy)

Policies and outcomes are known, so a name may hold anything; the longest one that fits is tried first. Quotes (' or ")
are needed only where a text could be read in two ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from podium.comparison.conditions import NUMBER
from podium.data.errors import PodiumError, meant

HINT = 'write --gate "new > current and cost(new) < cost(current) + 5%".'
PLAIN = re.compile(r"[\w.:/-]+")  # names that are shown without quotes
NEW = re.compile(r"<|[('\"%]|\band\b|\bin every\b")  # what a condition "A > B - margin" does not have


@dataclass(frozen=True)
class Part:
    """`one` > `other` + margin, or < where it is not `above`, of an outcome (None: the reward that ranks)."""

    one: str
    other: str
    outcome: str | None = None
    above: bool = True
    margin: float = 0.0
    relative: bool = False  # the margin is a share of the value of `other`
    every: str | None = None  # a column in each of whose groups it must hold

    def __str__(self) -> str:
        text = f"{self.side(self.one)} {'>' if self.above else '<'} {self.side(self.other)}"
        if self.margin:
            size = f"{100 * abs(self.margin):g}%" if self.relative else f"{abs(self.margin):g}"
            text += f" {'-' if self.margin < 0 else '+'} {size}"
        return text if self.every is None else f"{text} in every {quoted(self.every)}"

    def side(self, policy: str) -> str:
        return quoted(policy) if self.outcome is None else f"{quoted(self.outcome)}({quoted(policy)})"

    @property
    def subject(self) -> str:
        """The difference that it is about."""
        return f"{self.side(self.one)} - {self.side(self.other)}"


@dataclass(frozen=True)
class Parts:
    """Several parts, all of which are to hold."""

    parts: tuple[Part, ...]
    subject: str = ""
    outcome: None = None

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


def quoted(name: str) -> str:
    """A name as a gate holds it.

    >>> quoted("new"), quoted("new model"), quoted("a'b c")
    ('new', "'new model'", '"a\\'b c"')
    """
    if PLAIN.fullmatch(name) and name not in ("and", "in"):
        return name
    return f'"{name}"' if "'" in name else f"'{name}'"


@dataclass
class Reader:
    """A gate that is being read; `furthest` is where reading could not go on, and what was expected there."""

    text: str
    policies: Sequence[str]
    outcomes: Sequence[str]
    furthest: int = -1
    expected: list[str] = field(default_factory=list)

    def fails(self, at: int, what: str) -> None:
        at = self.skip(at)
        if at > self.furthest:
            self.furthest, self.expected = at, []
        if at == self.furthest and what not in self.expected:
            self.expected.append(what)

    def skip(self, at: int) -> int:
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        return at

    def word(self, at: int, word: str) -> int | None:
        """Where a text goes on after a word or sign; None where it does not stand there."""
        at = self.skip(at)
        return at + len(word) if self.text.startswith(word, at) else None

    def names(self, at: int, known: Sequence[str]) -> Iterator[tuple[str, int]]:
        """The names that may stand at a place, each with where the text goes on."""
        at = self.skip(at)
        quote = self.text[at : at + 1]
        if quote in ("'", '"') and (end := self.text.find(quote, at + 1)) > 0 and self.text[at + 1 : end] in known:
            yield self.text[at + 1 : end], end + 1
        for name in sorted(known, key=len, reverse=True):
            bare = name.strip()
            after = self.text[at + len(bare) : at + len(bare) + 1]
            if bare and self.text.startswith(bare, at) and (not after or after.isspace() or after in "<>()+-"):
                yield name, at + len(bare)

    def side(self, at: int) -> Iterator[tuple[str | None, str, int]]:
        """An outcome (None where none is named), a policy, and where the text goes on."""
        found = False
        for outcome, after in self.names(at, self.outcomes):
            inside = self.word(after, "(")
            if inside is None:
                continue
            found, named = True, False
            for policy, end in self.names(inside, self.policies):
                named = True
                if (closed := self.word(end, ")")) is not None:
                    yield outcome, policy, closed
                else:
                    self.fails(end, "')'")
            if not named:
                self.fails(inside, "a policy")
        for policy, after in self.names(at, self.policies):
            found = True
            yield None, policy, after
        if not found:
            self.fails(at, "a policy or outcome(policy)")

    def margin(self, at: int) -> Iterator[tuple[float, bool, int]]:
        """A margin, whether it is in percent, and where the text goes on; also none at all."""
        sign = re.compile(r"\s*([+-])\s*").match(self.text, at)
        if sign:
            number = re.compile(NUMBER).match(self.text, sign.end())
            if number:
                share = self.word(number.end(), "%")
                value = float(sign[1] + number[0])
                yield (value, False, number.end()) if share is None else (value / 100, True, share)
            else:
                self.fails(sign.end(), "a number")
        yield 0.0, False, at

    def every(self, at: int) -> Iterator[tuple[str | None, int]]:
        """The column of `in every COLUMN`, which ends at the next `and`; also none at all."""
        clause = re.compile(r"\s+in\s+every\s+").match(self.text, at)
        if clause:
            start = clause.end()
            quote = self.text[start : start + 1]
            if quote in ("'", '"') and (end := self.text.find(quote, start + 1)) > 0:
                yield self.text[start + 1 : end], end + 1
            column = re.compile(r"(\S.*?)(?=\s+and\s|\s*$)").match(self.text, start)
            if column:
                yield column[1], column.end()
            else:
                self.fails(start, "a column")
        yield None, at

    def part(self, at: int) -> Iterator[tuple[Part, int]]:
        for outcome, one, after in self.side(at):
            sign = next((s for s in "<>" if self.word(after, s) is not None), None)
            if sign is None:
                self.fails(after, "'>' or '<'")
                continue
            behind = self.word(after, sign)
            assert behind is not None
            for of, other, end in self.side(behind):
                if of != outcome:
                    self.fails(behind, f"{quoted(outcome)}(policy)" if outcome else "a policy without an outcome")
                    continue
                for margin, relative, then in self.margin(end):
                    for every, last in self.every(then):
                        yield Part(one, other, outcome, sign == ">", margin, relative, every), last

    def parts(self, at: int) -> Iterator[tuple[Part, ...]]:
        for part, after in self.part(at):
            if self.skip(after) == len(self.text):
                yield (part,)
                continue
            joined = re.compile(r"\s+and(?=\s|$)").match(self.text, after)
            if joined:
                for rest in self.parts(joined.end()):
                    yield (part, *rest)
            else:
                self.fails(after, "'and'" if part.margin else "a margin such as + 0.1, or 'and'")


def parse_parts(text: str, policies: Sequence[str], outcomes: Sequence[str]) -> tuple[Part, ...]:
    """The parts that a text states about these policies and outcomes.

    >>> [str(part) for part in parse_parts("new>old and cost(new) < cost(old)+5%", ["new", "old"], ["cost"])]
    ['new > old', 'cost(new) < cost(old) + 5%']
    """
    reader = Reader(text, policies, outcomes)
    parts = next(reader.parts(0), None)
    if parts is None:
        raise cannot_read(reader)
    for part in parts:
        if part.one == part.other:
            raise PodiumError(f"the gate compares {part.one!r} with itself: {part}", hint=HINT)
        if not math.isfinite(part.margin):
            raise PodiumError("the margin of the gate must be finite", hint=HINT)
    return parts


def columns_named(text: str, columns: Collection[str]) -> list[str]:
    """The columns of a log in whose groups parts of a gate are to hold.

    >>> columns_named("new > old in every device and new > old - 1 in every 'age group'", ["device", "age group"])
    ['device', 'age group']
    """
    reader = Reader(text, (), ())
    places = (clause.start() for clause in re.finditer(r"\s+in\s+every\s+", text))
    found = (column for at in places for column, _ in reader.every(at))
    return list(dict.fromkeys(column for column in found if column is not None and column in columns))


def cannot_read(reader: Reader) -> PodiumError:
    """Where a gate cannot be read, with a mark below it, and what was perhaps meant there."""
    at = min(reader.furthest, len(reader.text))
    wrong = re.match(r"[^<>()+\s]*", reader.text[at:])
    word = wrong[0].strip("'\"") if wrong else ""
    names = [*reader.policies, *(f"{outcome}(...)" for outcome in reader.outcomes)]
    near = meant(word, [*reader.policies, *reader.outcomes]) if word else ""
    lines = f"\n\n  {reader.text}\n  {' ' * at}^"
    return PodiumError(
        f"the gate cannot be read here; podium expects {' or '.join(reader.expected)}{lines}",
        hint=f"{near}{HINT} It can use {', '.join(names)}.",
    )
