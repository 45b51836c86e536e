"""Propensities for a log that has none: the behaviour policy learned from the log, cross-fitted and calibrated.

With q the out-of-fold prediction of a classifier and m each action's share of the training rows,

    p(a|s) = (1 - e) q(a|s)^c / sum_b q(b|s)^c + e m(a),      e >= .01,

where the power c and the share e are fitted to the out-of-fold log loss of the other folds: a classifier that is too
sure of itself is damped, one that knows nothing is replaced by the shares, and no logged action gets probability 0.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.arguments import SEED, attribute, checked, numbers, one_of, optional, refuse_class, text, whole
from podium.data.columns import Codes, Floats, factorize, first_rows, to_array
from podium.data.errors import PodiumError, count, needs
from podium.data.facts import Fact
from podium.data.frames import columns_to_frame
from podium.data.log import Log
from podium.estimates.learned import clone
from podium.outputs.display import Shown, Table, number, share
from podium.policies.drafts import call
from podium.propensities.belief import HIDDEN, Belief, assess
from podium.propensities.logistic import among_eligible
from podium.propensities.preferences import fitted_weights, shares_over

FOLDS = 5
POWERS = (0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
PRIOR_ROWS = 5.0  # how many rows the shares count for in a state of their own
MOST_TEXTS = 100  # texts of one column that become features; rarer ones are left out
MANY_ACTIONS, MOST_CELLS = 1_000, 20_000_000  # with more actions than that, probabilities that are estimated at most
LOG_HINT = "make one with podium.read_log, podium.Log.from_frame or podium.Log."
MODELS = ("logistic", "boosting", "frequencies")


@dataclass(frozen=True, eq=False, repr=False)
class PropensityEstimate(Shown):
    """An estimated behaviour policy, and whether to believe it.

    Attributes
    ----------
    behavior : (N, A) p(a|s_n) out of fold, columns as in the log's action space
    propensities : (N,) p of the logged actions
    model : the classifier's name
    belief : the figures that speak for and against it (see `podium.propensities.belief`)
    log : the log with this behaviour policy, labelled as estimated
    """

    behavior: Floats
    propensities: Floats
    model: str
    folds: int
    seed: int
    belief: Belief
    source: Log

    @property
    def log(self) -> Log:
        return self.source.with_behavior(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a result that uses the estimate must say."""
        return tuple(Fact("doubtful propensities", doubt=d.meaning, advice=d.advice) for d in self.belief.doubts)

    def to_dict(self) -> dict[str, Any]:
        return {"model": self.model, "folds": self.folds, "seed": self.seed, **self.belief.to_dict()}

    def tables(self) -> list[Table]:
        """What there is to show, as tables."""
        b = self.belief
        rows = [
            ["verdict", b.verdict, f"by {self.model}, {self.folds} folds"],
            ["log loss", number(b.log_loss), f"each action's share alone: {number(b.share_log_loss)}"],
            ["gain", number(b.gain_z, 1), "z; beyond 2 the states help to predict the action"],
            [
                "misplaced",
                share(b.calibration_error),
                f"of rows by the calibration curve (by chance: {b.calibration_p:.2g})",
            ],
            ["imbalance", number(b.balance_z, 1), f"z; chance stays below {number(b.balance_limit, 1)}"],
            ["tiny", share(b.tiny_share), f"of rows have p below .01; the least is {b.least:.2g}"],
            ["effective rows", share(b.ess_share), "of the rows count under the weights 1/p"],
            ["uncovered", share(b.uncovered), "of (row, action) are hardly ever logged"],
        ]
        notes = [f"{d.meaning[0].upper()}{d.meaning[1:]}. {d.advice}." for d in b.doubts]
        if not b.structured:
            notes.append("The states do not help to predict the action; the estimate is close to each action's share.")
        notes.append(f"Assumes, and no check can show, that {HIDDEN}.")
        curve = [[number(x.predicted), number(x.observed), f"{x.cells:,}"] for x in b.curve]
        return [
            Table("Estimated propensities", ["figure", "value", "meaning"], rows, "lrl", notes),
            Table("Calibration", ["predicted", "observed", "cells"], curve, "rrr"),
        ]

    def blocks(self, width: int) -> list[Table]:
        return self.tables()


