"""A rule: a shallow tree of questions, as a sentence, as SQL, and as the actions that it chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.columns import Codes, Column
from podium.data.errors import show_value
from podium.outputs.display import label_json
from podium.suggestions.questions import Question, sql_value, without_looser


@dataclass(frozen=True)
class Leaf:
    """Where a rule chooses an action: its place in the action space, its label, and how many rows taught that."""

    action: int
    label: Any
    rows: int


@dataclass(frozen=True)
class Split:
    """A question, and what follows yes and no."""

    question: Question
    yes: Node
    no: Node


Node = Leaf | Split


@dataclass(frozen=True)
class Rule:
    """A tree with at least one question, whose leaves choose at least two actions."""

    root: Split

    @property
    def default(self) -> Leaf:
        """The leaf whose action is chosen unless a condition says otherwise: that of most rows."""
        rows: dict[int, int] = {}
        for _, leaf in paths(self.root):
            rows[leaf.action] = rows.get(leaf.action, 0) + leaf.rows
        usual = max(rows, key=lambda action: (rows[action], -action))
        return next(leaf for _, leaf in paths(self.root) if leaf.action == usual)

    @property
    def cases(self) -> list[tuple[tuple[Question, ...], Leaf]]:
        """The chains of questions that lead to another action than the usual one."""
        usual = self.default.action
        return [(without_looser(path), leaf) for path, leaf in paths(self.root) if leaf.action != usual]

    @property
    def sentence(self) -> str:
        """The rule as a person would say it."""
        said = [f"if {' and '.join(q.words for q in path)} then {spoken(leaf.label)}" for path, leaf in self.cases]
        return f"{'; '.join(said)}, otherwise {spoken(self.default.label)}"

    @property
    def sql(self) -> str:
        """The rule as an expression that `--policy name=sql:...` accepts."""
        cases = [f"WHEN {' AND '.join(q.sql for q in path)} THEN {sql_value(leaf.label)}" for path, leaf in self.cases]
        return f"CASE {' '.join(cases)} ELSE {sql_value(self.default.label)} END"

    @property
    def depth(self) -> int:
        return max(len(path) for path, _ in paths(self.root))

    def actions(self, columns: Mapping[str, Column], rows: int) -> Codes:
        """(N,) the place of the action that is chosen in each row."""
        chosen = np.full(rows, self.default.action, dtype=np.int64)
        for path, leaf in self.cases:
            chosen[np.logical_and.reduce([q.holds(columns) for q in path])] = leaf.action
        return chosen

    def to_dict(self) -> dict[str, Any]:
        return {"sentence": self.sentence, "sql": self.sql, "tree": node_dict(self.root)}


def paths(node: Node, before: tuple[Question, ...] = ()) -> Iterator[tuple[tuple[Question, ...], Leaf]]:
    """Every leaf with the questions whose answer is yes on the way to it."""
    if isinstance(node, Leaf):
        yield before, node
        return
    yield from paths(node.yes, (*before, node.question))
    yield from paths(node.no, (*before, node.question.negated))


def node_dict(node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"action": label_json(node.label), "rows": node.rows}
    return {"if": node.question.to_dict(), "then": node_dict(node.yes), "else": node_dict(node.no)}


def spoken(label: Any) -> str:
    """An action as a sentence names it: a single word as it is, anything else as in code.

    >>> spoken("call"), spoken("call later"), spoken(2)
    ('call', "'call later'", '2')
    """
    return label if isinstance(label, str) and label.isidentifier() else show_value(label)
