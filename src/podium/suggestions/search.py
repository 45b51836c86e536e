"""A rule found on some rows: doubly robust scores of every action, and a shallow decision tree that splits by them.

With r-hat a cross-fitted model of the reward and w = 1/p at most 20, the score of action a in row n is

    G(n, a) = r-hat(s_n, a) + 1[a = a_n] w_n (r_n - r-hat(s_n, a_n)) - c(s_n, a)

whose mean over rows is the value of always taking a (Athey and Wager, 2021, "Policy learning with observational data").
A tree that maximizes the sum of G over its rows is a cost-sensitive classifier: row n votes for action a with weight
G(n, a) - min_b G(n, b). scikit-learn grows it, by the Gini impurity of these weights.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Floats
from podium.data.errors import PodiumError, needs
from podium.data.frames import ColumnTable
from podium.data.log import Log
from podium.estimates.learned import CrossFitted, assign_folds
from podium.suggestions.questions import Feature, features_of, matrix_of
from podium.suggestions.rule import Leaf, Node, Rule, Split

MOST_WEIGHT = 20.0  # of a row in the search; the verdict knows no such bound
LEAST_LEAF = 0.05  # share of the rows that a leaf must hold
LEAST_LEAF_ROWS = 15
LEAST_LOGGED = 10  # rows of an action before a rule may choose it
MOST_ACTIONS = 20  # that a rule chooses among
TREES = 60  # of the model of the reward


@dataclass(frozen=True, eq=False)
class Search:
    """Scores of the actions in the rows that are searched.

    Parameters
    ----------
    log : those rows
    scores : (n, A) in rewards less cost, higher is better; -inf for actions that a rule may not choose anywhere
    possible : (n, A) which actions were possible in each row
    """

    log: Log
    scores: Floats
    possible: NDArray[np.bool_]

    @property
    def allowed(self) -> Codes:
        """The actions that a rule may choose."""
        return np.flatnonzero(np.isfinite(self.scores).all(axis=0))

    def totals(self, rows: Any) -> Floats:
        """(A,) what each action scores in some rows together; -inf where it was not always possible."""
        every = self.scores[rows].sum(axis=0)
        return np.where(self.possible[rows].all(axis=0), every, -np.inf)


def scores_of(log: Log, costs: Floats, lower_is_better: bool, seed: int) -> Search:
    """The doubly robust scores of a log with propensities."""
    with needs("scikit-learn", "sklearn", "podium suggest"):
        from sklearn.ensemble import ExtraTreesRegressor
    assert log.propensities is not None  # estimated before, where they were not logged
    leaf = max(5, len(log) // 100)
    model = ExtraTreesRegressor(TREES, min_samples_leaf=leaf, random_state=seed % 2**32)
    fitted = CrossFitted.fit(model, log, np.arange(len(log)), seed)
    expected = np.asarray(fitted.predict(log, fitted.fold).matrix)
    rows = np.arange(len(log))
    weight = np.minimum(1 / log.propensities, MOST_WEIGHT)
    scores = expected.copy()
    scores[rows, log.action_codes] += weight * (log.rewards - expected[rows, log.action_codes])
    scores = (-scores if lower_is_better else scores) - costs
    scores[:, left_out(log)] = -np.inf
    possible = np.ones(scores.shape, dtype=bool) if log.eligible is None else np.asarray(log.eligible, dtype=bool)
    return Search(log, scores, possible)


def left_out(log: Log) -> Codes:
    """The actions that a rule may not choose: those with few rows, and all but the 20 most common."""
    rows = np.bincount(log.action_codes, minlength=log.n_actions)
    common = np.argsort(-rows, kind="stable")[:MOST_ACTIONS]
    return np.setdiff1d(np.arange(log.n_actions), common[rows[common] >= LEAST_LOGGED])


def best_constant(search: Search, rows: Any = slice(None)) -> int | None:
    """The action that scores best when it is always taken; None where none is always possible."""
    totals = search.totals(rows)
    return int(totals.argmax()) if np.isfinite(totals.max()) else None


def find_rule(search: Search, depth: int, seed: int) -> Rule | None:
    """The rule of the depth that does best on folds that it was not grown on; None where a single action does."""
    features, _ = features_of(search.log)
    if not features or len(search.allowed) < 2:
        return None
    fold, folds = assign_folds(search.log, np.arange(len(search.log)), [seed, 8])
    worth = [0.0] * (depth + 1)
    constant = best_constant(search)
    for k in range(folds):
        others, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        usual = best_constant(search, others) if constant is not None else None
        for d in range(depth + 1):
            node: Node | None = grow(search, features, others, d)
            if node is None:
                worth[d] = -np.inf
                continue
            chosen = chosen_by(node, search.log, held)
            worth[d] += float(usable(search.scores[held, chosen], search.possible[held, chosen]).sum())
        if usual is None:
            worth[0] = -np.inf
    best = max(range(1, depth + 1), key=lambda d: (worth[d], -d))
    if worth[best] <= worth[0]:
        return None
    root = grow(search, features, np.arange(len(search.log)), best)
    return Rule(root) if isinstance(root, Split) else None


def usable(scores: Floats, possible: NDArray[np.bool_]) -> Floats:
    """Scores, with the worst of them where an action was not possible."""
    return np.where(possible, scores, scores.min(initial=0.0))


def grow(search: Search, features: list[Feature], rows: Codes, depth: int) -> Node | None:
    """A tree grown on some rows; None where a leaf would have no possible action."""
    if depth == 0:
        return leaf_of(search, rows)
    allowed = search.allowed
    inputs = matrix_of(features, len(search.log))[rows]
    scores, possible = search.scores[np.ix_(rows, allowed)], search.possible[np.ix_(rows, allowed)]
    spread = float(np.ptp(scores)) or 1.0
    scores = np.where(possible, scores, scores.min() - spread)
    votes = scores - scores.min(axis=1, keepdims=True)
    n, labels = len(rows), np.tile(np.arange(len(allowed)), len(rows))
    weights = votes.ravel() / votes.max()
    kept = np.flatnonzero(weights > 0)
    if not kept.size:
        return leaf_of(search, rows)
    from sklearn.tree import DecisionTreeClassifier

    # Every row has as many copies as it has votes, so leaves are bounded by their rows after the tree is grown too.
    least = max(LEAST_LEAF_ROWS, int(np.ceil(LEAST_LEAF * n)))
    tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=least * max(1, len(allowed) - 1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree.fit(np.repeat(inputs, len(allowed), axis=0)[kept], labels[kept], sample_weight=weights[kept])
    return node_of(search, features, tree.tree_, 0, rows)


def node_of(search: Search, features: list[Feature], tree: Any, place: int, rows: Codes) -> Node | None:
    """A node of scikit-learn's tree in podium's words; questions that change nothing are left out."""
    if tree.children_left[place] < 0:
        return leaf_of(search, rows)
    feature = features[int(tree.feature[place])]
    question = feature.question(int(np.floor(tree.threshold[place])))
    yes = question.holds(search.log.state_columns)[rows]
    if yes.all() or not yes.any():
        return leaf_of(search, rows)
    then = node_of(search, features, tree, int(tree.children_right[place]), rows[yes])
    other = node_of(search, features, tree, int(tree.children_left[place]), rows[~yes])
    if then is None or other is None:
        return leaf_of(search, rows)
    if isinstance(then, Leaf) and isinstance(other, Leaf) and then.action == other.action:
        return leaf_of(search, rows)
    return Split(question, then, other)


def leaf_of(search: Search, rows: Codes) -> Leaf | None:
    """The best action of some rows; None where no action was possible in all of them."""
    totals = search.totals(rows)
    action = int(totals.argmax())
    if not np.isfinite(totals[action]):
        return None
    return Leaf(action, search.log.action_space[action], len(rows))


def chosen_by(node: Node, log: Log, rows: Codes) -> Codes:
    """(n,) what a tree chooses in some rows."""
    if isinstance(node, Leaf):
        return np.full(len(rows), node.action)
    yes = node.question.holds(log.state_columns)[rows]
    chosen = np.empty(len(rows), dtype=np.int64)
    chosen[yes], chosen[~yes] = chosen_by(node.yes, log, rows[yes]), chosen_by(node.no, log, rows[~yes])
    return chosen


def searchable(log: Log) -> tuple[Log, list[str]]:
    """The log with only the state columns that a rule can ask for, and the others."""
    features, skipped = features_of(log)
    if not features:
        raise PodiumError(
            "no state column can be asked for in a rule: each is constant, or holds neither numbers nor texts that "
            "come back",
            hint="name a column of numbers or of a few texts with --state.",
        )
    kept = {h: c for h, c in log.state_columns.items() if h not in skipped}
    return log._copy(state_columns=kept, states=ColumnTable(kept)), skipped