@checked(log=one_of(Log, hint=LOG_HINT), folds=whole(2, FOLDS), unit=optional(text), seed=SEED)
def estimate_propensities(
    log: Log, model: Any = None, *, folds: int = FOLDS, unit: str | None = None, seed: int = 0
) -> PropensityEstimate:
    """Estimate how the logged actions were chosen.

    Parameters
    ----------
    log : a log; propensities that it may hold are not looked at
    model : "logistic" (default), "boosting", "frequencies" (of each state; needs no scikit-learn), or any
        scikit-learn classifier or pipeline with predict_proba
    folds : no row is predicted by a model that saw it, nor by one that saw another row of its unit
    unit : the column of units, if the log has not named it yet
    seed : of the folds and of the models named by a text

    Examples
    --------
    >>> import numpy as np, podium
    >>> rng = np.random.default_rng(0)
    >>> states = rng.integers(2, size=400)
    >>> actions = (rng.random(400) < 0.2 + 0.6 * states).astype(int)
    >>> found = podium.estimate_propensities(podium.Log(states, actions, rng.random(400)), "frequencies")
    >>> found.belief.verdict, found.log.knows, found.behavior[states == 1].mean(axis=0).round(1).tolist()
    ('believable', 'estimated', [0.2, 0.8])
    """
    if unit is not None:
        log = log.with_units(unit)
    if log.n_actions > MANY_ACTIONS and len(log) * log.n_actions > MOST_CELLS:
        raise PodiumError(
            f"propensities cannot be estimated for {log.n_actions:,} actions on {count(len(log), 'row')}",
            hint="merge rare actions, or log the propensities; LDE and DiM need none.",
        )
    fold = assign_folds(log, folds, seed)
    folds = int(fold.max()) + 1
    learner, name = find_model(model, seed)
    shares = held_out_shares(log, fold, folds)
    features, names = design(log)
    if log.eligible is not None and name == "logistic":  # a choice among the eligible actions of each row
        raw = among_eligible(log, features, fold, np.arange(len(log)))
    else:
        raw = on_eligible(learner(log, fold, folds, shares), shares, log)
    behavior = calibrate(raw, shares, log.action_codes, fold, folds)
    return PropensityEstimate(
        behavior=behavior,
        propensities=behavior[np.arange(len(log)), log.action_codes],
        model=name,
        folds=folds,
        seed=seed,
        belief=assess(log, behavior, shares, np.column_stack([np.ones(len(log)), features]), ["its share", *names]),
        source=log,
    )


def assign_folds(log: Log, folds: int, seed: int) -> Codes:
    """(N,) the fold of each row: units stay whole, and every fold has its share of each action and frequent state.

    Without the latter a fold rich in an action would be predicted by rows poor in it, which looks like miscalibration.
    """
    groups = np.arange(len(log)) if log.units is None else factorize(log.units)[0]
    many = int(groups.max()) + 1
    if many < 2:
        raise PodiumError(
            f"propensities cannot be estimated from one {'row' if log.units is None else 'unit'}",
            hint="LDE and DiM need no propensities.",
        )
    first = first_rows(groups, many)
    shuffled = np.random.default_rng(seed).permutation(many)
    frequent = np.bincount(log.state_codes)[log.state_codes] >= 2 * folds
    states = np.where(frequent, log.state_codes, -1)  # dealing out rare ones would tell a flexible model the answer
    order = np.lexsort((shuffled, states[first], log.action_codes[first]))
    fold = np.empty(many, dtype=np.int64)
    fold[order] = np.arange(many) % min(folds, many)
    return fold[groups]


