"""Logs by the forms of their policies: columns, arrays, functions, models, tables, SQL, scores."""

from __future__ import annotations

import numpy as np

import podium
from recorded_logs.case import Case, recorded
from recorded_logs.rows import VISIT_ACTIONS, grid, plane, softmax, visits, wave


@recorded
def columns_of_logged_probabilities() -> Case:
    columns, rows = visits(20, 300)
    columns["propensity"] = rows.propensities
    columns |= {f"pi_{name}": p for name, p in rows.policies_at_logged.items()}
    return Case(podium.Log.from_columns(columns), gates=("p3 > p1",))


@recorded
def columns_of_whole_distributions_in_a_frame() -> Case:
    import pandas as pd

    columns, rows = visits(21, 300)
    for j, label in enumerate(VISIT_ACTIONS):
        columns[f"propensity:{label}"] = rows.behavior[:, j]
        columns |= {f"pi_{name}:{label}": policy[:, j] for name, policy in rows.policies.items()}
    return Case(podium.Log.from_frame(pd.DataFrame(columns)), gates=("p3 > p1",))


@recorded
def arrays_at_logged_actions() -> Case:
    rows = plane(22, 350, 4, 2, count=5)
    return Case(rows.log("logged"), rows.policies_at_logged, more={"compare joint": {"joint": True}})


@recorded
def arrays_at_logged_actions_no_propensities() -> Case:
    rows = wave(23, 300, 3, states=60)
    return Case(rows.log("none"), rows.policies_at_logged)


@recorded
def chosen_actions() -> Case:
    rows = wave(24, 300, 4)
    return Case(rows.log(), rows.choices, gates=("p3 > p1",))


@recorded
def callables() -> Case:
    rows = wave(25, 300, 3)
    policies = {
        "distribution": lambda states: softmax(np.outer(states, [1.0, -0.5, 0.2])),
        "choice": lambda states: (states > 0).astype(int),
        "constant": lambda states: np.full(len(states), 2),
    }
    return Case(rows.log(), policies)


@recorded
def classifiers() -> Case:
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    rows = plane(26, 300, 3, 4)
    best = rows.expected.argmax(axis=1)
    logistic = LogisticRegression(C=0.5, max_iter=500).fit(rows.states[:150], best[:150])
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows.states[:150], best[:150])
    first = podium.Policy(DecisionTreeClassifier(max_depth=1, random_state=0).fit(rows.states, rows.actions), "model")
    return Case(rows.log("logged"), {"logistic": logistic, "tree": tree, "imitation": first})


@recorded
def columns_of_chosen_actions_by_name() -> Case:
    columns, rows = visits(34, 200)
    choices = {f"pi_{name}": np.array(VISIT_ACTIONS, dtype=object)[chosen] for name, chosen in rows.choices.items()}
    log = podium.Log.from_columns({**columns, **choices, "propensity": rows.propensities})
    return Case(log, ["p3", "p1"], gates=("p3 > p1",))


@recorded
def order_of_the_actions() -> Case:
    rows = wave(35, 200, 3)
    policies = {name: np.pad(policy[:, ::-1], ((0, 0), (0, 1))) for name, policy in rows.policies.items()}
    return Case(rows.log(), {**policies, "never logged": "constant:9"}, {"actions": [2, 1, 0, 9]})


@recorded
def tables_keyed_by_state() -> Case:
    import pandas as pd

    columns, rows = visits(27, 300)
    keys = ["age", "plan", "region"]
    frame = pd.DataFrame(columns)[keys].assign(**dict(zip(VISIT_ACTIONS, rows.policies["p2"].T, strict=True)))
    labels = list(zip(*(columns[key].tolist() for key in keys), strict=True))
    chosen = np.array(VISIT_ACTIONS, dtype=object)[rows.choices["p3"]].tolist()
    policies = {
        "frame": frame.drop_duplicates(keys).iloc[::-1].reset_index(drop=True),
        "chosen": dict(zip(labels, chosen, strict=True)),
        "dictionaries": {
            state: dict(zip(VISIT_ACTIONS, p, strict=True))
            for state, p in zip(labels, rows.policies["p1"].tolist(), strict=True)
        },
    }
    log = podium.Log.from_columns({**columns, "propensity": rows.propensities})
    return Case(log, policies)


@recorded
def sql_and_named_policies() -> Case:
    columns, rows = visits(28, 300)
    for j, label in enumerate(VISIT_ACTIONS):
        columns[f"propensity:{label}"] = rows.behavior[:, j]
    policies = {
        "by age": "sql:CASE WHEN age > 50 THEN 'call' ELSE 'email' END",
        "by plan": podium.Policy("CASE plan WHEN 'family' THEN 'email' ELSE 'wait' END", kind="sql"),
        "uniform": "uniform",
        "now": "logged",
        "always call": "constant:call",
    }
    return Case(podium.Log.from_columns(columns), policies, gates=("by age > now", "uniform > always call"))


@recorded
def actions_that_were_never_logged() -> Case:
    rows = wave(29, 200, 3)
    wide = np.hstack([0.7 * rows.policies["p2"], np.full((200, 2), 0.15)])
    policies = {"wide": wide, "never logged": "constant:4", "uniform": "uniform", "one": "constant:1"}
    log = podium.Log(rows.states, rows.actions, rows.rewards, propensities=rows.propensities)
    return Case(log, policies, {"actions": [0, 1, 2, 3, 4]})


@recorded
def known_in_part_and_in_full() -> Case:
    rows = wave(30, 250, 3)
    policies = {"p1": rows.policies_at_logged["p1"], "p2": rows.policies["p2"], "p3": rows.choices["p3"]}
    return Case(rows.log(), {**policies, "now": "logged"}, gates=("p3 > now",))


@recorded
def proxy_scores() -> Case:
    rows = wave(31, 200, 3)
    policies = {
        "whole": podium.Policy(3 * rows.policies["p1"], proxy=True),
        "logged": podium.Policy(2 * rows.policies_at_logged["p2"], kind="probabilities", proxy=True),
        "probable": rows.policies["p3"],
    }
    return Case(rows.log("logged"), policies, {"estimator": "LDE"})


@recorded
def proxy_scores_with_ratios() -> Case:
    rows = wave(32, 200, 3)
    policies = {
        name: podium.Policy(p, kind="probabilities", proxy=True, ratios=p / rows.propensities, density=True)
        for name, p in rows.policies_at_logged.items()
    }
    options = {"estimator": "DRE", "verdicts": "paired t"}
    return Case(rows.log("none"), policies, options, more={"compare gated": {"verdicts": "gated"}})


@recorded
def policies_that_contradict_themselves() -> Case:
    rows = grid(33, 200, 3, 6)
    other = softmax(np.random.default_rng(330).normal(size=(200, 3)))  # differs between rows of one state
    return Case(rows.log("logged"), {**rows.policies, "other": other})
