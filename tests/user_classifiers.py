"""Classifiers of a user's own, for `podium reproduce classification --policies user_classifiers:pair`."""

from __future__ import annotations

from typing import Any

from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier


def pair(seed: int) -> dict[str, Any]:
    return {"tree": DecisionTreeClassifier(max_depth=2, random_state=seed), "most frequent": DummyClassifier()}


def nothing(seed: int) -> dict[str, Any]:
    return {}