def held_out_shares(log: Log, fold: Codes, folds: int) -> Floats:
    """(N, A) each action's share of the rows of the other folds; half a row is added to every logged action.

    Where only some actions are eligible in a row, these are in proportion to weights that all rows share.
    """
    logged = np.bincount(log.action_codes, minlength=log.n_actions) > 0
    shares = np.empty((len(log), log.n_actions))
    for k in range(folds):
        counts = np.bincount(log.action_codes[fold != k], minlength=log.n_actions) + 0.5 * logged
        if log.eligible is None:
            shares[fold == k] = counts / counts.sum()
            continue
        shares[fold == k] = shares_over(fitted_weights(counts, log.eligible[fold != k]), log.eligible[fold == k])
    return shares


def on_eligible(raw: Floats, shares: Floats, log: Log) -> Floats:
    """(N, A) predictions on the eligible actions alone; the shares where nothing is left."""
    if log.eligible is None:
        return raw
    inside = np.where(log.eligible, raw, 0.0)
    total = inside.sum(axis=1, keepdims=True)
    found: Floats = np.divide(inside, total, out=shares.copy(), where=total > 0)
    return found


def calibrate(raw: Floats, shares: Floats, actions: Codes, fold: Codes, folds: int) -> Floats:
    """(N, A) probabilities; power and share of each fold are those that suit the rows of the other folds best."""
    rows = np.arange(len(raw))
    own = shares[rows, actions]
    losses = np.empty((len(POWERS), len(SHARES), folds))  # summed over the rows of each fold
    for c, power in enumerate(POWERS):
        q = temper(raw, power)[rows, actions]
        for e, mixed in enumerate(SHARES):
            losses[c, e] = np.bincount(fold, -np.log((1 - mixed) * q + mixed * own), minlength=folds)
    result = np.empty_like(raw)
    for k in range(folds):
        others = losses.sum(axis=2) - losses[:, :, k]
        c, e = np.unravel_index(others.argmin(), others.shape)
        here = fold == k
        result[here] = (1 - SHARES[e]) * temper(raw[here], POWERS[c]) + SHARES[e] * shares[here]
    return result


def temper(q: Floats, power: float) -> Floats:
    """Each row of probabilities raised to a power, with sum 1 again."""
    raised: Floats = np.maximum(q, 0.0) ** power
    total = raised.sum(axis=1, keepdims=True)
    result: Floats = np.divide(raised, total, out=np.full_like(raised, 1 / q.shape[1]), where=total > 0)
    return result


# --- models ------------------------------------------------------------------------------------------------------


def find_model(model: Any, seed: int) -> tuple[Any, str]:
    """What predicts out of fold, (log, fold, folds, shares) -> (N, A), and its name."""
    if model is None or isinstance(model, str):
        name = model or "logistic"
        if name == "frequencies":
            return frequencies, name
        if name not in MODELS:
            raise PodiumError(
                f"unknown model of the propensities {name!r}",
                hint="use one of " + ", ".join(MODELS) + ", package.module:object, or a scikit-learn classifier.",
            )
        return Classifier(named_classifier(name, seed), own_features=True, seed=seed), name
    refuse_class("the model of the propensities", model)
    fit, chances = (attribute("the model of the propensities", model, verb) for verb in ("fit", "predict_proba"))
    if fit is None:
        raise PodiumError(
            f"{type(model).__name__} is no model that can be fitted", hint="give a scikit-learn classifier."
        )
    if chances is None:
        raise PodiumError(
            f"{type(model).__name__} gives no probabilities",
            hint="wrap it: sklearn.calibration.CalibratedClassifierCV(model).",
        )
    return Classifier(model, own_features=False, seed=seed), type(model).__name__


def named_classifier(name: str, seed: int) -> Any:
    with needs("scikit-learn", "sklearn", f"estimating propensities by {name} (estimate:frequencies does without)"):
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
    if name == "logistic":
        # The default solver stops a hundredth away from the optimum, at a place that depends on the processor.
        return LogisticRegression(solver="newton-cg", tol=1e-12, max_iter=500)
    return HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, max_leaf_nodes=15, random_state=seed % 2**32)


