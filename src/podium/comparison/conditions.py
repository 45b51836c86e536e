"""A deployment gate: does "new > current" (or "new > current - 0.02") hold, fail, or stay open?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from podium.data.errors import PodiumError, close_to
from podium.data.facts import Fact
from podium.outputs.display import number, percent

HOLDS, OPEN, OPPOSITE = 0, 3, 4
NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
NEAR = 0.8  # how alike names must be: a margin that cannot be read is not part of a name
HINT = 'write --gate "new > current", or with a margin that does no harm: "new > current - 0.02".'


@dataclass(frozen=True)
class Condition:
    """`better` is better than `other` by more than `margin` (negative: it may be that much worse)."""

    better: str
    other: str
    margin: float

    def __str__(self) -> str:
        if not self.margin:
            return f"{self.better} > {self.other}"
        return f"{self.better} > {self.other} {'-' if self.margin < 0 else '+'} {abs(self.margin):g}"

    @property
    def subject(self) -> str:
        """The difference that it is about."""
        return f"{self.better} - {self.other}"

    @property
    def outcome(self) -> None:
        """It is about the reward that ranks."""
        return None


class Stated(Protocol):
    """A condition in either form: its text, the difference that it is about, and the outcome (None: what ranks)."""

    @property
    def subject(self) -> str: ...
    @property
    def outcome(self) -> str | None: ...


@dataclass(frozen=True)
class GateAnswer:
    """What the log says of a condition: `probability` that it holds, the verdict and its exit code.

    Of several parts, the probability is that of the least certain one, and differences stand with the parts.
    """

    condition: Stated
    probability: float
    verdict: str  # "holds", "cannot tell" or "the opposite holds"
    exit_code: int
    reasons: tuple[str, ...]
    difference: float = math.nan  # of the two policies; nan where nothing is known
    low: float = math.nan  # its interval at the level that the gate needs, not adjusted for other pairs
    high: float = math.nan
    parts: tuple[GateAnswer, ...] = ()  # where there are several

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON; a condition that stands alone is its own only part."""
        parts = [{"outcome": part.condition.outcome} | part.own_dict() for part in self.parts or (self,)]
        return self.own_dict() | {"parts": parts}

    def own_dict(self) -> dict[str, Any]:
        return {
            "condition": str(self.condition),
            "probability": self.probability,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "reasons": list(self.reasons),
            "difference": known(self.difference),
            "low": known(self.low),
            "high": known(self.high),
        }

    def sentence(self) -> str:
        """The answer in words; of several parts, each in a line of its own."""
        if self.parts:
            held = sum(part.exit_code == HOLDS for part in self.parts)
            whole = f"Gate {str(self.condition)!r}: {self.verdict}. {held} of {len(self.parts)} parts hold."
            return "\n".join([whole, *(part.sentence().replace("Gate ", "Part ", 1) for part in self.parts)])
        sure = f"{percent(1 - self.probability if self.exit_code == OPPOSITE else self.probability)} sure"
        sure += " that it holds" if self.exit_code == OPEN else ""
        numbers = ""
        if math.isfinite(self.low):
            numbers = f" {self.condition.subject} is {number(self.difference)}, interval "
            numbers += f"[{number(self.low, 3)}, {number(self.high, 3)}], judged from these two policies alone."
        return f"Gate {str(self.condition)!r}: {self.verdict} ({sure}).{numbers}" + "".join(
            f" {r}." for r in self.reasons
        )


def known(x: float) -> float | None:
    return x if math.isfinite(x) else None


def parse_gate(text: str, names: Sequence[str]) -> Condition:
    """The condition that a text states about policies of these names.

    >>> parse_gate("new > current - 0.02", ["new", "current"])
    Condition(better='new', other='current', margin=-0.02)
    """
    for found in re.finditer(">", text):
        left, right = text[: found.start()].removesuffix(" "), text[found.end() :].removeprefix(" ")
        better = named(left, names)
        if better is None:
            continue
        if (other := named(right, names)) is not None:
            return checked(Condition(better, other, 0.0))
        margin = re.fullmatch(rf"(.*?) ?([+-])\s*({NUMBER})\s*", right)
        if margin and (other := named(margin[1], names)) is not None:
            return checked(Condition(better, other, float(margin[2] + margin[3])))
    known = ", ".join(names)
    raise PodiumError(
        f"the gate {text!r} is not of the form A > B or A > B - margin; the policies are {known}",
        hint=corrected(text, names) + HINT,
    )


def corrected(text: str, names: Sequence[str]) -> str:
    """The beginning of a hint: the gate with the names that were probably meant; nothing where none is near."""
    parted = re.fullmatch(rf"\s*(.*?)\s*>\s*(.*?)\s*(?:([+-])\s*({NUMBER}))?\s*", text)
    if parted is None:
        return ""
    better, other = (side if side in names else close_to(side, names, NEAR) for side in (parted[1], parted[2]))
    if better is None or other is None or better == other:
        return ""
    margin = f" {parted[3]} {parted[4]}" if parted[3] else ""
    return f'did you mean "{better} > {other}{margin}"? '


def named(text: str, names: Sequence[str]) -> str | None:
    """The name that a text states; spaces around it matter only where they tell names apart."""
    alike = [name for name in names if name.strip() == text.strip()]
    return text if text in alike else alike[0] if len(alike) == 1 else None


def checked(condition: Condition) -> Condition:
    if condition.better == condition.other:
        raise PodiumError(f"the gate compares {condition.better!r} with itself", hint=HINT)
    if not math.isfinite(condition.margin):
        raise PodiumError("the margin of the gate must be finite", hint=HINT)
    return condition


def answer_gate(condition: Stated, probability: float, level: float, reason: str) -> GateAnswer:
    """The answer to a condition that holds with this probability; a reason means that no claim may be made."""
    surely = (1 + level) / 2
    if reason:
        return GateAnswer(condition, probability, "cannot tell", OPEN, (reason,))
    if probability >= surely:
        return GateAnswer(condition, probability, "holds", HOLDS, ())
    if probability <= 1 - surely:
        return GateAnswer(condition, probability, "the opposite holds", OPPOSITE, ())
    reason = Fact("gate open", low=1 - surely, high=surely, level=level)
    return GateAnswer(condition, probability, "cannot tell", OPEN, (reason,))
