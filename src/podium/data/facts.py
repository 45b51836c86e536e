"""What podium notices, as facts: each has a code and figures, and its sentence is made here and nowhere else.

A fact is its own sentence (it is a text), so that it can be shown, joined and written to JSON as it is.
"""

from __future__ import annotations

from typing import Any

SENTENCES: dict[str, str] = {}


class Fact(str):
    """A warning, reason, note or alarm.

    >>> Fact("one state each", columns="age, id").code
    'one state each'
    """

    code: str
    fields: dict[str, Any]

    def __new__(cls, code: str, **fields: Any) -> Fact:
        fact = super().__new__(cls, SENTENCES[code].format(**fields))
        fact.code, fact.fields = code, fields
        return fact

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON: {"code", "text"} and the figures."""
        return {"code": self.code, "text": str(self), **self.fields}

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.code, self.fields)


def restored(code: str, fields: dict[str, Any]) -> Fact:
    """A fact as it was before it was sent to another process."""
    return Fact(code, **fields)