@dataclass(frozen=True)
class Classifier:
    """A scikit-learn classifier fitted fold by fold; its own features are the standardised state columns."""

    model: Any
    own_features: bool
    seed: int

    def __call__(self, log: Log, fold: Codes, folds: int, shares: Floats) -> Floats:
        states = design(log)[0] if self.own_features else states_table(log)
        if self.own_features and log.eligible is not None:
            states = np.hstack([states, log.eligible])
        result = np.zeros((len(log), log.n_actions))
        for k in range(folds):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            actions = log.action_codes[train]
            if len(np.unique(actions)) == 1 or take(states, train).shape[1] == 0:
                result[test] = shares[test]  # there is nothing to tell apart, or nothing to tell by
                continue
            with warnings.catch_warnings():
                if self.own_features:
                    from sklearn.exceptions import ConvergenceWarning

                    warnings.simplefilter("ignore")  # rounding may stop the last step towards an optimum
                    warnings.simplefilter("error", ConvergenceWarning)
                model = fitted(clone(self.model, self.seed), take(states, train), actions)
            q = numbers("predict_proba", call("behavior", model.predict_proba, take(states, test)), 2)
            classes = to_array(attribute("the model of the propensities", model, "classes_", np.unique(actions)))
            known = (
                classes.ndim == 1 and classes.dtype.kind in "iufb" and np.isin(classes, np.arange(log.n_actions)).all()
            )
            if not known or q.shape != (len(test), len(classes)):
                raise PodiumError(
                    f"{type(self.model).__name__}.predict_proba gives {q.shape} for {count(len(test), 'row')} and "
                    f"{count(classes.size, 'action')}",
                    hint="it gives one column per class, and `classes_` names the classes it was fitted on.",
                )
            result[np.ix_(test, classes.astype(np.int64))] = q
        if not np.isfinite(result).all():
            raise PodiumError("the model of the propensities predicts numbers that are not finite", hint="check it.")
        return result


def fitted(model: Any, states: Any, actions: Codes) -> Any:
    """The model after it has learned which actions are taken in which states."""

    def fit(table: Any) -> None:
        model.fit(table, actions)

    call("behavior", fit, states)
    return model


def states_table(log: Log) -> Any:
    """The states as a user's model gets them: a pandas frame where the columns have names, else an array (N, d)."""
    if log.columns:
        return columns_to_frame(log.state_columns, "pandas")
    return np.column_stack(list(log.state_columns.values()))


def take(states: Any, rows: Codes) -> Any:
    """Some rows of an array or a frame."""
    if hasattr(states, "iloc"):
        return states.iloc[rows]
    return states[rows]


def frequencies(log: Log, fold: Codes, folds: int, shares: Floats) -> Floats:
    """(N, A) how often each action was taken in the same state, in other folds; the shares count for 5 rows."""
    cells = np.zeros((log.n_states, log.n_actions))
    np.add.at(cells, (log.state_codes, log.action_codes), 1.0)
    result = np.empty((len(log), log.n_actions))
    for k in range(folds):
        here = fold == k
        own = np.zeros_like(cells)
        np.add.at(own, (log.state_codes[here], log.action_codes[here]), 1.0)
        counts = (cells - own)[log.state_codes[here]] + PRIOR_ROWS * shares[here]
        result[here] = counts / counts.sum(axis=1, keepdims=True)
    return result


def design(log: Log) -> tuple[Floats, list[str]]:
    """(N, d) standardised numbers, and 0/1 for the texts of each column that are not rare; with their names."""
    parts: list[Floats] = []
    names: list[str] = []
    for header, column in log.state_columns.items():
        if column.dtype.kind in "iufb":
            values = column.astype(np.float64)
            if np.ptp(values) > 0:
                parts.append((values - values.mean()) / values.std())
                names.append(header)
            continue
        codes, distinct = factorize(column)
        counts = np.bincount(codes)
        common = [c for c in np.argsort(-counts, kind="stable")[:MOST_TEXTS] if counts[c] >= 5]
        parts += [(codes == c).astype(np.float64) for c in common]
        names += [f"{header} {distinct[c]!r}" for c in common]
    return (np.column_stack(parts) if parts else np.zeros((len(log), 0))), names
