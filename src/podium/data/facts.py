"""What podium notices, as facts: each has a code and figures, and its sentence is made here and nowhere else.

A fact is its own sentence (it is a text), so that it can be shown, joined and written to JSON as it is.
"""

from __future__ import annotations

from typing import Any

SENTENCES: dict[str, str] = {
    # of policies
    "new actions": "policy {policy!r} can play actions that the log's action space lacks: {actions}.",
    "conflicting rows": "policy {policy!r} has different probabilities in rows of one (state, action) ({rows}): "
    "it depends on something that the state columns leave out.",
    # of estimated propensities
    "doubtful propensities": "estimated propensities: {doubt}. {advice}.",
    "one action": "only one action was logged, so nothing shows how others would have been chosen",
    "few rows": "{rows} rows are too few to learn how actions were chosen",
    "calibration": "the probabilities are not those with which actions occur ({misplaced:.0%} of rows misplaced)",
    "balance": "the estimate misses how {feature} goes with action {action} (z = {z:.1f})",
    "rare actions": "fewer than {rows} rows show each of the actions {actions}",
    "tiny": "{share:.0%} of the rows have a probability below {below:g}",
}


class Fact(str):
    """A warning, reason, note or alarm.

    >>> fact = Fact("few rows", rows=12)
    >>> fact.code, str(fact)
    ('few rows', '12 rows are too few to learn how actions were chosen')
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
