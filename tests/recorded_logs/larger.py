"""Logs of 1,200 to 20,000 rows."""

from __future__ import annotations

import numpy as np

from recorded_logs.case import Case, recorded
from recorded_logs.rows import grid, plane, wave


@recorded
def twelve_hundred_rows_full_behavior() -> Case:
    rows = wave(87, 1200, 4, states=150)
    return Case(rows.log(), rows.policies, gates=("p3 > p1",))


@recorded
def twenty_five_hundred_rows_logged_propensities() -> Case:
    rows = plane(88, 2500, 3, 2, seeks=0.3)
    return Case(rows.log("logged"), rows.policies, asked=("compare", "evaluate", "check", "plan"))


@recorded
def three_thousand_rows_full_behavior() -> Case:
    rows = plane(80, 3000, 5, 3, count=4)
    asked = ("compare", "evaluate", "check", "plan", "spectrum")
    more = {"compare gated": {"verdicts": "gated"}}
    return Case(rows.log(), rows.policies, asked=asked, more=more, gates=("p4 > p1",))


@recorded
def five_thousand_rows_estimated() -> Case:
    rows = grid(81, 5000, 3, 40, seeks=0.3)
    return Case(rows.log("none"), rows.policies, {"behavior": "estimate:frequencies"}, asked=("compare", "evaluate"))


@recorded
def twenty_thousand_rows_full_behavior() -> Case:
    rows = wave(82, 20_000, 3, states=300)
    return Case(rows.log(), rows.policies, gates=("p3 > p1",), more={"compare gated": {"verdicts": "gated"}})


@recorded
def twenty_thousand_rows_each_with_its_own_state() -> Case:
    rows = wave(83, 20_000, 3, seeks=0.5)
    asked = ("compare", "evaluate", "spectrum")
    return Case(rows.log("logged"), rows.policies, asked=asked, more={"check gated": {"verdicts": "gated"}})


@recorded
def twenty_thousand_rows_no_propensities() -> Case:
    rows = grid(84, 20_000, 4, 100)
    more = {f"{question} gated": {"verdicts": "gated"} for question in ("compare", "check", "plan")}
    return Case(rows.log("none"), rows.policies, asked=("compare", "evaluate", "states", "spectrum"), more=more)


@recorded
def twenty_thousand_rows_at_logged_actions() -> Case:
    rows = wave(85, 20_000, 4, states=500, count=5)
    more = {f"compare {v}": {"verdicts": v, "estimator": "DRE"} for v in ("paired t", "bootstrap t", "sign flip")}
    more |= {"compare joint": {"joint": True}, "compare bootstrap": {"bootstrap": 200}}
    return Case(rows.log("logged"), rows.policies_at_logged, more=more)


@recorded
def twenty_thousand_rows_with_units() -> Case:
    rows = wave(86, 20_000, 3, states=200, seeks=0.5)
    return Case(rows.log("logged", units=np.arange(20_000) // 8), rows.policies_at_logged)
