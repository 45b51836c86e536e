"""Whether the decision trees of a model that came from a file point inside themselves.

scikit-learn follows the nodes of a tree without looking at their numbers, so that a file that was tampered with could
make it read, or write, memory that is not the model's. Every tree of a model is therefore checked before it is asked.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

LEAF = -1
BITS = 8  # words of 32 bits that hold the categories of a split


class Damaged(ValueError):
    """A model that could not have been fitted as it is."""


def check_trees(model: Any) -> None:
    """Raise `Damaged` where a tree, or what holds it, is not as scikit-learn would have fitted it."""
    from sklearn.ensemble import BaggingClassifier, BaggingRegressor
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.tree import BaseDecisionTree
    from sklearn.tree._tree import Tree

    own: set[int] = set()  # trees whose holder was checked with them
    found = list(reachable(model))
    for part in found:
        if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
            check(type(part.tree_) is Tree, "a tree is something else")
            check_nodes(part.tree_)
            check(columns_of(part) == part.tree_.n_features, "a tree has another number of columns than its model")
            own.add(id(part.tree_))
        members = getattr(part, "estimators_", None)
        if members is not None and not isinstance(part, BaggingClassifier | BaggingRegressor):
            for member in flat(members):  # they are asked without further checks
                same = not hasattr(member, "tree_") or columns_of(member) == columns_of(part)
                check(same, "a tree has another number of columns than its model")
        if isinstance(part, BaseGradientBoosting) and members is not None:
            check_stages(part)
        if isinstance(part, BaseHistGradientBoosting) and hasattr(part, "_predictors"):
            check_histograms(part)
    stray = [part for part in found if type(part) is Tree and id(part) not in own]
    check(not stray, "a tree belongs to no model")


def reachable(model: Any) -> Iterator[Any]:
    """A model and all that it holds, in whatever containers."""
    seen: set[int] = set()
    todo = [model]
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, type | ModuleType | FunctionType | str | int | float | None):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, np.ndarray):
            todo += part.ravel().tolist() if part.dtype == object else []
        else:
            todo += gc.get_referents(part)


def flat(members: Any) -> list[Any]:
    """The members of an ensemble, which keeps them in a list or a table; a member may itself look like a list."""
    return members.ravel().tolist() if isinstance(members, np.ndarray) else list(members)


def check(holds: bool, said: str) -> None:
    if not holds:
        raise Damaged(said)


def columns_of(model: Any) -> int:
    """The number of state columns that a model checks its input for."""
    number = getattr(model, "n_features_in_", None)
    check(isinstance(number, int | np.integer), "a model does not say how many columns it has")
    return int(number)  # type: ignore[arg-type]


def check_nodes(tree: Any) -> None:
    """Children come after their parents and inside the tree, and splits use columns that there are."""
    check(0 < tree.node_count <= tree.capacity and tree.n_outputs > 0 and tree.max_n_classes > 0, "a tree is empty")
    left, right, feature = (np.asarray(x) for x in (tree.children_left, tree.children_right, tree.feature))
    inner = left != LEAF
    check_children(left, right, inner)
    check(bool(((feature >= 0) & (feature < tree.n_features))[inner].all()), "a split uses a column that is not there")


def check_children(left: Any, right: Any, inner: Any) -> None:
    places = np.arange(len(left), dtype=np.int64)
    for child in (np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)):
        check(bool(((child > places) & (child < len(places)))[inner].all()), "a tree points outside itself")


def check_stages(model: Any) -> None:
    """Boosted trees are added up in columns that there are."""
    from sklearn.tree import DecisionTreeRegressor

    stages = model.estimators_
    check(isinstance(stages, np.ndarray) and stages.ndim == 2 and stages.dtype == object, "its trees are no table")
    check(all(type(tree) is DecisionTreeRegressor for tree in stages.ravel()), "a boosted tree is something else")
    first = model._raw_predict_init(np.zeros((1, columns_of(model)), dtype=np.float32))
    check(np.ndim(first) == 2 and first.shape[1] == stages.shape[1], "it has more trees in a round than outputs")


def check_histograms(model: Any) -> None:
    """The same for trees over binned columns, whose splits may also be sets of categories."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    bins: Any = getattr(model, "_bin_mapper", None)
    columns = columns_of(model)
    check(type(bins) is _BinMapper, "its bins are something else")
    categorical = np.asarray(bins.is_categorical_).astype(bool)
    check(categorical.shape == (columns,), "its bins are of other columns")
    for tree in (tree for stage in model._predictors for tree in stage):
        check(type(tree) is TreePredictor, "a boosted tree is something else")
        nodes, sets = tree.nodes, np.asarray(tree.raw_left_cat_bitsets)
        check(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes) > 0, "a tree is empty")
        inner, by_set = nodes["is_leaf"] == 0, (nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)
        check_children(nodes["left"], nodes["right"], inner)
        feature = nodes["feature_idx"].astype(np.int64)
        check(bool(((feature >= 0) & (feature < columns))[inner].all()), "a split uses a column that is not there")
        check(bool(categorical[feature[by_set]].all()), "a split uses categories of a column that has none")
        check(sets.ndim == 2 and sets.shape[1] == BITS, "a tree's categories are not whole")
        check(bool((nodes["bitset_idx"][by_set] < len(sets)).all()), "a split uses categories that are not there")
    if getattr(model, "_preprocessor", None) is not None:
        model._preprocessor = SameColumns(model._preprocessor, columns)


class SameColumns:
    """What prepares a model's columns, held to the number of them that its trees were checked for."""

    def __init__(self, steps: Any, columns: int) -> None:
        self.steps, self.columns = steps, columns

    def transform(self, states: Any) -> Any:
        prepared = self.steps.transform(states)
        check(np.shape(prepared)[1:] == (self.columns,), "its preparation changes the number of columns")
        return prepared
