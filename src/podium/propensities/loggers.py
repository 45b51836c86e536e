"""Logs that several policies made: the balanced propensity, as if one mixture of them had acted.

Row n was logged by policy l(n), which made a share alpha_l of the log. Dividing by its own p_l(a_n|s_n) is right, and
dividing by what the loggers do together is right and never varies more (Agarwal et al., 2017; the balance heuristic
of Veach and Guibas, 1995):

    p_n = sum_l alpha_l p_l(a_n|s_n)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.columns import Codes, factorize, labels_column, match_label, plain
from podium.data.errors import PodiumError, count, listed, refuse_rows
from podium.data.log import Log
from podium.data.probabilities import AGREE
from podium.data.roles import available
from podium.data.states import states_given
from podium.policies import align
from podium.policies.forms import draft_policy


@dataclass(frozen=True, eq=False)
class Loggers:
    """The policies that made a log together, for `behavior=`; every one is known on all rows.

    Parameters
    ----------
    policies : label -> policy in any form that a policy may take
    by : the column that says which of them acted, or its (N,) labels
    balanced : weight by what the loggers do together; False weights each row by its own logger's probability

    Examples
    --------
    >>> import podium
    >>> log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "a"], [1.0, 0.0, 1.0, 0.5])
    >>> old_and_new = podium.Loggers({"old": "uniform", "new": "constant:a"}, by=["old", "old", "new", "new"])
    >>> log.with_behavior(old_and_new).propensities
    array([0.75, 0.25, 0.75, 0.75])
    """

    policies: Mapping[Any, Any]
    by: Any = "logger"
    balanced: bool = True


def mixed(log: Log, loggers: Loggers) -> dict[str, Any]:
    """What becomes of a log's fields when its loggers are known."""
    if not isinstance(loggers.policies, Mapping) or not loggers.policies:
        raise PodiumError("there are no loggers", hint="give podium.Loggers({'old': ..., 'new': ...}, by='logger').")
    labels, codes = who_acted(log, loggers)
    changes = without_state(log, loggers.by)
    log = log._copy(**changes)
    drafts = [draft_policy(f"logger {label}", policy, log) for label, policy in loggers.policies.items()]
    for draft in drafts:
        log = log.with_actions(draft.labels)
    names = [f"logger {label}" for label in loggers.policies]
    rows = [align(name, draft, log) for name, draft in zip(names, drafts, strict=True)]
    own = np.stack([p.logged for p in rows])[codes, np.arange(len(log))]
    hint = "every logger's policy must be the one that really chose its rows' actions."
    what = "the logger's own probability of its action"
    refuse_rows(what, "must be > 0", own <= 0, own, hint)
    if log.propensities is not None:
        rule = "must agree with the logger's policy within 1e-6"
        refuse_rows(log.column("propensity"), rule, np.abs(own - log.propensities) > AGREE, log.propensities, hint)
    shares = np.bincount(codes, minlength=len(labels)) / len(log)
    logged, full = own, None
    if loggers.balanced:
        logged = np.tensordot(shares, np.stack([p.logged for p in rows]), axes=1)
    if all(p.has_full for p in rows):
        whole = np.zeros((len(log), log.n_actions))
        for k, p in enumerate(rows):
            share = shares[k] if loggers.balanced else (codes == k)[:, None]
            whole += share * p.full(log.n_actions)
        full = whole
    fields: dict[str, Any] = {"propensities": logged, "behavior": full, "action_space": log.action_space}
    known = "propensities" if full is None else "the full behaviour policy"
    many = count(len(labels), "logger")
    shared = f"{known}, balanced over {many}" if loggers.balanced else f"{known}, of {many} each on its own rows"
    return fields | changes | {"logged_by": shared, "shares": False}


def who_acted(log: Log, loggers: Loggers) -> tuple[list[Any], Codes]:
    """The labels of the loggers, and which of them made each row."""
    column = loggers.by
    if isinstance(column, str):
        if column not in log.columns and column not in log.state_columns:
            raise PodiumError(f"the log has no column {column!r} for the logger", hint=available(log.columns, column))
        column = log.columns[column] if column in log.columns else log.state_columns[column]
    what = f"column {loggers.by!r}" if isinstance(loggers.by, str) else "the loggers' column"
    column = labels_column(column, what)
    if len(column) != len(log):
        raise PodiumError(
            f"{what} has {count(len(column), 'row')}; the log has {count(len(log), 'row')}",
            hint="name the policy that acted in each row.",
        )
    found, distinct = factorize(column)
    seen = tuple(plain(x) for x in distinct)
    labels = [match_label(str(x), seen) if isinstance(x, str) else x for x in loggers.policies]
    place = {label: k for k, label in enumerate(labels)}
    known = np.array([place.get(label, -1) for label in seen], dtype=np.int64)[found]
    refuse_rows(what, "must name a logger", known < 0, column, f"the loggers are {listed(loggers.policies)}.")
    return labels, known


def without_state(log: Log, by: Any) -> dict[str, Any]:
    """Who acted is no part of the state, where the state is what was left over."""
    if not (isinstance(by, str) and log.states_guessed and by in log.state_columns and len(log.state_columns) > 1):
        return {}
    rest = {name: column for name, column in log.state_columns.items() if name != by}
    return {"state_columns": rest, "states": states_given(rest, list(rest), log.states)}
